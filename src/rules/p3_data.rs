//! P3: a data profile for every MCP endpoint that has none yet. And its gate: a profile is written if its format saves tokens
//! in a replay, and not for its name alone.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml_edit::Value;

use crate::base::body_shape::BodyShape;
use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::counted;
use crate::base::stats::{Share, ToolStats};
use crate::frames::input::Input;
use crate::rules::gate::ProposalGate;
use crate::rules::responses::Responses;
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks, statistics};
use crate::settings::annotations::{is_plain_name, split_mcp};
use crate::settings::finding::{Delta, Effect, Evidence, Finding, Verdict};
use crate::settings::resolve::templates_of;
use crate::settings::{Settings, SettingsFile, View};

/// The rule.
pub static RULE: Rule = Rule {
    id: "P3",
    file: "p3_data",
    summary: "Adds a data profile under `profiles.data.variants` for every MCP endpoint that no pattern matches and whose results have one shape.",
    speaks: Speaks::Logs,
    judge,
};

#[derive(Deserialize)]
struct Thresholds {
    answers_min: u64,
    shape_share_min: f64,
    replayed_calls_max: usize,
    replayed_bytes_max: u64,
    format_by_shape: BTreeMap<String, String>,
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let variants = KeyPath::from(["profiles", "data", "variants"]);
    let entries: BTreeSet<String> = facts.current.entries(&variants).into_iter().collect();
    let pattern = |entry: &String| {
        let pattern = facts.current.text(&variants.child(entry).child("endpoint_pattern"))?;
        Some((entry.clone(), pattern))
    };
    // By entry: the first that matches is the one that holds.
    let patterns: Vec<(String, String)> = entries.iter().filter_map(pattern).collect();
    let mut tools: Vec<&ToolStats> = facts.tools.iter().collect();
    tools.sort_by_key(|stats| facts.names.text(stats.tool));
    let mut findings = Vec::new();
    for stats in tools {
        let endpoint = facts.names.text(stats.tool);
        let Some((server, verb)) = split_mcp(endpoint) else { continue };
        let counts = format!("{} in {}", counted(stats.calls, "call"), counted(stats.sessions, "session"));
        let evidence = Evidence::of(counts, stats.calls);
        let add = |verdict| Finding::new(RULE.id, endpoint, verdict, evidence.clone());
        let name = format!("{server}__{verb}");
        if let Some((entry, _)) = patterns.iter().find(|(_, pattern)| endpoint.starts_with(pattern.as_str())) {
            findings.push(add(Verdict::Skip(format!("matched by `{}`", variants.child(entry)))));
        } else if !is_plain_name(endpoint) {
            findings.push(add(Verdict::Skip("the name cannot stand in a configuration".to_owned())));
        } else if entries.contains(&name) {
            let taken = format!("`{}` has another pattern", variants.child(&name));
            findings.push(add(Verdict::Hold(taken)));
        } else if let Some(longer) = longer_endpoint(endpoint, &patterns, facts) {
            let reason = format!("patterns match by prefix: this one would take over {longer}");
            findings.push(add(Verdict::Hold(reason)));
        } else {
            let key = variants.child(&name);
            let delta = Delta { key: key.child("endpoint_pattern"), from: None, to: Value::from(endpoint) };
            let format = format_finding(facts.current, &key, endpoint, stats, &thresholds, sheet);
            // A profile without a format does nothing.
            findings.extend(format.proposed().is_some().then(|| add(Verdict::Propose(delta))));
            findings.push(format);
        }
    }
    Ok(findings)
}

/// An endpoint that a pattern equal to `endpoint` would match as well: one with a profile of its own, or one that was
/// called.
fn longer_endpoint(endpoint: &str, patterns: &[(String, String)], facts: &RuleFacts<'_>) -> Option<String> {
    let called = facts.tools.iter().map(|stats| facts.names.text(stats.tool));
    let mut all = patterns.iter().map(|(_, pattern)| pattern.as_str()).chain(called);
    all.find(|other| other.len() > endpoint.len() && other.starts_with(endpoint)).map(str::to_owned)
}

fn format_finding(
    current: &View<'_>,
    key: &KeyPath,
    endpoint: &str,
    stats: &ToolStats,
    thresholds: &Thresholds,
    sheet: &RuleThresholds,
) -> Finding {
    let answers: u64 = stats.shapes.values().sum();
    let dominant = stats.shapes.iter().max_by_key(|(shape, count)| (**count, std::cmp::Reverse(**shape)));
    let (shape, count) = dominant.map_or((BodyShape::Unknown, 0), |(&shape, &n)| (BodyShape::from_number(shape), n));
    let share = Share::new(count, answers);
    let evidence = Evidence {
        counts: format!("{}: {count} of {}", shape.into_str(), counted(answers, "classified result")),
        share: (answers > 0).then_some(share),
        n: answers,
        threshold: Some(sheet.cite("shape_share_min")),
        ..Evidence::default()
    };
    let verdict = match thresholds.format_by_shape.get(shape.into_str()) {
        _ if answers < thresholds.answers_min => {
            Verdict::Skip(format!("too few results for a format ({})", sheet.cite("answers_min")))
        }
        None => Verdict::Skip(format!("no format follows from the shape {} alone", shape.into_str())),
        Some(_) if share.lower < thresholds.shape_share_min => {
            Verdict::Hold("the shape is not certain enough for a format".to_owned())
        }
        Some(format) => preferred(current, key.child("preferred_format"), endpoint, format),
    };
    Finding::new(RULE.id, endpoint, verdict, evidence)
}

