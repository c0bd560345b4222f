//! Recorded numbers from a file, CSV or hyperfine's JSON, as the table that could stand in their place.
//!
//! Knows the shape of the files. What the names and numbers in them mean is judged like a table's.

use crate::design::Factor;
use crate::diagnostic::{Diagnostic, Meaning, Thing};
use crate::source::{FileId, Sources, Span, Spanned};
use crate::syntax::ast::{MetricName, Name, Number, Row, Series, Value};

use super::recorded::COLUMNS;

/// Columns of a CSV file that are no factor, where there is a column `metric`.
pub const FILE_COLUMNS: &[&str] = &["metric", "unit", "better", "copy", "value", "low", "high", "average", "n"];

/// The metric of hyperfine's times.
pub const HYPERFINE_METRIC: &str = "hyperfine.real";

/// Wrong rows that are told; a file with one wrong column has as many as rows.
const MOST_FAULTS: usize = 20;

type Fault = Box<Diagnostic>;

/// The table in a file that was read: JSON where its first character is `{`, else CSV.
pub(super) fn table(sources: &Sources, file: FileId, factors: &[Factor]) -> Result<Vec<Series>, Vec<Diagnostic>> {
    let text = &sources.get(file).text;
    if text.trim_start().starts_with('{') {
        hyperfine(text, file, factors).map_err(|fault| vec![*fault])
    } else {
        Csv { text, file, factors, columns: Vec::new(), series: Vec::new() }.read()
    }
}

fn malformed(span: Span, detail: impl Into<String>, help: impl Into<String>) -> Fault {
    Box::new(span.error(Meaning::MalformedData { detail: detail.into(), help: help.into() }))
}

fn word(text: &str, span: Span) -> Value {
    Value::Word(Name::new(text.to_owned(), span))
}

/// A number as a table would hold it; what is none becomes a word that the table's rules refuse.
fn number(text: &str, span: Span) -> Value {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    if sign.is_empty() {
        return Value::Number(Number::Literal { digits: Spanned::new(digits.to_owned(), span), unit: None });
    }
    word(&format!("{sign}{digits}"), span)
}

/// One series while its rows are gathered: `(levels, copy)` tells rows apart.
struct Gathered {
    series: Series,
    keys: Vec<(Vec<String>, String)>,
}

/// What a column holds.
#[derive(Debug, Clone, PartialEq)]
enum Column {
    /// Levels of the factor with this index.
    Factor(usize),
    /// One of [`FILE_COLUMNS`].
    Known(String),
    /// Values of a metric: `primes.real s lower_is_better`.
    Metric(Vec<String>),
}

struct Csv<'a> {
    text: &'a str,
    file: FileId,
    factors: &'a [Factor],
    columns: Vec<Column>,
    series: Vec<Gathered>,
}

