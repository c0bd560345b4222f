//! Which settings cannot be in force together: two that change the same thing, and those that take away what a
//! treatment needs.

use crate::cpu_set::{Cpu, CpuSet};
use crate::design::{CpuSelector, Process, RoutingTarget, Setting, SettingKind};
use crate::diagnostic::{Diagnostic, Kind, Meaning};
use crate::source::Span;

use super::scope::Scope;
use super::selectors::{describe_cpus, describe_irqs, is_other_threads, named_cpus_among, overlap};
use super::settings::Resolved;

/// Reports every pair of settings of one treatment that change the same thing; the later one is pointed at.
pub(super) fn report_conflicts(scope: &mut Scope<'_>, settings: &[Resolved]) {
    for (index, later) in settings.iter().enumerate() {
        let told = |fault: &Diagnostic| {
            fault.span == later.span() && matches!(fault.kind, Kind::Meaning(Meaning::Conflict { .. }))
        };
        // Under other treatments it may clash with further settings; one is enough to be told.
        if scope.faults.iter().any(told) {
            continue;
        }
        for earlier in &settings[..index] {
            let Some(what) = shared(earlier, later) else { continue };
            let mut fault = later.span().error(Meaning::Conflict { what });
            if earlier.span() != later.span() {
                fault.related.push((earlier.span(), "and here".to_owned()));
            }
            scope.fault(fault);
            break;
        }
    }
}

/// What both change, in words.
fn shared(earlier: &Resolved, later: &Resolved) -> Option<String> {
    match (earlier, later) {
        (Resolved::Host(earlier), Resolved::Host(later)) => shared_setting(&earlier.kind, &later.kind),
        (Resolved::Placement { process: earlier, .. }, Resolved::Placement { process: later, .. }) => {
            (earlier == later).then(|| format!("the place of `{later}`"))
        }
        _ => None,
    }
}

fn shared_setting(earlier: &SettingKind, later: &SettingKind) -> Option<String> {
    use SettingKind as Kind;
    match (earlier, later) {
        (Kind::Boot(a), Kind::Boot(b)) => {
            let keys = |text: &str| -> Vec<String> {
                text.split_whitespace().map(|word| word.split('=').next().unwrap_or(word).to_owned()).collect()
            };
            let earlier = keys(a);
            keys(b).into_iter().find(|key| earlier.contains(key)).map(|key| format!("boot option `{key}`"))
        }
        (Kind::Channels { device: a, counts: x }, Kind::Channels { device: b, counts: y })
        | (Kind::Rings { device: a, sizes: x }, Kind::Rings { device: b, sizes: y }) => device_key((a, x), (b, y)),
        (Kind::Coalesce { device: a, options: x }, Kind::Coalesce { device: b, options: y })
        | (Kind::Napi { device: a, options: x }, Kind::Napi { device: b, options: y })
        | (Kind::Offload { device: a, options: x }, Kind::Offload { device: b, options: y }) => {
            device_key((a, x), (b, y))
        }
        (Kind::CpuOffline(a), Kind::CpuOffline(b)) => (a == b).then(|| format!("`cpu {b}`")),
        (Kind::DefaultRoute(_), Kind::DefaultRoute(_)) => Some("`default irq`".to_owned()),
        (Kind::Governor(_), Kind::Governor(_)) => Some("`governor`".to_owned()),
        (Kind::Governor(_), Kind::Write { path, .. }) | (Kind::Write { path, .. }, Kind::Governor(_)) => {
            path.ends_with("/scaling_governor").then(|| "`governor`".to_owned())
        }
        (Kind::IdleStates(_), Kind::IdleStates(_)) => Some("`idle_states`".to_owned()),
        (Kind::IrqThreads { irqs: a, .. }, Kind::IrqThreads { irqs: b, .. }) => {
            overlap(a, b).then(|| format!("`irq_threads` of `{}`", describe_irqs(b)))
        }
        (Kind::Rfs { device: a, .. }, Kind::Rfs { device: b, .. }) => (a == b).then(|| format!("`rfs {b}`")),
        (Kind::Route { irqs: a, .. }, Kind::Route { irqs: b, .. }) => {
            overlap(a, b).then(|| format!("the route of `{}`", describe_irqs(b)))
        }
        (Kind::Rps { device: a, .. }, Kind::Rps { device: b, .. }) => (a == b).then(|| format!("`rps {b}`")),
        (Kind::Run { command: a, .. }, Kind::Run { command: b, .. }) => {
            (a == b).then(|| format!("`run \"{}\"`", b.join(" ")))
        }
        (Kind::Service { name: a, .. }, Kind::Service { name: b, .. }) => (a == b).then(|| format!("`service {b}`")),
        (Kind::Smt(_), Kind::Smt(_)) => Some("`smt`".to_owned()),
        (Kind::Sysctl { key: a, .. }, Kind::Sysctl { key: b, .. }) => {
            (a.replace('/', ".") == b.replace('/', ".")).then(|| format!("`sysctl {b}`"))
        }
        (Kind::Tasks { pattern: a, .. }, Kind::Tasks { pattern: b, .. }) => {
            let matches = |pattern: &str, name: &str| wildmatch::WildMatch::new(pattern).matches(name);
            (matches(a, b) || matches(b, a)).then(|| format!("the place of `tasks {b}`"))
        }
        (Kind::Turbo(_), Kind::Turbo(_)) => Some("`turbo`".to_owned()),
        (Kind::Workqueues(_), Kind::Workqueues(_)) => Some("`workqueues`".to_owned()),
        (Kind::Write { path: a, .. }, Kind::Write { path: b, .. }) => (a == b).then(|| format!("`{b}`")),
        (Kind::Xps { device: a, .. }, Kind::Xps { device: b, .. }) => (a == b).then(|| format!("`xps {b}`")),
        _ => None,
    }
}

