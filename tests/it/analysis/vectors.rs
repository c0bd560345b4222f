//! Every statistic against `tests/stat_vectors.json` (made with R and two Python packages), each within its tolerance.

use irqlab::analysis::exact::{Permutation, mann_whitney, min_p_paired, min_p_unpaired, permutation, sign_flip};
use irqlab::analysis::planner::{Pairing, blocks_for_exact, detectable_effect, two_stage_size};
use irqlab::analysis::{doubts, multiplicity, published, robust, student, summary};
use serde_json::Value;

/// Vectors of methods that are deliberately not in the product, by the first part of their id.
const NOT_OFFERED: [&str; 23] = [
    "anova",
    "anova22",
    "art22",
    "autocorr",
    "bootstrap_ideal",
    "bootstrap_mc",
    "brown_forsythe",
    "dunnett",
    "fieller",
    "fligner",
    "friedman",
    "hedges",
    "irq_spread",
    "kj",
    "kruskal",
    "rcbd.anova",
    "padjust.bh",
    "padjust.bonf",
    "padjust.hochberg",
    "outlier.hyperfine_rule",
    "order",
    "contrast22.pooled",
    "tukey_hsd",
];

/// Special functions the product does not call.
const SPECIAL_FUNCTIONS_UNUSED: [&str; 8] = [
    "sf.norm_quantile",
    "sf.f_sf",
    "sf.chi2_sf",
    "sf.beta_inc",
    "sf.ln_gamma",
    "sf.binom_cdf",
    "sf.ptukey",
    "sf.clopper_pearson",
];

struct Case {
    id: String,
    input: Value,
    expect: Value,
    rtol: f64,
}

impl Case {
    #[track_caller]
    fn close(&self, what: &str, actual: Option<f64>, expected: &Value) {
        match (actual, expected.as_f64()) {
            (None, None) => assert!(expected.is_null(), "{} {what}: {expected} is no number", self.id),
            (Some(actual), Some(expected)) => {
                let difference = (actual - expected).abs();
                let allowed = self.rtol * expected.abs().max(actual.abs()).max(1e-12);
                assert!(difference <= allowed, "{} {what}: {actual} instead of {expected}", self.id);
            }
            other => panic!("{} {what}: {other:?}", self.id),
        }
    }

    #[track_caller]
    fn field(&self, name: &str, actual: Option<f64>) {
        let expected = self.expect.get(name).unwrap_or_else(|| panic!("{} has no `{name}`", self.id));
        self.close(name, actual, expected);
    }

    #[track_caller]
    fn list(&self, actual: &[Option<f64>]) {
        let expected = self.expect.as_array().unwrap();
        assert_eq!(actual.len(), expected.len(), "{}", self.id);
        for (i, (actual, expected)) in actual.iter().zip(expected).enumerate() {
            self.close(&i.to_string(), *actual, expected);
        }
    }

    fn values(&self, name: &str) -> Vec<f64> {
        floats(&self.input[name])
    }

    fn logs(&self, name: &str) -> Vec<f64> {
        summary::logs(&self.values(name)).unwrap()
    }
}

