//! Targets that move interrupts, in the trial loop: real threads and workloads, a scripted host.

use std::fs;

use irqlab::bind::{ChangeKind, Method, OnRefusal};
use irqlab::cpu_set::{Cpu, CpuSet, Irq};
use irqlab::recording::{Fault, IrqList, Trial};

use super::alone_in;
use super::stage::{Stage, interrupts, shell, words};

fn alone(name: &str, body: fn()) {
    alone_in("moving::", name, body);
}

/// The only trial of a run, and what was left in the mask of the interrupt.
fn trial(stage: &mut Stage) -> (Trial, String) {
    let (finished, recording) = stage.run();
    finished.outcome.unwrap();
    let mask = fs::read_to_string(stage.host("proc/irq/36/smp_affinity")).unwrap();
    (recording.trials[0].clone(), mask)
}

#[test]
fn a_rotating_interrupt_is_moved_recorded_and_judged() {
    alone("a_rotating_interrupt_is_moved_recorded_and_judged", || {
        let mut stage = Stage::new(vec![]).moving(Method::Rotating, 20);
        let both = format!("cat > {} <<'END'\n{}END\nsleep 0.5", stage.host("proc/interrupts"), interrupts(500, 480));
        stage.treatments[0].workloads = vec![shell("work", &both)];
        let (trial, mask) = trial(&mut stage);
        assert_eq!(trial.faults, [], "CPU 1 was its own while it moved");
        let mover = trial.mover.unwrap();
        assert!((5..=40).contains(&mover.moves.len()), "{mover:?}");
        for (step, moved) in mover.moves.iter().enumerate() {
            assert_eq!((moved.irq, moved.cpu), (Irq(36), Cpu((step as u32 + 1) % 2)));
        }
        assert!(mover.moves.windows(2).all(|pair| pair[0].at_ms < pair[1].at_ms), "{mover:?}");
        let last = mover.moves.last().unwrap();
        assert_eq!(mask, if last.cpu == Cpu(0) { "1\n" } else { "2\n" });
        assert!(mover.cpu_us > 0 && mover.switches >= 5, "{mover:?}");
        assert!(trial.runner.switches < 20, "the runner itself slept: {:?}", trial.runner);
        let events = stage.events.borrow();
        let at = |wanted: &str| events.iter().position(|event| event == wanted).unwrap_or_else(|| panic!("{wanted}"));
        assert!(at("expect moves of 1 targets") < at("read /proc/interrupts"), "journaled before it begins");
        assert!(at("follow moves of 1 interrupts") < events.len() - 1);
    });
}

#[test]
fn a_balanced_interrupt_leaves_a_cpu_that_is_loaded() {
    alone("a_balanced_interrupt_leaves_a_cpu_that_is_loaded", || {
        let mut stage = Stage::new(vec![]).moving(Method::Balanced, 200);
        // Only its own interrupts are there, so it fits nowhere and takes turns.
        let table = stage.host("proc/interrupts");
        let load = interrupts(9000, 0);
        let load = format!("cat > {table}.new <<'END'\n{load}END\nmv {table}.new {table}; sleep 0.6");
        stage.treatments[0].workloads = vec![shell("work", &load)];
        let (trial, mask) = trial(&mut stage);
        assert_eq!(trial.faults, []);
        let moves = trial.mover.unwrap().moves;
        assert_eq!(moves.iter().map(|moved| moved.cpu).collect::<Vec<_>>(), [Cpu(1)], "once loaded, once moved");
        assert!(moves[0].at_ms >= 200);
        assert_eq!(mask, "2\n");
    });
}

#[test]
fn a_mask_somebody_else_writes_between_two_moves_is_a_fault() {
    alone("a_mask_somebody_else_writes_between_two_moves_is_a_fault", || {
        let mut stage = Stage::new(vec![]).moving(Method::Rotating, 100);
        let rewrite = format!("echo 3 > {}; sleep 0.4", stage.host("proc/irq/36/smp_affinity"));
        stage.treatments[0].workloads = vec![shell("work", &rewrite)];
        let (trial, _) = trial(&mut stage);
        let [Fault::MaskRewritten { irqs, asked, found }] = &trial.faults[..] else { panic!("{:?}", trial.faults) };
        assert_eq!((irqs, asked.len(), found.to_string().as_str()), (&IrqList(vec![Irq(36)]), 1, "0-1"));
        assert!(trial.mover.unwrap().moves.len() > 1, "it goes on, and the trial is not counted");
    });
}

#[test]
fn interrupts_on_a_cpu_the_mover_never_chose_are_strays() {
    alone("interrupts_on_a_cpu_the_mover_never_chose_are_strays", || {
        let mut stage = Stage::new(vec![]).moving(Method::Rotating, 60_000);
        let stray = format!("cat > {} <<'END'\n{}END\n", stage.host("proc/interrupts"), interrupts(10, 40));
        stage.treatments[0].workloads = vec![shell("work", &stray)];
        let (trial, _) = trial(&mut stage);
        let detail = "irq 36: 40 of 40 interrupts landed on CPU 1, asked for 0".to_owned();
        assert_eq!(trial.faults, [Fault::TreatmentNotInForce { detail }]);
        assert_eq!(trial.mover.unwrap().moves, []);
    });
}

#[test]
fn an_interrupt_that_is_gone_is_named_once() {
    alone("an_interrupt_that_is_gone_is_named_once", || {
        let mut stage = Stage::new(vec![]).moving(Method::Rotating, 20);
        let remove = format!("rm -r {}; sleep 0.3", stage.host("proc/irq/36"));
        stage.treatments[0].workloads = vec![shell("work", &remove)];
        let (finished, recording) = stage.run();
        finished.outcome.unwrap();
        let gone = |fault: &&Fault| matches!(fault, Fault::TreatmentNotInForce { detail } if detail.starts_with("irq 36 -> cpu "));
        assert_eq!(recording.trials[0].faults.iter().filter(gone).count(), 1, "{:?}", recording.trials[0].faults);
    });
}

#[test]
fn an_interrupt_that_refused_its_first_mask_is_not_moved() {
    alone("an_interrupt_that_refused_its_first_mask_is_not_moved", || {
        let mut stage = Stage::new(vec![words("work", &["sleep", "0.1"])]).moving(Method::Rotating, 10);
        let ChangeKind::Affinity { on_refusal, mask, .. } = &mut stage.treatments[0].changes[0].kind else { panic!() };
        (*on_refusal, *mask) = (OnRefusal::Skip, CpuSet::single(Cpu(1)));
        let (trial, mask) = trial(&mut stage);
        assert_eq!((trial.faults, trial.mover, mask.as_str()), (vec![], None, "1\n"));
    });
}
