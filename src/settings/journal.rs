//! The journal: what was changed, on the disk before it is changed. Append-only JSON Lines; the only serialised types
//! of this stage. Knows nothing of how a thing is read or written.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek as _, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use nix::fcntl::{Flock, FlockArg, OFlag};
use serde::{Deserialize, Serialize};

/// Version of the format; a journal of another version is not touched.
const VERSION: u32 = 1;

/// The name of the journal in the state directory.
pub(super) const JOURNAL: &str = "journal.jsonl";

/// The state directory cannot be used, or holds something that must be dealt with first.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another runner holds the lock.
    #[error("irqlab is running already{}: wait for it to end", pid.map(|pid| format!(" as process {pid}")).unwrap_or_default())]
    Locked {
        /// The runner, where it could write its number.
        pid: Option<u32>,
    },
    /// An earlier run ended without putting the host back.
    #[error("an earlier run of `{owner}` did not put this host back: run `irqlab restore` first")]
    Unfinished {
        /// The experiment that was run.
        owner: String,
    },
    /// An earlier run with another state directory ended without putting the host back.
    #[error(
        "an earlier run did not put this host back: run `IRQLAB_STATE_DIR={} irqlab restore` first", directory.display()
    )]
    UnfinishedElsewhere {
        /// Its state directory.
        directory: PathBuf,
    },
    /// Written by another version of irqlab.
    #[error(
        "{} is of journal version {version}, and this irqlab knows version {VERSION}: restore with the irqlab that wrote it", path.display()
    )]
    Version {
        /// The journal.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A symlink, or somebody else's directory.
    #[error("{} is not a directory of this user's own: set IRQLAB_STATE_DIR to one that is", path.display())]
    NotOurs {
        /// The state directory.
        path: PathBuf,
    },
    /// The file system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `open`, `write` …
        action: &'static str,
        /// File or directory.
        path: PathBuf,
        /// With the raw errno.
        source: io::Error,
    },
}

/// What was changed, and what makes it the same thing at restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Thing {
    /// `/proc/irq/N/smp_affinity`
    Affinity { irq: u32, actions: Vec<String>, chip: String, hwirq: Option<String>, device: Option<String> },
    /// A command that ran, and the one that undoes it.
    Command { command: Vec<String>, undo: Vec<String> },
    /// `/sys/devices/system/cpu/cpuN/online`
    CpuOnline { cpu: u32 },
    /// `cpuset.cpus` of a cgroup v1 cpuset.
    Cpuset { path: String },
    /// `/proc/irq/default_smp_affinity`
    DefaultAffinity,
    /// A kernel file with one value.
    File { path: String },
    /// A service.
    Service { name: String },
    /// `/sys/devices/system/cpu/smt/control`
    Smt,
    /// `tasks PATTERN on SET` came into force. Tasks born later inherit the set: they are known by a start time
    /// after `since`, or equal to it and not among the `newest` tasks of that moment.
    Sweep { pattern: String, cpus: String, since: u64, newest: Vec<u32> },
    /// One task; its start time tells it from another one with its number.
    Task { pid: u32, tid: u32, start: u64, name: String, process: String },
}

/// A state, exactly enough to bring it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Saved {
    /// CPUs of a task, list form.
    Cpus(String),
    /// Bytes that are not UTF-8.
    Hex(String),
    /// The thing had not happened.
    Nothing,
    /// Processes of a service; none when it did not run.
    Processes(Vec<Program>),
    /// Whether a systemd unit is active.
    Unit { active: bool },
    /// Bytes of a kernel file.
    Text(String),
}

impl Saved {
    /// The bytes of a file, kept exactly.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        match std::str::from_utf8(bytes) {
            Ok(text) => Saved::Text(text.to_owned()),
            Err(_) => Saved::Hex(bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect()),
        }
    }

    /// The bytes of a file; `None` where this is not a file's state or the hex is damaged.
    pub(super) fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Saved::Text(text) => Some(text.as_bytes().to_vec()),
            Saved::Hex(hex) => {
                let pairs = (0..hex.len()).step_by(2);
                pairs.map(|at| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok()).collect()
            }
            _ => None,
        }
    }
}

