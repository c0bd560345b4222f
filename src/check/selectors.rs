//! CPU sets, interrupt sets and routing targets: names are resolved, numbers are bounded, nothing is looked up on a
//! host.

use crate::cpu_set::{Cpu, CpuSet, MAX_CPU, MAX_IRQ};
use crate::design::{CpuSelector, IrqSelector, RoutingTarget, TopologyUnit};
use crate::diagnostic::{Meaning, Thing};
use crate::syntax::ast::{
    CpuExpr, CpuExprKind, IrqExpr, IrqExprKind, LetValue, Name, Number, SetOperator, Target, TargetKind,
};

use super::scope::{Known, Scope};
use super::units::{self, Bounds};

/// Where a CPU set stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Anywhere else: `local` has no device to be near to.
    Elsewhere,
    /// Behind `->`.
    Target,
}

/// The classes of `irq class NAME`.
pub const IRQ_CLASSES: &[&str] = &["net", "storage"];

/// The units of `each UNIT of SET`.
pub const TOPOLOGY_UNITS: &[(&str, TopologyUnit)] = &[
    ("cpu", TopologyUnit::Cpu),
    ("core", TopologyUnit::Core),
    ("cache", TopologyUnit::Cache),
    ("node", TopologyUnit::Node),
];

/// How each routing target is written.
pub const TARGETS: &[&str] = &[
    "each cpu of",
    "each core of",
    "each cache of",
    "each node of",
    "local",
    "hint",
    "random over",
    "rotating over",
    "balanced over",
    "unchanged",
];

/// How each CPU set is written.
pub const CPU_SETS: &[&str] =
    &["cpu ", "cpus ", "online", "isolated", "node ", "core ", "siblings of", "local to", "first threads"];

/// The seed of `random over` where none is written.
pub const DEFAULT_RANDOM_SEED: u64 = 1;

/// A set of CPUs.
pub(super) fn cpus(scope: &mut Scope<'_>, expr: &CpuExpr, place: Place) -> Option<CpuSelector> {
    let selector = cpu_part(scope, expr, place)?;
    if constant(&selector).is_some_and(|set| set.is_empty()) {
        scope.fault(expr.span.error(Meaning::EmptyCpuSet { text: describe_cpus(&selector) }));
        return None;
    }
    Some(selector)
}

fn cpu_part(scope: &mut Scope<'_>, expr: &CpuExpr, place: Place) -> Option<CpuSelector> {
    Some(match &expr.kind {
        CpuExprKind::Binary { operator, left, right } => {
            let (left, right) = (cpu_part(scope, left, place), cpu_part(scope, right, place));
            let (left, right) = (Box::new(left?), Box::new(right?));
            match operator.value {
                SetOperator::Difference => CpuSelector::Difference(left, right),
                SetOperator::Intersection => CpuSelector::Intersection(left, right),
                SetOperator::Union => CpuSelector::Union(left, right),
            }
        }
        CpuExprKind::Core(number) => CpuSelector::Core(index(scope, number, "a core's number")?),
        CpuExprKind::Cpu(number) => CpuSelector::List(CpuSet::single(Cpu(index(scope, number, "a CPU's number")?))),
        CpuExprKind::Cpus(list) => {
            let Some(set) = cpu_list(&list.value) else {
                let (name, form) = (list.value.clone(), "cpus 0-3,8".to_owned());
                scope.fault(list.span.error(Meaning::WrongForm { name, form }));
                return None;
            };
            CpuSelector::List(set)
        }
        CpuExprKind::FirstThreads => CpuSelector::FirstThreads,
        CpuExprKind::Isolated => CpuSelector::Isolated,
        CpuExprKind::Local if place == Place::Elsewhere => {
            scope.fault(expr.span.error(Meaning::LocalOutsideTarget));
            return None;
        }
        CpuExprKind::Local => CpuSelector::Local,
        CpuExprKind::LocalTo(device) => CpuSelector::LocalTo(device_name(scope, device)?),
        CpuExprKind::Name(name) => {
            let name = Name::new(name.clone(), expr.span);
            return named_cpus(scope, &name, place);
        }
        CpuExprKind::Node(number) => CpuSelector::Node(index(scope, number, "a node's number")?),
        CpuExprKind::Online => CpuSelector::Online,
        CpuExprKind::Siblings(of) => CpuSelector::Siblings(Box::new(cpu_part(scope, of, place)?)),
    })
}

