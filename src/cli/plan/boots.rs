//! Boots in the plan: what is booted for each whole plot, in what order, how long that takes, and what comparisons between
//! whole plots can show. Boots nothing and looks at no host.

use std::fmt::Write as _;

use super::{counted, seconds};
use crate::analysis::planner::{Pairing, detectable_effect};
use crate::bind;
use crate::design::machine::{Disk, DiskModel, Nic, NicModel};
use crate::design::{Experiment, Machine, Order};
use crate::recording::PlannedTrial;

/// How long an emulated machine takes to boot, from and to, milliseconds: seen on idle CPUs.
const EMULATED_BOOT_MS: (u64, u64) = (15_000, 30_000);

/// The trials of one boot.
struct Boot<'a> {
    number: u32,
    trials: &'a [PlannedTrial],
}

impl Boot<'_> {
    fn cells(&self, is_warmup: bool) -> Vec<String> {
        let cells = self.trials.iter().filter(|trial| (trial.block == 0) == is_warmup);
        cells.map(|trial| (trial.treatment + 1).to_string()).collect()
    }

    fn block(&self) -> Option<u32> {
        self.trials.iter().map(|trial| trial.block).find(|block| *block > 0)
    }

    fn treatments(&self) -> impl Iterator<Item = usize> {
        self.trials.iter().map(|trial| trial.treatment)
    }
}

fn boots(order: &[PlannedTrial]) -> Vec<Boot<'_>> {
    let stretches = order.chunk_by(|a, b| a.boot == b.boot);
    stretches.filter_map(|trials| Some(Boot { number: trials.first()?.boot?, trials })).collect()
}

/// How many boots an order has; 0 where nothing is booted.
pub(super) fn count(order: &[PlannedTrial]) -> usize {
    boots(order).len()
}

/// `apic=noapic, nics=2`: the levels that are hard to change; empty where one machine serves all treatments.
fn whole_plot(experiment: &Experiment, boot: &Boot<'_>) -> String {
    let Some(first) = boot.treatments().next().map(|index| &experiment.treatments[index]) else { return String::new() };
    let levels = experiment.factors.iter().zip(&first.levels);
    let hard = levels
        .filter(|(factor, _)| factor.hard_to_change)
        .map(|(factor, level)| format!("{}={}", factor.name, factor.levels[*level]));
    let name = hard.collect::<Vec<String>>().join(", ");
    let is_copy = |index: usize| experiment.treatments[index].control == first.control;
    if first.control > 0 && boot.treatments().all(is_copy) {
        return format!("{name} (control {})", first.control + 1);
    }
    name
}

/// What is booted for each whole plot, each once, in the order of the treatments.
pub(super) fn machines_text(out: &mut String, experiment: &Experiment, order: &[PlannedTrial]) {
    let mut boots = boots(order);
    if boots.is_empty() {
        return;
    }
    let count = counted(boots.len() as u64, "boot");
    let pilot =
        if matches!(experiment.protocol.repeat, crate::design::Repeat::Until { .. }) { " in the pilot" } else { "" };
    let _ = if experiment.lab.is_some() {
        writeln!(out, "\nmachines ({count}{pilot})")
    } else {
        writeln!(
            out,
            "\nboots of this host ({count}{pilot}; `run` does what fits the boot it finds, then says what the next one needs)"
        )
    };
    boots.sort_by_key(|boot| boot.treatments().min());
    let mut told: Vec<String> = Vec::new();
    for boot in &boots {
        let plot = whole_plot(experiment, boot);
        if told.contains(&plot) {
            continue;
        }
        let Some(treatment) = boot.treatments().min().map(|index| &experiment.treatments[index]) else { continue };
        let options = treatment.boot_options();
        let words = match &treatment.machine {
            Some(machine) => machine_words(machine, &options),
            None if options.is_empty() => "kernel command line without the options of other levels".to_owned(),
            None => format!("kernel command line with {}", options.join(" ")),
        };
        let _ = writeln!(out, "  {}: {words}", if plot.is_empty() { "all" } else { &plot });
        told.push(plot);
    }
}

/// One machine in a line.
fn machine_words(machine: &Machine, options: &[&str]) -> String {
    let count = |number: u32, noun: &str| counted(number, noun);
    let mut words = vec![
        format!(
            "{} ({} × {} × {})",
            count(machine.cpus, "CPU"),
            count(machine.sockets, "socket"),
            count(machine.cores, "core"),
            count(machine.threads, "thread")
        ),
        bytes(machine.memory_bytes),
    ];
    words.extend((machine.nodes > 1).then(|| format!("{} NUMA nodes", machine.nodes)));
    words.extend(machine.cpu_model.as_ref().map(|model| format!("CPU model {model}")));
    words.extend(machine.nics.iter().map(|nic| nic_words(nic, machine.link)));
    words.extend(machine.disks.iter().map(disk_words));
    words.push(match &machine.kernel {
        Some(kernel) => format!("kernel {kernel}"),
        None => "newest full kernel".to_owned(),
    });
    let options: Vec<&str> = machine.boot.iter().map(String::as_str).chain(options.iter().copied()).collect();
    words.extend((!options.is_empty()).then(|| format!("kernel command line with {}", options.join(" "))));
    words.join(", ")
}

fn nic_words(nic: &Nic, link: bool) -> String {
    let model = match nic.model {
        NicModel::E1000 => "e1000",
        NicModel::E1000e => "e1000e",
        NicModel::Igb => "igb",
        NicModel::Virtio => "virtio",
    };
    let queues = nic.queues.map(|queues| format!(" with {}", counted(queues, "queue"))).unwrap_or_default();
    let link = if link { ", linked" } else { "" };
    format!("{} {model}{queues}{link}", counted(nic.count, "adapter"))
}

