//! Declared comparisons: estimate, p, Holm's adjustment, verdict and its flags.
//!
//! Precedence of verdicts: a reason why nothing may be concluded, then equivalence within a declared margin (flagged
//! when a difference smaller than the margin is there all the same), then better or worse, then inconclusive.

use super::boots::Boots;
use super::interaction::{self, Contrast};
use super::multiplicity::holm;
use super::planner::{Pairing, needed_n};
use super::published::{Side, averages_equivalence_p};
use super::recorded;
use super::sides::{Inferred, Laid, Layout, Sides, combinations, is_replicated, pairs, scale_of};
use super::student::Inference;
use super::values::Values;
use super::{ComparisonFinding, Estimate, Flag, Interaction, Method, NoInference, Robust, Scale, Verdict};
use crate::recording::{Comparison, Design, Direction, Trial};

/// Two-sided error rate of a verdict.
pub(super) const ALPHA: f64 = 0.05;

/// What all comparisons of one recording share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Material<'a> {
    /// The design.
    pub(super) design: &'a Design,
    /// Valid trials in the order they ran.
    pub(super) trials: &'a [&'a Trial],
    /// Metric values.
    pub(super) values: &'a [Values],
    /// The boots the values were measured in.
    pub(super) boots: &'a Boots,
}

impl<'a> Material<'a> {
    /// The layout of the trials.
    pub(super) fn layout(&self) -> Layout {
        Layout::of(&self.design.protocol.order)
    }

    /// The layout with the boots in it.
    pub(super) fn laid(&self) -> Laid<'a> {
        Laid { layout: self.layout(), boots: self.boots }
    }

    /// The expanded metrics a declared or expanded id stands for.
    pub(super) fn metrics(&self, id: &str) -> impl Iterator<Item = &'a Values> {
        self.values.iter().filter(move |values| values.id == id || values.declared == id)
    }

    /// `(factor, level)` names.
    pub(super) fn names(&self, combination: &[(usize, usize)]) -> Vec<(String, String)> {
        combination.iter().map(|(factor, level)| (self.factor(*factor), self.level(*factor, *level))).collect()
    }

    /// What two sides allow to infer, seen the layout and the whole plots.
    pub(super) fn infer(&self, sides: &Sides, factor: usize, levels: (usize, usize)) -> Inferred {
        let mut inferred = sides.infer();
        let reason = match self.layout() {
            Layout::Sequential => Some(NoInference::SequentialOrder),
            _ if !is_replicated(self, factor, levels) => Some(NoInference::WholePlotUnreplicated),
            _ => None,
        };
        if let Some(reason) = reason.filter(|_| inferred.inference != Err(NoInference::NoValues)) {
            inferred.inference = Err(reason);
        }
        inferred
    }

    fn factor(&self, factor: usize) -> String {
        self.design.factors.get(factor).map_or_else(String::new, |factor| factor.name.clone())
    }

    fn level(&self, factor: usize, level: usize) -> String {
        let levels = self.design.factors.get(factor).map(|factor| factor.levels.as_slice());
        levels.and_then(|levels| levels.get(level)).cloned().unwrap_or_default()
    }
}

/// A comparison on the way to its finding.
pub(super) struct Question<'a> {
    /// What is found, filled in as far as it is known.
    pub(super) finding: ComparisonFinding,
    /// The values.
    pub(super) sides: Sides,
    /// What they allow to infer.
    pub(super) inferred: Inferred,
    /// Published averages whose ratio is inferred: there are no values then.
    pub(super) averages: Option<(Side, Side)>,
    /// Which way is better.
    pub(super) direction: Direction,
    /// The metric: its address tells the family.
    pub(super) values: &'a Values,
}