impl Csv<'_> {
    fn read(mut self) -> Result<Vec<Series>, Vec<Diagnostic>> {
        let mut reader = csv::ReaderBuilder::new()
            .has_headers(false)
            .comment(Some(b'#'))
            .trim(csv::Trim::All)
            .flexible(true)
            .from_reader(self.text.as_bytes());
        let mut faults = Vec::new();
        let mut record = csv::StringRecord::new();
        loop {
            let start = reader.position().byte() as usize;
            match reader.read_record(&mut record) {
                Ok(false) => break,
                Ok(true) => {
                    let span = self.span(start, reader.position().byte() as usize);
                    if self.columns.is_empty() {
                        self.header(&record, span).map_err(|fault| vec![*fault])?;
                    } else if let Err(fault) = self.row(&record, span) {
                        faults.push(*fault);
                        if faults.len() == MOST_FAULTS {
                            break;
                        }
                    }
                }
                Err(error) => {
                    let span = self.span(start, start);
                    return Err(vec![*malformed(
                        span,
                        format!("this is not CSV: {error}"),
                        "separate fields by commas",
                    )]);
                }
            }
        }
        if self.series.is_empty() && faults.is_empty() {
            faults.push(self.span(0, 0).error(Meaning::NothingRecorded));
        }
        if faults.is_empty() {
            Ok(self.series.into_iter().map(|gathered| gathered.series).collect())
        } else {
            Err(faults)
        }
    }

    /// The record between two places, without comments and blank lines before it.
    fn span(&self, start: usize, end: usize) -> Span {
        let (mut start, end) = (start.min(self.text.len()), end.min(self.text.len()));
        while start < end {
            let line = self.text[start..end].split_inclusive('\n').next().unwrap_or_default();
            if line.len() < end - start && (line.trim().is_empty() || line.starts_with('#')) {
                start += line.len();
            } else {
                break;
            }
        }
        let end = start + self.text[start..end].trim_end().len();
        Span { file: self.file, start, end }
    }

    fn header(&mut self, record: &csv::StringRecord, span: Span) -> Result<(), Fault> {
        let names: Vec<&str> = record.iter().map(|name| name.trim_start_matches('\u{feff}')).collect();
        let long = names.contains(&"metric");
        for name in &names {
            let column = match self.factors.iter().position(|factor| factor.name == *name) {
                Some(factor) => Column::Factor(factor),
                None if *name == "copy" || (long && FILE_COLUMNS.contains(name)) => Column::Known((*name).to_owned()),
                None if !long && name.contains('.') => {
                    Column::Metric(name.split_whitespace().map(str::to_owned).collect())
                }
                None => {
                    let mut known: Vec<String> = self.factors.iter().map(|factor| factor.name.clone()).collect();
                    known.extend(FILE_COLUMNS.iter().map(|name| (*name).to_owned()));
                    let near = super::nearest(name, known.iter().map(String::as_str));
                    let name = (*name).to_owned();
                    return Err(Box::new(span.error(Meaning::Unknown { thing: Thing::Column, name, near, known })));
                }
            };
            if self.columns.contains(&column) {
                return Err(Box::new(
                    span.error(Meaning::Duplicate { thing: Thing::Column, name: (*name).to_owned() }),
                ));
            }
            self.columns.push(column);
        }
        let missing = |name: &str| {
            malformed(
                span,
                format!("the file has no column `{name}`"),
                "name the columns in the first line: one per factor, then `metric`, `unit`, `value`, or one per metric",
            )
        };
        for (index, factor) in self.factors.iter().enumerate() {
            if !self.columns.contains(&Column::Factor(index)) {
                return Err(missing(&factor.name));
            }
        }
        let has = |name: &str| names.contains(&name);
        if long && !has("value") {
            return COLUMNS[..3].iter().find(|column| !has(column)).map_or(Ok(()), |column| {
                Err(missing(if has("low") || has("high") || has("average") { column } else { "value" }))
            });
        }
        if long && COLUMNS.iter().any(|column| has(column)) {
            return Err(malformed(
                span,
                "a row has a `value`, or `low`, `high` and `average`, not both",
                "use two files",
            ));
        }
        Ok(())
    }

    fn row(&mut self, record: &csv::StringRecord, span: Span) -> Result<(), Fault> {
        if record.len() != self.columns.len() {
            let fields = format!("the row has {} fields", record.len());
            return Err(malformed(span, fields, format!("write {}, one for each column", self.columns.len())));
        }
        let mut levels = vec![String::new(); self.factors.len()];
        for (column, field) in self.columns.iter().zip(record) {
            if let Column::Factor(factor) = column {
                field.clone_into(&mut levels[*factor]);
            }
        }
        let known = |name: &str| {
            let place = self.columns.iter().position(|column| *column == Column::Known(name.to_owned()))?;
            record.get(place).map(str::to_owned)
        };
        let key = (levels, known("copy").unwrap_or_default());
        let Some(metric) = known("metric") else {
            let values: Vec<(Vec<String>, String)> = self
                .columns
                .iter()
                .zip(record)
                .filter_map(|(column, field)| match column {
                    Column::Metric(heading) if !field.is_empty() => Some((heading.clone(), field.to_owned())),
                    _ => None,
                })
                .collect();
            return values.into_iter().try_for_each(|(heading, field)| self.add(&heading, &key, &[field], span));
        };
        let heading: Vec<String> =
            std::iter::once(metric).chain([known("unit"), known("better")].map(Option::unwrap_or_default)).collect();
        let fields: Vec<String> = match known("value") {
            Some(value) if value.is_empty() => return Ok(()),
            Some(value) => vec![value],
            None => COLUMNS.iter().filter_map(|column| known(column)).filter(|field| !field.is_empty()).collect(),
        };
        self.add(&heading, &key, &fields, span)
    }

    /// Adds the numbers of one row to the series of a heading: metric, unit, direction.
    fn add(
        &mut self,
        heading: &[String],
        key: &(Vec<String>, String),
        fields: &[String],
        span: Span,
    ) -> Result<(), Fault> {
        let filled = |place: usize| heading.get(place).filter(|text| !text.is_empty());
        let unit = filled(1).map(|unit| word(unit, span));
        let direction = filled(2).map(|direction| Name::new(direction.clone(), span));
        let summary = fields.len() > 1;
        let path = heading.first().cloned().unwrap_or_default();
        let columns = COLUMNS[..if summary { fields.len().clamp(3, 4) } else { 0 }].iter();
        let columns: Vec<Name> = columns.map(|column| Name::new((*column).to_owned(), span)).collect();
        let index = self.series.iter().position(|other| other.series.metric.path == path).unwrap_or_else(|| {
            let metric = MetricName { path: path.clone(), span };
            let series = Series {
                metric,
                unit: unit.clone(),
                direction: direction.clone(),
                columns: columns.clone(),
                rows: Vec::new(),
            };
            self.series.push(Gathered { series, keys: Vec::new() });
            self.series.len() - 1
        });
        let gathered = &mut self.series[index];
        let (series, keys) = (&mut gathered.series, &mut gathered.keys);
        let text = |value: &Option<Value>| value.as_ref().map(matches_text).unwrap_or_default();
        let better = |direction: &Option<Name>| direction.as_ref().map(|name| name.value.clone());
        if text(&series.unit) != text(&unit) || better(&series.direction) != better(&direction) {
            let detail = format!("`{path}` has another unit or direction than in its first row");
            return Err(malformed(span, detail, "write the same in every row"));
        }
        if series.columns.len() != columns.len() {
            let detail = format!("`{path}` has a number of samples `n` in some rows and not in others");
            return Err(malformed(span, detail, "fill in `n` in every row of a metric, or in none"));
        }
        let place = keys.iter().position(|other| other == key).filter(|_| !summary);
        let place = place.unwrap_or_else(|| {
            keys.push(key.clone());
            series.rows.push(Row { cells: key.0.iter().map(|level| word(level, span)).collect(), span });
            series.rows.len() - 1
        });
        series.rows[place].cells.extend(fields.iter().map(|field| number(field, span)));
        Ok(())
    }
}

