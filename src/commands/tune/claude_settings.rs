//! `devboy tune claude-settings`: try what Claude Code could be set to on the logs, let the rules speak, write its settings as
//! a diff.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::base::error::{Error, Result};
use crate::base::id::Id;
use crate::base::key_path::KeyPath;
use crate::base::names::mcp_server;
use crate::base::visible::Shown as _;
use crate::commands::config::config_path;
use crate::commands::input::QuestionArgs;
use crate::commands::tune::{effects, reach};
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::overview::Holds;
use crate::logs::timeline::requests::{Marks, Timeline};
use crate::logs::trace::Place;
use crate::report::numbers;
use crate::report::numbers::counted;
use crate::report::table::TableFormat;
use crate::rules::claude::{SettingsFacts, Uses, judge_all};
use crate::rules::proposal::proposed;
use crate::rules::{claude, report as findings, statistics};
use crate::settings::claude::file::ClaudeFile;
use crate::settings::claude::layers::{ClaudePlaces, SettingsLayers};
use crate::settings::claude::levers::{Levers, SettingsScope};
use crate::settings::claude::reversal::{claude_entry, journal_of_all};
use crate::settings::entries::{BillForecast, Journal, JournalChange, SettingsReach};
use crate::settings::finding::{Finding, Verdict};
use crate::settings::{journal_path, unified_diff, write_noted};
use crate::shell::arguments::{Exit, InputArgs, WindowArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::chosen::PolicyConfigs;
use crate::whatif::client::thresholds::{ClientThresholds, Versions, client_words, versions};
use crate::whatif::client::{LeverStudy, LeverTrials, OwnSettings};
use crate::whatif::workload::{NO_USAGE, Workload, oracle};

/// Try Claude Code's own settings on the logs, apply rules S1 to S8, write the settings that pay and print the diff.
///
/// Every lever that can be simulated is tried on all sessions: its value is chosen on the earlier ones and judged on the later
/// ones, with what it breaks. It is written only if the later sessions are cheaper by more than the simulation is off, and if
/// every client version of the last weeks knows it. What cannot be simulated is told as a hint and never written. The
/// previous file stays beside the new one as settings.json.bak, and each change is noted in devboy's tuning-journal.jsonl
/// (`devboy tune history`, `devboy tune undo`). Exit code 4 with --check means that changes are pending.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Whose settings: of all your projects, of this project for everybody, or of this project for you. The second looks at the
    /// sessions of the current directory only, the last at those of the git repository around it.
    #[arg(long, value_enum, default_value_t)]
    pub scope: SettingsScope,
    /// The file to read and write, if it lies elsewhere.
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print the same, write no settings.
    #[arg(long)]
    pub dry_run: bool,
    /// Write no settings; exit with 4 if something would change.
    #[arg(long)]
    pub check: bool,
    /// Also print what was held or skipped, and why.
    #[arg(long)]
    pub explain: bool,
    #[command(flatten)]
    pub asked: QuestionArgs,
}

/// What was found, and what it comes to.
struct SettingsStudy {
    scope: SettingsScope,
    reach: SettingsReach,
    layers: SettingsLayers,
    study: LeverStudy,
    findings: Vec<Finding>,
    /// What all that is proposed does as one configuration, if it is more than one change.
    together: Option<BillForecast>,
    text: String,
    diff: String,
}

/// Reads, simulates, judges, shows, writes.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let places = context.env.claude_places();
    let scope = places.scope(args.scope);
    let no_place = || Error::failed("no place for the settings: HOME is not set").hint("--output names the file");
    let path = args.output.clone().or_else(|| places.file(scope)).ok_or_else(no_place)?;
    let config = config_path(None, context)?;
    let journal = journal_path(&config);
    // Broken settings end the command before any work is done.
    let layers = SettingsLayers::load(&places, scope, &path)?;
    let mut input = args.asked.read(0, Some(TimelineDetail::default()), context)?;
    input.expect_records(&args.asked.input)?;
    input.report_holds(Holds::FirstChunks)?;
    let timeline = input.timeline(TimelineDetail::default())?;
    if timeline.requests.is_empty() && !args.asked.input.allow_empty {
        return Err(match timeline.skipped.get(NO_USAGE) {
            Some(_) => Error::failed("no answer in the window has usage").hint("nothing can be priced without it"),
            None => input.nothing_in_window("requests to a model"),
        });
    }
    let reach = reach::of_scope(scope, &places);
    let projects = reach::projects(reach, &timeline, &input);
    let clients = clients(args, projects.as_ref(), &timeline, &input, context)?;
    let earlier = (reach, &journal_of_all(&config)?);
    let found = judged((scope, &places, projects.as_ref()), layers, (timeline, clients), &input, earlier)?;
    input.tell(&args.asked.output, context)?;
    context.show(|context| show(args, context, &found, &input))?;
    conclude(args, context, &found, &journal, &input)
}

