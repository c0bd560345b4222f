//! Several factors: averages, interactions as ratios of ratios, simple effects, whole plots.

use irqlab::analysis::{Flag, Method, NoInference, Verdict};
use serde_json::Value;

use super::recordings::{Recording, experiment};

const FACTORS: &[(&str, &[&str])] = &[("routing", &["one", "all"]), ("ht", &["off", "on"])];

fn vector(id: &str) -> Value {
    let vectors: Value = serde_json::from_str(include_str!("../../stat_vectors.json")).unwrap();
    vectors["cases"].as_array().unwrap().iter().find(|case| case["id"] == id).unwrap().clone()
}

fn cells(case: &Value) -> Vec<Vec<f64>> {
    serde_json::from_value(case["input"]["cells"].clone()).unwrap()
}

#[track_caller]
fn close(actual: f64, expected: &Value) {
    let expected = expected.as_f64().unwrap();
    assert!((actual - expected).abs() <= 1e-9 * expected.abs(), "{actual} instead of {expected}");
}

/// The cells of the reference 2 x 2, in an order without blocks.
fn reference() -> Recording {
    experiment(FACTORS, "shuffled", 3).with(&cells(&vector("contrast22.welch.inter")))
}

#[test]
fn an_interaction_is_the_reference_ratio_of_ratios() {
    let expected = &vector("contrast22.welch.inter")["expect"];
    let findings = reference().analyse();
    let [found] = findings.interactions.as_slice() else { panic!("{:?}", findings.interactions) };
    let estimate = found.estimate.unwrap();
    close(estimate.value, &expected["ratio"]);
    close(estimate.low, &expected["lo"]);
    close(estimate.high, &expected["hi"]);
    close(found.p, &expected["p"]);
    assert!(found.real);
    assert_eq!((found.over.as_str(), found.over_level.as_str(), found.over_base.as_str()), ("ht", "on", "off"));
}

#[test]
fn a_real_interaction_puts_simple_effects_in_the_place_of_the_average() {
    let findings = reference().analyse();
    let average = &findings.comparisons[0];
    assert_eq!(average.verdict, Verdict::NoInference(NoInference::DependsOnLevel));
    assert_eq!(average.flags, [Flag::DependsOn { factor: 1 }]);
    assert_eq!((average.p, average.p_holm, average.estimate, average.point), (None, None, None, None));
    let simple: Vec<(&str, f64)> = findings.comparisons[1..]
        .iter()
        .map(|finding| (finding.within[0].1.as_str(), finding.estimate.unwrap().value))
        .collect();
    let ratio = |left: [f64; 3], right: [f64; 3]| {
        (left.iter().map(|value| value.ln()).sum::<f64>() - right.iter().map(|value| value.ln()).sum::<f64>()) / 3.0
    };
    let off = ratio([39.0, 38.7, 39.3], [40.1, 40.5, 39.8]).exp();
    let on = ratio([38.9, 39.4, 38.8], [41.9, 42.4, 42.0]).exp();
    assert_eq!(simple.iter().map(|(level, _)| *level).collect::<Vec<_>>(), ["off", "on"]);
    assert!((simple[0].1 - off).abs() < 1e-12 && (simple[1].1 - on).abs() < 1e-12, "{simple:?}");
    for finding in &findings.comparisons[1..] {
        assert!(finding.averaged_over.is_empty());
        let smallest = findings.comparisons[1..].iter().filter_map(|other| other.p).fold(1.0, f64::min);
        assert!(finding.p_holm.unwrap() >= 2.0 * smallest, "both share one error rate: {finding:?}");
    }
}

#[test]
fn effects_alike_are_averaged_as_in_the_reference() {
    // The cell that makes the interaction is scaled, so that the ratio of ratios is 1; the average follows.
    let interaction = vector("contrast22.welch.inter")["expect"]["ratio"].as_f64().unwrap();
    let mut cells = cells(&vector("contrast22.welch.inter"));
    cells[3].iter_mut().for_each(|value| *value /= interaction);
    let findings = experiment(FACTORS, "shuffled", 3).with(&cells).analyse();
    assert!(!findings.interactions[0].real);
    let [finding] = findings.comparisons.as_slice() else { panic!("{:?}", findings.comparisons) };
    let reference = &vector("contrast22.welch.routing")["expect"];
    let estimate = finding.estimate.unwrap();
    assert!((estimate.value - reference["ratio"].as_f64().unwrap() / interaction.sqrt()).abs() < 1e-9);
    assert_eq!((finding.averaged_over.as_slice(), estimate.method), ([String::from("ht")].as_slice(), Method::WelchT));
}

