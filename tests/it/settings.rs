//! Settings and the journal on a scripted host.

use irqlab::bind::{ChangeKind, OnRefusal};
use irqlab::cpu_set::Cpu;
use irqlab::settings::Apply;

use scripted::*;

#[path = "settings/journal.rs"]
mod journal;
#[path = "settings/moving.rs"]
mod moving;
#[path = "settings/processes.rs"]
mod processes;
#[path = "settings/scripted.rs"]
mod scripted;
#[path = "settings/services.rs"]
mod services;

#[test]
fn what_is_right_is_not_written() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    let same = [route(10, "0-3"), route(11, "2-3"), file(SYSCTL, "1"), change(ChangeKind::Smt { on: true })];
    let entered = settings.enter(&same).unwrap();
    assert_eq!((entered.written, entered.already), (0, 4));
    assert_eq!(settings.verify(), Vec::new());
    assert!(!folder.path().join("journal.jsonl").exists());
    settings.enter(&[route(10, "0")]).unwrap();
    settings.enter(&[route(10, "0")]).unwrap();
    assert_eq!(host.log(), ["/proc/irq/10/smp_affinity = 1"]);
    let restored = settings.restore();
    assert_eq!((restored.restored, settings.restore().restored), (1, 0));
    assert_eq!(host.log().len(), 2);
}

#[test]
fn a_treatment_puts_back_what_it_does_not_name() {
    let (host, folder) = (Scripted::new(), state_dir());
    let before = snapshot(&host);
    let mut settings = open(&host, folder.path());
    settings.enter(&[route(10, "0"), file(SYSCTL, "0")]).unwrap();
    settings.enter(&[route(11, "0")]).unwrap();
    assert_eq!([host.text(&mask_path(10)), host.text(&mask_path(11)), host.text(SYSCTL)], ["f\n", "1\n", "1\n"]);
    // Between two treatments somebody moves it: that is not its original place.
    host.set(&mask_path(10), "8\n");
    settings.enter(&[route(10, "1")]).unwrap();
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    assert_eq!(snapshot(&host), before);
}

#[test]
fn a_stranger_is_never_written_to() {
    let facts = [("actions", "virtio9\n"), ("chip_name", "IO-APIC\n"), ("hwirq", "4\n")];
    for (fact, value) in facts {
        let (host, folder) = (Scripted::new(), state_dir());
        let mut settings = open(&host, folder.path());
        settings.enter(&[route(10, "0")]).unwrap();
        host.set(&format!("/sys/kernel/irq/10/{fact}"), value);
        let restored = settings.restore();
        assert_eq!(host.log().len(), 1, "{fact}");
        assert!(restored.remarks[0].contains("irq 10"), "{restored:?}");
        let error = settings.enter(&[route(10, "0")]).unwrap_err();
        assert!(error.to_string().contains("another interrupt"), "{error}");
        assert_eq!((host.log().len(), settings.restore().failed), (1, Vec::new()));
    }
}

#[test]
fn an_interrupt_without_sysfs_is_known_by_its_row() {
    let (host, folder) = (Scripted::new(), state_dir());
    host.remove("/sys/kernel/irq/");
    host.set("/proc/interrupts", "      CPU0 CPU1\n 10:  5  6  PCI-MSIX-0000:00:03.0   10-edge      eth0-rx-0\n");
    let mut settings = open(&host, folder.path());
    settings.enter(&[route(10, "0")]).unwrap();
    host.set("/proc/interrupts", "      CPU0 CPU1\n 10:  5  6  PCI-MSIX-0000:00:03.0   10-edge      eth1-rx-0\n");
    let restored = settings.restore();
    assert!(restored.remarks[0].contains("eth1-rx-0"), "{restored:?}");
    assert!(settings.enter(&[route(11, "0")]).is_err(), "a row that is missing proves nothing");
    assert_eq!(host.log().len(), 1);
}

#[test]
fn a_vanished_interrupt_closes_with_a_remark() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    settings.enter(&[route(10, "0"), route(11, "0")]).unwrap();
    host.remove("/proc/irq/10/");
    assert_eq!(settings.verify().len(), 1);
    let restored = settings.restore();
    assert_eq!((restored.restored, restored.failed.len(), restored.remarks.len()), (1, 0, 1));
    assert!(!folder.path().join("journal.jsonl").exists());
    let error = settings.enter(&[route(10, "0")]).unwrap_err();
    assert_eq!((error.source.errno(), error.meaning), (ENOENT, Some("the interrupt is gone")));
}

