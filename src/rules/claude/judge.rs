//! One judgement for all levers that can be simulated: the value is chosen on the earlier sessions, and proposed if the
//! later ones are cheaper with it by more than the simulation is off, and the client and the files let it have an effect.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::Value;

use crate::base::bootstrap::{Resampling, stretch};
use crate::base::error::Result;
use crate::base::id::Id;
use crate::base::key_path::KeyPath;
use crate::base::numbers::{counted, signed};
use crate::rules::RuleThresholds;
use crate::rules::claude::SettingsFacts;
use crate::settings::claude::layers::SettingsLayers;
use crate::settings::claude::levers::{Lever, Levers};
use crate::settings::entries::BillForecast;
use crate::settings::finding::{Delta, Evidence, Finding, Verdict};
use crate::whatif::client::thresholds::{deciding, known};
use crate::whatif::client::{KeptSides, LeverPart, LeverStudy, LeverValue, Trial};
use crate::whatif::prompt_cache::params::CacheLifetime;
use crate::whatif::sim::cells::Drawn;
use crate::whatif::sim::cost::Cost;

/// The numbers of a rule whose lever is simulated.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Thresholds {
    /// Least sessions to choose on, and to judge on.
    pub sessions_min: u64,
    pub of_bill_percent_min: f64,
}

/// What is asked.
pub struct Question {
    pub rule: &'static str,
    /// What it is about, in words.
    pub subject: &'static str,
    /// The levers that can do it, the one to be preferred first.
    pub levers: &'static [&'static str],
    /// What a value in a file of settings means; none if it makes no sense.
    pub meant: fn(&Value) -> Option<LeverValue>,
}

impl Question {
    /// The lever that holds already, with its value; none if nothing does.
    pub fn in_force<'v>(&self, layers: &SettingsLayers, levers: &'v Levers) -> Result<Option<(&'v Lever, LeverValue)>> {
        let Some(lever) = self.levers.first().and_then(|name| levers.named(name)) else { return Ok(None) };
        let held = layers.in_force(lever, levers)?;
        Ok(held.and_then(|(lever, value)| Some((lever, (self.meant)(&value)?))))
    }

    /// What was tried of it.
    pub(super) fn trials<'t>(&self, study: &'t LeverStudy) -> Vec<&'t Trial> {
        study.trials.iter().filter(|trial| self.value(trial.setting).is_some()).collect()
    }

    /// The value that a setting stands for; none if it is about another lever.
    pub(super) fn value(&self, setting: LeverValue) -> Option<Value> {
        Some(setting.value()).filter(|value| (self.meant)(value) == Some(setting))
    }
}

/// A value that pays, and what is told of it.
pub(super) struct Paying<'t> {
    pub(super) trial: &'t Trial,
    told: BillForecast,
}

/// Why no value of a lever is proposed, and what is told of the best one.
type Refused = (Verdict, Option<BillForecast>);

/// The value of a lever that pays: the one that is chosen on the earlier sessions, if the later ones are cheaper with it by
/// more than the simulation is off, and by enough of the whole bill.
pub(super) fn pays<'t>(
    study: &'t LeverStudy,
    resampling: &Resampling,
    sheet: &RuleThresholds,
    question: &Question,
) -> Result<std::result::Result<Paying<'t>, Refused>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let trials = question.trials(study);
    let skip = |reason: String| Ok(Err((Verdict::Skip(reason), None)));
    if concerned(study, &trials).into_iter().any(|sessions| sessions < thresholds.sessions_min) {
        return skip(format!("too few sessions that it concerns ({})", sheet.cite("sessions_min")));
    }
    if let Some(reason) = trials.first().and_then(|trial| without_price(study, trial)) {
        return Ok(Err((Verdict::Hold(reason.to_owned()), None)));
    }
    let Some((change, trial)) = study.chosen(trials) else { return skip("nothing was billed".to_owned()) };
    let told = of_trial(study, resampling, trial);
    let standing = study.standing.iter().find_map(|setting| question.value(*setting));
    if change >= -NOTHING {
        let is_nothing = change.abs() < NOTHING;
        if let Some(standing) = standing.filter(|_| is_nothing) {
            return skip(format!("no value is cheaper than {}, which is set already", plain(&standing)));
        }
        let reason =
            if is_nothing { "no effect on the earlier sessions" } else { "every value loses on the earlier sessions" };
        return Ok(Err((Verdict::Hold(reason.to_owned()), told)));
    }
    // What stands was chosen among values like this one: a second run has to choose it again.
    if let Some(standing) = standing.filter(|_| 100.0 * change > -study.least_percent) {
        let (value, standing) = (plain(&trial.setting.value()), plain(&standing));
        let words = format!("{} % on the earlier sessions", signed(100.0 * change, 1));
        let reason = format!("{value}: {words} cannot be told from {standing}, which is set already");
        return Ok(Err((Verdict::Hold(reason), told)));
    }
    let Some(told) = told else { return skip("the later sessions say nothing".to_owned()) };
    Ok(match too_little(&told, &thresholds, study.least_percent, sheet) {
        Some(reason) => Err((Verdict::Hold(format!("{}: {reason}", plain(&trial.setting.value()))), Some(told))),
        None => Ok(Paying { trial, told }),
    })
}

