//! From a performance to a MIDI file.

use num_traits::ToPrimitive as _;

use super::exact::add;
use super::model::Fraction;
use super::play::{Line, Performance};
use crate::smf::{Event, Message, Sequence, TextKind, Timing, Track};

/// Ticks per quarter note, if that is fine enough.
const TICKS: i64 = 480;
/// The most ticks per quarter note in a MIDI file.
const TICKS_MAX: i64 = 32_767;

/// Returns the MIDI file of a performance. Its ticks are as fine as the notes need, so that nothing
/// is rounded; times are rounded to the nearest tick only if a MIDI file cannot be that fine.
#[must_use]
pub fn to_midi(performance: &Performance) -> Sequence {
    let ticks = Ticks::new(performance);
    let conductor = conductor(performance, &ticks);
    let mut tracks: Vec<Track> =
        performance.lines.iter().map(|line| track(line, performance.end, &ticks)).collect();
    if tracks.len() <= 1 {
        tracks = vec![merged(conductor, tracks.pop().unwrap_or_default())];
    } else {
        tracks.insert(0, conductor);
    }
    Sequence { timing: Timing::PerQuarter(ticks.per_quarter as u16), tracks }
}

struct Ticks {
    per_quarter: i64,
}

impl Ticks {
    fn new(performance: &Performance) -> Self {
        let mut per_quarter = TICKS;
        let times = performance.notes().flat_map(|note| [note.onset, note.duration]);
        for time in times {
            let below = *time.denom();
            if below & (below - 1) == 0 && (4 * per_quarter) & (below - 1) == 0 {
                continue; // already fine enough
            }
            // The whole note has 4 quarters, so a quarter needs the rest of the denominator.
            let wanted = below / gcd(below, 4);
            let common = per_quarter / gcd(per_quarter, wanted);
            match common.checked_mul(wanted) {
                Some(finer) if finer <= TICKS_MAX => per_quarter = finer,
                Some(_) | None => return Self { per_quarter: TICKS_MAX / TICKS * TICKS },
            }
        }
        Self { per_quarter }
    }

    fn at(&self, time: Fraction) -> u64 {
        let (per_whole, above, below) = (4 * self.per_quarter, *time.numer(), *time.denom());
        if below & (below - 1) == 0
            && let Some(scaled) = above.checked_mul(per_whole)
            && scaled & (below - 1) == 0
        {
            // A whole number of ticks, found without a division.
            return u64::try_from(scaled >> below.trailing_zeros()).unwrap_or(0);
        }
        // In whole numbers: a fraction of a very long tune has more digits than a float.
        let numerator = i128::from(above) * i128::from(per_whole);
        let denominator = i128::from(below);
        let rounded = (2 * numerator + denominator).div_euclid(2 * denominator);
        u64::try_from(rounded).unwrap_or(0)
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.max(1) } else { gcd(b, a % b) }
}

fn conductor(performance: &Performance, ticks: &Ticks) -> Track {
    let mut track = Track::new();
    let mut push = |tick, message| track.push(Event { tick, message });
    if let Some(title) = &performance.title {
        push(0, Message::Text(TextKind::TrackName, title.clone()));
    }
    for (at, tempo) in &performance.tempos {
        let micros = 60e6 / tempo.to_f64().unwrap_or(120.0).max(1.0);
        push(ticks.at(*at), Message::Tempo(micros.round() as u32));
    }
    for (at, (numerator, denominator)) in &performance.meters {
        let numerator = u8::try_from(*numerator).unwrap_or(u8::MAX);
        let denominator_power = denominator.trailing_zeros() as u8;
        push(ticks.at(*at), Message::TimeSignature { numerator, denominator_power });
    }
    for (at, (sharps, minor)) in &performance.keys {
        push(ticks.at(*at), Message::KeySignature { sharps: *sharps, minor: *minor });
    }
    sort(&mut track);
    track
}

fn track(line: &Line, end: Fraction, ticks: &Ticks) -> Track {
    let channel = line.channel;
    let n_others = 2 + line.programs.len() + line.lyrics.len();
    let mut track = Track::with_capacity(n_others + 2 * line.notes.len());
    let mut push = |tick, message| track.push(Event { tick, message });
    push(0, Message::Text(TextKind::TrackName, line.name.clone()));
    for (at, program) in &line.programs {
        push(ticks.at(*at), Message::Program { channel, program: *program });
    }
    for (at, text) in &line.lyrics {
        push(ticks.at(*at), Message::Text(TextKind::Lyric, text.clone()));
    }
    for note in &line.notes {
        let (key, velocity) = (note.key, note.velocity);
        let on = ticks.at(note.onset);
        let off = add(note.onset, note.duration).map_or(on, |end| ticks.at(end)).max(on + 1);
        push(on, Message::NoteOn { channel, key, velocity });
        push(off, Message::NoteOff { channel, key });
    }
    // The end of the music, which may be a rest.
    push(ticks.at(end), Message::Text(TextKind::Marker, "end".to_owned()));
    sort(&mut track);
    track
}

/// Sorts by time; at the same time notes end before others start.
fn sort(track: &mut Track) {
    track.sort_by_key(|event| (event.tick, rank(&event.message)));
}

/// Merges two sorted tracks; at the same time events of the first come first.
fn merged(first: Track, second: Track) -> Track {
    let mut track = Track::with_capacity(first.len() + second.len());
    let mut second = second.into_iter().peekable();
    for event in first {
        let order = (event.tick, rank(&event.message));
        let is_before = |other: &Event| (other.tick, rank(&other.message)) < order;
        while let Some(earlier) = second.next_if(is_before) {
            track.push(earlier);
        }
        track.push(event);
    }
    track.extend(second);
    track
}

fn rank(message: &Message) -> u8 {
    match message {
        Message::Text(TextKind::TrackName, _) => 0,
        Message::Tempo(_) | Message::TimeSignature { .. } | Message::KeySignature { .. } => 1,
        Message::NoteOff { .. } => 2,
        Message::Program { .. }
        | Message::Control { .. }
        | Message::PitchBend { .. }
        | Message::Pressure { .. } => 3,
        Message::Text(..) => 4,
        Message::NoteOn { .. } => 5,
    }
}
