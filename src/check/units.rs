//! Units, and numbers with units. The one table of what may stand behind a number.

use crate::diagnostic::Meaning;
use crate::source::Span;

use super::scope::Scope;
use crate::syntax::ast::Number;

/// A unit as it may be written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Unit {
    /// As written behind the digits.
    pub symbol: &'static str,
    /// What it measures.
    pub quantity: Quantity,
    /// How many base units it is.
    pub factor: f64,
}

/// What a number may measure. The base unit stands in brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// Data in a time (bits per second).
    BitRate,
    /// Things (1); takes no unit.
    Count,
    /// Time (milliseconds).
    Duration,
    /// Hundredths (percent).
    Percent,
    /// Memory, disk (bytes).
    Size,
}

const fn unit(symbol: &'static str, quantity: Quantity, factor: f64) -> Unit {
    Unit { symbol, quantity, factor }
}

/// Every unit.
pub const UNITS: &[Unit] = &[
    unit("ns", Quantity::Duration, 1e-6),
    unit("us", Quantity::Duration, 1e-3),
    unit("ms", Quantity::Duration, 1.0),
    unit("s", Quantity::Duration, 1e3),
    unit("min", Quantity::Duration, 6e4),
    unit("h", Quantity::Duration, 3.6e6),
    unit("B", Quantity::Size, 1.0),
    unit("KB", Quantity::Size, 1e3),
    unit("MB", Quantity::Size, 1e6),
    unit("GB", Quantity::Size, 1e9),
    unit("TB", Quantity::Size, 1e12),
    unit("KiB", Quantity::Size, 1024.0),
    unit("MiB", Quantity::Size, 1_048_576.0),
    unit("GiB", Quantity::Size, 1_073_741_824.0),
    unit("TiB", Quantity::Size, 1_099_511_627_776.0),
    unit("bit/s", Quantity::BitRate, 1.0),
    unit("kbit/s", Quantity::BitRate, 1e3),
    unit("Mbit/s", Quantity::BitRate, 1e6),
    unit("Gbit/s", Quantity::BitRate, 1e9),
    unit("%", Quantity::Percent, 1.0),
];

/// What people write for units in other places, and the unit they mean.
const SLIPS: &[(&str, &str)] = &[
    ("sec", "s"),
    ("secs", "s"),
    ("m", "min"),
    ("hours", "h"),
    ("K", "KiB"),
    ("k", "KiB"),
    ("M", "MiB"),
    ("G", "GiB"),
    ("T", "TiB"),
    ("Mbps", "Mbit/s"),
    ("Gbps", "Gbit/s"),
];

/// Bounds of a number, in words for the message and in base units.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds<'a> {
    /// What is bounded: `` `settle` ``.
    pub(super) what: &'a str,
    /// Lowest allowed value.
    pub(super) low: f64,
    /// Highest allowed value.
    pub(super) high: f64,
}

/// Digits and unit with references put in.
struct Written {
    digits: String,
    unit: String,
    digits_span: Span,
    unit_span: Span,
}

/// The number in base units of `quantity`, within bounds.
pub(super) fn number(scope: &mut Scope<'_>, number: &Number, quantity: Quantity, bounds: Bounds<'_>) -> Option<f64> {
    let written = written(scope, number)?;
    let span = number.span();
    let value = digits(scope, &written)?;
    let factor = match UNITS.iter().find(|unit| unit.symbol == written.unit) {
        _ if written.unit.is_empty() && quantity == Quantity::Count => 1.0,
        _ if written.unit.is_empty() => {
            let examples = examples(quantity, &written.digits);
            scope.fault(span.error(Meaning::MissingUnit { number: written.digits, examples }));
            return None;
        }
        Some(unit) if unit.quantity == quantity => unit.factor,
        _ => {
            let slip =
                SLIPS.iter().find(|(slip, meant)| *slip == written.unit && of(quantity).any(|u| u.symbol == *meant));
            let near = slip.map(|(_, meant)| (*meant).to_owned());
            let near = near.or_else(|| super::nearest(&written.unit, of(quantity).map(|unit| unit.symbol)));
            let examples = examples(quantity, &written.digits);
            scope.fault(written.unit_span.error(Meaning::WrongUnit { unit: written.unit, near, examples }));
            return None;
        }
    };
    let value = value * factor;
    if value < bounds.low || value > bounds.high {
        let what = bounds.what.to_owned();
        let (low, high) = (shown(bounds.low, quantity), shown(bounds.high, quantity));
        scope.fault(span.error(Meaning::OutOfRange { what, low, high }));
        return None;
    }
    Some(value)
}

