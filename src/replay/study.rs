//! From logs to reports: lays the history out, replays each configuration, and sums up.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::body_shape::{BodyShape, LayerId};
use crate::base::error::Result;
use crate::facts::encode;
use crate::frames::input::Input;
use crate::logs::trace::Millis;
use crate::replay::input::{CallTime, ReplayInput};
use crate::replay::quotes::Quotes;
use crate::replay::reach::{Reach, Reaches};
use crate::replay::report::{Distribution, JsonBaselines, NamedTally, ReplayArm, ReplayReport};
use crate::replay::savings::{Expanded, Tally};
use crate::replay::scenarios::Scenarios;
use crate::replay::{
    Decision, Ledger, ReplayOptions, Scenario, Tape, TapeEntry, bounds, published_claim, quotes, replay,
    replay_expanded, report,
};
use crate::settings::Settings;

/// Name of the replay with the published formats.
pub const PUBLISHED: &str = "published";
/// Name of the replay with the extended formats.
pub const EXTENDED: &str = "extended";

/// One report per configuration, from the lake if they were made before; else `source` is what they were made from. Projects
/// have their pseudonyms in place of names. `lay_out` is [`ReplayInput::with_ids`] or [`ReplayInput::last`].
pub fn reports(
    scenarios: &Scenarios,
    input: &mut Input,
    source: &mut Option<ReplayInput>,
    lay_out: fn(Option<&str>, &mut Input) -> Result<ReplayInput>,
) -> Result<Vec<ReplayReport>> {
    let Scenarios { model, reaches, .. } = scenarios;
    let settings: Vec<_> = scenarios.cells.iter().map(|cell| &cell.settings).collect();
    let paper = crate::replay::savings::paper_claim(&input.data)?;
    let question = format!("replay {settings:?} {model:?} {paper:?} {reaches:?}");
    input.remember(&question, |input| {
        let source = source.insert(lay_out(model.as_deref(), input)?);
        Ok(input.pool.install(|| settings.iter().map(|settings| report(source, settings, reaches)).collect()))
    })
}

/// Replays one configuration for one reach, with what the others could do beside it, and sums up.
pub fn report(source: &ReplayInput, settings: &Settings, reaches: &Reaches) -> ReplayReport {
    let tape = &source.tape;
    let everything = [false, true].map(|extended| Scenario::new(settings, tape, ReplayOptions::arm(extended)));
    let [published, extended] = everything.each_ref().map(|scenario| scenario.within(reaches.chosen(), tape));
    let (one, two) = rayon::join(
        || {
            let mut json = JsonBaselines::default();
            let (ledger, hints) = replay_expanded(tape, &published, &mut |index, decision, _| {
                add_json(&mut json, tape, &published, index, decision);
            });
            (json, arm(PUBLISHED, source, &ledger, hints, quotes(tape, &published)))
        },
        || {
            let (ledger, hints) = replay_expanded(tape, &extended, &mut |_, _, _| {});
            arm(EXTENDED, source, &ledger, hints, quotes(tape, &extended))
        },
    );
    let ((json, published_arm), extended_arm) = (one, two);
    let others = || {
        let of = |(place, reach): (usize, &Reach)| match place == reaches.place() {
            true => reached_by(source, reach, &published, [published_arm.total, extended_arm.total]),
            false => reached(source, reach, &everything),
        };
        reaches.all.iter().enumerate().map(of).collect()
    };
    let aside = || {
        let lasting =
            published.with_options(settings, ReplayOptions { invalidate: false, ..ReplayOptions::arm(false) });
        let kept = replay(tape, &lasting).total.saved_by(LayerId::L0);
        let answered: Vec<Millis> = source.times.iter().map(CallTime::answered_at).collect();
        (kept, bounds(tape, &published), published_claim(tape, &everything[0], &answered))
    };
    let (reached, (kept, bounds, claim)) = rayon::join(others, aside);
    ReplayReport {
        input: summary(source, &published),
        bounds,
        invalidation_tokens: kept.saturating_sub(published_arm.total.saved_by(LayerId::L0)),
        claim,
        paper: source.paper.clone(),
        json,
        arms: vec![published_arm, extended_arm],
        reach: reaches.chosen().id.clone(),
        reaches: reached,
    }
}

/// What a place on the way could save, with the published and with the extended formats.
pub fn reached(source: &ReplayInput, reach: &Reach, everything: &[Scenario; 2]) -> report::ReachSavings {
    let within = everything.each_ref().map(|scenario| scenario.within(reach, &source.tape));
    let totals = within.each_ref().map(|scenario| replay(&source.tape, scenario).total);
    reached_by(source, reach, &within[0], totals)
}

