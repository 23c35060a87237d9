//! A finding of the page in words: what it costs and where, what to do, and what that would save.

use crate::cost::findings::FindingBasis;
use crate::cost::findings::search::{BillFinding, FindingPart, FindingScope};
use crate::cost::page::words::{StandingSetting, Telling};
use crate::report::numbers::{counted, lasting, percent, usd};

/// Before the interval of what is told as "at most": it is about the same bound elsewhere, and goes beyond the one here.
const IN_OTHERS: &str = "in other sessions like these at most";

/// The same of money: the interval is one of shares, times the bill here.
pub(super) const OF_A_BILL: &str = "of as large a bill in other sessions like these at most";

/// A finding, part by part.
pub struct ToldFinding {
    pub what: String,
    /// Where it holds, and what it costs.
    pub holds: String,
    /// What to do, with the predicted effect.
    pub advice: String,
    /// The command that shows where that comes from.
    pub command: String,
    /// The command that the figures come from.
    pub source: String,
}

impl Telling<'_> {
    /// A finding, part by part.
    pub fn told(&self, finding: &BillFinding) -> ToldFinding {
        let made = self.made(finding);
        let evidence = self.evidence(finding);
        ToldFinding {
            what: finding.what.replace("{made}", &made),
            holds: self.holds(finding),
            advice: self.advice(finding, &made),
            source: match finding.source.is_empty() {
                true => evidence.clone(),
                false => self.command(&finding.source, &self.same_logs),
            },
            command: evidence,
        }
    }

    /// What it costs, where it holds, and what it breaks.
    fn holds(&self, finding: &BillFinding) -> String {
        let waits = finding.waited.as_ref().map_or_else(String::new, |time| {
            format!("{} of waiting, {} a day with requests; ", of_seconds(time.seconds), of_seconds(time.seconds_a_day))
        });
        let costs = if is_money(finding) {
            let (at_most, of) = match finding.basis {
                FindingBasis::Replayed => ("", "simulated input"),
                FindingBasis::Billed => ("at most ", "input"),
                FindingBasis::Shared | FindingBasis::Priced => ("at most ", "input and output"),
            };
            let month = self.a_month(finding.saved_usd).map_or_else(String::new, |month| format!(", {month}"));
            format!("{at_most}{} of {} of {of}{month}: ", usd(finding.saved_usd), usd(finding.before_usd))
        } else {
            String::new()
        };
        let breaks = finding.breaks.as_ref().map_or_else(String::new, |words| format!("; {words}"));
        format!("{waits}{costs}{}{breaks}", self.place(finding))
    }

    /// What it would save, of time and of money.
    fn effect(&self, finding: &BillFinding) -> String {
        let time = finding.waited.as_ref().map(|time| {
            let [all, lower, upper] = [time.seconds_a_day, time.lower, time.upper].map(of_seconds);
            format!("at most {all} a day with requests here ({IN_OTHERS} [{lower} … {upper}])")
        });
        let interval = self.interval(finding, (finding.lower_usd, finding.upper_usd), finding.before_usd);
        let (saves, interval, basis) = match finding.basis {
            FindingBasis::Replayed => {
                let saves = format!("input {} cheaper", percent(finding.saved_usd / finding.before_usd));
                (saves, interval.map(|interval| format!(" {interval}")), "replayed")
            }
            FindingBasis::Billed | FindingBasis::Shared | FindingBasis::Priced => {
                let basis = if finding.basis == FindingBasis::Priced { "at list prices" } else { "on the bill" };
                let interval = interval.map(|interval| format!(" ({OF_A_BILL} {interval})"));
                (format!("at most {} here", usd(finding.saved_usd)), interval, basis)
            }
        };
        let money = is_money(finding).then(|| format!("{saves}{}, {basis}", interval.unwrap_or_default()));
        time.into_iter().chain(money).collect::<Vec<_>>().join(" and ")
    }

    /// What to do, with the effect, by what is set already.
    fn advice(&self, finding: &BillFinding, made: &str) -> String {
        let parts = match &finding.scope {
            FindingScope::Parts(by, names) => {
                names.iter().map(|name| self.part(by, name)).collect::<Vec<_>>().join(", ")
            }
            FindingScope::Everywhere => String::new(),
        };
        let bare = finding.advice.replace("{parts}", &parts).replace("{made}", made);
        let bare = bare.replace("{settings}", &self.settings_file);
        let update = finding.update.as_ref();
        let advice = update.map_or_else(|| bare.clone(), |update| format!("{update}. Then {bare}"));
        let effect = self.effect(finding);
        match self.standing.get(&finding.id) {
            Some(StandingSetting::Same { words, update: None, still: Some(still) }) => {
                format!("{words} already{still}")
            }
            Some(StandingSetting::Same { words, update, .. }) => {
                let state = update.as_ref().map_or_else(|| ": done".to_owned(), |update| format!(", but {update}"));
                format!("{words} already{state}; what is shown here happened without it")
            }
            Some(StandingSetting::Partly(words)) => format!("{advice}; {words} already; effect: {effect}"),
            Some(StandingSetting::Off { words, is_own: false }) => format!("nothing to set: {words}"),
            Some(StandingSetting::Off { words, is_own: true }) => {
                let update = update.map_or_else(String::new, |update| format!("; and {update}"));
                format!("first correct this: {words}{update}. Then {bare}; effect: {effect}")
            }
            Some(StandingSetting::Other(words)) if finding.basis == FindingBasis::Priced => {
                format!("{advice}, unless what is set is cheaper: {words} now; effect on these logs: {effect}")
            }
            Some(StandingSetting::Other(words)) => {
                let (tune, there) = match finding.project() {
                    Some(_) => (&["tune", "claude-settings", "--scope", "project"][..], " there"),
                    None => (&["tune", "claude-settings"][..], ""),
                };
                let tune: Vec<String> = tune.iter().map(|&word| word.to_owned()).collect();
                let compares = self.command(&tune, &self.places);
                // Of two lifetimes the other one saves nothing of this.
                let is_lifetime = finding.sets.iter().any(|set| set.value == "5m" || set.value == "1h");
                let part = if is_lifetime { "" } else { ", which may save part of this already" };
                format!(
                    "{advice}; {words} now{part}: `{compares}`{there} compares them; effect on these logs: {effect}"
                )
            }
            // What was taken back may have been another value.
            Some(StandingSetting::TakenBack(words)) => {
                let value = finding.sets.first().map_or_else(String::new, |set| format!(" of {}", set.value));
                format!("{words}; effect{value}: {effect}")
            }
            None => format!("{advice}; effect: {effect}"),
        }
    }

    /// The first names of what a finding is made of, those with most of it first.
    fn made(&self, finding: &BillFinding) -> String {
        let Some(kind) = finding.made_by.first() else { return String::new() };
        let mut names: Vec<String> = Vec::new();
        for name in finding.made_of.iter().filter_map(|made| made.names.first()) {
            let name = self.part(kind, name);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let rest = names.split_off(names.len().min(self.top.unwrap_or(self.thresholds.names_max)));
        let others = (!rest.is_empty()).then(|| counted(rest.len() as u64, &format!("other {kind}")));
        let first = (!names.is_empty()).then(|| names.join(", "));
        first.into_iter().chain(others).collect::<Vec<_>>().join(" and ")
    }

    /// The ends of an interval as this finding tells them: of a replay in shares of what was spent, else in money. None
    /// where another price spares the same share of every session: chance has no part in that.
    pub fn interval(&self, finding: &BillFinding, (lower, upper): (f64, f64), before_usd: f64) -> Option<String> {
        if finding.basis == FindingBasis::Priced && usd(lower) == usd(upper) {
            return None;
        }
        let end = |value: f64| match finding.basis {
            FindingBasis::Replayed => percent(value / before_usd),
            FindingBasis::Billed | FindingBasis::Shared | FindingBasis::Priced => usd(value),
        };
        Some(format!("[{} … {}]", end(lower), end(upper)).replace('-', "−"))
    }

    /// The command that shows what a finding stands on.
    pub(super) fn evidence(&self, finding: &BillFinding) -> String {
        self.command(&["report", "--finding", finding.id.as_str()].map(str::to_owned), &self.own_flags)
    }

    /// The name of a part as people know it.
    pub fn part(&self, by: &str, name: &str) -> String {
        match by {
            "project" => self.names.project(name),
            "agent type" | "server" | "tool" => self.names.own(by, name),
            _ => name.to_owned(),
        }
    }

    /// Where a finding holds.
    pub(super) fn place(&self, finding: &BillFinding) -> String {
        let sessions = counted(finding.sessions, "session");
        let words = |by: &str, names: &str| match by {
            "project" => format!("in {names}"),
            "model" => format!("with {names}"),
            _ => format!("in sessions with contexts {} tokens", sized(names)),
        };
        let except: Vec<String> = finding.except.iter().map(|id| self.names.project(id)).collect();
        let except = if except.is_empty() { String::new() } else { format!("; not in {}", except.join(", ")) };
        match &finding.scope {
            FindingScope::Parts(by, names) => {
                let names: Vec<String> = names.iter().map(|name| self.part(by, name)).collect();
                format!("only {}, {sessions}", words(by, &names.join(", ")))
            }
            FindingScope::Everywhere if finding.mostly.is_empty() => format!("over {sessions}{except}"),
            FindingScope::Everywhere => {
                let one = |part: &FindingPart| {
                    format!("{} {}", whole_percent(part.share), words(&part.by, &self.part(&part.by, &part.name)))
                };
                let most: Vec<String> = finding.mostly.iter().map(one).collect();
                let most = most.join(", ");
                // The first line of the page has the number of all sessions.
                let is_all = finding.sessions == self.page.spent.sessions;
                if is_all { format!("{most}{except}") } else { format!("over {sessions}, {most}{except}") }
            }
        }
    }
}

/// Whether money is told: not where it costs time and not a cent.
fn is_money(finding: &BillFinding) -> bool {
    finding.waited.is_none() || usd(finding.saved_usd) != usd(0.0)
}

fn of_seconds(seconds: f64) -> String {
    lasting((1_000.0 * seconds).round() as i64)
}

/// "62 %", "all of it", "nearly all of it"
fn whole_percent(share: f64) -> String {
    let text = format!("{:.0} %", 100.0 * share);
    match text == "100 %" {
        false => text,
        true if share > 1.0 - 1e-9 => "all of it".to_owned(),
        true => "nearly all of it".to_owned(),
    }
}

/// "above 200 k", "of 50 k to 100 k"
pub fn sized(range: &str) -> String {
    if range.starts_with(|first: char| first.is_ascii_digit()) { format!("of {range}") } else { range.to_owned() }
}
