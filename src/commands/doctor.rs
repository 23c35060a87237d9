//! `devboy doctor`: places looked at, what was found there, damage, retention.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::base::damage::Reason;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::DAY_MS;
use crate::base::unpack::Packing;
use crate::base::visible::Shown as _;
use crate::commands::reconcile;
use crate::commands::responses::surroundings;
use crate::frames::input::Input;
use crate::logs::discover::{self, Root};
use crate::logs::overview::Overview;
use crate::logs::trace::Millis;
use crate::logs::vocabulary::Vocabulary;
use crate::mine::quality::{self, Quality};
use crate::report::numbers::{bytes, counted, date, days, thousands};
use crate::report::sharing;
use crate::report::table::{Table, TableFormat, paragraph};
use crate::settings::claude::file::ClaudeFile;
use crate::settings::claude::levers::{Lever, Levers, SettingsScope};
use crate::settings::{Effective, Settings, SettingsFile};
use crate::shell::arguments::{Exit, InputArgs, OutputArgs, WindowArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry::{TelemetryPlace, event_files, places as places_of_telemetry};

/// Say where devboy looks, what it finds, and what is damaged or missing.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The configuration to look at. Default: $DEVBOY_CONFIG, else devboy/pipeline_config.toml in $XDG_CONFIG_HOME or ~/.config.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Warn if the logs do not reach back to this time: a date, RFC 3339, `7d` or `4w`.
    #[arg(short, long, value_name = "WHEN")]
    since: Option<String>,
    /// Show how the counts of ingest, mine, replay and the policies go into each other, over all that is known; fails if
    /// they do not.
    #[arg(long, conflicts_with_all = ["config", "since"])]
    reconcile: bool,
    #[command(flatten)]
    input: InputArgs,
    #[command(flatten)]
    output: OutputArgs,
}

#[derive(serde::Serialize)]
struct ExaminedLine {
    /// "ok", "warn", "fail", "-" of what need not be there and is not, or nothing of a line that belongs to the one above.
    state: &'static str,
    what: String,
    told: String,
}

impl ExaminedLine {
    fn new(state: &'static str, what: &str, told: impl Into<String>) -> Self {
        Self { state, what: what.to_owned(), told: told.into() }
    }
}

/// What is told of figures alone.
const COUNTED: [&str; 5] = ["files", "sidecars", "kept", "sessions", "reach"];

/// What an examination found.
struct Examined {
    lines: Vec<ExaminedLine>,
    /// The relative places that were looked at.
    places: Vec<PathBuf>,
    /// The logs, if they could be read.
    read: Result<Input>,
    damage: BTreeMap<Reason, Quality>,
}

/// Examines everything and prints it. Fails if there is nothing to read.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    if args.reconcile {
        return reconcile::run(&args.input, &args.output, context);
    }
    let examined = examine(args, context)?;
    let exit = if examined.lines.iter().any(|line| line.state == "fail") { Exit::Failed } else { Exit::Done };
    match args.output.form() {
        TableFormat::Json => examined.write_json(args, context)?,
        TableFormat::Table => examined.write_text(context)?,
        _ => examined.write_table(&args.output, context)?,
    }
    Ok(exit)
}

fn examine(args: &Args, context: &mut Context<'_>) -> Result<Examined> {
    // The logs have to reach back to it; to the start of everything if none was named.
    let asked = WindowArgs { since: args.since.clone(), ..WindowArgs::default() };
    let wanted = window::of(&asked, context.now_ms)?.start;
    let mut lines = places(args, context);
    lines.push(configuration(args, context));
    lines.extend(other_configurations(args, context));
    lines.extend(client_settings(args, context));
    lines.extend(recorded(args, context));
    // The reach of the logs is judged against the window, so that nothing is cut to it.
    let mut read = Input::read(&args.input, window::ALL, (0, None), &args.output, context);
    let mut damage = BTreeMap::new();
    match &mut read {
        Err(error) => {
            lines.push(ExaminedLine::new("fail", "logs", &error.message));
            let hints = error.hint.iter().flat_map(|hint| hint.lines()).filter(|hint| !hint.contains("devboy doctor"));
            lines.extend(hints.map(|hint| ExaminedLine::new("", "", hint)));
        }
        Ok(input) => {
            let overview = input.overview()?;
            lines.extend(found(input, &overview, args.output.stamp(context).is_none()));
            if !input.has_records() && !args.input.allow_empty {
                lines.push(ExaminedLine::new("fail", "logs", "no session record in any of these files"));
            }
            lines.push(reach(args, wanted, context, &input.vocabulary, &overview));
            damage = quality::of(&input.sources);
        }
    }
    Ok(Examined { lines, places: examined_places(args, context), read, damage })
}

