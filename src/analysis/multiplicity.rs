//! Several comparisons, one error rate.

/// Holm's step-down adjustment (Scand. J. Statist. 6, 1979), in the order given: sorted p times `m - i + 1`, running
/// maximum, at most 1. Holds under any dependence between the tests.
pub fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut adjusted = vec![1.0; p.len()];
    let mut largest = 0.0_f64;
    for (step, place) in order.into_iter().enumerate() {
        largest = largest.max(p[place] * (p.len() - step) as f64).min(1.0);
        adjusted[place] = largest;
    }
    adjusted
}
