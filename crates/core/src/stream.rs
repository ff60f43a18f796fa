//! The buffer of a stream whose reader is slower than the work: the latest progress, the newest log
//! lines, and every lossless chunk, for which the work waits.

use std::collections::VecDeque;

use ringback_proto::StreamChunk;
use ringback_proto::chunk::{Delivery, FIRST_CREDIT, LogLevel};

use crate::time::{MonoMs, Now};

/// Lossless bytes buffered in the daemon before the work has to wait: one more chunk of a second of
/// stereo audio fits.
const LOSSLESS_WAITING_MAX: usize = 512 * 1024;
/// Lossless bytes of a party that sends on credit and that have yet to be passed on: what the first
/// credit lets flow in chunks of ten bytes, with what each takes in memory.
const PARTY_WAITING_MAX: usize = 8 << 20;
/// What a chunk takes in memory in addition to its bytes.
const CHUNK_BYTES: usize = 64;
/// Buffered log lines; older ones are dropped and counted.
const LOG_LINES_MAX: usize = 256;
/// A reader that grants no credit for this long is not coming back soon.
const STALL_MS: u64 = 30_000;

/// What happened to a chunk.
#[derive(Debug, PartialEq)]
pub enum PushOutcome {
    /// It is queued, or replaced an older one.
    Taken,
    /// The buffer for lossless chunks is full: try again when the reader has moved on.
    Wait(StreamChunk),
    /// The stream has ended; the work continues without it.
    Closed,
}

/// What a reader gets.
#[derive(Debug, PartialEq)]
pub enum PopOutcome {
    /// The next chunk.
    Chunk(StreamChunk),
    /// Nothing yet.
    Nothing,
    /// The reader stalled for too long.
    Lagged,
    /// Everything was read, and no more will follow.
    End,
}

/// The chunks between the work and one reader.
#[derive(Debug)]
pub struct ChunkBuffer {
    next_number: u64,
    progress: Option<(u64, StreamChunk)>,
    log_lines: VecDeque<(u64, StreamChunk)>,
    n_lines_dropped: u64,
    lossless: VecDeque<(u64, StreamChunk)>,
    lossless_waiting: usize,
    lossless_waiting_max: usize,
    /// Lossless bytes the reader still accepts.
    credit: u64,
    stalled_since: Option<MonoMs>,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Open,
    Finished,
    Lagged,
}

impl Default for ChunkBuffer {
    fn default() -> Self {
        Self {
            next_number: 0,
            progress: None,
            log_lines: VecDeque::new(),
            n_lines_dropped: 0,
            lossless: VecDeque::new(),
            lossless_waiting: 0,
            lossless_waiting_max: LOSSLESS_WAITING_MAX,
            credit: FIRST_CREDIT,
            stalled_since: None,
            state: State::Open,
        }
    }
}

impl ChunkBuffer {
    /// Makes the buffer between a party that sends on credit and the stream of its caller, whose
    /// pace decides the credit. It is full only for a party that sends without credit.
    #[must_use]
    pub fn of_party() -> Self {
        Self { credit: u64::MAX, lossless_waiting_max: PARTY_WAITING_MAX, ..Self::default() }
    }

    /// Adds a chunk from the work.
    pub fn push(&mut self, chunk: StreamChunk) -> PushOutcome {
        if self.state != State::Open {
            return PushOutcome::Closed;
        }
        if chunk.delivery() == Delivery::Lossless
            && self.lossless_waiting >= self.lossless_waiting_max
        {
            return PushOutcome::Wait(chunk);
        }
        self.next_number += 1;
        let numbered = (self.next_number, chunk);
        match numbered.1.delivery() {
            Delivery::Latest => self.progress = Some(numbered),
            Delivery::DropOldest => {
                if self.log_lines.len() == LOG_LINES_MAX {
                    self.log_lines.pop_front();
                    self.n_lines_dropped += 1;
                }
                self.log_lines.push_back(numbered);
            }
            Delivery::Lossless => {
                self.lossless_waiting += numbered.1.weight() + CHUNK_BYTES;
                self.lossless.push_back(numbered);
            }
        }
        PushOutcome::Taken
    }

