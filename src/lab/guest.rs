//! The guest side, the hidden subcommand `irqlab guest ORDER`: sets its machine up, binds the experiment to it and runs
//! its trials with the ordinary runner. Whatever it has to say goes into the folder it shares with the host.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::exchange::{self, ALIVE, CANNOT_WRITE, ENDED, Ended, ORDER, Order, Problem, RECORDING, STARTED};
use super::setup;
use crate::bind::{self, Caller, Schedule};
use crate::check::{self, Options};
use crate::design::Experiment;
use crate::diagnostic::{Diagnostic, Kind};
use crate::host::{self, files::Files, files::Root};
use crate::recording::{self, HostFacts, PlannedTrial, Trial, Writer};
use crate::run::{self as runner, Outcome, Plan, Progress, RunError, StopSignals};
use crate::settings::{self, Live, Settings};
use crate::source::Sources;

/// Where the runner keeps its journal: in the guest's own memory, gone with it. The host's is not to be seen.
const STATE: &str = "/run/irqlab";

/// Runs the trials of the order in the folder `shared`. Gives the exit status.
pub fn guest(shared: &Path) -> u8 {
    // Setting a machine up makes file systems on its disks: never on one that is not made for it.
    if !setup::is_lab() {
        eprintln!("irqlab guest: this is not a lab's machine");
        return 1;
    }
    // The runner looks at the time of this file.
    if let Err(error) = File::create(shared.join(ALIVE)) {
        eprintln!("irqlab guest: cannot write to the shared folder: {error}");
        return CANNOT_WRITE;
    }
    let ended = serve(shared).unwrap_or_else(|ended| ended);
    match exchange::write(&shared.join(ENDED), &ended) {
        Ok(()) => 0,
        Err(error) => {
            eprintln!("irqlab guest: cannot write to the shared folder: {error}; it was to say: {ended:?}");
            CANNOT_WRITE
        }
    }
}

fn failed(what: &str) -> impl Fn(std::io::Error) -> Ended {
    move |error| Ended::Failed(format!("{what}: {error}"))
}

fn serve(shared: &Path) -> Result<Ended, Ended> {
    let root = &Root::new("/");
    let signals = StopSignals::block().map_err(failed("cannot block signals"))?;
    let order: Option<Order> = exchange::read(&shared.join(ORDER)).map_err(failed("cannot read the order"))?;
    let order = order.ok_or_else(|| Ended::Failed("there is no order".to_owned()))?;
    // A folder that this guest does not see is no reason not to run what does not need it.
    let _ = std::env::set_current_dir(&order.directory);
    let part = Part::of(&order)?;
    part.set_up()?;
    let facts = host::read_facts(root);
    let schedule =
        part.bind(&facts, root).map_err(|found| Ended::Impossible(found.iter().map(Into::into).collect()))?;
    let mut writer = Writer::create(&shared.join(RECORDING), &part.header(&schedule, facts))
        .map_err(failed("cannot write the recording"))?;
    let protocol = &part.experiment.protocol;
    let plan = Plan {
        trials: schedule.order.clone(),
        attempts: order.attempts.clone(),
        tries: order.tries.clone(),
        ..Plan::new(&schedule, (protocol.settle_ms, protocol.retries))
    };
    let live = Live::new();
    let mut settings = Settings::open(&live, Path::new(STATE), &part.experiment.name)
        .map_err(|error| Ended::Failed(error.to_string()))?;
    let program = runner::own_program().map_err(failed("cannot find the irqlab program"))?;
    let scratch = runner::scratch::place();
    let machine = runner::Machine {
        files: root,
        apply: &mut settings,
        system: &live,
        signals: &signals,
        program: &program,
        scratch: &scratch,
    };
    let mut marks = Marks { path: shared.join(STARTED) };
    Ok(match runner::run(machine, &plan, &mut writer, &mut marks).outcome {
        Ok(Outcome::Complete { .. }) => Ended::Complete,
        Ok(Outcome::Interrupted { signal }) => Ended::Failed(format!("interrupted by {signal}")),
        Err(RunError::Refused { setting, detail }) => Ended::Refused { setting, detail },
        Err(RunError::Stuck(names)) => Ended::Stuck(names),
        Err(error) => Ended::Failed(error.to_string()),
    })
}

/// The part of an experiment that one boot serves: its treatments under indices of their own.
struct Part {
    experiment: Experiment,
    sources: Sources,
    order: Vec<PlannedTrial>,
}

