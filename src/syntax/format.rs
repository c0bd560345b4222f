//! A syntax tree back to text, in its one canonical form. Keeps comments, single blank lines, what shares a line
//! and which bodies stand on one line; decides indentation, blanks, quotes and alignment.

mod words;

use super::ast::{
    Clause, ClauseKind, Comment, File, Item, Lab, LabOption, Levels, Process, Recorded, ReportOption, Setting,
};
use crate::source::Span;

/// Columns that a one-line body or a list may fill.
const WIDTH: usize = 100;

/// Stands for the blank behind a list's comma until it is known whether the list fits its line. No text holds it:
/// control characters are not read.
const LIST_BREAK: char = '\u{1}';

/// The canonical text of a file, from its tree and the text it was read from. Reading it again gives the same tree,
/// places aside, and formatting it again changes nothing.
pub fn format(file: &File, text: &str) -> String {
    let nodes: Vec<Node> = file.items.iter().map(item).collect();
    let end = Span { start: text.len(), end: text.len(), ..Span::default() };
    let mut writer = Writer { text, comments: &file.comments, output: String::new(), last: None };
    writer.children(&nodes, end, 0);
    if !writer.output.is_empty() {
        writer.output.push('\n');
    }
    writer.output
}

/// A statement: its first words, and its body if it has one.
struct Node {
    kind: NodeKind,
    /// Where its first line is stretched to meet its neighbours of the same kind: a byte of `head`.
    column: Option<usize>,
    head: String,
    body: Option<Vec<Node>>,
    span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NodeKind {
    /// `let`: the `=` is aligned.
    Let,
    /// `NAME { … }` in `vary`, or a `policy`: the braces of one-line bodies are aligned.
    Named,
    /// An option of a process: stands beside others with or without `;`.
    Option,
    /// Anything else.
    Statement,
    /// `title`, `question`, `source`: the texts are aligned.
    Titled,
}

impl Node {
    fn leaf(head: String, span: Span) -> Self {
        Node { kind: NodeKind::Statement, column: None, head, body: None, span }
    }

    fn block(head: String, body: Vec<Node>, span: Span) -> Self {
        Node { kind: NodeKind::Statement, column: None, head, body: Some(body), span }
    }

    /// All of it on one line.
    fn inline(&self, text: &str) -> String {
        let head = self.head.replace(LIST_BREAK, " ");
        let Some(body) = &self.body else { return head };
        let mut line = head;
        if !line.is_empty() {
            line.push(' ');
        }
        line.push('{');
        for (index, node) in body.iter().enumerate() {
            line.push_str(if index == 0 { " " } else { joint(&body[index - 1], node, text) });
            line.push_str(&node.inline(text));
        }
        line.push_str(" }");
        line
    }
}

/// What stands between two neighbours on one line.
fn joint(before: &Node, node: &Node, text: &str) -> &'static str {
    if before.body.is_some() {
        return "  ";
    }
    let between = text.get(before.span.end..node.span.start).unwrap_or_default();
    if node.kind == NodeKind::Option && !between.contains(';') { " " } else { "; " }
}

struct Writer<'t> {
    text: &'t str,
    comments: &'t [Comment],
    output: String,
    /// Where the last thing written ended in the text it was read from; `None` at the start of a body.
    last: Option<usize>,
}

