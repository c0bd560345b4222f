//! Moves interrupts while a trial runs: a thread of its own that sleeps until something is due, beside the runner and
//! off the measured CPUs. Obeys `rotation` and `kirq`, which decide; records every move; must not begin before the
//! journal holds the first masks.

mod kirq;
mod rotation;

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use super::journal::{Record, Thing};
use super::{SettingError, Settings, System, affinity, kernel_file, words};
use crate::bind::{ChangeKind, Method, Moving};
use crate::cpu_set::{Cpu, CpuSet, Irq};
use crate::host::counters::Table;
use crate::host::files::SystemError;
use crate::recording::{Fault, IrqList, Move, Mover};
use kirq::{Board, Counts};
use rotation::Rotation;

const EAGAIN: i32 = 11;
const EBUSY: i32 = 16;
const ENOSPC: i32 = 28;

/// What a mover did.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Moved {
    /// For the recording.
    pub mover: Mover,
    /// The mask each interrupt was left with.
    pub last: BTreeMap<u32, CpuSet>,
    /// All CPUs each interrupt was given to, the first one among them.
    pub chosen: BTreeMap<u32, CpuSet>,
    /// What went wrong: masks somebody else wrote, moves the kernel refuses for good.
    pub faults: Vec<Fault>,
}

/// A trial to move interrupts in.
pub struct Stint<'a> {
    /// The targets.
    pub moving: &'a [Moving],
    /// When the workloads are released.
    pub released: Instant,
    /// What the coins of a rotating target fall by.
    pub seed: u64,
}

impl Stint<'_> {
    /// Moves interrupts until the other end of `stop` is dropped. To be called in a thread of its own, whose cost is
    /// then the mover's.
    pub fn run(&self, system: &dyn System, stop: &Receiver<()>) -> Moved {
        let mut hand = Hand::new(system, self.moving);
        let mut plans: Vec<Plan> = self.moving.iter().map(|moving| Plan::new(moving, self.seed, &mut hand)).collect();
        while let Some(next_ms) = plans.iter().map(Plan::next_ms).min() {
            let until = self.released + Duration::from_millis(next_ms);
            match stop.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Err(RecvTimeoutError::Timeout) => {}
                Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
            }
            for plan in plans.iter_mut().filter(|plan| plan.next_ms() <= self.now_ms()) {
                let moves = plan.due(self.now_ms(), &mut hand);
                for (irq, cpu) in moves {
                    if hand.give(irq, cpu, self.now_ms()) {
                        plan.made(irq, cpu);
                    }
                }
            }
        }
        hand.finish()
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.released.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

/// What decides for one target.
enum Plan {
    Balanced { board: Board, counts: Counts, at: BTreeMap<Irq, Cpu>, interval_ms: u64, next_ms: u64 },
    Rotating(Rotation),
}

impl Plan {
    fn new(moving: &Moving, seed: u64, hand: &mut Hand<'_>) -> Self {
        match moving.method {
            Method::Balanced => Plan::Balanced {
                board: Board::new(moving),
                counts: hand.counts(),
                at: moving.irqs.iter().map(|irq| (irq.irq, irq.start)).collect(),
                interval_ms: moving.every_ms,
                next_ms: moving.every_ms,
            },
            Method::Rotating => Plan::Rotating(Rotation::new(moving, seed)),
        }
    }

    fn next_ms(&self) -> u64 {
        match self {
            Plan::Balanced { next_ms, .. } => *next_ms,
            Plan::Rotating(rotation) => rotation.next_ms(),
        }
    }

    fn due(&mut self, now_ms: u64, hand: &mut Hand<'_>) -> Vec<(Irq, Cpu)> {
        match self {
            Plan::Rotating(rotation) => rotation.due(now_ms),
            Plan::Balanced { board, counts, at, interval_ms, next_ms } => {
                let now = hand.counts();
                let decision = kirq::decide(board, (counts, &now), at, *interval_ms);
                *counts = now;
                *interval_ms = decision.interval_ms;
                *next_ms = now_ms + decision.interval_ms;
                decision.moves
            }
        }
    }

    fn made(&mut self, irq: Irq, cpu: Cpu) {
        match self {
            Plan::Balanced { at, .. } => {
                at.insert(irq, cpu);
            }
            Plan::Rotating(rotation) => rotation.made(irq, cpu),
        }
    }
}

/// Writes masks and notices who else does.
struct Hand<'a> {
    system: &'a dyn System,
    moved: Moved,
}

impl<'a> Hand<'a> {
    fn new(system: &'a dyn System, moving: &[Moving]) -> Self {
        let irqs = moving.iter().flat_map(|moving| &moving.irqs);
        let starts: BTreeMap<u32, CpuSet> = irqs.map(|irq| (irq.irq.0, CpuSet::single(irq.start))).collect();
        Hand { system, moved: Moved { last: starts.clone(), chosen: starts, ..Moved::default() } }
    }

