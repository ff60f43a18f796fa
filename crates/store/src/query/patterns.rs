//! `like`, `glob` and `instr` as SQLite has them, except that they look at the clock: SQLite's own
//! take up to 300 ms for one long text, and a query may call many of them between two steps that it
//! counts.

use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Null, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, ffi};

use super::budget;
use super::text::PATTERN_BYTES_MAX;

/// Steps of a comparison between two looks at the clock.
const STEPS: u32 = 4096;

/// The significant digits with which SQLite writes a number that has no shorter form.
const DIGITS_MAX: i32 = 17;

/// Replaces SQLite's functions of these names.
pub(super) fn add_functions(connection: &Connection) -> rusqlite::Result<()> {
    let flags = FunctionFlags::SQLITE_UTF8
        | FunctionFlags::SQLITE_DETERMINISTIC
        | FunctionFlags::SQLITE_INNOCUOUS;
    connection.create_scalar_function("like", 2, flags, |context| matches(context, like))?;
    connection.create_scalar_function("like", 3, flags, |context| matches(context, like))?;
    connection.create_scalar_function("glob", 2, flags, |context| matches(context, glob))?;
    connection.create_scalar_function("instr", 2, flags, instr)
}

/// A part of a pattern.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    /// This character; its case counts only in GLOB.
    Char(char),
    /// Any character.
    One,
    /// Any number of characters.
    Many,
    /// A character in one of these ranges, or in none of them.
    Class { ranges: Vec<(char, char)>, is_inverted: bool },
    /// Nothing: a class without its end, or an escape before nothing.
    Never,
}

#[derive(Debug)]
struct Pattern {
    parts: Vec<Part>,
    ignores_case: bool,
}

/// `LIKE` and `GLOB`: the pattern, the text, perhaps the escape.
fn matches(
    context: &Context<'_>,
    parse: fn(&str, Option<char>) -> Pattern,
) -> rusqlite::Result<Option<bool>> {
    let pattern = text(context.get_raw(0));
    if pattern.as_ref().is_some_and(|pattern| pattern.len() > PATTERN_BYTES_MAX) {
        return Err(failure(ffi::SQLITE_ERROR, "LIKE or GLOB pattern too complex"));
    }
    let escape = match (context.len() > 2).then(|| text(context.get_raw(2))) {
        None => None,
        Some(None) => return Ok(None),
        Some(Some(escape)) => {
            let mut chars = until_nul(&escape).chars();
            let (Some(escape), None) = (chars.next(), chars.next()) else {
                let message = "ESCAPE expression must be a single character";
                return Err(failure(ffi::SQLITE_ERROR, message));
            };
            Some(escape)
        }
    };
    let (Some(pattern), Some(compared)) = (pattern, text(context.get_raw(1))) else {
        return Ok(None);
    };
    parse(until_nul(&pattern), escape).matches(until_nul(&compared)).map(Some)
}

fn like(pattern: &str, escape: Option<char>) -> Pattern {
    let mut chars = pattern.chars();
    let mut parts = Vec::new();
    while let Some(c) = chars.next() {
        parts.push(match c {
            c if Some(c) == escape => chars.next().map_or(Part::Never, Part::Char),
            '%' => Part::Many,
            '_' => Part::One,
            c => Part::Char(c),
        });
    }
    Pattern { parts, ignores_case: true }
}

fn glob(pattern: &str, _: Option<char>) -> Pattern {
    let mut chars = pattern.chars();
    let mut parts = Vec::new();
    while let Some(c) = chars.next() {
        parts.push(match c {
            '*' => Part::Many,
            '?' => Part::One,
            '[' => class(&mut chars),
            c => Part::Char(c),
        });
    }
    Pattern { parts, ignores_case: false }
}

/// Reads a class after its `[`.
fn class(chars: &mut std::str::Chars<'_>) -> Part {
    let mut ranges = Vec::new();
    let mut next = chars.next();
    let is_inverted = next == Some('^');
    if is_inverted {
        next = chars.next();
    }
    if next == Some(']') {
        ranges.push((']', ']'));
        next = chars.next();
    }
    let mut before = None;
    while let Some(c) = next {
        if c == ']' {
            return Part::Class { ranges, is_inverted };
        }
        let end = chars.clone().next().filter(|end| *end != ']');
        match (c, before, end) {
            ('-', Some(from), Some(to)) => {
                chars.next();
                ranges.push((from, to));
                before = None;
            }
            _ => {
                ranges.push((c, c));
                before = Some(c);
            }
        }
        next = chars.next();
    }
    Part::Never
}

