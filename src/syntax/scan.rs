//! What can be seen in a text without its grammar: comments, quotes, brackets and where statements end. Finds the
//! faults that would make everything behind them unreadable, each with its own words.

use std::ops::Range;

use super::ast::Comment;
use crate::diagnostic::{Diagnostic, Kind};
use crate::source::{FileId, Span};

/// The longest file that is read. A hand-written file is a few kilobytes; recorded numbers have CSV files.
pub(super) const MAX_BYTES: usize = crate::source::MAX_BYTES;

/// The deepest nesting of brackets that is read.
pub(super) const MAX_DEPTH: usize = 64;

/// Faults of characters beyond this many are not listed one by one.
const MAX_FAULTS: usize = 20;

/// What a scan found.
#[derive(Debug, Default)]
pub(super) struct Scan {
    /// Comments in file order.
    pub(super) comments: Vec<Comment>,
    /// Faults in file order.
    pub(super) faults: Vec<Diagnostic>,
    /// Whether brackets and quotes pair up, so that [`Scan::statements`] can be trusted.
    pub(super) balanced: bool,
    marks: Vec<(usize, Mark)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    Open,
    Close,
    ParenOpen,
    ParenClose,
    Comma,
    Semicolon,
    Newline,
    /// Any other thing that is not blank or comment; only its first byte.
    Thing,
}

/// One statement of a body, found by brackets and line ends alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Statement {
    /// First to last byte.
    pub(super) range: Range<usize>,
    /// Between its braces, where it ends in a body.
    pub(super) body: Option<Range<usize>>,
}

/// Scans a whole file.
pub(super) fn scan(text: &str, file: FileId) -> Scan {
    let mut scanner =
        Scanner { text, file, line: 0..0, scan: Scan { balanced: true, ..Scan::default() }, stack: Vec::new() };
    scanner.run();
    scanner.scan
}

struct Scanner<'t> {
    text: &'t str,
    file: FileId,
    /// From where the end of the present line was looked for, to that end.
    line: std::ops::Range<usize>,
    scan: Scan,
    stack: Vec<(usize, char)>,
}

