//! The planner of Paper 3 as it was published, to compare with. Its probability only gates, it knows no arguments,
//! and whatever is not over the budget is admitted.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use crate::planner::numbers::PlannerThresholds;
use crate::planner::plan::{ExpectedCost, worth};
use crate::planner::value_models::{ValueModel, ValueModels};
use crate::settings::tool_model::{SideEffectClass, ToolModel, ValueClass};

/// A call that it would make.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedCall {
    pub tool: String,
    /// Expected size. Bookkeeping is reported but not charged.
    pub cost: ExpectedCost,
    pub class: ValueClass,
}

/// What it would do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PublishedPlan {
    /// Calls in order of admission.
    pub calls: Vec<PublishedCall>,
    pub remaining_budget_tokens: u64,
    /// Tools over the budget; it knows no other reason.
    pub over_budget: Vec<String>,
}

/// Builds the published plan. `recent` are the tools called so far, oldest first; its host passes the last
/// `published.recent_tools_max`. Links below `probability_min` are dropped.
pub fn plan(
    models: &ValueModels,
    recent: &[&str],
    budget_tokens: u32,
    probability_min: f64,
    numbers: &PlannerThresholds,
) -> PublishedPlan {
    let default = ToolModel::default();
    let mut open: Vec<(f64, PublishedCall)> = targets(models, recent, probability_min)
        .into_iter()
        .map(|tool| {
            let model = models.get(tool).map_or(&default, |found| &found.model);
            let cost = ExpectedCost::of(&model.cost_model, numbers.published.bytes_per_token.into());
            let class = model.value_class;
            // Its host passes no words of the user.
            let worth = worth(model, [], numbers);
            let density =
                if class == ValueClass::AuditOnly { f64::INFINITY } else { worth / cost.tokens.max(1) as f64 };
            (density, PublishedCall { tool: tool.to_owned(), cost, class })
        })
        .collect();
    // Stable: among equals the alphabet decides.
    open.sort_by(|(a, _), (b, _)| b.partial_cmp(a).unwrap_or(Ordering::Equal));
    let mut plan = PublishedPlan { remaining_budget_tokens: budget_tokens.into(), ..PublishedPlan::default() };
    for (_, call) in open {
        let charged = call.cost.charged(call.class);
        if charged > plan.remaining_budget_tokens {
            plan.over_budget.push(call.tool);
            continue;
        }
        plan.remaining_budget_tokens -= charged;
        plan.calls.push(call);
    }
    plan
}

/// Whether its host would call the tool ahead: an explicit `speculate` beats the class, even a mutating one.
pub fn is_speculatable(model: &ToolModel) -> bool {
    let by_class = matches!(model.side_effect_class, SideEffectClass::Pure | SideEffectClass::ReadOnly);
    model.speculate.unwrap_or(by_class)
}

/// The targets of likely links, of the recent tools none.
fn targets<'m>(models: &'m ValueModels, recent: &[&str], probability_min: f64) -> BTreeSet<&'m str> {
    let links = recent.iter().filter_map(|tool| models.get(tool)).flat_map(ValueModel::links);
    // The published fields are single-precision numbers.
    let likely = links.filter(|link| link.probability as f32 >= probability_min as f32);
    likely.map(|link| link.tool.as_str()).filter(|tool| !recent.contains(tool)).collect()
}
