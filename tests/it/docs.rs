//! Documents and examples: every piece of the language that is shown is right, and every word of it is explained.

use std::path::{Path, PathBuf};

use irqlab::check::{self, LoadError, Options, vocabulary};
use irqlab::diagnostic::{Color, render};
use irqlab::source::Sources;
use irqlab::syntax;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn reference() -> String {
    std::fs::read_to_string(root().join("docs/language.md")).expect("the reference can be read")
}

/// The fenced `exp` blocks of a document with their lines.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut blocks: Vec<(usize, String)> = Vec::new();
    let mut inside = false;
    for (number, line) in text.lines().enumerate() {
        match (inside, line.trim_end()) {
            (false, "```exp") => {
                inside = true;
                blocks.push((number + 1, String::new()));
            }
            (true, "```") => inside = false,
            (true, line) => {
                let (_, block) = blocks.last_mut().expect("a block was opened");
                block.push_str(line);
                block.push('\n');
            }
            (false, _) => {}
        }
    }
    assert!(!inside, "a fenced block is not closed");
    blocks
}

/// Parses and checks a block, with the shared file beside it where it says `use "common.exp"`.
fn check_block(place: &str, text: &str) {
    let mut sources = Sources::default();
    let file = sources.add(place, text);
    let mut files = Vec::new();
    let shared = text.contains("use \"common.exp\"").then(|| {
        let path = root().join("experiments/common.exp");
        sources.add(&path, std::fs::read_to_string(&path).expect("the shared file can be read"))
    });
    for file in [Some(file), shared].into_iter().flatten() {
        let tree = syntax::parse(&sources, file);
        let tree = tree.unwrap_or_else(|errors| panic!("{place}:\n{}", render(&errors, &sources, Color::Never)));
        files.push((file, tree));
    }
    if let Err(errors) = check::check(&sources, &files, &Options::default()) {
        panic!("{place}:\n{}", render(&errors, &sources, Color::Never));
    }
}

#[test]
fn every_block_of_the_documents_is_right() {
    for name in ["README.md", "docs/language.md", "docs/workloads.md"] {
        let text = std::fs::read_to_string(root().join(name)).expect("the document can be read");
        let blocks = blocks(&text);
        assert!(!blocks.is_empty(), "{name} shows no experiment");
        for (line, block) in blocks {
            check_block(&format!("{name}:{line}"), &block);
        }
    }
}

