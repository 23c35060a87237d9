//! How many tokens entered the contexts of all readers, by the usage that the logs carry: the whole of which tool
//! responses are a part.

use std::collections::BTreeMap;

use crate::base::id::Id;
use crate::base::names::{Names, Sym};
use crate::logs::history::History;
use crate::logs::trace::{Millis, Place};

/// Tokens that entered a context: of every reader (main thread or subagent) the sum of all growth from one request to
/// the next, the first request counting whole. What a compaction takes out is not counted again.
///
/// An estimate: side chains without an id are taken for one reader, and the summary that a compaction leaves counts only
/// as far as the context grows beyond it.
pub fn tokens_entered(history: &History) -> u64 {
    let mut readers: BTreeMap<(u32, bool, Id), Vec<(Millis, u64)>> = BTreeMap::new();
    for message in history.messages.iter().filter(|message| message.billed) {
        let usage = &message.usage;
        let prompt = usage.input + usage.cache_creation + usage.cache_read;
        let reader = (message.session, message.place != Place::Main, message.agent);
        readers.entry(reader).or_default().push((message.ts, prompt));
    }
    readers.into_values().map(growth).sum()
}

fn growth(mut requests: Vec<(Millis, u64)>) -> u64 {
    requests.sort_unstable();
    let mut last = 0;
    let mut sum = 0;
    for (_, prompt) in requests {
        sum += prompt.saturating_sub(last);
        last = prompt;
    }
    sum
}

/// The model that answered most often in each session, by billed messages; of equals the first by name. Empty where no
/// message is known.
pub fn models_of_sessions(history: &History, names: &Names) -> Vec<String> {
    let mut counts: Vec<BTreeMap<Sym, u64>> = vec![BTreeMap::new(); history.sessions.len()];
    for message in history.messages.iter().filter(|message| message.billed) {
        *counts[message.session as usize].entry(message.model).or_default() += 1;
    }
    let most = |counts: BTreeMap<Sym, u64>| {
        let best = counts.into_iter().max_by_key(|&(model, count)| (count, std::cmp::Reverse(names.text(model))));
        best.map(|(model, _)| names.text(model).to_owned()).unwrap_or_default()
    };
    counts.into_iter().map(most).collect()
}
