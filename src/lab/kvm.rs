//! Whether hardware virtualisation works here, found by booting a kernel. A `/dev/kvm` that can be opened proves
//! little: inside another virtual machine it may run a guest's firmware and hang in the first steps of its kernel.

use std::fs;
use std::io::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use crate::host::files::{Files, Root};
use crate::recording::Accelerator;

use super::bounded::{NoAnswer, ask};
use super::tools::Tools;

/// Time the probe's guest has; it needs a second or two where KVM works.
const LIMIT: Duration = Duration::from_secs(20);

/// What the probe found, below the state directory.
const CACHE: &str = "kvm.probe";

/// What runs the guests of this process's labs, and why it is emulated where it is.
///
/// Probed once for each boot of the host: the answer is kept in the state directory under the boot's id.
/// `IRQLAB_ACCELERATOR=emulated` asks for emulation without a probe, `kvm` takes KVM untried.
pub fn accelerator(tools: &Tools, state_dir: &Path) -> (Accelerator, Option<String>) {
    static FOUND: OnceLock<(Accelerator, Option<String>)> = OnceLock::new();
    FOUND.get_or_init(|| asked_for().unwrap_or_else(|| cached_or_probed(tools, state_dir))).clone()
}

fn asked_for() -> Option<(Accelerator, Option<String>)> {
    match std::env::var("IRQLAB_ACCELERATOR").ok()?.as_str() {
        "emulated" => Some((Accelerator::Emulated, Some("IRQLAB_ACCELERATOR=emulated".to_owned()))),
        "kvm" => Some((Accelerator::Kvm, None)),
        _ => None,
    }
}

fn cached_or_probed(tools: &Tools, state_dir: &Path) -> (Accelerator, Option<String>) {
    let kernel = match tools.kernel(None) {
        Ok(kernel) => kernel,
        Err(lack) => return (Accelerator::Emulated, Some(lack)),
    };
    let boot = Root::new("/").read_text("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let key = format!("{boot} {} {} {}", tools.qemu.display(), tools.qemu_version, kernel.version);
    let file = state_dir.join(CACHE);
    if let Some(found) = fs::read_to_string(&file).ok().and_then(|text| cached(&text, &key)) {
        return found;
    }
    let found = match probe(&tools.qemu, &kernel.image, Path::new("/dev/kvm")) {
        Ok(()) => (Accelerator::Kvm, None),
        Err(why) => (Accelerator::Emulated, Some(why)),
    };
    // Without a place for it the next run probes again.
    let _ = keep(&file, &key, &found);
    found
}

/// The answer in a cache file, where it is of this boot and this QEMU.
fn cached(text: &str, key: &str) -> Option<(Accelerator, Option<String>)> {
    let (found_key, answer) = text.trim_end().split_once('\n')?;
    if found_key != key {
        return None;
    }
    match answer {
        "kvm" => Some((Accelerator::Kvm, None)),
        reason => Some((Accelerator::Emulated, Some(reason.strip_prefix("emulated: ")?.to_owned()))),
    }
}

fn keep(file: &Path, key: &str, found: &(Accelerator, Option<String>)) -> std::io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let answer = match found {
        (Accelerator::Kvm, _) => "kvm".to_owned(),
        (Accelerator::Emulated, reason) => format!("emulated: {}", reason.as_deref().unwrap_or_default()),
    };
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    write!(new, "{key}\n{}\n", answer.replace('\n', " "))?;
    new.persist(file)?;
    Ok(())
}

/// Boots the kernel with KVM; `Err` says in words why that does not do.
fn probe(qemu: &Path, kernel: &Path, device: &Path) -> Result<(), String> {
    if !device.exists() {
        return Err(format!("there is no {}", device.display()));
    }
    if let Err(error) = fs::File::options().read(true).write(true).open(device) {
        return Err(format!("{} cannot be opened: {error}", device.display()));
    }
    boot(qemu, kernel, (&["-accel", "kvm", "-cpu", "host"], LIMIT))
}

/// Boots a kernel that is given no file system, with two CPUs, under the given options of QEMU: it comes as far as
/// looking for one, panics, and that ends QEMU.
fn boot(qemu: &Path, kernel: &Path, (options, limit): (&[&str], Duration)) -> Result<(), String> {
    let mut command = Command::new(qemu);
    command.args(["-machine", "q35", "-smp", "2", "-m", "256M", "-nodefaults", "-display", "none", "-no-reboot"]);
    command.args(options).args(["-serial", "stdio"]).arg("-kernel").arg(kernel);
    command.args(["-append", "console=ttyS0 quiet loglevel=1 panic=-1"]);
    match ask(&mut command, limit) {
        Ok(answer) if answer.text.contains(END) => Ok(()),
        Ok(answer) => {
            let said = answer.text.lines().last().unwrap_or("without a word").to_owned();
            Err(format!("QEMU with KVM ends with {}: {said}", answer.status))
        }
        Err(NoAnswer::TooSlow(limit)) => Err(format!("a kernel under KVM did not boot within {} s", limit.as_secs())),
        Err(error) => Err(format!("QEMU: {error}")),
    }
}

/// The last words of a kernel without a file system (`init/do_mounts.c`).
const END: &str = "Kernel panic - not syncing: VFS";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_counts_for_one_boot_of_the_host() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deeper").join(CACHE);
        let found = (Accelerator::Emulated, Some("it hung\nin the firmware".to_owned()));
        keep(&file, "boot-1 qemu 7", &found).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        let kept = (Accelerator::Emulated, Some("it hung in the firmware".to_owned()));
        assert_eq!(cached(&text, "boot-1 qemu 7"), Some(kept));
        assert_eq!(cached(&text, "boot-2 qemu 7"), None);
        keep(&file, "boot-2 qemu 7", &(Accelerator::Kvm, None)).unwrap();
        let text = fs::read_to_string(&file).unwrap();
        assert_eq!(cached(&text, "boot-2 qemu 7"), Some((Accelerator::Kvm, None)));
        assert_eq!(cached("boot-2 qemu 7\n", "boot-2 qemu 7"), None);
    }

    #[test]
    fn without_the_device_nothing_is_started() {
        let nothing = Path::new("/nonexistent");
        assert_eq!(probe(nothing, nothing, &nothing.join("kvm")).unwrap_err(), "there is no /nonexistent/kvm");
    }

    #[test]
    fn a_qemu_that_hangs_or_fails_is_told_apart_from_one_that_booted() {
        let folder = tempfile::tempdir().unwrap();
        let kernel = Path::new("/nonexistent");
        let fake = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
            path
        };
        let booted = fake("booted", "echo '[ 3.9] Kernel panic - not syncing: VFS: Unable to mount root fs'");
        boot(&booted, kernel, (&[], LIMIT)).unwrap();
        let hangs = fake("hangs", "echo Probing EDD; exec sleep 1000");
        let why = boot(&hangs, kernel, (&[], Duration::from_millis(100))).unwrap_err();
        assert_eq!(why, "a kernel under KVM did not boot within 0 s");
        let fails = fake("fails", "echo error: failed to set MSR 0xc0010015 >&2; exit 1");
        let why = boot(&fails, kernel, (&[], LIMIT)).unwrap_err();
        assert_eq!(why, "QEMU with KVM ends with exit status: 1: error: failed to set MSR 0xc0010015");
    }
}
