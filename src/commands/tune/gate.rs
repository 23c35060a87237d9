//! Every proposal is replayed before it is written, alone and together with the others: what loses tokens is held, and if
//! the whole loses, nothing is written.

use std::collections::BTreeMap;

use toml_edit::Value;

use crate::base::bootstrap::{TAIL, sum_interval};
use crate::base::error::{Error, Result};
use crate::base::key_path::KeyPath;
use crate::commands::responses::Responses;
use crate::replay::shares::{BySession, shares, total};
use crate::report::numbers::thousands;
use crate::rules::proposal::proposed;
use crate::rules::statistics;
use crate::settings::finding::{Effect, Finding, Verdict};
use crate::settings::{Settings, SettingsFile, what_if};

/// A loss below this is rounding: half a token.
const TOKENS_MIN: f64 = 0.5;

/// What all proposals together would do.
pub struct Gate {
    /// Tokens of all responses as they are.
    pub baseline: f64,
    /// Tokens saved of them under the configuration as it is, if everything could be changed: a bound.
    pub saved_before: f64,
    /// Tokens saved under the proposed one, likewise.
    pub saved_after: f64,
    /// What the pipeline saves where it runs, in an MCP host: now and with what is proposed.
    pub host: [f64; 2],
    /// How that place is called, and the bound.
    pub names: [String; 2],
}

impl Gate {
    /// Replays what is proposed; proposals that lose become holds, all others carry their share of the whole effect. What a rule says about
    /// one subject is one proposal, whatever number of keys it takes. What loses by itself is tried again beside what is
    /// made: else the next run would propose it, over the very same responses.
    ///
    /// # Errors
    /// If a proposed value does not fit the configuration.
    pub fn pass(
        file: &SettingsFile,
        now: &Settings,
        responses: &Responses,
        mut findings: Vec<Finding>,
    ) -> Result<(Self, Vec<Finding>)> {
        let groups = groups(&findings);
        let settings = |members: &[usize]| what_if(file, &changes(&findings, members));
        let reaches = crate::replay::reach::reaches(&responses.data)?;
        let (Some(host), Some(all)) = (reaches.first(), reaches.last()) else {
            return Err(Error::failed("there is nobody who could change what a model reads"));
        };
        let replay = |now: &Settings, cells: &[Settings]| {
            let [(present, effects), (in_host, host_effects)] =
                [all, host].map(|reach| responses.effects(reach, now, cells));
            let pairs = effects.into_iter().zip(host_effects).map(|(all, host)| Some([all?, host?]));
            (present.baseline, [present.saved, in_host.saved], pairs.collect::<Vec<Option<Pair>>>())
        };
        // All together go along: mostly nothing loses, and then that is the whole.
        let mut cells = groups.iter().map(|members| settings(members)).collect::<Result<Vec<_>>>()?;
        cells.push(settings(&groups.concat())?);
        let (baseline, saved, mut effects) = replay(now, &cells);
        let alone = effects.clone();
        let mut together = effects.pop().flatten();
        let (mut held, mut made): (Vec<usize>, Vec<usize>) =
            (0..groups.len()).partition(|&group| lost(&effects[group]).is_some());
        let with = |made: &[usize], more: &[usize]| {
            settings(&[made, more].concat().iter().flat_map(|&group| groups[group].clone()).collect::<Vec<_>>())
        };
        if !held.is_empty() {
            together = replay(now, &[with(&made, &[])?]).2.pop().flatten();
        }
        let mut has_grown = !made.is_empty();
        while has_grown {
            let cells = held.iter().map(|&group| with(&made, &[group])).collect::<Result<Vec<_>>>()?;
            let mut beside = replay(now, &cells).2;
            for (&group, effect) in held.iter().zip(&beside) {
                effects[group] = Some(less(effect, &together));
            }
            let best = (0..held.len()).max_by(|&a, &b| least(&effects[held[a]]).total_cmp(&least(&effects[held[b]])));
            let best = best.filter(|&at| lost(&effects[held[at]]).is_none());
            has_grown = best.is_some();
            if let Some(at) = best {
                together = beside.swap_remove(at);
                made.push(held.remove(at));
            }
        }
        // What each does as the last one, against all together.
        let without =
            |&group: &usize| with(&made.iter().copied().filter(|&other| other != group).collect::<Vec<_>>(), &[]);
        let cells = made.iter().map(without).collect::<Result<Vec<_>>>()?;
        let last = replay(&with(&made, &[])?, &cells).2;
        let firsts: Vec<Pair> = made.iter().map(|&group| alone[group].clone().unwrap_or_default()).collect();
        let lasts: Vec<Pair> = last.into_iter().map(|pair| pair.unwrap_or_default().map(negated)).collect();
        let whole = together.unwrap_or_default();
        for (&group, share) in made.iter().zip(shared(&firsts, &lasts, &whole)) {
            effects[group] = alone[group].is_some().then_some(share);
        }
        let resampling = statistics::numbers(&responses.data)?.backtest.resampling;
        let sessions = responses.session_count();
        for (group, members) in groups.iter().enumerate() {
            let lost = lost(&effects[group]);
            let effect = effects[group].as_ref().map(|effect| {
                let values: Vec<f64> = effect[0].values().copied().collect();
                Effect {
                    tokens: total(&effect[0]),
                    host: total(&effect[1]),
                    baseline,
                    tokens_95: sum_interval(&values, sessions, &resampling, TAIL),
                    alone: alone[group].as_ref().map_or(0.0, |alone| total(&alone[0])),
                }
            });
            for &member in members {
                let finding = &mut findings[member];
                finding.effect = effect;
                if let Some(tokens) = lost.filter(|_| held.contains(&group)) {
                    finding.verdict = Verdict::Hold(losing(tokens, finding));
                } else if effect.as_ref().is_some_and(does_nothing) {
                    finding.verdict =
                        Verdict::Hold("no effect: not a token more or less on these responses".to_owned());
                }
            }
        }
        let [more, more_in_host] = whole.each_ref().map(total);
        let gate = Self {
            baseline,
            saved_before: saved[0],
            saved_after: saved[0] + more,
            host: [saved[1], saved[1] + more_in_host],
            names: [host.name.clone(), all.name.clone()],
        };
        Ok((gate, findings))
    }

