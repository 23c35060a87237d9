//! The input that the flags of a command ask for, what its user is told about it, and what every command about money opens of it:
//! the requests with their bill, and the client versions that are in use.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};

use crate::base::damage::Reason;
use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::id::Id;
use crate::base::numbers::DAY_MS;
use crate::base::visible::{Shown as _, quoted};
use crate::cost::bill::Bill;
use crate::frames::input::timeline::TimelineDetail;
use crate::frames::input::{Input, InputRequest};
use crate::logs::discover;
use crate::logs::overview::Holds;
use crate::logs::trace::Millis;
use crate::mine::quality::{self, Quality};
use crate::report::table::paragraph;
use crate::report::{numbers, sharing};
use crate::shell::arguments::{InputArgs, OutputArgs, WindowArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::chosen::PolicyConfigs;
use crate::whatif::client::thresholds::{ClientThresholds, Versions};
use crate::whatif::prompt_cache::params::CacheRules;
use crate::whatif::workload::{Workload, cache_rules};

/// What a question is asked of, and how its answer is shown.
#[derive(clap::Args, Debug, Clone, Default)]
pub struct QuestionArgs {
    /// Which logs.
    #[command(flatten)]
    pub input: InputArgs,
    /// Which part of them.
    #[command(flatten)]
    pub window: WindowArgs,
    /// How results are shown.
    #[command(flatten)]
    pub output: OutputArgs,
}

impl QuestionArgs {
    /// [`Input::read`] of the window that is asked for.
    pub fn read(&self, tier: u8, timeline: Option<TimelineDetail>, context: &mut Context<'_>) -> Result<Input> {
        let window = window::of(&self.window, context.now_ms)?;
        let mut input = Input::read(&self.input, window, (tier, timeline), &self.output, context)?;
        input.note_kept();
        Ok(input)
    }

    /// The same for a question about tool calls. An error if there is none, unless that is allowed. With `says` the input is told
    /// what will be asked for behind the history: [`Input::keep_calls`], [`Input::find_values`] or [`Input::count`].
    pub fn read_calls(
        &self,
        tier: u8,
        timeline: Option<TimelineDetail>,
        says: fn(&mut Input),
        context: &mut Context<'_>,
    ) -> Result<Input> {
        let mut input = self.read(tier, timeline, context)?;
        says(&mut input);
        input.expect_calls(&self.input)?;
        input.report_holds(Holds::Calls)?;
        Ok(input)
    }

    /// Arguments with which other commands see the same logs; `since` and `until` are the first and last day of a page that was
    /// cut. In what is shared no place and no name is told.
    pub fn same_logs(&self, since: Option<&str>, until: Option<&str>, is_shared: bool) -> String {
        let days = self.window.days.map(|days| format!("--days {days}"));
        let [since, until] = [self.window.since.as_deref().or(since), self.window.until.as_deref().or(until)];
        let flags = [flag("--since", since), flag("--until", until), days];
        let places = Some(self.places(is_shared)).filter(|places| !places.is_empty());
        places.into_iter().chain(flags.into_iter().flatten()).collect::<Vec<_>>().join(" ")
    }

    /// The same without any days.
    pub fn places(&self, is_shared: bool) -> String {
        let InputArgs { input_dir, project, lake, no_lake, rules_dir, .. } = &self.input;
        let named = |name: &'static str, path: &PathBuf| format!("{name} {}", quoted(&path.to_string_lossy()));
        let dirs = input_dir.iter().map(|path| named("--input-dir", path));
        let lake = lake.as_ref().map(|path| named("--lake", path)).or_else(|| no_lake.then(|| "--no-lake".to_owned()));
        let rules = rules_dir.as_ref().map(|path| named("--rules-dir", path));
        let told = dirs.chain(flag("--project", project.as_deref())).chain(lake).chain(rules).filter(|_| !is_shared);
        told.collect::<Vec<_>>().join(" ")
    }
}

/// What the names of projects have to contain. A way that begins here is the path that it leads to; the mark with which reports
/// shorten a path is no part of it. An error if it could be a part of any name: of other letters than those of ASCII the names
/// hold nothing.
fn project_part(text: &str, here: Option<&Path>) -> Result<String> {
    let name = text.strip_prefix('…').unwrap_or(text);
    let begins_here = matches!(Path::new(name).components().next(), Some(Component::CurDir | Component::ParentDir));
    let mut path = PathBuf::new();
    for part in here.into_iter().flat_map(Path::components).chain(Path::new(name).components()) {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = path.pop(),
            part => path.push(part),
        }
    }
    let part =
        if begins_here { path.to_string_lossy().into_owned() } else { name.trim_end_matches(['/', '\\']).to_owned() };
    if part.chars().any(|letter| letter.is_ascii_alphanumeric()) {
        return Ok(part);
    }
    Err(Error::usage(format!("--project {}: names no project", quoted(text)))
        .hint("write a part of the name of its directory, its path, or `.` for the current directory"))
}

