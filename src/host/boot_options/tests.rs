//! Each option on captured facts, changed as the option would change them.

use std::collections::BTreeMap;

use super::*;
use crate::cpu_set::Irq;
use crate::host::files::Root;
use crate::host::read_facts;
use crate::recording::NmiGrowth;

/// A captured host of four CPUs with IO-APIC and MSI rows, which reads `nmi_watchdog` 1 under emulation.
fn lab() -> HostFacts {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/hosts/lab-4cpu-e1000-megasas");
    let mut facts = read_facts(&Root::new(root));
    facts.nmi_watchdog = Some(true);
    facts.performance_counters = None;
    facts
}

fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

/// As `noapic` leaves it: the same lines on the 8259.
fn pic(facts: &mut HostFacts) {
    for irq in facts.irqs.iter_mut().filter(|irq| irq.chip.contains("IO-APIC")) {
        "XT-PIC".clone_into(&mut irq.chip);
    }
}

fn grew(facts: &mut HostFacts, cpus: &str) {
    facts.nmi_growth = Some(NmiGrowth { busy_ms: 22_000, busy: set("0-3"), grew: set(cpus) });
}

type Change = fn(&mut HostFacts);

#[test]
fn each_option_is_told_by_what_the_kernel_shows() {
    let one_cpu: Change = |facts| facts.topology.online = set("0");
    let smt: fn(&mut HostFacts, &str, bool) = |facts, control, active| {
        facts.topology.smt_control = Some(control.to_owned());
        facts.topology.smt_active = Some(active);
    };
    let vulnerabilities: fn(&mut HostFacts, [&str; 2]) = |facts, states| {
        let files = ["meltdown", "spectre_v2"].map(str::to_owned);
        facts.mitigations = files.into_iter().zip(states.map(str::to_owned)).collect();
    };
    let cases: &[(&str, Change, Option<bool>, &str)] = &[
        ("noapic", |_| (), Some(false), "3 IO-APIC rows, no XT-PIC rows"),
        ("noapic", pic, Some(true), "no IO-APIC rows, 3 XT-PIC rows"),
        ("noapic", |facts| facts.irqs.clear(), None, "no IO-APIC rows, no XT-PIC rows: this machine shows neither"),
        ("nosmp", |_| (), Some(false), "4 of 4 possible CPUs online"),
        ("nosmp", one_cpu, Some(true), "1 of 4 possible CPUs online"),
        ("maxcpus=0", one_cpu, Some(true), "1 of 4 possible CPUs online"),
        ("maxcpus=2", |facts| facts.topology.online = set("0-1"), Some(true), "2 of 4 possible CPUs online"),
        ("maxcpus=2", |_| (), Some(false), "4 of 4 possible CPUs online"),
        ("maxcpus=8", |_| (), None, "4 of 4 possible CPUs online: this machine has no more, so that nothing shows"),
        ("nr_cpus=2", |_| (), Some(false), "4 possible CPUs"),
        (
            "nr_cpus=2",
            |facts| {
                facts.topology.possible = set("0-1");
                facts.command_line = Some("quiet nr-cpus=2".to_owned());
            },
            Some(true),
            "2 possible CPUs",
        ),
        ("nr_cpus=4", |_| (), None, "4 possible CPUs: this machine may have no more, so that nothing shows"),
        ("nolapic", one_cpu, Some(false), "1 of 4 CPUs online, 3 IO-APIC rows, 6 PCI-MSI rows"),
        (
            "nolapic",
            |facts| {
                facts.topology.online = set("0");
                facts.irqs.truncate(3);
                pic(facts);
            },
            Some(true),
            "1 of 4 CPUs online, no IO-APIC rows, no PCI-MSI rows",
        ),
        ("nosmt", |facts| facts.topology.smt_control = None, Some(false), "this kernel has no SMT control"),
        (
            "nosmt",
            |facts| {
                (facts.topology.smt_control, facts.topology.smt_active) =
                    (Some("notsupported".to_owned()), Some(false));
            },
            Some(false),
            "smt/control reads `notsupported`: there is no SMT to switch off",
        ),
        ("pci=noaer,nomsi", |_| (), Some(false), "6 PCI-MSI rows, 9 interrupts in use"),
        ("pci=nomsi", pic, Some(false), "6 PCI-MSI rows, 9 interrupts in use"),
        ("pci=nomsi", |facts| facts.irqs.truncate(3), Some(true), "no PCI-MSI rows, 3 interrupts in use"),
        ("pci=noaer", |_| (), None, "not on the command line; the kernel shows nothing more of it"),
        ("isolcpus=2-3", |_| (), Some(false), "isolated reads no CPU"),
        ("isolcpus=2-3", |facts| facts.topology.isolated = set("2-3"), Some(true), "isolated reads 2-3"),
        ("isolcpus=2-N", |facts| facts.topology.isolated = set("2-3"), Some(true), "isolated reads 2-3"),
        ("isolcpus=2-9", |facts| facts.topology.isolated = set("2-3"), Some(true), "isolated reads 2-3"),
        ("isolcpus=2-3", |facts| facts.topology.isolated = set("1-3"), Some(false), "isolated reads 1-3"),
        (
            "isolcpus=managed_irq,domain,2-3",
            |facts| facts.topology.isolated = set("2-3"),
            Some(true),
            "isolated reads 2-3 (its flags show only on the command line)",
        ),
        ("isolcpus=managed_irq,2-3", |_| (), None, "not on the command line; the kernel shows nothing more of it"),
        ("nohz_full=0-3", |facts| facts.topology.nohz_full = set("1-3"), Some(true), "nohz_full reads 1-3"),
        ("nohz_full=1-3", |_| (), Some(false), "nohz_full reads no CPU"),
        (
            "irqaffinity=1",
            |facts| facts.default_affinity = Some(set("0-1")),
            Some(true),
            "default_smp_affinity reads 0-1 (it can be changed without a boot)",
        ),
        (
            "irqaffinity=1",
            |facts| facts.default_affinity = Some(set("0-3")),
            Some(false),
            "default_smp_affinity reads 0-3 (it can be changed without a boot)",
        ),
        ("rcu_nocbs=1-3", |_| (), None, "not on the command line; the kernel shows nothing more of it"),
        (
            "rcu_nocbs=1-3",
            |facts| facts.command_line = Some("rcu-nocbs=1-3 -- x".to_owned()),
            None,
            "on the command line; the kernel shows nothing more of it",
        ),
        (
            "noirqbalance",
            |facts| facts.command_line = Some("quiet -- noirqbalance".to_owned()),
            None,
            "not on the command line; the kernel shows nothing more of it",
        ),
        ("nmi_watchdog=1", |facts| facts.nmi_watchdog = None, Some(false), "there is no kernel/nmi_watchdog"),
        ("nmi_watchdog=0", |facts| facts.nmi_watchdog = Some(false), Some(true), "kernel/nmi_watchdog reads 0"),
        ("nmi_watchdog=panic,1", |facts| facts.nmi_watchdog = Some(false), Some(false), "kernel/nmi_watchdog reads 0"),
        ("nmi_watchdog=1", |_| (), None, "kernel/nmi_watchdog reads 1; nobody looked whether the NMI row grows"),
        (
            "nmi_watchdog=1",
            |facts| facts.performance_counters = Some(false),
            Some(false),
            "kernel/nmi_watchdog reads 1; these CPUs show no performance counters to make one of",
        ),
        (
            "nmi_watchdog=1",
            |facts| facts.architecture = Some("aarch64".to_owned()),
            None,
            "kernel/nmi_watchdog reads 1; only x86 counts it in the NMI row",
        ),
        (
            "nmi_watchdog=1",
            |facts| grew(facts, ""),
            Some(false),
            "kernel/nmi_watchdog reads 1; the NMI row stood still while CPUs 0-3 were busy for 22 s",
        ),
        (
            "nmi_watchdog=0",
            |facts| grew(facts, ""),
            Some(true),
            "kernel/nmi_watchdog reads 1; the NMI row stood still while CPUs 0-3 were busy for 22 s",
        ),
        (
            "nmi_watchdog=1",
            |facts| grew(facts, "0-2"),
            Some(true),
            "kernel/nmi_watchdog reads 1; the NMI row grew on CPUs 0-2 while CPUs 0-3 were busy for 22 s",
        ),
        (
            "nmi_watchdog=0",
            |facts| grew(facts, "0-2"),
            Some(false),
            "kernel/nmi_watchdog reads 1; the NMI row grew on CPUs 0-2 while CPUs 0-3 were busy for 22 s",
        ),
        ("threadirqs", |_| (), Some(false), "0 of 9 interrupts in use have a kernel thread"),
        (
            "threadirqs",
            |facts| facts.threaded_irqs = vec![Irq(4)],
            None,
            "1 of 9 interrupts in use have a kernel thread",
        ),
        (
            "threadirqs",
            |facts| {
                facts.threaded_irqs = facts.irqs[1..].iter().map(|irq| irq.irq).collect();
                facts.kernel_version = Some("#1 SMP PREEMPT_RT Debian".to_owned());
            },
            Some(true),
            "8 of 9 interrupts in use have a kernel thread, as always under PREEMPT_RT",
        ),
        (
            "clocksource=hpet",
            |facts| facts.clocksource = Some("tsc".to_owned()),
            Some(false),
            "the clock source is `tsc`",
        ),
        (
            "intel_idle.max_cstate=1",
            |facts| facts.module_parameters = BTreeMap::from([("intel_idle.max_cstate".to_owned(), "1".to_owned())]),
            Some(true),
            "/sys/module/intel_idle/parameters/max_cstate reads `1`",
        ),
        (
            "intel-idle.max-cstate=1",
            |facts| facts.module_parameters = BTreeMap::from([("intel_idle.max_cstate".to_owned(), "9".to_owned())]),
            Some(false),
            "/sys/module/intel_idle/parameters/max_cstate reads `9`",
        ),
        (
            "printk.time=1",
            |facts| facts.module_parameters = BTreeMap::from([("printk.time".to_owned(), "Y".to_owned())]),
            Some(true),
            "/sys/module/printk/parameters/time reads `Y`",
        ),
    ];
    for (option, change, in_force, text) in cases {
        let mut facts = lab();
        change(&mut facts);
        let found = evidence(&facts, option);
        assert_eq!((found.in_force, &*found.evidence), (*in_force, *text), "{option}");
    }
    for (option, control, active, in_force) in [
        ("nosmt", "off", false, true),
        ("nosmt", "on", true, false),
        ("nosmt", "off", true, false),
        ("nosmt", "forceoff", false, true),
        ("nosmt=force", "off", false, false),
        ("nosmt=force", "forceoff", false, true),
        ("nosmt", "notimplemented", false, false),
        ("nosmt", "2", true, false),
    ] {
        let mut facts = lab();
        smt(&mut facts, control, active);
        assert_eq!(evidence(&facts, option).in_force, Some(in_force), "{option} {control}");
    }
    for (option, states, in_force) in [
        ("mitigations=off", ["Vulnerable", "Vulnerable, IBPB: disabled"], Some(true)),
        ("mitigations=off", ["Mitigation: PTI", "Vulnerable"], Some(false)),
        ("mitigations=off", ["Mitigation: TSX disabled", "Vulnerable"], Some(true)),
        ("mitigations=off", ["Not affected", "Not affected"], None),
        ("nopti", ["Vulnerable", "Mitigation: Retpolines"], Some(true)),
        ("pti=off", ["Mitigation: PTI", "Vulnerable"], Some(false)),
        ("nopti", ["Not affected", "Vulnerable"], None),
        ("mitigations=auto", ["Mitigation: PTI", "Vulnerable"], None),
    ] {
        let mut facts = lab();
        vulnerabilities(&mut facts, states);
        assert_eq!(evidence(&facts, option).in_force, in_force, "{option} {states:?}");
    }
}

