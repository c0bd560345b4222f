//! `service NAME stopped|started`: a systemd unit, or the processes of that name where systemd does not run.

use std::path::Path;
use std::time::Duration;

use procfs::FromRead;
use procfs::process::Stat;

use super::journal::{Entry, Program, Saved};
use super::{Back, Made, Refusal, System, tasks};
use crate::design::ServiceState;
use crate::host::files::{Files, SystemError};

/// How long a process may take to come or go.
const PATIENCE: Duration = Duration::from_secs(10);
const GLANCE: Duration = Duration::from_millis(50);

/// The balancer: it takes options, stays in the foreground, and moves interrupts no setting names.
pub(super) const IRQBALANCE: &str = "irqbalance";

/// Reads whether the service runs, and all that is needed to start it again. With options it is a program of ours even
/// where systemd runs, because a unit takes none.
pub(super) fn save(system: &dyn System, name: &str, options: &[String]) -> Result<Saved, Refusal> {
    if has_systemd(system) {
        let active = unit_is_active(system, name)?;
        if active || options.is_empty() || !is_running(system, name)? {
            return Ok(Saved::Unit { active });
        }
    }
    Ok(Saved::Processes(programs(system, name)?))
}

fn programs(system: &dyn System, name: &str) -> Result<Vec<Program>, Refusal> {
    let processes = processes(system, name)?;
    roots(&processes).into_iter().map(|pid| program(system, pid)).collect()
}

/// Whether the service is in that state, and was started with those options.
pub(super) fn is_right(now: &Saved, state: ServiceState, options: &[String]) -> bool {
    let has = |program: &Program| options.iter().all(|option| program.arguments.contains(option));
    let takes = || match now {
        Saved::Processes(programs) => programs.iter().any(has),
        _ => false,
    };
    runs(now) == (state == ServiceState::Started) && (options.is_empty() || takes())
}

