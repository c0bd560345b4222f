//! What a guest's console said: the end of it, without what would move a terminal.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::LazyLock;

use regex::Regex;

/// How much of the end of a console is kept.
const KEPT_BYTES: u64 = 64 << 10;

/// Lines of it that are told with a trial.
const TOLD_LINES: usize = 20;

/// ECMA-48 control sequences, and operating system commands up to their end.
static SEQUENCE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(\x07|\x1b\\)?|\x1b[ -/]*[0-~]").expect("a valid pattern")
});

/// The end of a console's file; empty where there is none.
pub(super) fn tail(path: &Path) -> io::Result<String> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(error),
    };
    let length = file.metadata()?.len();
    let from = length.saturating_sub(KEPT_BYTES);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(KEPT_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    // A line whose beginning is cut off says the wrong thing.
    let whole = if from == 0 { &text } else { text.split_once('\n').map_or("", |(_, rest)| rest) };
    Ok(plain(whole))
}

/// Text without control sequences and control characters other than line breaks and tabs.
pub(super) fn plain(text: &str) -> String {
    let text = SEQUENCE.replace_all(text, "");
    let lines = text.split('\n').map(|line| {
        let line: String = line.chars().filter(|c| !c.is_control() || *c == '\t').collect();
        line.trim_end().to_owned()
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The last lines that say something.
pub(super) fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(TOLD_LINES)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_terminal_is_left() {
        let console = "\u{1b}[2J\u{1b}[1;31mred\u{1b}[0m\r\n\u{1b}]0;title\u{7}a\tb\u{8}c\u{1b}c\n\u{9b}1mx";
        assert_eq!(plain(console), "red\na\tbc\n1mx");
    }

    #[test]
    fn a_long_console_is_cut_at_a_line() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let lines: Vec<String> = (0..20_000).map(|number| format!("line {number}")).collect();
        io::Write::write_all(&mut file, lines.join("\n").as_bytes()).unwrap();
        let kept = tail(file.path()).unwrap();
        assert!(kept.len() as u64 <= KEPT_BYTES && kept.len() as u64 > KEPT_BYTES - 20);
        assert!(kept.starts_with("line 1") && kept.ends_with("line 19999"), "{}", &kept[..20]);
        assert_eq!(last_lines(&kept).lines().next(), Some("line 19980"));
        assert_eq!(tail(Path::new("there is none")).unwrap(), "");
    }
}
