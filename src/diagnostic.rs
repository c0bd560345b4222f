//! What is wrong in a user's file, as data, and its one rendering.

use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Renderer, Snippet};

use crate::source::{FileId, Sources, Span};

mod meaning;

pub use meaning::{Meaning, Thing};

/// Something is wrong in the user's file.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// What.
    pub kind: Kind,
    /// The smallest text that is wrong.
    pub span: Span,
    /// Other places that matter, each with a word on why.
    pub related: Vec<(Span, String)>,
}

/// One variant for each way a file can be wrong, in alphabetical order. Data only; words are in
/// [`Kind::message`] and [`Kind::help`].
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// `irq eth0`: neither a number, a pattern in quotes, `of …`, `class …` nor `*`.
    BareIrqName {
        /// The word.
        word: String,
    },
    /// `cpus 0, 1`
    BlankInList {
        /// The list without blanks.
        list: String,
    },
    /// A character that no terminal shows.
    ControlCharacter {
        /// It.
        character: char,
    },
    /// More text than is read.
    FileTooLarge {
        /// Bytes that are read.
        limit: usize,
    },
    /// The file is right; this host cannot do it. Exit status 4.
    HostCannot {
        /// What is.
        message: String,
        /// What to do.
        help: String,
    },
    /// `cpu 0-3`
    ListForOneCpu {
        /// The list without blanks.
        list: String,
    },
    /// The grammar allows it, and yet it has no meaning.
    Meaning(Meaning),
    /// `columns` behind rows, or twice.
    MisplacedColumns,
    /// A statement of an experiment, but elsewhere.
    MisplacedStatement {
        /// Its first word.
        word: String,
        /// What belongs there.
        place: &'static str,
    },
    /// More brackets in each other than are read.
    NestedTooDeeply {
        /// How many are.
        limit: usize,
    },
    /// The file is right; this version of irqlab does not execute it. Exit status 4.
    NotExecutedYet {
        /// What, in the words of the language.
        what: String,
    },
    /// Numbers in `recorded` before any metric was named.
    RecordedRowWithoutMetric,
    /// `by`, `margin`, `within`, `pilot` or `max` twice in one statement.
    RepeatedPart {
        /// Which.
        part: &'static str,
    },
    /// The grammar does not allow what stands here.
    Syntax {
        /// The word or mark that stands here; none at a line end.
        found: Option<String>,
        /// What could stand here, in the user's words.
        expected: Vec<String>,
        /// A word like the one found that could stand here.
        near: Option<String>,
        /// The form of the whole statement.
        form: Option<&'static str>,
    },
    /// More operators in one expression than are read.
    TooManyOperators {
        /// How many are.
        limit: usize,
    },
    /// A bracket without its partner.
    UnclosedBracket {
        /// `{` or `(`
        bracket: char,
    },
    /// A text whose line ends before its closing quote.
    UnclosedText,
    /// `\d`
    UnknownEscape {
        /// Backslash and character.
        escape: String,
    },
    /// A first word that is none of the closed list for its place.
    UnknownStatement {
        /// The word.
        word: String,
        /// What belongs there.
        place: &'static str,
        /// The most similar word that is.
        near: Option<String>,
    },
    /// A closing bracket without an opening one.
    UnopenedBracket {
        /// `}` or `)`
        bracket: char,
    },
    /// `=>`
    WrongArrow {
        /// As written.
        found: String,
    },
    /// `:` or `==` for `=`
    WrongAssignment {
        /// As written.
        found: String,
    },
    /// Single, typographic or back quotes.
    WrongQuotes {
        /// The text between them, where they pair up.
        text: Option<String>,
    },
    /// `${` that is no reference.
    WrongReference,
    /// `=` or `=<` as a comparison.
    WrongRelation {
        /// As written.
        found: String,
        /// What is meant.
        instead: &'static str,
    },
}

