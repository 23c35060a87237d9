//! Which values of which keys are tried.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml_edit::Value;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::replay::{Scenario, Tape};
use crate::rules::search::{KeyChange, SearchThresholds};
use crate::settings::annotations::is_plain_name;

/// What stands in a key for each of the endpoints.
const ENDPOINT: &str = "<endpoint>";

/// A key and the values that are tried.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchKey {
    key: String,
    values: Values,
}

/// Values of one kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "values have to be a list of one kind: yes or no, numbers, or words")]
enum Values {
    Switches(Vec<bool>),
    Counts(Vec<i64>),
    Shares(Vec<f64>),
    Words(Vec<String>),
}

impl Values {
    fn values(&self) -> Vec<Value> {
        match self {
            Self::Switches(all) => all.iter().map(|&one| Value::from(one)).collect(),
            Self::Counts(all) => all.iter().map(|&one| Value::from(one)).collect(),
            Self::Shares(all) => all.iter().map(|&one| Value::from(one)).collect(),
            Self::Words(all) => all.iter().map(|one| Value::from(one.as_str())).collect(),
        }
    }
}

/// Every single change, in the order of the sheet.
///
/// # Errors
/// If a key of the sheet is none.
pub fn candidates(sheet: &SearchThresholds, tape: &Tape, now: &Scenario) -> Result<Vec<KeyChange>> {
    let endpoints = endpoints(sheet, tape, now);
    let mut candidates = Vec::new();
    for knob in &sheet.knob {
        let key: KeyPath = knob.key.parse()?;
        let keys = if key.0.iter().any(|part| part == ENDPOINT) {
            endpoints.iter().map(|name| named(&key, name)).collect()
        } else {
            vec![key]
        };
        candidates
            .extend(keys.iter().flat_map(|key| knob.values.values().into_iter().map(|value| (key.clone(), value))));
    }
    Ok(candidates)
}

fn named(key: &KeyPath, endpoint: &str) -> KeyPath {
    KeyPath(key.0.iter().map(|part| if part == ENDPOINT { endpoint.to_owned() } else { part.clone() }).collect())
}

/// The endpoints with the most tokens among those that may be changed and that a configuration can name.
fn endpoints(sheet: &SearchThresholds, tape: &Tape, now: &Scenario) -> Vec<String> {
    let mut tokens: BTreeMap<String, u64> = BTreeMap::new();
    for response in tape.responses.iter().filter(|response| now.reaches(response)) {
        let counting = &now.session(response).counting;
        *tokens.entry(tape.endpoints[response.endpoint as usize].name()).or_default() +=
            counting.tokens(&response.body_at_hand.raw);
    }
    let mut endpoints: Vec<(u64, String)> =
        tokens.into_iter().filter(|(name, _)| is_plain_name(name)).map(|(name, tokens)| (tokens, name)).collect();
    endpoints.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    endpoints.truncate(sheet.endpoints_max);
    endpoints.into_iter().map(|(_, name)| name).collect()
}
