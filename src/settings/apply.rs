//! Takes the host from one set of changes to the next and back to where it was. Decides the order of writes and what is
//! journaled when; how a thing is read and written is in its own file.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::host_lock::HostLock;
use super::journal::{Entries, Entry, Header, Journal, OpenError, Record, Saved, Thing, replay};
use super::{
    Apply, Back, Deviation, Entered, Made, Refusal, Restored, SettingError, System, affinity, command, hotplug,
    kernel_file, service, tasks, words,
};
use crate::bind::{Change, ChangeKind, IrqIdentity, Moving, OnRefusal};
use crate::cpu_set::{Cpu, CpuSet, Irq};
use crate::design::ServiceState;
use crate::host::files::SystemError;
use crate::source::Span;

const EPERM: i32 = 1;
const EIO: i32 = 5;

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

/// The changes in force on a host, and how it was before.
///
/// When it is dropped with changes in force (a panic, a forgotten [`Apply::restore`]) it puts the host back.
pub struct Settings<'a> {
    pub(super) system: &'a dyn System,
    journal: Journal,
    _host: HostLock,
    /// Changes not put back yet, as the journal has them.
    pub(super) entries: Entries,
    /// The first state of everything ever changed or saved; it outlives its entry, so that what somebody else sets
    /// between two treatments is never taken for the original.
    pub(super) first: BTreeMap<String, (Thing, Saved)>,
    pub(super) in_force: Vec<Change>,
    spans: BTreeMap<String, Span>,
    /// Interrupts the kernel refused to move, where that was to be skipped: not tried at every trial.
    immovable: BTreeSet<Irq>,
    /// Records that go to the disk with the next ones.
    unsynced: Vec<Record>,
    /// What the reading of an old journal found wrong with it.
    complaints: Vec<String>,
}

impl<'a> Settings<'a> {
    /// Takes the lock on the state directory. Fails where another runner has it, and over an unfinished journal;
    /// `owner` is the experiment, as a later `irqlab restore` names it.
    pub fn open(system: &'a dyn System, state_dir: &Path, owner: &str) -> Result<Self, OpenError> {
        let boot_id = system.read_text(BOOT_ID).map_err(to_open_error)?;
        let host = HostLock::take(system, state_dir)?;
        let journal = Journal::open(state_dir, Journal::header(owner, boot_id))?;
        if let Some(unfinished) = journal.unfinished()? {
            return Err(OpenError::Unfinished { owner: unfinished.header.owner });
        }
        Ok(Settings::new(system, journal, host))
    }

    fn new(system: &'a dyn System, journal: Journal, host: HostLock) -> Self {
        Settings {
            system,
            journal,
            _host: host,
            entries: Entries::new(),
            first: BTreeMap::new(),
            in_force: Vec::new(),
            spans: BTreeMap::new(),
            immovable: BTreeSet::new(),
            unsynced: Vec::new(),
            complaints: Vec::new(),
        }
    }

    /// Puts records on the disk, then counts them as true. What is about to be written must go through here first.
    pub(super) fn record(&mut self, records: Vec<Record>) -> Result<(), Refusal> {
        let mut all = std::mem::take(&mut self.unsynced);
        all.extend(records.iter().cloned());
        if all.is_empty() {
            return Ok(());
        }
        if let Err(source) = self.journal.append(&all) {
            all.truncate(all.len() - records.len());
            self.unsynced = all;
            return Err(SystemError::new("write", self.journal.path(), source).into());
        }
        for record in records {
            if let Record::Change { thing, old, .. } = &record {
                self.first.insert(thing.key(), (thing.clone(), old.clone()));
            }
            replay(&mut self.entries, record);
        }
        Ok(())
    }

    /// Counts a record as true now; losing it in a crash does no harm.
    pub(super) fn later(&mut self, record: Record) {
        replay(&mut self.entries, record.clone());
        self.unsynced.push(record);
    }

