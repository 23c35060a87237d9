//! `devboy ingest`: bring the lake up to date and say what was read.

use serde_json::json;

use crate::cli::{Exit, Format, InputArgs, OutputArgs};
use crate::commands::input::Input;
use crate::context::Context;
use crate::error::Result;
use crate::logs::assemble::assemble;
use crate::mine::totals::{Totals, totals};
use crate::model::history::History;
use crate::model::trace::Status;
use crate::report::numbers::{bytes, counted, date, thousands};
use crate::report::table::Table;
use crate::report::{envelope, quality};

/// Bring the lake up to date with the logs and say what was read.
///
/// The lake holds one row per call: sizes, hashes, classes, times. No text of your logs is in it. It is a cache, except
/// that it keeps the rows of logs that Claude Code has deleted.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// Reads what is new, then reports.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let input = Input::read(&args.input, &args.output, context)?;
    let totals = totals(&input.corpus);
    let history = assemble(&input.corpus);
    input.tell(&args.output, context)?;
    match args.output.form() {
        Format::Json => write_json(args, &input, &totals, &history, context)?,
        form => {
            summary(&input, &totals, &history).write(context.out, form, context.width)?;
            let damage = quality::table(&quality::of(&input.corpus));
            if !damage.is_empty() {
                writeln!(context.out)?;
                damage.write(context.out, form, context.width)?;
            }
        }
    }
    Ok(Exit::Done)
}

fn write_json(args: &Args, input: &Input, totals: &Totals, history: &History, context: &mut Context<'_>) -> Result<()> {
    let reproducible = args.output.reproducible || context.env.reproducible;
    let document = envelope::envelope(
        "ingest",
        (!reproducible).then_some(context.now_ms),
        json!({
            "window": input.window_json(),
            "inputs": input.json(),
            "data_quality": quality::json(&quality::of(&input.corpus)),
            "totals": totals,
            "history": history_json(history),
        }),
    );
    envelope::write(context.out, &document)
}

/// Counts after every copy was merged.
fn history_json(history: &History) -> serde_json::Value {
    let merged = &history.merged;
    json!({
        "sessions": history.sessions.len(),
        "chains": history.chains.len(),
        "subagents": history.chains.iter().filter(|chain| chain.agent.is_some()).count(),
        "calls": history.calls.len(),
        "status": Status::ALL.map(|status| (status.key(), of_status(history, status))).into_iter()
            .collect::<std::collections::BTreeMap<_, _>>(),
        "messages": history.messages.iter().filter(|message| message.billed).count(),
        "messages_unfinished": history.messages.iter().filter(|m| m.billed && !m.finished).count(),
        "compactions": history.chains.iter().map(|chain| u64::from(chain.compactions)).sum::<u64>(),
        "evictions": history.evictions.len(),
        "merged": {
            "duplicate_message": merged.duplicate_message,
            "duplicate_call": merged.duplicate_call,
            "superseded_progress": merged.superseded_progress,
            "orphan_result": merged.orphan_result,
        },
    })
}

fn of_status(history: &History, status: Status) -> u64 {
    history.calls.iter().filter(|call| call.status == status).count() as u64
}

fn summary(input: &Input, totals: &Totals, history: &History) -> Table {
    let tally = &input.tally;
    let merged = &history.merged;
    let mut table = Table::new(&["what", "#count", "of which"]);
    let parts = |parts: &[(u64, &str)]| {
        let some = parts.iter().filter(|(count, _)| *count > 0);
        some.map(|(count, what)| format!("{} {what}", thousands(*count))).collect::<Vec<_>>().join(", ")
    };
    let mut row = |what: &str, count: u64, of: String| table.row([what.to_owned(), thousands(count), of]);
    let files = [
        (tally.new, "new"),
        (tally.grown, "grown"),
        (tally.rewritten, "rewritten"),
        (tally.unchanged, "unchanged"),
        (tally.pruned, "older than the window"),
        (merged.sidecar_files, "no session logs"),
    ];
    row("files on disk", tally.files, parts(&files));
    row("deleted files kept in the lake", tally.kept, String::new());
    row("bytes on disk", tally.bytes, format!("{}, {} read now", bytes(tally.bytes), bytes(tally.bytes_read)));
    let broken = [(totals.bad_fragments, "broken lines"), (totals.non_objects, "no objects")];
    row("records", totals.records, parts(&broken));
    let span = history.span().map(|(first, last)| format!("{} … {}", date(first), date(last)));
    row("sessions", history.sessions.len() as u64, span.unwrap_or_default());
    let subagents = history.chains.iter().filter(|chain| chain.agent.is_some()).count() as u64;
    row("chains", history.chains.len() as u64, format!("{} with calls", counted(subagents, "subagent")));
    let compactions: u64 = history.chains.iter().map(|chain| u64::from(chain.compactions)).sum();
    row("compactions", compactions, parts(&[(history.evictions.len() as u64, "results cleared by micro-compaction")]));
    let states = Status::ALL.map(|status| (of_status(history, status), status.key()));
    row("tool calls, each once", history.calls.len() as u64, parts(&states));
    let copies =
        [(merged.duplicate_call, "copies merged"), (merged.superseded_progress, "repeats of subagents left out")];
    row("copies of calls", merged.duplicate_call + merged.superseded_progress, parts(&copies));
    row("results without a call", merged.orphan_result, String::new());
    let billed = history.messages.iter().filter(|message| message.billed);
    let unfinished = billed.clone().filter(|message| !message.finished).count() as u64;
    let bound = format!("{} without stop_reason: output is a lower bound", thousands(unfinished));
    row("API messages, each once", billed.count() as u64, bound);
    row("records of messages merged", merged.duplicate_message, String::new());
    table
}
