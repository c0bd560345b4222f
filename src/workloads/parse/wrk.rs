//! wrk's summary. Requests that failed are not served ones, however fast they failed.
//!
//! Form: `print_stats`, and the end of `main`, in `wrk.c`.

use super::{Output, Parsed, amount, only_line, quote};

/// Requests per second and latencies in milliseconds. Connections, reads or writes that failed and answers that are
/// no success make the run none; timeouts are noted, as their latencies are in no number.
pub(super) fn read(output: &Output) -> Result<Parsed, String> {
    let text = &output.stdout;
    let rate = only_line(text, "line `Requests/sec: …`", |line| line.starts_with("Requests/sec:"))?;
    let mut parsed = Parsed::default();
    for line in text.lines().map(str::trim) {
        if line.starts_with("Non-2xx") {
            return Err(format!("answers were no successes: {}", quote(line)));
        }
        if let Some(counts) = line.strip_prefix("Socket errors:") {
            let timeouts = socket_errors(counts, line)?;
            if timeouts > 0.0 {
                parsed.note("timeouts", format!("{timeouts} requests timed out and are in no latency"));
            }
        }
    }
    let latency = only_line(text, "line `Latency …`", is_latency)?;
    let [_, average, _, largest, ..] = latency.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(format!("expected average, deviation and maximum, found {}", quote(latency)));
    };
    let per_second = amount(rate.trim_start_matches("Requests/sec:"), rate);
    if per_second == Ok(0.0) {
        return Err("wrk had no answer".to_owned());
    }
    parsed.take("requests_per_second", per_second);
    parsed.take("latency_avg", milliseconds(average, latency));
    parsed.take("latency_max", milliseconds(largest, latency));
    Ok(parsed)
}

/// The row of the table, not the heading `Latency Distribution` of `--latency`.
fn is_latency(line: &str) -> bool {
    line.trim_start().strip_prefix("Latency ").is_some_and(|rest| !rest.trim().starts_with("Distribution"))
}

/// `connect 0, read 3, write 0, timeout 2`: how many timed out, when nothing else failed.
fn socket_errors(counts: &str, line: &str) -> Result<f64, String> {
    let mut timeouts = 0.0;
    for part in counts.split(',') {
        let Some((kind, count)) = part.trim().split_once(' ') else {
            return Err(format!("cannot read the errors in the line {}", quote(line)));
        };
        let count = amount(count, line)?;
        if kind == "timeout" {
            timeouts = count;
        } else if count > 0.0 {
            return Err(format!("connections failed: {}", quote(line)));
        }
    }
    Ok(timeouts)
}

/// `544.08us`, `8.23ms`, `1.20s`, `2.00m`, `1.00h`.
fn milliseconds(text: &str, line: &str) -> Result<f64, String> {
    let units = [("us", 1e-3), ("ms", 1.0), ("s", 1e3), ("m", 6e4), ("h", 3.6e6)];
    let found = units.iter().find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, factor)));
    let (digits, factor) =
        found.ok_or_else(|| format!("{} is not a time, in the line {}", quote(text), quote(line)))?;
    Ok(amount(digits, line)? * factor)
}
