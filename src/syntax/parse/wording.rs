//! The words in which users hear of grammar rules. Every rule has one: adding a rule without a word does not compile.

use super::Rule;
use crate::diagnostic::MORE;

/// How a rule is named to the writer of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wording {
    /// A word that must stand there as it is.
    Keyword(&'static str),
    /// A mark, or a statement or option by its first word; as it is.
    Mark(&'static str),
    /// A kind of thing, described.
    Thing(&'static str),
}

impl Wording {
    /// For a list of what could stand somewhere: marks and words in backticks.
    pub(super) fn expected(self) -> String {
        match self {
            Wording::Keyword(word) | Wording::Mark(word) => format!("`{word}`"),
            Wording::Thing(description) => description.to_owned(),
        }
    }
}

/// The word for a rule.
pub(super) fn wording(rule: Rule) -> Wording {
    use Wording::{Keyword, Mark, Thing};
    match rule {
        Rule::EOI => Thing("the end of the file"),
        Rule::gap => Thing(MORE),
        // Silent rules: pest never reports them.
        Rule::blank
        | Rule::newline
        | Rule::comment
        | Rule::skip
        | Rule::wrap
        | Rule::pad
        | Rule::name_char
        | Rule::word_char
        | Rule::word_start
        | Rule::cpu_item
        | Rule::cpu_plain
        | Rule::irq_item
        | Rule::irq_of
        | Rule::route_to
        | Rule::metric_item => Thing("white space or a part of a word"),
        Rule::kw_against => Keyword("against"),
        Rule::kw_and => Keyword("and"),
        Rule::kw_as => Keyword("as"),
        Rule::kw_at => Keyword("at"),
        Rule::kw_background => Keyword("background"),
        Rule::kw_balanced => Keyword("balanced"),
        Rule::kw_builtin => Keyword("builtin"),
        Rule::kw_by => Keyword("by"),
        Rule::kw_class => Keyword("class"),
        Rule::kw_columns => Keyword("columns"),
        Rule::kw_compare => Keyword("compare"),
        Rule::kw_control => Keyword("control"),
        Rule::kw_core => Keyword("core"),
        Rule::kw_cpu => Keyword("cpu"),
        Rule::kw_cpus => Keyword("cpus"),
        Rule::kw_default => Keyword("default"),
        Rule::kw_driver => Keyword("driver"),
        Rule::kw_each => Keyword("each"),
        Rule::kw_env => Keyword("env"),
        Rule::kw_every => Keyword("every"),
        Rule::kw_expect => Keyword("expect"),
        Rule::kw_experiment => Keyword("experiment"),
        Rule::kw_fifo => Keyword("fifo"),
        Rule::kw_first => Keyword("first"),
        Rule::kw_from => Keyword("from"),
        Rule::kw_hard_to_change => Keyword("hard_to_change"),
        Rule::kw_hold => Keyword("hold"),
        Rule::kw_in => Keyword("in"),
        Rule::kw_instances => Keyword("instances"),
        Rule::kw_irq => Keyword("irq"),
        Rule::kw_irq_threads => Keyword("irq_threads"),
        Rule::kw_lab => Keyword("lab"),
        Rule::kw_layout => Keyword("layout"),
        Rule::kw_let => Keyword("let"),
        Rule::kw_local => Keyword("local"),
        Rule::kw_margin => Keyword("margin"),
        Rule::kw_matches => Keyword("matches"),
        Rule::kw_max => Keyword("max"),
        Rule::kw_measure => Keyword("measure"),
        Rule::kw_nice => Keyword("nice"),
        Rule::kw_node => Keyword("node"),
        Rule::kw_of => Keyword("of"),
        Rule::kw_on => Keyword("on"),
        Rule::kw_order => Keyword("order"),
        Rule::kw_output => Keyword("output"),
        Rule::kw_over => Keyword("over"),
        Rule::kw_param => Keyword("param"),
        Rule::kw_parse => Keyword("parse"),
        Rule::kw_pci => Keyword("pci"),
        Rule::kw_pilot => Keyword("pilot"),
        Rule::kw_policy => Keyword("policy"),
        Rule::kw_question => Keyword("question"),
        Rule::kw_random => Keyword("random"),
        Rule::kw_ready => Keyword("ready"),
        Rule::kw_recorded => Keyword("recorded"),
        Rule::kw_repeat => Keyword("repeat"),
        Rule::kw_repeated => Keyword("repeated"),
        Rule::kw_report => Keyword("report"),
        Rule::kw_require => Keyword("require"),
        Rule::kw_rotating => Keyword("rotating"),
        Rule::kw_run => Keyword("run"),
        Rule::kw_seed => Keyword("seed"),
        Rule::kw_settle => Keyword("settle"),
        Rule::kw_shell => Keyword("shell"),
        Rule::kw_siblings => Keyword("siblings"),
        Rule::kw_skip => Keyword("skip"),
        Rule::kw_source => Keyword("source"),
        Rule::kw_template => Keyword("template"),
        Rule::kw_threads => Keyword("threads"),
        Rule::kw_timeout => Keyword("timeout"),
        Rule::kw_title => Keyword("title"),
        Rule::kw_to => Keyword("to"),
        Rule::kw_tool => Keyword("tool"),
        Rule::kw_undo => Keyword("undo"),
        Rule::kw_until => Keyword("until"),
        Rule::kw_use => Keyword("use"),
        Rule::kw_vary => Keyword("vary"),
        Rule::kw_warmup => Keyword("warmup"),
        Rule::kw_when => Keyword("when"),
        Rule::kw_within => Keyword("within"),
        Rule::kw_workload => Keyword("workload"),
        Rule::text_dollar => Mark("$${"),
        Rule::intersection => Mark("&"),
        Rule::lparen => Mark("("),
        Rule::rparen => Mark(")"),
        Rule::irq_all | Rule::multiply => Mark("*"),
        Rule::union | Rule::add => Mark("+"),
        Rule::comma => Mark(","),
        Rule::minus | Rule::difference | Rule::subtract => Mark("-"),
        Rule::arrow | Rule::arrow_slip => Mark("->"),
        Rule::divide => Mark("/"),
        Rule::colon => Mark(":"),
        Rule::assign | Rule::assign_slip | Rule::key_slip => Mark("="),
        Rule::as_user => Mark("as"),
        Rule::at => Mark("at"),
        Rule::background => Mark("background"),
        Rule::builtin => Mark("builtin"),
        Rule::by => Mark("by"),
        Rule::columns => Mark("columns"),
        Rule::compare => Mark("compare"),
        Rule::control => Mark("control"),
        Rule::env => Mark("env"),
        Rule::expect => Mark("expect"),
        Rule::experiment => Mark("experiment"),
        Rule::fifo => Mark("fifo"),
        Rule::hard_to_change => Mark("hard_to_change"),
        Rule::hint => Mark("hint"),
        Rule::hold => Mark("hold"),
        Rule::in_directory => Mark("in"),
        Rule::instances => Mark("instances"),
        Rule::isolated => Mark("isolated"),
        Rule::lab_here | Rule::lab_named | Rule::lab => Mark("lab"),
        Rule::layout => Mark("layout"),
        Rule::let_set => Mark("let"),
        Rule::local => Mark("local"),
        Rule::loops => Mark("loop"),
        Rule::margin => Mark("margin"),
        Rule::at_most => Mark("max"),
        Rule::measure => Mark("measure"),
        Rule::nice => Mark("nice"),
        Rule::on_cpus => Mark("on"),
        Rule::online => Mark("online"),
        Rule::order => Mark("order"),
        Rule::param => Mark("param"),
        Rule::parse => Mark("parse"),
        Rule::pilot => Mark("pilot"),
        Rule::policy => Mark("policy"),
        Rule::question => Mark("question"),
        Rule::ready => Mark("ready"),
        Rule::recorded_from | Rule::recorded_rows => Mark("recorded"),
        Rule::repeat_until | Rule::repeat => Mark("repeat"),
        Rule::report => Mark("report"),
        Rule::require => Mark("require"),
        Rule::root => Mark("root"),
        Rule::run => Mark("run"),
        Rule::settle => Mark("settle"),
        Rule::shell => Mark("shell"),
        Rule::skip_when => Mark("skip"),
        Rule::source => Mark("source"),
        Rule::template => Mark("template"),
        Rule::timeout => Mark("timeout"),
        Rule::title => Mark("title"),
        Rule::to => Mark("to"),
        Rule::tool => Mark("tool"),
        Rule::unchanged => Mark("unchanged"),
        Rule::use_file => Mark("use"),
        Rule::vary_levels | Rule::vary_values => Mark("vary"),
        Rule::warmup => Mark("warmup"),
        Rule::within => Mark("within"),
        Rule::workload_here | Rule::workload_named | Rule::workload => Mark("workload"),
        Rule::open => Mark("{"),
        Rule::close => Mark("}"),
        Rule::reference => Thing("`${name}`"),
        Rule::irq_class => Thing("`class`"),
        Rule::topology_unit => Thing("`cpu`, `core`, `cache` or `node`"),
        Rule::irq_driver => Thing("`driver`"),
        Rule::item => Thing("`experiment`, `lab`, `policy`, `workload` or `use`"),
        Rule::direction => Thing("a direction such as `lower_is_better`"),
        Rule::key_value => Thing("`name=value`"),
        Rule::irq_pci => Thing("`pci`"),
        Rule::lab_body => Thing("`{ … }` with options of the lab"),
        Rule::process_body => Thing("`{ … }` with process options"),
        Rule::settings => Thing("`{ … }` with settings"),
        Rule::experiment_body => Thing("`{ … }` with statements"),
        Rule::cpu_list | Rule::cpu_list_blank_slip | Rule::cpu_range => Thing("a CPU list such as `0-3,8`"),
        Rule::cpu_set
        | Rule::cpu_term
        | Rule::siblings
        | Rule::cpu
        | Rule::cpus
        | Rule::core
        | Rule::node
        | Rule::local_to
        | Rule::first_threads
        | Rule::cpu_name => Thing("a CPU set"),
        Rule::pci_address => Thing("a PCI address such as `0000:00:05.0`"),
        Rule::condition => Thing("a condition such as `smt == off`"),
        Rule::device | Rule::irq_device => Thing("a device"),
        Rule::fact => Thing("a fact such as `cpus >= 2`"),
        Rule::file => Thing("a file"),
        Rule::level
        | Rule::level_word
        | Rule::level_ref
        | Rule::level_factor
        | Rule::level_body
        | Rule::expect_side => Thing("a level"),
        Rule::metric_name
        | Rule::metric_segment
        | Rule::metric_ref
        | Rule::metric_expr
        | Rule::metric_product
        | Rule::measured
        | Rule::series => Thing("a metric"),
        Rule::recorded_line => Thing("a metric or a row of numbers"),
        Rule::name | Rule::key => Thing("a name"),
        Rule::cpu_list_slip | Rule::digits | Rule::literal | Rule::number | Rule::irq_number => Thing("a number"),
        Rule::irq_bare_slip => Thing("a pattern in double quotes"),
        Rule::process_option | Rule::process_word => Thing("a process option"),
        Rule::relation => Thing("a relation such as `<=`"),
        Rule::row => Thing("a row of numbers"),
        Rule::setting
        | Rule::setting_name
        | Rule::default_route
        | Rule::irq_threads
        | Rule::undoable_run
        | Rule::route
        | Rule::named_setting => Thing("a setting"),
        Rule::clause
        | Rule::only_item
        | Rule::only_clause
        | Rule::only_setting
        | Rule::only_level
        | Rule::only_options
        | Rule::only_lab_option
        | Rule::only_report_option
        | Rule::only_recorded_line => Thing("a statement"),
        Rule::text_chars | Rule::escape | Rule::bad_escape | Rule::bad_reference => Thing("a text"),
        Rule::text => Thing("a text in double quotes"),
        Rule::unit_word | Rule::unit | Rule::metric_unit | Rule::series_unit => Thing("a unit"),
        Rule::value => Thing("a value"),
        Rule::word => Thing("a word"),
        Rule::argument | Rule::lab_argument => Thing("an argument"),
        Rule::irq_set | Rule::irq_term | Rule::irq_selector | Rule::irq_name => Thing("an interrupt set"),
        Rule::report_option => Thing("an option of `report`"),
        Rule::lab_option => Thing("an option of the lab"),
        Rule::end => Thing("the end of the statement"),
        Rule::level_name => Thing("the name of a level"),
        Rule::parse_metric => Thing("the name of a metric"),
        Rule::target | Rule::each | Rule::random | Rule::rotating | Rule::balanced => Thing("where the interrupts go"),
    }
}
