//! What the client put into a context beside the conversation, as far as attachments tell: instructions and names of tools of
//! MCP servers, texts of hooks. And how long hooks ran.

use std::borrow::Cow;

use crate::base::id::{Id, IdMap};
use crate::base::json::{Cursor, JsonKind, RawStr};
use crate::base::names::{Names, Sym, mcp_server, mcp_server_in_tools};
use crate::base::numbers::saturated;
use crate::logs::body::code_points;
use crate::logs::envelope::{Attachment, MILLIS_MAX};
use crate::logs::field::{FieldResult, each_field, id_of, span, text, whole_number};
use crate::logs::timeline::requests::{Added, Addition};
use crate::logs::timeline::rules::HookRules;

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
        kind if rules.attachments.iter().any(|known| known.as_bytes() == kind) => {
            of_hook(attachment, record, rules, names).into_iter().collect()
        }
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
    let has = |words: &[String], word: RawStr<'_>| words.iter().any(|known| known.as_bytes() == word.0);
    let (kind, event) = (attachment.kind?, attachment.event.unwrap_or_default());
    let is_sent = has(&rules.context_attachments, kind)
        || (has(&rules.output_attachments, kind) && has(&rules.output_events, event));
    let texts = attachment.content.filter(|_| is_sent).map(strings).unwrap_or_default();
    let chars = saturated(texts.iter().map(|text| code_points(text)).sum());
    // Of these events a summary tells the times.
    let is_summed = has(&rules.summed_events, event);
    let millis = attachment.millis.filter(|_| !is_summed).unwrap_or_default();
    let name = super::beside::word(names, event);
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
