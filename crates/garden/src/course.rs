//! The course of playback: where it ends, what it repeats, and where it waits.

use ringback_proto::garden::{IfLate, RegionState, Ticks};
use ringback_proto::ids::RegionId;

use crate::tempo::TempoMap;
use crate::timeline::{Timeline, end_of};

/// The course of playback over one timeline, in frames.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Course {
    /// The frame at which nothing is left to play.
    pub end: u64,
    /// The part that is repeated: its first frame, and the one after its last.
    pub repeat: Option<(u64, u64)>,
    /// In order of their frames.
    pub holds: Vec<Hold>,
}

/// A bar line that playback does not pass while a region is not ready: the bar before it is
/// repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hold {
    /// The region.
    pub region_id: RegionId,
    /// The frame of the bar line.
    pub at: u64,
    /// The first frame of the bar before it.
    pub back_to: u64,
}

/// Why playback goes on elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JumpCause {
    /// A command.
    Command,
    /// The end of the timeline.
    End,
    /// The end of the loop.
    Loop,
    /// A region that is not ready.
    Vamp(RegionId),
}

/// Where playback cannot simply go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turn {
    /// The frame.
    pub(crate) at: u64,
    /// Why.
    pub(crate) cause: JumpCause,
    /// Where playback goes on; at the end, where it started.
    pub(crate) to: Option<u64>,
}

impl Course {
    /// Makes the course over a timeline whose prepared sounds end at `sound_end`.
    #[must_use]
    pub fn new(timeline: &Timeline, map: &TempoMap, sound_end: u64) -> Self {
        let repeat =
            timeline.loop_range().map(|range| (map.frame(range.start), map.frame(range.end)));
        let mut course = Self { end: sound_end, repeat, holds: Vec::new() };
        for region in timeline.regions() {
            let waits = match region.state {
                RegionState::Pending | RegionState::AwaitingApproval => true,
                RegionState::Ready | RegionState::Failed | RegionState::Rejected => false,
            };
            if !waits {
                continue;
            }
            course.end = course.end.max(map.frame(end_of(region)));
            let vamps = region.promise.as_ref().is_some_and(|it| it.if_late == IfLate::Vamp);
            if let Some((back_to, at)) = map.bar_before(region.position).filter(|_| vamps) {
                let (at, back_to) = (map.frame(at), map.frame(back_to));
                course.holds.push(Hold { region_id: region.region_id, at, back_to });
            }
        }
        course.holds.sort_by_key(|hold| hold.at);
        course
    }

    /// Returns the region that playback waits for, if that was why it jumped and is still so.
    #[must_use]
    pub fn awaited(&self, cause: JumpCause) -> Option<RegionId> {
        let holds = self.holds.iter().map(|hold| hold.region_id);
        holds.into_iter().find(|region_id| cause == JumpCause::Vamp(*region_id))
    }

    /// Returns the tick of the loop's end for a place in it, if that comes before `tick`: there the
    /// music starts over.
    pub(crate) fn within_loop(&self, frame: u64, tick: Ticks, map: &TempoMap) -> Ticks {
        match self.repeat {
            Some((_, end)) if frame < end && map.frame(tick) > end => map.whole_tick(end),
            Some(_) | None => tick,
        }
    }

    /// Returns the next place at which playback does not simply go on. One that was reached by
    /// playing is part of a loop that ends there; a place that a command chose is not.
    pub(crate) fn next_turn(&self, frame: u64, was_reached: bool) -> Turn {
        let looped = self.repeat.filter(|(_, end)| frame < *end || frame == *end && was_reached);
        let last = match looped {
            Some((start, end)) => Turn { at: end, cause: JumpCause::Loop, to: Some(start) },
            None => Turn { at: self.end, cause: JumpCause::End, to: None },
        };
        let held = self.holds.iter().find(|hold| hold.at >= frame && hold.at < last.at);
        held.map_or(last, |hold| Turn {
            at: hold.at,
            cause: JumpCause::Vamp(hold.region_id),
            to: Some(hold.back_to),
        })
    }
}

#[cfg(test)]
mod tests {
    use ringback_proto::garden::{GardenPromise, GardenRegion, GardenTimeline, LoopRange};
    use ringback_proto::ids::JobId;

    use super::*;

    /// A beat at 120 quarter notes per minute.
    const BEAT: u64 = 24_000;

    fn promised(number: u8, position: f64, if_late: IfLate) -> GardenRegion {
        let job_id = JobId::from_random([number; 16]);
        GardenRegion {
            state: RegionState::Pending,
            content: None,
            promise: Some(GardenPromise { job_id, if_late }),
            ..crate::testing::region(number, position, Some(8.0), "")
        }
    }

    fn course(regions: Vec<GardenRegion>, loop_range: Option<LoopRange>) -> Course {
        let timeline = GardenTimeline { revision: 0, tempo: vec![], loop_range, regions };
        Course::new(&Timeline::new(timeline), &TempoMap::new(&[], 48_000), 0)
    }

    #[test]
    fn a_promise_holds_playback_before_its_bar() {
        for (position, hold) in [
            (16.0, Some((16, 12))),
            (17.5, Some((16, 12))), // within a bar: at its bar line
            (4.0, Some((4, 0))),
            (3.0, None), // nothing comes before the first bar
            (0.0, None),
        ] {
            let course = course(vec![promised(1, position, IfLate::Vamp)], None);
            let found = course.holds.first().map(|hold| (hold.at / BEAT, hold.back_to / BEAT));
            assert_eq!(found, hold, "{position}");
            assert_eq!(course.end, map_end(position), "it is waited for, so it is not the end");
        }
        assert!(course(vec![promised(1, 16.0, IfLate::Silence)], None).holds.is_empty());
    }

    fn map_end(position: f64) -> u64 {
        ((position + 8.0) * BEAT as f64) as u64
    }

    #[test]
    fn only_regions_that_may_still_come_are_waited_for() {
        for (state, waits) in [
            (RegionState::Pending, true),
            (RegionState::AwaitingApproval, true),
            (RegionState::Ready, false),
            (RegionState::Failed, false),
            (RegionState::Rejected, false),
        ] {
            let region = GardenRegion { state, ..promised(1, 16.0, IfLate::Vamp) };
            let course = course(vec![region], None);
            assert_eq!((course.holds.len(), course.end > 0), (usize::from(waits), waits));
        }
    }

    #[test]
    fn a_loop_comes_before_what_lies_behind_it() {
        let range = LoopRange { start: Ticks(0), end: Ticks(16 * 960) };
        let course = course(vec![promised(1, 16.0, IfLate::Vamp)], Some(range));
        let loop_turn = Turn { at: 16 * BEAT, cause: JumpCause::Loop, to: Some(0) };
        assert_eq!(course.next_turn(0, false), loop_turn);
        assert_eq!(course.next_turn(16 * BEAT, true), loop_turn, "reached by playing");
        let vamp = course.next_turn(16 * BEAT, false);
        assert!(matches!(vamp.cause, JumpCause::Vamp(_)), "a seek to the end leaves the loop");
        assert_eq!(course.next_turn(17 * BEAT, true).cause, JumpCause::End);
    }
}
