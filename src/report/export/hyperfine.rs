//! The JSON that `hyperfine --export-json` writes: wall clock times of each treatment, in seconds.

use std::collections::BTreeMap;

use serde::Serialize;

use super::levels;
use crate::recording::{Recording, Trial};

#[derive(Serialize)]
struct Export {
    results: Vec<Benchmark>,
}

/// Field names and order are hyperfine's.
#[derive(Serialize)]
struct Benchmark {
    command: String,
    mean: f64,
    stddev: Option<f64>,
    median: f64,
    user: f64,
    system: f64,
    min: f64,
    max: f64,
    times: Vec<f64>,
    exit_codes: Vec<Option<i32>>,
    parameters: BTreeMap<String, String>,
}

/// One result per treatment with a valid trial. A time is from the release of the workloads to the end of the last;
/// `user` and `system` are means over trials of all workloads together. `None` without a trial: published numbers come
/// without such times.
pub fn hyperfine(recording: &Recording) -> Option<String> {
    let design = &recording.header.design;
    let valid = super::valid(recording);
    let results = design.treatments.iter().enumerate().filter_map(|(index, treatment)| {
        let trials: Vec<&Trial> = valid.iter().filter(|trial| trial.treatment == index).copied().collect();
        let times: Vec<f64> = trials.iter().map(|trial| trial.duration_ns as f64 / 1e9).collect();
        let summary = crate::analysis::summary::summarise(&times)?;
        let cpu = |microseconds: fn(&crate::recording::ProcessRecord) -> u64| {
            let total: u64 = trials.iter().flat_map(|trial| &trial.processes).map(microseconds).sum();
            total as f64 / 1e6 / trials.len() as f64
        };
        let exit =
            |trial: &&Trial| trial.processes.iter().map(|process| process.status).find(|status| *status != Some(0));
        Some(Benchmark {
            command: treatment.name.clone(),
            mean: summary.mean,
            stddev: summary.sd,
            median: summary.median,
            user: cpu(|process| process.user_us),
            system: cpu(|process| process.sys_us),
            min: summary.low,
            max: summary.high,
            exit_codes: trials.iter().map(|trial| exit(trial).unwrap_or(Some(0))).collect(),
            parameters: levels(design, index)
                .into_iter()
                .map(|(factor, level)| (factor.to_owned(), level.to_owned()))
                .chain((treatment.control > 0).then(|| ("control".to_owned(), treatment.control.to_string())))
                .collect(),
            times,
        })
    });
    let results: Vec<Benchmark> = results.collect();
    (!results.is_empty()).then(|| super::json::pretty(&Export { results }))
}
