//! From cases to findings: every case is looked at as a whole, by project, by model and by size of context, each with its
//! interval over sessions. All these looks are corrected together, so that few of those that are told are chance; what nowhere
//! holds is not told.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::base::bootstrap::{TAIL, sum_interval};
use crate::base::names::Sym;
use crate::cost::findings::lately::{self, SeenLast};
use crate::cost::findings::levers::{Assignment, LeverAdvice, Repair};
use crate::cost::findings::{Advice, BillEvidence, Case, FindingBasis, Made, cases};
use crate::cost::groups::{CostKey, Dates};
use crate::logs::trace::NO_TIME;
use crate::report::numbers::thousands;
use crate::whatif::sim::cells::{Cell, CellJudge, RequestParts, correct};
use crate::whatif::sim::figures::CostVerdict;

/// A change that saves money, and where.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct BillFinding {
    pub id: String,
    /// What happens, in plain words.
    pub what: String,
    /// What to do about it; `{parts}` stands for the names of the parts where it holds. Where something is `to_set`, it is
    /// known once that is settled, and so is what follows.
    pub advice: String,
    /// What is to be set, whichever clients are in use.
    pub to_set: Option<LeverAdvice>,
    /// The client version that repairs it, whichever clients are in use.
    pub repair: Option<Repair>,
    /// What to update before a client knows what is to be set.
    pub update: Option<String>,
    /// What is to be set, if it is one setting for everything.
    pub sets: Vec<Assignment>,
    /// The same where it is to be set for the parts alone in which it holds.
    pub part_sets: Vec<Assignment>,
    /// What has spared it since, where it is set by now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spared_by: Vec<Assignment>,
    /// The last session that shows it.
    pub seen_last: Option<SeenLast>,
    /// Arguments of the command that its figures come from.
    pub source: Vec<String>,
    pub basis: FindingBasis,
    /// How often it happened where it holds.
    pub count: u64,
    pub breaks: Option<String>,
    /// Whether something follows from it.
    pub is_actionable: bool,
    /// Dollars of the input where it holds.
    pub before_usd: f64,
    /// Dollars that are saved there.
    pub saved_usd: f64,
    /// Lower end of the 95 % interval of that over sessions.
    pub lower_usd: f64,
    pub upper_usd: f64,
    /// Sessions where it holds.
    pub sessions: u64,
    /// Where it holds: the whole logs, or parts of them.
    pub scope: FindingScope,
    /// Parts of the logs that have most of it.
    pub mostly: Vec<FindingPart>,
    /// Projects in which it costs more.
    pub except: Vec<String>,
    /// Dollars that are saved, by project, for a table of all.
    pub by_project: BTreeMap<String, f64>,
    /// Everything that was looked at: the whole, parts, and those together that it is told of.
    pub looks: Vec<Looked>,
    /// Sessions that have most of it.
    pub largest: Vec<InSession>,
    /// How long somebody waited, where that is long.
    pub waited: Option<Waited>,
    /// What the names in `made_of` are.
    pub made_by: Vec<String>,
    /// What it is made of, where it holds.
    pub made_of: Vec<Made>,
}

impl BillFinding {
    /// The project that it is told of alone; none where it is told of more, or of other parts.
    pub fn project(&self) -> Option<&String> {
        match &self.scope {
            FindingScope::Parts(by, names) if by == "project" && names.len() == 1 => names.first(),
            _ => None,
        }
    }
}

/// Time that somebody waited.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Waited {
    pub seconds: f64,
    /// On a day with requests.
    pub seconds_a_day: f64,
    /// Lower end of its 95 % interval over sessions.
    pub lower: f64,
    pub upper: f64,
}

/// The whole or a part of the logs, with what the case comes to there.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Looked {
    /// `project`, `model`, `context`, `all`; `together` for several of one kind.
    pub by: String,
    /// Pseudonym, model, range of tokens.
    pub name: String,
    pub sessions: u64,
    /// How often it happened there.
    pub count: u64,
    /// Dollars there.
    pub before_usd: f64,
    /// Dollars that are saved.
    pub saved_usd: f64,
    /// Both ends of its 95 % interval over sessions; none with too few of them.
    pub interval_usd: Option<(f64, f64)>,
    /// Whether it is beyond chance, and which way.
    pub verdict: CostVerdict,
}

