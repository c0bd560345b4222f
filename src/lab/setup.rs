//! What is made ready inside a booted machine: modules, addresses, file systems. Runs in the guest only, as root.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::design::Machine;
use crate::design::machine::{Disk, DiskModel, FAR_NAMESPACE, NicModel, far_address, near_address};
use crate::host::files::{Files, Root};

use super::bounded::ask;
use super::command::{End, mac, serial};

/// Time a device has to appear, and a wire to carry, where every instruction is emulated on a busy host.
const APPEARS: Duration = Duration::from_secs(60);

/// Time a program has that makes something ready; a file system of some GiB takes the longest.
const PROGRAM: Duration = Duration::from_secs(300);

/// Between two looks at whether something is there.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// Upper layers of folders that the host's view does not let change.
const LAYERS: &str = "/run/irqlab-lab";

/// Something of the machine is not ready.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{clause}` of the lab: {what}")]
pub struct SetupError {
    /// The clause of the lab it belongs to: `nic e1000`.
    pub clause: String,
    /// What went wrong.
    pub what: String,
}

/// Whether this is a lab's machine: what makes file systems must not run on any other.
pub fn is_lab() -> bool {
    let line = Root::new("/").read_text("/proc/cmdline").unwrap_or_default();
    line.split_whitespace().any(|option| option.starts_with("virtme_"))
}

/// Makes everything of the machine ready: adapters are `eth0`, `eth1` … in the order of the file, up, and where they
/// are linked addressed with their far ends in the namespace `far`; disks with a mount point are formatted and mounted.
///
/// Gives a line for each thing that is ready. To be called once in a boot.
pub fn set_up(machine: &Machine) -> Result<Vec<String>, SetupError> {
    if !is_lab() {
        return Err(SetupError { clause: "lab".to_owned(), what: "this is not a lab's machine".to_owned() });
    }
    let lo = |what| SetupError { clause: "lo".to_owned(), what };
    run("ip", &["link", "set", "lo", "up"]).map_err(lo)?;
    load_modules(machine)?;
    // Where it runs, it names interfaces as they appear; names are given after that.
    let _ = ask(Command::new("udevadm").args(["settle", "--timeout=30"]), APPEARS);
    let root = Root::new("/");
    let mut done = adapters(machine, &root)?;
    done.extend(disks(machine, &root)?);
    Ok(done)
}

fn load_modules(machine: &Machine) -> Result<(), SetupError> {
    for nic in &machine.nics {
        let module = match nic.model {
            NicModel::E1000 => "e1000",
            NicModel::E1000e => "e1000e",
            NicModel::Igb => "igb",
            NicModel::Virtio => "virtio_net",
        };
        modprobe(module, &format!("nic {}", nic_word(nic.model)))?;
    }
    for disk in &machine.disks {
        let modules: &[&str] = match disk.model {
            DiskModel::Ahci => &["ahci", "sd_mod"],
            DiskModel::Megasas => &["megaraid_sas", "sd_mod"],
            DiskModel::Nvme => &["nvme"],
            DiskModel::Scsi => &["virtio_scsi", "sd_mod"],
            DiskModel::Virtio => &["virtio_blk"],
        };
        for module in modules {
            modprobe(module, &disk_clause(disk))?;
        }
        if disk.mount.is_some() {
            modprobe("ext4", &disk_clause(disk))?;
        }
    }
    Ok(())
}

fn modprobe(module: &str, clause: &str) -> Result<(), SetupError> {
    run("modprobe", &[module]).map_err(|what| SetupError { clause: clause.to_owned(), what })
}

fn nic_word(model: NicModel) -> &'static str {
    match model {
        NicModel::E1000 => "e1000",
        NicModel::E1000e => "e1000e",
        NicModel::Igb => "igb",
        NicModel::Virtio => "virtio",
    }
}

fn disk_clause(disk: &Disk) -> String {
    let model = match disk.model {
        DiskModel::Ahci => "ahci",
        DiskModel::Megasas => "megasas",
        DiskModel::Nvme => "nvme",
        DiskModel::Scsi => "scsi",
        DiskModel::Virtio => "virtio",
    };
    format!("disk {model}")
}

