//! The rules of the garden's timeline: which positions, tempos and sounds it takes, who may change
//! a region, and which reports become events.

use ringback_proto::event::Event;
use ringback_proto::garden::command::TimeSignature;
use ringback_proto::garden::{GardenAt, GardenEvent, LoopRange, RegionChange, RegionState, Ticks};
use ringback_proto::principal::{Principal, PrincipalId};
use ringback_proto::request::RegionApproval;
use ringback_proto::{Error, ErrorKind, Result};

use crate::policy;

/// Regions on the timeline: more than a piece has, few enough to send all of them at once.
pub const REGIONS_MAX: u64 = 10_000;
/// Points of the tempo map, for the same reason.
pub const TEMPO_CHANGES_MAX: u64 = 10_000;
/// The slowest and the fastest tempo, in quarter notes per minute.
const BPM_RANGE: std::ops::RangeInclusive<f64> = 5.0..=960.0;
/// From inaudible to as much as a mixing desk adds.
const GAIN_DB_RANGE: std::ops::RangeInclusive<f32> = -120.0..=24.0;
/// A day: longer than any recording.
const OFFSET_SECONDS_MAX: f64 = 86_400.0;
/// The lower numbers of time signatures.
const BEAT_UNITS: [u8; 5] = [1, 2, 4, 8, 16];
/// Beats of one bar: more than any piece has.
const BEATS_PER_BAR_MAX: u8 = 64;
/// The most passes of one region: an ostinato of a whole piece.
const REPEAT_MAX: u32 = 1000;
/// The shortest loop, a quarter of a beat: at the fastest tempo, longer than the fade of a jump.
const LOOP_MIN: Ticks = Ticks(Ticks::PER_BEAT / 4);

/// A position or a length as the timeline has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rounded {
    /// The nearest tick.
    pub ticks: Ticks,
    /// Whether that is not exactly what was asked for.
    pub is_rounded: bool,
}

/// Returns the tick of a beat that a caller gave.
///
/// # Errors
/// `invalid`, naming the field.
pub fn position(field: &str, beats: f64) -> Result<Rounded> {
    let ticks = Ticks::nearest(beats).ok_or_else(|| {
        let message = format!("`{field}` must be a beat from 0 to {}", Ticks::MAX_BEATS);
        Error::invalid_field(field, message)
    })?;
    // Callers write thirds and fifths as decimals; those are not rounded to their ears.
    let is_rounded = (ticks.beats() - beats).abs() > f64::EPSILON * beats.max(1.0);
    Ok(Rounded { ticks, is_rounded })
}

/// Returns the ticks of a length that a caller gave.
///
/// # Errors
/// `invalid`, naming the field, also for a length that rounds to nothing.
pub fn duration(field: &str, beats: f64) -> Result<Rounded> {
    let rounded = position(field, beats)?;
    if rounded.ticks == Ticks(0) {
        let message = format!("`{field}` must be at least 1/{} beat", Ticks::PER_BEAT);
        return Err(Error::invalid_field(field, message));
    }
    Ok(rounded)
}

/// Checks the moment at which a command is to take effect.
///
/// # Errors
/// `invalid`, naming the field.
pub fn check_at(at: Option<GardenAt>) -> Result<()> {
    match at {
        Some(GardenAt::Beat(beat)) => position("at", beat).map(|_| ()),
        Some(GardenAt::Now | GardenAt::NextBeat | GardenAt::NextBar) | None => Ok(()),
    }
}

/// Checks a tempo.
///
/// # Errors
/// `invalid`, naming the field.
pub fn check_bpm(bpm: f64) -> Result<()> {
    if BPM_RANGE.contains(&bpm) {
        return Ok(());
    }
    let (low, high) = (BPM_RANGE.start(), BPM_RANGE.end());
    let message = format!("`bpm` must be from {low} to {high} quarter notes per minute");
    Err(Error::invalid_field("bpm", message))
}

