//! Which boot each value was measured in, so that what shares a boot is not taken for independent.
//!
//! Knows no values: treatments, blocks and boots only.

use std::collections::{BTreeMap, BTreeSet};

use super::BootOptionCheck;
use crate::recording::{Header, Trial};

/// The boots of all counted trials; empty where nothing was booted.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Boots(BTreeMap<(usize, u32), Booted>);

/// The boot of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Booted {
    /// The whole plot within a block it was planned for.
    planned: u32,
    /// The boot itself. Two lines of a recording with one `boot_id` are one boot.
    actual: u32,
}

impl Boots {
    /// By treatment and block.
    pub(super) fn of(header: &Header, valid: &[&Trial]) -> Self {
        if header.boots.is_empty() {
            return Boots::default();
        }
        let mut known: BTreeMap<u32, u32> = BTreeMap::new();
        let mut ids: BTreeMap<&str, u32> = BTreeMap::new();
        for boot in &header.boots {
            let same = boot.boot_id.as_deref().map_or(boot.number, |id| *ids.entry(id).or_insert(boot.number));
            known.insert(boot.number, same);
        }
        let order: BTreeMap<u32, u32> =
            header.order.iter().filter_map(|planned| Some((planned.number, planned.boot?))).collect();
        let of = |trial: &&Trial| {
            let boot = header.boot_of(trial)?;
            let planned = order.get(&trial.number).copied().unwrap_or(boot.planned);
            Some(((trial.treatment, trial.block), Booted { planned, actual: known[&boot.number] }))
        };
        Boots(valid.iter().filter_map(of).collect())
    }

    /// The boot itself of a trial.
    pub(super) fn actual(&self, treatment: usize, block: u32) -> Option<u32> {
        self.0.get(&(treatment, block)).map(|booted| booted.actual)
    }

    /// How two trials of a block stand to each other.
    pub(super) fn relation(&self, (left, right): (usize, usize), block: u32) -> Relation {
        let Some((left, right)) = self.0.get(&(left, block)).zip(self.0.get(&(right, block))) else {
            return Relation::Unbooted;
        };
        match (left.actual == right.actual, left.planned == right.planned) {
            (true, _) => Relation::SameBoot,
            (false, true) => Relation::Split,
            (false, false) => Relation::WholePlots(left.actual, right.actual),
        }
    }

    /// Whether no two of these trials share a boot; those without one share none.
    pub(super) fn are_apart(&self, trials: impl IntoIterator<Item = (usize, u32)>) -> bool {
        let mut seen = BTreeSet::new();
        trials.into_iter().filter_map(|(treatment, block)| self.actual(treatment, block)).all(|boot| seen.insert(boot))
    }

    /// Whether all of these trials ran in one boot.
    pub(super) fn are_together(&self, trials: impl IntoIterator<Item = (usize, u32)>) -> bool {
        trials.into_iter().map(|(treatment, block)| self.actual(treatment, block)).collect::<BTreeSet<_>>().len() <= 1
    }

    /// Blocks that have a whole plot whose trials ran in more than one boot.
    pub(super) fn split_blocks(&self) -> Vec<u32> {
        let mut plots: BTreeMap<(u32, u32), BTreeSet<u32>> = BTreeMap::new();
        for ((_, block), booted) in &self.0 {
            plots.entry((*block, booted.planned)).or_default().insert(booted.actual);
        }
        let split = plots.into_iter().filter(|(_, boots)| boots.len() > 1);
        split.map(|((block, _), _)| block).collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// Blocks that share a boot with another one.
    pub(super) fn sharing_blocks(&self) -> Vec<u32> {
        let mut blocks: BTreeMap<u32, BTreeSet<u32>> = BTreeMap::new();
        for ((_, block), booted) in &self.0 {
            blocks.entry(booted.actual).or_default().insert(*block);
        }
        let shared = blocks.into_values().filter(|blocks| blocks.len() > 1);
        shared.flatten().collect::<BTreeSet<u32>>().into_iter().collect()
    }
}

/// How two trials of a block stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// One boot served both: it is in neither side's favour.
    SameBoot,
    /// One boot should have, and two did: their difference holds that of two boots.
    Split,
    /// Nothing was booted for one of them.
    Unbooted,
    /// Each has its own boot, as planned.
    WholePlots(u32, u32),
}

/// Blocks joined where they share one of the boots named: `groups[place]` is the group of the block there.
pub(super) fn joined(boots: &[BTreeSet<u32>]) -> Vec<usize> {
    let mut groups: Vec<usize> = (0..boots.len()).collect();
    let mut first: BTreeMap<u32, usize> = BTreeMap::new();
    for (place, of_block) in boots.iter().enumerate() {
        for boot in of_block {
            let other = groups[*first.entry(*boot).or_insert(place)];
            let own = groups[place];
            let (kept, gone) = (own.min(other), own.max(other));
            groups.iter_mut().filter(|group| **group == gone).for_each(|group| *group = kept);
        }
    }
    groups
}

/// What the kernels showed of the options asked for, by treatment and option, over the boots its trials ran in.
pub(super) fn options(header: &Header, trials: &[Trial]) -> Vec<BootOptionCheck> {
    let mut checks: BTreeMap<(usize, &str), BootOptionCheck> = BTreeMap::new();
    let ran: BTreeSet<(usize, u32)> = trials
        .iter()
        .filter(|trial| trial.block > 0)
        .filter_map(|trial| Some((trial.treatment, trial.boot?)))
        .collect();
    for (treatment, number) in ran {
        for option in header.boots.iter().filter(|boot| boot.number == number).flat_map(|boot| &boot.options) {
            let check = checks.entry((treatment, &option.option)).or_insert_with(|| BootOptionCheck {
                treatment,
                option: option.option.clone(),
                in_force: 0,
                not_in_force: 0,
                not_shown: 0,
                evidence: Vec::new(),
            });
            match option.in_force {
                Some(true) => check.in_force += 1,
                Some(false) => check.not_in_force += 1,
                None => check.not_shown += 1,
            }
            if !check.evidence.contains(&option.evidence) {
                check.evidence.push(option.evidence.clone());
            }
        }
    }
    checks.into_values().collect()
}
