//! The histories of families as one: they share no session, call or message.

use std::sync::Arc;

use rayon::prelude::*;

use crate::base::order::{places, put_in_place};
use crate::logs::corpus::SourceRows;
use crate::logs::history::{Call, CallDetails, History};
use crate::logs::trace::put_behind;
use crate::logs::values::CallBlocks;

/// Histories behind each other.
pub(super) struct JoinedHistory {
    /// All but the calls.
    history: History,
    calls: Vec<Call>,
    details: Vec<CallDetails>,
    /// Where the values of the calls stand, if somebody wants to know, and the place of each log there.
    blocks: Option<(CallBlocks, Vec<u32>)>,
}

impl JoinedHistory {
    /// With room for all that so many families may come to, of so many rows of calls, details of calls and messages: rows that
    /// grow are in memory twice. Those of an only family are taken over as they stand.
    pub(super) fn of(
        families: usize,
        [calls, details, messages]: [usize; 3],
        blocks: Option<(CallBlocks, Vec<u32>)>,
    ) -> Self {
        let mut joined = Self { history: History::default(), calls: Vec::new(), details: Vec::new(), blocks };
        if families != 1 {
            joined.calls.reserve_exact(calls);
            joined.details.reserve_exact(details);
            joined.history.messages.reserve_exact(messages);
        }
        joined
    }

    /// Where the values of the calls of a family stand, if somebody wants to know.
    pub(super) fn values_of<'l>(
        &self,
        family: impl Iterator<Item = (usize, &'l SourceRows)>,
        part: &History,
    ) -> Option<CallBlocks> {
        let (_, ranks) = self.blocks.as_ref()?;
        Some(CallBlocks::among(family.map(|(place, log)| (log, ranks[place])), &part.calls))
    }

    /// Puts a history behind the others, with where its values stand.
    pub(super) fn add(&mut self, mut part: History, values: Option<CallBlocks>) {
        let history = &mut self.history;
        let (sessions, chains, calls) = (history.sessions.len() as u32, history.chains.len() as u32, self.calls.len());
        for chain in &mut part.chains {
            chain.session += sessions;
            chain.calls = chain.calls.start + calls..chain.calls.end + calls;
        }
        let of_part = Arc::make_mut(&mut part.calls);
        of_part.iter_mut().for_each(|call| call.chain += chains);
        part.messages.iter_mut().for_each(|message| message.session += sessions);
        part.message_sums.renumber_sessions(|session| session + sessions);
        for eviction in &mut part.evictions {
            eviction.chain += chains;
            eviction.before += calls;
            eviction.call += calls;
        }
        for times in [&mut part.prompts, &mut part.talk_compactions] {
            times.iter_mut().for_each(|(session, _)| *session += sessions);
        }
        put_behind(&mut self.calls, std::mem::take(of_part));
        put_behind(&mut self.details, std::mem::take(Arc::make_mut(&mut part.details)));
        history.sessions.append(&mut part.sessions);
        history.chains.append(&mut part.chains);
        put_behind(&mut history.messages, part.messages);
        history.message_sums.add(part.message_sums);
        history.evictions.append(&mut part.evictions);
        history.prompts.append(&mut part.prompts);
        history.talk_compactions.append(&mut part.talk_compactions);
        history.merged.add(&part.merged);
        if let Some(((blocks, _), values)) = self.blocks.as_mut().zip(values) {
            blocks.append(values);
        }
    }

    /// Brings everything into the order of a history: sessions by id, and with each its chains and their calls.
    pub(super) fn finish(self) -> (History, Option<CallBlocks>) {
        let Self { mut history, mut calls, mut details, blocks } = self;
        let sessions = places(history.sessions.len(), |&session| history.sessions[session as usize].id);
        history.chains.iter_mut().for_each(|chain| chain.session = sessions[chain.session as usize]);
        let chains = places(history.chains.len(), |&chain| history.chains[chain as usize].session);
        calls.iter_mut().for_each(|call| call.chain = chains[call.chain as usize]);
        let calls_to = places(calls.len(), |&call| calls[call as usize].chain);
        for eviction in &mut history.evictions {
            let place = calls_to[eviction.call] as usize;
            eviction.chain = chains[eviction.chain as usize];
            // The calls of a session stay side by side.
            eviction.before = eviction.before + place - eviction.call;
            eviction.call = place;
        }
        for times in [&mut history.prompts, &mut history.talk_compactions] {
            times.iter_mut().for_each(|(session, _)| *session = sessions[*session as usize]);
            times.sort_unstable();
        }
        history.message_sums.renumber_sessions(|session| sessions[session as usize]);
        history.evictions.sort_unstable();
        let mut messages = std::mem::take(&mut history.messages);
        let in_order = || {
            messages.iter_mut().for_each(|message| message.session = sessions[message.session as usize]);
            messages.par_sort_unstable_by_key(|message| message.id);
        };
        let calls_in_place = || {
            let blocks = blocks.map(|(mut blocks, _)| {
                blocks.reorder(&calls_to);
                blocks
            });
            if !details.is_empty() {
                put_in_place(&mut details, calls_to.clone());
            }
            put_in_place(&mut calls, calls_to);
            blocks
        };
        let ((), blocks) = rayon::join(in_order, calls_in_place);
        history.messages = messages;
        put_in_place(&mut history.sessions, sessions);
        put_in_place(&mut history.chains, chains);
        let mut end = 0;
        for chain in &mut history.chains {
            chain.calls = end..end + chain.calls.len();
            end = chain.calls.end;
        }
        (History { calls: calls.into(), details: details.into(), ..history }, blocks)
    }
}
