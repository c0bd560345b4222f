//! `irqlab irqs`, `host` and `capture`: what a host is, shown and kept.

use std::io;
use std::path::Path;

use super::{Exit, capture, host, irqs, print, select};
use crate::host::files::Root;

/// How facts are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// For programs.
    Json,
    /// For people.
    Text,
}

pub(super) fn irqs(root: &Path, options: irqs::Options) -> Exit {
    let root = match select::root(root) {
        Ok(root) => root,
        Err(exit) => return exit,
    };
    match irqs::irqs(&root, options) {
        Ok(text) => {
            print::data(&text);
            Exit::Fine
        }
        Err(error) => {
            print::error(error);
            Exit::Host
        }
    }
}

pub(super) fn host(root: &Path, form: Form) -> Exit {
    let root = match select::root(root) {
        Ok(root) => root,
        Err(exit) => return exit,
    };
    let text = match form {
        Form::Json => host::host_json(&root),
        Form::Text => Ok(host::host(&root)),
    };
    match text {
        Ok(text) => {
            print::data(&text);
            Exit::Fine
        }
        Err(error) => {
            print::error(error);
            Exit::Run
        }
    }
}

pub(super) fn capture(directory: &Path) -> Exit {
    match capture::capture(&Root::new("/"), directory) {
        Ok(text) => {
            print::data(&text);
            Exit::Fine
        }
        Err(error) => {
            let usage = error.source.kind() == io::ErrorKind::AlreadyExists;
            print::error(error);
            if usage { Exit::Usage } else { Exit::Run }
        }
    }
}
