//! `devboy ingest --prune`: drops telemetry that is older than it is kept.

use std::path::PathBuf;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::numbers::{DAY_MS, HOUR_MS};
use crate::base::unpack::Packing;
use crate::commands::config::settings;
use crate::commands::responses::surroundings;
use crate::logs::trace::Millis;
use crate::report::numbers::{counted, thousands};
use crate::settings::write_private;
use crate::shell::context::Context;
use crate::telemetry::{EventFile, RetentionLimits, Sifted, TelemetryRules, event_files, places, sift};

/// What was dropped.
#[derive(Default)]
struct Pruned {
    events: u64,
    summaries: u64,
    removed: u64,
    rewritten: u64,
    in_use: u64,
    packed: u64,
}

/// Drops what is too old in every place where telemetry is known to be recorded.
///
/// A file that was written to lately may belong to a running pipeline, which would go on writing into a file that nobody
/// sees any more: it is left as it is until it is quiet.
///
/// # Errors
/// Whatever the disk says; files done before stay done.
pub fn prune(data: &Data, quiet: bool, context: &mut Context<'_>) -> Result<()> {
    let rules = data.parsed::<TelemetryRules>("telemetry.toml")?;
    let limits = RetentionLimits {
        events: context.now_ms - Millis::from(rules.events_days) * DAY_MS,
        summaries: context.now_ms - Millis::from(rules.summaries_days) * DAY_MS,
    };
    let mut pruned = Pruned::default();
    for file in event_files(&mut places(&[], &surroundings(&settings(context)?, context))).files {
        let busy = file.modified_ms > context.now_ms - Millis::from(rules.quiet_hours) * HOUR_MS;
        prune_file(&file, busy, limits, &mut pruned)?;
    }
    if !quiet {
        tell(&pruned, &rules, context)?;
    }
    Ok(())
}

fn prune_file(file: &EventFile, busy: bool, limits: RetentionLimits, pruned: &mut Pruned) -> Result<()> {
    if file.packing != Packing::Plain {
        pruned.packed += 1;
        return Ok(());
    }
    if busy {
        pruned.in_use += 1;
        return Ok(());
    }
    // A link leads to where a pipeline writes: that file is sifted.
    let place = file.path.canonicalize().map_err(|cause| Error::io("opening", &file.path, &cause))?;
    let text = crate::base::files::read(&place).map_err(|cause| Error::io("reading", &file.path, &cause))?;
    let Sifted { kept, events, summaries } = sift(&text, limits);
    if events + summaries == 0 {
        return Ok(());
    }
    pruned.events += events;
    pruned.summaries += summaries;
    if kept.iter().all(u8::is_ascii_whitespace) {
        pruned.removed += 1;
        let link = file.path.is_symlink().then_some(&file.path);
        let remove = |path: &PathBuf| std::fs::remove_file(path).map_err(|cause| Error::io("removing", path, &cause));
        return [&place].into_iter().chain(link).try_for_each(remove);
    }
    pruned.rewritten += 1;
    write_private(&place, kept)
}

fn tell(pruned: &Pruned, rules: &TelemetryRules, context: &mut Context<'_>) -> Result<()> {
    let Pruned { events, summaries, removed, rewritten, in_use, packed } = *pruned;
    let TelemetryRules { events_days, summaries_days, quiet_hours, .. } = rules;
    let err = &mut context.err;
    let summaries = if summaries == 1 { "1 summary".to_owned() } else { format!("{} summaries", thousands(summaries)) };
    let events = counted(events, "event");
    writeln!(err, "# pruned: {events} older than {events_days} days, {summaries} older than {summaries_days} days")?;
    writeln!(err, "# pruned: {} removed, {} shortened", counted(removed, "file"), thousands(rewritten))?;
    if in_use + packed > 0 {
        let in_use = counted(in_use, "file");
        writeln!(err, "# pruned: left {in_use} written to within {quiet_hours} hours, {packed} compressed")?;
    }
    Ok(())
}
