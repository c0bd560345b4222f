//! Copies what is known of a host into a folder that serves as `--root`, without what identifies the host: no host
//! name, serial number or address. Writes below that folder only.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::command_line::without_identity;
use super::files::{Files, MODES_FILE, SystemError};
use super::machine::parameter_files;
use super::tasks::{read_irq_threads, read_writer_pids};

/// What was made.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Captured {
    /// Files copied.
    pub files: u32,
    /// Symlinks made.
    pub links: u32,
    /// What exists and could not be read, with the reason.
    pub skipped: Vec<String>,
}

/// Single files. `*` stands for one part of a path.
const FILES: &[&str] = &[
    "/proc/1/comm",
    "/proc/cmdline",
    "/proc/cpuinfo",
    "/proc/interrupts",
    "/proc/irq/*/affinity_hint",
    "/proc/irq/*/effective_affinity",
    "/proc/irq/*/effective_affinity_list",
    "/proc/irq/*/node",
    "/proc/irq/*/smp_affinity",
    "/proc/irq/*/smp_affinity_list",
    "/proc/irq/default_smp_affinity",
    "/proc/meminfo",
    "/proc/self/mountinfo",
    "/proc/softirqs",
    "/proc/stat",
    "/proc/sys/kernel/arch",
    "/proc/sys/kernel/nmi_watchdog",
    "/proc/sys/kernel/numa_balancing",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/kernel/perf_event_paranoid",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/timer_migration",
    "/proc/sys/kernel/version",
    "/proc/sys/kernel/watchdog",
    "/proc/sys/kernel/watchdog_thresh",
    "/proc/sys/vm/stat_interval",
    "/run/systemd/container",
    "/sys/class/dmi/id/product_name",
    "/sys/class/dmi/id/sys_vendor",
    "/sys/devices/system/clocksource/clocksource0/available_clocksource",
    "/sys/devices/system/clocksource/clocksource0/current_clocksource",
    "/sys/devices/system/cpu/*/cache/*/level",
    "/sys/devices/system/cpu/*/cache/*/shared_cpu_list",
    "/sys/devices/system/cpu/*/cache/*/type",
    "/sys/devices/system/cpu/*/cpufreq/scaling_governor",
    "/sys/devices/system/cpu/*/online",
    "/sys/devices/system/cpu/*/topology/core_cpus_list",
    "/sys/devices/system/cpu/*/topology/core_id",
    "/sys/devices/system/cpu/*/topology/physical_package_id",
    "/sys/devices/system/cpu/*/topology/thread_siblings_list",
    "/sys/devices/system/cpu/cpufreq/boost",
    "/sys/devices/system/cpu/intel_pstate/no_turbo",
    "/sys/devices/system/cpu/isolated",
    "/sys/devices/system/cpu/nohz_full",
    "/sys/devices/system/cpu/offline",
    "/sys/devices/system/cpu/online",
    "/sys/devices/system/cpu/possible",
    "/sys/devices/system/cpu/smt/active",
    "/sys/devices/system/cpu/smt/control",
    "/sys/devices/system/cpu/vulnerabilities/*",
    "/sys/devices/system/node/*/cpulist",
    "/sys/fs/cgroup/cgroup.controllers",
    "/sys/fs/cgroup/unified/cgroup.controllers",
    "/sys/hypervisor/type",
    "/sys/kernel/irq/*/actions",
    "/sys/kernel/irq/*/chip_name",
    "/sys/kernel/irq/*/hwirq",
];

/// What counts events; only whether the CPUs do is copied.
const EVENT_SOURCES: &str = "/sys/bus/event_source/devices";

/// Symlinks, and files below what they lead to.
const LINKS: &[(&str, &[&str])] = &[
    ("/sys/block/*", &["device"]),
    ("/sys/bus/pci/devices/*", &["driver"]),
    ("/sys/bus/virtio/devices/*", &["driver"]),
    ("/sys/class/net/*", &["device"]),
    ("/sys/class/nvme/*", &["device"]),
];

/// Files of a PCI function.
const FUNCTION_FILES: &[&str] = &["class", "irq", "msi_irqs/*", "numa_node"];

