//! `devboy ingest`: bring the lake up to date and say what was read; with `--prune`, drop telemetry that is older than it is kept.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::numbers::{DAY_MS, HOUR_MS};
use crate::base::unpack::Packing;
use crate::commands::config::settings;
use crate::commands::responses::surroundings;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::overview::{Holds, Overview};
use crate::logs::trace::{Millis, Status};
use crate::mine::quality;
use crate::mine::totals::{TotalSums, Totals};
use crate::report::numbers::{bytes, counted, days, thousands};
use crate::report::sharing;
use crate::report::table::{Table, TableFormat};
use crate::settings::write_with_its_mode;
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry::{EventFile, RetentionLimits, Sifted, TelemetryRules, annotated_path, event_files, places, sift};

/// Update what devboy keeps of your logs (the lake) and say what was read.
///
/// The lake holds one row per call: sizes, hashes, classes, times. No text of your logs is in it. It is a cache, except
/// that it keeps the rows of logs that Claude Code has deleted.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// First drop telemetry that is older than it is kept: raw events after 30 days, session summaries after 90.
    #[arg(long)]
    prune: bool,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
}

/// What there is to say about the logs.
#[derive(Serialize, Deserialize)]
struct LogsReport {
    totals: Totals,
    overview: Overview,
}

/// Reads what is new, then reports.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    if args.prune {
        prune(&Data::new(args.input.rules_dir.as_deref())?, args.output.quiet, context)?;
    }
    let detail = Some(TimelineDetail::default());
    let mut input = Input::read(&args.input, window::ALL, (0, detail), &args.output, context)?;
    input.expect_records(&args.input)?;
    input.keep_timelines()?;
    input.sum_messages();
    let said = input.remember("said", |input| {
        let (overview, totals, names) = input.overview_seeing(&TotalSums::add)?;
        Ok(LogsReport { totals: totals.finish(&names), overview })
    })?;
    input.report_holds(Holds::Calls)?;
    input.tell_notes(&args.output, context)?;
    show(args, &input, &said, context)?;
    tell_if_not_kept(args, &input, context)
}

/// Says why the lake does not hold what was read, also in a quiet run: it is what the command is run for.
fn tell_if_not_kept(args: &Args, input: &Input, context: &mut Context<'_>) -> Result<()> {
    if args.input.no_lake || input.is_kept() {
        return Ok(());
    }
    for note in input.notes.iter().filter(|_| args.output.quiet) {
        writeln!(context.err, "devboy: {note}")?;
    }
    let is_placed = args.input.lake.is_some() || context.env.lake_dir().is_some();
    let place = if is_placed { "" } else { " (neither XDG_CACHE_HOME nor HOME says where; --lake DIR does)" };
    let told = "what these logs say was read and not kept: it is gone once Claude Code deletes them";
    Ok(writeln!(context.err, "devboy: {told}{place}")?)
}

fn show(args: &Args, input: &Input, said: &LogsReport, context: &mut Context<'_>) -> Result<()> {
    let damage = quality::of(&input.sources);
    if args.output.form() == TableFormat::Json {
        args.output.write_json(
            "ingest",
            json!({
                "inputs": input.json(),
                "data_quality": damage,
                "totals": said.totals,
                "history": said.overview,
            }),
            context,
        )?;
        return Ok(());
    }
    let mut summary = summary(input, said);
    if args.output.form() != TableFormat::Table {
        // One table for a machine to read.
        let is_shared = args.output.is_shared();
        for (reason, row) in &damage {
            let first = if is_shared { sharing::hidden_place(&row.first) } else { row.first.clone() };
            summary.row([format!("malformed lines: {}", reason.into_str()), thousands(row.count), first]);
        }
        summary.write(context.out, args.output.form(), context.width)?;
        return Ok(());
    }
    summary.write(context.out, TableFormat::Table, context.width)?;
    if !damage.is_empty() {
        writeln!(context.out)?;
        quality::table(&damage).write(context.out, TableFormat::Table, context.width)?;
        quality::write_places(context.out, &damage)?;
    }
    Ok(())
}

fn summary(input: &Input, said: &LogsReport) -> Table {
    let tally = &input.tally;
    let LogsReport { totals, overview } = said;
    let merged = &overview.merged;
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
        (tally.studied, "read anew for a replay"),
        (tally.unchanged, "unchanged"),
        (merged.sidecar_files, if merged.sidecar_files == 1 { "not a session log" } else { "not session logs" }),
    ];
    if tally.files > 0 {
        row("files on disk", tally.files, parts(&files));
    }
    if input.kept() > 0 {
        row("deleted files kept in the lake", input.kept(), String::new());
    }
    row("bytes", tally.bytes, format!("{}, {} read now", bytes(tally.bytes), bytes(tally.bytes_read)));
    let broken = [
        (
            totals.bad_fragments,
            if totals.bad_fragments == 1 { "broken piece besides" } else { "broken pieces besides" },
        ),
        (totals.non_objects, "other values besides"),
    ];
    row("records", totals.records, parts(&broken));
    let span = overview.span_ms.map(|(first, last)| days(first, last));
    row("sessions", overview.sessions, span.unwrap_or_default());
    let in_progress = [(overview.subagents_in_progress, "of them in progress records only")];
    let subagents = [counted(overview.subagents(), "subagent"), parts(&in_progress)];
    row("chains with calls", overview.chains, subagents.join(", ").trim_end_matches(", ").to_owned());
    let cleared = format!("{} cleared by micro-compaction", counted(overview.evictions, "result"));
    row("compactions", overview.compactions, if overview.evictions > 0 { cleared } else { String::new() });
    let states =
        Status::ALL.map(|status| (overview.status.get(status.into_str()).copied().unwrap_or(0), status.into_str()));
    row("tool calls, each once", overview.calls, parts(&states));
    let copies = [(merged.duplicate_call, "merged"), (merged.superseded_progress, "in progress records left out")];
    row("copies of calls", merged.duplicate_call + merged.superseded_progress, parts(&copies));
    row("results without a call", merged.orphan_result, String::new());
    let mut bound =
        format!("{} without stop_reason, whose output is a lower bound", thousands(overview.messages_unfinished));
    if overview.subagents_in_progress > 0 {
        bound += "; those known from progress records only are not counted";
    }
    row("API messages, each once", overview.messages, bound);
    row("copies of messages merged", merged.duplicate_message, String::new());
    table
}

