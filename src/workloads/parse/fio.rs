//! fio's JSON, versions 2 (times in microseconds) and 3 (in nanoseconds). Terse and normal output are not read.
//!
//! Keys: `show_thread_status_json` and `add_ddir_status_json` in fio's `stat.c`.

use serde_json::Value;

use super::document::{document, field, optional, text};
use super::{Output, Parsed, quote};

/// Sums of rates over the jobs, mean latency over their operations. A percentile cannot be had from those of several
/// jobs; it is read when one job did all operations of a direction (`--group_reporting` makes one of many).
pub(super) fn read(output: &Output) -> Result<Parsed, String> {
    let mut lines = output.stdout.lines().chain(output.stderr.lines());
    if let Some(line) = lines.find(|line| line.starts_with("fio: terminating on signal")) {
        return Err(format!("the run was broken off: {}", quote(line)));
    }
    let root = document(output)?;
    let jobs = root.get("jobs").and_then(Value::as_array).ok_or("there is no `jobs` in fio's JSON")?;
    for job in jobs {
        let error = field(job, "error")?;
        if error != 0.0 {
            return Err(format!("job `{}` ended with error {error}", text(job, "jobname").unwrap_or("?")));
        }
    }
    let mut parsed = Parsed::default();
    let mut operations = 0.0;
    for direction in ["read", "write"] {
        operations += take_direction(&mut parsed, jobs, direction)?;
    }
    if operations == 0.0 {
        return Err("fio did no read and no write".to_owned());
    }
    Ok(parsed)
}

/// One direction of all jobs that did an operation in it; how many operations these were.
fn take_direction(parsed: &mut Parsed, jobs: &[Value], direction: &str) -> Result<f64, String> {
    let mut active = Vec::new();
    for job in jobs {
        let part = job.get(direction).ok_or_else(|| format!("a job of fio has no `{direction}`"))?;
        let count = operations(part)?;
        if count > 0.0 {
            active.push((part, count));
        }
    }
    let Some((first, _)) = active.first() else { return Ok(0.0) };
    let (mut iops, mut bandwidth, mut latency, mut total) = (0.0, 0.0, 0.0, 0.0);
    for (part, count) in &active {
        iops += field(part, "iops")?;
        bandwidth += field(part, "bw")?;
        latency += scaled(part, "lat", "mean")? * count;
        total += count;
    }
    parsed.take(&format!("{direction}_iops"), Ok(iops));
    parsed.take(&format!("{direction}_bandwidth"), Ok(bandwidth));
    parsed.take(&format!("{direction}_latency_mean"), Ok(latency / total));
    let p99 = format!("{direction}_latency_p99");
    match percentile(first) {
        _ if active.len() > 1 => parsed.note(&p99, "percentiles of several jobs have no common one: --group_reporting"),
        None => parsed.note(&p99, "fio gave no 99th percentile"),
        Some(value) => parsed.take(&p99, Ok(value)),
    }
    Ok(total)
}

/// How much a job weighs: `total_ios`, or its bytes where fio is too old to count operations.
fn operations(part: &Value) -> Result<f64, String> {
    if let Some(count) = optional(part, "total_ios")? {
        return Ok(count);
    }
    field(part, "io_bytes")
}

/// A time in microseconds out of `lat_ns` (fio 3) or `lat` (fio 2).
fn scaled(part: &Value, kind: &str, key: &str) -> Result<f64, String> {
    match part.get(format!("{kind}_ns")) {
        Some(times) => Ok(field(times, key)? / 1000.0),
        None => field(part.get(kind).ok_or_else(|| format!("there is no `{kind}_ns` and no `{kind}`"))?, key),
    }
}

/// The 99th percentile of the completion latency, in microseconds.
fn percentile(part: &Value) -> Option<f64> {
    let of = |kind: &str| field(part.get(kind)?.get("percentile")?, "99.000000").ok();
    of("clat_ns").map(|nanoseconds| nanoseconds / 1000.0).or_else(|| of("clat"))
}