/// What a case comes to in one session.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct InSession {
    /// Pseudonym of the session.
    pub session: String,
    /// Pseudonym of its project.
    pub project: String,
    /// How often it happened.
    pub count: u64,
    /// Dollars.
    pub before_usd: f64,
    /// Dollars that are saved.
    pub saved_usd: f64,
}

/// Where a finding holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingScope {
    Everywhere,
    /// In parts of one kind only: `project`, `model`, `context`, and their names.
    Parts(String, Vec<String>),
}

/// A part with its share of what is saved.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct FindingPart {
    /// `project`, `model` or `context`.
    pub by: String,
    /// Pseudonym, model, range of tokens.
    pub name: String,
    /// Share of what is saved in all.
    pub share: f64,
}

/// One look at a case.
struct Look {
    whole: Cell,
    parts: Vec<Cell>,
}

/// What holds, the most valuable first.
pub fn findings(evidence: &BillEvidence<'_>) -> Vec<BillFinding> {
    let cases = cases(evidence);
    let mut looks: Vec<Option<Look>> = cases.par_iter().map(|case| look(evidence, case)).collect();
    let all = looks.iter_mut().flatten().flat_map(|look| std::iter::once(&mut look.whole).chain(&mut look.parts));
    correct(all, &evidence.workload.cells);
    let places = RequestParts::of(&evidence.workload.timeline, &evidence.workload.cells);
    let looked_at = cases.par_iter().zip(&looks);
    let found = looked_at.filter_map(|(case, look)| finding(evidence, &places, case, look.as_ref()?));
    let mut findings: Vec<BillFinding> = found.collect();
    let ids: BTreeSet<String> = findings.iter().map(|finding| finding.id.clone()).collect();
    let beside: BTreeMap<&str, &Option<String>> = cases.iter().map(|case| (case.id.as_str(), &case.unless)).collect();
    findings.retain(|finding| !beside[finding.id.as_str()].as_ref().is_some_and(|other| ids.contains(other)));
    findings.sort_by(|a, b| {
        let value = b.saved_usd.total_cmp(&a.saved_usd);
        b.is_actionable.cmp(&a.is_actionable).then(value).then_with(|| a.id.cmp(&b.id))
    });
    findings
}

/// What the bill shows is not off it, and counts however little it is.
fn judge<'e>(evidence: &BillEvidence<'e>, case: &Case) -> CellJudge<'e> {
    let rules = &evidence.workload.cells;
    match case.basis {
        FindingBasis::Replayed => {
            CellJudge { rules, apart: Some(evidence.apart), least: evidence.workload.winner_percent_min / 100.0 }
        }
        FindingBasis::Billed | FindingBasis::Shared | FindingBasis::Priced => {
            CellJudge { rules, apart: None, least: 0.0 }
        }
    }
}

fn look(evidence: &BillEvidence<'_>, case: &Case) -> Option<Look> {
    let judge = judge(evidence, case);
    let whole = judge.whole(&case.sides)?;
    Some(Look { whole, parts: judge.cells(&evidence.workload.timeline, &case.sides) })
}

/// Kinds of parts in the order in which they are told: a setting can be made for a project, a habit for the others.
const KINDS: [&str; 3] = ["project", "model", "context"];

