//! `devboy tune search`: the few changes that save most, looked for in earlier sessions, judged on later ones.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::commands::config::{config_path, warn_unknown};
use crate::commands::input::QuestionArgs;
use crate::commands::tune::writing::{self, SettledProposal, WriteArgs};
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::timeline::requests::UsedModel;
use crate::replay::input::ReplayInput;
use crate::replay::reach::Reaches;
use crate::report::table::TableFormat;
use crate::rules::claude::search as claude;
use crate::rules::proposal::{KeyOwners, Proposal, closed, settle};
use crate::rules::search::{Search, SearchInput, SearchThresholds};
use crate::rules::{self, report as findings, search, statistics};
use crate::settings::annotations::Annotations;
use crate::settings::claude::layers::SettingsLayers;
use crate::settings::claude::levers::{Levers, SettingsScope};
use crate::settings::formats::{load_config, vocabularies};
use crate::settings::{Effective, SettingsFile, View};
use crate::shell::arguments::Exit;
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::client::LeverValue;
use crate::whatif::workload::Workload;

/// Search the pipeline's configuration and Claude Code's own settings for the few changes that save most.
///
/// Values of all keys that a replay can judge are tried, one change beside the other, on the earlier sessions; each step
/// is then judged on the later ones, with an interval over sessions that is corrected for the number of steps. Only what
/// holds there is written. Of Claude Code's settings the value of each that was cheapest on the earlier sessions is shown,
/// with what it did on the later ones; `devboy tune claude-settings` writes what pays.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Who runs the pipeline: host (results of MCP tools only), hook or gateway (everything).
    #[arg(long, value_name = "NAME", default_value = "host")]
    reach: String,
    /// Stop looking for more steps after so many seconds. Without it the search ends by itself, and its result is the
    /// same on every machine.
    #[arg(long, value_name = "S")]
    seconds: Option<u64>,
    #[command(flatten)]
    write: WriteArgs,
    #[command(flatten)]
    asked: QuestionArgs,
}

/// Reads, searches, shows, writes.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let path = config_path(args.write.output.as_ref(), context)?;
    let file = load_config(&path, false)?;
    let effective = Effective::resolve(&file)?;
    let tier = vocabularies(&effective.settings, None);
    let mut input = args.asked.read_calls(tier, Some(TimelineDetail::default()), ReplayInput::prepare, context)?;
    let reaches = Reaches::choose(Some(&args.reach), &input.data)?;
    let view = View::of(&file)?;
    let precedence = KeyOwners::load(&input.data, &file, None)?;
    let searched = Searched { file: &file, view: &view, precedence: &precedence };
    let found = found(args, &searched, &reaches, &mut input)?;
    let of_client = of_client(&mut input, context)?;
    let settled = settle(&view, &precedence, search::findings(&found, &view)?);
    let proposal = Proposal::new(&file, settled, &Annotations::load(&input.data)?)?;
    let answer = writing::answer(&args.write, &file, &proposal, &search::sentence(&found, &reaches.chosen().name));
    args.write.expect_writable(&file, &proposal)?;
    context
        .show(|context| show(args, (&found, &of_client), (&file, &proposal, &answer), (&reaches, &input), context))?;
    let calls = input.overview()?;
    let inputs = window::inputs("logs", calls.calls, calls.sessions, &input.window);
    let settled = SettledProposal {
        command: "tune search",
        file: &file,
        proposal: &proposal,
        predicted: Some(found.predicted()),
        inputs,
    };
    writing::conclude(&args.write, args.asked.output.quiet, settled, context)
}

struct Searched<'a> {
    file: &'a SettingsFile,
    view: &'a View<'a>,
    precedence: &'a KeyOwners,
}

fn found(args: &Args, searched: &Searched<'_>, reaches: &Reaches, input: &mut Input) -> Result<Search> {
    let &Searched { file, view, precedence } = searched;
    let thresholds = input.data.read(search::SHEET, SearchThresholds::parse)?;
    let later_min = statistics::numbers(&input.data)?.backtest.later_min;
    let make = |input: &mut Input| {
        let source = ReplayInput::new(None, input)?;
        let began: Vec<_> = source.history.sessions.iter().map(|session| session.ts_first).collect();
        let start = Instant::now();
        let goes_on = || args.seconds.is_none_or(|seconds| start.elapsed() < Duration::from_secs(seconds));
        let reach = reaches.chosen();
        let closed = |key: &KeyPath| closed(search::RULE, key, view, precedence);
        let (tape, thresholds) = (&source.tape, &thresholds);
        let (closed, goes_on) = (&closed, &goes_on);
        let search_input = SearchInput { file, tape, began: &began, reach, thresholds, later_min, closed, goes_on };
        input.pool.install(|| search_input.search())
    };
    // What was cut short is no answer to be kept.
    if args.seconds.is_some() {
        return make(input);
    }
    let question = format!("search {thresholds:?} {} {precedence:?} {:?}", file.text, reaches.chosen());
    input.remember(&question, make)
}

