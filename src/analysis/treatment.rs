//! Whether a treatment was in force, from counters and masks. Counts only; what is too much is for the warnings.

use std::collections::BTreeMap;

use super::values::is_numbered;
use super::{IrqLanding, TreatmentCheck};
use crate::cpu_set::{Cpu, CpuSet};
use crate::recording::{CounterRow, Design, Treatment, Trial};

/// One check per treatment, over all its trials but warm-up ones, invalid ones and repetitions among them.
pub(super) fn checks(design: &Design, trials: &[Trial]) -> Vec<TreatmentCheck> {
    let check = |(index, treatment): (usize, &Treatment)| {
        let ran = trials.iter().filter(|trial| trial.block > 0 && trial.treatment == index).collect::<Vec<_>>();
        check(index, treatment, &ran)
    };
    design.treatments.iter().enumerate().map(check).collect()
}

fn check(index: usize, treatment: &Treatment, trials: &[&Trial]) -> TreatmentCheck {
    let asked: BTreeMap<u32, &CpuSet> =
        treatment.routes.iter().flat_map(|group| group.irqs.0.iter().map(|irq| (irq.0, &group.mask))).collect();
    let mut landed: BTreeMap<u32, (String, BTreeMap<u32, u64>)> = BTreeMap::new();
    let (mut all_by_cpu, mut softirqs_by_cpu) = (BTreeMap::new(), BTreeMap::new());
    for trial in trials {
        for row in trial.interrupts.iter().filter(|row| is_numbered(row)) {
            add(&mut all_by_cpu, row);
            if let Some(irq) = row.label.parse().ok().filter(|irq| asked.contains_key(irq)) {
                add(&mut landed.entry(irq).or_insert_with(|| (row.description.clone(), BTreeMap::new())).1, row);
            }
        }
        trial.softirqs.iter().for_each(|row| add(&mut softirqs_by_cpu, row));
    }
    landed.retain(|_, (_, counts)| counts.values().any(|count| *count > 0));
    let mut by_cpu = BTreeMap::new();
    let mut on_asked_cpus = 0;
    for (irq, (_, counts)) in &landed {
        for (cpu, count) in counts {
            *by_cpu.entry(*cpu).or_insert(0) += count;
            if asked[irq].contains(Cpu(*cpu)) {
                on_asked_cpus += count;
            }
        }
    }
    let foreign = |trial: &&&Trial| !trial.masks.before_differing.is_empty() || !trial.masks.after_differing.is_empty();
    TreatmentCheck {
        treatment: index,
        trials: trials.len(),
        interrupts: by_cpu.values().sum(),
        on_asked_cpus,
        active_irqs: (landed.len(), asked.len()),
        by_cpu: by_cpu.into_iter().collect(),
        all_by_cpu: all_by_cpu.into_iter().collect(),
        softirqs_by_cpu: softirqs_by_cpu.into_iter().collect(),
        irqs: landed
            .into_iter()
            .map(|(irq, (description, counts))| IrqLanding {
                label: irq.to_string(),
                description,
                asked: asked[&irq].clone(),
                by_cpu: counts.into_iter().collect(),
            })
            .collect(),
        trials_with_foreign_masks: trials.iter().filter(foreign).count(),
    }
}

fn add(counts: &mut BTreeMap<u32, u64>, row: &CounterRow) {
    for (cpu, count) in row.by_cpu() {
        let known = counts.entry(cpu.0).or_insert(0);
        *known = known.saturating_add(count);
    }
}
