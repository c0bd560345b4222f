//! Each doubt as a flag of the verdict it belongs to: where it must stand, and where it must not.

use irqlab::analysis::{ComparisonFinding, Flag, NoInference, Verdict};
use irqlab::recording::{Direction, MetricExpr};

use super::recordings::{Recording, experiment, metric, treatment};

const LEVELS: &[(&str, &[&str])] = &[("routing", &["a", "b", "c", "d"])];

/// Small, seedless noise without any pattern over blocks or treatments.
fn noise(treatment: usize, block: u32) -> f64 {
    1.0 + 0.001 * f64::from((block * 31 + treatment as u32 * 17 + block * treatment as u32 * 7) % 13)
}

fn quiet() -> Recording {
    experiment(LEVELS, "blocks", 6).filled(|treatment, block, _| noise(treatment, block))
}

fn has(finding: &ComparisonFinding, wanted: fn(&Flag) -> bool) -> bool {
    finding.flags.iter().any(wanted)
}

#[track_caller]
fn on_all(recording: &Recording, wanted: fn(&Flag) -> bool) -> bool {
    let findings = recording.analyse();
    let flagged = findings.comparisons.iter().filter(|finding| has(finding, wanted)).count();
    assert!(flagged == 0 || flagged == findings.comparisons.len(), "{:?}", findings.comparisons);
    flagged > 0
}

#[test]
fn drift_stands_at_every_verdict_of_its_metric() {
    let drifting = experiment(LEVELS, "blocks", 6).filled(|t, b, place| noise(t, b) * (1.0 + 0.01 * f64::from(place)));
    let drift = |flag: &Flag| *flag == Flag::Drift;
    assert!(on_all(&drifting, drift));
    assert!(!on_all(&quiet(), drift));
    // A drift smaller than half of the margin is no doubt about a verdict by that margin.
    let little = experiment(LEVELS, "blocks", 6)
        .filled(|t, b, place| noise(t, b) * (1.0 + 0.001 * f64::from(place)))
        .margin(0.5);
    assert!(!on_all(&little, drift));
}

#[test]
fn a_first_block_unlike_the_others_stands_at_every_verdict() {
    let cold = experiment(LEVELS, "blocks", 6).filled(|t, b, _| noise(t, b) * if b == 1 { 1.2 } else { 1.0 });
    let first = |flag: &Flag| *flag == Flag::FirstBlock;
    assert!(on_all(&cold, first));
    assert!(!on_all(&quiet(), first));
    let blocks = [1.0, 0.9, 1.2, 1.05, 1.0, 0.95];
    let middle = experiment(LEVELS, "blocks", 6).filled(|t, b, _| noise(t, b) * blocks[b as usize - 1]);
    assert!(!on_all(&middle, first));
}

#[test]
fn without_blocks_first_runs_that_are_the_worst_stand_at_every_verdict() {
    let first = |flag: &Flag| *flag == Flag::FirstBlock;
    let shuffled =
        |slow: f64| experiment(LEVELS, "shuffled", 6).filled(|t, b, _| noise(t, b) * if b == 1 { slow } else { 1.0 });
    assert!(on_all(&shuffled(1.2), first), "four of four at one in six each");
    assert!(!on_all(&shuffled(1.0), first));
    assert!(!on_all(&shuffled(0.8), first), "first runs that are the best are no sign of a cold start");
}

#[test]
fn an_outlier_stands_only_at_verdicts_its_trial_has_a_part_in() {
    let spiky = experiment(LEVELS, "blocks", 8)
        .filled(|t, b, _| noise(t, b) * if (t, b) == (2, 5) { 3.0 } else { 1.0 })
        .analyse();
    let levels: Vec<(&str, bool)> = spiky
        .comparisons
        .iter()
        .map(|finding| (finding.level.as_str(), has(finding, |f| *f == Flag::Outlier { treatment: 2, block: 5 })))
        .collect();
    assert_eq!(levels, [("b", false), ("c", true), ("d", false)]);
    // In the base every comparison has a part in it.
    let base = experiment(LEVELS, "blocks", 8).filled(|t, b, _| noise(t, b) * if (t, b) == (0, 5) { 3.0 } else { 1.0 });
    assert!(on_all(&base, |flag| matches!(flag, Flag::Outlier { treatment: 0, block: 5 })));
    assert!(!on_all(&quiet(), |flag| matches!(flag, Flag::Outlier { .. })));
}

