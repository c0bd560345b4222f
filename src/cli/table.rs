//! Plain text tables. Cells come from the kernel, so control characters in them are escaped.

/// Which side a column leans to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Right,
}

/// Lays out rows under a header, two blanks between columns, no blanks at line ends.
pub(super) fn render(header: &[(String, Align)], rows: &[Vec<String>]) -> String {
    let names = header.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> =
        std::iter::once(&names).chain(rows).map(|row| row.iter().map(|cell| printable(cell)).collect()).collect();
    let width = |column: usize| lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<usize> = (0..header.len()).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for line in &lines {
        let cells = line.iter().zip(&widths).zip(header);
        let cells: Vec<String> = cells
            .map(|((cell, width), (_, align))| match align {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// The text with control characters as `\u{1b}`: a device's name must not drive a terminal.
pub(super) fn printable(text: &str) -> String {
    let escape = |letter: char| {
        if letter.is_control() { letter.escape_default().to_string() } else { letter.to_string() }
    };
    text.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_align_and_cannot_drive_a_terminal() {
        let header = [("IRQ".to_owned(), Align::Right), ("NAME".to_owned(), Align::Left)];
        let rows = [vec!["7".to_owned(), "a\u{1b}[2J\n".to_owned()], vec!["1160".to_owned(), "é".to_owned()]];
        assert_eq!(render(&header, &rows), " IRQ  NAME\n   7  a\\u{1b}[2J\\n\n1160  é\n");
    }
}
