//! The transport as tables of commands and positions.

use proptest::prelude::*;
use ringback_proto::garden::TempoChange;

use super::*;

const RATE: u32 = 48_000;
/// A beat at 120 quarter notes per minute.
const BEAT: u64 = 24_000;
const FAR: u64 = u64::MAX;

fn map() -> TempoMap {
    TempoMap::new(&[], RATE)
}

/// A course without an end.
fn free() -> Course {
    until(FAR)
}

fn until(end: u64) -> Course {
    Course { end, ..Course::default() }
}

fn playing() -> Transport {
    let mut transport = Transport::default();
    assert!(transport.command(Action::Play, GardenAt::Now, None, &map(), &free()).unwrap());
    transport
}

/// Advances in steps of at most `block` frames; returns the jumps, each with its frame.
fn advance(transport: &mut Transport, n_frames: u64, block: u64, end: u64) -> Vec<u64> {
    advance_on(transport, n_frames, block, &until(end))
}

fn advance_on(
    transport: &mut Transport,
    mut n_frames: u64,
    block: u64,
    course: &Course,
) -> Vec<u64> {
    let mut jumps = Vec::new();
    loop {
        match transport.step(n_frames.min(block), &map(), course) {
            Step::Rest | Step::Play { n_frames: 0, .. } => return jumps,
            Step::Play { n_frames: played, .. } => n_frames -= played,
            Step::Jump(jump) => jumps.push(jump.from),
        }
    }
}

#[test]
fn pause_keeps_the_position_and_stop_goes_back_to_the_start_of_playback() {
    let mut transport = Transport::default();
    transport.command(Action::Seek(Ticks(960)), GardenAt::Now, None, &map(), &free()).unwrap();
    transport.command(Action::Play, GardenAt::Now, None, &map(), &free()).unwrap();
    advance(&mut transport, 1000, 128, FAR);
    transport.command(Action::Pause, GardenAt::Now, None, &map(), &free()).unwrap();
    assert_eq!((transport.state(), transport.frame()), (TransportState::Paused, BEAT + 1000));
    transport.command(Action::Play, GardenAt::Now, None, &map(), &free()).unwrap();
    advance(&mut transport, 10, 128, FAR);
    transport.command(Action::Stop, GardenAt::Now, None, &map(), &free()).unwrap();
    let origin = BEAT + 1000;
    assert_eq!((transport.state(), transport.frame()), (TransportState::Stopped, origin));
}

#[test]
fn a_command_acts_at_the_exact_frame_of_its_moment() {
    for (at, frame) in [
        (GardenAt::NextBeat, BEAT),
        (GardenAt::NextBar, 4 * BEAT),
        (GardenAt::Beat(2.5), 5 * BEAT / 2),
    ] {
        let mut transport = playing();
        advance(&mut transport, 77, 128, FAR);
        assert!(!transport.command(Action::Pause, at, None, &map(), &free()).unwrap());
        assert_eq!(advance(&mut transport, 10 * BEAT, 100, FAR), [frame], "{at:?}");
        assert_eq!((transport.state(), transport.frame()), (TransportState::Paused, frame));
    }
}

#[test]
fn a_seek_at_a_bar_line_keeps_what_lies_ahead_of_it_and_drops_what_it_passes() {
    let mut transport = playing();
    for (action, beat) in [
        (Action::Seek(Ticks(20 * 960)), 4.0),
        (Action::Pause, 10.0), // passed by the seek
        (Action::Stop, 24.0),
    ] {
        transport.command(action, GardenAt::Beat(beat), None, &map(), &free()).unwrap();
    }
    assert_eq!(advance(&mut transport, 40 * BEAT, 128, FAR), [4 * BEAT, 24 * BEAT]);
    assert_eq!(transport.state(), TransportState::Stopped);
}

#[test]
fn the_end_of_the_timeline_stops_playback() {
    let mut transport = playing();
    assert_eq!(advance(&mut transport, 9000, 128, 5000), [5000]);
    assert_eq!((transport.state(), transport.frame()), (TransportState::Stopped, 0));
}

fn looped(start: u64, end: u64) -> Course {
    Course { repeat: Some((start * BEAT, end * BEAT)), ..until(2 * BEAT) }
}

/// Rule: a loop during playback moves the position to its exact frame.
#[test]
fn a_loop_goes_back_at_its_exact_frame_also_past_the_last_region() {
    let (mut transport, course) = (playing(), looped(1, 4));
    let jumps = advance_on(&mut transport, 11 * BEAT, 100, &course);
    assert_eq!(jumps, [4 * BEAT, 4 * BEAT, 4 * BEAT]);
    // 4 beats, then three times 3 beats less what is left of the last.
    assert_eq!(transport.frame(), 2 * BEAT);
    let mut transport = playing();
    transport.command(Action::Seek(Ticks(4 * 960)), GardenAt::Now, None, &map(), &course).unwrap();
    advance_on(&mut transport, BEAT, 100, &course);
    assert_eq!(transport.state(), TransportState::Stopped, "a seek to its end leaves the loop");
}

#[test]
fn the_next_bar_of_a_loop_is_at_most_its_end() {
    let (mut transport, course) = (playing(), looped(0, 3));
    advance_on(&mut transport, BEAT, 100, &course);
    let next_bar = GardenAt::NextBar;
    assert!(!transport.command(Action::Pause, next_bar, None, &map(), &course).unwrap());
    advance_on(&mut transport, 10 * BEAT, 100, &course);
    assert_eq!((transport.state(), transport.frame()), (TransportState::Paused, 3 * BEAT));
    transport.command(Action::Play, GardenAt::Now, None, &map(), &course).unwrap();
    advance_on(&mut transport, 100, 100, &course);
    assert_eq!(transport.frame(), 100, "it was reached by playing, so the loop goes on");
}

