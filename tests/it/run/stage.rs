//! A host of two CPUs and one interrupt in a folder, settings that follow a script, and processes to put on it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use irqlab::bind::{
    Change, ChangeKind, IrqIdentity, Method, Moving, MovingIrq, OnRefusal, Process, Schedule, Treatment,
};
use irqlab::cpu_set::{Cpu, CpuSet, Irq};
use irqlab::design;
use irqlab::host::files::{Files, Root, SystemError};
use irqlab::recording::{
    self, Boot, Decision, Fault, Header, HostFacts, Line, PlannedTrial, Recording, Trial, Until, Writer,
};
use irqlab::run::{BetweenBlocks, Finished, Machine, Plan, Progress, StopSignals};
use irqlab::settings::{Apply, Deviation, Ended, Entered, Program, Restored, SettingError, System};
use irqlab::source::Span;

pub(super) type Events = Rc<RefCell<Vec<String>>>;

/// Settings that write down what is asked of them and fail on demand.
pub(super) struct Script {
    pub(super) events: Events,
    pub(super) refuse: fn(u32) -> bool,
    pub(super) deviate: fn(u32) -> bool,
    pub(super) panic: fn(u32) -> bool,
    /// What cannot be put back.
    pub(super) stays: Vec<String>,
    pub(super) entered: u32,
    pub(super) verified: RefCell<u32>,
}

impl Apply for Script {
    fn enter(&mut self, changes: &[Change]) -> Result<Entered, SettingError> {
        self.events.borrow_mut().push(format!("enter {} changes", changes.len()));
        self.entered += 1;
        assert!(!(self.panic)(self.entered), "a defect");
        if (self.refuse)(self.entered) {
            let source = std::io::Error::from_raw_os_error(28);
            return Err(SettingError {
                setting: "irq 36 -> cpu 0".to_owned(),
                meaning: Some("no free vector on that CPU"),
                span: Span::default(),
                source: SystemError::new("write", "/proc/irq/36/smp_affinity", source),
            });
        }
        Ok(Entered { remarks: vec!["a remark".to_owned()], ..Entered::default() })
    }

    fn expect_moves(&mut self, moving: &[Moving]) -> Result<(), SettingError> {
        if !moving.is_empty() {
            self.events.borrow_mut().push(format!("expect moves of {} targets", moving.len()));
        }
        Ok(())
    }

    fn follow_moves(&mut self, last: &BTreeMap<u32, CpuSet>) {
        self.events.borrow_mut().push(format!("follow moves of {} interrupts", last.len()));
    }

    fn verify(&self) -> Vec<Deviation> {
        self.events.borrow_mut().push("verify".to_owned());
        *self.verified.borrow_mut() += 1;
        let deviation = || Deviation { setting: "sysctl a".into(), asked: "1".into(), found: "0".into() };
        (self.deviate)(*self.verified.borrow()).then(deviation).into_iter().collect()
    }

    fn restore(&mut self) -> Restored {
        self.events.borrow_mut().push("restore".to_owned());
        Restored { restored: 2, failed: self.stays.clone(), ..Restored::default() }
    }
}

/// A host folder; each file read is an event.
struct Watched {
    root: Root,
    events: Events,
}

impl Files for Watched {
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
        self.events.borrow_mut().push(format!("read {path}"));
        self.root.read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, SystemError> {
        self.root.list(path)
    }

    fn mode(&self, path: &str) -> Result<u32, SystemError> {
        self.root.mode(path)
    }

    fn resolve(&self, path: &str) -> Result<PathBuf, SystemError> {
        self.root.resolve(path)
    }
}

/// The same folder for the thread that moves interrupts: what it writes is a file there, and nothing else is asked of it.
struct Switchboard(Root);

impl Files for Switchboard {
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
        self.0.read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, SystemError> {
        self.0.list(path)
    }

    fn mode(&self, path: &str) -> Result<u32, SystemError> {
        self.0.mode(path)
    }

    fn resolve(&self, path: &str) -> Result<PathBuf, SystemError> {
        self.0.resolve(path)
    }
}

