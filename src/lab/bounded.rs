//! A program asked for something, with a limit to its time: some hang where they should answer.

use std::io::{self, Read};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// What a program gave.
pub(super) struct Answer {
    pub(super) status: ExitStatus,
    /// Standard output and error, each trimmed, one behind the other.
    pub(super) text: String,
}

/// Why there is none.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAnswer {
    #[error("it does not start: {0}")]
    NotStarted(#[from] io::Error),
    #[error("it did not end within {} s", .0.as_secs())]
    TooSlow(Duration),
}

/// Runs a program to its end, or kills it when the time is over.
pub(super) fn ask(command: &mut Command, limit: Duration) -> Result<Answer, NoAnswer> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (sender, ended) = mpsc::channel();
    // Both are closed when the program ends; what it says is a few lines and fills no pipe.
    for pipe in [child.stdout.take().map(boxed), child.stderr.take().map(boxed)].into_iter().flatten() {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut text = String::new();
            let mut pipe = pipe;
            let _ = pipe.by_ref().take(MOST).read_to_string(&mut text);
            let _ = sender.send(text.trim().to_owned());
        });
    }
    drop(sender);
    let mut text = String::new();
    let deadline = std::time::Instant::now() + limit;
    for _ in 0..2 {
        match ended.recv_timeout(deadline.saturating_duration_since(std::time::Instant::now())) {
            Ok(piece) if text.is_empty() => text = piece,
            Ok(piece) if piece.is_empty() => {}
            Ok(piece) => text = format!("{text}\n{piece}"),
            Err(_) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(NoAnswer::TooSlow(limit));
            }
        }
    }
    Ok(Answer { status: child.wait()?, text })
}

/// Longest output that is kept, bytes.
const MOST: u64 = 64 << 10;

fn boxed(pipe: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(pipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hangs_is_killed() {
        let asked = ask(Command::new("sleep").arg("1000"), Duration::from_millis(50));
        assert!(matches!(asked, Err(NoAnswer::TooSlow(_))));
    }

    #[test]
    fn both_outputs_and_the_status_come_back() {
        let answer = ask(Command::new("sh").args(["-c", "echo out; echo err >&2; exit 3"]), Duration::from_secs(20));
        let answer = answer.unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(answer.status.code(), Some(3));
        let mut lines: Vec<&str> = answer.text.lines().collect();
        lines.sort_unstable();
        assert_eq!(lines, ["err", "out"]);
    }
}
