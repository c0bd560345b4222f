//! Whether a treatment was in force during a trial, from the kernel's own state and counters. Reads masks; everything
//! else is pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::bind::{Change, ChangeKind, OnRefusal};
use crate::cpu_set::{CpuSet, Irq};
use crate::host::files::{Files, SystemError};
use crate::host::snapshot::Counters;
use crate::recording::{CounterRow, Fault, IrqList, MaskGroup, MaskReadings};
use crate::settings::Moved;

/// Share of a routed interrupt's deliveries that may land outside its mask before the treatment counts as not in force.
/// Not 0: the delivery that makes a pending move still lands on the old CPU (kernel/irq/migration.c), and one may be
/// in flight while the mask is written.
pub const STRAY_SHARE: f64 = 0.01;

/// So few strays are never a fault, whatever their share: an interrupt that fires twice in a trial moves nothing.
pub const STRAY_COUNT: u64 = 2;

/// Masks of routed interrupts at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Masks {
    affinity: BTreeMap<u32, CpuSet>,
    effective: BTreeMap<u32, CpuSet>,
}

/// Masks in force, by interrupt: those asked for, without the interrupts that refused and may
/// ([`OnRefusal::Skip`]). To be called when the treatment was just applied and verified.
pub(super) fn routes(files: &dyn Files, changes: &[Change]) -> Result<BTreeMap<u32, CpuSet>, SystemError> {
    let mut routes = BTreeMap::new();
    let mut may_refuse = Vec::new();
    for change in changes {
        if let ChangeKind::Affinity { identity, mask, on_refusal } = &change.kind {
            routes.insert(identity.irq.0, mask.clone());
            may_refuse.extend((*on_refusal == OnRefusal::Skip).then_some(identity.irq.0));
        }
    }
    let now = Masks::read(files, &routes)?;
    for irq in may_refuse {
        if routes.get(&irq) != now.affinity.get(&irq) {
            routes.remove(&irq);
        }
    }
    Ok(routes)
}

/// What was asked of routed interrupts: one mask all the time, or one CPU after the other.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Asked {
    /// Masks before the workloads.
    at_first: BTreeMap<u32, CpuSet>,
    /// Masks after them.
    at_last: BTreeMap<u32, CpuSet>,
    /// All CPUs an interrupt was given to.
    between: BTreeMap<u32, CpuSet>,
}

impl Asked {
    /// Masks that stand still, but for those a mover had its hand on.
    pub(super) fn new(routes: BTreeMap<u32, CpuSet>, moved: Option<&Moved>) -> Self {
        let with = |moved: Option<&BTreeMap<u32, CpuSet>>| {
            let mut masks = routes.clone();
            for (irq, mask) in moved.into_iter().flatten() {
                masks.entry(*irq).and_modify(|known| known.clone_from(mask));
            }
            masks
        };
        let (at_last, between) = (with(moved.map(|moved| &moved.last)), with(moved.map(|moved| &moved.chosen)));
        Asked { at_first: routes, at_last, between }
    }

    /// Interrupts asked for that are not among those in force: the kernel refused their masks.
    pub(super) fn refused(&self, changes: &[Change]) -> Vec<Irq> {
        let asked = changes.iter().filter_map(|change| match &change.kind {
            ChangeKind::Affinity { identity, .. } => Some(identity.irq),
            _ => None,
        });
        let refused: BTreeSet<Irq> = asked.filter(|irq| !self.at_first.contains_key(&irq.0)).collect();
        refused.into_iter().collect()
    }
}

impl Masks {
    /// Reads them. An interrupt that is gone has none; that is found by verifying the settings.
    pub(super) fn read(files: &dyn Files, routes: &BTreeMap<u32, CpuSet>) -> Result<Self, SystemError> {
        let mut masks = Masks::default();
        for irq in routes.keys() {
            let read = |file: &str| match files.read_text(&format!("/proc/irq/{irq}/{file}")) {
                Err(error) if error.is_gone() => Ok(None),
                text => text.map(|text| CpuSet::parse_mask(&text).ok()),
            };
            masks.affinity.extend(read("smp_affinity")?.map(|mask| (*irq, mask)));
            masks.effective.extend(read("effective_affinity")?.map(|mask| (*irq, mask)));
        }
        Ok(masks)
    }
}

/// What the recording keeps of two readings.
pub(super) fn readings(asked: &Asked, before: &Masks, after: &Masks) -> MaskReadings {
    MaskReadings {
        before_differing: differing(&before.affinity, &asked.at_first),
        effective_before: groups(before.effective.iter()),
        after_differing: differing(&after.affinity, &asked.at_last),
        effective_after: differing(&after.effective, &before.effective),
        refused: Vec::new(),
    }
}

