//! Lines of text waiting for the peer.

use std::io;

use ringback_mcp_wire::RawValue;
use ringback_proto::{Certainty, Error, ErrorKind};
use serde::Serialize;
use tokio::net::UnixStream;

use crate::refusal::Refusal;

/// Written bytes are released in pieces of this size, so that the rest is moved rarely.
const WRITTEN_BYTES_MAX: usize = 64 << 10;

/// Data to write, in order.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    n_written: usize,
}

#[derive(Serialize)]
struct Answer<'a, R> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    result: &'a R,
}

#[derive(Serialize)]
struct RefusalMessage<'a> {
    jsonrpc: &'static str,
    id: Option<&'a RawValue>,
    error: &'a Refusal,
}

impl Outbox {
    /// The number of waiting bytes.
    pub(crate) const fn len(&self) -> usize {
        self.bytes.len() - self.n_written
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds a line.
    pub(crate) fn push(&mut self, line: &impl Serialize) {
        if self.n_written > WRITTEN_BYTES_MAX {
            self.bytes.drain(..self.n_written);
            self.n_written = 0;
        }
        serde_json::to_writer(&mut self.bytes, line).expect("JSON and plain data can be written");
        self.bytes.push(b'\n');
    }

    /// Answers a request. An answer that is longer than a line may be becomes an error.
    pub(crate) fn answer(
        &mut self,
        id: Option<&RawValue>,
        result: &impl Serialize,
        line_bytes_max: usize,
    ) {
        let before = self.len();
        self.push(&Answer { jsonrpc: "2.0", id, result });
        let n_bytes = self.len() - before - 1;
        if n_bytes > line_bytes_max {
            self.bytes.truncate(self.n_written + before);
            let message = format!(
                "the answer has {n_bytes} bytes; a line of text has at most {line_bytes_max}"
            );
            let error = Error::new(ErrorKind::TooLarge, message).with_certainty(Certainty::Ran);
            self.refuse(id, &error.into());
        }
    }

    /// Answers a request with an error.
    pub(crate) fn refuse(&mut self, id: Option<&RawValue>, error: &Refusal) {
        self.push(&RefusalMessage { jsonrpc: "2.0", id, error });
    }

    /// Writes what the peer accepts now, and returns how much that was.
    pub(crate) fn write_to(&mut self, stream: &UnixStream) -> io::Result<usize> {
        let before = self.len();
        while !self.is_empty() {
            match stream.try_write(&self.bytes[self.n_written..]) {
                Ok(n) => self.n_written += n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        let n_written = before - self.len();
        if self.is_empty() {
            // An idle connection keeps no memory.
            *self = Self::default();
        }
        Ok(n_written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: no line is longer than the limit, and its request is answered nevertheless.
    #[test]
    fn an_answer_that_is_too_long_becomes_an_error() {
        let mut outbox = Outbox::default();
        let id: &RawValue = serde_json::from_str("7").unwrap();
        outbox.answer(Some(id), &"x".repeat(100), 100);
        let text = String::from_utf8(outbox.bytes).unwrap();
        assert!(text.starts_with(r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32000"#), "{text}");
        assert!(
            text.contains(r#""kind":"too_large","retryable":false,"certainty":"ran""#),
            "{text}"
        );
        assert_eq!(text.matches('\n').count(), 1);
    }
}
