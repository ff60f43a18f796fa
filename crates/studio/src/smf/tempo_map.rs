//! Converts ticks to seconds.

use super::{Message, Sequence, Timing};

/// The tempo of a MIDI file without one: 120 quarter notes per minute.
const TEMPO_DEFAULT: u32 = 500_000;

/// The tempo changes of a file, with the time of each in seconds.
#[derive(Debug, Clone, PartialEq)]
pub struct TempoMap {
    /// At least one, the first at tick 0, by tick.
    spans: Vec<Span>,
}

/// The length of a tick, from a tick on.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Span {
    tick: u64,
    second: f64,
    seconds_per_tick: f64,
}

impl TempoMap {
    /// Reads the tempo changes of all tracks.
    #[must_use]
    pub fn new(sequence: &Sequence) -> Self {
        let ticks_per_quarter = match sequence.timing {
            Timing::PerQuarter(ticks) => f64::from(ticks.max(1)),
            Timing::PerSecond(ticks) => {
                let seconds_per_tick = 1.0 / f64::from(ticks.max(1));
                return Self { spans: vec![Span { tick: 0, second: 0.0, seconds_per_tick }] };
            }
        };
        let per_tick = |micros: u32| f64::from(micros) / 1e6 / ticks_per_quarter;
        let mut changes: Vec<_> = sequence
            .tracks
            .iter()
            .flatten()
            .filter_map(|event| match event.message {
                Message::Tempo(micros) => Some((event.tick, micros)),
                Message::NoteOn { .. }
                | Message::NoteOff { .. }
                | Message::Program { .. }
                | Message::Control { .. }
                | Message::PitchBend { .. }
                | Message::Pressure { .. }
                | Message::TimeSignature { .. }
                | Message::KeySignature { .. }
                | Message::Text(..) => None,
            })
            .collect();
        changes.sort_by_key(|(tick, _)| *tick);
        let first = Span { tick: 0, second: 0.0, seconds_per_tick: per_tick(TEMPO_DEFAULT) };
        let mut map = Self { spans: vec![first] };
        for (tick, micros) in changes {
            let second = map.seconds(tick);
            map.spans.push(Span { tick, second, seconds_per_tick: per_tick(micros) });
        }
        map
    }

    /// Returns the second of a tick.
    #[must_use]
    pub fn seconds(&self, tick: u64) -> f64 {
        let after = self.spans.partition_point(|span| span.tick <= tick);
        let span = self.spans[after.saturating_sub(1)];
        span.second + tick.saturating_sub(span.tick) as f64 * span.seconds_per_tick
    }

    /// Returns the tempo at a tick, in quarter notes per minute; `None` if ticks are not musical
    /// time.
    #[must_use]
    pub fn quarters_per_minute(&self, tick: u64, timing: Timing) -> Option<f64> {
        let Timing::PerQuarter(ticks) = timing else { return None };
        let after = self.spans.partition_point(|span| span.tick <= tick);
        let span = self.spans[after.saturating_sub(1)];
        Some(60.0 / (span.seconds_per_tick * f64::from(ticks.max(1))))
    }
}
