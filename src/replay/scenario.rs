//! A configuration resolved for one history: what holds for each endpoint and each session, as numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::base::body_shape::BodyShape;
use crate::base::tokenizer::Counting;
use crate::facts::body_facts::{BodyFacts, Encoding};
use crate::facts::encode::{self, FormatFamily};
use crate::replay::layers::exact_dedup::DedupCache;
use crate::replay::reach::{Reach, WithinReach};
use crate::replay::tape::{Endpoint, Response, SessionProfile, Tape, TapeEntry, ToolKind};
use crate::settings::{Settings, ShapeThresholds, Verbosity};

/// The hint type of near-references in `[hints.types]`.
const NEAR_REF: &str = "near_ref";
/// The router formats that the published name stands for: the inner table first, then the general deep encoding.
const DEEP: &str = "deep_mckp";

/// What is varied beside the configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct ReplayOptions {
    /// Whether formats may be used that only a later pipeline knows.
    pub extended: bool,
    /// Whether edits and `invalidates` drop cached answers. Switched off only to see what they cost.
    pub invalidate: bool,
    /// Counts bodies for every session in place of its profile, where their tokens were counted before.
    pub counting: Option<Counting>,
}

impl ReplayOptions {
    /// What is varied in one arm: the published formats, or the extended ones besides.
    pub fn arm(extended: bool) -> Self {
        Self { extended, invalidate: true, counting: None }
    }
}

/// What holds for an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointPolicy {
    /// Whether L0 acts on it.
    pub dedup: bool,
    /// Smaller bodies are passed through.
    pub body_bytes_min: u32,
    /// Format of L1, by number.
    pub template: Option<u8>,
    /// Whether a call changes a file: cached reads of it are stale then.
    pub mutates_files: bool,
    /// Number of its tool.
    tool: u32,
    /// Tools whose cached answers a call makes stale, by number.
    pub invalidates: BTreeSet<u32>,
    /// What whoever runs the pipeline can do with its answers.
    pub reached: WithinReach,
}

impl EndpointPolicy {
    /// Whether a call makes anything stale.
    pub(super) fn makes_stale(&self) -> bool {
        self.mutates_files || !self.invalidates.is_empty()
    }

    /// Whether a call makes the same stale under another policy.
    pub(super) fn makes_stale_like(&self, other: &Self) -> bool {
        self.mutates_files == other.mutates_files && self.invalidates == other.invalidates
    }

    /// Whether its answers are stale behind a call of another endpoint.
    pub(super) fn is_stale_behind(&self, call: &Self) -> bool {
        call.invalidates.contains(&self.tool)
    }

    /// Whether L0 treats the answers otherwise than under another policy. What whoever runs the pipeline misses, nobody treats.
    pub(super) fn is_unlike(&self, other: &Self) -> bool {
        let alike = |policy: &Self| (policy.dedup, policy.body_bytes_min, policy.reached);
        (self.reached != WithinReach::Misses || other.reached != WithinReach::Misses)
            && (alike(self) != alike(other) || !self.makes_stale_like(other))
    }

    /// Whether the layers behind L0 treat the answers alike.
    pub(super) fn is_alike_behind(&self, other: &Self) -> bool {
        let is_left = |policy: &Self| policy.reached != WithinReach::Changes;
        self.template == other.template || is_left(self) && is_left(other)
    }
}

/// What holds for a session.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionPolicy {
    /// How tokens of bodies are counted.
    pub counting: Counting,
    /// How those of hints are.
    pub hint_counting: Counting,
    /// Recursion depth of the deep formats.
    pub depth: u8,
    /// How many near-references may be shown; 0 switches them off.
    pub near_refs_max: u32,
}

/// A resolved configuration.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Size of the cache of one context.
    pub lru_size: usize,
    /// Wording of references.
    pub verbosity: Verbosity,
    pub endpoints: Vec<EndpointPolicy>,
    /// By profile of sessions, as [`crate::replay::tape::SessionProfiles`] numbers them.
    pub(super) profiles: Vec<SessionPolicy>,
    profile_of: Arc<[u32]>,
    /// Whether whoever runs the pipeline may change previews.
    pub previews: bool,
    /// See [`ReplayOptions`].
    pub options: ReplayOptions,
    thresholds: ShapeThresholds,
    /// Formats that the router may choose, by number.
    router: Vec<Routed>,
    csv: u8,
    kv: u8,
}

