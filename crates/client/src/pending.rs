//! The waiters for replies.

use std::collections::HashMap;

use ringback_proto::frame::Frame;
use ringback_proto::ids::RequestId;
use ringback_proto::{Certainty, Error, ErrorKind};
use tokio::sync::{mpsc, oneshot};

/// A reply, or why there will not be one.
pub(crate) type Answer = Result<Frame, Error>;

/// The destination of the replies to one request.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// One reply.
    Once(oneshot::Sender<Answer>),
    /// Several, until the reader has enough.
    Many(StreamSender),
}

/// The sending side of a stream, with a slot reserved for the reason of an early end.
#[derive(Debug)]
pub(crate) struct StreamSender {
    frames: mpsc::Sender<Answer>,
    last: mpsc::OwnedPermit<Answer>,
}

impl StreamSender {
    /// Makes a stream with at most `frames_max` unread frames.
    pub(crate) fn channel(frames_max: usize) -> (Self, mpsc::Receiver<Answer>) {
        let (frames, receiver) = mpsc::channel(frames_max.max(1) + 1);
        let last = frames.clone().try_reserve_owned().expect("a new channel has room");
        (Self { frames, last }, receiver)
    }

    fn fail(self, error: Error) {
        drop(self.last.send(Err(error)));
    }
}

impl Waiter {
    /// Returns whether the receiver is gone.
    pub(crate) fn is_gone(&self) -> bool {
        match self {
            Self::Once(answer) => answer.is_closed(),
            Self::Many(stream) => stream.frames.is_closed(),
        }
    }

    /// Ends the wait. A receiver that is gone is normal: its call was dropped.
    pub(crate) fn fail(self, error: Error) {
        match self {
            Self::Once(answer) => drop(answer.send(Err(error))),
            Self::Many(stream) => stream.fail(error),
        }
    }
}

/// All waiters, by request.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    waiters: HashMap<RequestId, Waiter>,
}

impl Pending {
    /// Adds a waiter; returns it if the id is in use.
    pub(crate) fn insert(&mut self, id: RequestId, waiter: Waiter) -> Result<(), Waiter> {
        if self.waiters.contains_key(&id) {
            return Err(waiter);
        }
        self.waiters.insert(id, waiter);
        Ok(())
    }

    /// Removes a waiter; returns whether there was one.
    pub(crate) fn remove(&mut self, id: RequestId) -> bool {
        self.waiters.remove(&id).is_some()
    }

    /// Passes a reply to its waiter; returns whether there was one.
    pub(crate) fn answer(&mut self, frame: Frame) -> bool {
        let id = frame.request_id;
        match self.waiters.remove(&id) {
            None => false,
            Some(Waiter::Once(answer)) => answer.send(Ok(frame)).is_ok(),
            Some(Waiter::Many(stream)) => {
                match stream.frames.try_send(Ok(frame)) {
                    Ok(()) => drop(self.waiters.insert(id, Waiter::Many(stream))),
                    Err(mpsc::error::TrySendError::Full(_)) => stream.fail(lagged()),
                    Err(mpsc::error::TrySendError::Closed(_)) => {}
                }
                true
            }
        }
    }

    /// Ends one wait.
    pub(crate) fn fail(&mut self, id: RequestId, error: Error) {
        if let Some(waiter) = self.waiters.remove(&id) {
            waiter.fail(error);
        }
    }

    /// Ends all waits.
    pub(crate) fn fail_all(&mut self, error: &Error) {
        for (_, waiter) in self.waiters.drain() {
            waiter.fail(error.clone());
        }
    }
}

fn lagged() -> Error {
    Error::new(
        ErrorKind::Busy,
        "the stream was not read fast enough; the call continues without it",
    )
    .with_certainty(Certainty::MayHaveRun)
}

#[cfg(test)]
mod tests {
    use ringback_proto::frame::{Body, Command};

    use super::*;

    fn reply(id: RequestId) -> Frame {
        Frame::new(Command::Reply, id, Body::Empty)
    }

    #[test]
    fn a_stream_that_is_not_read_keeps_what_fits_and_then_says_that_it_lagged() {
        let id = RequestId::random();
        let mut pending = Pending::default();
        let (sender, mut receiver) = StreamSender::channel(2);
        assert!(pending.insert(id, Waiter::Many(sender)).is_ok());
        for _ in 0..3 {
            assert!(pending.answer(reply(id)));
        }
        assert!(!pending.answer(reply(id)), "the waiter is gone");
        assert!(receiver.try_recv().unwrap().is_ok());
        assert!(receiver.try_recv().unwrap().is_ok());
        assert_eq!(receiver.try_recv().unwrap().unwrap_err().kind(), ErrorKind::Busy);
        assert!(receiver.try_recv().is_err());
    }

    #[test]
    fn an_id_in_flight_is_not_given_to_a_second_call() {
        let id = RequestId::random();
        let mut pending = Pending::default();
        let (first, mut first_reply) = oneshot::channel();
        let (second, _second_reply) = oneshot::channel();
        assert!(pending.insert(id, Waiter::Once(first)).is_ok());
        assert!(pending.insert(id, Waiter::Once(second)).is_err());
        assert!(pending.answer(reply(id)));
        assert!(first_reply.try_recv().unwrap().is_ok());
    }
}