/// A whole number without unit, within bounds.
pub(super) fn integer(scope: &mut Scope<'_>, number_: &Number, bounds: Bounds<'_>) -> Option<u64> {
    let value = number(scope, number_, Quantity::Count, bounds)?;
    if value.fract() != 0.0 {
        let written = written(scope, number_)?;
        scope.fault(number_.span().error(Meaning::NotWhole { number: written.digits }));
        return None;
    }
    Some(value as u64)
}

/// A duration in whole milliseconds.
pub(super) fn milliseconds(scope: &mut Scope<'_>, number_: &Number, bounds: Bounds<'_>) -> Option<u64> {
    number(scope, number_, Quantity::Duration, bounds).map(|value| value.round() as u64)
}

/// A number in base units with the symbol of the base unit.
pub(super) fn in_base(value: f64, quantity: Quantity) -> String {
    let symbol = match quantity {
        Quantity::BitRate => "bit/s",
        Quantity::Count => "",
        Quantity::Duration => "ms",
        Quantity::Percent => "%",
        Quantity::Size => "B",
    };
    format!("{value}{symbol}")
}

/// A number in base units as a person writes it.
pub(super) fn shown(value: f64, quantity: Quantity) -> String {
    match of(quantity).filter(|unit| unit.factor <= value && (value / unit.factor).fract() == 0.0).last() {
        Some(unit) => format!("{}{}", value / unit.factor, unit.symbol),
        None => in_base(value, quantity),
    }
}

fn of(quantity: Quantity) -> impl Iterator<Item = &'static Unit> {
    UNITS.iter().filter(move |unit| unit.quantity == quantity)
}

fn examples(quantity: Quantity, digits: &str) -> Vec<String> {
    let symbols: &[&str] = match quantity {
        Quantity::BitRate => &["Mbit/s", "Gbit/s"],
        Quantity::Count => &[""],
        Quantity::Duration => &["ms", "s"],
        Quantity::Percent => &["%"],
        Quantity::Size => &["MiB", "GiB"],
    };
    symbols.iter().map(|symbol| format!("{digits}{symbol}")).collect()
}

fn written(scope: &mut Scope<'_>, number: &Number) -> Option<Written> {
    match number {
        Number::Literal { digits, unit } => Some(Written {
            digits: digits.value.clone(),
            unit: unit.as_ref().map(|unit| unit.value.clone()).unwrap_or_default(),
            digits_span: digits.span,
            unit_span: unit.as_ref().map_or(digits.span, |unit| unit.span),
        }),
        Number::Reference(name) => {
            let text = scope.reference(name)?;
            let end = text.find(|c: char| !(c.is_ascii_digit() || c == '_' || c == '.')).unwrap_or(text.len());
            let (digits, unit) = text.split_at(end);
            if digits.is_empty() {
                scope.fault(name.span.error(Meaning::MalformedNumber { text }));
                return None;
            }
            Some(Written {
                digits: digits.to_owned(),
                unit: unit.to_owned(),
                digits_span: name.span,
                unit_span: name.span,
            })
        }
    }
}

fn digits(scope: &mut Scope<'_>, written: &Written) -> Option<f64> {
    let value = parse(&written.digits);
    if value.is_none() {
        scope.fault(written.digits_span.error(Meaning::MalformedNumber { text: written.digits.clone() }));
    }
    value
}

/// Digits with `_` between them, a point and an exponent.
pub(super) fn parse(digits: &str) -> Option<f64> {
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    let is_number = digits.starts_with(|c: char| c.is_ascii_digit()) && !digits.ends_with('_');
    plain.parse::<f64>().ok().filter(|value| is_number && value.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_shown_in_the_largest_whole_unit() {
        assert_eq!(shown(300_000.0, Quantity::Duration), "5min");
        assert_eq!(shown(1500.0, Quantity::Duration), "1500ms");
        assert_eq!(shown(0.0, Quantity::Duration), "0ms");
        assert_eq!(shown(1_073_741_824.0, Quantity::Size), "1GiB");
        assert_eq!(shown(100.0, Quantity::Percent), "100%");
        assert_eq!(shown(3.0, Quantity::Count), "3");
    }

    #[test]
    fn digits_are_read_with_underscores_and_nothing_else() {
        assert_eq!(parse("20_000_000"), Some(20_000_000.0));
        assert_eq!(parse("1.03"), Some(1.03));
        assert_eq!(parse("1.5e3"), Some(1500.0));
        for text in ["", "e5", "1.2.3", "inf", "NaN", "-1", "1_", "1e999"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
