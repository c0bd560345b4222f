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
    /// The file is right; this host cannot do it. Exit status 4.
    HostCannot {
        /// What is.
        message: String,
        /// What to do.
        help: String,
    },
    /// The grammar allows it, and yet it has no meaning.
    Meaning(Meaning),
    /// The file is right; this version of irqlab does not execute it. Exit status 4.
    NotExecutedYet {
        /// What, in the words of the language.
        what: String,
    },
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
