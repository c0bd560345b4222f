//! Tests that assume no distribution, by counting all outcomes; and the smallest p they can give.
//!
//! Two-sided p is `min(1, 2 min(P(T <= t), P(T >= t)))`, as R has it. No normal approximation is made anywhere.

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::summary::sum;
use super::{ExactKind, ExactTest};

/// Most values on both sides together for which [`mann_whitney`] counts all splits.
pub const MANN_WHITNEY_LIMIT: usize = 200;

/// Most values on both sides together for which it draws splits; beyond, none would add to what the t model knows.
pub const MANN_WHITNEY_DRAWN_LIMIT: usize = 10_000;

/// Most splits that [`permutation`] enumerates: 11 against 11 values are 705,432.
pub const PERMUTATION_LIMIT: f64 = 2e6;

/// Random splits beyond these limits, at most, and values drawn in all.
const RANDOM_SPLITS: u32 = 99_999;
const RANDOM_RANKS: usize = 50_000_000;

/// Most pairs whose sign flips are all enumerated.
pub const SIGN_FLIP_LIMIT: usize = 20;

/// Random flips beyond that.
const RANDOM_FLIPS: u32 = 99_999;

/// Signs drawn in all at most: of very many pairs fewer flips are drawn, and p is coarser.
const RANDOM_SIGNS: usize = 500_000_000;

/// Fewest random flips.
const FEWEST_FLIPS: u32 = 999;

/// Seed of random flips and splits: fixed, so that a recording gives the same p for ever.
const RANDOM_FLIPS_SEED: u64 = 0x5167_4e46_6c69_7001;

/// Floats closer than this, relative to their size, are ties.
const TIE: f64 = 1e-12;

/// Mann-Whitney with all tails, from the same count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MannWhitney {
    /// `#(x > y) + #(x = y) / 2` over all pairs.
    pub u: f64,
    /// P(U <= u).
    pub p_less: f64,
    /// P(U >= u).
    pub p_greater: f64,
    /// Two-sided.
    pub p: f64,
    /// The smallest two-sided p any split of these values could give.
    pub min_p: f64,
}

/// Exact Mann-Whitney test, conditional on ties: U against all C(n + m, n) splits of the observed mid-ranks.
///
/// Counted by dynamic programming over doubled mid-ranks, which are whole numbers, for up to [`MANN_WHITNEY_LIMIT`]
/// values on both sides together; beyond it p is `(b + 1) / (B + 1)` over at most 99,999 random splits with a fixed seed.
/// For independent samples only, not for blocked ones. `None` when a side is empty or both hold more than
/// [`MANN_WHITNEY_DRAWN_LIMIT`] values.
pub fn mann_whitney(x: &[f64], y: &[f64]) -> Option<MannWhitney> {
    let (n, m) = (x.len(), y.len());
    if n == 0 || m == 0 || n + m > MANN_WHITNEY_DRAWN_LIMIT {
        return None;
    }
    let ranks = doubled_mid_ranks(&[x, y].concat());
    let observed: usize = ranks[..n].iter().sum();
    if n + m > MANN_WHITNEY_LIMIT {
        return Some(drawn_mann_whitney(ranks, n));
    }
    // The sum of the smaller side says all; without halves the doubling is of no use.
    let unit = if ranks.iter().all(|rank| rank % 2 == 0) { 2 } else { 1 };
    let of_smaller = if n <= m { observed } else { ranks[n..].iter().sum() } / unit;
    let ranks: Vec<usize> = ranks.iter().map(|rank| rank / unit).collect();
    let counts = splits_by_rank_sum(&ranks, n.min(m));
    let all: f64 = counts.iter().sum();
    let share = |counts: &[f64]| counts.iter().sum::<f64>() / all;
    let tails = (share(&counts[..=of_smaller]), share(&counts[of_smaller..]));
    let (p_less, p_greater) = if n <= m { tails } else { (tails.1, tails.0) };
    let ends = [counts.iter().find(|count| **count > 0.0), counts.iter().rev().find(|count| **count > 0.0)];
    let rarest = ends.into_iter().flatten().copied().fold(all, f64::min);
    Some(MannWhitney {
        u: u_of(observed, n),
        p_less,
        p_greater,
        p: (2.0 * p_less.min(p_greater)).min(1.0),
        min_p: (2.0 * rarest / all).min(1.0),
    })
}

