//! The task that owns a worker's socket: receives calls, starts work, sends replies.

use std::collections::HashMap;
use std::future::pending;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ringback_proto::frame::{Body, Command, Frame, Text};
use ringback_proto::ids::{RequestId, StreamId};
use ringback_proto::msgpack::{self, TopLevel};
use ringback_proto::ready::Ready;
use ringback_proto::{Certainty, Error, ErrorKind, ResponseEnvelope};
use serde::Deserialize;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio::task::{self, JoinError, JoinSet};
use tokio_util::sync::CancellationToken;

use super::ServingState;
use super::credit::CallCredit;
use super::tools::{Asked, WorkerCall, WorkerTools};
use crate::config::Config;
use crate::link_loop::{LinkLoop, LoopEvent};
use crate::transport::LinkState;

/// Chunks that wait for the socket; senders of more wait.
const OUTBOX: usize = 64;

pub(super) struct WorkerTask {
    tools: Arc<WorkerTools>,
    link: LinkLoop,
    state: watch::Sender<ServingState>,
    closing: mpsc::Receiver<oneshot::Sender<()>>,
    /// The Ready frame that is not answered yet.
    asked: Option<RequestId>,
    calls: HashMap<RequestId, RunningCall>,
    calls_max: usize,
    running: JoinSet<Frame>,
    /// The request of each task, in case it panics.
    by_task: HashMap<task::Id, Asked>,
    /// Work to do before the tools are offered.
    preparing: JoinSet<()>,
    places: Arc<Semaphore>,
    to_outbox: mpsc::Sender<Frame>,
    outbox: mpsc::Receiver<Frame>,
}

/// What the daemon may say about a call while it runs.
struct RunningCall {
    cancelled: CancellationToken,
    credit: Arc<CallCredit>,
}

/// The worker's own work.
enum WorkerEvent {
    /// A call ended.
    Ended(Result<(task::Id, Frame), JoinError>),
    /// A running call sends a chunk.
    Chunk(Frame),
    /// The tools may be offered.
    Prepared,
}

/// Whether the task continues, or ends and notifies a waiter.
type Flow = ControlFlow<Option<oneshot::Sender<()>>>;

/// The fields of a Request beside its arguments.
#[derive(Deserialize)]
struct RequestFields {
    tool: String,
    #[serde(default)]
    job_id: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    deadline_ms: u64,
}

impl WorkerTask {
    pub(super) fn new(
        config: &Config,
        tools: Arc<WorkerTools>,
        link: LinkLoop,
        state: watch::Sender<ServingState>,
        closing: mpsc::Receiver<oneshot::Sender<()>>,
    ) -> Self {
        let (to_outbox, outbox) = mpsc::channel(OUTBOX);
        Self {
            places: Arc::new(Semaphore::new(tools.calls_max())),
            tools,
            link,
            state,
            closing,
            asked: None,
            calls: HashMap::new(),
            calls_max: config.calls_max,
            running: JoinSet::new(),
            by_task: HashMap::new(),
            preparing: JoinSet::new(),
            to_outbox,
            outbox,
        }
    }

    /// Runs until it is closed or the worker is dropped.
    pub(super) async fn run(mut self) {
        self.prepare();
        let done = loop {
            let has_room = self.link.has_room();
            let Self { link, closing, running, outbox, preparing, .. } = &mut self;
            let own = async {
                tokio::select! {
                    biased;
                    Some(ended) = running.join_next_with_id() => WorkerEvent::Ended(ended),
                    Some(chunk) = outbox.recv(), if has_room => WorkerEvent::Chunk(chunk),
                    Some(_) = preparing.join_next() => WorkerEvent::Prepared,
                    else => pending().await,
                }
            };
            let flow = tokio::select! {
                biased;
                done = closing.recv() => self.on_close(done),
                turn = link.next(own) => self.on_turn(turn),
            };
            if let ControlFlow::Break(done) = flow {
                break done;
            }
        };
        self.stop_all();
        self.link.close().await;
        // The closing side waits for this.
        drop(done);
    }

    fn on_close(&mut self, done: Option<oneshot::Sender<()>>) -> Flow {
        self.link.send(Frame::new(Command::Disconnect, RequestId::random(), Body::Empty));
        ControlFlow::Break(done)
    }

    fn on_turn(&mut self, turn: LoopEvent<WorkerEvent>) -> Flow {
        match turn {
            LoopEvent::Up => self.prepare(),
            LoopEvent::Down { state, reason } => self.link_down(state, reason),
            LoopEvent::Received(Ok(frame)) => self.on_frame(&frame),
            LoopEvent::Received(Err(error)) => {
                tracing::debug!(%error, "ignoring a message that is not a frame");
            }
            LoopEvent::Own(WorkerEvent::Ended(ended)) => self.on_ended(ended),
            LoopEvent::Own(WorkerEvent::Chunk(chunk)) => self.on_chunk(chunk),
            LoopEvent::Own(WorkerEvent::Prepared) => self.offer(),
            LoopEvent::Kept => {}
            LoopEvent::Closed => return ControlFlow::Break(None),
        }
        ControlFlow::Continue(())
    }

