//! A MIDI file whose notes have no seconds yet: the tempo comes from elsewhere.

use midly::Timing;

use super::score::{Event, Events, Score, ScoreError, TimedMessage, read_events};

/// A MIDI file in quarter notes. Its own tempo is left out.
#[derive(Debug, Clone, PartialEq)]
pub struct TickScore {
    /// Messages in order; `at` is in quarter notes.
    messages: Vec<TimedMessage>,
    quarters: f64,
    n_tracks: usize,
}

impl TickScore {
    /// Reads a file of format 0 or 1.
    ///
    /// # Errors
    /// If the file is too large, damaged, has format 2, or counts in film time.
    pub fn read(bytes: &[u8]) -> Result<Self, ScoreError> {
        let Events { timing, events, n_tracks, last_tick } = read_events(bytes)?;
        let Timing::Metrical(ticks) = timing else { return Err(ScoreError::FilmTime) };
        let ticks = f64::from(ticks.as_int());
        if ticks == 0.0 {
            return Err(ScoreError::Malformed { at: 12, what: "a quarter note has no ticks" });
        }
        let messages = events.into_iter().filter_map(|(tick, event)| match event {
            Event::Message { channel, status, data1, data2 } => {
                Some(TimedMessage { at: tick as f64 / ticks, channel, status, data1, data2 })
            }
            Event::Tempo(_) => None,
        });
        Ok(Self { messages: messages.collect(), quarters: last_tick as f64 / ticks, n_tracks })
    }

    /// Returns its length in quarter notes.
    #[must_use]
    pub const fn quarters(&self) -> f64 {
        self.quarters
    }

    /// Returns the score at a tempo: `seconds` maps quarter notes from the start to seconds. Notes
    /// from `end` on, in quarter notes, are left out, and those that sound then end.
    #[must_use]
    pub fn at_tempo(&self, seconds: impl Fn(f64) -> f64, end: Option<f64>) -> Score {
        let end = end.map_or(self.quarters, |end| end.min(self.quarters));
        let messages = self.messages.iter().take_while(|message| message.at <= end);
        // A note that starts at the end has no length.
        let messages = messages.filter(|message| message.at < end || message.status != 0x90);
        let messages =
            messages.map(|message| TimedMessage { at: seconds(message.at), ..*message }).collect();
        Score { messages, seconds: seconds(end), n_tracks: self.n_tracks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two notes of a quarter each, at 96 ticks and a tempo of its own.
    fn file(division: [u8; 2]) -> Vec<u8> {
        let events: &[u8] = &[
            0, 0xFF, 0x51, 3, 0x0F, 0x42, 0x40, // a second per quarter
            0, 0x90, 60, 100, 96, 60, 0, 0, 62, 100, 96, 62, 0, 0, 0xFF, 0x2F, 0,
        ];
        let mut file = b"MThd\0\0\0\x06\0\0\0\x01".to_vec();
        file.extend_from_slice(&division);
        file.extend_from_slice(b"MTrk\0\0\0");
        file.push(events.len() as u8);
        file.extend_from_slice(events);
        file
    }

    #[test]
    fn notes_follow_the_tempo_from_outside() {
        let score = TickScore::read(&file([0, 96])).unwrap();
        assert!((score.quarters() - 2.0).abs() < 1e-9);
        let played = score.at_tempo(|quarters| quarters * 0.25, None);
        let starts: Vec<f64> = played.notes().iter().map(|note| note.at).collect();
        assert_eq!(starts, [0.0, 0.25]);
        assert!((played.seconds - 0.5).abs() < 1e-9);
    }

    #[test]
    fn notes_after_the_end_are_left_out() {
        let score = TickScore::read(&file([0, 96])).unwrap();
        let played = score.at_tempo(|quarters| quarters, Some(1.0));
        let notes = played.notes();
        assert_eq!((notes.len(), notes[0].key), (1, 60));
        assert!((played.seconds - 1.0).abs() < 1e-9);
    }

    #[test]
    fn film_time_is_refused() {
        assert_eq!(TickScore::read(&file([0xE7, 40])), Err(ScoreError::FilmTime));
    }
}
