//! Pieces of music with known beats, made from a seed: fourteen styles with and without drums, in
//! 4/4, 3/4 and 6/8, straight, swung and syncopated, steady, changing and human.

use crate::support::{Midi, TICKS};

const Q: u64 = TICKS as u64;
/// Bars of a piece: about half a minute to a minute.
const BARS: u64 = 20;

pub(crate) const N_STYLES: u64 = 14;
pub(crate) const N_COURSES: u64 = 4;

pub(crate) struct Piece {
    pub(crate) name: String,
    pub(crate) midi: Vec<u8>,
    pub(crate) beats: Vec<f64>,
    pub(crate) downbeats: Vec<f64>,
}

/// A random number generator with a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// A style: the beats per bar, the ticks per beat, its range of tempos.
struct Style {
    name: &'static str,
    beats: u64,
    beat_ticks: u64,
    bpm: (u64, u64),
    write: fn(&mut Writer),
}

const STYLES: [Style; N_STYLES as usize] = [
    Style { name: "rock", beats: 4, beat_ticks: Q, bpm: (95, 150), write: rock },
    Style { name: "house", beats: 4, beat_ticks: Q, bpm: (118, 132), write: house },
    Style { name: "waltz", beats: 3, beat_ticks: Q, bpm: (95, 170), write: waltz },
    Style { name: "swing", beats: 4, beat_ticks: Q, bpm: (110, 170), write: swing },
    Style { name: "bossa", beats: 4, beat_ticks: Q, bpm: (110, 140), write: bossa },
    Style { name: "ballad", beats: 4, beat_ticks: Q, bpm: (66, 90), write: ballad },
    Style { name: "jig", beats: 2, beat_ticks: Q * 3 / 2, bpm: (85, 120), write: jig },
    Style { name: "march", beats: 4, beat_ticks: Q, bpm: (100, 124), write: march },
    Style { name: "reggae", beats: 4, beat_ticks: Q, bpm: (72, 92), write: reggae },
    Style { name: "funk", beats: 4, beat_ticks: Q, bpm: (92, 112), write: funk },
    Style { name: "strings", beats: 4, beat_ticks: Q, bpm: (70, 110), write: strings },
    Style { name: "strumming", beats: 4, beat_ticks: Q, bpm: (90, 130), write: strumming },
    Style { name: "chorale", beats: 4, beat_ticks: Q, bpm: (72, 100), write: chorale },
    Style { name: "tresillo", beats: 4, beat_ticks: Q, bpm: (90, 125), write: tresillo },
];

/// The state while a style is written.
struct Writer {
    midi: Midi,
    dice: Dice,
    /// The tick of the bar.
    bar: u64,
    bar_idx: u64,
    /// The root and third of the bar's chord.
    root: u8,
    minor: bool,
    /// How far notes deviate from their place, in ticks.
    stray: u64,
}

const KICK: u8 = 36;
const SNARE: u8 = 38;
const HAT: u8 = 42;
const RIDE: u8 = 51;
const STICK: u8 = 37;

impl Writer {
    fn drum(&mut self, at: u64, key: u8, velocity: u8) {
        self.put(at, Q / 4, 9, key, velocity);
    }

    fn put(&mut self, at: u64, length: u64, channel: u8, key: u8, velocity: u8) {
        let stray = self.dice.below(self.stray * 2 + 1);
        let at = (self.bar + at + stray).saturating_sub(self.stray);
        let velocity = velocity.saturating_sub(self.dice.below(12) as u8).max(20);
        self.midi.note(at, length * 9 / 10, channel, key, velocity);
    }

    fn chord(&mut self, at: u64, length: u64, channel: u8, velocity: u8) {
        let third = if self.minor { 3 } else { 4 };
        for interval in [0, third, 7] {
            let key = 60 + (self.root + interval) % 12;
            self.put(at, length, channel, key, velocity);
        }
    }

    fn bass(&mut self, at: u64, length: u64, interval: u8, velocity: u8) {
        self.put(at, length, 1, 36 + (self.root + interval) % 12, velocity);
    }

    fn tune(&mut self, at: u64, length: u64, channel: u8) {
        let third = if self.minor { 3 } else { 4 };
        let interval = [0, 2, third, 7, 9, 12][self.dice.below(6) as usize];
        self.put(at, length, channel, 67 + (self.root + interval) % 12, 90);
    }
}

