//! Recorded responses, wherever they come from: the telemetry of the live pipeline, or the logs as they would have been
//! recorded. Either can be summed up, and replayed under another configuration.

pub mod input_report;

mod live_names;

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::pseudonyms::{Pseudonyms, is_pseudonym};
use crate::base::stats::SessionUse;
use crate::base::tokenizer::Counting;
use crate::commands::config::vocabularies;
use crate::commands::input::Input;
use crate::commands::lake_sync::thread_pool;
use crate::commands::replay::planner;
use crate::commands::replay_input::{ReplayInput, tool_kind};
use crate::facts::encode;
use crate::facts::inner_formats::InnerFormat;
use crate::frames::endpoints;
use crate::frames::fingerprint::Observed;
use crate::logs::trace::Millis;
use crate::logs::vocabulary::Vocabulary;
use crate::mine::declines::late_invoked;
use crate::mine::in_progress::Holds;
use crate::mine::observe::{Guide, observe};
use crate::mine::uses::sessions_of_events;
use crate::planner::effectiveness::Effectiveness;
use crate::planner::numbers::Numbers;
use crate::replay::reach::Reach;
use crate::replay::{Options, Piece, Present, Recorded, Scenario, SessionProfile, effects};
use crate::settings::entries::Inputs;
use crate::settings::{AgentClass, Settings, SettingsFile, classify_agent, write_private_bytes};
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry;
use crate::telemetry::TelemetryRules;
use crate::telemetry::log::EventLog;
use crate::telemetry::{Listing, Request, Surroundings, Telemetry};

/// Responses are replayed in pieces of whole sessions with at least this many, so that memory stays bounded.
const PIECE_EVENTS: usize = 20_000;

/// What a command wants to read.
pub struct Wanted<'a> {
    /// Where from.
    pub input: &'a InputArgs,
    /// Which part.
    pub window: Range<Millis>,
    /// The configuration under which logs are replayed.
    pub settings: &'a Settings,
    /// How results are shown.
    pub output: &'a OutputArgs,
    /// A configuration whose planner is replayed over the logs, too.
    pub planner: Option<&'a SettingsFile>,
}

/// Where responses come from.
enum Origin {
    Telemetry(Box<Telemetry>),
    Logs(Box<Input>),
}

/// Recorded responses and what they add up to.
pub struct Responses {
    /// The responses, under the names that configurations use, as far as these are known.
    pub log: EventLog,
    /// What they add up to; see [`Responses::observe`].
    pub observed: Observed,
    /// The data files.
    pub data: Data,
    /// How each session was worked in.
    sessions: Vec<SessionUse>,
    origin: Origin,
    words: Vocabulary,
    assumed: TelemetryRules,
    window: Range<Millis>,
    pool: rayon::ThreadPool,
}

impl Responses {
    /// What the live pipeline recorded.
    ///
    /// # Errors
    /// If a data file does not fit, or the command line asks for what telemetry does not hold.
    pub fn from_telemetry(wanted: &Wanted<'_>, context: &mut Context<'_>) -> Result<Self> {
        if wanted.input.project.is_some() {
            return Err(Error::usage("telemetry does not know projects").hint("--project works with logs only"));
        }
        let data = Data::new(wanted.input.rules_dir.as_deref())?;
        let assumed = data.parsed::<TelemetryRules>("telemetry.toml")?;
        let places = telemetry::places(&wanted.input.input_dir, &surroundings(wanted.settings, context));
        let listing = Listing::new(places, wanted.window.start);
        let request = Request {
            window: wanted.window.clone(),
            recycled_gap_ms: u64::from(assumed.recycled_gap_hours) * 3_600_000,
            vocabulary: telemetry::Vocabulary {
                inner_format: |key| InnerFormat::from_key(key).map(InnerFormat::bit),
                format: |id| encode::find(id).map(|(number, _)| number),
            },
        };
        let pool = thread_pool(wanted.input.threads)?;
        let mut telemetry = listing.read(&request, &pool, &|_| {});
        let mut log = std::mem::take(&mut telemetry.log);
        let lake = wanted.input.lake.clone().or_else(|| context.env.lake_dir()).filter(|_| !wanted.input.no_lake);
        live_names::restore(&mut log, wanted.settings, &context.pseudonyms, lake.as_deref());
        log.set_aside();
        let words = data.read("logs.toml", Vocabulary::parse)?;
        Ok(Self {
            sessions: sessions_of_events(&log, &words.read_class_tools),
            log,
            observed: Observed::default(),
            words,
            data,
            origin: Origin::Telemetry(Box::new(telemetry)),
            assumed,
            window: wanted.window.clone(),
            pool,
        })
    }

