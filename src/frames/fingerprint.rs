//! What rules R1 to R7 read: endpoints, tools and the whole, each summed up from recorded responses. Every figure is
//! weighted by one over the share that was recorded.

use serde::{Deserialize, Serialize};

use crate::base::body_shape::BodyShape;
use crate::base::stats::{Clustered, FollowUpCount};
use crate::base::sums::adds_up;
use crate::logs::trace::Millis;

/// One endpoint over a window (Paper 2, "Per-endpoint fingerprint").
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fingerprint {
    /// Endpoint class as it was recorded.
    pub endpoint: String,
    /// The name by which a configuration must call it; none when only a pseudonym is known.
    pub key: Option<String>,
    /// Events recorded.
    pub events: u64,
    /// Responses that they stand for.
    pub calls: f64,
    /// Mean bytes of a response.
    pub bytes_mean: f64,
    /// Most frequent shape, `unknown` left out; of equals the first by name. None if all are unknown.
    pub shape_dominant: Option<String>,
    /// Share of each shape, by name.
    pub shape_mix: Vec<(String, f64)>,
    /// Shannon entropy of the mix in bits.
    pub format_entropy: f64,
    /// Responses whose content the same context and partition was shown before.
    pub repeats: f64,
    /// Events among them.
    pub repeat_events: u64,
    /// Responses without a content hash: nobody can tell what they repeat.
    #[serde(default)]
    pub unhashed: f64,
    /// Events among them.
    #[serde(default)]
    pub unhashed_events: u64,
    /// Events that repeat, among those of which that can be told, by session.
    #[serde(default)]
    pub repeats_of_sessions: Clustered,
    /// 90th percentile of the LRU stack distance of the repeats: distinct other bodies since the last showing.
    pub repeat_distance_p90: Option<u64>,
    /// The three most frequent inner formats, most frequent first, of equals the first by name.
    pub inner_formats_top3: Vec<String>,
    /// Mean columns of responses that are Markdown tables.
    pub columns_mean: Option<f64>,
    /// Markdown tables that the router encoded, and whose columns were not recorded: it asks for as many as it is set to.
    #[serde(default)]
    pub routed_tables: f64,
    /// Mean rows of the tables whose columns are known.
    pub rows_mean: Option<f64>,
    /// Mean key stability of responses that are arrays of objects.
    pub key_stability_mean: Option<f64>,
    /// First response.
    pub first_ms: Millis,
    pub last_ms: Millis,
    /// Sessions in which it was called.
    pub sessions: u64,
    pub tokens: LayerTokens,
    /// Responses that were prefetched.
    pub prefetches: u64,
    /// Of these, used afterwards.
    pub prefetches_cited: u64,
}

impl Fingerprint {
    /// Responses that can be told apart by their content.
    pub fn comparable(&self) -> f64 {
        self.calls - self.unhashed
    }

    /// Share of these that repeat an earlier one of their context and partition.
    pub fn dup_rate(&self) -> f64 {
        if self.comparable() > 0.0 { self.repeats / self.comparable() } else { 0.0 }
    }

    /// Takes a mix of shapes, by name, with what follows from it.
    pub fn mix(&mut self, mix: Vec<(String, f64)>) {
        let known = mix.iter().filter(|(shape, _)| shape != BodyShape::Unknown.into_str());
        let best = known.max_by(|(a, x), (b, y)| x.total_cmp(y).then_with(|| b.cmp(a)));
        self.shape_dominant = best.map(|(shape, _)| shape.clone());
        let part = |(_, share): &(String, f64)| if *share > 0.0 { -share * share.log2() } else { 0.0 };
        // Added to 0 so that a sum of -0 prints as 0.
        self.format_entropy = 0.0 + mix.iter().map(part).sum::<f64>();
        self.shape_mix = mix;
    }
}

/// Tokens as they are and as sent, by the layer that decided. Nothing is clamped: a response may have grown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LayerTokens {
    /// Tokens as they are.
    pub baseline: [f64; 4],
    /// Tokens sent.
    pub sent: [f64; 4],
}

impl LayerTokens {
    /// Adds another one.
    pub fn absorb(&mut self, other: &Self) {
        for layer in 0..4 {
            self.baseline[layer] += other.baseline[layer];
            self.sent[layer] += other.sent[layer];
        }
    }

    /// Tokens as they are, over all layers.
    pub fn total(&self) -> f64 {
        self.baseline.iter().sum()
    }

