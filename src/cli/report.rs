//! `irqlab report`: reports with their pictures, their index and their pages, made again from recordings.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::{Exit, files, print};
use crate::analysis::{self, Findings};
use crate::recording::{self, Recording};
use crate::report::{self, IndexEntry};

/// What to do with a report that is not what its recording renders to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Say so.
    Check,
    /// Write it.
    Write,
}

/// What a report is written as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Format {
    /// One page that needs no other file: report.html
    Html,
    /// The numbers on stdout, as `irqlab export --format json`; nothing is written
    Json,
    /// README.md with its pictures in plots/
    Markdown,
}

pub(super) fn report(paths: &[PathBuf], format: Format, mode: Mode) -> Exit {
    let recordings = match files::recordings(paths) {
        Ok(recordings) => recordings,
        Err(error) => {
            print::error(error);
            return Exit::Usage;
        }
    };
    if format == Format::Json && mode == Mode::Check {
        print::error(
            "--format json is printed and kept nowhere, so there is nothing to --check; leave one of the two out",
        );
        return Exit::Usage;
    }
    let mut exit = Exit::Fine;
    let mut folders = BTreeSet::new();
    for path in &recordings {
        exit = exit.and(match load(path) {
            Ok((recording, findings)) if format == Format::Html => page(path, &recording, &findings, mode),
            Ok((recording, findings)) if format == Format::Json => {
                print::data(&report::export::json(&recording, &findings));
                Exit::Fine
            }
            Ok((recording, findings)) => one(path, &recording, &findings, mode),
            Err(exit) => exit,
        });
        if format == Format::Markdown {
            folders.extend(index_folder(path));
        }
    }
    folders.iter().fold(exit, |exit, folder| exit.and(index(folder, mode)))
}

/// Reads and analyses a recording, or says why not.
pub(super) fn load(path: &Path) -> Result<(Recording, Findings), Exit> {
    match recording::read(path) {
        Ok(recording) => {
            for note in &recording.notes {
                print::talk(&format!("note: {}: {note}", path.display()));
            }
            let findings =
                analysis::analyse(&recording.header, &recording.trials, &recording.resumed, recording.end.as_ref());
            Ok((recording, findings))
        }
        Err(error) => {
            print::error(error);
            Err(Exit::File)
        }
    }
}

/// Writes or checks the report and the pictures beside one recording.
pub(super) fn one(path: &Path, recording: &Recording, findings: &Findings, mode: Mode) -> Exit {
    let text = match report::markdown(recording, findings) {
        Ok(text) => text,
        Err(error) => {
            print::error(format!("{}: {error}", path.display()));
            return Exit::File;
        }
    };
    let pictures = report::pictures(recording, findings);
    if mode == Mode::Check {
        let errors = report::check_pictures(path, &pictures);
        return checked(report::check(path, &text).err().into_iter().chain(errors));
    }
    // The pictures first, so that a report never refers to one that is not there.
    written(path, report::write_pictures(path, &pictures).and_then(|()| report::write(path, &text)))
}

/// Writes or checks the page beside one recording.
fn page(path: &Path, recording: &Recording, findings: &Findings, mode: Mode) -> Exit {
    match (report::html(recording, findings), mode) {
        (Err(error), _) => {
            print::error(format!("{}: {error}", path.display()));
            Exit::File
        }
        (Ok(text), Mode::Check) => checked(report::check_page(path, &text).err()),
        (Ok(text), Mode::Write) => written(path, report::write_page(path, &text)),
    }
}

fn checked(errors: impl IntoIterator<Item = report::CheckError>) -> Exit {
    errors.into_iter().fold(Exit::Fine, |_, error| {
        print::error(error);
        Exit::Failed
    })
}

fn written(recording: &Path, result: std::io::Result<PathBuf>) -> Exit {
    match result {
        Ok(path) => {
            print::data(&format!("{}\n", path.display()));
            Exit::Fine
        }
        Err(error) => {
            print::error(format!("cannot write the report beside {}: {error}", recording.display()));
            Exit::Run
        }
    }
}

/// The folder whose index a recording belongs into: `reports` of `reports/NAME/recording.jsonl`.
fn index_folder(recording: &Path) -> Option<PathBuf> {
    let folder = recording.parent()?.parent()?;
    Some(if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_owned() })
}

/// Writes or checks the index of a folder of reports. A README.md that is not such an index is somebody's own and
/// is left alone.
pub(super) fn index(folder: &Path, mode: Mode) -> Exit {
    let path = folder.join("README.md");
    let present = std::fs::read_to_string(&path).ok();
    if present.as_ref().is_some_and(|text| !report::is_index(text)) {
        print::talk(&format!("note: {} is not an index of reports and is left alone", path.display()));
        return Exit::Fine;
    }
    let text = match entries(folder) {
        Ok(entries) => report::index(&entries),
        Err(exit) => return exit,
    };
    if present.as_ref() == Some(&text) {
        return Exit::Fine;
    }
    if mode == Mode::Check {
        print::error(format!("{} is not the index of its reports (`irqlab report` remakes it)", path.display()));
        return Exit::Failed;
    }
    match report::write_index(folder, &text) {
        Ok(()) => Exit::Fine,
        Err(error) => {
            print::error(format!("cannot write {}: {error}", path.display()));
            Exit::Run
        }
    }
}

fn entries(folder: &Path) -> Result<Vec<IndexEntry>, Exit> {
    let unreadable = |error: std::io::Error| {
        print::error(format!("cannot list {}: {error}", folder.display()));
        Exit::Run
    };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let path = entry.path().join("recording.jsonl");
        if path.is_file() {
            let (recording, findings) = load(&path)?;
            entries.push(report::index_entry(&entry.file_name().to_string_lossy(), &recording, &findings));
        }
    }
    Ok(entries)
}
