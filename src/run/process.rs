//! Workloads and backgrounds as the runner holds them: a launcher each, spoken to through a socket, and one place
//! to sleep, [`sleep`], until one of them says something, a stop signal comes or time is up. No ticks.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command as Program, Stdio};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::launch::{Ended, Launch, Message};
use super::leftovers::GRACE;
use super::signals::StopSignals;
use crate::bind::Process;
use crate::cpu_set::CpuSet;
use crate::design::Command;
use crate::workloads::parse::Output;

/// Most of an output that is read for parsing; the rest is on the disk for nothing.
const MAX_OUTPUT_BYTES: u64 = 64 << 20;

/// How much of the end of an output a message quotes.
const TAIL_BYTES: u64 = 2 << 10;

/// Where launchers come from and where output goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Workshop<'a> {
    /// The irqlab program.
    pub program: &'a Path,
    /// Folder for outputs of this trial.
    pub folder: &'a Path,
}

/// How far a process is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Phase {
    /// The launcher prepares it.
    Preparing,
    /// It waits at the barrier.
    Ready,
    /// Released.
    Running,
    /// It ended by itself or by a signal.
    Ended(Ended),
    /// It could not be prepared, started or watched.
    Failed(String),
}

/// How it is being ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    No,
    Term(Instant),
    Kill(Instant),
}

/// One process with its launcher.
#[derive(Debug)]
pub(super) struct Running {
    /// Its name.
    pub name: String,
    /// 0-based copy.
    pub instance: u32,
    /// How far it is.
    pub phase: Phase,
    /// CPUs the kernel allows it.
    pub cpus: CpuSet,
    /// Whether its command was reported as started; only asked of backgrounds.
    pub started: bool,
    /// Whether it ran into its own limit.
    pub timed_out: bool,
    limit: Duration,
    deadline: Option<Instant>,
    stop: Stop,
    launcher: Child,
    socket: UnixStream,
    inbox: Vec<u8>,
    stdout: PathBuf,
    stderr: PathBuf,
}

/// Whether the first start of a command is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Reported.
    Background,
    /// Not reported: the message would wake the runner in the trial.
    Workload,
}

impl Running {
    /// Starts the launcher of one copy of a process and tells it what to prepare.
    pub(super) fn prepare(
        workshop: Workshop<'_>,
        process: &Process,
        (role, instance): (Role, u32),
    ) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let output = |stream: &str| workshop.folder.join(format!("{}.{instance}.{stream}", file_name(&process.name)));
        let (stdout, stderr) = (output("stdout"), output("stderr"));
        let mut command = outer_command(workshop.program, process);
        command.stdin(Stdio::from(OwnedFd::from(theirs))).stdout(Stdio::null());
        let launcher = command.stderr(Stdio::from(File::create_new(&stderr)?)).process_group(0).spawn()?;
        ours.set_nonblocking(true)?;
        let launch = Launch {
            words: words(workshop.program, &process.command),
            cpus: process.cpus.clone(),
            directory: process.directory.clone(),
            environment: process.environment.clone(),
            user: process.user.clone(),
            stdout: stdout.clone(),
            stderr: stderr.clone(),
            restart: process.restart,
            announce: role == Role::Background,
        };
        let mut running = Running {
            name: process.name.clone(),
            instance,
            phase: Phase::Preparing,
            cpus: CpuSet::new(),
            started: false,
            timed_out: false,
            limit: Duration::from_millis(process.timeout_ms),
            deadline: None,
            stop: Stop::No,
            launcher,
            socket: ours,
            inbox: Vec::new(),
            stdout,
            stderr,
        };
        running.say(&format!("{}\n", launch.to_line()));
        Ok(running)
    }

    /// Whether nothing more will come of it.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.phase, Phase::Ended(_) | Phase::Failed(_))
    }

    /// Lets it run; its limit counts from now for a workload.
    pub(super) fn release(&mut self, role: Role) {
        if self.phase == Phase::Ready {
            self.phase = Phase::Running;
            self.say("go\n");
            self.deadline = (role == Role::Workload).then(|| Instant::now().checked_add(self.limit)).flatten();
        }
    }

    /// Asks it to end; escalates by [`Running::escalate`].
    pub(super) fn stop(&mut self) {
        if self.stop == Stop::No && !self.is_over() {
            self.say("term\n");
            self.stop = Stop::Term(Instant::now() + GRACE);
        }
    }

    /// Waits until the launcher of a process that is over is gone too: it ends as soon as it has said so, and must not
    /// be taken for something the workload left behind.
    pub(super) fn see_off(&mut self) {
        if self.is_over() {
            let _ = self.launcher.wait();
        }
    }

    /// Whether it was asked to end.
    pub(super) fn was_stopped(&self) -> bool {
        self.stop != Stop::No
    }

    /// When something has to be done about it even though it says nothing.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        match self.stop {
            _ if self.is_over() => None,
            Stop::No => self.deadline,
            Stop::Term(at) | Stop::Kill(at) => Some(at),
        }
    }

    /// Does what is due: a limit leads to SIGTERM, that to SIGKILL, that to giving up on the launcher.
    pub(super) fn escalate(&mut self, now: Instant) {
        if self.next_deadline().is_none_or(|deadline| now < deadline) {
            return;
        }
        match self.stop {
            Stop::No => {
                self.timed_out = true;
                self.stop();
            }
            Stop::Term(_) => {
                self.say("kill\n");
                self.stop = Stop::Kill(now + GRACE);
            }
            Stop::Kill(_) => self.fail("it did not end after SIGKILL".to_owned()),
        }
    }

    /// Everything it printed, up to a limit; invalid UTF-8 becomes U+FFFD.
    pub(super) fn output(&self) -> Output {
        let read = |path: &Path| {
            let mut bytes = Vec::new();
            // A file that cannot be read is an empty output, and every metric sought in it a named failure.
            let _ = File::open(path).and_then(|file| file.take(MAX_OUTPUT_BYTES).read_to_end(&mut bytes));
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Output { stdout: read(&self.stdout), stderr: read(&self.stderr) }
    }

    /// The end of its standard error, or of its standard output when there is none.
    pub(super) fn tail(&self) -> String {
        let read = |path: &Path| -> io::Result<String> {
            let mut file = File::open(path)?;
            let length = file.metadata()?.len();
            file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
            let mut bytes = Vec::new();
            file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
            Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
        };
        let stderr = read(&self.stderr).unwrap_or_default();
        if stderr.is_empty() { read(&self.stdout).unwrap_or_default() } else { stderr }
    }

    fn fail(&mut self, detail: String) {
        // Without its launcher the group cannot be named; what is left of it is found as a descendant.
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
        self.phase = Phase::Failed(detail);
    }

    /// A launcher that is gone is noticed when it is listened to.
    fn say(&mut self, text: &str) {
        let _ = self.socket.write_all(text.as_bytes());
    }

    /// Reads what the launcher said.
    fn listen(&mut self) {
        let mut bytes = [0; 4096];
        loop {
            match self.socket.read(&mut bytes) {
                Ok(0) => return self.hang_up(),
                Ok(length) => self.inbox.extend_from_slice(&bytes[..length]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return self.hang_up(),
            }
        }
        self.take_messages();
    }

    fn take_messages(&mut self) {
        while let Some(end) = self.inbox.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.inbox.drain(..=end).collect();
            match Message::from_line(&String::from_utf8_lossy(&line)) {
                Some(Message::Ready(cpus)) => {
                    self.cpus = cpus;
                    self.phase = Phase::Ready;
                }
                Some(Message::Started) => self.started = true,
                Some(Message::Ended(ended)) => self.phase = Phase::Ended(ended),
                Some(Message::Failed(detail)) => self.phase = Phase::Failed(detail),
                None => self.phase = Phase::Failed("its launcher said something unknown".to_owned()),
            }
        }
    }

    fn hang_up(&mut self) {
        self.take_messages();
        let status = self.launcher.wait();
        if !self.is_over() {
            let tail = self.tail();
            let end = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            let said = if tail.is_empty() { String::new() } else { format!(": {tail}") };
            self.phase = Phase::Failed(format!("its launcher ended early ({end}){said}"));
        }
    }
}

