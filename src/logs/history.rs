//! What happened: every session, chain, message and call once, in order, whatever copies the logs hold.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::body_shape::Showing;
use crate::base::id::{Id, IdMap, IdSet};
use crate::base::names::{Names, Sym};
use crate::logs::message_sums::MessageSums;
use crate::logs::trace::{Handle, Millis, NO_TIME, Place, ResultKind, Status, Usage, earlier, is_within};
use crate::logs::vocabulary::Vocabulary;

/// One tool call.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Call {
    /// The `tool_use` id.
    pub id: Id,
    /// The message that asks for it, `message.id` or what stands for it: other makers' models give ids of calls again.
    pub message: Id,
    pub tool: Sym,
    /// Index into [`History::chains`].
    pub chain: u32,
    /// Number of the API message within its chain; calls of one step were made in parallel.
    pub step: u32,
    /// Number of the context partition within its chain.
    pub partition: u32,
    /// Number of the turn within its chain: it rises where a person wrote something between two calls.
    pub turn: u32,
    /// When it was asked.
    pub ts: Millis,
    /// From the record of the call to the record of the result; includes waiting for permission.
    pub latency_ms: Option<u32>,
    pub status: Status,
    /// What came back.
    pub kind: ResultKind,
    /// Code points of the text that came back.
    pub chars: u32,
    pub bytes: u32,
    /// Name of the same.
    pub body: Id,
    /// Number of its [`crate::base::body_shape::BodyShape`].
    pub shape: u8,
    pub endpoint: Sym,
    /// Whether its text is one by which the tool says that there was nothing ([`History::find_empty_answers`]).
    pub says_nothing: bool,
}

/// What a call asks for besides: few questions need it, and it is a third of what is known of calls.
#[derive(Clone, Copy, Default, PartialEq, Debug)]
pub struct CallDetails {
    /// Length of the input as JSON, in bytes.
    pub input_bytes: u32,
    /// Pseudonym of the file that it names.
    pub path: Id,
    /// Its name in telemetry and hints.
    pub handle: Handle,
    /// How the result shows the text of files, as far as the input tells.
    pub showing: Showing,
    /// The lines that it asks for: the first one, and how many; 0 where the input does not say.
    pub lines: [u32; 2],
}

impl Call {
    /// Whether it ended well and brought nothing: no content, or only the words for that.
    pub fn is_empty(&self) -> bool {
        self.status == Status::Ok && (self.kind == ResultKind::Empty || self.says_nothing)
    }

    /// When its result came; when it was asked, if that is not known.
    pub fn answered_at(&self) -> Millis {
        if self.ts == NO_TIME { NO_TIME } else { self.ts.saturating_add(self.latency_ms.unwrap_or(0).into()) }
    }

    /// Whether the tool ran and answered, well or badly: only then do size and latency tell something about it.
    pub fn ran(&self) -> bool {
        matches!(self.status, Status::Ok | Status::Error)
    }
}

/// A main thread or a subagent: what one reader has in its context.
#[derive(Clone, PartialEq, Debug)]
pub struct Chain {
    /// Index into [`History::sessions`].
    pub session: u32,
    /// Subagent id, the root record of an inline side chain, or none on the main thread.
    pub agent: Id,
    /// Where it was recorded.
    pub place: Place,
    /// Its calls in [`History::calls`].
    pub calls: Range<usize>,
    /// Compactions, each once, in order.
    pub compactions: Vec<Compaction>,
}

/// The end of a context of a chain.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Compaction {
    /// The number of the partition that begins behind it; behind the last call a number that no call has.
    pub partition: u32,
    pub ts: Millis,
}

/// A session: a main thread and its subagents.
#[derive(Clone, PartialEq, Debug)]
pub struct Session {
    /// Pseudonym of `sessionId`.
    pub id: Id,
    /// Pseudonym of the directory it began in.
    pub project: Id,
    /// Pseudonym of that directory's name.
    pub project_name: Id,
    /// Latest client version.
    pub version: Sym,
    pub ts_first: Millis,
    pub ts_last: Millis,
}

/// One API message, over all copies of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Message {
    /// `message.id`, or what stands for it.
    pub id: Id,
    pub model: Sym,
    /// Index into [`History::sessions`].
    pub session: u32,
    /// Earliest record.
    pub ts: Millis,
    /// Per-field maximum over the copies.
    pub usage: Usage,
    /// False for records that are no API call: `<synthetic>` ones, and those without usage.
    pub billed: bool,
    /// Subagent that asked for it; none on the main thread and in side chains without an id.
    pub agent: Id,
    /// Where it was recorded; the output of [`Place::Progress`] is unknown.
    pub place: Place,
    /// Whether a `stop_reason` arrived; otherwise output is a lower bound.
    pub finished: bool,
}

