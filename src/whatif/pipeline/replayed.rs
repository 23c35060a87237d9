//! `pipeline`: the layers are replayed over the logs as `devboy replay` does, and what they sent goes into the contexts.
//!
//! What the pipeline did to the results of a log.
//!
//! The report of the pipeline as a policy.
//!
//! What one place on the way could save in money: its layers over the same contexts, under the simulated prompt cache.
//!
//! A result that is sent in fewer tokens is written to the cache once and read from it many times, so that a share of
//! tool-response tokens says little about the bill.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Value, json};

use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdMap};
use crate::frames::input::Input;
use crate::logs::timeline::requests::Timeline;
use crate::replay::input::ReplayInput;
use crate::replay::reach::Reach;
use crate::replay::{Outcome, Scenario, What, replay_each};
use crate::report::numbers::{counted, percent, thousands};
use crate::report::table::{Rows, Table};
use crate::settings::Settings;
use crate::whatif::chosen::{Policy, Sheets};
use crate::whatif::pipeline::{Formats, Params, Pipeline, Points, Sent, outcome};
use crate::whatif::sim::bill::Blind;
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::simulate::{Ground, Run};
use crate::whatif::simulation::{Simulation, oracle};
use crate::whatif::stacked::{Finished, Part, Ready, Scene};

/// Tools that a table shows.
const TOOLS_SHOWN: usize = 12;

/// What the layers sent, by call of the timeline, in either set of formats.
pub struct Replayed {
    published: Arc<[Sent]>,
    extended: Arc<[Sent]>,
    /// Results of deleted logs of which nothing is known but their size.
    unstudied: u64,
}

impl Replayed {
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
        let unstudied = laid.tape.responses.iter().filter(|response| response.outcome == Outcome::Unstudied).count();
        Self { published: published.into(), extended: extended.into(), unstudied: unstudied as u64 }
    }

    /// What was sent in a set of formats.
    pub fn of(&self, formats: Formats) -> Arc<[Sent]> {
        Arc::clone(match formats {
            Formats::Published => &self.published,
            Formats::Extended => &self.extended,
        })
    }
}

fn sent(laid: &ReplayInput, scenario: &Scenario, calls: &IdMap<Id, u32>) -> Vec<Sent> {
    let call_of = |response: u32| calls.get(&laid.history.calls[response as usize].id).copied();
    let mut sent = Vec::new();
    replay_each(&laid.tape, scenario, &mut |index, decision| {
        let response = &laid.tape.responses[index as usize];
        let counting = scenario.sessions[response.session as usize].counting;
        let baseline = counting.tokens(&laid.tape.facts_of(response).raw);
        let points = match decision.what {
            What::Reference(target) | What::NearReference(target) => call_of(target).map(Points::At),
            What::RangeReference => Some(Points::Lines),
            What::Encoded(_) | What::AsIs => Some(Points::Nowhere),
        };
        // What is in no request of the timeline was sent to nobody.
        if let (Some(call), Some(points)) = (call_of(index), points) {
            sent.push(Sent { call, baseline, tokens: decision.tokens, points });
        }
    });
    sent.sort_by_key(|one| one.call);
    sent
}

/// Makes the policy ready.
///
/// # Errors
/// If a parameter makes no sense.
pub fn ready<'s>(scene: &'s Scene<'_>, sheets: &Sheets) -> Result<Ready<'s>> {
    let params: Params = sheets.sheet(Policy::Pipeline).params()?;
    let replayed = scene.replayed.ok_or_else(|| Error::failed("the layers were not replayed here"))?;
    let sent = replayed.of(params.formats);
    let (stage, journal) = Pipeline::new(&scene.world.timeline, params, sent, &scene.world.sizes.rules);
    let unstudied = replayed.unstudied;
    let conclude = move |finished: &Finished<'_>| {
        let found = outcome(&finished.scene.world.timeline, &journal);
        Part {
            summary: summary(&found),
            tables: vec![("results by tool".to_owned(), tools(&found, TOOLS_SHOWN))],
            notes: notes(unstudied),
            details: json!(found),
            ..Part::default()
        }
    };
    Ok(Ready { stage: Some(Box::new(stage)), conclude: Box::new(conclude) })
}

/// All results.
#[derive(Clone, PartialEq, Eq, Default, Debug, Serialize)]
pub struct PipelineOutcome {
    /// Together.
    #[serde(flatten)]
    pub all: Shortened,
    /// By tool.
    pub tools: BTreeMap<String, Shortened>,
}

/// Results, each counted once, when it first stood in a context.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize)]
pub struct Shortened {
    /// Results with text that the pipeline met.
    pub results: u64,
    /// Of those, sent in fewer tokens, hints included.
    pub shortened: u64,
    /// Of those, hints for an earlier result.
    pub hints: u64,
    /// Hints that were not sent, since what they point at was not in the context any more.
    pub hints_held: u64,
    /// Tokens of all these results as they are; anchored sizes.
    pub tokens: u64,
    /// Tokens by which they were shorter.
    pub tokens_saved: u64,
}

