//! `irqlab host`: what is known of a host and what on it would disturb an experiment.

use std::collections::BTreeMap;

use serde::Serialize;

use super::table::printable;
use crate::host::disturbances::{Disturbance, disturbances};
use crate::host::files::Files;
use crate::host::read_facts;
use crate::recording::facts::{HostFacts, Movability};

#[derive(Serialize)]
struct View<'a> {
    #[serde(flatten)]
    facts: &'a HostFacts,
    disturbances: Vec<BTreeMap<&'static str, String>>,
}

/// Facts and disturbances as text.
pub fn host(files: &dyn Files) -> String {
    let facts = read_facts(files);
    let mut text = String::new();
    for (group, lines) in groups(&facts).into_iter().filter(|(_, lines)| !lines.is_empty()) {
        text.push_str(group);
        text.push('\n');
        for (name, value) in lines.iter().filter(|(_, value)| !value.is_empty()) {
            let name = if name.is_empty() { String::new() } else { format!("{name:<18} ") };
            text.extend([format!("  {name}{}\n", printable(value))]);
        }
        text.push('\n');
    }
    text.push_str("would disturb an experiment\n");
    let found = disturbances(&facts);
    if found.is_empty() {
        text.push_str("  nothing known\n");
    }
    for Disturbance { what, remedy } in found {
        text.extend([format!("  - {}\n    remedy: {}\n", printable(&what), printable(&remedy))]);
    }
    text
}

/// Facts and disturbances as JSON.
pub fn host_json(files: &dyn Files) -> Result<String, serde_json::Error> {
    let facts = read_facts(files);
    let entry = |one: Disturbance| BTreeMap::from([("what", one.what), ("remedy", one.remedy)]);
    let disturbances = disturbances(&facts).into_iter().map(entry).collect();
    serde_json::to_string_pretty(&View { facts: &facts, disturbances }).map(|json| json + "\n")
}

type Lines = Vec<(&'static str, String)>;

fn groups(facts: &HostFacts) -> [(&'static str, Lines); 5] {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let topology = &facts.topology;
    let count = |movability| facts.irqs.iter().filter(|irq| irq.movability == movability).count();
    let kernel = vec![
        ("release", text(&facts.kernel_release)),
        ("version", text(&facts.kernel_version)),
        ("architecture", text(&facts.architecture)),
        ("command line", text(&facts.command_line)),
        ("clock source", text(&facts.clocksource)),
        ("virtualisation", text(&facts.virtualisation)),
        ("process 1", if facts.systemd { "systemd".to_owned() } else { "not systemd".to_owned() }),
    ];
    let nodes: Vec<String> = topology.nodes.iter().map(|(node, cpus)| format!("{node}: {cpus}")).collect();
    let mut governors: Vec<&String> = facts.governors.values().collect();
    governors.sort_unstable();
    governors.dedup();
    let cpus = vec![
        ("model", text(&facts.cpu_model)),
        ("clock", facts.cpu_mhz.map(|mhz| format!("{mhz:.0} MHz")).unwrap_or_default()),
        ("memory", facts.memory_bytes.map(|bytes| format!("{} MiB", bytes >> 20)).unwrap_or_default()),
        ("online", topology.online.to_string()),
        ("possible", topology.possible.to_string()),
        ("isolated", topology.isolated.to_string()),
        ("without ticks", topology.nohz_full.to_string()),
        ("SMT", text(&topology.smt_control)),
        ("NUMA nodes", nodes.join("; ")),
        ("governors", governors.into_iter().cloned().collect::<Vec<_>>().join(", ")),
    ];
    let interrupts = vec![
        ("movable", count(Movability::Movable).to_string()),
        ("managed", count(Movability::Managed).to_string()),
        ("without a mask", count(Movability::NoMask).to_string()),
        ("default mask", facts.default_affinity.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("/proc/irq", if facts.irq_writable { "writable".to_owned() } else { "read-only".to_owned() }),
        ("cpuset v1", text(&facts.cpuset.v1)),
        ("cpuset v2", text(&facts.cpuset.v2)),
    ];
    let devices = facts.devices.iter().map(|device| {
        let irqs = crate::cpu_set::to_list(device.irqs.iter().map(|irq| irq.0));
        let parts = [
            device.driver.clone(),
            device.pci.clone(),
            Some(format!("IRQ {irqs}")).filter(|_| !device.irqs.is_empty()),
        ];
        ("", format!("{:<10} {}", device.name, parts.into_iter().flatten().collect::<Vec<_>>().join(", ")))
    });
    let unreadable = facts.unreadable.iter().map(|what| ("", what.clone())).collect();
    [
        ("kernel", kernel),
        ("CPUs", cpus),
        ("interrupts", interrupts),
        ("devices", devices.collect()),
        ("could not be read", unreadable),
    ]
}
