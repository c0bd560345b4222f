//! Findings and values as JSON. Absent numbers are `null`, never 0.

use std::collections::BTreeMap;

use serde::Serialize;

use super::levels;
use crate::analysis::{
    Cell, ComparisonFinding, Estimate, ExactKind, ExpectationFinding, ExpectationVerdict, Findings, Flag, Interaction,
    Method, MetricFindings, NoInference, Scale, Verdict,
};
use crate::recording::{Design, Direction, Recording};

/// Version of this shape; fields may be added to it without a new number.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Export<'a> {
    version: u32,
    irqlab: &'a str,
    experiment: &'a str,
    title: &'a str,
    question: Option<&'a str>,
    source: Option<&'a str>,
    started_at: &'a str,
    kernel: Option<&'a str>,
    cpu: Option<&'a str>,
    seed: u64,
    order: &'a str,
    trials: Trials,
    treatments: Vec<Treatment<'a>>,
    metrics: Vec<Measured<'a>>,
    comparisons: Vec<Comparison<'a>>,
    interactions: Vec<Contrast<'a>>,
    expectations: Vec<Expectation<'a>>,
    warnings: Vec<String>,
}

#[derive(Serialize)]
struct Trials {
    planned: usize,
    recorded: usize,
    valid: usize,
    warmup: usize,
}

#[derive(Serialize)]
struct Treatment<'a> {
    name: &'a str,
    levels: BTreeMap<&'a str, &'a str>,
    control: usize,
}

#[derive(Serialize)]
struct Measured<'a> {
    metric: &'a str,
    label: &'a str,
    unit: &'a str,
    better: Option<&'static str>,
    cells: Vec<Sample<'a>>,
}

#[derive(Serialize)]
struct Sample<'a> {
    treatment: &'a str,
    blocks: Vec<u32>,
    values: Vec<f64>,
    n: usize,
    low: Option<f64>,
    high: Option<f64>,
    mean: Option<f64>,
    median: Option<f64>,
    median_ci: Option<[f64; 2]>,
    median_coverage: Option<f64>,
    geometric_mean: Option<f64>,
    sd: Option<f64>,
    cv: Option<f64>,
}

/// `ratio` or `difference`, as `scale` says; the other is `null`.
#[derive(Serialize)]
struct Comparison<'a> {
    metric: &'a str,
    factor: &'a str,
    level: &'a str,
    baseline: &'a str,
    within: BTreeMap<&'a str, &'a str>,
    averaged_over: &'a [String],
    n: Option<usize>,
    n_baseline: Option<usize>,
    scale: &'static str,
    ratio: Option<f64>,
    difference: Option<f64>,
    ci: Option<[f64; 2]>,
    method: Option<&'static str>,
    p: Option<f64>,
    p_holm: Option<f64>,
    exact: Option<&'static str>,
    p_exact: Option<f64>,
    p_min: Option<f64>,
    hodges_lehmann: Option<Robust>,
    margin: Option<f64>,
    verdict: &'static str,
    beyond_margin: bool,
    reason: Option<&'static str>,
    flags: Vec<&'static str>,
    needed_n: Option<u32>,
    published: Option<Published>,
}

/// On the scale of the comparison.
#[derive(Serialize)]
struct Robust {
    value: f64,
    ci: [f64; 2],
    coverage: f64,
    pairs_higher: f64,
    pairs: usize,
}

/// What can be said of published numbers beside a verdict, or in place of one.
#[derive(Serialize)]
struct Published {
    mean_ratio: Option<f64>,
    median_ratio: Option<f64>,
    break_even_cv: Option<f64>,
    rounding: Option<f64>,
    p_range: Option<(f64, f64)>,
    noise_ratio: Option<f64>,
    exceeds_noise: Option<bool>,
}

#[derive(Serialize)]
struct Contrast<'a> {
    metric: &'a str,
    factor: &'a str,
    level: &'a str,
    baseline: &'a str,
    within: BTreeMap<&'a str, &'a str>,
    over: &'a str,
    over_level: &'a str,
    over_baseline: &'a str,
    scale: &'static str,
    value: Option<f64>,
    ci: Option<[f64; 2]>,
    p: f64,
    real: bool,
}

#[derive(Serialize)]
struct Expectation<'a> {
    text: &'a str,
    place: &'a str,
    within: BTreeMap<&'a str, &'a str>,
    verdict: &'static str,
    value: Option<f64>,
    ci: Option<[f64; 2]>,
}

