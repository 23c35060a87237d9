//! `devboy session`: one session in time.

use std::collections::BTreeMap;

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::base::unpack::Packing;
use crate::base::visible::visible;
use crate::commands::billed_logs::BilledLogs;
use crate::commands::input::QuestionArgs;
use crate::commands::shown_names::ShownNames;
use crate::cost::groups::Label;
use crate::cost::session::SessionCost;
use crate::cost::{session, session_tables as tables};
use crate::frames::input::Input;
use crate::logs::history;
use crate::logs::overview::Holds;
use crate::logs::timeline::requests::{Session, Timeline};
use crate::logs::trace::{Millis, NO_TIME, Place};
use crate::report::numbers::{date, days};
use crate::report::table::TableFormat;
use crate::report::{sharing, table};
use crate::shell::arguments;
use crate::shell::arguments::Exit;
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::sim::simulator::Simulator;

/// Rows of each table that nobody asked to be longer.
const TOP: usize = 10;
/// Sessions that an error names.
const CANDIDATES: usize = 10;
/// What the names of logs of subagents begin with.
const SUBAGENT: &str = "agent-";
/// What to do about a session that is not in the window.
const WIDEN: &str = "widen --since, --until or --days";

/// Print one session in time: its context, compactions, cache misses, and what was most expensive.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The id of the session, as `claude --resume` takes it, or how it begins. Default: the latest session.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// So many rows of each table. CSV has all requests.
    #[arg(long, value_name = "N", value_parser = arguments::rows)]
    top: Option<u32>,
    /// All rows.
    #[arg(long, conflicts_with = "top")]
    all: bool,
    /// Letters instead of the names of projects, servers and sessions.
    #[arg(long, conflicts_with = "names")]
    redact: bool,
    #[command(flatten)]
    asked: QuestionArgs,
}

/// Reads, looks up, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let mut logs = BilledLogs::open(&args.asked, context)?;
    let Some(index) = chosen(args, &mut logs)? else { return Ok(Exit::Done) };
    let own = logs.workload.timeline.chains.iter().filter(|chain| chain.session == index);
    let in_progress = own.filter(|chain| chain.place == Place::Progress).count() as u64;
    logs.input.report_holds_of(in_progress, Holds::FirstChunks);
    let timeline = &logs.workload.timeline;
    let bill = logs.bill();
    let simulator = Simulator::new(timeline, &logs.workload.sizes, &logs.cache, &logs.workload.prices);
    let found = logs.input.pool.install(|| session::of(&bill, &simulator, index));
    let about = &timeline.sessions[index as usize];
    let head = [Label::Session(about.id), Label::Project(about.project)];
    let labels = || head.iter().chain(found.carried.iter().map(|row| &row.label));
    let form = args.asked.output.form();
    let is_redacted = args.redact || (form == TableFormat::Md && !args.asked.output.names);
    let names = if is_redacted { ShownNames::letters(labels()) } else { ShownNames::real(labels(), &logs.input) };
    logs.input.tell(&args.asked.output, context)?;
    let top = if args.all { usize::MAX } else { args.top.map_or(TOP, |top| top as usize) };
    let name = |label: &Label| names.full(label);
    match form {
        TableFormat::Csv => table::table(&tables::listing(&found)).write(context.out, TableFormat::Csv, None)?,
        TableFormat::Json => {
            let [session, project] = head.each_ref().map(|label| names.full(label));
            let mut fields = logs.input.fields(json!({
                "session": session,
                "project": project,
                "subagents": found.subagents,
                "total": found.total,
                "again": found.again,
                "requests": table::json(&tables::listing(&found)),
                "carried": tables::carried_json(&found.carried, top, &name),
            }));
            if is_redacted {
                sharing::hide_places(&mut fields);
            }
            args.asked.output.write_json("session", fields, context)?;
        }
        form => {
            let session = names.short(&head[0]);
            let title = format!("Session {} in {}", session.trim_start_matches("session "), names.short(&head[1]));
            show(&title, &found, (top, &name), form, context)?;
        }
    }
    Ok(Exit::Done)
}