impl Pattern {
    /// Every part but `Many` takes one character, so that only the last `Many` is ever retried.
    fn matches(&self, text: &str) -> rusqlite::Result<bool> {
        look()?;
        let (mut at, mut part, mut n_steps) = (text, 0, 0_u32);
        let mut retry: Option<(&str, usize)> = None;
        loop {
            n_steps = n_steps.wrapping_add(1);
            if n_steps.is_multiple_of(STEPS) {
                look()?;
            }
            let mut rest = at.chars();
            match (self.parts.get(part), rest.next()) {
                (None, None) => return Ok(true),
                (Some(Part::Many), _) => {
                    part += 1;
                    retry = Some((at, part));
                    if part == self.parts.len() {
                        return Ok(true);
                    }
                }
                (Some(wanted), Some(c)) if self.takes(wanted, c) => {
                    at = rest.as_str();
                    part += 1;
                }
                (Some(_), None) => return Ok(false),
                (None | Some(_), Some(_)) => {
                    let Some((tried, after)) = retry else { return Ok(false) };
                    let mut rest = tried.chars();
                    rest.next();
                    (at, part) = (rest.as_str(), after);
                    retry = Some((at, after));
                }
            }
        }
    }

    fn takes(&self, part: &Part, c: char) -> bool {
        match part {
            Part::Char(wanted) if self.ignores_case => wanted.eq_ignore_ascii_case(&c),
            Part::Char(wanted) => *wanted == c,
            Part::One => true,
            Part::Class { ranges, is_inverted } => {
                ranges.iter().any(|(from, to)| *from <= c && c <= *to) != *is_inverted
            }
            Part::Many | Part::Never => false,
        }
    }
}

/// `instr`: the place of the second value in the first, from 1; in bytes if both are bytes.
fn instr(context: &Context<'_>) -> rusqlite::Result<ToSqlOutput<'static>> {
    look()?;
    let number =
        |n: usize| ToSqlOutput::Owned(Value::Integer(i64::try_from(n).unwrap_or(i64::MAX)));
    if let (ValueRef::Blob(all), ValueRef::Blob(part)) = (context.get_raw(0), context.get_raw(1)) {
        return Ok(number(position(all, part)?));
    }
    let (Some(all), Some(part)) = (text(context.get_raw(0)), text(context.get_raw(1))) else {
        return Ok(ToSqlOutput::from(Null));
    };
    // The search of the standard library is linear.
    let found = all.find(part.as_str()).and_then(|at| all.get(..at));
    Ok(number(found.map_or(0, |before| before.chars().count() + 1)))
}

fn position(all: &[u8], part: &[u8]) -> rusqlite::Result<usize> {
    if part.is_empty() {
        return Ok(1);
    }
    for (at, window) in all.windows(part.len()).enumerate() {
        if at % STEPS as usize == 0 {
            look()?;
        }
        if window == part {
            return Ok(at + 1);
        }
    }
    Ok(0)
}

fn look() -> rusqlite::Result<()> {
    if budget::is_over() { Err(failure(ffi::SQLITE_INTERRUPT, "interrupted")) } else { Ok(()) }
}

fn failure(code: std::ffi::c_int, message: &str) -> rusqlite::Error {
    rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some(message.to_owned()))
}

/// Returns a value as SQLite turns it into text; `None` for NULL.
fn text(value: ValueRef<'_>) -> Option<String> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(number) => Some(number.to_string()),
        ValueRef::Real(number) => Some(real(number)),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
            Some(String::from_utf8_lossy(bytes).into_owned())
        }
    }
}

/// Returns the text up to the first NUL, where SQLite's comparison ends.
fn until_nul(text: &str) -> &str {
    text.split('\0').next().unwrap_or_default()
}

