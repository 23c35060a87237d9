//! Findings in words: one line per change with its evidence, and with `--explain` what was held or skipped and why; and
//! the page of the levers: everything that can be set in Claude Code, and what devboy does with it.

use std::io::Write;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde_json::{Value, json};

use crate::base::bootstrap::holds_in_100;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::visible::visible;
use crate::report::numbers::{counted, percent, signed, thousands};
use crate::report::share::interval_95;
use crate::report::table::{Table, TableBuilder};
use crate::settings::claude::levers::{Lever, LeverUse, Levers, SettingsScope};
use crate::settings::entries::BillForecast;
use crate::settings::finding::{Effect, Evidence, Finding, Verdict};

/// Writes the evidence of every proposed change; with `explain` also what was held and skipped. Neighbouring changes
/// with the same evidence share it.
pub fn write(out: &mut dyn Write, findings: &[Finding], explain: bool) -> Result<()> {
    let told: Vec<(String, String)> = findings.iter().filter_map(|finding| told(finding, explain)).collect();
    for (index, (what, why)) in told.iter().enumerate() {
        writeln!(out, "# {}", visible(what))?;
        let shared = told.get(index + 1).is_some_and(|(_, next)| next == why);
        for line in why.lines().filter(|_| !shared) {
            writeln!(out, "#      {}", visible(line))?;
        }
    }
    Ok(())
}

/// What a finding says, and why; nothing if it is not asked for.
fn told(finding: &Finding, explain: bool) -> Option<(String, String)> {
    let Finding { rule, subject, verdict, evidence, .. } = finding;
    let what = match verdict {
        Verdict::Propose(delta) => {
            let from = delta.from.as_ref().map_or_else(String::new, |from| format!("{} → ", short(from)));
            format!("{rule} {}: {from}{}", delta.key, short(&delta.to))
        }
        Verdict::Wait { setting, update } => format!("{rule} {setting} pays here, but {update}"),
        Verdict::Hold(reason) if explain => format!("{rule} hold {subject}: {reason}"),
        Verdict::TakenBack { setting, words } if explain => format!("{rule} hold {subject}: `{setting}` {words}"),
        Verdict::Skip(reason) if explain => format!("{rule} skip {subject}: {reason}"),
        Verdict::Hint(words) => format!("{rule} hint {subject}: {words}"),
        Verdict::Hold(_) | Verdict::TakenBack { .. } | Verdict::Skip(_) => return None,
    };
    let effect = effect_of(finding).map(|effect| format!("\neffect: {effect}"));
    Some((what, evidence_words(evidence) + &effect.unwrap_or_default()))
}

/// What a finding would do, or is expected to.
fn effect_of(finding: &Finding) -> Option<String> {
    finding.effect.as_ref().map(effect_words).or_else(|| finding.forecast.as_ref().map(forecast_words))
}

/// The proposed changes as a table, for CSV and Markdown.
pub fn table(findings: &[Finding]) -> Table {
    TableBuilder::of(findings.iter().filter_map(|finding| Some((finding, finding.proposed()?))))
        .text("rule", |(finding, _)| finding.rule.to_owned())
        .text("key", |(_, delta)| delta.key.to_string())
        .text("old", |(_, delta)| delta.from.as_ref().map(short).unwrap_or_default())
        .text("new", |(_, delta)| short(&delta.to))
        .number("n", |(finding, _)| finding.evidence.n.to_string())
        .text("evidence", |(finding, _)| evidence_words(&finding.evidence).replace('\n', "; "))
        .text("effect", |(finding, _)| effect_of(finding).unwrap_or_default())
        .table()
}

/// Writes a unified diff, in colour if asked for.
pub fn write_diff(out: &mut dyn Write, diff: &str, colored: bool) -> Result<()> {
    for line in diff.lines() {
        let color = match line.as_bytes().first() {
            Some(b'+') => "32",
            Some(b'-') => "31",
            Some(b'@') => "36",
            _ => "",
        };
        if colored && !color.is_empty() {
            // In one piece: what comes in pieces is not known for devboy's own.
            out.write_all(format!("\x1b[{color}m{line}\x1b[0m\n").as_bytes())?;
        } else {
            writeln!(out, "{line}")?;
        }
    }
    Ok(())
}

fn evidence_words(evidence: &Evidence) -> String {
    if evidence.counts.is_empty() {
        return String::new();
    }
    let mut words = evidence.counts.clone();
    if let Some(share) = &evidence.share {
        let n = if evidence.over_sessions { counted(evidence.n, "session") } else { thousands(share.n) };
        words += &format!(" = {} ({}, n {n})", percent(share.value()), interval_95(*share));
    }
    if let Some(threshold) = &evidence.threshold {
        words += &format!("; {threshold}");
    }
    format!("{words} [{}]", evidence.basis.into_str())
}

