//! P4: how many characters of the user's own text a token of each model holds, measured on the bill.

use std::ops::RangeInclusive;

use serde::Deserialize;
use toml_edit::Value;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::model_id::normalise;
use crate::base::numbers::counted;
use crate::base::tokenizer::VOCABULARIES;
use crate::rules::p1_model::ModelFamily;
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::View;
use crate::settings::finding::{Basis, Delta, Evidence, Finding, Verdict};
use crate::whatif::calibration::FamilyRatio;

/// The rule.
pub static RULE: Rule = Rule {
    id: "P4",
    file: "p4_tokenizer",
    summary: "Gives each model family the characters per token that its bills show (`--calibrate`).",
    speaks: Speaks::LogsCalibrated,
    judge,
};

#[derive(Deserialize)]
struct Thresholds {
    increments_min: u64,
    sessions_min: u64,
    half_width_max: f64,
    decimals: u8,
}

/// Why nothing is proposed: [`Verdict::Hold`] or [`Verdict::Skip`], and the reason.
type Quiet = (fn(String) -> Verdict, String);
type OrQuiet<T> = std::result::Result<T, Quiet>;

/// Where the ratio of a family stands now, and where a better one would go.
struct Seat {
    /// The model variant that the family has; none if it falls to `default`.
    llm: Option<KeyPath>,
    /// Name of the tokenizer variant by which it is counted.
    tokenizer: String,
    ratio: f64,
    /// Whether no other model is counted by it, and it is no built-in one.
    is_own: bool,
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    if facts.calibration.is_empty() {
        let reason = "no request in the logs shows exactly what it added to its context";
        return Ok(vec![Finding::new(RULE.id, "(none)", Verdict::Skip(reason.to_owned()), Evidence::default())]);
    }
    let judged = facts.calibration.iter().map(|row| {
        let quiet = |(verdict, reason): Quiet| vec![finding(row, verdict(reason), evidence(facts, row, None, sheet))];
        calibrate(facts, row, &thresholds, sheet).unwrap_or_else(quiet)
    });
    Ok(judged.collect::<Vec<_>>().concat())
}

fn finding(row: &FamilyRatio, verdict: Verdict, evidence: Evidence) -> Finding {
    Finding::new(RULE.id, row.family.as_str(), verdict, evidence)
}

/// The proposals for one family, or why there are none.
fn calibrate(
    facts: &RuleFacts<'_>,
    row: &FamilyRatio,
    thresholds: &Thresholds,
    sheet: &RuleThresholds,
) -> OrQuiet<Vec<Finding>> {
    let seat = seat(facts, &row.family)?;
    let (lower, upper) = certain(row, thresholds, sheet)?;
    let key = ratio_key(&seat.tokenizer);
    let to = rounded(row.bytes_per_token.value, thresholds.decimals, lower..=upper);
    if (lower..=upper).contains(&seat.ratio) || to == seat.ratio {
        let within = format!("within the interval {lower:.2} to {upper:.2}");
        return Err((Verdict::Skip, format!("`{key}` is {}, {within}", seat.ratio)));
    }
    let told = evidence(facts, row, Some(&seat), sheet);
    let deltas = match seat.is_own {
        true => vec![(Delta { from: facts.current.value(&key), key, to: Value::from(to) }, told)],
        false => own_variant(facts, &row.family, &seat, to, &told)?,
    };
    if let Some((pinned, _)) = deltas.iter().find(|(delta, _)| facts.current.pinned(&delta.key)) {
        return Err((Verdict::Hold, format!("`{}` is marked `# pin`", pinned.key)));
    }
    Ok(deltas.into_iter().map(|(delta, evidence)| finding(row, Verdict::Propose(delta), evidence)).collect())
}

/// A value with few decimals that lies in the interval which it is written for: with more of them where the interval is narrower
/// than a step.
pub(crate) fn rounded(value: f64, decimals: u8, within: RangeInclusive<f64>) -> f64 {
    let with = |decimals: i32| (value * 10_f64.powi(decimals)).round() / 10_f64.powi(decimals);
    let first = i32::from(decimals);
    (first..first + 4).map(with).find(|to| within.contains(to)).unwrap_or(value)
}

