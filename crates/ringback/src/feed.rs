//! Events from `event_poll`, page by page and without gaps.

use ringback_client::Client;
use ringback_proto::request::{EventPollRequest, EventsResponse};
use ringback_proto::tool::tools::EventPoll;
use ringback_proto::{Error, Event};

use crate::failure::Failure;
use crate::nearest::nearest;

/// The largest page size.
const PAGE: u32 = 1000;
/// The longest wait.
const WAIT_MS: u64 = 30_000;

/// The position of an event reader.
#[derive(Debug)]
pub(crate) struct Feed<'a> {
    client: &'a Client,
    types: Option<Vec<String>>,
    cursor: Option<String>,
}

impl<'a> Feed<'a> {
    /// Starts at a cursor, or at the oldest event still kept. An empty list means all types.
    pub(crate) fn after(client: &'a Client, types: &[String], cursor: Option<String>) -> Self {
        let types = (!types.is_empty()).then(|| types.to_vec());
        Self { client, types, cursor }
    }

    /// Starts now.
    pub(crate) async fn from_now(client: &'a Client, types: &[String]) -> Result<Self, Error> {
        let mut feed = Self::after(client, types, None);
        while !feed.page(0).await?.events.is_empty() {}
        Ok(feed)
    }

    /// Returns the next events without waiting; empty if there are no more.
    pub(crate) async fn kept(&mut self) -> Result<EventsResponse, Error> {
        self.page(0).await
    }

    /// Waits for the next events; may be empty.
    pub(crate) async fn next(&mut self) -> Result<EventsResponse, Error> {
        self.page(WAIT_MS).await
    }

    async fn page(&mut self, wait_ms: u64) -> Result<EventsResponse, Error> {
        let request = EventPollRequest {
            cursor: self.cursor.clone(),
            types: self.types.clone(),
            limit: Some(PAGE),
            wait_ms: Some(wait_ms),
        };
        let page = self.client.call::<EventPoll>(request).await?;
        self.cursor = Some(page.cursor.clone());
        Ok(page)
    }
}

/// Checks that these event types exist.
pub(crate) fn check_types(types: &[String]) -> Result<(), Failure> {
    for name in types {
        if !Event::TOPICS.contains(&name.as_str()) {
            let hint = nearest(name, Event::TOPICS).map_or_else(
                || format!("known types: {}", Event::TOPICS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(Failure::Usage(format!("unknown event type `{name}`; {hint}")));
        }
    }
    Ok(())
}