impl Message {
    /// Tokens that went in, read from the cache or not.
    pub fn prompt_tokens(&self) -> u64 {
        self.usage.input + self.usage.cache_creation + self.usage.cache_read
    }

    /// Whether it was billed for something.
    pub fn has_cost(&self) -> bool {
        self.tells_prompt() && (self.prompt_tokens() > 0 || self.usage.output > 0)
    }

    /// Whether its usage says what went in: that of a first chunk, which progress records have, does.
    pub fn tells_prompt(&self) -> bool {
        self.billed || self.place == Place::Progress
    }
}

/// A tool result that went out of its chain's context, alone or with others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Eviction {
    /// Index into [`History::chains`].
    pub chain: u32,
    /// Index into [`History::calls`] of the first call made after the eviction (or the end of the chain).
    pub before: usize,
    /// The call whose result went.
    pub call: usize,
    /// Whether the conversation left it behind: it went back to before it, or began anew. Else a micro-compaction cleared it, perhaps after it had been
    /// left.
    pub is_left: bool,
}

/// What was merged or set aside while the copies became one history.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Merged {
    /// Records of a message beyond its first.
    pub duplicate_message: u64,
    /// Copies of a call beyond the one that counts.
    pub duplicate_call: u64,
    /// Calls in progress records of subagents that have a better record.
    pub superseded_progress: u64,
    /// Results whose call is nowhere in the input.
    pub orphan_result: u64,
    /// Files that are no session logs.
    pub sidecar_files: u64,
}

impl Merged {
    /// Adds what was merged elsewhere.
    pub fn add(&mut self, other: &Self) {
        let Self { duplicate_message, duplicate_call, superseded_progress, orphan_result, sidecar_files } = other;
        self.duplicate_message += duplicate_message;
        self.duplicate_call += duplicate_call;
        self.superseded_progress += superseded_progress;
        self.orphan_result += orphan_result;
        self.sidecar_files += sidecar_files;
    }
}

/// Where calls stand in a list, by id; of several with one id, by the message as well that asks for each.
#[derive(Default)]
pub struct CallIndex {
    by_id: IdMap<Id, usize>,
    again: IdMap<(Id, Id), usize>,
}

impl CallIndex {
    /// Looks at every call.
    pub fn of(calls: &[Call]) -> Self {
        let by_id = IdMap::with_capacity_and_hasher(calls.len(), Default::default());
        let mut index = Self { by_id, again: IdMap::default() };
        for (place, call) in calls.iter().enumerate() {
            if let Some(before) = index.by_id.insert(call.id, place) {
                index.again.extend([before, place].map(|place| ((call.id, calls[place].message), place)));
            }
        }
        index
    }

    /// The call of this id that a message asks for, else the last one of this id.
    pub fn find(&self, id: Id, message: Id) -> Option<usize> {
        self.again.get(&(id, message)).or_else(|| self.by_id.get(&id)).copied()
    }

    /// The one call of this id among these; none where several have it.
    pub fn only(&self, id: Id, calls: &[Call]) -> Option<usize> {
        let is_alone = |place: &usize| !self.again.contains_key(&(id, calls[*place].message));
        self.by_id.get(&id).copied().filter(is_alone)
    }
}

/// The whole history.
#[derive(Clone, Default, PartialEq, Debug)]
pub struct History {
    /// Sessions, by id.
    pub sessions: Vec<Session>,
    /// Chains, by session, then main thread first, then by agent id.
    pub chains: Vec<Chain>,
    /// Calls, chain by chain in order; those of a part of a history are those of the whole.
    pub calls: Arc<Vec<Call>>,
    /// By call; none where nobody asks for them.
    pub details: Arc<Vec<CallDetails>>,
    /// Messages, by id.
    pub messages: Vec<Message>,
    /// What those come to that are not among them any more ([`Self::sum_messages`]).
    pub message_sums: MessageSums,
    /// Evictions, in order.
    pub evictions: Vec<Eviction>,
    /// What people wrote, each once: the session (an index into [`History::sessions`]) and the time; in order.
    pub prompts: Vec<(u32, Millis)>,
    /// Compactions of threads in which no tool was called, which have no chain: the session and the time; in order.
    pub talk_compactions: Vec<(u32, Millis)>,
    pub merged: Merged,
    /// Of a window: what the last request before it held, by reader.
    pub held_before: BTreeMap<Reader, u64>,
}

