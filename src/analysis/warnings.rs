//! Doubts about a recording's numbers. Thresholds are here and nowhere else.

use std::collections::{BTreeMap, BTreeSet};

use super::comparison::{Material, control_differences};
use super::doubts::{first_block, first_worst_p, grubbs, trend};
use super::exact::{min_p_paired, min_p_unpaired};
use super::published::one_extreme;
use super::recorded::widest_control;
use super::sides::{Layout, scale_of};
use super::summary::mean;
use super::values::Values;
use super::{BootOptionCheck, ComparisonFinding, Scale, TreatmentCheck, Warning};
use crate::cpu_set::CpuSet;
use crate::recording::{Direction, End, Header, HostFacts, Trial};

/// Share of interrupts outside their masks that is worth a word: the first ones after a change still go to the old CPU.
const ELSEWHERE: f64 = 0.01;

/// So few interrupts a trial outside their masks are no sign of anything, whatever their share: each change may leave
/// one delivery on the way.
const ELSEWHERE_PER_TRIAL: u64 = 1;

/// Share of a CPU that the runner may use on measured CPUs unnoticed.
const RUNNER_SHARE: f64 = 0.001;

/// Level of the drift and first-block tests.
const DOUBT: f64 = 0.01;

/// What of a recording the warnings look at.
pub(super) struct Evidence<'a> {
    pub(super) header: &'a Header,
    /// All trials.
    pub(super) trials: &'a [Trial],
    pub(super) resumed: &'a [(String, HostFacts)],
    pub(super) end: Option<&'a End>,
}

/// What is known of treatments being in force.
#[derive(Debug, Clone, Copy)]
pub(super) struct Checks<'a> {
    /// From counters and masks.
    pub(super) treatments: &'a [TreatmentCheck],
    /// From what kernels show of boot options.
    pub(super) options: &'a [BootOptionCheck],
}

/// Warnings about the run, then about the treatments, then about the numbers.
pub(super) fn warnings(
    evidence: &Evidence,
    material: &Material,
    checks: Checks<'_>,
    comparisons: &[ComparisonFinding],
) -> Vec<Warning> {
    let mut warnings = about_the_run(evidence, material);
    for check in checks.options.iter().filter(|check| check.not_in_force > 0) {
        warnings.push(Warning::BootOptionNotInForce {
            treatment: check.treatment,
            option: check.option.clone(),
            boots: check.not_in_force,
            of: check.in_force + check.not_in_force + check.not_shown,
            evidence: check.evidence.join("; "),
        });
    }
    for check in checks.treatments {
        let treatment = check.treatment;
        let elsewhere = check.interrupts - check.on_asked_cpus;
        let share = elsewhere as f64 / check.interrupts.max(1) as f64;
        if share > ELSEWHERE && elsewhere > ELSEWHERE_PER_TRIAL * check.trials as u64 {
            warnings.push(Warning::InterruptsElsewhere { treatment, share });
        }
        if check.active_irqs.1 > 0 && check.trials > 0 && check.interrupts == 0 {
            warnings.push(Warning::NoInterrupts { treatment });
        }
    }
    for values in material.values {
        about_a_metric(material, values, &mut warnings);
    }
    warnings.extend(exact_cannot_reach(material, comparisons));
    warnings
}

