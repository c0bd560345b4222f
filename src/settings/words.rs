//! Changes in plain words, for plans, errors and recordings.

use super::journal::{Saved, Thing};
use super::{Refusal, SettingError, affinity, hotplug, kernel_file, service, tasks};
use crate::bind::{Change, ChangeKind};
use crate::cpu_set::CpuSet;
use crate::design::ServiceState;
use crate::host::files::{Files, SystemError};

/// Says what a change does: `irq 36 -> cpu 0`, `sysctl kernel.nmi_watchdog=0`.
pub fn describe(change: &Change) -> String {
    match &change.kind {
        ChangeKind::Affinity { identity, mask, .. } => format!("irq {} -> {}", identity.irq, cpus(mask)),
        ChangeKind::Command { command, .. } => format!("run `{}`", shell_words::join(command)),
        ChangeKind::CpuOnline { cpu, online: true } => format!("cpu {cpu} online"),
        ChangeKind::CpuOnline { cpu, online: false } => format!("cpu {cpu} offline"),
        ChangeKind::DefaultAffinity { mask } => format!("default irq -> {}", cpus(mask)),
        ChangeKind::File { path, value } => match path.strip_prefix("/proc/sys/") {
            Some(key) => format!("sysctl {}={value}", key.replace('/', ".")),
            None => format!("write {path} {value}"),
        },
        ChangeKind::Service { name, state, options } => {
            let words =
                [running(*state == ServiceState::Started)].into_iter().chain(options.iter().map(String::as_str));
            format!("service {name} {}", words.collect::<Vec<_>>().join(" "))
        }
        ChangeKind::Smt { on } => format!("smt {}", if *on { "on" } else { "off" }),
        ChangeKind::Tasks { pattern, cpus: set } => format!("tasks {pattern} on {}", cpus(set)),
    }
}

/// Reads the present value of what a change would set, in the same words.
pub fn current(change: &Change, files: &dyn Files) -> Result<String, SystemError> {
    let mask = |path: &str| -> Result<String, SystemError> {
        let text = files.read_text(path)?;
        Ok(CpuSet::parse_mask(&text).map_or(text, |mask| cpus(&mask)))
    };
    match &change.kind {
        ChangeKind::Affinity { identity, .. } => mask(&affinity::path(identity)),
        ChangeKind::Command { .. } => Ok("not run".to_owned()),
        ChangeKind::CpuOnline { cpu, .. } => {
            let now = hotplug::save_cpu(files, *cpu).map_err(|refusal| refusal.source)?;
            Ok(if hotplug::is_right(&now, true) { "online" } else { "offline" }.to_owned())
        }
        ChangeKind::DefaultAffinity { .. } => mask(affinity::DEFAULT),
        ChangeKind::File { path, .. } => Ok(kernel_file::words(&files.read_text(path)?)),
        ChangeKind::Service { name, .. } => Ok(running(service::is_running(files, name)?).to_owned()),
        ChangeKind::Smt { .. } => files.read_text(hotplug::SMT),
        ChangeKind::Tasks { pattern, cpus } => tasks::census(files, pattern, cpus),
    }
}

/// Names a thing that is put back.
pub(super) fn name(thing: &Thing) -> String {
    match thing {
        Thing::Affinity { irq, .. } => format!("irq {irq}"),
        Thing::Command { command, .. } => format!("run `{}`", shell_words::join(command)),
        Thing::CpuOnline { cpu } => format!("cpu {cpu}"),
        Thing::Cpuset { path } | Thing::File { path } => path.clone(),
        Thing::DefaultAffinity => "default irq".to_owned(),
        Thing::Service { name } => format!("service {name}"),
        Thing::Smt => "smt".to_owned(),
        Thing::Sweep { pattern, cpus, .. } => format!("tasks {pattern} on {cpus}"),
        Thing::Task { tid, name, .. } => format!("task {tid} ({name})"),
    }
}

/// The present state of what a change set, in the words of [`asked`].
pub(super) fn found(change: &Change, saved: &Saved) -> String {
    let text = shown(saved);
    let is_mask = matches!(change.kind, ChangeKind::Affinity { .. } | ChangeKind::DefaultAffinity { .. });
    match CpuSet::parse_mask(&text) {
        Ok(mask) if is_mask => cpus(&mask),
        _ => text,
    }
}

/// A state that was read.
pub(super) fn shown(saved: &Saved) -> String {
    match saved {
        Saved::Text(_) | Saved::Hex(_) => kernel_file::words(&kernel_file::text_of(saved)),
        Saved::Processes(_) | Saved::Unit { .. } => running(service::runs(saved)).to_owned(),
        Saved::Cpus(cpus) => cpus.clone(),
        Saved::Nothing => "online".to_owned(),
    }
}

/// What a change asks for, alone.
pub(super) fn asked(change: &Change) -> String {
    match &change.kind {
        ChangeKind::Affinity { mask, .. } | ChangeKind::DefaultAffinity { mask } => cpus(mask),
        ChangeKind::Command { command, .. } => shell_words::join(command),
        ChangeKind::CpuOnline { online, .. } => if *online { "online" } else { "offline" }.to_owned(),
        ChangeKind::File { value, .. } => value.clone(),
        ChangeKind::Service { state: ServiceState::Started, options, .. } => service::started(options),
        ChangeKind::Service { state: ServiceState::Stopped, .. } => running(false).to_owned(),
        ChangeKind::Smt { on } => if *on { "on" } else { "off" }.to_owned(),
        ChangeKind::Tasks { cpus: set, .. } => cpus(set),
    }
}

/// Ties a refusal to the setting.
pub(super) fn error(change: &Change, refusal: Refusal) -> SettingError {
    SettingError { setting: describe(change), meaning: refusal.meaning, span: change.span, source: refusal.source }
}

fn cpus(set: &CpuSet) -> String {
    match set.len() {
        0 => "no cpu".to_owned(),
        1 => format!("cpu {set}"),
        _ => format!("cpus {set}"),
    }
}

fn running(runs: bool) -> &'static str {
    if runs { "started" } else { "stopped" }
}
