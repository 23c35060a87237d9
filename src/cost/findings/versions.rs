//! Client versions with more cache misses than newer ones, where the old one is still in use.

use std::collections::BTreeMap;

use crate::base::client_version::ClientVersion;
use crate::base::names::Sym;
use crate::base::numbers::DAY_MS;
use crate::base::stats::wilson;
use crate::cost::findings::search::BillFinding;
use crate::cost::findings::thresholds::OldVersions;
use crate::cost::findings::{Advice, BillEvidence, Case, FindingBasis, MadeOf, uncached};
use crate::logs::trace::{Millis, NO_TIME};
use crate::report::numbers::percent;
use crate::whatif::client::thresholds::Versions;
use crate::whatif::sim::cells::{Drawn, SessionCosts};
use crate::whatif::sim::cost::Cost;
use crate::whatif::sim::figures::{RunBill, Sides};

/// One case, if a version in use loses more than newer ones.
pub fn cases(evidence: &BillEvidence<'_>) -> Vec<Case> {
    let section = &evidence.thresholds.old_versions;
    case(evidence, section, &seen(evidence, section)).into_iter().collect()
}

/// Whether a finding holds for the clients in use: that old versions lose more is history where nobody works with one any more,
/// whichever days and projects were asked about.
pub fn is_of_use(finding: &BillFinding, section: &OldVersions, versions: &Versions) -> bool {
    let last = versions.values().max().copied().unwrap_or_default();
    let late = versions.iter().filter(|(_, seen)| last.saturating_sub(**seen) <= section.in_use_days * DAY_MS);
    let in_use: Vec<ClientVersion> = late.filter_map(|(name, _)| ClientVersion::parse(name)).collect();
    let mut told = finding.made_of.iter().filter_map(|made| ClientVersion::parse(made.names.first()?));
    finding.id != section.id || told.any(|version| in_use.contains(&version))
}

/// What was billed with a version, by session and model: how often the cache was lost, the input, what of that was lost.
#[derive(Default)]
struct SeenVersion {
    name: String,
    last: Millis,
    sums: BTreeMap<(u32, Sym), VersionSum>,
}

#[derive(Clone, Copy, Default)]
struct VersionSum {
    requests: u64,
    times: u64,
    input: Cost,
    lost: Cost,
}

/// Every version whose requests have a price.
fn seen(evidence: &BillEvidence<'_>, section: &OldVersions) -> BTreeMap<ClientVersion, SeenVersion> {
    let timeline = &evidence.workload.timeline;
    // What never reads its cache does not because of its client.
    let lost: BTreeMap<u32, Cost> = evidence
        .losses
        .iter()
        .filter(|loss| section.causes.contains(&loss.cause) && !uncached::is_unread(evidence, loss))
        .map(|loss| (loss.request, loss.sum.cost_lost))
        .collect();
    let mut versions: BTreeMap<ClientVersion, SeenVersion> = BTreeMap::new();
    for (index, request) in timeline.counted().filter(|(_, one)| one.context() > 0) {
        let name = timeline.names.text(request.version);
        let Some(version) = ClientVersion::parse(name) else { continue };
        let cost = evidence.simulator.tariff.of(request, &evidence.simulator.billed(request));
        if cost.unpriced_tokens > 0 {
            continue;
        }
        let seen = versions.entry(version).or_default();
        seen.name = name.to_owned();
        seen.last = if request.end == NO_TIME { seen.last } else { seen.last.max(request.end) };
        let sum = seen.sums.entry(evidence.key(index)).or_default();
        sum.requests += 1;
        sum.input += cost;
        if let Some(lost) = lost.get(&index) {
            sum.times += 1;
            sum.lost += *lost;
        }
    }
    versions
}

/// The share of its input that some versions lost.
struct LostShare {
    /// Both ends of its 95 % interval over sessions.
    lower: f64,
    upper: f64,
    /// What of it is left to whoever updates to them.
    left: f64,
}

/// The share of its input that some versions lost; none with too few sessions. Where none lost anything, or each all of it, all
/// draws are alike, however few sessions there are: then it is Wilson's interval over sessions.
fn share<'s>(evidence: &BillEvidence<'_>, versions: impl Iterator<Item = &'s SeenVersion>) -> Option<LostShare> {
    let mut sessions: BTreeMap<u32, SessionCosts> = BTreeMap::new();
    for ((session, _), sum) in versions.flat_map(|seen| &seen.sums) {
        let pair = sessions.entry(*session).or_default();
        pair.0 += sum.input.nano_usd as f64;
        pair.1 += sum.input.nano_usd.saturating_sub(sum.lost.nano_usd) as f64;
    }
    let pairs: Vec<SessionCosts> = sessions.into_values().filter(|(input, _)| *input > 0.0).collect();
    let rules = &evidence.workload.cells;
    let drawn = (pairs.len() as u64 >= rules.sessions_min).then(|| Drawn::new(&pairs, &rules.resampling)).flatten()?;
    let (lower, upper) = (-drawn.upper, -drawn.lower);
    if lower < upper || lower > 0.0 && upper < 1.0 {
        return Some(LostShare { lower, upper, left: upper });
    }
    let (sessions, left) = (pairs.len() as f64, upper);
    let (lower, upper) = wilson(left * sessions, sessions);
    Some(LostShare { lower, upper, left })
}

fn case(
    evidence: &BillEvidence<'_>,
    section: &OldVersions,
    versions: &BTreeMap<ClientVersion, SeenVersion>,
) -> Option<Case> {
    let (_, newest) = versions.last_key_value()?;
    let last = versions.values().map(|seen| seen.last).max()?;
    let is_in_use = |seen: &SeenVersion| last.saturating_sub(seen.last) <= section.in_use_days * DAY_MS;
    let mut case = Case {
        id: section.id.clone(),
        what: section.what.clone(),
        made_of: MadeOf::by(&["version"]),
        is_judged_lately: true,
        ..Case::of(FindingBasis::Billed, &["cost", "--by", "version"])
    };
    let mut shares: Vec<(f64, f64)> = Vec::new();
    for (version, old) in versions.iter().filter(|(_, seen)| is_in_use(seen)) {
        let newer = || versions.iter().filter(|(other, _)| *other > version).map(|(_, seen)| seen);
        let Some(own) = share(evidence, std::iter::once(old)) else { continue };
        let Some(theirs) = share(evidence, newer()).filter(|theirs| own.lower > theirs.upper) else { continue };
        shares.push((own.lower, theirs.upper));
        for (&key, sum) in &old.sums {
            let after = sum.input.less(&sum.lost) + sum.input.part(theirs.left);
            let [baseline, policy] = [sum.input, after].map(|cost| RunBill { cost, ..RunBill::default() });
            let sides = Sides { requests: sum.requests, unpriced_requests: 0, baseline, policy };
            case.add(vec![old.name.clone()], key, sum.times, &sides);
        }
    }
    let (own, theirs) = shares.into_iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    // The newest version and the largest share that one in use loses, beside that of newer ones.
    let advice = section.advice.replace("{newest}", &newest.name).replace("{own}", &percent(own));
    Some(Case { advice: Advice::Do(advice.replace("{theirs}", &percent(theirs))), ..case })
}
