//! The formulas of the rule with the numbers of its parameters, to be read by people.

use crate::whatif::history_trim::caps::cap_at;
use crate::whatif::history_trim::caps::{Caps, base, crowd_share};
use crate::whatif::history_trim::outcome::{CapExample, WorkedCaps};
use crate::whatif::history_trim::params::Fidelity;
use crate::whatif::history_trim::plan::{Rule, UNLIMITED};

impl Rule {
    /// How the caps come about on a request that continues no chain of tool calls.
    pub fn worked(&self) -> WorkedCaps {
        let (params, numbers) = (&self.params, &self.sheet.caps);
        let (budget, base) = base(numbers, params.max_history_tokens);
        let set = [
            ("old_message_max_tokens", params.old_message_max_tokens),
            ("oldest_message_max_tokens", params.oldest_message_max_tokens),
            ("old_tool_result_max_tokens", params.old_tool_result_max_tokens),
            ("oldest_tool_result_max_tokens", params.oldest_tool_result_max_tokens),
        ];
        WorkedCaps {
            numbers: numbers.clone(),
            budget,
            base,
            examples: self.sheet.report.explain_old_messages.iter().map(|&old| self.example(old)).collect(),
            set: set.into_iter().filter(|(_, tokens)| *tokens > 0).collect(),
            tokens_max: Some(params.max_history_tokens).filter(|tokens| *tokens < UNLIMITED),
            spares_protected: params.fidelity == Fidelity::Sane,
            continuations_apart: params.treats_continuations_apart(),
        }
    }

    fn example(&self, old_messages: u32) -> CapExample {
        let (numbers, old) = (&self.sheet.caps, old_messages as usize);
        let caps = Caps::new(numbers, self.params.max_history_tokens, old, self.params.overrides());
        let middle = old_messages / 2;
        CapExample {
            old_messages,
            share: crowd_share(numbers, old),
            message_near: caps.message_near,
            message_oldest: caps.message_oldest,
            tool_near: caps.tool_near,
            tool_oldest: caps.tool_oldest,
            middle: (middle, cap_at(caps.message_near, caps.message_oldest, middle as usize, old)),
        }
    }
}
