//! What the rules about settings would have predicted at each week, and what the next weeks realised by the same simulation.

use std::collections::BTreeMap;

use crate::base::backtest::{BacktestNumbers, SessionSplit, cuts};
use crate::base::forecast::{ForecastWeek, SessionEffect};
use crate::logs::trace::Millis;
use crate::rules::statistics::Effects;
use crate::whatif::client::capped::Limit;
use crate::whatif::client::{LeverStudy, LeverValue, SettingSides, Trial};

/// What one lever is asked about: its rule, and which values belong together.
fn question(setting: LeverValue) -> (&'static str, u8) {
    match setting {
        LeverValue::MainTtl(_) => ("S1", 0),
        LeverValue::SubagentTtl(_) => ("S2", 0),
        LeverValue::Window(_) => ("S3", 0),
        LeverValue::Result(Limit::BashChars(_)) => ("S4", 0),
        LeverValue::Result(Limit::McpTokens(_)) => ("S4", 1),
        LeverValue::Result(Limit::ReadTokens(_)) => ("S4", 2),
    }
}

/// The row about the effects of a rule.
pub fn name_of(rule: &str) -> String {
    format!("effects of {rule}")
}

/// Attempts by the name of their row. At each week the value that is cheapest in the first part of what was known, judged on
/// the rest of it.
pub fn attempts(
    study: &LeverStudy,
    earlier_percent: u64,
    numbers: &BacktestNumbers,
    effects: &Effects,
) -> BTreeMap<String, Vec<ForecastWeek>> {
    let mut questions: BTreeMap<(&'static str, u8), Vec<&Trial>> = BTreeMap::new();
    for trial in &study.trials {
        questions.entry(question(trial.setting)).or_default().push(trial);
    }
    let starts: Vec<Millis> = study.sessions.iter().map(|seen| seen.first).collect();
    let mut out: BTreeMap<String, Vec<ForecastWeek>> = BTreeMap::new();
    for cut in cuts(&starts, numbers) {
        let earlier = (cut.known as u64 * earlier_percent / 100) as usize;
        for ((rule, _), trials) in &questions {
            let change = |trial: &&&Trial| total(&trial.sessions[..earlier]);
            let Some(best) = trials.iter().min_by_key(change).filter(|trial| change(trial) < 0) else { continue };
            let until_ms = cut.week_ms + effects.horizon_ms();
            let attempt = attempt(study, best, earlier, cut, until_ms);
            if attempt.known.len().min(attempt.came.len()) >= numbers.later_min {
                out.entry(name_of(rule)).or_default().push(attempt);
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