/// Reads a time signature such as `3/4`.
///
/// # Errors
/// `invalid`, naming the field.
pub fn time_signature(text: &str) -> Result<TimeSignature> {
    let numbers = text.split_once('/').and_then(|(beats, unit)| {
        Some((beats.trim().parse::<u8>().ok()?, unit.trim().parse::<u8>().ok()?))
    });
    match numbers {
        Some((beats_per_bar @ 1..=BEATS_PER_BAR_MAX, beat_unit))
            if BEAT_UNITS.contains(&beat_unit) =>
        {
            Ok(TimeSignature { beats_per_bar, beat_unit })
        }
        Some(_) | None => {
            let message = format!(
                "`time_signature` must be 1 to {BEATS_PER_BAR_MAX} over 1, 2, 4, 8 or 16, such as \
                 `3/4`"
            );
            Err(Error::invalid_field("time_signature", message))
        }
    }
}

/// Checks how loud a region is, where it is heard, and how much of its content is skipped.
///
/// # Errors
/// `invalid`, naming the field.
pub fn check_sound(gain_db: f32, pan: f32, offset_seconds: f64) -> Result<()> {
    if !GAIN_DB_RANGE.contains(&gain_db) {
        let (low, high) = (GAIN_DB_RANGE.start(), GAIN_DB_RANGE.end());
        let message = format!("`gain_db` must be from {low} to {high}");
        return Err(Error::invalid_field("gain_db", message));
    }
    if !(-1.0..=1.0).contains(&pan) {
        return Err(Error::invalid_field("pan", "`pan` must be from -1 (left) to 1 (right)"));
    }
    if !(0.0..=OFFSET_SECONDS_MAX).contains(&offset_seconds) {
        let message = format!("`offset_seconds` must be from 0 to {OFFSET_SECONDS_MAX}");
        return Err(Error::invalid_field("offset_seconds", message));
    }
    Ok(())
}

/// Checks that the fades of a region fit into it.
///
/// # Errors
/// `invalid`, naming the field.
pub fn check_fades(fade_in: Ticks, fade_out: Ticks, duration: Option<Ticks>) -> Result<()> {
    match duration {
        Some(duration) if fade_in > duration => {
            Err(Error::invalid_field("fade_in", "`fade_in` is longer than the region"))
        }
        Some(duration) if fade_in.0 + fade_out.0 > duration.0 => Err(Error::invalid_field(
            "fade_out",
            "`fade_in` and `fade_out` together are longer than the region",
        )),
        Some(_) | None => Ok(()),
    }
}

/// Checks that the crossfade of a region fits into it.
///
/// # Errors
/// `invalid`, naming the field.
pub fn check_crossfade(crossfade: Ticks, duration: Option<Ticks>) -> Result<()> {
    if duration.is_some_and(|duration| crossfade > duration) {
        return Err(Error::invalid_field("crossfade", "`crossfade` is longer than the region"));
    }
    Ok(())
}

/// Checks how many times a region is played.
///
/// # Errors
/// `invalid`, naming the field.
pub fn check_repeat(repeat: u32) -> Result<()> {
    if (1..=REPEAT_MAX).contains(&repeat) {
        return Ok(());
    }
    Err(Error::invalid_field("repeat", format!("`repeat` must be from 1 to {REPEAT_MAX}")))
}

/// Checks a loop: both ends, or neither to have none.
///
/// # Errors
/// `invalid`, naming the field.
pub fn loop_range(start: Option<Ticks>, end: Option<Ticks>) -> Result<Option<LoopRange>> {
    let (start, end) = match (start, end) {
        (None, None) => return Ok(None),
        (Some(start), Some(end)) => (start, end),
        (Some(_), None) => {
            let message = "`end` is missing; leave out `start` too to end the loop";
            return Err(Error::invalid_field("end", message));
        }
        (None, Some(_)) => {
            let message = "`start` is missing; leave out `end` too to end the loop";
            return Err(Error::invalid_field("start", message));
        }
    };
    if end.0 < start.0 + LOOP_MIN.0 {
        let message = format!("`end` must lie at least {} beat after `start`", LOOP_MIN.beats());
        return Err(Error::invalid_field("end", message));
    }
    Ok(Some(LoopRange { start, end }))
}

