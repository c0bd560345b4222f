//! A host that is a map of files: it fails, dies and misbehaves on demand.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use irqlab::bind::{Change, ChangeKind, IrqIdentity, OnRefusal};
use irqlab::cpu_set::{Cpu, CpuSet, Irq};
use irqlab::design::ServiceState;
use irqlab::host::files::{Files, SystemError};
use irqlab::settings::{Ended, Program, Settings, System};
use irqlab::source::Span;

pub(crate) const EPERM: i32 = 1;
pub(crate) const ENOENT: i32 = 2;
pub(crate) const ESRCH: i32 = 3;
pub(crate) const EIO: i32 = 5;
pub(crate) const EACCES: i32 = 13;
pub(crate) const EBUSY: i32 = 16;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const ENOSPC: i32 = 28;
pub(crate) const EROFS: i32 = 30;
pub(crate) const EOVERFLOW: i32 = 75;

pub(crate) const RUNNER: u32 = 900;
pub(crate) const SMT: &str = "/sys/devices/system/cpu/smt/control";
pub(crate) const SYSCTL: &str = "/proc/sys/kernel/nmi_watchdog";

/// What goes wrong at a step.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Fault {
    /// This step fails.
    Once(i32),
    /// The runner is killed before this step has an effect: nothing works any more.
    Killed,
    /// The runner is killed after this step had its effect.
    KilledAfter,
}

/// Writing `value` to `cause` changes other files too.
pub(crate) struct Effect {
    pub(crate) cause: &'static str,
    pub(crate) value: &'static str,
    pub(crate) others: Vec<(String, String)>,
}

/// A kernel that is a map of files.
pub(crate) struct Scripted {
    pub(crate) files: RefCell<BTreeMap<String, Vec<u8>>>,
    pub(crate) links: BTreeMap<String, String>,
    /// What else a write changes.
    pub(crate) effects: Vec<Effect>,
    /// Writes to this path are taken and thrown away.
    pub(crate) deaf: Option<&'static str>,
    /// Writes to this path fail so often, then work.
    pub(crate) stubborn: RefCell<BTreeMap<String, (i32, u32)>>,
    pub(crate) step: Cell<usize>,
    pub(crate) fault: Cell<Option<(usize, Fault)>>,
    pub(crate) dead: Cell<bool>,
    /// Every effect on the host, in order.
    pub(crate) log: RefCell<Vec<String>>,
}

impl Scripted {
    pub(crate) fn new() -> Self {
        let host = Scripted {
            files: RefCell::default(),
            links: BTreeMap::new(),
            effects: Vec::new(),
            deaf: None,
            stubborn: RefCell::default(),
            step: Cell::new(0),
            fault: Cell::new(None),
            dead: Cell::new(false),
            log: RefCell::default(),
        };
        host.set("/proc/sys/kernel/random/boot_id", "boot-1\n");
        host.set("/proc/irq/default_smp_affinity", "f\n");
        host.set(SYSCTL, "1\n");
        host.set(SMT, "on\n");
        host.set("/proc/mounts", "");
        host.set("/sys/devices/system/cpu/possible", "0-3\n");
        host.set("/sys/devices/system/cpu/online", "0-3\n");
        host.set("/sys/devices/system/cpu/cpu0/topology/core_id", "0\n");
        host.set("/sys/devices/system/cpu/cpu3/online", "1\n");
        for (irq, action, mask) in [(10, "eth0-rx-0", "f"), (11, "eth0-rx-1", "c"), (12, "nvme0q1", "f")] {
            host.set(&mask_path(irq), &format!("{mask}\n"));
            host.set(&format!("/sys/kernel/irq/{irq}/actions"), &format!("{action}\n"));
            host.set(&format!("/sys/kernel/irq/{irq}/chip_name"), "PCI-MSIX-0000:00:03.0\n");
            host.set(&format!("/sys/kernel/irq/{irq}/hwirq"), &format!("{irq}\n"));
        }
        host.task(Task { tid: 1, parent: 0, start: 1, name: "init", ..Task::default() });
        host.task(Task { tid: 2, parent: 0, start: 1, name: "ksoftirqd/0", flags: 0x0420_0040, mask: "1" });
        host.task(Task { tid: 100, parent: 1, start: 50, name: "sshd", ..Task::default() });
        host.task(Task { tid: 101, parent: 1, start: 60, name: "db", mask: "6", ..Task::default() });
        host.task(Task { tid: RUNNER, parent: 100, start: 80, name: "irqlab", ..Task::default() });
        host
    }

    pub(crate) fn set(&self, path: &str, text: &str) {
        self.files.borrow_mut().insert(path.to_owned(), text.as_bytes().to_vec());
    }

    pub(crate) fn text(&self, path: &str) -> String {
        String::from_utf8(self.files.borrow().get(path).cloned().unwrap_or_default()).unwrap()
    }

