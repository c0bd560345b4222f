//! `irqlab run`: experiments from file to report. Everything that can be known to fail is known before anything is
//! touched.

use std::path::{Path, PathBuf};

use super::progress::{Lines, TwoStage};
use super::select::{self, Selected};
use super::{Exit, Selection, print, report, restore};
use crate::analysis::{self, ExpectationVerdict, Findings};
use crate::bind::{self, Caller, ChangeKind, Schedule};
use crate::design::Order;
use crate::diagnostic::Diagnostic;
use crate::host;
use crate::host::files::Files;
use crate::recording::{self, HostFacts, Line, Recording, Writer};
use crate::run::{self as runner, BetweenBlocks, Machine, Outcome, Plan, StopSignals};
use crate::settings::{self, Live, Settings, System};

mod lab;
mod reboots;

/// Where experiments are run.
pub struct Host<'a> {
    /// Its files, and the only way to change them.
    pub system: &'a (dyn System + Sync),
    /// Where the journal lives.
    pub state_dir: &'a Path,
    /// The irqlab program, which starts workloads.
    pub program: &'a Path,
    /// A folder for the output of workloads.
    pub scratch: &'a Path,
    /// The stop signals, blocked before anything else made a thread.
    pub signals: &'a StopSignals,
}

impl Host<'_> {
    /// The host as the trial loop takes it.
    fn machine<'a>(&'a self, settings: &'a mut Settings<'_>) -> Machine<'a> {
        runner::scratch::sweep(self.scratch);
        let Host { system, program, scratch, signals, .. } = *self;
        Machine { files: system, apply: settings, system, signals, program, scratch }
    }
}

/// Whether to begin anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// A run of its own.
    Fresh,
    /// Go on with what an interrupted run left.
    Resume,
}

/// What a run writes into until it is complete: the recording beside a committed report stays as it is until then.
const PARTIAL: &str = "recording.partial.jsonl";

/// A complete recording.
const COMPLETE: &str = "recording.jsonl";

/// An experiment that can be run here.
struct Ready<'a> {
    selected: &'a Selected,
    schedule: Schedule,
    facts: &'a HostFacts,
    template: Option<String>,
}

/// Runs experiments on the running host.
pub(super) fn run(selection: &Selection, out: &Path, start: Start) -> Exit {
    // Before anything else makes a thread: from here on no signal ends the program between a change and its undoing.
    let signals = match StopSignals::block() {
        Ok(signals) => signals,
        Err(error) => {
            print::error(format!("cannot block signals: {error}"));
            return Exit::Run;
        }
    };
    let program = match runner::own_program() {
        Ok(program) => program,
        Err(error) => {
            print::error(format!("cannot find the irqlab program: {error}"));
            return Exit::Run;
        }
    };
    let (system, state_dir, scratch) = (Live::new(), settings::state_dir(), runner::scratch::place());
    let host = Host { system: &system, state_dir: &state_dir, program: &program, scratch: &scratch, signals: &signals };
    on(&host, selection, out, start)
}

/// Runs experiments on a host.
pub fn on(host: &Host<'_>, selection: &Selection, out: &Path, start: Start) -> Exit {
    let selected = match select::select(selection) {
        Ok(selected) => selected,
        Err(exit) => return exit,
    };
    let files: &dyn Files = host.system;
    let facts = std::cell::LazyCell::new(|| host::read_facts(files));
    let mut exit = Exit::Fine;
    let mut ran = false;
    for selected in &selected {
        if selected.experiment.is_published() {
            let this = published(selected, out);
            exit = exit.and(this);
            ran |= this <= Exit::Failed;
            continue;
        }
        let attempt = if selected.experiment.lab.is_some() {
            lab::run(host, (selected, &facts), out, start)
        } else if selected.experiment.needs_boots() {
            reboots::run(host, (selected, &facts), out, start)
        } else {
            ready((selected, host), &facts, &|_| true).map(|ready| execute(&ready, out, start, host))
        };
        let (this, end) = attempt.unwrap_or_else(|refused| {
            print::talk(&format!("{}: not run", selected.experiment.name));
            (refused, Continue::Go)
        });
        exit = exit.and(this);
        ran |= this <= Exit::Failed;
        if end == Continue::Stop {
            return exit;
        }
    }
    if ran { exit.and(report::index(out, report::Mode::Write)) } else { exit }
}

