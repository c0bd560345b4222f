//! What can be said of numbers somebody published: one value per treatment, or low, high and average only.

use super::exact::min_p_unpaired;
use super::student::{Inference, upper_tail};

/// 97.5 % point of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// The three values behind low, high and average of a sample of three: `3 average - low - high` is the middle one.
///
/// Exact up to the rounding of the average. `None` when the middle would lie outside, so that the numbers contradict
/// each other.
pub fn three_values(low: f64, high: f64, average: f64) -> Option<[f64; 3]> {
    let middle = 3.0 * average - low - high;
    let slack = 1e-4 * high.abs().max(low.abs());
    let inside = low <= high && middle >= low - slack && middle <= high + slack;
    inside.then(|| [low, middle.clamp(low, high), high])
}

/// Bounds of the standard deviation (n - 1) of a sample of `n` with that low, high and average.
///
/// Smallest when the other n - 2 values are equal, largest when they sit at the extremes, one of them between. `None`
/// below three values or when no sample has such numbers.
pub fn sd_bounds(n: u32, low: f64, high: f64, average: f64) -> Option<(f64, f64)> {
    let others = f64::from(n.checked_sub(2).filter(|others| *others > 0)?);
    let rest = f64::from(n) * average - low - high;
    if !(low < high && rest >= others * low && rest <= others * high) {
        return None;
    }
    let square = |value: f64| (value - average).powi(2);
    let ends = square(low) + square(high);
    let at_high = ((rest - others * low) / (high - low)).floor().min(others);
    let at_low = (others - at_high - 1.0).max(0.0);
    let between = if at_high < others { square(rest - at_high * high - at_low * low) } else { 0.0 };
    let sd = |squares: f64| (squares / f64::from(n - 1)).sqrt();
    Some((
        sd(ends + others * square(rest / others)),
        sd(ends + at_high * square(high) + at_low * square(low) + between),
    ))
}

/// The run-to-run CV below which the mean of so many single pairs exceeds 1.96 sigma: `|ln ratio| / (1.96 sqrt(2 / k))`,
/// a fraction.
///
/// Says how quiet a bench must have been for single runs to mean anything, not how quiet it was.
pub fn break_even_cv(ln_ratio: f64, pairs: usize) -> f64 {
    ln_ratio.abs() / (Z * (2.0 / pairs as f64).sqrt())
}

/// How far rounding both values to a multiple of `2 half_unit` can move the ratio `level / base`: the larger half width.
///
/// `None` where the base could be 0.
pub fn rounding(level: f64, base: f64, half_unit: f64) -> Option<f64> {
    let width = (level + half_unit) / (base - half_unit) - level / base;
    (base > half_unit && width.is_finite()).then_some(width.abs())
}

/// One side of a comparison, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Side {
    /// Lowest.
    pub low: f64,
    /// Highest.
    pub high: f64,
    /// Arithmetic mean.
    pub average: f64,
    /// Number of values.
    pub n: Option<u32>,
    /// Bounds of the standard deviation; both the same where the values are known.
    pub sd: Option<(f64, f64)>,
}

/// How two ranges lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ranges {
    /// The level's lowest value is above the base's highest.
    Above,
    /// The level's highest value is below the base's lowest.
    Below,
    /// Neither.
    Overlap,
}

/// How the range of the level lies to that of the base.
pub fn ranges(level: (f64, f64), base: (f64, f64)) -> Ranges {
    if level.0 > base.1 {
        Ranges::Above
    } else if level.1 < base.0 {
        Ranges::Below
    } else {
        Ranges::Overlap
    }
}

/// Two-sided exact p of two samples of known size whose ranges do not overlap, without their values:
/// `2 / C(nA + nB, nA)`.
pub fn separation_p(level: &Side, base: &Side) -> Option<f64> {
    let apart = ranges((level.low, level.high), (base.low, base.high)) != Ranges::Overlap;
    let (n, m) = (level.n.filter(|_| apart)?, base.n?);
    Some(min_p_unpaired(n as usize, m as usize))
}