#[test]
fn a_foreign_change_is_seen_told_and_put_back() {
    let (host, folder) = (Scripted::new(), state_dir());
    let before = snapshot(&host);
    let mut settings = open(&host, folder.path());
    settings.enter(&[route(10, "0"), file(SYSCTL, "0")]).unwrap();
    host.set(&mask_path(10), "4\n");
    let deviations = settings.verify();
    assert_eq!(deviations.len(), 1);
    assert_eq!((deviations[0].setting.as_str(), deviations[0].found.as_str()), ("irq 10 -> cpu 0", "cpu 2"));
    let restored = settings.restore();
    assert_eq!(restored.remarks.len(), 1, "{restored:?}");
    assert!(restored.remarks[0].contains("somebody else"));
    assert_eq!(snapshot(&host), before);
}

#[test]
fn a_mask_is_written_in_the_layout_of_the_host() {
    let (host, folder) = (Scripted::new(), state_dir());
    host.set(&mask_path(10), "00ff,ffffffff\n");
    let mut settings = open(&host, folder.path());
    settings.enter(&[route(10, "33")]).unwrap();
    assert_eq!(host.text(&mask_path(10)), "0002,00000000\n");
    settings.restore();
    assert_eq!(host.text(&mask_path(10)), "00ff,ffffffff\n");
}

#[test]
fn success_that_changed_nothing_is_an_error() {
    let (mut host, folder) = (Scripted::new(), state_dir());
    host.deaf = Some("/proc/irq/10/smp_affinity");
    let mut settings = open(&host, folder.path());
    let error = settings.enter(&[route(10, "0")]).unwrap_err();
    assert!(error.to_string().contains("threw the mask away"), "{error}");
    assert_eq!(settings.restore().already, 1);
}

#[test]
fn a_refusal_says_what_it_means() {
    let cases = [
        (EIO, "managed"),
        (EPERM, "managed"),
        (EACCES, "root"),
        (EROFS, "read-only"),
        (EINVAL, "online"),
        (EOVERFLOW, "wider"),
        (ENOSPC, "vector"),
        (EBUSY, "busy"),
    ];
    for (errno, word) in cases {
        let (host, folder) = (Scripted::new(), state_dir());
        host.stubborn.borrow_mut().insert(mask_path(11), (errno, 100));
        let mut settings = open(&host, folder.path());
        let error = settings.enter(&[route(10, "0"), route(11, "0")]).unwrap_err();
        assert_eq!((error.source.errno(), error.span.start), (errno, 5));
        assert!(error.meaning.is_some_and(|meaning| meaning.contains(word)), "{error}");
        let tries = host.log().iter().filter(|entry| entry.contains("refused")).count();
        assert_eq!(tries, if errno == EBUSY { 5 } else { 1 }, "no blind retry");
        let restored = settings.restore();
        assert_eq!((restored.restored, restored.already, restored.failed.len()), (1, 1, 0));
        assert!(!folder.path().join("journal.jsonl").exists(), "no journal residue");
    }
}

#[test]
fn a_busy_controller_is_asked_again() {
    let (host, folder) = (Scripted::new(), state_dir());
    host.stubborn.borrow_mut().insert(mask_path(10), (EBUSY, 2));
    let mut settings = open(&host, folder.path());
    assert_eq!(settings.enter(&[route(10, "0")]).unwrap().written, 1);
}

#[test]
fn one_of_many_that_cannot_be_moved_stays_and_is_told() {
    let (host, folder) = (Scripted::new(), state_dir());
    host.stubborn.borrow_mut().insert(mask_path(10), (EIO, 100));
    let mut settings = open(&host, folder.path());
    let skip = change(ChangeKind::Affinity { identity: identity(10), mask: cpus("0"), on_refusal: OnRefusal::Skip });
    for _ in 0..3 {
        let entered = settings.enter(&[skip.clone(), route(11, "0")]).unwrap();
        assert_eq!(entered.remarks, ["irq 10 cannot be moved and stays where it is"]);
        assert_eq!(settings.verify(), Vec::new());
    }
    let tries = host.log().iter().filter(|entry| entry.contains("refused")).count();
    assert_eq!(tries, 1);
}

#[test]
fn smt_states_that_cannot_be_put_back_are_refused() {
    for state in ["forceoff", "notsupported", "notimplemented", "2"] {
        let (host, folder) = (Scripted::new(), state_dir());
        host.set(SMT, &format!("{state}\n"));
        let mut settings = open(&host, folder.path());
        assert!(settings.enter(&[change(ChangeKind::Smt { on: false })]).is_err(), "{state}");
        settings.restore();
        assert_eq!(host.log(), Vec::<String>::new());
    }
    let (host, folder) = (Scripted::new(), state_dir());
    host.remove("/sys/devices/system/cpu/smt/");
    let error = open(&host, folder.path()).enter(&[change(ChangeKind::Smt { on: false })]).unwrap_err();
    assert!(error.to_string().contains("no SMT control"), "{error}");
}

