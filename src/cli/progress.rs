//! Progress of a run: one line a trial, written between trials only.

use super::print;
use crate::recording::{Design, PlannedTrial, Trial};
use crate::run::Progress;

/// A line when a trial begins to be waited for, completed when it is over.
pub(super) struct Lines<'a> {
    design: &'a Design,
    planned: usize,
    ended: usize,
}

impl<'a> Lines<'a> {
    /// For so many trials.
    pub(super) fn new(design: &'a Design, planned: usize) -> Self {
        Lines { design, planned, ended: 0 }
    }
}

impl Progress for Lines<'_> {
    fn trial_started(&mut self, _planned: &PlannedTrial, attempt: u32) {
        if attempt > 0 {
            self.planned += 1;
        }
    }

    fn trial_ended(&mut self, trial: &Trial) {
        self.ended += 1;
        let place = if trial.block == 0 { "warm-up".to_owned() } else { format!("block {}", trial.block) };
        let treatment = &self.design.treatments[trial.treatment].name;
        let seconds = trial.duration_ns as f64 / 1e9;
        let faults = if trial.faults.is_empty() { "" } else { ": not valid, see the report" };
        print::talk(&format!("{}/{} {place}: {treatment} {seconds:.2} s{faults}", self.ended, self.planned));
    }
}
