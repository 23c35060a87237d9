//! Recorded responses, wherever they come from: the telemetry of the live pipeline, or the logs as they would have been
//! recorded. Either can be summed up, and replayed under another configuration.

pub mod input_report;

mod live_names;

use std::ops::Range;
use std::path::Path;

use crate::base::allocator;
use crate::base::backtest::{BacktestNumbers, PromiseCoverage};
use crate::base::data::{Data, typed};
use crate::base::error::{Error, Result};
use crate::base::pseudonyms::{Pseudonyms, is_pseudonym};
use crate::base::stats::SessionUse;
use crate::base::tokenizer::Counting;
use crate::commands::input::QuestionArgs;
use crate::facts::encode;
use crate::facts::inner_formats::InnerFormat;
use crate::frames::export::write_endpoints;
use crate::frames::fingerprint::Observed;
use crate::frames::input::Input;
use crate::frames::sync::thread_pool;
use crate::logs::overview::Holds;
use crate::logs::trace::Millis;
use crate::logs::vocabulary::Vocabulary;
use crate::mine::declines::{CountedBy, effectiveness};
use crate::mine::follow_ups::{FollowUps, bounds};
use crate::mine::observe::{EventGuide, EventSums};
use crate::mine::sessions::session_uses_of_events;
use crate::mine::sizes::SizesBySession;
use crate::planner::numbers::PlannerThresholds;
use crate::replay::input::{ReplayInput, endpoint};
use crate::replay::reach::Reach;
use crate::replay::tape::{SessionProfiles, Tape};
use crate::replay::{EffectsBaseline, HistoryPiece, RecordedLog, ReplayOptions, Scenario, SessionProfile};
use crate::rules::prefetching::Fetched;
use crate::rules::{mined_planners, paying, statistics, t1_tools};
use crate::settings::annotations::Annotations;
use crate::settings::entries::RuleInputs;
use crate::settings::formats::vocabularies;
use crate::settings::{AgentClass, Settings, SettingsFile, classify_agent, write_private};
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry;
use crate::telemetry::effectiveness::Effectiveness;
use crate::telemetry::log::{EventLog, LogPart, RecordedEvent, Start};
use crate::telemetry::{Surroundings, Telemetry, TelemetryListing, TelemetryRequest, TelemetryRules};

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

impl<'a> Wanted<'a> {
    /// What a question asks for, under a configuration.
    pub fn of(asked: &'a QuestionArgs, window: Range<Millis>, settings: &'a Settings) -> Self {
        Self { input: &asked.input, window, settings, output: &asked.output, planner: None }
    }
}

/// Where responses come from.
enum ResponseOrigin {
    Telemetry(Box<Telemetry>),
    Logs(Box<Input>),
}

/// What rules speak of, and what they are judged on.
pub struct RuleBasis {
    /// What the earlier sessions add up to, or all while there are too few.
    pub observed: Observed,
    /// How well the statistics of value models held.
    pub coverage: Vec<PromiseCoverage>,
    /// The later sessions; none while there are too few.
    pub later: Option<EventLog>,
    /// How many sessions there are.
    pub sessions: u64,
    /// How many are needed for some of them to be the later ones.
    pub sessions_min: u64,
}

