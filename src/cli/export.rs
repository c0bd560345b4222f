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
    print::data(&match format {
        Format::Json => export::json(&recording, &findings),
        Format::Csv => export::csv(&recording, &findings),
        Format::Hyperfine => export::hyperfine(&recording),
        Format::Benchstat => export::benchstat(&recording, &findings),
        Format::Junit => export::junit(&recording, &findings),
    });
    Exit::Fine
}
