//! What a run leaves behind: JSON Lines, one header, one line a trial. The only serialised types besides the
//! journal's and the report's views; a change of shape changes [`FORMAT`].
//!
//! Holds raw counters, times, exit states and what was asked for. No rate, mean or verdict is in it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpu_set::{Cpu, CpuSet, Irq, MAX_IRQ, parse_numbers, to_list};

pub mod facts;
pub mod file;

pub use facts::HostFacts;
pub use file::{ReadError, Recording, Writer, read, write_whole};

/// Version of the format. A reader refuses a newer one and says so.
pub const FORMAT: u32 = 1;

/// One line of a recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(clippy::large_enum_variant, reason = "one line is in memory at a time")]
pub enum Line {
    /// First line.
    Header(Header),
    /// One trial, written and synced as it ends.
    Trial(Trial),
    /// A resumed run goes on behind this line.
    Resumed {
        /// RFC 3339, UTC.
        at: String,
        /// Facts of the host now.
        host: Box<HostFacts>,
    },
    /// The one look after the pilot of a two-stage run, written before what it adds is run.
    Decided(Decision),
    /// The run is over, and what putting the host back gave.
    End(End),
}

/// What is known before the first trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of irqlab.
    pub tool_version: String,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// The file's text and that of what it uses, as `(path, text)`; paths as the user named them.
    pub sources: Vec<(String, String)>,
    /// The experiment as run.
    pub design: Design,
    /// Planned trials in order.
    pub order: Vec<PlannedTrial>,
    /// Facts of the host; empty for published numbers.
    pub host: HostFacts,
    /// Numbers somebody published, in the order of the file; such a recording has no trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub published: Vec<PublishedRow>,
}

/// Published numbers of one metric under one treatment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedRow {
    /// Metric id.
    pub metric: String,
    /// Index of the treatment.
    pub treatment: usize,
    /// The numbers, in the unit of the metric.
    pub values: PublishedValues,
    /// `file:line` of the row.
    pub place: String,
}

/// The kinds of published numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PublishedValues {
    /// One number per trial.
    Samples(Vec<f64>),
    /// Only a summary of `n` trials, or of nobody knows how many.
    Summary {
        /// Lowest.
        low: f64,
        /// Highest.
        high: f64,
        /// Arithmetic mean.
        average: f64,
        /// Number of trials.
        n: Option<u32>,
    },
}

/// The experiment as analysis and report need it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Design {
    /// Name.
    pub name: String,
    /// Title.
    pub title: String,
    /// Question.
    pub question: Option<String>,
    /// Who published recorded data.
    pub source: Option<String>,
    /// `(name, value, replaced by the caller)`
    pub params: Vec<(String, String, bool)>,
    /// Factors.
    pub factors: Vec<Factor>,
    /// Treatments.
    pub treatments: Vec<Treatment>,
    /// Metrics.
    pub metrics: Vec<Metric>,
    /// Comparisons.
    pub comparisons: Vec<Comparison>,
    /// Expectations.
    pub expectations: Vec<Expectation>,
    /// Layout of trials.
    pub protocol: Protocol,
    /// `default` or `low_high_average`.
    pub layout: String,
    /// The user's template: path as written.
    pub template: Option<String>,
    /// The text of that template, so that the report can be remade from the recording alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_text: Option<String>,
}

/// A factor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Factor {
    /// Name.
    pub name: String,
    /// Level names.
    pub levels: Vec<String>,
    /// Makes whole plots.
    pub hard_to_change: bool,
}

/// A treatment as bound to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Treatment {
    /// Name.
    pub name: String,
    /// Level index per factor.
    pub levels: Vec<usize>,
    /// 0, or the number of the A/A copy.
    pub control: usize,
    /// Settings in plain words: `irq 24-26,36 -> cpu 0`.
    pub settings: Vec<String>,
    /// Masks asked for: IRQs grouped by mask.
    pub routes: Vec<MaskGroup>,
    /// Workloads.
    pub workloads: Vec<ProcessPlan>,
    /// Backgrounds.
    pub backgrounds: Vec<ProcessPlan>,
}

/// A process as bound to the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessPlan {
    /// Name.
    pub name: String,
    /// The command in plain words.
    pub command: String,
    /// CPUs it may use; `None` for the inherited ones.
    pub cpus: Option<CpuSet>,
    /// Copies.
    pub instances: u32,
}

/// Interrupts that share a mask. Lists keep the recording small on large hosts.
/// Serialised as `["0-1","24-26,36"]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(CpuSet, IrqList)", into = "(CpuSet, IrqList)")]
pub struct MaskGroup {
    /// The mask.
    pub mask: CpuSet,
    /// The interrupts.
    pub irqs: IrqList,
}

