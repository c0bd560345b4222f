//! The table of settings, and how each becomes a design setting. Adding one touches this table, `conflicts` and the
//! reference.

use crate::cpu_set::MAX_CPU;
use crate::design::{CpuSelector, RoutingTarget, ServiceState, Setting, SettingKind};
use crate::diagnostic::{Meaning, Thing};
use crate::source::Span;
use crate::syntax::ast::{self, Argument, CpuExpr, KeyValue, Name, Target, Value};

use super::scope::{Known, Scope};
use super::selectors::{self, Place, device_name};
use super::units::{self, Bounds, Quantity};

/// A setting of the table.
pub struct SettingForm {
    /// Its first word, or what stands for it.
    pub name: &'static str,
    /// How it is written.
    pub form: &'static str,
    /// How it is read; `None` for those with a shape of their own in the grammar.
    resolve: Option<fn(&mut Scope<'_>, &Named<'_>) -> Option<SettingKind>>,
}

/// Every setting, in alphabetical order.
pub const SETTINGS: &[SettingForm] = &[
    SettingForm { name: "boot", form: "boot \"nmi_watchdog=1\"", resolve: Some(boot) },
    SettingForm { name: "channels", form: "channels eth0 combined=4", resolve: Some(channels) },
    SettingForm { name: "coalesce", form: "coalesce eth0 rx_usecs=50", resolve: Some(coalesce) },
    SettingForm { name: "cpu", form: "cpu 3 offline", resolve: Some(cpu_offline) },
    SettingForm { name: "default irq", form: "default irq -> cpu 0", resolve: None },
    SettingForm { name: "governor", form: "governor performance", resolve: Some(governor) },
    SettingForm { name: "idle_states", form: "idle_states max=1", resolve: Some(idle_states) },
    SettingForm { name: "irq", form: "irq of eth0 -> cpu 0", resolve: None },
    SettingForm { name: "irq_threads", form: "irq_threads irq of eth0 fifo=50 on cpu 0", resolve: None },
    SettingForm { name: "napi", form: "napi eth0 threaded", resolve: Some(napi) },
    SettingForm { name: "offload", form: "offload eth0 gro=off", resolve: Some(offload) },
    SettingForm { name: "rfs", form: "rfs eth0 entries=32768", resolve: Some(rfs) },
    SettingForm { name: "rings", form: "rings eth0 rx=4096", resolve: Some(rings) },
    SettingForm { name: "rps", form: "rps eth0 -> cpus 0-3", resolve: Some(rps) },
    SettingForm { name: "run", form: "run \"…\" undo \"…\"", resolve: None },
    SettingForm { name: "service", form: "service irqbalance stopped", resolve: Some(service) },
    SettingForm { name: "smt", form: "smt off", resolve: Some(smt) },
    SettingForm { name: "sysctl", form: "sysctl kernel.nmi_watchdog=0", resolve: Some(sysctl) },
    SettingForm { name: "tasks", form: "tasks * on cpu 0", resolve: Some(tasks) },
    SettingForm { name: "turbo", form: "turbo off", resolve: Some(turbo) },
    SettingForm { name: "workqueues", form: "workqueues on cpu 0", resolve: Some(workqueues) },
    SettingForm { name: "write", form: "write \"/sys/…\" \"value\"", resolve: Some(write) },
    SettingForm { name: "xps", form: "xps eth0 -> cpus 0-3", resolve: Some(xps) },
];

/// Keys of the settings that have options, by setting.
pub const SETTING_OPTIONS: &[(&str, &[&str])] = &[
    ("channels", CHANNELS),
    ("coalesce", COALESCE),
    ("irq_threads", &["fifo"]),
    ("napi", NAPI),
    ("offload", OFFLOADS),
    ("rings", RINGS),
    ("service", IRQBALANCE),
];

const CHANNELS: &[&str] = &["combined", "rx", "tx", "other"];
const COALESCE: &[&str] = &[
    "adaptive_rx",
    "adaptive_tx",
    "rx_usecs",
    "rx_frames",
    "rx_usecs_irq",
    "rx_frames_irq",
    "tx_usecs",
    "tx_frames",
    "tx_usecs_irq",
    "tx_frames_irq",
];
const NAPI: &[&str] = &["threaded", "defer_hard_irqs", "gro_flush_timeout"];
const OFFLOADS: &[&str] =
    &["gro", "gso", "lro", "ntuple", "rx", "rxhash", "rxvlan", "sg", "tso", "tx", "txvlan", "ufo"];
