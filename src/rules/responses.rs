//! Recorded responses as rules see them, wherever they come from: what they add up to, which of them rules speak of, on
//! which that is judged, how many responses the recorded ones stand for, and by which name a configuration can speak of them.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use rayon::prelude::*;

use crate::base::allocator;
use crate::base::backtest::{BacktestNumbers, PromiseCoverage};
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::names::Sym;
use crate::base::numbers::{percent, thousands};
use crate::base::pseudonyms::{Pseudonyms, is_pseudonym};
use crate::base::stats::SessionUse;
use crate::frames::fingerprint::{Fingerprint, Observed, ToolCosts};
use crate::frames::input::Input;
use crate::logs::trace::Millis;
use crate::logs::vocabulary::Vocabulary;
use crate::mine::follow_ups::{FollowUps, bounds};
use crate::mine::observe::{EventGuide, EventSums, class_of};
use crate::mine::sessions::session_uses_of_events;
use crate::mine::sizes::SizesBySession;
use crate::planner::numbers::PlannerThresholds;
use crate::replay::input::endpoint;
use crate::replay::{RecordedInput, RecordedLog, SessionProfile};
use crate::rules::prefetching::Fetched;
use crate::rules::{mined_planners, statistics};
use crate::settings::SettingsFile;
use crate::settings::annotations::{Annotations, is_plain_name};
use crate::settings::finding::{Evidence, Verdict};
use crate::telemetry::effectiveness::{CountedBy, Effectiveness, effectiveness};
use crate::telemetry::log::{EventLog, LogPart, RecordedEvent, Start};
use crate::telemetry::{Telemetry, TelemetryRules};

/// Where responses come from.
pub(crate) enum ResponseOrigin {
    /// The telemetry of the live pipeline.
    Telemetry(Box<Telemetry>),
    /// Logs, as they would have been recorded.
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
    /// Whether what is told of the planner is of the latest sessions, which alone have anything of it.
    pub is_planner_of_latest: bool,
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
    pub(crate) sessions: Vec<SessionUse>,
    /// The model that answered most often in each; none where the recorder does not say.
    pub(crate) models: Vec<String>,
    pub(crate) counted_by: CountedBy,
    pub(crate) origin: ResponseOrigin,
    pub(crate) words: Vocabulary,
    pub(crate) assumed: TelemetryRules,
    pub(crate) window: Range<Millis>,
    pub(crate) pool: rayon::ThreadPool,
}

/// Recorded responses as a replay needs them.
pub struct LaidOutLog<'l> {
    pub log: &'l EventLog,
    pub input: RecordedInput,
}

impl Responses {
    /// Sums the responses up.
    pub fn observe(&mut self, names: &Pseudonyms) -> Result<()> {
        let whole = self.log.whole();
        let (sums, is_foreseen) = self.pool.install(|| (EventSums::of(&whole), whole.is_foreseen()));
        self.observed = self.told(&whole, is_foreseen, &sums?, &self.sessions, names);
        Ok(())
    }

    /// Sums the responses up, and apart those that rules speak of.
    pub fn rule_basis(&mut self, names: &Pseudonyms, numbers: &bounds::FollowUpThresholds) -> Result<RuleBasis> {
        let (starts, lags) = (self.pool.install(|| self.log.starts()), &numbers.links.lags);
        let halves = self.split(&starts)?;
        let known = halves.map_or_else(|| self.log.whole(), |[known, _]| self.log.within(known));
        let sum = || -> Result<_> { Ok((EventSums::of(&known)?, EventSums::of(&known.others())?)) };
        let follow = || {
            let sessions = halves.map_or(starts.len(), |[known, _]| known.len());
            let all = FollowUps::of_events(&self.log, &starts, lags, sessions);
            let coverage = statistics::coverage(&all, &SizesBySession::of_events(&self.log), numbers);
            (coverage, all.rows_of_first(sessions, numbers))
        };
        let (sums, (coverage, follow_ups)) = self.pool.join(sum, follow);
        let (sums, others) = sums?;
        // What sums were made of lies between what stays.
        allocator::give_back_small_blocks();
        let (sessions, all) = (self.sessions_of(&known), self.log.whole());
        // Over logs it is replayed over their latest sessions: the earlier ones say nothing of it.
        let (is_foreseen, is_of_latest) = self.pool.install(|| {
            let is_replayed = matches!(self.origin, ResponseOrigin::Logs(_)) && halves.is_some();
            let is_foreseen = all.is_foreseen();
            (is_foreseen, is_foreseen && (is_replayed || !known.is_foreseen()))
        });
        let planned = if is_of_latest { &all } else { &known };
        let (observed, whole) = self.pool.join(
            || Observed { follow_ups, ..self.told(planned, is_foreseen, &sums, &sessions, names) },
            || -> Result<_> { Ok(self.told(&all, is_foreseen, &sums.clone().plus(others)?, &self.sessions, names)) },
        );
        let later = halves.map(|[_, later]| self.log.part(later));
        self.observed = whole?;
        let sessions_min = self.split_rule()?.sessions_min();
        Ok(RuleBasis {
            observed,
            coverage,
            later,
            is_planner_of_latest: is_of_latest,
            sessions: starts.len() as u64,
            sessions_min,
        })
    }

    /// What some of the responses add up to, without follow-ups.
    pub fn observe_part(&self, log: &EventLog, names: &Pseudonyms) -> Result<Observed> {
        let part = log.whole();
        let (sums, is_foreseen) = self.pool.install(|| (EventSums::of(&part), part.is_foreseen()));
        let sessions = self.pool.install(|| session_uses_of_events(&part, &self.words.read_class_tools));
        Ok(self.told(&part, is_foreseen, &sums?, &sessions, names))
    }

