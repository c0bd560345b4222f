//! The virtual machine of one treatment: a lab's options with every value put in, and what no such machine can be.

use std::collections::BTreeMap;

use crate::design::Machine;
use crate::design::machine::{Disk, DiskModel, Nic, NicModel};
use crate::diagnostic::{Meaning, Thing};
use crate::source::Span;
use crate::syntax::ast::{Argument, KeyValue, LabOption, Number, Value};

use super::labs::{LAB_OPTIONS, SHAPE};
use super::scope::Scope;
use super::units::{self, Bounds, Quantity};

/// The most processors: more need an x2APIC, which QEMU's emulation lacks before 9.0 and `noapic` takes away.
const MOST_CPUS: f64 = 255.0;

/// Adapters and controllers for which the board has slots, beside those that a booted machine needs for itself.
const SLOTS: u32 = 20;

/// Longest text on the kernel's command line, bytes: it holds 2,047 on x86 (`COMMAND_LINE_SIZE`,
/// arch/x86/include/asm/setup.h), and booting needs up to half of them.
const MOST_BOOT: usize = 1000;

const MIB: u64 = 1 << 20;

/// Memory of a machine that names none, bytes.
const MEMORY: u64 = 1024 * MIB;

/// Size of a disk that names none, bytes.
const DISK: u64 = 1024 * MIB;

/// Options of the kernel that would keep a lab from starting or from ending, and why.
const FORBIDDEN: &[(&str, &str)] = &[
    ("console", "the lab's console is kept beside the recording"),
    ("init", "the lab starts its own first program"),
    ("initrd", "the lab starts from a memory disk of its own"),
    ("nopci", "the lab's file system is a PCI device"),
    ("panic", "a lab whose kernel panics has to end"),
    ("pci=off", "the lab's file system is a PCI device"),
    ("rdinit", "the lab starts its own first program"),
    ("root", "the lab's file system is a view of the host's"),
    ("rootflags", "the lab's file system is a view of the host's"),
    ("rootfstype", "the lab's file system is a view of the host's"),
];

/// What a lab says, read from its options; values that refer to something unknown are left out.
#[derive(Default)]
struct Written {
    numbers: BTreeMap<&'static str, (u32, Span)>,
    /// Numbers that are written but have no value.
    unknown: bool,
    memory: Option<u64>,
    memory_span: Option<Span>,
    kernel: Option<String>,
    cpu_model: Option<(String, Span)>,
    boot: Vec<String>,
    nics: Vec<(Nic, Span)>,
    disks: Vec<(Disk, Span)>,
    link: Option<Span>,
    has_nic: bool,
}

/// The machine that a lab describes under the treatment looked at; `None` when it is none.
pub(super) fn machine(scope: &mut Scope<'_>, options: &[LabOption], span: Span) -> Option<Machine> {
    let before = scope.faults.len();
    let mut written = Written::default();
    report_twice(scope, options);
    for option in options {
        read(scope, &mut written, option);
    }
    if written.unknown || scope.faults.len() > before {
        return None;
    }
    let topology = topology(scope, &written, span);
    report_devices(scope, &written, topology.map_or(u32::MAX, |topology| topology.cpus));
    report_memory(scope, &written, topology);
    let topology = topology.filter(|_| scope.faults.len() == before)?;
    if let Some((model, span)) = &written.cpu_model
        && topology.threads > 1
        && AMD.iter().any(|amd| model.starts_with(amd))
    {
        let why = format!("`{model}` is a processor without threads: QEMU emulates AMD's with one thread a core");
        scope.fault(span.error(impossible(why, "take an Intel model, such as `Haswell`")));
    }
    let Topology { cpus, sockets, cores, threads, nodes } = topology;
    Some(Machine {
        kernel: written.kernel,
        cpus,
        sockets,
        cores,
        threads,
        nodes,
        memory_bytes: written.memory.unwrap_or(MEMORY),
        boot: written.boot,
        cpu_model: written.cpu_model.map(|(model, _)| model),
        nics: written.nics.into_iter().map(|(nic, _)| nic).filter(|nic| nic.count > 0).collect(),
        disks: written.disks.into_iter().map(|(disk, _)| disk).filter(|disk| disk.count > 0).collect(),
        link: written.link.is_some(),
    })
}

/// Models of QEMU that take no threads where they are emulated.
const AMD: &[&str] = &["EPYC", "Dhyana", "Opteron", "athlon", "phenom", "max", "qemu64"];