/// Interrupt numbers, serialised in list form (`24-26,36`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IrqList(pub Vec<Irq>);

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// More is better.
    HigherIsBetter,
    /// Less is better.
    LowerIsBetter,
    /// Neither.
    Neutral,
}

/// A measured quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// Canonical text.
    pub id: String,
    /// Shown in the report.
    pub label: String,
    /// Unit, empty for none.
    pub unit: String,
    /// Which way is better.
    pub direction: Direction,
    /// How it is computed from a trial.
    pub expr: MetricExpr,
}

/// How a metric is computed from one trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricExpr {
    /// Sum.
    Add(Box<MetricExpr>, Box<MetricExpr>),
    /// Quotient.
    Divide(Box<MetricExpr>, Box<MetricExpr>),
    /// Every parsed metric of a process: `bonnie.*`.
    Every(String),
    /// `process.metric` or `host.metric`.
    Metric(String),
    /// Product.
    Multiply(Box<MetricExpr>, Box<MetricExpr>),
    /// Constant.
    Number(f64),
    /// Difference.
    Subtract(Box<MetricExpr>, Box<MetricExpr>),
}

/// A declared comparison.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Factor index.
    pub factor: usize,
    /// Base level index.
    pub base: usize,
    /// Metric ids.
    pub metrics: Vec<String>,
    /// Margin as a fraction.
    pub margin: Option<f64>,
    /// Factor indices held fixed.
    pub within: Vec<usize>,
}

/// A declared expectation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Expectation {
    /// Metric id.
    pub metric: String,
    /// Factor index.
    pub factor: usize,
    /// `(coefficient, level index)`
    pub left: (f64, usize),
    /// Between the two.
    pub operator: Relation,
    /// `(coefficient, level index)`
    pub right: (f64, usize),
    /// Factor indices held fixed.
    pub within: Vec<usize>,
    /// As written.
    pub text: String,
    /// `file:line` of the clause.
    pub place: String,
}

/// A relation between two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Relation {
    /// `==`
    #[serde(rename = "==")]
    Equal,
    /// `>`
    #[serde(rename = ">")]
    Greater,
    /// `>=`
    #[serde(rename = ">=")]
    GreaterOrEqual,
    /// `<`
    #[serde(rename = "<")]
    Less,
    /// `<=`
    #[serde(rename = "<=")]
    LessOrEqual,
    /// `!=`
    #[serde(rename = "!=")]
    NotEqual,
}

/// Layout of trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Blocks planned.
    pub blocks: u32,
    /// Warm-up trials per treatment.
    pub warmup: u32,
    /// `blocks`, `shuffled`, `sequential`, or `recorded` for published numbers
    pub order: String,
    /// Seed.
    pub seed: u64,
    /// Version of the order algorithm.
    pub order_version: u32,
    /// Rest before the workloads, milliseconds.
    pub settle_ms: u64,
    /// Limit of a trial's workloads, milliseconds.
    pub timeout_ms: u64,
    /// Repetitions of an invalid trial at most.
    pub retries: u32,
    /// The rule of a two-stage run; `blocks` are then those of the pilot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Until>,
}

/// After a pilot, one look at the spread decides how many blocks a wanted half width needs (Stein 1945). No p is looked at.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Until {
    /// Metric id.
    pub metric: String,
    /// Wanted half width of a treatment's 95 % interval, as a fraction of the value.
    pub within: f64,
    /// Blocks before the look.
    pub pilot: u32,
    /// Blocks at most.
    pub max: u32,
    /// What the look gave: the reader fills it in from its line.
    #[serde(skip)]
    pub decided: Option<Decision>,
}

/// What the look after the pilot gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// RFC 3339, UTC.
    pub at: String,
    /// The treatment that needs most blocks; `None` when none has two values.
    pub treatment: Option<usize>,
    /// Its valid values in the pilot.
    pub n: u32,
    /// Their standard deviation as a fraction of the value; `None` below two values.
    pub spread: Option<f64>,
    /// Blocks the wanted width needs; `None` when it cannot be told.
    pub needed: Option<u32>,
    /// Blocks in all: as needed, at least the pilot's and at most the rule's `max`.
    pub blocks: u32,
    /// Further trials in order, numbered on; the first blocks of the same seed's longer order are those already run.
    pub order: Vec<PlannedTrial>,
}

impl Decision {
    /// Whether the wanted width needs more blocks than the rule allows.
    pub fn target_missed(&self) -> bool {
        self.needed.is_none_or(|needed| needed > self.blocks)
    }
}

/// A trial as planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTrial {
    /// 0-based number in the order.
    pub number: u32,
    /// 1-based block; 0 for warm-up.
    pub block: u32,
    /// Index of the treatment.
    pub treatment: usize,
}

