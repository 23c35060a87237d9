//! What recorded telemetry shows between two changes, for `devboy tune history`.

use crate::base::error::Result;
use crate::commands::config::{config_path, load_config};
use crate::commands::responses::{Responses, Wanted};
use crate::commands::tune::history;
use crate::commands::tune::history::Realised;
use crate::frames::fingerprint::LayerTokens;
use crate::logs::trace::Millis;
use crate::settings::{Effective, SettingsFile};
use crate::shell::arguments::Exit;
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry::log::EventLog;

/// Prints the history with what was recorded between its entries.
pub fn history(args: &history::Args, context: &mut Context<'_>) -> Result<Exit> {
    let path = config_path(args.output.as_ref(), context)?;
    // The journal can be read whatever has become of the configuration.
    let file = load_config(&path, false).unwrap_or_else(|_| SettingsFile::missing(&path));
    let settings = Effective::resolve(&file)?.settings;
    let wanted =
        Wanted { input: &args.input, window: window::ALL, settings: &settings, output: &args.report, planner: None };
    let responses = Responses::from_telemetry(&wanted, context)?;
    history::run(args, &|from, to| realised(&responses.log, from, to), context)
}

/// Tokens of the events from one time up to another, itself outside.
fn realised(log: &EventLog, from: Millis, to: Millis) -> Option<Realised> {
    let mut sum = Realised { tokens: LayerTokens::default(), events: 0 };
    for event in log.events.iter().filter(|event| (from..to).contains(&event.ts)) {
        let layer = event.layer as usize;
        sum.events += 1;
        sum.tokens.baseline[layer] += event.weight * f64::from(event.baseline);
        sum.tokens.sent[layer] += event.weight * f64::from(event.sent);
    }
    (sum.events > 0).then_some(sum)
}
