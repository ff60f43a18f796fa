//! The task that owns a worker's socket: receives calls, starts work, sends replies.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ringback_proto::frame::{Body, Command, Frame, FrameError, Text};
use ringback_proto::ids::{RequestId, StreamId};
use ringback_proto::msgpack::{self, TopLevel};
use ringback_proto::ready::Ready;
use ringback_proto::{Certainty, Error, ErrorKind, ResponseEnvelope};
use serde::Deserialize;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::{self, JoinError, JoinSet};
use tokio::time::{Interval, MissedTickBehavior};
use tokio_util::sync::CancellationToken;

use super::Serving;
use super::tools::{WorkerCall, WorkerTools, outcome};
use crate::config::Config;
use crate::heartbeat::{Beat, Heartbeat};
use crate::transport::{Dealer, Link, LinkEvent, Unsent};

/// Chunks that wait for the socket; senders of more wait.
const OUTBOX: usize = 64;

pub(super) struct WorkerTask {
    tools: Arc<WorkerTools>,
    dealer: Dealer,
    link: Link,
    connection_id: Option<u64>,
    state: watch::Sender<Serving>,
    closing: mpsc::Receiver<oneshot::Sender<()>>,
    /// The Ready frame that is not answered yet.
    asked: Option<RequestId>,
    calls: HashMap<RequestId, CancellationToken>,
    calls_max: usize,
    running: JoinSet<Frame>,
    /// The request of each task, in case it panics.
    by_task: HashMap<task::Id, RequestId>,
    places: Arc<Semaphore>,
    to_outbox: mpsc::Sender<Frame>,
    outbox: mpsc::Receiver<Frame>,
    unsent: VecDeque<Unsent>,
    heartbeat: Heartbeat,
    interval: Duration,
}

/// Whether the task continues, or ends and notifies a waiter.
type Flow = ControlFlow<Option<oneshot::Sender<()>>>;

/// The fields of a Request beside its arguments.
#[derive(Deserialize)]
struct Asked {
    tool: String,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    deadline_ms: u64,
}

impl WorkerTask {
    pub(super) fn new(
        config: &Config,
        tools: Arc<WorkerTools>,
        dealer: Dealer,
        link: Link,
        connection_id: u64,
        state: watch::Sender<Serving>,
        closing: mpsc::Receiver<oneshot::Sender<()>>,
    ) -> Self {
        let (to_outbox, outbox) = mpsc::channel(OUTBOX);
        Self {
            places: Arc::new(Semaphore::new(tools.calls_max())),
            tools,
            dealer,
            link,
            connection_id: Some(connection_id),
            state,
            closing,
            asked: None,
            calls: HashMap::new(),
            calls_max: config.calls_max,
            running: JoinSet::new(),
            by_task: HashMap::new(),
            to_outbox,
            outbox,
            unsent: VecDeque::new(),
            heartbeat: Heartbeat::new(config.heartbeat_misses_max),
            interval: config.heartbeat_interval,
        }
    }

    /// Runs until it is closed or the worker is dropped.
    pub(super) async fn run(mut self) {
        let mut ticks = ticks(self.interval);
        self.offer();
        let done = loop {
            let flow = tokio::select! {
                biased;
                done = self.closing.recv() => self.on_close(done),
                event = self.link.changed() => self.on_link(event).await,
                _ = ticks.tick() => self.on_interval().await,
                () = self.dealer.writable(), if !self.unsent.is_empty() => self.flush(),
                Some(ended) = self.running.join_next_with_id() => self.on_ended(ended),
                Some(chunk) = self.outbox.recv(), if self.unsent.is_empty() => self.on_chunk(chunk),
                received = self.dealer.recv() => self.on_received(received),
            };
            if let ControlFlow::Break(done) = flow {
                break done;
            }
        };
        self.stop_all();
        self.dealer.close().await;
        // The closing side waits for this.
        drop(done);
    }

