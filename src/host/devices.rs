//! Which interrupt is whose: network and block devices, PCI functions, and their drivers.
//!
//! A PCI function lists its interrupts itself (`msi_irqs`, or `irq` for a line), whatever the handlers are called.
//! Devices elsewhere are found by the names of their handlers.

use std::cmp::Ordering;
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

use super::reader::Reader;
use crate::cpu_set::Irq;
use crate::recording::facts::{Device, DeviceClass, IrqFacts};

static PCI_ADDRESS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]").expect("the pattern is constant"));

/// Buses whose drivers are for the medium and not for what interrupts: a disk's `sd` says nothing of its controller.
const MEDIUM_BUSES: &[&str] = &["mmc", "scsi"];

const PCI: &str = "/sys/bus/pci/devices";

/// A PCI function.
struct Function {
    address: String,
    irqs: Vec<Irq>,
    driver: Option<String>,
    class: DeviceClass,
}

/// A device on its way: the interrupts are not known yet.
struct Found {
    device: Device,
    /// Names its handlers may carry, the nearest first.
    names: Vec<String>,
}

/// Finds the devices and tells every interrupt whose it is.
pub(super) fn read(reader: &Reader, irqs: &mut [IrqFacts]) -> Vec<Device> {
    let functions = functions(reader, irqs);
    let mut found = network_devices(reader);
    found.extend(block_devices(reader));
    let all: Vec<(String, Option<String>)> =
        found.iter().map(|found| (found.device.name.clone(), found.device.pci.clone())).collect();
    let mut devices = Vec::new();
    for Found { mut device, names } in found {
        let function = functions.iter().find(|function| Some(&function.address) == device.pci.as_ref());
        let listed = function.map(|function| &*function.irqs).unwrap_or_default();
        device.irqs = match listed {
            [] => by_name(irqs, &names, &all),
            listed => without_those_of_others(irqs, listed, (&device, &all)),
        };
        in_queue_order(irqs, &mut device.irqs);
        device.driver = device.driver.take().or_else(|| function.and_then(|function| function.driver.clone()));
        devices.push(device);
    }
    assign(irqs, &functions, &devices);
    let requested = |irq: &Irq| irqs.iter().any(|facts| facts.irq == *irq && !facts.actions.is_empty());
    for device in &mut devices {
        device.irqs.retain(requested);
    }
    devices
}

fn functions(reader: &Reader, irqs: &[IrqFacts]) -> Vec<Function> {
    let mut functions = Vec::new();
    for address in reader.list(PCI) {
        let place = format!("{PCI}/{address}");
        let own = driver_of(reader, &place);
        let mut listed: Vec<Irq> = reader.numbers(&format!("{place}/msi_irqs"), "").into_iter().map(Irq).collect();
        if listed.is_empty() && own.is_some() {
            let line = reader.number(&format!("{place}/irq")).filter(|irq| *irq != 0).map(Irq);
            listed.extend(line.filter(|line| irqs.iter().any(|facts| facts.irq == *line)));
        }
        let virtio = reader.list(&place).into_iter().find(|name| is_virtio(name));
        let inner = virtio.and_then(|name| driver_of(reader, &format!("{place}/{name}")));
        let class = class_of(reader.text(&format!("{place}/class")).as_deref());
        functions.push(Function { address, irqs: listed, driver: inner.or(own), class });
    }
    functions
}

fn network_devices(reader: &Reader) -> Vec<Found> {
    let names = reader.list("/sys/class/net").into_iter();
    names.filter_map(|name| found(reader, name, ("/sys/class/net", DeviceClass::Net))).collect()
}

fn block_devices(reader: &Reader) -> Vec<Found> {
    let names = reader.list("/sys/block").into_iter();
    names.filter_map(|name| found(reader, name, ("/sys/block", DeviceClass::Storage))).collect()
}

