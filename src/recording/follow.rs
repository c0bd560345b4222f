//! A recording read while it is being written: complete lines only, each once.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

use super::Line;
use super::file::{Descriptions, MAX_LINE_BYTES, Place, ReadError};

/// Reads on where it left off.
#[derive(Debug)]
pub struct Follower {
    path: PathBuf,
    read: u64,
    lines: usize,
    descriptions: Descriptions,
}

impl Follower {
    /// From the beginning of a file that need not be there yet.
    pub fn new(path: &Path) -> Self {
        Follower { path: path.to_owned(), read: 0, lines: 0, descriptions: Descriptions::default() }
    }

    /// Lines completed since the last call. What stands behind the last line break is left for the next one.
    pub fn more(&mut self) -> Result<Vec<Line>, ReadError> {
        let path = self.path.clone();
        let bytes = self.fresh().map_err(|source| ReadError::Io { path: path.clone(), source })?;
        let mut lines = Vec::new();
        for bytes in bytes.split_inclusive(|byte| *byte == b'\n').filter(|bytes| bytes.ends_with(b"\n")) {
            self.lines += 1;
            let place = Place { path: &path, number: self.lines };
            let mut line = serde_json::from_slice(bytes).map_err(|error| place.malformed(error))?;
            if let Line::Trial(trial) = &mut line {
                self.descriptions.fill_in(trial);
            }
            lines.push(line);
            self.read += bytes.len() as u64;
        }
        if bytes.len() as u64 > MAX_LINE_BYTES && lines.is_empty() {
            return Err(ReadError::TooLong { path, line: self.lines + 1 });
        }
        Ok(lines)
    }

    fn fresh(&self) -> io::Result<Vec<u8>> {
        let mut file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut bytes = Vec::new();
        if file.metadata()?.len() > self.read {
            file.seek(SeekFrom::Start(self.read))?;
            file.take(MAX_LINE_BYTES + 1).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::recording::End;

    fn end(reason: &str) -> Line {
        Line::End(End {
            at: "2026-01-01T00:00:00Z".to_owned(),
            reason: reason.to_owned(),
            restored: 0,
            not_restored: Vec::new(),
            remarks: Vec::new(),
        })
    }

    #[test]
    fn a_line_is_given_once_and_only_when_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("recording.jsonl");
        let mut follower = Follower::new(&path);
        assert_eq!(follower.more().unwrap(), []);
        let lines = [end("a"), end("b")];
        let text: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        let mut file = File::create(&path).unwrap();
        let (first, rest) = text.split_at(text.len() - 5);
        file.write_all(first.as_bytes()).unwrap();
        assert_eq!(follower.more().unwrap(), [end("a")]);
        assert_eq!(follower.more().unwrap(), []);
        file.write_all(rest.as_bytes()).unwrap();
        assert_eq!(follower.more().unwrap(), [end("b")]);
        file.write_all(b"no line\n").unwrap();
        assert!(matches!(follower.more(), Err(ReadError::Malformed { line: 3, .. })));
    }
}
