//! The run and its host as tables of fact and value. The host's name is left out on purpose.

use std::collections::{BTreeMap, BTreeSet};

use super::Evidence;
use super::number::{fixed, significant};
use super::text::{Table, code, inline};
use crate::cpu_set::{CpuSet, to_list};
use crate::recording::HostFacts;

/// Run information: what the tables of old printed above their numbers, and the times.
pub(super) fn run(evidence: Evidence<'_>) -> Table {
    let header = &evidence.recording.header;
    let host = &header.host;
    let mut rows = Rows::default();
    rows.text("CPU type", host.cpu_model.as_deref());
    rows.put("CPU MHz", host.cpu_mhz.map(|mhz| fixed(mhz, usize::from(mhz.fract() != 0.0))));
    rows.put("number of CPUs", Some(cpus(host)));
    rows.text("kernel name", host.kernel_release.as_deref());
    rows.text("architecture", host.architecture.as_deref());
    rows.text("virtualisation", host.virtualisation.as_deref());
    rows.put("memory", host.memory_bytes.map(bytes));
    rows.put("started", Some(inline(&header.started_at)));
    rows.put("ended", evidence.recording.end.as_ref().map(|end| inline(&end.at)));
    rows.put(
        "taken up again",
        (!evidence.recording.resumed.is_empty()).then(|| format!("{} times", evidence.recording.resumed.len())),
    );
    rows.put("irqlab", Some(inline(&header.tool_version)));
    rows.table()
}

/// What else may matter.
pub(super) fn host(host: &HostFacts) -> Option<Table> {
    let topology = &host.topology;
    let mut rows = Rows::default();
    rows.text("kernel build", host.kernel_version.as_deref());
    rows.text("kernel command line", host.command_line.as_deref());
    rows.set("isolated CPUs", &topology.isolated);
    rows.set("nohz_full CPUs", &topology.nohz_full);
    let smt = match (topology.smt_active, topology.smt_control.as_deref()) {
        (Some(true), control) => {
            Some(format!("active{}", control.map(|c| format!(" ({})", inline(c))).unwrap_or_default()))
        }
        (Some(false), control) => {
            Some(format!("not active{}", control.map(|c| format!(" ({})", inline(c))).unwrap_or_default()))
        }
        (None, control) => control.map(inline),
    };
    rows.put("SMT", smt);
    let nodes: Vec<String> = topology.nodes.iter().map(|(node, cpus)| format!("{node}: {cpus}")).collect();
    rows.put("NUMA nodes", (nodes.len() > 1).then(|| nodes.join("; ")));
    rows.put("governor", governors(&host.governors));
    rows.text("clocksource", host.clocksource.as_deref());
    rows.put("default IRQ affinity", host.default_affinity.as_ref().map(CpuSet::to_string));
    rows.put("numbered IRQs", (!host.irqs.is_empty()).then(|| irqs(host)));
    rows.put("NMI watchdog", host.nmi_watchdog.map(|on| if on { "on".to_owned() } else { "off".to_owned() }));
    rows.put("mask and task writers running", (!host.writers.is_empty()).then(|| join(&host.writers)));
    rows.put("mitigations", mitigations(&host.mitigations));
    rows.put("service manager", Some(if host.systemd { "systemd".to_owned() } else { "none found".to_owned() }));
    rows.put("not readable", (!host.unreadable.is_empty()).then(|| join(&host.unreadable)));
    (!rows.0.is_empty()).then(|| rows.table())
}

/// `250 ms`, `5 s`, `5 min`.
pub(super) fn duration_ms(ms: u64) -> String {
    match ms {
        0 => "none".to_owned(),
        ms if ms % 60_000 == 0 => format!("{} min", ms / 60_000),
        ms if ms % 1000 == 0 => format!("{} s", ms / 1000),
        ms => format!("{ms} ms"),
    }
}

#[derive(Default)]
struct Rows(Vec<Vec<String>>);

impl Rows {
    fn put(&mut self, fact: &str, value: Option<String>) {
        self.0.extend(value.map(|value| vec![fact.to_owned(), value]));
    }

    fn text(&mut self, fact: &str, value: Option<&str>) {
        self.put(fact, value.filter(|value| !value.trim().is_empty()).map(inline));
    }

    fn set(&mut self, fact: &str, cpus: &CpuSet) {
        self.put(fact, (!cpus.is_empty()).then(|| cpus.to_string()));
    }

    fn table(self) -> Table {
        Table::new(&["fact", "value"], self.0)
    }
}

fn cpus(host: &HostFacts) -> String {
    let topology = &host.topology;
    let online = topology.online.len();
    let cores: BTreeSet<(u32, u32)> = topology.cpus.iter().map(|cpu| (cpu.package, cpu.core)).collect();
    let packages: BTreeSet<u32> = topology.cpus.iter().map(|cpu| cpu.package).collect();
    let plural = |count: usize, one: &str| if count == 1 { format!("1 {one}") } else { format!("{count} {one}s") };
    let text = format!("{online} online ({})", topology.online);
    if cores.is_empty() {
        return text;
    }
    format!("{text}, {}, {}", plural(cores.len(), "core"), plural(packages.len(), "package"))
}

fn governors(governors: &BTreeMap<u32, String>) -> Option<String> {
    let mut by_name: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (cpu, name) in governors {
        by_name.entry(name).or_default().push(*cpu);
    }
    let parts: Vec<String> =
        by_name.into_iter().map(|(name, cpus)| format!("{} on CPU {}", code(name), to_list(cpus))).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn irqs(host: &HostFacts) -> String {
    let movable = host.irqs.iter().filter(|irq| irq.movability == crate::recording::facts::Movability::Movable);
    format!("{}, {} of them movable", host.irqs.len(), movable.count())
}

fn mitigations(mitigations: &BTreeMap<String, String>) -> Option<String> {
    let concerned: Vec<String> = mitigations
        .iter()
        .filter(|(_, state)| !state.starts_with("Not affected"))
        .map(|(name, state)| format!("{}: {}", inline(name), inline(state)))
        .collect();
    match (mitigations.is_empty(), concerned.is_empty()) {
        (true, _) => None,
        (false, true) => Some("not affected by any known".to_owned()),
        (false, false) => Some(concerned.join("; ")),
    }
}

fn bytes(bytes: u64) -> String {
    let gib = bytes as f64 / f64::from(1 << 30);
    if gib >= 1.0 { format!("{} GiB", significant(gib, 3)) } else { format!("{} MiB", bytes >> 20) }
}

fn join(texts: &[String]) -> String {
    texts.iter().map(|text| inline(text)).collect::<Vec<_>>().join("; ")
}
