//! Two sides compared: which follow-ups and sizes of results changed beyond chance.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::base::bootstrap::SessionTrials;
use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::names::Sym;
use crate::base::significance::{TwoByTwo, with_q};
use crate::base::stats::{Clustered, Share};
use crate::base::visible::Shown as _;
use crate::frames::edge::{Concurrency, EdgeFrame, EdgeThresholds};
use crate::frames::input::Input;
use crate::logs::trace::ResultKind;
use crate::mine::edges::activities;
use crate::mine::tools::{self, SessionSize};

/// Every edge and size that either side has, the surest change first. Edges are tested by the share of their first tool's
/// pairs, sizes by the share of answers on one side of their median (Mood's median test), both over sessions
/// ([`Clustered::p_of_difference`]); with Benjamini–Hochberg over all tests of a kind.
pub fn changes(a: &Side, b: &Side, thresholds: &EdgeThresholds) -> Vec<ComparedRow> {
    let mut edges = edges(a, b);
    let mut sizes = sizes(a, b);
    for rows in [&mut edges, &mut sizes] {
        for (row, q) in with_q(rows, |row| row.p) {
            row.q = Some(q);
            let observed = |side: Share| if row.what == ComparedKind::Size { side.n } else { side.k };
            row.changed = q <= thresholds.q_max && observed(row.a).max(observed(row.b)) >= thresholds.count_min;
        }
    }
    let mut out = [edges, sizes].concat();
    let rest = |row: &ComparedRow| (std::cmp::Reverse(row.a.k + row.b.k), row.name.clone(), row.to.clone(), row.lag);
    out.sort_by(|x, y| {
        let surest = x.q.unwrap_or(2.0).total_cmp(&y.q.unwrap_or(2.0));
        x.what.cmp(&y.what).then(surest).then_with(|| rest(x).cmp(&rest(y)))
    });
    out
}

/// The probability of such a difference by chance. The sessions of a table are not known, so that its counts are taken as
/// independent, and those of the other side with them (Fisher's exact test).
fn p(a: &Clustered, b: &Clustered, with_table: bool) -> Option<f64> {
    let counts = |side: &Clustered| (side.successes as u64, side.trials as u64);
    match with_table {
        false => a.p_of_difference(b),
        true => (a.trials > 0.0 && b.trials > 0.0).then(|| TwoByTwo::of_sides(counts(a), counts(b)).p_two_sided()),
    }
}

/// The share with its interval over sessions; of a table, of which none are known, over its counts.
fn share(side: &Clustered, is_table: bool) -> Share {
    if is_table { Share::new(side.successes as u64, side.trials as u64) } else { side.over_clusters() }
}

fn edges(a: &Side, b: &Side) -> Vec<ComparedRow> {
    if a.edges.is_empty() || b.edges.is_empty() {
        return Vec::new();
    }
    let keys: BTreeSet<_> = a.edges.keys().chain(b.edges.keys()).collect();
    let (firsts_a, firsts_b) = (a.firsts(), b.firsts());
    let change = |key: &EdgeKey| {
        let (of_a, of_b) = (a.pairs(key, &firsts_a), b.pairs(key, &firsts_b));
        let sessions = |side: &Side| side.edges.get(key).filter(|_| !side.is_table).map(|of| of.len() as u64);
        ComparedRow {
            what: ComparedKind::Edge,
            name: key.0.clone(),
            to: key.1.clone(),
            lag: Some(key.2),
            a: share(&of_a, a.is_table),
            b: share(&of_b, b.is_table),
            median_a: None,
            median_b: None,
            sessions_min: [sessions(a), sessions(b)].into_iter().flatten().min(),
            p: p(&of_a, &of_b, a.is_table || b.is_table),
            q: None,
            changed: false,
        }
    };
    keys.into_iter().map(change).collect()
}

