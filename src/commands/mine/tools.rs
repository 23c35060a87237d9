//! `devboy mine tools`: how often each tool was called, what it gave back, how long it took, what it cost.

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::base::id::{Id, IdMap};
use crate::base::names::{Names, mcp_server};
use crate::base::pseudonyms::Pseudonyms;
use crate::commands::mine::export::{CsvLayout, ExportArgs, Mined, MinedArgs};
use crate::facts::body_facts::SizesAlone;
use crate::frames::input::Input;
use crate::frames::tool_use::{MinedCall, ToolUsage, ToolUsages, Volume};
use crate::logs::history::History;
use crate::logs::overview::Holds;
use crate::mine::tools::{BUILT_IN, ToolGuide, ToolUseRules};
use crate::mine::{tables as mined, tools};
use crate::report::numbers::{self, thousands};
use crate::report::table;
use crate::shell::context::Context;

/// The vocabulary in which `--exact` counts, as a tier: `o200k_base`.
const EXACT_TIER: u8 = 1;

/// Print what each tool gave back: sizes, times, failures, repeats, tokens.
///
/// Tokens are estimated from bytes unless --exact is given. Names of MCP servers are pseudonyms unless --names is given.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Sum up by MCP server.
    #[arg(long)]
    servers: bool,
    /// Count the tokens of results (o200k_base); takes as long as the first replay.
    #[arg(long)]
    exact: bool,
    /// Columns of the CSV.
    #[arg(long, value_enum, default_value_t)]
    layout: CsvLayout,
    #[command(flatten)]
    asked: MinedArgs,
}

/// Reads, sums up, prints.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let export = args.asked.export.in_layout(args.layout)?;
    check_layout(args)?;
    let tier = if args.exact { EXACT_TIER } else { 0 };
    if args.layout == CsvLayout::Published {
        return published(args, &export, context);
    }
    let mut input = args.asked.read((tier, None), context)?;
    let rules = input.data.parsed::<ToolUseRules>("tool_use.toml")?;
    let words = &input.vocabulary;
    let question = format!("tools {rules:?} {:?} {:?}", words.tool_aliases, words.file_mutate_tools);
    let uses: ToolUsages = input.remember(&question, |input| {
        let Called { calls, servers, names, .. } = called(input, args.exact, &rules);
        input.pool.install(|| tools::uses(&calls, &servers, &names))
    })?;
    if uses.tools.is_empty() && !args.asked.input.allow_empty {
        return Err(input.nothing_in_window("tool calls"));
    }
    let sum = |of: fn(&ToolUsage) -> u64| uses.tools.iter().map(of).sum::<u64>();
    let (all_tokens, counted, with_text) =
        (sum(|row| row.response_tokens), sum(|row| row.counted), sum(|row| row.with_text));
    let by_tool = |row: ToolUsage| ToolUsage { name: export.shown(&context.pseudonyms, &row.name), ..row };
    let by_server = |row: ToolUsage| ToolUsage { name: server_shown(&export, &context.pseudonyms, &row.name), ..row };
    let (tools, tools_out) = args.asked.kept.keep(uses.tools.into_iter().map(by_tool), |row| row.sessions);
    let (servers, servers_out) = args.asked.kept.keep(uses.servers.into_iter().map(by_server), |row| row.sessions);
    let left_out = if args.servers { servers_out } else { tools_out };
    export.tell(&input, (left_out, args.asked.kept), context)?;
    let estimate = format!("estimated: {} bytes per token", rules.bytes_per_token);
    let basis = if args.exact {
        let (counted, with_text) = (thousands(counted), numbers::counted(with_text, "result"));
        format!("replayed: {counted} of {with_text} counted with o200k_base, all other text {estimate}")
    } else {
        estimate.clone()
    };
    context.note(export.quiet, format_args!("tokens of results {basis}"))?;
    let of_tools = mined::tools(&tools, "tool", all_tokens, rules.bytes_per_token);
    let of_servers = mined::tools(&servers, "server", all_tokens, rules.bytes_per_token);
    let mut fields = input.fields(json!({ "left_out": left_out }));
    fields["sessions"] = json!(uses.sessions);
    fields["tokens_basis"] = json!({ "responses": basis, "inputs": estimate });
    fields["response_tokens"] = json!(all_tokens);
    if !args.servers {
        fields["servers"] = table::json(&of_servers);
    }
    let rows = if args.servers { (&servers, "server") } else { (&tools, "tool") };
    export.send_mined(
        context,
        Mined {
            command: "mine tools",
            rows: if args.servers { "servers" } else { "tools" },
            answer: String::new(),
            overview: mined::tools_overview(rows.0, rows.1, all_tokens),
            top: args.asked.kept.top(),
            listing: if args.servers { of_servers } else { of_tools },
            fields,
            graph: None,
            about: vec![("tokens_basis", basis)],
        },
    )
}

/// Refuses the published layout for what it has no column for.
fn check_layout(args: &Args) -> Result<()> {
    let of_another = [("--servers", args.servers), ("--exact", args.exact)];
    let of_another = of_another.iter().find(|(_, is_given)| *is_given && args.layout == CsvLayout::Published);
    let Some((flag, _)) = of_another else { return Ok(()) };
    let why = format!("the published layout is of tools and characters, {flag} says nothing about it");
    Err(Error::usage(why).hint(format!("leave out --layout or {flag}")))
}

/// A history with what is known of each of its calls.
pub struct Called {
    pub history: History,
    pub names: Names,
    pub calls: Vec<MinedCall>,
    /// MCP servers, by number.
    pub servers: Vec<String>,
}

/// Looks at every call of the input.
pub fn called(input: &mut Input, exact: bool, rules: &ToolUseRules) -> Called {
    let (history, names) = input.named_history();
    let bodies = if exact { input.bodies(&SizesAlone) } else { Vec::new() };
    let counted = bodies.iter().filter(|body| body.counted & EXACT_TIER != 0);
    let exact: IdMap<Id, u32> = counted.map(|body| (body.body, body.raw.tokens[0])).collect();
    let guide = ToolGuide { rules, changing: &input.vocabulary.file_mutate_tools, exact: &exact };
    let (calls, servers) = tools::calls(&history, &names, &guide);
    Called { history, names, calls, servers }
}

/// The name under which a server is shown.
fn server_shown(export: &ExportArgs, names: &Pseudonyms, server: &str) -> String {
    if server == BUILT_IN {
        return server.to_owned();
    }
    let shown = export.shown(names, &format!("mcp__{server}__tool"));
    mcp_server(&shown).unwrap_or_default().to_owned()
}

/// The published table of volumes.
fn published(args: &Args, export: &ExportArgs, context: &mut Context<'_>) -> Result<()> {
    let (mut input, kept) = (args.asked.read_more(Input::keep_calls, context)?, args.asked.kept);
    input.report_holds(Holds::Nothing)?;
    let window = input.window.clone();
    let rows: Vec<Volume> = input.remember("volumes", |input| Ok(tools::volumes(input.calls(), &window)))?;
    let shown = |row: Volume| Volume { tool: export.shown(&context.pseudonyms, &row.tool), ..row };
    let (rows, left_out) = kept.keep(rows.into_iter().map(shown), |row| row.sessions);
    export.tell(&input, (left_out, kept), context)?;
    export.send_mined(context, Mined::listed("mine tools", "tools", mined::volumes(&rows)))
}
