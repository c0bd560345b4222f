//! Two levels of a factor side by side: which trials belong to which side, and what may be inferred from them.
//!
//! Knows no directions, margins or verdicts.

use std::collections::{BTreeMap, BTreeSet};

use super::boots::{Boots, Relation, joined};
use super::comparison::Material;
use super::exact::{mann_whitney, permutation, sign_flip};
use super::student::{Inference, contrast, paired};
use super::summary::mean;
use super::values::Values;
use super::{ExactTest, Method, NoInference, Robust, Scale, robust};
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

/// How trials were laid out, and in which boots they ran.
#[derive(Debug, Clone, Copy)]
pub(super) struct Laid<'a> {
    /// Blocks or none.
    pub(super) layout: Layout,
    /// The boots.
    pub(super) boots: &'a Boots,
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

/// Whether both levels of a factor were set up often enough for an error term.
///
/// A whole plot of a hard-to-change factor is a run of trials under one of its levels. In blocks each block has one per
/// level; two visits suffice, because a level that ends one block may begin the next. Without blocks trials that share a
/// visit are not independent, so that every trial must be a visit of its own. Where something was booted, a boot is a
/// visit, whatever was planned.
pub(super) fn is_replicated(material: &Material, factor: usize, levels: (usize, usize)) -> bool {
    let design = material.design;
    if !design.factors.get(factor).is_some_and(|factor| factor.hard_to_change) {
        return true;
    }
    let visit = |trial: &&Trial| {
        let level = design.treatments.get(trial.treatment)?.levels.get(factor).copied()?;
        Some((level, material.boots.actual(trial.treatment, trial.block)))
    };
    let under: Vec<(usize, Option<u32>)> = material.trials.iter().filter_map(visit).collect();
    let mut visits = under.clone();
    visits.dedup();
    let count = |all: &[(usize, Option<u32>)], level: usize| all.iter().filter(|(other, _)| *other == level).count();
    [levels.0, levels.1].into_iter().all(|level| match Layout::of(&design.protocol.order) {
        Layout::Blocked => count(&visits, level) > 1,
        Layout::Sequential | Layout::Unblocked => count(&visits, level) == count(&under, level),
    })
}

/// Values of both sides, on the scale of the inference.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Sides {
    /// Ratio: values are natural logarithms.
    pub(super) scale: Scale,
    data: Data,
    /// Differences of values no larger than this are rounding.
    resolution: f64,
    /// Whether values do not share boots in a way that leaves no error term.
    independent: bool,
}

#[derive(Debug, Clone, PartialEq)]
enum Data {
    /// Left - right per stratum, by block.
    Blocked(Vec<(u32, Vec<f64>)>),
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
    /// How.
    pub(super) method: Method,
}

impl Sides {
    /// Left values times `coefficients.0` against right values times `coefficients.1`.
    ///
    /// Factors averaged over are averaged within the block, on the ln scale where values are positive. In blocks only
    /// those with every pair complete are used.
    ///
    /// What is compared within boots (pairs planned for one) leaves out pairs that ran in two. What is compared between
    /// boots takes blocks that share a boot for one, with the mean of their differences.
    pub(super) fn new(values: &Values, laid: Laid<'_>, pairs: &[Pair], coefficients: (f64, f64)) -> Self {
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
        let (data, independent) = match laid.layout {
            Layout::Blocked => {
                let (blocks, shared) = between_boots(block_differences(&strata), pairs, laid.boots);
                // Three pairs are the fewest that give an error term.
                let independent = !shared || blocks.len() > 2;
                (Data::Blocked(blocks), independent)
            }
            Layout::Sequential | Layout::Unblocked => {
                let independent = are_independent(&strata, pairs, laid.boots);
                (Data::Unblocked(strata), independent)
            }
        };
        Sides { scale, data, resolution: 1e-13 * (unit + largest), independent }
    }

    /// Sides of which no value is known.
    pub(super) fn none(scale: Scale) -> Self {
        Sides { scale, data: Data::Unblocked(Vec::new()), resolution: 0.0, independent: true }
    }