    /// The first state of a thing, or the present one where it is new.
    pub(super) fn original(&self, thing: &Thing, now: Saved) -> Saved {
        match self.first.get(&thing.key()) {
            Some((known, saved)) if known.is(thing) => saved.clone(),
            _ => now,
        }
    }

    /// Puts back what `changes` do not name any more.
    fn leave(&mut self, changes: &[Change], entered: &mut Entered) -> Result<(), SettingError> {
        let wanted: BTreeSet<String> = changes.iter().filter_map(|change| Some(thing(&change.kind)?.key())).collect();
        let switches = |change: &Change| matches!(change.kind, ChangeKind::Smt { .. } | ChangeKind::CpuOnline { .. });
        let hotplug = changes.iter().any(switches);
        let is_left = |key: &str, entry: &Entry| match &entry.thing {
            Thing::Sweep { .. } => false,
            // Only saved: the CPUs it may have lost are still away.
            _ if entry.new.is_none() && hotplug => false,
            // Only saved: who moves it is at work under these changes too.
            Thing::Affinity { .. } if entry.new.is_none() && changes.iter().any(starts_a_mover) => false,
            Thing::Task { name, process, .. } => !tasks::is_covered(changes, name, process),
            _ => !wanted.contains(key),
        };
        let left = self.keys_in_order(|key, entry| is_left(key, entry));
        let mut restored = Restored::default();
        for key in left {
            if let Some(refusal) = self.put_back(&key, &mut restored) {
                let setting = self.entries.get(&key).map_or_else(|| key.clone(), |entry| words::name(&entry.thing));
                let span = self.spans.get(&key).copied().unwrap_or_default();
                let setting = format!("{setting} back to its old value");
                return Err(SettingError { setting, meaning: refusal.meaning, span, source: refusal.source });
            }
        }
        if self.entries.values().any(|entry| matches!(entry.thing, Thing::Sweep { .. })) {
            let released = self.release_heirs(changes, &mut restored);
            if !changes.iter().any(|change| matches!(change.kind, ChangeKind::Tasks { .. })) && released.is_ok() {
                let sweeps = self.keys_in_order(|_, entry| matches!(entry.thing, Thing::Sweep { .. }));
                for key in sweeps {
                    self.later(Record::Restored { key });
                }
            }
            entered.remarks.append(&mut restored.failed);
        }
        entered.written += restored.restored;
        entered.remarks.append(&mut restored.remarks);
        Ok(())
    }

    /// Makes one change, unless it is so already.
    fn make(&mut self, change: &Change, entered: &mut Entered) -> Result<(), SettingError> {
        let Some(thing) = thing(&change.kind) else { return Ok(()) };
        let (key, fail) = (thing.key(), |refusal| words::error(change, refusal));
        let skipped = |irq: Irq| format!("irq {irq} cannot be moved and stays where it is");
        let skip = match &change.kind {
            ChangeKind::Affinity { identity, on_refusal: OnRefusal::Skip, .. } => Some(identity.irq),
            _ => None,
        };
        if let Some(irq) = skip.filter(|irq| self.immovable.contains(irq)) {
            entered.remarks.push(skipped(irq));
            return Ok(());
        }
        let now = save(self.system, &change.kind).map_err(fail)?;
        let ran = matches!(thing, Thing::Command { .. }) && self.entries.contains_key(&key);
        if ran || is_right(&change.kind, &now) {
            entered.already += 1;
            self.in_force.push(change.clone());
            return Ok(());
        }
        let mut records = Vec::new();
        if matches!(thing, Thing::Smt | Thing::CpuOnline { .. }) {
            records = self.disturbed().map_err(|error| fail(error.into()))?;
        }
        if starts_a_mover(change) {
            records.extend(self.movable().map_err(|error| fail(error.into()))?);
        }
        let old = self.original(&thing, now.clone());
        let was_known = self.entries.contains_key(&key);
        records.push(Record::Change { thing, old, new: Some(written(&change.kind, &now)) });
        self.record(records).map_err(fail)?;
        self.spans.insert(key.clone(), change.span);
        match perform(self.system, &change.kind, &now) {
            Ok(made) => {
                self.later(Record::Done { key, found: made.found });
                entered.written += 1;
                entered.remarks.extend(made.remark);
                self.in_force.push(change.clone());
                Ok(())
            }
            Err(refusal) => {
                let immovable = matches!(refusal.source.errno(), EPERM | EIO);
                if let Some(irq) = skip.filter(|_| immovable) {
                    if !was_known {
                        self.later(Record::Restored { key });
                    }
                    self.immovable.insert(irq);
                    entered.remarks.push(skipped(irq));
                    return Ok(());
                }
                if matches!(change.kind, ChangeKind::Command { .. }) {
                    self.command_failed(key, &refusal);
                }
                Err(fail(refusal))
            }
        }
    }

