//! A recording becomes findings: metric values, treatment checks, statistics, verdicts, warnings. No formatting.

use crate::cpu_set::CpuSet;
use crate::recording::{Direction, End, Fault, Header, HostFacts, Trial};

mod across;
mod boots;
mod comparison;
pub mod doubts;
pub mod exact;
mod expectation;
mod flags;
mod interaction;
pub mod multiplicity;
pub mod planner;
pub mod published;
mod recorded;
pub mod robust;
mod sides;
mod single_runs;
pub mod student;
pub mod summary;
mod treatment;
pub mod two_stage;
mod values;
mod warnings;

pub use across::{Across, across};

/// Everything that can be said of a recording: its header, its trials in the order they ran, the host's facts at each
/// resumption, and its end if it has one.
///
/// The order `recorded` stands for published numbers: no blocks, nothing known of the order, nothing that was run. Values
/// a trial lacks are missing, never 0; no number that is not finite comes out.
pub fn analyse(header: &Header, trials: &[Trial], resumed: &[(String, HostFacts)], end: Option<&End>) -> Findings {
    let design = &header.design;
    let valid = values::valid_trials(trials);
    let is_published = design.protocol.order == "recorded";
    let values = if is_published && !header.published.is_empty() {
        values::published(design, &header.published)
    } else {
        values::values(header, &valid)
    };
    let boots = boots::Boots::of(header, &valid);
    let material = comparison::Material { design, trials: &valid, values: &values, boots: &boots };
    let (mut comparisons, interactions) = comparison::compare(&material);
    let treatment_checks = if is_published { Vec::new() } else { treatment::checks(header, trials) };
    let boot_options = boots::options(header, trials);
    let evidence = warnings::Evidence { header, trials, resumed, end };
    let checks = warnings::Checks { treatments: &treatment_checks, options: &boot_options };
    let warnings = warnings::warnings(&evidence, &material, checks, &comparisons);
    flags::flag(&mut comparisons, &warnings, design);
    Findings {
        metrics: values.iter().map(metric_findings).collect(),
        expectations: expectation::judge(&material),
        single_runs: single_runs::ratios_of_ratios(&comparisons),
        comparisons,
        interactions,
        treatment_checks,
        boot_options,
        invalid_trials: invalid_trials(trials),
        counts: TrialCounts {
            planned: header.order.iter().filter(|planned| planned.block > 0).count(),
            recorded: trials.iter().filter(|trial| trial.block > 0).count(),
            valid: valid.len(),
            warmup: trials.iter().filter(|trial| trial.block == 0).count(),
        },
        warnings,
    }
}

fn metric_findings(values_of: &values::Values) -> MetricFindings {
    let cells = values_of.cells.iter().enumerate().map(|(treatment, cell)| {
        let numbers: Vec<f64> = cell.values().copied().collect();
        let values = cell.iter().map(|(block, value)| (*block, *value)).collect();
        let of_values = |all: &[bool]| all.get(treatment).copied().unwrap_or(false);
        Cell {
            treatment,
            values,
            summary: summary::summarise(&numbers),
            published: values_of.summaries.get(treatment).copied().flatten(),
            recovered: of_values(&values_of.recovered),
        }
    });
    MetricFindings {
        id: values_of.id.clone(),
        label: values_of.label.clone(),
        unit: values_of.unit.clone(),
        direction: values_of.direction,
        decimals: values_of.decimals,
        cells: cells.collect(),
    }
}

fn invalid_trials(trials: &[Trial]) -> Vec<InvalidTrial> {
    let invalid = trials.iter().filter(|trial| trial.block > 0 && !trial.faults.is_empty());
    let finding = |trial: &Trial| InvalidTrial {
        number: trial.number,
        block: trial.block,
        attempt: trial.attempt,
        treatment: trial.treatment,
        faults: trial.faults.clone(),
    };
    invalid.map(finding).collect()
}

/// All that can be said of one recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Findings {
    /// Measured quantities with `*` expanded, in the order of the `measure` clauses.
    pub metrics: Vec<MetricFindings>,
    /// One entry per declared comparison, metric, level and combination of `within` levels. One whose effect depends on a
    /// factor it is averaged over is followed by the effect at each level of that factor.
    pub comparisons: Vec<ComparisonFinding>,
    /// Whether averaged effects are the same at each level of what they are averaged over.
    pub interactions: Vec<Interaction>,
    /// How single published runs' ratios depend on the factors held fixed.
    pub single_runs: Vec<RatioOfRatios>,
    /// One entry per expectation and combination of `within` levels.
    pub expectations: Vec<ExpectationFinding>,
    /// One entry per treatment.
    pub treatment_checks: Vec<TreatmentCheck>,
    /// What the kernels showed of options asked for at boot: one entry per treatment and option.
    pub boot_options: Vec<BootOptionCheck>,
    /// Trials that were not valid: kept, flagged, out of the analysis.
    pub invalid_trials: Vec<InvalidTrial>,
    /// How many trials were planned, recorded, valid and warm-up.
    pub counts: TrialCounts,
    /// Doubts about the numbers.
    pub warnings: Vec<Warning>,
}

