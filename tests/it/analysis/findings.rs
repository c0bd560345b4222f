//! What is concluded, and above all what is not.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use irqlab::analysis::{
    ExpectationVerdict, Findings, Flag, MetricFindings, NoInference, Scale, Verdict, Warning, analyse,
};
use irqlab::cpu_set::{Cpu, CpuSet, Irq};
use irqlab::recording::{
    Comparison, CpuTimes, Direction, Expectation, Fault, HostFacts, IrqList, MaskGroup, MetricExpr, Relation,
    RunnerCost,
};
use proptest::prelude::*;
use serde_json::Value;

use super::recordings::{Recording, experiment, metric, process, row, treatment};

fn two_levels(order: &str, base: &[f64], level: &[f64]) -> Recording {
    let blocks = base.len() as u32;
    experiment(&[("routing", &["base", "level"])], order, blocks).with(&[base.to_vec(), level.to_vec()])
}

#[test]
fn cases_are_judged_as_their_files_say() {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots/analysis");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::glob!("../../cases/analysis", "*.json", |path| {
            let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
            let list = |name: &str| -> Vec<f64> { serde_json::from_value(case[name].clone()).unwrap() };
            let mut recording = two_levels(case["order"].as_str().unwrap(), &list("base"), &list("level"));
            recording.header.design.metrics[0].direction = serde_json::from_value(case["direction"].clone()).unwrap();
            recording.header.design.comparisons[0].margin = case["margin"].as_f64();
            insta::assert_snapshot!("findings", told(&recording.analyse()));
        });
    });
}

/// Findings in lines, numbers short enough to be stable.
fn told(findings: &Findings) -> String {
    let mut text = String::new();
    for finding in &findings.comparisons {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.4}"));
        let estimate = finding.estimate.map_or_else(
            || "-".to_owned(),
            |estimate| {
                format!("{:.4} ({:.4} to {:.4}) {:?}", estimate.value, estimate.low, estimate.high, estimate.method)
            },
        );
        let _ = writeln!(text, "verdict: {:?}", finding.verdict);
        let _ = writeln!(text, "n: {} and {}", finding.n.0, finding.n.1);
        let _ = writeln!(text, "{:?}: {estimate}, point {}", finding.scale, number(finding.point));
        let _ = writeln!(text, "p: {}, Holm {}", number(finding.p), number(finding.p_holm));
        if let Some(exact) = finding.exact {
            let _ = writeln!(text, "{:?}: {:.4}, at least {:.4}", exact.kind, exact.p, exact.min_p);
        }
        let _ = writeln!(text, "flags: {:?}, needed {:?}", finding.flags, finding.needed_n);
    }
    for warning in &findings.warnings {
        let _ = writeln!(text, "warning: {warning:?}");
    }
    text
}

#[test]
fn published_numbers_of_unknown_order_stay_inconclusive() {
    let recording = two_levels("recorded", &[39.712, 39.998, 39.950], &[42.111, 40.268, 40.068]);
    let finding = recording.comparison();
    let estimate = finding.estimate.unwrap();
    assert_eq!(finding.verdict, Verdict::Inconclusive);
    assert_eq!(format!("{:.3} {:.3} {:.3}", estimate.value, estimate.low, estimate.high), "1.023 0.957 1.093");
    let exact = finding.exact.unwrap();
    assert!((exact.p - 0.1).abs() < 1e-12 && (exact.min_p - 0.1).abs() < 1e-12);
}

#[test]
fn a_sequential_order_never_gives_a_verdict() {
    let recording =
        two_levels("sequential", &[10.0, 10.1, 9.9, 10.0, 10.1, 9.9], &[20.0, 20.1, 19.9, 20.0, 20.1, 19.9]);
    let finding = recording.comparison();
    assert_eq!(finding.verdict, Verdict::NoInference(NoInference::SequentialOrder));
    assert_eq!((finding.p, finding.exact, finding.estimate), (None, None, None));
    assert!((finding.point.unwrap() - 2.0).abs() < 1e-3, "the ratio is still shown");
}

#[test]
fn the_direction_decides_who_is_better() {
    let recording = two_levels("blocks", &[10.0, 10.2, 9.9, 10.1, 10.0, 10.1], &[9.0, 9.1, 9.0, 9.2, 8.9, 9.1]);
    assert_eq!(recording.verdict(), Verdict::Faster { beyond_margin: false });
    let turned = recording.clone().design(|design| design.metrics[0].direction = Direction::HigherIsBetter);
    assert_eq!(turned.verdict(), Verdict::Slower { beyond_margin: false });
    let neutral = recording.clone().design(|design| design.metrics[0].direction = Direction::Neutral);
    assert_eq!(neutral.verdict(), Verdict::NoInference(NoInference::NoDirection));
    assert_eq!(recording.margin(0.02).verdict(), Verdict::Faster { beyond_margin: true });
}

