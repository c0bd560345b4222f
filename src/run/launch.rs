//! The launcher: a small process between the runner and each workload, the hidden subcommand `irqlab launch`.
//!
//! It does what has to be done in the new process (CPUs, user, files), waits at the barrier, starts the command in
//! its own process group, sleeps until it ends and reports what the kernel counted for it. So all workloads of a trial
//! are released together, the cost of starting them is outside the numbers, and a hanging command is
//! ended without asking it. When the runner dies, the kernel closes the other end of the socket, and the launcher
//! ends the command's group: nothing of a killed run keeps running.
//!
//! It takes no arguments. Its standard input is one end of a socket pair; one line each way per message:
//!
//! | from the runner | from the launcher |
//! | --- | --- |
//! | a [`Launch`] as JSON | `{"ready":"0-1"}`: prepared; CPUs allowed |
//! | `go` | `{"started":true}`, where it was asked for |
//! | `term`, `kill`: signal the group | `{"ended":{…}}`, a [`Ended`], or `{"failed":"…"}` at any step |

use std::ffi::CString;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::signal::{SigSet, Signal, killpg};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::{Pid, User, initgroups, setgid, setuid};
use serde_json::{Value, json};

use crate::cpu_set::CpuSet;
use crate::workloads::affinity;

/// What a launcher is asked to run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Launch {
    /// Program and arguments.
    pub words: Vec<String>,
    /// CPUs it may use; `None` leaves the inherited ones.
    pub cpus: Option<CpuSet>,
    /// Working directory.
    pub directory: Option<String>,
    /// Added environment.
    pub environment: Vec<(String, String)>,
    /// User to run as, with that user's groups and `HOME`, `USER`, `LOGNAME`.
    pub user: Option<String>,
    /// Takes its standard output; cut to zero length first.
    pub stdout: PathBuf,
    /// Takes its standard error; cut to zero length first.
    pub stderr: PathBuf,
    /// Started again each time it ends with status 0.
    pub restart: bool,
    /// Whether the first start is reported. Not for workloads: the message would wake the runner in the trial.
    pub announce: bool,
}

impl Launch {
    /// The line that asks for it, without newline.
    pub fn to_line(&self) -> String {
        json!({
            "words": self.words,
            "cpus": self.cpus.as_ref().map(CpuSet::to_string),
            "directory": self.directory,
            "environment": self.environment,
            "user": self.user,
            "stdout": self.stdout,
            "stderr": self.stderr,
            "restart": self.restart,
            "announce": self.announce,
        })
        .to_string()
    }

    /// Reads the line again; `None` when it is not one.
    pub fn from_line(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
        let flag = |key: &str| value.get(key).and_then(Value::as_bool);
        let words = value.get("words")?.as_array()?.iter().map(|word| word.as_str().map(str::to_owned));
        let words: Vec<String> = words.collect::<Option<_>>()?;
        let pair = |pair: &Value| Some((pair.get(0)?.as_str()?.to_owned(), pair.get(1)?.as_str()?.to_owned()));
        Some(Launch {
            words: Some(words).filter(|words| !words.is_empty())?,
            cpus: text("cpus").map(|list| CpuSet::parse_list(&list)).transpose().ok()?,
            directory: text("directory"),
            environment: value.get("environment")?.as_array()?.iter().map(pair).collect::<Option<_>>()?,
            user: text("user"),
            stdout: text("stdout")?.into(),
            stderr: text("stderr")?.into(),
            restart: flag("restart")?,
            announce: flag("announce")?,
        })
    }
}