    /// Paired t over blocks, or Welch's t in its contrast form over strata.
    pub(super) fn infer(&self) -> Inferred {
        let (n, smallest, method) = match &self.data {
            Data::Blocked(blocks) => ((blocks.len(), blocks.len()), blocks.len(), Method::PairedT),
            Data::Unblocked(strata) => {
                let size = |side: usize| strata.iter().map(|sides| sides[side].len()).sum::<usize>();
                let smallest = strata.iter().flatten().map(Vec::len).min().unwrap_or(0);
                ((size(0), size(1)), smallest, Method::WelchT)
            }
        };
        let weights = self.equal_weights();
        Inferred {
            n,
            point: (smallest > 0).then(|| self.weighted_point(&weights)),
            inference: self
                .enough(n, smallest)
                .and_then(|()| self.weighted_inference(&weights).ok_or(NoInference::ZeroVariance)),
            method,
        }
    }

    /// The companion that assumes no distribution: sign flip over blocks; without blocks Mann-Whitney of one stratum, or a
    /// permutation of means inside several. `None` below two values on a side.
    pub(super) fn exact(&self) -> Option<ExactTest> {
        let weights = self.equal_weights();
        match &self.data {
            Data::Blocked(blocks) if blocks.len() > 1 => {
                sign_flip(&self.differences(blocks, &weights)).map(ExactTest::from)
            }
            Data::Blocked(_) => None,
            Data::Unblocked(strata) => {
                let samples: Vec<[Vec<f64>; 2]> =
                    strata.iter().map(|[left, right]| [numbers(left), numbers(right)]).collect();
                if samples.iter().flatten().any(|sample| sample.len() < 2) {
                    return None;
                }
                match samples.as_slice() {
                    [[left, right]] => mann_whitney(left, right).map(ExactTest::from),
                    several => {
                        let strata: Vec<(f64, &[f64], &[f64])> = several
                            .iter()
                            .zip(&weights)
                            .map(|([left, right], weight)| (*weight, left.as_slice(), right.as_slice()))
                            .collect();
                        permutation(&strata).map(ExactTest::from)
                    }
                }
            }
        }
    }

    /// Hodges-Lehmann's estimate on the scale of the inference, for blocks or one stratum.
    pub(super) fn robust(&self) -> Option<Robust> {
        let half_ties = |above: usize, ties: usize| above as f64 + ties as f64 / 2.0;
        let (found, higher) = match &self.data {
            Data::Blocked(blocks) => {
                let differences = self.differences(blocks, &self.equal_weights());
                let above = differences.iter().filter(|difference| **difference > 0.0).count();
                let below = differences.iter().filter(|difference| **difference < 0.0).count();
                let all = differences.len();
                (robust::centre(&differences)?, (half_ties(above, all - above - below), all))
            }
            Data::Unblocked(strata) => {
                let [[left, right]] = strata.as_slice() else { return None };
                let (left, right) = (numbers(left), numbers(right));
                let found = robust::shift(&left, &right)?;
                let gaps = || left.iter().flat_map(|left| right.iter().map(move |right| left - right));
                let above = gaps().filter(|gap| *gap > self.resolution).count();
                let ties = gaps().filter(|gap| gap.abs() <= self.resolution).count();
                (found, (half_ties(above, ties), left.len() * right.len()))
            }
        };
        Some(Robust { value: found.estimate, low: found.low, high: found.high, coverage: found.coverage, higher })
    }

    /// Differences of blocks; one that is rounding must not count as a sign.
    fn differences(&self, blocks: &[(u32, Vec<f64>)], weights: &[f64]) -> Vec<f64> {
        let differences = weighted_differences(blocks, weights).into_iter();
        differences.map(|difference| if difference.abs() <= self.resolution { 0.0 } else { difference }).collect()
    }

    /// Effect in one group of strata minus effect in the other: on the ln scale the ratio of ratios. In blocks one contrast
    /// a block and its t, otherwise Satterthwaite's form over all samples. `group` says for each stratum which, or neither.
    /// `None` without strata in both groups or values enough.
    pub(super) fn interaction(&self, group: &[Option<bool>]) -> Option<Inference> {
        let members = |wanted: bool| group.iter().filter(|group| **group == Some(wanted)).count() as f64;
        let weight = |group: &Option<bool>| group.map_or(0.0, |side| if side { 1.0 } else { -1.0 } / members(side));
        if members(true) < 1.0 || members(false) < 1.0 || self.infer().inference.is_err() {
            return None;
        }
        self.weighted_inference(&group.iter().map(weight).collect::<Vec<f64>>())
    }

