//! The one look after the pilot: what it asks for, and what it must not see.

use irqlab::analysis::Warning;
use irqlab::analysis::planner::two_stage_size;
use irqlab::analysis::summary;
use irqlab::analysis::two_stage::decide;
use irqlab::recording::{Fault, Until};

use super::recordings::{Recording, experiment};

const BASE: [f64; 6] = [10.0, 10.1, 9.9, 10.05, 9.95, 10.02];
const WIDE: [f64; 6] = [20.0, 21.0, 19.0, 20.4, 19.6, 20.1];

fn piloted(base: &[f64], level: &[f64], (within, max): (f64, u32)) -> Recording {
    let pilot = base.len() as u32;
    let metric = "work.score".to_owned();
    experiment(&[("routing", &["a", "b"])], "blocks", pilot)
        .design(|design| design.protocol.until = Some(Until { metric, within, pilot, max, decided: None }))
        .with(&[base.to_vec(), level.to_vec()])
}

fn sd_of_logs(values: &[f64]) -> f64 {
    summary::variance(&summary::logs(values).unwrap()).unwrap().sqrt()
}

#[test]
fn the_treatment_with_the_widest_spread_decides() {
    let recording = piloted(&BASE, &WIDE, (0.02, 100));
    let decision = decide(&recording.header, &recording.trials).unwrap();
    let expected = two_stage_size(6, sd_of_logs(&WIDE), 0.02).unwrap();
    assert!(expected > 6);
    assert_eq!((decision.treatment, decision.needed, decision.blocks), (Some(1), Some(expected), expected));
    assert!(!decision.target_missed());
}

#[test]
fn the_look_does_not_depend_on_the_difference() {
    let alike = piloted(&BASE, &BASE, (0.01, 100));
    let doubled: Vec<f64> = BASE.iter().map(|value| value * 2.0).collect();
    let apart = piloted(&BASE, &doubled, (0.01, 100));
    let needed = |recording: &Recording| decide(&recording.header, &recording.trials).unwrap().needed;
    assert_eq!(needed(&alike), needed(&apart));
}

#[test]
fn a_cap_that_bites_is_said() {
    let mut recording = piloted(&BASE, &WIDE, (0.001, 8));
    let decision = decide(&recording.header, &recording.trials).unwrap();
    assert_eq!(decision.blocks, 8);
    assert!(decision.target_missed());
    recording.header.design.protocol.until.as_mut().unwrap().decided = Some(decision);
    let missed = |warning: &Warning| matches!(warning, Warning::TargetNotReached { blocks: 8, .. });
    assert!(recording.analyse().warnings.iter().any(missed));
    let mut wide_enough = piloted(&BASE, &BASE, (0.5, 8));
    let decision = decide(&wide_enough.header, &wide_enough.trials).unwrap();
    assert_eq!((decision.blocks, decision.target_missed()), (6, false), "the pilot is enough");
    wide_enough.header.design.protocol.until.as_mut().unwrap().decided = Some(decision);
    assert!(!wide_enough.analyse().warnings.iter().any(|warning| matches!(warning, Warning::TargetNotReached { .. })));
}

#[test]
fn trials_that_are_not_valid_and_later_blocks_are_not_looked_at() {
    let mut recording = piloted(&BASE, &WIDE, (0.02, 100));
    let before = decide(&recording.header, &recording.trials);
    let mut invalid = recording.trials[0].clone();
    invalid.number = 90;
    invalid.processes[0].values.insert("score".to_owned(), 1e6);
    invalid.faults.push(Fault::TimedOut { process: "work".to_owned(), limit_ms: 1 });
    let mut later = recording.trials[0].clone();
    (later.number, later.block) = (91, 7);
    later.processes[0].values.insert("score".to_owned(), 1e6);
    recording.trials.extend([invalid, later]);
    assert_eq!(decide(&recording.header, &recording.trials), before);
}

#[test]
fn without_values_the_cap_is_run_and_the_target_missed() {
    let mut recording = piloted(&BASE, &WIDE, (0.02, 12));
    recording.trials.iter_mut().for_each(|trial| trial.processes.clear());
    let decision = decide(&recording.header, &recording.trials).unwrap();
    assert_eq!((decision.needed, decision.blocks, decision.target_missed()), (None, 12, true));
    let fixed = experiment(&[("routing", &["a", "b"])], "blocks", 3);
    assert_eq!(decide(&fixed.header, &fixed.trials), None);
}