/// The interval, if it is one to rely on.
fn certain(row: &FamilyRatio, thresholds: &Thresholds, sheet: &RuleThresholds) -> OrQuiet<(f64, f64)> {
    let hold =
        |what: String, key: &str| -> OrQuiet<_> { Err((Verdict::Hold, format!("{what} ({})", sheet.cite(key)))) };
    let ratio = row.bytes_per_token;
    if row.increments < thresholds.increments_min {
        return hold(format!("only {}", counted(row.increments, "measured increment")), "increments_min");
    }
    let Some((lower, upper)) = ratio.lower.zip(ratio.upper).filter(|_| row.sessions >= thresholds.sessions_min) else {
        return hold(format!("only {} with measured increments", counted(row.sessions, "session")), "sessions_min");
    };
    let half = (upper - lower) / 2.0;
    // Of no tokens there is no ratio at all.
    if half > thresholds.half_width_max * ratio.value || ratio.value <= 0.0 {
        let width = 100.0 * half / ratio.value;
        return hold(
            format!("{:.2} bytes per token is known only to within ± {width:.1} %", ratio.value),
            "half_width_max",
        );
    }
    Ok((lower, upper))
}

/// Where the family is counted, unless it is not counted by a variant of its choice at all.
fn seat(facts: &RuleFacts<'_>, family: &str) -> OrQuiet<Seat> {
    let current = facts.current;
    if let Some(active) = current.chosen("tokenizer") {
        return Err((Verdict::Skip, format!("`profiles.tokenizer.active` is \"{active}\", whatever the model is")));
    }
    if let Some(active) = current.chosen("llm").filter(|active| normalise(active) != family) {
        return Err((Verdict::Skip, format!("`profiles.llm.active` is \"{active}\", whatever the model is")));
    }
    let models = models();
    let names = current.entries(&models);
    let named = current.llm_variant(family);
    let llm = models.child(named.as_deref().unwrap_or("default"));
    let pointer = llm.child("tokenizer");
    let unknown = || -> Quiet { (Verdict::Hold, format!("`{pointer}` names no tokenizer that there is")) };
    let tokenizer = current.text(&pointer).ok_or_else(unknown)?;
    let key = ratio_key(&tokenizer);
    let ratio = current.number(&key).ok_or_else(unknown)?;
    let is_shared =
        names.iter().any(|name| models.child(name) != llm && is_counted_by(current, &models.child(name), &tokenizer));
    let is_own = named.is_some() && !is_shared && current.line(&key).is_some();
    Ok(Seat { llm: named.map(|_| llm), tokenizer, ratio, is_own })
}

/// A tokenizer variant of the family's own, and the model variant that points to it.
fn own_variant(
    facts: &RuleFacts<'_>,
    family: &str,
    seat: &Seat,
    ratio: f64,
    told: &Evidence,
) -> OrQuiet<Vec<(Delta, Evidence)>> {
    let current = facts.current;
    let own = tokenizers().child(family);
    if !current.entries(&own).is_empty() {
        return Err((Verdict::Hold, format!("`{own}` is there already and is not this model's alone")));
    }
    let shipped = facts.families.iter().find(|known| known.variant == family);
    let (llm, source) = match (&seat.llm, shipped) {
        (Some(llm), _) => (llm.clone(), seat.tokenizer.as_str()),
        (None, Some(known)) => (models().child(family), known.tokenizer.as_str()),
        (None, None) => {
            let reason = "devboy knows nothing else of this model, so it cannot add a variant";
            return Err((Verdict::Hold, reason.to_owned()));
        }
    };
    let new = |key: KeyPath, to: Value| Delta { from: None, key, to };
    let mut deltas = vec![(new(own.child("chars_per_token"), Value::from(ratio)), told.clone())];
    let alike = Evidence { counts: format!("as in `{source}`"), basis: Basis::Shipped, ..Evidence::default() };
    let from = tokenizers().child(source);
    for (below, value) in leaves(current, &from).into_iter().filter(|(below, _)| below.0 != ["chars_per_token"]) {
        deltas.push((new(KeyPath([own.0.clone(), below.0].concat()), value), alike.clone()));
    }
    let pointer = llm.child("tokenizer");
    let from = seat.llm.as_ref().and_then(|_| current.value(&pointer));
    deltas.push((Delta { from, key: pointer, to: Value::from(family) }, told.clone()));
    if let Some(known) = shipped.filter(|_| seat.llm.is_none()) {
        deltas.extend(window(known, &llm));
    }
    Ok(deltas)
}