/// The kernel's list form with its strides: `0-31:2/4` is the first two of every four (lib/bitmap-str.c).
fn cpu_list(text: &str) -> Option<CpuSet> {
    let mut set = CpuSet::new();
    for part in text.split(',') {
        let (range, stride) = part.split_once(':').map_or((part, None), |(range, stride)| (range, Some(stride)));
        let cpus = CpuSet::parse_list(range).ok().filter(|cpus| !cpus.is_empty())?;
        let (used, group) = match stride.map(|stride| stride.split_once('/')) {
            None => (1, 1),
            Some(stride) => {
                let (used, group) = stride?;
                (used.parse::<usize>().ok()?, group.parse::<usize>().ok()?)
            }
        };
        if used == 0 || used > group {
            return None;
        }
        let kept = cpus.iter().enumerate().filter(|(index, _)| index % group < used).map(|(_, cpu)| cpu);
        set = set.union(&kept.collect());
    }
    Some(set)
}

fn named_cpus(scope: &mut Scope<'_>, name: &Name, place: Place) -> Option<CpuSelector> {
    let Some((key, value)) = scope.lets.get_key_value(name.value.as_str()).map(|(key, value)| (*key, *value)) else {
        unknown_set(scope, name, Thing::CpuSet);
        return None;
    };
    scope.used.insert(key.to_owned());
    if holds_irqs(scope, value, 0) {
        let name_ = name.value.clone();
        let meaning = Meaning::WrongSet { name: name_, wanted: "a set of CPUs", found: "a set of interrupts" };
        scope.fault(name.span.error(meaning));
        return None;
    }
    let LetValue::Cpus(expr) = value else { return None };
    enter(scope, name, |scope| cpu_part(scope, expr, place))
}

/// A set of interrupts.
pub(super) fn irqs(scope: &mut Scope<'_>, expr: &IrqExpr) -> Option<IrqSelector> {
    Some(match &expr.kind {
        IrqExprKind::All => IrqSelector::All,
        IrqExprKind::Binary { operator, left, right } => {
            let (left, right) = (irqs(scope, left), irqs(scope, right));
            let (left, right) = (Box::new(left?), Box::new(right?));
            match operator.value {
                SetOperator::Difference => IrqSelector::Difference(left, right),
                SetOperator::Intersection => IrqSelector::Intersection(left, right),
                SetOperator::Union => IrqSelector::Union(left, right),
            }
        }
        IrqExprKind::Class(class) => match class.value.as_str() {
            "net" => IrqSelector::ClassNet,
            "storage" => IrqSelector::ClassStorage,
            _ => {
                scope.wrong_word("class of interrupts", class, IRQ_CLASSES);
                return None;
            }
        },
        IrqExprKind::Device(device) => {
            let device = scope.word(device)?;
            IrqSelector::Device(device_name(scope, &device)?)
        }
        IrqExprKind::Driver(driver) => {
            let driver = scope.word(driver)?;
            IrqSelector::Driver(device_name(scope, &driver)?)
        }
        IrqExprKind::Glob(text) => IrqSelector::Glob(scope.filled_text(text, "the pattern")?),
        IrqExprKind::Name(name) => {
            let name = Name::new(name.clone(), expr.span);
            return named_irqs(scope, &name);
        }
        IrqExprKind::Number(number) => {
            let bounds = Bounds { what: "an interrupt's number", low: 0.0, high: f64::from(MAX_IRQ) };
            IrqSelector::Number(units::integer(scope, number, bounds)? as u32)
        }
        IrqExprKind::Pci(address) => IrqSelector::Pci(address.value.clone()),
    })
}

