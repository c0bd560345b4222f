//! The clauses of one experiment, sorted by kind; a clause that may be there once is pointed at when it is there twice.

use crate::diagnostic::{Meaning, Thing};
use crate::source::Span;
use crate::syntax::ast::{
    ClauseKind, Compare, Condition, Expect, Experiment, LabUse, LetValue, LevelRef, Measure, Name, Number, Process,
    Recorded, Repeat, ReportOption, Require, Setting, Text, Value, Vary,
};

use super::scope::Scope;

/// Every clause, by its first word.
pub const CLAUSES: &[&str] = &[
    "background",
    "compare",
    "control",
    "expect",
    "hard_to_change",
    "hold",
    "lab",
    "let",
    "measure",
    "order",
    "param",
    "question",
    "recorded",
    "repeat",
    "report",
    "require",
    "settle",
    "skip when",
    "source",
    "timeout",
    "title",
    "vary",
    "warmup",
    "workload",
];

/// The clauses of one experiment.
#[derive(Debug, Default)]
pub(super) struct Clauses<'a> {
    pub(super) backgrounds: Vec<&'a Process>,
    pub(super) comparisons: Vec<(&'a Compare, Span)>,
    pub(super) controls: Vec<(&'a LevelRef, &'a Number)>,
    pub(super) expectations: Vec<(&'a Expect, Span)>,
    pub(super) hard_to_change: Vec<&'a Name>,
    pub(super) hold: Vec<&'a Setting>,
    pub(super) lab: Option<(&'a LabUse, Span)>,
    pub(super) lets: Vec<(&'a Name, &'a LetValue)>,
    pub(super) measures: Vec<&'a Measure>,
    pub(super) order: Option<(&'a Name, Option<&'a Number>)>,
    pub(super) params: Vec<(&'a Name, &'a Value)>,
    pub(super) question: Option<&'a Text>,
    pub(super) recorded: Option<&'a Recorded>,
    pub(super) repeat: Option<&'a Repeat>,
    pub(super) report: Option<&'a [ReportOption]>,
    pub(super) requirements: Vec<(&'a Require, Span)>,
    pub(super) settle: Option<&'a Number>,
    pub(super) skips: Vec<&'a [Condition]>,
    pub(super) source: Option<&'a Text>,
    pub(super) timeout: Option<&'a Number>,
    pub(super) title: Option<&'a Text>,
    pub(super) vary: Vec<&'a Vary>,
    pub(super) warmup: Option<&'a Number>,
    pub(super) workloads: Vec<&'a Process>,
}

impl<'a> Clauses<'a> {
    /// Sorts the clauses of an experiment.
    pub(super) fn sort(scope: &mut Scope<'_>, experiment: &'a Experiment) -> Self {
        let mut clauses = Clauses::default();
        for clause in &experiment.clauses {
            match &clause.kind {
                ClauseKind::Background(process) => clauses.backgrounds.push(process),
                ClauseKind::Compare(compare) => clauses.comparisons.push((compare, clause.span)),
                ClauseKind::Control { level, repeated } => clauses.controls.push((level, repeated)),
                ClauseKind::Expect(expect) => clauses.expectations.push((expect, clause.span)),
                ClauseKind::HardToChange(names) => clauses.hard_to_change.extend(names),
                ClauseKind::Hold(settings) => clauses.hold.extend(settings),
                ClauseKind::Lab(lab) => clauses.lab = clauses.lab.or(Some((lab, clause.span))),
                ClauseKind::Let { name, value } => clauses.lets.push((name, value)),
                ClauseKind::Measure(measures) => clauses.measures.extend(measures),
                ClauseKind::Order { kind, seed } => clauses.order = clauses.order.or(Some((kind, seed.as_ref()))),
                ClauseKind::Param { name, value } => clauses.params.push((name, value)),
                ClauseKind::Question(text) => clauses.question = clauses.question.or(Some(text)),
                ClauseKind::Recorded(recorded) => clauses.recorded = clauses.recorded.or(Some(recorded)),
                ClauseKind::Repeat(repeat) => clauses.repeat = clauses.repeat.or(Some(repeat)),
                ClauseKind::Report(options) => clauses.report = clauses.report.or(Some(options)),
                ClauseKind::Require(require) => clauses.requirements.push((require, clause.span)),
                ClauseKind::Settle(number) => clauses.settle = clauses.settle.or(Some(number)),
                ClauseKind::Skip(conditions) => clauses.skips.push(conditions),
                ClauseKind::Source(text) => clauses.source = clauses.source.or(Some(text)),
                ClauseKind::Timeout(number) => clauses.timeout = clauses.timeout.or(Some(number)),
                ClauseKind::Title(text) => clauses.title = clauses.title.or(Some(text)),
                ClauseKind::Vary(vary) => clauses.vary.push(vary),
                ClauseKind::Warmup(number) => clauses.warmup = clauses.warmup.or(Some(number)),
                ClauseKind::Workload(process) => clauses.workloads.push(process),
            }
        }
        report_repeated(scope, experiment);
        clauses
    }
}

/// Reports clauses that may be there once and are there twice.
fn report_repeated(scope: &mut Scope<'_>, experiment: &Experiment) {
    for (index, clause) in experiment.clauses.iter().enumerate() {
        let Some(word) = once(&clause.kind) else { continue };
        let first = experiment.clauses[..index].iter().find(|first| once(&first.kind) == Some(word));
        if let Some(first) = first {
            let mut fault = clause.span.error(Meaning::Duplicate { thing: Thing::Clause, name: word.to_owned() });
            fault.related.push((first.span, "first here".to_owned()));
            scope.fault(fault);
        }
    }
}

/// The first word of a clause that may be there once.
fn once(kind: &ClauseKind) -> Option<&'static str> {
    Some(match kind {
        ClauseKind::Lab(_) => "lab",
        ClauseKind::Order { .. } => "order",
        ClauseKind::Question(_) => "question",
        ClauseKind::Recorded(_) => "recorded",
        ClauseKind::Repeat(_) => "repeat",
        ClauseKind::Report(_) => "report",
        ClauseKind::Settle(_) => "settle",
        ClauseKind::Source(_) => "source",
        ClauseKind::Timeout(_) => "timeout",
        ClauseKind::Title(_) => "title",
        ClauseKind::Warmup(_) => "warmup",
        ClauseKind::Background(_)
        | ClauseKind::Compare(_)
        | ClauseKind::Control { .. }
        | ClauseKind::Expect(_)
        | ClauseKind::HardToChange(_)
        | ClauseKind::Hold(_)
        | ClauseKind::Let { .. }
        | ClauseKind::Measure(_)
        | ClauseKind::Param { .. }
        | ClauseKind::Require(_)
        | ClauseKind::Skip(_)
        | ClauseKind::Vary(_)
        | ClauseKind::Workload(_) => return None,
    })
}
