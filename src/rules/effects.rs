//! The backtest of effects: at every week the rules speak of what was known, the gate judges it, and what it predicts is
//! compared with the next weeks; so are predictions of the rules about settings, by the same simulation.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::backtest::{
    BacktestNumbers, ForecastWeek, PromiseCoverage, SessionEffect, SessionSplit, coverage, cuts,
};
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::pseudonyms::Pseudonyms;
use crate::logs::trace::Millis;
use crate::replay::reach::reaches;
use crate::replay::savings::{SavedBySession, shares};
use crate::replay::{EffectsBaseline, Scenario};
use crate::rules::claude::{asks_several, paying, question};
use crate::rules::gate::{ProposalGate, negated};
use crate::rules::proposal::settle;
use crate::rules::responses::{LaidOutLog, Responses};
use crate::rules::statistics::{Effects, effects as effect_numbers};
use crate::rules::{REGISTER, Speaks, e1_extended_formats, judge_events, r6_cost_models, statistics};
use crate::settings::entries::{Journal, JournalEntry, SettingsReach};
use crate::settings::finding::{Delta, Finding, Verdict};
use crate::settings::{Effective, Settings, SettingsFile, View, journal_of, reverse, what_if};
use crate::telemetry::log::{EventLog, Start};
use crate::whatif::client::actual::joint_changes;
use crate::whatif::client::thresholds::ClientThresholds;
use crate::whatif::client::{LeverPart, LeverStudy, SettingSides};

/// The name of the row about everything together.
const WHOLE: &str = "effects of R1 to R5 together";

/// How often the effects of the rules about the pipeline came true.
pub fn of_pipeline(
    file: &SettingsFile,
    responses: &Responses,
    pseudonyms: &Pseudonyms,
) -> Result<Vec<PromiseCoverage>> {
    let file = &without_rules(file)?;
    let numbers = statistics::numbers(&responses.data)?.backtest;
    let effects = effect_numbers(&responses.data)?;
    let starts = responses.install(|| responses.log.starts());
    let times: Vec<Millis> = starts.iter().map(|(start, _)| *start).collect();
    let attempts_of = |cut: &SessionSplit| {
        let (known, later) = starts.split_at(cut.known);
        let until_ms = cut.week_ms + effects.horizon_ms();
        let later = &later[..later.partition_point(|(start, _)| *start < until_ms)];
        if later.len() < numbers.later_min {
            return Ok(Vec::new());
        }
        let [known, later] =
            [known, later].map(|starts| responses.log.latest(starts, numbers.responses_max, numbers.known_min));
        Week { file, responses, pseudonyms, cut: *cut, until_ms }.attempts(known, later)
    };
    let weeks = cuts(&times, &numbers);
    let of_weeks: Result<Vec<_>> = responses.install(|| weeks.par_iter().map(attempts_of).collect());
    let mut attempts: BTreeMap<String, Vec<ForecastWeek>> = BTreeMap::new();
    for (name, attempt) in of_weeks?.into_iter().flatten() {
        attempts.entry(name).or_default().push(attempt);
    }
    Ok(responses.install(|| rows(&attempts, &numbers, &effects)))
}

/// The configuration as it was before these rules, and E1, wrote to it: in the weeks of the past nothing of theirs was
/// written. What held them then holds them in the next run, whatever this one writes.
fn without_rules(file: &SettingsFile) -> Result<SettingsFile> {
    let mut file = file.clone();
    if !file.existed {
        return Ok(file);
    }
    let journal = journal_of(&file)?;
    for (entry, standing) in journal.entries.iter().zip(journal.standings()).rev() {
        let mut own = JournalEntry { restore: None, ..entry.clone() };
        own.changes.retain(|change| is_of_pipeline(&change.rule) || change.rule == e1_extended_formats::RULE.id);
        if entry.undoes.is_none() && !standing.is_undone() && !own.changes.is_empty() {
            file = SettingsFile::parse(&file.path, &reverse(&file, &own)?.text)?;
        }
    }
    Ok(file)
}

/// Whether a rule speaks of recorded responses and is judged here. Those of the planner are judged by another replay.
fn is_of_pipeline(id: &str) -> bool {
    id != r6_cost_models::RULE.id && REGISTER.iter().any(|rule| rule.id == id && rule.speaks == Speaks::Events)
}

