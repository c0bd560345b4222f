//! Hostile text becomes Markdown that shows it and does nothing else: inline text, code spans, fences, tables.
//!
//! Interrupt names, program output and the user's words may hold anything; whatever enters a view goes through here.

use serde::Serialize;

/// Longest sentence shown, characters; the recording has the whole.
const LONGEST_TEXT: usize = 2000;

/// Longest name shown, characters.
const LONGEST_NAME: usize = 300;

/// Widest column that is padded, characters: longer cells stand out of it.
const WIDEST: usize = 100;

/// Text as inline Markdown: every mark that means something is escaped, control and direction characters are
/// shown as `\u{fffd}`, line breaks become blanks.
pub(super) fn inline(text: &str) -> String {
    let characters = one_line(text, LONGEST_TEXT);
    let mut markdown = String::with_capacity(text.len());
    for (index, character) in characters.iter().copied().enumerate() {
        let word = |at: Option<usize>| at.and_then(|at| characters.get(at)).is_some_and(|c| c.is_alphanumeric());
        let inside_word = word(index.checked_sub(1)) && word(Some(index + 1));
        let marked = match character {
            '\\' | '`' | '*' | '[' | ']' | '<' | '>' | '&' | '~' | '$' => true,
            '_' => !inside_word,
            '#' | '-' | '+' | '=' => {
                index == 0 && characters.get(1).is_none_or(|next| *next == ' ' || *next == character)
            }
            '.' | ')' => {
                let number = index > 0 && characters[..index].iter().all(char::is_ascii_digit);
                number && characters.get(index + 1).is_none_or(|next| *next == ' ')
            }
            _ => false,
        };
        if marked {
            markdown.push('\\');
        }
        markdown.push(character);
    }
    markdown
}

/// Text on one line as it is, for places that are no Markdown: what terminals or XML do not take is shown as `\u{fffd}`.
pub(super) fn plain(text: &str) -> String {
    let characters = one_line(text, LONGEST_NAME).into_iter();
    characters.map(|c| if matches!(c, '\u{fffe}' | '\u{ffff}') { '\u{fffd}' } else { c }).collect()
}

/// Text as a code span. A text with `|` becomes plain inline text, as a code span with it cannot stand in a table.
pub(super) fn code(text: &str) -> String {
    let text: String = one_line(text, LONGEST_NAME).into_iter().collect();
    if text.trim().is_empty() || text.contains('|') {
        return if text.trim().is_empty() { "(empty)".to_owned() } else { inline(&text) };
    }
    let ticks = "`".repeat(longest_run(&text, '`') + 1);
    let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{pad}{text}{pad}{ticks}")
}

/// Text as a fenced block whose fence is longer than any run of backticks in it.
pub(super) fn fenced(text: &str, language: &str) -> String {
    let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
    let mut block = format!("{fence}{language}\n");
    for line in text.trim_end().lines() {
        block.extend(line.chars().map(|c| if c == '\t' || !hidden(c) { c } else { '\u{fffd}' }));
        block.push('\n');
    }
    block.push_str(&fence);
    block
}

/// The last part of an absolute path, so that a report does not tell where its author keeps files; a relative path
/// as it is.
pub(super) fn shown_path(path: &str) -> &str {
    if path.starts_with('/') { path.rsplit('/').next().unwrap_or(path) } else { path }
}

fn one_line(text: &str, longest: usize) -> Vec<char> {
    let mut characters: Vec<char> = Vec::new();
    for character in text.trim().chars() {
        let character = match character {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => ' ',
            c if hidden(c) => '\u{fffd}',
            c => c,
        };
        if character == ' ' && characters.last() == Some(&' ') {
            continue;
        }
        if characters.len() == longest {
            characters.push('…');
            break;
        }
        characters.push(character);
    }
    characters
}

/// Controls (terminal escapes among them), direction overrides and characters without width.
fn hidden(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
            | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

fn longest_run(text: &str, wanted: char) -> usize {
    let (mut longest, mut run) = (0, 0);
    for character in text.chars() {
        run = if character == wanted { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// A table, as rows for templates that lay it out themselves and as finished Markdown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Column headings.
    pub columns: Vec<String>,
    /// Cells, inline Markdown.
    pub rows: Vec<Vec<String>>,
    /// The whole as a Markdown table with aligned columns.
    pub markdown: String,
}

impl Table {
    /// Lays out a table; `columns` are headings, with `>` in front for right-aligned ones.
    pub(super) fn new(columns: &[&str], rows: Vec<Vec<String>>) -> Table {
        let right: Vec<bool> = columns.iter().map(|column| column.starts_with('>')).collect();
        let columns: Vec<String> = columns.iter().map(|column| column.trim_start_matches('>').to_owned()).collect();
        let cells = |row: &[String]| row.iter().map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>();
        let lines: Vec<Vec<String>> =
            std::iter::once(cells(&columns)).chain(rows.iter().map(|row| cells(row))).collect();
        let width = |column: usize| {
            lines
                .iter()
                .filter_map(|line| line.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
                .clamp(3, WIDEST)
        };
        let widths: Vec<usize> = (0..columns.len()).map(width).collect();
        let mut markdown = String::new();
        for (number, line) in lines.iter().enumerate() {
            for (column, width) in widths.iter().copied().enumerate() {
                let cell = line.get(column).map_or("", String::as_str);
                let text = if right[column] { format!("| {cell:>width$} ") } else { format!("| {cell:<width$} ") };
                markdown.push_str(&text);
            }
            markdown.push_str("|\n");
            if number == 0 {
                for (column, width) in widths.iter().copied().enumerate() {
                    let rule = "-".repeat(width - 1);
                    markdown.extend(["| ", &rule, if right[column] { ": " } else { "- " }]);
                }
                markdown.push_str("|\n");
            }
        }
        markdown.pop();
        Table { columns, rows, markdown }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_stays_text() {
        assert_eq!(
            inline("a|b\n# c \u{1b}[31m<b> [x](y) *z* _u_ v_w"),
            "a|b # c \u{fffd}\\[31m\\<b\\> \\[x\\](y) \\*z\\* \\_u\\_ v_w"
        );
        assert_eq!(inline("- 1"), "\\- 1");
        assert_eq!(inline("12. x"), "12\\. x");
        assert_eq!(inline("6.1.0 #1"), "6.1.0 #1");
        assert_eq!(inline("evil\u{202e}txt"), "evil\u{fffd}txt");
        assert_eq!(code("a`b``c"), "```a`b``c```");
        assert_eq!(code("`a"), "`` `a ``");
        assert_eq!(code("a\\|b"), "a\\\\|b");
        assert_eq!(code(" "), "(empty)");
        assert_eq!(inline(&"x".repeat(5000)).chars().count(), LONGEST_TEXT + 1);
        assert_eq!(code(&"x".repeat(5000)).chars().count(), LONGEST_NAME + 3);
    }

    #[test]
    fn a_cell_cannot_open_another_cell() {
        let table = Table::new(&["name", ">n"], vec![vec![code("a\\|b"), "1".to_owned()]]);
        assert_eq!(table.markdown, "| name   |   n |\n| ------ | --: |\n| a\\\\\\|b |   1 |");
    }

    #[test]
    fn a_text_cannot_close_its_fence() {
        assert_eq!(fenced("a\n````\nb\u{1b}\n\n", "exp"), "`````exp\na\n````\nb\u{fffd}\n`````");
    }
}