/// The whole, indented, with a newline at its end.
pub fn json(recording: &Recording, findings: &Findings) -> String {
    let header = &recording.header;
    let design = &header.design;
    let counts = findings.counts;
    let treatments = design.treatments.iter().enumerate().map(|(index, treatment)| Treatment {
        name: &treatment.name,
        levels: levels(design, index).into_iter().collect(),
        control: treatment.control,
    });
    pretty(&Export {
        version: VERSION,
        irqlab: &header.tool_version,
        experiment: &design.name,
        title: &design.title,
        question: design.question.as_deref(),
        source: design.source.as_deref(),
        started_at: &header.started_at,
        kernel: header.host.kernel_release.as_deref(),
        cpu: header.host.cpu_model.as_deref(),
        seed: design.protocol.seed,
        order: &design.protocol.order,
        trials: Trials {
            planned: counts.planned,
            recorded: counts.recorded,
            valid: counts.valid,
            warmup: counts.warmup,
        },
        treatments: treatments.collect(),
        metrics: findings.metrics.iter().map(|found| metric(design, found)).collect(),
        comparisons: findings.comparisons.iter().map(comparison).collect(),
        interactions: findings.interactions.iter().map(contrast).collect(),
        expectations: findings.expectations.iter().map(|found| expectation(design, found)).collect(),
        warnings: crate::report::view(recording, findings).warnings,
    })
}

pub(super) fn pretty(value: &impl Serialize) -> String {
    // Texts, numbers and lists always have a JSON form; the analysis lets no number out that is not finite.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    format!("{text}\n")
}

fn metric<'a>(design: &'a Design, found: &'a MetricFindings) -> Measured<'a> {
    let values = |cell: &Cell| Sample {
        treatment: design.treatments.get(cell.treatment).map_or("", |treatment| treatment.name.as_str()),
        blocks: cell.values.iter().map(|(block, _)| *block).collect(),
        values: cell.values.iter().map(|(_, value)| *value).collect(),
        n: cell.summary.map_or(0, |summary| summary.n),
        low: cell.summary.map(|summary| summary.low),
        high: cell.summary.map(|summary| summary.high),
        mean: cell.summary.map(|summary| summary.mean),
        median: cell.summary.map(|summary| summary.median),
        median_ci: cell.summary.and_then(|summary| summary.median_interval).map(|(low, high, _)| [low, high]),
        median_coverage: cell.summary.and_then(|summary| summary.median_interval).map(|(_, _, coverage)| coverage),
        geometric_mean: cell.summary.and_then(|summary| summary.geometric_mean),
        sd: cell.summary.and_then(|summary| summary.sd),
        cv: cell.summary.and_then(|summary| summary.cv),
    };
    Measured {
        metric: &found.id,
        label: &found.label,
        unit: &found.unit,
        better: match found.direction {
            Direction::HigherIsBetter => Some("higher"),
            Direction::LowerIsBetter => Some("lower"),
            Direction::Neutral => None,
        },
        cells: found.cells.iter().map(values).collect(),
    }
}

fn comparison(found: &ComparisonFinding) -> Comparison<'_> {
    let value = found.estimate.map(|estimate| estimate.value).or(found.point);
    let (verdict, beyond_margin, reason) = verdict(found.verdict);
    // Of published low, high and average the number of values may not be known.
    let is_summary = found.verdict == Verdict::NoInference(NoInference::SummaryOnly);
    let known = |n: usize| Some(n).filter(|n| !is_summary || *n > 0);
    Comparison {
        metric: &found.metric,
        factor: &found.factor,
        level: &found.level,
        baseline: &found.base,
        within: pairs(&found.within),
        averaged_over: &found.averaged_over,
        n: known(found.n.0),
        n_baseline: known(found.n.1),
        scale: scale(found.scale),
        ratio: value.filter(|_| found.scale == Scale::Ratio),
        difference: value.filter(|_| found.scale == Scale::Difference),
        ci: bounds(found.estimate),
        method: found.estimate.map(|estimate| match estimate.method {
            Method::PairedT => "paired_t",
            Method::WelchBound => "welch_bound",
            Method::WelchT => "welch_t",
        }),
        p: found.p,
        p_holm: found.p_holm,
        exact: found.exact.map(|exact| match exact.kind {
            ExactKind::MannWhitney => "mann_whitney",
            ExactKind::Permutation => "permutation",
            ExactKind::SignFlip => "sign_flip",
        }),
        p_exact: found.exact.map(|exact| exact.p),
        p_min: found.exact.map(|exact| exact.min_p),
        hodges_lehmann: found.robust.map(|robust| Robust {
            value: robust.value,
            ci: [robust.low, robust.high],
            coverage: robust.coverage,
            pairs_higher: robust.higher.0,
            pairs: robust.higher.1,
        }),
        margin: found.margin,
        verdict,
        beyond_margin,
        reason,
        flags: found.flags.iter().map(|flag| self::flag(*flag)).collect(),
        needed_n: found.needed_n,
        published: found.published.map(|published| Published {
            mean_ratio: published.mean_ratio,
            median_ratio: published.median_ratio,
            break_even_cv: published.break_even_cv,
            rounding: published.rounding,
            p_range: published.p_range,
            noise_ratio: published.noise.map(|noise| noise.ratio),
            exceeds_noise: published.noise.map(|noise| noise.is_exceeded()),
        }),
    }
}

