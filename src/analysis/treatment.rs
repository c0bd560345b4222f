//! Whether a treatment was in force, from counters and masks. Counts only; what is too much is for the warnings.

use std::collections::{BTreeMap, BTreeSet};

use super::values::is_numbered;
use super::{IrqLanding, MoverCheck, TreatmentCheck};
use crate::cpu_set::{CpuSet, to_list};
use crate::recording::{CounterRow, Header, Mover, Trial};

/// One check per treatment, over all its trials but warm-up ones, invalid ones and repetitions among them.
///
/// A trial is held against its treatment as bound to the machine it ran on: numbers and masks differ between boots.
pub(super) fn checks(header: &Header, trials: &[Trial]) -> Vec<TreatmentCheck> {
    let mut of_treatment: Vec<Vec<&Trial>> = vec![Vec::new(); header.design.treatments.len()];
    for trial in trials.iter().filter(|trial| trial.block > 0) {
        if let Some(ran) = of_treatment.get_mut(trial.treatment) {
            ran.push(trial);
        }
    }
    of_treatment.iter().enumerate().map(|(index, ran)| check(header, index, ran)).collect()
}

/// What one interrupt did. Within a boot a number is one interrupt; over boots only what the row says of itself is.
#[derive(Default)]
struct Landed {
    labels: BTreeSet<u32>,
    boots: BTreeSet<Option<u32>>,
    description: String,
    asked: CpuSet,
    on_asked: u64,
    by_cpu: BTreeMap<u32, u64>,
}

impl Landed {
    fn add(&mut self, row: &CounterRow, asked: &CpuSet) {
        if self.description.is_empty() {
            self.description.clone_from(&row.description);
        }
        self.asked = self.asked.union(asked);
        let on_asked = row.by_cpu().filter(|(cpu, _)| asked.contains(*cpu)).map(|(_, count)| count);
        self.on_asked = on_asked.fold(self.on_asked, u64::saturating_add);
        add(&mut self.by_cpu, row);
    }

    fn absorb(&mut self, other: Landed) {
        self.labels.extend(other.labels);
        self.boots.extend(other.boots);
        self.asked = self.asked.union(&other.asked);
        self.on_asked = self.on_asked.saturating_add(other.on_asked);
        for (cpu, count) in other.by_cpu {
            let known = self.by_cpu.entry(cpu).or_insert(0);
            *known = known.saturating_add(count);
        }
    }
}

fn check(header: &Header, index: usize, trials: &[&Trial]) -> TreatmentCheck {
    let mut landed: BTreeMap<(u32, String), Landed> = BTreeMap::new();
    let (mut all_by_cpu, mut softirqs_by_cpu) = (BTreeMap::new(), BTreeMap::new());
    let mut routed = header.design.treatments.get(index).map_or(0, |treatment| asked_for(treatment).len());
    let mut by_boot: BTreeMap<Option<u32>, BTreeMap<u32, &CpuSet>> = BTreeMap::new();
    for trial in trials {
        let asked = by_boot.entry(trial.boot).or_insert_with(|| asked_for(header.treatment_of(trial)));
        routed = if trial.boot.is_some() { routed.max(asked.len()) } else { routed };
        for row in trial.interrupts.iter().filter(|row| is_numbered(row)) {
            add(&mut all_by_cpu, row);
            let Some((irq, mask)) = row.label.parse().ok().and_then(|irq| Some((irq, *asked.get(&irq)?))) else {
                continue;
            };
            let says = if trial.boot.is_some() { row.description.clone() } else { String::new() };
            let known = landed.entry((irq, says)).or_default();
            known.labels.insert(irq);
            known.boots.insert(trial.boot);
            known.add(row, mask);
        }
        trial.softirqs.iter().for_each(|row| add(&mut softirqs_by_cpu, row));
    }
    landed.retain(|_, landed| landed.by_cpu.values().any(|count| *count > 0));
    let landed = over_boots(landed);
    let mut by_cpu = BTreeMap::new();
    for (cpu, count) in landed.iter().flat_map(|landed| &landed.by_cpu) {
        let known: &mut u64 = by_cpu.entry(*cpu).or_insert(0);
        *known = known.saturating_add(*count);
    }
    let foreign = |trial: &&&Trial| !trial.masks.before_differing.is_empty() || !trial.masks.after_differing.is_empty();
    TreatmentCheck {
        treatment: index,
        trials: trials.len(),
        interrupts: by_cpu.values().fold(0, |all, count| all.saturating_add(*count)),
        on_asked_cpus: landed.iter().fold(0, |all, landed| all.saturating_add(landed.on_asked)),
        active_irqs: (landed.len(), routed.max(landed.len())),
        by_cpu: by_cpu.into_iter().collect(),
        all_by_cpu: all_by_cpu.into_iter().collect(),
        softirqs_by_cpu: softirqs_by_cpu.into_iter().collect(),
        irqs: landed
            .into_iter()
            .map(|landed| IrqLanding {
                label: to_list(landed.labels),
                description: landed.description,
                asked: landed.asked,
                by_cpu: landed.by_cpu.into_iter().collect(),
            })
            .collect(),
        trials_with_foreign_masks: trials.iter().filter(foreign).count(),
        mover: mover(trials),
    }
}

fn asked_for(treatment: &crate::recording::Treatment) -> BTreeMap<u32, &CpuSet> {
    treatment.routes.iter().flat_map(|group| group.irqs.0.iter().map(|irq| (irq.0, &group.mask))).collect()
}

/// One entry for an interrupt whose number was another after another boot: rows that say the same of themselves and are
/// never there in one boot together.
fn over_boots(landed: BTreeMap<(u32, String), Landed>) -> Vec<Landed> {
    let mut all: Vec<Landed> = Vec::new();
    for ((_, says), landed) in landed {
        let same = |known: &&mut Landed| {
            !says.is_empty() && known.description == says && known.boots.is_disjoint(&landed.boots)
        };
        match all.iter_mut().find(same) {
            Some(known) => known.absorb(landed),
            None => all.push(landed),
        }
    }
    all
}

fn mover(trials: &[&Trial]) -> Option<MoverCheck> {
    let movers: Vec<_> = trials.iter().filter_map(|trial| Some((trial.duration_ns, trial.mover.as_ref()?))).collect();
    let sum = |of: fn(&Mover) -> u64| movers.iter().map(|(_, mover)| of(mover)).fold(0, u64::saturating_add);
    (!movers.is_empty()).then(|| MoverCheck {
        trials: movers.len(),
        moves: sum(|mover| mover.moves.len() as u64),
        refused: sum(|mover| mover.refused),
        seconds: movers.iter().map(|(ns, _)| *ns as f64 / 1e9).sum(),
        cpu_seconds: sum(|mover| mover.cpu_us) as f64 / 1e6,
        switches: sum(|mover| mover.switches),
    })
}

fn add(counts: &mut BTreeMap<u32, u64>, row: &CounterRow) {
    for (cpu, count) in row.by_cpu() {
        let known = counts.entry(cpu.0).or_insert(0);
        *known = known.saturating_add(count);
    }
}
