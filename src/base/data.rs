//! The data files of `rules/`: compiled in, or read from `--rules-dir`. Whoever needs one reads it through [`Data`], and
//! cites it by the path that it was read from.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::id::Id;
use crate::base::toml;
use crate::base::visible::Shown as _;

/// The annotations that the published planner came with.
pub const PUBLISHED_ANNOTATIONS: &str = "annotations/claude_code_published.toml";

/// Every data file that rules read, by name. A new file is one line here.
const SHIPPED: &[(&str, &str)] = &[
    ("p1_model.toml", include_str!("../../rules/p1_model.toml")),
    ("p2_agent.toml", include_str!("../../rules/p2_agent.toml")),
    ("p3_data.toml", include_str!("../../rules/p3_data.toml")),
    ("p4_tokenizer.toml", include_str!("../../rules/p4_tokenizer.toml")),
    ("t1_tools.toml", include_str!("../../rules/t1_tools.toml")),
    ("t2_fields.toml", include_str!("../../rules/t2_fields.toml")),
    ("r1_dedup_enable.toml", include_str!("../../rules/r1_dedup_enable.toml")),
    ("r2_template.toml", include_str!("../../rules/r2_template.toml")),
    ("r3_lru_size.toml", include_str!("../../rules/r3_lru_size.toml")),
    ("r4_recursion_depth.toml", include_str!("../../rules/r4_recursion_depth.toml")),
    ("r5_min_body.toml", include_str!("../../rules/r5_min_body.toml")),
    ("r6_cost_models.toml", include_str!("../../rules/r6_cost_models.toml")),
    ("r7_speculation.toml", include_str!("../../rules/r7_speculation.toml")),
    ("findings.toml", include_str!("../../rules/findings.toml")),
    ("s1_main_ttl.toml", include_str!("../../rules/s1_main_ttl.toml")),
    ("s2_subagent_ttl.toml", include_str!("../../rules/s2_subagent_ttl.toml")),
    ("s3_compact_window.toml", include_str!("../../rules/s3_compact_window.toml")),
    ("s4_result_sizes.toml", include_str!("../../rules/s4_result_sizes.toml")),
    ("s5_unused_servers.toml", include_str!("../../rules/s5_unused_servers.toml")),
    ("s6_skills.toml", include_str!("../../rules/s6_skills.toml")),
    ("s7_subagent_model.toml", include_str!("../../rules/s7_subagent_model.toml")),
    ("s8_retention.toml", include_str!("../../rules/s8_retention.toml")),
    ("history.toml", include_str!("../../rules/history.toml")),
    ("backtest.toml", include_str!("../../rules/backtest.toml")),
    ("edges.toml", include_str!("../../rules/edges.toml")),
    ("tool_use.toml", include_str!("../../rules/tool_use.toml")),
    ("patterns.toml", include_str!("../../rules/patterns.toml")),
    ("precedence.toml", include_str!("../../rules/precedence.toml")),
    ("projections.toml", include_str!("../../rules/projections.toml")),
    ("mined_projections.toml", include_str!("../../rules/mined_projections.toml")),
    ("planner.toml", include_str!("../../rules/planner.toml")),
    ("search.toml", include_str!("../../rules/search.toml")),
    ("selectivity.toml", include_str!("../../rules/selectivity.toml")),
    ("models.toml", include_str!("../../rules/models.toml")),
    ("claims.toml", include_str!("../../rules/claims.toml")),
    ("reach.toml", include_str!("../../rules/reach.toml")),
    ("formats.toml", include_str!("../../rules/formats.toml")),
    ("endpoints.toml", include_str!("../../rules/endpoints.toml")),
    ("fleet.toml", include_str!("../../rules/fleet.toml")),
    ("telemetry.toml", include_str!("../../rules/telemetry.toml")),
    ("timeline.toml", include_str!("../../rules/timeline.toml")),
    ("logs.toml", include_str!("../../rules/logs.toml")),
    ("prices.toml", include_str!("../../rules/prices.toml")),
    ("catalogs/claude_code.toml", include_str!("../../rules/catalogs/claude_code.toml")),
    ("policies/all.toml", include_str!("../../rules/policies/all.toml")),
    ("policies/arg_check.toml", include_str!("../../rules/policies/arg_check.toml")),
    ("policies/breakage.toml", include_str!("../../rules/policies/breakage.toml")),
    ("policies/catalog.toml", include_str!("../../rules/policies/catalog.toml")),
    ("policies/claude_settings.toml", include_str!("../../rules/policies/claude_settings.toml")),
    ("policies/compaction.toml", include_str!("../../rules/policies/compaction.toml")),
    ("policies/history_trim.toml", include_str!("../../rules/policies/history_trim.toml")),
    ("policies/bias.toml", include_str!("../../rules/policies/bias.toml")),
    ("policies/pick_tools.toml", include_str!("../../rules/policies/pick_tools.toml")),
    ("policies/pipeline.toml", include_str!("../../rules/policies/pipeline.toml")),
    ("policies/prompt_cache.toml", include_str!("../../rules/policies/prompt_cache.toml")),
    ("policies/cells.toml", include_str!("../../rules/policies/cells.toml")),
    ("policies/sizes.toml", include_str!("../../rules/policies/sizes.toml")),
    ("policies/stop_words.toml", include_str!("../../rules/policies/stop_words.toml")),
    ("policies/tool_filter.toml", include_str!("../../rules/policies/tool_filter.toml")),
    ("levers/cache.toml", include_str!("../../rules/levers/cache.toml")),
    ("levers/compaction.toml", include_str!("../../rules/levers/compaction.toml")),
    ("levers/tools.toml", include_str!("../../rules/levers/tools.toml")),
    ("levers/results.toml", include_str!("../../rules/levers/results.toml")),
    ("levers/models.toml", include_str!("../../rules/levers/models.toml")),
    ("levers/prompt.toml", include_str!("../../rules/levers/prompt.toml")),
    ("annotations/claude_code.toml", include_str!("../../rules/annotations/claude_code.toml")),
    ("annotations/gitlab.toml", include_str!("../../rules/annotations/gitlab.toml")),
    ("annotations/github.toml", include_str!("../../rules/annotations/github.toml")),
    ("annotations/jira.toml", include_str!("../../rules/annotations/jira.toml")),
    ("annotations/clickup.toml", include_str!("../../rules/annotations/clickup.toml")),
    ("annotations/fireflies.toml", include_str!("../../rules/annotations/fireflies.toml")),
    ("annotations/confluence.toml", include_str!("../../rules/annotations/confluence.toml")),
];