/// A program as it ran, so that it can be started the same way again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Program {
    /// Path, or a name to be looked up on `PATH`.
    pub executable: String,
    /// All words, the program's own name first.
    pub arguments: Vec<String>,
    /// Its whole environment; `None` for the runner's.
    pub environment: Option<Vec<(String, String)>>,
    /// Working directory; `None` for the runner's.
    pub directory: Option<String>,
    /// CPUs it might use, list form; `None` for the runner's.
    pub cpus: Option<String>,
    /// User and group id; `None` for the runner's.
    pub user: Option<(u32, u32)>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Record {
    /// The first line.
    Header(Header),
    /// About to be made. Without `new` it is only saved, because another change may disturb it.
    Change { thing: Thing, old: Saved, new: Option<String> },
    /// Made; `found` is what was read back.
    Done { key: String, found: String },
    /// Put back, or gone for good.
    Restored { key: String },
}

/// Who wrote the journal, and in which life of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Header {
    /// [`VERSION`]
    pub(super) version: u32,
    /// `/proc/sys/kernel/random/boot_id`
    pub(super) boot_id: String,
    /// The experiment.
    pub(super) owner: String,
}

/// A change that is not put back yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// What was changed.
    pub(super) thing: Thing,
    /// Its first state.
    pub(super) old: Saved,
    /// What it was last set to; `None` when it was only saved.
    pub(super) new: Option<String>,
    /// What was read back then; `None` when the runner did not come so far.
    pub(super) found: Option<String>,
    /// What an earlier treatment had set it to: it still holds that where the runner was killed before its write.
    pub(super) earlier: Option<String>,
    /// Place in the order of first changes.
    pub(super) order: usize,
}

/// Entries by the key of their thing.
pub(super) type Entries = BTreeMap<String, Entry>;

/// What a journal left behind says.
pub(super) struct Unfinished {
    /// Its first line.
    pub(super) header: Header,
    /// What is not put back.
    pub(super) entries: Entries,
    /// Lines that cannot be read, other than a torn last one.
    pub(super) damaged: Vec<usize>,
}

/// The state directory, locked for one runner, and its journal.
pub(super) struct Journal {
    directory: PathBuf,
    header: Header,
    file: Option<File>,
    /// Held until the end; the kernel gives it up with the process.
    _lock: Flock<File>,
}

impl Journal {
    /// Locks the state directory, made with mode 0700 where it is missing.
    pub(super) fn open(directory: &Path, header: Header) -> Result<Self, OpenError> {
        prepare_directory(directory)?;
        let (lock, _) = lock(&directory.join("lock"), "")?;
        Ok(Journal { directory: directory.to_owned(), header, file: None, _lock: lock })
    }

    /// The header for a journal of this version.
    pub(super) fn header(owner: &str, boot_id: String) -> Header {
        Header { version: VERSION, boot_id, owner: owner.to_owned() }
    }

