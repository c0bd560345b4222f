//! Parsers of known tools, on what the tools printed: `tests/cases/parse/outputs/README.md` says how each was made.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use irqlab::check::vocabulary::PARSERS;
use irqlab::design::Parser;
use irqlab::workloads::parse::{Output, Parsed, parse};

fn outputs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/parse/outputs")
}

/// Text of each output of a tool, by file name.
fn outputs_of(tool: &str) -> Vec<(String, String)> {
    let Ok(entries) = fs::read_dir(outputs().join(tool)) else { return Vec::new() };
    let mut files: Vec<(String, String)> = entries
        .map(|entry| {
            let entry = entry.unwrap();
            (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap())
        })
        .collect();
    files.sort();
    files
}

fn parsed(tool: &str, stdout: &str) -> Parsed {
    let output = Output { stdout: stdout.to_owned(), stderr: String::new() };
    parse(&[Parser::Known(tool.to_owned())], &output)
}

fn detail(tool: &str, stdout: &str) -> String {
    let parsed = parsed(tool, stdout);
    assert!(parsed.values.is_empty(), "{tool} read {:?} from {stdout}", parsed.values);
    parsed.failures.first().unwrap_or_else(|| panic!("{tool} has no complaint about {stdout}")).detail.clone()
}

#[test]
fn known_outputs_yield_all_metrics_of_the_table_and_nothing_else() {
    for parser in PARSERS {
        let known: BTreeSet<&str> = parser.metrics.iter().map(|metric| metric.name).collect();
        let mut yielded = BTreeSet::new();
        for (file, text) in outputs_of(parser.name) {
            let parsed = parsed(parser.name, &text);
            assert_eq!(parsed.failures, [], "{}/{file}", parser.name);
            assert!(!parsed.values.is_empty(), "{}/{file}", parser.name);
            yielded.extend(parsed.values.into_keys());
        }
        if yielded.is_empty() {
            continue;
        }
        let unyielded: Vec<&&str> = known.iter().filter(|name| !yielded.contains(**name)).collect();
        assert!(unyielded.is_empty(), "no output of {} yields {unyielded:?}", parser.name);
        let unknown: Vec<&String> = yielded.iter().filter(|name| !known.contains(name.as_str())).collect();
        assert!(unknown.is_empty(), "{} yields what its table does not have: {unknown:?}", parser.name);
    }
}

#[test]
fn an_output_cut_anywhere_is_a_failure_or_what_the_whole_one_says() {
    for parser in PARSERS {
        for (file, text) in outputs_of(parser.name) {
            let whole = parsed(parser.name, &text);
            for (end, _) in text.char_indices() {
                let cut = parsed(parser.name, &text[..end]);
                let says_so = !cut.failures.is_empty() && cut.values.is_empty();
                assert!(says_so || cut == whole, "{}/{file} cut at {end}: {cut:?}", parser.name);
            }
        }
    }
}

#[test]
fn bonnie_finds_each_number_in_each_version() {
    let outputs = outputs_of("bonnie");
    let of = |file: &str| parsed("bonnie", &outputs.iter().find(|(name, _)| name == file).unwrap().1);
    let old = of("1.03-raid.txt");
    assert_eq!((old.values["write_char"], old.values["seeks"], old.values["seeks_cpu"]), (40736.0, 118.2, 0.0));
    assert_eq!((old.values["seq_create"], old.values["random_delete_cpu"]), (4417.0, 10.0));
    assert_eq!(old.notes["seq_stat"], "too short to measure");
    assert!(!old.values.contains_key("seq_stat") && !old.values.contains_key("seq_stat_cpu"));
    let new = of("2.00.txt");
    assert_eq!((new.values["write_char"], new.values["read_char_cpu"]), (698.0, 34.0));
    assert_eq!((new.values.len(), of("2.00-long.txt").values["random_stat"]), (4, 56968.0));
    let fast = new_line_without_characters(&outputs);
    assert!(!fast.values.contains_key("write_char") && !fast.notes.contains_key("write_char"));
}