/// Recorded responses and what they add up to.
pub struct Responses {
    /// The responses, under the names that configurations use, as far as these are known.
    pub log: EventLog,
    /// What they add up to; see [`Responses::observe`].
    pub observed: Observed,
    /// The data files.
    pub data: Data,
    /// Shipped value models.
    pub annotations: Annotations,
    /// How each session was worked in.
    sessions: Vec<SessionUse>,
    /// The model that answered most often in each; none where the recorder does not say.
    models: Vec<String>,
    counted_by: CountedBy,
    origin: ResponseOrigin,
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
        let listing = TelemetryListing::new(places, wanted.window.start);
        let request = TelemetryRequest {
            window: wanted.window.clone(),
            recycled_gap_ms: u64::from(assumed.recycled_gap_hours) * 3_600_000,
            vocabulary: telemetry::KnownWords {
                inner_format: |key| key.parse().ok().map(InnerFormat::bit),
                format: |id| encode::find(id).map(|(number, _)| number),
            },
        };
        let pool = thread_pool(wanted.input.threads)?;
        let mut telemetry = listing.read(&request, &pool, &|_| {});
        let mut log = std::mem::take(&mut telemetry.log);
        let lake = wanted.input.lake.clone().or_else(|| context.env.lake_dir()).filter(|_| !wanted.input.no_lake);
        live_names::restore(&mut log, wanted.settings, &context.pseudonyms, lake.as_deref());
        let words: Vocabulary = data.read("logs.toml", typed)?;
        let sessions = pool.install(|| {
            log.set_aside();
            session_uses_of_events(&log.whole(), &words.read_class_tools)
        });
        Ok(Self {
            sessions,
            models: Vec::new(),
            counted_by: data.parsed::<PlannerThresholds>("planner.toml")?.counted_by(),
            log,
            observed: Observed::default(),
            words,
            annotations: Annotations::load(&data)?,
            data,
            origin: ResponseOrigin::Telemetry(Box::new(telemetry)),
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
        let mut input = Input::read(wanted.input, wanted.window.clone(), (tier, None), wanted.output, context)?;
        input.expect_records(wanted.input)?;
        input.report_holds(Holds::Calls)?;
        let laid = ReplayInput::new(None, &mut input)?;
        let scenario = Scenario::new(wanted.settings, &laid.tape, laid.options(false));
        let (data, words) = (input.data.clone(), input.vocabulary.clone());
        let mut log = laid.events(&scenario);
        if let Some(file) = wanted.planner {
            let judged = mined_planners::shadow(file, &mut input, &laid, &scenario, &mut log)?;
            input.notes.push(format!(
                "the planner was replayed over the {judged} latest sessions; `devboy planner` shows how it did"
            ));
        }
        let pool = thread_pool(wanted.input.threads)?;
        let SessionProfiles { profiles, profile_of } = &laid.tape.sessions;
        Ok(Self {
            models: profile_of.iter().map(|&profile| profiles[profile as usize].model.clone()).collect(),
            counted_by: data.parsed::<PlannerThresholds>("planner.toml")?.counted_by(),
            sessions: pool.install(|| session_uses_of_events(&log.whole(), &words.read_class_tools)),
            log,
            observed: Observed::default(),
            words,
            assumed: data.parsed::<TelemetryRules>("telemetry.toml")?,
            annotations: Annotations::load(&data)?,
            data,
            origin: ResponseOrigin::Logs(Box::new(input)),
            window: wanted.window.clone(),
            pool,
        })
    }

    /// Sums the responses up.
    ///
    /// # Errors
    /// If Polars refuses a query, which is a fault of devboy.
    pub fn observe(&mut self, names: &Pseudonyms) -> Result<()> {
        let sums = self.pool.install(|| EventSums::of(&self.log.whole()))?;
        self.observed = self.told(&self.log, &sums, &self.sessions, names);
        Ok(())
    }

    /// Sums the responses up, and apart those that rules speak of.
    ///
    /// # Errors
    /// If a data file does not fit, or Polars refuses a query, which is a fault of devboy.
    pub fn rule_basis(&mut self, names: &Pseudonyms, numbers: &bounds::FollowUpThresholds) -> Result<RuleBasis> {
        let calls_min = t1_tools::calls_min(&self.data)?;
        let (starts, lags) = (self.pool.install(|| self.log.starts()), &numbers.links.lags);
        let halves = self.split(&starts)?;
        let known = halves.map_or_else(|| self.log.whole(), |[known, _]| self.log.within(known));
        let sum = || -> Result<_> { Ok((EventSums::of(&known)?, EventSums::of(&known.others())?)) };
        let follow = || {
            let sessions = halves.map_or(starts.len(), |[known, _]| known.len());
            let all = FollowUps::of_events(&self.log, &starts, lags, sessions);
            let coverage = statistics::coverage(&all, &SizesBySession::of_events(&self.log), calls_min, numbers);
            (coverage, all.rows_of_first(sessions, numbers))
        };
        let (sums, (coverage, follow_ups)) = self.pool.join(sum, follow);
        let (sums, others) = sums?;
        // What sums were made of lies between what stays.
        allocator::give_back_small_blocks();
        let sessions = self.sessions_of(&known);
        let (observed, whole) = self.pool.join(
            || Observed { follow_ups, ..self.told(&self.log, &sums, &sessions, names) },
            || self.told(&self.log, &sums.clone().plus(others), &self.sessions, names),
        );
        let later = halves.map(|[_, later]| self.log.part(later));
        self.observed = whole;
        let sessions_min = self.split_rule()?.sessions_min();
        Ok(RuleBasis { observed, coverage, later, sessions: starts.len() as u64, sessions_min })
    }

    /// What some of the responses add up to, without follow-ups.
    ///
    /// # Errors
    /// If Polars refuses a query, which is a fault of devboy.
    pub fn observe_part(&self, log: &EventLog, names: &Pseudonyms) -> Result<Observed> {
        let part = log.whole();
        let sums = self.pool.install(|| EventSums::of(&part))?;
        let sessions = self.pool.install(|| session_uses_of_events(&part, &self.words.read_class_tools));
        Ok(self.told(log, &sums, &sessions, names))
    }

    /// How each session was worked in; those that are left out were not.
    fn sessions_of(&self, part: &LogPart<'_>) -> Vec<SessionUse> {
        let none = SessionUse { calls: 0, read_calls: 0, compactions: 0, class: "" };
        let of = |(session, row): (u32, &SessionUse)| if part.has(session) { row.clone() } else { none.clone() };
        (0..).zip(&self.sessions).map(of).collect()
    }

    fn told(&self, log: &EventLog, sums: &EventSums, sessions: &[SessionUse], names: &Pseudonyms) -> Observed {
        let is_recorded = matches!(self.origin, ResponseOrigin::Telemetry(_));
        let inner_formats: Vec<&str> = InnerFormat::ALL.iter().map(|format| format.into_str()).collect();
        let guide = EventGuide {
            inner_formats: &inner_formats,
            pseudonym: &|name| names.tool(name),
            is_pseudonym: &|name| is_recorded && is_pseudonym(name),
            sessions,
            classify: &|session| class_of(session).into_str(),
            bytes_per_token: self.counted_by.bytes_per_token,
        };
        sums.observed(log, &guide)
    }

    /// Some sessions, earliest first, as the earlier ones, on which rules are to speak, and the later ones, on which that is
    /// judged, the latest of them if they are many; none while there are too few for both.
    ///
    /// # Errors
    /// If a data file does not fit.
    pub fn split<'s>(&self, starts: &'s [Start]) -> Result<Option<[&'s [Start]; 2]>> {
        let rule = self.split_rule()?;
        let Some(known) = rule.known_of(starts.len()) else { return Ok(None) };
        let (known, later) = starts.split_at(known);
        Ok(Some([known, self.log.latest(later, rule.numbers.responses_max, rule.numbers.later_min)]))
    }