const RINGS: &[&str] = &["rx", "rx_mini", "rx_jumbo", "tx"];
const IRQBALANCE: &[&str] = &["deepestcache", "interval", "migrateval"];
const ON_OFF: &[&str] = &["on", "off"];

/// A setting with all names resolved.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Resolved {
    /// It changes the host.
    Host(Setting),
    /// It places a workload or background: `primes on cpu 1`.
    Placement { process: String, cpus: CpuSelector, span: Span },
}

impl Resolved {
    pub(super) fn span(&self) -> Span {
        match self {
            Resolved::Host(setting) => setting.span,
            Resolved::Placement { span, .. } => *span,
        }
    }
}

/// A named setting as written.
struct Named<'s> {
    name: &'s Name,
    form: &'static str,
    arguments: &'s [Argument],
    target: Option<&'s Target>,
    on: Option<&'s CpuExpr>,
    span: Span,
}

/// The settings of a list, policies opened up.
pub(super) fn resolve_all(scope: &mut Scope<'_>, settings: &[ast::Setting]) -> Vec<Resolved> {
    let mut resolved = Vec::new();
    for setting in settings {
        resolve(scope, setting, &mut resolved);
    }
    resolved
}

fn resolve(scope: &mut Scope<'_>, setting: &ast::Setting, into: &mut Vec<Resolved>) {
    let span = setting.span;
    let kind = match &setting.kind {
        ast::SettingKind::DefaultRoute(target) => default_route(scope, target),
        ast::SettingKind::IrqThreads { irqs, options, on } => irq_threads(scope, irqs, options, on.as_ref()),
        ast::SettingKind::Named { name, arguments, target, on } => {
            let row = SETTINGS.iter().find(|row| row.name == name.value);
            let Some((row, read)) = row.and_then(|row| row.resolve.map(|read| (row, read))) else {
                return other_name(scope, setting, into);
            };
            let (target, on) = (target.as_ref(), on.as_ref());
            read(scope, &Named { name, form: row.form, arguments, target, on, span })
        }
        ast::SettingKind::Route { irqs, target } => {
            let (irqs, target) = (selectors::irqs(scope, irqs), selectors::target(scope, target));
            irqs.zip(target).map(|(irqs, target)| SettingKind::Route { irqs, target })
        }
        ast::SettingKind::Run { command, undo } => {
            let (command, undo) = (scope.command(command), scope.command(undo));
            command.zip(undo).map(|(command, undo)| SettingKind::Run { command, undo })
        }
    };
    into.extend(kind.map(|kind| Resolved::Host(Setting { kind, span })));
}

/// A name that is no setting: a process to be placed, or a policy.
fn other_name(scope: &mut Scope<'_>, setting: &ast::Setting, into: &mut Vec<Resolved>) {
    let ast::SettingKind::Named { name, arguments, target, on } = &setting.kind else { return };
    if let (true, Some(on)) = (scope.processes.contains(name.value.as_str()), on) {
        if !arguments.is_empty() || target.is_some() {
            let form = format!("{} on cpu 0", name.value);
            scope.fault(setting.span.error(Meaning::WrongForm { name: name.value.clone(), form }));
        } else if let Some(cpus) = selectors::cpus(scope, on, Place::Elsewhere) {
            into.push(Resolved::Placement { process: name.value.clone(), cpus, span: setting.span });
        }
        return;
    }
    let Some(policy) = scope.globals.policies.get(name.value.as_str()).copied() else {
        if scope.known == Known::Shared && on.is_some() {
            return;
        }
        let settings = SETTINGS.iter().map(|row| row.name);
        let names: Vec<&str> = settings.chain(scope.globals.policies.keys().copied()).collect();
        let placed: Vec<&str> = scope.processes.iter().copied().filter(|_| on.is_some()).collect();
        return scope.unknown(Thing::Setting, name, names.into_iter().chain(placed));
    };
    if !arguments.is_empty() || target.is_some() || on.is_some() {
        let (name, form) = (name.value.clone(), name.value.clone());
        return scope.fault(setting.span.error(Meaning::WrongForm { name, form }));
    }
    // The marker keeps policies apart from `let` names, which may be called the same.
    let marker = format!("policy {}", name.value);
    if scope.open.contains(&marker) {
        return scope.fault(name.span.error(Meaning::Cycle { thing: Thing::Policy, name: name.value.clone() }));
    }
    scope.open.push(marker);
    into.extend(resolve_all(scope, &policy.settings));
    scope.open.pop();
}