    fn enough(&self, n: (usize, usize), smallest: usize) -> Result<(), NoInference> {
        match enough(n, smallest) {
            Err(NoInference::NoValues) => Err(NoInference::NoValues),
            _ if !self.independent => Err(NoInference::WholePlotUnreplicated),
            enough => enough,
        }
    }

    fn equal_weights(&self) -> Vec<f64> {
        let strata = match &self.data {
            Data::Blocked(blocks) => blocks.first().map_or(0, |(_, differences)| differences.len()),
            Data::Unblocked(strata) => strata.len(),
        };
        vec![1.0 / strata.max(1) as f64; strata]
    }

    fn weighted_point(&self, weights: &[f64]) -> f64 {
        match &self.data {
            Data::Blocked(blocks) => mean(&weighted_differences(blocks, weights)),
            Data::Unblocked(strata) => {
                let effect = |[left, right]: &[Vec<(u32, f64)>; 2]| mean(&numbers(left)) - mean(&numbers(right));
                strata.iter().zip(weights).map(|(sides, weight)| weight * effect(sides)).sum()
            }
        }
    }

    fn weighted_inference(&self, weights: &[f64]) -> Option<Inference> {
        match &self.data {
            Data::Blocked(blocks) => paired(&weighted_differences(blocks, weights), self.resolution),
            Data::Unblocked(strata) => {
                let samples: Vec<(f64, Vec<f64>)> = strata
                    .iter()
                    .zip(weights)
                    .flat_map(|([left, right], weight)| [(*weight, numbers(left)), (-weight, numbers(right))])
                    .collect();
                let terms: Vec<(f64, &[f64])> =
                    samples.iter().map(|(weight, values)| (*weight, values.as_slice())).collect();
                contrast(&terms, self.resolution)
            }
        }
    }

    /// `(block left out, the rest)`, one run at a time. Of more than [`LEFT_OUT_EACH`] runs only the lowest and the highest
    /// are: no other can move the estimate as far.
    pub(super) fn without_one(&self) -> Vec<(u32, Sides)> {
        let with =
            |data: Data| Sides { scale: self.scale, resolution: self.resolution, independent: self.independent, data };
        match &self.data {
            Data::Blocked(blocks) => {
                let weights = self.equal_weights();
                let wanted = worth_leaving_out(&weighted_differences(blocks, &weights));
                let blocks_left = wanted.iter().map(|place| &blocks[*place]);
                let rest = |left_out: u32| blocks.iter().filter(|(block, _)| *block != left_out).cloned().collect();
                blocks_left.map(|(block, _)| (*block, with(Data::Blocked(rest(*block))))).collect()
            }
            Data::Unblocked(strata) => {
                let mut all = Vec::new();
                for (stratum, side) in (0..strata.len()).flat_map(|stratum| [(stratum, 0), (stratum, 1)]) {
                    for place in worth_leaving_out(&numbers(&strata[stratum][side])) {
                        let (block, _) = &strata[stratum][side][place];
                        let mut rest = strata.clone();
                        rest[stratum][side].remove(place);
                        all.push((*block, with(Data::Unblocked(rest))));
                    }
                }
                all
            }
        }
    }
}

/// More runs than this are not each left out in turn.
const LEFT_OUT_EACH: usize = 1_000;

/// Places of the runs to leave out.
fn worth_leaving_out(values: &[f64]) -> Vec<usize> {
    if values.len() <= LEFT_OUT_EACH {
        return (0..values.len()).collect();
    }
    let by_value = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
    [(0..values.len()).min_by(by_value), (0..values.len()).max_by(by_value)].into_iter().flatten().collect()
}

