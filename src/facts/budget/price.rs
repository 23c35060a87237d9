//! The best selection at a price per token, and the price at which it just fits.
//!
//! What a selection is worth less what its tokens cost is the length of its path, and the longest path is found in one
//! pass. A lower price keeps more. Whatever the price, no selection that fits gains more than that path does together
//! with the whole budget sold at this price: so every price proves a bound (Lagrangian relaxation).

use crate::facts::budget::graph::{Graph, OutlinePlace, State};

/// Fraction bits of a price.
const FRACTION_BITS: u32 = 24;
/// Bits to which the price is found.
const PRECISION_BITS: u32 = 16;
/// Less than any path gains.
const UNREACHED: i128 = i128::MIN / 2;

/// What a token costs, in units of 2^-[`FRACTION_BITS`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Price(i128);

impl Price {
    /// What a value gains once its cost is paid.
    pub fn gain(self, value: u64, cost: u64) -> i128 {
        (i128::from(value) << FRACTION_BITS) - self.0 * i128::from(cost)
    }

    /// The value that a gain and the sale of a budget amount to.
    pub fn value(self, gain: i128, budget: u64) -> u64 {
        u64::try_from((gain + self.0 * i128::from(budget)) >> FRACTION_BITS).unwrap_or(0)
    }

    /// A price at which nothing is kept but what has to be or makes the text shorter.
    pub fn highest(graph: &Graph) -> Self {
        Self((i128::from(graph.value_total()) + 1) << FRACTION_BITS)
    }

    /// A price between two, in the middle of their magnitudes where these differ; `None` if they are the same, about.
    fn between(low: Self, high: Self) -> Option<Self> {
        let magnitude = |price: i128| i128::BITS - price.leading_zeros();
        let (from, to) = (magnitude(low.0), magnitude(high.0));
        let middle = if to > from + 1 { 1 << ((from + to - 1) / 2) } else { low.0 + (high.0 - low.0) / 2 };
        (high.0 - low.0 > 1.max(high.0 >> PRECISION_BITS)).then_some(Self(middle))
    }
}

/// The best selection at some price.
pub struct PricedSelection {
    /// Whether a part is a node that is kept.
    pub kept: Vec<bool>,
    /// What its text costs.
    pub cost: u64,
    gain: i128,
}

/// What the search for the price found.
pub struct Market {
    /// The lowest price at which the best selection fits.
    pub price: Price,
    pub fits: PricedSelection,
    /// The best selection at a price just below: most of it fits.
    pub over: PricedSelection,
    /// What no selection that fits can exceed.
    pub upper_bound: u64,
}

/// What the best path to a place gains and costs, and where it came from.
#[derive(Clone, Copy)]
struct BestPathStep {
    gain: i128,
    cost: u64,
    from: OutlinePlace,
}

/// The best selection at a price.
pub fn longest_path(graph: &Graph, price: Price) -> PricedSelection {
    let unreached = BestPathStep { gain: UNREACHED, cost: 0, from: (0, State::Kept) };
    let mut steps = vec![[unreached; 2]; graph.len() + 1];
    steps[0][State::Kept as usize].gain = 0;
    for at in 0..graph.len() {
        for state in State::ALL {
            let here = steps[at][state as usize];
            for go in graph.moves((at, state)) {
                let gain = here.gain + price.gain(go.value, go.cost);
                let step = &mut steps[go.to.0][go.to.1 as usize];
                if gain > step.gain {
                    *step = BestPathStep { gain, cost: here.cost + go.cost, from: (at, state) };
                }
            }
        }
    }
    trace(graph, &steps)
}

fn trace(graph: &Graph, steps: &[[BestPathStep; 2]]) -> PricedSelection {
    let [ends_kept, ends_left_out] = steps[graph.len()];
    let last = if ends_kept.gain > ends_left_out.gain { State::Kept } else { State::LeftOut };
    let BestPathStep { gain, cost, .. } = steps[graph.len()][last as usize];
    let mut kept = vec![false; graph.len()];
    let mut place = (graph.len(), last);
    while place.0 > 0 {
        let from = steps[place.0][place.1 as usize].from;
        kept[from.0] = place.1 == State::Kept && graph.form(from.0).is_some();
        place = from;
    }
    PricedSelection { kept, cost, gain }
}

/// Looks for the lowest price at which the best selection fits; `None` if none does at any price.
pub fn search(graph: &Graph, budget: u64) -> Option<Market> {
    let (mut low, mut price) = (Price(0), Price::highest(graph));
    let (mut over, mut fits) = (longest_path(graph, low), longest_path(graph, price));
    if fits.cost > budget {
        return None;
    }
    let mut upper_bound = low.value(over.gain, budget).min(price.value(fits.gain, budget));
    while let Some(middle) = Price::between(low, price) {
        let path = longest_path(graph, middle);
        upper_bound = upper_bound.min(middle.value(path.gain, budget));
        if path.cost <= budget {
            (fits, price) = (path, middle);
        } else {
            (over, low) = (path, middle);
        }
    }
    Some(Market { price, fits, over, upper_bound })
}

/// What the best path from every place to the end gains.
pub fn gains_ahead(graph: &Graph, price: Price) -> Vec<[i128; 2]> {
    let mut ahead = vec![[0; 2]; graph.len() + 1];
    for at in (0..graph.len()).rev() {
        for state in State::ALL {
            let gains =
                graph.moves((at, state)).map(|go| price.gain(go.value, go.cost) + ahead[go.to.0][go.to.1 as usize]);
            let gain = gains.max().unwrap_or(UNREACHED);
            ahead[at][state as usize] = gain;
        }
    }
    ahead
}
