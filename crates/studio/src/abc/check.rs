//! Checking: what the parser finds, and what only shows when the music is counted.

use super::diagnostic::{Diagnostic, Diagnostics};
use super::model::{Field, Place, Tune};
use super::parse::{LimitError, Parsed, Reader, parse};
use super::play::{self, Options, Performance};

/// Parses a text and also looks at its bars, lyrics and rhythm. Tunes that cannot be performed are
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

/// Checks a text as [`validate`] does and performs every tune on the way: `take` gets each that can
/// be performed, with its index. No tune is kept, so this needs the memory of one.
///
/// What was wrong is the answer. Errors may come after tunes that were taken: whoever wants all or
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

/// The performance of a tune; whatever is wrong with it goes to the diagnostics.
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

/// In the order of their places; at the same place what the parser found comes first.
fn merged(mut diagnostics: Vec<Diagnostic>, found: Diagnostics) -> Vec<Diagnostic> {
    diagnostics.extend(found.finish());
    diagnostics.sort_by_key(|diagnostic| diagnostic.at);
    diagnostics
}
