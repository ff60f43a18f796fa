//! Extractors that answer every invalid request with the same error body.

use std::error::Error as _;

use axum::body::Body;
use axum::body::HttpBody as _;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, LengthLimitError};
use ringback_proto::{Error, ErrorKind};
use ringback_service::http::StalledBody;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::edge::State;
use crate::error::HttpError;

/// How much of an announced length is trusted before any byte has arrived.
const TRUSTED_BYTES: usize = 64 << 10;

/// Enough to find the invalid field.
const MISFIT_CHARS_MAX: usize = 400;

/// A part of the path.
#[derive(Debug)]
pub(crate) struct PathValue<T>(pub(crate) T);

/// The query.
#[derive(Debug)]
pub(crate) struct QueryValue<T>(pub(crate) T);

/// The whole body, unchanged.
#[derive(Debug)]
pub(crate) struct RawBody(pub(crate) Bytes);

/// A JSON body.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T);

impl<T: DeserializeOwned + Send> FromRequestParts<State> for PathValue<T> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        let misfit = |rejection: PathRejection| invalid("the path", &rejection);
        Path::from_request_parts(parts, state).await.map(|Path(it)| Self(it)).map_err(misfit)
    }
}

impl<T: DeserializeOwned + Send> FromRequestParts<State> for QueryValue<T> {
    type Rejection = HttpError;

    async fn from_request_parts(parts: &mut Parts, state: &State) -> Result<Self, HttpError> {
        let misfit = |rejection: QueryRejection| invalid("the query", &rejection);
        Query::from_request_parts(parts, state).await.map(|Query(it)| Self(it)).map_err(misfit)
    }
}

impl FromRequest<State> for RawBody {
    type Rejection = HttpError;

    async fn from_request(request: Request, _: &State) -> Result<Self, HttpError> {
        let mut body = request.into_body();
        let announced = usize::try_from(body.size_hint().exact().unwrap_or(0)).unwrap_or(0);
        let mut whole = BytesMut::with_capacity(announced.min(TRUSTED_BYTES));
        while let Some(piece) = next_piece(&mut body).await? {
            // A client that has sent this much will send the rest: allocate once, and no more than
            // needed.
            if whole.len() + piece.len() > whole.capacity() && announced > whole.len() {
                whole.reserve(announced - whole.len());
            }
            whole.extend_from_slice(&piece);
        }
        Ok(Self(whole.freeze()))
    }
}

impl<T: DeserializeOwned> FromRequest<State> for JsonBody<T> {
    type Rejection = HttpError;

    async fn from_request(request: Request, state: &State) -> Result<Self, HttpError> {
        check_json(request.headers())?;
        let RawBody(body) = RawBody::from_request(request, state).await?;
        read_json(&body).map(Self)
    }
}

/// Reads a JSON body, whatever its declared type.
pub(crate) fn read_json<'de, T: Deserialize<'de>>(body: &'de [u8]) -> Result<T, HttpError> {
    serde_json::from_slice(body).map_err(|error| invalid("the body", &error))
}

/// Refuses a body that declares a type other than JSON.
pub(crate) fn check_json(headers: &HeaderMap) -> Result<(), HttpError> {
    let Some(value) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.to_ascii_lowercase().ends_with("json") {
        return Ok(());
    }
    let message = "the body must be JSON: send `Content-Type: application/json`";
    Err(Error::new(ErrorKind::UnsupportedContentType, message).into())
}

/// Why a body could not be read to its end.
pub(crate) fn broken_body(error: &axum::Error) -> HttpError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = error.source();
    while let Some(error) = cause {
        if error.is::<LengthLimitError>() {
            let message = "the body is larger than this route accepts (http.max_body)";
            return Error::new(ErrorKind::TooLarge, message).into();
        }
        if error.is::<StalledBody>() {
            return HttpError::Stalled;
        }
        cause = error.source();
    }
    Error::invalid("cannot read the body to its end").into()
}

/// Returns the next piece of a body that is read as it arrives.
pub(crate) async fn next_piece(body: &mut Body) -> Result<Option<Bytes>, HttpError> {
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|error| broken_body(&error))?.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

/// An error that briefly says what is invalid.
pub(crate) fn invalid(what: &str, error: &impl std::error::Error) -> HttpError {
    let cause = error.source().map_or_else(|| error.to_string(), ToString::to_string);
    let cause: String = cause.chars().take(MISFIT_CHARS_MAX).collect();
    Error::invalid(format!("{what} is invalid: {cause}")).into()
}
