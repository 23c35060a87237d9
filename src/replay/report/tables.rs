//! The report of a replay for people: a summary in words, then one table per question.

use std::io::Write;

use crate::base::body_shape::LayerId;
use crate::base::error::Result;
use crate::replay::report::{JsonBaselines, NamedTally, ReachSavings, ReplayArm, ReplayReport};
use crate::replay::savings::{Bounds, Expanded, PaperClaim, PublishedClaim, Savings, share};
use crate::report::numbers::{counted, known, percent, thousands};
use crate::report::table::{Table, TableBuilder, TableFormat};

/// What the table of reaches does not say.
const REACHES_NOTE: &str =
    "tokens saved; a result out of reach is sent as it is; in money: `devboy what-if pipeline`, for a gateway";
/// What the short report leaves out.
const MORE: &str = "proofs, and the same by layer, endpoint, shape, project, format and session: --explain";
/// Rows of a table of groups that are shown unless more are asked for.
const ROWS_MAX: usize = 15;

/// Writes the answer for people (or as Markdown): what would have been saved, by whom; explained, also what that rests on.
pub fn write(
    out: &mut dyn Write,
    report: &ReplayReport,
    is_explained: bool,
    format: TableFormat,
    width: Option<u16>,
) -> Result<()> {
    for line in if is_explained { summary(report) } else { answer(report) } {
        writeln!(out, "{}{}", format.bullet(), format.sentence(&line))?;
    }
    format.heading(out, "who could do this")?;
    reaches(&report.reaches).write(out, format, width)?;
    if format == TableFormat::Md {
        writeln!(out)?;
    }
    writeln!(out, "{}", format.sentence(REACHES_NOTE))?;
    if !is_explained {
        return Ok(writeln!(out, "\n{MORE}")?);
    }
    format.heading(out, "by layer")?;
    layers(report).write(out, format, width)?;
    let groupings: [(&str, Groups); 3] =
        [("by endpoint", |arm| &arm.endpoints), ("by shape", |arm| &arm.shapes), ("by project", |arm| &arm.projects)];
    for (what, groups) in groupings {
        let table = grouped(report, what, groups);
        if !table.is_empty() {
            format.heading(out, &format!("{what}, largest first (--format csv has all)"))?;
            table.write(out, format, width)?;
        }
    }
    format.heading(out, "by format, where it was sent")?;
    formats(report).write(out, format, width)?;
    format.heading(out, "combined savings of single sessions")?;
    sessions(report).write(out, format, width)?;
    format.heading(out, "exact repeats, counted in four ways")?;
    repeats(report).write(out, format, width)?;
    format.heading(out, "to be read beside these figures")?;
    beside(report).write(out, format, width)
}

/// The one-table form for CSV: every group of every arm.
pub fn table(report: &ReplayReport) -> Table {
    let number = |share: Option<f64>| share.map(|share| format!("{:.4}", 100.0 * share)).unwrap_or_default();
    let rows = report.arms.iter().flat_map(|arm| {
        let total = std::iter::once(("total", "all".to_owned(), arm.total));
        let groups = [
            ("endpoint", &arm.endpoints),
            ("shape", &arm.shapes),
            ("project", &arm.projects),
            ("format", &arm.formats),
        ];
        let named =
            groups.into_iter().flat_map(|(what, rows)| rows.iter().map(move |row| (what, row.name.clone(), row.tally)));
        total.chain(named).map(move |(what, name, tally)| (arm, what, name, tally))
    });
    TableBuilder::of(rows)
        .text("arm", |(arm, ..)| arm.name.clone())
        .text("group", |(_, what, ..)| (*what).to_owned())
        .text("name", |(_, _, name, _)| name.clone())
        .number("responses", |(.., tally)| tally.count().to_string())
        .number("baseline", |(.., tally)| tally.baseline().to_string())
        .number("sent", |(.., tally)| tally.sent().to_string())
        .number("saved_l0", |(.., tally)| tally.saved_by(LayerId::L0).to_string())
        .number("saved_l1_l2", |(.., tally)| tally.saved_by_encoders().to_string())
        .number("dedup_pct", |(.., tally)| number(tally.savings().dedup))
        .number("encoder_pct", |(.., tally)| number(tally.savings().encoder))
        .number("combined_pct", |(.., tally)| number(tally.savings().combined))
        .table()
}

