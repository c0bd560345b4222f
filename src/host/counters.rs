//! Tables of counters by CPU: the shape `/proc/interrupts` and `/proc/softirqs` share. Knows no file and no device.
//!
//! The layout is not stable: columns are the CPUs that are there (online ones in `/proc/interrupts`, possible ones in
//! `/proc/softirqs`), rows come and go, a row may hold fewer counts than there are columns, and the text behind the
//! counts is free. Only this is relied on: a header of `CPUn` words, rows of a label, `:`, and counts.

use std::ops::Range;

use crate::cpu_set::{Cpu, CpuSet, Irq, MAX_CPU, MAX_IRQ};

/// One sample of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Table {
    /// CPUs of the columns, in their order. Column 1 need not be CPU 1.
    pub cpus: Vec<Cpu>,
    /// Rows in their order.
    pub rows: Vec<Row>,
    /// Whether the last line has its newline; without it the file was cut.
    pub complete: bool,
    counts: Vec<u64>,
}

/// One row of a table. Its counts are asked for with [`Table::counts`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The text before the first `:`, trimmed: `36`, `LOC`, `I/O`, `NET_RX`.
    pub label: Box<str>,
    /// 0 for the first row of that label, 1 for the second: powerpc has had two `LOC` rows.
    pub ordinal: u32,
    /// The number where the label is all digits: a device interrupt.
    pub irq: Option<Irq>,
    /// The text behind the counts, trimmed; chip, hardware number and actions for numbered rows.
    pub description: Box<str>,
    range: Range<usize>,
}

/// A text that is not such a table.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TableError {
    /// The first line has no newline: only a part of the file was read.
    #[error("cut inside the header line after {length} bytes: read the file to its end")]
    CutHeader {
        /// Bytes that were there.
        length: usize,
    },
    /// The header names a CPU twice, or one beyond what a kernel can have.
    #[error("`{word}` in the header is a repeated or impossible CPU")]
    OddCpu {
        /// The header's word.
        word: String,
    },
    /// The first line is not a header.
    #[error("the first line is not a header of `CPU0 CPU1 …`")]
    NoHeader,
}

impl Table {
    /// Reads a table in one pass.
    ///
    /// A row has at most as many counts as there are columns, each all digits up to a blank or the line's end; the
    /// first word that is none ends them, so that a chip named `11910000.pinctrl` is not a count.
    pub fn parse(text: &[u8]) -> Result<Self, TableError> {
        let Some(end) = text.iter().position(|byte| *byte == b'\n') else {
            return Err(TableError::CutHeader { length: text.len() });
        };
        let cpus = parse_header(&text[..end])?;
        let counts = Vec::with_capacity(text.len() / ZERO.len());
        let mut table = Table { cpus, rows: Vec::new(), complete: text.ends_with(b"\n"), counts };
        let mut at = end + 1;
        while at < text.len() {
            at = table.parse_row(text, at);
        }
        table.number_repeated_labels();
        Ok(table)
    }

    /// The counts of a row as shown: as many as there are columns, fewer, or none.
    pub fn counts(&self, row: &Row) -> &[u64] {
        &self.counts[row.range.clone()]
    }

    /// Whether the row holds one count for the whole host (`ERR`, `MIS`). With one CPU there is no telling.
    pub fn is_scalar(&self, row: &Row) -> bool {
        row.range.len() == 1 && self.cpus.len() > 1
    }

    /// The counts of a row by CPU; nothing for a row that counts for the whole host.
    pub fn by_cpu<'a>(&'a self, row: &'a Row) -> impl Iterator<Item = (Cpu, u64)> + 'a {
        let counts = if self.is_scalar(row) { &[] } else { self.counts(row) };
        self.cpus.iter().copied().zip(counts.iter().copied())
    }

    /// The CPUs of the columns.
    pub fn cpu_set(&self) -> CpuSet {
        self.cpus.iter().copied().collect()
    }

