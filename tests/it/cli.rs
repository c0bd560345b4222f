//! The program from outside: what it prints where, and the status it ends with.

use std::path::Path;
use std::process::Command;

/// A folder with an experiment in it, and what the program is to say there. A stream not named is empty.
struct Case {
    folder: tempfile::TempDir,
    arguments: Vec<String>,
    stdout: String,
    stderr: String,
}

/// Two routes of one interrupt of `vm-2cpu-virtio`, in canonical form.
const ROUTES: &str = "\
experiment x {
  vary f {
    a { irq 41 -> cpu 1 }
    b { irq 41 -> cpu 0 }
  }
  workload w { builtin primes up_to=1000 }
  measure w.real
  repeat 3; order blocks seed 1
  compare f against b by w.real
}
";

fn irqlab(arguments: &[&str]) -> Case {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    Case { folder, arguments, stdout: String::new(), stderr: String::new() }
}

impl Case {
    fn file(self, name: &str, text: &str) -> Self {
        std::fs::write(self.folder.path().join(name), text).unwrap();
        self
    }

    /// Reads the host from a captured one.
    fn host(mut self, name: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(name);
        self.arguments.extend(["--root".to_owned(), root.to_str().unwrap().to_owned()]);
        self
    }

    fn stdout(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stdout);
        self
    }

    fn stderr(mut self, text: &str) -> Self {
        text.clone_into(&mut self.stderr);
        self
    }

    /// Runs the program; gives stdout and stderr.
    #[track_caller]
    fn run(&self, status: i32) -> (String, String) {
        let output = Command::new(env!("CARGO_BIN_EXE_irqlab"))
            .current_dir(self.folder.path())
            .env("IRQLAB_STATE_DIR", self.folder.path().join("state"))
            .args(&self.arguments)
            .output()
            .unwrap();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "{stdout}{stderr}");
        (stdout, stderr)
    }

    #[track_caller]
    fn ends_with(self, status: i32) -> Self {
        assert_eq!(self.run(status), (self.stdout.clone(), self.stderr.clone()));
        self
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

#[test]
fn new_writes_a_starter_that_is_right_and_canonical() {
    let case = irqlab(&["new", "first.exp"]).stderr("first.exp written; next: irqlab check first.exp\n").ends_with(0);
    let starter = case.read("first.exp");
    irqlab(&["check", "first.exp"]).file("first.exp", &starter).stdout("first.exp: starter\n").ends_with(0);
    irqlab(&["fmt", "--check", "first.exp"]).file("first.exp", &starter).ends_with(0);
    irqlab(&["new", "-"]).stdout(&starter).ends_with(0);
}

#[test]
fn new_overwrites_nothing() {
    let case = irqlab(&["new", "mine.exp"])
        .file("mine.exp", "mine")
        .stderr("error: mine.exp exists and is not overwritten; name another file\n")
        .ends_with(2);
    assert_eq!(case.read("mine.exp"), "mine");
}

#[test]
fn check_says_where_a_file_is_wrong() {
    irqlab(&["check", "x.exp"])
        .file("x.exp", &ROUTES.replace("against b", "against c"))
        .stderr(
            "error: level `c` is unknown
 --> x.exp:9:21
  |
9 |   compare f against c by w.real
  |                     ^
  |
help: there are `a` and `b`
",
        )
        .ends_with(3);
}

#[test]
fn a_path_that_leads_nowhere_is_the_callers_fault() {
    let missing = "error: cannot read none.exp: No such file or directory (os error 2)\n";
    irqlab(&["check", "none.exp"]).stderr(missing).ends_with(2);
    irqlab(&["fmt", "none.exp"]).stderr(missing).ends_with(2);
    irqlab(&["plan", "none.exp"]).stderr(missing).ends_with(2);
    irqlab(&["check", "empty"]).stderr("error: no .exp file below empty\n").ends_with(2);
    irqlab(&["report", "empty"]).stderr("error: no recording.jsonl below empty\n").ends_with(2);
    let root = "error: --root none is not a folder\n";
    irqlab(&["host", "--root", "none"]).stderr(root).ends_with(2);
    irqlab(&["irqs", "--root", "none"]).stderr(root).ends_with(2);
    irqlab(&["plan", "x.exp", "--root", "none"]).file("x.exp", ROUTES).stderr(root).ends_with(2);
}

#[test]
fn fmt_check_names_the_file_and_changes_nothing() {
    let untidy = ROUTES.replace("vary f {", "vary   f {");
    let case = irqlab(&["fmt", "--check", "x.exp"]).file("x.exp", &untidy).stdout("x.exp\n").ends_with(1);
    assert_eq!(case.read("x.exp"), untidy);
    let case = irqlab(&["fmt", "x.exp"]).file("x.exp", &untidy).stdout("x.exp\n").ends_with(0);
    assert_eq!(case.read("x.exp"), ROUTES);
    let case = irqlab(&["fmt", "x.exp"])
        .file("x.exp", "experiment x {")
        .stderr(
            "error: `{` is never closed
 --> x.exp:1:14
  |
1 | experiment x {
  |              ^
  |
help: add the `}` where this body ends
",
        )
        .ends_with(3);
    assert_eq!(case.read("x.exp"), "experiment x {");
}

#[test]
fn plan_names_every_write_with_old_and_new_value() {
    let (stdout, stderr) = irqlab(&["plan", "x.exp"]).file("x.exp", ROUTES).host("vm-2cpu-virtio").run(0);
    assert_eq!(stderr, "");
    assert!(stdout.contains("irq 41: cpus 0-1 → cpu 1\n"), "{stdout}");
    assert!(stdout.contains("irq 41: cpus 0-1 → cpu 0\n"), "{stdout}");
    assert!(stdout.contains("(randomised complete blocks, seed 1; 2 warm-up trials, 6 trials)"), "{stdout}");
}

/// Two boots a block, each with two treatments.
const BOOTED: &str = "\
experiment x {
  vary apic { plain { }  none { boot \"noapic\" } }
  vary routing { one { irq 41 -> cpu 0 }  all { irq 41 -> online } }
  workload w { builtin ipc kind=pipe for=2s }
  measure w.rate
  repeat 4
  warmup 1
  settle 1s
  compare apic against plain
  compare routing against one
}
";

#[test]
fn plan_of_a_lab_tells_its_machines_and_boots_without_a_host() {
    let lab = "lab { cpus 4; threads 2; memory 512MiB; nic e1000 count=2; link; disk megasas size=1GiB }\n  vary apic";
    let text = BOOTED.replace("vary apic", lab).replace("irq 41", "irq \"eth0*\"");
    let (stdout, stderr) = irqlab(&["plan", "x.exp"]).file("x.exp", &text).run(0);
    assert_eq!(stderr, "");
    let machine = "4 CPUs (1 socket × 2 cores × 2 threads), 512 MiB, 2 adapters e1000, linked, 1 disk megasas of 1 GiB, \
                   newest full kernel";
    assert!(stdout.contains(&format!("\nmachines (8 boots)\n  apic=plain: {machine}\n")), "{stdout}");
    assert!(stdout.contains(&format!("  apic=none: {machine}, kernel command line with noapic\n")), "{stdout}");
    assert!(stdout.contains("  1. apic=plain, routing=one\n       irq \"eth0*\" -> cpu 0\n"), "{stdout}");
    let boot = "\n  boot 1 (block 1): apic=plain: warm-up 1 2, then 1 2\n  boot 2 (block 1): apic=none: warm-up 3 4, then 3 4\n";
    assert!(stdout.contains(boot), "{stdout}");
    assert_eq!(stdout.matches("\n  boot ").count(), 8, "{stdout}");
    // 32 trials of 1 s + 2 s, and 8 boots.
    let time = "duration: about 96 s, and some for applying settings; and 8 boots, typically 15-30 s each under emulation: \
                2 min to 4 min\n";
    assert!(stdout.contains(time), "{stdout}");
}

#[test]
fn plan_tells_comparisons_between_boots_from_those_within() {
    let (stdout, stderr) = irqlab(&["plan", "x.exp"]).file("x.exp", BOOTED).host("vm-2cpu-virtio").run(0);
    assert_eq!(stderr, "");
    assert!(stdout.contains("  apic=none: kernel command line with noapic\n"), "{stdout}");
    assert!(stdout.contains("; and 8 boots of this host\n"), "{stdout}");
    assert!(
        stdout.contains("  within a boot (routing): smallest detectable effect (power 80 %): 2.94 times"),
        "{stdout}"
    );
    assert!(
        stdout.contains("  between whole plots (apic; 4 boots a level): 2.94 times the variation from boot"),
        "{stdout}"
    );
    let few = BOOTED.replace("repeat 4", "repeat 2");
    let (stdout, _) = irqlab(&["plan", "x.exp"]).file("x.exp", &few).host("vm-2cpu-virtio").run(0);
    assert!(stdout.contains("(apic; 2 boots a level): nothing: at least 3 blocks"), "{stdout}");
}

#[test]
fn plan_says_what_a_host_cannot_do() {
    let (_, stderr) = irqlab(&["plan", "x.exp"])
        .file("x.exp", &ROUTES.replace("irq 41 -> cpu 1", "irq 36 -> cpu 1"))
        .host("vm-2cpu-virtio")
        .run(4);
    assert!(stderr.starts_with("error: irq 36 cannot be moved: managed by the kernel"), "{stderr}");
}

#[test]
fn an_experiment_that_is_not_there_is_named_with_those_that_are() {
    irqlab(&["plan", "x.exp", "--only", "y"])
        .file("x.exp", ROUTES)
        .stderr("error: no experiment `y` here; there are: x\n")
        .ends_with(2);
}

#[test]
fn irqs_as_json_tells_which_move() {
    let (stdout, stderr) = irqlab(&["irqs", "--json"]).host("vm-2cpu-virtio").run(0);
    assert_eq!(stderr, "");
    let irqs: Vec<serde_json::Value> = serde_json::from_str(&stdout).unwrap();
    let irq = |number: u32| irqs.iter().find(|irq| irq["irq"] == number).unwrap();
    assert_eq!(irqs.len(), 19);
    assert_eq!((&irq(36)["movable"], &irq(36)["device"]), (&false.into(), &"vda".into()));
    assert_eq!((&irq(38)["movable"], &irq(38)["device"]), (&true.into(), &"eth0".into()));
    assert_eq!((&irq(38)["affinity"], &irq(38)["driver"]), (&"0-1".into(), &"virtio_net".into()));
}

#[test]
fn host_tells_what_would_disturb_and_the_remedy() {
    let (stdout, stderr) = irqlab(&["host"]).host("vm-2cpu-virtio").run(0);
    assert_eq!(stderr, "");
    assert!(stdout.contains("\n  eth0       virtio_net, 0000:00:03.0, IRQ 37-39\n"), "{stdout}");
    assert!(stdout.contains("\n  - this is not bare metal (`kvm`)"), "{stdout}");
}

#[test]
fn restore_without_a_journal_has_nothing_to_do() {
    let case = irqlab(&["restore"]).stdout("nothing to put back\n").ends_with(0);
    assert!(!case.folder.path().join("state").exists());
}

#[test]
fn report_check_sees_a_changed_report() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/smb_throughput_2003");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let case = irqlab(&["report", "--check", "recording.jsonl"])
        .file("recording.jsonl", &read("recording.jsonl"))
        .file("README.md", &format!("{}\nAnd it is faster.\n", read("README.md")));
    let (stdout, stderr) = case.run(1);
    assert_eq!(stdout, "");
    assert!(stderr.contains("README.md"), "{stderr}");
    assert!(case.read("README.md").ends_with("And it is faster.\n"));
}

#[test]
fn report_prints_its_numbers_as_json_and_writes_nothing() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("reports/compute_vs_irqs_2001");
    let recording = std::fs::read_to_string(folder.join("recording.jsonl")).unwrap();
    let case = irqlab(&["report", "recording.jsonl", "--format", "json"]).file("recording.jsonl", &recording);
    let (stdout, _) = case.run(0);
    let found: serde_json::Value = serde_json::from_str(&stdout).unwrap();
    let comparison = &found["comparisons"][0];
    assert_eq!((&comparison["verdict"], &comparison["n"]), (&"inconclusive".into(), &3.into()));
    assert!((comparison["ratio"].as_f64().unwrap() - 1.023).abs() < 5e-4);
    assert!((comparison["p_exact"].as_f64().unwrap() - 0.1).abs() < 1e-12);
    irqlab(&["report", "recording.jsonl", "--format", "json", "--check"]).file("recording.jsonl", &recording).run(2);
}

#[test]
fn a_recording_that_is_none_is_a_wrong_file() {
    irqlab(&["report", "recording.jsonl"])
        .file("recording.jsonl", "hello\n")
        .stderr("error: recording.jsonl: line 1 is not a line of a recording: expected value at line 1 column 1\n")
        .ends_with(3);
}

#[test]
fn usage_errors_end_with_status_2_and_help_with_0() {
    let (stdout, stderr) = irqlab(&["frob"]).run(2);
    assert!(stdout.is_empty() && stderr.starts_with("error: unrecognized subcommand 'frob'"), "{stderr}");
    let (_, stderr) = irqlab(&["check", "x.exp", "--set", "x"]).run(2);
    assert!(stderr.contains("write it as NAME=VALUE"), "{stderr}");
    let (stdout, stderr) = irqlab(&[]).run(2);
    assert!(stdout.is_empty() && stderr.contains("Exit status:"), "{stderr}");
    let (stdout, stderr) = irqlab(&["--help"]).run(0);
    assert!(stderr.is_empty() && stdout.contains("Exit status:"), "{stdout}");
    irqlab(&["--version"]).stdout(concat!("irqlab ", env!("CARGO_PKG_VERSION"), "\n")).ends_with(0);
}
