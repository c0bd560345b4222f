//! Reports of hand-made findings: every verdict, every doubt, large hosts and hostile names.

#[path = "report/export.rs"]
mod export;
#[path = "report/made.rs"]
mod made;
#[path = "report/page.rs"]
mod page;
#[path = "report/pictures.rs"]
mod pictures;

use insta::{assert_snapshot, glob};
use irqlab::analysis::{
    ComparisonFinding, Estimate, ExactKind, ExactTest, Findings, Flag, InvalidTrial, IrqLanding, Method, NoInference,
    Scale, TrialCounts, Verdict, Warning,
};
use irqlab::cpu_set::Irq;
use irqlab::recording::{Direction, End, Fault, IrqList, Recording};
use irqlab::report::{self, Template};

use made::{cell, cpus, finding, findings, host, names, recording, with};

/// Snapshots of this file lie in `tests/snapshots/` under names that begin with `report_`.
fn snapshots() -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path("../snapshots");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind_to_scope()
}

fn markdown(recording: &Recording, findings: &Findings) -> String {
    report::markdown(recording, findings).unwrap()
}

/// The verdict lines alone.
fn sentences(recording: &Recording, findings: &Findings) -> String {
    let groups = report::view(recording, findings).verdicts;
    groups.into_iter().flat_map(|group| group.sentences).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_full_report_reads_as_a_page() {
    let _snapshots = snapshots();
    assert_snapshot!("report_full", markdown(&recording(), &findings()));
}

#[test]
fn each_verdict_says_what_the_finding_says_and_no_more() {
    let _snapshots = snapshots();
    let mut recording = recording();
    let mut findings = findings();
    let flagged = |mut finding: ComparisonFinding, flags: &[Flag]| {
        finding.flags = flags.to_vec();
        finding
    };
    let mut few = with(finding(0, Verdict::Faster { beyond_margin: false }), (1.023, 1.004, 1.042), 0.021, 0.25);
    few.n = (3, 3);
    few.exact = Some(ExactTest { kind: ExactKind::SignFlip, p: 0.25, min_p: 0.25 });
    let mut unblocked = with(finding(0, Verdict::Inconclusive), (1.0233, 0.957, 1.093), 0.29, 0.1);
    unblocked.estimate = unblocked.estimate.map(|estimate| Estimate { method: Method::WelchT, ..estimate });
    unblocked.n = (3, 4);
    unblocked.exact = Some(ExactTest { kind: ExactKind::MannWhitney, p: 0.1, min_p: 0.1 });
    unblocked.margin = None;
    let mut corrected = with(finding(1, Verdict::Inconclusive), (1.012, 1.001, 1.0234), 0.0304, 0.0469);
    corrected.within = vec![("ipc".to_owned(), "pipe".to_owned())];
    let mut difference =
        with(finding(1, Verdict::Faster { beyond_margin: false }), (-1.25, -2.01, -0.49), 0.0021, 0.0078);
    difference.scale = Scale::Difference;
    difference.margin = None;
    let mut wide = with(finding(1, Verdict::Inconclusive), (1.9, 0.31, 11.8), 0.4, 0.5);
    wide.margin = None;
    let single = |reason, point| {
        let mut finding = finding(0, Verdict::NoInference(reason));
        finding.point = point;
        finding.n = (1, 1);
        finding
    };
    findings.comparisons = vec![
        flagged(few, &[Flag::ModelBasedOnly, Flag::HangsOnOneRun { block: 3 }]),
        with(finding(0, Verdict::Slower { beyond_margin: false }), (0.9701, 0.9511, 0.9895), 0.006, 0.0156),
        flagged(
            with(finding(1, Verdict::Equivalent), (1.0031, 0.9951, 1.0112), 0.4, 0.41),
            &[Flag::DependsOn { factor: 0 }, Flag::WithinMargin],
        ),
        unblocked,
        corrected,
        difference,
        wide,
        single(NoInference::SingleValue, Some(1.0074)),
        single(NoInference::SequentialOrder, Some(0.98)),
        single(NoInference::NoValues, None),
        single(NoInference::NoDirection, Some(1.1)),
        single(NoInference::TooFewValues, Some(1.1)),
        single(NoInference::WholePlotUnreplicated, Some(1.1)),
        single(NoInference::ZeroVariance, Some(1.0)),
    ];
    recording.header.design.comparisons[1].margin = None;
    // Below the number of findings that are folded, so that each is said in full.
    let mut text = String::new();
    for finding in findings.comparisons.clone() {
        let one = Findings { comparisons: vec![finding], ..findings.clone() };
        text.push_str(
            &sentences(&recording, &one).replace("No finding: nothing was measured for this comparison.", ""),
        );
        text = format!("{}\n", text.trim());
    }
    assert_snapshot!("report_verdicts", text);
}

#[test]
fn a_metric_that_is_no_speed_is_better_or_worse_and_never_faster() {
    let mut findings = findings();
    for (id, unit, direction, expected) in [
        ("primes.max_rss", "KiB", Direction::LowerIsBetter, "worse"),
        ("primes.user", "s", Direction::LowerIsBetter, "worse"),
        ("host.idle", "%", Direction::HigherIsBetter, "worse"),
        ("primes.real", "s", Direction::LowerIsBetter, "slower"),
        ("loop.rate", "loops/s", Direction::HigherIsBetter, "slower"),
    ] {
        id.clone_into(&mut findings.metrics[0].id);
        unit.clone_into(&mut findings.metrics[0].unit);
        findings.metrics[0].direction = direction;
        id.clone_into(&mut findings.comparisons[0].metric);
        let text = sentences(&recording(), &findings);
        assert!(text.contains(&format!("`two_cpus` is {expected} than `one_cpu`")), "{id}: {text}");
    }
}

#[test]
fn bounds_of_a_metric_where_less_is_better_are_named_the_right_way_round() {
    let mut findings = findings();
    findings.metrics[0].direction = Direction::LowerIsBetter;
    let text = sentences(&recording(), &findings);
    assert!(text.contains("from 3.0 % lower (faster) to 2.1 % higher (slower)"), "{text}");
}

#[test]
fn many_comparisons_are_folded_but_no_decided_one_is_hidden() {
    let mut findings = findings();
    let (decided, undecided) =
        (findings.comparisons[0].clone(), ComparisonFinding { comparison: 0, ..findings.comparisons[1].clone() });
    findings.comparisons = vec![undecided; 20];
    findings.comparisons.push(decided);
    let text = sentences(&recording(), &findings);
    assert!(text.contains("**`two_cpus` is slower than `one_cpu`**"), "{text}");
    assert!(text.contains("**Inconclusive** in 20 further comparisons"), "{text}");
}

#[test]
fn many_verdicts_are_counted_and_the_largest_effects_told() {
    let mut findings = findings();
    let one = findings.comparisons[0].clone();
    let ratio = |index: u32| 1.0 + f64::from(index * 7 % 30) / 100.0;
    let named = |index: u32| ComparisonFinding {
        level: format!("level{index}"),
        estimate: one.estimate.map(|estimate| Estimate { value: ratio(index), ..estimate }),
        point: Some(ratio(index)),
        ..one.clone()
    };
    findings.comparisons = (0..30).map(named).collect();
    let text = sentences(&recording(), &findings);
    assert!(text.contains("**30 comparisons**: 30 slower, by more than 2 %. The largest effects follow"), "{text}");
    let told: Vec<u32> = (0..30).filter(|index| text.contains(&format!("`level{index}` is slower"))).collect();
    let mut largest: Vec<u32> = (0..30).collect();
    largest.sort_by(|a, b| ratio(*b).total_cmp(&ratio(*a)));
    largest.truncate(12);
    largest.sort_unstable();
    assert_eq!(told, largest);
}

#[test]
fn treatments_that_saw_no_interrupt_are_told_in_one_warning() {
    let mut findings = findings();
    let warned = |findings: &Findings| {
        let warnings = report::view(&recording(), findings).warnings;
        warnings.into_iter().filter(|text| text.contains("No interrupts")).collect::<Vec<_>>()
    };
    findings.warnings = vec![Warning::NoInterrupts { treatment: 1 }];
    assert!(warned(&findings)[0].contains("so that the treatment made no difference"));
    findings.warnings = (0..4).map(|treatment| Warning::NoInterrupts { treatment }).collect();
    let [text] = warned(&findings).try_into().unwrap();
    assert!(text.contains(" and 1 more saw none while their trials ran"), "{text}");
}

#[test]
fn invalid_trials_warnings_and_a_host_left_changed_are_loud() {
    let _snapshots = snapshots();
    let (mut recording, mut findings) = (recording(), findings());
    recording.end = Some(End {
        at: "2025-03-01T10:00:50Z".to_owned(),
        reason: "interrupted by SIGINT".to_owned(),
        restored: 3,
        not_restored: names(&["irq 24: EIO: the interrupt is gone"]),
        remarks: names(&["irq 25: foreign change 3 -> 1 overwritten"]),
    });
    recording.notes = names(&["line 40 is cut short and was left out"]);
    recording.trials[9].faults = vec![Fault::TreatmentNotInForce { detail: "irq 24 landed on 1".to_owned() }];
    let process = || "loop".to_owned();
    let faults = vec![
        Fault::BackgroundFailed { process: process(), detail: "never ready".to_owned() },
        Fault::CpusChanged { before: cpus("0-1"), after: cpus("0") },
        Fault::ExitStatus { process: process(), status: 3, output: "no | disk\n".to_owned() },
        Fault::Interrupted { signal: "SIGINT".to_owned() },
        Fault::MaskRewritten { irqs: IrqList(vec![Irq(24), Irq(25)]), asked: cpus("0"), found: cpus("0-1") },
        Fault::OutputNotParsed { process: process(), metric: "rate".to_owned(), detail: "no match".to_owned() },
        Fault::SettingRefused { setting: "irq 24 -> cpu 0".to_owned(), detail: "EIO (managed)".to_owned() },
        Fault::Signal { process: process(), signal: "SIGSEGV".to_owned() },
        Fault::StartFailed { process: process(), detail: "ENOENT".to_owned() },
        Fault::TimedOut { process: process(), limit_ms: 300_000 },
    ];
    findings.invalid_trials = vec![
        InvalidTrial {
            number: 9,
            block: 2,
            attempt: 0,
            treatment: 3,
            faults: vec![Fault::TreatmentNotInForce { detail: "irq 24 landed on 1".to_owned() }],
        },
        InvalidTrial { number: 9, block: 2, attempt: 1, treatment: 3, faults },
    ];
    findings.counts = TrialCounts { planned: 32, recorded: 33, valid: 31, warmup: 4 };
    let metric = || "loop.rate".to_owned();
    findings.warnings = vec![
        Warning::NotComplete { reason: "interrupted by SIGINT".to_owned() },
        Warning::NotRestored { what: names(&["irq 24: EIO: the interrupt is gone"]) },
        Warning::IncompleteBlocks { blocks: vec![2, 3, 7] },
        Warning::InterruptsElsewhere { treatment: 2, share: 0.0017 },
        Warning::NoInterrupts { treatment: 1 },
        Warning::Drift { metric: metric(), percent_per_run: -0.213, p: 0.0004 },
        Warning::FirstBlock { metric: metric(), ratio: 0.941, p: 0.012 },
        Warning::Outlier { metric: metric(), treatment: 0, block: 4, value: 300_000.0, p: 0.003 },
        Warning::HostChanged { what: names(&["kernel release 6.1 -> 6.2"]) },
        Warning::NoVariation { metric: metric(), treatment: 3 },
        Warning::ExactCannotReach { blocks: 5, comparisons: 2, min_p: 0.0625 },
        Warning::RunnerOnMeasuredCpus { cpus: cpus("0-1") },
        Warning::ControlDiffers { metric: metric(), treatment: 0, copy: 1, ratio: 1.08, p: 0.002 },
    ];
    let text = markdown(&recording, &findings);
    assert!(text.contains("> ⚠ **The host was not put back as it was**: irq 24: EIO"), "{text}");
    assert_eq!(text.matches("> ⚠").count(), 2, "one alarm per fact: {text}");
    assert_snapshot!("report_faults_and_warnings", text);
}

#[test]
fn a_recording_that_was_cut_off_says_so_first() {
    let mut recording = recording();
    recording.end = None;
    let text = markdown(&recording, &findings());
    assert!(text.lines().nth(2).unwrap().contains("The recording has no end"), "{text}");
    assert!(!text.contains("was put back:"), "{text}");
}

#[test]
fn a_host_with_256_cpus_keeps_tables_narrow_and_loses_no_interrupt() {
    let _snapshots = snapshots();
    let (mut recording, mut findings) = (recording(), findings());
    recording.header.host = host("0-255");
    for check in &mut findings.treatment_checks {
        check.by_cpu = (0..256).map(|cpu| (cpu, u64::from(cpu) * 3)).collect();
        check.all_by_cpu = check.by_cpu.clone();
        check.softirqs_by_cpu = check.by_cpu.clone();
        check.interrupts = 97_920;
        check.on_asked_cpus = 97_919;
        check.active_irqs = (300, 300);
        check.irqs = (0..300_u32)
            .map(|irq| IrqLanding {
                label: (irq + 24).to_string(),
                description: "IR-PCI-MSI 1048576-edge mlx5_comp".to_owned(),
                asked: cpus("0-127"),
                by_cpu: (0..256).map(|cpu| (cpu, u64::from(irq) + 1)).collect(),
            })
            .collect();
    }
    let text = markdown(&recording, &findings);
    let widest = text.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(widest < 400, "{widest}");
    let view = report::view(&recording, &findings);
    let table = view.treatment_check.by_cpu.unwrap();
    let row = &table.rows[0];
    let sum: u64 = row[1..row.len() - 1].iter().map(|count| count.parse::<u64>().unwrap()).sum();
    assert_eq!(sum, 97_920);
    assert_eq!(row.last().unwrap(), "97920");
    assert_snapshot!(
        "report_cpus_256",
        format!("{}\n\n{}", table.markdown, view.treatment_check.irqs.unwrap().markdown)
    );
    assert!(text.contains("Of 391680 interrupts of routed IRQs over 99.9 % landed"), "{text}");
}

#[test]
fn hostile_names_neither_break_tables_nor_reach_the_terminal() {
    let _snapshots = snapshots();
    let (mut recording, mut findings) = (recording(), findings());
    let evil = "a|b`c`\n## d \u{1b}[2J<script>alert(1)</script> [x](http://e) *z* \u{202e}gnp";
    evil.clone_into(&mut recording.header.design.title);
    recording.header.design.question = Some(evil.to_owned());
    evil.clone_into(&mut recording.header.design.treatments[0].name);
    recording.header.design.treatments[0].settings = names(&[evil, "x".repeat(5000).as_str()]);
    recording.header.sources[0].1 = format!("# ```\n````\n{evil}\n");
    recording.header.host.cpu_model = Some(evil.to_owned());
    recording.header.design.params = vec![("p".to_owned(), "$(rm -rf ~) 'q'".to_owned(), true)];
    evil.clone_into(&mut findings.metrics[0].label);
    evil.clone_into(&mut findings.metrics[0].unit);
    evil.clone_into(&mut findings.treatment_checks[0].irqs[0].description);
    evil.clone_into(&mut findings.comparisons[0].level);
    let text = markdown(&recording, &findings);
    let bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    assert!(!text.contains(bad), "{text}");
    let prose: Vec<&str> = text.split("`````").next().unwrap().lines().collect();
    assert!(!prose.iter().any(|line| line.starts_with("## d")), "{text}");
    for lines in prose.windows(2).filter(|lines| lines[0].starts_with("| ") && lines[1].starts_with("| ")) {
        assert_eq!(cells(lines[0]), cells(lines[1]), "{lines:?}");
    }
    assert!(text.contains("--set 'p=$(rm -rf ~) '\\''q'\\'''"), "{text}");
    assert_snapshot!("report_hostile", text);
}

/// Cells of a table line: pipes without a backslash in front.
fn cells(line: &str) -> usize {
    line.replace("\\\\", "").replace("\\|", "").matches('|').count()
}

#[test]
fn low_high_average_has_the_old_tables_with_the_compared_factor_inside() {
    let _snapshots = snapshots();
    let (mut recording, mut findings) = (recording(), findings());
    let design = &mut recording.header.design;
    "low_high_average".clone_into(&mut design.layout);
    design.comparisons.truncate(1);
    let mut per_mhz = findings.metrics[0].clone();
    "loop.rate / host.mhz".clone_into(&mut per_mhz.id);
    "avg/MHz".clone_into(&mut per_mhz.label);
    for cell_of in &mut per_mhz.cells {
        let values: Vec<f64> = cell_of.values.iter().map(|(_, value)| value / 2199.998).collect();
        *cell_of = cell(cell_of.treatment, &values);
    }
    findings.metrics.push(per_mhz);
    let view = report::view(&recording, &findings);
    assert!(view.metrics[1].low_high_average.is_none());
    assert_snapshot!(
        "report_low_high_average",
        report::render(&view, None).unwrap().split("## Results").next().unwrap()
    );
}

#[test]
fn published_numbers_claim_nothing_about_this_host() {
    let (mut recording, mut findings) = (recording(), findings());
    recording.header.design.source = Some("linux-smp list, 2001".to_owned());
    "recorded".clone_into(&mut recording.header.design.protocol.order);
    recording.end = None;
    recording.trials.clear();
    findings.treatment_checks.clear();
    let text = markdown(&recording, &findings);
    for word in ["Xeon", "put back", "Treatment check", "no end", "6.1.0", "irqlab run"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    assert!(text.contains("Numbers published by linux-smp list, 2001"), "{text}");
    recording.header.design.source = None;
    let text = markdown(&recording, &findings);
    assert!(text.contains("Numbers, taken from the file") && !text.contains("Xeon"), "{text}");
}

#[test]
fn users_templates_render_or_say_what_is_wrong_and_where() {
    let _snapshots = snapshots();
    let view = report::view(&recording(), &findings());
    glob!("../cases/report", "*.md.j2", |path| {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_str().unwrap();
        let rendered = report::render(&view, Some(Template { name, text: &text }));
        match &rendered {
            Ok(_) => assert!(name.starts_with("good_"), "{name} should be refused"),
            Err(error) => assert!(name.starts_with("err_"), "{name}: {error}"),
        }
        assert_snapshot!("report_template", rendered.unwrap_or_else(|error| error.to_string()));
    });
}

#[test]
fn the_recordings_own_template_is_used_and_its_absence_is_an_error() {
    let (mut recording, findings) = (recording(), findings());
    recording.header.design.template = Some("mine.md.j2".to_owned());
    let error = report::markdown(&recording, &findings).unwrap_err().to_string();
    assert!(error.contains("`mine.md.j2`: its text is not in the recording"), "{error}");
    recording.header.design.template_text = Some("{{ name }}".to_owned());
    assert_eq!(markdown(&recording, &findings), "`quickstart`\n");
}

#[test]
fn a_long_question_and_kernel_command_line_are_shown_whole() {
    let mut recording = recording();
    let long = |word: &str| vec![word; 60].join(" ");
    recording.header.design.question = Some(long("why"));
    recording.header.host.command_line = Some(long("isolcpus=2-63"));
    let text = markdown(&recording, &findings());
    assert!(text.contains(&long("why")) && text.contains(&long("isolcpus=2-63")), "{text}");
}

#[test]
fn no_absolute_path_of_the_author_is_in_a_report() {
    let text = markdown(&recording(), &findings());
    assert!(!text.contains("/home/somebody/"), "{text}");
    assert!(text.contains("`quickstart.exp:14`") && text.contains("irqlab run quickstart.exp --only"), "{text}");
}

#[test]
fn the_index_lists_experiments_by_folder_whatever_order_they_come_in() {
    let _snapshots = snapshots();
    let (recording, findings) = (recording(), findings());
    let mut left_changed = recording.clone();
    left_changed.end.as_mut().unwrap().not_restored = names(&["irq 24"]);
    let mut published = recording.clone();
    "recorded".clone_into(&mut published.header.design.protocol.order);
    let mut entries = vec![
        report::index_entry("quickstart", &recording, &findings),
        report::index_entry("odd name|x", &left_changed, &findings),
        report::index_entry("compute_2001", &published, &findings),
    ];
    let text = report::index(&entries);
    entries.reverse();
    assert_eq!(report::index(&entries), text);
    assert_snapshot!("report_index", text);
}

#[test]
fn a_report_is_replaced_whole_and_a_changed_one_is_pointed_at() {
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording.jsonl");
    let missing = report::check(&recording, "x").unwrap_err().to_string();
    assert!(missing.contains("cannot be read") && missing.contains("irqlab report"), "{missing}");
    let path = report::write(&recording, "one\ntwo\nthree\n").unwrap();
    assert_eq!(path, folder.path().join("README.md"));
    report::check(&recording, "one\ntwo\nthree\n").unwrap();
    let error = report::check(&recording, "one\n2\nthree\n").unwrap_err().to_string();
    assert!(error.contains("line 2 is `two`, should be `2`"), "{error}");
    let error = report::check(&recording, "one\ntwo\nthree\nfour\n").unwrap_err().to_string();
    assert!(error.contains("line 4 is ``, should be `four`"), "{error}");
    report::write(&recording, "new\n").unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays behind");
}

#[test]
fn what_the_analysis_says_of_a_recording_renders_the_same_each_time() {
    let mut recording = recording();
    for trial in &mut recording.trials {
        let value = if trial.treatment < 2 { 410_000.0 } else { 128_000.0 };
        let noise = f64::from(trial.sequence * 7919 % 1000);
        trial.processes.push(made::process("loop", "rate", value + noise));
    }
    let analyse = || {
        let end = recording.end.as_ref();
        irqlab::analysis::analyse(&recording.header, &recording.trials, &recording.resumed, end)
    };
    let text = markdown(&recording, &analyse());
    assert!(text.contains("**`two_cpus` is slower than `one_cpu`** on `loop.rate`, by more than"), "{text}");
    assert!(text.contains("32 of 32 planned trials are valid, 4 warm-up trials left out"), "{text}");
    assert_eq!(markdown(&recording, &analyse()), text);
    recording.trials.truncate(5);
    recording.end = None;
    let cut_off = markdown(&recording, &irqlab::analysis::analyse(&recording.header, &recording.trials, &[], None));
    assert!(cut_off.contains("1 of 32 planned trials") && cut_off.contains("**No verdict**"), "{cut_off}");
}

#[test]
fn a_cpu_without_interrupts_of_its_own_is_not_a_reason_to_fail() {
    let mut findings = findings();
    findings.treatment_checks.iter_mut().for_each(|check| {
        check.by_cpu.clear();
        check.irqs.clear();
        check.interrupts = 0;
        check.on_asked_cpus = 0;
    });
    let text = markdown(&recording(), &findings);
    assert!(text.contains("saw no interrupt while trials ran"), "{text}");
    assert!(!text.contains("100 % of 0"), "{text}");
}

#[test]
fn the_template_reference_names_every_value_and_its_example_renders() {
    let (mut recording, mut findings) = (recording(), findings());
    recording.header.design.question = None;
    findings.invalid_trials = vec![InvalidTrial { number: 1, block: 1, attempt: 0, treatment: 0, faults: Vec::new() }];
    let reference = include_str!("../../docs/report_template.md");
    let view = report::view(&recording, &findings);
    let mut keys = Vec::new();
    collect_keys(&serde_json::to_value(&view).unwrap(), &mut keys);
    for key in keys {
        assert!(reference.contains(&format!("`{key}`")), "docs/report_template.md does not name `{key}`");
    }
    let text = reference.split("```jinja\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let rendered = report::render(&view, Some(Template { name: "example.md.j2", text })).unwrap();
    assert!(rendered.contains("- **`two_cpus` is slower") && rendered.contains("## How to reproduce"), "{rendered}");
}

fn collect_keys(value: &serde_json::Value, keys: &mut Vec<String>) {
    match value {
        serde_json::Value::Object(fields) => {
            for (key, value) in fields {
                keys.push(key.clone());
                collect_keys(value, keys);
            }
        }
        serde_json::Value::Array(values) => values.iter().for_each(|value| collect_keys(value, keys)),
        _ => {}
    }
}

#[test]
fn a_report_of_emulated_machines_says_at_its_top_what_their_timings_are_worth() {
    use irqlab::recording::{Accelerator, Boot, LabFacts};
    let mut recording = recording();
    let boot = |number, accelerator| Boot {
        number,
        planned: number,
        at: "2025-03-01T10:00:00Z".to_owned(),
        boot_id: None,
        lab: Some(LabFacts {
            accelerator,
            reason: None,
            qemu: "QEMU emulator version 7.2.22".to_owned(),
            vng: "virtme-ng 1.42".to_owned(),
            command: names(&["vng", "--run"]),
            boot_ms: 12_000,
            console: "console-1.log".to_owned(),
        }),
        host: host("0-1"),
        options: Vec::new(),
        treatments: std::collections::BTreeMap::new(),
    };
    recording.header.boots = vec![boot(1, Accelerator::Kvm)];
    assert!(!markdown(&recording, &findings()).contains("Emulated"));
    recording.header.boots.push(boot(2, Accelerator::Emulated));
    let text = markdown(&recording, &findings());
    let top = text.split("## Verdict").next().unwrap();
    assert!(top.contains("1 of 2 boots ran in software emulation"), "{top}");
}
