//! Lossless chunks as everyone hears them who may: kept for a moment, numbered without gaps, cut
//! into pieces that a subscriber's queue can hold.
//!
//! Invariants:
//! * A chunk never waits for a reader: the oldest ones make room.
//! * What a chunk counts does not depend on who listens.

use std::collections::VecDeque;
use std::sync::Arc;

use ringback_proto::StreamChunk;
use ringback_proto::chunk::{Delivery, MidiEvent};
use ringback_proto::data::Data;
use ringback_proto::event::{SequencedData, StreamData};
use ringback_proto::ids::{ProjectId, StreamId};
use ringback_proto::principal::PrincipalId;

use crate::policy::Visibility;
use crate::time::Now;

/// The bytes of a piece. The library queues a thousand messages for a subscriber that does not
/// read, so this decides how much memory one can hold: 32 MiB.
const PIECE_BYTES: usize = 32 << 10;
/// The bytes of chunks that readers have yet to take; the newest chunk always has room.
const RING_BYTES: usize = 8 << 20;
/// The chunks of a few bytes each that readers have yet to take.
const RING_CHUNKS: usize = 4096;
/// The bytes of one 32-bit sample.
const SAMPLE_BYTES: usize = 4;

/// A chunk to publish.
#[derive(Debug)]
pub struct NewData {
    /// The stream.
    pub stream_id: StreamId,
    /// The number of the chunk's first piece in the stream.
    pub first: u64,
    /// The chunk.
    pub chunk: StreamChunk,
    /// The owner of the call.
    pub owner: PrincipalId,
    /// The project of the call.
    pub project: Option<ProjectId>,
}

/// A chunk of a stream with its position.
#[derive(Debug)]
pub struct PublishedData {
    /// What was published.
    new: NewData,
    /// Counts all chunks of all streams.
    number: u64,
    epoch: u64,
    seq: u64,
    at_ms: u64,
}

impl PublishedData {
    /// Returns its number among the chunks of all streams.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// Returns the number of the last event before it.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the stream.
    #[must_use]
    pub const fn stream_id(&self) -> StreamId {
        self.new.stream_id
    }

    /// Returns whether a principal with this sight may hear it.
    #[must_use]
    pub fn is_visible(&self, sight: &Visibility) -> bool {
        sight.includes(self.new.owner, self.new.project)
    }

    /// Returns its pieces, in order.
    pub fn pieces(&self) -> impl Iterator<Item = SequencedData> {
        let cuts = cuts(&self.new.chunk);
        (self.new.first..).zip(cuts).map(|(topic_seq, cut)| SequencedData {
            epoch: self.epoch,
            seq: self.seq,
            topic_seq,
            at_ms: self.at_ms,
            event: StreamData::Chunk {
                stream_id: self.new.stream_id,
                chunk: piece(&self.new.chunk, cut),
            },
        })
    }
}

/// The last chunks of all streams.
#[derive(Debug, Default)]
pub struct DataRing {
    kept: VecDeque<Arc<PublishedData>>,
    n_bytes: usize,
    last: u64,
}

impl DataRing {
    /// Adds a chunk.
    pub(crate) fn push(&mut self, new: NewData, epoch: u64, seq: u64, now: Now) {
        self.n_bytes += new.chunk.weight();
        self.last += 1;
        let published = PublishedData { new, number: self.last, epoch, seq, at_ms: now.unix };
        self.kept.push_back(Arc::new(published));
        while self.kept.len() > 1 && (self.n_bytes > RING_BYTES || self.kept.len() > RING_CHUNKS) {
            if let Some(oldest) = self.kept.pop_front() {
                self.n_bytes -= oldest.new.chunk.weight();
            }
        }
    }

    /// Returns the number of the last chunk.
    pub(crate) const fn last(&self) -> u64 {
        self.last
    }

    /// Returns the chunks after a number that were published before any event after `seq`.
    pub(crate) fn after(&self, number: u64, seq: u64) -> Vec<Arc<PublishedData>> {
        let n_new = usize::try_from(self.last.saturating_sub(number)).unwrap_or(usize::MAX);
        let n_skipped = self.kept.len().saturating_sub(n_new);
        let new = self.kept.iter().skip(n_skipped);
        new.take_while(|data| data.seq <= seq).cloned().collect()
    }

