//! Counts of `perf stat -x SEPARATOR` and `perf stat -j`. Every event is a metric.
//!
//! Fields: "CSV FORMAT" and "JSON FORMAT" of `perf-stat(1)`; rows: `tools/perf/util/stat-display.c`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::{field, text};
use super::{Output, Parsed, amount, quote};

/// Fields of a CSV row from the count to the share of time it was counted: count, unit, event, run time, share.
const FIELDS: usize = 5;

/// The same with the spread of `-r` and a derived metric with its unit.
const MOST_FIELDS: usize = 8;

/// One row.
struct Row {
    count: Result<f64, String>,
    event: String,
    /// With `-A`.
    cpu: Option<u32>,
    share: f64,
}

/// Every event by its name, in which what is no letter and no digit becomes `_` (`context-switches` is
/// `context_switches`). With `-A` there is one metric per CPU, `NAME.cpu0`, and the sum of them. `<not counted>` and
/// `<not supported>` are failures of that event.
pub(super) fn read(output: &Output) -> Result<Parsed, String> {
    let mut rows: BTreeMap<String, Vec<Row>> = BTreeMap::new();
    // perf writes to standard error, among what the program it watches writes there.
    for text in [&output.stderr, &output.stdout] {
        let mut has_rows = false;
        for read in text.lines().filter_map(|line| row(line.trim())) {
            let row = read?;
            has_rows = true;
            rows.entry(metric(&row.event)).or_default().push(row);
        }
        if has_rows && !text.ends_with('\n') {
            return Err(format!("the last line is cut off: {}", quote(text.lines().last().unwrap_or_default())));
        }
    }
    if rows.is_empty() {
        return Err("there is no row of `perf stat -x` or `perf stat -j` in the output".to_owned());
    }
    let mut parsed = Parsed::default();
    for (metric, rows) in rows {
        take_event(&mut parsed, &metric, rows);
    }
    Ok(parsed)
}

fn take_event(parsed: &mut Parsed, metric: &str, rows: Vec<Row>) {
    let per_cpu = rows.iter().all(|row| row.cpu.is_some());
    if rows.len() > 1 && !per_cpu {
        parsed.take(metric, Err(format!("perf counted `{}` {} times; name it once", rows[0].event, rows.len())));
        return;
    }
    let share = rows.iter().map(|row| row.share).fold(100.0, f64::min);
    if share < 100.0 {
        parsed.note(metric, format!("an estimate: counted during {share} % of the time"));
    }
    let total: Result<f64, String> = rows.iter().map(|row| row.count.clone()).sum();
    parsed.take(metric, total);
    for row in rows {
        if let (Some(cpu), Ok(count)) = (row.cpu, row.count) {
            parsed.take(&format!("{metric}.cpu{cpu}"), Ok(count));
        }
    }
}

fn metric(event: &str) -> String {
    let name: String = event.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
    name.trim_matches('_').to_owned()
}

/// A row of either form; `None` for a line that is no row of perf.
fn row(line: &str) -> Option<Result<Row, String>> {
    if line.starts_with('{') && line.contains("\"counter-value\"") {
        return Some(of_json(line));
    }
    let separator = [',', ';', '\t', '|', ':'].into_iter().max_by_key(|mark| line.matches(*mark).count())?;
    let fields: Vec<&str> = line.split(separator).map(str::trim).collect();
    let is_count = |field: &str| field.starts_with("<not ") || field.starts_with(|first: char| first.is_ascii_digit());
    let is_place = |field: &str| {
        field.len() > 1 && matches!(&field[..1], "C" | "S" | "N") && field.ends_with(|last: char| last.is_ascii_digit())
    };
    let first = *fields.first()?;
    if fields.len() < 3 || !first.is_ascii() || !(is_count(first) || is_place(first)) {
        return None;
    }
    Some(of_csv(&fields, line))
}

fn of_csv(fields: &[&str], line: &str) -> Result<Row, String> {
    let unread = |what: &str| format!("{what}, in the line {}", quote(line));
    let (cpu, fields) = match fields[0].strip_prefix("CPU") {
        Some(cpu) => (Some(cpu.parse().map_err(|_| unread("not a CPU"))?), &fields[1..]),
        None => (None, fields),
    };
    if !fields[0].starts_with('<') && !fields[0].starts_with(|first: char| first.is_ascii_digit()) {
        return Err(unread("only totals and rows per CPU (-A) are read"));
    }
    if fields.get(1).is_some_and(|second| second.starts_with('<') || second.parse::<f64>().is_ok()) {
        return Err(unread("rows of intervals (-I) and numbers with a comma are not read"));
    }
    // With -r the spread follows the event's name.
    let behind: Vec<&str> = fields.iter().skip(3).copied().filter(|field| !field.ends_with('%')).collect();
    let is_whole = (FIELDS..=MOST_FIELDS).contains(&fields.len()) && behind.len() >= 2 && !fields[2].is_empty();
    if !is_whole || behind[0].parse::<u64>().is_err() {
        return Err(unread("not a whole row"));
    }
    let share = amount(behind[1], line)?;
    if share > 100.0 {
        return Err(unread("counted during more than all of the time"));
    }
    let event = fields[2].to_owned();
    Ok(Row { count: count(fields[0], &event, line), event, cpu, share })
}

fn of_json(line: &str) -> Result<Row, String> {
    let row: Value = serde_json::from_str(line).map_err(|error| format!("{error}, in the line {}", quote(line)))?;
    if row.get("interval").is_some() {
        return Err(format!("rows of intervals (-I) are not read: {}", quote(line)));
    }
    let event = text(&row, "event").ok_or_else(|| format!("there is no `event` in the line {}", quote(line)))?;
    let cpu = match text(&row, "cpu") {
        Some(cpu) => Some(cpu.parse().map_err(|_| format!("`{cpu}` is not a CPU, in the line {}", quote(line)))?),
        None => None,
    };
    let value = &row["counter-value"];
    let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let share = field(&row, "pcnt-running")?;
    Ok(Row { count: count(&value, event, line), event: event.to_owned(), cpu, share })
}

fn count(text: &str, event: &str, line: &str) -> Result<f64, String> {
    if text.starts_with('<') {
        return Err(format!("perf says `{text}` of `{event}`"));
    }
    amount(text, line)
}
