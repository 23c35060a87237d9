//! Two sides compared: which follow-ups and sizes of results changed beyond chance.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::names::Sym;
use crate::base::significance::{TwoByTwo, with_q};
use crate::base::stats::Share;
use crate::base::visible::Shown as _;
use crate::frames::edge::{Concurrency, EdgeThresholds, Turns};
use crate::frames::input::Input;
use crate::logs::trace::ResultKind;
use crate::mine::edges::sums_of;
use crate::mine::tools;

/// Every edge and size that either side has, the surest change first. Edges are tested by the share of their first tool's
/// pairs, sizes by the share of answers on one side of their median (Mood's median test); both with Fisher's exact test,
/// two-sided, and Benjamini–Hochberg over all tests of a kind.
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

fn tested(a: (u64, u64), b: (u64, u64)) -> Option<f64> {
    (a.1 > 0 && b.1 > 0).then(|| TwoByTwo::of_sides(a, b).p_two_sided())
}

fn edges(a: &Side, b: &Side) -> Vec<ComparedRow> {
    let trials = |side: &Side| {
        let mut trials: BTreeMap<(String, u32), u64> = BTreeMap::new();
        for ((from, _, lag), (count, _)) in &side.edges {
            *trials.entry((from.clone(), *lag)).or_default() += count;
        }
        trials
    };
    if a.edges.is_empty() || b.edges.is_empty() {
        return Vec::new();
    }
    let (trials_a, trials_b) = (trials(a), trials(b));
    let keys: BTreeSet<_> = a.edges.keys().chain(b.edges.keys()).collect();
    let change = |key: &(String, String, u32)| {
        let of = |side: &Side, trials: &BTreeMap<(String, u32), u64>| {
            let n = trials.get(&(key.0.clone(), key.2)).copied().unwrap_or_default();
            (side.edges.get(key).map_or(0, |(count, _)| *count), n)
        };
        let (of_a, of_b) = (of(a, &trials_a), of(b, &trials_b));
        let sessions = |side: &Side| side.edges.get(key).and_then(|(_, sessions)| *sessions);
        ComparedRow {
            what: ComparedKind::Edge,
            name: key.0.clone(),
            to: key.1.clone(),
            lag: Some(key.2),
            a: Share::new(of_a.0, of_a.1),
            b: Share::new(of_b.0, of_b.1),
            median_a: None,
            median_b: None,
            sessions_min: [sessions(a), sessions(b)].into_iter().flatten().min(),
            p: tested(of_a, of_b),
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
        ComparedRow {
            what: ComparedKind::Size,
            name: tool.clone(),
            to: String::new(),
            lag: None,
            a: Share::new(beyond.map_or(0, |(a, _)| a), of_a.n),
            b: Share::new(beyond.map_or(0, |(_, b)| b), of_b.n),
            median_a: Some(of_a.median),
            median_b: Some(of_b.median),
            sessions_min: [of_a.sessions, of_b.sessions].into_iter().flatten().min(),
            p: beyond.and_then(|beyond| p_of_sizes(of_a, of_b, beyond)),
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
fn beyond_one_median(a: &SizeSide, b: &SizeSide) -> Option<(u64, u64)> {
    let above = |chars: &[u32], median: u64| (chars.len() - chars.partition_point(|&c| u64::from(c) <= median)) as u64;
    let below = |chars: &[u32], median: u64| chars.partition_point(|&c| u64::from(c) < median) as u64;
    let most = |chars: &[u32], median: u64| above(chars, median).max(below(chars, median));
    match (&a.chars, &b.chars) {
        (None, None) => None,
        (None, Some(chars)) => Some((a.n / 2, most(chars, a.median))),
        (Some(chars), None) => Some((most(chars, b.median), b.n / 2)),
        (Some(of_a), Some(of_b)) => {
            let mut all = [&of_a[..], of_b].concat();
            all.sort_unstable();
            let median = all[(all.len() - 1) / 2].into();
            let beyond = [above, below].map(|beyond| (beyond(of_a, median), beyond(of_b, median)));
            beyond.into_iter().max_by_key(|(a, b)| a + b)
        }
    }
}

/// The test of sizes. Half of the answers or fewer beyond a median that is only known as such is what may be.
fn p_of_sizes(a: &SizeSide, b: &SizeSide, (k_a, k_b): (u64, u64)) -> Option<f64> {
    let known = a.chars.is_some() && b.chars.is_some();
    let more = if a.chars.is_none() { 2 * k_b > b.n } else { 2 * k_a > a.n };
    if known || more { tested((k_a, a.n), (k_b, b.n)) } else { Some(1.0) }
}

/// A side: logs, a window of them, or a published table.
#[derive(Clone, Debug, Default)]
pub struct Side {
    /// Pairs by tools and lag, and the sessions with one where they are known.
    pub edges: BTreeMap<(String, String, u32), (u64, Option<u64>)>,
    /// Sizes of answers by tool.
    pub sizes: BTreeMap<String, SizeSide>,
}

impl Side {
    /// A side from logs, whose tools are called as `shown` says.
    pub fn of_logs(
        input: &mut Input,
        concurrency: Concurrency,
        lags: &[u32],
        shown: &dyn Fn(&str) -> String,
    ) -> Result<Self> {
        let chars = sizes_of_answers(input, concurrency, shown);
        let sums = sums_of(input, concurrency, lags, false, Turns::All)?;
        let name = |tool: Sym| shown(&sums.names[tool.0 as usize]);
        let edges = sums
            .edges
            .iter()
            .filter_map(|sum| Some(((name(sum.from), name(sum.to), sum.lag?), (sum.count, Some(sum.sessions)))));
        let sessions: BTreeMap<String, u64> = sums.ends.iter().map(|end| (name(end.tool), end.sessions)).collect();
        let sizes = chars.into_iter().map(|(tool, mut chars)| {
            chars.sort_unstable();
            let side = SizeSide {
                n: chars.len() as u64,
                median: chars[(chars.len() - 1) / 2].into(),
                sessions: sessions.get(&tool).copied(),
                chars: Some(chars),
            };
            (tool, side)
        });
        Ok(Self { edges: edges.collect(), sizes: sizes.collect() })
    }
}

fn sizes_of_answers(
    input: &mut Input,
    concurrency: Concurrency,
    shown: &dyn Fn(&str) -> String,
) -> BTreeMap<String, Vec<u32>> {
    let mut chars: BTreeMap<String, Vec<u32>> = BTreeMap::new();
    if concurrency == Concurrency::Flat {
        let window = input.window.clone();
        let corpus = input.calls();
        for (tool, (_, sizes)) in tools::sizes(corpus, &window) {
            chars.entry(shown(corpus.names.text(tool))).or_default().extend(sizes);
        }
    } else {
        let (history, names) = input.seen_history();
        for call in history.calls.iter().filter(|call| call.ran() && call.kind != ResultKind::NonText) {
            chars.entry(shown(names.text(call.tool))).or_default().push(call.chars);
        }
    }
    chars
}

/// Sizes of the answers of one tool.
#[derive(Clone, Debug, Default)]
pub struct SizeSide {
    /// Answers.
    pub n: u64,
    /// Their median in code points.
    pub median: u64,
    /// Sessions with one, where they are known.
    pub sessions: Option<u64>,
    /// The single sizes, ascending, where they are known.
    pub chars: Option<Vec<u32>>,
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
    let mut side = Side::default();
    for (number, line) in (2..).zip(lines).filter(|(_, line)| !line.trim().is_empty()) {
        let odd = || Error::failed(format!("{}:{number}: not a row of the table", path.shown()));
        let cells = cells(line);
        let cell = |at: usize| cells.get(at).map(|cell| cell.trim().to_owned()).ok_or_else(odd);
        let whole = |at: usize| cell(at)?.parse::<u64>().map_err(|_| odd());
        if let [Some(from), Some(to), Some(lag), Some(count)] = edges {
            let lag = u32::try_from(whole(lag)?).map_err(|_| odd())?;
            if lags.contains(&lag) {
                side.edges.insert((cell(from)?, cell(to)?, lag), (whole(count)?, None));
            }
        } else if let [Some(tool), Some(calls), Some(_), Some(median)] = volumes {
            let sizes = SizeSide { n: whole(calls)?, median: whole(median)?, sessions: None, chars: None };
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
