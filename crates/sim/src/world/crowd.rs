//! Hundreds of sessions: each has a caller that comes and goes and agents that call it. All of it
//! is one life of the daemon on a paused clock, through the entry points that edges use.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_broker::{
    Answer, Blocking, Broker, CallControl, CallerStream, Clock, Credential, Edge, Entropy,
    Environment, LineCall, PartyMessage, Replies, StreamMode,
};
use ringback_proto::any::{Any, Format};
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::SessionId;
use ringback_proto::request::{CallerTool, SessionEndRequest, SessionOpenRequest};
use ringback_proto::{Error, ErrorKind, ResponseEnvelope, Result, ToolResponse};
use ringback_store::Store;
use ringback_sync::lock;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_util::sync::CancellationToken;

use super::disk::{Disk, Faults};
use super::life::{FORGOTTEN_AFTER, answer};
use super::ops::token;
use super::parties::{arguments, marker, payload};
use super::recorder::Recorder;
use super::{BEGINNING, World, directory};
use crate::crowd::{CallInput, Crowd, CrowdEvent, Outcome};

/// Owners of sessions; each has many.
const N_OWNERS: usize = 5;
/// Agents of one session.
const AGENTS: usize = 2;
/// Calls of one agent at most.
const ASKS_MAX: u64 = 12;
/// The name of every session's caller, and its tool.
const CALLER_ID: &str = "ant";
const TOOL: &str = "ask";
/// Agents get no outcome later than this.
const ANSWERS_WITHIN: Duration = Duration::from_secs(600);

/// Simulates one seed.
pub(crate) fn simulate(seed: u64, n_sessions: usize) -> Crowd {
    let guard = directory();
    let dir = camino::Utf8Path::from_path(guard.path()).expect("temporary paths are valid UTF-8");
    let mut world = World::new(seed, dir.join("data"));
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime can be built").block_on(lived(&mut world, n_sessions))
}

async fn lived(world: &mut World, n_sessions: usize) -> Crowd {
    let (store, hand) = Store::open_by_hand(&world.dir).expect("a new store opens");
    let mut background = JoinSet::new();
    background.spawn(
        Disk {
            hand,
            faults: Faults::none(),
            rng: StdRng::seed_from_u64(world.rng.random()),
            recorder: Recorder::new(BEGINNING),
            is_set_up: Arc::new(AtomicBool::new(false)),
            crashed: CancellationToken::new(),
        }
        .run(),
    );
    let outside = Environment {
        store,
        clock: Clock::simulated(BEGINNING),
        entropy: Entropy::seeded(world.rng.random()),
        blocking: Blocking::Simulated,
    };
    let mut config = world.config();
    config.calls_per_principal_max = 100_000;
    config.sessions.limits.live_max = u32::MAX;
    config.sessions.doors.url = Some("http://ringback".to_owned());
    let broker = Broker::start_in(config, outside).await.expect("a new daemon starts");
    let stage = Stage::new(broker.clone());
    let mut owners = Vec::new();
    for number in 0..N_OWNERS {
        owners.push(owner(&broker, number).await);
    }
    let (mut agents, mut callers) = (JoinSet::new(), JoinSet::new());
    let over = CancellationToken::new();
    for place in 0..n_sessions {
        let mut rng = || StdRng::seed_from_u64(world.rng.random());
        let (owner, stranger) = (&owners[place % N_OWNERS], &owners[(place + 1) % N_OWNERS]);
        let room = Arc::new(Room {
            stage: stage.clone(),
            place,
            owner: owner.clone(),
            stranger: stranger.clone(),
            session: Mutex::new(open(&broker, owner).await),
        });
        callers.spawn(Arc::clone(&room).host(rng(), over.clone()));
        for _ in 0..AGENTS {
            agents.spawn(Arc::clone(&room).guest(rng()));
        }
    }
    let all = async { while agents.join_next().await.is_some() {} };
    // A call without an outcome by then is recorded without one.
    drop(tokio::time::timeout(ANSWERS_WITHIN, all).await);
    over.cancel();
    while callers.join_next().await.is_some() {}
    sleep(FORGOTTEN_AFTER).await;
    let under_way = broker.under_way();
    broker.stop(Duration::ZERO).await;
    Crowd { entries: stage.entries(), under_way }
}

async fn owner(broker: &Broker, number: usize) -> Credential {
    let request = token(format!("owner {number}"), ringback_proto::principal::Level::Write, None);
    let made = answer(broker, &Credential::local(), request.into()).await;
    let ToolResponse::TokenCreated(made) = made else { unreachable!("a new daemon makes tokens") };
    broker.authenticate(made.token.expose()).expect("a new token is valid")
}