/// Judges every declared comparison, and tells what its effects depend on.
pub(super) fn compare(material: &Material) -> (Vec<ComparisonFinding>, Vec<Interaction>) {
    let (mut questions, mut interactions) = (Vec::new(), Vec::new());
    for (index, clause) in material.design.comparisons.iter().enumerate() {
        let mut asked = Asked { material, index, clause, questions: Vec::new(), interactions: Vec::new() };
        asked.ask();
        questions.extend(asked.questions);
        interactions.extend(asked.interactions);
    }
    conclude_families(&mut questions, material.values, &interactions);
    (questions.into_iter().map(|question| question.finding).collect(), interactions)
}

/// Concludes every question, those of one metric with one error rate. It is shared with the interactions that were
/// looked at and the averages they took away: choosing what to conclude by the same data is a comparison too.
pub(super) fn conclude_families(questions: &mut [Question<'_>], metrics: &[Values], interactions: &[Interaction]) {
    for values in metrics {
        let family: Vec<usize> = (0..questions.len())
            .filter(|i| std::ptr::eq(questions[*i].values, values) && has_p(&questions[*i]))
            .collect();
        let mut p: Vec<f64> = family.iter().filter_map(|i| questions[*i].finding.p).collect();
        p.extend(taken_away(questions, values));
        p.extend(looked_at(interactions, &values.id));
        for (place, (i, adjusted)) in family.iter().zip(holm(&p)).enumerate() {
            let question = &mut questions[*i];
            question.finding.p_holm = Some(adjusted);
            conclude(question, &p, place);
        }
    }
}

/// The p of averages for which effects at each level stand.
fn taken_away(questions: &[Question], values: &Values) -> Vec<f64> {
    let averages = questions.iter().filter(|question| {
        std::ptr::eq(question.values, values)
            && question.finding.verdict == Verdict::NoInference(NoInference::DependsOnLevel)
    });
    averages.filter_map(|question| question.inferred.inference.ok()?.p()).collect()
}

/// The p of the interactions of a metric; the same contrast, seen from both of its factors, counts once.
fn looked_at(interactions: &[Interaction], metric: &str) -> Vec<f64> {
    let mut found: Vec<f64> = Vec::new();
    for interaction in interactions.iter().filter(|interaction| interaction.metric == metric) {
        if !found.iter().any(|p| (p - interaction.p).abs() <= 1e-9 * p.abs()) {
            found.push(interaction.p);
        }
    }
    found
}

fn has_p(question: &Question) -> bool {
    question.finding.p.is_some()
}

/// One `compare` clause while its questions are put together.
struct Asked<'m, 'a> {
    material: &'m Material<'a>,
    index: usize,
    clause: &'m Comparison,
    questions: Vec<Question<'a>>,
    interactions: Vec<Interaction>,
}

impl Asked<'_, '_> {
    /// One question per metric, level and combination of `within` levels, as far as the design has treatments for it.
    fn ask(&mut self) {
        let (material, clause) = (self.material, self.clause);
        let levels = material.design.factors.get(clause.factor).map_or(0, |factor| factor.levels.len());
        for values in clause.metrics.iter().flat_map(|metric| material.metrics(metric)) {
            for level in (0..levels).filter(|level| *level != clause.base) {
                for within in combinations(material.design, &clause.within) {
                    self.effect(values, level, &within);
                }
            }
        }
    }
}

impl<'a> Asked<'_, 'a> {
    /// The effect of a level, averaged over the factors that `within` leaves open. Where it depends on the level of one of
    /// them, the average stands for none: nothing is concluded from it, and the effect at each level takes its place.
    fn effect(&mut self, values: &'a Values, level: usize, within: &[(usize, usize)]) {
        let (material, clause) = (self.material, self.clause);
        let pairs = pairs(material.design, clause.factor, (level, clause.base), within);
        if pairs.is_empty() {
            return;
        }
        let bounded = recorded::summaries(values, &pairs);
        let sides = match &bounded {
            Some(_) => Sides::none(Scale::Difference),
            None => Sides::new(values, material.laid(), &pairs, (1.0, 1.0)),
        };
        let mut inferred = material.infer(&sides, clause.factor, (level, clause.base));
        let mut published = values.decimals.map(|_| recorded::published_finding(material.design, values, &pairs));
        if let (Some(bounded), Some(published)) = (&bounded, &mut published) {
            inferred = bounded.inferred;
            published.p_range = bounded.p_range;
        }
        let averaged = averaged_over(material.design, clause.factor, within);
        let contrasts = match inferred.inference {
            Ok(_) if bounded.is_none() => interaction::contrasts(material.design, &sides, &pairs, &averaged),
            _ => Vec::new(),
        };
        let mut depends: Vec<usize> = contrasts.iter().filter(|c| c.p <= ALPHA).map(|c| c.factor).collect();
        depends.dedup();
        // Without variance the model has nothing to say, and counting still has.
        let judged = matches!(inferred.inference, Ok(_) | Err(NoInference::ZeroVariance)) && depends.is_empty();
        let inference = inferred.inference.ok().filter(|_| depends.is_empty());
        let finding = ComparisonFinding {
            comparison: self.index,
            metric: values.id.clone(),
            factor: material.factor(clause.factor),
            level: material.level(clause.factor, level),
            base: material.level(clause.factor, clause.base),
            within: material.names(within),
            averaged_over: averaged.iter().map(|factor| material.factor(*factor)).collect(),
            n: inferred.n,
            estimate: match &bounded {
                Some(bounded) => bounded.estimate,
                None => inference.and_then(|inference| estimate(&inference, &sides, inferred.method)),
            },
            point: match &bounded {
                Some(bounded) => bounded.point,
                None => inferred.point.filter(|_| depends.is_empty()).map(|point| shown(point, sides.scale)),
            }
            .filter(|point| point.is_finite()),
            scale: bounded.as_ref().map_or(sides.scale, |bounded| bounded.scale),
            p: inference.and_then(|inference| inference.p()),
            p_holm: None,
            exact: match &bounded {
                Some(bounded) => bounded.exact,
                None if judged => sides.exact(),
                None => None,
            },
            robust: if judged { robust(&sides) } else { None },
            margin: clause.margin,
            verdict: match inferred.inference {
                Ok(_) if depends.is_empty() => Verdict::Inconclusive,
                Ok(_) => Verdict::NoInference(NoInference::DependsOnLevel),
                Err(reason) => Verdict::NoInference(reason),
            },
            flags: depends
                .iter()
                .map(|factor| Flag::DependsOn { factor: *factor })
                .chain(inference.and_then(|_| recorded::effect_hangs_on(values, &pairs, inferred.point)))
                .collect(),
            needed_n: None,
            published,
        };
        for contrast in &contrasts {
            self.interactions.push(interaction(material, &finding, contrast, (&sides, inferred.method)));
        }
        let averages = bounded.and_then(|bounded| bounded.averages);
        self.questions.push(Question { finding, sides, inferred, averages, direction: values.direction, values });
        if !depends.is_empty() {
            for levels in combinations(material.design, &depends) {
                self.effect(values, level, &[within, &levels].concat());
            }
        }
    }
}

