//! Aggregates over a history: statistics of tools and follow-up edges as typed rows; shares with their intervals, also of
//! trials that come in clusters (design effect; Kish 1965), where sessions of long ago may count for less; and how a figure
//! stands to its target: *pass* and *fail* only where its whole interval says so, else *open*.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::base::names::Sym;
use crate::base::significance::{Chance, normal_of_t, t_of_normal, upper_tail};

/// What the calls of one tool looked like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolStats {
    pub tool: Sym,
    /// Calls, each once.
    pub calls: u64,
    /// Sessions with at least one.
    pub sessions: u64,
    /// Calls that ran and answered.
    pub ran: u64,
    /// Of these, with an answer that is text or empty: the base of sizes. Images and references have no text size.
    pub sized: u64,
    /// Median response size in bytes (lower element), over `sized`.
    pub bytes_p50: u64,
    /// 99th percentile of the same.
    pub bytes_p99: u64,
    /// Calls with a known latency.
    pub timed: u64,
    /// Median latency over `timed`.
    pub latency_ms_p50: u64,
    /// Answers by number of their shape, where it was looked at.
    #[serde(default)]
    pub shapes: BTreeMap<u8, u64>,
}

/// How often one tool followed another at one lag. The unit is the *step*, an API message with its calls: parallel calls
/// of one step are concurrent and no sequence.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FollowUpCount {
    /// Tool of the earlier step.
    pub from: Sym,
    /// Tool of the later step.
    pub to: Sym,
    /// Steps between them, 1 for the next.
    pub lag: u32,
    /// Steps with `from` that had a step with `to` at this lag in the same chain and partition.
    pub support: u64,
    /// Sessions in which that happened.
    pub sessions: u64,
    /// All steps with `from`, whatever followed.
    pub trials: u64,
    /// What the share will not fall below in as many later steps, 0 … 1.
    pub lower: f64,
    /// What it will not rise above.
    pub upper: f64,
    /// Its count if the steps of each context came in another order.
    pub chance: Chance,
}

impl FollowUpCount {
    /// Probability that another order of the same steps has `to` after `from` so often.
    pub fn p_of_chance(&self) -> f64 {
        self.chance.p_at_least(self.support)
    }

    /// The share with its bounds.
    pub fn share(&self) -> Share {
        Share { k: self.support, n: self.trials, lower: self.lower, upper: self.upper }
    }
}

/// How often a model was used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelUse {
    /// Model id as it stands in the log.
    pub id: String,
    /// API messages, each once.
    pub messages: u64,
    /// The same by the number of the session.
    pub of_sessions: BTreeMap<u32, u64>,
    /// Largest prompt of one request in tokens: input, cache reads and cache writes.
    pub prompt_tokens_max: u64,
}

/// How a session was worked in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionUse {
    pub calls: u64,
    /// Of these, by tools that only read.
    pub read_calls: u64,
    /// Compactions of its main thread and subagents.
    pub compactions: u64,
    /// Agent variant by the published thresholds; empty until it is classified.
    #[serde(skip)]
    pub class: &'static str,
}

/// A binomial share with its Wilson score interval (Wilson 1927).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Successes.
    pub k: u64,
    /// Trials.
    pub n: u64,
    /// Lower end of the 95 % interval.
    pub lower: f64,
    pub upper: f64,
}

/// Two-sided 95 % quantile of the normal distribution, as in the published golden vector.
const Z: f64 = 1.96;

impl Share {
    /// `k` of `n`; with no trials the interval is the whole range.
    pub fn new(k: u64, n: u64) -> Self {
        if n == 0 {
            return Self { k, n, lower: 0.0, upper: 1.0 };
        }
        let (lower, upper) = wilson(k as f64, n as f64);
        Self { k, n, lower, upper }
    }

    /// The share, if there are any trials.
    pub fn known(self) -> Option<Self> {
        (self.n > 0).then_some(self)
    }

    /// The point estimate; 0 without trials.
    pub fn value(&self) -> f64 {
        if self.n == 0 { 0.0 } else { self.k as f64 / self.n as f64 }
    }
}

