//! `JUnit` XML: every expectation is a test case, so that a CI server shows which one failed.

use std::fmt::Write as _;

use crate::analysis::{ExpectationVerdict, Findings};
use crate::recording::Recording;
use crate::report::sentence::{expectation, expectation_word};
use crate::report::text::shown_path;

/// Failed expectations are failures; those that the data neither support nor contradict are skipped, with the reason.
pub fn junit(recording: &Recording, findings: &Findings) -> String {
    let design = &recording.header.design;
    let count = |wanted: fn(ExpectationVerdict) -> bool| {
        findings.expectations.iter().filter(|finding| wanted(finding.verdict)).count()
    };
    let (failed, skipped) = (count(|verdict| verdict == ExpectationVerdict::Failed), count(is_skipped));
    let name = attribute(&design.name);
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let totals =
        format!("tests=\"{}\" failures=\"{failed}\" errors=\"0\" skipped=\"{skipped}\"", findings.expectations.len());
    let _ = writeln!(xml, "<testsuites {totals}>");
    let started = attribute(&recording.header.started_at);
    let _ = writeln!(xml, "  <testsuite name=\"{name}\" {totals} timestamp=\"{started}\">");
    for finding in &findings.expectations {
        let Some(declared) = design.expectations.get(finding.expectation) else { continue };
        let within: Vec<String> = finding.within.iter().map(|(factor, level)| format!("{factor}={level}")).collect();
        let suffix = if within.is_empty() { String::new() } else { format!(" with {}", within.join(", ")) };
        let case = attribute(&format!("{}{suffix}", declared.text));
        let place = shown_path(&declared.place);
        let (file, line) = place.rsplit_once(':').unwrap_or((place, ""));
        let _ = write!(xml, "    <testcase classname=\"{name}\" name=\"{case}\" file=\"{}\"", attribute(file));
        if !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()) {
            let _ = write!(xml, " line=\"{line}\"");
        }
        let message = attribute(&format!(
            "{}: {}",
            expectation_word(finding.verdict).to_lowercase(),
            expectation(declared, design, finding)
        ));
        let _ = match finding.verdict {
            ExpectationVerdict::Failed => {
                writeln!(xml, "><failure type=\"expectation\" message=\"{message}\"/></testcase>")
            }
            verdict if is_skipped(verdict) => writeln!(xml, "><skipped message=\"{message}\"/></testcase>"),
            _ => writeln!(xml, "/>"),
        };
    }
    xml.push_str("  </testsuite>\n</testsuites>\n");
    xml
}

fn is_skipped(verdict: ExpectationVerdict) -> bool {
    matches!(verdict, ExpectationVerdict::Undecided | ExpectationVerdict::Unsupported)
}

/// Text inside double quotes. Characters that XML 1.0 has no place for are shown as `\u{fffd}`.
fn attribute(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            '\t' => escaped.push_str("&#9;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
