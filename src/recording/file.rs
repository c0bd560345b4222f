//! Recordings on disk: JSON Lines, one line written and synced at a time. Knows nothing of how a trial is run.
//!
//! What is read is hostile until checked: every index and every list of counters fits its neighbours before a
//! [`Recording`] is given out, so that analysis never meets one that does not.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::{
    Boot, BootAsked, Decision, Design, End, FORMAT, Header, HostFacts, Line, PlannedTrial, PublishedRow,
    PublishedValues, Trial,
};

/// Longest line a reader takes: far above a trial of the largest host, small enough to hold in memory.
pub const MAX_LINE_BYTES: u64 = 16 << 20;

/// A recording as read.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    /// First line.
    pub header: Header,
    /// Trials in the order they ran, repetitions and invalid ones among them.
    pub trials: Vec<Trial>,
    /// Each resumption: time (RFC 3339, UTC) and host facts.
    pub resumed: Vec<(String, HostFacts)>,
    /// Boots of the host asked for since the last one that was recorded.
    pub asked: Vec<BootAsked>,
    /// How the run ended; `None` when it was cut off, or resumed and not yet over.
    pub end: Option<End>,
    /// What the reader had to leave out.
    pub notes: Vec<String>,
    /// Length of the readable part, bytes. A resumed run goes on there.
    pub length: u64,
}

impl Recording {
    /// Planned trials without a valid run, in planned order.
    pub fn remaining(&self) -> Vec<PlannedTrial> {
        let done: BTreeSet<u32> =
            self.trials.iter().filter(|trial| trial.faults.is_empty()).map(|t| t.number).collect();
        self.header.order.iter().filter(|planned| !done.contains(&planned.number)).copied().collect()
    }

    /// How often each planned trial was tried.
    pub fn attempts(&self) -> BTreeMap<u32, u32> {
        let mut attempts = BTreeMap::new();
        for trial in &self.trials {
            *attempts.entry(trial.number).or_insert(0) += 1;
        }
        attempts
    }

    /// What in `header` is not as it was recorded, in plain words; a run resumes only when this is empty. Host
    /// facts and the tool's version may differ: they are recorded again.
    pub fn differences(&self, header: &Header) -> Vec<String> {
        let mut differences = source_differences(&self.header.sources, &header.sources);
        differences.extend(design_differences(&self.header.design, &header.design));
        if differences.is_empty() && !self.header.order.starts_with(&header.order) {
            differences.push("the order of trials".to_owned());
        }
        differences
    }
}

fn source_differences(recorded: &[(String, String)], now: &[(String, String)]) -> Vec<String> {
    let text_of = |sources: &[(String, String)], path: &str| {
        sources.iter().find(|(known, _)| known == path).map(|(_, text)| text.clone())
    };
    let paths: BTreeSet<&str> = recorded.iter().chain(now).map(|(path, _)| path.as_str()).collect();
    paths
        .into_iter()
        .filter_map(|path| difference_of_texts(path, text_of(recorded, path), text_of(now, path)))
        .collect()
}

fn difference_of_texts(path: &str, recorded: Option<String>, now: Option<String>) -> Option<String> {
    match (recorded, now) {
        (Some(recorded), Some(now)) if recorded == now => None,
        (Some(recorded), Some(now)) => {
            let line = recorded.lines().zip(now.lines()).take_while(|(recorded, now)| recorded == now).count() + 1;
            Some(format!("the text of `{path}`, first in line {line}"))
        }
        (Some(_), None) => Some(format!("`{path}` is no longer used")),
        (None, _) => Some(format!("`{path}` was not used")),
    }
}

fn design_differences(recorded: &Design, now: &Design) -> Vec<String> {
    let mut differences = Vec::new();
    if recorded.params != now.params {
        differences.push("the parameters".to_owned());
    }
    if recorded.protocol.seed != now.protocol.seed {
        differences.push(format!("the seed: {} recorded, {} now", recorded.protocol.seed, now.protocol.seed));
    }
    let (mut before, mut after) = (recorded.protocol.clone(), now.protocol.clone());
    (before.seed, after.seed) = (0, 0);
    // The decision is known only to a run that took it.
    [&mut before, &mut after].into_iter().filter_map(|protocol| protocol.until.as_mut()).for_each(|u| u.decided = None);
    if before != after {
        differences.push("the protocol (blocks, warm-up, order, settle, timeout or retries)".to_owned());
    }
    for (recorded, now) in recorded.treatments.iter().zip(&now.treatments) {
        if recorded != now {
            differences.push(format!("the treatment `{}`: its settings or processes on this host", recorded.name));
        }
    }
    let rest = |design: &Design| {
        let mut design = design.clone();
        let names: Vec<String> = design.treatments.drain(..).map(|treatment| treatment.name).collect();
        design.params.clear();
        (design.protocol.clone(), names, Design { protocol: before.clone(), ..design })
    };
    let ((_, names_before, rest_before), (_, names_after, rest_after)) = (rest(recorded), rest(now));
    if names_before != names_after || rest_before != rest_after {
        differences.push("the design (factors, treatments, metrics or comparisons)".to_owned());
    }
    differences
}

