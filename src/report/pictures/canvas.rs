//! A drawing with axes, written as SVG. The only module that knows the plotting crate.
//!
//! Colours stand in the drawing as attributes for light pages; a style sheet in it replaces them on dark ones, so that
//! a viewer without style sheets shows the light form. Text needs no font of this machine to be laid out.

use std::fmt::Write as _;

use kuva::backend::svg::SvgBackend;
use kuva::render::axis::{add_axes_and_grid, add_labels_and_title};
use kuva::render::color::Color;
use kuva::render::layout::{ComputedLayout, Layout, TickFormat};
use kuva::render::render::{PathData, Primitive, Scene, TextAnchor};
use kuva::render::render_utils::{generate_ticks, generate_ticks_log};
use kuva::render::theme::Theme;

use super::MARK;

/// Width of every picture, pixels: what a page of GitHub shows without scaling.
pub(super) const WIDTH: f64 = 720.0;

/// Size of text, pixels.
const TEXT_SIZE: u32 = 12;

/// A mean character of that size in a wide face, pixels; wide scripts are counted double.
const CHARACTER: f64 = 7.4;

/// A colour by its role, on light and on dark pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    Accent,
    Better,
    Faint,
    Muted,
    Series(usize),
    Text,
    Worse,
}

/// `(light, dark)` of the roles, then of the series; each light one is there once.
const COLOURS: [(&str, &str); 12] = [
    ("#0969da", "#4493f8"),
    ("#1a7f37", "#3fb950"),
    ("#d1d9e0", "#3d444d"),
    ("#59636e", "#9198a1"),
    ("#1f2328", "#f0f6fc"),
    ("#cf222e", "#f85149"),
    ("#0550ae", "#79c0ff"),
    ("#bc4c00", "#f0883e"),
    ("#116329", "#7ee787"),
    ("#8250df", "#ab7df8"),
    ("#bf3989", "#db61a2"),
    ("#1b7c83", "#39c5cf"),
];

/// An axis of positive numbers whose ends differ by more than this factor is logarithmic. It then has two numbers at
/// least, as there are some at 1, 2 and 5 of each power of ten.
pub(super) const WIDE: f64 = 5.0;

/// The plotting crate's logarithmic axes end here.
const SMALLEST: f64 = 1e-9;

/// Series that look different: six colours, each with its own marker.
pub(super) const SERIES: usize = 6;

impl Ink {
    fn light(self) -> &'static str {
        let index = match self {
            Ink::Accent => 0,
            Ink::Better => 1,
            Ink::Faint => 2,
            Ink::Muted => 3,
            Ink::Text => 4,
            Ink::Worse => 5,
            Ink::Series(index) => 6 + index % SERIES,
        };
        COLOURS[index].0
    }

    fn colour(self) -> Color {
        Color::from(self.light())
    }
}

/// How numbers become places on an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Scale {
    Linear(f64, f64),
    /// Both bounds positive.
    Logarithmic(f64, f64),
    /// That many rows or columns of the same size, the first at the top or left; no ticks.
    Steps(usize),
}

impl Scale {
    /// From the smallest to the largest of `values` with a margin around; `None` without a finite one.
    pub(super) fn around(values: impl IntoIterator<Item = f64>) -> Option<Scale> {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let bounds = finite.fold(None, |bounds: Option<(f64, f64)>, value| {
            Some(bounds.map_or((value, value), |(low, high)| (low.min(value), high.max(value))))
        });
        let (low, high) = bounds?;
        let span = high - low;
        // Values that are all the same still get an axis with numbers on it; one too wide for a number gets none.
        let pad = if span > 0.0 { span * 0.06 } else { (low.abs() * 0.1).max(1e-9) };
        (span.is_finite() && (high + pad).is_finite() && (low - pad).is_finite())
            .then_some(Scale::Linear(low - pad, high + pad))
    }

    /// For values and the bounds of intervals around them: an interval much wider than all values leaves the drawing.
    pub(super) fn holding(values: &[f64], intervals: impl Iterator<Item = (f64, f64)>) -> Option<Scale> {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let reach = 2.0 * (high - low);
        let floor = if low > 0.0 { (low - reach).max(low / 20.0) } else { low - reach };
        let bounds = intervals.flat_map(|(from, to)| [from.max(floor), to.min(high + reach)]);
        let all: Vec<f64> = values.iter().copied().chain(bounds).collect();
        Scale::fitting(all)
    }

