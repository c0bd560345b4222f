//! `run "…" undo "…"`: a change irqlab does not understand, and the command that takes it back.

use super::journal::Entry;
use super::{Back, Made, Refusal, System};

/// Read-back of a command that failed: its undo may fail too.
pub(super) const FAILED: &str = "failed";

/// Runs the command; anything but exit status 0 is a refusal.
pub(super) fn make(system: &dyn System, command: &[String]) -> Result<Made, Refusal> {
    let ended = system.run(command)?;
    if !ended.success {
        return Err(Refusal::because("run", &shell_words::join(command), reason(&ended.status, &ended.stderr)));
    }
    Ok(Made { found: ended.status, remark: None })
}

/// Runs the undo, even where the command itself failed half way.
pub(super) fn put_back(system: &dyn System, undo: &[String], entry: &Entry) -> Back {
    let words = shell_words::join(undo);
    let refusal = match system.run(undo) {
        Ok(ended) if ended.success => return Back::Restored { remark: None },
        Ok(ended) => Refusal::because("undo by", &words, reason(&ended.status, &ended.stderr)),
        Err(error) => error.into(),
    };
    if entry.found.as_deref() == Some(FAILED) {
        return Back::Gone(Some(format!("the command had failed, and so did its undo: {refusal}")));
    }
    Back::Failed(refusal)
}

fn reason(status: &str, stderr: &str) -> String {
    let last = stderr.lines().last().unwrap_or_default();
    if last.is_empty() { status.to_owned() } else { format!("{status}: {last}") }
}
