//! The trial loop with real processes, a scripted host and scripted settings.
//!
//! Each test runs in a process of its own: the runner ends whatever descends from it, and other tests' children must
//! not be among that.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use irqlab::bind::{ChangeKind, OnRefusal, Schedule};
use irqlab::cpu_set::{Cpu, CpuSet, Irq};
use irqlab::design::{self, Parser};
use irqlab::recording::{self, Decision, Fault, PlannedTrial, Recording, Writer};
use irqlab::run::{BetweenBlocks, Outcome, Plan, RunError};
use stage::{Stage, interrupts, process, shell, words};

#[path = "run/moving.rs"]
mod moving;
#[path = "run/stage.rs"]
mod stage;

const ALONE: &str = "IRQLAB_TEST_ALONE";

/// Runs `body` in a process of its own; `name` is that of the test.
fn alone(name: &str, body: fn()) {
    alone_in("", name, body);
}

/// The same for a test of a module in this file.
fn alone_in(module: &str, name: &str, body: fn()) {
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    let program = std::env::current_exe().unwrap();
    let path = format!("run::{module}{name}");
    let output = Command::new(program).args(["--exact", &path, "--nocapture"]).env(ALONE, "1").output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}

fn one_treatment_not_in_force(faults: &[Fault]) -> &str {
    match faults {
        [Fault::TreatmentNotInForce { detail }] => detail,
        _ => panic!("{faults:?}"),
    }
}

#[test]
fn does_everything_in_order_and_puts_the_host_back() {
    alone("does_everything_in_order_and_puts_the_host_back", || {
        let mut stage = Stage::new(vec![words("work", &["true"])]);
        let (finished, recording) = stage.run();
        assert_eq!(finished.outcome.unwrap(), Outcome::Complete { invalid: 0 });
        assert_eq!(finished.restored.restored, 2);
        let end = recording.end.unwrap();
        assert_eq!((end.reason.as_str(), end.restored), ("complete", 2));
        insta::with_settings!({ snapshot_path => "../snapshots/run", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!("order_of_actions", stage.events.borrow().join("\n"));
        });
    });
}

#[test]
fn records_what_the_kernel_counted_for_the_workload() {
    alone("records_what_the_kernel_counted_for_the_workload", || {
        let burn = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done; (sleep 0.05) ; echo score 12.5; echo odd >&2";
        let mut work = shell("work", burn);
        work.parsers = vec![Parser::Regex { pattern: r"score (\S+)".to_owned(), metric: "score".to_owned() }];
        work.cpus = Some(CpuSet::single(irqlab::workloads::affinity::current().unwrap().first().unwrap()));
        work.instances = 2;
        let began = Instant::now();
        let (_, recording) = Stage::new(vec![work.clone()]).run();
        let trial = &recording.trials[0];
        assert_eq!(trial.faults, []);
        assert_eq!(trial.processes.iter().map(|process| process.instance).collect::<Vec<_>>(), [0, 1]);
        for process in &trial.processes {
            assert_eq!((process.status, process.signal.as_deref()), (Some(0), None));
            assert_eq!(process.values, BTreeMap::from([("score".to_owned(), 12.5)]));
            assert_eq!(Some(&process.cpus), work.cpus.as_ref());
            assert!(process.real_ns >= 50_000_000, "{process:?}");
            assert!(process.user_us > 5_000, "{process:?}");
            assert!(process.real_ns / 1000 + 1000 >= process.user_us, "one CPU: {process:?}");
            assert!(process.minor_faults > 50 && process.max_rss_kib > 300, "{process:?}");
            assert!(process.voluntary_switches >= 1, "{process:?}");
        }
        assert!(trial.duration_ns >= trial.processes.iter().map(|process| process.real_ns).max().unwrap());
        assert!(u128::from(trial.duration_ns) < began.elapsed().as_nanos());
        assert!(trial.runner.switches < 20, "the runner slept: {:?}", trial.runner);
    });
}

