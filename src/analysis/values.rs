//! Metric values of trials, from raw counters and times. The only place that knows what a metric's name stands for.

use std::collections::{BTreeMap, BTreeSet};

use wildmatch::WildMatch;

use super::published::{Side, decimals, half_unit, sd_bounds, three_values};
use super::summary::{mean, summarise};
use crate::recording::{
    CounterRow, CpuTimes, Design, Direction, Header, HostFacts, Metric, MetricExpr, ProcessRecord, PublishedRow,
    PublishedValues, Trial,
};

/// Values beyond this are no measurement, and their squares would overflow.
const LARGEST: f64 = 1e100;

/// One metric, `*` expanded, with its values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Values {
    /// Canonical text, of the expansion where there was a `*`.
    pub(super) id: String,
    /// Id of the declared metric; comparisons may name either.
    pub(super) declared: String,
    /// Shown in the report.
    pub(super) label: String,
    /// Unit.
    pub(super) unit: String,
    /// Which way is better.
    pub(super) direction: Direction,
    /// Value by block, per treatment.
    pub(super) cells: Vec<BTreeMap<u32, f64>>,
    /// `(running number, treatment, value)` in the order they ran; none for published numbers.
    pub(super) in_order: Vec<(u32, usize, f64)>,
    /// Published low, high and average per treatment, where the values behind them are not known.
    pub(super) summaries: Vec<Option<Side>>,
    /// Per treatment: the values were worked out from low, high and average.
    pub(super) recovered: Vec<bool>,
    /// The most decimals of any published number.
    pub(super) decimals: Option<usize>,
}

impl Values {
    /// What is known of a treatment: its summary, or that of its values.
    pub(super) fn side(&self, treatment: usize) -> Option<Side> {
        if let Some(summary) = self.summaries.get(treatment).copied().flatten() {
            return Some(summary);
        }
        let numbers: Vec<f64> = self.cells.get(treatment)?.values().copied().collect();
        let summary = summarise(&numbers)?;
        let n = u32::try_from(summary.n).ok();
        let sd = summary.sd.map(|sd| (sd, sd));
        Some(Side { low: summary.low, high: summary.high, average: summary.mean, n, sd })
    }
}

/// The values of every declared metric of a recording of published numbers. What low, high and average of two or three
/// trials leave no doubt about is worked out.
pub(super) fn published(design: &Design, rows: &[PublishedRow]) -> Vec<Values> {
    design.metrics.iter().map(|metric| published_metric(metric, design, rows)).collect()
}

fn published_metric(metric: &Metric, design: &Design, rows: &[PublishedRow]) -> Values {
    let rows: Vec<&PublishedRow> = rows.iter().filter(|row| row.metric == metric.id).collect();
    let numbers = rows.iter().flat_map(|row| match &row.values {
        PublishedValues::Samples(samples) => samples.clone(),
        PublishedValues::Summary { low, high, average, .. } => vec![*low, *high, *average],
    });
    let decimals = decimals(numbers);
    let half_unit = half_unit(decimals);
    let treatments = design.treatments.len();
    let mut values = Values {
        id: metric.id.clone(),
        declared: metric.id.clone(),
        label: metric.label.clone(),
        unit: metric.unit.clone(),
        direction: metric.direction,
        cells: vec![BTreeMap::new(); treatments],
        in_order: Vec::new(),
        summaries: vec![None; treatments],
        recovered: vec![false; treatments],
        decimals: Some(decimals),
    };
    for row in rows.into_iter().filter(|row| row.treatment < treatments) {
        let samples = match &row.values {
            PublishedValues::Samples(samples) => samples.clone(),
            PublishedValues::Summary { low, high, average, n } => {
                let summary = (*low, *high, *average);
                let Some(samples) = n.and_then(|n| recovered(n, summary, half_unit)) else {
                    values.summaries[row.treatment] = Some(side(*n, summary, half_unit));
                    continue;
                };
                values.recovered[row.treatment] = true;
                samples
            }
        };
        let samples = samples.into_iter().filter(|value| value.abs() <= LARGEST);
        values.cells[row.treatment].extend((1..).zip(samples));
    }
    values
}

/// The whole sample behind a summary of one, two or three values; `None` for more, or when no sample has these numbers.
fn recovered(n: u32, (low, high, average): (f64, f64, f64), half_unit: f64) -> Option<Vec<f64>> {
    // Each of the three numbers is rounded by itself; an exactly halved last digit must not fail on a binary fraction.
    let rounding = 2.0 * half_unit * (1.0 + 1e-9);
    match n {
        1 if high - low <= rounding => Some(vec![average]),
        2 if (f64::midpoint(low, high) - average).abs() <= rounding => Some(vec![low, high]),
        3 => three_values(low, high, average).map(Vec::from),
        _ => None,
    }
}