fn adapters(machine: &Machine, files: &dyn Files) -> Result<Vec<String>, SetupError> {
    let adapters = machine.adapters();
    let of = |index: usize| format!("nic {}", nic_word(adapters[index].model));
    let error = |index: usize| move |what: String| SetupError { clause: of(index), what };
    let pairs = || (0..adapters.len()).map(|index| (index, index as u32 + 1));
    let find = |index: usize, end: End, pair: u32| {
        let address = mac(end, pair);
        let found = appears(|| interface(files, &address));
        found
            .ok_or_else(|| format!("no adapter {address} appeared within {} s", APPEARS.as_secs()))
            .map_err(error(index))
    };
    if machine.link && !adapters.is_empty() {
        run("ip", &["netns", "add", FAR_NAMESPACE]).map_err(error(0))?;
        run("ip", &["-n", FAR_NAMESPACE, "link", "set", "lo", "up"]).map_err(error(0))?;
        for (index, pair) in pairs() {
            let name = find(index, End::Far, pair)?;
            let far = far_name(pair);
            run("ip", &["link", "set", "dev", &name, "down"]).map_err(error(index))?;
            run("ip", &["link", "set", "dev", &name, "netns", FAR_NAMESPACE, "name", &far]).map_err(error(index))?;
        }
    }
    // In two steps: one of them may have the name that another is to have.
    for (index, pair) in pairs() {
        let name = find(index, End::Near, pair)?;
        run("ip", &["link", "set", "dev", &name, "down"]).map_err(error(index))?;
        run("ip", &["link", "set", "dev", &name, "name", &format!("near{pair}")]).map_err(error(index))?;
    }
    let mut done = Vec::new();
    for (index, pair) in pairs() {
        let name = format!("eth{index}");
        run("ip", &["link", "set", "dev", &format!("near{pair}"), "name", &name]).map_err(error(index))?;
        // An address that IPv6 makes for itself sends packets, and interrupts, that nobody asked for.
        run("ip", &["link", "set", "dev", &name, "addrgenmode", "none", "up"]).map_err(error(index))?;
        if machine.link {
            join_ends(&name, pair).map_err(error(index))?;
            done.push(format!(
                "{name} ({}): {} to {} in {FAR_NAMESPACE}",
                of(index),
                near_address(pair),
                far_address(pair)
            ));
        } else {
            done.push(format!("{name} ({}): up", of(index)));
        }
    }
    Ok(done)
}

/// The far end's name, and that of its interrupt: no pattern over names takes both ends of a wire.
fn far_name(pair: u32) -> String {
    format!("far{}", pair - 1)
}

/// Addresses of both ends of a wire, each known to the other, and a wait until both carry.
fn join_ends(name: &str, pair: u32) -> Result<(), String> {
    let (near, far, other) = (near_address(pair), far_address(pair), far_name(pair));
    let inside = ["-n", FAR_NAMESPACE];
    run("ip", &["addr", "add", &format!("{near}/24"), "dev", name])?;
    run("ip", &[&inside[..], &["link", "set", "dev", &other, "addrgenmode", "none", "up"]].concat())?;
    run("ip", &[&inside[..], &["addr", "add", &format!("{far}/24"), "dev", &other]].concat())?;
    let neighbour = |address: &str, end, through: &str| {
        ["neigh", "replace", address, "lladdr", &mac(end, pair), "nud", "permanent", "dev", through].map(str::to_owned)
    };
    run("ip", &neighbour(&far, End::Far, name).each_ref().map(String::as_str))?;
    let there = neighbour(&near, End::Near, &other);
    run("ip", &[&inside[..], &there.each_ref().map(String::as_str)].concat())?;
    let carries = |arguments: &[&str]| {
        let shown = ask(Command::new("ip").args(arguments), PROGRAM).ok()?;
        shown.text.contains("LOWER_UP").then_some(())
    };
    appears(|| carries(&["-o", "link", "show", "dev", name]))
        .and_then(|()| appears(|| carries(&[&inside[..], &["-o", "link", "show", "dev", &other]].concat())))
        .ok_or_else(|| format!("the wire of {name} does not carry after {} s", APPEARS.as_secs()))
}

/// The interface with that hardware address.
fn interface(files: &dyn Files, address: &str) -> Option<String> {
    let names = files.list("/sys/class/net").ok()?;
    names.into_iter().find(|name| {
        files.read_text(&format!("/sys/class/net/{name}/address")).is_ok_and(|found| found.trim() == address)
    })
}

fn disks(machine: &Machine, files: &dyn Files) -> Result<Vec<String>, SetupError> {
    let mut found = Vec::new();
    for (index, (_, disk)) in machine.drives().into_iter().enumerate() {
        let name = appears(|| block_device(files, index)).ok_or_else(|| SetupError {
            clause: disk_clause(disk),
            what: format!("no disk {} appeared within {} s", serial(index), APPEARS.as_secs()),
        })?;
        found.push((disk, name));
    }
    // A mount point may lie below another.
    found.sort_by_key(|(disk, _)| disk.mount.clone());
    let mut done = Vec::new();
    for (disk, name) in found {
        let Some(mount) = &disk.mount else {
            done.push(format!("/dev/{name} ({})", disk_clause(disk)));
            continue;
        };
        let error = |what: String| SetupError { clause: format!("{} mount=\"{mount}\"", disk_clause(disk)), what };
        let device = format!("/dev/{name}");
        run("mkfs.ext4", &["-q", "-F", &device]).map_err(error)?;
        make_folder(Path::new(mount)).map_err(error)?;
        // Inode tables that are filled in the background would interrupt the measured work.
        run("mount", &["-t", "ext4", "-o", "noinit_itable", &device, mount]).map_err(error)?;
        done.push(format!("{device} ({}): {mount}", disk_clause(disk)));
    }
    Ok(done)
}

