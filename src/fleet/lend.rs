//! What a team and a provider lend to somebody's own figures before the rules read them: endpoints, sizes of tools and
//! follow-ups, each by what is missing of one's own. What is lent are pseudo-observations beside one's own, so that every
//! threshold and interval of a rule sees them for what they are.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::body_shape::BodyShape;
use crate::base::names::Sym;
use crate::base::significance::Chance;
use crate::base::stats::{FollowUpCount, Share, ToolStats};
use crate::fleet::limits::{FleetLimits, week_named};
use crate::fleet::measure::{
    BYTES, CALLS, COLUMNS, DISTANCE, EDGE, ENDPOINT, INNER_FORMAT, OTHER, REPEATS, SHAPE, STEPS, SUPPORT, TOOL,
};
use crate::fleet::naming::FleetNaming;
use crate::fleet::sums::{Summed, summed};
use crate::frames::contribution::{CountSubject, Pool};
use crate::frames::fingerprint::{Fingerprint, Observed, ToolCosts};
use crate::logs::trace::Millis;
use crate::settings::finding::{Finding, Verdict};

/// A pool, weighted by age, under the names that its owner has for things.
#[derive(Default)]
pub struct Lender {
    subjects: BTreeMap<CountSubject, Summed>,
}

impl Lender {
    /// The pool as it counts now.
    pub fn new(pool: &Pool, now_ms: Millis, limits: &FleetLimits) -> Self {
        let weight = |week: &str| week_named(week).map_or(0.0, |week| limits.weight(week, now_ms));
        Self { subjects: summed(pool, weight) }
    }

    fn tool_steps(&self, name: &str) -> Option<&Summed> {
        self.subjects.get(&CountSubject { kind: TOOL.to_owned(), name: name.to_owned(), ..CountSubject::default() })
    }

    /// The endpoints that are meant, together.
    fn endpoints(&self, is_meant: impl Fn(&CountSubject) -> bool) -> Summed {
        let mut whole = Summed::default();
        let of = |(subject, _): &(&CountSubject, &Summed)| subject.kind == ENDPOINT && is_meant(subject);
        self.subjects.iter().filter(of).for_each(|(_, lent)| whole.absorb(lent));
        whole
    }

    /// An endpoint over all tools that have it, of which it may be told how often it repeats.
    fn endpoint(&self, name: &str) -> Option<Summed> {
        Some(self.endpoints(|subject| subject.name == name)).filter(|whole| whole.share(REPEATS).is_some())
    }

    /// All endpoints of a tool together.
    fn tool(&self, name: &str) -> Option<Summed> {
        Some(self.endpoints(|subject| subject.other == name)).filter(|whole| whole.number(CALLS).is_some())
    }

    fn names(&self, kind: &str) -> BTreeSet<&str> {
        self.subjects.keys().filter(|subject| subject.kind == kind).map(|subject| subject.name.as_str()).collect()
    }
}

/// Whose values are, by subject and kind; for the evidence.
#[derive(Debug, Default)]
pub struct Whose {
    values: BTreeMap<(&'static str, String), Shares>,
}

/// Who lends, and how things are called there.
pub struct Lenders {
    pub team: (Lender, FleetNaming),
    pub provider: (Lender, FleetNaming),
    pub limits: FleetLimits,
}

impl Lenders {
    /// Lends to what rules R1, R2 and R6 read.
    pub fn lend(&self, observed: &mut Observed) -> Whose {
        let mut whose = Whose::default();
        self.endpoints(&mut observed.endpoints, &mut whose);
        self.tools(&mut observed.tools, &mut whose);
        let own: BTreeMap<String, u64> =
            observed.tools.iter().filter_map(|tool| Some((tool.key.clone()?, tool.events))).collect();
        self.follow_ups(&mut observed.names, &mut observed.follow_ups, &own, &mut whose);
        whose
    }

