//! A checked experiment: every name, unit and default is settled; no fact of any host is in it.

use crate::source::Span;

pub mod machine;
pub mod order;

pub use machine::Machine;

/// One experiment, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Experiment {
    /// The report folder's name.
    pub name: String,
    /// Place of the name.
    pub name_span: Span,
    /// `title`, or the name.
    pub title: String,
    /// `question`.
    pub question: Option<String>,
    /// `source`: who published the recorded data.
    pub source: Option<String>,
    /// Parameters with the values used.
    pub params: Vec<Param>,
    /// The virtual machine asked for, as it stands in the file (before `${factor}`).
    pub lab: Option<Lab>,
    /// Factors in file order.
    pub factors: Vec<Factor>,
    /// `control` clauses: factor index and level index whose treatments have A/A copies.
    pub controls: Vec<(usize, usize)>,
    /// Treatments: the cells of the design in lexical order of levels, skipped ones left out, control copies
    /// directly behind the cell they copy.
    pub treatments: Vec<Treatment>,
    /// What is measured, with `*` expanded where the checker can (parsers with open metric sets stay patterns).
    pub metrics: Vec<Metric>,
    /// How trials are laid out.
    pub protocol: Protocol,
    /// `compare` clauses.
    pub comparisons: Vec<Comparison>,
    /// `expect` clauses.
    pub expectations: Vec<Expectation>,
    /// `require` clauses.
    pub requirements: Vec<Requirement>,
    /// `recorded from "file.csv"`: the path as written.
    pub recorded_from: Option<crate::source::Spanned<String>>,
    /// Numbers somebody already published; such an experiment has no workload and is not run.
    pub recorded: Vec<RecordedSeries>,
    /// Report options.
    pub report: ReportOptions,
}

impl Experiment {
    /// Whether its numbers were published and nothing is run.
    pub fn is_published(&self) -> bool {
        self.recorded_from.is_some() || !self.recorded.is_empty()
    }

    /// Whether its trials are grouped into boots: it has a lab, or levels that ask for a kernel command line.
    pub fn needs_boots(&self) -> bool {
        let asks = |setting: &Setting| matches!(setting.kind, SettingKind::Boot(_));
        self.lab.is_some() || self.treatments.iter().any(|treatment| treatment.settings.iter().any(asks))
    }
}

/// A parameter and the value used.
#[derive(Debug, Clone, PartialEq)]
pub struct Param {
    /// Its name.
    pub name: String,
    /// The value, the caller's where one was given.
    pub value: String,
    /// Whether the caller gave it.
    pub replaced: bool,
}

/// What is varied on purpose.
#[derive(Debug, Clone, PartialEq)]
pub struct Factor {
    /// Its name.
    pub name: String,
    /// Place of the name.
    pub span: Span,
    /// Level names in file order.
    pub levels: Vec<String>,
    /// Whether changing it needs a boot, a lab change or an SMT toggle, so that it makes whole plots.
    pub hard_to_change: bool,
}

/// One combination of levels, with everything it asks for spelled out.
#[derive(Debug, Clone, PartialEq)]
pub struct Treatment {
    /// `routing=one_cpu, nics=2`; a control copy has ` (control 2)` behind it.
    pub name: String,
    /// Level index per factor.
    pub levels: Vec<usize>,
    /// 0 for the cell itself, 1.. for its A/A control copies.
    pub control: usize,
    /// The virtual machine it runs in, `${factor}` put in; `None` without a lab.
    pub machine: Option<Machine>,
    /// Held settings, then those of the levels in factor order.
    pub settings: Vec<Setting>,
    /// Workloads; all start together.
    pub workloads: Vec<Process>,
    /// Backgrounds, running before the workloads start.
    pub backgrounds: Vec<Process>,
}

impl Treatment {
    /// Kernel command line options its `boot` settings ask for, in the order written.
    pub fn boot_options(&self) -> Vec<&str> {
        let options = self.settings.iter().filter_map(|setting| match &setting.kind {
            SettingKind::Boot(options) => Some(options.as_str()),
            _ => None,
        });
        options.flat_map(str::split_whitespace).collect()
    }
}

/// A setting asked for.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// What is set.
    pub kind: SettingKind,
    /// Where it was written.
    pub span: Span,
}