/// How many choices of n of the ranks have each sum. Exact below 2^53 and, because only positive numbers are added, within
/// some 1e-14 of the true number above it.
fn splits_by_rank_sum(ranks: &[usize], n: usize) -> Vec<f64> {
    let highest: usize = ranks.iter().sum();
    let mut splits = vec![vec![0.0_f64; highest + 1]; n + 1];
    splits[0][0] = 1.0;
    let mut reach = 0;
    for (seen, rank) in ranks.iter().enumerate() {
        for chosen in (0..n.min(seen + 1)).rev() {
            let (fewer, more) = splits.split_at_mut(chosen + 1);
            let from = &fewer[chosen][..=reach];
            for (slot, ways) in more[0][*rank..].iter_mut().zip(from) {
                *slot += ways;
            }
        }
        reach += rank;
    }
    splits.swap_remove(n)
}

/// Distribution of U of n against m values without ties, as shares of all splits, for U = 0 to n m.
pub(super) fn u_shares(n: usize, m: usize) -> Vec<f64> {
    let ranks: Vec<usize> = (1..=n + m).collect();
    let counts = splits_by_rank_sum(&ranks, n);
    let all: f64 = counts.iter().sum();
    let least = n * (n + 1) / 2;
    counts[least..=least + n * m].iter().map(|count| count / all).collect()
}

/// U from the sum of n doubled ranks.
fn u_of(doubled: usize, n: usize) -> f64 {
    (doubled as f64 - (n * (n + 1)) as f64) / 2.0
}

fn drawn_mann_whitney(mut ranks: Vec<usize>, n: usize) -> MannWhitney {
    let observed: usize = ranks[..n].iter().sum();
    let splits = ((RANDOM_RANKS / ranks.len()) as u32).min(RANDOM_SPLITS);
    let mut generator = Xoshiro256StarStar::seed_from_u64(RANDOM_FLIPS_SEED);
    let (mut less, mut greater) = (1_u32, 1_u32);
    for _ in 0..splits {
        choose(&mut ranks, n, &mut generator);
        let sum: usize = ranks[..n].iter().sum();
        less += u32::from(sum <= observed);
        greater += u32::from(sum >= observed);
    }
    let share = |count: u32| f64::from(count) / f64::from(splits + 1);
    let (p_less, p_greater) = (share(less), share(greater));
    MannWhitney {
        u: u_of(observed, n),
        p_less,
        p_greater,
        p: (2.0 * p_less.min(p_greater)).min(1.0),
        min_p: 2.0 / f64::from(splits + 1),
    }
}

/// Moves a random choice of n values to the front (Fisher and Yates).
fn choose<T>(values: &mut [T], n: usize, generator: &mut Xoshiro256StarStar) {
    for place in 0..n.min(values.len().saturating_sub(1)) {
        let rest = (values.len() - place) as u64;
        // The bias of a remainder is below 1e-15 for so few values.
        let other = place + (generator.next_u64() % rest) as usize;
        values.swap(place, other);
    }
}

/// A permutation test of means, with all tails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Permutation {
    /// Weighted sum of the differences of means.
    pub t: f64,
    /// P(T <= t).
    pub p_less: f64,
    /// P(T >= t).
    pub p_greater: f64,
    /// Two-sided.
    pub p: f64,
    /// The smallest two-sided p any split of these values could give.
    pub min_p: f64,
}

