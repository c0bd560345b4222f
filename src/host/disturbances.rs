//! What on a host would disturb an experiment on interrupts, each with the remedy.

use crate::recording::facts::{HostFacts, Movability};

/// One thing that would disturb.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disturbance {
    /// What is so.
    pub what: String,
    /// What to do: a line for the `.exp` file where the language has one.
    pub remedy: String,
}

/// Clock sources that are read without leaving the CPU or the guest.
const CHEAP_CLOCKS: &[&str] =
    &["arch_sys_counter", "hyperv_clocksource_tsc_page", "kvm-clock", "riscv_clocksource", "timebase", "tod", "tsc"];

/// Names what would disturb an experiment on this host.
pub fn disturbances(facts: &HostFacts) -> Vec<Disturbance> {
    let mut found = Vec::new();
    let mut add = |what: String, remedy: &str| found.push(Disturbance { what, remedy: remedy.to_owned() });
    let topology = &facts.topology;
    for writer in &facts.writers {
        let remedy = format!("hold {{ service {writer} stopped }}");
        add(format!("`{writer}` is running and rewrites interrupt masks or moves tasks"), &remedy);
    }
    if !facts.irq_writable {
        add(
            "/proc/irq is on a read-only mount: no mask can be set".to_owned(),
            "run outside the container, or without ProtectKernelTunables=",
        );
    }
    if topology.online.len() < 2 {
        add(
            "one CPU is online: interrupts have nowhere to go".to_owned(),
            "require cpus >= 2, and a host with more CPUs",
        );
    }
    let managed: Vec<String> =
        facts.irqs.iter().filter(|irq| irq.movability == Movability::Managed).map(|irq| irq.irq.to_string()).collect();
    if !managed.is_empty() {
        let what =
            format!("{} managed by the kernel and cannot be moved: IRQ {}", count(managed.len()), shorten(&managed));
        add(what, "leave them out of the selector, or boot with isolcpus=managed_irq,…");
    }
    if let Some(kind) = &facts.virtualisation {
        add(
            format!("this is not bare metal (`{kind}`): the hypervisor takes CPU time and interrupts"),
            "measure host.steal, and repeat on bare metal before believing a small effect",
        );
    }
    if topology.smt_active == Some(true) {
        let can = topology.smt_control.as_deref() == Some("on");
        add(
            "SMT is on: a sibling thread slows the measured one".to_owned(),
            if can { "hold { smt off }" } else { "let cpus = first threads" },
        );
    }
    let slow: Vec<String> = facts
        .governors
        .iter()
        .filter(|(_, name)| *name != "performance")
        .map(|(cpu, name)| format!("{cpu} {name}"))
        .collect();
    if !slow.is_empty() {
        add(
            format!("the frequency governor is not `performance` on CPU {}", shorten(&slow)),
            "hold { governor performance }",
        );
    }
    if facts.turbo == Some(true) {
        add("turbo is on: the clock depends on temperature and on how many CPUs work".to_owned(), "hold { turbo off }");
    }
    if let Some(clock) = facts.clocksource.as_deref().filter(|clock| !CHEAP_CLOCKS.contains(clock)) {
        add(format!("the clock source is `{clock}`, slow to read"), "boot with tsc=reliable where the TSC is sound");
    }
    if facts.nmi_watchdog == Some(true) {
        add("the NMI watchdog is on: it interrupts busy CPUs".to_owned(), "hold { sysctl kernel.nmi_watchdog=0 }");
    }
    if !topology.isolated.is_empty() {
        add(
            format!("CPUs {} are isolated: the scheduler puts nothing there by itself", topology.isolated),
            "name the CPUs of every workload with `on`",
        );
    }
    if !topology.nohz_full.is_empty() {
        add(
            format!("CPUs {} run without ticks: system calls cost more there", topology.nohz_full),
            "keep compared workloads on the same kind of CPU",
        );
    }
    found
}

fn count(number: usize) -> String {
    if number == 1 { "1 interrupt".to_owned() } else { format!("{number} interrupts") }
}

fn shorten(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cpu_set::CpuSet;

    #[test]
    fn each_disturbance_has_its_remedy_and_a_quiet_host_has_none() {
        let mut facts = HostFacts { irq_writable: true, clocksource: Some("tsc".to_owned()), ..HostFacts::default() };
        facts.topology.online = CpuSet::parse_list("0-3").unwrap();
        assert_eq!(disturbances(&facts), []);
        facts.writers = vec!["irqbalance".to_owned()];
        facts.topology.smt_active = Some(true);
        facts.topology.smt_control = Some("on".to_owned());
        facts.governors.insert(2, "powersave".to_owned());
        facts.clocksource = Some("hpet".to_owned());
        facts.nmi_watchdog = Some(true);
        let remedies: Vec<String> = disturbances(&facts).into_iter().map(|disturbance| disturbance.remedy).collect();
        assert_eq!(
            remedies,
            [
                "hold { service irqbalance stopped }",
                "hold { smt off }",
                "hold { governor performance }",
                "boot with tsc=reliable where the TSC is sound",
                "hold { sysctl kernel.nmi_watchdog=0 }",
            ]
        );
        facts.topology.smt_control = Some("2".to_owned());
        assert!(disturbances(&facts).iter().any(|disturbance| disturbance.remedy == "let cpus = first threads"));
    }
}