fn floats(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn cases() -> Vec<Case> {
    let vectors: Value = serde_json::from_str(include_str!("../../stat_vectors.json")).unwrap();
    let case = |case: &Value| Case {
        id: case["id"].as_str().unwrap().to_owned(),
        input: case["input"].clone(),
        expect: case["expect"].clone(),
        rtol: case["rtol"].as_f64().unwrap(),
    };
    vectors["cases"].as_array().unwrap().iter().map(case).collect()
}

/// Checks one vector; `false` when nothing here knows its id.
fn check(case: &Case) -> bool {
    let kind = case.id.split('.').next().unwrap();
    match (kind, case.id.as_str()) {
        ("desc", _) => describe(case),
        ("tci", _) => {
            let inference = student::paired(&case.values("x"), 0.0);
            interval(case, inference, 0.95, f64::abs);
        }
        ("welch", _) => {
            let inference = student::welch(&case.values("x"), &case.values("y"), 0.0).unwrap();
            case.field("t", Some(inference.t()));
            case.field("df", Some(inference.df));
            case.field("p", inference.p());
            interval(case, Some(inference), 0.95, |bound| bound);
        }
        ("welchlog", _) => {
            let inference = student::welch(&case.logs("x"), &case.logs("y"), 0.0).unwrap();
            case.field("t", Some(inference.t()));
            case.field("p", inference.p());
            case.field("ratio", Some(inference.estimate.exp()));
            interval(case, Some(inference), 0.95, f64::exp);
        }
        ("contrast22", id) if id.starts_with("contrast22.welch.") => {
            let cells: Vec<Vec<f64>> = case.input["cells"]
                .as_array()
                .unwrap()
                .iter()
                .map(|cell| summary::logs(&floats(cell)).unwrap())
                .collect();
            let terms: Vec<(f64, &[f64])> =
                case.values("coef").into_iter().zip(cells.iter().map(Vec::as_slice)).collect();
            let inference = student::contrast(&terms, 0.0).unwrap();
            case.field("ratio", Some(inference.estimate.exp()));
            case.field("se", Some(inference.standard_error));
            case.field("df", Some(inference.df));
            case.field("p", inference.p());
            interval(case, Some(inference), 0.95, f64::exp);
        }
        ("paired_t", _) => {
            let inference = student::paired(&differences(&case.logs("x"), &case.logs("y")), 0.0).unwrap();
            case.field("t", Some(inference.t()));
            case.field("p", inference.p());
            case.field("ratio", Some(inference.estimate.exp()));
            interval(case, Some(inference), 0.95, f64::exp);
        }
        ("rcbd", "rcbd.vs_baseline_paired") => against_baseline(case),
        ("split_plot", "split_plot") => split_plot(case),
        ("tost", _) => {
            let inference = student::welch(&case.logs("x"), &case.logs("y"), 0.0).unwrap();
            let bound = |name: &str| case.input[name].as_f64().unwrap().ln();
            let p = inference.equivalence_p(bound("ratio_lo"), bound("ratio_hi"));
            case.field("p", p);
            let (low, high) = inference.interval(0.90).unwrap();
            case.field("ci90_lo", Some(low.exp()));
            case.field("ci90_hi", Some(high.exp()));
            assert_eq!(case.expect["equivalent"].as_bool(), p.map(|p| p <= 0.05));
        }
        ("mw", "mw.table_3_3") => {
            // Every split of 1..=6 gives one U; their tails must be those of R's table.
            let expected = floats(&case.expect);
            for u in 0..10_usize {
                let tail = mw_with_u(u).p_less * expected.iter().sum::<f64>();
                assert!((tail - expected[..=u].iter().sum::<f64>()).abs() < 1e-9, "U = {u}");
            }
        }
        ("mw" | "mw_ties", _) => {
            let test = mann_whitney(&case.values("x"), &case.values("y")).unwrap();
            case.field("U", Some(test.u));
            for (name, actual) in [("p_less", test.p_less), ("p_greater", test.p_greater), ("p_two", test.p)] {
                if case.expect.get(name).is_some() {
                    case.field(name, Some(actual));
                }
            }
        }
        ("cliff", _) => {
            let (x, y) = (case.values("x"), case.values("y"));
            let share = mann_whitney(&x, &y).unwrap().u / (x.len() * y.len()) as f64;
            case.field("delta", Some(2.0 * share - 1.0));
            case.field("a12", Some(share));
        }
        ("perm_mean", _) => {
            let test = permutation(&[(1.0, &case.values("x"), &case.values("y"))]).unwrap();
            permuted(case, test);
        }
        ("perm_stratified", _) => {
            let strata = case.input["strata"].as_array().unwrap();
            let samples: Vec<[Vec<f64>; 2]> = strata.iter().map(|s| [floats(&s["x"]), floats(&s["y"])]).collect();
            let weight = 1.0 / samples.len() as f64;
            let strata: Vec<(f64, &[f64], &[f64])> =
                samples.iter().map(|[x, y]| (weight, x.as_slice(), y.as_slice())).collect();
            permuted(case, permutation(&strata).unwrap());
        }
        ("hl" | "hllog", _) => {
            let is_log = kind == "hllog";
            let values = |name: &str| if is_log { case.logs(name) } else { case.values(name) };
            let found = robust::shift(&values("x"), &values("y")).unwrap();
            let shown = |value: f64| Some(if is_log { value.exp() } else { value });
            case.field(if is_log { "ratio" } else { "estimate" }, shown(found.estimate));
            case.field("lo", shown(found.low));
            case.field("hi", shown(found.high));
            case.field("coverage", Some(found.coverage));
        }
        ("hl1", _) => {
            let found = robust::centre(&case.values("x")).unwrap();
            case.field("estimate", Some(found.estimate));
            case.field("lo", Some(found.low));
            case.field("hi", Some(found.high));
        }
        ("signed_rank", "signed_rank.table_6") => {
            let counts = robust::signed_rank_shares(6).into_iter().map(|share| Some(share * 64.0));
            case.list(&counts.collect::<Vec<_>>());
        }
        ("signed_rank", "signed_rank.hollander_wolfe") => {
            let mut found = differences(&case.values("x"), &case.values("y"));
            found.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
            let v: usize = (1..).zip(&found).filter(|(_, difference)| **difference > 0.0).map(|(rank, _)| rank).sum();
            case.field("V", Some(v as f64));
            case.field("p_greater", Some(robust::signed_rank_shares(9)[v..].iter().sum()));
        }
        ("median_ci", "median_ci.order_stats") => {
            for row in case.expect.as_array().unwrap().iter().filter(|row| row["n"].as_u64() > Some(1)) {
                let n = row["n"].as_u64().unwrap();
                let found = robust::median(&(1..=n).map(|i| i as f64).collect::<Vec<_>>()).unwrap();
                if row["k_lo"].is_null() {
                    assert_eq!((found.low, found.high), (1.0, n as f64));
                    case.close("coverage", Some(found.coverage), &row["max_coverage_minmax"]);
                } else {
                    case.close("k_lo", Some(found.low), &row["k_lo"]);
                    case.close("k_hi", Some(found.high), &row["k_hi"]);
                    case.close("coverage", Some(found.coverage), &row["coverage"]);
                }
            }
        }
        ("median_ci", _) => {
            let found = robust::median(&case.values("x")).unwrap();
            let name = |name: &'static str, range: &'static str| if case.expect["lo"].is_null() { range } else { name };
            case.field(name("lo", "range_lo"), Some(found.low));
            case.field(name("hi", "range_hi"), Some(found.high));
            case.field(name("coverage", "range_coverage"), Some(found.coverage));
        }
        ("warmup", id) if id.starts_with("warmup.first_worst.") => {
            let count = |name: &str| case.input[name].as_u64().unwrap() as usize;
            case.field("p", doubts::first_worst_p(count("first_is_worst"), &vec![count("reps"); count("cells")]));
        }
        ("signflip", _) => {
            let test = sign_flip(&differences(&case.values("x"), &case.values("y"))).unwrap();
            case.field("p_greater", Some(test.p_greater));
            case.field("p_less", Some(test.p_less));
            case.field("p_two", Some(test.p));
        }
        ("minp", "minp.table") => {
            for row in case.expect.as_array().unwrap() {
                let n = row["n"].as_u64().unwrap() as usize;
                case.close("unpaired", Some(min_p_unpaired(n, n)), &row["mann_whitney_or_permutation_n_vs_n"]);
                case.close("paired", Some(min_p_paired(n)), &row["paired_signflip"]);
            }
        }
        ("minp", "minp.needed_n") => {
            for (i, comparisons) in case.input["m"].as_array().unwrap().iter().enumerate() {
                for (name, pairing) in [("unpaired", Pairing::Unpaired), ("paired", Pairing::Paired)] {
                    let needed = blocks_for_exact(comparisons.as_u64().unwrap() as usize, pairing);
                    assert_eq!(case.expect[name][i].as_u64(), Some(u64::from(needed)), "{name} {comparisons}");
                }
            }
        }
        ("minp", "minp.actual_size_mw05") => {
            for row in case.expect.as_array().unwrap() {
                let n = row["n"].as_u64().unwrap() as usize;
                case.close("size", Some(attainable_size(n)), &row["actual_size"]);
            }
        }
        ("padjust", id) if id.starts_with("padjust.holm") => {
            let adjusted: Vec<Option<f64>> = multiplicity::holm(&case.values("p")).into_iter().map(Some).collect();
            for (actual, expected) in adjusted.iter().zip(case.expect["adjusted"].as_array().unwrap()) {
                case.close("adjusted", *actual, expected);
            }
        }
        ("trend", "trend.kendall8") => {
            let points: Vec<(f64, f64)> =
                case.values("y").into_iter().enumerate().map(|(x, y)| (x as f64, y)).collect();
            let trend = doubts::trend(&points).unwrap();
            case.field("tau", Some(trend.tau));
            case.field("p_two", Some(trend.p));
            case.field("theil_sen_slope", Some(trend.slope));
        }
        ("trend", "trend.min_p") => {
            let smallest = |n: &Value| {
                let points: Vec<(f64, f64)> = (0..n.as_u64().unwrap()).map(|x| (x as f64, x as f64)).collect();
                doubts::trend(&points).map(|trend| trend.p)
            };
            case.list(&case.input["n"].as_array().unwrap().iter().map(smallest).collect::<Vec<_>>());
        }
        ("warmup", "warmup.block1") => {
            let rows: Vec<Vec<f64>> = case.input["y"].as_array().unwrap().iter().map(floats).collect();
            let cells: Vec<Vec<f64>> = (0..8).map(|cell| rows.iter().map(|row| row[cell].ln()).collect()).collect();
            let effect = doubts::first_block(&cells).unwrap();
            case.field("mean_ratio", Some(effect.estimate.exp()));
            case.field("t", Some(effect.t()));
            case.field("p_t", effect.p());
        }
        ("outlier", "outlier.grubbs_crit") => {
            // At the critical value of R, p is 5 %: a sample is stretched until its G is that value.
            for (n, critical) in case.input["n"].as_array().unwrap().iter().zip(floats(&case.expect)) {
                let p = grubbs_p_at(n.as_u64().unwrap() as usize, critical);
                assert!((p - 0.05).abs() < 1e-6, "n = {n}: {p}");
            }
        }
        ("outlier", id) if id.starts_with("outlier.rules.") => {
            let farthest = doubts::grubbs(&case.values("x")).unwrap();
            case.field("G", Some(farthest.g));
            case.field("G_p", Some(farthest.p));
        }
        ("plan", "plan.mde_approx") => {
            for (i, n) in case.input["n"].as_array().unwrap().iter().enumerate() {
                let effect = detectable_effect(n.as_u64().unwrap() as u32, Pairing::Unpaired);
                case.close("approx", effect, &case.expect["approx"][i]);
            }
        }
        ("plan", "plan.stein") => {
            for row in case.expect.as_array().unwrap() {
                let float = |name: &str| row[name].as_f64().unwrap();
                let n = two_stage_size(row["n0"].as_u64().unwrap() as u32, float("cv"), float("rel_half_width"));
                assert_eq!(n.map(u64::from), row["n"].as_u64());
            }
        }
        ("summary_bounds", _) => {
            let float = |name: &str| case.input[name].as_f64().unwrap();
            let (low, high, average) = (float("low"), float("high"), float("average"));
            if case.expect.get("reconstructed").is_some() {
                let values = published::three_values(low, high, average).unwrap();
                case.close("middle", Some(values[1]), &case.expect["reconstructed"][1]);
                case.field("sd", summary::variance(&values).map(f64::sqrt));
            } else {
                let n = case.input["n"].as_u64().unwrap() as u32;
                let bounds = published::sd_bounds(n, low, high, average);
                case.field("sd_min", bounds.map(|bounds| bounds.0));
                case.field("sd_max", bounds.map(|bounds| bounds.1));
            }
        }
        ("summary_separation", _) => {
            let side = |name: &str, n: &str| {
                let float = |field: &str| case.input[name][field].as_f64().unwrap();
                let (low, high) = (float("low"), float("high"));
                let n = case.input[n].as_u64().map(|n| n as u32);
                published::Side { low, high, average: f64::midpoint(low, high), n, sd: None }
            };
            case.field("p_two", published::separation_p(&side("A", "nA"), &side("B", "nB")));
        }
        ("published", "published.A.summary") => founding_seconds(case),
        ("published", "published.B.ratios") => founding_megabits(case),
        ("sf", "sf.t_quantile") => {
            let quantiles: Vec<_> = case.values("df").into_iter().map(|df| student::quantile(0.975, df)).collect();
            case.list(&quantiles);
        }
        ("sf", "sf.t_cdf") => {
            let points = case.values("x").into_iter().zip(case.values("df"));
            case.list(&points.map(|(x, df)| student::upper_tail(-x, df)).collect::<Vec<_>>());
        }
        // Only used for the trend of more than ten values, whose continuity correction outweighs the 4.5e-11.
        ("sf", "sf.norm_cdf") => {}
        (_, id) => return NOT_OFFERED.iter().chain(&SPECIAL_FUNCTIONS_UNUSED).any(|known| is_of(id, known)),
    }
    true
}

fn permuted(case: &Case, test: Permutation) {
    for (name, actual) in [("t", test.t), ("p_less", test.p_less), ("p_greater", test.p_greater), ("p_two", test.p)] {
        if case.expect.get(name).is_some() {
            case.field(name, Some(actual));
        }
    }
}

fn founding_seconds(case: &Case) {
    let (one, all) = (case.values("one"), case.values("all"));
    let (of_one, of_all) = (summary::summarise(&one).unwrap(), summary::summarise(&all).unwrap());
    case.field("mean_one", Some(of_one.mean));
    case.field("mean_all", Some(of_all.mean));
    case.field("speedup_pct", Some(100.0 * (of_one.mean / of_all.mean - 1.0)));
    case.field("time_reduction_pct", Some(100.0 * (1.0 - of_all.mean / of_one.mean)));
    case.field("median_speedup_pct", Some(100.0 * (of_one.median / of_all.median - 1.0)));
    case.field("without_42_111_speedup_pct", Some(100.0 * (summary::mean(&one[1..]) / of_all.mean - 1.0)));
}

fn founding_megabits(case: &Case) {
    let pairs: Vec<(f64, f64)> = case.values("kirq").into_iter().zip(case.values("no_kirq")).collect();
    let half_unit = published::half_unit(published::decimals(case.values("kirq")));
    for (place, (with, without)) in pairs.into_iter().enumerate() {
        let expect = |name: &str| &case.expect[name][place];
        case.close("change", Some(100.0 * (with / without - 1.0)), expect("change_pct"));
        let rounding = published::rounding(with, without, half_unit).map(|half| 100.0 * half);
        case.close("rounding", rounding, expect("rounding_halfwidth_pct_points"));
        let cv = 100.0 * published::break_even_cv((with / without).ln(), 1);
        case.close("CV", Some(cv), expect("cv_pct_below_which_a_single_pair_would_reach_1_96_sigma"));
    }
}

fn is_of(id: &str, kind: &str) -> bool {
    id.strip_prefix(kind).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn describe(case: &Case) {
    let values = case.values("x");
    let summary = summary::summarise(&values).unwrap();
    assert_eq!(case.expect["n"].as_u64(), Some(values.len() as u64));
    let logs = summary::logs(&values).unwrap();
    let fields = [
        ("mean", Some(summary.mean)),
        ("median", Some(summary.median)),
        ("sd", summary.sd),
        ("cv", summary.cv),
        ("geomean", summary.geometric_mean),
        ("min", Some(summary.low)),
        ("max", Some(summary.high)),
        ("sd_log", summary::variance(&logs).map(f64::sqrt)),
        ("q10", summary::quantile(&values, 0.1)),
        ("q25", summary::quantile(&values, 0.25)),
        ("q75", summary::quantile(&values, 0.75)),
        ("q90", summary::quantile(&values, 0.9)),
    ];
    for (name, actual) in fields {
        if case.expect.get(name).is_some() {
            case.field(name, actual);
        }
    }
}

fn interval(case: &Case, inference: Option<student::Inference>, confidence: f64, scale: fn(f64) -> f64) {
    let bounds = inference.and_then(|inference| inference.interval(confidence));
    case.field("lo", bounds.map(|bounds| scale(bounds.0)));
    case.field("hi", bounds.map(|bounds| scale(bounds.1)));
}

fn differences(x: &[f64], y: &[f64]) -> Vec<f64> {
    x.iter().zip(y).map(|(x, y)| x - y).collect()
}

fn against_baseline(case: &Case) {
    let rows: Vec<Vec<f64>> = case.input["y"].as_array().unwrap().iter().map(floats).collect();
    for (cell, expected) in (1..8).zip(case.expect.as_array().unwrap()) {
        let differences: Vec<f64> = rows.iter().map(|row| (row[cell] / row[0]).ln()).collect();
        let inference = student::paired(&differences, 0.0).unwrap();
        let (low, high) = inference.interval(0.95).unwrap();
        case.close("ratio", Some(inference.estimate.exp()), &expected["ratio"]);
        case.close("lo", Some(low.exp()), &expected["lo"]);
        case.close("hi", Some(high.exp()), &expected["hi"]);
        case.close("p", inference.p(), &expected["p"]);
    }
}

/// The whole-plot factor judged by paired whole-plot means over blocks is R's F test in the block:ht stratum.
fn split_plot(case: &Case) {
    let y = case.logs("y");
    let differences: Vec<f64> =
        y.chunks_exact(4).map(|block| f64::midpoint(block[2], block[3]) - f64::midpoint(block[0], block[1])).collect();
    let inference = student::paired(&differences, 0.0).unwrap();
    case.close("F", Some(inference.t().powi(2)), &case.expect["ht"]["F"]);
    case.close("p", inference.p(), &case.expect["ht"]["p"]);
}

fn mw_with_u(u: usize) -> irqlab::analysis::exact::MannWhitney {
    let splits = (0..64_u32).filter(|split| split.count_ones() == 3);
    let tests = splits.map(|split| {
        let side = |bit: u32| (0..6).filter(|i| split >> i & 1 == bit).map(f64::from).collect::<Vec<_>>();
        mann_whitney(&side(1), &side(0)).unwrap()
    });
    tests.into_iter().find(|test| test.u.total_cmp(&(u as f64)).is_eq()).unwrap()
}

/// The largest two-sided p at most 0.05 that n against n can give, from the test's own tails.
fn attainable_size(n: usize) -> f64 {
    let mut largest = 0.0_f64;
    // Sliding x through y one rank at a time visits every U.
    for u in 0..=n * n {
        let (whole, part) = (u / n, u % n);
        let x: Vec<f64> =
            (0..n).map(|i| ((if i < part { whole + 1 } else { whole }) * 100 + n - i) as f64 - 50.0).collect();
        let y: Vec<f64> = (0..n).map(|i| (i * 100 + 99) as f64).collect();
        let p = mann_whitney(&x, &y).unwrap().p;
        if p <= 0.05 {
            largest = largest.max(p);
        }
    }
    largest
}

fn grubbs_p_at(n: usize, critical: f64) -> f64 {
    let (mut low, mut high) = (1.5_f64, 1e6_f64);
    let sample = |far: f64| -> Vec<f64> {
        let mut values: Vec<f64> =
            (0..n - 1).map(|i| if i % 2 == 0 { -1.0 } else { 1.0 } * (1.0 + i as f64 * 0.01)).collect();
        values.push(far);
        values
    };
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        let farthest = doubts::grubbs(&sample(middle)).unwrap();
        if farthest.index == n - 1 && farthest.g > critical { high = middle } else { low = middle }
    }
    doubts::grubbs(&sample(high)).unwrap().p
}

#[test]
fn every_statistic_matches_its_reference_values() {
    let cases = cases();
    let unknown: Vec<&str> = cases.iter().filter(|case| !check(case)).map(|case| case.id.as_str()).collect();
    assert!(unknown.is_empty(), "vectors nobody checks: {unknown:?}");
    assert!(cases.len() > 100);
}

#[test]
fn a_vector_of_an_unknown_method_is_noticed() {
    for id in ["welchx.new", "padjust.new", "trend.new", "sf.new", "rcbd.new", "contrast22.new"] {
        let case = Case { id: id.to_owned(), input: Value::Null, expect: Value::Null, rtol: 0.0 };
        assert!(!check(&case), "{id}");
    }
}