/// What came of it, of how much, and what was claimed.
fn answer(report: &ReplayReport) -> Vec<String> {
    let PaperClaim { source, saved: elsewhere, .. } = &report.paper;
    let claims = report.claim.total.map(|total| {
        let [here, elsewhere] = [Some(total), Some(*elsewhere)].map(figure);
        format!(
            "claims, no savings: {here} by the published accounting of these logs, {elsewhere} of others ({source})"
        )
    });
    report.arms.iter().map(|arm| saved(report, arm)).chain(scope(report)).chain(claims).collect()
}

/// The same with what it rests on.
pub(super) fn summary(report: &ReplayReport) -> Vec<String> {
    let mut lines = answer(report);
    lines.extend(proofs(report));
    let input = &report.input;
    let as_they_are = [
        (input.failures, "failed, refused or cancelled calls are shown as they are"),
        (input.mixed, "results with images are shown as they are"),
        (input.oversize, "bodies are too large to be written in other ways"),
    ];
    let counted = as_they_are.into_iter().filter(|(count, _)| *count > 0);
    lines.extend(counted.map(|(count, what)| format!("{} {what}", thousands(count))));
    lines
}

/// What an arm saves, and by what.
fn saved(report: &ReplayReport, arm: &ReplayArm) -> String {
    let Savings { dedup, encoder, combined } = arm.total.savings();
    format!(
        "{} formats, {}: {} of {} tokens saved; deduplication {} of all, encoding {} of what was no repeat",
        arm.name,
        report.reach_name(),
        figure(combined),
        thousands(arm.total.baseline()),
        figure(dedup),
        figure(encoder)
    )
}

/// What was replayed, and what part of the contexts that is.
fn scope(report: &ReplayReport) -> Vec<String> {
    let input = &report.input;
    let (responses, baseline) = report.arms.first().map_or((0, 0), |arm| (arm.total.count(), arm.total.baseline()));
    let mut lines = vec![format!(
        "{} with text in {} of {}, {} tokens",
        counted(responses, "tool response"),
        counted(input.contexts, "context"),
        counted(input.sessions, "session"),
        thousands(baseline)
    )];
    if input.unstudied > 0 {
        lines.push(format!("{} results of deleted logs have no facts and are left out", thousands(input.unstudied)));
    }
    let counters = report.counters();
    if !counters.is_empty() {
        lines.push(format!("baseline: the text as it is (raw); tokens: {counters}; basis: replayed on the real text"));
    }
    let entered = thousands(input.context_tokens);
    if baseline > input.context_tokens {
        lines.push(format!(
            "their share of all context tokens is unknown: the logs carry usage of {entered} tokens only"
        ));
    } else if baseline > 0 {
        let share = percent(baseline as f64 / input.context_tokens as f64);
        lines.push(format!(
            "tool responses are {share} of the {entered} tokens that entered a context (estimated from usage)"
        ));
    }
    lines
}

/// What was read back, and what later edits quote.
fn proofs(report: &ReplayReport) -> Vec<String> {
    let input = &report.input;
    let mut lines = vec![format!(
        "proofs: {} of {} read back the same; {} did not, and none of these is used",
        counted(input.proven, "encoding"),
        if input.bodies == 1 { "1 body".to_owned() } else { format!("{} bodies", thousands(input.bodies)) },
        thousands(input.unproven)
    )];
    for arm in report.arms.iter().filter(|arm| arm.expanded != Expanded::default()) {
        let Expanded { same, different } = arm.expanded;
        lines.push(format!(
            "proofs: {} ({}) expanded to the same body; {} did not",
            counted(same, "hint"),
            arm.name,
            thousands(different)
        ));
    }
    for arm in report.arms.iter().filter(|arm| arm.quotes.edits > 0) {
        lines.push(format!(
            "{}: of {} later edits that quote lines of a result, {} quote a line that was not sent as it stood",
            arm.name,
            thousands(arm.quotes.edits),
            thousands(arm.quotes.at_risk)
        ));
    }
    lines
}