#[test]
fn a_level_without_an_option_needs_it_absent() {
    let named = ["noapic", "nmi_watchdog=1"];
    let fits = |facts: &HostFacts, wanted: &[&str]| judge(facts, wanted, &named).fits();
    let mut plain = lab();
    plain.nmi_watchdog = Some(false);
    assert!(fits(&plain, &[]));
    assert!(!fits(&plain, &["noapic"]));
    let mut both = plain.clone();
    pic(&mut both);
    both.nmi_watchdog = Some(true);
    grew(&mut both, "0-3");
    let levels: [&[&str]; 4] = [&[], &["noapic"], &["nmi_watchdog=1"], &["noapic", "nmi_watchdog=1"]];
    assert_eq!(levels.map(|level| fits(&both, level)), [false, false, false, true]);
    let judged = judge(&both, &["noapic"], &named);
    assert_eq!(judged.missing, []);
    assert_eq!(judged.unwanted.len(), 1, "{judged:?}");
    assert!(judged.unwanted[0].evidence.contains("grew on CPUs 0-3"));
}

#[test]
fn the_command_line_proves_nothing_where_the_kernel_shows_more() {
    let mut told = lab();
    told.command_line = Some("quiet noapic rcu_nocbs=1-3".to_owned());
    assert!(!judge(&told, &["noapic"], &["noapic"]).fits(), "IO-APIC rows are there");
    assert!(judge(&told, &["rcu-nocbs=1-3"], &["rcu_nocbs=1-3"]).fits(), "there is nothing else to go by");
    assert!(!judge(&told, &[], &["rcu_nocbs=1-3"]).fits());
    assert!(!judge(&told, &["rcu_nocbs=1-2"], &["rcu_nocbs=1-2"]).fits());
}

