//! Recorded responses to what rules R1 to R7 read: endpoint fingerprints, costs of tools, and the whole.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::base::body_shape::{BodyShape, LayerId};
use crate::base::error::Result;
use crate::base::names::Sym;
use crate::base::stats::SessionUse;
use crate::facts::inner_formats::InnerFormat;
use crate::frames::endpoint::{EndpointSpan, EndpointSum, STABILITY_PARTS, merged};
use crate::frames::fingerprint::{EventProfile, Fingerprint, LayerTokens, Observed, ToolCosts, UnrecordedPlans};
use crate::logs::trace::Millis;
use crate::mine::endpoint_sums::{EndpointSums, absorb_spans};
use crate::mine::repeats::{NO_REPEAT, distances};
use crate::mine::sizes::{GroupedValues, ValueCount, ValueCounts, quantile};
use crate::settings::{AgentClass, classify_agent};
use crate::telemetry::log::{LogPart, RaceWord, RecordedEvent, foreseeable_tokens};

/// What the summing up needs to know besides the events.
pub struct EventGuide<'a> {
    pub sessions: &'a [SessionUse],
    /// The name of a tool or endpoint that may leave the machine.
    pub pseudonym: &'a (dyn Fn(&str) -> String + Sync),
    /// Whether a recorded name is such a pseudonym, so that the name in configurations is not known.
    pub is_pseudonym: &'a (dyn Fn(&str) -> bool + Sync),
    /// Whether the planner did anything: mostly it did not, and there is nothing to look for.
    pub is_foreseen: bool,
    /// Bytes of an answer that the planner takes for one token.
    pub bytes_per_token: u32,
}

impl EventGuide<'_> {
    /// The name that may leave the machine, and the name in configurations.
    fn names(&self, recorded: &str) -> (String, Option<String>) {
        if (self.is_pseudonym)(recorded) {
            (recorded.to_owned(), None)
        } else {
            ((self.pseudonym)(recorded), Some(recorded.to_owned()))
        }
    }
}

/// What some sessions add up to, before quantiles and shares are taken.
#[derive(Clone, Debug, Default)]
pub struct EventSums {
    endpoints: Vec<EndpointSum>,
    spans: BTreeMap<Sym, EndpointSpan>,
    bytes: ValueCounts,
    /// Stack distances of repeats, by endpoint.
    distances: ValueCounts,
    /// Depths of nested objects.
    depths: ValueCounts,
    contexts: ContextSums,
}

impl EventSums {
    /// Sums some sessions of a sorted log up.
    pub fn of(part: &LogPart<'_>) -> Result<Self> {
        let sessions: Vec<&[RecordedEvent]> = part.sessions().collect();
        let sums = sessions.into_par_iter().fold(SessionSums::default, SessionSums::with);
        let sums = sums.reduce(SessionSums::default, SessionSums::plus);
        let (endpoints, spans) = sums.endpoints.into_sums();
        let [bytes, distances, depths] = [sums.bytes, sums.distances, sums.depths].map(ValueCounts::of);
        Ok(Self { endpoints: merged(&endpoints)?, spans, bytes, distances, depths, contexts: sums.contexts })
    }

    /// Of the sessions of both, which share none.
    pub fn plus(mut self, other: Self) -> Result<Self> {
        self.endpoints.extend(other.endpoints);
        absorb_spans(&mut self.spans, other.spans);
        Ok(Self {
            endpoints: merged(&self.endpoints)?,
            spans: self.spans,
            bytes: self.bytes.plus(other.bytes),
            distances: self.distances.plus(other.distances),
            depths: self.depths.plus(other.depths),
            contexts: self.contexts.plus(other.contexts),
        })
    }

    /// What follows from the sums: what rules R1 to R7 read, but for follow-ups. What the planner did is that in the sessions of
    /// `planned`.
    pub fn observed(&self, planned: &LogPart<'_>, guide: &EventGuide<'_>) -> Observed {
        let bytes = self.bytes.rows();
        Observed {
            profile: profile(self, guide, &bytes),
            endpoints: fingerprints(planned, guide, self),
            tools: tool_costs(planned, guide, &bytes),
            names: planned.log.names.texts().to_vec(),
            follow_ups: Vec::new(),
        }
    }
}

/// What the responses of some sessions add up to: each is fetched once.
#[derive(Default)]
struct SessionSums {
    endpoints: EndpointSums,
    bytes: GroupedValues,
    distances: GroupedValues,
    depths: GroupedValues,
    contexts: ContextSums,
}