    /// A command that failed may have done a part of its work; one that was not found has done nothing.
    fn command_failed(&mut self, key: String, refusal: &Refusal) {
        if refusal.source.is_gone() {
            self.later(Record::Restored { key });
        } else {
            self.later(Record::Done { key, found: command::FAILED.to_owned() });
        }
    }

    /// Saves what a CPU may take with it, except what is journaled.
    fn disturbed(&self) -> Result<Vec<Record>, SystemError> {
        Ok(self.saved(hotplug::disturbed(self.system)?))
    }

    /// Saves every mask a service that moves interrupts may write, except what is journaled.
    fn movable(&self) -> Result<Vec<Record>, SystemError> {
        Ok(self.saved(affinity::movable(self.system)?))
    }

    fn saved(&self, things: Vec<(Thing, Saved)>) -> Vec<Record> {
        let new = things.into_iter().filter(|(thing, _)| !self.entries.contains_key(&thing.key()));
        let records = new.map(|(thing, now)| {
            let old = self.original(&thing, now);
            Record::Change { thing, old, new: None }
        });
        records.collect()
    }

    /// Puts one thing back and counts how it went; gives the refusal where it is not as it was.
    fn put_back(&mut self, key: &str, restored: &mut Restored) -> Option<Refusal> {
        let entry = self.entries.get(key)?;
        let name = words::name(&entry.thing);
        // An undo must not run twice; everything else is compared before it is written.
        let at_once = matches!(entry.thing, Thing::Command { .. });
        match back(self.system, entry) {
            Back::Failed(refusal) => return Some(refusal),
            Back::Already => restored.already += 1,
            Back::Gone(remark) => restored.remarks.extend(remark),
            Back::Restored { remark } => {
                restored.restored += 1;
                restored.remarks.extend(remark.map(|remark| format!("{name}: {remark}")));
            }
        }
        let done = Record::Restored { key: key.to_owned() };
        if at_once {
            return self.record(vec![done]).err();
        }
        self.later(done);
        None
    }

    /// Keys of entries in the order they are put back.
    fn keys_in_order(&self, is_meant: impl Fn(&str, &Entry) -> bool) -> Vec<String> {
        let meant = self.entries.iter().filter(|(key, entry)| is_meant(key, entry));
        let mut keys: Vec<_> = meant.map(|(key, entry)| ((rank(entry), Reverse(entry.order)), key.clone())).collect();
        keys.sort();
        keys.into_iter().map(|(_, key)| key).collect()
    }
}

