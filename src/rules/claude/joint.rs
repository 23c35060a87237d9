//! What all proposals do as one configuration, and which of them add nothing to the others.

use crate::base::data::Data;
use crate::base::error::Result;
use crate::rules::RuleThresholds;
use crate::rules::claude::judge::{Thresholds, claimed, forecast};
use crate::rules::claude::simulated::setting;
use crate::rules::claude::{REGISTER, SettingsFacts};
use crate::settings::entries::BillForecast;
use crate::settings::finding::{Finding, Verdict};
use crate::whatif::client::{LeverPart, LeverValue, SettingSides};

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
    let told = |settings: &[LeverValue]| forecast(facts.study, facts.resampling, LeverPart::All, &replay(settings));
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
            let sheet = sheet_of(&findings[place], data)?;
            let adds = rest.of_bill - whole.of_bill;
            let is_least = idle.as_ref().is_none_or(|(least, other, _)| {
                adds.total_cmp(least).then_with(|| worth(&findings[place]).total_cmp(&worth(&findings[*other]))).is_lt()
            });
            if 100.0 * adds < sheet.thresholds::<Thresholds>()?.of_bill_percent_min && is_least {
                idle = Some((adds, place, sheet.cite("of_bill_percent_min")));
            }
        }
        let Some((adds, place, cite)) = idle else {
            return Ok(Some(claimed(facts.study, &settings(None), &replay(&settings(None)), whole)));
        };
        let percent = 100.0 * adds.max(0.0);
        let reason = format!("no effect beside the others: it adds {percent:.2} % of the whole bill ({cite})");
        findings[place].verdict = Verdict::Hold(reason);
    }
}

/// What a proposal saves of the bill by itself; less than that if it breaks anything.
fn worth(finding: &Finding) -> f64 {
    finding.forecast.as_ref().map_or(0.0, |told| -told.of_bill / (1.0 + told.hard_breaks + told.soft_breaks))
}

fn sheet_of(finding: &Finding, data: &Data) -> Result<RuleThresholds> {
    let rule = REGISTER.iter().find(|rule| rule.id == finding.rule);
    RuleThresholds::of(rule.map_or("", |rule| rule.file), data)
}
