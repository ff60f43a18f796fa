//! `GET /client-tools/pending/{client_id}`: a client's stream.

use axum::extract::State as With;
use axum::http::Version;
use axum::response::Response;
use futures_util::stream;
use ringback_broker::LineStream;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::frames::{PING, Pieces, frame};
use super::line;
use crate::caller::StreamCaller;
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::PathValue;
use crate::sse;

pub(super) async fn pending(
    With(state): With<State>,
    version: Version,
    StreamCaller(credential): StreamCaller,
    PathValue(client_id): PathValue<String>,
) -> Result<Response, HttpError> {
    if version < Version::HTTP_11 {
        return Err(HttpError::NoStreaming);
    }
    let line = state.broker().lines().open(&credential, &line(&client_id)?)?;
    let pings = pings(&state);
    let frames = stream::unfold((line, pings), |(mut line, mut pings)| async move {
        let pieces = next(&mut line, &mut pings).await?;
        Some((pieces, (line, pings)))
    });
    Ok(sse::frames(&state, credential, frames))
}

/// The next call, or a ping. Dropping it loses nothing.
async fn next(line: &mut LineStream, pings: &mut Interval) -> Option<Pieces> {
    tokio::select! {
        biased;
        post = line.next() => post.as_ref().map(frame),
        _ = pings.tick() => Some(vec![PING]),
    }
}

/// The first ping comes after a full interval.
pub(crate) fn pings(state: &State) -> Interval {
    let every = state.client_tools().keepalive;
    let mut pings = interval_at(Instant::now() + every, every);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    pings
}