/// Devices without hardware behind them (`lo`, `dm-0`) have no `device` and no interrupt.
fn found(reader: &Reader, name: String, (folder, class): (&str, DeviceClass)) -> Option<Found> {
    let place = format!("{folder}/{name}/device");
    let mut path = reader.resolve(&place)?;
    if let Some(controller) = nvme_controller(&name).filter(|_| path.starts_with("/sys/devices/virtual")) {
        path = reader.resolve(&format!("/sys/class/nvme/{controller}/device"))?;
    }
    let ancestors: Vec<&Path> = path.ancestors().take_while(|path| path.starts_with("/sys/devices/")).collect();
    let ancestors: Vec<String> = ancestors.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    let last = |path: &String| path.rsplit('/').next().unwrap_or_default().to_owned();
    let pci = ancestors.iter().map(last).find(|name| is_pci_address(name));
    let function = ancestors.iter().position(|path| Some(last(path)) == pci).unwrap_or(ancestors.len());
    let driver = ancestors.iter().take(function + 1).find_map(|path| driver_of(reader, path));
    let mut node = None;
    for path in ancestors.iter().take(function + 1) {
        node = node.or_else(|| reader.number(&format!("{path}/numa_node")));
    }
    let mut names = vec![name.clone()];
    names.extend(nvme_controller(&name));
    names.extend(ancestors.iter().map(last).filter(|name| may_name_handlers(name)));
    // `mlx5_comp3@pci:0000:86:00.0`, `ahci[0000:00:1f.2]`
    names.extend(pci.clone());
    let device = Device { name, class, driver, pci, node, irqs: Vec::new() };
    Some(Found { device, names })
}

/// `nvme0` of `nvme0n1` and `nvme0c1n1`.
fn nvme_controller(name: &str) -> Option<String> {
    let digits: String = name.strip_prefix("nvme")?.chars().take_while(char::is_ascii_digit).collect();
    Some(format!("nvme{digits}")).filter(|_| !digits.is_empty())
}

/// Whether handlers may be called after a part of a device's path: `virtio2`, `mmc0`, `fd580000.ethernet`.
fn may_name_handlers(name: &str) -> bool {
    const PLACES: &[&str] = &["devices", "net", "platform", "soc", "system", "virtual"];
    let letters = name.bytes().filter(u8::is_ascii_alphabetic).count();
    letters > 1 && name.len() > 2 && !PLACES.contains(&name) && !is_pci_address(name) && !name.starts_with("pci0")
}

/// Interrupts with a handler named after the device, by the first of its names that any carries.
fn by_name(irqs: &[IrqFacts], names: &[String], all: &[(String, Option<String>)]) -> Vec<Irq> {
    let named = |name: &String| -> Vec<Irq> {
        let longer = |action: &String| {
            all.iter()
                .any(|(other, _)| other.len() > name.len() && other.contains(name.as_str()) && mentions(action, other))
        };
        let carries = |facts: &&IrqFacts| facts.actions.iter().any(|action| mentions(action, name) && !longer(action));
        irqs.iter().filter(carries).map(|facts| facts.irq).collect()
    };
    names.iter().map(named).find(|irqs| !irqs.is_empty()).unwrap_or_default()
}

/// One function may carry two ports: handlers named after the other one are not this one's.
fn without_those_of_others(
    irqs: &[IrqFacts],
    listed: &[Irq],
    (device, all): (&Device, &[(String, Option<String>)]),
) -> Vec<Irq> {
    let others =
        all.iter().filter(|(name, pci)| *pci == device.pci && *name != device.name && device.class == DeviceClass::Net);
    let others: Vec<&String> = others.map(|(name, _)| name).collect();
    let is_others = |irq: &Irq| {
        let actions = irqs.iter().find(|facts| facts.irq == *irq).map(|facts| &*facts.actions).unwrap_or_default();
        let names = |name: &str| actions.iter().any(|action| mentions(action, name));
        others.iter().any(|other| names(other)) && !names(&device.name)
    };
    listed.iter().copied().filter(|irq| !is_others(irq)).collect()
}

/// Whether a text holds a name as a whole: `eth1` is in `eth1-rx-0` and not in `eth10-rx-0` or `veth1`. The queue may
/// stand right behind it: `nvme0` is in `nvme0q12`.
fn mentions(text: &str, name: &str) -> bool {
    let is_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    let is_queue = |rest: &str| {
        let number = rest.strip_prefix('q').unwrap_or_default();
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        digits > 0 && !is_word(number[digits..].chars().next())
    };
    let mut places = text.match_indices(name);
    places.any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        !is_word(before.chars().next_back()) && (!is_word(after.chars().next()) || is_queue(after))
    })
}