    /// How each session was worked in; those that are left out were not.
    fn sessions_of(&self, part: &LogPart<'_>) -> Vec<SessionUse> {
        let none = SessionUse { calls: 0, read_calls: 0, compactions: 0, class: "" };
        let of = |(session, row): (u32, &SessionUse)| if part.has(session) { row.clone() } else { none.clone() };
        (0..).zip(&self.sessions).map(of).collect()
    }

    fn told(
        &self,
        planned: &LogPart<'_>,
        is_foreseen: bool,
        sums: &EventSums,
        sessions: &[SessionUse],
        names: &Pseudonyms,
    ) -> Observed {
        let is_recorded = matches!(self.origin, ResponseOrigin::Telemetry(_));
        let guide = EventGuide {
            pseudonym: &|name| names.tool(name),
            is_pseudonym: &|name| is_recorded && is_pseudonym(name),
            sessions,
            is_foreseen,
            bytes_per_token: self.counted_by.bytes_per_token,
        };
        sums.observed(planned, &guide)
    }

    /// Some sessions, earliest first, as the earlier ones, on which rules are to speak, and the later ones, on which that is
    /// judged, the latest of them if they are many; none while there are too few for both.
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
    pub fn laid_out<'l>(&self, log: &'l EventLog) -> LaidOutLog<'l> {
        let recorded = self.recorded(log);
        LaidOutLog { log, input: self.pool.install(|| recorded.input()) }
    }

    /// The tool whose answers each endpoint class has, where the class is not the tool itself.
    pub fn tools(&self) -> BTreeMap<String, String> {
        type Pairs = BTreeSet<(Sym, Sym)>;
        let add = |mut pairs: Pairs, event: &RecordedEvent| {
            if event.endpoint != event.tool {
                pairs.insert((event.endpoint, event.tool));
            }
            pairs
        };
        let pairs = || self.log.events.par_iter().fold(Pairs::new, add).reduce(Pairs::new, |a, b| &a | &b);
        let text = |name| self.log.names.text(name).to_owned();
        self.install(pairs).into_iter().map(|(class, tool)| (text(class), text(tool))).collect()
    }

    /// Runs something on the threads that were asked for.
    pub fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    fn recorded<'l>(&self, log: &'l EventLog) -> RecordedLog<'l> {
        let model = |number: usize| self.models.get(number).cloned().unwrap_or_default();
        let profile = |(number, session)| SessionProfile { model: model(number), class: class_of(session) };
        let profiles = self.sessions.iter().enumerate().map(profile).collect();
        let endpoint_of = |tool: &str, class: &str| endpoint(&self.words, &self.annotations, tool, class);
        RecordedLog::new(log, profiles, &endpoint_of, self.assumed.handle_tokens)
    }

    /// What the planner of a configuration would have fetched ahead in the later sessions; none of telemetry, which holds no
    /// values.
    pub fn fetched(&mut self, file: &SettingsFile) -> Result<Option<Fetched>> {
        match &mut self.origin {
            ResponseOrigin::Telemetry(_) => Ok(None),
            ResponseOrigin::Logs(input) => mined_planners::fetched_as_configured(file, input).map(Some),
        }
    }

    /// How much the planner and L0 spared.
    pub fn effectiveness(&self) -> Effectiveness {
        let planned: Vec<&RecordedEvent> = self.log.planned.iter().collect();
        effectiveness(&self.log.events, &planned, self.counted_by)
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

/// Subject of a finding about all responses together.
pub const EVERYTHING: &str = "(all)";

/// The recorded responses of one endpoint or tool.
#[derive(Clone, Copy)]
pub struct RecordedSubject<'a> {
    name: &'a str,
    key: Option<&'a str>,
    events: u64,
    calls: f64,
}

impl<'a> RecordedSubject<'a> {
    /// Those of an endpoint.
    pub fn of_endpoint(seen: &'a Fingerprint) -> Self {
        Self { name: &seen.endpoint, key: seen.key.as_deref(), events: seen.events, calls: seen.calls }
    }

    /// Those of a tool.
    pub fn of_tool(seen: &'a ToolCosts) -> Self {
        Self { name: &seen.tool, key: seen.key.as_deref(), events: seen.events, calls: seen.calls }
    }

    /// The name in the configuration, else the recorded one.
    pub fn name(&self) -> &'a str {
        self.key.unwrap_or(self.name)
    }

    /// Why no configuration can speak of them, if none can.
    pub fn unnamed(&self) -> Option<Verdict> {
        match self.key {
            Some(key) if is_plain_name(key) => None,
            Some(_) => Some(Verdict::Skip("the name cannot stand in a configuration".to_owned())),
            None => Some(Verdict::Hold(
                "only a pseudonym of this name was recorded; run `devboy ingest` once over the logs in which it was \
                 called, or name it in the configuration"
                    .to_owned(),
            )),
        }
    }

    /// Measured evidence from all of its responses.
    pub fn evidence(&self, counts: &str) -> Evidence {
        Evidence::of(scaled(self.events, self.calls, counts), self.events)
    }
}

/// Counts in words, with what the events stand for in front where only a part was recorded.
pub fn scaled(events: u64, calls: f64, counts: &str) -> String {
    if calls == events as f64 {
        return counts.to_owned();
    }
    format!("{} events that stand for {calls:.1} responses\n{counts}", thousands(events))
}

/// The share that is judged by, where a part of the events was recorded: what they stand for beyond themselves, and the
/// share of all.
pub(crate) fn if_sampled(unrecorded: f64, share: f64) -> String {
    if unrecorded > 0.0 { format!(", {} of all that they stand for", percent(share)) } else { String::new() }
}
