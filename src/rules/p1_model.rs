//! P1: pin the model that writes nearly all messages, with its real context window. Model families are variants of the
//! LLM profile axis (`rules/models.toml`).

use std::collections::BTreeMap;

use serde::Deserialize;
use toml_edit::Value;

use crate::base::bootstrap::SessionTrials;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::model_id::normalise;
use crate::base::stats::{Clustered, ModelUse, Share};
use crate::report::numbers::{percent, thousands};
use crate::rules::proposal::unpinned;
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::finding::{Basis, Delta, Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "P1",
    file: "p1_model",
    summary: "Pins `profiles.llm.active` when one model gives nearly all answers, and adds its variant if it is missing.",
    speaks: Speaks::Logs,
    judge,
};

#[derive(Deserialize)]
struct Thresholds {
    share_min: f64,
    messages_min: u64,
    window_tiers: Vec<u32>,
}

/// All ids of one family taken together.
#[derive(Default)]
struct FamilyUse {
    name: String,
    messages: u64,
    of_sessions: BTreeMap<u32, u64>,
    prompt_tokens_max: u64,
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let families = uses_of_families(facts.models);
    let total: u64 = families.iter().map(|family| family.messages).sum();
    // Ties go to the name that sorts first.
    let top = families.iter().max_by(|a, b| a.messages.cmp(&b.messages).then(b.name.cmp(&a.name)));
    let Some(used @ FamilyUse { name, .. }) = top.filter(|_| total > 0) else {
        return Ok(vec![finding("(none)", Verdict::Skip("no API messages in the logs".into()), Evidence::default())]);
    };
    let counts = format!("{} of {} API messages are from {name}", thousands(used.messages), thousands(total));
    let (share, sessions) = share_over_sessions(used, &families);
    let evidence = Evidence::of(counts, sessions).with_share_over_sessions(share).by(sheet.cite("share_min"));
    if total < thresholds.messages_min {
        let reason = format!("only {total} API messages ({})", sheet.cite("messages_min"));
        return Ok(vec![finding(name, Verdict::Hold(reason), evidence)]);
    }
    if share.value() < thresholds.share_min {
        let active = KeyPath::from(["profiles", "llm", "active"]);
        let variant = facts.current.llm_variant(name);
        let leading = variant.as_ref().unwrap_or(name);
        let reason = format!("no model gives {} of the answers", percent(thresholds.share_min));
        let verdict = unpinned(facts.current, active, leading, &reason);
        return Ok(vec![finding(name, verdict, evidence)]);
    }
    Ok(pin(facts, used, &thresholds, &evidence))
}

fn uses_of_families(models: &[ModelUse]) -> Vec<FamilyUse> {
    let mut families: BTreeMap<String, FamilyUse> = BTreeMap::new();
    for model in models {
        let name = normalise(&model.id);
        let family = families.entry(name.clone()).or_insert_with(|| FamilyUse { name, ..FamilyUse::default() });
        family.messages += model.messages;
        family.prompt_tokens_max = family.prompt_tokens_max.max(model.prompt_tokens_max);
        for (&session, messages) in &model.of_sessions {
            *family.of_sessions.entry(session).or_default() += messages;
        }
    }
    families.into_values().collect()
}

/// The share of all messages that are of a family, and of how many sessions: who begins with a model mostly stays with it.
fn share_over_sessions(used: &FamilyUse, families: &[FamilyUse]) -> (Share, u64) {
    let mut sessions: BTreeMap<u32, SessionTrials> = BTreeMap::new();
    for family in families {
        for (&session, &messages) in &family.of_sessions {
            let (of_family, all) = sessions.entry(session).or_default();
            *of_family += if family.name == used.name { messages } else { 0 };
            *all += messages;
        }
    }
    let sessions = Clustered::of(sessions.into_values());
    let total = families.iter().map(|family| family.messages).sum();
    (Share { k: used.messages, n: total, ..sessions.over_clusters() }, sessions.clusters)
}

fn finding(subject: &str, verdict: Verdict, evidence: Evidence) -> Finding {
    Finding::new(RULE.id, subject, verdict, evidence)
}