impl Apply for Settings<'_> {
    fn enter(&mut self, changes: &[Change]) -> Result<Entered, SettingError> {
        let changes = in_order(changes);
        let mut entered = Entered::default();
        self.in_force.clear();
        self.leave(&changes, &mut entered)?;
        let last = changes.partition_point(|change| place(&change.kind) < LAST);
        for change in &changes[..last] {
            self.make(change, &mut entered)?;
        }
        self.enter_tasks(&changes, &mut entered)?;
        let is_tasks = |change: &&Change| matches!(change.kind, ChangeKind::Tasks { .. });
        self.in_force.extend(changes.iter().filter(is_tasks).cloned());
        for change in &changes[last..] {
            self.make(change, &mut entered)?;
        }
        if let (Err(refusal), Some(change)) = (self.record(Vec::new()), changes.first()) {
            return Err(words::error(change, refusal));
        }
        Ok(entered)
    }

    fn expect_moves(&mut self, moving: &[Moving]) -> Result<(), SettingError> {
        Settings::expect_moves(self, moving)
    }

    fn follow_moves(&mut self, last: &BTreeMap<u32, CpuSet>) {
        Settings::follow_moves(self, last);
    }

    fn verify(&self) -> Vec<Deviation> {
        let mut deviations = Vec::new();
        for change in &self.in_force {
            let found = match save(self.system, &change.kind) {
                _ if matches!(change.kind, ChangeKind::Command { .. } | ChangeKind::Tasks { .. }) => continue,
                Ok(now) if is_right(&change.kind, &now) || self.is_as_read_back(&change.kind, &now) => continue,
                Ok(now) => words::found(change, &now),
                Err(refusal) => refusal.to_string(),
            };
            deviations.push(Deviation { setting: words::describe(change), asked: words::asked(change), found });
        }
        let deviation =
            |change: &Change, found| Deviation { setting: words::describe(change), asked: words::asked(change), found };
        match self.strays(&self.in_force) {
            Ok(strays) => {
                for (place, change) in self.in_force.iter().enumerate() {
                    let names: Vec<&str> =
                        strays.iter().filter(|(at, _)| *at == place).map(|(_, name)| name.as_str()).collect();
                    if !names.is_empty() {
                        deviations.push(deviation(change, names.join(", ")));
                    }
                }
            }
            Err(error) => {
                let tasks = self.in_force.iter().filter(|change| matches!(change.kind, ChangeKind::Tasks { .. }));
                deviations.extend(tasks.map(|change| deviation(change, error.to_string())));
            }
        }
        deviations
    }

    fn restore(&mut self) -> Restored {
        let mut restored = Restored { failed: std::mem::take(&mut self.complaints), ..Restored::default() };
        self.in_force.clear();
        let is_sweep = |entry: &Entry| matches!(entry.thing, Thing::Sweep { .. });
        let (mut ended, mut services_left) = (0, Vec::new());
        for key in self.keys_in_order(|_, entry| !is_sweep(entry)) {
            if self.entries.get(&key).is_some_and(|entry| rank(entry) == RANK_SERVICE_STARTS) {
                services_left.push(key);
                continue;
            }
            let is_task = self.entries.get(&key).is_some_and(|entry| matches!(entry.thing, Thing::Task { .. }));
            let before = (restored.restored, restored.already, restored.remarks.len(), restored.failed.len());
            self.restore_one(&key, &mut restored);
            let after = (restored.restored, restored.already, restored.remarks.len(), restored.failed.len());
            ended += u32::from(is_task && before == after);
        }
        if self.entries.values().any(is_sweep) {
            let failed = restored.failed.len();
            match self.release_heirs(&[], &mut restored) {
                Err(refusal) => restored.failed.push(format!("tasks: {refusal}")),
                Ok(()) if restored.failed.len() == failed => {
                    let sweeps = self.keys_in_order(|_, entry| is_sweep(entry));
                    for key in sweeps {
                        self.later(Record::Restored { key });
                    }
                }
                Ok(()) => {}
            }
        }
        for key in services_left {
            self.restore_one(&key, &mut restored);
        }
        if ended > 0 {
            restored.remarks.push(format!("{ended} tasks that were moved have ended"));
        }
        let closed = if self.entries.is_empty() && restored.failed.is_empty() {
            self.unsynced.clear();
            self.journal.close().map_err(|source| SystemError::new("remove", self.journal.path(), source).into())
        } else {
            self.record(Vec::new())
        };
        if let Err(refusal) = closed {
            restored.failed.push(format!("journal: {refusal}"));
        }
        restored
    }
}

