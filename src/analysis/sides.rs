//! Two levels of a factor side by side: which trials belong to which side, and what may be inferred from them.
//!
//! Knows no directions, margins or verdicts.

use std::collections::{BTreeMap, BTreeSet};

use super::exact::{mann_whitney, sign_flip};
use super::student::{Inference, contrast, paired};
use super::summary::mean;
use super::values::Values;
use super::{ExactTest, Method, NoInference, Scale};
use crate::recording::{Design, Trial};

/// How trials were laid out, as far as inference cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    /// Randomised complete blocks.
    Blocked,
    /// One treatment after the other.
    Sequential,
    /// Shuffled without blocks, or numbers of unknown order.
    Unblocked,
}

impl Layout {
    /// The layout of a protocol's order: everything but `blocks` and `sequential` is without blocks.
    pub(super) fn of(order: &str) -> Self {
        match order {
            "blocks" => Layout::Blocked,
            "sequential" => Layout::Sequential,
            _ => Layout::Unblocked,
        }
    }
}

/// Two treatments that differ in the compared factor alone.
pub(super) type Pair = (usize, usize);

/// Pairs of treatments with `level` and `base` of `factor`, alike in all other factors, with the fixed levels of `within`.
/// A/A copies are on no side. A combination that one side lacks by design is left out on both.
pub(super) fn pairs(design: &Design, factor: usize, levels: (usize, usize), within: &[(usize, usize)]) -> Vec<Pair> {
    let cells = || design.treatments.iter().enumerate().filter(|(_, treatment)| treatment.control == 0);
    let fixed = |levels: &[usize]| within.iter().all(|(factor, level)| levels.get(*factor) == Some(level));
    cells()
        .filter(|(_, left)| left.levels.get(factor) == Some(&levels.0) && fixed(&left.levels))
        .filter_map(|(index, left)| {
            let mut partner = left.levels.clone();
            partner[factor] = levels.1;
            cells().find(|(_, right)| right.levels == partner).map(|(right, _)| (index, right))
        })
        .collect()
}

/// Every combination of levels of `factors`, as `(factor, level)`; one empty combination without factors.
pub(super) fn combinations(design: &Design, factors: &[usize]) -> Vec<Vec<(usize, usize)>> {
    factors.iter().fold(vec![Vec::new()], |combinations, factor| {
        let levels = design.factors.get(*factor).map_or(0, |factor| factor.levels.len());
        let extend = |combination: Vec<(usize, usize)>| {
            (0..levels).map(move |level| [combination.as_slice(), &[(*factor, level)]].concat())
        };
        combinations.into_iter().flat_map(extend).collect()
    })
}

/// A whole plot of a hard-to-change factor is a run of trials under one of its levels. A level visited once has no error
/// term. In blocks two visits can stand for three blocks, because a level that ends one block may begin the next.
pub(super) fn is_replicated(design: &Design, trials: &[&Trial], factor: usize, levels: (usize, usize)) -> bool {
    if !design.factors.get(factor).is_some_and(|factor| factor.hard_to_change) {
        return true;
    }
    let needed = if Layout::of(&design.protocol.order) == Layout::Blocked { 2 } else { 3 };
    let level_of = |trial: &&Trial| design.treatments.get(trial.treatment)?.levels.get(factor).copied();
    let mut visits: Vec<usize> = trials.iter().filter_map(level_of).collect();
    visits.dedup();
    [levels.0, levels.1].iter().all(|level| visits.iter().filter(|visit| *visit == level).count() >= needed)
}

/// Values of both sides, on the scale of the inference.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sides {
    /// Ratio: values are natural logarithms.
    pub(super) scale: Scale,
    data: Data,
    /// Differences of values no larger than this are rounding.
    resolution: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Data {
    /// `(block, left - right)`.
    Blocked(Vec<(u32, f64)>),
    /// Left and right per stratum, as `(block, value)`.
    Unblocked(Vec<[Vec<(u32, f64)>; 2]>),
}

/// What can be inferred from two sides.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Inferred {
    /// Values, or pairs on both places.
    pub(super) n: (usize, usize),
    /// ln ratio or difference.
    pub(super) point: Option<f64>,
    /// The inference, or why there is none.
    pub(super) inference: Result<Inference, NoInference>,
    /// The companion.
    pub(super) exact: Option<ExactTest>,
    /// How.
    pub(super) method: Method,
}

impl Sides {
    /// Left values times `coefficients.0` against right values times `coefficients.1`.
    ///
    /// Factors averaged over are averaged within the block, on the ln scale where values are positive. In blocks only
    /// those with every pair complete are used.
    pub(super) fn new(values: &Values, layout: Layout, pairs: &[Pair], coefficients: (f64, f64)) -> Self {
        let multiplied = coefficients.0 > 0.0 && coefficients.1 > 0.0;
        let scale = if multiplied { scale_of(values) } else { Scale::Difference };
        let onto_scale = |value: f64, coefficient: f64| match scale {
            Scale::Difference => coefficient * value,
            Scale::Ratio => value.ln() + coefficient.ln(),
        };
        let side = |treatment: usize, coefficient: f64| -> Vec<(u32, f64)> {
            let cell = values.cells.get(treatment);
            cell.into_iter().flatten().map(|(block, value)| (*block, onto_scale(*value, coefficient))).collect()
        };
        let strata: Vec<[Vec<(u32, f64)>; 2]> =
            pairs.iter().map(|(left, right)| [side(*left, coefficients.0), side(*right, coefficients.1)]).collect();
        let largest = strata.iter().flatten().flatten().fold(0.0_f64, |largest, (_, value)| largest.max(value.abs()));
        let unit = if scale == Scale::Ratio { 1.0 } else { 0.0 };
        let data = match layout {
            Layout::Blocked => Data::Blocked(block_differences(&strata)),
            Layout::Sequential | Layout::Unblocked => Data::Unblocked(strata),
        };
        Sides { scale, data, resolution: 1e-13 * (unit + largest) }
    }

