//! Findings become a view of plain strings and pictures, and the view becomes Markdown; the Markdown becomes a page. No
//! statistics, no arithmetic in templates.
//!
//! A report depends on its recording alone: no clock, no locale, no path of this machine, a stable order.

use crate::analysis::Findings;
use crate::recording::Recording;

mod across;
mod build;
mod evidence;
pub mod export;
mod facts;
mod files;
mod index;
mod number;
mod page;
mod pictures;
mod published;
mod render;
mod sentence;
mod tables;
mod text;
mod view;

pub use across::{Beside, across};
pub use build::view;
pub use files::{CheckError, check, check_page, check_pictures, write, write_index, write_page, write_pictures};
pub use index::{IndexEntry, index, index_entry, is_index};
pub use pictures::Picture;
pub use render::{RenderError, Template, render};
pub use view::{
    CheckView, DesignView, ExpectationView, FileView, MetricView, PictureView, PicturesView, ReproduceView,
    RestorationView, Table, VerdictGroup, View,
};

/// All a report is made of.
#[derive(Debug, Clone, Copy)]
struct Evidence<'a> {
    recording: &'a Recording,
    findings: &'a Findings,
}

/// The report of a recording, with the template stored in it where there is one.
pub fn markdown(recording: &Recording, findings: &Findings) -> Result<String, RenderError> {
    let design = &recording.header.design;
    let template = match (&design.template, &design.template_text) {
        (Some(name), Some(text)) => Some(Template { name, text }),
        (Some(name), None) => return Err(RenderError::without_text(name)),
        (None, _) => None,
    };
    render(&view(recording, findings), template)
}

/// The pictures the report refers to, by their names in `plots/`.
pub fn pictures(recording: &Recording, findings: &Findings) -> Vec<Picture> {
    pictures::pictures(Evidence { recording, findings })
}

/// The report as one HTML page that needs no other file, no script and no network.
pub fn html(recording: &Recording, findings: &Findings) -> Result<String, RenderError> {
    let text = markdown(recording, findings)?;
    Ok(page::page(&recording.header.design.title, &text, &pictures(recording, findings)))
}