    /// What the live pipeline would have recorded for the logs.
    ///
    /// # Errors
    /// If no log can be found, or a data file does not fit.
    pub fn from_logs(wanted: &Wanted<'_>, context: &mut Context<'_>) -> Result<Self> {
        let tier = vocabularies(wanted.settings, None);
        let mut input = Input::read(wanted.input, wanted.window.clone(), tier, wanted.output, context)?;
        input.expect_records(wanted.input)?;
        input.report_holds(Holds::Calls)?;
        let laid = ReplayInput::new(None, &mut input)?;
        let scenario = Scenario::new(wanted.settings, &laid.tape, laid.options(false));
        let (data, words) = (input.data.clone(), input.vocabulary.clone());
        let mut log = laid.events(&scenario);
        if let Some(file) = wanted.planner {
            let judged = planner::shadow(file, &mut input, &laid, &scenario, &mut log)?;
            input.notes.push(format!(
                "the planner was replayed over the {judged} latest sessions; `devboy planner` shows how it did"
            ));
        }
        Ok(Self {
            sessions: sessions_of_events(&log, &words.read_class_tools),
            log,
            observed: Observed::default(),
            words,
            assumed: data.parsed::<TelemetryRules>("telemetry.toml")?,
            data,
            origin: Origin::Logs(Box::new(input)),
            window: wanted.window.clone(),
            pool: thread_pool(wanted.input.threads)?,
        })
    }

    /// Sums the responses up, with follow-ups at these lags.
    ///
    /// # Errors
    /// If Polars refuses a query, which is a fault of devboy.
    pub fn observe(&mut self, names: &Pseudonyms, lags: &[u32]) -> Result<()> {
        let is_recorded = matches!(self.origin, Origin::Telemetry(_));
        let guide = Guide {
            inner_formats: &InnerFormat::ALL.map(InnerFormat::key),
            pseudonym: &|name| names.tool(name),
            is_pseudonym: &|name| is_recorded && is_pseudonym(name),
            sessions: &self.sessions,
            classify: &|session| class_of(session).variant(),
            lags,
        };
        self.observed = self.pool.install(|| observe(&self.log, &guide))?;
        Ok(())
    }

    /// What `reach` saves of the tokens now, and how much more each change of the configuration would save; none where a
    /// change does not concern the pipeline.
    pub fn effects(&self, reach: &Reach, now: &Settings, changes: &[Settings]) -> (Present, Vec<Option<f64>>) {
        let profile = |session| SessionProfile { model: String::new(), class: class_of(session) };
        let sessions = self.sessions.iter().map(profile).collect();
        let kind = |tool: &str| tool_kind(&self.words, tool);
        let recorded = Recorded::new(&self.log, sessions, &kind, self.assumed.handle_tokens);
        let skeleton = recorded.skeleton();
        // Tokens were counted by the recorder.
        let options = Options { extended: false, invalidate: true, counting: Some(Counting::Exact(0)) };
        let scenario =
            |settings: &Settings| Scenario::new(settings, &skeleton, options.clone()).within(reach, &skeleton);
        let pieces = self.pieces();
        let piece = |index: usize| {
            let (tape, weights) = recorded.lay(pieces[index].clone());
            Piece { tape: Cow::Owned(tape), weights }
        };
        let changes: Vec<Scenario> = changes.iter().map(scenario).collect();
        self.pool.install(|| effects(pieces.len(), &piece, &scenario(now), &changes))
    }

    /// Stretches of sessions with enough responses each.
    fn pieces(&self) -> Vec<Range<u32>> {
        let mut counts = vec![0; self.log.sessions.len()];
        self.log.events.iter().chain(&self.log.beside).for_each(|event| counts[event.session as usize] += 1);
        let (mut pieces, mut start, mut held) = (Vec::new(), 0, 0);
        for (session, count) in (0..).zip(&counts) {
            held += count;
            if held >= PIECE_EVENTS || session as usize + 1 == counts.len() {
                pieces.push(start..session + 1);
                (start, held) = (session + 1, 0);
            }
        }
        pieces
    }

    /// How much the planner and L0 spared.
    ///
    /// # Errors
    /// If `planner.toml` does not fit.
    pub fn effectiveness(&self) -> Result<Effectiveness> {
        let numbers = self.data.read("planner.toml", Numbers::parse)?;
        let mut sum = Effectiveness::default();
        self.log.events.iter().chain(&self.log.planned).for_each(|event| sum.add(event));
        sum.late_invoked_after_decline = late_invoked(&self.log, numbers.judge.declined_calls);
        Ok(sum)
    }

    /// Writes `telemetry/endpoints.parquet` beside the configuration.
    ///
    /// # Errors
    /// Whatever the disk says.
    pub fn write_fingerprints(&self, config: &Path) -> Result<()> {
        let mut out = Vec::new();
        endpoints::write(&mut out, &self.observed.endpoints, &self.about())?;
        let beside = config.parent().unwrap_or(Path::new("."));
        write_private_bytes(&beside.join("telemetry").join("endpoints.parquet"), &out)
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
    pub fn inputs(&self) -> Inputs {
        let profile = &self.observed.profile;
        let origin = if matches!(self.origin, Origin::Telemetry(_)) { "telemetry" } else { "logs" };
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

fn class_of(session: &SessionUse) -> AgentClass {
    let read_share = session.read_calls as f64 / session.calls.max(1) as f64;
    classify_agent(session.calls as f64, session.compactions as f64, read_share)
}
