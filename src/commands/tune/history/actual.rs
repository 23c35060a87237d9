//! What came of the changes that `devboy tune history` lists: in the recorded telemetry, and in the bills of the logs.

use std::path::Path;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::commands::responses::Wanted;
use crate::commands::tune::history::{self, ActualSavings};
use crate::frames::fingerprint::LayerTokens;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::trace::Millis;
use crate::rules::responses::Responses;
use crate::settings::entries::{JournalEntry, SettingsReach};
use crate::settings::formats::load_config;
use crate::settings::{Effective, SettingsFile};
use crate::shell::arguments::InputArgs;
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry::log::EventLog;
use crate::whatif::client::actual::{ActualChange, HistoryRules, JointChange, ReachedProjects, SettingChange, actual};
use crate::whatif::sim::money::Prices;

/// All that was recorded.
pub fn recorded(path: &Path, args: &history::Args, context: &mut Context<'_>) -> Result<EventLog> {
    // The journal can be read whatever has become of the configuration.
    let file = load_config(path, false).unwrap_or_else(|_| SettingsFile::missing(path));
    let settings = Effective::resolve(&file)?.settings;
    let wanted =
        Wanted { input: &args.input, window: window::ALL, settings: &settings, output: &args.report, planner: None };
    let responses = Responses::from_telemetry(&wanted, context)?;
    if !args.input.allow_empty {
        responses.expect_places()?;
    }
    Ok(responses.log)
}

/// Tokens of the events from one time up to another, itself outside.
pub fn saved(log: &EventLog, from: Millis, to: Millis) -> Option<ActualSavings> {
    let mut sum = ActualSavings { tokens: LayerTokens::default(), events: 0 };
    for event in log.events.iter().filter(|event| (from..to).contains(&event.ts)) {
        let layer = event.layer as usize;
        sum.events += 1;
        sum.tokens.baseline[layer] += event.weight * f64::from(event.baseline);
        sum.tokens.sent[layer] += event.weight * f64::from(event.sent);
    }
    (sum.events > 0).then_some(sum)
}

/// What the logs say of changes of Claude Code's settings, which stand in the order in which they were written: of each what was
/// billed, if something was expected of it and there are logs.
pub fn billed(
    changes: &[(&JournalEntry, &JointChange<'_>)],
    args: &history::Args,
    context: &mut Context<'_>,
) -> Result<Vec<Option<ActualChange>>> {
    // A sheet that does not fit is told of, whether or not there is a change to be judged.
    let rules: HistoryRules = Data::new(args.input.rules_dir.as_deref())?.parsed("history.toml")?;
    let nothing = || changes.iter().map(|_| None).collect();
    if changes.iter().all(|(_, change)| change.forecast.is_none()) {
        return Ok(nothing());
    }
    let asked = InputArgs { input_dir: args.log_dir.clone(), ..args.input.clone() };
    let read = Input::read(&asked, window::ALL, (0, Some(TimelineDetail::default())), &args.report, context);
    let mut input = match read.and_then(|input| input.expect_records(&asked).map(|()| input)) {
        Ok(input) => input,
        // Logs that were named have to be there.
        Err(cause) if !args.log_dir.is_empty() => {
            return Err(Error::failed(cause.message).hint("--log-dir names the folder of the logs of Claude Code"));
        }
        Err(cause) => {
            let why = cause.message;
            writeln!(
                context.err,
                "# note: no logs to hold changes of settings against: {why}; --log-dir names their folder"
            )?;
            return Ok(nothing());
        }
    };
    let prices = input.data.read("prices.toml", Prices::parse)?;
    let timeline = input.last_timeline(TimelineDetail::default())?;
    let places = context.env.claude_places();
    let of_change = |(entry, change): &(&JournalEntry, &JointChange<'_>)| SettingChange {
        at: entry.at_ms,
        projects: match SettingsReach::of_entry(entry, &places).projects(&timeline, &input) {
            Some(reached) => ReachedProjects::Only(reached),
            None => ReachedProjects::AllBut(change.without.clone()),
        },
        part: change.part,
    };
    let all: Vec<SettingChange> = changes.iter().map(of_change).collect();
    let came = |(place, (_, change)): (usize, &(&JournalEntry, &JointChange<'_>))| {
        let forecast = change.forecast.as_ref()?;
        Some(actual(&timeline, &prices, (&all, place), forecast, &rules))
    };
    Ok(changes.iter().enumerate().map(came).collect())
}
