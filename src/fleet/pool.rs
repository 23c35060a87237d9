//! From contributions to what may be published: batches of people, the counts that stand on enough of them, and nothing
//! that the difference of two counts would give away.

use std::collections::{BTreeMap, BTreeSet};

use crate::fleet::folder::{FolderContents, PooledFile};
use crate::fleet::limits::FleetLimits;
use crate::fleet::measure::{
    BASELINE, BinForm, COLUMNS, DISTANCE, EDGE, ENDPOINT, INNER_FORMAT, LATENCY, POLICY_TOKENS, REPEATS, SENT,
    SESSIONS, TOOL, WHAT_IF, of_kind, weight_of,
};
use crate::fleet::roster::{self, Batch, Roster};
use crate::fleet::standing::{ByPerson, absorb, differs_enough, gathered, joined, leaves_enough, stands, taken_back};
use crate::frames::contribution::{Count, CountSubject, Pool, PooledCount};

/// What was pooled, and what was not.
#[derive(Debug, Default)]
pub struct Pooled {
    /// What may be published.
    pub pool: Pool,
    /// The batches, those of this run included: to be kept before anything is published.
    pub roster: Roster,
    /// Of each week the people pooled and the people who wait for more.
    pub weeks: BTreeMap<String, (u64, u64)>,
    /// Subjects of all weeks that are told, and that are not.
    pub subjects: (u64, u64),
    /// Things to tell.
    pub notes: Vec<String>,
}

/// Pools what folders hold.
pub fn pooled(held: &FolderContents, secret: String, limits: &FleetLimits) -> Pooled {
    let mut out = Pooled { roster: held.roster.clone(), ..Pooled::default() };
    out.roster.schema_version = roster::SCHEMA_VERSION;
    out.pool.secret = secret;
    let weeks: BTreeSet<&String> = held.given.keys().map(|(week, _)| week).collect();
    for week in weeks {
        let given: BTreeMap<&str, &PooledFile> = held
            .given
            .values()
            .filter(|given| given.week == **week)
            .map(|given| (given.user.as_str(), given))
            .collect();
        out.week(week, &given, limits);
    }
    out.pool.rows.sort();
    out
}

impl Pooled {
    fn week(&mut self, week: &str, given: &BTreeMap<&str, &PooledFile>, limits: &FleetLimits) {
        let digest = |given: &PooledFile| (given.user.clone(), given.digest.clone());
        let there: Batch = given.values().map(|given| digest(given)).collect();
        let spent: BTreeSet<String> = self.roster.spent(week).into_iter().map(str::to_owned).collect();
        let fresh: Batch = there.clone().into_iter().filter(|(user, _)| !spent.contains(user)).collect();
        let is_batch = fresh.len() as u64 >= limits.people_min;
        let waiting = if is_batch { 0 } else { fresh.len() as u64 };
        if is_batch {
            self.roster.weeks.entry(week.to_owned()).or_default().push(fresh);
        }
        let batches = self.roster.weeks.get(week).cloned().unwrap_or_default();
        let overlapping = self.roster.overlapping(week);
        let mut people = 0;
        for (number, batch) in (0..).zip(batches) {
            if overlapping.contains(&number) {
                self.notes.push(format!(
                    "week={week}: a batch of {} people is left out: some of them are in another batch, which another roster \
                     tells of, and the difference of the two would tell of few",
                    batch.len()
                ));
                continue;
            }
            let gone = batch.iter().filter(|(user, digest)| there.get(*user) != Some(*digest));
            let gone: Vec<&str> = gone.map(|(user, _)| user.as_str()).collect();
            if gone.is_empty() {
                people += batch.len() as u64;
                let given: Vec<&PooledFile> =
                    batch.keys().filter_map(|user| given.get(user.as_str()).copied()).collect();
                self.batch(week, number, &given, limits);
            } else {
                self.notes.push(format!(
                    "week={week}: {} people who were pooled together are left out: what {} gave is gone or changed, and \
                     without it the difference to the earlier pool would tell of few",
                    batch.len(),
                    gone.join(", ")
                ));
            }
        }
        self.weeks.insert(week.to_owned(), (people, waiting));
    }

    /// Adds the rows of a batch of people.
    fn batch(&mut self, week: &str, number: u32, given: &[&PooledFile], limits: &FleetLimits) {
        let cells = cells(given);
        let told = told(&cells, limits);
        self.subjects.0 += told.len() as u64;
        self.subjects.1 += (cells.len() - told.len()) as u64;
        for subject in &told {
            let whole = Whole { of: &cells[*subject], tool: tool_of(subject).and_then(|tool| cells.get(&tool)) };
            for (measure, bin, counts, people) in whole.rows(subject, limits) {
                let count = counts.values().sum();
                let count = Count { subject: (*subject).clone(), measure: measure.to_owned(), bin, count };
                self.pool.rows.push(PooledCount { week: week.to_owned(), batch: number, count, people });
            }
        }
    }
}

/// Counts by person of one subject, by measure and bin.
type CountsByPerson = BTreeMap<String, BTreeMap<u32, ByPerson>>;

fn cells(given: &[&PooledFile]) -> BTreeMap<CountSubject, CountsByPerson> {
    let mut out: BTreeMap<CountSubject, CountsByPerson> = BTreeMap::new();
    for (person, given) in (0_u32..).zip(given) {
        for (subject, counts) in &given.counts {
            let cells = out.entry(subject.clone()).or_default();
            for ((measure, bin), count) in counts {
                cells.entry(measure.clone()).or_default().entry(*bin).or_default().insert(person, *count);
            }
        }
    }
    out
}

