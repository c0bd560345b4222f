//! Parsers of known tools, on what the tools printed: `tests/cases/parse/outputs/README.md` says how each was made.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use irqlab::check::vocabulary::PARSERS;
use irqlab::design::{Direction, Parser};
use irqlab::workloads::parse::{Output, Parsed, parse};

/// Places at which each output is cut.
const CUTS: usize = 400;

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
        assert!(!yielded.is_empty(), "no output of {}", parser.name);
        if parser.name == "perf_stat" {
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
            let stride = 1 + text.len() / CUTS;
            for (end, _) in text.char_indices().step_by(stride) {
                let lines_are_results = parser.name == "perf_stat" || file == "2.40-quiet.txt";
                if lines_are_results && text[..end].ends_with('\n') {
                    continue;
                }
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

fn value(tool: &str, file: &str, metric: &str) -> f64 {
    let (_, text) = outputs_of(tool).into_iter().find(|(name, _)| name == file).unwrap();
    let parsed = parsed(tool, &text);
    *parsed.values.get(metric).unwrap_or_else(|| panic!("{tool}/{file}: no {metric} in {parsed:?}"))
}

fn output_of(tool: &str, file: &str) -> String {
    outputs_of(tool).into_iter().find(|(name, _)| name == file).unwrap().1
}

fn assert_near(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{found}, not {expected}");
}

#[test]
fn what_tools_say_when_something_is_wrong_is_quoted() {
    let expected = [
        ("fio-error.txt", "job `e` ended with error 28"),
        ("fio-signal.txt", "`fio: terminating on signal 15`"),
        ("hyperfine-failed.txt", "`false` ended with status 1"),
        ("hyperfine-two.txt", "one command, found 2"),
        ("iperf3-error.txt", "`unable to connect to server: Connection refused`"),
        ("perf_stat-intervals.txt", "intervals (-I)"),
        ("wrk-404.txt", "`Non-2xx or 3xx responses: 1532`"),
        ("wrk-errors.txt", "`Socket errors: connect 0, read 11497, write 0, timeout 0`"),
    ];
    let mut unsaid = Vec::new();
    for (file, said) in expected {
        let (tool, _) = file.split_once('-').unwrap();
        let found = parsed(tool, &output_of("refused", file));
        if !found.values.is_empty() || !found.failures.iter().any(|failure| failure.detail.contains(said)) {
            unsaid.push((file, found));
        }
    }
    assert!(unsaid.is_empty(), "{unsaid:#?}");
}

#[test]
fn no_parser_takes_another_tools_output_or_rubbish_for_its_own() {
    let mut texts: Vec<(String, String)> = PARSERS
        .iter()
        .flat_map(|parser| outputs_of(parser.name).into_iter().map(|(_, text)| (parser.name.to_owned(), text)))
        .collect();
    for rubbish in
        ["", "\n", "\0\u{1b}[4A\u{feff}", "{}", "[]", "{\"jobs\":[]}", "T:", "CPU", "é,é,é,é,é,é\n", "# Total:\n"]
    {
        texts.push((String::new(), rubbish.to_owned()));
    }
    texts.push((String::new(), "[".repeat(100_000)));
    texts.push((String::new(), ",".repeat(1_000_000)));
    texts.push((String::new(), "1,,x,\n".repeat(100_000)));
    for parser in PARSERS {
        for (tool, text) in &texts {
            let found = parsed(parser.name, text);
            assert!(
                tool == parser.name || found.values.is_empty() && !found.failures.is_empty(),
                "{} of {tool}",
                parser.name
            );
        }
    }
}

#[test]
fn fio_adds_jobs_and_keeps_percentiles_apart() {
    assert_near(value("fio", "3.33-two-jobs.txt", "read_iops"), 102_400.0);
    assert_near(value("fio", "3.33-two-jobs.txt", "write_iops"), 256_000.0);
    let job = r#"{"jobname":"a","error":0,"write":{"total_ios":0,"iops":0,"bw":0},"read":{"total_ios":COUNT,"iops":10.5,"bw":42,
        "lat_ns":{"mean":MEAN},"clat_ns":{"percentile":{"99.000000":5000}}}}"#;
    let of = |count: &str, mean: &str| job.replace("COUNT", count).replace("MEAN", mean);
    let one = parsed("fio", &format!("{{\"jobs\":[{}]}}", of("10", "2000")));
    assert_eq!(one.values.len(), 4, "{one:?}");
    assert_near(one.values["read_latency_p99"], 5.0);
    let two = parsed("fio", &format!("{{\"jobs\":[{},{}]}}", of("30", "2000"), of("10", "6000")));
    assert_near(two.values["read_iops"], 21.0);
    assert_near(two.values["read_bandwidth"], 84.0);
    assert_near(two.values["read_latency_mean"], 3.0);
    assert!(!two.values.contains_key("read_latency_p99") && two.notes.contains_key("read_latency_p99"));
    assert!(detail("fio", &format!("{{\"jobs\":[{}]}}", of("0", "0"))).contains("no read and no write"));
    let old = of("10", "7").replace("lat_ns", "lat").replace("5000", "9");
    let old = parsed("fio", &format!("{{\"fio version\":\"fio-2.16\",\"jobs\":[{old}]}}"));
    assert_near(old.values["read_latency_mean"], 7.0);
    assert_near(old.values["read_latency_p99"], 9.0);
}