/// Words for the kernel's command line of a lab; reports those that would break the lab itself.
pub(super) fn boot_words(scope: &mut Scope<'_>, text: &str, span: Span) -> Vec<String> {
    let odd = |c: char| c != ' ' && (!c.is_ascii_graphic() || "\"'`\\".contains(c));
    if let Some(character) = text.chars().find(|c| odd(*c)) {
        let why = format!("`{}` cannot stand on the command line of a lab's kernel", character.escape_default());
        scope.fault(span.error(impossible(why, "write options with blanks between them, without quotes")));
        return Vec::new();
    }
    if text.len() > MOST_BOOT {
        let why = format!("{} characters do not fit on the kernel's command line", text.len());
        scope.fault(span.error(impossible(why, &format!("{MOST_BOOT} do"))));
    }
    for word in text.split_whitespace() {
        let name = word.split('=').next().unwrap_or(word);
        let reason = FORBIDDEN.iter().find(|(forbidden, _)| *forbidden == name || *forbidden == word);
        let reason = reason.map(|(_, reason)| *reason);
        let ends = (word == "--").then_some("what stands behind it is no option of the kernel");
        let own = name.starts_with("virtme").then_some("it is one of those that start the lab");
        if let Some(reason) = reason.or(ends).or(own) {
            let why = format!("a lab cannot boot with `{word}`: {reason}");
            scope.fault(span.error(impossible(why, "leave it out")));
        }
    }
    text.split_whitespace().map(str::to_owned).collect()
}

fn impossible(why: String, help: &str) -> Meaning {
    Meaning::NoSuchMachine { why, help: help.to_owned() }
}

/// Options of which a machine has one. `boot`, `nic` and `disk` add up.
fn report_twice(scope: &mut Scope<'_>, options: &[LabOption]) {
    let mut first: BTreeMap<&str, Span> = BTreeMap::new();
    for option in options {
        let mut names: Vec<(&str, Span)> = vec![(&option.name.value, option.name.span)];
        if SHAPE.contains(&option.name.value.as_str()) {
            let words = option.arguments.iter().filter_map(|argument| match argument {
                Argument::Value(Value::Word(word)) => Some((word.value.as_str(), word.span)),
                _ => None,
            });
            names.extend(words);
        }
        for (name, span) in names {
            if matches!(name, "boot" | "nic" | "disk") {
                continue;
            }
            if let Some(earlier) = first.insert(name, span) {
                let mut fault = span.error(Meaning::Duplicate { thing: Thing::LabOption, name: name.to_owned() });
                fault.related.push((earlier, "first here".to_owned()));
                scope.fault(fault);
            }
        }
    }
}

fn read(scope: &mut Scope<'_>, written: &mut Written, option: &LabOption) {
    let span = option.span;
    match (option.name.value.as_str(), option.arguments.as_slice()) {
        ("boot", [Argument::Value(Value::Text(text))]) => match scope.filled_text(text, "the kernel command line") {
            Some(filled) => written.boot.extend(boot_words(scope, &filled, text.span)),
            None => written.unknown = true,
        },
        ("cpu_model", [Argument::Value(Value::Text(text))]) => {
            let Some(model) = scope.filled_text(text, "the processor's model") else { return written.unknown = true };
            if model.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+,=".contains(c)) {
                written.cpu_model = Some((model, text.span));
            } else {
                let why = format!("`{model}` is not a model of QEMU's processors");
                scope.fault(text.span.error(impossible(why, "`qemu-system-x86_64 -cpu help` lists them")));
            }
        }
        ("kernel", [Argument::Value(Value::Text(text))]) => {
            let Some(kernel) = scope.filled_text(text, "the kernel") else { return written.unknown = true };
            let plain = kernel.chars().all(|c| c.is_ascii_alphanumeric() || "-_.+~/".contains(c));
            if plain && (kernel.starts_with('/') || !kernel.contains('/')) {
                written.kernel = Some(kernel);
            } else {
                let why = format!("`{kernel}` is not a kernel: neither a version nor an absolute path");
                scope.fault(text.span.error(impossible(why, "write one of `ls /boot`, such as \"6.1.0-18-amd64\"")));
            }
        }
        ("link", []) => written.link = Some(span),
        ("memory", [Argument::Value(Value::Number(number)), ..]) => {
            let bounds =
                Bounds { what: "the memory of a lab", low: (256 * MIB) as f64, high: (512 * 1024 * MIB) as f64 };
            match units::number(scope, number, Quantity::Size, bounds) {
                Some(bytes) => written.memory = Some(whole_mib(bytes)),
                None => written.unknown = true,
            }
            written.memory_span = Some(number.span());
        }
        ("nic", [Argument::Value(model), keys @ ..]) => nic(scope, written, model, (keys, span)),
        ("disk", [Argument::Value(model), keys @ ..]) => disk(scope, written, model, (keys, span)),
        (name, [Argument::Value(Value::Number(number)), rest @ ..]) => {
            processors(scope, written, name, number);
            for pair in rest.chunks(2) {
                if let [Argument::Value(Value::Word(word)), Argument::Value(Value::Number(number))] = pair {
                    processors(scope, written, &word.value, number);
                }
            }
        }
        // Reported with its form already.
        _ => written.unknown = true,
    }
}

