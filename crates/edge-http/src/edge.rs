//! The state of the routes, and the router.

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use ringback_broker::{Broker, Door};
use ringback_proto::{Error, ErrorKind};
use tokio_util::sync::CancellationToken;

use crate::api;
use crate::client_tools::ClientToolSettings;
use crate::error::HttpError;
use crate::status::Status;
use crate::tickets::Tickets;

/// The HTTP edge, before it is attached to a listener.
#[derive(Debug)]
pub struct HttpEdge {
    /// The broker that runs the calls.
    pub broker: Broker,
    /// How callers authenticate.
    pub door: Door,
    /// What the status routes report on.
    pub status: Status,
    /// Settings of the client tool routes.
    pub client_tools: ClientToolSettings,
    /// Fires when open streams should end, so that the listener can drain.
    pub stopping: CancellationToken,
}

/// The state of every route.
#[derive(Debug, Clone)]
pub(crate) struct State(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    broker: Broker,
    door: Door,
    status: Arc<Status>,
    tickets: Tickets,
    client_tools: ClientToolSettings,
    stopping: CancellationToken,
}

impl HttpEdge {
    /// Returns every route, to attach to a listener.
    pub fn router(self) -> Router {
        let Self { broker, door, status, client_tools, stopping } = self;
        let (status, tickets) = (Arc::new(status), Tickets::default());
        let inner = Inner { broker, door, status, tickets, client_tools, stopping };
        api::router(api::routes())
            .fallback(no_such_route)
            .method_not_allowed_fallback(async || HttpError::WrongMethod)
            .with_state(State(Arc::new(inner)))
    }
}

impl State {
    pub(crate) fn broker(&self) -> &Broker {
        &self.0.broker
    }

    pub(crate) fn door(&self) -> Door {
        self.0.door
    }

    pub(crate) fn tickets(&self) -> &Tickets {
        &self.0.tickets
    }

    pub(crate) fn client_tools(&self) -> ClientToolSettings {
        self.0.client_tools
    }

    pub(crate) fn stopping(&self) -> &CancellationToken {
        &self.0.stopping
    }
}

impl FromRef<State> for Arc<Status> {
    fn from_ref(state: &State) -> Self {
        Self::clone(&state.0.status)
    }
}

async fn no_such_route() -> HttpError {
    let message = "no such route; `GET /v1/openapi.json` describes all routes";
    Error::new(ErrorKind::NotFound, message).into()
}
