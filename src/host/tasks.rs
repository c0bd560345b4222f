//! Tasks of a host, what they are and where they may run. Processes and threads vanish while they are read.

use super::files::Files;
use crate::cpu_set::{CpuSet, Irq};

/// One thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Process.
    pub pid: u32,
    /// Thread; equal to `pid` for the first.
    pub tid: u32,
    /// Name, up to 15 bytes; kernel worker names are longer in newer kernels.
    pub comm: String,
    /// State letter: `S`, `R`, `Z` for a zombie.
    pub state: char,
    /// A kernel thread (`PF_KTHREAD`).
    pub kernel_thread: bool,
    /// The kernel refuses to move it (`PF_NO_SETAFFINITY`): `sched_setaffinity` gives EINVAL.
    pub pinned: bool,
    /// When it started, clock ticks since boot: with the number it names a task even when numbers are reused.
    pub start_ticks: u64,
    /// CPUs it may use (`Cpus_allowed_list`); `None` where it could not be read.
    pub cpus: Option<CpuSet>,
}

/// include/linux/sched.h
const PF_KTHREAD: u64 = 0x0020_0000;
const PF_NO_SETAFFINITY: u64 = 0x0400_0000;

/// Programs that write interrupt masks or move tasks, by their `comm`.
const WRITERS: &[&str] = &[
    "ananicy",
    "ananicy-cpp",
    "cgrulesengd",
    "crio",
    "irqbalance",
    "msm_irqbalance",
    "numad",
    "tuned",
    "ulatencyd",
    "uresourced",
];

/// All tasks, by process and thread number. Those that end meanwhile are left out.
pub fn read_tasks(files: &dyn Files) -> Vec<Task> {
    let mut tasks = Vec::new();
    for pid in numbers(files, "/proc") {
        for tid in numbers(files, &format!("/proc/{pid}/task")) {
            tasks.extend(read_task(files, pid, tid));
        }
    }
    tasks
}

/// One task; `None` once it has ended.
pub fn read_task(files: &dyn Files, pid: u32, tid: u32) -> Option<Task> {
    let place = format!("/proc/{pid}/task/{tid}");
    let task = parse_stat(&files.read(&format!("{place}/stat")).ok()?)?;
    let status = files.read_text(&format!("{place}/status")).unwrap_or_default();
    let cpus = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let cpus = cpus.and_then(|list| CpuSet::parse_list(list).ok());
    Some(Task { pid, tid, cpus, ..task })
}

/// Running programs that write interrupt masks or move tasks, in alphabetical order. Zombies do not count.
pub fn read_writers(files: &dyn Files) -> Vec<String> {
    let pids = read_writer_pids(files).into_iter();
    let mut writers: Vec<String> = pids.filter_map(|pid| files.read_text(&format!("/proc/{pid}/comm")).ok()).collect();
    writers.sort_unstable();
    writers.dedup();
    writers
}

/// Their process numbers.
pub(super) fn read_writer_pids(files: &dyn Files) -> Vec<u32> {
    let is_writer = |pid: &u32| {
        let Ok(comm) = files.read_text(&format!("/proc/{pid}/comm")) else { return false };
        let stat = files.read(&format!("/proc/{pid}/stat")).ok();
        let ended = stat.and_then(|stat| parse_stat(&stat)).is_some_and(|task| matches!(task.state, 'Z' | 'X'));
        !ended && WRITERS.contains(&&*comm)
    };
    numbers(files, "/proc").into_iter().filter(is_writer).collect()
}

/// Interrupts with a kernel thread of their own (`irq/9-acpi`, `irq/9-s-acpi`), ascending.
pub(super) fn read_threaded_irqs(files: &dyn Files) -> Vec<Irq> {
    let mut irqs: Vec<Irq> = read_irq_threads(files).into_iter().map(|(_, irq)| irq).collect();
    irqs.sort_unstable();
    irqs.dedup();
    irqs
}