fn matches_text(value: &Value) -> String {
    match value {
        Value::Word(name) => name.value.clone(),
        Value::Number(_) | Value::Text(_) => String::new(),
    }
}

/// `hyperfine --export-json`: each result is a treatment, by its parameters where every factor is one of them, else by
/// its command; `times` are its samples, in seconds. Without `times` there are `min`, `max` and `mean`.
fn hyperfine(text: &str, file: FileId, factors: &[Factor]) -> Result<Vec<Series>, Fault> {
    let whole = Span { file, start: 0, end: text.find('\n').unwrap_or(text.len()) };
    let document: serde_json::Value = serde_json::from_str(text).map_err(|error| {
        let start = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
        let length = text[start..].lines().next().map_or(0, str::len);
        let span = Span { file, start, end: start + length };
        malformed(span, format!("this is not JSON: {error}"), "export it again with `hyperfine --export-json`")
    })?;
    let form = |span: Span, detail: String| malformed(span, detail, "export it with `hyperfine --export-json`");
    let results = document.get("results").and_then(serde_json::Value::as_array);
    let results = results.ok_or_else(|| form(whole, "the file has no `results`".to_owned()))?;
    let mut rows = Vec::new();
    let mut summaries = 0;
    for result in results {
        let command = result.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
        let quoted = serde_json::Value::from(command).to_string();
        let span = text.find(&quoted).map_or(whole, |start| Span { file, start, end: start + quoted.len() });
        let failed = result
            .get("exit_codes")
            .and_then(serde_json::Value::as_array)
            .map_or(0, |codes| codes.iter().filter(|code| code.as_i64() != Some(0)).count());
        if failed > 0 {
            let detail = format!("{failed} runs of `{command}` failed");
            return Err(malformed(span, detail, "measure again; the time of a failed run means nothing"));
        }
        let float = |name: &str| result.get(name).and_then(serde_json::Value::as_f64).map(|value| value.to_string());
        let times = result.get("times").and_then(serde_json::Value::as_array);
        let numbers: Option<Vec<String>> = match times {
            Some(times) => times.iter().map(|time| time.as_f64().map(|time| time.to_string())).collect(),
            None => ["min", "max", "mean"].into_iter().map(float).collect(),
        };
        let numbers = numbers.filter(|numbers| !numbers.is_empty());
        let numbers = numbers.ok_or_else(|| form(span, format!("`{command}` has no times")))?;
        summaries += usize::from(times.is_none());
        let mut cells: Vec<Value> =
            result_levels(result, factors, command).iter().map(|level| word(level, span)).collect();
        cells.extend(numbers.iter().map(|time| number(time, span)));
        rows.push(Row { cells, span });
    }
    if summaries > 0 && summaries < rows.len() {
        return Err(form(whole, "some results have `times` and some have not".to_owned()));
    }
    let columns = if summaries > 0 { ["low", "high", "average"].as_slice() } else { &[] };
    Ok(vec![Series {
        metric: MetricName { path: HYPERFINE_METRIC.to_owned(), span: whole },
        unit: Some(word("s", whole)),
        direction: Some(Name::new("lower_is_better".to_owned(), whole)),
        columns: columns.iter().map(|column| Name::new((*column).to_owned(), whole)).collect(),
        rows,
    }])
}

fn result_levels(result: &serde_json::Value, factors: &[Factor], command: &str) -> Vec<String> {
    let parameter = |factor: &Factor| match result.get("parameters")?.get(&factor.name)? {
        serde_json::Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    };
    let levels: Option<Vec<String>> = factors.iter().map(parameter).collect();
    levels.unwrap_or_else(|| vec![command.to_owned()])
}
