//! Numbers somebody already published: rows become series of the treatments they belong to.

use crate::design::{Direction, Factor, Metric, MetricExpr, RecordedSeries, RecordedValues, Treatment};
use crate::diagnostic::{Meaning, Thing};
use crate::source::Span;
use crate::syntax::ast::{Name, Number, Row, Series, Value};

use super::metrics::{self, HOST_METRICS, PROCESS_METRICS};
use super::scope::Scope;
use super::units;

/// Columns of summary rows; the last may be left out.
pub const COLUMNS: &[&str] = &["low", "high", "average", "n"];

/// Metrics and series of a `recorded` table.
pub(super) fn recorded(
    scope: &mut Scope<'_>,
    table: &[Series],
    factors: &[Factor],
    treatments: &[Treatment],
) -> (Vec<Metric>, Vec<RecordedSeries>) {
    let (mut all, mut rows) = (Vec::<Metric>::new(), Vec::<RecordedSeries>::new());
    for series in table {
        let metric = metric(scope, series);
        if let Some(first) = all.iter().find(|earlier| earlier.id == metric.id) {
            let meaning = Meaning::Duplicate { thing: Thing::Metric, name: metric.id.clone() };
            let mut fault = series.metric.span.error(meaning);
            fault.related.push((first.span, "first here".to_owned()));
            scope.fault(fault);
            continue;
        }
        if !metric.id.contains('.') {
            let (name, form) = (metric.id.clone(), "primes.real s lower_is_better".to_owned());
            scope.fault(series.metric.span.error(Meaning::WrongForm { name, form }));
        } else if series.rows.is_empty() {
            scope.fault(series.metric.span.error(Meaning::NothingRecorded));
        }
        let columns = columns(scope, series);
        let mut taken: Vec<(usize, Span)> = Vec::new();
        for row in &series.rows {
            let Some(levels) = levels(scope, row, factors) else { continue };
            let numbers = &row.cells[factors.len()..];
            let Some(treatment) = place(scope, &levels, (treatments, row), &mut taken) else { continue };
            let Some(values) = values(scope, numbers, columns.as_deref(), row) else { continue };
            rows.push(RecordedSeries { metric: metric.id.clone(), treatment, values, span: row.span });
        }
        all.push(metric);
    }
    (all, rows)
}

fn metric(scope: &mut Scope<'_>, series: &Series) -> Metric {
    let id = series.metric.path.clone();
    let name = id.rsplit('.').next().unwrap_or_default();
    let table = if id.starts_with("host.") { HOST_METRICS } else { PROCESS_METRICS };
    let known = table.iter().find(|known| known.name == name);
    let unit = series.unit.as_ref().and_then(|unit| scope.value(unit));
    let unit = unit.or_else(|| known.map(|known| known.unit.to_owned())).unwrap_or_default();
    let written = series.direction.as_ref().and_then(|word| metrics::direction(scope, word));
    let direction = written.or_else(|| known.map(|known| known.direction)).unwrap_or(Direction::Neutral);
    let (label, expr, span) = (id.clone(), MetricExpr::Metric(id.clone()), series.metric.span);
    Metric { id, label, unit, direction, expr, span }
}

/// The columns of summary rows; `None` for raw samples.
fn columns(scope: &mut Scope<'_>, series: &Series) -> Option<Vec<String>> {
    let mut columns: Vec<String> = Vec::new();
    for column in &series.columns {
        if !COLUMNS.contains(&column.value.as_str()) {
            scope.unknown(Thing::Column, column, COLUMNS.iter().copied());
        } else if columns.contains(&column.value) {
            let meaning = Meaning::Duplicate { thing: Thing::Column, name: column.value.clone() };
            scope.fault(column.span.error(meaning));
        }
        columns.push(column.value.clone());
    }
    let first = series.columns.first()?;
    for needed in &COLUMNS[..3] {
        if !columns.iter().any(|column| column == needed) {
            let (owner, form) = ("columns".to_owned(), "columns low high average".to_owned());
            scope.fault(first.span.error(Meaning::MissingOption { owner, option: needed, form }));
        }
    }
    Some(columns)
}

