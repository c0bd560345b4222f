//! The tables of metrics, and metric expressions: units and directions of what is computed from them.

use crate::design::{Direction, Metric, MetricExpr};
use crate::diagnostic::{Meaning, Thing};
use crate::syntax::ast::{self, ArithmeticOperator, MetricExprKind, MetricName, Name};

use super::scope::Scope;
use super::units;

/// A metric of a table.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KnownMetric {
    /// Behind the dot.
    pub name: &'static str,
    /// Its unit, empty for none.
    pub unit: &'static str,
    /// Which way is better.
    pub direction: Direction,
}

pub(super) const fn higher(name: &'static str, unit: &'static str) -> KnownMetric {
    KnownMetric { name, unit, direction: Direction::HigherIsBetter }
}

pub(super) const fn lower(name: &'static str, unit: &'static str) -> KnownMetric {
    KnownMetric { name, unit, direction: Direction::LowerIsBetter }
}

pub(super) const fn neutral(name: &'static str, unit: &'static str) -> KnownMetric {
    KnownMetric { name, unit, direction: Direction::Neutral }
}

/// What the kernel says of every process (`wait4(2)`, `getrusage(2)`).
pub const PROCESS_METRICS: &[KnownMetric] = &[
    lower("real", "s"),
    lower("user", "s"),
    lower("sys", "s"),
    lower("max_rss", "KiB"),
    neutral("voluntary_switches", ""),
    lower("involuntary_switches", ""),
    lower("minor_faults", ""),
    lower("major_faults", ""),
];

/// What the kernel says of the host during a trial. All but `mhz` also exist per CPU: `host.idle.cpu1`.
pub const HOST_METRICS: &[KnownMetric] = &[
    neutral("idle", "%"),
    neutral("user", "%"),
    neutral("system", "%"),
    neutral("iowait", "%"),
    neutral("irq", "%"),
    neutral("softirq", "%"),
    neutral("steal", "%"),
    neutral("interrupts", ""),
    neutral("softirqs", ""),
    neutral("mhz", "MHz"),
];

/// The words for directions.
pub const DIRECTIONS: &[(&str, Direction)] =
    &[("higher_is_better", Direction::HigherIsBetter), ("lower_is_better", Direction::LowerIsBetter)];

/// A metric a process yields.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Yielded {
    /// Behind the dot.
    pub(super) name: String,
    pub(super) unit: String,
    pub(super) direction: Direction,
}

/// What one workload yields besides [`PROCESS_METRICS`].
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Yields {
    /// The workload's name.
    pub(super) process: String,
    /// Metrics known by name.
    pub(super) metrics: Vec<Yielded>,
    /// Its parser yields names that only its output knows.
    pub(super) open: Openness,
}

/// Whether all metrics of a process are known by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Openness {
    /// They are.
    Closed,
    /// Any name may come out of its output.
    Open,
}

impl From<&KnownMetric> for Yielded {
    fn from(known: &KnownMetric) -> Self {
        Yielded { name: known.name.to_owned(), unit: known.unit.to_owned(), direction: known.direction }
    }
}

/// All that can be measured in an experiment.
#[derive(Debug, Clone, Default)]
pub(super) struct Measurable {
    /// One entry per workload.
    pub(super) workloads: Vec<Yields>,
    /// Names of backgrounds, to say why they are not measured.
    pub(super) backgrounds: Vec<String>,
}

