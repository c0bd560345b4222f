//! What names mean inside one experiment, and where faults are gathered.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnostic::{Diagnostic, Meaning, Thing};
use crate::source::Sources;
use crate::syntax::ast::{self, LetValue, Name, Number, Text, TextPart, Value};

use super::nearest;

/// Names shared by all experiments of a file and of what it uses.
#[derive(Debug, Default)]
pub(super) struct Globals<'a> {
    /// `policy NAME`
    pub(super) policies: BTreeMap<&'a str, &'a ast::Policy>,
    /// `workload NAME` at the top of a file.
    pub(super) workloads: BTreeMap<&'a str, &'a ast::Process>,
    /// `lab NAME` at the top of a file.
    pub(super) labs: BTreeMap<&'a str, &'a ast::Lab>,
    /// The texts, in which files of recorded numbers are found.
    pub(super) sources: Option<&'a Sources>,
}

/// How much is known of the names around.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// Everything: inside an experiment.
    All,
    /// A shared definition looked at by itself: `let` names, parameters and factors come from its user.
    Shared,
}

/// The names of one experiment, the levels of the treatment looked at, and the faults found so far.
#[derive(Debug)]
pub(super) struct Scope<'a> {
    pub(super) globals: &'a Globals<'a>,
    pub(super) known: Known,
    pub(super) lets: BTreeMap<&'a str, &'a LetValue>,
    /// Parameters and their values.
    pub(super) params: BTreeMap<&'a str, String>,
    /// Factor names.
    pub(super) factors: BTreeSet<&'a str>,
    /// Workload and background names.
    pub(super) processes: BTreeSet<&'a str>,
    /// Level by factor of the treatment looked at; empty outside of treatments.
    pub(super) cell: BTreeMap<&'a str, String>,
    /// Where built-in workloads send to when nothing is said.
    pub(super) far_end: &'static str,
    /// Names of parameters, factors and sets that something referred to.
    pub(super) used: BTreeSet<String>,
    /// Sets and policies being resolved, to find circles.
    pub(super) open: Vec<String>,
    pub(super) faults: Vec<Diagnostic>,
}

impl<'a> Scope<'a> {
    pub(super) fn new(globals: &'a Globals<'a>, known: Known) -> Self {
        Scope {
            globals,
            known,
            lets: BTreeMap::new(),
            params: BTreeMap::new(),
            factors: BTreeSet::new(),
            processes: BTreeSet::new(),
            cell: BTreeMap::new(),
            far_end: "localhost",
            used: BTreeSet::new(),
            open: Vec::new(),
            faults: Vec::new(),
        }
    }

    /// Keeps a fault. The same fault found again under another treatment is kept once.
    pub(super) fn fault(&mut self, fault: Diagnostic) {
        if !self.faults.contains(&fault) {
            self.faults.push(fault);
        }
    }

