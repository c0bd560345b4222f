//! The shape of an `.exp` file, with the place of every part. No names are resolved, no units are read and no
//! defaults are filled in here; that is `check`'s work.

use crate::source::{Span, Spanned};

/// An identifier as written.
pub type Name = Spanned<String>;

/// One parsed file.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct File {
    /// Top-level items in file order.
    pub items: Vec<Item>,
    /// Comments, for the formatter: text with `#`, in file order.
    pub comments: Vec<Comment>,
}

/// A `#` comment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Comment {
    /// From `#` to the end of the line, without trailing blanks.
    pub text: String,
    /// Its place.
    pub span: Span,
    /// Whether something else stands before it on its line.
    pub trailing: bool,
}

/// What may stand at the top of a file.
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// `experiment NAME { … }`
    Experiment(Experiment),
    /// `lab NAME { … }`
    Lab(Lab),
    /// `policy NAME { … }`
    Policy(Policy),
    /// `use "common.exp"`
    Use(Text),
    /// `workload NAME { … }` shared by several experiments.
    Workload(Process),
}

/// `policy NAME { … }`: a named group of settings.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    /// Its name.
    pub name: Name,
    /// The settings.
    pub settings: Vec<Setting>,
    /// From the keyword to the closing brace.
    pub span: Span,
}

/// `experiment NAME { … }`
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// Its name, and the report folder's.
    pub name: Name,
    /// Statements in file order; their order carries no meaning.
    pub clauses: Vec<Clause>,
    /// From the keyword to the closing brace.
    pub span: Span,
}

/// A statement of an experiment, with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Clause {
    /// What it says.
    pub kind: ClauseKind,
    /// All of it.
    pub span: Span,
}

/// The kinds of statement in an experiment.
#[derive(Debug, Clone, PartialEq)]
pub enum ClauseKind {
    /// `background NAME { … }`
    Background(Process),
    /// `compare FACTOR against LEVEL [by M, …] [margin 2%] [within F, …]`
    Compare(Compare),
    /// `control LEVEL repeated N`
    Control { level: LevelRef, repeated: Number },
    /// `expect METRIC: LEVEL <= 1.03 * LEVEL [within F, …]`
    Expect(Expect),
    /// `hard_to_change FACTOR, …`
    HardToChange(Vec<Name>),
    /// `hold { … }`
    Hold(Vec<Setting>),
    /// `lab NAME`, `lab { … }` or `lab NAME { … }`
    Lab(LabUse),
    /// `let NAME = SET`
    Let { name: Name, value: LetValue },
    /// `measure METRIC [as "label"], …`
    Measure(Vec<Measure>),
    /// `order blocks|shuffled|sequential [seed N]`
    Order { kind: Name, seed: Option<Number> },
    /// `param NAME = VALUE`
    Param { name: Name, value: Value },
    /// `question "…"`
    Question(Text),
    /// `recorded { … }` or `recorded from "file.csv"`
    Recorded(Recorded),
    /// `repeat N` or `repeat until METRIC within 1% [pilot N] [max N]`
    Repeat(Repeat),
    /// `report { layout NAME; template "…" }`
    Report(Vec<ReportOption>),
    /// `require …`
    Require(Require),
    /// `settle 500ms`
    Settle(Number),
    /// `skip when FACTOR == LEVEL and …`
    Skip(Vec<Condition>),
    /// `source "…"`: where recorded data come from.
    Source(Text),
    /// `timeout 5min`
    Timeout(Number),
    /// `title "…"`
    Title(Text),
    /// `vary NAME { … }` or `vary NAME in a, b`
    Vary(Vary),
    /// `warmup N`
    Warmup(Number),
    /// `workload NAME { … }`, or `workload NAME` for one defined at the top of a file.
    Workload(Process),
}

/// A text in double quotes, cut at its `${name}` references.
#[derive(Debug, Clone, PartialEq)]
pub struct Text {
    /// Pieces in order; escapes are already undone.
    pub parts: Vec<TextPart>,
    /// With the quotes.
    pub span: Span,
}

/// A piece of a [`Text`].
#[derive(Debug, Clone, PartialEq)]
pub enum TextPart {
    /// Characters as they are.
    Literal(String),
    /// `${name}`
    Reference(Name),
}

/// A number with an optional unit, or a `${name}` where a number is wanted.
#[derive(Debug, Clone, PartialEq)]
pub enum Number {
    /// `20_000_000`, `500ms`, `2%`, `1Gbit/s`
    Literal {
        /// Digits as written, underscores and all.
        digits: Spanned<String>,
        /// The unit directly after the digits.
        unit: Option<Name>,
    },
    /// `${name}`
    Reference(Name),
}