    /// The row of a numbered interrupt.
    pub fn irq(&self, irq: Irq) -> Option<&Row> {
        self.rows.iter().find(|row| row.irq == Some(irq))
    }

    /// Reads the row at `at` and gives back where the next line starts. A line without `:` is no row.
    fn parse_row(&mut self, text: &[u8], mut at: usize) -> usize {
        let start = at;
        while at < text.len() && text[at] != b':' {
            if text[at] == b'\n' {
                return at + 1;
            }
            at += 1;
        }
        if at == text.len() {
            return at;
        }
        let label = String::from_utf8_lossy(&text[start..at]).trim().to_owned();
        at += 1;
        let first = self.counts.len();
        let limit = first + self.cpus.len();
        while self.counts.len() < limit {
            if text.get(at..at + ZERO.len()) == Some(ZERO)
                && text.get(at + ZERO.len()).is_some_and(|byte| *byte == b' ')
            {
                self.counts.push(0);
                at += ZERO.len();
                continue;
            }
            let Some((count, next)) = parse_count(text, at) else { break };
            self.counts.push(count);
            at = next;
        }
        let end = text[at..].iter().position(|byte| *byte == b'\n').map_or(text.len(), |length| at + length);
        let description = String::from_utf8_lossy(&text[at..end]).trim().into();
        let irq = parse_irq(&label);
        let row = Row { label: label.into(), ordinal: 0, irq, description, range: first..self.counts.len() };
        self.rows.push(row);
        end + 1
    }

    fn number_repeated_labels(&mut self) {
        let mut order: Vec<usize> = (0..self.rows.len()).collect();
        order.sort_by(|a, b| self.rows[*a].label.cmp(&self.rows[*b].label).then(a.cmp(b)));
        for pair in order.windows(2) {
            if self.rows[pair[0]].label == self.rows[pair[1]].label {
                self.rows[pair[1]].ordinal = self.rows[pair[0]].ordinal + 1;
            }
        }
    }
}

impl Row {
    /// The label, with `#2` behind the second row of that label.
    pub fn key(&self) -> String {
        match self.ordinal {
            0 => self.label.to_string(),
            ordinal => format!("{}#{}", self.label, ordinal + 1),
        }
    }
}

/// By far the most frequent cell of a large host: a blank and a zero, right-aligned in ten columns.
const ZERO: &[u8] = b"          0";

fn parse_header(line: &[u8]) -> Result<Vec<Cpu>, TableError> {
    let line = String::from_utf8_lossy(line);
    let mut cpus: Vec<Cpu> = Vec::new();
    for word in line.split_ascii_whitespace() {
        let digits = word.strip_prefix("CPU").filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
        let digits = digits.filter(|digits| !digits.is_empty()).ok_or(TableError::NoHeader)?;
        let cpu = digits.parse().ok().filter(|cpu| *cpu <= MAX_CPU).map(Cpu);
        // Ascending in every kernel, so that the search is for the odd file only.
        let repeated = |cpu: &Cpu| cpus.last().is_some_and(|last| last >= cpu) && cpus.contains(cpu);
        let cpu = cpu.filter(|cpu| !repeated(cpu)).ok_or_else(|| TableError::OddCpu { word: word.to_owned() })?;
        cpus.push(cpu);
    }
    if cpus.is_empty() { Err(TableError::NoHeader) } else { Ok(cpus) }
}

/// Reads the count at `at`, blanks before it skipped; also where the text behind it starts.
fn parse_count(text: &[u8], mut at: usize) -> Option<(u64, usize)> {
    while matches!(text.get(at), Some(b' ' | b'\t')) {
        at += 1;
    }
    let start = at;
    let mut count = 0_u64;
    while let Some(digit) = text.get(at).filter(|byte| byte.is_ascii_digit()) {
        count = count.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
        at += 1;
    }
    let ended = matches!(text.get(at), None | Some(b' ' | b'\t' | b'\r' | b'\n'));
    (at > start && ended).then_some((count, at))
}

