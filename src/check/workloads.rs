//! The table of built-in workloads, their parameters and metrics.

use crate::design::Command;
use crate::diagnostic::{Meaning, Thing};
use crate::syntax::ast::{KeyValue, Name, Value};

use super::metrics::{KnownMetric, higher, lower, neutral};
use super::scope::{Known, Scope};
use super::units::{self, Bounds, Quantity};

/// A built-in workload.
pub struct Builtin {
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub parameters: &'static [Parameter],
    /// What it yields besides the metrics of every process.
    pub metrics: &'static [KnownMetric],
    /// Whether it speaks to another host, named with `to`.
    pub remote: Remote,
}

/// Whether a built-in workload has a far end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Remote {
    /// It stays on this host.
    No,
    /// It takes `to HOST`. Where none is written: `lab.host` in a lab with `link`, else `localhost`.
    Yes,
}

/// A parameter of a built-in workload.
pub struct Parameter {
    /// Left of `=`.
    pub name: &'static str,
    /// What it is.
    pub domain: Domain,
    /// As one would write it; `None` where it must be written.
    pub default: Option<&'static str>,
}

/// What a parameter may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Domain {
    /// A number of that quantity, from and to these base units.
    Number(Quantity, f64, f64),
    /// A path.
    Path,
    /// One of these words.
    Word(&'static [&'static str]),
}

/// Kinds of `builtin ipc`.
pub const IPC_KINDS: &[&str] = &["signal", "message_queue", "pipe", "semaphore", "yield", "spinlock"];

/// The far end of a lab's linked adapters.
pub(super) const LINKED: &str = "lab.host";

const HOUR_MS: f64 = 3.6e6;
/// Bytes of the largest message or block.
const LARGEST_MESSAGE: f64 = 16_777_216.0;

/// Payload of the largest UDP datagram over IPv4.
const LARGEST_DATAGRAM: f64 = 65_507.0;

const PROTOCOL: Parameter = Parameter { name: "protocol", domain: Domain::Word(&["tcp", "udp"]), default: Some("tcp") };

const TEBIBYTE: f64 = 1_099_511_627_776.0;

const fn duration(default: &'static str) -> Parameter {
    Parameter { name: "for", domain: Domain::Number(Quantity::Duration, 1.0, HOUR_MS), default: Some(default) }
}

const fn size(name: &'static str, default: &'static str) -> Parameter {
    Parameter { name, domain: Domain::Number(Quantity::Size, 1.0, TEBIBYTE), default: Some(default) }
}

/// Bytes of one message: from a head of 8 bytes to what still fits many times into memory.
const fn message(default: &'static str) -> Parameter {
    Parameter { name: "size", domain: Domain::Number(Quantity::Size, 8.0, LARGEST_MESSAGE), default: Some(default) }
}

const fn count(name: &'static str, high: f64, default: &'static str) -> Parameter {
    Parameter { name, domain: Domain::Number(Quantity::Count, 1.0, high), default: Some(default) }
}

/// Every built-in workload, in alphabetical order.
pub const BUILTINS: &[Builtin] = &[
    Builtin {
        name: "disk_read",
        parameters: &[
            Parameter { name: "path", domain: Domain::Path, default: None },
            size("size", "256MiB"),
            Parameter {
                name: "block",
                domain: Domain::Number(Quantity::Size, 512.0, LARGEST_MESSAGE),
                default: Some("4KiB"),
            },
            Parameter { name: "pattern", domain: Domain::Word(&["random", "sequential"]), default: Some("random") },
            count("depth", 1024.0, "1"),
            duration("5s"),
        ],
        metrics: &[
            higher("throughput", "MB/s"),
            higher("iops", "1/s"),
            lower("latency_p50", "us"),
            lower("latency_p99", "us"),
            lower("latency_max", "us"),
        ],
        remote: Remote::No,
    },
    Builtin {
        name: "ipc",
        parameters: &[Parameter { name: "kind", domain: Domain::Word(IPC_KINDS), default: None }, duration("1s")],
        metrics: &[higher("rate", "loops/s"), neutral("loops", "")],
        remote: Remote::No,
    },
    Builtin {
        name: "net_stream",
        parameters: &[
            count("streams", 1024.0, "1"),
            message("64KiB"),
            Parameter { name: "direction", domain: Domain::Word(&["send", "receive"]), default: Some("send") },
            PROTOCOL,
            duration("5s"),
        ],
        metrics: &[higher("throughput", "Mbit/s"), lower("lost", "%")],
        remote: Remote::Yes,
    },
    Builtin {
        name: "net_transact",
        parameters: &[
            count("clients", 4096.0, "1"),
            Parameter { name: "receive", domain: Domain::Number(Quantity::Percent, 0.0, 100.0), default: Some("50%") },
            message("1KiB"),
            PROTOCOL,
            duration("5s"),
        ],
        metrics: &[
            higher("throughput", "Mbit/s"),
            higher("transactions", "1/s"),
            lower("latency_p50", "us"),
            lower("latency_p99", "us"),
            lower("latency_max", "us"),
            lower("lost", "%"),
        ],
        remote: Remote::Yes,
    },
    Builtin {
        name: "primes",
        parameters: &[count("up_to", 4e9, "5_000_000")],
        metrics: &[neutral("count", "")],
        remote: Remote::No,
    },
    Builtin {
        name: "timer_jitter",
        parameters: &[
            Parameter { name: "period", domain: Domain::Number(Quantity::Duration, 0.01, 1e3), default: Some("1ms") },
            duration("5s"),
        ],
        metrics: &[lower("mean", "us"), lower("p50", "us"), lower("p99", "us"), lower("max", "us")],
        remote: Remote::No,
    },
];

