//! What the user's own settings say already about what the page would have them set.

use std::collections::BTreeMap;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::cost::findings::search::Finding;
use crate::cost::page::Page;
use crate::cost::page::words::Standing;
use crate::report::sharing::without_paths;
use crate::settings::claude::layers::Layers;
use crate::settings::claude::levers::{Levers, Scope};
use crate::shell::context::Context;

/// By finding, of those about whose setting the user's file says something. In what is shared no place is named.
///
/// # Errors
/// If a file of settings or a data file cannot be read.
pub fn of(page: &Page, data: &Data, is_shared: bool, context: &Context<'_>) -> Result<BTreeMap<String, Standing>> {
    let levers = Levers::load(data)?;
    let places = context.env.claude_places();
    let Some(path) = places.file(Scope::User) else { return Ok(BTreeMap::new()) };
    let layers = Layers::load(&places, Scope::User, &path)?;
    let mut standing = BTreeMap::new();
    for finding in &page.findings {
        if let Some(mut stands) = one(finding, &layers, &levers)? {
            if let (true, Standing::Off(why)) = (is_shared, &mut stands) {
                *why = without_paths(why).into_owned();
            }
            standing.insert(finding.id.clone(), stands);
        }
    }
    Ok(standing)
}

fn one(finding: &Finding, layers: &Layers, levers: &Levers) -> Result<Option<Standing>> {
    let mut same = !finding.sets.is_empty();
    let mut words: Vec<String> = Vec::new();
    for set in &finding.sets {
        let Some(lever) = levers.named(&set.lever) else { return Ok(None) };
        let Some(key) = lever.key(None) else { return Ok(None) };
        if let Some(why) = layers.overridden(lever, &key, levers)? {
            return Ok(Some(Standing::Off(format!("{} is {why}", set.lever))));
        }
        let value = layers.value(&key)?;
        same &= value.as_ref() == Some(&set.value);
        words.extend(value.map(|value| format!("{} is {value}", set.lever)));
    }
    let told = format!("in your settings {}", words.join(" and "));
    Ok((!words.is_empty()).then_some(if same { Standing::Same(told) } else { Standing::Other(told) }))
}
