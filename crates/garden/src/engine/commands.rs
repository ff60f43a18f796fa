//! The commands: what they change, and why they are refused.

use std::sync::Arc;

use ringback_proto::garden::command::{SetTempoArguments, TransportAnswer};
use ringback_proto::garden::{
    GardenAt, GardenContent, GardenRegion, LoopRange, RegionState, TempoChange, Ticks,
    TransportCause, TransportState,
};
use ringback_proto::ids::{JobId, RegionId};
use ringback_proto::{Error, ErrorKind};

use super::{Engine, Replan};
use crate::sound::Sound;
use crate::tempo::{BPM_MAX, BPM_MIN};
use crate::timeline::{TimelineError, may_sound};
use crate::transport::{Action, TransportError};

/// The lower numbers of time signatures.
const BEAT_UNITS: [u8; 5] = [1, 2, 4, 8, 16];

impl Engine {
    /// Plays, pauses, stops or seeks.
    ///
    /// # Errors
    /// `conflict` if there is nothing to play, `invalid` if `at` is no moment to come, `busy` if too
    /// many commands wait.
    pub fn transport(
        &mut self,
        action: Action,
        at: Option<GardenAt>,
        job_id: Option<JobId>,
    ) -> Result<TransportAnswer, Error> {
        self.n_commands += 1;
        let at = at.unwrap_or(GardenAt::Now);
        if action == Action::Play {
            self.check_playable(at)?;
        }
        let was = (self.heard.state(), self.heard.frame());
        let commanded = self.heard.command(action, at, job_id, &self.map, &self.course);
        let acted = commanded.map_err(refused)?;
        let is = (self.heard.state(), self.heard.frame());
        if !acted {
            self.change_plan(Replan::Continue);
        } else if was != is {
            self.change_plan(Replan::Jump);
            self.reports.heard(self.heard_log.take_all(), &self.map);
            self.repeating = None;
            self.mixer.forget_lateness();
            self.wants_changed = true;
            self.report_transport(TransportCause::Command, job_id);
        }
        Ok(self.transport_answer())
    }

    /// Pauses, whatever was planned.
    pub fn emergency_pause(&mut self) -> TransportAnswer {
        self.n_commands += 1;
        if self.heard.is_playing() {
            self.heard.emergency_pause();
            self.change_plan(Replan::Jump);
            self.reports.heard(self.heard_log.take_all(), &self.map);
            self.repeating = None;
            self.report_transport(TransportCause::Emergency, None);
        }
        self.transport_answer()
    }

    /// Reports that the transport starts from rest, as after a restart.
    pub fn report_restart(&mut self) {
        self.report_transport(TransportCause::Restart, None);
    }

    /// Changes the tempo and returns the change with its place.
    ///
    /// # Errors
    /// `invalid` if a number makes no sense, `conflict` for another revision. A change behind the
    /// position is accepted; it moves no position.
    pub fn set_tempo(&mut self, arguments: &SetTempoArguments) -> Result<TempoChange, Error> {
        self.n_commands += 1;
        if !(BPM_MIN..=BPM_MAX).contains(&arguments.bpm) {
            let message = format!("{} is not a tempo from {BPM_MIN} to {BPM_MAX}", arguments.bpm);
            return Err(Error::invalid_field("bpm", message));
        }
        let default = self.heard.is_playing().then_some(GardenAt::NextBar);
        let at = match (arguments.position, arguments.at.or(default)) {
            (Some(position), _) => position,
            (None, Some(at)) => self.heard.tempo_moment(at, &self.map).map_err(refused)?,
            // At rest it holds from the start.
            (None, None) => Ticks(0),
        };
        let here = self.map.at(at.0 as f64);
        let (beats_per_bar, beat_unit) = match &arguments.time_signature {
            None => (here.beats_per_bar, here.beat_unit),
            Some(signature) => (signature.beats_per_bar, signature.beat_unit),
        };
        if beats_per_bar == 0 || !BEAT_UNITS.contains(&beat_unit) {
            let message = format!(
                "{beats_per_bar}/{beat_unit} is not a time signature; the lower number is 1, 2, 4, \
                 8 or 16"
            );
            return Err(Error::invalid_field("time_signature", message));
        }
        let change = TempoChange { at, bpm: arguments.bpm, beats_per_bar, beat_unit };
        let mut tempo = self.timeline.tempo().to_vec();
        tempo.retain(|other| other.at != at);
        tempo.push(change.clone());
        tempo.sort_by_key(|change| change.at);
        self.timeline.set_tempo(tempo, arguments.revision).map_err(timeline_refused)?;
        self.follow_timeline();
        Ok(change)
    }