    /// Forgets all chunks: no one listens any more.
    pub(crate) fn clear(&mut self) {
        self.kept = VecDeque::new();
        self.n_bytes = 0;
    }
}

/// Returns how many pieces a lossless chunk has; other chunks have none.
#[must_use]
pub fn n_pieces(chunk: &StreamChunk) -> u64 {
    match chunk.delivery() {
        Delivery::Lossless => cuts(chunk).count() as u64,
        Delivery::Latest | Delivery::DropOldest => 0,
    }
}

/// A part of a chunk: bytes of audio and content, events of MIDI.
type Cut = std::ops::Range<usize>;

/// Returns where a lossless chunk is cut; an empty one is a piece too.
fn cuts(chunk: &StreamChunk) -> Box<dyn Iterator<Item = Cut> + Send + '_> {
    match chunk {
        StreamChunk::PartialAudio { samples, channels, .. } => {
            // Between two frames, so that each piece is sound by itself.
            let frame = SAMPLE_BYTES * usize::from(*channels).max(1);
            Box::new(even_cuts(samples.0.len(), (PIECE_BYTES / frame).max(1) * frame))
        }
        StreamChunk::PartialContent { data, .. } => Box::new(even_cuts(data.0.len(), PIECE_BYTES)),
        StreamChunk::PartialMidi { events } => Box::new(cuts_of_events(events)),
        StreamChunk::Progress { .. } | StreamChunk::LogLine { .. } => {
            Box::new(std::iter::once(0..0))
        }
    }
}

fn even_cuts(n_bytes: usize, step: usize) -> impl Iterator<Item = Cut> {
    (0..n_bytes.max(1)).step_by(step).map(move |start| start..(start + step).min(n_bytes))
}

/// Cuts before the event that would make a piece too large.
fn cuts_of_events(events: &[MidiEvent]) -> impl Iterator<Item = Cut> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let start = next?;
        let mut n_bytes = 0;
        let is_too_much = |event: &MidiEvent| {
            n_bytes += event.weight();
            n_bytes > PIECE_BYTES
        };
        let found = events[start..].iter().position(is_too_much);
        let end = found.map_or(events.len(), |n_events| start + n_events.max(1));
        next = (end < events.len()).then_some(end);
        Some(start..end)
    })
}

fn piece(chunk: &StreamChunk, cut: Cut) -> StreamChunk {
    match chunk {
        StreamChunk::PartialAudio { samples, sample_rate, channels } => StreamChunk::PartialAudio {
            samples: Data(samples.0.slice(cut)),
            sample_rate: *sample_rate,
            channels: *channels,
        },
        StreamChunk::PartialContent { data, mime_type } => StreamChunk::PartialContent {
            data: Data(data.0.slice(cut)),
            mime_type: mime_type.clone(),
        },
        StreamChunk::PartialMidi { events } => {
            StreamChunk::PartialMidi { events: events[cut].to_vec() }
        }
        StreamChunk::Progress { .. } | StreamChunk::LogLine { .. } => chunk.clone(),
    }
}

#[cfg(test)]
mod tests {
    use ringback_proto::ids::TokenId;

    use super::*;

    const NOW: Now = Now { mono: 0, unix: 7 };
    const OWNER: PrincipalId = PrincipalId::Token(TokenId::from_random([1; 16]));

    fn audio(n_bytes: usize, channels: u8) -> StreamChunk {
        let bytes: Vec<_> = (0..n_bytes).map(|index| (index % 251) as u8).collect();
        StreamChunk::PartialAudio { samples: Data::from(bytes), sample_rate: 48_000, channels }
    }

    fn midi(sizes: &[usize]) -> StreamChunk {
        let event = |(tick, len): (usize, &usize)| MidiEvent {
            tick: tick as u64,
            data: Data::from(vec![0x90; *len]),
        };
        StreamChunk::PartialMidi { events: sizes.iter().enumerate().map(event).collect() }
    }

    fn new(first: u64, chunk: StreamChunk) -> NewData {
        let stream_id = StreamId::from_random([2; 16]);
        NewData { stream_id, first, chunk, owner: OWNER, project: None }
    }

