//! How long things took. A histogram, because an hour of transactions would not fit into memory one by one: three
//! significant digits, so that a quantile is at most 0.1 % above the sample it stands for. The largest and the average are exact.

use std::time::Duration;

use hdrhistogram::Histogram;

/// Times of one thread or of all.
#[derive(Debug)]
pub(super) struct Latency {
    histogram: Histogram<u32>,
    longest: Duration,
    sum_ns: u128,
}

impl Default for Latency {
    fn default() -> Self {
        let histogram = Histogram::new(3).expect("three digits are among the one to five it can keep");
        Latency { histogram, longest: Duration::ZERO, sum_ns: 0 }
    }
}

impl Latency {
    pub(super) fn record(&mut self, time: Duration) {
        self.histogram.record(time.as_nanos() as u64).expect("it grows to hold any number");
        self.longest = self.longest.max(time);
        self.sum_ns += time.as_nanos();
    }

    pub(super) fn merge(&mut self, other: &Latency) {
        self.histogram.add(&other.histogram).expect("it grows to hold what another one holds");
        self.longest = self.longest.max(other.longest);
        self.sum_ns += other.sum_ns;
    }

    /// How many there are.
    pub(super) fn len(&self) -> u64 {
        self.histogram.len()
    }

    /// The smallest time that `quantile` of them, 0 to 1, do not exceed; microseconds.
    pub(super) fn quantile_us(&self, quantile: f64) -> f64 {
        let longest = self.longest.as_nanos() as u64;
        self.histogram.value_at_quantile(quantile).min(longest) as f64 / 1e3
    }

    /// Their average, exactly; microseconds.
    pub(super) fn mean_us(&self) -> f64 {
        self.sum_ns as f64 / 1e3 / self.len() as f64
    }

    /// The longest, microseconds.
    pub(super) fn longest_us(&self) -> f64 {
        self.longest.as_nanos() as f64 / 1e3
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_samples() {
        let samples: Vec<u64> = (1..=10_000).map(|number| number * number * 37).collect();
        let mut halves = [Latency::default(), Latency::default()];
        for (number, sample) in samples.iter().enumerate() {
            halves[number % 2].record(Duration::from_nanos(*sample));
        }
        let [mut all, other] = halves;
        all.merge(&other);
        assert_eq!(all.len(), 10_000);
        for (quantile, rank) in [(0.5, 5_000), (0.99, 9_900), (0.999, 9_990), (1.0, 10_000)] {
            let exact = samples[rank - 1] as f64 / 1e3;
            let error = all.quantile_us(quantile) / exact - 1.0;
            assert!((0.0..=0.001).contains(&error), "{quantile}: {error}");
        }
        assert!((all.longest_us() - 3_700_000.0).abs() < 1e-9);
        let mean = samples.iter().sum::<u64>() as f64 / 1e7;
        assert!((all.mean_us() / mean - 1.0).abs() < 1e-12);
    }
}
