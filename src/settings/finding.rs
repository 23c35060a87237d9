//! What a rule says: a subject, a verdict, and the evidence for it, counted before it is divided.

use serde::{Deserialize, Serialize};
use toml_edit::Value;

use crate::base::key_path::KeyPath;
use crate::base::stats::Share;
use crate::settings::entries::BillForecast;
use crate::settings::values;

/// One change of the configuration.
#[derive(Clone, Debug)]
pub struct Delta {
    pub key: KeyPath,
    /// The value that holds now, from the file or built in; none for a new key.
    pub from: Option<Value>,
    /// The value that should hold.
    pub to: Value,
}

impl Delta {
    /// The change as it would be written, on one line.
    pub fn assignment(&self) -> String {
        format!("`{}` = {}", self.key, values::spelled(&self.to))
    }
}

/// What a rule concludes about its subject.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has a few hundred findings")]
pub enum Verdict {
    Propose(Delta),
    /// The data would speak for (or against) a change, but something stands in the way.
    Hold(String),
    /// It pays, but a client of the last weeks does not know it yet.
    Wait {
        /// What would be set, in words: "autoCompactWindow = 150000".
        setting: String,
        update: String,
    },
    /// It pays, but somebody took it back.
    TakenBack {
        /// The key, and the value that was there.
        setting: String,
        /// "was taken back on …", and what sets it again.
        words: String,
    },
    /// Nothing to judge here.
    Skip(String),
    /// Something to know that is never written: nobody can say what it would bring.
    Hint(String),
}

/// Why.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// Counts in words: "180 of 400 responses repeat". One line for each part of a value that has parts.
    pub counts: String,
    /// The share that decided, if one did.
    pub share: Option<Share>,
    /// Observations behind the value.
    pub n: u64,
    /// Whether the interval of the share is over sessions, and these are the observations.
    pub over_sessions: bool,
    /// The threshold, with its place: "`rules/p1_model.toml:4` asks for share_min = 0.8".
    pub threshold: Option<String>,
    /// Whether the value is *measured* in the logs, *replayed* over them or *shipped* with devboy.
    pub basis: Basis,
}

impl Evidence {
    /// Measured: counts in words, and the observations behind them.
    pub fn of(counts: impl Into<String>, n: u64) -> Self {
        Self { counts: counts.into(), n, ..Self::default() }
    }

    /// The same with the threshold that decided.
    #[must_use]
    pub fn by(self, threshold: String) -> Self {
        Self { threshold: Some(threshold), ..self }
    }

    /// The same with the share that decided.
    #[must_use]
    pub fn with_share(self, share: Share) -> Self {
        Self { share: Some(share), ..self }
    }

    /// The same with a share of what hangs together session by session: the observations are sessions.
    #[must_use]
    pub fn with_share_over_sessions(self, share: Share) -> Self {
        Self { over_sessions: true, ..self.with_share(share) }
    }
}

/// What a figure rests on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum Basis {
    /// Stands in the logs.
    #[default]
    Measured,
    /// What a replay of the logs comes to.
    Replayed,
    /// A shipped annotation, not of this user's making.
    Shipped,
}

/// One result of one rule.
#[derive(Clone, Debug)]
pub struct Finding {
    /// Id of the rule: "P1".
    pub rule: &'static str,
    /// What it is about: a model, a tool, an endpoint.
    pub subject: String,
    pub verdict: Verdict,
    pub evidence: Evidence,
    /// What the change would do, if it was replayed.
    pub effect: Option<Effect>,
    /// What it would do to the bill, if that was simulated.
    pub forecast: Option<BillForecast>,
}

impl Finding {
    /// A finding whose effect is not known (yet).
    pub fn new(rule: &'static str, subject: impl Into<String>, verdict: Verdict, evidence: Evidence) -> Self {
        Self { rule, subject: subject.into(), verdict, evidence, effect: None, forecast: None }
    }

    /// The change that it proposes.
    pub fn proposed(&self) -> Option<&Delta> {
        match &self.verdict {
            Verdict::Propose(delta) => Some(delta),
            Verdict::Hold(_)
            | Verdict::Wait { .. }
            | Verdict::TakenBack { .. }
            | Verdict::Skip(_)
            | Verdict::Hint(_) => None,
        }
    }
}

/// What a change would have done to the recorded responses, by replay: of a proposal its share of what all proposals do
/// together, or what it adds to those that came in before it; of anything else what it would do alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// Tokens saved more, if everything could be changed: a bound. Negative if it loses.
    pub tokens: f64,
    /// The same for an MCP host, which changes the answers of its own tools only: what the pipeline runs in.
    pub host: f64,
    /// Of all tokens as they are.
    pub baseline: f64,
    /// Both ends of the 95 % interval of `tokens` over sessions, if there are any.
    pub tokens_95: Option<(f64, f64)>,
    /// What it would do alone, where that is more or less than its share.
    pub alone: f64,
}
