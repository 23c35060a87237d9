//! The report of the cache: what it read, what other lifetimes and layouts would have cost, and why the cache was missed.

use crate::report::numbers::{counted, known, percent, percent_of, signed, thousands};
use crate::report::table::{Table, TableBuilder};
use crate::whatif::calibration::{self, Calibration};
use crate::whatif::prompt_cache::outcome::{AgainstBill, CacheArm, IdleReads, PromptCache};
use crate::whatif::prompt_cache::reference::{self, PublishedStudy};
use crate::whatif::report::money;
use crate::whatif::sim::cost::{Cost, Total};
use crate::whatif::sim::distance::UnforeseenLosses;
use crate::whatif::sim::figures::{CostVerdict, Deviation, Portion};

/// What the figures rest on, and in which direction they err.
const NOTES: [&str; 3] = [
    "requests that Claude Code does not log (most forks that share the prefix, most summarisers) are on nobody's bill here; \
     those that it logs as agents (acompact, aprompt_suggestion) are subagents on the bill; the fork that caches an answer before a person writes is assumed, with its measured size where the bill shows it",
    "the start of a request is not logged: the last record before its answer stands for it, which is late, so a little more \
     counts as expired; 15 s of slack make up for it",
    "variants are held against the simulated log, not against the bill, both without the requests that have no price one \
     way; a difference within the simulation's own error (or 3 %), or whose 95 % interval over sessions includes zero, \
     is called no clear winner",
];

/// What the figures rest on; `with_output`: whether answers count.
pub fn notes(with_output: bool) -> Vec<String> {
    let left_out = (!with_output).then_some("output is left out: logs report it too low");
    NOTES.into_iter().chain(left_out).map(str::to_owned).collect()
}

/// The first line, if nothing was set: what caching is worth, and whether another lifetime would be better.
pub fn headline(found: &PromptCache) -> String {
    let saved = -found.uncached.cost.change_to(&found.billed.cost).unwrap_or_default();
    let whole = whole(found);
    let cheaper =
        found.arms.iter().filter(|arm| arm.verdict == CostVerdict::Cheaper && !arm.name.starts_with("layout"));
    let best = cheaper.min_by_key(|arm| arm.total.cost.units).map_or_else(
        || "no other lifetime is clearly cheaper".to_owned(),
        |arm| {
            let change = arm.against.change_to(&arm.total.cost).unwrap_or_default();
            format!("{} would have cost {} less", arm.name, percent(-change))
        },
    );
    if saved < 0.0 {
        return format!("caching made {whole} {} more expensive than no cache would; {best}", percent(-saved));
    }
    format!("caching took {} off the cost of {whole}; {best}", percent(saved))
}

/// What the costs are of.
fn whole(found: &PromptCache) -> &'static str {
    if found.billed.spent.output > 0 { "input and output" } else { "the input" }
}

/// What was found, in sentences.
pub fn summary(found: &PromptCache) -> Vec<String> {
    let billed = &found.billed.spent;
    let uncached = &found.uncached.cost;
    let mut lines = vec![format!(
        "billed: {} read, {} written for 5 minutes, {} for an hour, {} uncached: {} of all input was read from the cache",
        thousands(billed.read),
        thousands(billed.write_5m),
        thousands(billed.write_1h),
        thousands(billed.uncached),
        percent_of(billed.read, billed.prompt())
    )];
    if let Some(change) = uncached.change_to(&found.billed.cost) {
        lines.push(format!(
            "with the cache {} cost {} {} than without ({} instead of {})",
            whole(found),
            percent(change.abs()),
            if change > 0.0 { "more" } else { "less" },
            cost(&found.billed.cost),
            cost(uncached)
        ));
    }
    if let Some((cause, sum)) = found.causes.iter().max_by_key(|(_, sum)| sum.cost_lost.units) {
        lines.push(format!(
            "most of what cache misses cost came from: {} ({}), {} tokens written again or billed in full, {} more than reading them",
            cause.words(),
            counted(sum.events, "miss"),
            thousands(sum.tokens_again),
            cost(&sum.cost_lost)
        ));
    }
    if let Some(change) = found.best_per_session.against.change_to(&found.best_per_session.cost) {
        let sessions = found.best_per_session.sessions.iter().map(|(name, count)| format!("{name} in {count}"));
        lines.push(format!(
            "each session under its own best lifetime would cost {} less than all of them as they were: {}",
            percent(-change),
            sessions.collect::<Vec<_>>().join(", ")
        ));
    }
    if found.without_usage > 0 {
        lines.push(format!("not priced for want of usage: {}", counted(found.without_usage, "request")));
    }
    lines
}

