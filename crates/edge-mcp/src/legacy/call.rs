//! A call in an MCP session. A client that lost its connection can fetch its answer again.

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::Response;
use ringback_mcp_wire::outgoing::Stamp;
use ringback_mcp_wire::{CallTool, Code, Era, Fault, Id};

use super::log::StreamLog;
use super::session::{CallRegistration, Session};
use super::{courier, done, streams};
use crate::peer::Peer;
use crate::response;
use crate::state::State;
use crate::tools::{self, CallRequest, CallState, NotificationOptions, RunningCall, Step};

/// The caller and its MCP session.
pub(super) struct Caller<'a> {
    pub(super) state: &'a Arc<State>,
    pub(super) session: &'a Arc<Session>,
    pub(super) peer: &'a Peer,
    pub(super) headers: &'a HeaderMap,
}

impl Caller<'_> {
    pub(super) async fn call(&self, id: &Id, call: CallTool<'_>, progress: Option<Id>) -> Response {
        let Self { state, session, peer, headers } = self;
        let wanted = NotificationOptions { progress, log: Some(session.level()) };
        let asked = CallRequest { id, peer, call, wanted, can_follow: true };
        let mut follow = match tools::begin(&state.broker, asked) {
            CallState::Done(outcome) => return done(state, peer, headers, id, &outcome),
            CallState::Later(follow) => *follow,
        };
        let Some(registered) = session.register(id, follow.canceller()) else {
            let fault = Fault::new(Code::InvalidRequest, "a call with this id is already running");
            return response::fault(Some(id), &fault, Era::Legacy);
        };
        if !follow.is_long() || !response::accepts_events(headers) {
            let outcome = follow.end().await;
            courier::learn(state, session, follow.interest(), &outcome);
            drop(registered);
            return done(state, peer, headers, id, &outcome);
        }
        let log = session.open_stream();
        let running = DetachedCall {
            state: Arc::clone(state),
            session: Arc::clone(session),
            log: Arc::clone(&log),
            id: id.clone(),
            registered,
        };
        let response = streams::follow(Arc::clone(state), (*peer).clone(), session, log, None);
        state.calls.spawn(running.run(follow));
        response
    }
}

/// A call that continues until its client comes back.
struct DetachedCall {
    state: Arc<State>,
    session: Arc<Session>,
    log: Arc<StreamLog>,
    id: Id,
    registered: CallRegistration,
}

impl DetachedCall {
    /// Ends with the answer, the MCP session, or a client that does not come back; the latter two
    /// drop the call, which cancels it.
    async fn run(self, follow: RunningCall) {
        tokio::select! {
            biased;
            () = self.session.ended.cancelled() => {}
            () = self.answered(follow) => {}
            () = self.log.abandoned(self.state.config.resume_grace) => {}
        }
        self.log.finish();
        drop(self.registered);
    }

    async fn answered(&self, mut follow: RunningCall) {
        loop {
            match follow.next().await {
                Step::Told(told) => self.log.push(told),
                Step::Done(outcome) => {
                    courier::learn(&self.state, &self.session, follow.interest(), &outcome);
                    if let Some(answer) = outcome.encode(&self.id, Stamp::Legacy) {
                        self.log.push(answer);
                    }
                    return;
                }
            }
        }
    }
}