/// Writes the recording and the report of published numbers. Nothing is run, read of the host or locked.
fn published(selected: &Selected, out: &Path) -> Exit {
    let failed = |message: String| {
        print::error(message);
        Exit::Run
    };
    let template = match template(selected) {
        Ok(template) => template,
        Err(exit) => return exit,
    };
    let (mut design, rows) = bind::published_record(&selected.experiment, &selected.sources);
    design.template_text = template;
    let header = recording::Header { published: rows, ..header_of(selected, design) };
    let folder = match report_folder(out, &selected.experiment.name) {
        Ok(folder) => folder,
        Err(message) => return failed(message),
    };
    let recording = folder.join(COMPLETE);
    match recording::write_whole(&recording, &header) {
        Ok(()) => rendered(&recording).map_or_else(|exit| exit, |(exit, ..)| exit),
        Err(error) => failed(format!("cannot write {}: {error}", recording.display())),
    }
}

/// The folder of an experiment's report, made where it is not there; never one that holds somebody's own README.md.
fn report_folder(out: &Path, name: &str) -> Result<PathBuf, String> {
    let folder = out.join(name);
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
    if folder.join("README.md").exists() && !folder.join(COMPLETE).exists() {
        return Err(format!(
            "{} holds a README.md without a recording, which is somebody's own; choose another --out",
            folder.display()
        ));
    }
    Ok(folder)
}

/// Whether the next experiment may be run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Continue {
    Go,
    Stop,
}

/// Prints why something is not run.
fn refuse(selected: &Selected, diagnostics: &[Diagnostic]) -> Result<(), Exit> {
    print::diagnostics(diagnostics, &selected.sources);
    if diagnostics.is_empty() { Ok(()) } else { Err(Exit::Host) }
}

/// Holds everything an experiment asks for against this host and this version; of its treatments those that are served.
fn ready<'a>(
    (selected, host): (&'a Selected, &Host<'_>),
    facts: &'a HostFacts,
    is_served: &dyn Fn(usize) -> bool,
) -> Result<Ready<'a>, Exit> {
    let experiment = &selected.experiment;
    let refuse = |diagnostics: &[Diagnostic]| refuse(selected, diagnostics);
    refuse(&bind::refusals(experiment))?;
    let caller = Caller { root: host.system.is_root(), tools: select::tools(experiment) };
    refuse(&bind::unmet(experiment, facts, &caller))?;
    let schedule = bind::bind_part(experiment, facts, is_served).or_else(|diagnostics| {
        refuse(&diagnostics)?;
        Err(Exit::Host)
    })?;
    let mut changes = schedule.treatments.iter().flat_map(|treatment| &treatment.changes).peekable();
    if changes.peek().is_some() && !caller.root {
        print::error(format!(
            "`{}` changes settings of this host, and only root may: run it with sudo",
            experiment.name
        ));
        return Err(Exit::Host);
    }
    let routes = changes
        .clone()
        .any(|change| matches!(change.kind, ChangeKind::Affinity { .. } | ChangeKind::DefaultAffinity { .. }));
    if routes && !facts.irq_writable {
        print::error(
            "/proc/irq cannot be written here, as in most containers: run it on the host itself, or in a container \
             with a writable /proc",
        );
        return Err(Exit::Host);
    }
    let mut missing: Vec<Diagnostic> = Vec::new();
    for change in changes {
        if let Err(error) = settings::current(change, host.system) {
            let message = format!("{}: {error}", settings::describe(change));
            let help = "take it out, or run this on a host that has it".to_owned();
            let diagnostic = change.span.error(crate::diagnostic::Kind::HostCannot { message, help });
            if !missing.contains(&diagnostic) {
                missing.push(diagnostic);
            }
        }
    }
    refuse(&missing)?;
    Ok(Ready { selected, schedule, facts, template: template(selected)? })
}

