//! Counters of one moment, and what happened between two of them.

use std::collections::HashMap;
use std::io;

use super::counters::{Row, Table, TableError};
use super::files::{Files, SystemError};
use super::interrupts::describe;
use super::stat::{self, Stat, Ticks};
use crate::cpu_set::{Cpu, CpuSet};
use crate::recording::{CounterRow, CpuTimes};

/// All counters of a host at about one moment: the kernel writes each file row by row, so none is exact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// `/proc/interrupts`
    pub interrupts: Table,
    /// `/proc/softirqs`; `None` on kernels without it.
    pub softirqs: Option<Table>,
    /// `/proc/stat`
    pub stat: Stat,
}

/// Increments between two snapshots.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Counters {
    /// CPU times of the CPUs in both.
    pub cpu_times: CpuTimes,
    /// Rows of `/proc/interrupts` that moved or about which there is something to say.
    pub interrupts: Vec<CounterRow>,
    /// Rows of `/proc/softirqs` likewise.
    pub softirqs: Vec<CounterRow>,
    /// CPUs online at the first snapshot.
    pub cpus_before: CpuSet,
    /// CPUs online at the second.
    pub cpus_after: CpuSet,
}

impl Snapshot {
    /// Reads the three files at once and parses them then, so that little time lies between them.
    pub fn read(files: &dyn Files) -> Result<Self, SystemError> {
        let stat = files.read("/proc/stat")?;
        let softirqs = match files.read("/proc/softirqs") {
            Err(error) if error.is_gone() => None,
            read => Some(read?),
        };
        let interrupts = files.read("/proc/interrupts")?;
        let softirqs = softirqs.map(|text| table("/proc/softirqs", &text)).transpose()?;
        Ok(Snapshot { interrupts: table("/proc/interrupts", &interrupts)?, softirqs, stat: stat::parse(&stat) })
    }
}

/// What happened between two snapshots of one boot.
///
/// A decrease of a counter that is still the same interrupt's is a wrap at 2^32 when it is a small step that way, and
/// else a reset, which is named and not counted. CPUs that are not in both snapshots have no data.
pub fn between(before: &Snapshot, after: &Snapshot) -> Counters {
    let softirqs = match (&before.softirqs, &after.softirqs) {
        (Some(before), Some(after)) => compare(before, after),
        _ => Vec::new(),
    };
    Counters {
        cpu_times: cpu_times(&before.stat, &after.stat),
        interrupts: compare(&before.interrupts, &after.interrupts),
        softirqs,
        cpus_before: before.interrupts.cpu_set(),
        cpus_after: after.interrupts.cpu_set(),
    }
}

fn table(path: &'static str, text: &[u8]) -> Result<Table, SystemError> {
    let invalid = |why: String| SystemError::new("read", path, io::Error::new(io::ErrorKind::InvalidData, why));
    let table = Table::parse(text).map_err(|error: TableError| invalid(error.to_string()))?;
    if table.complete { Ok(table) } else { Err(invalid("the last line is cut".to_owned())) }
}

fn cpu_times(before: &Stat, after: &Stat) -> CpuTimes {
    let mut times = CpuTimes { hz: procfs::ticks_per_second(), ..CpuTimes::default() };
    let mut cpus: Vec<(Cpu, Ticks)> = after.cpus.clone();
    cpus.sort_unstable_by_key(|(cpu, _)| *cpu);
    let before: HashMap<Cpu, Ticks> = before.cpus.iter().copied().collect();
    for (cpu, after) in cpus {
        let Some(before) = before.get(&cpu) else { continue };
        // idle and iowait are known to run backwards by a few ticks: no time has passed then.
        let step = |field: fn(&Ticks) -> u64| field(&after).saturating_sub(field(before));
        times.on.insert(cpu);
        times.user.push(step(|ticks| ticks.user.saturating_add(ticks.nice)));
        times.system.push(step(|ticks| ticks.system));
        times.idle.push(step(|ticks| ticks.idle));
        times.iowait.push(step(|ticks| ticks.iowait));
        times.irq.push(step(|ticks| ticks.irq));
        times.softirq.push(step(|ticks| ticks.softirq));
        times.steal.push(step(|ticks| ticks.steal));
    }
    times
}

