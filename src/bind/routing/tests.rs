//! Targets over generated topologies: small and large hosts, threads or none, CPUs offline, holes in the numbering, cores
//! of two kinds, NUMA nodes without CPUs.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::super::moving;
use super::*;
use crate::bind::Method;
use crate::recording::facts::{CpuTopology, IrqFacts, Movability, Topology};

/// What a host is made of.
#[derive(Debug, Clone)]
struct Layout {
    /// Threads of each core: hybrid hosts have cores of one and of two.
    threads: Vec<u32>,
    nodes: u32,
    /// After so many numbers one is left out; 0 for none.
    hole_every: u32,
    /// Numbers that are offline.
    gone: CpuSet,
}

/// A host numbered as x86 does: second threads behind all first ones. One more node has no CPU.
fn host(layout: &Layout) -> HostFacts {
    let cores = layout.threads.len() as u32;
    let number = |place: u32| Cpu(place + place.checked_div(layout.hole_every).unwrap_or(0));
    let second: Vec<u32> = (0..cores).filter(|core| layout.threads[*core as usize] > 1).collect();
    let mut places: Vec<(Cpu, u32)> = (0..cores).map(|core| (number(core), core)).collect();
    places.extend(second.iter().zip(0..).map(|(core, place)| (number(cores + place), *core)));
    let all: CpuSet = places.iter().map(|(cpu, _)| *cpu).collect();
    let mut online = all.difference(&layout.gone);
    if online.is_empty() {
        online = CpuSet::single(Cpu(0));
    }
    places.retain(|(cpu, _)| online.contains(*cpu));
    let nodes = layout.nodes.min(cores);
    let node_of = |core: u32| core * nodes / cores;
    let mut by_core: BTreeMap<u32, CpuSet> = BTreeMap::new();
    let mut by_node: BTreeMap<u32, CpuSet> = (0..=nodes).map(|node| (node, CpuSet::new())).collect();
    for (cpu, core) in &places {
        by_core.entry(*core).or_default().insert(*cpu);
        by_node.entry(node_of(*core)).or_default().insert(*cpu);
    }
    places.sort_unstable();
    let cpus = places.iter().map(|(cpu, core)| CpuTopology {
        cpu: *cpu,
        package: node_of(*core),
        core: *core,
        node: node_of(*core),
        siblings: by_core[core].clone(),
        cache: by_node[&node_of(*core)].clone(),
        hotpluggable: true,
    });
    let topology = Topology { possible: all, online, cpus: cpus.collect(), nodes: by_node, ..Topology::default() };
    HostFacts { topology, ..HostFacts::default() }
}

fn regular(cores: usize, threads: u32) -> HostFacts {
    host(&Layout { threads: vec![threads; cores], nodes: 1, hole_every: 0, gone: CpuSet::new() })
}

/// 1 to 1,024 CPUs.
fn layouts() -> impl Strategy<Value = Layout> {
    let threads = prop_oneof![
        proptest::collection::vec(1_u32..=1, 1..1024),
        proptest::collection::vec(2_u32..=2, 1..512),
        proptest::collection::vec(1_u32..=2, 1..600),
        proptest::collection::vec(1_u32..=2, 1..6),
    ];
    (threads, 1_u32..5, 0_u32..9, proptest::collection::vec(1_u32..1200, 0..300)).prop_map(
        |(threads, nodes, hole_every, gone)| {
            let gone = gone.into_iter().map(Cpu).collect();
            Layout { threads, nodes, hole_every, gone }
        },
    )
}

