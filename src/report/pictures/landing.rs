//! Where interrupts landed: one row per routed IRQ and treatment, one column per CPU, the mask asked for as an outline.

use std::collections::BTreeSet;

use super::super::number::share;
use super::super::text::plain;
use super::canvas::{ABOVE, Anchor, BELOW, Canvas, Frame, Ink, Scale, cut_apart};
use super::{Drawn, treatment};
use crate::analysis::{IrqLanding, TreatmentCheck};
use crate::report::Evidence;

/// Columns at most; neighbouring CPUs of a larger host share one.
const COLUMNS: usize = 32;

/// Rows of IRQs at most, and of one treatment.
const ROWS: usize = 40;
const BUSIEST: usize = 5;

/// Columns up to which a cell has its share in numbers.
const NUMBERED: usize = 8;

const ROW: f64 = 22.0;
const SIDES: (f64, f64) = (274.0, 66.0);

/// A line of the picture.
enum Row<'a> {
    Irq(&'a IrqLanding),
    Treatment(usize),
}

pub(super) fn draw(evidence: Evidence<'_>) -> Option<Drawn> {
    let checks = &evidence.findings.treatment_checks;
    let busy: Vec<&TreatmentCheck> =
        checks.iter().filter(|check| check.irqs.iter().any(|irq| total(irq) > 0)).collect();
    let each = (ROWS / busy.len().max(1)).clamp(1, BUSIEST);
    let mut rows = Vec::new();
    for check in busy.iter().take(ROWS) {
        let mut irqs: Vec<&IrqLanding> = check.irqs.iter().filter(|irq| total(irq) > 0).collect();
        irqs.sort_by_key(|irq| (std::cmp::Reverse(total(irq)), irq.label.len(), irq.label.clone()));
        rows.push(Row::Treatment(check.treatment));
        rows.extend(irqs.into_iter().take(each).map(Row::Irq));
    }
    if rows.is_empty() {
        return None;
    }
    let columns = columns(evidence, checks);
    let title = "Where interrupts of routed IRQs landed".to_owned();
    let mut canvas = Canvas::new(&Frame {
        heading: &title,
        height: ABOVE + BELOW + ROW * rows.len() as f64,
        sides: SIDES,
        x: Scale::Steps(columns.len()),
        y: Scale::Steps(rows.len()),
        x_label: "CPU (outlined: asked for)",
        y_label: "",
    });
    name_columns(&mut canvas, &columns);
    let treatments = rows.iter().filter_map(|row| match row {
        Row::Treatment(number) => Some(treatment(evidence, *number)),
        Row::Irq(_) => None,
    });
    let names: Vec<String> = treatments.collect();
    let mut cut_names = names.iter().zip(cut_apart(&names, canvas.edges().0 - 12.0));
    for (index, row) in rows.iter().enumerate() {
        let y = canvas.row(index);
        match row {
            Row::Treatment(_) => {
                if let Some((name, shown)) = cut_names.next() {
                    canvas.label((name, &shown), (8.0, y + 2.0), Anchor::Start, Ink::Text);
                }
            }
            Row::Irq(irq) => draw_irq(&mut canvas, irq, &columns, y),
        }
    }
    let binned = if columns.iter().any(|cpus| cpus.len() > 1) { " Neighbouring CPUs share a column." } else { "" };
    let description = format!(
        "A row is an IRQ under a treatment, at most the {each} busiest of each; the fuller a cell's colour, the larger the \
         share of its interrupts that landed on that CPU. Outlined cells are those its mask asked for, dashed where only \
         some CPUs of a column were.{binned} The number at the right counts its interrupts."
    );
    Some(Drawn { svg: canvas.finish(&title, &description), title, description })
}

fn draw_irq(canvas: &mut Canvas, irq: &IrqLanding, columns: &[Vec<u32>], y: f64) {
    let (left, right, ..) = canvas.edges();
    let width = (right - left) / columns.len() as f64;
    let name = format!("{} {}", plain(&irq.label), device(&irq.description));
    canvas.text(&name, (left - 8.0, y), Anchor::End, (Ink::Muted, SIDES.0 - 24.0));
    let all = total(irq);
    for (column, cpus) in columns.iter().enumerate() {
        let landed: u64 = irq.by_cpu.iter().filter(|(cpu, _)| cpus.contains(cpu)).map(|(_, count)| *count).sum();
        let asked = cpus.iter().filter(|cpu| irq.asked.iter().any(|asked| asked.0 == **cpu)).count();
        let corner = (left + width * column as f64 + 1.0, y - ROW / 2.0 + 2.0);
        let size = (width - 2.0, ROW - 4.0);
        canvas.area(corner, size, Ink::Faint, 0.35);
        if landed > 0 {
            canvas.area(corner, size, Ink::Accent, (landed as f64 / all as f64).mul_add(0.6, 0.08));
        }
        if asked > 0 {
            canvas.outline(corner, size, Ink::Text, if asked < cpus.len() { "3 2" } else { "" });
        }
        if columns.len() <= NUMBERED && landed > 0 {
            canvas.text(&share(landed, all), (corner.0 + size.0 / 2.0, y), Anchor::Middle, (Ink::Text, size.0));
        }
    }
    canvas.text(&all.to_string(), (right + 8.0, y), Anchor::Start, (Ink::Muted, SIDES.1 - 10.0));
}

/// CPUs of each column: those of the host and those with interrupts, neighbours together on large hosts.
fn columns(evidence: Evidence<'_>, checks: &[TreatmentCheck]) -> Vec<Vec<u32>> {
    let online = evidence.recording.header.host.topology.online.iter().map(|cpu| cpu.0);
    let landed = checks.iter().flat_map(|check| &check.irqs).flat_map(|irq| &irq.by_cpu).map(|(cpu, _)| *cpu);
    let cpus: Vec<u32> = online.chain(landed).collect::<BTreeSet<u32>>().into_iter().collect();
    cpus.chunks(cpus.len().div_ceil(COLUMNS).max(1)).map(<[u32]>::to_vec).collect()
}

fn name_columns(canvas: &mut Canvas, columns: &[Vec<u32>]) {
    let (left, right, _, bottom) = canvas.edges();
    let width = (right - left) / columns.len() as f64;
    let names: Vec<String> = columns.iter().map(|cpus| crate::cpu_set::to_list(cpus.iter().copied())).collect();
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(1) as f64 * 7.0 + 6.0;
    // Names that would run into each other are left out, evenly.
    let step = (widest / width).ceil().max(1.0) as usize;
    for (column, name) in names.iter().enumerate().filter(|(column, _)| column % step == 0) {
        let x = left + width * (column as f64 + 0.5);
        canvas.text(name, (x, bottom + 12.0), Anchor::Middle, (Ink::Text, width * step as f64));
    }
}

/// The device of `PCI-MSI-0000:00:04.0 0-edge virtio1-input.0`: what stands behind the trigger.
fn device(description: &str) -> String {
    let words: Vec<&str> = description.split_whitespace().collect();
    let trigger = words.iter().rposition(|word| ["edge", "level", "fasteoi"].iter().any(|end| word.ends_with(end)));
    let device = trigger.and_then(|at| words.get(at + 1..)).filter(|rest| !rest.is_empty()).unwrap_or(&words);
    plain(&device.join(" "))
}

fn total(irq: &IrqLanding) -> u64 {
    irq.by_cpu.iter().map(|(_, count)| *count).sum()
}
