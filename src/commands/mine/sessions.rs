//! `devboy mine sessions`: a row for each session, under a pseudonym.

use serde_json::json;

use crate::base::error::Result;
use crate::base::id::Id;
use crate::commands::mine::export::{Mined, MinedArgs};
use crate::cost::groups::Label;
use crate::cost::shown_names::ShownNames;
use crate::frames::input::Input;
use crate::frames::tool_use::SessionRowSummary;
use crate::mine::{sessions, tables as mined};
use crate::settings::classify_agent;
use crate::shell::context::Context;

/// Print one row per session: span, calls, chains, compactions, turns, models, tokens, class.
///
/// The table has ids as `claude --resume` takes them and the names of projects, for you alone; all other forms have
/// pseudonyms, unless --names is given. A row is about one session, so --k-anonymity above 1 leaves none.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Letters instead of sessions and projects in the table.
    #[arg(long, conflicts_with = "names")]
    redact: bool,
    #[command(flatten)]
    asked: MinedArgs,
}

/// Hex digits that tell the sessions of one person apart.
const DIGITS: usize = 16;

/// Reads, sums up, prints.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let export = &args.asked.export;
    let mut input = args.asked.read((0, None), context)?;
    let words = &input.vocabulary;
    let question = format!("sessions {:?} {:?}", words.read_class_tools, words.tool_aliases);
    let rows: Vec<SessionRowSummary> = input.remember(&question, |input| {
        let (history, names) = input.named_history();
        Ok(sessions::sessions(&history, &names, &input.vocabulary.read_class_tools))
    })?;
    if rows.is_empty() && !args.asked.input.allow_empty {
        return Err(input.nothing_in_window("tool calls"));
    }
    let classed = rows.into_iter().map(|row| {
        let class = classify_agent(row.calls, row.read_calls, row.compactions).into_str().to_owned();
        SessionRowSummary { class, ..row }
    });
    let (rows, left_out) = args.asked.kept.keep(classed, |_| 1);
    let shown = for_people(&rows, args.redact, &input, ShownNames::short);
    let hidden =
        |text: &str| context.pseudonyms.id(Id::from_hex(text).unwrap_or_default()).to_string()[..DIGITS].to_owned();
    let hide = |row: &SessionRowSummary| SessionRowSummary {
        session: hidden(&row.session),
        project: context.pseudonyms.project(&row.project),
        ..row.clone()
    };
    let rows: Vec<SessionRowSummary> =
        if export.names { for_people(&rows, false, &input, ShownNames::full) } else { rows.iter().map(hide).collect() };
    export.tell(&input, (left_out, args.asked.kept), context)?;
    let mined = Mined {
        overview: mined::sessions_overview(&shown),
        top: args.asked.kept.top(),
        fields: input.fields(json!({ "left_out": left_out })),
        ..Mined::listed("mine sessions", "sessions", mined::sessions(&rows))
    };
    export.send_mined(context, mined)
}

/// The rows under the names that their owner knows, or under letters; sessions by their whole ids or by the start of them.
fn for_people(
    rows: &[SessionRowSummary],
    is_redacted: bool,
    input: &Input,
    session_name: fn(&ShownNames, &Label) -> String,
) -> Vec<SessionRowSummary> {
    let id = |text: &str| Id::from_hex(text).unwrap_or_default();
    let labels: Vec<[Label; 2]> =
        rows.iter().map(|row| [Label::Session(id(&row.session)), Label::Project(id(&row.project))]).collect();
    let all = || labels.iter().flatten();
    let names = ShownNames::of(all(), is_redacted, input);
    let named = |(row, [session, project]): (&SessionRowSummary, &[Label; 2])| SessionRowSummary {
        session: session_name(&names, session),
        project: names.short(project),
        ..row.clone()
    };
    rows.iter().zip(&labels).map(named).collect()
}