#[test]
fn runs_a_built_in_workload_as_a_process() {
    alone("runs_a_built_in_workload_as_a_process", || {
        let builtin = |name: &str, arguments: &[(&str, &str)]| {
            let arguments = arguments.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
            process(name, design::Command::Builtin { name: name.to_owned(), arguments })
        };
        let workloads =
            vec![builtin("primes", &[("up_to", "100000")]), builtin("ipc", &[("kind", "pipe"), ("for", "300ms")])];
        let (_, recording) = Stage::new(workloads).run();
        let trial = &recording.trials[0];
        assert_eq!(trial.faults, []);
        assert_eq!(trial.processes[0].values, BTreeMap::from([("count".to_owned(), 9592.0)]));
        assert!(trial.processes[1].values["seconds"] >= 0.3);
        assert!(trial.processes[1].values.contains_key("rate"));
        assert!(trial.processes[1].notes["cpus"].contains(' '));
    });
}

#[test]
fn environment_directory_and_user_reach_the_command() {
    alone("environment_directory_and_user_reach_the_command", || {
        let mut work = shell("work", "[ \"$KEY\" = 'a b' ] && [ \"$PWD\" = / ] && echo \"nice $(nice) uid $(id -u)\"");
        work.environment = vec![("KEY".to_owned(), "a b".to_owned())];
        work.directory = Some("/".to_owned());
        work.nice = Some(5);
        let number = |pattern: &str, metric: &str| Parser::Regex { pattern: pattern.into(), metric: metric.into() };
        work.parsers = vec![number(r"nice (-?\d+)", "nice"), number(r"uid (\d+)", "uid")];
        let is_root = fs::metadata("/proc/self").is_ok_and(|proc| std::os::unix::fs::MetadataExt::uid(&proc) == 0);
        if is_root {
            work.user = Some("nobody".to_owned());
        } else {
            println!("skipped: becoming another user needs root");
        }
        let (_, recording) = Stage::new(vec![work]).run();
        assert_eq!(recording.trials[0].faults, []);
        let values = &recording.trials[0].processes[0].values;
        // On top of what the tests have themselves.
        let own = Command::new("nice").output().expect("nice runs").stdout;
        let own: f64 = String::from_utf8_lossy(&own).trim().parse().expect("a number");
        assert!((values["nice"] - (own + 5.0).min(19.0)).abs() < 0.1, "{values:?}");
        assert!(!is_root || values["uid"] > 0.0);
    });
}

#[test]
fn names_each_way_a_workload_can_end_badly() {
    alone("names_each_way_a_workload_can_end_badly", || {
        let work = || "work".to_owned();
        let faults = Stage::new(vec![shell("work", "echo on disk; echo broken >&2; exit 3")]).faults();
        assert_eq!(faults, [Fault::ExitStatus { process: work(), status: 3, output: "broken".to_owned() }]);

        let faults = Stage::new(vec![shell("work", "kill -SEGV $$")]).faults();
        assert_eq!(faults, [Fault::Signal { process: work(), signal: "SIGSEGV".to_owned() }]);

        let faults = Stage::new(vec![words("work", &["no-such-program-here"])]).faults();
        let detail = "there is no program `no-such-program-here`".to_owned();
        assert_eq!(faults, [Fault::StartFailed { process: work(), detail }]);

        let mut nowhere = words("work", &["true"]);
        nowhere.directory = Some("/no/such/folder".to_owned());
        let detail = "there is no directory `/no/such/folder`".to_owned();
        assert_eq!(Stage::new(vec![nowhere]).faults(), [Fault::StartFailed { process: work(), detail }]);

        let mut elsewhere = words("work", &["true"]);
        elsewhere.cpus = Some(CpuSet::parse_list("1000").unwrap());
        let faults = Stage::new(vec![elsewhere]).faults();
        assert!(
            matches!(&faults[..], [Fault::StartFailed { detail, .. }] if detail.starts_with("cannot keep it to CPUs 1000")),
            "{faults:?}"
        );

        let mut unread = shell("work", "echo nothing to see");
        unread.parsers = vec![Parser::Regex { pattern: r"rate (\d+)".to_owned(), metric: "rate".to_owned() }];
        let faults = Stage::new(vec![unread]).faults();
        let detail = r"no match of `rate (\d+)` in the output, which ends with `nothing to see`".to_owned();
        assert_eq!(faults, [Fault::OutputNotParsed { process: work(), metric: "rate".to_owned(), detail }]);
    });
}

#[test]
fn a_workload_that_cannot_start_ends_the_others_at_once() {
    alone("a_workload_that_cannot_start_ends_the_others_at_once", || {
        let began = Instant::now();
        let faults =
            Stage::new(vec![words("long", &["sleep", "50"]), words("work", &["no-such-program-here"])]).faults();
        assert!(matches!(&faults[..], [Fault::StartFailed { process, .. }] if process == "work"), "{faults:?}");
        assert!(began.elapsed() < Duration::from_secs(20));
    });
}

