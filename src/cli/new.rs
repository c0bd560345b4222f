//! `irqlab new`: a commented starter file.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use super::{Exit, print};

/// The starter file.
const STARTER: &str = include_str!("starter.exp");

pub(super) fn new(file: &Path) -> Exit {
    if file == Path::new("-") {
        print::data(STARTER);
        return Exit::Fine;
    }
    let written = OpenOptions::new().write(true).create_new(true).open(file);
    match written.and_then(|mut written| written.write_all(STARTER.as_bytes())) {
        Ok(()) => {
            print::talk(&format!("{} written; next: irqlab check {0}", file.display()));
            Exit::Fine
        }
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            print::error(format!("{} exists and is not overwritten; name another file", file.display()));
            Exit::Usage
        }
        Err(error) => {
            print::error(format!("cannot write {}: {error}", file.display()));
            Exit::Usage
        }
    }
}
