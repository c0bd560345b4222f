//! Estimates that one wild run cannot move: medians of differences, and intervals from ranks alone.
//!
//! They stand beside the model's estimate and carry no verdict.

use super::exact::u_shares;

/// Most values on both sides together, or pairs, for which these are worked out: 10,000 differences are sorted.
pub const LIMIT: usize = 200;

/// An estimate with an interval from order statistics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Shift {
    /// In the unit of the values.
    pub estimate: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Share of experiments whose interval holds the truth: 0.95 or more where there are values enough, else the largest
    /// that these values allow.
    pub coverage: f64,
}

/// Hodges-Lehmann shift of two independent samples (Ann. Math. Statist. 34, 1963): median of all n m differences x - y.
///
/// Its interval is `[d(q), d(n m + 1 - q)]` of the sorted differences, with q the smallest U of `P(U <= q) >= 0.025` (1 for
/// 0), which holds the shift with `1 - 2 P(U <= q - 1)` if both samples are alike in shape. Of logarithms it is the median
/// of all ratios. `None` for an empty side or above [`LIMIT`] values.
pub fn shift(x: &[f64], y: &[f64]) -> Option<Shift> {
    if x.is_empty() || y.is_empty() || x.len() + y.len() > LIMIT {
        return None;
    }
    let differences: Vec<f64> = x.iter().flat_map(|x| y.iter().map(move |y| x - y)).collect();
    from_ranks(differences, &u_shares(x.len(), y.len()))
}

/// Hodges-Lehmann centre of one sample of paired differences: median of the averages of all pairs, each value with itself
/// too (Walsh averages).
///
/// Its interval is that of Wilcoxon's signed ranks, built as in [`shift`]. `None` without a value or above [`LIMIT`].
pub fn centre(differences: &[f64]) -> Option<Shift> {
    if differences.is_empty() || differences.len() > LIMIT {
        return None;
    }
    let walsh = |i: usize| differences[i..].iter().map(move |other| f64::midpoint(differences[i], *other));
    from_ranks((0..differences.len()).flat_map(walsh).collect(), &signed_rank_shares(differences.len()))
}

/// Shares of all 2^n choices of signs by the sum of the positive ranks, 0 to n (n + 1) / 2.
pub fn signed_rank_shares(n: usize) -> Vec<f64> {
    let mut shares = vec![1.0];
    for rank in 1..=n {
        let mut next = vec![0.0; shares.len() + rank];
        for (sum, share) in shares.iter().enumerate() {
            next[sum] += share / 2.0;
            next[sum + rank] += share / 2.0;
        }
        shares = next;
    }
    shares
}

/// The median of one sample with `[x(k), x(n + 1 - k)]`, the largest k with `1 - 2 P(Bin(n, 1/2) <= k - 1) >= 0.95`.
///
/// For values of any distribution. Below six values no such interval has 95 %; lowest to highest is given with the coverage
/// it has. `None` without a value or above a thousand, whose shares would vanish.
pub fn median(values: &[f64]) -> Option<Shift> {
    let n = values.len();
    if n == 0 || n > 1_000 {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut share = 0.5_f64.powi(i32::try_from(n).ok()?);
    let mut below = share;
    let mut k = 1;
    // share and below: P(Bin = k - 1) and P(Bin <= k - 1).
    while k < n / 2 {
        let next = share * (n - k + 1) as f64 / k as f64;
        if 1.0 - 2.0 * (below + next) < 0.95 {
            break;
        }
        (share, below, k) = (next, below + next, k + 1);
    }
    let estimate = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
    Some(Shift { estimate, low: sorted[k - 1], high: sorted[n - k], coverage: 1.0 - 2.0 * below })
}

/// Median and interval of sorted numbers whose ranks have these shares.
fn from_ranks(mut numbers: Vec<f64>, shares: &[f64]) -> Option<Shift> {
    numbers.sort_by(f64::total_cmp);
    let all = numbers.len();
    let estimate = f64::midpoint(*numbers.get((all - 1) / 2)?, *numbers.get(all / 2)?);
    let mut below = 0.0;
    let mut q = 0;
    while q < shares.len() && below + shares[q] < 0.025 {
        below += shares[q];
        q += 1;
    }
    if q == 0 {
        (q, below) = (1, shares[0]);
    }
    let (low, high) = (*numbers.get(q - 1)?, *numbers.get(all.checked_sub(q)?)?);
    (low <= high).then_some(Shift { estimate, low, high, coverage: 1.0 - 2.0 * below })
}