    /// Lends to what rule T1 reads.
    pub fn lend_stats(
        &self,
        names: &mut Vec<String>,
        tools: &mut Vec<ToolStats>,
        follow_ups: &mut Vec<FollowUpCount>,
    ) -> Whose {
        let mut whose = Whose::default();
        let known: Vec<String> = tools.iter().map(|stats| names[stats.tool.0 as usize].clone()).collect();
        for name in self.unseen(TOOL, known.iter().map(String::as_str)) {
            let tool = symbol(names, &name);
            tools.push(ToolStats { tool, ..ToolStats::default() });
        }
        for stats in tools.iter_mut() {
            let name = names[stats.tool.0 as usize].clone();
            let own = [(stats.bytes_p50, 50.0), (stats.bytes_p99, 99.0)];
            let Some((shares, sizes)) = self.sizes(&name, stats.sized, own) else { continue };
            [stats.bytes_p50, stats.bytes_p99] = sizes;
            stats.calls += shares.lent();
            stats.ran += shares.lent();
            stats.sized += shares.lent();
            whose.values.insert((TOOL, name), shares);
        }
        tools.retain(|stats| stats.calls > 0);
        let own = BTreeMap::new();
        self.follow_ups(names, follow_ups, &own, &mut whose);
        whose
    }

    fn shares(
        &self,
        own: u64,
        [team, provider]: [&Option<Summed>; 2],
        observations: impl Fn(&Summed) -> Option<f64>,
    ) -> Shares {
        let has = |lent: &Option<Summed>| lent.as_ref().and_then(&observations).unwrap_or_default();
        let people = team.as_ref().map_or(0, |lent| lent.people_min);
        Shares::of(own, (has(team), people), has(provider), &self.limits)
    }

    /// Percentiles of the answers of a tool, one's own of `n` answers among them; none if nothing of it is lent.
    fn sizes<const N: usize>(&self, tool: &str, n: u64, own: [(u64, f64); N]) -> Option<(Shares, [u64; N])> {
        let of = |(lender, naming): &(Lender, FleetNaming)| lender.tool(&naming.of(tool));
        let (team, provider) = (of(&self.team), of(&self.provider));
        let shares = self.shares(n, [&team, &provider], |lent| lent.number(CALLS));
        let size = |(own, percent)| {
            let of = |lent: &Option<Summed>| lent.as_ref().and_then(|lent| lent.quantile(BYTES, percent));
            shares.size((n > 0).then_some(own), of(&team), of(&provider)).unwrap_or_default()
        };
        (shares.lent() > 0).then(|| (shares, own.map(size)))
    }

    /// Names that others have a subject of, that mean the same to everybody and that are not among the known.
    fn unseen<'n>(&self, kind: &str, known: impl Iterator<Item = &'n str>) -> Vec<String> {
        let known: BTreeSet<&str> = known.collect();
        let (team, naming) = &self.team;
        let new = team.names(kind).into_iter().filter(|name| naming.is_public(name) && !known.contains(name));
        new.map(str::to_owned).collect()
    }

    fn endpoints(&self, endpoints: &mut Vec<Fingerprint>, whose: &mut Whose) {
        for name in self.unseen(ENDPOINT, endpoints.iter().filter_map(|seen| seen.key.as_deref())) {
            endpoints.push(Fingerprint { endpoint: name.clone(), key: Some(name), ..Fingerprint::default() });
        }
        for seen in endpoints.iter_mut() {
            let Some(name) = seen.key.clone() else { continue };
            let of = |(lender, naming): &(Lender, FleetNaming)| lender.endpoint(&naming.of(&name));
            let (team, provider) = (of(&self.team), of(&self.provider));
            let shares = self.shares(seen.events, [&team, &provider], responses);
            // Where only a part was recorded, own events and responses differ, and rules ask for that.
            if shares.lent() > 0 && seen.calls == seen.events as f64 {
                let lent = [(team, shares.team), (provider, shares.provider)];
                for (lent, n) in lent.into_iter().filter_map(|(lent, n)| Some((lent?, n))).filter(|(_, n)| *n > 0) {
                    add(seen, &lent, n);
                }
                whose.values.insert((ENDPOINT, name), shares);
            }
        }
        endpoints.retain(|seen| seen.events > 0);
        endpoints.sort_by(|a, b| a.endpoint.cmp(&b.endpoint));
    }