impl Number {
    /// Digits and unit, or the whole reference.
    pub fn span(&self) -> Span {
        match self {
            Number::Literal { digits, unit } => unit.as_ref().map_or(digits.span, |unit| digits.span.to(unit.span)),
            Number::Reference(name) => name.span,
        }
    }
}

/// A value where its kind is not yet known.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A number or a reference.
    Number(Number),
    /// A text in quotes.
    Text(Text),
    /// A bare word: `signal`, `performance`, `lab.host`, `kernel.nmi_watchdog`
    Word(Name),
}

impl Value {
    /// All of it.
    pub fn span(&self) -> Span {
        match self {
            Value::Number(number) => number.span(),
            Value::Text(text) => text.span,
            Value::Word(name) => name.span,
        }
    }
}

/// `key=value`
#[derive(Debug, Clone, PartialEq)]
pub struct KeyValue {
    /// Left of `=`.
    pub key: Name,
    /// Right of `=`.
    pub value: Value,
}

/// What a `let` names.
#[derive(Debug, Clone, PartialEq)]
pub enum LetValue {
    /// A set of CPUs. A bare name lands here too; `check` finds what it names.
    Cpus(CpuExpr),
    /// A set of interrupts.
    Irqs(IrqExpr),
}

/// A CPU set expression and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct CpuExpr {
    /// What it says.
    pub kind: CpuExprKind,
    /// All of it.
    pub span: Span,
}

/// CPU set expressions. `&` binds tighter than `+` and `-`, which go left to right.
#[derive(Debug, Clone, PartialEq)]
pub enum CpuExprKind {
    /// `core N`: the CPUs of core number N, counted over the host in order of their first CPU.
    Core(Number),
    /// `cpu N`
    Cpu(Number),
    /// `cpus 0-3,8`: the list as written.
    Cpus(Spanned<String>),
    /// `first threads`: one CPU of every core.
    FirstThreads,
    /// `isolated`
    Isolated,
    /// `local`: the CPUs near the device whose interrupt is routed (in a routing target only).
    Local,
    /// `local to DEVICE`
    LocalTo(Name),
    /// A `let` name.
    Name(String),
    /// `node N`
    Node(Number),
    /// `online`
    Online,
    /// `siblings of SET`
    Siblings(Box<CpuExpr>),
    /// `a + b`, `a - b`, `a & b`
    Binary { operator: Spanned<SetOperator>, left: Box<CpuExpr>, right: Box<CpuExpr> },
}

/// Set algebra.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperator {
    /// `-`
    Difference,
    /// `&`
    Intersection,
    /// `+`
    Union,
}

/// An interrupt set expression and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct IrqExpr {
    /// What it says.
    pub kind: IrqExprKind,
    /// All of it.
    pub span: Span,
}

/// Interrupt set expressions.
#[derive(Debug, Clone, PartialEq)]
pub enum IrqExprKind {
    /// `irq *`: every numbered interrupt.
    All,
    /// `irq class net|storage`
    Class(Name),
    /// `irq of DEVICE`: a network or block device by name.
    Device(Value),
    /// `irq of driver NAME`
    Driver(Value),
    /// `irq "glob"` over action names.
    Glob(Text),
    /// A `let` name.
    Name(String),
    /// `irq N`
    Number(Number),
    /// `irq of pci 0000:00:05.0`
    Pci(Spanned<String>),
    /// `a + b`, `a - b`, `a & b`
    Binary { operator: Spanned<SetOperator>, left: Box<IrqExpr>, right: Box<IrqExpr> },
}

/// Right of `->`.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// What it says.
    pub kind: TargetKind,
    /// All of it.
    pub span: Span,
}

/// Where interrupts go.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetKind {
    /// `balanced over SET every T`
    Balanced { over: CpuExpr, every: Number },
    /// `each cpu|core|cache|node of SET`
    Each { unit: Name, of: CpuExpr },
    /// `hint`
    Hint,
    /// `random over SET [seed N]`
    Random { over: CpuExpr, seed: Option<Number> },
    /// `rotating over SET every T`
    Rotating { over: CpuExpr, every: Number },
    /// A CPU set; `local` alone is `CpuExprKind::Local`.
    Set(CpuExpr),
    /// `unchanged`
    Unchanged,
}

/// A setting in `hold`, a level or a `policy`.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// What it says.
    pub kind: SettingKind,
    /// All of it.
    pub span: Span,
}