/// The chords of a piece: degree above the tonic, and whether it is minor.
const CHANGES: [[(u8, bool); 4]; 4] = [
    [(0, false), (9, true), (5, false), (7, false)],
    [(0, false), (5, false), (0, false), (7, false)],
    [(9, true), (5, false), (0, false), (7, false)],
    [(2, true), (7, false), (0, false), (9, true)],
];

/// Returns a piece of a style. Courses: 0 steady, 1 steady with human timing, 2 a sudden change of
/// tempo in the middle, 3 a tempo that drifts up and down.
pub(crate) fn piece(style: u64, course: u64, seed: u64) -> Piece {
    let Style { name, beats, beat_ticks, bpm, write } = &STYLES[style as usize];
    let mut dice = Dice(seed * 1000 + style * 10 + course + 1);
    dice.below(2);
    let tempo = (bpm.0 + dice.below(bpm.1 - bpm.0 + 1)) as f64;
    let tonic = dice.below(12) as u8;
    let changes = CHANGES[dice.below(4) as usize];
    let mut writer = Writer {
        midi: Midi::default(),
        dice,
        bar: 0,
        bar_idx: 0,
        root: 0,
        minor: false,
        stray: if course == 1 { 8 } else { 0 },
    };
    let bar_ticks = beats * beat_ticks;
    let mut clock = Clock { seconds: 0.0, beats: Vec::new(), downbeats: Vec::new() };
    for bar in 0..BARS {
        let (degree, minor) = changes[(bar % 4) as usize];
        writer.bar = bar * bar_ticks;
        writer.bar_idx = bar;
        writer.root = (tonic + degree) % 12;
        writer.minor = minor;
        write(&mut writer);
        for beat in 0..*beats {
            let idx = bar * beats + beat;
            let bpm = tempo_at(course, tempo, idx, BARS * beats);
            // A file counts quarters.
            let quarter_bpm = bpm * *beat_ticks as f64 / Q as f64;
            writer.midi.tempo(idx * beat_ticks, quarter_bpm);
            clock.beat(
                beat == 0,
                (60e6 / quarter_bpm).round() * *beat_ticks as f64 / Q as f64 / 1e6,
            );
        }
    }
    let midi = writer.midi.bytes(BARS * bar_ticks);
    let name = format!("{name}, course {course}, {tempo} bpm");
    Piece { name, midi, beats: clock.beats, downbeats: clock.downbeats }
}

fn tempo_at(course: u64, tempo: f64, beat: u64, n_beats: u64) -> f64 {
    let share = beat as f64 / n_beats as f64;
    match course {
        2 if share >= 0.5 => tempo * 1.2,
        3 => tempo * (1.0 + 0.1 * (share * std::f64::consts::TAU).sin()),
        _ => tempo,
    }
}

struct Clock {
    seconds: f64,
    beats: Vec<f64>,
    downbeats: Vec<f64>,
}

impl Clock {
    fn beat(&mut self, first: bool, seconds: f64) {
        self.beats.push(self.seconds);
        if first {
            self.downbeats.push(self.seconds);
        }
        self.seconds += seconds;
    }
}

fn rock(w: &mut Writer) {
    w.midi.program(0, 0, 27).program(0, 1, 33);
    for eighth in 0..8 {
        w.drum(eighth * Q / 2, HAT, if eighth % 2 == 0 { 80 } else { 60 });
        w.bass(eighth * Q / 2, Q / 2, 0, 85);
    }
    w.drum(0, KICK, 110);
    w.drum(2 * Q, KICK, 105);
    if w.dice.below(2) == 0 {
        w.drum(5 * Q / 2, KICK, 90);
    }
    w.drum(Q, SNARE, 105);
    w.drum(3 * Q, SNARE, 105);
    w.chord(0, 2 * Q, 0, 80);
    w.chord(3 * Q / 2 + Q, Q, 0, 75);
}