fn default_route(scope: &mut Scope<'_>, target: &Target) -> Option<SettingKind> {
    let ast::TargetKind::Set(cpus) = &target.kind else {
        let setting = "default irq".to_owned();
        scope.fault(target.span.error(Meaning::WrongTarget { setting, allowed: "a CPU set" }));
        return None;
    };
    selectors::cpus(scope, cpus, Place::Elsewhere).map(SettingKind::DefaultRoute)
}

fn irq_threads(
    scope: &mut Scope<'_>,
    irqs: &ast::IrqExpr,
    options: &[KeyValue],
    on: Option<&CpuExpr>,
) -> Option<SettingKind> {
    let span = irqs.span;
    let irqs = selectors::irqs(scope, irqs);
    let cpus = on.map(|on| selectors::cpus(scope, on, Place::Elsewhere));
    let mut fifo = None;
    for option in once_each(scope, options, &["fifo"]) {
        let bounds = Bounds { what: "a `SCHED_FIFO` priority", low: 1.0, high: 99.0 };
        fifo = Some(whole(scope, &option.value, bounds).map(|value| value as u32));
    }
    if options.is_empty() && on.is_none() {
        let form = "irq_threads irq of eth0 fifo=50 on cpu 0".to_owned();
        scope.fault(span.error(Meaning::WrongForm { name: "irq_threads".to_owned(), form }));
        return None;
    }
    let (fifo, cpus) = (fifo.map_or(Some(None), |fifo| fifo.map(Some)), cpus.map_or(Some(None), |cpus| cpus.map(Some)));
    Some(SettingKind::IrqThreads { irqs: irqs?, fifo: fifo?, cpus: cpus? })
}

impl<'s> Named<'s> {
    fn wrong_form<T>(&self, scope: &mut Scope<'_>) -> Option<T> {
        let (name, form) = (self.name.value.clone(), self.form.to_owned());
        scope.fault(self.span.error(Meaning::WrongForm { name, form }));
        None
    }

    fn values(&self) -> Vec<&'s Value> {
        let value = |argument: &'s Argument| match argument {
            Argument::Value(value) => Some(value),
            Argument::KeyValue(_) => None,
        };
        self.arguments.iter().filter_map(value).collect()
    }

    fn options(&self) -> Vec<&'s KeyValue> {
        let option = |argument: &'s Argument| match argument {
            Argument::KeyValue(option) => Some(option),
            Argument::Value(_) => None,
        };
        self.arguments.iter().filter_map(option).collect()
    }

    /// Exactly `N` values and nothing else.
    fn only<const N: usize>(&self, scope: &mut Scope<'_>) -> Option<[&'s Value; N]> {
        match <[&Value; N]>::try_from(self.values()) {
            Ok(values) if N == self.arguments.len() && self.is_bare() => Some(values),
            _ => self.wrong_form(scope),
        }
    }

    /// A device and at least one option.
    fn device_options(
        &self,
        scope: &mut Scope<'_>,
        keys: &'static [&'static str],
    ) -> Option<(String, Vec<&'s KeyValue>)> {
        let values = self.values();
        let ([device], true) = (values.as_slice(), self.is_bare()) else { return self.wrong_form(scope) };
        let options = self.options();
        if options.is_empty() {
            return self.wrong_form(scope);
        }
        let owned: Vec<KeyValue> = options.iter().map(|option| (*option).clone()).collect();
        let known = once_each(scope, &owned, keys).len() == options.len();
        let device = device_of(scope, device)?;
        known.then_some((device, options))
    }

    fn is_bare(&self) -> bool {
        self.target.is_none() && self.on.is_none()
    }
}

