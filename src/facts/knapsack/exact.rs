//! The exact step of the knapsack: at the price that the relaxation found, leaving the best option of a class loses a
//! known amount, and only picks that lose less than what is missing to the bound can be better. These are enumerated,
//! beginning with the classes that lose least (the core, after Pisinger 1995), within a fixed amount of work.

use std::cmp::Reverse;
use std::ops::Range;

use crate::facts::knapsack::{Pick, Point, Problem, Relaxed, Step};

/// States that the exact part may visit: about half a millisecond.
const STATES_MAX: usize = 1 << 12;

/// What a cost unit is worth: `numerator / denominator`, both below 2³² so that products and their sums fit in 128
/// bits. Any price proves a bound; the critical step's is the best, and huge ones are rounded.
#[derive(Clone, Copy)]
struct Price {
    numerator: i128,
    denominator: i128,
}

impl Price {
    fn of(step: Step) -> Self {
        let shift = 32_u32.saturating_sub((step.cost | step.value).leading_zeros());
        Self { numerator: i128::from(step.value >> shift), denominator: i128::from((step.cost >> shift).max(1)) }
    }

    /// What a point is worth after its cost is paid, in units of 1/denominator.
    fn surplus(self, point: Point) -> i128 {
        self.denominator * i128::from(point.value) - self.numerator * i128::from(point.cost)
    }
}

/// Points of one class other than its best, and what each loses.
struct Deviations {
    class: u32,
    loss_min: i128,
    points: Range<usize>,
}

/// Some deviations from the best points, together.
#[derive(Clone, Copy)]
struct State {
    cost: i128,
    loss: i128,
    /// The last deviation, in `Core::trace`; 0 for none.
    trace: u32,
}

/// The exact step.
pub struct Core<'a> {
    problem: &'a Problem,
    price: Price,
    critical: u32,
    room: i128,
    /// The point of each class with most surplus; of several the one that the relaxation has, so that the costs start
    /// near the budget.
    best: Vec<u32>,
    best_cost: i128,
    best_surplus: i128,
    found: Pick,
    /// Deviations of the states: the one before, the class, the point.
    trace: Vec<(u32, u32, u32)>,
}

impl<'a> Core<'a> {
    /// The step from what the relaxation found, and a pick that is already known.
    pub fn of(problem: &'a Problem, relaxed: &Relaxed, found: Pick) -> Self {
        let price = Price::of(relaxed.critical);
        let of_class = |(points, &relaxed): (Range<u32>, &u32)| {
            points.max_by_key(|&index| (price.surplus(problem.point(index)), index == relaxed, Reverse(index)))
        };
        let best: Vec<u32> = problem.classes().zip(&relaxed.pick.points).filter_map(of_class).collect();
        let best_cost = best.iter().map(|&index| i128::from(problem.point(index).cost)).sum();
        let best_surplus = best.iter().map(|&index| price.surplus(problem.point(index))).sum();
        Self {
            problem,
            price,
            critical: relaxed.critical.class,
            room: problem.room.into(),
            best,
            best_cost,
            best_surplus,
            found,
            trace: vec![(0, 0, 0)],
        }
    }

    /// The best pick that was found, and the bound that was proven for any other.
    pub fn improve(mut self, bound: u128) -> (Vec<u32>, u128) {
        let (mut deviations, steps) = self.deviations();
        // Among equals the relaxation took classes in order: to both sides of the critical one there is something to
        // change.
        deviations.sort_unstable_by_key(|of| (of.loss_min, of.class.abs_diff(self.critical), of.class));
        let mut states = vec![State { cost: self.best_cost, loss: 0, trace: 0 }];
        self.note(&states);
        let mut visited = 0;
        for of in &deviations {
            // What does not deviate any more is noted; what does loses at least this much.
            let loss_max = self.loss_max() - of.loss_min;
            states.retain(|state| state.loss <= loss_max);
            if states.is_empty() {
                break;
            }
            visited += states.len() * (of.points.len() + 1);
            if visited > STATES_MAX {
                let loss = states.iter().map(|state| state.loss).min().unwrap_or(0) + of.loss_min;
                let proven = (self.ceiling() - loss).div_euclid(self.price.denominator).unsigned_abs();
                let bound = bound.min(proven).max(self.found.value);
                return (self.found.points, bound);
            }
            states = self.expand(&states, of.class, &steps[of.points.clone()]);
            self.note(&states);
        }
        let bound = self.found.value;
        (self.found.points, bound)
    }

    /// What no pick can exceed, in units of 1/denominator.
    fn ceiling(&self) -> i128 {
        self.best_surplus + self.price.numerator * self.room
    }

    /// What a pick may lose and yet be better than the one that was found.
    fn loss_max(&self) -> i128 {
        self.ceiling() - self.price.denominator * (self.found.value as i128 + 1)
    }

    /// Of every class the points that may still be part of a better pick, with what they cost and lose beyond the best.
    fn deviations(&self) -> (Vec<Deviations>, Vec<(u32, i128, i128)>) {
        let (mut deviations, mut steps) = (Vec::new(), Vec::new());
        let loss_max = self.loss_max();
        for ((points, &best), class) in self.problem.classes().zip(&self.best).zip(0..) {
            let start = steps.len();
            let from = self.problem.point(best);
            for index in points.filter(|&index| index != best) {
                let to = self.problem.point(index);
                let loss = self.price.surplus(from) - self.price.surplus(to);
                if loss <= loss_max {
                    steps.push((index, i128::from(to.cost) - i128::from(from.cost), loss));
                }
            }
            let loss_min = steps[start..].iter().map(|step| step.2).min();
            deviations.extend(loss_min.map(|loss_min| Deviations { class, loss_min, points: start..steps.len() }));
        }
        (deviations, steps)
    }

    /// Every state with and without every deviation of one class, without those that another one beats.
    fn expand(&mut self, states: &[State], class: u32, steps: &[(u32, i128, i128)]) -> Vec<State> {
        let loss_max = self.loss_max();
        let mut wider = states.to_vec();
        for &(point, cost, loss) in steps {
            for state in states.iter().filter(|state| state.loss + loss <= loss_max) {
                let trace = self.trace.len() as u32;
                self.trace.push((state.trace, class, point));
                wider.push(State { cost: state.cost + cost, loss: state.loss + loss, trace });
            }
        }
        // The runs are sorted already, which a stable sort makes use of.
        wider.sort_by_key(|state| (state.cost, state.loss));
        let mut worth_max = i128::MIN;
        wider.retain(|state| {
            let worth = self.worth(state);
            let better = worth > worth_max;
            worth_max = worth_max.max(worth);
            better
        });
        wider
    }

    /// The value of a state, in units of 1/denominator.
    fn worth(&self, state: &State) -> i128 {
        self.best_surplus - state.loss + self.price.numerator * state.cost
    }

    /// Keeps the best state within the budget, if it is better than what was found. States are sorted by cost and
    /// value.
    fn note(&mut self, states: &[State]) {
        let within = states.partition_point(|state| state.cost <= self.room);
        let Some(state) = within.checked_sub(1).map(|last| states[last]) else { return };
        let value = (self.worth(&state) / self.price.denominator).unsigned_abs();
        if value > self.found.value {
            self.found = Pick { points: self.best.clone(), cost: state.cost as u64, value };
            let mut at = state.trace;
            while at != 0 {
                let (before, class, point) = self.trace[at as usize];
                self.found.points[class as usize] = point;
                at = before;
            }
        }
    }
}
