//! JSON that a tool prints: the document, its numbers, and what to say when one is not there.

use serde_json::Value;

use super::{Output, json_in, number, quote};

/// The JSON value in standard output; the line that could not be read when there is none.
pub(super) fn document(output: &Output) -> Result<Value, String> {
    let text = &output.stdout;
    if text.trim().is_empty() {
        let said = output.stderr.lines().rev().find(|line| !line.trim().is_empty());
        return Err(format!(
            "expected JSON, but standard output is empty{}",
            match said {
                Some(line) => format!("; standard error ends with {}", quote(line)),
                None => String::new(),
            }
        ));
    }
    if let Some(value) = json_in(text) {
        return Ok(value);
    }
    let start = text.find(['{', '[']).unwrap_or(0);
    let Err(error) = serde_json::from_str::<Value>(&text[start..]) else {
        return Err(format!("expected JSON, found {}", quote(text)));
    };
    let line = text[start..].lines().nth(error.line().saturating_sub(1)).unwrap_or_default();
    let line = if line.trim().is_empty() { text.lines().last().unwrap_or_default() } else { line };
    Err(format!("the JSON cannot be read ({error}): {}", quote(line)))
}

/// A finite number that is not below zero.
pub(super) fn field(parent: &Value, key: &str) -> Result<f64, String> {
    optional(parent, key)?.ok_or_else(|| format!("there is no `{key}` in {}", quote(&parent.to_string())))
}

/// The same, or `None` where the key is absent or null.
pub(super) fn optional(parent: &Value, key: &str) -> Result<Option<f64>, String> {
    let value = match parent.get(key) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(value)) => value.as_f64(),
        Some(Value::String(text)) => number(text),
        Some(_) => None,
    };
    let value = value.filter(|value| *value >= 0.0);
    let wrong = || format!("`{key}` is not a number but {}", quote(&parent[key].to_string()));
    value.map(Some).ok_or_else(wrong)
}

/// A text.
pub(super) fn text<'a>(parent: &'a Value, key: &str) -> Option<&'a str> {
    parent.get(key).and_then(Value::as_str)
}
