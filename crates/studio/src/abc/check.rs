//! Validation: the parser's findings, and those that only show when the music is counted.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::model::{Field, Place, Tune};
use super::parse::{LimitError, Parsed, Reader, parse};
use super::play::{self, Options, Performance};

/// Parses a text and also checks its bars, lyrics and rhythm. Tunes that cannot be performed are
/// errors as well.
pub fn validate(text: &str) -> Result<Parsed, LimitError> {
    let mut parsed = parse(text)?;
    let mut found = Diagnostics::default();
    for tune in &parsed.book.tunes {
        checked(&parsed.book.header, tune, &Options::default(), &mut found);
    }
    parsed.diagnostics = merged(parsed.diagnostics, found);
    Ok(parsed)
}

/// Checks a text like [`validate`] and performs every tune on the way: `take` gets each that can be
/// performed, with its index. No tune is kept, so this needs the memory of one.
///
/// Returns the diagnostics. Errors may come after tunes that were taken: a caller that wants all or
/// nothing waits for the end.
pub fn perform_each(
    text: &str,
    options: &Options,
    mut take: impl FnMut(usize, Performance),
) -> Result<Vec<Diagnostic>, LimitError> {
    let mut reader = Reader::new(text)?;
    let mut found = Diagnostics::default();
    let mut tune_idx = 0;
    while let Some(tune) = reader.next_tune()? {
        if let Some(performance) = checked(reader.file_header(), &tune, options, &mut found) {
            take(tune_idx, performance);
        }
        tune_idx += 1;
        reader.recycle(tune);
    }
    Ok(merged(reader.finish(), found))
}

/// Returns the performance of a tune; its problems go to the diagnostics.
fn checked(
    file_header: &[Field],
    tune: &Tune,
    options: &Options,
    found: &mut Diagnostics,
) -> Option<Performance> {
    let at = Place { line: tune.line, column: 1 };
    match play::perform_tune(file_header, tune, options, found) {
        Ok(performance) => {
            if performance.notes().next().is_none() {
                found.warning(at, "the tune has no notes", "write notes after its `K:` line");
            }
            Some(performance)
        }
        Err(error) => {
            found.error(at, "the tune cannot be played", error.to_string());
            None
        }
    }
}

/// Merges both by place; at the same place the parser's findings come first.
fn merged(mut diagnostics: Vec<Diagnostic>, found: Diagnostics) -> Vec<Diagnostic> {
    diagnostics.extend(found.finish());
    diagnostics.sort_by_key(|diagnostic| diagnostic.at);
    diagnostics
}