/// How a command ended, and what the kernel counted for it and its waited-for descendants (`getrusage(2)`,
/// `RUSAGE_CHILDREN`). A restarted command has its sums here.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ended {
    /// Exit status, or `None` when a signal ended it.
    pub status: Option<i32>,
    /// Signal that ended it: `SIGSEGV`.
    pub signal: Option<String>,
    /// `CLOCK_MONOTONIC` before its start, nanoseconds.
    pub start_ns: u64,
    /// `CLOCK_MONOTONIC` after its end, nanoseconds.
    pub end_ns: u64,
    /// User CPU time, microseconds.
    pub user_us: u64,
    /// System CPU time, microseconds.
    pub sys_us: u64,
    /// Largest resident set of any one process, KiB. Never below the launcher's own few MiB: the kernel counts the
    /// memory a process had before `execve(2)` (`exec_mmap()`, fs/exec.c).
    pub max_rss_kib: u64,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
    /// Page faults without I/O.
    pub minor_faults: u64,
    /// Page faults with I/O.
    pub major_faults: u64,
}

impl Ended {
    fn to_value(&self) -> Value {
        json!({
            "status": self.status,
            "signal": self.signal,
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "user_us": self.user_us,
            "sys_us": self.sys_us,
            "max_rss_kib": self.max_rss_kib,
            "voluntary_switches": self.voluntary_switches,
            "involuntary_switches": self.involuntary_switches,
            "minor_faults": self.minor_faults,
            "major_faults": self.major_faults,
        })
    }

    fn from_value(value: &Value) -> Option<Self> {
        let count = |key: &str| value.get(key).and_then(Value::as_u64);
        Some(Ended {
            status: value.get("status").and_then(Value::as_i64).and_then(|status| i32::try_from(status).ok()),
            signal: value.get("signal").and_then(Value::as_str).map(str::to_owned),
            start_ns: count("start_ns")?,
            end_ns: count("end_ns")?,
            user_us: count("user_us")?,
            sys_us: count("sys_us")?,
            max_rss_kib: count("max_rss_kib")?,
            voluntary_switches: count("voluntary_switches")?,
            involuntary_switches: count("involuntary_switches")?,
            minor_faults: count("minor_faults")?,
            major_faults: count("major_faults")?,
        })
    }
}

/// What a launcher says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// The command ended.
    Ended(Ended),
    /// It could not be prepared or started.
    Failed(String),
    /// It waits at the barrier, with these CPUs allowed.
    Ready(CpuSet),
    /// The command runs.
    Started,
}

impl Message {
    fn to_line(&self) -> String {
        let value = match self {
            Message::Ended(ended) => json!({ "ended": ended.to_value() }),
            Message::Failed(detail) => json!({ "failed": detail }),
            Message::Ready(cpus) => json!({ "ready": cpus.to_string() }),
            Message::Started => json!({ "started": true }),
        };
        format!("{value}\n")
    }

    /// Reads a line of a launcher; `None` when it is not one.
    pub fn from_line(line: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(line).ok()?;
        let (key, value) = value.as_object()?.iter().next()?;
        match key.as_str() {
            "ended" => Ended::from_value(value).map(Message::Ended),
            "failed" => value.as_str().map(|detail| Message::Failed(detail.to_owned())),
            "ready" => CpuSet::parse_list(value.as_str()?).ok().map(Message::Ready),
            "started" => Some(Message::Started),
            _ => None,
        }
    }
}

/// `CLOCK_MONOTONIC`, nanoseconds.
pub fn monotonic_ns() -> io::Result<u64> {
    Ok(clock_gettime(ClockId::CLOCK_MONOTONIC)?.num_nanoseconds().unsigned_abs())
}

/// The whole of `irqlab launch`; gives the exit status. 2 when it was not started by a runner.
pub fn launch() -> i32 {
    let socket = match io::stdin().as_fd().try_clone_to_owned() {
        Ok(stdin) => UnixStream::from(stdin),
        Err(_) => return 2,
    };
    if socket.peer_addr().is_err() {
        eprintln!("irqlab launch is started by irqlab itself");
        return 2;
    }
    let mut reader = BufReader::new(&socket);
    let mut line = String::new();
    let launch = match reader.read_line(&mut line) {
        Ok(length) if length > 0 => Launch::from_line(&line),
        _ => return 2,
    };
    let result = match launch {
        Some(launch) => obey(&launch, &socket),
        None => Err(format!("not a launch: {}", line.trim_end())),
    };
    match result {
        Ok(()) => 0,
        Err(detail) => {
            say(&socket, &Message::Failed(detail));
            1
        }
    }
}