/// Numbers of trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TrialCounts {
    /// In the order, without warm-up.
    pub planned: usize,
    /// Recorded, without warm-up, repetitions counted.
    pub recorded: usize,
    /// In the analysis.
    pub valid: usize,
    /// Warm-up trials.
    pub warmup: usize,
}

/// Values of one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricFindings {
    /// Canonical text.
    pub id: String,
    /// Shown in the report.
    pub label: String,
    /// Unit, empty for none.
    pub unit: String,
    /// Which way is better.
    pub direction: Direction,
    /// Decimals the numbers were published with; `None` for trials.
    pub decimals: Option<usize>,
    /// One per treatment, in the design's order.
    pub cells: Vec<Cell>,
}

/// Values of one metric under one treatment.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// Index of the treatment.
    pub treatment: usize,
    /// `(block, value)` of the valid trials, in block order.
    pub values: Vec<(u32, f64)>,
    /// `None` without a value.
    pub summary: Option<Summary>,
    /// Published low, high and average where the values behind them are not known; there is no `summary` then.
    pub published: Option<published::Side>,
    /// The values were worked out from published low, high and average.
    pub recovered: bool,
}

/// Description of a sample. `sd`-like fields are `None` at n = 1, never 0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of values.
    pub n: usize,
    /// Smallest.
    pub low: f64,
    /// Largest.
    pub high: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub median: f64,
    /// Geometric mean; `None` unless all values are positive.
    pub geometric_mean: Option<f64>,
    /// Interval of the median from order statistics, and its coverage: 0.95 or more from six values on, below that lowest
    /// to highest with what coverage it has. `None` for one value.
    pub median_interval: Option<(f64, f64, f64)>,
    /// Standard deviation (n - 1).
    pub sd: Option<f64>,
    /// `sd / mean`; `None` when the mean is not positive.
    pub cv: Option<f64>,
}

/// Two levels compared on one metric.
#[derive(Debug, Clone, PartialEq)]
pub struct ComparisonFinding {
    /// Index of the `compare` clause.
    pub comparison: usize,
    /// Metric id.
    pub metric: String,
    /// Factor name.
    pub factor: String,
    /// The level looked at.
    pub level: String,
    /// The base level.
    pub base: String,
    /// `(factor, level)` held fixed.
    pub within: Vec<(String, String)>,
    /// Names of factors averaged over.
    pub averaged_over: Vec<String>,
    /// Values on the level's and the base's side (pairs when blocked).
    pub n: (usize, usize),
    /// The estimate with its interval; `None` without inference.
    pub estimate: Option<Estimate>,
    /// Point ratio or difference even where there is no inference.
    pub point: Option<f64>,
    /// Whether `point` and `estimate` are ratios of geometric means, or differences of means.
    pub scale: Scale,
    /// Model-based two-sided p.
    pub p: Option<f64>,
    /// After Holm over all comparisons of this metric.
    pub p_holm: Option<f64>,
    /// The exact companion.
    pub exact: Option<ExactTest>,
    /// The estimate that assumes no distribution, on the same scale.
    pub robust: Option<Robust>,
    /// Declared margin.
    pub margin: Option<f64>,
    /// What is concluded.
    pub verdict: Verdict,
    /// Doubts that belong to this verdict.
    pub flags: Vec<Flag>,
    /// Values per side (pairs when blocked) that would probably decide it, for inconclusive ones.
    pub needed_n: Option<u32>,
    /// What else can be said of published numbers; `None` for trials.
    pub published: Option<PublishedFinding>,
}

