//! Masks that are moved while a trial runs: the journal holds the first one, and none is taken for somebody else's.

use std::collections::BTreeMap;

use irqlab::bind::{Method, Moving, MovingIrq};
use irqlab::cpu_set::{Cpu, Irq};
use irqlab::settings::{Apply, restore_unfinished};

use super::scripted::*;

fn moving(irq: u32, start: u32) -> Vec<Moving> {
    let irqs = vec![MovingIrq { irq: Irq(irq), over: cpus("0-3"), start: Cpu(start) }];
    let cores = (0..4).map(|cpu| cpus(&cpu.to_string())).collect();
    vec![Moving { method: Method::Rotating, every_ms: 10, irqs, cores }]
}

#[test]
fn a_mask_that_was_right_already_is_journaled_before_it_moves() {
    let (host, folder) = (Scripted::new(), state_dir());
    host.set(&mask_path(10), "1\n");
    let before = snapshot(&host);
    let journal = folder.path().join("journal.jsonl");
    let mut settings = open(&host, folder.path());
    assert_eq!(settings.enter(&[route(10, "0"), route(11, "2-3")]).unwrap().written, 0);
    assert!(!journal.exists());
    settings.expect_moves(&moving(10, 0)).unwrap();
    let text = std::fs::read_to_string(&journal).unwrap();
    assert!(text.contains("moving over 0-3") && text.contains(r#""old":{"text":"1\n"}"#), "{text}");
    assert!(!text.contains("irq/11") && !text.contains("eth0-rx-1"), "what does not move is left out: {text}");
    host.set(&mask_path(10), "8\n");
    settings.follow_moves(&BTreeMap::from([(10, cpus("3"))]));
    assert_eq!(settings.verify(), Vec::new());
    let restored = settings.restore();
    assert_eq!((restored.restored, restored.remarks, restored.failed), (1, vec![], vec![]));
    assert_eq!(snapshot(&host), before);
    assert!(!journal.exists());
}

#[test]
fn after_the_moves_the_last_mask_is_the_one_in_force() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[route(10, "0")]).unwrap();
    settings.expect_moves(&moving(10, 0)).unwrap();
    host.set(&mask_path(10), "4\n");
    settings.follow_moves(&BTreeMap::from([(10, cpus("1"))]));
    let deviations = settings.verify();
    assert_eq!((deviations[0].asked.as_str(), deviations[0].found.as_str()), ("cpu 1", "cpu 2"));
    // The next trial begins where the treatment begins.
    assert_eq!(settings.enter(&[route(10, "0")]).unwrap().written, 1);
    assert_eq!((host.text(&mask_path(10)).as_str(), settings.verify()), ("1\n", Vec::new()));
    settings.restore();
    assert_eq!(host.text(&mask_path(10)), "f\n");
}

#[test]
fn a_run_killed_while_masks_move_is_put_back_without_blaming_anybody() {
    for (found, blames) in [("8\n", false), ("1\n", false), ("3\n", true)] {
        let (host, folder) = (Scripted::new(), state_dir());
        let before = snapshot(&host);
        let mut settings = open(&host, folder.path());
        settings.enter(&[route(10, "0")]).unwrap();
        settings.expect_moves(&moving(10, 0)).unwrap();
        host.set(&mask_path(10), found);
        host.dead.set(true);
        drop(settings);
        host.revive();
        let restored = restore_unfinished(&host, folder.path()).unwrap().unwrap();
        assert_eq!((restored.restored, restored.remarks.len()), (1, usize::from(blames)), "{found}: {restored:?}");
        assert_eq!(snapshot(&host), before);
    }
}

#[test]
fn nothing_moves_when_the_journal_cannot_be_written() {
    let (host, folder) = (Scripted::new(), state_dir());
    host.set(&mask_path(10), "1\n");
    let mut settings = open(&host, folder.path());
    settings.enter(&[route(10, "0")]).unwrap();
    // A folder in its place: the file cannot be made.
    std::fs::create_dir(folder.path().join("journal.jsonl")).unwrap();
    let error = settings.expect_moves(&moving(10, 0)).unwrap_err();
    assert_eq!(error.setting, "irq 10 -> cpu 0");
    std::fs::remove_dir(folder.path().join("journal.jsonl")).unwrap();
}
