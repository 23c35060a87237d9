//! How often tools would follow each other if the messages of each context came in another order: what "more than
//! chance" is held against. What a context is made of (some have no shell, others nothing else) explains nothing then;
//! only the order does.

use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::base::id::{IdMap, IdSet};
use crate::base::names::Sym;
use crate::base::significance::{Chance, LaggedPairs, MessageSums, chance};
use crate::frames::edge::{Activity, Turns};

/// An earlier tool, a later one, and the lag between.
pub type LaggedTools = (Sym, Sym, u32);

/// A message of a context: what is shuffled.
#[derive(Clone, Debug, Default)]
pub struct ShuffledMessage {
    /// Where it stands; messages one lag apart differ by one.
    pub place: u64,
    /// Number of its turn, which belongs to the place.
    pub turn: u32,
    /// Its tools, sorted, each once, with the number of its calls. Most have one.
    pub tools: SmallVec<[(Sym, u64); 1]>,
}

/// Pairs of tools whose chances are wanted, by the earlier tool. A context with many tools has far more pairs than were ever seen.
#[derive(Default)]
pub struct WantedPairs(IdMap<Sym, IdSet<Sym>>);

impl WantedPairs {
    /// These.
    pub fn of(pairs: impl Iterator<Item = (Sym, Sym)>) -> Self {
        let mut wanted = Self::default();
        for (from, to) in pairs {
            wanted.0.entry(from).or_default().insert(to);
        }
        wanted
    }

    /// Tells of those of some tools, sorted, that are wanted behind another one: either they or the wanted ones are gone
    /// through, whichever are fewer.
    fn among<T: Copy>(&self, from: Sym, others: &[(Sym, T)], mut each: impl FnMut(Sym, T)) {
        match self.0.get(&from) {
            None => {}
            Some(wanted) if wanted.len() < others.len() => {
                let found = wanted.iter().filter_map(|to| others.binary_search_by_key(to, |(other, _)| *other).ok());
                found.for_each(|at| each(others[at].0, others[at].1));
            }
            Some(wanted) => {
                others.iter().filter(|(to, _)| wanted.contains(to)).for_each(|(to, of)| each(*to, *of));
            }
        }
    }
}

/// The chances of the wanted pairs of tools that share a context.
pub fn of_activities(
    activities: &[Activity],
    lags: &[u32],
    turns: Turns,
    wanted: &WantedPairs,
) -> BTreeMap<LaggedTools, Chance> {
    let mut rows: Vec<(u32, u64, Sym, u32)> =
        activities.iter().map(|row| (row.case, row.place, row.tool, row.turn)).collect();
    rows.sort_unstable();
    let mut out = IdMap::default();
    for case in rows.chunk_by(|a, b| a.0 == b.0) {
        let message = |calls: &[(u32, u64, Sym, u32)]| ShuffledMessage {
            place: calls[0].1,
            turn: calls[0].3,
            tools: calls.chunk_by(|a, b| a.2 == b.2).map(|same| (same[0].2, same.len() as u64)).collect(),
        };
        let messages: Vec<ShuffledMessage> = case.chunk_by(|a, b| a.1 == b.1).map(message).collect();
        add(&messages, (lags, turns), wanted, &mut out);
    }
    out.into_iter().collect()
}

/// Adds what one context contributes; its messages stand in order.
pub fn add(
    messages: &[ShuffledMessage],
    (lags, turns): (&[u32], Turns),
    wanted: &WantedPairs,
    out: &mut IdMap<LaggedTools, Chance>,
) {
    // Of each tool the sums of its calls to the power of 1 to 4, which are those of the tool with itself as well: most messages
    // have one tool.
    let mut single: IdMap<Sym, [f64; 4]> = IdMap::default();
    let mut both: IdMap<(Sym, Sym), [f64; 4]> = IdMap::default();
    for message in messages {
        for &(tool, calls) in &message.tools {
            let a = calls as f64;
            let sums = single.entry(tool).or_default();
            let terms = [a, a * a, a * a * a, a * a * a * a];
            sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            if message.tools.len() == 1 {
                continue;
            }
            wanted.among(tool, &message.tools, |other, calls| {
                let b = calls as f64;
                let sums = both.entry((tool, other)).or_default();
                let terms = [a * b, a * a * b, a * b * b, a * a * b * b];
                sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
            });
        }
    }
    let mut single: Vec<(Sym, [f64; 4])> = single.into_iter().collect();
    single.sort_unstable_by_key(|(tool, _)| *tool);
    let places: Vec<(u32, LaggedPairs)> = lags.iter().map(|&lag| (lag, places(messages, lag, turns))).collect();
    for &(from, a) in &single {
        wanted.among(from, &single, |to, b| {
            let with_itself = [a[1], a[2], a[2], a[3]];
            let both = if from == to { with_itself } else { both.get(&(from, to)).copied().unwrap_or_default() };
            let sums = MessageSums { a: [a[0], a[1]], b: [b[0], b[1]], both };
            for &(lag, places) in places.iter().filter(|(_, places)| places.pairs > 0) {
                *out.entry((from, to, lag)).or_default() += chance(places, &sums);
            }
        });
    }
}

/// The places that stand a lag apart and count with regard to turns.
fn places(messages: &[ShuffledMessage], lag: u32, turns: Turns) -> LaggedPairs {
    let mut reached = vec![false; messages.len()];
    let mut starts = vec![false; messages.len()];
    let mut ahead = 0;
    for (at, message) in messages.iter().enumerate() {
        let wanted = message.place + u64::from(lag);
        while messages.get(ahead).is_some_and(|later| later.place < wanted) {
            ahead += 1;
        }
        let later = messages.get(ahead).filter(|later| later.place == wanted);
        let counts = later.is_some_and(|later| match turns {
            Turns::All => true,
            Turns::Within => later.turn == message.turn,
            Turns::Across => later.turn != message.turn,
        });
        if counts {
            starts[at] = true;
            reached[ahead] = true;
        }
    }
    let count = |flags: &dyn Fn(usize) -> bool| (0..messages.len()).filter(|&at| flags(at)).count() as u64;
    LaggedPairs {
        messages: messages.len() as u64,
        pairs: count(&|at| starts[at]),
        chained: count(&|at| starts[at] && reached[at]),
    }
}
