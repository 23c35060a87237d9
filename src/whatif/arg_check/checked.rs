//! `arg-check`: the arguments of every logged call against the schema of its tool. The lake holds no arguments, so the
//! logs are read for it.

use serde_json::json;

use crate::base::error::Result;
use crate::base::id::{Id, IdSet};
use crate::frames::input::{Input, missing};
use crate::logs::read::Failure;
use crate::logs::{call_texts, window};
use crate::whatif::arg_check::outcome::{
    ArgCheck, PROVIDER_TITLE, Truth, classes, errors, formulas, headline, provider, summary,
};
use crate::whatif::arg_check::{Checker, Params, Rules, tally};
use crate::whatif::catalog::DefinitionSource;
use crate::whatif::chosen::{Policy, PolicyConfigs, PolicyEntry};
use crate::whatif::report::{Fidelity, PolicyReport};
use crate::whatif::simulation::{PolicyShare, Ready, Simulation};
use crate::whatif::tools::Tools;
use crate::whatif::workload::Workload;

/// What the policy says of itself.
pub static POLICY: PolicyEntry = PolicyEntry {
    sheet: "policies/arg_check.toml",
    check: |sheet| sheet.params::<Params>().map(drop),
    read_only_with: &[],
    without_logs: Some("it has no arguments"),
    ready,
};

/// It changes no context and has a report of its own.
fn ready<'s>(_scene: &'s Simulation<'_>, _sheets: &PolicyConfigs) -> Result<Ready<'s>> {
    Ok(Ready { stage: None, conclude: Box::new(|_| PolicyShare::default()) })
}

/// Arguments are in no timeline and in no lake, so they take a second reading.
const PIPED: &str = "standard input can be read only once, so its arguments are not checked: name a file or a folder";

/// As a row of `all` it is left out, unless the user brings schemas to check against: the logs would be read for it alone.
pub fn put_off() -> PolicyReport {
    let why =
        "the logs are read for it only if it is asked for by name (devboy what-if arg-check), or with --tool-catalog";
    PolicyReport {
        policy: Policy::ArgCheck.into_str().into(),
        not_estimated: Some(why.into()),
        ..PolicyReport::default()
    }
}

/// Checks every call.
///
/// # Errors
/// If a parameter makes no sense, or a schema is none.
pub fn report(input: &Input, workload: &Workload, configs: &PolicyConfigs, tools: &Tools) -> Result<PolicyReport> {
    let sheet = configs.sheet(Policy::ArgCheck);
    let params: Params = sheet.params()?;
    let rules: Rules = sheet.read()?;
    // What the user brings or the logs quote comes first; built-in tools are known besides.
    let catalog = match &tools.catalog {
        Some((catalog, _)) => catalog.clone().completed(&tools.shipped),
        None => tools.shipped.clone(),
    };
    let checker = Checker::new(&catalog, &params, &rules)?;
    let (found, failures) = checked(input, workload, &rules, &checker);
    let mut details = json!({ "arg_check": found });
    let mut tables =
        vec![("calls by class".to_owned(), classes(&found)), ("where arguments do not fit".to_owned(), errors(&found))];
    if let Some(sizes) = tools.provider_sizes() {
        tables.push((PROVIDER_TITLE.to_owned(), provider(&sizes)));
        details["provider"] = json!(sizes);
    }
    tables.retain(|(_, table)| !table.is_empty());
    let notes = tools.provider_note().into_iter().chain(failures.iter().map(missing)).chain(unchecked(input, &checker));
    let nothing_else = input.listing.stdin && found.calls() == 0;
    let not_estimated =
        if nothing_else { PIPED } else { "it changes no context; it says which calls would not have run" };
    Ok(PolicyReport {
        policy: Policy::ArgCheck.into_str().into(),
        params: json!({ "arg-check": sheet.settings()? }),
        details: std::iter::once(("arg-check".to_owned(), details)).collect(),
        headline: (found.calls() > 0).then(|| headline(&found)),
        summary: summary(&found),
        formulas: formulas(&found),
        bias: workload.bias.of(&[Policy::ArgCheck.into_str()], false),
        tables,
        notes: notes.collect(),
        fidelity: Fidelity {
            tool_catalog_source: match &tools.catalog {
                Some((_, DefinitionSource::Given)) => "given, shipped",
                Some(_) => "logged, shipped",
                None => "shipped",
            }
            .into(),
            ..Fidelity::default()
        },
        not_estimated: Some(not_estimated.to_owned()),
        ..PolicyReport::default()
    })
}

/// Every call of the window by what its arguments are to the schema and what came back, and the files that could not be read.
fn checked(input: &Input, workload: &Workload, rules: &Rules, checker: &Checker) -> (ArgCheck, Vec<Failure>) {
    let check = |tool: &str, version: Option<&str>, input: &[u8]| checker.check(tool, version, input);
    let (calls, failures) = call_texts::read_all(&input.jobs(), rules.truth.chars, &input.pool, &check);
    let mut found = ArgCheck::default();
    // A window is one of requests: calls count with the request that made them.
    let within: Option<IdSet<Id>> =
        (input.window != window::ALL).then(|| workload.timeline.counted_calls().map(|(_, call)| call.id).collect());
    for (id, (tool, verdict)) in calls.asked.iter().filter(|(id, _)| within.as_ref().is_none_or(|set| set.contains(id)))
    {
        let answer = calls.answered.get(id);
        let truth = answer.map_or(Truth::Unanswered, |(is_error, text)| rules.truth.of(Some((*is_error, text))));
        tally(&mut found, tool, verdict, truth);
    }
    (found, failures)
}

/// What could not be checked, in sentences.
fn unchecked(input: &Input, checker: &Checker) -> Vec<String> {
    let mut notes = Vec::new();
    let unmatched: Vec<&str> = checker.unmatched().collect();
    if !unmatched.is_empty() {
        let tools = unmatched.join(", ");
        notes.push(format!("patterns that look ahead or behind are not checked, and whatever they meet fits: {tools}"));
    }
    let unread = input.sources.iter().filter(|source| source.path.is_none() && !source.is_sidecar()).count();
    if unread > 0 {
        notes.push(format!("{unread} deleted logs live on in the lake only, which holds no arguments: not checked"));
    }
    if input.listing.stdin {
        notes.push(PIPED.to_owned());
    }
    notes
}
