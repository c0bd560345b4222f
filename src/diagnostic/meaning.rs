//! What can be wrong with a file that the grammar allows: the kinds as data, and their words.

use std::fmt;

/// One variant for each way a well-formed file can be wrong, in alphabetical order. Data only; words are in
/// [`Meaning::message`] and [`Meaning::help`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Meaning {
    /// A level name that several factors have.
    AmbiguousLevel { level: String, factors: Vec<String> },
    /// A background's metric is asked for.
    BackgroundMetric { process: String },
    /// `loop` or `ready` on a workload.
    BackgroundOnly { option: &'static str },
    /// `compare` of a factor with one level.
    ComparedAlone { factor: String },
    /// Two settings in force at once change the same thing.
    Conflict { what: String },
    /// Names that lead back to themselves.
    Cycle { thing: Thing, name: String },
    /// The same name twice.
    Duplicate { thing: Thing, name: String },
    /// A CPU set that is empty on every host.
    EmptyCpuSet { text: String },
    /// A text that must say something says nothing.
    EmptyText { what: &'static str },
    /// References make a text of a few words one that fills the memory.
    TextTooLong { limit: usize },
    /// `skip` leaves no treatment.
    EverythingSkipped,
    /// `expect` with levels of two factors.
    ExpectedAcrossFactors { left: String, right: String },
    /// `${factor}` where no treatment is in force yet.
    FactorNotHere { factor: String },
    /// A sum of unlike units.
    IncompatibleUnits { left: String, right: String },
    /// A label on a pattern of metrics.
    LabelOnPattern { pattern: String },
    /// Every treatment with this level is skipped.
    LevelNeverRuns { factor: String, level: String },
    /// `local` where no interrupt is routed.
    LocalOutsideTarget,
    /// A command line whose quotes do not close.
    MalformedCommand,
    /// Not a JSON path.
    MalformedJsonPath { path: String },
    /// Not a number.
    MalformedNumber { text: String },
    /// Not a regular expression.
    MalformedRegex { detail: String },
    /// `write` to a path that is no kernel file.
    MalformedWritePath { path: String },
    /// A file named by `use` that cannot be read.
    MissingFile { path: String, reason: String },
    /// Recorded numbers in a file that cannot be read as such.
    MalformedData { detail: String, help: String },
    /// A required option is not there.
    MissingOption { owner: String, option: &'static str, form: String },
    /// A number without the unit it needs.
    MissingUnit { number: String, examples: Vec<String> },
    /// No `run`, `shell` or `builtin`.
    NoCommand { process: String },
    /// A lab that no virtual machine can be, or a value no program or kernel for it takes.
    NoSuchMachine { why: String, help: String },
    /// A number with a fraction where things are counted.
    NotWhole { number: String },
    /// No `measure` clause.
    NothingMeasured,
    /// No numbers in `recorded`.
    NothingRecorded,
    /// No workload.
    NothingRuns,
    /// No `vary` clause.
    NothingVaried,
    /// An option that does nothing here.
    OptionNotFor { option: String, owner: String, help: String },
    /// A number too small or too large.
    OutOfRange { what: String, low: String, high: String },
    /// A clause that has no meaning beside `recorded`.
    RecordedBeside { clause: &'static str },
    /// Numbers of a row that cannot all be true: `low <= average <= high`.
    RecordedOrder,
    /// A row of the wrong shape.
    RecordedShape { expected: String },
    /// A regular expression without a capture group.
    RegexWithoutGroup,
    /// A name that means something already.
    ReservedName { name: String, means: &'static str },
    /// Two of `run`, `shell` and `builtin`.
    SeveralCommands { process: String },
    /// More treatments than anybody can run.
    TooManyTreatments { count: u128, limit: usize },
    /// A name nobody defined.
    Unknown { thing: Thing, name: String, near: Option<String>, known: Vec<String> },
    /// `--set` of a parameter no experiment has.
    UnknownParameterGiven { name: String, near: Option<String>, known: Vec<String> },
    /// `compare … by`, `expect` or `repeat until` on a metric that is not measured.
    Unmeasured { metric: String, measured: Vec<String> },
    /// A treatment that no host can be brought into.
    Unreachable { why: String, help: String },
    /// A name that cannot be a folder.
    UnsafeName { name: String },
    /// Something defined and not used.
    Unused { thing: Thing, name: String },
    /// A factor of values that nothing refers to.
    UnusedFactor { factor: String },
    /// `write` to a mask file, which has a setting of its own.
    WriteHasSetting { path: String, setting: &'static str },
    /// A setting, option or parser written in another form than it has.
    WrongForm { name: String, form: String },
    /// An operator that has no meaning here.
    WrongOperator { operator: String, allowed: &'static [&'static str] },
    /// A name for a set of the other kind.
    WrongSet { name: String, wanted: &'static str, found: &'static str },
    /// A routing target that this setting cannot have.
    WrongTarget { setting: String, allowed: &'static str },
    /// A known unit of another quantity, or no unit at all.
    WrongUnit { unit: String, near: Option<String>, examples: Vec<String> },
    /// A word out of a closed list.
    WrongWord { what: String, word: String, near: Option<String>, allowed: Vec<String> },
}

/// What a name names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// Of an experiment.
    Clause,
    /// Of recorded data.
    Column,
    /// The name of a set of CPUs.
    CpuSet,
    /// `experiment NAME`
    Experiment,
    /// A numeric fact of `require`.
    Fact,
    /// `vary NAME`
    Factor,
    /// The name of a set of interrupts.
    IrqSet,
    /// `lab NAME`
    Lab,
    /// `use "FILE"`
    File,
    /// An option in a lab.
    LabOption,
    /// `layout NAME`
    Layout,
    /// `let NAME`
    Let,
    /// Of a factor.
    Level,
    /// `workload.metric`
    Metric,
    /// Any name of an experiment.
    Name,
    /// `key=value`
    Option,
    /// `order NAME`
    Order,
    /// `param NAME`
    Param,
    /// `parse NAME`
    Parser,
    /// `policy NAME`
    Policy,
    /// A workload or background.
    Process,
    /// `${name}`
    Reference,
    /// A recorded row.
    Row,
    /// In `hold`, a level or a policy.
    Setting,
    /// `each UNIT of`
    TopologyUnit,
    /// Behind a number.
    Unit,
    /// `builtin NAME`
    Builtin,
    /// `workload NAME`
    Workload,
}

impl fmt::Display for Thing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Thing::Builtin => "built-in workload",
            Thing::Clause => "clause",
            Thing::Column => "column",
            Thing::CpuSet => "CPU set",
            Thing::Experiment => "experiment",
            Thing::Fact => "fact",
            Thing::Factor => "factor",
            Thing::File => "file",
            Thing::IrqSet => "interrupt set",
            Thing::Lab => "lab",
            Thing::LabOption => "lab option",
            Thing::Layout => "layout",
            Thing::Let => "`let` name",
            Thing::Level => "level",
            Thing::Metric => "metric",
            Thing::Name => "name",
            Thing::Option => "option",
            Thing::Order => "order",
            Thing::Param => "parameter",
            Thing::Parser => "parser",
            Thing::Policy => "policy",
            Thing::Process => "workload or background",
            Thing::Reference => "reference",
            Thing::Row => "row",
            Thing::Setting => "setting",
            Thing::TopologyUnit => "unit of topology",
            Thing::Unit => "unit",
            Thing::Workload => "workload",
        })
    }
}

