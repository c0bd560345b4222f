//! Verdicts in plain words: short, exact, never more than the finding says, always with unit, n and interval.

use super::number::{self, fixed, interval_decimals, p_relation, p_value, percent, significant};
use super::tables::digits;
use super::text::{code, inline};
use crate::analysis::{
    ComparisonFinding, Estimate, ExactKind, ExactTest, ExpectationFinding, ExpectationVerdict, Flag, Interaction,
    Method, MetricFindings, NoInference, Robust, Scale, Verdict,
};
use crate::recording::{Design, Direction, Expectation, Relation};

/// The two words for better and worse that fit a metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Words {
    better: &'static str,
    worse: &'static str,
}

/// What a sentence needs to know besides the finding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Context<'a> {
    /// The experiment.
    pub(super) design: &'a Design,
    /// The metric compared; `None` when the finding names one that is not in the findings.
    pub(super) metric: Option<&'a MetricFindings>,
}

impl Context<'_> {
    fn words(&self) -> Words {
        let speed = self.metric.is_some_and(|metric| {
            let unit = metric.unit.as_str();
            let cpu_time = metric.id.starts_with("host.")
                || metric.id.rsplit_once('.').is_some_and(|(_, name)| matches!(name, "user" | "sys"));
            let rate = unit.split_once('/').is_some_and(|(_, per)| per == "s" || per.starts_with("s/") || per == "sec");
            !cpu_time && (matches!(unit, "s" | "ms" | "us" | "µs" | "ns" | "min") || rate)
        });
        if speed { Words { better: "faster", worse: "slower" } } else { Words { better: "better", worse: "worse" } }
    }

    fn direction(&self) -> Direction {
        self.metric.map_or(Direction::Neutral, |metric| metric.direction)
    }

    fn unit(&self) -> &str {
        self.metric.map_or("", |metric| metric.unit.as_str())
    }

    fn blocked(&self) -> bool {
        self.design.protocol.order == "blocks"
    }

    /// The name the report has for the metric.
    pub(super) fn label(&self, id: &str) -> String {
        code(self.metric.map_or(id, |metric| metric.label.as_str()))
    }
}

/// The verdict of one comparison as one or two sentences.
pub(super) fn comparison(context: Context<'_>, finding: &ComparisonFinding) -> String {
    let words = context.words();
    let (level, base) = (code(&finding.level), code(&finding.base));
    let metric = context.label(&finding.metric);
    let within = held("With", &finding.within);
    let (inconclusive, no_verdict) =
        if within.is_empty() { ("Inconclusive", "No verdict") } else { ("inconclusive", "no verdict") };
    let evidence = format!("{} ({})", described(context, finding), basis(context, finding));
    let margin = finding.margin.map(percent);
    match finding.verdict {
        Verdict::Faster { beyond_margin } => {
            let claim = format!("**{level} is {} than {base}** on {metric}", words.better);
            format!("{within}{claim}{}: {evidence}.", beyond(beyond_margin, margin.as_deref()))
        }
        Verdict::Slower { beyond_margin } => {
            let claim = format!("**{level} is {} than {base}** on {metric}", words.worse);
            format!("{within}{claim}{}: {evidence}.", beyond(beyond_margin, margin.as_deref()))
        }
        Verdict::Equivalent => {
            let margin = margin.map_or_else(|| "the margin".to_owned(), |margin| format!("±{margin}"));
            format!("{within}**{level} and {base} are equivalent within {margin}** on {metric}: {evidence}.")
        }
        Verdict::Inconclusive => {
            let reach = finding.estimate.map(|estimate| reach(context, finding, estimate)).unwrap_or_default();
            let needed = finding.needed_n.map(|n| needed(context, n)).unwrap_or_default();
            let (effect, basis) = (described(context, finding), basis(context, finding));
            format!(
                "{within}**{inconclusive}** for {level} against {base} on {metric}: {effect}{reach} ({basis}).{needed}"
            )
        }
        Verdict::NoInference(reason) => {
            let seen = match described(context, finding) {
                effect if effect == "-" => String::new(),
                effect => format!(" For description only: {effect} ({}).", basis(context, finding)),
            };
            let why = match (reason, finding.published) {
                (NoInference::SingleValue, Some(_)) => "one value on a side says nothing about the spread",
                (NoInference::TooFewValues, Some(_)) => "fewer than three values on a side, in the same conditions",
                (reason, _) => why(reason),
            };
            format!("{within}**{no_verdict}** for {level} against {base} on {metric}: {why}.{seen}")
        }
    }
}

