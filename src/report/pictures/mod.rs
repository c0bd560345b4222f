//! Pictures of findings as SVG, beside the report. They show what the tables say and conclude nothing of their own.
//!
//! Which pictures there are depends on the findings alone; large experiments get the most important ones.

use super::text::{inline, plain};
use super::view::{PictureView, PicturesView};
use super::{Evidence, build};
use crate::analysis::{Cell, MetricFindings, student};

mod canvas;
mod dots;
mod forest;
mod interaction;
mod landing;
mod order;

/// Folder of the pictures, beside the report.
pub(super) const FOLDER: &str = "plots";

/// Marks every picture as made by this program, so that stale ones can be told from somebody's own files.
pub(super) const MARK: &str = "data-made-by=\"irqlab\"";

/// Metrics that get pictures of their own; compared ones come first.
const METRICS: usize = 6;

/// A picture that stands beside a report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// File name in `plots/`, `forest.svg`.
    pub file: String,
    /// What it is of, plain text.
    pub title: String,
    /// What it shows, in words, plain text.
    pub description: String,
    /// The drawing.
    pub svg: String,
    place: Place,
}

/// The part of the report a picture belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Comparisons,
    Landing,
    Order,
    Results,
}

/// A drawing with its words.
struct Drawn {
    title: String,
    description: String,
    svg: String,
}

/// Every picture of a report, in the order of the report.
pub(super) fn pictures(evidence: Evidence<'_>) -> Vec<Picture> {
    let published = build::published(&evidence.recording.header.design);
    let mut pictures = Vec::new();
    let mut add = |place, kind: &str, metric: Option<&str>, drawn: Option<Drawn>| {
        let Some(Drawn { title, description, svg }) = drawn else { return };
        let file = file_name(kind, metric, &pictures);
        pictures.push(Picture { file, title, description, svg, place });
    };
    add(Place::Comparisons, "forest", None, forest::draw(evidence));
    let metrics = important(evidence);
    for metric in &metrics {
        add(Place::Results, "dots", Some(&metric.id), dots::draw(evidence, metric));
        add(Place::Results, "interaction", Some(&metric.id), interaction::draw(evidence, metric));
    }
    if !published {
        add(Place::Landing, "landing", None, landing::draw(evidence));
        for metric in &metrics {
            add(Place::Order, "order", Some(&metric.id), order::draw(evidence, metric));
        }
    }
    pictures
}

/// The pictures as a template sees them: the one for the hurried reader, and the others by their part of the report.
pub(super) fn view(evidence: Evidence<'_>) -> PicturesView {
    let pictures = pictures(evidence);
    let headline = pictures.first().map(|picture| picture.file.clone());
    let of = |place: Place| {
        let there = pictures.iter().filter(|picture| picture.place == place);
        there.filter(|picture| Some(&picture.file) != headline.as_ref()).map(one).collect()
    };
    PicturesView {
        headline: pictures.first().map(one),
        results: of(Place::Results),
        landing: of(Place::Landing),
        order: of(Place::Order),
    }
}

fn one(picture: &Picture) -> PictureView {
    let path = format!("{FOLDER}/{}", picture.file);
    let alt = inline(&format!("{}. {}", picture.title, picture.description));
    PictureView { markdown: format!("![{alt}]({path})"), path, title: inline(&picture.title), alt }
}

/// Metrics that get pictures: compared ones first, then in the design's order.
fn important(evidence: Evidence<'_>) -> Vec<&MetricFindings> {
    let design = &evidence.recording.header.design;
    let compared = |metric: &MetricFindings| {
        design.comparisons.iter().any(|comparison| comparison.metrics.contains(&metric.id))
            || evidence.findings.comparisons.iter().any(|finding| finding.metric == metric.id)
    };
    let mut metrics: Vec<_> = evidence.findings.metrics.iter().collect();
    metrics.sort_by_key(|metric| !compared(metric));
    metrics.truncate(METRICS);
    metrics
}

/// A name that is safe in a link and in any file system, and that no other picture of the report has.
fn file_name(kind: &str, metric: Option<&str>, others: &[Picture]) -> String {
    let metric: String = metric.unwrap_or_default().chars().take(60).collect();
    let plain = metric.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let stem = std::iter::once(kind).chain(plain).collect::<Vec<_>>().join("-");
    let taken = |name: &String| others.iter().any(|other| other.file.eq_ignore_ascii_case(name));
    let numbered = (2..).map(|number| format!("{stem}-{number}.svg"));
    std::iter::once(format!("{stem}.svg")).chain(numbered).find(|name| !taken(name)).unwrap_or_default()
}

/// A treatment's name as plain text.
fn treatment(evidence: Evidence<'_>, index: usize) -> String {
    let treatment = evidence.recording.header.design.treatments.get(index);
    treatment.map_or_else(|| format!("treatment {index}"), |treatment| plain(&treatment.name))
}

/// A metric's name and unit as plain text.
fn quantity(metric: &MetricFindings) -> String {
    let (label, unit) = (plain(&metric.label), plain(&metric.unit));
    if unit.is_empty() || unit == label { label } else { format!("{label}, {unit}") }
}

/// The centre of a treatment alone.
#[derive(Debug, Clone, Copy)]
struct Centre {
    value: f64,
    interval: Option<(f64, f64)>,
}

/// Geometric mean with its 95 % t interval of ln values, as the ratios have it; where a value is not positive, the mean
/// with its t interval.
fn centre(cell: &Cell) -> Option<Centre> {
    let summary = cell.summary?;
    let values = cell.values.iter().map(|(_, value)| *value);
    let interval = |values: Vec<f64>| student::contrast(&[(1.0, &values)], 0.0)?.interval(0.95);
    let Some(mean) = summary.geometric_mean else {
        return Some(Centre { value: summary.mean, interval: interval(values.collect()) });
    };
    let bounds = interval(values.map(f64::ln).collect()).map(|(low, high)| (low.exp(), high.exp()));
    Some(Centre { value: mean, interval: bounds.filter(|(_, high)| high.is_finite()) })
}
