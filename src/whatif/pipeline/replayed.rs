//! `pipeline`: the layers are replayed over the logs as `devboy replay` does, and what they sent goes into the
//! contexts.

use std::sync::Arc;

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdMap};
use crate::frames::input::Input;
use crate::logs::timeline::requests::Timeline;
use crate::replay::input::ReplayInput;
use crate::replay::reach::Reach;
use crate::replay::{Scenario, SentAs, TapeEntry, replay_each};
use crate::settings::Settings;
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::pipeline::results::{notes, summary, tools};
use crate::whatif::pipeline::{Formats, Params, Pipeline, Points, SentResult, outcome};
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};

/// Tools that a table shows.
const TOOLS_SHOWN: usize = 12;

/// What the layers sent, by call of the timeline, in either set of formats.
pub struct ReplayedLayers {
    published: Arc<[SentResult]>,
    extended: Arc<[SentResult]>,
    /// Results of deleted logs of which nothing is known but their size.
    unstudied: u64,
}

impl ReplayedLayers {
    /// Replays the layers under a configuration; where a reach is named, over what it could change.
    pub fn new(
        input: &Input,
        laid: &ReplayInput,
        timeline: &Timeline,
        settings: &Settings,
        reach: Option<&Reach>,
    ) -> Self {
        let calls: IdMap<Id, u32> = (0..).zip(&timeline.calls).map(|(index, call)| (call.id, index)).collect();
        let replayed = |extended: bool| {
            let scenario = Scenario::new(settings, &laid.tape, laid.options(extended));
            let scenario = reach.map_or(scenario.clone(), |reach| scenario.within(reach, &laid.tape));
            sent(laid, &scenario, &calls)
        };
        let (published, extended) = input.pool.install(|| rayon::join(|| replayed(false), || replayed(true)));
        let unstudied = laid.tape.responses.iter().filter(|response| response.outcome == TapeEntry::Unstudied).count();
        Self { published: published.into(), extended: extended.into(), unstudied: unstudied as u64 }
    }

    /// What was sent in a set of formats.
    pub fn of(&self, formats: Formats) -> Arc<[SentResult]> {
        Arc::clone(match formats {
            Formats::Published => &self.published,
            Formats::Extended => &self.extended,
        })
    }
}

fn sent(laid: &ReplayInput, scenario: &Scenario, calls: &IdMap<Id, u32>) -> Vec<SentResult> {
    let call_of = |response: u32| calls.get(&laid.history.calls[response as usize].id).copied();
    let mut sent = Vec::new();
    replay_each(&laid.tape, scenario, &mut |index, decision| {
        let response = &laid.tape.responses[index as usize];
        let counting = scenario.session(response).counting;
        let baseline = counting.tokens(&laid.tape.facts_of(response).raw);
        let points = match decision.what {
            SentAs::Reference(target) | SentAs::NearReference(target) => call_of(target).map(Points::At),
            SentAs::RangeReference => Some(Points::Lines),
            SentAs::Encoded(_) | SentAs::AsIs => Some(Points::Nowhere),
        };
        // What is in no request of the timeline was sent to nobody.
        if let (Some(call), Some(points)) = (call_of(index), points) {
            sent.push(SentResult { call, baseline, tokens: decision.tokens, points });
        }
    });
    sent.sort_by_key(|one| one.call);
    sent
}

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/pipeline.toml",
    check: |sheet| sheet.params::<Params>().map(drop),
    read_only_with: &[],
    without_logs: Some("it is what the pipeline left; `devboy tune analyze` says what that saved"),
    ready,
};

fn ready<'s>(simulation: &'s Simulation<'_>, configs: &PolicyConfigs) -> Result<Ready<'s>> {
    let params: Params = configs.sheet(Policy::Pipeline).params()?;
    let replayed = simulation.replayed.ok_or_else(|| Error::failed("the layers were not replayed here"))?;
    let sent = replayed.of(params.formats);
    let (stage, journal) = Pipeline::new(&simulation.workload.timeline, params, sent, &simulation.workload.sizes.rules);
    let unstudied = replayed.unstudied;
    let conclude = move |finished: &Finished<'_>| {
        let found = outcome(&finished.simulation.workload.timeline, &journal);
        PolicyShare {
            summary: summary(&found),
            tables: vec![("results by tool".to_owned(), tools(&found, TOOLS_SHOWN))],
            notes: notes(unstudied),
            details: json!(found),
            ..PolicyShare::default()
        }
    };
    Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) })
}
