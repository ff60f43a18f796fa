//! The implementation of native tools: one [`Handler`] or [`SyncHandler`] for each row of the
//! table. The types tie a handler to its row: one that returns another tool's response does not
//! compile. This example compiles; each of those below differs from it in one place:
//!
//! ```
//! use ringback_broker::handler::{SyncContext, SyncHandler};
//! use ringback_proto::request::{PingRequest, PongResponse};
//! use ringback_proto::tool::tools;
//!
//! struct Mine;
//! impl SyncHandler<tools::Ping> for Mine {
//!     fn handle(ctx: &SyncContext<'_>, _: PingRequest) -> ringback_proto::Result<PongResponse> {
//!         let _ = ctx;
//!         Ok(PongResponse { uptime_ms: 0, version: String::new() })
//!     }
//! }
//! ```
//!
//! Another tool's response:
//!
//! ```compile_fail,E0053
//! use ringback_broker::handler::{SyncContext, SyncHandler};
//! use ringback_proto::request::{PingRequest, SleptResponse};
//! use ringback_proto::tool::tools;
//!
//! struct Mine;
//! impl SyncHandler<tools::Ping> for Mine {
//!     fn handle(ctx: &SyncContext<'_>, _: PingRequest) -> ringback_proto::Result<SleptResponse> {
//!         let _ = ctx;
//!         Ok(SleptResponse { milliseconds: 0 })
//!     }
//! }
//! ```
//!
//! A `Sync` handler is a plain function. It cannot wait:
//!
//! ```compile_fail,E0728
//! use ringback_broker::handler::{SyncContext, SyncHandler};
//! use ringback_proto::request::{PingRequest, PongResponse};
//! use ringback_proto::tool::tools;
//!
//! struct Mine;
//! impl SyncHandler<tools::Ping> for Mine {
//!     fn handle(ctx: &SyncContext<'_>, _: PingRequest) -> ringback_proto::Result<PongResponse> {
//!         let _ = std::future::ready(ctx).await;
//!         Ok(PongResponse { uptime_ms: 0, version: String::new() })
//!     }
//! }
//! ```
//!
//! It cannot be a future:
//!
//! ```compile_fail,E0053
//! use ringback_broker::handler::{SyncContext, SyncHandler};
//! use ringback_proto::request::{PingRequest, PongResponse};
//! use ringback_proto::tool::tools;
//!
//! struct Mine;
//! impl SyncHandler<tools::Ping> for Mine {
//!     async fn handle(ctx: &SyncContext<'_>, _: PingRequest) -> ringback_proto::Result<PongResponse> {
//!         let _ = ctx;
//!         Ok(PongResponse { uptime_ms: 0, version: String::new() })
//!     }
//! }
//! ```
//!
//! It cannot write to the store, as a [`Handler`] may:
//!
//! ```compile_fail,E0599
//! use ringback_broker::handler::{SyncContext, SyncHandler};
//! use ringback_proto::request::{PingRequest, PongResponse};
//! use ringback_proto::tool::tools;
//!
//! struct Mine;
//! impl SyncHandler<tools::Ping> for Mine {
//!     fn handle(ctx: &SyncContext<'_>, _: PingRequest) -> ringback_proto::Result<PongResponse> {
//!         let _ = ctx.commit(Vec::new());
//!         Ok(PongResponse { uptime_ms: 0, version: String::new() })
//!     }
//! }
//! ```
//!
//! It cannot reach the rooms, and through them content, store and agents:
//!
//! ```compile_fail,E0609
//! use ringback_broker::handler::{SyncContext, SyncHandler};
//! use ringback_proto::request::{PingRequest, PongResponse};
//! use ringback_proto::tool::tools;
//!
//! struct Mine;
//! impl SyncHandler<tools::Ping> for Mine {
//!     fn handle(ctx: &SyncContext<'_>, _: PingRequest) -> ringback_proto::Result<PongResponse> {
//!         let _ = &ctx.rooms;
//!         Ok(PongResponse { uptime_ms: 0, version: String::new() })
//!     }
//! }
//! ```
//!
//! It cannot hand work to another thread:
//!
//! ```compile_fail,E0599
//! use ringback_broker::handler::{SyncContext, SyncHandler};
//! use ringback_proto::request::{PingRequest, PongResponse};
//! use ringback_proto::tool::tools;
//!
//! struct Mine;
//! impl SyncHandler<tools::Ping> for Mine {
//!     fn handle(ctx: &SyncContext<'_>, _: PingRequest) -> ringback_proto::Result<PongResponse> {
//!         let _ = ctx.blocking(|_| Ok(()));
//!         Ok(PongResponse { uptime_ms: 0, version: String::new() })
//!     }
//! }
//! ```

