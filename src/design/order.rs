//! The order of trials: a frozen, versioned algorithm, so that a stored seed means the same order for ever.
//!
//! Knows nothing of factors or settings: cells are indices. Any change of the numbers that come out changes
//! [`ORDER_VERSION`].

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// Version of the algorithm, stored beside the seed.
///
/// Version 1: xoshiro256** whose state is four outputs of `SplitMix64(seed)` (Blackman and Vigna); numbers below `n`
/// by Lemire's multiply-shift with rejection (ACM TOMACS 29, 2019); Fisher-Yates from the last place down; one
/// generator through all blocks.
pub const ORDER_VERSION: u32 = 1;

/// Randomised complete blocks: each block holds every cell once, in its own random order.
pub fn blocks(seed: u64, cells: usize, blocks: u32) -> Vec<Vec<usize>> {
    whole_plots(seed, &vec![0; cells], blocks)
}

/// Randomised complete blocks with whole plots (split plot).
///
/// `plots[cell]` names the whole plot of a cell: one combination of levels that are hard to change. In every block the
/// whole plots come in random order, and inside each its cells do, so that one change serves all cells of the plot. The
/// plots are shuffled starting from the order of their first cells. With one plot this is [`blocks`].
///
/// A plot that ends one block may begin the next. It has to be set up anew there (booted again), or both blocks share
/// its error and are no longer independent.
pub fn whole_plots(seed: u64, plots: &[usize], blocks: u32) -> Vec<Vec<usize>> {
    let mut generator = Xoshiro256StarStar::seed_from_u64(seed);
    let mut names: Vec<usize> = Vec::new();
    for plot in plots {
        if !names.contains(plot) {
            names.push(*plot);
        }
    }
    (0..blocks)
        .map(|_| {
            let mut order = names.clone();
            shuffle(&mut order, &mut generator);
            order
                .into_iter()
                .flat_map(|plot| {
                    let mut cells: Vec<usize> = (0..plots.len()).filter(|cell| plots[*cell] == plot).collect();
                    shuffle(&mut cells, &mut generator);
                    cells
                })
                .collect()
        })
        .collect()
}

/// A completely randomised order without blocks: `repeats` trials of every cell, shuffled as one list.
///
/// The k-th trial of a cell is its k-th repetition.
pub fn shuffled(seed: u64, cells: usize, repeats: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..repeats).flat_map(|_| 0..cells).collect();
    shuffle(&mut order, &mut Xoshiro256StarStar::seed_from_u64(seed));
    order
}

/// All trials of one cell, then all of the next. Drift cannot be told from effect in it, so no verdict is drawn.
pub fn sequential(cells: usize, repeats: u32) -> Vec<usize> {
    (0..cells).flat_map(|cell| (0..repeats).map(move |_| cell)).collect()
}

/// Fisher-Yates, i = n-1 .. 1, j below i + 1.
fn shuffle(items: &mut [usize], generator: &mut Xoshiro256StarStar) {
    for i in (1..items.len()).rev() {
        let j = below(i as u64 + 1, generator);
        items.swap(i, j as usize);
    }
}

/// A number below `n` without bias.
fn below(n: u64, generator: &mut Xoshiro256StarStar) -> u64 {
    let rejected = n.wrapping_neg() % n;
    loop {
        let product = u128::from(generator.next_u64()) * u128::from(n);
        if product as u64 >= rejected {
            return (product >> 64) as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(id: &str) -> serde_json::Value {
        let vectors: serde_json::Value = serde_json::from_str(include_str!("../../tests/stat_vectors.json")).unwrap();
        let cases = vectors["cases"].as_array().unwrap();
        cases.iter().find(|case| case["id"] == id).unwrap().clone()
    }

    #[test]
    fn the_generator_is_the_reference_generator() {
        let case = vector("order.xoshiro256ss");
        let mut generator = Xoshiro256StarStar::seed_from_u64(case["input"]["seed"].as_u64().unwrap());
        for expected in case["expect"].as_array().unwrap() {
            assert_eq!(generator.next_u64().to_string(), expected.as_str().unwrap());
        }
        let seeds = vector("order.splitmix64");
        let words: Vec<u64> = seeds["expect"].as_array().unwrap()[..4]
            .iter()
            .map(|word| word.as_str().unwrap().parse().unwrap())
            .collect();
        let mut from_words = Xoshiro256StarStar::from_seed({
            let mut bytes = [0; 32];
            for (chunk, word) in bytes.chunks_exact_mut(8).zip(&words) {
                chunk.copy_from_slice(&word.to_le_bytes());
            }
            bytes
        });
        let mut from_seed = Xoshiro256StarStar::seed_from_u64(seeds["input"]["seed"].as_u64().unwrap());
        for _ in 0..5 {
            assert_eq!(from_seed.next_u64(), from_words.next_u64());
        }
    }

    #[test]
    fn blocks_match_the_frozen_order() {
        let case = vector("order.rcbd");
        let expected: Vec<Vec<usize>> = serde_json::from_value(case["expect"].clone()).unwrap();
        assert_eq!(blocks(42, 8, 3), expected);
    }

    #[test]
    fn every_block_holds_every_cell_once() {
        for seed in 0..50 {
            for mut block in whole_plots(seed, &[0, 1, 0, 1, 2], 4) {
                block.sort_unstable();
                assert_eq!(block, [0, 1, 2, 3, 4]);
            }
        }
        assert!(blocks(1, 0, 2).iter().all(Vec::is_empty));
        assert!(blocks(1, 3, 0).is_empty());
    }

    #[test]
    fn a_whole_plot_is_set_up_once_in_a_block() {
        let plots = [0, 0, 1, 1, 0, 2];
        let mut first = Vec::new();
        for seed in 0..40 {
            for block in whole_plots(seed, &plots, 3) {
                let mut visited: Vec<usize> = block.iter().map(|cell| plots[*cell]).collect();
                visited.dedup();
                assert_eq!(visited.len(), 3, "{block:?}");
                first.push(visited[0]);
            }
        }
        for plot in 0..3 {
            assert!(first.iter().filter(|first| **first == plot).count() > 20, "plots come in random order");
        }
    }

    #[test]
    fn shuffled_and_sequential_repeat_every_cell() {
        let order = shuffled(7, 3, 4);
        assert_ne!(order, sequential(3, 4));
        let mut sorted = order;
        sorted.sort_unstable();
        assert_eq!(sorted, sequential(3, 4));
        assert_eq!(sequential(2, 3), [0, 0, 0, 1, 1, 1]);
    }

    #[test]
    fn places_are_taken_evenly() {
        let mut counts = [[0_u32; 3]; 3];
        for block in blocks(11, 3, 3000) {
            for (place, cell) in block.into_iter().enumerate() {
                counts[place][cell] += 1;
            }
        }
        assert!(counts.iter().flatten().all(|count| (900..1100).contains(count)), "{counts:?}");
    }
}
