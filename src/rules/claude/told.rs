//! S5–S8: what can only be told of a lever, and is never written: no log says what it would bring.

use serde::Deserialize;
use serde_json::Value;

use crate::base::data::Data;
use crate::base::error::Result;
use crate::base::names::{is_of_mcp_server, mcp_server_in_tools};
use crate::report::numbers::{counted, date};
use crate::rules::RuleThresholds;
use crate::rules::claude::judge::{NO_PRICE, hint, key_of};
use crate::rules::claude::{ClaudeRule, SettingsFacts};
use crate::settings::claude::layers::{ClaudePlaces, SettingsLayers, says_no, taken_away};
use crate::settings::claude::levers::Levers;
use crate::settings::finding::{Evidence, Finding, Verdict};
use crate::whatif::client::thresholds::known;
use crate::whatif::sim::cost::Cost;

/// MCP servers that a project starts and never calls.
pub static S5: ClaudeRule = ClaudeRule {
    id: "S5",
    file: "s5_unused_servers",
    summary: "Tells of MCP servers of a project that no session called; never written, since no log says what their definitions cost.",
    judge: unused_servers,
};

/// The lever that leaves servers of a project out.
const DISABLED_SERVERS: &str = "disabledMcpjsonServers";

/// Whether an entry of a list is about a server, by its name and how it is started or reached.
type IsServer = fn((&str, &Value), &Value) -> bool;

/// The levers that leave a server out, the first one to be told of, and what one of their entries is for it.
const LEAVE_OUT: [(&str, IsServer); 3] = [
    (DISABLED_SERVERS, |(server, _), entry| entry == server),
    ("deniedMcpServers", |(server, definition), entry| {
        let url = definition["url"].as_str().zip(entry["serverUrl"].as_str());
        let command = command(definition);
        entry["serverName"] == server
            || command.is_some_and(|command| entry["serverCommand"].as_array() == Some(&command))
            || url.is_some_and(|(url, pattern)| fits(url, pattern))
    }),
    ("permissions.deny", |(server, _), entry| {
        let tools = format!("mcp__{}", mcp_server_in_tools(server));
        entry == "mcp__*" || entry == &Value::from(format!("{tools}__*")) || entry == &Value::from(tools)
    }),
];

/// A command with its arguments; none of a server that is reached over the network.
fn command(definition: &Value) -> Option<Vec<Value>> {
    let arguments = definition["args"].as_array().into_iter().flatten();
    definition["command"]
        .is_string()
        .then(|| std::iter::once(&definition["command"]).chain(arguments).cloned().collect())
}

/// Whether an address fits a pattern in which `*` stands for anything.
fn fits(url: &str, pattern: &str) -> bool {
    let parts = pattern.split('*').map(regex::escape).collect::<Vec<_>>().join(".*");
    regex::Regex::new(&format!("^{parts}$")).is_ok_and(|pattern| pattern.is_match(url))
}

/// The lever that leaves a server out already, by its name and how it is started or reached.
pub fn left_out(layers: &SettingsLayers, levers: &Levers, server: (&str, &Value)) -> Result<Option<&'static str>> {
    for (lever, is_meant) in LEAVE_OUT {
        let Some(key) = levers.named(lever).and_then(|lever| lever.key(None)) else { continue };
        if layers.lists(&key, |entry| is_meant(server, entry))? {
            return Ok(Some(lever));
        }
    }
    Ok(None)
}

/// Other levers for the same, as far as every client knows them: ", or …".
fn or_else(facts: &SettingsFacts<'_>, ways: &[(&str, String)]) -> String {
    let is_known = |name: &str| known(&facts.levers.named(name).into_iter().collect::<Vec<_>>(), &facts.study.versions);
    let ways = ways.iter().filter(|(lever, _)| is_known(lever).is_ok()).map(|(_, words)| words.as_str());
    let ways = ways.collect::<Vec<_>>().join(" or ");
    if ways.is_empty() { ways } else { format!("; so does {ways}") }
}

/// What a lever is set to, in whatever file.
fn resolved(facts: &SettingsFacts<'_>, lever: &str) -> Result<Option<Value>> {
    Ok(facts.levers.named(lever).map(|lever| facts.layers.resolved(lever)).transpose()?.flatten())
}