    /// Logarithmic where the values are positive and differ by more than a factor, or else linear.
    pub(super) fn fitting(values: impl IntoIterator<Item = f64> + Clone) -> Option<Scale> {
        let (low, high) = (values.clone().into_iter())
            .filter(|value| value.is_finite())
            .fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        if low > SMALLEST && high / low > WIDE && high.is_finite() {
            return Some(Scale::Logarithmic(low / 1.12, high * 1.12));
        }
        Scale::around(values)
    }

    /// What to say of an axis in its label.
    pub(super) fn remark(self) -> &'static str {
        if matches!(self, Scale::Logarithmic(..)) { " (logarithmic)" } else { "" }
    }

    fn range(self) -> (f64, f64) {
        match self {
            Scale::Linear(low, high) | Scale::Logarithmic(low, high) => (low, high),
            Scale::Steps(count) => (0.0, count.max(1) as f64),
        }
    }

    fn ticks(self, wanted: usize) -> Vec<f64> {
        match self {
            Scale::Linear(low, high) => generate_ticks(low, high, wanted),
            Scale::Logarithmic(low, high) => generate_ticks_log(low, high),
            Scale::Steps(_) => Vec::new(),
        }
    }
}

/// What surrounds the data.
#[derive(Debug, Clone, Copy)]
pub(super) struct Frame<'a> {
    /// In bold above the drawing.
    pub(super) heading: &'a str,
    /// Height of the whole, pixels.
    pub(super) height: f64,
    /// Pixels left and right of the data.
    pub(super) sides: (f64, f64),
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) x_label: &'a str,
    /// Shown where `y` has ticks.
    pub(super) y_label: &'a str,
}

/// Where a text stands in relation to its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Anchor {
    End,
    Middle,
    Start,
}

/// Pixels per line of a legend.
const LEGEND_LINE: f64 = 18.0;

/// Pixels above and below the data: heading; numbers and label of the axis.
pub(super) const ABOVE: f64 = 36.0;
pub(super) const BELOW: f64 = 48.0;

/// A drawing in the making. Places are pixels from the top left corner.
pub(super) struct Canvas {
    scene: Scene,
    computed: ComputedLayout,
}

impl Canvas {
    pub(super) fn new(frame: &Frame<'_>) -> Canvas {
        let (x, y) = (frame.x.range(), frame.y.range());
        let text = Ink::Text.light().to_owned();
        let theme = Theme {
            axis_color: Ink::Muted.light().to_owned(),
            tick_color: Ink::Muted.light().to_owned(),
            grid_color: Ink::Faint.light().to_owned(),
            text_color: text.clone(),
            ..Theme::light()
        };
        let mut layout = Layout::new(x, y)
            .with_width(WIDTH)
            .with_height(frame.height)
            .with_force_margins(frame.sides.0, frame.sides.1)
            .with_force_margins_y(ABOVE, BELOW)
            .with_x_axis_min(x.0)
            .with_x_axis_max(x.1)
            .with_y_axis_min(y.0)
            .with_y_axis_max(y.1)
            .with_theme(theme)
            .with_show_grid(false)
            .with_tick_format(TickFormat::Custom(std::sync::Arc::new(tick_text)))
            .with_label_size(TEXT_SIZE)
            .with_tick_size(TEXT_SIZE)
            .with_x_label(literal(frame.x_label))
            .with_y_label(literal(&cut(frame.y_label, frame.height - ABOVE - BELOW + 20.0)));
        layout.suppress_x_ticks = matches!(frame.x, Scale::Steps(_));
        layout.suppress_y_ticks = matches!(frame.y, Scale::Steps(_));
        if matches!(frame.x, Scale::Logarithmic(..)) {
            layout = layout.with_log_x();
        }
        if matches!(frame.y, Scale::Logarithmic(..)) {
            layout = layout.with_log_y();
        }
        let computed = ComputedLayout::from_layout(&layout);
        let mut scene = Scene::new(WIDTH, frame.height).with_background(None);
        scene.text_color = Some(text);
        scene.font_family = Some("system-ui, -apple-system, Segoe UI, Helvetica, Arial, sans-serif".to_owned());
        let mut canvas = Canvas { scene, computed };
        let (left, right, top, bottom) = canvas.edges();
        for tick in frame.x.ticks(canvas.computed.x_ticks) {
            let x = canvas.x(tick);
            canvas.line((x, top), (x, bottom), Ink::Faint, "");
        }
        for tick in frame.y.ticks(canvas.computed.y_ticks) {
            let y = canvas.y(tick);
            canvas.line((left, y), (right, y), Ink::Faint, "");
        }
        add_axes_and_grid(&mut canvas.scene, &canvas.computed, &layout);
        add_labels_and_title(&mut canvas.scene, &canvas.computed, &layout);
        canvas.scene.elements.push(Primitive::Text {
            x: 8.0,
            y: 20.0,
            content: literal(&cut(frame.heading, WIDTH * 0.88)),
            size: TEXT_SIZE + 1,
            anchor: TextAnchor::Start,
            rotate: None,
            bold: true,
            color: None,
        });
        canvas
    }

