//! A shared-out bill as tables and as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::listing::{Columns, Listing};
use crate::cost::attribution::{Attribution, CostRow, GroupCost};
use crate::cost::groups::{CostKey, Label};
use crate::logs::timeline::requests::{Session, Timeline};
use crate::logs::trace::{Millis, NO_TIME};
use crate::report::numbers::{counted, date, known, lasting, percent, thousands, usd};
use crate::report::table::Table;
use crate::whatif::sim::cost::Cost;

/// "$1,234.56", or a word where nothing has a price.
pub fn dollars(cost: &Cost) -> String {
    cost.usd().map_or_else(|| "no price".to_owned(), usd)
}

/// What people know a session by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AboutSession {
    pub project: Label,
    /// Its first and its last request, if they have times.
    pub span: Option<(Millis, Millis)>,
}

impl AboutSession {
    fn cells(&self, name: &dyn Fn(&Label) -> String) -> [String; 3] {
        let begun = known(self.span, |(first, _)| date(first));
        let lasted = known(self.span, |(first, last)| lasting(last - first));
        [name(&self.project), begun, lasted]
    }
}

/// Sessions by label.
pub type LabelledSessions = BTreeMap<Label, AboutSession>;

/// What is known of the sessions of a timeline.
pub fn sessions(timeline: &Timeline) -> LabelledSessions {
    let about = |session: &Session| AboutSession { project: Label::Project(session.project), span: None };
    let mut known: Vec<AboutSession> = timeline.sessions.iter().map(about).collect();
    for (_, request) in timeline.billed().filter(|(_, request)| request.start != NO_TIME) {
        let span = &mut known[timeline.chains[request.chain as usize].session as usize].span;
        let (first, last) = span.unwrap_or((request.start, request.start));
        *span = Some((first.min(request.start), last.max(request.end)));
    }
    timeline.sessions.iter().map(|session| Label::Session(session.id)).zip(known).collect()
}

/// "12.3 %" of a bill, or a dash where there is none.
pub fn percent_of(part: &Cost, whole: &Cost) -> String {
    known(part.share_of(whole), percent)
}

/// The most expensive rows, and what is left in one.
pub fn table(found: &Attribution, top: usize, name: &dyn Fn(&Label) -> String, sessions: &LabelledSessions) -> Table {
    let has_calls = found.rows.iter().any(|row| row.entry.calls > 0) && found.keys.iter().any(|key| key.is_of_things());
    let has_unpriced = found.total.cost().unpriced_tokens > 0;
    let mut headers: Vec<&str> = found.keys.iter().map(|key| key.into_str()).collect();
    let has_sessions = found.keys.contains(&CostKey::Session);
    headers.extend(if has_sessions { &["in project", "begun", "lasted"][..] } else { &[] });
    headers.extend(["#first", "#carried", "#paid again", "#all", "#share"]);
    headers.extend(if has_calls { &["#calls", "#per 1,000 calls"][..] } else { &[] });
    headers.extend(has_unpriced.then_some("#tokens without a price"));
    let mut table = Table::new(&headers);
    let mut line = |names: Vec<String>, entry: &GroupCost, all_called: bool| {
        let cost = entry.cost();
        let share = percent_of(&cost, &found.total.cost());
        let is_priced = cost.usd().is_some();
        let money = [&entry.first, &entry.carried, &entry.again, &cost];
        let money = money.map(|part| if is_priced { dollars(part) } else { "no price".to_owned() });
        let each = per_call(entry).filter(|_| all_called).map_or_else(String::new, |each| usd(1_000.0 * each));
        let calls = [thousands(entry.calls), each];
        let calls = calls.map(|cell| if entry.calls > 0 { cell } else { String::new() });
        let unpriced = thousands(cost.unpriced_tokens);
        let cells = names.into_iter().chain(money).chain([share]);
        table.row(cells.chain(calls.into_iter().filter(|_| has_calls)).chain(has_unpriced.then_some(unpriced)));
    };
    for row in found.rows.iter().take(top) {
        let mut names: Vec<String> = row.labels.iter().map(name).collect();
        let about = row.labels.iter().find_map(|label| sessions.get(label));
        names.extend(about.into_iter().flat_map(|about| about.cells(name)));
        line(names, &row.entry, true);
    }
    if let Some(rest) = rest(found, top) {
        let count = (found.rows.len() - top) as u64;
        let mut names = vec![String::new(); found.keys.len() + if has_sessions { 3 } else { 0 }];
        if let Some(first) = names.first_mut() {
            *first = format!("({})", counted(count, "more row"));
        }
        // What was called and what was not share no price of a call.
        line(names, &rest, found.rows[top..].iter().all(|row| row.entry.calls > 0));
    }
    table
}

/// What the rows behind the first so many add up to.
pub fn rest(found: &Attribution, top: usize) -> Option<GroupCost> {
    let rest = found.rows.get(top..).filter(|rest| !rest.is_empty())?;
    let mut sum = GroupCost::default();
    rest.iter().for_each(|row| sum += row.entry);
    Some(sum)
}

/// Dollars per call of a model with a price; none where there is none.
pub fn per_call(entry: &GroupCost) -> Option<f64> {
    entry.cost().usd().filter(|_| entry.priced_calls > 0).map(|usd| usd / entry.priced_calls as f64)
}

/// All rows with all columns.
pub fn listing(found: &Attribution, name: &dyn Fn(&Label) -> String) -> Listing {
    let nano = |cost: Cost| i64::try_from(cost.nano_usd).ok();
    let mut columns = Columns::of(&found.rows);
    for (index, key) in found.keys.iter().enumerate() {
        columns = columns.text(key.into_str(), |row: &CostRow| row.labels.get(index).map(name).unwrap_or_default());
    }
    columns
        .count("calls", |row| row.entry.calls)
        .whole("first_nano_usd", |row| nano(row.entry.first))
        .whole("carried_nano_usd", |row| nano(row.entry.carried))
        .whole("again_nano_usd", |row| nano(row.entry.again))
        .whole("nano_usd", |row| nano(row.entry.cost()))
        .real("share", |row| row.entry.cost().share_of(&found.total.cost()))
        .count("read_tokens", |row| row.entry.spent.read)
        .count("written_5m_tokens", |row| row.entry.spent.write_5m)
        .count("written_1h_tokens", |row| row.entry.spent.write_1h)
        .count("uncached_tokens", |row| row.entry.spent.uncached)
        .count("output_tokens", |row| row.entry.spent.output)
        .count("unpriced_tokens", |row| row.entry.cost().unpriced_tokens)
        .finish()
}

/// What a group cost, for JSON.
pub fn json(entry: &GroupCost) -> Value {
    json!({
        "calls": entry.calls,
        "first": entry.first,
        "carried": entry.carried,
        "again": entry.again,
        "cost": entry.cost(),
        "tokens": entry.spent,
    })
}