/// Why nothing is said of models without a price: what they charge for writing to the cache, and for reading, is theirs alone.
pub const NO_PRICE: &str = "no model here has a known price, so nothing can be valued in money";

/// Why nothing is said of what a trial concerns; none if both sides have a price.
fn without_price(study: &LeverStudy, trial: &Trial) -> Option<&'static str> {
    match [true, false].map(|is_earlier| in_money(study, trial, is_earlier)) {
        [true, true] => None,
        [false, false] => Some(NO_PRICE),
        [false, true] => Some("no model of the earlier sessions has a known price, so nothing can be chosen on them"),
        [true, false] => Some("no model of the later sessions has a known price, so nothing can be judged on them"),
    }
}

/// Whether some of what a trial concerns on one side has a price, or nothing lacks one.
fn in_money(study: &LeverStudy, trial: &Trial, is_earlier: bool) -> bool {
    let before = study.sum(&trial.sessions, is_earlier).before;
    before.nano_usd > 0 || before.unpriced_tokens == 0
}

/// Earlier and later sessions that some trials concern.
fn concerned(study: &LeverStudy, trials: &[&Trial]) -> [u64; 2] {
    let count = |trial: &&Trial, side| study.concerned(&trial.sessions, side).count() as u64;
    trials.first().map_or([0, 0], |trial| [true, false].map(|side| count(trial, side)))
}

/// On what a lever is judged.
fn evidence(study: &LeverStudy, question: &Question) -> Evidence {
    let trials = question.trials(study);
    let [earlier, later] = concerned(study, &trials);
    let priced = trials.iter().filter(|trial| in_money(study, trial, true));
    let tried = priced.filter_map(|trial| Some((study.sum(&trial.sessions, true).change()?, trial)));
    let tried =
        tried.map(|(change, trial)| format!("{} {} %", plain(&trial.setting.value()), signed(100.0 * change, 1)));
    let listed = tried.collect::<Vec<_>>().join(", ");
    let listed = if listed.is_empty() { listed } else { format!(" ({listed})") };
    let own = trials.first().map_or_else(BTreeSet::new, |trial| study.without(&[trial.setting]));
    let seen: BTreeSet<Id> = study.sessions.iter().map(|seen| seen.project).collect();
    let apart = match own.intersection(&seen).count() {
        0 => String::new(),
        1 => "; one project decides it itself, so that its sessions are left out".to_owned(),
        own => format!("; {own} projects decide it themselves, so that their sessions are left out"),
    };
    let compacts = trials.first().is_some_and(|trial| matches!(trial.setting, LeverValue::Window(_)));
    let after = if compacts { format!("; {}", study.reattached.words()) } else { String::new() };
    let (chosen, judged) = (counted(earlier, "earlier session"), counted(later, "later one"));
    Evidence::of(format!("chosen on {chosen}{listed}, judged on {judged}{apart}{after}"), earlier + later)
}

