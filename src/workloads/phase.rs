//! The measured time of workloads made of many threads, which look at it after each thing they do.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// Runs before the measured time: connections grow their windows, caches and branch predictors fill.
pub(super) const WARM_UP: Duration = Duration::from_millis(300);

/// How far a run is: 0 before the measured time.
#[derive(Debug, Default)]
pub(super) struct Phase(AtomicU8);

impl Phase {
    pub(super) const MEASURED: u8 = 1;
    pub(super) const OVER: u8 = 2;

    pub(super) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, phase: u8) {
        self.0.store(phase, Ordering::Relaxed);
    }
}
