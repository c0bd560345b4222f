//! Workloads and backgrounds.

use crate::design::{Command, Process};
use crate::diagnostic::{Meaning, Thing};
use crate::source::Span;
use crate::syntax::ast::{self, Name, ProcessOption, ProcessOptionKind as Kind, Text, Value};

use super::metrics::{Openness, PROCESS_METRICS, Yielded, Yields};
use super::parsers;
use super::scope::Scope;
use super::selectors::{self, Place};
use super::units::{self, Bounds};
use super::workloads;

/// What a process is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Loads the host while workloads run.
    Background,
    /// Is measured.
    Workload,
}

/// Every option of a process, by its first word.
pub const PROCESS_OPTIONS: &[&str] = &[
    "as",
    "at",
    "builtin",
    "env",
    "fifo",
    "in",
    "instances",
    "loop",
    "nice",
    "on",
    "parse",
    "ready when output matches",
    "run",
    "shell",
    "timeout",
    "to",
];

/// The options of a process: its own, or those of the shared workload it names.
pub(super) fn options<'a>(scope: &mut Scope<'a>, process: &'a ast::Process) -> Option<&'a [ProcessOption]> {
    if let Some(options) = &process.options {
        return Some(options);
    }
    let shared = scope.globals.workloads.get(process.name.value.as_str()).and_then(|shared| shared.options.as_ref());
    if shared.is_none() {
        let known: Vec<&str> = scope.globals.workloads.keys().copied().collect();
        if known.is_empty() {
            let process = process.name.clone();
            scope.fault(process.span.error(Meaning::NoCommand { process: process.value }));
        } else {
            scope.unknown(Thing::Workload, &process.name, known);
        }
    }
    shared.map(Vec::as_slice)
}

/// What a workload yields, as far as the file tells.
pub(super) fn yields(scope: &mut Scope<'_>, name: &Name, options: &[ProcessOption]) -> Yields {
    let mut yields = Yields { process: name.value.clone(), metrics: Vec::new(), open: Openness::Closed };
    for option in options {
        let (metrics, place) = match &option.kind {
            Kind::Builtin { name, .. } => {
                let builtin = workloads::BUILTINS.iter().find(|builtin| builtin.name == name.value);
                (builtin.map(|builtin| builtin.metrics.iter().map(Yielded::from).collect()), name.span)
            }
            Kind::Parse(parse) => {
                let (metrics, open) = parsers::yields(scope, parse);
                if open == Openness::Open {
                    yields.open = Openness::Open;
                }
                (Some(metrics), parse.metric.as_ref().map_or(parse.parser.span, |metric| metric.span))
            }
            _ => continue,
        };
        for metric in metrics.into_iter().flatten() {
            let taken = PROCESS_METRICS.iter().any(|known| known.name == metric.name)
                || yields.metrics.iter().any(|known| known.name == metric.name);
            if taken {
                scope.fault(place.error(Meaning::Duplicate { thing: Thing::Metric, name: metric.name }));
            } else {
                yields.metrics.push(metric);
            }
        }
    }
    yields
}

/// A process under the treatment in force.
pub(super) fn process(
    scope: &mut Scope<'_>,
    written: &ast::Process,
    options: &[ProcessOption],
    role: Role,
) -> Option<Process> {
    let before = scope.faults.len();
    let mut process = Process {
        name: written.name.value.clone(),
        span: written.name.span,
        command: Command::Run(Vec::new()),
        cpus: None,
        directory: None,
        environment: Vec::new(),
        user: None,
        nice: None,
        fifo: None,
        timeout_ms: None,
        instances: 1,
        at: None,
        restart: false,
        ready: None,
        parsers: Vec::new(),
    };
    report_repeated(scope, options);
    let command = command(scope, &written.name, options);
    let mut complete = command.is_some();
    for option in options {
        complete &= apply(scope, &mut process, option, role).is_some();
    }
    process.command = command?;
    report_parsed_builtin(scope, &process.command, options);
    (complete && scope.faults.len() == before).then_some(process)
}