/// When the router may choose a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Routed {
    Never,
    Published,
    Extended,
}

impl Scenario {
    /// Resolves a configuration for a history.
    pub fn new(settings: &Settings, tape: &Tape, options: ReplayOptions) -> Self {
        Self {
            lru_size: settings.shared_lru_size(),
            verbosity: settings.dedup.hint_verbosity,
            endpoints: endpoint_policies(settings, tape),
            profiles: profile_policies(settings, tape, options.counting),
            profile_of: Arc::clone(&tape.sessions.profile_of),
            thresholds: settings.mckp.shape_thresholds.clone(),
            router: router(settings, options.extended),
            previews: true,
            csv: number_of("csv"),
            kv: number_of("kv"),
            options,
        }
    }

    /// The same configuration with other options.
    #[must_use]
    pub fn with_options(&self, settings: &Settings, options: ReplayOptions) -> Self {
        Self { router: router(settings, options.extended), options, ..self.clone() }
    }

    /// The same configuration, run by somebody who cannot change everything.
    #[must_use]
    pub fn within(&self, reach: &Reach, tape: &Tape) -> Self {
        let mut scenario = Self { previews: reach.previews, ..self.clone() };
        for (policy, endpoint) in scenario.endpoints.iter_mut().zip(&tape.endpoints) {
            policy.reached = reach.of(&endpoint.tool);
        }
        scenario
    }

    /// Whether whoever runs the pipeline sees a response.
    pub fn meets(&self, response: &Response) -> bool {
        self.endpoints[response.endpoint as usize].reached != WithinReach::Misses
    }

    /// What holds for the session of a response.
    pub fn session(&self, response: &Response) -> &SessionPolicy {
        &self.profiles[self.profile_of[response.session as usize] as usize]
    }

    /// The sessions for which something else holds in the other, in order.
    pub(super) fn sessions_unlike(&self, other: &Self) -> Vec<u32> {
        let differs: Vec<bool> = self.profiles.iter().zip(&other.profiles).map(|(own, other)| own != other).collect();
        if !differs.contains(&true) {
            return Vec::new();
        }
        let sessions = (0..).zip(&*self.profile_of).filter(|(_, profile)| differs[**profile as usize]);
        sessions.map(|(session, _)| session).collect()
    }

    /// Whether a response may be changed.
    pub fn reaches(&self, response: &Response) -> bool {
        let policy = &self.endpoints[response.endpoint as usize];
        policy.reached == WithinReach::Changes && (self.previews || !response.body_at_hand.preview)
    }

    /// Drops what a call makes stale, before anything else is decided about it.
    pub(super) fn drop_stale(&self, tape: &Tape, call: &Response, cache: &mut DedupCache) {
        let policy = &self.endpoints[call.endpoint as usize];
        if policy.reached == WithinReach::Misses {
            return;
        }
        if policy.mutates_files && call.path.is_some() {
            cache.drop_if(|entry| tape.is_read_of(entry.response, call.path));
        }
        self.drop_invalidated(tape, call, cache);
    }

    /// Drops the answers of the tools that a call makes stale.
    pub(super) fn drop_invalidated(&self, tape: &Tape, call: &Response, cache: &mut DedupCache) {
        let policy = |response: &Response| &self.endpoints[response.endpoint as usize];
        if !policy(call).invalidates.is_empty() {
            cache.drop_if(|entry| policy(&tape.responses[entry.response as usize]).is_stale_behind(policy(call)));
        }
    }

    /// Tokens of the answers that may be changed.
    pub fn tokens_reached(&self, tape: &Tape) -> u64 {
        let answers = tape.responses.iter().filter(|response| response.outcome == TapeEntry::Answer);
        let reached = answers.filter(|response| self.reaches(response));
        reached.map(|one| self.session(one).counting.tokens(&one.body_at_hand.raw)).sum()
    }

    /// Whether the same holds in both, apart from what is said for single endpoints and sessions.
    pub fn is_alike_for_all(&self, other: &Self) -> bool {
        self.lru_size == other.lru_size && self.encodes_like(other)
    }

