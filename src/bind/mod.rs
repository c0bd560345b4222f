//! A checked experiment and a host's facts become a schedule: which interrupts, which CPUs, which order, every
//! write. Pure: the runner decides nothing, and a stored set of facts gives the same schedule again.

use crate::cpu_set::{Cpu, CpuSet, Irq};
use crate::design::{self, Command, Experiment, Parser, ServiceState, Setting, SettingKind};
use crate::diagnostic::{Diagnostic, Kind};
use crate::recording::{HostFacts, PlannedTrial};
use crate::source::Span;
use cpus::{Cpus, Unresolved};

mod cpus;
mod irqs;
mod moving;
mod order;
mod record;
mod refusals;
mod requirements;
mod routes;
mod routing;
mod words;

pub use moving::{Method, Moving, MovingIrq};
pub use order::{blocks, further, order};
pub use record::{design_record, published_record, treatment_record, unbound_record};
pub use refusals::refusals;
pub use requirements::{Caller, required_tools, unmet};
pub use words::{command as command_words, process as process_words, unbound as setting_words};

/// Binds an experiment to a host, or names everything in it that this host cannot do.
pub fn bind(experiment: &Experiment, facts: &HostFacts) -> Result<Schedule, Vec<Diagnostic>> {
    bind_part(experiment, facts, &|_| true)
}

/// Binds the treatments that one boot serves, by their index. The others stand in the schedule without changes and
/// processes: they are bound to the boots that serve them.
pub fn bind_part(
    experiment: &Experiment,
    facts: &HostFacts,
    is_served: &dyn Fn(usize) -> bool,
) -> Result<Schedule, Vec<Diagnostic>> {
    let mut diagnostics: Vec<Diagnostic> = Vec::new();
    let mut remarks: Vec<String> = Vec::new();
    let mut treatments = Vec::with_capacity(experiment.treatments.len());
    for (index, treatment) in experiment.treatments.iter().enumerate() {
        if !is_served(index) {
            treatments.push(Treatment { name: treatment.name.clone(), ..Treatment::default() });
            continue;
        }
        match Binding::new(treatment, facts).bind(treatment, experiment) {
            Ok((bound, said)) => {
                remarks.extend(said);
                treatments.push(bound);
            }
            Err(found) => diagnostics.extend(found),
        }
    }
    if !diagnostics.is_empty() {
        // The same clause fails under every treatment that holds it; once is enough.
        let mut once: Vec<Diagnostic> = Vec::new();
        for diagnostic in diagnostics {
            if !once.contains(&diagnostic) {
                once.push(diagnostic);
            }
        }
        return Err(once);
    }
    let mut once: Vec<String> = Vec::new();
    for remark in remarks {
        if !once.contains(&remark) {
            once.push(remark);
        }
    }
    Ok(Schedule { treatments, order: order::order(experiment), remarks: once })
}

/// What binds one treatment: the host's facts and the CPUs the treatment leaves online.
struct Binding<'a> {
    facts: &'a HostFacts,
    cpus: Cpus<'a>,
    diagnostics: Vec<Diagnostic>,
    remarks: Vec<String>,
}

impl<'a> Binding<'a> {
    fn new(treatment: &design::Treatment, facts: &'a HostFacts) -> Self {
        let mut gone = CpuSet::new();
        for setting in &treatment.settings {
            match setting.kind {
                SettingKind::CpuOffline(cpu) => gone.insert(Cpu(cpu)),
                SettingKind::Smt(false) => {
                    let first = Cpus::new(facts, &CpuSet::new()).first_threads();
                    gone = gone.union(&facts.topology.online.difference(&first));
                }
                _ => {}
            }
        }
        Binding { facts, cpus: Cpus::new(facts, &gone), diagnostics: Vec::new(), remarks: Vec::new() }
    }

    fn bind(
        mut self,
        treatment: &design::Treatment,
        experiment: &Experiment,
    ) -> Result<(Treatment, Vec<String>), Vec<Diagnostic>> {
        let mut changes: Vec<Change> = Vec::new();
        for setting in &treatment.settings {
            let kinds = self.changes(setting);
            changes.extend(kinds.into_iter().map(|kind| Change { kind, span: setting.span }));
        }
        let (routes, moving) = self.routes(&treatment.settings);
        changes.extend(routes);
        let workloads = self.processes(&treatment.workloads, experiment);
        let backgrounds = self.processes(&treatment.backgrounds, experiment);
        if !self.diagnostics.is_empty() {
            return Err(self.diagnostics);
        }
        let measured = workloads.iter().filter_map(|process| process.cpus.as_ref());
        let measured = measured.fold(CpuSet::new(), |all, cpus| all.union(cpus));
        let free = self.cpus.online().difference(&measured);
        let runner_cpus = if free.is_empty() { self.cpus.online().clone() } else { free };
        let settings = treatment.settings.iter().map(|setting| words::setting(setting, &changes)).collect();
        let name = treatment.name.clone();
        let settle_ms = settle_ms(treatment);
        let bound = Treatment { name, changes, moving, settings, settle_ms, workloads, backgrounds, runner_cpus };
        Ok((bound, self.remarks))
    }

