//! The comma separated line of bonnie++ 1.03 (27 fields), 1.96 and 1.97 (48) and 1.98 to 2.00 (50). Reads nothing of
//! the table for people that is printed beside it.
//!
//! Fields: `bon_csv2txt(1)`, and `bonnie.h.in` and `bon_time.cpp` of 1.03e.

use super::{Output, Parsed, amount, only_line, quote};

/// Metrics in the order in which every version prints them; each is followed by its CPU share.
const BLOCKS: [&str; 6] = ["write_char", "write_block", "rewrite", "read_char", "read_block", "seeks"];
const FILES: [&str; 6] = ["seq_create", "seq_stat", "seq_delete", "random_create", "random_stat", "random_delete"];

/// Fewest commas of a line that is taken for a result: less than the shortest form has, so that a cut one is named.
const COMMAS: usize = 4;

/// Where a version keeps its numbers.
struct Layout {
    blocks: usize,
    files: usize,
    latencies: Option<usize>,
}

/// The metrics of the one result line. What ran too briefly (`+++++`) has a note and no value; what was not run has
/// neither.
pub(super) fn read(output: &Output) -> Result<Parsed, String> {
    let line = only_line(&output.stdout, "line of comma separated values", is_result)?;
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    let layout = layout(&fields).ok_or_else(|| {
        format!("a result of bonnie++ has 27, 48 or 50 fields, this one has {}: {}", fields.len(), quote(line))
    })?;
    if let Some(start) = layout.latencies
        && let Some(wrong) = fields[start..].iter().find(|field| !is_latency(field))
    {
        return Err(format!("{} is not a latency, in the line {}", quote(wrong), quote(line)));
    }
    let mut parsed = Parsed::default();
    for (names, start) in [(BLOCKS, layout.blocks), (FILES, layout.files)] {
        for (name, pair) in names.iter().zip(fields[start..].chunks_exact(2)) {
            take(&mut parsed, name, pair[0], line);
            take(&mut parsed, &format!("{name}_cpu"), pair[1], line);
        }
    }
    if parsed.values.is_empty() && parsed.failures.is_empty() {
        return Err(format!("nothing was measured, in the line {}", quote(line)));
    }
    Ok(parsed)
}

fn take(parsed: &mut Parsed, metric: &str, field: &str, line: &str) {
    if field.is_empty() {
        return;
    }
    if is_too_short(field) {
        parsed.note(metric, "too short to measure");
        return;
    }
    parsed.take(metric, amount(field, line));
}

/// A row of plus signs: the test took less than half a second.
fn is_too_short(field: &str) -> bool {
    field.len() >= 2 && field.bytes().all(|byte| byte == b'+')
}

fn is_result(line: &str) -> bool {
    let line = line.trim_start();
    let is_heading = line.starts_with(['#', '<']) || line.starts_with("format_version") || line.starts_with("name,");
    !is_heading && line.matches(',').count() >= COMMAS && !line.contains(", ")
}

/// By the number of fields, since a host may be called `1.97`; what came later names its own format.
fn layout(fields: &[&str]) -> Option<Layout> {
    let is_versioned = fields.first().is_some_and(|version| version.starts_with("1.9") || version.starts_with("2."));
    match fields.len() {
        27 => Some(Layout { blocks: 2, files: 15, latencies: None }),
        48 if is_versioned => Some(Layout { blocks: 7, files: 24, latencies: Some(36) }),
        50 if is_versioned => Some(Layout { blocks: 9, files: 26, latencies: Some(38) }),
        _ => None,
    }
}

/// `123us`, `4ms`, `5s`, a row of plus signs, or nothing for what was not run.
fn is_latency(field: &str) -> bool {
    let digits = ["us", "ms", "s"].iter().find_map(|unit| field.strip_suffix(unit));
    let is_number = |digits: &str| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    field.is_empty() || is_too_short(field) || digits.is_some_and(is_number)
}