fn flag(name: &str, value: Option<&str>) -> Option<String> {
    value.map(|value| format!("{name} {}", quoted(value)))
}

/// The fields of a JSON document about logs or telemetry: what was read and what was damaged, then those of the command.
pub fn fields(window: Value, inputs: Value, damage: &BTreeMap<Reason, Quality>, own: Value) -> Value {
    let mut fields = json!({ "window": window, "inputs": inputs, "data_quality": damage });
    if let (Value::Object(fields), Value::Object(own)) = (&mut fields, own) {
        fields.extend(own);
    }
    fields
}

/// An input as commands see it.
impl Input {
    /// Finds the logs that `args` ask for and brings what is known of them up to date; `tier` are the vocabularies in
    /// which the facts about bodies are wanted, one bit each, 0 for none. Who will ask for [`Input::timeline`], too, says in
    /// which detail. An error if no log can be found; the error lists the places looked at.
    pub fn read(
        args: &InputArgs,
        window: Range<Millis>,
        (tier, timeline): (u8, Option<TimelineDetail>),
        output: &OutputArgs,
        context: &mut Context<'_>,
    ) -> Result<Self> {
        let here = context.env.current_dir.as_deref();
        let mut input = Self::open(InputRequest {
            data: Data::new(args.rules_dir.as_deref())?,
            roots: discover::roots(&args.input_dir, &context.env.places),
            window,
            project: args.project.as_deref().map(|text| project_part(text, here)).transpose()?,
            threads: args.threads,
            lake: args.lake.clone().or_else(|| context.env.lake_dir()).filter(|_| !args.no_lake),
            tier,
            timeline,
            progress: context.err_is_terminal && !output.quiet,
            allow_empty: args.allow_empty,
            stdin: &mut context.input,
        })?;
        input.notes.extend(window::unknown_zone(&context.env));
        input.notes.extend(input.missing_places());
        Ok(input)
    }

    /// [`fields`] of this input.
    pub fn fields(&self, own: Value) -> Value {
        fields(self.window_json(), self.json(), &quality::of(&self.sources), own)
    }

    /// Writes the JSON document of a command about this input; one that is redacted names no place on disk.
    pub fn write_json(
        &self,
        command: &str,
        own: Value,
        (output, is_redacted): (&OutputArgs, bool),
        context: &mut Context<'_>,
    ) -> Result<()> {
        let mut fields = self.fields(own);
        if is_redacted {
            sharing::hide_places(&mut fields);
        }
        output.write_json(command, fields, context)
    }

    /// Tells the user what is worth knowing about the input, malformed lines included.
    pub fn tell(&self, output: &OutputArgs, context: &mut Context<'_>) -> Result<()> {
        self.tell_notes(output, context)?;
        let mut damaged = quality::of(&self.sources);
        // A file is no line, and each has a note of its own.
        damaged.retain(|reason, _| *reason != Reason::Unreadable && !reason.is_way_of_writing());
        if !damaged.is_empty() && !output.quiet {
            let damaged = format!("{} ({} says where)", quality::in_a_line(&damaged), self.doctor_command());
            write!(context.err, "{}", paragraph("# malformed lines: ", &damaged, context.width))?;
        }
        Ok(())
    }