/// Factors with several levels that are neither compared nor held fixed.
fn averaged_over(design: &Design, compared: usize, within: &[(usize, usize)]) -> Vec<usize> {
    let several = |factor: &usize| design.factors[*factor].levels.len() > 1;
    let fixed = |factor: &usize| within.iter().any(|(held, _)| held == factor);
    (0..design.factors.len()).filter(|factor| *factor != compared && !fixed(factor) && several(factor)).collect()
}

fn interaction(
    material: &Material,
    finding: &ComparisonFinding,
    contrast: &Contrast,
    (sides, method): (&Sides, Method),
) -> Interaction {
    Interaction {
        comparison: finding.comparison,
        metric: finding.metric.clone(),
        factor: finding.factor.clone(),
        level: finding.level.clone(),
        base: finding.base.clone(),
        within: finding.within.clone(),
        over: material.factor(contrast.factor),
        over_level: material.level(contrast.factor, contrast.level),
        over_base: material.level(contrast.factor, contrast.base),
        estimate: estimate(&contrast.inference, sides, method),
        scale: sides.scale,
        p: contrast.p,
        real: contrast.p <= ALPHA,
    }
}

/// From the ln scale, where a ratio is inferred, to the ratio itself.
pub(super) fn shown(value: f64, scale: Scale) -> f64 {
    match scale {
        Scale::Difference => value,
        Scale::Ratio => value.exp(),
    }
}