/// A device and its `(key, value)` options.
type Options<'a, T> = (&'a String, &'a Vec<(String, T)>);

fn device_key<T>((a, x): Options<'_, T>, (b, y): Options<'_, T>) -> Option<String> {
    let twice = y.iter().find(|(key, _)| x.iter().any(|(other, _)| other == key))?;
    (a == b).then(|| format!("`{}` of `{b}`", twice.0))
}

/// Reports what a treatment asks of CPUs that it takes away itself. Processes come with the place their CPUs are
/// written at.
pub(super) fn report_unreachable(scope: &mut Scope<'_>, settings: &[Setting], processes: &[(Process, Span)]) {
    let absent: CpuSet = settings
        .iter()
        .filter_map(|setting| match setting.kind {
            SettingKind::CpuOffline(cpu) => Some(Cpu(cpu)),
            _ => None,
        })
        .collect();
    let smt_off = settings.iter().find(|setting| setting.kind == SettingKind::Smt(false));
    let mut asked: Vec<(String, &CpuSelector, Span)> = Vec::new();
    for (process, place) in processes {
        asked.extend(process.cpus.iter().map(|cpus| (format!("`{}`", process.name), cpus, *place)));
    }
    for setting in settings {
        let cpus = match &setting.kind {
            SettingKind::DefaultRoute(cpus) | SettingKind::Tasks { cpus, .. } | SettingKind::Workqueues(cpus) => cpus,
            SettingKind::Route { target, .. } | SettingKind::Rps { target, .. } | SettingKind::Xps { target, .. } => {
                match target {
                    RoutingTarget::Set(cpus)
                    | RoutingTarget::Each { of: cpus, .. }
                    | RoutingTarget::Balanced { over: cpus, .. }
                    | RoutingTarget::Random { over: cpus, .. }
                    | RoutingTarget::Rotating { over: cpus, .. } => cpus,
                    RoutingTarget::Hint | RoutingTarget::Unchanged => continue,
                }
            }
            _ => continue,
        };
        asked.push(("the setting".to_owned(), cpus, setting.span));
    }
    for (who, cpus, span) in asked {
        if let Some(cpu) = named_cpus_among(cpus, &absent) {
            let why = format!("{who} asks for CPU {cpu}, which the same treatment takes offline");
            let help = "ask for other CPUs, or leave the CPU online".to_owned();
            let mut fault = span.error(Meaning::Unreachable { why, help });
            let offline = settings.iter().find(|setting| setting.kind == SettingKind::CpuOffline(cpu.0));
            fault.related.extend(offline.map(|setting| (setting.span, "taken offline here".to_owned())));
            scope.fault(fault);
        }
        if let (true, Some(off)) = (is_other_threads(cpus), smt_off) {
            let why = format!("{who} asks for `{}`, and SMT is off in the same treatment", describe_cpus(cpus));
            let help = "ask for other CPUs, or skip this combination with `skip when`".to_owned();
            let mut fault = span.error(Meaning::Unreachable { why, help });
            fault.related.push((off.span, "switched off here".to_owned()));
            scope.fault(fault);
        }
    }
}
