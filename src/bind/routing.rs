//! Routing targets: which mask each selected interrupt gets.

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use super::cpus::{Cpus, Unresolved};
use crate::cpu_set::{Cpu, CpuSet, Irq};
use crate::design::{CpuSelector, RoutingTarget, TopologyUnit};
use crate::recording::HostFacts;

/// The mask of each interrupt of `irqs` (in queue order) under a target, and where a moving one begins. An interrupt
/// without one stays as it is.
pub(super) fn masks(
    irqs: &[Irq],
    target: &RoutingTarget,
    cpus: &Cpus<'_>,
    facts: &HostFacts,
) -> Result<Vec<(Irq, CpuSet)>, Unresolved> {
    let node = |irq: Irq| facts.irq(irq).and_then(|irq| irq.node);
    match target {
        // Every interrupt began on the first CPU: there the patch of January 2003 pushed them.
        RoutingTarget::Balanced { over, .. } => {
            let first = |set: CpuSet| set.first().map(CpuSet::single).unwrap_or_default();
            irqs.iter().map(|irq| Ok((*irq, first(cpus.resolve(over, node(*irq))?)))).collect()
        }
        RoutingTarget::Each { unit, of } => deal(irqs, (*unit, of), cpus, &node),
        RoutingTarget::Hint => Ok(irqs
            .iter()
            .filter_map(|irq| {
                let hint = facts.irq(*irq)?.hint.as_ref()?.intersection(cpus.online());
                (!hint.is_empty()).then_some((*irq, hint))
            })
            .collect()),
        RoutingTarget::Random { over, seed } => {
            let mut generator = Xoshiro256StarStar::seed_from_u64(*seed);
            irqs.iter()
                .map(|irq| {
                    let set: Vec<Cpu> = cpus.resolve(over, node(*irq))?.iter().collect();
                    let pick = ((u128::from(generator.next_u64()) * set.len() as u128) >> 64) as usize;
                    Ok((*irq, CpuSet::single(set[pick])))
                })
                .collect()
        }
        RoutingTarget::Rotating { over, .. } => deal(irqs, (TopologyUnit::Cpu, over), cpus, &node),
        RoutingTarget::Set(set) => irqs.iter().map(|irq| Ok((*irq, cpus.resolve(set, node(*irq))?))).collect(),
        RoutingTarget::Unchanged => Ok(Vec::new()),
    }
}

/// Deals the interrupts out one per unit, round robin; interrupts of different nodes count separately where `of`
/// speaks of `local` CPUs.
fn deal(
    irqs: &[Irq],
    (unit, of): (TopologyUnit, &CpuSelector),
    cpus: &Cpus<'_>,
    node: &dyn Fn(Irq) -> Option<u32>,
) -> Result<Vec<(Irq, CpuSet)>, Unresolved> {
    let mut decks: Vec<(CpuSet, Vec<CpuSet>, usize)> = Vec::new();
    let mut masks = Vec::with_capacity(irqs.len());
    for irq in irqs {
        let set = cpus.resolve(of, node(*irq))?;
        let known = decks.iter().position(|(known, ..)| *known == set);
        let deck = known.unwrap_or_else(|| {
            let units = cpus.units(unit, &set);
            decks.push((set, units, 0));
            decks.len() - 1
        });
        let (_, units, next) = &mut decks[deck];
        masks.push((*irq, units[*next % units.len()].clone()));
        *next += 1;
    }
    Ok(masks)
}

#[cfg(test)]
mod tests;
