//! `irqlab export`: a recording in the format of another tool, on stdout.

use std::path::Path;

use super::{Exit, compare, print, report};
use crate::report::export;

/// The formats, as on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// Findings and values
    Json,
    /// One line per trial and metric
    Csv,
    /// As `hyperfine --export-json` writes it: wall clock times
    Hyperfine,
    /// Lines of Go benchmarks, for benchstat
    Benchstat,
    /// Expectations as test cases
    Junit,
}

pub(super) fn export(path: &Path, format: Format) -> Exit {
    let loaded = compare::one(path).and_then(|path| report::load(&path));
    let (recording, findings) = match loaded {
        Ok(loaded) => loaded,
        Err(exit) => return exit,
    };
    let text = match format {
        Format::Json => export::json(&recording, &findings),
        Format::Csv => export::csv(&recording, &findings),
        Format::Hyperfine => {
            let Some(text) = export::hyperfine(&recording) else {
                print::error("there is no valid trial, so no wall clock time to export (use `csv` or `json`)");
                return Exit::File;
            };
            text
        }
        Format::Benchstat => export::benchstat(&recording, &findings),
        Format::Junit => export::junit(&recording, &findings),
    };
    print::data(&text);
    Exit::Fine
}