/// Permutation test of `sum w_i (mean x_i - mean y_i)` over strata (Fisher 1935; Pitman 1937): values are exchanged inside
/// each stratum only, so that effects of what the strata stand for do not disturb it.
///
/// `(w, x, y)` per stratum. Exact while there are at most [`PERMUTATION_LIMIT`] splits of all strata together; beyond it p
/// is `(b + 1) / (B + 1)` over 99,999 random ones with a fixed seed. For independent samples. `None` without a stratum, or
/// with an empty or huge sample.
pub fn permutation(strata: &[(f64, &[f64], &[f64])]) -> Option<Permutation> {
    let values: usize = strata.iter().map(|(_, x, y)| x.len() + y.len()).sum();
    let is_empty = strata.iter().any(|(_, x, y)| x.is_empty() || y.is_empty());
    if strata.is_empty() || is_empty || values > MANN_WHITNEY_DRAWN_LIMIT {
        return None;
    }
    let mean_difference = |weight: f64, of_x: f64, total: f64, (n, m): (usize, usize)| {
        weight * (of_x / n as f64 - (total - of_x) / m as f64)
    };
    let t: f64 =
        strata.iter().map(|(weight, x, y)| mean_difference(*weight, sum(x), sum(x) + sum(y), (x.len(), y.len()))).sum();
    let size: f64 = strata.iter().map(|(weight, x, y)| weight.abs() * sum(&absolute(&[*x, *y].concat()))).sum();
    let tolerance = TIE * size;
    let splits: f64 = strata.iter().map(|(_, x, y)| 2.0 / min_p_unpaired_uncapped(x.len(), y.len())).product();
    let (mut less, mut greater, mut all) = (0_u64, 0_u64, 0_u64);
    let (mut low, mut high) = ((f64::INFINITY, 0_u64), (f64::NEG_INFINITY, 0_u64));
    let mut count = |found: f64| {
        all += 1;
        less += u64::from(found <= t + tolerance);
        greater += u64::from(found >= t - tolerance);
        if found < low.0 - tolerance {
            low = (found, 0);
        }
        if found > high.0 + tolerance {
            high = (found, 0);
        }
        low.1 += u64::from(found <= low.0 + tolerance);
        high.1 += u64::from(found >= high.0 - tolerance);
    };
    let is_exact = splits <= PERMUTATION_LIMIT;
    if is_exact {
        let of_stratum = |(weight, x, y): &(f64, &[f64], &[f64])| {
            let (all, sizes) = ([*x, *y].concat(), (x.len(), y.len()));
            let total = sum(&all);
            let mut found = Vec::new();
            each_choice(&all, x.len(), 0.0, &mut |of_x| found.push(mean_difference(*weight, of_x, total, sizes)));
            found
        };
        let found: Vec<Vec<f64>> = strata.iter().map(of_stratum).collect();
        each_sum(&found, 0.0, &mut count);
    } else {
        let mut generator = Xoshiro256StarStar::seed_from_u64(RANDOM_FLIPS_SEED);
        let mut pools: Vec<Vec<f64>> = strata.iter().map(|(_, x, y)| [*x, *y].concat()).collect();
        count(t);
        for _ in 0..((RANDOM_RANKS / values) as u32).min(RANDOM_SPLITS) {
            let parts = strata.iter().zip(&mut pools).map(|((weight, x, y), pool)| {
                choose(pool, x.len(), &mut generator);
                let of_x: f64 = pool[..x.len()].iter().sum();
                mean_difference(*weight, of_x, pool.iter().sum(), (x.len(), y.len()))
            });
            count(parts.sum());
        }
    }
    let rarest = if is_exact { low.1.min(high.1) } else { 1 };
    let share = |count: u64| count as f64 / all as f64;
    let (p_less, p_greater) = (share(less), share(greater));
    let two_sided = |share: f64| (2.0 * share).min(1.0);
    Some(Permutation { t, p_less, p_greater, p: two_sided(p_less.min(p_greater)), min_p: two_sided(share(rarest)) })
}

