//! One life of the daemon, from its start to its crash or stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use ringback_broker::{
    Answer, Blocking, Broker, Call, CallControl, Clock, Config, ConfigView, Credential, Edge,
    Entropy, Environment, Replies, Subscription,
};
use ringback_proto::envelope::RequestEnvelope;
use ringback_proto::principal::{Principal, PrincipalId, Target};
use ringback_proto::value::Value;
use ringback_proto::{Event, ResponseEnvelope, ToolCall, ToolRequest, ToolResponse};
use ringback_store::Store;
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::disk::{Disk, Faults};
use super::ops::{CALLERS, RandomCall, content, reply, token};
use super::recorder::Recorder;
use super::{Caller, World, callers, parties};
use crate::history::{Announcement, CallNo, EventContent, HistoryEvent};

/// Far longer than any call may take.
const ANSWERS_WITHIN: Duration = Duration::from_secs(600);
/// Far longer than all jobs together may take.
const JOBS_END_WITHIN: Duration = Duration::from_secs(1200);
/// After this all calls are forgotten: their window, and a round of housekeeping.
pub(super) const FORGOTTEN_AFTER: Duration = Duration::from_secs(11 * 60 + 31);

/// The caller that owns the lines: its token does not expire.
const LINE_HOLDER: usize = 1;

/// How a life ended.
#[derive(Debug, Clone, Copy)]
pub(super) enum LifeEnd {
    Crashed,
    Stopped,
}

#[derive(Debug)]
struct NoConfig;

impl ConfigView for NoConfig {
    fn get(&self, _: Option<&str>, _: Option<&str>) -> Option<Value> {
        None
    }
}

impl World {
    /// Runs one life. Every task, timer and pending reply ends with the runtime.
    pub(super) fn live(&mut self, faults: Faults, is_last: bool) -> LifeEnd {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
        runtime.expect("a runtime can be built").block_on(self.lived(faults, is_last))
    }

    async fn lived(&mut self, faults: Faults, is_last: bool) -> LifeEnd {
        self.recorder.begin_life();
        let opened = Store::open_by_hand(&self.dir);
        let (store, hand) = opened.expect("the store opens after every life");
        let (crashed, is_set_up) = (CancellationToken::new(), Arc::new(AtomicBool::new(false)));
        let mut background = JoinSet::new();
        background.spawn(
            Disk {
                hand,
                faults,
                rng: StdRng::seed_from_u64(self.rng.random()),
                recorder: self.recorder.clone(),
                is_set_up: Arc::clone(&is_set_up),
                crashed: crashed.clone(),
            }
            .run(),
        );
        is_set_up.store(self.callers.len() > 1, Ordering::Relaxed);
        let outside = Environment {
            store,
            clock: Clock::simulated(self.recorder.base()),
            entropy: Entropy::seeded(self.rng.random()),
            blocking: Blocking::Simulated,
        };
        let work = async {
            let Ok(broker) = Broker::start_in(self.config(), outside).await else {
                return self.note(HistoryEvent::FailedToStart);
            };
            self.note(HistoryEvent::Started);
            background.spawn(listen(broker.subscribe(), self.recorder.clone()));
            if self.callers.len() == 1 {
                self.set_up(&broker).await;
            }
            is_set_up.store(true, Ordering::Relaxed);
            self.work(&broker, is_last).await;
        };
        tokio::select! {
            biased;
            () = crashed.cancelled() => LifeEnd::Crashed,
            () = work => LifeEnd::Stopped,
        }
    }

