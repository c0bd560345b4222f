//! CPU sets, where each CPU sits, SMT and NUMA.

use std::collections::BTreeMap;

use super::counters::Table;
use super::reader::Reader;
use crate::cpu_set::{Cpu, CpuSet};
use crate::recording::facts::{CpuTopology, Topology};

const CPUS: &str = "/sys/devices/system/cpu";
const NODES: &str = "/sys/devices/system/node";

/// Reads the topology. Where sysfs was not captured, the columns of `/proc/interrupts` are the online CPUs.
pub(super) fn read(reader: &Reader, interrupts: Option<&Table>) -> Topology {
    let online = reader.cpu_list(&format!("{CPUS}/online"));
    let online = online.or_else(|| interrupts.map(Table::cpu_set)).unwrap_or_default();
    let nodes = nodes(reader, &online);
    let cpus = online.iter().map(|cpu| cpu_topology(reader, cpu, (&online, &nodes))).collect();
    Topology {
        possible: reader.cpu_list(&format!("{CPUS}/possible")).unwrap_or_default(),
        isolated: reader.cpu_list(&format!("{CPUS}/isolated")).unwrap_or_default(),
        nohz_full: reader.cpu_list(&format!("{CPUS}/nohz_full")).unwrap_or_default(),
        smt_control: reader.text(&format!("{CPUS}/smt/control")),
        smt_active: reader.number::<u8>(&format!("{CPUS}/smt/active")).map(|active| active == 1),
        online,
        cpus,
        nodes,
    }
}

/// Frequency governors; CPUs without cpufreq are absent.
pub(super) fn governors(reader: &Reader, online: &CpuSet) -> BTreeMap<u32, String> {
    let governor = |cpu: Cpu| reader.text(&format!("{CPUS}/cpu{cpu}/cpufreq/scaling_governor"));
    online.iter().filter_map(|cpu| Some((cpu.0, governor(cpu)?))).collect()
}

/// Whether CPUs may run above their base frequency.
pub(super) fn turbo(reader: &Reader) -> Option<bool> {
    if let Some(no_turbo) = reader.number::<u8>(&format!("{CPUS}/intel_pstate/no_turbo")) {
        return Some(no_turbo == 0);
    }
    reader.number::<u8>(&format!("{CPUS}/cpufreq/boost")).map(|boost| boost == 1)
}

fn nodes(reader: &Reader, online: &CpuSet) -> BTreeMap<u32, CpuSet> {
    let node = |number: u32| Some((number, reader.cpu_list(&format!("{NODES}/node{number}/cpulist"))?));
    let nodes: BTreeMap<u32, CpuSet> = reader.numbers(NODES, "node").into_iter().filter_map(node).collect();
    if nodes.is_empty() { BTreeMap::from([(0, online.clone())]) } else { nodes }
}

fn cpu_topology(reader: &Reader, cpu: Cpu, (online, nodes): (&CpuSet, &BTreeMap<u32, CpuSet>)) -> CpuTopology {
    let place = format!("{CPUS}/cpu{cpu}");
    let siblings = reader.cpu_list(&format!("{place}/topology/core_cpus_list"));
    let siblings = siblings.or_else(|| reader.cpu_list(&format!("{place}/topology/thread_siblings_list")));
    let mut siblings = siblings.unwrap_or_default().intersection(online);
    siblings.insert(cpu);
    CpuTopology {
        cpu,
        package: reader.number(&format!("{place}/topology/physical_package_id")).unwrap_or(0),
        core: reader.number(&format!("{place}/topology/core_id")).unwrap_or(cpu.0),
        node: nodes.iter().find(|(_, cpus)| cpus.contains(cpu)).map_or(0, |(node, _)| *node),
        siblings,
        cache: last_level_cache(reader, &place).intersection(online),
        hotpluggable: reader.files.exists(&format!("{place}/online")),
    }
}

/// CPUs that share the cache of the highest level; empty where none is described.
fn last_level_cache(reader: &Reader, place: &str) -> CpuSet {
    let caches = reader.numbers(&format!("{place}/cache"), "index");
    let level = |index: u32| {
        let cache = format!("{place}/cache/index{index}");
        let holds_data = reader.text(&format!("{cache}/type")).is_none_or(|kind| kind != "Instruction");
        Some((reader.number::<u32>(&format!("{cache}/level")).filter(|_| holds_data)?, cache))
    };
    let last = caches.into_iter().filter_map(level).max();
    last.and_then(|(_, cache)| reader.cpu_list(&format!("{cache}/shared_cpu_list"))).unwrap_or_default()
}
