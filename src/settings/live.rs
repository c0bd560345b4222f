//! The running host as a [`System`]. Obeys; decides nothing and journals nothing.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use nix::sched::{sched_getaffinity, sched_setaffinity};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::unistd::Pid;

use super::{Ended, Program, System};
use crate::cpu_set::{Cpu, CpuSet};
use crate::host::files::{Files, Root, SystemError};

/// The host irqlab runs on.
pub struct Live {
    root: Root,
    /// Programs started and not yet seen to end: they must be waited for, or they stay as zombies.
    children: Mutex<Vec<Child>>,
}

impl Live {
    /// The running host.
    pub fn new() -> Self {
        Live { root: Root::new("/"), children: Mutex::new(Vec::new()) }
    }
}

impl Default for Live {
    fn default() -> Self {
        Live::new()
    }
}

impl Files for Live {
    fn is_live(&self) -> bool {
        true
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, SystemError> {
        self.root.read(path)
    }

    fn list(&self, path: &str) -> Result<Vec<String>, SystemError> {
        self.root.list(path)
    }

    fn mode(&self, path: &str) -> Result<u32, SystemError> {
        self.root.mode(path)
    }

    fn resolve(&self, path: &str) -> Result<PathBuf, SystemError> {
        self.root.resolve(path)
    }
}

impl System for Live {
    fn write(&self, path: &str, bytes: &[u8]) -> Result<(), SystemError> {
        let mut file = OpenOptions::new()
            .write(true)
            .open(self.root.join(path))
            .map_err(|source| SystemError::new("open for writing", path, source))?;
        let length = file.write(bytes).map_err(|source| SystemError::new("write", path, source))?;
        if length != bytes.len() {
            let short = format!("only {length} of {} bytes were taken", bytes.len());
            return Err(SystemError::new("write", path, io::Error::new(io::ErrorKind::WriteZero, short)));
        }
        Ok(())
    }

    fn set_affinity(&self, tid: u32, cpus: &CpuSet) -> Result<(), SystemError> {
        let failed = |source| SystemError::new("set the affinity of", format!("/proc/{tid}"), source);
        let mask = to_nix(cpus).map_err(failed)?;
        sched_setaffinity(pid(tid).map_err(failed)?, &mask).map_err(|errno| failed(errno.into()))
    }

    fn terminate(&self, number: u32) -> Result<(), SystemError> {
        let failed = |source| SystemError::new("terminate", format!("/proc/{number}"), source);
        kill(pid(number).map_err(failed)?, Signal::SIGTERM).map_err(|errno| failed(errno.into()))?;
        Ok(())
    }

    fn run(&self, command: &[String]) -> Result<Ended, SystemError> {
        let (program, arguments) = command.split_first().map_or(("", command), |(first, rest)| (first.as_str(), rest));
        let output = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| SystemError::new("run", program, source))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        Ok(Ended {
            success: output.status.success(),
            status: output.status.to_string(),
            stdout: text(&output.stdout),
            stderr: text(&output.stderr),
        })
    }

    fn start(&self, program: &Program) -> Result<(), SystemError> {
        let failed = |source| SystemError::new("start", &program.executable, source);
        let arguments = program.arguments.split_first();
        let mut command = if let Some(mut command) = unblocking() {
            command.arg(&program.executable);
            command
        } else {
            let mut command = Command::new(&program.executable);
            command.arg0(arguments.map_or(program.executable.as_str(), |(name, _)| name));
            command
        };
        command.args(arguments.map_or(&[][..], |(_, arguments)| arguments));
        if let Some(environment) = &program.environment {
            command.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        if let Some(directory) = &program.directory {
            command.current_dir(directory);
        }
        if let Some((user, group)) = program.user.filter(|(user, _)| *user != nix::unistd::geteuid().as_raw()) {
            command.uid(user).gid(group);
        }
        // Its own process group: a Ctrl-C meant for irqlab must not end it.
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
        let child = spawn_on(&mut command, program.cpus.as_deref()).map_err(failed)?;
        if let Ok(mut children) = self.children.lock() {
            children.push(child);
        }
        Ok(())
    }

    fn own_pid(&self) -> u32 {
        std::process::id()
    }

    fn is_root(&self) -> bool {
        nix::unistd::geteuid().is_root()
    }

    fn pause(&self, time: Duration) {
        std::thread::sleep(time);
        if let Ok(mut children) = self.children.lock() {
            children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        }
    }
}

/// A run blocks the signals that stop it, and what it starts would inherit that: a daemon nothing ends but SIGKILL.
/// Unblocking them here, even for a moment, would let a waiting one end the run with the host changed, so `env` of
/// coreutils (since 8.31) does it in the new process. `None` when nothing is blocked or this host's `env` cannot.
fn unblocking() -> Option<Command> {
    const ENV: &str = "/usr/bin/env";
    const OPTION: &str = "--default-signal=HUP,INT,TERM";
    let blocked = SigSet::thread_get_mask().ok()?;
    if ![Signal::SIGHUP, Signal::SIGINT, Signal::SIGTERM].into_iter().any(|signal| blocked.contains(signal)) {
        return None;
    }
    let mut probe = Command::new(ENV);
    probe.args([OPTION, "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().ok().filter(std::process::ExitStatus::success)?;
    let mut command = Command::new(ENV);
    command.arg(OPTION);
    Some(command)
}

/// Starts a child on `cpus`. It inherits the affinity of the thread that starts it, so that thread goes there first
/// and comes back.
fn spawn_on(command: &mut Command, cpus: Option<&str>) -> io::Result<Child> {
    let this = Pid::from_raw(0);
    let Some(cpus) = cpus.and_then(|cpus| CpuSet::parse_list(cpus).ok()) else {
        return command.spawn();
    };
    let before = sched_getaffinity(this)?;
    sched_setaffinity(this, &to_nix(&cpus)?)?;
    let child = command.spawn();
    sched_setaffinity(this, &before)?;
    child
}

fn pid(number: u32) -> io::Result<Pid> {
    // 0 is the caller itself, and negative numbers are process groups.
    match i32::try_from(number) {
        Ok(number) if number > 0 => Ok(Pid::from_raw(number)),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{number} is not a process number"))),
    }
}

fn to_nix(cpus: &CpuSet) -> io::Result<nix::sched::CpuSet> {
    let mut set = nix::sched::CpuSet::new();
    for Cpu(cpu) in cpus.iter() {
        if set.set(cpu as usize).is_err() {
            let limit = nix::sched::CpuSet::count();
            let text = format!("CPU {cpu} is beyond the {limit} CPUs irqlab can bind a task to");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        }
    }
    Ok(set)
}