impl System for Switchboard {
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), SystemError> {
        fs::write(self.0.join(path), bytes).map_err(|source| SystemError::new("write", path, source))
    }

    fn set_affinity(&self, _: u32, _: &CpuSet) -> Result<(), SystemError> {
        unreachable!("a mover binds no task")
    }

    fn terminate(&self, _: u32) -> Result<(), SystemError> {
        unreachable!("a mover ends no process")
    }

    fn run(&self, _: &[String]) -> Result<Ended, SystemError> {
        unreachable!("a mover runs no program")
    }

    fn start(&self, _: &Program) -> Result<(), SystemError> {
        unreachable!("a mover starts no program")
    }

    fn own_pid(&self) -> u32 {
        std::process::id()
    }

    fn is_root(&self) -> bool {
        true
    }

    fn pause(&self, _: Duration) {}
}

struct Told(Events, Option<Decision>);

impl Progress for Told {
    fn trial_started(&mut self, planned: &PlannedTrial, attempt: u32) {
        self.0.borrow_mut().push(format!("start trial {} attempt {attempt}", planned.number));
    }

    fn trial_ended(&mut self, trial: &Trial) {
        self.0.borrow_mut().push(format!("end trial {} with {} faults", trial.number, trial.faults.len()));
    }

    fn further(&mut self) -> Option<Decision> {
        self.1.take()
    }
}

/// A host of two CPUs with one interrupt, and everything a run needs.
pub(super) struct Stage {
    pub(super) folder: tempfile::TempDir,
    pub(super) events: Events,
    pub(super) script: Script,
    pub(super) treatments: Vec<Treatment>,
    pub(super) blocks: Vec<u32>,
    pub(super) retries: u32,
    pub(super) between_blocks: BetweenBlocks,
    /// The boot the trials run in.
    pub(super) boot: Option<u32>,
    /// What the look after the planned trials gives.
    pub(super) further: Option<Decision>,
}

impl Stage {
    pub(super) fn new(workloads: Vec<Process>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let events = Events::default();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("host/proc/stat", "cpu  2 0 2 200 0 0 0 0 0 0\ncpu0 1 0 1 100 0 0 0 0 0 0\ncpu1 1 0 1 100 0 0 0 0 0 0\n");
        write("host/proc/interrupts", &interrupts(10, 0));
        write("host/proc/irq/36/smp_affinity", "1\n");
        write("host/proc/irq/36/effective_affinity", "1\n");
        write("scratch/x", "");
        let treatment = Treatment {
            name: "routing=one".to_owned(),
            changes: vec![affinity_change()],
            moving: vec![],
            settle_ms: 0,
            settings: vec!["irq 36 -> cpu 0".to_owned()],
            workloads,
            backgrounds: vec![],
            runner_cpus: irqlab::workloads::affinity::current().unwrap(),
        };
        let script = Script {
            events: Rc::clone(&events),
            refuse: |_| false,
            deviate: |_| false,
            panic: |_| false,
            stays: Vec::new(),
            entered: 0,
            verified: RefCell::new(0),
        };
        Stage {
            folder,
            events,
            script,
            treatments: vec![treatment],
            blocks: vec![1],
            retries: 0,
            between_blocks: BetweenBlocks::GoOn,
            boot: None,
            further: None,
        }
    }

    pub(super) fn background(mut self, process: Process) -> Self {
        self.treatments[0].backgrounds.push(process);
        self
    }

    /// The interrupt moves over CPUs 0 and 1.
    pub(super) fn moving(mut self, method: Method, every_ms: u64) -> Self {
        let cores = vec![CpuSet::single(Cpu(0)), CpuSet::single(Cpu(1))];
        let over = CpuSet::parse_list("0-1").unwrap();
        let irqs = vec![MovingIrq { irq: Irq(36), over, start: Cpu(0) }];
        self.treatments[0].moving = vec![Moving { method, every_ms, irqs, cores }];
        self
    }

    pub(super) fn host(&self, path: &str) -> String {
        self.folder.path().join("host").join(path).to_string_lossy().into_owned()
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().join("recording.jsonl")
    }

    pub(super) fn order(&self) -> Vec<PlannedTrial> {
        let planned = |(number, block): (usize, &u32)| PlannedTrial {
            number: number as u32,
            block: *block,
            treatment: 0,
            boot: None,
        };
        self.blocks.iter().enumerate().map(planned).collect()
    }

    pub(super) fn run(&mut self) -> (Finished, Recording) {
        let schedule = Schedule { treatments: self.treatments.clone(), order: self.order(), remarks: vec![] };
        let plan =
            Plan { between_blocks: self.between_blocks, boot: self.boot, ..Plan::new(&schedule, (0, self.retries)) };
        let mut header = header(&self.order());
        header.boots.extend(self.boot.map(booted));
        if self.further.is_some() {
            let metric = "work.real".to_owned();
            header.design.protocol.until = Some(Until { metric, within: 0.01, pilot: 1, max: 3, decided: None });
        }
        let mut writer = Writer::create(&self.path(), &header).unwrap();
        for boot in header.boots {
            writer.append(&Line::Boot(boot)).unwrap();
        }
        self.run_plan(&plan, &mut writer)
    }