/// The window of a new model variant, where devboy knows it; else `default` gives it.
fn window(known: &ModelFamily, llm: &KeyPath) -> Option<(Delta, Evidence)> {
    let evidence = Evidence {
        counts: format!("as known of {}", known.variant),
        threshold: Some(known.place.clone()),
        basis: Basis::Shipped,
        ..Evidence::default()
    };
    let delta = |window| Delta { key: llm.child("context_window"), from: None, to: Value::from(i64::from(window)) };
    known.context_window.map(|window| (delta(window), evidence))
}

/// The counts, and what they are held against.
fn evidence(facts: &RuleFacts<'_>, row: &FamilyRatio, seat: Option<&Seat>, sheet: &RuleThresholds) -> Evidence {
    let ratio = row.bytes_per_token;
    let interval = ratio.lower.zip(ratio.upper);
    let interval = interval.map_or_else(String::new, |(lower, upper)| format!(" (95 % {lower:.3}–{upper:.3})"));
    let counts = format!(
        "{} without thinking, of {}: {} bytes in {} tokens without framing, {:.3} bytes per token{interval}",
        counted(row.increments, "increment"),
        counted(row.sessions, "session"),
        row.bytes,
        row.tokens,
        ratio.value
    );
    let now = seat.map_or_else(String::new, |seat| format!("\n{}", present(facts.current, row, seat)));
    Evidence::of(counts + &now, row.increments).by(sheet.cite("half_width_max"))
}

/// How the family is counted now.
fn present(current: &View<'_>, row: &FamilyRatio, seat: &Seat) -> String {
    let Seat { tokenizer, ratio, .. } = seat;
    let bpe = current.text(&tokenizers().child(tokenizer).child("bpe")).unwrap_or_default();
    // Both spellings of a table begin alike.
    let place = VOCABULARIES.iter().position(|table| !bpe.is_empty() && table.into_str().starts_with(&bpe));
    let Some(place) = place else { return format!("now {ratio}, by `{tokenizer}`") };
    let percent = 100.0 * row.counted[place] as f64 / row.tokens.max(1) as f64;
    format!(
        "now {ratio}, by `{tokenizer}`, which counts by the table {bpe} ({percent:.1} % of these tokens) and would read \
         the ratio with `bpe = \"heuristic\"`"
    )
}

fn models() -> KeyPath {
    KeyPath::from(["profiles", "llm", "variants"])
}

fn tokenizers() -> KeyPath {
    KeyPath::from(["profiles", "tokenizer", "variants"])
}

fn ratio_key(tokenizer: &str) -> KeyPath {
    tokenizers().child(tokenizer).child("chars_per_token")
}

fn is_counted_by(current: &View<'_>, llm: &KeyPath, tokenizer: &str) -> bool {
    current.text(&llm.child("tokenizer")).is_some_and(|named| named == tokenizer)
}

/// All values below a table, with the rest of their keys.
fn leaves(current: &View<'_>, table: &KeyPath) -> Vec<(KeyPath, Value)> {
    fn collect(current: &View<'_>, table: &KeyPath, below: &KeyPath, out: &mut Vec<(KeyPath, Value)>) {
        for name in current.entries(table) {
            let (key, below) = (table.child(&name), below.child(&name));
            match current.entries(&key).is_empty() {
                true => out.extend(current.value(&key).map(|value| (below, value))),
                false => collect(current, &key, &below, out),
            }
        }
    }
    let mut out = Vec::new();
    collect(current, table, &KeyPath::default(), &mut out);
    out
}
