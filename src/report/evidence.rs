//! Treatment checks, invalid trials and warnings in words.

use std::collections::BTreeMap;

use super::Evidence;
use super::number::{fixed, p_relation, percent, share, significant};
use super::published;
use super::sentence::with_unit;
use super::tables::{context, digits, treatment};
use super::text::{Table, code, inline};
use super::view::CheckView;
use crate::analysis::{Findings, IrqLanding, TreatmentCheck, Warning};
use crate::recording::{Design, Fault};

/// CPUs that get a column of their own; the rest of a large host is folded.
const CPU_COLUMNS: usize = 8;

/// Treatments named in one warning.
const NAMED: usize = 3;

/// IRQs shown per treatment.
const BUSIEST: usize = 5;

/// CPUs named in one cell.
const CPUS_IN_CELL: usize = 4;

/// Whether settings were in force.
pub(super) fn treatment_check(evidence: Evidence<'_>) -> CheckView {
    let design = &evidence.recording.header.design;
    let checks = &evidence.findings.treatment_checks;
    let routed = |check: &TreatmentCheck| check.active_irqs.1 > 0;
    let rows = checks.iter().filter(|check| routed(check)).map(|check| {
        vec![
            treatment(design, check.treatment),
            check.trials.to_string(),
            format!("{} of {}", check.active_irqs.0, check.active_irqs.1),
            check.interrupts.to_string(),
            share(check.on_asked_cpus, check.interrupts),
            if check.trials_with_foreign_masks == 0 {
                "none".to_owned()
            } else {
                check.trials_with_foreign_masks.to_string()
            },
        ]
    });
    let rows: Vec<_> = rows.collect();
    let table = (!rows.is_empty()).then(|| {
        Table::new(
            &[
                "treatment",
                ">trials",
                ">routed IRQs active",
                ">their interrupts",
                ">landed where asked",
                ">trials with foreign masks",
            ],
            rows,
        )
    });
    CheckView {
        summary: summary(checks),
        table,
        movers: movers(design, checks),
        by_cpu: by_cpu(design, checks, |check| &check.by_cpu),
        irqs: busiest(design, checks),
        all_by_cpu: by_cpu(design, checks, |check| &check.all_by_cpu),
        softirqs_by_cpu: by_cpu(design, checks, |check| &check.softirqs_by_cpu),
    }
}

/// What moved interrupts while trials ran: how often, and at what cost.
fn movers(design: &Design, checks: &[TreatmentCheck]) -> Option<Table> {
    let rows = checks.iter().filter_map(|check| {
        let mover = check.mover.as_ref()?;
        let per_second =
            |number: f64| if mover.seconds > 0.0 { significant(number / mover.seconds, 3) } else { "—".into() };
        Some(vec![
            treatment(design, check.treatment),
            mover.trials.to_string(),
            mover.moves.to_string(),
            per_second(mover.moves as f64),
            mover.refused.to_string(),
            format!("{} %", per_second(mover.cpu_seconds * 100.0)),
            per_second(mover.switches as f64),
        ])
    });
    let rows: Vec<_> = rows.collect();
    let headings =
        ["treatment", ">trials", ">moves", ">moves/s", ">refused", ">mover's CPU time", ">its context switches/s"];
    (!rows.is_empty()).then(|| Table::new(&headings, rows))
}

fn summary(checks: &[TreatmentCheck]) -> String {
    let routed: Vec<&TreatmentCheck> = checks.iter().filter(|check| check.active_irqs.1 > 0).collect();
    if routed.is_empty() {
        return "No treatment routes an interrupt, so there is no landing to check.".to_owned();
    }
    let interrupts: u64 = routed.iter().map(|check| check.interrupts).sum();
    let asked: u64 = routed.iter().map(|check| check.on_asked_cpus).sum();
    let foreign: usize = routed.iter().map(|check| check.trials_with_foreign_masks).sum();
    let masks = match foreign {
        0 => "Every mask read back as asked, before and after each trial.".to_owned(),
        1 => "In 1 trial a mask was not as asked when it was read back.".to_owned(),
        _ => format!("In {foreign} trials a mask was not as asked when it was read back."),
    };
    if interrupts == 0 {
        return format!("The routed IRQs saw no interrupt while trials ran, so routing had nothing to act on. {masks}");
    }
    let landed = share(asked, interrupts);
    format!("Of {interrupts} interrupts of routed IRQs {landed} landed on a CPU their mask allowed. {masks}")
}

