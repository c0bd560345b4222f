//! Pictures of hand-made findings: what they hold, hostile names, large hosts, and the files beside a report.

use insta::assert_snapshot;
use irqlab::analysis::{
    Cell, ComparisonFinding, Findings, Flag, IrqLanding, MetricFindings, NoInference, Scale, Summary, Verdict,
};
use irqlab::recording::{Fault, Recording};
use irqlab::report::{self, Picture};

use super::made::{cell, cpus, finding, findings, host, names, recording, treatment, with};

/// Elements a picture may be made of: nothing that loads or runs anything.
const ELEMENTS: [&str; 11] =
    ["circle", "desc", "g", "line", "path", "polyline", "rect", "style", "svg", "text", "title"];

fn snapshots() -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind_to_scope()
}

/// All pictures, each well-formed, with title and description, light and dark, and nothing in it but drawing.
fn pictures(recording: &Recording, findings: &Findings) -> Vec<Picture> {
    let pictures = report::pictures(recording, findings);
    for picture in &pictures {
        let document = roxmltree::Document::parse(&picture.svg)
            .unwrap_or_else(|error| panic!("{}: {error}\n{}", picture.file, picture.svg));
        let root = document.root_element();
        let child = |name: &str| root.children().find(|node| node.has_tag_name(("http://www.w3.org/2000/svg", name)));
        assert_eq!(child("title").and_then(|node| node.text()), Some(picture.title.as_str()), "{}", picture.file);
        assert_eq!(child("desc").and_then(|node| node.text()), Some(picture.description.as_str()), "{}", picture.file);
        assert!(picture.svg.contains("prefers-color-scheme:dark"), "{}", picture.file);
        for node in document.descendants().filter(roxmltree::Node::is_element) {
            assert!(ELEMENTS.contains(&node.tag_name().name()), "{}: {:?}", picture.file, node.tag_name());
            for attribute in node.attributes() {
                let value = attribute.value();
                assert!(!value.contains("NaN") && !value.contains("inf"), "{}: {attribute:?}", picture.file);
            }
        }
        assert!(picture.svg.len() < 200_000, "{}: {} bytes", picture.file, picture.svg.len());
    }
    pictures
}

fn named<'a>(pictures: &'a [Picture], file: &str) -> &'a Picture {
    let files: Vec<&str> = pictures.iter().map(|picture| picture.file.as_str()).collect();
    pictures.iter().find(|picture| picture.file == file).unwrap_or_else(|| panic!("no {file} in {files:?}"))
}

/// Every text of a drawing, in its order.
fn texts(picture: &Picture) -> Vec<String> {
    let document = roxmltree::Document::parse(&picture.svg).unwrap();
    let nodes = document.descendants().filter(|node| node.tag_name().name() == "text");
    nodes.map(|node| node.text().unwrap_or_default().to_owned()).collect()
}

/// The trials as `findings()` has their values: none is invalid but one.
fn with_an_invalid_trial() -> (Recording, Findings) {
    let (mut recording, mut findings) = (recording(), findings());
    let trial = recording.trials.iter_mut().find(|trial| trial.block == 2 && trial.treatment == 3).unwrap();
    trial.faults = vec![Fault::TreatmentNotInForce { detail: "irq 24 landed on 1".to_owned() }];
    findings.metrics[0].cells[3].values.retain(|(block, _)| *block != 2);
    (recording, findings)
}

#[test]
fn each_kind_of_picture_shows_what_the_tables_say() {
    let _snapshots = snapshots();
    let (recording, findings) = with_an_invalid_trial();
    let pictures = pictures(&recording, &findings);
    let expected = [
        ("forest.svg", "picture_forest"),
        ("dots-loop-rate.svg", "picture_dots_loop_rate"),
        ("interaction-loop-rate.svg", "picture_interaction_loop_rate"),
        ("landing.svg", "picture_landing"),
        ("order-loop-rate.svg", "picture_order_loop_rate"),
    ];
    assert_eq!(pictures.len(), expected.len());
    for (picture, (file, snapshot)) in pictures.iter().zip(expected) {
        assert_eq!(picture.file, file);
        assert_snapshot!(snapshot, picture.svg);
    }
    assert_eq!(texts(named(&pictures, "order-loop-rate.svg")).iter().filter(|text| *text == "×").count(), 1);
    let order = &named(&pictures, "order-loop-rate.svg").svg;
    assert_eq!(order.matches("stroke-dasharray").count(), 7, "seven borders between eight blocks");
}

