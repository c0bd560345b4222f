//! Hostile input: what the fuzz targets do, done with their seeds and with every input that once broke something, whole
//! and cut off; and the kinds of input no fuzzer comes upon.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

#[path = "../../fuzz/bodies.rs"]
mod bodies;

use bodies::{BODIES, Body};

/// The package's folder.
fn top() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The files below the folders that `fuzz/seeds/TARGET` names.
fn seeds(target: &str) -> Vec<PathBuf> {
    let folders = std::fs::read_to_string(top().join("fuzz/seeds").join(target)).unwrap();
    folders.lines().flat_map(|folder| files(&top().join(folder))).collect()
}

/// Files below a folder; none where there is no folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

#[test]
fn every_seed_is_taken_or_refused_without_a_panic() {
    for (target, body) in BODIES {
        let seeds = seeds(target);
        assert!(!seeds.is_empty(), "`{target}` has seeds");
        for path in seeds.iter().filter(|path| path.metadata().unwrap().len() < 200_000) {
            let seed = std::fs::read(path).unwrap();
            body(&seed);
            for cut in [seed.len() / 3, seed.len().saturating_sub(2)] {
                body(&seed[..cut]);
            }
        }
    }
}

#[test]
fn what_once_broke_something_does_not_any_more() {
    for (target, body) in BODIES {
        for path in files(&top().join("fuzz/regressions").join(target)) {
            within_a_minute(&path.display().to_string(), body, &std::fs::read(&path).unwrap());
        }
    }
}

/// A text of a hundred kilobytes that takes longer is read in more than linear time.
fn within_a_minute(name: &str, body: Body, input: &[u8]) {
    let started = Instant::now();
    body(input);
    let taken = started.elapsed();
    assert!(taken < Duration::from_secs(60), "{name} takes {taken:?}");
}

#[test]
fn deep_long_and_broken_texts_are_refused_by_every_reader() {
    let inputs: Vec<Vec<u8>> = vec![
        Vec::new(),
        vec![0; 100_000],
        vec![0xff; 100_000],
        b"{".repeat(100_000),
        b"[".repeat(100_000),
        b"(".repeat(100_000),
        b"\"".repeat(100_001),
        b"${".repeat(50_000),
        b"experiment e { vary f { a { irq ".iter().copied().chain(b"(irq 1 + ".repeat(20_000)).collect(),
        b"9".repeat(100_000),
        "\u{202e}\u{200b}\u{feff}e\u{301}".repeat(10_000).into_bytes(),
        b"\x1b]0;title\x07\x1b[31m".repeat(1_000),
        b"\r".repeat(50_000),
        b"#\n;".repeat(50_000),
    ];
    for (target, body) in BODIES {
        for (number, input) in inputs.iter().enumerate() {
            within_a_minute(&format!("`{target}` on input {number}"), body, input);
        }
    }
}
