//! `irqlab fmt`: experiment files in their canonical form.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::{Exit, files, print};
use crate::source::{self, Sources};
use crate::syntax;

/// What to do with a file that is not in canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Name it.
    Check,
    /// Rewrite it.
    Write,
}

pub(super) fn fmt(paths: &[PathBuf], mode: Mode) -> Exit {
    match files::experiments(paths) {
        Ok(files) => files.iter().fold(Exit::Fine, |exit, file| exit.and(one(file, mode))),
        Err(error) => {
            print::error(error);
            Exit::Usage
        }
    }
}

fn one(path: &Path, mode: Mode) -> Exit {
    let text = match source::read(path) {
        Ok(text) => text,
        Err(error) => {
            print::error(format!("cannot read {}: {error}", path.display()));
            return Exit::File;
        }
    };
    let mut sources = Sources::default();
    let id = sources.add(path, text.as_str());
    let tree = match syntax::parse(&sources, id) {
        Ok(tree) => tree,
        Err(diagnostics) => {
            print::diagnostics(&diagnostics, &sources);
            return Exit::File;
        }
    };
    let formatted = syntax::format(&tree, &text);
    if formatted == text {
        return Exit::Fine;
    }
    print::data(&format!("{}\n", path.display()));
    if mode == Mode::Check {
        return Exit::Failed;
    }
    match replace(path, &formatted) {
        Ok(()) => Exit::Fine,
        Err(error) => {
            print::error(format!("cannot write {}: {error}", path.display()));
            Exit::File
        }
    }
}

/// Replaces a file in one step, so that no reader and no crash ever sees half of it; keeps its permissions.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let path = path.canonicalize()?;
    let permissions = std::fs::metadata(&path)?.permissions();
    let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
    file.write_all(text.as_bytes())?;
    file.as_file().set_permissions(permissions)?;
    file.as_file().sync_all()?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
