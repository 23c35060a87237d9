//! The multiple-choice knapsack: one option of every class, the most value that a budget allows, and a proof of how much better
//! any other pick could be.
//!
//! Three steps, each of which may end the work. (1) Options that another one beats are dropped, and the rest of each class is
//! walked along its upper hull, best value per cost first, until the budget binds: the optimum of the linear relaxation (Dyer
//! 1984; Zemel 1984; Sinha & Zoltners 1979), hence an upper bound. (2) What still fits is added greedily. (3) Picks that lose
//! less than what is missing to the bound are enumerated (the core, after Pisinger 1995; see [`exact`]).

mod exact;

use std::cmp::{Ordering, Reverse};
use std::ops::Range;

/// Steps that are tried in order where the next one does not fit.
const FILL_MAX: usize = 64;

/// One option of a class.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// What it takes of the budget, such as tokens.
    pub cost: u64,
    /// What it is worth.
    pub value: u64,
}

/// One option of every class. Sums are wider than what they add up, so nothing overflows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Solution {
    /// The option of each class, by its place in the class.
    pub picks: Vec<usize>,
    /// What they cost together.
    pub cost: u128,
    /// What they are worth together.
    pub value: u128,
    /// What no pick within the budget can exceed.
    pub upper_bound: u128,
    /// Whether no other pick within the budget is worth more.
    pub exact: bool,
}

impl Solution {
    /// The share of the upper bound that is missing, 0 to 1: no other pick is better by more than that.
    pub fn gap(&self) -> f64 {
        if self.upper_bound == 0 { 0.0 } else { (self.upper_bound - self.value) as f64 / self.upper_bound as f64 }
    }
}

/// Picks one option of every class, worth as much as possible together within the budget; if that does not bind, the
/// cheapest of the most valuable options of each class. None if a class has no option, or the cheapest ones cost more.
pub fn solve(classes: &[Vec<Choice>], budget: u64) -> Option<Solution> {
    let problem = Problem::of(classes, budget)?;
    let mut steps = problem.steps();
    let Some(relaxed) = problem.relax(&mut steps) else {
        return Some(problem.solution(&problem.dearest(), None));
    };
    let filled = problem.fill(&mut steps, &relaxed);
    let (pick, bound) = exact::Core::of(&problem, &relaxed, filled).improve(relaxed.bound);
    Some(problem.solution(&pick, Some(bound)))
}

/// An option that no other of its class beats, measured from the cheapest one of the class.
#[derive(Clone, Copy)]
struct Point {
    cost: u64,
    value: u64,
    option: u32,
}

/// A step along the upper hull of a class, to a more expensive point.
#[derive(Clone, Copy)]
struct Step {
    class: u32,
    from: u32,
    to: u32,
    cost: u64,
    value: u64,
}

/// A point of every class, with what they cost and are worth beyond the cheapest ones.
#[derive(Clone)]
struct Pick {
    points: Vec<u32>,
    cost: u64,
    value: u128,
}

/// The relaxation: the whole steps, the step that no longer fits, and the bound that a part of it proves.
struct Relaxed {
    pick: Pick,
    room_left: u64,
    critical: Step,
    taken: usize,
    bound: u128,
}

/// The classes without the options that are never better.
struct Problem {
    points: Vec<Point>,
    /// Where the points of each class end.
    ends: Vec<u32>,
    base_cost: u128,
    base_value: u128,
    /// What the budget leaves beyond the cheapest options.
    room: u64,
}

impl Problem {
    fn of(classes: &[Vec<Choice>], budget: u64) -> Option<Self> {
        let cheapest = |class: &Vec<Choice>| class.iter().map(|choice| choice.cost).min();
        let base_cost = classes.iter().try_fold(0_u64, |sum, class| sum.checked_add(cheapest(class)?))?;
        let room = budget.checked_sub(base_cost)?;
        let options = classes.iter().map(Vec::len).sum();
        let mut problem = Self {
            points: Vec::with_capacity(options),
            ends: Vec::with_capacity(classes.len()),
            base_cost: base_cost.into(),
            base_value: 0,
            room,
        };
        let mut order = Vec::new();
        classes.iter().for_each(|class| problem.add(class, &mut order));
        Some(problem)
    }

    /// Adds a class: its cheapest option, then each that costs more and is worth more, as far as there is room.
    fn add(&mut self, class: &[Choice], order: &mut Vec<u32>) {
        order.clear();
        order.extend(0..class.len() as u32);
        order.sort_unstable_by_key(|&option| {
            let choice = class[option as usize];
            (choice.cost, Reverse(choice.value), option)
        });
        let base = class[order[0] as usize];
        self.base_value += u128::from(base.value);
        self.points.push(Point { cost: 0, value: 0, option: order[0] });
        let mut best = base.value;
        for &option in &order[1..] {
            let Choice { cost, value } = class[option as usize];
            if value > best && cost - base.cost <= self.room {
                self.points.push(Point { cost: cost - base.cost, value: value - base.value, option });
                best = value;
            }
        }
        self.ends.push(self.points.len() as u32);
    }

