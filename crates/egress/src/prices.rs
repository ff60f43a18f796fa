//! The prices of models.

use std::collections::BTreeMap;

use ringback_proto::money::MicroUsd;

use crate::tokens::Tokens;

/// The number of tokens that a price is for.
const TOKENS: u128 = 1_000_000;

/// Prices by model. A name that ends in `*` matches every model with that prefix; the longest match
/// counts, and an exact name takes precedence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Prices(pub BTreeMap<String, Price>);

/// The price of a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Price {
    /// Tokens that the model reads.
    pub input: MicroUsd,
    /// Tokens that the model writes.
    pub output: MicroUsd,
    /// Tokens that the model reads from the provider's cache; as `input` if absent.
    pub cache_read: Option<MicroUsd>,
    /// Tokens that the provider writes to its cache; as `input` if absent.
    pub cache_write: Option<MicroUsd>,
}

impl Prices {
    /// The price of a model, if it has one.
    #[must_use]
    pub fn of(&self, model: &str) -> Option<&Price> {
        let fits = |(name, _): &(&String, &Price)| {
            name.strip_suffix('*').is_some_and(|start| model.starts_with(start))
        };
        let longest = || self.0.iter().filter(fits).max_by_key(|(name, _)| name.len());
        self.0.get(model).or_else(|| longest().map(|(_, price)| price))
    }
}

impl Price {
    /// The cost of tokens, rounded up once to a millionth of a dollar.
    pub(crate) fn cost(&self, tokens: &Tokens) -> MicroUsd {
        let parts = [
            (tokens.input, self.input),
            (tokens.cache_read, self.cache_read.unwrap_or(self.input)),
            (tokens.cache_write, self.cache_write.unwrap_or(self.input)),
            (tokens.output, self.output),
        ];
        let part = |(tokens, price): (u64, MicroUsd)| u128::from(tokens) * u128::from(price.0);
        let sum = parts.into_iter().map(part).fold(0, u128::saturating_add);
        MicroUsd(u64::try_from(sum.div_ceil(TOKENS)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(input: u64) -> Price {
        let (input, output) = (MicroUsd(input), MicroUsd(input * 5));
        Price { input, output, cache_read: None, cache_write: None }
    }

    #[test]
    fn the_longest_name_that_fits_a_model_counts() {
        let named = [("*", 1), ("claude-*", 2), ("claude-opus-*", 3), ("claude-opus-4", 4)];
        let prices = Prices(named.map(|(name, input)| (name.to_owned(), price(input))).into());
        for (model, expected) in
            [("gpt", 1), ("claude-x", 2), ("claude-opus-5", 3), ("claude-opus-4", 4), ("", 1)]
        {
            assert_eq!(prices.of(model), Some(&price(expected)), "{model}");
        }
        assert_eq!(Prices::default().of("gpt"), None);
    }

    /// Rule: a cost is exact, rounded up once, and never wraps.
    #[test]
    fn a_cost_is_counted_in_whole_numbers() {
        let tokens = Tokens { input: 1_000, output: 10, ..Tokens::default() };
        assert_eq!(price(3_000_000).cost(&tokens), MicroUsd(3_150));
        let one = Tokens { input: 1, ..Tokens::default() };
        assert_eq!(price(1).cost(&one), MicroUsd(1), "rounded up");
        assert_eq!(price(1).cost(&Tokens::default()), MicroUsd(0));
        let kept = Price { cache_read: Some(MicroUsd(300_000)), ..price(3_000_000) };
        let read = Tokens { cache_read: 1_000, cache_write: 100, ..Tokens::default() };
        assert_eq!(kept.cost(&read), MicroUsd(600));
        let all = Tokens { input: u64::MAX, output: u64::MAX, ..Tokens::default() };
        assert_eq!(price(u64::MAX / 5).cost(&all), MicroUsd(u64::MAX));
    }
}