    fn on_close(&mut self, done: Option<oneshot::Sender<()>>) -> Flow {
        self.send(Frame::new(Command::Disconnect, RequestId::random(), Body::Empty));
        ControlFlow::Break(done)
    }

    async fn on_link(&mut self, event: LinkEvent) -> Flow {
        match event {
            LinkEvent::Up { connection_id } => self.link_up(connection_id),
            LinkEvent::Down { reason } => self.link_down(&reason),
            LinkEvent::Refused { reason } => {
                self.link_down(&reason);
                let error = Error::new(ErrorKind::Unauthenticated, reason);
                self.state.send_replace(Serving::Refused(error));
            }
            LinkEvent::Unclear => {
                self.link_down("its events arrived too fast");
                if let Some(connection_id) = self.dealer.connection().await {
                    self.link_up(connection_id);
                }
            }
            LinkEvent::Closed => return ControlFlow::Break(None),
        }
        ControlFlow::Continue(())
    }

    fn link_up(&mut self, connection_id: u64) {
        self.connection_id = Some(connection_id);
        self.heartbeat.heard();
        self.offer();
    }

    /// Drops the calls of this connection: the daemon has given them up and wants no answers.
    fn link_down(&mut self, reason: &str) {
        tracing::debug!(reason, "the worker's connection to the daemon is lost");
        self.connection_id = None;
        self.asked = None;
        self.unsent.clear();
        self.stop_all();
        self.state.send_replace(Serving::Down);
    }

    fn stop_all(&mut self) {
        for (_, cancelled) in self.calls.drain() {
            cancelled.cancel();
        }
    }

    fn offer(&mut self) {
        let ready = Ready {
            protocol: "HOOT01".to_owned(),
            tools: self.tools.offered().to_vec(),
            accepts_binary: false,
        };
        let body = rmp_serde::to_vec_named(&ready).expect("tools can be encoded");
        let request_id = RequestId::random();
        let service = Text::try_from(self.tools.service()).unwrap_or_default();
        self.asked = Some(request_id);
        let body = Body::MsgPack(body.into());
        self.send(Frame { service, ..Frame::new(Command::Ready, request_id, body) });
    }