    /// Whether the whole loses.
    pub fn fails(&self) -> bool {
        self.saved_after < self.saved_before - TOKENS_MIN || self.host[1] < self.host[0] - TOKENS_MIN
    }

    /// Share of all tokens that an MCP host saves now, and with the proposals.
    pub fn host_shares(&self) -> Option<(f64, f64)> {
        (self.baseline > 0.0).then(|| (self.host[0] / self.baseline, self.host[1] / self.baseline))
    }

    /// Share of all tokens that is saved now, and with the proposals.
    pub fn shares(&self) -> Option<(f64, f64)> {
        (self.baseline > 0.0).then(|| (self.saved_before / self.baseline, self.saved_after / self.baseline))
    }
}

/// Tokens that a change saves, by session: if everything could be changed, and in the host.
type Pair = [BySession; 2];

/// Whether a change makes no difference, neither alone nor beside the others.
fn does_nothing(effect: &Effect) -> bool {
    [effect.tokens, effect.host, effect.alone].iter().all(|tokens| tokens.abs() < TOKENS_MIN)
}

/// Tokens that a change loses, in the one place or in the other.
fn lost(effect: &Option<Pair>) -> Option<f64> {
    Some(least(effect)).filter(|least| *least < -TOKENS_MIN)
}

/// What a change saves in the place where it saves less; no limit where nothing can be said.
fn least(effect: &Option<Pair>) -> f64 {
    effect.iter().flatten().map(total).fold(f64::INFINITY, f64::min)
}

/// What is saved beyond something else.
fn less(effect: &Option<Pair>, other: &Option<Pair>) -> Pair {
    let (mut effect, other) = (effect.clone().unwrap_or_default(), other.clone().unwrap_or_default());
    for (effect, other) in effect.iter_mut().zip(other) {
        other.into_iter().for_each(|(session, tokens)| *effect.entry(session).or_default() -= tokens);
    }
    effect
}

fn negated(effect: BySession) -> BySession {
    effect.into_iter().map(|(session, tokens)| (session, -tokens)).collect()
}

/// The share of each proposal in what all do together, in both places.
fn shared(alone: &[Pair], last: &[Pair], whole: &Pair) -> Vec<Pair> {
    let of_place = |place: usize| {
        let pick = |pairs: &[Pair]| pairs.iter().map(|pair| pair[place].clone()).collect::<Vec<BySession>>();
        shares(&pick(alone), &pick(last), &whole[place])
    };
    of_place(0).into_iter().zip(of_place(1)).map(|(all, host)| [all, host]).collect()
}

/// Proposals of one rule about one subject, by index; what was measured and what is shipped stand apart.
fn groups(findings: &[Finding]) -> Vec<Vec<usize>> {
    let mut groups: BTreeMap<(&str, &str, &str), Vec<usize>> = BTreeMap::new();
    for (index, finding) in findings.iter().enumerate().filter(|(_, finding)| proposed(finding).is_some()) {
        groups.entry((finding.rule, &finding.subject, finding.evidence.basis.key())).or_default().push(index);
    }
    groups.into_values().collect()
}

fn changes(findings: &[Finding], members: &[usize]) -> Vec<(KeyPath, Value)> {
    let deltas = members.iter().filter_map(|&member| proposed(&findings[member]));
    deltas.map(|delta| (delta.key.clone(), delta.to.clone())).collect()
}

fn losing(tokens: f64, finding: &Finding) -> String {
    let lost = thousands(tokens.abs().round() as u64);
    let key = proposed(finding).map_or_else(String::new, |delta| format!("`{}` = {}", delta.key, delta.to));
    format!("{key} would save {lost} tokens less on these responses")
}