/// Checks that there is room for more.
///
/// # Errors
/// `conflict`, saying what to do.
pub fn check_room(what: &str, n_new: u64, count: u64, max: u64) -> Result<()> {
    if count + n_new <= max {
        return Ok(());
    }
    let message =
        format!("the timeline has {count} {what} and can hold {max}; delete some of them first");
    Err(Error::new(ErrorKind::Conflict, message))
}

/// Returns the state of a region when its content is there, or could not be made.
#[must_use]
pub const fn settled(approval: RegionApproval, has_content: bool) -> RegionState {
    match (has_content, approval) {
        (false, _) => RegionState::Failed,
        (true, RegionApproval::Auto) => RegionState::Ready,
        (true, RegionApproval::Required) => RegionState::AwaitingApproval,
    }
}

/// A decision about the content of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It may be played.
    Approve,
    /// It is never played.
    Reject,
}

/// Returns the state of a region after a decision about it. A rejection is final.
///
/// # Errors
/// `conflict`, saying why there is nothing to decide.
pub fn decided(state: RegionState, verdict: Verdict) -> Result<RegionState> {
    let refused = match (verdict, state) {
        (Verdict::Approve, RegionState::AwaitingApproval) => return Ok(RegionState::Ready),
        (
            Verdict::Reject,
            RegionState::Pending | RegionState::AwaitingApproval | RegionState::Ready,
        ) => return Ok(RegionState::Rejected),
        (Verdict::Approve, RegionState::Pending) => {
            "its content is still being made; approve it when it is `awaiting_approval`"
        }
        (Verdict::Approve, RegionState::Ready) => "it is already played",
        (_, RegionState::Failed) => "its content could not be made; delete it",
        (_, RegionState::Rejected) => "it was rejected, which is final; place its content again",
    };
    Err(Error::new(ErrorKind::Conflict, format!("there is nothing to decide: {refused}")))
}

/// Returns how subscribers learn that a region is in a state; nothing happens to a pending one.
#[must_use]
pub const fn change_to(state: RegionState) -> Option<RegionChange> {
    match state {
        RegionState::Pending => None,
        RegionState::AwaitingApproval => Some(RegionChange::AwaitingApproval),
        RegionState::Ready => Some(RegionChange::Ready),
        RegionState::Failed => Some(RegionChange::Failed),
        RegionState::Rejected => Some(RegionChange::Rejected),
    }
}

/// Returns whether a principal may change a region: its owner, and full administrators.
#[must_use]
pub fn may_change(principal: &Principal, owner: PrincipalId) -> bool {
    principal.id == owner || policy::may_do_everything(principal)
}

/// Returns what a report of the garden tells subscribers. Everyone hears the garden and gets its
/// events, so they say nothing about what a region holds; the daemon publishes changes of regions
/// itself, once they are durable.
#[must_use]
pub fn announced(event: GardenEvent) -> Option<Event> {
    match event {
        GardenEvent::Region(mut region) => {
            region.message = Some("its content cannot be played".to_owned());
            (region.change == RegionChange::Failed).then_some(Event::GardenRegion(region))
        }
        GardenEvent::Trouble(mut trouble) => {
            if trouble.region_id.is_some() {
                "a region's content was not ready or cannot be played"
                    .clone_into(&mut trouble.cause);
            }
            trouble.cause = trouble.cause.chars().take(CAUSE_CHARS_MAX).collect();
            Some(Event::GardenTrouble(trouble))
        }
        GardenEvent::Transport(transport) => Some(Event::GardenTransport(transport)),
        GardenEvent::Position(position) => Some(Event::GardenPosition(position)),
        GardenEvent::Heard(_) => None,
    }
}

/// Enough to name a device and its error.
const CAUSE_CHARS_MAX: usize = 300;

