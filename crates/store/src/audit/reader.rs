//! Reading the audit, newest first, beside its writer.

use std::{fs, io};

use camino::Utf8Path;
use ringback_proto::ids::CallId;

use super::entry::{Entry, Line};
use super::segment::{AuditError, numbers, path};
use crate::frames;

pub(super) fn newest(dir: &Utf8Path, limit: usize) -> Result<Vec<Line>, AuditError> {
    let mut lines = Vec::new();
    scan(dir, |line| {
        if lines.len() < limit {
            lines.push(line);
        }
        lines.len() < limit
    })?;
    Ok(lines)
}

pub(super) fn find(dir: &Utf8Path, call: CallId) -> Result<Option<Entry>, AuditError> {
    let mut found = None;
    scan(dir, |line| match line {
        Line::Call(entry) if entry.call == call => {
            found = Some(entry);
            false
        }
        Line::Call(_) | Line::Dropped { .. } => true,
    })?;
    Ok(found)
}

/// Visits lines, newest first, one segment in memory at a time, until `visit` says to stop.
fn scan(dir: &Utf8Path, mut visit: impl FnMut(Line) -> bool) -> Result<(), AuditError> {
    for number in numbers(dir)?.into_iter().rev() {
        let path = path(dir, number);
        let data = match fs::read(&path) {
            Ok(data) => data,
            // The writer removed it meanwhile, because it was the oldest.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(AuditError::on("read", &path)(error)),
        };
        for payload in frames::split(&data).0.into_iter().rev() {
            // A line of a kind that only a newer build knows.
            let Ok(line) = rmp_serde::from_slice(payload) else { continue };
            if !visit(line) {
                return Ok(());
            }
        }
    }
    Ok(())
}