/// What the user has set already in Claude Code for requests of some models; nothing where that cannot be read.
pub fn standing(input: &mut Input, models: BTreeSet<UsedModel>, context: &Context<'_>) -> Result<Vec<LeverValue>> {
    let levers = Levers::load(&input.data)?;
    let places = context.env.claude_places();
    let layers = places.file(SettingsScope::User).map(|path| SettingsLayers::load(&places, SettingsScope::User, &path));
    let standing = layers.map_or(Ok(Vec::new()), |layers| rules::claude::standing(&layers?.about(models), &levers));
    // The client leaves a broken file out.
    Ok(standing.unwrap_or_else(|why| {
        input.notes.push(format!("settings are taken as not set: {}", why.message));
        Vec::new()
    }))
}

/// The same of Claude Code's own settings, beside what the user has set; nothing without requests.
fn of_client(input: &mut Input, context: &Context<'_>) -> Result<Vec<claude::ChosenValue>> {
    let models = input.remember("the models of all requests", |input| {
        let timeline = input.timeline(TimelineDetail::default())?;
        Ok(timeline.models(None))
    })?;
    let standing = standing(input, models, context)?;
    let make = |input: &mut Input| {
        let timeline = input.timeline(TimelineDetail::default())?;
        if timeline.requests.is_empty() {
            return Ok(Vec::new());
        }
        let workload = Workload::new(timeline, None, &input.data, false, true)?;
        input.pool.install(|| claude::search(&workload, &input.data, &standing))
    };
    input.remember(&format!("search of Claude Code's settings beside {standing:?}"), make)
}

fn show(
    args: &Args,
    (found, of_client): (&Search, &[claude::ChosenValue]),
    (file, proposal, answer): (&SettingsFile, &Proposal, &str),
    (reaches, input): (&Reaches, &Input),
    context: &mut Context<'_>,
) -> Result<()> {
    writing::tell_first(&args.asked.output, answer, true, context)?;
    input.tell(&args.asked.output, context)?;
    if !args.asked.output.quiet {
        warn_unknown(file, context)?;
    }
    let form = args.asked.output.form();
    if form == TableFormat::Json {
        let fields = input.fields(json!({
            "reach": reaches.chosen().id,
            "search": found,
            "claude_settings": claude::json(of_client),
            "findings": findings::json(&proposal.findings),
            "changes": proposal.count(),
            "diff": proposal.diff,
        }));
        return args.asked.output.write_json("tune search", fields, context);
    }
    if form == TableFormat::Csv {
        return search::steps(found).write(context.out, form, context.width);
    }
    let tables = search::tables(found, args.write.explain);
    if !of_client.is_empty() {
        writeln!(context.out, "What Claude Code's own settings would bring is in the last table.")?;
    }
    writeln!(context.out, "{}", form.sentence(&input.covered(!args.asked.output.is_shared())))?;
    if found.stopped {
        writeln!(context.out, "the time was up: there may be more steps")?;
    }
    for (heading, table) in tables {
        writeln!(context.out, "\n{}\n", form.sentence(&heading))?;
        table.write(context.out, form, context.width)?;
    }
    if !of_client.is_empty() {
        let writes = format!("devboy tune claude-settings {}", args.asked.places(args.asked.output.is_shared()));
        let heading = format!(
            "Claude Code's own settings: change of the simulated cost at the best value, beside what is set (`{}` writes what pays \
             clearly, and with --explain says why it holds the rest)",
            writes.trim_end()
        );
        writeln!(context.out, "\n{}\n", form.sentence(&heading))?;
        claude::table(of_client).write(context.out, form, context.width)?;
    }
    // In Markdown what follows is a table, else something only if there is a change.
    if form == TableFormat::Md || proposal.is_change() {
        writeln!(context.out)?;
    }
    writing::show(&args.write, &args.asked.output, proposal, context)
}
