//! `devboy replay`: what the layered pipeline would have saved on these logs, under one configuration or several.

mod compare;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use clap::Args as _;
use serde_json::json;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::id::Id;
use crate::base::model_id::normalise;
use crate::base::pseudonyms::Pseudonyms;
use crate::base::visible::{Shown, visible};
use crate::commands::config::{config_path, tell_file};
use crate::commands::input::QuestionArgs;
use crate::commands::{planner, what_if};
use crate::cost::groups::Label;
use crate::cost::shown_names::ShownNames;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::mine::sessions;
use crate::planner::numbers::PlannerThresholds;
use crate::replay::input::ReplayInput;
use crate::replay::scenarios::{ScenarioChanges, Scenarios};
use crate::replay::{ReplayOptions, Scenario, emit, gate, report, study};
use crate::report::numbers::counted;
use crate::report::table::TableFormat;
use crate::settings::formats::{lists_extended, load_config};
use crate::settings::{expect_directory, expect_place};
use crate::shell::arguments::{Exit, OutputArgs};
use crate::shell::context::Context;
use crate::telemetry::effectiveness::CountedBy;
use crate::telemetry::log::EventLog;
use crate::whatif::pipeline::replayed::Worth;
use crate::whatif::sim::money::Prices;

/// Replay the layered pipeline over your logs and say what it would have saved.
///
/// Every response goes through the four layers (hints, templates, router, as it is) with the real text and real token
/// counts, once with the published formats and once with the extended ones. An encoding counts only if reading it gives
/// back what the body says. With --sweep or --against several configurations are compared. With --baseline the savings
/// are held against a file that you keep in your repository: exit code 3 means that they got worse, together or, over the
/// same logs, of one endpoint.
#[derive(clap::Args, Debug, Clone)]
pub struct Args {
    /// The configuration to replay. Default: $DEVBOY_CONFIG, else devboy/pipeline_config.toml in $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// A second configuration; the difference is shown per endpoint.
    #[arg(long, value_name = "FILE", conflicts_with = "sweep")]
    against: Option<PathBuf>,
    /// Replay once for each value; several keys make a grid: `--sweep dedup.lru_size=3,5,10`.
    #[arg(long, value_name = "KEY=A,B,…", conflicts_with_all = ["baseline", "emit_telemetry"])]
    sweep: Vec<String>,
    /// Replay every session with this agent profile.
    #[arg(long, value_name = "NAME")]
    agent_profile: Option<String>,
    /// Replay every session as if this model had answered, whichever one the configuration names.
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Who runs the pipeline: host (results of MCP tools only), hook (of the client, after a call) or gateway
    /// (everything, the default). Without it the savings are those of a gateway, and a table says what the
    /// others could do.
    #[arg(long, value_name = "NAME", conflicts_with = "planner")]
    reach: Option<String>,
    /// Compare the savings with this file; it is written if it does not exist.
    #[arg(long, value_name = "FILE", conflicts_with = "against")]
    baseline: Option<PathBuf>,
    /// Write the baseline file anew.
    #[arg(long, requires = "baseline")]
    update_baseline: bool,
    /// Percentage points that combined savings, all together or of an endpoint with 1 % of the tokens, may lose against the
    /// baseline before exit code 3. Over other logs than the baseline's only the whole counts.
    #[arg(long, value_name = "PCT", requires = "baseline", default_value_t = 0.0)]
    max_regression: f64,
    /// Write the events that the live pipeline would have recorded, names made anonymous.
    #[arg(long, value_name = "DIR", conflicts_with = "against")]
    emit_telemetry: Option<PathBuf>,
    /// Write the savings by layer, reach and format to a file for a browser as well: one file with plots, without scripts, that
    /// fetches nothing.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["against", "sweep", "planner", "policy"])]
    html: Option<PathBuf>,
    /// Replay the planner instead: `devboy planner`.
    #[arg(long, hide = true, conflicts_with_all = ["against", "baseline", "agent_profile", "model"])]
    planner: bool,
    /// Replay a policy about contexts instead: `devboy what-if`.
    #[arg(long, value_name = "NAME", hide = true, conflicts_with_all = ["against", "agent_profile", "model", "baseline", "emit_telemetry", "planner"])]
    policy: Option<String>,
    #[command(flatten)]
    planning: planner::PlannerArgs,
    #[command(flatten)]
    setting: what_if::PolicyArgs,
    #[command(flatten)]
    asked: QuestionArgs,
}

