//! CPU selectors resolved on a host's topology.

use crate::cpu_set::{Cpu, CpuSet};
use crate::design::{CpuSelector, TopologyUnit};
use crate::recording::HostFacts;
use crate::recording::facts::CpuTopology;

/// A host's CPUs as one treatment leaves them: SMT and offline settings take CPUs away.
#[derive(Debug, Clone)]
pub(super) struct Cpus<'a> {
    facts: &'a HostFacts,
    online: CpuSet,
}

/// Why a selector names no usable CPU here, in words, with what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unresolved {
    /// What is.
    pub(super) message: String,
    /// What to do.
    pub(super) help: String,
}

impl<'a> Cpus<'a> {
    /// The host's CPUs without `gone`.
    pub(super) fn new(facts: &'a HostFacts, gone: &CpuSet) -> Self {
        Cpus { facts, online: facts.topology.online.difference(gone) }
    }

    /// CPUs online under the treatment.
    pub(super) fn online(&self) -> &CpuSet {
        &self.online
    }

    /// The CPUs a selector names; never empty, only online ones. `near` is the NUMA node that `local` means.
    pub(super) fn resolve(&self, selector: &CpuSelector, near: Option<u32>) -> Result<CpuSet, Unresolved> {
        let set = self.evaluate(selector, near)?;
        if set.is_empty() {
            return Err(Unresolved {
                message: "this CPU set is empty on this host".to_owned(),
                help: format!("the host's online CPUs are {}", self.online),
            });
        }
        Ok(set)
    }

    fn evaluate(&self, selector: &CpuSelector, near: Option<u32>) -> Result<CpuSet, Unresolved> {
        let both = |left: &CpuSelector, right: &CpuSelector| {
            Ok::<_, Unresolved>((self.evaluate(left, near)?, self.evaluate(right, near)?))
        };
        Ok(match selector {
            CpuSelector::Core(number) => self.core(*number)?,
            CpuSelector::Difference(left, right) => {
                let (left, right) = both(left, right)?;
                left.difference(&right)
            }
            CpuSelector::FirstThreads => self.first_threads(),
            CpuSelector::Intersection(left, right) => {
                let (left, right) = both(left, right)?;
                left.intersection(&right)
            }
            CpuSelector::Isolated => self.facts.topology.isolated.intersection(&self.online),
            CpuSelector::List(list) => self.list(list)?,
            CpuSelector::Local => self.node_or_all(near),
            CpuSelector::LocalTo(name) => {
                let device = self.facts.device(name).ok_or_else(|| unknown_device(self.facts, name))?;
                self.node_or_all(device.node)
            }
            CpuSelector::Node(number) => self.node(*number)?,
            CpuSelector::Online => self.online.clone(),
            CpuSelector::Siblings(of) => {
                let of = self.evaluate(of, near)?;
                let cores = self.topology().filter(|cpu| of.contains(cpu.cpu)).map(|cpu| &cpu.siblings);
                cores.fold(CpuSet::new(), |set, core| set.union(core)).intersection(&self.online)
            }
            CpuSelector::Union(left, right) => {
                let (left, right) = both(left, right)?;
                left.union(&right)
            }
        })
    }

    /// The units of `set`, each cut to it, in the order interrupts are dealt out: for CPUs every core's first
    /// thread comes before any second one.
    pub(super) fn units(&self, unit: TopologyUnit, set: &CpuSet) -> Vec<CpuSet> {
        if unit == TopologyUnit::Cpu {
            let mut cpus: Vec<(usize, Cpu)> = set.iter().map(|cpu| (self.thread_index(cpu, set), cpu)).collect();
            cpus.sort();
            return cpus.into_iter().map(|(_, cpu)| CpuSet::single(cpu)).collect();
        }
        let mut units: Vec<CpuSet> = Vec::new();
        let mut placed = CpuSet::new();
        for cpu in set.iter() {
            if placed.contains(cpu) {
                continue;
            }
            let mut group = self.group(unit, cpu).intersection(set).difference(&placed);
            group.insert(cpu);
            placed = placed.union(&group);
            units.push(group);
        }
        units
    }

    /// One CPU of every core: the lowest online one.
    pub(super) fn first_threads(&self) -> CpuSet {
        self.online.iter().filter(|cpu| self.thread_index(*cpu, &self.online) == 0).collect()
    }

    /// How many CPUs of the same core stand before `cpu` in `set`.
    fn thread_index(&self, cpu: Cpu, set: &CpuSet) -> usize {
        let siblings = self.group(TopologyUnit::Core, cpu);
        siblings.iter().filter(|sibling| *sibling < cpu && set.contains(*sibling)).count()
    }

    fn group(&self, unit: TopologyUnit, cpu: Cpu) -> CpuSet {
        let Some(place) = self.topology().find(|place| place.cpu == cpu) else {
            return CpuSet::single(cpu);
        };
        match unit {
            TopologyUnit::Cache => place.cache.clone(),
            TopologyUnit::Core => place.siblings.clone(),
            TopologyUnit::Cpu => CpuSet::single(cpu),
            TopologyUnit::Node => self.facts.topology.nodes.get(&place.node).cloned().unwrap_or_default(),
        }
    }

    fn topology(&self) -> impl Iterator<Item = &'a CpuTopology> {
        self.facts.topology.cpus.iter()
    }

    fn core(&self, number: u32) -> Result<CpuSet, Unresolved> {
        let cores = self.units(TopologyUnit::Core, &self.online);
        cores.get(number as usize).cloned().ok_or_else(|| Unresolved {
            message: format!("this host has no core {number}"),
            help: format!("its {} cores are counted from 0 in order of their first CPU", cores.len()),
        })
    }

    fn list(&self, list: &CpuSet) -> Result<CpuSet, Unresolved> {
        let missing = list.difference(&self.online);
        if missing.is_empty() {
            return Ok(list.clone());
        }
        let (noun, verb) = if missing.len() == 1 { ("CPU", "is") } else { ("CPUs", "are") };
        Err(Unresolved {
            message: format!("{noun} {missing} {verb} not online here"),
            help: format!("the online CPUs are {}", self.online),
        })
    }

    fn node(&self, number: u32) -> Result<CpuSet, Unresolved> {
        let nodes = &self.facts.topology.nodes;
        let cpus = nodes.get(&number).map(|cpus| cpus.intersection(&self.online));
        cpus.ok_or_else(|| Unresolved {
            message: format!("this host has no NUMA node {number}"),
            help: format!("its nodes are {}", crate::cpu_set::to_list(nodes.keys().copied())),
        })
    }

    /// The CPUs of a device's node; all where the kernel names none or the node has none.
    fn node_or_all(&self, node: Option<u32>) -> CpuSet {
        let cpus = node.and_then(|node| self.facts.topology.nodes.get(&node));
        let cpus = cpus.map(|cpus| cpus.intersection(&self.online)).unwrap_or_default();
        if cpus.is_empty() { self.online.clone() } else { cpus }
    }
}

/// A device name that is not on the host.
pub(super) fn unknown_device(facts: &HostFacts, name: &str) -> Unresolved {
    let names: Vec<&str> = facts.devices.iter().map(|device| device.name.as_str()).collect();
    Unresolved {
        message: format!("this host has no device `{name}`"),
        help: match names.as_slice() {
            [] => "it has no network or block device at all".to_owned(),
            names => format!("its devices are {}", names.join(", ")),
        },
    }
}