#[test]
fn what_an_smt_toggle_narrows_is_written_back() {
    let (mut host, folder) = (Scripted::new(), state_dir());
    let cpuset = "/sys/fs/cgroup/cpuset/docker/a1/cpuset.cpus";
    host.set("/proc/mounts", "cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n");
    host.set("/sys/fs/cgroup/cpuset/cpuset.cpus", "0-3\n");
    host.set("/sys/fs/cgroup/cpuset/docker/cpuset.cpus", "0-3\n");
    host.set(cpuset, "1-3\n");
    let status = host.text("/proc/101/task/101/status").replace(":\t6", ":\tf");
    let narrowed = vec![
        (mask_path(11), "f\n".to_owned()),
        (cpuset.to_owned(), "1\n".to_owned()),
        ("/proc/101/task/101/status".to_owned(), status),
    ];
    host.effects.push(Effect { cause: SMT, value: "off\n", others: narrowed });
    let before = snapshot(&host);
    let mut settings = open(&host, folder.path());
    settings.enter(&[change(ChangeKind::Smt { on: false })]).unwrap();
    assert_ne!(host.text(cpuset), "1-3\n");
    // The toggle goes on under the next treatment, so what it narrowed must wait.
    settings.enter(&[change(ChangeKind::Smt { on: false }), route(10, "0")]).unwrap();
    assert_eq!(host.text(cpuset), "1\n");
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    assert_eq!(snapshot(&host), before);
    let log = host.log();
    let at = |text: &str| log.iter().position(|entry| entry.starts_with(text)).unwrap();
    assert!(at(&format!("{SMT} = on")) < at(&format!("{} = c", mask_path(11))), "CPUs before masks: {log:?}");
}

#[test]
fn a_cpu_that_somebody_took_offline_does_not_come_back_with_smt() {
    let (mut host, folder) = (Scripted::new(), state_dir());
    let (cpu_1, cpu_3) = ("/sys/devices/system/cpu/cpu1/online", "/sys/devices/system/cpu/cpu3/online");
    host.set(cpu_1, "1\n");
    host.set(cpu_3, "0\n");
    let switched = |state: &str| vec![(cpu_1.to_owned(), state.to_owned()), (cpu_3.to_owned(), state.to_owned())];
    // `on` brings every CPU that is there, as the kernel does.
    host.effects.push(Effect { cause: SMT, value: "off", others: switched("0\n") });
    host.effects.push(Effect { cause: SMT, value: "off\n", others: switched("0\n") });
    host.effects.push(Effect { cause: SMT, value: "on\n", others: switched("1\n") });
    let before = snapshot(&host);
    let mut settings = open(&host, folder.path());
    settings.enter(&[change(ChangeKind::Smt { on: false })]).unwrap();
    assert_eq!(host.text(cpu_1), "0\n");
    settings.enter(&[route(10, "0")]).unwrap();
    assert_eq!((host.text(cpu_1).as_str(), host.text(cpu_3).as_str()), ("1\n", "0\n"), "between two treatments");
    settings.enter(&[change(ChangeKind::Smt { on: false })]).unwrap();
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    assert_eq!(snapshot(&host), before);
}

#[test]
fn what_a_cpu_takes_along_comes_back_after_it() {
    let (mut host, folder) = (Scripted::new(), state_dir());
    let cpu_3 = "/sys/devices/system/cpu/cpu3/online";
    let status = host.text("/proc/101/task/101/status").replace(":\t6", ":\t8");
    host.set("/proc/101/task/101/status", &status);
    host.set(&mask_path(11), "8\n");
    let widened = status.replace(":\t8", ":\tf");
    let others = vec![(mask_path(11), "7\n".to_owned()), ("/proc/101/task/101/status".to_owned(), widened)];
    host.effects.push(Effect { cause: "/sys/devices/system/cpu/cpu3/online", value: "0\n", others });
    let before = snapshot(&host);
    let mut settings = open(&host, folder.path());
    let offline = change(ChangeKind::CpuOnline { cpu: Cpu(3), online: false });
    settings.enter(std::slice::from_ref(&offline)).unwrap();
    assert_eq!((host.text(cpu_3).as_str(), host.text(&mask_path(11)).as_str()), ("0\n", "7\n"));
    // The next whole plot is set up anew: nothing of the first set-up may leak into what counts as original.
    settings.restore();
    assert_eq!(snapshot(&host), before);
    settings.enter(&[offline, route(11, "0")]).unwrap();
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    assert_eq!(snapshot(&host), before);
    let log = host.log();
    let last = |text: &str| log.iter().rposition(|entry| entry.starts_with(text)).unwrap();
    assert!(last(&format!("{cpu_3} = 1")) < last(&format!("{} = 8", mask_path(11))), "CPUs before masks: {log:?}");
    assert!(last(&format!("{cpu_3} = 1")) < last("task 101 on 3"), "CPUs before tasks: {log:?}");
}