fn named_irqs(scope: &mut Scope<'_>, name: &Name) -> Option<IrqSelector> {
    let Some((key, value)) = scope.lets.get_key_value(name.value.as_str()).map(|(key, value)| (*key, *value)) else {
        unknown_set(scope, name, Thing::IrqSet);
        return None;
    };
    scope.used.insert(key.to_owned());
    if !holds_irqs(scope, value, 0) {
        let name_ = name.value.clone();
        let meaning = Meaning::WrongSet { name: name_, wanted: "a set of interrupts", found: "a set of CPUs" };
        scope.fault(name.span.error(meaning));
        return None;
    }
    match value {
        LetValue::Irqs(expr) => enter(scope, name, |scope| irqs(scope, expr)),
        LetValue::Cpus(expr) => {
            let expr = irqs_of_names(expr)?;
            enter(scope, name, |scope| irqs(scope, &expr))
        }
    }
}

/// Resolves the value of a name, refusing one that is being resolved already.
fn enter<T>(scope: &mut Scope<'_>, name: &Name, resolve: impl FnOnce(&mut Scope<'_>) -> Option<T>) -> Option<T> {
    if scope.open.contains(&name.value) {
        scope.fault(name.span.error(Meaning::Cycle { thing: Thing::Let, name: name.value.clone() }));
        return None;
    }
    scope.open.push(name.value.clone());
    let value = resolve(scope);
    scope.open.pop();
    value
}

fn unknown_set(scope: &mut Scope<'_>, name: &Name, thing: Thing) {
    if scope.known == Known::Shared {
        return;
    }
    let wanted = thing == Thing::IrqSet;
    let known: Vec<&str> =
        scope.lets.iter().filter(|(_, value)| holds_irqs(scope, value, 0) == wanted).map(|(name, _)| *name).collect();
    scope.unknown(thing, name, known);
}

/// Whether a `let` names interrupts. An expression of names alone is what its first name is; `depth` ends circles,
/// which are reported where they are entered.
pub(super) fn holds_irqs(scope: &Scope<'_>, value: &LetValue, depth: usize) -> bool {
    let LetValue::Cpus(expr) = value else { return true };
    let mut first = expr;
    while let CpuExprKind::Binary { left, .. } = &first.kind {
        first = left;
    }
    match &first.kind {
        CpuExprKind::Name(name) if depth <= scope.lets.len() => {
            scope.lets.get(name.as_str()).is_some_and(|value| holds_irqs(scope, value, depth + 1))
        }
        _ => false,
    }
}

/// The same names read as interrupt sets.
fn irqs_of_names(expr: &CpuExpr) -> Option<IrqExpr> {
    let kind = match &expr.kind {
        CpuExprKind::Name(name) => IrqExprKind::Name(name.clone()),
        CpuExprKind::Binary { operator, left, right } => IrqExprKind::Binary {
            operator: *operator,
            left: Box::new(irqs_of_names(left)?),
            right: Box::new(irqs_of_names(right)?),
        },
        _ => return None,
    };
    Some(IrqExpr { kind, span: expr.span })
}

/// Right of `->`.
pub(super) fn target(scope: &mut Scope<'_>, target: &Target) -> Option<RoutingTarget> {
    Some(match &target.kind {
        TargetKind::Balanced { over, every } => {
            let (over, every_ms) = (cpus(scope, over, Place::Target), period(scope, every));
            RoutingTarget::Balanced { over: over?, every_ms: every_ms? }
        }
        TargetKind::Each { unit, of } => {
            let of = cpus(scope, of, Place::Target);
            let Some((_, unit)) = TOPOLOGY_UNITS.iter().find(|(name, _)| *name == unit.value) else {
                let names: Vec<&str> = TOPOLOGY_UNITS.iter().map(|(name, _)| *name).collect();
                scope.unknown(Thing::TopologyUnit, unit, names);
                return None;
            };
            RoutingTarget::Each { unit: *unit, of: of? }
        }
        TargetKind::Hint => RoutingTarget::Hint,
        TargetKind::Random { over, seed } => {
            let over = cpus(scope, over, Place::Target);
            let seed = match seed {
                Some(seed) => super::protocol::seed(scope, seed),
                None => Some(DEFAULT_RANDOM_SEED),
            };
            RoutingTarget::Random { over: over?, seed: seed? }
        }
        TargetKind::Rotating { over, every } => {
            let (over, every_ms) = (cpus(scope, over, Place::Target), period(scope, every));
            RoutingTarget::Rotating { over: over?, every_ms: every_ms? }
        }
        TargetKind::Set(expr) => RoutingTarget::Set(cpus(scope, expr, Place::Target)?),
        TargetKind::Unchanged => RoutingTarget::Unchanged,
    })
}