#[test]
fn a_forest_tells_verdicts_apart_and_draws_no_interval_where_there_is_none() {
    let _snapshots = snapshots();
    let (recording, mut findings) = (recording(), findings());
    let mut single = finding(0, Verdict::NoInference(NoInference::SingleValue));
    single.point = Some(0.9);
    let mut difference = with(finding(1, Verdict::Inconclusive), (-1.2, -3.0, 0.6), 0.2, 0.3);
    difference.scale = Scale::Difference;
    let mut unbounded = with(finding(1, Verdict::Inconclusive), (1.1, 1e-200, f64::INFINITY), 0.9, 0.9);
    unbounded.within = vec![("ipc".to_owned(), "pipe".to_owned())];
    findings.comparisons = vec![
        with(finding(0, Verdict::Faster { beyond_margin: true }), (1.21, 1.15, 1.27), 0.001, 0.01),
        with(finding(1, Verdict::Equivalent), (1.003, 0.995, 1.011), 0.4, 0.4),
        single,
        difference,
        unbounded,
    ];
    let picture = &pictures(&recording, &findings)[0];
    assert!(picture.description.contains("1 more in the table of comparisons"), "{}", picture.description);
    assert!(texts(picture).contains(&"0.9000×, no interval".to_owned()), "{:?}", texts(picture));
    assert_snapshot!("picture_forest_of_every_verdict", picture.svg);
}

#[test]
fn without_inference_the_hurried_reader_gets_the_dots() {
    let (recording, mut findings) = (recording(), findings());
    for comparison in &mut findings.comparisons {
        comparison.estimate = None;
        comparison.verdict = Verdict::NoInference(NoInference::SequentialOrder);
    }
    let view = report::view(&recording, &findings);
    let headline = view.pictures.headline.unwrap();
    assert_eq!(headline.path, "plots/dots-loop-rate.svg");
    assert!(!view.pictures.results.iter().any(|picture| picture.path == headline.path), "shown once");
    findings.comparisons.clear();
    findings.metrics.clear();
    findings.treatment_checks.clear();
    let text = report::markdown(&recording, &findings).unwrap();
    assert!(!text.contains("!["), "{text}");
    assert!(pictures(&recording, &findings).is_empty());
}

#[test]
fn a_report_refers_to_each_picture_once_with_words_for_those_who_do_not_see_it() {
    let (recording, findings) = (recording(), findings());
    let text = report::markdown(&recording, &findings).unwrap();
    for picture in pictures(&recording, &findings) {
        assert_eq!(text.matches(&format!("](plots/{})", picture.file)).count(), 1, "{}: {text}", picture.file);
    }
    let verdict = text.find("is slower than").unwrap();
    let headline = text.find("](plots/forest.svg)").unwrap();
    assert!(verdict < headline && headline < text.find("**Evidence:**").unwrap(), "{text}");
    assert!(text.contains("![Ratios of loop.rate to the base level. Marks are ratios"), "{text}");
}

#[test]
fn hostile_names_stay_text_in_pictures_and_in_their_file_names() {
    let (mut recording, mut findings) = (recording(), findings());
    let evil = "a]]>&amp;<script>alert(1)</script>\"'\u{1b}[2J\n\u{fffe}\u{202e}gnp $x^2$ \\$ ../../e|`";
    for treatment in &mut recording.header.design.treatments {
        evil.clone_into(&mut treatment.name);
    }
    for factor in &mut recording.header.design.factors {
        evil.clone_into(&mut factor.name);
        factor.levels = names(&[evil, &"界".repeat(400)]);
    }
    let metric = &mut findings.metrics[0];
    evil.clone_into(&mut metric.label);
    evil.clone_into(&mut metric.unit);
    evil.clone_into(&mut metric.id);
    let mut other = metric.clone();
    other.id = evil.replace('|', "/");
    for comparison in &mut findings.comparisons {
        evil.clone_into(&mut comparison.level);
        evil.clone_into(&mut comparison.metric);
        comparison.within = vec![(evil.to_owned(), evil.to_owned())];
    }
    findings.metrics.push(other);
    evil.clone_into(&mut findings.treatment_checks[0].irqs[0].description);
    evil.clone_into(&mut findings.treatment_checks[0].irqs[0].label);
    let pictures = pictures(&recording, &findings);
    assert_eq!(pictures.len(), 8);
    let mut files: Vec<&str> = pictures.iter().map(|picture| picture.file.as_str()).collect();
    assert!(files.iter().all(|file| file.chars().all(|c| c.is_ascii_alphanumeric() || "-.".contains(c))), "{files:?}");
    files.sort_unstable();
    files.dedup();
    assert_eq!(files.len(), 8, "no picture overwrites another: {files:?}");
    for picture in &pictures {
        let bad = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{fffe}');
        assert!(!picture.svg.contains(bad), "{}", picture.file);
    }
    let dots = pictures.iter().find(|picture| picture.file.starts_with("dots")).unwrap();
    assert!(dots.title.contains("$x^2$ \\$"), "{}", dots.title);
    assert!(texts(dots).iter().any(|text| text.ends_with('…')), "{:?}", texts(dots));
    assert!(dots.svg.contains("<title>a]]&gt;&amp;amp;&lt;script&gt;"), "the whole name is in a title: {}", dots.svg);
    let text = report::markdown(&recording, &findings).unwrap();
    assert!(!text.contains("<script>alert(1)</script>](plots"), "{text}");
}

