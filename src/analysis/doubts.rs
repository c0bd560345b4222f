//! Tests of the assumptions behind a comparison: drift, a first block unlike the others, outliers.
//!
//! They lead to warnings; no value is ever left out because of them.

use statrs::distribution::{ContinuousCDF, Normal};

use super::student::{Inference, paired, upper_tail};
use super::summary::{mean, quantile, variance};

/// A monotone trend over run order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Kendall's tau-a: (concordant - discordant) / all pairs.
    pub tau: f64,
    /// Two-sided p.
    pub p: f64,
    /// Theil-Sen slope: median of all pairwise slopes, in units of y per unit of x.
    pub slope: f64,
}

/// Mann-Kendall test (Econometrica 13, 1945) of `(x, y)` with distinct x, and the Theil-Sen slope.
///
/// Exact up to ten values without ties, else the normal approximation with correction for ties and continuity. One
/// series of n can give no p below 2 / n!, so that three values never show a trend. `None` below three values.
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let n = points.len();
    if n < 3 {
        return None;
    }
    if n > EVERY_PAIR {
        return long_trend(points);
    }
    let mut slopes = Vec::with_capacity(n * (n - 1) / 2);
    for (i, (x, y)) in points.iter().enumerate() {
        slopes.extend(
            points[i + 1..]
                .iter()
                .filter(|other| other.0.total_cmp(x).is_ne())
                .map(|other| (other.1 - y) / (other.0 - x)),
        );
    }
    let rising = slopes.iter().filter(|slope| **slope > 0.0).count();
    let falling = slopes.iter().filter(|slope| **slope < 0.0).count();
    let pairs = n * (n - 1) / 2;
    let score = rising as f64 - falling as f64;
    let p = if n <= 10 && rising + falling == pairs {
        let fewest = rising.min(falling);
        (2.0 * inversions(n)[..=fewest].iter().sum::<f64>()).min(1.0)
    } else {
        approximate_p(points, score)?
    };
    Some(Trend { tau: score / pairs as f64, p, slope: quantile(&slopes, 0.5)? })
}

/// More points than this are not compared pair by pair: a million have 5 * 10^11 pairs.
const EVERY_PAIR: usize = 2_000;

/// The same score in n log n steps, by counting inversions while sorting (Knight, JASA 61, 1966); the slope is Theil's
/// from n / 2 pairs half the series apart instead of all.
fn long_trend(points: &[(f64, f64)]) -> Option<Trend> {
    let mut sorted = points.to_vec();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut values: Vec<f64> = sorted.iter().map(|point| point.1).collect();
    let n = values.len();
    let falling = inversions_of(&mut values);
    let tied: usize =
        values.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|tied| tied.len() * (tied.len() - 1) / 2).sum();
    let pairs = n * (n - 1) / 2;
    let score = (pairs - tied - falling) as f64 - falling as f64;
    let slopes = (0..n / 2).map(|i| (sorted[i], sorted[i + n.div_ceil(2)]));
    let slopes: Vec<f64> = slopes.filter(|(a, b)| b.0 > a.0).map(|(a, b)| (b.1 - a.1) / (b.0 - a.0)).collect();
    Some(Trend { tau: score / pairs as f64, p: approximate_p(points, score)?, slope: quantile(&slopes, 0.5)? })
}

/// Sorts, and counts pairs whose first is larger than their second.
fn inversions_of(values: &mut [f64]) -> usize {
    if values.len() < 2 {
        return 0;
    }
    let (left, right) = values.split_at_mut(values.len() / 2);
    let mut count = inversions_of(left) + inversions_of(right);
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        if left[i].total_cmp(&right[j]).is_gt() {
            count += left.len() - i;
            merged.push(right[j]);
            j += 1;
        } else {
            merged.push(left[i]);
            i += 1;
        }
    }
    merged.extend_from_slice(&left[i..]);
    merged.extend_from_slice(&right[j..]);
    values.copy_from_slice(&merged);
    count
}

/// How block 1 compares with the mean of the others, over cells.
///
/// `cells[cell][block]` on the ln scale. `d = y_1 - mean(y_2..)` per cell, and t over the cells: drift shows here too.
/// `None` below four cells or three blocks, or when all cells agree exactly.
pub fn first_block(cells: &[Vec<f64>]) -> Option<Inference> {
    if cells.len() < 4 || cells.iter().any(|cell| cell.len() < 3) {
        return None;
    }
    let differences: Vec<f64> = cells.iter().map(|cell| cell[0] - mean(&cell[1..])).collect();
    paired(&differences, 0.0)
}

