//! Text to syntax tree. pest lives and dies in this folder: no rule, pair or pest error leaves it.
//!
//! A file is read in one go. Only when that fails is it cut into statements by brackets and line ends, and each is
//! read alone, because pest stops at the first fault and a writer wants to hear of all of them.

mod forms;
mod tree;
mod wording;

use std::ops::Range;

use pest::Parser as _;
use pest::error::{Error, ErrorVariant, InputLocation};

use self::forms::{Forms, ITEMS, PROCESS_OPTIONS, RECORDED, REPORT_OPTIONS, SETTINGS, STATEMENTS, form};
use self::tree::Tree;
use self::wording::{Wording, wording};
use super::ast;
use super::scan::{Scan, Statement, scan};
use crate::diagnostic::{Diagnostic, Kind, MORE};
use crate::source::{FileId, Sources, Span};

#[derive(pest_derive::Parser)]
#[grammar = "grammar/exp.pest"]
struct ExpParser;

/// Faults beyond this many are not reported; somebody who has so many has a file of another kind.
const MAX_DIAGNOSTICS: usize = 50;

/// Reads one file of [`Sources`]: its tree, or everything that is wrong with its shape, in file order.
pub fn parse(sources: &Sources, file: FileId) -> Result<ast::File, Vec<Diagnostic>> {
    let text = &sources.get(file).text;
    let scan = scan(text, file);
    if !scan.balanced {
        return Err(scan.faults);
    }
    let reader = Reader { text, file, scan: &scan };
    let mut diagnostics = match ExpParser::parse(Rule::file, text) {
        Ok(mut pairs) => {
            let mut tree = Tree::new(file, 0);
            let items = pairs.next().map(|pair| tree.items(pair)).unwrap_or_default();
            if tree.slips.is_empty() && scan.faults.is_empty() {
                return Ok(ast::File { items, comments: scan.comments });
            }
            tree.slips
        }
        Err(error) => {
            let mut found = Vec::new();
            reader.each_statement(Body::File, 0..text.len(), &mut found);
            if found.is_empty() && scan.faults.is_empty() {
                found.push(reader.explain(&error, Body::File, 0..text.len()));
            }
            found
        }
    };
    diagnostics.extend(scan.faults.iter().cloned());
    diagnostics.sort_by_key(|diagnostic| diagnostic.span);
    diagnostics.dedup();
    diagnostics.truncate(MAX_DIAGNOSTICS);
    Err(diagnostics)
}

/// What a pair of braces holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Body {
    Experiment,
    File,
    Lab,
    Levels,
    Process,
    Recorded,
    Report,
    Settings,
}

impl Body {
    fn rule(self) -> Rule {
        match self {
            Body::Experiment => Rule::only_clause,
            Body::File => Rule::only_item,
            Body::Lab => Rule::only_lab_option,
            Body::Levels => Rule::only_level,
            Body::Process => Rule::only_options,
            Body::Recorded => Rule::only_recorded_line,
            Body::Report => Rule::only_report_option,
            Body::Settings => Rule::only_setting,
        }
    }

