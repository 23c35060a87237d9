//! How the counts of the reports go into each other: from one figure to the next, step by step, each step counted by
//! itself. What does not add up is a fault of devboy.

use std::collections::{BTreeSet, HashSet};

use serde::Serialize;

use crate::base::id::{Id, IdMap, IdSet};
use crate::frames::tool_use::{SessionRowSummary, ToolUsages};
use crate::logs::assemble::calls::NamelessCalls;
use crate::logs::assemble::files_of_input;
use crate::logs::copies::FileStanding;
use crate::logs::corpus::{Corpus, SourceRows};
use crate::logs::history::History;
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::{Millis, Place, ResultKind, Status, ToolUse};
use crate::mine::totals::{self, Totals};

/// What there is to reconcile: the same logs as each report sees them, without any window.
pub struct Reconciled<'a> {
    /// The rows of all files.
    pub corpus: &'a Corpus,
    /// Which files another one says all of ([`crate::logs::assemble::standings_of`]).
    pub standings: &'a IdMap<Id, FileStanding>,
    /// `ingest`, the input.
    pub totals: &'a Totals,
    /// `ingest`, what happened.
    pub history: &'a History,
    /// `mine tools`.
    pub tools: &'a ToolUsages,
    /// `mine sessions`.
    pub sessions: &'a [SessionRowSummary],
    pub timeline: &'a Timeline,
    /// Files that are gone and left no timeline, or none of their end.
    pub without_timeline: &'a IdSet<Id>,
}

/// One line of a sum.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct SumStep {
    /// What it adds; negative: what it takes away.
    pub change: i64,
    pub because: &'static str,
}

/// The way from a figure of one report to a figure of another.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Sum {
    pub of: &'static str,
    /// The report that it starts from.
    pub from: &'static str,
    /// Its figure.
    pub start: u64,
    /// What lies between; steps of zero are left out.
    pub steps: Vec<SumStep>,
    /// The report that it leads to.
    pub to: &'static str,
    /// Its figure.
    pub end: u64,
}