/// What can be said of published numbers beside a verdict, or in place of one.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PublishedFinding {
    /// How the ranges of both sides lie; `None` for single values.
    pub ranges: Option<published::Ranges>,
    /// Ratio of the arithmetic means, where the values are known and positive.
    pub mean_ratio: Option<f64>,
    /// Ratio of the medians, where the values are known and positive.
    pub median_ratio: Option<f64>,
    /// Single values: the run-to-run CV, a fraction, below which their difference exceeds 1.96 sigma.
    pub break_even_cv: Option<f64>,
    /// Single values: how far their rounding alone can move the ratio.
    pub rounding: Option<f64>,
    /// Summaries with n: smallest and largest p of Welch's test that samples with these summaries can give.
    pub p_range: Option<(f64, f64)>,
    /// How the effect compares with differences between identical rows.
    pub noise: Option<NoiseFloor>,
}

/// What identical published rows (A/A) differ by, against an effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct NoiseFloor {
    /// Identical rows.
    pub rows: usize,
    /// The largest ratio between two of them, 1 or more.
    pub ratio: f64,
    /// Smallest and largest ratio of the level to one of the identical rows of the base.
    pub effects: (f64, f64),
}

impl NoiseFloor {
    /// Whether the effect is larger than the difference between identical rows, whichever of them is the base.
    pub fn is_exceeded(&self) -> bool {
        let (low, high) = self.effects;
        low > self.ratio || high < 1.0 / self.ratio
    }
}

/// How the ratio of single published runs depends on a factor held fixed: a ratio of ratios, without any error.
#[derive(Debug, Clone, PartialEq)]
pub struct RatioOfRatios {
    /// Index of the `compare` clause.
    pub comparison: usize,
    /// Metric id.
    pub metric: String,
    /// The level looked at.
    pub level: String,
    /// The base level.
    pub base: String,
    /// The factor it depends on.
    pub factor: String,
    /// Its two levels: the first one's ratio over that of the second one.
    pub levels: (String, String),
    /// `(factor, level)` held fixed.
    pub within: Vec<(String, String)>,
    /// Ratio of ratios.
    pub ratio: f64,
}

/// The effect of a level at one level of another factor, against its effect at that factor's first level.
#[derive(Debug, Clone, PartialEq)]
pub struct Interaction {
    /// Index of the `compare` clause.
    pub comparison: usize,
    /// Metric id.
    pub metric: String,
    /// Factor compared.
    pub factor: String,
    /// The level looked at.
    pub level: String,
    /// The base level.
    pub base: String,
    /// `(factor, level)` held fixed.
    pub within: Vec<(String, String)>,
    /// The factor averaged over.
    pub over: String,
    /// Its level.
    pub over_level: String,
    /// Its first level.
    pub over_base: String,
    /// Ratio of ratios (difference of differences) with its 95 % interval.
    pub estimate: Option<Estimate>,
    /// Whether it is a ratio of ratios.
    pub scale: Scale,
    /// Two-sided, not corrected.
    pub p: f64,
    /// The interval leaves out 1 (0 for differences): the effect at each level takes the place of the average.
    pub real: bool,
}

/// What a comparison is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scale {
    /// level - base, for metrics that can be zero or negative.
    Difference,
    /// level / base of geometric means.
    Ratio,
}

/// An estimate with its 95 % interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// Ratio or difference.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// How it was computed.
    pub method: Method,
}

/// How an interval and p were computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Paired t over blocks.
    PairedT,
    /// Welch's t.
    WelchT,
    /// Welch's t of plain averages with the largest spread that published low, high and average allow.
    WelchBound,
}

/// Hodges-Lehmann's estimate beside the model's: of independent samples the median of all ratios (differences) of a value
/// of the level to one of the base; of pairs the median of all averages of two.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Robust {
    /// Ratio or difference.
    pub value: f64,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
    /// Share of experiments whose interval holds the truth; below 0.95 where so few values allow no more.
    pub coverage: f64,
    /// Pairs in which the level's value is higher, ties counted half, and all pairs.
    pub higher: (f64, usize),
}

/// An exact test beside the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExactTest {
    /// Which.
    pub kind: ExactKind,
    /// Two-sided p.
    pub p: f64,
    /// The smallest p it can give with so many values.
    pub min_p: f64,
}

/// Exact tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExactKind {
    /// Mann-Whitney on mid-ranks, conditional on ties.
    MannWhitney,
    /// Permutation of means inside the strata averaged over.
    Permutation,
    /// Sign flip of the paired differences.
    SignFlip,
}

/// What is concluded. Better and worse follow the metric's direction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// Within the margin, by two one-sided tests.
    Equivalent,
    /// The level is better; by more than the margin when the whole interval is beyond it.
    Faster { beyond_margin: bool },
    /// The data do not say.
    Inconclusive,
    /// Nothing may be concluded.
    NoInference(NoInference),
    /// The level is worse.
    Slower { beyond_margin: bool },
}