impl Settings<'_> {
    fn restore_one(&mut self, key: &str, restored: &mut Restored) {
        let name = self.entries.get(key).map(|entry| words::name(&entry.thing)).unwrap_or_default();
        if let Some(refusal) = self.put_back(key, restored) {
            restored.failed.push(format!("{name}: {refusal}"));
        }
    }

    /// Whether a file still holds what the kernel made of its value.
    fn is_as_read_back(&self, kind: &ChangeKind, now: &Saved) -> bool {
        let entry = thing(kind).and_then(|thing| self.entries.get(&thing.key()));
        let found = entry.filter(|_| matches!(kind, ChangeKind::File { .. })).and_then(|entry| entry.found.as_deref());
        found.is_some_and(|found| words::shown(now) == kernel_file::words(found))
    }

    /// Drops what the last boot took with it.
    fn forget_what_a_boot_resets(&mut self) -> Option<String> {
        let before = self.entries.len();
        self.entries.retain(|_, entry| matches!(entry.thing, Thing::Command { .. } | Thing::Service { .. }));
        let gone = before - self.entries.len();
        (gone > 0)
            .then(|| format!("the host was booted since: {gone} settings ended with that boot, nothing to put back"))
    }
}

impl Drop for Settings<'_> {
    fn drop(&mut self) {
        if !self.entries.is_empty() {
            self.restore();
        }
    }
}

/// Puts the host back from what an earlier run left in its journal; `None` when it left nothing. A second call finds
/// nothing to do and writes nothing.
pub fn restore_unfinished(system: &dyn System, state_dir: &Path) -> Result<Option<Restored>, OpenError> {
    if !state_dir.exists() {
        return Ok(None);
    }
    let host = HostLock::take(system, state_dir)?;
    let mut journal = Journal::open(state_dir, Header { version: 0, boot_id: String::new(), owner: String::new() })?;
    let Some(unfinished) = journal.unfinished()? else {
        // A journal torn in its first line: nothing was changed under it.
        let path = journal.path();
        return journal.close().map(|()| None).map_err(|source| OpenError::Io { action: "remove", path, source });
    };
    journal.resume(unfinished.header)?;
    let booted_since = system.read_text(BOOT_ID).is_ok_and(|boot_id| boot_id != journal.boot_id());
    let mut settings = Settings::new(system, journal, host);
    settings.first =
        unfinished.entries.iter().map(|(key, entry)| (key.clone(), (entry.thing.clone(), entry.old.clone()))).collect();
    settings.entries = unfinished.entries;
    let path = settings.journal.path();
    settings.complaints = unfinished
        .damaged
        .iter()
        .map(|line| format!("line {line} of {} cannot be read: look at it, then remove the file", path.display()))
        .collect();
    let remark = if booted_since { settings.forget_what_a_boot_resets() } else { None };
    let mut restored = settings.restore();
    restored.remarks.extend(remark);
    if booted_since && !settings.entries.is_empty() && unfinished.damaged.is_empty() {
        // The state these would be put back to ended with the boot: told once, they must not bar every later run.
        let closed = settings.journal.close();
        restored.failed.extend(closed.err().map(|source| format!("journal: {source}")));
    }
    // One try is all that was asked for; the drop must not make it two.
    settings.entries.clear();
    Ok(Some(restored))
}

