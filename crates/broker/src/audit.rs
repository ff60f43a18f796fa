//! The record of calls, callers and outcomes: the audit and the counters.

use std::borrow::Cow;
use std::sync::{Arc, Mutex};

use camino::Utf8Path;
use metrics::Counter;
use ringback_core::Now;
use ringback_core::lines::LineName;
use ringback_core::trace::{CallAnswer, LineProgress, Trace, TraceRing};
use ringback_proto::Error;
use ringback_proto::ids::{CallId, JobId, RequestId, SessionId};
use ringback_proto::principal::{Level, PrincipalId};
use ringback_proto::tool::{Audit as AuditRule, TOOLS, ToolRow};
use ringback_store::audit::{Audit, AuditCursor, AuditError, AuditLimits, Entry, Line, Traffic};
use tokio::time::Instant;

use crate::call::Edge;
use crate::identity::Credential;
use crate::lines::LineCaller;
use crate::native_call::NativeCall;
use crate::sessions::{ModelRequest, NetworkConnection};
use crate::sync::lock;

/// The number of calls that can be explained, about 300 bytes each.
const TRACES_MAX: usize = 4096;

/// Records every call: no arguments, no results, no secrets.
#[derive(Clone)]
pub(crate) struct Auditor(Arc<Inner>);

struct Inner {
    audit: Audit,
    /// One for each tool, in the order of the table.
    tools: Vec<ToolRecord>,
    /// For calls of tools on lines that succeeded; those that fail are rare.
    lines_succeeded: Counter,
    traces: Mutex<TraceRing>,
}

/// What is kept of a tool, so that no call makes it again.
struct ToolRecord {
    name: Arc<str>,
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
        let tools = TOOLS
            .iter()
            .map(|row| ToolRecord {
                name: row.name.into(),
                succeeded: counter(row.name, "success"),
                failed: counter(row.name, "error"),
            })
            .collect();
        let traces = Mutex::new(TraceRing::new(TRACES_MAX));
        let lines_succeeded = line_calls("success");
        Ok(Self(Arc::new(Inner { audit, tools, lines_succeeded, traces })))
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
        self.refused_in(now, (by.id(), by.session()), edge, tool.into(), id, error);
    }

    /// Records a call for a session that was not admitted.
    pub(crate) fn refused_in(
        &self,
        now: Now,
        (principal, session): (PrincipalId, Option<SessionId>),
        edge: Edge,
        tool: Arc<str>,
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
        let tool = self.tool(row);
        if succeeded { &tool.succeeded } else { &tool.failed }.increment(1);
    }

    fn tool(&self, row: &ToolRow) -> &ToolRecord {
        &self.0.tools[row.kind as usize]
    }

    /// Records that a call that waits for something was admitted: from now on it can be explained.
    pub(crate) fn admitted(&self, now: Now, call: &NativeCall, request_id: Option<RequestId>) {
        lock(&self.0.traces).begin(Trace {
            call: call.id,
            request_id,
            job: None,
            tool: Arc::clone(&self.tool(call.row).name),
            edge: call.edge.as_str(),
            principal: call.principal.id,
            levels: (call.principal.level, call.row.level),
            admitted: now,
            deadline: call.deadline,
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
            tool: Arc::clone(&call.tool),
            edge: call.edge.as_str(),
            principal: call.principal.id,
            levels: (call.principal.level, Level::Write),
            admitted: now,
            deadline: call.deadline,
            repeat: false,
            answered: None,
            line: Some(LineProgress::new(line.clone())),
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
        match error {
            None => self.0.lines_succeeded.increment(1),
            Some(_) => line_calls(outcome).increment(1),
        }
        let certainty = error.map(Error::certainty);
        let answered = CallAnswer { at: now, outcome, certainty };
        lock(&self.0.traces).amend(call.id, |trace| trace.answered = Some(answered));
        self.0.audit.record(Entry {
            at_ms: now.unix,
            call: call.id,
            principal: call.principal.id,
            session: call.session,
            tool: Arc::clone(&call.tool),
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
            tool: format!("model:{}", request.model).into(),
            edge: Cow::Borrowed("model"),
            outcome,
            certainty: None,
            duration_us: u64::try_from(request.duration.as_micros()).unwrap_or(u64::MAX),
            bytes: Some(Traffic { up: request.usage.bytes_up, down: request.usage.bytes_down }),
        });
    }

    /// Records a session's request for a network destination.
    pub(crate) fn network_requested(
        &self,
        now: Now,
        call: CallId,
        (principal, session): (PrincipalId, SessionId),
        request: &NetworkConnection,
    ) {
        let outcome = request.outcome.as_str();
        metrics::counter!("ringback_network_connections_total", "outcome" => outcome).increment(1);
        self.0.audit.record(Entry {
            at_ms: now.unix,
            call,
            principal,
            session: Some(session),
            tool: format!("network:{}", request.place).into(),
            edge: Cow::Borrowed("network"),
            outcome: Cow::Borrowed(outcome),
            certainty: None,
            duration_us: u64::try_from(request.duration.as_micros()).unwrap_or(u64::MAX),
            bytes: Some(Traffic { up: request.bytes_up, down: request.bytes_down }),
        });
    }

    /// Records a call that repeats an earlier one.
    pub(crate) fn repeated(&self, now: Now, call: &NativeCall, job: Option<JobId>) {
        self.counted(call.row, true);
        let answered = CallAnswer { at: now, outcome: "repeated", certainty: None };
        lock(&self.0.traces).amend(call.id, |trace| {
            (trace.repeat, trace.job, trace.answered) = (true, job, Some(answered));
        });
    }

    /// Records the end of a call.
    pub(crate) fn each(
        &self,
        now: Now,
        call: &NativeCall,
        error: Option<&Error>,
        started: Instant,
    ) {
        self.answered(now, call, "success", error, started);
    }

    /// Records a call that became a job, or failed to.
    pub(crate) fn began(
        &self,
        now: Now,
        call: &NativeCall,
        job: Result<JobId, &Error>,
        started: Instant,
    ) {
        lock(&self.0.traces).amend(call.id, |trace| trace.job = job.ok());
        self.answered(now, call, "job_started", job.err(), started);
    }

    fn answered(
        &self,
        now: Now,
        call: &NativeCall,
        success: &'static str,
        error: Option<&Error>,
        started: Instant,
    ) {
        self.counted(call.row, error.is_none());
        let (outcome, certainty) = (error.map_or(success, code), error.map(Error::certainty));
        let answered = CallAnswer { at: now, outcome, certainty };
        lock(&self.0.traces).amend(call.id, |trace| trace.answered = Some(answered));
        if call.row.audit == AuditRule::Counted {
            return;
        }
        self.0.audit.record(Entry {
            at_ms: now.unix,
            call: call.id,
            principal: call.principal.id,
            session: call.principal.held_by.map(|held_by| held_by.session),
            tool: Arc::clone(&self.tool(call.row).name),
            edge: Cow::Borrowed(call.edge.as_str()),
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

fn line_calls(outcome: &'static str) -> Counter {
    metrics::counter!("ringback_line_calls_total", "outcome" => outcome)
}

fn code(error: &Error) -> &'static str {
    error.kind().category_and_code().1
}
