//! What a finding stands on: everything that was looked at, and the sessions that have most of it.

use serde_json::{Value, json};

use crate::cost::findings::search::{BillFinding, InSession, Looked};
use crate::cost::findings::{FindingBasis, Made};
use crate::cost::page::words::Telling;
use crate::cost::page::words::finding::sized;
use crate::report::numbers::{percent, thousands, usd};
use crate::report::table::{Table, TableBuilder};
use crate::whatif::sim::figures::CostVerdict;

/// The whole and its parts.
pub fn looks(telling: &Telling<'_>, finding: &BillFinding) -> Table {
    let interval = |look: &Looked| {
        let Some(ends) = look.interval_usd else { return "too few sessions".to_owned() };
        telling.interval(finding, ends, look.before_usd).unwrap_or_else(|| "the same for all".to_owned())
    };
    let share = |look: &Looked| percent(look.saved_usd / look.before_usd.max(f64::MIN_POSITIVE)).replace('-', "−");
    TableBuilder::of(&finding.looks)
        .text("where", |look| place(telling, look))
        .count("sessions", |look| look.sessions)
        .count("times", |look| look.count)
        .number("spent", |look| usd(look.before_usd))
        .number("less", |look| usd(look.saved_usd))
        .number("of it", |look| share(look))
        .number("95 %", |look| interval(look))
        .text("verdict", |look| verdict(look).to_owned())
        .table()
}

/// The same for programs, by the names that they have in JSON: plain numbers, and nothing where there is no interval.
pub fn looks_csv(telling: &Telling<'_>, looks: &[Looked]) -> Table {
    let end = |end: Option<f64>| end.map(|end| end.to_string()).unwrap_or_default();
    TableBuilder::of(looks)
        .text("by", |look| look.by.clone())
        .text("name", |look| name(telling, look))
        .number("sessions", |look| look.sessions.to_string())
        .number("count", |look| look.count.to_string())
        .number("before_usd", |look| look.before_usd.to_string())
        .number("saved_usd", |look| look.saved_usd.to_string())
        .number("lower_usd", |look| end(look.interval_usd.map(|(lower, _)| lower)))
        .number("upper_usd", |look| end(look.interval_usd.map(|(_, upper)| upper)))
        .text("verdict", |look| look.verdict.into_str().to_owned())
        .table()
}

/// The name of a part in data.
fn name(telling: &Telling<'_>, look: &Looked) -> String {
    if look.by == "project" { telling.part("project", &look.name) } else { look.name.clone() }
}

fn place(telling: &Telling<'_>, look: &Looked) -> String {
    match look.by.as_str() {
        "all" => "everywhere".to_owned(),
        "together" => "where it holds".to_owned(),
        "context" => format!("contexts {} tokens", sized(&look.name)),
        by => telling.part(by, &look.name),
    }
}

fn verdict(look: &Looked) -> &'static str {
    match look.verdict {
        _ if look.interval_usd == Some((0.0, 0.0)) => "no effect",
        CostVerdict::Cheaper => "holds",
        CostVerdict::MoreExpensive => "costs more",
        CostVerdict::NoClearWinner => "may be chance or error",
    }
}

/// What the columns of [`looks`] are.
pub fn caption(finding: &BillFinding) -> &'static str {
    match finding.basis {
        FindingBasis::Replayed => {
            "Spent: input as simulated; less: what the same requests would have cost less. What is said of a row is corrected \
             for all rows that were looked at and for what the simulation is off; intervals are not."
        }
        FindingBasis::Billed => "Spent: input by the bill; less: what the bill shows that it cost.",
        FindingBasis::Shared => "Spent: input and output by the bill; less: what the bill shows that it cost.",
        FindingBasis::Priced => {
            "Spent: input and output by the bill; less: what the other model would have charged less."
        }
    }
}

/// The sessions that have most of it.
pub fn sessions(telling: &Telling<'_>, finding: &BillFinding) -> Table {
    TableBuilder::of(&finding.largest)
        .text("session", |one| telling.names.session(&one.session))
        .text("project", |one| telling.names.project(&one.project))
        .count("times", |one| one.count)
        .number("spent", |one| usd(one.before_usd))
        .number("less", |one| usd(one.saved_usd))
        .table()
}

/// What it is made of; none where the logs tell no names.
pub fn made_of(telling: &Telling<'_>, finding: &BillFinding) -> Option<Table> {
    let figures = ["#times", "#spent", "#less"];
    let columns: Vec<&str> = finding.made_by.iter().map(String::as_str).chain(figures).collect();
    let mut table = Table::new(&columns);
    for made in &finding.made_of {
        let names = finding.made_by.iter().zip(&made.names).map(|(kind, name)| telling.part(kind, name));
        let figures = [thousands(made.count), usd(made.before_usd), usd(made.saved_usd)];
        table.row(names.chain(figures));
    }
    (!finding.made_of.is_empty()).then_some(table)
}

/// All as data, with names instead of pseudonyms.
pub fn json(telling: &Telling<'_>, finding: &BillFinding) -> Value {
    let look = |look: &Looked| {
        let mut row = json!(look);
        row["name"] = json!(name(telling, look));
        row
    };
    let session = |one: &InSession| {
        let mut row = json!(one);
        row["session"] = json!(telling.names.session(&one.session));
        row["project"] = json!(telling.names.project(&one.project));
        row
    };
    let made = |made: &Made| {
        let names = finding.made_by.iter().zip(&made.names);
        let mut row: Value = names.map(|(kind, name)| (kind.clone(), json!(telling.part(kind, name)))).collect();
        row["count"] = json!(made.count);
        row["before_usd"] = json!(made.before_usd);
        row["saved_usd"] = json!(made.saved_usd);
        row
    };
    json!({
        "made_of": finding.made_of.iter().map(made).collect::<Vec<_>>(),
        "looks": finding.looks.iter().map(look).collect::<Vec<_>>(),
        "largest": finding.largest.iter().map(session).collect::<Vec<_>>(),
    })
}