/// The verdict in two or three words, for tables and the index.
pub(super) fn verdict(context: Context<'_>, finding: &ComparisonFinding) -> String {
    let words = context.words();
    let than = |word: &str, beyond_margin: bool| match finding.margin {
        Some(margin) if beyond_margin => format!("{word}, by more than {}", percent(margin)),
        _ => word.to_owned(),
    };
    match finding.verdict {
        Verdict::Equivalent => finding
            .margin
            .map_or_else(|| "equivalent".to_owned(), |margin| format!("equivalent within ±{}", percent(margin))),
        Verdict::Faster { beyond_margin } => than(words.better, beyond_margin),
        Verdict::Inconclusive => "inconclusive".to_owned(),
        Verdict::NoInference(NoInference::DependsOnLevel) => "depends on a level".to_owned(),
        Verdict::NoInference(_) => "no verdict".to_owned(),
        Verdict::Slower { beyond_margin } => than(words.worse, beyond_margin),
    }
}

/// A doubt that belongs to one verdict.
pub(super) fn flag(context: Context<'_>, finding: &ComparisonFinding, flag: Flag) -> String {
    match flag {
        Flag::DependsOn { factor } => {
            let name = context.design.factors.get(factor).map_or_else(|| "?".to_owned(), |factor| code(&factor.name));
            format!("the effect depends on {name}: see it at each level of {name}")
        }
        Flag::ControlDiffers => {
            "an A/A control copy differs from the treatment it copies, so the noise is larger than the intervals say"
                .to_owned()
        }
        Flag::Drift => "the values drift over the run".to_owned(),
        Flag::FirstBlock if !context.blocked() => {
            "the first runs are the worst more often than chance makes them: more warm-up may be needed".to_owned()
        }
        Flag::FirstBlock => "the first block is unlike the others: more warm-up may be needed".to_owned(),
        Flag::OptionNotInForce { treatment } => format!(
            "a boot option of {} was not in force in every boot, so this says nothing of that option",
            super::tables::treatment(context.design, treatment)
        ),
        Flag::Outlier { treatment, block } => {
            let name = context.design.treatments.get(treatment).map_or("?", |treatment| treatment.name.as_str());
            let unit = if context.blocked() { "block" } else { "repetition" };
            format!("{unit} {block} of {} is an outlier, and is in the numbers all the same", code(name))
        }
        Flag::EffectHangsOnOneRun { treatment, value, without } => format!(
            "the effect hangs on one value: without {} under {} it is {}×",
            with_unit(&fixed(value, context.metric.map_or(4, |metric| digits(metric).values)), context.unit()),
            super::tables::treatment(context.design, treatment),
            significant(without, 4)
        ),
        Flag::HangsOnOneRun { .. } if finding.published.is_some() => {
            "hangs on one value: without it the verdict would be another".to_owned()
        }
        Flag::HangsOnOneRun { block } => {
            let unit = if context.blocked() { "block" } else { "repetition" };
            format!("hangs on one run: without {unit} {block} the verdict would be another")
        }
        Flag::ModelBasedOnly => {
            let exact = match finding.exact {
                Some(exact) if exact.min_p > 0.05 => {
                    format!("with so few trials the exact test cannot go below {}", p_value(exact.min_p))
                }
                Some(exact) => format!("the exact test gives p{}", p_relation(exact.p)),
                None => "there is no exact test beside it".to_owned(),
            };
            format!("model-based only: {exact}, so the verdict rests on the t model alone")
        }
        Flag::WithinMargin => "there is a difference, but it is smaller than the margin".to_owned(),
    }
}

