//! Which options of a kernel command line are in force, from what the kernel shows rather than from what it was told.
//! Pure: takes facts, reads nothing. Also makes the command line for another boot.
//!
//! An option counts by its effect. Where a kernel shows no effect of it, only the command line can tell, and
//! [`BootOption::in_force`] is `None`. An effect that is there without the option (a machine with one CPU, `nosmp`) is in
//! force all the same: two levels that look alike cannot be compared.

use crate::cpu_set::{Cpu, CpuSet};
use crate::recording::{BootOption, HostFacts};

use super::command_line::{DROPPED, comparable, name, options};

/// What a running kernel shows of an option.
pub fn evidence(facts: &HostFacts, option: &str) -> BootOption {
    let (in_force, evidence) = shown(facts, option).unwrap_or_else(|| {
        let place = if on_command_line(facts, option) { "on the command line" } else { "not on the command line" };
        (None, format!("{place}; the kernel shows nothing more of it"))
    });
    BootOption { option: option.to_owned(), in_force, evidence }
}

/// Whether the kernel was told the option, quotes and `-` for `_` aside; of an option given twice the last counts.
pub fn on_command_line(facts: &HostFacts, option: &str) -> bool {
    let line = facts.command_line.as_deref().unwrap_or_default();
    let same_name = |told: &&str| name(told) == name(option);
    let mut told = options(line).into_iter().filter(same_name);
    if is_list(option) {
        return told.any(|told| comparable(told) == comparable(option));
    }
    told.next_back().is_some_and(|told| comparable(told) == comparable(option))
}

/// A command line for another boot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// The whole line, without what boot loaders add themselves (`BOOT_IMAGE`, `initrd`).
    pub text: String,
    /// Options taken away.
    pub removed: Vec<String>,
    /// Options added.
    pub added: Vec<String>,
    /// Whether any was.
    pub changed: bool,
}

/// The command line of a boot that has the options `wanted` and none of `named` else: `current` with as little changed
/// as possible. An option of the machine's own that gave way to another value of it (`first` is the line before the first
/// boot) comes back where no level sets it.
pub fn command_line(current: &str, (wanted, named): (&[&str], &[&str]), first: &str) -> CommandLine {
    let among = |list: &[&str], option: &str| list.iter().any(|other| comparable(other) == comparable(option));
    let sets = |list: &[&str], option: &str| list.iter().any(|other| name(other) == name(option));
    let told = options(current);
    let stays = |option: &&str| {
        let replaced = sets(wanted, option) && !is_list(option);
        among(wanted, option) || !(among(named, option) || replaced)
    };
    let (kept, removed): (Vec<&str>, Vec<&str>) = told.into_iter().partition(stays);
    let gave_way = |option: &&str| {
        let own = sets(named, option) && !among(named, option) && !option.contains(DROPPED);
        own && !sets(wanted, option) && !among(&kept, option)
    };
    let mut added: Vec<&str> = options(first).into_iter().filter(gave_way).collect();
    for option in wanted {
        if !among(&kept, option) && !among(&added, option) {
            added.push(option);
        }
    }
    let loaders = |option: &&&str| !matches!(&*name(option), "BOOT_IMAGE" | "initrd");
    let mut words: Vec<&str> = kept.iter().filter(loaders).copied().chain(added.iter().copied()).collect();
    let for_init = current.split_once(" -- ").map(|(_, words)| words.trim());
    words.extend(for_init.iter().flat_map(|rest| ["--", rest]));
    let owned = |options: &[&str]| options.iter().map(|option| (*option).to_owned()).collect::<Vec<String>>();
    let changed = !(removed.is_empty() && added.is_empty());
    CommandLine { text: words.join(" "), removed: owned(&removed), added: owned(&added), changed }
}

/// Options that may stand there several times, each time for something else.
fn is_list(option: &str) -> bool {
    const LISTS: [&str; 8] =
        ["blacklist", "console", "earlycon", "hugepages", "hugepagesz", "memmap", "module_blacklist", "pci"];
    LISTS.contains(&&*name(option))
}