/// The shapes of settings. The vocabulary is a table in `check`.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingKind {
    /// `default irq -> SET`
    DefaultRoute(Target),
    /// `irq_threads IRQS [key=value …] [on SET]`
    IrqThreads { irqs: IrqExpr, options: Vec<KeyValue>, on: Option<CpuExpr> },
    /// `NAME word "text" 3 key=value … [-> TARGET] [on SET]`; a lone NAME may be a policy.
    Named { name: Name, arguments: Vec<Argument>, target: Option<Target>, on: Option<CpuExpr> },
    /// `IRQS -> TARGET`
    Route { irqs: IrqExpr, target: Target },
    /// `run "…" undo "…"`
    Run { command: Text, undo: Text },
}

/// An argument of a named setting.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// `key=value`
    KeyValue(KeyValue),
    /// A word, number or text. `*` alone and globs such as `kworker/*` are words.
    Value(Value),
}

/// `vary NAME …`
#[derive(Debug, Clone, PartialEq)]
pub struct Vary {
    /// The factor.
    pub name: Name,
    /// Its levels.
    pub levels: Levels,
}

/// The two forms of levels.
#[derive(Debug, Clone, PartialEq)]
pub enum Levels {
    /// `{ one_cpu { … } all_cpus { … } }`
    Settings(Vec<Level>),
    /// `in 1, 2` or `in signal, pipe`
    Values(Vec<Value>),
}

/// `NAME { settings }`
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Its name.
    pub name: Name,
    /// Settings in force under it.
    pub settings: Vec<Setting>,
    /// All of it.
    pub span: Span,
}

/// A workload or background.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// Its name: the first half of its metrics' names.
    pub name: Name,
    /// Options in file order; `None` refers to a workload defined at the top of a file.
    pub options: Option<Vec<ProcessOption>>,
    /// All of it.
    pub span: Span,
}

/// One option of a process, with its place.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessOption {
    /// What it says.
    pub kind: ProcessOptionKind,
    /// All of it.
    pub span: Span,
}

/// The options of a process.
#[derive(Debug, Clone, PartialEq)]
pub enum ProcessOptionKind {
    /// `as USER`
    As(Value),
    /// `at "user@host"`
    At(Text),
    /// `builtin NAME key=value …`
    Builtin { name: Name, arguments: Vec<KeyValue> },
    /// `env KEY=VALUE`
    Env(KeyValue),
    /// `fifo N`
    Fifo(Number),
    /// `in DIR`
    In(Text),
    /// `instances N`
    Instances(Number),
    /// `loop`
    Loop,
    /// `nice N`, N may be negative.
    Nice { negative: bool, value: Number },
    /// `on SET`
    On(CpuExpr),
    /// `parse …`
    Parse(Parse),
    /// `ready when output matches "…"`
    Ready(Text),
    /// `run "…"`
    Run(Text),
    /// `shell "…"`
    Shell(Text),
    /// `timeout T`
    Timeout(Number),
    /// `to lab.host`
    To(Value),
}

/// `parse NAME`, or `parse json|regex "…" as NAME [unit] [direction]`
#[derive(Debug, Clone, PartialEq)]
pub struct Parse {
    /// `bonnie`, `json`, `regex` …
    pub parser: Name,
    /// JSON path or regular expression.
    pub pattern: Option<Text>,
    /// The metric it yields.
    pub metric: Option<Name>,
    /// Unit, a word or a text.
    pub unit: Option<Value>,
    /// `lower_is_better` or `higher_is_better`
    pub direction: Option<Name>,
}

/// `workload.metric`, or a pattern with `*`.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricName {
    /// Dotted, as written: `primes.real`, `bonnie.*`
    pub path: String,
    /// Its place.
    pub span: Span,
}

/// A metric expression and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricExpr {
    /// What it says.
    pub kind: MetricExprKind,
    /// All of it.
    pub span: Span,
}

/// Metric arithmetic; the usual precedence.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricExprKind {
    /// `a + b`, `a - b`, `a * b`, `a / b`
    Binary { operator: Spanned<ArithmeticOperator>, left: Box<MetricExpr>, right: Box<MetricExpr> },
    /// A metric.
    Metric(MetricName),
    /// A number.
    Number(Number),
}

/// Arithmetic between metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArithmeticOperator {
    /// `+`
    Add,
    /// `/`
    Divide,
    /// `*`
    Multiply,
    /// `-`
    Subtract,
}