    fn tools(&self, tools: &mut Vec<ToolCosts>, whose: &mut Whose) {
        for name in self.unseen(TOOL, tools.iter().filter_map(|seen| seen.key.as_deref())) {
            tools.push(ToolCosts { tool: name.clone(), key: Some(name), ..ToolCosts::default() });
        }
        for seen in tools.iter_mut() {
            let Some(name) = seen.key.clone() else { continue };
            let own = [(seen.bytes_p50, 50.0), (seen.bytes_p85, 85.0), (seen.bytes_p99, 99.0)];
            let Some((shares, sizes)) = self.sizes(&name, seen.events, own) else { continue };
            [seen.bytes_p50, seen.bytes_p85, seen.bytes_p99] = sizes;
            seen.calls += shares.lent() as f64;
            seen.events += shares.lent();
            whose.values.insert((TOOL, name), shares);
        }
        tools.retain(|seen| seen.events > 0 || seen.prefetches > 0 || seen.predictions > 0);
        tools.sort_by(|a, b| a.tool.cmp(&b.tool));
    }

    /// Lends steps of a tool with what followed them: the whole table of a lender, scaled to the observations it lends.
    fn follow_ups(
        &self,
        names: &mut Vec<String>,
        follow_ups: &mut Vec<FollowUpCount>,
        calls: &BTreeMap<String, u64>,
        whose: &mut Whose,
    ) {
        let mut known: BTreeMap<String, u64> = calls.clone();
        for edge in follow_ups.iter() {
            // Steps, where they are known: a tool is called more than once in some.
            known.insert(names[edge.from.0 as usize].clone(), edge.trials);
        }
        let live: BTreeSet<String> =
            known.keys().chain(names.iter()).filter(|name| !name.is_empty()).cloned().collect();
        let unseen = self.unseen(TOOL, live.iter().map(String::as_str));
        let live: Vec<String> = live.into_iter().chain(unseen).collect();
        let lenders = [LentEdges::of(&self.team, &live), LentEdges::of(&self.provider, &live)];
        // Before anything is lent: what one tool gets must not depend on which came before it.
        let own = Arrivals::of(names, follow_ups);
        for from in &live {
            let lent = |(lender, naming): &(Lender, FleetNaming)| lender.tool_steps(&naming.of(from)).cloned();
            let (team, provider) = (lent(&self.team), lent(&self.provider));
            let trials = known.get(from).copied().unwrap_or_default();
            let shares = self.shares(trials, [&team, &provider], |lent| lent.number(STEPS));
            if shares.lent() == 0 {
                continue;
            }
            let mut table = LentTable::of(from, names, follow_ups, &own);
            for (edges, n) in lenders.iter().zip([shares.team, shares.provider]) {
                table.add(edges, n as f64);
            }
            table.put(names, follow_ups, trials + shares.lent());
            whose.values.insert((EDGE, from.clone()), shares);
        }
        follow_ups.sort_by_key(|edge| (edge.from, edge.to, edge.lag));
    }
}

/// How often all steps met each tool at a lag, whatever came before.
#[derive(Default)]
struct Arrivals {
    steps: f64,
    by_tool: BTreeMap<(String, u32), f64>,
}

impl Arrivals {
    fn of(names: &[String], follow_ups: &[FollowUpCount]) -> Self {
        let trials: BTreeMap<u32, u64> = follow_ups.iter().map(|edge| (edge.from.0, edge.trials)).collect();
        let mut by_tool: BTreeMap<(String, u32), f64> = BTreeMap::new();
        for edge in follow_ups {
            *by_tool.entry((names[edge.to.0 as usize].clone(), edge.lag)).or_default() += edge.support as f64;
        }
        Self { steps: trials.into_values().sum::<u64>() as f64, by_tool }
    }
}

