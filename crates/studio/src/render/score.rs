//! A MIDI file as a list of timed messages, in seconds.

use std::collections::BTreeMap;

use midly::{EventIter, Format, MetaMessage, MidiMessage, Timing, TrackEventKind};

/// The largest MIDI file that is read: ten times a long symphony.
pub const MIDI_BYTES_MAX: usize = 16 << 20;

/// Microseconds per quarter note of a file without a tempo.
const DEFAULT_TEMPO_US: u32 = 500_000;

/// The bytes of a chunk's name and length.
const CHUNK_HEAD_BYTES: usize = 8;

/// Why a MIDI file cannot be played.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ScoreError {
    /// It is too large.
    #[error("the MIDI file has {bytes} bytes, the limit is {MIDI_BYTES_MAX}")]
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// It violates the format.
    #[error("not a valid MIDI file: {what}, at byte {at}")]
    Malformed {
        /// The place.
        at: usize,
        /// What is wrong there.
        what: &'static str,
    },
    /// Its ticks are parts of a second.
    #[error(
        "the MIDI file counts in film time, which follows no tempo; save it with ticks per quarter \
         note"
    )]
    FilmTime,
    /// Independent sequences.
    #[error("the MIDI file has format 2 (independent sequences); save it as format 0 or 1")]
    Format2,
}

/// A channel message and its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedMessage {
    /// Seconds from the start.
    pub at: f64,
    /// 0 to 15.
    pub channel: u8,
    /// The status without the channel: `0x80` to `0xE0`.
    pub status: u8,
    /// The first data byte.
    pub data1: u8,
    /// The second data byte, 0 without one.
    pub data2: u8,
}

/// A note from its start to its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Note {
    /// Seconds from the start.
    pub at: f64,
    /// How long it is held, in seconds.
    pub seconds: f64,
    /// 0 to 15.
    pub channel: u8,
    /// 60 is middle C.
    pub key: u8,
    /// 1 to 127.
    pub velocity: u8,
}

/// A MIDI file as a list of timed messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Score {
    /// Channel messages in order.
    pub messages: Vec<TimedMessage>,
    /// The end of the last track.
    pub seconds: f64,
    /// The number of tracks.
    pub n_tracks: usize,
}

/// A relevant event of a track, at its tick.
pub(super) enum Event {
    Message { channel: u8, status: u8, data1: u8, data2: u8 },
    Tempo(u32),
}

impl Score {
    /// Reads a file of format 0 or 1.
    ///
    /// # Errors
    /// If the file is too large, damaged, or has format 2.
    pub fn read(bytes: &[u8]) -> Result<Self, ScoreError> {
        let Events { timing, events, n_tracks, last_tick } = read_events(bytes)?;
        let mut clock = Clock::new(timing)?;
        let mut messages = Vec::with_capacity(events.len());
        for (tick, event) in events {
            let at = clock.advance(tick);
            match event {
                Event::Tempo(tempo_us) => clock.set_tempo(tempo_us),
                Event::Message { channel, status, data1, data2 } => {
                    messages.push(TimedMessage { at, channel, status, data1, data2 });
                }
            }
        }
        Ok(Self { messages, seconds: clock.advance(last_tick), n_tracks })
    }

    /// Returns the notes by start. A note that is never ended lasts to the end; one that is struck
    /// again while it sounds ends there.
    #[must_use]
    pub fn notes(&self) -> Vec<Note> {
        let mut open: BTreeMap<(u8, u8), usize> = BTreeMap::new();
        let mut notes: Vec<Note> = Vec::new();
        for message in &self.messages {
            let TimedMessage { at, channel, status, data1: key, data2: velocity } = *message;
            let starts = status == 0x90 && velocity > 0;
            if !starts && status != 0x80 && status != 0x90 {
                continue;
            }
            if let Some(idx) = open.remove(&(channel, key)) {
                notes[idx].seconds = at - notes[idx].at;
            }
            if starts {
                open.insert((channel, key), notes.len());
                notes.push(Note { at, seconds: 0.0, channel, key, velocity });
            }
        }
        for idx in open.into_values() {
            notes[idx].seconds = self.seconds - notes[idx].at;
        }
        notes
    }
}

/// The events of all tracks, by tick.
pub(super) struct Events {
    pub(super) timing: Timing,
    pub(super) events: Vec<(u64, Event)>,
    pub(super) n_tracks: usize,
    pub(super) last_tick: u64,
}