/// Both ends of the 95 % interval; `k` may be an expected number.
pub fn wilson(k: f64, n: f64) -> (f64, f64) {
    wilson_at(k, n, Z)
}

/// Both ends of the interval that is `z` standard errors wide on either side; `n` above 0.
pub fn wilson_at(k: f64, n: f64, z: f64) -> (f64, f64) {
    let (p, z2) = (k / n, z * z);
    let centre = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    // What rounding leaves where nothing, or all, was met.
    (if k > 0.0 { (centre - half).max(0.0) } else { 0.0 }, if k < n { (centre + half).min(1.0) } else { 1.0 })
}

/// The place of a quantile among so many sorted values: the lower of the two beside it; none without values.
pub fn quantile_place(values: usize, share: f64) -> Option<usize> {
    let last = values.checked_sub(1)?;
    Some(((share * last as f64) as usize).min(last))
}

/// What a figure should reach.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TargetFigure {
    AtLeast(f64),
    AtMost(f64),
}

/// How it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum TargetVerdict {
    /// Reached, even at the worse end of its interval.
    Pass,
    /// Missed, even at the better end.
    Fail,
    /// The interval reaches across the target: nobody knows yet.
    Open,
    /// Nothing to judge, or no target.
    #[strum(serialize = "n/a")]
    NotApplicable,
}

impl TargetVerdict {
    /// Of an interval.
    pub fn of((lower, upper): (f64, f64), target: TargetFigure) -> Self {
        let (reached, missed) = match target {
            TargetFigure::AtLeast(least) => (lower >= least, upper < least),
            TargetFigure::AtMost(most) => (upper <= most, lower > most),
        };
        match (reached, missed) {
            (true, _) => Self::Pass,
            (_, true) => Self::Fail,
            _ => Self::Open,
        }
    }
}

/// Weighted sums over clusters. Of whole trials that weigh one (up to 94 million) they are exact, in whatever order they are
/// added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Clustered {
    /// Clusters with a trial.
    pub clusters: u64,
    /// Successes, weighted.
    pub successes: f64,
    /// Trials, weighted.
    pub trials: f64,
    /// Of successes the squares, of successes and trials the products, of trials the squares; with squares of the weights.
    products: [f64; 3],
}

impl Clustered {
    /// Of clusters with their successes and trials, each weighing one.
    pub fn of(clusters: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut sum = Self::default();
        for (successes, trials) in clusters {
            sum.add_trials(trials, 1.0);
            sum.add_successes(successes, trials, 1.0);
        }
        sum
    }

    /// Takes over other clusters.
    pub fn absorb(&mut self, other: &Self) {
        self.clusters += other.clusters;
        self.successes += other.successes;
        self.trials += other.trials;
        self.products.iter_mut().zip(other.products).for_each(|(sum, more)| *sum += more);
    }

    /// Takes in the trials of a cluster.
    pub fn add_trials(&mut self, trials: u64, weight: f64) {
        let n = weight * trials as f64;
        self.clusters += u64::from(trials > 0);
        self.trials += n;
        self.products[2] += n * n;
    }

    /// Takes in the successes among trials that were taken in.
    pub fn add_successes(&mut self, successes: u64, trials: u64, weight: f64) {
        let (k, n) = (weight * successes as f64, weight * trials as f64);
        self.successes += k;
        self.products[0] += k * k;
        self.products[1] += k * n;
    }

    /// The share; 0 without trials.
    pub fn share(&self) -> f64 {
        if self.trials > 0.0 { self.successes / self.trials } else { 0.0 }
    }

    /// By how much clustering widens the variance (linearised variance of a ratio, against that of independent trials); at
    /// least 1, since few sessions that happen to agree prove nothing.
    pub fn design_effect(&self) -> f64 {
        let p = self.share();
        let plain = p * (1.0 - p) * self.trials;
        if plain <= 0.0 || self.clusters < 2 {
            return 1.0;
        }
        let few = self.clusters as f64 / (self.clusters - 1) as f64;
        (self.scatter() * few / plain).max(1.0)
    }