impl Writer<'_> {
    /// The statements of a body that ends at `end`, with the comments among them.
    fn children(&mut self, nodes: &[Node], end: Span, indent: usize) {
        let paddings = self.paddings(nodes);
        for (index, node) in nodes.iter().enumerate() {
            self.comments_before(node.span.end, node, indent);
            let before = index.checked_sub(1).map(|before| &nodes[before]);
            match before.filter(|before| self.shares_line(before, node)) {
                Some(before) => self.output.push_str(joint(before, node, self.text)),
                None => self.start_line(node.span.start, indent),
            }
            self.node(node, paddings[index], indent);
            self.last = Some(node.span.end);
            let limit = nodes.get(index + 1).map_or(end.start, |next| next.span.start);
            self.trailing_comment(node.span.end, limit);
        }
        while let Some(comment) = self.comments.first().filter(|comment| comment.span.start < end.start) {
            self.comment(comment, comment.span.start, indent);
        }
    }

    fn node(&mut self, node: &Node, padding: usize, indent: usize) {
        let stretched = node.column.map(|column| node.head.split_at(column));
        let stretched = stretched.map(|(before, after)| format!("{before}{}{after}", " ".repeat(padding)));
        let stretched = stretched.as_ref().unwrap_or(&node.head);
        let Some(body) = &node.body else {
            let fits = indent + node.head.chars().count() <= WIDTH;
            let separator = if fits { " ".to_owned() } else { format!("\n{}", " ".repeat(indent + 4)) };
            self.output.push_str(&stretched.replace(LIST_BREAK, &separator));
            return;
        };
        if self.is_inline(node, indent) {
            self.output.push_str(stretched);
            self.output.push_str(&node.inline(self.text)[node.head.len()..]);
            return;
        }
        self.output.push_str(&node.head);
        self.output.push_str(if node.head.is_empty() { "{" } else { " {" });
        self.last = None;
        self.opening_comment(body.first().map_or(node.span.end, |first| first.span.start));
        let close = Span { start: node.span.end.saturating_sub(1), ..node.span };
        self.children(body, close, indent + 2);
        self.output.push('\n');
        self.output.push_str(&" ".repeat(indent));
        self.output.push('}');
    }

    /// A body stays on one line when it was on one, holds no comment and fits.
    fn is_inline(&self, node: &Node, indent: usize) -> bool {
        let Some(body) = &node.body else { return false };
        let commented = self.comments.iter().take_while(|comment| comment.span.start < node.span.end);
        if commented.into_iter().any(|comment| comment.span.start >= node.span.start) {
            return false;
        }
        let source = self.text.get(node.span.start..node.span.end).unwrap_or_default();
        let one_line = body.is_empty() || !source.contains(['\n', '\r']);
        one_line && indent + node.inline(self.text).chars().count() <= WIDTH
    }

    /// For each node the blanks that bring its column under those of its neighbours: nodes of one kind on lines of
    /// their own that follow each other.
    fn paddings(&self, nodes: &[Node]) -> Vec<usize> {
        let columns: Vec<Option<usize>> = (0..nodes.len()).map(|index| self.column(nodes, index)).collect();
        let mut paddings = Vec::with_capacity(nodes.len());
        while paddings.len() < nodes.len() {
            let first = paddings.len();
            let follows = |index: usize| {
                let (before, node) = (&nodes[index - 1], &nodes[index]);
                let between = self.text.get(before.span.end..node.span.start).unwrap_or_default();
                before.kind == node.kind && line_ends(between) <= 1
            };
            let mut end = first + 1;
            while end < nodes.len() && columns[end - 1].is_some() && columns[end].is_some() && follows(end) {
                end += 1;
            }
            let widest = columns[first..end].iter().flatten().max().copied().unwrap_or(0);
            paddings.extend(columns[first..end].iter().map(|column| column.map_or(0, |column| widest - column)));
        }
        paddings
    }

    fn column(&self, nodes: &[Node], index: usize) -> Option<usize> {
        let node = &nodes[index];
        let beside = |first: usize| first + 1 < nodes.len() && self.shares_line(&nodes[first], &nodes[first + 1]);
        let alone = !beside(index) && !index.checked_sub(1).is_some_and(beside);
        node.column.filter(|_| alone && !self.has_lines(node))
    }

    /// Whether a node will be written over several lines; by the text alone, so that comments already written do
    /// not matter.
    fn has_lines(&self, node: &Node) -> bool {
        let source = self.text.get(node.span.start..node.span.end).unwrap_or_default();
        let too_wide = || node.inline(self.text).chars().count() + 4 > WIDTH;
        source.contains(['\n', '\r']) || node.body.is_some() && too_wide()
    }

    fn shares_line(&self, before: &Node, node: &Node) -> bool {
        let between = self.text.get(before.span.end..node.span.start).unwrap_or("\n");
        before.body.is_none() && node.body.is_none() && line_ends(between) == 0
    }

    /// A new line, behind a blank one where the text had one.
    fn start_line(&mut self, start: usize, indent: usize) {
        if let Some(last) = self.last {
            let between = self.text.get(last..start).unwrap_or_default();
            if line_ends(between) > 1 {
                self.output.push('\n');
            }
        }
        if !self.output.is_empty() {
            self.output.push('\n');
        }
        self.output.push_str(&" ".repeat(indent));
    }

    /// Comments in front of a node, and those inside of a statement, which move in front of it.
    fn comments_before(&mut self, end: usize, node: &Node, indent: usize) {
        let limit = if node.body.is_some() { node.span.start } else { end };
        while let Some(comment) = self.comments.first().filter(|comment| comment.span.start < limit) {
            self.comment(comment, comment.span.start.min(node.span.start), indent);
        }
    }

    /// A comment on a line of its own, in place of something that started at `start`.
    fn comment(&mut self, comment: &Comment, start: usize, indent: usize) {
        self.start_line(start, indent);
        self.output.push_str(&comment.text);
        self.last = Some(comment.span.end);
        self.comments = &self.comments[1..];
    }

    /// A comment behind a node, on its last line.
    fn trailing_comment(&mut self, end: usize, limit: usize) {
        let Some(comment) = self.comments.first().filter(|comment| comment.trailing) else { return };
        let between = self.text.get(end..comment.span.start).unwrap_or("\n");
        if comment.span.start < limit && line_ends(between) == 0 {
            self.append(comment);
        }
    }

    /// A comment behind an opening brace.
    fn opening_comment(&mut self, limit: usize) {
        let Some(comment) = self.comments.first().filter(|comment| comment.trailing) else { return };
        if comment.span.start < limit && self.text[..comment.span.start].trim_end().ends_with('{') {
            self.append(comment);
        }
    }

    fn append(&mut self, comment: &Comment) {
        self.output.push_str("  ");
        self.output.push_str(&comment.text);
        self.last = Some(comment.span.end);
        self.comments = &self.comments[1..];
    }
}

