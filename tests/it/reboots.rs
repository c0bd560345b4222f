//! An experiment with `boot` levels on a machine that somebody boots by hand: a captured host whose kernel files are
//! another boot's between two parts of the run; and one with `smt` levels, which need no boot.
//!
//! Each part runs in a process of its own, as `irqlab run` would, because the runner blocks signals and adopts orphans.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use irqlab::cli::run::{self, Host, Start};
use irqlab::cli::{Params, Selection};
use irqlab::cpu_set::CpuSet;
use irqlab::host::files::{Files, Root, SystemError};
use irqlab::recording::{self, Recording};
use irqlab::run::StopSignals;
use irqlab::settings::{Ended, Program, System};

const PART: &str = "IRQLAB_TEST_PART";
const RESUMED: &str = "IRQLAB_TEST_RESUMED";

/// Two whole plots in two blocks: four boots, each with a warm-up of its two treatments.
const TEXT: &str = "\
experiment apic {
  vary apic {
    on { }
    off { boot \"noapic\" }
  }
  vary work { short { } long { } }
  workload w { builtin primes up_to=1000 }
  measure w.real
  repeat 2; order blocks seed SEED
  compare apic against on by w.real
}
";

/// Seeds whose first boot is of the level `on` and of `off`.
const ON_FIRST: &str = "1";
const OFF_FIRST: &str = "2";

/// Two whole plots that need no boot; the second block begins with the one the first ended with.
const SMT: &str = "\
experiment apic {
  vary smt {
    on { smt on }
    off { smt off }
  }
  workload w { builtin primes up_to=1000 }
  measure w.real
  repeat 2; warmup 0; order blocks seed SEED
}
";

const SMT_CONTROL: &str = "/sys/devices/system/cpu/smt/control";

/// Captured files. Only SMT can be switched; nothing else may be done to them.
struct Captured(Root);

impl Files for Captured {
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

impl System for Captured {
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), SystemError> {
        assert_eq!(path, SMT_CONTROL, "nothing else is written");
        fs::write(self.0.join(path), bytes).unwrap();
        // Beside the host, so that it is no file of it.
        let mut log = fs::OpenOptions::new().create(true).append(true).open(self.0.join("/../switched")).unwrap();
        log.write_all(bytes).unwrap();
        Ok(())
    }

    fn set_affinity(&self, tid: u32, _: &CpuSet) -> Result<(), SystemError> {
        panic!("task {tid} is moved");
    }

    fn terminate(&self, pid: u32) -> Result<(), SystemError> {
        panic!("{pid} is ended");
    }

    fn run(&self, command: &[String]) -> Result<Ended, SystemError> {
        panic!("{command:?} is run: a boot loader is not ours to change");
    }

    fn start(&self, program: &Program) -> Result<(), SystemError> {
        panic!("{program:?} is started");
    }

    fn own_pid(&self) -> u32 {
        std::process::id()
    }

    fn is_root(&self) -> bool {
        true
    }

    fn pause(&self, _: Duration) {}
}

/// The process of one part; does nothing when it is run as a test.
#[test]
fn one_part() {
    let Some(folder) = std::env::var_os(PART).map(PathBuf::from) else { return };
    let start = if std::env::var_os(RESUMED).is_some() { Start::Resume } else { Start::Fresh };
    let host = Host {
        system: &Captured(Root::new(folder.join("host"))),
        state_dir: &folder.join("state"),
        program: Path::new(env!("CARGO_BIN_EXE_irqlab")),
        scratch: &folder.join("scratch"),
        signals: &StopSignals::block().unwrap(),
    };
    let selection =
        Selection { paths: vec![folder.join("x.exp")], only: vec![], seed: None, params: Params { set: vec![] } };
    let exit = run::on(&host, &selection, &folder.join("reports"), start);
    std::process::exit(exit as i32);
}

/// A machine, the experiment on it, and the person who boots it.
struct Machine {
    folder: tempfile::TempDir,
    boots: u32,
}

impl Machine {
    fn new(seed: &str) -> Self {
        Machine::with(&TEXT.replace("SEED", seed))
    }