#[test]
fn of_an_option_given_twice_the_last_counts() {
    let mut facts = lab();
    facts.command_line = Some("rcu_nocbs=1 rcu_nocbs=\"2-3\" console=ttyS0 console=tty0".to_owned());
    let told = ["rcu_nocbs=1", "rcu-nocbs=2-3", "console=ttyS0", "console=tty0", "console"];
    assert_eq!(told.map(|option| on_command_line(&facts, option)), [false, true, true, true, false]);
}

#[test]
fn what_an_option_brings_with_it_is_not_held_against_it() {
    let mut facts = lab();
    facts.topology.online = set("0");
    facts.command_line = Some("nosmp".to_owned());
    pic(&mut facts);
    assert!(judge(&facts, &["nosmp"], &["nosmp", "noapic"]).fits());
    assert!(!judge(&facts, &["noapic"], &["nosmp", "noapic"]).fits());
    facts.command_line = Some("nosmp noapic".to_owned());
    assert!(!judge(&facts, &["nosmp"], &["nosmp", "noapic"]).fits(), "it was told both");
}

#[test]
fn busy_cpus_are_asked_for_only_where_they_tell_more() {
    let mut facts = lab();
    assert!(needs_busy_look(&facts, &["noapic", "nmi-watchdog=0"]));
    assert!(!needs_busy_look(&facts, &["noapic"]));
    facts.performance_counters = Some(false);
    assert!(!needs_busy_look(&facts, &["nmi_watchdog=1"]));
    facts.performance_counters = Some(true);
    assert!(needs_busy_look(&facts, &["nmi_watchdog=1"]));
    facts.architecture = Some("ppc64le".to_owned());
    assert!(!needs_busy_look(&facts, &["nmi_watchdog=1"]));
    facts.architecture = None;
    facts.nmi_watchdog = Some(false);
    assert!(!needs_busy_look(&facts, &["nmi_watchdog=1"]));
}

