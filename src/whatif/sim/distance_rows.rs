//! Where a simulated log is off its bill.

use serde::Serialize;

use crate::whatif::prompt_cache::outcome::{Cause, Count};
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::unforeseen::Occasion;

/// Some requests as billed and as simulated; no output.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Apart {
    /// Requests.
    pub requests: u64,
    /// Of these, requests whose simulated read is not the billed one.
    pub differing: u64,
    /// Tokens read by the bill.
    pub read_billed: u64,
    /// Tokens read in the simulation.
    pub read_simulated: u64,
    /// The bill's cost.
    pub cost_billed: Cost,
    /// The simulation's.
    pub cost_simulated: Cost,
}

impl Apart {
    /// Adds other requests.
    pub fn join(&mut self, other: &Self) {
        self.requests += other.requests;
        self.differing += other.differing;
        self.read_billed += other.read_billed;
        self.read_simulated += other.read_simulated;
        self.cost_billed += other.cost_billed;
        self.cost_simulated += other.cost_simulated;
    }

    /// Simulated less billed cost, in units.
    pub fn units(&self) -> i128 {
        self.cost_simulated.units as i128 - self.cost_billed.units as i128
    }

    /// The same as a share of a bill.
    pub fn share_of(&self, whole: &Cost) -> f64 {
        if whole.units == 0 { 0.0 } else { self.units() as f64 / whole.units as f64 }
    }

    /// The same as a share of its own bill.
    pub fn error(&self) -> f64 {
        self.share_of(&self.cost_billed)
    }
}

/// One cause of the distance in one model and range of client versions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Part {
    /// Model.
    pub model: String,
    /// Client versions, as a range.
    pub versions: String,
    /// What stood in the log before these requests.
    pub cause: Cause,
    /// Its requests.
    pub apart: Apart,
}

/// How often the cache was missed that nothing in the log said would be.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Losses {
    /// Where: `turn`, where something but results of tools came in, or `tools`.
    pub place: &'static str,
    /// What else stood before them; none for all of the place.
    pub occasion: Option<Occasion>,
    /// Requests at which one could be lost, and at which it was.
    pub count: Count,
    /// Lower end of the 95 % interval of that share: over sessions or over requests (Wilson), whichever is wider.
    pub lower: f64,
    /// Upper end.
    pub upper: f64,
}

/// The distance and its parts.
#[derive(Clone, PartialEq, Default, Debug, Serialize)]
pub struct Distance {
    /// All requests.
    pub total: Apart,
    /// Largest first.
    pub parts: Vec<Part>,
    /// What is not foretold but expected at its rate.
    pub losses: Vec<Losses>,
}
