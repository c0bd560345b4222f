//! sysbench's summary, versions 0.4 to 1.0: cpu, memory, threads, mutex, fileio and the database tests.
//!
//! Forms: `sb_report_cumulative` in `sysbench.c`, and the `report` functions of its tests.

use super::{Output, Parsed, amount, only_line, quote};

/// Smallest latency that the two decimals of the summary can show.
const RESOLUTION_MS: f64 = 0.01;

/// Events per second of the whole run and latencies in milliseconds.
pub(super) fn read(output: &Output) -> Result<Parsed, String> {
    let said = output.stdout.lines().chain(output.stderr.lines());
    if let Some(line) = said.clone().find(|line| line.trim_start().starts_with("FATAL:")) {
        return Err(format!("sysbench reports an error: {}", quote(line)));
    }
    let text = &output.stdout;
    let events = labelled(text, "total number of events:")?;
    let seconds = labelled(text, "total time:")?;
    let mut parsed = Parsed::default();
    parsed.take("events_per_second", rate(text, events, seconds));
    take_latency(&mut parsed, "latency_avg", labelled(text, "avg:")?);
    match percentile(text)? {
        Some(found) => take_latency(&mut parsed, "latency_p95", found),
        None => parsed.note("latency_p95", "another percentile was asked for"),
    }
    if let Ok((errors, _)) = labelled(text, "ignored errors:") {
        let count = errors.split_whitespace().next().unwrap_or_default();
        if count != "0" {
            parsed.note("ignored_errors", count);
        }
    }
    Ok(parsed)
}

/// What is behind a label, and the line.
fn labelled<'a>(text: &'a str, label: &str) -> Result<(&'a str, &'a str), String> {
    let line = only_line(text, &format!("line `{label} …`"), |line| line.trim_start().starts_with(label))?;
    Ok((line[label.len()..].trim(), line))
}

/// The 95th percentile, or `None` where another one was asked for. Before 1.0 it is written
/// `approx.  95 percentile:  2.50ms`.
fn percentile(text: &str) -> Result<Option<(&str, &str)>, String> {
    let line = only_line(text, "line `95th percentile: …`", |line| line.contains("percentile:"))?;
    let Some((label, found)) = line.split_once(':') else { return Ok(None) };
    let is_95th = label.starts_with("95th") || label.split_whitespace().nth(1) == Some("95");
    Ok(is_95th.then_some((found.trim(), line)))
}

/// As printed (cpu, and memory with its operations), else events over time.
fn rate(text: &str, (events, line): (&str, &str), (seconds, timed): (&str, &str)) -> Result<f64, String> {
    if let Ok((printed, line)) = labelled(text, "events per second:") {
        return amount(printed, line);
    }
    if let Ok((printed, line)) = labelled(text, "Total operations:") {
        let per_second = printed.split_once('(').and_then(|(_, rest)| rest.strip_suffix(" per second)"));
        return amount(per_second.unwrap_or(printed), line);
    }
    let events = amount(events, line)?;
    let seconds = amount(seconds.strip_suffix('s').unwrap_or("no unit"), timed)?;
    if events == 0.0 || seconds == 0.0 {
        return Err(format!("nothing was measured: {} in {}", quote(line), quote(timed)));
    }
    Ok(events / seconds)
}

fn take_latency(parsed: &mut Parsed, metric: &str, (latency, line): (&str, &str)) {
    let value = amount(latency.strip_suffix("ms").unwrap_or(latency), line);
    if value == Ok(0.0) {
        parsed.note(metric, format!("below {RESOLUTION_MS} ms, the least that sysbench shows"));
        return;
    }
    parsed.take(metric, value);
}