/// Welch's test of the averages with every combination of the bounds of both standard deviations: the smallest p, and
/// the inference with the largest.
///
/// On the plain scale: logarithms cannot be had from summaries. A difference is significant only if it is so with the
/// largest p. `None` without sizes of two or more and bounds, or without any spread.
pub fn bounded_welch(level: &Side, base: &Side) -> Option<(f64, Inference)> {
    let judged = inferences(level, base, 1.0)?.into_iter().filter_map(|inference| Some((inference.p()?, inference)));
    let judged: Vec<(f64, Inference)> = judged.filter(|(p, _)| p.is_finite()).collect();
    let smallest = judged.iter().map(|(p, _)| *p).fold(f64::INFINITY, f64::min);
    let largest = judged.into_iter().reduce(|known, other| if other.0 > known.0 { other } else { known })?;
    Some((smallest, largest.1))
}

/// The ratio of two averages with its 95 % interval: all ratios r at which Welch's test does not find that level and r times
/// base differ, with the largest p that the bounds of both standard deviations allow (Fieller 1954, with unequal variances).
///
/// It leaves out 1 exactly when the test of [`bounded_welch`] is significant. `None` where it has no end, because an average
/// is not told from 0.
pub fn ratio_of_averages(level: &Side, base: &Side) -> Option<(f64, f64, f64)> {
    let ratio = level.average / base.average;
    let differs = |ratio: f64| {
        let largest = inferences(level, base, ratio)?.iter().filter_map(Inference::p).reduce(f64::max)?;
        Some(largest <= 0.05)
    };
    let bound = |mut beyond: f64| {
        let mut within = ratio;
        if !(ratio > 0.0 && ratio.is_finite() && differs(beyond)?) {
            return None;
        }
        for _ in 0..100 {
            let middle = (within * beyond).sqrt();
            if differs(middle)? { beyond = middle } else { within = middle }
        }
        Some(beyond)
    };
    Some((ratio, bound(ratio * 1e-6)?, bound(ratio * 1e6)?))
}

/// p of two one-sided tests that the ratio of two averages lies between `low` and `high`, the largest that the bounds of
/// both standard deviations allow. The bounds must have been declared beforehand.
pub fn averages_equivalence_p(level: &Side, base: &Side, (low, high): (f64, f64)) -> Option<f64> {
    let above_low = inferences(level, base, low)?.into_iter().map(|found| upper_tail(found.t(), found.df));
    let below_high = inferences(level, base, high)?.into_iter().map(|found| upper_tail(-found.t(), found.df));
    above_low.chain(below_high).collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

/// level - ratio base for every combination of the bounds of both standard deviations that has a spread.
fn inferences(level: &Side, base: &Side, ratio: f64) -> Option<Vec<Inference>> {
    let sizes = [level, base].map(|side| side.n.filter(|n| *n > 1).map(f64::from));
    let [Some(of_level), Some(of_base)] = sizes else { return None };
    let mut found = Vec::new();
    for sd in <[f64; 2]>::from(level.sd?) {
        for other in <[f64; 2]>::from(base.sd?) {
            let (one, two) = (sd * sd / of_level, ratio * ratio * other * other / of_base);
            let share = one / (one + two);
            let df = 1.0 / (share.powi(2) / (of_level - 1.0) + (1.0 - share).powi(2) / (of_base - 1.0));
            let estimate = level.average - ratio * base.average;
            let inference = Inference { estimate, standard_error: (one + two).sqrt(), df };
            found.extend((inference.standard_error > 0.0 && df.is_finite()).then_some(inference));
        }
    }
    Some(found)
}

/// Whether all values but one seem to lie at one end: `(average - low) / (high - low)` near 1/n, or near 1 - 1/n.
///
/// One extreme run then made that end and pulled the average. `None` below four values.
pub fn one_extreme(side: &Side) -> Option<Extreme> {
    let n = f64::from(side.n.filter(|n| *n > 3)?);
    let place = (side.average - side.low) / (side.high - side.low);
    let near = 1.25 / n;
    match () {
        () if place <= near => Some(Extreme::High),
        () if 1.0 - place <= near => Some(Extreme::Low),
        () => None,
    }
}

/// Which end of a range one run made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extreme {
    /// The highest value.
    High,
    /// The lowest value.
    Low,
}

/// The most decimals that any of the numbers has, as written shortest.
pub fn decimals(numbers: impl IntoIterator<Item = f64>) -> usize {
    let decimals = |number: f64| number.to_string().split_once('.').map_or(0, |(_, decimals)| decimals.len());
    numbers.into_iter().map(decimals).max().unwrap_or(0)
}

/// Half a unit of the last of so many decimals: what rounding may have hidden.
pub fn half_unit(decimals: usize) -> f64 {
    0.5 * 0.1_f64.powi(i32::try_from(decimals).unwrap_or(i32::MAX))
}