/// What follows what at a lender, under the names that one has for it.
#[derive(Default)]
struct LentEdges {
    /// By the earlier tool: its steps, and of them those that each tool follows, with the people on whom that stands.
    tools: BTreeMap<String, (f64, Vec<LentEdge>)>,
    arrivals: Arrivals,
}

/// The later tool, the lag, how often it followed, and the fewest people of whom that is told.
type LentEdge = (String, u32, f64, i64);

impl LentEdges {
    fn of((lender, naming): &(Lender, FleetNaming), live: &[String]) -> Self {
        let live: BTreeMap<String, &String> = live.iter().map(|name| (naming.of(name), name)).collect();
        let of_kind = |kind: &'static str| lender.subjects.iter().filter(move |(subject, _)| subject.kind == kind);
        let steps = |lent: &Summed| lent.number(STEPS).unwrap_or_default();
        let mut out = Self::default();
        for (subject, lent) in of_kind(TOOL) {
            out.arrivals.steps += steps(lent);
            if let Some(name) = live.get(&subject.name) {
                out.tools.insert((*name).clone(), (steps(lent), Vec::new()));
            }
        }
        for (subject, lent) in of_kind(EDGE) {
            let (Some(to), Some((support, whole))) = (live.get(&subject.other), lent.share(SUPPORT)) else { continue };
            if whole <= 0.0 {
                continue;
            }
            // Not every week tells of it: what it is of the steps of those that do, it is taken to be of all.
            let support = lender.tool_steps(&subject.name).map_or(0.0, steps) * (support / whole).clamp(0.0, 1.0);
            *out.arrivals.by_tool.entry(((*to).clone(), subject.lag)).or_default() += support;
            if let Some((_, edges)) = live.get(&subject.name).and_then(|from| out.tools.get_mut(*from)) {
                edges.push(((*to).clone(), subject.lag, support, lent.people_min));
            }
        }
        out
    }
}

/// What followed one tool: own counts, and lent ones beside them.
struct LentTable<'a> {
    from: String,
    edges: BTreeMap<(String, u32), LentCell>,
    /// All steps from which they come, each as much as it counts.
    sources: Vec<(f64, &'a Arrivals)>,
}

#[derive(Clone, Copy, Default)]
struct LentCell {
    support: f64,
    sessions: u64,
}

impl<'a> LentTable<'a> {
    /// Own counts of a tool, taken out of the list.
    fn of(from: &str, names: &[String], follow_ups: &mut Vec<FollowUpCount>, own: &'a Arrivals) -> Self {
        let here = follow_ups.extract_if(.., |edge| names[edge.from.0 as usize] == from);
        let edges = here.map(|edge| {
            let cell = LentCell { support: edge.support as f64, sessions: edge.sessions };
            ((names[edge.to.0 as usize].clone(), edge.lag), cell)
        });
        Self { from: from.to_owned(), edges: edges.collect(), sources: vec![(1.0, own)] }
    }

    /// Adds so many steps of a lender.
    fn add(&mut self, lent: &'a LentEdges, n: f64) {
        let Some((steps, edges)) = lent.tools.get(&self.from).filter(|(steps, _)| n > 0.0 && *steps > 0.0) else {
            return;
        };
        let factor = n / steps;
        self.sources.push((factor, &lent.arrivals));
        for (to, lag, support, people) in edges {
            let cell = self.edges.entry((to.clone(), *lag)).or_default();
            cell.support += factor * support;
            // A row stands on people, and each of them on a session at least.
            cell.sessions += people.unsigned_abs();
        }
    }

    /// Puts the table back, with so many steps of the tool.
    fn put(self, names: &mut Vec<String>, follow_ups: &mut Vec<FollowUpCount>, trials: u64) {
        let sum =
            |of: &dyn Fn(&Arrivals) -> f64| self.sources.iter().map(|(factor, all)| factor * of(all)).sum::<f64>();
        let from = symbol(names, &self.from);
        let steps = (sum(&|all| all.steps).round() as u64).max(trials);
        for (key, cell) in &self.edges {
            let support = (cell.support.round() as u64).min(trials);
            let arrivals = sum(&|all| all.by_tool.get(key).copied().unwrap_or_default());
            let arrivals = (arrivals.round() as u64).clamp(support, steps);
            if support > 0 {
                let (to, lag, sessions) = (symbol(names, &key.0), key.1, cell.sessions);
                let Share { lower, upper, .. } = Share::new(support, trials);
                let chance = of_mixing(trials as f64, arrivals as f64, steps as f64);
                follow_ups.push(FollowUpCount { from, to, lag, support, sessions, trials, lower, upper, chance });
            }
        }
    }
}