/// The level indices a row begins with, one per factor in file order.
fn levels(scope: &mut Scope<'_>, row: &Row, factors: &[Factor]) -> Option<Vec<usize>> {
    if row.cells.len() <= factors.len() {
        wrong_shape(scope, row, factors);
        return None;
    }
    let mut levels = Vec::new();
    for (cell, factor) in row.cells.iter().zip(factors) {
        let text = scope.value(cell)?;
        let name = Name::new(text, cell.span());
        levels.push(super::verdicts::level_of(scope, &name, factor)?);
    }
    Some(levels)
}

fn wrong_shape(scope: &mut Scope<'_>, row: &Row, factors: &[Factor]) {
    let names: Vec<String> = factors.iter().map(|factor| format!("a level of `{}`", factor.name)).collect();
    let expected = format!("{}, then numbers", names.join(", "));
    scope.fault(row.span.error(Meaning::RecordedShape { expected }));
}

/// The treatment a row belongs to. Further rows of one treatment belong to its control copies, in order.
fn place(
    scope: &mut Scope<'_>,
    levels: &[usize],
    (treatments, row): (&[Treatment], &Row),
    taken: &mut Vec<(usize, Span)>,
) -> Option<usize> {
    let mut copies = treatments.iter().enumerate().filter(|(_, treatment)| treatment.levels == levels).peekable();
    let first = copies.peek().map(|(index, _)| *index);
    let free = copies.find(|(index, _)| !taken.iter().any(|(other, _)| other == index));
    match (free, first) {
        (Some((index, _)), _) => {
            taken.push((index, row.span));
            Some(index)
        }
        (None, Some(first)) => {
            let name = treatments[first].name.clone();
            let mut fault = row.span.error(Meaning::Duplicate { thing: Thing::Row, name });
            let earlier = taken.iter().find(|(other, _)| *other == first);
            fault.related.extend(earlier.map(|(_, span)| (*span, "first here".to_owned())));
            scope.fault(fault);
            None
        }
        (None, None) => {
            let why = "the row belongs to a treatment that is skipped".to_owned();
            let help = "remove the row, or the `skip when` that leaves its treatment out".to_owned();
            scope.fault(row.span.error(Meaning::Unreachable { why, help }));
            None
        }
    }
}

fn values(scope: &mut Scope<'_>, cells: &[Value], columns: Option<&[String]>, row: &Row) -> Option<RecordedValues> {
    let mut numbers = Vec::new();
    for cell in cells {
        let number = match cell {
            Value::Number(Number::Literal { digits, unit: None }) => units::parse(&digits.value),
            Value::Word(word) => word.value.strip_prefix('-').and_then(units::parse).map(|value| -value),
            _ => None,
        };
        let Some(number) = number else {
            let text = scope.value(cell)?;
            scope.fault(cell.span().error(Meaning::MalformedNumber { text }));
            return None;
        };
        numbers.push(number);
    }
    let Some(columns) = columns else { return Some(RecordedValues::Samples(numbers)) };
    if numbers.len() != columns.len() {
        let expected = format!("one number for each of the columns {}", columns.join(", "));
        scope.fault(row.span.error(Meaning::RecordedShape { expected }));
        return None;
    }
    let column = |name: &str| columns.iter().position(|column| column == name).map(|index| numbers[index]);
    let (low, high, average) = (column("low")?, column("high")?, column("average")?);
    if !(low <= average && average <= high) {
        scope.fault(row.span.error(Meaning::RecordedOrder));
        return None;
    }
    let n = column("n");
    if n.is_some_and(|n| n.fract() != 0.0 || !(1.0..=1e9).contains(&n)) {
        let expected = "a whole number of samples under `n`".to_owned();
        scope.fault(row.span.error(Meaning::RecordedShape { expected }));
        return None;
    }
    Some(RecordedValues::Summary { low, high, average, n: n.map(|n| n as u32) })
}
