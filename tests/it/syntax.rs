//! Text to tree: what parses, what does not, and how a writer hears of it.

use std::path::Path;
use std::sync::LazyLock;

use insta::{Settings, assert_snapshot, glob};
use irqlab::diagnostic::{Color, Kind, render};
use irqlab::source::{FileId, Sources, Span};
use irqlab::syntax;
use irqlab::syntax::ast;
use proptest::prelude::*;
use regex::Regex;

fn source(path: &Path) -> (Sources, FileId) {
    let mut sources = Sources::default();
    let text = std::fs::read_to_string(path).expect("the case can be read");
    let name = path.file_name().expect("the case has a name");
    let file = sources.add(name, text);
    (sources, file)
}

fn parse_text(text: &str) -> Result<ast::File, String> {
    let mut sources = Sources::default();
    let file = sources.add("case.exp", text);
    syntax::parse(&sources, file).map_err(|diagnostics| render(&diagnostics, &sources, Color::Never))
}

/// Places, names without their places, and where a line begins in [`shape`].
static SHAPE: LazyLock<[Regex; 3]> = LazyLock::new(|| {
    [
        r"(, )?(span: )?Span \{ file: FileId\(\d+\), start: \d+, end: \d+ \}",
        r#"Spanned \{ value: ("[^"]*"|\w+) \}"#,
        r" ?\b(Clause|Setting|LabOption|ProcessOption|Level|Row|Series|Experiment|Policy|Lab|Workload) \{",
    ]
    .map(|pattern| Regex::new(pattern).expect("the pattern is valid"))
});

/// The tree as Rust shows it, without places; one line for each statement or setting.
fn shape(file: &ast::File) -> String {
    let [span, named, statement] = &*SHAPE;
    let debug = format!("{:?}", file.items);
    let debug = span.replace_all(&debug, "");
    let debug = named.replace_all(&debug, "$1");
    statement.replace_all(&debug, "\n$1 {").into_owned()
}

#[test]
fn reads_every_case_into_its_tree() {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../snapshots/parse/ok");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        glob!("../cases/parse/ok", "*.exp", |path| {
            let (sources, file) = source(path);
            match syntax::parse(&sources, file) {
                Ok(tree) => assert_snapshot!("tree", shape(&tree)),
                Err(diagnostics) => panic!("{}", render(&diagnostics, &sources, Color::Never)),
            }
        });
    });
}

#[test]
fn explains_every_faulty_case() {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../snapshots/parse/err");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        glob!("../cases/parse/err", "*.exp", |path| {
            let (sources, file) = source(path);
            let diagnostics = syntax::parse(&sources, file).expect_err("the case is faulty");
            assert_snapshot!("diagnostics", render(&diagnostics, &sources, Color::Never));
        });
    });
}

#[test]
fn accepts_a_byte_order_mark_carriage_returns_and_tabs() {
    let text = "\u{feff}experiment a {\r\n\trepeat 5\r\n\twarmup\u{a0}1\r\n}\r\n";
    parse_text(text).expect("parses");
}

fn every_good_text() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for folder in ["tests/cases/parse/ok", "tests/cases/format", "experiments", "src/cli"] {
        for entry in std::fs::read_dir(root.join(folder)).into_iter().flatten() {
            let path = entry.expect("the folder can be listed").path();
            if path.extension().is_some_and(|extension| extension == "exp") {
                let text = std::fs::read_to_string(&path).expect("the case can be read");
                texts.push((path.display().to_string(), text));
            }
        }
    }
    texts
}

#[test]
fn formats_untidy_files() {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../snapshots/format");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        glob!("../cases/format", "*.exp", |path| {
            let text = std::fs::read_to_string(path).expect("the case can be read");
            let tree = parse_text(&text).unwrap_or_else(|errors| panic!("{errors}"));
            assert_snapshot!("formatted", syntax::format(&tree, &text));
        });
    });
}