/// Files of `rules/` that a directory cannot override: what a configuration means is the same for everybody, and what
/// was published stays as it was.
const FIXED: &[(&str, &str)] = &[
    ("settings/agent_thresholds.toml", include_str!("../../rules/settings/agent_thresholds.toml")),
    ("settings/defaults.toml", include_str!("../../rules/settings/defaults.toml")),
    ("settings/fallbacks.toml", include_str!("../../rules/settings/fallbacks.toml")),
    ("settings/schema.toml", include_str!("../../rules/settings/schema.toml")),
    (PUBLISHED_ANNOTATIONS, include_str!("../../rules/annotations/claude_code_published.toml")),
];

/// Where data files are taken from.
#[derive(Debug, Clone, Default)]
pub struct Data {
    dir: Option<PathBuf>,
}

/// A data file as it was read.
pub struct DataFile {
    /// Where it was read from, as it is cited: the path, or "rules/p1_model.toml" for a shipped one.
    pub place: String,
    /// What it says.
    pub text: Cow<'static, str>,
}

impl Data {
    /// The shipped files, overridden one by one by those in `dir`.
    ///
    /// # Errors
    /// If `dir` is given and is no directory, holds no data file, or another version of one that cannot be overridden.
    pub fn new(dir: Option<&Path>) -> Result<Self> {
        let Some(dir) = dir else { return Ok(Self::default()) };
        let place = dir.shown();
        if !dir.is_dir() {
            return Err(Error::failed(format!("--rules-dir {place} is no directory")));
        }
        let differs =
            |(name, text): &&(&str, &str)| std::fs::read_to_string(dir.join(name)).is_ok_and(|own| own != *text);
        if let Some((name, _)) = FIXED.iter().find(differs) {
            return Err(Error::failed(format!("--rules-dir {place}: {name} cannot be overridden"))
                .hint("take it out of the directory; a configuration changes what it sets"));
        }
        if !Self::names().any(|name| dir.join(name).exists()) {
            let names = Self::names().collect::<Vec<_>>().join(", ");
            return Err(Error::failed(format!("--rules-dir {place} holds no data file"))
                .hint(format!("files that are read: {names}")));
        }
        Ok(Self { dir: Some(dir.to_owned()) })
    }