fn period(scope: &mut Scope<'_>, number: &Number) -> Option<u64> {
    units::milliseconds(scope, number, Bounds { what: "the period behind `every`", low: 1.0, high: 3.6e6 })
}

fn index(scope: &mut Scope<'_>, number: &Number, what: &str) -> Option<u32> {
    let bounds = Bounds { what, low: 0.0, high: f64::from(MAX_CPU) };
    units::integer(scope, number, bounds).map(|value| value as u32)
}

/// A device or driver name. It becomes part of a path in sysfs, so it must be one file name.
pub(super) fn device_name(scope: &mut Scope<'_>, name: &Name) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-:@!".contains(c);
    let fits = !name.value.is_empty() && name.value.len() <= 64 && name.value.chars().all(allowed);
    if !fits || name.value.starts_with('.') {
        scope.wrong_word("device name", name, &[]);
        return None;
    }
    Some(name.value.clone())
}

/// The CPUs of a set that no host changes.
pub(super) fn constant(selector: &CpuSelector) -> Option<CpuSet> {
    match selector {
        CpuSelector::List(set) => Some(set.clone()),
        CpuSelector::Difference(left, right) if left == right => Some(CpuSet::new()),
        CpuSelector::Difference(left, right) => Some(constant(left)?.difference(&constant(right)?)),
        CpuSelector::Intersection(left, right) => Some(constant(left)?.intersection(&constant(right)?)),
        CpuSelector::Union(left, right) => Some(constant(left)?.union(&constant(right)?)),
        _ => None,
    }
}

/// Whether two interrupt sets surely share an interrupt. Sets that only a host can compare (a device and a class)
/// are not said to overlap.
pub(super) fn overlap(left: &IrqSelector, right: &IrqSelector) -> bool {
    use IrqSelector::{All, Difference, Union};
    match (left, right) {
        (Union(a, b), other) | (other, Union(a, b)) => overlap(a, other) || overlap(b, other),
        (Difference(from, without), other) | (other, Difference(from, without)) => {
            left == right || overlap(from, other) && disjoint(without, other)
        }
        (All, _) | (_, All) => true,
        _ => left == right,
    }
}

/// Whether two sets surely have no interrupt in common.
fn disjoint(left: &IrqSelector, right: &IrqSelector) -> bool {
    match (left, right) {
        (IrqSelector::ClassNet, IrqSelector::ClassStorage) | (IrqSelector::ClassStorage, IrqSelector::ClassNet) => true,
        (IrqSelector::Number(left), IrqSelector::Number(right)) => left != right,
        _ => false,
    }
}

/// A CPU set as one would write it.
pub(super) fn describe_cpus(selector: &CpuSelector) -> String {
    let binary = |left: &CpuSelector, sign: &str, right: &CpuSelector| {
        format!("{} {sign} {}", describe_cpus(left), describe_cpus(right))
    };
    match selector {
        CpuSelector::Core(number) => format!("core {number}"),
        CpuSelector::Difference(left, right) => binary(left, "-", right),
        CpuSelector::FirstThreads => "first threads".to_owned(),
        CpuSelector::Intersection(left, right) => binary(left, "&", right),
        CpuSelector::Isolated => "isolated".to_owned(),
        CpuSelector::List(set) if set.len() == 1 => format!("cpu {set}"),
        CpuSelector::List(set) => format!("cpus {set}"),
        CpuSelector::Local => "local".to_owned(),
        CpuSelector::LocalTo(device) => format!("local to {device}"),
        CpuSelector::Node(number) => format!("node {number}"),
        CpuSelector::Online => "online".to_owned(),
        CpuSelector::Siblings(of) => format!("siblings of {}", describe_cpus(of)),
        CpuSelector::Union(left, right) => binary(left, "+", right),
    }
}

