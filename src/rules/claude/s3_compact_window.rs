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
    docs: DOCS,
    judge,
};

const DOCS: &str = r#"
### What it looks at
Every request is sent again with contexts compacted as the client does it, at each of a few windows from the least that
it takes. Readings of what a summary lost are paid for, and so is one more request for each edit whose source is gone.
Compactions of the log stay. With `--scope project` or `local` only the sessions of this project count, so that the
window is the project's own.

### Why
A long context is paid for at every request. A summary costs one large request and what has to be read again.

### When it stays quiet
Too few sessions before or after the split; no value is cheaper on the later sessions by more than the simulation is
off the bill, interval and all; a client version of the last weeks does not know the lever; a file or variable that
wins sets it; it holds already.

### Example
```json
{ "autoCompactWindow": 200000 }
```
"#;

fn judge(facts: &Facts<'_>, sheet: &Sheet) -> Result<Vec<Finding>> {
    let levers = &["autoCompactWindow", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"];
    let question = Question { rule: RULE.id, subject: "automatic compaction", levers, value };
    Ok(vec![judged(facts, sheet, &question)?])
}

fn value(knob: Knob) -> Option<Value> {
    if let Knob::Window(tokens) = knob { Some(json!(tokens)) } else { None }
}
