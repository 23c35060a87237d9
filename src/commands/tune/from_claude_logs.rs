//! `devboy tune from-claude-logs`: mine the logs, let the rules speak, write the configuration as a diff.

use std::io::Write;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::backtest::PromiseCoverage;
use crate::base::error::Result;
use crate::base::names::Names;
use crate::base::stats::{FollowUpCount, ModelUse, SessionUse, ToolStats};
use crate::base::visible::{Shown as _, visible};
use crate::commands::config::{config_path, warn_unknown};
use crate::commands::input::QuestionArgs;
use crate::commands::mine::{fields as mine_fields, projections};
use crate::commands::responses::Wanted;
use crate::commands::tune::lenders::TeamArgs;
use crate::commands::tune::writing::{self, SettledProposal, WriteArgs};
use crate::fleet::lend::Whose;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::frames::projection::MinedProjection;
use crate::frames::tool_use::tool_stats;
use crate::logs::history::History;
use crate::logs::overview::{Holds, Overview};
use crate::mine::follow_ups::{FollowUps, bounds};
use crate::mine::projections::ToldHistory;
use crate::mine::runnable::Runnable;
use crate::mine::sessions;
use crate::mine::sizes::SizesBySession;
use crate::planner::numbers::PlannerThresholds;
use crate::planner::stage::PlannerStage;
use crate::report::numbers::{counted, days, known, percent, thousands};
use crate::report::table::TableFormat;
use crate::rules::prefetching::Prefetching;
use crate::rules::proposal::{KeyOwners, Proposal, settle};
use crate::rules::responses::Responses;
use crate::rules::{
    RuleFacts, Speaks, judge_all, mined_planners, p1_model, p3_data, prefetching, report as findings, statistics,
};
use crate::settings::annotations::Annotations;
use crate::settings::finding::{Finding, Verdict};
use crate::settings::{Effective, SettingsFile, View, classify_agent, journal_of};
use crate::shell::arguments::{Exit, InputArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::calibration::{self, Calibration, calibrate};
use crate::whatif::sim::sizes::SizeRules;

/// The data file of the planner.
const PLANNER: &str = "planner.toml";
/// What a file is worth that only names things.
const NO_TOKENS: &str =
    "these settings save no tokens by themselves: they say how tokens are counted and what results to expect";
/// The data file of framing.
const SIZES: &str = "policies/sizes.toml";
/// Models in the summary; the rest is one line.
const MODELS_TOLD: usize = 8;

/// Mine the logs, apply rules P1 to P3 (T1 with --tools, T2 with --fields, P4 with --calibrate), write the configuration and print its diff.
///
/// The answer, the diff and the evidence of every change go to stdout, everything else to stderr. The previous file stays beside
/// the new one as pipeline_config.toml.bak. Keys that stand in the file are kept; a key or table marked `# pin` is never
/// touched. Exit code 4 with --check means that changes are pending.
#[derive(clap::Args, Debug, Default)]
pub struct Args {
    /// Also mine a `[tools.<name>]` value model for every tool that was used.
    #[arg(long)]
    pub tools: bool,
    /// Also sort the fields of JSON results into groups by how often they were taken up later. Nothing reads these groups yet: the
    /// published pipeline does not trim results.
    #[arg(long, requires = "tools")]
    pub fields: bool,
    /// Also read all text once more and measure, on what was billed, how many characters a token of each model holds.
    #[arg(long)]
    pub calibrate: bool,
    #[command(flatten)]
    pub write: WriteArgs,
    #[command(flatten)]
    pub others: TeamArgs,
    #[command(flatten)]
    pub asked: QuestionArgs,
}

/// Everything the rules read, mined.
#[derive(Default, Serialize, Deserialize)]
struct MinedLogs {
    /// Names of the tools in the rows below.
    names: Vec<String>,
    overview: Overview,
    models: Vec<ModelUse>,
    sessions: Vec<SessionUse>,
    tools: Vec<ToolStats>,
    follow_ups: Vec<FollowUpCount>,
    projections: Vec<MinedProjection>,
    runnable: Runnable,
    coverage: Vec<PromiseCoverage>,
    /// Which of the links pay; with --tools.
    prefetching: Option<Prefetching>,
    /// Made anew whenever it is asked for: the lake keeps the timeline that it is made of.
    #[serde(skip)]
    calibration: Option<Calibration>,
}

/// Reads, mines, judges, shows, writes.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let path = config_path(args.write.output.as_ref(), context)?;
    // A broken configuration ends the command before any work is done.
    let file = SettingsFile::load(&path)?;
    let effective = Effective::resolve(&file)?;
    let mut input = args.asked.read(0, (args.calibrate || args.fields).then_some(TimelineDetail::COUNTED), context)?;
    input.expect_records(&args.asked.input)?;
    if args.tools {
        PlannerStage::prepare(&mut input);
    } else {
        input.keep_calls();
    }
    input.report_holds(Holds::Calls)?;
    let mut mined = recalled(args, &file, &mut input)?;
    let whose = match args.others.read(&input.data, context)? {
        Some(others) if args.tools => others.lend_stats(&mut mined.names, &mut mined.tools, &mut mined.follow_ups),
        _ => Whose::default(),
    };
    let view = View::of(&file)?.after(journal_of(&file).unwrap_or_default().written());
    let found = judged(args, &mined, &whose, &view, &mut input)?;
    let precedence = KeyOwners::load(&input.data, &file, mined.overview.span_ms.map(|(_, last)| last))?;
    let mut found = settle(&view, &precedence, found);
    if let Some(judged) = &mined.prefetching {
        prefetching::gate(&mut found, judged, &view);
    }
    let wanted = Wanted::of(&args.asked, input.window.clone(), &effective.settings);
    let read = |input_dir| {
        let args = InputArgs { input_dir, project: None, lake: None, no_lake: true, ..args.asked.input.clone() };
        Responses::from_logs(&Wanted { input: &args, ..wanted }, context)
    };
    let found = p3_data::gate(&file, &effective.settings, &mut input, found, read)?;
    let switched_on = found.iter().filter_map(Finding::proposed).any(|delta| delta.key == prefetching::switch());
    let spared = mined.prefetching.as_ref().filter(|judged| switched_on && judged.is_worth_it());
    let worth = spared.map_or_else(|| NO_TOKENS.to_owned(), |judged| format!("{NO_TOKENS}; {}", judged.spared()));
    let mut proposal = Proposal::new(&file, found, &Annotations::load(&input.data)?)?;
    if file.is_bare() {
        proposal = proposal.titled(&file, &worth);
    }
    let why = if proposal.is_change() { worth } else { why_nothing(&mined, &proposal) };
    let answer = writing::answer(&args.write, &file, &proposal, &why);
    args.write.expect_writable(&file, &proposal)?;
    context.show(|context| show(args, context, &input, &mined, (&file, &proposal, &answer)))?;
    let inputs = window::inputs("logs", mined.overview.calls, mined.overview.sessions, &input.window);
    let settled =
        SettledProposal { command: "tune from-claude-logs", file: &file, proposal: &proposal, predicted: None, inputs };
    writing::conclude(&args.write, args.asked.output.quiet, settled, context)
}

