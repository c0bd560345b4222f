//! Files to checked experiments: what is understood, what is refused, and how a writer hears of it.

use std::fmt::Write;
use std::path::Path;

use insta::{Settings, assert_snapshot, glob};
use irqlab::check::{self, LoadError, Options};
use irqlab::design::{
    Command, CpuSelector, Experiment, IrqSelector, Process, RecordedValues, RoutingTarget, SettingKind,
};
use irqlab::diagnostic::{Color, render};
use irqlab::source::Sources;
use irqlab::syntax;

fn settings(folder: &str) -> Settings {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path(format!("../snapshots/check/{folder}"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
}

/// Checks one text; the experiments, or the rendered diagnostics.
fn check_text(text: &str, params: &[(&str, &str)]) -> Result<Vec<Experiment>, String> {
    let mut sources = Sources::default();
    let file = sources.add("case.exp", text);
    let shown = |diagnostics: Vec<_>, sources: &Sources| render(&diagnostics, sources, Color::Never);
    let tree = syntax::parse(&sources, file).map_err(|diagnostics| shown(diagnostics, &sources))?;
    let params = params.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    check::check(&sources, &[(file, tree)], &Options { params }).map_err(|diagnostics| shown(diagnostics, &sources))
}

/// The design in plain lines.
fn summary(experiment: &Experiment) -> String {
    let mut lines = String::new();
    let mut line = |text: String| writeln!(lines, "{text}").expect("a text can be written to");
    line(format!("experiment {}: {}", experiment.name, experiment.title));
    for param in &experiment.params {
        line(format!("  param {} = {} (replaced: {})", param.name, param.value, param.replaced));
    }
    if let Some(lab) = &experiment.lab {
        line(format!("  lab {}", lab.name));
        lab.options.iter().for_each(|(name, arguments)| line(format!("    {name} {}", arguments.join(" "))));
    }
    for factor in &experiment.factors {
        let hard = if factor.hard_to_change { " (hard to change)" } else { "" };
        line(format!("  factor {}: {}{hard}", factor.name, factor.levels.join(", ")));
    }
    for metric in &experiment.metrics {
        line(format!(
            "  metric {} as {} [{}] {:?}: {:?}",
            metric.id, metric.label, metric.unit, metric.direction, metric.expr
        ));
    }
    line(format!("  {:?}", experiment.protocol));
    for comparison in &experiment.comparisons {
        let (factor, within) = (comparison.factor, &comparison.within);
        let (base, metrics) = (comparison.base, comparison.metrics.join(", "));
        line(format!(
            "  compare {factor} against {base} by {metrics} margin {:?} within {within:?}",
            comparison.margin
        ));
    }
    for expectation in &experiment.expectations {
        let (left, right) = (expectation.left, expectation.right);
        line(format!(
            "  expect `{}`: factor {} {left:?} {:?} {right:?}",
            expectation.text, expectation.factor, expectation.operator
        ));
    }
    experiment.requirements.iter().for_each(|requirement| line(format!("  require {:?}", requirement.kind)));
    if experiment.report != irqlab::design::ReportOptions::default() {
        line(format!("  {:?}", experiment.report));
    }
    for treatment in &experiment.treatments {
        line(format!("  treatment {} {:?} copy {}", treatment.name, treatment.levels, treatment.control));
        treatment.machine.iter().for_each(|machine| line(format!("    {machine:?}")));
        treatment.settings.iter().for_each(|setting| line(format!("    {:?}", setting.kind)));
        treatment.workloads.iter().for_each(|process| line(format!("    workload {}", process_line(process))));
        treatment.backgrounds.iter().for_each(|process| line(format!("    background {}", process_line(process))));
    }
    for series in &experiment.recorded {
        line(format!(
            "  recorded {} {}: {:?}",
            series.metric, experiment.treatments[series.treatment].name, series.values
        ));
    }
    lines
}

/// A process without what was left at its default.
fn process_line(process: &Process) -> String {
    let mut line = format!("{}: {:?}", process.name, process.command);
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            write!(line, ", {name} {value}").expect("a text can be written to");
        }
    };
    add("on", process.cpus.as_ref().map(|cpus| format!("{cpus:?}")));
    add("in", process.directory.clone());
    add("env", (!process.environment.is_empty()).then(|| format!("{:?}", process.environment)));
    add("as", process.user.clone());
    add("nice", process.nice.map(|nice| nice.to_string()));
    add("fifo", process.fifo.map(|fifo| fifo.to_string()));
    add("timeout", process.timeout_ms.map(|limit| limit.to_string()));
    add("instances", (process.instances > 1).then(|| process.instances.to_string()));
    add("at", process.at.clone());
    add("loop", process.restart.then(|| "yes".to_owned()));
    add("ready", process.ready.clone());
    add("parse", (!process.parsers.is_empty()).then(|| format!("{:?}", process.parsers)));
    line
}

