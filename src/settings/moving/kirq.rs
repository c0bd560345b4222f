//! Interrupts moved by measured load, as the "kirq" patch did (`do_irq_balance` of `arch/i386/kernel/io_apic.c`, in the
//! mail of 16 January 2003 against 2.5.58, final in 2.6). Pure: knows no file and no clock.
//!
//! What the patch called a package was the threads of one core; so it is here. Where this differs from the patch is
//! said at the place and in docs/routing.md.

use std::collections::BTreeMap;

use crate::bind::Moving;
use crate::cpu_set::{Cpu, CpuSet, Irq};

/// Interrupts by CPU, of every numbered row, since the host began. CPUs without any are left out.
pub(super) type Counts = BTreeMap<Irq, BTreeMap<Cpu, u64>>;

/// Which cores there are, and which interrupts may be moved where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Board {
    /// Cores, ascending.
    pub cores: Vec<CpuSet>,
    /// The core of each CPU: its place in `cores`.
    core_of: BTreeMap<Cpu, usize>,
    /// CPUs each interrupt may be given to.
    pub over: BTreeMap<Irq, CpuSet>,
    /// The period of the target, milliseconds: what a second was to the patch.
    pub every_ms: u64,
}

/// What comes of one look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Decision {
    /// Moves to be made.
    pub moves: Vec<(Irq, Cpu)>,
    /// Until the next look, milliseconds.
    pub interval_ms: u64,
}

impl Board {
    pub(super) fn new(moving: &Moving) -> Self {
        let over = moving.irqs.iter().map(|irq| (irq.irq, irq.over.clone())).collect();
        Board::of(moving.cores.clone(), over, moving.every_ms)
    }

    fn of(cores: Vec<CpuSet>, over: BTreeMap<Irq, CpuSet>, every_ms: u64) -> Self {
        let places = cores.iter().enumerate().flat_map(|(place, core)| core.iter().map(move |cpu| (cpu, place)));
        Board { core_of: places.collect(), cores, over, every_ms }
    }

    fn core_of(&self, cpu: Cpu) -> Option<usize> {
        self.core_of.get(&cpu).copied()
    }

    /// After a move the patch looked again a second sooner, and not sooner than in half a second.
    fn sooner(&self, interval_ms: u64) -> u64 {
        interval_ms.saturating_sub(self.every_ms).max(self.every_ms / 2).max(1)
    }

    /// With nothing to do it looked again a tenth of a second later, and not later than in five seconds.
    fn later(&self, interval_ms: u64) -> u64 {
        (interval_ms + (self.every_ms / 10).max(1)).min(self.every_ms * 5)
    }
}

/// Least interrupts in an interval that make one on a CPU worth a thought: more than the clock's. The patch counted
/// `interval + 10` ticks of 1/1000 s; ticks here are those of `/proc/stat`, 1/100 s, because today's devices put many
/// packets into one interrupt.
fn threshold(interval_ms: u64) -> u64 {
    interval_ms / 10 + 10
}

/// Loads of one interval.
struct Loads {
    threshold: u64,
    /// Busy interrupts by core.
    by_irq: Vec<BTreeMap<Irq, u64>>,
    by_core: Vec<u64>,
    by_cpu: BTreeMap<Cpu, u64>,
}

impl Loads {
    fn of(board: &Board, (before, now): (&Counts, &Counts), threshold: u64) -> Self {
        let cores = board.cores.len();
        let mut loads =
            Loads { threshold, by_irq: vec![BTreeMap::new(); cores], by_core: vec![0; cores], by_cpu: BTreeMap::new() };
        for (irq, counts) in now {
            for (cpu, count) in counts {
                let Some(core) = board.core_of(*cpu) else { continue };
                let then = before.get(irq).and_then(|counts| counts.get(cpu)).copied().unwrap_or(0);
                let step = step(then, *count);
                if step < threshold {
                    continue;
                }
                *loads.by_irq[core].entry(*irq).or_default() += step;
                loads.by_core[core] += step;
                *loads.by_cpu.entry(*cpu).or_default() += step;
            }
        }
        loads
    }

    /// The least loaded CPU of those, the lowest of equals.
    fn least_of(&self, cpus: &CpuSet) -> Option<Cpu> {
        cpus.iter().min_by_key(|cpu| self.by_cpu.get(cpu).copied().unwrap_or(0))
    }

    fn is_busy(&self, irq: Irq) -> bool {
        self.by_irq.iter().any(|irqs| irqs.contains_key(&irq))
    }
}

/// The increment of a counter that wraps at 2^32; one that fell otherwise was reset.
fn step(then: u64, now: u64) -> u64 {
    match now.checked_sub(then) {
        Some(step) => step,
        None => (now + (1 << 32)).checked_sub(then).filter(|step| *step < 1 << 31).unwrap_or(0),
    }
}