/// A runner that is gone cannot be told anything; its absence is noticed when it is listened to.
fn say(mut socket: &UnixStream, message: &Message) {
    let _ = socket.write_all(message.to_line().as_bytes());
}

fn obey(launch: &Launch, mut socket: &UnixStream) -> Result<(), String> {
    let (mut command, cpus) = prepare(launch)?;
    say(socket, &Message::Ready(cpus));
    // Not a byte more is read: what comes behind it is for `wait`.
    let mut word = [0; 3];
    if socket.read_exact(&mut word).is_err() || &word != b"go\n" {
        return Ok(());
    }
    let ended = supervise(launch, &mut command, socket)?;
    say(socket, &Message::Ended(ended));
    Ok(())
}

fn prepare(launch: &Launch) -> Result<(Command, CpuSet), String> {
    if let Some(cpus) = &launch.cpus {
        affinity::keep_to(cpus).map_err(|error| match affinity::current() {
            Ok(allowed) => format!("cannot keep it to CPUs {cpus}: {error} (the kernel allows {allowed})"),
            Err(_) => format!("cannot keep it to CPUs {cpus}: {error}"),
        })?;
    }
    let cpus = affinity::current().unwrap_or_default();
    let create =
        |path: &PathBuf| File::create(path).map_err(|error| format!("cannot write {}: {error}", path.display()));
    let mut command = Command::new(&launch.words[0]);
    command.args(&launch.words[1..]).stdin(Stdio::null());
    command.stdout(create(&launch.stdout)?).stderr(create(&launch.stderr)?).process_group(0);
    command.envs(launch.environment.iter().map(|(key, value)| (key, value)));
    if let Some(directory) = &launch.directory {
        command.current_dir(directory);
    }
    if let Some(name) = &launch.user {
        become_user(name, &mut command)?;
    }
    Ok((command, cpus))
}

fn become_user(name: &str, command: &mut Command) -> Result<(), String> {
    let user = User::from_name(name).map_err(|error| format!("cannot look up user `{name}`: {error}"))?;
    let user = user.ok_or_else(|| format!("there is no user `{name}` on this host"))?;
    let refused = |error| format!("cannot become user `{name}`: {error}");
    let c_name = CString::new(name).map_err(|_| format!("`{name}` is not a user name"))?;
    initgroups(&c_name, user.gid).map_err(refused)?;
    setgid(user.gid).map_err(refused)?;
    setuid(user.uid).map_err(refused)?;
    command.env("HOME", &user.dir).env("USER", name).env("LOGNAME", name);
    Ok(())
}

/// Starts the command, again when asked to, and sleeps until it ends.
fn supervise(launch: &Launch, command: &mut Command, socket: &UnixStream) -> Result<Ended, String> {
    let broken = |error: &dyn std::fmt::Display| format!("cannot watch it: {error}");
    let child_signal = SigSet::from(Signal::SIGCHLD);
    let signals = SignalFd::with_flags(&child_signal, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK);
    let signals = signals.map_err(|error| broken(&error))?;
    let start_ns = monotonic_ns().map_err(|error| broken(&error))?;
    let mut stopping = false;
    let mut announced = !launch.announce;
    loop {
        // The runner blocks the stop signals in all its threads; a command must not inherit that.
        SigSet::empty().thread_set_mask().map_err(|error| broken(&error))?;
        let spawned = command.spawn();
        child_signal.thread_set_mask().map_err(|error| broken(&error))?;
        let mut child = spawned.map_err(|error| start_failure(launch, &error))?;
        if !announced {
            say(socket, &Message::Started);
            announced = true;
        }
        let (status, end_ns) =
            wait(&mut child, Watched { socket, signals: &signals }, &mut stopping).map_err(|error| broken(&error))?;
        if !(launch.restart && status.success() && !stopping) {
            return usage(status, start_ns, end_ns).map_err(|error| broken(&error));
        }
    }
}