fn contrast(found: &Interaction) -> Contrast<'_> {
    Contrast {
        metric: &found.metric,
        factor: &found.factor,
        level: &found.level,
        baseline: &found.base,
        within: pairs(&found.within),
        over: &found.over,
        over_level: &found.over_level,
        over_baseline: &found.over_base,
        scale: scale(found.scale),
        value: found.estimate.map(|estimate| estimate.value),
        ci: bounds(found.estimate),
        p: found.p,
        real: found.real,
    }
}

fn expectation<'a>(design: &'a Design, found: &'a ExpectationFinding) -> Expectation<'a> {
    let declared = design.expectations.get(found.expectation);
    Expectation {
        text: declared.map_or("", |declared| declared.text.as_str()),
        place: declared.map_or("", |declared| crate::report::text::shown_path(&declared.place)),
        within: pairs(&found.within),
        verdict: match found.verdict {
            ExpectationVerdict::Failed => "failed",
            ExpectationVerdict::Held => "held",
            ExpectationVerdict::NotContradicted => "not_contradicted",
            ExpectationVerdict::Undecided => "undecided",
            ExpectationVerdict::Unsupported => "unsupported",
        },
        value: found.estimate.map(|estimate| estimate.value),
        ci: bounds(found.estimate),
    }
}

fn verdict(verdict: Verdict) -> (&'static str, bool, Option<&'static str>) {
    match verdict {
        Verdict::Equivalent => ("equivalent", false, None),
        Verdict::Faster { beyond_margin } => ("faster", beyond_margin, None),
        Verdict::Inconclusive => ("inconclusive", false, None),
        Verdict::Slower { beyond_margin } => ("slower", beyond_margin, None),
        Verdict::NoInference(reason) => ("no_inference", false, Some(self::reason(reason))),
    }
}

fn reason(reason: NoInference) -> &'static str {
    match reason {
        NoInference::Contradictory => "contradictory",
        NoInference::DependsOnLevel => "depends_on_level",
        NoInference::NoDirection => "no_direction",
        NoInference::NoValues => "no_values",
        NoInference::SequentialOrder => "sequential_order",
        NoInference::SingleValue => "single_value",
        NoInference::SummaryOnly => "summary_only",
        NoInference::TooFewValues => "too_few_values",
        NoInference::WholePlotUnreplicated => "whole_plot_unreplicated",
        NoInference::ZeroVariance => "zero_variance",
    }
}

fn flag(flag: Flag) -> &'static str {
    match flag {
        Flag::ControlDiffers => "control_differs",
        Flag::DependsOn { .. } => "depends_on_level",
        Flag::Drift => "drift",
        Flag::FirstBlock => "block_1_effect",
        Flag::EffectHangsOnOneRun { .. } | Flag::HangsOnOneRun { .. } => "hangs_on_one_run",
        Flag::ModelBasedOnly => "model_based_only",
        Flag::OptionNotInForce { .. } => "option_not_in_force",
        Flag::Outlier { .. } => "outlier",
        Flag::WithinMargin => "within_margin",
    }
}

fn scale(scale: Scale) -> &'static str {
    match scale {
        Scale::Difference => "difference",
        Scale::Ratio => "ratio",
    }
}

fn bounds(estimate: Option<Estimate>) -> Option<[f64; 2]> {
    estimate.map(|estimate| [estimate.low, estimate.high])
}

fn pairs(within: &[(String, String)]) -> BTreeMap<&str, &str> {
    within.iter().map(|(factor, level)| (factor.as_str(), level.as_str())).collect()
}
