//! `devboy pool`: contributions of many people as what may be published.

use std::path::PathBuf;

use clap::ValueEnum;
use serde_json::json;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::visible::{Shown as _, visible};
use crate::commands::mine::export::{ExportArgs, Mined};
use crate::commands::share;
use crate::fleet::folder::{Judge, NO_ROWS, TOO_OLD};
use crate::fleet::limits::{FleetLimits, SHEET};
use crate::fleet::pool::{Pooled, pooled};
use crate::fleet::sums::summed;
use crate::fleet::{roster, tables};
use crate::frames::{contribution, export};
use crate::report::numbers::counted;
use crate::report::table;
use crate::settings::write_private;
use crate::shell::context::Context;

/// Pool the contributions of a team: every published row stands on several people.
///
/// Reads folders that `devboy share` wrote into. A count is published only if at least five people have a part in it and
/// none of them more than half (rules/fleet.toml), and so must what it leaves of the whole it is a part of. Files that no
/// devboy can have written are refused by name. Whose week was pooled is noted in pool-roster.json in the folders: a week
/// of a person is pooled once, in a batch of at least five people, so that two pools never differ by one person. With
/// --publish the directory gets pool.parquet (for `tune --team`), endpoints.parquet, tools.parquet, edges.parquet and
/// what_if.parquet. With --rows calls are counted anew from the light rows beside the counts (`devboy share --rows`).
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Folders with contributions.
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// Write the pool into this directory.
    #[arg(long, value_name = "DIR")]
    publish: Option<PathBuf>,
    /// What is printed.
    #[arg(long, value_enum, default_value_t)]
    by: PoolBy,
    /// Count calls anew, from the light rows of whoever gave them (`devboy share --rows`); rows that do not give the counts
    /// beside them are refused. Other settings are not in rows.
    #[arg(long)]
    rows: bool,
    /// The contributions have plain names (`devboy share --plain-names`).
    #[arg(long)]
    plain_names: bool,
    /// Take data files (bounds) from here instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    rules_dir: Option<PathBuf>,
    #[command(flatten)]
    export: ExportArgs,
}

/// Refused contributions that an error names.
const REFUSED_NAMED: usize = 10;

/// What a pool is shown by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, ValueEnum)]
pub enum PoolBy {
    /// Fingerprints of endpoints.
    #[default]
    Endpoints,
    /// Tools.
    Tools,
    /// Follow-up edges.
    Edges,
    /// What other settings would have cost (`devboy share --what-if`).
    WhatIf,
}

/// Reads, pools, notes whose weeks are spent, shows, writes.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    check_places(args)?;
    let limits: FleetLimits = Data::new(args.rules_dir.as_deref())?.parsed(SHEET)?;
    let naming = share::naming(args.plain_names, context)?;
    share::enough_secret(&limits, args.plain_names, context)?;
    let judge = Judge { naming: &naming, limits: &limits, now_ms: context.now_ms, by_rows: args.rows };
    let _locks = roster::locked(&args.directories)?;
    let held = judge.read(&args.directories)?;
    if held.given.is_empty() {
        return Err(nothing_to_pool(&held.refused));
    }
    let found = pooled(&held, naming.secret(), &limits);
    // Kept first: a pool whose people are not noted could be pooled again with one more.
    if found.roster != held.roster {
        let text = serde_json::to_vec_pretty(&found.roster).map_err(|cause| Error::failed(cause.to_string()))?;
        for directory in &args.directories {
            write_private(&directory.join(roster::FILE), &text)?;
        }
    }
    if !args.export.quiet {
        tell(&held.refused, &found, &limits, context)?;
    }
    let sums = summed(&found.pool, |_| 1.0);
    let all = [
        (PoolBy::Endpoints, "endpoints", tables::endpoints(&sums)),
        (PoolBy::Tools, "tools", tables::tools(&sums)),
        (PoolBy::Edges, "edges", tables::edges(&sums)),
        (PoolBy::WhatIf, "what_if", tables::what_ifs(&sums)),
    ];
    if let Some(directory) = &args.publish {
        write_private(&directory.join("pool.parquet"), contribution::write_pool(&found.pool)?)?;
        for (_, name, rows) in &all {
            let mut bytes = Vec::new();
            export::write_listing(&mut bytes, rows, &[])?;
            write_private(&directory.join(format!("{name}.parquet")), bytes)?;
        }
    }
    for (by, name, rows) in all {
        if by == args.by {
            let (overview, fields) = (table::of_shares(&rows, &tables::HEADINGS), fields(&held.refused, &found));
            let mined = Mined { overview, fields, ..Mined::listed("pool", name, rows) };
            args.export.send_mined(context, mined)?;
        }
    }
    Ok(())
}

