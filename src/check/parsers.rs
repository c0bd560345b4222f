//! The table of parsers and what each yields.

use crate::design::{Direction, Parser};
use crate::diagnostic::{Meaning, Thing};
use crate::syntax::ast::Parse;

use super::metrics::{KnownMetric, Openness, Yielded, direction, higher, lower, neutral};
use super::scope::Scope;

/// A parser of a known tool's output.
pub struct KnownParser {
    /// Behind `parse`.
    pub name: &'static str,
    /// What it yields.
    pub metrics: &'static [KnownMetric],
    /// Whether the output may hold further names.
    pub(super) open: Openness,
}

/// Parsers that take a pattern.
pub const PATTERN_PARSERS: &[&str] = &["json", "regex"];

const fn closed(name: &'static str, metrics: &'static [KnownMetric]) -> KnownParser {
    KnownParser { name, metrics, open: Openness::Closed }
}

/// Every parser of a known tool, in alphabetical order.
pub const PARSERS: &[KnownParser] = &[
    closed(
        "bonnie",
        &[
            higher("write_char", "K/s"),
            neutral("write_char_cpu", "%"),
            higher("write_block", "K/s"),
            neutral("write_block_cpu", "%"),
            higher("rewrite", "K/s"),
            neutral("rewrite_cpu", "%"),
            higher("read_char", "K/s"),
            neutral("read_char_cpu", "%"),
            higher("read_block", "K/s"),
            neutral("read_block_cpu", "%"),
            higher("seeks", "1/s"),
            neutral("seeks_cpu", "%"),
            higher("seq_create", "1/s"),
            neutral("seq_create_cpu", "%"),
            higher("seq_stat", "1/s"),
            neutral("seq_stat_cpu", "%"),
            higher("seq_delete", "1/s"),
            neutral("seq_delete_cpu", "%"),
            higher("random_create", "1/s"),
            neutral("random_create_cpu", "%"),
            higher("random_stat", "1/s"),
            neutral("random_stat_cpu", "%"),
            higher("random_delete", "1/s"),
            neutral("random_delete_cpu", "%"),
        ],
    ),
    closed("cyclictest", &[lower("min", "us"), lower("avg", "us"), lower("max", "us")]),
    closed("dbench", &[higher("throughput", "MB/s"), lower("latency_max", "ms")]),
    closed(
        "fio",
        &[
            higher("read_iops", "1/s"),
            higher("read_bandwidth", "KiB/s"),
            lower("read_latency_mean", "us"),
            lower("read_latency_p99", "us"),
            higher("write_iops", "1/s"),
            higher("write_bandwidth", "KiB/s"),
            lower("write_latency_mean", "us"),
            lower("write_latency_p99", "us"),
        ],
    ),
    closed("hackbench", &[lower("time", "s")]),
    closed(
        "hyperfine",
        &[lower("mean", "s"), lower("median", "s"), lower("min", "s"), lower("max", "s"), neutral("stddev", "s")],
    ),
    closed("iperf3", &[higher("throughput", "Mbit/s"), lower("retransmits", ""), neutral("cpu_local", "%")]),
    KnownParser { name: "perf_stat", metrics: &[], open: Openness::Open },
    closed("sysbench", &[higher("events_per_second", "1/s"), lower("latency_avg", "ms"), lower("latency_p95", "ms")]),
    closed("wrk", &[higher("requests_per_second", "1/s"), lower("latency_avg", "ms"), lower("latency_max", "ms")]),
];

/// Metrics a `parse` option yields. Reports an unknown parser; the rest is [`parser`]'s to report.
pub(super) fn yields(scope: &mut Scope<'_>, parse: &Parse) -> (Vec<Yielded>, Openness) {
    if let Some(known) = PARSERS.iter().find(|known| known.name == parse.parser.value) {
        return (known.metrics.iter().map(Yielded::from).collect(), known.open);
    }
    let Some(metric) = &parse.metric else { return (Vec::new(), Openness::Closed) };
    let unit = parse.unit.as_ref().and_then(|unit| scope.value(unit)).unwrap_or_default();
    let direction = parse.direction.as_ref().and_then(|word| direction(scope, word)).unwrap_or(Direction::Neutral);
    (vec![Yielded { name: metric.value.clone(), unit, direction }], Openness::Closed)
}