impl Drop for Running {
    /// On an early return or a panic: the launcher sees the closed socket and ends the group; nobody waits for it.
    fn drop(&mut self) {
        self.see_off();
    }
}

/// Sleeps until a process says something, a stop signal comes, or `deadline`; gives the signal.
pub(super) fn sleep(
    processes: &mut [Running],
    signals: &StopSignals,
    deadline: Option<Instant>,
) -> io::Result<Option<String>> {
    wait_with(processes, Some(signals), deadline)?;
    signals.take()
}

/// Like [`sleep`], deaf to stop signals.
pub(super) fn wait(processes: &mut [Running], deadline: Option<Instant>) -> io::Result<()> {
    wait_with(processes, None, deadline)
}

fn wait_with(processes: &mut [Running], signals: Option<&StopSignals>, deadline: Option<Instant>) -> io::Result<()> {
    let open: Vec<usize> = (0..processes.len()).filter(|index| !processes[*index].is_over()).collect();
    let sockets = open.iter().map(|index| processes[*index].socket.as_fd());
    let mut fds: Vec<PollFd<'_>> =
        sockets.chain(signals.map(AsFd::as_fd)).map(|fd| PollFd::new(fd, PollFlags::POLLIN)).collect();
    match poll(&mut fds, timeout_until(deadline)) {
        Ok(_) | Err(Errno::EINTR) => {}
        Err(error) => return Err(error.into()),
    }
    let spoke: Vec<bool> = fds.iter().map(|fd| fd.any().unwrap_or(true)).collect();
    for (index, _) in open.iter().zip(spoke).filter(|(_, spoke)| *spoke) {
        processes[*index].listen();
    }
    Ok(())
}

/// Rounded up, so that the deadline is past when the sleep is over.
fn timeout_until(deadline: Option<Instant>) -> PollTimeout {
    deadline.map_or(PollTimeout::NONE, |deadline| {
        let left = deadline.saturating_duration_since(Instant::now());
        let left = if left.is_zero() { left } else { left + Duration::from_millis(1) };
        PollTimeout::try_from(left).unwrap_or(PollTimeout::MAX)
    })
}

/// `nice` and `chrt` lift the launcher, before it becomes another user; the command inherits it.
fn outer_command(program: &Path, process: &Process) -> Program {
    let mut words: Vec<std::ffi::OsString> = Vec::new();
    if let Some(nice) = process.nice {
        words.extend(["nice".into(), "-n".into(), nice.to_string().into()]);
    }
    if let Some(priority) = process.fifo {
        words.extend(["chrt".into(), "-f".into(), priority.to_string().into()]);
    }
    words.extend([program.into(), "launch".into()]);
    let mut command = Program::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn words(program: &Path, command: &Command) -> Vec<String> {
    match command {
        Command::Builtin { name, arguments } => {
            let fixed = [program.to_string_lossy().into_owned(), "workload".to_owned(), name.clone()];
            fixed.into_iter().chain(arguments.iter().map(|(key, value)| format!("{key}={value}"))).collect()
        }
        Command::Run(words) => words.clone(),
        Command::Shell(text) => vec!["/bin/sh".to_owned(), "-c".to_owned(), text.clone()],
    }
}

/// Names are identifiers; anything else must not lead out of the folder.
fn file_name(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' }).collect()
}