#[test]
fn iperf3_counts_what_arrived() {
    assert_near(value("iperf3", "3.12-udp.txt", "throughput"), 13.680_692_622_884_767);
    assert_near(
        value("iperf3", "3.12-bidir.txt", "throughput"),
        (42_446_232.222_585_38 + 40_088_108.210_219_525) / 1e6,
    );
    assert_near(value("iperf3", "3.12-bidir.txt", "retransmits"), 11.0);
    let udp = parsed("iperf3", &output_of("iperf3", "3.12-udp.txt"));
    assert!(!udp.values.contains_key("retransmits"));
    assert_eq!(udp.notes["lost"], "56.32 % of the packets");
    let old = r#"{"end":{"sum":{"bits_per_second":8e6,"lost_percent":25},"cpu_utilization_percent":{"host_total":3}}}"#;
    assert_near(parsed("iperf3", old).values["throughput"], 6.0);
    assert!(!parsed("iperf3", &old.replace("\"lost_percent\":25", "\"x\":1")).failures.is_empty());
}

#[test]
fn cyclictest_says_the_same_in_each_form() {
    assert_near(value("cyclictest", "2.40-json.txt", "max"), 135_973.0);
    let lines = "T: 0 (1) P: 0 I:1000 C:    300 Min:     28 Act:  112 Avg: 10 Max:   38870\n\
                 T: 1 (2) P: 0 I:1500 C:    100 Min:     76 Act:44038 Avg: 30 Max:   76495\n";
    let found = parsed("cyclictest", lines).values;
    assert_near(found["min"], 28.0);
    assert_near(found["avg"], 15.0);
    assert_near(found["max"], 76495.0);
    let repeated =
        format!("T: 0 (0) P: 0 I:1000 C:      0 Min:1000000 Act:    0 Avg:    0 Max:       0\n\u{1b}[4A{lines}");
    assert_eq!(parsed("cyclictest", &repeated).values, found);
    let histogram = "# Histogram\n000028 000001\t000000\n# Total: 000000200 000000100\n# Min Latencies: 00028 00076\n\
                     # Avg Latencies: 00010 00030\n# Max Latencies: 38870 76495\n# Histogram Overflows: 00100 00000\n";
    assert_eq!(parsed("cyclictest", histogram).values, found);
    assert!(detail("cyclictest", &lines.replace("C:    100", "C:      0")).contains("no cycle"));
    let json = r#"{"return_code":0,"resolution_in_ns":1,"thread":{"0":{"cycles":1,"min":1000,"avg":2000,"max":3000}}}"#;
    assert_near(parsed("cyclictest", json).values["max"], 3.0);
    assert!(detail("cyclictest", &json.replace("code\":0", "code\":1")).contains("status 1"));
}

#[test]
fn hackbench_with_a_failed_sender_has_no_time() {
    assert_near(value("hackbench", "2.40-process.txt", "time"), 4.267);
    assert_near(parsed("hackbench", "Time: 0.1\n").values["time"], 0.1);
    assert!(detail("hackbench", "SENDER: write: Broken pipe\nTime: 0.1\n").contains("Broken pipe"));
    assert!(detail("hackbench", "Time: 0.1\nTime: 0.2\n").contains("more than one"));
    assert!(detail("hackbench", "Time: 0,1\n").contains("`0,1` is not a number, in the line `Time: 0,1`"));
}

#[test]
fn hyperfine_of_one_run_has_no_deviation() {
    assert_near(value("hyperfine", "json.txt", "median"), 0.062_929_836);
    let one =
        r#"{"results":[{"command":"x","mean":1.5,"stddev":null,"median":1.5,"min":1.5,"max":1.5,"exit_codes":[0]}]}"#;
    let one = parsed("hyperfine", one);
    assert_eq!((one.values.len(), one.failures.len(), one.notes.len()), (4, 0, 1));
}

#[test]
fn perf_counts_by_event_and_cpu() {
    assert_near(value("perf_stat", "6.1-csv.txt", "page_faults"), 49.0);
    assert_near(value("perf_stat", "6.1-json.txt", "task_clock"), 1.697_632);
    assert_near(value("perf_stat", "6.1-repeated.txt", "task_clock"), 1.51);
    for file in ["6.1-per-cpu.txt", "6.1-json-per-cpu.txt"] {
        let sum = value("perf_stat", file, "context_switches.cpu0") + value("perf_stat", file, "context_switches.cpu1");
        assert_near(value("perf_stat", file, "context_switches"), sum);
    }
}