/// The options whose keys are known, each once; the others are reported.
fn once_each<'o>(scope: &mut Scope<'_>, options: &'o [KeyValue], keys: &[&str]) -> Vec<&'o KeyValue> {
    let mut kept: Vec<&KeyValue> = Vec::new();
    for option in options {
        if !keys.contains(&option.key.value.as_str()) {
            scope.unknown(Thing::Option, &option.key, keys.iter().copied());
        } else if let Some(first) = kept.iter().find(|kept| kept.key.value == option.key.value) {
            let meaning = Meaning::Duplicate { thing: Thing::Option, name: option.key.value.clone() };
            let mut fault = option.key.span.error(meaning);
            fault.related.push((first.key.span, "first here".to_owned()));
            scope.fault(fault);
        } else {
            kept.push(option);
        }
    }
    kept
}

fn device_of(scope: &mut Scope<'_>, value: &Value) -> Option<String> {
    let name = scope.word(value)?;
    device_name(scope, &name)
}

/// A whole number out of a value.
fn whole(scope: &mut Scope<'_>, value: &Value, bounds: Bounds<'_>) -> Option<u64> {
    let Value::Number(number) = value else {
        let text = scope.value(value)?;
        scope.fault(value.span().error(Meaning::MalformedNumber { text }));
        return None;
    };
    units::integer(scope, number, bounds)
}

/// `on` or `off`.
fn on_off(scope: &mut Scope<'_>, value: &Value) -> Option<String> {
    let word = scope.word(value)?;
    if !ON_OFF.contains(&word.value.as_str()) {
        scope.wrong_word("state", &word, ON_OFF);
        return None;
    }
    Some(word.value)
}

fn boot(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    match named.only::<1>(scope)? {
        [Value::Text(text)] => Some(SettingKind::Boot(scope.filled_text(text, "the kernel command line")?)),
        _ => named.wrong_form(scope),
    }
}

fn counts(
    scope: &mut Scope<'_>,
    named: &Named<'_>,
    keys: &'static [&'static str],
) -> Option<(String, Vec<(String, u32)>)> {
    let (device, options) = named.device_options(scope, keys)?;
    let count = |option: &&KeyValue| {
        let what = format!("`{}`", option.key.value);
        let value = whole(scope, &option.value, Bounds { what: &what, low: 0.0, high: 65_536.0 })?;
        Some((option.key.value.clone(), value as u32))
    };
    let counts: Vec<Option<(String, u32)>> = options.iter().map(count).collect();
    Some((device, counts.into_iter().collect::<Option<_>>()?))
}

fn channels(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    counts(scope, named, CHANNELS).map(|(device, counts)| SettingKind::Channels { device, counts })
}

fn rings(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    counts(scope, named, RINGS).map(|(device, sizes)| SettingKind::Rings { device, sizes })
}

fn coalesce(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let (device, options) = named.device_options(scope, COALESCE)?;
    let value = |option: &&KeyValue| {
        let value = if option.key.value.starts_with("adaptive") {
            on_off(scope, &option.value)?
        } else {
            let what = format!("`{}`", option.key.value);
            whole(scope, &option.value, Bounds { what: &what, low: 0.0, high: f64::from(u32::MAX) })?.to_string()
        };
        Some((option.key.value.clone(), value))
    };
    let options: Vec<_> = options.iter().map(value).collect();
    Some(SettingKind::Coalesce { device, options: options.into_iter().collect::<Option<_>>()? })
}

fn cpu_offline(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let [cpu, state] = named.only::<2>(scope)?;
    let bounds = Bounds { what: "a CPU's number", low: 0.0, high: f64::from(MAX_CPU) };
    let cpu = whole(scope, cpu, bounds);
    let state = scope.word(state)?;
    if state.value != "offline" {
        scope.wrong_word("state of a CPU", &state, &["offline"]);
        return None;
    }
    cpu.map(|cpu| SettingKind::CpuOffline(cpu as u32))
}

fn governor(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let [name] = named.only::<1>(scope)?;
    device_of(scope, name).map(SettingKind::Governor)
}

