//! Settings on the running kernel: what is set is set, and what is put back is byte for byte what it was. Needs root
//! and two CPUs; moves one idle interrupt and the tasks the tests start.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use irqlab::bind::{Change, ChangeKind, IrqIdentity, OnRefusal};
use irqlab::cpu_set::{Cpu, CpuSet, Irq};
use irqlab::host::files::Files;
use irqlab::settings::{Apply, Live, OpenError, Settings, System, current, restore_unfinished};
use irqlab::source::Span;

use crate::probe::skip;

/// The host is one: tests that change it take turns.
static HOST: Mutex<()> = Mutex::new(());

/// Where the process that is to be killed keeps its journal. Set for that process only.
const HELD: &str = "IRQLAB_TEST_HELD";

fn host() -> Option<MutexGuard<'static, ()>> {
    let live = Live::new();
    let online = live.read_text("/sys/devices/system/cpu/online").unwrap_or_default();
    let why = if !live.is_root() {
        "settings on the running kernel need root"
    } else if CpuSet::parse_list(&online).is_ok_and(|online| online.len() < 2) {
        "settings on the running kernel need two CPUs"
    } else {
        return Some(HOST.lock().unwrap_or_else(PoisonError::into_inner));
    };
    skip(why);
    None
}

/// The interrupt with the fewest counts among those that can be moved.
fn idle_irq(live: &Live) -> Option<IrqIdentity> {
    let text = |irq: u32, name: &str| live.read_text(&format!("/sys/kernel/irq/{irq}/{name}")).unwrap_or_default();
    let movable = |irq: &u32| {
        let path = format!("/proc/irq/{irq}/smp_affinity");
        let mask = live.read_text(&path).ok().and_then(|mask| CpuSet::parse_mask(&mask).ok()).unwrap_or_default();
        live.mode(&path).is_ok_and(|mode| mode & 0o200 != 0) && mask.len() > 1 && !text(*irq, "actions").is_empty()
    };
    let irqs = live.list("/proc/irq").ok()?.into_iter().filter_map(|name| name.parse().ok()).filter(movable);
    let count = |irq: &u32| text(*irq, "per_cpu_count").split(',').filter_map(|count| count.parse::<u64>().ok()).sum();
    let irq = irqs.min_by_key(|irq| -> u64 { count(irq) })?;
    Some(IrqIdentity {
        irq: Irq(irq),
        actions: text(irq, "actions").split(',').map(str::to_owned).collect(),
        chip: text(irq, "chip_name"),
        hwirq: Some(text(irq, "hwirq")),
        device: None,
    })
}

fn route(identity: &IrqIdentity) -> Change {
    let mask = CpuSet::single(Cpu(0));
    let kind = ChangeKind::Affinity { identity: identity.clone(), mask, on_refusal: OnRefusal::Fail };
    Change { kind, span: Span::default() }
}

fn tasks(pattern: &str, cpu: u32) -> Change {
    let kind = ChangeKind::Tasks { pattern: pattern.to_owned(), cpus: CpuSet::single(Cpu(cpu)) };
    Change { kind, span: Span::default() }
}

/// Every mask of the host.
fn masks(live: &Live) -> BTreeMap<String, Vec<u8>> {
    let names = live.list("/proc/irq").unwrap().into_iter();
    let paths = names.map(|name| format!("/proc/irq/{name}/smp_affinity"));
    let mut masks: BTreeMap<_, _> = paths.filter_map(|path| Some((path.clone(), live.read(&path).ok()?))).collect();
    let default = "/proc/irq/default_smp_affinity";
    masks.insert(default.to_owned(), live.read(default).unwrap());
    masks
}

fn allowed(pid: u32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:\t")).unwrap().to_owned()
}

/// Processes of a name; nobody may have waited for those that ended.
fn living(name: &str) -> Vec<u32> {
    let live = Live::new();
    let pids = live.list("/proc").unwrap().into_iter().filter_map(|pid| pid.parse::<u32>().ok());
    let stat = |pid: &u32| live.read_text(&format!("/proc/{pid}/stat")).unwrap_or_default();
    pids.filter(|pid| stat(pid).contains(&format!("({name}) ")) && !stat(pid).contains(") Z ")).collect()
}

