//! The trial loop: the only box that touches a kernel, a clock or a process. Decides nothing; the schedule did.

pub mod launch;
