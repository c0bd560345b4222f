//! `tasks PATTERN on SET`, by the affinity of each task.
//!
//! Why not cpusets, even where the host has them: a cpuset takes whole groups and no names, moving tasks between groups
//! takes memory and accounting limits along and disturbs whoever manages them, and before 6.2 it wipes the affinities
//! that tasks asked for. An affinity works on every host, within whatever cpuset the task is in, and can be put back
//! for each task.
//!
//! Every task moves whose name or whose process's name matches, process 1 and the runner's own parents too. Only the
//! runner and what descends from it stay: they are what is measured. A task whose CPUs lie in the set already keeps
//! them. Tasks born under the setting inherit it, so they are looked for when it ends: children of tasks that were
//! moved get what their parents had, and nobody else's choice of CPUs is touched.

use std::collections::{BTreeMap, BTreeSet};

use procfs::FromRead;
use procfs::process::Stat;
use wildmatch::WildMatch;

use super::journal::{Entry, Record, Saved, Thing};
use super::{Back, Entered, Refusal, Restored, SettingError, Settings, System, words};
use crate::bind::{Change, ChangeKind};
use crate::cpu_set::CpuSet;
use crate::host::files::{Files, SystemError};

/// A kernel thread (include/linux/sched.h).
pub(super) const PF_KTHREAD: u32 = 0x0020_0000;
/// A kernel thread whose affinity the kernel keeps for itself.
const PF_NO_SETAFFINITY: u32 = 0x0400_0000;

/// Sweeps until no task is outside; each catches what was born during the last.
const SWEEPS: u32 = 8;

const EINVAL: i32 = 22;

/// One thread.
#[derive(Debug, Clone)]
pub(super) struct Task {
    pid: u32,
    tid: u32,
    parent: u32,
    /// Clock ticks since boot.
    start: u64,
    flags: u32,
    state: char,
    name: String,
    process: String,
    /// `Cpus_allowed`: unlike `sched_getaffinity(2)` it keeps CPUs that are offline.
    pub(super) allowed: CpuSet,
}

impl Task {
    /// Whether the kernel lets anyone move it.
    pub(super) fn is_movable(&self) -> bool {
        self.flags & PF_NO_SETAFFINITY == 0 && !matches!(self.state, 'Z' | 'X')
    }

    pub(super) fn thing(&self) -> Thing {
        let Task { pid, tid, start, .. } = *self;
        Thing::Task { pid, tid, start, name: self.name.clone(), process: self.process.clone() }
    }

    fn id(&self) -> (u32, u64) {
        (self.tid, self.start)
    }
}

/// One `tasks` setting.
struct Rule<'a> {
    change: &'a Change,
    pattern: WildMatch,
    cpus: &'a CpuSet,
}

impl Rule<'_> {
    fn matches(&self, name: &str, process: &str) -> bool {
        is_match(&self.pattern, name, process)
    }
}

fn is_match(pattern: &WildMatch, name: &str, process: &str) -> bool {
    pattern.matches(name) || pattern.matches(process)
}

/// The tasks settings among changes.
fn rules<'a>(changes: &'a [Change]) -> Vec<Rule<'a>> {
    let rule = |change: &'a Change| match change {
        Change { kind: ChangeKind::Tasks { pattern, cpus }, .. } => {
            Some(Rule { change, pattern: WildMatch::new(pattern), cpus })
        }
        _ => None,
    };
    changes.iter().filter_map(rule).collect()
}

/// Whether one of the changes says where this task belongs.
pub(super) fn is_covered(changes: &[Change], name: &str, process: &str) -> bool {
    rules(changes).iter().any(|rule| rule.matches(name, process))
}

/// What became of the tasks of one rule.
#[derive(Default)]
struct Tally {
    moved: u32,
    inside: u32,
    /// Kernel threads that cannot move.
    fixed: BTreeSet<String>,
    fixed_count: u32,
    /// Tasks whose cpuset has no CPU of the set.
    elsewhere: BTreeSet<String>,
    /// Tasks that got only a part of the set.
    partly: BTreeSet<String>,
}

