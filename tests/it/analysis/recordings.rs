//! Recordings made in code: a design of factors, one metric `work.score`, and its values by treatment and block.

use std::collections::BTreeMap;

use irqlab::analysis::{ComparisonFinding, Findings, Verdict, analyse};
use irqlab::cpu_set::CpuSet;
use irqlab::design::order;
use irqlab::recording::{
    Boot, Comparison, CounterRow, CpuTimes, Design, Direction, End, FORMAT, Factor, Header, HostFacts, MaskReadings,
    Metric, MetricExpr, PlannedTrial, ProcessRecord, Protocol, RunnerCost, Treatment, Trial,
};

/// A boot of nothing in particular, its number and `boot_id` its own.
pub(super) fn boot(number: u32) -> Boot {
    Boot {
        number,
        planned: number,
        at: "2026-01-01T00:00:00Z".to_owned(),
        boot_id: Some(format!("boot {number}")),
        lab: None,
        host: HostFacts::default(),
        options: Vec::new(),
        treatments: BTreeMap::new(),
    }
}

/// A boot for each whole plot within a block, as planned.
pub(super) fn in_boots(mut recording: Recording) -> Recording {
    let plots = recording.plots();
    let mut number = 0;
    let mut last = None;
    for (trial, planned) in recording.trials.iter_mut().zip(&mut recording.header.order) {
        let plot = Some((trial.block, plots[trial.treatment]));
        if last != plot {
            number += 1;
            recording.header.boots.push(boot(number));
            last = plot;
        }
        (trial.boot, planned.boot) = (Some(number), Some(number));
    }
    recording
}

/// A recording under construction.
#[derive(Debug, Clone)]
pub(super) struct Recording {
    pub(super) header: Header,
    pub(super) trials: Vec<Trial>,
    pub(super) resumed: Vec<(String, HostFacts)>,
    pub(super) end: Option<End>,
}

