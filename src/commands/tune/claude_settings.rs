//! `devboy tune claude-settings`: try what Claude Code could be set to on the logs, let the rules speak, write its settings as
//! a diff.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::base::visible::Shown as _;
use crate::commands::config::config_path;
use crate::commands::input::{QuestionArgs, clients_in_use};
use crate::commands::tune::writing;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::overview::Holds;
use crate::logs::timeline::requests::NO_USAGE;
use crate::report::numbers::{self, counted};
use crate::report::table::TableFormat;
use crate::rules::claude::NO_PRICE;
use crate::rules::claude::study::{AskedSettings, SettingsStudy};
use crate::rules::report as findings;
use crate::settings::claude::layers::SettingsLayers;
use crate::settings::claude::levers::SettingsScope;
use crate::settings::claude::reversal::{claude_entry, journal_of_all};
use crate::settings::entries::{JournalChange, SettingsReach};
use crate::settings::finding::{Finding, Verdict};
use crate::settings::{expect_writable, journal_path, write_noted};
use crate::shell::arguments::Exit;
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::client::thresholds::{ClientThresholds, client_words};
use crate::whatif::client::{KeptSides, LeverStudy};

/// Try Claude Code's own settings on the logs, apply rules S1 to S8, write the settings that pay and print the diff.
///
/// Every lever that can be simulated is tried on the sessions of the last 90 days, at least the latest 200: its value is chosen
/// on the earlier ones and judged on the later ones, with what it breaks. It is written only if the later sessions are cheaper by
/// more than the simulation is off, and if every client version of the last weeks knows it. What cannot be simulated is told as a
/// hint and never written. The previous file stays beside the new one as settings.json.bak, and each change is noted in devboy's
/// tuning-journal.jsonl (`devboy tune history`, `devboy tune undo`). Exit code 4 with --check means that changes are pending.
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
    let timeline = input.last_timeline(TimelineDetail::default())?;
    if timeline.requests.is_empty() && !args.asked.input.allow_empty {
        return Err(match timeline.skipped.get(NO_USAGE) {
            Some(_) => Error::failed("no message in the window has usage").hint("nothing can be priced without it"),
            None => input.nothing_in_window("requests to a model"),
        });
    }
    let reach = SettingsReach::of_scope(scope, &places);
    let projects = reach.projects(&timeline, &input);
    let clients = ClientThresholds::load(&input.data)?.versions(&timeline, projects.as_ref(), context.now_ms);
    let clients = clients_in_use(&args.asked, (&input, clients), projects.as_ref(), context)?;
    let layers = layers.about(timeline.models(projects.as_ref()));
    let earlier = (reach, &journal_of_all(&config)?);
    let asked = AskedSettings { scope, places: &places, layers, projects, clients };
    let found = SettingsStudy::of(asked, timeline, &input, earlier)?;
    if !found.diff.is_empty() && !args.dry_run && !args.check {
        expect_writable(&found.layers.file.place(&journal))?;
    }
    context.show(|context| show(args, context, &found, &input))?;
    conclude(args, context, &found, &journal, &input)
}

/// ", 2026-01-05 … 2026-02-10": when the first session of a study began, and the last one ended.
fn days(study: &LeverStudy) -> String {
    let first = study.sessions.iter().map(|seen| seen.first).min();
    let last = study.sessions.iter().map(|seen| seen.last).max();
    first.zip(last).map_or_else(String::new, |(first, last)| format!(", {}", numbers::days(first, last)))
}

/// Which file it is about, whose sessions, and how they are divided.
fn introduce(context: &mut Context<'_>, found: &SettingsStudy, input: &Input) -> Result<()> {
    let SettingsStudy { scope, layers, study, .. } = found;
    writeln!(context.err, "# settings: {} ({})", layers.file.path.shown(), scope.into_str())?;
    let of_side = |side| study.sessions.iter().filter(|seen| seen.is_earlier == side).count() as u64;
    let [earlier, later, old] = [Some(true), Some(false), None].map(of_side);
    let sessions = study.sessions.len() as u64;
    let versions: Vec<&str> = study.versions.keys().map(|version| client_words(version)).collect();
    if *scope == SettingsScope::User && context.env.claude_config_dirs().count() > 1 {
        writeln!(
            context.err,
            "# CLAUDE_CONFIG_DIR names several directories: the figures are of the logs of all of them, and what is written \
             is the settings.json of the first; with another one alone in CLAUDE_CONFIG_DIR it is that one's"
        )?;
    }
    if let (SettingsScope::User, Some(part)) = (scope, &input.project) {
        writeln!(
            context.err,
            "# these settings are of all your projects, and only those named like {part:?} are looked at; --scope project \
             sets them for one"
        )?;
    }
    if sessions == 0 {
        writeln!(context.err, "# no session of this scope in the logs")?;
    } else {
        let judged = match earlier {
            0 => "too few to choose values on the earlier and to judge them on the later".to_owned(),
            _ if old > 0 => {
                format!("{old} too old to say what holds, values chosen on {earlier}, judged on the last {later}")
            }
            _ => format!("values chosen on the first {earlier}, judged on the other {later}"),
        };
        let (all, days, versions) = (counted(sessions, "session"), days(study), versions.join(", "));
        writeln!(context.err, "# {all}{days}: {judged}; clients of the last weeks: {versions}")?;
    }
    Ok(())
}

