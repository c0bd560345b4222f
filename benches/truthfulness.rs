//! How often the whole analysis is wrong: recordings made up with a known truth go in, verdicts come out and are counted.
//!
//! `tools/truthfulness [SEED]` runs it and writes `docs/truthfulness.md`. Not part of the tests: it takes minutes.

use std::collections::BTreeMap;
use std::time::Instant;

use irqlab::analysis::planner::{Pairing, detectable_effect};
use irqlab::analysis::{Findings, Verdict, analyse, student};
use irqlab::cpu_set::CpuSet;
use irqlab::design::order;
use irqlab::recording::{
    Comparison, CpuTimes, Design, Direction, End, FORMAT, Factor, Header, HostFacts, MaskReadings, Metric, MetricExpr,
    PlannedTrial, ProcessRecord, Protocol, Recording, RunnerCost, Treatment, Trial,
};
use irqlab::report;

/// Made-up experiments for each number.
const REPLICATIONS: u32 = 5_000;

/// Trial-to-trial variation.
const CV: f64 = 0.01;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let seed: u64 = arguments.first().and_then(|word| word.parse().ok()).unwrap_or(1);
    if std::env::args().any(|word| word == "--million") {
        return million();
    }
    println!("seed {seed}, {REPLICATIONS} replications for each number, variation {} %\n", CV * 100.0);
    let mut noise = Noise::new(seed);
    false_alarms(&mut noise);
    families(&mut noise);
    power(&mut noise);
}

/// What happens to a value besides the effect.
#[derive(Clone, Copy)]
enum Disturbance {
    None,
    Drift(f64),
    Spikes,
    Skew,
}

impl Disturbance {
    /// ln of a value at a place in the run.
    fn value(self, noise: &mut Noise, place: u32) -> f64 {
        match self {
            Disturbance::None => CV * noise.normal(),
            Disturbance::Drift(per_run) => CV * noise.normal() + per_run * f64::from(place),
            Disturbance::Spikes => CV * noise.normal() + if noise.uniform() < 0.1 { 0.15_f64.ln_1p() } else { 0.0 },
            Disturbance::Skew => (CV * -noise.uniform().ln()).ln_1p(),
        }
    }
}

/// Two equal treatments: how often a difference is claimed, and how often the interval holds the truth.
fn false_alarms(noise: &mut Noise) {
    println!("| disturbance | n | verdicts, per cent | interval holds 1, per cent | AAA…BBB and Welch, per cent |");
    println!("| --- | --: | --: | --: | --: |");
    for (name, disturbance) in [
        ("none", Disturbance::None),
        ("drift 0.2 % per run", Disturbance::Drift(0.002)),
        ("drift 0.5 % per run", Disturbance::Drift(0.005)),
        ("spikes: 10 % of runs 15 % slower", Disturbance::Spikes),
        ("skew: floor and exponential tail", Disturbance::Skew),
    ] {
        for blocks in [3, 5, 10] {
            let (mut claims, mut covered, mut naive) = (0, 0, 0);
            for _ in 0..REPLICATIONS {
                let made = Made::new(&[2], blocks, noise.next());
                let findings = made.analysed(|_, place| disturbance.value(noise, place));
                let finding = &findings.comparisons[0];
                claims += u32::from(is_claim(finding.verdict));
                covered += u32::from(finding.estimate.is_some_and(|found| found.low <= 1.0 && 1.0 <= found.high));
                naive += u32::from(naive_claim(noise, disturbance, blocks));
            }
            println!("| {name} | {blocks} | {} | {} | {} |", share(claims), share(covered), share(naive));
        }
    }
}

/// All of A, then all of B, Welch's test of ln values at 5 %: what a loop around a benchmark does.
fn naive_claim(noise: &mut Noise, disturbance: Disturbance, n: u32) -> bool {
    let values: Vec<f64> = (0..2 * n).map(|place| disturbance.value(noise, place)).collect();
    let (a, b) = values.split_at(n as usize);
    student::welch(b, a, 0.0).and_then(|inference| inference.p()).is_some_and(|p| p <= 0.05)
}

