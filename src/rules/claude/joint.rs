//! What all proposals do as one configuration, and which of them add nothing to the others.

use std::collections::BTreeMap;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::rules::claude::judge::{Thresholds, forecast};
use crate::rules::claude::simulated::setting;
use crate::rules::claude::{SettingsFacts, sheet_of};
use crate::settings::entries::BillForecast;
use crate::settings::finding::{Finding, Verdict};
use crate::whatif::client::{LeverStudy, LeverValue, SettingSides};

/// Holds one proposal after the other without which the rest saves as much, and says what the rest does; none of a single
/// proposal. `replay` tries several settings as one configuration.
///
/// # Errors
/// If a sheet does not fit.
pub fn settle(
    facts: &SettingsFacts<'_>,
    findings: &mut [Finding],
    data: &Data,
    replay: impl Fn(&[LeverValue]) -> Vec<SettingSides>,
) -> Result<Option<BillForecast>> {
    let told = |settings: &[LeverValue]| {
        forecast(facts.study, facts.resampling, settings, &reached(facts.study, settings, &replay))
    };
    loop {
        let proposals: Vec<(usize, LeverValue)> =
            (0..).zip(&*findings).filter_map(|(place, finding)| Some((place, setting(finding)?))).collect();
        if proposals.len() < 2 {
            return Ok(None);
        }
        let settings = |without: Option<usize>| -> Vec<LeverValue> {
            proposals.iter().filter(|(place, _)| Some(*place) != without).map(|(_, setting)| *setting).collect()
        };
        let Some(whole) = told(&settings(None)) else { return Ok(None) };
        let mut idle: Option<(f64, usize, String)> = None;
        for &(place, _) in &proposals {
            let Some(rest) = told(&settings(Some(place))) else { continue };
            let sheet = sheet_of(findings[place].rule, data)?;
            let adds = rest.of_bill - whole.of_bill;
            let is_least = idle.as_ref().is_none_or(|(least, other, _)| {
                adds.total_cmp(least).then_with(|| worth(&findings[place]).total_cmp(&worth(&findings[*other]))).is_lt()
            });
            if 100.0 * adds < sheet.thresholds::<Thresholds>()?.of_bill_percent_min && is_least {
                idle = Some((adds, place, sheet.cite("of_bill_percent_min")));
            }
        }
        let Some((adds, place, cite)) = idle else { return Ok(Some(whole)) };
        let percent = 100.0 * adds.max(0.0);
        let reason = format!("no effect beside the others: it adds {percent:.2} % of the whole bill ({cite})");
        findings[place].verdict = Verdict::Hold(reason);
    }
}

/// What a proposal saves of the bill by itself; less than that if it breaks anything.
fn worth(finding: &Finding) -> f64 {
    finding.forecast.as_ref().map_or(0.0, |told| -told.of_bill / (1.0 + told.hard_breaks + told.soft_breaks))
}

/// Both sides of some settings, session by session: in a project that sets some of the levers itself, only the others change
/// anything.
fn reached(
    study: &LeverStudy,
    settings: &[LeverValue],
    replay: impl Fn(&[LeverValue]) -> Vec<SettingSides>,
) -> Vec<SettingSides> {
    let mut replayed: BTreeMap<Vec<LeverValue>, Vec<SettingSides>> = BTreeMap::new();
    let mut of_session = |place: usize, settings: Vec<LeverValue>| match settings.is_empty() {
        true => SettingSides::default(),
        false => replayed.entry(settings).or_insert_with_key(|settings| replay(settings))[place],
    };
    let sessions = study.sessions.iter().enumerate();
    sessions.map(|(place, seen)| of_session(place, study.reaching(settings, seen.project))).collect()
}