    /// Places a region.
    ///
    /// # Errors
    /// `conflict` for another revision or over a limit.
    pub fn create_region(
        &mut self,
        region: GardenRegion,
        sound: Option<Arc<Sound>>,
        revision: u64,
    ) -> Result<(), Error> {
        self.n_commands += 1;
        let region_id = region.region_id;
        self.timeline.create(region, revision).map_err(timeline_refused)?;
        self.follow_timeline();
        if let Some(sound) = sound {
            self.mixer.give(region_id, &sound);
            self.set_course();
        }
        Ok(())
    }

    /// Sets the loop, or ends it.
    ///
    /// # Errors
    /// `conflict` for another revision.
    pub fn set_loop(&mut self, loop_range: Option<LoopRange>, revision: u64) -> Result<(), Error> {
        self.n_commands += 1;
        self.timeline.set_loop(loop_range, revision).map_err(timeline_refused)?;
        self.follow_timeline();
        Ok(())
    }

    /// Sets the state of a region, with its content and its sound once they are there.
    ///
    /// # Errors
    /// `not_found`, or `conflict` for another revision.
    pub fn set_region_state(
        &mut self,
        region_id: RegionId,
        state: RegionState,
        content: Option<GardenContent>,
        sound: Option<Arc<Sound>>,
        revision: u64,
    ) -> Result<(), Error> {
        self.n_commands += 1;
        let set = self.timeline.set_state(region_id, state, content, revision);
        set.map_err(timeline_refused)?;
        self.follow_timeline();
        if let Some(sound) = sound {
            self.mixer.give(region_id, &sound);
            self.set_course();
        }
        Ok(())
    }

    /// Moves a region.
    ///
    /// # Errors
    /// `not_found`, or `conflict` for another revision or over a limit.
    pub fn move_region(
        &mut self,
        region_id: RegionId,
        position: Ticks,
        revision: u64,
    ) -> Result<(), Error> {
        self.n_commands += 1;
        self.timeline.shift(region_id, position, revision).map_err(timeline_refused)?;
        self.follow_timeline();
        Ok(())
    }

    /// Removes a region; it is not heard any more, except while it fades.
    ///
    /// # Errors
    /// `not_found`, or `conflict` for another revision.
    pub fn delete_region(&mut self, region_id: RegionId, revision: u64) -> Result<(), Error> {
        self.n_commands += 1;
        self.timeline.delete(region_id, revision).map_err(timeline_refused)?;
        self.follow_timeline();
        Ok(())
    }

    fn transport_answer(&self) -> TransportAnswer {
        let position = self.map.whole_tick(self.heard.frame());
        TransportAnswer { state: self.heard.state(), position }
    }

    fn check_playable(&self, at: GardenAt) -> Result<(), Error> {
        let from = match self.heard.moment(at, &self.map, &self.course).map_err(refused)? {
            Some(start) if !self.heard.is_playing() => self.map.frame(start),
            Some(_) | None => self.heard.frame(),
        };
        if !self.timeline.regions().any(|region| may_sound(region.state)) {
            let message = "there is nothing to play: place a region with `garden_create_region`";
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        let is_looped = self.course.repeat.is_some_and(|(_, end)| from < end);
        let is_over = from >= self.course.end && !is_looped;
        if is_over && self.heard.state() != TransportState::Playing {
            let beat = self.map.tick(from) / Ticks::PER_BEAT as f64;
            let message = format!(
                "there is nothing to play after beat {beat:.3}: seek back with `garden_seek`, or \
                 place a region there"
            );
            return Err(Error::new(ErrorKind::Conflict, message));
        }
        Ok(())
    }
}

fn refused(error: TransportError) -> Error {
    match error {
        TransportError::Passed { .. } | TransportError::NotABeat { .. } => {
            Error::invalid_field("at", error.to_string())
        }
        TransportError::Full => Error::new(ErrorKind::Busy, error.to_string()),
    }
}

fn timeline_refused(error: TimelineError) -> Error {
    match error {
        TimelineError::Full | TimelineError::TooMany | TimelineError::Revision { .. } => {
            Error::new(ErrorKind::Conflict, error.to_string())
        }
        TimelineError::Unknown(region_id) => Error::not_found("region", region_id),
    }
}
