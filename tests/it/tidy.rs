//! Invariants over the tree: which folder may name what, words that must not stay, files that must agree. Reads source
//! text only; what a rule cannot see in text is tested where it lives.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

use crate::probe;

/// Longest Rust file before it has to become two.
const MAX_LINES: usize = 700;

/// Crates that few stages may name, and those stages.
const CRATE_HOMES: &[(&str, &[&str])] = &[
    ("clap", &["src/cli/", "src/main.rs"]),
    ("kuva", &["src/report/pictures/canvas.rs"]),
    ("minijinja", &["src/report/"]),
    ("nix", &["src/host/", "src/lab/", "src/run/", "src/settings/", "src/workloads/"]),
    ("pest", &["src/syntax/"]),
    ("pest_derive", &["src/syntax/"]),
    ("pulldown_cmark", &["src/report/page.rs"]),
    ("procfs", &["src/host/", "src/run/", "src/settings/", "src/workloads/"]),
];

/// What a stage may name of this crate. `cli/`, `lib.rs` and `main.rs` join the stages and may name all.
const STAGE_MAY_NAME: &[(&str, &[&str])] = &[
    ("analysis", &["analysis", "cpu_set", "recording"]),
    ("bind", &["bind", "cpu_set", "design", "diagnostic", "recording", "source"]),
    ("check", &["check", "cpu_set", "design", "diagnostic", "source", "syntax"]),
    ("cpu_set", &["cpu_set"]),
    ("design", &["cpu_set", "design", "source"]),
    ("diagnostic", &["diagnostic", "source"]),
    ("host", &["cpu_set", "host", "recording"]),
    ("lab", &["bind", "check", "design", "diagnostic", "host", "lab", "recording", "run", "settings", "source"]),
    ("recording", &["cpu_set", "recording"]),
    ("report", &["analysis", "cpu_set", "recording", "report"]),
    ("run", &["bind", "cpu_set", "design", "host", "recording", "run", "settings", "source", "workloads"]),
    ("settings", &["bind", "cpu_set", "design", "host", "recording", "settings", "source"]),
    ("source", &["source"]),
    ("syntax", &["diagnostic", "source", "syntax"]),
    ("workloads", &["bind", "cpu_set", "design", "recording", "workloads"]),
];

/// Stages that are functions over values: what they give depends on what they are given and on nothing else.
const PURE_STAGES: &[&str] = &["analysis", "bind", "check", "cpu_set", "design", "diagnostic", "report", "syntax"];

/// Where types may be serialised: each such type is a promise to readers of other versions.
const SERIALISED: &[&str] =
    &["src/cli/", "src/lab/exchange.rs", "src/recording/", "src/report/", "src/settings/journal.rs"];

/// Who may open files for writing, and what for.
const WRITERS: &[(&str, &str)] = &[
    ("src/cli/", "the starter file of `new` and files rewritten by `fmt`"),
    ("src/host/capture.rs", "the copy of a host that `capture` makes"),
    ("src/lab/", "folders shared with guests, and consoles beside the recording"),
    ("src/recording/", "recordings"),
    ("src/report/files.rs", "reports, beside their recordings"),
    ("src/run/", "files that take the output of workloads"),
    ("src/settings/", "settings and their journal: the only writer below /proc and /sys"),
    ("src/workloads/disk_read.rs", "the file without a name that it reads in a folder; what is there it opens to read"),
];

/// A text file of the tree.
struct SourceFile {
    /// Relative to the top, with `/`.
    path: String,
    text: String,
}

impl SourceFile {
    /// Text without comment lines and without the test module at the end.
    fn code(&self) -> String {
        let shipped = self.text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
        shipped.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    }

    fn is_below(&self, homes: &[&str]) -> bool {
        homes.iter().any(|home| self.path.starts_with(home))
    }
}

fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &str) -> String {
    fs::read_to_string(top().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Paths of all files below `folder`, relative to the top, without build output and version control.
fn paths(folder: &str) -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if path.is_symlink() || name == "target" || name == ".git" {
                continue;
            }
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&top().join(folder), &mut found);
    let relative = |path: PathBuf| path.strip_prefix(top()).expect("below the top").to_string_lossy().into_owned();
    let mut relative_paths: Vec<String> = found.into_iter().map(relative).collect();
    relative_paths.sort();
    relative_paths
}

