//! One experiment: names, then treatments, then what is measured and judged.

use std::collections::BTreeMap;

use crate::design::{
    Experiment, Factor, Lab, Machine, Metric, Param, Protocol, RecordedSeries, Repeat, ReportOptions, SettingKind,
    Treatment,
};
use crate::diagnostic::{Diagnostic, Kind, Meaning, Thing};
use crate::source::{Span, Spanned};
use crate::syntax::ast::{self, Name, Recorded, ReportOption};

use super::clauses::Clauses;
use super::files;
use super::labs;
use super::machines;
use super::metrics::{self, Measurable};
use super::processes;
use super::protocol;
use super::recorded;
use super::recorded_file;
use super::scope::{Globals, Known, Scope};
use super::settings::SETTINGS;
use super::treatments::{self, Cells, Varied};
use super::verdicts;
use super::workloads::LINKED;

/// The layouts of reports.
pub const LAYOUTS: &[&str] = &["default", "low_high_average"];

/// Checks one experiment; `given` are the caller's parameters. The faults are those of this experiment alone.
pub(super) fn experiment(
    globals: &Globals<'_>,
    written: &ast::Experiment,
    given: &[(String, String)],
) -> Result<Experiment, Vec<Diagnostic>> {
    let mut scope = Scope::new(globals, Known::All);
    let scope = &mut scope;
    let clauses = Clauses::sort(scope, written);
    report_unsafe_name(scope, &written.name);
    let params = declare(scope, &clauses, given);
    let mut varied = treatments::factors(scope, &clauses);
    report_missing(scope, &clauses, &written.name);

    let Cells { all: cells, controls } = treatments::cells(scope, &clauses, &varied);
    let lab = lab(scope, &clauses, &mut varied, written);
    if lab.as_ref().is_some_and(|lab| lab.options.iter().any(|(option, _)| option == "link")) {
        scope.far_end = LINKED;
    }
    let mut treatments = Vec::new();
    for cell in &cells {
        let names = varied.iter().zip(&cell.0).map(|(varied, level)| varied.factor.levels[*level].clone());
        scope.cell = clauses_factor_names(&clauses, &varied).into_iter().zip(names).collect();
        let mut treatment = treatments::treatment(scope, &clauses, &mut varied, cell);
        treatment.machine = machine(scope, &clauses, &treatment);
        treatments.push(treatment);
    }
    scope.cell = BTreeMap::new();

    for name in &clauses.hard_to_change {
        match varied.iter_mut().find(|varied| varied.factor.name == name.value) {
            Some(varied) => varied.factor.hard_to_change = true,
            None => scope.unknown(Thing::Factor, name, clauses.vary.iter().map(|vary| vary.name.value.as_str())),
        }
    }
    let factors: Vec<Factor> = varied.iter().map(|varied| varied.factor.clone()).collect();
    let (metrics, recorded) = quantities(scope, &clauses, &factors, &treatments);
    let protocol = match clauses.recorded {
        // Published rows are of blocks only as far as their table says so; nothing is laid out for them.
        Some(_) => Protocol { repeat: Repeat::Fixed(1), warmup: 0, ..protocol::defaults() },
        None => protocol::protocol(scope, &clauses, &metrics),
    };
    let comparisons: Vec<_> = clauses
        .comparisons
        .iter()
        .filter_map(|compare| verdicts::comparison(scope, *compare, &factors, &metrics))
        .collect();
    let expectations: Vec<_> = clauses
        .expectations
        .iter()
        .filter_map(|expect| verdicts::expectation(scope, *expect, &factors, &metrics))
        .collect();
    let requirements = protocol::requirements(scope, &clauses);
    let report = report_options(scope, &clauses);
    let text =
        |scope: &mut Scope<'_>, text: Option<&ast::Text>, what| text.and_then(|text| scope.filled_text(text, what));
    let title = text(scope, clauses.title, "the title");
    let question = text(scope, clauses.question, "the question");
    let source = text(scope, clauses.source, "the source");
    report_unused(scope, &clauses, &varied);

    if !scope.faults.is_empty() {
        return Err(std::mem::take(&mut scope.faults));
    }
    let recorded_from = match clauses.recorded {
        Some(Recorded::From(path)) => scope.text(path).map(|text| Spanned::new(text, path.span)),
        _ => None,
    };
    Ok(Experiment {
        name: written.name.value.clone(),
        name_span: written.name.span,
        title: title.unwrap_or_else(|| written.name.value.clone()),
        question,
        source,
        params,
        lab,
        factors,
        controls,
        treatments,
        metrics,
        protocol,
        comparisons,
        expectations,
        requirements,
        recorded_from,
        recorded,
        report,
    })
}

