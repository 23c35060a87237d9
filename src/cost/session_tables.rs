//! One session as a drawing, as tables and as JSON.

use serde_json::{Value, json};

use crate::base::listing::{Columns, Listing};
use crate::cost::groups::Label;
use crate::cost::session::{CarriedThing, SessionCost, SessionRequest};
use crate::cost::tables::{dollars, percent_of};
use crate::logs::trace::{Millis, NO_TIME};
use crate::report::numbers::{counted, lasting, thousands};
use crate::report::table::{Table, TableBuilder};
use crate::whatif::prompt_cache::outcome::Cause;
use crate::whatif::sim::cost::Cost;

/// Columns of the drawing at most, those before it, and its lines.
const COLUMNS_MAX: usize = 72;
const MARGIN: usize = 10;
const HEIGHT: usize = 6;
/// Eighths of a line.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The size of the main thread's context over its requests, with compactions (`c`) and cache misses (`m`) below; no wider than a
/// terminal of so many columns.
pub fn drawing(found: &SessionCost, terminal: Option<u16>) -> Vec<String> {
    let main: Vec<&SessionRequest> = found.moments.iter().filter(|moment| moment.thread == 0).collect();
    let room = terminal.map_or(COLUMNS_MAX, |columns| usize::from(columns).saturating_sub(MARGIN));
    let width = main.len().min(COLUMNS_MAX).min(room);
    if width < 2 {
        return Vec::new();
    }
    let bucket = |column: usize| &main[column * main.len() / width..(column + 1) * main.len() / width];
    let largest = |column: usize| bucket(column).iter().map(|moment| moment.context).max().unwrap_or(0);
    let top = (0..width).map(largest).max().unwrap_or(0).max(1);
    let eighths = |column: usize| (largest(column) * (HEIGHT as u64 * 8)).div_ceil(top) as usize;
    let mut lines: Vec<String> = (0..HEIGHT)
        .rev()
        .map(|line| {
            let scale =
                if line + 1 == HEIGHT { format!("{:>1$}", thousands(top), MARGIN - 1) } else { " ".repeat(MARGIN - 1) };
            let bars = (0..width).map(|column| BARS[eighths(column).saturating_sub(8 * line).min(8)]);
            format!("{scale} {}", bars.collect::<String>().trim_end())
        })
        .collect();
    let mark = |column: usize| {
        let any = |is: fn(&SessionRequest) -> bool| bucket(column).iter().any(|moment| is(moment));
        match (any(|moment| moment.compacted), any(|moment| moment.miss.is_some())) {
            (true, _) => 'c',
            (false, true) => 'm',
            (false, false) => ' ',
        }
    };
    lines.push(format!("{} {}", " ".repeat(MARGIN - 1), (0..width).map(mark).collect::<String>().trim_end()));
    lines
}

/// What the drawing shows.
pub const CAPTION: &str =
    "Tokens in the context of the main thread, request by request; c: compacted before, m: cache missed.";

/// Day and time in the local zone.
pub fn time(ms: Millis) -> String {
    let zoned =
        |at: jiff::Timestamp| at.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S").to_string();
    let known = if ms == NO_TIME { None } else { jiff::Timestamp::from_millisecond(ms).ok() };
    known.map_or_else(|| "–".to_owned(), zoned)
}

/// The most expensive requests, in the order of their cost.
pub fn dearest(found: &SessionCost, count: usize) -> Vec<&SessionRequest> {
    let mut moments: Vec<&SessionRequest> = found.moments.iter().collect();
    let weight = |moment: &SessionRequest| (moment.cost.nano_usd, moment.cost.units);
    moments.sort_by(|a, b| weight(b).cmp(&weight(a)).then((a.thread, a.number).cmp(&(b.thread, b.number))));
    moments.truncate(count);
    moments
}

