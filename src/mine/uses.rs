//! How models and sessions were used: the rows behind the rules that pin profiles.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::base::names::Names;
use crate::base::stats::{ModelUse, SessionUse};
use crate::logs::history::History;
use crate::telemetry::log::{LogPart, RecordedEvent};

/// API messages by model id, `<synthetic>` and unbilled records left out; sorted by id.
pub fn models(history: &History, names: &Names) -> Vec<ModelUse> {
    let mut uses: BTreeMap<&str, ModelUse> = BTreeMap::new();
    for message in history.messages.iter().filter(|message| message.billed) {
        let id = names.text(message.model);
        if id.is_empty() {
            continue;
        }
        let row = uses.entry(id).or_insert(ModelUse { id: id.to_owned(), messages: 0, prompt_tokens_max: 0 });
        let usage = &message.usage;
        row.messages += 1;
        row.prompt_tokens_max = row.prompt_tokens_max.max(usage.input + usage.cache_creation + usage.cache_read);
    }
    uses.into_values().collect()
}

/// Sessions by their calls; `read_class` lists the tools that only read.
pub fn sessions(history: &History, names: &Names, read_class: &BTreeSet<String>) -> Vec<SessionUse> {
    let mut uses = vec![SessionUse { calls: 0, read_calls: 0, compactions: 0, class: "" }; history.sessions.len()];
    for chain in &history.chains {
        let row = &mut uses[chain.session as usize];
        row.compactions += chain.compactions.len() as u64;
        for call in &history.calls[chain.calls.clone()] {
            row.calls += 1;
            row.read_calls += u64::from(read_class.contains(names.text(call.tool)));
        }
    }
    for (session, _) in &history.talk_compactions {
        uses[*session as usize].compactions += 1;
    }
    uses
}

/// Sessions by their recorded responses, session by session of a sorted log; numbers are weighted and rounded.
pub fn sessions_of_events(part: &LogPart<'_>, read_class: &BTreeSet<String>) -> Vec<SessionUse> {
    let log = part.log;
    let reads: Vec<bool> = log.names.texts().iter().map(|name| read_class.contains(name)).collect();
    let mut uses = vec![SessionUse { calls: 0, read_calls: 0, compactions: 0, class: "" }; log.sessions.len()];
    for ((session, row), compactions) in (0..).zip(&mut uses).zip(log.compactions()) {
        row.compactions = if part.has(session) { compactions } else { 0 };
    }
    let counted = |session: &[RecordedEvent]| {
        let weight = |event: &RecordedEvent| event.weight;
        let read = session.iter().filter(|event| reads[event.tool.0 as usize]);
        [session.iter().map(weight).sum::<f64>(), read.map(weight).sum()].map(|calls| calls.round() as u64)
    };
    let sessions: Vec<&[RecordedEvent]> = part.sessions().collect();
    let counts: Vec<[u64; 2]> = sessions.par_iter().map(|session| counted(session)).collect();
    for (session, [calls, read_calls]) in sessions.iter().zip(counts) {
        let row = &mut uses[session[0].session as usize];
        (row.calls, row.read_calls) = (calls, read_calls);
    }
    uses
}
