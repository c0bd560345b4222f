//! How trials are laid out in time: `repeat`, `warmup`, `order`, `settle`, `timeout`; and what the host must have.

use crate::design::{Metric, Order, Protocol, Relation, Repeat, Requirement, RequirementKind};
use crate::diagnostic::{Meaning, Thing};
use crate::syntax::ast::{self, Name, Number, Require};

use super::clauses::Clauses;
use super::scope::Scope;
use super::selectors;
use super::units::{self, Bounds, Quantity};

/// Blocks where no `repeat` is written.
pub const DEFAULT_REPEAT: u32 = 5;
/// Warm-up trials per treatment where no `warmup` is written.
pub const DEFAULT_WARMUP: u32 = 1;
/// Seed of the order where none is written.
pub const DEFAULT_SEED: u64 = 1;
/// Rest before the workloads where no `settle` is written.
pub const DEFAULT_SETTLE_MS: u64 = 200;
/// Limit of a trial's workloads where no `timeout` is written.
pub const DEFAULT_TIMEOUT_MS: u64 = 600_000;
/// How many times an invalid trial is repeated.
pub const RETRIES: u32 = 2;
/// `pilot` of `repeat until` where none is written.
pub const DEFAULT_PILOT: u32 = 10;
/// `max` of `repeat until` where none is written.
pub const DEFAULT_MAX: u32 = 30;

/// The orders of trials.
pub const ORDERS: &[(&str, Order)] =
    &[("blocks", Order::Blocks), ("shuffled", Order::Shuffled), ("sequential", Order::Sequential)];

/// The facts `require FACT >= N` may ask for.
pub const FACTS: &[(&str, Quantity)] =
    &[("cpus", Quantity::Count), ("cores", Quantity::Count), ("nodes", Quantity::Count), ("memory", Quantity::Size)];

const RELATIONS: &[(&str, Relation)] = &[
    (">=", Relation::GreaterOrEqual),
    (">", Relation::Greater),
    ("<=", Relation::LessOrEqual),
    ("<", Relation::Less),
    ("==", Relation::Equal),
    ("!=", Relation::NotEqual),
];

const MOST_BLOCKS: f64 = 10_000.0;
const WEEK_MS: f64 = 7.0 * 24.0 * 3.6e6;

/// The layout of trials, defaults filled in.
pub(super) fn protocol(scope: &mut Scope<'_>, clauses: &Clauses<'_>, metrics: &[Metric]) -> Protocol {
    let mut protocol = defaults();
    if let Some(repeat) = clauses.repeat {
        protocol.repeat = self::repeat(scope, repeat, metrics).unwrap_or(protocol.repeat);
    }
    if let Some(number) = clauses.warmup {
        let bounds = Bounds { what: "`warmup`", low: 0.0, high: 100.0 };
        protocol.warmup = units::integer(scope, number, bounds).map_or(protocol.warmup, |value| value as u32);
    }
    if let Some((kind, seed)) = clauses.order {
        match ORDERS.iter().find(|(name, _)| *name == kind.value) {
            Some((_, order)) => protocol.order = *order,
            None => scope.unknown(Thing::Order, kind, ORDERS.iter().map(|(name, _)| *name)),
        }
        let seed = seed.and_then(|seed| self::seed(scope, seed));
        protocol.seed = seed.unwrap_or(protocol.seed);
    }
    if let Some(number) = clauses.settle {
        let bounds = Bounds { what: "`settle`", low: 0.0, high: 3.6e6 };
        protocol.settle_ms = units::milliseconds(scope, number, bounds).unwrap_or(protocol.settle_ms);
    }
    if let Some(number) = clauses.timeout {
        protocol.timeout_ms = timeout(scope, number).unwrap_or(protocol.timeout_ms);
    }
    protocol
}

/// The layout where no clause says anything.
pub(super) fn defaults() -> Protocol {
    Protocol {
        repeat: Repeat::Fixed(DEFAULT_REPEAT),
        warmup: DEFAULT_WARMUP,
        order: Order::Blocks,
        seed: DEFAULT_SEED,
        settle_ms: DEFAULT_SETTLE_MS,
        timeout_ms: DEFAULT_TIMEOUT_MS,
        retries: RETRIES,
    }
}