/// Factor names as the syntax tree holds them, in the order of `varied`.
fn clauses_factor_names<'a>(clauses: &Clauses<'a>, varied: &[Varied<'a>]) -> Vec<&'a str> {
    let name = |varied: &Varied<'a>| {
        clauses.vary.iter().map(|vary| vary.name.value.as_str()).find(|name| *name == varied.factor.name)
    };
    varied.iter().filter_map(name).collect()
}

fn report_unsafe_name(scope: &mut Scope<'_>, name: &Name) {
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let starts_well = name.value.starts_with(|c: char| c.is_ascii_alphanumeric());
    if !starts_well || name.value.len() > 100 || !name.value.chars().all(allowed) {
        scope.fault(name.span.error(Meaning::UnsafeName { name: name.value.clone() }));
    }
}

/// Enters the experiment's names into the scope and reports those there twice; returns the parameters.
fn declare<'a>(scope: &mut Scope<'a>, clauses: &Clauses<'a>, given: &[(String, String)]) -> Vec<Param> {
    let mut params = Vec::new();
    for (name, value) in in_order_of_use(&clauses.params) {
        let replaced = given.iter().rev().find(|(given, _)| *given == name.value).map(|(_, value)| value.clone());
        let is_replaced = replaced.is_some();
        let plain = scope.value(value);
        let Some(value) = replaced.or(plain) else { continue };
        scope.params.insert(&name.value, value.clone());
        params.push(Param { name: name.value.clone(), value, replaced: is_replaced });
    }
    scope.lets = clauses.lets.iter().map(|(name, value)| (name.value.as_str(), *value)).collect();
    scope.factors = clauses.vary.iter().map(|vary| vary.name.value.as_str()).collect();
    let processes = || clauses.workloads.iter().chain(&clauses.backgrounds);
    scope.processes = processes().map(|process| process.name.value.as_str()).collect();

    let params_ = clauses.params.iter().map(|(name, _)| (Thing::Param, *name));
    let lets = clauses.lets.iter().map(|(name, _)| (Thing::Let, *name));
    let factors = clauses.vary.iter().map(|vary| (Thing::Factor, &vary.name));
    report_twice(scope, params_.chain(lets).chain(factors));
    report_twice(scope, processes().map(|process| (Thing::Process, &process.name)));
    for process in processes() {
        let name = &process.name;
        let means = if name.value == "host" {
            "the host's own metrics"
        } else if SETTINGS.iter().any(|row| row.name == name.value) {
            "a setting"
        } else {
            continue;
        };
        scope.fault(name.span.error(Meaning::ReservedName { name: name.value.clone(), means }));
    }
    params
}

/// Parameters, each behind those its value refers to, whatever their order in the file. What leads back to itself or
/// to nothing comes last and is reported when it is read.
fn in_order_of_use<'a>(params: &[(&'a Name, &'a ast::Value)]) -> Vec<(&'a Name, &'a ast::Value)> {
    let mut waiting = params.to_vec();
    let mut ordered: Vec<(&Name, &ast::Value)> = Vec::new();
    while !waiting.is_empty() {
        let ready = |value: &ast::Value| {
            let known = |name: &Name| ordered.iter().any(|(other, _)| other.value == name.value);
            match value {
                ast::Value::Number(ast::Number::Reference(name)) => known(name),
                ast::Value::Text(text) => text.parts.iter().all(|part| match part {
                    ast::TextPart::Literal(_) => true,
                    ast::TextPart::Reference(name) => known(name),
                }),
                ast::Value::Number(ast::Number::Literal { .. }) | ast::Value::Word(_) => true,
            }
        };
        let next = waiting.iter().position(|(_, value)| ready(value)).unwrap_or(0);
        ordered.push(waiting.remove(next));
    }
    ordered
}

