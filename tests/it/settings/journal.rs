//! What failures, kills, torn files and reboots leave of a host.

use std::process::Command;

use irqlab::bind::ChangeKind;
use irqlab::settings::{Apply, OpenError, Settings, restore_unfinished};

use super::scripted::*;
use crate::probe::skip;

#[test]
fn every_failed_step_leaves_old_bytes_or_a_name() {
    let total = {
        let (host, folder) = (Scripted::new(), state_dir());
        let mut settings = open(&host, folder.path());
        host.step.set(0);
        settings.enter(&everything()).unwrap();
        assert_ne!(snapshot(&host), snapshot(&Scripted::new()));
        settings.restore();
        host.step.get()
    };
    assert!(total > 60, "only {total} steps");
    for step in 0..total {
        for errno in [EPERM, EIO, EINVAL, ENOSPC] {
            let (host, folder) = (Scripted::new(), state_dir());
            let before = snapshot(&host);
            let mut settings = open(&host, folder.path());
            host.fail_at(step, Fault::Once(errno));
            let entered = settings.enter(&everything());
            let restored = settings.restore();
            let outcome = format!("{:?} {:?}", restored.failed, restored.remarks);
            for (path, old) in &before {
                if host.files.borrow().get(path) != Some(old) {
                    let number = path.split('/').nth(if path.contains("/irq/") { 3 } else { 2 }).unwrap();
                    let named = outcome.contains(path.as_str())
                        || outcome.contains(&format!("irq {number}"))
                        || outcome.contains(&format!("task {number} "))
                        || outcome.contains("default irq") && path.contains("default");
                    assert!(named, "step {step}, errno {errno}: {path} is neither old nor named in {outcome}");
                    assert!(!restored.failed.is_empty());
                }
            }
            drop(entered);
            // What failed once can be tried again.
            let again = settings.restore();
            assert_eq!(again.failed, Vec::<String>::new(), "step {step}, errno {errno}");
            assert!(snapshot(&host) == before, "step {step}, errno {errno}: {:?}", host.log());
            assert!(!folder.path().join("journal.jsonl").exists());
        }
    }
}

#[test]
fn a_killed_run_is_put_back_from_the_journal_alone() {
    let mut changed = 0;
    for fault in [Fault::Killed, Fault::KilledAfter] {
        for step in 0.. {
            let (host, folder) = (Scripted::new(), state_dir());
            let before = snapshot(&host);
            let mut settings = open(&host, folder.path());
            host.fail_at(step, fault);
            let entered = settings.enter(&everything());
            if entered.is_ok() {
                settings.restore();
            }
            let was_killed = host.dead.get();
            drop(settings);
            changed += u32::from(snapshot(&host) != before);
            host.revive();
            if folder.path().join("journal.jsonl").exists() {
                let refused = Settings::open(&host, folder.path(), "next");
                let refused = refused.map(|_| ()).unwrap_err();
                assert!(refused.to_string().contains("irqlab restore"), "{refused}");
            }
            let restored = restore_unfinished(&host, folder.path()).unwrap().unwrap_or_default();
            assert_eq!(restored.failed, Vec::<String>::new(), "step {step}");
            assert!(snapshot(&host) == before, "step {step}: {restored:?} {:?}", host.log());
            host.revive();
            assert_eq!(restore_unfinished(&host, folder.path()).unwrap(), None);
            assert_eq!(host.log(), Vec::<String>::new());
            if !was_killed {
                break;
            }
        }
    }
    assert!(changed > 40, "the runner was hardly ever killed over a changed host: {changed}");
}

#[test]
fn what_an_earlier_treatment_left_is_not_called_somebody_elses() {
    for fault in [Fault::Killed, Fault::KilledAfter] {
        for step in 0.. {
            let (host, folder) = (Scripted::new(), state_dir());
            let before = snapshot(&host);
            let mut settings = open(&host, folder.path());
            settings.enter(&[route(10, "0"), file(SYSCTL, "0")]).unwrap();
            host.step.set(0);
            host.fail_at(step, fault);
            let entered = settings.enter(&[route(10, "1"), file(SYSCTL, "2")]);
            drop(settings);
            host.revive();
            let restored = restore_unfinished(&host, folder.path()).unwrap().unwrap_or_default();
            assert_eq!(restored.remarks, Vec::<String>::new(), "killed at step {step}");
            assert!(snapshot(&host) == before);
            if entered.is_ok() {
                break;
            }
        }
    }
}