/// Formatting neither changes what a file says, nor loses a comment, nor differs the second time.
fn assert_format_is_stable(name: &str, text: &str) {
    let tree = parse_text(text).unwrap_or_else(|errors| panic!("{name}: {errors}"));
    let once = syntax::format(&tree, text);
    let again = parse_text(&once).unwrap_or_else(|errors| panic!("{name}: {errors}\n{once}"));
    assert_eq!(shape(&tree), shape(&again), "{name} says something else:\n{once}");
    assert_eq!(syntax::format(&again, &once), once, "{name} changes when formatted twice");
    let comments = |file: &ast::File| file.comments.iter().map(|comment| comment.text.clone()).collect::<Vec<_>>();
    assert_eq!(comments(&tree), comments(&again), "{name} loses or moves comments:\n{once}");
}

#[test]
fn formatting_keeps_the_meaning_and_settles_at_once() {
    let texts = every_good_text();
    assert!(texts.len() > 8, "the cases are found");
    for (name, text) in texts {
        assert_format_is_stable(&name, &text);
        let crlf = text.replace('\n', "\r\n");
        assert_format_is_stable(&name, &crlf);
    }
}

#[test]
fn the_starter_is_in_canonical_form() {
    let text = include_str!("../../src/cli/starter.exp");
    let tree = parse_text(text).expect("the starter parses");
    assert_eq!(syntax::format(&tree, text), text);
}

/// Each text is refused with words, in bounded time and stack, or read; never a panic.
#[test]
fn survives_hostile_texts() {
    let nested = |open: &str, close: &str, count: usize| {
        format!("experiment a {{\n let x = {}cpu 1{}\n}}\n", open.repeat(count), close.repeat(count))
    };
    let refused = [
        ("parentheses", nested("(", ")", 10_000)),
        ("open parentheses", nested("(", "", 10_000)),
        ("braces", "{".repeat(10_000)),
        ("nested bodies", format!("experiment a {}{}", "{ hold ".repeat(5_000), "}".repeat(5_000))),
        ("operators", format!("experiment a {{ let x = online{} }}", " - cpu 1".repeat(20_000))),
        ("interrupt operators", format!("policy a {{ irq 1{} -> online }}", " + irq 1".repeat(20_000))),
        ("metric operators", format!("experiment a {{ measure a{} }}", " + a".repeat(20_000))),
        ("siblings", nested("siblings of ", "", 10_000)),
        ("a large file", "# line\n".repeat(1_500_000)),
        ("a long line", format!("experiment a {{ title \"{}\" x }}", "é".repeat(400_000))),
        ("many faults", "x\n".repeat(200_000)),
        ("many quotes", "'\n".repeat(200_000)),
        ("many faulty statements", format!("experiment a {{\n{}}}", "repaet 5\n".repeat(20_000))),
        ("nul", "experiment \0 {}".to_owned()),
        ("lone accents", "experiment a { title \u{301}\u{301} }".to_owned()),
        ("direction marks", "experiment a { \u{202e}title \"x\" }".to_owned()),
        ("half a reference", "experiment a { title \"${\" repeat ${ }".to_owned()),
        ("an open escape", "experiment a { title \"\\".to_owned()),
    ];
    for (name, text) in refused {
        let started = std::time::Instant::now();
        let message = parse_text(&text).expect_err(name);
        assert!(message.starts_with("error: "), "{name}: {message}");
        assert!(started.elapsed().as_secs() < 30, "{name} took {:?}", started.elapsed());
    }
}

#[test]
fn reads_what_is_deep_but_not_too_deep() {
    let text = format!("experiment a {{ let x = {}cpu 1{} }}", "(".repeat(60), ")".repeat(60));
    parse_text(&text).expect("60 parentheses are read");
    let operators = format!("experiment a {{ let x = online{} }}", " - cpu 1".repeat(256));
    parse_text(&operators).expect("256 operators are read");
}

/// Pieces that occur in files, to be thrown together.
const PIECES: &[&str] = &[
    "experiment",
    "policy",
    "lab",
    "a",
    "b",
    "{",
    "}",
    "(",
    ")",
    "\n",
    ";",
    "=",
    "->",
    "=>",
    "<=",
    ":",
    ",",
    "*",
    "+",
    "-",
    "&",
    "irq",
    "cpu",
    "cpus",
    "0-3",
    "0, 1",
    "online",
    "\"x\"",
    "\"",
    "'",
    "${a}",
    "${",
    "# c",
    "hold",
    "vary",
    "in",
    "let",
    "run",
    "workload",
    "measure",
    "repeat",
    "5",
    "500ms",
    "expect",
    "compare",
    "against",
    "each",
    "core",
    "of",
    "recorded",
    "1.5",
    "é",
    "\u{301}",
    "\t",
    "\r\n",
    "\u{feff}",
    "\\",
];