impl SessionSums {
    /// With one more.
    fn with(mut self, session: &[RecordedEvent]) -> Self {
        self.contexts = self.contexts.plus(ContextSums::of(session));
        session.iter().zip(distances(session)).for_each(|(event, distance)| self.add(event, distance));
        self.endpoints.end_session();
        self
    }

    fn plus(mut self, other: Self) -> Self {
        self.endpoints.absorb(other.endpoints);
        self.bytes.absorb(other.bytes);
        self.distances.absorb(other.distances);
        self.depths.absorb(other.depths);
        Self { contexts: self.contexts.plus(other.contexts), ..self }
    }

    fn add(&mut self, event: &RecordedEvent, distance: u32) {
        let repeats = distance != NO_REPEAT;
        self.endpoints.add(event, repeats);
        self.bytes.add(event.tool, event.bytes, event.weight);
        if repeats {
            self.distances.add(event.endpoint, distance, event.weight);
        }
        if event.shape == BodyShape::NestedObject as u8 && event.depth > 0 {
            self.depths.add(Sym::default(), event.depth.into(), event.weight);
        }
    }
}

fn fingerprints(planned: &LogPart<'_>, guide: &EventGuide<'_>, sums: &EventSums) -> Vec<Fingerprint> {
    let distances = sums.distances.rows();
    let (log, fetched) = (planned.log, fetched(planned));
    let of_span = |(&name, span): (&Sym, &EndpointSpan)| {
        let (endpoint, key) = guide.names(log.names.text(name));
        let sums = of_group(&sums.endpoints, name, |sum| sum.endpoint);
        let distances = weighted(of_group(&distances, name, |count| count.group));
        let (fetched, used) = fetched.get(&name).copied().unwrap_or_default();
        let summed = summed(sums);
        Fingerprint {
            endpoint,
            key,
            repeat_distance_p90: quantile(&distances, 0.9),
            first_ms: span.first_ms,
            last_ms: span.last_ms,
            sessions: span.sessions,
            repeats_of_sessions: span.repeats,
            prefetches: summed.prefetches + fetched,
            prefetches_cited: summed.prefetches_cited + used,
            ..summed
        }
    };
    let mut out: Vec<Fingerprint> = sums.spans.iter().map(of_span).collect();
    out.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
    out
}

/// The rows of one group among rows that are sorted by group.
fn of_group<T>(rows: &[T], group: Sym, group_of: impl Fn(&T) -> Sym) -> &[T] {
    let group_of = |row: &T| {
        #[cfg(test)]
        crate::base::id::work::step();
        group_of(row)
    };
    let start = rows.partition_point(|row| group_of(row) < group);
    let count = rows[start..].partition_point(|row| group_of(row) == group);
    &rows[start..start + count]
}

/// By endpoint: calls that the planner made before the model, and those of them that were used.
fn fetched(part: &LogPart<'_>) -> BTreeMap<Sym, (u64, u64)> {
    let mut fetched: BTreeMap<Sym, (u64, u64)> = BTreeMap::new();
    let events = part.log.planned.iter().filter(|event| part.has(event.session));
    for event in events.filter(|event| event.plan.prefetched) {
        let (all, used) = fetched.entry(event.endpoint).or_default();
        *all += 1;
        *used += u64::from(event.plan.cited == Some(true));
    }
    fetched
}

/// What follows from the sums of one endpoint.
fn summed(sums: &[EndpointSum]) -> Fingerprint {
    let total = |of: &dyn Fn(&EndpointSum) -> u64| sums.iter().map(of).sum::<u64>();
    let weigh = |of: &dyn Fn(&EndpointSum) -> u64| sums.iter().map(|sum| sum.weight * of(sum) as f64).sum::<f64>();
    let calls = weigh(&|sum| sum.events);
    let mean = |of: &dyn Fn(&EndpointSum) -> u64, n: &dyn Fn(&EndpointSum) -> u64| {
        let n = weigh(n);
        (n > 0.0).then(|| weigh(of) / n)
    };
    let mut tokens = LayerTokens::default();
    sums.iter().for_each(|sum| tokens.absorb(&layer_tokens(sum)));
    let mut seen = Fingerprint {
        events: total(&|sum| sum.events),
        calls,
        bytes_mean: mean(&|sum| sum.bytes, &|sum| sum.events).unwrap_or_default(),
        repeats: weigh(&|sum| sum.repeats),
        repeat_events: total(&|sum| sum.repeats),
        unhashed: weigh(&|sum| sum.unhashed),
        unhashed_events: total(&|sum| sum.unhashed),
        inner_formats_top3: top_inner_formats(sums),
        columns_mean: mean(&|sum| sum.columns, &|sum| sum.tables),
        routed_tables: weigh(&|sum| if is_routed_table(sum) { sum.events - sum.tables } else { 0 }),
        rows_mean: mean(&|sum| sum.rows, &|sum| sum.tables),
        key_stability_mean: mean(&|sum| sum.stability, &|sum| sum.stable).map(|parts| parts / STABILITY_PARTS),
        tokens,
        prefetches: total(&|sum| sum.prefetches),
        prefetches_cited: total(&|sum| sum.prefetches_cited),
        ..Fingerprint::default()
    };
    seen.mix(shape_mix(sums, calls));
    seen
}

