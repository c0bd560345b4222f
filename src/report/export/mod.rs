//! A recording in the formats of other tools: JSON, CSV, hyperfine, benchstat, `JUnit`. Values come from the findings; nothing
//! is computed but means of times.
//!
//! Names may hold anything: each format escapes by its own rules. `docs/export.md` describes the formats.

use crate::analysis::{Findings, MetricFindings};
use crate::recording::{Design, Recording, Trial};

mod benchstat;
mod csv;
mod hyperfine;
mod json;
mod junit;

pub use benchstat::benchstat;
pub use csv::csv;
pub use hyperfine::hyperfine;
pub use json::json;
pub use junit::junit;

/// The trials in the analysis, in the order they ran.
fn valid(recording: &Recording) -> Vec<&Trial> {
    let last = |trial: &Trial| {
        let same = recording.trials.iter().filter(|other| other.number == trial.number);
        same.max_by_key(|other| (other.attempt, other.sequence)).is_some_and(|last| last.sequence == trial.sequence)
    };
    let counts = |trial: &&Trial| trial.block > 0 && trial.faults.is_empty() && last(trial);
    let mut valid: Vec<&Trial> = recording.trials.iter().filter(counts).collect();
    valid.sort_by_key(|trial| trial.sequence);
    valid
}

/// The value a trial has in a metric.
fn value(metric: &MetricFindings, trial: &Trial) -> Option<f64> {
    let cell = metric.cells.iter().find(|cell| cell.treatment == trial.treatment)?;
    cell.values.iter().find(|(block, _)| *block == trial.block).map(|(_, value)| *value)
}

/// `(factor, level)` names of a treatment.
fn levels(design: &Design, treatment: usize) -> Vec<(&str, &str)> {
    let treatment = &design.treatments[treatment];
    let pairs = design.factors.iter().zip(&treatment.levels);
    pairs.map(|(factor, level)| (factor.name.as_str(), factor.levels.get(*level).map_or("", String::as_str))).collect()
}

/// Metrics with at least one value.
fn measured(findings: &Findings) -> impl Iterator<Item = &MetricFindings> {
    findings.metrics.iter().filter(|metric| metric.cells.iter().any(|cell| !cell.values.is_empty()))
}
