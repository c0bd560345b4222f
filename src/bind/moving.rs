//! Targets that move interrupts while a trial runs, bound to a host: which interrupts, over which CPUs, how often. How
//! they are moved is the business of `settings/moving/`.

use super::cpus::{Cpus, Unresolved};
use crate::cpu_set::{Cpu, CpuSet, Irq};
use crate::design::{CpuSelector, RoutingTarget, TopologyUnit};
use crate::recording::HostFacts;

/// One target that moves interrupts while a trial runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moving {
    /// How.
    pub method: Method,
    /// The period, milliseconds.
    pub every_ms: u64,
    /// Its interrupts in queue order.
    pub irqs: Vec<MovingIrq>,
    /// The CPUs of all of them by core, ascending; one by one where they belong to one core only.
    pub cores: Vec<CpuSet>,
}

/// How interrupts are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// By measured load: the "kirq" patch of January 2003.
    Balanced,
    /// Each on its own, one CPU up or down at a time: the 2.5.52 kernel.
    Rotating,
}

/// One interrupt of a moving target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MovingIrq {
    /// The interrupt.
    pub irq: Irq,
    /// CPUs it may be given to.
    pub over: CpuSet,
    /// Where it is when a trial begins.
    pub start: Cpu,
}

impl Moving {
    /// Says what will be done, for `plan`.
    pub fn words(&self) -> String {
        let over = self.irqs.iter().fold(CpuSet::new(), |all, irq| all.union(&irq.over));
        let irqs = count(self.irqs.len(), "interrupt");
        let every_ms = self.every_ms;
        match self.method {
            Method::Balanced => format!(
                "while the trial runs, the busiest of {irqs} that fits goes from the most to the least loaded of {} (CPUs \
                 {over}); looked at after {every_ms} ms, then every {} to {} ms",
                count(self.cores.len(), "core"),
                (every_ms / 2).max(1),
                every_ms * 5
            ),
            Method::Rotating => format!(
                "while the trial runs, each of {irqs} goes every {every_ms} ms to the next CPU of {over}, up or down at \
                 random"
            ),
        }
    }
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

/// The moving target of a route; `None` where the target stands still. `starts` gives the first CPU of each interrupt.
pub(super) fn bind(
    target: &RoutingTarget,
    starts: &[(Irq, CpuSet)],
    cpus: &Cpus<'_>,
    facts: &HostFacts,
) -> Result<Option<Moving>, Unresolved> {
    let (method, over, every_ms) = match target {
        RoutingTarget::Balanced { over, every_ms } => (Method::Balanced, over, *every_ms),
        RoutingTarget::Rotating { over, every_ms } => (Method::Rotating, over, *every_ms),
        _ => return Ok(None),
    };
    let mut irqs = Vec::with_capacity(starts.len());
    for (irq, start) in starts {
        let Some(start) = start.first() else { continue };
        irqs.push(MovingIrq { irq: *irq, over: over_of(*irq, over, cpus, facts)?, start });
    }
    let all = irqs.iter().fold(CpuSet::new(), |all, irq| all.union(&irq.over));
    let cores = match cpus.units(TopologyUnit::Core, &all) {
        cores if cores.len() > 1 => cores,
        _ => cpus.units(TopologyUnit::Cpu, &all),
    };
    Ok(Some(Moving { method, every_ms, irqs, cores }))
}

fn over_of(irq: Irq, over: &CpuSelector, cpus: &Cpus<'_>, facts: &HostFacts) -> Result<CpuSet, Unresolved> {
    cpus.resolve(over, facts.irq(irq).and_then(|irq| irq.node))
}