impl Settings<'_> {
    /// Moves every task to where the last setting that matches it says.
    pub(super) fn enter_tasks(&mut self, changes: &[Change], entered: &mut Entered) -> Result<(), SettingError> {
        let rules = rules(changes);
        let Some(first_rule) = rules.first() else { return Ok(()) };
        let fail = |rule: &Rule, refusal: Refusal| words::error(rule.change, refusal);
        let mut tallies: Vec<Tally> = rules.iter().map(|_| Tally::default()).collect();
        let mut settled = BTreeSet::new();
        for sweep in 0..SWEEPS {
            let tasks = scan(self.system).map_err(|error| fail(first_rule, error.into()))?;
            if sweep == 0 {
                let sweeps = rules.iter().filter_map(|rule| self.sweep_record(rule, &tasks)).collect();
                self.record(sweeps).map_err(|refusal| fail(first_rule, refusal))?;
            }
            let exempt = descendants(&tasks, self.system.own_pid());
            let mut outside = Vec::new();
            for task in tasks.iter().filter(|task| !exempt.contains(&task.pid)) {
                let Some(index) = rules.iter().rposition(|rule| rule.matches(&task.name, &task.process)) else {
                    continue;
                };
                if task.allowed.is_subset(rules[index].cpus) {
                    tallies[index].inside += u32::from(sweep == 0);
                } else if task.is_movable() {
                    if !settled.contains(&task.id()) {
                        outside.push((task, index));
                    }
                } else if sweep == 0 && task.flags & PF_KTHREAD != 0 {
                    tallies[index].fixed_count += 1;
                    tallies[index].fixed.insert(family(&task.name));
                }
            }
            if outside.is_empty() {
                break;
            }
            let records = outside.iter().map(|(task, index)| Record::Change {
                thing: task.thing(),
                old: Saved::Cpus(self.cpus_before(task, &tasks).to_string()),
                new: Some(rules[*index].cpus.to_string()),
            });
            self.record(records.collect()).map_err(|refusal| fail(first_rule, refusal))?;
            for (task, index) in outside {
                settled.insert(task.id());
                let moved = self.move_task(task, rules[index].cpus, &mut tallies[index]);
                moved.map_err(|refusal| fail(&rules[index], refusal))?;
            }
        }
        for (rule, tally) in rules.iter().zip(&tallies) {
            entered.written += tally.moved;
            entered.already += tally.inside;
            if let Some(remark) = tally.remark() {
                entered.remarks.push(format!("{}: {remark}", words::describe(rule.change)));
            }
        }
        Ok(())
    }

    fn move_task(&mut self, task: &Task, cpus: &CpuSet, tally: &mut Tally) -> Result<(), Refusal> {
        let key = task.thing().key();
        match self.system.set_affinity(task.tid, cpus) {
            Ok(()) => {}
            Err(error) if error.is_gone() => return Ok(()),
            Err(error) if error.errno() == EINVAL => {
                tally.elsewhere.insert(task.name.clone());
                return Ok(());
            }
            Err(error) => {
                let meaning = (error.errno() == 1).then_some("not permitted: run as root");
                return Err(Refusal::from(error).meaning(meaning));
            }
        }
        let Some(now) = look(self.system, task.pid, task.tid)? else { return Ok(()) };
        tally.moved += 1;
        if now.allowed != *cpus {
            tally.partly.insert(task.name.clone());
        }
        self.later(Record::Done { key, found: now.allowed.to_string() });
        Ok(())
    }

    /// The journal's note that a rule came into force, unless it is in force.
    fn sweep_record(&self, rule: &Rule, tasks: &[Task]) -> Option<Record> {
        let ChangeKind::Tasks { pattern, cpus } = &rule.change.kind else { return None };
        let since = tasks.iter().map(|task| task.start).max().unwrap_or_default();
        let newest = tasks.iter().filter(|task| task.start == since).map(|task| task.tid).collect();
        let thing = Thing::Sweep { pattern: pattern.clone(), cpus: cpus.to_string(), since, newest };
        let known = self.entries.contains_key(&thing.key());
        (!known).then_some(Record::Change { thing, old: Saved::Nothing, new: None })
    }

    /// The CPUs a task had, or would have inherited, had nothing been changed.
    fn cpus_before(&self, task: &Task, tasks: &[Task]) -> CpuSet {
        if let Some(saved) = self.first_of(&task.thing()) {
            return saved;
        }
        let mut born_under = self.born_under(task).peekable();
        if born_under.peek().is_none() {
            return task.allowed.clone();
        }
        let is_named = |pattern: &str| is_match(&WildMatch::new(pattern), &task.name, &task.process);
        let is_named = born_under.any(is_named);
        // Up the family until somebody's old CPUs are known. Who was never moved has no CPUs from us to hand down.
        let leaders = tasks.iter().filter(|member| member.tid == member.pid);
        let leaders: BTreeMap<u32, &Task> = leaders.map(|member| (member.pid, member)).collect();
        let mut pid = if task.tid == task.pid { task.parent } else { task.pid };
        for _ in 0..tasks.len() {
            let Some(member) = leaders.get(&pid) else { break };
            if let Some(saved) = self.first_of(&member.thing()) {
                return saved;
            }
            if self.born_under(member).next().is_none() {
                break;
            }
            pid = member.parent;
        }
        // An orphan that has the name: its parent was moved and is gone.
        let possible = || CpuSet::parse_list(&self.system.read_text("/sys/devices/system/cpu/possible").ok()?).ok();
        possible().filter(|_| is_named).unwrap_or_else(|| task.allowed.clone())
    }

    /// The patterns of the settings that a task was born under and whose CPUs it has: it may have inherited them, or
    /// chosen them itself.
    fn born_under(&self, task: &Task) -> impl Iterator<Item = &str> {
        let Task { tid, start, .. } = *task;
        let allowed = task.allowed.to_string();
        self.entries.values().filter_map(move |entry| match &entry.thing {
            Thing::Sweep { pattern, cpus, since, newest } => {
                let is_younger = start > *since || start == *since && !newest.contains(&tid);
                (is_younger && allowed == *cpus).then_some(pattern.as_str())
            }
            _ => None,
        })
    }

    /// The first CPUs of a task that was moved or saved.
    fn first_of(&self, thing: &Thing) -> Option<CpuSet> {
        match self.first.get(&thing.key()) {
            Some((_, Saved::Cpus(cpus))) => CpuSet::parse_list(cpus).ok(),
            _ => None,
        }
    }

    /// Gives tasks that were born under a setting, and that no change covers, what they would have inherited without.
    pub(super) fn release_heirs(&self, changes: &[Change], restored: &mut Restored) -> Result<(), Refusal> {
        let mut seen = BTreeSet::new();
        for _ in 0..SWEEPS {
            let tasks = scan(self.system)?;
            let exempt = descendants(&tasks, self.system.own_pid());
            let is_new = |task: &&Task| {
                let is_born_under = self.born_under(task).next().is_some();
                task.is_movable() && is_born_under && !seen.contains(&task.id())
            };
            let is_ours = |task: &&Task| {
                let known = self.entries.contains_key(&task.thing().key()) || exempt.contains(&task.pid);
                !known && !is_covered(changes, &task.name, &task.process)
            };
            let heirs: Vec<&Task> = tasks.iter().filter(is_new).filter(is_ours).collect();
            if heirs.is_empty() {
                break;
            }
            let mut ids = Vec::new();
            for task in heirs {
                ids.push(task.id());
                let cpus = self.cpus_before(task, &tasks);
                if cpus == task.allowed {
                    continue;
                }
                match self.system.set_affinity(task.tid, &cpus) {
                    Ok(()) => restored.restored += 1,
                    Err(error) if error.is_gone() => {}
                    Err(error) => restored.failed.push(format!("task {} ({}): {error}", task.tid, task.name)),
                }
            }
            seen.extend(ids);
        }
        Ok(())
    }

    /// Tasks that should be in the set of a rule and are not.
    pub(super) fn strays(&self, changes: &[Change]) -> Result<Vec<(usize, String)>, SystemError> {
        let rules = rules(changes);
        if rules.is_empty() {
            return Ok(Vec::new());
        }
        let tasks = scan(self.system)?;
        let exempt = descendants(&tasks, self.system.own_pid());
        let stray = |task: &Task| {
            let index = rules.iter().rposition(|rule| rule.matches(&task.name, &task.process))?;
            // What the kernel or a cpuset refused when the setting was made was said then; new kernel threads are the
            // kernel's own business.
            let found = self.entries.get(&task.thing().key()).map(|entry| entry.found.is_some());
            let is_ours = found.unwrap_or(task.flags & PF_KTHREAD == 0);
            let meets = !task.allowed.intersection(rules[index].cpus).is_empty();
            let is_inside = task.allowed.is_subset(rules[index].cpus) && meets;
            let strays = is_ours && !is_inside && task.is_movable() && !exempt.contains(&task.pid);
            let place = changes.iter().position(|change| std::ptr::eq(change, rules[index].change))?;
            strays.then(|| (place, format!("{} ({}) on {}", task.name, task.tid, task.allowed)))
        };
        Ok(tasks.iter().filter_map(stray).collect())
    }
}