fn judged(
    (scope, places, projects): (SettingsScope, &ClaudePlaces, Option<&BTreeSet<Id>>),
    layers: SettingsLayers,
    (timeline, clients): (Timeline, Versions),
    input: &Input,
    (reach, journal): (SettingsReach, &Journal),
) -> Result<SettingsStudy> {
    let uses = uses(&timeline, projects, servers(scope, places)?);
    let workload = Workload::new(timeline, None, &input.data, false, true)?;
    let cache = oracle(&PolicyConfigs::load(&input.data)?)?;
    let simulator = input.pool.install(|| workload.with_answers(&cache));
    let levers = Levers::load(&input.data)?;
    let standing = claude::standing(&layers, &levers)?;
    let trials = input.pool.install(|| LeverTrials::new(&simulator, &workload, &input.data, projects, &standing))?;
    let study =
        LeverStudy { versions: clients, own: own(scope, places, &levers), ..input.pool.install(|| trials.study()) };
    let resampling = &workload.cells.resampling;
    let facts = SettingsFacts { study: &study, levers: &levers, layers: &layers, resampling, uses: &uses };
    let mut findings = judge_all(&facts, &input.data)?;
    let (numbers, earlier) =
        (statistics::numbers(&input.data)?.backtest, ClientThresholds::load(&input.data)?.split.earlier_percent);
    let promised = statistics::effects(&input.data)?;
    let attempts =
        claude::effects::attempts(&study, earlier, &numbers, &promised, &claude::effects::changed(journal, reach));
    effects::hold_broken(&mut findings, &effects::rows(&attempts, &numbers, &promised));
    let together = input
        .pool
        .install(|| claude::settle(&facts, &mut findings, &input.data, |settings| trials.together(settings)))?;
    let together = together.filter(|together| !hold_what_the_best_does_alone(&mut findings, together));
    let changes: Vec<(KeyPath, Value)> =
        findings.iter().filter_map(proposed).map(|delta| (delta.key.clone(), findings::plain(&delta.to))).collect();
    let text = layers.file.with(changes.iter().map(|(key, value)| (key, value)))?;
    let diff = unified_diff(&layers.file.text, &text, &layers.file.path.shown());
    Ok(SettingsStudy { scope, reach, layers, study, findings, together, text, diff })
}

/// Where several settings together save less than the best of them, only that one is proposed; says whether it is so.
fn hold_what_the_best_does_alone(all: &mut [Finding], together: &BillForecast) -> bool {
    let of_bill = |finding: &Finding| {
        proposed(finding).and(finding.forecast.as_ref()).map_or(f64::INFINITY, |forecast| forecast.of_bill)
    };
    let Some(best) = (0..all.len()).min_by(|&a, &b| of_bill(&all[a]).total_cmp(&of_bill(&all[b]))) else {
        return false;
    };
    if of_bill(&all[best]) >= together.of_bill {
        return false;
    }
    let subject = all[best].subject.clone();
    for (place, finding) in all.iter_mut().enumerate() {
        if place != best && of_bill(finding).is_finite() {
            let reason = format!("together with {subject} it saves less than that alone");
            finding.verdict = Verdict::Hold(reason);
        }
    }
    true
}