    pub(super) fn x(&self, value: f64) -> f64 {
        self.computed.map_x(value)
    }

    pub(super) fn y(&self, value: f64) -> f64 {
        self.computed.map_y(value)
    }

    /// Middle of a row counted from the top.
    pub(super) fn row(&self, index: usize) -> f64 {
        let (_, _, top, _) = self.edges();
        top + (index as f64 + 0.5) * self.row_height()
    }

    pub(super) fn row_height(&self) -> f64 {
        self.computed.plot_height() / (self.computed.y_range.1 - self.computed.y_range.0)
    }

    /// Left, right, top and bottom of the data.
    pub(super) fn edges(&self) -> (f64, f64, f64, f64) {
        let computed = &self.computed;
        (
            computed.margin_left,
            computed.width - computed.margin_right,
            computed.margin_top,
            computed.height - computed.margin_bottom,
        )
    }

    /// A line; `dashes` as in SVG, empty for none.
    pub(super) fn line(&mut self, from: (f64, f64), to: (f64, f64), ink: Ink, dashes: &str) {
        let width = if ink == Ink::Faint { 1.0 } else { 1.5 };
        self.scene.elements.push(Primitive::Line {
            x1: from.0,
            y1: from.1,
            x2: to.0,
            y2: to.1,
            stroke: ink.colour(),
            stroke_width: width,
            stroke_dasharray: (!dashes.is_empty()).then(|| dashes.to_owned()),
        });
    }

    /// An interval along x with end strokes; an end outside the drawing is an arrow at its edge.
    pub(super) fn interval_x(&mut self, (low, high): (f64, f64), y: f64, ink: Ink) {
        let (left, right, ..) = self.edges();
        let (from, to) = (self.x(low).max(left), self.x(high).min(right));
        self.line((from, y), (to, y), ink, "");
        for (end, edge, inwards) in [(from, left, 5.0), (to, right, -5.0)] {
            if (end - edge).abs() < 0.5 {
                self.line((end, y), (end + inwards, y - 4.0), ink, "");
                self.line((end, y), (end + inwards, y + 4.0), ink, "");
            } else {
                self.line((end, y - 4.0), (end, y + 4.0), ink, "");
            }
        }
    }

    /// An interval along y with end strokes; one that leaves the drawing goes to its edge.
    pub(super) fn interval_y(&mut self, x: f64, (low, high): (f64, f64), ink: Ink) {
        let (_, _, upper, lower) = self.edges();
        let (bottom, top) = (self.y(low).min(lower), self.y(high).max(upper));
        self.line((x, bottom), (x, top), ink, "");
        for (end, edge) in [(bottom, lower), (top, upper)] {
            if (end - edge).abs() >= 0.5 {
                self.line((x - 4.0, end), (x + 4.0, end), ink, "");
            }
        }
    }

    /// A line through places.
    pub(super) fn path(&mut self, points: Vec<(f64, f64)>, ink: Ink) {
        self.scene.elements.push(Primitive::PolyLine {
            points,
            stroke: ink.colour(),
            stroke_width: 1.5,
            stroke_dasharray: None,
        });
    }

    /// A small dot of one value.
    pub(super) fn dot(&mut self, (cx, cy): (f64, f64), ink: Ink) {
        self.scene.elements.push(Primitive::Circle {
            cx,
            cy,
            r: 2.5,
            fill: ink.colour(),
            fill_opacity: Some(0.6),
            stroke: None,
            stroke_width: None,
        });
    }

