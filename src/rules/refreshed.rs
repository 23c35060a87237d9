//! The gate of R6: what refreshes the numbers of the planner is written if the planner runs and does better with them on the
//! later sessions.

use crate::base::error::Result;
use crate::report::numbers::{percent, thousands};
use crate::rules::prefetching::{Fetched, is_on};
use crate::rules::proposal::{Proposal, proposed};
use crate::rules::r6_cost_models;
use crate::rules::responses::Responses;
use crate::settings::finding::{Finding, Verdict};
use crate::settings::{SettingsFile, View};

/// Holds what R6 proposes unless it pays. Telemetry holds no values: there nothing can be replayed, and what was recorded of
/// the planner has to do.
///
/// # Errors
/// If a data file or the value models do not fit.
pub fn gate(file: &SettingsFile, view: &View<'_>, responses: &mut Responses, findings: &mut [Finding]) -> Result<()> {
    let is_refresh = |finding: &Finding| finding.rule == r6_cost_models::RULE.id && proposed(finding).is_some();
    if !findings.iter().any(is_refresh) {
        return Ok(());
    }
    let reason = if is_on(view) {
        let refreshes: Vec<Finding> = findings.iter().filter(|finding| is_refresh(finding)).cloned().collect();
        let changed = SettingsFile::parse(&file.path, &Proposal::new(file, refreshes, &responses.annotations)?.text)?;
        responses.fetched(file)?.zip(responses.fetched(&changed)?).and_then(|(now, then)| why_not(&now, &then))
    } else {
        Some("no effect: `enrichment.enabled` is false, so that nothing is called ahead with it".to_owned())
    };
    for finding in findings.iter_mut().filter(|finding| is_refresh(finding)) {
        if let (Some(reason), Some(delta)) = (&reason, proposed(finding)) {
            finding.verdict = Verdict::Hold(format!("`{}`: {reason}", delta.key));
        }
    }
    Ok(())
}

/// Why the planner is not better off with other numbers; none if it is.
fn why_not(now: &Fetched, then: &Fetched) -> Option<String> {
    let words = |fetched: &Fetched| {
        let (overruns, known) = fetched.overruns;
        format!(
            "{} of {} calls ahead spared one, {} of the known answers were larger than foreseen",
            thousands(fetched.won),
            thousands(fetched.sent),
            percent(overruns as f64 / known.max(1) as f64)
        )
    };
    let overrun = |fetched: &Fetched| fetched.overruns.0 as f64 / fetched.overruns.1.max(1) as f64;
    let told = || format!("{}; with all of R6 {}", words(now), words(then));
    if then.net() < now.net() || then.net() == now.net() && overrun(then) > overrun(now) {
        return Some(format!("loses on the later sessions: {}", told()));
    }
    (then.net() == now.net() && overrun(then) >= overrun(now))
        .then(|| format!("no effect on the later sessions: {}", told()))
}