impl Meaning {
    /// States what is: a lower-case fragment without a final period, the user's words in backticks.
    pub fn message(&self) -> String {
        match self {
            Meaning::AmbiguousLevel { level, .. } => format!("level `{level}` belongs to several factors"),
            Meaning::BackgroundMetric { process } => format!("`{process}` is a background and is not measured"),
            Meaning::BackgroundOnly { option } => format!("`{option}` is for backgrounds, not for workloads"),
            Meaning::ComparedAlone { factor } => format!("factor `{factor}` has one level: nothing to compare"),
            Meaning::Conflict { what } => format!("{what} is set in two places at once"),
            Meaning::Cycle { thing, name } => format!("{thing} `{name}` leads back to itself"),
            Meaning::Duplicate { thing, name } => format!("{thing} `{name}` is there twice"),
            Meaning::EmptyCpuSet { text } => format!("`{text}` holds no CPU"),
            Meaning::EmptyText { what } => format!("{what} is empty"),
            Meaning::TextTooLong { limit } => {
                format!("with its references put in, the text is longer than {} KiB", limit >> 10)
            }
            Meaning::EverythingSkipped => "every treatment is skipped".to_owned(),
            Meaning::ExpectedAcrossFactors { left, right } => {
                format!("the levels belong to different factors, `{left}` and `{right}`")
            }
            Meaning::FactorNotHere { factor } => format!("`{factor}` is a factor and has no single value here"),
            Meaning::IncompatibleUnits { left, right } => {
                format!("{} and {} do not add up", unit_word(left), unit_word(right))
            }
            Meaning::LabelOnPattern { pattern } => format!("`{pattern}` stands for several metrics and takes no label"),
            Meaning::LevelNeverRuns { factor, level } => {
                format!("level `{level}` of `{factor}` never runs: every treatment with it is skipped")
            }
            Meaning::LocalOutsideTarget => "`local` has a meaning only behind `->`".to_owned(),
            Meaning::MalformedCommand => "the command's quotes do not close".to_owned(),
            Meaning::MalformedJsonPath { path } => format!("`{path}` is not a path into JSON"),
            Meaning::MalformedNumber { text } => format!("`{text}` is not a number"),
            Meaning::MalformedRegex { detail } => format!("not a regular expression: {detail}"),
            Meaning::MalformedWritePath { path } => format!("`{path}` is not a file under `/sys` or `/proc`"),
            Meaning::MalformedData { detail, .. } => detail.clone(),
            Meaning::MissingFile { path, reason } => format!("`{path}` cannot be read: {reason}"),
            Meaning::MissingOption { owner, option, .. } => format!("`{owner}` needs `{option}`"),
            Meaning::MissingUnit { number, .. } => format!("`{number}` has no unit"),
            Meaning::NoCommand { process } => format!("`{process}` has nothing to run"),
            Meaning::NotWhole { number } => format!("`{number}` is not a whole number"),
            Meaning::NothingMeasured => "nothing is measured".to_owned(),
            Meaning::NothingRecorded => "no numbers are recorded".to_owned(),
            Meaning::NothingRuns => "there is no workload".to_owned(),
            Meaning::NothingVaried => "nothing is varied".to_owned(),
            Meaning::OptionNotFor { option, owner, .. } => format!("`{option}` does nothing for {owner}"),
            Meaning::OutOfRange { what, .. } => format!("{what} is out of range"),
            Meaning::RecordedBeside { clause } => format!("`{clause}` has no meaning beside `recorded`"),
            Meaning::RecordedOrder => "low, average and high are not in ascending order".to_owned(),
            Meaning::RecordedShape { .. } => "the row does not have the shape of its table".to_owned(),
            Meaning::RegexWithoutGroup => "the regular expression has no capture group".to_owned(),
            Meaning::ReservedName { name, means } => format!("`{name}` names {means} already"),
            Meaning::SeveralCommands { process } => format!("`{process}` has two commands"),
            Meaning::TooManyTreatments { count, .. } => format!("the factors make {count} treatments"),
            Meaning::Unknown { thing, name, .. } => format!("{thing} `{name}` is unknown"),
            Meaning::UnknownParameterGiven { name, .. } => format!("no experiment here has a parameter `{name}`"),
            Meaning::Unmeasured { metric, .. } => format!("metric `{metric}` is not measured"),
            Meaning::NoSuchMachine { why, .. } | Meaning::Unreachable { why, .. } => why.clone(),
            Meaning::UnsafeName { name } => format!("`{name}` cannot be the name of a report's folder"),
            Meaning::Unused { thing, name } => format!("{thing} `{name}` is not used"),
            Meaning::UnusedFactor { factor } => format!("nothing depends on factor `{factor}`"),
            Meaning::WriteHasSetting { path, .. } => format!("`{path}` is not for `write`"),
            Meaning::WrongForm { name, .. } => format!("`{name}` is not written like this"),
            Meaning::WrongOperator { operator, .. } => format!("`{operator}` has no meaning here"),
            Meaning::WrongSet { name, wanted, found } => format!("`{name}` names {found}, and {wanted} is wanted"),
            Meaning::WrongTarget { setting, .. } => format!("`{setting}` cannot have this target"),
            Meaning::WrongUnit { unit, .. } => format!("`{unit}` is not a unit for this"),
            Meaning::WrongWord { what, word, .. } => format!("`{word}` is not a {what}"),
        }
    }