/// Responses of the weeks in which repeats are told.
fn responses(lent: &Summed) -> Option<f64> {
    lent.share(REPEATS).map(|(_, responses)| responses)
}

/// How often a step meets another if it does not matter what came before (hypergeometric): lent counts have no order.
fn of_mixing(trials: f64, arrivals: f64, steps: f64) -> Chance {
    let share = arrivals / steps.max(1.0);
    let left = (steps - trials).max(0.0) / (steps - 1.0).max(1.0);
    Chance { expected: trials * share, variance: trials * share * (1.0 - share) * left }
}

fn symbol(names: &mut Vec<String>, name: &str) -> Sym {
    let at = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    Sym(at as u32)
}

/// Adds so many observations of a lender to a fingerprint.
fn add(seen: &mut Fingerprint, lent: &Summed, n: u64) {
    let Some((repeated, calls)) = lent.share(REPEATS).filter(|(_, calls)| *calls > 0.0) else { return };
    let (own, more) = (seen.calls, n as f64);
    let weighted = |own_value: Option<f64>, own: f64, lent_value: Option<f64>| match (own_value, lent_value) {
        (Some(a), Some(b)) if own > 0.0 => Some((a * own + b * more) / (own + more)),
        (a, b) => b.or(a),
    };
    let repeats = more * (repeated / calls).clamp(0.0, 1.0);
    let by_repeats = Shares { own: seen.repeat_events, team: repeats.round() as u64, ..Shares::default() };
    seen.repeat_distance_p90 = by_repeats.size(seen.repeat_distance_p90, lent.quantile(DISTANCE, 90.0), None);
    seen.repeats += repeats;
    seen.bytes_mean = weighted(Some(seen.bytes_mean), own, lent.mean(BYTES)).unwrap_or_default();
    seen.columns_mean = weighted(seen.columns_mean, own, lent.mean(COLUMNS));
    if more > own {
        seen.inner_formats_top3 = formats(lent);
    }
    shapes(seen, own, &lent.bins(SHAPE), more);
    seen.calls += more;
    seen.events += n;
    seen.repeat_events = (seen.repeats.round() as u64).min(seen.events);
}

/// The three most frequent inner formats of a lender.
fn formats(lent: &Summed) -> Vec<String> {
    let mut bins = lent.bins(INNER_FORMAT);
    bins.retain(|(bin, count)| *bin != OTHER && *count > 0.0);
    let name =
        |bin: u32| crate::facts::inner_formats::InnerFormat::ALL.get(bin as usize).map(|format| format.into_str());
    bins.sort_by(|(a, x), (b, y)| y.total_cmp(x).then_with(|| name(*a).cmp(&name(*b))));
    bins.into_iter().filter_map(|(bin, _)| name(bin)).take(3).map(str::to_owned).collect()
}

/// Mixes the shapes of a lender in.
fn shapes(seen: &mut Fingerprint, own: f64, lent: &[(u32, f64)], more: f64) {
    let total: f64 = lent.iter().map(|(_, count)| count).sum();
    if total <= 0.0 {
        return;
    }
    let mut mix: BTreeMap<String, f64> =
        seen.shape_mix.iter().map(|(name, share)| (name.clone(), share * own)).collect();
    for (bin, count) in lent {
        let shape = u8::try_from(*bin).map(BodyShape::from_number).unwrap_or_default();
        *mix.entry(shape.into_str().to_owned()).or_default() += more * count / total;
    }
    seen.mix(mix.into_iter().map(|(name, count)| (name, count / (own + more))).collect());
}