fn house(w: &mut Writer) {
    w.midi.program(0, 0, 4).program(0, 1, 38);
    for beat in 0..4 {
        w.drum(beat * Q, KICK, 115);
        w.drum(beat * Q + Q / 2, 46, 85);
        w.bass(beat * Q + Q / 2, Q / 2, 0, 95);
    }
    w.drum(Q, 39, 90);
    w.drum(3 * Q, 39, 90);
    for at in [0, 3 * Q / 4, 3 * Q / 2, 5 * Q / 2] {
        w.chord(at, Q / 2, 0, 75);
    }
}

fn waltz(w: &mut Writer) {
    w.midi.program(0, 0, 0).program(0, 1, 32).program(0, 2, 40);
    w.bass(0, Q, 0, 95);
    w.chord(Q, Q / 2, 0, 70);
    w.chord(2 * Q, Q / 2, 0, 70);
    let mut at = 0;
    while at < 3 * Q {
        let length = [Q, Q / 2, 2 * Q][w.dice.below(3) as usize].min(3 * Q - at);
        w.tune(at, length, 2);
        at += length;
    }
}

fn swing(w: &mut Writer) {
    w.midi.program(0, 0, 0).program(0, 1, 32);
    for beat in 0..4 {
        w.drum(beat * Q, RIDE, 90);
        if beat % 2 == 1 {
            w.drum(beat * Q + 2 * Q / 3, RIDE, 75);
            w.drum(beat * Q, 44, 80);
        }
        let interval = [0, 4, 7, 9][beat as usize];
        w.bass(beat * Q, Q, interval, 90);
    }
    w.chord(0, Q / 2, 0, 60);
    w.chord(Q + 2 * Q / 3, Q / 2, 0, 70);
}

fn bossa(w: &mut Writer) {
    w.midi.program(0, 0, 24).program(0, 1, 32);
    for eighth in 0..8 {
        w.drum(eighth * Q / 2, HAT, 60);
    }
    let clave = if w.bar_idx.is_multiple_of(2) { [0, 3, 6] } else { [2, 5, 6] };
    for eighth in clave {
        w.drum(eighth * Q / 2, STICK, 85);
    }
    w.bass(0, 3 * Q / 2, 0, 95);
    w.bass(3 * Q / 2, Q / 2, 7, 80);
    w.bass(2 * Q, 3 * Q / 2, 7, 90);
    w.bass(7 * Q / 2, Q / 2, 0, 80);
    for eighth in [0, 3, 5, 6] {
        w.chord(eighth * Q / 2, Q / 2, 0, 70);
    }
}

fn ballad(w: &mut Writer) {
    w.midi.program(0, 0, 0).program(0, 2, 73);
    w.bass(0, 2 * Q, 0, 85);
    w.bass(2 * Q, 2 * Q, 7, 80);
    let third = if w.minor { 3 } else { 4 };
    for (idx, interval) in [0, 7, 12, third + 12, 12, 7, 12, 7].into_iter().enumerate() {
        let key = 48 + w.root + interval;
        w.put(idx as u64 * Q / 2, Q / 2, 0, key, if idx % 2 == 0 { 75 } else { 62 });
    }
    w.tune(0, 2 * Q, 2);
    w.tune(2 * Q, Q, 2);
    w.tune(3 * Q, Q, 2);
}

fn jig(w: &mut Writer) {
    w.midi.program(0, 0, 25).program(0, 1, 32).program(0, 2, 40);
    for eighth in 0..6 {
        w.tune(eighth * Q / 2, Q / 2, 2);
    }
    for beat in 0..2 {
        w.bass(beat * 3 * Q / 2, Q, if beat == 0 { 0 } else { 7 }, 95);
        w.chord(beat * 3 * Q / 2, Q, 0, 80);
        w.chord(beat * 3 * Q / 2 + Q, Q / 2, 0, 60);
    }
}

fn march(w: &mut Writer) {
    w.midi.program(0, 0, 61).program(0, 1, 58);
    for beat in 0..4 {
        w.drum(beat * Q, if beat % 2 == 0 { KICK } else { SNARE }, 100);
        w.drum(beat * Q + Q / 2, SNARE, 60);
        w.drum(beat * Q + 3 * Q / 4, SNARE, 60);
    }
    w.bass(0, Q, 0, 100);
    w.bass(2 * Q, Q, 7, 95);
    w.chord(Q, Q / 2, 0, 80);
    w.chord(3 * Q, Q / 2, 0, 80);
    w.tune(0, 3 * Q / 2, 0);
    w.tune(3 * Q / 2, Q / 2, 0);
    w.tune(2 * Q, 2 * Q, 0);
}

