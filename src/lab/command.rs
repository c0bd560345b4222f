//! The command that boots a lab's machine, as words. Starts nothing and looks at nothing.

use std::path::{Path, PathBuf};

use crate::design::Machine;
use crate::design::machine::{DiskModel, NicModel};
use crate::recording::Accelerator;

use super::tools::{Kernel, Tools};

/// One boot of a machine.
#[derive(Debug, Clone, Copy)]
pub struct Boot<'a> {
    /// What is booted.
    pub machine: &'a Machine,
    /// Options of the kernel command line beyond those of the machine, one word each.
    pub options: &'a [&'a str],
    /// The kernel.
    pub kernel: &'a Kernel,
    /// What runs the guest's instructions.
    pub accelerator: Accelerator,
    /// The folder that host and guest share, at the same path in both, writable. It holds the disks of [`images`].
    pub shared: &'a Path,
    /// The file that takes what the kernel says.
    pub console: &'a Path,
    /// What the guest runs, for its shell; its exit status becomes that of the whole.
    pub command: &'a str,
}

/// A disk of a machine, to be made as a sparse file in the shared folder before each boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    /// Name of the file.
    pub name: String,
    /// Its size, bytes.
    pub size_bytes: u64,
}

/// The images of the machine's disks, in the order of [`Machine::drives`].
pub fn images(machine: &Machine) -> Vec<Image> {
    let image = |(index, (_, disk)): (usize, (usize, &crate::design::machine::Disk))| Image {
        name: format!("disk{index}.img"),
        size_bytes: disk.size_bytes,
    };
    machine.drives().into_iter().enumerate().map(image).collect()
}

/// Where something of a machine cannot be made by this QEMU: which, and what to do.
pub fn cannot(tools: &Tools, machine: &Machine) -> Option<String> {
    let release = tools.qemu_release()?;
    let igb = machine.nics.iter().any(|nic| nic.model == NicModel::Igb);
    (igb && release < (8, 0))
        .then(|| format!("{} does not know the adapter igb: it came with QEMU 8.0; take e1000e", tools.qemu_version))
}

/// The whole command. `vng` has to be started with [`Tools::path`] as its `PATH`.
pub fn words(tools: &Tools, boot: &Boot<'_>) -> Vec<String> {
    let mut words = machine_words(tools, boot);
    words.extend(["--exec".to_owned(), boot.command.to_owned()]);
    words
}

/// The whole command for a machine with a terminal, in which `boot.command`, the path of a program, is root's shell.
pub fn shell_words(tools: &Tools, boot: &Boot<'_>) -> Vec<String> {
    let mut words = machine_words(tools, boot);
    words.extend(["--disable-monitor".to_owned(), "--shell".to_owned(), boot.command.to_owned()]);
    words
}

fn machine_words(tools: &Tools, boot: &Boot<'_>) -> Vec<String> {
    let machine = boot.machine;
    let mut words = private_network(machine);
    words.extend([
        tools.vng.display().to_string(),
        "--run".to_owned(),
        boot.kernel.image.display().to_string(),
        "--qemu".to_owned(),
        tools.qemu.display().to_string(),
        // One file system and one kind of board everywhere, whatever else is installed on the host.
        "--force-9p".to_owned(),
        "--disable-microvm".to_owned(),
        "--user".to_owned(),
        "root".to_owned(),
    ]);
    if boot.accelerator == Accelerator::Emulated {
        words.push("--disable-kvm".to_owned());
    }
    let memory = format!("{}M", machine.memory_bytes >> 20);
    words.extend(["--cpus".to_owned(), machine.cpus.to_string(), "--memory".to_owned(), memory]);
    words.extend(["--rwdir".to_owned(), boot.shared.display().to_string()]);
    words.extend(["--append".to_owned(), kernel_options(boot)]);
    words.push(format!("--qemu-opts={}", shell_words::join(qemu_options(boot))));
    words
}

/// Options behind those of virtme-ng on the kernel command line. A second serial line takes the console's words, and
/// more of them than virtme-ng lets through.
fn kernel_options(boot: &Boot<'_>) -> String {
    let ours = ["console=ttyS1,115200", "loglevel=5", "panic=-1"];
    let asked = boot.machine.boot.iter().map(String::as_str).chain(boot.options.iter().copied());
    shell_words::join(ours.into_iter().chain(asked))
}