#[test]
fn a_limit_holds_for_a_workload_that_ignores_sigterm() {
    alone("a_limit_holds_for_a_workload_that_ignores_sigterm", || {
        let mut deaf = shell("work", "trap '' TERM; while :; do sleep 0.1; done");
        deaf.timeout_ms = 100;
        let mut stage = Stage::new(vec![deaf]);
        let (_, recording) = stage.run();
        let trial = &recording.trials[0];
        assert_eq!(trial.faults, [Fault::TimedOut { process: "work".to_owned(), limit_ms: 100 }]);
        assert_eq!(trial.processes[0].signal.as_deref(), Some("SIGKILL"));
        assert!(trial.runner.switches < 20, "the runner slept: {:?}", trial.runner);
    });
}

/// Processes whose command line has `word` in it.
fn alive(word: &str) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(word)).count()
}

#[test]
fn a_process_that_flees_its_group_is_found_and_the_next_trial_is_unharmed() {
    alone("a_process_that_flees_its_group_is_found_and_the_next_trial_is_unharmed", || {
        let flee = "setsid -f sh -c 'trap \"\" TERM; sleep 987.1; sleep 987.2' >/dev/null 2>&1; sleep 987.3 & true";
        let mut stage = Stage::new(vec![shell("work", flee)]);
        stage.blocks = vec![1, 2];
        let (finished, recording) = stage.run();
        assert_eq!(finished.outcome.unwrap(), Outcome::Complete { invalid: 0 });
        for trial in &recording.trials {
            assert!(
                trial.settings.iter().any(|line| line.starts_with("left behind by workloads, ended: ")),
                "{trial:?}"
            );
        }
        assert_eq!(recording.trials.len(), 2);
        assert_eq!(alive("987."), 0);
    });
}

#[test]
fn a_launcher_is_not_left_behind_by_its_workload() {
    alone("a_launcher_is_not_left_behind_by_its_workload", || {
        let mut stage = Stage::new(vec![words("a", &["true"]), words("b", &["true"]), words("c", &["true"])]);
        stage.blocks = (1..=20).collect();
        let (_, recording) = stage.run();
        let remarks = recording.trials.iter().flat_map(|trial| &trial.settings);
        assert_eq!(remarks.filter(|remark| remark.contains("left behind")).collect::<Vec<_>>(), Vec::<&String>::new());
    });
}

#[test]
fn a_background_runs_before_during_and_not_after_the_workloads() {
    alone("a_background_runs_before_during_and_not_after_the_workloads", || {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark").to_string_lossy().into_owned();
        let mut load = shell("load", &format!("sleep 0.1; touch {mark}; echo now ready; exec sleep 976.1"));
        load.ready = Some("now rea.y".to_owned());
        let mut stage = Stage::new(vec![shell("work", &format!("[ -e {mark} ]"))]).background(load);
        let (_, recording) = stage.run();
        assert_eq!(recording.trials[0].faults, []);
        assert_eq!(recording.trials[0].backgrounds[0].name, "load");
        assert_eq!(alive("976.1"), 0);
    });
}

#[test]
fn a_looping_background_is_started_again_and_its_failure_is_a_fault() {
    alone("a_looping_background_is_started_again_and_its_failure_is_a_fault", || {
        let folder = tempfile::tempdir().unwrap();
        let runs = folder.path().join("runs").to_string_lossy().into_owned();
        let mut load = shell("load", &format!("echo x >> {runs}; sleep 0.01"));
        load.restart = true;
        let wait = format!("until [ -e {runs} ] && [ $(wc -l < {runs}) -ge 3 ]; do sleep 0.01; done");
        assert_eq!(Stage::new(vec![shell("work", &wait)]).background(load).faults(), []);

        let mut load = shell("load", "sleep 0.05; echo no space >&2; exit 1");
        load.restart = true;
        let faults = Stage::new(vec![words("work", &["sleep", "0.5"])]).background(load).faults();
        let detail = "it ended with status 1 before the workloads did: no space".to_owned();
        assert_eq!(faults, [Fault::BackgroundFailed { process: "load".to_owned(), detail }]);
    });
}

