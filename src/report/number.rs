//! Numbers become text: fixed digits, a point as decimal mark, no grouping, no locale.

/// The exponent of the first significant digit; 0 for zero and what is not finite. Read from the exact decimal
/// form, because `log10` may differ in the last bit between C libraries.
pub(super) fn magnitude(value: f64) -> i32 {
    if value == 0.0 || !value.is_finite() {
        return 0;
    }
    let text = format!("{value:e}");
    text.rsplit_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

/// `value` with that many decimals; never `-0.0`.
pub(super) fn fixed(value: f64, decimals: usize) -> String {
    if value.is_nan() {
        return "not a number".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "unbounded".to_owned() } else { "-unbounded".to_owned() };
    }
    if value.abs() >= 1e15 {
        return format!("{value:.5e}");
    }
    let text = format!("{value:.decimals$}");
    let zero = text.bytes().all(|byte| matches!(byte, b'-' | b'0' | b'.'));
    if zero { text.trim_start_matches('-').to_owned() } else { text }
}

/// `value` with that many significant digits.
pub(super) fn significant(value: f64, digits: i32) -> String {
    fixed(value, to_decimals(digits - 1 - magnitude(value), 12))
}

/// How the values of one metric are shown, so that a column has one number of decimals.
#[derive(Debug, Clone, Copy)]
pub(super) struct Digits {
    /// Decimals of measured values.
    pub(super) values: usize,
    /// Decimals of means and medians.
    pub(super) derived: usize,
}

impl Digits {
    /// Five significant digits of the largest value and at least three of the smallest; whole numbers stay whole.
    pub(super) fn of(values: impl IntoIterator<Item = f64>) -> Digits {
        let (mut largest, mut smallest, mut whole) = (0.0_f64, f64::INFINITY, true);
        for value in values.into_iter().filter(|value| value.is_finite()) {
            largest = largest.max(value.abs());
            if value != 0.0 {
                smallest = smallest.min(value.abs());
            }
            whole &= value.fract() == 0.0;
        }
        let smallest = if smallest.is_finite() { smallest } else { largest };
        let derived = to_decimals((4 - magnitude(largest)).max(2 - magnitude(smallest)), 9);
        if whole { Digits { values: 0, derived: derived.min(2) } } else { Digits { values: derived, derived } }
    }
}

/// Decimals at which the half width of an interval has two significant digits, a ratio has at least two decimals,
/// and no bound that differs from `null` (1 for ratios, 0 for differences) reads as `null`.
pub(super) fn interval_decimals(low: f64, high: f64, null: f64) -> usize {
    let half = (high - low).abs() / 2.0;
    let mut decimals = if half > 0.0 && half.is_finite() { to_decimals(1 - magnitude(half), 6) } else { 4 };
    let ratio = null > 0.0;
    if ratio && low < 10.0 {
        decimals = decimals.max(2);
    }
    let hidden =
        |bound: f64, decimals: usize| bound.total_cmp(&null).is_ne() && fixed(bound, decimals) == fixed(null, decimals);
    while decimals < 6 && (hidden(low, decimals) || hidden(high, decimals)) {
        decimals += 1;
    }
    decimals
}

/// A p value, two significant digits, never rounded onto 0.05 from either side.
pub(super) fn p_value(p: f64) -> String {
    if p < 0.0001 {
        return "< 0.0001".to_owned();
    }
    let on_threshold = (p - 0.05).abs() < f64::EPSILON;
    let mut digits = 2;
    let mut text = significant(p, digits);
    while digits < 6 && !on_threshold && text.trim_end_matches('0') == "0.05" {
        digits += 1;
        text = significant(p, digits);
    }
    if text.starts_with('1') { "1".to_owned() } else { text }
}

/// ` = 0.012` or ` < 0.0001`, to stand behind the name of a p value.
pub(super) fn p_relation(p: f64) -> String {
    let text = p_value(p);
    if text.starts_with('<') { format!(" {text}") } else { format!(" = {text}") }
}

/// A share of a whole. `100 %` and `0 %` mean exactly all and none.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "-".to_owned();
    }
    if part == whole {
        return "100 %".to_owned();
    }
    if part == 0 {
        return "0 %".to_owned();
    }
    match format!("{:.1}", part as f64 / whole as f64 * 100.0).as_str() {
        "100.0" => "over 99.9 %".to_owned(),
        "0.0" => "under 0.1 %".to_owned(),
        text => format!("{text} %"),
    }
}

/// A fraction as per cent with just the digits it has: `0.02` is `2 %`.
pub(super) fn percent(fraction: f64) -> String {
    let text = format!("{:.4}", fraction * 100.0);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

/// What an interval covers, `96.1 %`; never `100 %`.
pub(super) fn coverage(share: f64) -> String {
    let text = format!("{:.1}", (share * 100.0).min(99.9));
    format!("{} %", text.trim_end_matches(".0"))
}

fn to_decimals(decimals: i32, most: usize) -> usize {
    usize::try_from(decimals).unwrap_or(0).min(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_never_round_onto_the_threshold() {
        for (p, text) in [
            (0.0499, "0.0499"),
            (0.05, "0.050"),
            (0.0504, "0.0504"),
            (0.007_812_5, "0.0078"),
            (0.65, "0.65"),
            (0.999, "1"),
            (1.0, "1"),
            (3e-9, "< 0.0001"),
        ] {
            assert_eq!(p_value(p), text, "{p}");
        }
    }

    #[test]
    fn a_bound_beside_no_effect_does_not_read_as_no_effect() {
        let decimals = interval_decimals(1.0004, 1.6, 1.0);
        assert_eq!(fixed(1.0004, decimals), "1.0004");
        assert_eq!(interval_decimals(0.292, 0.332, 1.0), 3);
    }

    #[test]
    fn shares_claim_all_or_none_only_when_it_is_so() {
        assert_eq!(share(99_999, 100_000), "over 99.9 %");
        assert_eq!(share(1, 100_000), "under 0.1 %");
        assert_eq!(share(7, 7), "100 %");
        assert_eq!(share(0, 7), "0 %");
        assert_eq!(share(0, 0), "-");
    }

    #[test]
    fn columns_keep_digits_of_small_and_large_values() {
        let digits = Digits::of([42.111, 39.712]);
        assert_eq!(digits.values, 3);
        let digits = Digits::of([1_194_518.0, 3.0]);
        assert_eq!((digits.values, digits.derived), (0, 2));
        let digits = Digits::of([0.000_012_345]);
        assert_eq!(fixed(0.000_012_345, digits.values), "0.000012345");
        assert_eq!(fixed(-0.0001, 2), "0.00");
    }
}