/// A process that does not descend from this one, under a name of its own; killed when dropped.
struct Stranger {
    pid: u32,
    children: Vec<u32>,
    folder: tempfile::TempDir,
}

impl Stranger {
    /// Starts a shell script called `name` that makes a child when told to.
    fn start(name: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join(name);
        let text = "#!/bin/sh\necho $$ >pid.new; mv pid.new pid\nuntil [ -e fork ]; do sleep 0.02; done\n\
                    sleep 300 &\necho $! >child.new; mv child.new child\nwait\n";
        fs::write(&script, text).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        // The shell in between ends at once, and so the script is nobody's child here.
        let status = Command::new("/bin/sh")
            .args(["-c", "\"$0\" </dev/null >/dev/null 2>&1 &"])
            .arg(&script)
            .current_dir(folder.path())
            .status()
            .unwrap();
        assert!(status.success());
        let pid = number(&folder.path().join("pid"));
        Stranger { pid, children: Vec::new(), folder }
    }

    fn fork(&mut self) -> u32 {
        fs::write(self.folder.path().join("fork"), "").unwrap();
        let child = number(&self.folder.path().join("child"));
        self.children.push(child);
        child
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        for pid in self.children.iter().chain([&self.pid]) {
            let _ = Command::new("kill").args(["-9", &pid.to_string()]).status();
        }
    }
}

/// The number in a file that is about to appear.
fn number(path: &Path) -> u32 {
    let end = Instant::now() + Duration::from_secs(30);
    while Instant::now() < end {
        if let Some(number) = fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok()) {
            return number;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("{} never came", path.display());
}

#[test]
fn a_real_interrupt_moves_and_comes_back() {
    let Some(_turn) = host() else { return };
    let live = Live::new();
    let Some(identity) = idle_irq(&live) else { return skip("no interrupt of this host can be moved") };
    let folder = tempfile::tempdir().unwrap();
    let before = masks(&live);
    let change = route(&identity);
    let mut settings = Settings::open(&live, folder.path(), "live").unwrap();
    let entered = settings.enter(std::slice::from_ref(&change)).unwrap();
    assert_eq!((entered.written, current(&change, &live).unwrap().as_str()), (1, "cpu 0"));
    assert_eq!(settings.verify(), Vec::new());
    assert_ne!(masks(&live), before);
    assert_eq!(settings.enter(&[change]).unwrap().written, 0);
    let restored = settings.restore();
    assert_eq!((restored.restored, restored.failed.len(), restored.remarks.len()), (1, 0, 0), "{restored:?}");
    assert_eq!(masks(&live), before);
}

#[test]
fn a_real_task_and_its_child_come_back() {
    let Some(_turn) = host() else { return };
    let live = Live::new();
    let folder = tempfile::tempdir().unwrap();
    let mut stranger = Stranger::start("irqlab-moved");
    let before = allowed(stranger.pid);
    let mut settings = Settings::open(&live, folder.path(), "live").unwrap();
    let entered = settings.enter(&[tasks("irqlab-moved", 1)]).unwrap();
    assert!(entered.remarks[0].starts_with("tasks irqlab-moved on cpu 1: 1 moved"), "{entered:?}");
    let child = stranger.fork();
    let on_one = CpuSet::single(Cpu(1));
    for pid in [stranger.pid, child] {
        assert_eq!(CpuSet::parse_mask(&allowed(pid)).unwrap(), on_one);
    }
    assert_eq!(settings.verify(), Vec::new());
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    assert_eq!([allowed(stranger.pid), allowed(child)], [before.clone(), before]);
}

#[test]
fn a_real_service_is_ended_and_started_as_it_was() {
    let Some(_turn) = host() else { return };
    let live = Live::new();
    if live.exists("/run/systemd/system") {
        return skip("a process stands for a service only where systemd does not run");
    }
    let folder = tempfile::tempdir().unwrap();
    let sleep = folder.path().join("irqlab-service");
    fs::copy(fs::canonicalize("/bin/sleep").unwrap(), &sleep).unwrap();
    let pid_file = folder.path().join("pid");
    let status = Command::new("/bin/sh")
        .args(["-c", "taskset -c 1 \"$0\" 300 </dev/null >/dev/null 2>&1 & echo $! >pid"])
        .arg(&sleep)
        .env("IRQLAB_TEST_MARK", "kept")
        .current_dir(folder.path())
        .status()
        .unwrap();
    assert!(status.success());
    let pid = number(&pid_file);
    let end = Instant::now() + Duration::from_secs(30);
    while fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name != "irqlab-service\n") {
        assert!(Instant::now() < end, "the service never started");
        std::thread::sleep(Duration::from_millis(5));
    }
    let facts = |pid: u32| {
        let read = |name: &str| fs::read(format!("/proc/{pid}/{name}")).unwrap();
        let cwd = fs::read_link(format!("/proc/{pid}/cwd")).unwrap();
        let environment = String::from_utf8_lossy(&read("environ")).into_owned();
        let variables: BTreeSet<String> = environment.split('\0').map(str::to_owned).collect();
        (read("cmdline"), variables, cwd, allowed(pid))
    };
    let before = facts(pid);
    let state = irqlab::design::ServiceState::Stopped;
    let change = Change {
        kind: ChangeKind::Service { name: "irqlab-service".to_owned(), state, options: vec![] },
        span: Span::default(),
    };
    let journal = tempfile::tempdir().unwrap();
    let mut settings = Settings::open(&live, journal.path(), "live").unwrap();
    settings.enter(std::slice::from_ref(&change)).unwrap();
    assert_eq!(current(&change, &live).unwrap(), "stopped");
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    let again = living("irqlab-service");
    assert_eq!(again.len(), 1);
    let after = facts(again[0]);
    live.terminate(again[0]).unwrap();
    assert!(after == before, "command line, environment, directory or CPUs differ");
    assert!(before.1.contains("IRQLAB_TEST_MARK=kept") && before.3.ends_with('2'));
}