/// A side of which only the summary is known. An average that its own rounding put out of reach is moved back.
fn side(n: Option<u32>, (low, high, average): (f64, f64, f64), half_unit: f64) -> Side {
    let sd = n.filter(|n| *n > 3).and_then(|n| {
        let all = f64::from(n);
        let reachable = (((all - 1.0) * low + high) / all, ((all - 1.0) * high + low) / all);
        let moved = average.clamp(reachable.0, reachable.1);
        if (moved - average).abs() > 2.0 * half_unit {
            return None;
        }
        let none = (low.total_cmp(&high).is_eq()).then_some((0.0, 0.0));
        none.or_else(|| sd_bounds(n, low, high, moved)).or_else(|| {
            // Binary fractions at the very end of what is reachable.
            sd_bounds(n, low, high, moved + 1e-12 * (average - moved + high - moved))
        })
    });
    Side { low, high, average, n, sd }
}

/// Trials that count: not warm-up, the last attempt, without fault, in the order they ran.
pub(super) fn valid_trials(trials: &[Trial]) -> Vec<&Trial> {
    let mut last: BTreeMap<u32, &Trial> = BTreeMap::new();
    for trial in trials.iter().filter(|trial| trial.block > 0) {
        let known = last.entry(trial.number).or_insert(trial);
        if (trial.attempt, trial.sequence) > (known.attempt, known.sequence) {
            *known = trial;
        }
    }
    let mut valid: Vec<&Trial> = last.into_values().filter(|trial| trial.faults.is_empty()).collect();
    valid.sort_by_key(|trial| trial.sequence);
    valid
}

/// The values of every declared metric.
pub(super) fn values(header: &Header, trials: &[&Trial]) -> Vec<Values> {
    let expanded = header.design.metrics.iter().flat_map(|metric| expand(metric, trials));
    expanded.map(|(declared, metric)| measure(&declared, metric, header, trials)).collect()
}

/// A metric with `*` becomes one for each matching name its process ever printed; itself when there is none, so that
/// its absence is seen.
fn expand(metric: &Metric, trials: &[&Trial]) -> Vec<(String, Metric)> {
    let MetricExpr::Every(pattern) = &metric.expr else { return vec![(metric.id.clone(), metric.clone())] };
    let glob = WildMatch::new(pattern);
    let processes = trials.iter().flat_map(|trial| trial.processes.iter().chain(&trial.backgrounds));
    let names: BTreeSet<String> = processes
        .flat_map(|process| process.values.keys().map(|value| format!("{}.{value}", process.name)))
        .filter(|name| glob.matches(name))
        .collect();
    if names.is_empty() {
        return vec![(metric.id.clone(), metric.clone())];
    }
    let named = |name: String| Metric {
        id: name.clone(),
        label: name.clone(),
        expr: MetricExpr::Metric(name),
        ..metric.clone()
    };
    names.into_iter().map(|name| (metric.id.clone(), named(name))).collect()
}

fn measure(declared: &str, metric: Metric, header: &Header, trials: &[&Trial]) -> Values {
    let mut cells = vec![BTreeMap::new(); header.design.treatments.len()];
    let mut in_order = Vec::new();
    for trial in trials {
        let host = header.boot_of(trial).map_or(&header.host, |boot| &boot.host);
        let source = Source { trial, host, direction: metric.direction };
        let value = source.evaluate(&metric.expr).filter(|value| value.abs() <= LARGEST);
        if let (Some(value), Some(cell)) = (value, cells.get_mut(trial.treatment)) {
            cell.insert(trial.block, value);
            in_order.push((trial.sequence, trial.treatment, value));
        }
    }
    let Metric { id, label, unit, direction, .. } = metric;
    let (summaries, recovered) = (vec![None; cells.len()], vec![false; cells.len()]);
    let declared = declared.to_owned();
    Values { id, declared, label, unit, direction, cells, in_order, summaries, recovered, decimals: None }
}

/// Where the numbers of one trial come from.
struct Source<'a> {
    trial: &'a Trial,
    host: &'a HostFacts,
    direction: Direction,
}