    fn split_rule(&self) -> Result<SplitRule> {
        let numbers = statistics::numbers(&self.data)?.backtest;
        let train_share = self.data.parsed::<PlannerThresholds>("planner.toml")?.backtest.train_share;
        Ok(SplitRule { numbers, train_share })
    }

    /// Some responses laid out, for any number of configurations.
    pub fn laid(&self, log: &EventLog) -> Laid {
        let recorded = self.recorded(log);
        Laid { skeleton: recorded.skeleton(), pieces: self.pool.install(|| recorded.pieces()) }
    }

    /// Runs something on the threads that were asked for.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    fn recorded<'l>(&self, log: &'l EventLog) -> RecordedLog<'l> {
        let model = |number: usize| self.models.get(number).cloned().unwrap_or_default();
        let profile = |(number, session)| SessionProfile { model: model(number), class: class_of(session) };
        let endpoint_of = |tool: &str, class: &str| endpoint(&self.words, &self.annotations, tool, class);
        RecordedLog::new(
            log,
            self.sessions.iter().enumerate().map(profile).collect(),
            &endpoint_of,
            self.assumed.handle_tokens,
        )
    }

    /// What the planner of a configuration would have fetched ahead in the later sessions; none of telemetry, which holds no
    /// values.
    ///
    /// # Errors
    /// If a data file or the value models do not fit.
    pub fn fetched(&mut self, file: &SettingsFile) -> Result<Option<Fetched>> {
        match &mut self.origin {
            ResponseOrigin::Telemetry(_) => Ok(None),
            ResponseOrigin::Logs(input) => paying::configured(file, input).map(Some),
        }
    }

    /// How much the planner and L0 spared.
    pub fn effectiveness(&self) -> Effectiveness {
        let planned: Vec<&RecordedEvent> = self.log.planned.iter().collect();
        effectiveness(&self.log.events, &planned, self.counted_by)
    }

    /// Writes `telemetry/endpoints.parquet` beside the configuration, if there is anything to write.
    ///
    /// # Errors
    /// Whatever the disk says.
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

/// How sessions are split into earlier and later ones.
struct SplitRule {
    numbers: BacktestNumbers,
    train_share: f64,
}

impl SplitRule {
    /// How many of so many sessions are the earlier ones; none if there are too few for both.
    fn known_of(&self, sessions: usize) -> Option<usize> {
        let known = (self.train_share * sessions as f64).floor() as usize;
        let is_enough = known >= self.numbers.known_min && sessions - known >= self.numbers.later_min;
        is_enough.then_some(known)
    }

    /// The fewest sessions that can be split.
    fn sessions_min(&self) -> u64 {
        let least = self.numbers.known_min + self.numbers.later_min;
        (least..).take(SESSIONS_TRIED).find(|&sessions| self.known_of(sessions).is_some()).unwrap_or(usize::MAX) as u64
    }
}

/// Of shares that leave no later sessions no number is enough.
const SESSIONS_TRIED: usize = 1_000_000;

/// Responses laid out for a replay.
pub struct Laid {
    /// The responses.
    pieces: Vec<HistoryPiece>,
    /// What configurations of them are resolved for: their endpoints and sessions.
    skeleton: Tape,
}

impl Laid {
    /// A configuration for these responses. The recorder counted their tokens; those of hints are counted as it says.
    pub fn scenario(&self, settings: &Settings) -> Scenario {
        let options = ReplayOptions { extended: false, invalidate: true, counting: Some(Counting::Exact(0)) };
        Scenario::new(settings, &self.skeleton, options)
    }

    /// The same, where only some of the responses can be changed.
    pub fn within(&self, scenario: &Scenario, reach: &Reach) -> Scenario {
        scenario.within(reach, &self.skeleton)
    }

    /// The responses under a configuration.
    pub fn ground(&self, now: Scenario) -> EffectsBaseline<'_> {
        EffectsBaseline::new(&self.pieces, now)
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
    classify_agent(session.calls, session.read_calls, session.compactions)
}