/// The thing a change is about; tasks are many.
fn thing(kind: &ChangeKind) -> Option<Thing> {
    Some(match kind {
        ChangeKind::Affinity { identity, .. } => Thing::of_irq(identity),
        ChangeKind::Command { command, undo } => Thing::Command { command: command.clone(), undo: undo.clone() },
        ChangeKind::CpuOnline { cpu, .. } => Thing::CpuOnline { cpu: cpu.0 },
        ChangeKind::DefaultAffinity { .. } => Thing::DefaultAffinity,
        ChangeKind::File { path, .. } => Thing::File { path: path.clone() },
        ChangeKind::Service { name, .. } => Thing::Service { name: name.clone() },
        ChangeKind::Smt { .. } => Thing::Smt,
        ChangeKind::Tasks { .. } => return None,
    })
}

impl Thing {
    pub(super) fn of_irq(identity: &IrqIdentity) -> Self {
        let IrqIdentity { irq, actions, chip, hwirq, device } = identity.clone();
        Thing::Affinity { irq: irq.0, actions, chip, hwirq, device }
    }
}

/// Reads the present state of what a change is about.
fn save(system: &dyn System, kind: &ChangeKind) -> Result<Saved, Refusal> {
    match kind {
        ChangeKind::Affinity { identity, .. } => affinity::save(system, identity),
        ChangeKind::Command { .. } | ChangeKind::Tasks { .. } => Ok(Saved::Nothing),
        ChangeKind::CpuOnline { cpu, online } => {
            hotplug::save_cpu(system, *cpu).and_then(|now| hotplug::check_switch(now, *cpu, *online))
        }
        ChangeKind::DefaultAffinity { .. } => kernel_file::save(system, affinity::DEFAULT),
        ChangeKind::File { path, .. } => kernel_file::save(system, path),
        ChangeKind::Service { name, options, .. } => service::save(system, name, options),
        ChangeKind::Smt { .. } => hotplug::save_smt(system),
    }
}

fn is_right(kind: &ChangeKind, now: &Saved) -> bool {
    match kind {
        ChangeKind::Affinity { mask, .. } | ChangeKind::DefaultAffinity { mask } => affinity::is_right(now, mask),
        ChangeKind::Command { .. } | ChangeKind::Tasks { .. } => false,
        ChangeKind::CpuOnline { online, .. } => hotplug::is_right(now, *online),
        ChangeKind::File { value, .. } => kernel_file::is_right(now, value),
        ChangeKind::Service { state, options, .. } => service::is_right(now, *state, options),
        ChangeKind::Smt { on } => kernel_file::is_right(now, if *on { "on" } else { "off" }),
    }
}

/// The new value as it will be written.
fn written(kind: &ChangeKind, now: &Saved) -> String {
    match kind {
        ChangeKind::Affinity { mask, .. } | ChangeKind::DefaultAffinity { mask } => {
            mask.to_mask_like(&kernel_file::text_of(now))
        }
        ChangeKind::Command { command, .. } => shell_words::join(command),
        ChangeKind::CpuOnline { online, .. } => if *online { "1" } else { "0" }.to_owned(),
        ChangeKind::File { value, .. } => value.clone(),
        ChangeKind::Service { state: ServiceState::Started, options, .. } => service::started(options),
        ChangeKind::Service { state: ServiceState::Stopped, .. } => "stopped".to_owned(),
        ChangeKind::Smt { on } => if *on { "on" } else { "off" }.to_owned(),
        ChangeKind::Tasks { cpus, .. } => cpus.to_string(),
    }
}

/// Writes and reads back.
fn perform(system: &dyn System, kind: &ChangeKind, now: &Saved) -> Result<Made, Refusal> {
    match kind {
        ChangeKind::Affinity { identity, mask, .. } => affinity::make(system, &affinity::path(identity), mask, now),
        ChangeKind::Command { command, .. } => command::make(system, command),
        ChangeKind::CpuOnline { cpu, online } => hotplug::make_cpu(system, *cpu, *online),
        ChangeKind::DefaultAffinity { mask } => affinity::make(system, affinity::DEFAULT, mask, now),
        ChangeKind::File { path, value } => kernel_file::make(system, path, value),
        ChangeKind::Service { name, state, options } => service::make(system, name, (*state, options), now),
        ChangeKind::Smt { on } => hotplug::make_smt(system, *on),
        ChangeKind::Tasks { .. } => Ok(Made { found: String::new(), remark: None }),
    }
}

