//! The messages of an answer.

use std::time::Duration;

use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::http::response::Parts;
use hyper::{Response, StatusCode};
use ringback_sse::{BadEvent, Parser};
use tokio::time::timeout;

/// Streams carry comments every few seconds while there is nothing to send.
const SILENCE_MAX: Duration = Duration::from_secs(90);

/// An answer, as it arrives.
#[derive(Debug)]
pub struct Answer {
    head: Parts,
    body: Incoming,
    events: Parser,
    message_bytes_max: usize,
}

/// Why an answer is not whole: the end of a sentence about it.
#[derive(Debug, thiserror::Error)]
pub enum AnswerError {
    /// The connection ended, or was silent for too long.
    #[error("broke off: {0}")]
    BrokeOff(String),
    /// A message is too large.
    #[error("is too large")]
    TooLarge,
    /// It is not text.
    #[error("is not UTF-8")]
    NotText,
}

impl From<BadEvent> for AnswerError {
    fn from(bad: BadEvent) -> Self {
        match bad {
            BadEvent::TooLarge { .. } => Self::TooLarge,
            BadEvent::NotText => Self::NotText,
        }
    }
}

impl Answer {
    pub(crate) fn new(response: Response<Incoming>, message_bytes_max: usize) -> Self {
        let (head, body) = response.into_parts();
        Self { head, body, events: Parser::new(message_bytes_max), message_bytes_max }
    }

    /// Its status.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.head.status
    }

    /// Whether it is an event stream.
    #[must_use]
    pub fn is_stream(&self) -> bool {
        self.status().is_success() && self.has_type("text/event-stream")
    }

    /// Whether it is JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.has_type("application/json")
    }

    pub(crate) const fn head(&self) -> &Parts {
        &self.head
    }

    /// The id of the last event, where to resume.
    pub(crate) fn last_event_id(&self) -> Option<&str> {
        self.events.last_id()
    }

    /// Returns the next message: the data of an event, or the whole body of any other answer.
    /// `None` at the end.
    ///
    /// # Errors
    /// Why no message follows.
    ///
    /// # Cancel safety
    /// A stream loses nothing; another answer loses its body.
    pub async fn next(&mut self) -> Result<Option<String>, AnswerError> {
        if self.is_stream() { self.next_event().await } else { self.whole().await }
    }

    async fn next_event(&mut self) -> Result<Option<String>, AnswerError> {
        loop {
            while let Some(event) = self.events.next_event()? {
                if !event.data.trim_ascii().is_empty() {
                    return Ok(Some(event.data));
                }
            }
            match timeout(SILENCE_MAX, self.body.frame()).await {
                Ok(Some(Ok(frame))) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.events.push(bytes);
                    }
                }
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(AnswerError::BrokeOff(error.to_string())),
                Err(_) => {
                    let seconds = SILENCE_MAX.as_secs();
                    return Err(AnswerError::BrokeOff(format!("no data for {seconds} s")));
                }
            }
        }
    }

    /// The server decides how long it takes.
    async fn whole(&mut self) -> Result<Option<String>, AnswerError> {
        let body = Limited::new(&mut self.body, self.message_bytes_max).collect().await;
        let bytes = body.map_err(|error| match error.is::<LengthLimitError>() {
            true => AnswerError::TooLarge,
            false => AnswerError::BrokeOff(error.to_string()),
        })?;
        let text = String::from_utf8(bytes.to_bytes().into()).map_err(|_| AnswerError::NotText)?;
        Ok((!text.trim_ascii().is_empty()).then_some(text))
    }

    fn has_type(&self, wanted: &str) -> bool {
        let kind = self.head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        kind.is_some_and(|kind| kind.starts_with(wanted))
    }
}
