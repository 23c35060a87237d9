//! From counts to links: what is too rare, could be chance, passes backwards as well, or is explained by a better list; and a
//! link in the words of a configuration: one name for what to take, and one argument.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use crate::base::names::Sym;
use crate::base::stats::{Share, wilson};
use crate::frames::projection::{Hold, MinedProjection, Spelling};
use crate::logs::values::CallValues;
use crate::mine::projections::chance::Binomial;
use crate::mine::projections::value_flows::{ReadChain, ValueFlow, ValueUse};
use crate::mine::projections::{ByValue, LinkKey, Thresholds, ToldHistory};

/// What was counted about one combination.
#[derive(Default)]
pub(super) struct Combination {
    opportunities: u64,
    pub hits: Vec<Hit>,
    /// Expected hits.
    chance: f64,
    /// By session: hits, and the probability of none.
    sessions: BTreeMap<u32, (u64, f64)>,
    values: ByValue<u64>,
    /// Values by chain that passed, and those that passed backwards.
    forward: BTreeSet<(usize, u64)>,
    pub backward: BTreeSet<(usize, u64)>,
    /// Hits whose call has no other argument.
    sole: u64,
    /// New values in all lists.
    listed: u64,
}

/// An answer whose list was used.
pub(super) struct Hit {
    pub answer: usize,
    session: u32,
    /// Of the first value used, among those that were new; 0 for the first.
    rank: usize,
    pub values: Vec<u64>,
}

impl Combination {
    /// Counts one opportunity. `new` are the values of the list that had not been used before.
    pub fn add(
        &mut self,
        chain: &ReadChain,
        flow: &ValueFlow,
        uses: &[ValueUse],
        new: &[u64],
        chance: f64,
        values: &CallValues,
    ) {
        self.opportunities += 1;
        self.chance += chance;
        self.listed += new.len() as u64;
        let session = self.sessions.entry(chain.session).or_insert((0, 1.0));
        session.1 *= 1.0 - chance;
        let hits = uses.iter().filter_map(|used| Some((new.iter().position(|value| *value == used.value)?, *used)));
        let hits: Vec<(usize, ValueUse)> = hits.collect();
        let Some(&(rank, first)) = hits.iter().min() else { return };
        session.0 += 1;
        let mut used: Vec<u64> = hits.iter().map(|(_, used)| used.value).collect();
        used.dedup();
        for value in &used {
            *self.values.entry(*value).or_default() += 1;
            self.forward.insert((chain.index, *value));
        }
        self.sole += u64::from(values.input(first.call).is_some_and(|input| input.leaves == 1));
        self.hits.push(Hit { answer: flow.answer, session: chain.session, rank, values: used });
    }

    fn within(&self, rank: usize) -> u64 {
        self.hits.iter().filter(|hit| hit.rank < rank).count() as u64
    }

    fn sessions_hit(&self) -> u64 {
        self.sessions.values().filter(|(hits, _)| *hits > 0).count() as u64
    }
}

/// A combination on its way to a verdict.
struct UntestedProjection {
    cell: Combination,
    row: MinedProjection,
    key: LinkKey,
}

/// Judges what was counted.
pub(super) fn judge(
    told: ToldHistory<'_>,
    thresholds: &Thresholds,
    cells: BTreeMap<LinkKey, Combination>,
) -> Vec<MinedProjection> {
    let trials = cells.values().map(|cell| cell.opportunities.max((cell.forward.len() + cell.backward.len()) as u64));
    let binomial = Binomial::new(trials.max().unwrap_or_default());
    let constant = constant_lists(told, thresholds);
    let candidate = |(key, cell): (LinkKey, Combination)| {
        let mut candidate = UntestedProjection::new(told, thresholds, &binomial, key, cell);
        candidate.row.held = candidate.hold(thresholds, &binomial, constant.contains(&(key.from, key.extractor)));
        candidate
    };
    let mut candidates: Vec<UntestedProjection> = cells.into_iter().map(candidate).collect();
    // Order by names, not by symbols, so that ties do not depend on the order of files.
    candidates.sort_by(|a, b| place(&a.row).cmp(&place(&b.row)));
    hold_insignificant(&mut candidates, thresholds);
    explain_away(&mut candidates, thresholds);
    for candidate in candidates.iter_mut().filter(|candidate| candidate.row.held.is_none()) {
        candidate.row.spelling = candidate.spelling(told, thresholds);
    }
    let mut rows: Vec<MinedProjection> = candidates.into_iter().map(|candidate| candidate.row).collect();
    rows.sort_by_key(|row| row.held.is_some());
    rows
}