#[test]
fn a_host_is_read_for_its_threads_counters_and_parameters() {
    let dir = tempfile::tempdir().unwrap();
    for (path, text) in [
        ("proc/cmdline", "printk.time=1 vendor.log=https://x -- snd.index=1\n"),
        ("proc/31/comm", "irq/9-acpi\n"),
        ("proc/31/stat", "31 (irq/9-acpi) S 2 0 0 0 -1 2129984 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n"),
        ("proc/32/comm", "irq/10-fake\n"),
        ("proc/32/stat", "32 (irq/10-fake) S 2 0 0 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 77 0 0\n"),
        ("sys/module/printk/parameters/time", "Y\n"),
        ("sys/module/vendor/parameters/log", "secret\n"),
        ("sys/module/snd/parameters/index", "1\n"),
        ("sys/module/intel_idle/parameters/max_cstate", "9\n"),
        ("sys/bus/event_source/devices/software/type", "1\n"),
    ] {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let facts = read_facts(&Root::new(dir.path()));
    assert_eq!(facts.threaded_irqs, [Irq(9)], "a program may call itself anything");
    assert_eq!(facts.performance_counters, Some(false));
    let parameters: Vec<(&str, &str)> = facts.module_parameters.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    assert_eq!(parameters, [("intel_idle.max_cstate", "9"), ("printk.time", "Y")]);
}

#[test]
fn the_line_for_another_boot_changes_as_little_as_can_be() {
    let named = ["noapic", "nmi_watchdog=1", "console=ttyS1"];
    let cases: &[(&str, &[&str], &str, &str)] = &[
        ("ro quiet", &["noapic"], "", "ro quiet noapic"),
        ("ro noapic quiet", &["noapic"], "", "ro noapic quiet"),
        ("ro noapic quiet", &[], "", "ro quiet"),
        ("ro noapic", &["nmi_watchdog=1"], "", "ro nmi_watchdog=1"),
        // The machine's own value gives way to a level's and comes back.
        ("ro nmi_watchdog=0", &["nmi_watchdog=1"], "ro nmi_watchdog=0", "ro nmi_watchdog=1"),
        ("ro nmi_watchdog=1", &["noapic"], "ro nmi_watchdog=0", "ro nmi_watchdog=0 noapic"),
        ("ro nmi-watchdog=1 nmi_watchdog=0", &["nmi_watchdog=1"], "", "ro nmi-watchdog=1"),
        // Lists are added to.
        ("console=tty0", &["console=ttyS1"], "console=tty0", "console=tty0 console=ttyS1"),
        ("console=tty0 console=ttyS1", &[], "console=tty0", "console=tty0"),
        ("BOOT_IMAGE=/vmlinuz initrd=/i ro -- single", &["noapic"], "", "ro noapic -- single"),
        ("dyndbg=\"file x.c +p\"", &["noapic"], "", "dyndbg=\"file x.c +p\" noapic"),
        ("", &["noapic"], "", "noapic"),
    ];
    for (current, wanted, first, text) in cases {
        let line = command_line(current, (wanted, &named), first);
        assert_eq!(line.text, *text, "{current}");
        assert_eq!(line.changed, !line.added.is_empty() || !line.removed.is_empty());
        let again = command_line(&line.text, (wanted, &named), first);
        assert_eq!((again.text.as_str(), again.changed), (*text, false), "a boot with it asks for nothing more");
    }
    let line = command_line("ro nmi_watchdog=1", (&["noapic"], &named), "ro nmi_watchdog=0");
    assert_eq!(
        (line.removed.join(" "), line.added.join(" ")),
        ("nmi_watchdog=1".to_owned(), "nmi_watchdog=0 noapic".to_owned())
    );
}
