//! Numbers that are there, and named failures for those that are not.

use super::*;

fn output(stdout: &str) -> Output {
    Output { stdout: stdout.to_owned(), stderr: String::new() }
}

fn regex(pattern: &str, stdout: &str) -> Result<f64, String> {
    regex_number(pattern, &output(stdout))
}

#[test]
fn a_regular_expression_gives_its_first_group() {
    assert_eq!(regex(r"Time: ([\d.]+)", "warm\nTime: 11.244\nTime: 99\n"), Ok(11.244));
    assert_eq!(regex(r"Throughput (\S+) MB", "Throughput 1.2e+03 MB/sec"), Ok(1200.0));
    assert_eq!(regex(r"\d+", "count 42"), Ok(42.0));
    assert_eq!(regex(r"x=(-?\d+)", "x=-3"), Ok(-3.0));
}

#[test]
fn standard_error_is_searched_second() {
    let output = Output { stdout: "no number here".to_owned(), stderr: "\"size=0k ovr=1.50\n2 3.21\n".to_owned() };
    assert_eq!(regex_number(r"(?m)^2 ([\d.]+)$", &output), Ok(3.21));
}

#[test]
fn what_cannot_be_read_is_named_and_never_zero() {
    let failures = [
        regex(r"Time: ([\d.]+)", ""),
        regex(r"Time: ([\d.]+)", "started\nfailed: no space\n\n"),
        regex(r"Time: (\S+)", "Time: +++++\n"),
        regex(r"Time: (\S+)", "Time: inf s\n"),
        regex(r"Time: (\d+)?", "Time: none\n"),
        regex(r"(", "x"),
        json_number("a.b", "no json"),
        json_number("a.b", "{\"a\":{\"c\":1}}"),
        json_number("a[2]", "{\"a\":[1]}"),
        json_number("a", "{\"a\":true}"),
        json_number("a", "{\"a\":\"fast\"}"),
        json_number("a..b", "{}"),
        json_number("a[x]", "{}"),
        json_number("", "{}"),
    ];
    let details: Vec<String> = failures.into_iter().map(|failure| failure.unwrap_err()).collect();
    insta::with_settings!({ snapshot_path => "../../../tests/snapshots/run", prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!(details.join("\n---\n"));
    });
}

#[test]
fn a_json_path_finds_numbers_and_numeric_texts() {
    let text = r#"{"jobs":[{"read":{"iops":12.5,"clat":{"99.000000":7}}}],"time":"3.5"}"#;
    for (path, value) in [
        ("jobs[0].read.iops", 12.5),
        ("$.jobs[0].read.iops", 12.5),
        ("$[\"jobs\"][0]['read'].iops", 12.5),
        ("jobs[0].read.clat[\"99.000000\"]", 7.0),
        ("time", 3.5),
    ] {
        assert_eq!(json_number(path, text), Ok(value), "{path}");
    }
    assert_eq!(json_number("[1]", "[1, 2]"), Ok(2.0));
}

#[test]
fn json_with_words_around_it_is_read() {
    assert_eq!(json_number("a", "fio: this is a warning [x]\n{\n  \"a\": 1\n}\nbye\n"), Ok(1.0));
}

#[test]
fn every_parser_is_applied_and_failures_do_not_hide_successes() {
    let parsers = [
        Parser::Regex { pattern: r"a=(\d+)".to_owned(), metric: "a".to_owned() },
        Parser::Regex { pattern: r"b=(\d+)".to_owned(), metric: "b".to_owned() },
        Parser::Known("bonnie".to_owned()),
    ];
    let parsed = parse(&parsers, &output("a=5"));
    assert_eq!(parsed.values, BTreeMap::from([("a".to_owned(), 5.0)]));
    let failed: Vec<&str> = parsed.failures.iter().map(|failure| failure.metric.as_str()).collect();
    assert_eq!(failed, ["b", "bonnie"]);
}

#[test]
fn a_built_in_workload_gives_numbers_and_notes() {
    let parsed = builtin(&output("{\"rate\":2.5,\"loops\":5,\"cpus\":\"0 1\"}\n"));
    assert_eq!(parsed.values, BTreeMap::from([("loops".to_owned(), 5.0), ("rate".to_owned(), 2.5)]));
    assert_eq!(parsed.notes, BTreeMap::from([("cpus".to_owned(), "0 1".to_owned())]));
    assert_eq!(builtin(&output("")).failures.len(), 1);
    assert_eq!(builtin(&output("[1]")).failures[0].detail, "expected one JSON object, found `[1]`");
}