/// The block device of drive `index`, by its serial number. Each kind of driver shows it in a file of its own.
fn block_device(files: &dyn Files, index: usize) -> Option<String> {
    let wanted = serial(index);
    let shows = |path: String| files.read(&path).is_ok_and(|content| ends_with_word(&content, &wanted));
    files.list("/sys/block").ok()?.into_iter().find(|name| {
        ["serial", "device/serial", "device/vpd_pg80"].iter().any(|file| shows(format!("/sys/block/{name}/{file}")))
    })
}

/// Whether the last word of printable characters is that one. `vpd_pg80` has four bytes of header before it.
fn ends_with_word(content: &[u8], word: &str) -> bool {
    let text: String =
        content.iter().map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { ' ' }).collect();
    text.split_whitespace().next_back() == Some(word)
}

/// Makes a folder for a mount point. Where the host's view does not let it, the nearest folder that is there gets a
/// layer of its own that does.
fn make_folder(folder: &Path) -> Result<(), String> {
    let made = fs::create_dir_all(folder);
    let refused = match made {
        Ok(()) => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => error,
        Err(error) => return Err(format!("cannot make {}: {error}", folder.display())),
    };
    let there = folder.ancestors().find(|ancestor| ancestor.is_dir()).unwrap_or(Path::new("/"));
    if there == Path::new("/") {
        let top: PathBuf = folder.components().take(2).collect();
        return Err(format!("cannot make {}: {refused}; make {} on the host", folder.display(), top.display()));
    }
    let layer = Path::new(LAYERS).join(there.display().to_string().trim_matches('/').replace('/', "-"));
    let (upper, work) = (layer.join("upper"), layer.join("work"));
    for part in [&upper, &work] {
        fs::create_dir_all(part).map_err(|error| format!("cannot make {}: {error}", part.display()))?;
    }
    let options = format!("lowerdir={},upperdir={},workdir={}", there.display(), upper.display(), work.display());
    run("mount", &["-t", "overlay", "-o", &options, "overlay", &there.display().to_string()])?;
    fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))
}

/// Looks until something is there, for [`APPEARS`] at most.
fn appears<T>(look: impl Fn() -> Option<T>) -> Option<T> {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if start.elapsed() > APPEARS {
            return None;
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// Runs a program that must succeed; `Err` holds its command and its last line.
fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    let command = || format!("`{program} {}`", arguments.join(" "));
    match ask(Command::new(program).args(arguments), PROGRAM) {
        Ok(answer) if answer.status.success() => Ok(()),
        Ok(answer) => {
            Err(format!("{}: {}: {}", command(), answer.status, answer.text.lines().last().unwrap_or_default()))
        }
        Err(error) => Err(format!("{}: {error}", command())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(files: &[(&str, &[u8])]) -> (tempfile::TempDir, Root) {
        let place = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let root = Root::new(place.path());
        (place, root)
    }

    #[test]
    fn an_end_of_a_wire_is_found_by_its_address_whatever_its_name() {
        let (_place, root) = tree(&[
            ("sys/class/net/lo/address", b"00:00:00:00:00:00\n"),
            ("sys/class/net/enp0s10/address", b"52:54:00:77:02:01\n"),
            ("sys/class/net/eth1/address", b"52:54:00:77:01:01\n"),
        ]);
        assert_eq!(interface(&root, &mac(End::Near, 1)).as_deref(), Some("eth1"));
        assert_eq!(interface(&root, &mac(End::Far, 1)).as_deref(), Some("enp0s10"));
        assert_eq!(interface(&root, &mac(End::Near, 2)), None);
    }

    #[test]
    fn a_disk_is_found_by_its_serial_number_under_each_driver() {
        let (_place, root) = tree(&[
            ("sys/block/sda/device/vpd_pg80", b"\0\x80\0\x08 irqlab1"),
            ("sys/block/sdb/device/vpd_pg80", b"\0\x80\0\x14             irqlab10"),
            ("sys/block/vda/serial", b"irqlab2\n"),
            ("sys/block/nvme0n1/device/serial", b"irqlab0             \n"),
        ]);
        let found: Vec<Option<String>> = [0, 1, 2, 10, 3].iter().map(|index| block_device(&root, *index)).collect();
        let names = [Some("nvme0n1"), Some("sda"), Some("vda"), Some("sdb"), None];
        assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), names);
    }
}