/// The 95 % interval on the scale shown; `None` when a bound is beyond all numbers.
pub(super) fn estimate(inference: &Inference, sides: &Sides, method: Method) -> Option<Estimate> {
    let (low, high) = inference.interval(1.0 - ALPHA)?;
    let show = |value: f64| shown(value, sides.scale);
    let estimate = Estimate { value: show(inference.estimate), low: show(low), high: show(high), method };
    [estimate.value, estimate.low, estimate.high].iter().all(|value| value.is_finite()).then_some(estimate)
}

/// Hodges-Lehmann's estimate on the scale shown.
pub(super) fn robust(sides: &Sides) -> Option<Robust> {
    let found = sides.robust()?;
    let show = |value: f64| shown(value, sides.scale);
    let found = Robust { value: show(found.value), low: show(found.low), high: show(found.high), ..found };
    [found.value, found.low, found.high].iter().all(|value| value.is_finite()).then_some(found)
}

/// Verdict, flags and needed size of a question with an inference. `family` holds the p values of all comparisons of
/// its metric, its own at `place`.
fn conclude(question: &mut Question, family: &[f64], place: usize) {
    let Ok(inference) = question.inferred.inference else { return };
    let Some(p_holm) = question.finding.p_holm else { return };
    if question.direction == Direction::Neutral {
        question.finding.verdict = Verdict::NoInference(NoInference::NoDirection);
        return;
    }
    let verdict = verdict(&inference, p_holm, question);
    question.finding.verdict = verdict;
    if verdict == Verdict::Equivalent {
        question.finding.flags.retain(|flag| !matches!(flag, Flag::EffectHangsOnOneRun { .. }));
    }
    if let Some(block) = hangs_on(question, family, place) {
        question.finding.flags.push(Flag::HangsOnOneRun { block });
    }
    match verdict {
        Verdict::Faster { .. } | Verdict::Slower { .. }
            if question.finding.exact.is_none_or(|exact| exact.p > ALPHA) =>
        {
            question.finding.flags.push(Flag::ModelBasedOnly);
        }
        Verdict::Equivalent if p_holm <= ALPHA => question.finding.flags.push(Flag::WithinMargin),
        Verdict::Inconclusive => question.finding.needed_n = needed(question, &inference, family.len()),
        _ => {}
    }
}

fn verdict(inference: &Inference, p_holm: f64, question: &Question) -> Verdict {
    let margin = margin_bounds(question.finding.margin, question.finding.scale);
    let equivalence_p = margin.and_then(|(low, high)| match &question.averages {
        Some((level, base)) => averages_equivalence_p(level, base, (low.exp(), high.exp())),
        None => inference.equivalence_p(low, high),
    });
    if equivalence_p.is_some_and(|p| p <= ALPHA) {
        return Verdict::Equivalent;
    }
    let Some((low, high)) = inference.interval(1.0 - ALPHA).filter(|_| question.finding.estimate.is_some()) else {
        return Verdict::Inconclusive;
    };
    if p_holm > ALPHA || (low <= 0.0 && high >= 0.0) {
        return Verdict::Inconclusive;
    }
    let beyond_margin = margin.is_some_and(|margin| match (&question.averages, question.finding.estimate) {
        (Some(_), Some(ratio)) => ratio.high.ln() < margin.0 || ratio.low.ln() > margin.1,
        _ => high < margin.0 || low > margin.1,
    });
    if (low > 0.0) == (question.direction == Direction::HigherIsBetter) {
        Verdict::Faster { beyond_margin }
    } else {
        Verdict::Slower { beyond_margin }
    }
}