/// Text files below `folder` whose names end in one of `endings`; all text files when there is none.
fn files(folder: &str, endings: &[&str]) -> Vec<SourceFile> {
    let wanted = |path: &String| endings.is_empty() || endings.iter().any(|ending| path.ends_with(ending));
    let open = |path: String| fs::read_to_string(top().join(&path)).ok().map(|text| SourceFile { path, text });
    paths(folder).into_iter().filter(wanted).filter_map(open).collect()
}

/// Rust files that are shipped: test modules with a file of their own are left out.
fn shipped() -> Vec<SourceFile> {
    files("src", &[".rs"]).into_iter().filter(|file| !file.path.ends_with("/tests.rs")).collect()
}

fn pattern(text: &str) -> Regex {
    Regex::new(text).expect("a valid pattern")
}

/// `path:line: text` for each line of `text` that matches.
fn hits(path: &str, text: &str, unwanted: &Regex) -> Vec<String> {
    let matching = text.lines().enumerate().filter(|(_, line)| unwanted.is_match(line));
    matching.map(|(number, line)| format!("{path}:{}: {}", number + 1, line.trim())).collect()
}

#[track_caller]
fn assert_none(found: &[String], rule: &str) {
    assert!(found.is_empty(), "{rule}:\n{}", found.join("\n"));
}

/// Modules of this crate that the code names: `crate::a`, `crate::{a, b::C}`, `super::super::a` is not used.
fn named_modules(code: &str) -> BTreeSet<String> {
    let single = pattern(r"\bcrate::([a-z_]+)");
    let grouped = pattern(r"(?s)\bcrate::\{(.*?)\};");
    let first_names = pattern(r"(?:^|,)\s*([a-z_]+)");
    let mut names: BTreeSet<String> = single.captures_iter(code).map(|found| found[1].to_owned()).collect();
    for group in grouped.captures_iter(code) {
        // Inner groups hold names of other levels.
        let outer = pattern(r"\{[^{}]*\}").replace_all(&group[1], "");
        names.extend(first_names.captures_iter(&outer).map(|found| found[1].to_owned()));
    }
    names
}

#[test]
fn crates_stay_in_their_folders() {
    let mut found = Vec::new();
    for file in shipped() {
        for (name, homes) in CRATE_HOMES {
            if !file.is_below(homes) {
                found.extend(hits(&file.path, &file.code(), &pattern(&format!(r"\b{name}\s*(::|;| as )"))));
            }
        }
    }
    assert_none(&found, "named outside its folder (ARCHITECTURE.md, invariant 1)");
}

/// The stage a source file belongs to: the folder or file directly below `src/`.
fn stage(path: &str) -> &str {
    path.trim_start_matches("src/").split(['/', '.']).next().unwrap_or_default()
}

#[test]
fn stages_depend_on_earlier_stages_only() {
    let mut found = Vec::new();
    for file in shipped() {
        let own = stage(&file.path);
        let Some((_, may_name)) = STAGE_MAY_NAME.iter().find(|(stage, _)| *stage == own) else {
            if !["cli", "lib", "main"].contains(&own) {
                found.push(format!("{}: nothing says what `{own}` may name", file.path));
            }
            continue;
        };
        let named = named_modules(&file.code());
        let foreign = named.iter().filter(|name| !may_name.contains(&name.as_str()));
        found.extend(foreign.map(|name| format!("{}: crate::{name}", file.path)));
    }
    assert_none(&found, "a stage names what it must not know (ARCHITECTURE.md, invariant 2)");
}

#[test]
fn pure_stages_touch_no_clock_and_no_process() {
    let outside = pattern(
        r"\b(Instant|SystemTime|Timestamp|Zoned)::now\b|\benv::(vars?|args)|\bCommand::new\b|\bthread::|\bstd(in|out|err)\(\)|\be?println!",
    );
    let pure = shipped().into_iter().filter(|file| PURE_STAGES.contains(&stage(&file.path)));
    let found: Vec<String> = pure.flat_map(|file| hits(&file.path, &file.code(), &outside)).collect();
    assert_none(&found, "a stage of values reaches outside (ARCHITECTURE.md, invariant 6)");
}

#[test]
fn reads_the_modules_a_file_names() {
    let code = "use crate::{cpu_set::CpuSet, host::{files::Files, irqs}};\nlet x = crate::run::go();";
    assert_eq!(named_modules(code).into_iter().collect::<Vec<_>>(), ["cpu_set", "host", "run"]);
}