/// A recording being written.
#[derive(Debug)]
pub struct Writer {
    file: File,
    path: PathBuf,
    descriptions: Descriptions,
}

/// What each numbered row was last said to be: said once, not a hundred times.
#[derive(Debug, Default)]
pub(super) struct Descriptions(BTreeMap<String, String>);

impl Descriptions {
    fn leave_out(&mut self, trial: &mut Trial) {
        for row in trial.interrupts.iter_mut().filter(|row| row.anomaly.is_none() && !row.description.is_empty()) {
            let known = self.0.insert(row.label.clone(), row.description.clone());
            if known.as_ref() == Some(&row.description) {
                row.description.clear();
            }
        }
    }

    pub(super) fn fill_in(&mut self, trial: &mut Trial) {
        for row in trial.interrupts.iter_mut().filter(|row| row.anomaly.is_none()) {
            if row.description.is_empty() {
                row.description = self.0.get(&row.label).cloned().unwrap_or_default();
            } else {
                self.0.insert(row.label.clone(), row.description.clone());
            }
        }
    }
}

impl Writer {
    /// Starts a recording with its header. The file appears whole or not at all; one that is there already is left
    /// alone and gives `AlreadyExists`.
    pub fn create(path: &Path, header: &Header) -> io::Result<Self> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let file = begin(folder, header)?.persist_noclobber(path).map_err(|error| error.error)?;
        File::open(folder)?.sync_all()?;
        Ok(Writer { file, path: path.to_owned(), descriptions: Descriptions::default() })
    }

    /// Goes on behind the readable part of `recording`, which was read from `path`; a torn last line is cut off.
    pub fn resume(path: &Path, recording: &Recording) -> io::Result<Self> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        file.set_len(recording.length)?;
        file.seek(SeekFrom::End(0))?;
        file.sync_all()?;
        Ok(Writer { file, path: path.to_owned(), descriptions: Descriptions::default() })
    }

    /// Adds a line and waits until it is on the disk.
    pub fn append(&mut self, line: &Line) -> io::Result<()> {
        let bytes = match line {
            Line::Trial(trial) => {
                let mut trial = trial.clone();
                self.descriptions.leave_out(&mut trial);
                to_bytes(&Line::Trial(trial))?
            }
            line => to_bytes(line)?,
        };
        self.file.write_all(&bytes)?;
        self.file.sync_data()
    }

    /// Where it is written.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn to_bytes(line: &Line) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A recording that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file has no complete line.
    #[error("{}: the recording has no header", path.display())]
    Empty { path: PathBuf },
    /// A line does not fit what stands before it.
    #[error("{}: line {line} does not fit the recording: {detail}", path.display())]
    Inconsistent { path: PathBuf, line: usize, detail: String },
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A line is not a line of a recording.
    #[error("{}: line {line} is not a line of a recording: {source}", path.display())]
    Malformed { path: PathBuf, line: usize, source: serde_json::Error },
    /// Written by a later irqlab.
    #[error("{}: the recording has format {format}, this irqlab reads up to {FORMAT}; use a newer irqlab", path.display())]
    Newer { path: PathBuf, format: u64 },
    /// A line is longer than [`MAX_LINE_BYTES`].
    #[error("{}: line {line} is longer than {MAX_LINE_BYTES} bytes", path.display())]
    TooLong { path: PathBuf, line: usize },
}

/// Writes a recording that is complete with its header, as one of published numbers is, in place of what is there.
pub fn write_whole(path: &Path, header: &Header) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let temporary = begin(folder, header)?;
    temporary.persist(path).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()
}

/// A file with the header in it that has no name yet.
fn begin(folder: &Path, header: &Header) -> io::Result<tempfile::NamedTempFile> {
    let mut temporary = tempfile::Builder::new().prefix(".recording").tempfile_in(folder)?;
    temporary.write_all(&to_bytes(&Line::Header(header.clone()))?)?;
    temporary.as_file().sync_all()?;
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    temporary.as_file().set_permissions(permissions)?;
    Ok(temporary)
}

