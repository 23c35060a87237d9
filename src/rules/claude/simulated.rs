//! S1–S4: levers whose values are replayed over the requests of the logs: lifetimes of the prompt cache, the size at which
//! contexts are compacted, and how much of a long result the model is shown.

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::rules::RuleThresholds;
use crate::rules::claude::judge::{Question, judge};
use crate::rules::claude::{ClaudeRule, SettingsFacts};
use crate::settings::claude::layers::SettingsLayers;
use crate::settings::claude::levers::Levers;
use crate::settings::finding::Finding;
use crate::whatif::client::LeverValue;
use crate::whatif::client::capped::Limit;
use crate::whatif::prompt_cache::params::CacheLifetime;

/// How long what main threads write to the prompt cache lives.
pub static S1: ClaudeRule = ClaudeRule {
    id: "S1",
    file: "s1_main_ttl",
    summary: "Sets the lifetime of what main threads write to the prompt cache, where another one is cheaper.",
    judge: |facts, sheet| {
        let value =
            |setting| if let LeverValue::MainTtl(class) = setting { Some(json!(class.into_str())) } else { None };
        asked("S1", facts, sheet, &[("cache lifetime, main threads", &["promptCacheTtl"], value)])
    },
};

/// How long what subagents write to the prompt cache lives.
pub static S2: ClaudeRule = ClaudeRule {
    id: "S2",
    file: "s2_subagent_ttl",
    summary: "Sets the lifetime of what subagents write to the prompt cache, where another one is cheaper.",
    judge: |facts, sheet| {
        let value =
            |setting| if let LeverValue::SubagentTtl(class) = setting { Some(json!(class.into_str())) } else { None };
        asked("S2", facts, sheet, &[("cache lifetime, subagents", &["subagentPromptCacheTtl"], value)])
    },
};

/// At which size contexts are compacted.
pub static S3: ClaudeRule = ClaudeRule {
    id: "S3",
    file: "s3_compact_window",
    summary: "Sets the window that automatic compaction goes by, where a smaller one is cheaper, what it breaks included.",
    judge: |facts, sheet| {
        let levers = &["autoCompactWindow", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"];
        let value = |setting| if let LeverValue::Window(tokens) = setting { Some(json!(tokens)) } else { None };
        asked("S3", facts, sheet, &[("automatic compaction", levers, value)])
    },
};

/// How much of a long result the model is shown.
pub static S4: ClaudeRule = ClaudeRule {
    id: "S4",
    file: "s4_result_sizes",
    summary: "Sets how much of long results of the shell, of MCP tools and of readings is shown, where less is cheaper, what it breaks included.",
    judge: |facts, sheet| {
        let bash =
            |setting| if let LeverValue::Result(Limit::BashChars(chars)) = setting { Some(json!(chars)) } else { None };
        let mcp = |setting| {
            if let LeverValue::Result(Limit::McpTokens(tokens)) = setting { Some(json!(tokens)) } else { None }
        };
        let read = |setting| {
            if let LeverValue::Result(Limit::ReadTokens(tokens)) = setting { Some(json!(tokens)) } else { None }
        };
        let all: [LeverQuestion; 3] = [
            ("shell output", &["bashOutputMaxChars"], bash),
            ("results of MCP tools", &["MAX_MCP_OUTPUT_TOKENS"], mcp),
            ("readings of files", &["CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"], read),
        ];
        asked("S4", facts, sheet, &all)
    },
};

/// The levers that can be simulated, with what a value of one means.
type SimulatedLever = (&'static str, fn(&Value) -> Option<LeverValue>);
const LEVERS: [SimulatedLever; 7] = [
    ("promptCacheTtl", |value| lifetime(value).map(LeverValue::MainTtl)),
    ("subagentPromptCacheTtl", |value| lifetime(value).map(LeverValue::SubagentTtl)),
    ("autoCompactWindow", |value| whole(value).map(LeverValue::Window)),
    ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", |value| whole(value).map(LeverValue::Window)),
    ("bashOutputMaxChars", |value| whole(value).map(|chars| LeverValue::Result(Limit::BashChars(chars)))),
    ("MAX_MCP_OUTPUT_TOKENS", |value| whole(value).map(|tokens| LeverValue::Result(Limit::McpTokens(tokens)))),
    ("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", |value| {
        whole(value).map(|tokens| LeverValue::Result(Limit::ReadTokens(tokens)))
    }),
];

/// What the file sets already of what can be simulated: of each lever the first value that makes sense.
///
/// # Errors
/// If the file holds a key twice.
pub fn standing(layers: &SettingsLayers, levers: &Levers) -> Result<Vec<LeverValue>> {
    let mut found: Vec<LeverValue> = Vec::new();
    for (name, meant) in LEVERS {
        let Some(key) = levers.named(name).and_then(|lever| lever.key(None)) else { continue };
        let value = layers.value(&key)?.as_ref().and_then(meant);
        found.extend(value.filter(|value| !found.iter().any(|known| known.is_of_lever(*value))));
    }
    Ok(found)
}

fn lifetime(value: &Value) -> Option<CacheLifetime> {
    serde_json::from_value(value.clone()).ok()
}

/// A whole number above zero, however it is written: variables are texts.
fn whole(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) => text.trim().parse().ok()?,
        _ => value.as_f64()?,
    };
    (number >= 1.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX)).then_some(number as u64)
}

/// What it is about, the levers, and which value of a trial is one of theirs.
type LeverQuestion = (&'static str, &'static [&'static str], fn(LeverValue) -> Option<Value>);

fn asked(
    rule: &'static str,
    facts: &SettingsFacts<'_>,
    sheet: &RuleThresholds,
    asked: &[LeverQuestion],
) -> Result<Vec<Finding>> {
    let one =
        |&(subject, levers, value): &LeverQuestion| judge(facts, sheet, &Question { rule, subject, levers, value });
    asked.iter().map(one).collect()
}