#[test]
fn only_promised_types_are_serialised() {
    let serde = pattern(r"\b(Serialize|Deserialize)\b|\bserde::");
    let outside = shipped().into_iter().filter(|file| !file.is_below(SERIALISED));
    let found: Vec<String> = outside.flat_map(|file| hits(&file.path, &file.code(), &serde)).collect();
    assert_none(&found, "serde outside recordings, the journal and views (ARCHITECTURE.md, invariant 3)");
}

fn opens_for_writing() -> Regex {
    pattern(
        r"\bOpenOptions\b|\bFile::(create|options)|\bfs::(write|copy|rename|remove_\w+|set_permissions)\b|\bOFlag::|NamedTempFile",
    )
}

#[test]
fn only_named_modules_open_files_for_writing() {
    let homes: Vec<&str> = WRITERS.iter().map(|(home, _)| *home).collect();
    let outside = shipped().into_iter().filter(|file| !file.is_below(&homes));
    let found: Vec<String> = outside.flat_map(|file| hits(&file.path, &file.code(), &opens_for_writing())).collect();
    assert_none(&found, "files opened for writing by a module that is not listed (ARCHITECTURE.md, invariant 4)");
}

#[test]
fn kernel_files_are_reached_through_a_root_only() {
    let direct = pattern(r#"(fs::\w+|File::open|read_to_string|Path::new|PathBuf::from)\(\s*"/(proc|sys)/"#);
    let outside = shipped().into_iter().filter(|file| file.path != "src/host/files.rs");
    let found: Vec<String> = outside.flat_map(|file| hits(&file.path, &file.code(), &direct)).collect();
    assert_none(&found, "a kernel file opened without a root (ARCHITECTURE.md, invariant 5)");
}

#[test]
fn no_unfinished_or_silenced_code() {
    // Written in pieces, so that this file does not find itself.
    let words = [
        concat!(r"\bTO", r"DO\b"),
        concat!(r"\bFIX", r"ME\b"),
        concat!(r"\bXX", r"X\b"),
        concat!(r"\bdb", r"g!"),
        concat!("unimplem", "ented!"),
        concat!(r"\bto", "do!"),
        concat!(r"#\[ign", "ore"),
        concat!(r"#!?\[al", r"low\("),
        concat!("<<<<", "<<< "),
    ];
    let unwanted = pattern(&words.join("|"));
    let prose = [".rs", ".pest", ".j2", ".exp", ".md", ".toml"];
    let mut checked: Vec<SourceFile> = ["src", "grammar", "experiments", "docs", "tests/it", "tests/cases"]
        .iter()
        .flat_map(|folder| files(folder, &prose))
        .collect();
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "Cargo.toml"] {
        checked.push(SourceFile { path: name.to_owned(), text: read(name) });
    }
    checked.extend(files("tools", &[]));
    let found: Vec<String> = checked.iter().flat_map(|file| hits(&file.path, &file.text, &unwanted)).collect();
    assert_none(&found, "finish it, or say it in an issue");
}

#[test]
fn no_file_is_a_drawer_for_everything() {
    let drawer = pattern(r"(^|/)(utils?|helpers?|common|misc|\w*manager)(\.rs|/)");
    let found: Vec<String> = files("src", &[".rs"])
        .into_iter()
        .chain(files("tests", &[".rs"]))
        .map(|file| file.path)
        .filter(|path| drawer.is_match(path))
        .collect();
    assert_none(&found, "name the file after the thing it holds");
}

#[test]
fn nothing_in_the_tree_names_a_place_on_one_machine() {
    let place = pattern(r"(^|[^\w.~*-])/(home|work|workspace|builds|Users)/|/tmp/\w+/|/root/\.?\w");
    let mut found = Vec::new();
    for folder in ["src", "grammar", "experiments", "docs", "tests", "tools", "hooks", "reports", ".ci"] {
        let unlike_this = files(folder, &[]).into_iter().filter(|file| file.path != "tests/it/tidy.rs");
        found.extend(unlike_this.flat_map(|file| hits(&file.path, &file.text, &place)));
    }
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "Cargo.toml"] {
        found.extend(hits(name, &read(name), &place));
    }
    // The place of somebody who does not exist, for tests of how paths are shown.
    found.retain(|hit| !hit.contains("/home/somebody"));
    assert_none(&found, "a path that is right on one machine only");
}

