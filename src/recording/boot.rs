//! What is known of one boot: of a lab's machine, or of the host itself where levels ask for a kernel command line.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{HostFacts, Treatment};

/// One boot, as it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Boot {
    /// Running number over all boots of the run, from 1. A machine that died is booted again under a new number.
    pub number: u32,
    /// [`super::PlannedTrial::boot`] of the trials it was booted for.
    pub planned: u32,
    /// RFC 3339, UTC, when the machine was ready for its first trial.
    pub at: String,
    /// `/proc/sys/kernel/random/boot_id`: another one at every boot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_id: Option<String>,
    /// The virtual machine; `None` for a boot of the host itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lab: Option<LabFacts>,
    /// Facts of the booted machine.
    pub host: HostFacts,
    /// Options asked for, and what the kernel shows of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<BootOption>,
    /// Treatments it was booted for as bound to it, by their index in the design.
    pub treatments: BTreeMap<usize, Treatment>,
}

/// A boot of the host that was asked for, because the running one is not the one that is due.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootAsked {
    /// RFC 3339, UTC.
    pub at: String,
    /// `/proc/sys/kernel/random/boot_id` of the boot in which it was asked for.
    pub boot_id: String,
    /// [`super::PlannedTrial::boot`] of the trials it is for.
    pub planned: u32,
    /// Options of it that are not in force in this boot.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<BootOption>,
    /// Options of other levels that are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unwanted: Vec<BootOption>,
    /// `/proc/cmdline` of this boot, without what identifies the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_line: Option<String>,
}

/// The virtual machine of a boot.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LabFacts {
    /// What runs the guest's instructions.
    pub accelerator: Accelerator,
    /// Why it is emulated where it is: what the probe of `/dev/kvm` gave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `QEMU emulator version 7.2.22`
    pub qemu: String,
    /// `virtme-ng 1.42`
    pub vng: String,
    /// The whole command that booted it, folders of this run as `SHARED` and the like.
    pub command: Vec<String>,
    /// From starting the command to the guest's first sign of life, milliseconds.
    pub boot_ms: u64,
    /// File of the console beside the recording.
    pub console: String,
}

/// What runs a guest's instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accelerator {
    /// Software: timings do not speak of hardware; interrupt counts and routing are the real kernel's.
    Emulated,
    /// Hardware virtualisation.
    Kvm,
}

/// An option of the kernel command line and the kernel's own evidence for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootOption {
    /// `noapic`, `nmi_watchdog=1`
    pub option: String,
    /// Whether it is in force; `None` when the kernel shows nothing of it but its command line.
    pub in_force: Option<bool>,
    /// What was looked at and found: `no IO-APIC rows, 6 XT-PIC rows`.
    pub evidence: String,
}
