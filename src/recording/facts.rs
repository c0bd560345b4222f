//! Facts about a host: a plain value, read once per boot by `host` and stored in the recording.
//!
//! No host name, serial number, MAC or IP address is in it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::cpu_set::{Cpu, CpuSet, Irq};

/// Everything `bind` and the report may know of a host. Absent facts are `None` or empty, never guessed.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct HostFacts {
    /// `x86_64`, `aarch64` … (`/proc/sys/kernel/arch`, since 6.1, or the running binary's when the root is `/`).
    pub architecture: Option<String>,
    /// `/proc/sys/kernel/osrelease`
    pub kernel_release: Option<String>,
    /// `/proc/sys/kernel/version`
    pub kernel_version: Option<String>,
    /// `/proc/cmdline`, without values of options that name hosts, addresses or serial numbers.
    pub command_line: Option<String>,
    /// `model name` of the first CPU in `/proc/cpuinfo`.
    pub cpu_model: Option<String>,
    /// Median `cpu MHz` over the online CPUs.
    pub cpu_mhz: Option<f64>,
    /// CPU sets, topology and SMT.
    pub topology: Topology,
    /// Frequency governor per CPU; CPUs without cpufreq are absent.
    pub governors: BTreeMap<u32, String>,
    /// Whether CPUs may run above their base frequency: `intel_pstate/no_turbo` or `cpufreq/boost`.
    pub turbo: Option<bool>,
    /// `/sys/devices/system/clocksource/clocksource0/current_clocksource`
    pub clocksource: Option<String>,
    /// `MemTotal`, bytes.
    pub memory_bytes: Option<u64>,
    /// What is around this kernel, where something is found: `kvm`, `xen`, `hyperv`, `yes` for a hypervisor without a
    /// name, `container:docker`, `container:docker in kvm`.
    pub virtualisation: Option<String>,
    /// `/sys/devices/system/cpu/vulnerabilities/*`
    pub mitigations: BTreeMap<String, String>,
    /// `/proc/irq/default_smp_affinity`
    pub default_affinity: Option<CpuSet>,
    /// Numbered interrupts in ascending order.
    pub irqs: Vec<IrqFacts>,
    /// Network and block devices.
    pub devices: Vec<Device>,
    /// Running programs that write interrupt masks or move tasks: `irqbalance`, `tuned` …
    pub writers: Vec<String>,
    /// Where the cpuset controller is.
    pub cpuset: CpusetSupport,
    /// Whether systemd is process 1.
    pub systemd: bool,
    /// Whether `/proc/irq` can be written at all: `false` on a read-only mount.
    pub irq_writable: bool,
    /// `/proc/sys/kernel/nmi_watchdog`. May read 1 where no watchdog runs (kernel commit 6e7458a6f074).
    pub nmi_watchdog: Option<bool>,
    /// Whether the NMI row grew while every CPU was busy; `None` where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nmi_growth: Option<NmiGrowth>,
    /// Whether the CPUs have performance counters: `cpu*` in `/sys/bus/event_source/devices`. The NMI watchdog of x86
    /// is made of them. `None` without the directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performance_counters: Option<bool>,
    /// Interrupts with a kernel thread of their own (`irq/9-acpi`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threaded_irqs: Vec<Irq>,
    /// `/sys/module/MODULE/parameters/PARAMETER` as `module.parameter`: those of idle states, and those the command
    /// line names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub module_parameters: BTreeMap<String, String>,
    /// Facts that could not be read, with the reason: shown, never fatal by themselves.
    pub unreadable: Vec<String>,
}

/// What the NMI row did while every CPU was busy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NmiGrowth {
    /// How long every CPU was kept busy, milliseconds.
    pub busy_ms: u64,
    /// CPUs that were busy.
    pub busy: CpuSet,
    /// CPUs whose count grew.
    pub grew: CpuSet,
}

