//! The page in words: a few lines each for what was spent, for every finding, and for what does not pay.

use std::collections::{BTreeMap, BTreeSet};

use crate::base::bootstrap::holds_in_100;
use crate::cost::findings::FindingBasis;
use crate::cost::findings::losers::Loser;
use crate::cost::findings::search::{BillFinding, FindingPart, FindingScope};
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::page::spent::{Amount, UNDATED, by_money};
use crate::cost::page::{Page, PageNames};
use crate::report::numbers::{counted, percent, thousands, usd};

/// Headings.
pub const NOTHING_TO_SET: &str = "Costs money, and no setting stops it";
pub const NOT_WORTH: &str = "Not worth it: replayed on these logs, it would have cost more";

/// Before the interval of what is told as "at most": it is about the same bound elsewhere, and goes beyond the one here.
const IN_OTHERS: &str = "in other sessions like these at most";

/// How the page is told.
pub struct Telling<'p> {
    pub page: &'p Page,
    /// Names of projects.
    pub names: PageNames,
    /// Numbers.
    pub sheet: &'p FindingThresholds,
    /// Most findings and names.
    pub top: Option<usize>,
    /// Arguments with which other commands see the same logs.
    pub same_logs: String,
    /// The same of this command: the days that it looks at by itself left out.
    pub own_flags: String,
    /// The arguments that say where the logs are, without any days.
    pub places: String,
    /// Whether the page was cut to its last days.
    pub is_cut: bool,
    /// Days that its figures are about, those without a request as well.
    pub days: i64,
    /// The user's file of settings, in words.
    pub settings_file: String,
    /// Whether some projects only were asked about: the user's file holds for all.
    pub is_part: bool,
    /// What settings say already about what a finding would set, by its id.
    pub standing: BTreeMap<String, StandingSetting>,
}

/// What stands already.
#[derive(PartialEq)]
pub enum StandingSetting {
    Same {
        words: String,
        /// What to update before the clients in use know what sets it.
        update: Option<String>,
    },
    /// Another value, in words.
    Other(String),
    /// Something because of which it would have no effect.
    Off {
        words: String,
        /// Whether the user can take it away.
        is_own: bool,
    },
}

/// A finding, part by part.
pub struct ToldFinding {
    /// What happens.
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
    fn findings_max(&self) -> usize {
        self.top.unwrap_or(self.sheet.findings_max)
    }

    /// The findings that are told: those from which something follows.
    pub fn findings(&self) -> impl Iterator<Item = &BillFinding> {
        self.actionable().take(self.findings_max())
    }

    fn actionable(&self) -> impl Iterator<Item = &BillFinding> {
        self.page.findings.iter().filter(|finding| finding.is_actionable)
    }

    /// The first line: what was spent, when.
    pub fn headline(&self) -> String {
        let spent = &self.page.spent;
        if spent.requests == 0 {
            return "No request to a model in these logs".to_owned();
        }
        let when = match &spent.days {
            None => "at no known time".to_owned(),
            Some((first, last)) if self.is_cut => {
                format!("in the {} days up to {last} (first request {first})", self.sheet.days)
            }
            Some((first, last)) if first == last => format!("on {first}"),
            Some((first, last)) => {
                format!("{first} … {last} ({})", counted(spent.span_days.max(0).unsigned_abs(), "day"))
            }
        };
        let money = match spent.total {
            Amount { nano_usd: 0, unpriced_tokens: 1.. } => {
                format!("{} tokens without a known price", thousands(spent.total.unpriced_tokens))
            }
            total => format!("{} at list prices", usd(total.usd())),
        };
        format!(
            "Spent {when}: {money}, {} in {}",
            counted(spent.requests, "request"),
            counted(spent.sessions, "session")
        )
    }

    /// The lines of what was spent, each with its label.
    pub fn spent(&self) -> Vec<(&'static str, String)> {
        let spent = &self.page.spent;
        let mut lines = Vec::new();
        if spent.total.nano_usd > 0 {
            let saved = spent.cache_saved_nano_usd as f64 / 1e9;
            let plain = spent.input.usd() + saved;
            let share = if plain > 0.0 { saved.abs() / plain } else { 0.0 };
            let cache = match saved {
                saved if saved > 0.0 => format!("; without the cache {} more ({} off)", usd(saved), percent(share)),
                saved if saved < 0.0 => format!("; the cache made it {} more expensive", usd(-saved)),
                _ => String::new(),
            };
            lines.push((
                "of it",
                format!("input {}{cache}; output {} as logged", usd(spent.input.usd()), usd(spent.output.usd())),
            ));
            let mut projects: BTreeMap<String, Amount> = BTreeMap::new();
            for (id, amount) in &spent.by_project {
                let sum = projects.entry(self.names.project(id)).or_default();
                sum.nano_usd += amount.nano_usd;
                sum.unpriced_tokens += amount.unpriced_tokens;
            }
            lines.push(("projects", self.largest(&projects, "project")));
            lines.push(("models", self.largest(&spent.by_model, "model")));
            if spent.by_day.keys().filter(|day| *day != UNDATED).count() > 1 {
                lines.push(("days", self.days(&spent.by_day)));
            }
        }
        lines.extend(self.besides().map(|line| ("besides", line)));
        lines
    }