/// Whether the first run of each treatment is the worst more often than chance makes it, for trials without blocks: the upper
/// tail of how many of the cells have their worst run first, each with probability 1 / n.
///
/// `sizes` are the runs of each cell, `worst` how many cells have their worst first. `None` without a cell.
pub fn first_worst_p(worst: usize, sizes: &[usize]) -> Option<f64> {
    let mut shares = vec![1.0];
    for size in sizes.iter().filter(|size| **size > 0) {
        let chance = 1.0 / *size as f64;
        let mut next = vec![0.0; shares.len() + 1];
        for (count, share) in shares.iter().enumerate() {
            next[count] += share * (1.0 - chance);
            next[count + 1] += share * chance;
        }
        shares = next;
    }
    (shares.len() > 1).then(|| shares.iter().skip(worst).sum())
}

/// The value farthest from the mean.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Farthest {
    /// Its index.
    pub index: usize,
    /// `max |x - mean| / sd`.
    pub g: f64,
    /// Two-sided p.
    pub p: f64,
}

/// Grubbs' test (Ann. Math. Statist. 21, 1950): `p = 2n P(T_{n-2} > t)`, `t = sqrt(n (n-2) G^2 / ((n-1)^2 - n G^2))`.
///
/// For values roughly normal on the scale given. It keeps its 5 % at any n, but has no power below five values. `None`
/// below three values or without spread.
pub fn grubbs(values: &[f64]) -> Option<Farthest> {
    let n = values.len() as f64;
    let sd = variance(values).filter(|_| values.len() >= 3)?.sqrt();
    let mean = mean(values);
    if sd <= 1e-13 * (1.0 + mean.abs()) {
        return None;
    }
    let distance = |value: &f64| (value - mean).abs();
    let (index, value) = values.iter().enumerate().max_by(|a, b| distance(a.1).total_cmp(&distance(b.1)))?;
    let g = distance(value) / sd;
    let rest = (n - 1.0).powi(2) - n * g * g;
    let p = if rest <= 0.0 { 0.0 } else { 2.0 * n * upper_tail((n * (n - 2.0) * g * g / rest).sqrt(), n - 2.0)? };
    Some(Farthest { index, g, p: p.min(1.0) })
}

/// Share of the permutations of n with k inversions, by k.
fn inversions(n: usize) -> Vec<f64> {
    let mut shares = vec![1.0];
    for size in 2..=n {
        let mut next = vec![0.0; shares.len() + size - 1];
        for (k, share) in shares.iter().enumerate() {
            for slot in &mut next[k..k + size] {
                *slot += share / size as f64;
            }
        }
        shares = next;
    }
    shares
}

fn approximate_p(points: &[(f64, f64)], score: f64) -> Option<f64> {
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted: Vec<f64> = points.iter().map(|point| point.1).collect();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a.total_cmp(b).is_eq()).map(|tied| term(tied.len() as f64)).sum();
    let variance = (term(points.len() as f64) - ties) / 18.0;
    if variance <= 0.0 {
        return None;
    }
    let z = (score.abs() - 1.0).max(0.0) / variance.sqrt();
    Some((2.0 * Normal::new(0.0, 1.0).ok()?.sf(z)).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_series_has_the_score_of_all_its_pairs() {
        // Ties, a rise, and a pattern that no sort finds in order.
        let points: Vec<(f64, f64)> =
            (0..1500_u32).map(|i| (f64::from(i), f64::from(i * i % 10_007 % 101) + f64::from(i) * 0.01)).collect();
        let (short, long) = (trend(&points).unwrap(), long_trend(&points).unwrap());
        assert!((short.tau - long.tau).abs() < 1e-12, "{short:?} {long:?}");
        assert!((short.p - long.p).abs() < 1e-12);
        assert!((short.slope - long.slope).abs() < 0.005, "{short:?} {long:?}");
        let turned: Vec<(f64, f64)> = points.iter().rev().map(|(x, y)| (*x, -y)).collect();
        assert!((long_trend(&turned).unwrap().tau + long.tau).abs() < 1e-12);
    }
}
