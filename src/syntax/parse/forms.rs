//! The first words that can stand in each place, with the form of what follows: for lists of what is known, for
//! suggestions and for help.

/// First words of one place and their forms, in alphabetical order.
pub(super) type Forms = &'static [(&'static str, &'static str)];

/// The top of a file.
pub(super) const ITEMS: Forms = &[
    ("experiment", "experiment NAME { … }"),
    ("lab", "lab NAME { cpus 2; nic e1000 count=2; … }"),
    ("policy", "policy NAME { … }"),
    ("use", "use \"common.exp\""),
    ("workload", "workload NAME { run \"…\" … }"),
];

/// Statements of an experiment.
pub(super) const STATEMENTS: Forms = &[
    ("background", "background NAME { run \"…\"; loop }"),
    ("compare", "compare FACTOR against LEVEL [by METRIC, …] [margin 2%] [within FACTOR, …]"),
    ("control", "control LEVEL repeated 2"),
    ("expect", "expect METRIC: LEVEL <= 1.03 * LEVEL [within FACTOR, …]"),
    ("hard_to_change", "hard_to_change FACTOR, …"),
    ("hold", "hold { SETTING; … }"),
    ("lab", "lab NAME, or lab [NAME] { … }"),
    ("let", "let NAME = online - cpu 1"),
    ("measure", "measure METRIC [as \"label\"] [lower_is_better], …"),
    ("order", "order blocks [seed 1]"),
    ("param", "param NAME = VALUE"),
    ("question", "question \"…?\""),
    (
        "recorded",
        "recorded { METRIC UNIT lower_is_better, then lines of LEVEL … NUMBER … }, or recorded from \"file.csv\"",
    ),
    ("repeat", "repeat 10, or repeat until METRIC within 1% [pilot 5] [max 30]"),
    ("report", "report { layout NAME; template \"…\" }"),
    ("require", "require cpus >= 2, require irq \"eth0*\", require tool \"fio\" or require root"),
    ("settle", "settle 500ms"),
    ("skip", "skip when FACTOR == LEVEL [and …]"),
    ("source", "source \"…\""),
    ("timeout", "timeout 5min"),
    ("title", "title \"…\""),
    ("vary", "vary NAME { LEVEL { SETTING; … } … }, or vary NAME in VALUE, …"),
    ("warmup", "warmup 1"),
    ("workload", "workload NAME { run \"…\" … }, or workload NAME"),
];

/// Options of a workload or background.
pub(super) const PROCESS_OPTIONS: Forms = &[
    ("as", "as USER"),
    ("at", "at \"user@host\""),
    ("builtin", "builtin NAME [KEY=VALUE …]"),
    ("env", "env KEY=VALUE"),
    ("fifo", "fifo 50"),
    ("in", "in \"DIRECTORY\""),
    ("instances", "instances 4"),
    ("loop", "loop"),
    ("nice", "nice -5"),
    ("on", "on cpu 1"),
    ("parse", "parse fio, or parse regex \"…\" as NAME UNIT lower_is_better"),
    ("ready", "ready when output matches \"…\""),
    ("run", "run \"program argument …\""),
    ("shell", "shell \"…\""),
    ("timeout", "timeout 5min"),
    ("to", "to lab.host"),
];

/// Options of `report`.
pub(super) const REPORT_OPTIONS: Forms = &[("layout", "layout NAME"), ("template", "template \"…\"")];

/// Settings whose first word makes their form; the others are named in a table of `check`.
pub(super) const SETTINGS: Forms = &[
    ("default", "default irq -> SET"),
    ("irq", "irq \"eth0*\" -> TARGET"),
    ("irq_threads", "irq_threads IRQS [fifo=50] [on SET]"),
    ("run", "run \"…\" undo \"…\""),
];

/// Lines of `recorded { … }`.
pub(super) const RECORDED: Forms = &[("columns", "columns low high average [n]")];

/// The form behind a first word.
pub(super) fn form(forms: Forms, word: &str) -> Option<&'static str> {
    forms.iter().find(|(first, _)| *first == word).map(|(_, form)| *form)
}
