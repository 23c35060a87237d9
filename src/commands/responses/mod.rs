//! Recorded responses, wherever they come from: the telemetry of the live pipeline, or the logs as they would have been
//! recorded. Either can be summed up, and replayed under another configuration. Telemetry names MCP servers by
//! pseudonyms: names that stand in the configuration or in the lake tell which is whose.

pub mod input_report;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use rayon::ThreadPool;

use crate::base::data::{Data, typed};
use crate::base::error::{Error, Result};
use crate::base::pseudonyms::{Pseudonyms, is_pseudonym, published_tool};
use crate::commands::input::QuestionArgs;
use crate::frames::export::write_endpoints;
use crate::frames::fingerprint::Observed;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::frames::manifest::Manifest;
use crate::frames::sync::thread_pool;
use crate::logs::overview::Holds;
use crate::logs::trace::Millis;
use crate::logs::vocabulary::Vocabulary;
use crate::mine::sessions::session_uses_of_events;
use crate::planner::numbers::PlannerThresholds;
use crate::replay::input::ReplayInput;
use crate::replay::tape::SessionProfiles;
use crate::replay::{ReplayOptions, Scenario};
use crate::report::numbers::counted;
use crate::rules::mined_planners;
use crate::rules::responses::{ResponseOrigin, Responses};
use crate::settings::annotations::Annotations;
use crate::settings::entries::RuleInputs;
use crate::settings::formats::vocabularies;
use crate::settings::{Settings, SettingsFile, write_private};
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry::log::EventLog;
use crate::telemetry::{self, Surroundings, TelemetryListing, TelemetryRequest, TelemetryRules};

/// What a command wants to read.
pub struct Wanted<'a> {
    /// Where from.
    pub input: &'a InputArgs,
    pub window: Range<Millis>,
    /// The configuration under which logs are replayed.
    pub settings: &'a Settings,
    /// How results are shown.
    pub output: &'a OutputArgs,
    /// A configuration whose planner is replayed over the logs, too.
    pub planner: Option<&'a SettingsFile>,
}

impl<'a> Wanted<'a> {
    /// What a question asks for, under a configuration.
    pub fn of(asked: &'a QuestionArgs, window: Range<Millis>, settings: &'a Settings) -> Self {
        Self { input: &asked.input, window, settings, output: &asked.output, planner: None }
    }
}

impl Responses {
    /// What the live pipeline recorded. An error if a data file does not fit, or the command line asks for what
    /// telemetry does not hold.
    pub fn from_telemetry(wanted: &Wanted<'_>, context: &mut Context<'_>) -> Result<Self> {
        if wanted.input.project.is_some() {
            return Err(Error::usage("telemetry does not know projects").hint("--project works with logs only"));
        }
        let data = Data::new(wanted.input.rules_dir.as_deref())?;
        let assumed = data.parsed::<TelemetryRules>("telemetry.toml")?;
        let places = telemetry::places(&wanted.input.input_dir, &surroundings(wanted.settings, context));
        let listing = TelemetryListing::new(places, wanted.window.start);
        let request = TelemetryRequest { window: wanted.window.clone(), recycled_gap_ms: assumed.recycled_gap_ms() };
        let pool = thread_pool(wanted.input.threads)?;
        let mut telemetry = listing.read(&request, &pool, &|_| {});
        let mut log = std::mem::take(&mut telemetry.log);
        let lake = wanted.input.lake.clone().or_else(|| context.env.lake_dir()).filter(|_| !wanted.input.no_lake);
        restore_names(&mut log, wanted.settings, &context.pseudonyms, lake.as_deref());
        let words: Vocabulary = data.read("logs.toml", typed)?;
        pool.install(|| log.set_aside());
        Self::new(wanted, data, words, log, ResponseOrigin::Telemetry(Box::new(telemetry)), pool)
    }

    /// What the live pipeline would have recorded for the logs. An error if no log can be found, or a data file does
    /// not fit.
    pub fn from_logs(wanted: &Wanted<'_>, context: &mut Context<'_>) -> Result<Self> {
        let tier = vocabularies(wanted.settings, None);
        let detail = (tier, Some(TimelineDetail::VALUES));
        let mut input = Input::read(wanted.input, wanted.window.clone(), detail, wanted.output, context)?;
        input.note_kept();
        input.expect_records(wanted.input)?;
        ReplayInput::prepare(&mut input);
        input.report_holds(Holds::Calls)?;
        Self::of_logs(wanted, input)
    }