/// Reports names of one kind, or of kinds that share their names, that are there twice: the later in the file.
fn report_twice<'n>(scope: &mut Scope<'_>, names: impl Iterator<Item = (Thing, &'n Name)>) {
    let mut names: Vec<(Thing, &Name)> = names.collect();
    names.sort_by_key(|(_, name)| name.span);
    for (index, (thing, name)) in names.iter().enumerate() {
        if let Some((other, first)) = names[..index].iter().find(|(_, first)| first.value == name.value) {
            let thing = if thing == other { *thing } else { Thing::Name };
            let mut fault = name.span.error(Meaning::Duplicate { thing, name: name.value.clone() });
            fault.related.push((first.span, "first here".to_owned()));
            scope.fault(fault);
        }
    }
}

/// Reports what an experiment cannot do without, and what recorded data have no use for.
fn report_missing(scope: &mut Scope<'_>, clauses: &Clauses<'_>, name: &Name) {
    if clauses.vary.is_empty() {
        scope.fault(name.span.error(Meaning::NothingVaried));
    }
    if clauses.recorded.is_none() {
        if clauses.workloads.is_empty() {
            scope.fault(name.span.error(Meaning::NothingRuns));
        }
        if clauses.measures.is_empty() {
            scope.fault(name.span.error(Meaning::NothingMeasured));
        }
        return;
    }
    let mut beside: Vec<(&'static str, Span)> = Vec::new();
    beside.extend(clauses.workloads.iter().map(|process| ("workload", process.name.span)));
    beside.extend(clauses.backgrounds.iter().map(|process| ("background", process.name.span)));
    beside.extend(clauses.measures.iter().map(|measure| ("measure", measure.expr.span)));
    beside.extend(clauses.hold.iter().map(|setting| ("hold", setting.span)));
    beside.extend(clauses.lab.iter().map(|(_, span)| ("lab", *span)));
    beside.extend(clauses.requirements.iter().map(|(_, span)| ("require", *span)));
    beside.extend(clauses.order.iter().map(|(kind, _)| ("order", kind.span)));
    beside.extend(clauses.warmup.iter().map(|number| ("warmup", number.span())));
    beside.extend(clauses.settle.iter().map(|number| ("settle", number.span())));
    beside.extend(clauses.timeout.iter().map(|number| ("timeout", number.span())));
    beside.extend(clauses.repeat.iter().map(|repeat| match repeat {
        ast::Repeat::Fixed(number) => ("repeat", number.span()),
        ast::Repeat::Until { metric, .. } => ("repeat", metric.span),
    }));
    for vary in &clauses.vary {
        if let ast::Levels::Settings(levels) = &vary.levels {
            let settings = levels.iter().flat_map(|level| &level.settings);
            beside.extend(settings.map(|setting| ("setting", setting.span)));
        }
    }
    for (clause, span) in beside {
        scope.fault(span.error(Meaning::RecordedBeside { clause }));
    }
}

/// Metrics: those of `measure`, or those of the recorded table with its series.
fn quantities<'a>(
    scope: &mut Scope<'a>,
    clauses: &Clauses<'a>,
    factors: &[Factor],
    treatments: &[Treatment],
) -> (Vec<Metric>, Vec<RecordedSeries>) {
    match clauses.recorded {
        Some(Recorded::Rows(table)) if table.is_empty() => {
            let place = clauses.vary.first().map(|vary| vary.name.span);
            if let Some(place) = place {
                scope.fault(place.error(Meaning::NothingRecorded));
            }
            (Vec::new(), Vec::new())
        }
        Some(Recorded::Rows(table)) => recorded::recorded(scope, table, factors, treatments),
        Some(Recorded::From(path)) => {
            let nothing = (Vec::new(), Vec::new());
            let Some(written) = scope.filled_text(path, "the path") else { return nothing };
            let Some(sources) = scope.globals.sources else { return nothing };
            let Some(file) = files::data_file(sources, path.span.file, &written) else { return nothing };
            match recorded_file::table(sources, file, factors) {
                Ok(table) => recorded::recorded(scope, &table, factors, treatments),
                Err(faults) => {
                    for fault in faults {
                        scope.fault(fault);
                    }
                    nothing
                }
            }
        }
        None => {
            let mut measurable = Measurable::default();
            for workload in &clauses.workloads {
                let options = processes::options(scope, workload).unwrap_or_default();
                measurable.workloads.push(processes::yields(scope, &workload.name, options));
            }
            measurable.backgrounds = clauses.backgrounds.iter().map(|process| process.name.value.clone()).collect();
            (metrics::measured(scope, &measurable, &clauses.measures), Vec::new())
        }
    }
}