/// Everything that can be set. All of it can be put back.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingKind {
    /// Kernel command line options of this boot.
    Boot(String),
    /// `channels DEVICE combined=4 …`
    Channels { device: String, counts: Vec<(String, u32)> },
    /// `coalesce DEVICE rx_usecs=50 …`
    Coalesce { device: String, options: Vec<(String, String)> },
    /// `cpu N offline`
    CpuOffline(u32),
    /// `default irq -> SET`
    DefaultRoute(CpuSelector),
    /// `governor NAME`, on every CPU.
    Governor(String),
    /// `idle_states max=N`
    IdleStates(u32),
    /// `irq_threads IRQS fifo=N on SET`
    IrqThreads { irqs: IrqSelector, fifo: Option<u32>, cpus: Option<CpuSelector> },
    /// `napi DEVICE threaded|defer=…`
    Napi { device: String, options: Vec<(String, String)> },
    /// `offload DEVICE gro=off …`
    Offload { device: String, options: Vec<(String, String)> },
    /// `rfs DEVICE entries=N`
    Rfs { device: String, entries: u32 },
    /// `rings DEVICE rx=4096 …`
    Rings { device: String, sizes: Vec<(String, u32)> },
    /// `IRQS -> TARGET`
    Route { irqs: IrqSelector, target: RoutingTarget },
    /// `rps DEVICE -> TARGET`
    Rps { device: String, target: RoutingTarget },
    /// `run "…" undo "…"`: words, no shell.
    Run { command: Vec<String>, undo: Vec<String> },
    /// `service NAME started|stopped`
    Service { name: String, state: ServiceState, options: Vec<(String, String)> },
    /// `smt on|off`
    Smt(bool),
    /// `sysctl KEY=VALUE`
    Sysctl { key: String, value: String },
    /// `tasks PATTERN on SET`
    Tasks { pattern: String, cpus: CpuSelector },
    /// `turbo on|off`
    Turbo(bool),
    /// `workqueues on SET`
    Workqueues(CpuSelector),
    /// `write "/sys/…" "value"`
    Write { path: String, value: String },
    /// `xps DEVICE -> TARGET`
    Xps { device: String, target: RoutingTarget },
}

/// State of a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServiceState {
    /// Runs.
    Started,
    /// Does not run.
    Stopped,
}

/// A set of CPUs, to be resolved on a host.
#[derive(Debug, Clone, PartialEq)]
pub enum CpuSelector {
    /// CPUs of core N, counted over the host in order of their first CPU.
    Core(u32),
    /// In the first and not in the second.
    Difference(Box<CpuSelector>, Box<CpuSelector>),
    /// One CPU of every core: the lowest.
    FirstThreads,
    /// In both.
    Intersection(Box<CpuSelector>, Box<CpuSelector>),
    /// `/sys/devices/system/cpu/isolated`
    Isolated,
    /// A fixed list, kernel list form.
    List(crate::cpu_set::CpuSet),
    /// CPUs of the NUMA node of the device whose interrupt is routed.
    Local,
    /// CPUs of the NUMA node of a device.
    LocalTo(String),
    /// CPUs of a NUMA node.
    Node(u32),
    /// All online CPUs.
    Online,
    /// All threads of the cores of a set.
    Siblings(Box<CpuSelector>),
    /// In either.
    Union(Box<CpuSelector>, Box<CpuSelector>),
}

/// A set of interrupts, to be resolved on a host.
#[derive(Debug, Clone, PartialEq)]
pub enum IrqSelector {
    /// Every numbered interrupt. In a route: every one that can be moved.
    All,
    /// Network devices' interrupts.
    ClassNet,
    /// Storage devices' interrupts.
    ClassStorage,
    /// Interrupts of a network or block device.
    Device(String),
    /// In the first and not in the second.
    Difference(Box<IrqSelector>, Box<IrqSelector>),
    /// Interrupts of all devices of a driver.
    Driver(String),
    /// Any action matches the glob.
    Glob(String),
    /// In both.
    Intersection(Box<IrqSelector>, Box<IrqSelector>),
    /// One number.
    Number(u32),
    /// Interrupts of a PCI function.
    Pci(String),
    /// In either.
    Union(Box<IrqSelector>, Box<IrqSelector>),
}