#[test]
fn a_bar_is_repeated_until_nothing_holds_playback() {
    let mut transport = playing();
    let hold = crate::course::Hold {
        region_id: ringback_proto::ids::RegionId::from_random([1; 16]),
        at: 8 * BEAT,
        back_to: 4 * BEAT,
    };
    let course = Course { holds: vec![hold], ..until(100 * BEAT) };
    let jumps = advance_on(&mut transport, 17 * BEAT, 128, &course);
    assert_eq!(jumps, [8 * BEAT, 8 * BEAT, 8 * BEAT]);
    assert_eq!(transport.frame(), 5 * BEAT);
    assert!(advance_on(&mut transport, 10 * BEAT, 128, &until(100 * BEAT)).is_empty());
    assert_eq!(transport.frame(), 15 * BEAT, "it goes on at the bar line");
    let seek = Action::Seek(Ticks(8 * 960));
    transport.command(seek, GardenAt::Now, None, &map(), &course).unwrap();
    advance_on(&mut transport, BEAT, 128, &course);
    assert_eq!(transport.frame(), 5 * BEAT, "also when playback starts there");
}

#[test]
fn moments_that_cannot_come_are_refused() {
    let mut transport = playing();
    advance(&mut transport, 2 * BEAT, 128, FAR);
    let mut refused =
        |beat| transport.command(Action::Pause, GardenAt::Beat(beat), None, &map(), &free());
    assert!(matches!(refused(1.0), Err(TransportError::Passed { .. })));
    for beat in [-1.0, f64::NAN, 1e7] {
        assert!(matches!(refused(beat), Err(TransportError::NotABeat { .. })), "{beat}");
    }
    for _ in 0..WAITING_MAX {
        refused(100.0).unwrap();
    }
    assert_eq!(refused(100.0), Err(TransportError::Full));
}

#[test]
fn an_emergency_pause_drops_everything_planned() {
    let mut transport = playing();
    transport.command(Action::Seek(Ticks(0)), GardenAt::Beat(2.0), None, &map(), &free()).unwrap();
    transport.emergency_pause();
    assert_eq!(transport.state(), TransportState::Paused);
    transport.command(Action::Play, GardenAt::Now, None, &map(), &free()).unwrap();
    assert!(advance(&mut transport, 10 * BEAT, 128, FAR).is_empty());
}

#[test]
fn at_rest_there_is_no_next_beat_and_play_at_a_beat_starts_there() {
    let mut transport = Transport::default();
    assert!(transport.command(Action::Play, GardenAt::Beat(8.0), None, &map(), &free()).unwrap());
    assert_eq!((transport.is_playing(), transport.frame()), (true, 8 * BEAT));
    let mut transport = Transport::default();
    assert!(transport.command(Action::Play, GardenAt::NextBar, None, &map(), &free()).unwrap());
    assert_eq!((transport.is_playing(), transport.frame()), (true, 0));
}

fn change(beat: u64, bpm: f64) -> TempoChange {
    TempoChange { at: Ticks(beat * 960), bpm, ..TempoChange::DEFAULT }
}

proptest! {
    /// Rule: a change of tempo moves no position.
    #[test]
    fn a_tempo_change_keeps_the_place_in_the_music(
        played in 0..2_000_000_u64,
        beat in 0..100_u64,
        bpm in 5.0..960.0_f64,
    ) {
        let old = map().with(change(3, 77.0));
        let new = old.with(change(beat, bpm));
        let mut transport = playing();
        transport.frame = played;
        let before = old.tick(transport.frame());
        transport.follow(&old, &new);
        // Rounded to a frame of the new tempo, and that to the tick it stands for.
        let tolerance = 1.01 * new.at(before).bpm * 960.0 / 60.0 / f64::from(RATE);
        prop_assert!((new.tick(transport.frame()) - before).abs() <= tolerance);
        if old.frame(Ticks(beat * 960)) >= played {
            prop_assert_eq!(transport.frame(), played);
        }
    }

    /// Rule: the size of the blocks decides nothing.
    #[test]
    fn blocks_of_any_size_lead_to_the_same_transport(
        block in 1..5000_u64,
        moments in prop::collection::vec((0.0..20.0_f64, 0..4_u8, 0..20_000_u64), 0..6),
        n_frames in 0..30 * BEAT,
        repeat in prop::option::of((0..10_u64, 1..10_u64)),
        hold in prop::option::of(1..20_u64),
    ) {
        let hold = hold.map(|beat| crate::course::Hold {
            region_id: ringback_proto::ids::RegionId::from_random([1; 16]),
            at: beat * BEAT,
            back_to: (beat - 1) * BEAT,
        });
        let course = Course {
            repeat: repeat.map(|(start, beats)| (start * BEAT, (start + beats) * BEAT)),
            holds: hold.into_iter().collect(),
            ..until(25 * BEAT)
        };
        let run = |block| {
            let mut transport = playing();
            for (beat, kind, target) in &moments {
                let action = match kind {
                    0 => Action::Pause,
                    1 => Action::Stop,
                    _ => Action::Seek(Ticks(*target)),
                };
                transport.command(action, GardenAt::Beat(*beat), None, &map(), &free()).unwrap();
            }
            (advance_on(&mut transport, n_frames, block, &course), transport)
        };
        prop_assert_eq!(run(block), run(128));
    }
}
