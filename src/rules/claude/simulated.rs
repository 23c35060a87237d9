//! S1–S4: levers whose values are replayed over the requests of the logs: lifetimes of the prompt cache, the size at which
//! contexts are compacted, and how much of a long result the model is shown.

use serde_json::{Value, json};

use crate::base::bootstrap::Resampling;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::rules::RuleThresholds;
use crate::rules::claude::judge::{Question, judge, pays, plain};
use crate::rules::claude::{ClaudeRule, SettingsFacts, sheet_of};
use crate::rules::report::plain as as_json;
use crate::settings::claude::layers::SettingsLayers;
use crate::settings::claude::levers::{Lever, LeverKind, Levers};
use crate::settings::finding::Finding;
use crate::whatif::client::capped::Limit;
use crate::whatif::client::{LeverStudy, LeverValue};
use crate::whatif::prompt_cache::params::CacheLifetime;

/// How long what main threads write to the prompt cache lives.
pub static S1: ClaudeRule = ClaudeRule {
    id: "S1",
    file: "s1_main_ttl",
    summary: "Sets the lifetime of what main threads write to the prompt cache, where another one is cheaper.",
    judge: |facts, sheet| asked("S1", facts, sheet),
};

/// How long what subagents write to the prompt cache lives.
pub static S2: ClaudeRule = ClaudeRule {
    id: "S2",
    file: "s2_subagent_ttl",
    summary: "Sets the lifetime of what subagents write to the prompt cache, where another one is cheaper.",
    judge: |facts, sheet| asked("S2", facts, sheet),
};

/// At which size contexts are compacted.
pub static S3: ClaudeRule = ClaudeRule {
    id: "S3",
    file: "s3_compact_window",
    summary: "Sets the window that automatic compaction goes by, where a smaller one is cheaper, what it breaks included.",
    judge: |facts, sheet| asked("S3", facts, sheet),
};

/// How much of a long result the model is shown.
pub static S4: ClaudeRule = ClaudeRule {
    id: "S4",
    file: "s4_result_sizes",
    summary: "Sets how much of long results of the shell, of MCP tools and of readings is shown, where less is cheaper, what it breaks included.",
    judge: |facts, sheet| asked("S4", facts, sheet),
};

/// What is asked, in the order in which the rules speak.
static QUESTIONS: [Question; 6] = [
    Question {
        rule: "S1",
        subject: "cache lifetime, main threads",
        levers: &["promptCacheTtl"],
        meant: |value| lifetime(value).map(LeverValue::MainTtl),
    },
    Question {
        rule: "S2",
        subject: "cache lifetime, subagents",
        levers: &["subagentPromptCacheTtl"],
        meant: |value| lifetime(value).map(LeverValue::SubagentTtl),
    },
    Question {
        rule: "S3",
        subject: "automatic compaction",
        levers: &["autoCompactWindow", "CLAUDE_CODE_AUTO_COMPACT_WINDOW"],
        meant: |value| whole(value).map(LeverValue::Window),
    },
    Question {
        rule: "S4",
        subject: "shell output",
        levers: &["bashOutputMaxChars"],
        meant: |value| whole(value).map(|chars| LeverValue::Result(Limit::BashChars(chars))),
    },
    Question {
        rule: "S4",
        subject: "results of MCP tools",
        levers: &["MAX_MCP_OUTPUT_TOKENS"],
        meant: |value| whole(value).map(|tokens| LeverValue::Result(Limit::McpTokens(tokens))),
    },
    Question {
        rule: "S4",
        subject: "readings of files",
        levers: &["CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS"],
        meant: |value| whole(value).map(|tokens| LeverValue::Result(Limit::ReadTokens(tokens))),
    },
];

/// The rule that asks about a lever, with what it is about; none if no rule does.
pub fn question(setting: LeverValue) -> Option<(&'static str, &'static str)> {
    let asks = QUESTIONS.iter().find(|question| question.value(setting).is_some())?;
    Some((asks.rule, asks.subject))
}

/// Whether a rule asks several questions.
pub fn asks_several(rule: &str) -> bool {
    QUESTIONS.iter().filter(|question| question.rule == rule).count() > 1
}

