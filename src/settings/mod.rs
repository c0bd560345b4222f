//! Reversible changes of the host, and the journal that puts them back. The only place that writes to a kernel file.

use crate::bind::Change;
use crate::host::files::{Files, SystemError};
use crate::source::Span;

/// Full access to a host. Tests have one that fails on demand.
pub trait System: Files {
    /// One open, one unbuffered `write(2)`, its length checked; never creates or truncates a file.
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), SystemError>;
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

    /// Reads every setting in force again.
    fn verify(&self) -> Vec<Deviation>;

    /// Puts everything back, going on after errors, and closes the journal when nothing is left.
    fn restore(&mut self) -> Restored;
}
