//! `irqlab capture`: says what was copied.

use std::path::Path;

use super::table::printable;
use crate::host::capture::{Captured, capture as copy};
use crate::host::files::{Files, SystemError};

/// Captures the host into `folder` and renders what was done.
pub fn capture(files: &dyn Files, folder: &Path) -> Result<String, SystemError> {
    let Captured { files, links, skipped } = copy(files, folder)?;
    let folder = printable(&folder.display().to_string());
    let mut text = format!("{folder}: {files} files and {links} links; use it with `--root {folder}`\n");
    for what in skipped {
        text.extend(["left out: ", &printable(&what), "\n"]);
    }
    Ok(text)
}