/// The old spellings `replay --policy` and `replay --planner` go on working, but the help tells of the commands that have
/// their place now.
pub fn hide_old_spellings(command: clap::Command) -> clap::Command {
    let flags = |command: clap::Command| -> Vec<String> {
        command.get_arguments().map(|flag| flag.get_id().to_string()).collect()
    };
    let of_policies = flags(what_if::PolicyArgs::augment_args(clap::Command::new("")));
    let of_planner = flags(planner::PlannerArgs::augment_args(clap::Command::new("")));
    command.mut_args(move |flag| {
        let id = flag.get_id().to_string();
        match () {
            () if id == "explain" => flag.help("Also what the figures rest on, and all tables"),
            () if of_policies.contains(&id) => flag.hide(true).requires("policy"),
            () if of_planner.contains(&id) => flag.hide(true).requires("planner"),
            () => flag,
        }
    })
}

/// Reads, replays, compares, shows, gates.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    if args.planner || args.policy.is_some() {
        return run_as_spelled_now(args.clone(), context).map(|()| Exit::Done);
    }
    args.html.as_deref().map_or(Ok(()), expect_place)?;
    args.emit_telemetry.as_deref().map_or(Ok(()), expect_directory)?;
    let scenarios = scenarios(args, context)?;
    // What a place is worth in money is asked of the requests, too.
    let asks_worth = args.reach.is_some() && !scenarios.is_sweep() && args.against.is_none() && args.baseline.is_none();
    let detail = asks_worth.then(TimelineDetail::default);
    let mut input = args.asked.read_calls(scenarios.tier(), detail, ReplayInput::prepare, context)?;
    args.emit_telemetry.as_deref().map_or(Ok(()), |dir| input.expect_outside(dir))?;
    if let Some(model) = &args.model {
        expect_model(model, &scenarios, &mut input)?;
    }
    if args.asked.output.verbose && args.model.is_none() {
        let notes = models_without_profile(&scenarios, &mut input);
        input.notes.extend(notes);
    }
    if scenarios.is_sweep() {
        return compare::sweep(args, &scenarios, &mut input, context).map(|()| Exit::Done);
    }
    let mut source = None;
    let lay_out = if asks_worth { ReplayInput::with_ids } else { ReplayInput::last };
    let mut reports = study::reports(&scenarios, &mut input, &mut source, lay_out)?;
    name_projects(&mut reports, &args.asked.output, &input, &context.pseudonyms);
    input.tell(&args.asked.output, context)?;
    tell(&scenarios, &args.asked.output, context)?;
    if source.is_none() && (args.emit_telemetry.is_some() || asks_worth) {
        source = Some(lay_out(scenarios.model.as_deref(), &mut input)?);
    }
    if let Some((dir, source)) = args.emit_telemetry.as_ref().zip(source.as_ref()) {
        let scenario = Scenario::new(&scenarios.cells[0].settings, &source.tape, ReplayOptions::arm(false));
        let scenario = scenario.within(scenarios.reaches.chosen(), &source.tape);
        let by = input.data.parsed::<PlannerThresholds>("planner.toml")?.counted_by();
        emit(dir, source.events(&scenario), source, by, &args.asked, context)?;
    }
    if let [report, other] = reports.as_slice() {
        compare::against(args, &scenarios, [report, other], &input, context)?;
        return Ok(Exit::Done);
    }
    let report = &reports[0];
    let bar = |path| gate::Bar {
        path,
        max_regression_pct: args.max_regression,
        is_renewed: args.update_baseline,
        is_named: args.asked.output.names,
    };
    let held = |path| gate::ReplayGate::of(&bar(path), report, &context.pseudonyms);
    let gate = args.baseline.as_deref().map(held).transpose()?;
    let worth = match source.filter(|_| asks_worth) {
        Some(source) => Worth::new(scenarios.reaches.chosen(), &scenarios.cells[0].settings, &source, &mut input)?,
        None => None,
    };
    if let Some(path) = &args.html {
        context.write_file(path, report::html(report), args.asked.output.quiet)?;
    }
    let is_extended = lists_extended(&scenarios.cells[0].settings);
    context.show(|context| show(args, (report, is_extended), (gate.as_ref(), worth.as_ref()), &input, context))?;
    gate.map_or(Ok(Exit::Done), |gate| conclude(&gate, &args.asked.output, context))
}

