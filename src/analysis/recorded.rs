//! Two levels of published numbers side by side: what rows, summaries and identical rows allow to say of them.

use super::comparison::ALPHA;
use super::published::{
    Side, bounded_welch, break_even_cv, half_unit, ranges, ratio_of_averages, rounding, separation_p,
};
use super::sides::{Inferred, Pair, scale_of};
use super::summary::{mean, quantile};
use super::values::Values;
use super::{Estimate, ExactKind, ExactTest, Flag, Method, NoInference, NoiseFloor, PublishedFinding, Scale};
use crate::recording::Design;

/// What summaries allow to infer.
pub(super) struct Bounded {
    pub(super) inferred: Inferred,
    /// Ratio of averages, or their difference.
    pub(super) point: Option<f64>,
    /// The same with its interval.
    pub(super) estimate: Option<Estimate>,
    /// Both sides, where their ratio is inferred.
    pub(super) averages: Option<(Side, Side)>,
    pub(super) scale: Scale,
    /// Smallest and largest p.
    pub(super) p_range: Option<(f64, f64)>,
    pub(super) exact: Option<ExactTest>,
}

/// The inference from low, high and average: Welch's with bounds of both spreads where n is known, and of one pair;
/// `None` where every value is known.
pub(super) fn summaries(values: &Values, pairs: &[Pair]) -> Option<Bounded> {
    let is_summary = |treatment: usize| values.summaries.get(treatment).copied().flatten().is_some();
    pairs.iter().any(|pair| is_summary(pair.0) || is_summary(pair.1)).then(|| bounded(values, pairs))
}

fn bounded(values: &Values, pairs: &[Pair]) -> Bounded {
    let sides: Vec<(Side, Side)> =
        pairs.iter().filter_map(|(level, base)| values.side(*level).zip(values.side(*base))).collect();
    let none = |reason: NoInference| {
        let logs: Vec<f64> = sides.iter().map(|(level, base)| (level.average / base.average).ln()).collect();
        let point = (sides.len() == pairs.len() && scale_of(values) == Scale::Ratio).then(|| mean(&logs).exp());
        let n = |side: fn(&(Side, Side)) -> Option<u32>| {
            sides.iter().map(side).sum::<Option<u32>>().map_or(0, |n| n as usize)
        };
        Bounded {
            inferred: Inferred {
                n: (n(|sides| sides.0.n), n(|sides| sides.1.n)),
                point: None,
                inference: Err(reason),
                method: Method::WelchBound,
            },
            point: point.filter(|point| point.is_finite()),
            estimate: None,
            averages: None,
            scale: Scale::Ratio,
            p_range: None,
            exact: None,
        }
    };
    let [(level, base)] = sides.as_slice() else {
        return none(if sides.len() < pairs.len() { NoInference::NoValues } else { NoInference::SummaryOnly });
    };
    if sides.len() < pairs.len() {
        return none(NoInference::NoValues);
    }
    let (Some(n), Some(m)) = (level.n, base.n) else { return none(NoInference::SummaryOnly) };
    let exact = separation_p(level, base).map(|p| ExactTest { kind: ExactKind::MannWhitney, p, min_p: p });
    match bounded_welch(level, base) {
        None if n < 2 || m < 2 => none(NoInference::SingleValue),
        None if level.sd.is_none() || base.sd.is_none() => none(NoInference::Contradictory),
        None => Bounded { exact, ..none(NoInference::ZeroVariance) },
        Some(_) if n < 3 || m < 3 => Bounded { exact, ..none(NoInference::TooFewValues) },
        Some((smallest, inference)) => {
            let method = Method::WelchBound;
            let of_ratio = Some(scale_of(values)).filter(|scale| *scale == Scale::Ratio);
            let of_ratio = of_ratio.and_then(|_| ratio_of_averages(level, base));
            let estimate = match of_ratio {
                Some((value, low, high)) => Some(Estimate { value, low, high, method }),
                None => inference.interval(1.0 - ALPHA).map(|(low, high)| Estimate {
                    value: inference.estimate,
                    low,
                    high,
                    method,
                }),
            };
            Bounded {
                inferred: Inferred {
                    n: (n as usize, m as usize),
                    point: Some(inference.estimate),
                    inference: Ok(inference),
                    method,
                },
                point: estimate.map(|estimate| estimate.value),
                estimate,
                averages: of_ratio.map(|_| (*level, *base)),
                scale: if of_ratio.is_some() { Scale::Ratio } else { Scale::Difference },
                p_range: inference.p().map(|largest| (smallest, largest)),
                exact,
            }
        }
    }
}