/// The metrics of `measure` clauses, patterns expanded where their names are known.
pub(super) fn measured(scope: &mut Scope<'_>, measurable: &Measurable, measures: &[&ast::Measure]) -> Vec<Metric> {
    let mut metrics: Vec<Metric> = Vec::new();
    for measure in measures {
        let (mut found, pattern) = match &measure.expr.kind {
            MetricExprKind::Metric(name) if name.path.contains('*') => (expand(scope, measurable, name), true),
            _ => (computed(scope, measurable, &measure.expr).into_iter().collect(), false),
        };
        if found.is_empty() {
            // It was reported; it stays known so that clauses that name it are not reported as well.
            let (id, unit, span) = (canonical(&measure.expr), String::new(), measure.expr.span);
            let (label, expr) = (id.clone(), MetricExpr::Every(id.clone()));
            found.push(Metric { id, label, unit, direction: Direction::Neutral, expr, span });
        }
        let label = measure.label.as_ref().and_then(|label| scope.filled_text(label, "the label"));
        if let (true, Some(label)) = (pattern, &measure.label) {
            let path = canonical(&measure.expr);
            scope.fault(label.span.error(Meaning::LabelOnPattern { pattern: path }));
        }
        let direction = measure.direction.as_ref().and_then(|word| direction(scope, word));
        for mut metric in found {
            if let Some(direction) = direction {
                metric.direction = direction;
            }
            if let Some(label) = &label {
                metric.label.clone_from(label);
            }
            match metrics.iter().find(|earlier| earlier.id == metric.id || earlier.label == metric.label) {
                // A metric named on its own and matched by a pattern as well is measured once.
                Some(_) if pattern => {}
                Some(earlier) => {
                    let name = if earlier.id == metric.id { metric.id } else { metric.label };
                    let mut fault = metric.span.error(Meaning::Duplicate { thing: Thing::Metric, name });
                    fault.related.push((earlier.span, "first here".to_owned()));
                    scope.fault(fault);
                }
                None => metrics.push(metric),
            }
        }
    }
    metrics
}

/// `lower_is_better` or `higher_is_better`.
pub(super) fn direction(scope: &mut Scope<'_>, word: &Name) -> Option<Direction> {
    let found = DIRECTIONS.iter().find(|(name, _)| *name == word.value);
    if found.is_none() {
        let words: Vec<&str> = DIRECTIONS.iter().map(|(name, _)| *name).collect();
        scope.wrong_word("direction", word, &words);
    }
    found.map(|(_, direction)| *direction)
}

/// Text of an expression in one form, whatever blanks and brackets it was written with.
pub(super) fn canonical(expr: &ast::MetricExpr) -> String {
    let bracketed = |inner: &ast::MetricExpr, outer: ArithmeticOperator, right: bool| {
        let text = canonical(inner);
        let MetricExprKind::Binary { operator, .. } = &inner.kind else { return text };
        let (inner, outer_level) = (level(operator.value), level(outer));
        if inner < outer_level || right && inner == outer_level { format!("({text})") } else { text }
    };
    match &expr.kind {
        MetricExprKind::Binary { operator, left, right } => {
            let sign = sign(operator.value);
            format!("{} {sign} {}", bracketed(left, operator.value, false), bracketed(right, operator.value, true))
        }
        MetricExprKind::Metric(name) => name.path.clone(),
        MetricExprKind::Number(ast::Number::Literal { digits, unit }) => {
            digits.value.clone() + unit.as_ref().map_or("", |unit| &unit.value)
        }
        MetricExprKind::Number(ast::Number::Reference(name)) => format!("${{{}}}", name.value),
    }
}

fn level(operator: ArithmeticOperator) -> u8 {
    match operator {
        ArithmeticOperator::Add | ArithmeticOperator::Subtract => 0,
        ArithmeticOperator::Divide | ArithmeticOperator::Multiply => 1,
    }
}

fn sign(operator: ArithmeticOperator) -> char {
    match operator {
        ArithmeticOperator::Add => '+',
        ArithmeticOperator::Divide => '/',
        ArithmeticOperator::Multiply => '*',
        ArithmeticOperator::Subtract => '-',
    }
}

/// An expression with what is known of its value.
struct Computed {
    expr: MetricExpr,
    unit: String,
    direction: Direction,
}

fn computed(scope: &mut Scope<'_>, measurable: &Measurable, expr: &ast::MetricExpr) -> Option<Metric> {
    let Computed { expr: computed, unit, direction } = compute(scope, measurable, expr)?;
    let id = canonical(expr);
    Some(Metric { label: id.clone(), id, unit, direction, expr: computed, span: expr.span })
}