fn compare(before: &Table, after: &Table) -> Vec<CounterRow> {
    let mut old: HashMap<(&str, u32), &Row> = before.rows.iter().map(|row| ((&*row.label, row.ordinal), row)).collect();
    let mut columns = columns_in_both(before, after);
    columns.sort_unstable_by_key(|column| column.cpu);
    let mut rows = Vec::new();
    for row in &after.rows {
        let old = old.remove(&(&*row.label, row.ordinal)).map(|old| (before, old));
        rows.extend(compare_row(old, (after, row), &columns));
    }
    let mut vanished: Vec<&Row> = old.into_values().collect();
    vanished.sort_unstable_by_key(|row| (row.irq, row.label.clone(), row.ordinal));
    rows.extend(vanished.into_iter().map(|row| CounterRow {
        anomaly: Some("the row vanished: its increments are not known".to_owned()),
        ..empty_row(row)
    }));
    rows
}

/// A CPU and its place in both tables.
struct Column {
    cpu: Cpu,
    before: usize,
    after: usize,
}

fn columns_in_both(before: &Table, after: &Table) -> Vec<Column> {
    let places: HashMap<Cpu, usize> = before.cpus.iter().enumerate().map(|(place, cpu)| (*cpu, place)).collect();
    let columns = after.cpus.iter().enumerate();
    columns.filter_map(|(after, cpu)| Some(Column { cpu: *cpu, before: *places.get(cpu)?, after })).collect()
}

fn compare_row(old: Option<(&Table, &Row)>, (table, row): (&Table, &Row), columns: &[Column]) -> Option<CounterRow> {
    let now = table.counts(row);
    let then = old.map_or(&[][..], |(table, old)| table.counts(old));
    let mut result = empty_row(row);
    match old {
        None if row.irq.is_some() => result.anomaly = Some("the row appeared: counted from 0".to_owned()),
        Some((_, old)) if row.irq.is_some() && is_another(old, row) => {
            result.anomaly =
                Some(format!("another interrupt now: it was `{}`; not counted", squeeze(&old.description)));
            return Some(result);
        }
        _ => {}
    }
    let scalar = |counts: &[u64], table: &Table| counts.len() == 1 && table.cpus.len() > 1;
    if scalar(now, table) {
        let step = step(then.first().copied().unwrap_or(0), now[0]);
        result.counts = vec![step.unwrap_or(0)];
        if step.is_none() {
            result.anomaly = Some(fell(then[0], now[0], "the host"));
        }
        return (result.counts[0] > 0 || result.anomaly.is_some()).then_some(result);
    }
    let uneven = !now.is_empty() && now.len() < table.cpus.len()
        || old.is_some_and(|(old_table, _)| !then.is_empty() && then.len() < old_table.cpus.len());
    if uneven {
        result.anomaly = Some("fewer counts than CPUs: not counted".to_owned());
        return Some(result);
    }
    for column in columns {
        let Some(now) = now.get(column.after).copied() else { continue };
        let then = then.get(column.before).copied().unwrap_or(0);
        match step(then, now) {
            Some(0) => {}
            Some(step) => {
                result.on.insert(column.cpu);
                result.counts.push(step);
            }
            None => result.anomaly = Some(fell(then, now, &format!("CPU {}", column.cpu))),
        }
    }
    (!result.counts.is_empty() || result.anomaly.is_some()).then_some(result)
}

/// The increment; `None` where the counter fell. Counters are 32 bits wide in the kernel (`unsigned int kstat_irqs`):
/// a step of 2^31 in one trial would be a million interrupts a second for half an hour.
fn step(then: u64, now: u64) -> Option<u64> {
    const WRAP: u64 = 1 << 32;
    match now.checked_sub(then) {
        Some(step) => Some(step),
        None if then < WRAP => Some(now + WRAP - then).filter(|step| *step < WRAP / 2),
        None => None,
    }
}

