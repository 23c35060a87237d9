//! Several proposals as one configuration: which of them add nothing to the others, which values are best beside each other,
//! and what that does.

use std::collections::BTreeMap;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::replay::savings::{SavedBySession, shares, total};
use crate::rules::claude::judge::{Thresholds, as_toml, forecast, of_trial, plain};
use crate::rules::claude::simulated::{question_of, setting};
use crate::rules::claude::{SettingsFacts, sheet_of};
use crate::settings::claude::levers::Lever;
use crate::settings::entries::{BesideOthers, BillForecast};
use crate::settings::finding::{Delta, Evidence, Finding, Verdict};
use crate::whatif::client::{KeptSides, LeverStudy, LeverValue, SettingSides, Trial};

/// How often values are chosen anew: they could take turns for ever.
const TURNS_MAX: u32 = 3;

/// Replays several settings as one configuration, session by session; each configuration once.
struct Configurations<'a, F> {
    study: &'a LeverStudy,
    replay: F,
    replayed: BTreeMap<Vec<LeverValue>, Vec<KeptSides>>,
}

impl<F: Fn(&[LeverValue]) -> Vec<KeptSides>> Configurations<'_, F> {
    /// Both sides of some settings: in a project that sets some of the levers itself, only the others change anything.
    fn sides(&mut self, settings: &[LeverValue]) -> Vec<KeptSides> {
        let study = self.study;
        let mut of_session = |place: usize, settings: Vec<LeverValue>| match settings.is_empty() {
            true => KeptSides::default(),
            false => self.replayed.entry(settings).or_insert_with_key(|settings| (self.replay)(settings))[place],
        };
        let sessions = study.sessions.iter().enumerate();
        sessions.map(|(place, seen)| of_session(place, study.reaching(settings, seen.project))).collect()
    }
}

/// What is proposed, by its place among the findings.
fn proposals(findings: &[Finding]) -> Vec<(usize, LeverValue)> {
    (0..).zip(findings).filter_map(|(place, finding)| Some((place, setting(finding)?))).collect()
}

/// The settings that stand once what is proposed is written.
pub fn with_proposed(standing: &[LeverValue], findings: &[Finding]) -> Vec<LeverValue> {
    let proposed: Vec<LeverValue> = proposals(findings).into_iter().map(|(_, setting)| setting).collect();
    let is_kept = |stands: &&LeverValue| !proposed.iter().any(|setting| setting.is_of_lever(**stands));
    standing.iter().filter(is_kept).chain(&proposed).copied().collect()
}

/// Adds what is proposed `beside` the proposals and was not before, each with its effect by itself; says whether there was any.
pub fn add_beside(facts: &SettingsFacts<'_>, findings: &mut [Finding], beside: Vec<Finding>) -> bool {
    let mut is_added = false;
    for (finding, mut other) in findings.iter_mut().zip(beside) {
        let Some(added) = setting(&other).filter(|_| matches!(finding.verdict, Verdict::Hold(_) | Verdict::Skip(_)))
        else {
            continue;
        };
        let alone = facts.study.trials.iter().find(|trial| trial.setting == added);
        other.forecast = alone.and_then(|trial| of_trial(facts.study, facts.resampling, trial));
        other.evidence.counts += "; tried beside the other proposals: by itself it is not proposed";
        *finding = other;
        is_added = true;
    }
    is_added
}

/// Holds one proposal after the other without which the rest saves as much, chooses the values of the rest as parts of one
/// configuration, and says what that does; none where a single one is left. `replay` tries several settings at once.
pub fn settle(
    facts: &SettingsFacts<'_>,
    findings: &mut [Finding],
    data: &Data,
    replay: impl Fn(&[LeverValue]) -> Vec<KeptSides>,
) -> Result<Option<BillForecast>> {
    let mut tried = Configurations { study: facts.study, replay, replayed: BTreeMap::new() };
    // What each would be by itself.
    let judged = findings.to_vec();
    let mut turns = TURNS_MAX;
    loop {
        let mut told =
            |settings: &[LeverValue]| forecast(facts.study, facts.resampling, settings, &tried.sides(settings));
        let proposals = proposals(findings);
        if proposals.len() < 2 {
            proposals.iter().for_each(|(place, _)| findings[*place] = judged[*place].clone());
            return Ok(None);
        }
        let settings = |without: Option<usize>| -> Vec<LeverValue> {
            proposals.iter().filter(|(place, _)| Some(*place) != without).map(|(_, setting)| *setting).collect()
        };
        let Some(whole) = told(&settings(None)) else { return Ok(None) };
        let mut idle: Option<(f64, usize, String)> = None;
        let mut lasts = Vec::new();
        for &(place, _) in &proposals {
            let Some(rest) = told(&settings(Some(place))) else { continue };
            let sheet = sheet_of(findings[place].rule, data)?;
            let adds = rest.of_bill - whole.of_bill;
            lasts.push((place, -adds));
            let is_least = idle.as_ref().is_none_or(|(least, other, _)| {
                adds.total_cmp(least).then_with(|| worth(&findings[place]).total_cmp(&worth(&findings[*other]))).is_lt()
            });
            if 100.0 * adds < sheet.thresholds::<Thresholds>()?.of_bill_percent_min && is_least {
                idle = Some((adds, place, sheet.cite("of_bill_percent_min")));
            }
        }
        let Some((adds, place, cite)) = idle else {
            turns -= 1;
            if turns > 0 && choose_together(facts, findings, &judged, &mut |settings| tried.sides(settings)) {
                continue;
            }
            if hold_what_the_best_does_alone(findings, &judged, &whole) {
                return Ok(None);
            }
            share_out(findings, &lasts, &whole);
            return Ok(Some(whole));
        };
        let percent = 100.0 * adds.max(0.0);
        let reason = format!("no effect beside the others: it adds {percent:.2} % of the whole bill ({cite})");
        findings[place] = Finding { verdict: Verdict::Hold(reason), ..judged[place].clone() };
    }
}

