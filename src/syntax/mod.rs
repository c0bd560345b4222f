//! Text to syntax tree and back. Knows shapes and places, no names, units or defaults.

pub mod ast;
mod parse;
mod scan;

pub use parse::parse;
