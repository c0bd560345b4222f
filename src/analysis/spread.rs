//! How evenly counts are spread over CPUs. Descriptions only: whether a spread is right depends on what was asked.

/// Jain's index: `(sum x)^2 / (n sum x^2)`, from 1/n (one CPU has all) to 1 (even). `None` without a count.
pub fn jain(counts: &[u64]) -> Option<f64> {
    let squares: f64 = counts.iter().map(|count| (*count as f64).powi(2)).sum();
    positive_total(counts).map(|total| total.powi(2) / (counts.len() as f64 * squares))
}

/// Share of the CPU with the most. `None` without a count.
pub fn top_share(counts: &[u64]) -> Option<f64> {
    positive_total(counts).and_then(|total| counts.iter().max().map(|most| *most as f64 / total))
}

fn positive_total(counts: &[u64]) -> Option<f64> {
    let total: f64 = counts.iter().map(|count| *count as f64).sum();
    (total > 0.0).then_some(total)
}
