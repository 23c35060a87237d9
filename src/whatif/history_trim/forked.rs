//! What a conversation that is forked off goes on with, kept until it begins. Its lists share what stood at the fork before:
//! a thread may be forked off at each of its requests.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::whatif::history_trim::ChainHistory;
use crate::whatif::history_trim::conversation::Conversation;
use crate::whatif::history_trim::outcome::Before;
use crate::whatif::history_trim::plan::{MessageFate, Sticky, TrimPlan};
use crate::whatif::sim::shared_list::SharedList;
use crate::whatif::sim::view::Item;

/// A [`ChainHistory`] without what is found anew in the first context of a fork.
#[derive(Clone)]
pub(super) struct ForkedHistory {
    read: SharedList<Item>,
    sticky: Sticky,
    before: Option<KeptBefore>,
    plain: SharedList<Item>,
    orphans: Rc<BTreeSet<u32>>,
}

/// A [`Before`].
#[derive(Clone)]
struct KeptBefore {
    /// Without its fates.
    plan: TrimPlan,
    fates: SharedList<MessageFate>,
    items: SharedList<Item>,
}

impl ForkedHistory {
    /// What stands now. `last` is what was kept last.
    pub(super) fn of(history: &ChainHistory, last: Option<&Self>) -> Self {
        let last_before = last.and_then(|last| last.before.as_ref());
        Self {
            read: SharedList::new(history.conversation.items(), last.map(|last| &last.read)),
            sticky: history.sticky.clone(),
            before: history.before.as_ref().map(|before| KeptBefore::of(before, last_before)),
            plain: SharedList::new(&history.plain, last.map(|last| &last.plain)),
            orphans: Rc::clone(&history.orphans),
        }
    }

    /// The history that a fork begins with.
    pub(super) fn history(self) -> ChainHistory {
        ChainHistory {
            conversation: Conversation::unread(self.read.to_vec()),
            sticky: self.sticky,
            before: self.before.map(KeptBefore::before),
            plain: self.plain.to_vec(),
            orphans: self.orphans,
            ..ChainHistory::default()
        }
    }
}

impl KeptBefore {
    fn of(before: &Before, last: Option<&Self>) -> Self {
        let TrimPlan { fates, boundary, is_continuation } = &before.plan;
        Self {
            plan: TrimPlan { fates: Vec::new(), boundary: *boundary, is_continuation: *is_continuation },
            fates: SharedList::new(fates, last.map(|last| &last.fates)),
            items: SharedList::new(&before.items, last.map(|last| &last.items)),
        }
    }

    fn before(self) -> Before {
        Before { plan: TrimPlan { fates: self.fates.to_vec(), ..self.plan }, items: self.items.to_vec() }
    }
}
