//! `--planner --emit-telemetry`: what one planner fetched ahead and declined, as events between those of the agent's
//! calls.
//!
//! A prefetch never ran, so its answer is that of the same call where it is in the logs, the nearest in time. Where it
//! is nowhere, the event has no content and no prediction to hold against it, and names a file that no call names.

use std::collections::BTreeMap;
use std::path::Path;

use crate::commands::input::Input;
use crate::commands::laid::Laid;
use crate::commands::replay::Args;
use crate::commands::replay::emit::{self, Beside};
use crate::commands::replay::planner::Stage;
use crate::commands::replay::planner::judged::trail;
use crate::commands::replay::planner::learned::Planner;
use crate::commands::replay::scenarios::Scenarios;
use crate::context::Context;
use crate::error::Result;
use crate::model::body_shape::BodyShape;
use crate::model::event::EventLog;
use crate::model::id::Id;
use crate::model::prefetches::Trace;
use crate::model::trace::{NO_TIME, Status};
use crate::replay::Scenario;
use crate::telemetry::{PipelineEvent, anonymous_tool};

/// Writes the events of the logs, and between them those of a planner.
pub fn write(
    dir: &Path,
    stage: &Stage,
    planner: &Planner,
    input: &mut Input,
    args: &Args,
    context: &mut Context<'_>,
) -> Result<()> {
    let scenarios = Scenarios::load(args, context)?;
    let laid = Laid::new(None, input)?;
    let traces = input.pool.install(|| trail(stage, planner));
    let scenario = emit::scenario(&scenarios, &laid);
    let answers = Answers::new(stage);
    let recorder = Recorder { stage, laid: &laid, scenario: &scenario, answers: &answers };
    let beside: Vec<Beside> = traces.iter().map(|trace| recorder.beside(trace)).collect();
    emit::write(dir, &scenarios, &laid, &beside, args, context)
}

/// Calls that were answered, by tool and whole input, in order.
struct Answers<'s> {
    stage: &'s Stage,
    calls: BTreeMap<(&'s str, u64), Vec<u32>>,
}

impl<'s> Answers<'s> {
    fn new(stage: &'s Stage) -> Self {
        let mut calls: BTreeMap<(&str, u64), Vec<u32>> = BTreeMap::new();
        for (index, call) in (0..).zip(&stage.history.calls) {
            let input = stage.values.input(index as usize).filter(|_| call.status == Status::Ok);
            if let Some(input) = input {
                calls.entry((stage.tools.text(call.tool), input.value)).or_default().push(index);
            }
        }
        Self { stage, calls }
    }

    /// The same call as the traced one, the nearest in time.
    fn of(&self, trace: &Trace) -> Option<u32> {
        let time = |index: u32| self.stage.history.calls[index as usize].ts;
        let same = self.calls.get(&(trace.tool.as_str(), trace.input))?;
        same.iter().copied().min_by_key(|&index| (time(index).abs_diff(time(trace.after)), index))
    }
}

/// Makes events of traces.
struct Recorder<'a> {
    stage: &'a Stage,
    laid: &'a Laid,
    scenario: &'a Scenario,
    answers: &'a Answers<'a>,
}

impl Recorder<'_> {
    fn beside(&self, trace: &Trace) -> Beside {
        let call = &self.laid.history.calls[trace.after as usize];
        let subagent = self.laid.subagent(call.chain);
        let known = self.answers.of(trace).filter(|_| trace.plan.prefetched);
        let answer = known.and_then(|index| self.answered(index));
        let predicted = if answer.is_some() { trace.plan.predicted } else { 0 };
        let event = PipelineEvent {
            session_hash: self.stage.history.session_of(call).id.to_string()[..16].to_owned(),
            tool_call_id_hash: self.name(trace),
            context_partition: call.partition,
            is_sidechain: subagent.is_some(),
            agent_chain: subagent.map(|id| id.to_string()[..8].to_owned()),
            ts_ms: if call.ts == NO_TIME { 0 } else { call.ts },
            step: None,
            enricher_prefetched: trace.plan.prefetched,
            enricher_predicted_cost_tokens: predicted,
            enricher_decline_reason: trace.plan.declined.map(|reason| reason.key().to_owned()),
            cited_in_next_n_turns: trace.plan.cited,
            ..answer.unwrap_or_else(|| unknown(trace))
        };
        Beside { after: trace.after, event }
    }

    /// The first digits of the hash of a call id as the host makes one: tool and arguments.
    fn name(&self, trace: &Trace) -> String {
        let id = format!("prefetch_{}_{:08x}_{}", trace.tool, trace.input, trace.after);
        Id::pseudonym(id.as_bytes()).to_string()[..8].to_owned()
    }

    fn answered(&self, index: u32) -> Option<PipelineEvent> {
        let mut log = EventLog::default();
        let event = self.laid.plain_event(&mut log.names, self.scenario, index)?;
        log.sessions = vec![String::new(); event.session as usize + 1];
        Some(emit::recorded(&event, &log, self.laid))
    }
}

/// An event of which only the tool is known.
fn unknown(trace: &Trace) -> PipelineEvent {
    let tool = anonymous_tool(&trace.tool);
    PipelineEvent {
        session_hash: String::new(),
        tool_call_id_hash: String::new(),
        endpoint_class: tool.clone(),
        tool_name_anon: tool,
        response_chars: 0,
        shape: BodyShape::Unknown.key().to_owned(),
        inner_formats: Vec::new(),
        content_sha_prefix_hex: String::new(),
        file_path_hash: trace.is_path.then(|| format!("{:08x}", trace.input as u32)),
        is_dedup_hit: false,
        layer_used: "L3".to_owned(),
        template_id: None,
        tokens_baseline: 0,
        tokens_final: 0,
        context_partition: 0,
        is_sidechain: false,
        ts_ms: 0,
        sample_rate_applied: 1.0,
        l2_format: None,
        depth_max: 0,
        n_cols: 0,
        n_rows: 0,
        key_stability: None,
        agent_chain: None,
        n_items: 0,
        step: None,
        mixed: false,
        handle_tokens: 0,
        encodings: Vec::new(),
        enricher_prefetched: false,
        enricher_predicted_cost_tokens: 0,
        enricher_decline_reason: None,
        cited_in_next_n_turns: None,
    }
}
