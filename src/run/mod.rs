//! The trial loop: the only box that touches a kernel, a clock or a process. Decides nothing; the schedule did.
//!
//! While workloads run, the runner sleeps in one `poll(2)`, on CPUs of its own; where a target moves interrupts, a second
//! thread beside it sleeps until its next move is due. Whatever happens, the host is put back
//! by [`Apply::restore`] before [`run`] returns.

use std::any::Any;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::bind::Schedule;
use crate::host::files::{Files, SystemError};
use crate::recording::{Boot, Decision, End, Fault, Line, PlannedTrial, Recording, Trial, Writer};
use crate::settings::{Apply, Restored, System};

pub mod evidence;
pub mod launch;
mod leftovers;
mod process;
pub mod reboots;
pub mod scratch;
mod signals;
mod trial;
pub mod watchdog;

pub use signals::StopSignals;

/// What a run works with.
pub struct Machine<'a> {
    /// The running host's files.
    pub files: &'a dyn Files,
    /// Makes and puts back settings.
    pub apply: &'a mut dyn Apply,
    /// The running host for the thread that moves interrupts.
    pub system: &'a (dyn System + Sync),
    /// The stop signals, blocked before anything else was done.
    pub signals: &'a StopSignals,
    /// The irqlab program: [`own_program`].
    pub program: &'a Path,
    /// A folder for outputs of processes; best on a file system in memory, so that writing them makes no interrupts.
    pub scratch: &'a Path,
}

/// What has to be run.
pub struct Plan<'a> {
    /// Treatments as bound to this host.
    pub schedule: &'a Schedule,
    /// Rest between applying a treatment and starting its processes, milliseconds.
    pub settle_ms: u64,
    /// Repetitions of an invalid trial at most.
    pub retries: u32,
    /// Trials still to be run, in order.
    pub trials: Vec<PlannedTrial>,
    /// How often each trial was tried by earlier runs into the same recording.
    pub attempts: BTreeMap<u32, u32>,
    /// How often this run has tried each trial already, in machines that are gone.
    pub tries: BTreeMap<u32, u32>,
    /// Number of lines of trials already in the recording.
    pub sequence: u32,
    /// [`Boot::number`](crate::recording::Boot::number) of the boot they run in, where boots are recorded.
    pub boot: Option<u32>,
    /// What happens to the host between two blocks.
    pub between_blocks: BetweenBlocks,
}

/// What happens to the host between two blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BetweenBlocks {
    /// One treatment follows the other.
    GoOn,
    /// It is put back first. A whole plot that ends one block may begin the next, and has to be set up anew there: both
    /// blocks would share what was special about its set-up.
    PutBack,
}

impl<'a> Plan<'a> {
    /// A whole schedule.
    pub fn new(schedule: &'a Schedule, (settle_ms, retries): (u64, u32)) -> Self {
        let (trials, none) = (schedule.order.clone(), BTreeMap::new());
        let (attempts, tries, between_blocks) = (none.clone(), none, BetweenBlocks::GoOn);
        Plan { schedule, settle_ms, retries, trials, attempts, tries, sequence: 0, boot: None, between_blocks }
    }

    /// What an earlier run into `recording` has left to do: trials without a valid run.
    #[must_use]
    pub fn resume(self, recording: &Recording) -> Self {
        let sequence = recording.trials.iter().map(|trial| trial.sequence + 1).max().unwrap_or(0);
        Plan { trials: recording.remaining(), attempts: recording.attempts(), sequence, ..self }
    }
}

/// Told of a run's steps, between trials only.
pub trait Progress {
    /// A trial is about to begin; `attempt` is 0 for its first try.
    fn trial_started(&mut self, planned: &PlannedTrial, attempt: u32);

    /// A trial is over and on the disk.
    fn trial_ended(&mut self, trial: &Trial);

    /// A lab's machine is ready for its first trial, and that is on the disk.
    fn booted(&mut self, _boot: &Boot) {}

    /// All planned trials are over: what a two-stage run goes on with. Asked once; the answer is on the disk before
    /// any of its trials begins.
    fn further(&mut self) -> Option<Decision> {
        None
    }
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Every trial was run; `invalid` of them have no valid run.
    Complete { invalid: u32 },
    /// The user stopped it: `SIGINT`.
    Interrupted { signal: String },
}