    /// What an earlier run left. A journal without a whole header never had a change made under it.
    pub(super) fn unfinished(&self) -> Result<Option<Unfinished>, OpenError> {
        let path = self.path();
        let mut text = Vec::new();
        match OpenOptions::new().read(true).custom_flags(OFlag::O_NOFOLLOW.bits()).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(OpenError::Io { action: "open", path, source }),
            Ok(mut file) => file.read_to_end(&mut text).map_err(|source| OpenError::Io {
                action: "read",
                path: path.clone(),
                source,
            })?,
        };
        let text = String::from_utf8_lossy(&text);
        // A line without its newline was torn by a crash: it was never synced, so its write was never made.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        let mut lines =
            whole.lines().enumerate().map(|(index, line)| (index + 1, serde_json::from_str::<Record>(line)));
        let header = match lines.next() {
            None => return Ok(None),
            Some((_, Ok(Record::Header(header)))) => header,
            Some(_) => {
                let version = version_of(whole).unwrap_or_default();
                return Err(OpenError::Version { path, version });
            }
        };
        if header.version != VERSION {
            return Err(OpenError::Version { path, version: header.version });
        }
        let (mut entries, mut damaged) = (Entries::new(), Vec::new());
        for (number, record) in lines {
            match record {
                Ok(record) => replay(&mut entries, record),
                Err(_) => damaged.push(number),
            }
        }
        Ok(Some(Unfinished { header, entries, damaged }))
    }

    /// Goes on with the journal an earlier run left.
    pub(super) fn resume(&mut self, header: Header) -> Result<(), OpenError> {
        let path = self.path();
        let open = || -> io::Result<File> {
            let mut file =
                OpenOptions::new().read(true).append(true).custom_flags(OFlag::O_NOFOLLOW.bits()).open(&path)?;
            let mut text = Vec::new();
            file.read_to_end(&mut text)?;
            // What follows a torn line would be unreadable.
            file.set_len(text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end as u64 + 1))?;
            Ok(file)
        };
        let file = open().map_err(|source| OpenError::Io { action: "open", path: path.clone(), source })?;
        self.file = Some(file);
        self.header = header;
        Ok(())
    }

    /// Appends records and waits until they are on the disk. The first ones make the file.
    pub(super) fn append(&mut self, records: &[Record]) -> io::Result<()> {
        let mut text = String::new();
        let mut file = if let Some(file) = self.file.take() {
            file
        } else {
            push_line(&mut text, &Record::Header(self.header.clone()))?;
            OpenOptions::new().append(true).create_new(true).mode(0o600).open(self.path())?
        };
        for record in records {
            push_line(&mut text, record)?;
        }
        let length = file.metadata()?.len();
        let made = !text.is_empty() && length == 0;
        let mut written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        if written.is_err() {
            // A full disk takes half a line, and what follows half a line would be unreadable.
            written = file.set_len(length).and(written);
        }
        self.file = Some(file);
        written?;
        if made {
            File::open(&self.directory)?.sync_all()?;
        }
        Ok(())
    }

    /// Removes the file: the host is as it was.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.file = None;
        match fs::remove_file(self.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        File::open(&self.directory)?.sync_all()
    }

    /// The journal's file.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.join(JOURNAL)
    }

    /// The header's boot id.
    pub(super) fn boot_id(&self) -> &str {
        &self.header.boot_id
    }
}

/// Puts a record into the entries. A key keeps its first state; the last thing it was set to counts.
pub(super) fn replay(entries: &mut Entries, record: Record) {
    match record {
        Record::Header(_) => {}
        Record::Change { thing, old, new } => {
            let order = entries.values().map(|entry| entry.order + 1).max().unwrap_or_default();
            let entry = Entry { thing, old, new, found: None, earlier: None, order };
            match entries.get_mut(&entry.thing.key()) {
                Some(known) if known.thing.is(&entry.thing) => {
                    known.thing.learn(entry.thing);
                    known.earlier = known.found.take().or(known.new.take()).or(known.earlier.take());
                    known.new = entry.new;
                }
                _ => drop(entries.insert(entry.thing.key(), entry)),
            }
        }
        Record::Done { key, found } => {
            if let Some(entry) = entries.get_mut(&key) {
                entry.found = Some(found);
            }
        }
        Record::Restored { key } => drop(entries.remove(&key)),
    }
}

impl Thing {
    /// Whether both are the same thing. An interrupt is known by a plan with its device and by a look at the host without
    /// one: what only one of the two has does not tell them apart, or the mask of a moment would pass for the first one.
    pub(super) fn is(&self, other: &Thing) -> bool {
        let (
            Thing::Affinity { irq, actions, chip, hwirq, .. },
            Thing::Affinity { irq: other_irq, actions: other_actions, chip: other_chip, hwirq: other_hwirq, .. },
        ) = (self, other)
        else {
            return self == other;
        };
        let same_actions = actions.is_empty() || other_actions.is_empty() || actions == other_actions;
        let same_chip = chip.is_empty() || other_chip.is_empty() || chip.trim() == other_chip.trim();
        let same_hwirq = hwirq.is_none() || other_hwirq.is_none() || hwirq == other_hwirq;
        irq == other_irq && same_actions && same_chip && same_hwirq
    }