/// An interrupt set as one would write it.
pub(super) fn describe_irqs(selector: &IrqSelector) -> String {
    let binary = |left: &IrqSelector, sign: &str, right: &IrqSelector| {
        format!("{} {sign} {}", describe_irqs(left), describe_irqs(right))
    };
    match selector {
        IrqSelector::All => "irq *".to_owned(),
        IrqSelector::ClassNet => "irq class net".to_owned(),
        IrqSelector::ClassStorage => "irq class storage".to_owned(),
        IrqSelector::Device(device) => format!("irq of {device}"),
        IrqSelector::Difference(left, right) => binary(left, "-", right),
        IrqSelector::Driver(driver) => format!("irq of driver {driver}"),
        IrqSelector::Glob(glob) => format!("irq \"{glob}\""),
        IrqSelector::Intersection(left, right) => binary(left, "&", right),
        IrqSelector::Number(number) => format!("irq {number}"),
        IrqSelector::Pci(address) => format!("irq of pci {address}"),
        IrqSelector::Union(left, right) => binary(left, "+", right),
    }
}

/// Finds CPUs of a fixed list in a set that are in `absent` too, to be told that the set cannot be had.
pub(super) fn named_cpus_among(selector: &CpuSelector, absent: &CpuSet) -> Option<Cpu> {
    match selector {
        CpuSelector::List(set) => set.intersection(absent).first(),
        CpuSelector::Union(left, right) => named_cpus_among(left, absent).or_else(|| named_cpus_among(right, absent)),
        CpuSelector::Difference(left, _) => match constant(selector) {
            Some(set) => set.intersection(absent).first(),
            None => named_cpus_among(left, absent).filter(|_| matches!(**left, CpuSelector::List(_))),
        },
        CpuSelector::Intersection(..) => constant(selector)?.intersection(absent).first(),
        _ => None,
    }
}

/// Whether the set is the sibling threads of some CPUs without these: nothing, once SMT is off.
pub(super) fn is_other_threads(selector: &CpuSelector) -> bool {
    match selector {
        CpuSelector::Difference(left, right) => matches!(&**left, CpuSelector::Siblings(of) if of == right),
        CpuSelector::Intersection(left, right) => is_other_threads(left) || is_other_threads(right),
        CpuSelector::Union(left, right) => is_other_threads(left) && is_other_threads(right),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_have_the_strides_of_the_kernel() {
        let list = |text| cpu_list(text).map(|set| set.to_string());
        assert_eq!(list("0-3,8"), Some("0-3,8".to_owned()));
        assert_eq!(list("0-15:2/4,20"), Some("0-1,4-5,8-9,12-13,20".to_owned()));
        for wrong in ["", "3-1", "0-3:0/2", "0-3:3/2", "0-3:1", "0-3:1/0", "70000"] {
            assert_eq!(list(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn interrupt_sets_overlap_only_where_no_host_is_needed_to_know() {
        let net = IrqSelector::ClassNet;
        let eth0 = IrqSelector::Device("eth0".to_owned());
        let rest = IrqSelector::Difference(Box::new(IrqSelector::All), Box::new(eth0.clone()));
        assert!(overlap(&IrqSelector::All, &eth0));
        assert!(overlap(&eth0, &eth0));
        assert!(!overlap(&net, &eth0));
        assert!(!overlap(&rest, &eth0));
        assert!(!overlap(&rest, &IrqSelector::Number(3)));
        let not_3 = IrqSelector::Difference(Box::new(IrqSelector::All), Box::new(IrqSelector::Number(3)));
        assert!(overlap(&not_3, &IrqSelector::Number(4)));
        assert!(!overlap(&not_3, &IrqSelector::Number(3)));
        assert!(overlap(&rest, &rest));
        assert!(overlap(&IrqSelector::Union(Box::new(net.clone()), Box::new(eth0.clone())), &eth0));
    }
}