fn finding(evidence: &BillEvidence<'_>, places: &RequestParts<'_>, case: &Case, look: &Look) -> Option<BillFinding> {
    let waited = waited(evidence, case);
    let (scope, cell, inside) = scope(evidence, places, case, look, waited.is_some())?;
    if lately::is_over(evidence, case, &inside) {
        return None;
    }
    let saved_usd = cell.saved_usd(cell.change);
    let is_large = cell.in_money && saved_usd >= evidence.thresholds.share_min * evidence.billed_usd;
    if !is_large && waited.is_none() {
        return None;
    }
    let count = inside.iter().filter_map(|key| case.counts.get(key)).sum();
    let is_whole = scope == FindingScope::Everywhere;
    let projects = look.parts.iter().filter(|part| part.by == "project" && part.in_money);
    let in_parts = match &scope {
        FindingScope::Parts(by, _) => case.advice_in.get(by.as_str()),
        FindingScope::Everywhere => None,
    };
    let (advice, to_set) = match in_parts.unwrap_or(&case.advice) {
        Advice::Do(words) => (words.clone(), None),
        Advice::Set(lever) => (String::new(), Some(lever.clone())),
    };
    let what = case.what_uncounted.as_ref().filter(|_| count == 0).unwrap_or(&case.what);
    Some(BillFinding {
        id: case.id.clone(),
        what: what.replace("{count}", &thousands(count)),
        advice,
        to_set,
        repair: case.repair.clone(),
        update: None,
        sets: Vec::new(),
        part_sets: Vec::new(),
        spared_by: case.spared_by.clone(),
        seen_last: lately::seen_last(evidence, case, &inside),
        source: case.source.clone(),
        basis: case.basis,
        count,
        breaks: case.breaks.told(&inside),
        is_actionable: case.is_actionable,
        before_usd: cell.before.nano_usd as f64 / 1e9,
        saved_usd,
        lower_usd: at_least(case.basis, cell.saved_usd(cell.upper.unwrap_or_default())),
        upper_usd: cell.saved_usd(cell.lower.unwrap_or_default()),
        sessions: cell.sessions,
        mostly: if is_whole { look.mostly(saved_usd, evidence.thresholds.most_share) } else { Vec::new() },
        except: look.clear("project", CostVerdict::MoreExpensive).map(|part| part.name.clone()).collect(),
        by_project: projects.map(|part| (part.name.clone(), part.saved_usd(part.change))).collect(),
        looks: looks(places, case, look, &scope, &cell),
        largest: largest(evidence, case, &inside),
        waited,
        made_by: case.made_of.kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        made_of: case.made_of.rows(&inside),
        scope,
    })
}

impl Look {
    /// Parts of a kind that are cheaper, or more expensive, beyond chance.
    fn clear(&self, by: &str, verdict: CostVerdict) -> impl Iterator<Item = &Cell> {
        self.parts.iter().filter(move |part| part.by == by && part.verdict == verdict && part.in_money)
    }

    /// Of every kind the part that has most of what is saved, if it is as much as `least`.
    fn mostly(&self, saved_usd: f64, least: f64) -> Vec<FindingPart> {
        let saved_in = |part: &Cell| part.saved_usd(part.change);
        let mostly = KINDS.iter().filter_map(|by| {
            let most = self.clear(by, CostVerdict::Cheaper).max_by(|a, b| saved_in(a).total_cmp(&saved_in(b)))?;
            let share = saved_in(most) / saved_usd;
            let (by, name) = ((*by).to_owned(), most.name.clone());
            (share >= least).then(|| FindingPart { by, name, share: share.min(1.0) })
        });
        mostly.collect()
    }
}

/// The time that somebody waited, if it is long.
fn waited(evidence: &BillEvidence<'_>, case: &Case) -> Option<Waited> {
    let waits = case.waits.as_ref()?;
    let timeline = &evidence.workload.timeline;
    let rules = &evidence.workload.cells;
    let mut dates = Dates::default();
    let mut days: BTreeSet<String> = BTreeSet::new();
    for start in timeline.counted().map(|(_, one)| one.start).filter(|start| *start != NO_TIME) {
        let day = dates.of(start, CostKey::Day);
        if !days.contains(day) {
            days.insert(day.to_owned());
        }
    }
    let seconds: Vec<f64> = waits.by_session.values().map(|millis| *millis as f64 / 1e3).collect();
    let total: f64 = seconds.iter().sum();
    let sessions = timeline.counted_sessions().len();
    let (lower, upper) = sum_interval(&seconds, sessions, &rules.resampling, TAIL)?;
    let a_day = |seconds: f64| seconds / days.len().max(1) as f64;
    let enough = sessions as u64 >= rules.sessions_min;
    (enough && a_day(lower) >= waits.seconds_a_day_min).then(|| Waited {
        seconds: total,
        seconds_a_day: a_day(total),
        lower: a_day(lower),
        upper: a_day(upper),
    })
}

/// The lower end of an interval: what was billed is nowhere less than nothing.
fn at_least(basis: FindingBasis, usd: f64) -> f64 {
    match basis {
        FindingBasis::Billed | FindingBasis::Shared => usd.max(0.0),
        FindingBasis::Replayed | FindingBasis::Priced => usd,
    }
}