/// The effect alone: `0.312×`, `-1.20 s`; `-` without one.
pub(super) fn effect(context: Context<'_>, finding: &ComparisonFinding) -> String {
    if let Some(estimate) = finding.estimate {
        return quantity(context, finding.scale, estimate.value, decimals(finding.scale, estimate));
    }
    finding.point.map_or_else(
        || "-".to_owned(),
        |point| match finding.scale {
            Scale::Difference => with_unit(&significant(point, 3), context.unit()),
            Scale::Ratio => format!("{}×", significant(point, 4)),
        },
    )
}

/// The 95 % interval alone.
pub(super) fn interval(context: Context<'_>, finding: &ComparisonFinding) -> String {
    finding.estimate.map_or_else(|| "-".to_owned(), |estimate| bounds(context, finding.scale, estimate))
}

/// An interaction and its 95 % interval.
pub(super) fn ratio_of_ratios(context: Context<'_>, found: &Interaction) -> (String, String) {
    found.estimate.map_or_else(
        || ("-".to_owned(), "-".to_owned()),
        |estimate| {
            let value = quantity(context, found.scale, estimate.value, decimals(found.scale, estimate));
            (value, bounds(context, found.scale, estimate))
        },
    )
}

/// Number of pairs or of values per side.
pub(super) fn count(context: Context<'_>, finding: &ComparisonFinding) -> String {
    let (level, base) = finding.n;
    if finding.published.is_some() {
        return if level.min(base) == 0 { "unknown".to_owned() } else { format!("{level} and {base}") };
    }
    let paired = finding.estimate.map_or(context.blocked(), |estimate| estimate.method == Method::PairedT);
    match (paired && level == base, level) {
        (true, 1) => "1 block".to_owned(),
        (true, _) => format!("{level} blocks"),
        (false, _) => format!("{level} and {base} trials"),
    }
}

/// The exact test's p and what it cannot go below.
pub(super) fn exact(exact: ExactTest) -> String {
    let name = match exact.kind {
        ExactKind::MannWhitney => "Mann-Whitney",
        ExactKind::Permutation => "permutation",
        ExactKind::SignFlip => "sign flip",
    };
    format!("{} ({name}; cannot go below {})", p_value(exact.p), p_value(exact.min_p))
}

/// The estimate that assumes no distribution with its interval and what that covers; and in how many pairs the level was
/// higher.
pub(super) fn robust(context: Context<'_>, finding: &ComparisonFinding) -> [String; 2] {
    let Some(robust) = finding.robust else { return ["-".to_owned(), "-".to_owned()] };
    let Robust { value, low, high, coverage: share, higher: (above, pairs) } = robust;
    let decimals = interval_decimals(low, high, null(finding.scale)).min(6);
    let (low, high) = (fixed(low, decimals), fixed(high, decimals));
    let bounds = match finding.scale {
        Scale::Difference => format!("{low} to {high}"),
        Scale::Ratio => format!("{low}–{high}"),
    };
    let value = quantity(context, finding.scale, value, decimals);
    let count = fixed(above, usize::from(above.fract() > 0.0));
    [format!("{value} ({bounds} at {})", number::coverage(share)), format!("{count} of {pairs}")]
}

/// `With ipc=pipe: ` or nothing.
fn held(with: &str, within: &[(String, String)]) -> String {
    let levels: Vec<String> = within.iter().map(|(factor, level)| code(&format!("{factor}={level}"))).collect();
    if levels.is_empty() { String::new() } else { format!("{with} {}: ", levels.join(", ")) }
}

fn beyond(beyond_margin: bool, margin: Option<&str>) -> String {
    match (margin, beyond_margin) {
        (Some(margin), true) => format!(", by more than the margin of {margin}"),
        (Some(margin), false) => format!(" (not shown to be more than the margin of {margin})"),
        (None, _) => String::new(),
    }
}

