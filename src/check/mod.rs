//! A syntax tree becomes a checked experiment: names, units, defaults, treatments. Pushes every fault of a file;
//! touches no host.

mod clauses;
mod conflicts;
mod experiment;
mod files;
mod labs;
mod machines;
mod metrics;
mod parsers;
mod processes;
mod protocol;
mod recorded;
mod recorded_file;
mod scope;
mod selectors;
mod settings;
mod treatments;
mod units;
mod verdicts;
mod workloads;

pub mod vocabulary;

use crate::design::Experiment;
use crate::diagnostic::{Diagnostic, Meaning, Thing};
use crate::source::{FileId, Sources, Span};
use crate::syntax::ast::{self, Item, Name};

use scope::{Globals, Known, Scope};

pub use files::{Checked, Failed, LoadError, load, load_texts};

/// What the caller says beside the file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// `--set name=value`; the last of a name counts.
    pub params: Vec<(String, String)>,
}

/// Checks parsed files: the named one first, then those it uses, directly or not. Experiments are those of the
/// first; of the others only policies, workloads and labs are taken.
///
/// Returns every fault of the files, in file order.
pub fn check(
    sources: &Sources,
    files: &[(FileId, ast::File)],
    options: &Options,
) -> Result<Vec<Experiment>, Vec<Diagnostic>> {
    let (mut globals, mut faults) = globals(files);
    globals.sources = Some(sources);
    let named: Vec<&ast::Experiment> =
        files.first().map(|(_, file)| file.items.iter().filter_map(as_experiment).collect()).unwrap_or_default();
    report_twice(&mut faults, Thing::Experiment, named.iter().map(|experiment| &experiment.name));
    faults.extend(shared_faults(&globals));
    let mut experiments = Vec::new();
    for written in &named {
        match experiment::experiment(&globals, written, &options.params) {
            Ok(experiment) => experiments.push(experiment),
            Err(found) => faults.extend(found),
        }
    }
    faults.extend(unknown_params(files, &named, options));
    let mut once: Vec<Diagnostic> = Vec::new();
    for fault in faults {
        if !once.contains(&fault) {
            once.push(fault);
        }
    }
    once.sort_by_key(|fault| fault.span);
    debug_assert!(once.iter().all(|fault| fault.span.end <= sources.get(fault.span.file).text.len()));
    if once.is_empty() { Ok(experiments) } else { Err(once) }
}

fn as_experiment(item: &Item) -> Option<&ast::Experiment> {
    match item {
        Item::Experiment(experiment) => Some(experiment),
        Item::Lab(_) | Item::Policy(_) | Item::Use(_) | Item::Workload(_) => None,
    }
}

/// The shared names of all files; of names there twice the first counts.
fn globals(files: &[(FileId, ast::File)]) -> (Globals<'_>, Vec<Diagnostic>) {
    let mut globals = Globals::default();
    let mut faults = Vec::new();
    let items = || files.iter().flat_map(|(_, file)| &file.items);
    for item in items() {
        match item {
            Item::Lab(lab) => {
                globals.labs.entry(&lab.name.value).or_insert(lab);
            }
            Item::Policy(policy) => {
                globals.policies.entry(&policy.name.value).or_insert(policy);
                if settings::SETTINGS.iter().any(|row| row.name == policy.name.value) {
                    let name = policy.name.value.clone();
                    faults.push(policy.name.span.error(Meaning::ReservedName { name, means: "a setting" }));
                }
            }
            Item::Workload(workload) => {
                globals.workloads.entry(&workload.name.value).or_insert(workload);
            }
            Item::Experiment(_) | Item::Use(_) => {}
        }
    }
    let named = |wanted: Thing| {
        items().filter_map(move |item| match item {
            Item::Lab(lab) if wanted == Thing::Lab => Some(&lab.name),
            Item::Policy(policy) if wanted == Thing::Policy => Some(&policy.name),
            Item::Workload(workload) if wanted == Thing::Workload => Some(&workload.name),
            _ => None,
        })
    };
    for thing in [Thing::Lab, Thing::Policy, Thing::Workload] {
        report_twice(&mut faults, thing, named(thing));
    }
    (globals, faults)
}