    /// How far the successes of clusters are from what the share of all would give: squares, added up.
    fn scatter(&self) -> f64 {
        let (p, [kk, kn, nn]) = (self.share(), self.products);
        kk - 2.0 * p * kn + p * p * nn
    }

    /// The share among clusters that weigh one, with its 95 % interval over other clusters like them: Wilson's over as many trials
    /// as the variance of clusters is worth, by Student's t with one degree of freedom less than clusters of one size that tell
    /// as much. Where all trials succeed, or none, clusters do not differ, however few they are: each counts once. One cluster
    /// says nothing of others.
    pub fn over_clusters(&self) -> Share {
        let (k, n) = (self.successes as u64, self.trials as u64);
        if self.clusters < 2 {
            return Share { k, n, lower: 0.0, upper: 1.0 };
        }
        let alike = self.clusters_alike();
        let effective = if k == 0 || k == n { alike } else { self.trials / self.design_effect() };
        let (lower, upper) = wilson_at(self.share() * effective, effective, t_of_normal(Z, alike - 1.0));
        Share { k, n, lower, upper }
    }

    /// How many clusters of one size tell as much (Kish 1965).
    fn clusters_alike(&self) -> f64 {
        self.trials * self.trials / self.products[2]
    }

    /// The probability of such a difference of two shares, either way, if nothing differs: Student's t of the difference over its
    /// standard error, with the degrees of freedom of Welch (1947), each side counted as clusters of one size. A side is as
    /// uncertain as its clusters show it to be; at least as trials of one share in common, and as clusters of both sides scatter,
    /// since few that happen to agree prove nothing. None where a side has fewer than two clusters.
    pub fn p_of_difference(&self, other: &Self) -> Option<f64> {
        if self.clusters.min(other.clusters) < 2 {
            return None;
        }
        let p = (self.successes + other.successes) / (self.trials + other.trials);
        let plain = |p: f64| p * (1.0 - p);
        let clusters = (self.clusters + other.clusters) as f64;
        let squares = self.products[2] + other.products[2];
        let common = (self.scatter() + other.scatter()) / squares * clusters / (clusters - 2.0);
        let error = |side: &Self| {
            let own = (plain(side.share()) * side.design_effect()).max(plain(p)) / side.trials;
            own.max(common / side.clusters_alike())
        };
        let (a, b) = (error(self), error(other));
        let t = (self.share() - other.share()).abs() / (a + b).sqrt();
        let part = |error: f64, side: &Self| error * error / (side.clusters_alike() - 1.0).max(1e-9);
        let freedom = ((a + b).powi(2) / (part(a, self) + part(b, other))).max(1.0);
        Some(if t > 0.0 { (2.0 * upper_tail(normal_of_t(t, freedom))).min(1.0) } else { 1.0 })
    }

    /// Trials that are worth as much as these if what is to come is as uncertain as what was: the variances of the two add
    /// up.
    fn effective(&self) -> f64 {
        self.trials / self.design_effect() / 2.0
    }

    /// Both ends of the interval of the share in as many trials to come, `z` standard errors to either side (Wilson's
    /// score interval over the effective trials); the whole range without trials.
    pub fn ahead(&self, z: f64) -> (f64, f64) {
        if self.trials <= 0.0 {
            return (0.0, 1.0);
        }
        let effective = self.effective();
        wilson_at(self.share() * effective, effective, z)
    }

    /// How many standard errors the lower end must be away so as not to lie above `share`.
    pub fn errors_above(&self, share: f64) -> f64 {
        let p = self.share();
        if share >= p || self.trials <= 0.0 {
            return 0.0;
        }
        // At its lower end the error of the score interval is that of the end. Nothing at all has no error: there the
        // error of the share itself stands in.
        let at = if share > 0.0 { share } else { p };
        (p - share) / (at * (1.0 - at) / self.effective()).sqrt().max(1e-9)
    }
}