async fn open(broker: &Broker, owner: &Credential) -> SessionId {
    let request = SessionOpenRequest::default();
    let opened = answer(broker, owner, request.into()).await;
    let ToolResponse::SessionOpened(opened) = opened else {
        unreachable!("an undisturbed daemon opens sessions")
    };
    opened.session_id
}

/// Records everything.
#[derive(Clone)]
struct Stage {
    broker: Broker,
    began: Instant,
    n_asks: Arc<AtomicU64>,
    seen: Arc<Mutex<Vec<(u64, CrowdEvent)>>>,
}

impl Stage {
    fn new(broker: Broker) -> Self {
        Self { broker, began: Instant::now(), n_asks: Arc::default(), seen: Arc::default() }
    }

    fn note(&self, seen: CrowdEvent) {
        let at = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        lock(&self.seen).push((at, seen));
    }

    fn entries(&self) -> Vec<(u64, CrowdEvent)> {
        lock(&self.seen).clone()
    }
}

/// A place for consecutive sessions, with one caller and some agents.
struct Room {
    stage: Stage,
    place: usize,
    owner: Credential,
    stranger: Credential,
    session: Mutex<SessionId>,
}

async fn pause(rng: &mut StdRng, ms_max: u64) {
    sleep(Duration::from_millis(rng.random_range(0..ms_max))).await;
}

impl Room {
    fn session(&self) -> SessionId {
        *lock(&self.session)
    }

    /// Runs the caller: declares, subscribes or polls, leaves, withdraws its tools, ends the
    /// session.
    async fn host(self: Arc<Self>, mut rng: StdRng, over: CancellationToken) {
        let work = async {
            loop {
                pause(&mut rng, 3000).await;
                self.attend(&mut rng).await;
                match rng.random_range(0..12) {
                    0 => drop(self.declare(Vec::new())),
                    1 => self.begin_anew().await,
                    _ => {}
                }
            }
        };
        tokio::select! {
            biased;
            () = over.cancelled() => {}
            () = work => {}
        }
        self.end().await;
    }

    async fn begin_anew(&self) {
        self.end().await;
        let session = open(&self.stage.broker, &self.owner).await;
        *lock(&self.session) = session;
    }

    async fn end(&self) {
        self.stage.note(CrowdEvent::Ended { place: self.place });
        let request = SessionEndRequest { session_id: self.session() };
        answer(&self.stage.broker, &self.owner, request.into()).await;
    }

    fn declare(&self, tools: Vec<CallerTool>) -> Result<()> {
        let offers = tools.into_iter().map(|tool| ringback_broker::ToolOffer {
            name: tool.name,
            timeout_ms: tool.timeout_ms,
            ..ringback_broker::ToolOffer::default()
        });
        let (broker, session) = (&self.stage.broker, self.session());
        broker.callers().declare(&self.owner, session, CALLER_ID, offers.collect())
    }

    /// Takes calls for a while; pending ones are then cut off, or not.
    async fn attend(self: &Arc<Self>, rng: &mut StdRng) {
        let timeout_ms = Some(rng.random_range(500..8000));
        let tool = CallerTool {
            name: TOOL.to_owned(),
            description: None,
            input_schema: None,
            timeout_ms,
            allowed: false,
        };
        if self.declare(vec![tool]).is_err() {
            return;
        }
        let until = Instant::now() + Duration::from_millis(rng.random_range(0..15_000));
        let mut answers = JoinSet::new();
        let session = self.session();
        if rng.random_bool(0.4) {
            drop(timeout_at(until, self.poll(session, rng, &mut answers)).await);
        } else {
            let (broker, holding) = (&self.stage.broker, StreamMode::Lasting);
            if let Ok(stream) = broker.callers().open(&self.owner, session, None, holding) {
                drop(timeout_at(until, self.listen(stream, session, rng, &mut answers)).await);
            }
        }
        if rng.random_bool(0.5) {
            while answers.join_next().await.is_some() {}
        }
    }

    async fn listen(
        self: &Arc<Self>,
        mut stream: CallerStream,
        session: SessionId,
        rng: &mut StdRng,
        answers: &mut JoinSet<()>,
    ) {
        while let Some(post) = stream.next().await {
            match post {
                PartyMessage::Cancel { .. } => {}
                PartyMessage::Call(call) => self.take(call, session, rng, answers),
            }
        }
    }

    async fn poll(
        self: &Arc<Self>,
        session: SessionId,
        rng: &mut StdRng,
        answers: &mut JoinSet<()>,
    ) {
        loop {
            let wait = Duration::from_millis(rng.random_range(0..6000));
            let polled = self.stage.broker.callers().poll(&self.owner, session, None, wait).await;
            let Ok(calls) = polled else { return };
            for call in calls {
                self.take(call, session, rng, answers);
            }
            pause(rng, 4000).await;
        }
    }

