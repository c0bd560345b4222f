//! Two recordings beside each other as Markdown: loudly what they are, then what differs in the hosts, then the numbers.

use std::fmt::Write as _;

use super::number::{p_value, significant};
use super::sentence::{self, Context};
use super::tables::short_flag;
use super::text::{Table, code, inline};
use super::{Evidence, facts};
use crate::analysis::{Across, Cell, Findings, MetricFindings, Verdict};
use crate::recording::{Design, Header, Recording};

/// Old and new recording with what was found.
#[derive(Debug, Clone, Copy)]
pub struct Beside<'a> {
    /// The older one, the base of every ratio.
    pub old: (&'a Recording, &'a Findings),
    /// The newer one.
    pub new: (&'a Recording, &'a Findings),
    /// What was found.
    pub across: &'a Across,
}

/// The page.
pub fn across(beside: Beside<'_>) -> String {
    let (old, new) = (&beside.old.0.header, &beside.new.0.header);
    let mut text = format!("# {}: two recordings\n\n", inline(&old.design.title));
    text.push_str(
        "> **Two recordings are two groups that nobody randomised.** Everything that changed between them came at once: \
         what was meant to change, the host, the time. A difference below is a difference between the recordings; what \
         caused it these numbers cannot say. To learn that, vary it inside one experiment.\n\n",
    );
    let _ = write!(
        text,
        "- old: irqlab {}, started {}, {}\n- new: irqlab {}, started {}, {}\n\n",
        inline(&old.tool_version),
        inline(&old.started_at),
        counted(beside.old.1),
        inline(&new.tool_version),
        inline(&new.started_at),
        counted(beside.new.1),
    );
    text.push_str("## What is not the same\n\n");
    let differences = differences(&beside);
    if differences.is_empty() {
        text.push_str("Nothing that the recordings tell: only the time.\n\n");
    } else {
        text.push_str(&Table::new(&["fact", "old", "new"], differences).markdown);
        text.push_str("\n\n");
    }
    text.push_str("## New against old\n\n");
    text.push_str(&in_short(beside.across));
    text.push_str(&numbers(&beside).markdown);
    text.push_str(
        "\n\nRatios are of geometric means, new / old, with a 95 % interval and p from Welch's t test of ln values; nothing is \
         paired. Holm p is corrected for the treatments of the same metric. The exact p is Mann-Whitney's.\n",
    );
    let doubts: Vec<String> = [("old", beside.old.1), ("new", beside.new.1)]
        .into_iter()
        .filter(|(_, findings)| !findings.warnings.is_empty())
        .map(|(name, findings)| format!("- {name}: {} warnings of its own; see its report", findings.warnings.len()))
        .collect();
    if !doubts.is_empty() {
        let _ = write!(text, "\n## Warnings\n\n{}\n", doubts.join("\n"));
    }
    text
}

fn counted(findings: &Findings) -> String {
    format!("{} of {} planned trials valid", findings.counts.valid, findings.counts.planned)
}

fn in_short(across: &Across) -> String {
    let count = |wanted: fn(&Verdict) -> bool| across.findings.iter().filter(|f| wanted(&f.verdict)).count();
    format!(
        "Of {} comparisons: new better in {}, worse in {}, equivalent in {}, inconclusive in {}, without a verdict in {}.\n\n",
        across.findings.len(),
        count(|verdict| matches!(verdict, Verdict::Faster { .. })),
        count(|verdict| matches!(verdict, Verdict::Slower { .. })),
        count(|verdict| matches!(verdict, Verdict::Equivalent)),
        count(|verdict| matches!(verdict, Verdict::Inconclusive)),
        count(|verdict| matches!(verdict, Verdict::NoInference(_))),
    )
}

