//! Which files belong together: only within a family does one file repeat, answer or go on from what another says.

use std::collections::BTreeMap;

use crate::base::id::{Id, IdMap};
use crate::logs::timeline::assemble::SourceTimeline;
use crate::logs::timeline::rows::{RecordKind, TimelineRows};

/// The families, each with its files in their order; those whose first files come first come first.
pub fn families(sources: Vec<SourceTimeline>) -> Vec<Vec<SourceTimeline>> {
    let mut kin = Kinship { parents: (0..sources.len() as u32).collect(), seen: IdMap::default() };
    for (file, source) in (0..).zip(&sources) {
        kin.meet_all(file, source);
    }
    kin.seen = IdMap::default();
    let mut families: BTreeMap<u32, Vec<SourceTimeline>> = BTreeMap::new();
    for (file, source) in (0..).zip(sources) {
        families.entry(kin.first(file)).or_default().push(source);
    }
    families.into_values().collect()
}

struct Kinship {
    /// By file: an earlier one of its family, or itself.
    parents: Vec<u32>,
    /// By the first half of each id: a file that has it. Where two halves are equal by chance, a family is larger than it need
    /// be.
    seen: IdMap<u64, u32>,
}

impl Kinship {
    /// Takes down all by which a file may be known to another: sessions, agents, records, messages and calls.
    fn meet_all(&mut self, file: u32, source: &SourceTimeline) {
        let TimelineRows { chains, sessions, agents, stated_costs, records, outside, blocks, .. } = &source.file.rows;
        self.meet(file, &source.key);
        // Files that name no session may speak of the same agents.
        chains.iter().for_each(|key| self.meet(file, &key.session));
        let named = chains.iter().map(|key| &key.agent).chain(sessions.iter().map(|row| &row.id));
        let named = named.chain(agents.iter().flat_map(|row| [&row.agent, &row.session]));
        let named = named.chain(stated_costs.iter().map(|row| &row.session)).chain(outside);
        let answers = records.iter().filter_map(|row| match &row.kind {
            RecordKind::Answer(answer) => Some(&answer.message),
            _ => None,
        });
        let named = named.chain(records.iter().map(|row| &row.id)).chain(answers);
        let named = named.chain(blocks.iter().map(|row| &row.call));
        named.filter(|id| id.is_some()).for_each(|id| self.meet(file, id));
    }

    fn meet(&mut self, file: u32, id: &Id) {
        let half = id.0.first_chunk().map_or(0, |half| u64::from_le_bytes(*half));
        let other = *self.seen.entry(half).or_insert(file);
        if other != file {
            let [one, other] = [self.first(file), self.first(other)];
            self.parents[one.max(other) as usize] = one.min(other);
        }
    }

    /// The first file of a family.
    fn first(&mut self, mut file: u32) -> u32 {
        while self.parents[file as usize] != file {
            // Half of the way is saved to whoever comes next.
            let above = self.parents[self.parents[file as usize] as usize];
            self.parents[file as usize] = above;
            file = above;
        }
        file
    }
}
