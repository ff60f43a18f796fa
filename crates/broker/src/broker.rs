//! The entry point: from a call to its answer.

use std::sync::Arc;
use std::time::Duration;

use ringback_blobs::{Blobs, OpenBlobsError, Roots, RootsError, UploadLimits, Uploads};
use ringback_core::deadline::Deadline;
use ringback_core::jobs::StopReason;
use ringback_core::reply_mode::{ReplyMode, waiting};
use ringback_core::{Now, policy};
use ringback_proto::ids::CallId;
use ringback_proto::principal::{Principal, PrincipalId};
use ringback_proto::timing::ToolTiming;
use ringback_proto::tool::tools::GardenStatus;
use ringback_proto::tool::{Tool as _, ToolRow, find};
use ringback_proto::{Error, ResponseEnvelope, Result, ToolCall, ToolRequest};
use ringback_store::audit::AuditError;
use ringback_store::journal::{Journal, JournalError};
use ringback_store::{OpenStoreError, ReadError, Store};
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::audit::Auditor;
use crate::call::{Answer, Call, CallControl, CallStop};
use crate::config::Config;
use crate::disk::Space;
use crate::garden::Monitor;
use crate::handler::{self, SyncContext};
use crate::identity::Credential;
use crate::kernel::{
    Alarm, Blocking, Clock, Entropy, EventHub, Kernel, PendingRecords, Reserve, Subscription, Tasks,
};
use crate::lines::{CallContext, Callers, LineRequest, Lines};
use crate::native_call::NativeCall;
use crate::replies::{AnswerDeadline, FollowedJob, Pending, Replies, job_reply, reply};
use crate::rooms::LoadedState;
use crate::rooms::Rooms;
use crate::stream::Stream;
use crate::{failure, native_call, upkeep};

/// A tool without a job reads or writes the store, or waits as long as `job_poll` and `event_poll`
/// may; twice that is plenty.
const PLAIN_CALL_MS_MAX: u64 = 60_000;
/// A command waits for the start of the process that executes it, and then for a second.
const COMMAND_MS_MAX: u64 = 10_000;

