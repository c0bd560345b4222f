//! Services, and irqbalance among them: it moves interrupts no route names.

use irqlab::bind::{Change, ChangeKind};
use irqlab::design::ServiceState;
use irqlab::settings::{Apply, restore_unfinished};

use super::scripted::*;

/// A host with irqbalance's program, running under that number where one is given.
fn host(running: Option<u32>) -> Scripted {
    let mut host = Scripted::new();
    host.set("/usr/sbin/irqbalance", "");
    host.links.insert("/proc/700/exe".to_owned(), "/usr/sbin/irqbalance".to_owned());
    if let Some(pid) = running {
        host.task(Task { tid: pid, parent: 1, start: 20, name: "irqbalance", mask: "3", ..Task::default() });
        host.set(&format!("/proc/{pid}/cmdline"), "irqbalance\0--foreground\0");
        host.set(&format!("/proc/{pid}/environ"), "PATH=/bin\0IRQBALANCE_BANNED_CPULIST=1\0");
        host.links.insert(format!("/proc/{pid}/exe"), "/usr/sbin/irqbalance".to_owned());
        host.links.insert(format!("/proc/{pid}/cwd"), "/".to_owned());
    }
    host
}

#[test]
fn a_service_without_systemd_is_ended_first_and_started_last() {
    let (mut host, folder) = (Scripted::new(), state_dir());
    host.task(Task { tid: 300, parent: 1, start: 20, name: "irqbalance", mask: "3", ..Task::default() });
    host.set("/proc/300/cmdline", "irqbalance\0--foreground\0");
    host.set("/proc/300/environ", "PATH=/bin\0LANG=C\0");
    host.set("/usr/sbin/irqbalance", "");
    host.links.insert("/proc/300/exe".to_owned(), "/usr/sbin/irqbalance".to_owned());
    host.links.insert("/proc/300/cwd".to_owned(), "/".to_owned());
    let mut settings = open(&host, folder.path());
    settings.enter(&[route(10, "0"), service(ServiceState::Stopped)]).unwrap();
    assert_eq!(host.log(), ["terminate 300", "/proc/irq/10/smp_affinity = 1"]);
    assert_eq!(settings.verify(), Vec::new());
    let restored = settings.restore();
    assert_eq!(restored.failed, Vec::<String>::new());
    let log = host.log();
    assert_eq!(log[2..], ["/proc/irq/10/smp_affinity = f", "start /usr/sbin/irqbalance irqbalance --foreground"]);
}

#[test]
fn a_service_that_was_started_stops_before_masks_are_put_back() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[service(ServiceState::Started), route(10, "0")]).unwrap();
    assert_eq!(host.log(), ["/proc/irq/10/smp_affinity = 1", "start irqbalance irqbalance --foreground"]);
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    assert_eq!(host.log()[2..], ["terminate 700", "/proc/irq/10/smp_affinity = f"]);
}

#[test]
fn irqbalance_gets_its_options_and_what_it_moved_is_put_back() {
    let (host, folder) = (host(None), state_dir());
    let before = snapshot(&host);
    let mut settings = open(&host, folder.path());
    settings.enter(&[started_with(&["--interval=1"])]).unwrap();
    assert_eq!(host.log(), ["start irqbalance irqbalance --foreground --interval=1"]);
    let journal = std::fs::read_to_string(folder.path().join("journal.jsonl")).unwrap();
    for irq in ["eth0-rx-0", "eth0-rx-1", "nvme0q1"] {
        assert!(journal.contains(irq), "{irq} is on the disk before the balancer starts: {journal}");
    }
    // It works through two trials of that treatment.
    host.set(&mask_path(10), "1\n");
    host.set(&mask_path(12), "2\n");
    settings.enter(&[started_with(&["--interval=1"])]).unwrap();
    assert_eq!((host.text(&mask_path(10)).as_str(), host.log().len()), ("1\n", 1), "its masks stay while it runs");
    assert_eq!(settings.verify(), Vec::new());
    // Under the next treatment it is gone, and so is what it did.
    settings.enter(&[route(11, "0")]).unwrap();
    let log = host.log();
    assert_eq!(log[1], "terminate 700", "it ends before masks are put back");
    assert_eq!([mask_path(10), mask_path(11), mask_path(12)].map(|path| host.text(&path)), ["f\n", "1\n", "f\n"]);
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    assert_eq!(snapshot(&host), before);
}