fn about_the_run(evidence: &Evidence, material: &Material) -> Vec<Warning> {
    let mut warnings = Vec::new();
    // Published numbers come without an end: nothing was run.
    let was_run = evidence.header.design.protocol.order != "recorded";
    match evidence.end {
        None if was_run => warnings.push(Warning::NotComplete { reason: "the recording has no end".to_owned() }),
        Some(end) if end.reason != "complete" => warnings.push(Warning::NotComplete { reason: end.reason.clone() }),
        _ => {}
    }
    if let Some(end) = evidence.end.filter(|end| !end.not_restored.is_empty()) {
        warnings.push(Warning::NotRestored { what: end.not_restored.clone() });
    }
    if let Some(until) = &evidence.header.design.protocol.until
        && let Some(decision) = until.decided.as_ref().filter(|decision| decision.target_missed())
    {
        warnings.push(Warning::TargetNotReached {
            metric: until.metric.clone(),
            within: until.within,
            needed: decision.needed,
            blocks: decision.blocks,
        });
    }
    let changed: BTreeSet<String> =
        evidence.resumed.iter().flat_map(|(_, host)| host_differences(&evidence.header.host, host)).collect();
    let changed: Vec<String> = changed.into_iter().filter(|fact| !by_design(evidence.header, fact)).collect();
    if !changed.is_empty() {
        warnings.push(Warning::HostChanged { what: changed });
    }
    let blocks = incomplete_blocks(evidence.header, material.trials);
    if !blocks.is_empty() {
        warnings.push(Warning::IncompleteBlocks { blocks });
    }
    let (shared, split) = (material.boots.sharing_blocks(), material.boots.split_blocks());
    if !shared.is_empty() && material.layout() == Layout::Blocked {
        warnings.push(Warning::BlocksShareBoot { blocks: shared });
    }
    if !split.is_empty() && material.layout() == Layout::Blocked {
        warnings.push(Warning::WholePlotSplit { blocks: split });
    }
    let cpus = runner_on_measured(evidence.trials);
    if !cpus.is_empty() {
        warnings.push(Warning::RunnerOnMeasuredCpus { cpus });
    }
    warnings
}

/// Facts that a boot with other options changes, where boots were asked for.
fn by_design(header: &Header, fact: &str) -> bool {
    let facts = ["kernel command line", "NMI watchdog", "online CPUs", "SMT"];
    !header.boots.is_empty() && facts.contains(&fact)
}

fn host_differences(before: &HostFacts, after: &HostFacts) -> Vec<String> {
    let facts = [
        ("clock source", before.clocksource != after.clocksource),
        ("CPU model", before.cpu_model != after.cpu_model),
        ("frequency governor", before.governors != after.governors),
        ("kernel command line", before.command_line != after.command_line),
        ("kernel release", before.kernel_release != after.kernel_release),
        ("kernel version", before.kernel_version != after.kernel_version),
        ("memory", before.memory_bytes != after.memory_bytes),
        ("mitigations", before.mitigations != after.mitigations),
        ("NMI watchdog", before.nmi_watchdog != after.nmi_watchdog),
        ("online CPUs", before.topology.online != after.topology.online),
        ("SMT", before.topology.smt_active != after.topology.smt_active),
        ("virtualisation", before.virtualisation != after.virtualisation),
        ("writers of masks", before.writers != after.writers),
    ];
    facts.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name.to_owned()).collect()
}

/// Blocks, or repetitions, in which a planned trial has no valid run.
fn incomplete_blocks(header: &Header, valid: &[&Trial]) -> Vec<u32> {
    let done: BTreeSet<u32> = valid.iter().map(|trial| trial.number).collect();
    let open = header.order.iter().filter(|planned| planned.block > 0 && !done.contains(&planned.number));
    open.map(|planned| planned.block).collect::<BTreeSet<u32>>().into_iter().collect()
}

/// CPUs on which both a workload and the runner were, if the runner cost more than a trace there.
fn runner_on_measured(trials: &[Trial]) -> CpuSet {
    let ran = || trials.iter().filter(|trial| trial.block > 0);
    let cost: f64 = ran().map(|trial| trial.runner.cpu_us as f64 * 1e3).sum();
    let time: f64 = ran().map(|trial| trial.duration_ns as f64).sum();
    if cost <= RUNNER_SHARE * time {
        return CpuSet::new();
    }
    let shared =
        ran().flat_map(|trial| trial.processes.iter().map(|process| process.cpus.intersection(&trial.runner.cpus)));
    shared.fold(CpuSet::new(), |all, cpus| all.union(&cpus))
}