use std::pin::Pin;
use std::sync::Arc;

use ringback_core::Now;
use ringback_core::policy::{self, Provenance, Visibility};
use ringback_proto::ids::JobId;
use ringback_proto::principal::Principal;
use ringback_proto::record::Record;
use ringback_proto::tool::{Tool, tools};
use ringback_proto::{Event, Result, StreamChunk, ToolRequest, ToolResponse};
use ringback_store::{ReadError, RowVisibility, Store, WriteOutcome};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::call::Edge;
use crate::handlers::{Facts, Native};
use crate::jobs::LiveJob;
use crate::lines::Lines;
use crate::rooms::{Rooms, visible};

/// The context of a tool that answers immediately: nothing in it can wait.
#[derive(Debug, Clone, Copy)]
pub struct SyncContext<'a> {
    pub(crate) now: Now,
    pub(crate) principal: &'a Principal,
    pub(crate) facts: &'a Facts,
    pub(crate) lines: &'a Lines,
}

/// Runs a `Sync` tool: a plain function, so it cannot wait.
pub trait SyncHandler<T: Tool> {
    /// Answers immediately.
    ///
    /// # Errors
    /// When the caller made a mistake.
    fn handle(ctx: &SyncContext<'_>, request: T::Request) -> Result<T::Response>;
}

/// Runs a tool that may wait.
pub trait Handler<T: Tool> {
    /// Answers when the work is done. Dropping the future stops the work, except what it handed to
    /// `Context::blocking`, which is signalled by its flag and waited for.
    ///
    /// # Errors
    /// When the work fails; the error says whether the tool ran.
    fn handle(
        ctx: Context,
        request: T::Request,
    ) -> impl Future<Output = Result<T::Response>> + Send;
}

/// The context of a tool that may wait.
#[derive(Debug, Clone)]
pub struct Context {
    pub(crate) rooms: Arc<Rooms>,
    pub(crate) principal: Arc<Principal>,
    /// The name of the tool.
    pub(crate) tool: &'static str,
    /// The job that this work belongs to, if any.
    pub(crate) job: Option<Arc<LiveJob>>,
    /// The edge that the answer goes through, if it goes out immediately.
    pub(crate) edge: Option<Edge>,
    /// Cancelled when the work is to stop.
    pub(crate) stop: CancellationToken,
}

impl Context {
    pub(crate) fn now(&self) -> Now {
        self.rooms.kernel.now()
    }

    /// Returns the id of the job that this work belongs to, if any.
    pub(crate) fn job_id(&self) -> Option<JobId> {
        self.job.as_ref().map(|job| job.id)
    }

    pub(crate) fn sight(&self) -> Visibility {
        policy::sight(&self.principal)
    }

    /// Returns where this work comes from. That of a job was decided when it was accepted.
    pub(crate) fn provenance(&self) -> Provenance {
        match &self.job {
            Some(job) => job.provenance,
            None => self.rooms.provenance(&self.principal),
        }
    }

    pub(crate) fn visible(&self) -> RowVisibility {
        visible(self.sight())
    }

    pub(crate) async fn commit(&self, records: Vec<Record>) -> Result<Vec<WriteOutcome>> {
        self.rooms.kernel.commit(records).await
    }

