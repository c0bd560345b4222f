//! The design as a recording keeps it.

use std::collections::BTreeMap;

use super::{ChangeKind, Process, Schedule, order, words};
use crate::cpu_set::{CpuSet, Irq};
use crate::design::order::ORDER_VERSION;
use crate::design::{self, Experiment, RecordedValues};
use crate::recording::{self, IrqList, MaskGroup, PublishedValues};
use crate::source::{Sources, Span};

/// The serialised design of a bound experiment. `sources` gives the `file:line` of expectations.
pub fn design_record(experiment: &Experiment, schedule: &Schedule, sources: &Sources) -> recording::Design {
    let treatments = experiment.treatments.iter().zip(&schedule.treatments);
    let treatments = treatments.map(|(design, bound)| treatment_record(design, bound)).collect();
    design(experiment, treatments, sources)
}

/// The serialised design of an experiment whose machines are not booted yet: nothing is resolved, settings stand in the
/// words of the file. Each boot records its treatments as bound to it.
pub fn unbound_record(experiment: &Experiment, sources: &Sources) -> recording::Design {
    let unbound = |process: &design::Process| recording::ProcessPlan {
        name: process.name.clone(),
        command: words::command(&process.command),
        cpus: None,
        instances: process.instances,
    };
    let treatment = |treatment: &design::Treatment| recording::Treatment {
        name: treatment.name.clone(),
        levels: treatment.levels.clone(),
        control: treatment.control,
        settings: treatment.settings.iter().map(words::unbound).collect(),
        routes: Vec::new(),
        workloads: treatment.workloads.iter().map(unbound).collect(),
        backgrounds: treatment.backgrounds.iter().map(unbound).collect(),
    };
    design(experiment, experiment.treatments.iter().map(treatment).collect(), sources)
}

/// The serialised design of published numbers, which are bound to no host, and its rows.
pub fn published_record(
    experiment: &Experiment,
    sources: &Sources,
) -> (recording::Design, Vec<recording::PublishedRow>) {
    let named = |treatment: &design::Treatment| recording::Treatment {
        name: treatment.name.clone(),
        levels: treatment.levels.clone(),
        control: treatment.control,
        settings: Vec::new(),
        routes: Vec::new(),
        workloads: Vec::new(),
        backgrounds: Vec::new(),
    };
    let mut design = design(experiment, experiment.treatments.iter().map(named).collect(), sources);
    "recorded".clone_into(&mut design.protocol.order);
    let row = |series: &design::RecordedSeries| recording::PublishedRow {
        metric: series.metric.clone(),
        treatment: series.treatment,
        values: match &series.values {
            RecordedValues::Samples(values) => PublishedValues::Samples(values.clone()),
            RecordedValues::Summary { low, high, average, n } => {
                PublishedValues::Summary { low: *low, high: *high, average: *average, n: *n }
            }
        },
        place: place(series.span, sources),
    };
    (design, experiment.recorded.iter().map(row).collect())
}

fn place(span: Span, sources: &Sources) -> String {
    format!("{}:{}", sources.get(span.file).path.display(), sources.line(span))
}

fn design(experiment: &Experiment, treatments: Vec<recording::Treatment>, sources: &Sources) -> recording::Design {
    recording::Design {
        name: experiment.name.clone(),
        title: experiment.title.clone(),
        question: experiment.question.clone(),
        source: experiment.source.clone(),
        params: experiment
            .params
            .iter()
            .map(|param| (param.name.clone(), param.value.clone(), param.replaced))
            .collect(),
        factors: experiment
            .factors
            .iter()
            .map(|factor| recording::Factor {
                name: factor.name.clone(),
                levels: factor.levels.clone(),
                hard_to_change: factor.hard_to_change,
            })
            .collect(),
        treatments,
        metrics: experiment.metrics.iter().map(metric).collect(),
        comparisons: experiment.comparisons.iter().map(comparison).collect(),
        expectations: experiment.expectations.iter().map(|expect| expectation(expect, sources)).collect(),
        protocol: protocol(experiment),
        layout: experiment.report.layout.clone().unwrap_or_else(|| "default".to_owned()),
        template: experiment.report.template.clone(),
        template_text: None,
    }
}