/// The client versions of the last weeks: of all logs of this scope, whatever part of them is asked about.
fn clients(
    args: &Args,
    projects: Option<&BTreeSet<Id>>,
    timeline: &Timeline,
    input: &Input,
    context: &mut Context<'_>,
) -> Result<Versions> {
    let days = ClientThresholds::load(&input.data)?.split.version_days;
    let of = |timeline: &Timeline, now| versions(timeline, projects, days, now);
    let is_whole = args.asked.input.project.is_none() && input.window == window::ALL;
    // A stream is read once.
    if is_whole || args.asked.input.input_dir.iter().any(|dir| dir.as_os_str() == "-") {
        return Ok(of(timeline, context.now_ms));
    }
    let asked = QuestionArgs {
        input: InputArgs { project: None, ..args.asked.input.clone() },
        window: WindowArgs::default(),
        output: args.asked.output.clone(),
    };
    let mut all = asked.read(0, Some(TimelineDetail::default()), context)?;
    Ok(of(&all.timeline(TimelineDetail::default())?, context.now_ms))
}

/// What the current project sets itself, where a file for all projects is asked about.
fn own(scope: SettingsScope, places: &ClaudePlaces, levers: &Levers) -> Option<OwnSettings> {
    let layers = SettingsLayers::of_project(places).filter(|_| scope == SettingsScope::User);
    // The client leaves a broken file out.
    let settings = claude::standing(&layers?, levers).unwrap_or_default();
    let project = places.project.as_deref().filter(|_| !settings.is_empty())?;
    Some(OwnSettings { project: reach::project_id(project), settings })
}

/// The servers of the project's `.mcp.json`; none where no project is asked about.
fn servers(scope: SettingsScope, places: &ClaudePlaces) -> Result<Option<Vec<String>>> {
    let Some(project) = places.project.as_ref().filter(|_| scope != SettingsScope::User) else { return Ok(None) };
    let listed = ClaudeFile::load(&project.join(".mcp.json"))?.get(&KeyPath::from(["mcpServers"]))?;
    let names = listed.as_ref().and_then(Value::as_object).map(|servers| servers.keys().cloned().collect());
    Ok(Some(names.unwrap_or_default()))
}

fn uses(timeline: &Timeline, projects: Option<&BTreeSet<Id>>, servers: Option<Vec<String>>) -> Uses {
    let mut uses = Uses { servers, ..Uses::default() };
    let is_asked =
        |session: u32| projects.is_none_or(|asked| asked.contains(&timeline.sessions[session as usize].project));
    // The texts of skills that are sent again after a compaction; nothing says in which session.
    uses.skills = timeline.skipped.get("attachment:invoked_skills").copied().unwrap_or_default();
    for request in &timeline.requests {
        let chain = &timeline.chains[request.chain as usize];
        if !is_asked(chain.session) {
            continue;
        }
        uses.skills += u64::from(request.marks.has(Marks::SKILL));
        if chain.place != Place::Main {
            *uses.subagent_models.entry(timeline.names.text(request.model).to_owned()).or_default() += 1;
        }
        let calls = timeline.blocks[request.outputs.start as usize..request.outputs.end as usize].iter();
        for call in calls.filter_map(|block| timeline.calls.get(block.call as usize)) {
            if let Some(server) = mcp_server(timeline.names.text(call.tool)) {
                *uses.server_calls.entry(server.to_owned()).or_default() += 1;
            }
        }
    }
    uses
}

/// ", 2026-01-05 … 2026-02-10": when the first session of a study began, and the last one ended.
fn days(study: &LeverStudy) -> String {
    let first = study.sessions.iter().map(|seen| seen.first).min();
    let last = study.sessions.iter().map(|seen| seen.last).max();
    first.zip(last).map_or_else(String::new, |(first, last)| format!(", {}", numbers::days(first, last)))
}