    /// A marker whose form tells series apart without colour; hollow where nothing may be concluded.
    pub(super) fn marker(&mut self, (x, y): (f64, f64), series: usize, ink: Ink, hollow: Hollow) {
        let d = match series % SERIES {
            0 => format!("M {:.2} {y:.2} a 4.5 4.5 0 1 0 9 0 a 4.5 4.5 0 1 0 -9 0 Z", x - 4.5),
            1 => format!("M {:.2} {:.2} h 8 v 8 h -8 Z", x - 4.0, y - 4.0),
            2 => format!("M {x:.2} {:.2} l 5 5 l -5 5 l -5 -5 Z", y - 5.0),
            3 => format!("M {x:.2} {:.2} l 5 9 h -10 Z", y - 5.0),
            4 => format!("M {x:.2} {:.2} l 5 -9 h -10 Z", y + 5.0),
            _ => format!("M {:.2} {:.2} h 3 v -3 h 3 v 3 h 3 v 3 h -3 v 3 h -3 v -3 h -3 Z", x - 4.5, y - 1.5),
        };
        self.scene.elements.push(Primitive::Path(Box::new(PathData {
            d,
            fill: Some(if hollow == Hollow::Yes { Color::None } else { ink.colour() }),
            stroke: ink.colour(),
            stroke_width: 1.5,
            opacity: None,
            stroke_dasharray: None,
        })));
    }

    /// A filled area.
    pub(super) fn area(&mut self, corner: (f64, f64), size: (f64, f64), ink: Ink, opacity: f64) {
        self.scene.elements.push(Primitive::Rect {
            x: corner.0,
            y: corner.1,
            width: size.0.max(0.0),
            height: size.1.max(0.0),
            fill: ink.colour(),
            stroke: None,
            stroke_width: None,
            opacity: Some((opacity * 100.0).round() / 100.0),
        });
    }

    /// A rectangle without filling; `dashes` as in SVG, empty for none.
    pub(super) fn outline(&mut self, corner: (f64, f64), size: (f64, f64), ink: Ink, dashes: &str) {
        let (x, y) = corner;
        self.scene.elements.push(Primitive::Path(Box::new(PathData {
            d: format!("M {x:.2} {y:.2} h {:.2} v {:.2} h -{:.2} Z", size.0, size.1, size.0),
            fill: Some(Color::None),
            stroke: ink.colour(),
            stroke_width: 1.5,
            opacity: None,
            stroke_dasharray: (!dashes.is_empty()).then(|| dashes.to_owned()),
        })));
    }

    /// A text whose middle height is at the place, cut to `width` pixels; a cut one shows the whole when pointed at.
    pub(super) fn text(&mut self, text: &str, place: (f64, f64), anchor: Anchor, (ink, width): (Ink, f64)) {
        self.label((text, &cut(text, width)), place, anchor, ink);
    }

    /// A text, cut by somebody who knows its neighbours; the whole is shown when pointed at.
    pub(super) fn label(&mut self, (text, shown): (&str, &str), place: (f64, f64), anchor: Anchor, ink: Ink) {
        let whole = (shown != text).then(|| text.to_owned());
        let grouped = whole.is_some();
        if grouped {
            let extra_attrs = Some("class=\"cut\"".to_owned());
            self.scene.elements.push(Primitive::GroupStart { transform: None, title: whole, extra_attrs });
        }
        self.scene.elements.push(Primitive::Text {
            x: place.0,
            y: place.1 + 4.0,
            content: literal(shown),
            size: TEXT_SIZE,
            anchor: match anchor {
                Anchor::End => TextAnchor::End,
                Anchor::Middle => TextAnchor::Middle,
                Anchor::Start => TextAnchor::Start,
            },
            rotate: None,
            bold: false,
            color: Some(ink.colour()),
        });
        if grouped {
            self.scene.elements.push(Primitive::GroupEnd);
        }
    }

    /// What the series are, a line each below the axis; the picture grows.
    pub(super) fn legend(&mut self, entries: impl Iterator<Item = (usize, String)>) {
        let entries: Vec<(usize, String)> = entries.collect();
        let width = WIDTH - self.computed.margin_left - 40.0;
        let shown = cut_apart(&entries.iter().map(|(_, name)| name.clone()).collect::<Vec<_>>(), width);
        for ((series, name), shown) in entries.iter().zip(&shown) {
            let series = *series;
            let y = self.scene.height + LEGEND_LINE / 2.0;
            self.marker((self.computed.margin_left + 6.0, y), series, Ink::Series(series), Hollow::No);
            self.label((name, shown), (self.computed.margin_left + 20.0, y), Anchor::Start, Ink::Text);
            self.scene.height += LEGEND_LINE;
        }
        self.scene.height += LEGEND_LINE / 3.0;
    }

