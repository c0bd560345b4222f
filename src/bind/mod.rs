//! A checked experiment and a host's facts become a schedule: which interrupts, which CPUs, which order, every
//! write. Pure: the runner decides nothing, and a stored set of facts gives the same schedule again.

use crate::cpu_set::{Cpu, CpuSet, Irq};
use crate::design::{Command, Parser, ServiceState};
use crate::source::Span;

/// Everything the runner will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Treatments, index for index those of the design.
    pub treatments: Vec<Treatment>,
    /// Trials in order.
    pub order: Vec<crate::recording::PlannedTrial>,
    /// Remarks for `plan`: what will not be as one might think, none of it fatal.
    pub remarks: Vec<String>,
}

/// A treatment on this host.
#[derive(Debug, Clone, PartialEq)]
pub struct Treatment {
    /// As in the design.
    pub name: String,
    /// Changes to the host in the order they are made.
    pub changes: Vec<Change>,
    /// Settings in plain words.
    pub settings: Vec<String>,
    /// Workloads.
    pub workloads: Vec<Process>,
    /// Backgrounds.
    pub backgrounds: Vec<Process>,
    /// CPUs the runner keeps itself to: online ones no workload uses, or all when they use every one.
    pub runner_cpus: CpuSet,
}

/// One reversible change of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// What is changed, and to what.
    pub kind: ChangeKind,
    /// The setting's place in the file.
    pub span: Span,
}

/// The primitive changes every setting comes down to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangeKind {
    /// `/proc/irq/N/smp_affinity`
    Affinity { identity: IrqIdentity, mask: CpuSet, on_refusal: OnRefusal },
    /// `run "…" undo "…"`
    Command { command: Vec<String>, undo: Vec<String> },
    /// `/sys/devices/system/cpu/cpuN/online`
    CpuOnline { cpu: Cpu, online: bool },
    /// `/proc/irq/default_smp_affinity`
    DefaultAffinity { mask: CpuSet },
    /// A kernel file with one value: sysctl, governor, `write`.
    File { path: String, value: String },
    /// `service NAME started|stopped`
    Service { name: String, state: ServiceState },
    /// `/sys/devices/system/cpu/smt/control`
    Smt { on: bool },
    /// `tasks PATTERN on SET`
    Tasks { pattern: String, cpus: CpuSet },
}

/// What a kernel's refusal (EIO, EPERM: the interrupt cannot be moved) means. Kernels before 6.7 show it only then.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnRefusal {
    /// The interrupt was asked for by name: the setting fails.
    Fail,
    /// It was one of many (`irq *`, a class, a glob): it stays where it is and a remark says so.
    Skip,
}

/// What makes an interrupt the same one: its number alone does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IrqIdentity {
    /// The number.
    pub irq: Irq,
    /// Handler names.
    pub actions: Vec<String>,
    /// Chip name.
    pub chip: String,
    /// Hardware interrupt number as shown.
    pub hwirq: Option<String>,
    /// Device, where known.
    pub device: Option<String>,
}

/// A process on this host.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Name.
    pub name: String,
    /// What runs.
    pub command: Command,
    /// CPUs it may use; `None` leaves what the runner was started with.
    pub cpus: Option<CpuSet>,
    /// Working directory.
    pub directory: Option<String>,
    /// Added environment.
    pub environment: Vec<(String, String)>,
    /// User to run as.
    pub user: Option<String>,
    /// Niceness.
    pub nice: Option<i32>,
    /// `SCHED_FIFO` priority.
    pub fifo: Option<u32>,
    /// Limit, milliseconds.
    pub timeout_ms: u64,
    /// Copies.
    pub instances: u32,
    /// Started again when it ends.
    pub restart: bool,
    /// Regular expression its output must match before it counts as ready.
    pub ready: Option<String>,
    /// How its output becomes metrics.
    pub parsers: Vec<Parser>,
    /// Its place in the file.
    pub span: Span,
}
