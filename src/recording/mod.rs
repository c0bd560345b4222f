//! What a run leaves behind: JSON Lines, one header, one line a trial. The only serialised types besides the
//! journal's and the report's views; a change of shape changes [`FORMAT`].
//!
//! Holds raw counters, times, exit states and what was asked for. No rate, mean or verdict is in it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::cpu_set::{Cpu, CpuSet, Irq};

pub mod boot;
pub mod design;
pub mod facts;
pub mod file;
pub mod follow;

pub use boot::{Accelerator, Boot, BootAsked, BootOption, LabFacts};
pub use design::{
    Comparison, Decision, Design, Direction, Expectation, Factor, IrqList, MaskGroup, Metric, MetricExpr, ProcessPlan,
    Protocol, Relation, Treatment, Until,
};
pub use facts::{HostFacts, NmiGrowth};
pub use file::{ReadError, Recording, Writer, read, write_whole};
pub use follow::Follower;

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
    /// A machine was booted for some trials; written before the first of them.
    Boot(Boot),
    /// The host has to be booted before the run can go on.
    BootAsked(BootAsked),
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
    /// Boots in the order they happened: the reader fills them in from their lines.
    #[serde(skip)]
    pub boots: Vec<Boot>,
}

impl Header {
    /// The boot a trial ran in; `None` where nothing was booted for it.
    pub fn boot_of(&self, trial: &Trial) -> Option<&Boot> {
        self.boots.iter().find(|boot| Some(boot.number) == trial.boot)
    }

    /// The treatment of a trial as bound to the machine it ran on.
    pub fn treatment_of(&self, trial: &Trial) -> &Treatment {
        let bound = self.boot_of(trial).and_then(|boot| boot.treatments.get(&trial.treatment));
        bound.unwrap_or(&self.design.treatments[trial.treatment])
    }
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

/// A trial as planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedTrial {
    /// 0-based number in the order.
    pub number: u32,
    /// 1-based block; 0 for warm-up.
    pub block: u32,
    /// Index of the treatment.
    pub treatment: usize,
    /// 1-based boot it belongs to: one boot serves all trials of a whole plot within a block. `None` where nothing is
    /// booted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<u32>,
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
    /// [`Boot::number`] of the boot it ran in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<u32>,
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
    /// What the thread that moves interrupts did, where a target of the treatment moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mover: Option<Mover>,
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
    /// The lab's machine ended, hung or never came up; the last lines of its console.
    MachineFailed { detail: String, console: String },
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
    /// `smp_affinity` before the workloads, where it differs from what was asked: the treatment's `routes`, or the one
    /// CPU a target that moves begins with.
    pub before_differing: Vec<MaskGroup>,
    /// `effective_affinity` before the workloads.
    pub effective_before: Vec<MaskGroup>,
    /// `smp_affinity` after the workloads, where it differs from what was asked, or from the last move.
    pub after_differing: Vec<MaskGroup>,
    /// `effective_affinity` after the workloads, where it differs from before.
    pub effective_after: Vec<MaskGroup>,
    /// Interrupts whose mask the kernel refused, where that was to be skipped: what was asked of them was never made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<Irq>,
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

/// What the thread that moves interrupts did in one trial, and what it cost.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Mover {
    /// Every move, in the order they were made. Where an interrupt was before its first one is the treatment's matter.
    pub moves: Vec<Move>,
    /// Moves the kernel refused for the moment (EBUSY, EAGAIN, ENOSPC).
    pub refused: u64,
    /// CPU time of the thread, microseconds.
    pub cpu_us: u64,
    /// Its voluntary and involuntary context switches.
    pub switches: u64,
}

/// One interrupt given to another CPU. Serialised as `[ms, irq, cpu]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, Irq, Cpu)", into = "(u64, Irq, Cpu)")]
pub struct Move {
    /// Since the workloads were released, milliseconds.
    pub at_ms: u64,
    /// The interrupt.
    pub irq: Irq,
    /// The only CPU of its mask from then on.
    pub cpu: Cpu,
}

impl From<(u64, Irq, Cpu)> for Move {
    fn from((at_ms, irq, cpu): (u64, Irq, Cpu)) -> Self {
        Move { at_ms, irq, cpu }
    }
}

impl From<Move> for (u64, Irq, Cpu) {
    fn from(Move { at_ms, irq, cpu }: Move) -> Self {
        (at_ms, irq, cpu)
    }
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