/// The lab of the experiment. A factor the lab depends on is hard to change.
fn lab<'a>(
    scope: &mut Scope<'a>,
    clauses: &Clauses<'a>,
    varied: &mut [Varied<'a>],
    written: &ast::Experiment,
) -> Option<Lab> {
    let (lab, span) = clauses.lab?;
    let Some(options) = lab_options(scope, clauses) else {
        if let Some(name) = &lab.name {
            let known: Vec<&str> = scope.globals.labs.keys().copied().collect();
            scope.unknown(Thing::Lab, name, known);
        }
        return None;
    };
    let references = labs::references(options);
    for varied in varied.iter_mut().filter(|varied| references.contains(&varied.factor.name.as_str())) {
        varied.factor.hard_to_change = true;
    }
    let name = lab.name.as_ref().unwrap_or(&written.name);
    Some(labs::lab(scope, &name.value, options, span))
}

/// Options of the experiment's lab, written in place or at the top of a file.
fn lab_options<'a>(scope: &Scope<'a>, clauses: &Clauses<'a>) -> Option<&'a [ast::LabOption]> {
    let (lab, _) = clauses.lab?;
    let shared = || scope.globals.labs.get(lab.name.as_ref()?.value.as_str()).map(|shared| shared.options.as_slice());
    lab.options.as_deref().or_else(shared)
}

/// The machine of the treatment looked at.
fn machine(scope: &mut Scope<'_>, clauses: &Clauses<'_>, treatment: &Treatment) -> Option<Machine> {
    let options = lab_options(scope, clauses)?;
    let (_, span) = clauses.lab?;
    for setting in &treatment.settings {
        if let SettingKind::Boot(text) = &setting.kind {
            machines::boot_words(scope, text, setting.span);
        }
    }
    machines::machine(scope, options, span)
}

fn report_options(scope: &mut Scope<'_>, clauses: &Clauses<'_>) -> ReportOptions {
    let mut report = ReportOptions::default();
    for option in clauses.report.unwrap_or_default() {
        match option {
            ReportOption::Layout(name) if !LAYOUTS.contains(&name.value.as_str()) => {
                scope.unknown(Thing::Layout, name, LAYOUTS.iter().copied());
            }
            ReportOption::Layout(name) => report.layout = Some(name.value.clone()),
            ReportOption::Template(text) => report.template = scope.filled_text(text, "the path"),
        }
    }
    report
}

/// Reports names nothing refers to. A misspelt reference would make its name look unused, so this waits until every
/// name is known.
fn report_unused(scope: &mut Scope<'_>, clauses: &Clauses<'_>, varied: &[Varied<'_>]) {
    let misspelt = |fault: &Diagnostic| {
        matches!(
            fault.kind,
            Kind::Meaning(Meaning::Unknown { .. } | Meaning::EverythingSkipped | Meaning::TooManyTreatments { .. })
        )
    };
    if scope.faults.iter().any(misspelt) {
        return;
    }
    let params = clauses.params.iter().map(|(name, _)| (Thing::Param, *name));
    let lets = clauses.lets.iter().map(|(name, _)| (Thing::Let, *name));
    for (thing, name) in params.chain(lets) {
        if !scope.used.contains(&name.value) {
            scope.fault(name.span.error(Meaning::Unused { thing, name: name.value.clone() }));
        }
    }
    if clauses.recorded.is_some() {
        return;
    }
    for varied in varied.iter().filter(|varied| varied.values) {
        if !scope.used.contains(&varied.factor.name) {
            let factor = varied.factor.name.clone();
            scope.fault(varied.factor.span.error(Meaning::UnusedFactor { factor }));
        }
    }
}