/// CPU sets, topology and SMT.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Topology {
    /// `/sys/devices/system/cpu/possible`
    pub possible: CpuSet,
    /// `/sys/devices/system/cpu/online`
    pub online: CpuSet,
    /// `/sys/devices/system/cpu/isolated`
    pub isolated: CpuSet,
    /// `/sys/devices/system/cpu/nohz_full`
    pub nohz_full: CpuSet,
    /// `/sys/devices/system/cpu/smt/control`; `None` without the directory.
    pub smt_control: Option<String>,
    /// `/sys/devices/system/cpu/smt/active`
    pub smt_active: Option<bool>,
    /// Online CPUs in ascending order.
    pub cpus: Vec<CpuTopology>,
    /// NUMA nodes with their CPUs (possibly none); node 0 with all CPUs where the kernel shows none.
    pub nodes: BTreeMap<u32, CpuSet>,
}

/// Where one CPU sits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CpuTopology {
    /// The CPU.
    pub cpu: Cpu,
    /// `topology/physical_package_id`; 0 when absent or -1.
    pub package: u32,
    /// `topology/core_id`, unique only within a package.
    pub core: u32,
    /// NUMA node.
    pub node: u32,
    /// `topology/core_cpus_list` or `thread_siblings_list`, online ones.
    pub siblings: CpuSet,
    /// CPUs that share the last-level cache.
    pub cache: CpuSet,
    /// Whether `cpuN/online` exists, so that the CPU can be taken offline.
    pub hotpluggable: bool,
}

/// One numbered interrupt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IrqFacts {
    /// The number.
    pub irq: Irq,
    /// Handler names; empty when nobody has requested it.
    pub actions: Vec<String>,
    /// Chip name.
    pub chip: String,
    /// Hardware interrupt number, text as shown.
    pub hwirq: Option<String>,
    /// `/proc/irq/N/smp_affinity_list` or the mask.
    pub affinity: Option<CpuSet>,
    /// `/proc/irq/N/effective_affinity_list`; absent on kernels without it.
    pub effective: Option<CpuSet>,
    /// `/proc/irq/N/affinity_hint`; `None` when all zero.
    pub hint: Option<CpuSet>,
    /// `/proc/irq/N/node`; `None` for -1.
    pub node: Option<u32>,
    /// Whether its mask can be set.
    pub movability: Movability,
    /// Name of the network or block device, or the PCI address.
    pub device: Option<String>,
    /// Driver of the device.
    pub driver: Option<String>,
    /// PCI function, `0000:00:05.0`.
    pub pci: Option<String>,
    /// What it serves.
    pub class: DeviceClass,
}

/// Whether an interrupt's mask can be set, as far as can be known without a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Movability {
    /// The mask file is writable for its owner.
    Movable,
    /// `smp_affinity` has mode 0444: managed or per-CPU (kernel commit c7718e5c76d4).
    Managed,
    /// There is no `smp_affinity`, or `/proc/irq/N` is gone.
    NoMask,
}

/// What a device is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceClass {
    /// A network interface.
    Net,
    /// Anything else, or unknown.
    Other,
    /// A block device or its controller.
    Storage,
}

/// A network or block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Device {
    /// `eth0`, `nvme0n1`
    pub name: String,
    /// What it is for.
    pub class: DeviceClass,
    /// Its driver.
    pub driver: Option<String>,
    /// Its PCI function.
    pub pci: Option<String>,
    /// Its NUMA node.
    pub node: Option<u32>,
    /// Its interrupts that somebody has requested, in queue order (numeric: `rx-10` after `rx-9`).
    pub irqs: Vec<Irq>,
}

/// Where the cpuset controller is mounted; paths are relative to the root.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CpusetSupport {
    /// Mount point of a v1 hierarchy with cpuset.
    pub v1: Option<String>,
    /// Mount point of a v2 hierarchy whose `cgroup.controllers` names cpuset.
    pub v2: Option<String>,
}

impl HostFacts {
    /// The facts of an interrupt.
    pub fn irq(&self, irq: Irq) -> Option<&IrqFacts> {
        self.irqs.iter().find(|facts| facts.irq == irq)
    }

    /// The device of that exact name.
    pub fn device(&self, name: &str) -> Option<&Device> {
        self.devices.iter().find(|device| device.name == name)
    }
}
