//! Doubts about a metric's numbers become flags of the verdicts that rest on them.

use super::{ComparisonFinding, Flag, Verdict, Warning};
use crate::recording::Design;

/// Flags every comparison that has an inference with the doubts about its metric, and about the trials on its sides.
pub(super) fn flag(comparisons: &mut [ComparisonFinding], warnings: &[Warning], design: &Design) {
    let judged = |finding: &&mut ComparisonFinding| !matches!(finding.verdict, Verdict::NoInference(_));
    for finding in comparisons.iter_mut().filter(judged) {
        let mut flags: Vec<Flag> = Vec::new();
        for warning in warnings {
            let flag = match warning {
                Warning::ControlDiffers { metric, .. } if *metric == finding.metric => Flag::ControlDiffers,
                Warning::BootOptionNotInForce { treatment, .. } if is_on_a_side(design, finding, *treatment) => {
                    Flag::OptionNotInForce { treatment: *treatment }
                }
                Warning::Drift { metric, .. } if *metric == finding.metric => Flag::Drift,
                Warning::FirstBlock { metric, .. } | Warning::FirstRunsWorst { metric, .. }
                    if *metric == finding.metric =>
                {
                    Flag::FirstBlock
                }
                Warning::Outlier { metric, treatment, block, .. }
                    if *metric == finding.metric && is_on_a_side(design, finding, *treatment) =>
                {
                    Flag::Outlier { treatment: *treatment, block: *block }
                }
                _ => continue,
            };
            if !flags.contains(&flag) {
                flags.push(flag);
            }
        }
        finding.flags.extend(flags);
    }
}

fn is_on_a_side(design: &Design, finding: &ComparisonFinding, treatment: usize) -> bool {
    let Some(treatment) = design.treatments.get(treatment).filter(|treatment| treatment.control == 0) else {
        return false;
    };
    let level_of = |name: &str| {
        let factor = design.factors.iter().position(|factor| factor.name == name)?;
        design.factors[factor].levels.get(*treatment.levels.get(factor)?).map(String::as_str)
    };
    let own = level_of(&finding.factor);
    (own == Some(finding.level.as_str()) || own == Some(finding.base.as_str()))
        && finding.within.iter().all(|(factor, level)| level_of(factor) == Some(level.as_str()))
}
