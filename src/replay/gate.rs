//! The gate for continuous integration: savings compared with a small file that is kept in a repository.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::base::error::{Error, Result};
use crate::base::pseudonyms::Pseudonyms;
use crate::base::visible::{Shown as _, visible};
use crate::replay::report::{ReplayArm, ReplayReport};
use crate::report::numbers::signed;
use crate::report::sharing::told_place;
use crate::report::table::{TableBuilder, TableFormat};
use crate::settings::write_output;

/// Version of the baseline file.
const SCHEMA_VERSION: u32 = 1;
/// Endpoints below this share of all baseline tokens are too small to gate a build.
const ENDPOINT_SHARE_MIN: f64 = 0.01;

/// What is said where the tokens are not those of the baseline.
const OTHER_TEXT: &str = "the logs are not those of the baseline, or their tokens were counted otherwise: shares are compared, \
                          and single endpoints do not fail the gate";

/// What to do about a baseline that cannot be used.
const RENEWED: &str = "--update-baseline writes it anew";
/// What to do about a file that was never one.
const OTHER_FILE: &str = "is this the right file? --update-baseline replaces a baseline and nothing else";

/// What is said where there was nothing to replay.
const NOTHING_REPLAYED: &str = "nothing was replayed: nothing is compared, and no baseline is written";

/// What a baseline file holds: no names of projects and servers, no text.
#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct Baseline {
    schema_version: u32,
    /// Whose pseudonyms endpoints carry ([`Pseudonyms::check`]); none where they carry the names of MCP servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pseudonyms: Option<String>,
    tokens: String,
    /// Who runs the pipeline.
    reach: String,
    arms: BTreeMap<String, ArmBaseline>,
}

#[derive(Serialize, Deserialize, Debug, PartialEq)]
struct ArmBaseline {
    baseline_tokens: u64,
    sent_tokens: u64,
    /// Endpoints with a noticeable share of the tokens.
    endpoints: BTreeMap<String, [u64; 2]>,
}

/// One figure before and now, in per cent of its own baseline.
#[derive(Serialize)]
struct GateLine {
    what: String,
    before_pct: f64,
    now_pct: f64,
    worse: bool,
}

/// What a replay is held against.
pub struct Bar<'a> {
    /// The baseline file.
    pub path: &'a Path,
    /// Percentage points that savings may lose.
    pub max_regression_pct: f64,
    /// Whether the file is written anew.
    pub is_renewed: bool,
    /// Whether it has the names of MCP servers.
    pub is_named: bool,
}

/// The outcome of holding a replay against its baseline.
pub struct ReplayGate {
    path: PathBuf,
    max_regression_pct: f64,
    /// Nothing to compare with: the file was written.
    written: bool,
    lines: Vec<GateLine>,
    notes: Vec<String>,
}