fn is_routed_table(sum: &EndpointSum) -> bool {
    sum.shape == BodyShape::MarkdownTable as u8 && sum.layer == LayerId::L2 as u8
}

fn layer_tokens(sum: &EndpointSum) -> LayerTokens {
    let mut tokens = LayerTokens::default();
    let layer = usize::from(sum.layer).min(LayerId::L3 as usize);
    tokens.baseline[layer] = sum.weight * sum.baseline as f64;
    tokens.sent[layer] = sum.weight * sum.sent as f64;
    tokens
}

/// The share of each shape, by name.
fn shape_mix(sums: &[EndpointSum], calls: f64) -> Vec<(String, f64)> {
    let mut weights: BTreeMap<&str, f64> = BTreeMap::new();
    for sum in sums {
        *weights.entry(BodyShape::from_number(sum.shape).into_str()).or_default() += sum.weight * sum.events as f64;
    }
    weights.into_iter().map(|(shape, weight)| (shape.to_owned(), weight / calls)).collect()
}

fn top_inner_formats(sums: &[EndpointSum]) -> Vec<String> {
    let weight = |bit: usize| {
        let having = sums.iter().filter(|sum| sum.inner_formats >> bit & 1 == 1);
        having.map(|sum| sum.weight * sum.events as f64).sum::<f64>()
    };
    let weights = InnerFormat::ALL.iter().enumerate().map(|(bit, format)| (weight(bit), format.into_str()));
    let mut found: Vec<(f64, &str)> = weights.filter(|(weight, _)| *weight > 0.0).collect();
    found.sort_by(|(x, a), (y, b)| y.total_cmp(x).then_with(|| a.cmp(b)));
    found.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// Values with their weights, ascending, one entry per value. Those of one group are in order already.
fn weighted(counts: &[ValueCount]) -> Vec<(u32, f64)> {
    let mut weights: Vec<(u32, f64)> = counts.iter().map(|count| (count.value, count.weight)).collect();
    weights.sort_by_key(|(value, _)| *value);
    weights.dedup_by(|next, known| {
        let is_same = next.0 == known.0;
        if is_same {
            known.1 += next.1;
        }
        is_same
    });
    weights
}

fn tool_costs(planned: &LogPart<'_>, guide: &EventGuide<'_>, bytes: &[ValueCount]) -> Vec<ToolCosts> {
    let log = planned.log;
    let mut tools: BTreeMap<Sym, ToolCosts> = BTreeMap::new();
    for counts in bytes.chunk_by(|a, b| a.group == b.group) {
        let sizes = weighted(counts);
        let (tool, key) = guide.names(log.names.text(counts[0].group));
        let size = |q: f64| quantile(&sizes, q).unwrap_or_default();
        let costs = ToolCosts {
            tool,
            key,
            events: counts.iter().map(|count| count.events).sum(),
            calls: sizes.iter().map(|(_, weight)| weight).sum(),
            bytes_p50: size(0.5),
            bytes_p85: size(0.85),
            bytes_p99: size(0.99),
            ..ToolCosts::default()
        };
        tools.insert(counts[0].group, costs);
    }
    let done = if guide.is_foreseen { &log.events[..] } else { &[] };
    let foreseen = done.iter().chain(&log.planned).filter(|event| event.plan.is_foreseen());
    for event in foreseen.filter(|event| planned.has(event.session)) {
        let (tool, key) = guide.names(log.names.text(event.tool));
        let unseen = || ToolCosts { tool, key, ..ToolCosts::default() };
        add_plan(tools.entry(event.tool).or_insert_with(unseen), event, guide.bytes_per_token);
    }
    let mut tools: Vec<ToolCosts> = tools.into_values().collect();
    tools.sort_by(|a, b| a.tool.cmp(&b.tool));
    tools
}

/// Takes in what the planner foresaw.
fn add_plan(costs: &mut ToolCosts, event: &RecordedEvent, bytes_per_token: u32) {
    let (plan, unrecorded) = (&event.plan, event.weight - 1.0);
    let also = |is: bool| if is { unrecorded } else { 0.0 };
    if plan.predicted > 0 {
        let is_overrun = plan.is_overrun(foreseeable_tokens(event.bytes.into(), bytes_per_token));
        costs.predictions += 1;
        costs.overruns += u64::from(is_overrun);
        costs.unrecorded +=
            UnrecordedPlans { predictions: unrecorded, overruns: also(is_overrun), ..UnrecordedPlans::default() };
    }
    if plan.prefetched {
        let (is_judged, is_cited) = (plan.cited.is_some(), plan.cited == Some(true));
        costs.prefetches += 1;
        costs.prefetches_judged += u64::from(is_judged);
        costs.prefetches_cited += u64::from(is_cited);
        let (is_raced, is_won) = (plan.race.is_some(), plan.race == Some(RaceWord::Won));
        costs.prefetches_raced += u64::from(is_raced);
        costs.prefetches_won += u64::from(is_won);
        let (judged, cited) = (also(is_judged), also(is_cited));
        let (raced, won) = (also(is_raced), also(is_won));
        costs.unrecorded += UnrecordedPlans { judged, cited, raced, won, ..UnrecordedPlans::default() };
    }
}

fn profile(sums: &EventSums, guide: &EventGuide<'_>, bytes: &[ValueCount]) -> EventProfile {
    let EventSums { endpoints, contexts, .. } = sums;
    let mut tokens = LayerTokens::default();
    endpoints.iter().for_each(|sum| tokens.absorb(&layer_tokens(sum)));
    let depths = sums.depths.rows();
    let mut variants: BTreeMap<&'static str, u64> = BTreeMap::new();
    let used = || guide.sessions.iter().filter(|session| session.calls > 0);
    used().for_each(|session| *variants.entry(class_of(session).into_str()).or_default() += 1);
    EventProfile {
        events: contexts.events,
        calls: endpoints.iter().map(|sum| sum.weight * sum.events as f64).sum(),
        bytes_p25: quantile(&weighted(bytes), 0.25),
        nested: depths.iter().map(|count| count.events).sum(),
        nested_depth_p95: quantile(&weighted(&depths), 0.95),
        tokens,
        span_ms: (contexts.events > 0).then_some((contexts.first_ms, contexts.last_ms)),
        contexts: contexts.contexts,
        partitions: contexts.partitions,
        compactions: guide.sessions.iter().map(|session| session.compactions).sum(),
        sessions: used().count() as u64,
        agent_variants: variants.into_iter().map(|(name, count)| (name.to_owned(), count)).collect(),
    }
}

/// How a session was worked in.
pub fn class_of(session: &SessionUse) -> AgentClass {
    classify_agent(session.calls, session.read_calls, session.compactions)
}

/// The contexts of sessions, and when they took place.
#[derive(Clone, Copy, Debug)]
struct ContextSums {
    events: u64,
    contexts: u64,
    partitions: u64,
    first_ms: Millis,
    last_ms: Millis,
}

impl Default for ContextSums {
    fn default() -> Self {
        Self { events: 0, contexts: 0, partitions: 0, first_ms: Millis::MAX, last_ms: Millis::MIN }
    }
}

impl ContextSums {
    fn of(session: &[RecordedEvent]) -> Self {
        let mut of = Self { events: session.len() as u64, ..Self::default() };
        for chain in session.chunk_by(|a, b| a.chain == b.chain) {
            of.contexts += 1;
            of.partitions += chain.chunk_by(|a, b| a.partition == b.partition).count() as u64;
        }
        for event in session {
            of.first_ms = of.first_ms.min(event.ts);
            of.last_ms = of.last_ms.max(event.ts);
        }
        of
    }

    fn plus(self, other: Self) -> Self {
        Self {
            events: self.events + other.events,
            contexts: self.contexts + other.contexts,
            partitions: self.partitions + other.partitions,
            first_ms: self.first_ms.min(other.first_ms),
            last_ms: self.last_ms.max(other.last_ms),
        }
    }
}