    pub(super) fn run_plan(&mut self, plan: &Plan<'_>, writer: &mut Writer) -> (Finished, Recording) {
        let signals = StopSignals::block().unwrap();
        let files = Watched { root: Root::new(self.folder.path().join("host")), events: Rc::clone(&self.events) };
        let machine = Machine {
            files: &files,
            apply: &mut self.script,
            system: &Switchboard(Root::new(self.folder.path().join("host"))),
            signals: &signals,
            program: Path::new(env!("CARGO_BIN_EXE_irqlab")),
            scratch: &self.folder.path().join("scratch"),
        };
        let finished = irqlab::run::run(machine, plan, writer, &mut Told(Rc::clone(&self.events), self.further.take()));
        let recording = recording::read(writer.path()).unwrap();
        assert_eq!(fs::read_dir(self.folder.path().join("scratch")).unwrap().count(), 1, "outputs are deleted");
        assert_eq!(self.events.borrow().last().unwrap(), "restore");
        (finished, recording)
    }

    /// The faults of the only trial.
    pub(super) fn faults(&mut self) -> Vec<Fault> {
        let (finished, recording) = self.run();
        finished.outcome.unwrap();
        assert_eq!(recording.trials.len(), 1);
        recording.trials[0].faults.clone()
    }
}

pub(super) fn interrupts(on_0: u32, on_1: u32) -> String {
    format!("           CPU0       CPU1\n 36: {on_0:>10} {on_1:>10}  PCI-MSIX-0000:00:05.0   0-edge      eth0-rx\n")
}

fn affinity_change() -> Change {
    let identity = IrqIdentity {
        irq: Irq(36),
        actions: vec!["eth0-rx".to_owned()],
        chip: "PCI-MSIX".to_owned(),
        hwirq: None,
        device: None,
    };
    let kind = ChangeKind::Affinity { identity, mask: CpuSet::single(Cpu(0)), on_refusal: OnRefusal::Fail };
    Change { kind, span: Span::default() }
}

pub(super) fn process(name: &str, command: design::Command) -> Process {
    Process {
        name: name.to_owned(),
        command,
        cpus: None,
        directory: None,
        environment: vec![],
        user: None,
        nice: None,
        fifo: None,
        timeout_ms: 60_000,
        instances: 1,
        restart: false,
        ready: None,
        parsers: vec![],
        span: Span::default(),
    }
}

pub(super) fn shell(name: &str, text: &str) -> Process {
    process(name, design::Command::Shell(text.to_owned()))
}

pub(super) fn words(name: &str, words: &[&str]) -> Process {
    process(name, design::Command::Run(words.iter().map(|word| (*word).to_owned()).collect()))
}

fn booted(number: u32) -> Boot {
    Boot {
        number,
        planned: number,
        at: String::new(),
        boot_id: None,
        lab: None,
        host: HostFacts::default(),
        options: vec![],
        treatments: std::collections::BTreeMap::new(),
    }
}

fn header(order: &[PlannedTrial]) -> Header {
    let treatment = recording::Treatment {
        name: "routing=one".to_owned(),
        levels: vec![],
        control: 0,
        settings: vec![],
        routes: vec![],
        workloads: vec![],
        backgrounds: vec![],
    };
    let protocol = recording::Protocol {
        blocks: 1,
        warmup: 0,
        order: "blocks".to_owned(),
        seed: 1,
        order_version: 1,
        settle_ms: 0,
        timeout_ms: 60_000,
        retries: 0,
        until: None,
    };
    let design = recording::Design {
        name: "e".to_owned(),
        title: "e".to_owned(),
        question: None,
        source: None,
        params: vec![],
        factors: vec![],
        treatments: vec![treatment],
        metrics: vec![],
        comparisons: vec![],
        expectations: vec![],
        protocol,
        layout: "default".to_owned(),
        template: None,
        template_text: None,
    };
    Header {
        format: recording::FORMAT,
        tool_version: "0.1.0".to_owned(),
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        sources: vec![],
        design,
        order: order.to_vec(),
        host: HostFacts::default(),
        published: Vec::new(),
        boots: Vec::new(),
    }
}
