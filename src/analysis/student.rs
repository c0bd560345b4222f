//! Inference with Student's t: paired over blocks, Welch's and its generalisation to contrasts, two one-sided tests.
//!
//! Works on whatever scale it is given; callers take logarithms first, so that estimates become ln ratios. Every
//! function returns `None` where nothing can be inferred, and never a number that is not finite.

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::summary::{mean, variance};

/// An estimate with the standard error and degrees of freedom that judge it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Inference {
    /// Mean difference or contrast, in the scale of the values.
    pub estimate: f64,
    /// Its standard error, always positive.
    pub standard_error: f64,
    /// Degrees of freedom, at least 1 and not necessarily whole.
    pub df: f64,
}

impl Inference {
    /// `estimate / standard_error`.
    pub fn t(&self) -> f64 {
        self.estimate / self.standard_error
    }

    /// Two-sided p of the hypothesis that the true value is 0.
    pub fn p(&self) -> Option<f64> {
        Some((2.0 * upper_tail(self.t().abs(), self.df)?).min(1.0))
    }

    /// The t interval of that confidence (0.95), both bounds finite.
    pub fn interval(&self, confidence: f64) -> Option<(f64, f64)> {
        let half = quantile(f64::midpoint(1.0, confidence), self.df)? * self.standard_error;
        let bounds = (self.estimate - half, self.estimate + half);
        (bounds.0.is_finite() && bounds.1.is_finite()).then_some(bounds)
    }

    /// p of two one-sided tests (Schuirmann 1987) that the true value lies between `low` and `high`: the larger of both.
    ///
    /// It is at most 0.05 exactly when the 90 % interval lies inside. The bounds must have been declared beforehand.
    pub fn equivalence_p(&self, low: f64, high: f64) -> Option<f64> {
        let above_low = upper_tail((self.estimate - low) / self.standard_error, self.df)?;
        let below_high = upper_tail((high - self.estimate) / self.standard_error, self.df)?;
        Some(above_low.max(below_high))
    }
}

/// Paired t: mean of the differences, `sd / sqrt(n)`, n - 1 degrees of freedom.
///
/// One difference per block. Use it only where pairs were formed before the values were seen. A standard deviation of
/// at most `resolution` counts as none: rounding must not pass for a tiny error.
pub fn paired(differences: &[f64], resolution: f64) -> Option<Inference> {
    contrast(&[(1.0, differences)], resolution)
}

/// Welch's t for mean(x) - mean(y), variances not assumed equal (Welch 1947). For values not formed into blocks.
pub fn welch(x: &[f64], y: &[f64], resolution: f64) -> Option<Inference> {
    contrast(&[(1.0, x), (-1.0, y)], resolution)
}

/// A contrast of independent samples: `sum c_i mean_i`, `se^2 = sum v_i` with `v_i = c_i^2 s_i^2 / n_i`, and
/// Satterthwaite's `df = (sum v)^2 / sum(v^2 / (n - 1))`.
///
/// With `c = (1, -1)` it is Welch's test. Needs two values in each sample. Not for samples that share blocks: their
/// errors are not independent. `None` where no sample's standard deviation exceeds `resolution`.
pub fn contrast(terms: &[(f64, &[f64])], resolution: f64) -> Option<Inference> {
    let mut estimate = 0.0;
    let mut parts = Vec::with_capacity(terms.len());
    for (coefficient, values) in terms {
        let variance = variance(values)?;
        let variance = if variance.sqrt() > resolution { variance } else { 0.0 };
        estimate += coefficient * mean(values);
        parts.push((coefficient.powi(2) * variance / values.len() as f64, (values.len() - 1) as f64));
    }
    let total: f64 = parts.iter().map(|(part, _)| part).sum();
    // Shares of the whole instead of squares, which underflow for tiny variances.
    let df = 1.0 / parts.iter().map(|(part, df)| (part / total).powi(2) / df).sum::<f64>();
    let inference = Inference { estimate, standard_error: total.sqrt(), df };
    (total > 0.0 && total.is_finite() && df.is_finite() && estimate.is_finite()).then_some(inference)
}

/// P(T > t) with `df` degrees of freedom.
pub fn upper_tail(t: f64, df: f64) -> Option<f64> {
    let tail = StudentsT::new(0.0, 1.0, df).ok()?.sf(t);
    (!tail.is_nan()).then_some(tail)
}

/// The t with P(T <= t) = p, for p strictly between 0 and 1.
pub fn quantile(p: f64, df: f64) -> Option<f64> {
    if !(p > 0.0 && p < 1.0) {
        return None;
    }
    let t = StudentsT::new(0.0, 1.0, df).ok()?.inverse_cdf(p);
    t.is_finite().then_some(t)
}