fn in_queue_order(irqs: &[IrqFacts], selected: &mut [Irq]) {
    let action = |irq: Irq| irqs.iter().find(|facts| facts.irq == irq).and_then(|facts| facts.actions.first());
    selected.sort_by(|a, b| match (action(*a), action(*b)) {
        (Some(first), Some(second)) => natural_order(first, second).then(a.cmp(b)),
        (first, second) => second.is_some().cmp(&first.is_some()).then(a.cmp(b)),
    });
}

/// Orders texts so that numbers in them count as numbers: `rx-9` before `rx-10`.
pub fn natural_order(a: &str, b: &str) -> Ordering {
    let (mut a, mut b) = (a, b);
    loop {
        let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
        let (first, second) = (digits(a), digits(b));
        if first > 0 && second > 0 {
            let (x, y) = (a[..first].trim_start_matches('0'), b[..second].trim_start_matches('0'));
            let order = x.len().cmp(&y.len()).then(x.cmp(y)).then(first.cmp(&second));
            if order != Ordering::Equal {
                return order;
            }
            (a, b) = (&a[first..], &b[second..]);
            continue;
        }
        match (a.chars().next(), b.chars().next()) {
            (Some(x), Some(y)) if x == y => (a, b) = (&a[x.len_utf8()..], &b[y.len_utf8()..]),
            (x, y) => return x.cmp(&y),
        }
    }
}

fn assign(irqs: &mut [IrqFacts], functions: &[Function], devices: &[Device]) {
    for facts in irqs {
        let owners: Vec<&Device> = devices.iter().filter(|device| device.irqs.contains(&facts.irq)).collect();
        let function = functions.iter().find(|function| function.irqs.contains(&facts.irq));
        let texts = std::iter::once(&facts.chip).chain(&facts.actions);
        let named = texts.filter_map(|text| PCI_ADDRESS.find(text)).map(|address| address.as_str().to_owned()).next();
        let function = function.or_else(|| functions.iter().find(|function| Some(&function.address) == named.as_ref()));
        facts.pci = function.map(|function| function.address.clone()).or(named);
        let owner = owners.first();
        facts.pci = facts.pci.take().or_else(|| owner.and_then(|device| device.pci.clone()));
        facts.device = match &*owners {
            [] => facts.pci.clone(),
            [device] => Some(device.name.clone()),
            [first, rest @ ..] if first.pci.is_some() && rest.iter().all(|device| device.pci == first.pci) => {
                first.pci.clone()
            }
            several => Some(several.iter().map(|device| &*device.name).collect::<Vec<_>>().join(", ")),
        };
        let driver = owner.and_then(|device| device.driver.clone());
        facts.driver = driver.or_else(|| function.and_then(|function| function.driver.clone()));
        let class = owners.iter().map(|device| device.class).find(|class| *class == DeviceClass::Net);
        let class =
            class.or_else(|| owner.map(|device| device.class)).or_else(|| function.map(|function| function.class));
        facts.class = class.unwrap_or(DeviceClass::Other);
    }
}

/// The driver bound to a device, unless it is one for a medium.
fn driver_of(reader: &Reader, place: &str) -> Option<String> {
    let driver = reader.resolve(&format!("{place}/driver"))?;
    let bus = driver.strip_prefix("/sys/bus").ok()?.components().next()?.as_os_str().to_str()?.to_owned();
    let name = driver.file_name()?.to_str()?.to_owned();
    Some(name).filter(|_| !MEDIUM_BUSES.contains(&&*bus))
}

/// PCI base class 01 is mass storage, 02 network (PCI Code and ID Assignment Specification).
fn class_of(class: Option<&str>) -> DeviceClass {
    match class.and_then(|class| class.strip_prefix("0x")).and_then(|digits| digits.get(..2)) {
        Some("01") => DeviceClass::Storage,
        Some("02") => DeviceClass::Net,
        _ => DeviceClass::Other,
    }
}

fn is_pci_address(name: &str) -> bool {
    PCI_ADDRESS.find(name).is_some_and(|found| found.len() == name.len())
}