#[test]
fn a_background_that_never_becomes_ready_is_a_fault_and_nothing_is_measured() {
    alone("a_background_that_never_becomes_ready_is_a_fault_and_nothing_is_measured", || {
        let mut load = shell("load", "echo starting; sleep 965.1");
        load.ready = Some("listening".to_owned());
        load.timeout_ms = 200;
        let mut stage = Stage::new(vec![words("work", &["true"])]).background(load);
        let (_, recording) = stage.run();
        let detail = "it was not ready after 200 ms: starting".to_owned();
        assert_eq!(recording.trials[0].faults, [Fault::BackgroundFailed { process: "load".to_owned(), detail }]);
        assert_eq!(recording.trials[0].processes, []);
        assert_eq!(alive("965.1"), 0);

        let mut load = shell("load", "echo bad option >&2; exit 2");
        load.ready = Some("listening".to_owned());
        let faults = Stage::new(vec![words("work", &["true"])]).background(load).faults();
        let detail = "it ended with status 2 before the workloads did: bad option".to_owned();
        assert_eq!(faults, [Fault::BackgroundFailed { process: "load".to_owned(), detail }]);
    });
}

#[test]
fn an_invalid_trial_is_repeated_at_the_end_of_its_block() {
    alone("an_invalid_trial_is_repeated_at_the_end_of_its_block", || {
        let folder = tempfile::tempdir().unwrap();
        let mark = folder.path().join("mark").to_string_lossy().into_owned();
        let mut stage = Stage::new(vec![shell("work", &format!("[ -e {mark} ] || {{ touch {mark}; exit 1; }}"))]);
        stage.blocks = vec![0, 1, 1, 2];
        stage.retries = 2;
        fs::write(&mark, "").unwrap();
        stage.treatments.push(stage.treatments[0].clone());
        let (finished, recording) = stage.run();
        assert_eq!(finished.outcome.unwrap(), Outcome::Complete { invalid: 0 });
        let ran = |recording: &Recording| -> Vec<(u32, u32, u32)> {
            recording.trials.iter().map(|trial| (trial.number, trial.attempt, trial.sequence)).collect()
        };
        assert_eq!(ran(&recording), [(0, 0, 0), (1, 0, 1), (2, 0, 2), (3, 0, 3)]);

        fs::remove_file(&mark).unwrap();
        fs::remove_file(stage.path()).unwrap();
        stage.blocks = vec![1, 1, 2];
        let (finished, recording) = stage.run();
        assert_eq!(finished.outcome.unwrap(), Outcome::Complete { invalid: 0 });
        assert_eq!(ran(&recording), [(0, 0, 0), (1, 0, 1), (0, 1, 2), (2, 0, 3)]);
        assert_eq!(recording.remaining(), []);
    });
}

#[test]
fn a_whole_plot_is_set_up_anew_in_every_block() {
    alone("a_whole_plot_is_set_up_anew_in_every_block", || {
        let mut stage = Stage::new(vec![words("work", &["true"])]);
        stage.blocks = vec![0, 1, 1, 2];
        stage.between_blocks = BetweenBlocks::PutBack;
        let (finished, recording) = stage.run();
        assert_eq!(finished.outcome.unwrap(), Outcome::Complete { invalid: 0 });
        let is_told = |event: &&String| event.starts_with("enter") || *event == "restore";
        let events: Vec<String> = stage.events.borrow().iter().filter(is_told).cloned().collect();
        let enter = "enter 1 changes";
        assert_eq!(events, [enter, "restore", enter, enter, "restore", enter, "restore"]);
        assert_eq!((finished.restored.restored, recording.end.unwrap().restored), (6, 6), "every time counts");

        fs::remove_file(stage.path()).unwrap();
        stage.events.borrow_mut().clear();
        stage.between_blocks = BetweenBlocks::GoOn;
        stage.run();
        assert_eq!(stage.events.borrow().iter().filter(|event| *event == "restore").count(), 1);
    });
}

#[test]
fn a_host_that_does_not_come_back_between_blocks_ends_the_run() {
    alone("a_host_that_does_not_come_back_between_blocks_ends_the_run", || {
        let mut stage = Stage::new(vec![words("work", &["true"])]);
        stage.blocks = vec![1, 2];
        stage.between_blocks = BetweenBlocks::PutBack;
        stage.script.stays = vec!["smt: it reads `off`".to_owned()];
        let (finished, recording) = stage.run();
        let error = finished.outcome.unwrap_err();
        assert_eq!(error.to_string(), "the host could not be put back between two blocks: smt: it reads `off`");
        assert_eq!((recording.trials.len(), recording.end.unwrap().not_restored.len()), (1, 1));
    });
}