#[test]
fn a_difference_smaller_than_the_margin_is_equivalent_and_flagged() {
    let base = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2];
    let level: Vec<f64> = base.iter().zip([1.005, 1.0051, 1.0049, 1.005, 1.0052, 1.0048]).map(|(a, b)| a * b).collect();
    let recording = two_levels("blocks", &base, &level);
    assert_eq!(recording.verdict(), Verdict::Slower { beyond_margin: false });
    let finding = recording.margin(0.02).comparison();
    assert_eq!(finding.verdict, Verdict::Equivalent);
    assert!(finding.flags.contains(&Flag::WithinMargin));
}

#[test]
fn equivalence_is_shown_at_five_per_cent_and_not_at_ten() {
    let base = [100.0; 5];
    let spread =
        |width: f64| base.iter().zip([-1.0, -0.5, 0.0, 0.5, 1.0]).map(|(b, d)| b * (width * d).exp()).collect();
    let verdict = |level: Vec<f64>| two_levels("blocks", &base, &level).margin(0.02).verdict();
    // t = 1.80 with 4 degrees of freedom against the margin: p = 0.073.
    assert_eq!(verdict(spread(0.031)), Verdict::Inconclusive);
    assert_eq!(verdict(spread(0.020)), Verdict::Equivalent);
}

#[test]
fn identical_values_give_no_inference_however_they_are_laid_out() {
    for order in ["blocks", "shuffled", "recorded"] {
        let same = two_levels(order, &[5.0; 6], &[5.0; 6]);
        assert_eq!(same.verdict(), Verdict::NoInference(NoInference::ZeroVariance), "{order}");
        assert!(same.analyse().warnings.iter().any(|warning| matches!(warning, Warning::NoVariation { .. })));
        let doubled = two_levels(order, &[5.0; 6], &[10.0; 6]);
        assert_eq!(doubled.verdict(), Verdict::NoInference(NoInference::ZeroVariance), "{order}");
    }
    // Equal ratios of unequal values differ by rounding alone, which must not pass for a tiny error.
    let base = [1.1, 2.3, 3.7, 0.9, 1.3, 7.7];
    let tripled: Vec<f64> = base.iter().map(|value| value * 3.0).collect();
    assert_eq!(two_levels("blocks", &base, &tripled).verdict(), Verdict::NoInference(NoInference::ZeroVariance));
}

#[test]
fn differences_that_are_rounding_are_no_signs() {
    let finding = two_levels("blocks", &[0.3; 6], &[0.1 + 0.2; 6]).comparison();
    assert_eq!(finding.exact.map(|exact| exact.p), Some(1.0));
}

#[test]
fn an_interval_beyond_all_numbers_is_no_estimate() {
    let finding = two_levels("blocks", &[1e-90, 1e90, 1.0], &[1e90, 1e-90, 2.0]).margin(0.02).comparison();
    assert_eq!((finding.estimate, finding.verdict), (None, Verdict::Inconclusive));
}

#[test]
fn fewer_than_three_pairs_give_no_inference() {
    for (order, n, reason) in [
        ("blocks", 1, NoInference::SingleValue),
        ("blocks", 2, NoInference::TooFewValues),
        ("shuffled", 1, NoInference::SingleValue),
        ("shuffled", 2, NoInference::TooFewValues),
    ] {
        let recording = two_levels(order, &[10.0, 11.0][..n], &[20.0, 23.0][..n]);
        assert_eq!(recording.verdict(), Verdict::NoInference(reason), "{order} {n}");
        assert!(recording.comparison().point.is_some());
    }
    let mut recording = two_levels("blocks", &[10.0; 3], &[20.0; 3]);
    recording.trials.retain(|trial| trial.treatment == 0);
    assert_eq!(recording.verdict(), Verdict::NoInference(NoInference::NoValues));
    recording.trials.clear();
    assert_eq!(recording.verdict(), Verdict::NoInference(NoInference::NoValues));
}

#[test]
fn zero_and_negative_values_are_compared_by_differences() {
    let recording = two_levels("blocks", &[0.0, 1.0, -1.0, 0.5, 0.2], &[5.0, 6.1, 4.0, 5.6, 5.1]).margin(0.5);
    let finding = recording.comparison();
    assert_eq!(finding.scale, Scale::Difference);
    assert_eq!(finding.verdict, Verdict::Slower { beyond_margin: false });
    assert!((finding.estimate.unwrap().value - 5.02).abs() < 1e-9);
}