fn fell(then: u64, now: u64, place: &str) -> String {
    format!("the count of {place} fell from {then} to {now}: reset, not counted")
}

/// Whether the same number now is another interrupt. Blanks do not count: the kernel pads to the widest chip.
fn is_another(old: &Row, new: &Row) -> bool {
    old.description != new.description && describe(old) != describe(new)
}

fn empty_row(row: &Row) -> CounterRow {
    let description = if row.irq.is_some() { squeeze(&row.description) } else { String::new() };
    CounterRow { label: row.key(), description, on: CpuSet::new(), counts: Vec::new(), anomaly: None }
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(interrupts: &str) -> Snapshot {
        let interrupts = Table::parse(interrupts.as_bytes()).unwrap();
        Snapshot { interrupts, softirqs: None, stat: Stat::default() }
    }

    fn rows(before: &str, after: &str) -> Vec<(String, String, Vec<u64>, Option<String>)> {
        let counters = between(&snapshot(before), &snapshot(after));
        let rows = counters.interrupts.into_iter();
        rows.map(|row| (row.label, row.on.to_string(), row.counts, row.anomaly)).collect()
    }

    fn plain(label: &str, on: &str, counts: &[u64]) -> (String, String, Vec<u64>, Option<String>) {
        (label.to_owned(), on.to_owned(), counts.to_vec(), None)
    }

    #[test]
    fn a_wrap_is_counted_and_a_new_interrupt_of_that_number_is_not() {
        let before = "  CPU0 CPU1\n 9: 4294967290 7  IO-APIC 9-edge  acpi\n 10: 5000000 7  PCI-MSI 1-edge  eth0-rx-0\n";
        let after = "  CPU0 CPU1\n 9: 12 7  IO-APIC 9-edge  acpi\n 10: 12 8  PCI-MSI 1-edge  eth0-rx-1\n";
        let found = rows(before, after);
        assert_eq!(found[0], plain("9", "0", &[18]));
        let anomaly = Some("another interrupt now: it was `PCI-MSI 1-edge eth0-rx-0`; not counted".to_owned());
        assert_eq!(found[1], ("10".to_owned(), String::new(), vec![], anomaly));
    }

    #[test]
    fn a_fall_of_the_same_interrupt_is_a_reset_and_not_a_wrap() {
        let before = "  CPU0 CPU1\n 10: 5000000 7  PCI-MSI 1-edge  eth0\nERR: 9\n";
        let after = "  CPU0 CPU1\n 10: 12 8  PCI-MSI 1-edge  eth0\nERR: 3\n";
        let found = rows(before, after);
        assert_eq!((&*found[0].1, &found[0].2), ("1", &vec![1]));
        assert_eq!(found[0].3.as_deref(), Some("the count of CPU 0 fell from 5000000 to 12: reset, not counted"));
        assert_eq!(found[1].3.as_deref(), Some("the count of the host fell from 9 to 3: reset, not counted"));
    }

    #[test]
    fn cpus_that_went_away_have_no_data_and_are_named() {
        let before = snapshot("  CPU0 CPU1 CPU2 CPU3\n 9: 1 20 3 40  IO-APIC 9-edge  acpi\n");
        let after = snapshot("  CPU0 CPU2\n 9: 2 5  IO-APIC 9-edge  acpi\n");
        let counters = between(&before, &after);
        assert_eq!(counters.interrupts[0].by_cpu().collect::<Vec<_>>(), [(Cpu(0), 1), (Cpu(2), 2)]);
        assert_eq!((counters.cpus_before.to_string(), counters.cpus_after.to_string()), ("0-3".into(), "0,2".into()));
        let back = between(&after, &before);
        assert_eq!(back.interrupts[0].on.to_string(), "");
    }

    #[test]
    fn columns_in_another_order_keep_their_cpu() {
        let found = rows("  CPU2 CPU0\nLOC: 5 1\n", "  CPU0 CPU2\nLOC: 2 8\n");
        assert_eq!(found, [plain("LOC", "0,2", &[1, 3])]);
    }

    #[test]
    fn rows_that_come_and_go_are_events_unless_they_are_named_ones() {
        let before = "  CPU0 CPU1\n 9: 1 1  IO-APIC 9-edge  acpi\nLOC: 5 5\n";
        let after = "  CPU0 CPU1\n 11: 4 0  IO-APIC 11-edge  eth0\nLOC: 6 5\nTRM: 0 2  Thermal event interrupts\n";
        let found = rows(before, after);
        assert_eq!((&*found[0].0, &*found[0].1, &found[0].2), ("11", "0", &vec![4]));
        assert_eq!(found[0].3.as_deref(), Some("the row appeared: counted from 0"));
        assert_eq!(found[1], plain("LOC", "0", &[1]));
        assert_eq!(found[2], plain("TRM", "1", &[2]));
        assert_eq!((&*found[3].0, found[3].3.is_some()), ("9", true));
        assert_eq!(found.len(), 4);
    }

    #[test]
    fn repeated_labels_are_kept_apart() {
        let before = "  CPU0\nLOC: 25  for the device\nLOC: 4  for others\n";
        let after = "  CPU0\nLOC: 30  for the device\nLOC: 5  for others\n";
        assert_eq!(rows(before, after), [plain("LOC", "0", &[5]), plain("LOC#2", "0", &[1])]);
    }

    #[test]
    fn padding_is_no_new_identity() {
        let before = "  CPU0\n 9: 1  IO-APIC   9-edge      acpi\n";
        let after = "  CPU0\n 9: 3  IO-APIC                  9-edge  acpi\n";
        assert_eq!(rows(before, after), [plain("9", "0", &[2])]);
    }

    #[test]
    fn cpu_times_cover_cpus_in_both_and_never_go_backwards() {
        let with = |text: &str| Snapshot { stat: stat::parse(text.as_bytes()), ..snapshot("CPU0\n") };
        let before = with("cpu 0 0 0 0 0 0 0 0\ncpu1 9 1 2 50 8 0 1 0\ncpu0 1 0 0 40 0 0 0 0\ncpu2 1 1 1 1 1 1 1 1\n");
        let after = with("cpu 0 0 0 0 0 0 0 0\ncpu0 3 0 0 90 0 0 0 0\ncpu1 10 2 2 60 7 0 4 5\n");
        let times = between(&before, &after).cpu_times;
        assert_eq!(times.on.to_string(), "0-1");
        assert_eq!((times.user, times.idle, times.iowait), (vec![2, 2], vec![50, 10], vec![0, 0]));
        assert_eq!((times.softirq, times.steal), (vec![0, 3], vec![0, 5]));
    }

    #[test]
    fn softirqs_may_have_other_columns_or_be_absent() {
        let table = |text: &str| Some(Table::parse(text.as_bytes()).unwrap());
        let mut before = snapshot("  CPU0 CPU2\nLOC: 1 1\n");
        let mut after = snapshot("  CPU0 CPU2\nLOC: 2 3\n");
        assert_eq!(between(&before, &after).softirqs, []);
        before.softirqs = table("  CPU0 CPU1 CPU2\n NET_RX: 1 1 1\n IRQ_POLL: 0 0 0\n");
        after.softirqs = table("  CPU0 CPU1 CPU2\n NET_RX: 1 1 5\n IRQ_POLL: 0 0 0\n");
        let counters = between(&before, &after);
        assert_eq!(counters.softirqs[0].by_cpu().collect::<Vec<_>>(), [(Cpu(2), 4)]);
        assert_eq!((counters.softirqs.len(), counters.cpus_after.to_string()), (1, "0,2".to_owned()));
    }
}
