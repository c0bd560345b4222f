//! The trials of an experiment in the order they are run.

use crate::design::{Experiment, Order, Repeat, Treatment, order};
use crate::recording::PlannedTrial;

/// Warm-up trials of every treatment, then the trials proper.
pub fn order(experiment: &Experiment) -> Vec<PlannedTrial> {
    order_of(experiment, blocks(experiment))
}

/// The trials that `blocks` blocks have beyond those of the pilot, in the same seed's order.
///
/// One generator runs through all blocks, so that the pilot's order is the beginning of the longer one. Only for
/// `Order::Blocks`; other orders are shuffled as a whole.
pub fn further(experiment: &Experiment, blocks: u32) -> Vec<PlannedTrial> {
    order_of(experiment, blocks).into_iter().skip(order(experiment).len()).collect()
}

fn order_of(experiment: &Experiment, blocks: u32) -> Vec<PlannedTrial> {
    let cells = cells_in_order(experiment, blocks);
    if experiment.needs_boots() {
        return in_boots(experiment, &cells);
    }
    let warmup = (0..experiment.protocol.warmup).flat_map(|_| (0..experiment.treatments.len()).map(|cell| (0, cell)));
    numbered(warmup.chain(cells).map(|(block, cell)| (block, cell, None)))
}

fn numbered(trials: impl IntoIterator<Item = (u32, usize, Option<u32>)>) -> Vec<PlannedTrial> {
    let planned = (0..).zip(trials);
    planned.map(|(number, (block, treatment, boot))| PlannedTrial { number, block, treatment, boot }).collect()
}

/// One boot for each whole plot within a block; in orders without blocks, for each stretch of trials of one whole
/// plot. A machine fresh from its boot is cold, so every boot begins with the warm-up trials of its own treatments.
fn in_boots(experiment: &Experiment, cells: &[(u32, usize)]) -> Vec<PlannedTrial> {
    let plots = whole_plots(experiment);
    let blocked = experiment.protocol.order == Order::Blocks;
    let together = |a: &(u32, usize), b: &(u32, usize)| plots[a.1] == plots[b.1] && (a.0 == b.0 || !blocked);
    let mut trials = Vec::new();
    for (boot, stretch) in (1..).zip(cells.chunk_by(together)) {
        let mut treatments: Vec<usize> = Vec::new();
        for (_, cell) in stretch {
            if !treatments.contains(cell) {
                treatments.push(*cell);
            }
        }
        let warmup = (0..experiment.protocol.warmup).flat_map(|_| treatments.iter().map(|cell| (0, *cell)));
        trials.extend(warmup.chain(stretch.iter().copied()).map(|(block, cell)| (block, cell, Some(boot))));
    }
    numbered(trials)
}

/// Blocks planned at first: all of them, or the pilot.
pub fn blocks(experiment: &Experiment) -> u32 {
    match experiment.protocol.repeat {
        Repeat::Fixed(blocks) => blocks,
        Repeat::Until { pilot, .. } => pilot,
    }
}

/// `(block, treatment)`; in orders without blocks the block is the running repetition of the treatment.
fn cells_in_order(experiment: &Experiment, blocks: u32) -> Vec<(u32, usize)> {
    let protocol = &experiment.protocol;
    let cells = experiment.treatments.len();
    let repetitions = |order: Vec<usize>| {
        let mut seen = vec![0; cells];
        let numbered = order.into_iter().map(|cell| {
            seen[cell] += 1;
            (seen[cell], cell)
        });
        numbered.collect()
    };
    match protocol.order {
        Order::Blocks => {
            let order = order::whole_plots(protocol.seed, &whole_plots(experiment), blocks);
            (1..).zip(order).flat_map(|(block, cells)| cells.into_iter().map(move |cell| (block, cell))).collect()
        }
        Order::Sequential => repetitions(order::sequential(cells, blocks)),
        Order::Shuffled => repetitions(order::shuffled(protocol.seed, cells, blocks)),
    }
}

/// The whole plot of each treatment: one per combination of levels of the hard-to-change factors. A/A copies of a level
/// that is hard to change are set up anew each, or they would not show how far apart two set-ups of the same level are.
fn whole_plots(experiment: &Experiment) -> Vec<usize> {
    let mut plots: Vec<(Vec<usize>, usize)> = Vec::new();
    let hard = |treatment: &Treatment| {
        let levels = treatment.levels.iter().zip(&experiment.factors);
        levels.filter(|(_, factor)| factor.hard_to_change).map(|(level, _)| *level).collect::<Vec<usize>>()
    };
    let copied = |treatment: &Treatment| {
        let hard = |(factor, level): &(usize, usize)| {
            treatment.levels[*factor] == *level && experiment.factors[*factor].hard_to_change
        };
        experiment.controls.iter().any(hard)
    };
    let plot = |treatment: &Treatment| {
        let name = (hard(treatment), if copied(treatment) { treatment.control } else { 0 });
        plots.iter().position(|known| *known == name).unwrap_or_else(|| {
            plots.push(name);
            plots.len() - 1
        })
    };
    experiment.treatments.iter().map(plot).collect()
}

#[cfg(test)]
mod tests {
    use crate::design::order::blocks as block_order;

    #[test]
    fn a_longer_order_begins_with_the_shorter_one() {
        for seed in 0..20 {
            let longer = block_order(seed, 5, 12);
            assert_eq!(block_order(seed, 5, 4), longer[..4]);
        }
    }
}
