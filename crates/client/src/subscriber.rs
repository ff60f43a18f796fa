//! Events as they happen, and what was missed of them.

use std::collections::VecDeque;

use bytes::Bytes;
use ringback_proto::event::{Heads, SequencedEvent};
use ringback_proto::msgpack;
use serde::Deserialize;

use crate::config::Credentials;
use crate::error::ConnectError;
use crate::gaps::{Gap, Gaps};
use crate::transport::{Link, Sub};

/// Long enough for a busy daemon, short enough for a person.
const CONNECT_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);

/// What a subscriber learns.
#[derive(Debug, Clone, PartialEq)]
pub enum Notice {
    /// Something happened.
    Event(SequencedEvent),
    /// Something happened that did not arrive.
    Missed(Gap),
    /// A message of a kind this build does not know, or raw stream data.
    Other {
        /// The topic.
        topic: String,
        /// The body as it came.
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

/// A subscription to a daemon's events. It reconnects by itself; what is missed meanwhile it tells.
#[derive(Debug)]
pub struct Subscriber {
    sub: Sub,
    _link: Link,
    prefixes: Vec<String>,
    gaps: Gaps,
    /// Notices of one message that are yet to be told.
    waiting: VecDeque<Notice>,
}

/// Where an event stands, whatever it says.
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
    /// If nobody answers in time, or the daemon refuses the credentials.
    pub async fn connect(
        endpoint: &str,
        credentials: &Credentials,
        prefixes: Vec<String>,
    ) -> Result<Self, ConnectError> {
        let mut topics = prefixes.clone();
        topics.push(Heads::TOPIC.to_owned());
        let (sub, mut link) = Sub::open(endpoint, credentials, &topics).await?;
        link.up(endpoint, CONNECT_TIMEOUT).await?;
        Ok(Self { sub, _link: link, prefixes, gaps: Gaps::default(), waiting: VecDeque::new() })
    }

    /// The next notice.
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
            Err(error) => tracing::debug!(%error, "heads that cannot be read"),
        }
    }
}

/// What stands before the topics that the heads tell of: nothing, or a name such as `tok_…/` for
/// those who hear only their own events. `None` if these are no heads.
fn heads_of(topic: &str) -> Option<&str> {
    topic.strip_suffix(Heads::TOPIC).filter(|view| view.is_empty() || view.ends_with('/'))
}
