//! S6: the list of skills where none is used.

use serde::Deserialize;

use crate::base::error::Result;
use crate::rules::Sheet;
use crate::rules::claude::judge::{hint, key_of};
use crate::rules::claude::{ClaudeRule, Facts};
use crate::settings::finding::{Evidence, Finding, Verdict};

/// The rule.
pub static RULE: ClaudeRule = ClaudeRule {
    id: "S6",
    file: "s6_skills",
    summary: "Tells of the list of skills where no session used one; never written, since no log says what the list costs.",
    docs: include_str!("../../../rules/docs/s6_skills.md"),
    judge,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Thresholds {
    sessions_min: u64,
}

fn judge(facts: &Facts<'_>, sheet: &Sheet) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let (sessions, uses) = (facts.study.sessions.len() as u64, facts.uses.skills);
    let evidence =
        Evidence::of(format!("{uses} uses of skills in {sessions} sessions"), sessions).by(sheet.cite("sessions_min"));
    let lever = "disableBundledSkills";
    let finding = |verdict| Finding::new(RULE.id, "list of skills", verdict, evidence.clone());
    let is_set = match key_of(facts, lever) {
        Some(key) => facts.layers.value(&key)?.is_some(),
        None => false,
    };
    Ok(vec![match uses {
        _ if is_set => finding(Verdict::Skip(format!("`{lever}` is set already"))),
        0 if sessions >= thresholds.sessions_min => {
            let words = format!("none was used; \"{lever}\": true leaves out those that the client comes with");
            hint(facts, RULE.id, "list of skills", lever, words, evidence)
        }
        0 => finding(Verdict::Hold(format!("too few sessions ({})", sheet.cite("sessions_min")))),
        _ => finding(Verdict::Skip("skills are used".to_owned())),
    }])
}