/// Judges one lever.
pub fn judge(facts: &SettingsFacts<'_>, sheet: &RuleThresholds, question: &Question) -> Result<Finding> {
    let mut evidence = evidence(facts.study, question);
    let finding = |verdict, forecast, evidence| Finding {
        forecast,
        ..Finding::new(question.rule, question.subject, verdict, evidence)
    };
    let Paying { trial, told } = match pays(facts.study, facts.resampling, sheet, question)? {
        Ok(paying) => paying,
        Err((verdict, told)) => {
            let verdict = unknown_in_force(facts, question)?.unwrap_or(verdict);
            return Ok(finding(verdict, told, evidence));
        }
    };
    let value = &trial.setting.value();
    let held = |reason: String, evidence| finding(Verdict::Hold(reason), Some(told.clone()), evidence);
    let levers = question.levers.iter().filter_map(|name| facts.levers.named(name));
    let levers: Vec<&Lever> = levers.filter(|lever| lever.check(value).is_ok()).collect();
    let holds = |lever: &Lever| facts.layers.holds(lever).unwrap_or_default();
    let lever = match (deciding(&levers, &facts.study.versions, holds), levers.first()) {
        (Ok(lever), _) => lever,
        (Err(reason), None) => return Ok(held(reason, evidence)),
        (Err(update), Some(lever)) => {
            let verdict = waits(facts, lever, value, update)?;
            return Ok(finding(verdict, Some(told), evidence));
        }
    };
    let Some(key) = lever.key(None) else { return Ok(held("it stands in no file of settings".to_owned(), evidence)) };
    if let Some(obstacle) = facts.layers.overridden(lever, &key, facts.levers)? {
        return Ok(held(format!("`{key}` is {}", obstacle.why), evidence));
    }
    let from = facts.layers.value(&key)?;
    let to = lever.spelled(value);
    if from.as_ref() == Some(&to) {
        return Ok(finding(Verdict::Skip(format!("`{key}` is {to} already")), None, evidence));
    }
    // Also by the name that the lever had for older clients.
    for key in levers.iter().filter_map(|lever| lever.key(None)) {
        let now = facts.layers.value(&key)?.as_ref().map(Value::to_string);
        if let Some(undo) = facts.journal.taken_back(&key.to_string(), now.as_deref()) {
            let setting = undo.taken_back_value(&key.to_string());
            let verdict = Verdict::TakenBack { setting, words: undo.taken_back_words() };
            return Ok(finding(verdict, Some(told), evidence));
        }
    }
    if let LeverValue::MainTtl(CacheLifetime::Hour) | LeverValue::SubagentTtl(CacheLifetime::Hour) = trial.setting
        && let Some(words) = facts.gateway
    {
        evidence.counts += &format!("; {words}");
    }
    evidence.threshold = Some(sheet.cite("of_bill_percent_min"));
    // A null sets nothing.
    let from = from.filter(|from| !from.is_null()).as_ref().map(as_toml);
    let verdict = Verdict::Propose(Delta { key, from, to: as_toml(&to) });
    Ok(finding(verdict, Some(told), evidence))
}

/// What is said where a value is set that some client does not know yet: all that was tried, was tried beside it.
fn unknown_in_force(facts: &SettingsFacts<'_>, question: &Question) -> Result<Option<Verdict>> {
    let Some((lever, standing)) = question.in_force(facts.layers, facts.levers)? else { return Ok(None) };
    let update = known(&[lever], &facts.study.versions).err();
    let set = format!("{} is {}", lever.name, plain(&standing.value()));
    Ok(update.map(|update| Verdict::Hint(format!("{set} already, but {update}"))))
}

/// What is said of a lever that some client does not know yet: what else stands in its way then.
fn waits(facts: &SettingsFacts<'_>, lever: &Lever, value: &Value, update: String) -> Result<Verdict> {
    let setting = format!("{} = {}", lever.name, plain(value));
    let Some(key) = lever.key(None) else { return Ok(Verdict::Wait { setting, update }) };
    let obstacle = facts.layers.overridden(lever, &key, facts.levers)?;
    let update =
        obstacle.map_or_else(|| update.clone(), |found| format!("{update}; besides, `{key}` is {}", found.why));
    Ok(Verdict::Wait { setting, update })
}

/// Smaller shares are rounding.
const NOTHING: f64 = 1e-9;

/// Why a change is too little to be proposed; none if it is not.
fn too_little(
    told: &BillForecast,
    thresholds: &Thresholds,
    least_percent: f64,
    sheet: &RuleThresholds,
) -> Option<String> {
    let margin = told.error.max(least_percent / 100.0);
    let percent = |share: f64| 100.0 * share;
    let words = format!("{} % on later sessions", signed(percent(told.change), 1));
    if told.change > margin {
        return Some(format!("loses, {words}"));
    }
    let upper = told.change + stretch(told.sessions) * (told.upper - told.change);
    if told.upper < -margin && upper >= -margin {
        let [narrow, wide] = [told.upper, upper].map(|end| signed(percent(end), 1));
        let sessions = counted(told.sessions, "session");
        return Some(format!(
            "not sure enough: {words}, and the interval ends at {narrow} %, but intervals over {sessions} promise too much: as wide as \
             it has to be this one ends at {wide} %"
        ));
    }
    if told.upper >= -margin {
        let [lower, upper] = [told.lower, told.upper].map(|end| signed(percent(end), 1));
        let margin = percent(margin);
        return Some(format!(
            "no effect beyond error: {words} [{lower} … {upper} %], and changes below {margin:.1} % cannot be told from zero"
        ));
    }
    let share = -100.0 * told.of_bill;
    (share < thresholds.of_bill_percent_min)
        .then(|| format!("{words} are {share:.2} % of the whole bill ({})", sheet.cite("of_bill_percent_min")))
}