fn idle_states(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let options = named.options();
    let ([option], true) = (options.as_slice(), named.is_bare() && named.arguments.len() == 1) else {
        return named.wrong_form(scope);
    };
    if option.key.value != "max" {
        scope.unknown(Thing::Option, &option.key, ["max"]);
        return None;
    }
    let bounds = Bounds { what: "the deepest idle state", low: 0.0, high: 20.0 };
    whole(scope, &option.value, bounds).map(|state| SettingKind::IdleStates(state as u32))
}

fn napi(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let values = named.values();
    let (Some((device, words)), true) = (values.split_first(), named.is_bare() && named.arguments.len() >= 2) else {
        return named.wrong_form(scope);
    };
    let mut options = Vec::new();
    for word in words {
        let word = scope.word(word)?;
        if word.value != "threaded" {
            scope.unknown(Thing::Option, &word, NAPI.iter().copied());
            return None;
        }
        options.push(("threaded".to_owned(), "on".to_owned()));
    }
    let written: Vec<KeyValue> = named.options().into_iter().cloned().collect();
    let known = once_each(scope, &written, NAPI);
    let complete = known.len() == written.len();
    for option in known {
        let value = match (option.key.value.as_str(), &option.value) {
            ("threaded", value) => on_off(scope, value)?,
            ("gro_flush_timeout", Value::Number(number)) => {
                let bounds = Bounds { what: "`gro_flush_timeout`", low: 0.0, high: 1e4 };
                let milliseconds = units::number(scope, number, Quantity::Duration, bounds)?;
                ((milliseconds * 1e6).round() as u64).to_string()
            }
            (_, value) => whole(scope, value, Bounds { what: "`defer_hard_irqs`", low: 0.0, high: 1e9 })?.to_string(),
        };
        options.push((option.key.value.clone(), value));
    }
    let device = device_of(scope, device)?;
    complete.then_some(SettingKind::Napi { device, options })
}

fn offload(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let (device, options) = named.device_options(scope, OFFLOADS)?;
    let value = |option: &&KeyValue| Some((option.key.value.clone(), on_off(scope, &option.value)?));
    let options: Vec<_> = options.iter().map(value).collect();
    Some(SettingKind::Offload { device, options: options.into_iter().collect::<Option<_>>()? })
}

fn rfs(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let (device, options) = named.device_options(scope, &["entries"])?;
    let bounds = Bounds { what: "`entries`", low: 0.0, high: 1_048_576.0 };
    let entries = whole(scope, &options.first()?.value, bounds)?;
    Some(SettingKind::Rfs { device, entries: entries as u32 })
}