/// An experiment over all combinations of levels, compared on the first factor against its first level.
pub(super) fn experiment(factors: &[(&str, &[&str])], order: &str, blocks: u32) -> Recording {
    let factors: Vec<Factor> = factors
        .iter()
        .map(|(name, levels)| Factor {
            name: (*name).to_owned(),
            levels: levels.iter().map(|level| (*level).to_owned()).collect(),
            hard_to_change: false,
        })
        .collect();
    let cells = factors.iter().fold(vec![Vec::new()], |cells: Vec<Vec<usize>>, factor| {
        cells
            .iter()
            .flat_map(|cell| (0..factor.levels.len()).map(move |level| [cell.as_slice(), &[level]].concat()))
            .collect()
    });
    let design = Design {
        name: "case".to_owned(),
        title: "case".to_owned(),
        question: None,
        source: None,
        params: Vec::new(),
        factors,
        treatments: cells.into_iter().map(treatment).collect(),
        metrics: vec![metric("work.score", Direction::LowerIsBetter, MetricExpr::Metric("work.score".to_owned()))],
        comparisons: vec![Comparison {
            factor: 0,
            base: 0,
            metrics: vec!["work.score".to_owned()],
            margin: None,
            within: Vec::new(),
        }],
        expectations: Vec::new(),
        protocol: Protocol {
            blocks,
            warmup: 0,
            order: order.to_owned(),
            seed: 1,
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
    Recording {
        header: Header {
            format: FORMAT,
            tool_version: "0".to_owned(),
            started_at: "2026-01-01T00:00:00Z".to_owned(),
            sources: Vec::new(),
            design,
            order: Vec::new(),
            host: HostFacts { cpu_mhz: Some(2000.0), ..HostFacts::default() },
            published: Vec::new(),
            boots: Vec::new(),
        },
        trials: Vec::new(),
        resumed: Vec::new(),
        end: Some(End {
            at: "2026-01-01T01:00:00Z".to_owned(),
            reason: "complete".to_owned(),
            restored: 0,
            not_restored: Vec::new(),
            remarks: Vec::new(),
        }),
    }
}

pub(super) fn treatment(levels: Vec<usize>) -> Treatment {
    Treatment {
        name: format!("{levels:?}"),
        levels,
        control: 0,
        settings: Vec::new(),
        routes: Vec::new(),
        workloads: Vec::new(),
        backgrounds: Vec::new(),
    }
}

pub(super) fn metric(id: &str, direction: Direction, expr: MetricExpr) -> Metric {
    Metric { id: id.to_owned(), label: id.to_owned(), unit: String::new(), direction, expr }
}

/// A process that printed `score`.
pub(super) fn process(name: &str, score: f64) -> ProcessRecord {
    ProcessRecord {
        name: name.to_owned(),
        instance: 0,
        status: Some(0),
        signal: None,
        real_ns: 2_000_000_000,
        user_us: 1_500_000,
        sys_us: 250_000,
        max_rss_kib: 100,
        voluntary_switches: 3,
        involuntary_switches: 2,
        minor_faults: 50,
        major_faults: 1,
        cpus: CpuSet::parse_list("1").unwrap(),
        values: BTreeMap::from([("score".to_owned(), score)]),
        notes: BTreeMap::new(),
    }
}

/// A row of counters: `row("36", &[(0, 10)])`.
pub(super) fn row(label: &str, counts: &[(u32, u64)]) -> CounterRow {
    CounterRow {
        label: label.to_owned(),
        description: format!("chip {label}"),
        on: counts.iter().map(|(cpu, _)| irqlab::cpu_set::Cpu(*cpu)).collect(),
        counts: counts.iter().map(|(_, count)| *count).collect(),
        anomaly: None,
    }
}

impl Recording {
    /// Runs the planned order; `value` gets treatment, block and place in the run.
    pub(super) fn filled(mut self, mut value: impl FnMut(usize, u32, u32) -> f64) -> Self {
        let protocol = &self.header.design.protocol;
        let cells = self.header.design.treatments.len();
        let planned: Vec<(u32, usize)> = match protocol.order.as_str() {
            "blocks" => (1..)
                .zip(order::whole_plots(protocol.seed, &self.plots(), protocol.blocks))
                .flat_map(|(block, cells)| cells.into_iter().map(move |cell| (block, cell)))
                .collect(),
            "sequential" => numbered(order::sequential(cells, protocol.blocks), cells),
            _ => numbered(order::shuffled(protocol.seed, cells, protocol.blocks), cells),
        };
        for (number, (block, treatment)) in (0..).zip(planned) {
            self.header.order.push(PlannedTrial { number, block, treatment, boot: None });
            self.trials.push(trial(number, block, treatment, value(treatment, block, number)));
        }
        self
    }

    /// Treatments' values block by block: `values[treatment][block - 1]`.
    pub(super) fn with(self, values: &[Vec<f64>]) -> Self {
        self.filled(|treatment, block, _| values[treatment][block as usize - 1])
    }

    pub(super) fn design(mut self, change: impl FnOnce(&mut Design)) -> Self {
        change(&mut self.header.design);
        self
    }

    pub(super) fn margin(self, margin: f64) -> Self {
        self.design(|design| design.comparisons[0].margin = Some(margin))
    }

    pub(super) fn analyse(&self) -> Findings {
        analyse(&self.header, &self.trials, &self.resumed, self.end.as_ref())
    }

    /// The only comparison.
    #[track_caller]
    pub(super) fn comparison(&self) -> ComparisonFinding {
        let mut findings = self.analyse();
        assert_eq!(findings.comparisons.len(), 1);
        findings.comparisons.remove(0)
    }

    #[track_caller]
    pub(super) fn verdict(&self) -> Verdict {
        self.comparison().verdict
    }

    fn plots(&self) -> Vec<usize> {
        let hard: Vec<usize> = (0..self.header.design.factors.len())
            .filter(|factor| self.header.design.factors[*factor].hard_to_change)
            .collect();
        let plot = |treatment: &Treatment| hard.iter().fold(0, |plot, factor| plot * 100 + treatment.levels[*factor]);
        self.header.design.treatments.iter().map(plot).collect()
    }
}

fn numbered(order: Vec<usize>, cells: usize) -> Vec<(u32, usize)> {
    let mut seen = vec![0; cells];
    let number = |cell: usize| {
        seen[cell] += 1;
        (seen[cell], cell)
    };
    order.into_iter().map(number).collect()
}

fn trial(number: u32, block: u32, treatment: usize, score: f64) -> Trial {
    Trial {
        number,
        attempt: 0,
        sequence: number,
        block,
        treatment,
        boot: None,
        started_at: "2026-01-01T00:00:00Z".to_owned(),
        duration_ns: 2_000_000_000,
        faults: Vec::new(),
        processes: vec![process("work", score)],
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