    /// The drawing as SVG with what it shows in words.
    pub(super) fn finish(self, title: &str, description: &str) -> String {
        let svg = SvgBackend::new().with_pretty(true).render_scene(&self.scene);
        let body = svg.split_once('>').map_or("", |(_, body)| body);
        let opening = svg.split_once('>').map_or("", |(opening, _)| opening);
        let view = format!("<svg viewBox=\"0 0 {} {}\" role=\"img\" {MARK}", self.scene.width, self.scene.height);
        let mut text = opening.replacen("<svg", &view, 1);
        let (title, description) = (escaped(title), escaped(description));
        let _ = write!(text, ">\n  <title>{title}</title>\n  <desc>{description}</desc>\n  <style>");
        text.push_str("@media (prefers-color-scheme:dark){");
        for (light, dark) in COLOURS {
            let _ = write!(text, "svg [fill=\"{light}\"],svg[fill=\"{light}\"]{{fill:{dark}}}");
            let _ = write!(text, "svg [stroke=\"{light}\"]{{stroke:{dark}}}");
        }
        text.push_str("}</style>");
        text.push_str(body);
        format!("{}\n", text.trim_end())
    }
}

/// Whether a marker is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hollow {
    No,
    Yes,
}

/// A text cut to about so many pixels, with an ellipsis.
pub(super) fn cut(text: &str, width: f64) -> String {
    let size = |character: char| match character {
        'M' | 'W' | 'm' | 'w' | '@' | '%' => CHARACTER * 1.6,
        ' ' | '!' | '(' | ')' | ',' | '.' | ':' | '[' | ']' | 'f' | 'i' | 'j' | 'l' | 'r' | 't' | '|' => {
            CHARACTER * 0.7
        }
        '\u{1100}'.. => CHARACTER * 2.0,
        _ => CHARACTER,
    };
    if text.chars().map(size).sum::<f64>() <= width {
        return text.to_owned();
    }
    let mut left = width - CHARACTER;
    let kept = text.chars().take_while(|character| {
        left -= size(*character);
        left >= 0.0
    });
    let kept: String = kept.collect();
    format!("{}…", kept.trim_end())
}

/// The texts of one picture cut so that different ones stay different: at their end; where that makes some alike, in their
/// middle; and with a number in front where that does not help either.
pub(super) fn cut_apart(texts: &[String], width: f64) -> Vec<String> {
    let mut shown: Vec<String> = texts.iter().map(|text| cut(text, width)).collect();
    for again in [cut_in_the_middle as fn(usize, &str, f64) -> String, cut_behind_a_number] {
        let is_alike = |place: usize| (0..texts.len()).any(|i| shown[i] == shown[place] && texts[i] != texts[place]);
        let alike: Vec<usize> = (0..texts.len()).filter(|place| is_alike(*place)).collect();
        for place in alike {
            shown[place] = again(place, &texts[place], width);
        }
    }
    shown
}

fn cut_in_the_middle(_: usize, text: &str, width: f64) -> String {
    let turned = |text: &str| text.chars().rev().collect::<String>();
    let half = f64::midpoint(width, CHARACTER);
    let (head, tail) = (cut(text, half), turned(&cut(&turned(text), half)));
    format!("{head}{}", tail.trim_start_matches('…'))
}

fn cut_behind_a_number(place: usize, text: &str, width: f64) -> String {
    let number = format!("{}: ", place + 1);
    let rest = cut_in_the_middle(place, text, width - CHARACTER * number.chars().count() as f64);
    format!("{number}{rest}")
}

/// The plotting crate reads `$…$` in a text as mathematics.
fn literal(text: &str) -> String {
    text.replace('$', "\\$")
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// A number on an axis: as short as it can be without hiding a step between two ticks.
fn tick_text(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if value.abs() >= 1e7 || value.abs() < 1e-4 {
        return format!("{value:e}");
    }
    let text = format!("{value:.7}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_texts_stay_different_when_cut() {
        let width = 20.0 * CHARACTER;
        let long = |head: &str, tail: &str| format!("{head}{}{tail}", "n".repeat(200));
        let middle = |word: &str| format!("{}{word}{}", "x".repeat(90), "x".repeat(90));
        let texts = [long("a", "1"), long("a", "2"), long("b", ""), middle("left"), middle("rght"), "short".to_owned()];
        let shown = cut_apart(&texts, width);
        for (i, one) in shown.iter().enumerate() {
            assert!(shown[i + 1..].iter().all(|other| other != one), "{shown:?}");
            assert!(one.chars().count() <= 24, "{one}");
        }
        assert_eq!((shown[0].as_str(), shown[2].as_str()), ("annnnnnnn…nnnnnnnn1", "bnnnnnnnnnnnnnnnnn…"));
        assert!(shown[3].starts_with("4: xxx") && shown[5] == "short", "{shown:?}");
        let same = vec![long("a", ""); 2];
        assert_eq!(cut_apart(&same, width)[0], cut(&same[0], width), "the same text may look the same");
    }
}
