//! Whether an NMI watchdog really runs: it counts cycles of busy CPUs and so shows itself only on them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use crate::cpu_set::{Cpu, CpuSet};
use crate::host::counters::Table;
use crate::host::files::{Files, SystemError};
use crate::recording::NmiGrowth;
use crate::workloads::affinity;

/// Between two looks at the counts.
const LOOK: Duration = Duration::from_millis(250);

/// Beyond twice the watchdog's period, for CPUs that begin slowly.
const START: Duration = Duration::from_secs(1);

/// `watchdog_thresh` goes up to 60 s.
const LONGEST_S: u64 = 60;

/// Keeps every online CPU busy until the NMI row has grown on each that the watchdog watches, for twice its period
/// at most (21 s by default): the period is a number of cycles at the nominal clock (`hw_nmi_get_sample_period`,
/// `arch/x86/kernel/apic/hw_nmi.c`), and a slow CPU needs longer for them.
pub fn look(files: &dyn Files) -> Result<NmiGrowth, SystemError> {
    let before = nmi_counts(files)?;
    let number = |path: &str| files.read_text(path).ok()?.trim().parse::<u64>().ok();
    let period_s = number("/proc/sys/kernel/watchdog_thresh").unwrap_or(10).min(LONGEST_S);
    let watched = files.read_text("/proc/sys/kernel/watchdog_cpumask").ok();
    let watched = watched.and_then(|list| CpuSet::parse_list(&list).ok());
    let limit = Duration::from_secs(2 * period_s) + START;
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let (ready, begun) = mpsc::channel();
        for (cpu, _) in &before {
            let (ready, stop, cpu) = (ready.clone(), &stop, *cpu);
            scope.spawn(move || {
                if affinity::keep_to(&CpuSet::single(cpu)).is_err() || ready.send(cpu).is_err() {
                    return;
                }
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        drop(ready);
        let began = Instant::now();
        // A CPU that is not ready by then is not counted as busy.
        let mut busy = CpuSet::new();
        while let Ok(cpu) = begun.recv_timeout(START.saturating_sub(began.elapsed())) {
            busy.insert(cpu);
            if busy.len() == before.len() {
                break;
            }
        }
        let expected = watched.map_or_else(|| busy.clone(), |watched| watched.intersection(&busy));
        let grown = loop {
            let grown = nmi_counts(files).map(|now| grown(&before, &now));
            let enough = grown.as_ref().is_ok_and(|grown| !grown.is_empty() && expected.is_subset(grown));
            if grown.is_err() || enough || began.elapsed() >= limit {
                break grown;
            }
            thread::sleep(LOOK.min(limit.saturating_sub(began.elapsed())));
        };
        stop.store(true, Ordering::Relaxed);
        let busy_ms = began.elapsed().as_millis() as u64;
        Ok(NmiGrowth { busy_ms, busy, grew: grown? })
    })
}

/// The NMI row by CPU; every online CPU with 0 where there is no such row.
fn nmi_counts(files: &dyn Files) -> Result<Vec<(Cpu, u64)>, SystemError> {
    let path = "/proc/interrupts";
    let table = Table::parse(&files.read(path)?);
    let table = table.map_err(|error| SystemError::new("read", path, std::io::Error::other(error)))?;
    let counts: Vec<(Cpu, u64)> =
        table.rows.iter().filter(|row| &*row.label == "NMI").flat_map(|row| table.by_cpu(row)).collect();
    let count = |cpu: Cpu| counts.iter().find(|(of, _)| *of == cpu).map_or(0, |(_, count)| *count);
    Ok(table.cpus.iter().map(|cpu| (*cpu, count(*cpu))).collect())
}

fn grown(before: &[(Cpu, u64)], now: &[(Cpu, u64)]) -> CpuSet {
    // Counts wrap: any other number is growth.
    let grew = |(cpu, count): &&(Cpu, u64)| before.iter().any(|(of, earlier)| of == cpu && earlier != count);
    now.iter().filter(grew).map(|(cpu, _)| *cpu).collect()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::path::PathBuf;

    use super::*;

    /// A host whose NMI row grows with every look.
    struct Growing {
        by: u64,
        looks: Cell<u64>,
        cpu: Cpu,
    }

    impl Files for Growing {
        fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
            if path != "/proc/interrupts" {
                return Ok(b"0\n".to_vec());
            }
            self.looks.set(self.looks.get() + 1);
            Ok(format!("  CPU{}\nNMI:  {}  Non-maskable interrupts\n", self.cpu, self.by * self.looks.get())
                .into_bytes())
        }

        fn list(&self, _: &str) -> Result<Vec<String>, SystemError> {
            Ok(Vec::new())
        }

        fn mode(&self, _: &str) -> Result<u32, SystemError> {
            Ok(0o644)
        }

        fn resolve(&self, path: &str) -> Result<PathBuf, SystemError> {
            Ok(path.into())
        }
    }

    #[test]
    fn a_row_that_grows_ends_the_look_and_one_that_stands_still_has_a_limit() {
        let Some(cpu) = affinity::current().unwrap().first().filter(|cpu| cpu.0 == 0) else {
            println!("skipped: CPU 0 is not among those this process may use");
            return;
        };
        let before = affinity::current().unwrap();
        let found = look(&Growing { by: 3, looks: Cell::new(0), cpu }).unwrap();
        assert_eq!((found.busy, found.grew), (CpuSet::single(cpu), CpuSet::single(cpu)));
        let began = Instant::now();
        let found = look(&Growing { by: 0, looks: Cell::new(0), cpu }).unwrap();
        assert!(found.grew.is_empty() && found.busy_ms >= 1000);
        assert!(began.elapsed() < Duration::from_secs(20));
        assert_eq!(affinity::current().unwrap(), before, "the runner stays where it was");
    }
}
