//! The greedy walk: the change that saves most, then the one that saves most beside it, and so on.
//!
//! A value that saved little beside fewer changes seldom saves more beside more of them, so that only those are replayed
//! again that could still be the best (lazy greedy, Minoux 1978).

use rayon::prelude::*;

use crate::base::bootstrap::sum_interval;
use crate::base::error::Result;
use crate::replay::Scenario;
use crate::replay::by_session::{BySession, Tokens};
use crate::rules::search::{Change, Ground, Judged};
use crate::settings::what_if;

/// What is walked through.
pub struct Walk<'a> {
    /// What is searched.
    pub ground: &'a Ground<'a>,
    /// Its sessions.
    pub sessions: &'a BySession<'a>,
    /// The configuration as it is.
    pub now: &'a Scenario,
    /// What it saves.
    pub present: &'a [Tokens],
    /// Every single change.
    pub candidates: &'a [Change],
}

/// A path and what it took.
#[derive(Default)]
pub struct Path {
    /// Its steps.
    pub steps: Vec<Chosen>,
    /// Replays of a value.
    pub looks: u64,
}

/// A step.
pub struct Chosen {
    /// The change.
    pub change: Change,
    /// Tokens that it saves more in the sessions that it was looked for in.
    pub earlier_tokens: i64,
    /// What it saves more in later ones, where it was judged.
    pub later: Option<Judged>,
    /// Whether that is more than chance, as far as it was judged.
    pub holds: bool,
}

/// Where a walk stands.
struct Reached {
    changes: Vec<Change>,
    scenario: Scenario,
    /// What it saves, session by session.
    tokens: Vec<Tokens>,
}

/// What is known of a candidate.
#[derive(Clone)]
struct Standing {
    /// What it saved more when it was last replayed, session by session.
    more: Vec<i64>,
    /// Their sum; unknown before the first replay.
    tokens: i64,
    /// At which step that was.
    step: Option<usize>,
    /// Whether it can still be taken.
    open: bool,
}

impl Walk<'_> {
    /// The path through these sessions; with later sessions each step is judged on them, and the first that does not hold
    /// ends the path.
    ///
    /// # Errors
    /// If a value fits no configuration.
    pub fn path(&self, train: &[usize], later: Option<&[usize]>) -> Result<Path> {
        let sheet = self.ground.sheet;
        let baseline: i64 = train.iter().map(|&place| self.present[place].baseline).sum();
        let least = ((baseline as f64 * sheet.gain_percent_min / 100.0).ceil() as i64).max(1);
        let fresh = Standing { more: Vec::new(), tokens: i64::MAX, step: None, open: true };
        let mut standings = vec![fresh; self.candidates.len()];
        let mut path = Path::default();
        let mut reached = Reached { changes: Vec::new(), scenario: self.now.clone(), tokens: self.present.to_vec() };
        while path.steps.len() < sheet.steps_max && (self.ground.goes_on)() {
            let Some(best) = self.best(train, &reached, least, &mut standings, &mut path.looks)? else { break };
            let next = self.with(&reached, best)?;
            let more = |places: &[usize]| self.sessions.more(places, &reached.scenario, &reached.tokens, &next);
            let judged = later.map(|later| self.ground.judged(&more(later)));
            let (change, earlier_tokens) = (self.candidates[best].clone(), standings[best].tokens);
            let holds = judged.is_none_or(|judged| judged.lower > 0.0);
            path.steps.push(Chosen { change: change.clone(), earlier_tokens, later: judged, holds });
            if !holds {
                break;
            }
            let same_key = self.candidates.iter().zip(&mut standings).filter(|((key, _), _)| *key == change.0);
            same_key.for_each(|(_, standing)| standing.open = false);
            reached.changes.push(change);
            reached.tokens = self.sessions.tokens(&next);
            reached.scenario = next;
        }
        Ok(path)
    }

    /// The configuration reached, with one candidate more.
    fn with(&self, reached: &Reached, candidate: usize) -> Result<Scenario> {
        let changes: Vec<Change> = reached.changes.iter().chain([&self.candidates[candidate]]).cloned().collect();
        Ok(self.ground.scenario(&what_if(self.ground.file, &changes)?))
    }

    /// The candidate that saves most beside what was changed so far, if it saves enough and in more than a few sessions.
    fn best(
        &self,
        train: &[usize],
        reached: &Reached,
        least: i64,
        standings: &mut [Standing],
        looks: &mut u64,
    ) -> Result<Option<usize>> {
        let step = reached.changes.len();
        loop {
            let mut order: Vec<usize> =
                (0..standings.len()).filter(|&at| standings[at].open && standings[at].tokens >= least).collect();
            order.sort_by_key(|&at| (std::cmp::Reverse(standings[at].tokens), at));
            let Some(&first) = order.first() else { return Ok(None) };
            if standings[first].step == Some(step) {
                if self.is_steady(&standings[first].more) {
                    return Ok(Some(first));
                }
                standings[first].open = false;
                continue;
            }
            let stale = order.into_iter().filter(|&at| standings[at].step != Some(step));
            let batch: Vec<usize> = stale.take(self.ground.sheet.batch).collect();
            *looks += batch.len() as u64;
            let replay = |&at: &usize| {
                let scenario = self.with(reached, at)?;
                Ok(self.sessions.more(train, &reached.scenario, &reached.tokens, &scenario))
            };
            let replayed: Vec<Result<Vec<i64>>> = batch.par_iter().map(replay).collect();
            for (at, more) in batch.into_iter().zip(replayed) {
                let more = more?;
                standings[at] = Standing { tokens: more.iter().sum(), more, step: Some(step), open: true };
            }
        }
    }

    /// Whether other sessions of the same kind would speak for it, too.
    fn is_steady(&self, more: &[i64]) -> bool {
        let values: Vec<f64> = more.iter().map(|&tokens| tokens as f64).collect();
        let share = self.ground.sheet.false_step_percent / 100.0 / 2.0;
        sum_interval(&values, &self.ground.sheet.resampling, share).is_some_and(|(lower, _)| lower > 0.0)
    }
}