#[test]
fn a_torn_journal_restores_what_it_holds() {
    let (host, folder) = (Scripted::new(), state_dir());
    let before = snapshot(&host);
    let mut settings = open(&host, folder.path());
    settings.enter(&everything()).unwrap();
    let after = snapshot(&host);
    let journal = std::fs::read(folder.path().join("journal.jsonl")).unwrap();
    settings.restore();
    drop(settings);
    for length in 0..=journal.len() {
        let host = Scripted::new();
        *host.files.borrow_mut() = after.clone();
        let folder = state_dir();
        std::fs::write(folder.path().join("journal.jsonl"), &journal[..length]).unwrap();
        let restored = restore_unfinished(&host, folder.path()).unwrap().unwrap_or_default();
        assert_eq!(restored.failed, Vec::<String>::new(), "cut at {length}");
        let whole = String::from_utf8_lossy(&journal[..length]).matches("\"change\"").count();
        if whole > 0 && journal[..length].ends_with(b"\n") {
            assert!(restored.restored > 0, "cut at {length}");
        }
        assert!(!folder.path().join("journal.jsonl").exists(), "cut at {length}");
    }
    assert_eq!(snapshot(&host), before);
}

#[test]
fn the_journal_is_on_the_disk_before_the_write() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    // The journal cannot be made: nothing may be written.
    std::fs::create_dir(folder.path().join("journal.jsonl")).unwrap();
    let error = settings.enter(&[route(10, "0")]).unwrap_err();
    assert!(error.to_string().contains("journal.jsonl"), "{error}");
    assert_eq!(host.log(), Vec::<String>::new());
}

#[test]
fn after_a_reboot_only_what_outlives_it_is_put_back() {
    let (host, folder) = (Scripted::new(), state_dir());
    let undo = change(ChangeKind::Command { command: vec!["set".to_owned()], undo: vec!["unset".to_owned()] });
    let mut settings = open(&host, folder.path());
    settings.enter(&[route(10, "0"), undo]).unwrap();
    host.dead.set(true);
    drop(settings);
    host.revive();
    host.set("/proc/sys/kernel/random/boot_id", "boot-2\n");
    let restored = restore_unfinished(&host, folder.path()).unwrap().unwrap();
    assert_eq!(host.log(), ["run unset"]);
    assert!(restored.remarks.iter().any(|remark| remark.contains("booted since")), "{restored:?}");
    assert!(!folder.path().join("journal.jsonl").exists());
}

#[test]
fn an_undo_that_fails_after_a_reboot_is_told_once() {
    let (host, folder) = (Scripted::new(), state_dir());
    let undo = change(ChangeKind::Command { command: vec!["set".to_owned()], undo: vec!["/bin/false".to_owned()] });
    let mut settings = open(&host, folder.path());
    settings.enter(&[undo]).unwrap();
    host.dead.set(true);
    drop(settings);
    host.revive();
    host.set("/proc/sys/kernel/random/boot_id", "boot-2\n");
    assert_eq!(restore_unfinished(&host, folder.path()).unwrap().unwrap().failed.len(), 1);
    assert_eq!(restore_unfinished(&host, folder.path()).unwrap(), None);
}

#[test]
fn what_cannot_be_put_back_keeps_the_journal() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[route(10, "0"), route(11, "0")]).unwrap();
    host.dead.set(true);
    drop(settings);
    host.revive();
    host.stubborn.borrow_mut().insert(mask_path(10), (ENOSPC, 1));
    let restored = restore_unfinished(&host, folder.path()).unwrap().unwrap();
    assert_eq!((restored.restored, restored.failed.len()), (1, 1));
    assert!(restored.failed[0].contains("irq 10") && restored.failed[0].contains("vector"), "{restored:?}");
    let restored = restore_unfinished(&host, folder.path()).unwrap().unwrap();
    assert_eq!((restored.restored, restored.failed.len()), (1, 0));
    assert_eq!(restore_unfinished(&host, folder.path()).unwrap(), None);
}

#[test]
fn dropping_the_settings_puts_the_host_back() {
    let (host, folder) = (Scripted::new(), state_dir());
    let before = snapshot(&host);
    let mut settings = open(&host, folder.path());
    settings.enter(&everything()).unwrap();
    drop(settings);
    assert_eq!(snapshot(&host), before);
}