/// What a trial says of the later sessions.
pub(super) fn of_trial(study: &LeverStudy, resampling: &Resampling, trial: &Trial) -> Option<BillForecast> {
    forecast(study, resampling, &[trial.setting], &trial.sessions)
}

/// What some settings, tried session by session as one configuration, say of the later sessions.
pub(super) fn forecast(
    study: &LeverStudy,
    resampling: &Resampling,
    settings: &[LeverValue],
    tried: &[KeptSides],
) -> Option<BillForecast> {
    let part = if let [setting] = settings { setting.part() } else { LeverPart::All };
    let all = study.sum(tried, false);
    let in_money = all.before.nano_usd > 0;
    let measure = |cost: &Cost| if in_money { cost.nano_usd } else { cost.units } as f64;
    let later = || study.concerned(tried, false);
    let pairs: Vec<(f64, f64)> = later().map(|(_, sides)| (measure(&sides.before), measure(&sides.after))).collect();
    let drawn = Drawn::new(&pairs, resampling)?;
    let mut bill: f64 =
        study.sessions.iter().filter(|seen| seen.is_earlier == Some(false)).map(|seen| measure(&seen.cost)).sum();
    if part == LeverPart::All {
        // Where compactions are placed anew, what sessions cost before is simulated so as well.
        bill += later().map(|(seen, sides)| measure(&sides.before) - measure(&seen.cost)).sum::<f64>();
    }
    let saved = measure(&all.after) - measure(&all.before);
    let thousand = all.requests.max(1) as f64 / 1_000.0;
    let times = || later().map(|(seen, _)| seen);
    Some(BillForecast {
        part: part.into_str().to_owned(),
        without: study.without(settings),
        change: all.change()?,
        lower: drawn.lower,
        upper: drawn.upper,
        of_bill: if bill > 0.0 { saved / bill } else { 0.0 },
        usd: in_money.then_some(-saved / 1e9),
        beside: None,
        error: all.error(),
        chosen_on: study.concerned(tried, true).count() as u64,
        sessions: pairs.len() as u64,
        span_ms: (times().map(|seen| seen.first).min()?, times().map(|seen| seen.last).max()?),
        unpriced: all.unpriced as f64 / all.requests.max(1) as f64,
        hard_breaks: all.hard as f64 / thousand,
        soft_breaks: all.soft as f64 / thousand,
    })
}

/// A value without quotes.
pub(super) fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A value as findings hold it.
pub(super) fn as_toml(value: &Value) -> toml_edit::Value {
    match value {
        Value::String(text) => text.as_str().into(),
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(whole), _) => whole.into(),
            (None, number) => number.unwrap_or_default().into(),
        },
        other => other.to_string().into(),
    }
}

/// The path of a lever's key, for hints.
pub fn key_of(facts: &SettingsFacts<'_>, lever: &str) -> Option<KeyPath> {
    facts.levers.named(lever)?.key(None)
}

/// A hint about a lever; held if a client does not know it, or something keeps it from having any effect.
pub fn hint(
    facts: &SettingsFacts<'_>,
    rule: &'static str,
    subject: &str,
    lever: &str,
    words: String,
    evidence: Evidence,
) -> Result<Finding> {
    let levers: Vec<&Lever> = facts.levers.named(lever).into_iter().collect();
    let in_the_way = |lever: &Lever| -> Result<Option<String>> {
        let Some(key) = lever.key(None) else { return Ok(None) };
        let obstacle = facts.layers.overridden(lever, &key, facts.levers)?;
        Ok(obstacle.map(|obstacle| format!("`{key}` is {}", obstacle.why)))
    };
    let held = match known(&levers, &facts.study.versions) {
        Ok(lever) => in_the_way(lever)?,
        Err(update) => Some(update),
    };
    Ok(Finding::new(rule, subject, held.map_or_else(|| Verdict::Hint(words), Verdict::Hold), evidence))
}
