//! A peer that offers tools: calls go out to it as Requests, and its Replies come back.

mod open_calls;
mod reply;
mod task;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ringback_broker::{Broker, Credential, same_job};
use ringback_proto::any::Any;
use ringback_proto::frame::{Body, Command, Frame, Text};
use ringback_proto::ids::RequestId;
use ringback_proto::ready::OfferedTool;
use ringback_proto::{Result, StreamChunk};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::open_calls::{OpenCalls, Passing};
use self::reply::{WorkerReply, said};
use self::task::WorkerTask;
use crate::backlog::Room;
use crate::call::CallMessage;
use crate::transport::ConnectionId;
use crate::wire::ReplyAddress;

/// Lists of tools waiting to replace the current one.
const OFFERS_MAX: usize = 4;
/// A quarter of what flows without credit, so that the flow does not pause.
const CREDIT_STEP: u64 = 256 << 10;

/// A peer that offers tools. Dropping it closes its line: the calls it was given fail as `gone`, or
/// move.
#[derive(Debug)]
pub(crate) struct Worker {
    service: Text,
    offers: mpsc::Sender<Offer>,
    given: OpenCalls,
    link: Link,
    reply_to: Arc<ReplyAddress>,
    tasks: JoinSet<()>,
    heard_at: Instant,
}

/// Tools to offer, and the destination of the answer.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) tools: Vec<OfferedTool>,
    pub(crate) reply_to: ReplyAddress,
}

/// Whether an offer was accepted.
#[derive(Debug)]
pub(crate) enum OfferResult {
    /// Accepted; it will be answered.
    Yes,
    /// Refused: the peer wants to serve another service.
    NotByThis(Offer),
    /// Too many offers are waiting.
    Busy(ReplyAddress),
}

/// How a worker's task reaches its peer.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) to: ConnectionId,
    pub(crate) room: Arc<Room>,
    /// A peer that reads nothing for this long while much waits for it is gone.
    pub(crate) patience: Duration,
    pub(crate) router: mpsc::Sender<CallMessage>,
}

impl Worker {
    /// Makes a peer a worker of a service once the broker agrees; the peer gets an answer either
    /// way.
    pub(crate) fn start(
        broker: Broker,
        credential: Credential,
        service: Text,
        first: Offer,
        link: Link,
        workers: &Handle,
        now: Instant,
    ) -> Self {
        let (offers, inbox) = mpsc::channel(OFFERS_MAX);
        let given = OpenCalls::default();
        let reply_to = Arc::new(first.reply_to.clone());
        let task =
            WorkerTask { broker, credential, link: link.clone(), given: given.clone(), inbox };
        let mut tasks = JoinSet::new();
        tasks.spawn_on(task.run(service.clone(), first), workers);
        Self { service, offers, given, link, reply_to, tasks, heard_at: now }
    }

    /// Records a sign of life: any message is one.
    pub(crate) const fn heard(&mut self, now: Instant) {
        self.heard_at = now;
    }

    /// Whether it has been silent for too long.
    pub(crate) fn is_silent(&self, now: Instant, patience: Duration) -> bool {
        now.saturating_duration_since(self.heard_at) > patience
    }

    /// Replaces the offered tools. Refused if it serves another service, or has stopped serving.
    pub(crate) fn offer(&self, service: &Text, offer: Offer) -> OfferResult {
        if self.service != *service {
            return OfferResult::NotByThis(offer);
        }
        match self.offers.try_send(offer) {
            Ok(()) => OfferResult::Yes,
            Err(mpsc::error::TrySendError::Full(offer)) => OfferResult::Busy(offer.reply_to),
            Err(mpsc::error::TrySendError::Closed(offer)) => OfferResult::NotByThis(offer),
        }
    }

