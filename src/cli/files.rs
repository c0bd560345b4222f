//! Paths on the command line become files, in a stable order.

use std::io;
use std::path::{Path, PathBuf};

/// A path that leads to nothing usable.
#[derive(Debug, thiserror::Error)]
pub(super) enum PathError {
    /// A folder without a file of the kind.
    #[error("no {kind} below {}", path.display())]
    Empty {
        /// `.exp file`
        kind: &'static str,
        /// The folder.
        path: PathBuf,
    },
    /// Cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Unreadable {
        /// The path.
        path: PathBuf,
        /// With errno.
        source: io::Error,
    },
}

/// The `.exp` files named, and those below named folders; hidden folders are passed over.
pub(super) fn experiments(paths: &[PathBuf]) -> Result<Vec<PathBuf>, PathError> {
    collect(paths, ".exp file", &|path| path.extension().is_some_and(|extension| extension == "exp"))
}

/// The recordings named, and those below named folders.
pub(super) fn recordings(paths: &[PathBuf]) -> Result<Vec<PathBuf>, PathError> {
    collect(paths, "recording.jsonl", &|path| path.file_name().is_some_and(|name| name == "recording.jsonl"))
}

fn collect(paths: &[PathBuf], kind: &'static str, wanted: &dyn Fn(&Path) -> bool) -> Result<Vec<PathBuf>, PathError> {
    let mut files = Vec::new();
    for path in paths {
        let metadata = std::fs::metadata(path);
        let metadata = metadata.map_err(|source| PathError::Unreadable { path: path.clone(), source })?;
        if !metadata.is_dir() {
            files.push(path.clone());
            continue;
        }
        let before = files.len();
        walk(path, wanted, &mut files)?;
        if files.len() == before {
            return Err(PathError::Empty { kind, path: path.clone() });
        }
    }
    Ok(files)
}

fn walk(folder: &Path, wanted: &dyn Fn(&Path) -> bool, files: &mut Vec<PathBuf>) -> Result<(), PathError> {
    let unreadable = |source| PathError::Unreadable { path: folder.to_owned(), source };
    let entries = std::fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(unreadable)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        // A symlinked folder may lead back up; only real ones are entered.
        if entry.file_type().map_err(unreadable)?.is_dir() {
            if !hidden {
                walk(&path, wanted, files)?;
            }
        } else if wanted(&path) && path.is_file() {
            files.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pipe_in_a_folder_is_no_experiment() {
        let folder = tempfile::tempdir().unwrap();
        // Whoever opened it would wait for a writer for ever.
        nix::unistd::mkfifo(&folder.path().join("pipe.exp"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        let file = folder.path().join("real.exp");
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink("real.exp", folder.path().join("link.exp")).unwrap();
        assert_eq!(experiments(&[folder.path().to_owned()]).unwrap(), [folder.path().join("link.exp"), file]);
    }
}
