//! Beats: the chain of moments that lie on attacks and are a beat apart.

use super::bars::{self, Bars};
use super::key::chroma::Chroma;
use super::novelty::{FPS, Novelty, seconds};
use super::sound::Sound;
use super::tempo::TempoPath;

/// The cost of an uneven beat against a missed attack.
const TIGHTNESS: f64 = 60.0;

/// A beat takes from half to twice its period.
const SHORTEST: f64 = 0.5;
const LONGEST: f64 = 2.0;

/// The weight of the bass: the foot taps with the bass drum.
const LOW_SHARE: f32 = 0.3;

/// The weights of attacks on the beat, bass on the beat, and harmony at the bar when choosing
/// between readings of the same music.
const CONTRAST: f64 = 1.0;
const LOW_CONTRAST: f64 = 0.5;
const BARS: f64 = 1.0;
const CHANGE: f64 = 2.0;

/// More contrast than this counts no more: the level below the beat has the most.
const CONTRAST_ENOUGH: f64 = 0.3;

/// The penalty for beats of unequal strength.
const ALTERNATION: f64 = 1.0;

/// The tempo that people prefer among several, and how far they deviate from it.
const PREFERRED_BPM: f64 = 105.0;
const PREFERENCE_OCTAVES: f64 = 0.7;

/// Beats of a sound.
#[derive(Debug, Clone, PartialEq)]
pub struct Beats {
    /// Their times, in seconds.
    pub beats: Vec<f64>,
    /// Those that start a bar.
    pub downbeats: Vec<f64>,
    /// Beats per bar.
    pub beats_per_bar: u32,
    /// The median of the tempos from beat to beat, in beats per minute; 0 without beats.
    pub bpm: f64,
    /// 0 to 1: how much stronger attacks are on the beats than between them.
    pub confidence: f32,
}

impl Beats {
    fn none() -> Self {
        let (beats, downbeats) = (Vec::new(), Vec::new());
        Self { beats, downbeats, beats_per_bar: 0, bpm: 0.0, confidence: 0.0 }
    }
}

/// Finds the beats of a sound.
#[must_use]
pub fn track_beats(sound: &Sound, novelty: &Novelty) -> Beats {
    let strength: Vec<f32> =
        novelty.all.iter().zip(&novelty.low).map(|(all, low)| all + LOW_SHARE * low).collect();
    let loudest = strength.iter().copied().fold(0.0, f32::max);
    if strength.len() < FPS as usize || loudest <= 0.0 {
        return Beats::none();
    }
    let chain = chain(&strength, &TempoPath::of(&strength));
    let chroma = Chroma::of(sound);
    let readings = readings(&chain).into_iter().filter(|moments| moments.len() > 1);
    let judged = readings.map(|moments| Reading::of(moments, &strength, novelty, &chroma));
    let Some(reading) = judged.max_by(|a, b| a.merit.total_cmp(&b.merit)) else {
        return Beats::none();
    };
    let Reading { moments, bars, .. } = reading;
    Beats {
        beats: moments.iter().map(|moment| seconds(*moment)).collect(),
        downbeats: bars.downbeats.iter().map(|idx| seconds(moments[*idx])).collect(),
        beats_per_bar: u32::try_from(bars.beats_per_bar).unwrap_or(u32::MAX),
        bpm: median_bpm(&moments),
        confidence: confidence(&strength, &moments),
    }
}

/// One interpretation of the beats.
struct Reading {
    moments: Vec<usize>,
    bars: Bars,
    merit: f64,
}

impl Reading {
    fn of(moments: Vec<usize>, strength: &[f32], novelty: &Novelty, chroma: &Chroma) -> Self {
        let bars = bars::find(chroma, novelty, &moments);
        let octaves = (median_bpm(&moments) / PREFERRED_BPM).log2() / PREFERENCE_OCTAVES;
        let merit = CONTRAST * contrast(strength, &moments).min(CONTRAST_ENOUGH)
            + LOW_CONTRAST * contrast(&novelty.low, &moments).min(CONTRAST_ENOUGH)
            + BARS * bars.fit
            + CHANGE * bars.change
            - ALTERNATION * alternation(strength, &moments)
            - 0.5 * octaves * octaves;
        Self { moments, bars, merit }
    }
}

/// Returns interpretations of a chain of beats: as it is, off the beat, twice and half as fast.
fn readings(chain: &[usize]) -> Vec<Vec<usize>> {
    let between: Vec<_> = chain.windows(2).map(|pair| usize::midpoint(pair[0], pair[1])).collect();
    let mut twice = [chain, &between].concat();
    twice.sort_unstable();
    let every_other = |from: usize| chain.iter().skip(from).step_by(2).copied().collect();
    vec![chain.to_vec(), every_other(0), every_other(1), between, twice]
}

