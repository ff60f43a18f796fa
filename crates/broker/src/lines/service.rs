//! Calls that the daemon makes itself, of services that do the work of native tools.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ringback_core::deadline::Deadline;
use ringback_core::lines::{NewCall, Recall};
use ringback_proto::any::{Any, Format};
use ringback_proto::ids::{CallId, JobId};
use ringback_proto::{Certainty, Error, ErrorKind, Result};
use tokio::sync::{oneshot, watch};

use super::call::{LineCallGuard, received};
use super::{CallContext, LineCall, Lines, Waiter};
use crate::sync::lock;

/// A call of a tool of a service.
#[derive(Debug)]
pub(crate) struct ServiceCall {
    pub(crate) service: &'static str,
    pub(crate) tool: &'static str,
    /// Its input, in MsgPack.
    pub(crate) arguments: Bytes,
    /// The job that the answer must name again.
    pub(crate) job_id: Option<JobId>,
    /// How long the service may take.
    pub(crate) limit: Duration,
}

impl Lines {
    /// Returns whether a party serves this tool.
    pub(crate) fn serves(&self, service: &str, tool: &str) -> bool {
        lock(&self.table).tool_of_service(service, tool).is_some()
    }

    /// Counts the changes of what services serve.
    pub(crate) fn service_changes(&self) -> watch::Receiver<u64> {
        self.service_changes.subscribe()
    }

    /// Calls a tool of a service and returns its answer, in MsgPack.
    ///
    /// # Errors
    /// Those of the service, and `unavailable` when no party serves it, or when it does not answer
    /// in time.
    ///
    /// # Cancel safety
    /// Dropping it withdraws the call.
    pub(crate) async fn call_service(&self, call: ServiceCall) -> Result<Bytes> {
        let ServiceCall { service, tool: name, arguments, job_id, limit } = call;
        let id = CallId::from_random(self.kernel.entropy.bytes());
        let tool = lock(&self.table).tool_of_service(service, name);
        let tool = tool.ok_or_else(|| {
            Error::new(ErrorKind::Gone, format!("no process serves `{name}` of `{service}`"))
        })?;
        let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let (answer, mut answered) = oneshot::channel();
        let out = Arc::new(LineCall {
            id,
            request_id: Arc::from(id.to_string().as_str()),
            tool: Arc::clone(&tool),
            context: CallContext::default(),
            arguments: Any { format: Format::MsgPack, bytes: arguments },
            deadline: Deadline::smallest(self.kernel.now(), None, Some(limit_ms), limit_ms),
            job_id,
        });
        let caller = Waiter { answer, chunks: None };
        let mut effects = Vec::new();
        lock(&self.table).call(NewCall { id, custom_id: None, tool, out, caller }, &mut effects)?;
        self.carry_out(effects);
        let mut held = LineCallGuard::new(self, id);
        let outcome = match tokio::time::timeout(limit, &mut answered).await {
            Ok(outcome) => {
                held.over = true;
                received(outcome)
            }
            Err(_) => match held.recall(Recall::TimedOut) {
                Some(certainty) => Err(silent(service, name, limit, certainty)),
                // It was answered at this very moment.
                None => received(answered.await),
            },
        };
        outcome.map(|answer| answer.bytes)
    }
}

fn silent(service: &str, tool: &str, limit: Duration, certainty: Certainty) -> Error {
    let message = format!(
        "`{service}` did not answer `{tool}` within {} ms; look at its state before you repeat it",
        limit.as_millis()
    );
    Error::new(ErrorKind::Gone, message).with_certainty(certainty)
}
