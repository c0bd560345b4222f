//! `require` clauses held against a host and the caller.

use std::collections::BTreeSet;

use super::irqs;
use crate::design::{Experiment, Relation, Requirement, RequirementKind};
use crate::diagnostic::{Diagnostic, Kind};
use crate::recording::HostFacts;
use crate::recording::facts::Movability;

/// What is known of the process that wants to run an experiment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Caller {
    /// Effective user id 0.
    pub root: bool,
    /// Programs asked for that are on `PATH`.
    pub tools: BTreeSet<String>,
}

/// The requirements this host or caller does not meet.
pub fn unmet(experiment: &Experiment, facts: &HostFacts, caller: &Caller) -> Vec<Diagnostic> {
    experiment.requirements.iter().filter_map(|requirement| judge(requirement, facts, caller)).collect()
}

/// Programs that `require tool` names.
pub fn required_tools(experiment: &Experiment) -> impl Iterator<Item = &str> {
    experiment.requirements.iter().filter_map(|requirement| match &requirement.kind {
        RequirementKind::Tool(tool) => Some(tool.as_str()),
        _ => None,
    })
}

fn judge(requirement: &Requirement, facts: &HostFacts, caller: &Caller) -> Option<Diagnostic> {
    let (message, help) = match &requirement.kind {
        RequirementKind::Fact { fact, relation, value } => {
            let Some(found) = number(fact, facts) else {
                let message = format!("this host does not tell its {fact}");
                return Some(failed(requirement, message, "run it on another host"));
            };
            if holds(found, *relation, *value) {
                return None;
            }
            let symbol = symbol(*relation);
            (
                format!("this host has {fact} = {found}, and {fact} {symbol} {value} is required"),
                "run it on a host that has",
            )
        }
        RequirementKind::Irq(selector) => {
            let words = irqs::words(selector);
            let found = match irqs::resolve(selector, facts) {
                Ok(found) => found,
                Err(unresolved) => return Some(failed(requirement, unresolved.message, &unresolved.help)),
            };
            if found.is_empty() {
                (format!("no interrupt of this host matches `{words}`"), "`irqlab irqs` lists what it has")
            } else {
                let movable = |irq: &&crate::cpu_set::Irq| {
                    facts.irq(**irq).is_some_and(|irq| irq.movability == Movability::Movable)
                };
                let fixed = found.iter().filter(|irq| !movable(irq)).map(|irq| irq.0);
                let fixed = crate::cpu_set::to_list(fixed);
                if fixed.is_empty() {
                    return None;
                }
                (format!("irq {fixed} of `{words}` cannot be moved here"), "`irqlab irqs` says why")
            }
        }
        RequirementKind::Root if caller.root => return None,
        RequirementKind::Root => ("root is required".to_owned(), "run it with sudo"),
        RequirementKind::Tool(tool) if caller.tools.contains(tool) => return None,
        RequirementKind::Tool(tool) => (format!("the program `{tool}` is not on PATH"), "install it"),
    };
    Some(failed(requirement, message, help))
}

fn failed(requirement: &Requirement, message: String, help: &str) -> Diagnostic {
    requirement.span.error(Kind::HostCannot { message, help: help.to_owned() })
}

/// The numeric facts `require` knows; `check` refuses other names.
fn number(fact: &str, facts: &HostFacts) -> Option<f64> {
    let topology = &facts.topology;
    match fact {
        "cpus" => Some(topology.online.len() as f64),
        "cores" => {
            let cores: BTreeSet<_> = topology.cpus.iter().map(|cpu| (cpu.package, cpu.core)).collect();
            Some(cores.len() as f64)
        }
        "memory" => facts.memory_bytes.map(|bytes| bytes as f64),
        "nodes" => Some(topology.nodes.len() as f64),
        _ => None,
    }
}

fn symbol(relation: Relation) -> &'static str {
    match relation {
        Relation::Equal => "==",
        Relation::Greater => ">",
        Relation::GreaterOrEqual => ">=",
        Relation::Less => "<",
        Relation::LessOrEqual => "<=",
        Relation::NotEqual => "!=",
    }
}

fn holds(found: f64, relation: Relation, value: f64) -> bool {
    match relation {
        #[expect(clippy::float_cmp, reason = "both are whole numbers the user wrote or the kernel counted")]
        Relation::Equal => found == value,
        Relation::Greater => found > value,
        Relation::GreaterOrEqual => found >= value,
        Relation::Less => found < value,
        Relation::LessOrEqual => found <= value,
        #[expect(clippy::float_cmp, reason = "both are whole numbers the user wrote or the kernel counted")]
        Relation::NotEqual => found != value,
    }
}
