//! Tokens by how they are billed, and what they cost.

use serde::Serialize;

use crate::base::sums::{adds_up, grows};

/// Units of one uncached input token: every published rate is a whole number of them.
pub const UNITS_PER_TOKEN: u64 = 200;

/// Tokens by how they are billed, or what they cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Spent<T = u64> {
    /// Read from the cache.
    pub read: T,
    /// Written to it for five minutes.
    pub write_5m: T,
    /// Written to it for an hour.
    pub write_1h: T,
    /// Neither.
    pub uncached: T,
    /// Answered.
    pub output: T,
}

impl Spent {
    /// Tokens of the prompt: everything but the answer.
    pub fn prompt(&self) -> u64 {
        self.read + self.write() + self.uncached
    }

    /// So many times all of it.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        let Self { read, write_5m, write_1h, uncached, output } = self;
        let [read, write_5m, write_1h, uncached, output] =
            [read, write_5m, write_1h, uncached, output].map(|tokens| tokens * u64::from(times));
        Self { read, write_5m, write_1h, uncached, output }
    }

    /// Tokens written for either lifetime.
    pub fn write(&self) -> u64 {
        self.write_5m + self.write_1h
    }
}

adds_up!(Spent: read, write_5m, write_1h, uncached, output);
grows!(Spent: read, write_5m, write_1h, uncached, output);

/// What tokens cost. Integers throughout: no sum rounds.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Cost {
    /// Nano-dollars of all priced tokens, at list prices.
    #[serde(serialize_with = "as_number")]
    pub nano_usd: u128,
    /// All tokens as uncached input tokens of the model, times [`UNITS_PER_TOKEN`]; unpriced tokens at the usual ratios.
    #[serde(serialize_with = "as_number")]
    pub units: u128,
    /// Tokens that no price is known for: they are in `units`, not in `nano_usd`.
    pub unpriced_tokens: u64,
}

impl Cost {
    /// Dollars of the tokens that have a price, for print; none if no token has one.
    pub fn usd(&self) -> Option<f64> {
        (self.nano_usd > 0 || self.unpriced_tokens == 0).then_some(self.nano_usd as f64 / 1e9)
    }

    /// So many times all of it.
    #[must_use]
    pub fn times(self, times: u32) -> Self {
        let many = u128::from(times);
        let unpriced_tokens = self.unpriced_tokens * u64::from(times);
        Self { nano_usd: self.nano_usd * many, units: self.units * many, unpriced_tokens }
    }

    /// This cost and another in the one measure that both have: money of what has a price, or where nothing has one,
    /// input-equivalent tokens (which weigh models alike, whatever they charge). Both must lack the prices of the same
    /// requests.
    pub fn beside(&self, other: &Self) -> (u128, u128) {
        if self.nano_usd > 0 { (self.nano_usd, other.nano_usd) } else { (self.units, other.units) }
    }

    /// Share of a whole in money; of one without prices in input-equivalent tokens. None of nothing.
    pub fn share_of(&self, whole: &Self) -> Option<f64> {
        let (whole, part) = whole.beside(self);
        (whole > 0).then(|| part as f64 / whole as f64)
    }

    /// It without a part that was lost.
    #[must_use]
    pub fn less(&self, lost: &Self) -> Self {
        let (nano_usd, units) = (self.nano_usd.saturating_sub(lost.nano_usd), self.units.saturating_sub(lost.units));
        Self { nano_usd, units, unpriced_tokens: self.unpriced_tokens }
    }

    /// A share of it. All of it is not rounded.
    #[must_use]
    pub fn part(&self, share: f64) -> Self {
        if share >= 1.0 {
            return *self;
        }
        let of = |whole: u128| (whole as f64 * share) as u128;
        let unpriced_tokens = (self.unpriced_tokens as f64 * share) as u64;
        Self { nano_usd: of(self.nano_usd), units: of(self.units), unpriced_tokens }
    }

    /// The cost of these tokens if no price were known for them.
    #[must_use]
    pub fn unpriced(&self, spent: &Spent) -> Self {
        Self { nano_usd: 0, units: self.units, unpriced_tokens: spent.prompt() + spent.output }
    }

    /// Change from this cost to another, as a share of it ([`Cost::beside`]). None if there is nothing to change.
    pub fn change_to(&self, after: &Self) -> Option<f64> {
        let (before, after) = self.beside(after);
        change(before, after)
    }

    /// The same of input-equivalent tokens in any case.
    pub fn units_change_to(&self, after: &Self) -> Option<f64> {
        change(self.units, after.units)
    }

    /// Input-equivalent tokens, for print.
    pub fn iet(&self) -> f64 {
        self.units as f64 / UNITS_PER_TOKEN as f64
    }
}

/// A number of JSON: exact as far as its readers agree on whole numbers, beyond that to sixteen digits.
fn as_number<S: serde::Serializer>(value: &u128, serializer: S) -> Result<S::Ok, S::Error> {
    match u64::try_from(*value) {
        Ok(whole) => serializer.serialize_u64(whole),
        Err(_) => serializer.serialize_f64(*value as f64),
    }
}

/// The difference first: of two close numbers the quotient would be off by a little.
fn change(before: u128, after: u128) -> Option<f64> {
    (before > 0).then(|| (after as f64 - before as f64) / before as f64)
}

adds_up!(Cost: nano_usd, units, unpriced_tokens);
grows!(Cost: nano_usd, units, unpriced_tokens);

/// Requests with their tokens and cost.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Total {
    pub requests: u64,
    /// Tokens, with those of calls besides them.
    pub spent: Spent,
    pub cost: Cost,
}

adds_up!(Total: requests, spent, cost);
grows!(Total: requests, spent, cost);