/// Options for QEMU behind those of virtme-ng: of two of one kind the later counts, and parts of `-smp` and `-machine`
/// that are not named again stay.
fn qemu_options(boot: &Boot<'_>) -> Vec<String> {
    let machine = boot.machine;
    let mut options: Vec<String> = Vec::new();
    let mut option = |name: &str, value: String| options.extend([format!("-{name}"), value]);
    option("machine", "q35".to_owned());
    let Machine { cpus, sockets, cores, threads, .. } = machine;
    option("smp", format!("{cpus},sockets={sockets},cores={cores},threads={threads}"));
    if let Some(model) = cpu_model(boot) {
        option("cpu", model);
    }
    if machine.nodes > 1 {
        for (name, value) in numa(machine) {
            option(name, value);
        }
    }
    // A kernel that panics starts again, and that ends the machine.
    options.push("-no-reboot".to_owned());
    let mut option = |name: &str, value: String| options.extend([format!("-{name}"), value]);
    option("chardev", format!("file,id=irqlab,path={}", escaped(boot.console)));
    option("serial", "chardev:irqlab".to_owned());
    for (name, value) in adapters(machine) {
        option(name, value);
    }
    for (name, value) in disks(machine, boot.shared) {
        option(name, value);
    }
    options
}

/// The model of the processor: what was asked for; without, virtme-ng's own, unless cores have several threads. Under
/// emulation that is an AMD model, which takes no threads without `topoext`.
fn cpu_model(boot: &Boot<'_>) -> Option<String> {
    let emulated = boot.accelerator == Accelerator::Emulated;
    boot.machine.cpu_model.clone().or_else(|| (emulated && boot.machine.threads > 1).then(|| THREADED.to_owned()))
}

/// A model with threads, without what QEMU's emulation lacks and would warn of on each CPU.
const THREADED: &str = "Haswell-noTSX,-pcid,-x2apic,-tsc-deadline,-invpcid";

/// Memory and processors dealt out over the nodes: whole sockets where there are enough of them.
fn numa(machine: &Machine) -> Vec<(&'static str, String)> {
    let (nodes, cpus) = (machine.nodes, machine.cpus);
    let mut options = Vec::new();
    // Whole MiB, what is over to the first.
    let (share, rest) =
        ((machine.memory_bytes >> 20) / u64::from(nodes), (machine.memory_bytes >> 20) % u64::from(nodes));
    for node in 0..nodes {
        let size = share + if node == 0 { rest } else { 0 };
        options.push(("object", format!("memory-backend-ram,id=node{node},size={size}M")));
        let (first, last) = (node * cpus / nodes, (node + 1) * cpus / nodes - 1);
        options.push(("numa", format!("node,nodeid={node},cpus={first}-{last},memdev=node{node}")));
    }
    options
}

/// Adapters, each with its far end behind it where they are linked. All near ends come before all far ends, so that
/// the kernel numbers the near ones as the file does.
fn adapters(machine: &Machine) -> Vec<(&'static str, String)> {
    let mut options = Vec::new();
    let sides: &[End] = if machine.link { &[End::Near, End::Far] } else { &[End::Near] };
    for end in sides {
        for (index, nic) in machine.adapters().into_iter().enumerate() {
            let pair = index as u32 + 1;
            let id = format!("{}{pair}", end.letter());
            let queues = nic.queues.filter(|queues| *queues > 1);
            options.push((
                "netdev",
                match queues {
                    Some(queues) => {
                        format!("tap,id={id},ifname={id},queues={queues},script=no,downscript=no,vhost=off")
                    }
                    None => format!("hubport,id={id},hubid={pair}"),
                },
            ));
            let model = match nic.model {
                NicModel::E1000 => "e1000",
                NicModel::E1000e => "e1000e",
                NicModel::Igb => "igb",
                NicModel::Virtio => "virtio-net-pci",
            };
            let queues = queues.map(|queues| format!(",mq=on,vectors={}", 2 * queues + 2)).unwrap_or_default();
            options.push(("device", format!("{model},netdev={id},mac={}{queues}", mac(*end, pair))));
        }
    }
    options
}