fn reached_by(source: &ReplayInput, reach: &Reach, scenario: &Scenario, totals: [Tally; 2]) -> report::ReachSavings {
    let [published, extended] = totals;
    let tokens = scenario.tokens_reached(&source.tape);
    report::ReachSavings { id: reach.id.clone(), name: reach.name.clone(), tokens, published, extended }
}

fn summary(source: &ReplayInput, scenario: &Scenario) -> report::ReplayedInput {
    let ReplayInput { tape, .. } = source;
    let count =
        |outcome: TapeEntry| tape.responses.iter().filter(|response| response.outcome == outcome).count() as u64;
    let (mut sessions, mut contexts) = (BTreeSet::new(), BTreeSet::new());
    let mut bodies = BTreeSet::new();
    for response in tape.responses.iter().filter(|response| response.body != u32::MAX) {
        sessions.insert(response.session);
        contexts.insert((response.chain, response.partition));
        bodies.insert(response.body);
    }
    let facts = || bodies.iter().map(|&body| &tape.facts[body as usize]);
    report::ReplayedInput {
        sessions: sessions.len() as u64,
        contexts: contexts.len() as u64,
        calls: tape.responses.len() as u64,
        silent: count(TapeEntry::Silent),
        failures: count(TapeEntry::Failure),
        mixed: count(TapeEntry::Mixed),
        unstudied: count(TapeEntry::Unstudied),
        bodies: bodies.len() as u64,
        proven: facts().map(|facts| facts.forms.encodings.len() as u64).sum(),
        unproven: facts().map(|facts| u64::from(facts.unproven)).sum(),
        oversize: facts().filter(|facts| facts.oversize).count() as u64,
        counters: scenario.counters(tape),
        context_tokens: source.context_tokens,
        plain_repeats: source.plain_repeats,
    }
}

fn arm(name: &str, source: &ReplayInput, ledger: &Ledger, expanded: Expanded, quotes: Quotes) -> ReplayArm {
    let groups = |tallies: BTreeMap<String, Tally>| {
        let some = tallies.into_iter().filter(|(_, tally)| tally.count() > 0);
        some.map(|(name, tally)| NamedTally { name, tally }).collect::<Vec<_>>()
    };
    let mut projects: BTreeMap<String, Tally> = BTreeMap::new();
    for (project, tally) in source.projects.iter().zip(&ledger.sessions) {
        projects.entry(project.to_string()).or_default().absorb(tally);
    }
    let mut endpoints: BTreeMap<String, Tally> = BTreeMap::new();
    for (endpoint, tally) in source.tape.endpoints.iter().zip(&ledger.endpoints) {
        endpoints.entry(endpoint.name()).or_default().absorb(tally);
    }
    let ids = encode::ids();
    let shape = |(number, tally): (u8, &Tally)| (BodyShape::from_number(number).into_str().to_owned(), *tally);
    let format = |(number, tally): (u8, &Tally)| (ids[number as usize].to_owned(), *tally);
    ReplayArm {
        name: name.to_owned(),
        total: ledger.total,
        quotes,
        hints: [ledger.references, ledger.near_refs, ledger.range_refs],
        expanded,
        endpoints: groups(endpoints),
        shapes: groups((0_u8..).zip(&ledger.shapes).map(shape).collect()),
        projects: groups(projects),
        formats: groups((0_u8..).zip(&ledger.formats).map(format).collect()),
        sessions: Distribution::of(ledger.sessions.iter()),
    }
}

/// Adds a JSON body that missed L0 to the sums under each baseline.
fn add_json(json: &mut JsonBaselines, tape: &Tape, scenario: &Scenario, index: u32, decision: &Decision) {
    let response = &tape.responses[index as usize];
    let facts = tape.facts_of(response);
    if decision.layer == LayerId::L0 || !BodyShape::from_number(facts.shape).is_json() {
        return;
    }
    let counting = scenario.session(response).counting;
    let raw = counting.tokens(&facts.raw);
    let written = |id: &str| {
        let number = encode::find(id).map(|(number, _)| number);
        let row = facts.forms.encodings.iter().find(|row| Some(row.format) == number);
        row.map(|row| counting.tokens(&row.size))
    };
    // A body that cannot be written as JSON again (a key that stands twice) has no such baseline.
    let Some((compact, pretty)) = written("json_compact").zip(written("json_pretty")) else { return };
    json.responses += 1;
    json.raw += raw;
    json.compact += compact;
    json.pretty += pretty;
    json.sent += decision.tokens;
}
