//! The transport: where playback is, and which commands wait for their moment. Time is the number
//! of frames that it is advanced by.

use ringback_proto::garden::{GardenAt, Ticks, TransportState};
use ringback_proto::ids::JobId;

use crate::course::{Course, JumpCause};
use crate::tempo::TempoMap;

/// The most commands that wait for their moment: more than a person or an agent plans, few enough to
/// look at in every block.
pub const WAITING_MAX: usize = 64;

/// What a command does to the transport.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Plays from the position.
    Play,
    /// Halts at the position.
    Pause,
    /// Halts and goes back to where playback started.
    Stop,
    /// Goes to a tick.
    Seek(Ticks),
}

/// Why a command is refused.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum TransportError {
    /// Its moment is over.
    #[error("beat {beat} has passed, playback is at beat {position:.3}; use `now` or a later beat")]
    Passed {
        /// The requested beat.
        beat: f64,
        /// Where playback is.
        position: f64,
    },
    /// A beat that no position has.
    #[error("{beat} is not a beat from 0 to 1000000")]
    NotABeat {
        /// The requested beat.
        beat: f64,
    },
    /// Too many commands wait.
    #[error("{WAITING_MAX} commands already wait for their moment; wait for one, or use `now`")]
    Full,
}

/// A command at its moment.
#[derive(Debug, Clone, PartialEq)]
struct Waiting {
    at: Ticks,
    action: Action,
    job_id: Option<JobId>,
}

/// The transport. Small, so that it can be copied and advanced separately.
#[derive(Debug, Clone, PartialEq)]
pub struct Transport {
    state: TransportState,
    /// The next frame of the timeline to play.
    frame: u64,
    /// Where playback last started.
    origin: u64,
    /// Whether it was reached by playing, not by a command or a jump.
    was_reached: bool,
    /// In order of arrival.
    waiting: Vec<Waiting>,
}

/// What happens next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing: it does not play.
    Rest,
    /// These frames are played, from this one on.
    Play {
        /// The first frame.
        frame: u64,
        /// Their number; 0 only if none were wanted.
        n_frames: u64,
    },
    /// A command's moment, or the end of the timeline or of what is repeated.
    Jump(Jump),
}

/// A change of the transport at a frame.
#[derive(Debug, Clone, PartialEq)]
pub struct Jump {
    /// The frame that would have been played next.
    pub from: u64,
    /// Why.
    pub cause: JumpCause,
    /// The job of its command.
    pub job_id: Option<JobId>,
}

impl Default for Transport {
    fn default() -> Self {
        Self {
            state: TransportState::Stopped,
            frame: 0,
            origin: 0,
            was_reached: false,
            waiting: Vec::new(),
        }
    }
}

impl Transport {
    /// Returns its state.
    #[must_use]
    pub const fn state(&self) -> TransportState {
        self.state
    }

    /// Returns whether it plays.
    #[must_use]
    pub fn is_playing(&self) -> bool {
        self.state == TransportState::Playing
    }

    /// Returns the next frame of the timeline to play.
    #[must_use]
    pub const fn frame(&self) -> u64 {
        self.frame
    }

    /// Takes a command. It acts immediately, or waits for its moment while playing; a transport at
    /// rest has no next beat, so there a command acts immediately, and `play` at a beat starts at
    /// that beat. Returns whether it acted.
    ///
    /// # Errors
    /// If its moment has passed or makes no sense, or too many commands wait.
    pub fn command(
        &mut self,
        action: Action,
        at: GardenAt,
        job_id: Option<JobId>,
        map: &TempoMap,
        course: &Course,
    ) -> Result<bool, TransportError> {
        let moment = self.moment(at, map, course)?;
        let Some(moment) = moment.filter(|_| self.is_playing()) else {
            if let (Action::Play, Some(start)) = (action, moment) {
                (self.frame, self.was_reached) = (map.frame(start), false);
            }
            self.act(action, map);
            return Ok(true);
        };
        if map.frame(moment) < self.frame {
            let position = map.tick(self.frame) / Ticks::PER_BEAT as f64;
            return Err(TransportError::Passed { beat: moment.beats(), position });
        }
        if self.waiting.len() >= WAITING_MAX {
            return Err(TransportError::Full);
        }
        self.waiting.push(Waiting { at: moment, action, job_id });
        Ok(false)
    }

