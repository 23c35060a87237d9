//! S5: MCP servers that a project starts and never calls.

use serde::Deserialize;

use crate::base::error::Result;
use crate::rules::Sheet;
use crate::rules::claude::judge::{hint, key_of};
use crate::rules::claude::{ClaudeRule, Facts};
use crate::settings::finding::{Evidence, Finding, Verdict};

/// The rule.
pub static RULE: ClaudeRule = ClaudeRule {
    id: "S5",
    file: "s5_unused_servers",
    summary: "Tells of MCP servers of a project that no session called; never written, since no log says what their definitions cost.",
    docs: include_str!("../../../rules/docs/s5_unused_servers.md"),
    judge,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Thresholds {
    sessions_min: u64,
}

fn judge(facts: &Facts<'_>, sheet: &Sheet) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let mut findings: Vec<Finding> = tool_search(facts)?.into_iter().collect();
    let sessions = facts.study.sessions.len() as u64;
    let finding = |subject: &str, verdict| Finding::new(RULE.id, subject, verdict, Evidence::default());
    let Some(servers) = &facts.uses.servers else {
        let reason = "--scope project or local looks at the servers of .mcp.json".to_owned();
        findings.push(finding("MCP servers", Verdict::Skip(reason)));
        return Ok(findings);
    };
    for server in servers {
        let calls = facts.uses.server_calls.get(server).copied().unwrap_or_default();
        let evidence =
            Evidence::of(format!("{calls} calls of {server} in {sessions} sessions of this project"), sessions)
                .by(sheet.cite("sessions_min"));
        findings.push(match calls {
            0 if sessions >= thresholds.sessions_min => {
                let words = format!("never called here; \"disabledMcpjsonServers\": [\"{server}\"] leaves it out");
                hint(facts, RULE.id, server, "disabledMcpjsonServers", words, evidence)
            }
            0 => {
                let verdict = Verdict::Hold(format!("too few sessions ({})", sheet.cite("sessions_min")));
                Finding { evidence, ..finding(server, verdict) }
            }
            _ => Finding { evidence, ..finding(server, Verdict::Skip("it is called".to_owned())) },
        });
    }
    Ok(findings)
}

/// Whether the definitions of all MCP tools are sent at once because somebody said so.
fn tool_search(facts: &Facts<'_>) -> Result<Option<Finding>> {
    let lever = "ENABLE_TOOL_SEARCH";
    let Some(key) = key_of(facts, lever) else { return Ok(None) };
    let is_off = facts.layers.value(&key)?.is_some_and(|value| value == "false");
    let calls: u64 = facts.uses.server_calls.values().sum();
    let evidence = Evidence::of(format!("{calls} calls of MCP tools"), calls);
    let words = || {
        format!(
            "`{key}` is \"false\": all definitions of MCP tools are sent at once; without it they wait until one is looked for"
        )
    };
    Ok(is_off.then(|| hint(facts, RULE.id, "tool search", lever, words(), evidence)))
}