/// Which end of a wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// In the namespace where the experiment runs.
    Near,
    /// In the namespace `far`.
    Far,
}

impl End {
    fn letter(self) -> &'static str {
        match self {
            End::Near => "near",
            End::Far => "far",
        }
    }
}

/// The hardware address of an end of wire `pair`, by which the guest finds it.
pub(super) fn mac(end: End, pair: u32) -> String {
    let side = match end {
        End::Near => 1,
        End::Far => 2,
    };
    format!("52:54:00:77:{side:02x}:{pair:02x}")
}

/// Words that put `vng` into a network of its own with a bridge for each wire of adapters that have several queues:
/// QEMU gives more than one queue only to tap devices, and none may appear in the host's network. Everything in it is
/// gone with the last process. Empty where no adapter needs it.
fn private_network(machine: &Machine) -> Vec<String> {
    let mut script: Vec<String> = Vec::new();
    for (index, nic) in machine.adapters().into_iter().enumerate() {
        if nic.queues.is_none_or(|queues| queues <= 1) {
            continue;
        }
        let pair = index + 1;
        script.push(format!("ip link add wire{pair} type bridge"));
        script.push(format!("ip link set wire{pair} up"));
        let ends: &[&str] = if machine.link { &["near", "far"] } else { &["near"] };
        for end in ends {
            script.push(format!("ip tuntap add dev {end}{pair} mode tap multi_queue"));
            script.push(format!("ip link set {end}{pair} master wire{pair} up"));
        }
    }
    if script.is_empty() {
        return Vec::new();
    }
    script.push("exec \"$@\"".to_owned());
    ["unshare", "--net", "--", "sh", "-c", &script.join(" && "), "lab"].map(str::to_owned).to_vec()
}

fn disks(machine: &Machine, shared: &Path) -> Vec<(&'static str, String)> {
    let mut options = Vec::new();
    let images = images(machine);
    let mut in_clause = 0;
    let mut previous = None;
    for (index, (clause, disk)) in machine.drives().into_iter().enumerate() {
        in_clause = if previous == Some(clause) { in_clause + 1 } else { 0 };
        let first = in_clause == 0;
        previous = Some(clause);
        let file: PathBuf = shared.join(&images[index].name);
        // The images are thrown away, so that nothing has to reach the host's disks.
        options.push(("drive", format!("file={},if=none,id=d{index},format=raw,cache=unsafe", escaped(&file))));
        let queues = |key: &str| disk.queues.map(|queues| format!(",{key}={queues}")).unwrap_or_default();
        let controller = match disk.model {
            DiskModel::Ahci => Some(format!("ich9-ahci,id=c{clause}")),
            DiskModel::Megasas => Some(format!("megasas,id=c{clause}")),
            DiskModel::Scsi => Some(format!("virtio-scsi-pci,id=c{clause}{}", queues("num_queues"))),
            DiskModel::Nvme | DiskModel::Virtio => None,
        };
        if first {
            options.extend(controller.map(|controller| ("device", controller)));
        }
        let serial = format!("serial={}", serial(index));
        options.push((
            "device",
            match disk.model {
                DiskModel::Ahci => format!("ide-hd,drive=d{index},bus=c{clause}.{in_clause},{serial}"),
                DiskModel::Megasas | DiskModel::Scsi => format!("scsi-hd,drive=d{index},bus=c{clause}.0,{serial}"),
                DiskModel::Nvme => format!("nvme,drive=d{index},{serial}{}", queues("max_ioqpairs")),
                DiskModel::Virtio => format!("virtio-blk-pci,drive=d{index},{serial}{}", queues("num-queues")),
            },
        ));
    }
    options
}

/// The serial number of a drive, by which the guest finds it.
pub(super) fn serial(index: usize) -> String {
    format!("irqlab{index}")
}

/// A path inside a comma-separated value of QEMU.
fn escaped(path: &Path) -> String {
    path.display().to_string().replace(',', ",,")
}