    /// Handles a reply about a call that the peer was given. Replies about other calls change
    /// nothing. `Break` if the call failed because of it, so that the peer can stop.
    pub(crate) fn on_reply(
        &mut self,
        broker: &Broker,
        credential: &Credential,
        frame: &Frame,
        workers: &Handle,
    ) -> ControlFlow<()> {
        while self.tasks.try_join_next().is_some() {}
        let Some(said) = said(frame) else { return ControlFlow::Continue(()) };
        let request_id = frame.request_id;
        let is_open = self.given.lock().open.contains_key(&request_id);
        if !is_open {
            metrics::counter!("ringback_hoot_unexpected_total").increment(1);
            if let (Some(id), WorkerReply::End(outcome, _)) = (self.given.late(request_id), said) {
                // The broker records answers that come too late.
                tell(broker, credential, &id, outcome);
            }
            return ControlFlow::Continue(());
        }
        match said {
            WorkerReply::Chunk(chunk) => {
                self.on_chunk(broker, credential, request_id, chunk, workers)
            }
            WorkerReply::End(outcome, job_id) => {
                self.on_end(broker, credential, request_id, (outcome, job_id));
                ControlFlow::Continue(())
            }
        }
    }

    fn on_chunk(
        &mut self,
        broker: &Broker,
        credential: &Credential,
        request_id: RequestId,
        chunk: StreamChunk,
        workers: &Handle,
    ) -> ControlFlow<()> {
        let Some((id, inbox, passing)) = self.given.chunks(request_id) else {
            return ControlFlow::Continue(());
        };
        if let Some(passing) = passing {
            let (link, reply_to) = (self.link.clone(), Arc::clone(&self.reply_to));
            let credit = Credit { link, reply_to, request_id, owed: 0 };
            let (broker, credential) = (broker.clone(), credential.clone());
            let passing = pass_on(broker, credential, Arc::clone(&id), passing, credit);
            self.tasks.spawn_on(passing, workers);
        }
        match inbox.push(chunk) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                drop(self.given.take(request_id));
                tell(broker, credential, &id, Err(error));
                ControlFlow::Break(())
            }
        }
    }

    fn on_end(
        &self,
        broker: &Broker,
        credential: &Credential,
        request_id: RequestId,
        (outcome, job_id): (Result<Any>, Option<String>),
    ) {
        let Some(call) = self.given.take(request_id) else { return };
        let outcome = same_job(call.job_id, job_id.as_deref(), outcome);
        // After the chunks that preceded it.
        let rest = match call.chunks {
            None => Some(outcome),
            Some(chunks) => chunks.end(outcome),
        };
        if let Some(outcome) = rest {
            tell(broker, credential, &call.id, outcome);
        }
    }
}

/// The credit of a worker for the lossless chunks of one call.
struct Credit {
    link: Link,
    reply_to: Arc<ReplyAddress>,
    request_id: RequestId,
    /// Bytes passed on that it was not told of.
    owed: u64,
}

impl Credit {
    /// Grants what was passed on, once it is worth a frame. Returns whether the peer is still there.
    async fn passed_on(&mut self, n_bytes: u64) -> bool {
        self.owed += n_bytes;
        if self.owed < CREDIT_STEP {
            return true;
        }
        let body = Body::Credit(std::mem::take(&mut self.owed));
        let frame = Frame::new(Command::Credit, self.request_id, body);
        let (to, reply_to) = (self.link.to, Arc::clone(&self.reply_to));
        self.link.router.send(CallMessage::Reply { to, reply_to, frame }).await.is_ok()
    }
}

/// Passes on the chunks of one call at the pace of its caller, and then its end.
async fn pass_on(
    broker: Broker,
    credential: Credential,
    id: Arc<str>,
    passing: Passing,
    mut credit: Credit,
) {
    let Passing { inbox, end } = passing;
    while let Some(chunk) = inbox.next().await {
        let n_bytes = chunk.lossless_weight();
        match broker.lines().chunk_sink(&credential, &id) {
            Ok(sink) => sink.send(chunk).await,
            // No one waits for it any more; its worker has been notified.
            Err(_) => return,
        }
        if !credit.passed_on(n_bytes).await {
            return;
        }
    }
    if let Ok(outcome) = end.await {
        tell(&broker, &credential, &id, outcome);
    }
}

/// Reports to the broker how a call ended. That no one is waiting any more is not the worker's
/// fault.
fn tell(broker: &Broker, credential: &Credential, id: &str, outcome: Result<Any>) {
    if let Err(error) = broker.lines().answer(credential, id, outcome) {
        tracing::debug!(%error, "a worker's answer came too late");
    }
}
