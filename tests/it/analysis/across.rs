//! Two recordings beside each other: what is compared, and what is refused.

use irqlab::analysis::{Method, Verdict, across};
use irqlab::recording::{ProcessPlan, Recording as Recorded};
use irqlab::report::{self, Beside};

use super::recordings::{Recording, experiment};

fn recorded(recording: Recording) -> Recorded {
    let Recording { header, trials, resumed, end } = recording;
    Recorded { header, trials, resumed, end, asked: Vec::new(), notes: Vec::new(), length: 0 }
}

/// Two treatments in five blocks whose values are `factor` times their own.
fn made(factor: f64) -> Recording {
    experiment(&[("routing", &["a", "b"])], "blocks", 5).filled(|treatment, block, _| {
        let noise = 1.0 + 0.004 * f64::from((block * 31 + treatment as u32 * 17 + block * block) % 7);
        [10.0, 12.0][treatment] * noise * if treatment == 1 { factor } else { 1.0 }
    })
}

#[test]
fn each_treatment_is_compared_unpaired_with_its_own() {
    let (old, new) = (recorded(made(1.0)), recorded(made(1.2)));
    let found = across(&old, &new).unwrap();
    let [a, b] = found.findings.as_slice() else { panic!("{found:?}") };
    assert_eq!((a.verdict, b.verdict), (Verdict::Inconclusive, Verdict::Slower { beyond_margin: false }));
    assert!((b.estimate.unwrap().value - 1.2).abs() < 1e-9);
    assert_eq!((b.estimate.unwrap().method, b.n), (Method::WelchT, (5, 5)));
    assert!((b.p_holm.unwrap() - 2.0 * b.p.unwrap()).abs() < 1e-12, "both treatments share one error rate");
    let (before, after) = found.centres[1];
    assert!((after.unwrap() / before.unwrap() - 1.2).abs() < 1e-9);
    let back = across(&new, &old).unwrap();
    assert!((back.findings[1].estimate.unwrap().value - 1.0 / 1.2).abs() < 1e-9, "new against old");
}

#[test]
fn equality_needs_the_declared_margin() {
    let (old, new) = (recorded(made(1.0).margin(0.05)), recorded(made(1.0).margin(0.05)));
    assert!(across(&old, &new).unwrap().findings.iter().all(|finding| finding.verdict == Verdict::Equivalent));
}

#[test]
fn what_was_not_the_same_is_not_laid_beside_each_other() {
    let old = recorded(made(1.0));
    let plan =
        |command: &str| ProcessPlan { name: "work".to_owned(), command: command.to_owned(), cpus: None, instances: 1 };
    let changed: Vec<(&str, Recording)> = vec![
        ("experiments", made(1.0).design(|design| design.name = "other".to_owned())),
        ("factors", made(1.0).design(|design| design.factors[0].levels[1] = "c".to_owned())),
        ("treatments", made(1.0).design(|design| design.treatments[1].control = 1)),
        ("workloads", made(1.0).design(|design| design.treatments[1].workloads.push(plan("true")))),
        ("unit", made(1.0).design(|design| design.metrics[0].unit = "s".to_owned())),
        ("measured in one only", made(1.0).design(|design| design.metrics[0].id = "work.other".to_owned())),
        ("orders", made(1.0).design(|design| design.protocol.order = "shuffled".to_owned())),
    ];
    for (what, new) in changed {
        let refused = across(&old, &recorded(new)).unwrap_err();
        assert!(refused.iter().any(|reason| reason.contains(what)), "{what}: {refused:?}");
    }
    let mut another_host = made(1.0);
    another_host.header.host.kernel_release = Some("7.0".to_owned());
    another_host.header.design.treatments[0].settings.push("irq 24 -> cpu 3".to_owned());
    assert!(across(&old, &recorded(another_host)).is_ok(), "hosts may differ");
}

#[test]
fn the_page_warns_and_names_what_differs() {
    let (old, mut new) = (recorded(made(1.0)), recorded(made(1.2)));
    new.header.host.kernel_release = Some("7.0|<b>`x`".to_owned());
    new.header.design.protocol.seed = 2;
    let findings = |recording: &Recorded| {
        irqlab::analysis::analyse(&recording.header, &recording.trials, &[], recording.end.as_ref())
    };
    let found = across(&old, &new).unwrap();
    let (before, after) = (findings(&old), findings(&new));
    let page = report::across(Beside { old: (&old, &before), new: (&new, &after), across: &found });
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots/analysis");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("across_page", page));
}