fn by_cpu(
    design: &Design,
    checks: &[TreatmentCheck],
    counts: fn(&TreatmentCheck) -> &Vec<(u32, u64)>,
) -> Option<Table> {
    let mut totals: BTreeMap<u32, u64> = BTreeMap::new();
    for (cpu, count) in checks.iter().flat_map(counts) {
        let total = totals.entry(*cpu).or_default();
        *total = total.saturating_add(*count);
    }
    if totals.values().all(|total| *total == 0) {
        return None;
    }
    let mut shown: Vec<u32> = totals.keys().copied().collect();
    if shown.len() > CPU_COLUMNS {
        shown.sort_by_key(|cpu| (std::cmp::Reverse(totals[cpu]), *cpu));
        shown.truncate(CPU_COLUMNS - 1);
        shown.sort_unstable();
    }
    let others = totals.len() - shown.len();
    let rows = checks.iter().filter(|check| !counts(check).is_empty()).map(|check| {
        let of =
            |cpu: u32| counts(check).iter().filter(|(other, _)| *other == cpu).map(|(_, count)| *count).sum::<u64>();
        let total: u64 = counts(check).iter().map(|(_, count)| *count).sum();
        let named: Vec<u64> = shown.iter().map(|cpu| of(*cpu)).collect();
        let rest = total - named.iter().sum::<u64>();
        let mut row = vec![treatment(design, check.treatment)];
        row.extend(named.iter().map(u64::to_string));
        row.extend((others > 0).then(|| rest.to_string()));
        row.push(total.to_string());
        row
    });
    let mut headings: Vec<String> = vec!["treatment".to_owned()];
    headings.extend(shown.iter().map(|cpu| format!(">CPU {cpu}")));
    headings.extend((others > 0).then(|| format!(">{others} other CPUs")));
    headings.push(">all".to_owned());
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    Some(Table::new(&headings, rows.collect()))
}

fn busiest(design: &Design, checks: &[TreatmentCheck]) -> Option<Table> {
    let mut rows = Vec::new();
    for check in checks {
        let total = |landing: &IrqLanding| landing.by_cpu.iter().map(|(_, count)| *count).sum::<u64>();
        let mut landings: Vec<&IrqLanding> = check.irqs.iter().collect();
        landings.sort_by_key(|landing| (std::cmp::Reverse(total(landing)), landing.label.len(), landing.label.clone()));
        for landing in landings.iter().take(BUSIEST) {
            rows.push(vec![
                treatment(design, check.treatment),
                code(&landing.label),
                code(&landing.description),
                landing.asked.to_string(),
                landed(&landing.by_cpu, total(landing)),
                total(landing).to_string(),
            ]);
        }
        if landings.len() > BUSIEST {
            let rest: u64 = landings[BUSIEST..].iter().map(|landing| total(landing)).sum();
            let count = landings.len() - BUSIEST;
            rows.push(vec![
                treatment(design, check.treatment),
                format!("{count} more"),
                String::new(),
                String::new(),
                String::new(),
                rest.to_string(),
            ]);
        }
    }
    (!rows.is_empty()).then(|| {
        Table::new(&["treatment", "IRQ", "chip and actions", "CPUs asked", "landed on CPU", ">interrupts"], rows)
    })
}

/// `0: 98.0 %, 1: 2.0 %, 3 others: < 0.1 %`
fn landed(by_cpu: &[(u32, u64)], total: u64) -> String {
    let mut counts: Vec<(u32, u64)> = by_cpu.iter().copied().filter(|(_, count)| *count > 0).collect();
    counts.sort_by_key(|(cpu, count)| (std::cmp::Reverse(*count), *cpu));
    let mut parts: Vec<String> =
        counts.iter().take(CPUS_IN_CELL).map(|(cpu, count)| format!("{cpu}: {}", share(*count, total))).collect();
    if counts.len() > CPUS_IN_CELL {
        let rest: u64 = counts[CPUS_IN_CELL..].iter().map(|(_, count)| *count).sum();
        parts.push(format!("{} others: {}", counts.len() - CPUS_IN_CELL, share(rest, total)));
    }
    parts.join(", ")
}

/// Trials outside the analysis, with their reasons.
pub(super) fn invalid_trials(design: &Design, findings: &Findings) -> Option<Table> {
    let rows = findings.invalid_trials.iter().map(|trial| {
        let faults: Vec<String> = trial.faults.iter().map(fault).collect();
        let block = if trial.block == 0 { "warm-up".to_owned() } else { trial.block.to_string() };
        let attempt = (trial.attempt + 1).to_string();
        vec![trial.number.to_string(), block, attempt, treatment(design, trial.treatment), faults.join("; ")]
    });
    let rows: Vec<_> = rows.collect();
    (!rows.is_empty()).then(|| Table::new(&[">trial", ">block", ">try", "treatment", "why it does not count"], rows))
}