#[derive(Deserialize)]
struct Sessions {
    sessions_min: u64,
}

#[derive(Deserialize)]
struct UnusedServers {
    sessions_min: u64,
    tool_search: ToolSearch,
}

/// What keeps the client from searching for tools by itself.
#[derive(Deserialize)]
struct ToolSearch {
    /// The variable with the address of the API, and the host that it has without one.
    address: String,
    own_host: String,
    off_by: String,
}

impl ToolSearch {
    /// Whether requests go somewhere else than to Anthropic's own address.
    fn is_elsewhere(&self, layers: &SettingsLayers) -> Result<bool> {
        let host = |url: &str| {
            let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
            rest.split(['/', ':', '?']).next().unwrap_or_default().to_ascii_lowercase()
        };
        Ok(layers.variable(&self.address)?.is_some_and(|url| host(&url) != self.own_host))
    }
}

/// What stands behind a lifetime of an hour where requests go through a gateway, by these settings or by those of a project above
/// them; none where they do not.
pub fn behind_gateway(
    layers: &SettingsLayers,
    projects: impl IntoIterator<Item = ClaudePlaces>,
    data: &Data,
) -> Result<Option<String>> {
    let needs = RuleThresholds::of(S5.file, data)?.thresholds::<UnusedServers>()?.tool_search;
    // A file of a project that cannot be read says nothing, as for the client.
    let is_elsewhere_in = |places: ClaudePlaces| {
        layers.in_project(&places).is_some_and(|there| needs.is_elsewhere(&there).unwrap_or_default())
    };
    let place = if needs.is_elsewhere(layers)? {
        ""
    } else if projects.into_iter().any(is_elsewhere_in) {
        " in some projects"
    } else {
        return Ok(None);
    };
    Ok(Some(format!(
        "{} is another address{place}: 1h acts there only if that gateway passes `anthropic-beta` on, and the Claude apps gateway \
         has no 1h",
        needs.address
    )))
}

fn unused_servers(facts: &SettingsFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: UnusedServers = sheet.thresholds()?;
    let mut findings: Vec<Finding> = tool_search(facts, &thresholds.tool_search)?.into_iter().collect();
    let sessions = facts.study.sessions.len() as u64;
    let Some(servers) = &facts.uses.servers else {
        let verdict = Verdict::Skip("--scope project or local looks at the servers of .mcp.json".to_owned());
        findings.push(Finding::new(S5.id, "MCP servers", verdict, Evidence::default()));
        return Ok(findings);
    };
    let resources = match facts.uses.resource_calls {
        0 => String::new(),
        calls => format!("; {} for resources of some server", counted(calls, "call")),
    };
    for (server, definition) in servers {
        let tools = mcp_server_in_tools(server);
        let own = facts.uses.mcp_calls.iter().filter(|(tool, _)| is_of_mcp_server(tool, &tools));
        let calls: u64 = own.map(|(_, calls)| calls).sum();
        let (times, all) = (counted(calls, "call"), counted(sessions, "session"));
        let counts = format!("{times} of {server} in {all} of this project{resources}");
        let evidence = Evidence::of(counts, sessions).by(sheet.cite("sessions_min"));
        let finding = |verdict| Finding::new(S5.id, server, verdict, evidence.clone());
        let skipped = |reason: &str| finding(Verdict::Skip(reason.to_owned()));
        findings.push(match (left_out(facts.layers, facts.levers, (server, definition))?, calls) {
            (Some(lever), _) => skipped(&format!("`{lever}` leaves it out already")),
            (None, 0) if facts.uses.resource_calls > 0 => {
                skipped("resources of some server are asked for here, and nothing says of which")
            }
            (None, 0) if sessions >= thresholds.sessions_min => {
                let others = [
                    ("deniedMcpServers", format!("\"deniedMcpServers\": [{{\"serverName\": \"{server}\"}}]")),
                    ("permissions.deny", format!("\"mcp__{tools}\" in \"permissions.deny\"")),
                ];
                let others = or_else(facts, &others);
                let words = format!("never called here; \"{DISABLED_SERVERS}\": [\"{server}\"] leaves it out{others}");
                hint(facts, S5.id, server, DISABLED_SERVERS, words, evidence)?
            }
            (None, 0) => finding(Verdict::Hold(format!("too few sessions ({})", sheet.cite("sessions_min")))),
            (None, _) => skipped("it is called"),
        });
    }
    Ok(findings)
}