impl From<Permutation> for ExactTest {
    fn from(test: Permutation) -> Self {
        ExactTest { kind: ExactKind::Permutation, p: test.p, min_p: test.min_p }
    }
}

fn absolute(values: &[f64]) -> Vec<f64> {
    values.iter().map(|value| value.abs()).collect()
}

/// Calls `count` with the sum of every choice of n values.
fn each_choice(values: &[f64], n: usize, total: f64, count: &mut impl FnMut(f64)) {
    match values.split_first() {
        _ if n == 0 => count(total),
        Some((value, rest)) if values.len() >= n => {
            each_choice(rest, n - 1, total + value, count);
            each_choice(rest, n, total, count);
        }
        _ => {}
    }
}

/// Calls `count` with every sum of one number from each list.
fn each_sum(lists: &[Vec<f64>], total: f64, count: &mut impl FnMut(f64)) {
    match lists.split_first() {
        None => count(total),
        Some((list, rest)) => list.iter().for_each(|number| each_sum(rest, total + number, count)),
    }
}

impl From<MannWhitney> for ExactTest {
    fn from(test: MannWhitney) -> Self {
        ExactTest { kind: ExactKind::MannWhitney, p: test.p, min_p: test.min_p }
    }
}

/// Sign flip of paired differences with all tails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignFlip {
    /// P(sum <= observed).
    pub p_less: f64,
    /// P(sum >= observed).
    pub p_greater: f64,
    /// Two-sided.
    pub p: f64,
    /// The smallest two-sided p these differences could give: 2 / 2^k with k differences that are not 0.
    pub min_p: f64,
}

/// Exact sign-flip test of the mean paired difference (Fisher 1935): the sum against all 2^n choices of signs.
///
/// Exact for up to [`SIGN_FLIP_LIMIT`] pairs. Sums of reals cannot be counted faster, so that beyond it p is
/// `(b + 1) / (B + 1)` over B = 99,999 random flips with a fixed seed, and above 5,000 pairs over fewer, down to 999. `None`
/// without a pair.
pub fn sign_flip(differences: &[f64]) -> Option<SignFlip> {
    if differences.is_empty() {
        return None;
    }
    let observed = sum(differences);
    let sizes: Vec<f64> = differences.iter().map(|difference| difference.abs()).collect();
    let tolerance = TIE * sum(&sizes);
    let moving = sizes.iter().filter(|size| **size > 0.0).count();
    let min_p = min_p_paired(moving);
    let (mut less, mut greater) = (0_u64, 0_u64);
    let mut count = |total: f64| {
        less += u64::from(total <= observed + tolerance);
        greater += u64::from(total >= observed - tolerance);
    };
    let (all, min_p) = if differences.len() <= SIGN_FLIP_LIMIT {
        enumerate_flips(&sizes, 0.0, &mut count);
        (1_u64 << differences.len(), min_p)
    } else {
        let mut generator = Xoshiro256StarStar::seed_from_u64(RANDOM_FLIPS_SEED);
        let flips = ((RANDOM_SIGNS / sizes.len()) as u32).clamp(FEWEST_FLIPS, RANDOM_FLIPS);
        count(observed);
        for _ in 0..flips {
            count(random_flip(&sizes, &mut generator));
        }
        (u64::from(flips) + 1, min_p.max(2.0 / f64::from(flips + 1)))
    };
    let (p_less, p_greater) = (less as f64 / all as f64, greater as f64 / all as f64);
    Some(SignFlip { p_less, p_greater, p: (2.0 * p_less.min(p_greater)).min(1.0), min_p })
}

impl From<SignFlip> for ExactTest {
    fn from(test: SignFlip) -> Self {
        ExactTest { kind: ExactKind::SignFlip, p: test.p, min_p: test.min_p }
    }
}

/// Smallest two-sided p of an exact unpaired test without ties: `2 / C(n + m, n)`.
pub fn min_p_unpaired(n: usize, m: usize) -> f64 {
    min_p_unpaired_uncapped(n, m).min(1.0)
}