impl Scanner<'_> {
    fn run(&mut self) {
        if self.text.len() > MAX_BYTES {
            self.fault(0..0, Kind::FileTooLarge { limit: MAX_BYTES });
            self.scan.balanced = false;
            return;
        }
        let mut at = 0;
        let mut line_is_empty = true;
        while let Some(c) = self.text[at..].chars().next() {
            let next = at + c.len_utf8();
            let begins_line = std::mem::replace(&mut line_is_empty, false);
            at = match c {
                '\n' | '\r' => {
                    self.scan.marks.push((at, Mark::Newline));
                    line_is_empty = true;
                    next
                }
                ' ' | '\t' | '\u{a0}' | '\u{feff}' => {
                    line_is_empty = begins_line;
                    next
                }
                '#' => self.comment(at, !begins_line),
                '"' => self.quoted(at),
                '\'' | '‘' | '’' | '“' | '”' | '„' | '`' => self.wrong_quotes(at, c),
                '$' if self.text[at..].starts_with("${") => self.reference(at),
                '{' | '(' => {
                    self.open(at, c);
                    next
                }
                '}' | ')' => {
                    self.close(at, c);
                    next
                }
                ',' => self.mark(at, Mark::Comma, next),
                ';' => self.mark(at, Mark::Semicolon, next),
                c if c.is_control() => {
                    self.fault(at..next, Kind::ControlCharacter { character: c });
                    next
                }
                _ => self.mark(at, Mark::Thing, next),
            };
            if self.scan.faults.len() >= MAX_FAULTS || self.stack.len() > MAX_DEPTH {
                self.scan.balanced = false;
                return;
            }
        }
        self.unclosed();
    }

    fn fault(&mut self, range: Range<usize>, kind: Kind) {
        let span = Span { file: self.file, start: range.start, end: range.end };
        self.scan.faults.push(span.error(kind));
    }

    fn mark(&mut self, at: usize, mark: Mark, next: usize) -> usize {
        self.scan.marks.push((at, mark));
        next
    }

    /// End of the line `at` is on. Looked for once a line: a line may hold a million quotes.
    fn line_end(&mut self, at: usize) -> usize {
        if !self.line.contains(&at) {
            let end = self.text[at..].find(['\n', '\r']).map_or(self.text.len(), |length| at + length);
            self.line = at..end;
        }
        self.line.end
    }

    fn comment(&mut self, at: usize, trailing: bool) -> usize {
        let end = self.line_end(at);
        let text = self.text[at..end].trim_end();
        if let Some((offset, character)) = text.char_indices().find(|(_, c)| c.is_control() && *c != '\t') {
            let start = at + offset;
            self.fault(start..start + character.len_utf8(), Kind::ControlCharacter { character });
        }
        let span = Span { file: self.file, start: at, end: at + text.len() };
        self.scan.comments.push(Comment { text: text.to_owned(), span, trailing });
        end
    }

    fn quoted(&mut self, at: usize) -> usize {
        self.scan.marks.push((at, Mark::Thing));
        let end = self.line_end(at);
        let mut characters = self.text[at + 1..end].char_indices();
        while let Some((offset, c)) = characters.next() {
            match c {
                '"' => return at + 1 + offset + 1,
                '\\' => drop(characters.next()),
                c if c.is_control() && c != '\t' => {
                    let start = at + 1 + offset;
                    self.fault(start..start + c.len_utf8(), Kind::ControlCharacter { character: c });
                    if self.scan.faults.len() >= MAX_FAULTS {
                        return end;
                    }
                }
                _ => {}
            }
        }
        let text_end = at + self.text[at..end].trim_end().len();
        self.fault(at..text_end, Kind::UnclosedText);
        end
    }

    /// Quotes of another kind, up to their partner on the same line.
    fn wrong_quotes(&mut self, at: usize, quote: char) -> usize {
        self.scan.marks.push((at, Mark::Thing));
        let inner = at + quote.len_utf8();
        let partners: &[char] = match quote {
            '\'' => &['\''],
            '`' => &['`', '\''],
            '‘' | '’' => &['‘', '’', '\'', '"'],
            _ => &['“', '”', '„', '"'],
        };
        let end = self.line_end(at);
        let Some(length) = self.text[inner..end].find(partners) else {
            self.fault(at..inner, Kind::WrongQuotes { text: None });
            return inner;
        };
        let close = self.text[inner + length..].chars().next().map_or(0, char::len_utf8);
        let after = inner + length + close;
        let text = self.text[inner..inner + length].to_owned();
        self.fault(at..after, Kind::WrongQuotes { text: Some(text) });
        after
    }

    /// `${name}` outside of quotes: its braces are not a body's.
    fn reference(&mut self, at: usize) -> usize {
        self.scan.marks.push((at, Mark::Thing));
        let end = self.line_end(at);
        let name_end = self.text[at + 2..end].find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        match name_end {
            Some(length) if self.text[at + 2 + length..].starts_with('}') => at + 2 + length + 1,
            _ => {
                let after = self.text[at..end].find('}').map_or(at + 2, |length| at + length + 1);
                self.fault(at..after, Kind::WrongReference);
                after
            }
        }
    }

    fn open(&mut self, at: usize, bracket: char) {
        self.scan.marks.push((at, if bracket == '{' { Mark::Open } else { Mark::ParenOpen }));
        self.stack.push((at, bracket));
        if self.stack.len() > MAX_DEPTH {
            self.fault(at..at + 1, Kind::NestedTooDeeply { limit: MAX_DEPTH });
        }
    }

    fn close(&mut self, at: usize, bracket: char) {
        let (mark, partner) = if bracket == '}' { (Mark::Close, '{') } else { (Mark::ParenClose, '(') };
        self.scan.marks.push((at, mark));
        let Some(&(opened, opening)) = self.stack.last() else {
            self.scan.balanced = false;
            if self.scan.faults.is_empty() {
                self.fault(at..at + 1, Kind::UnopenedBracket { bracket });
            }
            return;
        };
        if opening == partner {
            self.stack.pop();
            return;
        }
        self.scan.balanced = false;
        if opening == '(' {
            self.fault(opened..opened + 1, Kind::UnclosedBracket { bracket: opening });
            self.stack.pop();
            if self.stack.last().is_some_and(|(_, opening)| *opening == partner) {
                self.stack.pop();
            }
        } else {
            self.fault(at..at + 1, Kind::UnopenedBracket { bracket });
        }
    }

    /// Names the bracket that most likely lacks its partner: the first whose partner, by indentation, belongs to
    /// something further out; else the innermost one left open.
    fn unclosed(&mut self) {
        let Some(&(innermost, bracket)) = self.stack.last() else { return };
        self.scan.balanced = false;
        if !self.scan.faults.is_empty() {
            return;
        }
        let by_indent = self.closed_by_an_outer_line();
        let at = by_indent.unwrap_or(innermost);
        let bracket = if by_indent.is_some() { '{' } else { bracket };
        self.fault(at..at + 1, Kind::UnclosedBracket { bracket });
    }

    fn closed_by_an_outer_line(&self) -> Option<usize> {
        let mut opened = Vec::new();
        for (at, mark) in &self.scan.marks {
            match mark {
                Mark::Open => opened.push(*at),
                Mark::Close => {
                    let open = opened.pop()?;
                    let same_line = !self.text[open..*at].contains('\n');
                    let leads = self.text[..*at].rsplit('\n').next().is_some_and(|before| before.trim().is_empty());
                    if !same_line && leads && self.indent(*at) < self.indent(open) {
                        return Some(open);
                    }
                }
                _ => {}
            }
        }
        None
    }

    fn indent(&self, at: usize) -> usize {
        let line = self.text[..at].rfind('\n').map_or(0, |newline| newline + 1);
        self.text[line..].chars().take_while(|c| *c == ' ' || *c == '\t').count()
    }
}

