//! Interrupts moved as the 2.5.52 kernel did (`balance_irq` of `arch/i386/kernel/io_apic.c`): each on its own, at most
//! once a period, to the next CPU it may use, up or down as a coin falls. Pure: knows no file and no clock.
//!
//! Two things the kernel saw from inside cannot be had from outside: whether a CPU had been idle for a while, which it
//! preferred, and the interrupt itself, on whose arrival it moved. So interrupts are told apart by phases of the period
//! instead.

use rand_xoshiro::Xoshiro256StarStar;
use rand_xoshiro::rand_core::{Rng as _, SeedableRng as _};

use crate::bind::{Moving, MovingIrq};
use crate::cpu_set::{Cpu, Irq};

/// Phases of a period at most: so often a period the mover wakes, however many interrupts there are.
const PHASES: u64 = 8;

/// Where every interrupt of a rotating target is, and when it goes on.
#[derive(Debug)]
pub(super) struct Rotation {
    every_ms: u64,
    walkers: Vec<Walker>,
    phases: u64,
    /// The next phase, counted on through all periods; phase 0 is the first one after the release.
    next: u64,
    coin: Xoshiro256StarStar,
}

#[derive(Debug)]
struct Walker {
    irq: Irq,
    cpus: Vec<Cpu>,
    at: usize,
}

impl Rotation {
    /// All interrupts where the trial begins.
    pub(super) fn new(moving: &Moving, seed: u64) -> Self {
        let walker = |moving: &MovingIrq| {
            let cpus: Vec<Cpu> = moving.over.iter().collect();
            let at = cpus.iter().position(|cpu| *cpu == moving.start).unwrap_or(0);
            Walker { irq: moving.irq, cpus, at }
        };
        let walkers: Vec<Walker> = moving.irqs.iter().map(walker).collect();
        let every_ms = moving.every_ms.max(1);
        let phases = PHASES.min(every_ms).min(walkers.len() as u64).max(1);
        Rotation { every_ms, walkers, phases, next: 0, coin: Xoshiro256StarStar::seed_from_u64(seed) }
    }

    /// When something is to be done next, milliseconds after the release.
    pub(super) fn next_ms(&self) -> u64 {
        self.at_ms(self.next)
    }

    /// What is due: each interrupt at most once, however late it is. The kernel did not catch up either.
    pub(super) fn due(&mut self, now_ms: u64) -> Vec<(Irq, Cpu)> {
        let first = self.next;
        while self.next_ms() <= now_ms {
            self.next += 1;
        }
        let due = first..self.next.min(first + self.phases);
        let mut moves = Vec::new();
        for phase in due.map(|phase| phase % self.phases) {
            for index in (phase as usize..self.walkers.len()).step_by(self.phases as usize) {
                let up = self.coin.next_u64() >> 63 == 1;
                let walker = &self.walkers[index];
                let length = walker.cpus.len();
                if length > 1 {
                    let at = (walker.at + if up { 1 } else { length - 1 }) % length;
                    moves.push((walker.irq, walker.cpus[at]));
                }
            }
        }
        moves
    }

    /// A move was made.
    pub(super) fn made(&mut self, irq: Irq, cpu: Cpu) {
        for walker in self.walkers.iter_mut().filter(|walker| walker.irq == irq) {
            walker.at = walker.cpus.iter().position(|known| *known == cpu).unwrap_or(walker.at);
        }
    }

