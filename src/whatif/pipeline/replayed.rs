//! `pipeline`: the layers are replayed over the logs as `devboy replay` does, and what they sent goes into the contexts. And
//! what one place on the way could save in money under the simulated prompt cache: a result is written to the cache once and
//! read many times, so that a share of tool-response tokens says little about the bill.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdMap};
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::timeline::requests::Timeline;
use crate::replay::input::ReplayInput;
use crate::replay::reach::Reach;
use crate::replay::{ReplayOptions, Scenario, SentAs, TapeEntry, replay_each};
use crate::report::numbers::{percent, usd};
use crate::settings::Settings;
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::pipeline::{Formats, Params, Pipeline, Points, SentResult, notes, outcome, summary};
use crate::whatif::sim::bill::Blind;
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::run::SimulatedRun;
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::simulation::{Finished, PolicyShare, Ready, Simulation};
use crate::whatif::workload::{Workload, cache_rules};

/// What the layers sent, by call of the timeline, in either set of formats.
pub struct ReplayedLayers {
    published: Arc<[SentResult]>,
    extended: Arc<[SentResult]>,
    /// Results of deleted logs of which nothing is known but their size.
    unstudied: u64,
}

impl ReplayedLayers {
    /// Replays the layers under a configuration ([`ReplayInput::with_ids`]); where a reach is named, over what it could change.
    pub fn new(
        input: &Input,
        source: &ReplayInput,
        timeline: &Timeline,
        settings: &Settings,
        reach: Option<&Reach>,
    ) -> Self {
        let places = places_in(timeline);
        let replayed = |extended: bool| {
            let scenario = Scenario::new(settings, &source.tape, ReplayOptions::arm(extended));
            let scenario = reach.map_or(scenario.clone(), |reach| scenario.within(reach, &source.tape));
            sent(source, &scenario, &places)
        };
        let (published, extended) = input.pool.install(|| rayon::join(|| replayed(false), || replayed(true)));
        let unstudied =
            source.tape.responses.iter().filter(|response| response.outcome == TapeEntry::Unstudied).count();
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

/// Where calls stand in the timeline, by the message that asked and the id.
fn places_in(timeline: &Timeline) -> IdMap<(Id, Id), u32> {
    let mut known: IdMap<(Id, Id), u32> = IdMap::default();
    for (index, call) in (0..).zip(&timeline.calls).filter(|(_, call)| call.id.is_some()) {
        let message = timeline.request(timeline.request_of_block(call.asked)).id;
        // One whose message has no id is known by its own.
        for message in [message, Id::NONE] {
            known.entry((message, call.id)).or_insert(index);
        }
    }
    known
}

fn sent(source: &ReplayInput, scenario: &Scenario, places: &IdMap<(Id, Id), u32>) -> Vec<SentResult> {
    let call_of = |response: u32| places.get(&source.ids[response as usize]).copied();
    let mut sent = Vec::new();
    replay_each(&source.tape, scenario, &mut |index, decision| {
        let response = &source.tape.responses[index as usize];
        let counting = scenario.session(response).counting;
        let baseline = counting.tokens(&source.tape.facts_of(response).raw);
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
    let conclude = move |_: &Finished<'_>| {
        let found = outcome(&journal);
        PolicyShare {
            summary: summary(&found),
            notes: notes(replayed.unstudied),
            details: json!(found),
            ..PolicyShare::default()
        }
    };
    Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) })
}

/// What a reach is worth.
pub struct Worth {
    name: String,
    /// Cost of everything as simulated, answers included.
    bill: Cost,
    /// The same with the published, and with the extended formats.
    sent: [Cost; 2],
    /// By how much the simulation is off the bill, as a share.
    error: f64,
    worth_percent_min: f64,
}