/// All tables with their titles.
pub fn tables(found: &PromptCache, calibration: &Calibration, study: &PublishedStudy) -> Vec<(String, Table)> {
    let mut tables = vec![
        ("other TTLs, layouts and keep-alive reads, against the simulated log".to_owned(), arms(found)),
        ("keep-alive reads that one write is worth".to_owned(), idle_reads(&found.idle_reads)),
        ("why the cache was missed, by the bill".to_owned(), causes(found)),
        ("the simulation against the bill, request by request".to_owned(), accuracy(found)),
        (format!("beside the figures of {} ({})", study.name, study.about), reference::table(&found.reference, study)),
        ("other models of the same cache".to_owned(), models(found)),
        (
            "bytes and characters per token on these logs, by model: text without thinking".to_owned(),
            calibration::families(&calibration.families),
        ),
        (
            "how far estimates are from measured growth, increment by increment".to_owned(),
            calibration::drift(&calibration.drift),
        ),
    ];
    if !found.stated.is_empty() {
        tables.push((
            "what the client says that sessions have cost, and what the log comes to".to_owned(),
            reference::stated_table(&found.stated),
        ));
    }
    if let Some(workspace) = &found.workspace {
        let rows = [
            ("sessions with one", workspace.sessions),
            ("roots with one", workspace.roots),
            ("writes to Markdown files", workspace.writes),
            ("of these, instructions of the client", workspace.instruction_writes),
            ("invalidations (writes close together count once)", workspace.invalidations),
            ("with a request after them", workspace.followed_by_break.n),
            ("of these, requests that lost the cache", workspace.followed_by_break.k),
        ];
        let mut table = TableBuilder::of(rows)
            .text("writes to workspace files", |(name, _)| (*name).to_owned())
            .count("", |(_, value)| *value)
            .table();
        table.row(["at risk, had each one voided the prefix".into(), cost(&workspace.cost_at_risk)]);
        tables.push(("the workspace bundle of an agent runtime".to_owned(), table));
    }
    tables
}

/// How figures come about, with the user's numbers.
pub fn formulas(found: &PromptCache) -> Vec<String> {
    let spent = &found.billed.spent;
    let against = &found.against_bill;
    let mut formulas = vec![
        format!(
            "context = uncached + written + read: {} + {} + {} = {} tokens over {}",
            thousands(spent.uncached),
            thousands(spent.write()),
            thousands(spent.read),
            thousands(spent.prompt()),
            counted(found.billed.requests, "request")
        ),
        format!(
            "hit ratio = read / (read + written + uncached) = {} / {}",
            thousands(spent.read),
            thousands(spent.prompt())
        ),
        "input-equivalent tokens = money / input price of the model; at the usual ratios uncached + 0.1 · read + 1.25 · 5-minute \
         writes + 2 · 1-hour writes"
            .to_owned(),
        format!(
            "error of reads = Σ |foretold − billed| / Σ billed = {} / {}; foretold: what is known of a request before its bill",
            thousands(against.read_error),
            thousands(against.read_billed)
        ),
        format!(
            "bias = (Σ foretold − Σ billed) / Σ billed = ({} − {}) / {}",
            thousands(against.read_simulated),
            thousands(against.read_billed),
            thousands(against.read_billed)
        ),
        format!(
            "threshold model: R / C = {} / {}; an hour is cheaper above (2 − 1.25) / (2 − 0.1) = 0.3947 at the usual ratios",
            thousands(found.threshold.recoverable),
            thousands(found.threshold.written)
        ),
    ];
    formulas.extend(found.idle_reads.iter().map(|even| {
        let (write, read) = (even.write_nano_usd, even.read_nano_usd);
        format!(
            "keep-alive reads that one write is worth = (write − read) / read: {} for {} ({} − {}) / {} = {:.1}, in nano-dollars per token",
            even.model,
            even.lifetime,
            thousands(write),
            thousands(read),
            thousands(read),
            write.saturating_sub(read) as f64 / read.max(1) as f64
        )
    }));
    formulas
}

