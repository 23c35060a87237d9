//! The report of a policy in words.

use std::collections::BTreeMap;
use std::io::Write;

use crate::base::error::Result;
use crate::report::numbers::{counted, dates, percent, signed as figure, thousands, usd};
use crate::report::table::{Table, TableFormat};
use crate::whatif::compaction::SUMMARY_CALL;
use crate::whatif::report::tables::{clear_parts, dollars, money, parts_off};
use crate::whatif::report::{PolicyReport, ReportDetail};
use crate::whatif::sim::breakage::rows::{ClassCount, Strength};
use crate::whatif::sim::cells::Cell;
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::distance::UnforeseenLosses;
use crate::whatif::sim::figures::{Deviation, Outcome, Portion, RunBill, Sides, UnloggedCalls};

/// Writes the report: first the answer, then what it rests on, then the tables; of these the first ones unless all are wanted.
pub fn write(
    out: &mut dyn Write,
    report: &PolicyReport,
    form: TableFormat,
    ReportDetail { explain, rows, tables }: ReportDetail,
    width: Option<u16>,
) -> Result<()> {
    if let Some(off) = off_the_bar(report) {
        writeln!(out, "{off}\n")?;
    }
    headline(out, report, form)?;
    let is_short = tables < usize::MAX;
    let parts = clear_parts(&[report]);
    if !parts.is_empty() && !is_short {
        told_table(out, (CLEAR_PARTS, &parts), form, rows, width)?;
        writeln!(out)?;
    }
    if let Some(basis) = basis(report) {
        writeln!(out, "{}{}", if form == TableFormat::Md { "- " } else { "  " }, form.sentence(&basis))?;
    }
    section(out, form, "what it found", &report.summary)?;
    for (title, table) in report.tables.iter().take(tables) {
        told_table(out, (title, table), form, rows, width)?;
    }
    let misses = report.accuracy.is_some_and(|accuracy| accuracy.misses_bar());
    if let Some(distance) = report.distance.as_ref().filter(|_| explain || misses && !is_short) {
        told_table(out, (OFF_THE_BILL, &parts_off(distance)), form, usize::MAX, width)?;
    }
    examples(out, form, report)?;
    if explain {
        explained(out, form, report)?;
    }
    section(out, form, "to be read beside these figures", &report.notes)?;
    let is_untold = misses && !explain && report.distance.is_some();
    let rest = report.tables.len().saturating_sub(tables) + usize::from(!parts.is_empty()) + usize::from(is_untold);
    if is_short && rest > 0 {
        writeln!(out, "\n{} with --all", counted(rest as u64, "more table"))?;
    }
    Ok(())
}

fn told_table(
    out: &mut dyn Write,
    (title, table): (&str, &Table),
    form: TableFormat,
    rows: usize,
    width: Option<u16>,
) -> Result<()> {
    writeln!(out, "\n{title}")?;
    if form == TableFormat::Md {
        writeln!(out)?;
    }
    table.write_top(out, form, width, rows)
}

/// Records behind the examples of breaks, if they were asked for.
pub fn examples(out: &mut dyn Write, form: TableFormat, report: &PolicyReport) -> Result<()> {
    section(out, form, "examples of breaks", &report.shown)
}

/// Formulas of a report and where its approximations lean.
pub fn explained(out: &mut dyn Write, form: TableFormat, report: &PolicyReport) -> Result<()> {
    section(out, form, "what the figures rest on", &basis_in_detail(report))?;
    section(out, form, "how it is computed", &report.formulas)?;
    section(out, form, "where approximations lean", &report.bias)
}

/// Titles of the tables that every policy may have.
pub const CLEAR_PARTS: &str = "parts of these logs where it is clear (95 % interval over sessions)";
const OFF_THE_BILL: &str = "where the simulated log is off the bill, largest first";

/// Causes of the distance from the bill that the first line names.
const CAUSES_NAMED: usize = 3;