/// What `-f` prints: the tests that go byte by byte are not run.
fn new_line_without_characters(outputs: &[(String, String)]) -> Parsed {
    let (_, text) = outputs.iter().find(|(name, _)| name == "2.00-long.txt").unwrap();
    parsed("bonnie", &text.replace(",94,3,", ",,,").replace(",17915ms,", ",,"))
}

#[test]
fn bonnie_reads_the_48_fields_of_version_1_96() {
    let line = "1.96,1.96,host,1,1300000000,4G,,101,99,202,10,303,11,404,98,505,12,606.5,13,16,,,,,701,21,702,22,\
                703,23,704,24,705,25,706,26,80us,81us,82ms,83us,84ms,85ms,86us,87us,88us,89us,90us,91us\n";
    let values = parsed("bonnie", line).values;
    let named = |name: &str| (values[name], values[&format!("{name}_cpu")]);
    assert_eq!(named("write_char"), (101.0, 99.0));
    assert_eq!(named("seeks"), (606.5, 13.0));
    assert_eq!(named("seq_create"), (701.0, 21.0));
    assert_eq!(named("random_delete"), (706.0, 26.0));
    assert_eq!(values.len(), 24);
}

#[test]
fn bonnie_names_what_it_cannot_read() {
    let good = "host,1G,1,1,2,2,3,3,4,4,5,5,6.5,6,16,7,7,8,8,9,9,10,10,11,11,12,12\n";
    assert_eq!(parsed("bonnie", good).values.len(), 24);
    assert_eq!(parsed("bonnie", &good.replacen("host", "1.97", 1)).values.get("seeks"), Some(&6.5));
    assert!(detail("bonnie", "").contains("empty"));
    assert!(detail("bonnie", "Can't open file ./Bonnie.1.\n").contains("Can't open file"));
    assert!(detail("bonnie", &good.replace("6.5", "6,5")).contains("28"));
    assert!(detail("bonnie", &good.repeat(2)).contains("more than one"));
    assert!(detail("bonnie", "host,1G,,,,,,,,,,,,,,,,,,,,,,,,,\n").contains("nothing was measured"));
    let one_wrong = parsed("bonnie", &good.replace("6.5", "nan"));
    assert_eq!(one_wrong.failures.len(), 1);
    assert_eq!(one_wrong.failures[0].metric, "seeks");
    assert!(one_wrong.failures[0].detail.contains("`nan` is not a number, in the line `host,1G"));
}

#[test]
fn dbench_takes_the_last_line_and_not_the_warm_up() {
    let outputs = outputs_of("dbench");
    let of = |file: &str| parsed("dbench", &outputs.iter().find(|(name, _)| name == file).unwrap().1).values;
    assert_eq!(
        of("4.00-tbench.txt").into_iter().collect::<Vec<_>>(),
        [("latency_max".to_owned(), 795.775), ("throughput".to_owned(), 14.8599)]
    );
    assert_eq!(of("3.04.txt").into_iter().collect::<Vec<_>>(), [("throughput".to_owned(), 123.45)]);
    let line = "Throughput 1.2e+03 MB/sec (sync open)  2 clients  2 procs  max_latency=7.5 ms\n";
    assert_eq!(parsed("dbench", line).values.get("throughput"), Some(&1200.0));
}

#[test]
fn dbench_with_a_failed_operation_is_no_measurement() {
    let line = "Throughput 100 MB/sec  2 clients  2 procs  max_latency=7.5 ms\n";
    for failed in ["[1201] open /x failed for handle 10 (No space left on device)", "Child failed with status 1"] {
        assert!(detail("dbench", &format!("{failed}\n{line}")).contains(failed));
    }
    assert!(detail("dbench", &line.repeat(2)).contains("more than one"));
    assert!(detail("dbench", "   2  22  1.22 MB/sec  warmup   1 sec  latency 471.089 ms\n").contains("warmup"));
    for wrong in ["nan", "1,5", "-3", "inf"] {
        assert!(!parsed("dbench", &line.replace("100", wrong)).failures.is_empty(), "{wrong}");
    }
}