/// What was mined, from the lake if it was mined before.
fn recalled(args: &Args, file: &SettingsFile, input: &mut Input) -> Result<MinedLogs> {
    let numbers = args.tools.then(|| statistics::numbers(&input.data)).transpose()?;
    let sheet = projections::about(&input.data, input)?;
    let settled = numbers.as_ref().map(|_| file.text.as_str());
    let question = format!("mined {numbers:?} {:?} {sheet} {settled:?}", input.vocabulary.read_class_tools);
    let mut mined = input.remember(&question, |input| mine(input, numbers.as_ref(), file))?;
    if mined.overview.calls == 0 && mined.models.is_empty() && !args.asked.input.allow_empty {
        return Err(input.nothing_in_window("tool calls and no API messages"));
    }
    classify(&mut mined.sessions);
    mined.calibration = args.calibrate.then(|| measure(input)).transpose()?;
    Ok(mined)
}

/// What the rules say that were asked for.
fn judged(args: &Args, mined: &MinedLogs, whose: &Whose, view: &View<'_>, input: &mut Input) -> Result<Vec<Finding>> {
    let fields = if args.fields { mine_fields::of_input(input)?.fields } else { Vec::new() };
    let numbers = input.data.parsed::<PlannerThresholds>(PLANNER)?;
    let annotations = Annotations::load(&input.data)?;
    let facts = RuleFacts {
        names: &Names::from_texts(mined.names.clone()),
        models: &mined.models,
        sessions: &mined.sessions,
        tools: &mined.tools,
        follow_ups: &mined.follow_ups,
        projections: &mined.projections,
        runnable: &mined.runnable,
        coverage: &mined.coverage,
        calibration: mined.calibration.as_ref().map_or(&[], |found| &found.families),
        fields: &fields,
        families: &p1_model::families(&input.data)?,
        ..RuleFacts::none(view, &annotations, &numbers.projection)
    };
    let more = [
        (args.tools, Speaks::LogsWithTools),
        (args.fields, Speaks::LogsWithFields),
        (args.calibrate, Speaks::LogsCalibrated),
    ];
    let more = more.into_iter().filter_map(|(is_asked, speaks)| is_asked.then_some(speaks));
    let asked: Vec<Speaks> = std::iter::once(Speaks::Logs).chain(more).collect();
    let mut found = judge_all(&facts, &input.data, &asked)?;
    whose.tell(&mut found);
    Ok(found)
}

