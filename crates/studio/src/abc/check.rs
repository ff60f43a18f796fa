//! Checking: what the parser finds, and what only shows when the music is counted.

use super::diagnostic::Diagnostics;
use super::model::Place;
use super::parse::{LimitError, Parsed, parse};
use super::play::score::Score;
use super::play::{self, Options};

/// Parses a text and also looks at its bars, lyrics and rhythm. Tunes that cannot be performed are
/// errors as well.
pub fn validate(text: &str) -> Result<Parsed, LimitError> {
    let mut parsed = parse(text)?;
    let mut found = Diagnostics::default();
    for (tune_idx, tune) in parsed.book.tunes.iter().enumerate() {
        let at = Place { line: tune.line, column: 1 };
        let played = Score::build(&parsed.book, tune, &mut found)
            .and_then(|_| play::perform(&parsed.book, tune_idx, &Options::default()));
        match played {
            Ok(performance) if performance.notes().next().is_none() => {
                found.warning(at, "the tune has no notes", "write notes after its `K:` line");
            }
            Ok(_) => {}
            Err(error) => found.error(at, "the tune cannot be played", error.to_string()),
        }
    }
    parsed.diagnostics.extend(found.finish());
    parsed.diagnostics.sort_by_key(|diagnostic| diagnostic.at);
    Ok(parsed)
}
