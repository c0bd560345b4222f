//! All routes of a treatment bound together, because no interrupt may be sent to two places.

use std::collections::BTreeMap;

use super::{Binding, Change, ChangeKind, IrqIdentity, Moving, OnRefusal, irqs, moving, routing};
use crate::cpu_set::{CpuSet, Irq};
use crate::design::{IrqSelector, RoutingTarget, Setting, SettingKind};
use crate::diagnostic::Kind;
use crate::recording::facts::Movability;
use crate::source::Span;

/// Where one interrupt goes, and the setting that says so.
struct Routed {
    mask: CpuSet,
    on_refusal: OnRefusal,
    span: Span,
    moves: bool,
}

impl Binding<'_> {
    /// One change per interrupt that is given a mask, in ascending order, and the targets that move them on.
    pub(super) fn routes(&mut self, settings: &[Setting]) -> (Vec<Change>, Vec<Moving>) {
        let mut routed: BTreeMap<Irq, Routed> = BTreeMap::new();
        let mut moving = Vec::new();
        for setting in settings {
            if let SettingKind::Route { irqs, target } = &setting.kind {
                moving.extend(self.route(irqs, target, setting.span, &mut routed));
            }
        }
        (routed.into_iter().filter_map(|(irq, routed)| self.affinity(irq, routed)).collect(), moving)
    }

    fn route(
        &mut self,
        selector: &IrqSelector,
        target: &RoutingTarget,
        span: Span,
        routed: &mut BTreeMap<Irq, Routed>,
    ) -> Option<Moving> {
        let irqs = self.movable(selector, target, span)?;
        let bound = routing::masks(&irqs, target, &self.cpus, self.facts)
            .and_then(|masks| moving::bind(target, &masks, &self.cpus, self.facts).map(|moving| (masks, moving)));
        let (masks, moving) = match bound {
            Ok(bound) => bound,
            Err(unresolved) => {
                self.unresolved(span, unresolved);
                return None;
            }
        };
        let moves = moving.is_some();
        if moving.as_ref().is_some_and(|moving| moving.cores.len() < 2) {
            self.remarks.push(format!("{}: there is one CPU only, so nothing will move", irqs::words(selector)));
        }
        if *target == RoutingTarget::Hint && masks.len() < irqs.len() {
            let without = irqs.len() - masks.len();
            self.remarks.push(format!("{}: {without} of {} have no hint and stay", irqs::words(selector), irqs.len()));
        }
        let on_refusal = if irqs::names_each(selector) { OnRefusal::Fail } else { OnRefusal::Skip };
        for (irq, mask) in masks {
            match routed.get(&irq) {
                Some(other) if other.mask != mask || other.moves || moves => {
                    let help = match selector {
                        IrqSelector::Number(_) => "take one of the two out".to_owned(),
                        _ => format!("leave it out of one of the two: `{} - irq {irq}`", irqs::words(selector)),
                    };
                    let message = if other.moves || moves {
                        format!("irq {irq} is routed twice, and one of the two moves it while a trial runs")
                    } else {
                        format!("irq {irq} is routed twice, to CPU {} and to CPU {mask}", other.mask)
                    };
                    let mut diagnostic = span.error(Kind::HostCannot { message, help });
                    diagnostic.related.push((other.span, "the other route".to_owned()));
                    self.diagnostics.push(diagnostic);
                }
                Some(_) => {}
                None => {
                    routed.insert(irq, Routed { mask, on_refusal, span, moves });
                }
            }
        }
        moving
    }

    /// The interrupts of a selector that can be moved. Those that cannot are a remark, or an error where the
    /// selector names them one by one or nothing is left.
    fn movable(&mut self, selector: &IrqSelector, target: &RoutingTarget, span: Span) -> Option<Vec<Irq>> {
        let words = irqs::words(selector);
        let all = match irqs::resolve(selector, self.facts) {
            Ok(all) => all,
            Err(unresolved) => {
                self.unresolved(span, unresolved);
                return None;
            }
        };
        if all.is_empty() {
            let help = "`irqlab irqs` lists what this host has";
            self.fail(span, format!("no interrupt of this host matches `{words}`"), help);
            return None;
        }
        let movability = |irq: &Irq| self.facts.irq(*irq).map_or(Movability::NoMask, |irq| irq.movability);
        let (movable, fixed): (Vec<Irq>, Vec<Irq>) =
            all.into_iter().partition(|irq| movability(irq) == Movability::Movable);
        if *target == RoutingTarget::Unchanged || fixed.is_empty() {
            return Some(movable);
        }
        let numbers = crate::cpu_set::to_list(fixed.iter().map(|irq| irq.0));
        let (noun, verb, them) = if fixed.len() == 1 { ("irq", "is", "it") } else { ("irqs", "are", "them") };
        let why = reasons(&fixed, movability);
        if movable.is_empty() || irqs::names_each(selector) {
            let help =
                "route other interrupts, or leave this one where the kernel put it: `irqlab irqs` says which move";
            self.fail(span, format!("{noun} {numbers} cannot be moved: {why}"), help);
            return None;
        }
        self.remarks.push(format!("{words}: {noun} {numbers} {verb} left where the kernel put {them}: {why}"));
        Some(movable)
    }

    fn affinity(&mut self, irq: Irq, routed: Routed) -> Option<Change> {
        let facts = self.facts.irq(irq)?;
        let identity = IrqIdentity {
            irq,
            actions: facts.actions.clone(),
            chip: facts.chip.clone(),
            hwirq: facts.hwirq.clone(),
            device: facts.device.clone(),
        };
        let kind = ChangeKind::Affinity { identity, mask: routed.mask, on_refusal: routed.on_refusal };
        Some(Change { kind, span: routed.span })
    }
}

/// Why these cannot be moved; each reason with its interrupts where they differ.
fn reasons(fixed: &[Irq], movability: impl Fn(&Irq) -> Movability) -> String {
    let (maskless, managed): (Vec<&Irq>, Vec<&Irq>) =
        fixed.iter().partition(|irq| movability(irq) == Movability::NoMask);
    let reasons = [(maskless, "no affinity mask"), (managed, "managed by the kernel (smp_affinity is read-only)")];
    let given: Vec<_> = reasons.into_iter().filter(|(irqs, _)| !irqs.is_empty()).collect();
    match given.as_slice() {
        [(_, reason)] => (*reason).to_owned(),
        several => {
            let with_irqs = several
                .iter()
                .map(|(irqs, reason)| format!("{} {reason}", crate::cpu_set::to_list(irqs.iter().map(|irq| irq.0))));
            with_irqs.collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_interrupt_is_given_its_own_reason() {
        let movability = |irq: &Irq| if irq.0 < 5 { Movability::NoMask } else { Movability::Managed };
        let managed = "managed by the kernel (smp_affinity is read-only)";
        assert_eq!(reasons(&[Irq(3), Irq(4)], movability), "no affinity mask");
        assert_eq!(reasons(&[Irq(9)], movability), managed);
        assert_eq!(reasons(&[Irq(3), Irq(4), Irq(9)], movability), format!("3-4 no affinity mask, 9 {managed}"));
    }
}
