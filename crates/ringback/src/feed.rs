//! Events by `event_poll`, page after page, without losing any in between.

use ringback_client::Client;
use ringback_proto::request::{EventPollRequest, EventsResponse};
use ringback_proto::tool::tools::EventPoll;
use ringback_proto::{Error, Event};

use crate::failure::Failure;
use crate::nearest::nearest;

/// The largest page there is.
const PAGE: u32 = 1000;
/// The longest wait there is.
const WAIT_MS: u64 = 30_000;

/// Where a reader of events is.
#[derive(Debug)]
pub(crate) struct Feed<'a> {
    client: &'a Client,
    types: Option<Vec<String>>,
    cursor: Option<String>,
}

impl<'a> Feed<'a> {
    /// Everything that is kept, after a cursor if there is one. No types are all types.
    pub(crate) fn after(client: &'a Client, types: &[String], cursor: Option<String>) -> Self {
        let types = (!types.is_empty()).then(|| types.to_vec());
        Self { client, types, cursor }
    }

    /// Everything from now on.
    pub(crate) async fn from_now(client: &'a Client, types: &[String]) -> Result<Self, Error> {
        let mut feed = Self::after(client, types, None);
        while !feed.page(0).await?.events.is_empty() {}
        Ok(feed)
    }

    /// What is there already; empty when there is nothing more.
    pub(crate) async fn kept(&mut self) -> Result<EventsResponse, Error> {
        self.page(0).await
    }

    /// Waits for what comes next; may be empty.
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

/// Checks that there are events of these types.
pub(crate) fn check_types(types: &[String]) -> Result<(), Failure> {
    for name in types {
        if !Event::TOPICS.contains(&name.as_str()) {
            let hint = nearest(name, Event::TOPICS).map_or_else(
                || format!("there are {}", Event::TOPICS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            return Err(Failure::Usage(format!("there are no events of type `{name}`; {hint}")));
        }
    }
    Ok(())
}