fn compute(scope: &mut Scope<'_>, measurable: &Measurable, expr: &ast::MetricExpr) -> Option<Computed> {
    match &expr.kind {
        MetricExprKind::Binary { operator, left, right } => {
            let (left, right) = (compute(scope, measurable, left), compute(scope, measurable, right));
            let (left, right) = (left?, right?);
            let sum = level(operator.value) == 0;
            if sum && left.unit != right.unit {
                scope.fault(operator.span.error(Meaning::IncompatibleUnits { left: left.unit, right: right.unit }));
                return None;
            }
            let unit = derived_unit(operator.value, &left.unit, &right.unit);
            let direction = derived_direction(operator.value, &left, &right);
            let (left, right) = (Box::new(left.expr), Box::new(right.expr));
            let expr = match operator.value {
                ArithmeticOperator::Add => MetricExpr::Add(left, right),
                ArithmeticOperator::Divide => MetricExpr::Divide(left, right),
                ArithmeticOperator::Multiply => MetricExpr::Multiply(left, right),
                ArithmeticOperator::Subtract => MetricExpr::Subtract(left, right),
            };
            Some(Computed { expr, unit, direction })
        }
        MetricExprKind::Metric(name) if name.path.contains('*') => {
            let (name_, form) = (name.path.clone(), format!("measure {}", name.path));
            scope.fault(name.span.error(Meaning::WrongForm { name: name_, form }));
            None
        }
        MetricExprKind::Metric(name) => {
            let found = find(scope, measurable, name)?;
            Some(Computed { expr: MetricExpr::Metric(name.path.clone()), unit: found.unit, direction: found.direction })
        }
        MetricExprKind::Number(number) => {
            let bounds = units::Bounds { what: "the number", low: 0.0, high: f64::MAX };
            let value = units::number(scope, number, units::Quantity::Count, bounds)?;
            Some(Computed { expr: MetricExpr::Number(value), unit: String::new(), direction: Direction::Neutral })
        }
    }
}

fn derived_unit(operator: ArithmeticOperator, left: &str, right: &str) -> String {
    match operator {
        ArithmeticOperator::Add | ArithmeticOperator::Subtract => left.to_owned(),
        ArithmeticOperator::Divide if right.is_empty() => left.to_owned(),
        ArithmeticOperator::Divide if left == right => String::new(),
        ArithmeticOperator::Divide if left.is_empty() => format!("1/{right}"),
        ArithmeticOperator::Divide => format!("{left}/{right}"),
        ArithmeticOperator::Multiply if left.is_empty() => right.to_owned(),
        ArithmeticOperator::Multiply if right.is_empty() => left.to_owned(),
        ArithmeticOperator::Multiply => format!("{left}*{right}"),
    }
}

/// Which way is better, where both sides agree on it; a neutral side leaves the other's word. In a difference or a
/// quotient the right side counts the other way round. Neutral where the sides disagree.
fn derived_direction(operator: ArithmeticOperator, left: &Computed, right: &Computed) -> Direction {
    let turned = |direction: Direction| match direction {
        Direction::HigherIsBetter => Direction::LowerIsBetter,
        Direction::LowerIsBetter => Direction::HigherIsBetter,
        Direction::Neutral => Direction::Neutral,
    };
    let right = match operator {
        ArithmeticOperator::Add | ArithmeticOperator::Multiply => right.direction,
        ArithmeticOperator::Divide | ArithmeticOperator::Subtract => turned(right.direction),
    };
    match (left.direction, right) {
        (Direction::Neutral, only) | (only, Direction::Neutral) => only,
        (left, right) if left == right => left,
        _ => Direction::Neutral,
    }
}

/// What a path without `*` names.
fn find(scope: &mut Scope<'_>, measurable: &Measurable, name: &MetricName) -> Option<Yielded> {
    let whole = Name::new(name.path.clone(), name.span);
    let Some((process, metric)) = name.path.split_once('.') else {
        let known: Vec<String> = measurable.workloads.iter().map(|yields| format!("{}.real", yields.process)).collect();
        scope.unknown(Thing::Metric, &whole, known.iter().map(String::as_str));
        return None;
    };
    if process == "host" {
        return host_metric(scope, &whole, metric);
    }
    let yields = yields_of(scope, measurable, &whole, process)?;
    let of_process = PROCESS_METRICS.iter().map(Yielded::from);
    let known: Vec<Yielded> = of_process.chain(yields.metrics.iter().cloned()).collect();
    if let Some(found) = known.iter().find(|known| known.name == metric) {
        return Some(found.clone());
    }
    if yields.open == Openness::Open {
        return Some(Yielded { name: metric.to_owned(), unit: String::new(), direction: Direction::Neutral });
    }
    let paths: Vec<String> = known.iter().map(|known| format!("{process}.{}", known.name)).collect();
    scope.unknown(Thing::Metric, &whole, paths.iter().map(String::as_str));
    None
}

