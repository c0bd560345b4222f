//! `irqlab plan`: the dry run. Prints treatments, order and every write; touches nothing and needs no root.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use super::select::{self, Selected};
use super::{Exit, Selection, print};
use crate::analysis::planner;
use crate::bind::{self, Caller, Change, ChangeKind, OnRefusal, Schedule, Treatment};
use crate::design::{Command, Experiment, Order, Repeat};
use crate::host::{self, files::Root};
use crate::recording::{HostFacts, PlannedTrial};
use crate::{cpu_set, settings};

mod boots;

pub(super) fn plan(selection: &Selection, root: &Path) -> Exit {
    let selected = match select::select(selection) {
        Ok(selected) => selected,
        Err(exit) => return exit,
    };
    let root = match select::root(root) {
        Ok(root) => root,
        Err(exit) => return exit,
    };
    let facts = host::read_facts(&root);
    selected.iter().fold(Exit::Fine, |exit, selected| exit.and(one(selected, &facts, &root)))
}

fn one(selected: &Selected, facts: &HostFacts, root: &Root) -> Exit {
    let experiment = &selected.experiment;
    let refusals = bind::refusals(experiment);
    // A lab is a host of its own, known when it is booted; a captured one may stand for it.
    if experiment.is_published() || (experiment.lab.is_some() && root.is_live()) {
        print::data(&unbound_text(experiment));
        print::notes(&refusals, &selected.sources);
        return Exit::Fine;
    }
    let schedule = match bind::bind(experiment, facts) {
        Ok(schedule) => schedule,
        Err(diagnostics) => {
            print::diagnostics(&diagnostics, &selected.sources);
            return Exit::Host;
        }
    };
    print::data(&text(experiment, &schedule, root));
    print::notes(&refusals, &selected.sources);
    // Programs and privilege are the caller's matter when the run starts, not the plan's.
    let caller = Caller { root: true, tools: select::tools(experiment) };
    let unmet = bind::unmet(experiment, facts, &caller);
    print::diagnostics(&unmet, &selected.sources);
    if unmet.is_empty() { Exit::Fine } else { Exit::Host }
}

/// The plan in words.
fn text(experiment: &Experiment, schedule: &Schedule, root: &Root) -> String {
    let mut out = String::new();
    head_text(&mut out, experiment);
    let _ = writeln!(out, "\ntreatments");
    for (number, treatment) in (1..).zip(&schedule.treatments) {
        treatment_text(&mut out, number, treatment, root);
    }
    if !schedule.remarks.is_empty() {
        let _ = writeln!(out, "\nremarks");
        for remark in &schedule.remarks {
            let _ = writeln!(out, "  {remark}");
        }
    }
    boots::machines_text(&mut out, experiment, &schedule.order);
    order_text(&mut out, experiment, &schedule.order);
    let settles: Vec<u64> = schedule.treatments.iter().map(|treatment| treatment.settle_ms).collect();
    duration_text(&mut out, experiment, (&schedule.order, &settles));
    power_text(&mut out, experiment, &schedule.order);
    if experiment.lab.is_none() && experiment.needs_boots() {
        let _ = writeln!(
            out,
            "\nWrites are those this boot would make; interrupts and masks are looked up anew in the boot a treatment runs in."
        );
    }
    out
}

/// The plan of an experiment that is not bound to this host: a lab's, or one of published numbers.
fn unbound_text(experiment: &Experiment) -> String {
    let mut out = String::new();
    head_text(&mut out, experiment);
    let _ = writeln!(out, "\ntreatments");
    for (number, treatment) in (1..).zip(&experiment.treatments) {
        let _ = writeln!(out, "  {number}. {}", treatment.name);
        for setting in &treatment.settings {
            let _ = writeln!(out, "       {}", bind::setting_words(setting));
        }
        for process in treatment.backgrounds.iter().chain(&treatment.workloads) {
            let _ = writeln!(out, "       {}: {}", process.name, bind::command_words(&process.command));
        }
    }
    if experiment.is_published() {
        let rows = experiment.recorded.len();
        let _ = writeln!(out, "\nrecorded: {rows} rows of published numbers; nothing is run");
        return out;
    }
    let order = bind::order(experiment);
    boots::machines_text(&mut out, experiment, &order);
    order_text(&mut out, experiment, &order);
    duration_text(&mut out, experiment, (&order, &[]));
    power_text(&mut out, experiment, &order);
    let _ = writeln!(
        out,
        "\nInterrupts, CPUs and writes are known when the lab is booted; `--root` with a captured lab shows them before."
    );
    out
}

