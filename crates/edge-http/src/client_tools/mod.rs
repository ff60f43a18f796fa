//! `/client-tools`: an HTTP program registers tools, holds a stream open, receives calls on it and
//! posts their results. It has two dialects; the shape of a request decides the shape of its
//! answer.
//!
//! No call, timer or tool is kept here: the line engine of the broker does that.

mod execute;
pub(crate) mod frames;
mod pending;
mod register;
mod result;
mod tools;

use std::sync::Arc;

use ringback_broker::LineName;
use ringback_proto::{Error, Result};

pub(crate) use self::pending::pings;
use crate::api::{Auth, Content, Operation, Route};
use crate::error::HttpError;

const TAG: &str = "client tools";

/// Settings of the client tool routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientToolSettings {
    /// The interval between two pings on a stream.
    pub keepalive: std::time::Duration,
    /// The longest timeout of a call.
    pub timeout_ms_max: u64,
}

pub(crate) fn routes() -> Vec<Route> {
    let areas = [register::routes(), tools::routes(), result::routes(), streams()];
    areas.into_iter().flatten().collect()
}

fn streams() -> Vec<Route> {
    vec![
        Route::get(
            "/client-tools/pending/{client_id}",
            pending::pending,
            Operation::new(TAG, "open_client_stream", "Streams the calls of a client's tools.")
                .auth(Auth::TokenOrTicket)
                .answers(200, "The stream of calls.", Content::Events(frames::ABOUT)),
        ),
        Route::get("/client-tools/pending/", no_client, nobody("open_unnamed_client_stream")),
        Route::post("/client-tools/execute", execute::execute, execute::operation()),
    ]
}

/// A path that lacks its clientID: always 400.
fn nobody(id: &'static str) -> Operation {
    Operation::new(TAG, id, "The clientID is missing; always answers 400.").auth(Auth::Nobody)
}

async fn no_client() -> HttpError {
    missing_client().into()
}

/// The line of a client.
pub(crate) fn line(client_id: &str) -> Result<LineName> {
    if client_id.is_empty() {
        return Err(missing_client());
    }
    Ok(LineName::Client(Arc::from(client_id)))
}

fn missing_client() -> Error {
    Error::invalid_field("clientID", "clientID required")
}
