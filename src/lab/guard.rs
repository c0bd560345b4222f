//! The guard: what a guest's programs are started by, the hidden subcommand `irqlab guard`, so that none of them
//! outlives the runner, whatever ends it.
//!
//! The kernel sends the guard SIGKILL when the runner is no more, and the guard's death ends the first process of a
//! process namespace of its own (`unshare --kill-child`), with which the kernel ends every process in it, however far
//! it fled. Needs `unshare` of util-linux and no privilege where a user may have namespaces.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::{Pid, geteuid, getppid};

/// Becomes `words` in a namespace that lives no longer than the process `runner`. Comes back only when it cannot.
pub fn guard(runner: i32, words: &[OsString]) -> i32 {
    let become_it = || -> std::io::Result<()> {
        set_pdeathsig(Signal::SIGKILL)?;
        // It may have ended before the line above.
        if getppid() != Pid::from_raw(runner) {
            return Err(std::io::Error::other("the runner has ended"));
        }
        // The runner blocks its stop signals, and what it starts would inherit that.
        SigSet::all().thread_unblock()?;
        let mut command = Command::new("unshare");
        if !geteuid().is_root() {
            command.args(["--user", "--map-current-user"]);
        }
        command.args(["--pid", "--fork", "--kill-child", "--"]).args(words);
        Err(command.exec())
    };
    if let Err(error) = become_it() {
        eprintln!("irqlab guard: {error}");
    }
    1
}