impl Kind {
    /// What is wrong: a lower-case fragment without a full stop, the user's words in backticks.
    pub fn message(&self) -> String {
        match self {
            Kind::BareIrqName { word } => format!("`{word}` is not an interrupt selector"),
            Kind::BlankInList { .. } => "a CPU list has no blanks".to_owned(),
            Kind::ControlCharacter { character } => {
                format!("control character U+{:04X} in the text", u32::from(*character))
            }
            Kind::FileTooLarge { limit } => format!("the file is larger than {} MiB", limit >> 20),
            Kind::HostCannot { message, .. } => message.clone(),
            Kind::ListForOneCpu { list } => format!("`cpu` takes one number, `{list}` is a list"),
            Kind::Meaning(meaning) => meaning.message(),
            Kind::MisplacedColumns => "`columns` must stand directly behind its metric".to_owned(),
            Kind::MisplacedStatement { word, place } => {
                format!("`{word}` belongs to an experiment; a {place} was expected")
            }
            Kind::NestedTooDeeply { limit } => format!("more than {limit} brackets in each other"),
            Kind::NotExecutedYet { what } => format!("{what} cannot be run by this version of irqlab"),
            Kind::RecordedRowWithoutMetric => "recorded numbers before any metric".to_owned(),
            Kind::RepeatedPart { part } => format!("`{part}` stands twice in one statement"),
            Kind::Syntax { found, expected, .. } => syntax_message(found.as_deref(), expected),
            Kind::TooManyOperators { limit } => format!("more than {limit} operators in one expression"),
            Kind::UnclosedBracket { bracket } => format!("`{bracket}` is never closed"),
            Kind::UnclosedText => "the closing `\"` is missing".to_owned(),
            Kind::UnknownEscape { escape } => format!("`{escape}` is not an escape"),
            Kind::UnknownStatement { word, place, .. } => format!("`{word}` is not a {place}"),
            Kind::UnopenedBracket { bracket } => format!("`{bracket}` closes nothing"),
            Kind::WrongArrow { found } => format!("`{found}` is not the arrow of a route"),
            Kind::WrongAssignment { found } => format!("`{found}` does not give a value"),
            Kind::WrongQuotes { text: Some(_) } => "texts stand in double quotes".to_owned(),
            Kind::WrongQuotes { text: None } => "a quote that does not belong here".to_owned(),
            Kind::WrongReference => "`${` is not followed by a name and `}`".to_owned(),
            Kind::WrongRelation { found, .. } => format!("`{found}` does not compare"),
        }
    }