/// Reads a file of format 0 or 1.
pub(super) fn read_events(bytes: &[u8]) -> Result<Events, ScoreError> {
    if bytes.len() > MIDI_BYTES_MAX {
        return Err(ScoreError::TooLarge { bytes: bytes.len() });
    }
    check_chunks(bytes)?;
    let malformed = |what| ScoreError::Malformed { at: 0, what };
    let (header, tracks) =
        midly::parse(bytes).map_err(|_| malformed("the header makes no sense"))?;
    if header.format == Format::Sequential {
        return Err(ScoreError::Format2);
    }
    let mut events = Vec::new();
    let (mut n_tracks, mut last_tick) = (0, 0);
    for track in tracks {
        let track = track.map_err(|_| malformed("a track cannot be read"))?;
        last_tick = last_tick.max(read_track(bytes, track, &mut events)?);
        n_tracks += 1;
    }
    // Stable: events of a track at the same tick keep their order.
    events.sort_by_key(|(tick, _)| *tick);
    Ok(Events { timing: header.timing, events, n_tracks, last_tick })
}

/// Reports chunks beyond the end of the file, which the reader drops silently.
fn check_chunks(bytes: &[u8]) -> Result<(), ScoreError> {
    if !bytes.starts_with(b"MThd") {
        return Err(ScoreError::Malformed { at: 0, what: "it does not start with `MThd`" });
    }
    let (mut at, mut n_tracks) = (0, 0);
    // Less than a chunk's head at the end is padding that some programs write.
    while let Some(head) = bytes.get(at..at + CHUNK_HEAD_BYTES) {
        let size = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize;
        if bytes.len() - at - CHUNK_HEAD_BYTES < size {
            return Err(ScoreError::Malformed { at, what: "a chunk is longer than the file" });
        }
        n_tracks += usize::from(head.starts_with(b"MTrk"));
        at += CHUNK_HEAD_BYTES + size;
    }
    if n_tracks == 0 {
        return Err(ScoreError::Malformed { at, what: "it has no track" });
    }
    Ok(())
}

/// Adds a track's events and returns the tick of its end.
fn read_track(
    file: &[u8],
    mut track: EventIter<'_>,
    events: &mut Vec<(u64, Event)>,
) -> Result<u64, ScoreError> {
    let mut tick = 0_u64;
    loop {
        let unread = track.unread();
        if !unread.is_empty() && !is_whole(unread) {
            return Err(bad_event(file, unread));
        }
        let Some(event) = track.next() else {
            return if unread.is_empty() { Ok(tick) } else { Err(bad_event(file, unread)) };
        };
        let event = event.map_err(|_| bad_event(file, unread))?;
        tick += u64::from(event.delta.as_int());
        match event.kind {
            TrackEventKind::Midi { channel, message } => {
                let (status, data1, data2) = raw(message);
                let channel = channel.as_int();
                events.push((tick, Event::Message { channel, status, data1, data2 }));
            }
            TrackEventKind::Meta(MetaMessage::Tempo(tempo_us)) => {
                events.push((tick, Event::Tempo(tempo_us.as_int())));
            }
            TrackEventKind::Meta(MetaMessage::EndOfTrack) => return Ok(tick),
            TrackEventKind::Meta(_) | TrackEventKind::SysEx(_) | TrackEventKind::Escape(_) => {}
        }
    }
}

/// Returns whether the announced data of the next event is there: the reader would accept less.
fn is_whole(unread: &[u8]) -> bool {
    let Some((_, event)) = number(unread) else { return false };
    match event {
        [0xFF, _, content @ ..] | [0xF0 | 0xF7, content @ ..] => {
            number(content).is_some_and(|(length, content)| content.len() >= length)
        }
        _ => true,
    }
}

/// Reads a number of up to four bytes, each but the last with its top bit set, and returns the
/// remaining bytes.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut number = 0;
    for (idx, byte) in bytes.iter().enumerate().take(4) {
        number = number << 7 | usize::from(byte & 0x7F);
        if byte & 0x80 == 0 {
            return Some((number, &bytes[idx + 1..]));
        }
    }
    None
}

fn bad_event(file: &[u8], unread: &[u8]) -> ScoreError {
    let at = (unread.as_ptr() as usize).saturating_sub(file.as_ptr() as usize);
    ScoreError::Malformed { at, what: "an event is cut off or makes no sense" }
}

fn raw(message: MidiMessage) -> (u8, u8, u8) {
    match message {
        MidiMessage::NoteOff { key, vel } => (0x80, key.as_int(), vel.as_int()),
        MidiMessage::NoteOn { key, vel } => (0x90, key.as_int(), vel.as_int()),
        MidiMessage::Aftertouch { key, vel } => (0xA0, key.as_int(), vel.as_int()),
        MidiMessage::Controller { controller, value } => {
            (0xB0, controller.as_int(), value.as_int())
        }
        MidiMessage::ProgramChange { program } => (0xC0, program.as_int(), 0),
        MidiMessage::ChannelAftertouch { vel } => (0xD0, vel.as_int(), 0),
        MidiMessage::PitchBend { bend } => {
            let bend = bend.0.as_int();
            (0xE0, (bend & 0x7F) as u8, (bend >> 7) as u8)
        }
    }
}

