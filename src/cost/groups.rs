//! What a bill can be shared out by: things in contexts (tools, servers, …) and requests (days, models, projects, …).

use std::collections::HashMap;

use clap::ValueEnum;

use crate::base::id::Id;
use crate::base::names::{Names, Sym, mcp_server};
use crate::cost::outcomes::outcomes;
use crate::cost::shares::Thing;
use crate::logs::timeline::requests::{Block, BlockKind, Marks, NONE, Request, SegmentCause, Timeline, ToolCall};
use crate::logs::trace::{NO_TIME, Place};
use crate::whatif::sim::laid_out;

/// A key of a cost table.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, ValueEnum, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "kebab-case")]
pub enum CostKey {
    /// The tool that was called.
    Tool,
    /// The MCP server of the tool.
    Server,
    /// What the context is made of: prompts, tool calls, results, thinking, …
    Content,
    /// What kind of file calls name.
    FileKind,
    /// How calls ended: those that failed, those that were made once more right after, files read again though nothing had
    /// changed, all others; what is no call, in one row.
    Outcome,
    /// The directory that a session began in.
    Project,
    /// The session.
    Session,
    /// The branch that was checked out.
    Branch,
    /// The day of the request, in local time.
    Day,
    /// Its week, by its Monday.
    Week,
    /// Its month.
    Month,
    /// The model.
    Model,
    /// The client version.
    Version,
    /// Main thread or subagent.
    Source,
    /// The kind of agent that asked.
    AgentType,
    /// The level of effort, as newer clients write it.
    Effort,
}

impl CostKey {
    /// Whether it tells things in one context apart; else it tells requests apart.
    pub fn is_of_things(self) -> bool {
        matches!(self, Self::Tool | Self::Server | Self::Content | Self::FileKind | Self::Outcome)
    }
}

/// The name of a group. What is the user's own is an id here; names for it are found where it is printed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Label {
    /// A name that says nothing about the user: a model, a day, a word of devboy.
    Word(String),
    Tool(String),
    Server(String),
    /// A kind of agent, which people may have named themselves.
    Agent(String),
    /// Pseudonym of a project.
    Project(Id),
    /// Pseudonym of a session.
    Session(Id),
    /// Pseudonym of a branch.
    Branch(Id),
}

/// Which group each of many things is in.
#[derive(Clone, Debug)]
pub struct Grouping {
    /// The names of each group, one for each key.
    pub labels: Vec<Vec<Label>>,
    of: Vec<u32>,
}

impl Grouping {
    /// One group without a name.
    pub fn whole(count: usize) -> Self {
        Self { labels: vec![Vec::new()], of: vec![0; count] }
    }

    /// The group of the thing with this index.
    pub fn group(&self, index: usize) -> u32 {
        self.of[index]
    }

    /// The groups by one key more.
    #[must_use]
    pub fn and(self, names: Vec<Label>, of: &[u32]) -> Self {
        let mut known: HashMap<(u32, u32), u32> = HashMap::new();
        let mut labels: Vec<Vec<Label>> = Vec::new();
        let both = self.of.iter().zip(of).map(|(&group, &name)| {
            *known.entry((group, name)).or_insert_with(|| {
                let mut label = self.labels[group as usize].clone();
                label.push(names[name as usize].clone());
                labels.push(label);
                labels.len() as u32 - 1
            })
        });
        let of = both.collect();
        Self { labels, of }
    }
}

/// Numbers for labels.
#[derive(Default)]
struct Numbers {
    known: HashMap<Label, u32>,
    labels: Vec<Label>,
}

impl Numbers {
    fn of(&mut self, label: Label) -> u32 {
        *self.known.entry(label).or_insert_with_key(|label| {
            self.labels.push(label.clone());
            self.labels.len() as u32 - 1
        })
    }
}

/// Requests of a timeline by some keys, in the order of [`Timeline::requests`].
pub fn requests(timeline: &Timeline, keys: &[CostKey]) -> Grouping {
    keys.iter().fold(Grouping::whole(timeline.requests.len()), |groups, &key| {
        let mut numbers = Numbers::default();
        let mut dates = Dates::default();
        let of: Vec<u32> = timeline
            .requests
            .iter()
            .map(|request| numbers.of(request_label(timeline, request, key, &mut dates)))
            .collect();
        groups.and(numbers.labels, &of)
    })
}

