//! Puts a view together.

use std::collections::BTreeMap;

use super::number::{percent, significant};
use super::published::{missing, ratio_of_ratios, remarks};
use super::sentence::{comparison, expectation, expectation_word, flag, verdict};
use super::tables::context;
use super::text::{Table, code, fenced, inline, shown_path};
use super::view::{DesignView, ExpectationView, FileView, ReproduceView, RestorationView, VerdictGroup, View};
use super::{Evidence, evidence, facts, pictures, tables};
use crate::analysis::{ComparisonFinding, Findings, Method, Verdict, Warning};
use crate::recording::{Accelerator, Design, LabFacts, ProcessPlan, Recording, Until};

/// More findings than this in one `compare` clause, and its inconclusive ones are folded into a sentence.
const SENTENCES: usize = 12;

/// Lines of a file of numbers that are shown.
const DATA_LINES: usize = 60;

/// Blocks whose order is shown.
const ORDER_LINES: usize = 40;

/// All a template may show of a recording.
pub fn view(recording: &Recording, findings: &Findings) -> View {
    let parts = Evidence { recording, findings };
    let design = &parts.recording.header.design;
    let published = published(design);
    View {
        title: inline(&design.title),
        name: code(&design.name),
        question: design.question.as_deref().map(inline),
        published,
        source: design.source.as_deref().map(inline),
        layout: design.layout.clone(),
        alarms: alarms(parts),
        verdicts: verdicts(parts),
        expectations: expectations(parts),
        evidence: evidence_line(parts),
        pictures: pictures::view(parts),
        warnings: evidence::warnings(parts),
        metrics: tables::metrics(&parts.recording.header, parts.findings),
        comparisons: tables::comparisons(design, parts.findings),
        interactions: tables::interactions(design, parts.findings),
        treatment_check: evidence::treatment_check(parts),
        invalid_trials: evidence::invalid_trials(design, parts.findings),
        run: (!published).then(|| facts::run(parts)),
        host: if published { None } else { facts::host(&parts.recording.header.host) },
        design: design_view(parts),
        methods: methods(parts),
        reproduce: reproduce(parts),
        restoration: restoration(parts),
    }
}

/// Whether the numbers are somebody's own and nothing was run.
pub(super) fn published(design: &Design) -> bool {
    design.protocol.order == "recorded"
}

fn alarms(parts: Evidence<'_>) -> Vec<String> {
    if published(&parts.recording.header.design) {
        return Vec::new();
    }
    let mut alarms: Vec<String> = emulated(parts.recording).into_iter().collect();
    match &parts.recording.end {
        None => alarms.push(
            "**The recording has no end**: the run was cut off, and nothing says that the host was put back. Run \
             `irqlab restore` on it, then `irqlab run --resume`."
                .to_owned(),
        ),
        Some(end) if !end.not_restored.is_empty() => {
            let what: Vec<String> = end.not_restored.iter().map(|what| inline(what)).collect();
            alarms.push(format!(
                "**The host was not put back as it was**: {}. Run `irqlab restore` on it, or put it right by hand.",
                what.join("; ")
            ));
        }
        Some(_) => {}
    }
    for warning in &parts.findings.warnings {
        match warning {
            Warning::NotComplete { reason } => alarms.push(format!(
                "**The run is not complete**: {}. `irqlab run --resume` goes on with it.",
                inline(reason)
            )),
            Warning::NotRestored { what }
                if parts.recording.end.as_ref().is_some_and(|end| end.not_restored.is_empty()) =>
            {
                let what: Vec<String> = what.iter().map(|what| inline(what)).collect();
                alarms.push(format!("**The host was not put back as it was**: {}.", what.join("; ")));
            }
            _ => {}
        }
    }
    alarms
}

