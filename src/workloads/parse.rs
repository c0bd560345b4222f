//! Numbers out of a program's output. Pure: texts in, numbers or named failures out; a number that is not there is
//! never zero. One file per known tool; what each yields, by name and unit, is the checker's table.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

use crate::design::Parser;

mod bonnie;
mod cyclictest;
mod dbench;
mod document;
mod fio;
mod hackbench;
mod hyperfine;
mod iperf3;
mod perf_stat;
mod sysbench;
mod wrk;

/// What a process printed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// What was read from it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Parsed {
    /// Metrics by bare name.
    pub values: BTreeMap<String, f64>,
    /// Texts by name.
    pub notes: BTreeMap<String, String>,
    /// Metrics that could not be read.
    pub failures: Vec<Failure>,
}

/// A metric that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its bare name.
    pub metric: String,
    /// What was looked for and what was found.
    pub detail: String,
}

/// Longest piece of output quoted in a message.
const QUOTED: usize = 200;

/// Applies every parser of a process. Regular expressions look at standard output, then at standard error; JSON is
/// read from standard output.
pub fn parse(parsers: &[Parser], output: &Output) -> Parsed {
    let mut parsed = Parsed::default();
    for parser in parsers {
        let (metric, value) = match parser {
            Parser::Json { path, metric } => (metric, json_number(path, &output.stdout)),
            Parser::Known(name) => match known(name, output) {
                Ok(read) => {
                    parsed.extend(read);
                    continue;
                }
                Err(detail) => (name, Err(detail)),
            },
            Parser::Regex { pattern, metric } => (metric, regex_number(pattern, output)),
        };
        match value {
            Ok(value) => {
                parsed.values.insert(metric.clone(), value);
            }
            Err(detail) => parsed.failures.push(Failure { metric: metric.clone(), detail }),
        }
    }
    parsed
}

/// Reads one tool's output: its metrics, or why the output as a whole is no measurement.
type Reader = fn(&Output) -> Result<Parsed, String>;

/// Parsers of known tools, by the name behind `parse`.
const READERS: &[(&str, Reader)] = &[
    ("bonnie", bonnie::read),
    ("cyclictest", cyclictest::read),
    ("dbench", dbench::read),
    ("fio", fio::read),
    ("hackbench", hackbench::read),
    ("hyperfine", hyperfine::read),
    ("iperf3", iperf3::read),
    ("perf_stat", perf_stat::read),
    ("sysbench", sysbench::read),
    ("wrk", wrk::read),
];

/// Applies the parser of a known tool.
fn known(name: &str, output: &Output) -> Result<Parsed, String> {
    let reader = READERS.iter().find(|(known, _)| *known == name);
    let (_, read) = reader.ok_or_else(|| format!("this irqlab has no parser `{name}`"))?;
    read(output)
}

impl Parsed {
    /// Takes over what another parser read.
    fn extend(&mut self, other: Parsed) {
        self.values.extend(other.values);
        self.notes.extend(other.notes);
        self.failures.extend(other.failures);
    }

    /// Keeps a number, or why it could not be read.
    fn take(&mut self, metric: &str, value: Result<f64, String>) {
        match value {
            Ok(value) => {
                self.values.insert(metric.to_owned(), value);
            }
            Err(detail) => self.failures.push(Failure { metric: metric.to_owned(), detail }),
        }
    }

    /// Keeps a text: why a metric is not there, or what a reader of its number should know.
    fn note(&mut self, name: &str, text: impl Into<String>) {
        self.notes.insert(name.to_owned(), text.into());
    }
}

/// The one line that `is_result` accepts. A last line without its end was cut and is none; two are two measurements,
/// and nobody said which one is meant.
fn only_line<'a>(text: &'a str, what: &str, is_result: impl Fn(&str) -> bool) -> Result<&'a str, String> {
    let mut found = text.split_inclusive('\n').filter(|line| is_result(line));
    let Some(line) = found.next() else {
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        return Err(match last {
            Some(last) => format!("no {what} in the output, which ends with {}", quote(last)),
            None => format!("no {what}: the output is empty"),
        });
    };
    if let Some(second) = found.next() {
        return Err(format!("more than one {what}: {} and {}", quote(line), quote(second)));
    }
    if !line.ends_with('\n') {
        return Err(format!("the {what} is cut off: {}", quote(line)));
    }
    Ok(line.trim())
}

/// A number that cannot be below zero, with the line it stands in when it is none.
fn amount(text: &str, line: &str) -> Result<f64, String> {
    let amount = number(text).filter(|amount| *amount >= 0.0);
    amount.ok_or_else(|| format!("{} is not a number, in the line {}", quote(text), quote(line)))
}

/// Reads the JSON object a built-in workload prints: numbers are metrics, texts are notes.
pub fn builtin(output: &Output) -> Parsed {
    let mut parsed = Parsed::default();
    let Ok(Value::Object(fields)) = serde_json::from_str(output.stdout.trim()) else {
        let detail = format!("expected one JSON object, found {}", quote(&output.stdout));
        parsed.failures.push(Failure { metric: "*".to_owned(), detail });
        return parsed;
    };
    for (name, value) in fields {
        match value {
            Value::Number(number) => {
                parsed.values.extend(number.as_f64().map(|number| (name, number)));
            }
            Value::String(text) => {
                parsed.notes.insert(name, text);
            }
            _ => {}
        }
    }
    parsed
}