/// Why nothing may be concluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoInference {
    /// The effect is not the same at each level of a factor averaged over; the effects at each level follow.
    DependsOnLevel,
    /// No sample of that size has the published low, high and average.
    Contradictory,
    /// The metric has no better direction.
    NoDirection,
    /// A level has no value, or blocked levels have none in a common block.
    NoValues,
    /// All trials of one treatment ran before the next: drift cannot be told from effect.
    SequentialOrder,
    /// One value on a side: no error term.
    SingleValue,
    /// Low, high and average of an unknown number of values.
    SummaryOnly,
    /// Fewer than three values (pairs) on a side.
    TooFewValues,
    /// A hard-to-change factor with one whole plot per level, or without blocks with several trials in one: no error term.
    WholePlotUnreplicated,
    /// All differences are identical, so that no error term can be had.
    ZeroVariance,
}

/// Doubts about one verdict.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Flag {
    /// An A/A control copy differs from the treatment it copies.
    ControlDiffers,
    /// The effect differs between the levels of a factor (index in the design) it is averaged over: the average stands
    /// for none of them, and the effects at each level follow.
    DependsOn { factor: usize },
    /// The values of the metric drift over the run.
    Drift,
    /// The first block is unlike the others, or without blocks the first runs are the worst.
    FirstBlock,
    /// Published values: without this one of this treatment less than half of the effect is left, or it turns round.
    EffectHangsOnOneRun { treatment: usize, value: f64, without: f64 },
    /// Leaving out this block (1-based), or without blocks the trial of that repetition of one side, changes the
    /// verdict.
    HangsOnOneRun { block: u32 },
    /// The exact test does not reach 0.05, or cannot, or there is none.
    ModelBasedOnly,
    /// A boot option of this treatment was not in force in every boot: the verdict does not speak of that option.
    OptionNotInForce { treatment: usize },
    /// A trial on one of the sides is an outlier; it is kept.
    Outlier { treatment: usize, block: u32 },
    /// Equivalent within the margin, and yet a difference is there: it is smaller than the margin.
    WithinMargin,
}

/// A declared expectation, judged.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectationFinding {
    /// Index of the `expect` clause.
    pub expectation: usize,
    /// `(factor, level)` held fixed.
    pub within: Vec<(String, String)>,
    /// left / right with the coefficients in it, or left - right where a value is not positive, and its interval.
    pub estimate: Option<Estimate>,
    /// What `estimate` is: a ratio is judged against 1, a difference against 0.
    pub scale: Scale,
    /// The margin `==` and `!=` are judged by: that of a comparison of the same factor by the same metric.
    pub margin: Option<f64>,
    /// Whether it holds.
    pub verdict: ExpectationVerdict,
}

/// Whether an expectation holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectationVerdict {
    /// The whole interval is on the wrong side.
    Failed,
    /// The whole interval is on the right side.
    Held,
    /// The interval holds both sides; the point estimate is on the right one.
    NotContradicted,
    /// There is no interval, or `==` and `!=` have no margin to be judged by.
    Undecided,
    /// The interval holds both sides; the point estimate is on the wrong one.
    Unsupported,
}

/// Whether a treatment was in force, from the kernel's own counters, over its valid and invalid trials.
#[derive(Debug, Clone, PartialEq)]
pub struct TreatmentCheck {
    /// Index of the treatment.
    pub treatment: usize,
    /// Trials looked at.
    pub trials: usize,
    /// Interrupts of routed IRQs that came while the trials ran.
    pub interrupts: u64,
    /// Of those, on CPUs their mask allowed.
    pub on_asked_cpus: u64,
    /// Routed IRQs that had at least one interrupt, and all routed IRQs.
    pub active_irqs: (usize, usize),
    /// Interrupts of routed IRQs by CPU, ascending.
    pub by_cpu: Vec<(u32, u64)>,
    /// All numbered interrupts by CPU, ascending.
    pub all_by_cpu: Vec<(u32, u64)>,
    /// Softirqs by CPU, ascending.
    pub softirqs_by_cpu: Vec<(u32, u64)>,
    /// Per routed IRQ with interrupts: label, description, mask asked, `(cpu, count)`.
    pub irqs: Vec<IrqLanding>,
    /// Trials in which a mask differed from what was asked.
    pub trials_with_foreign_masks: usize,
    /// What moved interrupts while trials ran; `None` where every target stood still.
    pub mover: Option<MoverCheck>,
}

