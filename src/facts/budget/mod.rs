//! The most that a body can say in a given number of tokens.
//!
//! A body that fits as it is, or in some format, is written that way. Else it is taken apart, some nodes are left out,
//! and a hint stands where they were that counts lines, or members and elements of JSON. The budget holds for the text
//! that comes out, counted as a whole.

mod graph;
mod price;
mod selection;

use crate::base::body_shape::{BodyShape, Showing};
use crate::facts::budget::graph::Graph;
use crate::facts::budget::price::{Price, longest_path};
use crate::facts::budget::selection::{NodeSelection, select};
use crate::facts::encode::{Format, Params, Subject, prove};
use crate::facts::knapsack::Choice;
use crate::facts::outline::{Outline, OutlinePart, OutlineRules, lines_in};
use crate::facts::quotable::Quotable;

/// How many nodes a budget should hold at least, to be used well.
const NODES_MIN: u64 = 8;
/// About how many bytes a token has.
const TOKEN_BYTES: u64 = 4;
/// How often nodes are chosen again with a smaller budget, because a text takes more tokens than its parts.
const ROUNDS_MAX: usize = 8;

/// What is asked for.
pub struct BudgetRequest<'a> {
    pub text: &'a str,
    pub shape: BodyShape,
    /// How it shows the text of files: that is kept line by line, in formats from which it can be quoted.
    pub showing: Showing,
    /// Tokens that the result may take, hints included.
    pub budget: u64,
    /// The call that returns what is left out, such as `get_issues(page=2)`. Without one nothing can be left out: a
    /// hint that cannot be acted upon is never given.
    pub signature: Option<&'a str>,
    /// Formats in which the body or its nodes may be written.
    pub formats: &'a [&'a Format],
    /// What these are told.
    pub params: Params,
}

/// A body that fits.
#[derive(Clone, PartialEq, Debug)]
pub struct Fitted {
    /// What is left of it.
    pub text: String,
    /// What that takes.
    pub tokens: u64,
    /// Nodes that are in it.
    pub kept: usize,
    /// Nodes that are not.
    pub elided: usize,
    /// What the kept nodes are worth: characters of a text, leaf values of JSON.
    pub value: u64,
    /// What all nodes are worth.
    pub value_total: u64,
    /// What no choice of nodes within the budget can exceed, as far as the tokens of a text are those of its parts.
    pub upper_bound: u64,
}

impl Fitted {
    /// The share of the upper bound that is missing, 0 to 1.
    pub fn gap(&self) -> f64 {
        if self.upper_bound == 0 { 0.0 } else { (self.upper_bound - self.value) as f64 / self.upper_bound as f64 }
    }
}

/// Why a body cannot be made to fit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unfit {
    /// Something must be left out, and there is no call, in one line, that returns it.
    NoCall,
    /// Even what has to be said takes this many tokens.
    TooSmall(u64),
}

/// The line that stands for what was left out (Paper 2, overflow hint): lines of a text, members and elements of a value.
pub fn overflow(left_out: u64, signature: &str) -> String {
    format!("> [+{left_out} more. call {signature}]\n")
}

/// Writes as much of a body as the budget allows. `count` tells the tokens of a text. An error if not even a hint fits,
/// or nodes must be left out and no call is given.
pub fn fit(request: &BudgetRequest<'_>, count: &mut dyn FnMut(&str) -> u64) -> Result<Fitted, Unfit> {
    let (text, tokens) = request.cheapest(count);
    let outline = request.outline(count);
    if tokens <= request.budget {
        let values: Vec<u64> = outline.parts.iter().filter_map(value).collect();
        let value = values.iter().sum();
        let (kept, elided) = (values.len(), 0);
        return Ok(Fitted { text, tokens, kept, elided, value, value_total: value, upper_bound: value });
    }
    let signature = request.signature.filter(|call| !call.trim().is_empty() && !call.contains(['\n', '\r']));
    let signature = signature.ok_or(Unfit::NoCall)?;
    let graph = Graph::of(&outline, count(&overflow(1, signature)), count);
    let (mut allowed, mut tokens) = (request.budget, longest_path(&graph, Price::highest(&graph)).cost);
    let mut upper_bound = None;
    for _ in 0..ROUNDS_MAX {
        let Some(NodeSelection { kept, value, upper_bound: bound }) = select(&graph, allowed) else { break };
        let bound = *upper_bound.get_or_insert(bound);
        let form = |at: usize| graph.form(at).filter(|_| kept[at]);
        let text = outline.render(&form, &|left_out| overflow(left_out, signature));
        tokens = count(&text);
        if tokens <= request.budget {
            let kept = kept.iter().filter(|kept| **kept).count();
            let elided = graph.classes.len() - kept;
            let value_total = graph.value_total();
            return Ok(Fitted { text, tokens, kept, elided, value, value_total, upper_bound: bound.max(value) });
        }
        allowed = allowed.saturating_sub(tokens - request.budget);
    }
    Err(Unfit::TooSmall(tokens))
}

/// The knapsack of a body by itself, without what hints and heads cost: the forms of every node, and nothing.
pub fn knapsack_of(request: &BudgetRequest<'_>, count: &mut dyn FnMut(&str) -> u64) -> Vec<Vec<Choice>> {
    Graph::of(&request.outline(count), 0, count).classes
}

impl BudgetRequest<'_> {
    /// The whole body in the cheapest form.
    fn cheapest(&self, count: &mut dyn FnMut(&str) -> u64) -> (String, u64) {
        let subject = Subject::new(self.text, self.shape);
        let as_is = (self.text.to_owned(), count(self.text));
        let quotable = Quotable::of(self.text);
        let others = self.formats.iter().filter_map(|format| prove(format, &subject, self.params));
        others.filter(|text| quotable.kept(text).suits(self.showing)).fold(as_is, |best, text| {
            let tokens = count(&text);
            if tokens < best.1 { (text, tokens) } else { best }
        })
    }

    /// The parts that can be left out. The nodes of JSON are written anew, so that a file of it is cut by its lines; no
    /// line of a file is cut, any other only if it does not fit beside a hint.
    fn outline(&self, count: &mut dyn FnMut(&str) -> u64) -> Outline {
        let node_bytes_max = (self.budget.saturating_mul(TOKEN_BYTES) / NODES_MIN) as usize;
        let is_file = self.showing != Showing::Nothing;
        let hint = count(&overflow(lines_in(self.text), self.signature.unwrap_or_default()));
        let line_tokens_max = if is_file { u64::MAX } else { self.budget.saturating_sub(hint) };
        let cut = OutlineRules { node_bytes_max, line_tokens_max, formats: self.formats, params: self.params };
        let shape = if is_file && self.shape.is_json() { BodyShape::NumberedList } else { self.shape };
        Outline::of(self.text, shape, &cut, count)
    }
}

fn value(part: &OutlinePart) -> Option<u64> {
    if let OutlinePart::Node(node) = part { Some(node.value) } else { None }
}
