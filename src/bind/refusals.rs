//! What the language can say and this version does not execute yet. The one list of it: `run` stops here with exit
//! status 4 before anything is touched.

use crate::design::{Experiment, Order, Process, Repeat, Setting, SettingKind};
use crate::diagnostic::{Diagnostic, Kind};
use crate::source::Span;

/// Everything of the experiment that cannot be executed yet, each place once.
pub fn refusals(experiment: &Experiment) -> Vec<Diagnostic> {
    let mut refused: Vec<(Span, String)> = Vec::new();
    let mut refuse = |span: Span, what: String| {
        if !refused.contains(&(span, what.clone())) {
            refused.push((span, what));
        }
    };
    if let Repeat::Until { .. } = experiment.protocol.repeat
        && experiment.protocol.order != Order::Blocks
    {
        refuse(experiment.name_span, "`repeat until` in an order without blocks".to_owned());
    }
    for treatment in &experiment.treatments {
        for setting in &treatment.settings {
            // A lab's machine is booted with them.
            if experiment.lab.is_some() && matches!(setting.kind, SettingKind::Boot(_)) {
                continue;
            }
            if let Some(what) = setting_refusal(setting) {
                refuse(setting.span, what);
            }
        }
        for process in treatment.workloads.iter().chain(&treatment.backgrounds) {
            for what in process_refusals(process) {
                refuse(process.span, what);
            }
        }
    }
    refused.into_iter().map(|(span, what)| span.error(Kind::NotExecutedYet { what })).collect()
}

fn setting_refusal(setting: &Setting) -> Option<String> {
    let what = match &setting.kind {
        SettingKind::Channels { .. } => "`channels`",
        SettingKind::Coalesce { .. } => "`coalesce`",
        SettingKind::IdleStates(_) => "`idle_states`",
        SettingKind::IrqThreads { .. } => "`irq_threads`",
        SettingKind::Napi { .. } => "`napi`",
        SettingKind::Offload { .. } => "`offload`",
        SettingKind::Rfs { .. } => "`rfs`",
        SettingKind::Rings { .. } => "`rings`",
        SettingKind::Rps { .. } => "`rps`",
        SettingKind::Turbo(_) => "`turbo`",
        SettingKind::Workqueues(_) => "`workqueues`",
        SettingKind::Xps { .. } => "`xps`",
        SettingKind::Boot(_)
        | SettingKind::CpuOffline(_)
        | SettingKind::DefaultRoute(_)
        | SettingKind::Governor(_)
        | SettingKind::Route { .. }
        | SettingKind::Run { .. }
        | SettingKind::Service { .. }
        | SettingKind::Smt(_)
        | SettingKind::Sysctl { .. }
        | SettingKind::Tasks { .. }
        | SettingKind::Write { .. } => return None,
    };
    Some(what.to_owned())
}

fn process_refusals(process: &Process) -> Vec<String> {
    let mut refused = Vec::new();
    if process.at.is_some() {
        refused.push("`at`, a process on another machine".to_owned());
    }
    refused
}
