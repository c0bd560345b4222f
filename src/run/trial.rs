//! One trial, from applying the treatment to the judgement on it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use regex::Regex;

use super::evidence::{self, Asked, Masks};
use super::launch::{Ended, monotonic_ns};
use super::leftovers::Kept;
use super::process::{Phase, Role, Running, Workshop, sleep, wait};
use super::{Machine, RunError, scratch};
use crate::bind::{Moving, Process, Treatment};
use crate::cpu_set::CpuSet;
use crate::design::Command;
use crate::host::snapshot::{Snapshot, between};
use crate::recording::{CpuTimes, Fault, MaskReadings, PlannedTrial, ProcessRecord, RunnerCost, Trial};
use crate::settings::{Deviation, Moved, SettingError, Stint};
use crate::workloads::affinity;
use crate::workloads::parse::{self, Parsed};

/// How long launchers may take to come to the barrier.
const PREPARATION: Duration = Duration::from_secs(30);

/// Between two looks at the output of a background that is not ready yet. Before the trial only.
const LOOK: Duration = Duration::from_millis(20);

/// Runs trials one after the other.
pub(super) struct Runner<'a> {
    pub machine: Machine<'a>,
    /// Descendants that belong to settings; known once a treatment is applied.
    pub kept: Option<Kept>,
    /// Number of the next line of a trial.
    pub sequence: u32,
    /// The boot that is recorded with each trial.
    pub boot: Option<u32>,
}

/// A trial that is over.
#[derive(Default)]
pub(super) struct TrialEnd {
    /// What is recorded; `None` when a stop signal came before the workloads were released.
    pub trial: Option<Trial>,
    /// The stop signal.
    pub stopped_by: Option<String>,
    /// Processes nothing ends.
    pub stuck: Option<String>,
}

/// Why a trial went no further.
enum Halt {
    /// Its workloads were not released, or not to any use.
    Faults(Vec<Fault>),
    /// The run cannot go on.
    Run(RunError),
    /// The user stopped the run.
    Stopped(String),
}

impl From<RunError> for Halt {
    fn from(error: RunError) -> Self {
        Halt::Run(error)
    }
}

fn failed(what: &'static str) -> impl Fn(std::io::Error) -> RunError {
    move |source| RunError::Io { what, source }
}

/// The processes of a trial: backgrounds first.
struct Cast {
    all: Vec<Running>,
    backgrounds: usize,
}

/// What was measured between release and end.
struct Measured {
    asked: Asked,
    moved: Option<Moved>,
    started_at: String,
    release_ns: u64,
    before: (Masks, Snapshot),
    after: (Masks, Snapshot),
    cost: RunnerCost,
    stopped_by: Option<String>,
}

