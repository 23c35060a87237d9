//! Histories and files to follow-up edges: what counts as "next", and the statistics of every pair.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::base::error::Result;
use crate::base::id::{Id, IdMap};
use crate::base::names::{Names, Sym};
use crate::base::significance::with_q;
use crate::frames::edge::{Activity, Concurrency, Edge, EdgeFrame, EdgeSum, EdgeSums, EdgeThresholds, Turns};
use crate::frames::input::Input;
use crate::logs::assemble::files_of_input;
use crate::logs::corpus::Corpus;
use crate::logs::history::History;
use crate::logs::trace::{Millis, NO_TIME, is_within};
use crate::mine::shuffled::{WantedPairs, of_activities};
use crate::mine::totals::asked;

fn known(time: Millis) -> Option<Millis> {
    (time != NO_TIME).then_some(time)
}

/// The calls of a history; the position of a call is that of its message in its chain, a case is a context.
pub fn by_message(history: &History) -> Vec<Activity> {
    let (mut case, mut last) = (0, None);
    // Calls stand chain by chain; a message that straddles a compaction may go back to the partition before.
    let mut cases: BTreeMap<u32, u32> = BTreeMap::new();
    let mut activity = |call: &crate::logs::history::Call| {
        if last.replace(call.chain) != Some(call.chain) {
            cases.clear();
        }
        let case = *cases.entry(call.partition).or_insert_with(|| {
            case += 1;
            case - 1
        });
        let asked = known(call.ts);
        Activity {
            case,
            session: history.chains[call.chain as usize].session,
            place: u64::from(call.chain) << 32 | u64::from(call.step),
            turn: call.turn,
            tool: call.tool,
            asked,
            answered: asked.zip(call.latency_ms).map(|(ts, latency)| ts + Millis::from(latency)),
        }
    };
    history.calls.iter().map(&mut activity).collect()
}

/// The calls of all files by the published definition: a file is a session and a case, its calls stand in line order,
/// copies in other files count again. Progress records are no calls of the file.
pub fn by_file(corpus: &Corpus, window: &Range<Millis>) -> Vec<Activity> {
    let mut out = Vec::new();
    for (number, file) in (0_u32..).zip(files_of_input(corpus)) {
        let recorded = file.rows.calls.iter().filter(|row| !row.progress && row.call.is_some());
        let answers: IdMap<Id, Millis> =
            recorded.filter_map(|row| Some((row.call, known(row.answered?.ts)?))).collect();
        let asked = asked(file).into_iter().filter(|(asked, _)| is_within(window, asked.ts));
        out.extend((0_u64..).zip(asked).map(|(place, (asked, call))| Activity {
            case: number,
            session: number,
            place: u64::from(number) << 32 | place,
            turn: 0,
            tool: asked.tool,
            asked: known(asked.ts),
            answered: answers.get(&call).copied(),
        }));
    }
    out
}

/// Counts pairs at these lags, and if `eventually` at any later time.
pub fn sums(activities: &[Activity], names: &Names, lags: &[u32], eventually: bool, turns: Turns) -> Result<EdgeSums> {
    let distinct = |of: fn(&Activity) -> u32| {
        let mut all: Vec<u32> = activities.iter().map(of).collect();
        all.sort_unstable();
        all.dedup();
        all.len() as u64
    };
    let mut out = EdgeSums {
        names: names.texts().to_vec(),
        cases: distinct(|row| row.case),
        sessions: distinct(|row| row.session),
        ..EdgeSums::default()
    };
    if activities.is_empty() {
        return Ok(out);
    }
    let frame = EdgeFrame::new(activities);
    let mut pairs: Vec<(u32, EdgeSum)> = Vec::new();
    for &lag in lags {
        pairs.extend(frame.follows(lag, turns)?.into_iter().map(|sum| (lag, sum)));
    }
    let wanted = WantedPairs::of(pairs.iter().map(|(_, sum)| (sum.from, sum.to)));
    let chances = of_activities(activities, lags, turns, &wanted);
    let with_chance =
        |(lag, sum): (u32, EdgeSum)| EdgeSum { chance: chances.get(&(sum.from, sum.to, lag)).copied(), ..sum };
    out.edges.extend(pairs.into_iter().map(with_chance));
    if eventually {
        out.edges.extend(frame.eventually()?);
    }
    out.ends = frame.ends()?;
    Ok(out)
}