/// What a mover did over the trials of a treatment, and what it cost.
#[derive(Debug, Clone, PartialEq)]
pub struct MoverCheck {
    /// Trials with a mover.
    pub trials: usize,
    /// Moves made.
    pub moves: u64,
    /// Moves the kernel refused for the moment.
    pub refused: u64,
    /// How long those trials ran together, seconds.
    pub seconds: f64,
    /// CPU time of the mover, seconds.
    pub cpu_seconds: f64,
    /// Its context switches.
    pub switches: u64,
}

/// What the kernels showed of a boot option, over the boots in which trials of a treatment ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootOptionCheck {
    /// Index of the treatment.
    pub treatment: usize,
    /// `nmi_watchdog=1`
    pub option: String,
    /// Boots in which it was in force.
    pub in_force: usize,
    /// Boots in which it was not.
    pub not_in_force: usize,
    /// Boots whose kernel shows nothing of it but its command line.
    pub not_shown: usize,
    /// What was looked at and found, each text once.
    pub evidence: Vec<String>,
}

/// Where one routed IRQ landed.
#[derive(Debug, Clone, PartialEq)]
pub struct IrqLanding {
    /// `36`, or `24,26` where one interrupt had another number after another boot.
    pub label: String,
    /// As in `/proc/interrupts`.
    pub description: String,
    /// Mask asked for.
    pub asked: CpuSet,
    /// Interrupts by CPU.
    pub by_cpu: Vec<(u32, u64)>,
}

/// A trial outside the analysis.
#[derive(Debug, Clone, PartialEq)]
pub struct InvalidTrial {
    /// Number in the order.
    pub number: u32,
    /// Its block.
    pub block: u32,
    /// Which try.
    pub attempt: u32,
    /// Index of the treatment.
    pub treatment: usize,
    /// Why.
    pub faults: Vec<Fault>,
}

/// A doubt about the numbers. Closed list; the words are the report's.
#[derive(Debug, Clone, PartialEq)]
pub enum Warning {
    /// Blocks that share a boot with another: comparisons between boots take them for one.
    BlocksShareBoot { blocks: Vec<u32> },
    /// A boot option of a treatment was not in force in so many of its boots.
    BootOptionNotInForce { treatment: usize, option: String, boots: usize, of: usize, evidence: String },
    /// Blocks in which one whole plot ran in more than one boot: comparisons within boots leave such pairs out.
    WholePlotSplit { blocks: Vec<u32> },
    /// Blocks that lack a valid trial of some treatment.
    IncompleteBlocks { blocks: Vec<u32> },
    /// Interrupts of routed IRQs landed outside their masks.
    InterruptsElsewhere { treatment: usize, share: f64 },
    /// Run was interrupted or stopped.
    NotComplete { reason: String },
    /// The host was not put back as it was.
    NotRestored { what: Vec<String> },
    /// A routed treatment saw no interrupt of the routed IRQs: it was in force and made no difference to anything.
    NoInterrupts { treatment: usize },
    /// An A/A control copy differs from the treatment it copies: the noise is larger than the intervals say.
    ControlDiffers { metric: String, treatment: usize, copy: usize, ratio: f64, p: f64 },
    /// Identical published rows (A/A) of a treatment differ by this ratio, the largest of the metric.
    NoiseFloor { metric: String, treatment: usize, rows: usize, ratio: f64 },
    /// One run seems to have made one end of a published range and pulled the average.
    OneExtreme { metric: String, treatment: usize, end: published::Extreme },
    /// Kendall's tau on cell-centred residuals against run order.
    Drift { metric: String, percent_per_run: f64, p: f64 },
    /// The first block differs from the others.
    FirstBlock { metric: String, ratio: f64, p: f64 },
    /// Without blocks: of so many treatments the first run is the worst, more often than chance makes it.
    FirstRunsWorst { metric: String, worst: usize, cells: usize, p: f64 },
    /// Grubbs' test on ln values.
    Outlier { metric: String, treatment: usize, block: u32, value: f64, p: f64 },
    /// A two-stage run would have needed more blocks than allowed for the wanted width; `None`: nobody can tell how many.
    TargetNotReached { metric: String, within: f64, needed: Option<u32>, blocks: u32 },
    /// Facts of the host changed between parts of a resumed run.
    HostChanged { what: Vec<String> },
    /// All values of the cell are the same number: the metric is too coarse.
    NoVariation { metric: String, treatment: usize },
    /// The exact tests cannot reach 0.05 with so few blocks.
    ExactCannotReach { blocks: u32, comparisons: usize, min_p: f64 },
    /// The runner itself ran on a measured CPU.
    RunnerOnMeasuredCpus { cpus: CpuSet },
}
