//! `reports/README.md`: the suite at a glance, one line per experiment.

use super::Evidence;
use super::sentence::{effect, expectation_word, verdict};
use super::tables::context;
use super::text::{Table, code, inline};
use crate::analysis::{ExpectationVerdict, Findings, Verdict};
use crate::recording::Recording;

/// One experiment's line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// Folder of the report, relative to the index.
    pub folder: String,
    /// Title of the experiment.
    pub title: String,
    /// Short verdicts, inline Markdown.
    pub verdict: String,
    /// Effects that have a verdict, inline Markdown.
    pub effect: String,
    /// Day the run began, or `published`.
    pub date: String,
    /// Kernel release; `None` for published numbers, as the two below.
    pub kernel: Option<String>,
    /// CPU model.
    pub cpu: Option<String>,
    /// Valid trials of planned ones.
    pub trials: Option<String>,
}

/// How many single effects a line shows.
const EFFECTS: usize = 3;

/// How every index begins.
const BEGINNING: &str = "# Reports\n\nMade by `irqlab`";

/// Whether a text is an index, and not somebody's own README.
pub fn is_index(text: &str) -> bool {
    text.starts_with(BEGINNING)
}

/// The index of a folder of reports, in order of their folders.
pub fn index(entries: &[IndexEntry]) -> String {
    let mut entries: Vec<&IndexEntry> = entries.iter().collect();
    entries.sort_by(|a, b| a.folder.cmp(&b.folder));
    let rows = entries.iter().map(|entry| {
        let link = format!("[{}]({}/README.md)", inline(&entry.folder), address(&entry.folder));
        vec![
            link,
            inline(&entry.title),
            entry.verdict.clone(),
            entry.effect.clone(),
            inline(&entry.date),
            entry.kernel.as_deref().map_or_else(dash, inline),
            entry.cpu.as_deref().map_or_else(dash, inline),
            entry.trials.as_deref().map_or_else(dash, inline),
        ]
    });
    let table = Table::new(
        &["experiment", "title", "verdict", "effect", "date", "kernel", "CPU", ">valid trials"],
        rows.collect(),
    );
    format!("{BEGINNING}; each folder holds the report and the recording it is made from.\n\n{}\n", table.markdown)
}

/// The line of one recording, whose report is in `folder`.
pub fn index_entry(folder: &str, recording: &Recording, findings: &Findings) -> IndexEntry {
    let parts = Evidence { recording, findings };
    let design = &parts.recording.header.design;
    let host = &parts.recording.header.host;
    let published = super::build::published(design);
    let day = parts.recording.header.started_at.split('T').next().unwrap_or_default().to_owned();
    let counts = parts.findings.counts;
    IndexEntry {
        folder: folder.to_owned(),
        title: design.title.clone(),
        verdict: verdicts(parts),
        effect: effects(parts),
        date: if published { "published".to_owned() } else { day },
        kernel: host.kernel_release.clone().filter(|_| !published),
        cpu: host.cpu_model.clone().filter(|_| !published),
        trials: (!published).then(|| format!("{} of {}", counts.valid, counts.planned)),
    }
}

fn verdicts(parts: Evidence<'_>) -> String {
    let design = &parts.recording.header.design;
    let mut counted: Vec<(String, usize)> = Vec::new();
    for finding in &parts.findings.comparisons {
        let word = verdict(context(design, parts.findings, &finding.metric), finding);
        let word = word.split(',').next().unwrap_or_default().to_owned();
        match counted.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => counted.push((word, 1)),
        }
    }
    let mut parts_shown: Vec<String> =
        counted.into_iter().map(|(word, count)| if count == 1 { word } else { format!("{count} {word}") }).collect();
    let failed =
        parts.findings.expectations.iter().filter(|finding| finding.verdict == ExpectationVerdict::Failed).count();
    if failed > 0 {
        parts_shown.push(format!("**{failed} expectation {}**", expectation_word(ExpectationVerdict::Failed)));
    }
    if parts.recording.end.as_ref().is_some_and(|end| !end.not_restored.is_empty()) {
        parts_shown.push("**host not put back**".to_owned());
    }
    if parts_shown.is_empty() { "no comparison".to_owned() } else { parts_shown.join(", ") }
}

fn effects(parts: Evidence<'_>) -> String {
    let design = &parts.recording.header.design;
    let decided: Vec<_> = parts
        .findings
        .comparisons
        .iter()
        .filter(|finding| !matches!(finding.verdict, Verdict::Inconclusive | Verdict::NoInference(_)))
        .collect();
    let mut shown: Vec<String> = decided
        .iter()
        .take(EFFECTS)
        .map(|finding| {
            let context = context(design, parts.findings, &finding.metric);
            format!("{} {} on {}", code(&finding.level), effect(context, finding), context.label(&finding.metric))
        })
        .collect();
    if decided.len() > EFFECTS {
        shown.push(format!("{} more", decided.len() - EFFECTS));
    }
    if shown.is_empty() { "-".to_owned() } else { shown.join("; ") }
}

fn dash() -> String {
    "-".to_owned()
}

/// A folder name as a link target: everything but plain path characters is percent-encoded.
fn address(folder: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte);
    let encoded =
        folder.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") });
    encoded.collect()
}