/// Whether it takes a look at busy CPUs to tell: the file claims a watchdog, and only the NMI row can say whether one
/// is there.
pub fn needs_busy_look(facts: &HostFacts, options: &[&str]) -> bool {
    let asked = options.iter().any(|option| name(option) == "nmi_watchdog");
    let can_tell = has_nmi_row(facts) && facts.performance_counters != Some(false);
    asked && facts.nmi_watchdog == Some(true) && can_tell && facts.nmi_growth.is_none()
}

/// A running kernel held against the options of one level and those that only other levels name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The options of the level, in their order.
    pub options: Vec<BootOption>,
    /// Those of them that the kernel does not have.
    pub missing: Vec<BootOption>,
    /// Options of other levels that it has.
    pub unwanted: Vec<BootOption>,
}

impl Judgement {
    /// Whether the kernel is one of that level.
    pub fn fits(&self) -> bool {
        self.missing.is_empty() && self.unwanted.is_empty()
    }
}

/// Holds a running kernel against a level: every option of `wanted` has to be in force, none of `named` (the options of
/// all levels) that is not wanted may be. Where the kernel shows nothing of an option its command line decides.
pub fn judge(facts: &HostFacts, wanted: &[&str], named: &[&str]) -> Judgement {
    let is_wanted = |option: &str| wanted.iter().any(|wanted| comparable(wanted) == comparable(option));
    let options: Vec<BootOption> = wanted.iter().map(|option| evidence(facts, option)).collect();
    let has = |option: &BootOption| option.in_force.unwrap_or_else(|| on_command_line(facts, &option.option));
    let missing = options.iter().filter(|option| !has(option)).cloned().collect();
    let mut unwanted: Vec<BootOption> = Vec::new();
    for option in named.iter().filter(|option| !is_wanted(option)) {
        let shown = evidence(facts, option);
        let implied = wanted.iter().any(|wanted| implies(wanted, option));
        let there = if implied { on_command_line(facts, option) } else { has(&shown) };
        if there && !unwanted.contains(&shown) {
            unwanted.push(shown);
        }
    }
    Judgement { options, missing, unwanted }
}

/// Whether one option has the effect of another one as well (arch/x86/kernel/apic/apic.c `setup_nolapic`, `nosmp`
/// in kernel/smp.c with `arch_disable_smp_support`; `mitigations=auto,nosmt` in kernel/cpu.c).
fn implies(option: &str, other: &str) -> bool {
    let (option, other) = (comparable(option), comparable(other));
    let few_cpus = other == "nosmp" || ["maxcpus", "nr_cpus", "possible_cpus"].contains(&&*name(&other));
    match &*option {
        "nolapic" | "disableapic" | "nosmp" | "maxcpus=0" => {
            few_cpus || matches!(&*other, "noapic" | "nolapic" | "disableapic" | "pci=nomsi" | "nosmt")
        }
        "maxcpus=1" | "nr_cpus=1" => few_cpus,
        "mitigations=off" => MITIGATION_SWITCHES.iter().any(|(switch, ..)| *switch == other),
        "mitigations=auto,nosmt" | "nosmt=force" => other == "nosmt" || other == "nosmt=force",
        _ => false,
    }
}

type Shown = (Option<bool>, String);

