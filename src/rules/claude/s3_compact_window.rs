//! S3: at which size contexts are compacted.

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::rules::Sheet;
use crate::rules::claude::judge::{Question, judge as judged};
use crate::rules::claude::{ClaudeRule, Facts};
use crate::settings::finding::Finding;
use crate::whatif::client::Knob;

/// The rule.
pub static RULE: ClaudeRule = ClaudeRule {
    id: "S3",
    file: "s3_compact_window",
    summary: "Sets the window that automatic compaction goes by, where a smaller one is cheaper, what it breaks included.",
    docs: include_str!("../../../rules/docs/s3_compact_window.md"),
    judge,
};

fn judge(facts: &Facts<'_>, sheet: &Sheet) -> Result<Vec<Finding>> {
    let levers = &["autoCompactWindow", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"];
    let question = Question { rule: RULE.id, subject: "automatic compaction", levers, value };
    Ok(vec![judged(facts, sheet, &question)?])
}

fn value(knob: Knob) -> Option<Value> {
    if let Knob::Window(tokens) = knob { Some(json!(tokens)) } else { None }
}
