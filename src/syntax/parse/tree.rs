//! Pairs of the grammar become the syntax tree, one function for each rule. Likely slips that the grammar lets
//! through are explained here. Reads no names, units or defaults.

mod expressions;

use std::iter::{Filter, Peekable};

use pest::iterators::{Pair, Pairs};

use super::Rule;
use super::wording::{Wording, wording};
use crate::diagnostic::{Diagnostic, Kind};
use crate::source::{FileId, Span, Spanned};
use crate::syntax::ast::{
    Clause, ClauseKind, Compare, Condition, Expect, ExpectSide, Experiment, Item, Lab, LabOption, LabUse, LetValue,
    Level, Levels, Name, Parse, Policy, Process, ProcessOption, ProcessOptionKind, Recorded, Repeat, ReportOption,
    Require, Row, Series, Setting, SettingKind, Target, TargetKind, Value, Vary,
};

/// Turns pairs into tree nodes and collects what has to be explained.
pub(super) struct Tree {
    file: FileId,
    offset: usize,
    /// Slips found so far.
    pub(super) slips: Vec<Diagnostic>,
}

/// The meaningful children of a pair: keywords and brackets left out.
struct Children<'i>(Peekable<Filter<Pairs<'i, Rule>, Meaningful<'i>>>);

type Meaningful<'i> = fn(&Pair<'i, Rule>) -> bool;

impl<'i> Children<'i> {
    fn of(pair: Pair<'i, Rule>) -> Self {
        let meaningful: Meaningful<'i> = |child| {
            !matches!(wording(child.as_rule()), Wording::Keyword(_))
                && !matches!(
                    child.as_rule(),
                    Rule::open
                        | Rule::close
                        | Rule::comma
                        | Rule::lparen
                        | Rule::rparen
                        | Rule::colon
                        | Rule::end
                        | Rule::gap
                        | Rule::EOI
                )
        };
        Children(pair.into_inner().filter(meaningful).peekable())
    }

    /// The next child, which the grammar promises.
    fn must(&mut self) -> Pair<'i, Rule> {
        self.0.next().expect("the grammar gives this rule another child")
    }

    fn next_of(&mut self, rule: Rule) -> Option<Pair<'i, Rule>> {
        self.0.next_if(|child| child.as_rule() == rule)
    }
}

impl<'i> Iterator for Children<'i> {
    type Item = Pair<'i, Rule>;

    fn next(&mut self) -> Option<Pair<'i, Rule>> {
        self.0.next()
    }
}