/// What was wrong with a trial.
fn fault(fault: &Fault) -> String {
    match fault {
        Fault::BackgroundFailed { process, detail } => {
            format!("background {} failed: {}", code(process), inline(detail))
        }
        Fault::CpusChanged { before, after } => format!("online CPUs changed from {before} to {after} while it ran"),
        Fault::ExitStatus { process, status, output } => {
            let said = if output.trim().is_empty() { String::new() } else { format!(", saying {}", code(output)) };
            format!("{} ended with status {status}{said}", code(process))
        }
        Fault::Interrupted { signal } => format!("the run was stopped by {}", inline(signal)),
        Fault::MachineFailed { detail, console } => {
            let said = console.lines().map(str::trim).rfind(|line| !line.is_empty());
            let said = said.map(|line| format!("; the last line of its console: {}", code(line))).unwrap_or_default();
            format!("the lab's machine failed: {}{said}", inline(detail))
        }
        Fault::MaskRewritten { irqs, asked, found } => {
            let irqs = crate::cpu_set::to_list(irqs.0.iter().map(|irq| irq.0));
            format!("somebody rewrote the mask of IRQ {irqs}: asked {asked}, found {found}")
        }
        Fault::OutputNotParsed { process, metric, detail } => {
            format!("{} not found in the output of {}: {}", code(metric), code(process), inline(detail))
        }
        Fault::SettingRefused { setting, detail } => format!("{} was refused: {}", code(setting), inline(detail)),
        Fault::Signal { process, signal } => format!("{} was ended by {}", code(process), inline(signal)),
        Fault::StartFailed { process, detail } => format!("{} could not be started: {}", code(process), inline(detail)),
        Fault::TimedOut { process, limit_ms } => {
            format!("{} ran into its limit of {}", code(process), super::facts::duration_ms(*limit_ms))
        }
        Fault::TreatmentNotInForce { detail } => format!("treatment not in force: {}", inline(detail)),
    }
}

/// Every warning in words, with what to do. Those that [`super::build`] shows as alarms are left out.
pub(super) fn warnings(evidence: Evidence<'_>) -> Vec<String> {
    let doubts = evidence.findings.warnings.iter().filter_map(|warning| in_words(evidence, warning));
    let notes = evidence.recording.notes.iter().map(|note| format!("**Recording**: {}.", inline(note)));
    doubts.chain(notes).collect()
}