/// `replay --policy` is `what-if`, and `replay --planner` is `planner`.
fn run_as_spelled_now(args: Args, context: &mut Context<'_>) -> Result<()> {
    let Args { policy, config, sweep, reach, emit_telemetry, planning, setting, asked, .. } = args;
    match policy {
        Some(policy) => what_if::run(&what_if::Args { policy, config, sweep, reach, setting, asked }, context),
        None => {
            let explain = setting.explain;
            planner::run(&planner::Args { config, sweep, emit_telemetry, planning, explain, asked }, context)
        }
    }
}

/// The exit code of a gate, and the reason on stderr.
fn conclude(gate: &gate::ReplayGate, output: &OutputArgs, context: &mut Context<'_>) -> Result<Exit> {
    let reasons = gate.reasons();
    gate.notes().iter().try_for_each(|note| context.note(output.quiet, note))?;
    if reasons.is_empty() {
        return Ok(Exit::Done);
    }
    reasons.into_iter().try_for_each(|reason| context.note(output.quiet, format_args!("worse: {reason}")))?;
    context.note(output.quiet, "--update-baseline accepts the new figures")?;
    Ok(Exit::Gate)
}

/// The configurations that the flags name.
fn scenarios(args: &Args, context: &Context<'_>) -> Result<Scenarios> {
    let path = config_path(args.config.as_ref(), context)?;
    let mut files = vec![load_config(&path, args.config.is_some())?];
    if let Some(path) = &args.against {
        files.push(load_config(path, true)?);
    }
    let changes = ScenarioChanges {
        sweep: &args.sweep,
        agent_profile: args.agent_profile.as_deref(),
        model: args.model.as_deref(),
        reach: args.reach.as_deref(),
    };
    Scenarios::new(files, &changes, &Data::new(args.asked.input.rules_dir.as_deref())?)
}

/// Whether a configuration, the list of prices or a log knows this model. An error if none does: the closest name that
/// is known, and those of the configuration.
fn expect_model(model: &str, scenarios: &Scenarios, input: &mut Input) -> Result<()> {
    let prices = input.data.read("prices.toml", Prices::parse)?;
    let (history, names) = input.seen_history();
    let of_logs = sessions::models_of_sessions(history, &names);
    let variants: BTreeSet<&String> =
        scenarios.cells.iter().flat_map(|cell| cell.settings.profiles.llm.variants.keys()).collect();
    let known =
        variants.iter().map(|name| name.as_str()).chain(prices.models()).chain(of_logs.iter().map(String::as_str));
    let known: BTreeSet<String> = known.filter(|name| !name.is_empty()).map(normalise).collect();
    let asked = normalise(model);
    if known.contains(&asked) {
        return Ok(());
    }
    let names: Vec<&str> = known.iter().map(String::as_str).collect();
    let near = similar::get_close_matches(asked.as_str(), &names, 1, 0.7);
    let near = near.first().map(|name| format!("did you mean {name}?\n")).unwrap_or_default();
    let listed = variants.into_iter().cloned().collect::<Vec<_>>().join(", ");
    Err(Error::usage(format!("there is no model \"{model}\" in the configuration, the prices or the logs"))
        .hint(format!("{near}models of the configuration: {listed}")))
}

/// The models of sessions in which the profile for all others holds, since the configuration has none for them.
fn models_without_profile(scenarios: &Scenarios, input: &mut Input) -> Vec<String> {
    let settings = &scenarios.cells[0].settings;
    let (history, names) = input.seen_history();
    let mut sessions: BTreeMap<String, u64> = BTreeMap::new();
    for model in sessions::models_of_sessions(history, &names) {
        if !model.is_empty() && settings.lacks_llm_variant(&model) {
            *sessions.entry(model).or_default() += 1;
        }
    }
    let note = |(model, count): (String, u64)| {
        let model = visible(&model).into_owned();
        format!("{} of {model}: no model profile is called so, `default` holds", counted(count, "session"))
    };
    sessions.into_iter().map(note).collect()
}