fn request_label(timeline: &Timeline, request: &Request, key: CostKey, dates: &mut Dates) -> Label {
    let word = |text: &str| Label::Word(if text.is_empty() { "(not in the log)".to_owned() } else { text.to_owned() });
    let chain = timeline.chain(request.chain);
    let session = &timeline.sessions[chain.session as usize];
    match key {
        CostKey::Project => Label::Project(session.project),
        CostKey::Session => Label::Session(session.id),
        CostKey::Branch => Label::Branch(request.setting.branch),
        CostKey::Model => word(timeline.names.text(request.model)),
        CostKey::Effort => word(timeline.names.text(request.setting.effort)),
        CostKey::AgentType if chain.place == Place::Main && chain.agent_type == Sym::default() => word("(main thread)"),
        CostKey::AgentType => match timeline.names.text(chain.agent_type) {
            "" => word(NO_KIND),
            kind => Label::Agent(kind.to_owned()),
        },
        CostKey::Version => word(timeline.names.text(request.version)),
        CostKey::Day | CostKey::Week | CostKey::Month => word(dates.of(request.start, key)),
        _ => word(if chain.place == Place::Main { "main thread" } else { "subagents" }),
    }
}

/// Dates of times that mostly come in order: the zone is asked once a day.
#[derive(Default)]
pub struct Dates {
    /// First and last-plus-one millisecond, and the name.
    last: Option<(i64, i64, String)>,
}

impl Dates {
    /// The name of the local day, week or month that a time lies in; empty for none.
    pub fn of(&mut self, ms: i64, key: CostKey) -> &str {
        if ms == NO_TIME {
            return "";
        }
        if !self.last.as_ref().is_some_and(|(from, to, _)| (*from..*to).contains(&ms)) {
            self.last = date(ms, key);
        }
        self.last.as_ref().map_or("", |(.., name)| name)
    }
}

/// The local day that a time lies in, with the name of its day, week or month.
fn date(ms: i64, key: CostKey) -> Option<(i64, i64, String)> {
    let at = jiff::Timestamp::from_millisecond(ms).ok()?.to_zoned(jiff::tz::TimeZone::system());
    let day = at.date();
    let start = at.start_of_day().ok()?;
    // Where a clock is put forward at midnight, the next day does not begin as late as this one did.
    let end = day.tomorrow().ok()?.to_zoned(at.time_zone().clone()).ok()?;
    let name = match key {
        CostKey::Month => at.strftime("%Y-%m").to_string(),
        CostKey::Week => {
            let back = i64::from(day.weekday().to_monday_zero_offset());
            day.checked_sub(jiff::Span::new().try_days(back).ok()?).ok()?.to_string()
        }
        _ => day.to_string(),
    };
    Some((start.timestamp().as_millisecond(), end.timestamp().as_millisecond(), name))
}

/// Things of a timeline's contexts by some keys: blocks, what came with each request, and two more.
pub struct Things {
    groups: Grouping,
    blocks: usize,
    requests: usize,
}

impl Things {
    /// Groups them.
    pub fn new(timeline: &Timeline, keys: &[CostKey]) -> Self {
        let (blocks, requests) = (timeline.blocks.len(), timeline.requests.len());
        let groups = keys.iter().fold(Grouping::whole(blocks + requests + 2), |groups, &key| {
            let mut numbers = Numbers::default();
            // Each name once: one for every call would take as much room as all blocks.
            let of_calls: Vec<u32> = call_labels(timeline, key).map(|label| numbers.of(label)).collect();
            // What is no call ended in no way: one row, so that the others are seen.
            let word = |text: &str| Label::Word(if key == CostKey::Outcome { NO_CALL } else { text }.to_owned());
            let of_block = |block: &Block| {
                let of_call = of_calls.get(block.call as usize).copied();
                of_call.unwrap_or_else(|| numbers.of(word(content(block, key))))
            };
            let mut of: Vec<u32> = timeline.blocks.iter().map(of_block).collect();
            let unlogged =
                timeline.requests.iter().enumerate().map(|(index, request)| word(origin(timeline, index, request)));
            of.extend(unlogged.chain([PREFIX, ANSWER].map(word)).map(|label| numbers.of(label)));
            groups.and(numbers.labels, &of)
        });
        Self { groups, blocks, requests }
    }

