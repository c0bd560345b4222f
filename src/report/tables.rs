//! Results and comparisons as tables.

use super::number::{self, Digits, fixed, p_value};
use super::published;
use super::sentence::{self, Context};
use super::text::{Table, code, inline};
use super::view::MetricView;
use crate::analysis::{Cell, ComparisonFinding, Findings, Flag, MetricFindings, Scale};
use crate::recording::{Design, Direction, Header};

/// Cells with more values than this have them in the recording only.
const LISTED: usize = 10;

/// Column of the median's interval, left out where no cell has one.
const INTERVAL: usize = 6;

/// Results of every metric.
pub(super) fn metrics(header: &Header, findings: &Findings) -> Vec<MetricView> {
    findings.metrics.iter().map(|metric| one_metric(header, findings, metric)).collect()
}

fn one_metric(header: &Header, findings: &Findings, metric: &MetricFindings) -> MetricView {
    let design = &header.design;
    let digits = digits(metric);
    let has_interval = |cell: &Cell| cell.summary.is_some_and(|summary| summary.median_interval.is_some());
    let with_interval = metric.cells.iter().any(has_interval);
    let row = |row: [String; 9]| {
        let places = row.into_iter().enumerate();
        places.filter(|(place, _)| with_interval || *place != INTERVAL).map(|(_, text)| text).collect::<Vec<String>>()
    };
    let headings = ["treatment", ">n", ">low", ">high", ">mean", ">median", ">its interval", ">geometric mean", ">CV"];
    let headings: Vec<String> = row(headings.map(str::to_owned));
    let mut rows = Vec::new();
    let mut values = Vec::new();
    for cell in &metric.cells {
        let name = treatment(design, cell.treatment);
        if let Some(published) = cell.published {
            let n = published.n.map_or_else(|| "unknown".to_owned(), |n| n.to_string());
            let [low, high, average] =
                [published.low, published.high, published.average].map(|value| fixed(value, digits.values));
            rows.push(row([name, n, low, high, average, dash(), dash(), dash(), dash()]));
            continue;
        }
        let Some(summary) = cell.summary else {
            rows.push(row([name, "0".to_owned(), dash(), dash(), dash(), dash(), dash(), dash(), dash()]));
            continue;
        };
        let derived = if summary.n == 1 { digits.values } else { digits.derived };
        rows.push(row([
            name.clone(),
            summary.n.to_string(),
            fixed(summary.low, digits.values),
            fixed(summary.high, digits.values),
            fixed(summary.mean, derived),
            fixed(summary.median, derived),
            summary.median_interval.map_or_else(dash, |(low, high, coverage)| {
                format!(
                    "{} to {} ({})",
                    fixed(low, digits.values),
                    fixed(high, digits.values),
                    number::coverage(coverage)
                )
            }),
            summary.geometric_mean.map_or_else(dash, |mean| fixed(mean, derived)),
            summary.cv.map_or_else(dash, |cv| format!("{} %", fixed(cv * 100.0, 1))),
        ]));
        if !cell.values.is_empty() && cell.values.len() <= LISTED {
            let listed: Vec<String> = cell.values.iter().map(|(_, value)| fixed(*value, digits.values)).collect();
            let source = if cell.recovered { " (worked out from low, high and average)" } else { "" };
            values.push(format!("{name}: {}{source}", listed.join(", ")));
        }
    }
    MetricView {
        label: inline(&metric.label),
        id: code(&metric.id),
        unit: inline(&metric.unit),
        direction: direction(metric.direction).to_owned(),
        table: Table::new(&headings.iter().map(String::as_str).collect::<Vec<&str>>(), rows),
        values,
        low_high_average: low_high_average(header, findings, metric),
    }
}