    fn take(
        self: &Arc<Self>,
        call: Arc<LineCall>,
        session: SessionId,
        rng: &mut StdRng,
        answers: &mut JoinSet<()>,
    ) {
        assert_eq!(call.root_session(), Some(session), "a call of another session");
        self.stage.note(CrowdEvent::Took { ask: marker(&call.arguments), place: self.place });
        let (room, how) = (Arc::clone(self), rng.random_range(0..10));
        let after = Duration::from_millis(rng.random_range(0..6000));
        answers.spawn(async move {
            sleep(after).await;
            room.answers(&call, session, how);
        });
    }

    /// Answers correctly, twice, in another's name, for another session, with a failure, or never.
    fn answers(&self, call: &LineCall, session: SessionId, how: u8) {
        let ask = marker(&call.arguments);
        let id = &*call.request_id;
        match how {
            0 => {}
            1 => self.say(ask, id, &self.stranger, session, Some(0)),
            2 => {
                let other = SessionId::from_random([7; 16]);
                self.say(ask, id, &self.owner, other, Some(0));
            }
            3 => self.say(ask, id, &self.owner, session, None),
            4 => {
                self.say(ask, id, &self.owner, session, Some(ask));
                self.say(ask, id, &self.owner, session, Some(0));
            }
            _ => self.say(ask, id, &self.owner, session, Some(ask)),
        }
    }

    fn say(
        &self,
        ask: CallInput,
        id: &str,
        who: &Credential,
        session: SessionId,
        value: Option<u64>,
    ) {
        let outcome = value.map(|value| payload(value, Format::Json));
        let outcome = outcome.ok_or_else(|| Error::new(ErrorKind::ToolFailed, "the dice say no"));
        let taken = self.stage.broker.callers().answer(who, session, id, outcome).is_ok();
        let is_own = who.id() == self.owner.id() && session != SessionId::from_random([7; 16]);
        self.stage.note(CrowdEvent::Answered { ask, value, taken, is_own });
    }

    /// Runs an agent: calls, waits, cancels, leaves.
    async fn guest(self: Arc<Self>, mut rng: StdRng) {
        for _ in 0..rng.random_range(1..=ASKS_MAX) {
            pause(&mut rng, 6000).await;
            self.asks(&mut rng).await;
        }
    }

    async fn asks(&self, rng: &mut StdRng) {
        let (stage, place) = (&self.stage, self.place);
        let ask = stage.n_asks.fetch_add(1, Ordering::Relaxed) + 1;
        // The longest time its tool may take, whatever was declared.
        stage.note(CrowdEvent::Asked { ask, place, within_ms: 8000 });
        let options = CallOptions { stream: rng.random_bool(0.3), ..CallOptions::default() };
        let (tool, input): (_, Any) = (TOOL.to_owned(), arguments(ask, Format::Json));
        let (session, caller) = (self.session(), Some(CALLER_ID));
        match stage.broker.call_from_session(session, caller, tool, input, options, Edge::Relay) {
            Answer::Now(reply) => self.told(ask, reply),
            Answer::Later(replies, control) => self.waits(ask, replies, &control, rng).await,
        }
    }

    async fn waits(
        &self,
        ask: CallInput,
        mut replies: Replies,
        control: &CallControl,
        rng: &mut StdRng,
    ) {
        let at = Instant::now() + Duration::from_millis(rng.random_range(0..8000));
        let (leaves, cancels) = (rng.random_bool(0.1), rng.random_bool(0.1));
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                biased;
                reply = replies.next() => match reply {
                    None => return,
                    Some(reply) => self.told(ask, reply),
                },
                () = tokio::time::sleep_until(at), if leaves => {
                    return self.stage.note(CrowdEvent::Left(ask));
                }
                () = tokio::time::sleep_until(at), if cancels && !is_cancelled => {
                    is_cancelled = true;
                    self.stage.note(CrowdEvent::Cancelled(ask));
                    control.cancel();
                }
            }
        }
    }

    fn told(&self, ask: CallInput, reply: ResponseEnvelope) {
        let outcome = match reply {
            ResponseEnvelope::Success { response: ToolResponse::Passed(passed) }
            | ResponseEnvelope::StreamEnd {
                final_response: Some(ToolResponse::Passed(passed)),
                ..
            } => Outcome::Result(marker(&passed)),
            ResponseEnvelope::Error(error) => {
                let error = Error::from(error);
                Outcome::Failed(error.kind(), error.certainty())
            }
            ResponseEnvelope::StreamStart { .. } | ResponseEnvelope::StreamChunk { .. } => return,
            ResponseEnvelope::Success { .. }
            | ResponseEnvelope::StreamEnd { .. }
            | ResponseEnvelope::JobStarted { .. }
            | ResponseEnvelope::Ack { .. } => unreachable!("a caller tool answers with a value"),
        };
        self.stage.note(CrowdEvent::Told(ask, outcome));
    }
}