/// The kernel's own evidence; `None` for options nothing is known of.
fn shown(facts: &HostFacts, option: &str) -> Option<Shown> {
    let option = comparable(option);
    let (name, value) = option.split_once('=').map_or((&*option, None), |(name, value)| (name, Some(value)));
    let list = |list: Option<&str>| cpus(facts, list?);
    match (name, value) {
        ("noapic", _) => Some(no_io_apic(facts)),
        ("nolapic" | "disableapic", None) => Some(no_local_apic(facts)),
        ("nosmp", None) | ("maxcpus", Some("0")) => Some(one_cpu(facts)),
        ("maxcpus", Some(count)) => Some(online_at_most(facts, count.parse().ok()?)),
        ("nr_cpus", Some(count)) => Some(possible_at_most(facts, count.parse().ok()?, &option)),
        ("nosmt", value) => Some(no_smt(facts, value)),
        ("isolcpus", Some(text)) => isolated(facts, text),
        ("nohz_full", value) => Some(same_cpus(&list(value)?, &facts.topology.nohz_full, "nohz_full", BootCpu::Out)),
        ("irqaffinity", value) => {
            let default = facts.default_affinity.as_ref()?;
            let (in_force, text) = same_cpus(&list(value)?, default, "default_smp_affinity", BootCpu::In);
            Some((in_force, format!("{text} (it can be changed without a boot)")))
        }
        ("nmi_watchdog", Some(value)) => Some(nmi_watchdog(facts, value)),
        ("threadirqs", None) => Some(threaded(facts)),
        ("pci", Some(values)) if values.split(',').any(|value| value == "nomsi") => Some(no_msi(facts)),
        ("mitigations", Some("off")) => mitigations_off(facts),
        ("clocksource", Some(wanted)) => {
            let used = facts.clocksource.as_ref()?;
            Some((Some(used == wanted), format!("the clock source is `{used}`")))
        }
        _ => mitigation_switch(facts, &option).or_else(|| parameter(facts, name, value?)),
    }
}

fn rows(facts: &HostFacts, chip: &str) -> usize {
    facts.irqs.iter().filter(|irq| irq.chip.contains(chip)).count()
}

fn counted(count: usize, what: &str) -> String {
    match count {
        0 => format!("no {what} rows"),
        1 => format!("1 {what} row"),
        count => format!("{count} {what} rows"),
    }
}

/// `noapic`: the 8259 serves what the IO-APIC did (`skip_ioapic_setup`).
fn no_io_apic(facts: &HostFacts) -> Shown {
    let (io_apic, pic) = (rows(facts, "IO-APIC"), rows(facts, "XT-PIC"));
    let text = format!("{}, {}", counted(io_apic, "IO-APIC"), counted(pic, "XT-PIC"));
    match (io_apic, pic) {
        (0, 0) => (None, format!("{text}: this machine shows neither")),
        (0, _) => (Some(true), text),
        _ => (Some(false), text),
    }
}

fn no_local_apic(facts: &HostFacts) -> Shown {
    let (io_apic, msi, online) = (rows(facts, "IO-APIC"), rows(facts, "PCI-MSI"), facts.topology.online.len());
    let text = format!(
        "{online} of {} CPUs online, {}, {}",
        facts.topology.possible.len(),
        counted(io_apic, "IO-APIC"),
        counted(msi, "PCI-MSI")
    );
    (Some(online == 1 && io_apic == 0 && msi == 0), text)
}

fn one_cpu(facts: &HostFacts) -> Shown {
    let (online, possible) = (facts.topology.online.len(), facts.topology.possible.len());
    let alone = if online == 1 && possible <= 1 { ", as on a machine that has no more" } else { "" };
    (Some(online == 1), format!("{online} of {possible} possible CPUs online{alone}"))
}

fn online_at_most(facts: &HostFacts, count: usize) -> Shown {
    let (online, possible) = (facts.topology.online.len(), facts.topology.possible.len());
    let text = format!("{online} of {possible} possible CPUs online");
    match online.cmp(&count) {
        std::cmp::Ordering::Greater => (Some(false), text),
        std::cmp::Ordering::Equal if possible > count => (Some(true), text),
        _ => (None, format!("{text}: this machine has no more, so that nothing shows")),
    }
}

fn possible_at_most(facts: &HostFacts, count: usize, option: &str) -> Shown {
    let possible = facts.topology.possible.len();
    let text = format!("{possible} possible CPUs");
    match possible.cmp(&count) {
        std::cmp::Ordering::Greater => (Some(false), text),
        std::cmp::Ordering::Equal if on_command_line(facts, option) => (Some(true), text),
        _ => (None, format!("{text}: this machine may have no more, so that nothing shows")),
    }
}

