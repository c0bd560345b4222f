//! `/proc/cmdline` without what tells one host from another. Knows no file.

use std::sync::LazyLock;

use regex::Regex;

/// What stands for a dropped value.
pub(super) const DROPPED: &str = "…";

/// Options whose value names a disk, a host, an address, an account or a program of that host alone, wherever it
/// occurs.
const NAMING: &[&str] = &[
    "autoinstall",
    "bootif",
    "bond",
    "bridge",
    "cifsroot",
    "cryptdevice",
    "ds",
    "hostname",
    "ifname",
    "init",
    "ip",
    "ks",
    "machine_id",
    "nameserver",
    "netconsole",
    "nfsaddrs",
    "nfsroot",
    "rdinit",
    "resume",
    "root",
    "sshd",
    "team",
    "url",
    "uuid",
    "vlan",
];

/// Prefixes of families of such options.
const NAMING_FAMILIES: &[&str] =
    &["inst.", "iscsi", "rd.dasd", "rd.iscsi", "rd.luks", "rd.lvm", "rd.md", "rd.nvmf", "rd.zfcp", "rd.znet"];

static NAMING_VALUE: LazyLock<Regex> = LazyLock::new(|| {
    let uuid = r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}";
    let mac = r"(?:[0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}";
    let ipv4 = r"\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b";
    let ipv6 = r"(?:[0-9a-fA-F]{1,4}:){3,}[0-9a-fA-F:]*|[0-9a-fA-F:]*::[0-9a-fA-F:]+";
    let domain = r"\b[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)+\.[a-z]{2,}\b";
    let long_hex = r"\b[0-9a-fA-F]{16,}\b";
    let all = format!("{uuid}|{mac}|{ipv4}|{ipv6}|{domain}|{long_hex}|://|@");
    Regex::new(&all).expect("the pattern is constant")
});

/// Drops identifying values (`root=…`), words that hold the host's name, and everything behind ` -- `, which goes to
/// init. Applying it twice changes nothing.
pub(super) fn without_identity(text: &str, host_name: Option<&str>) -> String {
    let words: Vec<String> = options(text).into_iter().map(|word| without_identity_of(word, host_name)).collect();
    words.join(" ")
}

fn without_identity_of(word: &str, host_name: Option<&str>) -> String {
    let (name, value) = word.split_once('=').unwrap_or(("", word));
    let option = name.to_ascii_lowercase().replace('-', "_");
    let last = option.rsplit('.').next().unwrap_or(&option);
    let naming = NAMING.contains(&last) || NAMING_FAMILIES.iter().any(|family| option.starts_with(family));
    let names_host = host_name.is_some_and(|host| host.len() > 2 && host != "localhost" && value.contains(host));
    if !naming && !names_host && !NAMING_VALUE.is_match(value) {
        return word.to_owned();
    }
    if name.is_empty() { DROPPED.to_owned() } else { format!("{name}={DROPPED}") }
}

/// The options on a command line, in their order: what stands behind ` -- ` goes to init and is none.
pub(super) fn options(text: &str) -> Vec<&str> {
    words(text).into_iter().take_while(|word| *word != "--").collect()
}

/// The name of an option as the kernel compares it: `-` and `_` are the same letter (`parameq`, kernel/params.c).
pub(super) fn name(option: &str) -> String {
    option.split('=').next().unwrap_or_default().replace('-', "_")
}

/// An option's name and value without quotes, comparable with another one's.
pub(super) fn comparable(option: &str) -> String {
    let value = option.split_once('=').map(|(_, value)| format!("={value}")).unwrap_or_default();
    format!("{}{value}", name(option)).replace('"', "")
}

/// Words, with blanks inside double quotes kept (`next_arg`, lib/cmdline.c).
fn words(text: &str) -> Vec<&str> {
    let mut quoted = false;
    let split = text.split(move |letter: char| {
        quoted ^= letter == '"';
        letter.is_whitespace() && !quoted
    });
    split.filter(|word| !word.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_identifies_is_dropped_and_what_explains_is_kept() {
        for (given, kept) in [
            (
                "BOOT_IMAGE=/vmlinuz-5.14.0-362.el9.x86_64 root=UUID=0a1b ro quiet init=/opt/agent",
                "BOOT_IMAGE=/vmlinuz-5.14.0-362.el9.x86_64 root=… ro quiet init=…",
            ),
            (
                "isolcpus=managed_irq,domain,2-7 nohz_full=2-7 irqaffinity=0-1",
                "isolcpus=managed_irq,domain,2-7 nohz_full=2-7 irqaffinity=0-1",
            ),
            ("ip=10.0.0.5::10.0.0.1:255.255.255.0:web01:eth0:off", "ip=…"),
            ("systemd.hostname=web01 x=a-web01-b", "systemd.hostname=… x=…"),
            (
                "rd.luks.uuid=luks-77 rd.lvm.lv=vg_web/root BOOTIF=01-52-54-00-12-34-56",
                "rd.luks.uuid=… rd.lvm.lv=… BOOTIF=…",
            ),
            ("netconsole=6665@10.0.0.1/eth0,6666@10.0.0.2/aa:bb:cc:dd:ee:ff", "netconsole=…"),
            (
                "dyndbg=\"file drivers/x.c +p; root=1\" mitigations=auto,nosmt",
                "dyndbg=\"file drivers/x.c +p; root=1\" mitigations=auto,nosmt",
            ),
            ("init=/sbin/x vendor.log=https://logs/x -- --addr 0.0.0.0 secret", "init=… vendor.log=…"),
            ("a=fe80::1 b=db.rack7.example.org c=600508b1001c1234abcd 192.168.7.7", "a=… b=… c=… …"),
            (
                "console=ttyS0,115200n8 pci=nocrs memmap=1G!4G hugepages=64 intel_idle.max_cstate=1",
                "console=ttyS0,115200n8 pci=nocrs memmap=1G!4G hugepages=64 intel_idle.max_cstate=1",
            ),
            (
                "vfio-pci.ids=10de:1eb8,10de:10f0 pci=realloc,hpmemsize=0000:3b:00.0",
                "vfio-pci.ids=10de:1eb8,10de:10f0 pci=realloc,hpmemsize=0000:3b:00.0",
            ),
            ("", ""),
        ] {
            let found = without_identity(given, Some("web01"));
            assert_eq!(found, kept);
            assert_eq!(without_identity(&found, Some("web01")), kept, "twice");
        }
    }
}