fn processors(scope: &mut Scope<'_>, written: &mut Written, name: &str, number: &Number) {
    let Some(name) = SHAPE.iter().find(|known| **known == name) else { return written.unknown = true };
    let what = format!("`{name}`");
    let high = if *name == "nodes" { 8.0 } else { MOST_CPUS };
    match units::integer(scope, number, Bounds { what: &what, low: 1.0, high }) {
        Some(value) => {
            written.numbers.insert(name, (value as u32, number.span()));
        }
        None => written.unknown = true,
    }
}

/// Values of a device's keys.
#[derive(Default)]
struct Keys {
    count: Option<u32>,
    queues: Option<(u32, Span)>,
    size: Option<u64>,
    mount: Option<String>,
}

fn keys(scope: &mut Scope<'_>, written: &mut Written, arguments: &[Argument]) -> Keys {
    let mut keys = Keys::default();
    for argument in arguments {
        let Argument::KeyValue(KeyValue { key, value }) = argument else { continue };
        let number = |high| Bounds { what: "the number of devices or queues", low: 0.0, high };
        match (key.value.as_str(), value) {
            ("count", Value::Number(n)) => keys.count = units::integer(scope, n, number(64.0)).map(|n| n as u32),
            ("queues", Value::Number(n)) => {
                let bounds = Bounds { low: 1.0, ..number(MOST_CPUS) };
                keys.queues = units::integer(scope, n, bounds).map(|queues| (queues as u32, n.span()));
            }
            ("size", Value::Number(n)) => {
                let (low, high) = ((16 * MIB) as f64, (16 * 1024 * 1024 * MIB) as f64);
                let bounds = Bounds { what: "the size of a disk", low, high };
                keys.size = units::number(scope, n, Quantity::Size, bounds).map(whole_mib);
            }
            ("mount", Value::Text(text)) => keys.mount = scope.filled_text(text, "the mount point"),
            (name @ ("count" | "queues" | "size" | "mount"), other) => {
                let form = if name == "mount" { "mount=\"/mnt/raid\"" } else { "size=1GiB count=2 queues=4" };
                let meaning = Meaning::WrongForm { name: name.to_owned(), form: form.to_owned() };
                scope.fault(other.span().error(meaning));
            }
            _ => continue,
        }
        let found = match key.value.as_str() {
            "count" => keys.count.is_some(),
            "queues" => keys.queues.is_some(),
            "size" => keys.size.is_some(),
            _ => keys.mount.is_some(),
        };
        written.unknown |= !found;
    }
    keys
}

fn nic(scope: &mut Scope<'_>, written: &mut Written, model: &Value, (arguments, span): (&[Argument], Span)) {
    written.has_nic = true;
    let keys = keys(scope, written, arguments);
    let Some(name) = scope.value(model) else { return written.unknown = true };
    let model = match name.as_str() {
        "e1000" => NicModel::E1000,
        "e1000e" => NicModel::E1000e,
        "igb" => NicModel::Igb,
        "virtio" => NicModel::Virtio,
        _ => return wrong_model(scope, written, "nic", model),
    };
    if let Some((_, place)) = keys.queues
        && model != NicModel::Virtio
    {
        let why = match model {
            NicModel::Igb => "the driver of `igb` makes as many queues as there are CPUs".to_owned(),
            _ => format!("`{name}` has one queue"),
        };
        scope.fault(place.error(impossible(why, "leave `queues` out, or take `virtio`")));
    }
    let queues = keys.queues.map(|(queues, _)| queues);
    written.nics.push((Nic { model, count: keys.count.unwrap_or(1), queues }, span));
}