impl Examined {
    fn write_json(&self, args: &Args, context: &mut Context<'_>) -> Result<()> {
        let read = self.read.as_ref().ok();
        let fields = json!({
            "checks": self.lines,
            "inputs": read.map_or(Value::Null, Input::json),
            "data_quality": read.map(|_| &self.damage),
        });
        args.output.write_json("doctor", fields, context)
    }

    /// One table, malformed lines in it.
    fn write_table(self, output: &OutputArgs, context: &mut Context<'_>) -> Result<()> {
        let form = output.form();
        let is_shared = output.is_shared();
        let place = |first: &str| if is_shared { sharing::hidden_place(first) } else { first.to_owned() };
        let odd = self.damage.iter().map(|(reason, row)| {
            let (count, files) = (thousands(row.count), counted(row.files, "file"));
            let told = format!("{count} in {files}, first at {}", place(&row.first));
            ExaminedLine::new("warn", reason.into_str(), told)
        });
        let places = if is_shared { self.places.as_slice() } else { &[] };
        let hidden = |told: String| places.iter().fold(told, |told, place| sharing::without_place(&told, place));
        let mut table = Table::new(&["state", "what", "told"]);
        for line in self.lines.into_iter().chain(odd) {
            let told = if COUNTED.contains(&line.what.as_str()) { line.told } else { hidden(line.told) };
            table.row([line.state.to_owned(), line.what, told]);
        }
        table.write(context.out, form, context.width)
    }

    fn write_text(&self, context: &mut Context<'_>) -> Result<()> {
        for line in &self.lines {
            let first = format!("{:<4}  {:<14} ", line.state, line.what);
            write!(context.out, "{}", paragraph(&first, &line.told, context.width))?;
        }
        if !self.damage.is_empty() {
            writeln!(context.out, "\nMalformed lines, and what became of them:")?;
            quality::table(&self.damage).write(context.out, TableFormat::Table, context.width)?;
            quality::write_places(context.out, &self.damage)?;
        }
        Ok(())
    }
}

fn places(args: &Args, context: &Context<'_>) -> Vec<ExaminedLine> {
    let roots = discover::roots(&args.input.input_dir, &context.env.places);
    if roots.is_empty() {
        return vec![ExaminedLine::new("fail", "logs", "neither HOME nor CLAUDE_CONFIG_DIR is set")];
    }
    roots.iter().map(place).collect()
}

/// Every relative place that a line may name, the longest first: an absolute one is seen to be one by how it looks.
fn examined_places(args: &Args, context: &Context<'_>) -> Vec<PathBuf> {
    let roots = discover::roots(&args.input.input_dir, &context.env.places).into_iter();
    let roots = roots.filter(|root| !discover::is_stdin(&root.path)).map(|root| root.path);
    let files = [examined_config(args, context), context.env.claude_places().file(SettingsScope::User)];
    let lake = args.input.lake.clone().or_else(|| context.env.lake_dir());
    let telemetry = places_of_telemetry(&[], &surroundings(&recorded_as(args, context), context));
    let telemetry = telemetry.into_iter().map(|place| place.path);
    let places = roots.chain(files.into_iter().flatten()).chain(lake).chain(telemetry);
    let mut places: Vec<PathBuf> = places.filter(|place| place.is_relative()).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.as_os_str().len()));
    places
}

fn examined_config(args: &Args, context: &Context<'_>) -> Option<PathBuf> {
    args.config.clone().or_else(|| context.env.config_file())
}

/// The settings that say where the pipeline records.
fn recorded_as(args: &Args, context: &Context<'_>) -> Settings {
    let file = examined_config(args, context).and_then(|path| SettingsFile::load(&path).ok());
    file.and_then(|file| Effective::resolve(&file).ok()).unwrap_or_else(Effective::built_in).settings
}

fn place(root: &Root) -> ExaminedLine {
    let path = root.path.shown();
    let (state, told) = match std::fs::metadata(&root.path) {
        _ if discover::is_stdin(&root.path) => ("ok", "standard input".to_owned()),
        Ok(_) => ("ok", format!("{path} ({})", root.origin)),
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound && root.origin == "default" => {
            ("-", format!("{path} (default) is not there"))
        }
        Err(cause) => ("warn", format!("{path} ({}): {cause}", root.origin)),
    };
    ExaminedLine::new(state, "looked at", told)
}

