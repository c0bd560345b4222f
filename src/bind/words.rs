//! Settings, CPU sets and processes in the words of the file, for `plan`, the recording and the report.

use super::{Change, ChangeKind, irqs};
use crate::design::{self, Command, CpuSelector, RoutingTarget, ServiceState, Setting, SettingKind, TopologyUnit};

/// A setting in one line; a route says how many interrupts it moves.
pub(super) fn setting(setting: &Setting, changes: &[Change]) -> String {
    match &setting.kind {
        SettingKind::Route { irqs: selector, target } => {
            let ours =
                |change: &&Change| change.span == setting.span && matches!(change.kind, ChangeKind::Affinity { .. });
            let count = changes.iter().filter(ours).count();
            let noun = if count == 1 { "interrupt" } else { "interrupts" };
            format!("{} -> {} ({count} {noun})", irqs::words(selector), routing(target))
        }
        kind => bare(kind),
    }
}

/// A setting in one line, as the file has it.
pub fn unbound(setting: &Setting) -> String {
    bare(&setting.kind)
}

/// ` key=value` for each.
fn pairs(pairs: &[(String, String)]) -> String {
    pairs.iter().flat_map(|(key, value)| [" ", key, "=", value]).collect()
}

fn bare(kind: &SettingKind) -> String {
    let counts = |counts: &[(String, u32)]| {
        let texts: Vec<(String, String)> = counts.iter().map(|(key, count)| (key.clone(), count.to_string())).collect();
        pairs(&texts)
    };
    let on_off = |on: bool| if on { "on" } else { "off" };
    match kind {
        SettingKind::Boot(options) => format!("boot \"{options}\""),
        SettingKind::Channels { device, counts: given } => format!("channels {device}{}", counts(given)),
        SettingKind::Coalesce { device, options } => format!("coalesce {device}{}", pairs(options)),
        SettingKind::CpuOffline(cpu) => format!("cpu {cpu} offline"),
        SettingKind::DefaultRoute(set) => format!("default irq -> {}", cpus(set)),
        SettingKind::Governor(governor) => format!("governor {governor}"),
        SettingKind::IdleStates(max) => format!("idle_states max={max}"),
        SettingKind::IrqThreads { irqs: selector, fifo, cpus: set } => {
            let fifo = fifo.map(|fifo| format!(" fifo={fifo}")).unwrap_or_default();
            let on = set.as_ref().map(|set| format!(" on {}", cpus(set))).unwrap_or_default();
            format!("irq_threads {}{fifo}{on}", irqs::words(selector))
        }
        SettingKind::Napi { device, options } => format!("napi {device}{}", pairs(options)),
        SettingKind::Offload { device, options } => format!("offload {device}{}", pairs(options)),
        SettingKind::Rfs { device, entries } => format!("rfs {device} entries={entries}"),
        SettingKind::Rings { device, sizes } => format!("rings {device}{}", counts(sizes)),
        SettingKind::Route { irqs: selector, target } => format!("{} -> {}", irqs::words(selector), routing(target)),
        SettingKind::Rps { device, target } => format!("rps {device} -> {}", routing(target)),
        SettingKind::Run { command, undo } => {
            format!("run \"{}\" undo \"{}\"", shell_words::join(command), shell_words::join(undo))
        }
        SettingKind::Service { name, state, options } => {
            let state = match state {
                ServiceState::Started => "started",
                ServiceState::Stopped => "stopped",
            };
            format!("service {name} {state}{}", pairs(options))
        }
        SettingKind::Smt(on) => format!("smt {}", on_off(*on)),
        SettingKind::Sysctl { key, value } => format!("sysctl {key}={value}"),
        SettingKind::Tasks { pattern, cpus: set } => format!("tasks {pattern} on {}", cpus(set)),
        SettingKind::Turbo(on) => format!("turbo {}", on_off(*on)),
        SettingKind::Workqueues(set) => format!("workqueues on {}", cpus(set)),
        SettingKind::Write { path, value } => format!("write \"{path}\" \"{value}\""),
        SettingKind::Xps { device, target } => format!("xps {device} -> {}", routing(target)),
    }
}

fn routing(target: &RoutingTarget) -> String {
    match target {
        RoutingTarget::Balanced { over, every_ms } => format!("balanced over {} every {every_ms}ms", cpus(over)),
        RoutingTarget::Each { unit, of } => format!("each {} of {}", unit_word(*unit), cpus(of)),
        RoutingTarget::Hint => "hint".to_owned(),
        RoutingTarget::Random { over, seed } => format!("random over {} seed {seed}", cpus(over)),
        RoutingTarget::Rotating { over, every_ms } => format!("rotating over {} every {every_ms}ms", cpus(over)),
        RoutingTarget::Set(set) => cpus(set),
        RoutingTarget::Unchanged => "unchanged".to_owned(),
    }
}

fn unit_word(unit: TopologyUnit) -> &'static str {
    match unit {
        TopologyUnit::Cache => "cache",
        TopologyUnit::Core => "core",
        TopologyUnit::Cpu => "cpu",
        TopologyUnit::Node => "node",
    }
}

/// A CPU selector in the words of the file.
pub(super) fn cpus(selector: &CpuSelector) -> String {
    let pair = |left: &CpuSelector, operator: &str, right: &CpuSelector| {
        format!("({} {operator} {})", cpus(left), cpus(right))
    };
    match selector {
        CpuSelector::Core(number) => format!("core {number}"),
        CpuSelector::Difference(left, right) => pair(left, "-", right),
        CpuSelector::FirstThreads => "first threads".to_owned(),
        CpuSelector::Intersection(left, right) => pair(left, "&", right),
        CpuSelector::Isolated => "isolated".to_owned(),
        CpuSelector::List(list) if list.len() == 1 => format!("cpu {list}"),
        CpuSelector::List(list) => format!("cpus {list}"),
        CpuSelector::Local => "local".to_owned(),
        CpuSelector::LocalTo(device) => format!("local to {device}"),
        CpuSelector::Node(number) => format!("node {number}"),
        CpuSelector::Online => "online".to_owned(),
        CpuSelector::Siblings(of) => format!("siblings of {}", cpus(of)),
        CpuSelector::Union(left, right) => pair(left, "+", right),
    }
}

/// What a process runs, in one line.
pub fn command(command: &design::Command) -> String {
    match command {
        Command::Builtin { name, arguments } => {
            format!("builtin {name}{}", pairs(arguments))
        }
        Command::Run(words) => shell_words::join(words),
        Command::Shell(text) => format!("shell \"{text}\""),
    }
}

/// A process on this host, in one line: what runs, how often, where.
pub fn process(process: &super::Process) -> String {
    let times = if process.instances == 1 { String::new() } else { format!("{} times ", process.instances) };
    let on = process.cpus.as_ref().map(|cpus| format!(" on {cpus}")).unwrap_or_default();
    format!("{times}{}{on}", command(&process.command))
}
