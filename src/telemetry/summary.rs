//! One session as the live pipeline sums it up (published schema).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::telemetry::PipelineEvent;

/// Endpoints named in a summary (published limit).
const ENDPOINTS_MAX: usize = 20;

/// The summary of one session. What a recorder leaves out counts as nothing.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(default)]
pub struct SessionSummary {
    /// See [`PipelineEvent::session_hash`].
    pub session_hash: String,
    /// Events.
    pub total_events: u64,
    /// Share of events that L0 answered.
    pub dedup_hit_rate: f64,
    /// Share of events that L1 re-encoded.
    pub l1_hit_rate: f64,
    /// Share of events that L2 re-encoded.
    pub l2_hit_rate: f64,
    /// Mean bytes of a response.
    pub avg_response_chars: f64,
    /// Largest partition number.
    pub compaction_count: u32,
    /// Tokens as they are.
    pub total_baseline_tokens: u64,
    /// Tokens sent.
    pub total_final_tokens: u64,
    /// One minus sent by baseline.
    pub savings_pct: f64,
    /// From the first event to the last, in seconds.
    pub duration_sec: u64,
    /// Time of the last event.
    pub ended_at_ms: i64,
    /// Share of the events that was recorded.
    #[serde(default = "one")]
    pub sample_rate_applied: f64,
    /// Events of the most frequent endpoints.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoint_mix: BTreeMap<String, u64>,
}

fn one() -> f64 {
    1.0
}

/// A summary as it stands among events.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct SummaryLine {
    /// `session_summary`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The summary.
    pub data: SessionSummary,
}

impl SummaryLine {
    /// Sums up the events of one session; none without events.
    pub fn of(events: &[PipelineEvent]) -> Option<Self> {
        let first = events.first()?;
        let share =
            |layer: &str| events.iter().filter(|event| event.layer_used == layer).count() as f64 / events.len() as f64;
        let baseline: u64 = events.iter().map(|event| event.tokens_baseline).sum();
        let sent: u64 = events.iter().map(|event| event.tokens_final).sum();
        let times = || events.iter().map(|event| event.ts_ms);
        let (start, end) = (times().min()?, times().max()?);
        let data = SessionSummary {
            session_hash: first.session_hash.clone(),
            total_events: events.len() as u64,
            dedup_hit_rate: share("L0"),
            l1_hit_rate: share("L1"),
            l2_hit_rate: share("L2"),
            avg_response_chars: events.iter().map(|event| event.response_chars as f64).sum::<f64>()
                / events.len() as f64,
            compaction_count: events.iter().map(|event| event.context_partition).max()?,
            total_baseline_tokens: baseline,
            total_final_tokens: sent,
            savings_pct: if baseline == 0 { 0.0 } else { 1.0 - sent as f64 / baseline as f64 },
            duration_sec: u64::try_from((end - start) / 1000).unwrap_or_default(),
            ended_at_ms: end,
            sample_rate_applied: first.sample_rate_applied,
            endpoint_mix: endpoint_mix(events),
        };
        Some(Self { kind: "session_summary".to_owned(), data })
    }
}

fn endpoint_mix(events: &[PipelineEvent]) -> BTreeMap<String, u64> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for event in events {
        *counts.entry(&event.endpoint_class).or_default() += 1;
    }
    let mut most: Vec<(&str, u64)> = counts.into_iter().collect();
    most.sort_by_key(|&(name, count)| (std::cmp::Reverse(count), name));
    most.into_iter().take(ENDPOINTS_MAX).map(|(name, count)| (name.to_owned(), count)).collect()
}
