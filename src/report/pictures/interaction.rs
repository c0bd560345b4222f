//! Interaction of two factors: means over the levels of one, a line for each level of the other. Parallel lines: the
//! effect of one factor does not depend on the other.

use super::super::text::plain;
use super::canvas::{Anchor, Canvas, Frame, Hollow, Ink, SERIES, Scale, cut_apart};
use super::{Centre, Drawn, centre, quantity};
use crate::analysis::MetricFindings;
use crate::report::Evidence;

/// Levels along the axis at most.
const LEVELS: usize = 12;

const SIDES: (f64, f64) = (92.0, 20.0);
const HEIGHT: f64 = 300.0;
pub(super) fn draw(evidence: Evidence<'_>, metric: &MetricFindings) -> Option<Drawn> {
    let design = &evidence.recording.header.design;
    let [first, second] = design.factors.as_slice() else { return None };
    // The factor with more levels lies along the axis, so that there are few lines.
    let across = usize::from(second.levels.len() > first.levels.len());
    let (axis, lines) = if across == 0 { (first, second) } else { (second, first) };
    let few = (2..=LEVELS).contains(&axis.levels.len()) && (2..=SERIES).contains(&lines.levels.len());
    if !few {
        return None;
    }
    let mean = |level: usize, line: usize| {
        let wanted = if across == 0 { [level, line] } else { [line, level] };
        let treatment = design.treatments.iter().position(|t| t.control == 0 && t.levels == wanted)?;
        let cell = metric.cells.iter().find(|cell| cell.treatment == treatment)?;
        centre(cell)
    };
    let means: Vec<Vec<Option<Centre>>> =
        (0..lines.levels.len()).map(|line| (0..axis.levels.len()).map(|level| mean(level, line)).collect()).collect();
    let all = || means.iter().flatten().flatten();
    let values: Vec<f64> = all().map(|mean| mean.value).collect();
    let y = Scale::holding(&values, all().filter_map(|mean| mean.interval))?;
    let (axis_name, lines_name) = (plain(&axis.name), plain(&lines.name));
    let title = format!("{} by {axis_name} and {lines_name}", quantity(metric));
    let mut canvas = Canvas::new(&Frame {
        heading: &title,
        height: HEIGHT,
        sides: SIDES,
        x: Scale::Steps(axis.levels.len()),
        y,
        x_label: &axis_name,
        y_label: &format!("{}{}", quantity(metric), y.remark()),
    });
    let (left, right, _, bottom) = canvas.edges();
    let column = (right - left) / axis.levels.len() as f64;
    let names: Vec<String> = axis.levels.iter().map(|name| plain(name)).collect();
    for (level, shown) in cut_apart(&names, column - 6.0).iter().enumerate() {
        let x = canvas.x(level as f64 + 0.5);
        canvas.label((&names[level], shown), (x, bottom + 14.0), Anchor::Middle, Ink::Text);
    }
    for (line, means) in means.iter().enumerate() {
        // A little apart, so that one interval does not hide another.
        let shift = (line as f64 - (lines.levels.len() - 1) as f64 / 2.0) * 10.0;
        let ink = Ink::Series(line);
        let places: Vec<(f64, Centre)> = (means.iter().enumerate())
            .filter_map(|(level, mean)| Some((canvas.x(level as f64 + 0.5) + shift, (*mean)?)))
            .collect();
        canvas.path(places.iter().map(|(x, mean)| (*x, canvas.y(mean.value))).collect(), ink);
        for (x, mean) in places {
            if let Some(interval) = mean.interval {
                canvas.interval_y(x, interval, ink);
            }
            canvas.marker((x, canvas.y(mean.value)), line, ink, Hollow::No);
        }
    }
    let names = lines.levels.iter().map(|level| format!("{lines_name}={}", plain(level)));
    canvas.legend(names.enumerate());
    let description = format!(
        "Means as in the dots with 95 % t intervals, a line for each level of {lines_name}. Lines that are not parallel show that the \
         effect of {axis_name} depends on {lines_name}; whether more than chance makes them so, the picture does not say."
    );
    Some(Drawn { svg: canvas.finish(&title, &description), title, description })
}
