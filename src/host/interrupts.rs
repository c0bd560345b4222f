//! `/proc/interrupts`: what the text of a row says of its interrupt. Knows no file.
//!
//! `/sys/kernel/irq/N` says the same in separate files and is preferred where it exists; this is for hosts without it,
//! and for telling whether a row of two samples is still the same interrupt.

use super::counters::{Row, Table, TableError};

/// Reads `/proc/interrupts`.
pub fn parse(text: &[u8]) -> Result<Table, TableError> {
    Table::parse(text)
}

/// Chip, hardware number and actions as far as the text tells them apart.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Description {
    /// Chip: `IO-APIC`, `IR-PCI-MSIX-0000:65:00.0`, `codec26 IRQ1 Controller`; fused with the flow (`IO-APIC-edge`)
    /// on kernels that print it so.
    pub chip: String,
    /// Hardware interrupt number, where one is shown.
    pub hwirq: Option<String>,
    /// Handler names; empty when nobody has requested the interrupt.
    pub actions: Vec<String>,
}

/// Takes a numbered row's text apart: actions stand behind the last run of two or more blanks, joined with `, `.
/// Chips and actions may hold single blanks, colons and digits, so nothing is read by position or by name.
pub fn describe(row: &Row) -> Description {
    let text: &str = &row.description;
    let (front, last) = match last_gap(text) {
        Some(gap) if !is_hardware_part(text[gap..].trim_start()) => (text[..gap].trim_end(), text[gap..].trim_start()),
        _ => (text, ""),
    };
    let (chip, hwirq) = split_chip(front);
    let actions = last.split(", ").map(str::trim).filter(|action| !action.is_empty()).map(str::to_owned).collect();
    Description { chip, hwirq, actions }
}

/// Where the last run of at least two blanks begins.
fn last_gap(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let blank = |at: usize| matches!(bytes[at], b' ' | b'\t');
    let end = (1..bytes.len()).rev().find(|at| blank(*at) && blank(at - 1))?;
    Some((0..end).rev().find(|at| !blank(*at)).map_or(0, |at| at + 1))
}

/// Whether a text is what stands before the actions: `7-edge`, `27 Level`, `63 Edge -fasteoi`, `-event`, `16`.
/// A row that nobody has requested ends with it.
fn is_hardware_part(text: &str) -> bool {
    if text.starts_with('-') {
        return text.len() > 1;
    }
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    digits > 0 && is_flow(&text[digits..])
}

/// What may follow a hardware number: nothing, `-edge`, ` Level`, ` Edge -flow`.
fn is_flow(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t']).strip_prefix("Level").unwrap_or(text);
    let text = text.trim_start_matches([' ', '\t']).strip_prefix("Edge").unwrap_or(text).trim();
    text.is_empty() || text.starts_with('-') && !text.contains(' ')
}

/// Splits `IR-PCI-MSI 512000-edge` behind the chip. The number is the last word made of digits whose rest is a flow.
fn split_chip(front: &str) -> (String, Option<String>) {
    let mut starts = front.match_indices([' ', '\t']).map(|(at, _)| at + 1).filter(|at| *at < front.len());
    let number = starts.find(|at| is_hardware_part(&front[*at..]));
    let Some(at) = number else { return (front.to_owned(), None) };
    let digits = front[at..].bytes().take_while(u8::is_ascii_digit).count();
    let hwirq = (digits > 0).then(|| front[at..at + digits].to_owned());
    (front[..at].trim_end().to_owned(), hwirq)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(text: &str) -> (String, Option<String>, Vec<String>) {
        let table = parse(format!("   CPU0   CPU1\n 9:   1   2{text}\n").as_bytes()).unwrap();
        let description = describe(&table.rows[0]);
        (description.chip, description.hwirq, description.actions)
    }

    #[test]
    fn chips_numbers_and_actions_of_every_known_layout_are_told_apart() {
        for (text, chip, hwirq, actions) in [
            ("   IO-APIC-edge  PS/2 Mouse", "IO-APIC-edge", "", "PS/2 Mouse"),
            ("         XT-PIC  ohci_hcd, eth0, Bt87x audio", "XT-PIC", "", "ohci_hcd|eth0|Bt87x audio"),
            ("   IO-APIC-edge", "IO-APIC-edge", "", ""),
            ("   IO-APIC   2-edge      timer", "IO-APIC", "2", "timer"),
            ("   IO-APIC   7-edge", "IO-APIC", "7", ""),
            ("   IO-APIC  16-fasteoi", "IO-APIC", "16", ""),
            ("  IR-PCI-MSI 524288-edge", "IR-PCI-MSI", "524288", ""),
            ("  IR-PCI-MSI 512000-edge      ahci[0000:00:1f.2]", "IR-PCI-MSI", "512000", "ahci[0000:00:1f.2]"),
            (" PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0", "PCI-MSIX-0000:00:03.0", "1", "virtio2-input.0"),
            ("     GICv3  27 Level     arch_timer", "GICv3", "27", "arch_timer"),
            ("     GICv3  27 Level", "GICv3", "27", ""),
            ("  ARMH0061:00   3 Edge      ACPI:Event", "ARMH0061:00", "3", "ACPI:Event"),
            ("  11910000.pinctrl  35 Edge      gpiomon", "11910000.pinctrl", "35", "gpiomon"),
            ("  codec26 IRQ1 Controller   0 Level     GPIO1 rise", "codec26 IRQ1 Controller", "0", "GPIO1 rise"),
            (
                "  e500000.pinctrl  63 Level     codec26 IRQ1 Controller",
                "e500000.pinctrl",
                "63",
                "codec26 IRQ1 Controller",
            ),
            ("  RISC-V INTC   5 Edge      riscv-timer", "RISC-V INTC", "5", "riscv-timer"),
            ("   xen-dyn    -event     vif0-q0-tx", "xen-dyn", "", "vif0-q0-tx"),
            ("   xen-dyn    -event", "xen-dyn", "", ""),
            ("  xen-dyn-lateeoi     -event     vif13.0-q1-tx", "xen-dyn-lateeoi", "", "vif13.0-q1-tx"),
            ("   PCI-MSI  mlx5_comp0@pci:0002:00:00.0", "PCI-MSI", "", "mlx5_comp0@pci:0002:00:00.0"),
            ("   PCI-MSI  0000:00:00.0", "PCI-MSI", "", "0000:00:00.0"),
            ("       UIC  25 Level     dw:dmac-1", "UIC", "25", "dw:dmac-1"),
            ("  ARMCTRL-level   1 Edge      3f00b880.mailbox", "ARMCTRL-level", "1", "3f00b880.mailbox"),
            ("  IR-IO-APIC                  9-fasteoi   acpi", "IR-IO-APIC", "9", "acpi"),
            ("       GIC  29  twd", "GIC", "29", "twd"),
            ("  IR-PCI-MSI 1048576-edge      nvme 0 io5", "IR-PCI-MSI", "1048576", "nvme 0 io5"),
            ("  None", "None", "", ""),
            ("", "", "", ""),
        ] {
            let hwirq = (!hwirq.is_empty()).then(|| hwirq.to_owned());
            let actions: Vec<String> = actions.split('|').filter(|text| !text.is_empty()).map(str::to_owned).collect();
            assert_eq!(described(text), (chip.to_owned(), hwirq, actions), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_description_is_taken_apart(text in "\\PC{0,60}") {
            let _ = described(&format!("  {text}"));
        }
    }
}
