//! What the client wrote beside the conversation: the settings of an answer, kinds of agents, running totals of cost.

use std::path::{Path, PathBuf};

use crate::base::id::Id;
use crate::base::json::{Cursor, JsonKind, RawStr};
use crate::base::names::{Names, Sym};
use crate::logs::discover::modified_ns;
use crate::logs::field::{FieldResult, each_field, id_of, known_fields, text, whole_number};
use crate::logs::timeline::requests::StatedCost;
use crate::logs::timeline::rows::{AgentRow, FileTimeline};
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
    /// Its id.
    pub(super) agent: Option<RawStr<'a>>,
    /// Its kind.
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

/// The kind of agent that the input of a call asks for, by the first of these keys.
pub(super) fn agent_asked_for<'a>(input: &'a [u8], keys: &[String]) -> Option<RawStr<'a>> {
    let mut asked = None;
    let read = each_field(input, |key, cursor| {
        if keys.iter().any(|known| known.as_bytes() == key) {
            asked = text(cursor)?.or(asked);
            Ok(())
        } else {
            cursor.skip_value()
        }
    });
    read.map_or(None, |()| asked)
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
        let model = word(names, RawStr(model));
        let mut row = StatedCost { session, model, usage: Default::default(), nanodollars: 0 };
        let mut first = cursor.enter()?;
        while let Some(key) = cursor.next_key(&mut first)? {
            let usage = &mut row.usage;
            let tokens = match key.0 {
                b"inputTokens" => &mut usage.input,
                b"outputTokens" => &mut usage.output,
                b"cacheReadInputTokens" => &mut usage.cache_read,
                b"cacheCreationInputTokens" => &mut usage.cache_creation,
                b"costUSD" => {
                    row.nanodollars = nanodollars(cursor)?;
                    continue;
                }
                _ => {
                    cursor.skip_value()?;
                    continue;
                }
            };
            *tokens = whole_number(cursor, TOTAL_TOKENS_MAX)?.unwrap_or(0);
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
    let rows = chains.map(|chain| AgentRow { session: chain.session, agent: own, kind });
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
