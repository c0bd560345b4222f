//! The HTML page: the same content as the Markdown, nothing that loads or runs, and a look in a real browser.

use std::process::Command;

use irqlab::recording::Recording;
use irqlab::report;

use super::made::{findings, names, recording};
use crate::probe;

fn html(recording: &Recording) -> String {
    report::html(recording, &findings()).unwrap()
}

#[test]
fn the_page_says_what_the_markdown_says() {
    let (recording, findings) = (recording(), findings());
    let page = html(&recording);
    let markdown = report::markdown(&recording, &findings).unwrap();
    let headings = markdown.lines().filter(|line| line.starts_with('#')).count();
    assert_eq!((1..4).map(|level| page.matches(&format!("<h{level}>")).count()).sum::<usize>(), headings);
    let rules = markdown.lines().filter(|line| line.starts_with("| --")).count();
    assert_eq!(page.matches("<table>").count(), rules);
    for picture in report::pictures(&recording, &findings) {
        assert!(page.contains(picture.svg.trim_end()), "{} is in the page", picture.file);
    }
    for part in ["<code>two_cpus</code> is slower than <code>one_cpu</code>", "412345", "irqlab run quickstart.exp"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn nothing_in_a_page_loads_or_runs_whatever_names_and_templates_hold() {
    let mut recording = recording();
    let evil = "<script>alert(1)</script><img src=x onerror=alert(1)> [x](javascript:alert(1)) ![y](http://e/y.png)";
    evil.clone_into(&mut recording.header.design.title);
    recording.header.design.treatments[0].settings = names(&[evil]);
    recording.header.design.template = Some("mine.md.j2".to_owned());
    recording.header.design.template_text = Some(format!(
        "# {evil}\n\n<iframe src=\"http://e\"></iframe>\n\n<div onclick=\"x()\">b</div>\n\n\
         [z](JavaScript:x) [data](data:text/html,x) [ok](https://example.org/a:b) {{% include \"default.md.j2\" %}}"
    ));
    let page = html(&recording);
    for bad in ["<script", "<img", "<iframe", "<div onclick", "href=\"javascript", "href=\"JavaScript", "href=\"data"] {
        assert!(!page.contains(bad), "{bad}: {page}");
    }
    assert!(page.contains("href=\"https://example.org/a:b\""), "{page}");
    assert!(page.contains("default-src 'none'"), "{page}");
}

/// A browser that runs without a display.
fn browser() -> Option<&'static str> {
    let there = |name: &&&str| Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success());
    ["chromium", "chromium-browser", "google-chrome"].iter().find(there).copied()
}

/// A page that shows the report at two widths, light and dark, and writes down what came of it. A frame takes the
/// scheme of its element, so that one run of the browser sees both.
fn harness(page: &str) -> String {
    let escaped = page.replace('&', "&amp;").replace('"', "&quot;");
    let frame = |width: u32, scheme: &str| {
        format!(
            "<iframe style=\"width:{width}px;height:900px;border:0;color-scheme:{scheme}\" srcdoc=\"{escaped}\"></iframe>"
        )
    };
    let frames: String = [(390, "light"), (390, "dark"), (1280, "light"), (1280, "dark")]
        .map(|(width, scheme)| frame(width, scheme))
        .concat();
    format!(
        "<!doctype html><meta charset=\"utf-8\">{frames}<pre id=\"result\"></pre><script>
window.addEventListener('load', () => {{
  const lines = [...document.querySelectorAll('iframe')].map((frame) => {{
    const page = frame.contentDocument, root = page.documentElement;
    const overflow = root.scrollWidth - root.clientWidth;
    const text = frame.contentWindow.getComputedStyle(page.body).color;
    const picture = page.querySelector('svg');
    const label = frame.contentWindow.getComputedStyle(picture.querySelector('text')).fill;
    const seen = picture.getBoundingClientRect();
    return [overflow, text, label, page.querySelectorAll('svg').length, seen.width > 300 && seen.height > 50].join('; ');
  }});
  document.getElementById('result').textContent = lines.join('\\n');
}});
</script>"
    )
}

#[test]
fn a_browser_shows_the_page_light_and_dark_at_desktop_and_phone_width() {
    let Some(browser) = browser() else {
        return probe::skip("no chromium on PATH to look at a page with");
    };
    let mut recording = recording();
    recording.header.design.title = "a_very_long_word_".repeat(20);
    recording.header.host.command_line = Some("isolcpus=2-63,".repeat(60));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("harness.html");
    std::fs::write(&file, harness(&html(&recording))).unwrap();
    let mut command = Command::new("timeout");
    command.args(["120", browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync", "--dump-dom"]);
    command.arg(format!("--user-data-dir={}", folder.path().join("profile").display()));
    // Its home is in the folder as well: nothing of the person's own is read or left behind.
    command.env("HOME", folder.path()).arg(format!("file://{}", file.display()));
    let output = command.output().unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let result =
        dom.split("<pre id=\"result\">").nth(1).and_then(|rest| rest.split("</pre>").next()).unwrap_or_default();
    let (light, dark) = ("rgb(31, 35, 40)", "rgb(240, 246, 252)");
    let expected = [light, dark, light, dark].map(|ink| format!("0; {ink}; {ink}; 5; true"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(result.lines().collect::<Vec<_>>(), expected, "{said}");
}