/// "in an MCP host saves 1,234 tokens more (0.12 % of 1,000,000); bound, in a gateway: saves …"
fn effect_words(effect: &Effect) -> String {
    let share = |tokens: f64| 100.0 * tokens.abs() / effect.baseline.max(1.0);
    let count = |tokens: f64| thousands(tokens.abs().round() as u64);
    let baseline = thousands(effect.baseline.round() as u64);
    let words = |tokens: f64| match tokens {
        tokens if tokens.abs() < 0.5 => format!("not a token more or less, of {baseline}"),
        more if more > 0.0 => format!("saves {} tokens more ({:.2} % of {baseline})", count(more), share(more)),
        less => format!("saves {} tokens less ({:.2} % of {baseline})", count(less), share(less)),
    };
    let ends = effect.tokens_95.filter(|_| effect.tokens.abs() >= 0.5);
    let signed = |tokens: f64| format!("{}{}", if tokens <= -0.5 { "−" } else { "" }, count(tokens));
    let ends = ends
        .map_or_else(String::new, |(low, high)| format!(", 95 % {} to {} over sessions", signed(low), signed(high)));
    let is_shared = (effect.alone - effect.tokens).abs() >= 0.5;
    let alone =
        if is_shared { format!("; its share with the others, alone {}", signed(effect.alone)) } else { String::new() };
    let bound = words(effect.tokens) + &ends + &alone;
    if (effect.host - effect.tokens).abs() < 0.5 {
        return format!("{bound}; in an MCP host as in a gateway [replayed]");
    }
    format!("in an MCP host {}; bound, in a gateway: {bound} [replayed]", words(effect.host))
}

/// "12.3 % of the bill of the 10 later sessions saved [8.0 … 15.1 %], replayed"; where the interval is about a part of it: "9.1 % of the
/// bill of all later sessions saved: 12.3 % [8.0 … 15.1 %] of main threads in 14 of them, replayed"
pub fn brief_words(forecast: &BillForecast) -> String {
    let share = |saved: f64| percent(-saved);
    let ends = [forecast.upper, forecast.lower].map(share).map(|end| end.trim_end_matches(" %").to_owned());
    let interval = format!("[{} %]", ends.join(" … "));
    let of_bill = share(forecast.of_bill);
    // A part that is all of the bill is the same share of it.
    if (forecast.change - forecast.of_bill).abs() < 1e-9 {
        let sessions = counted(forecast.sessions, "later session");
        return format!("{of_bill} of the bill of the {sessions} saved {interval}, replayed");
    }
    let part = format!("{} in {} of them", part_words(&forecast.part), thousands(forecast.sessions));
    let of_part = share(forecast.change);
    format!("{of_bill} of the bill of all later sessions saved: {of_part} {interval} of {part}, replayed")
}

/// Whose requests a part is.
fn part_words(part: &str) -> &'static str {
    match part {
        "main" => "main threads",
        "subagents" => "subagents",
        _ => "all requests",
    }
}

/// "main threads 12.3 % cheaper (95 % interval 8.0 to 15.1 % over 14 later sessions), 9.1 % of the whole bill of all later sessions ($3.20); …"
pub fn forecast_words(forecast: &BillForecast) -> String {
    let part = part_words(&forecast.part);
    let side = |share: f64| if share < 0.0 { "cheaper" } else { "more expensive" };
    let usd = forecast.usd.map_or_else(String::new, |usd| format!(" (${:.2})", usd.abs()));
    let breaks = if forecast.hard_breaks + forecast.soft_breaks > 0.0 {
        let (hard, soft) = (forecast.hard_breaks, forecast.soft_breaks);
        format!("; per 1,000 requests {hard:.1} need text that was dropped, {soft:.1} only mention it")
    } else {
        String::new()
    };
    let unpriced = match (forecast.usd, forecast.unpriced) {
        (Some(_), share) if share > 0.0 => {
            format!("; {} of these requests have no price and are left out", percent(share))
        }
        _ => String::new(),
    };
    let sessions = counted(forecast.sessions, "later session");
    let off = percent(forecast.error);
    if [forecast.change, forecast.lower, forecast.upper].iter().all(|change| change.abs() < f64::EPSILON) {
        return format!(
            "{part} cost the same in {sessions}{unpriced}{breaks}; the simulation is {off} off the bill there [replayed]"
        );
    }
    let held = holds_in_100(forecast.sessions);
    let held =
        held.map_or_else(String::new, |held| format!("; on real logs one over so few held about {held} times in 100"));
    let beside = forecast.beside.map_or_else(String::new, |beside| {
        let signed = |of_bill: f64| format!("{} %", signed(100.0 * of_bill, 1));
        let usd = beside.usd.map_or_else(String::new, |usd| format!(" (${usd:.2})"));
        let (share, last) = (signed(beside.of_bill), signed(beside.last_of_bill));
        format!("; of what all changes do together its share is {share}{usd}, and {last} is what it adds to the others")
    });
    let by_itself = if forecast.beside.is_some() { "by itself " } else { "" };
    format!(
        "{by_itself}{part} {} {} (change {} % to {} %, 95 % over {sessions}{held}), {} of the whole bill of all later sessions{usd}{unpriced}{beside}; the simulation \
         is {off} off the bill there{breaks} [replayed]",
        percent(forecast.change.abs()),
        side(forecast.change),
        signed(100.0 * forecast.lower, 1),
        signed(100.0 * forecast.upper, 1),
        percent(forecast.of_bill.abs()),
    )
}

