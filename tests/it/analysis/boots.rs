//! Boots as whole plots: what shares a boot is not taken for independent, and what two boots served is no pair.

use irqlab::analysis::{Flag, NoInference, Verdict, Warning};
use irqlab::cpu_set::{CpuSet, Irq};
use irqlab::recording::{Boot, BootOption, IrqList, MaskGroup};

use super::recordings::{Recording, boot, experiment, in_boots, row};

/// Deterministic noise in [-0.5, 0.5), the same in the reference computation.
fn noise(k: u32) -> f64 {
    let k = u64::from(k);
    ((k * 7919 + 104_729) * (k * 31 + 17) % 1009) as f64 / 1009.0 - 0.5
}

const THROUGHPUT: &[(&str, &[&str])] =
    &[("smt", &["off", "on"]), ("nics", &["1", "2"]), ("balancing", &["none", "rotating", "kirq"])];

/// smt x nics make whole plots, each a boot with an error of its own twenty times that of a trial.
fn throughput(factor: usize) -> Recording {
    let recording = experiment(THROUGHPUT, "blocks", 5).design(|design| {
        design.factors[0].hard_to_change = true;
        design.factors[1].hard_to_change = true;
        design.comparisons[0].factor = factor;
    });
    in_boots(recording.filled(|treatment, block, _| {
        let treatment = u32::try_from(treatment).unwrap();
        let (smt, nics, balancing) = (treatment / 6, treatment / 3 % 2, treatment % 3);
        let boot = 0.08 * noise(1000 + block * 4 + treatment / 3);
        let effects = 0.03 * f64::from(smt) + 0.2 * f64::from(nics) + 0.01 * f64::from(balancing);
        (0.1 * noise(block) + boot + effects + 0.004 * noise(block * 100 + treatment * 7 + 3)).exp()
    }))
}

#[track_caller]
fn close(actual: Option<f64>, expected: f64) {
    let actual = actual.unwrap();
    assert!((actual - expected).abs() <= 1e-6 * expected.abs(), "{actual} instead of {expected}");
}

#[test]
fn each_comparison_has_the_error_term_of_its_own_stratum() {
    // Reference: sums of squares of the whole-plot means against block x factor, and paired t tests over blocks, by numpy
    // and scipy on the same numbers. A pooled residual would give 3.6e-7 for smt.
    let p = |factor: usize| throughput(factor).analyse().comparisons.iter().map(|found| found.p).collect::<Vec<_>>();
    close(p(0)[0], 0.006_402_340_764_785_813);
    close(p(1)[0], 4.640_946_665_643_424e-5);
    let within = p(2);
    close(within[0], 2.172_435_599_816_549e-6);
    close(within[1], 3.271_771_729_815_066_3e-7);
}

#[test]
fn blocks_that_share_a_boot_are_one_for_what_differs_between_boots() {
    let mut recording = throughput(0);
    // The machines of block 1 went on into block 2: the same boots under the numbers planned there.
    for plot in 0..4 {
        let id = recording.header.boots[plot].boot_id.clone();
        let name = recording.trials.iter().find(|trial| trial.boot == Some(recording.header.boots[plot].number));
        let cells = name.unwrap().treatment / 3;
        let other = recording.trials.iter().find(|trial| trial.block == 2 && trial.treatment / 3 == cells).unwrap();
        let number = other.boot;
        recording.header.boots.iter_mut().find(|boot| Some(boot.number) == number).unwrap().boot_id = id;
    }
    let findings = recording.analyse();
    assert_eq!(findings.comparisons[0].n, (4, 4));
    close(findings.comparisons[0].p, 0.013_152_015_667_050_834);
    assert!(findings.warnings.contains(&Warning::BlocksShareBoot { blocks: vec![1, 2] }), "{:?}", findings.warnings);
    // Within boots nothing changes: the boot is on both sides.
    let within = recording.design(|design| design.comparisons[0].factor = 2).analyse();
    assert_eq!(within.comparisons[0].n, (5, 5));
}

#[test]
fn one_boot_per_level_gives_no_error_term_whatever_was_planned() {
    let mut recording = throughput(0);
    for boot in 0..recording.header.boots.len() {
        let number = recording.header.boots[boot].number;
        let trial = recording.trials.iter().find(|trial| trial.boot == Some(number)).unwrap();
        recording.header.boots[boot].boot_id = Some(format!("plot {}", trial.treatment / 3));
    }
    let finding = recording.comparison();
    assert_eq!(finding.verdict, Verdict::NoInference(NoInference::WholePlotUnreplicated));
    assert_eq!((finding.p, finding.p_holm, finding.estimate), (None, None, None));
    let within = recording.design(|design| design.comparisons[0].factor = 2).analyse();
    assert!(within.comparisons.iter().all(|finding| finding.p.is_some()), "{:?}", within.comparisons);
}

#[test]
fn a_pair_that_two_boots_served_is_left_out_within_boots_and_said() {
    // The machine of block 3 died once; the rest of one whole plot ran in another boot.
    let mut recording = throughput(2).design(|design| design.comparisons[0].within = vec![0, 1]);
    let split = recording.trials.iter().position(|trial| trial.block == 3 && trial.treatment == 1).unwrap();
    let planned = recording.trials[split].boot.unwrap();
    recording.header.boots.push(Boot { planned, ..boot(99) });
    recording.trials[split].boot = Some(99);
    let findings = recording.analyse();
    let of = |level: &str, within: [&str; 2]| {
        let found = findings.comparisons.iter().find(|finding| {
            finding.level == level && finding.within.iter().map(|(_, level)| level.as_str()).eq(within)
        });
        found.unwrap().n
    };
    assert_eq!(of("rotating", ["off", "1"]), (4, 4));
    assert_eq!(of("kirq", ["off", "1"]), (5, 5));
    assert_eq!(of("rotating", ["on", "2"]), (5, 5));
    assert!(findings.warnings.contains(&Warning::WholePlotSplit { blocks: vec![3] }), "{:?}", findings.warnings);
    // Between boots the plot still is one difference in its block.
    let between = recording.design(|design| {
        design.comparisons[0].factor = 0;
        design.comparisons[0].within = Vec::new();
    });
    assert_eq!(between.comparison().n, (5, 5));
}

