//! A call from an edge: admitted or refused immediately, answered now or later.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use ringback_core::Now;
use ringback_core::calls::CallTable;
use ringback_core::deadline::Deadline;
use ringback_core::repeats::same_body;
use ringback_core::reply_mode::EdgeHabit;
use ringback_proto::any::Format;
use ringback_proto::ids::{CallId, RequestId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::RepeatKey;
use ringback_proto::{Certainty, Error, RequestEnvelope, ResponseEnvelope, Result, Tool};
use ringback_store::Store;
use tokio_util::sync::CancellationToken;

use crate::identity::Credential;
use crate::kernel::Kernel;
use crate::repeats::Repeats;
use crate::replies::Replies;
use crate::stream::Stream;
use crate::sync::lock;

/// The edge through which a call came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// HOOT01 over ZeroMQ.
    Hoot,
    /// HTTP.
    Http,
    /// MCP over HTTP or stdio.
    Mcp,
    /// A sandbox's socket.
    Relay,
}

impl Edge {
    /// Returns the name used in the audit and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hoot => "hoot",
            Self::Http => "http",
            Self::Mcp => "mcp",
            Self::Relay => "relay",
        }
    }

    /// Returns the encoding of payloads that pass through it.
    #[must_use]
    pub const fn format(self) -> Format {
        match self {
            Self::Hoot => Format::MsgPack,
            Self::Http | Self::Mcp | Self::Relay => Format::Json,
        }
    }

    /// Returns the options that the edge uses when the caller sets none.
    #[must_use]
    pub const fn habit(self) -> EdgeHabit {
        match self {
            Self::Hoot => EdgeHabit::JobAtOnce,
            Self::Http | Self::Mcp | Self::Relay => EdgeHabit::WaitAsClass,
        }
    }
}

/// A call as an edge submits it.
#[derive(Debug)]
pub struct Call<'a> {
    /// The caller.
    pub credential: &'a Credential,
    /// The edge.
    pub edge: Edge,
    /// The request.
    pub envelope: RequestEnvelope,
    /// The caller's id for it, which identifies a repeat.
    pub request_id: Option<RequestId>,
}

/// The answer to a call.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "the large variant is the hot one and is consumed immediately"
)]
pub enum Answer {
    /// The final reply.
    Now(ResponseEnvelope),
    /// Replies will follow.
    Later(Replies, CallControl),
}

impl Answer {
    /// Returns the response of a tool that answers without waiting.
    ///
    /// # Errors
    /// The error of the call; `internal` for a reply that the tool's row does not allow.
    pub fn now<T: Tool>(self) -> Result<T::Response> {
        match self {
            Self::Now(reply) => response::<T>(Some(reply)),
            Self::Later(..) => response::<T>(None),
        }
    }

    /// Waits for the response of a tool that starts no job.
    ///
    /// # Errors
    /// The error of the call; `internal` for a reply that the tool's row does not allow.
    pub async fn wait<T: Tool>(self) -> Result<T::Response> {
        match self {
            Self::Now(reply) => response::<T>(Some(reply)),
            Self::Later(mut replies, _) => response::<T>(replies.next().await),
        }
    }
}

fn response<T: Tool>(reply: Option<ResponseEnvelope>) -> Result<T::Response> {
    let unexpected = || Error::internal("call", format!("an unexpected reply of `{}`", T::NAME));
    match reply {
        Some(ResponseEnvelope::Success { response }) => {
            T::Response::try_from(response).map_err(|_| unexpected())
        }
        Some(ResponseEnvelope::Error(error)) => Err(error.into()),
        Some(
            ResponseEnvelope::JobStarted { .. }
            | ResponseEnvelope::Ack { .. }
            | ResponseEnvelope::StreamStart { .. }
            | ResponseEnvelope::StreamChunk { .. }
            | ResponseEnvelope::StreamEnd { .. },
        )
        | None => Err(unexpected()),
    }
}

/// An edge's control over a call in progress. A clone controls the same call.
#[derive(Debug, Clone)]
pub struct CallControl {
    pub(crate) stop: Arc<CallStop>,
    pub(crate) stream: Option<Arc<Stream>>,
}

impl CallControl {
    /// Stops the call at its caller's request.
    pub fn cancel(&self) {
        self.stop.token.cancel();
    }

    /// Grants credit for `bytes` more of lossless chunks.
    pub fn add_credit(&self, bytes: u64) {
        if let Some(stream) = &self.stream {
            stream.add_credit(bytes);
        }
    }
}