/// A share in per cent; a dash where it has no denominator.
pub fn figure(share: Option<f64>) -> String {
    known(share, |share| format!("{:.2} %", 100.0 * share))
}

pub(super) fn layers(report: &ReplayReport) -> Table {
    let mut table = Table::new(&["formats", "layer", "#responses", "#baseline", "#sent", "#saved", "#of all"]);
    for arm in &report.arms {
        let whole = arm.total.baseline();
        let of_all = |saved: u64| figure(share(saved, whole));
        for layer in LayerId::ALL {
            let tally = &arm.total;
            let index = layer as usize;
            let hints = match (layer, arm.hints) {
                (LayerId::L0, [_, near, range]) if near + range > 0 => format!(" ({near} near, {range} by lines)"),
                _ => String::new(),
            };
            table.row([
                arm.name.clone(),
                format!("{} {}{hints}", layer.key(), layer_word(layer)),
                thousands(tally.responses[index]),
                thousands(tally.baseline[index]),
                thousands(tally.sent[index]),
                thousands(tally.saved_by(layer)),
                of_all(tally.saved_by(layer)),
            ]);
        }
        table.row([
            arm.name.clone(),
            "all".to_owned(),
            thousands(arm.total.count()),
            thousands(whole),
            thousands(arm.total.sent()),
            thousands(arm.total.saved()),
            of_all(arm.total.saved()),
        ]);
    }
    table
}

/// What everybody on the way from tools to the model could save.
pub fn reaches(reaches: &[ReachSavings]) -> Table {
    let of_all = |row: &ReachSavings, tokens: u64| figure(share(tokens, row.published.baseline()));
    TableBuilder::of(reaches)
        .text("who", |row| row.name.clone())
        .count("tokens in reach", |row| row.tokens)
        .number("of all", |row| of_all(row, row.tokens))
        .count("published", |row| row.published.saved())
        .number("of all", |row| of_all(row, row.published.saved()))
        .count("extended", |row| row.extended.saved())
        .number("of all", |row| of_all(row, row.extended.saved()))
        .table()
}

pub(super) fn layer_word(layer: LayerId) -> &'static str {
    match layer {
        LayerId::L0 => "deduplication",
        LayerId::L1 => "templates",
        LayerId::L2 => "encoding",
        LayerId::L3 => "unchanged",
    }
}

type Groups = fn(&ReplayArm) -> &[NamedTally];

/// Groups of all arms side by side, by baseline tokens.
fn grouped(report: &ReplayReport, what: &str, groups: Groups) -> Table {
    let name = what.trim_start_matches("by ");
    let columns = [name, "#responses", "#baseline", "#dedup%", "#encoder%", "#combined%", "#extended%"];
    let mut table = Table::new(&columns);
    let Some(first) = report.arms.first() else { return table };
    let mut rows: Vec<&NamedTally> = groups(first).iter().collect();
    rows.sort_by_key(|group| (std::cmp::Reverse(group.tally.baseline()), group.name.clone()));
    let rest = rows.len().saturating_sub(ROWS_MAX) as u64;
    for group in rows.into_iter().take(ROWS_MAX) {
        let Savings { dedup, encoder, combined } = group.tally.savings();
        let mut cells = vec![
            group.name.clone(),
            thousands(group.tally.count()),
            thousands(group.tally.baseline()),
            figure(dedup),
            figure(encoder),
            figure(combined),
        ];
        for arm in report.arms.iter().skip(1) {
            let same = groups(arm).iter().find(|other| other.name == group.name);
            cells.push(figure(same.and_then(|other| other.tally.savings().combined)));
        }
        table.row(cells);
    }
    if rest > 0 {
        let mut cells = vec![format!("({rest} more)")];
        cells.resize(columns.len(), String::new());
        table.row(cells);
    }
    table
}

pub(super) fn formats(report: &ReplayReport) -> Table {
    let rows = report.arms.iter().flat_map(|arm| {
        let mut rows: Vec<&NamedTally> = arm.formats.iter().collect();
        rows.sort_by_key(|group| (std::cmp::Reverse(group.tally.saved()), group.name.clone()));
        rows.into_iter().map(move |group| (arm, group))
    });
    TableBuilder::of(rows)
        .text("formats", |(arm, _)| arm.name.clone())
        .text("format", |(_, group)| group.name.clone())
        .count("responses", |(_, group)| group.tally.count())
        .count("baseline", |(_, group)| group.tally.baseline())
        .count("sent", |(_, group)| group.tally.sent())
        .count("saved", |(_, group)| group.tally.saved())
        .number("of its own", |(_, group)| figure(group.tally.savings().combined))
        .table()
}