/// No effect anywhere: how often an experiment of several comparisons claims at least one.
fn families(noise: &mut Noise) {
    println!("\n| design without any effect | n | experiments with a verdict of difference, per cent |");
    println!("| --- | --: | --: |");
    for (name, levels) in [
        ("8 levels, 7 comparisons", vec![8]),
        ("2 x 2, averaged, interactions looked at", vec![2, 2]),
        ("2 x 2 x 2, averaged, interactions looked at", vec![2, 2, 2]),
    ] {
        for blocks in [3, 5, 10] {
            let claims = (0..REPLICATIONS).filter(|_| {
                let made = Made::new(&levels, blocks, noise.next());
                let findings = made.analysed(|_, _| CV * noise.normal());
                findings.comparisons.iter().any(|finding| is_claim(finding.verdict))
            });
            println!("| {name} | {blocks} | {} |", share(claims.count() as u32));
        }
    }
}

/// The effect `plan` calls detectable with a power of 80 %: how often it is found, and how often the interval holds it.
fn power(noise: &mut Noise) {
    println!(
        "\n| n | effect that `plan` promises, per cent | found, per cent | wrong direction | interval holds it, per cent |"
    );
    println!("| --: | --: | --: | --: | --: |");
    for blocks in [3, 5, 10, 20] {
        let effect = CV * detectable_effect(blocks, Pairing::Paired).unwrap_or(f64::NAN);
        let (mut found, mut wrong, mut covered) = (0, 0, 0);
        for _ in 0..REPLICATIONS {
            let made = Made::new(&[2], blocks, noise.next());
            let findings =
                made.analysed(|treatment, _| CV * noise.normal() + if treatment == 1 { effect } else { 0.0 });
            let finding = &findings.comparisons[0];
            found += u32::from(matches!(finding.verdict, Verdict::Slower { .. }));
            wrong += u32::from(matches!(finding.verdict, Verdict::Faster { .. }));
            let truth = effect.exp();
            covered += u32::from(finding.estimate.is_some_and(|found| found.low <= truth && truth <= found.high));
        }
        println!(
            "| {blocks} | {:.2} | {} | {} | {} |",
            effect.exp_m1() * 100.0,
            share(found),
            share(wrong),
            share(covered)
        );
    }
}

/// A million samples from recording to page.
fn million() {
    let blocks = 500_000;
    let mut noise = Noise::new(1);
    let made = Made::new(&[2], blocks, 1);
    let recording = made.recorded(|treatment, _| CV * noise.normal() + if treatment == 1 { 0.0001 } else { 0.0 });
    let before = peak_mib();
    let start = Instant::now();
    let findings = analyse(&recording.header, &recording.trials, &[], recording.end.as_ref());
    let analysed = start.elapsed();
    let start = Instant::now();
    let page = report::markdown(&recording, &findings).unwrap_or_default();
    let rendered = start.elapsed();
    println!("| 1,000,000 trials | |\n| --- | --: |");
    println!("| analysed | {:.1} s |", analysed.as_secs_f64());
    println!("| rendered | {:.1} s, {} kB of Markdown |", rendered.as_secs_f64(), page.len() / 1000);
    println!("| peak memory | {} MiB, {before} MiB of it for the trials themselves |", peak_mib());
    println!(
        "| verdict | {:?}, as it should be: the effect is 0.01 %, the interval's half width 0.003 % |",
        findings.comparisons[0].verdict
    );
}

/// `VmHWM`; 0 where there is no /proc.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1024
}

fn is_claim(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Faster { .. } | Verdict::Slower { .. })
}

fn share(count: u32) -> String {
    format!("{:.1}", 100.0 * f64::from(count) / f64::from(REPLICATIONS))
}

/// Seeded noise. Its own generator: the order of trials has another.
struct Noise(u64);

impl Noise {
    fn new(seed: u64) -> Self {
        Noise(seed)
    }