    /// The group of a thing.
    pub fn group(&self, thing: Thing) -> u32 {
        self.groups.group(match thing {
            Thing::Block(block) => block as usize,
            Thing::Unlogged(request) => self.blocks + request as usize,
            Thing::Prefix => self.blocks + self.requests,
            Thing::Answer => self.blocks + self.requests + 1,
        })
    }

    /// The names of a group, one for each key.
    pub fn labels(&self, group: u32) -> &[Label] {
        &self.groups.labels[group as usize]
    }

    /// How many groups there are.
    pub fn count(&self) -> usize {
        self.groups.labels.len()
    }
}

/// The names of calls under a key, in the order of [`Timeline::calls`]; none where blocks tell all.
fn call_labels(timeline: &Timeline, key: CostKey) -> Box<dyn Iterator<Item = Label> + '_> {
    let Timeline { names, calls, .. } = timeline;
    match key {
        CostKey::Outcome => Box::new(outcomes(timeline).into_iter().map(|outcome| Label::Word(outcome.to_owned()))),
        CostKey::FileKind => Box::new(calls.iter().map(|call| file_kind_label(names, call))),
        CostKey::Tool | CostKey::Server => Box::new(calls.iter().map(move |call| tool_label(names, call.tool, key))),
        _ => Box::new(std::iter::empty()),
    }
}

fn tool_label(names: &Names, tool: Sym, key: CostKey) -> Label {
    let name = names.text(tool);
    match (key, mcp_server(name)) {
        (CostKey::Tool, _) => Label::Tool(name.to_owned()),
        (_, None) => Label::Word("(built-in tools)".to_owned()),
        (_, Some(server)) => Label::Server(server.to_owned()),
    }
}

fn file_kind_label(names: &Names, call: &ToolCall) -> Label {
    let kind = names.text(call.file_kind);
    Label::Word(if kind.is_empty() { "(calls that name no file)".to_owned() } else { kind.to_owned() })
}

/// What a block is, in words of a report; results and calls are told apart only where nothing tells their tools.
fn content(block: &Block, key: CostKey) -> &'static str {
    match block.kind {
        BlockKind::Human => "(prompts)",
        BlockKind::Injected => "(reminders, skills, output of commands)",
        BlockKind::Summary => "(summaries of compactions)",
        BlockKind::Text => "(text of the model)",
        BlockKind::Thinking => THINKING,
        BlockKind::ToolUsage if key == CostKey::Content => "(tool calls)",
        BlockKind::ToolResult if key == CostKey::Content => "(tool results)",
        BlockKind::ToolUsage | BlockKind::ToolResult => "(results without a call)",
        BlockKind::Media => "(images and documents)",
    }
}

/// What is no call, where calls are asked about.
const NO_CALL: &str = "(no call: prompts, thinking, system prompt, …)";
/// Subagents whose kind no log names.
pub const NO_KIND: &str = "(subagents of unknown kind)";
/// What stands before all messages.
pub const PREFIX: &str = "(system prompt and tool definitions)";
/// What the model thought.
pub const THINKING: &str = "(thinking)";
/// How all names of text that no log has begin.
const UNLOGGED: &str = "(not in the log: ";
/// What has no block.
const ANSWER: &str = "(answers that the log does not have)";

/// Whether a name is that of text that no log has.
pub fn is_unlogged(name: &str) -> bool {
    name.starts_with(UNLOGGED)
}

/// With what something came that the log does not have.
fn origin(timeline: &Timeline, index: usize, request: &Request) -> &'static str {
    let segment = &timeline.segments[request.segment as usize];
    let goes_on = segment.after != NONE;
    let opens = laid_out::opens(timeline, index as u32);
    let before = index.checked_sub(1).map(|before| &timeline.requests[before]);
    let before = before.filter(|before| before.chain == request.chain);
    let hidden = |block: &Block| block.kind == BlockKind::Thinking && block.chars == 0;
    let thought = before.is_some_and(|before| {
        timeline.blocks[before.outputs.start as usize..before.outputs.end as usize].iter().any(hidden)
    });
    match segment.cause {
        SegmentCause::Start if opens && !goes_on => "(not in the log: with the first prompt)",
        SegmentCause::Compaction if opens => "(not in the log: after a compaction)",
        _ if request.marks.has(Marks::HUMAN) => "(not in the log: with a later prompt)",
        _ if thought => "(not in the log: after thinking without text)",
        _ => "(not in the log: with tool results)",
    }
}