/// The measure by which people are weighed.
fn weight<'c>(subject: &CountSubject, cells: &'c CountsByPerson) -> Option<&'c ByPerson> {
    cells.get(weight_of(&subject.kind)?)?.get(&0)
}

/// The subjects that are told: they stand on enough people, and so does what they leave of the whole they are a part of.
fn told<'c>(cells: &'c BTreeMap<CountSubject, CountsByPerson>, limits: &FleetLimits) -> BTreeSet<&'c CountSubject> {
    // What another setting comes to is a share of what was: both or none.
    let has_share = |subject: &CountSubject, cells: &CountsByPerson| {
        let policy = || cells.get(POLICY_TOKENS)?.get(&0).zip(weight(subject, cells));
        let is_share = |(policy, log)| stands(policy, limits) && differs_enough(log, policy, limits);
        subject.kind != WHAT_IF || policy().is_some_and(is_share)
    };
    let is_told = |subject: &CountSubject, cells: &CountsByPerson| {
        weight(subject, cells).is_some_and(|counts| stands(counts, limits)) && has_share(subject, cells)
    };
    let mut told: BTreeSet<&CountSubject> =
        cells.iter().filter(|(subject, cells)| is_told(subject, cells)).map(|(subject, _)| subject).collect();
    // No edge is told without the steps that it is a share of.
    let has_whole = |told: &BTreeSet<&CountSubject>, subject: &CountSubject| {
        subject.kind != EDGE || told.contains(&tool(&subject.name))
    };
    let whole = told.clone();
    told.retain(|subject| has_whole(&whole, subject));
    for tool in whole.iter().filter(|subject| subject.kind == TOOL) {
        let Some(steps) = weight(tool, &cells[*tool]) else { continue };
        let endpoints = |subject: &&&CountSubject| subject.kind == ENDPOINT && subject.other == tool.name;
        take_back(&mut told, cells, steps, limits, endpoints);
        for lag in &limits.lags {
            let edges =
                |subject: &&&CountSubject| subject.kind == EDGE && subject.name == tool.name && subject.lag == *lag;
            take_back(&mut told, cells, steps, limits, edges);
        }
    }
    told
}

fn tool(name: &str) -> CountSubject {
    CountSubject { kind: TOOL.to_owned(), name: name.to_owned(), ..CountSubject::default() }
}

/// The tool whose sessions those of a subject are a part of.
fn tool_of(subject: &CountSubject) -> Option<CountSubject> {
    match subject.kind.as_str() {
        ENDPOINT => Some(tool(&subject.other)),
        EDGE => Some(tool(&subject.name)),
        _ => None,
    }
}

fn take_back(
    told: &mut BTreeSet<&CountSubject>,
    cells: &BTreeMap<CountSubject, CountsByPerson>,
    whole: &ByPerson,
    limits: &FleetLimits,
    is_part: impl Fn(&&&CountSubject) -> bool,
) {
    let parts: Vec<&CountSubject> = told.iter().filter(is_part).copied().collect();
    let counts: Vec<&ByPerson> = parts.iter().filter_map(|part| weight(part, &cells[*part])).collect();
    for at in taken_back(whole, &counts, limits) {
        told.remove(parts[at]);
    }
}

/// What the rows of a subject are parts of.
struct Whole<'c> {
    of: &'c CountsByPerson,
    tool: Option<&'c CountsByPerson>,
}

impl Whole<'_> {
    /// The rows of a subject that stand: measure, bin, counts, people. A number that nobody has is told as 0 of them all.
    fn rows(&self, subject: &CountSubject, limits: &FleetLimits) -> Vec<(&'static str, u32, ByPerson, i64)> {
        let everybody = weight(subject, self.of).map_or(0, |counts| counts.len() as i64);
        let mut out = Vec::new();
        for &(measure, form) in of_kind(&subject.kind) {
            let mut bins = self.of.get(measure).cloned().unwrap_or_default();
            if form == BinForm::Number && bins.is_empty() {
                out.push((measure, 0, ByPerson::new(), everybody));
                continue;
            }
            if let Some(whole) = self.whole_of(subject, measure) {
                keep_parts(&mut bins, measure, whole, limits);
            }
            let told = match form {
                BinForm::Number => bins.into_iter().filter(|(_, counts)| stands(counts, limits)).collect(),
                BinForm::Histogram => joined(&bins, limits),
                BinForm::Category(_) => gathered(&bins, limits),
            };
            out.extend(told.into_iter().map(|(bin, counts)| {
                let people = counts.len() as i64;
                (measure, bin, counts, people)
            }));
        }
        out
    }

    /// What a measure of a subject counts some of.
    fn whole_of(&self, subject: &CountSubject, measure: &str) -> Option<&ByPerson> {
        match measure {
            REPEATS | DISTANCE | COLUMNS | LATENCY | INNER_FORMAT => weight(subject, self.of),
            SENT => self.of.get(BASELINE)?.get(&0),
            SESSIONS => self.tool?.get(SESSIONS)?.get(&0),
            _ => None,
        }
    }
}

/// Drops what would leave too little of its whole: a format by itself, since a response can have several, and all others as
/// one.
fn keep_parts(bins: &mut BTreeMap<u32, ByPerson>, measure: &str, whole: &ByPerson, limits: &FleetLimits) {
    if measure == INNER_FORMAT {
        return bins.retain(|_, counts| leaves_enough(whole, &[counts], limits));
    }
    let mut all = ByPerson::new();
    bins.values().for_each(|counts| absorb(&mut all, counts));
    if !leaves_enough(whole, &[&all], limits) {
        bins.clear();
    }
}