    /// The same, whatever the size of the cache.
    fn encodes_like(&self, other: &Self) -> bool {
        self.verbosity == other.verbosity
            && self.previews == other.previews
            && self.options == other.options
            && self.thresholds == other.thresholds
            && self.router == other.router
    }

    /// Whether the layers behind L0 answer the same in both.
    pub(super) fn answers_like(&self, other: &Self) -> bool {
        let mut policies = self.endpoints.iter().zip(&other.endpoints);
        self.is_alike_behind(other) && policies.all(|(policy, other)| policy.is_alike_behind(other))
    }

    /// The same, apart from what is said for single endpoints.
    pub(super) fn is_alike_behind(&self, other: &Self) -> bool {
        self.encodes_like(other) && self.profiles == other.profiles
    }

    /// Whether the same holds in both.
    pub fn is_same(&self, other: &Self) -> bool {
        self.is_alike_for_all(other) && self.endpoints == other.endpoints && self.profiles == other.profiles
    }

    /// How tokens are counted, by name, with the number of sessions that have any text.
    pub fn counters(&self, tape: &Tape) -> BTreeMap<String, u64> {
        let mut has_text = vec![false; self.profile_of.len()];
        for response in tape.responses.iter().filter(|response| response.body != u32::MAX) {
            has_text[response.session as usize] = true;
        }
        let mut counters = BTreeMap::new();
        for (&profile, _) in self.profile_of.iter().zip(has_text).filter(|(_, has_text)| *has_text) {
            *counters.entry(self.profiles[profile as usize].counting.name()).or_default() += 1;
        }
        counters
    }

    /// How tokens are counted, in words.
    pub fn counted_by(&self, tape: &Tape) -> String {
        self.counters(tape).into_keys().collect::<Vec<_>>().join(", ")
    }

    /// The encoding of L1 for an endpoint, if its template applies to the body.
    pub fn template<'t>(&self, tape: &'t Tape, response: &Response) -> Option<&'t Encoding> {
        let format = self.endpoints[response.endpoint as usize].template?;
        let depth = self.session(response).depth;
        let rows = tape.encodings_of(response).iter().filter(|row| row.format == format && row.depth <= depth);
        rows.max_by_key(|row| row.depth).filter(|row| row.kept.suits(response.body_at_hand.showing))
    }

    /// The cheapest encoding that the router may choose for a body, with its tokens.
    pub fn route<'t>(&self, tape: &'t Tape, response: &Response) -> Option<(&'t Encoding, u64)> {
        let policy = self.session(response);
        let encodings = tape.encodings_of(response);
        let mut best: Option<(&Encoding, u64)> = None;
        for (place, encoding) in encodings.iter().enumerate() {
            let allowed = match self.router[encoding.format as usize] {
                Routed::Never => false,
                Routed::Published => self.fits(encoding.format, tape.facts_of(response)),
                Routed::Extended => true,
            };
            // Of a format that depends on the depth, the deepest row that is not too deep holds; rows stand in order.
            let next = encodings.get(place + 1);
            let deeper = |next: &Encoding| next.format == encoding.format && next.depth <= policy.depth;
            let quotable = encoding.kept.suits(response.body_at_hand.showing);
            if !allowed || !quotable || encoding.depth > policy.depth || next.is_some_and(deeper) {
                continue;
            }
            let tokens = policy.counting.tokens(&encoding.size);
            if best.is_none_or(|(_, least)| tokens < least) {
                best = Some((encoding, tokens));
            }
        }
        best
    }

    /// The router table: which published format suits which shape from which size on.
    fn fits(&self, format: u8, facts: &BodyFacts) -> bool {
        let (thresholds, measures) = (&self.thresholds, &facts.forms.measures);
        match BodyShape::from_number(facts.shape) {
            BodyShape::MarkdownTable => measures.columns as usize >= thresholds.markdown_table_min_cols,
            BodyShape::ArrayOfObjects if format == self.csv => {
                measures.items as usize >= thresholds.array_of_objects_min_items
                    && f64::from(measures.key_stability) >= thresholds.array_of_objects_min_key_stability
            }
            BodyShape::FlatObject if format == self.kv => measures.fields as usize >= thresholds.flat_object_min_fields,
            BodyShape::ArrayOfObjects | BodyShape::FlatObject | BodyShape::NestedObject => true,
            _ => false,
        }
    }
}