const NOTE: &str =
    "a result is shortened as it comes in, so no prefix breaks; the pipeline's own report is `devboy replay`";

/// What is to be kept in mind. Of `unstudied` results nothing is known but the size.
pub fn notes(unstudied: u64) -> Vec<String> {
    let results = counted(unstudied, "result");
    let gone = (unstudied > 0).then(|| format!("{results} of deleted logs were never studied: sent as they are here"));
    std::iter::once(NOTE.to_owned()).chain(gone).collect()
}

/// What became of the results.
pub fn summary(found: &PipelineOutcome) -> Vec<String> {
    let found = &found.all;
    let mut lines = vec![format!(
        "{} of {} sent in fewer tokens ({} of them as hints): {} of their {} tokens, {}",
        thousands(found.shortened),
        counted(found.results, "result"),
        thousands(found.hints),
        thousands(found.tokens_saved),
        thousands(found.tokens),
        percent(share(found))
    )];
    if found.hints_held > 0 {
        lines.push(format!(
            "{} not sent: what they point at was no longer in the context",
            counted(found.hints_held, "hint")
        ));
    }
    lines
}

/// The same by tool, those first that got shorter by most tokens; at most `rows` tools.
pub fn tools(found: &PipelineOutcome, rows: usize) -> Table {
    let mut tools: Vec<(&String, &Shortened)> = found.tools.iter().collect();
    tools.sort_by_key(|(name, tool)| (Reverse(tool.tokens_saved), Reverse(tool.tokens), *name));
    Rows::of(tools.into_iter().take(rows))
        .text("tool", |(name, _)| (*name).clone())
        .count("results", |(_, tool)| tool.results)
        .count("shorter", |(_, tool)| tool.shortened)
        .count("hints", |(_, tool)| tool.hints)
        .count("held", |(_, tool)| tool.hints_held)
        .count("tokens", |(_, tool)| tool.tokens)
        .count("saved", |(_, tool)| tool.tokens_saved)
        .number("share", |(_, tool)| percent(share(tool)))
        .table()
}

fn share(of: &Shortened) -> f64 {
    of.tokens_saved as f64 / of.tokens.max(1) as f64
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
    ///
    /// # Errors
    /// If a data file does not fit.
    pub fn new(reach: &Reach, settings: &Settings, laid: &ReplayInput, input: &mut Input) -> Result<Option<Self>> {
        let timeline = input.timeline(false)?;
        if timeline.requests.is_empty() {
            return Ok(None);
        }
        let replayed = Replayed::new(input, laid, &timeline, settings, Some(reach));
        let world = Simulation::new(timeline, None, &input.data, false, true)?;
        let sheets = Sheets::load(&input.data)?;
        let cache = oracle(&sheets)?;
        let params: Params = sheets.sheet(Policy::Pipeline).params()?;
        let worth_percent_min = crate::replay::reach::worth_percent_min(&input.data)?;
        let (bill, sent, error) = input.pool.install(|| {
            let ground = Ground::new(&world.timeline, &world.sizes, &cache, &world.prices).counting_answers(true);
            let sent = |formats: Formats| {
                let params = Params { formats, ..params };
                let stage = Pipeline::new(&world.timeline, params, replayed.of(formats), &world.sizes.rules).0;
                ground.run(0..world.timeline.chains.len() as u32, &mut [Box::new(stage)], None)
            };
            let (baseline, blind) = rayon::join(|| ground.baseline(), || Blind::new(&ground));
            let runs = rayon::join(|| sent(Formats::Published), || sent(Formats::Extended));
            let error = crate::whatif::sim::bill::compare(&ground, &blind, |_| true).cost_error();
            let [bill, one, two] = Run::priced_alike([&baseline, &runs.0, &runs.1]).map(|run| run.cost());
            (bill, [one, two], error)
        });
        Ok(Some(Self { name: reach.name.clone(), bill, sent, error: error.abs(), worth_percent_min }))
    }

    /// Shares of the bill that are saved, with the published and with the extended formats.
    fn saved(&self) -> [f64; 2] {
        self.sent.map(|sent| -self.bill.change_to(&sent).unwrap_or_default())
    }

    /// Whether it saves enough of the bill to be built.
    fn is_worth_it(&self) -> bool {
        self.saved().iter().any(|saved| 100.0 * saved >= self.worth_percent_min)
    }

    /// One or two lines for people.
    pub fn words(&self) -> String {
        let [published, extended] = self.saved().map(percent);
        let usd = self.bill.usd().map_or_else(String::new, |usd| format!(" of ${usd:.2}"));
        let verdict = match self.is_worth_it() {
            true => String::new(),
            false => format!("; less than {} % of the bill, so it does not pay to build one", self.worth_percent_min),
        };
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
            "is_worth_it": self.is_worth_it(),
        })
    }
}

fn with_article(name: &str) -> String {
    let vowel = name.starts_with(['A', 'E', 'I', 'O', 'U', 'a', 'e', 'i', 'o', 'u', 'M']);
    format!("{} {name}", if vowel { "an" } else { "a" })
}