/// One look: the counters of its beginning and its end, where each interrupt is, and how long it was.
pub(super) fn decide(board: &Board, counts: (&Counts, &Counts), at: &BTreeMap<Irq, Cpu>, interval_ms: u64) -> Decision {
    let loads = Loads::of(board, counts, threshold(interval_ms));
    let moves = match fitting(board, &loads) {
        Look::Move(irq, cpu) => vec![(irq, cpu)],
        Look::Rotate => rotate(board, &loads, at),
        // Here the patch was content. It is not so with two busy ones on one core while another core has none.
        Look::Content if is_crowded(board, &loads, at) => rotate(board, &loads, at),
        Look::Content => Vec::new(),
    };
    let moved = !moves.is_empty();
    Decision { moves, interval_ms: if moved { board.sooner(interval_ms) } else { board.later(interval_ms) } }
}

enum Look {
    Content,
    Move(Irq, Cpu),
    Rotate,
}

/// The interrupt that brings the heaviest core nearest to the lightest without going over.
fn fitting(board: &Board, loads: &Loads) -> Look {
    let Some(lightest) = (0..loads.by_core.len()).min_by_key(|core| loads.by_core[*core]) else {
        return Look::Content;
    };
    let least = loads.by_core[lightest];
    let (mut below, mut imbalance) = (u64::MAX, None);
    loop {
        let lighter = (0..loads.by_core.len()).filter(|core| (1..below).contains(&loads.by_core[*core]));
        let heaviest = lighter.min_by_key(|core| std::cmp::Reverse(loads.by_core[*core]));
        let Some(heaviest) = heaviest else {
            // A few heavy ones that fit nowhere take turns.
            let rotates = imbalance.is_some_and(|imbalance| imbalance >= loads.threshold);
            return if rotates { Look::Rotate } else { Look::Content };
        };
        let most = loads.by_core[heaviest];
        below = most;
        let mut room = (most - least) / 2;
        if room < most / 8 {
            return Look::Content;
        }
        // The largest that is smaller than the room; where it may not go to the lightest core, the next smaller one.
        loop {
            let fits =
                loads.by_irq[heaviest].iter().filter(|(irq, load)| **load < room && board.over.contains_key(irq));
            let Some((irq, load)) = fits.min_by_key(|(_, load)| std::cmp::Reverse(**load)) else { break };
            room = *load;
            if let Some(cpu) = loads.least_of(&board.cores[lightest].intersection(&board.over[irq])) {
                return Look::Move(*irq, cpu);
            }
        }
        imbalance = Some(room);
    }
}

/// Whether two busy interrupts are on one core, and one of them may go to a core without any.
fn is_crowded(board: &Board, loads: &Loads, at: &BTreeMap<Irq, Cpu>) -> bool {
    let free = (0..board.cores.len()).filter(|core| loads.by_core[*core] == 0);
    let free: CpuSet = free.flat_map(|core| board.cores[core].iter()).collect();
    let mut on: BTreeMap<usize, Vec<Irq>> = BTreeMap::new();
    for (irq, cpu) in at.iter().filter(|(irq, _)| loads.is_busy(**irq)) {
        if let Some(core) = board.core_of(*cpu) {
            on.entry(core).or_default().push(*irq);
        }
    }
    let may_leave = |irq: &Irq| board.over.get(irq).is_some_and(|over| !over.intersection(&free).is_empty());
    on.values().any(|irqs| irqs.len() > 1 && irqs.iter().any(may_leave))
}

/// Every busy interrupt goes on to the next core. The patch sent two on one core to the same next one; here each goes
/// to the next core that has none yet, and only where all have one to that with the fewest.
fn rotate(board: &Board, loads: &Loads, at: &BTreeMap<Irq, Cpu>) -> Vec<(Irq, Cpu)> {
    let cores = board.cores.len();
    let strangers = |core: &BTreeMap<Irq, u64>| core.keys().filter(|irq| !board.over.contains_key(irq)).count();
    let mut taken: Vec<usize> = loads.by_irq.iter().map(strangers).collect();
    let mut given: BTreeMap<Cpu, usize> = BTreeMap::new();
    let busy = at.iter().filter(|(irq, _)| loads.is_busy(**irq));
    let mut busy: Vec<(usize, Irq, Cpu)> =
        busy.filter_map(|(irq, cpu)| Some((board.core_of(*cpu)?, *irq, *cpu))).collect();
    busy.sort_unstable();
    let mut moves = Vec::new();
    for (from, irq, cpu) in busy {
        let Some(over) = board.over.get(&irq) else { continue };
        let ring = (1..=cores).map(|step| (from + step) % cores);
        let may = ring.filter(|core| !board.cores[*core].intersection(over).is_empty());
        let Some(to) = may.min_by_key(|core| taken[*core]) else { continue };
        taken[to] += 1;
        let threads = board.cores[to].intersection(over);
        let Some(thread) = threads.iter().min_by_key(|cpu| given.get(cpu).copied().unwrap_or(0)) else { continue };
        *given.entry(thread).or_default() += 1;
        if thread != cpu {
            moves.push((irq, thread));
        }
    }
    moves
}

#[cfg(test)]
mod tests;
