//! The page in words: a few lines each for what was spent, for every finding, and for what does not pay.

pub mod finding;
mod spent;

use std::collections::{BTreeMap, BTreeSet};

use crate::base::bootstrap::holds_in_100;
use crate::cost::findings::FindingBasis;
use crate::cost::findings::losers::Loser;
use crate::cost::findings::search::BillFinding;
use crate::cost::findings::thresholds::FindingThresholds;
use crate::cost::page::spent::Amount;
use crate::cost::page::words::finding::OF_A_BILL;
use crate::cost::page::{Page, PageNames};
use crate::report::numbers::{counted, percent, thousands, usd};

/// Headings.
pub const NOTHING_TO_SET: &str = "Costs money, and no setting stops it";
pub const NOT_WORTH: &str = "Not worth it: replayed on these logs, it would have cost more";

/// How the page is told.
pub struct Telling<'p> {
    pub page: &'p Page,
    pub names: PageNames,
    pub thresholds: &'p FindingThresholds,
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
        /// That it does not act: since when it is set, and what a later session does.
        still: Option<String>,
    },
    /// It is done for some of what the finding is made of, in words.
    Partly(String),
    /// Another value, in words.
    Other(String),
    /// Something because of which it would have no effect.
    Off {
        words: String,
        /// Whether the user can take it away.
        is_own: bool,
    },
    /// It was set and taken back: what and when, and what sets it again.
    TakenBack(String),
}

impl Telling<'_> {
    fn findings_max(&self) -> usize {
        self.top.unwrap_or(self.thresholds.findings_max)
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
                format!("in the {} days up to {last} (first request {first})", self.thresholds.days)
            }
            Some((first, last)) => {
                let span = spent.span_days.max(0).unsigned_abs();
                let all = self.days.max(0).unsigned_abs();
                // Days without a request count as well.
                let of = (self.days > spent.span_days)
                    .then(|| format!(" ({}, of {} looked at)", counted(span, "day"), thousands(all)));
                match first == last {
                    true => format!("on {first}{}", of.unwrap_or_default()),
                    false => {
                        format!("{first} … {last}{}", of.unwrap_or_else(|| format!(" ({})", counted(span, "day"))))
                    }
                }
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

    /// "$12.30 a month", if the window is long enough to say so.
    pub fn a_month(&self, value: f64) -> Option<String> {
        (self.days >= self.thresholds.month_days_min)
            .then(|| format!("{} a month", usd(value * self.thresholds.days_per_month / self.days as f64)))
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
            let interval = interval.map(|interval| format!(" ({OF_A_BILL} {interval})")).unwrap_or_default();
            let (saved, place) = (usd(finding.saved_usd), self.place(finding));
            let line = format!("{}: at most {saved}{month}{interval}, {place}; {}", finding.what, finding.advice);
            (line, self.evidence(finding))
        };
        self.told_unsettable().map(line).collect()
    }

    fn unsettable(&self) -> impl Iterator<Item = &BillFinding> {
        self.page.findings.iter().filter(|finding| !finding.is_actionable)
    }

    /// Of these, the ones that are told.
    fn told_unsettable(&self) -> impl Iterator<Item = &BillFinding> {
        self.unsettable().take(self.top.unwrap_or(self.thresholds.nothing_to_set_max))
    }

    /// How often the intervals of the page hold, where some are over few sessions: those of a part, or of subagents, are over fewer
    /// than there are.
    pub fn of_few_sessions(&self) -> Option<String> {
        let told = self.findings().chain(self.told_unsettable());
        let has_interval = |finding: &&BillFinding| {
            let has_effect = match self.standing.get(&finding.id) {
                Some(StandingSetting::Same { .. } | StandingSetting::Off { is_own: false, .. }) => false,
                Some(
                    StandingSetting::Other(_)
                    | StandingSetting::Partly(_)
                    | StandingSetting::Off { .. }
                    | StandingSetting::TakenBack(_),
                )
                | None => true,
            };
            let ends = (finding.lower_usd, finding.upper_usd);
            has_effect && self.interval(finding, ends, finding.before_usd).is_some()
        };
        let told = told.filter(has_interval).map(|finding| finding.sessions);
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
            "On real logs intervals over {sessions} held about {held} times in 100{}, not 95: there few large ones were most of the bill.",
            more.collect::<String>()
        ))
    }

    /// How far the simulation is from the bill, if that is more than it may be.
    pub fn off_the_bar(&self) -> Option<String> {
        let Page { off_bill, bar, .. } = self.page;
        let way = if *off_bill < 0.0 { "below" } else { "above" };
        (off_bill.abs() > *bar).then(|| {
            format!(
                "The simulation is {} {way} the bill (aim: {}); smaller replayed effects are not shown.",
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
        self.page.not_worth.iter().take(self.top.unwrap_or(self.thresholds.names_max))
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

    /// How much of each list there is no room for.
    fn left_out(&self) -> Option<String> {
        let lists = [
            ("findings", self.findings().count(), self.actionable().count()),
            ("that no setting stops", self.told_unsettable().count(), self.unsettable().count()),
            ("not worth it", self.told_losers().count(), self.page.not_worth.len()),
        ];
        let cut = lists.into_iter().filter(|(_, told, all)| told < all);
        let cut: Vec<String> = cut.map(|(name, told, all)| format!("{} of {all} {name}", all - told)).collect();
        (!cut.is_empty()).then(|| format!("Left out: {} (--all shows them).", cut.join(", ")))
    }

    /// What is to be kept in mind of the findings: those that there is no room for, and how those that are told go together.
    pub fn reminders(&self) -> Vec<String> {
        let overlap = self.findings().nth(1).map(|_| "Findings overlap: their savings do not add up.".to_owned());
        // What is only priced, is done already, or stands behind something else, is not written.
        let is_written = |finding: &&BillFinding| {
            let standing = self.standing.get(&finding.id);
            !finding.sets.is_empty()
                && finding.basis != FindingBasis::Priced
                && matches!(standing, None | Some(StandingSetting::Other(_)))
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
        self.left_out().into_iter().chain(overlap).chain(setting).collect()
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
        format!(
            "nothing: no saving in {sessions} can be told from chance and the simulation's error, or the last sessions are \
             without what it would stop"
        )
    }
}