#[test]
fn perf_events_that_were_not_counted_are_failures_of_these_events() {
    let found = parsed("perf_stat", &output_of("refused", "perf_stat-not-supported.txt"));
    assert_near(found.values["page_faults"], 49.0);
    let failed: Vec<&str> = found.failures.iter().map(|failure| failure.metric.as_str()).collect();
    assert_eq!(failed, ["branch_misses", "branches", "cycles", "instructions"]);
    assert_eq!(found.failures[2].detail, "perf says `<not supported>` of `cycles`");
    let part = parsed("perf_stat", "<not counted>,,a,0,0.00,,\n10,,b,500,25.00,,\n7,,c,1,100.00,,\n7,,c,1,100.00,,\n");
    assert_eq!(part.values.into_keys().collect::<Vec<_>>(), ["b"]);
    assert_eq!(part.notes["b"], "an estimate: counted during 25 % of the time");
    assert_eq!(part.failures.len(), 2);
    assert!(detail("perf_stat", "1,03,msec,task-clock,1032059,100.00,0,006,CPUs utilized\n").contains("comma"));
}

#[test]
fn perf_is_read_among_what_its_program_says() {
    let stderr = "3 files, done\nwarning: a, b, c\n49,,page-faults,1032059,100.00,47.478,K/sec\n".to_owned();
    let output = Output { stdout: "hello\n".to_owned(), stderr };
    let found = parse(&[Parser::Known("perf_stat".to_owned())], &output);
    assert_eq!((found.values.len(), found.failures.len()), (1, 0), "{found:?}");
}

#[test]
fn sysbench_takes_the_rate_that_is_printed() {
    assert_near(value("sysbench", "1.0.20-cpu.txt", "events_per_second"), 19.77);
    assert_near(value("sysbench", "1.0.20-memory.txt", "events_per_second"), 14243.49);
    assert_near(value("sysbench", "1.0.20-fileio.txt", "events_per_second"), 102.0 / 1.6395);
    assert_near(value("sysbench", "1.0.20-cpu.txt", "latency_p95"), 308.84);
    let memory = parsed("sysbench", &output_of("sysbench", "1.0.20-memory.txt"));
    assert!(!memory.values.contains_key("latency_p95") && memory.notes["latency_p95"].contains("below 0.01 ms"));
    let cpu = output_of("sysbench", "1.0.20-cpu.txt");
    assert!(parsed("sysbench", &cpu.replace("95th", "99th")).notes.contains_key("latency_p95"));
    assert!(detail("sysbench", &format!("FATAL: no file\n{cpu}")).contains("FATAL: no file"));
    assert_eq!(parsed("sysbench", &cpu.replace("19.77", "19,77")).failures[0].metric, "events_per_second");
    let old = "total time:  2.0000s\ntotal number of events:  100\n  avg:  1.50ms\n  approx.  95 percentile:  2.50ms\n";
    let old = parsed("sysbench", old);
    assert_near(old.values["events_per_second"], 50.0);
    assert_near(old.values["latency_p95"], 2.5);
}

#[test]
fn wrk_notes_timeouts_and_converts_units() {
    assert_near(value("wrk", "4.1.0.txt", "requests_per_second"), 486.05);
    let text = output_of("wrk", "4.1.0.txt");
    for (written, milliseconds) in [("93.88us", 0.093_88), ("1.50s", 1500.0), ("2.00m", 120_000.0)] {
        assert_near(parsed("wrk", &text.replace("93.88ms", written)).values["latency_max"], milliseconds);
    }
    let errors = "  Socket errors: connect 0, read 0, write 0, timeout 3\nRequests/sec:";
    let late = parsed("wrk", &text.replace("Requests/sec:", errors));
    assert_eq!(late.values.len(), 3);
    assert!(late.notes["timeouts"].starts_with("3 requests"));
    assert!(!parsed("wrk", &text.replace("8.23ms", "-nanus")).failures.is_empty());
    assert!(detail("wrk", &text.replace("486.05", "0.00")).contains("no answer"));
}

#[test]
fn the_page_of_parsers_says_unit_and_direction_of_each_metric() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/parsers.md")).unwrap();
    let mut sections: BTreeMap<&str, &str> = BTreeMap::new();
    for section in page.split("\n## ").skip(1) {
        let (name, text) = section.split_once('\n').unwrap();
        sections.insert(name, text);
    }
    let names: Vec<&str> = PARSERS.iter().map(|parser| parser.name).collect();
    assert_eq!(sections.keys().copied().collect::<Vec<_>>(), names);
    for parser in PARSERS {
        let rows: Vec<Vec<&str>> = sections[parser.name]
            .lines()
            .filter(|line| line.starts_with("| `"))
            .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
            .collect();
        let mut said = BTreeSet::new();
        for row in &rows {
            for name in row[0].split(", ") {
                assert!(said.insert((name.trim_matches('`'), row[1], row[2])), "{}: {name} twice", parser.name);
            }
        }
        let known = parser.metrics.iter().map(|metric| {
            let direction = match metric.direction {
                Direction::HigherIsBetter => "higher is better",
                Direction::LowerIsBetter => "lower is better",
                Direction::Neutral => "none",
            };
            (metric.name, metric.unit, direction)
        });
        assert_eq!(said, known.collect(), "{}", parser.name);
    }
}
