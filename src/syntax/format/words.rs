//! The canonical words of everything that stands on one line.

use super::LIST_BREAK;
use crate::source::Span;
use crate::syntax::ast::{
    Argument, ArithmeticOperator, ClauseKind, Compare, CpuExpr, CpuExprKind, Expect, ExpectSide, IrqExpr, IrqExprKind,
    KeyValue, LetValue, LevelRef, Measure, MetricExpr, MetricExprKind, MetricName, Name, Number, Parse, ProcessOption,
    ProcessOptionKind, Recorded, Repeat, Require, Series, SetOperator, Setting, SettingKind, Target, TargetKind, Text,
    TextPart, Value,
};

/// A statement without a body.
pub(super) fn statement(kind: &ClauseKind) -> String {
    match kind {
        ClauseKind::Compare(clause) => compare(clause),
        ClauseKind::Control { level, repeated } => {
            format!("control {} repeated {}", level_ref(level), number(repeated))
        }
        ClauseKind::Expect(clause) => expect(clause),
        ClauseKind::HardToChange(factors) => format!("hard_to_change {}", names(factors)),
        ClauseKind::Let { name, value } => match value {
            LetValue::Cpus(set) => format!("let {} = {}", name.value, cpus(set)),
            LetValue::Irqs(set) => format!("let {} = {}", name.value, irqs(set)),
        },
        ClauseKind::Measure(all) => format!("measure {}", list(all.iter().map(measure))),
        ClauseKind::Order { kind, seed } => {
            let seed = optional(" seed ", seed.as_ref().map(number));
            format!("order {}{seed}", kind.value)
        }
        ClauseKind::Param { name, value: default } => format!("param {} = {}", name.value, value(default)),
        ClauseKind::Question(words) => format!("question {}", text(words)),
        ClauseKind::Repeat(Repeat::Fixed(times)) => format!("repeat {}", number(times)),
        ClauseKind::Repeat(Repeat::Until { metric, within, pilot, max }) => {
            let pilot = optional(" pilot ", pilot.as_ref().map(number));
            let max = optional(" max ", max.as_ref().map(number));
            format!("repeat until {} within {}{pilot}{max}", metric.path, number(within))
        }
        ClauseKind::Require(requirement) => format!("require {}", require(requirement)),
        ClauseKind::Settle(time) => format!("settle {}", number(time)),
        ClauseKind::Skip(conditions) => {
            let conditions: Vec<String> = conditions
                .iter()
                .map(|condition| {
                    format!("{} {} {}", condition.factor.value, condition.operator.value, level(&condition.level))
                })
                .collect();
            format!("skip when {}", conditions.join(" and "))
        }
        ClauseKind::Source(words) => format!("source {}", text(words)),
        ClauseKind::Timeout(time) => format!("timeout {}", number(time)),
        ClauseKind::Title(words) => format!("title {}", text(words)),
        ClauseKind::Warmup(times) => format!("warmup {}", number(times)),
        ClauseKind::Recorded(Recorded::From(path)) => format!("recorded from {}", text(path)),
        ClauseKind::Background(_)
        | ClauseKind::Hold(_)
        | ClauseKind::Lab(_)
        | ClauseKind::Recorded(Recorded::Rows(_))
        | ClauseKind::Report(_)
        | ClauseKind::Vary(_)
        | ClauseKind::Workload(_) => unreachable!("a statement with a body is written by its parts"),
    }
}

/// Pieces with a comma behind each but the last; the line may break behind a comma.
pub(super) fn list(pieces: impl Iterator<Item = String>) -> String {
    let pieces: Vec<String> = pieces.collect();
    pieces.join(&format!(",{LIST_BREAK}"))
}

fn names(names: &[Name]) -> String {
    list(names.iter().map(|name| name.value.clone()))
}

fn optional(before: &str, words: Option<String>) -> String {
    words.map(|words| format!("{before}{words}")).unwrap_or_default()
}

fn compare(clause: &Compare) -> String {
    let by = (!clause.by.is_empty()).then(|| metrics(&clause.by));
    let within = (!clause.within.is_empty()).then(|| names(&clause.within));
    let margin = optional(" margin ", clause.margin.as_ref().map(number));
    let head = format!("compare {} against {}", clause.factor.value, level(&clause.against));
    format!("{head}{}{margin}{}", optional(" by ", by), optional(" within ", within))
}

