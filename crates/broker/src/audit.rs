//! Who called what, and how it ended: the audit and the counters.

use std::borrow::Cow;
use std::sync::Arc;

use camino::Utf8Path;
use metrics::Counter;
use ringback_core::Now;
use ringback_proto::Error;
use ringback_proto::ids::CallId;
use ringback_proto::tool::{Audit as AuditRule, TOOLS, ToolRow};
use ringback_store::audit::{Audit, AuditError, AuditLimits, Entry};
use tokio::time::Instant;

use crate::broker::Asked;
use crate::call::Call;

/// Tells of every call: no arguments, no results, no secrets.
#[derive(Clone)]
pub(crate) struct Auditor(Arc<Inner>);

struct Inner {
    audit: Audit,
    /// One pair for each tool, in the order of the table.
    counters: Vec<ToolCounters>,
}

struct ToolCounters {
    succeeded: Counter,
    failed: Counter,
}

impl std::fmt::Debug for Auditor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Auditor")
    }
}

impl Auditor {
    pub(crate) fn open(data_dir: &Utf8Path) -> Result<Self, AuditError> {
        let audit = Audit::open(data_dir, AuditLimits::default())?;
        let counter = |tool: &'static str, outcome: &'static str| metrics::counter!("ringback_calls_total", "tool" => tool, "outcome" => outcome);
        let counters = TOOLS
            .iter()
            .map(|row| ToolCounters {
                succeeded: counter(row.name, "success"),
                failed: counter(row.name, "error"),
            })
            .collect();
        Ok(Self(Arc::new(Inner { audit, counters })))
    }

    /// A call that was not admitted.
    pub(crate) fn refused(&self, now: Now, call: &Call<'_>, id: CallId, error: &Error) {
        metrics::counter!("ringback_calls_refused_total", "code" => code(error)).increment(1);
        self.0.audit.record(Entry {
            at_ms: now.unix,
            call: id,
            principal: call.credential.id(),
            session: None,
            tool: call.envelope.request.name().to_owned(),
            edge: Cow::Borrowed(call.edge.as_str()),
            outcome: Cow::Borrowed(code(error)),
            certainty: Some(error.certainty()),
            duration_us: 0,
        });
    }

    /// A call of a tool that answers at once: counted, unless its row wants more.
    pub(crate) fn counted(&self, row: &ToolRow, succeeded: bool) {
        let counters = &self.0.counters[row.kind as usize];
        if succeeded { &counters.succeeded } else { &counters.failed }.increment(1);
    }

    /// A call that ended.
    pub(crate) fn each(
        &self,
        now: Now,
        asked: &Asked,
        call: CallId,
        error: Option<&Error>,
        started: Instant,
    ) {
        self.ended(now, asked, call, error.map_or("success", code), error, started);
    }

    /// A call that became a job, or failed to.
    pub(crate) fn began(
        &self,
        now: Now,
        asked: &Asked,
        call: CallId,
        error: Option<&Error>,
        started: Instant,
    ) {
        self.ended(now, asked, call, error.map_or("job_started", code), error, started);
    }

    fn ended(
        &self,
        now: Now,
        asked: &Asked,
        call: CallId,
        outcome: &'static str,
        error: Option<&Error>,
        started: Instant,
    ) {
        self.counted(asked.row, error.is_none());
        if asked.row.audit == AuditRule::Counted {
            return;
        }
        self.0.audit.record(Entry {
            at_ms: now.unix,
            call,
            principal: asked.principal.id,
            session: None,
            tool: asked.row.name.to_owned(),
            edge: Cow::Borrowed(asked.edge.as_str()),
            outcome: Cow::Borrowed(outcome),
            certainty: error.map(Error::certainty),
            duration_us: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
        });
    }

    /// Writes what is waiting and closes the segments.
    pub(crate) fn close(&self) {
        self.0.audit.close();
    }
}

fn code(error: &Error) -> &'static str {
    error.kind().category_and_code().1
}