/// Whose context a request is: the session, whether it is a subagent's, and which one.
pub type Reader = (Id, bool, Id);

impl History {
    /// Lets go of the messages, for whoever only asks what they come to.
    pub fn sum_messages(&mut self) {
        self.message_sums = self.summed_messages();
        self.messages = Vec::new();
    }

    /// What all messages come to.
    pub fn summed_messages(&self) -> MessageSums {
        let mut sums = self.message_sums.clone();
        self.messages.iter().for_each(|message| sums.see(message));
        sums
    }

    /// The reader of a message.
    pub fn reader(&self, message: &Message) -> Reader {
        (self.sessions[message.session as usize].id, message.place != Place::Main, message.agent)
    }

    /// Marks the answers by which tools say that there was nothing. What such a text says depends on the tool, so it is looked up
    /// when a call and its answer are together.
    pub fn find_empty_answers(&mut self, vocabulary: &Vocabulary, names: &Names) {
        let of_tool = |tool: &String| vocabulary.empty_answers_of(tool).collect::<IdSet<Id>>();
        let words: Vec<IdSet<Id>> = names.texts().iter().map(of_tool).collect();
        for call in Arc::make_mut(&mut self.calls) {
            call.says_nothing = words[call.tool.0 as usize].contains(&call.body);
        }
    }

    /// Gives every call of a tool another tool's name.
    pub fn rename_tool(&mut self, old: Sym, new: Sym) {
        for call in Arc::make_mut(&mut self.calls).iter_mut().filter(|call| call.tool == old) {
            call.tool = new;
            if call.endpoint == old {
                call.endpoint = new;
            }
        }
    }

    /// First and last timestamp of all sessions.
    pub fn span(&self) -> Option<(Millis, Millis)> {
        let known = || self.sessions.iter().filter(|session| session.ts_first != NO_TIME);
        Some((known().map(|s| s.ts_first).min()?, known().map(|s| s.ts_last).max()?))
    }

    /// Compactions of all threads.
    pub fn compactions(&self) -> u64 {
        let of_chains = self.chains.iter().map(|chain| chain.compactions.len());
        (of_chains.sum::<usize>() + self.talk_compactions.len()) as u64
    }

    /// Keeps what lies in the window: calls and messages by their own time (those without one stay only in an open
    /// window), compactions and prompts as well, chains with calls and sessions with anything left.
    #[must_use]
    pub fn within(mut self, window: &Range<Millis>) -> Self {
        if *window == (Millis::MIN..Millis::MAX) {
            return self;
        }
        let keep: Vec<bool> = self.calls.iter().map(|call| is_within(window, call.ts)).collect();
        let place = places(&keep);
        let mut kept = keep.iter();
        let all_calls = Arc::make_mut(&mut self.calls);
        all_calls.retain(|_| kept.next() == Some(&true));
        let mut kept = keep.iter();
        Arc::make_mut(&mut self.details).retain(|_| kept.next() == Some(&true));
        for chain in &mut self.chains {
            chain.calls = place[chain.calls.start]..place[chain.calls.end];
            if chain.calls.is_empty() {
                let talk = std::mem::take(&mut chain.compactions).into_iter().map(|one| (chain.session, one.ts));
                self.talk_compactions.extend(talk);
            }
            chain.compactions.retain(|one| is_within(window, one.ts));
            // What ended before the window is none of its partitions.
            let calls = &mut all_calls[chain.calls.clone()];
            let first = calls.iter().map(|call| call.partition).min().unwrap_or_default();
            calls.iter_mut().for_each(|call| call.partition -= first);
            chain.compactions.iter_mut().for_each(|one| one.partition = one.partition.saturating_sub(first));
        }
        self.talk_compactions.sort_unstable();
        self.evictions.retain(|eviction| keep[eviction.call]);
        for eviction in &mut self.evictions {
            eviction.before = place[eviction.before];
            eviction.call = place[eviction.call];
        }
        let mut last: BTreeMap<Reader, (Millis, u64)> = BTreeMap::new();
        let is_before =
            |message: &&Message| message.tells_prompt() && (NO_TIME + 1..window.start).contains(&message.ts);
        for message in self.messages.iter().filter(is_before) {
            let here = (message.ts, message.prompt_tokens());
            let known = last.entry(self.reader(message)).or_insert(here);
            *known = here.max(*known);
        }
        self.held_before = last.into_iter().map(|(reader, (_, tokens))| (reader, tokens)).collect();
        self.messages.retain(|message| is_within(window, message.ts));
        for times in [&mut self.prompts, &mut self.talk_compactions] {
            times.retain(|(_, ts)| is_within(window, *ts));
        }
        self.drop_empty();
        self
    }

