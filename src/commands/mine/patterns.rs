//! `devboy mine patterns`: the nine habits that Paper 3 names, in one's own logs.

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::error::Result;
use crate::commands::mine::export::{Mined, MinedArgs};
use crate::commands::mine::tools::{self, Called};
use crate::mine::patterns::PatternCount;
use crate::mine::tools::ToolUseRules;
use crate::mine::{patterns, tables as mined};
use crate::shell::context::Context;

/// Print how often nine wasteful patterns of tool calls occur (Paper 3), what they cost, and what answers them.
///
/// Definitions: rules/patterns.toml. Tokens are estimated from bytes.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    asked: MinedArgs,
}

#[derive(Serialize, Deserialize)]
struct Counted {
    patterns: Vec<PatternCount>,
    calls: u64,
    response_tokens: u64,
}

/// Reads, searches, prints.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let export = &args.asked.export;
    let mut input = args.asked.read((0, None), context)?;
    let wanted = input.data.parsed::<patterns::Patterns>("patterns.toml")?.pattern;
    let rules = input.data.parsed::<ToolUseRules>("tool_use.toml")?;
    let words = &input.vocabulary;
    let question = format!("patterns {wanted:?} {rules:?} {:?} {:?}", words.tool_aliases, words.file_mutate_tools);
    let counted: Counted = input.remember(&question, |input| {
        let Called { history, names, calls, .. } = tools::called(input, false, &rules);
        Ok(Counted {
            patterns: patterns::count(&history, &calls, &names, &wanted),
            calls: calls.len() as u64,
            response_tokens: calls.iter().map(|call| u64::from(call.tokens)).sum(),
        })
    })?;
    if counted.calls == 0 && !args.asked.input.allow_empty {
        return Err(input.nothing_in_window("tool calls"));
    }
    let kept = args.asked.kept;
    // Who does not ask for many sessions sees what nobody has, too.
    let sessions = |row: &PatternCount| row.sessions.max(1);
    let (rows, left_out) = kept.keep(counted.patterns, sessions);
    export.tell(&input, (left_out, kept), context)?;
    let mut fields = input.fields(json!({ "left_out": left_out }));
    fields["tokens_basis"] = json!(format!("estimated: {} bytes per token", rules.bytes_per_token));
    fields["response_tokens"] = json!(counted.response_tokens);
    let listing = mined::patterns(&rows, counted.response_tokens);
    let (overview, top) = (mined::patterns_overview(&rows, counted.response_tokens), kept.top());
    export.send_mined(context, Mined { overview, top, fields, ..Mined::listed("mine patterns", "patterns", listing) })
}