/// Break-even of keep-alive by model and lifetime.
fn idle_reads(rows: &[IdleReads]) -> Table {
    let mut table = Table::new(&["model", "lifetime", "#reads", "keep a prefix alive for"]);
    for even in rows {
        let bridged = |(every_s, idle_s): (&u32, &Option<u64>)| {
            let every = thousands(u64::from(*every_s));
            idle_s.map_or_else(|| format!("gone within {every} s"), |idle_s| format!("{} at {every} s", idle(idle_s)))
        };
        let kept: Vec<String> = even.idle_s.iter().map(bridged).collect();
        table.row([even.model.clone(), even.lifetime.to_owned(), thousands(even.reads), kept.join("; ")]);
    }
    table
}

/// "54 min", from two hours on "18 h 20 min"; seconds are dropped.
fn idle(seconds: u64) -> String {
    match seconds / 60 {
        minutes @ 0..120 => format!("{minutes} min"),
        minutes => format!("{} h {} min", minutes / 60, minutes % 60),
    }
}

fn arms(found: &PromptCache) -> Table {
    let own = ("as it was (simulated)", &found.baseline, &found.baseline.cost, None);
    let arms = found.arms.iter().map(|arm| (arm.name.as_str(), &arm.total, &arm.against, Some(arm)));
    let change = |total: &Total, base: &Cost| base.change_to(&total.cost);
    let interval = |arm: &CacheArm| Some((arm.change_lower?, arm.change_upper?));
    let ends = |(lower, upper)| format!("{} … {} %", signed(100.0 * lower, 1), signed(100.0 * upper, 1));
    TableBuilder::of(std::iter::once(own).chain(arms))
        .text("variant", |(name, ..)| (*name).to_owned())
        .number("read, M", |(_, total, ..)| millions(total.spent.read as f64))
        .number("written, M", |(_, total, ..)| millions(total.spent.write() as f64))
        .number("cost", |(_, total, ..)| money(&total.cost))
        .number("instead of", |(.., base, arm)| known(arm.map(|_| money(base)), |cost| cost))
        .number("change", |(_, total, base, _)| {
            known(change(total, base), |change| format!("{} %", signed(100.0 * change, 1)))
        })
        .number("95 %", |(.., arm)| known(arm.and_then(interval), ends))
        .number("better in", |(.., arm)| known(arm.map(|arm| arm.sessions_better), thousands))
        .number("worse in", |(.., arm)| known(arm.map(|arm| arm.sessions_worse), thousands))
        .text("verdict", |(.., arm)| known(arm.map(|arm| arm.verdict), |verdict| verdict.into_str().to_owned()))
        .table()
}

fn causes(found: &PromptCache) -> Table {
    let mut rows: Vec<_> = found.causes.iter().filter(|(_, sum)| sum.events > 0).collect();
    rows.sort_by_key(|(cause, sum)| (std::cmp::Reverse(sum.tokens_lost), **cause));
    TableBuilder::of(rows)
        .text("cause", |(cause, _)| cause.words().to_owned())
        .count("misses", |(_, sum)| sum.events)
        .count("tokens lost", |(_, sum)| sum.tokens_lost)
        .count("paid again", |(_, sum)| sum.tokens_again)
        .count("more than reading", |(_, sum)| sum.cost_lost.iet().round() as u64)
        .number("dollars", |(_, sum)| known(sum.cost_lost.usd(), |usd| format!("{usd:.2}")))
        .table()
}