/// Copies the host into `folder`, which is made or is empty.
pub fn capture(files: &dyn Files, folder: &Path) -> Result<Captured, SystemError> {
    let mut copy = Copy { files, folder, modes: String::new(), captured: Captured::default() };
    copy.prepare()?;
    for pattern in FILES {
        for path in expand(files, pattern) {
            copy.file(&path)?;
        }
    }
    for pid in read_writer_pids(files) {
        copy.file(&format!("/proc/{pid}/comm"))?;
    }
    let command_line = files.read_text("/proc/cmdline").unwrap_or_default();
    for path in parameter_files(&without_identity(&command_line, None)).into_values().filter(|path| files.exists(path))
    {
        copy.file(&path)?;
    }
    for (pid, _) in read_irq_threads(files) {
        copy.file(&format!("/proc/{pid}/comm"))?;
        copy.file(&format!("/proc/{pid}/stat"))?;
    }
    if files.exists(EVENT_SOURCES) {
        copy.write(&format!("{EVENT_SOURCES}/present"), b"")?;
        for device in files.list(EVENT_SOURCES)?.iter().filter(|device| device.starts_with("cpu")) {
            copy.write(&format!("{EVENT_SOURCES}/{device}"), b"")?;
        }
    }
    for path in ["/.dockerenv", "/run/.containerenv"].into_iter().filter(|path| files.exists(path)) {
        copy.write(path, b"")?;
    }
    if files.exists("/run/systemd/system") {
        copy.write("/run/systemd/system/present", b"")?;
    }
    for (pattern, inner) in LINKS {
        for path in expand(files, pattern) {
            copy.device(&path, inner)?;
        }
    }
    let modes = std::mem::take(&mut copy.modes);
    copy.write(&format!("/{MODES_FILE}"), modes.as_bytes())?;
    Ok(copy.captured)
}

struct Copy<'a> {
    files: &'a dyn Files,
    folder: &'a Path,
    modes: String,
    captured: Captured,
}