/// Converts ticks to seconds, through the changes of tempo.
struct Clock {
    ticks_per_quarter: Option<f64>,
    seconds_per_tick: f64,
    tick: u64,
    seconds: f64,
}

impl Clock {
    fn new(timing: Timing) -> Result<Self, ScoreError> {
        let (ticks_per_quarter, seconds_per_tick) = match timing {
            Timing::Metrical(ticks) => (Some(f64::from(ticks.as_int())), 0.0),
            Timing::Timecode(fps, subframe) => {
                (None, 1.0 / (f64::from(fps.as_f32()) * f64::from(subframe)))
            }
        };
        let mut clock = Self { ticks_per_quarter, seconds_per_tick, tick: 0, seconds: 0.0 };
        clock.set_tempo(DEFAULT_TEMPO_US);
        if !clock.seconds_per_tick.is_finite() {
            return Err(ScoreError::Malformed { at: 12, what: "a quarter note has no ticks" });
        }
        Ok(clock)
    }

    fn set_tempo(&mut self, tempo_us: u32) {
        if let Some(ticks) = self.ticks_per_quarter {
            self.seconds_per_tick = f64::from(tempo_us) / 1e6 / ticks;
        }
    }

    /// Returns the time of a tick that is not before the previous one.
    fn advance(&mut self, tick: u64) -> f64 {
        self.seconds += (tick - self.tick) as f64 * self.seconds_per_tick;
        self.tick = tick;
        self.seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a file with one track; each event is a delta of less than 128 ticks and raw bytes.
    fn file(ticks: u16, events: &[(u8, &[u8])]) -> Vec<u8> {
        let mut track = Vec::new();
        for (delta, bytes) in events {
            track.push(*delta);
            track.extend_from_slice(bytes);
        }
        let mut file = b"MThd\0\0\0\x06\0\0\0\x01".to_vec();
        file.extend_from_slice(&ticks.to_be_bytes());
        file.extend_from_slice(b"MTrk");
        file.extend_from_slice(&(track.len() as u32).to_be_bytes());
        file.extend_from_slice(&track);
        file
    }

    #[test]
    fn a_change_of_tempo_moves_what_follows_it() {
        let bytes = file(
            96,
            &[
                (0, &[0x90, 60, 100]),
                (96, &[0xFF, 0x51, 3, 0x0F, 0x42, 0x40]), // a second per quarter
                (96, &[0x80, 60, 0]),
                (0, &[0xFF, 0x2F, 0]),
            ],
        );
        let score = Score::read(&bytes).unwrap();
        assert!((score.seconds - 1.5).abs() < 1e-9);
        let note = Note { at: 0.0, seconds: 1.5, channel: 0, key: 60, velocity: 100 };
        assert_eq!(score.notes(), [note]);
    }

    #[test]
    fn running_status_and_a_velocity_of_zero_are_understood() {
        let bytes = file(96, &[(0, &[0x91, 60, 1]), (48, &[60, 0]), (0, &[0xFF, 0x2F, 0])]);
        let notes = Score::read(&bytes).unwrap().notes();
        assert_eq!((notes.len(), notes[0].channel), (1, 1));
        assert!((notes[0].seconds - 0.25).abs() < 1e-9);
    }

    /// Rule: a file that is cut off is an error with its place, never a shorter tune.
    #[test]
    fn a_cut_file_is_an_error_with_its_place() {
        let whole = file(96, &[(0, &[0x90, 60, 100]), (96, &[60, 0]), (0, &[0xFF, 0x2F, 0])]);
        assert!(Score::read(&whole).is_ok());
        for length in 0..whole.len() {
            let error = Score::read(&whole[..length]).unwrap_err();
            assert!(matches!(error, ScoreError::Malformed { .. }), "{length}: {error}");
        }
        let broken = file(96, &[(0, &[0x90, 60, 100]), (0, &[0xFF, 0x51, 200, 1])]);
        let ScoreError::Malformed { at, .. } = Score::read(&broken).unwrap_err() else {
            panic!("another error");
        };
        assert_eq!(at, 26);
    }

    #[test]
    fn a_quarter_note_without_ticks_is_refused() {
        let bytes = file(0, &[(0, &[0x90, 60, 100]), (1, &[0xFF, 0x2F, 0])]);
        assert!(matches!(Score::read(&bytes), Err(ScoreError::Malformed { at: 12, .. })));
    }
}
