//! What there is to say about the input of recorded responses: where it was looked for, what was malformed, and the same as JSON.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::base::damage::Reason;
use crate::base::error::{Error, Result};
use crate::base::visible::Shown as _;
use crate::commands::input::fields;
use crate::mine::quality::{self, Quality};
use crate::report::numbers::{bytes, counted, days, thousands};
use crate::rules::responses::{ResponseOrigin, Responses};
use crate::shell::arguments::OutputArgs;
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry;

impl Responses {
    /// What the figures rest on.
    pub fn basis(&self) -> &'static str {
        match self.origin {
            ResponseOrigin::Telemetry(_) => "as the live pipeline recorded them",
            ResponseOrigin::Logs(_) => "replayed from the logs, published formats",
        }
    }

    /// From when to when they are.
    pub fn span_words(&self) -> Option<String> {
        self.observed.profile.span_ms.map(|(first, last)| days(first, last))
    }

    /// Places that were looked at, in words.
    pub fn places(&self) -> Vec<String> {
        match &self.origin {
            ResponseOrigin::Telemetry(telemetry) => {
                let found = telemetry.places.iter().filter(|place| place.found);
                found.map(|place| format!("{} ({})", place.path.shown(), place.origin)).collect()
            }
            ResponseOrigin::Logs(origin) => {
                let roots = origin.roots.iter();
                roots.map(|root| format!("{} ({})", root.path.shown(), root.origin)).collect()
            }
        }
    }

    /// The error that says where was looked.
    pub fn nothing_found(&mut self) -> Error {
        let damaged = self.damage();
        let telemetry = match &mut self.origin {
            ResponseOrigin::Logs(origin) => return origin.nothing_in_window("tool results that are no errors"),
            ResponseOrigin::Telemetry(telemetry) => telemetry,
        };
        let looked = telemetry.places.iter().map(|place| {
            let state = if place.found { "holds no event" } else { "does not exist" };
            format!("looked at {} ({}): {state}", place.path.shown(), place.origin)
        });
        let mut hints: Vec<String> = looked.collect();
        // What could not be opened may be where the events are.
        hints.extend(telemetry.notes.iter().cloned());
        let outside: u64 = telemetry.files.iter().map(|file| file.counts.outside_window).sum();
        let skipped: u64 = telemetry.files.iter().map(|file| file.counts.skipped).sum();
        if telemetry.files_outside_window + outside > 0 {
            let files = counted(telemetry.files_outside_window, "file");
            let asked = window::words(&self.window);
            hints.push(format!("{files} and {} outside the window {asked}", counted(outside, "event")));
            let spans = || telemetry.files.iter().filter_map(|file| file.counts.outside_span_ms);
            let span = spans().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
            hints.extend(span.map(|span| window::there("these events", Some(span))));
            hints.push(window::WIDEN.to_owned());
        }
        if skipped > 0 {
            hints.push(format!("{} could not be read as an event", counted(skipped, "line")));
        }
        hints.extend(damaged.iter().map(|(reason, row)| {
            format!("malformed: {} {}, first {}", thousands(row.count), reason.into_str(), row.first)
        }));
        hints.push(
            "the live pipeline records with `telemetry.enabled = true`; `devboy tune analyze --from-claude-logs` and \
             `devboy mine fingerprints` read the logs instead"
                .to_owned(),
        );
        Error::failed("no telemetry found").hint(hints.join("\n"))
    }

    /// Checks that the places of telemetry that the user named are there.
    pub fn expect_places(&self) -> Result<()> {
        let ResponseOrigin::Telemetry(telemetry) = &self.origin else { return Ok(()) };
        let missing = telemetry.places.iter().find(|place| place.origin == "--input-dir" && !place.found);
        missing.map_or(Ok(()), |place| {
            let looked = format!("looked at {} (--input-dir): does not exist", place.path.shown());
            Err(Error::failed("no telemetry found").hint(looked))
        })
    }

    /// Tells the user what is worth knowing about the input.
    pub fn tell(&self, output: &OutputArgs, context: &mut Context<'_>) -> Result<()> {
        let telemetry = match &self.origin {
            ResponseOrigin::Logs(origin) => return origin.tell(output, context),
            ResponseOrigin::Telemetry(telemetry) => telemetry,
        };
        if output.quiet {
            return Ok(());
        }
        let err = &mut context.err;
        for note in &telemetry.notes {
            writeln!(err, "# note: {note}")?;
        }
        if telemetry.copies > 0 {
            writeln!(err, "# note: {} left out: another place holds the same", counted(telemetry.copies, "file"))?;
        }
        if telemetry.copied_events > 0 {
            let events = counted(telemetry.copied_events, "event");
            writeln!(err, "# note: {events} merged with one of the same id, time and figures: copies")?;
        }
        let mut damaged = self.damage();
        damaged.retain(|reason, _| !reason.is_way_of_writing());
        if !damaged.is_empty() {
            writeln!(err, "# malformed lines: {}", quality::in_a_line(&damaged))?;
            if output.verbose {
                for (reason, row) in &damaged {
                    writeln!(err, "#   first {}: {}", reason.into_str(), row.first)?;
                }
            }
        }
        if output.verbose {
            for file in &telemetry.files {
                let events = counted(file.counts.events, "event");
                writeln!(err, "# {}: {}, {events}", file.path.shown(), bytes(file.bytes))?;
            }
        }
        Ok(())
    }

    fn damage(&self) -> BTreeMap<Reason, Quality> {
        match &self.origin {
            ResponseOrigin::Logs(origin) => quality::of(&origin.sources),
            ResponseOrigin::Telemetry(telemetry) => {
                let files = telemetry.files.iter().map(|file| (file.path.shown(), &file.counts.damage));
                quality::of_files(files)
            }
        }
    }

    /// The fields of a JSON document about these responses.
    pub fn fields(&self, own: Value) -> Value {
        fields(window::json(&self.window), self.json(), &self.damage(), own)
    }

    fn json(&self) -> Value {
        match &self.origin {
            ResponseOrigin::Logs(origin) => origin.json(),
            ResponseOrigin::Telemetry(telemetry) => {
                let sum = |of: fn(&telemetry::ParseCounts) -> u64| {
                    telemetry.files.iter().map(|file| of(&file.counts)).sum::<u64>()
                };
                json!({
                    "roots": telemetry.places.iter().map(|place| json!({
                        "path": place.path.shown(), "origin": place.origin, "found": place.found,
                    })).collect::<Vec<_>>(),
                    "files": telemetry.files.len(),
                    "bytes": telemetry.files.iter().map(|file| file.bytes).sum::<u64>(),
                    "lines": sum(|counts| counts.lines),
                    "events": sum(|counts| counts.events),
                    "summaries": sum(|counts| counts.summaries),
                    "skipped": sum(|counts| counts.skipped),
                    "events_outside_window": sum(|counts| counts.outside_window),
                    "files_outside_window": telemetry.files_outside_window,
                    "copies": telemetry.copies,
                    "copied_events": telemetry.copied_events,
                    "notes": telemetry.notes,
                })
            }
        }
    }
}