fn place(row: &MinedProjection) -> (&str, &str, &str, &str) {
    (&row.from, &row.to, &row.argument, &row.extractor)
}

/// The larger of the tails by session and by answer.
fn p_value(thresholds: &Thresholds, binomial: &Binomial, cell: &Combination) -> f64 {
    let sessions = cell.sessions.len() as u64;
    let mean = cell.sessions.values().map(|(_, none)| 1.0 - none).sum::<f64>() / sessions as f64;
    // Half a hit more in two more trials: what was never seen is not impossible.
    let least = |trials: u64| 0.5 / (trials as f64 + 2.0);
    let by_session =
        binomial.at_least(cell.sessions_hit(), sessions, mean.max(least(sessions)).max(thresholds.chance_floor));
    let answers = cell.opportunities;
    let by_answer =
        binomial.at_least(cell.hits.len() as u64, answers, (cell.chance / answers as f64).max(least(answers)));
    by_session.max(by_answer)
}

impl UntestedProjection {
    fn new(
        told: ToldHistory<'_>,
        thresholds: &Thresholds,
        binomial: &Binomial,
        key: LinkKey,
        cell: Combination,
    ) -> Self {
        let row = MinedProjection {
            from: told.tools.text(key.from).to_owned(),
            to: told.tools.text(key.to).to_owned(),
            argument: told.values.names.text(key.argument).to_owned(),
            extractor: told.values.names.text(key.extractor).to_owned(),
            opportunities: cell.opportunities,
            hits: cell.hits.len() as u64,
            top1: cell.within(1),
            top3: cell.within(3),
            chance: cell.chance,
            sessions_seen: cell.sessions.len() as u64,
            sessions: cell.sessions_hit(),
            values: cell.values.len() as u64,
            forward: cell.forward.difference(&cell.backward).count() as u64,
            reversed: cell.backward.difference(&cell.forward).count() as u64,
            sole: cell.sole,
            p: p_value(thresholds, binomial, &cell),
            held: None,
            spelling: None,
        };
        Self { cell, row, key }
    }

    /// Why it is no link, as far as it can be told alone.
    fn hold(&self, thresholds: &Thresholds, binomial: &Binomial, is_constant: bool) -> Option<Hold> {
        let row = &self.row;
        let most = self.cell.values.values().max().copied().unwrap_or_default() as f64;
        let all = self.cell.values.values().sum::<u64>() as f64;
        let lower = Share::new(row.hits, row.opportunities).lower;
        let (_, chance_upper) = wilson(row.chance, row.opportunities as f64);
        let both = row.forward + row.reversed;
        let reasons = [
            (row.sessions < thresholds.sessions_min, Hold::Sessions),
            (lower <= chance_upper || (row.hits as f64) < thresholds.lift_min * row.chance, Hold::Chance),
            (lower < thresholds.lower_end_min, Hold::Rate),
            (row.values < thresholds.distinct_min || most > thresholds.top_value_share_max * all, Hold::Values),
            (is_constant, Hold::Constant),
            (binomial.at_least(row.forward, both, 0.5) > thresholds.reversal_p_max, Hold::Reversal),
        ];
        reasons.into_iter().find(|(holds, _)| *holds).map(|(_, hold)| hold)
    }

