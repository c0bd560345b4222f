//! Text to syntax tree and back. Knows shapes and places, no names, units or defaults.

pub mod ast;
mod format;
mod parse;
mod scan;

pub use format::format;
pub use parse::parse;
