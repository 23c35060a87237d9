//! What the client wrote beside the conversation: the settings of a message, kinds of agents, running totals of cost; and what
//! it put into a context, as far as attachments tell: instructions and names of tools of MCP servers, texts of hooks. And how
//! long hooks ran.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use crate::base::id::{Id, IdMap};
use crate::base::json::{Cursor, JsonKind, RawStr};
use crate::base::names::{Names, Sym, mcp_server, mcp_server_in_tools};
use crate::base::numbers::saturated;
use crate::logs::body::code_points;
use crate::logs::discover::modified_ns;
use crate::logs::envelope::{Attachment, MILLIS_MAX};
use crate::logs::field::{FieldResult, each_field, id_of, known_fields, span, text, whole_number};
use crate::logs::timeline::requests::{Added, Addition, StatedCost};
use crate::logs::timeline::rows::{AgentRow, FileTimeline};
use crate::logs::timeline::rules::{HookRules, is_one_of};
use crate::logs::trace::Place;

/// Longest word that is kept as it is written.
const WORD_BYTES_MAX: usize = 64;
/// A file about an agent is a few hundred bytes; what is larger is something else.
const META_BYTES_MAX: u64 = 64 << 10;
/// No session has more tokens than this; a larger total is none.
const TOTAL_TOKENS_MAX: u64 = 1 << 48;
const NANODOLLARS: f64 = 1e9;
/// Running totals above this (about 9 million dollars) are no totals.
const NANODOLLARS_MAX: f64 = 9e15;

/// The symbol of a word of the client; of a text that is no plain word (letters, digits, `-_.:`) that of `*`.
pub(super) fn word(names: &mut Names, text: RawStr<'_>) -> Sym {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:".contains(byte);
    let decoded = text.decode().unwrap_or_default();
    match std::str::from_utf8(&decoded) {
        Ok(word) if decoded.len() <= WORD_BYTES_MAX && decoded.iter().all(is_plain) => names.intern(word),
        _ => names.intern("*"),
    }
}

/// What a `toolUseResult` or a file about an agent says of a subagent.
#[derive(Default)]
pub(super) struct AgentFields<'a> {
    pub(super) agent: Option<RawStr<'a>>,
    pub(super) kind: Option<RawStr<'a>>,
}

impl<'a> AgentFields<'a> {
    /// The fields of an object; nothing of anything else.
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        let mut fields = Self::default();
        known_fields(bytes, |key, cursor| {
            match key {
                b"agentId" => fields.agent = text(cursor)?,
                b"agentType" => fields.kind = text(cursor)?,
                _ => cursor.skip_value()?,
            }
            Ok(())
        });
        fields
    }
}

/// The kind of agent that the input of a call asks for, by the first of these keys (empty if it leaves that out), and whether
/// it names a model for it. None if it does neither.
pub(super) fn agent_asked_for<'a>(input: &'a [u8], keys: &[String]) -> Option<(RawStr<'a>, bool)> {
    let (mut asked, mut names_model) = (None, false);
    let read = each_field(input, |key, cursor| {
        match key {
            b"model" => names_model = text(cursor)?.is_some_and(|model| !model.0.is_empty()),
            _ if is_one_of(key, keys) => asked = text(cursor)?.or(asked),
            _ => cursor.skip_value()?,
        }
        Ok(())
    });
    read.ok().filter(|()| asked.is_some() || names_model).map(|()| (asked.unwrap_or_default(), names_model))
}

/// The type of the reason for a cache miss in the `diagnostics` of a message.
pub(super) fn miss_reason(diagnostics: &[u8]) -> Option<RawStr<'_>> {
    let mut reason = None;
    let read = each_field(diagnostics, |key, cursor| {
        if key != b"cache_miss_reason" || cursor.shape()? != JsonKind::Object {
            return cursor.skip_value();
        }
        let mut first = cursor.enter()?;
        while let Some(key) = cursor.next_key(&mut first)? {
            match key.0 {
                b"type" => reason = text(cursor)?,
                _ => cursor.skip_value()?,
            }
        }
        Ok(())
    });
    read.map_or(None, |()| reason)
}

