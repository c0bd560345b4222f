//! Labs: an experiment's schedule run in virtual machines, one after the other, and what they recorded brought back.
//!
//! Two sides of one program. The host side boots a machine for each whole plot within a block, follows what the guest
//! records and ends what does not go on. The guest side sets its machine up and runs its trials with the ordinary
//! runner. Nothing here changes the host: no mask, no journal, no lock.

mod bounded;
pub mod command;
mod console;
mod exchange;
mod guard;
mod guest;
pub mod kvm;
mod run;
pub mod setup;
pub mod tools;
mod watch;

pub use guard::guard;
pub use guest::guest;
pub use run::{Job, Kernels, LabError, Patience, Stand, run};
