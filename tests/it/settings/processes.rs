//! Tasks, services and commands.

use irqlab::bind::ChangeKind;
use irqlab::settings::{Apply, restore_unfinished};

use super::scripted::*;

#[test]
fn tasks_move_and_come_back_each_to_its_own_cpus() {
    let (host, folder) = (Scripted::new(), state_dir());
    host.task(Task { tid: 901, parent: RUNNER, start: 90, name: "workload", ..Task::default() });
    let before = snapshot(&host);
    let mut settings = open(&host, folder.path());
    let entered = settings.enter(&[tasks("*", "1")]).unwrap();
    assert_eq!([1, 100, 101].map(|tid| host.mask_of(tid)), ["2", "2", "2"]);
    assert_eq!([2, RUNNER, 901].map(|tid| host.mask_of(tid)), ["1", "f", "f"], "fixed, or exempt");
    assert_eq!(entered.remarks, ["tasks * on cpu 1: 3 moved, 1 kernel threads cannot move (ksoftirqd)"]);
    assert_eq!(settings.verify(), Vec::new());
    settings.enter(&[tasks("ssh*", "2")]).unwrap();
    assert_eq!([1, 100, 101].map(|tid| host.mask_of(tid)), ["f", "4", "6"]);
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    assert_eq!(snapshot(&host), before);
}

#[test]
fn a_task_that_escapes_is_a_deviation() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[tasks("*", "1")]).unwrap();
    host.task(Task { tid: 100, parent: 1, start: 50, name: "sshd", ..Task::default() });
    let deviations = settings.verify();
    assert_eq!(deviations.len(), 1);
    assert_eq!(deviations[0].found, "sshd (100) on 0-3");
}

#[test]
fn tasks_born_under_a_setting_get_what_they_would_have_inherited() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[tasks("*", "1")]).unwrap();
    host.task(Task { tid: 110, parent: 101, start: 300, name: "db-worker", mask: "2", ..Task::default() });
    host.task(Task { tid: 111, parent: 110, start: 301, name: "db-helper", mask: "2", ..Task::default() });
    // Born in the very clock tick of the newest task that was there.
    host.task(Task { tid: 112, parent: 100, start: 80, name: "bash", mask: "2", ..Task::default() });
    // Under the next setting they must not be taken for tasks that were always there.
    settings.enter(&[tasks("*", "0")]).unwrap();
    assert_eq!(host.mask_of(110), "1");
    host.task(Task { tid: 113, parent: 1, start: 400, name: "orphan", mask: "1", ..Task::default() });
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    assert_eq!([110, 111, 112, 113].map(|tid| host.mask_of(tid)), ["6", "6", "f", "f"]);
}

#[test]
fn a_task_that_chose_the_same_cpus_itself_keeps_them() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[tasks("db*", "1")]).unwrap();
    host.task(Task { tid: 120, parent: 100, start: 300, name: "pinned", mask: "2", ..Task::default() });
    host.task(Task { tid: 121, parent: 1, start: 300, name: "other", mask: "2", ..Task::default() });
    host.task(Task { tid: 122, parent: 1, start: 300, name: "db-orphan", mask: "2", ..Task::default() });
    settings.restore();
    assert_eq!([120, 121, 122].map(|tid| host.mask_of(tid)), ["2", "2", "f"]);
}

#[test]
fn heirs_are_found_from_the_journal_alone() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[tasks("*", "1")]).unwrap();
    host.task(Task { tid: 110, parent: 101, start: 300, name: "db-worker", mask: "2", ..Task::default() });
    host.dead.set(true);
    drop(settings);
    host.revive();
    restore_unfinished(&host, folder.path()).unwrap().unwrap();
    assert_eq!([110, 101, 100].map(|tid| host.mask_of(tid)), ["6", "6", "f"]);
}

#[test]
fn a_reused_task_number_is_left_alone() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[tasks("db", "0")]).unwrap();
    host.task(Task { tid: 101, parent: 1, start: 999, name: "other", mask: "8", ..Task::default() });
    let restored = settings.restore();
    assert_eq!((host.mask_of(101).as_str(), restored.failed.len()), ("8", 0));
    assert_eq!(restored.remarks, ["1 tasks that were moved have ended"]);
}

#[test]
fn a_command_runs_once_and_is_undone_once() {
    let (host, folder) = (Scripted::new(), state_dir());
    let run = |command: &str, undo: &str| {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect();
        change(ChangeKind::Command { command: words(command), undo: words(undo) })
    };
    let mut settings = open(&host, folder.path());
    settings.enter(&[run("set x", "unset x")]).unwrap();
    settings.enter(&[run("set x", "unset x"), route(10, "0")]).unwrap();
    settings.enter(&[]).unwrap();
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    let runs: Vec<String> = host.log().into_iter().filter(|entry| entry.starts_with("run")).collect();
    assert_eq!(runs, ["run set x", "run unset x"]);
    // A command that failed may have done its work half way (ethtool -L does): its undo runs, and may fail too.
    assert!(settings.enter(&[run("false", "/bin/false")]).is_err());
    let restored = settings.restore();
    assert_eq!((restored.failed.len(), restored.remarks.len()), (0, 1));
    // An undo that fails after its command succeeded leaves the host changed.
    settings.enter(&[run("true", "/bin/false")]).unwrap();
    assert_eq!(settings.restore().failed.len(), 1);
    assert!(folder.path().join("journal.jsonl").exists());
}