/// Returns the strength of the attack at a place, within a player's imprecision.
fn peak(strength: &[f32], centre: usize) -> f64 {
    let around = centre.saturating_sub(2)..(centre + 3).min(strength.len());
    f64::from(strength[around].iter().copied().fold(0.0, f32::max))
}

/// Returns how much stronger attacks are on the beats than halfway between them: -1 to 1.
fn contrast(strength: &[f32], moments: &[usize]) -> f64 {
    let n = moments.len() as f64;
    let on = moments.iter().map(|moment| peak(strength, *moment)).sum::<f64>() / n;
    let centres = moments.windows(2).map(|pair| usize::midpoint(pair[0], pair[1]));
    let between = centres.map(|centre| peak(strength, centre)).sum::<f64>() / (n - 1.0);
    (on - between) / (on + between).max(1e-9)
}

/// Returns how different in strength every other beat is: 0 to 1. Beats of a bar are more alike
/// than beats and offbeats.
fn alternation(strength: &[f32], moments: &[usize]) -> f64 {
    let sum = |from: usize| -> f64 {
        moments.iter().skip(from).step_by(2).map(|moment| peak(strength, *moment)).sum()
    };
    let (even, odd) = (sum(0), sum(1));
    (even - odd).abs() / (even + odd).max(1e-9)
}

/// Returns the chain of moments with the strongest attacks and the most even steps.
fn chain(strength: &[f32], tempo: &TempoPath) -> Vec<usize> {
    let mut scores = vec![0.0_f64; strength.len()];
    let mut came_from = vec![usize::MAX; strength.len()];
    for moment in 0..strength.len() {
        let period = tempo.period(moment);
        let (shortest, longest) = ((period * SHORTEST) as usize, (period * LONGEST) as usize);
        let mut best = (usize::MAX, 0.0);
        for step in shortest.max(1)..=longest.min(moment) {
            let uneven = (step as f64 / period).ln();
            let score = scores[moment - step] - TIGHTNESS * uneven * uneven;
            if score > best.1 {
                best = (moment - step, score);
            }
        }
        scores[moment] = f64::from(strength[moment]) + best.1;
        came_from[moment] = best.0;
    }
    let last_period = tempo.period(strength.len()) as usize;
    let tail = strength.len().saturating_sub(last_period + 1)..strength.len();
    let mut moment = tail.max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0);
    let mut moments = Vec::new();
    while moment != usize::MAX {
        moments.push(moment);
        moment = came_from[moment];
    }
    moments.reverse();
    without_silence(&moments, strength)
}

/// Drops beats before the first and after the last attack: they are guesses about silence.
fn without_silence(moments: &[usize], strength: &[f32]) -> Vec<usize> {
    let near = |moment: usize| {
        let around = moment.saturating_sub(3)..(moment + 4).min(strength.len());
        strength[around].iter().copied().fold(0.0, f32::max)
    };
    let mean =
        moments.iter().map(|moment| near(*moment)).sum::<f32>() / moments.len().max(1) as f32;
    let sounds = |moment: &usize| near(*moment) > mean * 0.2;
    let first = moments.iter().position(sounds).unwrap_or(0);
    let last = moments.iter().rposition(sounds).unwrap_or(0);
    moments[first..=last.max(first).min(moments.len() - 1)].to_vec()
}

fn median_bpm(moments: &[usize]) -> f64 {
    let mut steps: Vec<_> = moments.windows(2).map(|pair| pair[1] - pair[0]).collect();
    if steps.is_empty() {
        return 0.0;
    }
    steps.sort_unstable();
    let (low, high) = (steps.len() * 2 / 5, (steps.len() * 3).div_ceil(5).max(1));
    let middle = &steps[low..high.max(low + 1)];
    60.0 * FPS * middle.len() as f64 / middle.iter().sum::<usize>() as f64
}

fn confidence(strength: &[f32], moments: &[usize]) -> f32 {
    let peak = |centre: usize| {
        let around = centre.saturating_sub(2)..(centre + 3).min(strength.len());
        strength[around].iter().copied().fold(0.0, f32::max)
    };
    let on: f32 = moments.iter().map(|moment| peak(*moment)).sum();
    let between: f32 = moments.windows(2).map(|pair| peak(pair[0] + (pair[1] - pair[0]) / 3)).sum();
    if on > 0.0 { ((on - between) / on).clamp(0.0, 1.0) } else { 0.0 }
}