impl Runner<'_> {
    /// Ends whatever workloads left behind.
    pub(super) fn clear(&self) -> Result<(), RunError> {
        let Some(kept) = &self.kept else { return Ok(()) };
        let ended = kept.end_all_others().map_err(failed("cannot end processes of workloads"))?;
        if ended.stuck.is_empty() { Ok(()) } else { Err(RunError::Stuck(ended.stuck.join(", "))) }
    }

    /// Runs one trial.
    pub(super) fn trial(
        &mut self,
        treatment: &Treatment,
        (planned, attempt): (PlannedTrial, u32),
        settle_ms: u64,
    ) -> Result<TrialEnd, RunError> {
        let mut trial = Trial { boot: self.boot, ..blank(planned, attempt, self.sequence) };
        let folder = scratch::folder(self.machine.scratch);
        let folder = folder.map_err(failed("cannot make a folder for outputs"))?;
        let mut cast = Cast { all: Vec::new(), backgrounds: 0 };
        let played = self.apply(treatment, &mut trial).and_then(|routes| {
            self.rest(Duration::from_millis(settle_ms.max(treatment.settle_ms)))?;
            self.look_again(treatment)?;
            // Again: a service that was started may have become a daemon meanwhile.
            self.keep_descendants()?;
            self.enter_backgrounds(&mut cast, treatment, folder.path())?;
            self.enter_workloads(&mut cast, treatment, folder.path())?;
            self.measure(&mut cast, (treatment, seed_of(planned, attempt)), routes)
        });
        let background_faults = background_faults(&cast, treatment);
        dismiss(&mut cast)?;
        let kept = self.kept.clone().unwrap_or_default();
        let left = kept.end_all_others().map_err(failed("cannot end processes of workloads"))?;
        if !left.left_behind.is_empty() {
            trial.settings.push(format!("left behind by workloads, ended: {}", left.left_behind.join(", ")));
        }
        let mut end =
            TrialEnd { stuck: (!left.stuck.is_empty()).then(|| left.stuck.join(", ")), ..TrialEnd::default() };
        match played {
            Ok(measured) => {
                trial.faults = background_faults;
                self.judge(&mut trial, treatment, (&cast, &measured));
                end.stopped_by = measured.stopped_by;
            }
            Err(Halt::Faults(faults)) => trial.faults = faults,
            Err(Halt::Stopped(signal)) => return Ok(TrialEnd { stopped_by: Some(signal), ..end }),
            Err(Halt::Run(error)) => return Err(error),
        }
        self.sequence += 1;
        end.trial = Some(trial);
        Ok(end)
    }

    /// Makes the settings and gives the masks in force.
    fn apply(&mut self, treatment: &Treatment, trial: &mut Trial) -> Result<BTreeMap<u32, CpuSet>, Halt> {
        let entered = self.machine.apply.enter(&treatment.changes);
        self.keep_descendants()?;
        let entered = entered.map_err(refused)?;
        trial.settings = entered.remarks;
        let deviations = self.machine.apply.verify();
        if !deviations.is_empty() {
            return Err(Halt::Faults(deviations.iter().map(not_in_force).collect()));
        }
        let routes = evidence::routes(self.machine.files, &treatment.changes).map_err(RunError::from)?;
        self.machine.apply.expect_moves(&movable(treatment, &routes)).map_err(refused)?;
        Ok(routes)
    }

    /// A service that needs a long rest may have ended in it.
    fn look_again(&self, treatment: &Treatment) -> Result<(), Halt> {
        if treatment.settle_ms == 0 {
            return Ok(());
        }
        let deviations = self.machine.apply.verify();
        if deviations.is_empty() { Ok(()) } else { Err(Halt::Faults(deviations.iter().map(not_in_force).collect())) }
    }

    /// What descends from here on and is not known now belongs to a workload.
    fn keep_descendants(&mut self) -> Result<(), RunError> {
        self.kept = Some(Kept::now().map_err(failed("cannot list processes"))?);
        Ok(())
    }

    fn rest(&self, time: Duration) -> Result<(), Halt> {
        let until = Instant::now() + time;
        loop {
            self.nap(&mut [], Some(until))?;
            if Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Sleeps; a stop signal ends the trial.
    fn nap(&self, processes: &mut [Running], deadline: Option<Instant>) -> Result<(), Halt> {
        match sleep(processes, self.machine.signals, deadline).map_err(failed("cannot wait for processes"))? {
            Some(signal) => Err(Halt::Stopped(signal)),
            None => Ok(()),
        }
    }

    /// Starts launchers and waits until all stand at the barrier.
    fn prepare(&self, cast: &mut Cast, processes: &[Process], (role, folder): (Role, &Path)) -> Result<(), Halt> {
        let first = cast.all.len();
        let workshop = Workshop { program: self.machine.program, folder };
        for process in processes {
            for instance in 0..process.instances {
                let running = Running::prepare(workshop, process, (role, instance)).map_err(|error| {
                    Halt::Faults(vec![start_failed(role, &process.name, format!("cannot start a launcher: {error}"))])
                })?;
                cast.all.push(running);
            }
        }
        let deadline = Instant::now() + PREPARATION;
        while cast.all[first..].iter().any(|running| running.phase == Phase::Preparing) && Instant::now() < deadline {
            self.nap(&mut cast.all, Some(deadline))?;
        }
        let faults = cast.all[first..].iter().filter_map(|running| match &running.phase {
            Phase::Failed(detail) => Some(start_failed(role, &running.name, detail.clone())),
            Phase::Preparing => Some(start_failed(role, &running.name, "its launcher did not get ready".to_owned())),
            _ => None,
        });
        let faults: Vec<Fault> = faults.collect();
        if faults.is_empty() { Ok(()) } else { Err(Halt::Faults(faults)) }
    }

    fn enter_backgrounds(&self, cast: &mut Cast, treatment: &Treatment, folder: &Path) -> Result<(), Halt> {
        self.prepare(cast, &treatment.backgrounds, (Role::Background, folder))?;
        cast.backgrounds = cast.all.len();
        let released = Instant::now();
        for running in &mut cast.all {
            running.release(Role::Background);
        }
        for (index, process) in roles(&treatment.backgrounds).enumerate() {
            let pattern = process.ready.as_deref().map(Regex::new).transpose().map_err(|error| {
                Halt::Faults(vec![background_failed(&process.name, format!("its `ready` pattern: {error}"))])
            })?;
            let deadline = released + Duration::from_millis(process.timeout_ms);
            loop {
                let running = &cast.all[index];
                if let Some(detail) = early_end(running) {
                    return Err(Halt::Faults(vec![background_failed(&process.name, detail)]));
                }
                if running.started && pattern.as_ref().is_none_or(|pattern| is_ready(running, pattern)) {
                    break;
                }
                let now = Instant::now();
                if now >= deadline {
                    let detail = format!("it was not ready after {} ms: {}", process.timeout_ms, running.tail());
                    return Err(Halt::Faults(vec![background_failed(&process.name, detail)]));
                }
                let look = if running.started { deadline.min(now + LOOK) } else { deadline };
                self.nap(&mut cast.all, Some(look))?;
            }
        }
        Ok(())
    }

    fn enter_workloads(&self, cast: &mut Cast, treatment: &Treatment, folder: &Path) -> Result<(), Halt> {
        self.prepare(cast, &treatment.workloads, (Role::Workload, folder))
    }

    /// From the first snapshot to the second.
    fn measure(
        &mut self,
        cast: &mut Cast,
        (treatment, seed): (&Treatment, u64),
        routes: BTreeMap<u32, CpuSet>,
    ) -> Result<Measured, Halt> {
        let home = affinity::current().map_err(failed("cannot read the runner's CPUs"))?;
        // What the runner is on is recorded; a cpuset that does not let it go there is no reason not to measure.
        let _ = affinity::keep_to(&treatment.runner_cpus);
        let moving = movable(treatment, &routes);
        let measured = self.measure_apart(cast, routes, (&moving, seed));
        affinity::keep_to(&home).map_err(failed("cannot go back to the runner's CPUs"))?;
        measured
    }

    fn measure_apart(
        &mut self,
        cast: &mut Cast,
        routes: BTreeMap<u32, CpuSet>,
        (moving, seed): (&[Moving], u64),
    ) -> Result<Measured, Halt> {
        let files = self.machine.files;
        let masks_before = Masks::read(files, &routes).map_err(RunError::from)?;
        let snapshot_before = Snapshot::read(files).map_err(RunError::from)?;
        let cost_before = own_usage()?;
        let started_at = jiff::Timestamp::now().to_string();
        let release_ns = monotonic_ns().map_err(failed("cannot read the clock"))?;
        let stint = Stint { moving, released: Instant::now(), seed };
        let (stopped_by, moved) = self.release_and_move(cast, &stint)?;
        let cost_after = own_usage()?;
        let snapshot_after = Snapshot::read(files).map_err(RunError::from)?;
        let masks_after = Masks::read(files, &routes).map_err(RunError::from)?;
        let all = cost_between(&cost_before, &cost_after);
        let cost = without_mover(RunnerCost { cpus: affinity::current().unwrap_or_default(), ..all }, moved.as_ref());
        if let Some(moved) = &moved {
            self.machine.apply.follow_moves(&moved.last);
        }
        Ok(Measured {
            asked: Asked::new(routes, moved.as_ref()),
            moved,
            started_at,
            release_ns,
            before: (masks_before, snapshot_before),
            after: (masks_after, snapshot_after),
            cost,
            stopped_by,
        })
    }

    /// Lets the workloads run to their end, and beside them the thread that moves interrupts, where there is one.
    fn release_and_move(
        &self,
        cast: &mut Cast,
        stint: &Stint<'_>,
    ) -> Result<(Option<String>, Option<Moved>), RunError> {
        let release = |cast: &mut Cast| {
            for running in &mut cast.all[cast.backgrounds..] {
                running.release(Role::Workload);
            }
            self.play_to_the_end(cast)
        };
        if stint.moving.is_empty() {
            return Ok((release(cast)?, None));
        }
        let system = self.machine.system;
        std::thread::scope(|scope| {
            // Dropped when the workloads are over, however that came: the mover ends with it.
            let (stop, stopped) = std::sync::mpsc::channel();
            let mover = std::thread::Builder::new().name("irqlab-mover".to_owned());
            let mover = mover.spawn_scoped(scope, move || stint.run(system, &stopped));
            let mover = mover.map_err(failed("cannot start the thread that moves interrupts"))?;
            let played = release(cast);
            drop(stop);
            let moved = mover.join().map_err(|panic| RunError::Panic(super::panic_text(panic.as_ref())))?;
            Ok((played?, Some(moved)))
        })
    }

    /// Sleeps until the last workload is over. A stop signal, or a workload that cannot start, ends the others.
    fn play_to_the_end(&self, cast: &mut Cast) -> Result<Option<String>, RunError> {
        let mut stopped_by = None;
        while cast.all[cast.backgrounds..].iter().any(|running| !running.is_over()) {
            let deadline = cast.all[cast.backgrounds..].iter().filter_map(Running::next_deadline).min();
            let signal = sleep(&mut cast.all, self.machine.signals, deadline);
            let signal = signal.map_err(failed("cannot wait for processes"))?;
            stopped_by = stopped_by.or(signal);
            let workloads = &mut cast.all[cast.backgrounds..];
            if stopped_by.is_some() || workloads.iter().any(|running| matches!(running.phase, Phase::Failed(_))) {
                workloads.iter_mut().for_each(Running::stop);
            }
            escalate(workloads);
        }
        Ok(stopped_by)
    }

    fn judge(&self, trial: &mut Trial, treatment: &Treatment, (cast, measured): (&Cast, &Measured)) {
        let counters = between(&measured.before.1, &measured.after.1);
        let masks = (&measured.before.0, &measured.after.0);
        let (backgrounds, workloads) = cast.all.split_at(cast.backgrounds);
        trial.started_at.clone_from(&measured.started_at);
        trial.backgrounds = backgrounds.iter().map(|running| record(running, Parsed::default())).collect();
        let mut last_ns = measured.release_ns;
        for (running, process) in workloads.iter().zip(roles(&treatment.workloads)) {
            let (parsed, faults) = outcome(running, process);
            if let Phase::Ended(ended) = &running.phase {
                last_ns = last_ns.max(ended.end_ns);
            }
            trial.faults.extend(faults);
            trial.processes.push(record(running, parsed));
        }
        trial.duration_ns = last_ns - measured.release_ns;
        let findings = evidence::judge(&measured.asked, masks, &counters);
        let deviations = self.machine.apply.verify();
        let unknown = |deviation: &&Deviation| !findings.faults.iter().any(|fault| explains(fault, deviation));
        trial.faults.extend(deviations.iter().filter(unknown).map(not_in_force));
        trial.faults.extend(findings.faults);
        trial.faults.extend(measured.moved.iter().flat_map(|moved| moved.faults.iter().cloned()));
        let refused = measured.moved.as_ref().map_or(0, |moved| moved.mover.refused);
        if refused > 0 {
            trial.settings.push(format!("moves the kernel refused for the moment: {refused}"));
        }
        trial.mover = measured.moved.as_ref().map(|moved| moved.mover.clone());
        trial.settings.extend(findings.remarks);
        trial.faults.extend(measured.stopped_by.clone().map(|signal| Fault::Interrupted { signal }));
        trial.masks = MaskReadings {
            refused: measured.asked.refused(&treatment.changes),
            ..evidence::readings(&measured.asked, masks.0, masks.1)
        };
        trial.cpu_times = counters.cpu_times;
        trial.interrupts = counters.interrupts;
        trial.softirqs = counters.softirqs;
        trial.runner = measured.cost.clone();
    }
}

/// Ends everything that still runs. Stop signals wait until it is done.
fn dismiss(cast: &mut Cast) -> Result<(), RunError> {
    cast.all.iter_mut().for_each(Running::stop);
    while cast.all.iter().any(|running| !running.is_over()) {
        let deadline = cast.all.iter().filter_map(Running::next_deadline).min();
        wait(&mut cast.all, deadline).map_err(failed("cannot wait for processes"))?;
        escalate(&mut cast.all);
    }
    cast.all.iter_mut().for_each(Running::see_off);
    Ok(())
}

fn escalate(processes: &mut [Running]) {
    let now = Instant::now();
    for running in processes {
        running.escalate(now);
    }
}

/// The process each copy in the cast belongs to.
fn roles(processes: &[Process]) -> impl Iterator<Item = &Process> {
    processes.iter().flat_map(|process| (0..process.instances).map(move |_| process))
}

fn is_ready(running: &Running, pattern: &Regex) -> bool {
    let output = running.output();
    pattern.is_match(&output.stdout) || pattern.is_match(&output.stderr)
}

/// What a process that should still run has come to.
fn early_end(running: &Running) -> Option<String> {
    let tail =
        || Some(running.tail()).filter(|tail| !tail.is_empty()).map_or(String::new(), |tail| format!(": {tail}"));
    match &running.phase {
        Phase::Ended(Ended { signal: Some(signal), .. }) => Some(format!("it was ended by {signal}{}", tail())),
        Phase::Ended(Ended { status, .. }) => {
            Some(format!("it ended with status {} before the workloads did{}", status.unwrap_or(-1), tail()))
        }
        Phase::Failed(detail) => Some(detail.clone()),
        _ => None,
    }
}

fn background_faults(cast: &Cast, treatment: &Treatment) -> Vec<Fault> {
    let backgrounds = cast.all.iter().zip(roles(&treatment.backgrounds));
    backgrounds.filter_map(|(running, process)| Some(background_failed(&process.name, early_end(running)?))).collect()
}

fn background_failed(process: &str, detail: String) -> Fault {
    Fault::BackgroundFailed { process: process.to_owned(), detail }
}

fn start_failed(role: Role, process: &str, detail: String) -> Fault {
    match role {
        Role::Background => background_failed(process, detail),
        Role::Workload => Fault::StartFailed { process: process.to_owned(), detail },
    }
}

fn refused(error: SettingError) -> Halt {
    let detail = error.meaning.map_or_else(|| error.source.to_string(), |m| format!("{} ({m})", error.source));
    Halt::Faults(vec![Fault::SettingRefused { setting: error.setting, detail }])
}

/// The moving targets of a treatment without interrupts that refused a mask and may.
fn movable(treatment: &Treatment, routes: &BTreeMap<u32, CpuSet>) -> Vec<Moving> {
    let moving = treatment.moving.iter().cloned().map(|mut moving| {
        moving.irqs.retain(|irq| routes.contains_key(&irq.irq.0));
        moving
    });
    moving.filter(|moving| !moving.irqs.is_empty()).collect()
}

/// Each try of each trial has coins of its own, the same ones when the run is made again.
fn seed_of(planned: PlannedTrial, attempt: u32) -> u64 {
    u64::from(planned.number) << 32 | u64::from(attempt)
}

fn not_in_force(deviation: &Deviation) -> Fault {
    let Deviation { setting, asked, found } = deviation;
    Fault::TreatmentNotInForce { detail: format!("{setting}: asked for {asked}, found {found}") }
}

/// Whether a fault says already what a deviation says.
fn explains(fault: &Fault, deviation: &Deviation) -> bool {
    match fault {
        Fault::MaskRewritten { irqs, .. } => {
            irqs.0.iter().any(|irq| deviation.setting.starts_with(&format!("irq {irq} -> ")))
        }
        _ => false,
    }
}

/// What a workload's end means for the trial.
fn outcome(running: &Running, process: &Process) -> (Parsed, Vec<Fault>) {
    let name = || running.name.clone();
    let fault = match &running.phase {
        Phase::Failed(detail) => Some(Fault::StartFailed { process: name(), detail: detail.clone() }),
        _ if running.timed_out => Some(Fault::TimedOut { process: name(), limit_ms: process.timeout_ms }),
        _ if running.was_stopped() => return (Parsed::default(), Vec::new()),
        Phase::Ended(Ended { signal: Some(signal), .. }) => {
            Some(Fault::Signal { process: name(), signal: signal.clone() })
        }
        Phase::Ended(Ended { status: Some(status), .. }) if *status != 0 => {
            Some(Fault::ExitStatus { process: name(), status: *status, output: running.tail() })
        }
        _ => None,
    };
    if let Some(fault) = fault {
        return (Parsed::default(), vec![fault]);
    }
    let output = running.output();
    let mut parsed = parse::parse(&process.parsers, &output);
    if matches!(process.command, Command::Builtin { .. }) {
        let own = parse::builtin(&output);
        parsed.values.extend(own.values);
        parsed.notes.extend(own.notes);
        parsed.failures.extend(own.failures);
    }
    let not_parsed = |failure: &parse::Failure| Fault::OutputNotParsed {
        process: name(),
        metric: failure.metric.clone(),
        detail: failure.detail.clone(),
    };
    let faults = parsed.failures.iter().map(not_parsed).collect();
    (parsed, faults)
}

fn record(running: &Running, parsed: Parsed) -> ProcessRecord {
    let ended = match &running.phase {
        Phase::Ended(ended) => ended.clone(),
        _ => Ended::default(),
    };
    ProcessRecord {
        name: running.name.clone(),
        instance: running.instance,
        status: ended.status,
        signal: ended.signal,
        real_ns: ended.end_ns.saturating_sub(ended.start_ns),
        user_us: ended.user_us,
        sys_us: ended.sys_us,
        max_rss_kib: ended.max_rss_kib,
        voluntary_switches: ended.voluntary_switches,
        involuntary_switches: ended.involuntary_switches,
        minor_faults: ended.minor_faults,
        major_faults: ended.major_faults,
        cpus: running.cpus.clone(),
        values: parsed.values,
        notes: parsed.notes,
    }
}

fn own_usage() -> Result<Usage, RunError> {
    getrusage(UsageWho::RUSAGE_SELF).map_err(|error| failed("cannot read the runner's own cost")(error.into()))
}

fn cost_between(before: &Usage, after: &Usage) -> RunnerCost {
    let cpu = |usage: &Usage| usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    let switches = |usage: &Usage| usage.voluntary_context_switches() + usage.involuntary_context_switches();
    RunnerCost {
        cpu_us: (cpu(after) - cpu(before)).unsigned_abs(),
        switches: (switches(after) - switches(before)).unsigned_abs(),
        cpus: CpuSet::new(),
    }
}

/// The mover is a thread of the runner, and its cost is told apart.
fn without_mover(all: RunnerCost, moved: Option<&Moved>) -> RunnerCost {
    let (cpu_us, switches) = moved.map_or((0, 0), |moved| (moved.mover.cpu_us, moved.mover.switches));
    RunnerCost {
        cpu_us: all.cpu_us.saturating_sub(cpu_us),
        switches: all.switches.saturating_sub(switches),
        cpus: all.cpus,
    }
}

fn blank(planned: PlannedTrial, attempt: u32, sequence: u32) -> Trial {
    Trial {
        number: planned.number,
        attempt,
        sequence,
        block: planned.block,
        treatment: planned.treatment,
        boot: None,
        started_at: jiff::Timestamp::now().to_string(),
        duration_ns: 0,
        faults: Vec::new(),
        processes: Vec::new(),
        backgrounds: Vec::new(),
        cpu_times: CpuTimes::default(),
        interrupts: Vec::new(),
        softirqs: Vec::new(),
        masks: MaskReadings::default(),
        settings: Vec::new(),
        runner: RunnerCost::default(),
        mover: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_set::{Cpu, Irq};
    use crate::recording::IrqList;

    #[test]
    fn a_rewritten_mask_is_one_fault_and_not_two() {
        let irqs = IrqList(vec![Irq(31), Irq(34)]);
        let (asked, found) = (CpuSet::single(Cpu(0)), CpuSet::parse_list("0-1").unwrap());
        let fault = Fault::MaskRewritten { irqs, asked, found };
        let deviation = |irq: u32| Deviation {
            setting: format!("irq {irq} -> cpu 0"),
            asked: "cpu 0".to_owned(),
            found: "cpus 0-1".to_owned(),
        };
        assert_eq!([34, 3, 340].map(|irq| explains(&fault, &deviation(irq))), [true, false, false]);
    }
}