    fn with(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let captured = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts/lab-4cpu-e1000-megasas");
        let copied = Command::new("cp").arg("-a").arg(captured).arg(folder.path().join("host")).status().unwrap();
        assert!(copied.success());
        fs::create_dir(folder.path().join("scratch")).unwrap();
        fs::write(folder.path().join("x.exp"), text).unwrap();
        Machine { folder, boots: 0 }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join("host").join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Comes up with a command line, and shows what the kernel makes of it.
    fn boot(&mut self, line: &str) {
        self.boots += 1;
        self.write("proc/sys/kernel/random/boot_id", &format!("boot-{}\n", self.boots));
        self.write("proc/cmdline", &format!("BOOT_IMAGE=/vmlinuz-6.1 {line}\n"));
        self.show(if line.split(' ').any(|option| option == "noapic") { "XT-PIC" } else { "IO-APIC" });
    }

    /// What serves the interrupts that are not message signalled.
    fn show(&self, chip: &str) {
        let interrupts = fs::read_to_string(self.folder.path().join("host/proc/interrupts")).unwrap();
        self.write("proc/interrupts", &interrupts.replace("XT-PIC", "IO-APIC").replace("IO-APIC", chip));
        for irq in [4, 22, 23] {
            self.write(&format!("sys/kernel/irq/{irq}/chip_name"), &format!("{chip}\n"));
        }
    }

    fn irqlab(&self, resumed: bool) -> (i32, String) {
        let mut part = Command::new(std::env::current_exe().unwrap());
        part.args(["--exact", "reboots::one_part", "--nocapture"]).env(PART, self.folder.path());
        if resumed {
            part.env(RESUMED, "1");
        }
        let output = part.output().unwrap();
        (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
    }

    fn run(&self) -> (i32, String) {
        self.irqlab(false)
    }

    fn resume(&self) -> (i32, String) {
        self.irqlab(true)
    }

    fn partial(&self) -> Recording {
        recording::read(&self.folder.path().join("reports/apic/recording.partial.jsonl")).unwrap()
    }
}

/// The command line that was asked for.
fn asked_for(said: &str) -> String {
    let mut lines = said.lines().skip_while(|line| !line.contains("kernel command line"));
    lines.nth(1).unwrap_or_else(|| panic!("nothing is asked for: {said}")).trim().to_owned()
}

const PLAIN: &str = "root=UUID=6f1d-11 ro quiet";

#[test]
fn a_person_who_does_what_is_said_gets_a_report() {
    let mut machine = Machine::new(ON_FIRST);
    machine.boot(PLAIN);
    let (mut exit, mut said) = machine.run();
    let mut told = Vec::new();
    while said.contains("boots done") {
        assert_eq!(exit, 0, "{said}");
        told.extend(said.lines().find(|line| line.contains("boots done")).map(str::to_owned));
        assert!(machine.partial().end.is_none(), "a part is not the whole");
        machine.boot(&asked_for(&said));
        (exit, said) = machine.resume();
    }
    assert_eq!(exit, 0, "{said}");
    assert_eq!(told, ["1 of 4 boots done", "2 of 4 boots done", "3 of 4 boots done"]);
    let reports = machine.folder.path().join("reports/apic");
    let recorded = recording::read(&reports.join("recording.jsonl")).unwrap();
    assert!(fs::read_to_string(reports.join("README.md")).unwrap().contains("apic"));
    assert!(!reports.join("recording.partial.jsonl").exists());
    assert_eq!(recorded.end.unwrap().reason, "complete");
    let boots = &recorded.header.boots;
    let ids: Vec<&str> = boots.iter().filter_map(|boot| boot.boot_id.as_deref()).collect();
    assert_eq!(ids, ["boot-1", "boot-2", "boot-3", "boot-4"]);
    assert_eq!(recorded.trials.len(), 16);
    for trial in &recorded.trials {
        let boot = boots.iter().find(|boot| Some(boot.number) == trial.boot).unwrap();
        let planned = recorded.header.order.iter().find(|planned| planned.number == trial.number).unwrap();
        assert_eq!(Some(boot.planned), planned.boot, "a trial runs in the boot it was drawn for");
        let wants_noapic = recorded.header.design.treatments[trial.treatment].name.contains("apic=off");
        let shown: Vec<(&str, Option<bool>, &str)> =
            boot.options.iter().map(|o| (o.option.as_str(), o.in_force, o.evidence.as_str())).collect();
        let expected: &[_] = &[("noapic", Some(true), "no IO-APIC rows, 3 XT-PIC rows")];
        assert_eq!(shown, if wants_noapic { expected } else { &[] });
        assert!(boot.treatments.contains_key(&trial.treatment), "bound to the boot it ran in");
    }
}

#[test]
fn what_is_asked_for_is_the_whole_line_and_how_to_set_it() {
    let mut machine = Machine::new(ON_FIRST);
    machine.boot("root=UUID=6f1d-11 ro quiet crashkernel=256M -- single");
    let (exit, said) = machine.run();
    assert_eq!(exit, 0, "{said}");
    assert_eq!(asked_for(&said), "root=UUID=6f1d-11 ro quiet crashkernel=256M noapic -- single");
    assert!(said.contains("grubby --update-kernel=DEFAULT --args noapic;"), "{said}");
    assert!(said.contains("x.exp --resume"), "{said}");
    let recorded = fs::read_to_string(machine.folder.path().join("reports/apic/recording.partial.jsonl")).unwrap();
    assert!(!recorded.contains("6f1d-11"), "what tells this host from another is only said, not kept");
    machine.boot(&asked_for(&said));
    let (exit, said) = machine.resume();
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("wants the same kernel command line once more"), "{said}");
    assert_eq!(asked_for(&said), "root=UUID=6f1d-11 ro quiet crashkernel=256M noapic -- single");
    machine.boot(&asked_for(&said));
    let (_, said) = machine.resume();
    assert_eq!(asked_for(&said), "root=UUID=6f1d-11 ro quiet crashkernel=256M -- single");
}

#[test]
fn one_boot_serves_one_whole_plot_even_where_the_next_is_like_it() {
    let mut machine = Machine::new(ON_FIRST);
    machine.boot(PLAIN);
    machine.run();
    let before = machine.partial();
    for _ in 0..2 {
        let (exit, said) = machine.resume();
        assert_eq!(exit, 4, "{said}");
        assert!(said.contains("this is still the same boot: reboot first"), "{said}");
    }
    // Even with the right options by other means.
    machine.show("XT-PIC");
    assert_eq!(machine.resume().0, 4);
    assert_eq!(machine.partial(), before, "nothing was run and nothing counted");
}

#[test]
fn a_machine_that_starts_with_other_options_is_told_before_anything_runs() {
    let mut machine = Machine::new(OFF_FIRST);
    machine.boot(PLAIN);
    let (exit, said) = machine.run();
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("0 of 4 boots done"), "{said}");
    assert_eq!((machine.partial().trials.len(), machine.partial().header.boots.len()), (0, 0));
    let (exit, said) = machine.resume();
    assert_eq!(exit, 4, "{said}");
    assert!(said.contains("still the same boot"), "{said}");
    machine.boot(&asked_for(&said));
    let (exit, said) = machine.resume();
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("`noapic` is in force: no IO-APIC rows, 3 XT-PIC rows"), "{said}");
    assert!(said.contains("1 of 4 boots done"), "{said}");
}

