//! `irqlab check`: everything that is wrong with experiment files.

use std::path::PathBuf;

use super::{Exit, files, print};
use crate::check::{self, LoadError, Options};

pub(super) fn check(paths: &[PathBuf], params: &[(String, String)]) -> Exit {
    let files = match files::experiments(paths) {
        Ok(files) => files,
        Err(error) => {
            print::error(error);
            return Exit::Usage;
        }
    };
    let options = Options { params: params.to_vec() };
    let mut exit = Exit::Fine;
    for file in files {
        match check::load(&file, &options) {
            Ok(checked) => {
                let names: Vec<&str> = checked.experiments.iter().map(|experiment| experiment.name.as_str()).collect();
                let names = if names.is_empty() { "no experiment".to_owned() } else { names.join(", ") };
                print::data(&format!("{}: {names}\n", file.display()));
            }
            Err(error) => exit = exit.and(load_error(&error)),
        }
    }
    exit
}

/// Says what is wrong with a file.
pub(super) fn load_error(error: &LoadError) -> Exit {
    match error {
        LoadError::Wrong(failed) => print::diagnostics(&failed.diagnostics, &failed.sources),
        other => print::error(other),
    }
    Exit::File
}
