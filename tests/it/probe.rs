//! What tests do when the machine under them lacks something. A test that cannot run here says so with [`skip`]; it
//! never just passes.

use std::io::{self, Write};

/// Prints `skipped: WHY`, then fails where `CI` is `true`: there the machine is chosen so that everything runs.
#[track_caller]
pub(crate) fn skip(why: &str) {
    // Straight to the stream, past the capture of the test harness: a skip nobody sees is a silent one.
    writeln!(io::stderr(), "skipped: {why}").expect("stderr takes a line");
    fail_in_ci(std::env::var("CI").ok().as_deref(), why);
}

#[track_caller]
fn fail_in_ci(ci: Option<&str>, why: &str) {
    assert!(ci != Some("true"), "a skip is a failure where CI=true: {why}");
}

#[test]
fn a_skip_is_a_failure_in_ci_only() {
    assert!(std::panic::catch_unwind(|| fail_in_ci(Some("true"), "not root")).is_err());
    for ci in [None, Some(""), Some("false")] {
        fail_in_ci(ci, "not root");
    }
}