    fn classes(&self) -> impl Iterator<Item = Range<u32>> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(self.ends.iter().copied()).map(|(start, end)| start..end)
    }

    fn point(&self, index: u32) -> Point {
        self.points[index as usize]
    }

    /// The cheapest point of every class.
    fn cheapest(&self) -> Pick {
        Pick { points: self.classes().map(|points| points.start).collect(), cost: 0, value: 0 }
    }

    /// The most valuable point of every class.
    fn dearest(&self) -> Vec<u32> {
        self.ends.iter().map(|end| end - 1).collect()
    }

    fn solution(&self, points: &[u32], upper_bound: Option<u128>) -> Solution {
        let sum = |of: fn(&Point) -> u64| points.iter().map(|&index| u128::from(of(&self.point(index)))).sum::<u128>();
        let value = self.base_value + sum(|point| point.value);
        let upper_bound = upper_bound.map_or(value, |bound| self.base_value + bound);
        Solution {
            picks: points.iter().map(|&index| self.point(index).option as usize).collect(),
            cost: self.base_cost + sum(|point| point.cost),
            value,
            upper_bound,
            exact: value == upper_bound,
        }
    }

    /// The steps along the upper hull of every class.
    fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::with_capacity(self.points.len());
        for (points, class) in self.classes().zip(0..) {
            let first = steps.len();
            for to in points.start + 1..points.end {
                let mut step = self.step(class, points.start, to);
                while let Some(last) = steps[first..].last() {
                    step = self.step(class, last.to, to);
                    if steepness(&step, last) == Ordering::Less {
                        break;
                    }
                    // Steeper than the one before it: that corner is cut off.
                    step = self.step(class, last.from, to);
                    steps.pop();
                }
                steps.push(step);
            }
        }
        steps
    }

    fn step(&self, class: u32, from: u32, to: u32) -> Step {
        let (here, there) = (self.point(from), self.point(to));
        Step { class, from, to, cost: there.cost - here.cost, value: there.value - here.value }
    }

    /// Takes steps, best value per cost first, until one does not fit; `None` if all do. The steps are only sorted as
    /// far as it takes to find that one.
    fn relax(&self, steps: &mut [Step]) -> Option<Relaxed> {
        let (mut taken, mut end, mut room_left) = (0, steps.len() + 1, self.room);
        while end - taken > 1 {
            let (half, unsure) = ((end - taken) / 2, end.min(steps.len()));
            steps[taken..unsure].select_nth_unstable_by(half - 1, best_first);
            let cost: u128 = steps[taken..taken + half].iter().map(|step| u128::from(step.cost)).sum();
            match u64::try_from(cost).ok().and_then(|cost| room_left.checked_sub(cost)) {
                Some(left) => (taken, room_left) = (taken + half, left),
                None => end = taken + half,
            }
        }
        let critical = *steps.get(taken)?;
        let mut pick = self.cheapest();
        steps[..taken].iter().for_each(|step| pick.take(step));
        let part = u128::from(critical.value) * u128::from(room_left) / u128::from(critical.cost);
        let bound = pick.value + part;
        Some(Relaxed { pick, room_left, critical, taken, bound })
    }

    /// The better of: the relaxation's whole steps and whatever still fits; the most valuable single option. It is
    /// worth at least half of the optimum.
    fn fill(&self, steps: &mut [Step], relaxed: &Relaxed) -> Pick {
        let mut pick = relaxed.pick.clone();
        let mut room_left = relaxed.room_left;
        let rest = &mut steps[relaxed.taken..];
        let tried = rest.len().min(FILL_MAX);
        rest.select_nth_unstable_by(tried - 1, best_first);
        rest[..tried].sort_unstable_by(best_first);
        for step in &rest[..tried] {
            if step.cost <= room_left && pick.points[step.class as usize] == step.from {
                pick.take(step);
                room_left -= step.cost;
            }
        }
        if let Some(step) = self.best_change(&pick, room_left) {
            pick.take(&step);
        }
        let alone = self.best_alone();
        if u128::from(alone.value) > pick.value {
            pick = self.cheapest();
            pick.take(&alone);
        }
        pick
    }

    /// The change of one class that adds most within the room left.
    fn best_change(&self, pick: &Pick, room_left: u64) -> Option<Step> {
        let changes = self.classes().zip(&pick.points).zip(0..).flat_map(|((points, &from), class)| {
            (from + 1..points.end).map(move |to| self.step(class, from, to)).filter(move |step| step.cost <= room_left)
        });
        changes.max_by_key(|step| (step.value, Reverse(step.to)))
    }

    fn best_alone(&self) -> Step {
        let alone = self.classes().zip(0..).map(|(points, class)| self.step(class, points.start, points.end - 1));
        alone.max_by_key(|step| (step.value, Reverse(step.to))).expect("a step did not fit, so there is a class")
    }
}

impl Pick {
    fn take(&mut self, step: &Step) {
        let point = &mut self.points[step.class as usize];
        *point = step.to.max(*point);
        self.cost += step.cost;
        self.value += u128::from(step.value);
    }
}

/// The order in which the relaxation takes steps; those of one class stay in theirs.
fn best_first(one: &Step, two: &Step) -> Ordering {
    steepness(two, one).then(one.class.cmp(&two.class)).then(one.to.cmp(&two.to))
}

/// How `one` compares with `two` in value per cost.
fn steepness(one: &Step, two: &Step) -> Ordering {
    (u128::from(one.value) * u128::from(two.cost)).cmp(&(u128::from(two.value) * u128::from(one.cost)))
}
