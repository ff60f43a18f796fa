//! Messages out of a stream of bytes, one per line, each of bounded length.

/// How much of a line that is too long is shown: enough to identify it.
const START_BYTES: usize = 512;
/// The room for one read.
const READ_BYTES: usize = 16 * 1024;
/// A buffer that grew beyond this for one line is released.
const KEPT_BYTES: usize = 64 * 1024;

/// Bytes as they arrive, and the lines in them. A reader appends bytes to [`Self::room`] and then
/// takes lines until there are no more.
#[derive(Debug)]
pub struct Lines {
    bytes_max: usize,
    buffer: Vec<u8>,
    /// Where the next line starts.
    start: usize,
    /// Everything before this has no line end.
    scanned: usize,
    /// Whether the rest of a line that was too long is still to come.
    is_skipping: bool,
}

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// Without its end.
    Whole(&'a [u8]),
    /// The start of one that is too long; the rest is not kept.
    TooLong(&'a [u8]),
}

/// Where a line is in the buffer.
struct LineSpan {
    from: usize,
    to: usize,
    is_whole: bool,
}

impl Lines {
    /// Creates an empty buffer; a line has at most `bytes_max` bytes.
    #[must_use]
    pub const fn new(bytes_max: usize) -> Self {
        Self { bytes_max, buffer: Vec::new(), start: 0, scanned: 0, is_skipping: false }
    }

    /// The buffer to append the next bytes to.
    pub fn room(&mut self) -> &mut Vec<u8> {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > KEPT_BYTES {
            self.buffer = Vec::new();
        }
        self.buffer.reserve(READ_BYTES);
        &mut self.buffer
    }

    /// Returns the next complete line. Empty lines are skipped.
    pub fn pop(&mut self) -> Option<Line<'_>> {
        let found = self.find()?;
        Some(self.line(&found))
    }

    /// Returns the unterminated rest at the end.
    pub fn rest(&mut self) -> Option<Line<'_>> {
        let found = LineSpan { from: self.start, to: self.buffer.len(), is_whole: true };
        self.start = self.buffer.len();
        let is_text = !self.is_skipping && !self.buffer[found.from..].trim_ascii().is_empty();
        if is_text { Some(self.line(&found)) } else { None }
    }

    fn line(&self, found: &LineSpan) -> Line<'_> {
        let bytes = &self.buffer[found.from..found.to];
        if found.is_whole {
            return Line::Whole(bytes.trim_ascii());
        }
        Line::TooLong(&bytes[..bytes.len().min(START_BYTES)])
    }

    fn find(&mut self) -> Option<LineSpan> {
        loop {
            let from = self.start;
            let end = memchr::memchr(b'\n', &self.buffer[self.scanned..]);
            let to = end.map_or(self.buffer.len(), |at| self.scanned + at);
            let was_skipping = self.is_skipping;
            let is_too_long = to - from > self.bytes_max;
            self.scanned = to + usize::from(end.is_some());
            if end.is_some() || is_too_long || was_skipping {
                self.start = self.scanned;
                self.is_skipping = end.is_none();
            }
            match (end, was_skipping) {
                (None, true) => return None,
                (None, false) if !is_too_long => return None,
                (Some(_), true) => {}
                (Some(_), false) if self.buffer[from..to].trim_ascii().is_empty() => {}
                (Some(_) | None, false) => {
                    return Some(LineSpan { from, to, is_whole: !is_too_long });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All lines of a text that arrives in pieces of `step` bytes; one too long is its start and
    /// `!`.
    fn lines(text: &str, step: usize) -> Vec<String> {
        let mut all = Vec::new();
        let mut lines = Lines::new(8);
        for piece in text.as_bytes().chunks(step) {
            lines.room().extend_from_slice(piece);
            while let Some(line) = lines.pop() {
                all.push(shown(&line));
            }
        }
        all.extend(lines.rest().as_ref().map(shown));
        all
    }

    fn shown(line: &Line<'_>) -> String {
        match line {
            Line::Whole(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            Line::TooLong(start) => format!("{}!", String::from_utf8_lossy(&start[..4])),
        }
    }

    /// Rule: lines are found however their bytes are cut, and one that is too long is reported
    /// once.
    #[test]
    fn lines_are_found_however_their_bytes_are_cut() {
        let text = "one\r\n\n  \n12345678\nthis is too long\ntwo\nthis is also too long\nend";
        let expected = ["one", "12345678", "this!", "two", "this!", "end"];
        for step in 1..=text.len() {
            assert_eq!(lines(text, step), expected, "pieces of {step}");
        }
    }

    #[test]
    fn the_rest_of_a_line_that_is_too_long_is_no_line() {
        for step in [1, 7, 100] {
            assert_eq!(lines("this is too long", step), ["this!"], "pieces of {step}");
        }
    }
}