/// `METRIC [as "label"] [lower_is_better|higher_is_better]`
#[derive(Debug, Clone, PartialEq)]
pub struct Measure {
    /// What is measured.
    pub expr: MetricExpr,
    /// How the report names it.
    pub label: Option<Text>,
    /// Which way is better, where the metric itself does not say.
    pub direction: Option<Name>,
}

/// `LEVEL` or `FACTOR.LEVEL`
#[derive(Debug, Clone, PartialEq)]
pub struct LevelRef {
    /// Before the dot.
    pub factor: Option<Name>,
    /// A word, or a number for value factors.
    pub level: Name,
}

/// `compare FACTOR against LEVEL …`
#[derive(Debug, Clone, PartialEq)]
pub struct Compare {
    /// The factor compared.
    pub factor: Name,
    /// The base level.
    pub against: Name,
    /// Metrics; empty means all measured ones.
    pub by: Vec<MetricName>,
    /// Equivalence margin.
    pub margin: Option<Number>,
    /// Other factors to compare within.
    pub within: Vec<Name>,
}

/// `expect METRIC: LEFT OP RIGHT [within F, …]`
#[derive(Debug, Clone, PartialEq)]
pub struct Expect {
    /// The metric.
    pub metric: MetricName,
    /// Left of the operator.
    pub left: ExpectSide,
    /// `<`, `<=`, `>`, `>=`; others are parsed to be explained.
    pub operator: Spanned<String>,
    /// Right of the operator.
    pub right: ExpectSide,
    /// Other factors to hold fixed.
    pub within: Vec<Name>,
}

/// `[1.03 *] LEVEL`
#[derive(Debug, Clone, PartialEq)]
pub struct ExpectSide {
    /// Multiplies the level's value.
    pub factor: Option<Number>,
    /// The level.
    pub level: LevelRef,
}

/// `repeat …`
#[derive(Debug, Clone, PartialEq)]
pub enum Repeat {
    /// `repeat N`
    Fixed(Number),
    /// `repeat until METRIC within 1% [pilot N] [max N]`
    Until { metric: MetricName, within: Number, pilot: Option<Number>, max: Option<Number> },
}

/// `require …`
#[derive(Debug, Clone, PartialEq)]
pub enum Require {
    /// `require cpus >= 2`; any fact with a number.
    Fact { fact: Name, operator: Spanned<String>, value: Number },
    /// `require irq "megasas*"`: the selection is not empty and every IRQ in it can be moved.
    Irq(IrqExpr),
    /// `require root`
    Root(Span),
    /// `require tool "bonnie++"`
    Tool(Text),
}

/// `FACTOR == LEVEL` or `FACTOR != LEVEL`
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The factor.
    pub factor: Name,
    /// `==` or `!=`; others are parsed to be explained.
    pub operator: Spanned<String>,
    /// The level.
    pub level: Name,
}

/// `recorded …`
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    /// `recorded from "file.csv"`
    From(Text),
    /// `recorded { … }`
    Rows(Vec<Series>),
}

/// One metric's recorded rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// `primes.real`
    pub metric: MetricName,
    /// `s`, `"loops/sec"`
    pub unit: Option<Value>,
    /// `lower_is_better` or `higher_is_better`
    pub direction: Option<Name>,
    /// `columns low high average [n]`; empty for raw samples.
    pub columns: Vec<Name>,
    /// Level names, then numbers.
    pub rows: Vec<Row>,
}

/// One line of recorded data.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Words and numbers in order.
    pub cells: Vec<Value>,
    /// The line.
    pub span: Span,
}

/// An option of `report`.
#[derive(Debug, Clone, PartialEq)]
pub enum ReportOption {
    /// `layout NAME`
    Layout(Name),
    /// `template "…"`
    Template(Text),
}

/// `lab NAME { … }`
#[derive(Debug, Clone, PartialEq)]
pub struct Lab {
    /// Its name.
    pub name: Name,
    /// Its options in file order.
    pub options: Vec<LabOption>,
    /// All of it.
    pub span: Span,
}

/// `lab` inside an experiment.
#[derive(Debug, Clone, PartialEq)]
pub struct LabUse {
    /// The lab's name.
    pub name: Option<Name>,
    /// Its body where it is defined in place.
    pub options: Option<Vec<LabOption>>,
}

/// `cpus 4`, `nic e1000 count=2`, `boot "…"`, `link`: a name and arguments. The vocabulary is a table in `check`.
#[derive(Debug, Clone, PartialEq)]
pub struct LabOption {
    /// The first word.
    pub name: Name,
    /// The rest.
    pub arguments: Vec<Argument>,
    /// All of it.
    pub span: Span,
}