fn parse_irq(label: &str) -> Option<Irq> {
    let digits = !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_digit());
    label.parse().ok().filter(|irq| digits && *irq <= MAX_IRQ).map(Irq)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_cpu_ids_and_not_indices() {
        let table = Table::parse(b"  CPU0 CPU2 CPU4 \n 1: 5 0 7  IO-APIC 1-edge  i8042\nERR: 3\n").unwrap();
        assert_eq!(table.by_cpu(&table.rows[0]).collect::<Vec<_>>(), [(Cpu(0), 5), (Cpu(2), 0), (Cpu(4), 7)]);
        assert!(table.is_scalar(&table.rows[1]));
        assert_eq!((table.by_cpu(&table.rows[1]).count(), table.counts(&table.rows[1])), (0, &[3][..]));
    }

    #[test]
    fn a_word_that_only_begins_with_digits_is_no_count() {
        let table = Table::parse(b" CPU0 CPU1\n 37: 0  11910000.pinctrl  35 Edge  gpiomon\n").unwrap();
        assert_eq!(table.counts(&table.rows[0]), [0]);
        assert_eq!(&*table.rows[0].description, "11910000.pinctrl  35 Edge  gpiomon");
    }

    #[test]
    fn the_fast_path_for_zeros_does_not_swallow_a_word() {
        for (line, counts, description) in [
            ("  1:          0          0 x", vec![0, 0], "x"),
            ("  1:          0          0x y", vec![0], "0x y"),
            ("  1:          0          01 y", vec![0, 1], "y"),
            ("  1:          0          0", vec![0, 0], ""),
            ("  1:          0          0          0  z", vec![0, 0], "0  z"),
        ] {
            let table = Table::parse(format!(" CPU0 CPU1\n{line}\n").as_bytes()).unwrap();
            assert_eq!(table.counts(&table.rows[0]), counts, "{line}");
            assert_eq!(&*table.rows[0].description, description, "{line}");
        }
    }

    #[test]
    fn texts_that_are_no_table_are_refused() {
        assert_eq!(Table::parse(b"   CPU0   CPU1"), Err(TableError::CutHeader { length: 14 }));
        assert_eq!(Table::parse(b""), Err(TableError::CutHeader { length: 0 }));
        for text in ["\n", "cpu  1 2 3\n", "CPU\n", "CPU0 x\n", "CPU-1\n"] {
            assert_eq!(Table::parse(text.as_bytes()), Err(TableError::NoHeader), "{text:?}");
        }
        for text in ["CPU0 CPU0\n", "CPU99999999999\n"] {
            assert!(matches!(Table::parse(text.as_bytes()), Err(TableError::OddCpu { .. })), "{text:?}");
        }
    }

    #[test]
    fn a_missing_last_newline_is_noticed() {
        assert!(Table::parse(b"CPU0\n 1: 5\n").unwrap().complete);
        let cut = Table::parse(b"CPU0\n 1: 5  IO-AP").unwrap();
        assert!(!cut.complete);
        assert_eq!(&*cut.rows[0].description, "IO-AP");
        assert_eq!(Table::parse(b"CPU0\n 1: 5\n 12").unwrap().rows.len(), 1);
    }

    #[test]
    fn labels_are_numbers_only_when_all_digits() {
        let table = Table::parse(b"CPU0\nI/O: 1\nC15: 2\n+3: 3\n 7: 4\n99999999999: 5\n : 6\n").unwrap();
        let irqs: Vec<_> = table.rows.iter().map(|row| row.irq).collect();
        assert_eq!(irqs, [None, None, None, Some(Irq(7)), None, None]);
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(text in proptest::collection::vec(proptest::num::u8::ANY, 0..400)) {
            let mut body = b"  CPU0 CPU3\n".to_vec();
            body.extend(&text);
            let _ = Table::parse(&text);
            let table = Table::parse(&body).unwrap();
            for row in &table.rows {
                proptest::prop_assert!(table.counts(row).len() <= 2);
            }
        }
    }
}
