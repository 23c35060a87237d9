//! The numbers of `rules/fleet.toml`, and the weeks that they are about: from Monday to Sunday in UTC, named by their Monday. When a
//! count stands on enough people by them, and how bins are joined until each of them does.

use std::collections::BTreeMap;

use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use serde::Deserialize;

use crate::base::numbers::{DAY_MS, WEEK_MS};
use crate::fleet::measure::OTHER;
use crate::logs::trace::Millis;

/// The data file.
pub const SHEET: &str = "fleet.toml";

/// What one person may add, on how many people a row stands, and how much of it counts at home.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FleetLimits {
    /// Sessions of a person that count for a subject in a week.
    pub sessions_max: u64,
    /// Responses, or steps, of a person that count for a subject in a week.
    pub events_max: u64,
    /// Responses below which a subject of a week does not leave.
    pub events_min: u64,
    /// Tokens of one response that count.
    pub tokens_max: u64,
    /// Input-equivalent tokens of one session that count for another setting.
    pub session_tokens_max: u64,
    /// Largest cost of a session under another setting, as a multiple of what counts of it.
    pub policy_factor_max: u64,
    /// People on whom every published row stands.
    pub people_min: u64,
    /// Largest share of one person in a published count, in per cent.
    pub share_max_pct: u64,
    /// Hours after the end of a week before it is shared.
    pub settle_hours: i64,
    /// Weeks back that are shared and pooled.
    pub weeks_max: i64,
    /// Steps between the two tools of an edge.
    pub lags: Vec<u32>,
    /// Bytes of a contribution file.
    pub file_bytes_max: u64,
    /// Rows of a contribution.
    pub rows_max: usize,
    /// Bytes of a file of light rows.
    pub light_bytes_max: u64,
    /// Light rows of a week.
    pub light_rows_max: usize,
    /// Lower bounds of the classes of time between two calls.
    pub gap_seconds: Vec<u32>,
    /// Bytes of a team secret.
    pub secret_bytes_min: usize,
    /// Session marks in a contribution.
    pub marks_max: usize,
    /// Observations at which own data is enough.
    pub enough: u64,
    /// Largest part that comes from others beyond what own data lacks, in per cent.
    pub lent_max_pct: u64,
    /// Largest part of what is left to others that a provider fills, in per cent.
    pub provider_max_pct: u64,
    /// Days in which the weight of a week falls to 1/e.
    pub life_days: f64,
    /// Settings that are replayed for a pool.
    pub what_if: Vec<PooledSetting>,
}

/// A setting that is replayed for a pool.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PooledSetting {
    /// The name under which its sums leave.
    pub name: String,
    /// The policy, as in `devboy what-if`.
    pub policy: String,
    pub set: Vec<String>,
}

/// The Monday of the week in which a time lies; none for what is no time.
pub fn monday_of(ms: Millis) -> Option<Date> {
    let day = Timestamp::from_millisecond(ms).ok()?.to_zoned(TimeZone::UTC).date();
    day.checked_sub(i64::from(day.weekday().to_monday_zero_offset()).days()).ok()
}

/// The week with this name; none if it names no Monday as devboy writes it.
pub fn week_named(text: &str) -> Option<Date> {
    let date: Date = text.parse().ok()?;
    (date.weekday() == Weekday::Monday && date.to_string() == text).then_some(date)
}

/// The end of a week in milliseconds.
fn end_ms(monday: Date) -> Option<Millis> {
    let end = monday.checked_add(7.days()).ok()?.to_zoned(TimeZone::UTC).ok()?;
    Some(end.timestamp().as_millisecond())
}

impl FleetLimits {
    /// Whether a week is over, and not too long ago.
    pub fn is_told(&self, monday: Date, now_ms: Millis) -> bool {
        end_ms(monday).is_some_and(|end| now_ms - end >= self.settle_hours * 3_600_000) && !self.is_past(monday, now_ms)
    }

    /// Whether a week is too long ago to be pooled.
    pub fn is_past(&self, monday: Date, now_ms: Millis) -> bool {
        end_ms(monday).is_none_or(|end| now_ms - end > self.weeks_max * WEEK_MS)
    }

    /// The weight of a week now: 1 when it ends, 1/e after its life.
    pub fn weight(&self, monday: Date, now_ms: Millis) -> f64 {
        let days = |ms: Millis| ms as f64 / DAY_MS as f64;
        let age = end_ms(monday).map_or(f64::INFINITY, |end| days((now_ms - end).max(0)));
        (-age / self.life_days).exp()
    }
}

/// Counts by person; nobody with 0.
pub type ByPerson = BTreeMap<u32, i64>;

/// Whether a count may be told: enough people have a part in it, and none of them too large a one.
pub fn stands(counts: &ByPerson, limits: &FleetLimits) -> bool {
    let total: i64 = counts.values().sum();
    let largest = counts.values().copied().max().unwrap_or_default();
    counts.len() as u64 >= limits.people_min && largest * 100 <= total * limits.share_max_pct as i64
}