/// The core of each online CPU.
fn cores_of(facts: &HostFacts) -> BTreeMap<Cpu, u32> {
    facts.topology.cpus.iter().map(|place| (place.cpu, place.core)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_interrupt_is_placed_and_no_unit_twice_before_all_once(
        layout in layouts(), irqs in 1_u32..200, which in 0_usize..4,
    ) {
        let facts = host(&layout);
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

    #[test]
    fn second_threads_wait_until_every_core_has_one(layout in layouts()) {
        let facts = host(&layout);
        let cpus = Cpus::new(&facts, &CpuSet::new());
        let core_of = cores_of(&facts);
        let cores: BTreeSet<u32> = core_of.values().copied().collect();
        let irqs: Vec<Irq> = (0..core_of.len() as u32).map(Irq).collect();
        let target = RoutingTarget::Each { unit: TopologyUnit::Cpu, of: CpuSelector::Online };
        let masks = masks(&irqs, &target, &cpus, &facts).unwrap();
        let first: BTreeSet<u32> = masks[..cores.len()].iter().map(|(_, mask)| core_of[&mask.first().unwrap()]).collect();
        prop_assert_eq!(first, cores);
        let all: CpuSet = masks.iter().filter_map(|(_, mask)| mask.first()).collect();
        prop_assert_eq!(&all, &facts.topology.online);
    }

    #[test]
    fn a_moving_target_begins_in_its_set_and_knows_every_core_of_it(
        layout in layouts(), irqs in 1_u32..64, balanced in proptest::bool::ANY, keep in 1_usize..40,
    ) {
        let facts = host(&layout);
        let cpus = Cpus::new(&facts, &CpuSet::new());
        let over: CpuSet = facts.topology.online.iter().take(keep).collect();
        let (list, every_ms) = (CpuSelector::List(over.clone()), 10);
        let target = if balanced {
            RoutingTarget::Balanced { over: list, every_ms }
        } else {
            RoutingTarget::Rotating { over: list, every_ms }
        };
        let irqs: Vec<Irq> = (0..irqs).map(Irq).collect();
        let starts = masks(&irqs, &target, &cpus, &facts).unwrap();
        let moving = moving::bind(&target, &starts, &cpus, &facts).unwrap().unwrap();
        prop_assert_eq!(moving.method, if balanced { Method::Balanced } else { Method::Rotating });
        prop_assert_eq!(moving.irqs.len(), irqs.len());
        for irq in &moving.irqs {
            prop_assert!(irq.over == over && over.contains(irq.start));
            prop_assert!(!balanced || Some(irq.start) == over.first());
        }
        let (core_of, mut seen) = (cores_of(&facts), CpuSet::new());
        for core in &moving.cores {
            prop_assert!(!core.is_empty() && core.intersection(&seen).is_empty());
            let of: BTreeSet<u32> = core.iter().map(|cpu| core_of[&cpu]).collect();
            prop_assert_eq!(of.len(), 1);
            seen = seen.union(core);
        }
        prop_assert_eq!(&seen, &over);
        let cores: BTreeSet<u32> = over.iter().map(|cpu| core_of[&cpu]).collect();
        prop_assert!(moving.cores.len() == cores.len() || cores.len() == 1);
    }

    #[test]
    fn local_and_random_stay_online_and_near(layout in layouts(), node in 0_u32..6, seed in 0_u64..1000) {
        let mut facts = host(&layout);
        facts.irqs = (0..8).map(|irq| near(irq, Some(node))).collect();
        let cpus = Cpus::new(&facts, &CpuSet::new());
        let irqs: Vec<Irq> = (0..8).map(Irq).collect();
        let wanted = facts.topology.nodes.get(&node).cloned().unwrap_or_default();
        // A node without CPUs, or one that is not there, is near to nothing.
        let wanted = if wanted.is_empty() { facts.topology.online.clone() } else { wanted };
        for (_, mask) in masks(&irqs, &RoutingTarget::Set(CpuSelector::Local), &cpus, &facts).unwrap() {
            prop_assert_eq!(&mask, &wanted);
        }
        let random = RoutingTarget::Random { over: CpuSelector::Local, seed };
        for (_, mask) in masks(&irqs, &random, &cpus, &facts).unwrap() {
            prop_assert!(mask.len() == 1 && mask.is_subset(&wanted));
        }
    }
}

fn near(irq: u32, node: Option<u32>) -> IrqFacts {
    IrqFacts {
        irq: Irq(irq),
        actions: vec![format!("eth0-{irq}")],
        chip: String::new(),
        hwirq: None,
        affinity: None,
        effective: None,
        hint: None,
        node,
        movability: Movability::Movable,
        device: None,
        driver: None,
        pci: None,
        class: crate::recording::facts::DeviceClass::Net,
    }
}

#[test]
fn second_threads_come_after_every_core_has_one() {
    let facts = regular(2, 2);
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
    let facts = regular(2, 2);
    let cpus = Cpus::new(&facts, &CpuSet::parse_list("2-3").unwrap());
    assert_eq!(cpus.resolve(&CpuSelector::Online, None).unwrap().to_string(), "0-1");
    let missing = cpus.resolve(&CpuSelector::List(CpuSet::parse_list("0-3").unwrap()), None).unwrap_err();
    assert_eq!(missing.message, "CPUs 2-3 are not online here");
    let target = RoutingTarget::Balanced { over: CpuSelector::Online, every_ms: 10 };
    let starts = masks(&[Irq(9)], &target, &cpus, &facts).unwrap();
    let moving = moving::bind(&target, &starts, &cpus, &facts).unwrap().unwrap();
    assert_eq!(moving.irqs[0].over.to_string(), "0-1", "a mover never chooses a CPU that is offline then");
}

#[test]
fn a_hint_is_cut_to_the_cpus_there_are_and_without_one_an_interrupt_stays() {
    let mut facts = regular(4, 1);
    facts.irqs = (0..3).map(|irq| near(irq, None)).collect();
    facts.irqs[0].hint = CpuSet::parse_list("2-3").ok();
    facts.irqs[2].hint = CpuSet::parse_list("3").ok();
    let cpus = Cpus::new(&facts, &CpuSet::parse_list("3").unwrap());
    let hinted = masks(&[Irq(0), Irq(1), Irq(2)], &RoutingTarget::Hint, &cpus, &facts).unwrap();
    assert_eq!(hinted, [(Irq(0), CpuSet::parse_list("2").unwrap())]);
    assert_eq!(masks(&[Irq(0)], &RoutingTarget::Unchanged, &cpus, &facts).unwrap(), []);
}

#[test]
fn a_seed_gives_the_same_random_masks_again() {
    let facts = regular(4, 1);
    let cpus = Cpus::new(&facts, &CpuSet::new());
    let irqs: Vec<Irq> = (0..32).map(Irq).collect();
    let with = |seed| masks(&irqs, &RoutingTarget::Random { over: CpuSelector::Online, seed }, &cpus, &facts).unwrap();
    assert_eq!(with(1), with(1));
    assert_ne!(with(1), with(2));
    assert!(with(1).iter().all(|(_, mask)| mask.len() == 1));
}