    /// What has no price, and what is in no log.
    fn besides(&self) -> Option<String> {
        let spent = &self.page.spent;
        let mut parts = Vec::new();
        if spent.total.unpriced_tokens > 0 {
            let models = spent.by_model.iter().filter(|(_, amount)| amount.unpriced_tokens > 0);
            let models: Vec<&str> =
                models.map(|(model, _)| if model.is_empty() { "no model" } else { model }).collect();
            let tokens = thousands(spent.total.unpriced_tokens);
            parts.push(format!("{tokens} tokens of {} have no known price", models.join(", ")));
        }
        if let Some(undated) = spent.by_day.get(UNDATED).filter(|sum| sum.nano_usd > 0) {
            parts.push(format!("{} of it on no known day", usd(undated.usd())));
        }
        if spent.without_usage > 0 {
            parts.push(format!("{} without usage", counted(spent.without_usage, "message")));
        }
        let answers = spent.unlogged_answers.usd();
        let unlogged = [
            (spent.unlogged.usd() - answers, "requests that the client does not log"),
            (answers, "output beyond what its usage says"),
        ];
        // Less than half a cent is not worth a word.
        let unlogged = unlogged.into_iter().filter(|(sum, _)| *sum >= 0.005);
        parts.extend(unlogged.map(|(sum, what)| format!("about {} more for {what} (estimated)", usd(sum))));
        if spent.web_searches_nano_usd > 0 {
            let (searches, nano) = (counted(spent.web_searches, "web search"), spent.web_searches_nano_usd);
            parts.push(format!("at least {} for {searches}", usd(nano as f64 / 1e9)));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The largest by name, and the rest in one.
    fn largest(&self, sums: &BTreeMap<String, Amount>, noun: &str) -> String {
        let mut rows = by_money(sums);
        rows.retain(|(_, amount)| amount.nano_usd > 0);
        let most = self.top.unwrap_or(self.sheet.names_max);
        let (told, rest) = rows.split_at(most.min(rows.len()));
        let mut parts: Vec<String> =
            told.iter().map(|(name, amount)| format!("{name} {}", usd(amount.usd()))).collect();
        if !rest.is_empty() {
            let sum: f64 = rest.iter().map(|(_, amount)| amount.usd()).sum();
            parts.push(format!("{} {}", counted(rest.len() as u64, &format!("other {noun}")), usd(sum)));
        }
        parts.join(" · ")
    }

    fn days(&self, sums: &BTreeMap<String, Amount>) -> String {
        let sums: BTreeMap<String, Amount> =
            sums.iter().filter(|(day, _)| *day != UNDATED).map(|(day, sum)| (day.clone(), *sum)).collect();
        // A day without any price is none that cost nothing.
        let mut money: Vec<u64> = sums.values().map(|amount| amount.nano_usd).filter(|nano| *nano > 0).collect();
        money.sort_unstable();
        let largest = self.largest(&sums, "day");
        if money.is_empty() {
            return largest;
        }
        let middle = [(money.len() - 1) / 2, money.len() / 2].map(|place| money[place] as f64);
        let median = middle.iter().sum::<f64>() / 2.0 / 1e9;
        format!("{largest}; the median of {} {}", counted(money.len() as u64, "day"), usd(median))
    }

    /// "$12.30 a month", if the window is long enough to say so.
    pub fn a_month(&self, value: f64) -> Option<String> {
        (self.days >= self.sheet.month_days_min)
            .then(|| format!("{} a month", usd(value * self.sheet.days_per_month / self.days as f64)))
    }

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
            format!("{} of waiting, {} a day with requests; ", lasting(time.seconds), lasting(time.seconds_a_day))
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
            let [all, lower, upper] = [time.seconds_a_day, time.lower, time.upper].map(lasting);
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
                let interval = interval.map(|interval| format!(" ({IN_OTHERS} {interval})"));
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
            Some(StandingSetting::Same { words, update }) => {
                let state = update.as_ref().map_or_else(|| ": done".to_owned(), |update| format!(", but {update}"));
                format!("{words} already{state}; what is told here happened without it")
            }
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
                let part = format!("which may save part of this already: `{compares}`{there} compares them");
                format!("{advice}; {words} now, {part}; effect on these logs: {effect}")
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
        let rest = names.split_off(names.len().min(self.top.unwrap_or(self.sheet.names_max)));
        names.extend((!rest.is_empty()).then(|| counted(rest.len() as u64, &format!("other {kind}"))));
        names.join(", ")
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
    fn evidence(&self, finding: &BillFinding) -> String {
        self.command(&["report", "--finding", finding.id.as_str()].map(str::to_owned), &self.own_flags)
    }

    /// A command about the same logs.
    pub fn command(&self, arguments: &[String], logs: &str) -> String {
        let words = std::iter::once("devboy").chain(arguments.iter().map(String::as_str));
        words.chain((!logs.is_empty()).then_some(logs)).collect::<Vec<_>>().join(" ")
    }

    /// What costs money and nobody can change, each in a line, with the command that shows where that comes from.
    pub fn nothing_to_set(&self) -> Vec<(String, String)> {
        let line = |finding: &BillFinding| {
            let month = self.a_month(finding.saved_usd).map(|month| format!(", {month}")).unwrap_or_default();
            let interval = self.interval(finding, (finding.lower_usd, finding.upper_usd), finding.before_usd);
            let interval = interval.map(|interval| format!(" {interval}")).unwrap_or_default();
            let (saved, place) = (usd(finding.saved_usd), self.place(finding));
            let line = format!("{}: at most {saved}{interval}{month}, {place}; {}", finding.what, finding.advice);
            (line, self.evidence(finding))
        };
        self.told_unsettable().map(line).collect()
    }

    /// Of these, the ones that are told.
    fn told_unsettable(&self) -> impl Iterator<Item = &BillFinding> {
        let unsettable = self.page.findings.iter().filter(|finding| !finding.is_actionable);
        unsettable.take(self.top.unwrap_or(self.sheet.nothing_to_set_max))
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
    fn place(&self, finding: &BillFinding) -> String {
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

    /// How often the intervals of the page hold, where some are over few sessions: those of a part, or of subagents, are over fewer
    /// than there are.
    pub fn of_few_sessions(&self) -> Option<String> {
        let told = self.findings().chain(self.told_unsettable()).map(|finding| finding.sessions);
        let sessions: BTreeSet<u64> = told.chain(self.told_losers().map(|loser| loser.sessions)).collect();
        let mut fewest: BTreeMap<u32, u64> = BTreeMap::new();
        for sessions in sessions {
            if let Some(held) = holds_in_100(sessions) {
                fewest.entry(held).or_insert(sessions);
            }
        }
        let (held, sessions) = fewest.pop_first()?;
        let more = fewest.iter().map(|(held, sessions)| format!(", over {} about {held}", thousands(*sessions)));
        let sessions = counted(sessions, "session");
        Some(format!(
            "Intervals over {sessions} hold about {held} times in 100{}, not 95: few large ones are most of a bill.",
            more.collect::<String>()
        ))
    }

    /// How far the simulation is from the bill, if that is more than it may be.
    pub fn off_the_bar(&self) -> Option<String> {
        let Page { off_bill, bar, .. } = self.page;
        let way = if *off_bill < 0.0 { "below" } else { "above" };
        (off_bill.abs() > *bar).then(|| {
            format!(
                "The simulation is {} {way} the bill (aim: {}); smaller replayed effects are not told.",
                percent(off_bill.abs()),
                percent(*bar)
            )
        })
    }

    /// What does not pay, in a line.
    pub fn not_worth(&self) -> Option<String> {
        let one = |loser: &Loser| {
            let [change, lower, upper] = [loser.change, loser.lower, loser.upper].map(percent);
            let sessions = (loser.sessions != self.page.spent.sessions).then(|| counted(loser.sessions, "session"));
            let over = sessions.map_or_else(String::new, |sessions| format!(" over {sessions}"));
            format!("{} +{change} [{lower} … {upper}]{over}", loser.name)
        };
        let told: Vec<String> = self.told_losers().map(one).collect();
        (!told.is_empty()).then(|| told.join(" · "))
    }

    fn told_losers(&self) -> impl Iterator<Item = &Loser> {
        self.page.not_worth.iter().take(self.top.unwrap_or(self.sheet.names_max))
    }

    /// The command that the figures of something that does not pay come from.
    pub fn source(&self, loser: &Loser) -> String {
        self.command(&loser.source, &self.same_logs)
    }

    /// How the figures come about.
    pub fn explained(&self) -> Vec<String> {
        let losers = self.page.not_worth.iter().map(|loser| format!("{}: {}", loser.name, self.source(loser)));
        let lines = [
            "Spent: tokens as logged at list prices of their day; output is a lower bound where a client logged it early.".to_owned(),
            format!(
                "replayed: every request was simulated under the setting, against the log simulated the same way; that is {} \
                 off the bill, and a finding has to be beyond it.",
                percent(self.page.off_bill.abs())
            ),
            "on the bill: what the bill shows that the cause cost; nobody can save more than that.".to_owned(),
            "at list prices: the same tokens as another model charges for them; what it would have answered is in no log."
                .to_owned(),
            "[…]: 95 % interval over sessions (bootstrap). What holds was told apart from chance after a correction for all \
             findings, projects, models and sizes that were looked at (Benjamini and Hochberg, 5 %); the intervals are not \
             corrected."
                .to_owned(),
        ];
        lines.into_iter().chain(losers).collect()
    }

    /// What is to be kept in mind of the findings: those that there is no room for, and how those that are told go together.
    pub fn reminders(&self) -> Vec<String> {
        let hidden = self.actionable().skip(self.findings_max()).count();
        let hidden = (hidden > 0).then(|| format!("{hidden} more with --all."));
        let overlap = self.findings().nth(1).map(|_| "Findings overlap: their savings do not add up.".to_owned());
        // What is only priced, is done already, or stands behind something else, is not written.
        let is_written = |finding: &&BillFinding| {
            let standing = self.standing.get(&finding.id);
            !finding.sets.is_empty()
                && finding.basis != FindingBasis::Priced
                && !matches!(standing, Some(StandingSetting::Same { .. } | StandingSetting::Off { .. }))
        };
        let mut settable = self.findings().filter(is_written).peekable();
        let setting = settable.peek().is_some().then(|| {
            let command = self.command(&["tune", "claude-settings", "--dry-run"].map(str::to_owned), &self.places);
            let is_set =
                |finding: &&BillFinding| matches!(self.standing.get(&finding.id), Some(StandingSetting::Other(_)));
            let settable: Vec<&BillFinding> = settable.collect();
            let so = match &settable[..] {
                all if all.iter().all(|finding| finding.update.is_some()) => {
                    "says what to update before they can be written."
                }
                all if all.iter().all(is_set) => {
                    "says whether they are cheaper than what is set; without --dry-run it writes what is."
                }
                _ => "shows what pays; without --dry-run it writes it.",
            };
            let part = match self.is_part {
                true => " Only some projects were asked about, and this file holds for all of them: --scope project sets them for one.",
                false => "",
            };
            format!(
                "Settings: `{command}` chooses values on the earlier of the latest sessions of all these logs and judges them on the later ones (the \
                 effects above are of all sessions of the page), and {so}{part}"
            )
        });
        hidden.into_iter().chain(overlap).chain(setting).collect()
    }

    /// Why no finding is told.
    pub fn nothing_found(&self) -> String {
        let spent = &self.page.spent;
        if spent.requests == 0 {
            return "no request to a model".to_owned();
        }
        if spent.total.nano_usd == 0 {
            return "no model here has a known price, so nothing can be valued in money".to_owned();
        }
        let sessions = match spent.sessions {
            1 => "this session".to_owned(),
            sessions => format!("these {} sessions", thousands(sessions)),
        };
        format!("nothing: no saving in {sessions} can be told from chance and the simulation's error")
    }
}

/// Whether money is told: not where it costs time and not a cent.
fn is_money(finding: &BillFinding) -> bool {
    finding.waited.is_none() || usd(finding.saved_usd) != usd(0.0)
}

/// "41 s", "20 min 29 s", "3 h 5 min"
fn lasting(seconds: f64) -> String {
    let seconds = seconds.round().max(0.0) as u64;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) => format!("{minutes} min {seconds} s"),
        (hours, minutes, _) => format!("{} h {minutes} min", thousands(hours)),
    }
}

/// "62 %", "all of it"
fn whole_percent(share: f64) -> String {
    let text = format!("{:.0} %", 100.0 * share);
    if text == "100 %" { "all of it".to_owned() } else { text }
}

/// "above 200 k", "of 50 k to 100 k"
pub fn sized(range: &str) -> String {
    if range.starts_with(|first: char| first.is_ascii_digit()) { format!("of {range}") } else { range.to_owned() }
}
