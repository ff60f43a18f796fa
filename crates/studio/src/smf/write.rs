//! Writing MIDI files.

use midly::num::{u4, u7, u15, u24, u28};
use midly::{Format, Fps, Header, MetaMessage, MidiMessage, PitchBend, TrackEvent, TrackEventKind};

use super::{Event, Message, Sequence, TextKind, Timing, Track};

/// The longest delta of a MIDI file; longer ones are cut.
const DELTA_MAX: u64 = 0x0fff_ffff;

/// The size of most events: a delta of two bytes, a note of two, a little more for texts.
const EVENT_BYTES: usize = 5;

impl Sequence {
    /// Returns the bytes of a MIDI file: format 0 with one track, else format 1.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let format = if self.tracks.len() == 1 { Format::SingleTrack } else { Format::Parallel };
        let header = Header::new(format, timing(self.timing));
        let tracks: Vec<Vec<TrackEvent<'_>>> = self.tracks.iter().map(track_events).collect();
        let n_events: usize = tracks.iter().map(Vec::len).sum();
        let mut bytes = Vec::with_capacity(n_events * EVENT_BYTES);
        // Writing into memory cannot fail.
        match midly::write(&header, &tracks, &mut bytes) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }
}

/// What precedes the first message of a written file of one track: its header, the header of the
/// track, and a delta of 0.
const BEFORE_MESSAGE: usize = 14 + 8 + 1;
/// What follows its last message: a delta of 0, and the end of the track.
const AFTER_MESSAGE: usize = 1 + 3;

impl Message {
    /// Returns the message as it stands in a MIDI file, with its status byte.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        let track = vec![Event { tick: 0, message: self.clone() }];
        let file = Sequence { timing: Timing::PerQuarter(1), tracks: vec![track] }.write();
        let end = file.len().saturating_sub(AFTER_MESSAGE);
        file.get(BEFORE_MESSAGE..end).unwrap_or_default().to_vec()
    }
}

fn timing(timing: Timing) -> midly::Timing {
    match timing {
        Timing::PerQuarter(ticks) => midly::Timing::Metrical(u15::new(ticks.clamp(1, 0x7fff))),
        Timing::PerSecond(ticks) => {
            let fps = Fps::Fps25;
            midly::Timing::Timecode(fps, u8::try_from(ticks / 25).unwrap_or(u8::MAX).max(1))
        }
    }
}

fn track_events(track: &Track) -> Vec<TrackEvent<'_>> {
    let mut before = 0;
    let mut events: Vec<_> = track
        .iter()
        .map(|event| {
            let delta = event.tick.saturating_sub(before).min(DELTA_MAX);
            before = before.max(event.tick);
            TrackEvent { delta: u28::new(delta as u32), kind: kind(event) }
        })
        .collect();
    let end = TrackEventKind::Meta(MetaMessage::EndOfTrack);
    events.push(TrackEvent { delta: u28::new(0), kind: end });
    events
}

fn kind(event: &Event) -> TrackEventKind<'_> {
    let midi =
        |channel: u8, message| TrackEventKind::Midi { channel: u4::new(channel & 15), message };
    match &event.message {
        Message::NoteOn { channel, key, velocity } => {
            let vel = u7::new((*velocity).clamp(1, 127));
            midi(*channel, MidiMessage::NoteOn { key: seven(*key), vel })
        }
        Message::NoteOff { channel, key } => {
            midi(*channel, MidiMessage::NoteOff { key: seven(*key), vel: u7::new(0) })
        }
        Message::Program { channel, program } => {
            midi(*channel, MidiMessage::ProgramChange { program: seven(*program) })
        }
        Message::Control { channel, controller, value } => midi(
            *channel,
            MidiMessage::Controller { controller: seven(*controller), value: seven(*value) },
        ),
        Message::PitchBend { channel, bend } => midi(
            *channel,
            MidiMessage::PitchBend { bend: PitchBend::from_int((*bend).clamp(-8192, 8191)) },
        ),
        Message::Pressure { channel, key: Some(key), pressure } => {
            midi(*channel, MidiMessage::Aftertouch { key: seven(*key), vel: seven(*pressure) })
        }
        Message::Pressure { channel, key: None, pressure } => {
            midi(*channel, MidiMessage::ChannelAftertouch { vel: seven(*pressure) })
        }
        Message::Tempo(micros) => {
            TrackEventKind::Meta(MetaMessage::Tempo(u24::new((*micros).clamp(1, 0x00ff_ffff))))
        }
        Message::TimeSignature { numerator, denominator_power } => TrackEventKind::Meta(
            // 24 MIDI clocks per click and 8 thirty-seconds per quarter, as every reader assumes.
            MetaMessage::TimeSignature(*numerator, *denominator_power, 24, 8),
        ),
        Message::KeySignature { sharps, minor } => {
            TrackEventKind::Meta(MetaMessage::KeySignature(*sharps, *minor))
        }
        Message::Text(text_kind, text) => {
            TrackEventKind::Meta(text_message(*text_kind, text.as_bytes()))
        }
    }
}

fn seven(value: u8) -> u7 {
    u7::new(value.min(127))
}

fn text_message(kind: TextKind, text: &[u8]) -> MetaMessage<'_> {
    match kind {
        TextKind::Text => MetaMessage::Text(text),
        TextKind::Copyright => MetaMessage::Copyright(text),
        TextKind::TrackName => MetaMessage::TrackName(text),
        TextKind::Instrument => MetaMessage::InstrumentName(text),
        TextKind::Lyric => MetaMessage::Lyric(text),
        TextKind::Marker => MetaMessage::Marker(text),
        TextKind::Cue => MetaMessage::CuePoint(text),
    }
}