fn metrics(metrics: &[MetricName]) -> String {
    list(metrics.iter().map(|metric| metric.path.clone()))
}

fn expect(clause: &Expect) -> String {
    let (left, right) = (expect_side(&clause.left), expect_side(&clause.right));
    let within = (!clause.within.is_empty()).then(|| names(&clause.within));
    let within = optional(" within ", within);
    format!("expect {}: {left} {} {right}{within}", clause.metric.path, clause.operator.value)
}

fn expect_side(side: &ExpectSide) -> String {
    let factor = side.factor.as_ref().map(|factor| format!("{} * ", number(factor))).unwrap_or_default();
    format!("{factor}{}", level_ref(&side.level))
}

fn require(requirement: &Require) -> String {
    match requirement {
        Require::Fact { fact, operator, value } => format!("{} {} {}", fact.value, operator.value, number(value)),
        Require::Irq(set) => irqs(set),
        Require::Root(_) => "root".to_owned(),
        Require::Tool(name) => format!("tool {}", text(name)),
    }
}

fn measure(measured: &Measure) -> String {
    let label = optional(" as ", measured.label.as_ref().map(text));
    let direction = optional(" ", measured.direction.as_ref().map(|direction| direction.value.clone()));
    format!("{}{label}{direction}", metric_expr(&measured.expr))
}

fn level_ref(reference: &LevelRef) -> String {
    match &reference.factor {
        Some(factor) => format!("{}.{}", factor.value, level(&reference.level)),
        None if has_factor(&reference.level.value) => quoted(&reference.level.value),
        None => level(&reference.level),
    }
}