#[test]
fn values_that_are_not_finite_are_missing() {
    let recording = two_levels("blocks", &[1.0, f64::NAN, 1.1, 1.2, 1.3], &[2.0, 2.1, f64::INFINITY, 2.3, 2.4]);
    assert_eq!(recording.comparison().n, (3, 3));
    assert_eq!(recording.analyse().metrics[0].cells[0].values.len(), 4);
}

#[test]
fn a_huge_outlier_makes_no_verdict_and_is_named() {
    let base = [10.0, 10.1, 9.9, 10.05, 9.95, 10.02];
    let level = [10.6, 10.7, 10.5, 10.65, 10.55, 5000.0];
    let recording = two_levels("blocks", &base, &level);
    let finding = recording.comparison();
    assert_eq!(finding.verdict, Verdict::Inconclusive);
    assert_eq!(finding.flags, [Flag::HangsOnOneRun { block: 6 }, Flag::Outlier { treatment: 1, block: 6 }]);
    assert!(
        recording
            .analyse()
            .warnings
            .iter()
            .any(|warning| matches!(warning, Warning::Outlier { treatment: 1, block: 6, .. }))
    );
}

#[test]
fn a_verdict_that_hangs_on_one_block_says_so() {
    // Without block 4 the rest no longer differs significantly.
    let recording = two_levels("shuffled", &[10.0, 10.4, 9.8, 9.6], &[10.5, 10.6, 10.4, 11.4]);
    let steady = two_levels("blocks", &[10.0, 10.4, 9.8, 9.6, 10.0, 10.2], &[20.1, 20.6, 19.4, 19.4, 20.2, 20.3]);
    assert!(!steady.comparison().flags.iter().any(|flag| matches!(flag, Flag::HangsOnOneRun { .. })));
    assert!(recording.comparison().flags.iter().any(|flag| matches!(flag, Flag::HangsOnOneRun { .. })));
}

#[test]
fn few_blocks_leave_the_verdict_to_the_model() {
    let recording = two_levels("blocks", &[10.0, 10.1, 9.9, 10.05], &[12.0, 12.1, 11.9, 12.1]);
    let finding = recording.comparison();
    assert_eq!(finding.verdict, Verdict::Slower { beyond_margin: false });
    assert!(finding.flags.contains(&Flag::ModelBasedOnly));
    let expected = Warning::ExactCannotReach { blocks: 4, comparisons: 1, min_p: 0.125 };
    assert!(recording.analyse().warnings.contains(&expected));
}

#[test]
fn several_levels_share_one_error_rate() {
    let values = [
        vec![10.0, 10.2, 9.8, 10.1, 9.9],
        vec![10.2, 10.5, 10.0, 10.1, 10.2],
        vec![10.0, 10.3, 9.7, 10.2, 9.9],
        vec![10.1, 10.1, 9.9, 10.0, 9.8],
    ];
    let alone = two_levels("blocks", &values[0], &values[1]).comparison();
    assert_eq!(alone.verdict, Verdict::Slower { beyond_margin: false });
    let together = experiment(&[("routing", &["a", "b", "c", "d"])], "blocks", 5).with(&values).analyse();
    let first = &together.comparisons[0];
    assert_eq!((first.p, first.verdict), (alone.p, Verdict::Inconclusive));
    assert!((first.p_holm.unwrap() - 3.0 * first.p.unwrap()).abs() < 1e-12);
}

#[test]
fn an_effect_alike_under_all_levels_depends_on_none() {
    let factors: &[(&str, &[&str])] = &[("routing", &["a", "b"]), ("load", &["low", "high", "none"])];
    let mut noise = Noise(3);
    let recording = experiment(factors, "blocks", 6)
        .filled(|treatment, _, _| [1.0, 2.0, 4.0, 1.2, 2.4, 4.8][treatment] * (0.01 * noise.next()).exp());
    let finding = recording.comparison();
    assert_eq!((finding.verdict, finding.flags), (Verdict::Slower { beyond_margin: false }, Vec::new()));
}

#[test]
fn a_factor_set_up_once_per_level_has_no_error_term() {
    let factors: &[(&str, &[&str])] = &[("smt", &["off", "on"]), ("load", &["low", "high"])];
    let hard = |recording: Recording| recording.design(|design| design.factors[0].hard_to_change = true);
    let noisy = |treatment: usize, block: u32, _| {
        [10.0, 13.0, 12.0, 15.6][treatment] * (1.0 + 0.002 * f64::from((block * 7 + treatment as u32 * 3) % 5))
    };
    let replicated = hard(experiment(factors, "blocks", 5)).filled(noisy);
    assert!(matches!(replicated.verdict(), Verdict::Slower { .. }));
    let once = hard(experiment(factors, "recorded", 5).filled(noisy));
    let mut ordered = once.clone();
    ordered.trials.sort_by_key(|trial| trial.treatment);
    (0..).zip(&mut ordered.trials).for_each(|(sequence, trial)| trial.sequence = sequence);
    assert_eq!(ordered.verdict(), Verdict::NoInference(NoInference::WholePlotUnreplicated));
    // Without blocks some neighbours share a whole plot and are not independent.
    let shuffled = hard(experiment(factors, "shuffled", 5)).filled(noisy);
    assert_eq!(shuffled.verdict(), Verdict::NoInference(NoInference::WholePlotUnreplicated));
    // The easy factor changed often inside each whole plot.
    let easy = ordered.design(|design| design.comparisons[0].factor = 1);
    assert!(!matches!(easy.verdict(), Verdict::NoInference(NoInference::WholePlotUnreplicated)));
}

