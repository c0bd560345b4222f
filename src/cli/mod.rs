//! The command line. The only place that knows clap; prints data on stdout and talk on stderr.

pub mod host;
pub mod irqs;
mod table;