fn about_a_metric(material: &Material, values: &Values, warnings: &mut Vec<Warning>) {
    let metric = || values.id.clone();
    for difference in control_differences(material, values) {
        warnings.push(Warning::ControlDiffers {
            metric: metric(),
            treatment: difference.treatment,
            copy: difference.copy,
            ratio: difference.ratio,
            p: difference.p,
        });
    }
    about_published(material, values, warnings);
    let order = material.design.protocol.order.as_str();
    if matches!(order, "blocks" | "shuffled") {
        warnings.extend(drift(material, values));
    }
    if Layout::of(order) == Layout::Blocked {
        warnings.extend(unlike_first_block(values));
    }
    if order == "shuffled" {
        warnings.extend(first_runs_worst(values));
    }
    let scale = scale_of(values);
    let cells = values.cells.iter().filter(|cell| cell.len() >= 5).count();
    for (treatment, cell) in values.cells.iter().enumerate() {
        let numbers: Vec<f64> = cell.values().copied().collect();
        if numbers.len() >= 3 && numbers.iter().all(|number| number.total_cmp(&numbers[0]).is_eq()) {
            warnings.push(Warning::NoVariation { metric: metric(), treatment });
        }
        let logs: Vec<f64> = numbers.iter().map(|value| on_scale(*value, scale)).collect();
        let farthest = grubbs(&logs).filter(|farthest| numbers.len() >= 5 && farthest.p < 0.05 / cells as f64);
        if let Some((farthest, (block, value))) = farthest.and_then(|far| Some((far, cell.iter().nth(far.index)?))) {
            let (block, value) = (*block, *value);
            warnings.push(Warning::Outlier { metric: metric(), treatment, block, value, p: farthest.p });
        }
    }
}

/// Identical rows of a compared metric that differ, and ranges one run seems to have made.
fn about_published(material: &Material, values: &Values, warnings: &mut Vec<Warning>) {
    let compared = material.design.comparisons.iter().any(|comparison| comparison.metrics.contains(&values.id));
    if let Some((treatment, rows, ratio)) = widest_control(material.design, values).filter(|_| compared) {
        warnings.push(Warning::NoiseFloor { metric: values.id.clone(), treatment, rows, ratio });
    }
    for (treatment, summary) in values.summaries.iter().enumerate() {
        if let Some(end) = summary.as_ref().and_then(one_extreme) {
            warnings.push(Warning::OneExtreme { metric: values.id.clone(), treatment, end });
        }
    }
}

fn on_scale(value: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Difference => value,
        Scale::Ratio => value.ln(),
    }
}

/// Kendall's test on cell-centred ln residuals in the order they ran, at least ten of them. With a declared margin the
/// drift over the whole run must also exceed half of the narrowest.
fn drift(material: &Material, values: &Values) -> Option<Warning> {
    if scale_of(values) == Scale::Difference || values.in_order.len() < 10 {
        return None;
    }
    let centre = |cell: &BTreeMap<u32, f64>| mean(&cell.values().map(|value| value.ln()).collect::<Vec<_>>());
    let centres: Vec<f64> = values.cells.iter().map(centre).collect();
    let residuals: Vec<(f64, f64)> = values
        .in_order
        .iter()
        .filter(|(_, treatment, _)| values.cells[*treatment].len() > 1)
        .map(|(sequence, treatment, value)| (f64::from(*sequence), value.ln() - centres[*treatment]))
        .collect();
    let trend = trend(&residuals).filter(|trend| residuals.len() >= 10 && trend.p <= DOUBT)?;
    let span = residuals.last()?.0 - residuals.first()?.0;
    let comparisons = material.design.comparisons.iter();
    let margins = comparisons
        .filter(|comparison| comparison.metrics.iter().any(|id| *id == values.id || *id == values.declared))
        .filter_map(|comparison| comparison.margin);
    let least = margins.min_by(f64::total_cmp).unwrap_or(0.0) / 2.0;
    let percent_per_run = 100.0 * trend.slope.exp_m1();
    let warning = Warning::Drift { metric: values.id.clone(), percent_per_run, p: trend.p };
    (trend.slope.abs() * span > least && percent_per_run.is_finite()).then_some(warning)
}