fn reggae(w: &mut Writer) {
    w.midi.program(0, 0, 17).program(0, 1, 33);
    for beat in 0..4 {
        w.chord(beat * Q + Q / 2, Q / 4, 0, 85);
        w.drum(beat * Q, HAT, 75);
        w.drum(beat * Q + Q / 2, HAT, 60);
    }
    w.drum(2 * Q, KICK, 110);
    w.drum(2 * Q, STICK, 100);
    w.drum(0, KICK, 70);
    w.bass(0, Q, 0, 100);
    w.bass(Q, Q / 2, 7, 85);
    w.bass(2 * Q, Q, 0, 95);
    w.bass(3 * Q, Q / 2, 4, 85);
}

fn funk(w: &mut Writer) {
    w.midi.program(0, 0, 28).program(0, 1, 36);
    for sixteenth in 0..16 {
        w.drum(sixteenth * Q / 4, HAT, if sixteenth % 4 == 0 { 85 } else { 55 });
    }
    for sixteenth in [0, 6, 10] {
        w.drum(sixteenth * Q / 4, KICK, 105);
        w.bass(sixteenth * Q / 4, Q / 2, 0, 95);
    }
    w.bass(14 * Q / 4, Q / 4, 7, 85);
    for sixteenth in [4, 12] {
        w.drum(sixteenth * Q / 4, SNARE, 110);
    }
    w.drum(7 * Q / 4, SNARE, 50);
    for sixteenth in [0, 3, 6, 11] {
        w.chord(sixteenth * Q / 4, Q / 4, 0, 75);
    }
}

fn strings(w: &mut Writer) {
    w.midi.program(0, 0, 48).program(0, 1, 42).program(0, 2, 40);
    w.chord(0, 4 * Q, 0, 75);
    for beat in 0..4 {
        w.bass(beat * Q, Q, if beat % 2 == 0 { 0 } else { 7 }, 90);
    }
    let mut at = 0;
    while at < 4 * Q {
        let length = [Q / 2, Q, Q][w.dice.below(3) as usize].min(4 * Q - at);
        w.tune(at, length, 2);
        at += length;
    }
}

fn strumming(w: &mut Writer) {
    w.midi.program(0, 0, 25).program(0, 2, 22);
    for (eighth, velocity) in [(0, 95), (2, 80), (3, 65), (5, 70), (6, 85), (7, 65)] {
        w.chord(eighth * Q / 2, Q / 2, 0, velocity);
    }
    w.bass(0, Q, 0, 85);
    w.bass(2 * Q, Q, 7, 80);
    w.tune(0, Q, 2);
    w.tune(3 * Q / 2, 3 * Q / 2, 2);
    w.tune(3 * Q, Q, 2);
}

fn chorale(w: &mut Writer) {
    w.midi.program(0, 0, 19).program(0, 1, 19);
    let degrees = [0, 7, 5, 7];
    let root = w.root;
    for beat in 0..4 {
        w.root = (root + degrees[beat as usize]) % 12;
        w.chord(beat * Q, Q, 0, 80);
        w.bass(beat * Q, Q, 0, 85);
    }
    w.root = root;
}

fn tresillo(w: &mut Writer) {
    w.midi.program(0, 0, 0).program(0, 1, 33);
    for half in 0..2 {
        for eighth in [0, 3, 6] {
            w.drum(half * 2 * Q + eighth * Q / 4, SNARE, 70);
        }
        w.drum(half * 2 * Q, KICK, 110);
        w.drum(half * 2 * Q + Q, KICK, 100);
    }
    w.bass(0, 3 * Q / 4, 0, 100);
    w.bass(3 * Q / 2, Q / 2, 7, 90);
    w.bass(2 * Q, 3 * Q / 4, 0, 95);
    w.bass(7 * Q / 2, Q / 2, 7, 90);
    for eighth in [0, 3, 6, 8, 11, 14] {
        w.chord(eighth * Q / 4, Q / 2, 0, 75);
    }
}
