//! A recording of 2 x 2 treatments in eight blocks and its findings, made by hand.

use std::collections::BTreeMap;

use irqlab::analysis::{
    Cell, ComparisonFinding, Estimate, ExactKind, ExactTest, ExpectationFinding, ExpectationVerdict, Findings,
    IrqLanding, Method, MetricFindings, Robust, Scale, Summary, TreatmentCheck, TrialCounts, Verdict,
};
use irqlab::cpu_set::{CpuSet, Irq};
use irqlab::recording::facts::CpuTopology;
use irqlab::recording::{
    Comparison, CpuTimes, Design, Direction, End, Expectation, Factor, Header, HostFacts, IrqList, MaskGroup,
    MaskReadings, Metric, MetricExpr, PlannedTrial, ProcessPlan, ProcessRecord, Protocol, Recording, Relation,
    RunnerCost, Treatment, Trial,
};

const SOURCE: &str = "experiment quickstart {\n  vary placement { one_cpu { } two_cpus { } }\n}\n";

pub(super) fn cpus(list: &str) -> CpuSet {
    CpuSet::parse_list(list).unwrap()
}

pub(super) fn names(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

pub(super) fn host(online: &str) -> HostFacts {
    let online = cpus(online);
    let cpus = online.iter().map(|cpu| CpuTopology {
        cpu,
        package: 0,
        core: cpu.0,
        node: 0,
        siblings: CpuSet::single(cpu),
        cache: online.clone(),
        hotpluggable: cpu.0 > 0,
    });
    let mut host = HostFacts {
        architecture: Some("x86_64".to_owned()),
        kernel_release: Some("6.1.0-18-amd64".to_owned()),
        kernel_version: Some("#1 SMP PREEMPT_DYNAMIC Debian 6.1.76-1 (2024-02-01)".to_owned()),
        command_line: Some("root=/dev/vda1 ro quiet".to_owned()),
        cpu_model: Some("Intel(R) Xeon(R) CPU @ 2.20GHz".to_owned()),
        cpu_mhz: Some(2199.998),
        clocksource: Some("tsc".to_owned()),
        memory_bytes: Some(8_331_476_992),
        virtualisation: Some("kvm".to_owned()),
        default_affinity: Some(online.clone()),
        governors: BTreeMap::from([(0, "performance".to_owned()), (1, "performance".to_owned())]),
        mitigations: BTreeMap::from([
            ("l1tf".to_owned(), "Not affected".to_owned()),
            ("spectre_v2".to_owned(), "Mitigation: Retpolines".to_owned()),
        ]),
        irq_writable: true,
        nmi_watchdog: Some(false),
        ..HostFacts::default()
    };
    host.topology.cpus = cpus.collect();
    host.topology.possible = online.clone();
    host.topology.online = online;
    host
}

pub(super) fn treatment(name: &str, levels: [usize; 2], settings: &[&str]) -> Treatment {
    Treatment {
        name: name.to_owned(),
        levels: levels.to_vec(),
        control: 0,
        settings: names(settings),
        routes: vec![MaskGroup { mask: cpus("0"), irqs: IrqList(vec![Irq(24), Irq(25)]) }],
        workloads: vec![ProcessPlan {
            name: "loop".to_owned(),
            command: "ipc kind=pipe for=500ms".to_owned(),
            cpus: Some(if levels[0] == 0 { cpus("1") } else { cpus("0-1") }),
            instances: 1,
        }],
        backgrounds: Vec::new(),
    }
}

pub(super) fn design() -> Design {
    let factor =
        |name: &str, levels: &[&str]| Factor { name: name.to_owned(), levels: names(levels), hard_to_change: false };
    let comparison = |factor, base| Comparison {
        factor,
        base,
        metrics: names(&["loop.rate"]),
        margin: Some(0.02),
        within: Vec::new(),
    };
    Design {
        name: "quickstart".to_owned(),
        title: "One CPU or two, and who takes the interrupts".to_owned(),
        question: Some("Does a pipe run faster on one CPU than across two, and do interrupts matter?".to_owned()),
        source: None,
        params: vec![("loops".to_owned(), "500ms".to_owned(), true)],
        factors: vec![factor("placement", &["one_cpu", "two_cpus"]), factor("routing", &["cpu0", "all"])],
        treatments: vec![
            treatment("placement=one_cpu, routing=cpu0", [0, 0], &["irq 24-25 -> cpu 0", "service irqbalance stopped"]),
            treatment(
                "placement=one_cpu, routing=all",
                [0, 1],
                &["irq 24-25 -> cpu 0-1", "service irqbalance stopped"],
            ),
            treatment(
                "placement=two_cpus, routing=cpu0",
                [1, 0],
                &["irq 24-25 -> cpu 0", "service irqbalance stopped"],
            ),
            treatment(
                "placement=two_cpus, routing=all",
                [1, 1],
                &["irq 24-25 -> cpu 0-1", "service irqbalance stopped"],
            ),
        ],
        metrics: vec![Metric {
            id: "loop.rate".to_owned(),
            label: "loop.rate".to_owned(),
            unit: "loops/s".to_owned(),
            direction: Direction::HigherIsBetter,
            expr: MetricExpr::Metric("loop.rate".to_owned()),
        }],
        comparisons: vec![comparison(0, 0), comparison(1, 0)],
        expectations: vec![Expectation {
            metric: "loop.rate".to_owned(),
            factor: 0,
            left: (1.0, 1),
            operator: Relation::LessOrEqual,
            right: (0.9, 0),
            within: Vec::new(),
            text: "expect loop.rate: two_cpus <= 0.9 * one_cpu".to_owned(),
            place: "/home/somebody/experiments/quickstart.exp:14".to_owned(),
        }],
        protocol: Protocol {
            blocks: 8,
            warmup: 1,
            order: "blocks".to_owned(),
            seed: 7,
            order_version: 1,
            settle_ms: 200,
            timeout_ms: 300_000,
            retries: 2,
            until: None,
        },
        layout: "default".to_owned(),
        template: None,
        template_text: None,
    }
}

pub(super) fn trial(sequence: u32, block: u32, treatment: usize) -> Trial {
    Trial {
        number: sequence,
        attempt: 0,
        sequence,
        block,
        treatment,
        boot: None,
        started_at: "2025-03-01T10:00:00Z".to_owned(),
        duration_ns: 500_000_000,
        faults: Vec::new(),
        processes: Vec::new(),
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

/// A process whose output gave one value.
pub(super) fn process(name: &str, metric: &str, value: f64) -> ProcessRecord {
    ProcessRecord {
        name: name.to_owned(),
        instance: 0,
        status: Some(0),
        signal: None,
        real_ns: 500_000_000,
        user_us: 100,
        sys_us: 100,
        max_rss_kib: 1024,
        voluntary_switches: 1,
        involuntary_switches: 1,
        minor_faults: 1,
        major_faults: 0,
        cpus: cpus("0-1"),
        values: BTreeMap::from([(metric.to_owned(), value)]),
        notes: BTreeMap::new(),
    }
}

pub(super) fn recording() -> Recording {
    let mut trials = Vec::new();
    let mut order = Vec::new();
    for block in 0..=8_u32 {
        for step in 0..4_u32 {
            let (number, treatment) = (block * 4 + step, ((block * 3 + step * 5) % 4) as usize);
            trials.push(trial(number, block, treatment));
            order.push(PlannedTrial { number, block, treatment, boot: None });
        }
    }
    Recording {
        header: Header {
            format: 1,
            tool_version: "0.1.0".to_owned(),
            started_at: "2025-03-01T10:00:00Z".to_owned(),
            sources: vec![("/home/somebody/experiments/quickstart.exp".to_owned(), SOURCE.to_owned())],
            design: design(),
            order,
            host: host("0-1"),
            published: Vec::new(),
            boots: Vec::new(),
        },
        trials,
        resumed: Vec::new(),
        end: Some(End {
            at: "2025-03-01T10:01:12Z".to_owned(),
            reason: "complete".to_owned(),
            restored: 12,
            not_restored: Vec::new(),
            remarks: Vec::new(),
        }),
        asked: Vec::new(),
        notes: Vec::new(),
        length: 0,
    }
}

pub(super) fn cell(treatment: usize, values: &[f64]) -> Cell {
    let n = values.len() as f64;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mean = values.iter().sum::<f64>() / n;
    let sd =
        (values.len() > 1).then(|| (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt());
    let summary = Summary {
        n: values.len(),
        low: sorted[0],
        high: sorted[sorted.len() - 1],
        mean,
        median: f64::midpoint(sorted[(sorted.len() - 1) / 2], sorted[sorted.len() / 2]),
        geometric_mean: (sorted[0] > 0.0).then(|| (values.iter().map(|value| value.ln()).sum::<f64>() / n).exp()),
        median_interval: (values.len() > 1).then(|| (sorted[0], sorted[sorted.len() - 1], 1.0 - 0.5_f64.powf(n - 1.0))),
        sd,
        cv: sd.map(|sd| sd / mean),
    };
    Cell {
        treatment,
        values: (1..).zip(values.iter().copied()).collect(),
        summary: Some(summary),
        published: None,
        recovered: false,
    }
}

pub(super) fn finding(comparison: usize, verdict: Verdict) -> ComparisonFinding {
    let (factor, level, base) =
        if comparison == 0 { ("placement", "two_cpus", "one_cpu") } else { ("routing", "all", "cpu0") };
    let averaged = if comparison == 0 { "routing" } else { "placement" };
    ComparisonFinding {
        comparison,
        metric: "loop.rate".to_owned(),
        factor: factor.to_owned(),
        level: level.to_owned(),
        base: base.to_owned(),
        within: Vec::new(),
        averaged_over: names(&[averaged]),
        n: (8, 8),
        estimate: None,
        point: None,
        scale: Scale::Ratio,
        p: None,
        p_holm: None,
        exact: None,
        robust: None,
        margin: Some(0.02),
        verdict,
        flags: Vec::new(),
        needed_n: None,
        published: None,
    }
}

/// Fills in what inference gives.
pub(super) fn with(
    mut finding: ComparisonFinding,
    (value, low, high): (f64, f64, f64),
    p: f64,
    exact: f64,
) -> ComparisonFinding {
    finding.estimate = Some(Estimate { value, low, high, method: Method::PairedT });
    finding.point = Some(value);
    finding.p = Some(p);
    finding.p_holm = Some((p * 2.0).min(1.0));
    finding.exact = Some(ExactTest { kind: ExactKind::SignFlip, p: exact, min_p: 0.007_812_5 });
    finding.robust = Some(Robust { value, low, high, coverage: 0.960_937_5, higher: (4.5, 8) });
    finding
}

pub(super) fn check(treatment: usize, by_cpu: &[(u32, u64)], asked: u64) -> TreatmentCheck {
    let interrupts = by_cpu.iter().map(|(_, count)| count).sum();
    TreatmentCheck {
        treatment,
        trials: 8,
        interrupts,
        on_asked_cpus: asked,
        active_irqs: (2, 2),
        by_cpu: by_cpu.to_vec(),
        all_by_cpu: by_cpu.iter().map(|(cpu, count)| (*cpu, count + 40)).collect(),
        softirqs_by_cpu: by_cpu.iter().map(|(cpu, count)| (*cpu, count * 3)).collect(),
        irqs: vec![IrqLanding {
            label: "24".to_owned(),
            description: "PCI-MSI-0000:00:04.0 0-edge virtio1-input.0".to_owned(),
            asked: cpus("0"),
            by_cpu: by_cpu.to_vec(),
        }],
        trials_with_foreign_masks: 0,
        mover: None,
    }
}

pub(super) fn findings() -> Findings {
    let large =
        with(finding(0, Verdict::Slower { beyond_margin: true }), (0.3121, 0.2923, 0.3332), 3.1e-9, 0.007_812_5);
    let mut none = with(finding(1, Verdict::Inconclusive), (0.9951, 0.9703, 1.0206), 0.651, 0.6563);
    none.needed_n = Some(14);
    Findings {
        metrics: vec![MetricFindings {
            id: "loop.rate".to_owned(),
            label: "loop.rate".to_owned(),
            unit: "loops/s".to_owned(),
            direction: Direction::HigherIsBetter,
            decimals: None,
            cells: vec![
                cell(0, &[412_345.1, 409_876.2, 411_111.3, 415_000.4, 407_654.5, 413_210.6, 410_000.7, 411_999.8]),
                cell(1, &[410_345.1, 411_876.2, 409_111.3, 412_000.4, 409_654.5, 412_210.6, 411_000.7, 408_999.8]),
                cell(2, &[128_345.1, 129_876.2, 127_111.3, 131_000.4, 126_654.5, 130_210.6, 128_000.7, 127_999.8]),
                cell(3, &[127_345.1, 128_876.2, 126_111.3, 130_000.4, 127_654.5, 129_210.6, 127_000.7, 126_999.8]),
            ],
        }],
        comparisons: vec![large, none],
        interactions: Vec::new(),
        single_runs: Vec::new(),
        expectations: vec![ExpectationFinding {
            expectation: 0,
            within: Vec::new(),
            estimate: Some(Estimate { value: 0.3468, low: 0.3248, high: 0.3702, method: Method::PairedT }),
            scale: Scale::Ratio,
            margin: None,
            verdict: ExpectationVerdict::Held,
        }],
        treatment_checks: vec![
            check(0, &[(0, 1204)], 1204),
            check(1, &[(0, 610), (1, 633)], 1243),
            check(2, &[(0, 1190), (1, 2)], 1190),
            check(3, &[(0, 640), (1, 612)], 1252),
        ],
        boot_options: Vec::new(),
        invalid_trials: Vec::new(),
        counts: TrialCounts { planned: 32, recorded: 32, valid: 32, warmup: 4 },
        warnings: Vec::new(),
    }
}
