//! Descriptions of one sample. No inference, no rounding.

use super::Summary;

/// Describes a sample; `None` without a value or with one that is not finite.
///
/// Spread is undefined (`None`) at n = 1, never 0.
pub fn summarise(values: &[f64]) -> Option<Summary> {
    if values.is_empty() || values.iter().any(|value| !value.is_finite()) {
        return None;
    }
    let mean = mean(values);
    let sd = variance(values).map(f64::sqrt);
    Some(Summary {
        n: values.len(),
        low: values.iter().copied().fold(f64::INFINITY, f64::min),
        high: values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        mean,
        median: quantile(values, 0.5)?,
        median_interval: super::robust::median(values)
            .filter(|_| values.len() > 1)
            .map(|found| (found.low, found.high, found.coverage)),
        geometric_mean: logs(values).map(|logs| self::mean(&logs).exp()),
        sd,
        cv: sd.filter(|_| mean > 0.0).map(|sd| sd / mean),
    })
}

/// Natural logarithms; `None` unless every value is positive.
pub fn logs(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().map(|value| (*value > 0.0).then(|| value.ln())).collect()
}

/// Sum with Neumaier's compensation (ZAMM 54, 1974), so that the order of trials does not change a result.
pub fn sum(values: &[f64]) -> f64 {
    let (mut total, mut lost) = (0.0_f64, 0.0_f64);
    for value in values {
        let next = total + value;
        lost += if total.abs() >= value.abs() { (total - next) + value } else { (value - next) + total };
        total = next;
    }
    total + lost
}

/// Arithmetic mean; 0 without a value.
pub fn mean(values: &[f64]) -> f64 {
    sum(values) / values.len().max(1) as f64
}

/// Variance with divisor n - 1; `None` below two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares: Vec<f64> = values.iter().map(|value| (value - mean).powi(2)).collect();
    Some(sum(&squares) / (values.len() - 1) as f64)
}

/// Quantile of type 7 (Hyndman and Fan 1996; the default of R and NumPy): linear between the order statistics at
/// `(n - 1) p`. `p` from 0 to 1; `None` without a value.
pub fn quantile(values: &[f64], p: f64) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = p.clamp(0.0, 1.0) * (sorted.len().checked_sub(1)?) as f64;
    let below = sorted.get(place.floor() as usize)?;
    let above = sorted.get(place.ceil() as usize)?;
    Some(below + (above - below) * (place - place.floor()))
}