#[test]
fn trials_name_the_boot_they_ran_in() {
    alone("trials_name_the_boot_they_ran_in", || {
        let mut stage = Stage::new(vec![words("work", &["true"])]);
        stage.boot = Some(3);
        let (_, recording) = stage.run();
        assert_eq!(recording.trials[0].boot, Some(3));
    });
}

#[test]
fn repetitions_have_an_end() {
    alone("repetitions_have_an_end", || {
        let mut stage = Stage::new(vec![words("work", &["false"])]);
        stage.retries = 2;
        let (finished, recording) = stage.run();
        assert_eq!(finished.outcome.unwrap(), Outcome::Complete { invalid: 1 });
        assert_eq!(recording.trials.iter().map(|trial| trial.attempt).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(recording.remaining().len(), 1);
    });
}

#[test]
fn a_setting_that_is_always_refused_ends_the_run_with_its_meaning() {
    alone("a_setting_that_is_always_refused_ends_the_run_with_its_meaning", || {
        let mut stage = Stage::new(vec![words("work", &["true"])]);
        stage.blocks = vec![1, 2];
        stage.retries = 1;
        stage.script.refuse = |_| true;
        let (finished, recording) = stage.run();
        let detail = "cannot write /proc/irq/36/smp_affinity: No space left on device (os error 28) \
                      (no free vector on that CPU)";
        let error = finished.outcome.unwrap_err();
        assert_eq!(error.to_string(), format!("irq 36 -> cpu 0: {detail}"));
        assert!(matches!(error, RunError::Refused { .. }));
        assert_eq!(recording.trials.len(), 2, "tried twice, the second block never");
        assert_eq!(recording.end.unwrap().reason, format!("irq 36 -> cpu 0: {detail}"));
    });
}

#[test]
fn a_setting_refused_once_is_tried_again() {
    alone("a_setting_refused_once_is_tried_again", || {
        let mut stage = Stage::new(vec![words("work", &["true"])]);
        stage.retries = 1;
        stage.script.refuse = |entered| entered == 1;
        let (finished, recording) = stage.run();
        assert_eq!(finished.outcome.unwrap(), Outcome::Complete { invalid: 0 });
        assert!(matches!(recording.trials[0].faults[..], [Fault::SettingRefused { .. }]));
        assert_eq!(recording.trials[0].processes, []);
        assert_eq!(recording.trials[1].faults, []);
    });
}

#[test]
fn a_setting_not_in_force_before_or_after_is_a_fault() {
    alone("a_setting_not_in_force_before_or_after_is_a_fault", || {
        let mut stage = Stage::new(vec![words("work", &["true"])]);
        stage.script.deviate = |verified| verified == 1;
        assert_eq!(one_treatment_not_in_force(&stage.faults()), "sysctl a: asked for 1, found 0");

        let mut stage = Stage::new(vec![words("work", &["true"])]);
        stage.script.deviate = |verified| verified == 2;
        let (_, recording) = stage.run();
        assert_eq!(one_treatment_not_in_force(&recording.trials[0].faults), "sysctl a: asked for 1, found 0");
        assert_eq!(recording.trials[0].processes.len(), 1, "it ran, and is kept");
    });
}

#[test]
fn masks_rewritten_and_interrupts_elsewhere_are_seen() {
    alone("masks_rewritten_and_interrupts_elsewhere_are_seen", || {
        let mut stage = Stage::new(vec![]);
        let rewrite = format!("echo 3 > {}", stage.host("proc/irq/36/smp_affinity"));
        stage.treatments[0].workloads = vec![shell("work", &rewrite)];
        let (asked, found) = (CpuSet::single(Cpu(0)), CpuSet::parse_list("0-1").unwrap());
        let irqs = recording::IrqList(vec![Irq(36)]);
        assert_eq!(stage.faults(), [Fault::MaskRewritten { irqs, asked, found }]);

        let mut stage = Stage::new(vec![]);
        let stray = format!("cat > {} <<'END'\n{}END\n", stage.host("proc/interrupts"), interrupts(10, 40));
        stage.treatments[0].workloads = vec![shell("work", &stray)];
        let (_, recording) = stage.run();
        let trial = &recording.trials[0];
        let detail = "irq 36: 40 of 40 interrupts landed on CPU 1, asked for 0";
        assert_eq!(one_treatment_not_in_force(&trial.faults), detail);
        assert_eq!(trial.interrupts[0].by_cpu().collect::<Vec<_>>(), [(Cpu(1), 40)]);
    });
}

#[test]
fn an_interrupt_that_may_refuse_is_judged_only_when_it_did_not() {
    alone("an_interrupt_that_may_refuse_is_judged_only_when_it_did_not", || {
        let mut stage = Stage::new(vec![]);
        let ChangeKind::Affinity { on_refusal, mask, .. } = &mut stage.treatments[0].changes[0].kind else { panic!() };
        *on_refusal = OnRefusal::Skip;
        *mask = CpuSet::single(Cpu(1));
        let count = format!("cat > {} <<'END'\n{}END\n", stage.host("proc/interrupts"), interrupts(99, 0));
        stage.treatments[0].workloads = vec![shell("work", &count)];
        assert_eq!(stage.faults(), [], "its mask was not taken, which is a remark of the setting");
    });
}

#[test]
fn a_stop_signal_in_a_trial_is_recorded_and_the_host_put_back() {
    alone("a_stop_signal_in_a_trial_is_recorded_and_the_host_put_back", || {
        let mut stage = Stage::new(vec![]);
        let mark = stage.host("started");
        stage.treatments[0].workloads = vec![shell("work", &format!("touch {mark}; exec sleep 954.1"))];
        stage.blocks = vec![1, 2];
        let runner = nix::sys::pthread::pthread_self();
        let sender = std::thread::spawn(move || {
            while !Path::new(&mark).exists() {
                std::thread::sleep(Duration::from_millis(2));
            }
            // Twice: the second must not hurry anything.
            for _ in 0..2 {
                nix::sys::pthread::pthread_kill(runner, nix::sys::signal::Signal::SIGINT).unwrap();
            }
        });
        let (finished, recording) = stage.run();
        sender.join().unwrap();
        assert_eq!(finished.outcome.unwrap(), Outcome::Interrupted { signal: "SIGINT".to_owned() });
        assert_eq!(recording.trials.len(), 1);
        assert_eq!(recording.trials[0].faults, [Fault::Interrupted { signal: "SIGINT".to_owned() }]);
        assert_eq!(recording.trials[0].processes[0].signal.as_deref(), Some("SIGTERM"));
        assert_eq!(recording.end.unwrap().reason, "interrupted by SIGINT");
        assert_eq!(alive("954.1"), 0);
    });
}

#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    alone("an_interrupted_run_goes_on_where_it_stopped", || {
        let mut stage = Stage::new(vec![words("work", &["false"])]);
        stage.blocks = vec![1, 2];
        let (_, recording) = stage.run();
        assert_eq!(recording.remaining().len(), 2);

        stage.treatments[0].workloads = vec![words("work", &["true"])];
        let schedule = Schedule { treatments: stage.treatments.clone(), order: stage.order(), remarks: vec![] };
        let plan = Plan::new(&schedule, (0, 0)).resume(&recording);
        let mut writer = Writer::resume(&stage.path(), &recording).unwrap();
        let (finished, recording) = stage.run_plan(&plan, &mut writer);
        assert_eq!(finished.outcome.unwrap(), Outcome::Complete { invalid: 0 });
        let ran: Vec<_> = recording.trials.iter().map(|trial| (trial.number, trial.attempt, trial.sequence)).collect();
        assert_eq!(ran, [(0, 0, 0), (1, 0, 1), (0, 1, 2), (1, 1, 3)]);
    });
}