fn is_virtio(name: &str) -> bool {
    name.strip_prefix("virtio").is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_mentioned_only_as_a_whole() {
        for text in ["eth1", "eth1-rx-0", "ice-eth1-TxRx-2", "mlx5@eth1:0", "p_eth1"] {
            assert!(mentions(text, "eth1"), "{text}");
        }
        for text in ["eth10", "eth10-rx-0", "veth1", "eth", ""] {
            assert!(!mentions(text, "eth1"), "{text}");
        }
        assert!(mentions("eth10-eth1", "eth1"));
    }

    fn interrupts(actions: &[&str]) -> Vec<IrqFacts> {
        let facts = |(irq, action): (u32, &&str)| IrqFacts {
            irq: Irq(irq),
            actions: vec![(*action).to_owned()],
            chip: "PCI-MSI".to_owned(),
            hwirq: None,
            affinity: None,
            effective: None,
            hint: None,
            node: None,
            movability: crate::recording::facts::Movability::Movable,
            device: None,
            driver: None,
            pci: None,
            class: DeviceClass::Other,
        };
        (0..).zip(actions).map(facts).collect()
    }

    #[test]
    fn handlers_of_every_driver_find_their_device_in_queue_order() {
        let device = |name: &str| (name.to_owned(), None);
        let all: Vec<_> = ["eth0", "eth1", "eth10", "nvme0n1", "nvme1n1", "nvme10n1", "sda"].map(device).to_vec();
        for (names, actions, expected) in [
            (&["eth1"][..], &["eth10-rx-9", "eth1-rx-10", "eth1-rx-9", "eth1", "veth1"][..], &[3, 2, 1][..]),
            (&["eth10", "0000:86:00.0"], &["eth1-rx-0", "eth10-rx-1", "eth10-rx-0"], &[2, 1]),
            (
                &["nvme0n1", "nvme0"],
                &["nvme0q12", "nvme0q2", "nvme0q0", "nvme10q1", "nvme0q1x", "anvme0q1"],
                &[2, 1, 0],
            ),
            (&["nvme1n1", "nvme1"], &["nvme1q1", "nvme10q1", "nvme11q1", "nvme 1 io5"], &[0]),
            (&["eth0"], &["iavf-eth0-TxRx-3", "iavf-eth0-TxRx-10", "iavf-eth0:mbx", "iavf-eth01-TxRx-0"], &[0, 1, 2]),
            (
                &["eth0", "virtio3"],
                &["virtio3-input.10", "virtio3-input.9", "virtio3-config", "virtio30-input.0"],
                &[2, 1, 0],
            ),
            (
                &["sda", "megasas0"],
                &["megasas0-msix4", "megasas0-msix10", "megasas0-msix0", "megasas01-msix1"],
                &[2, 0, 1],
            ),
            (
                &["eth0", "0000:86:00.0"],
                &["mlx5_comp10@pci:0000:86:00.0", "mlx5_comp3@pci:0000:86:00.0", "mlx5_comp3@pci:0000:86:00.1"],
                &[1, 0],
            ),
            (&["sda", "0000:00:1f.2"], &["ahci[0000:00:1f.2]", "ahci[0000:00:1f.20]", "ahci[1000:00:1f.2]"], &[0]),
        ] {
            let irqs = interrupts(actions);
            let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
            let mut found = by_name(&irqs, &names, &all);
            in_queue_order(&irqs, &mut found);
            let found: Vec<u32> = found.iter().map(|irq| irq.0).collect();
            assert_eq!(found, expected, "{names:?} in {actions:?}");
        }
    }

    #[test]
    fn queues_are_ordered_by_number() {
        let mut names = [
            "eth0-rx-10",
            "eth0-rx-9",
            "eth0",
            "eth0-rx-1",
            "eth0-rx-01",
            "eth0-tx-0",
            "eth0-rx-99999999999999999999999",
        ];
        names.sort_by(|a, b| natural_order(a, b));
        let expected = [
            "eth0",
            "eth0-rx-1",
            "eth0-rx-01",
            "eth0-rx-9",
            "eth0-rx-10",
            "eth0-rx-99999999999999999999999",
            "eth0-tx-0",
        ];
        assert_eq!(names, expected);
    }
}
