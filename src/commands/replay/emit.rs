//! `--emit-telemetry`: the events that the live pipeline would have recorded for these logs, one file per session.
//!
//! Calls that failed bypass the pipeline, so they have no event; neither has an answer without text.

use std::collections::BTreeMap;
use std::path::Path;

use crate::commands::replay::Args;
use crate::commands::replay::scenarios::Scenarios;
use crate::commands::replay::study::Laid;
use crate::content::encode;
use crate::content::inner_formats::InnerFormats;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::model::body_shape::BodyShape;
use crate::model::savings::LayerId;
use crate::replay::{Decision, Outcome, Scenario, What, replay_each};
use crate::report::numbers::counted;
use crate::settings::write_private;
use crate::telemetry::{PipelineEvent, SummaryLine, anonymous_tool};

/// Writes the events of the first configuration, with the published formats.
pub fn write(dir: &Path, scenarios: &Scenarios, laid: &Laid, args: &Args, context: &mut Context<'_>) -> Result<()> {
    let scenario = Scenario::new(&scenarios.cells[0].settings, &laid.tape, laid.options(false));
    let mut sessions: BTreeMap<u32, Vec<PipelineEvent>> = BTreeMap::new();
    replay_each(&laid.tape, &scenario, &mut |index, decision| {
        let response = &laid.tape.responses[index as usize];
        if matches!(response.outcome, Outcome::Answer | Outcome::Mixed) {
            sessions.entry(response.session).or_default().push(event(laid, &scenario, index, decision));
        }
    });
    make_dir(dir)?;
    let mut count = 0;
    for events in sessions.values() {
        count += events.len() as u64;
        let mut text = String::new();
        for event in events {
            text += &serde_json::to_string(event).expect("an event prints");
            text.push('\n');
        }
        if let Some(summary) = SummaryLine::of(events) {
            text += &serde_json::to_string(&summary).expect("a summary prints");
            text.push('\n');
        }
        let path = dir.join(format!("{}.jsonl", events[0].session_hash));
        write_private(&path, &text)?;
    }
    if !args.output.quiet {
        let files = counted(sessions.len() as u64, "file");
        writeln!(context.err, "# telemetry: {} in {files} → {}", counted(count, "event"), dir.display())?;
    }
    Ok(())
}

fn make_dir(dir: &Path) -> Result<()> {
    std::fs::create_dir_all(dir).map_err(|cause| Error::io("making", dir, &cause))
}

fn event(laid: &Laid, scenario: &Scenario, index: u32, decision: &Decision) -> PipelineEvent {
    let response = &laid.tape.responses[index as usize];
    let facts = laid.tape.facts_of(response);
    let call = &laid.history.calls[index as usize];
    let chain = &laid.history.chains[call.chain as usize];
    let endpoint = &laid.tape.endpoints[response.endpoint as usize];
    let prefix = |id: crate::model::id::Id, digits: usize| id.to_string()[..digits].to_owned();
    let format = match decision.what {
        What::Encoded(format) => Some(encode::ids()[format as usize].to_owned()),
        _ => None,
    };
    let shape = BodyShape::from_number(facts.shape);
    let sidechain = chain.place != crate::model::trace::Place::Main;
    PipelineEvent {
        session_hash: prefix(laid.history.sessions[response.session as usize].id, 16),
        tool_call_id_hash: format!("{:08x}", response.handle.short),
        tool_name_anon: anonymous_tool(&endpoint.tool),
        endpoint_class: anonymous_tool(&endpoint.class),
        response_chars: facts.raw.bytes.into(),
        shape: shape.key().to_owned(),
        inner_formats: InnerFormats(facts.inner_formats).iter().map(|format| format.key().to_owned()).collect(),
        content_sha_prefix_hex: facts.sha.to_string(),
        file_path_hash: response.path.is_some().then(|| prefix(response.path, 8)),
        is_dedup_hit: decision.layer == LayerId::L0,
        layer_used: decision.layer.key().to_owned(),
        template_id: format.clone().filter(|_| decision.layer == LayerId::L1),
        tokens_baseline: scenario.sessions[response.session as usize].counting.tokens(&facts.raw),
        tokens_final: decision.tokens,
        context_partition: response.partition,
        is_sidechain: sidechain,
        ts_ms: if call.ts == crate::model::trace::NO_TIME { 0 } else { call.ts },
        sample_rate_applied: 1.0,
        l2_format: format.filter(|_| decision.layer == LayerId::L2),
        depth_max: facts.depth.into(),
        n_cols: facts.columns,
        n_rows: facts.rows,
        key_stability: (shape == BodyShape::ArrayOfObjects).then(|| f64::from(facts.key_stability)),
        // A side chain has no id of its own in some logs; its place among the session's chains tells it apart.
        agent_chain: sidechain.then(|| prefix(chain.agent, 8)),
    }
}
