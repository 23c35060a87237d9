//! The page in words: a few lines each for what was spent, for every finding, and for what does not pay.

use std::collections::BTreeMap;

use crate::cost::findings::Basis;
use crate::cost::findings::search::{Finding, Part, Scope};
use crate::cost::findings::sheet::Sheet;
use crate::cost::page::Page;
use crate::cost::page::names::Names;
use crate::cost::page::spent::Amount;
use crate::report::numbers::{counted, percent, thousands};

/// How the page is told.
pub struct Telling<'p> {
    /// The page.
    pub page: &'p Page,
    /// Names of projects.
    pub names: &'p Names,
    /// Numbers.
    pub sheet: &'p Sheet,
    /// Most findings and names.
    pub top: Option<usize>,
    /// Arguments with which other commands see the same logs.
    pub same_logs: &'p str,
    /// Whether the page was cut to its last days.
    pub is_cut: bool,
}

/// A finding in three lines.
pub struct Told {
    /// What happens.
    pub what: String,
    /// Where it holds, and what it costs.
    pub holds: String,
    /// What to do, with the predicted effect.
    pub advice: String,
    /// The command that shows it.
    pub command: String,
}

/// "$12.30"; with more than a thousand dollars without cents.
pub fn usd(value: f64) -> String {
    let sign = if value < 0.0 { "−" } else { "" };
    let cents = (value.abs() * 100.0).round() as u64;
    format!("{sign}${}.{:02}", thousands(cents / 100), cents % 100)
}