/// Tells which files hold and what in them has no effect.
fn tell(scenarios: &Scenarios, output: &OutputArgs, context: &mut Context<'_>) -> Result<()> {
    if output.quiet {
        return Ok(());
    }
    scenarios.files.iter().try_for_each(|file| tell_file(file, context))?;
    let is_listed = scenarios.cells.iter().any(|cell| lists_extended(&cell.settings));
    let says_itself = scenarios.cells.len() == 1 && !scenarios.is_sweep() && output.form() != TableFormat::Csv;
    context.note(says_itself || !is_listed, format_args!("note: {NOT_PUBLISHED}"))
}

/// Beside the rows of the published formats, where the configuration lists others.
const NOT_PUBLISHED: &str = "the configuration lists extended formats: the rows of the published ones use them";

/// Writes events, names made anonymous unless they are to be kept, and says how many.
pub fn emit(
    dir: &Path,
    mut log: EventLog,
    source: &ReplayInput,
    by: CountedBy,
    asked: &QuestionArgs,
    context: &mut Context<'_>,
) -> Result<()> {
    if !asked.output.names {
        log.rename(|tool| context.pseudonyms.tool(tool));
    }
    let written = emit::write(dir, &log, source, &context.pseudonyms, by)?;
    if !asked.output.quiet {
        let (events, files) = (counted(log.events.len() as u64, "event"), counted(written, "file"));
        let planned = match log.planned.len() {
            0 => String::new(),
            planned => format!(" and {planned} of the planner"),
        };
        writeln!(context.err, "# telemetry: {events}{planned} in {files} → {}", dir.shown())?;
        let others = emit::others(dir, written);
        if others > 0 {
            let others = counted(others, "other file");
            writeln!(context.err, "# note: {others} of telemetry in it: whoever reads the directory reads these too")?;
        }
    }
    Ok(())
}

fn show(
    args: &Args,
    (report, is_extended): (&report::ReplayReport, bool),
    (gate, worth): (Option<&gate::ReplayGate>, Option<&Worth>),
    input: &Input,
    context: &mut Context<'_>,
) -> Result<()> {
    match args.asked.output.form() {
        TableFormat::Json => {
            let mut own = json!({ "replay": report::json(report), "lists_extended_formats": is_extended });
            if let Some(gate) = gate {
                own["gate"] = gate.json();
            }
            if let Some(worth) = worth {
                own["worth"] = worth.json();
            }
            input.write_json("replay", own, (&args.asked.output, false), context)
        }
        TableFormat::Csv => report::table(report).write(context.out, TableFormat::Csv, context.width),
        form => {
            if form == TableFormat::Md {
                writeln!(context.out, "## devboy replay\n")?;
            }
            write_covered(args, input, context)?;
            if is_extended {
                writeln!(context.out, "{}\n", form.sentence(NOT_PUBLISHED))?;
            }
            if let Some(gate) = gate {
                gate.write(context.out, (form, args.asked.output.is_shared()), context.width)?;
            }
            if let Some(worth) = worth {
                writeln!(context.out, "{}\n", worth.words())?;
            }
            report::write(context.out, report, args.setting.explain, form, context.width)
        }
    }
}

/// Says which logs were replayed.
fn write_covered(args: &Args, input: &Input, context: &mut Context<'_>) -> Result<()> {
    let output = &args.asked.output;
    let covered = input.covered(!output.is_shared());
    let end = if output.form() == TableFormat::Md { "\n" } else { "" };
    Ok(writeln!(context.out, "{}{end}", output.form().sentence(&covered))?)
}

/// Names projects as their owner knows them, in what is shared by pseudonyms; MCP servers and paths are taken out of all Markdown
/// (`commands::sharing`).
fn name_projects(reports: &mut [report::ReplayReport], output: &OutputArgs, input: &Input, names: &Pseudonyms) {
    let groups = reports.iter_mut().flat_map(|report| &mut report.arms).flat_map(|arm| &mut arm.projects);
    if output.is_shared() {
        return groups.for_each(|group| group.name = names.project(&group.name));
    }
    let groups: Vec<_> =
        groups.map(|group| (Label::Project(Id::from_hex(&group.name).unwrap_or_default()), group)).collect();
    let shown = ShownNames::real(groups.iter().map(|(project, _)| project), input);
    groups.into_iter().for_each(|(project, group)| group.name = shown.short(&project));
}
