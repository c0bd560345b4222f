//! The last line of dbench and tbench, versions 2 to 4. Lines of the run, warm-up and execution, are no results.
//!
//! Form: `dbench.c`, the last statement of `main`.

use super::{Output, Parsed, amount, only_line, quote};

/// Throughput, and of version 4 the largest latency. An operation that failed makes the number none.
pub(super) fn read(output: &Output) -> Result<Parsed, String> {
    if let Some(failed) = output.stdout.lines().chain(output.stderr.lines()).find(|line| is_failure(line)) {
        return Err(format!("an operation failed: {}", quote(failed)));
    }
    let line =
        only_line(&output.stdout, "line `Throughput … MB/sec … procs`", |line| line.starts_with("Throughput "))?;
    let unread = || format!("expected `Throughput … MB/sec … procs`, found {}", quote(line));
    let words: Vec<&str> = line.split_whitespace().collect();
    let [_, throughput, "MB/sec", rest @ ..] = words.as_slice() else { return Err(unread()) };
    let mut parsed = Parsed::default();
    parsed.take("throughput", amount(throughput, line));
    let tail = rest.iter().position(|word| *word == "procs").map(|at| &rest[at + 1..]);
    match tail {
        Some([]) if !rest.contains(&"clients") => {}
        Some([latency, "ms"]) => {
            let latency = latency.strip_prefix("max_latency=").ok_or_else(unread)?;
            parsed.take("latency_max", amount(latency, line));
        }
        _ => return Err(unread()),
    }
    Ok(parsed)
}

/// `[1234] open … failed for handle …`, `Child failed with status 1`, `ERROR: …`. Other words about failing are not:
/// the set-up says `failed to create barrier semaphore` and goes on with another one.
fn is_failure(line: &str) -> bool {
    let line = line.trim_start();
    let is_numbered = line.strip_prefix('[').and_then(|rest| rest.split_once(']')).is_some_and(|(number, _)| {
        let number = number.trim();
        !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    is_numbered && line.to_lowercase().contains("failed")
        || line.starts_with("Child failed")
        || line.to_lowercase().starts_with("error")
}
