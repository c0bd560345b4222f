//! A recording in the formats of other tools: JSON, CSV, hyperfine, benchstat, `JUnit`. Values come from the findings; nothing
//! is computed but means of times.
//!
//! Names may hold anything: each format escapes by its own rules. `docs/export.md` describes the formats.

use std::collections::BTreeMap;

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
    let mut last: BTreeMap<u32, &Trial> = BTreeMap::new();
    for trial in recording.trials.iter().filter(|trial| trial.block > 0) {
        let known = last.entry(trial.number).or_insert(trial);
        if (trial.attempt, trial.sequence) > (known.attempt, known.sequence) {
            *known = trial;
        }
    }
    let mut valid: Vec<&Trial> = last.into_values().filter(|trial| trial.faults.is_empty()).collect();
    valid.sort_by_key(|trial| trial.sequence);
    valid
}

/// The value a trial has in a metric.
fn value(metric: &MetricFindings, trial: &Trial) -> Option<f64> {
    let cell = metric.cells.iter().find(|cell| cell.treatment == trial.treatment)?;
    let place = cell.values.binary_search_by_key(&trial.block, |(block, _)| *block).ok()?;
    Some(cell.values[place].1)
}

/// `(factor, level)` names of a treatment.
fn levels(design: &Design, treatment: usize) -> Vec<(&str, &str)> {
    let treatment = &design.treatments[treatment];
    let pairs = design.factors.iter().zip(&treatment.levels);
    pairs.map(|(factor, level)| (factor.name.as_str(), factor.levels.get(*level).map_or("", String::as_str))).collect()
}

/// Values of a published metric, `(treatment, value)`, in the order of the file; nothing was run for them.
fn published(metric: &MetricFindings) -> impl Iterator<Item = (usize, f64)> {
    metric.cells.iter().flat_map(|cell| cell.values.iter().map(|(_, value)| (cell.treatment, *value)))
}

/// Metrics with at least one value.
fn measured(findings: &Findings) -> impl Iterator<Item = &MetricFindings> {
    findings.metrics.iter().filter(|metric| metric.cells.iter().any(|cell| !cell.values.is_empty()))
}