/// Returns a number as SQLite writes it: 15 digits if they are the number, otherwise 17. SQLite
/// calculates less exactly, so the last digits of a number with more than a dozen may differ.
fn real(number: f64) -> String {
    if number.is_infinite() {
        return if number > 0.0 { "Inf".to_owned() } else { "-Inf".to_owned() };
    }
    if number == 0.0 {
        return "0.0".to_owned();
    }
    let short = format!("{number:.14e}");
    let is_exact = short.parse() == Ok(number);
    let written = if is_exact { short } else { format!("{number:.16e}") };
    let (mantissa, exponent) = written.split_once('e').unwrap_or((&written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let (sign, mantissa) = match mantissa.strip_prefix('-') {
        Some(mantissa) => ("-", mantissa),
        None => ("", mantissa),
    };
    let digits = mantissa.replace('.', "");
    let digits = digits.trim_end_matches('0');
    let (whole, part) = if (0..DIGITS_MAX).contains(&exponent) {
        let n_whole = usize::try_from(exponent).unwrap_or_default() + 1;
        let padded = format!("{digits:0<n_whole$}");
        (padded[..n_whole].to_owned(), padded[n_whole..].to_owned())
    } else if (-4..0).contains(&exponent) {
        let zeros = usize::try_from(-1 - exponent).unwrap_or_default();
        ("0".to_owned(), format!("{}{digits}", "0".repeat(zeros)))
    } else {
        (digits[..1].to_owned(), digits[1..].to_owned())
    };
    let part = if part.is_empty() { "0" } else { &part };
    if (-4..DIGITS_MAX).contains(&exponent) {
        return format!("{sign}{whole}.{part}");
    }
    let direction = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{whole}.{part}e{direction}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A connection with SQLite's functions, and one with ours.
    fn both() -> (Connection, Connection) {
        budget::install();
        let ours = Connection::open_in_memory().unwrap();
        add_functions(&ours).unwrap();
        (Connection::open_in_memory().unwrap(), ours)
    }

    fn ask(connection: &Connection, sql: &str, values: &[Value]) -> Result<Value, String> {
        let mut select = connection.prepare_cached(sql).unwrap();
        let found = select.query_row(rusqlite::params_from_iter(values), |row| row.get(0));
        found.map_err(|error| error.to_string())
    }

    fn value() -> impl Strategy<Value = Value> {
        let letters = "[ab%_*?\\[\\]^\\-AÄä😀]{0,6}";
        prop_oneof![
            8 => letters.prop_map(Value::Text),
            2 => letters.prop_map(|text: String| Value::Blob(text.into_bytes())),
            1 => any::<i64>().prop_map(Value::Integer),
            1 => (-50_i64..50).prop_map(Value::Integer),
            1 => "[ab\\x00]{0,3}".prop_map(Value::Text),
            1 => Just(Value::Null),
            1 => (-100_000_i32..100_000).prop_map(|n| Value::Real(f64::from(n) / 4.0)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        /// Rule: our functions answer as SQLite's.
        #[test]
        fn like_glob_and_instr_answer_as_those_of_sqlite(a in value(), b in value(), c in value()) {
            thread_local!(static BOTH: (Connection, Connection) = both());
            for (sql, values) in [
                ("SELECT ?1 LIKE ?2", vec![a.clone(), b.clone()]),
                ("SELECT ?1 GLOB ?2", vec![a.clone(), b.clone()]),
                ("SELECT instr(?1, ?2)", vec![a.clone(), b.clone()]),
                ("SELECT ?1 LIKE ?2 ESCAPE ?3", vec![a, b, c]),
            ] {
                let (theirs, ours) = BOTH.with(|(theirs, ours)| {
                    (ask(theirs, sql, &values), ask(ours, sql, &values))
                });
                prop_assert_eq!(theirs, ours, "{} {:?}", sql, values);
            }
        }

        #[test]
        fn a_number_is_written_as_sqlite_writes_it(
            number in -1e6_f64..1e6,
            whole in -1e12_f64..1e12,
        ) {
            thread_local!(static BOTH: (Connection, Connection) = both());
            let short = (number * 4.0).round() / 4.0;
            for number in [short, whole.round(), f64::INFINITY, f64::NEG_INFINITY] {
                let written = BOTH.with(|(theirs, _)| {
                    ask(theirs, "SELECT CAST(?1 AS TEXT)", &[Value::Real(number)])
                });
                prop_assert_eq!(written, Ok(Value::Text(real(number))));
            }
        }
    }
}