fn sizes(a: &Side, b: &Side) -> Vec<ComparedRow> {
    let both = a.sizes.iter().filter_map(|(tool, of_a)| Some((tool, of_a, b.sizes.get(tool)?)));
    both.map(|(tool, of_a, of_b)| {
        let beyond = beyond_one_median(of_a, of_b);
        let part = |side: &SizeSide, beyond: Option<&Clustered>| {
            beyond.map_or(Share::new(0, side.n), |beyond| share(beyond, side.sizes.is_none()))
        };
        ComparedRow {
            what: ComparedKind::Size,
            name: tool.clone(),
            to: String::new(),
            lag: None,
            a: part(of_a, beyond.as_ref().map(|(a, _)| a)),
            b: part(of_b, beyond.as_ref().map(|(_, b)| b)),
            median_a: Some(of_a.median),
            median_b: Some(of_b.median),
            sessions_min: [of_a.sessions(), of_b.sessions()].into_iter().flatten().min(),
            p: beyond.and_then(|beyond| p_of_sizes(of_a, of_b, &beyond)),
            q: None,
            changed: false,
        }
    })
    .collect()
}

/// Answers of each side beyond one median: where the single sizes of both are known, that of all together, else that of the
/// side of which only a median is known. None if neither side has single sizes.
///
/// Of all together, beyond is above or below, whichever is nearer to half of them (equal sizes lie on neither): it says nothing
/// about which side has more. Of a side known by its median only, at most half lies above and at most half below, so the other
/// side is tested where it has more than that.
fn beyond_one_median(a: &SizeSide, b: &SizeSide) -> Option<(Clustered, Clustered)> {
    let ways: [fn(u64, u64) -> bool; 2] = [|chars, median| chars > median, |chars, median| chars < median];
    let half = |side: &SizeSide| over_sessions([(0, (side.n / 2, side.n))]);
    let beyond = |sizes: &[SessionSize], median: u64, is_beyond: fn(u64, u64) -> bool| {
        over_sessions(sizes.iter().map(|size| (size.session, (is_beyond(size.chars.into(), median).into(), 1))))
    };
    let most = |sizes: &[SessionSize], median: u64| {
        let both = ways.map(|way| beyond(sizes, median, way));
        both.into_iter().max_by(|a, b| a.successes.total_cmp(&b.successes))
    };
    match (&a.sizes, &b.sizes) {
        (None, None) => None,
        (None, Some(sizes)) => Some((half(a), most(sizes, a.median)?)),
        (Some(sizes), None) => Some((most(sizes, b.median)?, half(b))),
        (Some(of_a), Some(of_b)) => {
            let mut all: Vec<u32> = of_a.iter().chain(of_b).map(|size| size.chars).collect();
            all.sort_unstable();
            let median = all[(all.len() - 1) / 2].into();
            let sides = ways.map(|way| (beyond(of_a, median, way), beyond(of_b, median, way)));
            sides.into_iter().max_by(|x, y| (x.0.successes + x.1.successes).total_cmp(&(y.0.successes + y.1.successes)))
        }
    }
}

/// Successes and trials of sessions, which may come in several parts.
fn over_sessions(parts: impl IntoIterator<Item = (u32, SessionTrials)>) -> Clustered {
    let mut sessions: BTreeMap<u32, SessionTrials> = BTreeMap::new();
    for (session, (successes, trials)) in parts {
        let sum = sessions.entry(session).or_default();
        *sum = (sum.0 + successes, sum.1 + trials);
    }
    Clustered::of(sessions.into_values())
}

/// The test of sizes. Half of the answers or fewer beyond a median that is only known as such is what may be.
fn p_of_sizes(a: &SizeSide, b: &SizeSide, (of_a, of_b): &(Clustered, Clustered)) -> Option<f64> {
    let with_table = a.sizes.is_none() || b.sizes.is_none();
    let known = if a.sizes.is_none() { of_b } else { of_a };
    if with_table && known.share() <= 0.5 { Some(1.0) } else { p(of_a, of_b, with_table) }
}

