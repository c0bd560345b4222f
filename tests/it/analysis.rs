//! The statistics against reference values, and findings of recordings built in code.

#[path = "analysis/across.rs"]
mod across;
#[path = "analysis/boots.rs"]
mod boots;
#[path = "analysis/factorials.rs"]
mod factorials;
#[path = "analysis/findings.rs"]
mod findings;
#[path = "analysis/flags.rs"]
mod flags;
#[path = "analysis/recordings.rs"]
mod recordings;
#[path = "analysis/two_stage.rs"]
mod two_stage;
#[path = "analysis/vectors.rs"]
mod vectors;
