//! Explainable rules: typed rows × thresholds → findings. A rule reads, counts and says what it concludes; it never writes.
//! Each is one file here, one sheet of numbers in `rules/`, and a line in [`REGISTER`].

pub mod prefetching;
pub mod proposal;

pub mod report;

pub mod claude;
mod e1_extended_formats;
pub mod effects;
pub mod gate;
pub mod mined_planners;
pub mod p1_model;
mod p2_agent;
pub mod p3_data;
pub(crate) mod p4_tokenizer;
mod r1_dedup_enable;
mod r2_template;
mod r3_lru_size;
mod r4_recursion_depth;
mod r5_min_body;
pub mod r6_cost_models;
pub mod r7_speculation;
pub mod responses;
pub mod search;
pub mod statistics;
pub mod t1_tools;
mod t2_fields;
pub mod tool_keys;

use std::sync::LazyLock;

use serde::de::DeserializeOwned;
use toml_edit::Value;

use crate::base::backtest::PromiseCoverage;
use crate::base::data::{Data, DataFile};
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::base::names::Names;
use crate::base::stats::{FollowUpCount, ModelUse, SessionUse, ToolStats};
use crate::frames::fingerprint::Observed;
use crate::frames::projection::MinedProjection;
use crate::mine::fields::FieldUse;
use crate::mine::runnable::Runnable;
use crate::planner::numbers::{PlannerThresholds, ProjectionNumbers};
use crate::settings::View;
use crate::settings::annotations::Annotations;
use crate::settings::finding::{Delta, Finding, Verdict};
use crate::whatif::calibration::FamilyRatio;

/// A rule: who it is, what it does in words, where its numbers are, and the judgement.
pub struct Rule {
    /// Short id: "P1".
    pub id: &'static str,
    /// Name of its files: "p1_model"; the one in `rules/docs/` says what it looks at, why, when it stays quiet.
    pub file: &'static str,
    /// What it decides, in one line.
    pub summary: &'static str,
    pub speaks: Speaks,
    pub judge: fn(&RuleFacts<'_>, &RuleThresholds) -> Result<Vec<Finding>>,
}

/// When a rule speaks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Speaks {
    /// In `tune from-claude-logs`.
    Logs,
    /// There, with `--tools`.
    LogsWithTools,
    /// There, with `--tools --fields`.
    LogsWithFields,
    /// There, with `--calibrate`.
    LogsCalibrated,
    /// In `tune analyze`.
    Events,
    /// There, with `--auto-enrichment`.
    AutoEnrichment,
    /// There, with `--extended-formats`.
    ExtendedFormats,
}

/// All rules, in the order in which they speak.
pub static REGISTER: &[&Rule] = &[
    &p1_model::RULE,
    &p2_agent::RULE,
    &p3_data::RULE,
    &p4_tokenizer::RULE,
    &t1_tools::RULE,
    &t2_fields::RULE,
    &r1_dedup_enable::RULE,
    &r2_template::RULE,
    &r3_lru_size::RULE,
    &r4_recursion_depth::RULE,
    &r5_min_body::RULE,
    &r6_cost_models::RULE,
    &r7_speculation::RULE,
    &e1_extended_formats::RULE,
];

/// What rules may read.
pub struct RuleFacts<'a> {
    /// Texts of the symbols in the rows below.
    pub names: &'a Names,
    pub models: &'a [ModelUse],
    pub sessions: &'a [SessionUse],
    pub tools: &'a [ToolStats],
    /// Follow-ups at the published lags.
    pub follow_ups: &'a [FollowUpCount],
    /// Values that pass from answers to arguments.
    pub projections: &'a [MinedProjection],
    /// How the planner takes arguments out of answers.
    pub projecting: &'a ProjectionNumbers,
    /// Which calls can run with one argument.
    pub runnable: &'a Runnable,
    /// How well the statistics behind proposals held on sessions that came later, as far as that was looked at.
    pub coverage: &'a [PromiseCoverage],
    /// Model families held against their bills; empty unless that was asked for.
    pub calibration: &'a [FamilyRatio],
    /// Fields of JSON answers, tool by tool; empty unless that was asked for.
    pub fields: &'a [FieldUse],
    pub annotations: &'a Annotations,
    pub families: &'a [p1_model::ModelFamily],
    /// Recorded responses summed up: endpoints, tools, the whole.
    pub observed: &'a Observed,
    pub current: &'a View<'a>,
}

impl<'a> RuleFacts<'a> {
    /// Facts about a configuration with which nothing was done yet.
    pub fn none(current: &'a View<'a>, annotations: &'a Annotations, projecting: &'a ProjectionNumbers) -> Self {
        static NOTHING: LazyLock<(Names, Runnable, Observed)> = LazyLock::new(Default::default);
        let (names, runnable, observed) = &*NOTHING;
        Self {
            names,
            models: &[],
            sessions: &[],
            tools: &[],
            follow_ups: &[],
            projections: &[],
            projecting,
            runnable,
            coverage: &[],
            calibration: &[],
            fields: &[],
            annotations,
            families: &[],
            observed,
            current,
        }
    }

    /// Why nothing may be proposed from a statistic; none unless it surely broke its promise on later sessions.
    pub fn broken(&self, statistic: &str) -> Option<String> {
        self.coverage.iter().find(|coverage| coverage.statistic == statistic)?.broken()
    }

