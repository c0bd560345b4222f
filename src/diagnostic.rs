//! What is wrong in a user's file, as data, and its one rendering.

use crate::source::Span;

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
    /// The grammar does not allow what stands here.
    Syntax {
        /// What could stand here, in the user's words.
        expected: Vec<String>,
    },
}

impl Span {
    /// A diagnostic at this place.
    pub fn error(self, kind: Kind) -> Diagnostic {
        Diagnostic { kind, span: self, related: Vec::new() }
    }
}