/// Block 1 against the others, when it is also the lowest or the highest of all: any block differs a little from the rest.
fn unlike_first_block(values: &Values) -> Option<Warning> {
    if scale_of(values) == Scale::Difference {
        return None;
    }
    let blocks: BTreeSet<u32> = values.cells.iter().flat_map(BTreeMap::keys).copied().collect();
    let complete: Vec<u32> =
        blocks.into_iter().filter(|block| values.cells.iter().all(|cell| cell.contains_key(block))).collect();
    if complete.first() != Some(&1) {
        return None;
    }
    let cells: Vec<Vec<f64>> =
        values.cells.iter().map(|cell| complete.iter().map(|block| cell[block].ln()).collect()).collect();
    let effect = first_block(&cells)?;
    let of_block = |block: usize| mean(&cells.iter().map(|cell| cell[block]).collect::<Vec<_>>());
    let first = of_block(0);
    let above = (1..complete.len()).all(|block| first > of_block(block));
    let below = (1..complete.len()).all(|block| first < of_block(block));
    let p = effect.p().filter(|p| *p <= DOUBT && (above || below))?;
    let ratio = effect.estimate.exp();
    ratio.is_finite().then(|| Warning::FirstBlock { metric: values.id.clone(), ratio, p })
}

/// Cells whose first run is strictly the worst of theirs, counted without blocks.
fn first_runs_worst(values: &Values) -> Option<Warning> {
    let worse = |one: f64, other: f64| match values.direction {
        Direction::HigherIsBetter => one < other,
        Direction::LowerIsBetter => one > other,
        Direction::Neutral => false,
    };
    let runs = |cell: usize| values.in_order.iter().filter(move |(_, treatment, _)| *treatment == cell);
    let cells: Vec<Vec<f64>> =
        (0..values.cells.len()).map(|cell| runs(cell).map(|(_, _, value)| *value).collect()).collect();
    let several = || cells.iter().filter(|cell| cell.len() > 1);
    let worst = several().filter(|cell| cell[1..].iter().all(|other| worse(cell[0], *other))).count();
    let sizes: Vec<usize> = several().map(Vec::len).collect();
    let p = first_worst_p(worst, &sizes).filter(|p| *p <= DOUBT)?;
    Some(Warning::FirstRunsWorst { metric: values.id.clone(), worst, cells: sizes.len(), p })
}

/// With so few values, and so many comparisons of one metric, even the clearest outcome leaves the exact test above 0.05.
fn exact_cannot_reach(material: &Material, comparisons: &[ComparisonFinding]) -> Option<Warning> {
    let judged = |values: &&Values| values.direction != Direction::Neutral;
    let family = |values: &Values| comparisons.iter().filter(|c| c.metric == values.id && c.p_holm.is_some()).collect();
    let largest: Vec<&ComparisonFinding> =
        material.values.iter().filter(judged).map(family).max_by_key(|family: &Vec<_>| family.len())?;
    let (n, m) = largest.iter().map(|comparison| comparison.n).max_by_key(|n| n.0.min(n.1))?;
    let min_p = match material.layout() {
        Layout::Blocked => min_p_paired(n),
        Layout::Sequential | Layout::Unblocked => min_p_unpaired(n, m),
    };
    let warning = Warning::ExactCannotReach { blocks: n.min(m) as u32, comparisons: largest.len(), min_p };
    (min_p * largest.len() as f64 > 0.05).then_some(warning)
}
