//! What was spent, in words: a line each for projects, models, days, and what is in no log.

use std::collections::BTreeMap;

use crate::cost::page::spent::{Amount, UNDATED, by_money, web_searches_words};
use crate::cost::page::words::Telling;
use crate::report::numbers::{counted, percent, thousands, usd};

impl Telling<'_> {
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
        parts.extend(web_searches_words((spent.web_searches, spent.web_searches_nano_usd)));
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// The largest by name, and the rest in one.
    fn largest(&self, sums: &BTreeMap<String, Amount>, noun: &str) -> String {
        let mut rows = by_money(sums);
        rows.retain(|(_, amount)| amount.nano_usd > 0);
        let most = self.top.unwrap_or(self.thresholds.names_max);
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
}
