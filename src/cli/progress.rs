//! Progress of a run: one line a trial, written between trials only; and the one look a two-stage run takes.

use super::print;
use crate::analysis::two_stage;
use crate::bind;
use crate::design::Experiment;
use crate::recording::{Accelerator, Boot, Decision, Design, Header, PlannedTrial, Trial};
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

    fn booted(&mut self, boot: &Boot) {
        let Some(lab) = &boot.lab else { return };
        let kernel = boot.host.kernel_release.as_deref().unwrap_or("a kernel without a name");
        let how = match lab.accelerator {
            Accelerator::Emulated => "emulated",
            Accelerator::Kvm => "KVM",
        };
        let (cpus, seconds) = (boot.host.topology.online.len(), lab.boot_ms as f64 / 1e3);
        print::talk(&format!("boot {}: Linux {kernel}, {cpus} CPUs, {how}, up in {seconds:.0} s", boot.number));
    }
}

/// A run whose number of blocks is decided after a pilot.
pub(super) struct TwoStage<'a> {
    lines: Lines<'a>,
    experiment: &'a Experiment,
    header: &'a Header,
    trials: Vec<Trial>,
}

impl<'a> TwoStage<'a> {
    /// `trials` are those an earlier part of the run recorded.
    pub(super) fn new(
        lines: Lines<'a>,
        (experiment, header): (&'a Experiment, &'a Header),
        trials: Vec<Trial>,
    ) -> Self {
        TwoStage { lines, experiment, header, trials }
    }
}

impl Progress for TwoStage<'_> {
    fn trial_started(&mut self, planned: &PlannedTrial, attempt: u32) {
        self.lines.trial_started(planned, attempt);
    }

    fn trial_ended(&mut self, trial: &Trial) {
        self.lines.trial_ended(trial);
        self.trials.push(trial.clone());
    }

    fn booted(&mut self, boot: &Boot) {
        self.lines.booted(boot);
    }

    fn further(&mut self) -> Option<Decision> {
        let decision = decide(self.experiment, self.header, &self.trials)?;
        self.lines.planned += decision.order.len();
        Some(decision)
    }
}

/// The one look after the pilot, told as it is taken; `None` for a run without one.
pub(super) fn decide(experiment: &Experiment, header: &Header, trials: &[Trial]) -> Option<Decision> {
    let decision = two_stage::decide(header, trials)?;
    let order = bind::further(experiment, decision.blocks);
    let needed = decision.needed.map_or_else(|| "a number nobody can tell".to_owned(), |needed| needed.to_string());
    let missed = if decision.target_missed() { ": target not reached" } else { "" };
    print::talk(&format!(
        "after the pilot: the wanted width needs {needed} blocks; {} in all{missed}",
        decision.blocks
    ));
    Some(Decision { at: jiff::Timestamp::now().to_string(), order, ..decision })
}