/// The built-in workload of that name; reports an unknown one.
pub(super) fn builtin(scope: &mut Scope<'_>, name: &Name) -> Option<&'static Builtin> {
    let found = BUILTINS.iter().find(|builtin| builtin.name == name.value);
    if found.is_none() {
        scope.unknown(Thing::Builtin, name, BUILTINS.iter().map(|builtin| builtin.name));
    }
    found
}

/// The command of a built-in workload, defaults filled in.
pub(super) fn command(
    scope: &mut Scope<'_>,
    name: &Name,
    arguments: &[KeyValue],
    to: Option<&Value>,
) -> Option<Command> {
    let builtin = builtin(scope, name)?;
    let mut complete = true;
    for (index, argument) in arguments.iter().enumerate() {
        let key = &argument.key;
        if !builtin.parameters.iter().any(|parameter| parameter.name == key.value) {
            scope.unknown(Thing::Option, key, builtin.parameters.iter().map(|parameter| parameter.name));
            complete = false;
        }
        if let Some(first) = arguments[..index].iter().find(|first| first.key.value == key.value) {
            let mut fault = key.span.error(Meaning::Duplicate { thing: Thing::Option, name: key.value.clone() });
            fault.related.push((first.key.span, "first here".to_owned()));
            scope.fault(fault);
            complete = false;
        }
    }
    let mut filled = Vec::new();
    for parameter in builtin.parameters {
        let written = arguments.iter().find(|argument| argument.key.value == parameter.name);
        let value = match (written, parameter.default) {
            (Some(argument), _) => read(scope, parameter, &argument.value),
            (None, Some(default)) => Some(default_value(parameter.domain, default)),
            (None, None) => {
                let (owner, form) = (format!("builtin {}", builtin.name), example(builtin, parameter));
                let meaning = Meaning::MissingOption { owner, option: parameter.name, form };
                scope.fault(name.span.error(meaning));
                None
            }
        };
        complete &= value.is_some();
        filled.extend(value.map(|value| (parameter.name.to_owned(), value)));
    }
    complete &= complete && datagrams_hold(scope, arguments, &filled);
    match (builtin.remote, to) {
        (Remote::Yes, to) => {
            let host = to.map_or(Some(scope.far_end.to_owned()), |to| far_end(scope, to));
            complete &= host.is_some();
            filled.extend(host.map(|host| ("to".to_owned(), host)));
        }
        (Remote::No, Some(to)) => {
            let owner = format!("`builtin {}`", builtin.name);
            let help = "remove it: this workload stays on its host".to_owned();
            scope.fault(to.span().error(Meaning::OptionNotFor { option: "to".to_owned(), owner, help }));
            complete = false;
        }
        (Remote::No, None) => {}
    }
    complete.then(|| Command::Builtin { name: builtin.name.to_owned(), arguments: filled })
}

/// Reports messages that no datagram can hold.
fn datagrams_hold(scope: &mut Scope<'_>, arguments: &[KeyValue], filled: &[(String, String)]) -> bool {
    let value = |name: &str| filled.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let size = value("size").and_then(|size| size.strip_suffix('B')?.parse::<f64>().ok());
    if value("protocol") != Some("udp") || size.is_none_or(|size| size <= LARGEST_DATAGRAM) {
        return true;
    }
    let written = |name: &str| arguments.iter().find(|argument| argument.key.value == name);
    let Some(place) = written("size").or_else(|| written("protocol")) else { return true };
    scope.fault(place.value.span().error(Meaning::OutOfRange {
        what: "`size` of a UDP message".to_owned(),
        low: units::shown(8.0, Quantity::Size),
        high: units::in_base(LARGEST_DATAGRAM, Quantity::Size),
    }));
    false
}

/// What `to` names.
fn far_end(scope: &mut Scope<'_>, to: &Value) -> Option<String> {
    let host = scope.value(to)?;
    if host.trim().is_empty() {
        scope.fault(to.span().error(Meaning::EmptyText { what: "the host" }));
        return None;
    }
    if host == LINKED && scope.known == Known::All && scope.far_end != LINKED {
        let help = "say `link` in the experiment's lab, or name the far end, such as `to localhost`".to_owned();
        let (option, owner) = (format!("to {LINKED}"), "an experiment whose adapters nothing links".to_owned());
        scope.fault(to.span().error(Meaning::OptionNotFor { option, owner, help }));
        return None;
    }
    Some(host)
}

fn example(builtin: &Builtin, parameter: &Parameter) -> String {
    let value = match parameter.domain {
        Domain::Word(words) => words.first().copied().unwrap_or_default().to_owned(),
        Domain::Path => "\"/mnt/test\"".to_owned(),
        Domain::Number(quantity, low, _) => units::shown(low, quantity),
    };
    format!("builtin {} {}={value}", builtin.name, parameter.name)
}

fn read(scope: &mut Scope<'_>, parameter: &Parameter, value: &Value) -> Option<String> {
    match (parameter.domain, value) {
        (Domain::Number(quantity, low, high), Value::Number(number)) => {
            let what = format!("`{}`", parameter.name);
            let bounds = Bounds { what: &what, low, high };
            if quantity == Quantity::Count {
                return units::integer(scope, number, bounds).map(|value| value.to_string());
            }
            units::number(scope, number, quantity, bounds).map(|value| units::in_base(value, quantity))
        }
        (Domain::Number(..), other) => {
            let text = scope.value(other)?;
            scope.fault(value.span().error(Meaning::MalformedNumber { text }));
            None
        }
        (Domain::Path, value) => {
            let text = scope.value(value)?;
            if text.trim().is_empty() {
                scope.fault(value.span().error(Meaning::EmptyText { what: "the path" }));
                return None;
            }
            Some(text)
        }
        (Domain::Word(words), value) => {
            let word = scope.word(value)?;
            if !words.contains(&word.value.as_str()) {
                scope.wrong_word(&format!("value of `{}`", parameter.name), &word, words);
                return None;
            }
            Some(word.value)
        }
    }
}

/// A default of the table in base units.
fn default_value(domain: Domain, default: &str) -> String {
    let Domain::Number(quantity, ..) = domain else { return default.to_owned() };
    let end = default.find(|c: char| !c.is_ascii_digit() && c != '_' && c != '.').unwrap_or(default.len());
    let (digits, unit) = default.split_at(end);
    let factor = units::UNITS.iter().find(|known| known.symbol == unit && known.quantity == quantity);
    let value = units::parse(digits).unwrap_or_default() * factor.map_or(1.0, |unit| unit.factor);
    units::in_base(value, quantity)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_lies_in_its_own_domain() {
        for builtin in BUILTINS {
            for parameter in builtin.parameters {
                let Some(default) = parameter.default else { continue };
                let value = default_value(parameter.domain, default);
                match parameter.domain {
                    Domain::Number(_, low, high) => {
                        let digits = value.trim_end_matches(|c: char| !c.is_ascii_digit());
                        let value: f64 = digits.parse().unwrap();
                        assert!(low <= value && value <= high, "{} {}", builtin.name, parameter.name);
                    }
                    Domain::Path => assert!(!value.is_empty()),
                    Domain::Word(words) => assert!(words.contains(&value.as_str())),
                }
            }
        }
        assert_eq!(default_value(Domain::Number(Quantity::Duration, 1.0, 1e9), "5s"), "5000ms");
        assert_eq!(default_value(Domain::Number(Quantity::Count, 1.0, 1e9), "5_000_000"), "5000000");
    }
}