    /// Makes calls, then stops in order.
    async fn work(&mut self, broker: &Broker, is_last: bool) {
        let (mut calls, mut held) = (JoinSet::new(), JoinSet::new());
        let end_lines = CancellationToken::new();
        if let Some(owner) = self.credential(broker, LINE_HOLDER) {
            let rng = || StdRng::seed_from_u64(self.rng.random());
            parties::start(&mut held, broker, &owner, &self.recorder, &end_lines, rng);
            let rng = || StdRng::seed_from_u64(self.rng.random());
            callers::start(&mut held, broker, &owner, &self.recorder, &end_lines, rng);
        }
        for _ in 0..self.rng.random_range(20..150) {
            self.call(broker, &mut calls);
            let pause = self.draw_pause();
            tokio::time::sleep(pause).await;
        }
        let grace = if is_last {
            self.settle(broker, &mut calls, &end_lines).await;
            Duration::ZERO
        } else {
            Duration::from_millis(self.rng.random_range(0..2000))
        };
        broker.stop(grace).await;
        self.note(HistoryEvent::Stopped);
    }

    /// Makes no more calls and causes no more faults: everything must finish.
    async fn settle(
        &self,
        broker: &Broker,
        calls: &mut JoinSet<()>,
        end_lines: &CancellationToken,
    ) {
        let answered = async { while calls.join_next().await.is_some() {} };
        // A call that is not answered by then is recorded without its last reply.
        drop(tokio::time::timeout(ANSWERS_WITHIN, answered).await);
        end_lines.cancel();
        let ended = async {
            while broker.under_way().n_jobs > 0 {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        };
        drop(tokio::time::timeout(JOBS_END_WITHIN, ended).await);
        tokio::time::sleep(FORGOTTEN_AFTER).await;
        self.recorder.note_under_way(broker.under_way());
    }

    fn call(&mut self, broker: &Broker, calls: &mut JoinSet<()>) {
        let RandomCall { called, edge, options, cancel_after, leave_after } = self.draw();
        let request = self.request(&called.op, edge);
        let credential = self.credential(broker, called.who);
        let (call, who, request_id) = (called.call, called.who, called.request_id);
        let asked = callers::asked(&called.op);
        self.note(HistoryEvent::Called(Box::new(called)));
        let Some(credential) = credential else {
            let refused = ringback_proto::ErrorKind::Unauthenticated;
            let certainty = ringback_proto::Certainty::NotStarted;
            let refused = crate::history::Reply::Failed(refused, certainty);
            return self.note(HistoryEvent::Replied(call, refused));
        };
        let answer = match (asked, request) {
            (Some(session), ToolCall::Named { arguments, .. }) => {
                let principal = self.principal(who);
                broker.callers().call(callers::ask(principal, session, arguments, options, edge))
            }
            (_, request) => {
                let envelope = RequestEnvelope { request, options };
                broker.call(Call { credential: &credential, edge, envelope, request_id })
            }
        };
        match answer {
            Answer::Now(envelope) => self.note(HistoryEvent::Replied(call, reply(envelope))),
            Answer::Later(replies, control) => {
                let follow =
                    ReplyReader { call, replies, control, recorder: self.recorder.clone() };
                calls.spawn(follow.run(cancel_after, leave_after));
            }
        }
    }

    /// Returns the owner of the session of a calling agent.
    fn principal(&self, who: usize) -> Arc<Principal> {
        Arc::new(match &self.callers[who].token {
            None => Principal::local(),
            Some((id, _)) => Principal {
                id: PrincipalId::Token(*id),
                level: CALLERS[who].0,
                target: Target::Everything,
                held_by: None,
            },
        })
    }

    /// A caller has no connection: it authenticates at every call.
    fn credential(&self, broker: &Broker, who: usize) -> Option<Credential> {
        match &self.callers[who].token {
            None => Some(Credential::local()),
            Some((_, secret)) => broker.authenticate(secret.expose()).ok(),
        }
    }

    /// Makes the callers, and gives each the content for artifacts.
    async fn set_up(&mut self, broker: &Broker) {
        let local = Credential::local();
        for (who, (level, expires_in)) in CALLERS.into_iter().enumerate() {
            if who > 0 {
                let request = token(format!("caller {who}"), level, expires_in);
                let made = answer(broker, &local, request.into()).await;
                let ToolResponse::TokenCreated(made) = made else {
                    unreachable!("a new daemon makes tokens")
                };
                self.callers.push(Caller { token: Some((made.token_id, made.token)) });
            }
            if level >= ringback_proto::principal::Level::Write {
                let credential = self.credential(broker, who).expect("a new token is valid");
                let stored = answer(broker, &credential, content().into()).await;
                if let ToolResponse::CasStored(stored) = stored {
                    self.content = stored.hash.expect("whole content has its hash");
                }
            }
        }
    }

    pub(super) fn config(&self) -> Config {
        Config {
            data_dir: self.dir.clone(),
            file_roots: Vec::new(),
            version: "simulated".to_owned(),
            view: Arc::new(NoConfig),
            calls_per_principal_max: 12,
            jobs_running_max: 3,
            jobs_live_max: 10,
            jobs_per_principal_max: 6,
            events_kept_max: 100_000,
            uploads_open_max: 4,
            upload_bytes_max: 1 << 20,
            call_ms_max: 120_000,
            lines: ringback_broker::LineSettings::default(),
            studio: Arc::new(ringback_broker::studio::NoStudio),
            garden: Arc::new(ringback_broker::NoGardenProcess),
            containers: ringback_broker::ContainerSettings::default(),
            sessions: ringback_broker::SessionSettings::in_dir(self.dir.join("run")),
        }
    }
}

/// A caller that waits for its replies.
struct ReplyReader {
    call: CallNo,
    replies: Replies,
    control: CallControl,
    recorder: Recorder,
}

impl ReplyReader {
    async fn run(mut self, cancel_after: Option<Duration>, leave_after: Option<Duration>) {
        let (leave, cancel) = (after(leave_after), after(cancel_after));
        tokio::pin!(leave, cancel);
        let mut is_cancelled = false;
        loop {
            tokio::select! {
                biased;
                () = &mut leave => return self.recorder.note(HistoryEvent::Left(self.call)),
                () = &mut cancel, if !is_cancelled => {
                    is_cancelled = true;
                    self.control.cancel();
                    self.recorder.note(HistoryEvent::Cancelled(self.call));
                }
                next = self.replies.next() => match next {
                    None => return,
                    Some(envelope) => self.recorder.note(HistoryEvent::Replied(self.call, reply(envelope))),
                },
            }
        }
    }
}

async fn after(pause: Option<Duration>) {
    match pause {
        None => std::future::pending().await,
        Some(pause) => tokio::time::sleep(pause).await,
    }
}

/// Records every published event.
async fn listen(mut subscription: Subscription, recorder: Recorder) {
    loop {
        for published in subscription.next(1000).await {
            let event = &published.event;
            recorder.note(HistoryEvent::Announced(Announcement {
                seq: event.seq,
                topic: event.event.topic(),
                topic_seq: event.topic_seq,
                owner: published.owner,
                owner_topic_seq: published.owner_topic_seq,
                news: match (&event.event, event.event.job_id()) {
                    (Event::JobStateChanged { job_id, state, .. }, _) => {
                        EventContent::State(*job_id, *state)
                    }
                    // A stream ends with its job, so its end is published after the job's.
                    (Event::StreamEnded { .. }, _) => EventContent::Other,
                    (_, Some(job_id)) => EventContent::Progress(job_id),
                    (_, None) => EventContent::Other,
                },
            }));
        }
    }
}

/// Returns the answer to a call of the set-up, which has no faults.
pub(super) async fn answer(
    broker: &Broker,
    credential: &Credential,
    request: ToolRequest,
) -> ToolResponse {
    let envelope = RequestEnvelope::plain(ToolCall::Native(request));
    let call = Call { credential, edge: Edge::Http, envelope, request_id: None };
    let envelope = match broker.call(call) {
        Answer::Now(envelope) => Some(envelope),
        Answer::Later(mut replies, _) => replies.next().await,
    };
    match envelope {
        Some(ResponseEnvelope::Success { response }) => response,
        other => unreachable!("the set-up succeeds: {other:?}"),
    }
}