    /// Returns the tick that `at` means here; `None` is now. In a loop, the next beat or bar is at
    /// most its end.
    ///
    /// # Errors
    /// If it is no position.
    pub fn moment(
        &self,
        at: GardenAt,
        map: &TempoMap,
        course: &Course,
    ) -> Result<Option<Ticks>, TransportError> {
        let tick = map.tick(self.frame);
        let reached = |next: Ticks| course.within_loop(self.frame, next, map);
        Ok(match at {
            GardenAt::Now => None,
            GardenAt::NextBeat => self.is_playing().then(|| reached(map.next_beat(tick))),
            GardenAt::NextBar => self.is_playing().then(|| reached(map.next_bar(tick))),
            GardenAt::Beat(beat) => {
                Some(Ticks::nearest(beat).ok_or(TransportError::NotABeat { beat })?)
            }
        })
    }

    /// Returns the tick from which a new tempo holds: ticks before the position are over.
    ///
    /// # Errors
    /// If it is no position.
    pub fn tempo_moment(&self, at: GardenAt, map: &TempoMap) -> Result<Ticks, TransportError> {
        let tick = map.tick(self.frame);
        match at {
            GardenAt::Now => Ok(Ticks(tick.ceil() as u64)),
            GardenAt::NextBeat => Ok(map.next_beat(tick)),
            GardenAt::NextBar => Ok(map.next_bar(tick)),
            GardenAt::Beat(beat) => Ticks::nearest(beat).ok_or(TransportError::NotABeat { beat }),
        }
    }

    /// Halts, whatever was planned.
    pub fn emergency_pause(&mut self) {
        if self.is_playing() {
            self.halt(TransportState::Paused);
        }
    }

    /// Keeps the place in the music when the tempo map changes.
    pub fn follow(&mut self, old: &TempoMap, new: &TempoMap) {
        let moved = |frame: u64| match new.differs_from(old) {
            Some(from) if old.frame(from) < frame => {
                new.frame_exactly(old.tick(frame)).round() as u64
            }
            _ => frame,
        };
        self.frame = moved(self.frame);
        self.origin = moved(self.origin);
    }

    /// Returns what happens next, and does it: at most `frames_max` frames, not beyond the next
    /// command's moment, nor beyond the next turn of the course.
    pub fn step(&mut self, frames_max: u64, map: &TempoMap, course: &Course) -> Step {
        if !self.is_playing() {
            return Step::Rest;
        }
        let next = self.next_waiting(map);
        let turn = course.next_turn(self.frame, self.was_reached);
        let limit = next.map_or(turn.at, |(_, frame)| frame.min(turn.at));
        if limit > self.frame {
            let n_frames = frames_max.min(limit - self.frame);
            let frame = self.frame;
            self.frame += n_frames;
            self.was_reached |= n_frames > 0;
            return Step::Play { frame, n_frames };
        }
        let from = self.frame;
        if let Some((idx, _)) = next.filter(|(_, frame)| *frame <= from) {
            let Waiting { action, job_id, .. } = self.waiting.remove(idx);
            self.act(action, map);
            return Step::Jump(Jump { from, cause: JumpCause::Command, job_id });
        }
        match turn.to {
            Some(to) => (self.frame, self.was_reached) = (to, false),
            None => self.act(Action::Stop, map),
        }
        Step::Jump(Jump { from, cause: turn.cause, job_id: None })
    }

    /// Returns the next command to act and its frame; of several at the same frame, the oldest.
    fn next_waiting(&self, map: &TempoMap) -> Option<(usize, u64)> {
        let frames = self.waiting.iter().map(|waiting| map.frame(waiting.at));
        frames.enumerate().min_by_key(|(_, frame)| *frame)
    }

    fn act(&mut self, action: Action, map: &TempoMap) {
        if matches!(action, Action::Seek(_) | Action::Stop) {
            self.was_reached = false;
        }
        match action {
            Action::Play => {
                if !self.is_playing() {
                    self.state = TransportState::Playing;
                    self.origin = self.frame;
                }
            }
            Action::Pause => {
                if self.is_playing() {
                    self.halt(TransportState::Paused);
                }
            }
            Action::Stop => {
                self.halt(TransportState::Stopped);
                self.frame = self.origin;
            }
            Action::Seek(position) => {
                self.frame = map.frame(position);
                if !self.is_playing() {
                    self.origin = self.frame;
                }
                // What lies before the new position would have to wait for ever.
                let frame = self.frame;
                self.waiting.retain(|waiting| map.frame(waiting.at) > frame);
            }
        }
    }

    /// Halts. Commands that waited for a later moment of this playback go with it.
    fn halt(&mut self, state: TransportState) {
        self.state = state;
        self.waiting.clear();
    }
}

#[cfg(test)]
mod tests;