    /// The same with the calls of the chosen sessions only. Sessions and chains keep their numbers: those of the others have no
    /// calls, compactions and times, and the times of the chosen ones are those of their calls. Messages and evictions stay
    /// behind.
    #[must_use]
    pub fn of_sessions(&self, chosen: &[bool]) -> Self {
        let nowhere = |session: &Session| Session { ts_first: NO_TIME, ts_last: NO_TIME, ..session.clone() };
        let mut sessions: Vec<Session> = self.sessions.iter().map(nowhere).collect();
        let mut chains = self.chains.clone();
        for chain in &mut chains {
            if !chosen[chain.session as usize] {
                (chain.calls, chain.compactions) = (0..0, Vec::new());
            }
            let session = &mut sessions[chain.session as usize];
            for call in &self.calls[chain.calls.clone()] {
                session.ts_first = earlier(session.ts_first, call.ts);
                session.ts_last = session.ts_last.max(call.ts);
            }
        }
        let (calls, details) = (Arc::clone(&self.calls), Arc::clone(&self.details));
        Self { sessions, chains, calls, details, ..Self::default() }
    }

    /// The calls with their details.
    pub fn detailed_calls(&self) -> impl Iterator<Item = (&Call, &CallDetails)> {
        assert_eq!(self.calls.len(), self.details.len(), "nobody was to ask for details");
        self.calls.iter().zip(&*self.details)
    }

    /// The calls of all chains, with their places.
    pub fn calls_of_chains(&self) -> impl Iterator<Item = (usize, &Call)> + Clone {
        self.chains.iter().flat_map(|chain| chain.calls.clone().zip(&self.calls[chain.calls.clone()]))
    }

    /// Drops chains without calls and sessions of which nothing is left; spans are those of calls and messages, and of what else
    /// is left where there are none.
    fn drop_empty(&mut self) {
        let keep: Vec<bool> = self.chains.iter().map(|chain| !chain.calls.is_empty()).collect();
        let place = places(&keep);
        let mut kept = keep.iter();
        self.chains.retain(|_| kept.next() == Some(&true));
        let calls = Arc::make_mut(&mut self.calls);
        calls.iter_mut().for_each(|call| call.chain = place[call.chain as usize] as u32);
        self.evictions.iter_mut().for_each(|eviction| eviction.chain = place[eviction.chain as usize] as u32);
        let mut spans: Vec<Option<(Millis, Millis)>> = vec![None; self.sessions.len()];
        let mut extend = |session: u32, ts: Millis| {
            let (first, last) = spans[session as usize].get_or_insert((ts, ts));
            (*first, *last) = (earlier(*first, ts), (*last).max(ts));
        };
        let of_calls = self.calls.iter().map(|call| (self.chains[call.chain as usize].session, call.ts));
        let answered = || of_calls.clone().chain(self.messages.iter().map(|message| (message.session, message.ts)));
        answered().for_each(|(session, ts)| extend(session, ts));
        let has_answers: IdSet<u32> = answered().map(|(session, _)| session).collect();
        let talk =
            self.prompts.iter().chain(&self.talk_compactions).filter(|(session, _)| !has_answers.contains(session));
        talk.for_each(|&(session, ts)| extend(session, ts));
        let kept: Vec<bool> = spans.iter().map(Option::is_some).collect();
        let place = places(&kept);
        let sessions = std::mem::take(&mut self.sessions).into_iter().zip(spans);
        let spanned = sessions.filter_map(|(session, span)| Some((session, span?)));
        self.sessions =
            spanned.map(|(session, (ts_first, ts_last))| Session { ts_first, ts_last, ..session }).collect();
        self.chains.iter_mut().for_each(|chain| chain.session = place[chain.session as usize] as u32);
        self.messages.iter_mut().for_each(|message| message.session = place[message.session as usize] as u32);
        for times in [&mut self.prompts, &mut self.talk_compactions] {
            times.iter_mut().for_each(|(session, _)| *session = place[*session as usize] as u32);
        }
    }
}

/// Where each element goes when only those marked are kept; the last entry is their number.
fn places(keep: &[bool]) -> Vec<usize> {
    let mut kept = 0;
    let mut places = Vec::with_capacity(keep.len() + 1);
    for &keep in keep {
        places.push(kept);
        kept += usize::from(keep);
    }
    places.push(kept);
    places
}
