//! What is wrong in a user's file, as data, and its one rendering.

use crate::source::Span;

mod meaning;

pub use meaning::{Meaning, Thing};

/// Something is wrong in the user's file.
#[derive(Debug, Clone, PartialEq)]
pub struct Diagnostic {
    /// What.
    pub kind: Kind,
    /// The smallest text that is wrong.
    pub span: Span,
    /// Other places that matter, each with a word on why.
    pub related: Vec<(Span, String)>,
}

/// One variant for each way a file can be wrong, in alphabetical order. Data only; words are in
/// [`Kind::message`] and [`Kind::help`].
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// The grammar allows it, and yet it has no meaning.
    Meaning(Meaning),
    /// The grammar does not allow what stands here.
    Syntax {
        /// What could stand here, in the user's words.
        expected: Vec<String>,
    },
}

impl Span {
    /// A diagnostic at this place.
    pub fn error(self, kind: impl Into<Kind>) -> Diagnostic {
        Diagnostic { kind: kind.into(), span: self, related: Vec::new() }
    }
}

impl From<Meaning> for Kind {
    fn from(meaning: Meaning) -> Self {
        Kind::Meaning(meaning)
    }
}