/// One trial as it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Number in the planned order; a repetition carries the number of the trial it repeats.
    pub number: u32,
    /// 0 for the first try, 1.. for repetitions.
    pub attempt: u32,
    /// Running number of the line, over all that ran, in the order it ran.
    pub sequence: u32,
    /// 1-based block; 0 for warm-up.
    pub block: u32,
    /// Index of the treatment.
    pub treatment: usize,
    /// RFC 3339, UTC, when the workloads were released.
    pub started_at: String,
    /// `CLOCK_MONOTONIC` between the release and the end of the last workload, nanoseconds.
    pub duration_ns: u64,
    /// Everything wrong with it; a trial with none is valid.
    pub faults: Vec<Fault>,
    /// Workloads, one entry per instance.
    pub processes: Vec<ProcessRecord>,
    /// Backgrounds.
    pub backgrounds: Vec<ProcessRecord>,
    /// CPU time counters.
    pub cpu_times: CpuTimes,
    /// Interrupt counters that moved, numbered and named rows.
    pub interrupts: Vec<CounterRow>,
    /// Softirq counters that moved.
    pub softirqs: Vec<CounterRow>,
    /// Masks read back.
    pub masks: MaskReadings,
    /// Settings applied and what they reported: `tasks * on 0: 31 moved, 12 kernel threads cannot move: kworker/0:1 …`.
    pub settings: Vec<String>,
    /// What the runner's own threads cost between the snapshots.
    pub runner: RunnerCost,
}

/// Why a trial is not valid.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "fault", rename_all = "snake_case")]
pub enum Fault {
    /// A background ended before the workloads did, or never became ready.
    BackgroundFailed { process: String, detail: String },
    /// A CPU went offline or came back while the trial ran.
    CpusChanged { before: CpuSet, after: CpuSet },
    /// A workload ended with a non-zero exit status.
    ExitStatus { process: String, status: i32, output: String },
    /// The user stopped the run during the trial.
    Interrupted { signal: String },
    /// A mask was rewritten by somebody while the trial ran.
    MaskRewritten { irqs: IrqList, asked: CpuSet, found: CpuSet },
    /// A number could not be read from the output.
    OutputNotParsed { process: String, metric: String, detail: String },
    /// A setting could not be made.
    SettingRefused { setting: String, detail: String },
    /// A workload was ended by a signal it did not expect.
    Signal { process: String, signal: String },
    /// A workload could not be started.
    StartFailed { process: String, detail: String },
    /// A workload ran into its limit.
    TimedOut { process: String, limit_ms: u64 },
    /// Interrupts landed where they were not asked, or another setting was not in force.
    TreatmentNotInForce { detail: String },
}

/// What one process did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Name.
    pub name: String,
    /// 0-based copy.
    pub instance: u32,
    /// Exit status, or `None` when a signal ended it.
    pub status: Option<i32>,
    /// Signal that ended it.
    pub signal: Option<String>,
    /// Wall clock from start to end, nanoseconds.
    pub real_ns: u64,
    /// User CPU time with waited-for descendants, microseconds.
    pub user_us: u64,
    /// System CPU time likewise, microseconds.
    pub sys_us: u64,
    /// Largest resident set of any one process in it, KiB.
    pub max_rss_kib: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
    /// CPUs it was allowed when it started.
    pub cpus: CpuSet,
    /// Metrics read from its output: bare names (`rate`), units as the metric states.
    pub values: BTreeMap<String, f64>,
    /// Further words a built-in workload says of itself (`cpus = "0 1"`).
    pub notes: BTreeMap<String, String>,
}

/// Per-CPU time from `/proc/stat`, increments between the two snapshots in clock ticks (`USER_HZ`); one entry per
/// CPU of `on`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct CpuTimes {
    /// Ticks per second.
    pub hz: u64,
    /// CPUs that were there in both snapshots.
    pub on: CpuSet,
    /// User and nice.
    pub user: Vec<u64>,
    /// System.
    pub system: Vec<u64>,
    /// Idle.
    pub idle: Vec<u64>,
    /// Waiting for I/O.
    pub iowait: Vec<u64>,
    /// Hard interrupts.
    pub irq: Vec<u64>,
    /// Softirqs.
    pub softirq: Vec<u64>,
    /// Stolen by the hypervisor.
    pub steal: Vec<u64>,
}

/// One row of counters: increments between the two snapshots, wrap at 2^32 undone. CPUs without increment are
/// left out, rows without any as well.
///
/// Serialised as `["36","0-1",[12,7],"description","anomaly"]`, empty ends left out. [`Writer`] leaves out a
/// description that an earlier trial of the file gave, [`read`] fills it in again.
#[derive(Debug, Clone, PartialEq)]
pub struct CounterRow {
    /// `36`, `LOC`, `NET_RX`
    pub label: String,
    /// Numbered rows: chip and actions, as shown.
    pub description: String,
    /// CPUs with an increment, ascending; empty for rows with one count for the whole host (`ERR`).
    pub on: CpuSet,
    /// Increments, one per CPU of `on`, or the one of the host.
    pub counts: Vec<u64>,
    /// The row came, went, changed identity or fell between the snapshots.
    pub anomaly: Option<String>,
}