    /// Takes what the same thing knows more of itself.
    pub(super) fn learn(&mut self, other: Thing) {
        let (
            Thing::Affinity { actions, chip, hwirq, device, .. },
            Thing::Affinity { actions: more_actions, chip: more_chip, hwirq: more_hwirq, device: more_device, .. },
        ) = (self, other)
        else {
            return;
        };
        if actions.is_empty() {
            *actions = more_actions;
        }
        if chip.is_empty() {
            *chip = more_chip;
        }
        *hwirq = hwirq.take().or(more_hwirq);
        *device = device.take().or(more_device);
    }

    /// What is the same key is the same setting; for kernel files it is the path.
    pub(super) fn key(&self) -> String {
        match self {
            Thing::Affinity { irq, .. } => format!("/proc/irq/{irq}/smp_affinity"),
            Thing::Command { command, undo } => {
                format!("run {} undo {}", shell_words::join(command), shell_words::join(undo))
            }
            Thing::CpuOnline { cpu } => format!("/sys/devices/system/cpu/cpu{cpu}/online"),
            Thing::Cpuset { path } | Thing::File { path } => path.clone(),
            Thing::DefaultAffinity => "/proc/irq/default_smp_affinity".to_owned(),
            Thing::Service { name } => format!("service {name}"),
            Thing::Smt => "/sys/devices/system/cpu/smt/control".to_owned(),
            Thing::Sweep { pattern, cpus, .. } => format!("tasks {pattern} on {cpus}"),
            Thing::Task { tid, start, .. } => format!("task {tid} of {start}"),
        }
    }
}

fn hex_digit(half: u8) -> char {
    char::from_digit(half.into(), 16).unwrap_or('?')
}

fn push_line(text: &mut String, record: &Record) -> io::Result<()> {
    text.push_str(&serde_json::to_string(record)?);
    text.push('\n');
    Ok(())
}

/// The version in a first line that is not a header of ours.
fn version_of(text: &str) -> Option<u32> {
    let line: serde_json::Value = serde_json::from_str(text.lines().next()?).ok()?;
    line.get("header")?.get("version")?.as_u64()?.try_into().ok()
}

fn prepare_directory(directory: &Path) -> Result<(), OpenError> {
    // Without a slash at the end, behind which the kernel would follow a symlink.
    let directory: &Path = &directory.components().collect::<PathBuf>();
    let failed = |action| move |source| OpenError::Io { action, path: directory.to_owned(), source };
    match DirBuilder::new().mode(0o700).recursive(true).create(directory) {
        // `recursive` accepts a symlink to a directory; the check below does not.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed("create")(error)),
        _ => {}
    }
    let facts = fs::symlink_metadata(directory).map_err(failed("look at"))?;
    if !facts.is_dir() || facts.uid() != nix::unistd::geteuid().as_raw() {
        return Err(OpenError::NotOurs { path: directory.to_owned() });
    }
    if facts.mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700)).map_err(failed("protect"))?;
    }
    Ok(())
}

/// Takes a lock file for this process. Its first line is the number of the process, its second `note`; what an earlier
/// holder had written there comes back.
pub(super) fn lock(path: &Path, note: &str) -> Result<(Flock<File>, String), OpenError> {
    let failed = |action| move |source| OpenError::Io { action, path: path.to_owned(), source };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(OFlag::O_NOFOLLOW.bits());
    let mut file = options.open(path).map_err(failed("open"))?;
    let mut text = String::new();
    let _ = file.read_to_string(&mut text);
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(mut lock) => {
            let ours = format!("{}\n{note}\n", std::process::id());
            // It only makes a message better; a full disk must not keep `irqlab restore` from its work.
            let _ = lock.set_len(0).and_then(|()| lock.rewind()).and_then(|()| lock.write_all(ours.as_bytes()));
            Ok((lock, text.lines().nth(1).unwrap_or_default().to_owned()))
        }
        Err((_, nix::errno::Errno::EWOULDBLOCK)) => {
            Err(OpenError::Locked { pid: text.lines().next().and_then(|pid| pid.parse().ok()) })
        }
        Err((_, errno)) => Err(failed("lock")(errno.into())),
    }
}
