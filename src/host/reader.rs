//! Reads single facts: absent ones are `None`, those that could not be read or make no sense are named.

use std::cell::RefCell;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;

use super::files::{Files, SystemError};
use crate::cpu_set::CpuSet;

/// Reads facts from a host and collects what went wrong.
pub(super) struct Reader<'a> {
    pub(super) files: &'a dyn Files,
    unreadable: RefCell<Vec<String>>,
}

const ENOTDIR: i32 = 20;

impl<'a> Reader<'a> {
    pub(super) fn new(files: &'a dyn Files) -> Self {
        Reader { files, unreadable: RefCell::new(Vec::new()) }
    }

    /// What could not be read so far, with the reason.
    pub(super) fn into_unreadable(self) -> Vec<String> {
        self.unreadable.into_inner()
    }

    /// Notes something that could not be read.
    pub(super) fn note(&self, what: String) {
        self.unreadable.borrow_mut().push(what);
    }

    /// The whole content.
    pub(super) fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        self.keep(self.files.read(path))
    }

    /// Content without blanks at its ends; `None` also where nothing is left.
    pub(super) fn text(&self, path: &str) -> Option<String> {
        let text = self.keep(self.files.read_text(path))?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    }

    /// A number; `None` for -1, which kernel files use for "none".
    pub(super) fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        let text = self.text(path).filter(|text| text != "-1")?;
        let number = text.parse().ok();
        if number.is_none() {
            self.note(format!("{path}: `{text}` is not a number"));
        }
        number
    }

    /// A file in list form. `(null)` is read as the empty set: kernels have shown it for `nohz_full`.
    pub(super) fn cpu_list(&self, path: &str) -> Option<CpuSet> {
        let text = self.keep(self.files.read_text(path))?;
        let text = if text.trim() == "(null)" { "" } else { &text };
        self.believe(path, CpuSet::parse_list(text))
    }

    /// A file in mask form.
    pub(super) fn cpu_mask(&self, path: &str) -> Option<CpuSet> {
        self.believe(path, CpuSet::parse_mask(&self.text(path)?))
    }

    /// Names in a directory; none where it does not exist.
    pub(super) fn list(&self, path: &str) -> Vec<String> {
        self.keep(self.files.list(path)).unwrap_or_default()
    }

    /// Numbers among the names in a directory, or behind `prefix` of them, ascending.
    pub(super) fn numbers(&self, path: &str, prefix: &str) -> Vec<u32> {
        let names = self.list(path);
        let digits = names.iter().filter_map(|name| name.strip_prefix(prefix));
        let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let mut numbers: Vec<u32> = digits.filter_map(|digits| digits.parse().ok()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Where a symlink leads.
    pub(super) fn resolve(&self, path: &str) -> Option<PathBuf> {
        self.keep(self.files.resolve(path))
    }

    fn keep<T>(&self, read: Result<T, SystemError>) -> Option<T> {
        match read {
            Ok(value) => Some(value),
            Err(error) if error.is_gone() || error.errno() == ENOTDIR => None,
            Err(error) => {
                self.note(error.to_string());
                None
            }
        }
    }

    fn believe<T, E: Display>(&self, path: &str, parsed: Result<T, E>) -> Option<T> {
        match parsed {
            Ok(value) => Some(value),
            Err(error) => {
                self.note(format!("{path}: {error}"));
                None
            }
        }
    }
}
