//! The numbers of `rules/fleet.toml`.

use serde::Deserialize;

/// The data file.
pub const SHEET: &str = "fleet.toml";

/// What one person may add, on how many people a row stands, and how much of it counts at home.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetLimits {
    /// Sessions of a person that count for a subject in a week.
    pub sessions_max: u64,
    /// Responses, or steps, of a person that count for a subject in a week.
    pub events_max: u64,
    /// Responses below which a subject of a week does not leave.
    pub events_min: u64,
    /// Tokens of one response that count.
    pub tokens_max: u64,
    /// Input-equivalent tokens of one session that count for another setting.
    pub session_tokens_max: u64,
    /// Largest cost of a session under another setting, as a multiple of what counts of it.
    pub policy_factor_max: u64,
    /// People on whom every published row stands.
    pub people_min: u64,
    /// Largest share of one person in a published count, in per cent.
    pub share_max_pct: u64,
    /// Hours after the end of a week before it is shared.
    pub settle_hours: i64,
    /// Weeks back that are shared and pooled.
    pub weeks_max: i64,
    /// Steps between the two tools of an edge.
    pub lags: Vec<u32>,
    /// Bytes of a contribution file.
    pub file_bytes_max: u64,
    /// Rows of a contribution.
    pub rows_max: usize,
    /// Bytes of a file of light rows.
    pub light_bytes_max: u64,
    /// Light rows of a week.
    pub light_rows_max: usize,
    /// Lower bounds of the classes of time between two calls.
    pub gap_seconds: Vec<u32>,
    /// Bytes of a team secret.
    pub secret_bytes_min: usize,
    /// Session marks in a contribution.
    pub marks_max: usize,
    /// Observations at which own data is enough.
    pub enough: u64,
    /// Largest part that comes from others where own data is enough, in per cent.
    pub lent_max_pct: u64,
    /// Largest part of what is left to others that a provider fills, in per cent.
    pub provider_max_pct: u64,
    /// Days in which the weight of a week falls to 1/e.
    pub life_days: f64,
    /// Settings that are replayed for a pool.
    pub what_if: Vec<PooledSetting>,
}

/// A setting that is replayed for a pool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PooledSetting {
    /// The name under which its sums leave.
    pub name: String,
    /// The policy, as in `devboy what-if`.
    pub policy: String,
    /// What is set.
    pub set: Vec<String>,
}