    pub(crate) fn remove(&self, folder: &str) {
        self.files.borrow_mut().retain(|path, _| !path.starts_with(folder));
    }

    pub(crate) fn task(&self, task: Task) {
        let Task { tid, parent, start, name, flags, mask } = task;
        let mut stat = format!("{tid} ({name}) S {parent} 0 0 0 0 {flags}");
        for field in 10..=52 {
            let value = if field == 22 { start } else { 0 };
            write!(stat, " {value}").unwrap();
        }
        for folder in [format!("/proc/{tid}"), format!("/proc/{tid}/task/{tid}")] {
            self.set(&format!("{folder}/stat"), &format!("{stat}\n"));
            self.set(
                &format!("{folder}/status"),
                &format!("Name:\t{name}\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nCpus_allowed:\t{mask}\n"),
            );
        }
    }

    pub(crate) fn mask_of(&self, tid: u32) -> String {
        let status = self.text(&format!("/proc/{tid}/task/{tid}/status"));
        status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:\t")).unwrap_or_default().to_owned()
    }

    pub(crate) fn fail_at(&self, step: usize, fault: Fault) {
        self.step.set(0);
        self.fault.set(Some((step, fault)));
    }

    pub(crate) fn revive(&self) {
        self.fault.set(None);
        self.dead.set(false);
        self.log.borrow_mut().clear();
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.borrow().clone()
    }

    /// Counts a step. `Ok(true)`: do it, then die.
    fn step(&self, action: &'static str, path: &str) -> Result<bool, SystemError> {
        let step = self.step.replace(self.step.get() + 1);
        let fail = |errno| Err(SystemError::new(action, path, io::Error::from_raw_os_error(errno)));
        if self.dead.get() {
            return fail(EIO);
        }
        match self.fault.get() {
            Some((at, fault)) if at == step => match fault {
                Fault::Once(errno) => fail(errno),
                Fault::Killed => {
                    self.dead.set(true);
                    fail(EIO)
                }
                Fault::KilledAfter => Ok(true),
            },
            _ => Ok(false),
        }
    }

