//! What order alone explains: how often one thing would follow another if the messages of each context came in another
//! order. Exact mean and variance over all orders, without random numbers.

use serde::{Deserialize, Serialize};

use crate::base::significance::poisson_at_least;

/// Mean and variance of a count over all orders; both add up over contexts, which are shuffled apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chance {
    /// Mean.
    pub expected: f64,
    /// Variance.
    pub variance: f64,
}

impl Chance {
    /// Probability that another order has at least as many.
    ///
    /// The count is taken for a Poisson variable moved to this mean: it has the variance, and the skewness of rare pairs.
    pub fn p_at_least(&self, count: u64) -> f64 {
        let above = count as f64 - self.expected;
        if self.variance < 1e-9 {
            return if above > 0.5 { 0.0 } else { 1.0 };
        }
        poisson_at_least(above + self.variance, self.variance)
    }
}

crate::base::sums::adds_up!(Chance: expected, variance);

/// The places of a context that stand one lag apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaggedPairs {
    /// Messages.
    pub messages: u64,
    /// Pairs of places at the lag.
    pub pairs: u64,
    /// Places in the middle of two such pairs.
    pub chained: u64,
}

/// Sums over the messages of a context, of how often each has one thing (`a`) and another (`b`).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct MessageSums {
    /// Σa and Σa².
    pub a: [f64; 2],
    /// Σb and Σb².
    pub b: [f64; 2],
    /// Σab, Σa²b, Σab², Σa²b².
    pub both: [f64; 4],
}

/// Mean and variance of Σab over the pairs of places, over all orders of the messages.
pub fn chance(places: LaggedPairs, sums: &MessageSums) -> Chance {
    let LaggedPairs { messages, pairs, chained } = places;
    let ([a, aa], [b, bb], [ab, aab, abb, aabb]) = (sums.a, sums.b, sums.both);
    // Means over two, three and four different messages.
    let mean = |sum: f64, different: u64| {
        let ways: f64 = (0..different).map(|taken| messages.saturating_sub(taken) as f64).product();
        if ways > 0.0 { sum / ways } else { 0.0 }
    };
    let one = mean(a * b - ab, 2);
    let same = mean(aa * bb - aabb, 2);
    let chain = mean(a * ab * b - aab * b - ab * ab - abb * a + 2.0 * aabb, 3);
    let apart = a * a * b * b - 4.0 * ab * a * b - aa * b * b - bb * a * a + 2.0 * ab * ab + aa * bb;
    let apart = mean(apart + 4.0 * aab * b + 4.0 * abb * a - 6.0 * aabb, 4);
    let (pairs, chained) = (pairs as f64, chained as f64);
    let expected = pairs * one;
    let of_apart = pairs * pairs - pairs - 2.0 * chained;
    let square = pairs * same + 2.0 * chained * chain + of_apart * apart;
    Chance { expected, variance: (square - expected * expected).max(0.0) }
}
