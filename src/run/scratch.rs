//! Folders for outputs of processes, and what killed runs left of them: they lie in memory, and so does their content.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;

/// Where outputs of workloads go: to memory where there is such a file system, so that writing them causes no
/// interrupts.
#[must_use]
pub fn place() -> PathBuf {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() }
}

/// Makes a folder that goes with the value; its name holds the runner's process number. Its owner's alone.
pub fn folder(place: &Path) -> io::Result<tempfile::TempDir> {
    tempfile::Builder::new().prefix(&format!("{PREFIX}{}-", std::process::id())).tempdir_in(place)
}

/// Removes folders of this user's runners that are no more. What cannot be removed is left for the next time.
pub fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_ours = || entry.metadata().is_ok_and(|facts| facts.is_dir() && facts.uid() == geteuid().as_raw());
        if runner(&entry.file_name().to_string_lossy()).is_some_and(is_over) && is_ours() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

const PREFIX: &str = "irqlab-";

fn runner(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split_once('-')?.0.parse().ok()
}

fn is_over(pid: u32) -> bool {
    !Path::new("/proc").join(pid.to_string()).exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_runners_that_are_over_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let mine = folder(place.path()).unwrap();
        // No kernel gives so high a number: `PID_MAX_LIMIT` is 4 Mi.
        let left = place.path().join("irqlab-4194305-abc");
        fs::create_dir(&left).unwrap();
        fs::write(left.join("w.0.stdout"), "a flood").unwrap();
        std::os::unix::fs::symlink(mine.path(), place.path().join("irqlab-4194305-link")).unwrap();
        for other in ["irqlab-notes", "irqlab-4194305", "other-4194305-abc"] {
            fs::create_dir(place.path().join(other)).unwrap();
        }
        sweep(place.path());
        assert!(!left.exists());
        assert!(mine.path().exists());
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 5);
    }
}
