//! Predicts symbols: counts after contexts of several lengths, blended.

use std::collections::{BTreeMap, HashMap};

use rand::RngExt as _;
use rand::rngs::Xoshiro256PlusPlus;

/// The lowest temperature that is not always the likeliest choice.
const TEMPERATURE_MIN: f64 = 0.01;

/// Predicts a symbol from those before it. Contexts are looked up and never iterated, so that
/// nothing depends on the order of a hash table.
#[derive(Debug, Default)]
pub(super) struct Predictor {
    /// By the last symbols of a context, from none to all of them.
    counts: HashMap<Box<[i32]>, BTreeMap<i32, u32>>,
}

/// Symbols and their probabilities.
pub(super) type Distribution = BTreeMap<i32, f64>;

impl Predictor {
    /// Learns that a symbol follows a context.
    pub(super) fn learn(&mut self, context: &[i32], symbol: i32, weight: u32) {
        for from in 0..=context.len() {
            let counts = self.counts.entry(context[from..].into()).or_default();
            *counts.entry(symbol).or_default() += weight;
        }
    }

    /// Returns the candidates after a context: each longer part of it that was seen has more
    /// weight, the fewer different symbols followed it.
    pub(super) fn distribution(&self, context: &[i32]) -> Distribution {
        let mut blended = Distribution::new();
        for from in (0..=context.len()).rev() {
            let Some(counts) = self.counts.get(&context[from..]) else { break };
            let total: u32 = counts.values().sum();
            let n_different = counts.len() as f64;
            let is_first = blended.is_empty();
            let doubt = if is_first { 0.0 } else { n_different / (f64::from(total) + n_different) };
            for probability in blended.values_mut() {
                *probability *= doubt;
            }
            for (symbol, count) in counts {
                let share = f64::from(*count) / f64::from(total) * (1.0 - doubt);
                *blended.entry(*symbol).or_default() += share;
            }
        }
        blended
    }

    /// Returns the log likelihood of a symbol after a context.
    pub(super) fn likelihood(&self, context: &[i32], symbol: i32) -> f64 {
        self.distribution(context).get(&symbol).copied().unwrap_or(0.0).max(1e-9).ln()
    }
}

/// Draws a symbol; `None` if the distribution is empty.
pub(super) fn draw(
    distribution: &Distribution,
    temperature: f64,
    top_p: f64,
    rng: &mut Xoshiro256PlusPlus,
) -> Option<i32> {
    let mut choices: Vec<(i32, f64)> = distribution.iter().map(|(s, p)| (*s, *p)).collect();
    // Equally likely ones stay in the order of their numbers.
    choices.sort_by(|a, b| b.1.total_cmp(&a.1));
    // Always drawn, so that settings do not shift later draws.
    let drawn: f64 = rng.random();
    if temperature < TEMPERATURE_MIN {
        return choices.first().map(|(symbol, _)| *symbol);
    }
    let mut sum = 0.0;
    let enough = choices.iter().position(|(_, probability)| {
        sum += probability;
        sum >= top_p
    });
    choices.truncate(enough.map_or(choices.len(), |last| last + 1));
    for (_, probability) in &mut choices {
        *probability = probability.powf(1.0 / temperature);
    }
    let total: f64 = choices.iter().map(|(_, probability)| probability).sum();
    let mut left = drawn * total;
    for (symbol, probability) in &choices {
        left -= probability;
        if left <= 0.0 {
            return Some(*symbol);
        }
    }
    choices.last().map(|(symbol, _)| *symbol)
}