/// What was dropped.
#[derive(Default)]
struct Pruned {
    events: u64,
    beside: u64,
    summaries: u64,
    removed: u64,
    rewritten: u64,
    in_use: u64,
    packed: u64,
}

impl Pruned {
    fn add(&mut self, sifted: &Sifted) {
        self.events += sifted.events;
        self.beside += sifted.beside;
        self.summaries += sifted.summaries;
    }
}

/// Drops what is too old in every place where telemetry is known to be recorded.
///
/// A file that was written to lately may belong to a running pipeline, which would go on writing into a file that nobody
/// sees any more: it is left as it is until it is quiet. If the disk refuses, files done before stay done.
fn prune(data: &Data, quiet: bool, context: &mut Context<'_>) -> Result<()> {
    let rules = data.parsed::<TelemetryRules>("telemetry.toml")?;
    let limits = RetentionLimits {
        events: context.now_ms - Millis::from(rules.events_days) * DAY_MS,
        summaries: context.now_ms - Millis::from(rules.summaries_days) * DAY_MS,
    };
    let mut pruned = Pruned::default();
    let files = event_files(&mut places(&[], &surroundings(&settings(context)?, context))).files;
    // What stands in an annotated file stands in its original too.
    let annotated: BTreeSet<PathBuf> = files.iter().map(|file| annotated_path(&file.path)).collect();
    for file in files {
        let busy = file.modified_ms > context.now_ms - Millis::from(rules.quiet_hours) * HOUR_MS;
        let lines = prune_file(&file, busy, limits, &mut pruned)?;
        if !annotated.contains(&file.path) {
            pruned.add(&lines);
        }
    }
    if !quiet {
        tell_pruned(&pruned, &rules, context)?;
    }
    Ok(())
}

/// Drops what is too old in a file; gives what that was.
fn prune_file(file: &EventFile, busy: bool, limits: RetentionLimits, pruned: &mut Pruned) -> Result<Sifted> {
    if file.packing != Packing::Plain {
        pruned.packed += 1;
        return Ok(Sifted::default());
    }
    if busy {
        pruned.in_use += 1;
        return Ok(Sifted::default());
    }
    // A link leads to where a pipeline writes: that file is sifted.
    let place = file.path.canonicalize().map_err(|cause| Error::io("opening", &file.path, &cause))?;
    let text = crate::base::files::read(&place).map_err(|cause| Error::io("reading", &file.path, &cause))?;
    let sifted = sift(&text, limits);
    if sifted.kept.len() == text.len() {
        return Ok(sifted);
    }
    if sifted.kept.iter().all(u8::is_ascii_whitespace) {
        pruned.removed += 1;
        let link = file.path.is_symlink().then_some(&file.path);
        let remove = |path: &PathBuf| std::fs::remove_file(path).map_err(|cause| Error::io("removing", path, &cause));
        [&place].into_iter().chain(link).try_for_each(remove)?;
    } else {
        pruned.rewritten += 1;
        write_with_its_mode(&place, &sifted.kept)?;
    }
    Ok(sifted)
}

fn tell_pruned(pruned: &Pruned, rules: &TelemetryRules, context: &mut Context<'_>) -> Result<()> {
    let Pruned { events, beside, summaries, removed, rewritten, in_use, packed } = *pruned;
    let TelemetryRules { events_days, summaries_days, quiet_hours, .. } = rules;
    let err = &mut context.err;
    let summaries = if summaries == 1 { "1 summary".to_owned() } else { format!("{} summaries", thousands(summaries)) };
    let beside = if beside > 0 { format!(" and {}", counted(beside, "context event")) } else { String::new() };
    let events = counted(events, "event") + &beside;
    writeln!(err, "# pruned: {events} older than {events_days} days, {summaries} older than {summaries_days} days")?;
    writeln!(err, "# pruned: {} removed, {} shortened", counted(removed, "file"), thousands(rewritten))?;
    if in_use + packed > 0 {
        let in_use = counted(in_use, "file");
        writeln!(err, "# pruned: left {in_use} written to within {quiet_hours} hours, {packed} compressed")?;
    }
    Ok(())
}