/// A run that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A kernel service or the disk failed.
    #[error("{what}: {source}")]
    Io { what: &'static str, source: io::Error },
    /// The host could not be put back between two blocks.
    #[error("the host could not be put back between two blocks: {0}")]
    NotPutBack(String),
    /// A defect of irqlab.
    #[error("irqlab panicked: {0}")]
    Panic(String),
    /// The recording cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Recording { path: PathBuf, source: io::Error },
    /// A setting was refused in every try of a trial: its treatment cannot be made on this host.
    #[error("{setting}: {detail}")]
    Refused { setting: String, detail: String },
    /// Processes that SIGKILL does not end would disturb every later trial.
    #[error("processes of a workload do not end, not even with SIGKILL: {0}")]
    Stuck(String),
    /// A kernel file could not be read.
    #[error(transparent)]
    System(#[from] SystemError),
}

/// A run that is over, with the host put back.
#[derive(Debug)]
pub struct Finished {
    /// How it ended.
    pub outcome: Result<Outcome, RunError>,
    /// What putting the host back gave.
    pub restored: Restored,
}

/// Path of this program, to start launchers from.
pub fn own_program() -> io::Result<PathBuf> {
    std::env::current_exe()
}

/// Runs the trials, writes each as it ends, and puts the host back: after success, an error, a stop signal or
/// a panic. Further stop signals do not hurry it. The last line of the recording says how it ended.
pub fn run(machine: Machine<'_>, plan: &Plan<'_>, writer: &mut Writer, progress: &mut dyn Progress) -> Finished {
    let mut runner = trial::Runner { machine, kept: None, sequence: plan.sequence, boot: plan.boot };
    let mut earlier = Restored::default();
    let trials = catch_unwind(AssertUnwindSafe(|| trials((&mut runner, &mut earlier), plan, writer, progress)));
    let mut outcome = trials.unwrap_or_else(|panic| Err(RunError::Panic(panic_text(panic.as_ref()))));
    if let Err(error) = runner.clear()
        && outcome.is_ok()
    {
        outcome = Err(error);
    }
    let restored = together(earlier, runner.machine.apply.restore());
    let end = End {
        at: jiff::Timestamp::now().to_string(),
        reason: match &outcome {
            Ok(Outcome::Complete { .. }) => "complete".to_owned(),
            Ok(Outcome::Interrupted { signal }) => format!("interrupted by {signal}"),
            Err(error) => error.to_string(),
        },
        restored: restored.restored,
        not_restored: restored.failed.clone(),
        remarks: restored.remarks.clone(),
    };
    if let Err(source) = writer.append(&Line::End(end))
        && outcome.is_ok()
    {
        outcome = Err(RunError::Recording { path: writer.path().to_owned(), source });
    }
    Finished { outcome, restored }
}

/// What putting the host back gave, over all the times it was done. What failed earlier was tried again at the end.
fn together(earlier: Restored, last: Restored) -> Restored {
    let mut remarks = earlier.remarks;
    for remark in last.remarks {
        if !remarks.contains(&remark) {
            remarks.push(remark);
        }
    }
    Restored {
        restored: earlier.restored + last.restored,
        already: earlier.already + last.already,
        failed: last.failed,
        remarks,
    }
}

/// Puts the host back between two blocks; what cannot be put back ends the run.
fn put_back(runner: &mut trial::Runner<'_>, earlier: &mut Restored) -> Result<(), RunError> {
    let mut restored = runner.machine.apply.restore();
    let failed = std::mem::take(&mut restored.failed);
    *earlier = together(std::mem::take(earlier), restored);
    if failed.is_empty() { Ok(()) } else { Err(RunError::NotPutBack(failed.join("; "))) }
}

/// The further trials of a two-stage run, once their decision is written.
fn further(writer: &mut Writer, progress: &mut dyn Progress) -> Result<Vec<PlannedTrial>, RunError> {
    let Some(decision) = progress.further() else { return Ok(Vec::new()) };
    let order = decision.order.clone();
    let written = writer.append(&Line::Decided(decision));
    written.map_err(|source| RunError::Recording { path: writer.path().to_owned(), source })?;
    Ok(order)
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "without a message".to_owned())
}

/// A trial to run, and how often this run has tried it.
struct Queued {
    planned: PlannedTrial,
    tries: u32,
}

fn trials(
    (runner, earlier): (&mut trial::Runner<'_>, &mut Restored),
    plan: &Plan<'_>,
    writer: &mut Writer,
    progress: &mut dyn Progress,
) -> Result<Outcome, RunError> {
    leftovers::adopt().map_err(|source| RunError::Io { what: "cannot become a child subreaper", source })?;
    let queued = |planned: &PlannedTrial| Queued {
        planned: *planned,
        tries: plan.tries.get(&planned.number).copied().unwrap_or(0),
    };
    let mut queue: VecDeque<Queued> = plan.trials.iter().map(queued).collect();
    let (mut invalid, mut looked, mut last_block) = (0, false, None);
    loop {
        if queue.is_empty() && !std::mem::replace(&mut looked, true) {
            queue.extend(further(writer, progress)?.iter().map(queued));
        }
        let Some(Queued { planned, tries }) = queue.pop_front() else { break };
        let attempt = plan.attempts.get(&planned.number).copied().unwrap_or(0) + tries;
        let is_new = last_block.replace(planned.block).is_some_and(|block| block != planned.block);
        if is_new && plan.between_blocks == BetweenBlocks::PutBack {
            put_back(runner, earlier)?;
        }
        progress.trial_started(&planned, attempt);
        let treatment = &plan.schedule.treatments[planned.treatment];
        let end = runner.trial(treatment, (planned, attempt), plan.settle_ms)?;
        if let Some(trial) = &end.trial {
            let line = Line::Trial(trial.clone());
            writer.append(&line).map_err(|source| RunError::Recording { path: writer.path().to_owned(), source })?;
            progress.trial_ended(trial);
        }
        if let Some(signal) = end.stopped_by {
            return Ok(Outcome::Interrupted { signal });
        }
        if let Some(names) = end.stuck {
            return Err(RunError::Stuck(names));
        }
        let faults = end.trial.map(|trial| trial.faults).unwrap_or_default();
        if faults.is_empty() {
            continue;
        }
        if tries < plan.retries {
            let end_of_block = queue.iter().position(|later| later.planned.block != planned.block);
            queue.insert(end_of_block.unwrap_or(queue.len()), Queued { planned, tries: tries + 1 });
        } else if let Some(Fault::SettingRefused { setting, detail }) = faults.into_iter().next() {
            return Err(RunError::Refused { setting, detail });
        } else {
            invalid += 1;
        }
    }
    Ok(Outcome::Complete { invalid })
}
