//! Preferences in headers: how long to wait, in which form to answer, and idempotency.

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use ringback_proto::envelope::CallOptions;
use ringback_proto::ids::RequestId;
use ringback_proto::{Error, Result};

/// Longer than any UUID or hash, short enough to be a header.
const KEY_BYTES_MAX: usize = 255;

/// Whether the answer should be server-sent events.
pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    let accepts = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepts.flat_map(|value| value.split(',')).any(|kind| {
        kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/event-stream")
    })
}

/// `Prefer: respond-async` and `Prefer: wait=SECONDS` (RFC 7240). Other preferences are ignored, as
/// the standard requires.
pub(super) fn preferences(headers: &HeaderMap) -> Result<CallOptions> {
    let mut options = CallOptions::default();
    let values = headers.get_all("prefer").iter().filter_map(|value| value.to_str().ok());
    for preference in values.flat_map(|value| value.split(',')).map(str::trim) {
        if preference.eq_ignore_ascii_case("respond-async") {
            options.wait_ms = Some(0);
        } else if let Some(seconds) = preference.strip_prefix("wait=") {
            let seconds: u64 = seconds
                .parse()
                .map_err(|_| Error::invalid("`Prefer: wait=` takes a whole number of seconds"))?;
            options.wait_ms = Some(seconds.saturating_mul(1000));
        }
    }
    Ok(options)
}

/// The same key from the same caller identifies the same call. Any text will do: its hash is the
/// id.
pub(super) fn idempotency_key(headers: &HeaderMap) -> Result<Option<RequestId>> {
    let Some(key) = headers.get("idempotency-key") else { return Ok(None) };
    if key.is_empty() || key.len() > KEY_BYTES_MAX {
        let message = format!("an Idempotency-Key must have 1 to {KEY_BYTES_MAX} bytes");
        return Err(Error::invalid(message));
    }
    let hash = blake3::hash(key.as_bytes());
    let id = hash.as_bytes().first_chunk().copied().unwrap_or_default();
    Ok(Some(RequestId::from_bytes(id)))
}
