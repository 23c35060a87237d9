//! Statistics against what came after them, as a table and as JSON.

use serde_json::{Value, json};

use crate::base::backtest::{Promise, PromiseCoverage};
use crate::report::numbers::{counted, date, known, thousands};
use crate::report::table::{Table, TableBuilder};

/// A row for each statistic.
pub fn table(rows: &[PromiseCoverage]) -> Table {
    let held = |row: &PromiseCoverage| Some(row.share()).filter(|share| share.n > 0);
    TableBuilder::of(rows)
        .text("statistic", |row| row.statistic.clone())
        .number("promised", |row| promised(row.promise))
        .number("held", |row| known(held(row), |share| percent(share.value())))
        .number("95 % over weeks", |row| {
            known(row.interval, |(low, high)| format!("{}–{}", percent(low), percent(high)))
        })
        .number("of", |row| of(row.share().n, &row.unit))
        .number("weeks", |row| row.weeks.len().to_string())
        .text("judged from", |row| known(row.weeks.first(), |week| date(week.week_ms)))
        .text("covers", |row| row.verdict().into_str().to_owned())
        .table()
}

/// "1 forecast", "2 forecasts"
fn of(count: u64, unit: &str) -> String {
    unit.strip_suffix('s').map_or_else(|| format!("{} {unit}", thousands(count)), |one| counted(count, one))
}

/// What stands behind the table.
pub fn notes(tolerance: f64) -> [String; 3] {
    [
        "each week: what the sessions before it said, held against all sessions behind it".to_owned(),
        format!(
            "covers: pass or fail only where the whole interval is within, or beyond, {:.0} points of the promise; weeks \
             share their later sessions, so the interval is rather too narrow than too wide",
            100.0 * tolerance
        ),
        "a rule whose statistic fails proposes nothing from it; on forecasts of policies (reads, sizes after compactions) no rule \
         stands"
            .to_owned(),
    ]
}

/// Everything.
pub fn json(rows: &[PromiseCoverage]) -> Value {
    let row = |row: &PromiseCoverage| {
        let share = row.share();
        json!({
            "statistic": row.statistic,
            "unit": row.unit,
            "promised": row.promise.share(),
            "kind": match row.promise { Promise::AtLeast(_) => "at_least", Promise::About(_) => "about" },
            "tolerance": row.tolerance,
            "held": share.k,
            "judged": share.n,
            "share": (share.n > 0).then(|| share.value()),
            "weeks_95": row.interval.map(|(low, high)| [low, high]),
            "verdict": row.verdict().into_str(),
            "weeks": row.weeks,
        })
    };
    rows.iter().map(row).collect()
}

fn promised(promise: Promise) -> String {
    match promise {
        Promise::AtLeast(share) => format!("≥ {}", percent(share)),
        Promise::About(share) => format!("= {}", percent(share)),
    }
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}