/// What emulated machines can show and what not.
fn emulated(recording: &Recording) -> Option<String> {
    let is_emulated = |lab: &LabFacts| lab.accelerator == Accelerator::Emulated;
    let count =
        recording.header.boots.iter().filter_map(|boot| boot.lab.as_ref()).filter(|lab| is_emulated(lab)).count();
    (count > 0).then(|| {
        format!(
            "**Emulated**: {count} of {} boots ran in software emulation. Their timings say nothing about hardware; interrupt \
             counts and routing are the real kernel's.",
            recording.header.boots.len()
        )
    })
}

fn verdicts(parts: Evidence<'_>) -> Vec<VerdictGroup> {
    let design = &parts.recording.header.design;
    let groups = design.comparisons.iter().enumerate().map(|(index, declared)| {
        let findings: Vec<_> =
            parts.findings.comparisons.iter().filter(|finding| finding.comparison == index).collect();
        let factor = design.factors.get(declared.factor);
        let base = factor.and_then(|factor| factor.levels.get(declared.base));
        let fold = findings.len() > SENTENCES;
        let mut sentences = Vec::new();
        let (mut folded, mut in_noise) = (0, 0);
        for finding in &findings {
            if fold && finding.verdict == Verdict::Inconclusive {
                folded += 1;
                continue;
            }
            let noise = finding.published.and_then(|published| published.noise);
            if fold && noise.is_some_and(|noise| !noise.is_exceeded()) {
                in_noise += 1;
                continue;
            }
            let context = context(design, parts.findings, &finding.metric);
            let text = comparison(context, finding) + &remarks(finding);
            let doubts: Vec<String> = finding.flags.iter().map(|doubt| flag(context, finding, *doubt)).collect();
            let text = if doubts.is_empty() { text } else { format!("{text} *Note: {}.*", doubts.join("; ")) };
            sentences.push((size(finding), text));
        }
        let further = sentences.len().saturating_sub(SENTENCES);
        if further > 0 {
            keep_largest(&mut sentences);
            let tally = tally(parts, &findings);
            let first = format!("{tally} The largest effects follow; the others are in the table of comparisons.");
            sentences.insert(0, (f64::INFINITY, first));
        }
        let mut sentences: Vec<String> = sentences.into_iter().map(|(_, text)| text).collect();
        if folded > 0 {
            sentences.push(format!("**Inconclusive** in {folded} further comparisons: see the table of comparisons."));
        }
        if in_noise > 0 {
            sentences.push(format!(
                "**No verdict** in {in_noise} further comparisons: the difference is no larger than identical rows differ. \
                 See the table of comparisons."
            ));
        }
        let single_runs: Vec<_> =
            parts.findings.single_runs.iter().filter(|finding| finding.comparison == index).collect();
        for finding in single_runs.iter().take(SENTENCES) {
            sentences.push(ratio_of_ratios(context(design, parts.findings, &finding.metric), finding));
        }
        if !single_runs.is_empty() {
            sentences.extend(missing(design, &declared.within));
        }
        if findings.is_empty() {
            sentences.push("No finding: nothing was measured for this comparison.".to_owned());
        }
        VerdictGroup {
            heading: format!(
                "{} against {}",
                factor.map_or_else(|| "?".to_owned(), |factor| code(&factor.name)),
                base.map_or_else(|| "?".to_owned(), |base| code(base))
            ),
            sentences,
        }
    });
    groups.collect()
}

/// How far an effect is from none, comparable within one scale.
fn size(finding: &ComparisonFinding) -> f64 {
    let is_ratio = finding.scale == crate::analysis::Scale::Ratio;
    let size = finding.point.map(|point| if is_ratio { point.ln() } else { point }.abs());
    size.filter(|size| size.is_finite()).unwrap_or(f64::NEG_INFINITY)
}

/// Leaves the sentences of the largest effects, in the order they stood.
fn keep_largest(sentences: &mut Vec<(f64, String)>) {
    let mut sizes: Vec<f64> = sentences.iter().map(|(size, _)| *size).collect();
    sizes.sort_by(|a, b| b.total_cmp(a));
    let least = sizes.get(SENTENCES - 1).copied().unwrap_or(f64::NEG_INFINITY);
    sentences.retain(|(size, _)| *size >= least);
    sentences.truncate(SENTENCES);
}

