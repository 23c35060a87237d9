//! The control: what a planner hits that fetches what somebody else's answer listed.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use crate::base::id::Id;
use crate::base::names::Sym;
use crate::logs::history::History;
use crate::planner::opportunities::Opportunity;

/// Values by link and project.
type Pools = BTreeMap<(Sym, u16), BTreeMap<Option<Id>, Vec<(u32, u64)>>>;

/// Values that the answers of all sessions offered, each with its session.
#[derive(Debug, Default)]
pub struct Donors {
    pools: Pools,
    projects: Vec<Id>,
}

impl Donors {
    /// Collects what the links were offered.
    pub fn new(history: &History, moments: &[Opportunity]) -> Self {
        let projects: Vec<Id> = history.sessions.iter().map(|session| session.project).collect();
        let mut pools = Pools::new();
        for moment in moments {
            let pool = pools.entry((moment.from, moment.link)).or_default();
            for project in [Some(projects[moment.session as usize]), None] {
                pool.entry(project).or_default().push((moment.session, moment.value));
            }
        }
        Self { pools, projects }
    }

    /// A value that an answer of another session offered to the same link, of the same project if there is one. Which one
    /// follows from the moment alone; none if no other session was offered any.
    pub fn other(&self, moment: &Opportunity) -> Option<u64> {
        let pool = self.pools.get(&(moment.from, moment.link))?;
        let project = Some(self.projects[moment.session as usize]);
        [project, None].iter().find_map(|project| pick(pool.get(project)?, moment))
    }
}

fn pick(values: &[(u32, u64)], moment: &Opportunity) -> Option<u64> {
    let seed = [u64::from(moment.trigger), u64::from(moment.rank)].map(u64::to_le_bytes).concat();
    let start = (xxh3_64(&seed) % values.len().max(1) as u64) as usize;
    let from_there = values[start..].iter().chain(&values[..start]);
    let mut others = from_there.filter(|(session, value)| *session != moment.session && *value != moment.value);
    others.next().map(|(_, value)| *value)
}