/// A format for an endpoint, unless it has a template: what a profile prefers would come before it.
fn preferred(current: &View<'_>, key: KeyPath, endpoint: &str, format: &str) -> Verdict {
    let templates = templates_of(endpoint);
    if let Some(pin) = templates.iter().find(|template| current.pinned(template)) {
        return Verdict::Hold(format!("`{pin}` is marked `# pin`, which `{key}` would overrule"));
    }
    match templates.into_iter().find_map(|template| current.text(&template).map(|said| (template, said))) {
        Some((template, said)) if said == format => Verdict::Skip(format!("`{template}` says so already")),
        Some((template, said)) => Verdict::Hold(format!("`{template}` says {said}, which a profile would overrule")),
        None => Verdict::Propose(Delta { key, from: None, to: Value::from(format) }),
    }
}

/// What the replay says of one proposal.
#[derive(Serialize, Deserialize)]
struct ProfileVerdict {
    held: Option<String>,
    effect: Option<Effect>,
}

/// Replays the profiles among the findings over the latest logs with their endpoints, which `read` reads again; what brings
/// nothing is held.
pub fn gate(
    file: &SettingsFile,
    settings: &Settings,
    input: &mut Input,
    mut findings: Vec<Finding>,
    read: impl FnOnce(Vec<PathBuf>) -> Result<Responses>,
) -> Result<Vec<Finding>> {
    if input.listing.stdin {
        let profiles = findings.iter_mut().filter(|finding| is_profile(finding));
        profiles.for_each(|it| it.verdict = Verdict::Hold("no effect: standard input cannot be replayed".to_owned()));
    }
    let (mut profiles, others): (Vec<Finding>, Vec<Finding>) = findings.into_iter().partition(is_profile);
    if profiles.is_empty() {
        return Ok(others);
    }
    let proposals: Vec<String> =
        profiles.iter().filter_map(Finding::proposed).map(|delta| format!("{delta:?}")).collect();
    let judged: Vec<ProfileVerdict> = input.remember(&format!("profiles {proposals:?} {}", file.text), |input| {
        let tools = profiles.iter().map(|finding| finding.subject.clone()).collect();
        let input_dir = latest_calling(input, &tools)?;
        if input_dir.is_empty() {
            let held =
                Some("not replayed: the logs with its endpoint are gone, or too large to be read once more".to_owned());
            return Ok(profiles.iter().map(|_| ProfileVerdict { held: held.clone(), effect: None }).collect());
        }
        let responses = read(input_dir)?;
        let (_, found) =
            ProposalGate::pass(file, settings, &responses, &responses.laid_out(&responses.log), profiles.clone())?;
        Ok(found.into_iter().map(ProfileVerdict::of).collect())
    })?;
    for (profile, judged) in profiles.iter_mut().zip(judged) {
        profile.effect = judged.effect;
        if let Some(reason) = judged.held {
            profile.verdict = Verdict::Hold(reason);
        }
    }
    Ok(others.into_iter().chain(profiles).collect())
}

fn is_profile(finding: &Finding) -> bool {
    finding.rule == RULE.id && finding.proposed().is_some()
}

impl ProfileVerdict {
    fn of(finding: Finding) -> Self {
        let held = match finding.verdict {
            Verdict::Hold(reason) => Some(reason),
            _ => None,
        };
        Self { held, effect: finding.effect }
    }
}

/// The logs in which these tools were called last: with as many calls as `rules/p3_data.toml` says, in as many files as there must
/// be sessions for an interval; without those that are too large to be read once more.
fn latest_calling(input: &mut Input, tools: &BTreeSet<String>) -> Result<Vec<PathBuf>> {
    let Thresholds { replayed_calls_max, replayed_bytes_max, .. } =
        RuleThresholds::of(RULE.file, &input.data)?.thresholds()?;
    let files_min = statistics::numbers(&input.data)?.backtest.known_min;
    let window = input.window.clone();
    let mut calling = input.of_calls(&|source, calls, names| {
        let asked = calls.iter().filter_map(|call| call.asked.as_ref()).filter(|asked| window.contains(&asked.ts));
        let times = asked.filter(|asked| tools.contains(names.text(asked.tool))).map(|asked| asked.ts);
        let (last, path) = times.max().zip(source.path.clone())?;
        Some((last, (calls.len(), source.bytes), path))
    });
    calling.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.2.cmp(&b.2)));
    let (mut logs, mut calls, mut bytes) = (Vec::new(), 0, 0);
    for (_, (more_calls, more_bytes), path) in calling {
        if bytes + more_bytes > replayed_bytes_max {
            continue;
        }
        (calls, bytes) = (calls + more_calls, bytes + more_bytes);
        if logs.len() >= files_min && calls > replayed_calls_max {
            break;
        }
        logs.push(path);
    }
    Ok(logs)
}
