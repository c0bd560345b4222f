//! Two recordings of one experiment, treatment by treatment. They are two groups that nobody randomised: whatever differs
//! here may come from what was changed, from the host, or from the time between them.

use std::collections::BTreeMap;

use super::boots::Boots;
use super::comparison::{Question, conclude_families, estimate, robust, shown};
use super::sides::{Laid, Layout, Sides};
use super::values::{self, Values};
use super::{ComparisonFinding, NoInference, Verdict};
use crate::recording::{Design, Factor, Metric, ProcessPlan, Recording, Treatment};

/// What can be said of two recordings beside each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Across {
    /// One per metric and treatment, new against old; `comparison` is the index of the treatment, `level` and `base` are
    /// `new` and `old`.
    pub findings: Vec<ComparisonFinding>,
    /// Declared metrics with what is compared of them: id, label and unit as in the recordings.
    pub metrics: Vec<Metric>,
    /// Geometric means (means, where a value is not positive) of old and new, as `findings`.
    pub centres: Vec<(Option<f64>, Option<f64>)>,
}

/// Compares every treatment of `new` with that of `old`, unpaired, on every metric, with Holm's correction over the
/// treatments of a metric; or says why the two must not be laid beside each other.
///
/// The margin is the narrowest that a `compare` clause of `old` declares for the metric. Blocks are not paired: those of
/// one recording have nothing to do with those of the other.
pub fn across(old: &Recording, new: &Recording) -> Result<Across, Vec<String>> {
    let mismatches = mismatches(&old.header.design, &new.header.design);
    if !mismatches.is_empty() {
        return Err(mismatches);
    }
    let measured = |recording: &Recording| {
        let valid = values::valid_trials(&recording.trials);
        values::values(&recording.header, &valid)
    };
    let (before, after) = (measured(old), measured(new));
    let cells = old.header.design.treatments.len();
    // Values of both as one metric with twice the treatments, so that all its comparisons are on one scale.
    let merged: Vec<Values> = before
        .into_iter()
        .filter_map(|values| {
            let other = after.iter().find(|other| other.id == values.id)?;
            let all = values.cells.into_iter().chain(other.cells.iter().cloned()).collect();
            Some(Values { cells: all, in_order: Vec::new(), ..values })
        })
        .collect();
    let design = &old.header.design;
    let mut questions: Vec<Question> = merged
        .iter()
        .flat_map(|values| (0..cells).map(move |treatment| question(design, values, (treatment, cells + treatment))))
        .collect();
    conclude_families(&mut questions, &merged, &[]);
    let centre = |question: &Question, treatment: usize| {
        super::summary::summarise(&question.values.cells[treatment].values().copied().collect::<Vec<_>>())
            .map(|summary| summary.geometric_mean.unwrap_or(summary.mean))
    };
    let centres = questions
        .iter()
        .map(|question| {
            let treatment = question.finding.comparison;
            (centre(question, treatment), centre(question, cells + treatment))
        })
        .collect();
    let metric = |values: &Values| Metric {
        id: values.id.clone(),
        label: values.label.clone(),
        unit: values.unit.clone(),
        direction: values.direction,
        expr: crate::recording::MetricExpr::Metric(values.id.clone()),
    };
    Ok(Across {
        metrics: merged.iter().map(metric).collect(),
        centres,
        findings: questions.into_iter().map(|question| question.finding).collect(),
    })
}

fn question<'a>(design: &Design, values: &'a Values, (old, new): (usize, usize)) -> Question<'a> {
    let sides =
        Sides::new(values, Laid { layout: Layout::Unblocked, boots: &Boots::default() }, &[(new, old)], (1.0, 1.0));
    let inferred = sides.infer();
    let inference = inferred.inference.ok();
    let margins = design.comparisons.iter().filter(|comparison| {
        comparison.metrics.iter().any(|metric| *metric == values.id || *metric == values.declared)
    });
    let judged = matches!(inferred.inference, Ok(_) | Err(NoInference::ZeroVariance));
    let finding = ComparisonFinding {
        comparison: old,
        metric: values.id.clone(),
        factor: "recording".to_owned(),
        level: "new".to_owned(),
        base: "old".to_owned(),
        within: vec![("treatment".to_owned(), design.treatments[old].name.clone())],
        averaged_over: Vec::new(),
        n: inferred.n,
        estimate: inference.and_then(|inference| estimate(&inference, &sides, inferred.method)),
        point: inferred.point.map(|point| shown(point, sides.scale)).filter(|point| point.is_finite()),
        scale: sides.scale,
        p: inference.and_then(|inference| inference.p()),
        p_holm: None,
        exact: if judged { sides.exact() } else { None },
        robust: if judged { robust(&sides) } else { None },
        margin: margins.filter_map(|comparison| comparison.margin).min_by(f64::total_cmp),
        verdict: inferred.inference.err().map_or(Verdict::Inconclusive, Verdict::NoInference),
        flags: Vec::new(),
        needed_n: None,
        published: None,
    };
    Question { finding, sides, inferred, averages: None, direction: values.direction, values }
}

/// Why two designs must not be laid beside each other. Masks and CPUs may differ: another host has others.
fn mismatches(old: &Design, new: &Design) -> Vec<String> {
    let mut found = Vec::new();
    if [old, new].iter().any(|design| design.protocol.order == "recorded") {
        found.push("numbers from a file were not run here, and their comparisons are in the report".to_owned());
    }
    if old.name != new.name {
        found.push(format!("the experiments are `{}` and `{}`", old.name, new.name));
    }
    let levels = |factor: &Factor| (factor.name.clone(), factor.levels.clone());
    if !old.factors.iter().map(levels).eq(new.factors.iter().map(levels)) {
        found.push("the factors or their levels are not the same".to_owned());
    }
    let cell = |treatment: &Treatment| (treatment.levels.clone(), treatment.control);
    if !old.treatments.iter().map(cell).eq(new.treatments.iter().map(cell)) {
        found.push("the treatments are not the same".to_owned());
    }
    let plan = |plan: &ProcessPlan| (plan.name.clone(), plan.command.clone(), plan.instances);
    for (before, after) in old.treatments.iter().zip(&new.treatments) {
        let same = |old: &[ProcessPlan], new: &[ProcessPlan]| old.iter().map(plan).eq(new.iter().map(plan));
        if !same(&before.workloads, &after.workloads) || !same(&before.backgrounds, &after.backgrounds) {
            found.push(format!("under `{}` the workloads or backgrounds are not the same", before.name));
        }
    }
    let after: BTreeMap<&str, &Metric> = new.metrics.iter().map(|metric| (metric.id.as_str(), metric)).collect();
    for metric in &old.metrics {
        match after.get(metric.id.as_str()) {
            None => found.push(format!("`{}` was measured in one only", metric.id)),
            Some(other) if other.unit != metric.unit => found.push(format!(
                "`{}` has the unit `{}` in one and `{}` in the other",
                metric.id, metric.unit, other.unit
            )),
            Some(other) if (other.direction, &other.expr) != (metric.direction, &metric.expr) => {
                found.push(format!("`{}` does not mean the same in both", metric.id));
            }
            Some(_) => {}
        }
    }
    if new.metrics.len() > old.metrics.len() {
        found.push("one has measured more metrics than the other".to_owned());
    }
    let (was, is) = (old.protocol.order.as_str(), new.protocol.order.as_str());
    if was != is {
        found.push(format!("the orders of trials are `{was}` and `{is}`"));
    }
    found
}