/// A row for each name.
pub fn rows(
    attempts: &BTreeMap<String, Vec<ForecastWeek>>,
    numbers: &BacktestNumbers,
    effects: &Effects,
) -> Vec<PromiseCoverage> {
    attempts.iter().map(|(name, attempts)| coverage(name, attempts, effects.promise, numbers)).collect()
}

/// Holds what rules propose whose effects did not come true; says whether there was any.
pub fn hold_broken(findings: &mut [Finding], rows: &[PromiseCoverage]) -> bool {
    let mut is_held = false;
    for finding in findings.iter_mut().filter(|finding| finding.proposed().is_some()) {
        let row = rows.iter().find(|row| row.statistic == name_of(finding.rule, &finding.subject));
        if let Some(reason) = row.and_then(PromiseCoverage::broken) {
            finding.verdict = Verdict::Hold(reason);
            is_held = true;
        }
    }
    is_held
}

struct Week<'w> {
    file: &'w SettingsFile,
    responses: &'w Responses,
    pseudonyms: &'w Pseudonyms,
    cut: SessionSplit,
    until_ms: Millis,
}

impl Week<'_> {
    /// What was predicted for the rules, and for all of them, with what came.
    fn attempts(&self, known: &[Start], later: &[Start]) -> Result<Vec<(String, ForecastWeek)>> {
        let log = &self.responses.log;
        let [earlier, judged_on] = self.responses.split(known)?.unwrap_or([known, known]).map(|part| log.part(part));
        let found = self.spoken(&earlier)?;
        let now = Effective::resolve(self.file)?.settings;
        let judged_on = self.responses.laid_out(&judged_on);
        let (_, found) = ProposalGate::pass(self.file, &now, self.responses, &judged_on, found)?;
        let mut rules: BTreeMap<&'static str, Vec<Delta>> = BTreeMap::new();
        for finding in &found {
            if let Some(delta) = finding.proposed() {
                rules.entry(finding.rule).or_default().push(delta.clone());
            }
        }
        if rules.is_empty() {
            return Ok(Vec::new());
        }
        let before = self.effects(&judged_on, &rules)?;
        // They are large, and weeks are judged side by side: one at a time.
        drop(judged_on);
        let later = log.part(later);
        let after = self.effects(&self.responses.laid_out(&later), &rules)?;
        let attempt = |(known, came)| ForecastWeek { week_ms: self.cut.week_ms, until_ms: self.until_ms, known, came };
        let names = rules.keys().map(|rule| name_of(rule, "")).chain([WHOLE.to_owned()]);
        Ok(names.zip(before.into_iter().zip(after).map(attempt)).collect())
    }

    /// What the rules about the pipeline say of some sessions.
    fn spoken(&self, earlier: &EventLog) -> Result<Vec<Finding>> {
        let data = &self.responses.data;
        let view = View::of(self.file)?.knowing(self.responses.tools());
        let observed = self.responses.observe_part(earlier, self.pseudonyms)?;
        let found = judge_events(&observed, &[], data, &view, &[Speaks::Events])?;
        let found = settle(&view, &Default::default(), found);
        Ok(found.into_iter().filter(|finding| is_of_pipeline(finding.rule)).collect())
    }

    fn effects(
        &self,
        LaidOutLog { log, input }: &LaidOutLog<'_>,
        rules: &BTreeMap<&'static str, Vec<Delta>>,
    ) -> Result<Vec<Vec<SessionEffect>>> {
        let settings = |rules: &mut dyn Iterator<Item = &Vec<Delta>>| {
            let changes: Vec<(KeyPath, toml_edit::Value)> =
                rules.flatten().map(|delta| (delta.key.clone(), delta.to.clone())).collect();
            what_if(self.file, &changes)
        };
        let mut cells = rules.values().map(|rule| settings(&mut std::iter::once(rule))).collect::<Result<Vec<_>>>()?;
        cells.push(settings(&mut rules.values())?);
        let Some(all) = reaches(&self.responses.data)?.pop() else { return Ok(Vec::new()) };
        let replay = |now: &Settings, cells: &[Settings]| {
            let scenario = |settings: &Settings| input.scenario(settings).within(&all, &input.skeleton);
            let cells: Vec<Scenario> = cells.iter().map(scenario).collect();
            let found = self.responses.install(|| EffectsBaseline::new(&input.pieces, scenario(now)).effects(&cells));
            found.into_iter().map(Option::unwrap_or_default).collect::<Vec<SavedBySession>>()
        };
        let now = Effective::resolve(self.file)?.settings;
        let mut alone = replay(&now, &cells);
        let whole = alone.pop().unwrap_or_default();
        let together = cells.pop().unwrap_or(now);
        let without = |left_out: &&'static str| {
            settings(&mut rules.iter().filter(|(rule, _)| *rule != left_out).map(|(_, deltas)| deltas))
        };
        let cells = rules.keys().map(without).collect::<Result<Vec<_>>>()?;
        let last = replay(&together, &cells);
        let last: Vec<SavedBySession> = last.into_iter().map(negated).collect();
        let mut effects = shares(&alone, &last, &whole);
        effects.push(whole);
        let mut baseline = SavedBySession::new();
        for event in &log.events {
            *baseline.entry(event.session).or_default() += event.weight * f64::from(event.baseline);
        }
        let parts = |effect: &SavedBySession| {
            let part = |(session, of): (&u32, &f64)| SessionEffect {
                effect: effect.get(session).copied().unwrap_or(0.0),
                of: *of,
            };
            baseline.iter().map(part).collect()
        };
        Ok(effects.iter().map(parts).collect())
    }
}

