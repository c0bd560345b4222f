//! Reads an experiment file and what it uses. The one place of `check` that opens files.

use std::collections::VecDeque;
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

use crate::design::Experiment;
use crate::diagnostic::{Diagnostic, Meaning, Thing};
use crate::source::{self, FileId, Sources};
use crate::syntax::ast::{self, ClauseKind, Item, Recorded, Text, TextPart, Value};

use super::Options;

/// Largest file of recorded numbers: its text and its numbers fit the first line of a recording.
const MOST_DATA_BYTES: u64 = 4 << 20;

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

/// Where texts come from.
#[derive(Debug, Clone, Copy)]
enum Texts<'a> {
    /// The files themselves.
    Disk,
    /// Texts that an earlier load read.
    Given(&'a Sources),
}

impl Texts<'_> {
    fn read(self, path: &Path) -> io::Result<String> {
        match self {
            Texts::Disk => source::read(path),
            Texts::Given(sources) => match sources.find(path) {
                Some(file) => Ok(sources.get(file).text.clone()),
                None => Err(io::ErrorKind::NotFound.into()),
            },
        }
    }
}

/// Reads, parses and checks the file at `path` with all files it uses.
pub fn load(path: &Path, options: &Options) -> Result<Checked, LoadError> {
    load_from(Texts::Disk, path, options)
}

/// Parses and checks texts that an earlier [`load`] read, the named file first. Opens no file.
pub fn load_texts(texts: &Sources, options: &Options) -> Result<Checked, LoadError> {
    let named = texts.iter().next().map(|source| source.path.clone()).unwrap_or_default();
    load_from(Texts::Given(texts), &named, options)
}

fn load_from(texts: Texts<'_>, path: &Path, options: &Options) -> Result<Checked, LoadError> {
    let mut sources = Sources::default();
    let text = texts.read(path).map_err(|source| match source.kind() {
        io::ErrorKind::InvalidData => LoadError::NotText { path: path.to_owned() },
        _ => LoadError::Unreadable { path: path.to_owned(), source },
    })?;
    let named = sources.add(path, text);
    let (files, mut diagnostics) = parse_all(texts, &mut sources, named);
    if let Some((_, tree)) = files.first() {
        diagnostics.extend(read_data(texts, &mut sources, (tree, options)));
    }
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
fn parse_all(texts: Texts<'_>, sources: &mut Sources, named: FileId) -> (Vec<(FileId, ast::File)>, Vec<Diagnostic>) {
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
            match used((texts, sources), text, &folder, (&chain, &mut here)) {
                Ok(Some((file, path))) => waiting.push_back((file, [chain.clone(), vec![path]].concat())),
                Ok(None) => {}
                Err(meaning) => diagnostics.push(text.span.error(meaning)),
            }
        }
        files.push((file, tree));
    }
    (files, diagnostics)
}

/// Reads the files that `recorded from` names. A parameter in a name has the caller's value, or the one in its clause.
fn read_data(texts: Texts<'_>, sources: &mut Sources, (tree, options): (&ast::File, &Options)) -> Vec<Diagnostic> {
    let mut faults = Vec::new();
    let experiments = tree.items.iter().filter_map(super::as_experiment);
    for experiment in experiments {
        for clause in &experiment.clauses {
            let ClauseKind::Recorded(Recorded::From(text)) = &clause.kind else { continue };
            // What is wrong with the name itself is told when the experiment is checked.
            let Some(written) = plain(text, experiment, options) else { continue };
            if data_file(sources, text.span.file, &written).is_some() {
                continue;
            }
            let folder = sources.get(text.span.file).path.parent().map(Path::to_owned).unwrap_or_default();
            let path = normal(&folder.join(&written));
            let content = match texts {
                Texts::Disk => data(&folder, &written),
                Texts::Given(_) => texts.read(&path).map_err(|error| error.to_string()),
            };
            match content {
                Ok(content) => {
                    sources.add(path, content);
                }
                Err(reason) => faults.push(text.span.error(Meaning::MissingFile { path: written, reason })),
            }
        }
    }
    faults
}