/// Adds the counts of one to those of another.
pub fn absorb(into: &mut ByPerson, from: &ByPerson) {
    from.iter().for_each(|(person, count)| *into.entry(*person).or_default() += count);
}

/// Joins neighbouring bins, from the lowest, until each stands; what is left at the end goes to the last that does. A joined
/// bin is called by the one in which its median lies, so that no extreme shows. No count is lost: what is missing could be
/// found by subtraction. Nothing where not even all together stand.
pub fn joined(bins: &BTreeMap<u32, ByPerson>, limits: &FleetLimits) -> Vec<(u32, ByPerson)> {
    let mut groups: Vec<BinGroup> = Vec::new();
    let mut open = BinGroup::default();
    for (&bin, counts) in bins {
        open.add(bin, counts);
        if stands(&open.counts, limits) {
            groups.push(std::mem::take(&mut open));
        }
    }
    groups.extend((!open.bins.is_empty()).then_some(open));
    // What joins a group may unbalance it.
    while let Some(last) = groups.pop_if(|last| !stands(&last.counts, limits)) {
        let Some(before) = groups.last_mut() else { return Vec::new() };
        last.bins.iter().for_each(|(bin, counts)| before.add(*bin, counts));
    }
    groups.into_iter().map(|group| (group.median(), group.counts)).collect()
}

/// Bins that are told as one.
#[derive(Default)]
struct BinGroup {
    bins: Vec<(u32, ByPerson)>,
    counts: ByPerson,
}

impl BinGroup {
    fn add(&mut self, bin: u32, counts: &ByPerson) {
        absorb(&mut self.counts, counts);
        self.bins.push((bin, counts.clone()));
    }

    fn median(&self) -> u32 {
        let total: i64 = self.counts.values().sum();
        let mut reached = 0;
        let found = self.bins.iter().find(|(_, counts)| {
            reached += counts.values().sum::<i64>();
            2 * reached >= total
        });
        found.or(self.bins.last()).map_or(0, |(bin, _)| *bin)
    }
}

/// Kinds that stand; all others together as [`OTHER`], to which the rarest of the rest are added until it stands too.
/// Nothing where not even all together stand.
pub fn gathered(kinds: &BTreeMap<u32, ByPerson>, limits: &FleetLimits) -> Vec<(u32, ByPerson)> {
    let (mut told, rare): (Vec<_>, Vec<_>) =
        kinds.iter().map(|(kind, counts)| (*kind, counts.clone())).partition(|(_, counts)| stands(counts, limits));
    let mut other = ByPerson::new();
    rare.iter().for_each(|(_, counts)| absorb(&mut other, counts));
    while !other.is_empty() && !stands(&other, limits) {
        let total = |counts: &ByPerson| counts.values().sum::<i64>();
        let rarest = (0..told.len()).min_by_key(|&at| (total(&told[at].1), told[at].0));
        let Some(at) = rarest else { return Vec::new() };
        absorb(&mut other, &told.remove(at).1);
    }
    if !other.is_empty() {
        told.push((OTHER, other));
    }
    told
}

/// Whether what parts leave of a whole stands too, or is nothing: what is suppressed must not be the difference of what is
/// told. Parts may overlap, and so be more than the whole.
pub fn leaves_enough(whole: &ByPerson, parts: &[&ByPerson], limits: &FleetLimits) -> bool {
    let mut rest = rest(whole, parts);
    rest.retain(|_, count| *count > 0);
    rest.is_empty() || stands(&rest, limits)
}

/// The same of two numbers of which either may be the larger, such as costs under two settings.
pub fn differs_enough(one: &ByPerson, other: &ByPerson, limits: &FleetLimits) -> bool {
    let mut rest = rest(one, &[other]);
    rest.values_mut().for_each(|count| *count = count.abs());
    rest.retain(|_, count| *count > 0);
    rest.is_empty() || stands(&rest, limits)
}

fn rest(whole: &ByPerson, parts: &[&ByPerson]) -> ByPerson {
    let mut rest = whole.clone();
    for (person, count) in parts.iter().flat_map(|part| part.iter()) {
        *rest.entry(*person).or_default() -= count;
    }
    rest
}

/// Takes parts of a told whole back, the smallest first, until what remains of the whole stands or is nothing, and before
/// that each one that by itself leaves too little. Gives the places of the parts that are taken back.
pub fn taken_back(whole: &ByPerson, parts: &[&ByPerson], limits: &FleetLimits) -> Vec<usize> {
    let total = |at: &usize| parts[*at].values().sum::<i64>();
    let (mut told, mut back): (Vec<usize>, Vec<usize>) =
        (0..parts.len()).partition(|&at| leaves_enough(whole, &[parts[at]], limits));
    told.sort_by_key(|at| (std::cmp::Reverse(total(at)), *at));
    loop {
        let parts: Vec<&ByPerson> = told.iter().map(|&at| parts[at]).collect();
        if leaves_enough(whole, &parts, limits) {
            return back;
        }
        let Some(smallest) = told.pop() else { return back };
        back.push(smallest);
    }
}