/// The text of the experiment's own template, read now, so that the recording carries it.
fn template(selected: &Selected) -> Result<Option<String>, Exit> {
    let Some(template) = &selected.experiment.report.template else { return Ok(None) };
    let path = selected.path.parent().unwrap_or(Path::new(".")).join(template);
    std::fs::read_to_string(&path).map(Some).map_err(|error| {
        print::error(format!("cannot read the report template {}: {error}", path.display()));
        Exit::File
    })
}

fn header(ready: &Ready<'_>) -> recording::Header {
    let mut design = bind::design_record(&ready.selected.experiment, &ready.schedule, &ready.selected.sources);
    design.template_text.clone_from(&ready.template);
    recording::Header {
        order: ready.schedule.order.clone(),
        host: ready.facts.clone(),
        ..header_of(ready.selected, design)
    }
}

/// A header without order, host and published numbers.
fn header_of(selected: &Selected, design: recording::Design) -> recording::Header {
    let sources = selected.sources.iter();
    recording::Header {
        format: recording::FORMAT,
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        started_at: jiff::Timestamp::now().to_string(),
        sources: sources.map(|source| (source.path.display().to_string(), source.text.clone())).collect(),
        design,
        order: Vec::new(),
        host: HostFacts::default(),
        published: Vec::new(),
        boots: Vec::new(),
    }
}

fn execute(ready: &Ready<'_>, out: &Path, start: Start, host: &Host<'_>) -> (Exit, Continue) {
    let failed = |message: String| {
        print::error(message);
        (Exit::Run, Continue::Stop)
    };
    let experiment = &ready.selected.experiment;
    // The lock comes first: a second runner must not even touch the recording of the first.
    let mut settings = match Settings::open(host.system, host.state_dir, &experiment.name) {
        Ok(settings) => settings,
        Err(error) => return failed(error.to_string()),
    };
    let folder = match report_folder(out, &experiment.name) {
        Ok(folder) => folder,
        Err(message) => return failed(message),
    };
    let partial = folder.join(PARTIAL);
    let protocol = &experiment.protocol;
    let header = header(ready);
    let (mut writer, earlier) = match begin(&partial, &header, start) {
        Ok(begun) => begun,
        Err(exit) => return (exit, Continue::Stop),
    };
    if earlier.is_some()
        && let Err(error) = resumed(&mut writer, &header)
    {
        return failed(error);
    }
    let mut plan = Plan::new(&ready.schedule, (protocol.settle_ms, protocol.retries));
    if let Some(recording) = &earlier {
        plan = plan.resume(recording);
    }
    if protocol.order == Order::Blocks && experiment.factors.iter().any(|factor| factor.hard_to_change) {
        plan.between_blocks = BetweenBlocks::PutBack;
    }
    let machine = host.machine(&mut settings);
    let mut lines = Lines::new(&header.design, plan.trials.len());
    let decided = |recording: &Recording| {
        recording.header.design.protocol.until.as_ref().is_some_and(|until| until.decided.is_some())
    };
    let finished = if header.design.protocol.until.is_none() || earlier.as_ref().is_some_and(decided) {
        runner::run(machine, &plan, &mut writer, &mut lines)
    } else {
        let trials = earlier.map(|recording| recording.trials).unwrap_or_default();
        let mut two_stage = TwoStage::new(lines, (experiment, &header), trials);
        runner::run(machine, &plan, &mut writer, &mut two_stage)
    };
    let put_back = restore::outcome(&finished.restored);
    match finished.outcome {
        Ok(Outcome::Complete { invalid }) => {
            let exit = complete(&partial, &folder.join(COMPLETE), invalid);
            (exit.and(put_back), if put_back == Exit::Fine { Continue::Go } else { Continue::Stop })
        }
        Ok(Outcome::Interrupted { signal }) => {
            print::error(interrupted(&signal, &partial, ready.selected));
            (Exit::Run, Continue::Stop)
        }
        Err(error) => {
            print::error(format!("{}: {error}", experiment.name));
            print::talk(&format!("what was recorded is in {}", partial.display()));
            (Exit::Run, Continue::Stop)
        }
    }
}

