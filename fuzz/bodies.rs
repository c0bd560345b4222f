//! What each fuzz target does with hostile bytes. The fuzzer calls these through `targets/`; the ordinary tests call
//! them with every seed and every input that once broke something, so that both look at the same code.
//!
//! A body fails by panicking, by not returning and by taking memory without bound; nothing it calls may do these for any
//! input.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use irqlab::analysis;
use irqlab::bind;
use irqlab::check::{self, Options};
use irqlab::cpu_set::CpuSet;
use irqlab::design::Parser;
use irqlab::diagnostic::{Color, render};
use irqlab::host::files::{Files, SystemError};
use irqlab::host::snapshot::{Snapshot, between};
use irqlab::recording::{HostFacts, file::read_from};
use irqlab::report;
use irqlab::settings::{self, Ended, Program, System};
use irqlab::source::Sources;
use irqlab::syntax;
use irqlab::workloads::parse::{self, Output};

/// What a target does with an input.
pub(crate) type Body = fn(&[u8]);

/// Every body by the name of its target.
pub(crate) const BODIES: [(&str, Body); 6] = [
    ("journal", journal),
    ("kernel_text", kernel_text),
    ("language", language),
    ("output", output),
    ("recording", recording),
    ("template", template),
];

/// An `.exp` file: parsed, checked, laid out again, its messages rendered.
pub(crate) fn language(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let mut sources = Sources::default();
    let file = sources.add("fuzz.exp", text);
    let diagnostics = match syntax::parse(&sources, file) {
        Ok(tree) => {
            let formatted = syntax::format(&tree, text);
            let mut again = Sources::default();
            let file_again = again.add("fuzz.exp", formatted.as_str());
            let tree_again = syntax::parse(&again, file_again).expect("what `fmt` writes is still the language");
            assert_eq!(syntax::format(&tree_again, &formatted), formatted, "`fmt` has one form");
            match check::check(&sources, &[(file, tree)], &Options::default()) {
                Ok(experiments) => {
                    for experiment in experiments.iter().filter(|experiment| small(experiment)) {
                        let _ = bind::order(experiment);
                        let _ = bind::refusals(experiment);
                        let _ = bind::bind(experiment, &HostFacts::default());
                    }
                    return;
                }
                Err(diagnostics) => diagnostics,
            }
        }
        Err(diagnostics) => diagnostics,
    };
    assert!(!diagnostics.is_empty(), "a refusal says why");
    let said = render(&diagnostics, &sources, Color::Never);
    assert!(!said.contains('\u{1b}'), "no escape sequence of a file reaches the terminal");
}

/// Trials are laid out one by one; the language's limits allow millions, which say nothing new.
fn small(experiment: &irqlab::design::Experiment) -> bool {
    experiment.treatments.len() as u64 * u64::from(bind::blocks(experiment).saturating_add(experiment.protocol.warmup))
        < 100_000
}

/// Texts of the kernel: the first line is the path of a file below a captured root, the rest its content; files are
/// parted by a NUL byte.
pub(crate) fn kernel_text(data: &[u8]) {
    let host = Memory::new(data);
    let facts = irqlab::host::read_facts(&host);
    let _ = irqlab::host::disturbances::disturbances(&facts);
    let _ = irqlab::host::interrupts::parse(data).map(|table| {
        for row in &table.rows {
            let _ = irqlab::host::interrupts::describe(row);
            assert!(table.by_cpu(row).count() <= table.counts(row).len());
        }
    });
    let _ = irqlab::host::stat::parse(data);
    let text = String::from_utf8_lossy(data);
    let _ = CpuSet::parse_list(&text);
    let _ = CpuSet::parse_mask(&text);
    if let Ok(before) = Snapshot::read(&host)
        && let Some(after) = host.second().and_then(|host| Snapshot::read(&host).ok())
    {
        let _ = between(&before, &after);
    }
}

/// A recording: read, analysed, rendered in every form.
pub(crate) fn recording(data: &[u8]) {
    let Ok(recording) = read_from(data, Path::new("recording.jsonl")) else { return };
    let header = &recording.header;
    let findings = analysis::analyse(header, &recording.trials, &recording.resumed, recording.end.as_ref());
    if let Ok(markdown) = report::markdown(&recording, &findings) {
        assert!(!markdown.contains('\u{1b}'), "no escape sequence of a recording reaches a report");
    }
    for picture in report::pictures(&recording, &findings) {
        let (file, plain) = (&picture.file, |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c));
        assert!(file.chars().all(plain) && !file.starts_with('.'), "a picture stays in its folder: {file}");
    }
    let _ = report::html(&recording, &findings);
    let _ = report::export::json(&recording, &findings);
    let _ = report::export::csv(&recording, &findings);
    let _ = report::export::benchstat(&recording, &findings);
    let _ = report::export::junit(&recording, &findings);
    let _ = report::export::hyperfine(&recording);
}

