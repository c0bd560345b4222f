//! The host side: boots a machine for each whole plot within a block, brings what its guest records into the
//! recording, line by line as it comes, and goes on after a machine that dies.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use super::exchange::{self, ALIVE, CANNOT_WRITE, ENDED, Ended, ORDER, Order, PROGRAM, RECORDING, STARTED};
use super::tools::{Kernel, Tools};
use super::watch::{Wake, Watched};
use super::{command, console};
use crate::bind;
use crate::design::{self, Experiment, Machine};
use crate::diagnostic::Diagnostic;
use crate::host::boot_options;
use crate::recording::{
    self, Accelerator, Boot, CpuTimes, End, Fault, Follower, Header, LabFacts, Line, MaskReadings, PlannedTrial,
    Recording, RunnerCost, Trial, Writer,
};
use crate::run::{Outcome, Progress, StopSignals, scratch};
use crate::source::Sources;

/// Between two looks at what the guest recorded. It shares the host's CPUs.
const LOOK: Duration = Duration::from_millis(500);

/// Machines in a row that may die before their first trial.
const FRUITLESS: u32 = 2;

/// How long a machine may say nothing before it counts as hung.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patience {
    /// From starting it to its first sign of life, and from there to its first trial.
    pub boot: Duration,
    /// Beyond what a trial may take by its own limits, and between trials.
    pub slack: Duration,
}

impl Patience {
    /// For machines of that kind on a host that is busy otherwise.
    pub fn with(accelerator: Accelerator) -> Self {
        match accelerator {
            Accelerator::Emulated => Patience { boot: Duration::from_secs(600), slack: Duration::from_secs(180) },
            Accelerator::Kvm => Patience { boot: Duration::from_secs(120), slack: Duration::from_secs(60) },
        }
    }
}

/// The kernel a lab asks for (the newest when it names none), or what keeps it from being booted.
pub type Kernels<'a> = &'a dyn Fn(Option<&str>) -> Result<Kernel, String>;

/// What machines are made with.
pub struct Stand<'a> {
    /// The irqlab program.
    pub program: &'a Path,
    /// A folder on a disk, for the folders shared with guests.
    pub temporary: &'a Path,
    /// Folder of the recording: consoles are kept in it.
    pub folder: &'a Path,
    /// The stop signals, blocked before anything else was done.
    pub signals: &'a StopSignals,
    /// Programs that make machines.
    pub tools: &'a Tools,
    /// Where kernels come from.
    pub kernel: Kernels<'a>,
    /// What runs the guests, and why they are emulated where they are.
    pub accelerator: (Accelerator, Option<String>),
    /// How long to wait.
    pub patience: Patience,
}

/// What has to be run.
#[derive(Debug)]
pub struct Job<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its texts.
    pub sources: &'a Sources,
    /// The header of the recording.
    pub header: &'a Header,
    /// What an earlier run left in the same recording.
    pub earlier: Option<&'a Recording>,
}

/// A run that could not go on.
#[derive(Debug, thiserror::Error)]
pub enum LabError {
    /// What the guest said of its end.
    #[error("{0}")]
    Guest(String),
    /// The machine cannot do what the experiment asks for. Exit status 4.
    #[error("the lab's machine cannot do it")]
    Impossible(Vec<Diagnostic>),
    /// A file, a pipe or a process failed.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// With the errno.
        source: io::Error,
    },
    /// Machines that die before their first trial.
    #[error("the machine does not come up: {detail}{}", told(.console))]
    NeverUp {
        /// How it ended, or that it did not answer.
        detail: String,
        /// The last lines of its console.
        console: String,
    },
    /// The recording cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Recording {
        /// The file.
        path: PathBuf,
        /// With the errno.
        source: io::Error,
    },
    /// A setting was refused in every try of a trial.
    #[error("{setting}: {detail}")]
    Refused {
        /// In plain words.
        setting: String,
        /// Errno and meaning.
        detail: String,
    },
}

fn told(console: &str) -> String {
    if console.is_empty() { String::new() } else { format!("; the end of its console:\n{console}") }
}

fn failed(what: impl Into<String>) -> impl FnOnce(io::Error) -> LabError {
    let what = what.into();
    move |source| LabError::Io { what, source }
}