    /// Says what to do, where there is something to say.
    pub fn help(&self) -> Option<String> {
        Some(match self {
            Meaning::AmbiguousLevel { level, factors } => {
                let forms: Vec<String> = factors.iter().map(|factor| format!("`{factor}.{level}`")).collect();
                format!("write {}", either(&forms))
            }
            Meaning::BackgroundMetric { .. } => "measure a workload: a background only loads the host".to_owned(),
            Meaning::BackgroundOnly { option } => {
                format!("remove `{option}`, or make this a `background` if it should run beside the workloads")
            }
            Meaning::ComparedAlone { factor } => format!("give `{factor}` a second level, or remove the clause"),
            Meaning::Conflict { .. } => {
                "the order of statements has no meaning, so keep one of the two: `hold` is for what never changes, \
                 `vary` for what is compared"
                    .to_owned()
            }
            Meaning::Cycle { .. } => "break the circle".to_owned(),
            Meaning::Duplicate { thing: Thing::Row, .. } => {
                "put all numbers of a treatment on one row, or declare copies with `control LEVEL repeated N`".to_owned()
            }
            Meaning::Duplicate { thing: Thing::Clause, .. } => "keep one".to_owned(),
            Meaning::Duplicate { .. } => "rename or remove one".to_owned(),
            Meaning::EmptyCpuSet { .. } => "name at least one CPU".to_owned(),
            Meaning::TextTooLong { .. } => {
                "the kernel takes no longer argument of a program: put the text into a file".to_owned()
            }
            Meaning::EmptyText { .. } => "write something between the quotes".to_owned(),
            Meaning::EverythingSkipped => "let `skip when` leave something to run".to_owned(),
            Meaning::ExpectedAcrossFactors { .. } => {
                "compare two levels of one factor; name the others behind `within`".to_owned()
            }
            Meaning::FactorNotHere { .. } => {
                "use `${…}` of a factor in settings, workloads and labs; here a `param` can be used".to_owned()
            }
            Meaning::IncompatibleUnits { .. } => "add and subtract metrics of one unit; others can be divided".to_owned(),
            Meaning::LabelOnPattern { .. } => "name one metric, or leave the label out".to_owned(),
            Meaning::LevelNeverRuns { .. } => "remove the level, or let `skip when` leave a treatment with it".to_owned(),
            Meaning::LocalOutsideTarget => "write `local to DEVICE`, or name the CPUs".to_owned(),
            Meaning::MalformedCommand => "close the quotes, or use `shell` for a shell's syntax".to_owned(),
            Meaning::MalformedJsonPath { .. } => "write names and indices, such as `jobs[0].read.iops`".to_owned(),
            Meaning::MalformedNumber { .. } => "write digits, with `_` between them if they are many".to_owned(),
            Meaning::MalformedRegex { .. } => {
                "the syntax is that of Rust's `regex` crate; a `\\` in a text is written `\\\\`".to_owned()
            }
            Meaning::MalformedWritePath { .. } => "name the whole path, without `..`".to_owned(),
            Meaning::MissingFile { .. } => "the path is relative to the file that names it".to_owned(),
            Meaning::MissingOption { form, .. } | Meaning::WrongForm { form, .. } => format!("write `{form}`"),
            Meaning::MissingUnit { examples, .. } => format!("write a unit: {}", either(&quoted(examples))),
            Meaning::NoCommand { .. } => "say `run \"…\"`, `shell \"…\"` or `builtin NAME`".to_owned(),
            Meaning::NotWhole { .. } => "leave the fraction out".to_owned(),
            Meaning::NothingMeasured => "say what is measured, such as `measure primes.real`".to_owned(),
            Meaning::NothingRecorded => "write a metric and one row per treatment between the braces".to_owned(),
            Meaning::NothingRuns => "say what runs, such as `workload primes { builtin primes }`".to_owned(),
            Meaning::NothingVaried => {
                "say what is compared, such as `vary routing { one_cpu { irq * -> cpu 0 }  all_cpus { irq * -> online } }`"
                    .to_owned()
            }
            Meaning::MalformedData { help, .. }
            | Meaning::NoSuchMachine { help, .. }
            | Meaning::OptionNotFor { help, .. }
            | Meaning::Unreachable { help, .. } => help.clone(),
            Meaning::OutOfRange { low, high, .. } => format!("allowed is {low} to {high}"),
            Meaning::RecordedBeside { .. } => {
                "recorded data have their treatments from `vary NAME in LEVEL, …` and their metrics from the table"
                    .to_owned()
            }
            Meaning::RecordedOrder => "check the numbers against their source".to_owned(),
            Meaning::RecordedShape { expected } => format!("write {expected}"),
            Meaning::RegexWithoutGroup => "put parentheses around the number: `([0-9.]+)`".to_owned(),
            Meaning::ReservedName { .. } => "choose another name".to_owned(),
            Meaning::SeveralCommands { .. } => "make a second workload of it; what runs one after another is a factor".to_owned(),
            Meaning::TooManyTreatments { limit, .. } => format!("vary less, or skip some: {limit} is the limit"),
            Meaning::Unknown { thing: Thing::CpuSet, name, near: None, known } if known.is_empty() => {
                format!("define it with `let {name} = …`, or write `cpu N`, `cpus LIST` or `online`")
            }
            Meaning::Unknown { thing: Thing::IrqSet, name, near: None, known } if known.is_empty() => {
                format!("define it with `let {name} = irq …`, or write `irq of {name}` if it is a device")
            }
            Meaning::Unknown { thing: Thing::Lab, name, near: None, known } if known.is_empty() => {
                format!("define it with `lab {name} {{ … }}`, here or in a file that is brought in with `use`")
            }
            Meaning::Unknown { near, known, .. }
            | Meaning::UnknownParameterGiven { near, known, .. }
            | Meaning::WrongWord { near, allowed: known, .. } => return suggestion(near.as_deref(), known),
            Meaning::Unmeasured { metric, measured } if measured.is_empty() => format!("add `measure {metric}`"),
            Meaning::Unmeasured { metric, measured } => {
                format!("add `measure {metric}`, or use one that is measured: {}", either(&quoted(measured)))
            }
            Meaning::UnsafeName { .. } => {
                "use letters, digits, `_` and `-`, a letter or digit first, 100 characters at most".to_owned()
            }
            Meaning::Unused { .. } => "use it, or remove it".to_owned(),
            Meaning::UnusedFactor { factor } => {
                format!("use `${{{factor}}}` in a setting, a workload or the lab, or remove the factor")
            }
            Meaning::WriteHasSetting { setting, .. } => format!("use {setting}, which is checked and put back"),
            Meaning::WrongOperator { allowed, .. } => {
                let allowed: Vec<String> = allowed.iter().map(|operator| format!("`{operator}`")).collect();
                format!("write {}", either(&allowed))
            }
            Meaning::WrongSet { wanted, .. } => format!("use a `let` name of {wanted}"),
            Meaning::WrongTarget { allowed, .. } => format!("it takes {allowed}"),
            Meaning::WrongUnit { near: Some(near), .. } => format!("did you mean `{near}`?"),
            Meaning::WrongUnit { examples, .. } if examples.is_empty() => "write the number without a unit".to_owned(),
            Meaning::WrongUnit { examples, .. } => format!("write {}", either(&quoted(examples))),
        })
    }
}

fn suggestion(near: Option<&str>, known: &[String]) -> Option<String> {
    if let Some(near) = near {
        return Some(format!("did you mean `{near}`?"));
    }
    match known {
        [] => None,
        [only] => Some(format!("there is only `{only}`")),
        known if known.len() <= 30 => Some(format!("there are {}", list(&quoted(known), "and"))),
        _ => Some("see docs/language.md for what there is".to_owned()),
    }
}

fn unit_word(unit: &str) -> String {
    if unit.is_empty() { "a number without unit".to_owned() } else { format!("`{unit}`") }
}

fn quoted(words: &[String]) -> Vec<String> {
    words.iter().map(|word| format!("`{word}`")).collect()
}

fn either(words: &[String]) -> String {
    list(words, "or")
}

fn list(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [all @ .., end] => format!("{} {last} {end}", all.join(", ")),
    }
}
