//! Exact tests of association, the control of false discoveries over many of them, and the tails and quantiles of the
//! normal distribution and of Student's t; and what order alone explains: how often one thing would follow another if the
//! messages of each context came in another order (exact mean and variance over all orders, without random numbers).
//!
//! All tests take trials as independent, which calls of one session are not ([`crate::base::stats::Clustered`]).

use serde::{Deserialize, Serialize};

/// A two-by-two table by its margins: of `total` trials `row` have the first property, `column` the second, and `both`
/// have both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoByTwo {
    /// Trials with both properties.
    pub both: u64,
    /// Trials with the first property.
    pub row: u64,
    /// Trials with the second property.
    pub column: u64,
    pub total: u64,
}

impl TwoByTwo {
    /// Successes `k` of `n` on two sides, as a table: the first property is the side, the second success.
    pub fn of_sides(a: (u64, u64), b: (u64, u64)) -> Self {
        Self { both: a.0, row: a.1, column: a.0 + b.0, total: a.1 + b.1 }
    }

    /// Smallest and largest count of both that the margins allow.
    fn range(&self) -> (u64, u64) {
        ((self.row + self.column).saturating_sub(self.total), self.row.min(self.column))
    }

    /// Logarithm of the probability of `both` given the margins (hypergeometric distribution).
    fn ln_probability(&self, both: u64) -> f64 {
        ln_choose(self.column, both) + ln_choose(self.total - self.column, self.row - both)
            - ln_choose(self.total, self.row)
    }

    /// Fisher's exact test against "more of both than independence gives": the probability of at least as many.
    pub fn p_greater(&self) -> f64 {
        let (least, most) = self.range();
        if self.both <= least {
            return 1.0;
        }
        // The shorter tail is added up, the other one is what it leaves.
        let expected = self.row as f64 * self.column as f64 / self.total as f64;
        if self.both as f64 > expected { self.upper(self.both, most) } else { 1.0 - self.lower(self.both - 1, least) }
    }

    /// Fisher's exact test against "not what independence gives": twice the smaller tail, at most 1.
    pub fn p_two_sided(&self) -> f64 {
        let (least, most) = self.range();
        let mirrored = Self { both: self.row - self.both, column: self.total - self.column, ..*self };
        if least == most { 1.0 } else { (2.0 * self.p_greater().min(mirrored.p_greater())).min(1.0) }
    }

    /// Probability of `from` and more, up to `most`.
    fn upper(&self, from: u64, most: u64) -> f64 {
        let ratio = |both: u64| {
            let left = (self.row - both) as f64 * (self.column - both) as f64;
            // The margins bound `both` from below, so this does not wrap.
            let right = (both + 1) as f64 * (self.total + both + 1 - self.row - self.column) as f64;
            left / right
        };
        self.tail(from, (from..most).map(ratio))
    }

    /// Probability of `from` and fewer, down to `least`.
    fn lower(&self, from: u64, least: u64) -> f64 {
        let ratio = |both: u64| {
            let left = both as f64 * (self.total + both - self.row - self.column) as f64;
            let right = (self.row - both + 1) as f64 * (self.column - both + 1) as f64;
            left / right
        };
        self.tail(from, (least + 1..=from).rev().map(ratio))
    }

    /// Probability of `from` and of what follows it, each by its ratio to the one before.
    fn tail(&self, from: u64, ratios: impl Iterator<Item = f64>) -> f64 {
        let (mut term, mut sum) = (1.0, 1.0);
        for ratio in ratios {
            term *= ratio;
            sum += term;
            if term < sum * f64::EPSILON {
                break;
            }
        }
        (self.ln_probability(from) + f64::ln(sum)).exp().min(1.0)
    }
}

fn ln_choose(n: u64, k: u64) -> f64 {
    ln_factorial(n) - ln_factorial(k) - ln_factorial(n - k)
}

/// ln n!: a product while it is exact.
fn ln_factorial(n: u64) -> f64 {
    if n < 18 { ((1..=n).product::<u64>() as f64).ln() } else { stirling(n as f64) }
}

/// ln Γ(x + 1) by Stirling's series; its error is below 1e-12 from 18 on.
fn stirling(x: f64) -> f64 {
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5)) - 1.0 / (1680.0 * x.powi(7));
    x * x.ln() - x + 0.5 * (std::f64::consts::TAU * x).ln() + series
}

