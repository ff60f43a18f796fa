//! Reads the audit log, newest first, while it is being written.

use std::str::FromStr;
use std::{fmt, fs, io};

use camino::Utf8Path;
use ringback_proto::ids::CallId;

use super::entry::{Entry, Line};
use super::segment::{AuditError, numbers, path};
use crate::frames;

/// A position in the audit log: before this line of this segment. Segments are only appended to, so
/// it stays valid for as long as the segment is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AuditCursor {
    segment: u64,
    line: usize,
}

/// A text that is not a cursor.
#[derive(Debug, thiserror::Error)]
#[error("not a cursor of the audit log")]
pub struct BadAuditCursor;

impl fmt::Display for AuditCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.segment, self.line)
    }
}

impl FromStr for AuditCursor {
    type Err = BadAuditCursor;

    fn from_str(text: &str) -> Result<Self, BadAuditCursor> {
        let (segment, line) = text.split_once('-').ok_or(BadAuditCursor)?;
        let cursor = Self {
            segment: segment.parse().map_err(|_| BadAuditCursor)?,
            line: line.parse().map_err(|_| BadAuditCursor)?,
        };
        // A position has exactly one text form, so that foreign cursors are recognised.
        if cursor.to_string() == text { Ok(cursor) } else { Err(BadAuditCursor) }
    }
}

/// Returns the lines before a position, and where to continue if there are more.
pub(super) fn page(
    dir: &Utf8Path,
    before: Option<AuditCursor>,
    limit: usize,
) -> Result<(Vec<Line>, Option<AuditCursor>), AuditError> {
    let (mut lines, mut last, mut next) = (Vec::new(), None, None);
    scan(dir, before, |place, line| {
        if lines.len() < limit {
            lines.push(line);
            last = Some(place);
            return true;
        }
        next = last;
        false
    })?;
    Ok((lines, next))
}

pub(super) fn find(dir: &Utf8Path, call: CallId) -> Result<Option<Entry>, AuditError> {
    let mut found = None;
    scan(dir, None, |_, line| match line {
        Line::Call(entry) if entry.call == call => {
            found = Some(entry);
            false
        }
        Line::Call(_) | Line::Dropped { .. } => true,
    })?;
    Ok(found)
}

/// Visits lines, newest first, with one segment in memory at a time, until `visit` returns false.
fn scan(
    dir: &Utf8Path,
    before: Option<AuditCursor>,
    mut visit: impl FnMut(AuditCursor, Line) -> bool,
) -> Result<(), AuditError> {
    let is_before = |segment: u64| before.is_none_or(|before| segment <= before.segment);
    for segment in numbers(dir)?.into_iter().rev().filter(|segment| is_before(*segment)) {
        let path = path(dir, segment);
        let data = match fs::read(&path) {
            Ok(data) => data,
            // The writer removed it in the meantime, because it was the oldest.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(AuditError::on("read", &path)(error)),
        };
        let end = before.filter(|before| before.segment == segment).map(|before| before.line);
        for (line, payload) in frames::split(&data).0.into_iter().enumerate().rev() {
            if end.is_some_and(|end| line >= end) {
                continue;
            }
            // A line of a kind that only a newer build knows is skipped.
            let Ok(read) = rmp_serde::from_slice(payload) else { continue };
            if !visit(AuditCursor { segment, line }, read) {
                return Ok(());
            }
        }
    }
    Ok(())
}
