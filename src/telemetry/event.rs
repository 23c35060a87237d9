//! One response as the live pipeline records it, and one session as it sums it up: the published schema and devboy's
//! additions to it. What says nothing is left out.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize};

use crate::telemetry::effectiveness::Effectiveness;

/// One line of an event file.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct PipelineEvent {
    /// First 16 hex digits of SHA-256 of the session id.
    pub session_hash: String,
    /// First 8 hex digits of SHA-256 of the `tool_use` id.
    pub tool_call_id_hash: String,
    /// Tool name; of an MCP tool with the server's name hashed.
    pub tool_name_anon: String,
    /// Endpoint class, anonymous in the same way.
    pub endpoint_class: String,
    /// Bytes of the response.
    pub response_chars: u64,
    pub shape: String,
    #[serde(default)]
    pub inner_formats: Vec<String>,
    /// Name of the response: first 32 hex digits of its SHA-256; keyed where devboy emits it, so that nobody can check a
    /// guess.
    #[serde(default)]
    pub content_sha_prefix_hex: String,
    /// Name of the file: first 8 hex digits of SHA-256 of the normalised path; keyed likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file_path_hash: Option<String>,
    /// Whether a hint was shown.
    pub is_dedup_hit: bool,
    /// The layer that decided.
    #[serde(default = "last_layer")]
    pub layer_used: String,
    /// Format of L1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template_id: Option<String>,
    /// Tokens as it is.
    pub tokens_baseline: u64,
    /// Tokens sent.
    pub tokens_final: u64,
    /// Compactions of the context before.
    pub context_partition: u32,
    /// Whether a subagent was shown it.
    pub is_sidechain: bool,
    /// Milliseconds since 1970.
    pub ts_ms: i64,
    /// Share of the events that was recorded.
    #[serde(default = "one")]
    pub sample_rate_applied: f64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_format: Option<String>,
    /// Nesting of JSON containers.
    #[serde(default, skip_serializing_if = "is_default")]
    pub depth_max: u32,
    /// Columns of the first Markdown table.
    #[serde(default, skip_serializing_if = "is_default")]
    pub n_cols: u32,
    /// Rows of the same.
    #[serde(default, skip_serializing_if = "is_default")]
    pub n_rows: u32,
    /// Key stability of an array of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_stability: Option<f64>,
    /// First 8 hex digits of a hash of the subagent's id, where a subagent was shown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_chain: Option<String>,
    /// Elements of a JSON array or fields of an object.
    #[serde(default, skip_serializing_if = "is_default")]
    pub n_items: u32,
    /// Number of the API message within the chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<u32>,
    /// Whether text stood beside images or documents, so that no layer could act.
    #[serde(default, skip_serializing_if = "is_default")]
    pub mixed: bool,
    /// Whether it is what the client showed of a result that it put into a file, so that nobody before the client could
    /// act.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preview: bool,
    /// Tokens of the call's name in a hint.
    #[serde(default, skip_serializing_if = "is_default")]
    pub handle_tokens: u8,
    /// What formats would have cost: format, recursion depth from which on this holds, tokens.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub encodings: Vec<(String, u8, u32)>,
    /// Whether the planner fetched it ahead.
    #[serde(default, skip_serializing_if = "is_default")]
    pub enricher_prefetched: bool,
    /// Tokens that the planner expected.
    #[serde(default, skip_serializing_if = "is_default")]
    pub enricher_predicted_cost_tokens: u32,
    /// Why the planner declined to fetch it: `budget`, `low_probability`, `preempted` or `prereq_missing`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enricher_decline_reason: Option<String>,
    /// Whether the agent used it, where somebody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cited_in_next_n_turns: Option<bool>,
    /// How its race against the agent ended, where it was timed: `won`, `late` or `wasted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enricher_race: Option<String>,
    /// Number of the call within its chain, from 0 on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_order: Option<u32>,
    /// What this is where it is no response: `failed`, `refused`, `empty`, `unanswered`, `cleared` or `compacted`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

/// [`ContextLine::kind`].
pub const CONTEXT_EVENT: &str = "context_event";

/// What is no response, as it stands among events: wrapped, so that readers of responses pass over it.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct ContextLine {
    /// `context_event`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Milliseconds since 1970, by which it grows old like an event.
    pub ts_ms: i64,
    /// What happened.
    pub data: PipelineEvent,
}

impl ContextLine {
    /// Wraps an event.
    pub fn of(data: PipelineEvent) -> Self {
        Self { kind: CONTEXT_EVENT.to_owned(), ts_ms: data.ts_ms, data }
    }
}

fn last_layer() -> String {
    "L3".to_owned()
}

fn one() -> f64 {
    1.0
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Endpoints named in a summary (published limit).
const ENDPOINTS_MAX: usize = 20;

/// The summary of one session. What a recorder leaves out counts as nothing.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq, Default)]
#[serde(default)]
pub struct SessionSummary {
    /// See [`PipelineEvent::session_hash`].
    pub session_hash: String,
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
    pub total_baseline_tokens: u64,
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
    /// What the planner and L0 spared, the planner's own events included.
    #[serde(deserialize_with = "lenient")]
    pub enrichment: Effectiveness,
    /// Events of the most frequent endpoints.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub endpoint_mix: BTreeMap<String, u64>,
}

/// Counters that do not fit count as nothing.
fn lenient<'de, D: Deserializer<'de>>(from: D) -> Result<Effectiveness, D::Error> {
    let counters = serde_json::Value::deserialize(from)?;
    Ok(serde_json::from_value(counters).unwrap_or_default())
}

/// A summary as it stands among events.
#[derive(Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct SummaryLine {
    /// `session_summary`.
    #[serde(rename = "type")]
    pub kind: String,
    pub data: SessionSummary,
}

impl SummaryLine {
    /// Sums up the events of one session; none without events. Nobody asked for what the planner did: of that only the
    /// effect is told.
    pub fn of(events: &[PipelineEvent], enrichment: Effectiveness) -> Option<Self> {
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
            enrichment,
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