fn numbers(beside: &Beside<'_>) -> Table {
    // Sentences and units are those of trials without blocks.
    let mut design: Design = beside.old.0.header.design.clone();
    "unpaired".clone_into(&mut design.protocol.order);
    let metrics: Vec<MetricFindings> = beside
        .across
        .metrics
        .iter()
        .map(|metric| MetricFindings {
            id: metric.id.clone(),
            label: metric.label.clone(),
            unit: metric.unit.clone(),
            direction: metric.direction,
            cells: Vec::<Cell>::new(),
            decimals: None,
        })
        .collect();
    let optional = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| significant(value, 5));
    let rows = beside.across.findings.iter().zip(&beside.across.centres).map(|(finding, (old, new))| {
        let metric = metrics.iter().find(|metric| metric.id == finding.metric);
        let context = Context { design: &design, metric };
        let unit = metric.map_or("", |metric| metric.unit.as_str());
        let label = context.label(&finding.metric);
        let flags: Vec<&str> = finding.flags.iter().map(|flag| short_flag(*flag)).collect();
        vec![
            if unit.is_empty() { label } else { format!("{label} ({})", inline(unit)) },
            finding.within.first().map_or_else(String::new, |(_, treatment)| code(treatment)),
            optional(*old),
            optional(*new),
            sentence::effect(context, finding),
            sentence::interval(context, finding),
            format!("{} and {}", finding.n.1, finding.n.0),
            finding.p_holm.map_or_else(|| "-".to_owned(), p_value),
            finding.exact.map_or_else(|| "-".to_owned(), |exact| p_value(exact.p)),
            sentence::verdict(context, finding),
            flags.join("; "),
        ]
    });
    let columns = [
        "metric",
        "treatment",
        ">old",
        ">new",
        ">new / old",
        ">95 % CI",
        ">n",
        ">Holm p",
        ">exact p",
        "new is",
        "notes",
    ];
    Table::new(&columns, rows.collect())
}

/// Facts, settings, parameters and protocol that are not the same.
fn differences(beside: &Beside<'_>) -> Vec<Vec<String>> {
    let (old, new) = (&beside.old.0.header, &beside.new.0.header);
    let facts = |(recording, findings)| facts_of(Evidence { recording, findings });
    let mut rows = differing(&facts(beside.old), &facts(beside.new));
    rows.extend(differing(&protocol(old), &protocol(new)));
    for (before, after) in old.design.treatments.iter().zip(&new.design.treatments) {
        if before.settings != after.settings {
            let shown = |settings: &[String]| settings.iter().map(|text| code(text)).collect::<Vec<_>>().join("; ");
            let what = format!("settings of {}", code(&before.name));
            rows.push(vec![what, or_dash(shown(&before.settings)), or_dash(shown(&after.settings))]);
        }
        let pinned = |treatment: &crate::recording::Treatment| {
            let all = treatment.workloads.iter().chain(&treatment.backgrounds);
            let text = |plan: &crate::recording::ProcessPlan| {
                let cpus = plan.cpus.as_ref().map_or_else(|| "not pinned".to_owned(), ToString::to_string);
                format!("{} on {cpus}", code(&plan.name))
            };
            all.map(text).collect::<Vec<_>>().join("; ")
        };
        if pinned(before) != pinned(after) {
            rows.push(vec![format!("CPUs under {}", code(&before.name)), pinned(before), pinned(after)]);
        }
    }
    rows
}

fn facts_of(evidence: Evidence<'_>) -> Vec<(String, String)> {
    let host = facts::host(&evidence.recording.header.host);
    let rows = facts::run(evidence).rows.into_iter().chain(host.into_iter().flat_map(|table| table.rows));
    // Times differ by nature.
    let wanted = |row: &Vec<String>| !matches!(row[0].as_str(), "started" | "ended");
    rows.filter(wanted).map(|row| (row[0].clone(), row[1].clone())).collect()
}

fn protocol(header: &Header) -> Vec<(String, String)> {
    let protocol = &header.design.protocol;
    let mut rows = vec![
        ("seed".to_owned(), protocol.seed.to_string()),
        ("blocks".to_owned(), protocol.blocks.to_string()),
        ("warm-up trials per treatment".to_owned(), protocol.warmup.to_string()),
        ("settle".to_owned(), facts::duration_ms(protocol.settle_ms)),
    ];
    let params = header.design.params.iter();
    rows.extend(params.map(|(name, value, _)| (format!("parameter {}", code(name)), code(value))));
    rows
}

fn differing(old: &[(String, String)], new: &[(String, String)]) -> Vec<Vec<String>> {
    let find = |rows: &[(String, String)], name: &str| {
        rows.iter().find(|(known, _)| known == name).map_or_else(|| "-".to_owned(), |(_, value)| value.clone())
    };
    let only_new = new.iter().filter(|(name, _)| old.iter().all(|(known, _)| known != name));
    let names = old.iter().chain(only_new).map(|(name, _)| name);
    names.map(|name| vec![name.clone(), find(old, name), find(new, name)]).filter(|row| row[1] != row[2]).collect()
}

fn or_dash(text: String) -> String {
    if text.is_empty() { "-".to_owned() } else { text }
}