    /// Reports a name nobody defined, with the nearest one that is.
    pub(super) fn unknown<'n>(&mut self, thing: Thing, name: &Name, known: impl IntoIterator<Item = &'n str>) {
        let known: Vec<&str> = known.into_iter().collect();
        let near = nearest(&name.value, known.iter().copied());
        let known = known.into_iter().map(str::to_owned).collect();
        self.fault(name.span.error(Meaning::Unknown { thing, name: name.value.clone(), near, known }));
    }

    /// Reports a word out of a closed list.
    pub(super) fn wrong_word(&mut self, what: &str, word: &Name, allowed: &[&str]) {
        let near = nearest(&word.value, allowed.iter().copied());
        let allowed = allowed.iter().map(|word| (*word).to_owned()).collect();
        self.fault(word.span.error(Meaning::WrongWord {
            what: what.to_owned(),
            word: word.value.clone(),
            near,
            allowed,
        }));
    }

    /// The value of `${name}`.
    pub(super) fn reference(&mut self, name: &Name) -> Option<String> {
        let key = name.value.as_str();
        if let Some(value) = self.params.get(key).or_else(|| self.cell.get(key)).cloned() {
            self.used.insert(key.to_owned());
            return Some(value);
        }
        if self.factors.contains(key) {
            self.used.insert(key.to_owned());
            self.fault(name.span.error(Meaning::FactorNotHere { factor: name.value.clone() }));
        } else if self.known == Known::All {
            let known: Vec<&str> = self.params.keys().copied().chain(self.factors.iter().copied()).collect();
            self.unknown(Thing::Reference, name, known);
        }
        None
    }

    /// A text with its references put in.
    pub(super) fn text(&mut self, text: &Text) -> Option<String> {
        let mut whole = Some(String::new());
        for part in &text.parts {
            let piece = match part {
                TextPart::Literal(literal) => Some(literal.clone()),
                TextPart::Reference(name) => self.reference(name),
            };
            whole = whole.zip(piece).map(|(whole, piece)| whole + &piece);
            if whole.as_ref().is_some_and(|whole| whole.len() > MAX_TEXT) {
                self.fault(text.span.error(Meaning::TextTooLong { limit: MAX_TEXT }));
                return None;
            }
        }
        whole
    }

    /// A text that must not be empty.
    pub(super) fn filled_text(&mut self, text: &Text, what: &'static str) -> Option<String> {
        let filled = self.text(text)?;
        if filled.trim().is_empty() {
            self.fault(text.span.error(Meaning::EmptyText { what }));
            return None;
        }
        Some(filled)
    }

    /// The words of a command. It is cut at its blanks before references are put in, so that a value with a blank
    /// in it stays one word.
    pub(super) fn command(&mut self, text: &Text) -> Option<Vec<String>> {
        let mut marked = String::new();
        let mut values = Vec::new();
        let mut complete = true;
        let mut length = 0;
        for part in &text.parts {
            match part {
                TextPart::Literal(literal) => marked.extend(literal.chars().filter(|c| *c != MARK)),
                TextPart::Reference(name) => {
                    let value = self.reference(name);
                    complete &= value.is_some();
                    length += value.as_ref().map_or(0, String::len);
                    if length > MAX_TEXT {
                        self.fault(text.span.error(Meaning::TextTooLong { limit: MAX_TEXT }));
                        return None;
                    }
                    marked.push(MARK);
                    values.push(value.unwrap_or_default());
                }
            }
        }
        let Ok(words) = shell_words::split(&marked) else {
            self.fault(text.span.error(Meaning::MalformedCommand));
            return None;
        };
        if words.is_empty() {
            self.fault(text.span.error(Meaning::EmptyText { what: "the command" }));
            return None;
        }
        let mut values = values.into_iter();
        let fill = |word: String| {
            word.chars().fold(String::new(), |mut filled, c| {
                if c == MARK {
                    filled.push_str(&values.next().unwrap_or_default());
                } else {
                    filled.push(c);
                }
                filled
            })
        };
        let words = words.into_iter().map(fill).collect();
        complete.then_some(words)
    }

    /// A value as text: words and numbers as written, references put in.
    pub(super) fn value(&mut self, value: &Value) -> Option<String> {
        match value {
            Value::Number(Number::Literal { digits, unit }) => {
                Some(digits.value.clone() + unit.as_ref().map_or("", |unit| &unit.value))
            }
            Value::Number(Number::Reference(name)) => self.reference(name),
            Value::Text(text) => self.text(text),
            Value::Word(word) => Some(word.value.clone()),
        }
    }

    /// A value as a word with its place, for closed lists.
    pub(super) fn word(&mut self, value: &Value) -> Option<Name> {
        self.value(value).map(|text| Name::new(text, value.span()))
    }
}

/// Longest text, bytes: as much as the kernel takes as one argument (`MAX_ARG_STRLEN`, include/uapi/linux/binfmts.h).
const MAX_TEXT: usize = 128 << 10;

/// Stands for a reference while a command is cut into words; the shell knows no such character.
const MARK: char = '\u{1}';