/// Brings one thing back to its old state.
fn back(system: &dyn System, entry: &Entry) -> Back {
    match &entry.thing {
        Thing::Affinity { irq, actions, chip, hwirq, device } => {
            let identity = IrqIdentity {
                irq: Irq(*irq),
                actions: actions.clone(),
                chip: chip.clone(),
                hwirq: hwirq.clone(),
                device: device.clone(),
            };
            affinity::put_back(system, &identity, entry)
        }
        Thing::Command { undo, .. } => command::put_back(system, undo, entry),
        Thing::CpuOnline { cpu } => {
            kernel_file::put_back(system, &hotplug::path(Cpu(*cpu)), entry, kernel_file::meaning)
        }
        Thing::Cpuset { path } | Thing::File { path } => {
            kernel_file::put_back(system, path, entry, kernel_file::meaning)
        }
        Thing::DefaultAffinity => kernel_file::put_back(system, affinity::DEFAULT, entry, kernel_file::meaning),
        Thing::Service { name } => service::put_back(system, name, entry),
        Thing::Smt => hotplug::put_back_smt(system, entry),
        Thing::Sweep { .. } => Back::Already,
        Thing::Task { pid, tid, start, .. } => tasks::put_back(system, (*pid, *tid, *start), entry),
    }
}

const RANK_SERVICE_STARTS: u8 = 9;

/// Order of putting back: what would write against us stops first, CPUs come before masks that name them, commands
/// before files and interrupts they may make anew, and services that were stopped start last.
fn rank(entry: &Entry) -> u8 {
    match &entry.thing {
        Thing::Service { .. } if service::runs(&entry.old) => RANK_SERVICE_STARTS,
        Thing::Service { .. } => 0,
        Thing::Smt => 1,
        Thing::CpuOnline { .. } => 2,
        Thing::Command { .. } => 3,
        Thing::File { .. } => 4,
        Thing::Affinity { .. } => 5,
        Thing::DefaultAffinity => 6,
        Thing::Cpuset { .. } => 7,
        Thing::Task { .. } | Thing::Sweep { .. } => 8,
    }
}

/// Whether a change starts a service that moves interrupts no route names.
fn starts_a_mover(change: &Change) -> bool {
    matches!(&change.kind, ChangeKind::Service { name, state: ServiceState::Started, .. } if name == service::IRQBALANCE)
}

/// Where services start.
const LAST: u8 = 8;

/// Order of making.
fn place(kind: &ChangeKind) -> u8 {
    match kind {
        ChangeKind::Service { state: ServiceState::Stopped, .. } => 0,
        ChangeKind::Smt { .. } => 1,
        ChangeKind::CpuOnline { .. } => 2,
        ChangeKind::Command { .. } => 3,
        ChangeKind::File { .. } => 4,
        ChangeKind::Affinity { .. } => 5,
        ChangeKind::DefaultAffinity { .. } => 6,
        ChangeKind::Tasks { .. } => 7,
        ChangeKind::Service { state: ServiceState::Started, .. } => LAST,
    }
}

/// Changes in the order they are made; of two for the same thing the later one counts.
fn in_order(changes: &[Change]) -> Vec<Change> {
    let mut ordered: Vec<Change> = Vec::new();
    for change in changes {
        let key = thing(&change.kind).map(|thing| thing.key());
        if key.is_some() {
            ordered.retain(|earlier| thing(&earlier.kind).map(|thing| thing.key()) != key);
        }
        ordered.push(change.clone());
    }
    ordered.sort_by_key(|change| place(&change.kind));
    ordered
}

fn to_open_error(error: SystemError) -> OpenError {
    OpenError::Io { action: error.action, path: error.path, source: error.source }
}