fn only(pair: Pair<'_, Rule>) -> Pair<'_, Rule> {
    Children::of(pair).must()
}

impl Tree {
    /// A builder for pairs of a text that starts at byte `offset` of the file.
    pub(super) fn new(file: FileId, offset: usize) -> Self {
        Tree { file, offset, slips: Vec::new() }
    }

    /// `file`, or one of the `only_…` rules, whose tree is thrown away.
    pub(super) fn items(&mut self, pair: Pair<'_, Rule>) -> Vec<Item> {
        let mut items = Vec::new();
        for child in Children::of(pair) {
            match child.as_rule() {
                Rule::item => items.push(self.item(child)),
                Rule::clause => drop(self.clause(child)),
                Rule::setting => drop(self.setting(child)),
                Rule::level_body => drop(self.level_body(child)),
                Rule::process_option => drop(self.process_option(child)),
                Rule::lab_option => drop(self.lab_option(child)),
                Rule::report_option => drop(self.report_option(child)),
                Rule::recorded_line => drop(self.recorded(std::iter::once(child))),
                other => unreachable!("{other:?} is not part of a file"),
            }
        }
        items
    }

    fn span(&self, pair: &Pair<'_, Rule>) -> Span {
        let span = pair.as_span();
        Span { file: self.file, start: self.offset + span.start(), end: self.offset + span.end() }
    }

    fn spanned(&self, pair: &Pair<'_, Rule>) -> Spanned<String> {
        Spanned::new(pair.as_str().to_owned(), self.span(pair))
    }

    fn slip(&mut self, pair: &Pair<'_, Rule>, kind: Kind) {
        let diagnostic = self.span(pair).error(kind);
        self.slips.push(diagnostic);
    }

    /// The arrow or its slip, then the target.
    fn route_to(&mut self, children: &mut Children<'_>) -> Target {
        let arrow = children.must();
        if arrow.as_rule() == Rule::arrow_slip {
            self.slip(&arrow, Kind::WrongArrow { found: arrow.as_str().to_owned() });
        }
        self.target(children.must())
    }

    fn target(&mut self, pair: Pair<'_, Rule>) -> Target {
        let span = self.span(&pair);
        let inner = only(pair);
        let kind = match inner.as_rule() {
            Rule::hint => TargetKind::Hint,
            Rule::unchanged => TargetKind::Unchanged,
            Rule::cpu_set => TargetKind::Set(self.cpu_set(inner)),
            rule => {
                let mut children = Children::of(inner);
                if rule == Rule::each {
                    let unit = self.spanned(&children.must());
                    TargetKind::Each { unit, of: self.cpu_set(children.must()) }
                } else {
                    let over = self.cpu_set(children.must());
                    let number = children.next().map(|number| self.number(number));
                    match (rule, number) {
                        (Rule::rotating, Some(every)) => TargetKind::Rotating { over, every },
                        (Rule::balanced, Some(every)) => TargetKind::Balanced { over, every },
                        (_, seed) => TargetKind::Random { over, seed },
                    }
                }
            }
        };
        Target { kind, span }
    }

    fn settings(&mut self, pair: Pair<'_, Rule>) -> Vec<Setting> {
        Children::of(pair).map(|setting| self.setting(setting)).collect()
    }

    fn setting(&mut self, pair: Pair<'_, Rule>) -> Setting {
        let span = self.span(&pair);
        let inner = only(pair);
        let rule = inner.as_rule();
        let mut children = Children::of(inner);
        let kind = match rule {
            Rule::default_route => SettingKind::DefaultRoute(self.route_to(&mut children)),
            Rule::undoable_run => {
                SettingKind::Run { command: self.text(children.must()), undo: self.text(children.must()) }
            }
            Rule::route => {
                let irqs = self.irq_set(children.must());
                SettingKind::Route { irqs, target: self.route_to(&mut children) }
            }
            Rule::irq_threads => {
                let irqs = self.irq_set(children.must());
                let mut options = Vec::new();
                while let Some(option) = children.next_of(Rule::key_value) {
                    options.push(self.key_value(option));
                }
                let on = children.next().map(|on| self.cpu_set(only(on)));
                SettingKind::IrqThreads { irqs, options, on }
            }
            _ => {
                let name = self.spanned(&children.must());
                let mut arguments = Vec::new();
                while let Some(argument) = children.next_of(Rule::argument) {
                    arguments.push(self.argument(argument));
                }
                let routed = children.0.peek().is_some_and(|next| next.as_rule() != Rule::on_cpus);
                let target = routed.then(|| self.route_to(&mut children));
                let on = children.next().map(|on| self.cpu_set(only(on)));
                SettingKind::Named { name, arguments, target, on }
            }
        };
        Setting { kind, span }
    }

    fn process(&mut self, pair: Pair<'_, Rule>) -> Process {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let name = self.spanned(&children.must());
        let options =
            children.next().map(|body| Children::of(body).map(|option| self.process_option(option)).collect());
        Process { name, options, span }
    }

    fn process_option(&mut self, pair: Pair<'_, Rule>) -> ProcessOption {
        let span = self.span(&pair);
        let inner = only(pair);
        let rule = inner.as_rule();
        if rule == Rule::loops {
            return ProcessOption { kind: ProcessOptionKind::Loop, span };
        }
        let mut children = Children::of(inner);
        let first = children.must();
        let kind = match rule {
            Rule::run => ProcessOptionKind::Run(self.text(first)),
            Rule::shell => ProcessOptionKind::Shell(self.text(first)),
            Rule::builtin => ProcessOptionKind::Builtin {
                name: self.spanned(&first),
                arguments: children.map(|argument| self.key_value(argument)).collect(),
            },
            Rule::parse => ProcessOptionKind::Parse(self.parse(&first, children)),
            Rule::in_directory => ProcessOptionKind::In(self.text(first)),
            Rule::env => ProcessOptionKind::Env(self.key_value(first)),
            Rule::on_cpus => ProcessOptionKind::On(self.cpu_set(first)),
            Rule::as_user => ProcessOptionKind::As(self.value(first)),
            Rule::nice => match children.next() {
                Some(number) => ProcessOptionKind::Nice { negative: true, value: self.number(number) },
                None => ProcessOptionKind::Nice { negative: false, value: self.number(first) },
            },
            Rule::fifo => ProcessOptionKind::Fifo(self.number(first)),
            Rule::timeout => ProcessOptionKind::Timeout(self.number(first)),
            Rule::instances => ProcessOptionKind::Instances(self.number(first)),
            Rule::at => ProcessOptionKind::At(self.text(first)),
            Rule::ready => ProcessOptionKind::Ready(self.text(first)),
            Rule::to => ProcessOptionKind::To(self.value(first)),
            other => unreachable!("{other:?} is not a process option"),
        };
        ProcessOption { kind, span }
    }

    fn parse(&mut self, parser: &Pair<'_, Rule>, mut children: Children<'_>) -> Parse {
        Parse {
            parser: self.spanned(parser),
            pattern: children.next_of(Rule::text).map(|text| self.text(text)),
            metric: children.next_of(Rule::parse_metric).map(|metric| self.spanned(&metric)),
            unit: children.next_of(Rule::metric_unit).map(|unit| self.unit(unit)),
            direction: children.next_of(Rule::direction).map(|direction| self.spanned(&direction)),
        }
    }

    fn unit(&mut self, pair: Pair<'_, Rule>) -> Value {
        let inner = only(pair);
        if inner.as_rule() == Rule::text { Value::Text(self.text(inner)) } else { Value::Word(self.spanned(&inner)) }
    }

    fn level_body(&mut self, pair: Pair<'_, Rule>) -> Level {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let name = self.spanned(&children.must());
        Level { name, settings: self.settings(children.must()), span }
    }

    fn clause(&mut self, pair: Pair<'_, Rule>) -> Clause {
        let inner = only(pair);
        let span = self.span(&inner);
        Clause { kind: self.clause_kind(inner), span }
    }

    fn clause_kind(&mut self, pair: Pair<'_, Rule>) -> ClauseKind {
        let rule = pair.as_rule();
        if matches!(rule, Rule::workload_here | Rule::workload_named) {
            return ClauseKind::Workload(self.process(pair));
        }
        if rule == Rule::background {
            return ClauseKind::Background(self.process(pair));
        }
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        match rule {
            Rule::title => ClauseKind::Title(self.text(children.must())),
            Rule::question => ClauseKind::Question(self.text(children.must())),
            Rule::source => ClauseKind::Source(self.text(children.must())),
            Rule::param => {
                let name = self.spanned(&children.must());
                self.assign(&children.must());
                ClauseKind::Param { name, value: self.value(children.must()) }
            }
            Rule::let_set => {
                let name = self.spanned(&children.must());
                self.assign(&children.must());
                let set = children.must();
                let value = if set.as_rule() == Rule::cpu_set {
                    LetValue::Cpus(self.cpu_set(set))
                } else {
                    LetValue::Irqs(self.irq_set(set))
                };
                ClauseKind::Let { name, value }
            }
            Rule::hold => ClauseKind::Hold(self.settings(children.must())),
            Rule::vary_levels => {
                let name = self.spanned(&children.must());
                let levels = children.map(|level| self.level_body(level)).collect();
                ClauseKind::Vary(Vary { name, levels: Levels::Settings(levels) })
            }
            Rule::vary_values => {
                let name = self.spanned(&children.must());
                let values = children.map(|value| self.value(value)).collect();
                ClauseKind::Vary(Vary { name, levels: Levels::Values(values) })
            }
            Rule::lab_here | Rule::lab_named => {
                let name = children.next_of(Rule::name).map(|name| self.spanned(&name));
                let options = children.next().map(|body| self.lab_body(body));
                ClauseKind::Lab(LabUse { name, options })
            }
            Rule::measure => ClauseKind::Measure(children.map(|measured| self.measured(measured)).collect()),
            Rule::repeat => ClauseKind::Repeat(Repeat::Fixed(self.number(children.must()))),
            Rule::repeat_until => ClauseKind::Repeat(self.repeat_until(children)),
            Rule::warmup => ClauseKind::Warmup(self.number(children.must())),
            Rule::order => ClauseKind::Order {
                kind: self.spanned(&children.must()),
                seed: children.next().map(|seed| self.number(seed)),
            },
            Rule::settle => ClauseKind::Settle(self.number(children.must())),
            Rule::timeout => ClauseKind::Timeout(self.number(children.must())),
            Rule::control => {
                ClauseKind::Control { level: self.level_ref(children.must()), repeated: self.number(children.must()) }
            }
            Rule::compare => ClauseKind::Compare(self.compare(children)),
            Rule::expect => ClauseKind::Expect(self.expect(children)),
            Rule::require => ClauseKind::Require(self.require(children.must())),
            Rule::skip_when => ClauseKind::Skip(children.map(|condition| self.condition(condition)).collect()),
            Rule::hard_to_change => ClauseKind::HardToChange(children.map(|name| self.spanned(&name)).collect()),
            Rule::report => ClauseKind::Report(children.map(|option| self.report_option(option)).collect()),
            Rule::recorded_from => ClauseKind::Recorded(Recorded::From(self.text(children.must()))),
            Rule::recorded_rows => ClauseKind::Recorded(self.recorded(children)),
            other => unreachable!("{other:?} at byte {} is not a statement", span.start),
        }
    }

    fn repeat_until(&mut self, mut children: Children<'_>) -> Repeat {
        let metric = self.metric_ref(children.must());
        let within = self.number(children.must());
        let (mut pilot, mut max) = (None, None);
        for part in children {
            let (slot, word) = if part.as_rule() == Rule::pilot { (&mut pilot, "pilot") } else { (&mut max, "max") };
            if slot.is_some() {
                let diagnostic = self.span(&part).error(Kind::RepeatedPart { part: word });
                self.slips.push(diagnostic);
            }
            *slot = Some(self.number(only(part)));
        }
        Repeat::Until { metric, within, pilot, max }
    }

    fn compare(&mut self, mut children: Children<'_>) -> Compare {
        let factor = self.spanned(&children.must());
        let against = self.level(children.must());
        let mut compare = Compare { factor, against, by: Vec::new(), margin: None, within: Vec::new() };
        for part in children {
            let repeated = match part.as_rule() {
                Rule::by => (!compare.by.is_empty()).then_some("by"),
                Rule::margin => compare.margin.is_some().then_some("margin"),
                _ => (!compare.within.is_empty()).then_some("within"),
            };
            if let Some(part_name) = repeated {
                self.slip(&part, Kind::RepeatedPart { part: part_name });
            }
            match part.as_rule() {
                Rule::by => compare.by.extend(Children::of(part).map(|metric| self.metric_ref(metric))),
                Rule::margin => compare.margin = Some(self.number(only(part))),
                _ => compare.within.extend(self.within(part)),
            }
        }
        compare
    }

    fn within(&self, pair: Pair<'_, Rule>) -> Vec<Name> {
        Children::of(pair).map(|name| self.spanned(&name)).collect()
    }

    fn expect(&mut self, mut children: Children<'_>) -> Expect {
        let metric = self.metric_ref(children.must());
        let left = self.expect_side(children.must());
        let operator = self.relation(&children.must(), "`<=`, `<`, `>=` or `>`");
        let right = self.expect_side(children.must());
        let within = children.next().map(|within| self.within(within)).unwrap_or_default();
        Expect { metric, left, operator, right, within }
    }

    fn expect_side(&mut self, pair: Pair<'_, Rule>) -> ExpectSide {
        let mut children = Children::of(pair);
        let factor = children.next_of(Rule::number).map(|number| self.number(number));
        children.next_of(Rule::multiply);
        ExpectSide { factor, level: self.level_ref(children.must()) }
    }

    fn require(&mut self, pair: Pair<'_, Rule>) -> Require {
        match pair.as_rule() {
            Rule::tool => Require::Tool(self.text(only(pair))),
            Rule::root => Require::Root(self.span(&pair)),
            Rule::fact => {
                let mut children = Children::of(pair);
                let fact = self.spanned(&children.must());
                let operator = self.relation(&children.must(), "`>=` or `==`");
                Require::Fact { fact, operator, value: self.number(children.must()) }
            }
            _ => Require::Irq(self.irq_set(pair)),
        }
    }

    fn condition(&mut self, pair: Pair<'_, Rule>) -> Condition {
        let mut children = Children::of(pair);
        let factor = self.spanned(&children.must());
        let operator = self.relation(&children.must(), "`==`");
        Condition { factor, operator, level: self.level(children.must()) }
    }

    fn report_option(&mut self, pair: Pair<'_, Rule>) -> ReportOption {
        let inner = only(pair);
        if inner.as_rule() == Rule::layout {
            ReportOption::Layout(self.spanned(&only(inner)))
        } else {
            ReportOption::Template(self.text(only(inner)))
        }
    }

    /// Lines of `recorded { … }`: each series takes the columns and rows behind it.
    fn recorded<'i>(&mut self, lines: impl Iterator<Item = Pair<'i, Rule>>) -> Recorded {
        let mut all: Vec<Series> = Vec::new();
        for line in lines {
            let span = self.span(&line);
            let inner = only(line);
            let rule = inner.as_rule();
            let mut children = Children::of(inner);
            if rule == Rule::series {
                all.push(Series {
                    metric: self.metric_name(&children.must()),
                    unit: children.next_of(Rule::series_unit).map(|unit| self.unit(unit)),
                    direction: children.next().map(|direction| self.spanned(&direction)),
                    columns: Vec::new(),
                    rows: Vec::new(),
                });
                continue;
            }
            let Some(series) = all.last_mut() else {
                self.slips.push(span.error(Kind::RecordedRowWithoutMetric));
                continue;
            };
            if rule == Rule::columns {
                if !series.columns.is_empty() || !series.rows.is_empty() {
                    self.slips.push(span.error(Kind::MisplacedColumns));
                }
                series.columns = children.map(|column| self.spanned(&column)).collect();
            } else {
                let cells = children.map(|cell| self.value(cell)).collect();
                series.rows.push(Row { cells, span });
            }
        }
        Recorded::Rows(all)
    }

    fn item(&mut self, pair: Pair<'_, Rule>) -> Item {
        let inner = only(pair);
        let span = self.span(&inner);
        if inner.as_rule() == Rule::workload {
            return Item::Workload(self.process(inner));
        }
        if inner.as_rule() == Rule::use_file {
            return Item::Use(self.text(only(inner)));
        }
        let rule = inner.as_rule();
        let mut children = Children::of(inner);
        let name = self.spanned(&children.must());
        let body = children.must();
        match rule {
            Rule::experiment => {
                let clauses = Children::of(body).map(|clause| self.clause(clause)).collect();
                Item::Experiment(Experiment { name, clauses, span })
            }
            Rule::lab => Item::Lab(Lab { name, options: self.lab_body(body), span }),
            _ => Item::Policy(Policy { name, settings: self.settings(body), span }),
        }
    }

    fn lab_body(&mut self, pair: Pair<'_, Rule>) -> Vec<LabOption> {
        Children::of(pair).map(|option| self.lab_option(option)).collect()
    }

    fn lab_option(&mut self, pair: Pair<'_, Rule>) -> LabOption {
        let span = self.span(&pair);
        let mut children = Children::of(pair);
        let name = self.spanned(&children.must());
        let arguments = children.map(|argument| self.argument(argument)).collect();
        LabOption { name, arguments, span }
    }
}
