//! What one person adds: the calls of each finished week that count, what they add up to, and what other settings would have
//! cost.

use std::collections::{BTreeMap, BTreeSet};

use jiff::civil::Date;

use crate::base::id::Id;
use crate::fleet::counting::{self, Cells, counts};
use crate::fleet::light::calls;
use crate::fleet::limits::FleetLimits;
use crate::fleet::measure::{LOG_TOKENS, POLICY_TOKENS, SESSIONS, WHAT_IF};
use crate::fleet::naming::FleetNaming;
use crate::fleet::weeks;
use crate::frames::contribution::{Contribution, Count, CountSubject};
use crate::frames::light::LightCall;
use crate::logs::trace::Millis;
use crate::telemetry::log::EventLog;

/// Who shares, when, and within which bounds.
pub struct ShareGuide<'a> {
    /// How names leave.
    pub naming: &'a FleetNaming,
    /// Bounds.
    pub limits: &'a FleetLimits,
    /// Pseudonym of the person.
    pub user: &'a str,
    /// Now.
    pub now_ms: Millis,
}

/// A session under another setting, in input-equivalent tokens.
#[derive(Clone, Debug)]
pub struct Alternative {
    /// Name of the setting.
    pub name: String,
    /// The session.
    pub session: Id,
    /// When it began.
    pub start: Millis,
    /// As it was, simulated.
    pub log: u64,
    /// Under the setting.
    pub policy: u64,
}

/// A week of a person.
pub struct PersonWeek {
    /// What is added to a pool.
    pub contribution: Contribution,
    /// The calls that are counted in it, as they leave.
    pub calls: Vec<LightCall>,
}

/// All weeks that are over. What other settings would have cost stands in the week in which a session began.
pub fn contributions(log: &EventLog, alternatives: &[Alternative], guide: &ShareGuide<'_>) -> Vec<PersonWeek> {
    let week = |(week, calls): (Date, Vec<LightCall>)| {
        let mut counts = counts(&calls, guide.limits);
        counts.extend(what_if(week, alternatives, guide));
        counts.sort();
        let marks: BTreeSet<&String> = calls.iter().map(|call| &call.session).collect();
        let contribution = Contribution {
            user: guide.user.to_owned(),
            week: week.to_string(),
            secret: guide.naming.secret(),
            marks: marks.into_iter().take(guide.limits.marks_max).cloned().collect(),
            counts,
        };
        PersonWeek { contribution, calls }
    };
    calls(log, guide).into_iter().map(week).collect()
}

/// What the sessions of a week would have cost under other settings: as many as count, each up to a bound.
fn what_if(week: Date, alternatives: &[Alternative], guide: &ShareGuide<'_>) -> Vec<Count> {
    let FleetLimits { sessions_max, session_tokens_max, policy_factor_max, .. } = *guide.limits;
    let mut by_name: BTreeMap<&str, Vec<(String, &Alternative)>> = BTreeMap::new();
    for one in alternatives.iter().filter(|one| one.log > 0 && weeks::monday_of(one.start) == Some(week)) {
        by_name.entry(&one.name).or_default().push((guide.naming.mark(&one.session.to_string()), one));
    }
    let mut out = Vec::new();
    for (name, mut sessions) in by_name {
        sessions.sort_by(|(a, _), (b, _)| a.cmp(b));
        sessions.truncate(sessions_max as usize);
        let mut counts = Cells::from([((SESSIONS, 0), sessions.len() as u64)]);
        for (_, one) in sessions {
            let log = one.log.min(session_tokens_max);
            // Scaled down alike, so that the share that is saved stays.
            let policy = (u128::from(one.policy) * u128::from(log) / u128::from(one.log)) as u64;
            *counts.entry((LOG_TOKENS, 0)).or_default() += log;
            *counts.entry((POLICY_TOKENS, 0)).or_default() += policy.min(session_tokens_max * policy_factor_max);
        }
        let subject = CountSubject { kind: WHAT_IF.to_owned(), name: name.to_owned(), ..CountSubject::default() };
        out.extend(counting::rows(&subject, &counts));
    }
    out
}