/// Whether a level's bare word would be read as `FACTOR.LEVEL`.
fn has_factor(word: &str) -> bool {
    word.contains('.') && word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn level(name: &Name) -> String {
    if is_level_word(&name.value) { name.value.clone() } else { quoted(&name.value) }
}

fn is_level_word(word: &str) -> bool {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let begins = word.strip_prefix('-').unwrap_or(word).starts_with(is_name_char);
    let all = word.chars().all(|c| is_name_char(c) || matches!(c, '.' | '/' | ':' | '%' | '-'));
    begins && all
}

fn quoted(literal: &str) -> String {
    text(&Text { parts: vec![TextPart::Literal(literal.to_owned())], span: Span::default() })
}

/// A text with its quotes and escapes.
pub(super) fn text(text: &Text) -> String {
    let mut words = String::from("\"");
    for part in &text.parts {
        match part {
            TextPart::Reference(name) => {
                words.push_str("${");
                words.push_str(&name.value);
                words.push('}');
            }
            TextPart::Literal(literal) => {
                let escaped = literal.replace('\\', "\\\\").replace('"', "\\\"");
                let escaped = escaped.replace('\n', "\\n").replace('\t', "\\t");
                words.push_str(&escaped.replace("${", "$${"));
            }
        }
    }
    words.push('"');
    words
}

fn number(number: &Number) -> String {
    match number {
        Number::Literal { digits, unit } => {
            let unit = unit.as_ref().map_or("", |unit| unit.value.as_str());
            format!("{}{unit}", digits.value)
        }
        Number::Reference(name) => format!("${{{}}}", name.value),
    }
}

/// A number, text or word.
pub(super) fn value(value: &Value) -> String {
    match value {
        Value::Number(literal) => number(literal),
        Value::Text(words) => text(words),
        Value::Word(word) => word.value.clone(),
    }
}

fn key_value(pair: &KeyValue) -> String {
    format!("{}={}", pair.key.value, value(&pair.value))
}

/// Arguments, each with a blank before it.
pub(super) fn arguments(arguments: &[Argument]) -> String {
    let words = arguments.iter().map(|argument| match argument {
        Argument::KeyValue(pair) => format!(" {}", key_value(pair)),
        Argument::Value(single) => format!(" {}", value(single)),
    });
    words.collect()
}

fn key_values(pairs: &[KeyValue]) -> String {
    let mut words = String::new();
    for pair in pairs {
        words.push(' ');
        words.push_str(&key_value(pair));
    }
    words
}

/// How tightly an operator binds; 3 for what is no operation.
type Binding = u8;

fn operator_sign(operator: SetOperator) -> (&'static str, Binding) {
    match operator {
        SetOperator::Difference => ("-", 1),
        SetOperator::Intersection => ("&", 2),
        SetOperator::Union => ("+", 1),
    }
}

/// Operators go left to right, so an equal one needs parentheses only on the right.
fn operation(sign: (&str, Binding), left: (String, Binding), right: (String, Binding)) -> String {
    let left = if left.1 < sign.1 { format!("({})", left.0) } else { left.0 };
    let right = if right.1 <= sign.1 { format!("({})", right.0) } else { right.0 };
    format!("{left} {} {right}", sign.0)
}

/// A CPU set.
fn cpus(set: &CpuExpr) -> String {
    match &set.kind {
        CpuExprKind::Core(index) => format!("core {}", number(index)),
        CpuExprKind::Cpu(index) => format!("cpu {}", number(index)),
        CpuExprKind::Cpus(list) => format!("cpus {}", list.value),
        CpuExprKind::FirstThreads => "first threads".to_owned(),
        CpuExprKind::Isolated => "isolated".to_owned(),
        CpuExprKind::Local => "local".to_owned(),
        CpuExprKind::LocalTo(device) => format!("local to {}", device.value),
        CpuExprKind::Name(name) => name.clone(),
        CpuExprKind::Node(index) => format!("node {}", number(index)),
        CpuExprKind::Online => "online".to_owned(),
        CpuExprKind::Siblings(of) => match of.kind {
            CpuExprKind::Binary { .. } | CpuExprKind::Siblings(_) => format!("siblings of ({})", cpus(of)),
            _ => format!("siblings of {}", cpus(of)),
        },
        CpuExprKind::Binary { operator, left, right } => {
            let binding = |side: &CpuExpr| match &side.kind {
                CpuExprKind::Binary { operator, .. } => operator_sign(operator.value).1,
                _ => 3,
            };
            let sides = ((cpus(left), binding(left)), (cpus(right), binding(right)));
            operation(operator_sign(operator.value), sides.0, sides.1)
        }
    }
}

/// An interrupt set.
fn irqs(set: &IrqExpr) -> String {
    match &set.kind {
        IrqExprKind::All => "irq *".to_owned(),
        IrqExprKind::Class(name) => format!("irq class {}", name.value),
        IrqExprKind::Device(device) => format!("irq of {}", value(device)),
        IrqExprKind::Driver(driver) => format!("irq of driver {}", value(driver)),
        IrqExprKind::Glob(glob) => format!("irq {}", text(glob)),
        IrqExprKind::Name(name) => name.clone(),
        IrqExprKind::Number(irq) => format!("irq {}", number(irq)),
        IrqExprKind::Pci(address) => format!("irq of pci {}", address.value),
        IrqExprKind::Binary { operator, left, right } => {
            let binding = |side: &IrqExpr| match &side.kind {
                IrqExprKind::Binary { operator, .. } => operator_sign(operator.value).1,
                _ => 3,
            };
            let sides = ((irqs(left), binding(left)), (irqs(right), binding(right)));
            operation(operator_sign(operator.value), sides.0, sides.1)
        }
    }
}

fn metric_expr(expr: &MetricExpr) -> String {
    let sign = |operator: ArithmeticOperator| match operator {
        ArithmeticOperator::Add => ("+", 1),
        ArithmeticOperator::Divide => ("/", 2),
        ArithmeticOperator::Multiply => ("*", 2),
        ArithmeticOperator::Subtract => ("-", 1),
    };
    match &expr.kind {
        MetricExprKind::Metric(metric) => metric.path.clone(),
        MetricExprKind::Number(literal) => number(literal),
        MetricExprKind::Binary { operator, left, right } => {
            let binding = |side: &MetricExpr| match &side.kind {
                MetricExprKind::Binary { operator, .. } => sign(operator.value).1,
                _ => 3,
            };
            let sides = ((metric_expr(left), binding(left)), (metric_expr(right), binding(right)));
            operation(sign(operator.value), sides.0, sides.1)
        }
    }
}

fn target(target: &Target) -> String {
    match &target.kind {
        TargetKind::Balanced { over, every } => format!("balanced over {} every {}", cpus(over), number(every)),
        TargetKind::Each { unit, of } => format!("each {} of {}", unit.value, cpus(of)),
        TargetKind::Hint => "hint".to_owned(),
        TargetKind::Random { over, seed } => {
            format!("random over {}{}", cpus(over), optional(" seed ", seed.as_ref().map(number)))
        }
        TargetKind::Rotating { over, every } => format!("rotating over {} every {}", cpus(over), number(every)),
        TargetKind::Set(set) => cpus(set),
        TargetKind::Unchanged => "unchanged".to_owned(),
    }
}

/// A setting.
pub(super) fn setting(setting: &Setting) -> String {
    match &setting.kind {
        SettingKind::DefaultRoute(to) => format!("default irq -> {}", target(to)),
        SettingKind::IrqThreads { irqs: set, options, on } => {
            let on = optional(" on ", on.as_ref().map(cpus));
            format!("irq_threads {}{}{on}", irqs(set), key_values(options))
        }
        SettingKind::Named { name, arguments: words, target: to, on } => {
            let to = optional(" -> ", to.as_ref().map(target));
            let on = optional(" on ", on.as_ref().map(cpus));
            format!("{}{}{to}{on}", name.value, arguments(words))
        }
        SettingKind::Route { irqs: set, target: to } => format!("{} -> {}", irqs(set), target(to)),
        SettingKind::Run { command, undo } => format!("run {} undo {}", text(command), text(undo)),
    }
}

/// An option of a workload or background.
pub(super) fn process_option(option: &ProcessOption) -> String {
    match &option.kind {
        ProcessOptionKind::As(user) => format!("as {}", value(user)),
        ProcessOptionKind::At(host) => format!("at {}", text(host)),
        ProcessOptionKind::Builtin { name, arguments } => format!("builtin {}{}", name.value, key_values(arguments)),
        ProcessOptionKind::Env(pair) => format!("env {}", key_value(pair)),
        ProcessOptionKind::Fifo(priority) => format!("fifo {}", number(priority)),
        ProcessOptionKind::In(directory) => format!("in {}", text(directory)),
        ProcessOptionKind::Instances(count) => format!("instances {}", number(count)),
        ProcessOptionKind::Loop => "loop".to_owned(),
        ProcessOptionKind::Nice { negative, value } => {
            format!("nice {}{}", if *negative { "-" } else { "" }, number(value))
        }
        ProcessOptionKind::On(set) => format!("on {}", cpus(set)),
        ProcessOptionKind::Parse(parse) => parser(parse),
        ProcessOptionKind::Ready(pattern) => format!("ready when output matches {}", text(pattern)),
        ProcessOptionKind::Run(command) => format!("run {}", text(command)),
        ProcessOptionKind::Shell(command) => format!("shell {}", text(command)),
        ProcessOptionKind::Timeout(limit) => format!("timeout {}", number(limit)),
        ProcessOptionKind::To(host) => format!("to {}", value(host)),
    }
}

fn parser(parse: &Parse) -> String {
    let pattern = optional(" ", parse.pattern.as_ref().map(text));
    let metric = optional(" as ", parse.metric.as_ref().map(|metric| metric.value.clone()));
    let unit = optional(" ", parse.unit.as_ref().map(value));
    let direction = optional(" ", parse.direction.as_ref().map(|direction| direction.value.clone()));
    format!("parse {}{pattern}{metric}{unit}{direction}", parse.parser.value)
}

/// The lines of one recorded metric, its cells in columns, each with its place.
pub(super) fn series(series: &Series) -> Vec<(String, Span)> {
    let unit = optional(" ", series.unit.as_ref().map(value));
    let direction = optional(" ", series.direction.as_ref().map(|direction| direction.value.clone()));
    let mut lines = vec![(format!("{}{unit}{direction}", series.metric.path), series.metric.span)];
    if let Some(column) = series.columns.first() {
        let columns: Vec<&str> = series.columns.iter().map(|column| column.value.as_str()).collect();
        lines.push((format!("columns {}", columns.join(" ")), column.span));
    }
    let rows: Vec<Vec<String>> = series.rows.iter().map(|row| row.cells.iter().map(value).collect()).collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    for (row, cells) in series.rows.iter().zip(&rows) {
        let padded: Vec<String> = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        let line = padded.join(" ");
        lines.push((line.trim_end().to_owned(), row.span));
    }
    lines
}
