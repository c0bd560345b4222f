//! The one look a two-stage run takes: how many blocks the wanted width needs. Sees the spread, never a difference.

use super::planner::two_stage_size;
use super::sides::scale_of;
use super::summary::{mean, variance};
use super::{Scale, values};
use crate::recording::{Decision, Header, Trial};

/// What the protocol's rule makes of the pilot's trials, without time and order; `None` without a rule.
///
/// Stein's size `ceil((t_{.975, n-1} s / d)^2)` of the treatment that needs most, warm-up and invalid trials left out.
/// `s` is the standard deviation of ln values, or sd / mean where a value is not positive.
pub fn decide(header: &Header, trials: &[Trial]) -> Option<Decision> {
    let until = header.design.protocol.until.as_ref()?;
    let pilot: Vec<Trial> = trials.iter().filter(|trial| trial.block <= until.pilot).cloned().collect();
    let valid = values::valid_trials(&pilot);
    let values = values::values(header, &valid);
    let metrics = values.iter().filter(|values| values.id == until.metric || values.declared == until.metric);
    let cells = metrics.flat_map(|metric| {
        metric.cells.iter().enumerate().map(|(treatment, cell)| {
            let cell: Vec<f64> = cell.values().copied().collect();
            let spread = spread(&cell, scale_of(metric));
            let needed = spread.and_then(|spread| two_stage_size(cell.len() as u32, spread, until.within));
            (treatment, cell.len() as u32, spread, needed)
        })
    });
    // A cell whose need cannot be told needs more than any that can.
    let worst = cells.max_by_key(|(_, _, _, needed)| needed.unwrap_or(u32::MAX));
    let (treatment, n, spread, needed) =
        worst.map_or((None, 0, None, None), |(t, n, spread, needed)| (Some(t), n, spread, needed));
    let blocks = needed.unwrap_or(u32::MAX).clamp(until.pilot, until.max.max(until.pilot));
    Some(Decision { at: String::new(), treatment, n, spread, needed, blocks, order: Vec::new() })
}

fn spread(values: &[f64], scale: Scale) -> Option<f64> {
    let spread = match scale {
        Scale::Ratio => variance(&values.iter().map(|value| value.ln()).collect::<Vec<_>>())?.sqrt(),
        Scale::Difference => variance(values)?.sqrt() / mean(values).abs(),
    };
    spread.is_finite().then_some(spread)
}