    /// The primitive changes of every setting but a route.
    fn changes(&mut self, setting: &Setting) -> Vec<ChangeKind> {
        match &setting.kind {
            SettingKind::CpuOffline(cpu) => self.cpu_offline(*cpu, setting.span),
            SettingKind::DefaultRoute(set) => {
                let mask = self.resolve(set, setting.span);
                mask.map(|mask| ChangeKind::DefaultAffinity { mask }).into_iter().collect()
            }
            SettingKind::Governor(governor) => self.governor(governor, setting.span),
            SettingKind::Run { command, undo } => {
                vec![ChangeKind::Command { command: command.clone(), undo: undo.clone() }]
            }
            SettingKind::Service { name, state, options } => {
                let options = options.iter().map(|(key, value)| format!("--{key}={value}")).collect();
                vec![ChangeKind::Service { name: name.clone(), state: *state, options }]
            }
            SettingKind::Smt(on) => self.smt(*on, setting.span),
            SettingKind::Sysctl { key, value } => {
                vec![ChangeKind::File { path: sysctl_path(key), value: value.clone() }]
            }
            SettingKind::Tasks { pattern, cpus } => {
                let cpus = self.resolve(cpus, setting.span);
                cpus.map(|cpus| ChangeKind::Tasks { pattern: pattern.clone(), cpus }).into_iter().collect()
            }
            SettingKind::Write { path, value } => {
                vec![ChangeKind::File { path: path.clone(), value: value.clone() }]
            }
            // Routes are bound together; the rest is refused by `refusals` before anything is run.
            _ => Vec::new(),
        }
    }

    fn cpu_offline(&mut self, cpu: u32, span: Span) -> Vec<ChangeKind> {
        let place = self.facts.topology.cpus.iter().find(|place| place.cpu == Cpu(cpu));
        match place {
            Some(place) if place.hotpluggable => vec![ChangeKind::CpuOnline { cpu: Cpu(cpu), online: false }],
            Some(_) => {
                let message = format!("CPU {cpu} cannot be taken offline here: it has no `online` file");
                self.fail(span, message, "choose another CPU; the first one usually has none");
                Vec::new()
            }
            None => {
                let help = format!("the online CPUs are {}", self.facts.topology.online);
                self.fail(span, format!("CPU {cpu} is not online here"), &help);
                Vec::new()
            }
        }
    }

    fn governor(&mut self, governor: &str, span: Span) -> Vec<ChangeKind> {
        if self.facts.governors.is_empty() {
            let help = "leave `governor` out: this host does not scale its frequency, or hides it (virtual machine)";
            self.fail(span, "this host has no frequency governor".to_owned(), help);
        }
        let online = self.facts.governors.keys().filter(|cpu| self.cpus.online().contains(Cpu(**cpu)));
        online
            .map(|cpu| ChangeKind::File {
                path: format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"),
                value: governor.to_owned(),
            })
            .collect()
    }

    fn smt(&mut self, on: bool, span: Span) -> Vec<ChangeKind> {
        let control = self.facts.topology.smt_control.as_deref();
        match control {
            // The CPUs that `on` would bring are not among the facts, so no selector could be resolved to them.
            Some("off") if on => {
                let help = "switch it on before the run (`echo on > /sys/devices/system/cpu/smt/control`)";
                self.fail(span, "SMT is off here, so its CPUs are not known".to_owned(), help);
                return Vec::new();
            }
            Some("on" | "off") => return vec![ChangeKind::Smt { on }],
            // A number is the count of threads per core that are on (since 6.6): SMT is on.
            Some(number) if number.parse::<u32>().is_ok() => return vec![ChangeKind::Smt { on }],
            Some("forceoff") if !on => return Vec::new(),
            Some(state @ ("notsupported" | "notimplemented")) if !on => {
                self.remarks.push(format!("SMT is off by nature here (smt/control reads `{state}`)"));
                return Vec::new();
            }
            Some(state) => {
                let message = format!("SMT cannot be switched here: smt/control reads `{state}`");
                self.fail(span, message, "leave `smt` out, or run this on a host or in a lab with threads");
            }
            None => {
                let message = "this host has no /sys/devices/system/cpu/smt".to_owned();
                self.fail(span, message, "leave `smt` out, or run this on a host or in a lab with threads");
            }
        }
        Vec::new()
    }

