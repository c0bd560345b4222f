//! What is judged: `compare` and `expect`.

use crate::design::{Comparison, Expectation, ExpectationSide, Factor, Metric, Relation};
use crate::diagnostic::{Meaning, Thing};
use crate::source::Span;
use crate::syntax::ast::{Compare, Expect, ExpectSide, LevelRef, MetricName, Name};

use super::scope::Scope;
use super::units::{self, Bounds, Quantity};

const EXPECT_RELATIONS: &[(&str, Relation)] =
    &[("<=", Relation::LessOrEqual), ("<", Relation::Less), (">=", Relation::GreaterOrEqual), (">", Relation::Greater)];

/// A `compare` clause.
pub(super) fn comparison(
    scope: &mut Scope<'_>,
    (compare, span): (&Compare, Span),
    factors: &[Factor],
    metrics: &[Metric],
) -> Option<Comparison> {
    let factor = factor(scope, &compare.factor, factors);
    let base = factor.and_then(|factor| level_of(scope, &compare.against, &factors[factor]));
    if let Some(alone) = factor.map(|factor| &factors[factor]).filter(|factor| factor.levels.len() < 2) {
        scope.fault(compare.factor.span.error(Meaning::ComparedAlone { factor: alone.name.clone() }));
        return None;
    }
    let mut ids: Vec<String> = Vec::new();
    for name in &compare.by {
        for id in metrics_named(scope, name, metrics) {
            if ids.contains(&id) {
                let meaning = Meaning::Duplicate { thing: Thing::Metric, name: id };
                scope.fault(name.span.error(meaning));
            } else {
                ids.push(id);
            }
        }
    }
    if compare.by.is_empty() {
        ids = metrics.iter().map(|metric| metric.id.clone()).collect();
    }
    let bounds = Bounds { what: "`margin`", low: 0.01, high: 99.0 };
    let margin = compare.margin.as_ref().map(|margin| units::number(scope, margin, Quantity::Percent, bounds));
    let within = within(scope, &compare.within, factor, factors);
    let margin = match margin {
        Some(margin) => Some(margin? / 100.0),
        None => None,
    };
    Some(Comparison { factor: factor?, base: base?, metrics: ids, margin, within, span })
}

/// An `expect` clause; `text` is the clause as written.
pub(super) fn expectation(
    scope: &mut Scope<'_>,
    (expect, span): (&Expect, Span),
    factors: &[Factor],
    metrics: &[Metric],
) -> Option<Expectation> {
    let metric = metric(scope, &expect.metric, metrics);
    let relation = EXPECT_RELATIONS.iter().find(|(sign, _)| *sign == expect.operator.value);
    if relation.is_none() {
        let operator = expect.operator.value.clone();
        let allowed = &["<", "<=", ">", ">="];
        scope.fault(expect.operator.span.error(Meaning::WrongOperator { operator, allowed }));
    }
    let (left, right) = (side_levels(scope, &expect.left, factors), side_levels(scope, &expect.right, factors));
    let coefficients = (coefficient(scope, &expect.left), coefficient(scope, &expect.right));
    let (left, right) = (left?, right?);
    let pairs = left.iter().filter_map(|(factor, level)| {
        right.iter().find(|(other, _)| other == factor).map(|(_, other)| (*factor, *level, *other))
    });
    let pairs: Vec<(usize, usize, usize)> = pairs.collect();
    let (factor, left, right) = match pairs.as_slice() {
        [one] => *one,
        [] => {
            let name = |found: &[(usize, usize)]| found.first().map_or("", |(factor, _)| &factors[*factor].name);
            let (left, right) = (name(&left).to_owned(), name(&right).to_owned());
            let meaning = Meaning::ExpectedAcrossFactors { left, right };
            let mut fault = expect.right.level.level.span.error(meaning);
            fault.related.push((expect.left.level.level.span, "compared with this".to_owned()));
            scope.fault(fault);
            return None;
        }
        several => {
            let level = expect.left.level.level.value.clone();
            let factors = several.iter().map(|(factor, _, _)| factors[*factor].name.clone()).collect();
            scope.fault(expect.left.level.level.span.error(Meaning::AmbiguousLevel { level, factors }));
            return None;
        }
    };
    let within = within(scope, &expect.within, Some(factor), factors);
    let left = ExpectationSide { coefficient: coefficients.0?, level: left };
    let right = ExpectationSide { coefficient: coefficients.1?, level: right };
    let operator = relation?.1;
    let text = expectation_text(expect);
    Some(Expectation { metric: metric?, factor, left, operator, right, within, text, span })
}

fn expectation_text(expect: &Expect) -> String {
    let side = |side: &ExpectSide| {
        let level = match &side.level.factor {
            Some(factor) => format!("{}.{}", factor.value, side.level.level.value),
            None => side.level.level.value.clone(),
        };
        match &side.factor {
            Some(crate::syntax::ast::Number::Literal { digits, .. }) => format!("{} * {level}", digits.value),
            Some(crate::syntax::ast::Number::Reference(name)) => format!("${{{}}} * {level}", name.value),
            None => level,
        }
    };
    let (left, right) = (side(&expect.left), side(&expect.right));
    let within: Vec<&str> = expect.within.iter().map(|name| name.value.as_str()).collect();
    let within = if within.is_empty() { String::new() } else { format!(" within {}", within.join(", ")) };
    format!("{}: {left} {} {right}{within}", expect.metric.path, expect.operator.value)
}