/// A warning for the first line, if the simulated log costs more or less than the bill by more than it may.
pub fn off_the_bar(report: &PolicyReport) -> Option<String> {
    let accuracy = report.accuracy.filter(|accuracy| accuracy.misses_bar())?;
    let (error, bar) = (accuracy.cost_error, 100.0 * accuracy.cost_bar);
    let distance = report.distance.iter();
    let named: Vec<String> = distance
        .flat_map(|distance| distance.parts.iter().take(CAUSES_NAMED).map(move |part| (part, distance)))
        .map(|(part, distance)| {
            let share = 100.0 * part.apart.share_of(&distance.total.cost_billed);
            format!("{} {} {} ({} %)", part.model, part.versions, part.cause.words(), figure(share, 1))
        })
        .collect();
    let most = if named.is_empty() { String::new() } else { format!("; most of it: {}", named.join(", ")) };
    Some(format!(
        "careful: replayed unchanged, these logs are {} off their bill (the aim is ± {bar} %), so a difference below {} decides \
         nothing{most}",
        off(error, |error| figure(error, 1)),
        percent(error.size().max(report.winner_min))
    ))
}

fn section(out: &mut dyn Write, form: TableFormat, title: &str, lines: &[String]) -> Result<()> {
    if !lines.is_empty() {
        writeln!(out, "\n{title}")?;
    }
    for line in lines {
        writeln!(out, "- {}", form.sentence(line))?;
    }
    Ok(())
}

/// The answer alone: what is saved, paid and broken, and on what it rests.
pub fn headline(out: &mut dyn Write, report: &PolicyReport, form: TableFormat) -> Result<()> {
    let bullet = if form == TableFormat::Md { "- " } else { "  " };
    if form == TableFormat::Md {
        writeln!(out, "## {}\n", form.sentence(&report.policy))?;
    }
    writeln!(out, "{}", form.sentence(&first_line(report)))?;
    if form == TableFormat::Md {
        writeln!(out)?;
    }
    for line in answer(report) {
        writeln!(out, "{bullet}{}", form.sentence(&line))?;
    }
    Ok(())
}

/// Dollars and input-equivalent tokens; these alone without a price.
fn in_full(cost: &Cost) -> String {
    let tokens = format!("{} input-equivalent tokens", thousands(cost.iet().round() as u64));
    let is = if cost.unpriced_tokens == 0 { "=" } else { "of" };
    cost.usd().map_or_else(|| tokens.clone(), |money| format!("{} {is} {tokens}", usd(money)))
}

/// How the comparison comes about, with the numbers of this one.
pub fn formulas(report: &PolicyReport) -> Vec<String> {
    let Some(outcome) = &report.outcome else { return Vec::new() };
    let (log, policy) = (&outcome.total.baseline, &outcome.total.policy);
    let parts = |bill: &RunBill| {
        let spent = &bill.spent;
        format!(
            "{} uncached, {} read, {} written for 5 minutes, {} for an hour{}: {}",
            thousands(spent.uncached),
            thousands(spent.read),
            thousands(spent.write_5m),
            thousands(spent.write_1h),
            if spent.output > 0 { format!(", {} of output", thousands(spent.output)) } else { String::new() },
            in_full(&bill.cost)
        )
    };
    vec![
        "saved = Σ contexts of the log − Σ contexts of the policy, each request by itself".to_owned(),
        format!("the log, simulated: {}", parts(log)),
        format!("the policy, simulated: {}", parts(policy)),
        format!(
            "change = policy / log − 1 = {} / {} − 1, in input-equivalent tokens (money / input price of the model)",
            thousands(policy.cost.iet().round() as u64),
            thousands(log.cost.iet().round() as u64)
        ),
        "read of a request = longest prefix that is still alive and equal; what is behind it is written if it is at least as long as \
         the model's smallest prefix, else uncached; read + written + uncached = context"
            .to_owned(),
    ]
}

/// On what the figures of reports over the same input rest.
pub fn basis(report: &PolicyReport) -> Option<String> {
    report.outcome.as_ref()?;
    let error = report.accuracy.map(|accuracy| {
        format!(
            "; the simulated log is {} off the bill{}, its cache reads are {} off{}",
            off(accuracy.cost_error, |error| figure(error, 1)),
            beside(accuracy.cost_error, accuracy.cost_bar),
            off(accuracy.wape_read, |error| format!("{error:.2}")),
            beside(accuracy.wape_read, accuracy.read_bar)
        )
    });
    let days = report.input.days.as_ref().map(|(first, last)| format!(", {}", dates(first, last))).unwrap_or_default();
    let requests = counted(report.input.requests, "request");
    let set: Vec<String> = report.cache.iter().map(|set| format!("prompt-cache.{set}")).collect();
    let cache = if set.is_empty() { String::new() } else { format!(", both sides with {}", set.join(", ")) };
    Some(format!("basis: simulated over {requests}{days}{cache}{} (--explain says more)", error.unwrap_or_default()))
}