/// A value on one line; a list of links by their tools.
fn short(value: &toml_edit::Value) -> String {
    let Some(list) = value.as_array() else { return value.to_string().trim().to_owned() };
    let link = |item: &toml_edit::Value| {
        let link = item.as_inline_table()?;
        Some(format!("{} {}", link.get("tool")?.as_str()?, link.get("probability")?.as_float()?))
    };
    match list.iter().map(link).collect::<Option<Vec<_>>>() {
        Some(links) if !links.is_empty() => format!("[{}]", links.join(", ")),
        _ => value.to_string().trim().to_owned(),
    }
}

/// The findings for JSON, all of them.
pub fn json(findings: &[Finding]) -> Value {
    findings.iter().map(finding_json).collect()
}

fn finding_json(finding: &Finding) -> Value {
    let evidence = &finding.evidence;
    let mut out = json!({
        "rule": finding.rule,
        "subject": finding.subject,
        "evidence": {
            "basis": evidence.basis.into_str(),
            "counts": evidence.counts,
            "n": evidence.n,
            "threshold": evidence.threshold,
            "interval": evidence.share.map(|s| json!({
                "k": s.k, "n": s.n, "value": s.value(), "lower": s.lower, "upper": s.upper,
            })),
        },
    });
    let fields = match &finding.verdict {
        Verdict::Propose(delta) => json!({
            "verdict": "propose",
            "key": delta.key.to_string(),
            "old": delta.from.as_ref().map(plain),
            "new": plain(&delta.to),
        }),
        Verdict::Hold(reason) => json!({ "verdict": "hold", "reason": reason }),
        Verdict::Wait { setting, update } => json!({ "verdict": "hold", "reason": update, "pays": setting }),
        Verdict::TakenBack { setting, words } => json!({ "verdict": "hold", "reason": format!("`{setting}` {words}") }),
        Verdict::Skip(reason) => json!({ "verdict": "skip", "reason": reason }),
        Verdict::Hint(words) => json!({ "verdict": "hint", "hint": words }),
    };
    if let Some(effect) = &finding.effect {
        out["effect"] = json!({
            "basis": "replayed", "tokens": effect.tokens, "host_tokens": effect.host, "baseline_tokens": effect.baseline,
            "tokens_95": effect.tokens_95.map(|(low, high)| [low, high]), "alone_tokens": effect.alone,
        });
    }
    if let Some(forecast) = &finding.forecast {
        out["effect"] = json!(forecast);
        out["effect"]["basis"] = json!("replayed");
    }
    if let (Some(out), Value::Object(fields)) = (out.as_object_mut(), fields) {
        out.extend(fields);
    }
    out
}

/// A TOML value as JSON.
pub fn plain(value: &toml_edit::Value) -> Value {
    Value::deserialize(value.clone().into_deserializer()).expect("JSON holds all that stands in a configuration")
}

/// What can be set in Claude Code, as Markdown.
pub fn documentation(data: &Data) -> Result<String> {
    let levers = Levers::load(data)?;
    let head = "\n## Levers of Claude Code\n\nWhat can be set in Claude Code about tokens, cache and cost \
                (`rules/levers/`), and what devboy does with it: a rule writes it where it pays, a hint is shown and never \
                written, the rest is left alone. A client that does not know a lever ignores it at best, so it is \
                proposed only if every version seen in the last weeks does.\n";
    Ok(levers.all().fold(head.to_owned(), |out, lever| out + &section(lever)))
}

fn section(lever: &Lever) -> String {
    let fate = match lever.fate() {
        LeverUse::Rule(rule) => format!("rule {rule}"),
        LeverUse::Hint => "a hint".to_owned(),
        LeverUse::LeftAlone(reason) => format!("left alone: {reason}"),
    };
    let scopes: Vec<&str> = lever.scopes.iter().map(SettingsScope::into_str).collect();
    let mut lines = vec![
        format!("\n### {}\n\n{}\n", lever.name, lever.does),
        format!("- devboy: {fate}"),
        format!("- takes {}; default: {}", lever.takes(), lever.default_words()),
        format!("- {}, by {}", lever.place.into_str(), scopes.join(", ")),
        format!("- client versions: {}", lever.versions()),
    ];
    if !lever.off_by.is_empty() {
        lines.push(format!(
            "- does nothing, or not what it says, where one of these is set: {}",
            lever.off_by.join(", ")
        ));
    }
    if !lever.gives_way_to.is_empty() {
        lines.push(format!("- gives way to {}", lever.gives_way_to.join(", ")));
    }
    lines.push(format!("- in a log: {}", lever.log));
    lines.push(format!("- source: {} [{}]\n", lever.source, lever.confidence.into_str()));
    lines.join("\n")
}