/// The effect with what it is an effect of.
fn described(context: Context<'_>, finding: &ComparisonFinding) -> String {
    match (finding.scale, effect(context, finding)) {
        (Scale::Difference, effect) if effect != "-" => format!("difference {effect}"),
        (_, effect) => effect,
    }
}

/// Interval, n and p values.
fn basis(context: Context<'_>, finding: &ComparisonFinding) -> String {
    let mut parts = Vec::new();
    if finding.estimate.is_some() {
        parts.push(format!("95 % CI {}", interval(context, finding)));
    }
    parts.push(format!("n = {}", count(context, finding)));
    if let Some(p) = finding.p {
        match finding.p_holm {
            Some(holm) if p_value(holm) != p_value(p) => parts.push(format!("Holm p{}", p_relation(holm))),
            _ => parts.push(format!("p{}", p_relation(p))),
        }
    }
    if let Some(exact) = finding.exact {
        let floor =
            if exact.min_p > 0.05 { format!(", cannot go below {}", p_value(exact.min_p)) } else { String::new() };
        parts.push(format!("exact p{}{floor}", p_relation(exact.p)));
    }
    if !finding.averaged_over.is_empty() {
        let factors: Vec<String> = finding.averaged_over.iter().map(|factor| code(factor)).collect();
        parts.push(format!("averaged over {}", factors.join(", ")));
    }
    parts.join("; ")
}

/// How far an interval that decides nothing reaches, in words.
fn reach(context: Context<'_>, finding: &ComparisonFinding, estimate: Estimate) -> String {
    let null = null(finding.scale);
    if estimate.low > null || estimate.high < null {
        let nothing = match finding.scale {
            Scale::Difference => "0",
            Scale::Ratio => "1×",
        };
        return format!(
            "; this 95 % CI alone leaves out {nothing}, but p corrected for the number of comparisons does not reach 0.05"
        );
    }
    let shows = finding.margin.map_or_else(
        || "so a difference is neither shown nor ruled out".to_owned(),
        |margin| format!("so neither a difference nor equivalence within ±{} is shown", percent(margin)),
    );
    if finding.scale == Scale::Difference || context.direction() == Direction::Neutral {
        return format!("; the 95 % CI holds both directions, {shows}");
    }
    let decimals = usize::from(estimate.high - estimate.low < 0.2);
    let words = context.words();
    let side = |bound: f64| {
        let higher_is_better = context.direction() == Direction::HigherIsBetter;
        let word = if (bound > 1.0) == higher_is_better { words.better } else { words.worse };
        if bound >= 2.0 {
            return format!("{} times as much ({word})", significant(bound, 2));
        }
        let more = if bound > 1.0 { "higher" } else { "lower" };
        format!("{} % {more} ({word})", fixed((bound - 1.0).abs() * 100.0, decimals))
    };
    format!("; the 95 % CI reaches from {} to {}, {shows}", side(estimate.low), side(estimate.high))
}

fn needed(context: Context<'_>, n: u32) -> String {
    let what = if context.blocked() { "blocks" } else { "trials per treatment" };
    format!(" About {n} {what} would probably decide it.")
}

fn why(reason: NoInference) -> &'static str {
    match reason {
        NoInference::DependsOnLevel => {
            "the effect is not the same at each level of what it would be averaged over, so that an average stands for none of them"
        }
        NoInference::Contradictory => "no sample of that size has the published low, high and average",
        NoInference::SummaryOnly => {
            "only low, high and average are published, and not of how many values, so nothing is known of the spread"
        }
        NoInference::NoDirection => "the metric has no better direction (say `lower_is_better` or `higher_is_better`)",
        NoInference::NoValues => "the two sides have no valid values to compare",
        NoInference::SequentialOrder => {
            "all trials of one treatment ran before the next, so drift cannot be told from effect (use `order blocks`)"
        }
        NoInference::SingleValue => "one value on a side says nothing about the spread (use `repeat 5` or more)",
        NoInference::TooFewValues => "fewer than three values on a side (use `repeat 5` or more)",
        NoInference::WholePlotUnreplicated => {
            "what is compared was set up, or booted, too seldom (once per level, or several trials each time without blocks), so its effect cannot be told from that of setting it up"
        }
        NoInference::ZeroVariance => {
            "all differences are the same number, so there is no error to judge them by (a finer metric is needed)"
        }
    }
}