/// The same in detail: sizes, which way reads err, losses that nothing foretold.
fn basis_in_detail(report: &PolicyReport) -> Vec<String> {
    let fidelity = &report.fidelity;
    let measured = fidelity.anchored_share.map(|share| format!(", {} of increments measured", percent(share)));
    let sizes =
        report.outcome.as_ref().map(|_| format!("sizes: {}{}", fidelity.estimator, measured.unwrap_or_default()));
    let reads = report.accuracy.map(|accuracy| {
        let bias = off(accuracy.bias, |bias| figure(bias, 2));
        format!("bias of the reads: {bias}{}", beside(accuracy.bias, accuracy.bias_bar))
    });
    let lost = report.distance.as_ref().and_then(|distance| lost(&distance.losses));
    sizes.into_iter().chain(reads).chain(lost).collect()
}

/// The answer in one line.
pub fn first_line(report: &PolicyReport) -> String {
    let name = &report.policy;
    if let Some(headline) = &report.headline {
        return format!("{name}: {headline}");
    }
    let Some(outcome) = &report.outcome else {
        let why = report.not_estimated.as_deref().unwrap_or("it changes no context");
        return format!("{name}: no savings are claimed: {why}");
    };
    match (report.not_estimated.as_deref(), outcome.total.change()) {
        (Some(why), _) => format!("{name}: savings are not estimated: {why}"),
        (None, None) => format!("{name}: the log was billed nothing, so there is nothing to save"),
        (None, Some(change)) => format!("{name}: {}", verdict(report, outcome, change)),
    }
}

fn verdict(report: &PolicyReport, outcome: &Outcome, change: f64) -> String {
    if outcome.total.policy == outcome.total.baseline {
        return "changes nothing on these logs".into();
    }
    let unsure = report.is_unsure();
    let than = if change < 0.0 { "cheaper" } else { "more expensive" };
    let log = if report.cache.is_empty() {
        "the log".to_owned()
    } else {
        format!("the log under the same cache ({})", report.cache.join(", "))
    };
    let size = format!("{} {than} than {log}", percent(change.abs()));
    let money = dollars(&outcome.total)
        .map_or_else(|| " in input-equivalent tokens".to_owned(), |money| format!(" ({money} at API list prices)"));
    if unsure {
        let error = report.accuracy.map_or(0.0, |accuracy| accuracy.cost_error.size());
        let why = match change.abs() <= error {
            true => "which is within the simulation's own error".to_owned(),
            false if report.may_be_nothing() => may_be_nothing(report.whole.as_ref()).to_owned(),
            false => format!("and changes below {} cannot be told from zero", percent(report.winner_min)),
        };
        format!("no clear winner: {size}{money}, {why}")
    } else {
        format!("{size}{money}")
    }
}

/// Why a difference may be none in other sessions.
fn may_be_nothing(whole: Option<&Cell>) -> &'static str {
    match whole.and_then(|whole| whole.lower) {
        Some(_) => "and its interval over sessions includes zero",
        None => "in too few sessions to expect it of others",
    }
}

/// What is saved, paid and broken, in that order, and on what it rests.
fn answer(report: &PolicyReport) -> Vec<String> {
    let mut lines = Vec::new();
    let changes = |outcome: &&Outcome| outcome.total.policy != outcome.total.baseline;
    let told = report.told().filter(changes);
    if let Some(outcome) = told {
        lines.push(saved(outcome));
        lines.push(paid(outcome));
    } else if let Some(outcome) = report.outcome.as_ref().filter(|outcome| outcome.tokens_removed != 0) {
        let (is_saving, words) = contexts(outcome);
        lines.push(format!("{}: {words}", if is_saving { "saved" } else { "paid" }));
    }
    lines.extend(broken(report));
    if let Some(outcome) = told {
        let total = &outcome.total;
        let (policy, log) = (&total.policy.cost, &total.baseline.cost);
        lines.push(format!("in all: {} instead of {}, simulated", money(policy), money(log)));
        lines.extend(report.whole.as_ref().and_then(whole));
        lines.extend(unpriced_of([outcome]));
        lines.extend(spread(outcome));
    }
    if let Some(change) = report.uncached_change.filter(|_| told.is_some()) {
        lines.push(format!("where the provider caches nothing: {} %", figure(100.0 * change, 1)));
    }
    lines.extend(together(report));
    lines
}