impl Telling<'_> {
    fn findings_max(&self) -> usize {
        self.top.unwrap_or(self.sheet.findings_max)
    }

    /// The findings that are told.
    pub fn findings(&self) -> impl Iterator<Item = &Finding> {
        self.page.findings.iter().take(self.findings_max())
    }

    /// The first line: what was spent, when.
    pub fn headline(&self) -> String {
        let spent = &self.page.spent;
        let when = spent.days.as_ref().map_or_else(
            || "at no known time".to_owned(),
            |(first, last)| if first == last { format!("on {first}") } else { format!("{first} … {last}") },
        );
        let window = if self.is_cut {
            format!("the {} days up to the newest request", self.sheet.days)
        } else {
            counted_days(spent.span_days)
        };
        let money = match spent.total {
            Amount { nano_usd: 0, unpriced_tokens: 1.. } => {
                format!("{} tokens without a known price", thousands(spent.total.unpriced_tokens))
            }
            total => usd(total.usd()),
        };
        format!(
            "Spent {when} ({window}): {money} at list prices, {} in {}",
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
            if spent.by_day.len() > 1 {
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
        if spent.without_usage > 0 {
            parts.push(format!("{} without usage", counted(spent.without_usage, "answer")));
        }
        if spent.unlogged.nano_usd > 0 {
            parts.push(format!("about {} for what no log has (estimated)", usd(spent.unlogged.usd())));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The largest by name, and the rest in one.
    fn largest(&self, sums: &BTreeMap<String, Amount>, noun: &str) -> String {
        let mut rows: Vec<(&String, &Amount)> = sums.iter().filter(|(_, amount)| amount.nano_usd > 0).collect();
        rows.sort_by(|a, b| b.1.nano_usd.cmp(&a.1.nano_usd).then_with(|| a.0.cmp(b.0)));
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
        let mut money: Vec<u64> = sums.values().map(|amount| amount.nano_usd).collect();
        money.sort_unstable();
        let median = money[(money.len() - 1) / 2] as f64 / 1e9;
        let days = counted(sums.len() as u64, "day");
        format!("{}; the median of {days} {}", self.largest(sums, "day"), usd(median))
    }

    /// "$12.30 a month", if the window is long enough to say so.
    pub fn a_month(&self, value: f64) -> Option<String> {
        let days = if self.is_cut { i64::from(self.sheet.days) } else { self.page.spent.span_days };
        (days >= self.sheet.month_days_min)
            .then(|| format!("{} a month", usd(value * self.sheet.days_per_month / days as f64)))
    }

    /// A finding in three lines.
    pub fn told(&self, finding: &Finding) -> Told {
        let change = |value: f64| percent(value / finding.before_usd);
        let month = self.a_month(finding.saved_usd).map(|month| format!(", {month}")).unwrap_or_default();
        let (saves, ends) = match finding.basis {
            Basis::Replayed => (
                format!("{} less", change(finding.saved_usd)),
                format!("[{} … {}]", change(finding.lower_usd), change(finding.upper_usd)),
            ),
            Basis::Billed | Basis::Shared => (
                format!("at most {}", usd(finding.saved_usd)),
                format!("[{} … {}]", usd(finding.lower_usd), usd(finding.upper_usd)),
            ),
        };
        let basis = match finding.basis {
            Basis::Replayed => "replayed",
            Basis::Billed | Basis::Shared => "on the bill",
        };
        let breaks = finding.breaks.as_ref().map(|words| format!("; {words}")).unwrap_or_default();
        let whole = if finding.basis == Basis::Shared { "" } else { " input" };
        let of = usd(finding.before_usd);
        let holds = format!("{} of {of}{whole}{month}: {}{breaks}", usd(finding.saved_usd), self.place(finding));
        let parts = match &finding.scope {
            Scope::Parts(by, names) => names.iter().map(|name| self.part(by, name)).collect::<Vec<_>>().join(", "),
            Scope::Everywhere => String::new(),
        };
        Told {
            what: finding.what.clone(),
            holds,
            advice: format!("{}; effect: {saves} {ends}, {basis}", finding.advice.replace("{parts}", &parts)),
            command: command(&finding.evidence),
        }
    }

    fn part(&self, by: &str, name: &str) -> String {
        if by == "project" { self.names.project(name) } else { name.to_owned() }
    }

    /// Where a finding holds.
    fn place(&self, finding: &Finding) -> String {
        let sessions = counted(finding.sessions, "session");
        let words = |by: &str, names: &str| match by {
            "project" => format!("in {names}"),
            "model" => format!("with {names}"),
            _ => format!("in sessions with contexts of {names} tokens"),
        };
        let except: Vec<String> = finding.except.iter().map(|id| self.names.project(id)).collect();
        let except = if except.is_empty() { String::new() } else { format!("; not in {}", except.join(", ")) };
        match &finding.scope {
            Scope::Parts(by, names) => {
                let names: Vec<String> = names.iter().map(|name| self.part(by, name)).collect();
                format!("only {}, {sessions}", words(by, &names.join(", ")))
            }
            Scope::Everywhere if finding.mostly.is_empty() => format!("over {sessions}{except}"),
            Scope::Everywhere => {
                let one = |part: &Part| {
                    format!("{} {}", whole_percent(part.share), words(&part.by, &self.part(&part.by, &part.name)))
                };
                let most: Vec<String> = finding.mostly.iter().map(one).collect();
                format!("over {sessions}, {}{except}", most.join(", "))
            }
        }
    }

    /// What does not pay, in a line.
    pub fn not_worth(&self) -> Option<String> {
        let one = |loser: &crate::cost::findings::tried::Loser| format!("{} +{}", loser.name, percent(loser.change));
        let told: Vec<String> =
            self.page.not_worth.iter().take(self.top.unwrap_or(self.sheet.names_max)).map(one).collect();
        (!told.is_empty()).then(|| format!("{} (replayed on these logs; devboy what-if all)", told.join(", ")))
    }

    /// How the figures come about.
    pub fn explained(&self) -> Vec<String> {
        vec![
            "Spent: tokens as logged at list prices of their day; output is a lower bound where a client logged it early.".to_owned(),
            format!(
                "replayed: every request was sent again under the setting, against the log simulated the same way; that is {} \
                 off the bill, and a finding has to be beyond it.",
                percent(self.page.off_bill.abs())
            ),
            "on the bill: what the bill shows that the cause cost; nobody can save more than that.".to_owned(),
            "[…]: 95 % interval over sessions (bootstrap), after correction for all findings, projects, models and sizes that \
             were looked at (Benjamini and Hochberg, 5 %)."
                .to_owned(),
        ]
    }

    /// Why no finding is told.
    pub fn nothing_found(&self) -> String {
        let spent = &self.page.spent;
        if spent.total.nano_usd == 0 {
            return "no model here has a known price, so nothing can be valued in money".to_owned();
        }
        format!(
            "nothing that holds beyond chance: too few sessions ({}), or no waste that a setting or a habit stops",
            thousands(spent.sessions)
        )
    }
}

/// "62 %"
fn whole_percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

fn counted_days(days: i64) -> String {
    counted(days.max(0).unsigned_abs(), "day")
}

/// A command as it is typed.
pub fn command(arguments: &[String]) -> String {
    std::iter::once("devboy").chain(arguments.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}
