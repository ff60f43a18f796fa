//! The protocol on one connection: requests and answers, and notifications.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::stream::FuturesUnordered;
use ringback_mcp_wire::{Limits, Line, RawValue};
use ringback_proto::ids::ProjectId;
use ringback_proto::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

use crate::callers::PeerView;
use crate::connection::EndReason;
use crate::methods::{Cancel, RequestState, RunningRequest, Step, begin};
use crate::outbox::Outbox;
use crate::outcome::Outcome;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::socket::SocketContext;

/// The greeting of older clients.
const GREETING: &[u8] = b"OUBLIETTE-DOWNSTREAM";
/// With this much waiting to be read, progress is skipped: the next one says more.
const PROGRESS_BYTES_MAX: usize = 64 << 10;

/// The next step of a request, and the request.
pub(crate) type StepFuture = Pin<Box<dyn Future<Output = (u64, RunningRequest, Step)> + Send>>;

/// The state of one connection's protocol.
pub(crate) struct ProtocolState {
    socket_context: Arc<SocketContext>,
    pub(crate) outbox: Outbox,
    pub(crate) requests: FuturesUnordered<StepFuture>,
    told: PeerView,
    pending_requests: Vec<PendingRequest>,
    n_bytes: usize,
    n_requests: u64,
    is_first_line: bool,
}

/// A request without an answer yet.
struct PendingRequest {
    number: u64,
    id: Option<Box<RawValue>>,
    n_bytes: usize,
    cancel: Cancel,
}

#[derive(Serialize)]
struct Notification<P> {
    jsonrpc: &'static str,
    method: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

impl ProtocolState {
    pub(crate) fn new(socket_context: Arc<SocketContext>) -> Self {
        Self {
            socket_context,
            outbox: Outbox::default(),
            requests: FuturesUnordered::new(),
            told: PeerView::default(),
            pending_requests: Vec::new(),
            n_bytes: 0,
            n_requests: 0,
            is_first_line: true,
        }
    }

    /// Announces the tools that the peer does not know yet.
    pub(crate) fn tell_tools(&mut self) {
        let broker = &self.socket_context.broker;
        for news in self.told.callers(broker.session_caller_tools(self.socket_context.session)) {
            self.outbox.push(&news);
        }
        if self.told.has_changed(broker) {
            let method = "oubliette_tools_changed";
            self.outbox.push(&Notification::<()> { jsonrpc: "2.0", method, params: None });
        }
    }

    /// Handles a line from the peer.
    pub(crate) fn on_line(&mut self, line: &Line<'_>) -> Result<(), EndReason> {
        let is_first = std::mem::take(&mut self.is_first_line);
        match line {
            Line::Whole(line) if is_first && line.starts_with(GREETING) => self.on_greeting(line),
            Line::Whole(line) => {
                self.on_request(line);
                Ok(())
            }
            Line::TooLong(_) => {
                self.outbox
                    .refuse(None, &Refusal::long_line(self.socket_context.config.line_bytes_max));
                Ok(())
            }
        }
    }

    /// Handles the next step of a request.
    pub(crate) fn on_step(&mut self, number: u64, work: RunningRequest, step: Step) {
        let Some(at) = self.pending_requests.iter().position(|request| request.number == number)
        else {
            return;
        };
        match step {
            Step::Progress { percent, message } => {
                if self.outbox.len() <= PROGRESS_BYTES_MAX {
                    let id = self.pending_requests[at].id.as_deref();
                    self.outbox.push(&progress(id, percent, &message));
                }
                self.requests.push(stepping(number, work));
            }
            Step::Done(outcome) => {
                let request = self.pending_requests.swap_remove(at);
                self.n_bytes -= request.n_bytes;
                self.answer(request.id.as_deref(), &outcome);
            }
        }
    }

    /// A client that connects is the session; one of another project is at the wrong socket.
    fn on_greeting(&mut self, line: &[u8]) -> Result<(), EndReason> {
        let project = std::str::from_utf8(&line[GREETING.len()..]).ok();
        let project = project.and_then(|text| text.trim().parse::<ProjectId>().ok());
        let view = self.socket_context.broker.session_view(self.socket_context.session);
        if project.is_some() && view.map(|view| view.project) == project {
            self.told.has_greeted = true;
            return Ok(());
        }
        let message = "this socket belongs to a session of another project";
        let error = Error::new(ErrorKind::Conflict, message);
        self.outbox.refuse(None, &error.into());
        Err(EndReason::Refused)
    }

    fn on_request(&mut self, line: &[u8]) {
        let config = &self.socket_context.config;
        let limits = Limits { bytes_max: config.line_bytes_max, ..Limits::default() };
        let request = match Request::decode(line, limits) {
            Ok(request) => request,
            Err(malformed) => return self.outbox.refuse(malformed.id, &malformed.refusal),
        };
        if request.method == "cancel" {
            return self.on_cancel(&request);
        }
        if self.pending_requests.len() >= config.requests_max
            || self.n_bytes + line.len() > config.request_bytes_max
        {
            let refusal = Error::busy("the list of running requests on this connection").into();
            return self.outbox.refuse(request.id, &refusal);
        }
        match begin(&self.socket_context, &mut self.told, &request) {
            Err(refusal) => self.outbox.refuse(request.id, &refusal),
            Ok(RequestState::Done(outcome)) => self.answer(request.id, &outcome),
            Ok(RequestState::Later(work, cancel)) => {
                let number = self.n_requests;
                self.n_requests += 1;
                self.n_bytes += line.len();
                let id = request.id.map(ToOwned::to_owned);
                self.pending_requests.push(PendingRequest {
                    number,
                    id,
                    n_bytes: line.len(),
                    cancel,
                });
                self.requests.push(stepping(number, work));
            }
        }
    }

    /// Handles the one notification; with an id it is answered.
    fn on_cancel(&mut self, request: &Request<'_>) {
        #[derive(Deserialize)]
        struct Params<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        let cancelled = request.params::<Params<'_>>().map(|params| {
            let is_meant = |id: &RawValue| id.get() == params.id.get();
            self.pending_requests
                .iter()
                .filter(|request| request.id.as_deref().is_some_and(is_meant))
                .for_each(|request| request.cancel.cancel());
        });
        match (cancelled, request.id) {
            (_, None) => {}
            (Ok(()), Some(id)) => self.answer(Some(id), &Outcome::Json(RawValue::NULL.to_owned())),
            (Err(refusal), Some(id)) => self.outbox.refuse(Some(id), &refusal),
        }
    }

    fn answer(&mut self, id: Option<&RawValue>, outcome: &Outcome) {
        outcome.answer(id, &mut self.outbox, self.socket_context.config.line_bytes_max);
    }
}

fn stepping(number: u64, mut work: RunningRequest) -> StepFuture {
    Box::pin(async move {
        let step = work.next().await;
        (number, work, step)
    })
}

fn progress<'a>(
    id: Option<&'a RawValue>,
    percent: f32,
    message: &'a str,
) -> Notification<impl Serialize + 'a> {
    #[derive(Serialize)]
    struct Progress<'a> {
        id: Option<&'a RawValue>,
        percent: f32,
        message: &'a str,
    }
    let params = Some(Progress { id, percent, message });
    Notification { jsonrpc: "2.0", method: "progress", params }
}