/// What happened before a request, in words.
fn occasion(moment: &SessionRequest) -> String {
    let lost = moment.miss_cost.usd().map_or_else(String::new, |_| format!(" ({} lost)", dollars(&moment.miss_cost)));
    let words = |cause: Cause| match moment.expired && cause != Cause::TtlExpiry {
        true => format!("{}, and it had expired", cause.words()),
        false => cause.words().to_owned(),
    };
    let miss = moment.miss.map(|cause| format!("cache miss: {}{lost}", words(cause)));
    let parts = [moment.compacted.then(|| "compacted".to_owned()), miss, moment.human.then(|| "prompt".to_owned())];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The session in one sentence.
pub fn headline(found: &SessionCost) -> String {
    let span = found.span.map(|(first, last)| format!("from {}, {}", time(first), lasting(last.saturating_sub(first))));
    let misses = found.moments.iter().filter(|moment| moment.miss.is_some()).count() as u64;
    let lost: Cost = found.moments.iter().map(|moment| moment.miss_cost).sum();
    let mut parts: Vec<String> = span.into_iter().collect();
    parts.push(counted(found.total.requests, "request"));
    parts.extend((found.subagents > 0).then(|| counted(found.subagents, "subagent")));
    parts.push(counted(found.compactions, "compaction"));
    parts.push(if misses == 1 { "1 cache miss".to_owned() } else { format!("{misses} cache misses") });
    let is_told = misses > 0 && lost.usd().is_some();
    let lost = if is_told { format!(", of which these lost {}", dollars(&lost)) } else { String::new() };
    if found.total.cost.usd().is_some() {
        parts.push(format!("{} at list prices{lost}", dollars(&found.total.cost)));
    }
    if found.total.cost.unpriced_tokens > 0 {
        parts.push(format!("{} tokens without a price", thousands(found.total.cost.unpriced_tokens)));
    }
    let text = parts.join("; ");
    text[..1].to_uppercase() + &text[1..] + "."
}

/// Requests as a table.
pub fn moments(found: &SessionCost, chosen: &[&SessionRequest]) -> Table {
    let thread = |number: u64| if number == 0 { "main".to_owned() } else { format!("subagent {number}") };
    TableBuilder::of(chosen)
        .text("when", |moment| time(moment.ts))
        .text("thread", |moment| thread(moment.thread))
        .count("request", |moment| moment.number)
        .text("model", |moment| moment.model.clone())
        .count("context", |moment| moment.context)
        .count("read", |moment| moment.spent.read)
        .count("written", |moment| moment.spent.write())
        .count("output", |moment| moment.spent.output)
        .number("cost", |moment| dollars(&moment.cost))
        .number("share", |moment| percent_of(&moment.cost, &found.total.cost))
        .text("what happened", |moment| occasion(moment))
        .table()
}

/// Compactions and cache misses, in the order of the clock, and how many there are: compactions and the misses that lost
/// most, if not all are wanted.
pub fn events(found: &SessionCost, count: usize) -> (Vec<&SessionRequest>, usize) {
    let mut events: Vec<&SessionRequest> =
        found.moments.iter().filter(|moment| moment.compacted || moment.miss.is_some()).collect();
    let all = events.len();
    let weight = |moment: &SessionRequest| (moment.compacted, moment.miss_cost.nano_usd, moment.miss_cost.units);
    events.sort_by_key(|moment| (std::cmp::Reverse(weight(moment)), moment.ts, moment.thread, moment.number));
    events.truncate(count);
    events.sort_by_key(|moment| (moment.ts, moment.thread, moment.number));
    (events, all)
}

/// What was carried longest, as a table.
pub fn carried(found: &[CarriedThing], top: usize, name: &dyn Fn(&Label) -> String) -> Table {
    TableBuilder::of(found.iter().take(top))
        .text("what", |row| format!("{} {}", name(&row.label), row.half).trim_end().to_owned())
        .count("tokens", |row| row.tokens)
        .text("came in", |row| time(row.ts))
        .count("sent", |row| row.sent)
        .number("first", |row| dollars(&row.entry.first))
        .number("carried", |row| dollars(&row.entry.carried))
        .number("paid again", |row| dollars(&row.entry.again))
        .number("all", |row| dollars(&row.entry.cost()))
        .table()
}

/// All requests with all columns.
pub fn listing(found: &SessionCost) -> Listing {
    Columns::of(&found.moments)
        .count("thread", |moment| moment.thread)
        .count("request", |moment| moment.number)
        .whole("ts_ms", |moment| (moment.ts != NO_TIME).then_some(moment.ts))
        .text("model", |moment| moment.model.clone())
        .count("context_tokens", |moment| moment.context)
        .count("read_tokens", |moment| moment.spent.read)
        .count("written_5m_tokens", |moment| moment.spent.write_5m)
        .count("written_1h_tokens", |moment| moment.spent.write_1h)
        .count("uncached_tokens", |moment| moment.spent.uncached)
        .count("output_tokens", |moment| moment.spent.output)
        .whole("nano_usd", |moment| i64::try_from(moment.cost.nano_usd).ok())
        .count("unpriced_tokens", |moment| moment.cost.unpriced_tokens)
        .flag("compacted", |moment| moment.compacted)
        .flag("human", |moment| moment.human)
        .text("miss", |moment| moment.miss.map_or("", |cause| cause.into_str()).to_owned())
        .whole("miss_nano_usd", |moment| i64::try_from(moment.miss_cost.nano_usd).ok())
        .finish()
}

/// What was carried, for JSON.
pub fn carried_json(found: &[CarriedThing], top: usize, name: &dyn Fn(&Label) -> String) -> Value {
    let row = |row: &CarriedThing| {
        json!({
            "what": name(&row.label),
            "half": row.half,
            "tokens": row.tokens,
            "ts_ms": (row.ts != NO_TIME).then_some(row.ts),
            "sent": row.sent,
            "first": row.entry.first,
            "carried": row.entry.carried,
            "again": row.entry.again,
        })
    };
    found.iter().take(top).map(row).collect()
}
