//! SMT and CPUs on- and offline. What a CPU takes with it when it goes (masks, cpusets, task affinities) is named here
//! so that it can be saved first.

use super::journal::{Entry, Saved, Thing};
use super::{Back, Made, Refusal, System, affinity, kernel_file, tasks};
use crate::cpu_set::{Cpu, CpuSet};
use crate::host::files::{Files, SystemError};

/// `smt/control`
pub(super) const SMT: &str = "/sys/devices/system/cpu/smt/control";

/// Where a CPU is switched.
pub(super) fn path(cpu: Cpu) -> String {
    format!("/sys/devices/system/cpu/cpu{cpu}/online")
}

/// Reads the state of SMT. Only `on` and `off` may ever be written, so only they can be left.
pub(super) fn save_smt(files: &dyn Files) -> Result<Saved, Refusal> {
    let now = files.read(SMT).map_err(|error| {
        let gone = error.is_gone();
        Refusal::from(error).meaning(gone.then_some("this kernel has no SMT control"))
    })?;
    let now = Saved::of_bytes(&now);
    let reason = match kernel_file::text_of(&now).trim() {
        "on" | "off" => return Ok(now),
        "forceoff" => "SMT is switched off until the next boot".to_owned(),
        "notimplemented" => "this architecture has no SMT control".to_owned(),
        "notsupported" => "this CPU has no SMT".to_owned(),
        other => format!("SMT is in the state `{other}`, which irqlab could not put back"),
    };
    Err(Refusal::because("switch", SMT, reason))
}

/// Switches SMT and checks that it is switched.
pub(super) fn make_smt(system: &dyn System, on: bool) -> Result<Made, Refusal> {
    switch(system, SMT, if on { "on" } else { "off" })
}

/// Puts SMT back; never writes anything but `on` and `off`.
pub(super) fn put_back_smt(system: &dyn System, entry: &Entry) -> Back {
    match kernel_file::text_of(&entry.old).trim() {
        "on" | "off" => kernel_file::put_back(system, SMT, entry, kernel_file::meaning),
        other => Back::Failed(Refusal::because("switch", SMT, format!("`{other}` must not be written"))),
    }
}

/// Reads whether a CPU is online. CPU 0 often has no switch: it is online.
pub(super) fn save_cpu(files: &dyn Files, cpu: Cpu) -> Result<Saved, Refusal> {
    match files.read(&path(cpu)) {
        Ok(now) => Ok(Saved::of_bytes(&now)),
        Err(error) if error.is_gone() && files.exists(&format!("/sys/devices/system/cpu/cpu{cpu}")) => {
            Ok(Saved::Nothing)
        }
        Err(error) => {
            let gone = error.is_gone();
            Err(Refusal::from(error).meaning(gone.then_some("this host has no such CPU")))
        }
    }
}

/// Whether the CPU is in that state.
pub(super) fn is_right(now: &Saved, online: bool) -> bool {
    match now {
        Saved::Nothing => online,
        now => kernel_file::text_of(now).trim() == state(online),
    }
}

/// Refuses a CPU without a switch, before anything is journaled.
pub(super) fn check_switch(now: Saved, cpu: Cpu, online: bool) -> Result<Saved, Refusal> {
    if now == Saved::Nothing && !online {
        return Err(Refusal::because("switch", &path(cpu), format!("CPU {cpu} cannot be taken offline")));
    }
    Ok(now)
}

/// Switches a CPU and checks that it is switched.
pub(super) fn make_cpu(system: &dyn System, cpu: Cpu, online: bool) -> Result<Made, Refusal> {
    switch(system, &path(cpu), state(online))
}

/// What may change when a CPU goes or comes back, and its present state: CPUs somebody has taken offline, masks of
/// interrupts that can be set, cpusets of cgroup v1 below the root, affinities narrower than the host.
pub(super) fn disturbed(system: &dyn System) -> Result<Vec<(Thing, Saved)>, SystemError> {
    let mut found = offline_cpus(system);
    found.extend(affinity::movable(system)?);
    if let Some(root) = cpuset_root(system) {
        let mut folders = children(system, &root);
        while let Some(folder) = folders.pop() {
            folders.extend(children(system, &folder));
            let path = format!("{folder}/cpuset.cpus");
            if let Ok(cpus) = system.read(&path) {
                found.push((Thing::Cpuset { path }, Saved::of_bytes(&cpus)));
            }
        }
    }
    let possible = system.read_text("/sys/devices/system/cpu/possible").ok();
    let possible = possible.and_then(|text| CpuSet::parse_list(&text).ok()).unwrap_or_default();
    for task in tasks::scan(system)?.into_iter().filter(tasks::Task::is_movable) {
        if !possible.is_subset(&task.allowed) {
            found.push((task.thing(), Saved::Cpus(task.allowed.to_string())));
        }
    }
    Ok(found)
}

/// CPUs that are offline now. Switching SMT on brings all of them (`cpuhp_smt_enable`, kernel/cpu.c).
fn offline_cpus(files: &dyn Files) -> Vec<(Thing, Saved)> {
    let names = files.list("/sys/devices/system/cpu").unwrap_or_default();
    let cpus = names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse::<u32>().ok());
    let state_of = |cpu: u32| Some((Thing::CpuOnline { cpu }, Saved::of_bytes(&files.read(&path(Cpu(cpu))).ok()?)));
    cpus.filter_map(state_of).filter(|(_, state)| kernel_file::text_of(state).trim() == "0").collect()
}

/// Where cgroup v1 has the cpuset controller.
fn cpuset_root(files: &dyn Files) -> Option<String> {
    let mounts = files.read_text("/proc/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let [_, at, kind, options, ..] = line.split(' ').collect::<Vec<_>>()[..] else { return None };
        (kind == "cgroup" && options.split(',').any(|option| option == "cpuset")).then(|| at.to_owned())
    })
}

/// The child cpusets of one: folders with a `cpuset.cpus`.
fn children(files: &dyn Files, folder: &str) -> Vec<String> {
    let names = files.list(folder).unwrap_or_default();
    let folders = names.into_iter().map(|name| format!("{folder}/{name}"));
    folders.filter(|folder| files.exists(&format!("{folder}/cpuset.cpus"))).collect()
}

fn switch(system: &dyn System, path: &str, state: &str) -> Result<Made, Refusal> {
    let made = kernel_file::make(system, path, state)?;
    match made.remark {
        None => Ok(made),
        Some(_) => Err(Refusal::because("switch", path, format!("it reads `{}`", made.found.trim()))),
    }
}

fn state(online: bool) -> &'static str {
    if online { "1" } else { "0" }
}
