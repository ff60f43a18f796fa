//! The parser.

use bytes::{Buf as _, BytesMut};

/// The name of an event that does not give one.
const UNNAMED: &str = "message";

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Its name; `message` if it is unnamed.
    pub name: String,
    /// Its lines of data, joined by line feeds.
    pub data: String,
}

/// An event that is too large or not UTF-8. Nothing more can be read after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadEvent {
    /// Too large.
    #[error("an event of more than {max} bytes")]
    TooLarge {
        /// The limit.
        max: usize,
    },
    /// Not UTF-8.
    #[error("an event that is not UTF-8")]
    NotText,
}

/// Takes bytes as they arrive, and returns events.
#[derive(Debug)]
pub struct Parser {
    buffer: BytesMut,
    /// The length of the buffer's start that has no line end.
    scanned: usize,
    /// Whether the last line ended with CR, so that a following LF belongs to it.
    after_cr: bool,
    name: String,
    data: Option<Vec<u8>>,
    id: Option<String>,
    last_id: Option<String>,
    bytes_max: usize,
}

impl Parser {
    /// Creates a parser of events with at most `bytes_max` bytes: the data so far and the next
    /// line.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            after_cr: false,
            name: String::new(),
            data: None,
            id: None,
            last_id: None,
            bytes_max,
        }
    }

    /// Adds bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The id of the last complete event that has one, with or without data: where to resume.
    #[must_use]
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// Returns the next complete event with data, if any.
    ///
    /// # Errors
    /// When an event is too large or not UTF-8.
    pub fn next_event(&mut self) -> Result<Option<Event>, BadEvent> {
        loop {
            let Some(line) = self.line() else {
                return self.check(self.buffer.len()).map(|()| None);
            };
            self.check(line.len())?;
            if !line.is_empty() {
                self.field(&line)?;
                continue;
            }
            let name = std::mem::take(&mut self.name);
            if let Some(id) = self.id.take() {
                self.last_id = Some(id);
            }
            if let Some(data) = self.data.take() {
                let data = String::from_utf8(data).map_err(|_| BadEvent::NotText)?;
                let name = if name.is_empty() { UNNAMED.to_owned() } else { name };
                return Ok(Some(Event { name, data }));
            }
        }
    }

    /// Checks the event so far, with a line of `n_bytes`.
    fn check(&self, n_bytes: usize) -> Result<(), BadEvent> {
        let n_data = self.data.as_ref().map_or(0, Vec::len);
        let is_within = n_data + n_bytes <= self.bytes_max;
        if is_within { Ok(()) } else { Err(BadEvent::TooLarge { max: self.bytes_max }) }
    }

    /// Returns the next line without its end, which is LF, CR, or both.
    fn line(&mut self) -> Option<BytesMut> {
        if self.after_cr
            && let Some(first) = self.buffer.first()
        {
            self.after_cr = false;
            if *first == b'\n' {
                self.buffer.advance(1);
            }
        }
        let Some(at) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.scanned..]) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.scanned + at + 1);
        self.scanned = 0;
        self.after_cr = line.last() == Some(&b'\r');
        line.truncate(line.len() - 1);
        Some(line)
    }

    fn field(&mut self, line: &[u8]) -> Result<(), BadEvent> {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => text(value)?.clone_into(&mut self.name),
            b"id" => self.id = Some(text(value)?.to_owned()),
            b"data" => match &mut self.data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            // A comment, or a field without meaning here.
            _ => {}
        }
        Ok(())
    }
}

fn text(bytes: &[u8]) -> Result<&str, BadEvent> {
    std::str::from_utf8(bytes).map_err(|_| BadEvent::NotText)
}

#[cfg(test)]
mod tests {
    use super::{BadEvent, Event, Parser};

    const BYTES_MAX: usize = 64;

    /// The names, the data and the last id after each event.
    fn read(pieces: &[&[u8]]) -> Result<Vec<(String, String, Option<String>)>, BadEvent> {
        let mut parser = Parser::new(BYTES_MAX);
        let mut events = Vec::new();
        for piece in pieces {
            parser.push(piece);
            while let Some(Event { name, data }) = parser.next_event()? {
                events.push((name, data, parser.last_id().map(str::to_owned)));
            }
        }
        Ok(events)
    }

    fn events(events: &[(&str, &str, Option<&str>)]) -> Vec<(String, String, Option<String>)> {
        let owned = |text: &str| text.to_owned();
        events.iter().map(|(name, data, id)| (owned(name), owned(data), id.map(owned))).collect()
    }

    #[test]
    fn events_come_out_however_they_were_cut() {
        let text = b": hello\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\nevent: ping\ndata: \n\nid: 7\nretry\n\n\
                     data: x\rdata: y\r\rdata: z\r\n\nid: 8\ndata: \xc3\xa4\n\ndata: unfi";
        let expected = events(&[
            ("a", "1\n2", None),
            ("ping", "", None),
            ("message", "x\ny", Some("7")),
            ("message", "z", Some("7")),
            ("message", "ä", Some("8")),
        ]);
        assert_eq!(read(&[text]).unwrap(), expected);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&bytes).unwrap(), expected);
        for cut in 1..text.len() {
            let (first, rest) = text.split_at(cut);
            assert_eq!(read(&[first, rest]).unwrap(), expected, "cut at {cut}");
        }
    }

    #[test]
    fn messages_and_their_ids_come_out_however_they_were_cut() {
        let text = "id: 1-0\ndata:\n\n: quiet\n\ndata: {\"a\":\"é\"}\n\nid: 1-2\r\ndata: x\r\n\r\nid: 1-3\ndata: unfi";
        let expected = events(&[
            ("message", "", Some("1-0")),
            ("message", "{\"a\":\"é\"}", Some("1-0")),
            ("message", "x", Some("1-2")),
        ]);
        for cut in 1..text.len() {
            let (first, rest) = text.as_bytes().split_at(cut);
            assert_eq!(read(&[first, rest]).unwrap(), expected, "cut at {cut}");
        }
    }

    /// Rule: every size has a limit.
    #[test]
    fn an_event_without_end_is_refused() {
        let too_large = Err(BadEvent::TooLarge { max: BYTES_MAX });
        let line = [b'x'; 65];
        assert_eq!(read(&[b"data: ", &line]), too_large);
        assert_eq!(read(&[b"event: ", &line, b"\n"]), too_large);
        let lines: Vec<&[u8]> = std::iter::repeat_n(&b"data: 0123456789\n"[..], 7).collect();
        assert_eq!(read(&lines), too_large);
        for wrong in [&b"data: \xff\n\n"[..], b"event: \xff\n", b"id: \xff\n"] {
            assert_eq!(read(&[wrong]), Err(BadEvent::NotText));
        }
    }
}
