//! The report beside its recording, its pictures and its page: written whole or not at all, and compared with what the
//! recording renders to.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use super::pictures::{FOLDER, MARK, Picture};

/// Name of a report in its folder, shown by code hosts when the folder is browsed.
const REPORT: &str = "README.md";

/// Name of the page beside it.
const PAGE: &str = "report.html";

/// A committed report that is not what its recording renders to.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The first line that differs.
    #[error(
        "`{}` is not what its recording renders to; line {line} is `{found}`, should be `{expected}` (`irqlab report` remakes it)",
        path.display()
    )]
    Different {
        /// The report.
        path: PathBuf,
        /// One-based.
        line: usize,
        /// In the report; empty past its end.
        found: String,
        /// In the fresh rendering; empty past its end.
        expected: String,
    },
    /// A picture of ours that the report no longer has.
    #[error("`{}` is a picture its report does not have (`irqlab report` removes it)", path.display())]
    Stale {
        /// The picture.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error("`{}` cannot be read: {source} (`irqlab report` makes it)", path.display())]
    Unreadable {
        /// The report.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Writes the report of `recording` into its folder and returns the path. Readers see the old or the new text.
pub fn write(recording: &Path, text: &str) -> std::io::Result<PathBuf> {
    let path = beside(recording);
    write_whole(folder_of(&path), &path, text)?;
    Ok(path)
}

/// Writes the page of `recording` into its folder and returns the path.
pub fn write_page(recording: &Path, text: &str) -> std::io::Result<PathBuf> {
    let path = recording.with_file_name(PAGE);
    write_whole(folder_of(&path), &path, text)?;
    Ok(path)
}

/// Writes the pictures of a report into `plots/` beside `recording` and removes those of ours that are no longer in it.
pub fn write_pictures(recording: &Path, pictures: &[Picture]) -> std::io::Result<()> {
    let folder = recording.with_file_name(FOLDER);
    if !pictures.is_empty() {
        std::fs::create_dir_all(&folder)?;
    }
    for picture in pictures {
        write_whole(&folder, &folder.join(&picture.file), &picture.svg)?;
    }
    for path in stale(&folder, pictures)? {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Writes the index of a folder of reports.
pub fn write_index(folder: &Path, text: &str) -> std::io::Result<()> {
    write_whole(folder, &folder.join(REPORT), text)
}

/// Compares the report beside `recording` with what it should be.
pub fn check(recording: &Path, text: &str) -> Result<(), CheckError> {
    compare(beside(recording), text)
}

/// Compares the page beside `recording` with what it should be.
pub fn check_page(recording: &Path, text: &str) -> Result<(), CheckError> {
    compare(recording.with_file_name(PAGE), text)
}

/// Compares the pictures beside `recording` with what they should be: every one that is missing, different or stale.
pub fn check_pictures(recording: &Path, pictures: &[Picture]) -> Vec<CheckError> {
    let folder = recording.with_file_name(FOLDER);
    let compared = pictures.iter().filter_map(|picture| compare(folder.join(&picture.file), &picture.svg).err());
    let mut errors: Vec<CheckError> = compared.collect();
    match stale(&folder, pictures) {
        Ok(paths) => errors.extend(paths.into_iter().map(|path| CheckError::Stale { path })),
        Err(source) => errors.push(CheckError::Unreadable { path: folder, source }),
    }
    errors
}

/// Pictures made by this program that are not among `pictures`. Other files in the folder are somebody's own.
fn stale(folder: &Path, pictures: &[Picture]) -> std::io::Result<Vec<PathBuf>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let svg = path.extension().is_some_and(|extension| extension == "svg");
        let wanted = pictures.iter().any(|picture| path.file_name().is_some_and(|name| name == picture.file.as_str()));
        if svg && !wanted && std::fs::read_to_string(&path).is_ok_and(|text| text.contains(MARK)) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

fn compare(path: PathBuf, text: &str) -> Result<(), CheckError> {
    let bytes = std::fs::read(&path).map_err(|source| CheckError::Unreadable { path: path.clone(), source })?;
    if bytes == text.as_bytes() {
        return Ok(());
    }
    let found = String::from_utf8_lossy(&bytes);
    let (mut found_lines, mut expected_lines) = (found.split('\n'), text.split('\n'));
    let mut line = 1;
    loop {
        match (found_lines.next(), expected_lines.next()) {
            (Some(found), Some(expected)) if found == expected => line += 1,
            (found, expected) => {
                let (found, expected) = (found.unwrap_or_default(), expected.unwrap_or_default());
                return Err(CheckError::Different {
                    path,
                    line,
                    found: excerpt(found, expected),
                    expected: excerpt(expected, found),
                });
            }
        }
    }
}

fn beside(recording: &Path) -> PathBuf {
    recording.with_file_name(REPORT)
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The part of `line` around the first character that differs from `other`.
fn excerpt(line: &str, other: &str) -> String {
    let same = line.chars().zip(other.chars()).take_while(|(a, b)| a == b).count();
    let start = same.saturating_sub(30);
    let cut: String = line.chars().skip(start).take(80).collect();
    let before = if start > 0 { "…" } else { "" };
    let after = if line.chars().count() > start + 80 { "…" } else { "" };
    let shown: String = cut.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
    format!("{before}{shown}{after}")
}

fn write_whole(folder: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".report-").tempfile_in(folder)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    readable_by_all(file.path())?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Temporary files are private; a report is for reading.
fn readable_by_all(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644))
}
