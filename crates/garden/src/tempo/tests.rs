//! The tempo map against exact arithmetic and against itself.

use proptest::prelude::*;

use super::*;

const RATE: u32 = 48_000;

fn change(beat: u64, bpm: f64, beats_per_bar: u8, beat_unit: u8) -> TempoChange {
    TempoChange { at: Ticks(beat * Ticks::PER_BEAT), bpm, beats_per_bar, beat_unit }
}

/// Frames of `ticks` at a whole tempo, in whole numbers: rounded to the nearest.
fn exactly(ticks: u128, bpm: u128) -> u128 {
    let (numerator, denominator) = (ticks * 60 * u128::from(RATE), bpm * 960);
    (2 * numerator + denominator) / (2 * denominator)
}

#[test]
fn a_tick_of_a_piece_of_weeks_has_its_exact_frame() {
    for bpm in [5_u32, 61, 120, 127, 960] {
        let map = TempoMap::new(&[change(0, f64::from(bpm), 4, 4)], RATE);
        for tick in [0, 1, 959, 960, 1_000_003, 123_456_789, 960_000_000_u64] {
            let expected = exactly(tick.into(), bpm.into());
            assert_eq!(u128::from(map.frame(Ticks(tick))), expected, "{bpm} at {tick}");
        }
    }
}

#[test]
fn tempo_changes_add_up_and_seconds_follow() {
    let map = TempoMap::new(&[change(0, 120.0, 4, 4), change(4, 60.0, 4, 4)], RATE);
    for (beat, seconds) in [(0, 0.0), (2, 1.0), (4, 2.0), (5, 3.0), (8, 6.0)] {
        let tick = Ticks(beat * 960);
        assert!((map.seconds(tick.0 as f64) - seconds).abs() < 1e-9, "{beat}");
        assert_eq!(map.frame(tick), (seconds * f64::from(RATE)) as u64);
    }
}

#[test]
fn bars_follow_the_time_signature_and_a_change_starts_a_bar() {
    let map = TempoMap::new(&[change(0, 120.0, 4, 4), change(6, 90.0, 6, 8)], RATE);
    for (beats, bar, beat) in [
        (0.0, 1, 1.0),
        (3.5, 1, 4.5),
        (4.0, 2, 1.0),
        (5.5, 2, 2.5), // cut short by the change
        (6.0, 3, 1.0),
        (7.0, 3, 3.0),
        (9.0, 4, 1.0),
    ] {
        assert_eq!(map.bar(beats * 960.0), BarPosition { bar, beat }, "{beats}");
    }
}

#[test]
fn the_next_line_is_after_the_position_and_a_change_is_a_line() {
    let map = TempoMap::new(&[change(0, 120.0, 4, 4), change(6, 90.0, 6, 8)], RATE);
    for (beats, next_beat, next_bar) in
        [(0.0, 1.0, 4.0), (0.5, 1.0, 4.0), (4.0, 5.0, 6.0), (6.0, 6.5, 9.0), (8.75, 9.0, 9.0)]
    {
        assert!((map.next_beat(beats * 960.0).beats() - next_beat).abs() < 1e-9, "{beats}");
        assert!((map.next_bar(beats * 960.0).beats() - next_bar).abs() < 1e-9, "{beats}");
    }
}

#[test]
fn maps_differ_from_their_first_difference_on() {
    let plain = TempoMap::new(&[], RATE);
    assert_eq!(plain.differs_from(&plain), None);
    let later = plain.with(change(8, 60.0, 4, 4));
    assert_eq!(plain.differs_from(&later), Some(Ticks(8 * 960)));
    assert_eq!(later.with(change(4, 90.0, 4, 4)).differs_from(&later), Some(Ticks(4 * 960)));
    assert_eq!(plain.with(change(0, 90.0, 4, 4)).differs_from(&plain), Some(Ticks(0)));
}

fn maps() -> impl Strategy<Value = TempoMap> {
    let changes = prop::collection::vec((0..100_000_u64, 5.0..960.0_f64, 1..9_u8, 0..5_u8), 0..12);
    changes.prop_map(|changes| {
        let changes = changes.into_iter().map(|(at, bpm, beats_per_bar, power)| TempoChange {
            at: Ticks(at),
            bpm,
            beats_per_bar,
            beat_unit: 1 << power,
        });
        TempoMap::new(&changes.collect::<Vec<_>>(), RATE)
    })
}

proptest! {
    #[test]
    fn a_tick_survives_the_way_to_frames_and_back(map in maps(), tick in 0..960_000_000_u64) {
        let frame = map.frame(Ticks(tick));
        prop_assert_eq!(map.whole_tick(frame), Ticks(tick));
        prop_assert_eq!(map.frame(map.whole_tick(frame)), frame);
    }

    #[test]
    fn later_frames_are_never_at_earlier_ticks(map in maps(), frame in 0..500_000_000_u64) {
        prop_assert!(map.tick(frame + 1) >= map.tick(frame));
    }

    #[test]
    fn lines_are_ahead_and_bars_are_beats(map in maps(), tick in 0..2_000_000_u64) {
        let tick = tick as f64;
        let (beat, bar) = (map.next_beat(tick), map.next_bar(tick));
        prop_assert!(beat.0 as f64 > tick && bar >= beat);
        prop_assert!((map.bar(bar.0 as f64).beat - 1.0).abs() < 1e-6);
        prop_assert_eq!(map.bar(bar.0 as f64).bar, map.bar(tick).bar + 1);
    }
}
