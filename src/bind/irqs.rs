//! Interrupt selectors resolved on a host's interrupts and devices.

use std::collections::BTreeSet;

use wildmatch::WildMatch;

use super::cpus::{Unresolved, unknown_device};
use crate::cpu_set::Irq;
use crate::design::IrqSelector;
use crate::recording::HostFacts;
use crate::recording::facts::{DeviceClass, IrqFacts};

/// The interrupts a selector names, in queue order: by device, then in the order of its queues, then the rest by
/// number. May be empty.
pub(super) fn resolve(selector: &IrqSelector, facts: &HostFacts) -> Result<Vec<Irq>, Unresolved> {
    let set = evaluate(selector, facts)?;
    let queued = facts.devices.iter().flat_map(|device| device.irqs.iter().copied());
    let mut ordered: Vec<Irq> = Vec::with_capacity(set.len());
    let mut seen = BTreeSet::new();
    for irq in queued.chain(set.iter().copied()) {
        if set.contains(&irq) && seen.insert(irq) {
            ordered.push(irq);
        }
    }
    Ok(ordered)
}

fn evaluate(selector: &IrqSelector, facts: &HostFacts) -> Result<BTreeSet<Irq>, Unresolved> {
    let matching = |wanted: &dyn Fn(&IrqFacts) -> bool| {
        facts.irqs.iter().filter(|irq| wanted(irq)).map(|irq| irq.irq).collect::<BTreeSet<Irq>>()
    };
    Ok(match selector {
        IrqSelector::All => matching(&|irq| !irq.actions.is_empty()),
        IrqSelector::ClassNet => matching(&|irq| irq.class == DeviceClass::Net),
        IrqSelector::ClassStorage => matching(&|irq| irq.class == DeviceClass::Storage),
        IrqSelector::Device(name) => {
            let device = facts.device(name).ok_or_else(|| unknown_device(facts, name))?;
            device.irqs.iter().copied().collect()
        }
        IrqSelector::Difference(left, right) => &evaluate(left, facts)? - &evaluate(right, facts)?,
        IrqSelector::Driver(driver) => {
            let devices = facts.devices.iter().filter(|device| device.driver.as_ref() == Some(driver));
            let of_devices: BTreeSet<Irq> = devices.flat_map(|device| device.irqs.iter().copied()).collect();
            &of_devices | &matching(&|irq| irq.driver.as_ref() == Some(driver))
        }
        IrqSelector::Glob(pattern) => {
            let pattern = WildMatch::new(pattern);
            matching(&|irq| irq.actions.iter().any(|action| pattern.matches(action)))
        }
        IrqSelector::Intersection(left, right) => &evaluate(left, facts)? & &evaluate(right, facts)?,
        IrqSelector::Number(number) => matching(&|irq| irq.irq.0 == *number),
        IrqSelector::Pci(address) => {
            matching(&|irq| irq.pci.as_deref().is_some_and(|pci| pci.eq_ignore_ascii_case(address)))
        }
        IrqSelector::Union(left, right) => &evaluate(left, facts)? | &evaluate(right, facts)?,
    })
}

/// Whether the selector names interrupts one by one, so that one that cannot be moved makes the setting fail.
pub(super) fn names_each(selector: &IrqSelector) -> bool {
    match selector {
        IrqSelector::Number(_) => true,
        IrqSelector::Union(left, right) | IrqSelector::Intersection(left, right) => {
            names_each(left) && names_each(right)
        }
        IrqSelector::Difference(left, _) => names_each(left),
        IrqSelector::All
        | IrqSelector::ClassNet
        | IrqSelector::ClassStorage
        | IrqSelector::Device(_)
        | IrqSelector::Driver(_)
        | IrqSelector::Glob(_)
        | IrqSelector::Pci(_) => false,
    }
}

/// The selector in the words of the file.
pub(super) fn words(selector: &IrqSelector) -> String {
    let pair = |left: &IrqSelector, operator: &str, right: &IrqSelector| {
        format!("({} {operator} {})", words(left), words(right))
    };
    match selector {
        IrqSelector::All => "irq *".to_owned(),
        IrqSelector::ClassNet => "irq class net".to_owned(),
        IrqSelector::ClassStorage => "irq class storage".to_owned(),
        IrqSelector::Device(name) => format!("irq of {name}"),
        IrqSelector::Difference(left, right) => pair(left, "-", right),
        IrqSelector::Driver(driver) => format!("irq of driver {driver}"),
        IrqSelector::Glob(pattern) => format!("irq \"{pattern}\""),
        IrqSelector::Intersection(left, right) => pair(left, "&", right),
        IrqSelector::Number(number) => format!("irq {number}"),
        IrqSelector::Pci(address) => format!("irq of pci {address}"),
        IrqSelector::Union(left, right) => pair(left, "+", right),
    }
}