impl Whose {
    /// Says of every finding whose observations it rests on.
    pub fn tell(&self, findings: &mut [Finding]) {
        for finding in findings {
            if let Some(shares) = self.of(finding) {
                let counts = std::mem::take(&mut finding.evidence.counts);
                finding.evidence.counts = format!("{}\n{counts}", shares.words());
            }
        }
    }

    /// Holds what rests on others where a replay of one's own logs shows no gain.
    pub fn hold_what_does_not_pay(&self, findings: &mut [Finding]) {
        for finding in findings {
            let Some(shares) = self.of(finding).filter(|shares| shares.lent() > shares.own) else { continue };
            let idle = finding.effect.is_some_and(|effect| effect.tokens < 0.5 && effect.host < 0.5);
            if idle && finding.proposed().is_some() {
                let words = shares.words();
                finding.verdict = Verdict::Hold(format!("it saves nothing on your own logs, and {words}"));
            }
        }
    }

    fn of(&self, finding: &Finding) -> Option<&Shares> {
        let is_link = finding.proposed().is_some_and(|delta| delta.key.leaf() == Some("follow_up"));
        let kind = match finding.rule {
            "R1" | "R2" => ENDPOINT,
            "R6" | "T1" if is_link => EDGE,
            "R6" | "T1" => TOOL,
            _ => return None,
        };
        self.values.get(&(kind, finding.subject.clone()))
    }
}

/// Observations behind a value, by whose they are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Shares {
    pub own: u64,
    /// Lent by the team.
    pub team: u64,
    /// Lent by a provider.
    pub provider: u64,
    /// The fewest people on whom a row of the team stands.
    pub people: i64,
}

impl Shares {
    /// What others lend to `own` observations, of what they have. They fill up to [`FleetLimits::enough`], or have
    /// [`FleetLimits::lent_max_pct`] of the whole where that is more, but never more than beside `enough` own ones: so the whole
    /// is never smaller with an own observation more, and own data wins where there is much of it. A provider fills at most
    /// [`FleetLimits::provider_max_pct`] of their part.
    pub fn of(own: u64, team: (f64, i64), provider: f64, limits: &FleetLimits) -> Self {
        let at_most = |n: u64| (n * limits.lent_max_pct) as f64 / (100 - limits.lent_max_pct) as f64;
        let missing = limits.enough.saturating_sub(own) as f64;
        let room = missing.max(at_most(own.min(limits.enough)).floor());
        let from_provider = (room * limits.provider_max_pct as f64 / 100.0).min(provider).floor();
        let from_team = (room - from_provider).min(team.0).floor();
        Self { own, team: from_team as u64, provider: from_provider as u64, people: team.1 }
    }

    /// All that others lend.
    pub fn lent(&self) -> u64 {
        self.team + self.provider
    }

    /// Whose they are, in words.
    pub fn words(&self) -> String {
        let mut words = format!("of {} observations {} are own", self.own + self.lent(), self.own);
        if self.team > 0 {
            words += &format!(", {} stand for the team ({} people or more)", self.team, self.people);
        }
        if self.provider > 0 {
            words += &format!(", {} for the provider", self.provider);
        }
        words
    }

    /// Own and lent values of one quantity as one: their geometric mean by observations, for sizes that span orders of
    /// magnitude.
    pub fn size(&self, own: Option<u64>, team: Option<u64>, provider: Option<u64>) -> Option<u64> {
        let parts = [(own, self.own), (team, self.team), (provider, self.provider)];
        let known = parts.into_iter().filter_map(|(value, n)| Some((value?, n as f64))).filter(|(_, n)| *n > 0.0);
        let (sum, weight) = known.fold((0.0, 0.0), |(sum, weight), (value, n)| {
            // One more, so that 0 has a logarithm; one less at the end.
            (sum + n * (value as f64).ln_1p(), weight + n)
        });
        if weight == 0.0 { own.or(team).or(provider) } else { Some((sum / weight).exp_m1().round() as u64) }
    }
}