    /// Ends the work; buffered chunks can still be read.
    pub fn finish(&mut self) {
        if self.state == State::Open {
            self.state = State::Finished;
        }
    }

    /// Adds to the lossless bytes the reader accepts.
    pub fn add_credit(&mut self, bytes: u64) {
        self.credit = self.credit.saturating_add(bytes);
        self.stalled_since = None;
    }

    /// Returns the next chunk for the reader, in order. Progress and log lines overtake lossless
    /// chunks that wait for credit.
    pub fn pop(&mut self, now: Now) -> PopOutcome {
        if self.state == State::Lagged {
            return PopOutcome::Lagged;
        }
        if self.n_lines_dropped > 0 {
            let n_lines = std::mem::take(&mut self.n_lines_dropped);
            let message = format!("{n_lines} log lines were dropped: the reader was too slow");
            return PopOutcome::Chunk(StreamChunk::LogLine { level: LogLevel::Warn, message });
        }
        let number = |head: Option<&(u64, StreamChunk)>| head.map_or(u64::MAX, |head| head.0);
        let progress = number(self.progress.as_ref());
        let log_line = number(self.log_lines.front());
        let lossless = if self.credit > 0 { number(self.lossless.front()) } else { u64::MAX };
        let next = match progress.min(log_line).min(lossless) {
            u64::MAX => return self.nothing_to_send(now),
            next if next == progress => self.progress.take(),
            next if next == log_line => self.log_lines.pop_front(),
            _ => self.pop_lossless(),
        };
        next.map_or(PopOutcome::Nothing, |(_, chunk)| PopOutcome::Chunk(chunk))
    }

    fn pop_lossless(&mut self) -> Option<(u64, StreamChunk)> {
        let next = self.lossless.pop_front()?;
        let weight = next.1.weight();
        self.lossless_waiting -= weight + CHUNK_BYTES;
        // A chunk larger than the remaining credit is still sent: credit slows down, it does not
        // split chunks.
        self.credit = self.credit.saturating_sub(weight as u64);
        Some(next)
    }

    fn nothing_to_send(&mut self, now: Now) -> PopOutcome {
        if self.lossless.is_empty() {
            return if self.state == State::Finished {
                PopOutcome::End
            } else {
                PopOutcome::Nothing
            };
        }
        let since = *self.stalled_since.get_or_insert(now.mono);
        if now.mono.saturating_sub(since) < STALL_MS {
            return PopOutcome::Nothing;
        }
        *self = Self { state: State::Lagged, ..Self::default() };
        PopOutcome::Lagged
    }

    /// Returns when a stalled reader is given up.
    #[must_use]
    pub fn stall_deadline(&self) -> Option<MonoMs> {
        self.stalled_since.map(|since| since.saturating_add(STALL_MS))
    }
}

#[cfg(test)]
mod tests {
    use ringback_proto::data::Data;

    use super::*;

    const NOW: Now = Now { mono: 0, unix: 0 };

    fn progress(percent: f32) -> StreamChunk {
        StreamChunk::Progress { percent, message: String::new() }
    }

    fn line(number: usize) -> StreamChunk {
        StreamChunk::LogLine { level: LogLevel::Info, message: number.to_string() }
    }

    fn audio(len: usize) -> StreamChunk {
        let samples = Data::from(vec![0; len]);
        StreamChunk::PartialAudio { samples, sample_rate: 48_000, channels: 2 }
    }

    fn drain(buffer: &mut ChunkBuffer) -> Vec<StreamChunk> {
        std::iter::from_fn(|| match buffer.pop(NOW) {
            PopOutcome::Chunk(chunk) => Some(chunk),
            PopOutcome::Nothing | PopOutcome::Lagged | PopOutcome::End => None,
        })
        .collect()
    }

