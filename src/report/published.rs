//! Published numbers in words: what can be said of them beside a verdict, or in place of one.

use super::number::{fixed, p_value, significant};
use super::sentence::Context;
use super::tables::treatment;
use super::text::code;
use crate::analysis::published::{Extreme, Ranges};
use crate::analysis::{ComparisonFinding, NoiseFloor, PublishedFinding, RatioOfRatios, Scale};
use crate::recording::Design;

/// What stands behind the verdict sentence of published numbers; empty for trials.
pub(super) fn remarks(finding: &ComparisonFinding) -> String {
    let Some(published) = finding.published else { return String::new() };
    let (level, base) = (code(&finding.level), code(&finding.base));
    let mut said = Vec::new();
    if let Some(cv) = published.break_even_cv {
        said.push(break_even(finding, cv, published.rounding));
    }
    match published.ranges {
        Some(Ranges::Above) => said.push(format!("Every value of {level} is above every value of {base}.")),
        Some(Ranges::Below) => said.push(format!("Every value of {level} is below every value of {base}.")),
        Some(Ranges::Overlap) => said.push("The ranges overlap.".to_owned()),
        None => {}
    }
    if let (Some(means), Some(medians)) = (published.mean_ratio, published.median_ratio) {
        said.push(format!("The means differ by {}, the medians by {}.", change(means), change(medians)));
    }
    if let Some((low, high)) = published.p_range {
        said.push(format!(
            "Low, high and average leave the spread open: p lies between {} and {}, and the larger one counts.",
            p_value(low),
            p_value(high)
        ));
    }
    said.extend(published.noise.map(noise));
    if said.is_empty() { String::new() } else { format!(" {}", said.join(" ")) }
}

/// The same in a few words, for the table.
pub(super) fn notes(published: PublishedFinding) -> Vec<&'static str> {
    let ranges = published.ranges.map(|ranges| match ranges {
        Ranges::Above | Ranges::Below => "ranges do not overlap",
        Ranges::Overlap => "ranges overlap",
    });
    let noise = published
        .noise
        .map(|noise| if noise.is_exceeded() { "beyond the noise floor" } else { "within the noise floor" });
    ranges.into_iter().chain(noise).collect()
}

fn break_even(finding: &ComparisonFinding, cv: f64, rounding: Option<f64>) -> String {
    let Some(ratio) = finding.point.filter(|_| cv > 0.0 && finding.scale == Scale::Ratio) else {
        return "The two values are the same.".to_owned();
    };
    let runs = if finding.averaged_over.is_empty() { "two single runs" } else { "so many single runs" };
    let rounding = rounding.map_or_else(String::new, |half| {
        format!("; rounding alone makes it uncertain by ±{} points", significant(half * 100.0, 1))
    });
    format!(
        "The change of {} exceeds 1.96 sigma of {runs} only if the run-to-run CV is below {} %{rounding}.",
        change(ratio),
        significant(cv * 100.0, if cv < 0.01 { 2 } else { 3 }),
    )
}

fn noise(noise: NoiseFloor) -> String {
    let NoiseFloor { rows, ratio, effects: (low, high) } = noise;
    let against = format!(
        "{rows} identical rows differ by up to {} %; against each of them the effect is {}× to {}×",
        floor(ratio),
        significant(low, 4),
        significant(high, 4)
    );
    if noise.is_exceeded() {
        format!("{against}: more than identical rows differ, but how much of it is chance cannot be said.")
    } else {
        format!("{against}: not told from noise.")
    }
}

/// A noise floor in per cent.
fn floor(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    if percent < 1.0 { significant(percent, 2) } else { fixed(percent, usize::from(percent < 10.0)) }
}

/// `+0.74 %`, with two decimals below ten per cent.
fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    let text = fixed(percent, if percent.abs() < 10.0 { 2 } else { 1 });
    if percent > 0.0 { format!("+{text} %") } else { format!("{text} %") }
}

/// How the ratio of single runs depends on another factor.
pub(super) fn ratio_of_ratios(context: Context<'_>, finding: &RatioOfRatios) -> String {
    let at = |level: &str| code(&format!("{}={level}", finding.factor));
    let within: Vec<String> = finding.within.iter().map(|(factor, level)| code(&format!("{factor}={level}"))).collect();
    let within = if within.is_empty() { String::new() } else { format!(" with {}", within.join(", ")) };
    format!(
        "Ratio of ratios{within}: {} against {} on {} is at {} {}× what it is at {}, from single runs and without any error.",
        code(&finding.level),
        code(&finding.base),
        context.label(&finding.metric),
        at(&finding.levels.0),
        significant(finding.ratio, 4),
        at(&finding.levels.1),
    )
}

/// The combinations of levels of these factors that no treatment has, in a sentence.
pub(super) fn missing(design: &Design, factors: &[usize]) -> Option<String> {
    let all = factors.iter().fold(vec![Vec::new()], |all: Vec<Vec<usize>>, factor| {
        let levels = design.factors.get(*factor).map_or(0, |factor| factor.levels.len());
        all.into_iter().flat_map(|cell| (0..levels).map(move |level| [cell.as_slice(), &[level]].concat())).collect()
    });
    let is_there = |cell: &Vec<usize>| {
        let same =
            |levels: &[usize]| factors.iter().zip(cell).all(|(factor, level)| levels.get(*factor) == Some(level));
        design.treatments.iter().any(|treatment| same(&treatment.levels))
    };
    let name = |cell: Vec<usize>| {
        let levels = factors.iter().zip(cell);
        let levels = levels.map(|(factor, level)| {
            format!("{}={}", design.factors[*factor].name, design.factors[*factor].levels[level])
        });
        code(&levels.collect::<Vec<_>>().join(", "))
    };
    let missing: Vec<String> = all.into_iter().filter(|cell| !is_there(cell)).map(name).collect();
    (!missing.is_empty()).then(|| {
        format!("Nothing is known of {}, so how these factors work together cannot be estimated.", missing.join("; "))
    })
}

/// Identical rows that differ.
pub(super) fn noise_floor(design: &Design, label: &str, (index, rows): (usize, usize), ratio: f64) -> String {
    format!(
        "**Noise floor**: {rows} identical rows of {} differ by up to {} % on {label}. An effect no larger than identical \
         rows differ is not told from noise.",
        treatment(design, index),
        floor(ratio),
    )
}

/// A range of which one run made one end.
pub(super) fn one_extreme(design: &Design, label: &str, index: usize, end: Extreme) -> String {
    let (end, rest) = match end {
        Extreme::High => ("highest", "lowest"),
        Extreme::Low => ("lowest", "highest"),
    };
    format!(
        "**One run made the {end} value**: the average of {label} under {} lies where all other values are near the \
         {rest}. That one run, perhaps the first, pulls the average.",
        treatment(design, index)
    )
}