impl Worth {
    /// Simulates the contexts with what this place would have sent.
    pub fn new(reach: &Reach, settings: &Settings, source: &ReplayInput, input: &mut Input) -> Result<Option<Self>> {
        let timeline = input.timeline(TimelineDetail::default())?;
        if timeline.requests.is_empty() {
            return Ok(None);
        }
        let replayed = ReplayedLayers::new(input, source, &timeline, settings, Some(reach));
        let workload = Workload::new(timeline, None, &input.data, false, true)?;
        let configs = PolicyConfigs::load(&input.data)?;
        let cache = cache_rules(&configs)?;
        let params: Params = configs.sheet(Policy::Pipeline).params()?;
        let worth_percent_min = crate::replay::reach::worth_percent_min(&input.data)?;
        let (bill, sent, error) = input.pool.install(|| {
            let simulator =
                Simulator::new(&workload.timeline, &workload.sizes, &cache, &workload.prices).counting_answers(true);
            let sent = |formats: Formats| {
                let params = Params { formats, ..params };
                let stage = Pipeline::new(&workload.timeline, params, replayed.of(formats), &workload.sizes.rules).0;
                simulator.run(simulator.chains(), &mut [Box::new(stage)], None)
            };
            let (baseline, blind) = rayon::join(|| simulator.baseline(), || Blind::new(&simulator));
            let runs = rayon::join(|| sent(Formats::Published), || sent(Formats::Extended));
            let error = crate::whatif::sim::bill::compare(&simulator, &blind, |_| true).cost_error().size();
            let alike = SimulatedRun::priced_alike(&[&baseline, &runs.0, &runs.1]);
            let [bill, one, two] = [0, 1, 2].map(|run| alike[run].total().cost);
            (bill, [one, two], error)
        });
        Ok(Some(Self { name: reach.name.clone(), bill, sent, error, worth_percent_min }))
    }

    /// Shares of the bill that are saved, with the published and with the extended formats.
    fn saved(&self) -> [f64; 2] {
        self.sent.map(|sent| -self.bill.change_to(&sent).unwrap_or_default())
    }

    /// Why it does not save enough of the bill to be built; none if it does.
    fn why_not(&self) -> Option<String> {
        let [published, extended] = self.saved();
        why_not(published.max(extended), self.error, self.worth_percent_min)
    }

    /// One or two lines for people.
    pub fn words(&self) -> String {
        let [published, extended] = self.saved().map(percent);
        let usd = self
            .bill
            .usd()
            .map_or_else(String::new, |money| format!(" (as simulated, output estimated: {})", usd(money)));
        let verdict = self.why_not().map_or_else(String::new, |why| format!("; {why}"));
        format!(
            "In money: {} could save {published} of the bill{usd} with the published formats, {extended} with the extended \
             ones [replayed under the simulated prompt cache, which is {} off the bill]{verdict}.",
            with_article(&self.name),
            percent(self.error)
        )
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let [published, extended] = self.saved();
        json!({
            "basis": "replayed",
            "bill": self.bill,
            "saved_of_bill": { "published": published, "extended": extended },
            "error_of_bill": self.error,
            "worth_percent_min": self.worth_percent_min,
            "is_worth_it": self.why_not().is_none(),
        })
    }
}

/// Why such a share of the bill is not enough to build what saves it, by a simulation that is so much off the bill; none if it is.
pub fn why_not(saved: f64, error: f64, worth_percent_min: f64) -> Option<String> {
    if 100.0 * saved < worth_percent_min {
        return Some(format!("less than {worth_percent_min} % of the bill, so it does not pay to build one"));
    }
    let unclear = "no more than the simulation is off the bill, so it is not clear whether it pays to build one";
    (saved <= error).then(|| unclear.to_owned())
}

fn with_article(name: &str) -> String {
    let vowel = name.starts_with(['A', 'E', 'I', 'O', 'U', 'a', 'e', 'i', 'o', 'u', 'M']);
    format!("{} {name}", if vowel { "an" } else { "a" })
}