/// Puts one option into the process; `None` when it is faulty.
fn apply(scope: &mut Scope<'_>, process: &mut Process, option: &ProcessOption, role: Role) -> Option<()> {
    match &option.kind {
        Kind::As(user) => process.user = Some(filled(scope, user, "the user")?),
        Kind::At(text) => process.at = Some(scope.filled_text(text, "the destination")?),
        // The command is read with what belongs to it, in `command`.
        Kind::Builtin { .. } | Kind::Run(_) | Kind::Shell(_) | Kind::To(_) => {}
        Kind::Env(pair) => process.environment.push((pair.key.value.clone(), scope.value(&pair.value)?)),
        Kind::Fifo(number) => {
            let bounds = Bounds { what: "a `SCHED_FIFO` priority", low: 1.0, high: 99.0 };
            process.fifo = Some(units::integer(scope, number, bounds)? as u32);
        }
        Kind::In(text) => process.directory = Some(scope.filled_text(text, "the directory")?),
        Kind::Instances(number) => {
            let bounds = Bounds { what: "`instances`", low: 1.0, high: 4096.0 };
            process.instances = units::integer(scope, number, bounds)? as u32;
        }
        Kind::Loop => {
            only_background(scope, option.span, "loop", role)?;
            process.restart = true;
        }
        Kind::Nice { negative, value } => {
            let high = if *negative { 20.0 } else { 19.0 };
            let value_ = units::integer(scope, value, Bounds { what: "niceness", low: 0.0, high })? as i32;
            process.nice = Some(if *negative { -value_ } else { value_ });
        }
        Kind::On(cpus) => process.cpus = Some(selectors::cpus(scope, cpus, Place::Elsewhere)?),
        Kind::Parse(parse) => process.parsers.push(parsers::parser(scope, parse)?),
        Kind::Ready(text) => {
            only_background(scope, option.span, "ready", role)?;
            let pattern = scope.filled_text(text, "the pattern")?;
            parsers::compile(scope, text, &pattern)?;
            process.ready = Some(pattern);
        }
        Kind::Timeout(number) => process.timeout_ms = Some(super::protocol::timeout(scope, number)?),
    }
    Some(())
}

fn only_background(scope: &mut Scope<'_>, span: Span, option: &'static str, role: Role) -> Option<()> {
    if role == Role::Workload {
        scope.fault(span.error(Meaning::BackgroundOnly { option }));
        return None;
    }
    Some(())
}

fn filled(scope: &mut Scope<'_>, value: &Value, what: &'static str) -> Option<String> {
    let text = scope.value(value)?;
    if text.trim().is_empty() {
        scope.fault(value.span().error(Meaning::EmptyText { what }));
        return None;
    }
    Some(text)
}

/// The one command among the options.
fn command(scope: &mut Scope<'_>, name: &Name, options: &[ProcessOption]) -> Option<Command> {
    let is_command =
        |option: &&ProcessOption| matches!(option.kind, Kind::Builtin { .. } | Kind::Run(_) | Kind::Shell(_));
    let mut commands = options.iter().filter(is_command);
    let Some(first) = commands.next() else {
        scope.fault(name.span.error(Meaning::NoCommand { process: name.value.clone() }));
        return None;
    };
    for other in commands {
        let mut fault = other.span.error(Meaning::SeveralCommands { process: name.value.clone() });
        fault.related.push((first.span, "the other".to_owned()));
        scope.fault(fault);
    }
    let to = options.iter().find_map(|option| match &option.kind {
        Kind::To(to) => Some((to, option.span)),
        _ => None,
    });
    if let (Some((_, span)), false) = (to, matches!(first.kind, Kind::Builtin { .. })) {
        let help = "name the other host in the command".to_owned();
        let owner = "a command".to_owned();
        scope.fault(span.error(Meaning::OptionNotFor { option: "to".to_owned(), owner, help }));
    }
    match &first.kind {
        Kind::Builtin { name, arguments } => workloads::command(scope, name, arguments, to.map(|(to, _)| to)),
        Kind::Run(text) => scope.command(text).map(Command::Run),
        Kind::Shell(text) => shell(scope, text),
        _ => None,
    }
}

fn shell(scope: &mut Scope<'_>, text: &Text) -> Option<Command> {
    scope.filled_text(text, "the command").map(Command::Shell)
}

/// Reports options that are there twice; `env` and `parse` may be.
fn report_repeated(scope: &mut Scope<'_>, options: &[ProcessOption]) {
    for (index, option) in options.iter().enumerate() {
        let Some(word) = once(&option.kind) else { continue };
        if let Some(first) = options[..index].iter().find(|first| once(&first.kind) == Some(word)) {
            let mut fault = option.span.error(Meaning::Duplicate { thing: Thing::Option, name: word.to_owned() });
            fault.related.push((first.span, "first here".to_owned()));
            scope.fault(fault);
        }
    }
}

/// The first word of an option that may be there once. Two commands have a message of their own.
fn once(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::Builtin { .. } | Kind::Run(_) | Kind::Shell(_) | Kind::Env(_) | Kind::Parse(_) => None,
        Kind::As(_) => Some("as"),
        Kind::At(_) => Some("at"),
        Kind::Fifo(_) => Some("fifo"),
        Kind::In(_) => Some("in"),
        Kind::Instances(_) => Some("instances"),
        Kind::Loop => Some("loop"),
        Kind::Nice { .. } => Some("nice"),
        Kind::On(_) => Some("on"),
        Kind::Ready(_) => Some("ready"),
        Kind::Timeout(_) => Some("timeout"),
        Kind::To(_) => Some("to"),
    }
}

fn report_parsed_builtin(scope: &mut Scope<'_>, command: &Command, options: &[ProcessOption]) {
    let Command::Builtin { name, .. } = command else { return };
    for option in options.iter().filter(|option| matches!(option.kind, Kind::Parse(_))) {
        let owner = format!("`builtin {name}`");
        let help = "remove it: a built-in workload states its metrics itself".to_owned();
        scope.fault(option.span.error(Meaning::OptionNotFor { option: "parse".to_owned(), owner, help }));
    }
}