/// Where interrupts are sent.
#[derive(Debug, Clone, PartialEq)]
pub enum RoutingTarget {
    /// Moved by measured load while the trial runs.
    Balanced { over: CpuSelector, every_ms: u64 },
    /// Dealt out one per unit in queue order.
    Each { unit: TopologyUnit, of: CpuSelector },
    /// The driver's `affinity_hint`.
    Hint,
    /// One random CPU each.
    Random { over: CpuSelector, seed: u64 },
    /// Moved round robin while the trial runs.
    Rotating { over: CpuSelector, every_ms: u64 },
    /// The whole mask for every selected interrupt.
    Set(CpuSelector),
    /// What the host has.
    Unchanged,
}

/// What interrupts are dealt out over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopologyUnit {
    /// Groups that share the last-level cache.
    Cache,
    /// Cores.
    Core,
    /// CPUs.
    Cpu,
    /// NUMA nodes.
    Node,
}

/// A workload or background with every value settled.
#[derive(Debug, Clone, PartialEq)]
pub struct Process {
    /// First half of its metrics' names.
    pub name: String,
    /// Where it was written.
    pub span: Span,
    /// What runs.
    pub command: Command,
    /// Where it may run; `None` leaves the inherited CPUs.
    pub cpus: Option<CpuSelector>,
    /// Working directory.
    pub directory: Option<String>,
    /// Added environment.
    pub environment: Vec<(String, String)>,
    /// User to run as.
    pub user: Option<String>,
    /// Niceness, -20 to 19.
    pub nice: Option<i32>,
    /// `SCHED_FIFO` priority, 1 to 99.
    pub fifo: Option<u32>,
    /// Time limit; the experiment's when `None`.
    pub timeout_ms: Option<u64>,
    /// How many copies start together.
    pub instances: u32,
    /// ssh destination to run it on.
    pub at: Option<String>,
    /// Started again when it ends (backgrounds).
    pub restart: bool,
    /// A background counts as ready when its output matches; at once when `None`.
    pub ready: Option<String>,
    /// How its output becomes metrics.
    pub parsers: Vec<Parser>,
}

/// What a process runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// A built-in workload and its arguments, defaults filled in, in the order of the built-in's table. Values are
    /// words, or numbers in the base unit of their quantity: `20000000`, `500ms`, `262144B`, `60%`.
    Builtin { name: String, arguments: Vec<(String, String)> },
    /// Words, no shell.
    Run(Vec<String>),
    /// One text for `/bin/sh -c`.
    Shell(String),
}

/// How output becomes metrics.
#[derive(Debug, Clone, PartialEq)]
pub enum Parser {
    /// A JSON path such as `jobs[0].read.iops`.
    Json { path: String, metric: String },
    /// A known tool's output.
    Known(String),
    /// The first capture group of the first match.
    Regex { pattern: String, metric: String },
}

/// Which way is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better.
    HigherIsBetter,
    /// Less is better.
    LowerIsBetter,
    /// Neither; no verdict is drawn.
    Neutral,
}

/// One measured quantity.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Canonical text of the expression: `primes.real`, `loop.rate / host.mhz`. What `by` and `expect` name.
    pub id: String,
    /// Shown in the report.
    pub label: String,
    /// `s`, `loops/s`, empty for none.
    pub unit: String,
    /// Which way is better.
    pub direction: Direction,
    /// How it is computed from a trial.
    pub expr: MetricExpr,
    /// Where it was written.
    pub span: Span,
}

/// How a metric is computed from one trial.
#[derive(Debug, Clone, PartialEq)]
pub enum MetricExpr {
    /// Sum.
    Add(Box<MetricExpr>, Box<MetricExpr>),
    /// Quotient; a trial where the divisor is 0 has no value.
    Divide(Box<MetricExpr>, Box<MetricExpr>),
    /// Every metric a parser yields whose name matches, e.g. `bonnie.*`; only alone, never inside arithmetic.
    Every(String),
    /// `process.metric` or `host.metric`.
    Metric(String),
    /// Product.
    Multiply(Box<MetricExpr>, Box<MetricExpr>),
    /// A constant.
    Number(f64),
    /// Difference.
    Subtract(Box<MetricExpr>, Box<MetricExpr>),
}

