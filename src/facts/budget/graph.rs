//! An outline as a graph: from its start to its end every path is a selection of nodes, and costs what their text
//! costs, heads and hints included.

use crate::facts::knapsack::Choice;
use crate::facts::outline::{CUT, Outline, OutlinePart, Tail};

/// Whether the text so far ends with something that was kept, or something was left out since then.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// A hint must be written before something can be left out.
    Kept,
    /// The hint counts on.
    LeftOut,
}

impl State {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Kept, Self::LeftOut];
}

/// A place in the outline, which is a state before one of its parts or behind the last one.
pub type OutlinePlace = (usize, State);

/// A part of an outline, as far as it matters what it costs.
enum PricedItem {
    /// The cheapest form of a node.
    Node { form: usize, cost: u64, value: u64, goes_on: bool, required: bool },
    /// The head of a group; whether it has any text; whether something in the group is required.
    Open { cost: u64, breaks: bool, end: usize, required: bool },
    /// The tail of a group; whether it is written even if the last nodes are left out.
    Close { cost: u64, breaks: bool },
}

/// An edge of the graph.
pub struct Move {
    /// Where it leads.
    pub to: OutlinePlace,
    /// What is worth more then.
    pub value: u64,
    /// What costs more then.
    pub cost: u64,
    /// Whether a node is kept.
    pub keeps: bool,
}

/// An outline with its costs.
pub struct Graph {
    items: Vec<PricedItem>,
    hint_cost: u64,
    /// What it costs to say that a line is cut.
    cut_cost: u64,
    /// The options of each node: its forms, and nothing unless it is required.
    pub classes: Vec<Vec<Choice>>,
}

impl Graph {
    /// Prices an outline. `count` tells the tokens of a text.
    pub fn of(outline: &Outline, hint_cost: u64, count: &mut dyn FnMut(&str) -> u64) -> Self {
        let items = Vec::with_capacity(outline.parts.len());
        let cut_cost = count(&format!("{CUT}\n"));
        let mut graph = Self { items, hint_cost, cut_cost, classes: Vec::new() };
        let mut open = Vec::new();
        for part in &outline.parts {
            let item = match part {
                OutlinePart::Node(node) => {
                    let options = node.forms.iter().map(|form| Choice { cost: count(form), value: node.value });
                    let mut options: Vec<Choice> = options.collect();
                    let cheapest = options.iter().enumerate().min_by_key(|(_, option)| option.cost);
                    let (form, cost) = cheapest.map_or((0, 0), |(form, option)| (form, option.cost));
                    if node.required {
                        graph.require(&open);
                    } else {
                        options.push(Choice { cost: 0, value: 0 });
                    }
                    graph.classes.push(options);
                    PricedItem::Node { form, cost, value: node.value, goes_on: node.goes_on, required: node.required }
                }
                OutlinePart::Open(group) => {
                    open.push((graph.items.len(), &group.tail));
                    let head = group.head.text(1);
                    PricedItem::Open { cost: count(&head), breaks: !head.is_empty(), end: group.end, required: false }
                }
                OutlinePart::Close => match open.pop().map_or(&Tail::None, |(_, tail)| tail) {
                    Tail::None => PricedItem::Close { cost: 0, breaks: false },
                    Tail::Blank => PricedItem::Close { cost: count("\n"), breaks: false },
                    Tail::Lines(lines) => PricedItem::Close { cost: count(lines), breaks: true },
                },
            };
            graph.items.push(item);
        }
        graph
    }

    /// Notes in the groups that are open that they cannot be left out.
    fn require(&mut self, open: &[(usize, &Tail)]) {
        for (group, _) in open.iter().rev() {
            match &mut self.items[*group] {
                PricedItem::Open { required, .. } if !*required => *required = true,
                _ => break,
            }
        }
    }

    /// How many parts the outline has.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// The cheapest form of the node at this place of the outline, if there is one.
    pub fn form(&self, at: usize) -> Option<usize> {
        if let PricedItem::Node { form, .. } = self.items[at] { Some(form) } else { None }
    }

    fn node_value(&self, at: usize) -> u64 {
        if let PricedItem::Node { value, .. } = self.items[at] { value } else { 0 }
    }

    /// What the kept nodes are worth.
    pub fn value(&self, kept: &[bool]) -> u64 {
        (0..self.len()).filter(|&at| kept[at]).map(|at| self.node_value(at)).sum()
    }

    /// What all nodes are worth.
    pub fn value_total(&self) -> u64 {
        (0..self.len()).map(|at| self.node_value(at)).sum()
    }

    /// The edges from a place that is not the end.
    pub fn moves(&self, (at, state): OutlinePlace) -> impl Iterator<Item = Move> {
        let hint_cost = if state == State::Kept { self.hint_cost } else { 0 };
        let leave_out = |to| Some(Move { to: (to, State::LeftOut), value: 0, cost: hint_cost, keeps: false });
        let go_on = |breaks, cost| {
            let state = if breaks { State::Kept } else { state };
            Some(Move { to: (at + 1, state), value: 0, cost, keeps: false })
        };
        let [first, second] = match self.items[at] {
            PricedItem::Node { cost, value, goes_on, required, .. } => {
                let cut_cost = if goes_on { self.cut_cost } else { 0 };
                let (end_cost, start_cost) = if state == State::Kept { (cut_cost, 0) } else { (0, cut_cost) };
                let leave_out = leave_out(at + 1).map(|go| Move { cost: go.cost + end_cost, ..go });
                let keep = Move { to: (at + 1, State::Kept), value, cost: cost + start_cost, keeps: true };
                [leave_out.filter(|_| !required), Some(keep)]
            }
            PricedItem::Open { cost, breaks, end, required } => {
                [leave_out(end).filter(|_| !required), go_on(breaks, cost)]
            }
            PricedItem::Close { cost, breaks } if breaks || state == State::Kept => [go_on(breaks, cost), None],
            PricedItem::Close { .. } => [go_on(false, 0), None],
        };
        first.into_iter().chain(second)
    }

    /// What the text of the kept nodes costs, as the sum of its parts.
    pub fn cost(&self, kept: &[bool]) -> u64 {
        let shown = self.shown(kept);
        let (mut place, mut cost) = ((0, State::Kept), 0);
        while place.0 < self.len() {
            let mut moves = self.moves(place);
            // What leaves out comes first.
            let Some(go) = (if shown[place.0] { moves.last() } else { moves.next() }) else { break };
            (place, cost) = (go.to, cost + go.cost);
        }
        cost
    }

    /// Which nodes are kept, and which groups have such a node in them.
    fn shown(&self, kept: &[bool]) -> Vec<bool> {
        let mut shown = kept.to_vec();
        let mut open: Vec<usize> = Vec::new();
        for (at, item) in self.items.iter().enumerate() {
            match item {
                PricedItem::Open { .. } => open.push(at),
                PricedItem::Close { .. } => drop(open.pop()),
                PricedItem::Node { .. } if kept[at] => open.iter().for_each(|&group| shown[group] = true),
                PricedItem::Node { .. } => {}
            }
        }
        shown
    }
}