/// The running totals of a `cost-state`, model by model.
pub(super) fn stated_costs(session: Id, model_usage: &[u8], names: &mut Names) -> Vec<StatedCost> {
    let mut stated = Vec::new();
    let read = each_field(model_usage, |model, cursor| {
        if cursor.shape()? != JsonKind::Object {
            return cursor.skip_value();
        }
        let model = names.intern(&RawStr(model).text().unwrap_or_default());
        let mut row = StatedCost { session, model, usage: Default::default(), nanodollars: 0 };
        let mut first = cursor.enter()?;
        while let Some(key) = cursor.next_key(&mut first)? {
            let usage = &mut row.usage;
            let mut tokens = || whole_number(cursor, TOTAL_TOKENS_MAX).map(Option::unwrap_or_default);
            match key.0 {
                b"inputTokens" => usage.input = tokens()?,
                b"outputTokens" => usage.output = tokens()?,
                b"cacheReadInputTokens" => usage.cache_read = tokens()?,
                b"cacheCreationInputTokens" => usage.cache_creation = tokens()?,
                b"costUSD" => row.nanodollars = nanodollars(cursor)?,
                _ => cursor.skip_value()?,
            }
        }
        stated.push(row);
        Ok(())
    });
    read.map_or_else(|_| Vec::new(), |()| stated)
}

fn nanodollars(cursor: &mut Cursor<'_>) -> FieldResult<u64> {
    if cursor.shape()? != JsonKind::Number {
        cursor.skip_value()?;
        return Ok(0);
    }
    let dollars: Option<f64> = std::str::from_utf8(cursor.number()?).ok().and_then(|digits| digits.parse().ok());
    let nanos = dollars.map(|dollars| dollars * NANODOLLARS).filter(|nanos| (0.0..=NANODOLLARS_MAX).contains(nanos));
    Ok(nanos.map_or(0, |nanos| nanos.round() as u64))
}

/// The file beside a subagent's log (`agent-<id>.meta.json`), and the name of the log without its ending; none of other logs.
fn agent_file(log: &Path) -> Option<(PathBuf, &str)> {
    let name = log.file_name()?.to_str()?;
    let stem = name.find(".jsonl").map(|end| &name[..end]).filter(|stem| stem.starts_with("agent-"))?;
    Some((log.with_file_name(format!("{stem}.meta.json")), stem))
}

/// Size and modification time of the file beside a subagent's log, in nanoseconds since 1970; none if there is none.
pub fn agent_file_stamp(log: &Path) -> Option<(u64, i64)> {
    let meta = std::fs::metadata(agent_file(log)?.0).ok()?;
    Some((meta.len(), modified_ns(&meta)))
}

/// Adds what the file beside a subagent's log says about it, if there is one.
pub fn add_agent_file(log: &Path, file: &mut FileTimeline) {
    let Some((path, stem)) = agent_file(log) else { return };
    let is_small = std::fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.len() <= META_BYTES_MAX);
    // A file that is not there or cannot be read says nothing, like one that an older client did not write.
    let Some(bytes) = is_small.then(|| std::fs::read(&path).ok()).flatten() else { return };
    // The span of a whole value, so that walking its fields cannot run off its end.
    let mut cursor = Cursor::new(&bytes);
    if cursor.skip_value().is_err() {
        return;
    }
    let Some(kind) = AgentFields::of(&bytes).kind else { return };
    let kind = word(&mut file.names, kind);
    let own = Id::of(&stem.as_bytes()["agent-".len()..]);
    let chains = file.rows.chains.iter().filter(|chain| chain.place == Place::AgentFile && chain.agent == own);
    let rows = chains.map(|chain| AgentRow { session: chain.session, agent: own, kind, names_model: false });
    let rows: Vec<AgentRow> = rows.collect();
    file.rows.agents.extend(rows);
}

/// The pseudonym of a branch; none of an empty name.
pub(super) fn branch(name: RawStr<'_>) -> Id {
    let name = name.decode().unwrap_or_default();
    if name.is_empty() { Id::NONE } else { Id::pseudonym(&name) }
}

/// The subagent and its kind that the result of a call names; the kind that was asked for stands in where it names none.
pub(super) fn agent_of_result(result: &[u8], asked_for: RawStr<'_>, names: &mut Names) -> Option<(Id, Sym)> {
    let fields = AgentFields::of(result);
    Some((id_of(fields.agent?), word(names, fields.kind.unwrap_or(asked_for))))
}

/// Names of servers that are longer are none.
const SERVER_BYTES_MAX: usize = 256;

/// The event of the hooks that a `stop_hook_summary` is about.
const STOP: &str = "Stop";

