//! Where words go: data to stdout, talk to stderr. A closed pipe ends the talk, not the work.

use std::io::{self, IsTerminal, Write};

use crate::diagnostic::{self, Color, Diagnostic};
use crate::source::Sources;

/// Prints data.
pub(super) fn data(text: &str) {
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// Prints a line of talk.
pub(super) fn talk(line: &str) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Prints an error that has no place in a file.
pub(super) fn error(message: impl std::fmt::Display) {
    talk(&format!("error: {message}"));
}

/// Prints what `run` would refuse, as notes.
pub(super) fn notes(refusals: &[Diagnostic], sources: &Sources) {
    for refusal in refusals {
        let place = sources.get(refusal.span.file).path.display();
        talk(&format!(
            "note: {place}:{}: {}; `run` stops here with exit status 4",
            sources.line(refusal.span),
            refusal.kind.message()
        ));
    }
}

/// Prints diagnostics, coloured on a terminal unless `NO_COLOR` is set.
pub(super) fn diagnostics(diagnostics: &[Diagnostic], sources: &Sources) {
    if diagnostics.is_empty() {
        return;
    }
    let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let color = if io::stderr().is_terminal() && !no_color { Color::Always } else { Color::Never };
    talk(diagnostic::render(diagnostics, sources, color).trim_end());
}
