//! Findings become a view of plain strings, and the view becomes Markdown. No statistics, no arithmetic in templates.
//!
//! A report depends on its recording alone: no clock, no locale, no path of this machine, a stable order.

use crate::analysis::Findings;
use crate::recording::{End, Header, Trial};

mod build;
mod evidence;
mod facts;
mod files;
mod index;
mod number;
mod render;
mod sentence;
mod tables;
mod text;
mod view;

pub use build::view;
pub use files::{CheckError, check, write};
pub use index::{IndexEntry, index, index_entry};
pub use render::{RenderError, Template, render};
pub use view::{
    CheckView, DesignView, ExpectationView, FileView, MetricView, ReproduceView, RestorationView, Table, VerdictGroup,
    View,
};

/// All a report is made of: a recording taken apart, and what the analysis says of it.
#[derive(Debug, Clone, Copy)]
pub struct Evidence<'a> {
    /// The recording's first line.
    pub header: &'a Header,
    /// Its trials, in the order they ran.
    pub trials: &'a [Trial],
    /// How often an interrupted run was taken up again.
    pub resumed: usize,
    /// Its last line; `None` when the run was cut off.
    pub end: Option<&'a End>,
    /// What the analysis says.
    pub findings: &'a Findings,
}

/// The report of a recording, with the template stored in it where there is one.
pub fn markdown(evidence: Evidence<'_>) -> Result<String, RenderError> {
    let design = &evidence.header.design;
    let name = design.template.as_deref().unwrap_or("template");
    let template = design.template_text.as_deref().map(|text| Template { name, text });
    if let (Some(name), None) = (&design.template, template) {
        return Err(RenderError {
            template: name.clone(),
            line: None,
            problem: "its text is not in the recording; run the experiment again, or take `template` out of it"
                .to_owned(),
        });
    }
    render(&view(evidence), template)
}