#[test]
fn without_blocks_trials_that_share_boots_have_no_error_term() {
    let shuffled = experiment(&[("routing", &["a", "b"])], "shuffled", 5)
        .filled(|treatment, block, number| (0.02 * noise(block * 10 + number) + 0.1 * treatment as f64).exp());
    let booted = |of: &dyn Fn(u32) -> u32| {
        let mut recording = shuffled.clone();
        recording.trials.iter_mut().for_each(|trial| trial.boot = Some(of(trial.number)));
        recording.header.boots = (1..=10).map(boot).collect();
        recording
    };
    assert!(booted(&|_| 1).comparison().p.is_some(), "one boot is on both sides");
    assert!(booted(&|number| number + 1).comparison().p.is_some(), "each trial has its own");
    let some = booted(&|number| number / 4 + 1);
    assert_eq!(some.verdict(), Verdict::NoInference(NoInference::WholePlotUnreplicated));
}

#[test]
fn a_boot_option_that_was_not_in_force_is_said_at_the_verdict() {
    let hard = experiment(&[("boot", &["smp", "smp_wd"])], "blocks", 6)
        .design(|design| design.factors[0].hard_to_change = true);
    let value =
        |treatment: usize, block: u32, number: u32| (0.2 * treatment as f64 + 0.02 * noise(block + 7 * number)).exp();
    let mut recording = in_boots(hard.filled(value));
    let watched: Vec<u32> = recording.trials.iter().filter(|t| t.treatment == 1).filter_map(|t| t.boot).collect();
    for boot in recording.header.boots.iter_mut().filter(|boot| watched.contains(&boot.number)) {
        boot.options = vec![BootOption {
            option: "nmi_watchdog=1".to_owned(),
            in_force: Some(false),
            evidence: "the NMI row did not grow".to_owned(),
        }];
    }
    let findings = recording.analyse();
    assert!(findings.comparisons[0].flags.contains(&Flag::OptionNotInForce { treatment: 1 }), "{findings:?}");
    assert!(findings.comparisons[0].p.is_some(), "a measured treatment all the same");
    let [check] = findings.boot_options.as_slice() else { panic!("{:?}", findings.boot_options) };
    assert_eq!((check.treatment, check.in_force, check.not_in_force), (1, 0, 6));
}

#[test]
fn an_interrupt_is_what_its_row_says_and_not_its_number() {
    let mut recording =
        in_boots(experiment(&[("routing", &["a", "b"])], "blocks", 2).filled(|_, block, _| f64::from(block)));
    let routed = |irq: u32, cpus: &str| {
        vec![MaskGroup { mask: CpuSet::parse_list(cpus).unwrap(), irqs: IrqList(vec![Irq(irq)]) }]
    };
    // In boot 1 the adapter is 24 and the disk 25; in boot 2 the adapter is 25. It is routed to CPU 2 by number.
    for (boot, irq) in [(0, 24), (1, 25)] {
        let mut bound = recording.header.design.treatments[0].clone();
        bound.routes = routed(irq, "2");
        recording.header.boots[boot].treatments.insert(0, bound);
    }
    let named = |label: &str, description: &str, counts: &[(u32, u64)]| {
        let mut row = row(label, counts);
        description.clone_into(&mut row.description);
        row
    };
    for trial in recording.trials.iter_mut().filter(|trial| trial.treatment == 0) {
        trial.interrupts = if trial.block == 1 {
            vec![named("24", "msi eth0", &[(2, 10)]), named("25", "msi sda", &[(0, 1000)])]
        } else {
            vec![named("24", "msi sda", &[(0, 1000)]), named("25", "msi eth0", &[(0, 3), (2, 20)])]
        };
    }
    let check = &recording.analyse().treatment_checks[0];
    assert_eq!((check.interrupts, check.on_asked_cpus, check.active_irqs), (33, 30, (1, 1)));
    assert_eq!(check.irqs.len(), 1);
    assert_eq!((check.irqs[0].label.as_str(), check.irqs[0].description.as_str()), ("24-25", "msi eth0"));
    assert_eq!(check.irqs[0].by_cpu, [(0, 3), (2, 30)]);
}

#[test]
fn facts_of_a_trial_are_those_of_the_machine_it_ran_on() {
    use irqlab::recording::{Direction, MetricExpr};
    let mut recording =
        in_boots(experiment(&[("routing", &["a", "b"])], "blocks", 3).filled(|_, block, _| f64::from(block)));
    recording.header.design.metrics = vec![super::recordings::metric(
        "host.mhz",
        Direction::HigherIsBetter,
        MetricExpr::Metric("host.mhz".to_owned()),
    )];
    for (boot, mhz) in recording.header.boots.iter_mut().zip([1000.0, 1500.0, 3000.0]) {
        boot.host.cpu_mhz = Some(mhz);
    }
    let values = recording.analyse().metrics[0].cells[0].values.clone();
    assert_eq!(values, [(1, 1000.0), (2, 1500.0), (3, 3000.0)]);
}