/// Two tools and the lag.
type EdgeKey = (String, String, u32);

/// A side: logs, a window of them, or a published table.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Whether it is a table, of which no sessions are known: it counts as one.
    is_table: bool,
    /// Pairs of two tools by the number of the session.
    edges: BTreeMap<EdgeKey, BTreeMap<u32, u64>>,
    /// Sizes of answers by tool.
    sizes: BTreeMap<String, SizeSide>,
}

impl Side {
    /// A side from logs, whose tools are called as `shown` says.
    pub fn of_logs(
        input: &mut Input,
        concurrency: Concurrency,
        lags: &[u32],
        shown: &dyn Fn(&str) -> String,
    ) -> Result<Self> {
        let sizes = sizes_of_answers(input, concurrency, shown).into_iter();
        let mut side = Self { sizes: sizes.collect(), ..Self::default() };
        let (activities, names) = activities(input, concurrency);
        let frame = EdgeFrame::new(&activities);
        let name = |tool: Sym| shown(names.text(tool));
        for &lag in lags {
            for pairs in input.pool.install(|| frame.of_sessions(lag))? {
                let of_edge = side.edges.entry((name(pairs.from), name(pairs.to), lag)).or_default();
                *of_edge.entry(pairs.session).or_default() += pairs.count;
            }
        }
        Ok(side)
    }

    /// The pairs of each first tool at a lag, and how many each session has.
    fn firsts(&self) -> Firsts<'_> {
        let mut firsts = Firsts::new();
        for ((from, _, lag), sessions) in &self.edges {
            let (_, first) = firsts.entry((from, *lag)).or_default();
            sessions.iter().for_each(|(&session, count)| *first.entry(session).or_default() += count);
        }
        for (sum, sessions) in firsts.values_mut() {
            sessions.values().for_each(|&trials| sum.add_trials(trials, 1.0));
        }
        firsts
    }

    /// The pairs of an edge among those that begin with its first tool.
    fn pairs(&self, key: &EdgeKey, firsts: &Firsts<'_>) -> Clustered {
        let Some((all, trials)) = firsts.get(&(key.0.as_str(), key.2)) else { return Clustered::default() };
        let mut sum = *all;
        for (session, &count) in self.edges.get(key).into_iter().flatten() {
            sum.add_successes(count, trials[session], 1.0);
        }
        sum
    }
}

/// By first tool and lag.
type Firsts<'s> = BTreeMap<(&'s str, u32), (Clustered, BTreeMap<u32, u64>)>;

fn sizes_of_answers(
    input: &mut Input,
    concurrency: Concurrency,
    shown: &dyn Fn(&str) -> String,
) -> BTreeMap<String, SizeSide> {
    let mut sizes: BTreeMap<String, Vec<SessionSize>> = BTreeMap::new();
    if concurrency == Concurrency::Flat {
        let window = input.window.clone();
        let corpus = input.calls();
        for (tool, of_tool) in tools::sizes(corpus, &window) {
            sizes.entry(shown(corpus.names.text(tool))).or_default().extend(of_tool);
        }
    } else {
        let (history, names) = input.seen_history();
        for call in history.calls.iter().filter(|call| call.ran() && call.kind != ResultKind::NonText) {
            let session = history.chains[call.chain as usize].session;
            sizes.entry(shown(names.text(call.tool))).or_default().push(SessionSize { chars: call.chars, session });
        }
    }
    let side = |(tool, mut sizes): (String, Vec<SessionSize>)| {
        sizes.sort_unstable_by_key(|size| size.chars);
        let median = sizes[(sizes.len() - 1) / 2].chars.into();
        (tool, SizeSide { n: sizes.len() as u64, median, sizes: Some(sizes) })
    };
    sizes.into_iter().map(side).collect()
}

