//! What single published runs show without any error term: how their ratios depend on the other factors.

use super::{ComparisonFinding, RatioOfRatios};

/// Ratios of ratios between comparisons that differ in one factor held fixed, each against the first level there is.
pub(super) fn ratios_of_ratios(comparisons: &[ComparisonFinding]) -> Vec<RatioOfRatios> {
    let single = |finding: &&ComparisonFinding| {
        finding.published.is_some_and(|published| published.break_even_cv.is_some()) && finding.point.is_some()
    };
    let mut found = Vec::new();
    for finding in comparisons.iter().filter(single) {
        for place in 0..finding.within.len() {
            let first = comparisons.iter().filter(single).find(|other| differs_in(finding, other, place));
            let Some((first, ratio)) = first.and_then(|first| Some((first, finding.point? / first.point?))) else {
                continue;
            };
            if first.within[place] == finding.within[place] || !ratio.is_finite() {
                continue;
            }
            let mut within = finding.within.clone();
            let (factor, level) = within.remove(place);
            found.push(RatioOfRatios {
                comparison: finding.comparison,
                metric: finding.metric.clone(),
                level: finding.level.clone(),
                base: finding.base.clone(),
                factor,
                levels: (level, first.within[place].1.clone()),
                within,
                ratio,
            });
        }
    }
    found
}

/// Whether two findings answer the same question, at most at another level of the factor at that place.
fn differs_in(one: &ComparisonFinding, other: &ComparisonFinding, place: usize) -> bool {
    let same = (one.comparison, &one.metric, &one.level) == (other.comparison, &other.metric, &other.level);
    let elsewhere = one.within.iter().zip(&other.within).enumerate();
    same && elsewhere.filter(|(at, _)| *at != place).all(|(_, (one, other))| one == other)
}
