//! The signals that stop a run: blocked in every thread from the start and read where the runner sleeps, so that none
//! of them can end it between a change of the host and its restoration.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};

/// SIGINT, SIGTERM and SIGHUP, blocked.
#[derive(Debug)]
pub struct StopSignals(SignalFd);

impl StopSignals {
    /// Blocks them in the calling thread and those it makes later: to be called before there is another.
    pub fn block() -> io::Result<Self> {
        let set: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
        set.thread_block()?;
        Ok(StopSignals(SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?))
    }

    /// The signal that came, if one did: `SIGINT`. Does not wait.
    pub fn take(&self) -> io::Result<Option<String>> {
        let mut first = None;
        while let Some(info) = self.0.read_signal()? {
            let name = i32::try_from(info.ssi_signo).ok().and_then(|number| Signal::try_from(number).ok());
            first = first.or(Some(name.map_or("a signal", Signal::as_str).to_owned()));
        }
        Ok(first)
    }
}

impl AsFd for StopSignals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
