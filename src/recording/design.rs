//! The experiment as a recording keeps it: everything analysis and report need to know of the file.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::PlannedTrial;
use crate::cpu_set::{CpuSet, Irq, MAX_IRQ, parse_numbers, to_list};

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
    /// Masks asked for: IRQs grouped by mask. For a target that moves them, all CPUs they may be moved to.
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