impl Scan {
    /// Cuts a body (or a whole file) into its statements.
    pub(super) fn statements(&self, range: Range<usize>) -> Vec<Statement> {
        let first = self.marks.partition_point(|(at, _)| *at < range.start);
        let last = self.marks.partition_point(|(at, _)| *at < range.end);
        let marks = &self.marks[first..last];
        let mut statements = Vec::new();
        let mut open: Option<usize> = None;
        let mut body: Option<usize> = None;
        let mut depth = 0_usize;
        let mut last_thing = Mark::Thing;
        for (index, &(at, mark)) in marks.iter().enumerate() {
            let ends = match mark {
                Mark::Newline => depth == 0 && last_thing != Mark::Comma && !body_follows(&marks[index..]),
                Mark::Semicolon => depth == 0,
                _ => false,
            };
            if ends {
                statements.extend(open.take().map(|start| Statement { range: start..at, body: None }));
                continue;
            }
            if mark == Mark::Newline {
                continue;
            }
            let start = *open.get_or_insert(at);
            last_thing = mark;
            match mark {
                Mark::Open | Mark::ParenOpen => {
                    if mark == Mark::Open && depth == 0 {
                        body = Some(at + 1);
                    }
                    depth += 1;
                }
                Mark::Close | Mark::ParenClose => {
                    depth = depth.saturating_sub(1);
                    if mark == Mark::Close && depth == 0 {
                        let inner = body.take().map(|from| from..at);
                        statements.push(Statement { range: start..at + 1, body: inner });
                        open = None;
                    }
                }
                _ => {}
            }
        }
        statements.extend(open.map(|start| Statement { range: start..range.end, body: None }));
        statements
    }
}

fn body_follows(marks: &[(usize, Mark)]) -> bool {
    marks.iter().find(|(_, mark)| *mark != Mark::Newline).is_some_and(|(_, mark)| *mark == Mark::Open)
}