#[test]
fn a_runner_killed_with_settings_in_force_is_put_back_by_restore() {
    let Some(_turn) = host() else { return };
    let live = Live::new();
    if idle_irq(&live).is_none() {
        return skip("no interrupt of this host can be moved");
    }
    let before = masks(&live);
    let folder = tempfile::tempdir().unwrap();
    let stranger = Stranger::start("irqlab-held");
    let cpus = allowed(stranger.pid);
    let mut holder = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "live::holds_settings_for_the_test_that_kills_it", "--nocapture"])
        .env(HELD, folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = BufReader::new(holder.stdout.take().unwrap());
    assert!(output.lines().any(|line| line.unwrap().contains("in force")), "the holder ended early");
    let refused = Settings::open(&live, folder.path(), "next").map(|_| ()).unwrap_err();
    assert!(matches!(refused, OpenError::Locked { pid } if pid == Some(holder.id())), "{refused}");
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert_ne!(masks(&live), before);
    assert_ne!(allowed(stranger.pid), cpus);
    let refused = Settings::open(&live, folder.path(), "next").map(|_| ()).unwrap_err();
    assert!(matches!(refused, OpenError::Unfinished { .. }), "{refused}");
    let restored = restore_unfinished(&live, folder.path()).unwrap().unwrap();
    // The script's own short-lived children may count too.
    assert!(restored.restored >= 2 && restored.failed.is_empty(), "{restored:?}");
    assert_eq!((masks(&live), allowed(stranger.pid)), (before, cpus));
    assert_eq!(restore_unfinished(&live, folder.path()).unwrap(), None);
}

/// Not a test by itself: the process that the test above kills.
#[test]
fn holds_settings_for_the_test_that_kills_it() {
    let Some(folder) = std::env::var_os(HELD).map(PathBuf::from) else { return };
    let live = Live::new();
    let identity = idle_irq(&live).unwrap();
    let mut settings = Settings::open(&live, &folder, "held").unwrap();
    settings.enter(&[route(&identity), tasks("irqlab-held", 1)]).unwrap();
    println!("in force");
    std::io::stdout().flush().unwrap();
    // Until it is killed, or the test that started it is.
    std::io::stdin().lines().for_each(drop);
}