fn head_text(out: &mut String, experiment: &Experiment) {
    let _ = writeln!(out, "experiment {}: {}", experiment.name, experiment.title);
    if let Some(question) = &experiment.question {
        let _ = writeln!(out, "  question: {question}");
    }
    if let Some(lab) = &experiment.lab {
        let options = lab
            .options
            .iter()
            .map(|(name, arguments)| [std::slice::from_ref(name), arguments.as_slice()].concat().join(" "));
        let _ = writeln!(out, "  lab {}: {}", lab.name, options.collect::<Vec<_>>().join(", "));
    }
    for factor in &experiment.factors {
        let hard = if factor.hard_to_change { " (hard to change: whole plots)" } else { "" };
        let _ = writeln!(out, "  factor {}: {}{hard}", factor.name, factor.levels.join(", "));
    }
}

fn treatment_text(out: &mut String, number: usize, treatment: &Treatment, root: &Root) {
    let _ = writeln!(out, "  {number}. {}", treatment.name);
    for setting in &treatment.settings {
        let _ = writeln!(out, "       {setting}");
    }
    for write in writes(&treatment.changes, root) {
        let _ = writeln!(out, "         {write}");
    }
    for moving in &treatment.moving {
        let _ = writeln!(out, "         {}", moving.words());
    }
    if treatment.settle_ms > 0 {
        let _ = writeln!(
            out,
            "         before each trial {} of rest, three periods of irqbalance",
            seconds(treatment.settle_ms)
        );
    }
    for process in &treatment.backgrounds {
        let _ = writeln!(out, "       background {}: {}", process.name, bind::process_words(process));
    }
    for process in &treatment.workloads {
        let _ = writeln!(out, "       workload {}: {}", process.name, bind::process_words(process));
    }
}

/// Every write a treatment makes on the host as it is now, old → new; interrupts with the same masks share a line.
fn writes(changes: &[Change], root: &Root) -> Vec<String> {
    let mut masks: BTreeMap<(String, String, &str), Vec<u32>> = BTreeMap::new();
    let mut others: Vec<String> = Vec::new();
    for change in changes {
        let old = settings::current(change, root).unwrap_or_else(|error| error.to_string());
        match &change.kind {
            ChangeKind::Affinity { identity, mask, on_refusal } => {
                let noun = if mask.len() == 1 { "cpu" } else { "cpus" };
                let refused = match on_refusal {
                    OnRefusal::Fail => "",
                    OnRefusal::Skip => "; one the kernel refuses stays",
                };
                masks.entry((old, format!("{noun} {mask}"), refused)).or_default().push(identity.irq.0);
            }
            _ => others.push(format!("{} (now {old})", settings::describe(change))),
        }
    }
    let masks = masks.into_iter().map(|((old, new, refused), irqs)| {
        let irqs = cpu_set::to_list(irqs);
        if old == new {
            format!("irq {irqs}: {new} already, not written")
        } else {
            format!("irq {irqs}: {old} → {new}{refused}")
        }
    });
    masks.chain(others).collect()
}

fn order_text(out: &mut String, experiment: &Experiment, order: &[PlannedTrial]) {
    let protocol = &experiment.protocol;
    let kind = match protocol.order {
        Order::Blocks => "randomised complete blocks",
        Order::Sequential => "sequential: no verdict will be drawn",
        Order::Shuffled => "completely randomised",
    };
    let trials = order.iter().filter(|trial| trial.block > 0).count();
    let warmup = order.len() - trials;
    let in_boots = match boots::count(order) {
        0 => String::new(),
        count => format!(", {}", counted(count as u64, "boot")),
    };
    let _ =
        writeln!(out, "\norder ({kind}, seed {}; {warmup} warm-up trials, {trials} trials{in_boots})", protocol.seed);
    if !in_boots.is_empty() {
        boots::order_text(out, experiment, order);
        return;
    }
    let mut blocks: Vec<(u32, Vec<String>)> = Vec::new();
    for trial in order {
        let treatment = (trial.treatment + 1).to_string();
        match blocks.last_mut() {
            Some((block, cells)) if *block == trial.block && protocol.order == Order::Blocks => cells.push(treatment),
            Some((block, cells)) if (*block == 0) == (trial.block == 0) && protocol.order != Order::Blocks => {
                cells.push(treatment);
            }
            _ => blocks.push((trial.block, vec![treatment])),
        }
    }
    for (block, cells) in blocks {
        let name = match (block, protocol.order) {
            (0, _) => "warm-up".to_owned(),
            (block, Order::Blocks) => format!("block {block}"),
            _ => "trials".to_owned(),
        };
        let _ = writeln!(out, "  {name}: {}", cells.join(" "));
    }
}