impl Source<'_> {
    /// The value, or `None` where a part is missing or a divisor is 0. Never a number that is not finite.
    fn evaluate(&self, expr: &MetricExpr) -> Option<f64> {
        let both = |left: &MetricExpr, right: &MetricExpr| Some((self.evaluate(left)?, self.evaluate(right)?));
        let value = match expr {
            MetricExpr::Add(left, right) => both(left, right).map(|(left, right)| left + right),
            MetricExpr::Divide(left, right) => both(left, right).map(|(left, right)| left / right),
            MetricExpr::Every(_) => None,
            MetricExpr::Metric(name) => self.metric(name),
            MetricExpr::Multiply(left, right) => both(left, right).map(|(left, right)| left * right),
            MetricExpr::Number(number) => Some(*number),
            MetricExpr::Subtract(left, right) => both(left, right).map(|(left, right)| left - right),
        };
        value.filter(|value| value.is_finite())
    }

    fn metric(&self, name: &str) -> Option<f64> {
        match name.split_once('.')? {
            ("host", rest) => self.host_metric(rest),
            (process, metric) => self.process_metric(process, metric),
        }
    }

    /// Over the instances of a process: `real` and `max_rss` are those of the largest, CPU times, switches and faults are
    /// summed. Of values read from output, those where higher is better are amounts of work and summed, others averaged.
    /// A value that one instance lacks is missing. Output wins over a built-in name.
    fn process_metric(&self, process: &str, metric: &str) -> Option<f64> {
        let named = |records: &[ProcessRecord]| -> Vec<ProcessRecord> {
            records.iter().filter(|record| record.name == process).cloned().collect()
        };
        let mut instances = named(&self.trial.processes);
        if instances.is_empty() {
            instances = named(&self.trial.backgrounds);
        }
        if instances.is_empty() {
            return None;
        }
        if instances.iter().any(|instance| instance.values.contains_key(metric)) {
            let values: Option<Vec<f64>> =
                instances.iter().map(|instance| instance.values.get(metric).copied()).collect();
            let share = if self.direction == Direction::HigherIsBetter { instances.len() as f64 } else { 1.0 };
            return values.map(|values| mean(&values) * share);
        }
        let largest = |field: fn(&ProcessRecord) -> u64| instances.iter().map(field).max().map(|value| value as f64);
        let total = |field: fn(&ProcessRecord) -> u64| Some(instances.iter().map(|record| field(record) as f64).sum());
        match metric {
            "involuntary_switches" => total(|record| record.involuntary_switches),
            "major_faults" => total(|record| record.major_faults),
            "max_rss" => largest(|record| record.max_rss_kib),
            "minor_faults" => total(|record| record.minor_faults),
            "real" => largest(|record| record.real_ns).map(|nanoseconds| nanoseconds / 1e9),
            "sys" => total(|record| record.sys_us).map(|microseconds: f64| microseconds / 1e6),
            "user" => total(|record| record.user_us).map(|microseconds: f64| microseconds / 1e6),
            "voluntary_switches" => total(|record| record.voluntary_switches),
            _ => None,
        }
    }

    /// `idle`, `irq` …: per cent of the time of all CPUs, or of one (`idle.cpu3`). `interrupts`: increments of numbered
    /// rows, `softirqs`: of all kinds, over the host or of one CPU. `mhz`: the fact of
    /// the machine it ran on.
    fn host_metric(&self, name: &str) -> Option<f64> {
        let (kind, cpu) = match name.split_once('.') {
            Some((kind, cpu)) => (kind, Some(cpu.strip_prefix("cpu")?.parse::<u32>().ok()?)),
            None => (name, None),
        };
        match kind {
            "interrupts" => Some(count(self.trial.interrupts.iter().filter(|row| is_numbered(row)), cpu)),
            "mhz" => self.host.cpu_mhz.filter(|_| cpu.is_none()),
            "softirqs" => Some(count(self.trial.softirqs.iter(), cpu)),
            _ => time_share(&self.trial.cpu_times, kind, cpu),
        }
    }
}

/// Whether a row is an interrupt with a number, not `LOC` or `NMI`.
pub(super) fn is_numbered(row: &CounterRow) -> bool {
    row.label.parse::<u32>().is_ok()
}

fn count<'a>(rows: impl Iterator<Item = &'a CounterRow>, cpu: Option<u32>) -> f64 {
    let of_row = |row: &CounterRow| match cpu {
        None => row.total(),
        Some(wanted) => row.by_cpu().filter(|(cpu, _)| cpu.0 == wanted).map(|(_, count)| count).sum(),
    };
    rows.map(|row| of_row(row) as f64).sum()
}

fn time_share(times: &CpuTimes, kind: &str, cpu: Option<u32>) -> Option<f64> {
    let part = match kind {
        "idle" => &times.idle,
        "iowait" => &times.iowait,
        "irq" => &times.irq,
        "softirq" => &times.softirq,
        "steal" => &times.steal,
        "system" => &times.system,
        "user" => &times.user,
        _ => return None,
    };
    let all = [&times.idle, &times.iowait, &times.irq, &times.softirq, &times.steal, &times.system, &times.user];
    let wanted: Vec<bool> = times.on.iter().map(|on| cpu.is_none_or(|cpu| on.0 == cpu)).collect();
    let ticks = |kind: &[u64]| -> f64 {
        kind.iter().zip(&wanted).filter(|(_, wanted)| **wanted).map(|(ticks, _)| *ticks as f64).sum()
    };
    let total: f64 = all.into_iter().map(|kind| ticks(kind)).sum();
    (total > 0.0).then(|| 100.0 * ticks(part) / total)
}
