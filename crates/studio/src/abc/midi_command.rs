//! `%%MIDI`: commands that change the performance.

/// A command of a `%%MIDI` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MidiCommand {
    /// Sets the instrument, of the voice or of one channel (from 0).
    Program {
        /// The channel, if named.
        channel: Option<u8>,
        /// The instrument, from 0.
        program: u8,
    },
    /// Sets the channel of the voice, from 0.
    Channel(u8),
    /// Transposes the voice by this many semitones.
    Transpose(i32),
    /// Transposes the voice by this many further semitones.
    TransposeMore(i32),
    /// Sets the rhythm of the accompaniment, such as `fzczfzcz`; empty is the meter's own.
    ChordPattern(String),
    /// Sets whether chord symbols are played.
    Chords(bool),
    /// Sets the instrument of the chords.
    ChordProgram(u8),
    /// Sets the instrument of the bass.
    BassProgram(u8),
    /// Sets the velocity of the chords.
    ChordVolume(u8),
    /// Sets the velocity of the bass.
    BassVolume(u8),
    /// Sets the drums of each bar.
    Drum(DrumPattern),
    /// Sets whether the drums play.
    Drums(bool),
    /// Grace notes take their length divided by this.
    GraceDivider(u32),
    /// Any other command: it has no effect here.
    Other,
}

/// The drums of a bar: strokes and rests, with a key and a velocity for each stroke.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DrumPattern {
    /// The steps in order: whether it is a stroke, and its length.
    pub steps: Vec<(bool, u32)>,
    /// The key of each stroke.
    pub keys: Vec<u8>,
    /// The velocity of each stroke.
    pub velocities: Vec<u8>,
}

/// The longest pattern of chords or drums.
const PATTERN_STEPS_MAX: usize = 64;

impl MidiCommand {
    /// Reads the text after `%%MIDI`; an error says what was expected.
    pub(super) fn parse(text: &str) -> Result<Self, &'static str> {
        let mut words = text.split_whitespace();
        let name = words.next().unwrap_or_default().to_ascii_lowercase();
        let words: Vec<&str> = words.collect();
        Ok(match name.as_str() {
            "program" => match words.as_slice() {
                [program] => Self::Program { channel: None, program: seven(program)? },
                [channel, program, ..] => {
                    Self::Program { channel: Some(channel_of(channel)?), program: seven(program)? }
                }
                [] => return Err("write `%%MIDI program 0` with a program of 0 to 127"),
            },
            "channel" => Self::Channel(channel_of(first(&words)?)?),
            "transpose" => Self::Transpose(semitones(first(&words)?)?),
            "rtranspose" => Self::TransposeMore(semitones(first(&words)?)?),
            "gchord" => chord_pattern(words.first().copied().unwrap_or_default())?,
            "gchordon" => Self::Chords(true),
            "gchordoff" => Self::Chords(false),
            "chordprog" => Self::ChordProgram(seven(first(&words)?)?),
            "bassprog" => Self::BassProgram(seven(first(&words)?)?),
            "chordvol" => Self::ChordVolume(seven(first(&words)?)?),
            "bassvol" => Self::BassVolume(seven(first(&words)?)?),
            "drum" => Self::Drum(DrumPattern::parse(&words)?),
            "drumon" => Self::Drums(true),
            "drumoff" => Self::Drums(false),
            "gracedivider" => match first(&words)?.parse() {
                Ok(divider @ 1..=64) => Self::GraceDivider(divider),
                Ok(_) | Err(_) => return Err("a divider is 1 to 64"),
            },
            _ => Self::Other,
        })
    }
}

impl DrumPattern {
    fn parse(words: &[&str]) -> Result<Self, &'static str> {
        let steps = steps(first(words)?, "dz")?;
        let steps: Vec<_> = steps.into_iter().map(|(c, length)| (c == 'd', length)).collect();
        let n_strokes = steps.iter().filter(|(stroke, _)| *stroke).count();
        let numbers: Vec<u8> =
            words[1..].iter().map(|word| seven(word)).collect::<Result<_, _>>()?;
        let mut keys: Vec<u8> = numbers.iter().copied().take(n_strokes).collect();
        // A low bass drum with an even stroke by default.
        keys.resize(n_strokes, 35);
        let mut velocities: Vec<u8> =
            numbers.iter().copied().skip(n_strokes).take(n_strokes).collect();
        velocities.resize(n_strokes, 80);
        Ok(Self { steps, keys, velocities })
    }
}

fn chord_pattern(text: &str) -> Result<MidiCommand, &'static str> {
    if !text.is_empty() {
        steps(text, "fcbzghijGHIJ")?;
    }
    Ok(MidiCommand::ChordPattern(text.to_owned()))
}

/// Returns the steps of a pattern with their lengths, 1 by default.
pub(super) fn steps(text: &str, known: &str) -> Result<Vec<(char, u32)>, &'static str> {
    let mut steps: Vec<(char, u32)> = Vec::new();
    let mut digits = String::new();
    let close = |steps: &mut Vec<(char, u32)>, digits: &mut String| {
        if let (Some(last), Ok(length)) = (steps.last_mut(), digits.parse::<u32>()) {
            last.1 = length.clamp(1, 64);
        }
        digits.clear();
    };
    for c in text.chars() {
        if c.is_ascii_digit() {
            digits.push(c);
        } else if known.contains(c) {
            close(&mut steps, &mut digits);
            steps.push((c, 1));
        } else {
            return Err("a pattern has letters for strokes, `z` for rests, and lengths as numbers");
        }
    }
    close(&mut steps, &mut digits);
    if steps.is_empty() || steps.len() > PATTERN_STEPS_MAX {
        return Err("a pattern has 1 to 64 steps");
    }
    Ok(steps)
}

fn first<'a>(words: &[&'a str]) -> Result<&'a str, &'static str> {
    words.first().copied().ok_or("a value is missing after the command")
}

fn seven(word: &str) -> Result<u8, &'static str> {
    word.parse::<u8>().ok().filter(|n| *n < 128).ok_or("the value must be 0 to 127")
}

fn channel_of(word: &str) -> Result<u8, &'static str> {
    match word.parse::<u8>() {
        Ok(channel @ 1..=16) => Ok(channel - 1),
        Ok(_) | Err(_) => Err("a channel is 1 to 16"),
    }
}

fn semitones(word: &str) -> Result<i32, &'static str> {
    match word.parse::<i32>() {
        Ok(semitones @ -60..=60) => Ok(semitones),
        Ok(_) | Err(_) => Err("semitones are -60 to 60"),
    }
}