#[test]
fn understands_every_case() {
    settings("ok").bind(|| {
        glob!("../cases/check/ok", "*.exp", |path| {
            let text = std::fs::read_to_string(path).expect("the case can be read");
            let experiments = check_text(&text, &[]).unwrap_or_else(|errors| panic!("{}:\n{errors}", path.display()));
            assert_snapshot!("design", experiments.iter().map(summary).collect::<String>());
        });
    });
}

#[test]
fn explains_every_faulty_case() {
    settings("err").bind(|| {
        glob!("../cases/check/err", "*.exp", |path| {
            let text = std::fs::read_to_string(path).expect("the case can be read");
            let errors = check_text(&text, &[]).expect_err("the case is faulty");
            assert_snapshot!("diagnostics", errors);
        });
    });
}

/// A whole experiment around some clauses.
fn around(clauses: &str) -> String {
    format!(
        "experiment x {{\n  vary routing {{ one {{ irq * -> cpu 0 }}  all {{ irq * -> online }} }}\n  \
         workload w {{ builtin primes }}\n  measure w.real\n  {clauses}\n}}\n"
    )
}

#[test]
fn parameters_are_replaced_by_the_caller_and_say_so() {
    let text = around("param limit = 2min; timeout ${limit}");
    let own = check_text(&text, &[]).unwrap();
    assert_eq!((own[0].protocol.timeout_ms, own[0].params[0].replaced), (120_000, false));
    let given = check_text(&text, &[("limit", "3s"), ("limit", "90s")]).unwrap();
    assert_eq!((given[0].protocol.timeout_ms, given[0].params[0].replaced), (90_000, true));
    let wrong = check_text(&text, &[("limit", "3 parsecs")]).unwrap_err();
    assert!(wrong.contains("` parsecs` is not a unit for this"), "{wrong}");
    let unknown = check_text(&text, &[("limt", "3s")]).unwrap_err();
    assert!(unknown.contains("did you mean `limit`?"), "{unknown}");
}

#[test]
fn parameters_may_refer_to_each_other_in_any_order() {
    let text = around("param dir = \"${base}/x\"; param base = \"/mnt\"; background b { run \"ls ${dir}\"; loop }");
    let command = check_text(&text, &[("base", "/srv")]).unwrap()[0].treatments[0].backgrounds[0].command.clone();
    assert_eq!(command, Command::Run(vec!["ls".into(), "/srv/x".into()]));
    let circle = around("param a = \"${b}\"; param b = \"${a}\"; background x { run \"ls ${a}\"; loop }");
    assert!(check_text(&circle, &[]).unwrap_err().contains("reference `b` is unknown"));
}

#[test]
fn a_value_with_a_blank_stays_one_word_of_a_command() {
    let text = around("param dir = \"/mnt/my disk\"; background b { run \"dd 'of=${dir}/f' bs=1\"; loop }");
    let experiments = check_text(&text, &[]).unwrap();
    let command = &experiments[0].treatments[0].backgrounds[0].command;
    assert_eq!(*command, Command::Run(vec!["dd".into(), "of=/mnt/my disk/f".into(), "bs=1".into()]));
}

#[test]
fn documented_defaults_are_filled_in() {
    let experiment = &check_text(&around(""), &[]).unwrap()[0];
    let protocol = &experiment.protocol;
    assert_eq!(protocol.repeat, irqlab::design::Repeat::Fixed(5));
    assert_eq!((protocol.warmup, protocol.seed, protocol.retries), (1, 1, 2));
    assert_eq!((protocol.settle_ms, protocol.timeout_ms), (200, 600_000));
    assert_eq!(experiment.title, "x");
}

#[test]
fn statements_in_another_order_mean_the_same() {
    let forward = around("let a = cpu 1; let b = a + cpu 2; hold { workqueues on b }; compare routing against all");
    let body = forward.lines().filter(|line| line.starts_with("  ")).collect::<Vec<_>>();
    let backward = format!("experiment x {{\n{}\n}}\n", body.into_iter().rev().collect::<Vec<_>>().join("\n"));
    let plain = |text: &str| summary(&check_text(text, &[]).unwrap()[0]);
    assert_eq!(plain(&forward), plain(&backward));
}

#[test]
fn a_treatment_holds_held_settings_and_those_of_its_levels() {
    let experiment = &check_text(&around("hold { smt on }"), &[]).unwrap()[0];
    let kinds: Vec<&SettingKind> = experiment.treatments[1].settings.iter().map(|setting| &setting.kind).collect();
    let target = RoutingTarget::Set(CpuSelector::Online);
    assert_eq!(kinds, [&SettingKind::Smt(true), &SettingKind::Route { irqs: IrqSelector::All, target }]);
    assert!(!experiment.factors[0].hard_to_change, "a held setting changes with no level");
}