/// Sizes of the answers of one tool.
#[derive(Clone, Debug)]
struct SizeSide {
    /// Answers.
    n: u64,
    /// Their median in code points.
    median: u64,
    /// Each answer, where they are known.
    sizes: Option<Vec<SessionSize>>,
}

impl SizeSide {
    /// Sessions with one, where they are known.
    fn sessions(&self) -> Option<u64> {
        Some(self.sizes.as_ref()?.iter().map(|size| size.session).collect::<BTreeSet<_>>().len() as u64)
    }
}

/// What a row is about.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, strum::IntoStaticStr)]
#[strum(const_into_str, serialize_all = "snake_case")]
pub enum ComparedKind {
    /// A follow-up.
    Edge,
    Size,
}

/// One edge or size on both sides.
#[derive(Clone, PartialEq, Debug)]
pub struct ComparedRow {
    pub what: ComparedKind,
    /// The tool; of an edge the earlier one.
    pub name: String,
    /// The later tool of an edge.
    pub to: String,
    pub lag: Option<u32>,
    /// Of an edge, pairs of all pairs of the earlier tool; of a size, answers beyond the median of both sides.
    pub a: Share,
    /// The same on the second side.
    pub b: Share,
    /// Median size on the first side.
    pub median_a: Option<u64>,
    /// Median size on the second side.
    pub median_b: Option<u64>,
    /// The fewest sessions behind it on a side that has it, where that is known.
    pub sessions_min: Option<u64>,
    /// Probability of such a difference if nothing changed.
    pub p: Option<f64>,
    /// The same after Benjamini–Hochberg.
    pub q: Option<f64>,
    pub changed: bool,
}

/// Reads a published table of edges (only these lags) or of volumes, whichever it is by its header. An error if it
/// cannot be read, has neither header, or holds something that does not fit; the error names the line.
pub fn read_published(path: &Path, lags: &[u32]) -> Result<Side> {
    let text = files::read_to_string(path).map_err(|cause| Error::unread(path, &cause))?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().trim_start_matches('\u{feff}').split(',').collect();
    let column = |name: &str| header.iter().position(|known| known.trim() == name);
    let edges = [column("prev_tool"), column("next_tool"), column("lag"), column("count")];
    let volumes = [column("tool_anon"), column("calls"), column("sessions"), column("response_chars_median")];
    let mut side = Side { is_table: true, ..Side::default() };
    for (number, line) in (2..).zip(lines).filter(|(_, line)| !line.trim().is_empty()) {
        let odd = || Error::failed(format!("{}:{number}: not a row of the table", path.shown()));
        let cells = cells(line);
        let cell = |at: usize| cells.get(at).map(|cell| cell.trim().to_owned()).ok_or_else(odd);
        let whole = |at: usize| cell(at)?.parse::<u64>().map_err(|_| odd());
        if let [Some(from), Some(to), Some(lag), Some(count)] = edges {
            let lag = u32::try_from(whole(lag)?).map_err(|_| odd())?;
            if lags.contains(&lag) {
                side.edges.insert((cell(from)?, cell(to)?, lag), BTreeMap::from([(0, whole(count)?)]));
            }
        } else if let [Some(tool), Some(calls), Some(_), Some(median)] = volumes {
            let sizes = SizeSide { n: whole(calls)?, median: whole(median)?, sizes: None };
            side.sizes.insert(cell(tool)?, sizes);
        } else {
            return Err(Error::failed(format!("{}:1: neither a table of edges nor of volumes", path.shown())).hint(
                "`devboy mine edges` and `mine tools` write both with --layout published; the header names the columns",
            ));
        }
    }
    Ok(side)
}

/// The cells of a line; quotes hold commas, and doubled a quote.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let (mut quoted, mut rest) = (false, line.chars().peekable());
    while let Some(c) = rest.next() {
        let cell = cells.last_mut().expect("there is always a cell");
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => cell.extend(rest.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    cells
}
