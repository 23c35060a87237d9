//! What may be called next after a result: one candidate per link and projected argument, and every refusal with its
//! reason.
//!
//! Only links of the tool whose result just came count, since only that result is there to project from. A link back to
//! the same tool is a candidate like any other when its argument is new.

use std::collections::{BTreeMap, BTreeSet};

use crate::mine::runnable::Runnable;
use crate::planner::numbers::PlannerThresholds;
use crate::planner::plan::{ExpectedCost, worth};
use crate::planner::prefetches::DeclineReason;
use crate::planner::value_models::{ValueModel, ValueModels};
use crate::settings::tool_model::{FollowUp, ValueClass};

/// The moment after an answer.
#[derive(Debug, Clone, Copy)]
pub struct AnswerMoment<'a> {
    pub tool: &'a str,
    /// What the agent is after, as words; empty if nobody knows.
    pub intents: &'a BTreeSet<String>,
    /// Arguments that each tool was seen to take. A tool that is not listed may take any.
    pub arguments_seen: &'a BTreeMap<String, BTreeSet<String>>,
    /// Which calls can run with one argument.
    pub runnable: &'a Runnable,
}

/// A call that could be made ahead.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    pub request: CallKey,
    /// Probability that the tool comes next, 0 … 1.
    pub probability: f64,
    /// Probability that it comes with this argument, given that it comes, 0 … 1.
    pub share: f64,
    pub cost: ExpectedCost,
    /// How much its answer matters.
    pub class: ValueClass,
    /// Published worth: class and intent.
    pub worth: f64,
    /// Tools that have to be called before.
    pub requires: Vec<String>,
    /// Its place among what was projected for its link.
    pub rank: usize,
}

impl Candidate {
    /// Tokens that a budget is charged for it.
    pub fn charged_tokens(&self) -> u64 {
        self.cost.charged(self.class)
    }

    /// Worth times the probability of exactly this call.
    pub fn expected_value(&self) -> f64 {
        self.worth * self.probability * self.share
    }
}

/// A call that is not made ahead.
#[derive(Debug, Clone, PartialEq)]
pub struct Declined {
    pub tool: String,
    /// The argument it would have had, where one was found.
    pub argument: Option<NamedArgument>,
    pub reason: DeclineReason,
}

/// What may be called next, and what may not.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Candidates {
    /// Different requests, by tool and argument.
    pub open: Vec<Candidate>,
    /// The rest, in the order of the links.
    pub declined: Vec<Declined>,
}

/// The candidates after an answer; links below `probability_min` are declined. `project` makes arguments out of the
/// answer, best first; as many count as `projection.arguments_max` says.
pub fn candidates(
    models: &ValueModels,
    turn: &AnswerMoment<'_>,
    probability_min: f64,
    numbers: &PlannerThresholds,
    project: &dyn Fn(&FollowUp) -> Vec<Projected>,
) -> Candidates {
    let mut found = CandidateSearch { turn, probability_min, numbers, open: BTreeMap::new(), declined: Vec::new() };
    for link in models.get(turn.tool).into_iter().flat_map(ValueModel::links) {
        let mut projected = project(link);
        projected.truncate(numbers.projection.arguments_max);
        found.link(link, models.get_or_default(&link.tool), projected);
    }
    Candidates { open: found.open.into_values().collect(), declined: found.declined }
}

struct CandidateSearch<'a> {
    turn: &'a AnswerMoment<'a>,
    probability_min: f64,
    numbers: &'a PlannerThresholds,
    open: BTreeMap<CallKey, Candidate>,
    declined: Vec<Declined>,
}

impl CandidateSearch<'_> {
    fn link(&mut self, link: &FollowUp, model: &ValueModel, projected: Vec<Projected>) {
        let probability_min = self.probability_min;
        let objection = |probability: f64| {
            if !model.is_speculatable() {
                Some(DeclineReason::NotSpeculatable)
            } else if probability < probability_min {
                Some(DeclineReason::LowProbability)
            } else {
                None
            }
        };
        if projected.is_empty() {
            let reason = objection(link.probability).unwrap_or(DeclineReason::NoArgument);
            self.declined.push(Declined { tool: link.tool.clone(), argument: None, reason });
        }
        for (rank, projected) in projected.into_iter().enumerate() {
            let of_link = objection(projected.probability.unwrap_or(link.probability));
            // What cannot run is no decline, however improbable it is.
            let lacks = !self.turn.runnable.can_run(&link.tool, &projected.argument.name);
            let of_link = if lacks { Some(DeclineReason::MissingArgument) } else { of_link };
            match of_link.or_else(|| self.objection(&link.tool, &projected.argument)) {
                Some(reason) => {
                    let (tool, argument) = (link.tool.clone(), Some(projected.argument));
                    self.declined.push(Declined { tool, argument, reason });
                }
                None => self.offer(link, model, projected, rank),
            }
        }
    }

    fn objection(&self, tool: &str, argument: &NamedArgument) -> Option<DeclineReason> {
        let seen = self.turn.arguments_seen.get(tool);
        seen.is_some_and(|names| !names.contains(&argument.name)).then_some(DeclineReason::UnknownArgument)
    }

    /// Of two links to the same request the one that makes it likelier counts.
    fn offer(&mut self, link: &FollowUp, model: &ValueModel, projected: Projected, rank: usize) {
        let request = CallKey { tool: link.tool.clone(), argument: projected.argument };
        let intents = self.turn.intents.iter().map(String::as_str).filter(|word| !word.is_empty());
        let share = if projected.share.is_nan() { 0.0 } else { projected.share.clamp(0.0, 1.0) };
        let candidate = Candidate {
            probability: projected.probability.unwrap_or(link.probability),
            share,
            cost: ExpectedCost::of(&model.model.cost_model, self.numbers.published.bytes_per_token.into()),
            class: model.model.value_class,
            worth: worth(&model.model, intents, self.numbers),
            requires: model.requires.clone(),
            rank,
            request: request.clone(),
        };
        let known = self.open.entry(request).or_insert_with(|| candidate.clone());
        if candidate.probability * candidate.share > known.probability * known.share {
            *known = candidate;
        }
    }
}

/// A named argument and its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NamedArgument {
    /// Name of the argument on the tool that is called.
    pub name: String,
    /// Hash of the canonical text that it is set to (paths normalised, numbers in digits); the text is gone.
    pub value: u64,
}

impl NamedArgument {
    /// An argument.
    pub fn new(name: impl Into<String>, value: u64) -> Self {
        Self { name: name.into(), value }
    }
}

/// A call: equal requests get equal answers as long as nothing changes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallKey {
    /// Live name of the tool.
    pub tool: String,
    pub argument: NamedArgument,
}

/// An argument made out of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Projected {
    pub argument: NamedArgument,
    /// Probability that it is this one, given that the tool comes next, 0 … 1.
    pub share: f64,
    /// Probability of exactly this call, where more is known than the link says; then the share is 1.
    pub probability: Option<f64>,
}

impl Projected {
    /// An argument with the probability of exactly this call.
    pub fn certain(argument: NamedArgument, probability: f64) -> Self {
        Self { argument, share: 1.0, probability: Some(probability) }
    }

    /// Arguments of which nobody knows which is likelier: they share the probability evenly.
    pub fn evenly(arguments: Vec<NamedArgument>) -> Vec<Self> {
        let share = 1.0 / arguments.len().max(1) as f64;
        arguments.into_iter().map(|argument| Self { argument, share, probability: None }).collect()
    }
}