/// How trials are laid out in time.
#[derive(Debug, Clone, PartialEq)]
pub struct Protocol {
    /// How often each treatment runs.
    pub repeat: Repeat,
    /// Warm-up trials per treatment, run first, recorded and declared out of the analysis.
    pub warmup: u32,
    /// Order of trials.
    pub order: Order,
    /// Seed of the order.
    pub seed: u64,
    /// Rest between applying a treatment and starting the workloads.
    pub settle_ms: u64,
    /// Limit of one trial's workloads.
    pub timeout_ms: u64,
    /// How many times an invalid trial is repeated at the end of its block.
    pub retries: u32,
}

/// Repetition rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Repeat {
    /// N blocks.
    Fixed(u32),
    /// Two-stage: after `pilot` blocks one look decides how many are needed, `max` at most.
    Until { metric: String, within: f64, pilot: u32, max: u32 },
}

/// Order of trials.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Randomised complete blocks.
    Blocks,
    /// All of one treatment, then all of the next: no verdict.
    Sequential,
    /// Completely randomised.
    Shuffled,
}

/// `compare FACTOR against LEVEL`
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// Index of the factor.
    pub factor: usize,
    /// Index of its base level.
    pub base: usize,
    /// Metric ids; all measured ones when the clause named none.
    pub metrics: Vec<String>,
    /// Equivalence margin as a fraction.
    pub margin: Option<f64>,
    /// Factors held fixed: one comparison per combination of their levels. Factors neither compared nor listed
    /// are averaged over (geometric mean within the block).
    pub within: Vec<usize>,
    /// Where it was written.
    pub span: Span,
}

/// `expect METRIC: a <= 1.03 * b`
#[derive(Debug, Clone, PartialEq)]
pub struct Expectation {
    /// Metric id.
    pub metric: String,
    /// Index of the factor both levels belong to.
    pub factor: usize,
    /// Level and multiplier left of the operator.
    pub left: ExpectationSide,
    /// The relation.
    pub operator: Relation,
    /// Level and multiplier right of it.
    pub right: ExpectationSide,
    /// Factors held fixed.
    pub within: Vec<usize>,
    /// As written.
    pub text: String,
    /// Where it was written.
    pub span: Span,
}

/// `1.03 * level`
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExpectationSide {
    /// Multiplier, 1 when none was written.
    pub coefficient: f64,
    /// Index of the level.
    pub level: usize,
}

/// A relation between two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// `==`
    Equal,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `!=`
    NotEqual,
}

/// What a host must have.
#[derive(Debug, Clone, PartialEq)]
pub struct Requirement {
    /// What.
    pub kind: RequirementKind,
    /// Where it was written.
    pub span: Span,
}

/// Kinds of requirement.
#[derive(Debug, Clone, PartialEq)]
pub enum RequirementKind {
    /// A numeric fact: `cpus`, `cores`, `nodes`, `memory` (bytes).
    Fact { fact: String, relation: Relation, value: f64 },
    /// The selection is not empty and every interrupt in it can be moved.
    Irq(IrqSelector),
    /// Effective user id 0.
    Root,
    /// A program on `PATH`.
    Tool(String),
}

/// Published numbers of one metric under one treatment.
#[derive(Debug, Clone, PartialEq)]
pub struct RecordedSeries {
    /// Metric id.
    pub metric: String,
    /// Index into [`Experiment::treatments`].
    pub treatment: usize,
    /// The numbers.
    pub values: RecordedValues,
    /// The row.
    pub span: Span,
}

/// The kinds of published numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordedValues {
    /// Raw samples (one sample: no inference).
    Samples(Vec<f64>),
    /// Only a summary.
    Summary { low: f64, high: f64, average: f64, n: Option<u32> },
}

/// A lab as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Lab {
    /// Its name, or the experiment's.
    pub name: String,
    /// `(option, arguments)` with parameters put in, `${factor}` left as it is.
    pub options: Vec<(String, Vec<String>)>,
    /// Where it was written.
    pub span: Span,
}

/// How the report looks.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReportOptions {
    /// A built-in layout; `default` when `None`.
    pub layout: Option<String>,
    /// A template file, relative to the experiment's file.
    pub template: Option<String>,
}