impl CounterRow {
    /// Increments by CPU.
    pub fn by_cpu(&self) -> impl Iterator<Item = (Cpu, u64)> + '_ {
        self.on.iter().zip(self.counts.iter().copied())
    }

    /// Sum over the host.
    pub fn total(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// Masks of routed interrupts as read back.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MaskReadings {
    /// `smp_affinity` before the workloads, where it differs from the treatment's `routes`.
    pub before_differing: Vec<MaskGroup>,
    /// `effective_affinity` before the workloads.
    pub effective_before: Vec<MaskGroup>,
    /// `smp_affinity` after the workloads, where it differs from the treatment's `routes`.
    pub after_differing: Vec<MaskGroup>,
    /// `effective_affinity` after the workloads, where it differs from before.
    pub effective_after: Vec<MaskGroup>,
}

/// What the runner cost while the trial ran.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RunnerCost {
    /// CPU time of the runner, microseconds.
    pub cpu_us: u64,
    /// Its voluntary and involuntary context switches.
    pub switches: u64,
    /// CPUs it was kept on.
    pub cpus: CpuSet,
}

/// How the run ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct End {
    /// RFC 3339, UTC.
    pub at: String,
    /// `complete`, `interrupted by SIGINT`, or the error that stopped it.
    pub reason: String,
    /// Settings put back.
    pub restored: u32,
    /// Settings that are not as they were: what and why.
    pub not_restored: Vec<String>,
    /// Further remarks: foreign changes overwritten, what cannot be restored by nature.
    pub remarks: Vec<String>,
}

impl From<(CpuSet, IrqList)> for MaskGroup {
    fn from((mask, irqs): (CpuSet, IrqList)) -> Self {
        MaskGroup { mask, irqs }
    }
}

impl From<MaskGroup> for (CpuSet, IrqList) {
    fn from(group: MaskGroup) -> Self {
        (group.mask, group.irqs)
    }
}

impl Serialize for CounterRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let length = match (self.description.is_empty(), &self.anomaly) {
            (_, Some(_)) => 5,
            (false, None) => 4,
            (true, None) => 3,
        };
        let mut row = serializer.serialize_seq(Some(length))?;
        row.serialize_element(&self.label)?;
        row.serialize_element(&self.on)?;
        row.serialize_element(&self.counts)?;
        if length > 3 {
            row.serialize_element(&self.description)?;
        }
        if let Some(anomaly) = &self.anomaly {
            row.serialize_element(anomaly)?;
        }
        row.end()
    }
}

impl<'de> Deserialize<'de> for CounterRow {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(RowVisitor)
    }
}

struct RowVisitor;

impl<'de> Visitor<'de> for RowVisitor {
    type Value = CounterRow;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a row `[label, cpus, counts, description, anomaly]`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut row: A) -> Result<CounterRow, A::Error> {
        let missing = |index| serde::de::Error::invalid_length(index, &self);
        Ok(CounterRow {
            label: row.next_element()?.ok_or_else(|| missing(0))?,
            on: row.next_element()?.ok_or_else(|| missing(1))?,
            counts: row.next_element()?.ok_or_else(|| missing(2))?,
            description: row.next_element()?.unwrap_or_default(),
            anomaly: row.next_element()?,
        })
    }
}

impl Serialize for IrqList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_list(self.0.iter().map(|irq| irq.0)))
    }
}

impl<'de> Deserialize<'de> for IrqList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let numbers = parse_numbers(&text, MAX_IRQ);
        let numbers = numbers.ok_or_else(|| serde::de::Error::custom(format!("`{text}` is not a list of IRQs")))?;
        Ok(IrqList(numbers.into_iter().map(Irq).collect()))
    }
}

impl Serialize for CpuSet {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for CpuSet {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        CpuSet::parse_list(&text).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Cpu {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de> Deserialize<'de> for Cpu {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(Cpu)
    }
}

impl Serialize for Irq {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(self.0)
    }
}

impl<'de> Deserialize<'de> for Irq {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        u32::deserialize(deserializer).map(Irq)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn facts_with_numbered_maps_survive_a_line() {
        let mut host = HostFacts { governors: BTreeMap::from([(3, "performance".to_owned())]), ..HostFacts::default() };
        host.topology.nodes.insert(1, CpuSet::parse_list("0-3").unwrap());
        let line = Line::Resumed { at: "2026-01-01T00:00:00Z".to_owned(), host: Box::new(host) };
        let text = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<Line>(&text).unwrap(), line);
    }
}