impl Copy<'_> {
    fn prepare(&self) -> Result<(), SystemError> {
        let failed = |source| SystemError::new("make", self.folder, source);
        if self.folder.exists() {
            let mut entries = fs::read_dir(self.folder).map_err(failed)?;
            return match entries.next() {
                None => Ok(()),
                Some(_) => Err(failed(io::Error::new(io::ErrorKind::AlreadyExists, "the folder is not empty"))),
            };
        }
        DirBuilder::new().recursive(true).mode(0o755).create(self.folder).map_err(failed)
    }

    /// A link from a class or bus to a device, with what lies below the device. Virtual devices are left out, and
    /// interfaces named after their MAC address.
    fn device(&mut self, path: &str, inner: &[&str]) -> Result<(), SystemError> {
        let name = path.rsplit('/').next().unwrap_or_default();
        let Ok(place) = self.files.resolve(path) else { return Ok(()) };
        if place.starts_with("/sys/devices/virtual") && !name.starts_with("nvme") || is_named_by_address(name) {
            return Ok(());
        }
        let place = place.to_string_lossy().into_owned();
        self.link(path, Path::new(&place))?;
        for inner in inner {
            let Ok(target) = self.files.resolve(&format!("{place}/{inner}")) else { continue };
            self.link(&format!("{place}/{inner}"), &target)?;
        }
        for ancestor in Path::new(&place).ancestors().take_while(|path| path.starts_with("/sys/devices/")) {
            let ancestor = ancestor.to_string_lossy();
            if let Ok(driver) = self.files.resolve(&format!("{ancestor}/driver")) {
                self.link(&format!("{ancestor}/driver"), &driver)?;
            }
            for pattern in FUNCTION_FILES {
                for file in expand(self.files, &format!("{ancestor}/{pattern}")) {
                    self.file(&file)?;
                }
            }
        }
        Ok(())
    }

    fn file(&mut self, path: &str) -> Result<(), SystemError> {
        let content = match self.files.read(path) {
            Ok(content) => content,
            Err(error) if error.is_gone() || matches!(error.errno(), 20 | 21) => return Ok(()),
            Err(error) => {
                self.captured.skipped.push(error.to_string());
                return Ok(());
            }
        };
        let content = self.scrub(path, content);
        let mode = self.files.mode(path).ok();
        if let Some(mode) = mode.filter(|mode| path.contains("smp_affinity") && mode & 0o200 == 0) {
            self.modes.extend([format!("{mode:o} {path}\n")]);
        }
        self.write(path, &content)?;
        let place = self.place(path);
        let keep =
            mode.map_or(Ok(()), |mode| fs::set_permissions(&place, Permissions::from_mode(mode & 0o777 | 0o400)));
        keep.map_err(|source| SystemError::new("set the mode of", place, source))
    }

    /// Drops what identifies the host.
    fn scrub(&self, path: &str, content: Vec<u8>) -> Vec<u8> {
        let text = || String::from_utf8_lossy(&content).into_owned();
        let keep = |keep: fn(&str) -> bool| {
            text().lines().filter(|line| keep(line)).fold(String::new(), |all, line| all + line + "\n")
        };
        match path {
            "/proc/cmdline" => {
                let name = self.files.read_text("/proc/sys/kernel/hostname").ok();
                (without_identity(&text(), name.as_deref().map(str::trim)) + "\n").into_bytes()
            }
            // The boards' serial number (arm), and the machine's in the line of each CPU (s390).
            "/proc/cpuinfo" => {
                keep(|line| !line.starts_with("Serial") && !line.contains("identification")).into_bytes()
            }
            "/proc/meminfo" => keep(|line| line.starts_with("MemTotal:")).into_bytes(),
            "/proc/self/mountinfo" => mounts_of_the_kernel(&text()).into_bytes(),
            _ => content,
        }
    }

    fn write(&mut self, path: &str, content: &[u8]) -> Result<(), SystemError> {
        let place = self.place(path);
        let written = place
            .parent()
            .map_or(Ok(()), fs::create_dir_all)
            .and_then(|()| if place.exists() { Ok(()) } else { fs::write(&place, content) });
        self.captured.files += 1;
        written.map_err(|source| SystemError::new("write", place, source))
    }

    /// Makes a relative link, so that the folder can be moved.
    fn link(&mut self, path: &str, target: &Path) -> Result<(), SystemError> {
        let place = self.place(path);
        if fs::symlink_metadata(&place).is_ok() {
            return Ok(());
        }
        let depth = Path::new(path).components().count().saturating_sub(2);
        let climb: PathBuf = std::iter::repeat_n("..", depth).collect();
        let target = climb.join(target.strip_prefix("/").unwrap_or(target));
        let made = place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| symlink(target, &place));
        self.captured.links += 1;
        made.map_err(|source| SystemError::new("link", place, source))
    }

    fn place(&self, path: &str) -> PathBuf {
        self.folder.join(path.trim_start_matches('/'))
    }
}

/// `enx525400123456` carries its MAC address.
fn is_named_by_address(name: &str) -> bool {
    name.strip_prefix("enx").is_some_and(|rest| rest.len() == 12 && rest.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Lines of kernel file systems, without the path inside a container's hierarchy.
fn mounts_of_the_kernel(text: &str) -> String {
    const KINDS: &[&str] = &["cgroup", "cgroup2", "cpuset", "proc", "sysfs"];
    let mut kept = String::new();
    for line in text.lines() {
        let kind = line.split_once(" - ").and_then(|(_, rest)| rest.split(' ').next());
        let mut fields: Vec<&str> = line.split(' ').collect();
        if fields.len() < 8 || !kind.is_some_and(|kind| KINDS.contains(&kind)) {
            continue;
        }
        if kind.is_some_and(|kind| kind.starts_with("cgroup")) {
            fields[3] = "/";
        }
        kept.push_str(&fields.join(" "));
        kept.push('\n');
    }
    kept
}

/// Paths that match a pattern in which a whole part may be `*`. Parts that do not exist give none.
fn expand(files: &dyn Files, pattern: &str) -> Vec<String> {
    let mut paths = vec![String::new()];
    for part in pattern.split('/').skip(1) {
        let next = |path: String| match part {
            "*" => files.list(&path).unwrap_or_default().into_iter().map(|name| format!("{path}/{name}")).collect(),
            part => vec![format!("{path}/{part}")],
        };
        paths = paths.into_iter().flat_map(next).collect();
    }
    paths
}