/// Reads a whole recording. A last line without its newline was torn by a crash: it is dropped, with a note.
pub fn read(path: &Path) -> Result<Recording, ReadError> {
    let io_error = |source| ReadError::Io { path: path.to_owned(), source };
    read_from(BufReader::new(File::open(path).map_err(io_error)?), path)
}

/// Reads a whole recording from anywhere; `path` is for messages.
pub fn read_from(mut reader: impl BufRead, path: &Path) -> Result<Recording, ReadError> {
    let mut recording: Option<Recording> = None;
    let mut bytes = Vec::new();
    let mut number = 0;
    loop {
        number += 1;
        bytes.clear();
        let mut limited = reader.by_ref().take(MAX_LINE_BYTES + 1);
        let read = limited.read_until(b'\n', &mut bytes);
        read.map_err(|source| ReadError::Io { path: path.to_owned(), source })?;
        if bytes.len() as u64 > MAX_LINE_BYTES {
            return Err(ReadError::TooLong { path: path.to_owned(), line: number });
        }
        if bytes.is_empty() {
            break;
        }
        if bytes.last() != Some(&b'\n') {
            let Some(recording) = &mut recording else { break };
            recording.notes.push(format!("line {number} was cut off while it was written and is left out"));
            break;
        }
        recording = Some(add_line(recording.take(), &bytes, &Place { path, number })?);
    }
    if let Some(recording) = &mut recording {
        let mut descriptions = Descriptions::default();
        recording.trials.iter_mut().for_each(|trial| descriptions.fill_in(trial));
    }
    recording.ok_or_else(|| ReadError::Empty { path: path.to_owned() })
}

pub(super) struct Place<'a> {
    pub(super) path: &'a Path,
    pub(super) number: usize,
}

impl Place<'_> {
    pub(super) fn malformed(&self, source: serde_json::Error) -> ReadError {
        ReadError::Malformed { path: self.path.to_owned(), line: self.number, source }
    }

    fn inconsistent(&self, detail: impl Into<String>) -> ReadError {
        ReadError::Inconsistent { path: self.path.to_owned(), line: self.number, detail: detail.into() }
    }
}

fn add_line(recording: Option<Recording>, bytes: &[u8], place: &Place<'_>) -> Result<Recording, ReadError> {
    let length = bytes.len() as u64;
    let Some(mut recording) = recording else {
        let header = read_header(bytes, place)?;
        return Ok(Recording {
            header,
            trials: Vec::new(),
            resumed: Vec::new(),
            asked: Vec::new(),
            end: None,
            notes: Vec::new(),
            length,
        });
    };
    match serde_json::from_slice(bytes).map_err(|error| place.malformed(error))? {
        Line::Header(_) => return Err(place.inconsistent("a second header")),
        Line::Trial(trial) => {
            check_trial(&trial, &recording.header).map_err(|detail| place.inconsistent(detail))?;
            recording.trials.push(trial);
        }
        Line::Resumed { at, host } => {
            recording.resumed.push((at, *host));
            recording.end = None;
        }
        Line::Boot(boot) => {
            check_boot(&boot, &recording.header).map_err(|detail| place.inconsistent(detail))?;
            recording.header.boots.push(boot);
            recording.asked.clear();
        }
        Line::BootAsked(asked) => {
            recording.asked.push(asked);
            recording.end = None;
        }
        Line::Decided(decision) => {
            decide(&mut recording.header, decision).map_err(|detail| place.inconsistent(detail))?;
        }
        Line::End(end) => recording.end = Some(end),
    }
    recording.length += length;
    Ok(recording)
}

fn read_header(bytes: &[u8], place: &Place<'_>) -> Result<Header, ReadError> {
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(|error| place.malformed(error))?;
    let format = value.pointer("/header/format").and_then(serde_json::Value::as_u64).unwrap_or(0);
    if format > u64::from(FORMAT) {
        return Err(ReadError::Newer { path: place.path.to_owned(), format });
    }
    let Line::Header(header) = serde_json::from_value(value).map_err(|error| place.malformed(error))? else {
        return Err(place.inconsistent("the first line is not a header"));
    };
    check_header(&header).map_err(|detail| place.inconsistent(detail))?;
    Ok(header)
}

/// The further trials become part of the order, once.
fn decide(header: &mut Header, decision: Decision) -> Result<(), String> {
    let until = header.design.protocol.until.as_mut().filter(|until| until.decided.is_none());
    let until = until.ok_or("a decision that the protocol does not ask for, or a second one")?;
    if !(until.pilot..=until.max).contains(&decision.blocks) {
        return Err(format!("{} blocks are not between the pilot and the maximum", decision.blocks));
    }
    header.order.extend(decision.order.iter().copied());
    until.decided = Some(decision);
    check_header(header)
}

