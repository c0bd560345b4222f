//! Checked experiments on captured hosts: which interrupts, which CPUs, which changes; or why not.

use std::fmt::Write;
use std::path::Path;

use insta::{Settings, assert_snapshot, glob};
use irqlab::bind::{self, Caller};
use irqlab::check::{self, Options};
use irqlab::design::Experiment;
use irqlab::diagnostic::{Color, Diagnostic, render};
use irqlab::host;
use irqlab::host::files::Root;
use irqlab::recording::HostFacts;
use irqlab::settings;
use irqlab::source::Sources;
use irqlab::syntax;

/// The case's experiment, checked, and the facts of the host its first line names.
fn case(path: &Path) -> (Sources, Experiment, HostFacts) {
    let text = std::fs::read_to_string(path).unwrap();
    let name = text.lines().next().and_then(|line| line.strip_prefix("# host: ")).expect("the first line names a host");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hosts").join(name);
    assert!(root.is_dir(), "no host {name}");
    let mut sources = Sources::default();
    let file = sources.add(path.file_name().unwrap(), text.as_str());
    let tree = syntax::parse(&sources, file).expect("the case parses");
    let checked = check::check(&sources, &[(file, tree)], &Options::default());
    let mut experiments = match checked {
        Ok(experiments) => experiments,
        Err(diagnostics) => panic!("{}", render(&diagnostics, &sources, Color::Never)),
    };
    (sources, experiments.remove(0), host::read_facts(&Root::new(root)))
}

fn schedule_text(experiment: &Experiment, facts: &HostFacts) -> Result<String, Vec<Diagnostic>> {
    let schedule = bind::bind(experiment, facts)?;
    let mut text = String::new();
    for treatment in &schedule.treatments {
        writeln!(text, "{} (runner on {})", treatment.name, treatment.runner_cpus).unwrap();
        for setting in &treatment.settings {
            writeln!(text, "  {setting}").unwrap();
        }
        for change in &treatment.changes {
            writeln!(text, "    {}", settings::describe(change)).unwrap();
        }
        for moving in &treatment.moving {
            writeln!(text, "    {}", moving.words()).unwrap();
        }
        for process in treatment.backgrounds.iter().chain(&treatment.workloads) {
            writeln!(text, "  {}: {}", process.name, bind::process_words(process)).unwrap();
        }
    }
    for remark in &schedule.remarks {
        writeln!(text, "remark: {remark}").unwrap();
    }
    Ok(text)
}

#[test]
fn binds_to_captured_hosts() {
    let mut settings = Settings::clone_current();
    settings.set_snapshot_path("../snapshots/bind");
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| {
        glob!("../cases", "bind/*.exp", |path| {
            let (sources, experiment, facts) = case(path);
            let mut text = schedule_text(&experiment, &facts)
                .unwrap_or_else(|diagnostics| render(&diagnostics, &sources, Color::Never));
            let unmet = bind::unmet(&experiment, &facts, &Caller::default());
            if !unmet.is_empty() {
                text = render(&unmet, &sources, Color::Never);
            }
            assert_snapshot!("schedule", text);
        });
    });
}

#[test]
fn the_same_facts_give_the_same_schedule() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/bind/hint-local-random.exp");
    let (_, experiment, facts) = case(&path);
    assert_eq!(bind::bind(&experiment, &facts).unwrap(), bind::bind(&experiment, &facts).unwrap());
}

/// Which treatments a boot serves, boot by boot: `(boot, block of its trials, treatments in order)`.
fn boots_of(text: &str) -> Vec<(u32, Vec<(u32, usize)>)> {
    let mut sources = Sources::default();
    let file = sources.add("boots.exp", text);
    let tree = syntax::parse(&sources, file).unwrap();
    let experiment = check::check(&sources, &[(file, tree)], &Options::default()).unwrap().remove(0);
    let order = bind::order(&experiment);
    let boots = order.chunk_by(|a, b| a.boot == b.boot);
    boots.map(|trials| (trials[0].boot.unwrap(), trials.iter().map(|t| (t.block, t.treatment)).collect())).collect()
}

#[test]
fn one_boot_serves_a_whole_plot_within_a_block() {
    let boots = boots_of(
        "experiment e {
           vary boot { plain { } noapic { boot \"noapic\" } }
           vary work in 1, 2, 3
           workload w { run \"sleep ${work}\" }
           measure w.real
           repeat 4; warmup 1
         }",
    );
    assert_eq!(boots.iter().map(|(number, _)| *number).collect::<Vec<_>>(), (1..=8).collect::<Vec<_>>());
    for (number, trials) in &boots {
        let plot = trials[0].1 / 3;
        assert!(trials.iter().all(|(_, treatment)| treatment / 3 == plot), "{trials:?}");
        let (warmup, proper) = trials.split_at(3);
        assert!(warmup.iter().all(|(block, _)| *block == 0), "a fresh machine is warmed up: {trials:?}");
        assert!(proper.iter().all(|(block, _)| *block == (number - 1) / 2 + 1), "{trials:?}");
    }
    for block in boots.chunks(2) {
        assert_ne!(block[0].1[0].1 / 3, block[1].1[0].1 / 3, "each block boots each level once");
    }
}

#[test]
fn a_plot_that_ends_a_block_and_begins_the_next_is_booted_again() {
    let boots = boots_of(
        "experiment e {
           lab { cpus 2 }
           vary routing { a { irq * -> cpu 0 } b { irq * -> online } }
           workload w { run \"true\" }
           measure w.real
           repeat 3
         }",
    );
    assert_eq!(boots.len(), 3, "each block has a machine of its own: {boots:?}");
}

#[test]
fn copies_of_a_level_that_needs_a_boot_are_booted_each() {
    let boots = boots_of(
        "experiment e {
           vary boot { plain { } noapic { boot \"noapic\" } }
           vary work in 1, 2
           control boot.plain repeated 3
           workload w { run \"sleep ${work}\" }
           measure w.real
           repeat 2
         }",
    );
    assert_eq!(boots.len(), 8, "plain three times and noapic once in each block: {boots:?}");
    assert!(boots.iter().all(|(_, trials)| trials.len() == 4), "a warm-up and a trial of each: {boots:?}");
}
