//! The balancer on made-up loads.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

fn set(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

/// Cores as lists, every interrupt of `irqs` allowed everywhere, period one second.
fn board(cores: &[&str], irqs: &[u32]) -> Board {
    let cores: Vec<CpuSet> = cores.iter().map(|core| set(core)).collect();
    let all = cores.iter().fold(CpuSet::new(), |all, core| all.union(core));
    Board::of(cores, irqs.iter().map(|irq| (Irq(*irq), all.clone())).collect(), 1000)
}

/// Loads of one interval as `(irq, cpu, interrupts)`; each interrupt is where its load is.
fn look(board: &Board, loads: &[(u32, u32, u64)], interval_ms: u64) -> (Vec<(u32, u32)>, u64) {
    let mut now = Counts::new();
    let mut at = BTreeMap::new();
    for (irq, cpu, count) in loads {
        now.entry(Irq(*irq)).or_default().insert(Cpu(*cpu), *count);
        if board.over.contains_key(&Irq(*irq)) {
            at.insert(Irq(*irq), Cpu(*cpu));
        }
    }
    let decision = decide(board, (&Counts::new(), &now), &at, interval_ms);
    (decision.moves.iter().map(|(irq, cpu)| (irq.0, cpu.0)).collect(), decision.interval_ms)
}

#[test]
fn the_largest_that_fits_into_half_the_difference_goes_to_the_lightest_core() {
    let four = ["0", "1", "2", "3"];
    for (loads, moves, why) in [
        // CPU 0 has 9000, the others nothing: room for less than 4500.
        (vec![(10, 0, 4000), (11, 0, 3000), (12, 0, 2000)], vec![(10, 1)], "the largest below the room"),
        (vec![(10, 0, 5000), (11, 0, 3000), (12, 0, 1000)], vec![(11, 1)], "5000 would go over the room of 4500"),
        (vec![(10, 0, 8000), (11, 0, 1000), (12, 1, 500)], vec![(11, 2)], "to a core without any, not to CPU 1"),
        (vec![(10, 0, 8000), (11, 1, 3000), (12, 1, 2000)], vec![(12, 2)], "nothing fits from CPU 0, so CPU 1 is next"),
        (vec![(10, 0, 4000), (11, 1, 3900), (12, 2, 3800), (13, 3, 3700)], vec![], "within an eighth: not worth it"),
        (vec![(10, 0, 109), (11, 0, 109)], vec![], "slower than the clock: not looked at"),
        (vec![], vec![], "no load at all"),
    ] {
        assert_eq!(look(&board(&four, &[10, 11, 12, 13]), &loads, 1000).0, moves, "{why}");
    }
}

#[test]
fn it_goes_to_the_less_loaded_thread_of_the_lightest_core() {
    // Cores of threads 0,2 and 1,3. Core 1 has 600, all of it on CPU 1.
    let board = board(&["0,2", "1,3"], &[10, 11, 12]);
    assert_eq!(look(&board, &[(10, 0, 4000), (11, 2, 1500), (12, 1, 600)], 1000).0, [(11, 3)]);
    assert_eq!(look(&board, &[(10, 0, 4000), (11, 2, 1500), (12, 3, 600)], 1000).0, [(11, 1)]);
}

#[test]
fn threads_of_one_core_count_together() {
    // Each CPU alone would be lighter than CPU 1; as a core 0,2 is the heavier one, and 11 fits.
    let board = board(&["0,2", "1"], &[10, 11, 12]);
    assert_eq!(look(&board, &[(10, 0, 2000), (11, 2, 800), (12, 1, 1000)], 1000).0, [(11, 1)]);
}

#[test]
fn few_heavy_ones_that_fit_nowhere_take_turns() {
    let board = board(&["0", "1", "2"], &[10, 11]);
    assert_eq!(look(&board, &[(10, 0, 9000)], 1000).0, [(10, 1)]);
    assert_eq!(look(&board, &[(10, 2, 9000)], 1000).0, [(10, 0)]);
    assert_eq!(look(&board, &[(10, 0, 9000), (11, 1, 9000)], 1000).0, [(10, 1), (11, 2)]);
}

#[test]
fn equal_ones_on_one_core_part() {
    // The patch would have sent both to CPU 1, and on together for ever.
    let board = board(&["0", "1", "2"], &[10, 11]);
    assert_eq!(look(&board, &[(10, 0, 9000), (11, 0, 9000)], 1000).0, [(10, 1), (11, 2)]);
}

#[test]
fn two_busy_ones_part_where_the_patch_was_content() {
    // Nothing of CPU 0 fits; CPU 1 is the next heavy one, and too light for the patch to go on.
    let board = board(&["0", "1", "2", "3"], &[10, 11, 12]);
    let (moves, _) = look(&board, &[(10, 0, 9000), (11, 0, 9000), (12, 1, 150)], 1000);
    let after: BTreeSet<u32> = moves.iter().map(|(_, cpu)| *cpu).collect();
    assert_eq!((moves.len(), after.len()), (3, 3), "{moves:?}");
}

#[test]
fn an_interrupt_never_leaves_its_set_and_a_smaller_one_goes_instead() {
    let mut board = board(&["0", "1"], &[10, 11, 12]);
    board.over.insert(Irq(12), set("0"));
    assert_eq!(look(&board, &[(10, 0, 3000), (11, 0, 2000), (12, 0, 4000)], 1000).0, [(10, 1)]);
}

#[test]
fn others_weigh_but_are_not_moved() {
    // irq 99 is nobody's here: 10 leaves the core it is on.
    let board = board(&["0", "1"], &[10]);
    assert_eq!(look(&board, &[(99, 0, 9000), (10, 0, 3000)], 1000).0, [(10, 1)]);
    assert_eq!(look(&board, &[(99, 0, 9000)], 1000).0, []);
}

#[test]
fn it_looks_sooner_after_a_move_and_later_without_one() {
    let board = board(&["0", "1"], &[10, 11]);
    let (busy, idle) = ([(10, 0, 9000), (11, 0, 4000)], []);
    for (interval, moved, rested) in [(5000, 4000, 5000), (1300, 500, 1400), (500, 500, 600), (4950, 3950, 5000)] {
        assert_eq!(look(&board, &busy, interval).1, moved);
        assert_eq!(look(&board, &idle, interval).1, rested);
    }
}

#[test]
fn a_counter_that_wraps_goes_on_and_one_that_falls_is_no_load() {
    assert_eq!(step(4_294_967_290, 12), 18);
    assert_eq!(step(5_000_000, 12), 0);
    assert_eq!(step(5, 12), 7);
}

/// Hosts with threads or without, holes in the numbering and several sizes.
fn boards() -> impl Strategy<Value = Board> {
    (1_u32..40, 1_u32..=2, proptest::collection::btree_set(0_u32..80, 0..30), 1_u32..30).prop_map(
        |(cores, threads, gone, irqs)| {
            let core = |core: u32| -> CpuSet {
                let cpus = (0..threads).map(|thread| core + thread * cores);
                cpus.filter(|cpu| !gone.contains(cpu)).map(Cpu).collect()
            };
            let mut cores: Vec<CpuSet> = (0..cores).map(core).filter(|core| !core.is_empty()).collect();
            if cores.is_empty() {
                cores.push(set("0"));
            }
            let all = cores.iter().fold(CpuSet::new(), |all, core| all.union(core));
            Board::of(cores, (0..irqs).map(|irq| (Irq(irq), all.clone())).collect(), 1000)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn steady_busy_ones_part_wherever_there_is_a_core_for_each(
        board in boards(), rates in proptest::collection::vec(0_u64..20_000, 40),
    ) {
        let first = board.cores[0].first().unwrap();
        let mut at: BTreeMap<Irq, Cpu> = board.over.keys().map(|irq| (*irq, first)).collect();
        let (mut counts, mut interval) = (Counts::new(), 1000);
        let mut crowded = 0;
        for _ in 0..80 {
            let mut now = counts.clone();
            for (irq, cpu) in &at {
                *now.entry(*irq).or_default().entry(*cpu).or_default() += rates[irq.0 as usize] * interval / 1000;
            }
            let loads = Loads::of(&board, (&counts, &now), threshold(interval));
            crowded = if is_crowded(&board, &loads, &at) { crowded + 1 } else { 0 };
            prop_assert!(crowded <= board.over.len(), "two busy ones stay on one core while another has none");
            let decision = decide(&board, (&counts, &now), &at, interval);
            for (irq, cpu) in decision.moves {
                prop_assert!(board.over[&irq].contains(cpu) && board.core_of(cpu).is_some());
                prop_assert!(loads.is_busy(irq), "an idle interrupt is left alone");
                at.insert(irq, cpu);
            }
            (counts, interval) = (now, decision.interval_ms);
            prop_assert!((500..=5000).contains(&interval));
        }
    }
}
