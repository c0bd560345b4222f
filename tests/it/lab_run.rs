//! A schedule in a lab's machines: with guests that are played by a script, and with one that really boots.
//!
//! A played guest is a shell script in the place of `vng`. It says word by word what a guest would say in the shared
//! folder, and dies, hangs or tears a line where the test wants it to.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use irqlab::recording::{Fault, Recording};
use irqlab::run::Outcome;
use irqlab::{lab::LabError, recording};
use play::{Play, Step, boots_of};

use crate::probe;

#[path = "lab_run/play.rs"]
mod play;
#[path = "lab_run/real.rs"]
mod real;

/// Two boots in each of two blocks, two trials in each.
const TWO_BY_TWO: &str = "\
experiment played {
  lab { cpus 2; memory 256MiB }
  vary apic {
    on { boot \"apic=verbose\" }
    off { boot \"noapic\" }
  }
  vary panic {
    a { sysctl kernel.panic=1 }
    b { sysctl kernel.panic=2 }
  }
  workload w { run \"true\" }
  measure w.real lower_is_better
  warmup 0; repeat 2; order blocks seed 7
  compare apic against on by w.real
}
";

/// Whether this machine lets the guard have a process namespace.
fn can_guard() -> bool {
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-current-user"]);
    }
    let works = command.args(["--pid", "--fork", "--kill-child", "--", "true"]).status().is_ok_and(|s| s.success());
    if !works {
        probe::skip("no process namespaces here, so no lab is booted");
    }
    works
}

/// `(number, attempt, boot, valid)` of each line.
fn told(recording: &Recording) -> Vec<(u32, u32, u32, bool)> {
    let line = |trial: &recording::Trial| (trial.number, trial.attempt, trial.boot.unwrap(), trial.faults.is_empty());
    recording.trials.iter().map(line).collect()
}

fn machine_failed(faults: &[Fault]) -> (&str, &str) {
    match faults {
        [Fault::MachineFailed { detail, console }] => (detail, console),
        _ => panic!("{faults:?}"),
    }
}

/// Processes with that word among their arguments.
fn running(word: &str) -> usize {
    let processes = procfs::process::all_processes().unwrap().flatten();
    processes.filter(|process| process.cmdline().is_ok_and(|words| words.iter().any(|found| found == word))).count()
}

/// Waits for a condition another process brings about.
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within a minute");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_guests_record_is_merged_under_the_numbers_of_the_whole_run() {
    if !can_guard() {
        return;
    }
    let mut play = Play::new(TWO_BY_TWO);
    for boot in boots_of(&play.experiment) {
        let trials = boot.iter().flat_map(|planned| [Step::Begin(planned.number, 0), Step::Trial(planned.number, 0)]);
        let steps: Vec<Step> = [Step::Up, Step::Header].into_iter().chain(trials).chain([Step::Complete]).collect();
        play.boot(&boot, &steps);
    }
    assert_eq!(play.run().unwrap(), Outcome::Complete { invalid: 0 });
    let recording = play.recording();
    let expected: Vec<_> = (0..8).map(|number| (number, 0, number / 2 + 1, true)).collect();
    assert_eq!(told(&recording), expected);
    assert_eq!(recording.trials.iter().map(|trial| trial.sequence).collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    let treatments = |recording: &Recording| recording.trials.iter().map(|trial| trial.treatment).collect::<Vec<_>>();
    assert_eq!(treatments(&recording), recording.header.order.iter().map(|p| p.treatment).collect::<Vec<_>>());
    for (index, boot) in recording.header.boots.iter().enumerate() {
        assert_eq!((boot.number as usize, boot.planned as usize), (index + 1, index + 1));
        assert_eq!(boot.host.kernel_release.as_deref(), Some("6.1.0-played"));
        let command = boot.lab.as_ref().unwrap().command.join(" ");
        assert!(command.contains("SHARED") && !command.contains(play.folder.path().to_str().unwrap()), "{command}");
    }
    for trial in &recording.trials {
        assert_eq!(trial.interrupts[0].description, "PCI-MSI 1-edge played", "said once per guest, known for each");
        let boot = recording.header.boot_of(trial).unwrap();
        let name = &recording.header.design.treatments[trial.treatment].name;
        assert_eq!(&boot.treatments[&trial.treatment].name, name);
        let noapic = boot.options.iter().any(|option| option.option == "noapic");
        assert_eq!(noapic, name.contains("apic=off"), "{name}");
    }
    assert_eq!(recording.end.unwrap().reason, "complete");
    assert_eq!(play.consoles(), ["boot-04.log"], "one console of a machine that did its work is enough");
    assert_eq!(play.left_in_temporary(), 0);
}

#[test]
fn a_machine_that_dies_costs_the_trial_it_was_in_and_no_other() {
    if !can_guard() {
        return;
    }
    let mut play = Play::new(TWO_BY_TWO);
    let boots = boots_of(&play.experiment);
    let (first, second) = (boots[0][0], boots[0][1]);
    let console = Step::Console("[    1.0] \\033[1;31mKernel panic\\033[0m - not syncing: sysrq\\n");
    let begun = [Step::Up, Step::Header, Step::Begin(first.number, 0)];
    play.boot(&boots[0], &[&begun[..], &[console, Step::Torn, Step::Die]].concat());
    // The other one first: it may be that no machine survives the one that died.
    let again = [second, first];
    play.boot(
        &again,
        &[
            Step::Up,
            Step::Header,
            Step::Begin(second.number, 0),
            Step::Trial(second.number, 0),
            Step::Begin(first.number, 1),
            Step::Trial(first.number, 1),
            Step::Complete,
        ],
    );
    play.rest(&boots[1..]);
    assert_eq!(play.run().unwrap(), Outcome::Complete { invalid: 0 });
    let recording = play.recording();
    assert_eq!(
        told(&recording)[..3],
        [(first.number, 0, 1, false), (second.number, 0, 2, true), (first.number, 1, 2, true)]
    );
    assert_eq!(told(&recording).len(), 9);
    let (detail, console) = machine_failed(&recording.trials[0].faults);
    assert_eq!(detail, "the machine ended before its trials did (exit status: 3): the script dies");
    assert_eq!(console, "[    1.0] Kernel panic - not syncing: sysrq");
    let order = play.order(2);
    assert_eq!(order["trials"][0]["number"], second.number);
    assert_eq!(order["trials"][1]["number"], first.number);
    assert_eq!(order["tries"][first.number.to_string()], 1, "one try of it is spent");
    assert_eq!(play.consoles(), ["boot-01.log", "boot-05.log"]);
}

#[test]
fn a_trial_that_no_machine_survives_is_tried_as_often_as_asked() {
    if !can_guard() {
        return;
    }
    let mut play = Play::new(TWO_BY_TWO);
    let boots = boots_of(&play.experiment);
    let (deadly, other) = (boots[0][0], boots[0][1]);
    play.boot(&boots[0], &[Step::Up, Step::Header, Step::Begin(deadly.number, 0), Step::Die]);
    let (begin, trial) = (Step::Begin(other.number, 0), Step::Trial(other.number, 0));
    play.boot(&[other, deadly], &[Step::Up, Step::Header, begin, trial, Step::Begin(deadly.number, 1), Step::Die]);
    play.rest(&boots[1..]);
    assert_eq!(play.run().unwrap(), Outcome::Complete { invalid: 1 });
    let lines = told(&play.recording());
    assert_eq!(lines.iter().filter(|(number, ..)| *number == deadly.number).count(), 2, "{lines:?}");
    assert_eq!(lines.len(), 9);
}

#[test]
fn a_machine_that_hangs_is_ended_with_everything_in_it() {
    if !can_guard() {
        return;
    }
    let mut play = Play::new(TWO_BY_TWO);
    let boots = boots_of(&play.experiment);
    let (first, second) = (boots[0][0], boots[0][1]);
    play.patience.slack = Duration::from_millis(1200);
    play.boot(&boots[0], &[Step::Up, Step::Header, Step::Begin(first.number, 0), Step::Hang("4242.125")]);
    play.rest(&[vec![second, first]]);
    play.rest(&boots[1..]);
    play.experiment.treatments.iter_mut().for_each(|treatment| treatment.workloads[0].timeout_ms = Some(1));
    assert_eq!(play.run().unwrap(), Outcome::Complete { invalid: 0 });
    assert_eq!(running("4242.125"), 0);
    let recording = play.recording();
    let (detail, _) = machine_failed(&recording.trials[0].faults);
    assert!(detail.starts_with("the machine said nothing for"), "{detail}");
}

#[test]
fn machines_that_never_come_up_stop_the_run_with_their_last_words() {
    if !can_guard() {
        return;
    }
    let mut play = Play::new(TWO_BY_TWO);
    let boots = boots_of(&play.experiment);
    for _ in 0..2 {
        play.boot(&boots[0], &[Step::Console("no root file system\\n"), Step::Die]);
    }
    let error = play.run().unwrap_err().to_string();
    assert!(error.starts_with("the machine does not come up: the machine ended"), "{error}");
    assert!(error.ends_with("the end of its console:\nno root file system"), "{error}");
    let recording = play.recording();
    assert_eq!(recording.trials, []);
    assert!(recording.end.unwrap().reason.contains("does not come up"));
}

#[test]
fn a_run_that_stopped_goes_on_with_the_boots_that_have_something_left() {
    if !can_guard() {
        return;
    }
    let mut play = Play::new(&TWO_BY_TWO.replace("warmup 0", "warmup 1"));
    let boots = boots_of(&play.experiment);
    assert_eq!(boots[0].len(), 4, "each machine is warmed up by its own trials");
    let done = |planned: &recording::PlannedTrial| [Step::Begin(planned.number, 0), Step::Trial(planned.number, 0)];
    let three: Vec<Step> = boots[0][..3].iter().flat_map(done).collect();
    let stuck = Step::Failed("the shared folder is full");
    play.boot(&boots[0], &[&[Step::Up, Step::Header][..], &three, &[stuck]].concat());
    let error = play.run().unwrap_err().to_string();
    assert_eq!(error, "the shared folder is full");
    assert_eq!(play.recording().trials.len(), 3, "nothing recorded is lost");

    let last = boots[0][3];
    let warmup = boots[0].iter().find(|planned| planned.block == 0 && planned.treatment == last.treatment).unwrap();
    let again = vec![*warmup, last];
    play.boot(
        &again,
        &[
            Step::Up,
            Step::Header,
            Step::Begin(warmup.number, 1),
            Step::Trial(warmup.number, 1),
            Step::Begin(last.number, 0),
            Step::Trial(last.number, 0),
            Step::Complete,
        ],
    );
    play.rest(&boots[1..]);
    assert_eq!(play.resume().unwrap(), Outcome::Complete { invalid: 0 });
    let recording = play.recording();
    assert_eq!(recording.resumed.len(), 1);
    assert_eq!(
        recording.header.boots.iter().map(|boot| (boot.number, boot.planned)).collect::<Vec<_>>(),
        [(1, 1), (2, 1), (3, 2), (4, 3), (5, 4)]
    );
    let sequences: Vec<u32> = recording.trials.iter().map(|trial| trial.sequence).collect();
    assert_eq!(sequences, (0..sequences.len() as u32).collect::<Vec<_>>());
    let order = play.order(2);
    assert_eq!(order["trials"].as_array().unwrap().len(), 2, "{order}");
    assert_eq!(order["attempts"][warmup.number.to_string()], 1, "a second run of it is not its first try");
}

#[test]
fn what_a_machine_cannot_do_is_told_at_its_place_in_the_file() {
    if !can_guard() {
        return;
    }
    let mut play = Play::new(TWO_BY_TWO);
    let boots = boots_of(&play.experiment);
    let problem = r#"{"file":0,"start":13,"end":19,"message":"there is no irq 99","help":"`irqlab irqs` lists them"}"#;
    play.boot(&boots[0], &[Step::Up, Step::Impossible(problem)]);
    let Err(LabError::Impossible(diagnostics)) = play.run() else { panic!("it ran") };
    let text = irqlab::diagnostic::render(&diagnostics, &play.sources, irqlab::diagnostic::Color::Never);
    assert!(text.contains("error: there is no irq 99") && text.contains("experiment played {"), "{text}");
    assert!(text.contains("help: `irqlab irqs` lists them"), "{text}");
}

#[test]
fn a_full_shared_folder_stops_the_run_and_says_so() {
    if !can_guard() {
        return;
    }
    let mut play = Play::new(TWO_BY_TWO);
    let boots = boots_of(&play.experiment);
    let first = boots[0][0].number;
    let trial = [Step::Begin(first, 0), Step::Trial(first, 0), Step::Begin(boots[0][1].number, 0), Step::Torn];
    play.boot(&boots[0], &[&[Step::Up, Step::Header][..], &trial, &[Step::CannotWrite]].concat());
    let error = play.run().unwrap_err().to_string();
    assert!(error.contains("No space left on device"), "{error}");
    assert_eq!(play.recording().trials.len(), 1);
}

const ALONE: &str = "IRQLAB_TEST_PLAYED";

/// In the process that is killed: a run whose guest hangs in its second trial.
fn run_until_killed(folder: &Path, hang: &'static str) {
    let mut play = Play::new(TWO_BY_TWO);
    let boots = boots_of(&play.experiment);
    let (first, second) = (boots[0][0].number, boots[0][1].number);
    let steps = [Step::Begin(first, 0), Step::Trial(first, 0), Step::Begin(second, 0), Step::Hang(hang)];
    play.boot(&boots[0], &[&[Step::Up, Step::Header][..], &steps].concat());
    std::fs::write(folder.join("at"), play.out.to_str().unwrap()).unwrap();
    std::fs::write(folder.join("temporary"), play.temporary.to_str().unwrap()).unwrap();
    let outcome = play.run().unwrap();
    assert_eq!(outcome, Outcome::Interrupted { signal: "SIGINT".to_owned() });
    let recording = play.recording();
    assert_eq!(recording.trials[1].faults, [Fault::Interrupted { signal: "SIGINT".to_owned() }]);
    assert_eq!(recording.end.unwrap().reason, "interrupted by SIGINT");
    assert_eq!(running(hang), 0);
    assert_eq!(play.left_in_temporary(), 0);
}

/// Runs the test `name` in a process of its own, until its guest hangs in the second trial.
fn start_alone(name: &str, folder: &Path) -> std::process::Child {
    // Blocked here, it is in every thread of that process, and only the one that asks for signals gets them.
    let _signals = irqlab::run::StopSignals::block().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", &format!("lab_run::{name}"), "--nocapture"]).env(ALONE, folder);
    command.spawn().unwrap()
}

/// The recording of a run in another process, once its first trial is merged and its second one runs.
fn in_the_second_trial(folder: &Path, hang: &str) -> std::path::PathBuf {
    let partial = || Some(Path::new(&std::fs::read_to_string(folder.join("at")).ok()?).join("recording.partial.jsonl"));
    wait_until("the second trial", || {
        running(hang) > 0 && partial().is_some_and(|path| recording::read(&path).is_ok_and(|r| r.trials.len() == 1))
    });
    partial().unwrap()
}

#[test]
fn no_guest_outlives_a_killed_runner() {
    const HANG: &str = "4243.375";
    if let Some(folder) = std::env::var_os(ALONE) {
        return run_until_killed(Path::new(&folder), HANG);
    }
    if !can_guard() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut runner = start_alone("no_guest_outlives_a_killed_runner", folder.path());
    let partial = in_the_second_trial(folder.path(), HANG);
    runner.kill().unwrap();
    runner.wait().unwrap();
    wait_until("the guest is gone with its runner", || running(HANG) == 0);
    let recording = recording::read(&partial).unwrap();
    assert_eq!((recording.trials.len(), recording.end), (1, None));
    // Its folder is swept by the next run.
    let temporary = std::fs::read_to_string(folder.path().join("temporary")).unwrap();
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 1);
    irqlab::run::scratch::sweep(Path::new(&temporary));
    assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    std::fs::remove_dir_all(partial.parent().unwrap().parent().unwrap()).unwrap();
}

#[test]
fn a_stop_signal_ends_the_guest_and_records_the_trial_as_interrupted() {
    const HANG: &str = "4244.625";
    if let Some(folder) = std::env::var_os(ALONE) {
        return run_until_killed(Path::new(&folder), HANG);
    }
    if !can_guard() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut runner = start_alone("a_stop_signal_ends_the_guest_and_records_the_trial_as_interrupted", folder.path());
    in_the_second_trial(folder.path(), HANG);
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(runner.id().cast_signed()), nix::sys::signal::Signal::SIGINT)
        .unwrap();
    assert!(runner.wait().unwrap().success());
}