    /// Paired t over blocks with the sign flip beside it, or Welch's t (its contrast form over strata) with Mann-Whitney.
    pub(super) fn infer(&self) -> Inferred {
        match &self.data {
            Data::Blocked(differences) => {
                let differences: Vec<f64> = differences.iter().map(|(_, difference)| *difference).collect();
                let n = (differences.len(), differences.len());
                Inferred {
                    n,
                    point: (n.0 > 0).then(|| mean(&differences)),
                    inference: enough(n, n.0).and_then(|()| judged(paired(&differences, self.resolution))),
                    exact: sign_flip(&self.rounded(&differences)).filter(|_| n.0 > 1).map(ExactTest::from),
                    method: Method::PairedT,
                }
            }
            Data::Unblocked(strata) => self.infer_unblocked(strata),
        }
    }

    fn infer_unblocked(&self, strata: &[[Vec<(u32, f64)>; 2]]) -> Inferred {
        let strata: Vec<[Vec<f64>; 2]> = strata
            .iter()
            .map(|sides| sides.each_ref().map(|side| side.iter().map(|(_, value)| *value).collect()))
            .collect();
        let size = |side: usize| strata.iter().map(|sides| sides[side].len()).sum::<usize>();
        let n = (size(0), size(1));
        let smallest = strata.iter().flatten().map(Vec::len).min().unwrap_or(0);
        let share = 1.0 / strata.len().max(1) as f64;
        let terms: Vec<(f64, &[f64])> =
            strata.iter().flat_map(|[left, right]| [(share, left.as_slice()), (-share, right.as_slice())]).collect();
        let exact = match strata.as_slice() {
            [[left, right]] if n.0.min(n.1) > 1 => mann_whitney(left, right).map(ExactTest::from),
            _ => None,
        };
        Inferred {
            n,
            point: (smallest > 0).then(|| terms.iter().map(|(share, values)| share * mean(values)).sum()),
            inference: enough(n, smallest).and_then(|()| judged(contrast(&terms, self.resolution))),
            exact,
            method: Method::WelchT,
        }
    }

    /// `(block left out, the rest)`, one run at a time.
    pub(super) fn without_one(&self) -> Vec<(u32, Sides)> {
        let with = |data: Data| Sides { data, ..self.clone() };
        match &self.data {
            Data::Blocked(differences) => {
                let rest = |left_out: u32| {
                    differences.iter().filter(|(block, _)| *block != left_out).copied().collect::<Vec<_>>()
                };
                differences.iter().map(|(block, _)| (*block, with(Data::Blocked(rest(*block))))).collect()
            }
            Data::Unblocked(strata) => {
                let mut all = Vec::new();
                for (stratum, side) in (0..strata.len()).flat_map(|stratum| [(stratum, 0), (stratum, 1)]) {
                    for (place, (block, _)) in strata[stratum][side].iter().enumerate() {
                        let mut rest = strata.clone();
                        rest[stratum][side].remove(place);
                        all.push((*block, with(Data::Unblocked(rest))));
                    }
                }
                all
            }
        }
    }

    /// Differences that are rounding become 0: they must not count as signs.
    fn rounded(&self, differences: &[f64]) -> Vec<f64> {
        differences
            .iter()
            .map(|difference| if difference.abs() <= self.resolution { 0.0 } else { *difference })
            .collect()
    }
}

/// Ratio when every value of the metric is positive, so that all its comparisons are on one scale.
pub(super) fn scale_of(values: &Values) -> Scale {
    let positive = values.cells.iter().flat_map(BTreeMap::values).all(|value| *value > 0.0);
    if positive { Scale::Ratio } else { Scale::Difference }
}

/// Whether there are values enough: three on a side or three pairs, and two in each stratum.
fn enough(n: (usize, usize), smallest: usize) -> Result<(), NoInference> {
    match (n.0.min(n.1), smallest) {
        (0, _) | (_, 0) => Err(NoInference::NoValues),
        (1, _) => Err(NoInference::SingleValue),
        (2, _) | (_, 1) => Err(NoInference::TooFewValues),
        _ => Ok(()),
    }
}

/// Enough values and still nothing to judge by: they do not vary.
fn judged(inference: Option<Inference>) -> Result<Inference, NoInference> {
    inference.ok_or(NoInference::ZeroVariance)
}

fn block_differences(strata: &[[Vec<(u32, f64)>; 2]]) -> Vec<(u32, f64)> {
    let sides: Vec<[BTreeMap<u32, f64>; 2]> =
        strata.iter().map(|sides| sides.each_ref().map(|side| side.iter().copied().collect())).collect();
    let blocks: BTreeSet<u32> = sides.iter().flatten().flat_map(BTreeMap::keys).copied().collect();
    let difference = |block: u32| -> Option<(u32, f64)> {
        let differences: Option<Vec<f64>> =
            sides.iter().map(|[left, right]| Some(left.get(&block)? - right.get(&block)?)).collect();
        differences.map(|differences| (block, mean(&differences)))
    };
    blocks.into_iter().filter_map(difference).collect()
}