/// The answer: what changes and what that is worth, or that nothing does and why.
fn answer(args: &Args, found: &SettingsStudy) -> String {
    let SettingsStudy { layers, study, findings: all, together, diff, .. } = found;
    let (path, aside) = (layers.file.path.shown(), writing::aside(args.explain, all));
    let forecast = |finding: &Finding| finding.forecast.as_ref().map(findings::brief_words);
    let state = if args.dry_run || args.check { " (not written)" } else { "" };
    if !diff.is_empty() {
        let proposed = || all.iter().filter(|finding| finding.proposed().is_some());
        let worth = together.as_ref().map(findings::brief_words).or_else(|| proposed().find_map(forecast));
        let worth = worth.map_or_else(String::new, |worth| format!(": {worth}"));
        return format!("{} to {path}{state}{worth}{aside}.", counted(proposed().count() as u64, "change"));
    }
    let waiting = all.iter().filter_map(|finding| match &finding.verdict {
        Verdict::Wait { setting, .. } => {
            Some(forecast(finding).map_or(setting.clone(), |of| format!("{setting} ({of})")))
        }
        _ => None,
    });
    let waiting = waiting.collect::<Vec<_>>().join(", ");
    let taken_back = taken_back(all);
    let is_judged = all.iter().any(|finding| finding.forecast.is_some());
    let is_unpriced = |finding: &Finding| matches!(&finding.verdict, Verdict::Hold(why) if why == NO_PRICE);
    let why = match waiting.as_str() {
        "" if !taken_back.is_empty() => format!("what pays here {taken_back}"),
        "" if study.sessions.is_empty() => "there is no session to choose values by".to_owned(),
        "" if is_judged => "no setting is cheaper beyond chance and the simulation's error".to_owned(),
        "" if all.iter().any(is_unpriced) => NO_PRICE.to_owned(),
        "" => "each setting is set already, or there is too little to judge it by".to_owned(),
        waiting if taken_back.is_empty() => format!("what pays here waits for an update of Claude Code: {waiting}"),
        waiting => {
            format!("what pays here waits for an update of Claude Code ({waiting}), or {taken_back}")
        }
    };
    format!("Nothing to change in {path}: {why}{aside}.")
}

/// "(a, b) was taken back on …: `devboy tune undo ID` sets it again", undo by undo; nothing where nothing was.
fn taken_back(findings: &[Finding]) -> String {
    let mut undos: Vec<(&str, Vec<&str>)> = Vec::new();
    for finding in findings {
        let Verdict::TakenBack { setting, words } = &finding.verdict else { continue };
        match undos.iter_mut().find(|(undo, _)| undo == words) {
            Some((_, settings)) => settings.push(setting),
            None => undos.push((words, vec![setting])),
        }
    }
    undos
        .iter()
        .map(|(words, settings)| format!("({}) {words}", settings.join(", ")))
        .collect::<Vec<_>>()
        .join(", and ")
}

fn show(args: &Args, context: &mut Context<'_>, found: &SettingsStudy, input: &Input) -> Result<()> {
    writing::tell_first(&args.asked.output, &answer(args, found), !found.diff.is_empty(), context)?;
    input.tell(&args.asked.output, context)?;
    if !args.asked.output.quiet {
        introduce(context, found, input)?;
    }
    let SettingsStudy { scope, layers, study, findings: all, together, diff, .. } = found;
    match args.asked.output.form() {
        TableFormat::Json => {
            let fields = input.fields(json!({
                "settings": layers.file.path.shown(),
                "scope": scope.into_str(),
                "sessions": study.sessions.len(),
                "versions": study.versions.keys().collect::<Vec<_>>(),
                "findings": findings::json(all),
                "together": together,
                "changes": all.iter().filter_map(Finding::proposed).count(),
                "diff": diff,
            }));
            args.asked.output.write_json("tune claude-settings", fields, context)
        }
        // What nobody has to do anything about is no news, and would come again in every run.
        TableFormat::Table if args.asked.output.quiet && diff.is_empty() && !args.explain => {
            let waits = all.iter().filter(|finding| matches!(finding.verdict, Verdict::Wait { .. })).cloned();
            findings::write(context.out, &waits.collect::<Vec<_>>(), false)
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
    if diff.is_empty() {
        return Ok(Exit::Done);
    }
    if args.dry_run || args.check {
        return Ok(if args.check { Exit::Pending } else { Exit::Done });
    }
    let listed = all.iter().filter_map(JournalChange::of).collect();
    let mut entry = claude_entry(context.now_ms, "tune claude-settings", &layers.file, journal, text, listed)?;
    // Some settings are about a part of the requests; the trial of one that is about all has them all.
    let tried = found.study.trials.iter().map(|trial| trial.sessions.iter().map(KeptSides::requests).sum());
    let requests = tried.max().unwrap_or(0);
    (entry.reach, entry.together) = (Some(found.reach), found.together.clone());
    entry.inputs = Some(window::inputs("logs", requests, found.study.sessions.len() as u64, &input.window));
    write_noted(&layers.file.place(journal), text, &entry)?;
    let (path, changes) =
        (layers.file.path.shown(), counted(all.iter().filter_map(Finding::proposed).count() as u64, "change"));
    // Claude Code does not read a file that somebody named.
    let taken_over =
        if args.output.is_none() { "; running sessions of Claude Code read it again by themselves" } else { "" };
    let told = format_args!("settings → {path}: {changes} written{taken_over}");
    context.note(args.asked.output.quiet, told)?;
    Ok(Exit::Done)
}