/// An expectation and how it fared.
pub(super) fn expectation(declared: &Expectation, design: &Design, finding: &ExpectationFinding) -> String {
    let side = |(coefficient, level): (f64, usize)| {
        let name = design.factors.get(declared.factor).and_then(|factor| factor.levels.get(level));
        let name = name.map_or("?", String::as_str);
        if (coefficient - 1.0).abs() < f64::EPSILON { name.to_owned() } else { format!("({coefficient} * {name})") }
    };
    let meaning = match finding.verdict {
        ExpectationVerdict::Failed => "the whole interval is on the wrong side",
        ExpectationVerdict::Held => "the whole interval is on the right side",
        ExpectationVerdict::NotContradicted => "the estimate is on the right side, but the interval holds both",
        ExpectationVerdict::Undecided => "there is no inference to judge it by",
        ExpectationVerdict::Unsupported => "the estimate is on the wrong side, but the interval holds both",
    };
    let measured = finding.estimate.map_or_else(String::new, |estimate| {
        let decimals = decimals(finding.scale, estimate);
        let sign = match finding.scale {
            Scale::Difference => "-",
            Scale::Ratio => "/",
        };
        let measured = code(&format!("{} {sign} {}", side(declared.left), side(declared.right)));
        format!(
            "; {measured} is {} (95 % CI {} to {})",
            fixed(estimate.value, decimals),
            fixed(estimate.low, decimals),
            fixed(estimate.high, decimals)
        )
    });
    let margin = match (declared.operator, finding.margin) {
        (Relation::Equal | Relation::NotEqual, Some(margin)) => {
            format!(" (judged by the margin of ±{})", percent(margin))
        }
        _ => String::new(),
    };
    format!("{}{meaning}{measured}{margin}", held("with", &finding.within))
}

/// One word or two for how an expectation fared.
pub(super) fn expectation_word(verdict: ExpectationVerdict) -> &'static str {
    match verdict {
        ExpectationVerdict::Failed => "FAILED",
        ExpectationVerdict::Held => "held",
        ExpectationVerdict::NotContradicted => "not contradicted",
        ExpectationVerdict::Undecided => "undecided",
        ExpectationVerdict::Unsupported => "not supported",
    }
}

/// `value unit`, the unit escaped.
pub(super) fn with_unit(value: &str, unit: &str) -> String {
    if unit.is_empty() { value.to_owned() } else { format!("{value} {}", inline(unit)) }
}

fn null(scale: Scale) -> f64 {
    match scale {
        Scale::Difference => 0.0,
        Scale::Ratio => 1.0,
    }
}

fn decimals(scale: Scale, estimate: Estimate) -> usize {
    interval_decimals(estimate.low, estimate.high, null(scale))
}

fn quantity(context: Context<'_>, scale: Scale, value: f64, decimals: usize) -> String {
    match scale {
        Scale::Difference => with_unit(&fixed(value, decimals), context.unit()),
        Scale::Ratio => format!("{}×", fixed(value, decimals)),
    }
}

fn bounds(context: Context<'_>, scale: Scale, estimate: Estimate) -> String {
    let decimals = decimals(scale, estimate);
    let (low, high) = (fixed(estimate.low, decimals), fixed(estimate.high, decimals));
    match scale {
        Scale::Difference => with_unit(&format!("{low} to {high}"), context.unit()),
        Scale::Ratio => format!("{low}–{high}"),
    }
}