/// `39 comparisons: 36 faster, 3 equivalent within ±10 %.`
fn tally(parts: Evidence<'_>, findings: &[&ComparisonFinding]) -> String {
    let design = &parts.recording.header.design;
    let mut counts: Vec<(String, usize)> = Vec::new();
    for finding in findings {
        let word = verdict(context(design, parts.findings, &finding.metric), finding);
        match counts.iter_mut().find(|(known, _)| *known == word) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let counts: Vec<String> = counts.into_iter().map(|(word, count)| format!("{count} {word}")).collect();
    format!("**{} comparisons**: {}.", findings.len(), counts.join("; "))
}

fn expectations(parts: Evidence<'_>) -> Vec<ExpectationView> {
    let design = &parts.recording.header.design;
    let views = parts.findings.expectations.iter().filter_map(|finding| {
        let declared = design.expectations.get(finding.expectation)?;
        Some(ExpectationView {
            verdict: expectation_word(finding.verdict).to_owned(),
            text: code(&declared.text),
            place: code(shown_path(&declared.place)),
            detail: expectation(declared, design, finding),
        })
    });
    views.collect()
}

/// The one line a hurried reader needs besides the verdict.
fn evidence_line(parts: Evidence<'_>) -> String {
    let design = &parts.recording.header.design;
    let counts = parts.findings.counts;
    if published(design) {
        let taken = "taken from the file; nothing was run here, so nothing of their making is proven.";
        return match design.source.as_deref() {
            Some(source) => format!("Numbers published by {}. They are {taken}", inline(source)),
            None => format!("Numbers, {taken}"),
        };
    }
    let invalid = counts.recorded.saturating_sub(counts.valid);
    let warmup = match counts.warmup {
        0 => String::new(),
        1 => ", 1 warm-up trial left out as declared".to_owned(),
        count => format!(", {count} warm-up trials left out as declared"),
    };
    let faulty = match invalid {
        0 => String::new(),
        1 => ", 1 invalid one kept aside".to_owned(),
        count => format!(", {count} invalid ones kept aside"),
    };
    let trials = format!("{} of {} planned trials are valid{faulty}{warmup}.", counts.valid, counts.planned);
    let check = evidence::treatment_check(parts).summary;
    format!("{trials} {check} {}", restoration(parts).summary)
}

fn restoration(parts: Evidence<'_>) -> RestorationView {
    let inlined = |texts: &[String]| texts.iter().map(|text| inline(text)).collect::<Vec<_>>();
    let Some(end) = &parts.recording.end else {
        let summary = if published(&parts.recording.header.design) {
            "Nothing was run, so there was nothing to put back."
        } else {
            "It is not known whether the host was put back."
        };
        return RestorationView { summary: summary.to_owned(), not_restored: Vec::new(), remarks: Vec::new() };
    };
    let settings = match end.restored {
        0 => "no setting had to be written back".to_owned(),
        1 => "1 setting written back".to_owned(),
        count => format!("{count} settings written back"),
    };
    let summary = match end.not_restored.len() {
        0 => format!("The host was put back: {settings}."),
        1 => format!("The host was NOT put back as it was: 1 setting differs; {settings}."),
        count => format!("The host was NOT put back as it was: {count} settings differ; {settings}."),
    };
    RestorationView { summary, not_restored: inlined(&end.not_restored), remarks: inlined(&end.remarks) }
}

fn design_view(parts: Evidence<'_>) -> DesignView {
    let design = &parts.recording.header.design;
    let factors = design.factors.iter().map(|factor| {
        let levels: Vec<String> = factor.levels.iter().map(|level| code(level)).collect();
        let kind = match factor.hard_to_change {
            _ if published(design) => "as published",
            true => "hard to change: makes whole plots",
            false => "changed from trial to trial",
        };
        vec![code(&factor.name), levels.join(", "), kind.to_owned()]
    });
    let factors: Vec<_> = factors.collect();
    let held: Vec<String> = design.treatments.first().map_or_else(Vec::new, |first| {
        let everywhere = first
            .settings
            .iter()
            .filter(|setting| design.treatments.iter().all(|other| other.settings.contains(*setting)));
        everywhere.cloned().collect()
    });
    let treatments = design.treatments.iter().enumerate().map(|(index, treatment)| {
        let own: Vec<String> =
            treatment.settings.iter().filter(|setting| !held.contains(*setting)).map(|setting| code(setting)).collect();
        let settings = if own.is_empty() { "-".to_owned() } else { own.join("; ") };
        vec![format!("T{}", index + 1), code(&treatment.name), settings]
    });
    DesignView {
        factors: (!factors.is_empty()).then(|| Table::new(&["factor", "levels", "how"], factors)),
        treatments: Table::new(&["", "treatment", "settings"], treatments.collect()),
        held: held.iter().map(|setting| code(setting)).collect(),
        processes: processes(design),
        protocol: protocol(design),
        order: order(parts),
    }
}

/// Every process once, with the treatments it differs in.
fn processes(design: &Design) -> Option<Table> {
    let mut seen: Vec<(&'static str, &ProcessPlan, Vec<usize>)> = Vec::new();
    for (index, treatment) in design.treatments.iter().enumerate() {
        let all = treatment.workloads.iter().map(|plan| ("workload", plan));
        for (kind, plan) in all.chain(treatment.backgrounds.iter().map(|plan| ("background", plan))) {
            match seen.iter_mut().find(|(known, other, _)| *known == kind && *other == plan) {
                Some((_, _, treatments)) => treatments.push(index),
                None => seen.push((kind, plan, vec![index])),
            }
        }
    }
    let rows = seen.into_iter().map(|(kind, plan, treatments)| {
        let everywhere = treatments.len() == design.treatments.len();
        let numbers = treatments.iter().filter_map(|index| u32::try_from(index + 1).ok());
        vec![
            kind.to_owned(),
            code(&plan.name),
            code(&plan.command),
            plan.cpus.as_ref().map_or_else(|| "not pinned".to_owned(), ToString::to_string),
            plan.instances.to_string(),
            if everywhere {
                "all".to_owned()
            } else {
                format!("T{}", crate::cpu_set::to_list(numbers).replace(',', ", T").replace('-', "-T"))
            },
        ]
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| Table::new(&["", "name", "command", "CPUs", ">copies", "treatments"], rows))
}

fn protocol(design: &Design) -> Vec<String> {
    let protocol = &design.protocol;
    if published(design) {
        return vec![
            "published numbers: order and conditions of their trials are not known, so nothing is paired and drift cannot be told from effect"
                .to_owned(),
        ];
    }
    let order = match protocol.order.as_str() {
        "blocks" => format!(
            "randomised complete blocks: {} blocks, each with one trial of every treatment in random order",
            protocol.blocks
        ),
        "shuffled" => format!("completely randomised, {} repetitions of every treatment", protocol.blocks),
        "sequential" => {
            format!("sequential: all {} trials of one treatment, then all of the next; no verdict", protocol.blocks)
        }
        other => format!("{}, {} repetitions", inline(other), protocol.blocks),
    };
    let until = protocol.until.as_ref().map(two_stage);
    let lines = vec![
        order,
        format!("seed {} (order algorithm {})", protocol.seed, protocol.order_version),
        match protocol.warmup {
            0 => "no warm-up trials".to_owned(),
            1 => "1 warm-up trial per treatment, run first and left out of the results".to_owned(),
            count => format!("{count} warm-up trials per treatment, run first and left out of the results"),
        },
        format!(
            "settle {}, limit of a trial {}, {} repetitions of an invalid trial at most",
            facts::duration_ms(protocol.settle_ms),
            facts::duration_ms(protocol.timeout_ms),
            protocol.retries
        ),
    ];
    lines.into_iter().chain(until).collect()
}

/// The rule of a two-stage run and what its one look gave.
fn two_stage(until: &Until) -> String {
    let rule = format!(
        "two-stage: after a pilot of {} blocks one look at the spread of {}, then as many blocks as a 95 % interval of ±{} \
         needs, {} at most; no p is looked at",
        until.pilot,
        code(&until.metric),
        percent(until.within),
        until.max
    );
    let Some(decision) = &until.decided else { return format!("{rule}; the look was not taken") };
    let spread = decision.spread.map_or_else(String::new, |spread| {
        format!("the largest variation was {} % over {} values, ", significant(spread * 100.0, 2), decision.n)
    });
    let needed =
        decision.needed.map_or_else(|| "which tells no number".to_owned(), |n| format!("which needs {n} blocks"));
    let missed = if decision.target_missed() { ": target not reached" } else { "" };
    format!("{rule}; {spread}{needed}; {} blocks in all{missed}", decision.blocks)
}

/// The order as it happened: one line per block, treatments by their short names, `!` behind invalid trials.
fn order(parts: Evidence<'_>) -> String {
    let mut trials: Vec<_> = parts.recording.trials.iter().collect();
    trials.sort_by_key(|trial| trial.sequence);
    let mut lines: Vec<(u32, String)> = Vec::new();
    let mut places: BTreeMap<u32, usize> = BTreeMap::new();
    for trial in trials {
        let mark = if trial.faults.is_empty() { "" } else { "!" };
        let word = format!(" T{}{mark}", trial.treatment + 1);
        let place = *places.entry(trial.block).or_insert(lines.len());
        match lines.get_mut(place) {
            Some((_, line)) => line.push_str(&word),
            None => lines.push((trial.block, word)),
        }
    }
    let more = lines.len().saturating_sub(ORDER_LINES);
    let shown = lines.iter().take(ORDER_LINES).map(|(block, line)| match block {
        0 => format!("warm-up :{line}"),
        block => format!("block {block:>2}:{line}"),
    });
    let mut shown: Vec<String> = shown.collect();
    if more > 0 {
        shown.push(format!("and {more} more blocks in the recording"));
    }
    shown.join("\n")
}

fn methods(parts: Evidence<'_>) -> Vec<String> {
    let comparisons = &parts.findings.comparisons;
    let method = |wanted: Method| comparisons.iter().filter_map(|finding| finding.estimate).any(|e| e.method == wanted);
    let mut lines = vec![
        if published(&parts.recording.header.design) {
            "The numbers are those of the file, as they were published. None is left out, and none was measured here."
        } else {
            "A trial gives one value per metric. Invalid and warm-up trials are recorded and left out; no other value is."
        }
        .to_owned(),
    ];
    let cells = || parts.findings.metrics.iter().flat_map(|metric| &metric.cells);
    if cells().any(|cell| cell.published.is_some_and(|side| side.n.is_none())) {
        lines.push(
            "Of low, high and average of an unknown number of values, averages and ranges are compared and no more; (high - low) / 2 is not an error bar."
                .to_owned(),
        );
    }
    if cells().any(|cell| cell.recovered) {
        lines.push(
            "The middle of three values is 3 × average - low - high; such rows are judged as samples.".to_owned(),
        );
    }
    if method(Method::WelchBound) {
        lines.push("Low, high, average and n bound the spread: Welch's t test of plain averages is made with both bounds, and p is the largest. The interval holds the ratios of averages that this test does not reject.".to_owned());
    }
    if method(Method::PairedT) {
        lines.push("Ratios are of geometric means, level / base; 95 % interval and p from a paired t test of ln values over blocks.".to_owned());
    }
    if method(Method::WelchT) {
        lines.push("Unblocked ratios are of geometric means, level / base; 95 % interval and p from Welch's t test of ln values.".to_owned());
    }
    if comparisons.iter().any(|finding| finding.scale == crate::analysis::Scale::Difference) {
        lines
            .push("Metrics with values of zero or below are compared by difference of means, level - base.".to_owned());
    }
    if comparisons.iter().any(|finding| finding.exact.is_some()) {
        lines.push("The exact p (sign flip over blocks; without blocks Mann-Whitney, or a permutation inside the levels averaged over) needs no model; it cannot go below the value beside it.".to_owned());
    }
    if comparisons.iter().any(|finding| finding.robust.is_some()) {
        lines.push("Hodges-Lehmann is the median of all ratios of a value of the level to one of the base (over blocks: of all averages of two), with its exact interval and what that covers; in so many pairs of such values the level was higher. One wild run cannot move it; the verdict does not follow it.".to_owned());
    }
    if cells().any(|cell| cell.summary.is_some_and(|summary| summary.median_interval.is_some())) {
        lines.push("The interval beside a median is from order statistics: 95 % from six values on; of fewer it is lowest to highest, with what that covers.".to_owned());
    }
    if comparisons.iter().any(|finding| finding.p_holm.is_some()) {
        lines.push(
            "Holm p is corrected for all declared comparisons of the same metric and the interactions looked at; verdicts follow it at 0.05."
                .to_owned(),
        );
    }
    let margins: Vec<String> =
        parts.recording.header.design.comparisons.iter().filter_map(|c| c.margin).map(percent).collect();
    if let Some(margin) = margins.first() {
        let which =
            if margins.iter().all(|other| other == margin) { format!("±{margin}") } else { "its margin".to_owned() };
        lines.push(format!("Equivalent means: two one-sided tests at 5 % put the whole effect within {which}."));
    }
    if !comparisons.is_empty() {
        lines.push("Inconclusive means that these data do not say, not that there is no difference.".to_owned());
    }
    if !parts.findings.treatment_checks.is_empty() {
        lines.push(
            "Interrupts are counted by the kernel (`/proc/interrupts`), as the increase over each trial.".to_owned(),
        );
    }
    lines
}

fn reproduce(parts: Evidence<'_>) -> ReproduceView {
    let header = &parts.recording.header;
    let design = &header.design;
    let quote = |word: &str| shell_words::quote(word).into_owned();
    let file = header.sources.first().map_or("experiment.exp", |(path, _)| shown_path(path));
    let commands = if published(design) {
        "irqlab report .".to_owned()
    } else {
        let sets = design.params.iter().filter(|(_, _, replaced)| *replaced);
        let mut words = vec!["irqlab run".to_owned(), quote(file), "--only".to_owned(), quote(&design.name)];
        words.push(format!("--seed {}", design.protocol.seed));
        words.extend(sets.map(|(name, value, _)| format!("--set {}", quote(&format!("{name}={value}")))));
        words.join(" ")
    };
    let params = design.params.iter().map(|(name, value, replaced)| {
        vec![
            code(name),
            code(value),
            if *replaced { "given by the caller".to_owned() } else { "as in the file".to_owned() },
        ]
    });
    let params: Vec<_> = params.collect();
    let mut files: Vec<FileView> = header.sources.iter().map(|(path, text)| source_view(path, text)).collect();
    if let (Some(path), Some(text)) = (&design.template, &design.template_text) {
        files.push(file_view(path, text, "jinja"));
    }
    ReproduceView {
        commands: fenced(&commands, "sh"),
        params: (!params.is_empty()).then(|| Table::new(&["parameter", "value", "from"], params)),
        files,
    }
}

/// An experiment's file as it is; of a file of numbers the beginning.
fn source_view(path: &str, text: &str) -> FileView {
    let extension = std::path::Path::new(path).extension().and_then(|extension| extension.to_str());
    let language = match extension {
        Some("csv") => "csv",
        Some("json") => "json",
        _ => return file_view(path, text, "exp"),
    };
    let more = text.lines().count().saturating_sub(DATA_LINES);
    if more == 0 {
        return file_view(path, text, language);
    }
    let shown: Vec<&str> = text.lines().take(DATA_LINES).collect();
    file_view(path, &format!("{}\n… and {more} more lines, all of them in the recording\n", shown.join("\n")), language)
}

fn file_view(path: &str, text: &str, language: &str) -> FileView {
    FileView { path: code(shown_path(path)), block: fenced(text, language) }
}
