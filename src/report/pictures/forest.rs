//! The forest: one ratio with its interval per row, the margin as a band behind it, 1 as the line of no effect.

use super::super::number::percent;
use super::super::tables::context;
use super::super::text::plain;
use super::super::{Evidence, sentence};
use super::Drawn;
use super::canvas::{ABOVE, Anchor, BELOW, Canvas, Frame, Hollow, Ink, Scale, WIDTH, cut_apart};
use crate::analysis::{self, ComparisonFinding, Verdict};

/// Rows at most; decided comparisons go before others, and large effects before small ones.
const ROWS: usize = 24;

/// Pixels per row.
const ROW: f64 = 34.0;

/// Pixels for names and for numbers.
const SIDES: (f64, f64) = (196.0, 216.0);

pub(super) fn draw(evidence: Evidence<'_>) -> Option<Drawn> {
    let all = &evidence.findings.comparisons;
    let ratio = |finding: &ComparisonFinding| finding.scale == analysis::Scale::Ratio && centre(finding).is_some();
    let mut rows: Vec<&ComparisonFinding> = all.iter().filter(|finding| ratio(finding)).collect();
    if !rows.iter().any(|finding| finding.estimate.is_some()) {
        return None;
    }
    if rows.len() > ROWS {
        let undecided =
            |finding: &&ComparisonFinding| matches!(finding.verdict, Verdict::Inconclusive | Verdict::NoInference(_));
        let distance = |finding: &ComparisonFinding| centre(finding).map_or(0.0, |centre| centre.ln().abs());
        let mut ranked: Vec<usize> = (0..rows.len()).collect();
        ranked.sort_by(|a, b| {
            let (a, b) = (&rows[*a], &rows[*b]);
            undecided(a).cmp(&undecided(b)).then(distance(b).total_cmp(&distance(a)))
        });
        ranked.truncate(ROWS);
        ranked.sort_unstable();
        rows = ranked.into_iter().map(|place| rows[place]).collect();
    }
    let left_out = all.len() - rows.len();
    let metrics: std::collections::BTreeSet<&str> = rows.iter().map(|finding| finding.metric.as_str()).collect();
    let label = |finding: &ComparisonFinding| {
        plain(evidence.findings.metrics.iter().find(|m| m.id == finding.metric).map_or(&finding.metric, |m| &m.label))
    };
    let single = (metrics.len() == 1).then(|| label(rows[0]));
    let title = single.as_ref().map_or_else(
        || "Ratios to the base level".to_owned(),
        |metric| format!("Ratios of {metric} to the base level"),
    );
    let mut canvas = Canvas::new(&Frame {
        heading: &title,
        height: ABOVE + BELOW + ROW * rows.len() as f64,
        sides: SIDES,
        x: scale(&rows)?,
        y: Scale::Steps(rows.len()),
        x_label: "ratio with 95 % interval (1: no difference)",
        y_label: "",
    });
    let (left, right, top, bottom) = canvas.edges();
    for (index, finding) in rows.iter().enumerate() {
        let (from, to) = margin(finding);
        let (from, to) = (canvas.x(from).max(left), canvas.x(to).min(right));
        let row_top = canvas.row(index) - ROW / 2.0;
        canvas.area((from, row_top), (to - from, ROW), Ink::Accent, 0.16);
    }
    let one = canvas.x(1.0);
    canvas.line((one, top), (one, bottom), Ink::Text, "4 3");
    let mut words = Vec::new();
    let names: Vec<String> = rows.iter().map(|finding| name(finding)).collect();
    let cut_names = cut_apart(&names, SIDES.0 - 14.0);
    for (index, finding) in rows.iter().enumerate() {
        let metric = single.is_none().then(|| label(finding));
        let raised = if metric.is_some() { 7.0 } else { 0.0 };
        let place = (left - 8.0, canvas.row(index) - raised);
        canvas.label((&names[index], &cut_names[index]), place, Anchor::End, Ink::Text);
        let numbers = row(&mut canvas, evidence, (index, finding), metric.as_deref());
        let on = metric.map(|metric| format!(" on {metric}")).unwrap_or_default();
        words.push(format!("{}{on}: {numbers}", name(finding)));
    }
    let margins =
        if rows.iter().any(|finding| finding.margin.is_some()) { "; the band is the declared margin" } else { "" };
    let more = match left_out {
        0 => String::new(),
        count => format!("; {count} more in the table of comparisons"),
    };
    let description = format!("Marks are ratios, lines 95 % intervals{margins}{more}. {}.", words.join(". "));
    Some(Drawn { svg: canvas.finish(&title, &description), title, description })
}