/// Refuses folders that are not there, and a pool among what is pooled.
fn check_places(args: &Args) -> Result<()> {
    if let Some(missing) = args.directories.iter().find(|directory| !directory.is_dir()) {
        return Err(Error::failed(format!("there is no directory {}", missing.shown()))
            .hint("name the folder that the team shares: everybody writes into it with `devboy share --to DIR`"));
    }
    let given = || args.directories.iter().filter_map(|directory| directory.canonicalize().ok());
    let published = args.publish.as_ref().and_then(|directory| directory.canonicalize().ok());
    if published.is_some_and(|published| given().any(|given| given == published)) {
        return Err(Error::usage(
            "--publish names a folder of contributions: the next run would refuse the pool there",
        )
        .hint("name a folder apart from those that are pooled"));
    }
    Ok(())
}

/// The error of folders without a contribution that could be pooled.
fn nothing_to_pool(refused: &[(String, String)]) -> Error {
    if refused.is_empty() {
        return Error::failed("there are no contributions")
            .hint("`devboy share --to DIR` writes them as DIR/user=…/week=…/contribution.parquet");
    }
    let why: Vec<String> = refused.iter().take(REFUSED_NAMED).map(|(place, why)| format!("{place}: {why}")).collect();
    let all = counted(refused.len() as u64, "contribution");
    Error::failed(format!("nothing to pool: {all} refused")).hint(why.join("\n"))
}

fn tell(refused: &[(String, String)], found: &Pooled, limits: &FleetLimits, context: &mut Context<'_>) -> Result<()> {
    for reason in [TOO_OLD, NO_ROWS] {
        let left_out = refused.iter().filter(|(_, why)| why == reason).count();
        if left_out > 0 {
            writeln!(context.err, "# {} left out: {reason}", counted(left_out as u64, "contribution"))?;
        }
    }
    for (place, why) in refused.iter().filter(|(_, why)| ![TOO_OLD, NO_ROWS].contains(&why.as_str())) {
        writeln!(context.err, "# refused {}: {}", visible(place), visible(why))?;
    }
    for note in &found.notes {
        writeln!(context.err, "# {}", visible(note))?;
    }
    for (week, (people, waiting)) in &found.weeks {
        let waiting = match waiting {
            0 => String::new(),
            more => format!(", {more} wait until they are {}", limits.people_min),
        };
        let of = if *people == 1 { "person" } else { "people" };
        writeln!(context.err, "# week={week}: {people} {of} pooled{waiting}")?;
    }
    let (told, suppressed) = found.subjects;
    writeln!(context.err, "# {} shown, {suppressed} left out: too few people", counted(told, "subject"))?;
    Ok(())
}

fn fields(refused: &[(String, String)], found: &Pooled) -> serde_json::Value {
    let refused: Vec<_> = refused.iter().map(|(place, why)| json!({ "place": place, "why": why })).collect();
    let week = |(week, (people, waiting)): (&String, &(u64, u64))| json!({ "week": week, "people": people, "waiting": waiting });
    json!({
        "refused": refused,
        "weeks": found.weeks.iter().map(week).collect::<Vec<_>>(),
        "subjects": { "told": found.subjects.0, "left_out": found.subjects.1 },
        "notes": found.notes,
    })
}