/// The index of the session asked for; none if there is no session at all.
fn chosen(args: &Args, logs: &mut BilledLogs) -> Result<Option<u32>> {
    let timeline = &logs.workload.timeline;
    let ends = ends(timeline);
    let latest = || (0..timeline.sessions.len()).max_by_key(|&at| (ends[at], std::cmp::Reverse(at)));
    let Some(id) = args.id.as_deref() else { return Ok(latest().map(|at| at as u32)) };
    // The name of its file, or as it was copied from somewhere.
    let id = id.strip_suffix(".jsonl").unwrap_or(id);
    let labels: Vec<Label> = timeline.sessions.iter().map(|session| Label::Session(session.id)).collect();
    let names = ShownNames::real(labels.iter(), &logs.input);
    let fits = |at: &usize| begins_with(&names.full(&labels[*at]), id);
    let found: Vec<usize> = (0..labels.len()).filter(fits).collect();
    let exact = found.iter().find(|&&at| names.full(&labels[at]).eq_ignore_ascii_case(id));
    match (found.as_slice(), exact) {
        (_, Some(&at)) | (&[at], None) => return Ok(Some(at as u32)),
        (&[], None) => {
            if let Some(refusal) = outside(id, &mut logs.input) {
                return Err(refusal);
            }
        }
        _ => {}
    }
    let timeline = &logs.workload.timeline;
    let message = match found.len() {
        0 => format!("no session begins with \"{id}\""),
        count => format!("{count} sessions begin with \"{id}\""),
    };
    let mut listed: Vec<usize> = if found.is_empty() { (0..labels.len()).collect() } else { found };
    listed.sort_by_key(|&at| (std::cmp::Reverse(ends[at]), at));
    let count = listed.len();
    listed.truncate(CANDIDATES);
    let projects: Vec<Label> = listed.iter().map(|&at| Label::Project(timeline.sessions[at].project)).collect();
    let shown = ShownNames::real(projects.iter(), &logs.input);
    let line = |(&at, project): (&usize, &Label)| {
        let Session { ts_first, .. } = timeline.sessions[at];
        let day = if ts_first == NO_TIME { "no date".to_owned() } else { date(ts_first) };
        format!("{}  {day}  {}", names.full(&labels[at]), shown.short(project))
    };
    let mut lines: Vec<String> = listed.iter().zip(&projects).map(line).collect();
    if count > CANDIDATES {
        let flags = args.asked.same_logs(None, false);
        let gap = if flags.is_empty() { "" } else { " " };
        lines.push(format!("and {} more: `devboy mine sessions{gap}{flags}`", count - CANDIDATES));
    }
    Err(Error::failed(message).hint(lines.join("\n")))
}

fn begins_with(name: &str, id: &str) -> bool {
    name.get(..id.len()).is_some_and(|head| head.eq_ignore_ascii_case(id))
}

/// The error of a session that is there, but not in the window asked for.
fn outside(id: &str, input: &mut Input) -> Option<Error> {
    if input.window == window::ALL {
        return None;
    }
    let asked = std::mem::replace(&mut input.window, window::ALL);
    let sessions = input.history().sessions;
    input.window = asked;
    let labels: Vec<Label> = sessions.iter().map(|session| Label::Session(session.id)).collect();
    let names = ShownNames::real(labels.iter(), input);
    let known = sessions.iter().zip(&labels).map(|(session, label)| (names.full(label), Some(session)));
    // Of logs that were not opened for being older only the names are known.
    let older = input.listing.files.iter().filter(|file| file.modified_ns / 1_000_000 < input.window.start);
    let older = older.filter_map(|file| Some(String::from_utf8_lossy(Packing::split_name(&file.path)?.0).into_owned()));
    let older = older.filter(|name| !name.starts_with(SUBAGENT)).map(|name| (visible(&name).into_owned(), None));
    let mut found: BTreeMap<String, Option<&history::Session>> =
        older.chain(known).filter(|(name, _)| begins_with(name, id)).collect();
    let asked = window::words(&input.window);
    let count = found.len();
    let (name, session) = found.pop_first()?;
    if count > 1 {
        let message = format!("{count} sessions begin with \"{id}\", and none has a request in the window {asked}");
        return Some(Error::failed(message).hint(WIDEN));
    }
    let span = session.filter(|session| session.ts_first != NO_TIME);
    let span = span.map(|session| format!("it is of {}: ", days(session.ts_first, session.ts_last)));
    let message = format!("session {name} has no request in the window {asked}");
    Some(Error::failed(message).hint(span.unwrap_or_default() + WIDEN))
}

/// When the last request of each session ended.
fn ends(timeline: &Timeline) -> Vec<Millis> {
    let mut ends = vec![Millis::MIN; timeline.sessions.len()];
    for request in timeline.requests.iter().filter(|request| request.end != NO_TIME) {
        let end = &mut ends[timeline.chains[request.chain as usize].session as usize];
        *end = request.end.max(*end);
    }
    ends
}

type TopNamed<'n> = (usize, &'n dyn Fn(&Label) -> String);

fn show(
    title: &str,
    found: &SessionCost,
    (top, name): TopNamed<'_>,
    form: TableFormat,
    context: &mut Context<'_>,
) -> Result<()> {
    let Context { out, width, .. } = context;
    let mut say = |words: &str| writeln!(out, "{}\n", form.sentence(words));
    say(title)?;
    say(&tables::headline(found))?;
    let drawing = tables::drawing(found);
    if !drawing.is_empty() {
        let fence = if form == TableFormat::Md { "```\n" } else { "" };
        writeln!(out, "{fence}{}\n{fence}{}\n", drawing.join("\n"), tables::CAPTION)?;
    }
    let (events, all) = tables::events(found, top);
    let some =
        if events.len() < all { format!(": {} of {all}, the rest with --all", events.len()) } else { String::new() };
    let dearest = tables::dearest(found, top);
    let sections = [
        (format!("Compactions and cache misses{some}"), tables::moments(found, &events)),
        ("Most expensive requests".to_owned(), tables::moments(found, &dearest)),
        ("What was most expensive to carry".to_owned(), tables::carried(&found.carried, top, name)),
    ];
    for (title, table) in sections.iter().filter(|(_, table)| !table.is_empty()) {
        writeln!(out, "{}", form.sentence(title))?;
        if form == TableFormat::Md {
            writeln!(out)?;
        }
        table.write(out, form, *width)?;
        writeln!(out)?;
    }
    Ok(())
}
