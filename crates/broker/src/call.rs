//! A call from an edge: admitted or refused at once, answered now or later.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use ringback_core::Now;
use ringback_core::calls::CallTable;
use ringback_core::deadline::Deadline;
use ringback_core::repeats::same_body;
use ringback_core::waiting::EdgeHabit;
use ringback_proto::any::Format;
use ringback_proto::ids::{CallId, RequestId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::RepeatKey;
use ringback_proto::{Certainty, Error, RequestEnvelope, ResponseEnvelope, Result};
use ringback_store::Store;
use tokio_util::sync::CancellationToken;

use crate::identity::Credential;
use crate::kernel::Kernel;
use crate::repeats::Repeats;
use crate::replies::Replies;
use crate::stream::Stream;
use crate::sync::lock;

/// Where a call came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Edge {
    /// HOOT01 over ZeroMQ.
    Hoot,
    /// HTTP.
    Http,
    /// MCP over HTTP or stdio.
    Mcp,
    /// The socket of a sandbox.
    Relay,
}

impl Edge {
    /// The name in the audit and in metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hoot => "hoot",
            Self::Http => "http",
            Self::Mcp => "mcp",
            Self::Relay => "relay",
        }
    }

    /// The encoding of payloads that pass through it.
    #[must_use]
    pub const fn format(self) -> Format {
        match self {
            Self::Hoot => Format::MsgPack,
            Self::Http | Self::Mcp | Self::Relay => Format::Json,
        }
    }

    /// What the edge does when the caller asks for nothing.
    #[must_use]
    pub const fn habit(self) -> EdgeHabit {
        match self {
            Self::Hoot => EdgeHabit::JobAtOnce,
            Self::Http | Self::Mcp | Self::Relay => EdgeHabit::WaitAsClass,
        }
    }
}

/// A call as an edge hands it over.
#[derive(Debug)]
pub struct Call<'a> {
    /// Who calls.
    pub credential: &'a Credential,
    /// Through which edge.
    pub edge: Edge,
    /// What.
    pub envelope: RequestEnvelope,
    /// The caller's id for it, by which a repeat is recognised.
    pub request_id: Option<RequestId>,
}

/// The answer to a call.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "the large one is the hot one, and is used at once")]
pub enum Answer {
    /// It is over.
    Now(ResponseEnvelope),
    /// Replies will come.
    Later(Replies, CallControl),
}

/// How an edge speaks to a call under way. Cloning gives another handle of the same call.
#[derive(Debug, Clone)]
pub struct CallControl {
    pub(crate) stop: Arc<CallStop>,
    pub(crate) stream: Option<Arc<Stream>>,
}

impl CallControl {
    /// The caller wants it to stop.
    pub fn cancel(&self) {
        self.stop.token.cancel();
    }

    /// The caller takes so many more bytes of lossless chunks.
    pub fn add_credit(&self, bytes: u64) {
        if let Some(stream) = &self.stream {
            stream.add_credit(bytes);
        }
    }
}

/// How a call is told to stop.
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

    /// Whether it is to stop because its time is up.
    pub(crate) fn timed_out(&self) -> bool {
        self.timed_out.load(Ordering::Acquire)
    }

    /// Resolves when the call is to stop, with the error it ends in.
    pub(crate) async fn stopped(&self, tool: &str) -> Error {
        self.token.cancelled().await;
        if self.timed_out() {
            Error::timeout(&format!("`{tool}`"), self.allowed_ms)
        } else {
            Error::cancelled("as the caller asked")
        }
        .with_certainty(Certainty::MayHaveRun)
    }
}

/// The calls under way: how long each may take, how to stop it, and which are repeats.
#[derive(Debug)]
pub(crate) struct Calls {
    kernel: Arc<Kernel>,
    table: Mutex<Table>,
    pub(crate) repeats: Repeats,
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
        Self { kernel, table, repeats: Repeats::default() }
    }

    /// Admits a call, which counts until the admission is dropped.
    pub(crate) fn admit(
        self: &Arc<Self>,
        id: CallId,
        principal: PrincipalId,
        deadline: Deadline,
    ) -> Result<Admitted> {
        let stop = Arc::new(CallStop::new(deadline.allowed_ms));
        {
            let mut table = lock(&self.table);
            table.rules.admit(id, principal, deadline)?;
            table.stops.insert(id, Arc::clone(&stop));
        }
        self.kernel.alarm.add(deadline.at);
        Ok(Admitted { calls: Arc::clone(self), id, stop })
    }

    /// How many there are; the two tables tell the same number, or the larger one shows a leak.
    pub(crate) fn len(&self) -> usize {
        let table = lock(&self.table);
        let n_calls = if table.rules.is_empty() { 0 } else { table.rules.len().max(1) };
        n_calls.max(table.stops.len())
    }

    pub(crate) fn next_deadline(&self) -> Option<u64> {
        lock(&self.table).rules.next_deadline()
    }

    /// Gives a call more time; see the table.
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

    /// Jobs remember their request ids longer than other calls do, and over a restart.
    pub(crate) async fn unused_for_a_job(&self, owner: PrincipalId, key: RepeatKey) -> Result<()> {
        let read = move |store: &Store| store.job_by_repeat(owner, key.request_id);
        let stored = self.kernel.read(read).await?;
        stored.and_then(|record| record.repeat).map_or(Ok(()), |first| same_body(&first, &key))
    }
}

/// A call under way; dropping it is its end.
#[derive(Debug)]
pub(crate) struct Admitted {
    calls: Arc<Calls>,
    id: CallId,
    pub(crate) stop: Arc<CallStop>,
}

impl Drop for Admitted {
    fn drop(&mut self) {
        let mut table = lock(&self.calls.table);
        table.rules.ended(self.id);
        table.stops.remove(&self.id);
    }
}