#[test]
fn boots_are_not_taken_out_of_their_drawn_order() {
    let mut machine = Machine::new(OFF_FIRST);
    machine.boot(PLAIN);
    machine.run();
    machine.boot(PLAIN);
    let (exit, said) = machine.resume();
    assert_eq!(exit, 4, "the level `on` is still to be run, but it is not due: {said}");
    assert!(said.contains("wanted `noapic`, not in force: 3 IO-APIC rows, no XT-PIC rows"), "{said}");
    assert_eq!(machine.partial().trials.len(), 0);
}

#[test]
fn a_machine_that_never_comes_up_right_is_stopped_and_may_go_on_when_it_does() {
    let mut machine = Machine::new(OFF_FIRST);
    machine.boot(PLAIN);
    let (_, said) = machine.run();
    let wanted = asked_for(&said);
    for _ in 0..2 {
        machine.boot(PLAIN);
        assert_eq!(machine.resume().0, 4);
        let (exit, said) = machine.resume();
        assert_eq!(exit, 4, "the same boot is not counted twice: {said}");
    }
    machine.boot("root=UUID=6f1d-11 ro quiet no-apic");
    let (exit, said) = machine.resume();
    assert_eq!(exit, 5, "{said}");
    assert!(said.contains("the machine came up 3 times without the boot that was asked for"), "{said}");
    assert!(said.contains("it is not on the command line"), "{said}");
    machine.boot(&wanted);
    machine.show("IO-APIC");
    let (exit, said) = machine.resume();
    assert_eq!(exit, 5, "{said}");
    assert!(said.contains("it is on the command line: this kernel does not know it"), "{said}");
    machine.boot(&wanted);
    let (exit, said) = machine.resume();
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("1 of 4 boots done"), "{said}");
    machine.boot(&format!("{PLAIN} noapic nosmp"));
    assert_ne!(machine.resume().0, 5, "a boot that was right begins the count anew");
}