/// The time the built-in workloads and the settling take is known; a program's own is not.
fn duration_text(out: &mut String, experiment: &Experiment, (order, settles): (&[PlannedTrial], &[u64])) {
    let mut known_ms = 0;
    let mut unknown = false;
    for trial in order {
        let settle_ms = settles.get(trial.treatment).copied().unwrap_or(0);
        known_ms += settle_ms.max(experiment.protocol.settle_ms);
        let workloads = &experiment.treatments[trial.treatment].workloads;
        let lengths: Vec<Option<u64>> = workloads.iter().map(|process| length_ms(&process.command)).collect();
        unknown |= lengths.contains(&None);
        known_ms += lengths.into_iter().flatten().max().unwrap_or(0);
    }
    let known = seconds(known_ms);
    let boots = boots::duration(experiment, order).map(|boots| format!("; and {boots}")).unwrap_or_default();
    let _ = if unknown {
        let limit = seconds(experiment.protocol.timeout_ms);
        writeln!(
            out,
            "\nduration: {known} and the time the programs take, which only a run can tell (limit {limit} a trial){boots}"
        )
    } else {
        writeln!(out, "\nduration: about {known}, and some for applying settings{boots}")
    };
}

/// How long a built-in workload runs by declaration, milliseconds.
fn length_ms(command: &Command) -> Option<u64> {
    let Command::Builtin { arguments, .. } = command else { return None };
    let (_, length) = arguments.iter().find(|(key, _)| key == "for")?;
    // `check` has put it into its base unit.
    length.strip_suffix("ms")?.parse::<f64>().ok().map(|ms| ms as u64)
}

fn seconds(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{:.0} s", ms as f64 / 1e3),
        _ => format!("{:.0} min", ms as f64 / 6e4),
    }
}

fn power_text(out: &mut String, experiment: &Experiment, order: &[PlannedTrial]) {
    let blocks = bind::blocks(experiment);
    let pairing = match experiment.protocol.order {
        Order::Blocks => planner::Pairing::Paired,
        Order::Shuffled => planner::Pairing::Unpaired,
        Order::Sequential => {
            let _ = writeln!(out, "\nverdicts: none, the order is sequential and drift cannot be told from effect");
            return;
        }
    };
    if let Repeat::Until { metric, within, pilot, max } = &experiment.protocol.repeat {
        let short = if *pilot < 10 { "; a pilot below 10 often misjudges the spread" } else { "" };
        let _ = writeln!(
            out,
            "\ntwo-stage: after the pilot of {pilot} blocks as many as {metric} needs for ±{:.2} %, {max} at most{short}",
            within * 100.0
        );
    }
    let _ = writeln!(out, "\nwhat {} can show", counted(blocks, "repetition"));
    if !boots::power_text(out, experiment, order) {
        let _ = match planner::detectable_effect(blocks, pairing) {
            Some(effect) => writeln!(
                out,
                "  smallest detectable effect (power 80 %): {effect:.2} times the run-to-run variation; {:.1} % at a \
                 variation of 1 %, {:.1} % at 5 %",
                effect,
                effect * 5.0
            ),
            None => writeln!(out, "  nothing: at least 3 repetitions are needed for a verdict"),
        };
    }
    if let Some(comparisons) = comparisons_per_metric(experiment) {
        let needed = planner::blocks_for_exact(comparisons, pairing);
        if blocks < needed {
            let _ = writeln!(
                out,
                "  {} with {}: no exact test can reach 0.05 after Holm; \
                 verdicts will rest on the t model alone ({needed} repetitions would do)",
                counted(comparisons as u64, "comparison"),
                counted(blocks, "repetition")
            );
        }
    }
}

/// `1 comparison`, `2 comparisons`.
fn counted(number: impl Into<u64>, noun: &str) -> String {
    match number.into() {
        1 => format!("1 {noun}"),
        number => format!("{number} {noun}s"),
    }
}

/// How many comparisons Holm's correction will see, for the metrics with the most.
fn comparisons_per_metric(experiment: &Experiment) -> Option<usize> {
    let count = |metric: &str| {
        let declared =
            experiment.comparisons.iter().filter(|comparison| comparison.metrics.iter().any(|id| id == metric));
        declared
            .map(|comparison| {
                let within: usize =
                    comparison.within.iter().map(|factor| experiment.factors[*factor].levels.len()).product();
                (experiment.factors[comparison.factor].levels.len() - 1) * within
            })
            .sum::<usize>()
    };
    experiment.metrics.iter().map(|metric| count(&metric.id)).max().filter(|count| *count > 0)
}
