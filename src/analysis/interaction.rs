//! Whether an effect is the same at each level of the factors it is averaged over: contrasts of contrasts.

use super::sides::{Pair, Sides};
use super::student::Inference;
use crate::recording::Design;

/// The effect at one level of a factor against the effect at its first level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Contrast {
    /// The factor averaged over.
    pub(super) factor: usize,
    /// Its level.
    pub(super) level: usize,
    /// Its first level among the strata.
    pub(super) base: usize,
    /// Difference of the effects on the scale of the inference: ln of the ratio of ratios.
    pub(super) inference: Inference,
    /// Two-sided; not corrected, because a dependence that is missed does more harm than one that is shown.
    pub(super) p: f64,
}

/// Every level of every factor averaged over, against the first one.
pub(super) fn contrasts(design: &Design, sides: &Sides, pairs: &[Pair], averaged: &[usize]) -> Vec<Contrast> {
    let level_of = |pair: &Pair, factor: usize| design.treatments[pair.0].levels[factor];
    let mut contrasts = Vec::new();
    for factor in averaged.iter().copied() {
        let Some(base) = pairs.iter().map(|pair| level_of(pair, factor)).min() else { continue };
        for level in base + 1..design.factors[factor].levels.len() {
            let group = |pair: &Pair| match level_of(pair, factor) {
                of_pair if of_pair == level => Some(true),
                of_pair if of_pair == base => Some(false),
                _ => None,
            };
            let inference = sides.interaction(&pairs.iter().map(group).collect::<Vec<_>>());
            let found = inference.and_then(|inference| Some((inference, inference.p()?)));
            contrasts.extend(found.map(|(inference, p)| Contrast { factor, level, base, inference, p }));
        }
    }
    contrasts
}
