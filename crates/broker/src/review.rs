//! Reading the audit, for principals that may see everything.

use ringback_core::policy::{Visibility, sight};
use ringback_proto::{Error, Result};
use ringback_store::audit::{AuditCursor, Line};

use crate::Broker;
use crate::failure;
use crate::identity::Credential;

/// Lines on a page by default.
const LIMIT: u32 = 100;
/// Lines on a page at most.
const LIMIT_MAX: u32 = 1000;

/// A part of the audit.
#[derive(Debug)]
pub struct AuditPage {
    /// Its lines, newest first.
    pub lines: Vec<Line>,
    /// Where the next page starts; absent on the last.
    pub next_cursor: Option<String>,
}

/// The audit, opened for a principal that may read it.
#[derive(Debug)]
pub struct Audit<'a>(&'a Broker);

impl Broker {
    /// Opens the audit: the calls, their callers and their outcomes.
    ///
    /// # Errors
    /// `forbidden` unless the principal has scope `admin` and is not limited to projects.
    pub fn audit(&self, credential: &Credential) -> Result<Audit<'_>> {
        let principal = credential.principal(self.0.kernel.now())?;
        if sight(principal) != Visibility::All {
            return Err(Error::forbidden(
                "reading the audit",
                "a token with scope `admin` that is not limited to projects",
            ));
        }
        Ok(Audit(self))
    }
}

impl Audit<'_> {
    /// Returns one page, newest first. It includes every call that had ended before this request,
    /// except calls of tools whose row says that they are only counted.
    ///
    /// # Errors
    /// `invalid` for a cursor that the audit did not return.
    pub async fn page(&self, cursor: Option<&str>, limit: Option<u32>) -> Result<AuditPage> {
        let before = cursor
            .map(str::parse::<AuditCursor>)
            .transpose()
            .map_err(|error| Error::invalid_field("cursor", error.to_string()))?;
        let limit = limit.unwrap_or(LIMIT).clamp(1, LIMIT_MAX) as usize;
        let auditor = self.0.0.kernel.auditor.clone();
        let read = move || auditor.page(before, limit).map_err(failure::internal);
        let (lines, next) = self.0.0.kernel.blocking(read).await?;
        Ok(AuditPage { lines, next_cursor: next.map(|next| next.to_string()) })
    }
}
