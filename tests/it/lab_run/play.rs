//! Guests played by a script in the place of `vng`.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use irqlab::check::{self, Options};
use irqlab::cpu_set::{Cpu, CpuSet};
use irqlab::design::Experiment;
use irqlab::lab::tools::{Kernel, Tools};
use irqlab::lab::{self, Job, Kernels, LabError, Patience, Stand};
use irqlab::recording::{
    self, Accelerator, CounterRow, CpuTimes, Header, HostFacts, Line, MaskReadings, PlannedTrial, Recording,
    RunnerCost, Trial, Writer,
};
use irqlab::run::{Outcome, Progress, StopSignals};
use irqlab::source::Sources;

/// What a played guest does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    /// Marks the trial of that number and attempt as begun.
    Begin(u32, u32),
    /// Ends because it cannot write its last word.
    CannotWrite,
    /// Says that everything was run.
    Complete,
    /// Says that on its console, in the words of `printf(1)`.
    Console(&'static str),
    /// Ends in the middle.
    Die,
    /// Says that it failed, and why.
    Failed(&'static str),
    /// Waits for ever, in a process with that argument.
    Hang(&'static str),
    /// Records the machine.
    Header,
    /// Says that a problem keeps it from running anything.
    Impossible(&'static str),
    /// Writes half a line.
    Torn,
    /// Records the trial of that number and attempt.
    Trial(u32, u32),
    /// Its first sign of life.
    Up,
}

/// The planned trials of each boot.
pub(super) fn boots_of(experiment: &Experiment) -> Vec<Vec<PlannedTrial>> {
    let order = irqlab::bind::order(experiment);
    order.chunk_by(|a, b| a.boot == b.boot).map(<[PlannedTrial]>::to_vec).collect()
}

const SCRIPT: &str = r#"#!/bin/sh
here=$(dirname "$0")
while [ $# -gt 0 ]; do
  case "$1" in --rwdir) shared=$2 ;; esac
  shift
done
console=$(dirname "$shared")/console.log
boot=$(($(cat "$here/boots" 2>/dev/null || echo 0) + 1))
echo $boot > "$here/boots"
cp "$shared/order.json" "$here/order-$boot.json"
word() { echo "$1" > "$shared/word"; mv "$shared/word" "$shared/ended.json"; }
. "$here/boot-$boot.sh"
"#;

/// A run with a script for each boot.
pub(super) struct Play {
    pub(super) folder: tempfile::TempDir,
    pub(super) out: PathBuf,
    pub(super) temporary: PathBuf,
    pub(super) experiment: Experiment,
    pub(super) sources: Sources,
    pub(super) patience: Patience,
    boots: u32,
}

struct Silent;

impl Progress for Silent {
    fn trial_started(&mut self, _planned: &PlannedTrial, _attempt: u32) {}

    fn trial_ended(&mut self, _trial: &Trial) {}
}

impl Play {
    pub(super) fn new(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (out, temporary) = (folder.path().join("out"), folder.path().join("temporary"));
        fs::create_dir(&out).unwrap();
        fs::create_dir(&temporary).unwrap();
        let file = folder.path().join("played.exp");
        fs::write(&file, text).unwrap();
        let checked = check::load(&file, &Options::default()).unwrap();
        let vng = folder.path().join("vng");
        fs::write(&vng, SCRIPT).unwrap();
        fs::set_permissions(&vng, fs::Permissions::from_mode(0o755)).unwrap();
        let mut experiment = checked.experiments.into_iter().next().unwrap();
        experiment.protocol.retries = 1;
        let patience = Patience { boot: Duration::from_secs(60), slack: Duration::from_secs(60) };
        Play { folder, out, temporary, experiment, sources: checked.sources, patience, boots: 0 }
    }

    /// What the next boot does; `trials` are those it should be asked for.
    pub(super) fn boot(&mut self, trials: &[PlannedTrial], steps: &[Step]) {
        self.boots += 1;
        let own = own_indices(trials);
        let mut script = String::new();
        for step in steps {
            script.push_str(&self.lines_of(*step, trials, &own));
        }
        fs::write(self.folder.path().join(format!("boot-{}.sh", self.boots)), script).unwrap();
    }

    /// Boots in which everything goes well.
    pub(super) fn rest(&mut self, boots: &[Vec<PlannedTrial>]) {
        for boot in boots {
            let attempt = |number: u32| u32::from(self.begun(number));
            let trials: Vec<Step> = boot
                .iter()
                .map(|planned| (planned.number, attempt(planned.number)))
                .flat_map(|(number, attempt)| [Step::Begin(number, attempt), Step::Trial(number, attempt)])
                .collect();
            self.boot(boot, &[&[Step::Up, Step::Header][..], &trials, &[Step::Complete]].concat());
        }
    }

    /// Whether an earlier boot began that trial.
    fn begun(&self, number: u32) -> bool {
        (1..=self.boots).any(|boot| {
            let script = fs::read_to_string(self.folder.path().join(format!("boot-{boot}.sh"))).unwrap();
            script.contains(&format!("echo {number} "))
        })
    }

    fn lines_of(&self, step: Step, trials: &[PlannedTrial], own: &BTreeMap<usize, usize>) -> String {
        match step {
            Step::Begin(number, attempt) => format!("echo {number} {attempt} >> \"$shared/started\"\n"),
            Step::CannotWrite => "echo 'cannot write: No space left on device' >&2; exit 65\n".to_owned(),
            Step::Complete => "word '\"Complete\"'\n".to_owned(),
            Step::Console(text) => format!("printf '{text}' >> \"$console\"\n"),
            Step::Die => "echo the script dies >&2; exit 3\n".to_owned(),
            Step::Failed(why) => format!("word '{{\"Failed\":\"{why}\"}}'\n"),
            Step::Hang(argument) => format!("sleep {argument}\n"),
            Step::Header => self.append(&Line::Header(self.guest_header(own))),
            Step::Impossible(problem) => format!("word '{{\"Impossible\":[{problem}]}}'\n"),
            Step::Torn => "printf '{\"trial\":{\"number\":' >> \"$shared/recording.jsonl\"\n".to_owned(),
            Step::Trial(number, attempt) => {
                let planned = trials.iter().find(|planned| planned.number == number).unwrap();
                let first = number == trials[0].number;
                self.append(&Line::Trial(trial(planned, (attempt, own[&planned.treatment]), first)))
            }
            Step::Up => ": > \"$shared/alive\"\n".to_owned(),
        }
    }

    /// A script line that adds a line to the guest's recording, from a file of its own.
    fn append(&self, line: &Line) -> String {
        let file = tempfile::Builder::new().suffix(".line").tempfile_in(self.folder.path()).unwrap();
        let (_, path) = file.keep().unwrap();
        fs::write(&path, serde_json::to_string(line).unwrap() + "\n").unwrap();
        format!("cat '{}' >> \"$shared/recording.jsonl\"\n", path.display())
    }

    fn guest_header(&self, own: &BTreeMap<usize, usize>) -> Header {
        let mut header = self.header();
        let all = std::mem::take(&mut header.design.treatments);
        header.design.treatments = own.keys().map(|index| all[*index].clone()).collect();
        header.host.kernel_release = Some("6.1.0-played".to_owned());
        header
    }

    fn header(&self) -> Header {
        Header {
            format: recording::FORMAT,
            tool_version: "0".to_owned(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            sources: Vec::new(),
            design: irqlab::bind::unbound_record(&self.experiment, &self.sources),
            order: irqlab::bind::order(&self.experiment),
            host: HostFacts::default(),
            published: Vec::new(),
            boots: Vec::new(),
        }
    }

    fn partial(&self) -> PathBuf {
        self.out.join("recording.partial.jsonl")
    }

    pub(super) fn run(&self) -> Result<Outcome, LabError> {
        let mut writer = Writer::create(&self.partial(), &self.header()).unwrap();
        self.run_into(&mut writer, None)
    }

    /// Goes on with what an earlier run left.
    pub(super) fn resume(&self) -> Result<Outcome, LabError> {
        let earlier = self.recording();
        let mut writer = Writer::resume(&self.partial(), &earlier).unwrap();
        let resumed = Line::Resumed { at: "2026-01-02T00:00:00Z".to_owned(), host: Box::default() };
        writer.append(&resumed).unwrap();
        self.run_into(&mut writer, Some(&earlier))
    }

    fn run_into(&self, writer: &mut Writer, earlier: Option<&Recording>) -> Result<Outcome, LabError> {
        let tools = Tools {
            qemu: "qemu".into(),
            qemu_version: "QEMU emulator version 7.2.22".to_owned(),
            vng: self.folder.path().join("vng"),
            vng_version: "virtme-ng 1.42".to_owned(),
            path: std::env::var_os("PATH").unwrap_or_default(),
        };
        let kernel = |_: Option<&str>| Ok(Kernel { image: "/boot/vmlinuz-1".into(), version: "1".to_owned() });
        self.run_with((&tools, &kernel), writer, earlier)
    }

    fn run_with(
        &self,
        (tools, kernel): (&Tools, Kernels<'_>),
        writer: &mut Writer,
        earlier: Option<&Recording>,
    ) -> Result<Outcome, LabError> {
        let signals = StopSignals::block().unwrap();
        let stand = Stand {
            program: Path::new(env!("CARGO_BIN_EXE_irqlab")),
            temporary: &self.temporary,
            folder: &self.out,
            signals: &signals,
            tools,
            kernel,
            accelerator: (Accelerator::Emulated, Some("played".to_owned())),
            patience: self.patience,
        };
        let header = self.header();
        let job = Job { experiment: &self.experiment, sources: &self.sources, header: &header, earlier };
        lab::run(&job, &stand, writer, &mut Silent)
    }

    pub(super) fn recording(&self) -> Recording {
        recording::read(&self.partial()).unwrap()
    }

    /// What boot number N was asked for.
    pub(super) fn order(&self, boot: u32) -> serde_json::Value {
        let text = fs::read_to_string(self.folder.path().join(format!("order-{boot}.json"))).unwrap();
        serde_json::from_str(&text).unwrap()
    }

    pub(super) fn consoles(&self) -> Vec<String> {
        let entries = fs::read_dir(self.out.join("console")).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    pub(super) fn left_in_temporary(&self) -> usize {
        fs::read_dir(&self.temporary).unwrap().count()
    }
}

/// The guest's indices of the treatments of its trials, by those of the whole design.
fn own_indices(trials: &[PlannedTrial]) -> BTreeMap<usize, usize> {
    let mut treatments: Vec<usize> = trials.iter().map(|planned| planned.treatment).collect();
    treatments.sort_unstable();
    treatments.dedup();
    treatments.into_iter().zip(0..).collect()
}

/// `first`: the description of a row is said once in a recording.
fn trial(planned: &PlannedTrial, (attempt, treatment): (u32, usize), first: bool) -> Trial {
    Trial {
        number: planned.number,
        attempt,
        sequence: 0,
        block: planned.block,
        treatment,
        boot: None,
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        duration_ns: 1_000_000,
        faults: Vec::new(),
        processes: Vec::new(),
        backgrounds: Vec::new(),
        cpu_times: CpuTimes::default(),
        interrupts: vec![CounterRow {
            label: "30".to_owned(),
            description: if first { "PCI-MSI 1-edge played".to_owned() } else { String::new() },
            on: CpuSet::single(Cpu(0)),
            counts: vec![u64::from(planned.number) + 1],
            anomaly: None,
        }],
        softirqs: Vec::new(),
        masks: MaskReadings::default(),
        settings: Vec::new(),
        runner: RunnerCost::default(),
        mover: None,
    }
}