/// Runs the trials that are left, each in a machine booted for it, and writes the last line of the recording. Nothing
/// of a machine is left when it returns.
pub fn run(
    job: &Job<'_>,
    stand: &Stand<'_>,
    writer: &mut Writer,
    progress: &mut dyn Progress,
) -> Result<Outcome, LabError> {
    let mut session = Session::new(job, stand, writer, progress);
    let outcome = session.all();
    let end = End {
        at: jiff::Timestamp::now().to_string(),
        reason: match &outcome {
            Ok(Outcome::Complete { .. }) => "complete".to_owned(),
            Ok(Outcome::Interrupted { signal }) => format!("interrupted by {signal}"),
            Err(error) => error.to_string(),
        },
        restored: 0,
        not_restored: Vec::new(),
        remarks: Vec::new(),
    };
    let written = session.write(&Line::End(end));
    outcome.and_then(|outcome| written.map(|()| outcome))
}

/// A run over all its machines.
struct Session<'a> {
    job: &'a Job<'a>,
    stand: &'a Stand<'a>,
    writer: &'a mut Writer,
    progress: &'a mut dyn Progress,
    /// With the boots so far, and what a two-stage run decided.
    header: Header,
    /// Trials with a valid run.
    valid: BTreeSet<u32>,
    /// Lines in the recording for each trial.
    lines: BTreeMap<u32, u32>,
    /// Of those, lines that this run wrote.
    tries: BTreeMap<u32, u32>,
    sequence: u32,
    fruitless: u32,
    last_console: Option<PathBuf>,
}

/// Why a whole plot goes no further.
enum Stop {
    Error(LabError),
    Signal(String),
}

impl From<LabError> for Stop {
    fn from(error: LabError) -> Self {
        Stop::Error(error)
    }
}

/// How a boot went.
enum BootEnd {
    /// The guest had its last word.
    Word(Ended),
    /// It died or hung, in that trial where one was running.
    Died { detail: String, console: String, running: Option<(PlannedTrial, u32)> },
}

/// The folders of one boot.
struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn shared(&self) -> PathBuf {
        self.folder.path().join("shared")
    }

    fn console(&self) -> PathBuf {
        self.folder.path().join("console.log")
    }
}

impl<'a> Session<'a> {
    fn new(job: &'a Job<'a>, stand: &'a Stand<'a>, writer: &'a mut Writer, progress: &'a mut dyn Progress) -> Self {
        let header = job.earlier.map_or(job.header, |earlier| &earlier.header).clone();
        let trials = job.earlier.map_or(&[][..], |earlier| &earlier.trials);
        Session {
            job,
            stand,
            writer,
            progress,
            valid: trials.iter().filter(|trial| trial.faults.is_empty()).map(|trial| trial.number).collect(),
            lines: job.earlier.map(Recording::attempts).unwrap_or_default(),
            tries: BTreeMap::new(),
            sequence: trials.iter().map(|trial| trial.sequence + 1).max().unwrap_or(0),
            fruitless: 0,
            last_console: None,
            header,
        }
    }

    fn write(&mut self, line: &Line) -> Result<(), LabError> {
        let written = self.writer.append(line);
        written.map_err(|source| LabError::Recording { path: self.writer.path().to_owned(), source })
    }

    fn all(&mut self) -> Result<Outcome, LabError> {
        scratch::sweep(self.stand.temporary);
        let left = |session: &Self, trial: &&PlannedTrial| !session.valid.contains(&trial.number);
        let mut queue: VecDeque<PlannedTrial> =
            self.header.order.iter().filter(|trial| left(self, trial)).copied().collect();
        let mut looked = false;
        loop {
            if queue.is_empty() && !std::mem::replace(&mut looked, true) {
                queue.extend(self.further()?);
            }
            let Some(first) = queue.front().copied() else { break };
            let mut plot: Vec<PlannedTrial> = Vec::new();
            while queue.front().is_some_and(|next| next.boot == first.boot) {
                plot.extend(queue.pop_front());
            }
            match self.plot(plot) {
                Ok(()) => {}
                Err(Stop::Signal(signal)) => return Ok(Outcome::Interrupted { signal }),
                Err(Stop::Error(error)) => return Err(error),
            }
        }
        let invalid = self.header.order.iter().filter(|trial| trial.block > 0 && left(self, trial)).count();
        Ok(Outcome::Complete { invalid: invalid as u32 })
    }