#[test]
fn an_unlike_control_copy_stands_at_every_verdict_of_its_metric() {
    let controlled = |factor: f64| {
        let mut recording = experiment(&[("routing", &["a", "b"])], "blocks", 6);
        let mut copy = treatment(vec![0]);
        copy.control = 1;
        recording.header.design.treatments.push(copy);
        recording.filled(|t, b, _| noise(t, b) * if t == 2 { factor } else { 1.0 })
    };
    let differs = |flag: &Flag| *flag == Flag::ControlDiffers;
    assert!(on_all(&controlled(1.05), differs));
    assert!(!on_all(&controlled(1.0), differs));
}

#[test]
fn a_doubt_about_one_metric_says_nothing_of_another() {
    let mut recording = experiment(LEVELS, "blocks", 6)
        .filled(|t, b, place| noise(t, b) * (1.0 + 0.01 * f64::from(place)))
        .design(|design| {
            let named = MetricExpr::Metric("work.other".to_owned());
            design.metrics.push(metric("work.other", Direction::LowerIsBetter, named));
            design.comparisons[0].metrics.push("work.other".to_owned());
        });
    for trial in &mut recording.trials {
        trial.processes[0].values.insert("other".to_owned(), noise(trial.treatment, trial.block));
    }
    for finding in recording.analyse().comparisons {
        assert_eq!(has(&finding, |flag| *flag == Flag::Drift), finding.metric == "work.score", "{finding:?}");
    }
}

#[test]
fn a_verdict_hangs_on_one_run_only_when_it_would_change() {
    let hangs = |flag: &Flag| matches!(flag, Flag::HangsOnOneRun { .. });
    let two = |base: &[f64], level: &[f64]| {
        experiment(&[("routing", &["a", "b"])], "blocks", base.len() as u32).with(&[base.to_vec(), level.to_vec()])
    };
    let base = [10.0, 10.1, 9.9, 10.05, 9.95, 10.02];
    let spiked = two(&base, &[10.6, 10.7, 10.5, 10.65, 10.55, 20.0]);
    assert_eq!(spiked.verdict(), Verdict::Inconclusive);
    assert!(on_all(&spiked, hangs));
    assert!(!on_all(&two(&base, &[10.6, 10.7, 10.5, 10.65, 10.55, 10.64]), hangs));
    assert!(!on_all(&two(&base, &[10.02, 10.05, 9.95, 10.1, 9.9, 10.0]), hangs));
}

#[test]
fn a_verdict_is_model_based_only_while_the_exact_test_is_above_the_level() {
    let with_blocks = |blocks: u32| {
        experiment(&[("routing", &["a", "b"])], "blocks", blocks)
            .filled(|t, b, _| noise(t, b) * if t == 1 { 1.2 } else { 1.0 })
    };
    let model = |flag: &Flag| *flag == Flag::ModelBasedOnly;
    assert!(on_all(&with_blocks(5), model), "2 / 2^5 is above 0.05");
    assert!(!on_all(&with_blocks(6), model), "2 / 2^6 is below 0.05");
    // No verdict, nothing to rest on a model.
    let none = experiment(&[("routing", &["a", "b"])], "blocks", 5)
        .with(&[vec![1.0, 1.1, 0.9, 1.05, 0.95], vec![1.1, 0.9, 1.05, 0.95, 1.0]]);
    assert_eq!(none.verdict(), Verdict::Inconclusive);
    assert!(!on_all(&none, model));
}

#[test]
fn nothing_is_flagged_where_nothing_is_concluded() {
    let sequential =
        experiment(LEVELS, "sequential", 6).filled(|t, b, place| noise(t, b) * (1.0 + 0.01 * f64::from(place)));
    for finding in sequential.analyse().comparisons {
        assert_eq!(finding.verdict, Verdict::NoInference(NoInference::SequentialOrder));
        assert!(finding.flags.is_empty(), "{finding:?}");
    }
}
