//! The Markdown report as one HTML page: pictures and style inside, no script, no network, light and dark.
//!
//! The page is made from the finished Markdown, so that both say the same, whatever template made it.

use pulldown_cmark::{CowStr, Event, LinkType, Options, Parser, Tag, TagEnd, html};

use super::pictures::{FOLDER, Picture};
use super::text::plain;

const STYLE: &str = include_str!("templates/page.css");

/// The page of a report. HTML in the Markdown is shown as text, pictures that are not ours by their words.
pub(super) fn page(title: &str, markdown: &str, pictures: &[Picture]) -> String {
    let parser = Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH);
    let mut events = Vec::new();
    let mut inside_picture = false;
    for event in parser {
        match event {
            Event::Start(Tag::Image { ref dest_url, .. }) => {
                if let Some(picture) = picture(dest_url, pictures) {
                    inside_picture = true;
                    let figure =
                        format!("<span class=\"picture\" role=\"presentation\">{}</span>", picture.svg.trim_end());
                    events.push(Event::InlineHtml(figure.into()));
                }
            }
            Event::End(TagEnd::Image) => inside_picture = false,
            _ if inside_picture => {}
            Event::Start(Tag::Table(alignment)) => {
                events.push(Event::Html("<div class=\"wide\" tabindex=\"0\">".into()));
                events.push(Event::Start(Tag::Table(alignment)));
            }
            Event::End(TagEnd::Table) => {
                events.push(Event::End(TagEnd::Table));
                events.push(Event::Html("</div>\n".into()));
            }
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let dest_url = if harmless(link_type, &dest_url) { dest_url } else { CowStr::from("#") };
                events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
            }
            Event::Html(text) | Event::InlineHtml(text) => events.push(Event::Text(text)),
            Event::Start(Tag::HtmlBlock) => events.push(Event::Start(Tag::Paragraph)),
            Event::End(TagEnd::HtmlBlock) => events.push(Event::End(TagEnd::Paragraph)),
            event => events.push(event),
        }
    }
    let mut body = String::new();
    html::push_html(&mut body, events.into_iter());
    let title = plain(title).replace('&', "&amp;").replace('<', "&lt;");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n"
    )
}

fn picture<'a>(address: &str, pictures: &'a [Picture]) -> Option<&'a Picture> {
    let file = address.strip_prefix(FOLDER)?.strip_prefix('/')?;
    pictures.iter().find(|picture| picture.file == file)
}

/// Addresses on the web and relative ones; no `javascript:` and the like.
fn harmless(link: LinkType, address: &str) -> bool {
    let scheme = address.split(['/', '?', '#']).next().is_some_and(|start| start.contains(':'));
    link != LinkType::Email && (!scheme || address.starts_with("https://") || address.starts_with("http://"))
}