    fn further(&mut self) -> Result<Vec<PlannedTrial>, LabError> {
        let Some(decision) = self.progress.further() else { return Ok(Vec::new()) };
        let order = decision.order.clone();
        self.write(&Line::Decided(decision))?;
        self.header.order.extend(order.iter().copied());
        Ok(order)
    }

    /// Boots machines until every trial of a whole plot is valid or was tried often enough.
    fn plot(&mut self, mut left: Vec<PlannedTrial>) -> Result<(), Stop> {
        let boot = left[0].boot;
        let all = self.header.order.iter().filter(|trial| trial.boot == boot);
        let warmup: Vec<PlannedTrial> = all.filter(|trial| trial.block == 0).copied().collect();
        loop {
            let retries = self.job.experiment.protocol.retries;
            let tried = |trial: &PlannedTrial| self.tries.get(&trial.number).copied().unwrap_or(0);
            left.retain(|trial| trial.block > 0 && !self.valid.contains(&trial.number) && tried(trial) <= retries);
            if left.is_empty() {
                return Ok(());
            }
            // Every machine is cold when it comes up, also one that goes on where another died.
            let warm = |cell: &&PlannedTrial| left.iter().any(|trial| trial.treatment == cell.treatment);
            let trials: Vec<PlannedTrial> = warmup.iter().filter(warm).chain(&left).copied().collect();
            match self.boot(&trials)? {
                BootEnd::Word(Ended::Complete) => return Ok(()),
                BootEnd::Word(Ended::Stuck(_)) => {}
                BootEnd::Word(Ended::Failed(detail)) => return Err(LabError::Guest(detail).into()),
                BootEnd::Word(Ended::Impossible(problems)) => {
                    return Err(LabError::Impossible(problems.into_iter().map(Into::into).collect()).into());
                }
                BootEnd::Word(Ended::Refused { setting, detail }) => {
                    return Err(LabError::Refused { setting, detail }.into());
                }
                BootEnd::Died { detail, console, running } => {
                    if let Some((planned, attempt)) = running {
                        self.record(failed_trial(planned, attempt, Fault::MachineFailed { detail, console }))?;
                        // The others first: it may well be this one that no machine survives.
                        if let Some(index) = left.iter().position(|trial| trial.number == planned.number) {
                            let again = left.remove(index);
                            left.push(again);
                        }
                    } else if self.fruitless >= FRUITLESS {
                        return Err(LabError::NeverUp { detail, console }.into());
                    }
                }
            }
        }
    }

    /// Boots one machine and follows its guest to the end.
    fn boot(&mut self, trials: &[PlannedTrial]) -> Result<BootEnd, Stop> {
        let number = self.header.boots.iter().map(|boot| boot.number).max().unwrap_or(0) + 1;
        let treatment = &self.job.experiment.treatments[trials[0].treatment];
        let place = self.place(trials)?;
        let shared = place.shared();
        let command = format!("{0}/{PROGRAM} guest {0}", shell_words::quote(&shared.display().to_string()));
        let (words, asked) = self.words(treatment, (&shared, &place.console()), &command)?;
        let began = std::time::SystemTime::now();
        let watched = Watched::start(self.stand.program, &words, &self.stand.tools.path)
            .map_err(failed("cannot start the lab's machine"))?;
        let mut visit = Visit {
            number,
            trials,
            options: asked,
            lab: LabFacts {
                accelerator: self.stand.accelerator.0,
                reason: self.stand.accelerator.1.clone(),
                qemu: self.stand.tools.qemu_version.clone(),
                vng: self.stand.tools.vng_version.clone(),
                command: self.public_words(&words, (&shared, &place.console())),
                boot_ms: 0,
                console: console_file(number),
            },
            began,
            shared: &shared,
            follower: Follower::new(&shared.join(RECORDING)),
            marks: 0,
            up: false,
            running: None,
            since: Instant::now(),
            limit: self.stand.patience.boot,
        };
        self.fruitless += 1;
        let watching = self.watch(&mut visit, watched);
        let text = console::tail(&place.console()).map_err(failed("cannot read the console"))?;
        let (detail, status, said) = match watching {
            Ok(Watching::Gone { status, said }) => (None, status, said),
            Ok(Watching::Hung { detail, status, said }) => (Some(detail), status, said),
            Ok(Watching::Stopped(signal)) => {
                if let Some((planned, attempt)) = visit.running {
                    self.record(failed_trial(planned, attempt, Fault::Interrupted { signal: signal.clone() }))?;
                }
                return Err(Stop::Signal(signal));
            }
            Err(error) => return Err(error.into()),
        };
        let word: Option<Ended> = exchange::read(&shared.join(ENDED)).ok().flatten();
        if let (Some(word), None) = (word, &detail) {
            self.keep_console(number, &text, Keep::AsTheLast)?;
            return Ok(BootEnd::Word(word));
        }
        self.keep_console(number, &text, Keep::Always)?;
        let said = console::last_lines(&console::plain(&said));
        if status.code() == Some(i32::from(CANNOT_WRITE)) {
            return Err(LabError::Guest(said).into());
        }
        let detail = detail.unwrap_or_else(|| how_it_ended(status, &said));
        Ok(BootEnd::Died { detail, console: console::last_lines(&text), running: visit.running })
    }