/// Mines the input; follow-ups, projections and how well they hold only if a rule asks for them.
fn mine(input: &mut Input, numbers: Option<&bounds::FollowUpThresholds>, file: &SettingsFile) -> Result<MinedLogs> {
    let (history, names) = input.named_history();
    let Some(numbers) = numbers else { return used(input, &history, &names) };
    let stage = PlannerStage::of(file.clone(), input, (history, names), None)?;
    let told @ ToldHistory { history, values, tools } = stage.told();
    let input = &*input;
    let of_links = || {
        let follow_ups = FollowUps::of_history(history, &numbers.links.lags);
        let coverage = statistics::coverage(&follow_ups, &SizesBySession::of_history(history), numbers);
        (follow_ups.rows(numbers), coverage)
    };
    let of_use = || -> Result<(MinedLogs, Runnable)> {
        Ok((used(input, history, tools)?, Runnable::shipped(&input.data)?.learned(history, values, tools, &[])))
    };
    // What takes longest goes first, so that no thread waits for another at the end.
    let of_calls =
        || rayon::join(|| mined_planners::prefetching(&stage, &input.data), || rayon::join(of_links, of_use));
    let (projections, (prefetching, ((follow_ups, coverage), of_use))) =
        input.pool.install(|| rayon::join(|| projections::of_history(input, told), of_calls));
    let (used, runnable) = of_use?;
    let (projections, prefetching) = (projections?, Some(prefetching?));
    Ok(MinedLogs { follow_ups, projections, runnable, coverage, prefetching, ..used })
}

/// What was used, and how often.
fn used(input: &Input, history: &History, names: &Names) -> Result<MinedLogs> {
    Ok(MinedLogs {
        overview: Overview::of(history),
        models: sessions::model_uses(history, names),
        sessions: sessions::session_uses(history, names, &input.vocabulary.read_class_tools),
        tools: tool_stats(history)?,
        names: names.texts().to_vec(),
        ..MinedLogs::default()
    })
}

/// Tokenizers held against the bill, over all text of the logs.
fn measure(input: &mut Input) -> Result<Calibration> {
    let rules = input.data.read(SIZES, SizeRules::parse)?;
    Ok(calibrate(&input.timeline(TimelineDetail::COUNTED)?, &rules))
}

/// Classifies every session with the published thresholds.
fn classify(sessions: &mut [SessionUse]) {
    for session in sessions {
        session.class = classify_agent(session.calls, session.read_calls, session.compactions).into_str();
    }
}

/// Why nothing changes: what stands in the way of the model's profile, and what calls made ahead would bring.
fn why_nothing(mined: &MinedLogs, proposal: &Proposal) -> String {
    let of_model = proposal.findings.iter().find(|finding| finding.rule == p1_model::RULE.id);
    let of_model = of_model.and_then(|finding| match &finding.verdict {
        Verdict::Hold(why) => Some(why.clone()),
        _ => None,
    });
    of_model.into_iter().chain(mined.prefetching.as_ref().map(Prefetching::line)).collect::<Vec<_>>().join("; ")
}

