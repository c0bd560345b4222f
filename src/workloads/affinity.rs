//! CPUs the calling thread may use: set, then read back, because the kernel silently takes away offline CPUs and
//! those outside the thread's cpuset.

use std::io;

use nix::errno::Errno;
use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;

use crate::cpu_set::{Cpu, CpuSet};

/// CPUs the calling thread may use now. Fails with `EINVAL` on hosts with more than 1024 possible CPUs, whose masks
/// are longer than the C library's `cpu_set_t`.
pub fn current() -> io::Result<CpuSet> {
    let set = sched_getaffinity(Pid::from_raw(0))?;
    let is_set = |cpu: &usize| set.is_set(*cpu).unwrap_or(false);
    Ok((0..nix::sched::CpuSet::count()).filter(is_set).map(|cpu| Cpu(cpu as u32)).collect())
}

/// Keeps the calling thread to `cpus`. Threads and processes made later inherit it. `EINVAL` when no CPU of the set
/// is there, or when the kernel gave fewer than asked.
pub fn keep_to(cpus: &CpuSet) -> io::Result<()> {
    let mut set = nix::sched::CpuSet::new();
    for cpu in cpus.iter() {
        set.set(cpu.0 as usize)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set)?;
    if current()? == *cpus { Ok(()) } else { Err(Errno::EINVAL.into()) }
}
