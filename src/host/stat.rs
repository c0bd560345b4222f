//! `/proc/stat`: CPU time by CPU and a few totals. Knows no file.
//!
//! Our own reader and not that of `procfs`, which refuses the short lines of containers and old kernels and reads the
//! whole `intr` line, tens of kilobytes on large hosts.

use crate::cpu_set::{Cpu, CpuSet, MAX_CPU};

/// One sample.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Stat {
    /// The first line: sums over possible CPUs, so that it is not the sum of `cpus` after one went offline.
    pub total: Ticks,
    /// Online CPUs.
    pub cpus: Vec<(Cpu, Ticks)>,
    /// First number of `intr`: interrupts since boot, all kinds.
    pub interrupts: Option<u64>,
    /// `ctxt`: context switches since boot.
    pub context_switches: Option<u64>,
    /// `btime`: boot time, seconds since 1970.
    pub boot_time_s: Option<u64>,
    /// `procs_running`
    pub running: Option<u64>,
    /// `procs_blocked`; `None` when the kernel shows nonsense (it has shown 2^64 - 1).
    pub blocked: Option<u64>,
    /// What was missing or not believed.
    pub remarks: Vec<String>,
}

/// Time of one CPU since boot in clock ticks (`USER_HZ`); 0 for fields an old kernel or a container does not show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ticks {
    /// User, with guests.
    pub user: u64,
    /// User at low priority.
    pub nice: u64,
    /// Kernel.
    pub system: u64,
    /// Idle.
    pub idle: u64,
    /// Idle with I/O outstanding; may go backwards.
    pub iowait: u64,
    /// Hard interrupts, with `CONFIG_IRQ_TIME_ACCOUNTING` only.
    pub irq: u64,
    /// Softirqs.
    pub softirq: u64,
    /// Stolen by the hypervisor.
    pub steal: u64,
}

const FIELDS: usize = 8;

/// Reads `/proc/stat`. Never fails: what is missing is 0 or absent and has a remark.
pub fn parse(text: &[u8]) -> Stat {
    let mut stat = Stat::default();
    let mut has_total = false;
    for line in text.split(|byte| *byte == b'\n') {
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let Some(name) = words.next() else { continue };
        match name {
            b"btime" => stat.boot_time_s = words.next().and_then(number),
            b"ctxt" => stat.context_switches = words.next().and_then(number),
            b"intr" => stat.interrupts = words.next().and_then(number),
            b"procs_blocked" => {
                stat.blocked = words.next().and_then(number).filter(|count| u32::try_from(*count).is_ok());
                if stat.blocked.is_none() {
                    stat.remarks.push("`procs_blocked` in /proc/stat is not believed".to_owned());
                }
            }
            b"procs_running" => stat.running = words.next().and_then(number),
            b"cpu" => (has_total, stat.total) = (true, ticks(words, "cpu", &mut stat.remarks)),
            _ => {
                let Some(cpu) = name.strip_prefix(b"cpu").and_then(number) else { continue };
                let Some(cpu) = u32::try_from(cpu).ok().filter(|cpu| *cpu <= MAX_CPU) else { continue };
                let ticks = ticks(words, &format!("cpu{cpu}"), &mut stat.remarks);
                stat.cpus.push((Cpu(cpu), ticks));
            }
        }
    }
    if !has_total {
        stat.remarks.push("/proc/stat has no `cpu` line".to_owned());
    }
    stat
}

impl Stat {
    /// CPUs with a line of their own: the online ones.
    pub fn cpu_set(&self) -> CpuSet {
        self.cpus.iter().map(|(cpu, _)| *cpu).collect()
    }

    /// The times of a CPU.
    pub fn cpu(&self, cpu: Cpu) -> Option<Ticks> {
        let at = self.cpus.iter().position(|(other, _)| *other == cpu)?;
        Some(self.cpus[at].1)
    }
}

fn ticks<'a>(words: impl Iterator<Item = &'a [u8]>, name: &str, remarks: &mut Vec<String>) -> Ticks {
    let mut fields = [0; FIELDS];
    let mut there = 0;
    for (field, word) in fields.iter_mut().zip(words) {
        let Some(value) = number(word) else { break };
        *field = value;
        there += 1;
    }
    if there < FIELDS {
        remarks.push(format!("`{name}` in /proc/stat has {there} of {FIELDS} times; the others count as 0"));
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal] = fields;
    Ticks { user, nice, system, idle, iowait, irq, softirq, steal }
}

fn number(word: &[u8]) -> Option<u64> {
    let digits = !word.is_empty() && word.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(word).ok().filter(|_| digits)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_whole_file_and_takes_the_total_from_intr() {
        let mut text =
            b"cpu  20 1 7 200 3 0 4 6 0 0\ncpu0 10 1 3 100 1 0 2 3 0 0\ncpu2 10 0 4 100 2 0 2 3 0 0\nintr 205087"
                .to_vec();
        text.extend(b" 0".repeat(30_000));
        text.extend(
            b"\nctxt 312818\nbtime 1796081645\nprocesses 11381\nprocs_running 3\nprocs_blocked 0\nsoftirq 1 2\n",
        );
        let stat = parse(&text);
        assert_eq!(stat.interrupts, Some(205_087));
        assert_eq!((stat.context_switches, stat.boot_time_s), (Some(312_818), Some(1_796_081_645)));
        assert_eq!((stat.running, stat.blocked), (Some(3), Some(0)));
        assert_eq!(stat.cpu_set().to_string(), "0,2");
        let expected = Ticks { user: 10, nice: 0, system: 4, idle: 100, iowait: 2, irq: 0, softirq: 2, steal: 3 };
        assert_eq!(stat.cpu(Cpu(2)), Some(expected));
        assert_eq!(stat.cpu(Cpu(1)), None);
        assert_eq!(stat.remarks, Vec::<String>::new());
    }

    #[test]
    fn short_lines_and_nonsense_are_named_and_not_believed() {
        let stat = parse(b"cpu  5 6 7 8\n\ncpu0 5 6 7 8\ncpux 1\nintr 0\nprocs_blocked 18446744073709551615\n");
        let expected = Ticks { user: 5, nice: 6, system: 7, idle: 8, ..Ticks::default() };
        assert_eq!(stat.cpus, [(Cpu(0), expected)]);
        assert_eq!((stat.interrupts, stat.blocked), (Some(0), None));
        assert_eq!(
            stat.remarks,
            [
                "`cpu` in /proc/stat has 4 of 8 times; the others count as 0",
                "`cpu0` in /proc/stat has 4 of 8 times; the others count as 0",
                "`procs_blocked` in /proc/stat is not believed",
            ]
        );
        assert_eq!(parse(b"").remarks, ["/proc/stat has no `cpu` line"]);
    }
}