    fn pieces(chunk: StreamChunk) -> Vec<StreamChunk> {
        let mut ring = DataRing::default();
        ring.push(new(1, chunk), 3, 0, NOW);
        let published = ring.after(0, 0).remove(0);
        let pieces: Vec<_> = published.pieces().collect();
        assert!(pieces.iter().map(|piece| piece.topic_seq).eq(1..=pieces.len() as u64));
        let chunk_of = |piece: SequencedData| {
            let StreamData::Chunk { chunk, .. } = piece.event;
            chunk
        };
        pieces.into_iter().map(chunk_of).collect()
    }

    /// Rule: the pieces of a chunk are the chunk, each whole and small, and count the same whether
    /// or not anyone listens.
    #[test]
    fn a_chunk_is_cut_into_small_pieces_that_are_the_same_sound() {
        for (n_bytes, channels) in [(0, 2), (8, 2), (PIECE_BYTES, 2), (1 << 20, 2), (999_996, 3)] {
            let chunk = audio(n_bytes, channels);
            let pieces = pieces(chunk.clone());
            assert_eq!(pieces.len() as u64, n_pieces(&chunk));
            let mut bytes = Vec::new();
            for piece in pieces {
                let StreamChunk::PartialAudio { samples, .. } = piece else { panic!("{piece:?}") };
                assert_eq!(samples.0.len() % (4 * usize::from(channels)), 0);
                assert!(samples.0.len() <= PIECE_BYTES);
                bytes.extend_from_slice(&samples.0);
            }
            let StreamChunk::PartialAudio { samples, .. } = chunk else { unreachable!() };
            assert_eq!(samples.0, bytes);
        }
        let odd = audio(100_001, 0);
        assert_eq!(pieces(odd.clone()).iter().map(StreamChunk::weight).sum::<usize>(), 100_001);
        assert_eq!(n_pieces(&odd), 4);
    }

    #[test]
    fn events_of_midi_are_never_cut_apart() {
        for sizes in [&[][..], &[3; 10], &[3; 30_000], &[100_000, 1, 100_000], &[30_000, 30_000]] {
            let chunk = midi(sizes);
            let pieces = pieces(chunk.clone());
            assert_eq!(pieces.len() as u64, n_pieces(&chunk));
            let mut all = Vec::new();
            for piece in pieces {
                let is_small = piece.weight() <= PIECE_BYTES;
                let StreamChunk::PartialMidi { events } = piece else { panic!("{piece:?}") };
                assert!(is_small || events.len() == 1);
                all.extend(events);
            }
            assert_eq!(StreamChunk::PartialMidi { events: all }, chunk);
        }
    }

    /// Rule: a reader that does not read misses chunks and holds no one up, and no memory.
    #[test]
    fn a_reader_that_lags_loses_the_oldest_and_sees_it_by_their_numbers() {
        let mut ring = DataRing::default();
        for number in 1..=100 {
            ring.push(new(number, audio(1 << 20, 2)), 3, 0, NOW);
        }
        let kept = ring.after(0, 0);
        assert_eq!(
            kept.iter().map(|data| data.new.first).collect::<Vec<_>>(),
            Vec::from_iter(93..=100)
        );
        assert_eq!(ring.after(99, 0).len(), 1);
        assert_eq!(ring.after(100, 0).len(), 0);
        ring.push(new(101, audio(64 << 20, 2)), 3, 0, NOW);
        assert_eq!(ring.after(0, 0).len(), 1, "the newest always has room");
        for number in 0..10_000 {
            ring.push(new(number, audio(0, 2)), 3, 0, NOW);
        }
        assert_eq!(ring.kept.len(), RING_CHUNKS);
    }

    #[test]
    fn a_chunk_comes_after_the_events_before_it() {
        let mut ring = DataRing::default();
        for seq in [4, 4, 5, 9] {
            ring.push(new(1, audio(4, 1)), 3, seq, NOW);
        }
        assert_eq!(ring.after(0, 3).len(), 0);
        assert_eq!(ring.after(0, 4).len(), 2);
        assert_eq!(ring.after(2, 8).len(), 1);
        assert_eq!(ring.after(0, 9).len(), 4);
    }
}