fn min_p_unpaired_uncapped(n: usize, m: usize) -> f64 {
    (1..=n).fold(2.0, |p, i| p * i as f64 / (m + i) as f64)
}

/// Smallest two-sided p of an exact test over n pairs: `2 / 2^n`.
pub fn min_p_paired(n: usize) -> f64 {
    (2.0 * 0.5_f64.powf(n as f64)).min(1.0)
}

/// Twice the mid-rank of each value, so that ties stay whole numbers.
fn doubled_mid_ranks(values: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let start = values[order[first]];
        let tied =
            order[first..].iter().take_while(|i| values[**i] - start <= TIE * start.abs().max(values[**i].abs()));
        let last = first + tied.count().max(1) - 1;
        for place in first..=last {
            ranks[order[place]] = first + last + 2;
        }
        first = last + 1;
    }
    ranks
}

/// Calls `count` with the sum of every choice of signs.
fn enumerate_flips(sizes: &[f64], total: f64, count: &mut impl FnMut(f64)) {
    match sizes.split_first() {
        None => count(total),
        Some((size, rest)) => {
            enumerate_flips(rest, total + size, count);
            enumerate_flips(rest, total - size, count);
        }
    }
}

/// The sum under random signs.
fn random_flip(sizes: &[f64], generator: &mut Xoshiro256StarStar) -> f64 {
    let mut signs = 0_u64;
    let mut total = 0.0;
    for (i, size) in sizes.iter().enumerate() {
        if i % 64 == 0 {
            signs = generator.next_u64();
        }
        total += if signs >> (i % 64) & 1 == 1 { *size } else { -size };
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(n: u32, shift: f64) -> (Vec<f64>, Vec<f64>) {
        let value = |i: u32| f64::from(i % 1009 * (i % 1009) * 31 % 1009) / 100.0;
        ((0..n).map(|i| value(i) + shift).collect(), (n..2 * n).map(value).collect())
    }

    #[test]
    fn splits_that_are_drawn_say_what_counted_ones_say() {
        let (x, y) = samples(60, 0.6);
        let counted = mann_whitney(&x, &y).unwrap();
        let drawn = drawn_mann_whitney(doubled_mid_ranks(&[x.as_slice(), &y].concat()), x.len());
        assert!((counted.p - drawn.p).abs() < 0.01 && counted.p > 0.05, "{counted:?} {drawn:?}");
        let turned = mann_whitney(&y, &x).unwrap();
        assert!((turned.p_less - counted.p_greater).abs() < 1e-12);
        let (few, many) = (mann_whitney(&x[..5], &y).unwrap(), mann_whitney(&y, &x[..5]).unwrap());
        assert!((few.p_less - many.p_greater).abs() < 1e-12 && (few.u + many.u - 300.0).abs() < 1e-9);
    }

    #[test]
    fn many_values_are_drawn_and_very_many_are_left_to_the_model() {
        let (x, y) = samples(300, 100.0);
        let test = mann_whitney(&x, &y).unwrap();
        assert!(test.p <= 0.001 && test.p >= test.min_p, "{test:?}");
        let (x, y) = samples(6_000, 0.0);
        assert_eq!((mann_whitney(&x, &y), permutation(&[(1.0, &x, &y)])), (None, None));
    }

    #[test]
    fn permutations_that_are_drawn_say_what_enumerated_ones_say() {
        let (x, y) = samples(9, 1.5);
        let all = permutation(&[(1.0, &x, &y)]).unwrap();
        // A second stratum that is the same number everywhere adds splits and no difference.
        let same = vec![3.0; 12];
        let drawn = permutation(&[(1.0, &x, &y), (1.0, &same, &same)]).unwrap();
        assert!((all.p - drawn.p).abs() < 0.01, "{all:?} {drawn:?}");
        assert!(drawn.min_p < 1e-4 && all.min_p < 1e-4);
    }
}
