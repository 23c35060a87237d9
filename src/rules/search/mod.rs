//! `tune search`: the few changes of a configuration that save most, looked for in earlier sessions and judged on later ones.
//! The search is greedy: of all values of all keys the one that saves most is taken, then the best beside it. What comes out is
//! a path of few changes, not an optimum of forty.

mod report;
mod space;

use serde::{Deserialize, Serialize};

use crate::base::bootstrap::{Resampling, sum_interval};
use crate::base::data::fitting;
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::logs::trace::Millis;
use crate::replay::reach::Reach;
use crate::replay::{ReplayOptions, Scenario, SessionTape, SessionTokens, Tape};
use crate::rules::search::space::{ChosenStep, SearchKey, SearchPath, SearchSpaceWalk};
use crate::settings::entries::Predicted;
use crate::settings::{Settings, SettingsFile, what_if};

pub use report::{RULE, findings, sentence, steps, tables};

/// Name of the sheet.
pub const SHEET: &str = "search.toml";

/// The sheet `rules/search.toml`, which explains its numbers.
#[derive(Clone, Debug, Deserialize)]
pub struct SearchThresholds {
    blocks: usize,
    train_blocks: usize,
    steps_max: usize,
    endpoints_max: usize,
    gain_percent_min: f64,
    false_step_percent: f64,
    resampling: Resampling,
    knob: Vec<SearchKey>,
}

impl SearchThresholds {
    /// Reads the sheet; `place` is where it stands, for messages.
    pub fn parse(text: &str, place: &str) -> Result<Self> {
        let thresholds: Self = fitting(text, place)?;
        let odd = |what: &str| Err(Error::failed(format!("{place}: {what}")));
        if thresholds.train_blocks == 0 || thresholds.train_blocks >= thresholds.blocks {
            return odd("train_blocks must be at least 1 and less than blocks");
        }
        if thresholds.steps_max == 0 {
            return odd("steps_max must be at least 1");
        }
        if !(thresholds.false_step_percent > 0.0 && thresholds.false_step_percent < 100.0) {
            return odd("false_step_percent must lie between 0 and 100");
        }
        Ok(thresholds)
    }

    /// What an interval leaves out on either side when as many steps are looked at as a path may have.
    fn tail(&self) -> f64 {
        self.false_step_percent / 100.0 / 2.0 / self.steps_max as f64
    }
}

/// What is searched.
pub struct SearchInput<'a> {
    /// The configuration from which the path starts.
    pub file: &'a SettingsFile,
    pub tape: &'a Tape,
    /// First record of each session of the tape.
    pub began: &'a [Millis],
    /// Who runs the pipeline.
    pub reach: &'a Reach,
    pub thresholds: &'a SearchThresholds,
    /// Least later sessions that a step is judged on: of fewer one would decide.
    pub later_min: usize,
    /// Why a key may not be written; such keys are not tried.
    pub closed: &'a (dyn Fn(&KeyPath) -> Option<String> + Sync),
    /// Whether to go on; asked before each step.
    pub goes_on: &'a (dyn Fn() -> bool + Sync),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Search {
    /// Sessions in which the path was looked for.
    pub earlier: SearchSessions,
    pub later: SearchSessions,
    /// Whether they are enough for that; else nothing was looked for.
    pub is_judged: bool,
    /// Values that were tried at each step.
    pub candidates: u64,
    /// Keys that were not tried, since they may not be written.
    pub closed: Vec<ClosedKey>,
    /// Replays of a value.
    pub looks: u64,
    /// The steps, each beside those before. The last one may not hold.
    pub steps: Vec<PathStep>,
    /// All steps that hold together.
    pub together: Judged,
    /// The same search as if it had been made earlier: what it found, and what came.
    pub folds: Vec<Fold>,
    /// How tokens are counted, in words.
    pub tokens: String,
    /// Whether the time was up before the end.
    pub stopped: bool,
}

/// A key that may not be written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClosedKey {
    /// The key, spelled as in TOML.
    pub key: String,
    pub reason: String,
}

/// Some sessions under the configuration as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SearchSessions {
    pub sessions: u64,
    /// Tokens of their tool results.
    pub baseline_tokens: i64,
    pub saved_tokens: i64,
}

/// What a change saves more, with its interval over sessions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Judged {
    /// Tokens saved more.
    pub tokens: i64,
    /// Lower end of the interval, corrected for the number of steps.
    pub lower: f64,
    pub upper: f64,
}

/// A step of the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathStep {
    /// The key, spelled as in TOML.
    pub key: String,
    /// The value that holds now, as TOML; none if the key is new.
    pub from: Option<String>,
    /// The value that is tried, as TOML.
    pub to: String,
    /// Tokens that it saves more in the earlier sessions.
    pub earlier_tokens: i64,
    /// What it saves more in the later ones.
    pub later: Judged,
    /// Whether that is more than chance.
    pub holds: bool,
}

/// The search as of some day.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fold {
    /// Sessions known then.
    pub known: u64,
    /// Sessions of the next block.
    pub next: u64,
    pub changes: u64,
    /// Tokens that it should have saved more in the next block, by its share of the known ones.
    pub predicted_tokens: f64,
    /// What it did save more there.
    pub actual: Judged,
}

impl Search {
    /// What is written, for the journal: on the later sessions, by whoever runs the pipeline.
    pub fn predicted(&self) -> Predicted {
        let [baseline, saved_before] =
            [self.later.baseline_tokens, self.later.saved_tokens].map(|tokens| tokens as f64);
        Predicted { baseline, saved_before, saved_after: saved_before + self.together.tokens as f64 }
    }
}

