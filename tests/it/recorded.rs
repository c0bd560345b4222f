//! Published numbers: from the file to the report without touching a host, and what may be said of each kind.

use std::path::{Path, PathBuf};
use std::process::Command;

use irqlab::analysis::published::Ranges;
use irqlab::analysis::{
    ComparisonFinding, ExactKind, Findings, Flag, Method, NoInference, Scale, Verdict, Warning, analyse,
};
use irqlab::recording::{self, Recording};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What `irqlab run` writes for a file with that text: the recording and the report of its only experiment.
struct Ran {
    _folder: tempfile::TempDir,
    said: String,
    status: Option<i32>,
    recording: PathBuf,
}

fn run(text: &str, beside: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("numbers.exp");
    std::fs::write(&file, text).unwrap();
    for (name, text) in beside {
        std::fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let out = folder.path().join("out");
    let output = Command::new(env!("CARGO_BIN_EXE_irqlab"))
        .args(["run".as_ref(), file.as_os_str(), "--out".as_ref(), out.as_os_str()])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Ran { said, status: output.status.code(), recording: out.join("x/recording.jsonl"), _folder: folder }
}

impl Ran {
    #[track_caller]
    fn findings(&self) -> Findings {
        assert_eq!(self.status, Some(0), "{}", self.said);
        findings(&recording::read(&self.recording).unwrap())
    }

    fn report(&self) -> String {
        std::fs::read_to_string(self.recording.with_file_name("README.md")).unwrap()
    }
}

fn findings(recording: &Recording) -> Findings {
    analyse(&recording.header, &recording.trials, &recording.resumed, recording.end.as_ref())
}

/// An experiment of two levels with these rows, and its only comparison.
#[track_caller]
fn compared(rows: &str) -> ComparisonFinding {
    let ran = run(&two_levels(rows), &[]);
    let mut findings = ran.findings();
    assert_eq!(findings.comparisons.len(), 1);
    findings.comparisons.remove(0)
}

fn two_levels(rows: &str) -> String {
    format!(
        "experiment x {{\n  vary f in base, level\n  recorded {{\n    w.time s lower_is_better\n{rows}\n  }}\n  \
         compare f against base\n}}\n"
    )
}

fn committed(name: &str) -> (Recording, Findings) {
    let path = root().join("reports").join(name).join("recording.jsonl");
    let recording = recording::read(&path).unwrap_or_else(|error| panic!("{error}"));
    let findings = findings(&recording);
    (recording, findings)
}

#[track_caller]
fn close(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 5e-4 * expected.abs(), "{value} is not {expected}");
}

#[test]
fn the_founding_posts_numbers_are_those_of_the_committed_recordings() {
    let out = tempfile::tempdir().unwrap();
    let status = Command::new(env!("CARGO_BIN_EXE_irqlab"))
        .current_dir(root())
        .args(["run".as_ref(), "experiments/published.exp".as_ref(), "--out".as_ref(), out.path().as_os_str()])
        .status()
        .unwrap();
    assert!(status.success());
    for name in ["compute_vs_irqs_2001", "ipc_boot_options_2003", "raid_irq_spread_log", "smb_throughput_2003"] {
        let (committed, _) = committed(name);
        let now = recording::read(&out.path().join(name).join("recording.jsonl")).unwrap();
        assert_eq!(committed.header.published, now.header.published, "{name}");
        assert_eq!(committed.header.design, now.header.design, "{name}: run experiments/published.exp and commit");
        assert_eq!(now.header.host, recording::HostFacts::default(), "nothing of this host is in it");
        assert!(now.trials.is_empty() && now.end.is_none());
    }
}