    fn processes(&mut self, processes: &[design::Process], experiment: &Experiment) -> Vec<Process> {
        processes.iter().filter_map(|process| self.process(process, experiment)).collect()
    }

    fn process(&mut self, process: &design::Process, experiment: &Experiment) -> Option<Process> {
        let cpus = match &process.cpus {
            Some(set) => Some(self.resolve(set, process.span)?),
            None => None,
        };
        Some(Process {
            name: process.name.clone(),
            command: process.command.clone(),
            cpus,
            directory: process.directory.clone(),
            environment: process.environment.clone(),
            user: process.user.clone(),
            nice: process.nice,
            fifo: process.fifo,
            timeout_ms: process.timeout_ms.unwrap_or(experiment.protocol.timeout_ms),
            instances: process.instances,
            restart: process.restart,
            ready: process.ready.clone(),
            parsers: process.parsers.clone(),
            span: process.span,
        })
    }

    fn resolve(&mut self, set: &design::CpuSelector, span: Span) -> Option<CpuSet> {
        match self.cpus.resolve(set, None) {
            Ok(set) => Some(set),
            Err(unresolved) => {
                self.unresolved(span, unresolved);
                None
            }
        }
    }

    fn unresolved(&mut self, span: Span, unresolved: Unresolved) {
        self.fail(span, unresolved.message, &unresolved.help);
    }

    fn fail(&mut self, span: Span, message: String, help: &str) {
        self.diagnostics.push(span.error(Kind::HostCannot { message, help: help.to_owned() }));
    }
}

/// Periods of irqbalance between its start and a trial: one to look, one to move, one to be moved for good.
const IRQBALANCE_PERIODS: u64 = 3;

/// Its period where no `interval` is given, seconds (`SLEEP_INTERVAL` of irqbalance.h).
const IRQBALANCE_INTERVAL_S: u64 = 10;

/// The rest the settings of a treatment need before each of its trials, milliseconds.
pub fn settle_ms(treatment: &design::Treatment) -> u64 {
    let of = |setting: &Setting| match &setting.kind {
        SettingKind::Service { name, state: ServiceState::Started, options } if name == "irqbalance" => {
            let interval = options.iter().find(|(key, _)| key == "interval").and_then(|(_, value)| value.parse().ok());
            interval.unwrap_or(IRQBALANCE_INTERVAL_S) * 1000 * IRQBALANCE_PERIODS
        }
        _ => 0,
    };
    treatment.settings.iter().map(of).max().unwrap_or(0)
}

/// The file of a sysctl: dots and slashes change places, as in sysctl(8), so that `net.ipv4.conf.eth0/1.rp_filter`
/// reaches the interface `eth0.1`.
pub fn sysctl_path(key: &str) -> String {
    let file: String = key
        .chars()
        .map(|character| match character {
            '.' => '/',
            '/' => '.',
            other => other,
        })
        .collect();
    format!("/proc/sys/{file}")
}

/// Everything the runner will do.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// Treatments, index for index those of the design.
    pub treatments: Vec<Treatment>,
    /// Trials in order.
    pub order: Vec<PlannedTrial>,
    /// Remarks for `plan`: what will not be as one might think, none of it fatal.
    pub remarks: Vec<String>,
}

/// A treatment on this host.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Treatment {
    /// As in the design.
    pub name: String,
    /// Changes to the host in the order they are made.
    pub changes: Vec<Change>,
    /// Targets that move interrupts while a trial runs; where those begin is among the changes.
    pub moving: Vec<Moving>,
    /// Settings in plain words.
    pub settings: Vec<String>,
    /// Rest its settings need before a trial, milliseconds: irqbalance is given three of its periods.
    pub settle_ms: u64,
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
    /// `service NAME started|stopped`; options as the program takes them, none for those it has.
    Service { name: String, state: ServiceState, options: Vec<String> },
    /// `/sys/devices/system/cpu/smt/control`
    Smt { on: bool },
    /// `tasks PATTERN on SET`
    Tasks { pattern: String, cpus: CpuSet },
}

/// What a kernel's refusal (EIO, EPERM: the interrupt cannot be moved) means. Older kernels show it only then (mode 0444: kernel commit c7718e5c76d4).
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