#[test]
fn only_the_last_attempt_of_a_valid_trial_counts() {
    let mut recording = two_levels("blocks", &[10.0, 10.1, 9.9], &[11.0, 11.2, 11.1]);
    let mut retry = recording.trials[0].clone();
    recording.trials[0].faults.push(Fault::TimedOut { process: "work".to_owned(), limit_ms: 1 });
    recording.trials[0].processes[0].values.insert("score".to_owned(), 999.0);
    let findings = recording.analyse();
    assert_eq!(findings.comparisons[0].n, (2, 2));
    assert_eq!(findings.warnings[0], Warning::IncompleteBlocks { blocks: vec![1] });
    assert_eq!((findings.invalid_trials.len(), findings.counts.recorded, findings.counts.valid), (1, 6, 5));
    retry.attempt = 1;
    retry.sequence = 6;
    recording.trials.push(retry);
    let mut warmup = recording.trials[1].clone();
    (warmup.block, warmup.number) = (0, 99);
    warmup.processes[0].values.insert("score".to_owned(), 999.0);
    recording.trials.push(warmup);
    let findings = recording.analyse();
    assert_eq!(findings.comparisons[0].n, (3, 3));
    assert!(findings.metrics[0].cells.iter().all(|cell| cell.summary.unwrap().high < 12.0));
    assert_eq!((findings.counts.recorded, findings.counts.valid, findings.counts.warmup), (7, 6, 1));
    assert!(!findings.warnings.iter().any(|warning| matches!(warning, Warning::IncompleteBlocks { .. })));
}

fn expectation(operator: Relation, left: f64, right: f64) -> Expectation {
    Expectation {
        metric: "work.score".to_owned(),
        factor: 0,
        left: (left, 1),
        operator,
        right: (right, 0),
        within: Vec::new(),
        text: String::new(),
        place: String::new(),
    }
}

#[test]
fn expectations_follow_the_interval() {
    use ExpectationVerdict::{Failed, Held, NotContradicted, Undecided, Unsupported};
    // level / base is 1.10 with a narrow interval, then about 1.02 with a wide one.
    let narrow = two_levels("blocks", &[10.0, 10.1, 9.9, 10.0, 10.2], &[11.0, 11.2, 10.9, 10.9, 11.2]);
    let wide = two_levels("blocks", &[10.0, 12.0, 9.0, 11.0, 10.0], &[11.0, 11.0, 10.0, 10.5, 11.0]);
    for (recording, operator, left, right, expected) in [
        (&narrow, Relation::LessOrEqual, 1.0, 1.0, Failed),
        (&narrow, Relation::Less, 1.0, 1.2, Held),
        (&narrow, Relation::Greater, 1.0, 1.0, Held),
        (&narrow, Relation::GreaterOrEqual, 1.0, 1.2, Failed),
        (&narrow, Relation::LessOrEqual, 0.5, 1.0, Held),
        (&wide, Relation::LessOrEqual, 1.0, 1.0, Unsupported),
        (&wide, Relation::GreaterOrEqual, 1.0, 1.0, NotContradicted),
        (&wide, Relation::LessOrEqual, 1.0, 1.1, NotContradicted),
        (&narrow, Relation::Equal, 1.0, 1.0, Undecided),
        (&narrow, Relation::NotEqual, 1.0, 1.0, Undecided),
    ] {
        let recording =
            recording.clone().design(|design| design.expectations = vec![expectation(operator, left, right)]);
        let found = recording.analyse().expectations.remove(0);
        assert_eq!(found.verdict, expected, "{operator:?} {left} {right} {:?}", found.estimate);
    }
    for (right, operator, expected) in [
        (1.0, Relation::Equal, Failed),
        (1.0, Relation::NotEqual, Held),
        (1.1, Relation::Equal, Held),
        (1.1, Relation::NotEqual, Failed),
    ] {
        let recording =
            narrow.clone().margin(0.03).design(|d| d.expectations = vec![expectation(operator, 1.0, right)]);
        assert_eq!(recording.analyse().expectations[0].verdict, expected, "{operator:?} {right}");
    }
}