/// Kernel threads of interrupts: process number and interrupt (`setup_irq_thread`, kernel/irq/manage.c).
pub(super) fn read_irq_threads(files: &dyn Files) -> Vec<(u32, Irq)> {
    let irq_thread = |pid: u32| {
        let comm = files.read_text(&format!("/proc/{pid}/comm")).ok()?;
        let (number, _) = comm.strip_prefix("irq/")?.split_once('-')?;
        let irq = Irq(number.parse().ok()?);
        let task = parse_stat(&files.read(&format!("/proc/{pid}/stat")).ok()?)?;
        task.kernel_thread.then_some((pid, irq))
    };
    numbers(files, "/proc").into_iter().filter_map(irq_thread).collect()
}

/// Reads `/proc/PID/stat`. The name stands in parentheses and may hold blanks and parentheses itself, so the last
/// closing one ends it (`proc_task_name`, fs/proc/array.c). Not through `procfs`, which panics on a text without them.
fn parse_stat(text: &[u8]) -> Option<Task> {
    let text = String::from_utf8_lossy(text);
    let (front, rest) = text.rsplit_once(')')?;
    let (number, comm) = front.split_once('(')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let pid = number.trim().parse().ok()?;
    let flags: u64 = fields.get(6)?.parse().ok()?;
    Some(Task {
        pid,
        tid: pid,
        comm: comm.to_owned(),
        state: fields.first()?.chars().next()?,
        kernel_thread: flags & PF_KTHREAD != 0,
        pinned: flags & PF_NO_SETAFFINITY != 0,
        start_ticks: fields.get(19)?.parse().ok()?,
        cpus: None,
    })
}

fn numbers(files: &dyn Files, path: &str) -> Vec<u32> {
    let names = files.list(path).unwrap_or_default();
    let digits = names.iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    let mut numbers: Vec<u32> = digits.filter_map(|digits| digits.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::host::files::Root;

    const REST: &str = "S 1 1 1 0 -1 FLAGS 0 0 0 0 0 0 0 0 20 0 1 0 4242 0 0";

    fn add(dir: &std::path::Path, pid: u32, stat: &str) {
        let task = dir.join(format!("proc/{pid}/task/{pid}"));
        fs::create_dir_all(&task).unwrap();
        fs::write(task.join("stat"), stat).unwrap();
        fs::write(task.join("status"), "Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t0-3\n").unwrap();
    }

    #[test]
    fn names_with_parentheses_and_flags_are_read_and_what_vanished_is_left_out() {
        let dir = tempfile::tempdir().unwrap();
        add(dir.path(), 9, &format!("9 (a) (b c) {}", REST.replace("FLAGS", "4194560")));
        add(dir.path(), 10, &format!("10 (kworker/0:1-events) {}", REST.replace("FLAGS", "69238880")));
        add(dir.path(), 11, "11 (cut");
        fs::create_dir_all(dir.path().join("proc/12/task/12")).unwrap();
        fs::create_dir_all(dir.path().join("proc/13")).unwrap();
        let tasks = read_tasks(&Root::new(dir.path()));
        assert_eq!(tasks.len(), 2);
        assert_eq!((&*tasks[0].comm, tasks[0].kernel_thread, tasks[0].pinned), ("a) (b c", false, false));
        assert_eq!((tasks[1].pid, tasks[1].kernel_thread, tasks[1].pinned), (10, true, true));
        assert_eq!((tasks[0].start_ticks, tasks[0].state), (4242, 'S'));
        assert_eq!(tasks[0].cpus.as_ref().unwrap().to_string(), "0-3");
    }

    #[test]
    fn writers_are_found_by_their_whole_name_and_alive() {
        let dir = tempfile::tempdir().unwrap();
        for (pid, comm, state) in
            [(5, "irqbalance", 'S'), (6, "irqbalance-ui", 'S'), (7, "tuned", 'Z'), (8, "numad", 'R')]
        {
            let place = dir.path().join(format!("proc/{pid}"));
            fs::create_dir_all(&place).unwrap();
            fs::write(place.join("comm"), format!("{comm}\n")).unwrap();
            let rest = REST.replace("FLAGS", "0").replacen('S', &state.to_string(), 1);
            fs::write(place.join("stat"), format!("{pid} ({comm}) {rest}")).unwrap();
        }
        assert_eq!(read_writers(&Root::new(dir.path())), ["irqbalance", "numad"]);
    }
}
