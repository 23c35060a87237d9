//! Sessions in a row each; how models and sessions were used, for the rules that pin profiles; and how many tokens entered
//! the contexts of all readers, by the usage that the logs carry: the whole of which tool responses are a part.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use crate::base::names::{Names, Sym};
use crate::base::stats::{ModelUse, SessionUse};
use crate::frames::tool_use::SessionRowSummary;
use crate::logs::history::{History, Reader};
use crate::logs::trace::{Millis, NO_TIME, Place};
use crate::telemetry::log::{LogPart, RecordedEvent};

/// One row per session, by its first time, then by pseudonym; `read_class` lists the tools that only read.
pub fn sessions(history: &History, names: &Names, read_class: &BTreeSet<String>) -> Vec<SessionRowSummary> {
    let time = |ts: Millis| (ts != NO_TIME).then_some(ts);
    let mut rows: Vec<SessionRowSummary> = history
        .sessions
        .iter()
        .map(|session| SessionRowSummary {
            session: session.id.to_string(),
            project: session.project.to_string(),
            first_ms: time(session.ts_first),
            last_ms: time(session.ts_last),
            ..SessionRowSummary::default()
        })
        .collect();
    // The first call of each main thread's session, and its first prompt.
    let (mut called, mut wrote) = (vec![None::<Millis>; rows.len()], vec![None::<Millis>; rows.len()]);
    let first = |known: &mut Option<Millis>, ts: Millis| *known = Some(known.map_or(ts, |known| known.min(ts)));
    for chain in &history.chains {
        let row = &mut rows[chain.session as usize];
        let calls = &history.calls[chain.calls.clone()];
        row.chains += 1;
        row.subagents += u64::from(chain.place != Place::Main);
        row.compactions += chain.compactions.len() as u64;
        row.calls += calls.len() as u64;
        row.read_calls += calls.iter().filter(|call| read_class.contains(names.text(call.tool))).count() as u64;
        row.response_bytes += calls.iter().map(|call| u64::from(call.bytes)).sum::<u64>();
        if chain.place == Place::Main {
            calls.iter().for_each(|call| first(&mut called[chain.session as usize], call.ts));
        }
    }
    for (session, ts) in &history.prompts {
        rows[*session as usize].turns += 1;
        first(&mut wrote[*session as usize], *ts);
    }
    for (session, _) in &history.talk_compactions {
        rows[*session as usize].compactions += 1;
    }
    // What was done before the first prompt that is known makes a turn of its own.
    for (row, (called, wrote)) in rows.iter_mut().zip(called.into_iter().zip(wrote)) {
        row.turns +=
            u64::from(called.is_some_and(|called| wrote.is_none_or(|wrote| NO_TIME < called && called < wrote)));
    }
    for message in history.messages.iter().filter(|message| message.billed) {
        let row = &mut rows[message.session as usize];
        row.messages += 1;
        row.input_tokens += message.usage.input;
        row.output_tokens += message.usage.output;
        row.cache_creation_tokens += message.usage.cache_creation;
        row.cache_read_tokens += message.usage.cache_read;
    }
    for (row, models) in rows.iter_mut().zip(models(history, names)) {
        row.models = models.into_iter().map(str::to_owned).collect();
    }
    rows.sort_by(|a, b| (a.first_ms, &a.session).cmp(&(b.first_ms, &b.session)));
    rows
}

/// Tokens that entered a context: of every reader (main thread or subagent, also one that only progress records tell of) the
/// sum of all growth from one request to the next, the first request counting whole; of a reader that was at work before the
/// window, only what came since. An estimate: side chains without an id are taken for one reader, and a compaction's summary
/// counts only as far as the context grows beyond it.
pub fn tokens_entered(history: &History) -> u64 {
    let mut readers: BTreeMap<Reader, Vec<(Millis, u64)>> = BTreeMap::new();
    for message in history.messages.iter().filter(|message| message.tells_prompt()) {
        readers.entry(history.reader(message)).or_default().push((message.ts, message.prompt_tokens()));
    }
    readers.into_iter().map(|(reader, requests)| growth(history.held_before.get(&reader).copied(), requests)).sum()
}

fn growth(held: Option<u64>, mut requests: Vec<(Millis, u64)>) -> u64 {
    requests.sort_unstable();
    let mut last = held.unwrap_or_default();
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
    let most = |models: Vec<&str>| models.first().copied().unwrap_or_default().to_owned();
    models(history, names).map(most).collect()
}

/// The models that answered in each session, by billed messages: the most used first, of equals the first by name.
fn models<'n>(history: &History, names: &'n Names) -> impl Iterator<Item = Vec<&'n str>> {
    let mut counts: Vec<BTreeMap<Sym, u64>> = vec![BTreeMap::new(); history.sessions.len()];
    for message in history.messages.iter().filter(|message| message.billed) {
        *counts[message.session as usize].entry(message.model).or_default() += 1;
    }
    counts.into_iter().map(|counts| {
        let mut models: Vec<(Sym, u64)> = counts.into_iter().collect();
        models.sort_unstable_by_key(|&(model, count)| (std::cmp::Reverse(count), names.text(model)));
        models.into_iter().map(|(model, _)| names.text(model)).collect()
    })
}

/// API messages by model id, `<synthetic>` and unbilled records left out; sorted by id.
pub fn model_uses(history: &History, names: &Names) -> Vec<ModelUse> {
    let mut uses: BTreeMap<&str, ModelUse> = BTreeMap::new();
    for ((model, session), (messages, prompt_tokens)) in history.summed_messages().models {
        let id = names.text(model);
        let row = uses.entry(id).or_insert_with(|| ModelUse { id: id.to_owned(), ..ModelUse::default() });
        row.messages += messages;
        *row.of_sessions.entry(session).or_default() += messages;
        row.prompt_tokens_max = row.prompt_tokens_max.max(prompt_tokens);
    }
    uses.remove("");
    uses.into_values().collect()
}

/// Sessions by their calls; `read_class` lists the tools that only read.
pub fn session_uses(history: &History, names: &Names, read_class: &BTreeSet<String>) -> Vec<SessionUse> {
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

/// Sessions by their recorded calls, session by session of a sorted log; numbers are weighted and rounded. Sessions without a
/// response count none.
pub fn session_uses_of_events(part: &LogPart<'_>, read_class: &BTreeSet<String>) -> Vec<SessionUse> {
    let log = part.log;
    let reads: Vec<bool> = log.names.texts().iter().map(|name| read_class.contains(name)).collect();
    let mut uses = vec![SessionUse { calls: 0, read_calls: 0, compactions: 0, class: "" }; log.sessions.len()];
    for ((session, row), compactions) in (0..).zip(&mut uses).zip(log.compactions()) {
        row.compactions = if part.has(session) { compactions } else { 0 };
    }
    let counted = |session: &[RecordedEvent]| {
        // Calls that failed, or came back empty, are a part of how a session was worked in.
        let calls = || session.iter().chain(log.calls_beside(session[0].session));
        let weight = |event: &RecordedEvent| event.weight;
        let read = calls().filter(|event| reads[event.tool.0 as usize]);
        [calls().map(weight).sum::<f64>(), read.map(weight).sum()].map(|calls| calls.round() as u64)
    };
    let sessions: Vec<&[RecordedEvent]> = part.sessions().collect();
    let counts: Vec<[u64; 2]> = sessions.par_iter().map(|session| counted(session)).collect();
    for (session, [calls, read_calls]) in sessions.iter().zip(counts) {
        let row = &mut uses[session[0].session as usize];
        (row.calls, row.read_calls) = (calls, read_calls);
    }
    uses
}
