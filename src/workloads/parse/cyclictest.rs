//! What cyclictest says of all its threads: JSON (`--json=`), the histogram (`-h`), or the lines `T: 0 …`.
//!
//! Forms: `write_stats`, `print_hist` and `print_stat` in rt-tests' `cyclictest.c`.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::{document, field};
use super::{Output, Parsed, amount, only_line, quote};

/// Latencies of one thread, in microseconds.
struct Thread {
    cycles: f64,
    min: f64,
    avg: f64,
    max: f64,
}

/// The least, the mean over all cycles, and the largest latency over all threads.
pub(super) fn read(output: &Output) -> Result<Parsed, String> {
    let text = &output.stdout;
    let threads = if text.lines().any(|line| line.trim_start().starts_with('{')) {
        of_json(output)?
    } else if text.contains("# Histogram") || text.contains("# Total:") {
        of_histogram(text)?
    } else {
        of_lines(text)?
    };
    if let Some(index) = threads.iter().position(|thread| thread.cycles == 0.0) {
        return Err(format!("thread {index} made no cycle"));
    }
    let cycles: f64 = threads.iter().map(|thread| thread.cycles).sum();
    let weighted: f64 = threads.iter().map(|thread| thread.avg * thread.cycles).sum();
    let mut parsed = Parsed::default();
    parsed.take("min", Ok(threads.iter().map(|thread| thread.min).fold(f64::INFINITY, f64::min)));
    parsed.take("avg", Ok(weighted / cycles));
    parsed.take("max", Ok(threads.iter().map(|thread| thread.max).fold(0.0, f64::max)));
    Ok(parsed)
}

/// Threads of the JSON; with `--nsecs` its times are nanoseconds and it says so.
fn of_json(output: &Output) -> Result<Vec<Thread>, String> {
    let root = document(output)?;
    let status = field(&root, "return_code")?;
    if status != 0.0 {
        return Err(format!("cyclictest ended with status {status}"));
    }
    let scale = if field(&root, "resolution_in_ns")? == 0.0 { 1.0 } else { 1000.0 };
    let threads = root.get("thread").and_then(Value::as_object).filter(|threads| !threads.is_empty());
    let threads = threads.ok_or("there is no `thread` in cyclictest's JSON")?;
    let of = |thread: &Value| {
        let time = |key: &str| field(thread, key).map(|time| time / scale);
        Ok(Thread { cycles: field(thread, "cycles")?, min: time("min")?, avg: time("avg")?, max: time("max")? })
    };
    threads.values().map(of).collect()
}

/// Threads of the lines below the histogram, a column each. Cycles above the last row are counted apart.
fn of_histogram(text: &str) -> Result<Vec<Thread>, String> {
    let row = |label: &str| -> Result<Vec<f64>, String> {
        let line = only_line(text, &format!("line `{label} …`"), |line| line.starts_with(label))?;
        line[label.len()..].split_whitespace().map(|word| amount(word, line)).collect()
    };
    let (inside, beyond) = (row("# Total:")?, row("# Histogram Overflows:")?);
    let (min, avg, max) = (row("# Min Latencies:")?, row("# Avg Latencies:")?, row("# Max Latencies:")?);
    // With --histall a last column sums up the threads, in the first two rows only.
    let count = min.len();
    let fits = |row: &Vec<f64>| row.len() == count || row.len() == count + 1;
    if count == 0 || avg.len() != count || max.len() != count || !fits(&inside) || !fits(&beyond) {
        return Err("the lines below the histogram differ in their number of threads".to_owned());
    }
    let of = |index: usize| Thread {
        cycles: inside[index] + beyond[index],
        min: min[index],
        avg: avg[index],
        max: max[index],
    };
    Ok((0..count).map(of).collect())
}

/// The last line of each thread: without `-q` they are printed again and again.
fn of_lines(text: &str) -> Result<Vec<Thread>, String> {
    let last = text.lines().last().unwrap_or_default();
    if !last.is_empty() && !text.ends_with('\n') {
        return Err(format!("the last line is cut off: {}", quote(last)));
    }
    let mut threads = BTreeMap::new();
    for line in text.lines() {
        // Between two rounds the cursor is moved up by an escape sequence.
        let Some(at) = line.find("T:").filter(|at| *at == 0 || line.starts_with('\u{1b}')) else { continue };
        let line = line[at..].trim();
        let after = |label: &str| {
            let rest = line.split_once(label).map(|(_, rest)| rest.trim_start());
            let word = rest.and_then(|rest| rest.split_whitespace().next());
            amount(word.ok_or_else(|| format!("there is no `{label}` in the line {}", quote(line)))?, line)
        };
        let number = line[2..].split_whitespace().next().unwrap_or_default().to_owned();
        let thread = Thread { cycles: after("C:")?, min: after("Min:")?, avg: after("Avg:")?, max: after("Max:")? };
        threads.insert(number, thread);
    }
    if threads.is_empty() {
        only_line(text, "line `T: 0 …`", |_| false)?;
    }
    Ok(threads.into_values().collect())
}
