//! Reads an experiment file and what it uses. The one place of `check` that opens files.

use std::collections::VecDeque;
use std::io;
use std::path::{Component, Path, PathBuf};

use crate::design::Experiment;
use crate::diagnostic::{Diagnostic, Meaning, Thing};
use crate::source::{self, FileId, Sources};
use crate::syntax::ast::{self, Item, Text, TextPart};

use super::Options;

/// A file that is right.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The texts, the named file first.
    pub sources: Sources,
    /// Its experiments in file order.
    pub experiments: Vec<Experiment>,
}

/// A file that is wrong.
#[derive(Debug, Clone)]
pub struct Failed {
    /// The texts the diagnostics point into.
    pub sources: Sources,
    /// Everything that is wrong, in file order.
    pub diagnostics: Vec<Diagnostic>,
}

/// Why a file gave no experiments.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// It is not UTF-8.
    #[error("{}: the file is not UTF-8 text", path.display())]
    NotText {
        /// As the user named it.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("{}: {source}", path.display())]
    Unreadable {
        /// As the user named it.
        path: PathBuf,
        /// With the errno.
        source: io::Error,
    },
    /// It, or a file it uses, is wrong.
    #[error("{} errors in the file", .0.diagnostics.len())]
    Wrong(Failed),
}

/// Reads, parses and checks the file at `path` with all files it uses.
pub fn load(path: &Path, options: &Options) -> Result<Checked, LoadError> {
    let mut sources = Sources::default();
    let text = source::read(path).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidData => LoadError::NotText { path: path.to_owned() },
        _ => LoadError::Unreadable { path: path.to_owned(), source },
    })?;
    let named = sources.add(path, text);
    let (files, mut diagnostics) = parse_all(&mut sources, named);
    if diagnostics.is_empty() {
        match super::check(&sources, &files, options) {
            Ok(experiments) => return Ok(Checked { sources, experiments }),
            Err(faults) => diagnostics = faults,
        }
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    Err(LoadError::Wrong(Failed { sources, diagnostics }))
}

/// Parses the named file and, breadth first, every file used from there, each once.
fn parse_all(sources: &mut Sources, named: FileId) -> (Vec<(FileId, ast::File)>, Vec<Diagnostic>) {
    let (mut files, mut diagnostics) = (Vec::new(), Vec::new());
    let mut waiting = VecDeque::from([(named, vec![normal(&sources.get(named).path)])]);
    while let Some((file, chain)) = waiting.pop_front() {
        let tree = match crate::syntax::parse(sources, file) {
            Ok(tree) => tree,
            Err(faults) => {
                diagnostics.extend(faults);
                continue;
            }
        };
        let folder = sources.get(file).path.parent().map(Path::to_owned).unwrap_or_default();
        let mut here: Vec<PathBuf> = Vec::new();
        for text in tree.items.iter().filter_map(as_use) {
            match used(sources, text, &folder, (&chain, &mut here)) {
                Ok(Some((file, path))) => waiting.push_back((file, [chain.clone(), vec![path]].concat())),
                Ok(None) => {}
                Err(meaning) => diagnostics.push(text.span.error(meaning)),
            }
        }
        files.push((file, tree));
    }
    (files, diagnostics)
}

fn as_use(item: &Item) -> Option<&Text> {
    match item {
        Item::Use(text) => Some(text),
        Item::Experiment(_) | Item::Lab(_) | Item::Policy(_) | Item::Workload(_) => None,
    }
}

/// Reads a used file; `None` when another file brought it in already. `chain` is the way here, `here` what this file
/// named before.
fn used(
    sources: &mut Sources,
    text: &Text,
    folder: &Path,
    (chain, here): (&[PathBuf], &mut Vec<PathBuf>),
) -> Result<Option<(FileId, PathBuf)>, Meaning> {
    let mut written = String::new();
    for part in &text.parts {
        match part {
            TextPart::Literal(literal) => written.push_str(literal),
            TextPart::Reference(name) => {
                let name = name.value.clone();
                return Err(Meaning::Unknown { thing: Thing::Reference, name, near: None, known: Vec::new() });
            }
        }
    }
    let path = normal(&folder.join(&written));
    if here.contains(&path) {
        return Err(Meaning::Duplicate { thing: Thing::File, name: written });
    }
    if chain.contains(&path) {
        return Err(Meaning::Cycle { thing: Thing::File, name: written });
    }
    here.push(path.clone());
    if sources.iter().any(|source| normal(&source.path) == path) {
        return Ok(None);
    }
    let missing = |reason: String| Meaning::MissingFile { path: path.display().to_string(), reason };
    let text = source::read(&path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => missing("the file is not UTF-8 text".to_owned()),
        _ => missing(error.to_string()),
    })?;
    Ok(Some((sources.add(&path, text), path)))
}

/// A path without `.` and, where a folder stands before it, `..`: enough to know a file again that is named twice.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir if matches!(normal.components().next_back(), Some(Component::Normal(_))) => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}