/// By how much a stack differs from the sum of its parts; none of a policy alone, and where nothing is estimated.
pub fn together(report: &PolicyReport) -> Option<String> {
    report.told().filter(|outcome| outcome.total.policy != outcome.total.baseline)?;
    let units = report.interaction_units?;
    let tokens = units as f64 / crate::whatif::sim::cost::UNITS_PER_TOKEN as f64;
    Some(format!("together instead of one by one: {} input-equivalent tokens", signed(tokens)))
}

/// How sure the change is.
fn whole(cell: &Cell) -> Option<String> {
    let (lower, upper) = (cell.lower?, cell.upper?);
    let [change, lower, upper] = [cell.change, lower, upper].map(|share| figure(100.0 * share, 1));
    let of = if cell.in_money { "dollars" } else { "input-equivalent tokens" };
    let sessions = counted(cell.sessions, "session");
    Some(format!("change in {of}: {change} %, 95 % interval over {sessions} {lower} % … {upper} %"))
}

fn spread(outcome: &Outcome) -> Option<String> {
    let spread = &outcome.spread;
    let at = |share: f64| format!("{} %", figure(100.0 * share, 1));
    (spread.sessions > 0).then(|| {
        format!(
            "sessions: median {} (5 % below {}, 5 % above {}); {} of {} would cost more",
            at(spread.p50),
            at(spread.p5),
            at(spread.p95),
            thousands(spread.worse),
            thousands(spread.sessions)
        )
    })
}

/// What became of the size of contexts, and whether that is a saving.
fn contexts(outcome: &Outcome) -> (bool, String) {
    let before = outcome.total.baseline.spent.prompt().max(1);
    let share = outcome.tokens_removed as f64 / before as f64;
    let removed = outcome.tokens_removed.unsigned_abs().try_into().unwrap_or(u64::MAX);
    let is_saving = outcome.tokens_removed >= 0;
    let word = if is_saving { "fewer" } else { "more" };
    (is_saving, format!("{} {word} tokens in contexts ({} of all sent)", thousands(removed), percent(share.abs())))
}

/// All that became less, or all that became more; calls besides those of the log have their tokens beside them.
fn changes(outcome: &Outcome, savings: bool) -> Vec<String> {
    let (before, after) = (outcome.total.baseline.spent, outcome.total.policy.spent);
    let change = |of: fn(&Spent) -> u64, what: &str| {
        let (before, after) = (of(&before), of(&after));
        let word = if after < before { "fewer" } else { "more" };
        (after != before && outcome.extra.is_empty())
            .then(|| (after < before, format!("{} {word} tokens {what}", thousands(after.abs_diff(before)))))
    };
    let others = [change(Spent::write, "written to the cache"), change(|spent| spent.uncached, "paid in full")];
    let all = std::iter::once(contexts(outcome)).chain(others.into_iter().flatten());
    all.filter(|(is_saving, _)| *is_saving == savings).map(|(_, words)| words).collect()
}

fn saved(outcome: &Outcome) -> String {
    let saved = changes(outcome, true);
    format!("saved: {}", if saved.is_empty() { "nothing".to_owned() } else { saved.join(", ") })
}

fn paid(outcome: &Outcome) -> String {
    let one = |(cause, extra): (&&str, &UnloggedCalls)| {
        format!("{} {} ({})", counted(extra.calls, "call"), purpose(cause), money(&extra.cost))
    };
    let calls: Vec<String> = outcome.extra.iter().map(one).collect();
    let calls = if calls.is_empty() { "no calls besides the log's".to_owned() } else { calls.join(", ") };
    let more = changes(outcome, false);
    let rest = if more.is_empty() { String::new() } else { format!("; {}", more.join(", ")) };
    format!("paid: {calls}{rest}")
}

/// What calls besides those of the log are made for, in words.
fn purpose(cause: &str) -> &'static str {
    match cause {
        "keep_alive" => "to keep the cache alive",
        "tool_retry" => "to ask again for a tool that was not listed",
        SUMMARY_CALL => "to sum up a context",
        _ => "for other reasons",
    }
}