    /// Gives an interrupt to a CPU. Whether it has it now.
    fn give(&mut self, irq: Irq, cpu: Cpu, at_ms: u64) -> bool {
        match self.write(irq, cpu) {
            Ok(()) => {
                let mask = CpuSet::single(cpu);
                self.moved.last.insert(irq.0, mask);
                self.moved.chosen.entry(irq.0).or_default().insert(cpu);
                self.moved.mover.moves.push(Move { at_ms, irq, cpu });
                true
            }
            Err(error) if matches!(error.errno(), EAGAIN | EBUSY | ENOSPC) => {
                self.moved.mover.refused += 1;
                false
            }
            Err(error) => {
                let meaning =
                    affinity::meaning(error.errno()).map(|meaning| format!(" ({meaning})")).unwrap_or_default();
                self.fault(
                    irq,
                    Fault::TreatmentNotInForce { detail: format!("irq {irq} -> cpu {cpu}: {error}{meaning}") },
                );
                false
            }
        }
    }

    fn write(&mut self, irq: Irq, cpu: Cpu) -> Result<(), SystemError> {
        let path = format!("/proc/irq/{irq}/smp_affinity");
        let before = self.system.read_text(&path)?;
        if let (Some(asked), Ok(found)) = (self.moved.last.get(&irq.0).cloned(), CpuSet::parse_mask(&before))
            && asked != found
        {
            self.fault(irq, Fault::MaskRewritten { irqs: IrqList(vec![irq]), asked, found });
        }
        self.system.write(&path, format!("{}\n", CpuSet::single(cpu).to_mask_like(&before)).as_bytes())
    }

    /// The first fault of an interrupt; a thousand more say nothing new.
    fn fault(&mut self, irq: Irq, fault: Fault) {
        let is_of = |known: &Fault| match known {
            Fault::MaskRewritten { irqs, .. } => irqs.0.contains(&irq),
            Fault::TreatmentNotInForce { detail } => detail.starts_with(&format!("irq {irq} ")),
            _ => false,
        };
        if !self.moved.faults.iter().any(is_of) {
            self.moved.faults.push(fault);
        }
    }

    /// Counters of all numbered interrupts; none where they cannot be read, which is a fault.
    fn counts(&mut self) -> Counts {
        let read = self.system.read("/proc/interrupts").map_err(|error| error.to_string());
        let table = read.and_then(|text| Table::parse(&text).map_err(|error| format!("/proc/interrupts: {error}")));
        match table {
            Ok(table) => {
                let counts = |row| table.by_cpu(row).filter(|(_, count)| *count > 0).collect();
                table.rows.iter().filter_map(|row| Some((row.irq?, counts(row)))).collect()
            }
            Err(detail) => {
                self.moved
                    .faults
                    .push(Fault::TreatmentNotInForce { detail: format!("interrupts not balanced: {detail}") });
                Counts::new()
            }
        }
    }

    fn finish(mut self) -> Moved {
        if let Ok(usage) = getrusage(UsageWho::RUSAGE_THREAD) {
            self.moved.mover.cpu_us = cpu_us(&usage);
            self.moved.mover.switches =
                (usage.voluntary_context_switches() + usage.involuntary_context_switches()).unsigned_abs();
        }
        self.moved
    }
}

fn cpu_us(usage: &Usage) -> u64 {
    (usage.user_time().num_microseconds() + usage.system_time().num_microseconds()).unsigned_abs()
}

impl Settings<'_> {
    /// Puts the first mask of every interrupt that will be moved into the journal, if it is not there, and where it may
    /// be found meanwhile. A mask that was right already would else be moved unjournaled.
    pub(super) fn expect_moves(&mut self, moving: &[Moving]) -> Result<(), SettingError> {
        let over: BTreeMap<Irq, &CpuSet> =
            moving.iter().flat_map(|moving| &moving.irqs).map(|irq| (irq.irq, &irq.over)).collect();
        let mut records = Vec::new();
        let mut last = None;
        for change in &self.in_force {
            let ChangeKind::Affinity { identity, .. } = &change.kind else { continue };
            let Some(over) = over.get(&identity.irq) else { continue };
            let now = affinity::save(self.system, identity).map_err(|refusal| words::error(change, refusal))?;
            let thing = Thing::of_irq(identity);
            let old = self.original(&thing, now);
            records.push(Record::Change { thing, old, new: Some(format!("{}{over}", affinity::MOVING_OVER)) });
            last = Some(change.clone());
        }
        match (self.record(records), last) {
            (Err(refusal), Some(change)) => Err(words::error(&change, refusal)),
            _ => Ok(()),
        }
    }

    /// Takes the masks a mover left as those in force.
    pub(super) fn follow_moves(&mut self, last: &BTreeMap<u32, CpuSet>) {
        let mut records = Vec::new();
        for change in &mut self.in_force {
            let ChangeKind::Affinity { identity, mask, .. } = &mut change.kind else { continue };
            let Some(now) = last.get(&identity.irq.0) else { continue };
            mask.clone_from(now);
            let key = Thing::of_irq(identity).key();
            let layout = self.entries.get(&key).map(|entry| kernel_file::text_of(&entry.old)).unwrap_or_default();
            records.push(Record::Done { key, found: now.to_mask_like(&layout) });
        }
        for record in records {
            self.later(record);
        }
    }
}