    async fn on_interval(&mut self) -> Flow {
        if let Some(connection_id) = self.connection_id {
            match self.heartbeat.interval_over() {
                Beat::Send => {
                    self.send(Frame::new(Command::Heartbeat, RequestId::random(), Body::Empty));
                }
                Beat::Dead => {
                    self.link_down("no heartbeat received");
                    self.dealer.drop_connection(connection_id).await;
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn on_received(&mut self, received: Option<Result<Frame, FrameError>>) -> Flow {
        let Some(received) = received else {
            return ControlFlow::Break(None);
        };
        self.heartbeat.heard();
        match received {
            Ok(frame) => self.on_frame(&frame),
            Err(error) => tracing::debug!(%error, "ignoring a message that is not a frame"),
        }
        ControlFlow::Continue(())
    }

    fn on_frame(&mut self, frame: &Frame) {
        match frame.command {
            Command::Request => {
                if let Err(error) = self.begin(frame) {
                    self.send(outcome(frame.request_id, Err(error)));
                }
            }
            Command::Cancel => {
                if let Some(cancelled) = self.calls.remove(&frame.request_id) {
                    cancelled.cancel();
                }
            }
            Command::Reply if self.asked == Some(frame.request_id) => self.on_answer(frame),
            Command::Reply
            | Command::Heartbeat
            | Command::Ready
            | Command::Disconnect
            | Command::Credit => {}
        }
    }

    /// Handles the daemon's answer to the offered tools.
    fn on_answer(&mut self, frame: &Frame) {
        self.asked = None;
        let answer = match &frame.body {
            Body::MsgPack(body) => ResponseEnvelope::decode(body),
            Body::Empty | Body::RawBinary { .. } | Body::Credit(_) => {
                Err(Error::invalid("the answer to Ready has no envelope"))
            }
        };
        let serving = match answer {
            Ok(ResponseEnvelope::Error(error)) => Serving::Refused(error.into()),
            Err(error) => Serving::Refused(error),
            Ok(_) => Serving::Yes,
        };
        self.state.send_replace(serving);
    }

    fn begin(&mut self, frame: &Frame) -> Result<(), Error> {
        if self.calls.len() >= self.calls_max {
            return Err(Error::busy("the worker's list of calls"));
        }
        let request_id = frame.request_id;
        let (asked, arguments) = read(frame)?;
        let cancelled = CancellationToken::new();
        let call = WorkerCall {
            request_id,
            stream_id: StreamId::from_random(*RequestId::random().as_bytes()),
            arguments,
            session_id: asked.session_id,
            deadline: Duration::from_millis(asked.deadline_ms),
            cancelled: cancelled.clone(),
            outbox: self.to_outbox.clone(),
        };
        let (tools, places) = (Arc::clone(&self.tools), Arc::clone(&self.places));
        let stopped = cancelled.clone();
        let running = self.running.spawn(async move {
            let stop = Error::cancelled("at the caller's request");
            let place = tokio::select! {
                biased;
                () = stopped.cancelled() => return outcome(request_id, Err(stop)),
                place = places.acquire() => place,
            };
            let done = match tools.work(&asked.tool, call) {
                Some(work) => work.await,
                None => Err(Error::not_found("tool", &asked.tool)),
            };
            drop(place);
            outcome(request_id, done)
        });
        self.by_task.insert(running.id(), request_id);
        self.calls.insert(request_id, cancelled);
        Ok(())
    }

    /// Answers, unless the answer is no longer wanted.
    fn on_ended(&mut self, ended: Result<(task::Id, Frame), JoinError>) -> Flow {
        let (task_id, reply) = match ended {
            Ok((task_id, reply)) => (task_id, Some(reply)),
            Err(error) => (error.id(), None),
        };
        let request_id = self.by_task.remove(&task_id);
        if let Some(request_id) = request_id
            && self.calls.remove(&request_id).is_some()
        {
            let panicked = || {
                let error = Error::new(ErrorKind::ToolFailed, "the worker's handler panicked");
                outcome(request_id, Err(error.with_certainty(Certainty::MayHaveRun)))
            };
            // After its own chunks.
            while let Ok(chunk) = self.outbox.try_recv() {
                self.send(chunk);
            }
            self.send(reply.unwrap_or_else(panicked));
        }
        ControlFlow::Continue(())
    }

    fn on_chunk(&mut self, chunk: Frame) -> Flow {
        if self.calls.contains_key(&chunk.request_id) {
            self.send(chunk);
        }
        ControlFlow::Continue(())
    }

    fn send(&mut self, frame: Frame) {
        if self.connection_id.is_some() {
            self.unsent.push_back(Dealer::pack(frame));
            drop(self.flush());
        }
    }

    fn flush(&mut self) -> Flow {
        while let Some(unsent) = self.unsent.pop_front() {
            if let Err(unsent) = self.dealer.try_send(unsent) {
                self.unsent.push_front(unsent);
                break;
            }
        }
        ControlFlow::Continue(())
    }
}

/// Reads a Request, and its arguments as received.
fn read(frame: &Frame) -> Result<(Asked, Bytes), Error> {
    let Body::MsgPack(body) = &frame.body else {
        return Err(Error::new(ErrorKind::UnsupportedContentType, "a Request must be MsgPack (1)"));
    };
    let TopLevel::Map(fields) = msgpack::open(body)? else {
        return Err(Error::invalid("a Request to a worker must be a map"));
    };
    let arguments = fields.get("arguments").map_or_else(Bytes::new, |bytes| body.slice_ref(bytes));
    let asked = rmp_serde::from_slice(body)
        .map_err(|error| Error::invalid(format!("the Request is malformed: {error}")))?;
    Ok((asked, arguments))
}

fn ticks(interval: Duration) -> Interval {
    let mut ticks = tokio::time::interval(interval);
    // After a pause on our side the other side must get its full interval again.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
