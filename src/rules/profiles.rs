//! The gate of data profiles: a profile is written if its format saves tokens in a replay, and not for its name alone.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::base::error::Result;
use crate::frames::input::Input;
use crate::rules::gate::ProposalGate;
use crate::rules::proposal::proposed;
use crate::rules::responses::Responses;
use crate::rules::{p3_data, statistics};
use crate::settings::finding::{Effect, Finding, Verdict};
use crate::settings::{Settings, SettingsFile};

/// What the replay says of one proposal.
#[derive(Serialize, Deserialize)]
struct ProfileVerdict {
    held: Option<String>,
    effect: Option<Effect>,
}

/// Replays the profiles among the findings over the latest logs with their endpoints, which `read` reads again; what brings
/// nothing is held.
///
/// # Errors
/// If these logs cannot be read again.
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
    let proposals: Vec<String> = profiles.iter().filter_map(proposed).map(|delta| format!("{delta:?}")).collect();
    let judged: Vec<ProfileVerdict> = input.remember(&format!("profiles {proposals:?} {}", file.text), |input| {
        let tools = profiles.iter().map(|finding| finding.subject.clone()).collect();
        let input_dir = latest_calling(input, &tools)?;
        if input_dir.is_empty() {
            let held =
                Some("not replayed: the logs with its endpoint are gone, or too large to be read once more".to_owned());
            return Ok(profiles.iter().map(|_| ProfileVerdict { held: held.clone(), effect: None }).collect());
        }
        let responses = read(input_dir)?;
        let (_, found) = ProposalGate::pass(file, settings, &responses, &responses.log, profiles.clone())?;
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
    finding.rule == p3_data::RULE.id && proposed(finding).is_some()
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
    let (calls_max, bytes_max) = p3_data::replayed_max(&input.data)?;
    let files_min = statistics::numbers(&input.data)?.backtest.known_min;
    let window = input.window.clone();
    let corpus = input.corpus();
    let is_asked: Vec<bool> = corpus.names.texts().iter().map(|name| tools.contains(name)).collect();
    let mut calling: Vec<(i64, (usize, u64), PathBuf)> = Vec::new();
    for file in &corpus.files {
        let asked = || file.rows.calls.iter().filter_map(|call| call.asked.as_ref());
        let times = asked().filter(|asked| is_asked[asked.tool.0 as usize] && window.contains(&asked.ts));
        if let Some((last, path)) = times.map(|asked| asked.ts).max().zip(file.source.path.clone()) {
            calling.push((last, (file.rows.calls.len(), file.source.bytes), path));
        }
    }
    calling.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.2.cmp(&b.2)));
    let (mut logs, mut calls, mut bytes) = (Vec::new(), 0, 0);
    for (_, (more_calls, more_bytes), path) in calling {
        if bytes + more_bytes > bytes_max {
            continue;
        }
        (calls, bytes) = (calls + more_calls, bytes + more_bytes);
        if logs.len() >= files_min && calls > calls_max {
            break;
        }
        logs.push(path);
    }
    Ok(logs)
}