    /// The words that boot the machine of a treatment, and the options of the kernel command line asked for.
    fn words(
        &self,
        treatment: &design::Treatment,
        (shared, console): (&Path, &Path),
        command: &str,
    ) -> Result<(Vec<String>, Vec<String>), LabError> {
        let machine = machine(treatment)?;
        let kernel = (self.stand.kernel)(machine.kernel.as_deref()).map_err(LabError::Guest)?;
        let options = treatment.boot_options();
        let accelerator = self.stand.accelerator.0;
        let boot = command::Boot { machine, options: &options, kernel: &kernel, accelerator, shared, console, command };
        let asked = machine.boot.iter().cloned().chain(options.iter().map(|option| (*option).to_owned()));
        Ok((command::words(self.stand.tools, &boot), asked.collect()))
    }

    /// A command without what is only true of this run or this host.
    fn public_words(&self, words: &[String], (shared, console): (&Path, &Path)) -> Vec<String> {
        let Tools { qemu, vng, .. } = self.stand.tools;
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let places =
            [(shared, "SHARED".to_owned()), (console, "CONSOLE".to_owned()), (vng, name(vng)), (qemu, name(qemu))];
        let public = |word: &String| {
            places.iter().fold(word.clone(), |word, (path, name)| word.replace(&path.display().to_string(), name))
        };
        words.iter().map(public).collect()
    }

    /// The folders of a boot with everything in them that the guest needs.
    fn place(&self, trials: &[PlannedTrial]) -> Result<Place, LabError> {
        let at = self.stand.temporary;
        let cannot = || format!("cannot make a folder to share with the lab's machine in {}", at.display());
        let place = Place { folder: scratch::folder(at).map_err(failed(cannot()))? };
        let shared = place.shared();
        std::fs::create_dir(&shared).map_err(failed(cannot()))?;
        std::fs::copy(self.stand.program, shared.join(PROGRAM)).map_err(failed(cannot()))?;
        exchange::write(&shared.join(ORDER), &self.order(trials)).map_err(failed(cannot()))?;
        for image in command::images(machine(&self.job.experiment.treatments[trials[0].treatment])?) {
            let file = File::create(shared.join(&image.name)).and_then(|file| file.set_len(image.size_bytes));
            file.map_err(failed(cannot()))?;
        }
        Ok(place)
    }

    fn order(&self, trials: &[PlannedTrial]) -> Order {
        let experiment = self.job.experiment;
        let count = |counts: &BTreeMap<u32, u32>, number: u32| counts.get(&number).copied().unwrap_or(0);
        // A warm-up trial that is run again is not one that failed.
        let tries = |trial: &PlannedTrial| if trial.block == 0 { 0 } else { count(&self.tries, trial.number) };
        let given = experiment.params.iter().filter(|param| param.replaced);
        Order {
            sources: self.job.sources.iter().map(|source| (source.path.clone(), source.text.clone())).collect(),
            experiment: experiment.name.clone(),
            params: given.map(|param| (param.name.clone(), param.value.clone())).collect(),
            seed: experiment.protocol.seed,
            directory: std::env::current_dir().unwrap_or_default(),
            trials: trials.to_vec(),
            attempts: trials
                .iter()
                .map(|trial| (trial.number, count(&self.lines, trial.number).saturating_sub(tries(trial))))
                .collect(),
            tries: trials.iter().map(|trial| (trial.number, tries(trial))).collect(),
        }
    }