impl Sum {
    fn new(
        of: &'static str,
        (from, start): (&'static str, u64),
        steps: &[(i64, &'static str)],
        (to, end): (&'static str, u64),
    ) -> Self {
        let steps = steps.iter().filter(|(change, _)| *change != 0);
        let steps = steps.map(|&(change, because)| SumStep { change, because }).collect();
        Self { of, from, start, steps, to, end }
    }

    /// What is missing at the end; 0 if it adds up.
    pub fn gap(&self) -> i64 {
        let changes: i64 = self.steps.iter().map(|step| step.change).sum();
        self.end as i64 - self.start as i64 - changes
    }
}

const INPUT: &str = "ingest --json, totals";
const HISTORY: &str = "ingest, each once";
const TOOLS: &str = "mine tools";
const SESSIONS: &str = "mine sessions";
const REPLAY: &str = "replay";
const POLICIES: &str = "what-if";
const BILL: &str = "cost, session, the page";

/// All sums.
pub fn reconcile(books: &Reconciled<'_>) -> Vec<Sum> {
    [calls(books), responses(books), messages(books), sessions(books)].concat()
}

impl Reconciled<'_> {
    fn logs(&self) -> impl Iterator<Item = &SourceRows> {
        files_of_input(self.corpus).filter(|file| !file.source.is_sidecar())
    }

    /// What the logs name, and what only other files do.
    fn in_logs_and_aside(&self, named: impl Fn(&SourceRows) -> Vec<Id>) -> (IdSet<Id>, IdSet<Id>) {
        let in_logs: IdSet<Id> = self.logs().flat_map(&named).collect();
        let sidecars = self.corpus.files.iter().filter(|file| file.source.is_sidecar());
        let aside = sidecars.flat_map(&named).filter(|id| !in_logs.contains(id)).collect();
        (in_logs, aside)
    }

    /// Logs that are no copy of another one.
    fn owners(&self) -> impl Iterator<Item = &SourceRows> {
        self.logs().filter(|file| !self.standings[&file.source.key].is_repeated)
    }

    fn has_no_timeline(&self, file: &SourceRows) -> bool {
        self.without_timeline.contains(&file.source.key)
    }

    /// Messages that policies count as requests.
    fn requests(&self) -> IdSet<Id> {
        self.timeline.requests.iter().map(|request| request.id).collect()
    }

    /// What stands in files that left no timeline and in none that did.
    fn only_gone<T: IntoIterator<Item = Id>>(&self, rows: impl Fn(&SourceRows) -> T) -> IdSet<Id> {
        let mut out: IdSet<Id> = self.logs().filter(|file| self.has_no_timeline(file)).flat_map(&rows).collect();
        for id in self.logs().filter(|file| !self.has_no_timeline(file)).flat_map(&rows) {
            out.remove(&id);
        }
        out
    }
}

fn count(number: usize) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The calls that a file records, those without an id among them.
fn asked(file: &SourceRows) -> Vec<Id> {
    totals::asked(file).into_iter().map(|(_, call)| call).collect()
}

/// The messages that asked for calls without an id.
fn askers_of_nameless(file: &SourceRows) -> Vec<Id> {
    let asked = totals::asked(file).into_iter().filter(|(_, call)| !call.is_some());
    asked.map(|(asked, _)| asked.message).collect()
}

/// How many calls without an id no request asked for. A message without any id is known by its thread and time.
fn nameless_of_no_request(file: &SourceRows, requests: &IdSet<Id>) -> usize {
    let unbilled = file.rows.messages.iter().filter(|row| !row.id.is_some() && !row.has_usage);
    let unbilled: HashSet<(u32, Millis)> = unbilled.map(|row| (row.chain, row.ts)).collect();
    let is_left_out = |&ToolUse { message, chain, ts, .. }: &ToolUse| {
        if message.is_some() { !requests.contains(&message) } else { unbilled.contains(&(chain, ts)) }
    };
    totals::asked(file).into_iter().filter(|(asked, call)| !call.is_some() && is_left_out(asked)).count()
}

fn messages_of(file: &SourceRows) -> Vec<Id> {
    file.rows.messages.iter().map(|row| row.id).collect()
}

fn calls(books: &Reconciled<'_>) -> Vec<Sum> {
    let total = books.history.calls.len() as u64;
    let in_tools = books.tools.tools.iter().map(|row| row.calls).sum();
    let in_sessions = books.sessions.iter().map(|row| row.calls).sum();
    vec![
        calls_of_input(books),
        Sum::new("tool calls", (HISTORY, total), &[], (TOOLS, in_tools)),
        Sum::new("tool calls", (HISTORY, total), &[], (SESSIONS, in_sessions)),
        calls_of_policies(books),
    ]
}

fn calls_of_input(books: &Reconciled<'_>) -> Sum {
    let aside: usize =
        books.corpus.files.iter().filter(|file| file.source.is_sidecar()).map(|file| asked(file).len()).sum();
    // One id may stand for several calls, each of another message.
    let all = books.logs().flat_map(totals::asked).filter(|(_, call)| call.is_some());
    let recorded: Vec<(Id, Id)> = all.map(|(asked, call)| (call, asked.message)).collect();
    let distinct: HashSet<(Id, Id)> = recorded.iter().copied().collect();
    let copies = recorded.len() - distinct.len();
    let is_repeated = |file: &&SourceRows| books.standings[&file.source.key].is_repeated;
    let nameless = books.logs().filter(is_repeated).flat_map(asked).filter(|id| !id.is_some()).count();
    let named = |file: &SourceRows| {
        let mut nameless = NamelessCalls::default();
        let calls = totals::asked(file).into_iter().filter(|(_, call)| !call.is_some());
        calls
            .map(|(asked, _)| (nameless.name(asked.message, asked.input_bytes), asked.message))
            .filter(|(name, _)| name.is_some())
            .collect::<Vec<_>>()
    };
    let named: Vec<(Id, Id)> = books.logs().filter(|file| !is_repeated(file)).flat_map(named).collect();
    let nameless = nameless + named.len() - named.iter().collect::<HashSet<_>>().len();
    let in_progress = books.history.calls.iter().filter(|call| {
        let is_progress = books.history.chains[call.chain as usize].place == Place::Progress;
        is_progress && !(call.id.is_some() && distinct.contains(&(call.id, call.message)))
    });
    Sum::new(
        "tool calls",
        (INPUT, books.totals.tool_uses),
        &[
            (-count(aside), "in files that are no session logs"),
            (-count(copies), "copies of calls that stand elsewhere"),
            (-count(nameless), "calls without an id, copies of others"),
            (count(in_progress.count()), "of subagents that are known from progress records only"),
        ],
        (HISTORY, books.history.calls.len() as u64),
    )
}

/// A call is in the policies if the message that asked for it is a request.
fn calls_of_policies(books: &Reconciled<'_>) -> Sum {
    let billed = books.history.messages.iter().filter(|message| message.billed).map(|message| message.id);
    let requests: IdSet<Id> = books.requests().into_iter().chain(billed).collect();
    let rows = books.logs().flat_map(|file| &file.rows.calls).filter_map(|row| Some((row.call, row.asked?)));
    let of_requests: IdSet<Id> =
        rows.filter(|(_, asked)| requests.contains(&asked.message)).map(|(call, _)| call).collect();
    let planned = &books.timeline.calls;
    let in_policies: IdSet<Id> = planned.iter().map(|call| call.id).filter(|id| id.is_some()).collect();
    let mut gone = books.only_gone(asked);
    gone.retain(|id| id.is_some() && !in_policies.contains(id));
    let history = &books.history.calls;
    let named = history.iter().map(|call| call.id).filter(|id| id.is_some() && !gone.contains(id));
    let left_out = named.filter(|id| !of_requests.contains(id) && !in_policies.contains(id)).count();
    // Calls without an id are those of the message that asked for them.
    let (lost, read): (Vec<&SourceRows>, _) = books.owners().partition(|file| books.has_no_timeline(file));
    let nameless_gone = lost.into_iter().flat_map(askers_of_nameless).count();
    let nameless_left: usize = read.into_iter().map(|file| nameless_of_no_request(file, &requests)).sum();
    // One id may stand for several calls; a message without any id is one of its own in every file.
    let known = history.iter().filter(|call| in_policies.contains(&call.id)).count();
    let twice = planned.iter().filter(|call| call.id.is_some()).count() as i64 - known as i64;
    Sum::new(
        "tool calls",
        (HISTORY, history.len() as u64),
        &[
            (
                -count(left_out + nameless_left) + twice.min(0),
                "of messages without usage, or written by the client itself",
            ),
            (-count(gone.len() + nameless_gone), "in deleted logs that no policy read while they were there"),
            (twice.max(0), "that stand twice in their message"),
        ],
        (POLICIES, planned.len() as u64),
    )
}

fn responses(books: &Reconciled<'_>) -> Vec<Sum> {
    let history = &books.history.calls;
    let of = |is: &dyn Fn(&&crate::logs::history::Call) -> bool| count(history.iter().filter(is).count());
    let open = of(&|call| call.status == Status::Unanswered);
    let has_text = |kind| matches!(kind, ResultKind::Text | ResultKind::Mixed);
    let empty =
        of(&|call| call.status != Status::Unanswered && matches!(call.kind, ResultKind::Empty | ResultKind::Absent));
    let images = of(&|call| call.status != Status::Unanswered && call.kind == ResultKind::NonText);
    let texts = of(&|call| call.status != Status::Unanswered && has_text(call.kind));
    vec![Sum::new(
        "responses",
        (HISTORY, history.len() as u64),
        &[
            (-open, "calls that nothing answered"),
            (-empty, "results without any content"),
            (-images, "results of images or references only"),
        ],
        (REPLAY, texts as u64),
    )]
}

fn messages(books: &Reconciled<'_>) -> Vec<Sum> {
    let with_usage = |file: &SourceRows| {
        let billed = file.rows.messages.iter().filter(|row| row.has_usage && row.has_id);
        billed.map(|row| row.id).collect::<Vec<Id>>()
    };
    let (in_logs, aside) = books.in_logs_and_aside(with_usage);
    let billed = || books.history.messages.iter().filter(|message| message.billed);
    let total = billed().count() as u64;
    let nameless = billed().filter(|message| !in_logs.contains(&message.id)).count();
    let place = |chain: u32| books.timeline.chain(chain).place;
    let in_progress = books.timeline.requests.iter().filter(|request| place(request.chain) == Place::Progress);
    let requests = books.requests();
    let gone = books.only_gone(messages_of);
    let gone = billed().filter(|message| gone.contains(&message.id) && !requests.contains(&message.id));
    let in_sessions = books.sessions.iter().map(|row| row.messages).sum();
    let unbilled = books.timeline.requests.iter().filter(|request| !request.is_billed());
    vec![
        Sum::new(
            "messages",
            (INPUT, books.totals.messages),
            &[
                (-count(aside.len()), "in files that are no session logs"),
                (count(nameless), "without a message.id, named by their request or their record"),
            ],
            (HISTORY, total),
        ),
        Sum::new("messages", (HISTORY, total), &[], (SESSIONS, in_sessions)),
        Sum::new(
            "messages, requests",
            (HISTORY, total),
            &[
                (
                    count(in_progress.count()),
                    "of subagents that are known from progress records only: usage of a first chunk",
                ),
                (-count(gone.count()), "in deleted logs that no policy read while they were there"),
            ],
            (POLICIES, books.timeline.requests.len() as u64),
        ),
        Sum::new(
            "requests",
            (POLICIES, books.timeline.requests.len() as u64),
            &[(-count(unbilled.count()), "whose usage is nothing but zeros")],
            (BILL, books.timeline.billed().count() as u64),
        ),
    ]
}

fn sessions(books: &Reconciled<'_>) -> Vec<Sum> {
    let named = |file: &SourceRows| file.rows.sessions.iter().map(|row| row.session).collect::<Vec<Id>>();
    let (in_logs, aside) = books.in_logs_and_aside(named);
    let history = books.history;
    let total = history.sessions.len() as u64;
    let nameless = history.sessions.iter().filter(|session| !in_logs.contains(&session.id)).count();
    let called: BTreeSet<u32> = history.chains.iter().map(|chain| chain.session).collect();
    let spoken: BTreeSet<u32> =
        history.messages.iter().filter(|message| message.billed).map(|message| message.session).collect();
    let planned: IdSet<Id> = books.timeline.sessions.iter().map(|session| session.id).collect();
    let requests = books.requests();
    // Messages that no policy has; the sum of messages says why.
    let billed = history.messages.iter().filter(|message| message.billed);
    let missing: Vec<_> = billed.filter(|message| !requests.contains(&message.id)).collect();
    let of_gone = books.only_gone(messages_of);
    let lost: BTreeSet<u32> = missing.iter().map(|message| message.session).collect();
    let unexplained: BTreeSet<u32> =
        missing.iter().filter(|message| !of_gone.contains(&message.id)).map(|message| message.session).collect();
    let (mut silent, mut told_elsewhere, mut gone) = (0, 0, 0);
    for (number, _) in (0..).zip(&history.sessions).filter(|(_, session)| !planned.contains(&session.id)) {
        silent -= i64::from(!spoken.contains(&number));
        told_elsewhere -= i64::from(spoken.contains(&number) && !lost.contains(&number));
        gone -= i64::from(lost.contains(&number) && !unexplained.contains(&number));
    }
    vec![
        Sum::new(
            "sessions",
            (INPUT, books.totals.sessions),
            &[
                (-count(aside.len()), "in files that are no session logs"),
                (count(nameless), "logs whose records name no session"),
            ],
            (HISTORY, total),
        ),
        Sum::new("sessions", (HISTORY, total), &[], (SESSIONS, books.sessions.len() as u64)),
        Sum::new(
            "sessions",
            (HISTORY, total),
            &[(-(total as i64 - count(called.len())), "without a tool call")],
            (TOOLS, books.tools.sessions),
        ),
        Sum::new(
            "sessions",
            (HISTORY, total),
            &[
                (silent, "without a message that was billed"),
                (told_elsewhere, "that hold copies of another session's messages only"),
                (gone, "in deleted logs that no policy read while they were there"),
            ],
            (POLICIES, books.timeline.sessions.len() as u64),
        ),
    ]
}
