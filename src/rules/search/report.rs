//! What a search found: one sentence, the path as a table, the findings that are written, JSON.

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::report::numbers::{counted, percent, signed, thousands};
use crate::report::table::Table;
use crate::rules::search::{Judged, PathStep, Search, SearchSessions};
use crate::settings::View;
use crate::settings::finding::{Basis, Delta, Evidence, Finding, Verdict};

/// The name under which the journal notes what came of a search.
pub const RULE: &str = "search";

/// The answer in one sentence; `who` runs the pipeline.
pub fn sentence(search: &Search, who: &str) -> String {
    let held = search.steps.iter().filter(|step| step.holds).count() as u64;
    let later = counted(search.later.sessions, "later session");
    let tried = counted(search.candidates, "value");
    if !search.is_judged {
        return format!("too few later sessions ({}) to judge {tried} on ({who})", search.later.sessions);
    }
    if search.steps.is_empty() {
        let earlier = counted(search.earlier.sessions, "earlier session");
        return format!("of {tried}, none saves enough in the {earlier} to be judged on the {later} ({who})");
    }
    if held == 0 {
        return format!("of {tried}, none saves more in the {later} ({who})");
    }
    let all = &search.together;
    format!(
        "{} would save {} more of all tool-result tokens in the {later} ({} to {}; {who})",
        counted(held, "change"),
        share(all.tokens as f64, &search.later),
        share(all.lower, &search.later),
        share(all.upper, &search.later),
    )
}

/// The steps, one after the other; without any the columns alone.
pub fn steps(search: &Search) -> Table {
    let (earlier, later) = (&search.earlier, &search.later);
    let mut path = Table::new(&["#step", "change", "now", "#earlier", "#later", "#from", "#to", "holds"]);
    for (number, step) in (1_u64..).zip(&search.steps) {
        path.row([
            number.to_string(),
            format!("{} = {}", step.key, step.to),
            step.from.clone().unwrap_or_else(|| "(built in)".to_owned()),
            share(step.earlier_tokens as f64, earlier),
            share(step.later.tokens as f64, later),
            share(step.later.lower, later),
            share(step.later.upper, later),
            if step.holds { "yes" } else { "no" }.to_owned(),
        ]);
    }
    path
}

/// The tables, each with its heading: the path; with `explain` also what the search would have brought before.
pub fn tables(search: &Search, explain: bool) -> Vec<(String, Table)> {
    let (earlier, later) = (&search.earlier, &search.later);
    let heading = format!(
        "looked for in {} ({} tokens of tool results, {} saved now), judged on {} ({}, {})",
        counted(earlier.sessions, "earlier session"),
        thousands(earlier.baseline_tokens.unsigned_abs()),
        share(earlier.saved_tokens as f64, earlier),
        counted(later.sessions, "later one"),
        thousands(later.baseline_tokens.unsigned_abs()),
        share(later.saved_tokens as f64, later),
    );
    let mut tables = Vec::new();
    if !search.steps.is_empty() {
        tables.push((heading, steps(search)));
    }
    if explain && !search.folds.is_empty() {
        let mut folds = Table::new(&["#known", "#next", "#changes", "#predicted", "#came", "#from", "#to"]);
        for fold in &search.folds {
            folds.row([
                thousands(fold.known),
                thousands(fold.next),
                thousands(fold.changes),
                signed(fold.predicted_tokens, 0),
                signed(fold.actual.tokens as f64, 0),
                signed(fold.actual.lower, 0),
                signed(fold.actual.upper, 0),
            ]);
        }
        tables.push((
            "the same search made earlier: tokens that it predicted for the next sessions, and what came".to_owned(),
            folds,
        ));
    }
    tables
}

fn share(tokens: f64, part: &SearchSessions) -> String {
    percent(tokens / (part.baseline_tokens as f64).max(1.0))
}

/// The steps as findings: those that hold are proposed. Keys that may not be written are held.
pub fn findings(search: &Search, current: &View<'_>) -> Result<Vec<Finding>> {
    let held = search.closed.iter().map(|closed| {
        let verdict = Verdict::Hold(format!("{}: not tried", closed.reason));
        Ok(Finding::new(RULE, closed.key.clone(), verdict, Evidence::default()))
    });
    search.steps.iter().map(|step| finding(search, step, current)).chain(held).collect()
}

fn finding(search: &Search, step: &PathStep, current: &View<'_>) -> Result<Finding> {
    let key: KeyPath = step.key.parse()?;
    let Judged { tokens, lower, upper } = step.later;
    let counts = format!(
        "{} tokens more saved in {} ({} to {}, corrected for the number of steps)",
        signed(tokens as f64, 0),
        counted(search.later.sessions, "later session"),
        signed(lower, 0),
        signed(upper, 0),
    );
    let to = step.to.parse().unwrap_or_else(|_| toml_edit::Value::from(step.to.as_str()));
    let verdict = if step.holds {
        Verdict::Propose(Delta { from: current.value(&key), key, to })
    } else {
        Verdict::Hold(format!("`{key}` = {to} does not save more than chance in the later sessions"))
    };
    let evidence = Evidence { basis: Basis::Replayed, ..Evidence::of(counts, search.later.sessions) };
    Ok(Finding::new(RULE, step.key.clone(), verdict, evidence))
}
