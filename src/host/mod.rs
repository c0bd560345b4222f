//! Facts about a host. Text parsers take bytes and know no files; everything is read through [`files::Files`], so a
//! folder of captured files is a host. Nothing here writes to a host.

pub mod counters;
pub mod files;
pub mod interrupts;
pub mod snapshot;
pub mod stat;