/// Draws one row, with its metric where there are several, and returns its numbers in words.
fn row(
    canvas: &mut Canvas,
    evidence: Evidence<'_>,
    (index, finding): (usize, &ComparisonFinding),
    metric: Option<&str>,
) -> String {
    let design = &evidence.recording.header.design;
    let context = context(design, evidence.findings, &finding.metric);
    let y = canvas.row(index);
    let (ink, series) = look(finding.verdict);
    if let Some(estimate) = finding.estimate {
        canvas.interval_x((estimate.low, estimate.high), y, ink);
    }
    if let Some(value) = centre(finding) {
        let hollow = if finding.estimate.is_none() { Hollow::Yes } else { Hollow::No };
        canvas.marker((canvas.x(value), y), series, ink, hollow);
    }
    let (left, right, ..) = canvas.edges();
    if let Some(metric) = metric {
        canvas.text(metric, (left - 8.0, y + 7.0), Anchor::End, (Ink::Muted, SIDES.0 - 14.0));
    }
    let effect = sentence::effect(context, finding);
    let numbers = match finding.estimate {
        Some(_) => format!("{effect} [{}]", sentence::interval(context, finding)),
        None => format!("{effect}, no interval"),
    };
    let verdict = sentence::verdict(context, finding);
    canvas.text(&numbers, (right + 10.0, y - 7.0), Anchor::Start, (Ink::Text, SIDES.1 - 14.0));
    canvas.text(&verdict, (right + 10.0, y + 7.0), Anchor::Start, (Ink::Muted, SIDES.1 - 14.0));
    let within = finding.margin.map(|margin| format!(" (margin {})", percent(margin))).unwrap_or_default();
    format!("{numbers}, {verdict}{within}")
}

/// `two_cpus / one_cpu`, with what is held fixed.
fn name(finding: &ComparisonFinding) -> String {
    let within: Vec<String> = finding.within.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
    let mut name = format!("{} / {}", plain(&finding.level), plain(&finding.base));
    name.extend((!within.is_empty()).then(|| format!(", {}", plain(&within.join(", ")))));
    name
}

fn centre(finding: &ComparisonFinding) -> Option<f64> {
    let centre = finding.estimate.map(|estimate| estimate.value).or(finding.point)?;
    (centre.is_finite() && centre > 0.0).then_some(centre)
}

/// The declared margin as bounds of the ratio; both 1 without one.
fn margin(finding: &ComparisonFinding) -> (f64, f64) {
    finding.margin.map_or((1.0, 1.0), |margin| (1.0 - margin, 1.0 + margin))
}

/// From all ratios, bounds and margins. A bound so far out that nothing else could be seen is drawn to the edge.
fn scale(rows: &[&ComparisonFinding]) -> Option<Scale> {
    let (mut low, mut high) = (1.0_f64, 1.0_f64);
    for finding in rows {
        let (from, to) = margin(finding);
        let (bottom, top) = finding.estimate.map_or((1.0, 1.0), |estimate| (estimate.low, estimate.high));
        let centre = centre(finding)?;
        for value in [from, to, centre, bottom.max(centre / 20.0), top.min(centre * 20.0)] {
            if value.is_finite() && value > 0.0 {
                low = low.min(value);
                high = high.max(value);
            }
        }
    }
    Scale::fitting([low, high])
}

fn look(verdict: Verdict) -> (Ink, usize) {
    match verdict {
        Verdict::Equivalent => (Ink::Accent, 1),
        Verdict::Faster { .. } => (Ink::Better, 3),
        Verdict::Inconclusive | Verdict::NoInference(_) => (Ink::Muted, 0),
        Verdict::Slower { .. } => (Ink::Worse, 4),
    }
}

const _: () = assert!(SIDES.0 + SIDES.1 < WIDTH);
