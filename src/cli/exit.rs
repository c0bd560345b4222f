//! Exit statuses, in one place.

use std::process::ExitCode;

/// How the program ends. The numbers are a contract with scripts. 101 stays Rust's panic: a bug of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// Everything held.
    Fine = 0,
    /// An expectation, or a `--check`, failed.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// A file is wrong.
    File = 3,
    /// This host, or this version, cannot do it.
    Host = 4,
    /// The run failed, or the host could not be put back.
    Run = 5,
}

impl Exit {
    /// The worse of two: the higher number.
    #[must_use]
    pub fn and(self, other: Exit) -> Exit {
        self.max(other)
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}