fn configuration(args: &Args, context: &Context<'_>) -> ExaminedLine {
    let line = |state, told: String| ExaminedLine::new(state, "config", told);
    let Some(path) = examined_config(args, context) else {
        return line("warn", "no place for it: HOME is not set".to_owned());
    };
    let origin = if args.config.is_some() {
        "--config"
    } else if context.env.devboy_config.is_some() {
        "DEVBOY_CONFIG"
    } else if context.env.places.xdg_config_home.is_some() && context.env.usual_configs().next().as_ref() == Some(&path)
    {
        "XDG_CONFIG_HOME"
    } else {
        "default"
    };
    match SettingsFile::load(&path) {
        Err(error) => line("fail", error.message),
        Ok(file) if !file.existed => line("ok", format!("{} ({origin}) is not there yet", path.shown())),
        Ok(file) => {
            let (state, unknown) = match file.warnings.first() {
                None => ("ok", String::new()),
                Some(first) => {
                    let count = counted(file.warnings.len() as u64, "warning");
                    ("warn", format!("; {count}, first in line {}: {}", first.line, first.message))
                }
            };
            line(state, format!("{} ({origin}), schema {}{unknown}", path.shown(), file.schema_version))
        }
    }
}

/// Configurations that nothing here reads: at the other usual place, and at those of other hosts of the pipeline.
fn other_configurations(args: &Args, context: &Context<'_>) -> impl Iterator<Item = ExaminedLine> {
    let named = context.env.of_hosts();
    let usual = context.env.places.home.as_ref().map(|home| home.join(".devboy").join("pipeline_config.toml"));
    let used = examined_config(args, context);
    let others = named.into_iter().chain(usual).chain(context.env.usual_configs());
    let others: BTreeSet<PathBuf> = others.filter(|path| path.is_file()).collect();
    others.into_iter().filter(move |path| used.as_ref() != Some(path)).map(|path| {
        let told =
            format!("{} is there as well: DEVBOY_CONFIG or --config names the one that your host reads", path.shown());
        ExaminedLine::new("warn", "config", told)
    })
}

/// Claude Code's own settings of the user, and what in them the client is not known to take.
fn client_settings(args: &Args, context: &Context<'_>) -> Vec<ExaminedLine> {
    let Some(path) = context.env.claude_places().file(SettingsScope::User) else { return Vec::new() };
    let line = |state, told: String| vec![ExaminedLine::new(state, "settings", told)];
    let file = match ClaudeFile::load(&path) {
        Err(error) => return line("warn", error.message),
        Ok(_) if !path.exists() => return line("-", format!("{} is not there", path.shown())),
        Ok(file) => file,
    };
    let odd =
        Data::new(args.input.rules_dir.as_deref()).and_then(|data| Ok(odd_settings(&file, &Levers::load(&data)?)));
    match odd {
        Err(error) => line("warn", error.message),
        Ok(odd) if odd.is_empty() => line("ok", path.shown()),
        Ok(odd) => odd.into_iter().flat_map(|odd| line("warn", odd)).collect(),
    }
}

/// Settings that stand twice, or have a value that the client is not known to take; of variables it is known to take texts.
fn odd_settings(file: &ClaudeFile, levers: &Levers) -> BTreeSet<String> {
    let env = file.get(&KeyPath::from(["env"])).ok().flatten();
    let variables = env.as_ref().and_then(Value::as_object).into_iter().flatten();
    let no_text = variables.filter(|(_, value)| !value.is_string()).map(|(name, _)| {
        let path = file.path.shown();
        format!("{path}: {name} in \"env\" is no text; Claude Code is known to take texts there, and may leave out the whole file")
    });
    let odd = |lever: &Lever| match file.get(&lever.key(None)?) {
        Err(error) => Some(error.message),
        Ok(value) => {
            let value = value.filter(|value| lever.taken(value).is_none() && value.as_str() != Some(""))?;
            let (path, name, takes) = (file.path.shown(), &lever.name, lever.takes());
            Some(format!("{path}: {name} is {value}; Claude Code is known to take {takes}"))
        }
    };
    // Several may stand in a table that stands twice.
    levers.all().filter_map(odd).chain(no_text).collect()
}

/// Where the live pipeline may have recorded, and what is there.
fn recorded(args: &Args, context: &Context<'_>) -> Vec<ExaminedLine> {
    let settings = recorded_as(args, context);
    let place = |place: TelemetryPlace| {
        let (path, origin) = (place.path.shown(), place.origin);
        let files = event_files(&mut [place.clone()]).files.len() as u64;
        match (std::fs::metadata(&place.path), origin) {
            (Ok(_), _) => ("ok", format!("{path} ({origin}): {}", counted(files, "file"))),
            (Err(_), "default") => ("-", format!("{path} (default) is not there")),
            (Err(cause), _) => ("warn", format!("{path} ({origin}): {cause}")),
        }
    };
    let found = places_of_telemetry(&[], &surroundings(&settings, context)).into_iter().map(place);
    found.map(|(state, told)| ExaminedLine::new(state, "telemetry", told)).collect()
}