/// Gives a task its old CPUs, if it lives.
pub(super) fn put_back(system: &dyn System, (pid, tid, start): (u32, u32, u64), entry: &Entry) -> Back {
    let old = match &entry.old {
        Saved::Cpus(cpus) => CpuSet::parse_list(cpus).ok(),
        _ => None,
    };
    let path = format!("/proc/{pid}/task/{tid}");
    let Some(old) = old else {
        return Back::Failed(Refusal::because("restore", &path, "the journal does not hold its old CPUs"));
    };
    let now = match look(system, pid, tid) {
        Ok(Some(now)) if now.start == start && now.is_movable() => now,
        Ok(_) => return Back::Gone(None),
        Err(error) => return Back::Failed(error.into()),
    };
    if now.allowed == old {
        return Back::Already;
    }
    match system.set_affinity(tid, &old) {
        Ok(()) => {}
        Err(error) if error.is_gone() => return Back::Gone(None),
        Err(error) => return Back::Failed(error.into()),
    }
    let found = match look(system, pid, tid) {
        Ok(Some(found)) => found.allowed,
        Ok(None) => return Back::Gone(None),
        Err(error) => return Back::Failed(error.into()),
    };
    // Some kernels cut a mask to the CPUs that are online; nothing more can be had there.
    let online = || CpuSet::parse_list(&system.read_text("/sys/devices/system/cpu/online").ok()?).ok();
    if found != old && online().is_none_or(|online| found != old.intersection(&online)) {
        let reason = format!("it may use CPUs {found} after {old} was set");
        return Back::Failed(Refusal::because("restore the affinity of", &path, reason));
    }
    let shown = now.allowed.to_string();
    let ours = [&entry.new, &entry.found, &entry.earlier];
    let is_foreign = entry.new.is_some() && !ours.contains(&&Some(shown.clone()));
    Back::Restored {
        remark: is_foreign.then(|| format!("task {tid} ({}) had been moved to {shown} by somebody else", now.name)),
    }
}