    /// Names the files that override shipped ones; [`Id::NONE`] if there is no directory of them.
    ///
    /// # Errors
    /// If one of them cannot be read.
    pub fn overrides(&self) -> Result<Id> {
        let Some(dir) = &self.dir else { return Ok(Id::NONE) };
        let names = Self::names().filter(|name| dir.join(name).exists());
        let texts = names.map(|name| {
            let text = self.file(name)?.text;
            Ok(format!("{name} {} {text}", text.len()))
        });
        Ok(Id::pseudonym(texts.collect::<Result<String>>()?.as_bytes()))
    }

    /// The names of all files that a directory can override.
    pub fn names() -> impl Iterator<Item = &'static str> {
        SHIPPED.iter().map(|(name, _)| *name)
    }

    /// A data file with the place that it was read from.
    ///
    /// # Errors
    /// If the overriding file cannot be read, or no such file is shipped.
    pub fn file(&self, name: &str) -> Result<DataFile> {
        if let Some(path) = self.dir.as_ref().map(|dir| dir.join(name)).filter(|path| path.exists()) {
            let text = files::read_to_string(&path).map_err(|cause| Error::io("reading", &path, &cause))?;
            return Ok(DataFile { place: path.shown(), text: Cow::Owned(text) });
        }
        let shipped = SHIPPED.iter().chain(FIXED).find(|(known, _)| *known == name);
        shipped
            .map(|(_, text)| DataFile { place: format!("rules/{name}"), text: Cow::Borrowed(*text) })
            .ok_or_else(|| Error::failed(format!("there is no data file {name}")))
    }

    /// What `parse` makes of the text of a data file and of its place.
    ///
    /// # Errors
    /// See [`Data::file`], and whatever `parse` finds.
    pub fn read<T>(&self, name: &str, parse: impl FnOnce(&str, &str) -> Result<T>) -> Result<T> {
        let file = self.file(name)?;
        parse(&file.text, &file.place)
    }

    /// A data file as a type.
    ///
    /// # Errors
    /// See [`Data::file`], and if it does not fit.
    pub fn parsed<T: DeserializeOwned>(&self, name: &str) -> Result<T> {
        self.file(name)?.parsed()
    }

    /// The text of a data file, for who asks whether it changed.
    ///
    /// # Errors
    /// See [`Data::file`].
    pub fn text(&self, name: &str) -> Result<Cow<'static, str>> {
        self.file(name).map(|file| file.text)
    }

    /// The names of all annotation files.
    pub fn annotation_files() -> impl Iterator<Item = &'static str> {
        Self::names().filter(|name| name.starts_with("annotations/"))
    }

    /// The names of all files of levers.
    pub fn lever_files() -> impl Iterator<Item = &'static str> {
        Self::names().filter(|name| name.starts_with("levers/"))
    }
}

impl DataFile {
    /// The file as a type.
    ///
    /// # Errors
    /// If it does not fit.
    pub fn parsed<T: DeserializeOwned>(&self) -> Result<T> {
        fitting(&self.text, &self.place)
    }
}

/// TOML as a type; `place` is where it stands.
///
/// # Errors
/// If it does not fit.
pub fn fitting<T: DeserializeOwned>(text: &str, place: &str) -> Result<T> {
    toml::parsed(text)
        .map_err(|fault| Error::failed(fault.at(place)).hint("compare it with the file that devboy ships"))
}
