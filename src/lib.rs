//! irqlab: declarative experiments on Linux interrupt routing.
//!
//! ```text
//! .exp text ─▶ syntax ─▶ check ─▶ design ─▶ bind ─▶ run ─▶ recording ─▶ analysis ─▶ report
//!              ast       Experiment         Schedule │      JSON Lines   findings     Markdown
//!                                host facts ─────────┘ the only box that touches a kernel, a clock or a process
//! ```

pub mod analysis;
pub mod bind;
pub mod check;
pub mod cli;
pub mod cpu_set;
pub mod design;
pub mod diagnostic;
pub mod host;
pub mod lab;
pub mod recording;
pub mod report;
pub mod run;
pub mod settings;
pub mod source;
pub mod syntax;
pub mod workloads;