fn report_twice<'n>(faults: &mut Vec<Diagnostic>, thing: Thing, names: impl Iterator<Item = &'n Name>) {
    let names: Vec<&Name> = names.collect();
    for (index, name) in names.iter().enumerate() {
        if let Some(first) = names[..index].iter().find(|first| first.value == name.value) {
            let mut fault = name.span.error(Meaning::Duplicate { thing, name: name.value.clone() });
            fault.related.push((first.span, "first here".to_owned()));
            faults.push(fault);
        }
    }
}

/// Faults of shared definitions that show without knowing who uses them.
fn shared_faults(globals: &Globals<'_>) -> Vec<Diagnostic> {
    let mut scope = Scope::new(globals, Known::Shared);
    for policy in globals.policies.values() {
        // A policy that names itself is found from inside it.
        scope.open.push(format!("policy {}", policy.name.value));
        let settings = settings::resolve_all(&mut scope, &policy.settings);
        conflicts::report_conflicts(&mut scope, &settings);
        scope.open.clear();
    }
    for workload in globals.workloads.values() {
        let options = workload.options.as_deref().unwrap_or_default();
        processes::yields(&mut scope, &workload.name, options);
        processes::process(&mut scope, workload, options, processes::Role::Workload);
    }
    for lab in globals.labs.values() {
        labs::lab(&mut scope, &lab.name.value, &lab.options, lab.span);
        machines::machine(&mut scope, &lab.options, lab.span);
    }
    scope.faults
}

/// `--set` of names no experiment has, pointed at the first experiment, or at the start of a file without any.
fn unknown_params(
    files: &[(FileId, ast::File)],
    experiments: &[&ast::Experiment],
    options: &Options,
) -> Vec<Diagnostic> {
    let mut known: Vec<String> = Vec::new();
    for clause in experiments.iter().flat_map(|experiment| &experiment.clauses) {
        if let ast::ClauseKind::Param { name, .. } = &clause.kind
            && !known.contains(&name.value)
        {
            known.push(name.value.clone());
        }
    }
    let Some((file, _)) = files.first() else { return Vec::new() };
    let place = experiments.first().map_or(Span { file: *file, start: 0, end: 0 }, |first| first.name.span);
    let unknown = options.params.iter().filter(|(name, _)| !known.contains(name));
    unknown
        .map(|(name, _)| {
            let near = nearest(name, known.iter().map(String::as_str));
            place.error(Meaning::UnknownParameterGiven { name: name.clone(), near, known: known.clone() })
        })
        .collect()
}

/// The most similar of the known names, where one is similar enough to have been meant.
fn nearest<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> Option<String> {
    let lower = name.to_lowercase();
    let close = |known: &str| {
        let distance = strsim::damerau_levenshtein(&lower, &known.to_lowercase());
        let allowed = name.chars().count().max(known.chars().count()) / 3;
        (distance <= allowed.max(1) && distance < known.chars().count()).then_some(distance)
    };
    let found = known.into_iter().filter_map(|known| close(known).map(|distance| (distance, known)));
    found.min_by_key(|(distance, _)| *distance).map(|(_, known)| known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_suggested_only_when_it_is_close() {
        let known = ["governor", "service", "smt", "sysctl"];
        assert_eq!(nearest("governer", known), Some("governor".to_owned()));
        assert_eq!(nearest("Service", known), Some("service".to_owned()));
        assert_eq!(nearest("stm", known), Some("smt".to_owned()));
        assert_eq!(nearest("fan_speed", known), None);
        assert_eq!(nearest("x", ["y"]), None);
    }
}
