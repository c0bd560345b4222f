//! `irqlab irqs`: the interrupts of a host as a table or as JSON.

use std::io;

use serde::{Serialize, Serializer};

use super::table::{Align, render};
use crate::cpu_set::{Cpu, CpuSet};
use crate::host::counters::{Row, Table};
use crate::host::files::{Files, SystemError};
use crate::host::read_facts;
use crate::recording::facts::{HostFacts, IrqFacts, Movability};

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Named rows too.
    pub all: bool,
    /// JSON and not a table.
    pub json: bool,
}

/// More columns than this do not fit a screen: a total stands for them.
const MOST_CPU_COLUMNS: usize = 8;

/// One row of `--json`.
#[derive(Serialize)]
struct Entry<'a> {
    label: &'a str,
    irq: Option<u32>,
    #[serde(serialize_with = "as_map")]
    counts: Vec<(String, u64)>,
    chip: Option<&'a str>,
    actions: &'a [String],
    description: &'a str,
    affinity: Option<&'a CpuSet>,
    effective: Option<&'a CpuSet>,
    movable: Option<bool>,
    device: Option<&'a str>,
    driver: Option<&'a str>,
}

/// Reads the host and renders its interrupts, in the order of `/proc/interrupts`.
pub fn irqs(files: &dyn Files, options: Options) -> Result<String, SystemError> {
    let path = "/proc/interrupts";
    let invalid = |why: String| SystemError::new("read", path, io::Error::new(io::ErrorKind::InvalidData, why));
    let table = Table::parse(&files.read(path)?).map_err(|error| invalid(error.to_string()))?;
    let facts = read_facts(files);
    let rows = table.rows.iter().filter(|row| options.all || row.irq.is_some());
    let rows: Vec<(&Row, Option<&IrqFacts>)> = rows.map(|row| (row, find(&facts, row))).collect();
    if !options.json {
        return Ok(text(&table, &rows));
    }
    let entries: Vec<Entry> = rows.iter().map(|(row, facts)| entry(&table, row, *facts)).collect();
    serde_json::to_string_pretty(&entries).map(|json| json + "\n").map_err(|error| invalid(error.to_string()))
}

fn find<'a>(facts: &'a HostFacts, row: &Row) -> Option<&'a IrqFacts> {
    let irq = row.irq?;
    let place = facts.irqs.binary_search_by_key(&irq, |facts| facts.irq).ok()?;
    Some(&facts.irqs[place])
}

/// A count for the whole host (`ERR`) is nobody's CPU and stands under `all`.
fn entry<'a>(table: &Table, row: &'a Row, facts: Option<&'a IrqFacts>) -> Entry<'a> {
    let counts = if table.is_scalar(row) {
        vec![("all".to_owned(), table.counts(row)[0])]
    } else {
        table.by_cpu(row).map(|(cpu, count)| (cpu.to_string(), count)).collect()
    };
    Entry {
        label: &row.label,
        irq: row.irq.map(|irq| irq.0),
        counts,
        chip: facts.map(|facts| &*facts.chip).filter(|chip| !chip.is_empty()),
        actions: facts.map(|facts| &*facts.actions).unwrap_or_default(),
        description: &row.description,
        affinity: facts.and_then(|facts| facts.affinity.as_ref()),
        effective: facts.and_then(|facts| facts.effective.as_ref()),
        movable: facts.map(|facts| facts.movability == Movability::Movable),
        device: facts.and_then(|facts| facts.device.as_deref()),
        driver: facts.and_then(|facts| facts.driver.as_deref()),
    }
}

fn text(table: &Table, rows: &[(&Row, Option<&IrqFacts>)]) -> String {
    use Align::{Left, Right};
    let columns = ["IRQ", "DEVICE", "DRIVER", "ACTIONS", "MASK", "EFFECTIVE", "HINT", "NODE", "MOVABLE"];
    let mut header: Vec<(String, Align)> = columns.map(|name| (name.to_owned(), Left)).to_vec();
    header[0].1 = Right;
    let each = table.cpus.len() <= MOST_CPU_COLUMNS;
    let cpus: &[Cpu] = if each { &table.cpus } else { &[] };
    header.extend(cpus.iter().map(|cpu| (format!("CPU{cpu}"), Right)));
    header.push(("TOTAL".to_owned(), Right));
    let cells = rows.iter().map(|(row, facts)| {
        let mut cells = described(row, *facts);
        let counts = if table.is_scalar(row) { &[][..] } else { table.counts(row) };
        cells.extend((0..cpus.len()).map(|column| counts.get(column).map_or("-".to_owned(), u64::to_string)));
        cells.push(table.counts(row).iter().fold(0_u64, |sum, count| sum.saturating_add(*count)).to_string());
        cells
    });
    let text = render(&header, &cells.collect::<Vec<_>>());
    if rows.is_empty() { text + "no interrupt is listed; --all shows the named rows\n" } else { text }
}

fn described(row: &Row, facts: Option<&IrqFacts>) -> Vec<String> {
    let set = |set: Option<&CpuSet>| set.map_or("-".to_owned(), CpuSet::to_string);
    let word = |word: Option<&String>| word.cloned().unwrap_or("-".to_owned());
    let Some(facts) = facts else {
        let mut cells = vec![row.label.to_string(), "-".to_owned(), "-".to_owned(), row.description.to_string()];
        cells.resize(9, "-".to_owned());
        return cells;
    };
    let movable = match facts.movability {
        Movability::Movable => "yes",
        Movability::Managed => "no, managed",
        Movability::NoMask => "no mask",
    };
    vec![
        row.label.to_string(),
        word(facts.device.as_ref()),
        word(facts.driver.as_ref()),
        if facts.actions.is_empty() { "-".to_owned() } else { facts.actions.join(", ") },
        set(facts.affinity.as_ref()),
        set(facts.effective.as_ref()),
        set(facts.hint.as_ref()),
        facts.node.map_or("-".to_owned(), |node| node.to_string()),
        movable.to_owned(),
    ]
}

fn as_map<S: Serializer>(counts: &[(String, u64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(counts.iter().map(|(cpu, count)| (cpu, count)))
}
