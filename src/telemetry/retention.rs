//! How long telemetry is kept: raw events and session summaries each for their time, line by line. What is neither stays.

use serde::Deserialize;
use serde_json::Value;

use crate::base::numbers::HOUR_MS;
use crate::logs::trace::Millis;
use crate::telemetry::event::CONTEXT_EVENT;

/// Before when something is dropped, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetentionLimits {
    /// Events from before are dropped.
    pub events: Millis,
    /// Summaries of sessions that ended before are dropped.
    pub summaries: Millis,
}

/// What is left of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sifted {
    /// The lines that stay, byte for byte.
    pub kept: Vec<u8>,
    /// Responses dropped.
    pub events: u64,
    /// What else happened in the contexts, dropped.
    pub beside: u64,
    /// Summaries dropped.
    pub summaries: u64,
}

#[derive(Deserialize)]
struct Stamps {
    session_hash: Option<Value>,
    ts_ms: Option<i64>,
    #[serde(rename = "type")]
    kind: Option<Value>,
    data: Option<Value>,
}

impl Stamps {
    fn is(&self, kind: &str) -> bool {
        self.kind == Some(kind.into()) && self.data.is_some()
    }

    fn is_summary(&self) -> bool {
        self.is("session_summary")
    }

    /// Whether it is no response, which is wrapped.
    fn is_beside(&self) -> bool {
        self.is(CONTEXT_EVENT)
    }

    /// Whether it is older than the limits allow.
    fn is_old(&self, limits: RetentionLimits) -> bool {
        if self.is_summary() {
            let ended = self.data.as_ref().and_then(|data| data.get("ended_at_ms")?.as_i64());
            return ended.is_some_and(|ended| ended < limits.summaries);
        }
        let is_event = self.is_beside() || self.session_hash.is_some();
        is_event && self.ts_ms.is_some_and(|ts| ts < limits.events)
    }
}

/// What stands on a line; more than one where lines were glued together. None if anything there is no JSON.
fn stamps_of(line: &[u8]) -> Option<Vec<Stamps>> {
    let line = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(line);
    serde_json::Deserializer::from_slice(line).into_iter().collect::<Result<_, _>>().ok()
}

/// Drops the lines of a file that hold nothing but what is older than the limits allow.
pub fn sift(text: &[u8], limits: RetentionLimits) -> Sifted {
    let mut sifted = Sifted::default();
    for line in text.split_inclusive(|&byte| byte == b'\n') {
        let stamps = stamps_of(line).unwrap_or_default();
        if stamps.is_empty() || !stamps.iter().all(|one| one.is_old(limits)) {
            sifted.kept.extend_from_slice(line);
            continue;
        }
        for one in &stamps {
            let count = if one.is_summary() {
                &mut sifted.summaries
            } else if one.is_beside() {
                &mut sifted.beside
            } else {
                &mut sifted.events
            };
            *count += 1;
        }
    }
    sifted
}

/// What is assumed about telemetry where it does not say.
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct TelemetryRules {
    pub events_days: u32,
    pub summaries_days: u32,
    pub quiet_hours: u32,
    /// Hours without an event after which a process id is another process.
    pub recycled_gap_hours: u32,
    pub handle_tokens: u8,
}

impl TelemetryRules {
    /// [`Self::recycled_gap_hours`] in milliseconds.
    pub fn recycled_gap_ms(&self) -> u64 {
        u64::from(self.recycled_gap_hours) * HOUR_MS as u64
    }
}