    /// How the link is written; none if its argument is nested, which a configuration cannot say.
    fn spelling(&self, told: ToldHistory<'_>, thresholds: &Thresholds) -> Option<Spelling> {
        let MinedProjection { from, argument, extractor, .. } = &self.row;
        if argument.contains(['.', '[', '*']) {
            return None;
        }
        let projection = match extractor.strip_prefix('$') {
            Some(_) => self.key_or_path(told, thresholds)?,
            None if extractor == "path" => thresholds.path_names.get(from).cloned().unwrap_or("path".to_owned()),
            None => extractor.clone(),
        };
        Some(Spelling { projection, projection_arg: argument.clone() })
    }

    /// The bare key where a walk by it finds as much as the path does, since the published runtime walks; else the path.
    fn key_or_path(&self, told: ToldHistory<'_>, thresholds: &Thresholds) -> Option<String> {
        let extractor = &self.row.extractor;
        let key = last_key(extractor)?;
        let calls = told.history.calls_of_chains().filter(|(_, call)| call.tool == self.key.from);
        let extractors: BTreeSet<Sym> =
            calls.flat_map(|(call, _)| told.values.lists(call)).map(|(list, _)| list.extractor).collect();
        let paths = extractors.into_iter().map(|sym| told.values.names.text(sym));
        if paths.filter(|path| last_key(path) == Some(key)).count() == 1 {
            return Some(key.to_owned());
        }
        let count = |taken: &dyn Fn(usize) -> Vec<u64>| {
            let is_taken = |hit: &&Hit| taken(hit.answer).iter().any(|value| hit.values.contains(value));
            self.cell.hits.iter().filter(is_taken).count() as f64
        };
        let by_path = count(&|answer| walk(told, answer, |path| path == extractor));
        let by_key = count(&|answer| walk(told, answer, |path| last_key(path) == Some(key)));
        Some(if by_key >= thresholds.bare_share_min * by_path { key.to_owned() } else { extractor.clone() })
    }
}

/// Benjamini and Hochberg (1995) over all that have enough hits and sessions.
fn hold_insignificant(candidates: &mut [UntestedProjection], thresholds: &Thresholds) {
    let mut tests: Vec<(f64, usize)> = candidates
        .iter()
        .enumerate()
        .filter(|(_, candidate)| candidate.row.held != Some(Hold::Sessions))
        .map(|(index, candidate)| (candidate.row.p, index))
        .collect();
    tests.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let count = tests.len() as f64;
    let passes = |(rank, (p, _)): &(usize, &(f64, usize))| *p <= thresholds.fdr * (*rank as f64 + 1.0) / count;
    let passed = tests.iter().enumerate().filter(passes).map(|(rank, _)| rank + 1).max().unwrap_or_default();
    for (_, index) in &tests[passed..] {
        candidates[*index].row.held = Some(Hold::Significance);
    }
}

/// Lists of a tool that are one and the same single value throughout nearly every chain.
fn constant_lists(told: ToldHistory<'_>, thresholds: &Thresholds) -> BTreeSet<(Sym, Sym)> {
    /// Lists, the only value so far, whether it is the only one.
    type Seen = (u64, u64, bool);
    let mut chains: BTreeMap<(Sym, Sym), (u64, u64)> = BTreeMap::new();
    for chain in &told.history.chains {
        let mut seen: BTreeMap<(Sym, Sym), Seen> = BTreeMap::new();
        for call in chain.calls.clone() {
            for (list, values) in told.values.lists(call) {
                let value = values.first().map_or(0, |listed| listed.value);
                let key = (told.history.calls[call].tool, list.extractor);
                let (lists, first, same) = seen.entry(key).or_insert((0, value, true));
                *lists += 1;
                *same &= values.len() == 1 && value == *first;
            }
        }
        for (key, (_, _, same)) in seen.into_iter().filter(|(_, seen)| seen.0 >= thresholds.constant_lists_min) {
            let (all, constant) = chains.entry(key).or_default();
            *all += 1;
            *constant += u64::from(same);
        }
    }
    let is_constant = |(all, constant): (u64, u64)| {
        all >= thresholds.constant_chains_min && constant as f64 > thresholds.constant_share_max * all as f64
    };
    chains.into_iter().filter(|(_, counts)| is_constant(*counts)).map(|(key, _)| key).collect()
}