fn show(args: &Args, context: &mut Context<'_>, found: &SettingsStudy, input: &Input) -> Result<()> {
    let SettingsStudy { scope, layers, study, findings: all, together, diff, .. } = found;
    if !args.asked.output.quiet {
        let state = if args.dry_run || args.check { " (not written)" } else { "" };
        writeln!(context.err, "# settings: {} ({}){state}", layers.file.path.shown(), scope.into_str())?;
        let earlier = study.sessions.iter().filter(|seen| seen.is_earlier).count() as u64;
        let sessions = study.sessions.len() as u64;
        let versions: Vec<&str> = study.versions.keys().map(|version| client_words(version)).collect();
        if let (SettingsScope::User, Some(part)) = (scope, &args.asked.input.project) {
            writeln!(
                context.err,
                "# these settings are of all your projects, and only those named like {part:?} are looked at; --scope project \
                 sets them for one"
            )?;
        }
        if sessions == 0 {
            writeln!(context.err, "# no session of this scope in the logs: there is nothing to choose values by")?;
        } else {
            writeln!(
                context.err,
                "# {}{}: values chosen on the first {earlier}, judged on the other {}; clients of the last weeks: {}",
                counted(sessions, "session"),
                days(study),
                sessions - earlier,
                versions.join(", ")
            )?;
        }
    }
    match args.asked.output.form() {
        TableFormat::Json => {
            let fields = input.fields(json!({
                "settings": layers.file.path.shown(),
                "scope": scope.into_str(),
                "sessions": study.sessions.len(),
                "versions": study.versions.keys().collect::<Vec<_>>(),
                "findings": findings::json(all),
                "together": together,
                "changes": all.iter().filter_map(proposed).count(),
                "diff": diff,
            }));
            args.asked.output.write_json("tune claude-settings", fields, context)
        }
        TableFormat::Table => {
            if !diff.is_empty() {
                let colored = context.colored(args.asked.output.color);
                findings::write_diff(context.out, diff, colored)?;
                writeln!(context.out)?;
            }
            findings::write(context.out, all, args.explain)?;
            let words = together.as_ref().map(findings::forecast_words);
            words.map_or(Ok(()), |words| Ok(writeln!(context.out, "# together: {words}")?))
        }
        form => findings::table(all).write(context.out, form, context.width),
    }
}

fn conclude(
    args: &Args,
    context: &mut Context<'_>,
    found: &SettingsStudy,
    journal: &Path,
    input: &Input,
) -> Result<Exit> {
    let SettingsStudy { layers, findings: all, text, diff, .. } = found;
    let number = |is: fn(&Verdict) -> bool| all.iter().filter(|finding| is(&finding.verdict)).count() as u64;
    let held = number(|verdict| matches!(verdict, Verdict::Hold(_)));
    let waiting = number(|verdict| matches!(verdict, Verdict::Wait { .. }));
    let aside = if held > 0 && !args.explain { format!("; {held} not proposed, see --explain") } else { String::new() };
    let count = all.iter().filter_map(proposed).count() as u64;
    let (now_ms, quiet) = (context.now_ms, args.asked.output.quiet);
    let mut tell = |words: String| if quiet { Ok(()) } else { writeln!(context.err, "# {words}{aside}") };
    if diff.is_empty() {
        let why = match waiting {
            0 => "nothing to change".to_owned(),
            _ => format!("{} after an update of Claude Code", if waiting == 1 { "one pays" } else { "some pay" }),
        };
        tell(format!("no change of Claude Code's settings is proposed: {why}"))?;
        return Ok(Exit::Done);
    }
    let changes = counted(count, "change");
    if args.dry_run || args.check {
        tell(format!("{changes} pending, nothing written"))?;
        return Ok(if args.check { Exit::Pending } else { Exit::Done });
    }
    let listed = all.iter().filter_map(JournalChange::of).collect();
    let mut entry = claude_entry(now_ms, "tune claude-settings", &layers.file, journal, text, listed)?;
    // Some settings are about a part of the requests; the trial of one that is about all has them all.
    let tried = found.study.trials.iter().map(|trial| trial.sessions.iter().map(|sides| sides.requests).sum());
    let requests = tried.max().unwrap_or(0);
    (entry.reach, entry.together) = (Some(found.reach), found.together.clone());
    entry.inputs = Some(window::inputs("logs", requests, found.study.sessions.len() as u64, &input.window));
    write_noted(&layers.file.place(journal), text, &entry)?;
    tell(format!("settings → {}: {changes} written; new sessions of Claude Code use them", layers.file.path.shown()))?;
    Ok(Exit::Done)
}
