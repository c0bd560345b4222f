//! Tests that assume no distribution, by counting all outcomes; and the smallest p they can give.
//!
//! Two-sided p is `min(1, 2 min(P(T <= t), P(T >= t)))`, as R has it. No normal approximation is made anywhere.

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::summary::sum;
use super::{ExactKind, ExactTest};

/// Most values on both sides together for which [`mann_whitney`] counts; C(100, 50) fits 128 bits with room to spare.
pub const MANN_WHITNEY_LIMIT: usize = 100;

/// Most pairs whose sign flips are all enumerated.
pub const SIGN_FLIP_LIMIT: usize = 20;

/// Random flips beyond that.
const RANDOM_FLIPS: u32 = 99_999;

/// Signs drawn in all at most: of very many pairs fewer flips are drawn, and p is coarser.
const RANDOM_SIGNS: usize = 500_000_000;

/// Fewest random flips.
const FEWEST_FLIPS: u32 = 999;

/// Seed of the random flips: fixed, so that a recording gives the same p for ever.
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
/// Counted by dynamic programming over doubled mid-ranks, which are whole numbers. For independent samples only, not
/// for blocked ones. `None` when a side is empty or both hold more than [`MANN_WHITNEY_LIMIT`] values.
pub fn mann_whitney(x: &[f64], y: &[f64]) -> Option<MannWhitney> {
    let (n, m) = (x.len(), y.len());
    if n == 0 || m == 0 || n + m > MANN_WHITNEY_LIMIT {
        return None;
    }
    let ranks = doubled_mid_ranks(&[x, y].concat());
    let highest: usize = ranks.iter().sum();
    let mut splits = vec![vec![0_u128; highest + 1]; n + 1];
    splits[0][0] = 1;
    for (seen, rank) in ranks.iter().enumerate() {
        for chosen in (0..n.min(seen + 1)).rev() {
            for total in (0..=highest - rank).rev() {
                let ways = splits[chosen][total];
                splits[chosen + 1][total + rank] += ways;
            }
        }
    }
    let counts = &splits[n];
    let observed: usize = ranks[..n].iter().sum();
    let all: u128 = counts.iter().sum();
    let share = |counts: &[u128]| counts.iter().sum::<u128>() as f64 / all as f64;
    let (p_less, p_greater) = (share(&counts[..=observed]), share(&counts[observed..]));
    let ends = [counts.iter().find(|count| **count > 0), counts.iter().rev().find(|count| **count > 0)];
    let rarest = ends.into_iter().flatten().min().copied().unwrap_or(all);
    Some(MannWhitney {
        u: (observed as f64 - (n * (n + 1)) as f64) / 2.0,
        p_less,
        p_greater,
        p: (2.0 * p_less.min(p_greater)).min(1.0),
        min_p: (2.0 * rarest as f64 / all as f64).min(1.0),
    })
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
    (1..=n).fold(2.0, |p, i| p * i as f64 / (m + i) as f64).min(1.0)
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
