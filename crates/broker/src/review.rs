//! Looking through the audit, for whoever may see everything.

use ringback_core::policy::{Sight, sight};
use ringback_proto::{Error, Result};
use ringback_store::audit::{AuditCursor, Line};

use crate::Broker;
use crate::failure;
use crate::identity::Credential;

/// Lines on a page when not told.
const LIMIT: u32 = 100;
/// Lines on a page at most.
const LIMIT_MAX: u32 = 1000;

/// A part of the audit.
#[derive(Debug)]
pub struct AuditPage {
    /// Its lines, newest first.
    pub lines: Vec<Line>,
    /// Where the next page starts; none on the last.
    pub next_cursor: Option<String>,
}

impl Broker {
    /// What was called, by whom, and how it ended, newest first. Calls that were over when it was
    /// asked are there, but for those whose row only counts them.
    ///
    /// # Errors
    /// `forbidden` unless the principal is an admin of everything, `invalid` for a cursor that the
    /// audit did not give.
    pub async fn audit(
        &self,
        credential: &Credential,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<AuditPage> {
        let principal = credential.principal(self.0.now())?;
        if sight(principal) != Sight::All {
            return Err(Error::forbidden(
                "reading the audit",
                "a token that is admin of everything",
            ));
        }
        let before = cursor
            .map(str::parse::<AuditCursor>)
            .transpose()
            .map_err(|error| Error::invalid_field("cursor", error.to_string()))?;
        let limit = limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX) as usize;
        let auditor = self.0.auditor.clone();
        let read = move || auditor.page(before, limit).map_err(failure::internal);
        let (lines, next) = self.0.blocking(read).await?;
        Ok(AuditPage { lines, next_cursor: next.map(|next| next.to_string()) })
    }
}