/// Ratio when every value of the metric is positive, so that all its comparisons are on one scale.
pub(super) fn scale_of(values: &Values) -> Scale {
    let positive = values.cells.iter().flat_map(BTreeMap::values).all(|value| *value > 0.0)
        && values.summaries.iter().flatten().all(|summary| summary.low > 0.0);
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

fn numbers(side: &[(u32, f64)]) -> Vec<f64> {
    side.iter().map(|(_, value)| *value).collect()
}

fn weighted_differences(blocks: &[(u32, Vec<f64>)], weights: &[f64]) -> Vec<f64> {
    let weighted = |differences: &[f64]| differences.iter().zip(weights).map(|(value, weight)| value * weight).sum();
    blocks.iter().map(|(_, differences)| weighted(differences)).collect()
}

/// Blocks as far as their boots make them independent: without pairs that one boot should have served and did not, and
/// joined where they share a boot that stands on one side alone. With it, whether any were joined.
fn between_boots(blocks: Vec<(u32, Vec<f64>)>, pairs: &[Pair], boots: &Boots) -> (Vec<(u32, Vec<f64>)>, bool) {
    let relations = |block: u32| pairs.iter().map(move |pair| boots.relation(*pair, block));
    let whole: Vec<(u32, Vec<f64>)> =
        blocks.into_iter().filter(|(block, _)| relations(*block).all(|relation| relation != Relation::Split)).collect();
    let of_block = |block: u32| -> BTreeSet<u32> {
        let named = |relation| match relation {
            Relation::WholePlots(left, right) => vec![left, right],
            Relation::SameBoot | Relation::Split | Relation::Unbooted => Vec::new(),
        };
        relations(block).flat_map(named).collect()
    };
    let groups = joined(&whole.iter().map(|(block, _)| of_block(*block)).collect::<Vec<_>>());
    let before = whole.len();
    let mut means: BTreeMap<usize, (u32, Vec<f64>, f64)> = BTreeMap::new();
    for ((block, differences), group) in whole.into_iter().zip(groups) {
        match means.get_mut(&group) {
            None => {
                means.insert(group, (block, differences, 1.0));
            }
            Some((_, sums, count)) => {
                sums.iter_mut().zip(differences).for_each(|(sum, difference)| *sum += difference);
                *count += 1.0;
            }
        }
    }
    let shared = means.len() < before;
    let average =
        |(block, sums, count): (u32, Vec<f64>, f64)| (block, sums.into_iter().map(|sum| sum / count).collect());
    (means.into_values().map(average).collect(), shared)
}

/// Without blocks values are independent when each has a boot of its own, or when a boot serves a whole comparison and so
/// is on both sides of it.
fn are_independent(strata: &[[Vec<(u32, f64)>; 2]], pairs: &[Pair], boots: &Boots) -> bool {
    let of_stratum = |([left, right], pair): (&[Vec<(u32, f64)>; 2], &Pair)| {
        let trials = |side: &[(u32, f64)], treatment: usize| {
            side.iter().map(|(block, _)| (treatment, *block)).collect::<Vec<(usize, u32)>>()
        };
        [trials(left, pair.0), trials(right, pair.1)].concat()
    };
    let strata: Vec<Vec<(usize, u32)>> = strata.iter().zip(pairs).map(of_stratum).collect();
    strata.iter().all(|trials| boots.are_together(trials.iter().copied()))
        || boots.are_apart(strata.iter().flatten().copied())
}

/// Blocks in which every stratum has both sides.
fn block_differences(strata: &[[Vec<(u32, f64)>; 2]]) -> Vec<(u32, Vec<f64>)> {
    let sides: Vec<[BTreeMap<u32, f64>; 2]> =
        strata.iter().map(|sides| sides.each_ref().map(|side| side.iter().copied().collect())).collect();
    let blocks: BTreeSet<u32> = sides.iter().flatten().flat_map(BTreeMap::keys).copied().collect();
    let difference = |block: u32| -> Option<(u32, Vec<f64>)> {
        let differences: Option<Vec<f64>> =
            sides.iter().map(|[left, right]| Some(left.get(&block)? - right.get(&block)?)).collect();
        differences.filter(|differences| !differences.is_empty()).map(|differences| (block, differences))
    };
    blocks.into_iter().filter_map(difference).collect()
}
