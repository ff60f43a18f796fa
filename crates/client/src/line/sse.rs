//! Parses server-sent events from the bytes of a body, within a limit.

use bytes::{Buf, BytesMut};

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    /// Its name; `message` if it is unnamed.
    pub(super) event: String,
    /// Its lines of data, joined.
    pub(super) data: String,
}

/// An event that is too large or not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum BadFrame {
    #[error("an event of more than {max} bytes")]
    TooLarge { max: usize },
    #[error("an event that is not UTF-8")]
    NotText,
}

/// Takes bytes as they arrive, and returns events.
#[derive(Debug)]
pub(super) struct Reader {
    buffer: BytesMut,
    /// The length of the buffer's start that has no line end.
    scanned: usize,
    /// Whether the last line ended with CR, so that a following LF belongs to it.
    after_cr: bool,
    event: String,
    data: Option<Vec<u8>>,
    bytes_max: usize,
}

impl Reader {
    /// Makes a reader for events up to a maximum size.
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            scanned: 0,
            after_cr: false,
            event: String::new(),
            data: None,
            bytes_max,
        }
    }

    /// Adds bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next complete event, if any. After an error nothing more can be read.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, BadFrame> {
        loop {
            let Some(line) = self.line() else {
                let pending = self.buffer.len() + self.data.as_ref().map_or(0, Vec::len);
                return if pending > self.bytes_max { Err(self.too_large()) } else { Ok(None) };
            };
            if !line.is_empty() {
                self.field(&line)?;
                continue;
            }
            let event = std::mem::take(&mut self.event);
            if let Some(data) = self.data.take() {
                let data = String::from_utf8(data).map_err(|_| BadFrame::NotText)?;
                let event = if event.is_empty() { "message".to_owned() } else { event };
                return Ok(Some(Frame { event, data }));
            }
        }
    }

    /// Returns the next line without its end, which is LF, CR, or both.
    fn line(&mut self) -> Option<BytesMut> {
        if self.after_cr && self.buffer.first() == Some(&b'\n') {
            self.buffer.advance(1);
        }
        self.after_cr &= self.buffer.is_empty();
        let rest = &self.buffer[self.scanned..];
        let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) else {
            self.scanned = self.buffer.len();
            return None;
        };
        let mut line = self.buffer.split_to(self.scanned + at + 1);
        self.scanned = 0;
        self.after_cr = line.last() == Some(&b'\r');
        line.truncate(line.len() - 1);
        Some(line)
    }

    fn field(&mut self, line: &[u8]) -> Result<(), BadFrame> {
        let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
        let (name, value) = line.split_at(colon);
        let value = value.strip_prefix(b":").unwrap_or(value);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match name {
            b"event" => {
                let event = std::str::from_utf8(value).map_err(|_| BadFrame::NotText)?;
                event.clone_into(&mut self.event);
            }
            b"data" => {
                let data = match &mut self.data {
                    Some(data) => {
                        data.push(b'\n');
                        data
                    }
                    None => self.data.insert(Vec::with_capacity(value.len())),
                };
                data.extend_from_slice(value);
                if data.len() > self.bytes_max {
                    return Err(self.too_large());
                }
            }
            // A comment, or a field without meaning here.
            _ => {}
        }
        Ok(())
    }

    const fn too_large(&self) -> BadFrame {
        BadFrame::TooLarge { max: self.bytes_max }
    }
}

#[cfg(test)]
mod tests {
    use super::{BadFrame, Frame, Reader};

    fn read(pieces: &[&[u8]]) -> Result<Vec<(String, String)>, BadFrame> {
        let mut reader = Reader::new(64);
        let mut frames = Vec::new();
        for piece in pieces {
            reader.push(piece);
            while let Some(Frame { event, data }) = reader.next()? {
                frames.push((event, data));
            }
        }
        Ok(frames)
    }

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(event, data)| ((*event).to_owned(), (*data).to_owned())).collect()
    }

    #[test]
    fn events_come_out_however_they_were_cut() {
        let text = b": hello\r\nevent: a\r\ndata: 1\r\ndata:2\r\n\r\nevent: ping\ndata: \n\nid: 7\nretry\n\n\
                     data: x\rdata: y\r\rdata: \xc3\xa4\n\n";
        let expected = pairs(&[("a", "1\n2"), ("ping", ""), ("message", "x\ny"), ("message", "ä")]);
        assert_eq!(read(&[text]).unwrap(), expected);
        let bytes: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(read(&bytes).unwrap(), expected);
    }

    /// Rule: every size has a limit.
    #[test]
    fn an_event_without_end_is_refused() {
        let line = [b'x'; 65];
        assert_eq!(read(&[b"data: ", &line]), Err(BadFrame::TooLarge { max: 64 }));
        let lines: Vec<&[u8]> = std::iter::repeat_n(&b"data: 0123456789\n"[..], 7).collect();
        assert_eq!(read(&lines), Err(BadFrame::TooLarge { max: 64 }));
        assert_eq!(read(&[b"data: \xff\n\n"]), Err(BadFrame::NotText));
    }
}
