//! Lines in the format of Go benchmarks, which `benchstat` reads: one line per trial, in the order they ran,
//! or per published value.

use std::fmt::Write as _;

use super::{levels, measured, value};
use crate::analysis::Findings;
use crate::recording::{Design, Direction, Recording};

/// `BenchmarkName/factor=level 1 VALUE METRIC(UNIT) …`; compare with `benchstat -col /factor`.
///
/// Each metric is a unit of its own, because a line can have a unit only once. A space would end a name or a unit and is
/// written `_`, as is everything else that means something to the format.
pub fn benchstat(recording: &Recording, findings: &Findings) -> String {
    let design = &recording.header.design;
    let mut text = String::new();
    let host = &recording.header.host;
    let facts = [("goos", Some("linux")), ("goarch", host.architecture.as_deref()), ("cpu", host.cpu_model.as_deref())];
    let kernel = ("kernel", host.kernel_release.as_deref());
    for (key, value) in facts.into_iter().chain([kernel]) {
        if let Some(value) = value {
            let _ = writeln!(text, "{key}: {}", one_line(value));
        }
    }
    let _ = writeln!(text, "pkg: {}", word(&design.name));
    for metric in measured(findings) {
        let better = match metric.direction {
            Direction::HigherIsBetter => "higher",
            Direction::LowerIsBetter => "lower",
            Direction::Neutral => continue,
        };
        let _ = writeln!(text, "Unit {} better={better}", unit(&metric.id, &metric.unit));
    }
    text.push('\n');
    for trial in super::valid(recording) {
        let values: Vec<String> = measured(findings)
            .filter_map(|metric| Some(format!("{} {}", value(metric, trial)?, unit(&metric.id, &metric.unit))))
            .collect();
        if values.is_empty() {
            continue;
        }
        let _ = writeln!(text, "{} 1 {}", name(design, trial.treatment), values.join(" "));
    }
    for metric in measured(findings).filter(|_| !recording.header.published.is_empty()) {
        for (treatment, value) in super::published(metric) {
            let _ = writeln!(text, "{} 1 {value} {}", name(design, treatment), unit(&metric.id, &metric.unit));
        }
    }
    text
}

fn name(design: &Design, treatment: usize) -> String {
    let mut name = benchmark(&design.name);
    for (factor, level) in levels(design, treatment) {
        let _ = write!(name, "/{}={}", word(factor), word(level));
    }
    let control = design.treatments[treatment].control;
    if control > 0 {
        let _ = write!(name, "/control={control}");
    }
    name
}

/// `pipe_beside` becomes `BenchmarkPipe_beside`: the letter behind `Benchmark` must not be lower case.
fn benchmark(name: &str) -> String {
    let word = word(name);
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    format!("Benchmark{first}{}", letters.as_str())
}

/// Without what ends a name, begins another part of it or reads as a number of CPUs at its end.
fn word(text: &str) -> String {
    let plain = |c: char| if c.is_alphanumeric() || "_.:+,@%".contains(c) { c } else { '_' };
    let word: String = text.chars().map(plain).collect();
    if word.is_empty() { "_".to_owned() } else { word }
}

fn unit(id: &str, unit: &str) -> String {
    let plain = |c: char| if c.is_whitespace() || c.is_control() || c == '=' { '_' } else { c };
    let text = if unit.is_empty() { id.to_owned() } else { format!("{id}({unit})") };
    text.chars().map(plain).collect()
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>().trim().to_owned()
}