#[test]
fn dollars_are_not_read_as_mathematics() {
    let (mut recording, findings) = (recording(), findings());
    "a$x^2$b \\$c$".clone_into(&mut recording.header.design.treatments[0].name);
    let pictures = pictures(&recording, &findings);
    assert!(texts(named(&pictures, "dots-loop-rate.svg")).contains(&"a$x^2$b \\$c$".to_owned()));
}

#[test]
fn a_host_with_256_cpus_folds_its_columns_and_loses_no_interrupt() {
    let _snapshots = snapshots();
    let (mut recording, mut findings) = (recording(), findings());
    recording.header.host = host("0-255");
    for check in &mut findings.treatment_checks {
        check.irqs = (0..300_u32)
            .map(|irq| IrqLanding {
                label: (irq + 24).to_string(),
                description: "IR-PCI-MSI-0000:81:00.0 48-edge mlx5_comp48@pci:0000:81:00.0".to_owned(),
                asked: cpus("0-9,128"),
                by_cpu: vec![(3, u64::from(irq)), (128, 1), (255, 2)],
            })
            .collect();
    }
    let pictures = pictures(&recording, &findings);
    let landing = named(&pictures, "landing.svg");
    assert!(landing.svg.len() < 100_000, "{}", landing.svg.len());
    assert!(texts(landing).contains(&"0-7".to_owned()), "{:?}", texts(landing));
    assert!(landing.description.contains("Neighbouring CPUs share a column"));
    let dashed = landing.svg.matches("stroke-dasharray=\"3 2\"").count();
    assert_eq!(dashed, 20 * 2, "in each row columns 8-15 and 128-135 are asked for in part");
    assert_snapshot!("picture_landing_256", landing.svg);
}

/// A design of many treatments and metrics, more than pictures can hold.
fn large() -> (Recording, Findings) {
    let (mut recording, mut findings) = (recording(), findings());
    let design = &mut recording.header.design;
    design.treatments = (0..200).map(|index| treatment(&format!("treatment {index}"), [0, 0], &["x"])).collect();
    let values: Vec<f64> = (0..500_u32).map(|value| f64::from(value * 7919 % 1000) + 1.0).collect();
    let cells: Vec<Cell> = (0..200).map(|treatment| cell(treatment, &values)).collect();
    findings.metrics = (0..30)
        .map(|index| MetricFindings {
            id: format!("bonnie.m{index}"),
            label: format!("bonnie.m{index}"),
            cells: cells.clone(),
            ..findings.metrics[0].clone()
        })
        .collect();
    let undecided = with(finding(1, Verdict::Inconclusive), (1.001, 0.99, 1.012), 0.8, 0.8);
    let mut decided = with(finding(0, Verdict::Slower { beyond_margin: true }), (0.7, 0.6, 0.8), 0.001, 0.01);
    decided.flags = vec![Flag::ModelBasedOnly];
    "bonnie.m29".clone_into(&mut decided.metric);
    findings.comparisons = (0..90)
        .map(|index| ComparisonFinding { metric: format!("bonnie.m{}", index % 20), ..undecided.clone() })
        .chain([decided])
        .collect();
    (recording, findings)
}