    /// What to do about it.
    pub fn help(&self) -> Option<String> {
        match self {
            Kind::BareIrqName { word } if word.contains(['*', '?']) => Some(format!("write `irq \"{word}\"`")),
            Kind::BareIrqName { word } => Some(format!(
                "write `irq of {word}` for the interrupts of a device, or `irq \"{word}\"` for a pattern over their names"
            )),
            Kind::BlankInList { list } | Kind::ListForOneCpu { list } => Some(format!("write `cpus {list}`")),
            Kind::ControlCharacter { .. } => Some("delete it; in a text write `\\n` or `\\t`".to_owned()),
            Kind::FileTooLarge { .. } => {
                Some("keep recorded numbers in a CSV file: `recorded from \"file.csv\"`".to_owned())
            }
            Kind::HostCannot { help, .. } => (!help.is_empty()).then(|| help.clone()),
            Kind::Meaning(meaning) => meaning.help(),
            Kind::MisplacedColumns => {
                Some("name the metric, then `columns low high average`, then the rows".to_owned())
            }
            Kind::MisplacedStatement { .. } => {
                Some("move it into `experiment NAME { … }`; is a brace misplaced?".to_owned())
            }
            Kind::NestedTooDeeply { .. } => Some("name parts of the expression with `let`".to_owned()),
            Kind::NotExecutedYet { .. } => {
                Some("`check`, `plan` and `report` work; leave it out to run the rest".to_owned())
            }
            Kind::RecordedRowWithoutMetric => {
                Some("put a line such as `primes.real s lower_is_better` before the rows".to_owned())
            }
            Kind::RepeatedPart { .. } => Some("keep one, with its values separated by commas".to_owned()),
            Kind::Syntax { near: Some(near), .. } | Kind::UnknownStatement { near: Some(near), .. } => {
                Some(format!("did you mean `{near}`?"))
            }
            Kind::Syntax { found, expected, near: None, form } => {
                let form = || form.map(|form| format!("the form is `{form}`"));
                syntax_help(found.as_deref(), expected).or_else(form)
            }
            Kind::TooManyOperators { .. } => Some("use a list such as `cpus 0-3,8`, or a pattern".to_owned()),
            Kind::UnclosedBracket { bracket: '{' } => Some("add the `}` where this body ends".to_owned()),
            Kind::UnclosedBracket { .. } => Some("add the `)`".to_owned()),
            Kind::UnclosedText => Some("a text ends on the line it begins; write `\\n` for a line break".to_owned()),
            Kind::UnknownEscape { escape } => {
                Some(format!("write `\\{escape}` for a backslash; escapes are `\\\"`, `\\\\`, `\\n` and `\\t`"))
            }
            Kind::UnknownStatement { place, near: None, .. } => unknown_help(place),
            Kind::UnopenedBracket { bracket } => Some(format!("delete the `{bracket}`, or open it before")),
            Kind::WrongArrow { .. } => Some("write `->`".to_owned()),
            Kind::WrongAssignment { .. } => Some("write `=`".to_owned()),
            Kind::WrongQuotes { text: Some(text) } => Some(format!("write `\"{text}\"`")),
            Kind::WrongQuotes { text: None } => Some("delete it, or put the text in double quotes".to_owned()),
            Kind::WrongReference => Some("write `${name}` for a value, `$${` for the characters themselves".to_owned()),
            Kind::WrongRelation { instead, .. } => Some(format!("write {instead}")),
        }
    }
}

/// The statement must go on.
pub(crate) const MORE: &str = "more";

fn syntax_message(found: Option<&str>, expected: &[String]) -> String {
    let goes_on = expected.is_empty() || expected.iter().all(|thing| thing == MORE);
    match found {
        None | Some(";" | "}") if goes_on => "the statement ends too early".to_owned(),
        Some(word) if expected.is_empty() => format!("unexpected `{word}`"),
        Some(word) if goes_on => format!("a blank is missing before `{word}`"),
        Some(word) => format!("expected {}, found `{word}`", one_of(expected)),
        None => format!("expected {}, but the line ends", one_of(expected)),
    }
}

fn syntax_help(found: Option<&str>, expected: &[String]) -> Option<String> {
    let ends = expected.iter().any(|thing| thing.contains("the end of the statement"));
    match found {
        Some(word) if ends && word.starts_with(char::is_alphabetic) => {
            Some("a statement ends with its line; begin a new line or put `;` between two".to_owned())
        }
        Some(word) if expected.iter().any(|thing| thing == "`{`") && (word == "-" || !word.is_ascii()) => {
            Some("names are letters, digits and `_`".to_owned())
        }
        _ => None,
    }
}

fn unknown_help(place: &str) -> Option<String> {
    let words = match place {
        "statement" => {
            "statements are `vary`, `hold`, `workload`, `measure`, `repeat`, `compare` and others of the reference; \
             settings go into `hold { … }` or a level"
        }
        "top-level item" => "a file holds `experiment`, `lab`, `policy`, `workload` and `use`",
        "process option" => {
            "options are `run`, `shell`, `builtin`, `parse`, `in`, `env`, `on`, `as`, `nice`, `fifo`, `timeout`, \
             `instances`, `at`, `ready`, `loop` and `to`"
        }
        "report option" => "options are `layout` and `template`",
        _ => return None,
    };
    Some(words.to_owned())
}

/// `a`, `a or b`, `a, b or c`.
fn one_of(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [word] => word.clone(),
        [before @ .., last] => format!("{} or {last}", before.join(", ")),
    }
}