fn differing(masks: &BTreeMap<u32, CpuSet>, from: &BTreeMap<u32, CpuSet>) -> Vec<MaskGroup> {
    groups(masks.iter().filter(|(irq, mask)| from.get(irq) != Some(mask)))
}

fn groups<'a>(masks: impl Iterator<Item = (&'a u32, &'a CpuSet)>) -> Vec<MaskGroup> {
    let mut by_mask: BTreeMap<&CpuSet, Vec<Irq>> = BTreeMap::new();
    for (irq, mask) in masks {
        by_mask.entry(mask).or_default().push(Irq(*irq));
    }
    by_mask.into_iter().map(|(mask, irqs)| MaskGroup { mask: mask.clone(), irqs: IrqList(irqs) }).collect()
}

/// What speaks against the treatment, and what is worth a remark.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Findings {
    pub faults: Vec<Fault>,
    pub remarks: Vec<String>,
}

/// Judges a trial by both readings and the counters between them.
pub(super) fn judge(asked: &Asked, (before, after): (&Masks, &Masks), counters: &Counters) -> Findings {
    let mut findings = Findings::default();
    if counters.cpus_before != counters.cpus_after {
        let (before, after) = (counters.cpus_before.clone(), counters.cpus_after.clone());
        findings.faults.push(Fault::CpusChanged { before, after });
    }
    findings.faults.extend(rewritten(asked, &before.affinity, &after.affinity));
    let rows: BTreeMap<&str, &CounterRow> = counters.interrupts.iter().map(|row| (row.label.as_str(), row)).collect();
    let mut pending = Vec::new();
    for (irq, mask) in &asked.between {
        let row = rows.get(irq.to_string().as_str());
        let is_outside = |masks: &Masks| masks.effective.get(irq).is_some_and(|effective| !effective.is_subset(mask));
        if is_outside(after) {
            pending.push(Irq(*irq));
        }
        if let Some(detail) = row.and_then(|row| strays(*irq, mask, row)) {
            let hint = if is_outside(after) { ": its effective affinity never followed" } else { "" };
            findings.faults.push(Fault::TreatmentNotInForce { detail: format!("{detail}{hint}") });
        }
    }
    if !pending.is_empty() {
        let irqs = crate::cpu_set::to_list(pending.iter().map(|irq| irq.0));
        findings.remarks.push(format!("irq {irqs}: the move was still pending at the end of the trial"));
    }
    findings
}

fn rewritten(asked: &Asked, before: &BTreeMap<u32, CpuSet>, after: &BTreeMap<u32, CpuSet>) -> Vec<Fault> {
    let mut by_masks: BTreeMap<(&CpuSet, &CpuSet), Vec<Irq>> = BTreeMap::new();
    for irq in asked.at_first.keys() {
        let looks = [(&asked.at_last, after), (&asked.at_first, before)];
        let pairs = looks.into_iter().filter_map(|(asked, found)| Some((asked.get(irq)?, found.get(irq)?)));
        if let Some((asked, found)) = pairs.into_iter().find(|(asked, found)| asked != found) {
            by_masks.entry((asked, found)).or_default().push(Irq(*irq));
        }
    }
    let fault = |((asked, found), irqs): ((&CpuSet, &CpuSet), Vec<Irq>)| Fault::MaskRewritten {
        irqs: IrqList(irqs),
        asked: asked.clone(),
        found: found.clone(),
    };
    by_masks.into_iter().map(fault).collect()
}