#[test]
fn every_experiment_of_the_suite_is_right() {
    let entries = std::fs::read_dir(root().join("experiments")).expect("the suite can be listed");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry can be read").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "exp"));
    assert!(paths.len() >= 7, "the founding experiments are there: {paths:?}");
    for path in paths {
        match check::load(&path, &Options::default()) {
            Ok(_) => {}
            Err(LoadError::Wrong(failed)) => {
                panic!("{}", render(&failed.diagnostics, &failed.sources, Color::Never))
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn the_starter_file_is_right() {
    let text = std::fs::read_to_string(root().join("src/cli/starter.exp")).expect("the starter can be read");
    check_block("starter.exp", &text);
}

#[test]
fn the_suite_is_formatted() {
    for entry in std::fs::read_dir(root().join("experiments")).expect("the suite can be listed") {
        let path = entry.expect("an entry can be read").path();
        if path.extension().is_none_or(|extension| extension != "exp") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("an experiment can be read");
        let mut sources = Sources::default();
        let file = sources.add(&path, text.clone());
        let tree = syntax::parse(&sources, file).expect("the suite parses");
        assert!(syntax::format(&tree, &text) == text, "{} is not formatted", path.display());
    }
}

#[test]
fn the_prime_experiment_is_right_without_its_lab() {
    let text = std::fs::read_to_string(root().join("experiments/compute_vs_irqs.exp")).expect("it can be read");
    let plain: String = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("lab "))
        .fold(String::new(), |text, line| text + line + "\n");
    assert_ne!(plain.lines().count(), text.lines().count(), "it has a lab line");
    check_block("compute_vs_irqs.exp", &plain);
}

/// Every word of the checker's tables, in the form the reference should show it.
fn vocabulary() -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut add = |texts: &mut dyn Iterator<Item = String>| words.extend(texts);
    let code = |text: &str| format!("`{text}`");
    add(&mut vocabulary::CLAUSES.iter().map(|word| code(word)));
    add(&mut vocabulary::PROCESS_OPTIONS.iter().map(|word| (*word).to_owned()));
    add(&mut vocabulary::SETTINGS.iter().map(|row| row.form.to_owned()));
    add(&mut vocabulary::SETTING_OPTIONS.iter().flat_map(|(_, keys)| keys.iter().map(|key| code(key))));
    add(&mut vocabulary::TARGETS.iter().map(|word| (*word).to_owned()));
    add(&mut vocabulary::CPU_SETS.iter().map(|word| (*word).to_owned()));
    add(&mut vocabulary::IRQ_CLASSES.iter().map(|word| format!("irq class {word}")));
    add(&mut vocabulary::UNITS.iter().map(|unit| code(unit.symbol)));
    for builtin in vocabulary::BUILTINS {
        add(&mut std::iter::once(format!("`builtin {}`", builtin.name)));
        add(&mut builtin.parameters.iter().map(|parameter| match parameter.default {
            Some(default) => format!("`{}={default}`", parameter.name),
            None => format!("`{}=`", parameter.name),
        }));
        add(&mut builtin.metrics.iter().map(|metric| code(metric.name)));
    }
    add(&mut vocabulary::IPC_KINDS.iter().map(|word| code(word)));
    for parser in vocabulary::PARSERS {
        add(&mut std::iter::once(format!("`parse {}`", parser.name)));
        add(&mut parser.metrics.iter().filter(|metric| !metric.name.ends_with("_cpu")).map(|metric| code(metric.name)));
    }
    add(&mut vocabulary::PATTERN_PARSERS.iter().map(|word| format!("parse {word}")));
    add(&mut vocabulary::PROCESS_METRICS.iter().map(|metric| code(metric.name)));
    add(&mut vocabulary::HOST_METRICS.iter().map(|metric| format!("`host.{}`", metric.name)));
    add(&mut vocabulary::DIRECTIONS.iter().map(|(word, _)| code(word)));
    add(&mut vocabulary::ORDERS.iter().map(|(word, _)| format!("order {word}")));
    add(&mut vocabulary::FACTS.iter().map(|(word, _)| code(word)));
    add(&mut vocabulary::COLUMNS.iter().map(|word| code(word)));
    add(&mut vocabulary::LAYOUTS.iter().map(|word| code(word)));
    for option in vocabulary::LAB_OPTIONS {
        add(&mut std::iter::once(option.form.to_owned()));
        add(&mut option.words.iter().chain(option.keys).map(|word| code(word)));
    }
    words
}

#[test]
fn the_reference_explains_every_word_the_checker_knows() {
    let reference = reference();
    let missing: Vec<String> = vocabulary().into_iter().filter(|word| !reference.contains(word.as_str())).collect();
    assert!(missing.is_empty(), "docs/language.md does not say: {missing:#?}");
}

#[test]
fn the_reference_states_the_defaults_that_are_filled_in() {
    let reference = reference();
    let stated = [
        format!("| `repeat` | `repeat {}` |", vocabulary::DEFAULT_REPEAT),
        format!("| `warmup` | `warmup {}` |", vocabulary::DEFAULT_WARMUP),
        format!("| `order` | `order blocks seed {}` |", vocabulary::DEFAULT_SEED),
        format!("| `settle` | `settle {}ms` |", vocabulary::DEFAULT_SETTLE_MS),
        format!("| `timeout` | `timeout {}min` |", vocabulary::DEFAULT_TIMEOUT_MS / 60_000),
        format!("`pilot {} max {}`", vocabulary::DEFAULT_PILOT, vocabulary::DEFAULT_MAX),
        format!("repeated up to {} times", vocabulary::RETRIES),
        format!("seed {}, where none is written", vocabulary::DEFAULT_RANDOM_SEED),
        format!("{} treatments at most", vocabulary::MOST_TREATMENTS),
    ];
    for text in stated {
        assert!(reference.contains(&text), "docs/language.md does not say `{text}`");
    }
}
