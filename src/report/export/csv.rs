//! CSV in long form (RFC 4180, commas, a header line, `\n`): one line per trial and metric.

use std::collections::BTreeSet;

use super::{levels, measured, value};
use crate::analysis::Findings;
use crate::recording::{Recording, Trial};

/// Every trial that ran, warm-up and invalid ones too; these have no value, and `state` says what they are. Published values
/// have a line each, without block, number and time.
pub fn csv(recording: &Recording, findings: &Findings) -> String {
    let design = &recording.header.design;
    let valid: BTreeSet<u32> = super::valid(recording).iter().map(|trial| trial.sequence).collect();
    let mut columns: Vec<String> = ["experiment", "metric", "unit", "treatment"].map(field).to_vec();
    columns.extend(design.factors.iter().map(|factor| field(&format!("factor.{}", factor.name))));
    columns.extend(["control", "block", "number", "attempt", "sequence", "started_at", "state", "value"].map(field));
    let mut text = format!("{}\n", columns.join(","));
    let mut trials: Vec<&Trial> = recording.trials.iter().collect();
    trials.sort_by_key(|trial| trial.sequence);
    for metric in measured(findings).filter(|_| !recording.header.published.is_empty()) {
        for (index, value) in super::published(metric) {
            let treatment = &design.treatments[index];
            let mut line = vec![field(&design.name), field(&metric.id), field(&metric.unit), field(&treatment.name)];
            line.extend(levels(design, index).into_iter().map(|(_, level)| field(level)));
            line.extend([treatment.control.to_string(), ",,,,".to_owned(), "published".to_owned(), value.to_string()]);
            text.push_str(&line.join(","));
            text.push('\n');
        }
    }
    for trial in trials {
        let treatment = &design.treatments[trial.treatment];
        let counts = valid.contains(&trial.sequence);
        let state = match (trial.block, trial.faults.is_empty()) {
            (_, false) => "invalid",
            (0, true) => "warmup",
            _ if counts => "valid",
            _ => "superseded",
        };
        for metric in measured(findings) {
            let mut line = vec![field(&design.name), field(&metric.id), field(&metric.unit), field(&treatment.name)];
            line.extend(levels(design, trial.treatment).into_iter().map(|(_, level)| field(level)));
            let numbers = [treatment.control as u64, u64::from(trial.block), u64::from(trial.number)];
            line.extend(numbers.iter().map(u64::to_string));
            line.extend([trial.attempt.to_string(), trial.sequence.to_string(), field(&trial.started_at)]);
            line.push(state.to_owned());
            let value = value(metric, trial).filter(|_| counts);
            line.push(value.map_or_else(String::new, |value| value.to_string()));
            text.push_str(&line.join(","));
            text.push('\n');
        }
    }
    text
}

/// Quoted where it must be. A text that a spreadsheet would take for a formula gets an apostrophe in front.
fn field(text: &str) -> String {
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