#[test]
fn an_expectation_without_inference_is_undecided() {
    let one = two_levels("blocks", &[10.0], &[20.0]);
    let sequential = two_levels("sequential", &[10.0, 10.1, 9.9, 10.0], &[20.0, 20.1, 19.9, 20.1]);
    for recording in [one, sequential] {
        let recording = recording.design(|design| design.expectations = vec![expectation(Relation::Less, 1.0, 1.0)]);
        assert_eq!(recording.analyse().expectations[0].verdict, ExpectationVerdict::Undecided);
    }
    let zeros = two_levels("blocks", &[0.0, 0.1, -0.1, 0.05], &[5.0, 5.1, 4.9, 5.0]);
    let zeros = zeros.design(|design| design.expectations = vec![expectation(Relation::Less, 1.0, 1.0)]);
    let found = zeros.analyse().expectations.remove(0);
    assert_eq!((found.scale, found.verdict), (Scale::Difference, ExpectationVerdict::Failed));
}

#[test]
fn an_unlike_control_copy_is_reported_and_on_no_side() {
    // Treatments a, b and a copy of b.
    let mut recording = experiment(&[("routing", &["a", "b"])], "blocks", 6);
    let mut copy = treatment(vec![1]);
    copy.control = 1;
    recording.header.design.treatments.push(copy);
    let values = [10.0, 10.1, 9.9, 10.0, 10.2, 10.1];
    let alike = [10.1, 10.0, 10.0, 9.9, 10.2, 10.1];
    let unlike = [10.5, 10.6, 10.4, 10.5, 10.75, 10.6];
    let differs = |warning: &Warning| matches!(warning, Warning::ControlDiffers { treatment: 1, copy: 2, .. });
    let fine = recording.clone().with(&[alike.to_vec(), values.to_vec(), alike.to_vec()]).analyse();
    assert!(!fine.warnings.iter().any(differs));
    let bad = recording.with(&[alike.to_vec(), values.to_vec(), unlike.to_vec()]).analyse();
    assert!(bad.warnings.iter().any(differs));
    assert_eq!(bad.comparisons.len(), 1);
    assert_eq!(bad.comparisons[0].point, fine.comparisons[0].point);
}

#[test]
fn drift_and_a_slow_first_block_are_noticed() {
    let noise = |treatment: usize, block: u32| 1.0 + 0.001 * f64::from((block * 31 + treatment as u32 * 17) % 7);
    let cells: &[(&str, &[&str])] = &[("routing", &["a", "b", "c", "d"])];
    // The treatments lie far apart: only their residuals show the drift.
    let drifting = experiment(cells, "blocks", 6)
        .filled(|t, b, place| 10.0_f64.powf(t as f64) * noise(t, b) * (1.0 + 0.01 * f64::from(place)));
    let drift = |findings: &Findings| {
        findings.warnings.iter().find_map(|warning| match warning {
            Warning::Drift { percent_per_run, .. } => Some(*percent_per_run),
            _ => None,
        })
    };
    assert!((drift(&drifting.analyse()).unwrap() - 0.9).abs() < 0.2);
    let cold = experiment(cells, "blocks", 6).filled(|t, b, _| noise(t, b) * if b == 1 { 1.2 } else { 1.0 });
    let first = |findings: &Findings| {
        findings.warnings.iter().any(|w| matches!(w, Warning::FirstBlock { ratio, .. } if *ratio > 1.15))
    };
    assert!(first(&cold.analyse()));
    // Blocks that all differ are no warm-up, unless the first is beyond the others.
    let jumping = [1.1, 1.2, 1.0, 1.05, 1.02, 1.03];
    let blocks = experiment(cells, "blocks", 6).filled(|t, b, _| noise(t, b) * jumping[b as usize - 1]);
    assert!(!blocks.analyse().warnings.iter().any(|warning| matches!(warning, Warning::FirstBlock { .. })));
    let steady = experiment(cells, "blocks", 6).filled(|t, b, _| noise(t, b)).analyse();
    assert!(drift(&steady).is_none() && !first(&steady), "{:?}", steady.warnings);
}