#[test]
fn the_lock_file_takes_crates_from_crates_io_only() {
    let lock = read("Cargo.lock");
    let sources = lock.lines().filter(|line| line.starts_with("source = "));
    let public = "source = \"registry+https://github.com/rust-lang/crates.io-index\"";
    let found: Vec<String> = sources.filter(|line| *line != public).map(str::to_owned).collect();
    assert_none(&found, "a dependency that others cannot fetch");
}

#[test]
fn no_rust_file_is_two_files_in_one() {
    let mut all = files("src", &[".rs"]);
    all.extend(files("tests", &[".rs"]));
    let lengths = all.iter().map(|file| (file.path.as_str(), file.text.lines().count()));
    let long = lengths.filter(|(_, lines)| *lines > MAX_LINES);
    let found: Vec<String> = long.map(|(path, lines)| format!("{path}: {lines} lines")).collect();
    assert_none(&found, &format!("longer than {MAX_LINES} lines: make two rooms of it"));
}

#[test]
fn each_module_states_its_duty() {
    let mut all = files("src", &[".rs"]);
    all.extend(files("tests", &[".rs"]));
    let found: Vec<String> =
        all.into_iter().filter(|file| !file.text.starts_with("//! ")).map(|file| file.path).collect();
    assert_none(&found, "no `//!` in the first line");
}

#[test]
fn each_test_file_is_declared() {
    let declared = read("tests/integration.rs");
    let in_folder: BTreeSet<String> = files("tests/it", &[".rs"]).into_iter().map(|file| file.path).collect();
    let inner: Vec<String> = files("tests/it", &[".rs"]).into_iter().map(|file| file.text).collect();
    let undeclared = |path: &&String| {
        let stem = Path::new(path).file_stem().unwrap_or_default().to_string_lossy();
        let by_path = declared.contains(&format!("\"{}\"", path.trim_start_matches("tests/")));
        let nested = path.matches('/').count() > 2 && inner.iter().any(|text| text.contains(&format!("mod {stem};")));
        !by_path && !nested
    };
    let found: Vec<String> = in_folder.iter().filter(undeclared).cloned().collect();
    assert_none(&found, "a test file nobody compiles");
}

#[test]
fn no_snapshot_waits_for_review() {
    let found: Vec<String> = paths("").into_iter().filter(|path| path.ends_with(".snap.new")).collect();
    assert_none(&found, "accept or delete");
}

#[test]
fn each_snapshot_belongs_to_a_test() {
    let counter = pattern(r"-\d+$");
    let mut found = Vec::new();
    for snapshot in files("", &[".snap"]) {
        let field = |name: &str| snapshot.text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        let Some(source) = field("source: ") else {
            found.push(format!("{}: does not say its source", snapshot.path));
            continue;
        };
        let Ok(source_text) = fs::read_to_string(top().join(source)) else {
            found.push(format!("{}: its source {source} is gone", snapshot.path));
            continue;
        };
        if let Some(input) = field("input_file: ")
            && !top().join(input).exists()
        {
            found.push(format!("{}: its input {input} is gone", snapshot.path));
        }
        let file_name = Path::new(&snapshot.path).file_name().unwrap_or_default().to_string_lossy();
        let before_suffix = file_name.trim_end_matches(".snap").split('@').next().unwrap_or_default().to_owned();
        let name = before_suffix.rsplit("__").next().unwrap_or_default();
        if !source_text.contains(name) && !source_text.contains(&*counter.replace(name, "")) {
            found.push(format!("{}: {source} has no `{name}`", snapshot.path));
        }
    }
    assert_none(&found, "a snapshot no test looks at");
}

#[test]
fn each_setting_of_a_lint_has_a_reason() {
    let bare = pattern(r"#!?\[expect\([^\]]*\]");
    let mut all = files("src", &[".rs"]);
    all.extend(files("tests", &[".rs"]));
    let mut found = Vec::new();
    for file in all.iter().filter(|file| file.path != "tests/it/tidy.rs") {
        let without_reason = bare.find_iter(&file.text).filter(|hit| !hit.as_str().contains("reason"));
        found.extend(without_reason.map(|hit| format!("{}: {}", file.path, hit.as_str())));
    }
    assert_none(&found, "an exception without `reason = \"…\"`");
}

