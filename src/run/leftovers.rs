//! Processes that workloads left behind, however far they fled: the runner is a child subreaper, so whoever loses
//! its parent becomes a child of the runner, also after `setsid(2)` and a double fork.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::prctl::set_child_subreaper;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpid};

/// How long a process may take to end after SIGTERM before SIGKILL.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// How long one may take to vanish after SIGKILL: longer only in an uninterruptible wait.
const LAST_GRACE: Duration = Duration::from_secs(5);

/// Between two looks at processes that are ending. Only between trials.
const LOOK: Duration = Duration::from_millis(5);

/// A process: its number alone may be another's tomorrow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Identity {
    pid: i32,
    start_time: u64,
}

/// Descendants that were there before the workloads, such as a service a setting has started: not to be touched.
#[derive(Debug, Clone, Default)]
pub(super) struct Kept(BTreeSet<Identity>);

/// Orphaned descendants come to this process from now on (`PR_SET_CHILD_SUBREAPER`, since 3.4).
pub(super) fn adopt() -> io::Result<()> {
    Ok(set_child_subreaper(true)?)
}

impl Kept {
    /// Everything that descends from this process now.
    pub(super) fn now() -> io::Result<Self> {
        Ok(Kept(descendants(&BTreeSet::new())?.into_keys().collect()))
    }

    /// Ends every other descendant: SIGTERM, SIGKILL after [`GRACE`]; reaps what became a child. Gives the names of
    /// those that had to be ended, and of those that would not, which is an error of the host.
    pub(super) fn end_all_others(&self) -> io::Result<Ended> {
        let mut ended = Ended::default();
        let began = Instant::now();
        let mut told: BTreeSet<Identity> = BTreeSet::new();
        loop {
            let mut alive = BTreeMap::new();
            for (identity, process) in descendants(&self.0)? {
                if process.zombie {
                    reap(identity.pid);
                } else {
                    alive.insert(identity, process.name);
                }
            }
            if alive.is_empty() {
                return Ok(ended);
            }
            if began.elapsed() > GRACE + LAST_GRACE {
                ended.stuck = alive.into_values().collect();
                return Ok(ended);
            }
            let signal = if began.elapsed() > GRACE { Signal::SIGKILL } else { Signal::SIGTERM };
            for (identity, name) in alive {
                if told.insert(identity) {
                    ended.left_behind.push(name);
                    tell(identity.pid, signal)?;
                    // A stopped process hears SIGTERM only when it goes on.
                    tell(identity.pid, Signal::SIGCONT)?;
                } else if signal == Signal::SIGKILL {
                    tell(identity.pid, signal)?;
                }
            }
            std::thread::sleep(LOOK);
        }
    }
}

/// What was found and ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Ended {
    /// Command names of processes that were still there.
    pub left_behind: Vec<String>,
    /// Those that did not even end with SIGKILL.
    pub stuck: Vec<String>,
}

struct Process {
    name: String,
    zombie: bool,
}

/// Those in `kept` and what descends from them are left out.
fn descendants(kept: &BTreeSet<Identity>) -> io::Result<BTreeMap<Identity, Process>> {
    let mut children: BTreeMap<i32, Vec<(Identity, Process)>> = BTreeMap::new();
    for process in procfs::process::all_processes().map_err(io::Error::other)? {
        // One that is gone by now is no descendant any more.
        let Ok(stat) = process.and_then(|process| process.stat()) else { continue };
        let identity = Identity { pid: stat.pid, start_time: stat.starttime };
        let found = Process { zombie: stat.state == 'Z', name: stat.comm };
        children.entry(stat.ppid).or_default().push((identity, found));
    }
    let mut found = BTreeMap::new();
    let mut parents = vec![getpid().as_raw()];
    while let Some(parent) = parents.pop() {
        for (identity, process) in children.remove(&parent).unwrap_or_default() {
            if kept.contains(&identity) {
                continue;
            }
            parents.push(identity.pid);
            found.insert(identity, process);
        }
    }
    Ok(found)
}

fn tell(pid: i32, signal: Signal) -> io::Result<()> {
    match kill(Pid::from_raw(pid), signal) {
        Ok(()) | Err(Errno::ESRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Takes away a dead child; one of somebody else's is theirs to take.
fn reap(pid: i32) {
    let _ = waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG));
}