/// A time limit, of an experiment or a process.
pub(super) fn timeout(scope: &mut Scope<'_>, number: &Number) -> Option<u64> {
    units::milliseconds(scope, number, Bounds { what: "`timeout`", low: 1.0, high: WEEK_MS })
}

/// A seed; within what a JSON number holds exactly.
pub(super) fn seed(scope: &mut Scope<'_>, number: &Number) -> Option<u64> {
    units::integer(scope, number, Bounds { what: "a seed", low: 0.0, high: 9_007_199_254_740_991.0 })
}

fn repeat(scope: &mut Scope<'_>, repeat: &ast::Repeat, metrics: &[Metric]) -> Option<Repeat> {
    let blocks = |scope: &mut Scope<'_>, number: &Number, what: &str, low: f64| {
        let bounds = Bounds { what, low, high: MOST_BLOCKS };
        units::integer(scope, number, bounds).map(|value| value as u32)
    };
    match repeat {
        ast::Repeat::Fixed(number) => blocks(scope, number, "`repeat`", 1.0).map(Repeat::Fixed),
        ast::Repeat::Until { metric, within, pilot, max } => {
            let metric = super::verdicts::metric(scope, metric, metrics);
            let bounds = Bounds { what: "the width", low: 0.01, high: 100.0 };
            let within = units::number(scope, within, Quantity::Percent, bounds);
            let pilot_number = pilot.as_ref();
            let pilot = pilot_number.map_or(Some(DEFAULT_PILOT), |pilot| blocks(scope, pilot, "`pilot`", 5.0));
            let max_number = max.as_ref();
            let default_max = DEFAULT_MAX.max(pilot.unwrap_or_default());
            let max = max_number.map_or(Some(default_max), |max| blocks(scope, max, "`max`", 5.0));
            let (metric, within, pilot, max) = (metric?, within?, pilot?, max?);
            if max < pilot {
                let place = max_number.or(pilot_number).map(Number::span)?;
                let (low, high) = (pilot.to_string(), MOST_BLOCKS.to_string());
                scope.fault(place.error(Meaning::OutOfRange { what: "`max`".to_owned(), low, high }));
                return None;
            }
            Some(Repeat::Until { metric, within: within / 100.0, pilot, max })
        }
    }
}

/// What the host must have.
pub(super) fn requirements(scope: &mut Scope<'_>, clauses: &Clauses<'_>) -> Vec<Requirement> {
    let mut requirements = Vec::new();
    for (require, span) in &clauses.requirements {
        let kind = match require {
            Require::Fact { fact, operator, value } => fact_requirement(scope, fact, operator, value),
            Require::Irq(irqs) => selectors::irqs(scope, irqs).map(RequirementKind::Irq),
            Require::Root(_) => Some(RequirementKind::Root),
            Require::Tool(tool) => scope.filled_text(tool, "the program").map(RequirementKind::Tool),
        };
        requirements.extend(kind.map(|kind| Requirement { kind, span: *span }));
    }
    requirements
}

fn fact_requirement(scope: &mut Scope<'_>, fact: &Name, operator: &Name, value: &Number) -> Option<RequirementKind> {
    let relation = RELATIONS.iter().find(|(sign, _)| *sign == operator.value).map(|(_, relation)| *relation);
    if relation.is_none() {
        let operator_ = operator.value.clone();
        let allowed = &[">=", ">", "<=", "<", "==", "!="];
        scope.fault(operator.span.error(Meaning::WrongOperator { operator: operator_, allowed }));
    }
    let Some((_, quantity)) = FACTS.iter().find(|(name, _)| *name == fact.value) else {
        scope.unknown(Thing::Fact, fact, FACTS.iter().map(|(name, _)| *name));
        return None;
    };
    let what = format!("`{}`", fact.value);
    let value = units::number(scope, value, *quantity, Bounds { what: &what, low: 0.0, high: 1e18 })?;
    Some(RequirementKind::Fact { fact: fact.value.clone(), relation: relation?, value })
}