fn load(path: &Path) -> Result<check::Checked, String> {
    check::load(path, &Options::default()).map_err(|error| match error {
        LoadError::Wrong(failed) => render(&failed.diagnostics, &failed.sources, Color::Never),
        other => other.to_string(),
    })
}

#[test]
fn used_files_are_read_once_relative_to_their_user() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("shared")).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("shared/a.exp", "use \"b.exp\"\npolicy quiet { smt off }\nexperiment left_alone { }\n");
    write("shared/b.exp", "workload w { builtin primes }\n");
    write(
        "main.exp",
        "use \"shared/a.exp\"\nuse \"shared/../shared/b.exp\"\nexperiment x {\n  vary f { a { quiet } b { smt on } }\n  \
         workload w\n  measure w.real\n}\n",
    );
    let checked = load(&folder.path().join("main.exp")).unwrap();
    assert_eq!(checked.experiments.len(), 1);
    assert_eq!(checked.sources.iter().count(), 3);
    assert!(checked.experiments[0].factors[0].hard_to_change);
}

#[test]
fn faults_of_use_point_at_the_clause() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("missing.exp", "use \"gone.exp\"\n");
    write("circle.exp", "use \"back.exp\"\n");
    write("back.exp", "use \"./circle.exp\"\n");
    write("twice.exp", "use \"leaf.exp\"\nuse \"./leaf.exp\"\n");
    write("leaf.exp", "policy quiet { smt off }\n");
    write("clash.exp", "use \"leaf.exp\"\npolicy quiet { smt on }\n");
    let errors = |name: &str| load(&folder.path().join(name)).unwrap_err();
    assert!(errors("missing.exp").contains("gone.exp` cannot be read: No such file or directory"));
    assert!(errors("circle.exp").contains("file `./circle.exp` leads back to itself"));
    assert!(errors("twice.exp").contains("file `./leaf.exp` is there twice"));
    assert!(errors("clash.exp").contains("policy `quiet` is there twice"));
    assert!(errors("nowhere.exp").contains("No such file or directory (os error 2)"));
}

#[test]
fn published_rows_of_one_treatment_go_to_its_control_copies() {
    let text = "experiment x {\n  vary f in a, b\n  control a repeated 2\n  recorded {\n    m.t s lower_is_better\n    \
                a 1 2\n    a 3 4\n    b 5\n  }\n}\n";
    let experiment = &check_text(text, &[]).unwrap()[0];
    let placed: Vec<(&str, &RecordedValues)> = experiment
        .recorded
        .iter()
        .map(|series| (experiment.treatments[series.treatment].name.as_str(), &series.values))
        .collect();
    let samples = |values: &[f64]| RecordedValues::Samples(values.to_vec());
    let expected = [("f=a", samples(&[1.0, 2.0])), ("f=a (control 2)", samples(&[3.0, 4.0])), ("f=b", samples(&[5.0]))];
    assert_eq!(placed, expected.iter().map(|(name, values)| (*name, values)).collect::<Vec<_>>());
    let third = check_text(&text.replace("b 5", "a 5\n    b 5"), &[]).unwrap_err();
    assert!(third.contains("row `f=a` is there twice"), "{third}");
}

#[test]
fn loads_go_to_the_other_end_of_the_wire_where_there_is_one() {
    let far_end = |lab: &str, to: &str| {
        let load =
            format!("background load {{ builtin net_stream; {to} }} workload w {{ builtin primes }} measure w.real");
        let text =
            format!("experiment e {{ {lab}\n vary r {{ a {{ irq * -> cpu 0 }} b {{ irq * -> online }} }}\n {load} }}");
        let experiments =
            check_text(&text.replace("} workload", "}\n workload").replace("} measure", "}\n measure"), &[]);
        let experiments = experiments.unwrap_or_else(|errors| panic!("{errors}"));
        let Command::Builtin { arguments, .. } = &experiments[0].treatments[0].backgrounds[0].command else {
            panic!("it is built in");
        };
        arguments.iter().find(|(key, _)| key == "to").expect("it has a far end").1.clone()
    };
    assert_eq!(far_end("", "loop"), "localhost");
    assert_eq!(far_end("lab { cpus 2 }", "loop"), "localhost");
    assert_eq!(far_end("lab { cpus 2; nic e1000; link }", "loop"), "lab.host");
    assert_eq!(far_end("lab { cpus 2; nic e1000; link }", "to localhost"), "localhost");
    assert_eq!(far_end("", "to netns:blue"), "netns:blue");
    assert_eq!(far_end("", "to 10.0.0.7:5201"), "10.0.0.7:5201");
}
