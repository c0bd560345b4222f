//! Labs: virtual machines as written. The vocabulary of their options.

use crate::design::Lab;
use crate::diagnostic::{Meaning, Thing};
use crate::source::Span;
use crate::syntax::ast::{Argument, KeyValue, LabOption, Number, TextPart, Value};

use super::scope::Scope;

/// An option of a lab.
pub struct LabOptionForm {
    /// Its first word.
    pub name: &'static str,
    /// How it is written.
    pub form: &'static str,
    /// Words that may follow, each with a number behind it or, where the option wants a model, as the model.
    pub words: &'static [&'static str],
    /// Keys it takes.
    pub keys: &'static [&'static str],
    shape: Shape,
}

/// What stands behind the first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// A model, then keys.
    Model,
    /// Nothing.
    Nothing,
    /// A number, then words with a number each.
    Numbers,
    /// A text.
    Text,
}

/// Every option of a lab.
pub const LAB_OPTIONS: &[LabOptionForm] = &[
    LabOptionForm { name: "boot", form: "boot \"noapic\"", words: &[], keys: &[], shape: Shape::Text },
    LabOptionForm { name: "cores", form: "cores 2", words: SHAPE, keys: &[], shape: Shape::Numbers },
    LabOptionForm { name: "cpu_model", form: "cpu_model \"Haswell\"", words: &[], keys: &[], shape: Shape::Text },
    LabOptionForm {
        name: "cpus",
        form: "cpus 4 sockets 1 cores 2 threads 2",
        words: SHAPE,
        keys: &[],
        shape: Shape::Numbers,
    },
    LabOptionForm {
        name: "disk",
        form: "disk megasas size=1GiB mount=\"/mnt/raid\"",
        words: &["ahci", "megasas", "nvme", "scsi", "virtio"],
        keys: &["count", "mount", "queues", "size"],
        shape: Shape::Model,
    },
    LabOptionForm { name: "kernel", form: "kernel \"6.1.0-18-amd64\"", words: &[], keys: &[], shape: Shape::Text },
    LabOptionForm { name: "link", form: "link", words: &[], keys: &[], shape: Shape::Nothing },
    LabOptionForm { name: "memory", form: "memory 1GiB", words: &[], keys: &[], shape: Shape::Numbers },
    LabOptionForm {
        name: "nic",
        form: "nic e1000 count=2",
        words: &["e1000", "e1000e", "igb", "virtio"],
        keys: &["count", "queues"],
        shape: Shape::Model,
    },
    LabOptionForm { name: "nodes", form: "nodes 2", words: SHAPE, keys: &[], shape: Shape::Numbers },
    LabOptionForm { name: "sockets", form: "sockets 2", words: SHAPE, keys: &[], shape: Shape::Numbers },
    LabOptionForm { name: "threads", form: "threads 2", words: SHAPE, keys: &[], shape: Shape::Numbers },
];

/// Numbers of processors: options, and words behind each other.
pub(super) const SHAPE: &[&str] = &["cpus", "sockets", "cores", "threads", "nodes"];

/// A lab with parameters put in and `${factor}` left as it is.
pub(super) fn lab(scope: &mut Scope<'_>, name: &str, options: &[LabOption], span: Span) -> Lab {
    let mut kept = Vec::new();
    for option in options {
        let Some(form) = LAB_OPTIONS.iter().find(|form| form.name == option.name.value) else {
            scope.unknown(Thing::LabOption, &option.name, LAB_OPTIONS.iter().map(|form| form.name));
            continue;
        };
        if !has_shape(form, &option.arguments) {
            let (name, form) = (option.name.value.clone(), form.form.to_owned());
            scope.fault(option.span.error(Meaning::WrongForm { name, form }));
            continue;
        }
        let arguments: Vec<String> = option.arguments.iter().map(|argument| written(scope, form, argument)).collect();
        kept.push((option.name.value.clone(), arguments));
    }
    Lab { name: name.to_owned(), options: kept, span }
}

/// Names a lab refers to with `${name}`.
pub(super) fn references(options: &[LabOption]) -> Vec<&str> {
    let mut names = Vec::new();
    for argument in options.iter().flat_map(|option| &option.arguments) {
        let (Argument::KeyValue(KeyValue { value, .. }) | Argument::Value(value)) = argument;
        match value {
            Value::Number(Number::Reference(name)) => names.push(name.value.as_str()),
            Value::Text(text) => names.extend(text.parts.iter().filter_map(|part| match part {
                TextPart::Reference(name) => Some(name.value.as_str()),
                TextPart::Literal(_) => None,
            })),
            Value::Number(Number::Literal { .. }) | Value::Word(_) => {}
        }
    }
    names
}

fn has_shape(form: &LabOptionForm, arguments: &[Argument]) -> bool {
    let number = |argument: &Argument| matches!(argument, Argument::Value(Value::Number(_)));
    match (form.shape, arguments) {
        (Shape::Nothing, []) | (Shape::Text, [Argument::Value(Value::Text(_))]) => true,
        (Shape::Model, [Argument::Value(_), rest @ ..]) => {
            rest.iter().all(|argument| matches!(argument, Argument::KeyValue(_)))
        }
        (Shape::Numbers, [first, rest @ ..]) => {
            let pairs = rest.chunks(2);
            let paired = |pair: &[Argument]| matches!(pair, [Argument::Value(Value::Word(_)), n] if number(n));
            number(first) && pairs.into_iter().all(paired)
        }
        _ => false,
    }
}

/// An argument as text; reports words and keys the option does not have.
fn written(scope: &mut Scope<'_>, form: &LabOptionForm, argument: &Argument) -> String {
    match argument {
        Argument::KeyValue(KeyValue { key, value }) => {
            if !form.keys.contains(&key.value.as_str()) {
                scope.unknown(Thing::Option, key, form.keys.iter().copied());
            }
            format!("{}={}", key.value, value_text(scope, value))
        }
        Argument::Value(value) => {
            if let Value::Word(word) = value
                && !form.words.contains(&word.value.as_str())
            {
                scope.wrong_word(&format!("word for `{}`", form.name), word, form.words);
            }
            value_text(scope, value)
        }
    }
}

fn value_text(scope: &mut Scope<'_>, value: &Value) -> String {
    match value {
        Value::Number(Number::Reference(name)) if scope.factors.contains(name.value.as_str()) => {
            scope.used.insert(name.value.clone());
            format!("${{{}}}", name.value)
        }
        Value::Text(text) => {
            let mut whole = String::new();
            for part in &text.parts {
                match part {
                    TextPart::Literal(literal) => whole.push_str(literal),
                    TextPart::Reference(name) if scope.factors.contains(name.value.as_str()) => {
                        scope.used.insert(name.value.clone());
                        whole.push_str("${");
                        whole.push_str(&name.value);
                        whole.push('}');
                    }
                    TextPart::Reference(name) => whole.push_str(&scope.reference(name).unwrap_or_default()),
                }
            }
            whole
        }
        other => scope.value(other).unwrap_or_default(),
    }
}