/// A device and a target that stays where it is put.
fn queue_target(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<(String, RoutingTarget)> {
    let values = named.values();
    let ([device], Some(target), None, 1) = (values.as_slice(), named.target, named.on, named.arguments.len()) else {
        return named.wrong_form(scope);
    };
    let device = device_of(scope, device);
    let resolved = selectors::target(scope, target)?;
    let fixed = matches!(resolved, RoutingTarget::Set(_) | RoutingTarget::Each { .. } | RoutingTarget::Unchanged);
    if !fixed {
        let allowed = "a CPU set, `each … of SET` or `unchanged`";
        scope.fault(target.span.error(Meaning::WrongTarget { setting: named.name.value.clone(), allowed }));
        return None;
    }
    Some((device?, resolved))
}

fn rps(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    queue_target(scope, named).map(|(device, target)| SettingKind::Rps { device, target })
}

fn xps(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    queue_target(scope, named).map(|(device, target)| SettingKind::Xps { device, target })
}

fn service(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let values = named.values();
    let ([name, state], true) = (values.as_slice(), named.is_bare()) else { return named.wrong_form(scope) };
    let name = device_of(scope, name);
    let word = scope.word(state)?;
    let state = match word.value.as_str() {
        "started" => ServiceState::Started,
        "stopped" => ServiceState::Stopped,
        _ => {
            scope.wrong_word("state of a service", &word, &["started", "stopped"]);
            return None;
        }
    };
    let name = name?;
    let mut options = Vec::new();
    for option in named.options() {
        if name != "irqbalance" || state == ServiceState::Stopped {
            let owner = format!("`service {name} {}`", word.value);
            let help = "options belong to `service irqbalance started`".to_owned();
            let meaning = Meaning::OptionNotFor { option: option.key.value.clone(), owner, help };
            scope.fault(option.key.span.error(meaning));
            return None;
        }
        let value = match (option.key.value.as_str(), &option.value) {
            ("interval", Value::Number(number)) => {
                let bounds = Bounds { what: "`interval`", low: 1e3, high: 3.6e6 };
                (units::milliseconds(scope, number, bounds)? / 1000).to_string()
            }
            (_, value) => whole(scope, value, Bounds { what: "the option", low: 0.0, high: 1e6 })?.to_string(),
        };
        options.push((option.key.value.clone(), value));
    }
    let written: Vec<KeyValue> = named.options().into_iter().cloned().collect();
    let complete = once_each(scope, &written, IRQBALANCE).len() == written.len();
    complete.then_some(SettingKind::Service { name, state, options })
}

fn smt(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let [state] = named.only::<1>(scope)?;
    on_off(scope, state).map(|state| SettingKind::Smt(state == "on"))
}

fn turbo(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let [state] = named.only::<1>(scope)?;
    on_off(scope, state).map(|state| SettingKind::Turbo(state == "on"))
}

fn sysctl(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let options = named.options();
    let ([option], true) = (options.as_slice(), named.is_bare() && named.arguments.len() == 1) else {
        return named.wrong_form(scope);
    };
    let key = &option.key;
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_.-/".contains(c);
    let parts: Vec<&str> = key.value.split(['.', '/']).collect();
    if !key.value.chars().all(allowed) || parts.len() < 2 || parts.iter().any(|part| part.is_empty()) {
        let (name, form) = (key.value.clone(), named.form.to_owned());
        scope.fault(key.span.error(Meaning::WrongForm { name, form }));
        return None;
    }
    let value = match &option.value {
        // The kernel reads no `_` between digits.
        Value::Number(ast::Number::Literal { digits, unit: None }) => digits.value.replace('_', ""),
        value => scope.value(value)?,
    };
    Some(SettingKind::Sysctl { key: key.value.clone(), value })
}

fn tasks(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let values = named.values();
    let ([pattern], None, Some(on), 1) = (values.as_slice(), named.target, named.on, named.arguments.len()) else {
        return named.wrong_form(scope);
    };
    let cpus = selectors::cpus(scope, on, Place::Elsewhere);
    let text = scope.value(pattern)?;
    if text.is_empty() {
        scope.fault(pattern.span().error(Meaning::EmptyText { what: "the pattern" }));
        return None;
    }
    Some(SettingKind::Tasks { pattern: text, cpus: cpus? })
}

fn workqueues(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let ([], None, Some(on)) = (named.arguments, named.target, named.on) else { return named.wrong_form(scope) };
    selectors::cpus(scope, on, Place::Elsewhere).map(SettingKind::Workqueues)
}

/// Mask files have a setting that checks what the kernel made of the mask; a bare write would not.
const MASK_FILES: &[(&str, &str, &str)] = &[
    ("/proc/irq/", "/smp_affinity", "`irq N -> SET`"),
    ("/proc/irq/", "/smp_affinity_list", "`irq N -> SET`"),
    ("/proc/irq/default_smp_affinity", "", "`default irq -> SET`"),
    ("/sys/devices/system/cpu/smt/control", "", "`smt on` or `smt off`"),
    ("/sys/devices/system/cpu/cpu", "/online", "`cpu N offline`"),
    ("/proc/sys/", "", "`sysctl KEY=VALUE`"),
];

fn write(scope: &mut Scope<'_>, named: &Named<'_>) -> Option<SettingKind> {
    let [Value::Text(path), Value::Text(value)] = named.only::<2>(scope)? else { return named.wrong_form(scope) };
    let (place, path, value) = (path.span, scope.text(path)?, scope.text(value)?);
    let kernel = path.starts_with("/sys/") || path.starts_with("/proc/");
    if !kernel || path.split('/').skip(1).any(|part| part.is_empty() || part == ".." || part == ".") {
        scope.fault(place.error(Meaning::MalformedWritePath { path }));
        return None;
    }
    let own = MASK_FILES.iter().find(|(start, end, _)| path.starts_with(start) && path.ends_with(end));
    if let Some((_, _, setting)) = own {
        scope.fault(place.error(Meaning::WriteHasSetting { path, setting }));
        return None;
    }
    Some(SettingKind::Write { path, value })
}