/// Whether the definitions of all MCP tools are sent at once because somebody said so.
fn tool_search(facts: &SettingsFacts<'_>, needs: &ToolSearch) -> Result<Option<Finding>> {
    let lever = "ENABLE_TOOL_SEARCH";
    let (Some(key), Some(search)) = (key_of(facts, lever), facts.levers.named(lever)) else { return Ok(None) };
    if facts.layers.resolved(search)?.is_none_or(|value| value != "false") {
        return Ok(None);
    }
    let (set, away) = match facts.layers.is_of_shell(search)? {
        true => (format!("the variable {lever} of the shell"), taken_away(lever)),
        false => (format!("`{key}`"), String::new()),
    };
    let calls: u64 = facts.uses.mcp_calls.values().sum();
    let evidence = Evidence::of(format!("{} of MCP tools", counted(calls, "call")), calls);
    if let Some(variable) = without_search(facts, needs)? {
        let reason = format!("without {set} the definitions of MCP tools would not wait either: {variable} is set");
        return Ok(Some(Finding::new(S5.id, "tool search", Verdict::Skip(reason), evidence)));
    }
    let words = format!(
        "{set} is \"false\": all definitions of MCP tools are sent at once; without it they wait until one is looked for{away}"
    );
    Ok(Some(hint(facts, S5.id, "tool search", lever, words, evidence)?))
}

/// The variable because of which the client would not search for tools by itself; none if nothing keeps it from that.
fn without_search<'n>(facts: &SettingsFacts<'_>, needs: &'n ToolSearch) -> Result<Option<&'n str>> {
    let is_elsewhere = needs.is_elsewhere(facts.layers)?;
    let is_off = facts.layers.variable(&needs.off_by)?.is_some_and(|value| !says_no(&value));
    Ok(if is_elsewhere { Some(needs.address.as_str()) } else { is_off.then_some(needs.off_by.as_str()) })
}

/// The list of skills where none is used.
pub static S6: ClaudeRule = ClaudeRule {
    id: "S6",
    file: "s6_skills",
    summary: "Tells of the list of skills where no session used one; never written, since no log says what the list costs.",
    judge: skills,
};

fn skills(facts: &SettingsFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Sessions = sheet.thresholds()?;
    let (sessions, uses) = (facts.study.sessions.len() as u64, facts.uses.skills);
    let again = match facts.uses.skills_again {
        0 => String::new(),
        texts => format!("; {} of skills sent again after a compaction", counted(texts, "text")),
    };
    let (times, all) = (counted(uses, "use"), counted(sessions, "session"));
    let evidence = Evidence::of(format!("{times} of skills in {all}{again}"), sessions).by(sheet.cite("sessions_min"));
    let lever = "disableBundledSkills";
    let finding = |verdict| Finding::new(S6.id, "list of skills", verdict, evidence.clone());
    let is_set = resolved(facts, lever)?.is_some();
    Ok(vec![match uses + facts.uses.skills_again {
        _ if is_set => finding(Verdict::Skip(format!("`{lever}` is set already"))),
        0 if sessions >= thresholds.sessions_min => {
            let fewer = [
                ("skillOverrides", "\"skillOverrides\" for single ones".to_owned()),
                (
                    "skillListingBudgetFraction",
                    "a smaller \"skillListingBudgetFraction\" for the whole list".to_owned(),
                ),
            ];
            let others = or_else(facts, &fewer);
            let words = format!("none was used; \"{lever}\": true leaves out those that the client comes with{others}");
            hint(facts, S6.id, "list of skills", lever, words, evidence)?
        }
        0 => finding(Verdict::Hold(format!("too few sessions ({})", sheet.cite("sessions_min")))),
        _ => finding(Verdict::Skip("skills are used".to_owned())),
    }])
}