fn check_header(header: &Header) -> Result<(), String> {
    let design = &header.design;
    let level = |factor: usize, level: usize| {
        design
            .factors
            .get(factor)
            .is_some_and(|factor| level < factor.levels.len())
            .then_some(())
            .ok_or("a level that is not there")
    };
    for treatment in &design.treatments {
        if treatment.levels.len() != design.factors.len() {
            return Err(format!("treatment `{}` has not one level per factor", treatment.name));
        }
        for (factor, index) in treatment.levels.iter().enumerate() {
            level(factor, *index)?;
        }
    }
    for comparison in &design.comparisons {
        level(comparison.factor, comparison.base)?;
        check_factors(design, &comparison.within)?;
    }
    for expectation in &design.expectations {
        level(expectation.factor, expectation.left.1)?;
        level(expectation.factor, expectation.right.1)?;
        check_factors(design, &expectation.within)?;
    }
    header.published.iter().try_for_each(|row| check_published(row, design))?;
    let mut numbers = BTreeSet::new();
    for planned in &header.order {
        if planned.treatment >= design.treatments.len() {
            return Err(format!("planned trial {} has a treatment that is not there", planned.number));
        }
        if !numbers.insert(planned.number) {
            return Err(format!("planned trial {} stands there twice", planned.number));
        }
    }
    Ok(())
}

/// Whether a boot fits what was recorded before it.
pub fn check_boot(boot: &Boot, header: &Header) -> Result<(), String> {
    let number = boot.number;
    if header.boots.iter().any(|earlier| earlier.number == number) {
        return Err(format!("boot {number} stands there twice"));
    }
    for (index, bound) in &boot.treatments {
        if header.design.treatments.get(*index).is_none_or(|planned| planned.levels != bound.levels) {
            return Err(format!("boot {number} has a treatment that is not there"));
        }
    }
    Ok(())
}

fn check_published(row: &PublishedRow, design: &Design) -> Result<(), String> {
    let place = &row.place;
    if row.treatment >= design.treatments.len() {
        return Err(format!("the published row of {place} has a treatment that is not there"));
    }
    if !design.metrics.iter().any(|metric| metric.id == row.metric) {
        return Err(format!("the published row of {place} has a metric that is not there"));
    }
    match &row.values {
        PublishedValues::Summary { low, high, average, .. } if !(low <= average && average <= high) => {
            Err(format!("low, average and high of {place} are not in ascending order"))
        }
        _ => Ok(()),
    }
}

fn check_factors(design: &Design, factors: &[usize]) -> Result<(), String> {
    match factors.iter().find(|factor| **factor >= design.factors.len()) {
        Some(factor) => Err(format!("factor {factor} is not there")),
        None => Ok(()),
    }
}

/// Whether a trial fits what was recorded before it: planned like that, in a boot that is known, every count with its CPU.
pub fn check_trial(trial: &Trial, header: &Header) -> Result<(), String> {
    let planned = |planned: &PlannedTrial| {
        (planned.number, planned.block, planned.treatment) == (trial.number, trial.block, trial.treatment)
    };
    // Numbers are places in the order as a rule; only a file made by somebody else has to be searched.
    if !header.order.get(trial.number as usize).is_some_and(planned) && !header.order.iter().any(planned) {
        return Err(format!("trial {} is not planned like that", trial.number));
    }
    if let Some(number) = trial.boot
        && !header.boots.iter().rev().any(|boot| boot.number == number)
    {
        return Err(format!("trial {} ran in boot {number}, which is not recorded", trial.number));
    }
    let times = &trial.cpu_times;
    for column in [&times.user, &times.system, &times.idle, &times.iowait, &times.irq, &times.softirq, &times.steal] {
        if column.len() != times.on.len() {
            return Err(format!("{} CPU times for {} CPUs", column.len(), times.on.len()));
        }
    }
    for row in trial.interrupts.iter().chain(&trial.softirqs) {
        let expected = if row.on.is_empty() { row.counts.len().min(1) } else { row.on.len() };
        if row.counts.len() != expected {
            return Err(format!("row `{}` has {} counts for {} CPUs", row.label, row.counts.len(), row.on.len()));
        }
        if row.counts.iter().try_fold(0_u64, |sum, count| sum.checked_add(*count)).is_none() {
            return Err(format!("the counts of row `{}` are beyond any counter", row.label));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