/// The number of a format; that of none for a name that nobody knows.
fn number_of(name: &str) -> u8 {
    encode::find(name).map_or(u8::MAX, |(number, _)| number)
}

fn router(settings: &Settings, extended: bool) -> Vec<Routed> {
    let enabled = &settings.mckp.formats_enabled;
    let deep = enabled.iter().any(|name| name == DEEP);
    let named: BTreeSet<&str> =
        enabled.iter().filter_map(|name| encode::find(name)).map(|(_, format)| format.id).collect();
    let listed = |id: &str| named.contains(id) || deep && encode::is_deep(id);
    let routed = |format: &encode::Format| match format.family {
        FormatFamily::Extended if extended || listed(format.id) => Routed::Extended,
        FormatFamily::Published if listed(format.id) => Routed::Published,
        FormatFamily::Baseline | FormatFamily::Extended | FormatFamily::Published => Routed::Never,
    };
    encode::REGISTER.iter().map(routed).collect()
}

/// Tools with their numbers.
type ToolNumbers<'t> = BTreeMap<&'t str, u32>;

fn endpoint_policies(settings: &Settings, tape: &Tape) -> Vec<EndpointPolicy> {
    let tools: ToolNumbers<'_> = (0..).zip(&tape.endpoints).map(|(number, one)| (one.tool.as_str(), number)).collect();
    tape.endpoints.iter().map(|endpoint| endpoint_policy(settings, &tools, endpoint)).collect()
}

fn endpoint_policy(settings: &Settings, tools: &ToolNumbers<'_>, endpoint: &Endpoint) -> EndpointPolicy {
    let keys = endpoint.keys();
    let own = || keys.iter().filter_map(|key| settings.endpoint_overrides.get(key));
    let switched = keys.iter().find_map(|key| settings.dedup.enabled_per_endpoint.get(key).copied());
    let template = keys.iter().find_map(|key| settings.preferred_format_for(key));
    let is_active = |number: u8| settings.templates.active.iter().any(|name| number_of(name) == number);
    let template = template.map(number_of).filter(|number| *number != u8::MAX && is_active(*number));
    let model = settings.tool_model_for(&endpoint.tool, endpoint.shipped.as_ref());
    let stale = model.into_iter().flat_map(|model| &model.invalidates);
    EndpointPolicy {
        dedup: own().find_map(|own| own.dedup_enabled).or(switched).unwrap_or(true),
        body_bytes_min: u32::try_from(
            own().find_map(|own| own.min_body_chars).unwrap_or(settings.dedup.min_body_chars),
        )
        .unwrap_or(u32::MAX),
        template,
        mutates_files: endpoint.kind == ToolKind::FileMutate,
        tool: tools[endpoint.tool.as_str()],
        invalidates: stale.filter_map(|tool| tools.get(tool.as_str()).copied()).collect(),
        reached: WithinReach::Changes,
    }
}

fn profile_policies(settings: &Settings, tape: &Tape, counting: Option<Counting>) -> Vec<SessionPolicy> {
    let policy_of = |profile: &SessionProfile| {
        let SessionProfile { class, model } = profile;
        let tokenizer = settings.tokenizer_for(Some(model.as_str()).filter(|model| !model.is_empty()));
        let agent = settings.agent_variant_for(*class);
        let near = settings.dedup.near_ref_enabled || agent.near_ref_enabled;
        let allowed = settings.hint_allowed(NEAR_REF, model);
        let cap = settings.hints.types.get(NEAR_REF).and_then(|policy| policy.max_per_session);
        let hint_counting = Counting::new(tokenizer.bpe, tokenizer.chars_per_token);
        SessionPolicy {
            counting: counting.unwrap_or(hint_counting),
            hint_counting,
            depth: u8::try_from(agent.mckp_recursion_depth).unwrap_or(u8::MAX),
            near_refs_max: if near && allowed { cap.unwrap_or(u32::MAX) } else { 0 },
        }
    };
    tape.sessions.profiles.iter().map(policy_of).collect()
}
