//! One runner on a host, whatever their state directories: a second one would take the first one's masks for the
//! host's own and put those back.

use std::fs::File;
use std::path::{Path, PathBuf};

use nix::fcntl::Flock;

use super::System;
use super::journal::{JOURNAL, OpenError, lock};

/// The lock of the running host; gone with the boot, as what it guards. Only root can change the host and write here.
const PATH: &str = "/run/irqlab.lock";

/// Held until the end; the kernel gives it up with the process.
pub(super) struct HostLock(#[expect(dead_code, reason = "held, not read")] Option<Flock<File>>);

impl HostLock {
    /// Takes it, where `system` is the running host and this is root. Fails where another runner has it, and where
    /// the last holder left a journal in another state directory.
    pub(super) fn take(system: &dyn System, state_dir: &Path) -> Result<Self, OpenError> {
        if !system.is_live() || !system.is_root() {
            return Ok(HostLock(None));
        }
        Self::take_at(Path::new(PATH), state_dir)
    }

    fn take_at(path: &Path, state_dir: &Path) -> Result<Self, OpenError> {
        let ours = std::path::absolute(state_dir).unwrap_or_else(|_| state_dir.to_owned());
        let (held, theirs) = lock(path, &ours.display().to_string())?;
        let theirs = PathBuf::from(theirs);
        if theirs != ours && theirs.join(JOURNAL).exists() {
            // Still named for the next one who asks.
            let _ = lock_note(&held, &theirs);
            return Err(OpenError::UnfinishedElsewhere { directory: theirs });
        }
        Ok(HostLock(Some(held)))
    }
}

fn lock_note(mut held: &File, directory: &Path) -> std::io::Result<()> {
    use std::io::{Seek as _, Write as _};
    held.set_len(0)?;
    held.rewind()?;
    held.write_all(format!("{}\n{}\n", std::process::id(), directory.display()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_runner_is_refused_whatever_its_state_directory() {
        let folder = tempfile::tempdir().unwrap();
        let (path, a, b) = (folder.path().join("lock"), folder.path().join("a"), folder.path().join("b"));
        let first = HostLock::take_at(&path, &a).unwrap();
        let second = HostLock::take_at(&path, &b).map(|_| ()).unwrap_err();
        assert!(matches!(second, OpenError::Locked { pid } if pid == Some(std::process::id())), "{second}");
        drop(first);
        assert!(HostLock::take_at(&path, &b).is_ok());
    }

    #[test]
    fn a_journal_left_in_another_state_directory_is_named_until_it_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let (path, a, b) = (folder.path().join("lock"), folder.path().join("a"), folder.path().join("b"));
        std::fs::create_dir(&a).unwrap();
        std::fs::write(a.join(JOURNAL), "").unwrap();
        drop(HostLock::take_at(&path, &a).unwrap());
        for _ in 0..2 {
            let refused = HostLock::take_at(&path, &b).map(|_| ()).unwrap_err();
            assert!(matches!(&refused, OpenError::UnfinishedElsewhere { directory } if *directory == a), "{refused}");
        }
        assert!(HostLock::take_at(&path, &a).is_ok(), "its own directory is for it to deal with");
        std::fs::remove_file(a.join(JOURNAL)).unwrap();
        assert!(HostLock::take_at(&path, &b).is_ok());
    }
}