/// What is missed; nothing about policies that change no context.
fn broken(report: &PolicyReport) -> Option<String> {
    let breakage = report.breakage.as_ref()?;
    if breakage.classes.is_empty() {
        return Some("broken: nothing was found missing".into());
    }
    let one = |class: &ClassCount| {
        let sure = class.strength.into_str();
        let (events, word) = (thousands(class.events), class.class.words(class.events));
        // It must not be added to the other.
        let of = if class.class.is_part_of_another() { "of these " } else { "" };
        format!("{of}{events} {word} ({sure}, {:.1} per 1,000 requests)", class.per_1k_requests)
    };
    let classes: Vec<String> = breakage.classes.iter().map(one).collect();
    let again = match breakage.reread_tokens {
        0 => String::new(),
        tokens => {
            let money =
                report.reread.usd().filter(|&usd| usd >= 0.005).map(|money| format!(" ({} to write)", usd(money)));
            format!("; reading again would bring {} tokens{}", thousands(tokens), money.unwrap_or_default())
        }
    };
    let (hard, soft) = breakage.steps;
    let events: u64 = [Strength::Hard, Strength::Soft].map(|strength| breakage.events_of(strength)).iter().sum();
    let are_fewer = hard + soft < events;
    let steps = format!("; these are {} that break, and {} more that may", counted(hard, "step"), thousands(soft));
    let steps = if are_fewer { steps } else { String::new() };
    Some(format!("broken: {}{steps}{again}", classes.join(", ")))
}

/// How far a figure is off in per cent; "n/a" of nothing.
fn off(deviation: Deviation, figure: impl FnOnce(f64) -> String) -> String {
    deviation.share().map_or_else(|| "n/a".to_owned(), |share| format!("{} %", figure(100.0 * share)))
}

/// What stands beside a figure that does not reach its bar.
fn beside(deviation: Deviation, bar: f64) -> String {
    if deviation.size() <= bar { String::new() } else { format!(" (more than the {} % allowed)", 100.0 * bar) }
}

/// At which rates the cache was missed for no reason that the log has.
fn lost(losses: &[UnforeseenLosses]) -> Option<String> {
    let rate = |losses: &UnforeseenLosses| {
        let place = if losses.place == "turn" { "where somebody wrote" } else { "within turns" };
        let Portion { k, n } = losses.count;
        let share = percent(losses.count.value());
        format!(
            "{} of {} {place} ({share} [{:.1}, {:.1}])",
            thousands(k),
            thousands(n),
            100.0 * losses.lower,
            100.0 * losses.upper
        )
    };
    let rates: Vec<String> = losses.iter().filter(|losses| losses.occasion.is_none()).map(rate).collect();
    (!rates.is_empty()).then(|| format!("cache misses that nothing foretold: {}", rates.join(", ")))
}

fn signed(value: f64) -> String {
    match value.abs().round() as u64 {
        0 => "0".to_owned(),
        size => format!("{}{}", if value < 0.0 { "−" } else { "+" }, thousands(size)),
    }
}

/// What the dollars of reports side by side leave out: the same requests, which another context may give other sizes.
pub fn unpriced_of_all(reports: &[&PolicyReport]) -> Option<String> {
    unpriced_of(reports.iter().filter_map(|report| report.told()))
}

fn unpriced_of<'o>(outcomes: impl IntoIterator<Item = &'o Outcome>) -> Option<String> {
    let mut models: BTreeMap<&str, Vec<&Sides>> = BTreeMap::new();
    for (model, sides) in outcomes.into_iter().flat_map(Outcome::unpriced) {
        models.entry(model).or_default().push(sides);
    }
    let span = |numbers: Vec<u64>, of: &str| {
        let (least, most) = numbers.iter().fold((u64::MAX, 0), |(least, most), &one| (one.min(least), one.max(most)));
        let from = if least < most { format!("{} to ", thousands(least)) } else { String::new() };
        format!("{from}{}", counted(most, of))
    };
    let one = |(model, sides): (&str, Vec<&Sides>)| {
        let tokens = span(sides.iter().map(|sides| sides.unpriced_tokens()).collect(), "token");
        let requests = span(sides.iter().map(|sides| sides.unpriced_requests).collect(), "request");
        // Another context gives the same requests other sizes, and another lifetime has a price of its own.
        let is_span = [&tokens, &requests].iter().any(|words| words.contains(" to "));
        let by = if is_span { ", by policy" } else { "" };
        format!("{tokens} of {requests} to {model}{by}")
    };
    let models: Vec<String> = models.into_iter().map(one).collect();
    (!models.is_empty()).then(|| format!("no known price, left out of dollars and per cent: {}", models.join(", ")))
}
