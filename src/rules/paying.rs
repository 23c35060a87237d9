//! Which mined links pay: those of the earlier sessions, followed through the later ones.

use std::collections::BTreeMap;

use crate::base::bootstrap::{TAIL, sum_interval};
use crate::base::data::Data;
use crate::base::error::Result;
use crate::frames::input::Input;
use crate::planner::bound::bound;
use crate::planner::known_tools::KnownTools;
use crate::planner::prefetches::{PlannerLedger, PrefetchEdge, PrefetchEnd, PrefetchTally};
use crate::planner::stage::{Planner, PlannerStage, Trained, walk};
use crate::rules::prefetching::{Fetched, PrefetchBars, Prefetching, is_on};
use crate::rules::{mined_planners, statistics};
use crate::settings::annotations::Annotations;
use crate::settings::{SettingsFile, View};

/// Mines on the earlier sessions and follows what was mined through the later ones.
///
/// # Errors
/// If a data file or the value models do not fit.
pub fn prefetching(stage: &PlannerStage, data: &Data) -> Result<Prefetching> {
    let judge = StageJudge { stage, trained: Trained::new(stage) };
    let judged_on = stage.split.judged();
    let found = Prefetching {
        mined_on: stage.judged.len() as u64 - judged_on,
        judged_on,
        judged_min: statistics::numbers(data)?.backtest.later_min as u64,
        bars: PrefetchBars { hit_min: stage.numbers.targets.hit_min, overrun_max: stage.numbers.targets.overrun_max },
        ..Prefetching::default()
    };
    if judged_on < found.judged_min {
        return Ok(found);
    }
    let configured = mined_planners::configured(stage, data)?;
    configured.models.accept()?;
    let known = KnownTools::new(&configured.models, stage.told(), &stage.numbers);
    let limits = bound(stage.told(), &known, &stage.settings.enrichment, &stage.numbers, &stage.judged);
    let mut found = Prefetching { calls: limits.calls, reachable: limits.reachable, ..found };
    if is_on(&View::of(&stage.file)?) {
        found.configured = Some(judge.fetched(&judge.books(&configured), None));
    }
    let annotations = Annotations::load(data)?;
    let said = mined_planners::mined(stage, data, &annotations)?;
    let mined = mined_planners::mined_planner(stage, &annotations, &said, &|_, _| true)?;
    let books = judge.books(&mined);
    found.all = judge.fetched(&books, None);
    let known = KnownTools::new(&mined.models, stage.told(), &stage.numbers);
    let mut edges: BTreeMap<PrefetchEdge, (String, String)> = BTreeMap::new();
    for edge in books.iter().flat_map(|books| books.edges.keys()) {
        let name = |tool| known.names.text(tool).to_owned();
        edges.entry(*edge).or_insert_with(|| (name(edge.0), name(edge.1)));
    }
    for (edge, (from, to)) in edges {
        found.links.entry(from).or_default().insert(to, judge.fetched(&books, Some(edge)));
    }
    let alone = |from: &str, to: &str| {
        let fetched = found.links.get(from).and_then(|links| links.get(to));
        fetched.is_some_and(|fetched| fetched.why_not(&found.bars).is_none())
    };
    found.paying =
        judge.fetched(&judge.books(&mined_planners::mined_planner(stage, &annotations, &said, &alone)?), None);
    Ok(found)
}

/// What the planner of a configuration fetches ahead in the later sessions.
///
/// # Errors
/// If a data file or the value models do not fit.
pub fn configured(file: &SettingsFile, input: &mut Input) -> Result<Fetched> {
    let stage = PlannerStage::new(file.clone(), input, None)?;
    let data = input.data.clone();
    let planner = mined_planners::configured(&stage, &data)?;
    planner.models.accept()?;
    Ok(input.pool.install(|| {
        let judge = StageJudge { stage: &stage, trained: Trained::new(&stage) };
        judge.fetched(&judge.books(&planner), None)
    }))
}

struct StageJudge<'s> {
    stage: &'s PlannerStage,
    trained: Trained,
}

impl StageJudge<'_> {
    /// What it does, session by session.
    fn books(&self, planner: &Planner) -> Vec<PlannerLedger> {
        let known = KnownTools::new(&planner.models, self.stage.told(), &self.stage.numbers);
        walk(self.stage, planner, &known, &self.trained, &self.stage.settings.enrichment, None, None)
    }

    /// What one link, or everything, came to.
    fn fetched(&self, books: &[PlannerLedger], edge: Option<PrefetchEdge>) -> Fetched {
        let mut sum = Fetched::default();
        let mut nets = Vec::new();
        let judged = books.iter().zip(&self.stage.judged).filter(|(_, is_judged)| **is_judged);
        for (books, _) in judged {
            let tally = edge.map_or(Some(&books.total), |edge| books.edges.get(&edge).map(Box::as_ref));
            let Some(tally) = tally.filter(|tally| tally.sent() > 0) else { continue };
            add(&mut sum, tally);
            nets.push((2 * tally.ends[PrefetchEnd::Won]) as f64 - tally.sent() as f64);
        }
        let sessions = self.stage.split.judged() as usize;
        sum.net_95 = sum_interval(&nets, sessions, &self.stage.numbers.resampling, TAIL);
        sum
    }
}

fn add(sum: &mut Fetched, tally: &PrefetchTally) {
    sum.sent += tally.sent();
    sum.exact += tally.near.exact;
    sum.won += tally.ends[PrefetchEnd::Won];
    sum.overruns.0 += tally.overruns;
    sum.overruns.1 += tally.answers_known;
}
