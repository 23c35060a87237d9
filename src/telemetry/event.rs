//! One response as the live pipeline records it (published schema; the fields below the line are additions, left out when
//! they say nothing).

use serde::{Deserialize, Serialize};

use crate::model::id::Id;

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
    /// Shape.
    pub shape: String,
    /// Inner formats.
    #[serde(default)]
    pub inner_formats: Vec<String>,
    /// First 32 hex digits of SHA-256 of the response.
    #[serde(default)]
    pub content_sha_prefix_hex: String,
    /// First 8 hex digits of SHA-256 of the normalised path.
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
    /// Format of L2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub l2_format: Option<String>,
    /// Nesting of JSON containers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth_max: u32,
    /// Columns of the first Markdown table.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_cols: u32,
    /// Rows of the same.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub n_rows: u32,
    /// Key stability of an array of objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_stability: Option<f64>,
    /// First 8 hex digits of a hash of the subagent's id, where a subagent was shown it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_chain: Option<String>,
}

fn last_layer() -> String {
    "L3".to_owned()
}

fn one() -> f64 {
    1.0
}

#[expect(clippy::trivially_copy_pass_by_ref)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// The name of a tool without the name of its MCP server: `mcp__gitlab__get_issue` is `mcp__p9d96d9__get_issue`
/// (published form). Short prefixes hide a name from a glance, not from somebody who guesses it.
pub fn anonymous_tool(tool: &str) -> String {
    let named = tool.strip_prefix("mcp__").and_then(|rest| rest.rsplit_once("__"));
    let Some((server, verb)) = named else { return tool.to_owned() };
    let hash = Id::pseudonym(server.as_bytes()).to_string();
    format!("mcp__p{}__{verb}", &hash[..6])
}