fn accuracy(found: &PromptCache) -> Table {
    let bars = &found.bars;
    let bar = |sign: &str, value: f64| format!("{sign} {value} %");
    let mut table = Table::new(&["figure", "bar", "#all chains", "#main threads", "#held out"]);
    let sides = [&found.against_bill, &found.against_bill_main, &found.against_bill_held_out];
    let mut add = |name: &str, bar: String, figure: &dyn Fn(&AgainstBill) -> String| {
        table.row([name.to_owned(), bar].into_iter().chain(sides.iter().map(|side| figure(side))));
    };
    let at_least = |count: Portion, bar: f64| match count.n {
        0 => none(),
        n => judged(100.0 * count.value() >= bar, format!("{} of {}", percent(count.value()), thousands(n))),
    };
    let off = |side: &AgainstBill, off: Deviation, bar: f64, text: &dyn Fn(f64) -> String| match side.requests {
        0 => none(),
        _ => judged(100.0 * off.size() <= bar, off.share().map_or_else(|| "n/a".to_owned(), text)),
    };
    let signed_share = |share: f64| format!("{} %", signed(100.0 * share, 2));
    add("requests", String::new(), &|side| thousands(side.requests));
    add("error of reads", bar("≤", bars.read_error), &|side| {
        off(side, side.wape(), bars.read_error, &|share| format!("{:.2} %", 100.0 * share))
    });
    add("warm tool turns exact", bar("≥", bars.warm_exact), &|side| at_least(side.warm_tool_turns, bars.warm_exact));
    add("misses that read what the request before had read", String::new(), &|side| thousands(side.late_writes));
    add("bias of reads", bar("±", bars.bias), &|side| off(side, side.bias(), bars.bias, &signed_share));
    add("cost", bar("±", bars.cost), &|side| off(side, side.cost_error(), bars.cost, &signed_share));
    add("human turns exact or within 2 %", bar("≥", bars.human_close), &|side| {
        at_least(side.human_turns_close, bars.human_close)
    });
    let slack = [none(), none(), format!("fitted: {} s", found.slack_s_fitted)];
    table.row(["slack of lifetimes".to_owned(), String::new()].into_iter().chain(slack));
    let held = found.weeks.iter().filter(|week| week.holds()).count() as u64;
    let weeks = Portion { k: held, n: found.weeks.len() as u64 };
    let promised = format!("promised: {} %", found.weeks_promised);
    table.row(["weeks whose reads lay in the interval known before".to_owned(), promised, of(weeks), none(), none()]);
    table
}

fn of(part: Portion) -> String {
    format!("{} of {}", thousands(part.k), thousands(part.n))
}

/// A figure, with the word for it where it does not reach its bar.
fn judged(is_met: bool, figure: String) -> String {
    if is_met { figure } else { format!("{figure}, missed") }
}

/// How often the cache was missed for no reason in the log: what the simulation expects at these rates.
pub fn losses(losses: &[UnforeseenLosses]) -> Table {
    TableBuilder::of(losses)
        .text("where", |row| {
            let place = if row.place == "turn" { "where somebody wrote" } else { "within turns" };
            place.to_owned()
        })
        .text("what else stood before", |row| {
            row.occasion.map_or_else(|| "any".to_owned(), |occasion| occasion.into_str().to_owned())
        })
        .count("lost", |row| row.count.k)
        .count("of", |row| row.count.n)
        .number("rate", |row| percent(row.count.value()))
        .number("95 %", |row| format!("{:.1}–{:.1} %", 100.0 * row.lower, 100.0 * row.upper))
        .table()
}

fn models(found: &PromptCache) -> Table {
    let (threshold, hot) = (&found.threshold, &found.hot_cache);
    let multiplier = |value: u64| format!("{:.5}", value as f64 / 100_000.0);
    let rows = [
        ("threshold model: as billed, writes and reads", cost(&threshold.actual)),
        ("threshold model: all for 5 minutes", cost(&threshold.five_minutes)),
        ("threshold model: all for an hour", cost(&threshold.hour)),
        ("router: effective price of input, by its rule", multiplier(hot.multiplier)),
        ("router: the same as billed", multiplier(hot.multiplier_measured)),
        ("router: hot requests that read from the cache", of(hot.hot)),
        ("router: cold by its rule, yet read", of(hot.cold_but_warm)),
    ];
    TableBuilder::of(rows)
        .text("model", |(name, _)| (*name).to_owned())
        .number("figure", |(_, figure)| figure.clone())
        .table()
}

fn millions(tokens: f64) -> String {
    format!("{:.1}", tokens / 1e6)
}

/// Dollars of what has a price, with what has none.
fn cost(cost: &Cost) -> String {
    let besides = match cost.unpriced_tokens {
        unpriced @ 1.. if cost.usd().is_some() => format!(" besides {} without a price", counted(unpriced, "token")),
        _ => String::new(),
    };
    money(cost) + &besides
}

fn none() -> String {
    "–".to_owned()
}
