//! What so many trials can show, and how many are needed. Answers before the run what the analysis would say after it.

use super::exact::{min_p_paired, min_p_unpaired};
use super::student::quantile;

/// Whether trials are compared inside blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pairing {
    /// One pair per block.
    Paired,
    /// Two independent samples.
    Unpaired,
}

/// Power that "probably" stands for.
const POWER: f64 = 0.8;

/// More values than this are no advice.
const MOST: u32 = 10_000;

/// The smallest effect found with a power of 80 % at a two-sided 5 %, in units of one trial's standard deviation
/// (of ln values: the coefficient of variation): `(t_.975 + t_.80) sqrt(2 / n)`.
///
/// `n` values a side, or pairs; degrees of freedom 2n - 2, or n - 1 when paired. The paired form takes trials of one
/// block to be no more alike than others; blocks that share drift do better. Within 1.2 % of the noncentral t at n = 3.
/// `None` below two.
pub fn detectable_effect(n: u32, pairing: Pairing) -> Option<f64> {
    detectable_at(n, pairing, 0.05)
}

/// Values a side, or pairs, with which a true effect of that size would be found with a power of 80 %.
///
/// `sd` is one trial's standard deviation in the unit of `effect`, `alpha` the two-sided level (0.05, or that divided
/// by the number of comparisons). An effect taken from the same data makes the answer a rough one. `None` for an
/// effect of 0, or beyond 10,000.
pub fn needed_n(effect: f64, sd: f64, pairing: Pairing, alpha: f64) -> Option<u32> {
    let target = effect.abs() / sd;
    if !(target.is_finite() && target > 0.0) {
        return None;
    }
    let enough = |n: u32| detectable_at(n, pairing, alpha).is_some_and(|detectable| detectable <= target);
    if !enough(MOST) {
        return None;
    }
    let (mut too_few, mut sufficient) = (2, MOST);
    if enough(3) {
        return Some(3);
    }
    while sufficient - too_few > 1 {
        let middle = u32::midpoint(too_few, sufficient);
        if enough(middle) { sufficient = middle } else { too_few = middle }
    }
    Some(sufficient)
}

/// Smallest number of values a side, or blocks, with which an exact test can reach 0.05 in Holm's first step of so many
/// comparisons.
pub fn blocks_for_exact(comparisons: usize, pairing: Pairing) -> u32 {
    let level = 0.05 / comparisons.max(1) as f64;
    let reachable = |n: u32| match pairing {
        Pairing::Paired => min_p_paired(n as usize) <= level,
        Pairing::Unpaired => min_p_unpaired(n as usize, n as usize) <= level,
    };
    (1..MOST).find(|n| reachable(*n)).unwrap_or(MOST)
}

/// Stein's two-stage size (Ann. Math. Statist. 16, 1945): `max(n0, ceil((t_{.975, n0-1} sd / d)^2))`.
///
/// `sd` is that of the `pilot` values, `half_width` the wanted half width of the 95 % interval in the same unit. One look
/// after the pilot, never more. `None` below two values or for a width that is not positive.
pub fn two_stage_size(pilot: u32, sd: f64, half_width: f64) -> Option<u32> {
    if pilot < 2 || !(half_width > 0.0 && sd.is_finite() && sd >= 0.0) {
        return None;
    }
    let size = (quantile(0.975, f64::from(pilot - 1))? * sd / half_width).powi(2).ceil();
    Some(pilot.max(if size < f64::from(u32::MAX) { size as u32 } else { u32::MAX }))
}

fn detectable_at(n: u32, pairing: Pairing, alpha: f64) -> Option<f64> {
    let df = match pairing {
        Pairing::Paired => f64::from(n.checked_sub(1)?),
        Pairing::Unpaired => 2.0 * f64::from(n.checked_sub(1)?),
    };
    Some((quantile(1.0 - alpha / 2.0, df)? + quantile(POWER, df)?) * (2.0 / f64::from(n)).sqrt())
}