fn show(
    args: &Args,
    context: &mut Context<'_>,
    input: &Input,
    mined: &MinedLogs,
    (file, proposal, answer): (&SettingsFile, &Proposal, &str),
) -> Result<()> {
    writing::tell_first(&args.asked.output, answer, proposal.is_change(), context)?;
    input.tell(&args.asked.output, context)?;
    if !args.asked.output.quiet {
        warn_unknown(file, context)?;
        summarise(args, input, mined, proposal.is_change(), context.err)?;
    }
    if args.asked.output.form() == TableFormat::Json {
        let mut fields = input.fields(json!({
            "config": file.path.shown(),
            "warnings": file.warnings,
            "findings": findings::json(&proposal.findings),
            "changes": proposal.count(),
            "diff": proposal.diff,
        }));
        if let Some(judged) = &mined.prefetching {
            fields["prefetching"] = json!(judged);
        }
        if let Some(found) = &mined.calibration {
            fields["calibration"] = calibration::json(found);
        }
        return args.asked.output.write_json("tune from-claude-logs", fields, context);
    }
    writing::show(&args.write, &args.asked.output, proposal, context)?;
    // A CSV file holds one table, and that is the changes.
    let told = mined.calibration.as_ref().filter(|_| args.asked.output.form() != TableFormat::Csv);
    told.map_or(Ok(()), |found| show_calibration(args, found, context))
}

/// What was measured, and how far the estimators are from it.
fn show_calibration(args: &Args, found: &Calibration, context: &mut Context<'_>) -> Result<()> {
    let form = args.asked.output.form();
    writeln!(context.out, "\n# what came in within a turn without thinking, against what was billed for it:")?;
    calibration::families(&found.families).write(context.out, form, context.width)?;
    writeln!(context.out, "\n# estimates of the same, by increment, framing included:")?;
    calibration::drift(&found.drift).write(context.out, form, context.width)
}

/// What was read, in the order and with the labels of the published tool.
fn summarise(args: &Args, input: &Input, mined: &MinedLogs, is_change: bool, err: &mut dyn Write) -> Result<()> {
    for root in &input.roots {
        writeln!(err, "# input:   {} ({})", root.path.shown(), root.origin)?;
    }
    if let Some(project) = &args.asked.input.project {
        writeln!(err, "# project: {}", visible(project))?;
    }
    let records: u64 = input.sources.iter().map(|source| source.counters.records).sum();
    writeln!(err, "# read {} records in {}", thousands(records), counted(input.sources.len() as u64, "file"))?;
    writeln!(err, "# claude logs scanned:")?;
    if let Some((first, last)) = mined.overview.span_ms {
        writeln!(err, "#   span:        {}", days(first, last))?;
    }
    writeln!(err, "#   sessions:    {}", thousands(mined.overview.sessions))?;
    let calls = mined.overview.calls;
    let reads: u64 = mined.sessions.iter().map(|session| session.read_calls).sum();
    let share = known((calls > 0).then(|| reads as f64 / calls as f64), percent);
    writeln!(err, "#   tools:       {} ({} read-class, {share})", counted(calls, "call"), thousands(reads))?;
    writeln!(err, "#   compactions: {}", thousands(mined.overview.compactions))?;
    let mut models: Vec<&ModelUse> = mined.models.iter().collect();
    models.sort_by_key(|model| (std::cmp::Reverse(model.messages), model.id.clone()));
    writeln!(err, "#   models (API messages, each once):")?;
    let (told, rest) = models.split_at(models.len().min(MODELS_TOLD));
    for model in told {
        writeln!(err, "#     {:<35} {:>8}", model.id, thousands(model.messages))?;
    }
    if !rest.is_empty() {
        let messages = rest.iter().map(|model| model.messages).sum();
        writeln!(err, "#     {:<35} {:>8}", format!("({} more)", rest.len()), thousands(messages))?;
    }
    if let Some(prefetching) = mined.prefetching.as_ref().filter(|_| is_change) {
        writeln!(err, "#   {}", prefetching.line())?;
    }
    Ok(())
}
