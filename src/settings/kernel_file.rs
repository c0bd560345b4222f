//! Kernel files with one value: sysctls, governors and what `write` names. Also the one way every kernel file is
//! written and put back.

use std::time::Duration;

use super::journal::{Entry, Saved};
use super::{Back, Made, Refusal, System};
use crate::host::files::{Files, SystemError};

/// Tries of a write that the kernel answers with EBUSY or EAGAIN.
const TRIES: u32 = 5;

const EINTR: i32 = 4;
const EAGAIN: i32 = 11;
const EBUSY: i32 = 16;

/// What an errno means for the file at hand.
pub(super) type Meaning = fn(i32) -> Option<&'static str>;

/// Reads the present bytes. Only files of the kernel's own file systems are touched.
pub(super) fn save(files: &dyn Files, path: &str) -> Result<Saved, Refusal> {
    let below = |folder: &str| path.starts_with(folder);
    if !(below("/proc/") || below("/sys/")) || path.split('/').any(|part| part == "..") {
        return Err(Refusal::because("write", path, "only files under `/proc` and `/sys` can be put back exactly"));
    }
    Ok(Saved::of_bytes(&files.read(path)?))
}

/// Whether the file has the value; blanks between words and a chosen word in brackets are the kernel's own.
pub(super) fn is_right(now: &Saved, value: &str) -> bool {
    let now = text_of(now);
    words(&now) == words(value) || chosen(&now).is_some_and(|chosen| chosen == value.trim())
}

/// Writes a value and reads back what the kernel made of it.
pub(super) fn make(system: &dyn System, path: &str, value: &str) -> Result<Made, Refusal> {
    write(system, path, format!("{value}\n").as_bytes()).map_err(|error| Refusal::from(error).meaning_of(meaning))?;
    let found = Saved::of_bytes(&system.read(path)?);
    let remark = (!is_right(&found, value))
        .then(|| format!("{path}: `{value}` was written, and the kernel made it `{}`", words(&text_of(&found))));
    Ok(Made { found: text_of(&found), remark })
}

/// Puts the old bytes back, unless they are there.
pub(super) fn put_back(system: &dyn System, path: &str, entry: &Entry, meaning: Meaning) -> Back {
    let Some(old) = entry.old.bytes() else {
        return Back::Failed(Refusal::because("restore", path, "the journal does not hold its old bytes"));
    };
    let now = match system.read(path) {
        Ok(now) => now,
        Err(error) if error.is_gone() => return Back::Gone(Some(format!("{path} is no more: nothing to put back"))),
        Err(error) => return Back::Failed(error.into()),
    };
    if now == old {
        return Back::Already;
    }
    let old_text = text_of(&entry.old);
    // A file that shows all its choices takes only the chosen word; an empty write would not reach the kernel.
    let bytes = match chosen(&old_text) {
        Some(word) => format!("{word}\n").into_bytes(),
        None if old.is_empty() => b"\n".to_vec(),
        None => old,
    };
    if let Err(error) = write(system, path, &bytes) {
        return Back::Failed(Refusal::from(error).meaning_of(meaning));
    }
    match system.read(path) {
        Err(error) => return Back::Failed(error.into()),
        Ok(found) => {
            let found = text_of(&Saved::of_bytes(&found));
            if words(&found) != words(&old_text) {
                let reason = format!("it reads `{}` after `{}` was written", words(&found), words(&old_text));
                return Back::Failed(Refusal::because("restore", path, reason));
            }
        }
    }
    let now = text_of(&Saved::of_bytes(&now));
    Back::Restored { remark: foreign(path, &now, entry) }
}

/// A word on a value that is neither the old one nor what was set.
fn foreign(path: &str, now: &str, entry: &Entry) -> Option<String> {
    let new = entry.new.as_deref()?;
    let ours = [Some(new), entry.found.as_deref(), entry.earlier.as_deref()];
    let is_ours = ours.iter().flatten().any(|ours| words(ours) == words(now) || chosen(now) == Some(ours));
    (!is_ours).then(|| format!("{path} had been set to `{}` by somebody else: put back all the same", words(now)))
}

/// One write, tried again a few times while the kernel says it is busy.
pub(super) fn write(system: &dyn System, path: &str, bytes: &[u8]) -> Result<(), SystemError> {
    for _ in 1..TRIES {
        match system.write(path, bytes) {
            Err(error) if matches!(error.errno(), EINTR | EAGAIN | EBUSY) => system.pause(Duration::from_millis(20)),
            result => return result,
        }
    }
    system.write(path, bytes)
}

/// What errnos mean for files without a meaning of their own.
pub(super) fn meaning(errno: i32) -> Option<&'static str> {
    match errno {
        1 | 13 => Some("not permitted: run as root"),
        22 => Some("the kernel does not take this value"),
        30 => Some("mounted read-only here, as in containers"),
        _ => None,
    }
}

impl Refusal {
    pub(super) fn meaning_of(self, meaning: Meaning) -> Self {
        let errno = self.source.errno();
        self.meaning(meaning(errno))
    }
}

pub(super) fn text_of(saved: &Saved) -> String {
    String::from_utf8_lossy(&saved.bytes().unwrap_or_default()).into_owned()
}

/// The text with single blanks.
pub(super) fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// `kyber` of `none [kyber] bfq`.
fn chosen(text: &str) -> Option<&str> {
    let mut words = text.split_whitespace().filter_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    let first = words.next()?;
    let one_of_many = words.next().is_none() && text.split_whitespace().nth(1).is_some();
    one_of_many.then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_is_the_one_word_in_brackets() {
        assert_eq!(chosen("none [kyber] bfq\n"), Some("kyber"));
        assert_eq!(chosen("[none]\n"), None);
        assert_eq!(chosen("[a] [b]"), None);
        assert_eq!(chosen("4096\t87380\t6291456\n"), None);
    }

    #[test]
    fn blanks_do_not_make_a_value_another_one() {
        assert!(is_right(&Saved::of_bytes(b"4096\t87380\t6291456\n"), "4096 87380 6291456"));
        assert!(!is_right(&Saved::of_bytes(b"0\n"), "00"));
    }
}