    /// Proposes a value for a key that nobody wrote.
    pub fn fills(&self, key: KeyPath, to: Value) -> Verdict {
        match self.current.line(&key) {
            Some(line) => Verdict::Skip(format!("`{key}` stands in line {line} and is kept")),
            None => Verdict::Propose(Delta { key, from: None, to }),
        }
    }

    /// Proposes a value for a key, unless it holds already.
    pub fn wants(&self, key: KeyPath, to: Value) -> Verdict {
        let from = self.current.value(&key);
        let spelled = |value: &Value| value.to_string().trim().to_owned();
        match &from {
            Some(held) if spelled(held) == spelled(&to) => {
                Verdict::Skip(format!("`{key}` is {} already", spelled(&to)))
            }
            _ => Verdict::Propose(Delta { key, from, to }),
        }
    }
}

/// The numbers of one rule.
pub struct RuleThresholds(DataFile);

impl RuleThresholds {
    /// The sheet of a rule, by the name of its files.
    pub fn of(file: &str, data: &Data) -> Result<Self> {
        data.file(&format!("{file}.toml")).map(Self)
    }

    /// The numbers, typed.
    pub fn thresholds<T: DeserializeOwned>(&self) -> Result<T> {
        self.0.parsed()
    }

    /// Where a threshold stands and what it asks for: "rules/p1_model.toml:4 asks for share_min = 0.80".
    pub fn cite(&self, key: &str) -> String {
        let DataFile { place, text } = &self.0;
        let numbered = text.lines().enumerate();
        let found = numbered.filter_map(|(index, line)| {
            let (name, value) = line.split_once('=')?;
            let value = value.split('#').next().unwrap_or_default();
            (name.trim() == key).then(|| format!("{place}:{} asks for {key} = {}", index + 1, value.trim()))
        });
        found.into_iter().next().unwrap_or_else(|| place.clone())
    }
}

/// Lets every rule speak that was asked for.
pub fn judge_all(facts: &RuleFacts<'_>, data: &Data, asked: &[Speaks]) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for rule in REGISTER.iter().filter(|rule| asked.contains(&rule.speaks)) {
        findings.extend((rule.judge)(facts, &RuleThresholds::of(rule.file, data)?)?);
    }
    Ok(findings)
}

/// Lets the rules about recorded responses speak.
pub fn judge_events(
    observed: &Observed,
    coverage: &[PromiseCoverage],
    data: &Data,
    current: &View<'_>,
    asked: &[Speaks],
) -> Result<Vec<Finding>> {
    let (numbers, annotations) = (data.parsed::<PlannerThresholds>("planner.toml")?, Annotations::load(data)?);
    let facts = RuleFacts { coverage, observed, ..RuleFacts::none(current, &annotations, &numbers.projection) };
    let mut findings = judge_all(&facts, data, asked)?;
    // Endpoints stand in the order of their pseudonyms, which the secret of the machine decides; what is about all comes last.
    let order = |finding: &Finding| (finding.subject.starts_with('('), finding.subject.clone());
    findings.chunk_by_mut(|a, b| a.rule == b.rule).for_each(|of_rule| of_rule.sort_by_cached_key(order));
    Ok(findings)
}

/// A rule in words, with its sheet.
pub struct DocumentedRule {
    pub id: &'static str,
    pub name: &'static str,
    /// What it decides, in one line.
    pub summary: &'static str,
    /// What it looks at, why, when it stays quiet, an example.
    pub docs: &'static str,
    pub sheet: DataFile,
}

/// All rules in words, or the one that is asked for, in any case.
pub fn documented(data: &Data, asked: Option<&str>) -> Result<Vec<DocumentedRule>> {
    let of_pipeline = REGISTER.iter().map(|rule| (rule.id, rule.file, rule.summary));
    let of_client = claude::REGISTER.iter().map(|rule| (rule.id, rule.file, rule.summary));
    let all: Vec<_> = of_pipeline.chain(of_client).collect();
    let is_asked = |id: &str| asked.is_none_or(|asked| asked.eq_ignore_ascii_case(id));
    if let (Some(asked), false) = (asked, all.iter().any(|(id, ..)| is_asked(id))) {
        let ids: Vec<&str> = all.iter().map(|(id, ..)| *id).collect();
        return Err(Error::usage(format!("no rule {asked:?}")).hint(format!("one of {}", ids.join(", "))));
    }
    let rule = |(id, name, summary): (_, &'static str, _)| {
        let RuleThresholds(sheet) = RuleThresholds::of(name, data)?;
        Ok(DocumentedRule { id, name, summary, docs: Data::rule_page(name)?.trim(), sheet })
    };
    all.into_iter().filter(|(id, ..)| is_asked(id)).map(rule).collect()
}

impl DocumentedRule {
    /// Its section of the documentation.
    pub fn section(&self) -> String {
        let Self { id, name, summary, docs, sheet: DataFile { place, text } } = self;
        format!("## {id} {name}\n\n{summary}\n\n{docs}\n\n### Numbers (`{place}`)\n\n```toml\n{}\n```\n", text.trim())
    }
}

/// The documentation of all rules, generated from the rules themselves.
pub fn documentation(data: &Data) -> Result<String> {
    let mut out = String::from(
        "# Rules\n\nPrinted by `devboy tune rules`. The numbers stand in `rules/`, each with its reason; \
         `--rules-dir DIR` reads them from elsewhere.\n",
    );
    for rule in documented(data, None)? {
        out += &format!("\n{}", rule.section());
    }
    out += &report::documentation(data)?;
    Ok(out)
}