#[test]
fn what_an_smt_toggle_narrows_is_never_taken_for_the_first_mask_of_a_route() {
    let (mut host, folder) = (Scripted::new(), state_dir());
    host.effects.push(Effect { cause: SMT, value: "off\n", others: vec![(mask_path(11), "f\n".to_owned())] });
    let before = snapshot(&host);
    // A plan knows the interrupt with its device, a look before the toggle without: it is the same one.
    let mut by_plan = route(11, "0");
    if let ChangeKind::Affinity { identity, .. } = &mut by_plan.kind {
        identity.device = Some("eth0".to_owned());
    }
    let mut settings = open(&host, folder.path());
    settings.enter(&[change(ChangeKind::Smt { on: false }), by_plan]).unwrap();
    assert_eq!(host.text(&mask_path(11)), "1\n");
    assert_eq!(settings.restore().failed, Vec::<String>::new());
    assert!(snapshot(&host) == before, "{:?}", host.log());
}

#[test]
fn cpu_0_without_a_switch_is_online() {
    let (host, folder) = (Scripted::new(), state_dir());
    let mut settings = open(&host, folder.path());
    let cpu = |online| change(ChangeKind::CpuOnline { cpu: Cpu(0), online });
    assert_eq!(settings.enter(&[cpu(true)]).unwrap().already, 1);
    let error = settings.enter(&[cpu(false)]).unwrap_err();
    assert!(error.to_string().contains("CPU 0 cannot be taken offline"), "{error}");
    let missing = change(ChangeKind::CpuOnline { cpu: Cpu(9), online: false });
    let error = settings.enter(&[missing]).unwrap_err();
    assert!(error.to_string().contains("no such CPU"), "{error}");
}

#[test]
fn a_value_the_kernel_makes_another_one_is_told_and_in_force() {
    let (mut host, folder) = (Scripted::new(), state_dir());
    host.effects.push(Effect {
        cause: SYSCTL,
        value: "1000\n",
        others: vec![(SYSCTL.to_owned(), "1024\n".to_owned())],
    });
    let mut settings = open(&host, folder.path());
    let entered = settings.enter(&[file(SYSCTL, "1000")]).unwrap();
    assert!(entered.remarks[0].contains("1024"), "{entered:?}");
    assert_eq!(settings.verify(), Vec::new());
    let restored = settings.restore();
    assert_eq!((restored.restored, restored.remarks.len(), host.text(SYSCTL).as_str()), (1, 0, "1\n"));
}

#[test]
fn a_file_of_choices_gets_its_chosen_word_back() {
    let (mut host, folder) = (Scripted::new(), state_dir());
    let path = "/sys/block/vda/queue/scheduler";
    host.set(path, "none [kyber] bfq\n");
    host.effects.push(Effect {
        cause: path,
        value: "none\n",
        others: vec![(path.to_owned(), "[none] kyber bfq\n".to_owned())],
    });
    host.effects.push(Effect {
        cause: path,
        value: "kyber\n",
        others: vec![(path.to_owned(), "none [kyber] bfq\n".to_owned())],
    });
    let mut settings = open(&host, folder.path());
    assert_eq!(settings.enter(&[file(path, "kyber")]).unwrap().already, 1);
    settings.enter(&[file(path, "none")]).unwrap();
    assert_eq!(settings.verify(), Vec::new());
    let restored = settings.restore();
    assert_eq!((restored.failed.len(), restored.remarks.len()), (0, 0), "{restored:?}");
    assert_eq!(host.text(path), "none [kyber] bfq\n");
}

#[test]
fn only_kernel_files_are_written() {
    let (host, folder) = (Scripted::new(), state_dir());
    host.set("/etc/passwd", "root\n");
    let mut settings = open(&host, folder.path());
    for path in ["/etc/passwd", "/proc/../etc/passwd"] {
        assert!(settings.enter(&[file(path, "x")]).is_err());
    }
    assert_eq!(host.log(), Vec::<String>::new());
}