fn strays(irq: u32, mask: &CpuSet, row: &CounterRow) -> Option<String> {
    let total = row.total();
    let outside: Vec<(u32, u64)> =
        row.by_cpu().filter(|(cpu, _)| !mask.contains(*cpu)).map(|(cpu, count)| (cpu.0, count)).collect();
    let count: u64 = outside.iter().map(|(_, count)| count).sum();
    let is_fault = count > STRAY_COUNT && count as f64 > STRAY_SHARE * total as f64;
    let cpus = crate::cpu_set::to_list(outside.iter().map(|(cpu, _)| *cpu));
    is_fault.then(|| format!("irq {irq}: {count} of {total} interrupts landed on CPU {cpus}, asked for {mask}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_set::Cpu;

    fn set(list: &str) -> CpuSet {
        CpuSet::parse_list(list).unwrap()
    }

    fn row(label: &str, counts: &[(u32, u64)]) -> CounterRow {
        CounterRow {
            label: label.to_owned(),
            description: String::new(),
            on: counts.iter().map(|(cpu, _)| Cpu(*cpu)).collect(),
            counts: counts.iter().map(|(_, count)| *count).collect(),
            anomaly: None,
        }
    }

    fn masks(affinity: &str, effective: &str) -> Masks {
        Masks { affinity: BTreeMap::from([(36, set(affinity))]), effective: BTreeMap::from([(36, set(effective))]) }
    }

    fn judged(before: &Masks, after: &Masks, counts: &[(u32, u64)]) -> Findings {
        let counters = Counters { interrupts: vec![row("36", counts)], ..Counters::default() };
        judge(&Asked::new(BTreeMap::from([(36, set("0"))]), None), (before, after), &counters)
    }

    fn not_in_force(detail: &str) -> Vec<Fault> {
        vec![Fault::TreatmentNotInForce { detail: detail.to_owned() }]
    }

    #[test]
    fn interrupts_where_they_were_asked_are_no_fault() {
        let there = masks("0", "0");
        assert_eq!(judged(&there, &there, &[(0, 1000)]), Findings::default());
        assert_eq!(
            judged(&there, &there, &[]),
            Findings::default(),
            "an idle interrupt proves nothing and harms nothing"
        );
    }

    #[test]
    fn one_in_a_hundred_may_stray_and_no_more() {
        let there = masks("0", "0");
        assert_eq!(judged(&there, &there, &[(0, 990), (1, 10)]).faults, []);
        let detail = "irq 36: 11 of 1001 interrupts landed on CPU 1, asked for 0";
        assert_eq!(judged(&there, &there, &[(0, 990), (1, 11)]).faults, not_in_force(detail));
        assert_eq!(judged(&there, &there, &[(1, 2)]).faults, []);
        let detail = "irq 36: 3 of 3 interrupts landed on CPU 1, asked for 0";
        assert_eq!(judged(&there, &there, &[(1, 3)]).faults, not_in_force(detail));
    }

    #[test]
    fn a_move_that_waits_for_the_next_interrupt_is_a_remark() {
        let remark = ["irq 36: the move was still pending at the end of the trial"];
        let idle = judged(&masks("0", "1"), &masks("0", "1"), &[]);
        assert_eq!((idle.faults, idle.remarks), (vec![], remark.map(str::to_owned).to_vec()));
        let moved = judged(&masks("0", "1"), &masks("0", "0"), &[(0, 5), (1, 1)]);
        assert_eq!(moved, Findings::default());
        let never = judged(&masks("0", "1"), &masks("0", "1"), &[(1, 500)]);
        let detail =
            "irq 36: 500 of 500 interrupts landed on CPU 1, asked for 0: its effective affinity never followed";
        assert_eq!(never.faults, not_in_force(detail));
    }

    #[test]
    fn an_interrupt_whose_mask_was_skipped_is_refused() {
        let change = |irq: u32| Change {
            span: crate::source::Span::default(),
            kind: ChangeKind::Affinity {
                identity: crate::bind::IrqIdentity {
                    irq: Irq(irq),
                    actions: vec![],
                    chip: "XT-PIC".to_owned(),
                    hwirq: None,
                    device: None,
                },
                mask: set("0"),
                on_refusal: OnRefusal::Skip,
            },
        };
        let changes = [change(36), change(22), change(36)];
        let refused =
            |routes: &[u32]| Asked::new(routes.iter().map(|irq| (*irq, set("0"))).collect(), None).refused(&changes);
        assert_eq!(refused(&[36]), [Irq(22)]);
        assert_eq!(refused(&[22, 36]), []);
    }

    #[test]
    fn a_rewritten_mask_is_named_with_what_it_became() {
        let findings = judged(&masks("0", "0"), &masks("0-1", "0"), &[(0, 9)]);
        let fault = Fault::MaskRewritten { irqs: IrqList(vec![Irq(36)]), asked: set("0"), found: set("0-1") };
        assert_eq!(findings.faults, [fault]);
        let asked = Asked::new(BTreeMap::from([(36, set("0"))]), None);
        let kept = readings(&asked, &masks("0", "0"), &masks("0-1", "0"));
        assert_eq!(kept.before_differing, []);
        assert_eq!(kept.after_differing, [MaskGroup { mask: set("0-1"), irqs: IrqList(vec![Irq(36)]) }]);
        assert_eq!(kept.effective_after, []);
    }
}
