//! S4: how much of a long result the model is shown.

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::rules::Sheet;
use crate::rules::claude::judge::{Question, judge as judged};
use crate::rules::claude::{ClaudeRule, Facts};
use crate::settings::finding::Finding;
use crate::whatif::client::Knob;

/// The rule.
pub static RULE: ClaudeRule = ClaudeRule {
    id: "S4",
    file: "s4_result_sizes",
    summary: "Sets how much of long results of the shell, of MCP tools and of readings is shown, where less is cheaper, what it breaks included.",
    docs: include_str!("../../../rules/docs/s4_result_sizes.md"),
    judge,
};

/// What it is about, the levers, and which value of a trial is one of theirs.
type Asked = (&'static str, &'static [&'static str], fn(Knob) -> Option<Value>);

fn judge(facts: &Facts<'_>, sheet: &Sheet) -> Result<Vec<Finding>> {
    let bash = |knob| if let Knob::BashChars(chars) = knob { Some(json!(chars)) } else { None };
    let mcp = |knob| if let Knob::McpTokens(tokens) = knob { Some(json!(tokens)) } else { None };
    let read = |knob| if let Knob::ReadTokens(tokens) = knob { Some(json!(tokens)) } else { None };
    let asked: [Asked; 3] = [
        ("shell output", &["bashOutputMaxChars"], bash),
        ("results of MCP tools", &["MAX_MCP_OUTPUT_TOKENS"], mcp),
        ("readings of files", &["CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"], read),
    ];
    let one = |(subject, levers, value)| judged(facts, sheet, &Question { rule: RULE.id, subject, levers, value });
    asked.into_iter().map(one).collect()
}