/// What a program printed, to every parser: standard output, and behind a NUL byte standard error.
pub(crate) fn output(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (stdout, stderr) = text.split_once('\0').unwrap_or((&text, ""));
    let output = Output { stdout: stdout.to_owned(), stderr: stderr.to_owned() };
    let _ = parse::builtin(&output);
    let known = check::vocabulary::PARSERS.iter().map(|parser| Parser::Known(parser.name.to_owned()));
    let patterns = [
        Parser::Json { path: "jobs[0].read.iops".to_owned(), metric: "m".to_owned() },
        Parser::Regex { pattern: "rate: ([0-9.]+)".to_owned(), metric: "m".to_owned() },
    ];
    for parser in known.chain(patterns) {
        let parsed = parse::parse(std::slice::from_ref(&parser), &output);
        assert!(parsed.values.values().all(|value| value.is_finite()), "{parser:?}: {:?}", parsed.values);
        let told = !parsed.values.is_empty() || !parsed.failures.is_empty();
        assert!(told, "{parser:?}: an output without a number is a named failure, not silence");
    }
}

/// A journal somebody else wrote: the host is put back from it, on a host that is a map of files.
pub(crate) fn journal(data: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder for the journal");
    let state = folder.path().join("state");
    std::fs::create_dir(&state).expect("a folder for the journal");
    std::fs::write(state.join("journal.jsonl"), data).expect("the journal");
    let host = Memory::new(b"/proc/irq/24/smp_affinity\nf\n\0/proc/sys/kernel/random/boot_id\nboot-1\n");
    let _ = settings::restore_unfinished(&host, &state);
    let written = host.written.borrow().clone();
    let second = settings::restore_unfinished(&host, &state);
    if let Ok(None) = second {
        assert_eq!(*host.written.borrow(), written, "a second restore writes nothing");
    }
}

/// A report template.
pub(crate) fn template(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let seed = include_bytes!("../reports/quickstart/recording.jsonl");
    let recording = read_from(&seed[..], Path::new("recording.jsonl")).expect("the seed is a recording");
    let header = &recording.header;
    let findings = analysis::analyse(header, &recording.trials, &recording.resumed, recording.end.as_ref());
    let view = report::view(&recording, &findings);
    let _ = report::render(&view, Some(report::Template { name: "fuzz.md.j2", text: &text }));
}

/// A host that is a map of files, read and written in memory.
struct Memory {
    files: RefCell<BTreeMap<String, Vec<u8>>>,
    written: RefCell<Vec<String>>,
}

impl Memory {
    fn new(data: &[u8]) -> Self {
        let mut files = BTreeMap::new();
        for part in data.split(|byte| *byte == 0) {
            let end = part.iter().position(|byte| *byte == b'\n').unwrap_or(part.len());
            let path = String::from_utf8_lossy(&part[..end]).into_owned();
            files.insert(path, part.get(end + 1..).unwrap_or_default().to_vec());
        }
        Memory { files: RefCell::new(files), written: RefCell::default() }
    }

    /// The host a moment later: a file whose path has `'` behind it replaces the one without.
    fn second(&self) -> Option<Memory> {
        let mut files = self.files.borrow().clone();
        let later: Vec<String> = files.keys().filter(|path| path.ends_with('\'')).cloned().collect();
        for path in &later {
            let content = files.remove(path)?;
            files.insert(path.trim_end_matches('\'').to_owned(), content);
        }
        Some(Memory { files: RefCell::new(files), written: RefCell::default() })
    }

    fn gone(path: &str) -> SystemError {
        SystemError::new("open", path, io::Error::from_raw_os_error(2))
    }
}

impl Files for Memory {
    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
        self.files.borrow().get(path).cloned().ok_or_else(|| Self::gone(path))
    }

    fn list(&self, path: &str) -> Result<Vec<String>, SystemError> {
        let prefix = format!("{}/", path.trim_end_matches('/'));
        let files = self.files.borrow();
        let below = files.keys().filter_map(|file| file.strip_prefix(&prefix));
        let mut names: Vec<String> = below.filter_map(|rest| rest.split('/').next()).map(str::to_owned).collect();
        names.sort();
        names.dedup();
        if names.is_empty() { Err(Self::gone(path)) } else { Ok(names) }
    }

    fn mode(&self, path: &str) -> Result<u32, SystemError> {
        if self.files.borrow().contains_key(path) { Ok(0o644) } else { self.list(path).map(|_| 0o755) }
    }

    fn resolve(&self, path: &str) -> Result<PathBuf, SystemError> {
        self.mode(path).map(|_| PathBuf::from(path))
    }
}

impl System for Memory {
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), SystemError> {
        self.written.borrow_mut().push(path.to_owned());
        let mut files = self.files.borrow_mut();
        let content = files.get_mut(path).ok_or_else(|| Self::gone(path))?;
        *content = bytes.to_vec();
        Ok(())
    }

    fn set_affinity(&self, _tid: u32, _cpus: &CpuSet) -> Result<(), SystemError> {
        Ok(())
    }

    fn terminate(&self, _pid: u32) -> Result<(), SystemError> {
        Ok(())
    }

    fn run(&self, _command: &[String]) -> Result<Ended, SystemError> {
        Ok(Ended { success: true, status: "exit status: 0".to_owned(), stdout: String::new(), stderr: String::new() })
    }

    fn start(&self, _program: &Program) -> Result<(), SystemError> {
        Ok(())
    }

    fn own_pid(&self) -> u32 {
        1
    }

    fn is_root(&self) -> bool {
        true
    }

    fn pause(&self, _time: Duration) {}
}