#[test]
fn the_end_and_the_host_are_looked_at() {
    let mut recording = two_levels("blocks", &[1.0, 1.1, 1.2], &[1.0, 1.2, 1.1]);
    recording.end.as_mut().unwrap().not_restored.push("irq 24".to_owned());
    recording.end.as_mut().unwrap().reason = "interrupted by SIGINT".to_owned();
    recording.resumed.push((String::new(), HostFacts { kernel_release: Some("7".to_owned()), ..HostFacts::default() }));
    recording.trials.iter_mut().for_each(|trial| {
        trial.runner = RunnerCost { cpu_us: 10_000, switches: 1, cpus: CpuSet::parse_list("0-1").unwrap() };
    });
    let warnings = recording.analyse().warnings;
    assert!(warnings.contains(&Warning::NotComplete { reason: "interrupted by SIGINT".to_owned() }));
    assert!(warnings.contains(&Warning::NotRestored { what: vec!["irq 24".to_owned()] }));
    assert!(warnings.contains(&Warning::HostChanged { what: vec!["kernel release".to_owned()] }));
    assert!(warnings.contains(&Warning::RunnerOnMeasuredCpus { cpus: CpuSet::single(Cpu(1)) }));
    recording.end = None;
    assert!(recording.analyse().warnings.iter().any(|warning| matches!(warning, Warning::NotComplete { .. })));
}

#[test]
fn interrupts_are_counted_where_they_landed() {
    let mut recording = two_levels("blocks", &[1.0, 1.1], &[1.0, 1.2]);
    let route =
        |cpus: &str| MaskGroup { mask: CpuSet::parse_list(cpus).unwrap(), irqs: IrqList(vec![Irq(36), Irq(37)]) };
    recording.header.design.treatments[0].routes = vec![route("0")];
    recording.header.design.treatments[1].routes = vec![route("0-1")];
    for trial in recording.trials.iter_mut().filter(|trial| trial.treatment == 0) {
        trial.interrupts = vec![row("36", &[(0, 90), (1, 10)]), row("40", &[(1, 5)]), row("LOC", &[(0, 1000)])];
        trial.softirqs = vec![row("NET_RX", &[(0, 7)])];
        trial.masks.after_differing = vec![route("1")];
    }
    let findings = recording.analyse();
    let check = &findings.treatment_checks[0];
    assert_eq!((check.trials, check.interrupts, check.on_asked_cpus, check.active_irqs), (2, 200, 180, (1, 2)));
    assert_eq!(
        (check.by_cpu.as_slice(), check.all_by_cpu.as_slice()),
        ([(0, 180), (1, 20)].as_slice(), [(0, 180), (1, 30)].as_slice())
    );
    assert_eq!((check.softirqs_by_cpu.as_slice(), check.trials_with_foreign_masks), ([(0, 14)].as_slice(), 2));
    assert_eq!(check.irqs[0].label, "36");
    assert!(findings.warnings.contains(&Warning::InterruptsElsewhere { treatment: 0, share: 0.1 }));
    assert!(findings.warnings.contains(&Warning::NoInterrupts { treatment: 1 }));
    for trial in recording.trials.iter_mut().filter(|trial| trial.treatment == 0) {
        trial.interrupts = vec![row("36", &[(0, 2), (1, 1)])];
    }
    let few = |warning: &Warning| matches!(warning, Warning::InterruptsElsewhere { .. });
    assert!(!recording.analyse().warnings.iter().any(few), "one in flight at each change is no stranger");
}

#[test]
fn metrics_come_from_processes_host_and_output() {
    let mut recording = two_levels("blocks", &[1.0], &[2.0]);
    for trial in &mut recording.trials {
        let mut second = process("work", 10.0);
        (second.instance, second.real_ns, second.max_rss_kib) = (1, 3_000_000_000, 500);
        trial.processes.push(second);
        trial.cpu_times = CpuTimes {
            hz: 100,
            on: CpuSet::parse_list("0,2").unwrap(),
            idle: vec![50, 100],
            user: vec![50, 0],
            system: vec![0; 2],
            iowait: vec![0; 2],
            irq: vec![0; 2],
            softirq: vec![0; 2],
            steal: vec![0; 2],
        };
        trial.interrupts = vec![row("36", &[(0, 90), (2, 10)]), row("LOC", &[(0, 1000)])];
        trial.softirqs = vec![row("NET_RX", &[(0, 7)]), row("TIMER", &[(2, 1)])];
    }
    let named = |name: &str| MetricExpr::Metric(name.to_owned());
    let boxed = |name: &str| Box::new(named(name));
    let expected: Vec<(&str, MetricExpr, Option<f64>)> = vec![
        ("real is that of the slowest", named("work.real"), Some(3.0)),
        ("user is summed", named("work.user"), Some(3.0)),
        ("sys is summed", named("work.sys"), Some(0.5)),
        ("memory is that of the largest", named("work.max_rss"), Some(500.0)),
        ("switches are summed", named("work.voluntary_switches"), Some(6.0)),
        ("faults are summed", named("work.minor_faults"), Some(100.0)),
        ("lower-is-better output is averaged", named("work.score"), Some(5.5)),
        ("idle of all CPUs", named("host.idle"), Some(75.0)),
        ("idle of one CPU", named("host.idle.cpu0"), Some(50.0)),
        ("no such CPU", named("host.idle.cpu1"), None),
        ("numbered interrupts", named("host.interrupts"), Some(100.0)),
        ("interrupts of a CPU", named("host.interrupts.cpu2"), Some(10.0)),
        ("softirqs", named("host.softirqs"), Some(8.0)),
        ("clock", named("host.mhz"), Some(2000.0)),
        ("unknown", named("work.nothing"), None),
        ("per clock", MetricExpr::Divide(boxed("work.score"), boxed("host.mhz")), Some(0.00275)),
        ("by zero", MetricExpr::Divide(boxed("work.score"), Box::new(MetricExpr::Number(0.0))), None),
        ("product", MetricExpr::Multiply(boxed("work.score"), Box::new(MetricExpr::Number(2.0))), Some(11.0)),
        ("sum", MetricExpr::Add(boxed("work.user"), boxed("work.sys")), Some(3.5)),
        ("difference", MetricExpr::Subtract(boxed("work.user"), boxed("work.sys")), Some(2.5)),
    ];
    let metrics = expected.iter().map(|(id, expr, _)| metric(id, Direction::LowerIsBetter, expr.clone())).collect();
    let findings = recording.clone().design(|design| design.metrics = metrics).analyse();
    for ((what, _, value), found) in expected.iter().zip(&findings.metrics) {
        assert_eq!(first_value(found), *value, "{what}");
    }
    let rate = vec![metric("work.score", Direction::HigherIsBetter, named("work.score"))];
    let summed = recording.design(|design| design.metrics = rate).analyse();
    assert_eq!(first_value(&summed.metrics[0]), Some(11.0), "higher-is-better output is summed");
}

