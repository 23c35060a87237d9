//! How much of a value comes from others: pseudo-observations beside one's own, so that every threshold and interval of a
//! rule sees them for what they are.

use crate::fleet::limits::FleetLimits;

/// Observations behind a value, by whose they are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    /// Own.
    pub own: u64,
    /// Lent by the team.
    pub team: u64,
    /// Lent by a provider.
    pub provider: u64,
    /// The fewest people on whom a row of the team stands.
    pub people: i64,
}

impl Shares {
    /// What others lend to `own` observations, of what they have. Below [`FleetLimits::enough`] they fill up to it; from there on
    /// they have at most [`FleetLimits::lent_max_pct`], and never more than that of `enough`, so that own data wins where there is
    /// much of it. A provider fills at most [`FleetLimits::provider_max_pct`] of their part.
    pub fn of(own: u64, team: (f64, i64), provider: f64, limits: &FleetLimits) -> Self {
        let at_most = |n: u64| (n * limits.lent_max_pct) as f64 / (100 - limits.lent_max_pct) as f64;
        let missing = limits.enough.saturating_sub(own) as f64;
        let room = missing.max(at_most(own.min(limits.enough)).floor());
        let from_provider = (room * limits.provider_max_pct as f64 / 100.0).min(provider).floor();
        let from_team = (room - from_provider).min(team.0).floor();
        Self { own, team: from_team as u64, provider: from_provider as u64, people: team.1 }
    }

    /// All that others lend.
    pub fn lent(&self) -> u64 {
        self.team + self.provider
    }

    /// Whose they are, in words.
    pub fn words(&self) -> String {
        let mut words = format!("of {} observations {} are own", self.own + self.lent(), self.own);
        if self.team > 0 {
            words += &format!(", {} stand for the team ({} people or more)", self.team, self.people);
        }
        if self.provider > 0 {
            words += &format!(", {} for the provider", self.provider);
        }
        words
    }

    /// Own and lent values of one quantity as one: their geometric mean by observations, for sizes that span orders of
    /// magnitude.
    pub fn size(&self, own: Option<u64>, team: Option<u64>, provider: Option<u64>) -> Option<u64> {
        let parts = [(own, self.own), (team, self.team), (provider, self.provider)];
        let known = parts.into_iter().filter_map(|(value, n)| Some((value?, n as f64))).filter(|(_, n)| *n > 0.0);
        let (sum, weight) = known.fold((0.0, 0.0), |(sum, weight), (value, n)| {
            // One more, so that 0 has a logarithm; one less at the end.
            (sum + n * (value as f64).ln_1p(), weight + n)
        });
        if weight == 0.0 { own.or(team).or(provider) } else { Some((sum / weight).exp_m1().round() as u64) }
    }
}