/// Probability that a Poisson variable of this mean is at least `count`, which need not be whole: the regularised lower
/// incomplete gamma function P(count, mean), by its series below the mean and Lentz's continued fraction above
/// (Press et al., §6.2).
pub fn poisson_at_least(count: f64, mean: f64) -> f64 {
    if count <= 0.0 {
        return 1.0;
    }
    let steps = (0..18).map(|step| count + f64::from(step));
    let ln_gamma = stirling(count + 17.0) - steps.map(f64::ln).sum::<f64>();
    let front = (count * mean.ln() - mean - ln_gamma).exp();
    if mean < count + 1.0 {
        let (mut term, mut sum, mut at) = (1.0 / count, 1.0 / count, count);
        while term > sum * f64::EPSILON {
            at += 1.0;
            term *= mean / at;
            sum += term;
        }
        return (front * sum).min(1.0);
    }
    let mut b = mean + 1.0 - count;
    let (mut c, mut d) = (1e300, 1.0 / b);
    let mut fraction = d;
    for step in 1..10_000 {
        let a = f64::from(step) * (count - f64::from(step));
        b += 2.0;
        let far = |value: f64| if value.abs() < 1e-300 { 1e-300 } else { value };
        d = 1.0 / far(a * d + b);
        c = far(b + a / c);
        fraction *= c * d;
        if (c * d - 1.0).abs() < 1e-14 {
            break;
        }
    }
    1.0 - front * fraction
}

/// Benjamini–Hochberg (1995): for each p-value the smallest false discovery rate at which it is a discovery, in the
/// order given.
pub fn benjamini_hochberg(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|&a, &b| p[a].total_cmp(&p[b]));
    let mut q = vec![1.0; p.len()];
    let mut least = 1.0_f64;
    for (rank, &index) in order.iter().enumerate().rev() {
        least = least.min(p[index] * p.len() as f64 / (rank + 1) as f64);
        q[index] = least;
    }
    q
}

/// The rows that were tested, each with what [`benjamini_hochberg`] says of its p-value.
pub fn with_q<R>(rows: &mut [R], p: impl Fn(&R) -> Option<f64>) -> impl Iterator<Item = (&mut R, f64)> {
    let tested: Vec<f64> = rows.iter().filter_map(&p).collect();
    rows.iter_mut().filter(move |row| p(row).is_some()).zip(benjamini_hochberg(&tested))
}

/// Probability of at least `z` under the standard normal distribution (rational approximation by Press et al., relative
/// error below 1.2e-7).
pub fn upper_tail(z: f64) -> f64 {
    const TERMS: [f64; 10] = [
        -1.265_512_23,
        1.000_023_68,
        0.374_091_96,
        0.096_784_18,
        -0.186_288_06,
        0.278_868_07,
        -1.135_203_98,
        1.488_515_87,
        -0.822_152_23,
        0.170_872_77,
    ];
    let x = z.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * x);
    let series = TERMS.iter().rev().fold(0.0, |sum, term| sum * t + term);
    let tail = 0.5 * t * (series - x * x).exp();
    if z >= 0.0 { tail } else { 1.0 - tail }
}

/// The `z` above which `tail` of the standard normal distribution lies; `tail` within 0 … 1.
pub fn quantile_above(tail: f64) -> f64 {
    let (mut low, mut high) = (-40.0, 40.0);
    while high - low > 1e-9 {
        let middle = 0.5 * (low + high);
        if upper_tail(middle) > tail { low = middle } else { high = middle }
    }
    0.5 * (low + high)
}

/// The same of Student's t with `df` degrees of freedom, from that `z` (series by Cornish and Fisher; three degrees at
/// least, below which it does not hold).
pub fn t_above(z: f64, df: u64) -> f64 {
    let df = df.max(3) as f64;
    let terms = [
        (z.powi(3) + z) / 4.0,
        (5.0 * z.powi(5) + 16.0 * z.powi(3) + 3.0 * z) / 96.0,
        (3.0 * z.powi(7) + 19.0 * z.powi(5) + 17.0 * z.powi(3) - 15.0 * z) / 384.0,
    ];
    z + terms.iter().zip(1..).map(|(term, power)| term / df.powi(power)).sum::<f64>()
}

/// The standard normal value with the tail of this `t` of Student's distribution (Wallace 1959; within 0.02 from three
/// degrees of freedom on, and too small with fewer).
pub fn normal_of_t(t: f64, df: f64) -> f64 {
    (8.0 * df + 1.0) / (8.0 * df + 3.0) * (df * (t * t / df).ln_1p()).sqrt()
}

/// The other way around: the `t` with the tail of a standard normal value; with fewer than three degrees of freedom it is too
/// large. Of a tenth of one it is as good as infinite, and fewer make no difference.
pub fn t_of_normal(z: f64, df: f64) -> f64 {
    let df = df.max(0.1);
    let z = z * (8.0 * df + 3.0) / (8.0 * df + 1.0);
    (df * (z * z / df).exp_m1()).sqrt()
}

/// Mean and variance of a count over all orders; both add up over contexts, which are shuffled apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Chance {
    pub expected: f64,
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