#[test]
fn a_panic_puts_the_host_back() {
    alone("a_panic_puts_the_host_back", || {
        let mut stage = Stage::new(vec![words("work", &["true"])]);
        stage.blocks = vec![1, 2];
        stage.script.panic = |entered| entered == 2;
        let (finished, recording) = stage.run();
        assert_eq!(finished.outcome.unwrap_err().to_string(), "irqlab panicked: a defect");
        assert_eq!(recording.trials.len(), 1);
        assert_eq!(recording.end.unwrap().reason, "irqlab panicked: a defect");
    });
}

#[test]
fn an_unreadable_host_ends_the_run_and_its_processes() {
    alone("an_unreadable_host_ends_the_run_and_its_processes", || {
        let mut stage = Stage::new(vec![]);
        let remove = format!("rm {}; setsid -f sleep 943.1", stage.host("proc/stat"));
        stage.treatments[0].workloads = vec![shell("work", &remove)];
        let (finished, recording) = stage.run();
        let error = finished.outcome.unwrap_err().to_string();
        assert!(error.starts_with("cannot read /proc/stat: No such file"), "{error}");
        assert_eq!(recording.end.unwrap().reason, error);
        assert_eq!(alive("943.1"), 0);
    });
}

#[test]
fn when_the_runner_is_killed_its_workloads_end() {
    use std::io::{BufRead, BufReader, Write};
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut launcher = Command::new(env!("CARGO_BIN_EXE_irqlab"));
    let mut launcher = launcher.arg("launch").stdin(OwnedFd::from(theirs)).spawn().unwrap();
    let launch = irqlab::run::launch::Launch {
        words: vec!["sleep".into(), "932.1".into()],
        stdout: folder.path().join("o"),
        stderr: folder.path().join("e"),
        announce: true,
        ..Default::default()
    };
    let mut lines = BufReader::new(&ours).lines();
    (&ours).write_all(format!("{}\n", launch.to_line()).as_bytes()).unwrap();
    assert!(lines.next().unwrap().unwrap().contains("ready"));
    (&ours).write_all(b"go\n").unwrap();
    assert!(lines.next().unwrap().unwrap().contains("started"));
    // The kernel lets `execve` be seen as done a moment before the new command line is.
    let began = Instant::now();
    while alive("932.1") == 0 {
        assert!(began.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
    // What the kernel does with the sockets of a process that ends.
    ours.shutdown(std::net::Shutdown::Both).unwrap();
    launcher.wait().unwrap();
    assert_eq!(alive("932.1"), 0);
}

#[test]
fn a_service_started_in_a_run_can_be_stopped_by_a_signal() {
    use irqlab::settings::{Live, Program, System};

    alone("a_service_started_in_a_run_can_be_stopped_by_a_signal", || {
        let folder = tempfile::tempdir().unwrap();
        let said = folder.path().join("said");
        let script = format!("grep SigBlk /proc/self/status > {0}.new; mv {0}.new {0}", said.display());
        let _signals = irqlab::run::StopSignals::block().unwrap();
        let program = Program {
            executable: "/bin/sh".to_owned(),
            arguments: vec!["sh".to_owned(), "-c".to_owned(), script],
            environment: None,
            directory: None,
            cpus: None,
            user: None,
        };
        Live::new().start(&program).unwrap();
        let began = Instant::now();
        while !said.exists() {
            assert!(began.elapsed() < Duration::from_secs(60));
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(fs::read_to_string(said).unwrap(), "SigBlk:\t0000000000000000\n");
    });
}

#[test]
fn a_decision_after_the_pilot_is_written_before_its_trials_run() {
    alone("a_decision_after_the_pilot_is_written_before_its_trials_run", || {
        let mut stage = Stage::new(vec![words("work", &["true"])]);
        let order = vec![
            PlannedTrial { number: 1, block: 2, treatment: 0, boot: None },
            PlannedTrial { number: 2, block: 3, treatment: 0, boot: None },
        ];
        stage.further = Some(Decision {
            at: "2026-01-01T00:00:00Z".to_owned(),
            treatment: Some(0),
            n: 1,
            spread: None,
            needed: None,
            blocks: 3,
            order: order.clone(),
        });
        let decision = stage.further.clone();
        let (finished, recording) = stage.run();
        assert_eq!(finished.outcome.unwrap(), Outcome::Complete { invalid: 0 });
        assert_eq!(recording.trials.iter().map(|trial| trial.block).collect::<Vec<_>>(), [1, 2, 3]);
        assert_eq!(recording.header.order[1..], order);
        assert_eq!(recording.header.design.protocol.until.unwrap().decided, decision);
        // The host is put back once, at the end: the look is taken inside the run.
        assert_eq!(stage.events.borrow().iter().filter(|event| *event == "restore").count(), 1);
        let lines = fs::read_to_string(stage.path()).unwrap();
        let kinds: Vec<&str> = lines.lines().map(|line| &line[2..line.find(':').unwrap() - 1]).collect();
        assert_eq!(kinds, ["header", "trial", "decided", "trial", "trial", "end"]);
    });
}