#[test]
fn unsafe_code_is_forbidden() {
    let manifest = read("Cargo.toml");
    for line in ["unsafe_code = \"forbid\"", "pedantic = { level = \"warn\", priority = -1 }"] {
        assert!(manifest.lines().any(|present| present == line), "Cargo.toml: `{line}` is gone");
    }
}

#[test]
fn the_architecture_is_short_and_names_what_exists() {
    let text = read("ARCHITECTURE.md");
    assert!(text.lines().count() <= 150, "ARCHITECTURE.md has {} lines, more than 150", text.lines().count());

    let mut tests = String::new();
    for file in files("tests", &[".rs"]).into_iter().chain(files("src", &[".rs"])) {
        tests.push_str(&file.text);
    }
    let (_, behind) = text.split_once("## Invariants").expect("a section `## Invariants`");
    let invariants = behind.split("\n## ").next().unwrap_or_default();
    let named_test = pattern(r"Tests: ((?:`[a-z0-9_]+`,?\s*)+)");
    let mut count = 0;
    let mut found = Vec::new();
    for list in named_test.captures_iter(invariants) {
        count += 1;
        for name in list[1].split('`').filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase())) {
            if !tests.contains(&format!("fn {name}(")) {
                found.push(format!("no test is called {name}"));
            }
        }
    }
    let numbered = invariants.lines().filter(|line| pattern(r"^\d+\. ").is_match(line)).count();
    assert_eq!(count, numbered, "each numbered invariant names its tests once, as `Tests: …`");

    let path = pattern(r"`((?:src|tests|docs|tools|grammar|experiments|reports|hooks)/[\w./*-]*)`");
    for named in path.captures_iter(&text).map(|captures| captures[1].to_owned()) {
        let without_glob = named.split('*').next().unwrap_or_default().to_owned();
        if !top().join(&without_glob).exists() {
            found.push(format!("no file {named}"));
        }
    }
    assert_none(&found, "ARCHITECTURE.md names what is not there");
}

#[test]
fn the_architecture_shows_each_stage_of_the_source() {
    let text = read("ARCHITECTURE.md");
    let stages: BTreeSet<String> = paths("src")
        .iter()
        .filter_map(|path| path.strip_prefix("src/"))
        .map(|path| path.split(['/', '.']).next().unwrap_or_default().to_owned())
        .collect();
    let shown = |stage: &String| pattern(&format!(r"(?m)^[ ].*\b{stage}(/|\.rs) ")).is_match(&text);
    let found: Vec<String> = stages.into_iter().filter(|stage| !shown(stage)).collect();
    assert_none(&found, "not in the tree of ARCHITECTURE.md");
}

#[test]
fn the_licences_of_the_manifest_are_there() {
    assert!(read("Cargo.toml").contains("license = \"MIT OR Apache-2.0\""), "Cargo.toml names other licences");
    assert!(
        read("LICENSE-MIT").contains("Permission is hereby granted, free of charge"),
        "LICENSE-MIT is another text"
    );
    assert!(read("LICENSE-APACHE").contains("Version 2.0, January 2004"), "LICENSE-APACHE is another text");
}

#[test]
fn the_changelog_knows_this_version_and_each_dependency() {
    let manifest = read("Cargo.toml");
    let changelog = read("CHANGELOG.md");
    let version = pattern(r#"(?m)^version = "(.*)"$"#).captures(&manifest).expect("a version")[1].to_owned();
    let headings: Vec<&str> = changelog.lines().filter(|line| line.starts_with("## ")).collect();
    assert!(headings.first().is_some_and(|line| line.starts_with("## [Unreleased]")), "no section for what comes next");
    assert!(headings.iter().take(2).any(|line| line.contains(&version)), "no heading for {version}");

    let sections = pattern(r"(?ms)^\[(?:dev-)?dependencies\]\n(.*?)(?:\n\n|\z)");
    let name = pattern(r"(?m)^([a-z0-9_-]+) = ");
    let mut found = Vec::new();
    for section in sections.captures_iter(&manifest) {
        let names = name.captures_iter(section.get(1).expect("the lines").as_str()).map(|found| found[1].to_owned());
        found.extend(names.filter(|name| !changelog.contains(&format!("`{name}`"))));
    }
    assert_none(&found, "a dependency that CHANGELOG.md does not account for");
}

#[test]
fn each_listed_writer_still_writes() {
    let writes =
        |home: &str| shipped().iter().any(|file| file.is_below(&[home]) && opens_for_writing().is_match(&file.code()));
    let idle: Vec<String> =
        WRITERS.iter().filter(|(home, _)| !writes(home)).map(|(home, _)| (*home).to_owned()).collect();
    assert_none(&idle, "listed as a writer, writes nothing: take it off the list");
}

#[test]
fn links_between_pages_lead_somewhere() {
    let link = pattern(r"\]\(([^)#: ]+)(?:#[^)]*)?\)");
    let mut pages = files("docs", &[".md"]);
    for name in ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"] {
        pages.push(SourceFile { path: name.to_owned(), text: read(name) });
    }
    let mut found = Vec::new();
    for page in pages {
        let folder = top().join(&page.path).parent().expect("a folder").to_path_buf();
        let targets = link.captures_iter(&page.text).map(|captures| captures[1].to_owned());
        found.extend(
            targets.filter(|target| !folder.join(target).exists()).map(|target| format!("{}: {target}", page.path)),
        );
    }
    assert_none(&found, "a link into nothing");
}

