//! Reversible changes of the host, and the journal that puts them back. The only place that writes to a kernel file.

mod affinity;
mod apply;
mod command;
mod host_lock;
mod hotplug;
mod journal;
mod kernel_file;
mod live;
mod moving;
mod service;
mod tasks;
mod words;

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use crate::bind::{Change, Moving};
use crate::cpu_set::CpuSet;
use crate::host::files::{Files, SystemError};
use crate::source::Span;

pub use apply::{Settings, restore_unfinished};
pub use journal::{OpenError, Program};
pub use live::Live;
pub use moving::{Moved, Stint};
pub use words::{current, describe};

/// Full access to a host. Tests have one that fails on demand.
pub trait System: Files {
    /// One open, one unbuffered `write(2)`, its length checked; never creates or truncates a file.
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), SystemError>;

    /// Binds one task, `sched_setaffinity(2)`. The kernel may quietly take a smaller set: read back.
    fn set_affinity(&self, tid: u32, cpus: &CpuSet) -> Result<(), SystemError>;

    /// Sends SIGTERM to one process.
    fn terminate(&self, pid: u32) -> Result<(), SystemError>;

    /// Runs a program to its end, no shell between.
    fn run(&self, command: &[String]) -> Result<Ended, SystemError>;

    /// Starts a program that outlives the runner.
    fn start(&self, program: &Program) -> Result<(), SystemError>;

    /// The runner's process number.
    fn own_pid(&self) -> u32;

    /// Whether the effective user is root.
    fn is_root(&self) -> bool;

    /// Waits before something is looked at again.
    fn pause(&self, time: Duration);
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Exit status 0.
    pub success: bool,
    /// `exit status: 1`, `signal: 9`
    pub status: String,
    /// Trimmed.
    pub stdout: String,
    /// Trimmed.
    pub stderr: String,
}

/// Where the journal lives: `IRQLAB_STATE_DIR`, else `/var/lib/irqlab`.
pub fn state_dir() -> PathBuf {
    let named = std::env::var_os("IRQLAB_STATE_DIR").filter(|path| !path.is_empty());
    named.map_or_else(|| PathBuf::from("/var/lib/irqlab"), PathBuf::from)
}

/// A setting that could not be made. What was made before it stays journaled and is put back by
/// [`Apply::restore`].
#[derive(Debug, thiserror::Error)]
#[error("{setting}: {source}{}", meaning.map(|meaning| format!(" ({meaning})")).unwrap_or_default())]
pub struct SettingError {
    /// In plain words: `irq 36 -> cpu 0`.
    pub setting: String,
    /// What the errno means here: `managed interrupt: the kernel does not let its mask be set`.
    pub meaning: Option<&'static str>,
    /// Where it was written.
    pub span: Span,
    /// Path and errno.
    pub source: SystemError,
}

/// What entering a treatment did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Entered {
    /// Writes made.
    pub written: u32,
    /// Settings that were right already.
    pub already: u32,
    /// Worth a line in the recording: `tasks * on 0: 31 moved, 12 kernel threads cannot move: …`.
    pub remarks: Vec<String>,
}

/// A setting that is not as it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deviation {
    /// In plain words.
    pub setting: String,
    /// Value asked for.
    pub asked: String,
    /// Value found, or why it could not be read.
    pub found: String,
}

/// What putting the host back gave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Restored {
    /// Settings written back.
    pub restored: u32,
    /// Settings that had their old value already.
    pub already: u32,
    /// Settings that are not as they were: what and why.
    pub failed: Vec<String>,
    /// Foreign changes overwritten, and what cannot be put back by nature.
    pub remarks: Vec<String>,
}

/// Changes as the runner sees them.
pub trait Apply {
    /// Makes the host be under exactly `changes`: what an earlier call made and these do not name is put back,
    /// what is right already is not written, everything else is journaled, fsynced, written and read back.
    fn enter(&mut self, changes: &[Change]) -> Result<Entered, SettingError>;

    /// Makes sure that the old mask of every interrupt that will be moved is on the disk. To be called when the
    /// treatment is in force, before a mover begins.
    fn expect_moves(&mut self, moving: &[Moving]) -> Result<(), SettingError>;

    /// Takes the masks a mover left, by interrupt, as those in force.
    fn follow_moves(&mut self, last: &BTreeMap<u32, CpuSet>);

    /// Reads every setting in force again.
    fn verify(&self) -> Vec<Deviation>;

    /// Puts everything back, going on after errors, and closes the journal when nothing is left.
    fn restore(&mut self) -> Restored;
}

/// Why a change could not be made, before it is tied to its place in the file.
#[derive(Debug)]
struct Refusal {
    source: SystemError,
    meaning: Option<&'static str>,
}

impl Refusal {
    /// A refusal that is not an errno of the kernel.
    fn because(action: &'static str, path: &str, reason: impl Into<String>) -> Self {
        SystemError::new(action, path, io::Error::other(reason.into())).into()
    }

    fn meaning(mut self, meaning: Option<&'static str>) -> Self {
        self.meaning = self.meaning.or(meaning);
        self
    }
}

impl From<SystemError> for Refusal {
    fn from(source: SystemError) -> Self {
        Refusal { source, meaning: None }
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let meaning = self.meaning.map(|meaning| format!(" ({meaning})")).unwrap_or_default();
        write!(f, "{}{meaning}", self.source)
    }
}

/// A change that was made.
#[derive(Debug)]
struct Made {
    /// What was read back, for the journal.
    found: String,
    /// Where it is not quite what was asked for.
    remark: Option<String>,
}

/// How putting one thing back went.
#[derive(Debug)]
enum Back {
    /// It had its old value.
    Already,
    /// It is not as it was; it can be tried again.
    Failed(Refusal),
    /// It cannot be put back, ever: the thing is no more.
    Gone(Option<String>),
    /// Done.
    Restored { remark: Option<String> },
}