/// The row about the effects of what a rule says of a subject: one for each of its questions.
pub fn name_of(rule: &str, subject: &str) -> String {
    if asks_several(rule) { format!("effects of {rule}, {subject}") } else { format!("effects of {rule}") }
}

/// When Claude Code's settings were changed that reach some of the same sessions, and for which requests.
pub fn changed(journal: &Journal, reach: SettingsReach) -> Vec<(Millis, LeverPart)> {
    let is_near = |own: SettingsReach| own == SettingsReach::All || own == reach || reach == SettingsReach::All;
    let entries = journal.entries.iter().filter(|entry| entry.is_about_claude() && entry.reach.is_none_or(is_near));
    let times = entries.flat_map(|entry| joint_changes(entry, journal).into_iter().map(|one| (entry.at_ms, one.part)));
    times.collect()
}

/// Attempts by the name of their row. At each week what the rules would have written then, as they told it of the sessions that they
/// judged it on, beside what is set now. What was `changed` between that and what came is not judged: what came is not what was
/// forecast then.
pub fn attempts(
    study: &LeverStudy,
    data: &Data,
    numbers: &BacktestNumbers,
    changed: &[(Millis, LeverPart)],
) -> Result<BTreeMap<String, Vec<ForecastWeek>>> {
    let effects = effect_numbers(data)?;
    let split = ClientThresholds::load(data)?.split;
    let starts: Vec<Millis> = study.sessions.iter().map(|seen| seen.first).collect();
    let mut out: BTreeMap<String, Vec<ForecastWeek>> = BTreeMap::new();
    for cut in cuts(&starts, numbers) {
        let until_ms = cut.week_ms + effects.horizon_ms();
        let coming = starts[cut.known..].iter().take_while(|start| **start < until_ms).count();
        let known = study.until(cut.known, cut.week_ms, &split);
        let judged = known.sessions.iter().find(|seen| seen.is_earlier == Some(false));
        let judged_from = judged.map_or(cut.week_ms, |seen| seen.first);
        for setting in paying(&known, &numbers.resampling, data)? {
            let part = setting.part();
            let is_changed = changed.iter().any(|(at, of)| (judged_from..until_ms).contains(at) && part.meets(*of));
            let tried = (question(setting), known.trial(setting), study.trial(setting));
            let (Some((rule, subject)), Some(then), Some(trial)) = tried else { continue };
            let told = known.concerned(&then.sessions, false).map(|(_, sides)| sides);
            let attempt = ForecastWeek {
                week_ms: cut.week_ms,
                until_ms,
                known: parts(told),
                came: parts(trial.sessions[cut.known..cut.known + coming].iter().map(|kept| (*kept).into())),
            };
            if !is_changed && attempt.known.len().min(attempt.came.len()) >= numbers.later_min {
                out.entry(name_of(rule, subject)).or_default().push(attempt);
            }
        }
    }
    Ok(out)
}

/// The sessions that a lever concerns.
fn parts(sessions: impl Iterator<Item = SettingSides>) -> Vec<SessionEffect> {
    let concerned = sessions.filter(|sides| sides.before.units > 0);
    concerned.map(|sides| SessionEffect { effect: difference(&sides) as f64, of: sides.before.units as f64 }).collect()
}

fn difference(sides: &SettingSides) -> i128 {
    sides.after.units as i128 - sides.before.units as i128
}
