//! Puts the facts of a host together.

use super::counters::Table;
use super::files::Files;
use super::reader::Reader;
use super::{command_line, devices, irqs, machine, mounts, tasks, topology};
use crate::recording::HostFacts;

/// Reads everything that is known of a host. Never fails: what is absent is absent in the facts, what could not be
/// read is named there.
pub fn read_facts(files: &dyn Files) -> HostFacts {
    let reader = Reader::new(files);
    let interrupts = interrupts(&reader);
    let cpuinfo = machine::cpuinfo(&reader);
    let mounts = mounts::read(&reader);
    let topology = topology::read(&reader, interrupts.as_ref());
    let mut irqs = irqs::read(&reader, interrupts.as_ref());
    let devices = devices::read(&reader, &mut irqs);
    let host_name = reader.text("/proc/sys/kernel/hostname");
    let command_line = reader.text("/proc/cmdline");
    let command_line = command_line.map(|line| command_line::without_identity(&line, host_name.as_deref()));
    let systemd = reader.text("/proc/1/comm").is_some_and(|comm| comm == "systemd");
    let own_architecture = files.is_live().then(|| std::env::consts::ARCH.to_owned());
    HostFacts {
        architecture: reader.text("/proc/sys/kernel/arch").or(own_architecture),
        kernel_release: reader.text("/proc/sys/kernel/osrelease"),
        kernel_version: reader.text("/proc/sys/kernel/version"),
        module_parameters: machine::module_parameters(&reader, command_line.as_deref().unwrap_or_default()),
        command_line,
        governors: topology::governors(&reader, &topology.online),
        turbo: topology::turbo(&reader),
        topology,
        clocksource: reader.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        memory_bytes: machine::memory_bytes(&reader),
        virtualisation: machine::virtualisation(&reader, &cpuinfo),
        cpu_model: cpuinfo.model,
        cpu_mhz: cpuinfo.mhz,
        mitigations: machine::mitigations(&reader),
        default_affinity: reader.cpu_mask("/proc/irq/default_smp_affinity"),
        irqs,
        devices,
        writers: tasks::read_writers(files),
        cpuset: mounts::cpuset(&reader, &mounts),
        systemd: systemd || files.exists("/run/systemd/system"),
        irq_writable: mounts::irq_writable(&mounts),
        nmi_watchdog: reader.number::<u8>("/proc/sys/kernel/nmi_watchdog").map(|enabled| enabled != 0),
        nmi_growth: None,
        performance_counters: machine::performance_counters(&reader),
        threaded_irqs: tasks::read_threaded_irqs(files),
        unreadable: reader.into_unreadable(),
    }
}

fn interrupts(reader: &Reader) -> Option<Table> {
    let text = reader.bytes("/proc/interrupts")?;
    match Table::parse(&text) {
        Ok(table) => Some(table),
        Err(error) => {
            reader.note(format!("/proc/interrupts: {error}"));
            None
        }
    }
}