/// A treatment as bound to a host.
pub fn treatment_record(design: &design::Treatment, bound: &super::Treatment) -> recording::Treatment {
    let mut routes: BTreeMap<CpuSet, Vec<Irq>> = BTreeMap::new();
    for change in &bound.changes {
        if let ChangeKind::Affinity { identity, mask, .. } = &change.kind {
            let moving = bound.moving.iter().flat_map(|moving| &moving.irqs).find(|moving| moving.irq == identity.irq);
            let mask = moving.map_or(mask, |moving| &moving.over);
            routes.entry(mask.clone()).or_default().push(identity.irq);
        }
    }
    recording::Treatment {
        name: design.name.clone(),
        levels: design.levels.clone(),
        control: design.control,
        settings: bound.settings.clone(),
        routes: routes.into_iter().map(|(mask, irqs)| MaskGroup { mask, irqs: IrqList(irqs) }).collect(),
        workloads: bound.workloads.iter().map(process).collect(),
        backgrounds: bound.backgrounds.iter().map(process).collect(),
    }
}

fn process(process: &Process) -> recording::ProcessPlan {
    recording::ProcessPlan {
        name: process.name.clone(),
        command: words::command(&process.command),
        cpus: process.cpus.clone(),
        instances: process.instances,
    }
}

fn metric(metric: &design::Metric) -> recording::Metric {
    recording::Metric {
        id: metric.id.clone(),
        label: metric.label.clone(),
        unit: metric.unit.clone(),
        direction: match metric.direction {
            design::Direction::HigherIsBetter => recording::Direction::HigherIsBetter,
            design::Direction::LowerIsBetter => recording::Direction::LowerIsBetter,
            design::Direction::Neutral => recording::Direction::Neutral,
        },
        expr: metric_expr(&metric.expr),
    }
}

fn metric_expr(expr: &design::MetricExpr) -> recording::MetricExpr {
    let boxed = |expr: &design::MetricExpr| Box::new(metric_expr(expr));
    match expr {
        design::MetricExpr::Add(left, right) => recording::MetricExpr::Add(boxed(left), boxed(right)),
        design::MetricExpr::Divide(left, right) => recording::MetricExpr::Divide(boxed(left), boxed(right)),
        design::MetricExpr::Every(pattern) => recording::MetricExpr::Every(pattern.clone()),
        design::MetricExpr::Metric(path) => recording::MetricExpr::Metric(path.clone()),
        design::MetricExpr::Multiply(left, right) => recording::MetricExpr::Multiply(boxed(left), boxed(right)),
        design::MetricExpr::Number(number) => recording::MetricExpr::Number(*number),
        design::MetricExpr::Subtract(left, right) => recording::MetricExpr::Subtract(boxed(left), boxed(right)),
    }
}

fn comparison(comparison: &design::Comparison) -> recording::Comparison {
    recording::Comparison {
        factor: comparison.factor,
        base: comparison.base,
        metrics: comparison.metrics.clone(),
        margin: comparison.margin,
        within: comparison.within.clone(),
    }
}

fn expectation(expect: &design::Expectation, sources: &Sources) -> recording::Expectation {
    let side = |side: design::ExpectationSide| (side.coefficient, side.level);
    recording::Expectation {
        metric: expect.metric.clone(),
        factor: expect.factor,
        left: side(expect.left),
        operator: relation(expect.operator),
        right: side(expect.right),
        within: expect.within.clone(),
        text: expect.text.clone(),
        place: place(expect.span, sources),
    }
}

fn relation(relation: design::Relation) -> recording::Relation {
    match relation {
        design::Relation::Equal => recording::Relation::Equal,
        design::Relation::Greater => recording::Relation::Greater,
        design::Relation::GreaterOrEqual => recording::Relation::GreaterOrEqual,
        design::Relation::Less => recording::Relation::Less,
        design::Relation::LessOrEqual => recording::Relation::LessOrEqual,
        design::Relation::NotEqual => recording::Relation::NotEqual,
    }
}

fn protocol(experiment: &Experiment) -> recording::Protocol {
    let protocol = &experiment.protocol;
    recording::Protocol {
        blocks: order::blocks(experiment),
        warmup: protocol.warmup,
        order: match protocol.order {
            design::Order::Blocks => "blocks",
            design::Order::Sequential => "sequential",
            design::Order::Shuffled => "shuffled",
        }
        .to_owned(),
        seed: protocol.seed,
        order_version: ORDER_VERSION,
        settle_ms: protocol.settle_ms,
        timeout_ms: protocol.timeout_ms,
        retries: protocol.retries,
        until: match &protocol.repeat {
            design::Repeat::Fixed(_) => None,
            design::Repeat::Until { metric, within, pilot, max } => Some(recording::Until {
                metric: metric.clone(),
                within: *within,
                pilot: *pilot,
                max: *max,
                decided: None,
            }),
        },
    }
}
