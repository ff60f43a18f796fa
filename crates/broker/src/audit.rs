//! The record of calls, callers and outcomes: the audit and the counters.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use camino::Utf8Path;
use metrics::Counter;
use ringback_core::Now;
use ringback_core::lines::LineName;
use ringback_core::trace::{Answered, OnLine, Trace, TraceRing};
use ringback_proto::Error;
use ringback_proto::ids::{CallId, JobId, RequestId, SessionId};
use ringback_proto::principal::{Level, PrincipalId};
use ringback_proto::tool::{Audit as AuditRule, TOOLS, ToolRow};
use ringback_store::audit::{Audit, AuditCursor, AuditError, AuditLimits, Entry, Line, Passed};
use tokio::time::Instant;

use crate::broker::Asked;
use crate::call::Edge;
use crate::identity::Credential;
use crate::lines::LineCaller;
use crate::sessions::{ModelRequest, NetworkConnection};
use crate::sync::lock;

/// The number of calls that can be explained, about 300 bytes each.
const TRACES_MAX: usize = 4096;

/// Records every call: no arguments, no results, no secrets.
#[derive(Clone)]
pub(crate) struct Auditor(Arc<Inner>);

struct Inner {
    audit: Audit,
    /// One pair per tool, in the order of the table.
    counters: Vec<ToolCounters>,
    traces: Mutex<TraceRing>,
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
        let traces = Mutex::new(TraceRing::new(TRACES_MAX));
        Ok(Self(Arc::new(Inner { audit, counters, traces })))
    }

    /// Records a call that was not admitted.
    pub(crate) fn refused(
        &self,
        now: Now,
        by: &Credential,
        (edge, tool): (Edge, &str),
        id: CallId,
        error: &Error,
    ) {
        self.refused_in(now, (by.id(), by.session()), edge, tool.to_owned(), id, error);
    }

    /// Records a call for a session that was not admitted.
    pub(crate) fn refused_in(
        &self,
        now: Now,
        (principal, session): (PrincipalId, Option<SessionId>),
        edge: Edge,
        tool: String,
        id: CallId,
        error: &Error,
    ) {
        metrics::counter!("ringback_calls_refused_total", "code" => code(error)).increment(1);
        self.0.audit.record(Entry {
            at_ms: now.unix,
            call: id,
            principal,
            session,
            tool,
            edge: Cow::Borrowed(edge.as_str()),
            outcome: Cow::Borrowed(code(error)),
            certainty: Some(error.certainty()),
            duration_us: 0,
            bytes: None,
        });
    }

    /// Records a call of a tool that answers immediately: counted only, unless its row wants more.
    pub(crate) fn counted(&self, row: &ToolRow, succeeded: bool) {
        let counters = &self.0.counters[row.kind as usize];
        if succeeded { &counters.succeeded } else { &counters.failed }.increment(1);
    }

    /// Records that a call that waits for something was admitted: from now on it can be explained.
    pub(crate) fn admitted(&self, now: Now, asked: &Asked, request_id: Option<RequestId>) {
        lock(&self.0.traces).begin(Trace {
            call: asked.id,
            request_id,
            job: None,
            tool: asked.row.name.to_owned(),
            edge: asked.edge.as_str(),
            principal: asked.principal.id,
            levels: (asked.principal.level, asked.row.level),
            admitted: now,
            deadline: asked.deadline,
            repeat: false,
            answered: None,
            line: None,
        });
    }

    /// Records that a call of a tool on a line was admitted.
    pub(crate) fn line_admitted(&self, now: Now, call: &LineCaller, line: &LineName) {
        lock(&self.0.traces).begin(Trace {
            call: call.id,
            request_id: call.request_id,
            job: None,
            tool: call.tool.to_string(),
            edge: call.edge.as_str(),
            principal: call.principal.id,
            levels: (call.principal.level, Level::Write),
            admitted: now,
            deadline: call.deadline,
            repeat: false,
            answered: None,
            line: Some(OnLine::new(line.to_string())),
        });
    }

    /// Records that a call on a line was delivered to its party.
    pub(crate) fn delivered(&self, now: Now, call: CallId) {
        lock(&self.0.traces).amend(call, |trace| {
            if let Some(line) = &mut trace.line {
                line.delivered(now);
            }
        });
    }

    /// Records an answer of a party to a call that had ended.
    pub(crate) fn late_answer(&self, call: CallId) {
        lock(&self.0.traces).amend(call, |trace| {
            if let Some(line) = &mut trace.line {
                line.n_late_answers = line.n_late_answers.saturating_add(1);
            }
        });
    }

    /// Records the end of a call of a tool on a line.
    pub(crate) fn line_ended(
        &self,
        now: Now,
        call: &LineCaller,
        error: Option<&Error>,
        started: Instant,
    ) {
        let outcome = error.map_or("success", code);
        metrics::counter!("ringback_line_calls_total", "outcome" => outcome).increment(1);
        let certainty = error.map(Error::certainty);
        let answered = Answered { at: now, outcome, certainty };
        lock(&self.0.traces).amend(call.id, |trace| trace.answered = Some(answered));
        self.0.audit.record(Entry {
            at_ms: now.unix,
            call: call.id,
            principal: call.principal.id,
            session: call.session,
            tool: call.tool.to_string(),
            edge: Cow::Borrowed(call.edge.as_str()),
            outcome: Cow::Borrowed(outcome),
            certainty,
            duration_us: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            bytes: None,
        });
    }

    /// Records a session's request to its model.
    pub(crate) fn model_requested(
        &self,
        now: Now,
        call: CallId,
        (principal, session): (PrincipalId, SessionId),
        request: &ModelRequest,
    ) {
        let is_fine = request.is_whole && request.status.is_some_and(|status| status < 400);
        let outcome = if is_fine { "success" } else { "error" };
        metrics::counter!("ringback_model_requests_total", "outcome" => outcome).increment(1);
        let outcome = match request.status {
            Some(status) if !is_fine => Cow::Owned(format!("status_{status}")),
            Some(_) => Cow::Borrowed(outcome),
            None => Cow::Borrowed("given_up"),
        };
        self.0.audit.record(Entry {
            at_ms: now.unix,
            call,
            principal,
            session: Some(session),
            tool: format!("model:{}", request.model),
            edge: Cow::Borrowed("model"),
            outcome,
            certainty: None,
            duration_us: u64::try_from(request.duration.as_micros()).unwrap_or(u64::MAX),
            bytes: Some(Passed { up: request.usage.bytes_up, down: request.usage.bytes_down }),
        });
    }

    /// Records a session's request for a network destination.
    pub(crate) fn network_asked(
        &self,
        now: Now,
        call: CallId,
        (principal, session): (PrincipalId, SessionId),
        asked: &NetworkConnection,
    ) {
        let outcome = asked.outcome.as_str();
        metrics::counter!("ringback_network_connections_total", "outcome" => outcome).increment(1);
        self.0.audit.record(Entry {
            at_ms: now.unix,
            call,
            principal,
            session: Some(session),
            tool: format!("network:{}", asked.place),
            edge: Cow::Borrowed("network"),
            outcome: Cow::Borrowed(outcome),
            certainty: None,
            duration_us: u64::try_from(asked.duration.as_micros()).unwrap_or(u64::MAX),
            bytes: Some(Passed { up: asked.bytes_up, down: asked.bytes_down }),
        });
    }

    /// Records a call that repeats an earlier one.
    pub(crate) fn repeated(&self, now: Now, asked: &Asked, job: Option<JobId>) {
        self.counted(asked.row, true);
        let answered = Answered { at: now, outcome: "repeated", certainty: None };
        lock(&self.0.traces).amend(asked.id, |trace| {
            (trace.repeat, trace.job, trace.answered) = (true, job, Some(answered));
        });
    }

    /// Records the end of a call.
    pub(crate) fn each(&self, now: Now, asked: &Asked, error: Option<&Error>, started: Instant) {
        self.answered(now, asked, "success", error, started);
    }

    /// Records a call that became a job, or failed to.
    pub(crate) fn began(
        &self,
        now: Now,
        asked: &Asked,
        begun: Result<JobId, &Error>,
        started: Instant,
    ) {
        lock(&self.0.traces).amend(asked.id, |trace| trace.job = begun.ok());
        self.answered(now, asked, "job_started", begun.err(), started);
    }

    fn answered(
        &self,
        now: Now,
        asked: &Asked,
        success: &'static str,
        error: Option<&Error>,
        started: Instant,
    ) {
        self.counted(asked.row, error.is_none());
        let (outcome, certainty) = (error.map_or(success, code), error.map(Error::certainty));
        let answered = Answered { at: now, outcome, certainty };
        lock(&self.0.traces).amend(asked.id, |trace| trace.answered = Some(answered));
        if asked.row.audit == AuditRule::Counted {
            return;
        }
        self.0.audit.record(Entry {
            at_ms: now.unix,
            call: asked.id,
            principal: asked.principal.id,
            session: asked.principal.held_by.map(|held_by| held_by.session),
            tool: asked.row.name.to_owned(),
            edge: Cow::Borrowed(asked.edge.as_str()),
            outcome: Cow::Borrowed(outcome),
            certainty,
            duration_us: u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX),
            bytes: None,
        });
    }

    /// Returns the latest call that `is_wanted` picks.
    pub(crate) fn explain(&self, is_wanted: impl Fn(&Trace) -> bool) -> Option<Trace> {
        lock(&self.0.traces).find(is_wanted).cloned()
    }

    /// Returns audit lines, newest first: all that existed at the time of the request. Blocks.
    pub(crate) fn page(
        &self,
        before: Option<AuditCursor>,
        limit: usize,
    ) -> Result<(Vec<Line>, Option<AuditCursor>), AuditError> {
        self.0.audit.flush();
        self.0.audit.page(before, limit)
    }

    /// Writes pending lines and closes the segments.
    pub(crate) fn close(&self) {
        self.0.audit.close();
    }
}

fn code(error: &Error) -> &'static str {
    error.kind().category_and_code().1
}
