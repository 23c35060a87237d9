//! S1: how long what main threads write to the prompt cache lives.

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::rules::Sheet;
use crate::rules::claude::judge::{Question, judge as judged};
use crate::rules::claude::{ClaudeRule, Facts};
use crate::settings::finding::Finding;
use crate::whatif::client::Knob;

/// The rule.
pub static RULE: ClaudeRule = ClaudeRule {
    id: "S1",
    file: "s1_main_ttl",
    summary: "Sets the lifetime of what main threads write to the prompt cache, where another one is cheaper.",
    docs: DOCS,
    judge,
};

const DOCS: &str = r#"
### What it looks at
Every request of main threads is sent again with each lifetime, 5m and 1h, under the simulated cache. The value is
chosen on the earlier three fifths of the sessions and judged on the later ones.

### Why
A write that lives an hour costs 1.6 times one that lives five minutes, and saves writing everything again after a
pause between the two. Which is cheaper depends on how long the pauses are, and those of subagents are not those of
people.

### When it stays quiet
Too few sessions before or after the split; no value is cheaper on the later sessions by more than the simulation is
off the bill, interval and all; a client version of the last weeks does not know the lever; a file or variable that
wins sets it; it holds already.

### Example
```json
{ "promptCacheTtl": "1h" }
```
"#;

fn judge(facts: &Facts<'_>, sheet: &Sheet) -> Result<Vec<Finding>> {
    let question =
        Question { rule: RULE.id, subject: "cache lifetime, main threads", levers: &["promptCacheTtl"], value };
    Ok(vec![judged(facts, sheet, &question)?])
}

fn value(knob: Knob) -> Option<Value> {
    if let Knob::MainTtl(class) = knob { Some(json!(class.key())) } else { None }
}