/// The margins of all pairs at one lag.
#[derive(Default)]
struct Margins {
    total: u64,
    to: BTreeMap<Sym, u64>,
    pairs: BTreeMap<(Sym, Sym), u64>,
}

/// Every edge with its statistics: by lag ("at any time" last), then the most frequent first.
pub fn edges(sums: &EdgeSums, thresholds: &EdgeThresholds) -> Vec<Edge> {
    let mut margins: BTreeMap<Option<u32>, Margins> = BTreeMap::new();
    for sum in &sums.edges {
        let at = margins.entry(sum.lag).or_default();
        at.total += sum.count;
        *at.to.entry(sum.to).or_default() += sum.count;
        at.pairs.insert((sum.from, sum.to), sum.count);
    }
    let mut out: Vec<Edge> = sums.edges.iter().map(|sum| edge(sum, &margins[&sum.lag], &sums.names)).collect();
    for (edge, q) in with_q(&mut out, |edge| edge.p) {
        let EdgeSum { count, sessions, .. } = edge.sum;
        edge.q = Some(q);
        edge.significant =
            q <= thresholds.q_max && count >= thresholds.count_min && sessions >= thresholds.sessions_min;
    }
    out.sort_by(|a, b| {
        let key = |edge: &Edge| (edge.sum.lag.unwrap_or(u32::MAX), std::cmp::Reverse(edge.sum.count));
        key(a).cmp(&key(b)).then_with(|| (&a.from, &a.to).cmp(&(&b.from, &b.to)))
    });
    out
}

fn edge(sum: &EdgeSum, at: &Margins, names: &[String]) -> Edge {
    let name = |tool: Sym| names.get(tool.0 as usize).cloned().unwrap_or_default();
    let back = at.pairs.get(&(sum.to, sum.from)).copied().unwrap_or_default();
    let by_chance = at.to[&sum.to] as f64 / at.total as f64;
    // "At any time" has no fixed number of chances, so nothing can be held against chance.
    let lagged = sum.lag.is_some();
    let confidence = sum.of_sessions.over_clusters();
    Edge {
        sum: *sum,
        from: name(sum.from),
        to: name(sum.to),
        support: sum.count as f64 / at.total as f64,
        confidence,
        lift: lagged.then(|| confidence.value() / by_chance),
        dependency: dependency(sum, back),
        p: sum.chance.map(|chance| chance.p_at_least(sum.count)),
        q: None,
        significant: false,
    }
}

/// Of a pair: how much oftener one way than the other; of a tool with itself: how often it repeats.
fn dependency(sum: &EdgeSum, back: u64) -> f64 {
    let (there, back) = (sum.count as f64, back as f64);
    if sum.from == sum.to { there / (there + 1.0) } else { (there - back) / (there + back + 1.0) }
}

/// The sums over an input, from the lake if they were made before.
pub fn sums_of(
    input: &mut Input,
    concurrency: Concurrency,
    lags: &[u32],
    eventually: bool,
    turns: Turns,
) -> Result<EdgeSums> {
    let aliases = &input.vocabulary.tool_aliases;
    let question = format!("edges {concurrency:?} {lags:?} {eventually} {turns:?} {aliases:?}");
    input.remember(&question, |input| {
        let (activities, names) = activities(input, concurrency);
        input.pool.install(|| sums(&activities, &names, lags, eventually, turns))
    })
}

/// The calls of an input, and the names of their tools.
pub fn activities(input: &mut Input, concurrency: Concurrency) -> (Vec<Activity>, Names) {
    match concurrency {
        Concurrency::Message => {
            let (history, names) = input.named_history();
            (by_message(&history), names)
        }
        Concurrency::Flat => {
            let window = input.window.clone();
            let corpus = input.calls();
            (by_file(corpus, &window), corpus.names.clone())
        }
    }
}