/// The stop signal of a call.
#[derive(Debug)]
pub(crate) struct CallStop {
    pub(crate) token: CancellationToken,
    timed_out: AtomicBool,
    allowed_ms: u64,
}

impl CallStop {
    pub(crate) fn new(allowed_ms: u64) -> Self {
        Self { token: CancellationToken::new(), timed_out: AtomicBool::new(false), allowed_ms }
    }

    /// Returns whether it stops because its time is up.
    pub(crate) fn timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Acquire)
    }

    /// Resolves when the call is to stop, with the error it ends in.
    pub(crate) async fn stopped(&self, tool: &str) -> Error {
        self.token.cancelled().await;
        if self.timed_out() {
            Error::timeout(&format!("`{tool}`"), self.allowed_ms)
        } else {
            Error::cancelled("at the caller's request")
        }
        .with_certainty(Certainty::MayHaveRun)
    }
}

/// The calls in progress: how long each may take, how to stop it, and which are repeats.
#[derive(Debug)]
pub(crate) struct Calls {
    kernel: Arc<Kernel>,
    table: Mutex<Table>,
    pub(crate) repeats: Repeats,
    n_begun: AtomicU64,
}

#[derive(Debug)]
struct Table {
    rules: CallTable,
    stops: HashMap<CallId, Arc<CallStop>>,
}

impl Calls {
    pub(crate) fn new(kernel: Arc<Kernel>) -> Self {
        let rules = CallTable::new(kernel.config.calls_per_principal_max);
        let table = Mutex::new(Table { rules, stops: HashMap::new() });
        Self { kernel, table, repeats: Repeats::default(), n_begun: AtomicU64::new(0) }
    }

    /// Admits a call, which counts until the admission is dropped.
    pub(crate) fn admit(
        self: &Arc<Self>,
        id: CallId,
        principal: PrincipalId,
        deadline: Deadline,
    ) -> Result<ActiveCall> {
        self.n_begun.fetch_add(1, Ordering::Relaxed);
        let stop = Arc::new(CallStop::new(deadline.allowed_ms));
        {
            let mut table = lock(&self.table);
            table.rules.admit(id, principal, deadline)?;
            table.stops.insert(id, Arc::clone(&stop));
        }
        self.kernel.alarm.add(deadline.at);
        Ok(ActiveCall { calls: Arc::clone(self), id, stop })
    }

    /// Returns how many calls there are. The two tables have the same count; the larger one would
    /// show a leak.
    pub(crate) fn len(&self) -> usize {
        let table = lock(&self.table);
        let n_calls = if table.rules.is_empty() { 0 } else { table.rules.len().max(1) };
        n_calls.max(table.stops.len())
    }

    /// Returns how many calls there have been.
    pub(crate) fn n_begun(&self) -> u64 {
        self.n_begun.load(Ordering::Relaxed)
    }

    pub(crate) fn next_deadline(&self) -> Option<u64> {
        lock(&self.table).rules.next_deadline()
    }

    /// Extends a call's deadline; see the table.
    pub(crate) fn extend(&self, id: CallId, ms: u64) {
        let ms_max = self.kernel.config.call_ms_max;
        lock(&self.table).rules.extend(id, self.kernel.now(), ms, ms_max);
        self.kernel.alarm.ring();
    }

    /// Stops the calls whose time is up.
    pub(crate) fn expire(&self, now: Now) {
        let mut table = lock(&self.table);
        for id in table.rules.expire(now) {
            if let Some(stop) = table.stops.get(&id) {
                stop.timed_out.store(true, Ordering::Release);
                stop.token.cancel();
            }
        }
    }

    /// Jobs remember their request ids longer than other calls do, and across a restart.
    pub(crate) async fn unused_for_a_job(&self, owner: PrincipalId, key: RepeatKey) -> Result<()> {
        let read = move |store: &Store| store.job_by_repeat(owner, key.request_id);
        let stored = self.kernel.read(read).await?;
        stored.and_then(|record| record.repeat).map_or(Ok(()), |first| same_body(&first, &key))
    }
}

/// A call in progress; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ActiveCall {
    calls: Arc<Calls>,
    id: CallId,
    pub(crate) stop: Arc<CallStop>,
}

impl Drop for ActiveCall {
    fn drop(&mut self) {
        let mut table = lock(&self.calls.table);
        table.rules.ended(self.id);
        table.stops.remove(&self.id);
    }
}
