//! What a template sees: strings, rows and units. `docs/report_template.md` describes it for users.
//!
//! Every text is inline Markdown already escaped, unless its field says otherwise. `null` where there is nothing.

use serde::Serialize;

pub use super::text::Table;

/// A report without its layout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct View {
    /// Title.
    pub title: String,
    /// Name of the experiment.
    pub name: String,
    /// Question, where one was asked.
    pub question: Option<String>,
    /// Whether the numbers stand in the file and nothing was run.
    pub published: bool,
    /// Who published the numbers.
    pub source: Option<String>,
    /// `default` or `low_high_average`.
    pub layout: String,
    /// What nobody may overlook: host not put back, run cut off.
    pub alarms: Vec<String>,
    /// Verdicts, one group per `compare` clause.
    pub verdicts: Vec<VerdictGroup>,
    /// Expectations in file order.
    pub expectations: Vec<ExpectationView>,
    /// One paragraph: how many trials, where interrupts landed, whether the host was put back.
    pub evidence: String,
    /// Pictures beside the report.
    pub pictures: PicturesView,
    /// Doubts about the numbers, each with what to do.
    pub warnings: Vec<String>,
    /// One per metric.
    pub metrics: Vec<MetricView>,
    /// All comparisons.
    pub comparisons: Option<Table>,
    /// Whether averaged effects are the same at each level of what they are averaged over.
    pub interactions: Option<Table>,
    /// Whether settings were in force.
    pub treatment_check: CheckView,
    /// Trials outside the analysis.
    pub invalid_trials: Option<Table>,
    /// Run information: CPU, kernel, number of CPUs, times.
    pub run: Option<Table>,
    /// Further facts of the host.
    pub host: Option<Table>,
    /// Factors, treatments, order.
    pub design: DesignView,
    /// How the numbers were made, one line each.
    pub methods: Vec<String>,
    /// How to run it again.
    pub reproduce: ReproduceView,
    /// Whether the host was put back.
    pub restoration: RestorationView,
}

/// The findings of one `compare` clause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VerdictGroup {
    /// `routing: against all_cpus`
    pub heading: String,
    /// One sentence per finding; many inconclusive ones are folded into one.
    pub sentences: Vec<String>,
}

/// A judged expectation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExpectationView {
    /// `held`, `FAILED`, `not contradicted`, `not supported` or `undecided`.
    pub verdict: String,
    /// As written.
    pub text: String,
    /// `file:line`.
    pub place: String,
    /// Why, with the estimate.
    pub detail: String,
}

/// Pictures, each once, by the part of the report they belong to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PicturesView {
    /// The one for the hurried reader: the forest, or the first dots where nothing is compared.
    pub headline: Option<PictureView>,
    /// Dots and interactions of metrics.
    pub results: Vec<PictureView>,
    /// Where interrupts landed.
    pub landing: Vec<PictureView>,
    /// Values in the order trials ran.
    pub order: Vec<PictureView>,
}

/// A picture to refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PictureView {
    /// `![alt](path)`.
    pub markdown: String,
    /// Relative to the report, `plots/forest.svg`.
    pub path: String,
    /// What it is of.
    pub title: String,
    /// What it shows, for readers who do not see it.
    pub alt: String,
}

/// Results of one metric.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MetricView {
    /// Shown name.
    pub label: String,
    /// Canonical name, `loop.rate`.
    pub id: String,
    /// Unit, empty for none.
    pub unit: String,
    /// `higher is better`, `lower is better` or `no better direction`.
    pub direction: String,
    /// Per treatment: n, low, high, mean, median, geometric mean, CV.
    pub table: Table,
    /// Raw values in block order, one line per treatment with ten or fewer.
    pub values: Vec<String>,
    /// Levels, low, high, average and average per MHz; `null` for a metric that is itself a `… / host.mhz` column.
    pub low_high_average: Option<Table>,
}

/// Evidence that treatments were in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CheckView {
    /// What was asked and found, in one paragraph.
    pub summary: String,
    /// Per treatment: trials, routed interrupts and the share where asked.
    pub table: Option<Table>,
    /// Per treatment with a target that moves: moves, and what the mover cost.
    pub movers: Option<Table>,
    /// Interrupts of routed IRQs by CPU.
    pub by_cpu: Option<Table>,
    /// The busiest routed IRQs: mask asked, CPUs they landed on.
    pub irqs: Option<Table>,
    /// All numbered interrupts by CPU.
    pub all_by_cpu: Option<Table>,
    /// Softirqs by CPU.
    pub softirqs_by_cpu: Option<Table>,
}

/// What was varied and how trials were laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DesignView {
    /// Factors and levels.
    pub factors: Option<Table>,
    /// Treatments with their short names `T1`, `T2` …
    pub treatments: Table,
    /// Settings in force under every treatment.
    pub held: Vec<String>,
    /// Workloads and backgrounds.
    pub processes: Option<Table>,
    /// Blocks, order, seed, times, one line each.
    pub protocol: Vec<String>,
    /// The order as it happened, raw text for a code block: one line per block.
    pub order: String,
}

/// How to run it again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReproduceView {
    /// A code block with the commands.
    pub commands: String,
    /// Parameters and their values.
    pub params: Option<Table>,
    /// Files, the experiment's own first.
    pub files: Vec<FileView>,
}

/// A source file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileView {
    /// Its path as named, without the folder of an absolute one.
    pub path: String,
    /// Its text as a code block.
    pub block: String,
}

/// Whether the host was put back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RestorationView {
    /// In one sentence.
    pub summary: String,
    /// What is not as it was.
    pub not_restored: Vec<String>,
    /// What else there is to say.
    pub remarks: Vec<String>,
}