    /// The same for who shows malformed lines in a table.
    pub fn tell_notes(&self, output: &OutputArgs, context: &mut Context<'_>) -> Result<()> {
        if output.quiet {
            return Ok(());
        }
        for note in self.notes.iter().chain(&self.in_progress.and_then(|known| known.sentence())) {
            write!(context.err, "{}", paragraph("# note: ", note, context.width))?;
        }
        for (path, why) in self.unreadable() {
            writeln!(context.err, "# note: {} could not be read: {why}", path.shown())?;
        }
        if output.verbose {
            for source in &self.sources {
                let Some(path) = &source.path else { continue };
                let records = numbers::counted(source.counters.records, "record");
                writeln!(context.err, "# {}: {}, {records}", path.shown(), numbers::bytes(source.bytes))?;
            }
        }
        Ok(())
    }

    /// Whether there is a session log among the files. An error if there is none, unless `args` allow that.
    pub fn expect_records(&self, args: &InputArgs) -> Result<()> {
        if args.allow_empty || self.has_records() { Ok(()) } else { Err(self.no_records()) }
    }

    /// Whether there is a tool call in the window. An error if there is none, unless `args` allow that.
    pub fn expect_calls(&mut self, args: &InputArgs) -> Result<()> {
        self.expect_records(args)?;
        if args.allow_empty || self.overview()?.calls > 0 {
            return Ok(());
        }
        Err(self.nothing_in_window("tool calls"))
    }
}

/// What every command about money opens: logs with their requests and prices.
pub struct BilledLogs {
    pub input: Input,
    /// Their requests, sizes and prices.
    pub workload: Workload,
    pub cache: CacheRules,
}

impl BilledLogs {
    /// Reads the logs. An error if there are none, if no request with usage lies in the window (unless `asked` allows
    /// that), or if a data file does not fit.
    pub fn open(asked: &QuestionArgs, context: &mut Context<'_>) -> Result<Self> {
        let mut input = asked.read(0, Some(TimelineDetail::default()), context)?;
        input.expect_records(&asked.input)?;
        input.report_holds(Holds::FirstChunks)?;
        let timeline = input.last_timeline(TimelineDetail::default())?;
        if timeline.billed().next().is_none() && !asked.input.allow_empty {
            return Err(input.nothing_in_window("requests with usage"));
        }
        let cache = cache_rules(&PolicyConfigs::load(&input.data)?)?;
        let mut workload = Workload::new(timeline, None, &input.data, false, true)?;
        workload.timeline.rename_tools(&input.vocabulary.tool_aliases);
        let notes = workload.notes(&cache);
        input.notes.extend(notes);
        Ok(Self { input, workload, cache })
    }

    /// Their bill.
    pub fn bill(&self) -> Bill<'_> {
        Bill::new(&self.workload, self.cache.cache.class_unknown)
    }
}

/// The client versions that are in use: of all logs, whatever part of them is asked about, since a setting reaches every client.
/// `seen` are those of `input`: other logs are looked at only if they are no part of it.
pub fn clients_in_use(
    asked: &QuestionArgs,
    (input, seen): (&Input, Versions),
    projects: Option<&BTreeSet<Id>>,
    context: &mut Context<'_>,
) -> Result<Versions> {
    let thresholds = ClientThresholds::load(&input.data)?;
    let now_ms = context.now_ms;
    let last = seen.values().copied().filter(|last| *last <= now_ms).max();
    let start = input.window.start;
    let has_last_weeks =
        start == window::ALL.start || last.is_some_and(|last| start <= last - thresholds.split.version_days * DAY_MS);
    let is_whole = asked.input.project.is_none() && input.window.end == window::ALL.end && has_last_weeks;
    // A stream is read once.
    if is_whole || asked.input.input_dir.iter().any(|dir| dir.as_os_str() == "-") {
        return Ok(seen);
    }
    let asked = QuestionArgs {
        input: InputArgs { project: None, ..asked.input.clone() },
        window: WindowArgs::default(),
        output: asked.output.clone(),
    };
    let mut all = asked.read(0, Some(TimelineDetail::default()), context)?;
    let question = format!("clients in use on {} in {projects:?}", numbers::date(now_ms));
    all.remember(&question, |all| {
        Ok(thresholds.versions(&all.last_timeline(TimelineDetail::default())?, projects, now_ms))
    })
}