#[test]
fn in_blocks_the_interaction_is_one_contrast_a_block() {
    let (one_off, one_on) = ([10.0, 10.4, 9.8, 10.1, 9.9], [20.0, 20.9, 19.5, 20.1, 19.9]);
    let (all_off, all_on) = ([11.0, 11.3, 10.9, 11.0, 10.9], [20.1, 21.2, 19.6, 20.0, 20.1]);
    let values = [one_off.to_vec(), one_on.to_vec(), all_off.to_vec(), all_on.to_vec()];
    let findings = experiment(FACTORS, "blocks", 5).with(&values).analyse();
    let by_block: Vec<f64> =
        (0..5).map(|i| (all_on[i] / one_on[i]).ln() - (f64::ln(all_off[i]) - f64::ln(one_off[i]))).collect();
    let expected = irqlab::analysis::student::paired(&by_block, 0.0).unwrap();
    let found = findings.interactions[0].estimate.unwrap();
    assert!((found.value - expected.estimate.exp()).abs() < 1e-12);
    assert!((found.high - expected.interval(0.95).unwrap().1.exp()).abs() < 1e-12);
    assert_eq!(findings.comparisons.len(), 3, "the average and the two simple effects");
}

#[test]
fn only_the_factor_an_effect_depends_on_is_taken_apart() {
    let factors: &[(&str, &[&str])] = &[("routing", &["one", "all"]), ("ht", &["off", "on"]), ("nic", &["a", "b"])];
    let noise = |treatment: usize, block: u32, _| {
        let (routing, ht) = (treatment / 4, treatment / 2 % 2);
        let effect = if routing == 1 && ht == 1 { 1.3 } else { 1.0 };
        effect * (1.0 + 0.002 * f64::from((block * 31 + treatment as u32 * 17 + block * block * 5) % 11))
    };
    let findings = experiment(factors, "blocks", 6).filled(noise).analyse();
    let within: Vec<Vec<&str>> = findings
        .comparisons
        .iter()
        .map(|finding| finding.within.iter().map(|(_, level)| level.as_str()).collect())
        .collect();
    assert_eq!(within, [vec![], vec!["off"], vec!["on"]]);
    assert_eq!(findings.comparisons[2].averaged_over, ["nic"]);
    assert!(matches!(findings.comparisons[2].verdict, Verdict::Slower { .. }));
    assert!(!matches!(findings.comparisons[1].verdict, Verdict::Slower { .. } | Verdict::Faster { .. }));
}

#[test]
fn an_order_that_gives_no_verdict_tests_no_interaction() {
    let findings = experiment(FACTORS, "sequential", 3).with(&cells(&vector("contrast22.welch.inter"))).analyse();
    assert!(findings.interactions.is_empty());
    assert_eq!(findings.comparisons[0].verdict, Verdict::NoInference(NoInference::SequentialOrder));
}

/// The reference split plot: hyper-threading is set up once per block half, routing changes inside. In it the order is
/// (off,one) (off,all) (on,one) (on,all), as here with the factors ht, routing.
fn split_plot(y: &[f64]) -> Recording {
    let cell = |place: usize| y.iter().skip(place).step_by(4).copied().collect::<Vec<f64>>();
    experiment(&[("ht", &["off", "on"]), ("routing", &["one", "all"])], "blocks", 4)
        .design(|design| design.factors[0].hard_to_change = true)
        .with(&[cell(0), cell(1), cell(2), cell(3)])
}

fn split_plot_values() -> Vec<f64> {
    serde_json::from_value(vector("split_plot")["input"]["y"].clone()).unwrap()
}

#[test]
fn a_whole_plot_factor_is_judged_by_its_own_error() {
    let expected = &vector("split_plot")["expect"];
    // Without the interaction, so that the average stands: each routing's own mean is taken out of the interaction.
    let logs: Vec<f64> = split_plot_values().iter().map(|value| value.ln()).collect();
    let interaction = logs.chunks_exact(4).map(|block| block[3] - block[2] - block[1] + block[0]).sum::<f64>() / 4.0;
    let without: Vec<f64> =
        (0..16).map(|i| (logs[i] - interaction / 4.0 * [1.0, -1.0, -1.0, 1.0][i % 4]).exp()).collect();
    let findings = split_plot(&without).analyse();
    let finding = &findings.comparisons[0];
    close(finding.p.unwrap(), &expected["ht"]["p"]);
    let wrong = expected["wrong_ht_if_analysed_as_RCBD"]["p"].as_f64().unwrap();
    assert!(finding.p.unwrap() > 100.0 * wrong);
}

#[test]
fn a_whole_plot_factor_that_interacts_shows_its_effect_per_sub_plot_level() {
    let findings = split_plot(&split_plot_values()).analyse();
    assert!(findings.interactions[0].real);
    assert_eq!(findings.comparisons[0].verdict, Verdict::NoInference(NoInference::DependsOnLevel));
    let simple: Vec<(&str, (usize, usize))> =
        findings.comparisons[1..].iter().map(|finding| (finding.within[0].1.as_str(), finding.n)).collect();
    assert_eq!(simple, [("one", (4, 4)), ("all", (4, 4))]);
}
