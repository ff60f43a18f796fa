//! `GET /v1/garden/timeline.svg`: the garden's timeline as a picture.

use axum::extract::State as With;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS,
};
use axum::response::{IntoResponse, Response};
use ringback_proto::Error;
use ringback_proto::request::{GardenGetRegionsRequest, GardenStatusRequest};
use ringback_proto::tool::tools::{GardenGetRegions, GardenStatus};
use schemars::JsonSchema;
use serde::Deserialize;

use super::ask;
use crate::api::{Auth, Content, Operation, Route};
use crate::caller::StreamCaller;
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::QueryValue;
use crate::picture::{TimelinePicture, WIDTH, WIDTHS};

/// What to draw.
#[derive(Debug, Deserialize, JsonSchema)]
struct PictureQuery {
    /// The first beat; the start of the timeline if absent.
    start: Option<f64>,
    /// The last beat; the end of the last region if absent.
    end: Option<f64>,
    /// The width in pixels, from 200 to 8000; default 1200.
    width: Option<u32>,
}

pub(super) fn routes() -> Vec<Route> {
    let about = "Draws the garden's timeline: regions in lanes under a ruler of bars, with tempo, \
                 loop and play head. Regions of others are drawn without their names.";
    vec![Route::get(
        "/v1/garden/timeline.svg",
        draw,
        Operation::new("garden", "draw_timeline", about)
            .auth(Auth::TokenOrTicket)
            .query::<PictureQuery>()
            .answers(200, "The picture.", Content::Text("image/svg+xml"))
            .fails([504]),
    )]
}

async fn draw(
    With(state): With<State>,
    StreamCaller(credential): StreamCaller,
    QueryValue(query): QueryValue<PictureQuery>,
) -> Result<Response, HttpError> {
    let PictureQuery { start, end, width } = query;
    let width = width.unwrap_or(WIDTH);
    if !WIDTHS.contains(&width) {
        let message = format!("`width` must be from {} to {}", WIDTHS.start(), WIDTHS.end());
        return Err(Error::invalid_field("width", message).into());
    }
    if let (Some(start), Some(end)) = (start, end)
        && start >= end
    {
        return Err(Error::invalid_field("end", "`end` must lie after `start`").into());
    }
    let request = GardenGetRegionsRequest { start, end };
    let timeline = ask::<GardenGetRegions>(&state, &credential, request).await?;
    // A garden that does not run has no play head.
    let status = ask::<GardenStatus>(&state, &credential, GardenStatusRequest {}).await.ok();
    let position = status.map(|status| status.position_beats);
    let svg = TimelinePicture { timeline: &timeline, range: (start, end), position, width }.svg();
    let headers = [
        (CONTENT_TYPE, "image/svg+xml"),
        (CACHE_CONTROL, "no-store"),
        (CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'; style-src 'unsafe-inline'"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, svg).into_response())
}