/// What was looked at, in money. `cell` is what is told.
fn looks(places: &RequestParts<'_>, case: &Case, look: &Look, scope: &FindingScope, cell: &Cell) -> Vec<Looked> {
    let mut counts: BTreeMap<(&str, String), u64> = BTreeMap::new();
    for (&(session, model), &count) in case.counts.iter().filter(|(key, _)| case.sides.contains_key(*key)) {
        places.names(session, model).into_iter().for_each(|part| *counts.entry(part).or_default() += count);
    }
    let looked = |cell: &Cell, by: &str, names: &[String]| {
        let is_inside = |(kind, name): &(&str, String)| *kind == by && names.contains(name);
        let counted = counts.iter().filter(|(part, _)| is_inside(part)).map(|(_, count)| count).sum();
        Looked {
            by: by.to_owned(),
            name: cell.name.clone(),
            sessions: cell.sessions,
            count: if by == "all" { case.counts.values().sum() } else { counted },
            before_usd: cell.before.nano_usd as f64 / 1e9,
            saved_usd: cell.saved_usd(cell.change),
            interval_usd: cell
                .upper
                .zip(cell.lower)
                .map(|(upper, lower)| (at_least(case.basis, cell.saved_usd(upper)), cell.saved_usd(lower))),
            verdict: cell.verdict,
        }
    };
    let mut looks = vec![looked(&look.whole, "all", &[])];
    if let FindingScope::Parts(by, names) = scope
        && names.len() > 1
    {
        looks.push(Looked { by: "together".to_owned(), verdict: CostVerdict::Cheaper, ..looked(cell, by, names) });
    }
    let parts = look.parts.iter().filter(|part| part.in_money);
    looks.extend(parts.map(|part| looked(part, part.by, std::slice::from_ref(&part.name))));
    looks
}

/// The sessions that have most of a case, where it holds.
fn largest(evidence: &BillEvidence<'_>, case: &Case, inside: &Inside) -> Vec<InSession> {
    let timeline = &evidence.workload.timeline;
    let mut by_session: BTreeMap<u32, InSession> = BTreeMap::new();
    for key in inside {
        let Some(sides) = case.sides.get(key) else { continue };
        let session = &timeline.sessions[key.0 as usize];
        let sum = by_session.entry(key.0).or_insert_with(|| InSession {
            session: session.id.to_string(),
            project: session.project.to_string(),
            count: 0,
            before_usd: 0.0,
            saved_usd: 0.0,
        });
        let [before, after] = [&sides.baseline, &sides.policy].map(|bill| bill.cost.nano_usd as f64 / 1e9);
        sum.count += case.counts.get(key).copied().unwrap_or_default();
        sum.before_usd += before;
        sum.saved_usd += before - after;
    }
    let mut all: Vec<InSession> = by_session.into_values().filter(|one| one.saved_usd > 0.0).collect();
    all.sort_by(|a, b| b.saved_usd.total_cmp(&a.saved_usd).then_with(|| a.session.cmp(&b.session)));
    all.truncate(evidence.thresholds.sessions_listed);
    all
}

/// Sessions and models in which a case holds.
type Inside = Vec<(u32, Sym)>;

/// Where a case holds: everywhere, else in the parts of the first kind of which some are clear. None where it holds nowhere.
fn scope(
    evidence: &BillEvidence<'_>,
    places: &RequestParts<'_>,
    case: &Case,
    look: &Look,
    waited: bool,
) -> Option<(FindingScope, Cell, Inside)> {
    if waited || look.whole.verdict == CostVerdict::Cheaper {
        return Some((FindingScope::Everywhere, look.whole.clone(), case.sides.keys().copied().collect()));
    }
    KINDS.iter().find_map(|by| {
        let clear = look.parts.iter().filter(|part| part.by == *by && part.verdict == CostVerdict::Cheaper);
        let names: Vec<String> = clear.map(|part| part.name.clone()).collect();
        let sides = places.within(&case.sides, (by, &names));
        let cell = judge(evidence, case).whole(&sides).filter(|_| !names.is_empty())?;
        Some((FindingScope::Parts((*by).to_owned(), names), cell, sides.into_keys().collect()))
    })
}