fn in_words(evidence: Evidence<'_>, warning: &Warning) -> Option<String> {
    let design = &evidence.recording.header.design;
    let label = |metric: &str| context(design, evidence.findings, metric).label(metric);
    let text = match warning {
        Warning::NotComplete { .. } | Warning::NotRestored { .. } => return None,
        Warning::NoiseFloor { metric, treatment: index, rows, ratio } => {
            published::noise_floor(design, &label(metric), (*index, *rows), *ratio)
        }
        Warning::OneExtreme { metric, treatment: index, end } => {
            published::one_extreme(design, &label(metric), *index, *end)
        }
        Warning::ExactCannotReach { comparisons, min_p, .. } if design.protocol.order == "recorded" => format!(
            "**Exact tests cannot reach 0.05**: with so few values and {} of a metric their smallest possible p is {}. \
             Only new trials can change that.",
            if *comparisons == 1 { "1 comparison".to_owned() } else { format!("{comparisons} comparisons") },
            super::number::p_value(*min_p)
        ),
        Warning::BlocksShareBoot { blocks } => format!(
            "**Shared boots**: {} not booted anew for every whole plot. Comparisons between boots take blocks that share a \
             boot for one; comparisons within boots are not concerned.",
            blocks_list(blocks)
        ),
        Warning::BootOptionNotInForce { treatment: index, option, boots, of, evidence } => format!(
            "**Boot option not in force**: {} of {} was not in force in {boots} of {of} boots ({}). Its trials are \
             measured and compared as what they are, and say nothing of the option.",
            code(option),
            treatment(design, *index),
            inline(evidence)
        ),
        Warning::WholePlotSplit { blocks } => format!(
            "**Whole plots over several boots**: {} with a whole plot that one boot should have served and several did, \
             because a machine failed or was booted again. Comparisons within boots leave out pairs that ran in two; see \
             the boots.",
            blocks_list(blocks)
        ),
        Warning::IncompleteBlocks { blocks } => format!(
            "**Incomplete blocks**: {} without a valid trial of every treatment; comparisons use the pairs that are \
             complete. See the invalid trials, remove their cause and run again.",
            blocks_list(blocks)
        ),
        Warning::InterruptsElsewhere { treatment: index, share } => format!(
            "**Interrupts elsewhere**: under {} {} % of the interrupts of routed IRQs landed on CPUs their masks do not \
             allow. A mask acts on the next interrupt only; lengthen `settle`, and look for a program that writes masks.",
            treatment(design, *index),
            significant(share * 100.0, 2)
        ),
        Warning::NoInterrupts { treatment: index } => return no_interrupts(evidence, *index),
        Warning::Drift { metric, percent_per_run, p } => format!(
            "**Drift**: {} changes by {} % per trial over the run (Kendall's tau on residuals, p{}). Blocks keep it out \
             of the comparisons, but look for its cause: heat, a filling disk, another job.",
            label(metric),
            significant(*percent_per_run, 2),
            p_relation(*p)
        ),
        Warning::FirstBlock { metric, ratio, p } => format!(
            "**First block differs**: {} is {}× that of the later blocks (p{}). Raise `warmup`; nothing was removed.",
            label(metric),
            significant(*ratio, 3),
            p_relation(*p)
        ),
        Warning::FirstRunsWorst { metric, worst, cells, p } => format!(
            "**First runs are the worst**: under {worst} of {cells} treatments the first run has the worst {} (p{}). Raise \
             `warmup`; nothing was removed.",
            label(metric),
            p_relation(*p)
        ),
        Warning::Outlier { metric, treatment: index, block, value, p } => {
            let findings = evidence.findings.metrics.iter().find(|candidate| candidate.id == *metric);
            let shown = findings.map_or_else(|| significant(*value, 5), |metric| fixed(*value, digits(metric).values));
            format!(
                "**Outlier**: {} = {} in block {block} of {} (Grubbs on ln values, p{}). It is kept; look at what ran \
                 then, and repeat more often.",
                label(metric),
                with_unit(&shown, findings.map_or("", |metric| metric.unit.as_str())),
                treatment(design, *index),
                p_relation(*p)
            )
        }
        Warning::ControlDiffers { metric, treatment: index, copy, ratio, p } => format!(
            "**A/A control differs**: on {} {} is {}× its identical copy {} (p{}). The noise is larger than the \
             intervals say; doubt every effect of this size, and look for what disturbs the host.",
            label(metric),
            treatment(design, *index),
            significant(*ratio, 3),
            treatment(design, *copy),
            p_relation(*p)
        ),
        Warning::TargetNotReached { metric, within, needed, blocks } => {
            let needed = needed.map_or_else(
                || "how many blocks it needs cannot be told from the pilot".to_owned(),
                |needed| format!("by the pilot it needs {needed} blocks, and {blocks} were allowed"),
            );
            format!(
                "Target not reached: {} was to be known within {}; {needed}. The intervals are right all the same, and wider.",
                code(metric),
                percent(*within)
            )
        }
        Warning::HostChanged { what } => format!(
            "**Host changed** between parts of a resumed run: {}. Compare within one part only, or run again in one go.",
            what.iter().map(|what| inline(what)).collect::<Vec<_>>().join("; ")
        ),
        Warning::NoVariation { metric, treatment: index } => format!(
            "**No variation**: all values of {} under {} are the same number, so the metric is too coarse to judge a \
             difference by. Let the workload do more, or measure something finer.",
            label(metric),
            treatment(design, *index)
        ),
        Warning::ExactCannotReach { blocks, comparisons, min_p } => format!(
            "**Exact tests cannot reach 0.05**: with {blocks} repetitions and {comparisons} comparisons their smallest \
             possible p is {}, so verdicts rest on the t model. Raise `repeat`.",
            super::number::p_value(*min_p)
        ),
        Warning::RunnerOnMeasuredCpus { cpus } => format!(
            "**Runner on measured CPUs**: irqlab itself was on CPU {cpus}, where a workload ran. It sleeps while a trial \
             runs, but leave it a CPU of its own with `on` where the host has one.",
        ),
    };
    Some(text)
}

fn blocks_list(blocks: &[u32]) -> String {
    let list = crate::cpu_set::to_list(blocks.iter().copied());
    if blocks.len() == 1 { format!("block {list} is") } else { format!("blocks {list} are") }
}

/// Treatments whose IRQs saw nothing, said once for all of them, where the first stands.
fn no_interrupts(evidence: Evidence<'_>, index: usize) -> Option<String> {
    let silent = evidence.findings.warnings.iter().filter_map(|warning| match warning {
        Warning::NoInterrupts { treatment } => Some(*treatment),
        _ => None,
    });
    let silent: Vec<usize> = silent.collect();
    if silent.first() != Some(&index) {
        return None;
    }
    let design = &evidence.recording.header.design;
    let mut names: Vec<String> = silent.iter().take(NAMED).map(|index| treatment(design, *index)).collect();
    if silent.len() > NAMED {
        names.push(format!("{} more", silent.len() - NAMED));
    }
    let (last, rest) = names.split_last()?;
    let (which, their) = if rest.is_empty() {
        (last.clone(), ("its trials", "the treatment"))
    } else {
        (format!("{} and {last}", rest.join(", ")), ("their trials", "these treatments"))
    };
    Some(format!(
        "**No interrupts**: the IRQs routed by {which} saw none while {} ran, so that {} made no difference to anything. \
         Add a background that uses the device.",
        their.0, their.1
    ))
}