    /// The form of the statement that `before` is the beginning of.
    fn form(self, before: &str) -> Option<&'static str> {
        let forms = match self {
            Body::Experiment => STATEMENTS,
            Body::File => ITEMS,
            Body::Process => {
                let unquoted = before.split('"').step_by(2);
                let words = unquoted.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_'));
                return words.filter_map(|word| form(PROCESS_OPTIONS, word)).last();
            }
            Body::Recorded => RECORDED,
            Body::Report => REPORT_OPTIONS,
            Body::Settings => SETTINGS,
            Body::Lab | Body::Levels => return None,
        };
        form(forms, first_word(before))
    }

    /// The body that a statement starting with `word` has.
    fn inside(self, word: &str) -> Option<Body> {
        match (self, word) {
            (Body::File, "experiment") => Some(Body::Experiment),
            (Body::File, "policy") | (Body::Experiment, "hold") | (Body::Levels, _) => Some(Body::Settings),
            (Body::File | Body::Experiment, "lab") => Some(Body::Lab),
            (Body::File | Body::Experiment, "workload") | (Body::Experiment, "background") => Some(Body::Process),
            (Body::Experiment, "vary") => Some(Body::Levels),
            (Body::Experiment, "recorded") => Some(Body::Recorded),
            (Body::Experiment, "report") => Some(Body::Report),
            _ => None,
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    file: FileId,
    scan: &'t Scan,
}

impl Reader<'_> {
    fn each_statement(&self, body: Body, range: Range<usize>, found: &mut Vec<Diagnostic>) {
        for statement in self.scan.statements(range) {
            if found.len() >= MAX_DIAGNOSTICS {
                return;
            }
            self.statement(body, &statement, found);
        }
    }

    fn statement(&self, body: Body, statement: &Statement, found: &mut Vec<Diagnostic>) {
        let range = statement.range.clone();
        let error = match self.read(body, &self.text[range.clone()], range.start) {
            Ok(slips) => return found.extend(slips),
            Err(error) => error,
        };
        let Some(inner) = &statement.body else {
            let faulty = |fault: &&Diagnostic| range.contains(&fault.span.start);
            if self.scan.faults.iter().any(|fault| faulty(&fault)) {
                return;
            }
            return found.push(self.explain(&error, body, range));
        };
        let before = found.len();
        let head = &self.text[range.start..inner.start];
        if let Err(error) = self.read(body, &format!("{head}}}"), range.start) {
            found.push(self.explain(&error, body, range.clone()));
        }
        if let Some(inside) = body.inside(first_word(head)) {
            self.each_statement(inside, inner.clone(), found);
        }
        let faulty = self.scan.faults.iter().any(|fault| range.contains(&fault.span.start));
        if found.len() == before && !faulty {
            found.push(self.explain(&error, body, range));
        }
    }

    /// Reads one statement alone and returns its slips.
    fn read(&self, body: Body, text: &str, offset: usize) -> Result<Vec<Diagnostic>, Shifted> {
        match ExpParser::parse(body.rule(), text) {
            Ok(pairs) => {
                let mut tree = Tree::new(self.file, offset);
                for pair in pairs {
                    tree.items(pair);
                }
                let stray = |slip: &Diagnostic| {
                    body == Body::Recorded
                        && matches!(slip.kind, Kind::RecordedRowWithoutMetric | Kind::MisplacedColumns)
                };
                tree.slips.retain(|slip| !stray(slip));
                Ok(tree.slips)
            }
            Err(error) => Err(Shifted { error: Box::new(error), offset }),
        }
    }

    /// The next word or mark of the line, where there is one.
    fn next_word(&self, start: usize) -> usize {
        let rest = &self.text[start..];
        let word = rest.trim_start_matches([' ', '\t', '\u{a0}']);
        if word.is_empty() || word.starts_with(['\n', '\r', '#']) { start } else { start + rest.len() - word.len() }
    }

    /// pest's error in the user's words. `body` is where the statement stands.
    fn explain(&self, error: &impl Explained, body: Body, range: Range<usize>) -> Diagnostic {
        let (start, rules) = error.parts();
        let start = self.next_word(start.clamp(range.start, range.end));
        let span = |start: usize| Span { file: self.file, start, end: start + found_length(&self.text[start..]) };
        let found = |start: usize| {
            let span = span(start);
            (span.end > span.start).then(|| self.text[span.start..span.end].to_owned())
        };
        let word = first_word(&self.text[start..]);
        let place = rules.iter().find_map(|rule| place(*rule)).filter(|_| !word.is_empty());
        if let Some((place, forms)) = place {
            if let Some(form) = form(forms, word) {
                let after = start + word.len();
                let after = after + self.text[after..].len() - self.text[after..].trim_start_matches([' ', '\t']).len();
                let expected = vec![format!("more after `{word}`")];
                return span(after).error(Kind::Syntax { found: found(after), expected, near: None, form: Some(form) });
            }
            let word = word.to_owned();
            let span = Span { end: start + word.len(), ..span(start) };
            if place != STATEMENT && form(STATEMENTS, &word).is_some() && form(PROCESS_OPTIONS, &word).is_none() {
                return span.error(Kind::MisplacedStatement { word, place });
            }
            let words: Vec<&str> = forms.iter().map(|(word, _)| *word).collect();
            let near = nearest(&word, &words);
            return span.error(Kind::UnknownStatement { word, place, near });
        }
        let found = found(start);
        let near = found.as_deref().and_then(|word| {
            let keywords: Vec<&str> = rules.iter().filter_map(|rule| keyword(*rule)).collect();
            nearest(word, &keywords)
        });
        let form = body.form(&self.text[range.start..start]);
        span(start).error(Kind::Syntax { found, expected: expected(&rules, body), near, form })
    }
}

