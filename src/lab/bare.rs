//! The command that boots a machine.

use std::path::Path;

use crate::design::Machine;

/// Programs that make machines.
pub(super) const QEMU: &str = "qemu-system-x86_64";

/// The words that boot a machine, run `command` in it as root and write its console to `console`.
pub(super) fn words(
    (machine, options): (Option<&Machine>, &[&str]),
    (shared, console): (&Path, &Path),
    command: &str,
) -> Vec<String> {
    let cpus = machine.map_or(2, |machine| machine.cpus);
    let memory = machine.map_or(1024, |machine| machine.memory_bytes >> 20);
    let kernel = "/boot/vmlinuz-6.1.0-57-amd64";
    let append = [&["panic=-1"], options].concat().join(" ");
    let vng = std::env::var("IRQLAB_VNG").unwrap_or_else(|_| "vng".to_owned());
    let mut words: Vec<String> = [&vng, "--run", kernel, "--disable-kvm"].map(str::to_owned).to_vec();
    words.extend(["--cpus".to_owned(), cpus.to_string(), "--memory".to_owned(), format!("{memory}M")]);
    words.push(format!("--rwdir={}", shared.display()));
    words.extend(["--append".to_owned(), append]);
    words.push(format!("--qemu-opts=-serial file:{}", console.display()));
    words.extend(["--".to_owned(), command.to_owned()]);
    words
}
