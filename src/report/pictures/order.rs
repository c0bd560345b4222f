//! Run order: each value relative to its treatment's mean, in the order trials ran, with the borders of blocks. Drift,
//! a slow start and outliers are seen here.

use super::canvas::{Anchor, Canvas, Frame, Hollow, Ink, SERIES, Scale};
use super::{Drawn, quantity, treatment};
use crate::analysis::MetricFindings;
use crate::recording::Trial;
use crate::report::Evidence;

/// Trials drawn at most, evenly over the run.
const TRIALS: usize = 600;

/// Borders of blocks drawn at most.
const BORDERS: usize = 60;

const SIDES: (f64, f64) = (76.0, 20.0);
const HEIGHT: f64 = 280.0;

pub(super) fn draw(evidence: Evidence<'_>, metric: &MetricFindings) -> Option<Drawn> {
    let mut trials: Vec<&Trial> = evidence.recording.trials.iter().filter(|trial| trial.block > 0).collect();
    trials.sort_by_key(|trial| trial.sequence);
    let step = trials.len().div_ceil(TRIALS).max(1);
    let points: Vec<(usize, &Trial, Option<f64>)> = trials
        .iter()
        .enumerate()
        .filter(|(place, _)| place % step == 0)
        .map(|(place, trial)| (place + 1, *trial, deviation(metric, trial)))
        .collect();
    let y = Scale::around(points.iter().filter_map(|(_, _, value)| *value).chain([0.0]))?;
    if points.iter().filter(|(_, _, value)| value.is_some()).count() < 2 {
        return None;
    }
    let used: Vec<usize> = (0..evidence.recording.header.design.treatments.len())
        .filter(|t| trials.iter().any(|p| p.treatment == *t))
        .collect();
    let told_apart = used.len() <= SERIES;
    let legend = if told_apart { used.as_slice() } else { &[] };
    let title = format!("{} in the order trials ran", quantity(metric));
    let mut canvas = Canvas::new(&Frame {
        heading: &title,
        height: HEIGHT,
        sides: SIDES,
        x: Scale::Linear(0.0, trials.len() as f64 + 1.0),
        y,
        x_label: "trial, in the order they ran",
        y_label: "% from the treatment's mean",
    });
    let (left, right, top, bottom) = canvas.edges();
    let blocks = borders(evidence, &trials);
    for border in &blocks {
        let x = canvas.x(*border);
        canvas.line((x, top), (x, bottom), Ink::Muted, "2 3");
    }
    let zero = canvas.y(0.0);
    canvas.line((left, zero), (right, zero), Ink::Text, "");
    let mut invalid = 0;
    for (place, trial, value) in &points {
        let x = canvas.x(*place as f64);
        let series = used.iter().position(|index| told_apart && *index == trial.treatment).unwrap_or(0);
        if let Some(value) = value {
            canvas.marker((x, canvas.y(*value)), series, Ink::Series(series), Hollow::No);
        } else {
            invalid += 1;
            canvas.text("×", (x, bottom - 6.0), Anchor::Middle, (Ink::Worse, 20.0));
        }
    }
    canvas.legend(legend.iter().map(|index| treatment(evidence, *index)).enumerate());
    let mut description =
        "Each mark is one trial's value in per cent above or below its treatment's mean; without drift they scatter \
         evenly around 0 from left to right."
            .to_owned();
    if !blocks.is_empty() {
        description.push_str(" Dashed lines stand between blocks.");
    }
    if invalid > 0 {
        description.push_str(" A × is a trial without a value.");
    }
    if step > 1 {
        description.push_str(" Of a long run only some trials are drawn, evenly.");
    }
    Some(Drawn { svg: canvas.finish(&title, &description), title, description })
}

/// Per cent from the treatment's mean; `None` for a trial that is not in the analysis.
fn deviation(metric: &MetricFindings, trial: &Trial) -> Option<f64> {
    let cell = metric.cells.iter().find(|cell| cell.treatment == trial.treatment)?;
    if !trial.faults.is_empty() {
        return None;
    }
    let (_, value) = cell.values.iter().find(|(block, _)| *block == trial.block)?;
    let deviation = (value / cell.summary?.mean - 1.0) * 100.0;
    deviation.is_finite().then_some(deviation)
}

/// Places between trials of different blocks; none where blocks are not what the order is made of.
fn borders(evidence: Evidence<'_>, trials: &[&Trial]) -> Vec<f64> {
    if evidence.recording.header.design.protocol.order != "blocks" {
        return Vec::new();
    }
    let pairs = trials.windows(2).enumerate().filter(|(_, pair)| pair[0].block != pair[1].block);
    let borders: Vec<f64> = pairs.map(|(place, _)| place as f64 + 1.5).collect();
    if borders.len() > BORDERS { Vec::new() } else { borders }
}
