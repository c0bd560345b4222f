//! What host and guest tell each other through the folder they share. Both ends are the same program of the same
//! version; what the guest measured goes back as an ordinary recording.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::diagnostic::{Diagnostic, Kind};
use crate::recording::PlannedTrial;
use crate::source::{FileId, Span};

/// The program, for the guest to run.
pub(super) const PROGRAM: &str = "irqlab";

/// An [`Order`].
pub(super) const ORDER: &str = "order.json";

/// Appears when the guest's first process of ours runs.
pub(super) const ALIVE: &str = "alive";

/// A line `NUMBER ATTEMPT` for each trial that was begun.
pub(super) const STARTED: &str = "started";

/// The guest's recording: facts of the machine and treatments bound to it, then its trials.
pub(super) const RECORDING: &str = "recording.jsonl";

/// An [`Ended`]: the guest's last word.
pub(super) const ENDED: &str = "ended.json";

/// How a guest ends that could not write its last word.
pub(super) const CANNOT_WRITE: u8 = 65;

/// What a guest is to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Order {
    /// Texts of the experiment's file and of what it uses: `(path, text)`, the named file first.
    pub sources: Vec<(PathBuf, String)>,
    /// Which of the file's experiments.
    pub experiment: String,
    /// Parameters the caller gave.
    pub params: Vec<(String, String)>,
    /// The seed used.
    pub seed: u64,
    /// The runner's working directory on the host, for workloads with relative paths.
    pub directory: PathBuf,
    /// Trials to run, in order; their treatments by their index in the whole design.
    pub trials: Vec<PlannedTrial>,
    /// How often each was tried before this run.
    pub attempts: BTreeMap<u32, u32>,
    /// How often each was tried by this run, in machines that are gone.
    pub tries: BTreeMap<u32, u32>,
}

/// How a guest ended that could still say so.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) enum Ended {
    /// Every trial was run.
    Complete,
    /// Something stopped it in the middle.
    Failed(String),
    /// The experiment cannot be run on this machine: nothing was.
    Impossible(Vec<Problem>),
    /// A setting was refused in every try of a trial.
    Refused {
        /// In plain words.
        setting: String,
        /// Errno and meaning.
        detail: String,
    },
    /// Processes that not even SIGKILL ends; another machine is free of them.
    Stuck(String),
}

/// A diagnostic on its way from the guest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Problem {
    file: u16,
    start: usize,
    end: usize,
    message: String,
    help: String,
}

impl From<&Diagnostic> for Problem {
    fn from(diagnostic: &Diagnostic) -> Self {
        let Span { file: FileId(file), start, end } = diagnostic.span;
        let help = diagnostic.kind.help().unwrap_or_default();
        Problem { file, start, end, message: diagnostic.kind.message(), help }
    }
}

impl From<Problem> for Diagnostic {
    fn from(problem: Problem) -> Self {
        let span = Span { file: FileId(problem.file), start: problem.start, end: problem.end };
        span.error(Kind::HostCannot { message: problem.message, help: problem.help })
    }
}

/// Writes a value whole: the other side never reads half of it.
pub(super) fn write(path: &Path, value: &impl Serialize) -> io::Result<()> {
    let temporary = path.with_extension("partial");
    let mut file = File::create(&temporary)?;
    file.write_all(&serde_json::to_vec(value)?)?;
    file.sync_all()?;
    std::fs::rename(temporary, path)
}

/// Reads a value; `None` where there is none yet.
pub(super) fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<Option<T>> {
    match File::open(path) {
        Ok(file) => Ok(Some(serde_json::from_reader(BufReader::new(file))?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_says_comes_out_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ENDED);
        assert_eq!(read::<Ended>(&path).unwrap(), None);
        let span = Span { file: FileId(1), start: 4, end: 9 };
        let kind = Kind::HostCannot { message: "no irq 36".to_owned(), help: "`irqlab irqs` lists them".to_owned() };
        let said = span.error(kind);
        write(&path, &Ended::Impossible(vec![Problem::from(&said)])).unwrap();
        let Some(Ended::Impossible(problems)) = read(&path).unwrap() else { panic!("another word") };
        let heard: Vec<Diagnostic> = problems.into_iter().map(Into::into).collect();
        assert_eq!(heard, [said]);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing half-written is left");
    }
}