fn first_value(metric: &MetricFindings) -> Option<f64> {
    metric.cells[0].values.first().map(|(_, value)| *value)
}

#[test]
fn a_star_becomes_every_value_that_was_printed() {
    let mut recording = two_levels("blocks", &[1.0, 1.1, 1.2], &[2.0, 2.2, 2.1]);
    for trial in &mut recording.trials {
        trial.processes[0].values.insert("other".to_owned(), 3.0);
        trial.processes.push(process("idle", 1.0));
    }
    let every = metric("work.*", Direction::HigherIsBetter, MetricExpr::Every("work.*".to_owned()));
    let recording = recording.design(|design| {
        design.metrics = vec![every];
        design.comparisons[0].metrics = vec!["work.*".to_owned()];
    });
    let findings = recording.analyse();
    let ids: Vec<&str> = findings.metrics.iter().map(|metric| metric.id.as_str()).collect();
    assert_eq!(ids, ["work.other", "work.score"]);
    let compared: Vec<&str> = findings.comparisons.iter().map(|finding| finding.metric.as_str()).collect();
    assert_eq!(compared, ids);
    let mut silent = recording;
    silent.trials.iter_mut().for_each(|trial| trial.processes.clear());
    assert_eq!(silent.analyse().metrics[0].id, "work.*", "a metric without a value is still listed");
}

/// Seeded normal noise, by the sum of twelve uniforms: good enough for a rate between 3 and 7 per cent.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> f64 {
        let uniform = |state: &mut u64| {
            *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..12).map(|_| uniform(&mut self.0)).sum::<f64>() - 6.0
    }
}

/// Share of experiments without any effect that claim one.
fn false_alarms(order: &str, drift_per_run: f64) -> f64 {
    let mut noise = Noise(20_261_130);
    let claims = (0..1000_u32).filter(|seed| {
        let recording = experiment(&[("routing", &["a", "b"])], order, 5)
            .design(|design| design.protocol.seed = u64::from(*seed))
            .filled(|_, _, place| 100.0 * (0.01 * noise.next() + drift_per_run * f64::from(place)).exp());
        matches!(recording.verdict(), Verdict::Faster { .. } | Verdict::Slower { .. })
    });
    claims.count() as f64 / 1000.0
}

#[test]
fn without_an_effect_one_experiment_in_twenty_claims_one() {
    let blocked = false_alarms("blocks", 0.0);
    assert!((0.03..=0.07).contains(&blocked), "{blocked}");
    let shuffled = false_alarms("shuffled", 0.0);
    assert!((0.03..=0.07).contains(&shuffled), "{shuffled}");
    let drifting = false_alarms("blocks", 0.005);
    assert!((0.03..=0.07).contains(&drifting), "drift passes for an effect: {drifting}");
    assert!(false_alarms("sequential", 0.005).abs() < 1e-12);
}

