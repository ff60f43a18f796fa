//! A request body that must keep arriving.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::BoxError;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// The peer stopped sending in the middle of a body.
#[derive(Debug, thiserror::Error)]
#[error("no part of the body arrived for {} ms", patience.as_millis())]
pub struct StalledBody {
    patience: Duration,
}

/// Ends a body with [`StalledBody`] when no part of it arrives for too long.
#[derive(Debug)]
pub struct TimedBody<B> {
    body: B,
    patience: Duration,
    /// Runs only while the reader waits for the body: most bodies arrive immediately.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<B> TimedBody<B> {
    /// Wraps a body whose next piece may take this long.
    pub const fn new(body: B, patience: Duration) -> Self {
        Self { body, patience, waiting: None }
    }
}

impl<B> Body for TimedBody<B>
where
    B: Body<Error: Into<BoxError>> + Unpin,
{
    type Data = B::Data;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, BoxError>>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(cx) {
            self.waiting = None;
            return Poll::Ready(frame.map(|frame| frame.map_err(Into::into)));
        }
        let patience = self.patience;
        let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(patience)));
        ready!(waiting.as_mut().poll(cx));
        Poll::Ready(Some(Err(StalledBody { patience }.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::time::Duration;

    use axum::body::Bytes;
    use futures_util::stream;
    use http_body_util::{BodyExt, StreamBody};
    use hyper::body::Frame;
    use tokio::time::sleep;

    use super::{StalledBody, TimedBody};

    /// A body of pieces with a pause before each.
    fn paused(
        pauses_secs: &'static [u64],
    ) -> impl hyper::body::Body<Data = Bytes, Error = Infallible> {
        let pieces = stream::unfold(pauses_secs.iter(), async |mut rest| {
            sleep(Duration::from_secs(*rest.next()?)).await;
            Some((Ok(Frame::data(Bytes::from_static(b"x"))), rest))
        });
        StreamBody::new(Box::pin(pieces))
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_body_is_read_and_a_stalled_one_ends() {
        let patience = Duration::from_secs(30);
        let slow = TimedBody::new(Box::pin(paused(&[29, 29, 29])), patience);
        assert_eq!(slow.collect().await.unwrap().to_bytes(), "xxx");
        let stalled = TimedBody::new(Box::pin(paused(&[1, 31])), patience);
        assert!(stalled.collect().await.unwrap_err().is::<StalledBody>());
    }
}
