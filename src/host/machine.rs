//! The machine under the kernel: CPU model and clock, memory, hypervisor, mitigations.

use std::collections::BTreeMap;

use procfs::FromBufRead;

use super::command_line;
use super::reader::Reader;

/// What `/proc/cpuinfo` says of the CPUs.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Cpuinfo {
    /// Model of the first CPU.
    pub(super) model: Option<String>,
    /// Median of `cpu MHz` over the online CPUs.
    pub(super) mhz: Option<f64>,
    /// The `hypervisor` flag of x86.
    pub(super) hypervisor: bool,
}

/// Fields that name the CPU: x86, mips, powerpc, riscv, old arm.
const MODEL_FIELDS: &[&str] = &["model name", "cpu model", "cpu", "uarch", "Processor", "Hardware"];

pub(super) fn cpuinfo(reader: &Reader) -> Cpuinfo {
    let Some(text) = reader.bytes("/proc/cpuinfo") else { return Cpuinfo::default() };
    let info = match procfs::CpuInfo::from_buf_read(text.as_slice()) {
        Ok(info) => info,
        Err(error) => {
            reader.note(format!("/proc/cpuinfo: {error}"));
            return Cpuinfo::default();
        }
    };
    let field = |cpu: usize, name: &str| info.get_field(cpu, name).map(str::to_owned);
    let clocks = (0..info.num_cores()).filter_map(|cpu| field(cpu, "cpu MHz")?.parse::<f64>().ok());
    let mut clocks: Vec<f64> = clocks.filter(|mhz| mhz.is_finite() && *mhz > 0.0).collect();
    clocks.sort_by(f64::total_cmp);
    let middle = |clocks: &[f64]| f64::midpoint(clocks[(clocks.len() - 1) / 2], clocks[clocks.len() / 2]);
    Cpuinfo {
        model: MODEL_FIELDS.iter().find_map(|name| field(0, name)).filter(|model| !model.is_empty()),
        mhz: (!clocks.is_empty()).then(|| middle(&clocks)),
        hypervisor: field(0, "flags").is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
    }
}

/// `MemTotal` in bytes. Not through `procfs`, which wants every line of the file to be there.
pub(super) fn memory_bytes(reader: &Reader) -> Option<u64> {
    let text = reader.text("/proc/meminfo")?;
    let total = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// `/sys/devices/system/cpu/vulnerabilities/*`
pub(super) fn mitigations(reader: &Reader) -> BTreeMap<String, String> {
    let folder = "/sys/devices/system/cpu/vulnerabilities";
    let names = reader.list(folder).into_iter();
    names.filter_map(|name| Some((name.clone(), reader.text(&format!("{folder}/{name}"))?))).collect()
}

/// Parameters that are read whether the command line names them or not.
const PARAMETERS: &[&str] = &["intel_idle.max_cstate", "processor.max_cstate"];

/// Parameters of modules, by `module.parameter`; absent where the module is not there. `command_line` is without
/// identity: a value dropped there is not read here.
pub(super) fn module_parameters(reader: &Reader, command_line: &str) -> BTreeMap<String, String> {
    let read = |(name, path): (String, String)| Some((name, reader.text(&path)?));
    let values = parameter_files(command_line).into_iter().filter_map(read);
    values.filter(|(_, value)| value.len() <= MAX_PARAMETER_BYTES && !value.contains('\n')).collect()
}

/// `module.parameter` and its file.
pub(super) fn parameter_files(command_line: &str) -> BTreeMap<String, String> {
    let options = command_line::options(command_line).into_iter();
    let named = options.filter(|option| option.contains('=') && !option.contains(command_line::DROPPED));
    let names = PARAMETERS.iter().copied().chain(named).map(command_line::name);
    let file = |name: String| {
        let (module, parameter) = name.split_once('.').filter(|parts| is_plain(parts.0) && is_plain(parts.1))?;
        let path = format!("/sys/module/{module}/parameters/{parameter}");
        Some((name, path))
    };
    names.filter_map(file).collect()
}

/// A parameter of several lines or of a list of devices says nothing that can be compared.
const MAX_PARAMETER_BYTES: usize = 64;

fn is_plain(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Whether the CPUs have performance counters.
pub(super) fn performance_counters(reader: &Reader) -> Option<bool> {
    let devices = "/sys/bus/event_source/devices";
    reader.files.exists(devices).then(|| reader.list(devices).iter().any(|device| device.starts_with("cpu")))
}

/// Words in the DMI vendor and product names, and the hypervisor they stand for.
const DMI: &[(&str, &str)] = &[
    ("Amazon EC2", "kvm"),
    ("Bochs", "kvm"),
    ("Google Compute Engine", "kvm"),
    ("KVM", "kvm"),
    ("OpenStack", "kvm"),
    ("QEMU", "kvm"),
    ("Parallels", "parallels"),
    ("VMware", "vmware"),
    ("VirtualBox", "virtualbox"),
    ("Virtual Machine", "hyperv"),
    ("Xen", "xen"),
    ("bhyve", "bhyve"),
];

/// The hypervisor or container around this kernel, as far as files tell: `kvm`, `xen`, `yes`, `container:docker`,
/// `container:docker in kvm`.
pub(super) fn virtualisation(reader: &Reader, cpuinfo: &Cpuinfo) -> Option<String> {
    match (container(reader), hypervisor(reader, cpuinfo)) {
        (Some(container), Some(hypervisor)) => Some(format!("container:{container} in {hypervisor}")),
        (Some(container), None) => Some(format!("container:{container}")),
        (None, hypervisor) => hypervisor,
    }
}

fn hypervisor(reader: &Reader, cpuinfo: &Cpuinfo) -> Option<String> {
    if let Some(kind) = reader.text("/sys/hypervisor/type") {
        return Some(kind);
    }
    if reader.text("/proc/device-tree/hypervisor/compatible").is_some_and(|text| text.contains("kvm")) {
        return Some("kvm".to_owned());
    }
    let clocks = "/sys/devices/system/clocksource/clocksource0/available_clocksource";
    let clocks = reader.text(clocks).unwrap_or_default();
    for (clock, kind) in [("kvm-clock", "kvm"), ("hyperv_clocksource", "hyperv"), ("xen", "xen")] {
        if clocks.contains(clock) {
            return Some(kind.to_owned());
        }
    }
    let dmi = ["sys_vendor", "product_name"].map(|name| reader.text(&format!("/sys/class/dmi/id/{name}")));
    let dmi = dmi.into_iter().flatten().collect::<Vec<_>>().join(" ");
    // A physical machine with a telling name would be taken for a guest, so the CPU has to say so too where it can.
    let guest = cpuinfo.hypervisor || reader.text("/proc/sys/kernel/arch").is_none_or(|arch| arch != "x86_64");
    let named = DMI.iter().find(|(word, _)| guest && dmi.contains(word)).map(|(_, kind)| (*kind).to_owned());
    named.or_else(|| cpuinfo.hypervisor.then(|| "yes".to_owned()))
}

fn container(reader: &Reader) -> Option<String> {
    let named = reader.text("/run/systemd/container");
    let files = [("/.dockerenv", "docker"), ("/run/.containerenv", "podman")];
    let left = files.iter().find(|(path, _)| reader.files.exists(path)).map(|(_, kind)| (*kind).to_owned());
    named.or(left)
}