fn coefficient(scope: &mut Scope<'_>, side: &ExpectSide) -> Option<f64> {
    let Some(number) = &side.factor else { return Some(1.0) };
    units::number(scope, number, Quantity::Count, Bounds { what: "the multiplier", low: 1e-9, high: 1e9 })
}

/// `(factor, level)` of every factor that has such a level.
fn side_levels(scope: &mut Scope<'_>, side: &ExpectSide, factors: &[Factor]) -> Option<Vec<(usize, usize)>> {
    levels(scope, &side.level, factors)
}

/// Every level a reference may mean; several where factors share a level's name and none is said.
pub(super) fn levels(scope: &mut Scope<'_>, level: &LevelRef, factors: &[Factor]) -> Option<Vec<(usize, usize)>> {
    if let Some(name) = &level.factor {
        let index = factor(scope, name, factors)?;
        return level_of(scope, &level.level, &factors[index]).map(|found| vec![(index, found)]);
    }
    let has = |factor: &Factor| factor.levels.iter().position(|name| *name == level.level.value);
    let found: Vec<(usize, usize)> =
        factors.iter().enumerate().filter_map(|(index, factor)| has(factor).map(|level| (index, level))).collect();
    if found.is_empty() {
        let known = factors.iter().flat_map(|factor| factor.levels.iter().map(String::as_str));
        scope.unknown(Thing::Level, &level.level, known);
        return None;
    }
    Some(found)
}

/// The index of the factor of that name.
pub(super) fn factor(scope: &mut Scope<'_>, name: &Name, factors: &[Factor]) -> Option<usize> {
    let found = factors.iter().position(|factor| factor.name == name.value);
    if found.is_none() {
        scope.unknown(Thing::Factor, name, factors.iter().map(|factor| factor.name.as_str()));
    }
    found
}

/// The index of a factor's level of that name.
pub(super) fn level_of(scope: &mut Scope<'_>, name: &Name, factor: &Factor) -> Option<usize> {
    let found = factor.levels.iter().position(|level| *level == name.value);
    if found.is_none() {
        scope.unknown(Thing::Level, name, factor.levels.iter().map(String::as_str));
    }
    found
}

fn within(scope: &mut Scope<'_>, names: &[Name], compared: Option<usize>, factors: &[Factor]) -> Vec<usize> {
    let mut within = Vec::new();
    for name in names {
        let Some(index) = factor(scope, name, factors) else { continue };
        if Some(index) == compared {
            let owner = format!("a comparison of `{}`", name.value);
            let help = "name the other factors behind `within`".to_owned();
            let meaning = Meaning::OptionNotFor { option: format!("within {}", name.value), owner, help };
            scope.fault(name.span.error(meaning));
        } else if within.contains(&index) {
            scope.fault(name.span.error(Meaning::Duplicate { thing: Thing::Factor, name: name.value.clone() }));
        } else {
            within.push(index);
        }
    }
    within
}

/// The id of one measured metric, named by its id or its label.
pub(super) fn metric(scope: &mut Scope<'_>, name: &MetricName, metrics: &[Metric]) -> Option<String> {
    let found = metrics_named(scope, name, metrics);
    if found.len() > 1 {
        let (path, form) = (name.path.clone(), found[0].clone());
        scope.fault(name.span.error(Meaning::WrongForm { name: path, form }));
        return None;
    }
    found.into_iter().next()
}

fn metrics_named(scope: &mut Scope<'_>, name: &MetricName, metrics: &[Metric]) -> Vec<String> {
    let glob = wildmatch::WildMatch::new(&name.path);
    let open = |metric: &Metric| matches!(metric.expr, crate::design::MetricExpr::Every(_));
    let opened = |metric: &Metric| open(metric) && wildmatch::WildMatch::new(&metric.id).matches(&name.path);
    let named = |metric: &&Metric| {
        metric.id == name.path || metric.label == name.path || name.path.contains('*') && glob.matches(&metric.id)
    };
    let mut found: Vec<String> = metrics.iter().filter(named).map(|metric| metric.id.clone()).collect();
    if found.is_empty() && metrics.iter().any(opened) {
        found.push(name.path.clone());
    }
    // A misspelt `measure` was reported; what it should have been is not reported again.
    let faulty = |metric: &&Metric| open(metric) && !metric.id.contains('*');
    let misspelt = super::nearest(&name.path, metrics.iter().filter(faulty).map(|metric| metric.id.as_str()));
    if found.is_empty() && misspelt.is_none() {
        let measured = metrics.iter().filter(|metric| !faulty(metric)).map(|metric| metric.id.clone()).collect();
        scope.fault(name.span.error(Meaning::Unmeasured { metric: name.path.clone(), measured }));
    }
    found
}