impl ReplayGate {
    /// Compares with the baseline file, or writes it if it is not there.
    pub fn of(asked: &Bar<'_>, report: &ReplayReport, names: &Pseudonyms) -> Result<Self> {
        let Bar { path, max_regression_pct, .. } = *asked;
        if !(0.0..=100.0).contains(&max_regression_pct) {
            return Err(Error::usage("--max-regression is a number of percentage points from 0 to 100"));
        }
        let mut gate =
            Self { path: path.to_owned(), max_regression_pct, written: false, lines: Vec::new(), notes: Vec::new() };
        let known = match crate::base::files::read_to_string(path) {
            Ok(text) if !asked.is_renewed => Some(Baseline::parse(path, &text)?),
            Ok(text) if !is_baseline(&text) => {
                return Err(Error::failed(format!("{} is not a baseline file, so it is not replaced", path.shown()))
                    .hint(OTHER_FILE));
            }
            Err(cause) if cause.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::unread(path, &cause));
            }
            _ => None,
        };
        let is_empty = report.arms.iter().all(|arm| arm.total.baseline() == 0);
        match known {
            _ if is_empty => gate.notes.push(NOTHING_REPLAYED.to_owned()),
            Some(known) => gate.compare(&known, report, names)?,
            None => {
                let now = Baseline::of(report, (!asked.is_named).then_some(names));
                let text = serde_json::to_string_pretty(&now).expect("a baseline prints") + "\n";
                write_output(path, text)?;
                gate.written = true;
            }
        }
        Ok(gate)
    }

    /// Both sides call endpoints by what the file calls them; people are told the names of this replay.
    fn compare(&mut self, before: &Baseline, report: &ReplayReport, names: &Pseudonyms) -> Result<()> {
        let hidden = before.pseudonyms.is_some().then_some(names);
        let now = Baseline::of(report, hidden);
        if before.pseudonyms != now.pseudonyms {
            self.notes.push(
                "MCP servers in the baseline are named by another secret, and are not compared one by one; \
                 DEVBOY_TEAM_SECRET gives all who run this gate the same"
                    .to_owned(),
            );
        }
        let groups = report.arms.iter().flat_map(|arm| &arm.endpoints);
        let shown: BTreeMap<String, &String> = groups.map(|group| (called(&group.name, hidden), &group.name)).collect();
        if before.tokens != now.tokens {
            self.notes.push(format!("tokens were counted by {}, now by {}", before.tokens, now.tokens));
        }
        if before.reach != now.reach {
            self.notes.push(format!("the baseline is about a {}, this replay about a {}", before.reach, now.reach));
        }
        for (name, before) in &before.arms {
            let Some(now) = now.arms.get(name) else {
                self.notes.push(format!("the baseline knows the arm {name}, this replay does not"));
                continue;
            };
            let is_same_text = before.baseline_tokens == now.baseline_tokens;
            if !is_same_text && !self.notes.iter().any(|note| note == OTHER_TEXT) {
                self.notes.push(OTHER_TEXT.to_owned());
            }
            let [whole, since] = [before, now].map(|arm| [arm.baseline_tokens, arm.sent_tokens]);
            self.line(name.clone(), whole, since, true);
            for (endpoint, then) in &before.endpoints {
                if let Some(since) = now.endpoints.get(endpoint) {
                    let what = format!("{name} {}", shown.get(endpoint).copied().unwrap_or(endpoint));
                    self.line(what, *then, *since, is_same_text);
                }
            }
        }
        if self.lines.is_empty() {
            return Err(nothing_to_compare(&self.path));
        }
        Ok(())
    }

    /// Of other text only the whole can get worse: what a single endpoint saves depends on what it answers.
    fn line(&mut self, what: String, before: [u64; 2], now: [u64; 2], gates: bool) {
        let pct = |[baseline, sent]: [u64; 2]| {
            if baseline == 0 { 0.0 } else { 100.0 * (1.0 - sent as f64 / baseline as f64) }
        };
        let (before_pct, now_pct) = (pct(before), pct(now));
        // A difference in the last bits of a division is none.
        let worse = gates && before_pct - now_pct > self.max_regression_pct + 1e-9;
        self.lines.push(GateLine { what, before_pct, now_pct, worse });
    }

    fn worse(&self) -> impl Iterator<Item = &GateLine> {
        self.lines.iter().filter(|line| line.worse)
    }

    /// Fields of the JSON report.
    pub fn json(&self) -> Value {
        json!({
            "baseline": self.path.shown(),
            "written": self.written,
            "max_regression_pct": self.max_regression_pct,
            // Of nothing replayed nobody knows.
            "passed": (self.written || !self.lines.is_empty()).then(|| self.worse().count() == 0),
            "notes": self.notes,
            "lines": self.lines,
        })
    }

    /// Writes the comparison for people.
    pub fn write(
        &self,
        out: &mut dyn Write,
        (format, is_shared): (TableFormat, bool),
        width: Option<u16>,
    ) -> Result<()> {
        let path = told_place(&self.path, is_shared);
        if self.written {
            writeln!(out, "{}\n", format.sentence(&format!("baseline written: {path}")))?;
            return Ok(());
        }
        let verdict = match self.worse().count() {
            _ if self.lines.is_empty() => "open",
            0 => "passed",
            _ => "failed",
        };
        let points = self.max_regression_pct;
        let outcome = format!("gate {verdict}: savings may fall by {points} points against {path} (--max-regression)");
        writeln!(out, "{}\n", format.sentence(&outcome))?;
        for note in &self.notes {
            writeln!(out, "note: {}\n", format.sentence(note))?;
        }
        let shown = self.lines.iter().filter(|line| line.worse || !line.what.contains(' '));
        let table = TableBuilder::of(shown)
            .text("combined savings", |line| line.what.clone())
            .number("before", |line| format!("{:.2} %", line.before_pct))
            .number("now", |line| format!("{:.2} %", line.now_pct))
            .number("points", |line| signed(line.now_pct - line.before_pct, 2))
            .text("", |line| if line.worse { "worse".to_owned() } else { String::new() })
            .table();
        table.write(out, format, width)?;
        Ok(writeln!(out)?)
    }

    /// What to know about the comparison.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What got worse, a line each: "published: 10.00 % → 9.00 %".
    pub fn reasons(&self) -> Vec<String> {
        let words = |line: &GateLine| {
            let GateLine { what, before_pct, now_pct, .. } = line;
            format!("{}: {before_pct:.2} % → {now_pct:.2} %", visible(what))
        };
        self.worse().map(words).collect()
    }
}