fn asked(rule: &str, facts: &SettingsFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    QUESTIONS.iter().filter(|question| question.rule == rule).map(|question| judge(facts, sheet, question)).collect()
}

/// What holds already of what can be simulated.
pub fn standing(layers: &SettingsLayers, levers: &Levers) -> Result<Vec<LeverValue>> {
    let in_force = QUESTIONS.iter().map(|question| Ok(question.in_force(layers, levers)?.map(|(_, value)| value)));
    Ok(in_force.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// The levers that can be simulated of which files of a project decide what becomes beside the `user`'s, each as any of its values:
/// what somebody switches off, or sets for one model, is decided as well.
pub fn decided(layers: &SettingsLayers, levers: &Levers, user: &SettingsLayers) -> Result<Vec<LeverValue>> {
    let any = |question: &Question| [json!("1h"), json!(100_000)].iter().find_map(question.meant);
    let mut out = Vec::new();
    for question in &QUESTIONS {
        let lever = question.levers.first().and_then(|name| levers.named(name));
        if lever.map(|lever| layers.decide(lever, levers, user)).transpose()?.unwrap_or(false) {
            out.extend(any(question));
        }
    }
    Ok(out)
}

/// The settings that pay: of each lever that can be simulated the value that is proposed if nothing stands in its way.
pub fn paying(study: &LeverStudy, resampling: &Resampling, data: &Data) -> Result<Vec<LeverValue>> {
    let paying = QUESTIONS.iter().map(|question| {
        let found = pays(study, resampling, &sheet_of(question.rule, data)?, question)?;
        Ok(found.ok().map(|paying| paying.trial.setting))
    });
    Ok(paying.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}

/// What holds already of what a lever sets.
pub struct HeldLever<'l> {
    /// What sets it: the lever, or another one that does the same.
    pub lever: &'l Lever,
    pub words: String,
    /// Whether it is the value that is asked about.
    pub is_same: bool,
}

/// What holds already of what a lever sets. None if nothing does, or what does is set for one model.
pub fn held<'l>(
    layers: &SettingsLayers,
    levers: &'l Levers,
    (lever, wanted): (&str, &Value),
) -> Result<Option<HeldLever<'l>>> {
    let Some(question) = QUESTIONS.iter().find(|question| question.levers.contains(&lever)) else {
        let Some(lever) = levers.named(lever) else { return Ok(None) };
        let held = layers.in_force(lever, levers)?;
        let words = |by: &Lever, value: &Value| format!("{} is {value}", by.name);
        return Ok(held.map(|(by, value)| HeldLever {
            lever: by,
            words: words(by, &value),
            is_same: value == *wanted,
        }));
    };
    let Some((by, standing)) = question.in_force(layers, levers)? else { return Ok(None) };
    // A smaller window does more than a larger one, and breaks more: only a replay tells which is cheaper.
    let is_same = (question.meant)(wanted) == Some(standing);
    // A switch says so of what it stands for.
    let verb = if by.kind == LeverKind::Boolean { "makes it" } else { "is" };
    Ok(Some(HeldLever { lever: by, words: format!("{} {verb} {}", by.name, plain(&standing.value())), is_same }))
}

/// The setting that a finding proposes; none if it proposes none, or one that nobody can simulate.
pub(super) fn setting(finding: &Finding) -> Option<LeverValue> {
    let value = as_json(&finding.proposed()?.to);
    (question_of(finding)?.meant)(&value)
}

/// The question that a finding answers.
pub(super) fn question_of(finding: &Finding) -> Option<&'static Question> {
    QUESTIONS.iter().find(|question| (question.rule, question.subject) == (finding.rule, finding.subject.as_str()))
}

fn lifetime(value: &Value) -> Option<CacheLifetime> {
    serde_json::from_value(value.clone()).ok()
}

/// A whole number above zero, as a file or a variable has it: variables are texts of digits.
fn whole(value: &Value) -> Option<u64> {
    let number = match value {
        Value::String(text) => text.trim().parse::<u32>().ok().map(f64::from)?,
        _ => value.as_f64()?,
    };
    (number >= 1.0 && number.fract() == 0.0 && number <= f64::from(u32::MAX)).then_some(number as u64)
}
