//! The `key=value` arguments of a built-in workload, read once each: numbers with units, words, and an error for
//! what nobody asked for.

use std::time::Duration;

use super::WorkloadError;

/// Longest time a workload may be given.
const MAX_SECONDS: f64 = 86_400.0;

/// Arguments not read yet.
#[derive(Debug)]
pub(super) struct Arguments<'a> {
    workload: &'static str,
    left: Vec<&'a (String, String)>,
}

impl<'a> Arguments<'a> {
    pub(super) fn new(workload: &'static str, given: &'a [(String, String)]) -> Self {
        Arguments { workload, left: given.iter().collect() }
    }

    /// The last value of that name.
    pub(super) fn text(&mut self, name: &'static str) -> Option<&'a str> {
        let found = self.left.iter().rev().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
        self.left.retain(|(key, _)| key != name);
        found
    }

    pub(super) fn required(&mut self, name: &'static str) -> Result<&'a str, WorkloadError> {
        self.text(name).ok_or(WorkloadError::MissingArgument { workload: self.workload, argument: name })
    }

    /// `read` of the value, or of `default` where none was given.
    pub(super) fn read<T>(
        &mut self,
        name: &'static str,
        default: &'static str,
        read: fn(&str) -> Result<T, &'static str>,
    ) -> Result<T, WorkloadError> {
        let value = self.text(name).unwrap_or(default);
        read(value).map_err(|expected| bad(name, value, expected))
    }

    /// One of a few words.
    pub(super) fn choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
        expected: &'static str,
    ) -> Result<T, WorkloadError> {
        let Some(value) = self.text(name) else { return Ok(choices[0].1) };
        let found = choices.iter().find(|(word, _)| *word == value);
        found.map(|(_, choice)| *choice).ok_or_else(|| bad(name, value, expected))
    }

    /// Complains of what is left.
    pub(super) fn end(self) -> Result<(), WorkloadError> {
        match self.left.first() {
            None => Ok(()),
            Some((key, _)) => Err(WorkloadError::UnknownArgument { workload: self.workload, argument: key.clone() }),
        }
    }
}

pub(super) fn bad(argument: &'static str, value: &str, expected: &'static str) -> WorkloadError {
    WorkloadError::BadArgument { argument, value: value.to_owned(), expected }
}

/// Digits, perhaps with `_` and a fraction, and the unit behind them.
fn number(text: &str) -> Option<(f64, &str)> {
    let unit_at = text.find(|character: char| character.is_ascii_alphabetic() || character == '%');
    let (digits, unit) = text.split_at(unit_at.unwrap_or(text.len()));
    let number = digits.replace('_', "").parse::<f64>().ok()?;
    (number.is_finite() && number >= 0.0).then_some((number, unit))
}

/// A time from a nanosecond to a day.
pub(super) fn time(text: &str) -> Result<Duration, &'static str> {
    let seconds = number(text).and_then(|(number, unit)| {
        let scale = match unit {
            "ns" => 1e-9,
            "us" => 1e-6,
            "ms" => 1e-3,
            "s" => 1.0,
            "min" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        Some(number * scale)
    });
    let time = seconds.filter(|seconds| *seconds <= MAX_SECONDS).map(Duration::from_secs_f64);
    time.filter(|time| !time.is_zero()).ok_or("a time up to a day, such as `2s` or `500ms`")
}

/// A number of bytes, 1 or more.
pub(super) fn bytes(text: &str) -> Result<u64, &'static str> {
    let bytes = number(text).and_then(|(number, unit)| {
        let scale = match unit {
            "B" => 1.0,
            "KB" => 1e3,
            "MB" => 1e6,
            "GB" => 1e9,
            "TB" => 1e12,
            "KiB" => 1024.0,
            "MiB" => 1_048_576.0,
            "GiB" => 1_073_741_824.0,
            "TiB" => 1_099_511_627_776.0,
            _ => return None,
        };
        Some((number * scale) as u64)
    });
    bytes.filter(|bytes| *bytes > 0).ok_or("a size, such as `64KiB` or `1448B`")
}

/// A share of one, written as hundredths: `60%`.
pub(super) fn share(text: &str) -> Result<f64, &'static str> {
    match number(text) {
        Some((number, "%")) if number <= 100.0 => Ok(number / 100.0),
        _ => Err("a share from `0%` to `100%`"),
    }
}

/// A whole number, 1 or more.
pub(super) fn count(text: &str) -> Result<usize, &'static str> {
    let number = text.replace('_', "").parse().ok().filter(|number| *number > 0);
    number.ok_or("a whole number, 1 or more")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(time("2s").unwrap(), Duration::from_secs(2));
        assert_eq!(time("1_500ms").unwrap(), Duration::from_millis(1500));
        assert_eq!(time("0.5min").unwrap(), Duration::from_secs(30));
        for text in ["", "2", "s", "-1s", "0s", "1e400s", "2 s", "3days", "NaNs", "infs", "25h", "0.1ns"] {
            assert!(time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn sizes_shares_and_counts_are_what_check_writes() {
        assert_eq!(bytes("65536B").unwrap(), 65_536);
        assert_eq!(bytes("1.5KiB").unwrap(), 1_536);
        assert_eq!(share("60%").unwrap().to_bits(), 0.6_f64.to_bits());
        assert_eq!(count("1_000").unwrap(), 1_000);
        assert!(["64", "0B", "B", "-1B", "1kB"].iter().all(|text| bytes(text).is_err()));
        assert!(["0.6", "101%", "-1%", "%"].iter().all(|text| share(text).is_err()));
        assert!(["0", "1.5", "-1", "many"].iter().all(|text| count(text).is_err()));
    }

    #[test]
    fn what_nobody_asked_for_is_an_error() {
        let given = [("for".to_owned(), "1s".to_owned()), ("colour".to_owned(), "red".to_owned())];
        let mut arguments = Arguments::new("net_stream", &given);
        assert_eq!(arguments.text("for"), Some("1s"));
        assert_eq!(arguments.end().unwrap_err().to_string(), "`net_stream` has no argument `colour`");
    }
}
