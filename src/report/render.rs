//! A view and a template become text. Templates cannot read files, see no clock and cannot run for ever.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{Environment, UndefinedBehavior, Value};

use super::view::View;

/// Instructions a template may take, and about 64 bytes of text each: the largest report known takes a hundredth.
const FUEL: u64 = 2_000_000;

/// The templates a user's template may `include`, with the built-in layouts first.
const BUILTIN: [(&str, &str); 6] = [
    ("default.md.j2", include_str!("templates/default.md.j2")),
    ("low_high_average.md.j2", include_str!("templates/low_high_average.md.j2")),
    ("summary.md.j2", include_str!("templates/summary.md.j2")),
    ("results.md.j2", include_str!("templates/results.md.j2")),
    ("evidence.md.j2", include_str!("templates/evidence.md.j2")),
    ("reproduce.md.j2", include_str!("templates/reproduce.md.j2")),
];

/// A template of the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template<'a> {
    /// Path as written in the experiment; only shown in messages.
    pub name: &'a str,
    /// Its text.
    pub text: &'a str,
}

/// A report that could not be rendered. The place is the template's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("template `{template}`{}: {problem}", line.map(|line| format!(", line {line}")).unwrap_or_default())]
pub struct RenderError {
    /// Path of the template as written.
    pub template: String,
    /// One-based line.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub problem: String,
}

impl RenderError {
    pub(super) fn without_text(template: &str) -> Self {
        RenderError {
            template: template.to_owned(),
            line: None,
            problem: "its text is not in the recording; run the experiment again, or take `template` out of it"
                .to_owned(),
        }
    }
}

/// Renders a view with the user's template, or with the layout the experiment asks for.
///
/// The text ends with one newline. A name the view does not have is an error that names it.
pub fn render(view: &View, template: Option<Template<'_>>) -> Result<String, RenderError> {
    let layout = if view.layout == "low_high_average" { "low_high_average.md.j2" } else { "default.md.j2" };
    let name = template.map_or(layout, |template| template.name);
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_debug(true);
    environment.set_fuel(Some(FUEL));
    let explain = |error: &minijinja::Error| explain(name, error);
    let mut syntax = SyntaxConfig::builder();
    environment.set_syntax(syntax.trim_blocks(true).lstrip_blocks(true).build().map_err(|error| explain(&error))?);
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    for (name, text) in BUILTIN {
        environment.add_template(name, text).map_err(|error| explain(&error))?;
    }
    let loaded = match template {
        Some(template) => environment.template_from_named_str(template.name, template.text),
        None => environment.get_template(layout),
    };
    let loaded = loaded.map_err(|error| explain(&error))?;
    let text = loaded.render(Value::from(Serde(view))).map_err(|error| explain(&error))?;
    Ok(format!("{}\n", text.trim_end()))
}

fn explain(template: &str, error: &minijinja::Error) -> RenderError {
    let mut innermost = error;
    while let Some(inner) = std::error::Error::source(innermost).and_then(|source| source.downcast_ref()) {
        innermost = inner;
    }
    let expression = innermost.range().and_then(|range| innermost.template_source()?.get(range));
    let problem = match (innermost.kind(), expression) {
        (minijinja::ErrorKind::UndefinedError, Some(expression)) => {
            format!(
                "`{}` is not defined; the names a template may use are in docs/report_template.md",
                expression.trim()
            )
        }
        (minijinja::ErrorKind::OutOfFuel, _) => {
            "the template runs too long or makes too much text; look for a loop without need".to_owned()
        }
        (minijinja::ErrorKind::TemplateNotFound, _) => format!(
            "{}; a template can include only the built-in ones: {}",
            innermost.detail().unwrap_or("an included template does not exist"),
            BUILTIN.map(|(name, _)| format!("`{name}`")).join(", ")
        ),
        (kind, _) => innermost.detail().map_or_else(|| kind.to_string(), |detail| format!("{kind}: {detail}")),
    };
    RenderError { template: innermost.name().unwrap_or(template).to_owned(), line: innermost.line(), problem }
}
