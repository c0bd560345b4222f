//! Recordings in the formats of other tools, with names that would break out of each.

use insta::assert_snapshot;
use irqlab::analysis::{ExpectationVerdict, Findings};
use irqlab::recording::{Fault, Recording};
use irqlab::report::export;
use serde_json::Value;

use super::made;

fn snapshots() -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind_to_scope()
}

/// The recording with two blocks' worth of trials, a warm-up trial, an invalid one and its repetition.
fn small() -> (Recording, Findings) {
    let (mut recording, mut findings) = (made::recording(), made::findings());
    recording.trials.retain(|trial| trial.block <= 2);
    let mut again = recording.trials[4].clone();
    recording.trials[4].faults.push(Fault::TimedOut { process: "loop".to_owned(), limit_ms: 5 });
    (again.attempt, again.sequence) = (1, 90);
    recording.trials.push(again);
    for cell in &mut findings.metrics[0].cells {
        cell.values.truncate(2);
    }
    (recording, findings)
}

/// Names that mean something to every format.
fn hostile() -> (Recording, Findings) {
    let (mut recording, findings) = small();
    let design = &mut recording.header.design;
    "=cmd|' /C calc'!A0\n\"q\" </testsuite> & \u{1b}[31m".clone_into(&mut design.name);
    "a,\"b\"\nc".clone_into(&mut design.treatments[0].name);
    "one cpu/x=y-4 \"z\"".clone_into(&mut design.factors[0].levels[0]);
    "a b=c\nd".clone_into(&mut design.metrics[0].unit);
    "<a & \"b\"> ]]> \u{1}\u{ffff}".clone_into(&mut design.expectations[0].text);
    (recording, findings)
}

#[test]
fn every_format_has_its_form() {
    let _snapshots = snapshots();
    let (recording, findings) = small();
    assert_snapshot!("report_export_json", export::json(&recording, &findings));
    assert_snapshot!("report_export_csv", export::csv(&recording, &findings));
    assert_snapshot!("report_export_hyperfine", export::hyperfine(&recording).unwrap());
    assert_snapshot!("report_export_benchstat", export::benchstat(&recording, &findings));
    assert_snapshot!("report_export_junit", export::junit(&recording, &findings));
}

#[test]
fn hostile_names_stay_inside_their_fields() {
    let (recording, mut findings) = hostile();
    findings.metrics[0].unit = "a b=c\nd".to_owned();
    findings.metrics[0].id = "loop rate".to_owned();
    let json: Value = serde_json::from_str(&export::json(&recording, &findings)).unwrap();
    assert_eq!(json["experiment"].as_str(), Some(recording.header.design.name.as_str()));
    let hyperfine: Value = serde_json::from_str(&export::hyperfine(&recording).unwrap()).unwrap();
    assert_eq!(hyperfine["results"][0]["command"], "a,\"b\"\nc");

    let rows = csv_rows(&export::csv(&recording, &findings));
    assert!(rows.iter().all(|row| row.len() == rows[0].len()), "{rows:?}");
    assert!(rows[1..].iter().all(|row| row[0].starts_with("'=cmd")), "no formula");
    assert!(rows.iter().any(|row| row[3] == "a,\"b\"\nc"));

    let benchstat = export::benchstat(&recording, &findings);
    for line in benchstat.lines().filter(|line| line.starts_with("Benchmark")) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((fields.len(), fields[1]), (4, "1"), "name, count, value, unit: {line}");
        assert!(fields[2].parse::<f64>().is_ok());
        assert_eq!(fields[0].matches('/').count(), 2, "one part per factor: {line}");
        assert_eq!(fields[0].matches('=').count(), 2, "{line}");
    }
    let junit = export::junit(&recording, &findings);
    assert_eq!(junit.matches("</testsuite>").count(), 1, "{junit}");
    assert!(junit.contains("&lt;a &amp; &quot;b&quot;&gt; ]]&gt; \u{fffd}\u{fffd}"), "{junit}");
    assert!(!junit.contains('\u{1b}') && !junit.contains('\u{1}'));
}

/// A reader of RFC 4180.
fn csv_rows(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            other => field.push(other),
        }
    }
    rows
}

#[test]
fn values_come_back_from_csv_as_they_were() {
    let (recording, findings) = small();
    let rows = csv_rows(&export::csv(&recording, &findings));
    let column = |name: &str| rows[0].iter().position(|column| column == name).unwrap();
    for cell in &findings.metrics[0].cells {
        let name = &recording.header.design.treatments[cell.treatment].name;
        let mut read: Vec<(u32, f64)> = rows[1..]
            .iter()
            .filter(|row| row[column("treatment")] == *name && row[column("state")] == "valid")
            .map(|row| (row[column("block")].parse().unwrap(), row[column("value")].parse().unwrap()))
            .collect();
        read.sort_by_key(|(block, _)| *block);
        assert_eq!(read, cell.values);
    }
    let states: Vec<&str> = rows[1..].iter().map(|row| row[column("state")].as_str()).collect();
    assert_eq!(states.iter().filter(|state| **state == "warmup").count(), 4);
    assert_eq!(states.iter().filter(|state| **state == "invalid").count(), 1);
    assert_eq!(states.iter().filter(|state| **state == "valid").count(), 8);
}

#[test]
fn only_a_failed_expectation_fails_a_test_case() {
    let (recording, mut findings) = small();
    for (verdict, failures, skipped) in [
        (ExpectationVerdict::Failed, 1, 0),
        (ExpectationVerdict::Held, 0, 0),
        (ExpectationVerdict::NotContradicted, 0, 0),
        (ExpectationVerdict::Undecided, 0, 1),
        (ExpectationVerdict::Unsupported, 0, 1),
    ] {
        findings.expectations[0].verdict = verdict;
        let junit = export::junit(&recording, &findings);
        let counts = format!("tests=\"1\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"");
        assert_eq!(junit.matches(&counts).count(), 2, "{junit}");
        assert_eq!((junit.matches("<failure").count(), junit.matches("<skipped").count()), (failures, skipped));
    }
}