impl Baseline {
    fn of(report: &ReplayReport, hidden: Option<&Pseudonyms>) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            pseudonyms: hidden.map(Pseudonyms::check),
            tokens: report.counters(),
            reach: report.reach.clone(),
            arms: report.arms.iter().map(|arm| (arm.name.clone(), ArmBaseline::of(arm, hidden))).collect(),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let place = |cause: serde_json::Error| {
            Error::failed(format!("{}:{}: not a baseline file: {cause}", path.shown(), cause.line()))
                .hint(if is_baseline(text) { RENEWED } else { OTHER_FILE })
        };
        let baseline: Self = serde_json::from_str(text).map_err(place)?;
        if baseline.schema_version != SCHEMA_VERSION {
            let version = baseline.schema_version;
            return Err(Error::failed(format!(
                "{} has schema {version}, this devboy reads {SCHEMA_VERSION}",
                path.shown()
            ))
            .hint(RENEWED));
        }
        if baseline.arms.values().all(|arm| arm.baseline_tokens == 0) {
            return Err(nothing_to_compare(path));
        }
        Ok(baseline)
    }
}

/// A baseline without figures would let everything pass.
fn nothing_to_compare(path: &Path) -> Error {
    Error::failed(format!("{} holds no figures that this replay could be compared with", path.shown())).hint(RENEWED)
}

/// What a baseline file calls an endpoint.
fn called(endpoint: &str, hidden: Option<&Pseudonyms>) -> String {
    hidden.map_or_else(|| endpoint.to_owned(), |names| names.tool(endpoint))
}

/// Whether a text was once written as a baseline, of whatever schema: nothing else is ever replaced.
fn is_baseline(text: &str) -> bool {
    let written: Option<Value> = serde_json::from_str(text).ok();
    written.is_some_and(|written| ["schema_version", "arms"].iter().all(|key| written.get(key).is_some()))
}

impl ArmBaseline {
    fn of(arm: &ReplayArm, hidden: Option<&Pseudonyms>) -> Self {
        let whole = arm.total.baseline();
        let mut endpoints: BTreeMap<String, [u64; 2]> = BTreeMap::new();
        for group in &arm.endpoints {
            // Two names may have one pseudonym.
            let [baseline, sent] = endpoints.entry(called(&group.name, hidden)).or_default();
            *baseline += group.tally.baseline();
            *sent += group.tally.sent();
        }
        endpoints.retain(|_, [baseline, _]| *baseline as f64 >= ENDPOINT_SHARE_MIN * whole as f64);
        Self { baseline_tokens: whole, sent_tokens: arm.total.sent(), endpoints }
    }
}
