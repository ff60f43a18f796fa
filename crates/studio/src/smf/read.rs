//! Reading MIDI files, with limits.

use midly::{MetaMessage, MidiMessage, TrackEventKind};

use super::{BYTES_MAX, EVENTS_MAX, Event, Message, Sequence, TextKind, Timing, Track};

/// Why a MIDI file cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReadError {
    /// Over [`BYTES_MAX`].
    #[error("the MIDI file has {size} bytes, the limit is {BYTES_MAX}: split it")]
    TooLarge {
        /// Its size in bytes.
        size: usize,
    },
    /// Over [`EVENTS_MAX`].
    #[error(
        "track {track} of the MIDI file passes the limit of {EVENTS_MAX} events: split the file"
    )]
    TooManyEvents {
        /// The track that exceeds the limit, from 0.
        track: usize,
    },
    /// A damaged file.
    #[error("track {track} of the MIDI file is damaged: {reason}")]
    Damaged {
        /// The track, from 0.
        track: usize,
        /// What is wrong.
        reason: String,
    },
    /// Not a MIDI file at all.
    #[error("this is not a MIDI file: {reason}")]
    NotMidi {
        /// What is wrong.
        reason: String,
    },
    /// Format 2 has independent patterns, which is not one piece of music.
    #[error(
        "the MIDI file has format 2, whose tracks do not play together: save it as format 0 or 1"
    )]
    Format2,
}

impl Sequence {
    /// Reads a MIDI file of format 0 or 1.
    pub fn read(bytes: &[u8]) -> Result<Self, ReadError> {
        if bytes.len() > BYTES_MAX {
            return Err(ReadError::TooLarge { size: bytes.len() });
        }
        let (header, track_iter) = midly::parse(bytes)
            .map_err(|error| ReadError::NotMidi { reason: error.to_string() })?;
        if header.format == midly::Format::Sequential {
            return Err(ReadError::Format2);
        }
        let mut tracks = Vec::new();
        let mut n_events = 0;
        for (track_idx, events) in track_iter.enumerate() {
            let damaged = |error: midly::Error| ReadError::Damaged {
                track: track_idx,
                reason: error.to_string(),
            };
            let events = events.map_err(damaged)?;
            let mut track = Track::new();
            let mut tick = 0;
            for event in events {
                let event = event.map_err(damaged)?;
                tick += u64::from(event.delta.as_int());
                n_events += 1;
                if n_events > EVENTS_MAX {
                    return Err(ReadError::TooManyEvents { track: track_idx });
                }
                if let Some(message) = message(event.kind) {
                    track.push(Event { tick, message });
                }
            }
            tracks.push(track);
        }
        Ok(Self { timing: timing(header.timing), tracks })
    }
}

fn timing(timing: midly::Timing) -> Timing {
    match timing {
        midly::Timing::Metrical(ticks) => Timing::PerQuarter(ticks.as_int().max(1)),
        midly::Timing::Timecode(fps, subframe) => {
            Timing::PerSecond((fps.as_f32() * f32::from(subframe.max(1))).round() as u32)
        }
    }
}

/// Returns `None` for messages without a meaning here: system exclusive messages, cue sheets of
/// sequencers.
fn message(kind: TrackEventKind<'_>) -> Option<Message> {
    match kind {
        TrackEventKind::Midi { channel, message } => Some(midi(channel.as_int(), message)),
        TrackEventKind::Meta(meta) => meta_message(meta),
        TrackEventKind::SysEx(_) | TrackEventKind::Escape(_) => None,
    }
}

fn midi(channel: u8, message: MidiMessage) -> Message {
    match message {
        MidiMessage::NoteOn { key, vel } if vel.as_int() > 0 => {
            Message::NoteOn { channel, key: key.as_int(), velocity: vel.as_int() }
        }
        MidiMessage::NoteOn { key, .. } | MidiMessage::NoteOff { key, .. } => {
            Message::NoteOff { channel, key: key.as_int() }
        }
        MidiMessage::Aftertouch { key, vel } => {
            Message::Pressure { channel, key: Some(key.as_int()), pressure: vel.as_int() }
        }
        MidiMessage::Controller { controller, value } => {
            Message::Control { channel, controller: controller.as_int(), value: value.as_int() }
        }
        MidiMessage::ProgramChange { program } => {
            Message::Program { channel, program: program.as_int() }
        }
        MidiMessage::ChannelAftertouch { vel } => {
            Message::Pressure { channel, key: None, pressure: vel.as_int() }
        }
        MidiMessage::PitchBend { bend } => Message::PitchBend { channel, bend: bend.as_int() },
    }
}

#[expect(clippy::wildcard_enum_match_arm, reason = "a foreign enum that grows")]
fn meta_message(meta: MetaMessage<'_>) -> Option<Message> {
    let text =
        |kind, bytes: &[u8]| Some(Message::Text(kind, String::from_utf8_lossy(bytes).into_owned()));
    match meta {
        MetaMessage::Text(bytes) => text(TextKind::Text, bytes),
        MetaMessage::Copyright(bytes) => text(TextKind::Copyright, bytes),
        MetaMessage::TrackName(bytes) => text(TextKind::TrackName, bytes),
        MetaMessage::InstrumentName(bytes) => text(TextKind::Instrument, bytes),
        MetaMessage::Lyric(bytes) => text(TextKind::Lyric, bytes),
        MetaMessage::Marker(bytes) => text(TextKind::Marker, bytes),
        MetaMessage::CuePoint(bytes) => text(TextKind::Cue, bytes),
        MetaMessage::Tempo(micros) => Some(Message::Tempo(micros.as_int().max(1))),
        MetaMessage::TimeSignature(numerator, denominator_power, ..) => {
            Some(Message::TimeSignature { numerator, denominator_power })
        }
        MetaMessage::KeySignature(sharps, minor) => Some(Message::KeySignature { sharps, minor }),
        _ => None,
    }
}