    /// `SplitMix64` (Steele, Lea and Flood 2014).
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Above 0, at most 1.
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Box and Muller 1958.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

/// An experiment over all combinations of levels in randomised complete blocks.
struct Made {
    header: Header,
}

impl Made {
    fn new(levels: &[usize], blocks: u32, seed: u64) -> Self {
        let factors: Vec<Factor> = levels
            .iter()
            .enumerate()
            .map(|(factor, levels)| Factor {
                name: format!("f{factor}"),
                levels: (0..*levels).map(|level| format!("l{level}")).collect(),
                hard_to_change: false,
            })
            .collect();
        let combinations = levels.iter().fold(vec![Vec::new()], |cells: Vec<Vec<usize>>, levels| {
            cells.iter().flat_map(|cell| (0..*levels).map(move |level| [cell.as_slice(), &[level]].concat())).collect()
        });
        let treatment = |levels: Vec<usize>| Treatment {
            name: format!("{levels:?}"),
            levels,
            control: 0,
            settings: Vec::new(),
            routes: Vec::new(),
            workloads: Vec::new(),
            backgrounds: Vec::new(),
        };
        let treatments: Vec<Treatment> = combinations.into_iter().map(treatment).collect();
        let order = (1..).zip(order::blocks(seed, treatments.len(), blocks));
        let planned = order.flat_map(|(block, cells)| cells.into_iter().map(move |treatment| (block, treatment)));
        let order = (0..).zip(planned).map(|(number, (block, treatment))| PlannedTrial {
            number,
            block,
            treatment,
            boot: None,
        });
        let order: Vec<PlannedTrial> = order.collect();
        let metric = "work.score".to_owned();
        let design = Design {
            name: "made".to_owned(),
            title: "made".to_owned(),
            question: None,
            source: None,
            params: Vec::new(),
            factors,
            treatments,
            metrics: vec![Metric {
                id: metric.clone(),
                label: metric.clone(),
                unit: "s".to_owned(),
                direction: Direction::LowerIsBetter,
                expr: MetricExpr::Metric(metric.clone()),
            }],
            comparisons: vec![Comparison {
                factor: 0,
                base: 0,
                metrics: vec![metric],
                margin: None,
                within: Vec::new(),
            }],
            expectations: Vec::new(),
            protocol: Protocol {
                blocks,
                warmup: 0,
                order: "blocks".to_owned(),
                seed,
                order_version: order::ORDER_VERSION,
                settle_ms: 0,
                timeout_ms: 1,
                retries: 0,
                until: None,
            },
            layout: "default".to_owned(),
            template: None,
            template_text: None,
        };
        Made {
            header: Header {
                format: FORMAT,
                tool_version: env!("CARGO_PKG_VERSION").to_owned(),
                started_at: "2026-01-01T00:00:00Z".to_owned(),
                sources: Vec::new(),
                design,
                order,
                host: HostFacts::default(),
                published: Vec::new(),
                boots: Vec::new(),
            },
        }
    }

    /// `ln_value` gets treatment and place in the run.
    fn recorded(self, mut ln_value: impl FnMut(usize, u32) -> f64) -> Recording {
        let made = |planned: &PlannedTrial| trial(*planned, 100.0 * ln_value(planned.treatment, planned.number).exp());
        Recording {
            trials: self.header.order.iter().map(made).collect(),
            header: self.header,
            resumed: Vec::new(),
            asked: Vec::new(),
            end: Some(End {
                at: "2026-01-01T01:00:00Z".to_owned(),
                reason: "complete".to_owned(),
                restored: 0,
                not_restored: Vec::new(),
                remarks: Vec::new(),
            }),
            notes: Vec::new(),
            length: 0,
        }
    }

    fn analysed(self, ln_value: impl FnMut(usize, u32) -> f64) -> Findings {
        let recording = self.recorded(ln_value);
        analyse(&recording.header, &recording.trials, &[], recording.end.as_ref())
    }
}

fn trial(planned: PlannedTrial, score: f64) -> Trial {
    let process = ProcessRecord {
        name: "work".to_owned(),
        instance: 0,
        status: Some(0),
        signal: None,
        real_ns: 1_000_000_000,
        user_us: 0,
        sys_us: 0,
        max_rss_kib: 0,
        voluntary_switches: 0,
        involuntary_switches: 0,
        minor_faults: 0,
        major_faults: 0,
        cpus: CpuSet::new(),
        values: BTreeMap::from([("score".to_owned(), score)]),
        notes: BTreeMap::new(),
    };
    Trial {
        number: planned.number,
        attempt: 0,
        sequence: planned.number,
        block: planned.block,
        treatment: planned.treatment,
        boot: None,
        started_at: String::new(),
        duration_ns: 1_000_000_000,
        faults: Vec::new(),
        processes: vec![process],
        backgrounds: Vec::new(),
        cpu_times: CpuTimes::default(),
        interrupts: Vec::new(),
        softirqs: Vec::new(),
        masks: MaskReadings::default(),
        settings: Vec::new(),
        runner: RunnerCost::default(),
        mover: None,
    }
}