impl SearchInput<'_> {
    fn scenario(&self, settings: &Settings) -> Scenario {
        let options = ReplayOptions::arm(false);
        Scenario::new(settings, self.tape, options).within(self.reach, self.tape)
    }

    fn judged(&self, more: &[i64]) -> Judged {
        let values: Vec<f64> = more.iter().map(|&tokens| tokens as f64).collect();
        let (lower, upper) = sum_interval(&values, values.len(), &self.thresholds.resampling, self.thresholds.tail())
            .unwrap_or_default();
        Judged { tokens: more.iter().sum(), lower, upper }
    }

    /// Searches.
    pub fn search(&self) -> Result<Search> {
        let sessions = SessionTape::new(self.tape);
        let now = self.scenario(&what_if(self.file, &[])?);
        let present = sessions.tokens(&now);
        let blocks = self.blocks(&sessions);
        let mut candidates = space::candidates(self.thresholds, self.tape, &now)?;
        let closed = self.take_closed(&mut candidates);
        let walk =
            SearchSpaceWalk { input: self, sessions: &sessions, now: &now, present: &present, candidates: &candidates };
        let (earlier, later) =
            (blocks[..self.thresholds.train_blocks].concat(), blocks[self.thresholds.train_blocks..].concat());
        let is_judged = later.len() >= self.later_min;
        let found = if is_judged { walk.path(&earlier, Some(&later))? } else { SearchPath::default() };
        let mut looks = found.looks;
        let mut folds = Vec::new();
        for known in (1..blocks.len()).filter(|&known| blocks[known].len() >= self.later_min) {
            let (train, next) = (blocks[..known].concat(), &blocks[known]);
            let path = walk.path(&train, None)?;
            looks += path.looks;
            folds.push(self.fold(&walk, &train, next, &path.steps)?);
        }
        let held: Vec<&ChosenStep> = found.steps.iter().filter(|step| step.holds).collect();
        let changes: Vec<_> = held.iter().map(|step| step.change.clone()).collect();
        let together = self.scenario(&what_if(self.file, &changes)?);
        Ok(Search {
            earlier: part(&earlier, &present),
            later: part(&later, &present),
            is_judged,
            candidates: candidates.len() as u64,
            closed,
            looks,
            together: self.judged(&sessions.more(&later, &now, &present, &together)),
            steps: found.steps.iter().map(|chosen| self.step(chosen)).collect(),
            folds,
            tokens: now.counted_by(self.tape),
            stopped: !(self.goes_on)(),
        })
    }

    /// Takes out the candidates whose keys may not be written.
    fn take_closed(&self, candidates: &mut Vec<KeyChange>) -> Vec<ClosedKey> {
        let mut keys: Vec<KeyPath> = candidates.iter().map(|(key, _)| key.clone()).collect();
        keys.dedup();
        let closed: Vec<(KeyPath, String)> =
            keys.into_iter().filter_map(|key| (self.closed)(&key).map(|reason| (key, reason))).collect();
        candidates.retain(|(key, _)| closed.iter().all(|(other, _)| other != key));
        closed.into_iter().map(|(key, reason)| ClosedKey { key: key.to_string(), reason }).collect()
    }

    fn fold(&self, walk: &SearchSpaceWalk<'_>, train: &[usize], next: &[usize], path: &[ChosenStep]) -> Result<Fold> {
        let changes: Vec<_> = path.iter().map(|step| step.change.clone()).collect();
        let scenario = self.scenario(&what_if(self.file, &changes)?);
        let actual = walk.sessions.more(next, walk.now, walk.present, &scenario);
        let found: i64 = walk.sessions.more(train, walk.now, walk.present, &scenario).iter().sum();
        let (known, coming) = (part(train, walk.present), part(next, walk.present));
        Ok(Fold {
            known: known.sessions,
            next: coming.sessions,
            changes: path.len() as u64,
            predicted_tokens: found as f64 / (known.baseline_tokens as f64).max(1.0) * coming.baseline_tokens as f64,
            actual: self.judged(&actual),
        })
    }

    fn step(&self, chosen: &ChosenStep) -> PathStep {
        let (key, to) = &chosen.change;
        let from = self.file.get(key).map(|value| value.to_string().trim().to_owned());
        PathStep {
            key: key.to_string(),
            from,
            to: to.to_string().trim().to_owned(),
            earlier_tokens: chosen.earlier_tokens,
            later: chosen.later.unwrap_or_default(),
            holds: chosen.holds,
        }
    }

    /// Places of sessions by time, cut into blocks with about as many responses each; none is empty unless there are
    /// fewer sessions than blocks.
    fn blocks(&self, sessions: &SessionTape<'_>) -> Vec<Vec<usize>> {
        let sizes: Vec<(u32, usize)> = sessions.sizes().collect();
        let mut order: Vec<usize> = (0..sizes.len()).collect();
        order.sort_by_key(|&place| (self.began.get(sizes[place].0 as usize).copied().unwrap_or_default(), place));
        let all: usize = sizes.iter().map(|(_, responses)| responses).sum();
        let mut blocks = vec![Vec::new(); self.thresholds.blocks];
        let mut before = 0;
        for place in order {
            let block = before * self.thresholds.blocks / all.max(1);
            blocks[block.min(self.thresholds.blocks - 1)].push(place);
            before += sizes[place].1;
        }
        blocks
    }
}

fn part(places: &[usize], present: &[SessionTokens]) -> SearchSessions {
    let tokens = places.iter().map(|&place| &present[place]);
    let (baseline_tokens, saved_tokens) =
        tokens.fold((0, 0), |(baseline, saved), tokens| (baseline + tokens.baseline, saved + tokens.saved));
    SearchSessions { sessions: places.len() as u64, baseline_tokens, saved_tokens }
}

type KeyChange = (KeyPath, toml_edit::Value);