impl Span {
    /// A diagnostic at this place.
    pub fn error(self, kind: impl Into<Kind>) -> Diagnostic {
        Diagnostic { kind: kind.into(), span: self, related: Vec::new() }
    }
}

impl From<Meaning> for Kind {
    fn from(meaning: Meaning) -> Self {
        Kind::Meaning(meaning)
    }
}

/// Whether a rendering may hold terminal colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// ANSI escapes.
    Always,
    /// Plain text.
    Never,
}

/// Diagnostics in rustc's look, one after the other, with a blank line between them. Characters of the user's text
/// that would move a terminal are shown escaped.
pub fn render(diagnostics: &[Diagnostic], sources: &Sources, color: Color) -> String {
    let renderer = match color {
        Color::Always => Renderer::styled(),
        Color::Never => Renderer::plain(),
    };
    let mut rendered: Vec<String> = Vec::new();
    for diagnostic in diagnostics {
        let report = report(diagnostic, sources);
        rendered.push(renderer.render(&report) + "\n");
    }
    rendered.join("\n")
}

fn report<'s>(diagnostic: &Diagnostic, sources: &'s Sources) -> Vec<Group<'s>> {
    let title = Level::ERROR.primary_title(printable(&diagnostic.kind.message()));
    let mut group = Group::with_title(title);
    let mut files = vec![diagnostic.span.file];
    for (span, _) in &diagnostic.related {
        if !files.contains(&span.file) {
            files.push(span.file);
        }
    }
    for file in files {
        if let Some(snippet) = snippet(diagnostic, file, sources) {
            group = group.element(snippet);
        }
    }
    let help = diagnostic.kind.help().map(|help| Group::with_title(Level::HELP.secondary_title(printable(&help))));
    std::iter::once(group).chain(help).collect()
}

/// The lines of one file from the first to the last marked place.
fn snippet<'s>(
    diagnostic: &Diagnostic,
    file: FileId,
    sources: &'s Sources,
) -> Option<Snippet<'s, annotate_snippets::Annotation<'s>>> {
    let source = sources.iter().nth(usize::from(file.0))?;
    let text = source.text.as_str();
    let primary = (diagnostic.span.file == file).then(|| clamp(text, diagnostic.span));
    let related = diagnostic.related.iter().filter(|(span, _)| span.file == file);
    let related: Vec<(Range<usize>, &str)> = related.map(|(span, why)| (clamp(text, *span), why.as_str())).collect();
    let ranges = || primary.iter().chain(related.iter().map(|(range, _)| range));
    let first = ranges().map(|range| range.start).min()?;
    let last = ranges().map(|range| range.end).max()?;
    let from = text[..first].rfind('\n').map_or(0, |newline| newline + 1);
    let to = text[last..].find('\n').map_or(text.len(), |newline| last + newline);
    let line = text[..from].bytes().filter(|byte| *byte == b'\n').count() + 1;
    let shift = |range: &Range<usize>| range.start - from..range.end - from;
    let mut snippet = Snippet::source(&text[from..to]).line_start(line).path(printable(&source.path.to_string_lossy()));
    if let Some(range) = &primary {
        snippet = snippet.annotation(AnnotationKind::Primary.span(shift(range)));
    }
    for (range, why) in &related {
        snippet = snippet.annotation(AnnotationKind::Context.span(shift(range)).label(printable(why)));
    }
    Some(snippet)
}

/// A range that lies in the text, on character borders, not reversed.
fn clamp(text: &str, span: Span) -> Range<usize> {
    let floor = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let start = floor(span.start.min(span.end));
    let end = floor(span.end.max(span.start));
    start..end
}

/// Control and direction-changing characters as `\u{…}`, so that a file cannot move a terminal.
fn printable(text: &str) -> String {
    let mut printed = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}') {
            printed.extend(c.escape_unicode());
        } else {
            printed.push(c);
        }
    }
    printed
}