fn line_ends(text: &str) -> usize {
    let returns = text.matches('\r').count() - text.matches("\r\n").count();
    text.matches('\n').count() + returns
}

fn item(item: &Item) -> Node {
    match item {
        Item::Experiment(experiment) => {
            let head = format!("experiment {}", experiment.name.value);
            Node::block(head, experiment.clauses.iter().map(clause).collect(), experiment.span)
        }
        Item::Lab(Lab { name, options, span }) => lab(format!("lab {}", name.value), options, *span),
        Item::Policy(policy) => {
            let head = format!("policy {}", policy.name.value);
            let body = Some(settings(&policy.settings));
            Node { kind: NodeKind::Named, column: Some(head.len()), head, body, span: policy.span }
        }
        Item::Use(text) => Node::leaf(format!("use {}", words::text(text)), text.span),
        Item::Workload(workload) => process("workload", workload),
    }
}

fn clause(clause: &Clause) -> Node {
    let span = clause.span;
    match &clause.kind {
        ClauseKind::Background(background) => process("background", background),
        ClauseKind::Workload(workload) => process("workload", workload),
        ClauseKind::Hold(held) => Node::block("hold".to_owned(), settings(held), span),
        ClauseKind::Lab(used) => {
            let name = used.name.as_ref().map(|name| format!(" {}", name.value)).unwrap_or_default();
            match &used.options {
                Some(options) => lab(format!("lab{name}"), options, span),
                None => Node::leaf(format!("lab{name}"), span),
            }
        }
        ClauseKind::Vary(vary) => match &vary.levels {
            Levels::Settings(levels) => {
                let body = levels.iter().map(|level| Node {
                    kind: NodeKind::Named,
                    column: Some(level.name.value.len()),
                    head: level.name.value.clone(),
                    body: Some(settings(&level.settings)),
                    span: level.span,
                });
                Node::block(format!("vary {}", vary.name.value), body.collect(), span)
            }
            Levels::Values(values) => {
                let values = words::list(values.iter().map(words::value));
                Node::leaf(format!("vary {} in {values}", vary.name.value), span)
            }
        },
        ClauseKind::Report(options) => {
            let body = options.iter().map(|option| match option {
                ReportOption::Layout(name) => Node::leaf(format!("layout {}", name.value), name.span),
                ReportOption::Template(text) => Node::leaf(format!("template {}", words::text(text)), text.span),
            });
            Node::block("report".to_owned(), body.collect(), span)
        }
        ClauseKind::Recorded(Recorded::Rows(all)) => {
            let body = all.iter().flat_map(words::series).map(|(line, span)| Node::leaf(line, span));
            Node::block("recorded".to_owned(), body.collect(), span)
        }
        kind => {
            let head = words::statement(kind);
            let (kind, column) = match kind {
                ClauseKind::Let { name, .. } => (NodeKind::Let, Some("let ".len() + name.value.len())),
                ClauseKind::Title(_) | ClauseKind::Question(_) | ClauseKind::Source(_) => {
                    (NodeKind::Titled, head.find(' '))
                }
                _ => (NodeKind::Statement, None),
            };
            Node { kind, column, head, body: None, span }
        }
    }
}

fn settings(settings: &[Setting]) -> Vec<Node> {
    settings.iter().map(|setting| Node::leaf(words::setting(setting), setting.span)).collect()
}

fn process(keyword: &str, process: &Process) -> Node {
    let head = format!("{keyword} {}", process.name.value);
    let Some(options) = &process.options else { return Node::leaf(head, process.span) };
    let body = options.iter().map(|option| Node {
        kind: NodeKind::Option,
        column: None,
        head: words::process_option(option),
        body: None,
        span: option.span,
    });
    Node::block(head, body.collect(), process.span)
}

fn lab(head: String, options: &[LabOption], span: Span) -> Node {
    let body = options.iter().map(|option| {
        let words = words::arguments(&option.arguments);
        Node::leaf(format!("{}{words}", option.name.value), option.span)
    });
    Node::block(head, body.collect(), span)
}