fn disk(scope: &mut Scope<'_>, written: &mut Written, model: &Value, (arguments, span): (&[Argument], Span)) {
    let keys = keys(scope, written, arguments);
    let Some(name) = scope.value(model) else { return written.unknown = true };
    let model = match name.as_str() {
        "ahci" => DiskModel::Ahci,
        "megasas" => DiskModel::Megasas,
        "nvme" => DiskModel::Nvme,
        "scsi" => DiskModel::Scsi,
        "virtio" => DiskModel::Virtio,
        _ => return wrong_model(scope, written, "disk", model),
    };
    if let Some((_, place)) = keys.queues
        && matches!(model, DiskModel::Ahci | DiskModel::Megasas)
    {
        let why = format!("QEMU's `{name}` has one queue");
        scope.fault(place.error(impossible(why, "leave `queues` out, or take `nvme`, `scsi` or `virtio`")));
    }
    let count = keys.count.unwrap_or(1);
    let most = if model == DiskModel::Ahci { 6 } else { 16 };
    if count > most {
        let why = format!("{count} disks of `{name}` are more than the {most} it has places for");
        scope.fault(span.error(impossible(why, "write a smaller `count`, or a second `disk`")));
    }
    if let Some(mount) = &keys.mount {
        report_mount(scope, mount, span);
        if count > 1 {
            let why = format!("{count} disks cannot all be mounted at `{mount}`");
            scope.fault(span.error(impossible(why, "write a `disk` with a `mount` of its own for each")));
        }
    }
    let queues = keys.queues.map(|(queues, _)| queues);
    let size_bytes = keys.size.unwrap_or(DISK);
    written.disks.push((Disk { model, count, size_bytes, queues, mount: keys.mount }, span));
}

/// A model that came with a `${name}`; one written as a word is reported with the other words.
fn wrong_model(scope: &mut Scope<'_>, written: &mut Written, option: &str, model: &Value) {
    written.unknown = true;
    let form = LAB_OPTIONS.iter().find(|form| form.name == option);
    if let (Some(form), Some(word), false) = (form, scope.word(model), matches!(model, Value::Word(_))) {
        scope.wrong_word(&format!("word for `{option}`"), &word, form.words);
    }
}

/// Folders of the guest that have to stay what they are.
const KEPT: &[&str] =
    &["/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var"];

fn report_mount(scope: &mut Scope<'_>, mount: &str, span: Span) {
    let odd = |c: char| !(c.is_ascii_alphanumeric() || "-_./+".contains(c));
    let parts = || mount.split('/').skip(1);
    let why = if !mount.starts_with('/') {
        format!("the mount point `{mount}` is not an absolute path")
    } else if mount.chars().any(odd) || parts().any(|part| matches!(part, "" | "." | "..")) {
        format!("`{mount}` cannot be a mount point: it is made of names with `/` before each")
    } else if KEPT.contains(&mount) || ["/dev/", "/proc/", "/sys/"].iter().any(|kept| mount.starts_with(kept)) {
        format!("nothing can be mounted over `{mount}` of a lab")
    } else if parts().count() < 2 {
        format!("`{mount}` lies directly below the root, which a lab cannot change")
    } else {
        return;
    };
    scope.fault(span.error(impossible(why, "write a path such as `mount=\"/mnt/disk\"`")));
}

#[derive(Debug, Clone, Copy)]
struct Topology {
    cpus: u32,
    sockets: u32,
    cores: u32,
    threads: u32,
    nodes: u32,
}

