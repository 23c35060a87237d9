//! S1–S4: levers whose values are replayed over the requests of the logs: lifetimes of the prompt cache, the size at which
//! contexts are compacted, and how much of a long result the model is shown.

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::rules::Sheet;
use crate::rules::claude::judge::{Question, judge};
use crate::rules::claude::{ClaudeRule, Facts};
use crate::settings::finding::Finding;
use crate::whatif::client::Knob;

/// How long what main threads write to the prompt cache lives.
pub static S1: ClaudeRule = ClaudeRule {
    id: "S1",
    file: "s1_main_ttl",
    summary: "Sets the lifetime of what main threads write to the prompt cache, where another one is cheaper.",
    docs: include_str!("../../../rules/docs/s1_main_ttl.md"),
    judge: |facts, sheet| {
        let value = |knob| if let Knob::MainTtl(class) = knob { Some(json!(class.key())) } else { None };
        asked("S1", facts, sheet, &[("cache lifetime, main threads", &["promptCacheTtl"], value)])
    },
};

@@S2
@@S3
@@S4
/// What it is about, the levers, and which value of a trial is one of theirs.
type Asked = (&'static str, &'static [&'static str], fn(Knob) -> Option<Value>);

fn asked(rule: &'static str, facts: &Facts<'_>, sheet: &Sheet, asked: &[Asked]) -> Result<Vec<Finding>> {
    let one = |&(subject, levers, value): &Asked| judge(facts, sheet, &Question { rule, subject, levers, value });
    asked.iter().map(one).collect()
}