/// What subagents take of the bill, and with which models.
pub static S7: ClaudeRule = ClaudeRule {
    id: "S7",
    file: "s7_subagent_model",
    summary: "Tells what subagents take of the bill and with which models; never written, since what another one would have answered is in no log.",
    judge: subagent_model,
};

#[derive(Deserialize)]
struct OfBill {
    of_bill_percent_min: f64,
}

fn subagent_model(facts: &SettingsFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: OfBill = sheet.thresholds()?;
    let mut all = Cost::default();
    let mut subagents = Cost::default();
    for seen in &facts.study.sessions {
        all += seen.cost;
        subagents += seen.subagents;
    }
    let (whole, part) = all.beside(&subagents);
    let percent = if whole == 0 { 0.0 } else { 100.0 * part as f64 / whole as f64 };
    let models = facts.uses.subagent_models.iter().map(|(model, requests)| format!("{model} {requests}"));
    let models = models.collect::<Vec<_>>().join(", ");
    let models = if models.is_empty() { models } else { format!("; their requests by model: {models}") };
    let evidence = Evidence::of(
        format!("subagents took {percent:.1} % of the bill as simulated{models}"),
        facts.uses.subagent_models.values().sum(),
    )
    .by(sheet.cite("of_bill_percent_min"));
    let subject = "model of subagents";
    let skipped = if resolved(facts, "CLAUDE_CODE_SUBAGENT_MODEL")?.is_some() {
        Some("`CLAUDE_CODE_SUBAGENT_MODEL` is set already")
    } else if part > 0 && all.nano_usd == 0 {
        Some(NO_PRICE)
    } else if percent < thresholds.of_bill_percent_min || part == 0 {
        Some("subagents take little of the bill")
    } else if facts.uses.subagents_movable == 0 {
        Some(
            "no request of theirs would be cheaper with it: they run on a cheap model already, their calls name one, or they are \
             the client's own, which do not follow it",
        )
    } else {
        None
    };
    if let Some(reason) = skipped {
        return Ok(vec![Finding::new(S7.id, subject, Verdict::Skip(reason.to_owned()), evidence)]);
    }
    let words = "CLAUDE_CODE_SUBAGENT_MODEL in \"env\" names one for agents that name none (before 2.1.251 for all of them; the client's own Explore and Plan do not follow it alone); whether it answers as well is in no log";
    Ok(vec![hint(facts, S7.id, subject, "CLAUDE_CODE_SUBAGENT_MODEL", words.to_owned(), evidence)?])
}

/// How long the client keeps its logs.
pub static S8: ClaudeRule = ClaudeRule {
    id: "S8",
    file: "s8_retention",
    summary: "Tells where logs are deleted before a change could be held against what came after it; never written, since it saves nothing by itself.",
    judge: retention,
};

#[derive(Deserialize)]
struct Days {
    days_min: i64,
}

fn retention(facts: &SettingsFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Days = sheet.thresholds()?;
    let lever = "cleanupPeriodDays";
    let Some(key) = key_of(facts, lever) else { return Ok(Vec::new()) };
    let Some(retention) = facts.levers.named(lever) else { return Ok(Vec::new()) };
    // What the client does not take is not set.
    let held = resolved(facts, lever)?.and_then(|value| retention.taken(&value)?.as_i64());
    let default = retention.default_words();
    let days = held.map_or_else(
        || format!("{default} days unless something else is set"),
        |days| counted(days.unsigned_abs(), "day"),
    );
    let first = facts
        .study
        .sessions
        .first()
        .map_or_else(String::new, |seen| format!("; the oldest session here is of {}", date(seen.first)));
    let evidence = Evidence::of(format!("the client keeps logs for {days}{first}"), facts.study.sessions.len() as u64)
        .by(sheet.cite("days_min"));
    if held.is_some_and(|days| days >= thresholds.days_min) {
        let verdict = Verdict::Skip(format!("`{key}` is {days}, which is enough"));
        return Ok(vec![Finding::new(S8.id, "retention of logs", verdict, evidence)]);
    }
    let words = format!(
        "\"{lever}\": 365 keeps logs for a year: what a change brought can only be told from logs of before and after"
    );
    Ok(vec![hint(facts, S8.id, "retention of logs", lever, words, evidence)?])
}