/// How many tasks of a pattern are where; for hosts of which only files are known.
pub(super) fn census(files: &dyn Files, pattern: &str, cpus: &CpuSet) -> Result<String, SystemError> {
    let pattern = WildMatch::new(pattern);
    let tasks: Vec<Task> = scan(files)?;
    let tasks = tasks.iter().filter(|task| is_match(&pattern, &task.name, &task.process));
    let (inside, outside): (Vec<&Task>, Vec<&Task>) = tasks.partition(|task| task.allowed.is_subset(cpus));
    let movable = outside.iter().filter(|task| task.is_movable()).count();
    let fixed = outside.len() - movable;
    Ok(format!("{movable} tasks elsewhere, {} there, {fixed} cannot move", inside.len()))
}

/// All tasks. What ends while it is looked at is left out.
pub(super) fn scan(files: &dyn Files) -> Result<Vec<Task>, SystemError> {
    let mut tasks = Vec::new();
    for pid in numbers(files.list("/proc")?) {
        let tids = match files.list(&format!("/proc/{pid}/task")) {
            Ok(names) => numbers(names),
            Err(error) if error.is_gone() => continue,
            Err(error) => return Err(error),
        };
        let from = tasks.len();
        for tid in tids {
            tasks.extend(look(files, pid, tid)?);
        }
        let leader = tasks[from..].iter().find(|task| task.tid == pid).map(|task| task.name.clone());
        for task in &mut tasks[from..] {
            task.process = leader.clone().unwrap_or_else(|| task.name.clone());
        }
    }
    Ok(tasks)
}

