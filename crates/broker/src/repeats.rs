//! The shell of the repeat table: where the answer to a repeated call appears.

use std::io;
use std::sync::{Arc, Mutex};

use ringback_core::Now;
use ringback_core::repeats::{Occurrence, RepeatTable};
use ringback_proto::ids::{BlobHash, JobId, RequestId};
use ringback_proto::principal::PrincipalId;
use ringback_proto::record::RepeatKey;
use ringback_proto::{Certainty, Error, ResponseEnvelope, Result, ToolRequest};
use tokio::sync::SetOnce;

use crate::payload;
use crate::sync::lock;

/// Calls remembered at the same time, about 300 bytes each.
const ENTRIES_MAX: usize = 65_536;

/// Where the answer to the first call appears.
#[derive(Debug, Clone)]
pub(crate) enum FirstAnswer {
    /// A call without a job.
    Plain(Arc<SetOnce<Result<ResponseEnvelope>>>),
    /// A job: its id, or why it was not created.
    Job(Arc<SetOnce<Result<JobId>>>),
}

/// The duty of a running call to answer its repeats; if the call panics, they get an error.
#[derive(Debug)]
pub(crate) struct OwedAnswer<T>(Arc<SetOnce<Result<T>>>);

impl<T> OwedAnswer<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(SetOnce::new()))
    }

    /// Returns where the answer will appear.
    pub(crate) fn place(&self) -> Arc<SetOnce<Result<T>>> {
        Arc::clone(&self.0)
    }

    pub(crate) fn answer(self, answer: Result<T>) {
        drop(self.0.set(answer));
    }
}

impl<T> Drop for OwedAnswer<T> {
    fn drop(&mut self) {
        // Refused if there is an answer already.
        let message = "the original of this repeated call ended without an answer";
        drop(self.0.set(Err(Error::internal("repeat", message))));
    }
}

#[derive(Debug)]
pub(crate) struct Repeats(Mutex<RepeatTable<FirstAnswer>>);

impl Default for Repeats {
    fn default() -> Self {
        Self(Mutex::new(RepeatTable::new(ENTRIES_MAX)))
    }
}

impl Repeats {
    pub(crate) fn begin(
        &self,
        now: Now,
        principal: PrincipalId,
        key: RepeatKey,
        answered: FirstAnswer,
    ) -> Result<Occurrence<FirstAnswer>> {
        lock(&self.0).begin(now, principal, key, answered)
    }

    /// Lets the same id try again if its call failed before it ran.
    pub(crate) fn reconsider(&self, principal: PrincipalId, request_id: RequestId, error: &Error) {
        if error.certainty() == Certainty::NotStarted && error.kind().is_retryable() {
            lock(&self.0).withdraw(principal, request_id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    pub(crate) fn forget(&self, now: Now) {
        lock(&self.0).forget(now);
    }
}

/// The identity of a call: its id, and a hash of tool and input.
pub(crate) fn repeat_key(request_id: RequestId, request: &ToolRequest) -> RepeatKey {
    let mut hasher = HashWriter(blake3::Hasher::new());
    let written = if let ToolRequest::CasStore(piece) = request
        && piece.upload_id.is_some()
    {
        // A piece of an upload is identified by its offset. Its bytes are hashed where they are
        // stored; hashing them here as well would block the thread that takes calls.
        let place = (&piece.upload_id, piece.offset, piece.data.0.len(), piece.last);
        rmp_serde::encode::write(&mut hasher, &("cas_store", place, &piece.mime_type))
    } else {
        rmp_serde::encode::write_named(&mut hasher, request)
    };
    if written.is_err() {
        // A payload that kept its JSON text may contain values that MsgPack cannot represent. The
        // same request takes this path each time, so its hash is the same.
        hasher = HashWriter(blake3::Hasher::new());
        payload::write_json(&mut hasher, request);
    }
    RepeatKey { request_id, body_hash: BlobHash::from_bytes(*hasher.0.finalize().as_bytes()) }
}

struct HashWriter(blake3::Hasher);

impl io::Write for HashWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ringback_proto::data::Data;
    use ringback_proto::request::CasStoreRequest;

    use super::*;

    fn body_hash(upload_id: Option<&str>, offset: u64, data: &'static [u8]) -> BlobHash {
        let request = CasStoreRequest {
            data: Data(bytes::Bytes::from_static(data)),
            mime_type: "audio/midi".to_owned(),
            upload_id: upload_id.map(ToOwned::to_owned),
            offset: Some(offset),
            last: None,
        };
        repeat_key(RequestId::from_bytes([1; 16]), &ToolRequest::CasStore(request)).body_hash
    }

    #[test]
    fn a_piece_of_an_upload_is_known_by_its_place_and_length() {
        let first = body_hash(Some("a"), 0, b"some");
        assert_eq!(first, body_hash(Some("a"), 0, b"more"));
        assert_ne!(first, body_hash(Some("a"), 4, b"some"));
        assert_ne!(first, body_hash(Some("b"), 0, b"some"));
        assert_ne!(first, body_hash(Some("a"), 0, b"other"));
    }

    #[test]
    fn whole_content_is_known_by_its_bytes() {
        assert_ne!(body_hash(None, 0, b"some"), body_hash(None, 0, b"more"));
    }
}