#[cfg(test)]
mod tests {
    use ringback_proto::garden::{GardenRegionEvent, GardenTroubleEvent, TroubleKind};
    use ringback_proto::ids::{ProjectId, RegionId, SessionId, TokenId};
    use ringback_proto::principal::{AgentKey, KeyHolder, Level, Target};

    use super::*;

    #[test]
    fn a_position_is_rounded_to_a_tick_and_says_so() {
        for (beats, ticks, is_rounded) in [
            (0.0, 0, false),
            (4.0, 3840, false),
            (1.0 / 3.0, 320, false),
            (0.1, 96, false),
            (0.001, 1, true),
            (4.0001, 3840, true),
            (1_000_000.0, 960_000_000, false),
        ] {
            let expected = Rounded { ticks: Ticks(ticks), is_rounded };
            assert_eq!(position("position", beats).unwrap(), expected, "{beats}");
        }
    }

    #[test]
    fn a_beat_off_the_timeline_is_invalid_and_names_its_field() {
        for beats in [-0.5, f64::NAN, f64::INFINITY, 1_000_000.5] {
            let error = position("new_position", beats).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid, "{beats}");
            assert!(error.message().contains("new_position"), "{error}");
            let error = check_at(Some(GardenAt::Beat(beats))).unwrap_err();
            assert!(error.message().contains("`at`"), "{error}");
        }
        assert!(duration("duration", 0.0).is_err());
        assert!(duration("duration", 0.0001).is_err());
        assert!(check_at(Some(GardenAt::NextBar)).is_ok() && check_at(None).is_ok());
    }

    #[test]
    fn tempos_signatures_and_sounds_have_limits() {
        for bpm in [5.0, 120.5, 960.0] {
            assert!(check_bpm(bpm).is_ok(), "{bpm}");
        }
        for bpm in [4.9, 960.1, f64::NAN, -1.0] {
            assert!(check_bpm(bpm).is_err(), "{bpm}");
        }
        let waltz = TimeSignature { beats_per_bar: 3, beat_unit: 4 };
        assert_eq!(time_signature("3/4").unwrap(), waltz);
        for text in ["", "3", "0/4", "3/5", "65/4", "3/4/4", "-3/4", "3/0"] {
            assert!(time_signature(text).is_err(), "{text}");
        }
        assert!(check_sound(0.0, -1.0, 0.0).is_ok());
        for (gain, pan, offset) in [
            (f32::NAN, 0.0, 0.0),
            (24.1, 0.0, 0.0),
            (0.0, 1.01, 0.0),
            (0.0, f32::NAN, 0.0),
            (0.0, 0.0, -0.1),
            (0.0, 0.0, f64::NAN),
        ] {
            assert!(check_sound(gain, pan, offset).is_err(), "{gain} {pan} {offset}");
        }
        assert!(check_fades(Ticks(5), Ticks(5), Some(Ticks(10))).is_ok());
        assert!(check_fades(Ticks(6), Ticks(5), Some(Ticks(10))).is_err());
        assert!(check_fades(Ticks(11), Ticks(0), Some(Ticks(10))).is_err());
        assert!(check_fades(Ticks(11), Ticks(5), None).is_ok());
        assert!(check_crossfade(Ticks(10), Some(Ticks(10))).is_ok());
        assert!(check_crossfade(Ticks(11), Some(Ticks(10))).is_err());
        assert!(check_repeat(1).is_ok() && check_repeat(1000).is_ok());
        assert!(check_repeat(0).is_err() && check_repeat(1001).is_err());
        assert!(check_room("regions", 1, 9_999, REGIONS_MAX).is_ok());
        for (n_new, count) in [(1, 10_000), (2, 9_999)] {
            let full = check_room("regions", n_new, count, REGIONS_MAX).unwrap_err();
            assert_eq!(full.kind(), ErrorKind::Conflict);
        }
    }

    #[test]
    fn a_loop_has_two_ends_in_order_or_none() {
        let (start, end) = (Ticks(960), Ticks(1200));
        assert_eq!(loop_range(None, None).unwrap(), None);
        assert_eq!(loop_range(Some(start), Some(end)).unwrap(), Some(LoopRange { start, end }));
        for (start, end, field) in [
            (Some(960), None, "end"),
            (None, Some(960), "start"),
            (Some(960), Some(960), "end"),
            (Some(960), Some(1199), "end"),
            (Some(960), Some(0), "end"),
        ] {
            let error = loop_range(start.map(Ticks), end.map(Ticks)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Invalid);
            assert!(error.message().starts_with(&format!("`{field}`")), "{error}");
        }
    }

    /// Rule: rejected content is never heard, and nothing is heard before it is approved.
    #[test]
    fn a_region_is_played_only_when_it_is_there_and_approved() {
        use RegionState::{AwaitingApproval, Failed, Pending, Ready, Rejected};
        assert_eq!(settled(RegionApproval::Auto, true), Ready);
        assert_eq!(settled(RegionApproval::Required, true), AwaitingApproval);
        assert_eq!(settled(RegionApproval::Required, false), Failed);
        for (state, approved, rejected) in [
            (Pending, None, Some(Rejected)),
            (AwaitingApproval, Some(Ready), Some(Rejected)),
            (Ready, None, Some(Rejected)),
            (Failed, None, None),
            (Rejected, None, None),
        ] {
            for (verdict, expected) in [(Verdict::Approve, approved), (Verdict::Reject, rejected)] {
                match decided(state, verdict) {
                    Ok(state) => assert_eq!(Some(state), expected),
                    Err(error) => {
                        assert_eq!(expected, None, "{state:?} {verdict:?}");
                        assert_eq!(error.kind(), ErrorKind::Conflict);
                    }
                }
            }
        }
    }

    fn principal(number: u8, level: Level, target: Target) -> Principal {
        let id = PrincipalId::Token(TokenId::from_random([number; 16]));
        Principal { id, level, target, held_by: None }
    }

    #[test]
    fn a_region_is_changed_by_its_owner_and_by_full_administrators() {
        let owner = principal(1, Level::Write, Target::Everything);
        let project = ProjectId::from_random([9; 16]);
        let narrow = principal(3, Level::Admin, Target::Projects(vec![project]));
        let agent = Principal {
            held_by: Some(KeyHolder {
                session: SessionId::from_random([1; 16]),
                key: AgentKey::Passed,
            }),
            ..principal(4, Level::Admin, Target::Everything)
        };
        for (who, may) in [
            (&owner, true),
            (&principal(2, Level::Write, Target::Everything), false),
            (&narrow, false),
            (&agent, false),
            (&principal(5, Level::Admin, Target::Everything), true),
            (&Principal::local(), true),
        ] {
            assert_eq!(may_change(who, owner.id), may, "{who:?}");
        }
    }

    /// Rule: others see where a region lies, but not what is in it.
    #[test]
    fn a_report_about_a_region_says_nothing_about_its_content() {
        let region_id = RegionId::from_random([1; 16]);
        let region = |change| {
            GardenEvent::Region(GardenRegionEvent {
                region_id,
                change,
                position_beats: 4.0,
                duration_beats: None,
                message: Some("secret.wav".to_owned()),
            })
        };
        for change in [RegionChange::Created, RegionChange::Moved, RegionChange::Deleted] {
            assert_eq!(announced(region(change)), None, "{change:?}");
        }
        let trouble = |region_id| {
            GardenEvent::Trouble(GardenTroubleEvent {
                kind: TroubleKind::Content,
                position_beats: 1.0,
                cause: "secret.wav".to_owned(),
                region_id,
            })
        };
        for told in [announced(region(RegionChange::Failed)), announced(trouble(Some(region_id)))] {
            let told = format!("{:?}", told.unwrap());
            assert!(told.contains(&region_id.to_string()) && !told.contains("secret"), "{told}");
        }
        let told = announced(trouble(None)).unwrap();
        assert!(format!("{told:?}").contains("secret.wav"));
    }
}