/// The same interrupt as a plan knows it: with its device.
fn routed_by_plan(irq: u32, list: &str) -> Change {
    let mut route = route(irq, list);
    if let ChangeKind::Affinity { identity, .. } = &mut route.kind {
        identity.device = Some("eth0".to_owned());
    }
    route
}

#[test]
fn what_irqbalance_moved_is_never_taken_for_the_first_mask_of_a_route() {
    for killed in [false, true] {
        let (host, folder) = (host(None), state_dir());
        let before = snapshot(&host);
        let mut settings = open(&host, folder.path());
        settings.enter(&[routed_by_plan(10, "0")]).unwrap();
        settings.enter(&[started_with(&["--interval=1"])]).unwrap();
        host.set(&mask_path(10), "8\n");
        host.set(&mask_path(11), "2\n");
        // The next treatment routes what irqbalance moved.
        settings.enter(&[routed_by_plan(10, "1"), routed_by_plan(11, "0")]).unwrap();
        if killed {
            host.dead.set(true);
            drop(settings);
            host.revive();
            let restored = restore_unfinished(&host, folder.path()).unwrap().unwrap();
            assert_eq!(restored.failed, Vec::<String>::new());
        } else {
            assert_eq!(settings.restore().failed, Vec::<String>::new());
        }
        assert!(snapshot(&host) == before, "killed: {killed}: {:?}", host.log());
    }
}

#[test]
fn an_irqbalance_that_died_is_not_in_force() {
    let (host, folder) = (host(None), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[started_with(&["--interval=1"])]).unwrap();
    host.remove("/proc/700/");
    let deviations = settings.verify();
    assert_eq!((deviations[0].asked.as_str(), deviations[0].found.as_str()), ("started --interval=1", "stopped"));
}

#[test]
fn an_irqbalance_with_other_options_is_replaced_and_comes_back_with_its_bans() {
    let (host, folder) = (host(Some(300)), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[service(ServiceState::Started)]).unwrap();
    assert_eq!(host.log(), Vec::<String>::new(), "it runs already, and nothing was said of options");
    settings.enter(&[started_with(&["--interval=2"])]).unwrap();
    let started = "start /usr/sbin/irqbalance irqbalance --foreground --interval=2";
    assert_eq!(host.log(), ["terminate 300", started]);
    assert!(host.text("/proc/700/environ").contains("IRQBALANCE_BANNED_CPULIST=1"), "its bans are kept");
    assert_eq!(settings.verify(), Vec::new());
    let restored = settings.restore();
    assert_eq!(restored.failed, Vec::<String>::new());
    assert_eq!(host.log()[2..], ["terminate 700", "start /usr/sbin/irqbalance irqbalance --foreground"]);
    assert!(host.text("/proc/700/environ").contains("IRQBALANCE_BANNED_CPULIST=1"));
}

#[test]
fn a_run_killed_under_irqbalance_is_put_back() {
    let (host, folder) = (host(None), state_dir());
    let before = snapshot(&host);
    let mut settings = open(&host, folder.path());
    settings.enter(&[started_with(&["--interval=1"])]).unwrap();
    host.set(&mask_path(12), "2\n");
    host.dead.set(true);
    drop(settings);
    host.revive();
    let restored = restore_unfinished(&host, folder.path()).unwrap().unwrap();
    assert_eq!((restored.failed, restored.remarks), (vec![], vec![]));
    assert_eq!(snapshot(&host), before);
}
