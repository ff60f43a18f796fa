//! Bars: which beats start one. A bar tends to start with a change of harmony and a bass note, and
//! rarely with a snare.

use super::key::chroma::{self, Chroma};
use super::novelty::Novelty;

/// The supported meters by their beats, and the prior of each.
const METERS: [(usize, f64); 3] = [(4, 0.14), (3, 0.0), (2, 0.0)];

/// The cost of starting a bar early or late.
const BREAK_COST: f64 = 3.0;

/// The weight of each cue.
const HARMONY: f64 = 1.0;
const LOW: f64 = 0.6;
const HIGH: f64 = -0.35;
const ALL: f64 = 0.25;

/// The numbers of beats before and after a beat whose harmony is compared.
const SPANS: [usize; 3] = [1, 2, 4];

/// The bars of a sound.
#[derive(Debug)]
pub(crate) struct Bars {
    pub(crate) beats_per_bar: usize,
    /// The beats that start a bar.
    pub(crate) downbeats: Vec<usize>,
    /// How well the cues separate downbeats from other beats: their correlation, 0 to 1.
    pub(crate) fit: f64,
    /// How much the harmony changes at downbeats, from the beat before: 0 to 1.
    pub(crate) change: f64,
}

pub(crate) fn find(chroma: &Chroma, novelty: &Novelty, moments: &[usize]) -> Bars {
    let chroma = chroma.of_beats(moments);
    let changes = harmony_changes(&chroma, 1);
    let signs = signs(&chroma, novelty, moments);
    let bars = METERS.iter().map(|(beats, belief)| {
        let downbeats = place(&signs, *beats);
        let fit = correlation(&signs, &downbeats);
        let sum = downbeats.iter().map(|idx| changes[*idx]).sum::<f64>();
        let change = sum / downbeats.len().max(1) as f64;
        (fit + belief, Bars { beats_per_bar: *beats, downbeats, fit, change })
    });
    bars.max_by(|a, b| a.0.total_cmp(&b.0)).expect("the list of meters is not empty").1
}

/// Returns the correlation between the cues, whose mean is 0 and spread 1, and being one of these
/// beats.
fn correlation(signs: &[f64], beats: &[usize]) -> f64 {
    let share = beats.len() as f64 / signs.len().max(1) as f64;
    if share <= 0.0 || share >= 1.0 {
        return 0.0;
    }
    let mean = beats.iter().map(|idx| signs[*idx]).sum::<f64>() / beats.len() as f64;
    mean * (share / (1.0 - share)).sqrt()
}

/// Returns how much each beat looks like the first of a bar; their mean is 0, their spread 1.
fn signs(chroma: &[[f32; 12]], novelty: &Novelty, moments: &[usize]) -> Vec<f64> {
    let mut harmony = vec![0.0; moments.len()];
    for span in SPANS {
        let changes = harmony_changes(chroma, span);
        harmony.iter_mut().zip(changes).for_each(|(harmony, change)| *harmony += change);
    }
    let near = |values: &[f32]| -> Vec<f64> {
        let peak = |moment: &usize| {
            let around = moment.saturating_sub(3)..(moment + 4).min(values.len());
            f64::from(values[around].iter().copied().fold(0.0, f32::max))
        };
        standard(moments.iter().map(peak).collect())
    };
    let (low, high, all) = (near(&novelty.low), near(&novelty.high), near(&novelty.all));
    let harmony = standard(harmony);
    let sum =
        |idx: usize| HARMONY * harmony[idx] + LOW * low[idx] + HIGH * high[idx] + ALL * all[idx];
    standard((0..moments.len()).map(sum).collect())
}

fn standard(mut values: Vec<f64>) -> Vec<f64> {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    values.iter_mut().for_each(|value| *value -= mean);
    let spread = (values.iter().map(|value| value * value).sum::<f64>() / n).sqrt();
    if spread > 1e-9 {
        values.iter_mut().for_each(|value| *value /= spread);
    }
    values
}

/// Returns how different the harmony of `span` beats is from that of the `span` beats before: 0 to
/// 1.
fn harmony_changes(chroma: &[[f32; 12]], span: usize) -> Vec<f64> {
    let change = |idx: usize| {
        let before = chroma::sum(&chroma[idx.saturating_sub(span)..idx]);
        let after = chroma::sum(&chroma[idx..(idx + span).min(chroma.len())]);
        if idx == 0 { 0.0 } else { 1.0 - cosine(&before, &after) }
    };
    (0..chroma.len()).map(change).collect()
}

fn cosine(a: &[f32; 12], b: &[f32; 12]) -> f64 {
    let dot = |a: &[f32; 12], b: &[f32; 12]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum()
    };
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt().max(1e-9)
}

/// Returns the beats that start bars of `beats` beats: evenly spaced, except for breaks that pay
/// off.
fn place(signs: &[f64], beats: usize) -> Vec<usize> {
    let mut scores = vec![0.0_f64; beats];
    let mut came_from: Vec<Vec<usize>> = Vec::with_capacity(signs.len());
    for sign in signs {
        let best = (0..beats).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0);
        let mut next = vec![0.0; beats];
        let mut from = vec![0; beats];
        for place in 0..beats {
            let before = (place + beats - 1) % beats;
            let broken = scores[best] - BREAK_COST;
            (from[place], next[place]) =
                if scores[before] >= broken { (before, scores[before]) } else { (best, broken) };
            next[place] += if place == 0 { *sign } else { -sign / (beats - 1) as f64 };
        }
        scores = next;
        came_from.push(from);
    }
    let mut place = (0..beats).max_by(|a, b| scores[*a].total_cmp(&scores[*b])).unwrap_or(0);
    let mut downbeats = Vec::new();
    for (idx, from) in came_from.iter().enumerate().rev() {
        if place == 0 {
            downbeats.push(idx);
        }
        place = from[place];
    }
    downbeats.reverse();
    downbeats
}