fn found(input: &Input, overview: &Overview, is_reproducible: bool) -> Vec<ExaminedLine> {
    let line = |what: &str, told: String| ExaminedLine::new("ok", what, told);
    let tally = &input.tally;
    let asked: BTreeSet<&Path> = input.sources.iter().filter_map(|source| source.path.as_deref()).collect();
    let files = || input.listing.files.iter().filter(|file| asked.contains(file.path.as_path()));
    let packed = |packing| files().filter(|file| file.packing == packing).count() as u64;
    let kinds = [(Packing::Gzip, ".jsonl.gz"), (Packing::Zstd, ".jsonl.zst")];
    let kinds = kinds.map(|(packing, name)| (packed(packing), name));
    let kinds =
        kinds.iter().filter(|(count, _)| *count > 0).map(|(count, name)| format!("{} {name}", thousands(*count)));
    let kinds = kinds.collect::<Vec<_>>().join(", ");
    let kinds = if kinds.is_empty() { kinds } else { format!(" ({kinds})") };
    let piped = if input.listing.stdin { ", standard input" } else { "" };
    let files = format!("{}{kinds}{piped}, {}", counted(tally.files, "file"), bytes(tally.bytes));
    let mut lines = vec![line("files", files)];
    if overview.merged.sidecar_files > 0 {
        let count = counted(overview.merged.sidecar_files, "file");
        lines.push(line("sidecars", format!("{count} without session records, left out")));
    }
    if input.kept() > 0 {
        let (kept, why) = (counted(input.kept(), "file"), input.kept_words());
        lines.push(line("kept", format!("{kept} {why}, rows kept in the lake")));
    }
    let told = format!(
        "{}; subagents with calls: {} in files of their own, {} inline, {} only in progress records",
        counted(overview.sessions, "session"),
        thousands(overview.subagents_in_files),
        thousands(overview.subagents_inline),
        thousands(overview.subagents_in_progress),
    );
    lines.push(line("sessions", told));
    lines.push(match input.lake_dir() {
        Some(dir) if is_reproducible => line("lake", dir),
        Some(dir) => line("lake", format!("{dir}: {} read now", bytes(tally.bytes_read))),
        None => ExaminedLine::new("warn", "lake", "not used: every run reads all logs"),
    });
    for (path, why) in &input.listing.unreadable {
        lines.push(ExaminedLine::new("warn", "unreadable", format!("{}: {why}", path.shown())));
    }
    lines.extend(input.notes.iter().map(|note| ExaminedLine::new("warn", "note", note)));
    lines
}

/// Whether the logs reach back as far as the window, and what Claude Code will delete.
fn reach(args: &Args, start: Millis, context: &Context<'_>, words: &Vocabulary, overview: &Overview) -> ExaminedLine {
    let line = |state, told: String| ExaminedLine::new(state, "reach", told);
    let Some((first, last)) = overview.span_ms else {
        return line("warn", "no record carries a time".to_owned());
    };
    let wanted = if start == i64::MIN { context.now_ms - words.window_days * DAY_MS } else { start };
    let (keeps, origin) =
        cleanup_days(args, context).map_or((words.retention_days, "its default"), |kept| (kept, "its settings"));
    let told = format!("records of {}; Claude Code keeps logs {keeps} days ({origin})", days(first, last));
    if last > context.now_ms.saturating_add(DAY_MS) {
        let ahead =
            format!("{told}. The last of them are dated in the future: the clock was wrong there, or is wrong now");
        return line("warn", ahead);
    }
    // Logs that are younger than what is kept begin where Claude Code was first used: nothing is gone.
    let is_cut = context.now_ms - first >= keeps.saturating_sub(words.retention_slack_days).saturating_mul(DAY_MS);
    if first <= wanted || (!is_cut && start == i64::MIN) {
        return line("ok", told);
    }
    let gone = "raise cleanupPeriodDays, or run `devboy ingest` weekly";
    let missing = match (is_cut, start == i64::MIN) {
        (true, true) => format!("What was before {} is missing: {gone}", date(first)),
        (true, false) => {
            format!("The window begins {}, and what was before {} is missing: {gone}", date(wanted), date(first))
        }
        (false, _) => format!("The window begins {}, before the first of them", date(wanted)),
    };
    line("warn", format!("{told}. {missing}"))
}

/// `cleanupPeriodDays` of Claude Code's own settings, where it is set to something that the client takes.
fn cleanup_days(args: &Args, context: &Context<'_>) -> Option<i64> {
    let levers = Levers::load(&Data::new(args.input.rules_dir.as_deref()).ok()?).ok()?;
    let lever = levers.named("cleanupPeriodDays")?;
    let roots = discover::roots(&[], &context.env.places);
    let settings = roots.iter().filter_map(|root| Some(root.path.parent()?.join("settings.json")));
    let days = |path: PathBuf| lever.taken(&ClaudeFile::load(&path).ok()?.get(&lever.key(None)?).ok()??)?.as_i64();
    settings.filter_map(days).next()
}