    #[test]
    fn only_the_latest_progress_is_kept_and_order_holds_between_kinds() {
        let mut buffer = ChunkBuffer::default();
        for chunk in [progress(1.0), line(1), progress(2.0), audio(8), line(2)] {
            assert_eq!(buffer.push(chunk), PushOutcome::Taken);
        }
        assert_eq!(drain(&mut buffer), [line(1), progress(2.0), audio(8), line(2)]);
        assert_eq!(buffer.pop(NOW), PopOutcome::Nothing);
        buffer.finish();
        assert_eq!(buffer.pop(NOW), PopOutcome::End);
        assert_eq!(buffer.push(line(3)), PushOutcome::Closed);
    }

    #[test]
    fn dropped_log_lines_are_counted() {
        let mut buffer = ChunkBuffer::default();
        for number in 0..LOG_LINES_MAX + 5 {
            assert_eq!(buffer.push(line(number)), PushOutcome::Taken);
        }
        let read = drain(&mut buffer);
        assert!(
            matches!(&read[0], StreamChunk::LogLine { message, .. } if message.starts_with("5 "))
        );
        assert_eq!(read[1], line(5));
        assert_eq!(read.len(), LOG_LINES_MAX + 1);
    }

    #[test]
    fn lossless_chunks_wait_for_credit_and_none_is_lost() {
        let mut buffer = ChunkBuffer::default();
        let chunk = 256 * 1024;
        let mut n_read = 0;
        let mut n_pushed = 0;
        while n_pushed < 20 {
            match buffer.push(audio(chunk)) {
                PushOutcome::Taken => n_pushed += 1,
                PushOutcome::Wait(_) => {
                    let read = drain(&mut buffer).len();
                    if read == 0 {
                        buffer.add_credit(chunk as u64);
                    }
                    n_read += read;
                }
                PushOutcome::Closed => panic!("the reader has not stalled"),
            }
            assert!(buffer.lossless_waiting <= LOSSLESS_WAITING_MAX + chunk);
        }
        buffer.add_credit(u64::MAX);
        assert_eq!(n_read + drain(&mut buffer).len(), 20);
    }

    /// Rule: a party that keeps to its credit never fills the buffer, even with the smallest events of
    /// MIDI; one that does not is noticed.
    #[test]
    fn a_party_within_its_credit_always_has_room() {
        for len in [10, 11, 4096, FIRST_CREDIT as usize - 1] {
            let mut buffer = ChunkBuffer::of_party();
            let mut sent = 0;
            while sent < FIRST_CREDIT as usize {
                assert_eq!(buffer.push(audio(len)), PushOutcome::Taken, "{sent} of {len}");
                sent += len;
            }
        }
        let mut buffer = ChunkBuffer::of_party();
        let n_taken = (0..20).take_while(|_| buffer.push(audio(1 << 20)) == PushOutcome::Taken);
        assert_eq!(n_taken.count(), 8);
        assert_eq!(drain(&mut buffer).len(), 8);
    }

    #[test]
    fn a_reader_without_credit_still_gets_progress_and_lags_only_after_a_stall() {
        let mut buffer = ChunkBuffer::default();
        buffer.push(audio(FIRST_CREDIT as usize));
        assert_eq!(drain(&mut buffer).len(), 1);
        buffer.push(audio(1));
        buffer.push(progress(50.0));
        assert_eq!(drain(&mut buffer), [progress(50.0)]);
        let later = |ms| Now { mono: ms, unix: 0 };
        assert_eq!(buffer.pop(later(STALL_MS - 1)), PopOutcome::Nothing);
        assert_eq!(buffer.stall_deadline(), Some(STALL_MS));
        assert_eq!(buffer.pop(later(STALL_MS)), PopOutcome::Lagged);
        assert_eq!(buffer.push(audio(1)), PushOutcome::Closed);
        assert_eq!(buffer.pop(later(STALL_MS)), PopOutcome::Lagged);
    }
}