/// What could stand somewhere, in the user's words. Operators and units can stand behind almost everything, so they
/// are named only where nothing else could.
fn expected(rules: &[Rule], body: Body) -> Vec<String> {
    let everywhere = |rule: &Rule| {
        matches!(
            rule,
            Rule::union
                | Rule::difference
                | Rule::intersection
                | Rule::add
                | Rule::subtract
                | Rule::multiply
                | Rule::divide
                | Rule::unit
                | Rule::gap
        )
    };
    if rules.contains(&Rule::gap) && rules.iter().all(everywhere) {
        return vec![MORE.to_owned()];
    }
    let only_everywhere = rules.iter().all(everywhere);
    let telling = rules.iter().filter(|rule| only_everywhere || !everywhere(rule));
    let mut expected: Vec<String> = telling
        .map(|rule| if *rule == Rule::EOI && body != Body::File { Rule::end } else { *rule })
        .map(|rule| wording(rule).expected())
        .collect();
    expected.sort();
    expected.dedup();
    expected
}

/// An error of a statement that was read alone.
struct Shifted {
    error: Box<Error<Rule>>,
    offset: usize,
}

trait Explained {
    /// Byte in the file and the rules that could have stood there.
    fn parts(&self) -> (usize, Vec<Rule>);
}

impl Explained for Error<Rule> {
    fn parts(&self) -> (usize, Vec<Rule>) {
        let (InputLocation::Pos(start) | InputLocation::Span((start, _))) = self.location;
        let positives = match &self.variant {
            ErrorVariant::ParsingError { positives, .. } => positives.clone(),
            ErrorVariant::CustomError { .. } => Vec::new(),
        };
        (start, positives)
    }
}

impl Explained for Shifted {
    fn parts(&self) -> (usize, Vec<Rule>) {
        let (start, positives) = self.error.parts();
        (start + self.offset, positives)
    }
}

const STATEMENT: &str = "statement";

/// Where first words are a closed list, what they are and the list.
fn place(rule: Rule) -> Option<(&'static str, Forms)> {
    match rule {
        Rule::clause => Some((STATEMENT, STATEMENTS)),
        Rule::item => Some(("top-level item", ITEMS)),
        Rule::process_option => Some(("process option", PROCESS_OPTIONS)),
        Rule::report_option => Some(("report option", REPORT_OPTIONS)),
        _ => None,
    }
}

fn keyword(rule: Rule) -> Option<&'static str> {
    match wording(rule) {
        Wording::Keyword(word) | Wording::Mark(word) => Some(word),
        Wording::Thing(_) => None,
    }
}

fn nearest(word: &str, candidates: &[&str]) -> Option<String> {
    let scored =
        candidates.iter().map(|candidate| (strsim::normalized_damerau_levenshtein(word, candidate), candidate));
    let (score, candidate) = scored.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (score >= 0.6 && word.len() > 1).then(|| (*candidate).to_owned())
}

/// Bytes of the word or mark at the start of a text; none at a line end.
fn found_length(text: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | '%');
    match text.chars().next() {
        None | Some('\n' | '\r' | ' ' | '\t' | '#') => 0,
        Some('"') => {
            let end = text.find(['\n', '\r']).unwrap_or(text.len());
            text[1..end].find('"').map_or(1, |length| length + 2)
        }
        Some(c) if is_word(c) => text.find(|c| !is_word(c)).unwrap_or(text.len()),
        Some(c) => c.len_utf8(),
    }
}

fn first_word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}
