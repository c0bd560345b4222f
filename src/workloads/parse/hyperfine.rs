//! hyperfine's JSON (`--export-json /dev/stdout`). One command: of several nobody said which is meant.
//!
//! Keys: `BenchmarkResult` in hyperfine's `benchmark_result.rs`.

use serde_json::Value;

use super::document::{document, field, optional, text};
use super::{Output, Parsed, quote};

/// Times in seconds. A command that failed in a run makes them none.
pub(super) fn read(output: &Output) -> Result<Parsed, String> {
    let root = document(output)?;
    let results = root.get("results").and_then(Value::as_array).ok_or("there is no `results` in hyperfine's JSON")?;
    let [result] = results.as_slice() else {
        return Err(format!("expected the result of one command, found {}", results.len()));
    };
    let statuses = result.get("exit_codes").and_then(Value::as_array);
    if let Some(status) = statuses.into_iter().flatten().find(|status| status.as_i64() != Some(0)) {
        let status = if status.is_null() { "a signal".to_owned() } else { format!("status {status}") };
        return Err(format!("{} ended with {status}", quote(text(result, "command").unwrap_or_default())));
    }
    let mut parsed = Parsed::default();
    for metric in ["mean", "median", "min", "max"] {
        parsed.take(metric, field(result, metric));
    }
    match optional(result, "stddev").transpose() {
        Some(stddev) => parsed.take("stddev", stddev),
        None => parsed.note("stddev", "one run has none"),
    }
    Ok(parsed)
}