#[test]
fn a_second_runner_is_refused() {
    let (host, folder) = (Scripted::new(), state_dir());
    let first = open(&host, folder.path());
    let second = Settings::open(&host, folder.path(), "other").map(|_| ()).unwrap_err();
    assert!(matches!(second, OpenError::Locked { pid: Some(pid) } if pid == std::process::id()), "{second}");
    let restore = restore_unfinished(&host, folder.path()).unwrap_err();
    assert!(matches!(restore, OpenError::Locked { .. }));
    drop(first);
    open(&host, folder.path());
}

#[test]
fn the_state_directory_is_private_and_no_symlink() {
    use std::os::unix::fs::PermissionsExt;
    let (host, folder) = (Scripted::new(), state_dir());
    let inner = folder.path().join("var/irqlab");
    drop(open(&host, &inner));
    assert_eq!(std::fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&inner, &link).unwrap();
    for link in [link.clone(), link.join("")] {
        let refused = Settings::open(&host, &link, "x").map(|_| ()).unwrap_err();
        assert!(matches!(refused, OpenError::NotOurs { .. }), "{refused}");
    }
}

#[test]
fn a_journal_of_another_version_is_not_touched() {
    let (host, folder) = (Scripted::new(), state_dir());
    let path = folder.path().join("journal.jsonl");
    std::fs::write(&path, "{\"header\":{\"version\":9,\"something\":\"new\"}}\n").unwrap();
    let refused = restore_unfinished(&host, folder.path()).unwrap_err();
    assert!(matches!(refused, OpenError::Version { version: 9, .. }), "{refused}");
    assert!(path.exists());
}

#[test]
fn bytes_that_are_no_text_come_back_exactly() {
    let (host, folder) = (Scripted::new(), state_dir());
    let path = "/sys/devices/odd";
    let bytes = b"\xff\x00\n".to_vec();
    host.files.borrow_mut().insert(path.to_owned(), bytes.clone());
    let mut settings = open(&host, folder.path());
    settings.enter(&[file(path, "1")]).unwrap();
    let text = std::fs::read_to_string(folder.path().join("journal.jsonl")).unwrap();
    assert!(text.contains("ff000a"), "{text}");
    host.dead.set(true);
    drop(settings);
    host.revive();
    // The scripted host takes text only; what is compared is what would be written.
    host.files.borrow_mut().insert(path.to_owned(), bytes);
    let restored = restore_unfinished(&host, folder.path()).unwrap().unwrap();
    assert_eq!((restored.already, restored.failed.len()), (1, 0));
}

/// A file system of 12 KiB, unmounted when dropped.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn mount() -> Option<Self> {
        let folder = state_dir();
        let mount = Command::new("mount").args(["-t", "tmpfs", "-o", "size=12k", "tmpfs"]).arg(folder.path()).output();
        mount.is_ok_and(|mount| mount.status.success()).then_some(SmallDisk(folder))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_full_disk_tears_no_later_line_and_does_not_stop_the_restore() {
    let Some(disk) = SmallDisk::mount() else { return skip("a small file system cannot be mounted here") };
    let (host, folder, filler) = (Scripted::new(), disk.0.path(), disk.0.path().join("filler"));
    let before = snapshot(&host);
    let mut settings = open(&host, folder);
    settings.enter(&[route(10, "0")]).unwrap();
    std::fs::write(&filler, [0; 4096]).unwrap();
    let error = settings.enter(&[route(10, "0"), file(SYSCTL, &"1".repeat(5000))]).unwrap_err();
    assert_eq!(error.source.errno(), ENOSPC);
    assert_eq!(host.text(SYSCTL).as_bytes(), before[SYSCTL], "no journal, no write");
    std::fs::remove_file(&filler).unwrap();
    settings.enter(&[route(10, "0"), file(SYSCTL, "0")]).unwrap();
    host.fail_at(0, Fault::Killed);
    drop(settings);
    host.revive();
    std::fs::write(folder.join("lock"), "").unwrap();
    std::fs::write(&filler, [0; 4096]).unwrap();
    let _ = std::fs::write(folder.join("more"), [0; 4096]);
    let restored = restore_unfinished(&host, folder).unwrap().unwrap();
    assert_eq!((restored.restored, restored.failed), (2, Vec::new()));
    assert!(snapshot(&host) == before);
}
