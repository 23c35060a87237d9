//! S2: how long what subagents write to the prompt cache lives.

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::rules::Sheet;
use crate::rules::claude::judge::{Question, judge as judged};
use crate::rules::claude::{ClaudeRule, Facts};
use crate::settings::finding::Finding;
use crate::whatif::client::Knob;

/// The rule.
pub static RULE: ClaudeRule = ClaudeRule {
    id: "S2",
    file: "s2_subagent_ttl",
    summary: "Sets the lifetime of what subagents write to the prompt cache, where another one is cheaper.",
    docs: include_str!("../../../rules/docs/s2_subagent_ttl.md"),
    judge,
};

fn judge(facts: &Facts<'_>, sheet: &Sheet) -> Result<Vec<Finding>> {
    let question =
        Question { rule: RULE.id, subject: "cache lifetime, subagents", levers: &["subagentPromptCacheTtl"], value };
    Ok(vec![judged(facts, sheet, &question)?])
}

fn value(knob: Knob) -> Option<Value> {
    if let Knob::SubagentTtl(class) = knob { Some(json!(class.key())) } else { None }
}