    /// Saved by L0, of all tokens (Paper 2, "Reporting rule"); none without tokens.
    pub fn dedup(&self) -> Option<f64> {
        share(self.baseline[0] - self.sent[0], self.total())
    }

    /// Saved by L1 and L2, of the tokens of responses that missed L0.
    pub fn encoder(&self) -> Option<f64> {
        let saved = self.baseline[1] - self.sent[1] + self.baseline[2] - self.sent[2];
        share(saved, self.total() - self.baseline[0])
    }

    /// Saved by all layers, of all tokens.
    pub fn combined(&self) -> Option<f64> {
        share(self.total() - self.sent.iter().sum::<f64>(), self.total())
    }
}

fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// Sizes of the responses of one tool, and how well the planner foresaw them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ToolCosts {
    /// Tool as it was recorded.
    pub tool: String,
    /// The name by which a configuration must call it; none when only a pseudonym is known.
    pub key: Option<String>,
    /// Events recorded.
    pub events: u64,
    /// Responses that they stand for.
    pub calls: f64,
    /// Median bytes of a response.
    pub bytes_p50: u64,
    /// 85th percentile of the same.
    pub bytes_p85: u64,
    /// 99th percentile of the same.
    pub bytes_p99: u64,
    /// Responses whose cost was predicted.
    pub predictions: u64,
    /// Of these, with 130 % or more of the prediction.
    pub overruns: u64,
    /// Responses prefetched.
    pub prefetches: u64,
    /// Of these, looked at by the citation pass.
    pub prefetches_judged: u64,
    /// Of these, used afterwards.
    pub prefetches_cited: u64,
    /// Of all that were prefetched, those whose race against the agent was timed.
    pub prefetches_raced: u64,
    /// Of these, there before the agent asked, so that its own call need not run.
    pub prefetches_won: u64,
    /// What these events stand for beyond themselves.
    pub unrecorded: UnrecordedPlans,
}

/// What recorded events stand for beyond themselves, where a part was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UnrecordedPlans {
    /// Responses whose cost was predicted.
    pub predictions: f64,
    /// Of these, with 130 % or more of the prediction.
    pub overruns: f64,
    /// Responses prefetched and looked at by the citation pass.
    pub judged: f64,
    /// Of these, used afterwards.
    pub cited: f64,
    /// Responses prefetched whose race was timed.
    pub raced: f64,
    /// Of these, won.
    pub won: f64,
}

adds_up!(UnrecordedPlans: predictions, overruns, judged, cited, raced, won);

impl ToolCosts {
    /// The share of predictions that were overrun, weighted; 0 of none.
    pub fn overrun_share(&self) -> f64 {
        let all = self.predictions as f64 + self.unrecorded.predictions;
        (self.overruns as f64 + self.unrecorded.overruns) / all.max(1.0)
    }

    /// The share of judged prefetches that were used, weighted; 0 of none.
    pub fn cited_share(&self) -> f64 {
        let all = self.prefetches_judged as f64 + self.unrecorded.judged;
        (self.prefetches_cited as f64 + self.unrecorded.cited) / all.max(1.0)
    }
}

/// The whole of what was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EventProfile {
    /// Events recorded.
    pub events: u64,
    /// Responses that they stand for.
    pub calls: f64,
    pub sessions: u64,
    /// Contexts (session and chain), each with all of its partitions.
    pub contexts: u64,
    /// Partitions of all contexts in which something was recorded.
    pub partitions: u64,
    /// Compactions: the largest partition number of each context, added up.
    pub compactions: u64,
    /// 25th percentile of the bytes of a response; none without events.
    pub bytes_p25: Option<u64>,
    /// Responses that are nested objects and whose depth is known.
    pub nested: u64,
    /// 95th percentile of their depth.
    pub nested_depth_p95: Option<u64>,
    /// Agent variants by which the sessions were classified, with the number of sessions.
    pub agent_variants: Vec<(String, u64)>,
    pub tokens: LayerTokens,
    /// First and last response; none without events.
    pub span_ms: Option<(Millis, Millis)>,
}

/// Everything that rules R1 to R7 read.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Observed {
    pub profile: EventProfile,
    /// Endpoints, by name.
    pub endpoints: Vec<Fingerprint>,
    /// Tools, by name.
    pub tools: Vec<ToolCosts>,
    /// Names of the tools in the follow-ups, by symbol: those of a configuration where they are known.
    pub names: Vec<String>,
    pub follow_ups: Vec<FollowUpCount>,
}
