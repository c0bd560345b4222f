//! `irqlab compare`: two recordings of one experiment beside each other.

use std::path::{Path, PathBuf};

use super::{Exit, files, print, report};
use crate::analysis;
use crate::report::{self as pages, Beside};

pub(super) fn compare(old: &Path, new: &Path) -> Exit {
    let loaded = |path: &Path| -> Result<_, Exit> { report::load(&one(path)?) };
    let (old, new) = match (loaded(old), loaded(new)) {
        (Ok(old), Ok(new)) => (old, new),
        (Err(exit), _) | (_, Err(exit)) => return exit,
    };
    match analysis::across(&old.0, &new.0) {
        Ok(across) => {
            let beside = Beside { old: (&old.0, &old.1), new: (&new.0, &new.1), across: &across };
            print::data(&pages::across(beside));
            Exit::Fine
        }
        Err(mismatches) => {
            for mismatch in mismatches {
                print::error(format!("not to be compared: {mismatch}"));
            }
            print::talk("two recordings can be laid beside each other only when the same was run and measured in both");
            Exit::File
        }
    }
}

/// The one recording a path leads to.
pub(super) fn one(path: &Path) -> Result<PathBuf, Exit> {
    let found = files::recordings(&[path.to_owned()]).map_err(|error| {
        print::error(error);
        Exit::Usage
    })?;
    match found.as_slice() {
        [one] => Ok(one.clone()),
        several => {
            print::error(format!("{} holds {} recordings: name one of them", path.display(), several.len()));
            Err(Exit::Usage)
        }
    }
}
