//! Source files and positions in them. Knows nothing of grammar or meaning.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Longest source file, bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// Reads a source file, and no more of a too long one than shows that it is: `/dev/zero` has no end.
///
/// # Errors
///
/// Those of the file system; `InvalidData` for bytes that are not UTF-8.
pub fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    // Room for a character that begins at the limit.
    File::open(path)?.take(MAX_BYTES as u64 + 4).read_to_end(&mut bytes)?;
    if let Err(error) = std::str::from_utf8(&bytes)
        && error.valid_up_to() > MAX_BYTES
    {
        bytes.truncate(error.valid_up_to());
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Which file of [`Sources`] a span lies in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct FileId(pub u16);

/// A half-open range of bytes in one source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub struct Span {
    /// The file.
    pub file: FileId,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The smallest span that covers both; both lie in one file.
    pub fn to(self, other: Span) -> Span {
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A value and the place it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Spanned<T> {
    /// The value.
    pub value: T,
    /// The smallest text that says it.
    pub span: Span,
}

impl<T> Spanned<T> {
    /// Joins a value and its place.
    pub fn new(value: T, span: Span) -> Self {
        Spanned { value, span }
    }
}

/// One text and the path it was read from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// As the user named it.
    pub path: PathBuf,
    /// UTF-8 text of the whole file.
    pub text: String,
}

/// All files that one check reads: the named one first, then what it `use`s.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sources {
    files: Vec<Source>,
}

impl Sources {
    /// Adds a file and returns its id.
    pub fn add(&mut self, path: impl Into<PathBuf>, text: impl Into<String>) -> FileId {
        let id = FileId(u16::try_from(self.files.len()).expect("fewer than 65,536 source files"));
        self.files.push(Source { path: path.into(), text: text.into() });
        id
    }

    /// The file of that id.
    pub fn get(&self, id: FileId) -> &Source {
        &self.files[usize::from(id.0)]
    }

    /// The id of the file already read from `path`.
    pub fn find(&self, path: &Path) -> Option<FileId> {
        let index = self.files.iter().position(|source| source.path == path)?;
        Some(FileId(u16::try_from(index).ok()?))
    }

    /// The files in the order they were read.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.files.iter()
    }

    /// The text a span covers.
    pub fn text(&self, span: Span) -> &str {
        &self.get(span.file).text[span.start..span.end]
    }

    /// One-based line of the start of a span.
    pub fn line(&self, span: Span) -> usize {
        let text = &self.get(span.file).text;
        text[..span.start.min(text.len())].bytes().filter(|byte| *byte == b'\n').count() + 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_read_than_shows_that_a_file_is_too_long() {
        assert_eq!(read(Path::new("/dev/zero")).unwrap().len(), MAX_BYTES + 4);
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let cut = "a".repeat(MAX_BYTES + 2) + "\u{20ac}";
        std::io::Write::write_all(&mut file, cut.as_bytes()).unwrap();
        assert_eq!(read(file.path()).unwrap().len(), MAX_BYTES + 2, "too long, and not what it is not: bad text");
        std::fs::write(file.path(), b"experiment \xff").unwrap();
        assert_eq!(read(file.path()).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
