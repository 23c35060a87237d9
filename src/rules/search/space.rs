//! Which values of which keys are tried, and the greedy walk through them. Every value is replayed again at each step: one that
//! saves nothing by itself (the wording of hints) may save beside another (more hints).

use std::collections::BTreeMap;

use rayon::prelude::*;
use serde::Deserialize;
use toml_edit::Value;

use crate::base::bootstrap::sum_interval;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::replay::{Scenario, SessionTape, SessionTokens, Tape};
use crate::rules::search::{Judged, KeyChange, SearchInput, SearchThresholds};
use crate::settings::annotations::is_plain_name;
use crate::settings::what_if;

/// What stands in a key for each of the endpoints.
const ENDPOINT: &str = "<endpoint>";

/// A key and the values that are tried.
#[derive(Clone, Debug, Deserialize)]
pub struct SearchKey {
    key: String,
    values: Values,
}

/// Values of one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "values have to be a list of one kind: yes or no, numbers, or words")]
enum Values {
    Switches(Vec<bool>),
    Counts(Vec<i64>),
    Shares(Vec<f64>),
    Words(Vec<String>),
}

impl Values {
    fn values(&self) -> Vec<Value> {
        match self {
            Self::Switches(all) => all.iter().map(|&one| Value::from(one)).collect(),
            Self::Counts(all) => all.iter().map(|&one| Value::from(one)).collect(),
            Self::Shares(all) => all.iter().map(|&one| Value::from(one)).collect(),
            Self::Words(all) => all.iter().map(|one| Value::from(one.as_str())).collect(),
        }
    }
}

/// Every single change, in the order of the sheet.
pub fn candidates(thresholds: &SearchThresholds, tape: &Tape, now: &Scenario) -> Result<Vec<KeyChange>> {
    let endpoints = endpoints(thresholds, tape, now);
    let mut candidates = Vec::new();
    for knob in &thresholds.knob {
        let key: KeyPath = knob.key.parse()?;
        let keys = if key.0.iter().any(|part| part == ENDPOINT) {
            endpoints.iter().map(|name| named(&key, name)).collect()
        } else {
            vec![key]
        };
        candidates
            .extend(keys.iter().flat_map(|key| knob.values.values().into_iter().map(|value| (key.clone(), value))));
    }
    Ok(candidates)
}

fn named(key: &KeyPath, endpoint: &str) -> KeyPath {
    KeyPath(key.0.iter().map(|part| if part == ENDPOINT { endpoint.to_owned() } else { part.clone() }).collect())
}

/// The endpoints with the most tokens among those that may be changed and that a configuration can name.
fn endpoints(thresholds: &SearchThresholds, tape: &Tape, now: &Scenario) -> Vec<String> {
    let mut tokens: BTreeMap<String, u64> = BTreeMap::new();
    for response in tape.responses.iter().filter(|response| now.reaches(response)) {
        let counting = &now.session(response).counting;
        *tokens.entry(tape.endpoints[response.endpoint as usize].name()).or_default() +=
            counting.tokens(&response.body_at_hand.raw);
    }
    let mut endpoints: Vec<(u64, String)> =
        tokens.into_iter().filter(|(name, _)| is_plain_name(name)).map(|(name, tokens)| (tokens, name)).collect();
    endpoints.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    endpoints.truncate(thresholds.endpoints_max);
    endpoints.into_iter().map(|(_, name)| name).collect()
}

/// What is walked through.
pub struct SearchSpaceWalk<'a> {
    pub input: &'a SearchInput<'a>,
    pub sessions: &'a SessionTape<'a>,
    pub now: &'a Scenario,
    pub present: &'a [SessionTokens],
    /// Every single change.
    pub candidates: &'a [KeyChange],
}

/// A path and what it took.
#[derive(Default)]
pub struct SearchPath {
    pub steps: Vec<ChosenStep>,
    /// Replays of a value.
    pub looks: u64,
}

