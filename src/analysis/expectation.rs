//! Declared expectations, judged by the interval of left against right. Each is judged by itself, at its own 5 %.

use super::comparison::{Material, estimate, margin_bounds, shown};
use super::sides::{Sides, combinations, pairs};
use super::student::Inference;
use super::{Estimate, ExpectationFinding, ExpectationVerdict, Scale};
use crate::recording::{Expectation, Relation};

/// Judges every expectation, one finding per metric and combination of `within` levels.
pub(super) fn judge(material: &Material) -> Vec<ExpectationFinding> {
    let clauses = material.design.expectations.iter().enumerate();
    clauses.flat_map(|(index, clause)| judge_clause(material, index, clause)).collect()
}

fn judge_clause(material: &Material, index: usize, clause: &Expectation) -> Vec<ExpectationFinding> {
    let levels = (clause.left.1, clause.right.1);
    let margin = margin_of(material, clause);
    let mut findings = Vec::new();
    for values in material.metrics(&clause.metric) {
        for within in combinations(material.design, &clause.within) {
            let pairs = pairs(material.design, clause.factor, levels, &within);
            if pairs.is_empty() && !within.is_empty() {
                continue;
            }
            let sides = Sides::new(values, material.laid(), &pairs, (clause.left.0, clause.right.0));
            let inferred = material.infer(&sides, clause.factor, levels);
            let inference = inferred.inference.ok();
            let estimate = inference.and_then(|inference| estimate(&inference, &sides, inferred.method));
            let verdict = match (clause.operator, inference, estimate) {
                (_, _, None) | (_, None, _) => ExpectationVerdict::Undecided,
                (Relation::Equal, Some(inference), _) => equal(&inference, margin, sides.scale),
                (Relation::NotEqual, Some(inference), _) => opposite(equal(&inference, margin, sides.scale)),
                (Relation::Greater | Relation::GreaterOrEqual, _, Some(estimate)) => {
                    opposite(less(&estimate, shown(0.0, sides.scale)))
                }
                (Relation::Less | Relation::LessOrEqual, _, Some(estimate)) => less(&estimate, shown(0.0, sides.scale)),
            };
            let within = material.names(&within);
            findings.push(ExpectationFinding {
                expectation: index,
                within,
                estimate,
                scale: sides.scale,
                margin,
                verdict,
            });
        }
    }
    if findings.is_empty() {
        let (within, verdict) = (Vec::new(), ExpectationVerdict::Undecided);
        let finding =
            ExpectationFinding { expectation: index, within, estimate: None, scale: Scale::Ratio, margin, verdict };
        findings.push(finding);
    }
    findings
}

/// The margin of a comparison of the same factor by the same metric; the widest of several.
fn margin_of(material: &Material, clause: &Expectation) -> Option<f64> {
    let same =
        |metric: &String| *metric == clause.metric || material.metrics(metric).any(|values| values.id == clause.metric);
    let comparisons = material.design.comparisons.iter();
    comparisons
        .filter(|comparison| comparison.factor == clause.factor && comparison.metrics.iter().any(same))
        .filter_map(|comparison| comparison.margin)
        .max_by(f64::total_cmp)
}

/// Whether the value is below the border. Strict and weak relations cannot be told apart by an interval.
fn less(estimate: &Estimate, border: f64) -> ExpectationVerdict {
    if estimate.high <= border {
        ExpectationVerdict::Held
    } else if estimate.low > border {
        ExpectationVerdict::Failed
    } else if estimate.value <= border {
        ExpectationVerdict::NotContradicted
    } else {
        ExpectationVerdict::Unsupported
    }
}

/// Equality within the margin: held by two one-sided tests, failed when the 95 % interval is wholly beyond it.
fn equal(inference: &Inference, margin: Option<f64>, scale: Scale) -> ExpectationVerdict {
    let judged = || {
        let (low, high) = margin_bounds(margin, scale)?;
        let (lowest, highest) = inference.interval(0.95)?;
        Some(if inference.equivalence_p(low, high)? <= 0.05 {
            ExpectationVerdict::Held
        } else if highest < low || lowest > high {
            ExpectationVerdict::Failed
        } else if low <= inference.estimate && inference.estimate <= high {
            ExpectationVerdict::NotContradicted
        } else {
            ExpectationVerdict::Unsupported
        })
    };
    judged().unwrap_or(ExpectationVerdict::Undecided)
}

fn opposite(verdict: ExpectationVerdict) -> ExpectationVerdict {
    match verdict {
        ExpectationVerdict::Failed => ExpectationVerdict::Held,
        ExpectationVerdict::Held => ExpectationVerdict::Failed,
        ExpectationVerdict::NotContradicted => ExpectationVerdict::Unsupported,
        ExpectationVerdict::Undecided => ExpectationVerdict::Undecided,
        ExpectationVerdict::Unsupported => ExpectationVerdict::NotContradicted,
    }
}
