//! Reading kernel files below a root.

use std::io;
use std::path::{Path, PathBuf};

/// The host refused, or went away. `path` and the raw errno are always kept.
#[derive(Debug, thiserror::Error)]
#[error("cannot {action} {}: {source}", path.display())]
pub struct SystemError {
    /// `read`, `write`, `list`, `open` …
    pub action: &'static str,
    /// The path on the host, without the root.
    pub path: PathBuf,
    /// With the raw errno.
    pub source: io::Error,
}

impl SystemError {
    /// Joins the parts.
    pub fn new(action: &'static str, path: impl Into<PathBuf>, source: io::Error) -> Self {
        SystemError { action, path: path.into(), source }
    }

    /// The raw errno, 0 where there is none.
    pub fn errno(&self) -> i32 {
        self.source.raw_os_error().unwrap_or(0)
    }

    /// Whether the thing does not exist (ENOENT, ENODEV, ESRCH).
    pub fn is_gone(&self) -> bool {
        matches!(self.errno(), 2 | 3 | 19) || self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Read access to a host. Paths are absolute on the host (`/proc/interrupts`); implementations add the root.
pub trait Files {
    /// Whole content, read to the end in one open.
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError>;

    /// Names in a directory, sorted.
    fn list(&self, path: &str) -> Result<Vec<String>, SystemError>;

    /// Permission bits, symlinks followed (`0o644`).
    fn mode(&self, path: &str) -> Result<u32, SystemError>;

    /// Where a symlink finally leads, as an absolute host path (`/sys/devices/pci0000:00/…`).
    fn resolve(&self, path: &str) -> Result<PathBuf, SystemError>;

    /// Whether the path is there.
    fn exists(&self, path: &str) -> bool {
        self.mode(path).is_ok()
    }

    /// Content as text without the final newline; invalid UTF-8 becomes U+FFFD.
    fn read_text(&self, path: &str) -> Result<String, SystemError> {
        let text = String::from_utf8_lossy(&self.read(path)?).into_owned();
        Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
    }
}

/// A host below a folder; `/` is the running one.
#[derive(Debug, Clone)]
pub struct Root {
    root: PathBuf,
}

impl Root {
    /// The host whose files lie below `root`.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Root { root: root.into() }
    }

    /// Whether this is the running host.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }

    /// The real path of a host path.
    pub fn join(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}