    fn at_ms(&self, phase: u64) -> u64 {
        let (period, phase) = (phase / self.phases, phase % self.phases);
        period * self.every_ms + (phase + 1) * self.every_ms / self.phases
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::bind::Method;
    use crate::cpu_set::CpuSet;

    fn moving(irqs: u32, over: &str, every_ms: u64) -> Moving {
        let over = CpuSet::parse_list(over).unwrap();
        let cpus: Vec<Cpu> = over.iter().collect();
        let irq = |irq: u32| MovingIrq { irq: Irq(irq), over: over.clone(), start: cpus[irq as usize % cpus.len()] };
        Moving { method: Method::Rotating, every_ms, irqs: (0..irqs).map(irq).collect(), cores: Vec::new() }
    }

    /// Runs for `end_ms` as a mover that is never late, and gives the moves with their times.
    fn run(moving: &Moving, end_ms: u64) -> Vec<(u64, Irq, Cpu)> {
        let mut rotation = Rotation::new(moving, 7);
        let mut moves = Vec::new();
        while rotation.next_ms() <= end_ms {
            let now = rotation.next_ms();
            for (irq, cpu) in rotation.due(now) {
                rotation.made(irq, cpu);
                moves.push((now, irq, cpu));
            }
        }
        moves
    }

    #[test]
    fn every_interrupt_moves_once_a_period_at_its_own_time() {
        let moves = run(&moving(4, "0-3", 20), 100);
        for irq in 0..4 {
            let times: Vec<u64> = moves.iter().filter(|(_, moved, _)| moved.0 == irq).map(|(at, ..)| *at).collect();
            let phase = 5 * (u64::from(irq) + 1);
            assert_eq!(times, [phase, phase + 20, phase + 40, phase + 60, phase + 80]);
        }
    }

    #[test]
    fn two_cpus_share_the_time_evenly() {
        let moves = run(&moving(1, "0-1", 10), 1000);
        let cpus: Vec<u32> = moves.iter().map(|(_, _, cpu)| cpu.0).collect();
        assert_eq!(cpus, (0..100).map(|step| (step + 1) % 2).collect::<Vec<u32>>());
    }

    #[test]
    fn busy_interrupts_meet_on_a_cpu_most_of_the_time() {
        // What was wrong with it: four interrupts on four CPUs, and two of them nearly always share one.
        let mut at: BTreeMap<u32, u32> = (0..4).map(|irq| (irq, irq)).collect();
        let (mut shared, mut moves) = (0, 0);
        for (_, irq, cpu) in run(&moving(4, "0-3", 20), 200_000) {
            at.insert(irq.0, cpu.0);
            let mut cpus: Vec<u32> = at.values().copied().collect();
            cpus.sort_unstable();
            cpus.dedup();
            shared += u32::from(cpus.len() < 4);
            moves += 1;
        }
        let share = f64::from(shared) / f64::from(moves);
        assert!((0.7..0.95).contains(&share), "{share}");
    }

    #[test]
    fn a_late_mover_does_not_catch_up() {
        let mut rotation = Rotation::new(&moving(2, "0-3", 10), 1);
        assert_eq!(rotation.due(4), []);
        assert_eq!(rotation.due(1000).len(), 2);
        assert!(rotation.next_ms() > 1000);
    }

    #[test]
    fn one_cpu_gives_nothing_to_do() {
        assert_eq!(run(&moving(3, "5", 10), 1000), []);
    }

    proptest! {
        #[test]
        fn an_interrupt_stays_in_its_set_and_goes_one_step_at_a_time(
            cpus in proptest::collection::btree_set(0_u32..1024, 1..40), irqs in 1_u32..60, every_ms in 1_u64..50,
        ) {
            let over: CpuSet = cpus.iter().copied().map(Cpu).collect();
            let ring: Vec<Cpu> = over.iter().collect();
            let moving = moving(irqs, &over.to_string(), every_ms);
            let mut at: BTreeMap<Irq, Cpu> = moving.irqs.iter().map(|irq| (irq.irq, irq.start)).collect();
            let moves = run(&moving, every_ms * 6);
            let expected = if ring.len() > 1 { 6 * irqs as usize } else { 0 };
            prop_assert_eq!(moves.len(), expected);
            for (_, irq, cpu) in moves {
                let place = |cpu: Cpu| ring.iter().position(|known| *known == cpu).unwrap();
                prop_assert!(over.contains(cpu));
                let step = (place(cpu) + ring.len() - place(at[&irq])) % ring.len();
                prop_assert!(step == 1 || step == ring.len() - 1);
                at.insert(irq, cpu);
            }
        }
    }
}