/// The form of the ctxbench tables of 2003: levels, low, high, average, average per MHz.
fn low_high_average(header: &Header, findings: &Findings, metric: &MetricFindings) -> Option<Table> {
    let per_mhz = [" / host.mhz", "_per_mhz"];
    let is_column = |metric: &MetricFindings| {
        let mut of = per_mhz.iter().filter_map(|suffix| metric.id.strip_suffix(suffix));
        of.any(|id| findings.metrics.iter().any(|other| other.id == id))
    };
    if is_column(metric) {
        return None;
    }
    let design = &header.design;
    let companion = findings
        .metrics
        .iter()
        .find(|other| other.id.strip_prefix(metric.id.as_str()).is_some_and(|suffix| per_mhz.contains(&suffix)));
    let companion_digits = companion.map(digits);
    let compared = |factor: usize| design.comparisons.iter().any(|comparison| comparison.factor == factor);
    let mut factors: Vec<usize> = (0..design.factors.len()).collect();
    factors.sort_by_key(|factor| compared(*factor));
    let mut cells: Vec<_> =
        metric.cells.iter().filter(|cell| design.treatments.get(cell.treatment).is_some()).collect();
    cells.sort_by_key(|cell| {
        let treatment = &design.treatments[cell.treatment];
        (factors.iter().map(|factor| treatment.levels.get(*factor).copied()).collect::<Vec<_>>(), treatment.control)
    });
    let digits = digits(metric);
    let rows = cells.iter().map(|cell| {
        let planned = &design.treatments[cell.treatment];
        let mut row: Vec<String> = factors.iter().map(|factor| level(design, cell.treatment, *factor)).collect();
        if let (Some(last), true) = (row.last_mut(), planned.control > 0) {
            *last = format!("{last} (control {})", planned.control + 1);
        }
        let published = cell.published.map(|side| [side.low, side.high, side.average]);
        match cell.summary {
            _ if published.is_some() => {
                row.extend(published.into_iter().flatten().map(|value| fixed(value, digits.values)));
            }
            Some(summary) => row.extend([
                fixed(summary.low, digits.values),
                fixed(summary.high, digits.values),
                fixed(summary.mean, digits.derived),
            ]),
            None => row.extend([dash(), dash(), dash()]),
        }
        if let (Some(companion), Some(digits)) = (companion, companion_digits) {
            let other = companion.cells.iter().find(|other| other.treatment == cell.treatment);
            let mean = other
                .and_then(|other| other.summary)
                .map(|summary| fixed(summary.mean, if summary.n == 1 { digits.values } else { digits.derived }));
            row.push(mean.unwrap_or_else(dash));
        }
        row
    });
    let names: Vec<String> = factors.iter().map(|factor| inline(&design.factors[*factor].name)).collect();
    let mut columns: Vec<&str> = names.iter().map(String::as_str).collect();
    columns.extend([">low", ">high", ">average"]);
    let label = companion.map(|companion| format!(">{}", inline(&companion.label)));
    columns.extend(label.as_deref());
    Some(Table::new(&columns, rows.collect()))
}

/// All comparisons, one row each.
pub(super) fn comparisons(design: &Design, findings: &Findings) -> Option<Table> {
    let optional = |p: Option<f64>| p.map_or_else(dash, p_value);
    let with_holm = findings.comparisons.iter().any(|finding| finding.p_holm.is_some());
    let with_robust = findings.comparisons.iter().any(|finding| finding.robust.is_some());
    let with_within = findings.comparisons.iter().any(|finding| !finding.within.is_empty());
    let noted = |finding: &ComparisonFinding| {
        !finding.flags.is_empty() || finding.published.is_some_and(|published| !published::notes(published).is_empty())
    };
    let with_flags = findings.comparisons.iter().any(noted);
    let rows = findings.comparisons.iter().map(|finding| {
        let context = context(design, findings, &finding.metric);
        let mut row = vec![context.label(&finding.metric), code(&finding.level), code(&finding.base)];
        if with_within {
            let within: Vec<String> =
                finding.within.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
            row.push(if within.is_empty() { dash() } else { code(&within.join(", ")) });
        }
        let effect = sentence::effect(context, finding);
        let noun = if finding.scale == Scale::Difference && effect != "-" { " (difference)" } else { "" };
        row.extend([
            format!("{effect}{noun}"),
            sentence::interval(context, finding),
            sentence::verdict(context, finding),
            sentence::count(context, finding),
            optional(finding.p),
        ]);
        if with_holm {
            row.push(optional(finding.p_holm));
        }
        row.push(finding.exact.map_or_else(dash, sentence::exact));
        if with_robust {
            row.extend(sentence::robust(context, finding));
        }
        if with_flags {
            let mut flags: Vec<&str> = finding.flags.iter().map(|flag| short_flag(*flag)).collect();
            flags.extend(finding.published.into_iter().flat_map(published::notes));
            row.push(flags.join("; "));
        }
        row
    });
    let rows: Vec<_> = rows.collect();
    if rows.is_empty() {
        return None;
    }
    let mut columns = vec!["metric", "level", "against"];
    columns.extend(with_within.then_some("within"));
    columns.extend([">effect", ">95 % CI", "verdict", ">n", ">p"]);
    columns.extend(with_holm.then_some(">Holm p"));
    columns.push(">exact p");
    columns.extend(with_robust.then_some([">Hodges-Lehmann", ">pairs higher"]).into_iter().flatten());
    columns.extend(with_flags.then_some("notes"));
    Some(Table::new(&columns, rows))
}

