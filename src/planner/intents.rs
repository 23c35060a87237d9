//! What the person is after, as far as words of the prompt of a turn are words of a field's name; and the line that the planner
//! would show the agent (published wording). Prompts are kept as hashes of their words, so `full_dom` is named by "dom", not by
//! "doms"; as published any part of a name would do.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::id::Id;
use crate::base::words;
use crate::logs::history::History;
use crate::logs::timeline::requests::{BlockKind, NONE, Timeline};
use crate::planner::numbers::TextNumbers;
use crate::settings::tool_model::ToolModel;

/// Keywords of every call of a history.
#[derive(Debug, Default)]
pub struct Intents {
    /// Different sets of keywords; the first is empty.
    sets: Vec<BTreeSet<String>>,
    /// By call: number of its set.
    of_calls: Vec<u32>,
}

impl Intents {
    /// Finds the prompt of every call's turn. Only words of fields that these models leave out by default are keywords:
    /// no other word changes what a call is worth.
    pub fn new<'m>(history: &History, timeline: &Timeline, models: impl IntoIterator<Item = &'m ToolModel>) -> Self {
        let known = words_of_fields(models);
        let mut intents = Self { sets: vec![BTreeSet::new()], of_calls: vec![0; history.calls.len()] };
        let of_ids = intents.prompts(timeline, &known);
        for (set, call) in intents.of_calls.iter_mut().zip(&*history.calls) {
            *set = of_ids.get(&call.id).copied().unwrap_or_default();
        }
        intents
    }

    /// The keywords of a call's turn.
    pub fn of(&self, call: u32) -> &BTreeSet<String> {
        &self.sets[self.of_calls[call as usize] as usize]
    }

    /// The set of every call by its id; calls of turns without a keyword are left out.
    fn prompts(&mut self, timeline: &Timeline, known: &BTreeMap<u64, String>) -> BTreeMap<Id, u32> {
        let mut of_ids = BTreeMap::new();
        for chain in &timeline.chains {
            let mut set = 0;
            for request in &timeline.requests[chain.requests.start as usize..chain.requests.end as usize] {
                let inputs = || request.inputs.clone();
                let is_prompt = |block: &u32| timeline.blocks[*block as usize].kind == BlockKind::Human;
                if inputs().any(|block| is_prompt(&block)) {
                    let named = inputs().filter(is_prompt).flat_map(|block| named(timeline, known, block)).collect();
                    set = self.number(named);
                }
                let calls = request.outputs.clone().map(|block| timeline.blocks[block as usize].call);
                let calls = calls.filter(|call| set > 0 && *call != NONE);
                of_ids.extend(calls.map(|call| (timeline.calls[call as usize].id, set)));
            }
        }
        of_ids
    }

    fn number(&mut self, named: BTreeSet<String>) -> u32 {
        let known = self.sets.iter().position(|set| *set == named);
        known.unwrap_or_else(|| {
            self.sets.push(named);
            self.sets.len() - 1
        }) as u32
    }
}

/// Keywords in one block.
fn named<'k>(
    timeline: &'k Timeline,
    known: &'k BTreeMap<u64, String>,
    block: u32,
) -> impl Iterator<Item = String> + use<'k> {
    let place = timeline.utterances.binary_search_by_key(&block, |utterance| utterance.block);
    let words = place.map_or(0..0, |place| timeline.utterances[place].words.clone());
    timeline.words.of(words).filter_map(|word| known.get(&word.hash).cloned())
}

/// The words that keywords can be, by hash.
fn words_of_fields<'m>(models: impl IntoIterator<Item = &'m ToolModel>) -> BTreeMap<u64, String> {
    let groups = models.into_iter().flat_map(|model| model.field_groups.values());
    let fields = groups.filter(|group| !group.default_include).flat_map(|group| &group.fields);
    fields.flat_map(|field| words::words(field)).map(|word| (word.hash(), word.text().into_owned())).collect()
}

/// The line that announces which tools were called ahead, to stand behind an answer; empty if none was. Arguments are as
/// long as it shows them, since their text is gone.
pub fn prefetch_hint<'t>(tools: impl IntoIterator<Item = &'t str>, numbers: &TextNumbers) -> String {
    let argument = "x".repeat(numbers.argument_chars_max);
    let calls: Vec<String> = tools.into_iter().map(|tool| format!("{tool}({argument})")).collect();
    if calls.is_empty() {
        return String::new();
    }
    let calls = calls.join(", ");
    format!("\n\n> [enrichment: pre-fetched {calls} in background — call as usual, results served from cache]")
}
