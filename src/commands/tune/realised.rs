//! What recorded telemetry shows between two changes, for `devboy tune history`.

use std::path::Path;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::id::Id;
use crate::commands::config::config_path;
use crate::commands::responses::{Responses, Wanted};
use crate::commands::tune::history;
use crate::commands::tune::history::ActualSavings;
use crate::frames::fingerprint::LayerTokens;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::Millis;
use crate::settings::claude::file::name_of;
use crate::settings::claude::levers::SettingsScope;
use crate::settings::claude::reversal::journal_of_all;
use crate::settings::entries::JournalEntry;
use crate::settings::formats::load_config;
use crate::settings::{Effective, SettingsFile};
use crate::shell::arguments::{Exit, InputArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry::log::EventLog;
use crate::whatif::client::realised as bills;
use crate::whatif::client::realised::{HistoryRules, SettingChange};
use crate::whatif::sim::money::Prices;

/// Prints the history with what was recorded between its entries.
pub fn history(args: &history::Args, context: &mut Context<'_>) -> Result<Exit> {
    let path = config_path(args.output.as_ref(), context)?;
    // The journal can be read whatever has become of the configuration.
    let file = load_config(&path, false).unwrap_or_else(|_| SettingsFile::missing(&path));
    let settings = Effective::resolve(&file)?.settings;
    let wanted =
        Wanted { input: &args.input, window: window::ALL, settings: &settings, output: &args.report, planner: None };
    let responses = Responses::from_telemetry(&wanted, context)?;
    if !args.input.allow_empty {
        responses.expect_places()?;
    }
    let rules = HistoryRules::load(&Data::new(args.input.rules_dir.as_deref())?)?;
    let billed = billed(&path, args, context)?;
    let user = context.env.claude_places().file(SettingsScope::User).map(|path| name_of(&path));
    let came = |entry: &JournalEntry, until: Millis| {
        let Some((timeline, prices)) = &billed else { return Vec::new() };
        let project = project_of(entry, user.as_deref());
        let told = entry.changes.iter().filter_map(|change| Some((change.key.clone(), change.forecast.as_ref()?)));
        told.map(|(key, forecast)| {
            let change = SettingChange { at: entry.at_ms, until, project, forecast };
            (key, bills::realised(timeline, prices, &change, &rules))
        })
        .collect()
    };
    history::run(args, &|from, to| realised(&responses.log, from, to), &came, context)
}

/// What the logs say of bills, if a change of Claude Code's settings is to be held against them and there are any.
fn billed(config: &Path, args: &history::Args, context: &mut Context<'_>) -> Result<Option<(Timeline, Prices)>> {
    let has_forecast = |entry: &JournalEntry| entry.changes.iter().any(|change| change.forecast.is_some());
    if !journal_of_all(config)?.entries.iter().any(has_forecast) {
        return Ok(None);
    }
    let asked = InputArgs { input_dir: args.log_dir.clone(), allow_empty: true, ..args.input.clone() };
    match Input::read(&asked, window::ALL, (0, Some(TimelineDetail::default())), &args.report, context) {
        Ok(mut input) => {
            let prices = input.data.read("prices.toml", Prices::parse)?;
            Ok(Some((input.timeline(TimelineDetail::default())?, prices)))
        }
        Err(cause) => {
            writeln!(context.err, "# note: no logs to hold changes of settings against: {}", cause.message)?;
            Ok(None)
        }
    }
}

/// The project whose settings an entry changed; none for those of all projects.
fn project_of(entry: &JournalEntry, user: Option<&str>) -> Option<Id> {
    if user == Some(entry.config.as_str()) {
        return None;
    }
    let project = Path::new(&entry.config).parent().filter(|dir| dir.ends_with(".claude"))?.parent()?;
    Some(Id::pseudonym(project.as_os_str().as_encoded_bytes()))
}

/// Tokens of the events from one time up to another, itself outside.
fn realised(log: &EventLog, from: Millis, to: Millis) -> Option<ActualSavings> {
    let mut sum = ActualSavings { tokens: LayerTokens::default(), events: 0 };
    for event in log.events.iter().filter(|event| (from..to).contains(&event.ts)) {
        let layer = event.layer as usize;
        sum.events += 1;
        sum.tokens.baseline[layer] += event.weight * f64::from(event.baseline);
        sum.tokens.sent[layer] += event.weight * f64::from(event.sent);
    }
    (sum.events > 0).then_some(sum)
}
