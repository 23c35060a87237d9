//! Generated logs: files of a person's folder with main threads, forks, subagents in all places, compactions, clearings,
//! records that lack what records have, and lines that are out of order.

use proptest::prelude::*;

use crate::tests::log_builder::*;

/// What happens next in a conversation.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    Prompt,
    /// An answer with so many calls, each in a record of its own; answered at once or never.
    Calls(u8, bool),
    /// The last message goes on.
    More,
    Says,
    Compaction,
    /// A compaction of which only the boundary, or only the summary is there.
    Boundary,
    Summary,
    Clears,
    /// A subagent of this number makes a call: recorded in a file of its own, inline, by its parent, or two of these.
    Agent(u8, Told),
    Attachment,
    NotAsked,
}

/// Where a subagent is recorded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Told {
    File,
    Inline,
    Parent,
    FileAndParent,
}

/// What records lack or how they stand.
#[derive(Clone, Copy, Debug)]
pub enum Flaw {
    NoUuid,
    NoMessageId,
    NoId,
    NoTime,
    NoSession,
    Twice,
    Swapped,
}

pub fn any_event() -> impl Strategy<Value = Event> {
    let told = prop::sample::select(vec![Told::File, Told::Inline, Told::Parent, Told::FileAndParent]);
    prop_oneof![
        3 => Just(Event::Prompt),
        6 => (1..4_u8, any::<bool>()).prop_map(|(calls, is_answered)| Event::Calls(calls, is_answered)),
        2 => Just(Event::More),
        2 => Just(Event::Says),
        2 => Just(Event::Compaction),
        1 => Just(Event::Boundary),
        1 => Just(Event::Summary),
        2 => Just(Event::Clears),
        3 => (0..2_u8, told).prop_map(|(agent, told)| Event::Agent(agent, told)),
        1 => Just(Event::Attachment),
        1 => Just(Event::NotAsked),
    ]
}

pub fn any_flaw() -> impl Strategy<Value = Flaw> {
    use Flaw::{NoId, NoMessageId, NoSession, NoTime, NoUuid, Swapped, Twice};
    prop::sample::select(vec![NoUuid, NoMessageId, NoId, NoTime, NoSession, Twice, Swapped])
}

/// Files of a folder: name and lines.
pub type Folder = Vec<(String, Vec<Record>)>;

/// Tells a session: its main file first, then the files of its subagents.
struct Teller {
    session: String,
    at: u32,
    number: u32,
    main: Vec<Record>,
    agents: [Vec<Record>; 2],
    /// The uuid of the last record: of the main thread, then of each inline side chain.
    last: [Option<String>; 3],
    open: Vec<String>,
    message: Option<String>,
}

impl Teller {
    fn name(&mut self, kind: &str) -> String {
        self.number += 1;
        format!("{}-{kind}{}", self.session, self.number)
    }

    fn push(&mut self, thread: usize, record: Record) {
        let uuid = self.name("u");
        self.at += 1;
        let linked = record.link(&uuid, self.last[thread].as_deref()).at(self.at).session(&self.session);
        self.main.push(if thread > 0 { linked.inline() } else { linked });
        self.last[thread] = Some(uuid);
    }

    fn tell(&mut self, event: Event) {
        match event {
            Event::Prompt => self.push(0, user("p", "please go on with it")),
            Event::Says => {
                let message = self.name("m");
                self.push(0, assistant(&message, &[serde_json::json!({ "type": "text", "text": "well" })]));
            }
            Event::Calls(count, is_answered) => {
                let message = self.name("m");
                let calls: Vec<String> = (0..count).map(|_| self.name("c")).collect();
                for (index, call) in calls.iter().enumerate() {
                    let tool = ["Read", "mcp__a__b"][index % 2];
                    self.push(0, asks(&message, call, tool).usage(3, 5 + index as u64));
                }
                for call in calls.iter().filter(|_| is_answered) {
                    self.push(0, answers(call, format!("body of {call}")));
                }
                self.open.extend(calls);
                self.message = Some(message);
            }
            Event::More => {
                if let Some(message) = self.message.clone() {
                    let call = self.name("c");
                    self.push(0, asks(&message, &call, "Grep").usage(3, 50));
                    self.push(0, answers(&call, "late"));
                }
            }
            Event::Compaction | Event::Boundary | Event::Summary => {
                if !matches!(event, Event::Summary) {
                    self.push(0, boundary("b"));
                }
                if !matches!(event, Event::Boundary) {
                    let above = self.last[0].clone();
                    self.push(0, compact_summary("s", above.as_deref()));
                }
            }
            Event::Clears => {
                let calls: Vec<String> = self.open.drain(..self.open.len() / 2).collect();
                let calls: Vec<&str> = calls.iter().map(String::as_str).collect();
                self.push(0, micro_compaction("x", &calls));
            }
            Event::Attachment => {
                let note = Record::new("attachment", "n").set("attachment", serde_json::json!({ "type": "note" }));
                self.push(1, note);
            }
            Event::NotAsked => self.push(0, answers("c-of-nobody", "what?")),
            Event::Agent(agent, told) => self.agent(agent, told),
        }
    }