/// A step.
pub struct ChosenStep {
    pub change: KeyChange,
    /// Tokens that it saves more in the sessions that it was looked for in.
    pub earlier_tokens: i64,
    /// What it saves more in later ones, where it was judged.
    pub later: Option<Judged>,
    /// Whether that is more than chance, as far as it was judged.
    pub holds: bool,
}

/// Where a walk stands.
struct Reached {
    changes: Vec<KeyChange>,
    scenario: Scenario,
    /// What it saves, session by session.
    tokens: Vec<SessionTokens>,
}

/// A candidate at one step: its place, and what it saves more, session by session.
type TriedCandidate = (usize, Vec<i64>);

impl SearchSpaceWalk<'_> {
    /// The path through these sessions; with later sessions each step is judged on them, and the first that does not hold
    /// ends the path.
    pub fn path(&self, train: &[usize], later: Option<&[usize]>) -> Result<SearchPath> {
        let thresholds = self.input.thresholds;
        let baseline: i64 = train.iter().map(|&place| self.present[place].baseline).sum();
        let least = ((baseline as f64 * thresholds.gain_percent_min / 100.0).ceil() as i64).max(1);
        let mut open: Vec<usize> = (0..self.candidates.len()).collect();
        let mut path = SearchPath::default();
        let mut reached = Reached { changes: Vec::new(), scenario: self.now.clone(), tokens: self.present.to_vec() };
        while path.steps.len() < thresholds.steps_max && (self.input.goes_on)() {
            path.looks += open.len() as u64;
            let Some((best, more)) = self.best(train, &reached, least, &open)? else { break };
            let next = self.with(&reached, best)?;
            let at_later = |later| self.sessions.more(later, &reached.scenario, &reached.tokens, &next);
            let judged = later.map(|later| self.input.judged(&at_later(later)));
            let (change, earlier_tokens) = (self.candidates[best].clone(), more.iter().sum());
            let holds = judged.is_none_or(|judged| judged.lower > 0.0);
            path.steps.push(ChosenStep { change: change.clone(), earlier_tokens, later: judged, holds });
            if !holds {
                break;
            }
            open.retain(|&at| self.candidates[at].0 != change.0);
            reached.changes.push(change);
            reached.tokens = self.sessions.tokens(&next);
            reached.scenario = next;
        }
        Ok(path)
    }

    /// The configuration reached, with one candidate more.
    fn with(&self, reached: &Reached, candidate: usize) -> Result<Scenario> {
        let changes: Vec<KeyChange> = reached.changes.iter().chain([&self.candidates[candidate]]).cloned().collect();
        Ok(self.input.scenario(&what_if(self.input.file, &changes)?))
    }

    /// The candidate that saves most beside what was changed so far, of those that save enough and in more than a few
    /// sessions; of equal ones the first.
    fn best(&self, train: &[usize], reached: &Reached, least: i64, open: &[usize]) -> Result<Option<TriedCandidate>> {
        let replay = |&at: &usize| -> Result<TriedCandidate> {
            let scenario = self.with(reached, at)?;
            Ok((at, self.sessions.more(train, &reached.scenario, &reached.tokens, &scenario)))
        };
        let mut tried = open.par_iter().map(replay).collect::<Result<Vec<TriedCandidate>>>()?;
        tried.sort_by_key(|(at, more)| (std::cmp::Reverse(more.iter().sum::<i64>()), *at));
        let enough = tried.into_iter().take_while(|(_, more)| more.iter().sum::<i64>() >= least);
        Ok(enough.into_iter().find(|(_, more)| self.is_steady(more)))
    }

    /// Whether other sessions of the same kind would speak for it, too.
    fn is_steady(&self, more: &[i64]) -> bool {
        let values: Vec<f64> = more.iter().map(|&tokens| tokens as f64).collect();
        let share = self.input.thresholds.false_step_percent / 100.0 / 2.0;
        sum_interval(&values, values.len(), &self.input.thresholds.resampling, share)
            .is_some_and(|(lower, _)| lower > 0.0)
    }
}