/// The reason why the broker did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The records cannot be opened.
    #[error(transparent)]
    Store(#[from] OpenStoreError),
    /// The records cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The content store cannot be opened.
    #[error(transparent)]
    Blobs(#[from] OpenBlobsError),
    /// A directory of `files.roots` cannot be opened.
    #[error(transparent)]
    Roots(#[from] RootsError),
    /// The audit cannot be opened.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The journals of sessions cannot be opened.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The unfinished work of the last run cannot be resumed.
    #[error("cannot resume the unfinished work of the last run")]
    Restore(#[source] Error),
}

/// The broker's environment: the machine, or a simulation of it.
#[derive(Debug)]
pub struct Environment {
    /// The records of the data directory.
    pub store: Store,
    /// The clock.
    pub clock: Clock,
    /// The source of random bytes.
    pub entropy: Entropy,
    /// Where blocking work runs.
    pub blocking: Blocking,
}

/// The sizes of the broker's tables; all are zero when the broker is idle.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableSizes {
    /// Calls in progress.
    pub n_calls: usize,
    /// Jobs that have not ended.
    pub n_jobs: usize,
    /// Calls remembered to recognise repeats.
    pub n_repeats: usize,
    /// Lines, their open streams, and calls on them.
    pub lines: (usize, usize, usize),
    /// Sessions that have not ended.
    pub n_sessions: usize,
    /// Bytes of session events held in memory.
    pub n_event_bytes: usize,
}

/// Whether the broker has anything to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Activity {
    /// Whether a session, a job, a call, a container or a line exists. Questions are of sessions.
    pub is_busy: bool,
    /// The calls since the start. Two looks with the same number saw everything in between.
    pub n_calls_begun: u64,
}

impl Activity {
    /// Returns whether a broker has anything to do now.
    #[must_use]
    pub fn of(broker: &Broker) -> Self {
        let TableSizes { n_calls, n_jobs, lines: (n_lines, n_streams, _), n_sessions, .. } =
            broker.under_way();
        let n_containers = broker.0.containers.n_live();
        Self {
            is_busy: n_calls + n_jobs + n_lines + n_streams + n_sessions + n_containers > 0,
            n_calls_begun: broker.0.calls.n_begun(),
        }
    }
}

/// The broker. A clone is another handle to the same broker.
#[derive(Debug, Clone)]
pub struct Broker(pub(crate) Arc<Rooms>);

impl Broker {
    /// Opens the records of the data directory, which belong to this process alone from now on.
    /// Other things needed for the start can be opened before the broker is.
    ///
    /// # Errors
    /// When they cannot be opened, most often because another daemon uses them.
    pub fn open(config: &Config) -> Result<Store, StartError> {
        make_room(config);
        Ok(Store::open(&config.data_dir)?)
    }

    /// Opens the data directory and resumes the unfinished work of the last run.
    ///
    /// # Errors
    /// When something cannot be opened; the error says what, and what to do.
    pub async fn start(config: Config, clock: Clock, entropy: Entropy) -> Result<Self, StartError> {
        let store = Self::open(&config)?;
        let blocking = Blocking::Threads;
        Self::start_in(config, Environment { store, clock, entropy, blocking }).await
    }

    /// Like [`Broker::start`], in an environment that the caller chooses.
    ///
    /// # Errors
    /// When something cannot be opened; the error says what, and what to do.
    pub async fn start_in(config: Config, environment: Environment) -> Result<Self, StartError> {
        let Environment { store, clock, entropy, blocking } = environment;
        let blobs = Blobs::open(&config.data_dir.join(ringback_blobs::DIR))?;
        let roots = Roots::open(config.file_roots.iter().map(AsRef::as_ref))?;
        let auditor = Auditor::open(&config.data_dir)?;
        let tokens = store.tokens()?;
        let unfinished = store.unfinished_jobs()?;
        let journal = Journal::open(&config.data_dir)?;
        let left = store.live_sessions()?;
        let uploads = Uploads::new(
            blobs.clone(),
            UploadLimits {
                open_max: config.uploads_open_max,
                bytes_max: config.upload_bytes_max,
                ..UploadLimits::default()
            },
        );
        let kernel = Kernel {
            events: Arc::new(EventHub::new(clock.now().unix, config.events_kept_max)),
            alarm: Alarm::new(),
            reserve: Reserve::new(&config.data_dir, config.sessions.disk.reserve_bytes),
            pending_records: PendingRecords::default(),
            disk_full: Notify::new(),
            tasks: Tasks::here(),
            stopping: CancellationToken::new(),
            config,
            clock,
            blocking,
            entropy,
            store,
            blobs,
            uploads,
            roots,
            auditor,
        };
        let rooms = Rooms::build(kernel, LoadedState { tokens, journal });
        rooms.jobs.restore(unfinished).await.map_err(StartError::Restore)?;
        rooms.sessions.restore_sessions(left).await.map_err(StartError::Restore)?;
        rooms.sandboxes.end_leftover_agents().await;
        rooms.offers.remove_leftover_servers().await;
        upkeep::start(&rooms);
        Ok(Self(rooms))
    }

    /// Returns the credential for a token's secret.
    ///
    /// # Errors
    /// `unauthenticated` when no valid token matches.
    pub fn authenticate(&self, secret: &str) -> Result<Credential> {
        self.0.identity.tokens.authenticate(secret, self.0.kernel.now())
    }

    /// Returns the credential of the token whose bytes are the secret key for a public key, for
    /// handshakes that prove possession that way.
    ///
    /// # Errors
    /// `unauthenticated` when no valid token matches.
    pub fn authenticate_key(&self, public_key: &[u8; 32]) -> Result<Credential> {
        self.0.identity.tokens.authenticate_key(public_key, self.0.kernel.now())
    }

    /// Returns the credential of a token that an edge authenticated earlier, by its public id.
    /// `None` for anything else: a client cannot become local by claiming to be.
    #[must_use]
    pub fn credential(&self, id: PrincipalId) -> Option<Credential> {
        self.0.identity.tokens.credential(id)
    }

    /// Creates the first token of a new data directory, which may do everything. Returns `None` if
    /// tokens exist already.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub async fn first_token(&self) -> Result<Option<ringback_proto::secret::Secret>> {
        if !self.0.identity.tokens.list().is_empty() {
            return Ok(None);
        }
        let token = self.0.identity.create_token(crate::handlers::first_token()).await?;
        Ok(Some(token.token))
    }

    /// Returns the lines: offering tools, calling them and answering calls.
    #[must_use]
    pub fn lines(&self) -> &Arc<Lines> {
        &self.0.lines
    }

    /// Returns the tools that sessions' callers offer.
    #[must_use]
    pub fn callers(&self) -> &Callers {
        &self.0.callers
    }

    /// Subscribes to all events from now on.
    #[must_use]
    pub fn subscribe(&self) -> Subscription {
        self.0.kernel.events.subscribe()
    }

    /// Returns the current time of the broker's clock.
    #[must_use]
    pub fn now(&self) -> Now {
        self.0.kernel.now()
    }

    /// Returns whether the data directory is still where it was opened.
    #[must_use]
    pub fn is_data_dir_in_place(&self) -> bool {
        self.0.kernel.store.is_in_place()
    }

    /// Returns how many commits the store has made, and for how many requests.
    #[must_use]
    pub fn store_stats(&self) -> ringback_store::Stats {
        self.0.kernel.store.stats()
    }

    /// Returns the sizes of the tables.
    #[must_use]
    pub fn under_way(&self) -> TableSizes {
        TableSizes {
            n_calls: self.0.calls.len(),
            n_jobs: self.0.jobs.len(),
            n_repeats: self.0.calls.repeats.len(),
            lines: self.0.lines.counts(),
            n_sessions: self.0.register.n_live(),
            n_event_bytes: crate::sync::lock(&self.0.register.table).n_event_bytes(),
        }
    }

    /// Checks whether a principal may call a tool, by the tool's name alone. An edge asks before it
    /// reads the input, so that a caller learns nothing about the input of a tool it may not use.
    /// Whether the tool exists is left to the call.
    ///
    /// # Errors
    /// `unauthenticated` and `forbidden`, as for the call itself.
    pub fn may_call(&self, credential: &Credential, edge: crate::Edge, tool: &str) -> Result<()> {
        let now = self.0.kernel.now();
        let may = credential.principal(now).and_then(|principal| match find(tool) {
            Some(row) => policy::authorize(principal, row),
            None => self.0.lines.may_call(principal, tool),
        });
        may.inspect_err(|error| {
            let call_id = CallId::from_random(self.0.kernel.entropy.bytes());
            self.0.kernel.auditor.refused(now, credential, (edge, tool), call_id, error);
        })
    }

    /// Starts to listen to the garden, with the rights of `garden_status`.
    ///
    /// # Errors
    /// `unauthenticated` and `forbidden`; `busy` when all places are taken; `unavailable` while no
    /// garden runs.
    pub async fn monitor(&self, credential: &Credential, edge: crate::Edge) -> Result<Monitor> {
        self.may_call(credential, edge, GardenStatus::NAME)?;
        self.0.garden.listen(credential.id()).await
    }

    /// Takes a call. Refusals and `Sync` tools are answered immediately.
    #[must_use]
    pub fn call(&self, call: Call<'_>) -> Answer {
        let rooms = &self.0;
        let now = rooms.kernel.now();
        let edge = call.edge;
        let (principal, request) = match admit(&call, now) {
            Ok(admitted) => (Arc::clone(admitted), call.envelope.request),
            Err(error) => {
                let call_id = CallId::from_random(rooms.kernel.entropy.bytes());
                let what = (edge, call.envelope.request.name());
                rooms.kernel.auditor.refused(now, call.credential, what, call_id, &error);
                return Answer::Now(error.into());
            }
        };
        let request = match request {
            ToolCall::Native(request) => request,
            ToolCall::Named { name, arguments } => {
                return rooms.lines.call(LineRequest {
                    credential: call.credential,
                    edge,
                    tool: name,
                    arguments,
                    options: call.envelope.options,
                    request_id: call.request_id,
                    custom_id: None,
                    context: CallContext::default(),
                });
            }
        };
        let row = request.row();
        let ctx =
            SyncContext { now, principal: &principal, facts: &rooms.facts, lines: &rooms.lines };
        let request = match handler::answer(&ctx, request) {
            Ok(answered) => {
                rooms.kernel.auditor.counted(row, answered.is_ok());
                return Answer::Now(reply(answered));
            }
            Err(request) => request,
        };
        let native = NativeCall {
            id: CallId::from_random(rooms.kernel.entropy.bytes()),
            row,
            held: call.credential.session().map(|_| call.credential.clone()),
            principal,
            edge,
            deadline: Deadline::smallest(
                now,
                call.envelope.options.deadline_ms.map(std::num::NonZeroU64::get),
                own_limit(row),
                rooms.kernel.config.call_ms_max,
            ),
            request_id: call.request_id.filter(|_| row.recognises_repeats()),
            repeat: None,
            trace: tracing::Span::current(),
        };
        rooms.kernel.auditor.admitted(now, &native, call.request_id);
        let waiting = waiting(row.timing, &call.envelope.options, edge.habit());
        let later = if row.makes_job {
            Ok(self.start_job(native, request, waiting))
        } else {
            self.start_plain(native, request)
        };
        later.unwrap_or_else(|refused| {
            let (native, error) = *refused;
            rooms.kernel.auditor.each(now, &native, Some(&error), Instant::now());
            Answer::Now(error.into())
        })
    }

    /// Stops the broker: running jobs get `grace` to finish, then they are interrupted. Pending
    /// ones run after the next start.
    pub async fn stop(&self, grace: Duration) {
        let rooms = &self.0;
        rooms.sessions.interrupt_sessions().await;
        rooms.containers.end_containers().await;
        let live = rooms.jobs.close_jobs();
        let waited = tokio::time::timeout(grace, rooms.jobs.jobs_ended()).await;
        if waited.is_err() {
            tracing::warn!(jobs = live.len(), "interrupting jobs that did not end in time");
            for job in rooms.jobs.close_jobs() {
                if let Err(error) = rooms.jobs.stop_job(job, StopReason::Shutdown).await {
                    tracing::error!(%job, %error, "cannot stop a job");
                }
            }
        }
        rooms.kernel.stopping.cancel();
        rooms.kernel.tasks.end().await;
        rooms.identity.store_token_changes().await;
        let (store, auditor) = (rooms.kernel.store.clone(), rooms.kernel.auditor.clone());
        let closed = tokio::task::spawn_blocking(move || {
            auditor.close();
            store.close();
        });
        if let Err(error) = closed.await {
            tracing::error!(%error, "the store did not close cleanly");
        }
    }

    fn start_plain(
        &self,
        native: NativeCall,
        request: ToolRequest,
    ) -> Result<Answer, Box<(NativeCall, Error)>> {
        let rooms = Arc::clone(&self.0);
        let admitted = match rooms.calls.admit(native.id, native.principal.id, native.deadline) {
            Ok(admitted) => admitted,
            Err(error) => return Err(Box::new((native, error))),
        };
        let stop = Arc::clone(&admitted.stop);
        let control = CallControl { stop, stream: None };
        let finishes = native.row.recognises_repeats();
        let call = async move {
            let native = native.identified(&request);
            match native.repeat {
                Some(key) => native_call::once(&rooms, native, key, request, admitted).await,
                None => native_call::plain(&rooms, &native, request, &admitted).await,
            }
        };
        let call: Pending<_> = if finishes { self.finishing(call) } else { Box::pin(call) };
        Ok(Answer::Later(Replies::one(call), control))
    }

    fn start_job(&self, native: NativeCall, request: ToolRequest, waiting: ReplyMode) -> Answer {
        let (kernel, jobs) = (&self.0.kernel, Arc::clone(&self.0.jobs));
        let stop = Arc::new(CallStop::new(native.deadline.allowed_ms));
        let stream = (waiting == ReplyMode::Stream).then(Arc::<Stream>::default);
        let control = CallControl { stop: Arc::clone(&stop), stream: stream.clone() };
        let (row, began) = (native.row, Arc::clone(&jobs));
        let answer_by = AnswerDeadline::new(kernel, row, native.deadline);
        let job_stream = stream.clone();
        let start = self.finishing_with(async move {
            let native = native.identified(&request);
            began.begin_job(native, request, job_stream).await
        });
        let replies = match stream {
            Some(stream) => Replies::stream(Box::pin(async move {
                let job = answer_by.within(start).await??;
                Ok(FollowedJob { jobs, row, job, stream, stop, answer_by })
            })),
            None => Replies::one(Box::pin(async move {
                let answer = async {
                    match start.await {
                        Ok(job) => job_reply(&jobs, row, job, waiting, &stop).await,
                        Err(error) => error.into(),
                    }
                };
                answer_by.within(answer).await.unwrap_or_else(Into::into)
            })),
        };
        Answer::Later(replies, control)
    }

    /// Keeps running after the last waiter has left.
    fn finishing(
        &self,
        work: impl Future<Output = ResponseEnvelope> + Send + 'static,
    ) -> Pending<ResponseEnvelope> {
        let work = self.finishing_with(async move { Ok(work.await) });
        Box::pin(async move { work.await.unwrap_or_else(Into::into) })
    }

    fn finishing_with<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Pending<Result<T>> {
        let running = self.0.kernel.tasks.spawn(work);
        Box::pin(async move { running.await.unwrap_or_else(|error| Err(failure::internal(error))) })
    }
}

/// Returns how long a call of a tool may take at most, if its kind has a limit of its own.
fn own_limit(row: &ToolRow) -> Option<u64> {
    match row.timing {
        ToolTiming::FireAndForget => Some(COMMAND_MS_MAX),
        ToolTiming::Sync
        | ToolTiming::AsyncShort
        | ToolTiming::AsyncMedium
        | ToolTiming::AsyncLong => (!row.makes_job).then_some(PLAIN_CALL_MS_MAX),
    }
}

/// Releases the reserve if the disk is so full that the store might not open. It is taken again
/// when there is space.
fn make_room(config: &Config) {
    let disk = &config.sessions.disk;
    let reserve = Reserve::new(&config.data_dir, disk.reserve_bytes);
    let is_short = |space: Space| space.free < reserve.bytes();
    // A directory that does not exist yet has no reserve.
    if disk.disk.space(&config.data_dir).is_ok_and(is_short) {
        reserve.give_up();
    }
}

pub(crate) fn admit<'a>(call: &Call<'a>, now: Now) -> Result<&'a Arc<Principal>> {
    let principal = call.credential.principal(now)?;
    if let ToolCall::Native(request) = &call.envelope.request {
        policy::authorize(principal, request.row())?;
    }
    Ok(principal)
}