/// What published numbers say beside the inference.
pub(super) fn published_finding(design: &Design, values: &Values, pairs: &[Pair]) -> PublishedFinding {
    let mut finding = PublishedFinding::default();
    let sides: Vec<(Side, Side)> =
        pairs.iter().filter_map(|(level, base)| values.side(*level).zip(values.side(*base))).collect();
    if sides.len() < pairs.len() {
        return finding;
    }
    let single = |side: &Side| side.n == Some(1);
    let is_ratio = scale_of(values) == Scale::Ratio;
    if is_ratio && sides.iter().all(|(level, base)| single(level) && single(base)) {
        let logs: Vec<f64> = sides.iter().map(|(level, base)| (level.average / base.average).ln()).collect();
        finding.break_even_cv = Some(break_even_cv(mean(&logs), logs.len()));
    }
    let ([(level, base)], [(of_level, of_base)]) = (sides.as_slice(), pairs) else { return finding };
    if single(level) && single(base) {
        finding.rounding = values
            .decimals
            .filter(|_| is_ratio)
            .and_then(|decimals| rounding(level.average, base.average, half_unit(decimals)));
    } else if !single(level) && !single(base) {
        finding.ranges = Some(ranges((level.low, level.high), (base.low, base.high)));
    }
    let numbers = |treatment: usize| {
        let numbers: Option<Vec<f64>> = values.cells.get(treatment).map(|cell| cell.values().copied().collect());
        numbers.filter(|numbers| numbers.len() > 2 && is_ratio)
    };
    if let (Some(level), Some(base)) = (numbers(*of_level), numbers(*of_base)) {
        finding.mean_ratio = Some(mean(&level) / mean(&base));
        finding.median_ratio = quantile(&level, 0.5).zip(quantile(&base, 0.5)).map(|(level, base)| level / base);
    }
    finding.noise = if is_ratio { noise_floor(design, values, (*of_level, *of_base)) } else { None };
    finding
}

/// Averages of a treatment and of its identical copies.
fn identical(design: &Design, values: &Values, treatment: usize) -> Vec<f64> {
    let levels = &design.treatments[treatment].levels;
    let same = design.treatments.iter().enumerate().filter(|(_, other)| other.levels == *levels);
    same.filter_map(|(index, _)| values.side(index)).map(|side| side.average).collect()
}

/// Highest over lowest.
fn widest(values: &[f64]) -> f64 {
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high / values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn noise_floor(design: &Design, values: &Values, (level, base): Pair) -> Option<NoiseFloor> {
    let (level, base) = (identical(design, values, level), identical(design, values, base));
    let ratio = widest(&level).max(widest(&base));
    let mut ratios: Vec<f64> = level.iter().flat_map(|level| base.iter().map(move |base| level / base)).collect();
    ratios.sort_by(f64::total_cmp);
    let effects = (*ratios.first()?, *ratios.last()?);
    let rows = level.len().max(base.len());
    (rows > 1 && ratio.is_finite()).then_some(NoiseFloor { rows, ratio, effects })
}

/// The treatment whose identical published rows differ most, with their number and the ratio.
pub(super) fn widest_control(design: &Design, values: &Values) -> Option<(usize, usize, f64)> {
    if scale_of(values) == Scale::Difference || values.decimals.is_none() {
        return None;
    }
    let originals = design.treatments.iter().enumerate().filter(|(_, treatment)| treatment.control == 0);
    let sets = originals.map(|(index, _)| (index, identical(design, values, index)));
    let sets = sets.filter(|(_, averages)| averages.len() > 1);
    let widths = sets.map(|(index, averages)| (index, averages.len(), widest(&averages)));
    widths.filter(|(_, _, ratio)| ratio.is_finite()).max_by(|a, b| a.2.total_cmp(&b.2))
}

/// The published value without which less than half of the effect is left, or the effect turns round.
pub(super) fn effect_hangs_on(values: &Values, pairs: &[Pair], point: Option<f64>) -> Option<Flag> {
    let ([(level, base)], Some(point)) = (pairs, point) else { return None };
    if scale_of(values) == Scale::Difference || values.decimals.is_none() {
        return None;
    }
    let logs = |treatment: usize| -> Vec<f64> { values.cells[treatment].values().map(|value| value.ln()).collect() };
    let mut worst: Option<(f64, Flag)> = None;
    for (treatment, other, sign) in [(*level, *base, 1.0), (*base, *level, -1.0)] {
        let other = mean(&logs(other));
        let all = logs(treatment);
        for (place, value) in values.cells[treatment].values().enumerate().filter(|_| all.len() > 2) {
            let mut rest = all.clone();
            rest.remove(place);
            let left = sign * (mean(&rest) - other);
            // What is left, in the direction of the effect.
            let kept = left * point.signum();
            if kept < point.abs() / 2.0 && worst.is_none_or(|(least, _)| kept < least) {
                worst = Some((kept, Flag::EffectHangsOnOneRun { treatment, value: *value, without: left.exp() }));
            }
        }
    }
    worst.map(|(_, flag)| flag)
}