/// Of several lists that lead to one argument of one tool, keeps the best and those that explain enough beside it.
fn explain_away(candidates: &mut [UntestedProjection], thresholds: &Thresholds) {
    let mut groups: BTreeMap<(Sym, Sym, Sym), Vec<usize>> = BTreeMap::new();
    for (index, candidate) in candidates.iter().enumerate().filter(|(_, candidate)| candidate.row.held.is_none()) {
        groups.entry((candidate.key.from, candidate.key.to, candidate.key.argument)).or_default().push(index);
    }
    for mut open in groups.into_values() {
        let mut explained: BTreeSet<usize> = BTreeSet::new();
        while !open.is_empty() {
            let best = best_list(candidates, &open, &explained, thresholds.equal_share_min);
            open.retain(|index| *index != best);
            let UntestedProjection { cell, row, .. } = &mut candidates[best];
            let fresh: Vec<&Hit> = cell.hits.iter().filter(|hit| !explained.contains(&hit.answer)).collect();
            let sessions: BTreeSet<u32> = fresh.iter().map(|hit| hit.session).collect();
            let count = fresh.len() as u64;
            let enough = count >= thresholds.hits_min
                && count as f64 >= thresholds.residual_share_min * cell.hits.len() as f64
                && sessions.len() as u64 >= thresholds.sessions_min;
            if enough || explained.is_empty() {
                explained.extend(cell.hits.iter().map(|hit| hit.answer));
            } else {
                row.held = Some(Hold::Explained);
            }
        }
    }
}

/// Of those with nearly the most hits that are not explained yet: JSON before text, then the shorter list.
fn best_list(
    candidates: &[UntestedProjection],
    open: &[usize],
    explained: &BTreeSet<usize>,
    equal_share_min: f64,
) -> usize {
    let fresh = |index: usize| {
        let hits = &candidates[index].cell.hits;
        hits.iter().filter(|hit| !explained.contains(&hit.answer)).count() as f64
    };
    let most = open.iter().map(|index| fresh(*index)).fold(0.0, f64::max);
    let best = open.iter().copied().filter(|index| fresh(*index) >= equal_share_min * most);
    let rank = |index: &usize| {
        let UntestedProjection { cell, row, .. } = &candidates[*index];
        let length = 1_000 * cell.listed / cell.opportunities.max(1);
        (Reverse(row.extractor.starts_with('$')), length, row.extractor.clone())
    };
    best.min_by_key(rank).expect("one of them has the most")
}

/// Values that the runtime takes (published: the planner projects at most three).
const TAKEN_MAX: usize = 3;

/// The first values of the lists chosen, taken in turn: in a list of objects, that is the order of the document.
fn walk(told: ToldHistory<'_>, answer: usize, chosen: impl Fn(&str) -> bool) -> Vec<u64> {
    let lists = told.values.lists(answer).filter(|(list, _)| chosen(told.values.names.text(list.extractor)));
    let lists: Vec<_> = lists.map(|(_, values)| values).collect();
    let turn = |index: usize| lists.iter().filter_map(move |values| values.get(index)).map(|listed| listed.value);
    (0..TAKEN_MAX).flat_map(turn).take(TAKEN_MAX).collect()
}

/// `$.data.issues[].id` ends with `id`; a path that ends with a key that was not kept ends with nothing.
fn last_key(path: &str) -> Option<&str> {
    let key = path.rsplit('.').next()?.trim_end_matches("[]");
    (path.starts_with("$") && !matches!(key, "$" | "*")).then_some(key)
}
