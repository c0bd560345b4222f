//! Dots: every value of a metric, one row per treatment, with the mean and its interval.

use super::canvas::{ABOVE, Anchor, BELOW, Canvas, Frame, Hollow, Ink, Scale, cut_apart};
use super::{Centre, Drawn, centre, quantity, treatment};
use crate::analysis::{Cell, MetricFindings};
use crate::report::Evidence;

/// Treatments at most.
const ROWS: usize = 40;

/// Dots in a row at most, and in all: more show nothing more.
const DOTS: usize = 120;
const ALL_DOTS: usize = 1200;

const ROW: f64 = 26.0;
const SIDES: (f64, f64) = (274.0, 28.0);

pub(super) fn draw(evidence: Evidence<'_>, metric: &MetricFindings) -> Option<Drawn> {
    let is_known = |cell: &&Cell| cell.summary.is_some() || cell.published.is_some();
    let cells: Vec<&Cell> = metric.cells.iter().filter(is_known).collect();
    let shown = &cells[..cells.len().min(ROWS)];
    let centres: Vec<Option<Centre>> = shown.iter().map(|cell| centre(cell)).collect();
    let extremes: Vec<f64> = shown.iter().filter_map(|cell| range(cell)).flat_map(|(low, high)| [low, high]).collect();
    let title = format!("{} by treatment", quantity(metric));
    let x = Scale::holding(&extremes, centres.iter().flatten().filter_map(|centre| centre.interval))?;
    let mut canvas = Canvas::new(&Frame {
        heading: &title,
        height: ABOVE + BELOW + ROW * shown.len() as f64,
        sides: SIDES,
        x,
        y: Scale::Steps(shown.len()),
        x_label: &format!("{}{}", quantity(metric), x.remark()),
        y_label: "",
    });
    let (left, ..) = canvas.edges();
    let names: Vec<String> = shown.iter().map(|cell| treatment(evidence, cell.treatment)).collect();
    let cut_names = cut_apart(&names, SIDES.0 - 14.0);
    let most = DOTS.min(ALL_DOTS / shown.len());
    let mut thinned = false;
    for (index, (cell, centre)) in shown.iter().zip(&centres).enumerate() {
        let y = canvas.row(index);
        canvas.label((&names[index], &cut_names[index]), (left - 8.0, y), Anchor::End, Ink::Text);
        let (dots, some) = thin(numbers(cell), most);
        thinned |= some;
        if let Some((low, high)) = range(cell).filter(|_| dots.is_empty()) {
            canvas.line((canvas.x(low), y), (canvas.x(high), y), Ink::Muted, "2 3");
        }
        if let Some(published) = cell.published {
            canvas.marker((canvas.x(published.average), y), 2, Ink::Accent, Hollow::Yes);
        }
        let (Some(summary), Some(centre)) = (cell.summary, centre) else { continue };
        for (number, value) in dots.iter().enumerate() {
            canvas.dot((canvas.x(*value), y - 4.0 - 2.0 * ((number * 3 % 4) as f64)), Ink::Muted);
        }
        if let Some(interval) = centre.interval {
            canvas.interval_x(interval, y + 4.0, Ink::Accent);
        }
        // The mean of one value is that value: a mark of its own would only look like more.
        if summary.n > 1 {
            canvas.marker((canvas.x(centre.value), y + 4.0), 2, Ink::Accent, Hollow::No);
        }
    }
    let thinned = if thinned { format!(", at most {most} of a treatment") } else { String::new() };
    let more = match cells.len() - shown.len() {
        0 => String::new(),
        count => format!("; {count} more treatments in the table"),
    };
    let positive = shown.iter().filter_map(|cell| cell.summary).all(|summary| summary.geometric_mean.is_some());
    let mean = if positive { "geometric mean" } else { "mean (geometric where all values are positive)" };
    let ranges = if shown.iter().any(|cell| cell.values.is_empty()) {
        " Where single values are not known, a dashed line goes from the lowest to the highest value, and a hollow diamond \
         is a published average: neither says how much chance is in it."
    } else {
        ""
    };
    let description = format!(
        "Each dot is one value{thinned}; the diamond is the {mean}, the line through it the 95 % t interval of that mean \
         alone{more}.{ranges} Whether two treatments differ is said by the comparisons, not by overlapping lines."
    );
    Some(Drawn { svg: canvas.finish(&title, &description), title, description })
}

/// Lowest and highest value.
fn range(cell: &Cell) -> Option<(f64, f64)> {
    let published = cell.published.map(|side| (side.low, side.high));
    published.or(cell.summary.map(|summary| (summary.low, summary.high)))
}

fn numbers(cell: &Cell) -> Vec<f64> {
    cell.values.iter().map(|(_, value)| *value).collect()
}

/// Values evenly over their order, the extremes among them, and whether some were left out.
fn thin(mut values: Vec<f64>, most: usize) -> (Vec<f64>, bool) {
    if values.len() <= most {
        return (values, false);
    }
    values.sort_by(f64::total_cmp);
    let last = values.len() - 1;
    ((0..most).map(|dot| values[dot * last / (most - 1)]).collect(), true)
}