/// `nosmt`, `nosmt=force` (kernel/cpu.c `cpu_smt_disable`).
fn no_smt(facts: &HostFacts, value: Option<&str>) -> Shown {
    let topology = &facts.topology;
    let Some(control) = topology.smt_control.as_deref() else {
        return (Some(false), "this kernel has no SMT control".to_owned());
    };
    let active = if topology.smt_active == Some(true) { ", SMT is active" } else { "" };
    let off = if value == Some("force") { control == "forceoff" } else { matches!(control, "off" | "forceoff") };
    let nature = matches!(control, "notsupported" | "notimplemented");
    let why = if nature { ": there is no SMT to switch off" } else { "" };
    (Some(off && topology.smt_active != Some(true)), format!("smt/control reads `{control}`{active}{why}"))
}

/// `isolcpus=[flags,]list`: only the flag `domain`, which is meant where no flag stands, is shown in `isolated`.
fn isolated(facts: &HostFacts, text: &str) -> Option<Shown> {
    const FLAGS: [&str; 3] = ["domain", "managed_irq", "nohz"];
    let mut list = text;
    let (mut flags, mut domain) = (false, false);
    while let Some((first, rest)) = list.split_once(',').filter(|(first, _)| FLAGS.contains(first)) {
        (flags, domain, list) = (true, domain || first == "domain", rest);
    }
    let (in_force, text) = same_cpus(&cpus(facts, list)?, &facts.topology.isolated, "isolated", BootCpu::Either);
    if flags && !domain {
        return None;
    }
    let more = if flags { " (its flags show only on the command line)" } else { "" };
    Some((in_force, format!("{text}{more}")))
}

/// What a kernel makes of CPU 0 in a list.
#[derive(Clone, Copy)]
enum BootCpu {
    /// As told.
    Either,
    /// Always in it.
    In,
    /// Taken out of it by most kernels.
    Out,
}

fn same_cpus(told: &CpuSet, found: &CpuSet, file: &str, boot_cpu: BootCpu) -> Shown {
    let first = CpuSet::single(Cpu(0));
    let same = match boot_cpu {
        BootCpu::Either => found == told,
        BootCpu::In => *found == told.union(&first),
        BootCpu::Out => found == told || *found == told.difference(&first),
    };
    let found = if found.is_empty() { "no CPU".to_owned() } else { found.to_string() };
    (Some(same && !told.is_empty()), format!("{file} reads {found}"))
}

/// A list as the command line has it, as far as this host has such CPUs; `None` for forms that kernel files never show
/// (`0-15:2/4`).
fn cpus(facts: &HostFacts, list: &str) -> Option<CpuSet> {
    let possible = &facts.topology.possible;
    if list == "all" {
        return Some(possible.clone());
    }
    let last = possible.iter().last()?.to_string();
    let list = CpuSet::parse_list(&list.replace('N', &last)).ok()?;
    Some(list.intersection(possible))
}

/// `nmi_watchdog=0|1|panic,1|nopanic|…` (kernel/watchdog.c `hardlockup_panic_setup`).
fn nmi_watchdog(facts: &HostFacts, value: &str) -> Shown {
    let asked_off = value.split(',').any(|word| word == "0");
    let (runs, text) = watchdog_runs(facts);
    (runs.map(|runs| runs != asked_off), text)
}

/// The watchdogs of other architectures are counted elsewhere (`WDG` on powerpc) or nowhere.
fn has_nmi_row(facts: &HostFacts) -> bool {
    facts.architecture.as_deref().is_none_or(|name| matches!(name, "i386" | "i586" | "i686" | "x86" | "x86_64"))
}

fn watchdog_runs(facts: &HostFacts) -> Shown {
    let said = match facts.nmi_watchdog {
        None => return (Some(false), "there is no kernel/nmi_watchdog".to_owned()),
        Some(false) => return (Some(false), "kernel/nmi_watchdog reads 0".to_owned()),
        Some(true) => "kernel/nmi_watchdog reads 1",
    };
    match &facts.nmi_growth {
        Some(growth) => {
            let seconds = growth.busy_ms / 1000;
            let busy = format!("while CPUs {} were busy for {seconds} s", growth.busy);
            if growth.grew.is_empty() {
                (Some(false), format!("{said}; the NMI row stood still {busy}"))
            } else {
                (Some(true), format!("{said}; the NMI row grew on CPUs {} {busy}", growth.grew))
            }
        }
        None if !has_nmi_row(facts) => (None, format!("{said}; only x86 counts it in the NMI row")),
        None if facts.performance_counters == Some(false) => {
            (Some(false), format!("{said}; these CPUs show no performance counters to make one of"))
        }
        None => (None, format!("{said}; nobody looked whether the NMI row grows")),
    }
}