/// What an attachment of the record with this number tells.
pub(super) fn of_attachment(
    attachment: &Attachment<'_>,
    record: u32,
    rules: &HookRules,
    names: &mut Names,
) -> Vec<Addition> {
    match attachment.kind.unwrap_or_default().0 {
        b"mcp_instructions_delta" => of_servers(attachment, attachment.blocks, record, names, &|name| Some(name)),
        b"deferred_tools_delta" => of_servers(attachment, attachment.lines, record, names, &mcp_server),
        kind if is_one_of(kind, &rules.attachments) => of_hook(attachment, record, rules, names).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Texts that came in with names, summed up by the server of each name. Without a text a name stands for itself.
fn of_servers(
    attachment: &Attachment<'_>,
    texts: Option<&[u8]>,
    record: u32,
    names: &mut Names,
    server: &dyn Fn(&str) -> Option<&str>,
) -> Vec<Addition> {
    let keys = attachment.names.map(strings).unwrap_or_default();
    let texts = texts.map(strings).filter(|texts| texts.len() == keys.len()).unwrap_or_else(|| keys.clone());
    let (mut rows, mut places) = (Vec::<Addition>::new(), IdMap::<Sym, usize>::default());
    for (key, text) in keys.iter().zip(&texts) {
        let Some(name) = server(&String::from_utf8_lossy(key)).map(mcp_server_in_tools) else { continue };
        if name.is_empty() || name.len() > SERVER_BYTES_MAX {
            continue;
        }
        let name = names.intern(&name);
        let chars = saturated(code_points(text));
        let place = *places.entry(name).or_insert(rows.len());
        match rows.get_mut(place) {
            Some(row) => row.chars = row.chars.saturating_add(chars),
            None => rows.push(Addition { with: record, what: Added::Server, name, run: Id::NONE, chars, millis: 0 }),
        }
    }
    rows
}

/// One run of a hook: its time, and what of its output the model was sent.
fn of_hook(attachment: &Attachment<'_>, record: u32, rules: &HookRules, names: &mut Names) -> Option<Addition> {
    let (kind, event) = (attachment.kind?, attachment.event.unwrap_or_default());
    let is_sent = is_one_of(kind.0, &rules.context_attachments)
        || (is_one_of(kind.0, &rules.output_attachments) && is_one_of(event.0, &rules.output_events));
    let texts = attachment.content.filter(|_| is_sent).map(strings).unwrap_or_default();
    let chars = saturated(texts.iter().map(|text| code_points(text)).sum());
    // Of these events a summary tells the times.
    let is_summed = is_one_of(event.0, &rules.summed_events);
    let millis = attachment.millis.filter(|_| !is_summed).unwrap_or_default();
    let name = word(names, event);
    let run = attachment.run.map(id_of).unwrap_or_default();
    (chars > 0 || millis > 0).then_some(Addition {
        with: record,
        what: Added::Hook,
        name,
        run,
        chars,
        millis: millis as u32,
    })
}

/// The hooks that ran when a turn ended: together they took as long as the slowest.
pub(super) fn of_summary(infos: &[u8], record: u32, names: &mut Names) -> Option<Addition> {
    let millis = slowest(infos).ok().flatten().filter(|millis| *millis > 0)?;
    let name = names.intern(STOP);
    Some(Addition { with: record, what: Added::Hook, name, run: Id::NONE, chars: 0, millis: millis as u32 })
}

fn slowest(infos: &[u8]) -> FieldResult<Option<u64>> {
    let mut cursor = Cursor::new(infos);
    let mut slowest = None;
    if cursor.shape()? != JsonKind::Array {
        return Ok(None);
    }
    let mut first = cursor.enter()?;
    while cursor.next_element(&mut first)? {
        each_field(span(&mut cursor)?, |key, cursor| {
            match key {
                b"durationMs" => slowest = slowest.max(whole_number(cursor, MILLIS_MAX)?),
                _ => cursor.skip_value()?,
            }
            Ok(())
        })?;
    }
    Ok(slowest)
}

/// A string, or the strings of a list; what is no string is an empty one.
fn strings(value: &[u8]) -> Vec<Cow<'_, [u8]>> {
    let mut all = Vec::new();
    let mut read = || -> FieldResult<()> {
        let mut cursor = Cursor::new(value);
        if cursor.shape()? != JsonKind::Array {
            all.push(text(&mut cursor)?.and_then(RawStr::decode).unwrap_or_default());
            return Ok(());
        }
        let mut first = cursor.enter()?;
        while cursor.next_element(&mut first)? {
            all.push(text(&mut cursor)?.and_then(RawStr::decode).unwrap_or_default());
        }
        Ok(())
    };
    // The span was walked before: what fails here is of another form, and what was read of it stands.
    read().unwrap_or_default();
    all
}