/// Creates the recording, or takes up the one that is there and gives it.
fn begin(partial: &Path, header: &recording::Header, start: Start) -> Result<(Writer, Option<Recording>), Exit> {
    let run = |message: String| {
        print::error(message);
        Exit::Run
    };
    if start == Start::Fresh {
        let writer = Writer::create(partial, header).map_err(|error| {
            if error.kind() == std::io::ErrorKind::AlreadyExists {
                print::error(format!(
                    "{} is the recording of an unfinished run: go on with --resume, or remove it",
                    partial.display()
                ));
                Exit::Usage
            } else {
                run(format!("cannot write {}: {error}", partial.display()))
            }
        })?;
        return Ok((writer, None));
    }
    if !partial.exists() {
        print::error(format!("there is no unfinished run to go on with: {} does not exist", partial.display()));
        return Err(Exit::Usage);
    }
    let recorded = recording::read(partial).map_err(|error| run(error.to_string()))?;
    for note in &recorded.notes {
        print::talk(&format!("note: {}: {note}", partial.display()));
    }
    let differences = recorded.differences(header);
    if !differences.is_empty() {
        for difference in differences {
            print::error(format!("not as it was recorded: {difference}"));
        }
        print::talk(
            "a resumed run must be the same experiment on the same settings; begin a new one elsewhere with --out",
        );
        return Err(Exit::Usage);
    }
    let writer = Writer::resume(partial, &recorded)
        .map_err(|error| run(format!("cannot write {}: {error}", partial.display())))?;
    Ok((writer, Some(recorded)))
}

/// Adds a line.
fn append(writer: &mut Writer, line: &Line) -> Result<(), String> {
    writer.append(line).map_err(|error| format!("cannot write {}: {error}", writer.path().display()))
}

/// Says in the recording that the run goes on.
fn resumed(writer: &mut Writer, header: &recording::Header) -> Result<(), String> {
    append(writer, &Line::Resumed { at: header.started_at.clone(), host: Box::new(header.host.clone()) })
}

/// What to do after a stop signal.
fn interrupted(signal: &str, partial: &Path, selected: &Selected) -> String {
    format!(
        "interrupted by {signal}; what was recorded is in {}: `irqlab run {} --resume` goes on",
        partial.display(),
        selected.path.display()
    )
}

/// Renames the recording, writes its report and says what came out.
fn complete(partial: &Path, recording: &Path, invalid: u32) -> Exit {
    if let Err(error) = std::fs::rename(partial, recording) {
        print::error(format!("cannot rename {}: {error}", partial.display()));
        return Exit::Run;
    }
    let (exit, recorded, findings) = match rendered(recording) {
        Ok(rendered) => rendered,
        Err(exit) => return exit,
    };
    if findings.counts.valid == 0 {
        print::error("no trial was valid; the report says why");
        return exit.and(Exit::Run);
    }
    if invalid > 0 {
        let have = if invalid == 1 { "trial has" } else { "trials have" };
        print::talk(&format!("note: {invalid} planned {have} no valid run; the report says why"));
    }
    let valueless = findings.metrics.iter().flat_map(|metric| &metric.cells).find(|cell| cell.values.is_empty());
    if let Some(cell) = valueless {
        let name = &recorded.header.design.treatments[cell.treatment].name;
        print::error(format!("`{name}` has no value to compare; the report says why"));
        return exit.and(Exit::Run);
    }
    exit
}

/// Analyses a complete recording, writes its report, and names the expectations that failed.
fn rendered(recording: &Path) -> Result<(Exit, Recording, Findings), Exit> {
    let recorded: Recording = recording::read(recording).map_err(|error| {
        print::error(error);
        Exit::Run
    })?;
    let findings = analysis::analyse(&recorded.header, &recorded.trials, &recorded.resumed, recorded.end.as_ref());
    let mut exit = report::one(recording, &recorded, &findings, report::Mode::Write);
    for expectation in &findings.expectations {
        if expectation.verdict == ExpectationVerdict::Failed {
            let declared = &recorded.header.design.expectations[expectation.expectation];
            print::error(format!("{}: the expectation does not hold: {}", declared.place, declared.text));
            exit = exit.and(Exit::Failed);
        }
    }
    Ok((exit, recorded, findings))
}
