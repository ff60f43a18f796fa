//! Events as they happen, and notices of missed ones.

use std::collections::VecDeque;

use bytes::Bytes;
use ringback_proto::event::{Heads, SequencedData, SequencedEvent, StreamData};
use ringback_proto::msgpack;
use serde::Deserialize;

use crate::config::Credentials;
use crate::error::ConnectError;
use crate::gaps::{Gap, Gaps};
use crate::transport::{Link, SubSocket};

/// Long enough for a busy daemon, short enough for a person.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// A notice to a subscriber.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// An event.
    Event(SequencedEvent),
    /// A piece of a stream, of a subscription to `stream.data.`. Its `topic_seq` shows what is
    /// missing before it, and `stream.ended` after it; what is missing cannot be fetched.
    Data(SequencedData),
    /// Events that did not arrive.
    Missed(Gap),
    /// A message of a kind this build does not know.
    Other {
        /// The topic.
        topic: String,
        /// The body as received.
        body: Bytes,
    },
}

/// Why the notices ended.
#[derive(Debug, thiserror::Error)]
pub enum SubscribeError {
    /// The socket is gone.
    #[error("the subscription is closed")]
    Closed,
}

/// A subscription to a daemon's events. It reconnects automatically, and reports what it misses in
/// the meantime.
#[derive(Debug)]
pub struct Subscriber {
    sub: SubSocket,
    _link: Link,
    prefixes: Vec<String>,
    gaps: Gaps,
    /// Notices of one message that have not been returned yet.
    waiting: VecDeque<Notice>,
}

/// The position of an event, regardless of its content.
#[derive(Deserialize)]
struct Place {
    epoch: u64,
    topic_seq: u64,
}

impl Subscriber {
    /// Connects to the daemon's event socket and subscribes to topics that start with one of
    /// `prefixes`. A topic the token may not see is silently left out.
    ///
    /// # Errors
    /// If no daemon answers in time, or it refuses the credentials.
    pub async fn connect(
        endpoint: &str,
        credentials: &Credentials,
        prefixes: Vec<String>,
    ) -> Result<Self, ConnectError> {
        let mut topics = prefixes.clone();
        topics.push(Heads::TOPIC.to_owned());
        let (sub, mut link) = SubSocket::open(endpoint, credentials, &topics).await?;
        link.up(endpoint, CONNECT_TIMEOUT).await?;
        Ok(Self { sub, _link: link, prefixes, gaps: Gaps::default(), waiting: VecDeque::new() })
    }

    /// Returns the next notice.
    ///
    /// # Errors
    /// If the socket was closed.
    ///
    /// # Cancel safety
    /// A wait that is dropped loses nothing.
    pub async fn next(&mut self) -> Result<Notice, SubscribeError> {
        loop {
            if let Some(notice) = self.waiting.pop_front() {
                return Ok(notice);
            }
            let (topic, body) = self.sub.recv().await.ok_or(SubscribeError::Closed)?;
            self.on_message(&topic, body);
        }
    }

    fn on_message(&mut self, topic: &[u8], body: Bytes) {
        let topic = String::from_utf8_lossy(topic);
        if msgpack::check(&body).is_err() {
            self.waiting.push_back(Notice::Other { topic: topic.into_owned(), body });
            return;
        }
        if let Some(view) = heads_of(&topic) {
            self.on_heads(view, &body);
            return;
        }
        if is_data(&topic)
            && let Ok(data) = rmp_serde::from_slice(&body)
        {
            self.waiting.push_back(Notice::Data(data));
            return;
        }
        if let Ok(Place { epoch, topic_seq }) = rmp_serde::from_slice(&body) {
            self.waiting.extend(self.gaps.event(epoch, &topic, topic_seq).map(Notice::Missed));
        }
        self.waiting.push_back(match rmp_serde::from_slice(&body) {
            Ok(event) => Notice::Event(event),
            Err(_) => Notice::Other { topic: topic.into_owned(), body },
        });
    }

    fn on_heads(&mut self, view: &str, body: &[u8]) {
        match rmp_serde::from_slice::<Heads>(body) {
            Ok(mut heads) => {
                let topics = std::mem::take(&mut heads.topics).into_iter();
                heads.topics =
                    topics.map(|(topic, last)| (format!("{view}{topic}"), last)).collect();
                let wanted =
                    |topic: &str| self.prefixes.iter().any(|prefix| topic.starts_with(&**prefix));
                self.waiting
                    .extend(self.gaps.heads(&heads, wanted).into_iter().map(Notice::Missed));
            }
            Err(error) => tracing::debug!(%error, "ignoring malformed heads"),
        }
    }
}

/// Returns the prefix of the topics in the heads: empty, or such as `tok_…/` for subscribers that
/// only receive their own events. `None` if the topic is not that of heads.
fn heads_of(topic: &str) -> Option<&str> {
    topic.strip_suffix(Heads::TOPIC).filter(|view| view.is_empty() || view.ends_with('/'))
}

/// Returns whether a topic is that of a stream's data, in any view.
fn is_data(topic: &str) -> bool {
    let own = topic.split_once('/').map_or(topic, |(_, own)| own);
    own.starts_with(StreamData::TOPIC_PREFIX)
}