    /// Sleeps and looks until the machine is gone, hangs or has to go.
    fn watch(&mut self, visit: &mut Visit<'_>, mut watched: Watched) -> Result<Watching, LabError> {
        let cannot = "cannot wait for the lab's machine";
        loop {
            let wake = watched.sleep(self.stand.signals, LOOK).map_err(failed(cannot))?;
            if wake == Wake::Gone {
                let (status, said) = watched.end().map_err(failed("the lab's machine"))?;
                self.look(visit)?;
                return Ok(Watching::Gone { status, said });
            }
            self.look(visit)?;
            if visit.shared.join(ENDED).exists() {
                // All is recorded; what it would do until it is off is of no use to anybody.
                let (status, said) = watched.end().map_err(failed("the lab's machine"))?;
                self.look(visit)?;
                return Ok(Watching::Gone { status, said });
            }
            if let Wake::Signal(signal) = wake {
                watched.end().map_err(failed("the lab's machine"))?;
                self.look(visit)?;
                return Ok(Watching::Stopped(signal));
            }
            if visit.since.elapsed() > visit.limit {
                let detail = visit.silence();
                let (status, said) = watched.end().map_err(failed("the lab's machine"))?;
                return Ok(Watching::Hung { detail, status, said });
            }
        }
    }

    /// Takes over what the guest recorded since the last look.
    fn look(&mut self, visit: &mut Visit<'_>) -> Result<(), LabError> {
        let patience = self.stand.patience;
        if !visit.up && visit.shared.join(ALIVE).exists() {
            visit.up = true;
            visit.alive(patience.boot);
        }
        for (number, attempt) in visit.fresh_marks().map_err(failed("cannot read what the guest began"))? {
            let Some(planned) = visit.trials.iter().find(|trial| trial.number == number).copied() else { continue };
            self.fruitless = 0;
            self.progress.trial_started(&planned, attempt);
            visit.running = Some((planned, attempt));
            visit.alive(
                longest(self.job.experiment, &self.job.experiment.treatments[planned.treatment]) + patience.slack,
            );
        }
        let lines = visit.follower.more().map_err(|error| LabError::Guest(error.to_string()))?;
        for line in lines {
            match line {
                Line::Header(guest) => {
                    let boot = visit.boot(guest);
                    recording::file::check_boot(&boot, &self.header).map_err(LabError::Guest)?;
                    self.write(&Line::Boot(boot.clone()))?;
                    self.header.boots.push(boot.clone());
                    self.progress.booted(&boot);
                    visit.alive(patience.slack);
                }
                Line::Trial(trial) => {
                    let planned = visit.trials.iter().find(|planned| planned.number == trial.number);
                    let treatment = planned.map_or(trial.treatment, |planned| planned.treatment);
                    if visit.running.is_some_and(|(running, _)| running.number == trial.number) {
                        visit.running = None;
                        visit.alive(patience.slack);
                    }
                    self.record(Trial { treatment, ..trial })?;
                }
                Line::Boot(_) | Line::BootAsked(_) | Line::Decided(_) | Line::End(_) | Line::Resumed { .. } => {}
            }
        }
        Ok(())
    }

    /// Writes a trial of the last boot under the numbers of the whole run.
    fn record(&mut self, trial: Trial) -> Result<(), LabError> {
        let boot = self.header.boots.last().map(|boot| boot.number);
        let trial = Trial { boot, sequence: self.sequence, ..trial };
        recording::file::check_trial(&trial, &self.header).map_err(LabError::Guest)?;
        self.write(&Line::Trial(trial.clone()))?;
        self.sequence += 1;
        *self.lines.entry(trial.number).or_default() += 1;
        *self.tries.entry(trial.number).or_default() += 1;
        if trial.faults.is_empty() {
            self.valid.insert(trial.number);
        }
        self.progress.trial_ended(&trial);
        Ok(())
    }

    /// Keeps the console of a boot beside the recording.
    fn keep_console(&mut self, number: u32, text: &str, keep: Keep) -> Result<(), LabError> {
        let folder = self.stand.folder.join("console");
        let path = self.stand.folder.join(console_file(number));
        let cannot = || format!("cannot write {}", path.display());
        std::fs::create_dir_all(&folder).map_err(failed(cannot()))?;
        std::fs::write(&path, text).map_err(failed(cannot()))?;
        if keep == Keep::AsTheLast
            && let Some(before) = self.last_console.replace(path)
        {
            let _ = std::fs::remove_file(before);
        }
        Ok(())
    }
}