fn host_metric(scope: &mut Scope<'_>, whole: &Name, metric: &str) -> Option<Yielded> {
    let (kind, cpu) = metric.split_once('.').map_or((metric, None), |(kind, cpu)| (kind, Some(cpu)));
    let known = HOST_METRICS.iter().find(|known| known.name == kind);
    let per_cpu = |cpu: &str| {
        let digits = cpu.strip_prefix("cpu").unwrap_or_default();
        kind != "mhz" && !digits.is_empty() && digits.len() <= 5 && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    match known {
        Some(known) if cpu.is_none_or(per_cpu) => Some(Yielded::from(known)),
        Some(_) if kind != "mhz" => {
            let near = format!("host.{kind}.cpu0");
            scope.unknown(Thing::Metric, whole, [near.as_str()]);
            None
        }
        _ => {
            let paths: Vec<String> = HOST_METRICS.iter().map(|known| format!("host.{}", known.name)).collect();
            scope.unknown(Thing::Metric, whole, paths.iter().map(String::as_str));
            None
        }
    }
}

fn yields_of<'m>(scope: &mut Scope<'_>, measurable: &'m Measurable, whole: &Name, process: &str) -> Option<&'m Yields> {
    if let Some(yields) = measurable.workloads.iter().find(|yields| yields.process == process) {
        return Some(yields);
    }
    if measurable.backgrounds.iter().any(|name| name == process) {
        scope.fault(whole.span.error(Meaning::BackgroundMetric { process: process.to_owned() }));
        return None;
    }
    let name =
        Name::new(process.to_owned(), crate::source::Span { end: whole.span.start + process.len(), ..whole.span });
    let workloads = measurable.workloads.iter().map(|yields| yields.process.as_str());
    scope.unknown(Thing::Workload, &name, workloads.chain(["host"]));
    None
}

/// The metrics a pattern such as `bonnie.*` stands for.
fn expand(scope: &mut Scope<'_>, measurable: &Measurable, name: &MetricName) -> Vec<Metric> {
    let whole = Name::new(name.path.clone(), name.span);
    let (process, pattern) = name.path.split_once('.').unwrap_or((name.path.as_str(), "*"));
    let metric = |found: Yielded| {
        let id = format!("{process}.{}", found.name);
        let (unit, direction, span) = (found.unit, found.direction, name.span);
        Metric { label: id.clone(), expr: MetricExpr::Metric(id.clone()), id, unit, direction, span }
    };
    let matching = |known: Vec<Yielded>| -> Vec<Metric> {
        let glob = wildmatch::WildMatch::new(pattern);
        known.into_iter().filter(|known| glob.matches(&known.name)).map(metric).collect()
    };
    let (found, known) = if process == "host" {
        let known: Vec<Yielded> = HOST_METRICS.iter().map(Yielded::from).collect();
        (matching(known.clone()), known)
    } else {
        let Some(yields) = yields_of(scope, measurable, &whole, process) else { return Vec::new() };
        if yields.open == Openness::Open {
            let (id, expr) = (name.path.clone(), MetricExpr::Every(name.path.clone()));
            let (label, unit, direction) = (id.clone(), String::new(), Direction::Neutral);
            return vec![Metric { id, label, unit, direction, expr, span: name.span }];
        }
        (matching(yields.metrics.clone()), yields.metrics.clone())
    };
    if found.is_empty() {
        let known = if known.is_empty() { PROCESS_METRICS.iter().map(Yielded::from).collect() } else { known };
        let paths: Vec<String> = known.iter().map(|known| format!("{process}.{}", known.name)).collect();
        scope.unknown(Thing::Metric, &whole, paths.iter().map(String::as_str));
    }
    found
}