#[test]
fn an_option_of_another_level_must_be_gone() {
    let mut machine = Machine::new(ON_FIRST);
    machine.boot(&format!("{PLAIN} noapic"));
    let (exit, said) = machine.run();
    assert_eq!(exit, 0, "{said}");
    assert_eq!(asked_for(&said), PLAIN);
    assert!(said.contains("--remove-args noapic"), "{said}");
    machine.boot(PLAIN);
    machine.show("XT-PIC");
    let (exit, said) = machine.resume();
    assert_eq!(exit, 4, "{said}");
    assert!(said.contains("`noapic` is in force and must not be: no IO-APIC rows, 3 XT-PIC rows"), "{said}");
    assert!(said.contains("this machine is like that without being told"), "{said}");
}

#[test]
fn levels_that_look_alike_without_a_boot_are_named_at_once() {
    let mut machine = Machine::new(ON_FIRST);
    machine.boot(PLAIN);
    machine.show("XT-PIC");
    let (exit, said) = machine.run();
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("`noapic` is in force and must not be: no IO-APIC rows, 3 XT-PIC rows"), "{said}");
}

#[test]
fn the_look_after_the_pilot_asks_for_further_boots() {
    let until = "repeat until w.real within 0.01% pilot 5 max 6";
    let mut machine = Machine::with(&TEXT.replace("SEED", ON_FIRST).replace("repeat 2", until));
    machine.boot(PLAIN);
    let (mut exit, mut said) = machine.run();
    let mut told = Vec::new();
    while said.contains("boots done") {
        assert_eq!(exit, 0, "{said}");
        told.extend(said.lines().find(|line| line.contains("boots done")).map(str::to_owned));
        assert_eq!(said.contains("after the pilot"), told.len() == 10, "one look: {said}");
        machine.boot(&asked_for(&said));
        (exit, said) = machine.resume();
    }
    assert_eq!(exit, 0, "{said}");
    let expected = (1..12).map(|done| format!("{done} of {} boots done", if done < 10 { 10 } else { 12 }));
    assert_eq!(told, expected.collect::<Vec<_>>());
}

#[test]
fn smt_is_switched_anew_in_the_next_block() {
    let mut seeds = Vec::new();
    for seed in ["5", "7"] {
        let mut machine = Machine::with(&SMT.replace("SEED", seed));
        machine.boot(PLAIN);
        let (exit, said) = machine.run();
        assert_eq!(exit, 0, "{said}");
        let recorded = recording::read(&machine.folder.path().join("reports/apic/recording.jsonl")).unwrap();
        assert!(recorded.trials.iter().all(|trial| trial.faults.is_empty()), "{:?}", recorded.trials);
        let order: Vec<usize> = recorded.header.order.iter().map(|planned| planned.treatment).collect();
        let switched = fs::read_to_string(machine.folder.path().join("switched")).unwrap();
        // Off in each block and back on behind it, whichever plot comes first.
        assert_eq!(switched.replace('\n', " ").trim(), "off on off on", "{order:?}");
        seeds.push(order);
    }
    assert!(seeds.contains(&vec![0, 1, 1, 0]), "off ends one block and begins the next: {seeds:?}");
}

#[test]
fn a_boot_cut_short_is_finished_in_the_same_boot_or_in_another_one() {
    let mut machine = Machine::new(ON_FIRST);
    machine.boot(PLAIN);
    machine.run();
    let path = machine.folder.path().join("reports/apic/recording.partial.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    // Header, boot, warm-up and the first of two trials: as after a power cut.
    let cut: String = text.lines().take(5).flat_map(|line| [line, "\n"]).collect();
    fs::write(&path, &cut).unwrap();
    let (exit, said) = machine.resume();
    assert_eq!(exit, 0, "{said}");
    assert_eq!((machine.partial().header.boots.len(), machine.partial().trials.len()), (1, 4));

    fs::write(&path, &cut).unwrap();
    machine.boot(PLAIN);
    let (exit, said) = machine.resume();
    assert_eq!(exit, 0, "{said}");
    assert!(said.contains("1 of 4 boots done"), "{said}");
    let recorded = machine.partial();
    let boots: Vec<(u32, u32)> = recorded.header.boots.iter().map(|boot| (boot.number, boot.planned)).collect();
    assert_eq!(boots, [(1, 1), (2, 1)]);
    let ran: Vec<(u32, Option<u32>)> = recorded.trials.iter().map(|trial| (trial.block, trial.boot)).collect();
    let (first, second) = (Some(1), Some(2));
    let warm_again = [(0, first), (0, first), (1, first), (0, second), (0, second), (1, second)];
    assert_eq!(ran, warm_again, "another boot is cold");
}