fn plain(text: &Text, experiment: &ast::Experiment, options: &Options) -> Option<String> {
    let given =
        |name: &str| options.params.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.clone());
    let declared = |name: &str| {
        experiment.clauses.iter().find_map(|clause| match &clause.kind {
            ClauseKind::Param { name: param, value: Value::Text(text) } if param.value == name => {
                text.parts.iter().map(literal).collect::<Option<String>>()
            }
            ClauseKind::Param { name: param, value: Value::Word(word) } if param.value == name => {
                Some(word.value.clone())
            }
            _ => None,
        })
    };
    let part = |part: &TextPart| match part {
        TextPart::Literal(literal) => Some(literal.clone()),
        TextPart::Reference(name) => given(&name.value).or_else(|| declared(&name.value)),
    };
    text.parts.iter().map(part).collect::<Option<String>>().filter(|text| !text.trim().is_empty())
}

fn literal(part: &TextPart) -> Option<String> {
    match part {
        TextPart::Literal(literal) => Some(literal.clone()),
        TextPart::Reference(_) => None,
    }
}

/// The file of recorded numbers that a file names, where it was read.
pub(super) fn data_file(sources: &Sources, from: FileId, written: &str) -> Option<FileId> {
    let folder = sources.get(from).path.parent().map(Path::to_owned).unwrap_or_default();
    sources.find(&normal(&folder.join(written)))
}

/// The text of a data file below `folder`, or why there is none. Files elsewhere are not read: their text goes into a
/// recording that is meant to be published.
fn data(folder: &Path, written: &str) -> Result<String, String> {
    let inside = Path::new(written).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    let outside = || "it is not below the folder of this file".to_owned();
    if !inside {
        return Err(outside());
    }
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let error = |error: io::Error| error.to_string();
    let path = folder.join(written).canonicalize().map_err(error)?;
    if !path.starts_with(folder.canonicalize().map_err(error)?) {
        return Err(outside());
    }
    let metadata = std::fs::metadata(&path).map_err(error)?;
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if metadata.len() > MOST_DATA_BYTES {
        return Err(format!("it is larger than {} MiB", MOST_DATA_BYTES >> 20));
    }
    let mut bytes = Vec::new();
    let file = std::fs::File::open(&path).map_err(error)?;
    file.take(MOST_DATA_BYTES).read_to_end(&mut bytes).map_err(error)?;
    String::from_utf8(bytes).map_err(|_| "the file is not UTF-8 text".to_owned())
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
    (texts, sources): (Texts<'_>, &mut Sources),
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
    let text = texts.read(&path).map_err(|error| match error.kind() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_checked_again_where_their_files_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let main = folder.path().join("main.exp");
        let vary = "vary side { x { sysctl kernel.a=1 }; y { sysctl kernel.a=2 } }";
        let text = format!(
            "use \"parts/shared.exp\"\nexperiment a {{ {vary}; workload w; measure w.real; repeat 5 }}\n\
             experiment b {{ vary side in x, y; recorded from \"b.csv\" }}\n"
        );
        std::fs::write(&main, text).unwrap();
        std::fs::create_dir(folder.path().join("parts")).unwrap();
        std::fs::write(folder.path().join("parts/shared.exp"), "workload w { run \"true\" }\n").unwrap();
        let data = "side,metric,unit,better,value\nx,w.real,s,lower_is_better,1\ny,w.real,s,lower_is_better,2\n";
        std::fs::write(folder.path().join("b.csv"), data).unwrap();
        let loaded = load(&main, &Options::default()).unwrap();
        assert_eq!(loaded.sources.iter().count(), 3);
        drop(folder);
        let again = load_texts(&loaded.sources, &Options::default()).unwrap();
        assert_eq!(again.sources, loaded.sources);
        assert_eq!(again.experiments, loaded.experiments);
    }
}