/// What the README shows of the report of the demo: the question, the verdicts, their picture and the evidence, word by
/// word.
fn excerpt(report: &str) -> String {
    let begin = report.find("**Question:**").expect("a question");
    let evidence = begin + report[begin..].find("\n**Evidence:**").expect("evidence") + 1;
    let end = report[evidence..].find('\n').map_or(report.len(), |length| evidence + length);
    let lines = report[begin..end].lines().filter(|line| !line.starts_with('#'));
    let mut quoted: Vec<String> = lines.map(|line| format!("> {line}").trim_end().to_owned()).collect();
    for line in &mut quoted {
        *line = line.replace("](plots/", "](reports/quickstart/plots/");
    }
    quoted.dedup_by(|next, previous| next == ">" && previous == ">");
    format!("\nFrom [the report of the demo](reports/quickstart/README.md):\n\n{}\n\n", quoted.join("\n"))
}

#[test]
fn the_readme_shows_what_the_committed_report_says() {
    let readme = read("README.md");
    let (_, behind) = readme.split_once("<!-- from reports/quickstart/README.md -->").expect("a marked place");
    let (shown, _) = behind.split_once("<!-- end -->").expect("an end of the marked place");
    let report = fs::read_to_string(top().join("reports/quickstart/README.md"));
    let expected = report.map_or_else(|_| "\n".to_owned(), |report| excerpt(&report));
    assert!(shown == expected, "README.md: between the two marks belongs:\n{expected}");
}

#[test]
fn each_committed_report_says_what_its_recording_says() {
    if !top().join("reports").exists() {
        return;
    }
    let program = env!("CARGO_BIN_EXE_irqlab");
    let output = Command::new(program).args(["report", "reports", "--check"]).current_dir(top()).output();
    let output = output.expect("the program runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[cfg(unix)]
#[test]
fn scripts_can_be_run() {
    use std::os::unix::fs::PermissionsExt;
    let scripts: Vec<String> = ["tools", "hooks", ".ci"].iter().flat_map(|folder| paths(folder)).collect();
    let broken = |path: &&String| {
        let mode = fs::metadata(top().join(path.as_str())).expect("a file").permissions().mode();
        mode & 0o111 == 0 || !read(path).starts_with("#!/usr/bin/env bash\n")
    };
    let found: Vec<String> = scripts.iter().filter(broken).cloned().collect();
    assert_none(&found, "not executable, or without `#!/usr/bin/env bash`");
    assert!(scripts.len() >= 3, "tools/test, tools/demo and tools/setup are gone: {scripts:?}");
}

#[test]
fn scripts_parse() {
    let scripts: Vec<String> = ["tools", "hooks", ".ci"].iter().flat_map(|folder| paths(folder)).collect();
    let parse = |path: &String| Command::new("bash").arg("-n").arg(top().join(path)).output();
    let mut found = Vec::new();
    for path in scripts {
        match parse(&path) {
            Ok(output) if output.status.success() => {}
            Ok(output) => found.push(String::from_utf8_lossy(&output.stderr).into_owned()),
            Err(error) => return probe::skip(&format!("scripts are not parsed: bash: {error}")),
        }
    }
    assert_none(&found, "a script with a syntax error");
}