/// What the journal says of a service that was started.
pub(super) fn started(options: &[String]) -> String {
    [STARTED].into_iter().chain(options.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

const STARTED: &str = "started";

/// Whether the service ran.
pub(super) fn runs(saved: &Saved) -> bool {
    match saved {
        Saved::Unit { active } => *active,
        Saved::Processes(programs) => !programs.is_empty(),
        _ => false,
    }
}

/// Starts or stops the service and waits until it is so.
pub(super) fn make(
    system: &dyn System,
    name: &str,
    (state, options): (ServiceState, &[String]),
    now: &Saved,
) -> Result<Made, Refusal> {
    match (has_systemd(system), state) {
        (true, ServiceState::Started) if options.is_empty() => systemctl(system, "start", name)?,
        (systemd, ServiceState::Started) => {
            if systemd && unit_is_active(system, name)? {
                systemctl(system, "stop", name)?;
            }
            if is_running(system, name)? {
                stop(system, name)?;
            }
            start(system, name, &[with_options(name, options, now)])?;
        }
        (true, ServiceState::Stopped) => systemctl(system, "stop", name)?,
        (false, ServiceState::Stopped) => stop(system, name)?,
    }
    let (found, remark) = match (state, has_systemd(system)) {
        (ServiceState::Started, _) => ("started", None),
        (ServiceState::Stopped, true) => ("stopped", None),
        (ServiceState::Stopped, false) => (
            "stopped",
            Some(format!(
                "service {name}: no systemd here, so its processes were ended; they are started again at the end"
            )),
        ),
    };
    Ok(Made { found: found.to_owned(), remark })
}

/// Brings the service back to whether it ran.
pub(super) fn put_back(system: &dyn System, name: &str, entry: &Entry) -> Back {
    let back = || -> Result<Back, Refusal> {
        let systemd = has_systemd(system);
        let ended_ours = end_ours(system, name, entry)?;
        let runs_now = if systemd { unit_is_active(system, name)? } else { is_running(system, name)? };
        if runs_now == runs(&entry.old) {
            return Ok(if ended_ours { Back::Restored { remark: None } } else { Back::Already });
        }
        let mut remark = None;
        match &entry.old {
            Saved::Unit { active: true } => systemctl(system, "start", name)?,
            Saved::Unit { active: false } => systemctl(system, "stop", name)?,
            Saved::Processes(programs) if programs.is_empty() => stop(system, name)?,
            Saved::Processes(programs) => {
                start(system, name, programs)?;
                remark =
                    Some(format!("service {name} was started again as it ran before; it has a new process number"));
            }
            _ => return Err(Refusal::because("restore", name, "the journal does not hold its old state")),
        }
        Ok(Back::Restored { remark })
    };
    back().unwrap_or_else(Back::Failed)
}

/// The program irqlab starts. It takes the place of one that ran with other options, whose file and environment (its
/// bans are there: `IRQBALANCE_BANNED_CPULIST` …) it has.
fn with_options(name: &str, options: &[String], now: &Saved) -> Program {
    let ran = match now {
        Saved::Processes(programs) => programs.first(),
        _ => None,
    };
    let foreground = (name == IRQBALANCE).then(|| "--foreground".to_owned());
    Program {
        executable: ran.map_or(name, |ran| &ran.executable).to_owned(),
        arguments: [name.to_owned()].into_iter().chain(foreground).chain(options.iter().cloned()).collect(),
        environment: ran.and_then(|ran| ran.environment.clone()),
        directory: None,
        cpus: None,
        user: None,
    }
}

/// Ends the program that was started with options in the place of the service, unless that is how it ran before.
fn end_ours(system: &dyn System, name: &str, entry: &Entry) -> Result<bool, Refusal> {
    let with_options = entry.new.as_deref().is_some_and(|new| new.starts_with(&format!("{STARTED} ")));
    if !with_options || (has_systemd(system) && unit_is_active(system, name)?) {
        return Ok(false);
    }
    let arguments = |programs: &[Program]| programs.iter().map(|program| program.arguments.clone()).collect::<Vec<_>>();
    let now = programs(system, name)?;
    let as_before = matches!(&entry.old, Saved::Processes(old) if arguments(old) == arguments(&now));
    if now.is_empty() || as_before {
        return Ok(false);
    }
    stop(system, name)?;
    Ok(true)
}

/// Whether processes of that name are there; for hosts of which only files are known.
pub(super) fn is_running(files: &dyn Files, name: &str) -> Result<bool, SystemError> {
    Ok(!processes(files, name)?.is_empty())
}

/// The test of `sd_booted(3)`.
fn has_systemd(files: &dyn Files) -> bool {
    files.exists("/run/systemd/system")
}

fn unit_is_active(system: &dyn System, name: &str) -> Result<bool, Refusal> {
    let command = ["systemctl", "show", "--property=LoadState", "--property=ActiveState", name].map(str::to_owned);
    let shown = system.run(&command)?;
    let value = |key: &str| shown.stdout.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
    match (value("LoadState"), value("ActiveState")) {
        (Some("not-found"), _) => Err(Refusal::because("find", name, "systemd has no unit of that name")),
        (_, Some(state)) => Ok(matches!(state, "active" | "activating" | "reloading")),
        _ => Err(Refusal::because("ask systemd about", name, format!("{}: {}", shown.status, shown.stderr))),
    }
}

fn systemctl(system: &dyn System, verb: &str, name: &str) -> Result<(), Refusal> {
    let ended = system.run(&["systemctl".to_owned(), verb.to_owned(), name.to_owned()])?;
    if !ended.success {
        return Err(Refusal::because("change", name, format!("systemctl {verb}: {}", ended.stderr)));
    }
    if unit_is_active(system, name)? != (verb == "start") {
        return Err(Refusal::because("change", name, format!("systemctl {verb} succeeded, and the unit is not so")));
    }
    Ok(())
}

fn stop(system: &dyn System, name: &str) -> Result<(), Refusal> {
    for pid in roots(&processes(system, name)?) {
        match system.terminate(pid) {
            Err(error) if !error.is_gone() => return Err(error.into()),
            _ => {}
        }
    }
    if wait_until(system, || Ok(processes(system, name)?.is_empty()))? {
        return Ok(());
    }
    let reason = "its processes do not end on SIGTERM, or a supervisor starts them again: stop it there";
    Err(Refusal::because("stop", name, reason))
}

fn start(system: &dyn System, name: &str, programs: &[Program]) -> Result<(), Refusal> {
    for program in programs {
        system.start(program)?;
    }
    if wait_until(system, || Ok(!processes(system, name)?.is_empty()))? {
        return Ok(());
    }
    Err(Refusal::because("start", name, "no process of that name stays"))
}

fn wait_until(system: &dyn System, is_so: impl Fn() -> Result<bool, SystemError>) -> Result<bool, SystemError> {
    for _ in 0..PATIENCE.as_millis() / GLANCE.as_millis() {
        system.pause(GLANCE);
        if is_so()? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Number and parent of every process of that name; zombies and kernel threads are none.
fn processes(files: &dyn Files, name: &str) -> Result<Vec<(u32, u32)>, SystemError> {
    let name = name.strip_suffix(".service").unwrap_or(name);
    // The kernel keeps 15 bytes of a name.
    let comm = name.as_bytes().get(..15).map_or(name.into(), String::from_utf8_lossy);
    let mut found = Vec::new();
    for pid in files.list("/proc")?.into_iter().filter_map(|entry| entry.parse::<u32>().ok()) {
        let Some(stat) = stat(files, pid) else { continue };
        if matches!(stat.state, 'Z' | 'X') || stat.flags & tasks::PF_KTHREAD != 0 {
            continue;
        }
        let executable = || files.resolve(&format!("/proc/{pid}/exe")).ok();
        if stat.comm == comm || executable().is_some_and(|path| path.file_name().is_some_and(|file| file == name)) {
            found.push((pid, u32::try_from(stat.ppid).unwrap_or_default()));
        }
    }
    Ok(found)
}

/// Those of them that the others descend from.
fn roots(processes: &[(u32, u32)]) -> Vec<u32> {
    let is_child = |parent: u32| processes.iter().any(|(pid, _)| *pid == parent);
    processes.iter().filter(|(_, parent)| !is_child(*parent)).map(|(pid, _)| *pid).collect()
}

fn stat(files: &dyn Files, pid: u32) -> Option<Stat> {
    let bytes = files.read(&format!("/proc/{pid}/stat")).ok()?;
    Stat::from_read(&bytes[..]).ok()
}

/// All that is needed to start a process again.
fn program(files: &dyn Files, pid: u32) -> Result<Program, Refusal> {
    let path = |name: &str| format!("/proc/{pid}/{name}");
    let words = |name: &str| -> Result<Vec<String>, SystemError> {
        let bytes = files.read(&path(name))?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let text = text.strip_suffix('\0').unwrap_or(&text);
        Ok(if text.is_empty() { Vec::new() } else { text.split('\0').map(str::to_owned).collect() })
    };
    let executable = files.resolve(&path("exe"))?;
    if executable.to_string_lossy().ends_with(" (deleted)") || !is_there(files, &executable) {
        let reason =
            format!("{} was replaced since it started, so it could not be started again", executable.display());
        return Err(Refusal::because("stop", &path("exe"), reason));
    }
    let arguments = words("cmdline")?;
    let variables = words("environ")?;
    let variables = variables.iter().filter_map(|word| word.split_once('=').filter(|(name, _)| !name.is_empty()));
    let status = files.read_text(&path("status"))?;
    let id = |key: &str| -> Option<u32> {
        status.lines().find_map(|line| line.strip_prefix(key))?.split_whitespace().nth(1)?.parse().ok()
    };
    Ok(Program {
        executable: executable.to_string_lossy().into_owned(),
        arguments,
        environment: Some(variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()),
        directory: files.resolve(&path("cwd")).ok().map(|path| path.to_string_lossy().into_owned()),
        cpus: tasks::allowed(&status).map(|cpus| cpus.to_string()),
        user: id("Uid:").zip(id("Gid:")),
    })
}

fn is_there(files: &dyn Files, path: &Path) -> bool {
    path.to_str().is_some_and(|path| files.exists(path))
}