    /// The same for logs that were read, bodies and all. An error if a data file does not fit.
    pub fn of_logs(wanted: &Wanted<'_>, mut input: Input) -> Result<Self> {
        let source = ReplayInput::without_lines(&mut input)?;
        let scenario = Scenario::new(wanted.settings, &source.tape, ReplayOptions::arm(false));
        let (data, words) = (input.data.clone(), input.vocabulary.clone());
        let mut log = source.events(&scenario);
        if let Some(file) = wanted.planner {
            let judged = mined_planners::shadow(file, &mut input, &source, &scenario, &mut log)?;
            input.notes.push(format!(
                "the planner was replayed over the latest {}; `devboy planner` shows how it did",
                counted(judged as u64, "session")
            ));
        }
        let pool = thread_pool(wanted.input.threads)?;
        let SessionProfiles { profiles, profile_of } = &source.tape.sessions;
        let models = profile_of.iter().map(|&profile| profiles[profile as usize].model.clone()).collect();
        let responses = Self::new(wanted, data, words, log, ResponseOrigin::Logs(Box::new(input)), pool)?;
        Ok(Self { models, ..responses })
    }

    /// Responses that are not summed up yet.
    fn new(
        wanted: &Wanted<'_>,
        data: Data,
        words: Vocabulary,
        log: EventLog,
        origin: ResponseOrigin,
        pool: ThreadPool,
    ) -> Result<Self> {
        Ok(Self {
            sessions: pool.install(|| session_uses_of_events(&log.whole(), &words.read_class_tools)),
            models: Vec::new(),
            counted_by: data.parsed::<PlannerThresholds>("planner.toml")?.counted_by(),
            log,
            observed: Observed::default(),
            words,
            assumed: data.parsed::<TelemetryRules>("telemetry.toml")?,
            annotations: Annotations::load(&data)?,
            data,
            origin,
            window: wanted.window.clone(),
            pool,
        })
    }

    /// Writes `telemetry/endpoints.parquet` beside the configuration, if there is anything to write.
    pub fn write_fingerprints(&self, config: &Path) -> Result<()> {
        if self.observed.endpoints.is_empty() {
            return Ok(());
        }
        let mut out = Vec::new();
        write_endpoints(&mut out, &self.observed.endpoints, &self.about())?;
        let beside = config.parent().unwrap_or(Path::new("."));
        write_private(&beside.join("telemetry").join("endpoints.parquet"), out)
    }

    /// What an export says about its window.
    pub fn about(&self) -> Vec<(&'static str, String)> {
        let bound = |ms: Millis| jiff::Timestamp::from_millisecond(ms).map(|at| at.to_string()).unwrap_or_default();
        let span = self.observed.profile.span_ms;
        vec![
            (
                "window_since",
                if self.window.start == window::ALL.start { String::new() } else { bound(self.window.start) },
            ),
            ("window_until", if self.window.end == window::ALL.end { String::new() } else { bound(self.window.end) }),
            ("first_seen", span.map_or_else(String::new, |(first, _)| bound(first))),
            ("last_seen", span.map_or_else(String::new, |(_, last)| bound(last))),
        ]
    }

    /// The input for the journal.
    pub fn inputs(&self) -> RuleInputs {
        let profile = &self.observed.profile;
        let origin = if matches!(self.origin, ResponseOrigin::Telemetry(_)) { "telemetry" } else { "logs" };
        window::inputs(origin, profile.events, profile.sessions, &self.window)
    }
}

/// What decides where telemetry is looked for.
pub fn surroundings(settings: &Settings, context: &Context<'_>) -> Surroundings {
    Surroundings {
        home: context.env.places.home.clone(),
        telemetry_dir: context.env.telemetry_dir.clone(),
        configured: settings.telemetry.path.as_ref().map(Into::into),
    }
}

/// Gives tools and endpoints their names back, as far as somebody knows them: telemetry names MCP servers by pseudonyms, and a
/// configuration must call them by their names. Those that stand in the configuration or in the lake tell whose they are.
fn restore_names(log: &mut EventLog, settings: &Settings, pseudonyms: &Pseudonyms, lake: Option<&Path>) {
    if !log.names.texts().iter().any(|name| is_pseudonym(name)) {
        return;
    }
    // What cannot be read is simply not known.
    let of_lake =
        lake.and_then(|dir| Manifest::load(dir).ok()).map(|(manifest, _)| manifest.mcp_tools).unwrap_or_default();
    let recorded = log.names.texts().iter().filter(|name| name.starts_with("mcp__") && !is_pseudonym(name)).cloned();
    let known: BTreeMap<String, String> = recorded
        .chain(of_lake)
        .chain(names_of_settings(settings))
        .filter(|name| name.starts_with("mcp__"))
        .flat_map(|name| [published_tool(&name), pseudonyms.tool(&name)].map(|hidden| (hidden, name.clone())))
        .collect();
    log.rename(|name| known.get(name).cloned().unwrap_or_else(|| name.to_owned()));
}

/// Every name of an endpoint or tool that a configuration mentions.
fn names_of_settings(settings: &Settings) -> Vec<String> {
    let patterns = settings.profiles.data.variants.values().map(|profile| &profile.endpoint_pattern);
    patterns
        .chain(settings.tools.keys())
        .chain(settings.endpoint_overrides.keys())
        .chain(settings.dedup.enabled_per_endpoint.keys())
        .chain(settings.templates.endpoint_overrides.keys())
        .cloned()
        .collect()
}
