//! The statistics against reference values, and findings of recordings built in code.

#[path = "analysis/findings.rs"]
mod findings;
#[path = "analysis/recordings.rs"]
mod recordings;
#[path = "analysis/vectors.rs"]
mod vectors;