fn disk_words(disk: &Disk) -> String {
    let model = match disk.model {
        DiskModel::Ahci => "ahci",
        DiskModel::Megasas => "megasas",
        DiskModel::Nvme => "nvme",
        DiskModel::Scsi => "virtio-scsi",
        DiskModel::Virtio => "virtio-blk",
    };
    let queues = disk.queues.map(|queues| format!(" with {}", counted(queues, "queue"))).unwrap_or_default();
    let mount = disk.mount.as_ref().map(|mount| format!(" at {mount}")).unwrap_or_default();
    format!("{} {model} of {}{queues}{mount}", counted(disk.count, "disk"), bytes(disk.size_bytes))
}

fn bytes(bytes: u64) -> String {
    let mib = bytes >> 20;
    if mib.is_multiple_of(1024) { format!("{} GiB", mib >> 10) } else { format!("{mib} MiB") }
}

/// The order, one boot on a line.
pub(super) fn order_text(out: &mut String, experiment: &Experiment, order: &[PlannedTrial]) {
    for boot in boots(order) {
        let block = boot.block().filter(|_| experiment.protocol.order == Order::Blocks);
        let block = block.map(|block| format!(" (block {block})")).unwrap_or_default();
        let plot = whole_plot(experiment, &boot);
        let plot = if plot.is_empty() { plot } else { format!(" {plot}:") };
        let (warmup, cells) = (boot.cells(true), boot.cells(false).join(" "));
        let cells = if warmup.is_empty() { cells } else { format!("warm-up {}, then {cells}", warmup.join(" ")) };
        let _ = writeln!(out, "  boot {}{block}:{plot} {cells}", boot.number);
    }
}

/// What the boots add to the time of the trials; `None` where nothing is booted.
pub(super) fn duration(experiment: &Experiment, order: &[PlannedTrial]) -> Option<String> {
    let count = count(order) as u64;
    if count == 0 {
        return None;
    }
    let boots = counted(count, "boot");
    if experiment.lab.is_none() {
        return Some(format!("{boots} of this host"));
    }
    let (from, to) = EMULATED_BOOT_MS;
    Some(format!(
        "{boots}, typically {}-{} s each under emulation: {} to {}",
        from / 1000,
        to / 1000,
        seconds(from * count),
        seconds(to * count)
    ))
}

/// What comparisons between whole plots can show, and those within them; says nothing where no factor compared is hard to
/// change.
///
/// The difference of two whole plots in a block is one value, however many trials they hold, and it moves with the
/// variation from boot to boot.
pub(super) fn power_text(out: &mut String, experiment: &Experiment, order: &[PlannedTrial]) -> bool {
    let names = |is_hard: bool| {
        let mut names: Vec<&str> = Vec::new();
        for comparison in &experiment.comparisons {
            let factor = &experiment.factors[comparison.factor];
            if factor.hard_to_change == is_hard && !names.contains(&factor.name.as_str()) {
                names.push(&factor.name);
            }
        }
        names.join(", ")
    };
    let (between, within) = (names(true), names(false));
    if between.is_empty() {
        return false;
    }
    let noun = if experiment.needs_boots() { "boot" } else { "set-up" };
    let blocks = bind::blocks(experiment);
    let is_blocked = experiment.protocol.order == Order::Blocks;
    if !within.is_empty() {
        let pairing = if is_blocked { Pairing::Paired } else { Pairing::Unpaired };
        let _ = match detectable_effect(blocks, pairing).filter(|_| blocks > 2) {
            Some(effect) => writeln!(
                out,
                "  within a {noun} ({within}): smallest detectable effect (power 80 %): {effect:.2} times the variation from \
                 trial to trial"
            ),
            None => {
                writeln!(out, "  within a {noun} ({within}): nothing: at least 3 repetitions are needed for a verdict")
            }
        };
    }
    let _ = match detectable_effect(blocks, Pairing::Paired).filter(|_| blocks > 2) {
        _ if !is_blocked => writeln!(
            out,
            "  between whole plots ({between}): no verdict unless every trial has a {noun} of its own; `order blocks` pairs \
             them"
        ),
        Some(effect) => writeln!(
            out,
            "  between whole plots ({between}; {} a level): {effect:.2} times the variation from {noun} to {noun}; more \
             trials in a {noun} do not lessen that, more blocks do",
            counted(set_ups(experiment, order), noun)
        ),
        None => writeln!(
            out,
            "  between whole plots ({between}; {} a level): nothing: at least 3 blocks are needed for a verdict",
            counted(set_ups(experiment, order), noun)
        ),
    };
    true
}

/// Boots of a level of the first hard-to-change factor that is compared, the fewest; blocks where nothing is booted.
fn set_ups(experiment: &Experiment, order: &[PlannedTrial]) -> u64 {
    let boots = boots(order);
    let hard = experiment.comparisons.iter().find(|comparison| experiment.factors[comparison.factor].hard_to_change);
    let counts = hard.map(|comparison| {
        let of = |level: usize| {
            let is_of = |boot: &&Boot<'_>| {
                boot.treatments().next().is_some_and(|index| {
                    let treatment = &experiment.treatments[index];
                    treatment.levels[comparison.factor] == level && treatment.control == 0
                })
            };
            boots.iter().filter(is_of).count()
        };
        (0..experiment.factors[comparison.factor].levels.len()).map(of).min().unwrap_or(0)
    });
    counts.filter(|count| *count > 0).map_or_else(|| u64::from(bind::blocks(experiment)), |count| count as u64)
}