    fn agent(&mut self, agent: u8, told: Told) {
        let (message, call, name) = (self.name("am"), self.name("ac"), format!("{}-agent{agent}", self.session));
        let records = [asks(&message, &call, "Read"), answers(&call, "of a subagent")];
        for record in records {
            if told == Told::Inline {
                self.push(1 + usize::from(agent), record);
                continue;
            }
            self.at += 1;
            let uuid = self.name("au");
            let own = record.link(&uuid, None).at(self.at).session(&self.session);
            if told != Told::Parent {
                self.agents[usize::from(agent)].push(own.clone().agent(&name));
            }
            if told != Told::File {
                let progress = agent_progress(&name, &own).at(self.at);
                let uuid = self.name("pu");
                self.main.push(progress.link(&uuid, None).session(&self.session));
            }
        }
    }
}

/// The files of one session.
pub fn session(name: &str, events: &[Event], flaws: &[(Flaw, u16)]) -> Folder {
    let mut teller = Teller {
        session: name.to_owned(),
        at: 0,
        number: 0,
        main: Vec::new(),
        agents: Default::default(),
        last: Default::default(),
        open: Vec::new(),
        message: None,
    };
    events.iter().for_each(|event| teller.tell(*event));
    let Teller { mut main, agents, .. } = teller;
    for &(flaw, at) in flaws.iter().filter(|_| !events.is_empty()) {
        if main.is_empty() {
            break;
        }
        let at = usize::from(at) % main.len();
        let record = main[at].clone();
        match flaw {
            Flaw::NoUuid => main[at] = record.without("uuid"),
            Flaw::NoMessageId => main[at] = record.without_message("id"),
            Flaw::NoId => main[at] = record.without_message("id").without("uuid").without("requestId"),
            Flaw::NoTime => main[at] = record.without("timestamp"),
            Flaw::NoSession => main[at] = record.without("sessionId"),
            Flaw::Twice => main.push(record),
            Flaw::Swapped => main.swap(at, 0),
        }
    }
    let files = [(name.to_owned(), main)].into_iter();
    let agents = agents.into_iter().enumerate().map(|(agent, records)| (format!("{name}/agent{agent}"), records));
    files.chain(agents).filter(|(_, records)| !records.is_empty()).collect()
}

/// Some sessions, and a fork of the first one that goes on by itself.
pub fn any_folder() -> impl Strategy<Value = Folder> {
    let events = || prop::collection::vec(any_event(), 1..14);
    let flaws = || prop::collection::vec((any_flaw(), any::<u16>()), 0..3);
    let fork = prop::option::of((any::<prop::sample::Index>(), events()));
    (prop::collection::vec((events(), flaws()), 1..3), fork)
        .prop_map(|(sessions, fork)| {
            let told = sessions.iter().enumerate().map(|(n, (events, flaws))| session(&format!("s{n}"), events, flaws));
            let mut folder: Folder = told.flatten().collect();
            if let Some((at, events)) = fork.filter(|_| !folder.is_empty()) {
                let head = &folder[0].1;
                let copied = head[..at.index(head.len() + 1)].iter().map(|record| record.clone().session("fork"));
                let own = session("fork", &events, &[]).into_iter().take(1).flat_map(|(_, records)| records);
                let later = own.enumerate().map(|(n, record)| record.at(200 + n as u32));
                let forked: Vec<Record> = copied.chain(later).collect();
                folder.push(("fork".to_owned(), forked));
            }
            folder
        })
        .prop_filter("something is told", |folder| !folder.is_empty())
}

/// The files as they are read.
pub fn texts(folder: &Folder) -> Vec<(String, String)> {
    folder.iter().map(|(name, records)| (name.clone(), log(records))).collect()
}
