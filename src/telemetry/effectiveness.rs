//! How much the planner and L0 spared, by the published counters, and the published report line.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::base::body_shape::LayerId;
use crate::telemetry::log::{RaceWord, RecordedEvent, foreseeable_tokens};

/// The published counters (`EnrichmentEffectiveness`), with their names in the summary of a session. The later ones are left
/// out there when they are zero.
#[derive(Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(default)]
pub struct Effectiveness {
    /// Responses that were prefetched.
    pub total_prefetches: u64,
    /// Of these, used by the agent.
    pub cited_prefetches: u64,
    /// Prefetches that the planner declined.
    pub total_declines: u64,
    /// Of these, asked for by the agent soon after.
    pub late_invoked_after_decline: u64,
    /// Predictions that were exceeded by 30 % or more.
    pub cost_overrun_count: u64,
    /// Predictions: one for each prefetch.
    pub total_predictions: u64,
    /// Actual less predicted tokens, added up, both by the ratio of the planner.
    pub net_prediction_error_tokens: i64,
    /// Calls that a prefetch made needless.
    #[serde(rename = "inference_calls_saved_prefetch", skip_serializing_if = "is_zero")]
    pub saved_prefetch: u64,
    /// Calls that a hint answered.
    #[serde(rename = "inference_calls_saved_dedup", skip_serializing_if = "is_zero")]
    pub saved_dedup: u64,
    /// Calls refused because they kept coming back empty.
    #[serde(rename = "inference_calls_saved_fail_fast", skip_serializing_if = "is_zero")]
    pub saved_fail_fast: u64,
    /// Tokens of all three.
    #[serde(rename = "inference_tokens_saved", skip_serializing_if = "is_zero")]
    pub tokens_saved: u64,
    /// Prefetches sent out.
    #[serde(skip_serializing_if = "is_zero")]
    pub prefetch_dispatched: u64,
    /// Of these, done before they were needed.
    #[serde(skip_serializing_if = "is_zero")]
    pub prefetch_won_race: u64,
    /// Of these, never asked for.
    #[serde(skip_serializing_if = "is_zero")]
    pub prefetch_wasted: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Effectiveness {
    /// Takes in a recorded response, `bytes_per_token` being the ratio of the planner. One that was prefetched, used and then
    /// answered by a hint counts once, as prefetched.
    pub fn add(&mut self, event: &RecordedEvent, bytes_per_token: u32) {
        let RecordedEvent { plan, baseline, .. } = *event;
        if plan.prefetched {
            let tokens = foreseeable_tokens(event.bytes.into(), bytes_per_token);
            self.total_prefetches += 1;
            self.total_predictions += 1;
            self.net_prediction_error_tokens += tokens as i64 - i64::from(plan.predicted);
            self.cost_overrun_count += u64::from(plan.is_overrun(tokens));
        }
        if plan.prefetched && plan.cited == Some(true) {
            self.cited_prefetches += 1;
            self.saved_prefetch += 1;
            self.tokens_saved += u64::from(baseline);
        } else if event.layer == LayerId::L0 {
            self.saved_dedup += 1;
            self.tokens_saved += u64::from(baseline);
        }
        self.total_declines += u64::from(plan.declined.is_some());
        self.prefetch_dispatched += u64::from(plan.race.is_some());
        self.prefetch_won_race += u64::from(plan.race == Some(RaceWord::Won));
        self.prefetch_wasted += u64::from(plan.race == Some(RaceWord::Wasted));
    }

    /// Calls saved, by all three ways.
    pub fn calls_saved(&self) -> u64 {
        self.saved_prefetch + self.saved_dedup + self.saved_fail_fast
    }

    /// Whether there is anything to report.
    pub fn is_active(&self) -> bool {
        self.calls_saved() > 0 || self.total_prefetches > 0
    }
}

/// The published report line, byte for byte.
impl fmt::Display for Effectiveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rate = |part: u64, whole: u64| {
            if whole == 0 { "n/a".to_owned() } else { format!("{:.1}%", 100.0 * part as f64 / whole as f64) }
        };
        write!(
            f,
            "prefetch_hit={} decline_recall_loss={} cost_overrun={} race_win={} waste={} calls_saved={} (prefetch={}, \
             dedup={}, fail_fast={}) tokens_saved={} prefetches={} dispatched={} declines={} predictions={}",
            rate(self.cited_prefetches, self.total_prefetches),
            rate(self.late_invoked_after_decline, self.total_declines),
            rate(self.cost_overrun_count, self.total_predictions),
            rate(self.prefetch_won_race, self.prefetch_dispatched),
            rate(self.prefetch_wasted, self.prefetch_dispatched),
            self.calls_saved(),
            self.saved_prefetch,
            self.saved_dedup,
            self.saved_fail_fast,
            self.tokens_saved,
            self.total_prefetches,
            self.prefetch_dispatched,
            self.total_declines,
            self.total_predictions,
        )
    }
}