fn pin(facts: &RuleFacts<'_>, used: &FamilyUse, thresholds: &Thresholds, evidence: &Evidence) -> Vec<Finding> {
    let name = used.name.as_str();
    let active = KeyPath::from(["profiles", "llm", "active"]);
    let variants = KeyPath::from(["profiles", "llm", "variants"]);
    let now = facts.current.value(&active);
    let chosen = now.as_ref().and_then(Value::as_str).unwrap_or("auto");
    let is_chosen = normalise(chosen) == name;
    if chosen != "auto" && !is_chosen && facts.current.line_by_hand(&active).is_some() {
        let reason = format!("`profiles.llm.active` is set to \"{chosen}\" by hand");
        return vec![finding(name, Verdict::Hold(reason), evidence.clone())];
    }
    if facts.current.pinned(&active) {
        return vec![finding(name, Verdict::Hold(format!("`{active}` is marked `# pin`")), evidence.clone())];
    }
    let known = facts.current.llm_variant(name);
    // As it is spelled where it stands.
    let spelled = known.as_deref().unwrap_or(name);
    let of_model = variants.child(spelled);
    let window = proven_window(facts, used, thresholds);
    let mut findings = Vec::new();
    if known.is_some() && window.is_none() && lacks_window(facts, &of_model, name) {
        let reason = "devboy knows no context window for this model, and its variant gives none";
        return vec![finding(name, unpinned(facts.current, active, spelled, reason), evidence.clone())];
    }
    if known.is_some() {
        findings.extend(widen(facts, &of_model, used, window));
    } else {
        let family = facts.families.iter().find(|family| family.variant == name);
        let Some((family, window)) = family.zip(window) else {
            let reason = "devboy knows no context window for this model, so it cannot add a variant";
            return vec![finding(name, unpinned(facts.current, active, name, reason), evidence.clone())];
        };
        findings.extend(variant(&of_model, family, window, used));
    }
    findings.push(if is_chosen {
        finding(name, Verdict::Skip("the file says so already".into()), evidence.clone())
    } else {
        let delta = Delta { key: active, from: now, to: Value::from(spelled) };
        finding(name, Verdict::Propose(delta), evidence.clone())
    });
    findings
}

/// Whether a variant was written for its tokenizer alone, of a model whose window is not listed.
fn lacks_window(facts: &RuleFacts<'_>, variant: &KeyPath, name: &str) -> bool {
    let is_listed_without = |family: &ModelFamily| family.variant == name && family.context_window.is_none();
    facts.families.iter().any(is_listed_without) && facts.current.line(&variant.child("context_window")).is_none()
}

/// The listed window of a model, or the next larger one that exists when a request did not fit it.
fn proven_window(facts: &RuleFacts<'_>, used: &FamilyUse, thresholds: &Thresholds) -> Option<u32> {
    let listed = facts.families.iter().find(|family| family.variant == used.name)?.context_window;
    let fits = |window: u32| u64::from(window) >= used.prompt_tokens_max;
    match listed {
        Some(window) if fits(window) => Some(window),
        // Without a listed window only a request beyond the smallest one proves anything.
        None if thresholds.window_tiers.first().is_some_and(|&tier| fits(tier)) => None,
        _ => thresholds.window_tiers.iter().copied().find(|&tier| fits(tier)),
    }
}

/// Raises the window of a variant that is smaller than a request that was answered.
fn widen(facts: &RuleFacts<'_>, variant: &KeyPath, used: &FamilyUse, window: Option<u32>) -> Option<Finding> {
    let key = variant.child("context_window");
    let now = facts.current.value(&key);
    let listed = now.as_ref().and_then(Value::as_integer)?;
    let window = window.map(i64::from).filter(|&window| window > listed && used.prompt_tokens_max as i64 > listed)?;
    let verdict = match facts.current.line_by_hand(&key) {
        Some(line) => Verdict::Hold(format!("`{key}` is set by hand in line {line}")),
        None => Verdict::Propose(Delta { key, from: now, to: Value::from(window) }),
    };
    Some(finding(&used.name, verdict, largest_prompt(used)))
}

fn largest_prompt(used: &FamilyUse) -> Evidence {
    let FamilyUse { messages, prompt_tokens_max, .. } = *used;
    Evidence::of(format!("the largest of {messages} requests had {prompt_tokens_max} prompt tokens"), messages)
}

fn variant(key: &KeyPath, family: &ModelFamily, window: u32, used: &FamilyUse) -> Vec<Finding> {
    let shipped = |what: &str| Evidence {
        counts: format!("{what} of {}", used.name),
        threshold: Some(family.place.clone()),
        basis: Basis::Shipped,
        ..Evidence::default()
    };
    let values = [
        ("tokenizer", Value::from(family.tokenizer.as_str()), shipped("tokenizer class")),
        (
            "context_window",
            Value::from(i64::from(window)),
            match family.context_window {
                Some(listed) if listed == window => shipped("listed window"),
                _ => largest_prompt(used),
            },
        ),
    ];
    let propose = |(field, to, evidence): (&str, Value, Evidence)| {
        finding(&used.name, Verdict::Propose(Delta { key: key.child(field), from: None, to }), evidence)
    };
    values.into_iter().map(propose).collect()
}

/// The shipped model families.
pub fn families(data: &Data) -> Result<Vec<ModelFamily>> {
    let file = data.file("models.toml")?;
    let families = file.parsed::<Families>()?.model.into_iter();
    Ok(families.map(|family| ModelFamily { place: file.place.clone(), ..family }).collect())
}

#[derive(Deserialize)]
struct Families {
    model: Vec<ModelFamily>,
}

/// A model family as a variant of the LLM profile axis.
#[derive(Deserialize, Debug, Clone, PartialEq)]
pub struct ModelFamily {
    /// Name of the variant, in the published spelling.
    pub variant: String,
    pub tokenizer: String,
    pub context_window: Option<u32>,
    /// The file that lists it.
    #[serde(skip)]
    pub place: String,
}
