//! `devboy session`: one session in time.

use serde_json::json;

use crate::base::error::Result;
use crate::commands::input::{BilledLogs, QuestionArgs};
use crate::cost::asked_session::asked_session;
use crate::cost::groups::Label;
use crate::cost::session::SessionCost;
use crate::cost::shown_names::ShownNames;
use crate::cost::{session, session_tables as tables};
use crate::frames::input::Input;
use crate::logs::overview::Holds;
use crate::logs::trace::Place;
use crate::report::table::{self, TableFormat};
use crate::shell::arguments;
use crate::shell::context::Context;
use crate::whatif::sim::simulator::Simulator;

/// Rows of each table that nobody asked to be longer.
const TOP: u32 = 10;
/// Print one session in time: its context, compactions, cache misses, and what was most expensive.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The id of the session, as `claude --resume` takes it, or how it begins. Default: the latest session.
    #[arg(value_name = "ID")]
    id: Option<String>,
    /// So many rows of each table. CSV has all requests.
    #[arg(long, value_name = "N", default_value_t = TOP, value_parser = arguments::rows)]
    top: u32,
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
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let mut logs = BilledLogs::open(&args.asked, context)?;
    let flags = args.asked.same_logs(None, None, false);
    let Some(index) = asked_session(args.id.as_deref(), &logs.workload.timeline, &mut logs.input, &flags)? else {
        return show_none(args, &logs.input, context);
    };
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
    let is_redacted = args.redact || args.asked.output.is_shared();
    let names = ShownNames::of(labels(), is_redacted, &logs.input);
    logs.input.tell(&args.asked.output, context)?;
    let top = if args.all { usize::MAX } else { args.top as usize };
    let name = |label: &Label| names.full(label);
    match form {
        TableFormat::Csv => table::table(&tables::listing(&found)).write(context.out, TableFormat::Csv, None)?,
        TableFormat::Json => {
            let [session, project] = head.each_ref().map(|label| names.full(label));
            let own = json!({
                "session": session,
                "project": project,
                "subagents": found.subagents,
                "total": found.total,
                "again": found.again,
                "requests": table::json(&tables::listing(&found)),
                "carried": tables::carried_json(&found.carried, top, &name),
            });
            logs.input.write_json("session", own, (&args.asked.output, is_redacted), context)?;
        }
        form => {
            let session = names.short(&head[0]);
            let title = format!("Session {} in {}", session.trim_start_matches("session "), names.short(&head[1]));
            show(&title, &found, (top, &name), form, context)?;
        }
    }
    Ok(())
}

/// Where there is no session, and none is no error.
fn show_none(args: &Args, input: &Input, context: &mut Context<'_>) -> Result<()> {
    let output = &args.asked.output;
    input.tell(output, context)?;
    match output.form() {
        TableFormat::Json => input.write_json("session", json!({ "session": null }), (output, args.redact), context),
        TableFormat::Csv => {
            let none = table::table(&tables::listing(&SessionCost::default()));
            none.write(context.out, TableFormat::Csv, None)
        }
        _ => context.note(output.quiet, "no session in these logs"),
    }
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
    let drawing = tables::drawing(found, *width);
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