/// Gives each proposal its share of the whole. `lasts` are what each adds as the last one, of the whole bill, by its place.
fn share_out(findings: &mut [Finding], lasts: &[(usize, f64)], whole: &BillForecast) {
    let one = |of_bill: f64| BTreeMap::from([(0, of_bill)]);
    let alone = |&(place, _): &(usize, f64)| one(findings[place].forecast.as_ref().map_or(0.0, |told| told.of_bill));
    let alone: Vec<SavedBySession> = lasts.iter().map(alone).collect();
    let last: Vec<SavedBySession> = lasts.iter().map(|(_, last)| one(*last)).collect();
    for (&(place, last_of_bill), share) in lasts.iter().zip(shares(&alone, &last, &one(whole.of_bill))) {
        let of_bill = total(&share);
        let usd = whole.usd.filter(|_| whole.of_bill != 0.0).map(|usd| usd * of_bill / whole.of_bill);
        if let Some(told) = &mut findings[place].forecast {
            told.beside = Some(BesideOthers { of_bill, usd, last_of_bill });
        }
    }
}

/// Where several settings together save less than the best of them by itself, as it was `judged`, only that one is proposed;
/// says whether it is so.
fn hold_what_the_best_does_alone(all: &mut [Finding], judged: &[Finding], together: &BillForecast) -> bool {
    let of_bill = |place: usize| {
        let is_proposed = all[place].proposed().is_some();
        let alone = judged[place].forecast.as_ref().filter(|_| is_proposed);
        alone.map_or(f64::INFINITY, |forecast| forecast.of_bill)
    };
    let Some(best) = (0..all.len()).min_by(|&a, &b| of_bill(a).total_cmp(&of_bill(b))) else {
        return false;
    };
    if of_bill(best) >= together.of_bill {
        return false;
    }
    all[best] = judged[best].clone();
    let subject = all[best].subject.clone();
    for (place, finding) in all.iter_mut().enumerate() {
        if place != best && finding.proposed().is_some() {
            let reason = format!("together with {subject} it saves less than that alone");
            *finding = Finding { verdict: Verdict::Hold(reason), ..judged[place].clone() };
        }
    }
    true
}

/// Chooses the value of each proposal anew beside the others, on the earlier sessions: what is best by itself need not be
/// best beside another change. `judged` is what each would be by itself. Says whether another value was chosen.
fn choose_together(
    facts: &SettingsFacts<'_>,
    findings: &mut [Finding],
    judged: &[Finding],
    tried: &mut dyn FnMut(&[LeverValue]) -> Vec<KeptSides>,
) -> bool {
    let proposals = proposals(findings);
    let mut settings: Vec<LeverValue> = proposals.iter().map(|(_, setting)| *setting).collect();
    let mut is_changed = false;
    for (at, (place, current)) in proposals.into_iter().enumerate() {
        let candidates = revalued(facts, &judged[place]);
        let others = tried(&[&settings[..at], &settings[at + 1..]].concat());
        let mut beside = |setting: LeverValue| {
            settings[at] = setting;
            let beyond =
                |(all, others): (KeptSides, &KeptSides)| SettingSides::from(all).beyond(&(*others).into()).into();
            let sessions = tried(&settings).into_iter().zip(&others).map(beyond).collect();
            Trial { setting, compacts_at: None, sessions, by_model: Vec::new() }
        };
        let trials: Vec<Trial> = candidates.iter().map(|(setting, _)| beside(*setting)).collect();
        let best = facts.study.chosen(&trials).filter(|(change, _)| *change < 0.0);
        let best = best.map_or(current, |(_, best)| best.setting);
        settings[at] = best;
        if let Some((_, other)) = candidates.into_iter().find(|(setting, _)| *setting == best && best != current) {
            findings[place] = other;
            is_changed = true;
        }
    }
    is_changed
}

/// A proposal with each value that was tried of its lever, what stands already left out.
fn revalued(facts: &SettingsFacts<'_>, finding: &Finding) -> Vec<(LeverValue, Finding)> {
    let (Some(question), Some(delta)) = (question_of(finding), finding.proposed()) else { return Vec::new() };
    let is_meant = |lever: &&Lever| lever.key(None).as_ref() == Some(&delta.key);
    let Some(lever) = question.levers.iter().filter_map(|name| facts.levers.named(name)).find(is_meant) else {
        return Vec::new();
    };
    let current = setting(finding);
    let with = |trial: &Trial| {
        let value = trial.setting.value();
        let to = as_toml(&lever.spelled(&value));
        let is_other =
            lever.check(&value).is_ok() && delta.from.as_ref().map(ToString::to_string) != Some(to.to_string());
        let forecast = of_trial(facts.study, facts.resampling, trial).filter(|_| is_other)?;
        let mut counts = finding.evidence.counts.clone();
        if Some(trial.setting) != current {
            counts += &format!("; beside the other changes {} is the one to choose", plain(&value));
        }
        let evidence = Evidence { counts, ..finding.evidence.clone() };
        let verdict = Verdict::Propose(Delta { to, ..delta.clone() });
        Some((trial.setting, Finding { forecast: Some(forecast), verdict, evidence, ..finding.clone() }))
    };
    question.trials(facts.study).into_iter().filter_map(with).collect()
}

/// What a proposal saves of the bill by itself; less than that if it breaks anything.
fn worth(finding: &Finding) -> f64 {
    finding.forecast.as_ref().map_or(0.0, |told| -told.of_bill / (1.0 + told.hard_breaks + told.soft_breaks))
}