/// `threadirqs`: every handler that allows it has a thread (`irq_setup_forced_threading`).
fn threaded(facts: &HostFacts) -> Shown {
    let requested = facts.irqs.iter().filter(|irq| !irq.actions.is_empty());
    let (all, threads) =
        (requested.clone().count(), requested.filter(|irq| facts.threaded_irqs.contains(&irq.irq)).count());
    let preempt_rt = facts.kernel_version.as_deref().is_some_and(|version| version.contains("PREEMPT_RT"));
    let nature = if preempt_rt { ", as always under PREEMPT_RT" } else { "" };
    let text = format!("{threads} of {all} interrupts in use have a kernel thread{nature}");
    // Drivers that ask for a thread have one without the option; timers and their like have none with it.
    let in_force = match (all, threads) {
        (0, _) => None,
        (_, 0) => Some(false),
        (all, threads) if threads * 2 >= all => Some(true),
        _ => None,
    };
    (in_force, text)
}

fn no_msi(facts: &HostFacts) -> Shown {
    let (msi, all) = (rows(facts, "PCI-MSI"), facts.irqs.iter().filter(|irq| !irq.actions.is_empty()).count());
    ((all > 0).then_some(msi == 0), format!("{}, {all} interrupts in use", counted(msi, "PCI-MSI")))
}

/// A hole that is closed because the feature it needs is missing is no mitigation.
fn is_mitigated(state: &str) -> bool {
    state.starts_with("Mitigation") && !state.contains("TSX disabled")
}

fn mitigations_off(facts: &HostFacts) -> Option<Shown> {
    let count = |is: fn(&str) -> bool| facts.mitigations.values().filter(|state| is(state)).count();
    let (mitigated, vulnerable) = (count(is_mitigated), count(|state| state.starts_with("Vulnerable")));
    let text = format!("vulnerabilities: {mitigated} mitigated, {vulnerable} vulnerable");
    match (mitigated, vulnerable) {
        (0, 0) => None,
        (0, _) => Some((Some(true), text)),
        _ => Some((Some(false), text)),
    }
}

/// Options that switch one mitigation off, and its file.
const MITIGATION_SWITCHES: [(&str, &str); 8] = [
    ("l1tf=off", "l1tf"),
    ("mds=off", "mds"),
    ("nopti", "meltdown"),
    ("nospectre_v2", "spectre_v2"),
    ("pti=off", "meltdown"),
    ("retbleed=off", "retbleed"),
    ("spec_store_bypass_disable=off", "spec_store_bypass"),
    ("spectre_v2=off", "spectre_v2"),
];

fn mitigation_switch(facts: &HostFacts, option: &str) -> Option<Shown> {
    let (_, file) = MITIGATION_SWITCHES.iter().find(|(switch, _)| *switch == option)?;
    let state = facts.mitigations.get(*file).filter(|state| *state != "Not affected")?;
    Some((Some(state.starts_with("Vulnerable")), format!("vulnerabilities/{file} reads `{state}`")))
}

/// `module.parameter=value`
fn parameter(facts: &HostFacts, name: &str, value: &str) -> Option<Shown> {
    let found = facts.module_parameters.get(name)?;
    let plain = |value: &str| match value {
        "1" | "y" | "Y" | "on" | "true" => "Y".to_owned(),
        "0" | "n" | "N" | "off" | "false" => "N".to_owned(),
        other => other.to_owned(),
    };
    Some((
        Some(plain(found) == plain(value)),
        format!("/sys/module/{} reads `{found}`", name.replacen('.', "/parameters/", 1)),
    ))
}

#[cfg(test)]
mod tests;