    fn after(&self, dies: bool, entry: String) {
        self.log.borrow_mut().push(entry);
        self.dead.set(self.dead.get() || dies);
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Task {
    pub(crate) tid: u32,
    pub(crate) parent: u32,
    pub(crate) start: u64,
    pub(crate) name: &'static str,
    pub(crate) flags: u32,
    pub(crate) mask: &'static str,
}

impl Default for Task {
    fn default() -> Self {
        Task { tid: 0, parent: 1, start: 0, name: "", flags: 0, mask: "f" }
    }
}

impl Files for Scripted {
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
        let dies = self.step("read", path)?;
        self.dead.set(self.dead.get() || dies);
        let gone = || SystemError::new("read", path, io::Error::from_raw_os_error(ENOENT));
        self.files.borrow().get(path).cloned().ok_or_else(gone)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, SystemError> {
        self.step("list", path)?;
        let folder = format!("{}/", path.trim_end_matches('/'));
        let files = self.files.borrow();
        let mut names: Vec<String> =
            files.keys().filter_map(|file| Some(file.strip_prefix(&folder)?.split('/').next()?.to_owned())).collect();
        names.dedup();
        if names.is_empty() {
            return Err(SystemError::new("list", path, io::Error::from_raw_os_error(ENOENT)));
        }
        Ok(names)
    }

    fn mode(&self, path: &str) -> Result<u32, SystemError> {
        let folder = format!("{path}/");
        let files = self.files.borrow();
        if files.contains_key(path) || files.keys().any(|file| file.starts_with(&folder)) {
            return Ok(0o644);
        }
        Err(SystemError::new("look at", path, io::Error::from_raw_os_error(ENOENT)))
    }

    fn resolve(&self, path: &str) -> Result<PathBuf, SystemError> {
        let gone = || SystemError::new("resolve", path, io::Error::from_raw_os_error(ENOENT));
        self.links.get(path).map(PathBuf::from).ok_or_else(gone)
    }
}

impl System for Scripted {
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), SystemError> {
        let dies = self.step("write", path)?;
        let fail = |errno| Err(SystemError::new("write", path, io::Error::from_raw_os_error(errno)));
        if let Some((errno, times)) = self.stubborn.borrow_mut().get_mut(path)
            && *times > 0
        {
            *times -= 1;
            self.log.borrow_mut().push(format!("{path} refused"));
            return fail(*errno);
        }
        if !self.files.borrow().contains_key(path) {
            return fail(ENOENT);
        }
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        if self.deaf != Some(path) {
            self.set(path, &text);
        }
        for effect in &self.effects {
            if effect.cause == path && effect.value == text {
                for (other, text) in &effect.others {
                    self.set(other, text);
                }
            }
        }
        self.after(dies, format!("{path} = {}", text.trim()));
        Ok(())
    }

    fn set_affinity(&self, tid: u32, cpus: &CpuSet) -> Result<(), SystemError> {
        let path = format!("/proc/{tid}/task/{tid}/status");
        let dies = self.step("set the affinity of", &path)?;
        if !self.files.borrow().contains_key(&path) {
            return Err(SystemError::new("bind", path, io::Error::from_raw_os_error(ESRCH)));
        }
        let old = format!("Cpus_allowed:\t{}", self.mask_of(tid));
        let new = format!("Cpus_allowed:\t{}", cpus.to_mask_like("f"));
        let text = self.text(&path).replace(&old, &new);
        self.set(&path, &text);
        self.after(dies, format!("task {tid} on {cpus}"));
        Ok(())
    }

    fn terminate(&self, pid: u32) -> Result<(), SystemError> {
        let dies = self.step("terminate", "")?;
        self.remove(&format!("/proc/{pid}/"));
        self.after(dies, format!("terminate {pid}"));
        Ok(())
    }

    fn run(&self, command: &[String]) -> Result<Ended, SystemError> {
        let dies = self.step("run", &command[0])?;
        self.after(dies, format!("run {}", command.join(" ")));
        let success = !command[0].ends_with("false");
        let status = format!("exit status: {}", u32::from(!success));
        Ok(Ended { success, status, stdout: String::new(), stderr: "no such device".to_owned() })
    }

    fn start(&self, program: &Program) -> Result<(), SystemError> {
        let dies = self.step("start", &program.executable)?;
        self.task(Task { tid: 700, parent: RUNNER, start: 999, name: "irqbalance", ..Task::default() });
        self.set("/proc/700/cmdline", &program.arguments.iter().flat_map(|word| [word, "\0"]).collect::<String>());
        let environment = program.environment.iter().flatten();
        let environment: Vec<String> = environment.map(|(name, value)| format!("{name}={value}\0")).collect();
        self.set("/proc/700/environ", &environment.concat());
        self.after(dies, format!("start {} {}", program.executable, program.arguments.join(" ")));
        Ok(())
    }

    fn own_pid(&self) -> u32 {
        RUNNER
    }

    fn is_root(&self) -> bool {
        true
    }

    fn pause(&self, _: Duration) {}
}

pub(crate) fn mask_path(irq: u32) -> String {
    format!("/proc/irq/{irq}/smp_affinity")
}

pub(crate) fn change(kind: ChangeKind) -> Change {
    Change { kind, span: Span { start: 5, end: 9, ..Span::default() } }
}

pub(crate) fn cpus(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

pub(crate) fn identity(irq: u32) -> IrqIdentity {
    let action = match irq {
        10 => "eth0-rx-0",
        11 => "eth0-rx-1",
        _ => "nvme0q1",
    };
    IrqIdentity {
        irq: Irq(irq),
        actions: vec![action.to_owned()],
        chip: "PCI-MSIX-0000:00:03.0".to_owned(),
        hwirq: Some(irq.to_string()),
        device: None,
    }
}

pub(crate) fn route(irq: u32, list: &str) -> Change {
    change(ChangeKind::Affinity { identity: identity(irq), mask: cpus(list), on_refusal: OnRefusal::Fail })
}

pub(crate) fn file(path: &str, value: &str) -> Change {
    change(ChangeKind::File { path: path.to_owned(), value: value.to_owned() })
}

pub(crate) fn tasks(pattern: &str, list: &str) -> Change {
    change(ChangeKind::Tasks { pattern: pattern.to_owned(), cpus: cpus(list) })
}

pub(crate) fn service(state: ServiceState) -> Change {
    change(ChangeKind::Service { name: "irqbalance".to_owned(), state, options: vec![] })
}

/// `service irqbalance started` with options.
pub(crate) fn started_with(options: &[&str]) -> Change {
    let options = options.iter().map(|option| (*option).to_owned()).collect();
    change(ChangeKind::Service { name: "irqbalance".to_owned(), state: ServiceState::Started, options })
}

/// One change of most kinds.
pub(crate) fn everything() -> Vec<Change> {
    vec![
        route(10, "0"),
        route(11, "1"),
        change(ChangeKind::DefaultAffinity { mask: cpus("0-1") }),
        file(SYSCTL, "0"),
        change(ChangeKind::Smt { on: false }),
        change(ChangeKind::CpuOnline { cpu: Cpu(3), online: false }),
        tasks("*", "1"),
    ]
}

/// In memory where there is such a place: thousands of journals are synced.
pub(crate) fn state_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

pub(crate) fn open<'a>(host: &'a Scripted, folder: &Path) -> Settings<'a> {
    Settings::open(host, folder, "spread").unwrap()
}

/// The host's own state, without what the kernel made of numbers of steps.
pub(crate) fn snapshot(host: &Scripted) -> BTreeMap<String, Vec<u8>> {
    host.files.borrow().clone()
}
