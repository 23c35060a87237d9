//! The gate of data profiles: a profile is written if its format saves tokens in a replay, and not for its name alone.

use crate::base::error::Result;
use crate::commands::responses::{Responses, Wanted};
use crate::commands::tune::gate::Gate;
use crate::rules::p3_data;
use crate::rules::proposal::proposed;
use crate::settings::finding::{Finding, Verdict};
use crate::settings::{Settings, SettingsFile};
use crate::shell::context::Context;

/// Replays the profiles among the findings; what brings nothing is held. `is_piped`: the logs came from standard input, which
/// cannot be read again.
///
/// # Errors
/// If the logs cannot be read again.
pub fn gate(
    file: &SettingsFile,
    settings: &Settings,
    wanted: &Wanted<'_>,
    is_piped: bool,
    findings: Vec<Finding>,
    context: &mut Context<'_>,
) -> Result<Vec<Finding>> {
    let is_profile = |finding: &Finding| finding.rule == p3_data::RULE.id && proposed(finding).is_some();
    let has_format = |subject: &str| {
        let formats = findings.iter().filter(|finding| is_profile(finding) && finding.subject == subject);
        formats.filter_map(proposed).any(|delta| delta.key.leaf() == Some("preferred_format"))
    };
    let has_format: Vec<bool> = findings.iter().map(|finding| has_format(&finding.subject)).collect();
    let mut some_format = false;
    let judged = findings.into_iter().zip(has_format).map(|(mut finding, has_format)| {
        if is_profile(&finding) && (!has_format || is_piped) {
            let why = if has_format {
                "standard input cannot be replayed"
            } else {
                "a profile without a format does nothing"
            };
            finding.verdict = Verdict::Hold(format!("no effect: {why}"));
        }
        some_format |= is_profile(&finding);
        finding
    });
    let judged: Vec<Finding> = judged.collect();
    if !some_format {
        return Ok(judged);
    }
    let responses = Responses::from_logs(wanted, context)?;
    let (profiles, others): (Vec<Finding>, Vec<Finding>) = judged.into_iter().partition(is_profile);
    let judged = responses.halves()?.map_or_else(|| responses.log.clone(), |[_, later]| later);
    let (_, profiles) = Gate::pass(file, settings, &responses, &judged, profiles)?;
    Ok(others.into_iter().chain(profiles).collect())
}
