//! Bodies on their way: counted, bounded, and without the key on the way back.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http_body_util::Limited;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use memchr::memmem;
use ringback_proto::secret::Secret;
use ringback_service::http::TimedBody;
use tower::BoxError;

use super::proxy::Account;

/// The body of a request, on its way to the provider.
#[derive(Debug)]
pub(crate) struct Upload {
    body: Limited<TimedBody<Incoming>>,
    n_sent: Arc<AtomicU64>,
}

/// The body of an answer, on its way to the agent.
#[derive(Debug)]
pub(crate) struct Answer {
    body: TimedBody<Incoming>,
    mask: Option<Mask>,
    account: Account,
    bytes_left: u64,
}

/// An answer was too long.
#[derive(Debug, thiserror::Error)]
#[error("the answer is larger than allowed")]
struct TooLong;

/// Replaces a key by stars wherever it appears in a stream. A possible start of one is held back
/// until more arrives; nothing else is, and the length does not change.
#[derive(Debug)]
struct Mask {
    key: Secret,
    held: Vec<u8>,
}

impl Upload {
    pub(crate) const fn new(body: Limited<TimedBody<Incoming>>, n_sent: Arc<AtomicU64>) -> Self {
        Self { body, n_sent }
    }
}

impl Body for Upload {
    type Data = Bytes;
    type Error = BoxError;

    /// Without trailers: they could carry what headers may not.
    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
        let Some(frame) = polled.transpose()? else { return Poll::Ready(None) };
        let Ok(data) = frame.into_data() else { return Poll::Ready(None) };
        self.n_sent.fetch_add(data.len() as u64, Ordering::Relaxed);
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Answer {
    pub(crate) fn new(
        body: TimedBody<Incoming>,
        key: Option<Secret>,
        mut account: Account,
        bytes_max: u64,
    ) -> Self {
        account.is_whole = body.is_end_stream();
        let mask = key.map(|key| Mask { key, held: Vec::new() });
        Self { body, mask, account, bytes_left: bytes_max }
    }

    fn n_held(&self) -> usize {
        self.mask.as_ref().map_or(0, |mask| mask.held.len())
    }

    /// Returns what may be passed on of a piece.
    fn pass(&mut self, data: Bytes) -> Result<Bytes, TooLong> {
        let n_bytes = data.len() as u64;
        self.bytes_left = self.bytes_left.checked_sub(n_bytes).ok_or(TooLong)?;
        self.account.n_received += n_bytes;
        if let Some(scanner) = &mut self.account.scanner {
            scanner.look(&data);
        }
        let is_last = self.body.is_end_stream();
        self.account.is_whole |= is_last;
        Ok(match &mut self.mask {
            Some(mask) => mask.pass(data, is_last),
            None => data,
        })
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            let polled = ready!(Pin::new(&mut self.body).poll_frame(cx));
            let Some(frame) = polled.transpose()? else {
                self.account.is_whole = true;
                let rest = self.mask.as_mut().map(Mask::rest).filter(|rest| !rest.is_empty());
                return Poll::Ready(rest.map(|rest| Ok(Frame::data(rest))));
            };
            // Trailers are dropped, like the headers that announce them.
            let Ok(data) = frame.into_data() else { continue };
            let passed = self.pass(data)?;
            if !passed.is_empty() {
                return Poll::Ready(Some(Ok(Frame::data(passed))));
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.n_held() == 0 && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match self.body.size_hint().exact() {
            Some(n_bytes) => SizeHint::with_exact(n_bytes + self.n_held() as u64),
            None => SizeHint::default(),
        }
    }
}

impl Mask {
    fn pass(&mut self, data: Bytes, is_last: bool) -> Bytes {
        let key = self.key.expose().as_bytes();
        if self.held.is_empty()
            && memmem::find(&data, key).is_none()
            && (is_last || start_at_end(key, &data) == 0)
        {
            return data;
        }
        let mut whole = std::mem::take(&mut self.held);
        whole.extend_from_slice(&data);
        let found: Vec<usize> = memmem::find_iter(&whole, key).collect();
        for start in found {
            whole[start..start + key.len()].fill(b'*');
        }
        if !is_last {
            self.held = whole.split_off(whole.len() - start_at_end(key, &whole));
        }
        whole.into()
    }

    fn rest(&mut self) -> Bytes {
        std::mem::take(&mut self.held).into()
    }
}

/// The number of bytes at the end of a text that may be the start of a key.
fn start_at_end(key: &[u8], text: &[u8]) -> usize {
    let longest = text.len().min(key.len() - 1);
    (1..=longest).rev().find(|n_bytes| text.ends_with(&key[..*n_bytes])).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(key: &str, pieces: &[&'static str]) -> Vec<String> {
        let mut mask = Mask { key: Secret::new(key.to_owned()), held: Vec::new() };
        let mut shown: Vec<Bytes> = pieces
            .iter()
            .map(|piece| mask.pass(Bytes::from_static(piece.as_bytes()), false))
            .collect();
        shown.push(mask.rest());
        shown.iter().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap()).collect()
    }

    /// Rule: a provider that repeats the key in a body shows stars, wherever the pieces are cut.
    #[test]
    fn a_key_in_a_body_becomes_stars_however_it_is_cut() {
        let text = "a sk-sk-1 b sk-1sk-1 sk- sk";
        for first in 0..text.len() {
            for second in first..text.len() {
                let pieces = [&text[..first], &text[first..second], &text[second..]];
                assert_eq!(masked("sk-1", &pieces).concat(), "a sk-**** b ******** sk- sk");
            }
        }
    }

    #[test]
    fn a_piece_that_cannot_start_a_key_is_not_held_back() {
        let shown = masked("sk-1", &["data: one\n\n", "data: s", "o\n\n"]);
        assert_eq!(shown, ["data: one\n\n", "data: ", "so\n\n", ""]);
        let mut mask = Mask { key: Secret::new("sk-1".to_owned()), held: Vec::new() };
        assert_eq!(mask.pass(Bytes::from_static(b"it ends in s"), true), "it ends in s");
    }
}
