//! `--emit-telemetry`: the events that the live pipeline would have recorded for these logs, one file per session.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::base::body_shape::{BodyShape, LayerId};
use crate::base::error::Result;
use crate::base::pseudonyms::Pseudonyms;
use crate::base::unpack::Packing;
use crate::facts::encode;
use crate::facts::inner_formats::InnerFormats;
use crate::replay::input::ReplayInput;
use crate::settings::{create_private, write_private};
use crate::telemetry::effectiveness::{CountedBy, effectiveness};
use crate::telemetry::log::{EventLog, NO_ORDER, NO_STEP, RecordedAs, RecordedContent, RecordedEvent};
use crate::telemetry::{ContextLine, PipelineEvent, SummaryLine};

/// Writes a log, one file per session; returns how many. What the planner did stands behind the step that set it off, and
/// is counted `by` its numbers. Names of tools are written as the log has them; `names` makes those of contents and files.
pub fn write(dir: &Path, log: &EventLog, source: &ReplayInput, names: &Pseudonyms, by: CountedBy) -> Result<u64> {
    create_private(dir)?;
    let mut behind = planned_behind(log);
    let (mut files, mut at, mut after) = (0, 0, 0);
    for (number, session_hash) in (0..).zip(log.sessions.iter()) {
        let of_session = |events: &[RecordedEvent]| events.iter().take_while(|event| event.session == number).count();
        let session = &log.events[at..][..of_session(&log.events[at..])];
        let beside = &log.beside[after..][..of_session(&log.beside[after..])];
        after += beside.len();
        if session.is_empty() && beside.is_empty() {
            continue;
        }
        let events: Vec<PipelineEvent> = session.iter().map(|event| recorded(event, log, source, names)).collect();
        let (mut text, mut planned) = (String::new(), Vec::new());
        for event in &events {
            text += &line(event);
            for event in behind.remove(&at).into_iter().flatten() {
                text += &line(&recorded(event, log, source, names));
                planned.push(event);
            }
            at += 1;
        }
        let summary = SummaryLine::of(&events, effectiveness(session, &planned, by));
        for event in beside {
            text += &line(&ContextLine::of(recorded(event, log, source, names)));
        }
        if let Some(summary) = summary {
            text += &line(&summary);
        }
        write_private(&dir.join(format!("{session_hash}.jsonl")), text)?;
        files += 1;
    }
    Ok(files)
}

/// Files of telemetry in a directory besides so many that were just written.
pub fn others(dir: &Path, written: u64) -> u64 {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let all = entries.filter(|entry| Packing::of(&entry.path()).is_some()).count() as u64;
    all.saturating_sub(written)
}

fn line(row: &impl Serialize) -> String {
    serde_json::to_string(row).expect("rows of telemetry print") + "\n"
}

/// What the planner did, by the event behind which it stands: the last one of the same step, or of the last step before
/// it that has any, in the same context.
fn planned_behind(log: &EventLog) -> BTreeMap<usize, Vec<&RecordedEvent>> {
    let mut behind: BTreeMap<usize, Vec<&RecordedEvent>> = BTreeMap::new();
    if log.planned.is_empty() {
        return behind;
    }
    let mut last: BTreeMap<(u32, u32), BTreeMap<u32, usize>> = BTreeMap::new();
    for (at, event) in log.events.iter().enumerate() {
        last.entry((event.chain, event.partition)).or_default().insert(event.step, at);
    }
    for planned in &log.planned {
        let steps = last.get(&(planned.chain, planned.partition));
        if let Some((_, at)) = steps.and_then(|steps| steps.range(..=planned.step).next_back()) {
            behind.entry(*at).or_default().push(planned);
        }
    }
    behind
}

/// The name of the content; empty where nobody knows what the planner would have got.
fn content(event: &RecordedEvent, names: &Pseudonyms) -> String {
    let is_response = !event.is_planned() && event.what == RecordedAs::Response;
    if !is_response && !event.body.is_some() { String::new() } else { names.id(event.body).to_string() }
}

/// The event as it stands in a file.
fn recorded(event: &RecordedEvent, log: &EventLog, source: &ReplayInput, names: &Pseudonyms) -> PipelineEvent {
    let ids = encode::ids();
    let format = |number: u8| ids.get(usize::from(number)).map(|id| (*id).to_owned());
    let subagent = source.subagent(event.chain);
    let template_id = |id: String| encode::template_id(&id).to_owned();
    // What a pipeline records: the formats that it knows.
    let is_known = |format: u8| format == event.format || encode::is_published(format);
    let encodings = log.encodings_of(event).iter().filter(|row| is_known(row.format));
    PipelineEvent {
        session_hash: log.sessions[event.session as usize].clone(),
        tool_call_id_hash: format!("{:08x}", event.call),
        tool_name_anon: log.names.text(event.tool).to_owned(),
        endpoint_class: log.names.text(event.endpoint).to_owned(),
        response_chars: event.bytes.into(),
        shape: BodyShape::from_number(event.shape).into_str().to_owned(),
        inner_formats: InnerFormats(event.inner_formats).iter().map(|format| format.into_str().to_owned()).collect(),
        content_sha_prefix_hex: content(event, names),
        file_path_hash: (event.path > 0).then(|| format!("{:08x}", names.short(event.path))),
        is_dedup_hit: event.layer == LayerId::L0,
        layer_used: event.layer.key().to_owned(),
        template_id: format(event.format).filter(|_| event.layer == LayerId::L1).map(template_id),
        tokens_baseline: event.baseline.into(),
        tokens_final: event.sent.into(),
        context_partition: event.partition,
        is_sidechain: subagent.is_some(),
        ts_ms: event.ts,
        sample_rate_applied: 1.0,
        l2_format: format(event.format).filter(|_| event.layer == LayerId::L2),
        depth_max: event.depth.into(),
        n_cols: event.columns.into(),
        n_rows: event.rows,
        key_stability: (!event.key_stability.is_nan()).then(|| f64::from(event.key_stability)),
        // A side chain has no id of its own in some logs; its place among the session's chains tells it apart.
        agent_chain: subagent.map(|id| id.to_string()[..8].to_owned()),
        n_items: event.items,
        step: (event.step != NO_STEP).then_some(event.step),
        mixed: event.content == RecordedContent::Mixed,
        preview: event.content == RecordedContent::Preview,
        handle_tokens: event.handle_tokens,
        encodings: encodings.filter_map(|row| Some((format(row.format)?, row.depth, row.tokens))).collect(),
        enricher_prefetched: event.plan.prefetched,
        enricher_predicted_cost_tokens: event.plan.predicted,
        enricher_decline_reason: event.plan.declined.map(|reason| reason.into_str().to_owned()),
        cited_in_next_n_turns: event.plan.cited,
        enricher_race: event.plan.race.map(|word| word.into_str().to_owned()),
        call_order: (event.order != NO_ORDER).then_some(event.order),
        what: (event.what != RecordedAs::Response).then(|| event.what.into_str().to_owned()),
    }
}