#[test]
fn looking_at_interactions_does_not_add_false_alarms() {
    let mut noise = Noise(20_261_201);
    let claims = (0..2000_u32).filter(|seed| {
        let recording = experiment(&[("routing", &["a", "b"]), ("smt", &["off", "on"])], "blocks", 10)
            .design(|design| {
                design.protocol.seed = u64::from(*seed);
                let second = Comparison { factor: 1, ..design.comparisons[0].clone() };
                design.comparisons.push(second);
            })
            .filled(|_, _, _| 100.0 * (0.01 * noise.next()).exp());
        let findings = recording.analyse();
        findings
            .comparisons
            .iter()
            .any(|found| matches!(found.verdict, Verdict::Faster { .. } | Verdict::Slower { .. }))
    });
    let rate = claims.count() as f64 / 2000.0;
    assert!((0.03..=0.057).contains(&rate), "{rate}");
}

fn samples() -> impl Strategy<Value = (Vec<f64>, Vec<f64>)> {
    let value = || prop_oneof![8 => 1.0..2.0_f64, 1 => Just(1.5), 1 => 1e-3..1e6_f64];
    (3_usize..9).prop_flat_map(move |n| (prop::collection::vec(value(), n), prop::collection::vec(value(), n)))
}

proptest! {
    #[test]
    fn units_do_not_change_a_verdict((base, level) in samples(), order in prop_oneof![Just("blocks"), Just("shuffled")]) {
        let scaled = |values: &[f64]| values.iter().map(|value| value * 1024.0).collect::<Vec<_>>();
        let before = two_levels(order, &base, &level).margin(0.05).comparison();
        let after = two_levels(order, &scaled(&base), &scaled(&level)).margin(0.05).comparison();
        prop_assert_eq!(before.verdict, after.verdict);
        prop_assert_eq!(before.exact, after.exact);
        prop_assert!((before.point.unwrap() / after.point.unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn exchanging_level_and_base_inverts_the_ratio((base, level) in samples(), order in prop_oneof![Just("blocks"), Just("shuffled")]) {
        let one = two_levels(order, &base, &level).comparison();
        let other = two_levels(order, &level, &base).comparison();
        prop_assert!((one.point.unwrap() * other.point.unwrap() - 1.0).abs() < 1e-9);
        prop_assert_eq!(one.exact, other.exact);
        let turned = match one.verdict {
            Verdict::Faster { beyond_margin } => Verdict::Slower { beyond_margin },
            Verdict::Slower { beyond_margin } => Verdict::Faster { beyond_margin },
            verdict => verdict,
        };
        prop_assert_eq!(turned, other.verdict);
        if let (Some(one), Some(other)) = (one.estimate, other.estimate) {
            prop_assert!((one.low * other.high - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn the_numbering_of_blocks_and_treatments_does_not_matter((base, level) in samples()) {
        let recording = two_levels("blocks", &base, &level);
        let mut renamed = recording.clone();
        renamed.header.design.treatments.swap(0, 1);
        let blocks = base.len() as u32;
        for trial in &mut renamed.trials {
            trial.treatment = 1 - trial.treatment;
            trial.block = blocks + 1 - trial.block;
        }
        renamed.trials.reverse();
        let (one, other) = (recording.comparison(), renamed.comparison());
        prop_assert_eq!((one.verdict, one.n, one.exact), (other.verdict, other.n, other.exact));
        prop_assert!((one.point.unwrap() / other.point.unwrap() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn no_number_that_is_not_finite_comes_out(values in prop::collection::vec(any::<f64>(), 12), order in prop_oneof![Just("blocks"), Just("shuffled"), Just("sequential")]) {
        let findings = two_levels(order, &values[..6], &values[6..]).margin(0.02).analyse();
        let text = format!("{findings:?}");
        prop_assert!(!text.contains("NaN") && !text.contains("inf"), "{}", text);
    }
}

#[test]
fn a_second_clause_over_a_metric_joins_its_family() {
    let recording = two_levels("blocks", &[10.0, 10.1, 9.9, 10.05], &[10.6, 10.4, 10.3, 10.6]);
    let alone = recording.comparison();
    let twice = recording.design(|design| {
        let second = Comparison { margin: Some(0.5), ..design.comparisons[0].clone() };
        design.comparisons.push(second);
    });
    let findings = analyse(&twice.header, &twice.trials, &[], twice.end.as_ref());
    assert_eq!(findings.comparisons.len(), 2);
    assert!((findings.comparisons[0].p_holm.unwrap() - 2.0 * alone.p_holm.unwrap()).abs() < 1e-12);
    let by_metric: BTreeMap<&str, usize> = findings.comparisons.iter().fold(BTreeMap::new(), |mut counts, finding| {
        *counts.entry(finding.metric.as_str()).or_default() += 1;
        counts
    });
    assert_eq!(by_metric["work.score"], 2);
}