    /// Drops the calls of this connection: the daemon has given them up and wants no answers.
    fn link_down(&mut self, state: LinkState, reason: String) {
        self.asked = None;
        self.preparing = JoinSet::new();
        self.stop_all();
        self.state.send_replace(match state {
            LinkState::Refused => {
                ServingState::Refused(Error::new(ErrorKind::Unauthenticated, reason))
            }
            LinkState::Up | LinkState::Down => ServingState::Down,
        });
    }

    fn stop_all(&mut self) {
        for (_, call) in self.calls.drain() {
            call.cancelled.cancel();
        }
    }

    /// Does what the service needs before its tools are offered, then offers them.
    fn prepare(&mut self) {
        match self.tools.prepare() {
            Some(work) => drop(self.preparing.spawn(work)),
            None => self.offer(),
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
        self.link.send(Frame { service, ..Frame::new(Command::Ready, request_id, body) });
    }

    fn on_frame(&mut self, frame: &Frame) {
        match frame.command {
            Command::Request => {
                self.on_request(frame);
            }
            Command::Cancel => {
                if let Some(call) = self.calls.remove(&frame.request_id) {
                    call.cancelled.cancel();
                }
            }
            Command::Credit => {
                if let (Some(call), Body::Credit(bytes)) =
                    (self.calls.get(&frame.request_id), &frame.body)
                {
                    call.credit.add(*bytes);
                }
            }
            Command::Reply if self.asked == Some(frame.request_id) => self.on_answer(frame),
            Command::Reply | Command::Heartbeat | Command::Ready | Command::Disconnect => {}
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
            Ok(ResponseEnvelope::Error(error)) => ServingState::Refused(error.into()),
            Err(error) => ServingState::Refused(error),
            Ok(_) => ServingState::Yes,
        };
        self.state.send_replace(serving);
    }

    fn on_request(&mut self, frame: &Frame) {
        let request_id = frame.request_id;
        let (fields, arguments) = match read(frame) {
            Ok(read) => read,
            Err(error) => {
                let asked = Asked { request_id, job_id: None };
                return self.link.send(asked.outcome(Err(error)));
            }
        };
        let asked = Asked { request_id, job_id: fields.job_id.clone() };
        if self.calls.len() >= self.calls_max {
            let busy = Error::busy("the worker's list of calls");
            return self.link.send(asked.outcome(Err(busy)));
        }
        self.begin(asked, fields, arguments);
    }

    fn begin(&mut self, asked: Asked, fields: RequestFields, arguments: Bytes) {
        let request_id = asked.request_id;
        let cancelled = CancellationToken::new();
        let credit = Arc::<CallCredit>::default();
        let call = WorkerCall {
            request_id,
            stream_id: StreamId::from_random(*RequestId::random().as_bytes()),
            arguments,
            job_id: fields.job_id,
            session_id: fields.session_id,
            deadline: Duration::from_millis(fields.deadline_ms),
            cancelled: cancelled.clone(),
            credit: Arc::clone(&credit),
            outbox: self.to_outbox.clone(),
        };
        let (tools, places) = (Arc::clone(&self.tools), Arc::clone(&self.places));
        let stopped = cancelled.clone();
        let answered = asked.clone();
        let running = self.running.spawn(async move {
            let stop = Error::cancelled("at the caller's request");
            let place = tokio::select! {
                biased;
                () = stopped.cancelled() => return answered.outcome(Err(stop)),
                place = places.acquire() => place,
            };
            let done = match tools.work(&fields.tool, call) {
                Some(work) => work.await,
                None => Err(Error::not_found("tool", &fields.tool)),
            };
            drop(place);
            answered.outcome(done)
        });
        self.by_task.insert(running.id(), asked);
        self.calls.insert(request_id, RunningCall { cancelled, credit });
    }

    /// Answers, unless the answer is no longer wanted.
    fn on_ended(&mut self, ended: Result<(task::Id, Frame), JoinError>) {
        let (task_id, reply) = match ended {
            Ok((task_id, reply)) => (task_id, Some(reply)),
            Err(error) => (error.id(), None),
        };
        let asked = self.by_task.remove(&task_id);
        if let Some(asked) = asked
            && self.calls.remove(&asked.request_id).is_some()
        {
            let panicked = || {
                let error = Error::new(ErrorKind::ToolFailed, "the worker's handler panicked");
                asked.outcome(Err(error.with_certainty(Certainty::MayHaveRun)))
            };
            // After its own chunks.
            while let Ok(chunk) = self.outbox.try_recv() {
                self.link.send(chunk);
            }
            self.link.send(reply.unwrap_or_else(panicked));
        }
    }

    fn on_chunk(&mut self, chunk: Frame) {
        if self.calls.contains_key(&chunk.request_id) {
            self.link.send(chunk);
        }
    }
}

/// Reads a Request, and its arguments as received.
fn read(frame: &Frame) -> Result<(RequestFields, Bytes), Error> {
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
