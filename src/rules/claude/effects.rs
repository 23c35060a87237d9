//! What the rules about settings would have predicted at each week, and what the next weeks realised by the same simulation.

use std::collections::BTreeMap;

use crate::base::backtest::{BacktestNumbers, SessionSplit, cuts};
use crate::base::forecast::{ForecastWeek, SessionEffect};
use crate::logs::trace::Millis;
use crate::rules::claude::simulated::{asks_several, question};
use crate::rules::statistics::Effects;
use crate::settings::entries::{Journal, SettingsReach};
use crate::whatif::client::joint::joint_changes;
use crate::whatif::client::{LeverPart, LeverStudy, SettingSides, Trial};

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

/// Attempts by the name of their row. At each week the value that is cheapest in the first part of what was known, judged on
/// the rest of it, beside what is set now. What was `changed` between that and what came is not judged: what came is not what was
/// forecast then.
pub fn attempts(
    study: &LeverStudy,
    earlier_percent: u64,
    numbers: &BacktestNumbers,
    effects: &Effects,
    changed: &[(Millis, LeverPart)],
) -> BTreeMap<String, Vec<ForecastWeek>> {
    let mut questions: BTreeMap<(&'static str, &'static str), Vec<&Trial>> = BTreeMap::new();
    for trial in &study.trials {
        if let Some(question) = question(trial.setting) {
            questions.entry(question).or_default().push(trial);
        }
    }
    let starts: Vec<Millis> = study.sessions.iter().map(|seen| seen.first).collect();
    let mut out: BTreeMap<String, Vec<ForecastWeek>> = BTreeMap::new();
    for cut in cuts(&starts, numbers) {
        let earlier = (cut.known as u64 * earlier_percent / 100) as usize;
        let span = starts[earlier]..cut.week_ms + effects.horizon_ms();
        for ((rule, subject), trials) in &questions {
            let change = |trial: &&&Trial| total(&trial.sessions[..earlier]);
            let Some(best) = trials.iter().min_by_key(change).filter(|trial| change(trial) < 0) else { continue };
            let part = best.setting.part();
            let is_changed = changed.iter().any(|(at, of)| span.contains(at) && part.meets(*of));
            let attempt = attempt(study, best, earlier, cut, span.end);
            if !is_changed && attempt.known.len().min(attempt.came.len()) >= numbers.later_min {
                out.entry(name_of(rule, subject)).or_default().push(attempt);
            }
        }
    }
    out
}

fn attempt(study: &LeverStudy, trial: &Trial, earlier: usize, cut: SessionSplit, until_ms: Millis) -> ForecastWeek {
    let later = &trial.sessions[cut.known..];
    let coming = study.sessions[cut.known..].iter().take_while(|seen| seen.first < until_ms).count();
    ForecastWeek {
        week_ms: cut.week_ms,
        until_ms,
        known: parts(&trial.sessions[earlier..cut.known]),
        came: parts(&later[..coming]),
    }
}

/// The sessions that a lever concerns.
fn parts(sessions: &[SettingSides]) -> Vec<SessionEffect> {
    let concerned = sessions.iter().filter(|sides| sides.before.units > 0);
    concerned.map(|sides| SessionEffect { effect: difference(sides) as f64, of: sides.before.units as f64 }).collect()
}

fn total(sessions: &[SettingSides]) -> i128 {
    sessions.iter().map(difference).sum()
}

fn difference(sides: &SettingSides) -> i128 {
    sides.after.units as i128 - sides.before.units as i128
}
