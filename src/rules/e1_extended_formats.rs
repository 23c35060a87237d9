//! E1: the formats for text that the published pipeline does not know.

use serde::Deserialize;
use toml_edit::{Array, Value};

use crate::base::body_shape::BodyShape;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::counted;
use crate::facts::encode::{FormatFamily, REGISTER};
use crate::rules::responses::EVERYTHING;
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::finding::{Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "E1",
    file: "e1_extended_formats",
    summary: "Lists the extended formats in `mckp.formats_enabled`, for a pipeline that knows them.",
    speaks: Speaks::ExtendedFormats,
    judge,
};

#[derive(Deserialize)]
struct Thresholds {
    responses_min: f64,
    text_share_min: f64,
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let profile = &facts.observed.profile;
    let texts: f64 = facts.observed.endpoints.iter().map(|seen| seen.calls * text_share(&seen.shape_mix)).sum();
    let counts = format!(
        "text in {texts:.0} of {}, which no published format writes shorter",
        counted(profile.calls.round() as u64, "response")
    );
    let finding = |verdict, threshold| {
        let evidence = Evidence::of(counts.clone(), profile.events).by(sheet.cite(threshold));
        Ok(vec![Finding::new(RULE.id, EVERYTHING, verdict, evidence)])
    };
    if profile.calls < thresholds.responses_min {
        return finding(Verdict::Skip("too few responses".to_owned()), "responses_min");
    }
    if texts < thresholds.text_share_min * profile.calls {
        return finding(Verdict::Skip("too little of it is text".to_owned()), "text_share_min");
    }
    let key = KeyPath::from(["mckp", "formats_enabled"]);
    let listed = facts.current.value(&key).and_then(|list| list.as_array().cloned()).unwrap_or_default();
    finding(facts.wants(key, Value::Array(with_extended(listed))), "text_share_min")
}

/// Share of responses that are text of some kind.
fn text_share(mix: &[(String, f64)]) -> f64 {
    let is_text = |shape: &str| {
        use BodyShape::{BulletList, CodeBlock, NumberedList, Prose};
        [Prose, NumberedList, BulletList, CodeBlock].into_iter().any(|text| text.into_str() == shape)
    };
    mix.iter().filter(|(shape, _)| is_text(shape)).map(|(_, share)| share).sum()
}

/// The list with the extended formats that it lacks behind it.
fn with_extended(mut listed: Array) -> Array {
    for format in REGISTER.iter().filter(|format| format.family == FormatFamily::Extended) {
        if !listed.iter().any(|id| id.as_str() == Some(format.id)) {
            listed.push(format.id);
        }
    }
    listed
}