/// The error of `execve(2)`, or of entering the directory, which is indistinguishable from it by itself.
fn start_failure(launch: &Launch, error: &io::Error) -> String {
    match &launch.directory {
        Some(directory) if !std::path::Path::new(directory).is_dir() => format!("there is no directory `{directory}`"),
        _ if error.kind() == io::ErrorKind::NotFound => format!("there is no program `{}`", launch.words[0]),
        _ => format!("cannot run `{}`: {error}", launch.words[0]),
    }
}

#[derive(Clone, Copy)]
struct Watched<'a> {
    socket: &'a UnixStream,
    signals: &'a SignalFd,
}

fn wait(child: &mut Child, watched: Watched<'_>, stopping: &mut bool) -> io::Result<(ExitStatus, u64)> {
    let group = Pid::from_raw(child.id().cast_signed());
    // Its end may have come while SIGCHLD was not blocked.
    let mut exited = child.try_wait()?;
    let mut end_ns = monotonic_ns()?;
    while exited.is_none() {
        let mut fds = [
            PollFd::new(watched.signals.as_fd(), PollFlags::POLLIN),
            PollFd::new(watched.socket.as_fd(), PollFlags::POLLIN),
        ];
        if let Err(error) = poll(&mut fds, PollTimeout::NONE)
            && error != nix::errno::Errno::EINTR
        {
            return Err(error.into());
        }
        end_ns = monotonic_ns()?;
        let told = fds[1].any().unwrap_or(false);
        while watched.signals.read_signal()?.is_some() {}
        exited = child.try_wait()?;
        if exited.is_none() && told {
            *stopping = true;
            signal_group(group, watched.socket)?;
        }
    }
    let status = exited.expect("the loop ends with a status");
    Ok((status, end_ns))
}

/// Does what the runner said; ends everything when there is no runner any more.
fn signal_group(group: Pid, mut socket: &UnixStream) -> io::Result<()> {
    let mut bytes = [0; 64];
    let length = socket.read(&mut bytes).unwrap_or(0);
    let signal = match &bytes[..length] {
        said if said.is_empty() || said.windows(4).any(|word| word == b"kill") => Signal::SIGKILL,
        _ => Signal::SIGTERM,
    };
    match killpg(group, signal) {
        Err(nix::errno::Errno::ESRCH | nix::errno::Errno::EPERM) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn usage(status: ExitStatus, start_ns: u64, end_ns: u64) -> io::Result<Ended> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let count = |value: i64| value.unsigned_abs();
    let signal = |number: i32| Signal::try_from(number).map_or(format!("signal {number}"), |known| known.to_string());
    Ok(Ended {
        status: status.code(),
        signal: status.signal().map(signal),
        start_ns,
        end_ns,
        user_us: count(usage.user_time().num_microseconds()),
        sys_us: count(usage.system_time().num_microseconds()),
        max_rss_kib: count(usage.max_rss()),
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
        minor_faults: count(usage.minor_page_faults()),
        major_faults: count(usage.major_page_faults()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_and_its_messages_survive_the_socket() {
        let launch = Launch {
            words: vec!["echo".into(), "a b\n\"c\"".into()],
            cpus: Some(CpuSet::parse_list("0-1,8").unwrap()),
            directory: Some("/tmp".into()),
            environment: vec![("K".into(), "V=1".into())],
            user: Some("nobody".into()),
            stdout: "/tmp/o".into(),
            stderr: "/tmp/e".into(),
            restart: true,
            announce: false,
        };
        assert!(!launch.to_line().contains('\n'));
        assert_eq!(Launch::from_line(&launch.to_line()), Some(launch));
        assert_eq!(Launch::from_line("{\"words\":[]}"), None);

        let ended = Ended { status: None, signal: Some("SIGKILL".into()), end_ns: u64::MAX, ..Ended::default() };
        let messages =
            [Message::Ended(ended), Message::Failed("no".into()), Message::Ready(CpuSet::new()), Message::Started];
        for message in messages {
            assert_eq!(Message::from_line(message.to_line().trim_end()), Some(message));
        }
    }
}
