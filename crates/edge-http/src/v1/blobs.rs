//! `/v1/blobs`: content in and out, in pieces; no request holds more than one piece in memory.

use axum::Json;
use axum::body::Body;
use axum::extract::State as With;
use axum::http::header::{
    ACCEPT_RANGES, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_RANGE, CONTENT_SECURITY_POLICY,
    CONTENT_TYPE, ETAG, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use ringback_broker::{BlobReader, BlobWriter, Credential, Edge, StoredBlob};
use ringback_proto::ids::BlobHash;
use ringback_proto::request::CasStoredResponse;
use ringback_proto::tool::tools::CasStore;
use ringback_proto::{Error, ErrorKind};

use super::id;
use super::range::{Part, is_known, part};
use crate::api::{Content, Operation, Route};
use crate::caller::{Caller, ToolCaller};
use crate::edge::State;
use crate::error::HttpError;
use crate::extractors::{PathValue, next_piece};

/// The path of content. Bodies here may be as large as a blob.
pub const PATH: &str = "/v1/blobs";

/// The size of a read: few system calls, little memory.
const PIECE_BYTES: u64 = 256 << 10;

/// Content without a type.
const MIME_UNKNOWN: &str = "application/octet-stream";

/// Content never changes under its name, and is not public.
const KEEP: (HeaderName, &str) = (CACHE_CONTROL, "private, max-age=31536000, immutable");

/// Content is untrusted: a browser that shows it runs none of it and accepts its declared type.
const HARMLESS: [(HeaderName, &str); 2] =
    [(CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"), (X_CONTENT_TYPE_OPTIONS, "nosniff")];

pub(super) fn routes() -> Vec<Route> {
    const TAG: &str = "blobs";
    const ONE: &str = "/v1/blobs/{hash}";
    let stored = || Content::json::<CasStoredResponse>();
    let takes = |id, about| {
        Operation::new(TAG, id, about)
            .header("Content-Type", "The media type of the content.")
            .body(Content::Bytes)
            .answers(201, "The content is stored.", stored())
            .with("Location", "The URL of the content.")
            .answers(200, "The content was already stored.", stored())
            .with("Location", "The URL of the content.")
            .fails([504])
    };
    let gives = |id, about| {
        Operation::new(TAG, id, about)
            .header("Range", "`bytes=0-99`, `bytes=100-` or `bytes=-100`.")
            .header("If-None-Match", "The ETag of your copy.")
            .header("If-Range", "The ETag of your partial copy.")
            .answers(200, "The content.", Content::Bytes)
            .with("ETag", "The hash in quotes.")
            .answers(206, "The range.", Content::Bytes)
            .with("Content-Range", "The range and the total size.")
            .answers(304, "Your copy is current.", Content::Nothing)
            .fails([404, 416, 504])
    };
    vec![
        Route::post(PATH, store, takes("store_blob", "Stores content under its hash.")),
        Route::put(ONE, put, takes("put_blob", "Stores content if it has this hash.")),
        Route::get(ONE, get, gives("get_blob", "Reads content, in full or a range.")),
        Route::head(ONE, get, gives("head_blob", "Returns the size and type of content.")),
    ]
}

async fn store(
    With(state): With<State>,
    ToolCaller(credential, _): ToolCaller<CasStore>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    take(&state, &credential, &headers, body, None).await
}

async fn put(
    With(state): With<State>,
    ToolCaller(credential, _): ToolCaller<CasStore>,
    PathValue(hash): PathValue<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, HttpError> {
    let expected = id("hash", &hash)?;
    take(&state, &credential, &headers, body, Some(expected)).await
}

async fn take(
    state: &State,
    credential: &Credential,
    headers: &HeaderMap,
    body: Body,
    expected: Option<BlobHash>,
) -> Result<Response, HttpError> {
    let mime_type = headers.get(CONTENT_TYPE).map_or(Ok(MIME_UNKNOWN), HeaderValue::to_str);
    let mime_type = mime_type.map_err(|_| {
        Error::new(ErrorKind::UnsupportedContentType, "`Content-Type` must be ASCII")
    })?;
    let mut writer = state.broker().write_blob(credential, Edge::Http)?;
    tokio::select! {
        () = credential.ended() => {
            let message = "the token is no longer valid";
            return Err(Error::new(ErrorKind::Unauthenticated, message).into());
        }
        taken = take_all(&mut writer, body) => taken?,
    }
    let stored = writer.finish(mime_type.to_owned(), expected).await?;
    let StoredBlob { hash, size, mime_type, is_new } = stored;
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    let location = [(LOCATION, format!("{PATH}/{hash}"))];
    let stored = CasStoredResponse { hash: Some(hash), size, mime_type };
    Ok((status, location, Json(stored)).into_response())
}

async fn take_all(writer: &mut BlobWriter, mut body: Body) -> Result<(), HttpError> {
    while let Some(piece) = next_piece(&mut body).await? {
        writer.write(&piece).await?;
    }
    Ok(())
}

async fn get(
    With(state): With<State>,
    Caller(credential): Caller,
    PathValue(hash): PathValue<String>,
    headers: HeaderMap,
) -> Result<Response, HttpError> {
    let hash: BlobHash = id("hash", &hash)?;
    let reader = state.broker().read_blob(&credential, Edge::Http, hash).await?;
    let etag = format!("\"{hash}\"");
    let size = reader.size();
    if is_known(&headers, &etag) {
        reader.finish();
        return Ok((StatusCode::NOT_MODIFIED, [(ETAG, etag)], [KEEP]).into_response());
    }
    let (status, start, end) = match part(&headers, &etag, size) {
        Part::Whole => (StatusCode::OK, 0, size),
        Part::Bytes { start, end } => (StatusCode::PARTIAL_CONTENT, start, end),
        Part::Behind => {
            reader.finish();
            return Err(HttpError::Range { size });
        }
    };
    let mut about = vec![
        (ETAG, etag),
        (CONTENT_TYPE, reader.mime_type().to_owned()),
        (CONTENT_LENGTH, (end - start).to_string()),
        (ACCEPT_RANGES, "bytes".to_owned()),
    ];
    if status == StatusCode::PARTIAL_CONTENT {
        about.push((CONTENT_RANGE, format!("bytes {start}-{}/{size}", end - 1)));
    }
    let mut response =
        (status, [KEEP], HARMLESS, pieces(reader, credential, start, end)).into_response();
    for (name, value) in about {
        let value = HeaderValue::from_str(&value).unwrap_or(HeaderValue::from_static(MIME_UNKNOWN));
        response.headers_mut().insert(name, value);
    }
    Ok(response)
}

/// The bytes from `start` to `end`. A failure on the way closes the connection: the length was
/// announced, so the caller notices.
fn pieces(reader: BlobReader, credential: Credential, start: u64, end: u64) -> Body {
    Body::from_stream(stream::try_unfold((Some(reader), start), move |(reader, at)| {
        let credential = credential.clone();
        async move {
            let Some(mut reader) = reader else { return Ok(None) };
            if at == end {
                reader.finish();
                return Ok(None);
            }
            let piece = tokio::select! {
                () = credential.ended() => {
                    let message = "the token is no longer valid";
                    return Err(Error::new(ErrorKind::Unauthenticated, message));
                }
                piece = reader.read(at, PIECE_BYTES.min(end - at)) => piece?,
            };
            let at = at + piece.len() as u64;
            if at < end {
                return Ok(Some((piece, (Some(reader), at))));
            }
            // No client reads more than was announced, so the last piece is the end.
            reader.finish();
            Ok(Some((piece, (None, at))))
        }
    }))
}