fn sessions(report: &ReplayReport) -> Table {
    let mut table = Table::new(&["formats", "#sessions", "#worst", "#p5", "#p25", "#p50", "#p75", "#p95", "#best"]);
    for arm in &report.arms {
        let Some(spread) = &arm.sessions else { continue };
        let mut cells = vec![arm.name.clone(), thousands(spread.n)];
        let shares = [spread.worst, spread.p5, spread.p25, spread.p50, spread.p75, spread.p95, spread.best];
        cells.extend(shares.map(|share| figure(Some(share))));
        table.row(cells);
    }
    table
}

/// From repeats in files to references that a reader can follow.
fn repeats(report: &ReplayReport) -> Table {
    let [eligible, seen, recent] = report.input.plain_repeats;
    let of = format!("of {} results with 200 code points and more", thousands(eligible));
    let references = report.arms.first().map_or(0, |arm| arm.hints[0]);
    TableBuilder::of([
        ("seen before in the same file and partition", seen, of.as_str()),
        (
            "the same, among the last five",
            recent,
            "as `devboy ingest` counts: copies, failures and all readers of a file",
        ),
        (
            "results that the same reader had seen before",
            report.bounds.repeats,
            "each call once, per context, any size",
        ),
        ("answered by a reference", references, "in the cache, not dropped by an edit, and cheaper"),
    ])
    .text("repeats", |(what, _, _)| (*what).to_owned())
    .count("count", |(_, count, _)| *count)
    .text("counted", |(_, _, how)| (*how).to_owned())
    .table()
}

/// Bounds, baselines and claims: what the figures are to be read against.
fn beside(report: &ReplayReport) -> Table {
    let mut table = Table::new(&["what", "#tokens saved", "#of all", "basis"]);
    let whole = report.bounds.baseline;
    let share = |saved: u64| figure(share(saved, whole));
    let mut row = |what: &str, tokens: Option<u64>, share: String, basis: &str| {
        table.row([what.to_owned(), tokens.map(thousands).unwrap_or_default(), share, basis.to_owned()]);
    };
    let Bounds { clairvoyant, unlimited, .. } = report.bounds;
    row("exact references, clairvoyant cache of this size", Some(clairvoyant), share(clairvoyant), "bound");
    row("exact references, unlimited cache", Some(unlimited), share(unlimited), "bound");
    let invalidation = report.invalidation_tokens;
    row("given up because an edit dropped a cached result", Some(invalidation), share(invalidation), "replayed");
    let JsonBaselines { responses, raw, compact, pretty, sent } = report.json;
    if responses > 0 {
        let against = |base: u64| figure((base > 0).then(|| 1.0 - sent as f64 / base as f64));
        let of = |saved: u64| Some(saved.saturating_sub(sent));
        row("JSON bodies against their raw text", of(raw), against(raw), "replayed, of JSON");
        row("JSON bodies against compact JSON", of(compact), against(compact), "replayed, of JSON");
        row("JSON bodies against indented JSON", of(pretty), against(pretty), "replayed, of JSON");
    }
    let PublishedClaim { hits, dedup, encoder, total, formula } = report.claim;
    row("published accounting: events answered by deduplication", None, figure(hits), "claim about these logs");
    row("published accounting: dedup%", None, figure(dedup), "claim about these logs");
    row("published accounting: encoder% (counts deleted text)", None, figure(encoder), "claim about these logs");
    row("published accounting: total%", None, figure(total), "claim about these logs");
    row("published formula: p + (1 − p)·e", None, figure(formula), "claim about these logs");
    let PaperClaim { source, hits, saved } = &report.paper;
    row(&format!("{source}: events answered by deduplication"), None, figure(Some(*hits)), "claim about other logs");
    row(&format!("{source}: tokens saved"), None, figure(Some(*saved)), "claim about other logs");
    table
}