    /// Writes records of a deletion, also on a full disk where possible.
    pub(crate) async fn commit_end(&self, records: Vec<Record>) -> Result<()> {
        self.rooms.kernel.commit_deletion(records).await
    }

    pub(crate) async fn read<T: Send + 'static>(
        &self,
        read: impl FnOnce(&Store) -> Result<T, ReadError> + Send + 'static,
    ) -> Result<T> {
        self.rooms.kernel.read(read).await
    }

    /// Runs a closure on a thread that may block. It should check the flag now and then: a job
    /// counts as stopped only when this has returned.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CancellationToken) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let stop = self.stop.clone();
        match &self.job {
            None => self.rooms.kernel.blocking(move || work(&stop)).await,
            Some(job) => self.rooms.kernel.blocking.run(&job.blocking, move || work(&stop)).await,
        }
    }

    /// Runs a closure that continues when the work is dropped. It has to check the flag: a job
    /// counts as stopped only when this has ended.
    pub(crate) fn finishing<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        match &self.job {
            None => self.rooms.kernel.tasks.spawn(work),
            Some(job) => job.blocking.spawn(work),
        }
    }

    /// Reports progress, or sends a part of the result.
    pub(crate) async fn send(&self, chunk: StreamChunk) {
        if let Some(job) = &self.job {
            self.rooms.jobs.send_chunk(job, chunk).await;
        }
    }

    pub(crate) fn publish(&self, event: Event) {
        let project = self.provenance().project;
        self.rooms.kernel.publish(event, self.principal.id, project);
    }
}

/// The work of a tool that may wait.
pub(crate) type ToolFuture = Pin<Box<dyn Future<Output = Result<ToolResponse>> + Send>>;

macro_rules! dispatch {
    ($(
        $variant:ident($request:ident) -> $response:ident {
            name: $name:literal,
            timing: $timing:ident,
            job: $job:literal,
            level: $level:ident,
            audit: $audit:ident,
            $(service: $service:path,)?
            about: $about:literal,
        }
    )*) => {
        /// Answers a `Sync` tool immediately; returns any other request.
        #[expect(clippy::result_large_err, reason = "the request is passed on; it is not an error")]
        pub(crate) fn answer(
            ctx: &SyncContext<'_>,
            request: ToolRequest,
        ) -> Result<Result<ToolResponse>, ToolRequest> {
            match request {
                $(ToolRequest::$variant(request) => answer_as!($timing, $variant, ctx, request),)*
            }
        }

        /// Returns the work of a tool, which may wait.
        pub(crate) fn work(ctx: Context, request: ToolRequest) -> ToolFuture {
            match request {
                $(ToolRequest::$variant(request) => work_as!($timing, $variant, ctx, request),)*
            }
        }
    };
}

macro_rules! answer_as {
    (Sync, $variant:ident, $ctx:ident, $request:ident) => {
        Ok(<Native as SyncHandler<tools::$variant>>::handle($ctx, $request).map(Into::into))
    };
    ($timing:ident, $variant:ident, $ctx:ident, $request:ident) => {
        Err(ToolRequest::$variant($request))
    };
}

macro_rules! work_as {
    (Sync, $variant:ident, $ctx:ident, $request:ident) => {{
        let ctx = SyncContext {
            now: $ctx.now(),
            principal: &$ctx.principal,
            facts: &$ctx.rooms.facts,
            lines: &$ctx.rooms.lines,
        };
        let answered = <Native as SyncHandler<tools::$variant>>::handle(&ctx, $request);
        Box::pin(std::future::ready(answered.map(Into::into)))
    }};
    ($timing:ident, $variant:ident, $ctx:ident, $request:ident) => {
        Box::pin(async move {
            <Native as Handler<tools::$variant>>::handle($ctx, $request).await.map(Into::into)
        })
    };
}

ringback_proto::tool_table!(dispatch);