/// ln of `1 - m` and `1 + m`. A margin is a fraction, so that there is none for differences.
pub(super) fn margin_bounds(margin: Option<f64>, scale: Scale) -> Option<(f64, f64)> {
    let margin = margin.filter(|margin| *margin > 0.0 && *margin < 1.0 && scale == Scale::Ratio)?;
    Some(((1.0 - margin).ln(), margin.ln_1p()))
}

/// The run without which the verdict would be another, the most influential of several. Whether a difference is beyond
/// the margin is not looked at, nor are samples too small to lose a run.
fn hangs_on(question: &Question, family: &[f64], place: usize) -> Option<u32> {
    let mut worst: Option<(f64, u32)> = None;
    for (block, sides) in question.sides.without_one() {
        let Ok(inference) = sides.infer().inference else { continue };
        let Some(p) = inference.p() else { continue };
        let mut family = family.to_vec();
        family[place] = p;
        let without = verdict(&inference, holm(&family)[place], question);
        if std::mem::discriminant(&without) == std::mem::discriminant(&question.finding.verdict) {
            continue;
        }
        let shift = (inference.estimate - question.inferred.point.unwrap_or(0.0)).abs();
        if worst.is_none_or(|(largest, _)| shift > largest) {
            worst = Some((shift, block));
        }
    }
    worst.map(|(_, block)| block)
}

/// Values a side, or pairs, to find an effect as large as the estimate or the margin, whichever is larger, at the level
/// of Holm's first step. A rough number: the estimate comes from the same data.
fn needed(question: &Question, inference: &Inference, comparisons: usize) -> Option<u32> {
    let n = question.inferred.n;
    let harmonic = 2.0 / (1.0 / n.0 as f64 + 1.0 / n.1 as f64);
    let sd = inference.standard_error * (harmonic / 2.0).sqrt();
    let margin = margin_bounds(question.finding.margin, question.finding.scale).map_or(0.0, |(_, high)| high);
    let margin = question.averages.map_or(margin, |(_, base)| margin.exp_m1() * base.average);
    let pairing = match question.inferred.method {
        Method::PairedT => Pairing::Paired,
        Method::WelchBound | Method::WelchT => Pairing::Unpaired,
    };
    let needed = needed_n(inference.estimate.abs().max(margin), sd, pairing, ALPHA / comparisons.max(1) as f64);
    needed.filter(|needed| *needed as usize > n.0.min(n.1))
}

/// An A/A control copy that differs from the treatment it copies.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ControlDifference {
    /// The treatment.
    pub(super) treatment: usize,
    /// Its copy.
    pub(super) copy: usize,
    /// copy / treatment.
    pub(super) ratio: f64,
    /// After Holm over the copies.
    pub(super) p: f64,
}

/// Copies whose values differ from their treatment's at 5 % after Holm over all copies, for one metric of positive values.
pub(super) fn control_differences(material: &Material, values: &Values) -> Vec<ControlDifference> {
    if scale_of(values) == Scale::Difference || material.layout() == Layout::Sequential {
        return Vec::new();
    }
    let treatments = &material.design.treatments;
    let copies = treatments.iter().enumerate().filter(|(_, treatment)| treatment.control > 0);
    let differ = |(copy, treatment): (usize, &crate::recording::Treatment)| {
        let original = treatments.iter().position(|other| other.control == 0 && other.levels == treatment.levels)?;
        let inference = Sides::new(values, material.laid(), &[(copy, original)], (1.0, 1.0)).infer().inference.ok()?;
        Some(ControlDifference { treatment: original, copy, ratio: inference.estimate.exp(), p: inference.p()? })
    };
    let found: Vec<ControlDifference> = copies.filter_map(differ).collect();
    let adjusted = holm(&found.iter().map(|difference| difference.p).collect::<Vec<_>>());
    let found = found.into_iter().zip(adjusted).map(|(difference, p)| ControlDifference { p, ..difference });
    found.filter(|difference| difference.p <= ALPHA && difference.ratio.is_finite()).collect()
}
