//! Boots of the host itself: which one an experiment needs next, and whether the running kernel is it. Decides from the
//! recording and from facts; reads and writes nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::design::Experiment;
use crate::host::boot_options::{Judgement, judge};
use crate::recording::{Fault, HostFacts, PlannedTrial, Recording};

/// After so many boots without the options that were asked for, somebody has to look at the machine.
pub const MOST_WRONG_BOOTS: u32 = 3;

/// The boot a host runs in.
#[derive(Debug, Clone, Copy)]
pub struct Now<'a> {
    /// What the kernel shows.
    pub facts: &'a HostFacts,
    /// `/proc/sys/kernel/random/boot_id`
    pub boot_id: &'a str,
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Every planned boot is done.
    Complete,
    /// The host has to be booted.
    Reboot(Request),
    /// The running kernel is the boot that is due.
    Run(Part),
}

/// What this boot has to do.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The planned boot.
    pub planned: u32,
    /// Its number in the recording: that of the boot recorded already when this is still the same one, else a new one.
    pub number: u32,
    /// Trials still to be run, in order.
    pub trials: Vec<PlannedTrial>,
    /// All treatments of the boot.
    pub treatments: BTreeSet<usize>,
    /// What the kernel shows of its options.
    pub judgement: Judgement,
}

/// A boot that is needed.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The planned boot.
    pub planned: u32,
    /// Planned boots that are done, and all of them.
    pub done: (u32, u32),
    /// Options it is to have.
    pub wanted: Vec<String>,
    /// The running kernel held against it.
    pub judgement: Judgement,
    /// Why it is not the running one.
    pub why: Why,
}

/// Why the running kernel is not the boot that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Why {
    /// Nobody has asked for that boot before.
    Due,
    /// This is still the boot in which it was asked for.
    SameBoot,
    /// The host was booted since, so many times, and never came up as asked.
    Wrong { times: u32 },
}

/// What an experiment needs next.
///
/// Boots are taken in the order that was drawn: a boot that happens to fit a later one is not used for it, because then
/// the user's hand and not the seed would decide which block a boot falls into. One boot serves one planned boot, also
/// where the next has the same options: trials that share a boot share what was special about it.
pub fn next(experiment: &Experiment, recording: &Recording, now: &Now<'_>) -> Step {
    let order = &recording.header.order;
    let mut planned: Vec<u32> = Vec::new();
    for boot in order.iter().filter_map(|trial| trial.boot) {
        if !planned.contains(&boot) {
            planned.push(boot);
        }
    }
    let left = left(experiment, recording);
    let Some(due) = planned.iter().copied().find(|boot| left.contains_key(boot)) else { return Step::Complete };
    let trials_of_due = order.iter().filter(|trial| trial.boot == Some(due));
    let treatments: BTreeSet<usize> = trials_of_due.map(|trial| trial.treatment).collect();
    let options = |treatment: &usize| experiment.treatments[*treatment].boot_options();
    let wanted = treatments.first().map(options).unwrap_or_default();
    let named: Vec<&str> = (0..experiment.treatments.len()).flat_map(|treatment| options(&treatment)).collect();
    let judgement = judge(now.facts, &wanted, &named);
    let boots = &recording.header.boots;
    let this = boots.iter().rev().find(|boot| boot.boot_id.as_deref() == Some(now.boot_id));
    let spent = this.is_some_and(|boot| boot.planned != due);
    if judgement.fits() && !spent {
        let number =
            this.map_or_else(|| boots.iter().map(|boot| boot.number).max().unwrap_or(0) + 1, |boot| boot.number);
        let mut trials = left[&due].clone();
        if this.is_none() {
            // A machine fresh from its boot is cold, also where an earlier one has run the warm-up.
            let warmup = order.iter().filter(|trial| trial.boot == Some(due) && trial.block == 0);
            trials.retain(|trial| trial.block != 0);
            trials.splice(..0, warmup.copied());
        }
        return Step::Run(Part { planned: due, number, trials, treatments, judgement });
    }
    let asked: BTreeSet<&str> =
        recording.asked.iter().filter(|asked| asked.planned == due).map(|asked| asked.boot_id.as_str()).collect();
    let why = match asked.len() {
        _ if spent || asked.contains(now.boot_id) => Why::SameBoot,
        0 => Why::Due,
        times => Why::Wrong { times: times as u32 },
    };
    let done = planned.iter().filter(|boot| !left.contains_key(boot)).count() as u32;
    let wanted = wanted.into_iter().map(str::to_owned).collect();
    Step::Reboot(Request { planned: due, done: (done, planned.len() as u32), wanted, judgement, why })
}

/// Trials still to be run, by planned boot. One that was tried as often as the protocol allows is not tried in yet
/// another boot; a try that the user stopped, or whose settings could not be made, does not count.
fn left(experiment: &Experiment, recording: &Recording) -> BTreeMap<u32, Vec<PlannedTrial>> {
    let mut tries: BTreeMap<u32, u32> = BTreeMap::new();
    for trial in &recording.trials {
        let cut_short = |fault: &Fault| matches!(fault, Fault::Interrupted { .. } | Fault::SettingRefused { .. });
        if !trial.faults.iter().any(cut_short) {
            *tries.entry(trial.number).or_insert(0) += 1;
        }
    }
    let mut left: BTreeMap<u32, Vec<PlannedTrial>> = BTreeMap::new();
    for trial in recording.remaining() {
        if let Some(boot) = trial.boot
            && tries.get(&trial.number).copied().unwrap_or(0) <= experiment.protocol.retries
        {
            left.entry(boot).or_default().push(trial);
        }
    }
    left
}
