//! Facts about a host. Text parsers take bytes and know no files; everything is read through [`files::Files`], so a
//! folder of captured files is a host. Nothing here writes to a host.

pub mod boot_options;
pub mod capture;
mod command_line;
pub mod counters;
pub mod devices;
pub mod disturbances;
pub mod facts;
pub mod files;
pub mod interrupts;
mod irqs;
mod machine;
mod mounts;
mod programs;
mod reader;
pub mod snapshot;
pub mod stat;
pub mod tasks;
mod topology;

pub use facts::read_facts;
pub use programs::on_path;
pub use snapshot::{Counters, Snapshot, between};