/// Sockets, cores and threads, those left out worked out from the others: one thread a core and one socket for each
/// node where nothing says otherwise, and the cores from the rest.
fn topology(scope: &mut Scope<'_>, written: &Written, lab: Span) -> Option<Topology> {
    let get = |name: &str| written.numbers.get(name).map(|(value, _)| *value);
    let span = |names: &[&str]| names.iter().find_map(|name| written.numbers.get(name)).map_or(lab, |(_, span)| *span);
    let nodes = get("nodes").unwrap_or(1);
    let (cpus, sockets, cores, threads) = match (get("cpus"), get("sockets"), get("cores"), get("threads")) {
        (None, sockets, cores, threads) => {
            let parts = [sockets.unwrap_or(nodes), cores.unwrap_or(1), threads.unwrap_or(1)];
            let [sockets, cores, threads] = parts;
            (parts.iter().map(|part| u64::from(*part)).product::<u64>() as u32, sockets, cores, threads)
        }
        (Some(cpus), Some(sockets), Some(cores), None) => (cpus, sockets, cores, cpus / (sockets * cores).max(1)),
        (Some(cpus), sockets, None, threads) => {
            let threads = threads.unwrap_or(1);
            let sockets = sockets.unwrap_or(nodes);
            (cpus, sockets, cpus / (sockets * threads).max(1), threads)
        }
        (Some(cpus), None, Some(cores), threads) => {
            let threads = threads.unwrap_or(1);
            (cpus, cpus / (cores * threads).max(1), cores, threads)
        }
        (Some(cpus), Some(sockets), Some(cores), Some(threads)) => (cpus, sockets, cores, threads),
    };
    if u64::from(sockets) * u64::from(cores) * u64::from(threads) != u64::from(cpus) {
        let given: Vec<String> = [("sockets", get("sockets")), ("cores", get("cores")), ("threads", get("threads"))]
            .into_iter()
            .filter_map(|(name, value)| value.map(|value| format!("{name} {value}")))
            .collect();
        let given = if given.is_empty() { format!("nodes {nodes}") } else { given.join(" ") };
        let why = format!("`cpus {cpus}` is not what `{given}` makes");
        let help = "`cpus` is sockets * cores * threads; leave out what follows from the others";
        scope.fault(span(&["cpus"]).error(impossible(why, help)));
        return None;
    }
    if f64::from(cpus) > MOST_CPUS {
        let why = format!("{cpus} CPUs are more than the {MOST_CPUS} a lab can have");
        scope.fault(span(&["sockets", "cores", "threads"]).error(impossible(why, "write fewer")));
        return None;
    }
    if sockets % nodes != 0 {
        let why = format!("{nodes} nodes cannot share {sockets} {}", if sockets == 1 { "socket" } else { "sockets" });
        let help = "a node has whole sockets: write as many `sockets` as nodes, or a multiple";
        scope.fault(span(&["nodes"]).error(impossible(why, help)));
        return None;
    }
    Some(Topology { cpus, sockets, cores, threads, nodes })
}

fn report_memory(scope: &mut Scope<'_>, written: &Written, topology: Option<Topology>) {
    let (Some(bytes), Some(span), Some(topology)) = (written.memory, written.memory_span, topology) else { return };
    let share = bytes / u64::from(topology.nodes);
    if topology.nodes > 1 && share < 128 * MIB {
        let why = format!("{} MiB are too little for each of {} nodes", share / MIB, topology.nodes);
        scope.fault(span.error(impossible(why, "give each node 128MiB at least")));
    }
}

fn report_devices(scope: &mut Scope<'_>, written: &Written, cpus: u32) {
    if let Some(span) = written.link
        && !written.has_nic
    {
        let why = "there is no adapter to link".to_owned();
        scope.fault(span.error(impossible(why, "add `nic e1000`, or leave `link` out")));
    }
    let nics = written.nics.iter().map(|(nic, span)| (nic.queues, *span));
    let disks = written.disks.iter().map(|(disk, span)| (disk.queues, *span));
    for (queues, span) in nics.chain(disks) {
        if let Some(queues) = queues.filter(|queues| *queues > cpus) {
            let why = format!("{queues} queues are more than the {cpus} CPUs that serve them");
            scope
                .fault(span.error(impossible(why, "drivers use one queue a CPU at most: write fewer, or more `cpus`")));
        }
    }
    let mut mounted: Vec<(&str, Span)> = Vec::new();
    for (disk, span) in &written.disks {
        let Some(mount) = disk.mount.as_deref() else { continue };
        if let Some((_, first)) = mounted.iter().find(|(other, _)| *other == mount) {
            let why = format!("two disks are mounted at `{mount}`");
            let mut fault = span.error(impossible(why, "give each a place of its own"));
            fault.related.push((*first, "the first".to_owned()));
            scope.fault(fault);
        }
        mounted.push((mount, *span));
    }
    report_slots(scope, written);
}

/// Reports the device that finds no slot on the board.
fn report_slots(scope: &mut Scope<'_>, written: &Written) {
    let ends = if written.link.is_some() { 2 } else { 1 };
    let nics = written.nics.iter().map(|(nic, span)| (nic.count * ends, *span));
    let disks = written.disks.iter().map(|(disk, span)| match disk.model {
        DiskModel::Nvme | DiskModel::Virtio => (disk.count, *span),
        DiskModel::Ahci | DiskModel::Megasas | DiskModel::Scsi => (disk.count.min(1), *span),
    });
    let mut taken = 0;
    for (slots, span) in nics.chain(disks) {
        taken += slots;
        if taken > SLOTS {
            let linked = if ends == 2 { ", and a linked adapter takes two" } else { "" };
            let why = format!("the board of a lab has {SLOTS} slots{linked}: this is device {taken}");
            scope.fault(span.error(impossible(why, "write a smaller `count`")));
            return;
        }
    }
}

fn whole_mib(bytes: f64) -> u64 {
    bytes as u64 / MIB * MIB
}