/// The first capture group of the first match, or the whole match when there is no group.
fn regex_number(pattern: &str, output: &Output) -> Result<f64, String> {
    let regex = Regex::new(pattern).map_err(|error| format!("`{pattern}` is not a regular expression: {error}"))?;
    let found = regex.captures(&output.stdout).or_else(|| regex.captures(&output.stderr));
    let Some(found) = found else {
        return Err(format!("no match of `{pattern}` in {}", quote_ends(output)));
    };
    let whole = found.get(0).map_or("", |found| found.as_str());
    let text = if regex.captures_len() > 1 { found.get(1).map(|group| group.as_str()) } else { Some(whole) };
    let text = text.ok_or_else(|| format!("the group of `{pattern}` is empty in {}", quote(whole)))?;
    number(text).ok_or_else(|| {
        let line = line_around(if output.stdout.contains(whole) { &output.stdout } else { &output.stderr }, whole);
        format!("{} is not a number, in the line {}", quote(text), quote(line))
    })
}

fn line_around<'a>(text: &'a str, found: &str) -> &'a str {
    text.lines().find(|line| line.contains(found.trim())).unwrap_or("")
}

/// A finite number in decimal or exponent form. `inf`, `nan` and empty texts are none.
fn number(text: &str) -> Option<f64> {
    let text = text.trim();
    let starts_well = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    text.parse::<f64>().ok().filter(|number| starts_well && number.is_finite())
}

fn json_number(path: &str, text: &str) -> Result<f64, String> {
    let steps = steps(path).ok_or_else(|| format!("`{path}` is not a JSON path such as `jobs[0].read.iops`"))?;
    let root = json_in(text).ok_or_else(|| format!("expected JSON, found {}", quote(text)))?;
    let mut value = &root;
    for step in &steps {
        let next = match step {
            Step::Index(index) => value.get(*index),
            Step::Name(name) => value.get(name),
        };
        value = next.ok_or_else(|| format!("`{path}`: there is no {step} in {}", quote(&value.to_string())))?;
    }
    let found = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => number(text),
        _ => None,
    };
    found.ok_or_else(|| format!("`{path}` is not a number but {}", quote(&value.to_string())))
}

/// The whole text, or what lies between the first line that opens a JSON value and the last that closes one: some
/// programs print a warning around it.
fn json_in(text: &str) -> Option<Value> {
    if let Ok(value) = serde_json::from_str(text) {
        return Some(value);
    }
    let opens = |line: &&str| line.trim_start().starts_with(['{', '[']);
    let first = text.split_inclusive('\n').take_while(|line| !opens(line)).map(str::len).sum::<usize>();
    let last = text.rfind(['}', ']'])? + 1;
    serde_json::from_str(text.get(first..last)?).ok()
}

enum Step {
    Index(usize),
    Name(String),
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::Index(index) => write!(f, "element {index}"),
            Step::Name(name) => write!(f, "`{name}`"),
        }
    }
}

/// Cuts `$.jobs[0].read`, `jobs[0].read`, `a["b.c"]` into steps. `None` when it is none of these.
fn steps(path: &str) -> Option<Vec<Step>> {
    let mut rest = path.trim();
    let mut steps = Vec::new();
    if let Some(behind) = rest.strip_prefix('$') {
        rest = behind;
    } else if !rest.starts_with('[') {
        rest = name_step(rest, &mut steps)?;
    }
    while !rest.is_empty() {
        rest = match rest.strip_prefix('[') {
            Some(inner) => bracket_step(inner, &mut steps)?,
            None => name_step(rest.strip_prefix('.')?, &mut steps)?,
        };
    }
    Some(steps)
}

fn name_step<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    let (name, rest) = text.split_at(text.find(['.', '[']).unwrap_or(text.len()));
    steps.push(Step::Name(Some(name).filter(|name| !name.is_empty())?.to_owned()));
    Some(rest)
}

fn bracket_step<'a>(text: &'a str, steps: &mut Vec<Step>) -> Option<&'a str> {
    for mark in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(mark) {
            let (name, rest) = quoted.split_once(mark)?;
            steps.push(Step::Name(name.to_owned()));
            return rest.strip_prefix(']');
        }
    }
    let (index, rest) = text.split_once(']')?;
    steps.push(Step::Index(index.trim().parse().ok()?));
    Some(rest)
}

/// A piece of text in backquotes, cut to a length a message can bear.
fn quote(text: &str) -> String {
    let text = text.trim();
    match text.char_indices().nth(QUOTED) {
        _ if text.is_empty() => "nothing".to_owned(),
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

fn quote_ends(output: &Output) -> String {
    let last = |text: &str| text.lines().rev().find(|line| !line.trim().is_empty()).map(quote);
    match last(&output.stdout).or_else(|| last(&output.stderr)) {
        Some(line) => format!("the output, which ends with {line}"),
        None => "the output, which is empty".to_owned(),
    }
}

#[cfg(test)]
mod tests;
