//! Text to tree: what parses, what does not, and how a writer hears of it.

use std::path::Path;

use insta::{Settings, assert_snapshot, glob};
use irqlab::diagnostic::{Color, render};
use irqlab::source::{FileId, Sources};
use irqlab::syntax;
use irqlab::syntax::ast;

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

/// The tree as Rust shows it, without places; one line for each statement or setting.
fn shape(file: &ast::File) -> String {
    let span = regex::Regex::new(r"(, )?(span: )?Span \{ file: FileId\(\d+\), start: \d+, end: \d+ \}").expect("valid");
    let named = regex::Regex::new(r#"Spanned \{ value: ("[^"]*"|\w+) \}"#).expect("valid");
    let debug = span.replace_all(&format!("{:?}", file.items), "").into_owned();
    let debug = named.replace_all(&debug, "$1").into_owned();
    let statement = regex::Regex::new(
        r"(Clause|Setting|LabOption|ProcessOption|Level|Row|Series|Experiment|Policy|Lab|Workload) \{",
    )
    .expect("valid");
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