fn machine(treatment: &design::Treatment) -> Result<&Machine, LabError> {
    let missing = || LabError::Guest(format!("`{}` has no machine", treatment.name));
    treatment.machine.as_ref().ok_or_else(missing)
}

/// For how long a console is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Keep {
    Always,
    /// Until another machine has done its work.
    AsTheLast,
}

/// How watching a machine ended. It is gone in each case.
enum Watching {
    Gone { status: ExitStatus, said: String },
    Hung { detail: String, status: ExitStatus, said: String },
    Stopped(String),
}

/// One boot as it is followed.
struct Visit<'a> {
    number: u32,
    trials: &'a [PlannedTrial],
    /// Options of the kernel command line that were asked for.
    options: Vec<String>,
    /// All but the time it takes to come up.
    lab: LabFacts,
    began: std::time::SystemTime,
    shared: &'a Path,
    follower: Follower,
    /// Bytes of marks that were read.
    marks: usize,
    up: bool,
    running: Option<(PlannedTrial, u32)>,
    /// Its last sign of life, and how long it may take to the next.
    since: Instant,
    limit: Duration,
}

impl Visit<'_> {
    fn alive(&mut self, limit: Duration) {
        (self.since, self.limit) = (Instant::now(), limit);
    }

    fn silence(&self) -> String {
        let seconds = self.limit.as_secs();
        match &self.running {
            Some(_) => format!("the machine said nothing for {seconds} s, longer than this trial may take"),
            None if self.up => format!("the machine was up and said nothing for {seconds} s"),
            None => format!("the machine did not come up in {seconds} s"),
        }
    }

    /// `NUMBER ATTEMPT` of complete lines that are new.
    fn fresh_marks(&mut self) -> io::Result<Vec<(u32, u32)>> {
        let bytes = match std::fs::read(self.shared.join(STARTED)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let fresh = bytes.get(self.marks..).unwrap_or_default();
        let whole = fresh.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.marks += whole;
        let text = String::from_utf8_lossy(&fresh[..whole]);
        let mark = |line: &str| {
            let (number, attempt) = line.split_once(' ')?;
            Some((number.parse().ok()?, attempt.parse().ok()?))
        };
        Ok(text.lines().filter_map(mark).collect())
    }

    fn boot(&self, guest: Header) -> Boot {
        let alive = std::fs::metadata(self.shared.join(ALIVE)).and_then(|facts| facts.modified());
        let took = alive.ok().and_then(|at| at.duration_since(self.began).ok()).unwrap_or_default();
        let mut indices: Vec<usize> = self.trials.iter().map(|trial| trial.treatment).collect();
        indices.sort_unstable();
        indices.dedup();
        Boot {
            number: self.number,
            planned: self.trials.first().and_then(|trial| trial.boot).unwrap_or(0),
            at: guest.started_at,
            boot_id: None,
            lab: Some(LabFacts { boot_ms: took.as_millis() as u64, ..self.lab.clone() }),
            options: self.options.iter().map(|option| boot_options::evidence(&guest.host, option)).collect(),
            host: guest.host,
            treatments: indices.into_iter().zip(guest.design.treatments).collect(),
        }
    }
}

fn console_file(number: u32) -> String {
    format!("console/boot-{number:02}.log")
}

fn how_it_ended(status: ExitStatus, said: &str) -> String {
    let said = if said.is_empty() { String::new() } else { format!(": {said}") };
    format!("the machine ended before its trials did ({status}){said}")
}

/// What a trial may take by its own limits.
fn longest(experiment: &Experiment, treatment: &design::Treatment) -> Duration {
    let protocol = &experiment.protocol;
    let limit = |process: &design::Process| process.timeout_ms.unwrap_or(protocol.timeout_ms);
    let ready: u64 = treatment.backgrounds.iter().map(limit).fold(0, u64::saturating_add);
    let work = treatment.workloads.iter().map(limit).max().unwrap_or(0);
    let settle_ms = protocol.settle_ms.max(bind::settle_ms(treatment));
    Duration::from_millis(settle_ms.saturating_add(ready).saturating_add(work))
}

fn failed_trial(planned: PlannedTrial, attempt: u32, fault: Fault) -> Trial {
    Trial {
        number: planned.number,
        attempt,
        sequence: 0,
        block: planned.block,
        treatment: planned.treatment,
        boot: None,
        started_at: jiff::Timestamp::now().to_string(),
        duration_ns: 0,
        faults: vec![fault],
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