/// A `parse` option; compiles its pattern so that its faults are the file's.
pub(super) fn parser(scope: &mut Scope<'_>, parse: &Parse) -> Option<Parser> {
    let name = &parse.parser;
    if let Some(known) = PARSERS.iter().find(|known| known.name == name.value) {
        let bare = parse.pattern.is_none() && parse.metric.is_none() && parse.unit.is_none();
        if !bare || parse.direction.is_some() {
            let form = format!("parse {}", known.name);
            scope.fault(name.span.error(Meaning::WrongForm { name: form.clone(), form }));
            return None;
        }
        return Some(Parser::Known(known.name.to_owned()));
    }
    if !PATTERN_PARSERS.contains(&name.value.as_str()) {
        scope.unknown(
            Thing::Parser,
            name,
            PARSERS.iter().map(|known| known.name).chain(PATTERN_PARSERS.iter().copied()),
        );
        return None;
    }
    let (Some(text), Some(metric)) = (&parse.pattern, &parse.metric) else {
        let example = if name.value == "json" { "jobs[0].read.iops" } else { "rate: ([0-9.]+)" };
        let form = format!("parse {} \"{example}\" as NAME unit higher_is_better", name.value);
        scope.fault(name.span.error(Meaning::WrongForm { name: format!("parse {}", name.value), form }));
        return None;
    };
    let pattern = scope.filled_text(text, "the pattern")?;
    let metric = metric.value.clone();
    if name.value == "json" {
        if !is_json_path(&pattern) {
            scope.fault(text.span.error(Meaning::MalformedJsonPath { path: pattern }));
            return None;
        }
        return Some(Parser::Json { path: pattern, metric });
    }
    let groups = compile(scope, text, &pattern)?;
    if groups == 0 {
        scope.fault(text.span.error(Meaning::RegexWithoutGroup));
        return None;
    }
    Some(Parser::Regex { pattern, metric })
}

/// Compiles a regular expression; the number of its capture groups.
pub(super) fn compile(scope: &mut Scope<'_>, text: &crate::syntax::ast::Text, pattern: &str) -> Option<usize> {
    match regex::Regex::new(pattern) {
        Ok(regex) => Some(regex.captures_len() - 1),
        Err(error) => {
            // The last line of the crate's message is the reason; those before draw the pattern.
            let whole = error.to_string();
            let detail = whole.lines().last().unwrap_or_default().trim().trim_start_matches("error: ").to_owned();
            scope.fault(text.span.error(Meaning::MalformedRegex { detail }));
            None
        }
    }
}

/// Names with indices behind them, between dots: `jobs[0].read.iops`, `[0].value`.
fn is_json_path(path: &str) -> bool {
    path.split('.').enumerate().all(|(position, step)| {
        let name = step.split('[').next().unwrap_or_default();
        let mut rest = &step[name.len()..];
        while let Some((index, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            if index.is_empty() || !index.bytes().all(|byte| byte.is_ascii_digit()) {
                return false;
            }
            rest = after;
        }
        let named = !name.is_empty() || position == 0 && !step.is_empty();
        named && rest.is_empty() && !name.contains(']')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_paths_are_names_and_indices() {
        for path in ["iops", "jobs[0].read.iops", "[0].value", "a[0][1].b", "end.sum received"] {
            assert!(is_json_path(path), "{path}");
        }
        for path in ["", ".", "a..b", "a[", "a[x]", "a[0]b", "a.[", "a]b", "a.", "a[]"] {
            assert!(!is_json_path(path), "{path}");
        }
    }
}