impl Part {
    fn of(order: &Order) -> Result<Self, Ended> {
        let mut texts = Sources::default();
        for (path, text) in &order.sources {
            texts.add(path, text.as_str());
        }
        let options = Options { params: order.params.clone() };
        let checked = check::load_texts(&texts, &options).map_err(|error| Ended::Failed(error.to_string()))?;
        let named = checked.experiments.into_iter().find(|experiment| experiment.name == order.experiment);
        let mut experiment = named.ok_or_else(|| Ended::Failed("the experiment is not in its file".to_owned()))?;
        experiment.protocol.seed = order.seed;
        let mut indices: BTreeMap<usize, usize> = BTreeMap::new();
        for planned in &order.trials {
            indices.insert(planned.treatment, 0);
        }
        let all = std::mem::take(&mut experiment.treatments);
        for (own, (index, place)) in indices.iter_mut().enumerate() {
            let treatment = all.get(*index).ok_or_else(|| Ended::Failed("a treatment that is not there".to_owned()))?;
            experiment.treatments.push(treatment.clone());
            *place = own;
        }
        let own = |planned: &PlannedTrial| PlannedTrial { treatment: indices[&planned.treatment], ..*planned };
        Ok(Part { experiment, sources: checked.sources, order: order.trials.iter().map(own).collect() })
    }

    /// Makes the machine ready: one of the experiment's treatments, as they all share it.
    fn set_up(&self) -> Result<(), Ended> {
        let Some(machine) = self.experiment.treatments.first().and_then(|treatment| treatment.machine.as_ref()) else {
            return Err(Ended::Failed("the experiment has no machine".to_owned()));
        };
        setup::set_up(machine).map(|_| ()).map_err(|error| {
            let span = self.experiment.lab.as_ref().map_or(self.experiment.name_span, |lab| lab.span);
            let help = "see the console of the boot, kept beside the recording".to_owned();
            let diagnostic = span.error(Kind::HostCannot { message: error.to_string(), help });
            Ended::Impossible(vec![Problem::from(&diagnostic)])
        })
    }

    /// Holds everything asked for against this machine, as `run` does on a host.
    fn bind(&self, facts: &HostFacts, files: &dyn Files) -> Result<Schedule, Vec<Diagnostic>> {
        let tools = bind::required_tools(&self.experiment).filter(|tool| host::on_path(tool));
        let caller = Caller { root: true, tools: tools.map(str::to_owned).collect() };
        let unmet = bind::unmet(&self.experiment, facts, &caller);
        if !unmet.is_empty() {
            return Err(unmet);
        }
        let mut schedule = bind::bind(&self.experiment, facts)?;
        schedule.order.clone_from(&self.order);
        let mut missing: Vec<Diagnostic> = Vec::new();
        for change in schedule.treatments.iter().flat_map(|treatment| &treatment.changes) {
            if let Err(error) = settings::current(change, files) {
                let message = format!("{}: {error}", settings::describe(change));
                let help = "take it out, or describe a lab that has it".to_owned();
                let diagnostic = change.span.error(Kind::HostCannot { message, help });
                if !missing.contains(&diagnostic) {
                    missing.push(diagnostic);
                }
            }
        }
        if missing.is_empty() { Ok(schedule) } else { Err(missing) }
    }

    fn header(&self, schedule: &Schedule, facts: HostFacts) -> recording::Header {
        recording::Header {
            format: recording::FORMAT,
            tool_version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: jiff::Timestamp::now().to_string(),
            // The host has the texts.
            sources: Vec::new(),
            design: bind::design_record(&self.experiment, schedule, &self.sources),
            order: schedule.order.clone(),
            host: facts,
            published: Vec::new(),
            boots: Vec::new(),
        }
    }
}

/// Marks of trials that were begun, so that the host knows which one a machine died in.
struct Marks {
    path: PathBuf,
}

impl Progress for Marks {
    fn trial_started(&mut self, planned: &PlannedTrial, attempt: u32) {
        // Without a mark the host takes the trial for one that was not begun; a full folder shows with its line.
        let file = OpenOptions::new().create(true).append(true).open(&self.path);
        let _ = file.and_then(|mut file| file.write_all(format!("{} {attempt}\n", planned.number).as_bytes()));
    }

    fn trial_ended(&mut self, _trial: &Trial) {}
}