#[test]
fn committed_reports_are_what_their_recordings_say() {
    let output = Command::new(env!("CARGO_BIN_EXE_irqlab"))
        .current_dir(root())
        .args(["report", "reports", "--check"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_gain_of_2001_is_inconclusive_and_hangs_on_one_run() {
    let (_, findings) = committed("compute_vs_irqs_2001");
    let real = &findings.comparisons[0];
    assert_eq!((real.verdict, real.n), (Verdict::Inconclusive, (3, 3)));
    let estimate = real.estimate.unwrap();
    close(estimate.value, 1.023);
    close(estimate.low, 0.957);
    close(estimate.high, 1.093);
    assert_eq!(estimate.method, Method::WelchT);
    close(real.exact.unwrap().p, 0.1);
    let robust = real.robust.unwrap();
    close(robust.value, 1.008_964_5);
    close(robust.low, 1.001_750_1);
    close(robust.high, 1.060_41);
    assert!((robust.coverage - 0.9).abs() < 1e-12);
    assert_eq!(robust.higher, (9.0, 9));
    let published = real.published.unwrap();
    assert_eq!(published.ranges, Some(Ranges::Above));
    close(published.median_ratio.unwrap(), 1.007_96);
    close(published.mean_ratio.unwrap(), 1.023_291);
    let report = std::fs::read_to_string(root().join("reports/compute_vs_irqs_2001/README.md")).unwrap();
    assert!(report.contains("| 40.8157 |") && report.contains("| 39.8867 |"), "printed as 40.815 and 39.886: cut");
    let hanging = real.flags.iter().find_map(|flag| match flag {
        Flag::EffectHangsOnOneRun { value, without, .. } => Some((*value, *without)),
        _ => None,
    });
    let (value, without) = hanging.expect("the effect hangs on one run");
    close(value, 42.111);
    close(without, 1.0071);
}

#[test]
fn single_runs_of_2003_give_break_even_variation_and_no_verdict() {
    let (_, findings) = committed("smb_throughput_2003");
    let cv = |index: usize| findings.comparisons[index].published.unwrap().break_even_cv.unwrap();
    for (index, expected) in [0.002_664_7, 0.001_778_7, 0.016_667].into_iter().enumerate() {
        close(cv(index), expected);
        assert_eq!(findings.comparisons[index].verdict, Verdict::NoInference(NoInference::SingleValue));
    }
    let with_two_nics = findings.single_runs.iter().find(|found| found.factor == "nics").unwrap();
    close(with_two_nics.ratio, 1.042_13);
}

#[test]
fn three_identical_rows_are_the_noise_floor_of_the_ipc_table() {
    let (_, findings) = committed("ipc_boot_options_2003");
    let floor = findings.warnings.iter().find_map(|warning| match warning {
        Warning::NoiseFloor { rows, ratio, .. } => Some((*rows, *ratio)),
        _ => None,
    });
    let (rows, ratio) = floor.expect("identical rows differ");
    assert_eq!(rows, 3);
    close(ratio, 86_829.0 / 63_339.0);
    for finding in &findings.comparisons {
        assert_eq!(finding.verdict, Verdict::NoInference(NoInference::SummaryOnly));
        let exceeded = finding.published.unwrap().noise.unwrap().is_exceeded();
        let beyond = finding.level == "smp_wd" && ["signal", "spinlock"].contains(&finding.within[0].1.as_str());
        assert_eq!(exceeded, beyond, "{} {:?}", finding.level, finding.within);
    }
}

#[test]
fn low_high_and_average_of_three_are_judged_as_the_sample_they_hide() {
    let summary = compared(
        "    columns low high average n\n    base 39.712 39.998 39.886667 3\n    level 40.068 42.111 40.815667 3",
    );
    let samples = compared("    base 39.712 39.998 39.950\n    level 42.111 40.268 40.068");
    let (summary, samples) = (summary.estimate.unwrap(), samples.estimate.unwrap());
    close(summary.low, samples.low);
    close(summary.high, samples.high);
}

#[test]
fn summaries_with_n_are_significant_only_at_the_largest_spread_they_allow() {
    let rows = "    columns low high average n\n    base 9.0 10.0 9.5 8\n    level 9.9 10.9 10.3 8";
    let finding = compared(rows);
    let (smallest, largest) = finding.published.unwrap().p_range.unwrap();
    assert!(smallest < 0.01 && largest > smallest, "{smallest} {largest}");
    assert_eq!(finding.p, Some(largest));
    assert_eq!((finding.scale, finding.verdict), (Scale::Ratio, Verdict::Slower { beyond_margin: false }));
    // With the same averages and four values the smallest spread still would be significant, the largest is not.
    let finding = compared("    columns low high average n\n    base 9.0 10.0 9.5 4\n    level 9.9 10.9 10.3 4");
    let (smallest, largest) = finding.published.unwrap().p_range.unwrap();
    assert!(smallest < 0.05 && largest > 0.05, "{smallest} {largest}");
    assert_eq!(finding.verdict, Verdict::Inconclusive);
}

#[test]
fn averages_with_n_have_a_ratio_its_interval_and_equivalence() {
    // Reference: roots of Welch's p of level - r base = 0.05 over all bounds of both spreads, by SciPy.
    let apart = compared("    columns low high average n\n    base 9.0 11.0 10.0 6\n    level 12.0 13.0 12.6 7");
    let estimate = apart.estimate.unwrap();
    assert!((estimate.value - 1.26).abs() < 1e-12);
    assert!((estimate.low - 1.129_906_843_797).abs() < 1e-9 && (estimate.high - 1.423_265_770_432).abs() < 1e-9);
    assert!((apart.p.unwrap() - 0.001_649_352_368_6).abs() < 1e-12);
    let rows = "    columns low high average n\n    base 99.9 100.1 100.0 10\n    level 99.9 100.2 100.0 10";
    let within = |margin: &str| {
        let text = two_levels(rows).replace("against base", &format!("against base margin {margin}"));
        run(&text, &[]).findings().comparisons[0].verdict
    };
    assert_eq!(within("5%"), Verdict::Equivalent);
    assert_eq!(within("0.05%"), Verdict::Inconclusive);
    let text = "    columns low high average n\n    base 9.0 11.0 10.0 30\n    level 10.0 12.0 11.1 30";
    let beyond = |margin: &str| {
        let text = two_levels(text).replace("against base", &format!("against base margin {margin}"));
        run(&text, &[]).findings().comparisons[0].verdict
    };
    assert_eq!(beyond("5%"), Verdict::Slower { beyond_margin: true });
    assert_eq!(beyond("6%"), Verdict::Slower { beyond_margin: false }, "the interval begins at 1.056");
    let negative = compared("    columns low high average n\n    base -9 9 1 6\n    level 12 22 15 7");
    assert_eq!(negative.scale, Scale::Difference);
    close(negative.estimate.unwrap().low, 4.531_88);
}

#[test]
fn an_average_over_another_factor_has_an_exact_test_inside_its_levels() {
    let text = "experiment x {\n vary f in base, level\n vary ht in off, on\n recorded {\n  w.time s lower_is_better\n\
                base off 99.1 99.9 101.2\n level off 100.2 101.1 102.3\n\
                base on 118.4 119.9 121.0\n level on 121.5 123.0 123.9\n }\n compare f against base\n}\n";
    let exact = run(text, &[]).findings().comparisons[0].exact.unwrap();
    assert_eq!(exact.kind, ExactKind::Permutation);
    // The reference says 0.02 of plain values; of logarithms the same 4 of 400 splits are as far out.
    close(exact.p, 0.02);
    close(exact.min_p, 0.005);
}

#[test]
fn separated_ranges_with_n_give_the_exact_p_without_the_values() {
    let finding = compared("    columns low high average n\n    base 9.4 9.8 9.6 5\n    level 9.9 10.7 10.3 5");
    let exact = finding.exact.unwrap();
    assert_eq!(exact.kind, ExactKind::MannWhitney);
    close(exact.p, 0.007_936_5);
    let unknown = compared("    columns low high average\n    base 9.4 9.8 9.6\n    level 9.9 10.7 10.3");
    assert_eq!((unknown.exact, unknown.p), (None, None));
    assert_eq!(unknown.verdict, Verdict::NoInference(NoInference::SummaryOnly));
    assert_eq!(unknown.published.unwrap().ranges, Some(Ranges::Above));
}

#[test]
fn numbers_no_sample_has_are_named_and_not_judged() {
    let finding = compared("    columns low high average n\n    base 1.0 9.0 1.1 5\n    level 2.0 3.0 2.5 5");
    assert_eq!(finding.verdict, Verdict::NoInference(NoInference::Contradictory));
}

#[test]
fn one_slow_run_that_made_the_high_is_noticed() {
    let ran =
        run(&two_levels("    columns low high average n\n    base 10.0 20.0 12.1 5\n    level 10.0 20.0 15.0 5"), &[]);
    let named = ran.findings().warnings.iter().filter(|warning| matches!(warning, Warning::OneExtreme { .. })).count();
    assert_eq!(named, 1);
    assert!(ran.report().contains("One run made the highest value"), "{}", ran.report());
}

#[test]
fn a_report_of_published_numbers_says_that_nothing_was_run() {
    let report = run(&two_levels("    base 1 2 3\n    level 2 3 4"), &[]).report();
    assert!(report.contains("nothing was run here"), "{report}");
    for word in ["put back", "Run information", "valid trials"] {
        assert!(!report.contains(word), "{word}: {report}");
    }
}

/// An experiment of two levels whose numbers are in that file.
fn from_file(name: &str) -> String {
    format!("experiment x {{\n  vary f in base, level\n  recorded from \"{name}\"\n  compare f against base\n}}\n")
}

#[test]
fn a_csv_file_says_what_its_table_would() {
    let table = run(&two_levels("    base 1.5 2 3\n    level 2.5 3.5 4"), &[]).findings().comparisons;
    let long = "# measured by hand\nf,metric,unit,better,value\nbase,w.time,s,lower_is_better,1.5\n\
                level,w.time,s,lower_is_better,2.5\nbase,w.time,s,lower_is_better,2\nlevel,w.time,s,lower_is_better,3.5\n\
                base,w.time,s,lower_is_better,3\nlevel,w.time,s,lower_is_better,4\n";
    let wide = "w.time s lower_is_better,f\n1.5,base\n2,base\n3,base\n2.5,level\n,level\n3.5,level\n4,level\n";
    for text in [long, wide] {
        let ran = run(&from_file("data/numbers.csv"), &[("data/numbers.csv", text)]);
        assert_eq!(ran.findings().comparisons, table, "{text}");
        assert!(ran.report().contains("numbers.csv"), "the file is shown");
    }
    let summaries =
        "f,copy,metric,unit,low,high,average\nbase,1,w.time,s,1,3,2\nbase,2,w.time,s,1,4,2.2\nlevel,,w.time,s,4,6,5\n";
    let text = from_file("numbers.csv").replace("  recorded", "  control base repeated 2\n  recorded");
    let findings = run(&text, &[("numbers.csv", summaries)]).findings();
    assert!(findings.warnings.iter().any(|warning| matches!(warning, Warning::NoiseFloor { rows: 2, .. })));
}

#[test]
fn hyperfine_results_are_samples_by_command_or_parameter() {
    let of = |key: &str| {
        let result = |name: &str, times: &str| {
            format!("{{{}, \"times\": [{times}], \"exit_codes\": [0, 0, 0]}}", key.replace('@', name))
        };
        format!("{{\"results\": [{}, {}]}}\n", result("base", "1.5, 2.0, 3.0"), result("level", "2.5, 3.5, 4.0"))
    };
    let by_command = of("\"command\": \"@\"");
    let by_parameter = of("\"command\": \"sleep @\", \"parameters\": {\"f\": \"@\"}");
    for text in [by_command, by_parameter] {
        let findings = run(&from_file("times.json"), &[("times.json", &text)]).findings();
        let finding = &findings.comparisons[0];
        assert_eq!((finding.metric.as_str(), finding.n), ("hyperfine.real", (3, 3)));
        close(finding.point.unwrap(), (35.0_f64 / 9.0).cbrt());
    }
}

#[test]
fn published_values_are_exported_and_times_that_were_not_taken_are_not() {
    let ran = run(&two_levels("    base 1.5 2 3\n    level 2.5 3.5 4"), &[]);
    let export = |format: &str| {
        let folder = ran.recording.parent().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_irqlab"));
        let output = command.args(["export".as_ref(), folder.as_os_str()]).args(["--format", format]).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (_, csv) = export("csv");
    let lines: Vec<Vec<&str>> = csv.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!((lines.len(), lines[1].last()), (7, Some(&"1.5")), "{csv}");
    assert!(lines.iter().all(|line| line.len() == lines[0].len()), "{csv}");
    let (_, benchstat) = export("benchstat");
    assert!(benchstat.contains("BenchmarkX/f=level 1 3.5 w.time(s)\n"), "{benchstat}");
    assert_eq!(export("hyperfine"), (Some(3), String::new()));
}

#[test]
fn faults_of_data_files_are_told_with_their_line() {
    let faults = [
        ("f,metric,value\nbase,w.t,1\nlevel,w.t,x\n", "numbers.csv:3"),
        ("f,metric,value\nbase,w.t,1\nlevl,w.t,2\n", "numbers.csv:3"),
        ("f,metric,value\nbase,w.t,1,2\n", "numbers.csv:2"),
        ("f,metric,valeu\nbase,w.t,1\n", "did you mean `value`"),
        ("metric,value\nw.t,1\n", "has no column `f`"),
        ("f,metric,unit,value\nbase,w.t,s,1\nlevel,w.t,ms,2\n", "another unit"),
        ("f,metric,low,high,average\nbase,w.t,3,2,1\n", "not in ascending order"),
        ("", "no numbers are recorded"),
        ("{\"results\": [\n{\"command\": \"base\", \"times\": [1, }]}\n", "numbers.csv:2"),
        ("{\"results\": [{\"command\": \"base\", \"times\": [1], \"exit_codes\": [1]}]}\n", "failed"),
    ];
    for (text, said) in faults {
        let ran = run(&from_file("numbers.csv"), &[("numbers.csv", text)]);
        assert_eq!(ran.status, Some(3), "{text}{}", ran.said);
        assert!(ran.said.contains(said), "{text}: {}", ran.said);
    }
}

#[test]
fn data_files_outside_the_folder_are_not_read() {
    for name in ["../numbers.csv", "/etc/hostname", "gone.csv", "."] {
        let ran = run(&from_file(name), &[]);
        assert_eq!(ran.status, Some(3), "{}", ran.said);
        assert!(ran.said.contains("cannot be read"), "{name}: {}", ran.said);
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("x.exp"), from_file("link.csv")).unwrap();
    std::os::unix::fs::symlink("/etc/hostname", folder.path().join("link.csv")).unwrap();
    let output =
        Command::new(env!("CARGO_BIN_EXE_irqlab")).arg("check").arg(folder.path().join("x.exp")).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("not below the folder"));
}