fn soup() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(PIECES);
    prop::collection::vec((piece, prop::sample::select(vec![" ", "", " "])), 0..40)
        .prop_map(|pieces| pieces.into_iter().flat_map(|(piece, blank)| [piece, blank]).collect())
}

/// A good text with one part cut out or replaced.
fn damaged() -> impl Strategy<Value = String> {
    let texts: Vec<String> = every_good_text().into_iter().map(|(_, text)| text).collect();
    (prop::sample::select(texts), any::<prop::sample::Index>(), 0_usize..12, prop::sample::select(PIECES)).prop_map(
        |(text, index, length, piece)| {
            let characters: Vec<char> = text.chars().collect();
            let at = index.index(characters.len());
            let after = (at + length).min(characters.len());
            let (before, rest) = (&characters[..at], &characters[after..]);
            before.iter().collect::<String>() + piece + &rest.iter().collect::<String>()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_soup_is_read_or_explained(text in soup()) {
        match parse_text(&text) {
            Ok(_) => assert_format_is_stable("soup", &text),
            Err(message) => prop_assert!(message.starts_with("error: "), "{message}"),
        }
    }

    #[test]
    fn any_damaged_file_is_read_or_explained(text in damaged()) {
        match parse_text(&text) {
            Ok(_) => assert_format_is_stable("damaged", &text),
            Err(message) => prop_assert!(message.starts_with("error: "), "{message}"),
        }
    }

    #[test]
    fn any_span_can_be_shown(text in "[a-z\\n\\r\\t é𝄞\u{1b}\u{202e}{}]{0,60}", start in 0_usize..80, end in 0_usize..80, other in 0_usize..80, file in 0_u16..3) {
        let mut sources = Sources::default();
        let first = sources.add("one\u{1b}[31m.exp", text.clone());
        sources.add("two.exp", text);
        let span = Span { file: first, start, end };
        let mut diagnostic = span.error(Kind::UnclosedText);
        let elsewhere = Span { file: FileId(file), start: other, end: start };
        diagnostic.related.push((elsewhere, "other \u{1b}[0m".to_owned()));
        let shown = render(&[diagnostic], &sources, Color::Never);
        prop_assert!(shown.starts_with("error: the closing"), "{shown}");
        prop_assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
    }
}

#[test]
fn shows_related_places_and_escapes_what_moves_a_terminal() {
    let mut sources = Sources::default();
    let text = "experiment a {\n  let x = cpu 1\n\n  repeat 5\n  let x = cpu 2\n}\n";
    let file = sources.add("a.exp", text);
    let common = sources.add("common\u{1b}[2J.exp", "policy x { }\n");
    let second = Span { file, start: 49, end: 50 };
    let mut diagnostic =
        second.error(Kind::UnknownStatement { word: "x\u{1b}[31m\u{202e}".to_owned(), place: "statement", near: None });
    diagnostic.related.push((Span { file, start: 21, end: 22 }, "named first here".to_owned()));
    diagnostic.related.push((Span { file: common, start: 7, end: 8 }, "and here".to_owned()));
    assert_snapshot!(render(&[diagnostic.clone()], &sources, Color::Never), @r"
    error: `x\u{1b}[31m\u{202e}` is not a statement
     --> a.exp:5:7
      |
    2 |   let x = cpu 1
      |       - named first here
    ...
    5 |   let x = cpu 2
      |       ^
      |
     ::: common\u{1b}[2J.exp:1:8
      |
    1 | policy x { }
      |        - and here
      |
    help: statements are `vary`, `hold`, `workload`, `measure`, `repeat`, `compare` and others of the reference; settings go into `hold { … }` or a level
    ");
    let colored = render(&[diagnostic], &sources, Color::Always);
    assert!(colored.contains("\u{1b}[") && !colored.contains("\u{1b}[2J") && !colored.contains('\u{202e}'));
}
