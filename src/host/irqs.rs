//! Numbered interrupts: mask, effective CPU, hint, node, and whether the mask can be set.

use std::collections::BTreeSet;

use super::counters::Table;
use super::interrupts::{Description, describe};
use super::reader::Reader;
use crate::cpu_set::{CpuSet, Irq, MAX_IRQ};
use crate::recording::facts::{DeviceClass, IrqFacts, Movability};

/// Interrupts of `/proc/irq` and of `/proc/interrupts`, ascending, not yet assigned to devices.
pub(super) fn read(reader: &Reader, interrupts: Option<&Table>) -> Vec<IrqFacts> {
    let mut numbers: BTreeSet<u32> =
        reader.numbers("/proc/irq", "").into_iter().filter(|irq| *irq <= MAX_IRQ).collect();
    numbers.extend(interrupts.iter().flat_map(|table| &table.rows).filter_map(|row| row.irq).map(|irq| irq.0));
    numbers.into_iter().map(|number| read_irq(reader, Irq(number), interrupts)).collect()
}

fn read_irq(reader: &Reader, irq: Irq, interrupts: Option<&Table>) -> IrqFacts {
    let place = format!("/proc/irq/{irq}");
    let Description { chip, hwirq, actions } = description(reader, irq, interrupts);
    IrqFacts {
        irq,
        actions,
        chip,
        hwirq,
        affinity: list_or_mask(reader, &format!("{place}/smp_affinity")),
        effective: list_or_mask(reader, &format!("{place}/effective_affinity")),
        hint: reader.cpu_mask(&format!("{place}/affinity_hint")).filter(|hint| !hint.is_empty()),
        node: reader.number(&format!("{place}/node")),
        movability: movability(reader, &place),
        device: None,
        driver: None,
        pci: None,
        class: DeviceClass::Other,
    }
}

/// `/sys/kernel/irq/N` says what has to be guessed from the text of `/proc/interrupts`.
fn description(reader: &Reader, irq: Irq, interrupts: Option<&Table>) -> Description {
    let place = format!("/sys/kernel/irq/{irq}");
    let text = interrupts.and_then(|table| table.irq(irq)).map(describe).unwrap_or_default();
    let Some(chip) = reader.text(&format!("{place}/chip_name")) else { return text };
    let actions = reader.text(&format!("{place}/actions")).unwrap_or_default();
    let actions = actions.split(',').filter(|action| !action.is_empty()).map(str::to_owned).collect();
    Description { chip, hwirq: reader.text(&format!("{place}/hwirq")).or(text.hwirq), actions }
}

fn list_or_mask(reader: &Reader, path: &str) -> Option<CpuSet> {
    reader.cpu_list(&format!("{path}_list")).or_else(|| reader.cpu_mask(path))
}

/// From the mode of the file, never by a write: even a write of the same mask leaves a trace in the kernel.
fn movability(reader: &Reader, place: &str) -> Movability {
    match reader.files.mode(&format!("{place}/smp_affinity")) {
        Ok(mode) if mode & 0o200 == 0 => Movability::Managed,
        Ok(_) => Movability::Movable,
        Err(_) => Movability::NoMask,
    }
}
