//! A booted machine as the host holds it: its processes behind the guard, one place to sleep, and its end.

use std::ffi::OsStr;
use std::io::{self, PipeReader, Read as _};
use std::os::fd::AsFd as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::run::StopSignals;

/// How much of what the programs around the guest say is kept: the end of it.
const KEPT_BYTES: usize = 16 << 10;

/// How long a machine's processes may take to vanish once they are killed.
const GRACE: Duration = Duration::from_secs(20);

/// Processes of one machine.
#[derive(Debug)]
pub(super) struct Watched {
    guard: Child,
    /// Every process of the machine holds the other end: when all are gone, it closes.
    output: Option<PipeReader>,
    said: Vec<u8>,
}

/// Why a sleep ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Wake {
    /// The machine and all processes around it are gone.
    Gone,
    /// The user wants to stop: `SIGINT`.
    Signal(String),
    /// Time is up.
    Time,
}

impl Watched {
    /// Starts the programs that make a machine, found on `path`.
    pub(super) fn start(program: &Path, words: &[String], path: &OsStr) -> io::Result<Self> {
        let (output, theirs) = io::pipe()?;
        let mut command = Command::new(program);
        command.args(["guard", &std::process::id().to_string(), "--"]).args(words).env("PATH", path);
        // Where every host is alike: `vng` takes its folder into the guest.
        command.current_dir("/").stdin(Stdio::null()).stdout(theirs.try_clone()?).stderr(theirs);
        // A Ctrl-C at the terminal is for the runner.
        let guard = command.process_group(0).spawn()?;
        Ok(Watched { guard, output: Some(output), said: Vec::new() })
    }

    /// Sleeps until something happens, for so long at most.
    pub(super) fn sleep(&mut self, signals: &StopSignals, time: Duration) -> io::Result<Wake> {
        let until = Instant::now() + time;
        loop {
            if let Some(signal) = signals.take()? {
                return Ok(Wake::Signal(signal));
            }
            let Some(output) = &self.output else { return Ok(Wake::Gone) };
            let now = Instant::now();
            if now >= until {
                return Ok(Wake::Time);
            }
            let mut ends =
                [PollFd::new(signals.as_fd(), PollFlags::POLLIN), PollFd::new(output.as_fd(), PollFlags::POLLIN)];
            let left = PollTimeout::try_from(until - now).unwrap_or(PollTimeout::MAX);
            match poll(&mut ends, left) {
                Ok(_) => {}
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
            }
            if ends[1].any().unwrap_or(false) {
                self.listen()?;
            }
        }
    }

    /// Takes what was said; to be called when there is something, or the end.
    fn listen(&mut self) -> io::Result<()> {
        let Some(output) = &mut self.output else { return Ok(()) };
        let mut bytes = [0; 4096];
        match output.read(&mut bytes) {
            Ok(0) => self.output = None,
            Ok(length) => {
                self.said.extend_from_slice(&bytes[..length]);
                let surplus = self.said.len().saturating_sub(KEPT_BYTES);
                self.said.drain(..surplus);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Ends the machine at once, if it is not over, and waits until nothing of it is left. Gives how its first process
    /// ended and what the programs around it said.
    pub(super) fn end(mut self) -> io::Result<(ExitStatus, String)> {
        if self.output.is_some() {
            self.guard.kill()?;
            let until = Instant::now() + GRACE;
            while let Some(output) = &self.output {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(io::Error::other("its processes do not end, not even with SIGKILL"));
                }
                let mut ends = [PollFd::new(output.as_fd(), PollFlags::POLLIN)];
                match poll(&mut ends, PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)) {
                    Ok(0) | Err(Errno::EINTR) => {}
                    Ok(_) => self.listen()?,
                    Err(error) => return Err(error.into()),
                }
            }
        }
        let status = self.guard.wait()?;
        Ok((status, String::from_utf8_lossy(&self.said).into_owned()))
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        // Where an error goes past `end`: the guard's death ends the rest.
        let _ = self.guard.kill();
        let _ = self.guard.wait();
    }
}