#[test]
fn many_treatments_metrics_and_values_stay_small_and_no_decided_comparison_is_hidden() {
    let (recording, findings) = large();
    let pictures = pictures(&recording, &findings);
    assert!(pictures.len() <= 20, "{}", pictures.len());
    let total: usize = pictures.iter().map(|picture| picture.svg.len()).sum();
    assert!(total < 3_000_000, "{total}");
    let forest = &pictures[0];
    assert!(texts(forest).contains(&"bonnie.m29".to_owned()), "{:?}", texts(forest));
    assert!(forest.description.contains("67 more in the table of comparisons"), "{}", forest.description);
    let dots = named(&pictures, "dots-bonnie-m0.svg");
    assert!(dots.description.contains("160 more treatments in the table"), "{}", dots.description);
    assert!(dots.description.contains("at most 30 of a treatment"), "{}", dots.description);
}

#[test]
fn values_that_are_equal_negative_zero_or_huge_still_make_a_picture() {
    for values in [[0.0, 0.0, 0.0], [-3.0, 0.0, 5.0], [7.0, 7.0, 7.0], [1e300, 2e300, 3e300], [1e-12, 2e-12, 9e-12]] {
        let (recording, mut findings) = (recording(), findings());
        findings.metrics[0].cells = (0..4).map(|treatment| cell(treatment, &values)).collect();
        let pictures = pictures(&recording, &findings);
        let numbers = texts(named(&pictures, "dots-loop-rate.svg"));
        assert!(numbers.iter().filter(|text| text.parse::<f64>().is_ok()).count() >= 2, "{values:?}: {numbers:?}");
    }
}

#[test]
fn published_rows_without_single_values_show_their_range_and_no_interval() {
    let (mut recording, mut findings) = (recording(), findings());
    recording.header.design.source = Some("a list".to_owned());
    "recorded".clone_into(&mut recording.header.design.protocol.order);
    let summary = Summary {
        n: 3,
        low: 10.0,
        high: 30.0,
        mean: 20.0,
        median: 20.0,
        geometric_mean: None,
        median_interval: None,
        sd: None,
        cv: None,
    };
    for cell in &mut findings.metrics[0].cells {
        cell.values.clear();
        cell.summary = Some(summary);
    }
    findings.comparisons.clear();
    let pictures = pictures(&recording, &findings);
    let files: Vec<&str> = pictures.iter().map(|picture| picture.file.as_str()).collect();
    assert_eq!(files, ["dots-loop-rate.svg", "interaction-loop-rate.svg"], "nothing of a run that was none");
    let dots = &pictures[0];
    assert!(!dots.svg.contains("<circle"), "{}", dots.svg);
    assert!(dots.description.contains("from the lowest to the highest value"), "{}", dots.description);
}

#[test]
fn the_same_recording_gives_the_same_bytes() {
    let (recording, findings) = with_an_invalid_trial();
    assert_eq!(report::pictures(&recording, &findings), report::pictures(&recording, &findings));
    assert_eq!(report::html(&recording, &findings).unwrap(), report::html(&recording, &findings).unwrap());
}

#[test]
fn stale_missing_and_changed_pictures_are_named_and_foreign_files_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("recording.jsonl");
    let pictures = report::pictures(&recording(), &findings());
    assert_eq!(report::check_pictures(&path, &pictures).len(), pictures.len(), "all are missing");
    report::write_pictures(&path, &pictures).unwrap();
    assert!(report::check_pictures(&path, &pictures).is_empty());
    let plots = folder.path().join("plots");
    std::fs::write(plots.join("old.svg"), &pictures[0].svg).unwrap();
    std::fs::write(plots.join("mine.svg"), "<svg xmlns=\"http://www.w3.org/2000/svg\"/>").unwrap();
    std::fs::write(plots.join("forest.svg"), pictures[0].svg.replace("slower", "faster")).unwrap();
    std::fs::remove_file(plots.join("landing.svg")).unwrap();
    let errors: Vec<String> =
        report::check_pictures(&path, &pictures).iter().map(std::string::ToString::to_string).collect();
    assert_eq!(errors.len(), 3, "{errors:?}");
    assert!(errors[0].contains("forest.svg` is not what its recording renders to; line"), "{errors:?}");
    assert!(errors[1].contains("landing.svg` cannot be read"), "{errors:?}");
    assert!(errors[2].contains("old.svg` is a picture its report does not have"), "{errors:?}");
    report::write_pictures(&path, &pictures).unwrap();
    assert!(report::check_pictures(&path, &pictures).is_empty());
    assert!(plots.join("mine.svg").exists(), "somebody's own file is left alone");
}
