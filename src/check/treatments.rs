//! Factors and levels become treatments: every combination, less those skipped, with its settings and processes.

use crate::design::{CpuSelector, Factor, Process, Setting, SettingKind, Treatment};
use crate::diagnostic::{Meaning, Thing};
use crate::source::Span;
use crate::syntax::ast::{self, Levels, Name};

use super::clauses::Clauses;
use super::conflicts;
use super::processes::{self, Role};
use super::scope::Scope;
use super::settings::{self, Resolved};
use super::verdicts;

/// The most treatments an experiment may have.
pub const MOST_TREATMENTS: usize = 4096;

/// The most copies of a treatment `control` may ask for, the treatment itself counted.
const MOST_REPEATED: f64 = 20.0;

/// A factor with the settings of its levels.
pub(super) struct Varied<'a> {
    pub(super) factor: Factor,
    /// Places of the levels' names.
    spans: Vec<Span>,
    /// Settings by level; none for a factor of values.
    settings: Vec<&'a [ast::Setting]>,
    /// Whether it is a factor of values.
    pub(super) values: bool,
}

/// The factors in file order.
pub(super) fn factors<'a>(scope: &mut Scope<'a>, clauses: &Clauses<'a>) -> Vec<Varied<'a>> {
    let mut varied: Vec<Varied<'a>> = Vec::new();
    for vary in &clauses.vary {
        let mut named: Vec<(Name, &'a [ast::Setting])> = Vec::new();
        match &vary.levels {
            Levels::Settings(levels) => {
                named.extend(levels.iter().map(|level| (level.name.clone(), level.settings.as_slice())));
            }
            Levels::Values(values) => {
                for value in values {
                    if let Some(name) = scope.value(value) {
                        named.push((Name::new(name, value.span()), &[]));
                    }
                }
            }
        }
        if named.is_empty() && scope.faults.is_empty() {
            scope.fault(vary.name.span.error(Meaning::NothingVaried));
        }
        let mut kept: Vec<(Name, &'a [ast::Setting])> = Vec::new();
        for (name, settings) in named {
            if let Some((first, _)) = kept.iter().find(|(first, _)| first.value == name.value) {
                let meaning = Meaning::Duplicate { thing: Thing::Level, name: name.value.clone() };
                let mut fault = name.span.error(meaning);
                fault.related.push((first.span, "first here".to_owned()));
                scope.fault(fault);
            } else {
                kept.push((name, settings));
            }
        }
        // A factor there twice is reported with the other names; its levels would only multiply the faults.
        if kept.is_empty() || varied.iter().any(|varied| varied.factor.name == vary.name.value) {
            continue;
        }
        let levels = kept.iter().map(|(name, _)| name.value.clone()).collect();
        varied.push(Varied {
            factor: Factor { name: vary.name.value.clone(), span: vary.name.span, levels, hard_to_change: false },
            spans: kept.iter().map(|(name, _)| name.span).collect(),
            settings: kept.iter().map(|(_, settings)| *settings).collect(),
            values: matches!(vary.levels, Levels::Values(_)),
        });
    }
    varied
}

/// The cells of a design.
#[derive(Default)]
pub(super) struct Cells {
    /// Level indices of every treatment with the number of its control copy.
    pub(super) all: Vec<(Vec<usize>, usize)>,
    /// Factor and level of each `control`.
    pub(super) controls: Vec<(usize, usize)>,
}

/// The cells in lexical order of levels.
pub(super) fn cells(scope: &mut Scope<'_>, clauses: &Clauses<'_>, varied: &[Varied<'_>]) -> Cells {
    let factors: Vec<Factor> = varied.iter().map(|varied| varied.factor.clone()).collect();
    let Some(last) = factors.last() else { return Cells::default() };
    let count: u128 = factors.iter().map(|factor| factor.levels.len() as u128).product();
    if count > MOST_TREATMENTS as u128 {
        let meaning = Meaning::TooManyTreatments { count, limit: MOST_TREATMENTS };
        scope.fault(last.span.error(meaning));
        return Cells::default();
    }
    let skips: Vec<Vec<(usize, usize, bool)>> =
        clauses.skips.iter().filter_map(|conditions| skip(scope, conditions, &factors)).collect();
    let skipped = |cell: &[usize]| {
        let holds = |(factor, level, equal): &(usize, usize, bool)| (cell[*factor] == *level) == *equal;
        skips.iter().any(|conditions| conditions.iter().all(holds))
    };
    let mut cells: Vec<Vec<usize>> = vec![Vec::new()];
    for factor in &factors {
        let longer = |cell: Vec<usize>| (0..factor.levels.len()).map(move |level| [cell.clone(), vec![level]].concat());
        cells = cells.into_iter().flat_map(longer).collect();
    }
    cells.retain(|cell| !skipped(cell));
    report_skipped(scope, clauses, varied, &cells);
    let controls = controls(scope, clauses, &factors);
    let mut all = Vec::new();
    for cell in cells {
        let copies = controls.iter().filter(|(factor, level, _)| cell[*factor] == *level);
        let copies = copies.map(|(_, _, repeated)| *repeated).max().unwrap_or(1);
        all.extend((0..copies).map(|copy| (cell.clone(), copy)));
    }
    Cells { all, controls: controls.iter().map(|(factor, level, _)| (*factor, *level)).collect() }
}

/// The conditions of one `skip when` as factor, level, and whether they must be equal.
fn skip(scope: &mut Scope<'_>, conditions: &[ast::Condition], factors: &[Factor]) -> Option<Vec<(usize, usize, bool)>> {
    let mut resolved = Some(Vec::new());
    for condition in conditions {
        let factor = verdicts::factor(scope, &condition.factor, factors);
        let level = factor.and_then(|factor| verdicts::level_of(scope, &condition.level, &factors[factor]));
        let equal = match condition.operator.value.as_str() {
            "==" => Some(true),
            "!=" => Some(false),
            other => {
                let meaning = Meaning::WrongOperator { operator: other.to_owned(), allowed: &["==", "!="] };
                scope.fault(condition.operator.span.error(meaning));
                None
            }
        };
        let triple = factor.zip(level).zip(equal).map(|((factor, level), equal)| (factor, level, equal));
        resolved = resolved.zip(triple).map(|(mut resolved, triple)| {
            resolved.push(triple);
            resolved
        });
    }
    resolved
}

fn report_skipped(scope: &mut Scope<'_>, clauses: &Clauses<'_>, varied: &[Varied<'_>], cells: &[Vec<usize>]) {
    if cells.is_empty() {
        let place = clauses.skips.last().and_then(|conditions| conditions.first());
        if let Some(condition) = place {
            scope.fault(condition.factor.span.error(Meaning::EverythingSkipped));
        }
        return;
    }
    for (index, varied) in varied.iter().enumerate() {
        for (level, span) in varied.spans.iter().enumerate() {
            if !cells.iter().any(|cell| cell[index] == level) {
                let (factor, level) = (varied.factor.name.clone(), varied.factor.levels[level].clone());
                scope.fault(span.error(Meaning::LevelNeverRuns { factor, level }));
            }
        }
    }
}

/// Factor, level and how often it runs in a block.
fn controls(scope: &mut Scope<'_>, clauses: &Clauses<'_>, factors: &[Factor]) -> Vec<(usize, usize, usize)> {
    let mut controls: Vec<(usize, usize, usize)> = Vec::new();
    for (level, repeated) in &clauses.controls {
        let bounds = super::units::Bounds { what: "`repeated`", low: 2.0, high: MOST_REPEATED };
        let repeated = super::units::integer(scope, repeated, bounds);
        let Some(found) = verdicts::levels(scope, level, factors) else { continue };
        if let [(factor, index)] = found[..] {
            if controls.iter().any(|(other, level, _)| (*other, *level) == (factor, index)) {
                let name = format!("control {}", level.level.value);
                scope.fault(level.level.span.error(Meaning::Duplicate { thing: Thing::Clause, name }));
            }
            controls.extend(repeated.map(|repeated| (factor, index, repeated as usize)));
        } else {
            let names = found.iter().map(|(factor, _)| factors[*factor].name.clone()).collect();
            let meaning = Meaning::AmbiguousLevel { level: level.level.value.clone(), factors: names };
            scope.fault(level.level.span.error(meaning));
        }
    }
    controls
}

/// The name of a treatment: `routing=one_cpu, nics=2`, a control copy with its number behind it.
pub(super) fn name(varied: &[Varied<'_>], cell: &[usize], copy: usize) -> String {
    let part =
        |(varied, level): (&Varied<'_>, &usize)| format!("{}={}", varied.factor.name, varied.factor.levels[*level]);
    let parts: Vec<String> = varied.iter().zip(cell).map(part).collect();
    let control = if copy == 0 { String::new() } else { format!(" (control {})", copy + 1) };
    parts.join(", ") + &control
}

/// A treatment with everything it asks for. Marks factors that are hard to change.
pub(super) fn treatment<'a>(
    scope: &mut Scope<'a>,
    clauses: &Clauses<'a>,
    varied: &mut [Varied<'a>],
    (cell, copy): &(Vec<usize>, usize),
) -> Treatment {
    let mut resolved = resolve_held(scope, clauses);
    for (varied, level) in varied.iter_mut().zip(cell) {
        let of_level = settings::resolve_all(scope, varied.settings.get(*level).copied().unwrap_or_default());
        if of_level.iter().any(is_hard_to_change) {
            varied.factor.hard_to_change = true;
        }
        resolved.extend(of_level);
    }
    conflicts::report_conflicts(scope, &resolved);
    let (mut settings, mut places) = (Vec::<Setting>::new(), Vec::new());
    for resolved in resolved {
        match resolved {
            Resolved::Host(setting) => settings.push(setting),
            Resolved::Placement { process, cpus, span } => places.push((process, cpus, span)),
        }
    }
    let workloads = all(scope, &clauses.workloads, Role::Workload, &places);
    let backgrounds = all(scope, &clauses.backgrounds, Role::Background, &places);
    conflicts::report_unreachable(scope, &settings, &workloads);
    conflicts::report_unreachable(scope, &settings, &backgrounds);
    let processes = |placed: Vec<(Process, Span)>| placed.into_iter().map(|(process, _)| process).collect();
    let (workloads, backgrounds) = (processes(workloads), processes(backgrounds));
    let name = name(varied, cell, *copy);
    Treatment { name, levels: cell.clone(), control: *copy, machine: None, settings, workloads, backgrounds }
}

fn resolve_held(scope: &mut Scope<'_>, clauses: &Clauses<'_>) -> Vec<Resolved> {
    clauses.hold.iter().flat_map(|setting| settings::resolve_all(scope, std::slice::from_ref(*setting))).collect()
}

/// The processes of one role, each with the place its CPUs are written at.
fn all<'a>(
    scope: &mut Scope<'a>,
    written: &[&'a ast::Process],
    role: Role,
    places: &[(String, CpuSelector, Span)],
) -> Vec<(Process, Span)> {
    let mut resolved = Vec::new();
    for written in written {
        let Some(options) = processes::options(scope, written) else { continue };
        let Some(mut process) = processes::process(scope, written, options, role) else { continue };
        let own = options.iter().find(|option| matches!(option.kind, ast::ProcessOptionKind::On(_)));
        let mut place = own.map_or(process.span, |option| option.span);
        if let Some((_, cpus, span)) = places.iter().find(|(name, _, _)| *name == process.name) {
            if process.cpus.is_some() {
                let what = format!("the place of `{}`", process.name);
                let mut fault = span.error(Meaning::Conflict { what });
                fault.related.push((place, "it has an `on` of its own".to_owned()));
                scope.fault(fault);
            }
            process.cpus = Some(cpus.clone());
            place = *span;
        }
        resolved.push((process, place));
    }
    resolved
}

/// Settings that need a boot, or that take CPUs away and give them back.
fn is_hard_to_change(resolved: &Resolved) -> bool {
    let Resolved::Host(setting) = resolved else { return false };
    matches!(setting.kind, SettingKind::Boot(_) | SettingKind::CpuOffline(_) | SettingKind::Smt(_))
}