/// Whether averaged effects are the same at each level.
pub(super) fn interactions(design: &Design, findings: &Findings) -> Option<Table> {
    let rows = findings.interactions.iter().map(|found| {
        let context = context(design, findings, &found.metric);
        let compared = if found.within.is_empty() {
            format!("{} / {}", found.level, found.base)
        } else {
            let within: Vec<String> = found.within.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
            format!("{} / {} with {}", found.level, found.base, within.join(", "))
        };
        let (effect, interval) = sentence::ratio_of_ratios(context, found);
        vec![
            context.label(&found.metric),
            code(&compared),
            code(&format!("{}: {} / {}", found.over, found.over_level, found.over_base)),
            effect,
            interval,
            p_value(found.p),
            if found.real { "depends on it" } else { "not shown to" }.to_owned(),
        ]
    });
    let rows: Vec<_> = rows.collect();
    let columns = ["metric", "effect of", "at", ">ratio of ratios", ">95 % CI", ">p", "verdict"];
    (!rows.is_empty()).then(|| Table::new(&columns, rows))
}

/// What sentences about a metric need.
pub(super) fn context<'a>(design: &'a Design, findings: &'a Findings, metric: &str) -> Context<'a> {
    Context { design, metric: findings.metrics.iter().find(|candidate| candidate.id == metric) }
}

/// A treatment's name as a code span.
pub(super) fn treatment(design: &Design, index: usize) -> String {
    design.treatments.get(index).map_or_else(|| format!("treatment {index}"), |treatment| code(&treatment.name))
}

/// How the values of a metric are shown.
pub(super) fn digits(metric: &MetricFindings) -> Digits {
    let values = metric.cells.iter().flat_map(|cell| {
        let extremes = cell.summary.filter(|_| cell.values.is_empty()).map(|summary| [summary.low, summary.high]);
        let published = cell.published.map(|side| [side.low, side.high, side.average]);
        let known = cell.values.iter().map(|(_, value)| *value).chain(extremes.into_iter().flatten());
        known.chain(published.into_iter().flatten())
    });
    let digits = Digits::of(values);
    match metric.decimals {
        // One more than was printed: whether a printed average was rounded or cut can then be seen.
        Some(decimals) => Digits { values: decimals, derived: digits.derived.max((decimals + 1).min(6)) },
        None => digits,
    }
}

fn level(design: &Design, treatment: usize, factor: usize) -> String {
    let level = design.treatments[treatment].levels.get(factor).copied();
    level.and_then(|level| design.factors[factor].levels.get(level)).map_or_else(dash, |level| code(level))
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::HigherIsBetter => "higher is better",
        Direction::LowerIsBetter => "lower is better",
        Direction::Neutral => "no better direction",
    }
}

pub(super) fn short_flag(flag: Flag) -> &'static str {
    match flag {
        Flag::ControlDiffers => "A/A control differs",
        Flag::DependsOn { .. } => "depends on a level averaged over",
        Flag::Drift => "drift",
        Flag::FirstBlock => "block-1 effect",
        Flag::EffectHangsOnOneRun { .. } | Flag::HangsOnOneRun { .. } => "hangs on one run",
        Flag::ModelBasedOnly => "model-based only",
        Flag::OptionNotInForce { .. } => "a boot option not in force",
        Flag::Outlier { .. } => "outlier",
        Flag::WithinMargin => "different, but within the margin",
    }
}

fn dash() -> String {
    "-".to_owned()
}
