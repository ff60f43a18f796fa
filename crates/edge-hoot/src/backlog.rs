//! Messages that wait for a peer, and the limit on them.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ringback_proto::frame::{Body, Frame};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

use crate::transport::UnsentMessage;

/// A stream waits while this much waits for its peer, so that its own buffer decides what is
/// dropped.
const STREAM_BACKLOG_BYTES: usize = 256 * 1024;
/// Bodies of at least this size count until they have left the process. Smaller ones are copied
/// into the library, whose queue is bounded.
const COUNTED_BYTES_MIN: usize = 16 * 1024;
/// What a message takes in addition to its body.
const MESSAGE_BYTES: usize = 256;
/// Content reads for one peer at the same time: enough to keep its connection busy.
const CONTENT_READS_MAX: usize = 4;

/// Messages that the library did not accept, in order.
#[derive(Debug)]
pub(crate) struct Backlog {
    queue: VecDeque<(usize, UnsentMessage)>,
    bytes: usize,
    room: Arc<Room>,
}

/// The room left for messages to a peer, as its calls see it.
#[derive(Debug)]
pub(crate) struct Room {
    /// Everything that has not left: what the library did not accept, and large bodies that it did.
    waiting_bytes: AtomicUsize,
    bytes_max: usize,
    less: Notify,
    content: Semaphore,
}

/// A body that counts until the library lets go of it.
struct CountedBody {
    bytes: Bytes,
    room: Arc<Room>,
}

impl Room {
    fn new(bytes_max: usize) -> Self {
        Self {
            waiting_bytes: AtomicUsize::new(0),
            bytes_max,
            less: Notify::new(),
            content: Semaphore::new(CONTENT_READS_MAX),
        }
    }

    /// Waits for a turn to read content: unread content takes no memory while it waits.
    pub(crate) async fn content_turn(&self) -> SemaphorePermit<'_> {
        self.content.acquire().await.expect("it is never closed")
    }

    /// Resolves when a stream may send more.
    pub(crate) async fn wait(&self) {
        loop {
            let less = self.less.notified();
            if self.waiting_bytes.load(Ordering::Acquire) <= STREAM_BACKLOG_BYTES {
                return;
            }
            less.await;
        }
    }

    /// Counts a large frame once there is room for it. `None` if the peer accepted nothing for
    /// `patience`, so that it counts as gone.
    pub(crate) async fn admit(self: &Arc<Self>, frame: Frame, patience: Duration) -> Option<Frame> {
        let n_bytes = frame.body.n_bytes();
        if n_bytes < COUNTED_BYTES_MIN {
            return Some(frame);
        }
        loop {
            let mut less = std::pin::pin!(self.less.notified());
            less.as_mut().enable();
            if self.try_take(n_bytes) {
                return Some(self.counted(frame));
            }
            tokio::time::timeout(patience, less).await.ok()?;
        }
    }

    /// Counts a large frame that is already in memory.
    pub(crate) fn count(self: &Arc<Self>, frame: Frame) -> Frame {
        let n_bytes = frame.body.n_bytes();
        if n_bytes < COUNTED_BYTES_MIN {
            return frame;
        }
        self.waiting_bytes.fetch_add(n_bytes, Ordering::AcqRel);
        self.counted(frame)
    }

    /// Takes room if there is some; a single frame always fits.
    fn try_take(&self, n_bytes: usize) -> bool {
        let more = |waiting: usize| {
            let more = waiting.saturating_add(n_bytes);
            (waiting == 0 || more <= self.bytes_max).then_some(more)
        };
        self.waiting_bytes.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).is_ok()
    }

    fn give_back(&self, n_bytes: usize) {
        self.waiting_bytes.fetch_sub(n_bytes, Ordering::AcqRel);
        self.less.notify_waiters();
    }

    fn counted(self: &Arc<Self>, mut frame: Frame) -> Frame {
        let counted =
            |bytes: Bytes| Bytes::from_owner(CountedBody { bytes, room: Arc::clone(self) });
        frame.body = match frame.body {
            Body::MsgPack(bytes) => Body::MsgPack(counted(bytes)),
            Body::RawBinary { data, header } => {
                Body::RawBinary { data: counted(data), header: counted(header) }
            }
            body @ (Body::Empty | Body::Credit(_)) => body,
        };
        frame
    }
}

impl AsRef<[u8]> for CountedBody {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for CountedBody {
    fn drop(&mut self) {
        self.room.give_back(self.bytes.len());
    }
}

impl Backlog {
    pub(crate) fn new(bytes_max: usize) -> Self {
        Self { queue: VecDeque::new(), bytes: 0, room: Arc::new(Room::new(bytes_max)) }
    }

    pub(crate) const fn room(&self) -> &Arc<Room> {
        &self.room
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Whether more is waiting than allowed.
    pub(crate) fn is_over(&self) -> bool {
        self.bytes > self.room.bytes_max
    }

    /// What a frame adds to the waiting bytes; a large body is counted already.
    pub(crate) fn weight(frame: &Frame) -> usize {
        let n_bytes = frame.body.n_bytes();
        MESSAGE_BYTES + if n_bytes < COUNTED_BYTES_MIN { n_bytes } else { 0 }
    }

    pub(crate) fn push(&mut self, weight: usize, unsent: UnsentMessage) {
        self.grow(weight);
        self.queue.push_back((weight, unsent));
    }

    pub(crate) fn pop(&mut self) -> Option<(usize, UnsentMessage)> {
        let next = self.queue.pop_front()?;
        self.bytes -= next.0;
        self.room.give_back(next.0);
        Some(next)
    }

    /// Puts back a message that still cannot leave.
    pub(crate) fn push_front(&mut self, weight: usize, unsent: UnsentMessage) {
        self.grow(weight);
        self.queue.push_front((weight, unsent));
    }

    fn grow(&mut self, weight: usize) {
        self.bytes += weight;
        self.room.waiting_bytes.fetch_add(weight, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use ringback_proto::frame::Command;
    use ringback_proto::ids::RequestId;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);
    const IMPATIENCE: Duration = Duration::from_millis(20);

    fn frame(n_bytes: usize) -> Frame {
        Frame::new(Command::Reply, RequestId::random(), Body::MsgPack(vec![7; n_bytes].into()))
    }

    /// Rule: what waits for a peer stays within its budget until the library releases it.
    #[tokio::test]
    async fn a_large_frame_waits_until_an_earlier_one_has_left() {
        let room = Arc::new(Room::new(100_000));
        let first = room.admit(frame(80_000), PATIENCE).await.unwrap();
        assert!(room.admit(frame(80_000), IMPATIENCE).await.is_none(), "the peer takes nothing");
        assert!(room.admit(frame(20), PATIENCE).await.is_some(), "small frames do not wait");
        let (second, ()) = tokio::join!(room.admit(frame(80_000), PATIENCE), async {
            tokio::time::sleep(IMPATIENCE).await;
            drop(first);
        });
        assert_eq!(second.as_ref().unwrap().body.n_bytes(), 80_000);
        drop(second);
        assert_eq!(room.waiting_bytes.load(Ordering::Acquire), 0);
        assert!(room.admit(frame(900_000), PATIENCE).await.is_some(), "one alone has room");
    }
}
