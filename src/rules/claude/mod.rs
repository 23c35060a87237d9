//! The rules about Claude Code's own settings: what was simulated of a lever, checked against its versions, its bounds and the
//! files that win over it.

mod judge;
pub mod search;
mod simulated;
pub mod study;
mod together;
mod told;

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::base::bootstrap::Resampling;
use crate::base::data::Data;
use crate::base::error::Result;
use crate::rules::RuleThresholds;
use crate::settings::claude::layers::SettingsLayers;
use crate::settings::claude::levers::Levers;
use crate::settings::entries::Journal;
use crate::settings::finding::Finding;
use crate::whatif::client::LeverStudy;

pub use judge::NO_PRICE;
pub use simulated::{HeldLever, asks_several, decided, held, paying, question, standing};
pub use together::{add_beside, settle, with_proposed};
pub use told::{behind_gateway, left_out};

/// A rule about settings.
pub struct ClaudeRule {
    /// Short id: "S1".
    pub id: &'static str,
    /// Name of its files.
    pub file: &'static str,
    /// What it decides, in one line.
    pub summary: &'static str,
    pub judge: fn(&SettingsFacts<'_>, &RuleThresholds) -> Result<Vec<Finding>>,
}

/// All rules about settings, in the order in which they speak.
pub static REGISTER: &[&ClaudeRule] =
    &[&simulated::S1, &simulated::S2, &simulated::S3, &simulated::S4, &told::S5, &told::S6, &told::S7, &told::S8];

/// What rules about settings may read.
#[derive(Clone, Copy)]
pub struct SettingsFacts<'a> {
    pub study: &'a LeverStudy,
    /// Everything that can be set.
    pub levers: &'a Levers,
    /// The file as it is, and those above it.
    pub layers: &'a SettingsLayers,
    /// What was written to the file and taken back.
    pub journal: &'a Journal,
    /// How sessions are drawn for intervals.
    pub resampling: &'a Resampling,
    /// What was used of what a setting could switch off.
    pub uses: &'a Uses,
    /// What stands behind a lifetime of an hour where requests go through a gateway.
    pub gateway: Option<&'a str>,
}

/// What was used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// Servers of the project's `.mcp.json`; none where no project was asked about.
    pub servers: Option<Map<String, Value>>,
    /// Calls of MCP tools, by tool.
    pub mcp_calls: BTreeMap<String, u64>,
    /// Calls of tools that ask for resources of MCP servers: none says of which.
    pub resource_calls: u64,
    pub skills: u64,
    /// Texts of skills that were sent again after a compaction, where all projects were asked about: nothing says in which
    /// session.
    pub skills_again: u64,
    /// Requests of subagents, by model.
    pub subagent_models: BTreeMap<String, u64>,
    /// Those of them that follow a setting and would cost less with the cheaper model that the page names.
    pub subagents_movable: u64,
}

/// The numbers of a rule.
fn sheet_of(rule: &str, data: &Data) -> Result<RuleThresholds> {
    let rule = REGISTER.iter().find(|one| one.id == rule);
    RuleThresholds::of(rule.map_or("", |rule| rule.file), data)
}

/// Lets every rule about settings speak.
pub fn judge_all(facts: &SettingsFacts<'_>, data: &Data) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for rule in REGISTER {
        findings.extend((rule.judge)(facts, &RuleThresholds::of(rule.file, data)?)?);
    }
    Ok(findings)
}