/// One task; `None` when it has ended.
fn look(files: &dyn Files, pid: u32, tid: u32) -> Result<Option<Task>, SystemError> {
    let path = |name: &str| format!("/proc/{pid}/task/{tid}/{name}");
    let read = |name: &str| match files.read(&path(name)) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.is_gone() => Ok(None),
        Err(error) => Err(error),
    };
    let (Some(stat), Some(status)) = (read("stat")?, read("status")?) else { return Ok(None) };
    let Some(allowed) = allowed(&String::from_utf8_lossy(&status)) else { return Ok(None) };
    if !stat.first().is_some_and(u8::is_ascii_digit) {
        return Ok(None);
    }
    let Ok(stat) = Stat::from_read(&stat[..]) else { return Ok(None) };
    Ok(Some(Task {
        pid,
        tid,
        parent: u32::try_from(stat.ppid).unwrap_or_default(),
        start: stat.starttime,
        flags: stat.flags,
        state: stat.state,
        process: stat.comm.clone(),
        name: stat.comm,
        allowed,
    }))
}

/// `Cpus_allowed` of a `status` file.
pub(super) fn allowed(status: &str) -> Option<CpuSet> {
    let mask = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed:"))?;
    CpuSet::parse_mask(mask).ok()
}

/// A process and all that descends from it.
fn descendants(tasks: &[Task], root: u32) -> BTreeSet<u32> {
    let mut family = BTreeSet::from([root]);
    loop {
        let before = family.len();
        let children = tasks.iter().filter(|task| family.contains(&task.parent)).map(|task| task.pid);
        let children: Vec<u32> = children.collect();
        family.extend(children);
        if family.len() == before {
            return family;
        }
    }
}

fn numbers(names: Vec<String>) -> Vec<u32> {
    names.into_iter().filter_map(|name| name.parse().ok()).collect()
}

/// `kworker` of `kworker/0:1-events`, `ksoftirqd` of `ksoftirqd/3`: one name for what there is per CPU.
fn family(name: &str) -> String {
    name.split('/').next().unwrap_or(name).to_owned()
}

impl Tally {
    fn remark(&self) -> Option<String> {
        let list = |names: &BTreeSet<String>| names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
        let mut parts = vec![format!("{} moved", self.moved)];
        if self.fixed_count > 0 {
            parts.push(format!("{} kernel threads cannot move ({})", self.fixed_count, list(&self.fixed)));
        }
        if !self.elsewhere.is_empty() {
            parts.push(format!("the kernel keeps elsewhere: {}", list(&self.elsewhere)));
        }
        if !self.partly.is_empty() {
            parts.push(format!("got only a part of the set: {}", list(&self.partly)));
        }
        (self.moved > 0 || parts.len() > 1).then(|| parts.join(", "))
    }
}
