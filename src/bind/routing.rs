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
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::recording::facts::{CpuTopology, Topology};

    /// A host of `cores` cores with `threads` threads, numbered as x86 does (second threads behind all first ones),
    /// `nodes` nodes, and every CPU of `gone` offline.
    fn host(cores: u32, threads: u32, nodes: u32, gone: &CpuSet) -> HostFacts {
        let all: CpuSet = (0..cores * threads).map(Cpu).collect();
        let online = all.difference(gone);
        let core_of = |cpu: Cpu| cpu.0 % cores;
        let node_of = |cpu: Cpu| core_of(cpu) * nodes / cores;
        let with = |wanted: &dyn Fn(Cpu) -> bool| online.iter().filter(|cpu| wanted(*cpu)).collect::<CpuSet>();
        let cpus = online.iter().map(|cpu| CpuTopology {
            cpu,
            package: node_of(cpu),
            core: core_of(cpu),
            node: node_of(cpu),
            siblings: with(&|other| core_of(other) == core_of(cpu)),
            cache: with(&|other| node_of(other) == node_of(cpu)),
            hotpluggable: true,
        });
        let nodes: BTreeMap<u32, CpuSet> = (0..nodes).map(|node| (node, with(&|cpu| node_of(cpu) == node))).collect();
        let topology =
            Topology { possible: all, online: online.clone(), cpus: cpus.collect(), nodes, ..Topology::default() };
        HostFacts { topology, ..HostFacts::default() }
    }

    proptest! {
        #[test]
        fn every_interrupt_is_placed_and_no_unit_twice_before_all_once(
            cores in 1_u32..48, threads in 1_u32..=2, nodes in 1_u32..4, irqs in 1_u32..200,
            gone in proptest::collection::vec(1_u32..96, 0..20), which in 0_usize..4,
        ) {
            let gone: CpuSet = gone.into_iter().map(Cpu).collect();
            let facts = host(cores, threads, nodes.min(cores), &gone);
            let cpus = Cpus::new(&facts, &CpuSet::new());
            let unit = [TopologyUnit::Cache, TopologyUnit::Core, TopologyUnit::Cpu, TopologyUnit::Node][which];
            let irqs: Vec<Irq> = (0..irqs).map(Irq).collect();
            let target = RoutingTarget::Each { unit, of: CpuSelector::Online };
            let masks = masks(&irqs, &target, &cpus, &facts).unwrap();
            prop_assert_eq!(masks.len(), irqs.len());
            let mut counts: BTreeMap<CpuSet, usize> = BTreeMap::new();
            for (_, mask) in &masks {
                prop_assert!(!mask.is_empty() && mask.is_subset(&facts.topology.online));
                *counts.entry(mask.clone()).or_default() += 1;
            }
            let units = cpus.units(unit, cpus.online()).len();
            prop_assert_eq!(counts.len(), units.min(irqs.len()));
            let (least, most) = (counts.values().min().unwrap(), counts.values().max().unwrap());
            prop_assert!(most - least <= 1);
            let disjoint = counts.keys().map(CpuSet::len).sum::<usize>();
            prop_assert!(disjoint <= facts.topology.online.len());
        }
    }

    #[test]
    fn second_threads_come_after_every_core_has_one() {
        let facts = host(2, 2, 1, &CpuSet::new());
        let cpus = Cpus::new(&facts, &CpuSet::new());
        // x86 numbering: 0 and 2 share core 0, 1 and 3 share core 1.
        let order: Vec<String> = cpus.units(TopologyUnit::Cpu, cpus.online()).iter().map(CpuSet::to_string).collect();
        assert_eq!(order, ["0", "1", "2", "3"]);
        let set = CpuSet::parse_list("0,2-3").unwrap();
        let order: Vec<String> = cpus.units(TopologyUnit::Cpu, &set).iter().map(CpuSet::to_string).collect();
        assert_eq!(order, ["0", "3", "2"]);
    }

    #[test]
    fn cpus_a_treatment_takes_away_are_not_used() {
        let facts = host(2, 2, 1, &CpuSet::new());
        let cpus = Cpus::new(&facts, &CpuSet::parse_list("2-3").unwrap());
        assert_eq!(cpus.resolve(&CpuSelector::Online, None).unwrap().to_string(), "0-1");
        let missing = cpus.resolve(&CpuSelector::List(CpuSet::parse_list("0-3").unwrap()), None).unwrap_err();
        assert_eq!(missing.message, "CPUs 2-3 are not online here");
    }

    #[test]
    fn a_seed_gives_the_same_random_masks_again() {
        let facts = host(4, 1, 1, &CpuSet::new());
        let cpus = Cpus::new(&facts, &CpuSet::new());
        let irqs: Vec<Irq> = (0..32).map(Irq).collect();
        let with =
            |seed| masks(&irqs, &RoutingTarget::Random { over: CpuSelector::Online, seed }, &cpus, &facts).unwrap();
        assert_eq!(with(1), with(1));
        assert_ne!(with(1), with(2));
        assert!(with(1).iter().all(|(_, mask)| mask.len() == 1));
    }
}
