//! `devboy tune analyze`: sum up what the live pipeline recorded, let the rules speak, replay every proposal, write the
//! configuration as a diff.

use serde_json::json;

use crate::base::error::Result;
use crate::base::visible::Shown as _;
use crate::commands::config::{config_path, warn_unknown};
use crate::commands::input::QuestionArgs;
use crate::commands::responses::Wanted;
use crate::commands::tune::lenders::TeamArgs;
use crate::commands::tune::writing::{self, SettledProposal, WriteArgs};
use crate::mine::fingerprint_tables as fingerprints;
use crate::report::numbers::{counted, percent, thousands};
use crate::report::table::TableFormat;
use crate::rules::gate::ProposalGate;
use crate::rules::proposal::{KeyOwners, Proposal, settle};
use crate::rules::responses::{Responses, RuleBasis};
use crate::rules::{Speaks, effects, judge_events, prefetching, r7_speculation, report as findings, statistics};
use crate::settings::formats::load_config;
use crate::settings::{Effective, SettingsFile, View};
use crate::shell::arguments::Exit;
use crate::shell::context::Context;
use crate::shell::window;
use crate::telemetry::effectiveness::Effectiveness;

/// Endpoints in the table (published number).
const TOP_ENDPOINTS: usize = 10;

/// Sum up recorded responses, apply rules R1 to R6 (R7 with --auto-enrichment, E1 with --extended-formats), replay every proposal, write the configuration and print its diff.
///
/// Reads the telemetry of the live pipeline, or with --from-claude-logs the logs themselves. The diff and the evidence of
/// every change go to stdout, behind the answer; everything else to stderr. A proposal that would save fewer tokens on the
/// later sessions (on all of them, where they are few) is held; if all together would, nothing is written and the exit code
/// is 3. The previous file stays beside the new one as pipeline_config.toml.bak, and each change is noted in tuning-journal.jsonl (`devboy tune history`, `devboy tune
/// undo`). A key or table marked `# pin` is never touched. Exit code 4 with --check means that changes are pending.
#[derive(clap::Args, Debug, Default)]
pub struct Args {
    /// Read Claude Code logs instead of telemetry; --input-dir then names logs.
    #[arg(long)]
    pub from_claude_logs: bool,
    /// Also apply rule R7: stop prefetches that go unused, switch the planner on where they are used.
    #[arg(long)]
    pub auto_enrichment: bool,
    /// Also apply rule E1: list the formats for text that a pipeline has to know beyond the published ones.
    #[arg(long, requires = "from_claude_logs")]
    pub extended_formats: bool,
    #[command(flatten)]
    pub write: WriteArgs,
    #[command(flatten)]
    pub others: TeamArgs,
    #[command(flatten)]
    pub asked: QuestionArgs,
}

/// Everything that is shown and written.
struct Analysis<'a> {
    file: &'a SettingsFile,
    responses: &'a Responses,
    gate: ProposalGate,
    proposal: Proposal,
    /// Whether all figures come from the responses themselves.
    is_own: bool,
    /// How many sessions there are, and how many are needed to judge rules on others than those that they spoke on; none
    /// where there are enough.
    too_few: Option<(u64, u64)>,
    /// Whether what rules say of the planner is of the latest sessions, which alone have anything of it.
    is_planner_of_latest: bool,
}

/// Reads, sums up, judges, replays, shows, writes.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let path = config_path(args.write.output.as_ref(), context)?;
    // A broken configuration ends the command before any work is done.
    let file = load_config(&path, false)?;
    let effective = Effective::resolve(&file)?;
    let window = window::of(&args.asked.window, context.now_ms)?;
    let planner = args.auto_enrichment.then_some(&file);
    let wanted = Wanted { planner, ..Wanted::of(&args.asked, window, &effective.settings) };
    let mut responses = if args.from_claude_logs {
        Responses::from_logs(&wanted, context)?
    } else {
        Responses::from_telemetry(&wanted, context)?
    };
    let numbers = statistics::numbers(&responses.data)?;
    // Rules speak on the earlier sessions and are judged on the later ones, where there are enough for both.
    let RuleBasis { mut observed, coverage, later, is_planner_of_latest, sessions, sessions_min } =
        responses.rule_basis(&context.pseudonyms, &numbers)?;
    if responses.log.is_empty() && !args.asked.input.allow_empty {
        return Err(responses.nothing_found());
    }
    let others = args.others.read(&responses.data, context)?;
    let whose = others.as_ref().map(|others| others.lend(&mut observed)).unwrap_or_default();
    let view = View::of(&file)?.knowing(responses.tools());
    let more = [(args.auto_enrichment, Speaks::AutoEnrichment), (args.extended_formats, Speaks::ExtendedFormats)];
    let more = more.into_iter().filter_map(|(is_asked, speaks)| is_asked.then_some(speaks));
    let asked: Vec<Speaks> = std::iter::once(Speaks::Events).chain(more).collect();
    let seen_until = responses.observed.profile.span_ms.map(|(_, last)| last);
    let precedence = KeyOwners::load(&responses.data, &file, seen_until)?;
    let mut found = settle(&view, &precedence, judge_events(&observed, &coverage, &responses.data, &view, &asked)?);
    whose.tell(&mut found);
    prefetching::gate_refreshed(&file, &view, &mut responses, later.as_ref(), &mut found)?;
    let judged_on = responses.laid_out(later.as_ref().unwrap_or(&responses.log));
    let (mut gate, mut judged) = ProposalGate::pass(&file, &effective.settings, &responses, &judged_on, found.clone())?;
    // What was predicted in the weeks of the past has to have come true.
    if later.is_some() && judged.iter().any(|finding| finding.effect.is_some() && finding.proposed().is_some()) {
        let rows = effects::of_pipeline(&file, &responses, &context.pseudonyms)?;
        if effects::hold_broken(&mut judged, &rows) {
            // What added nothing beside what is held now may do so without it.
            effects::hold_broken(&mut found, &rows);
            (gate, judged) = ProposalGate::pass(&file, &effective.settings, &responses, &judged_on, found)?;
        }
    }
    whose.hold_what_does_not_pay(&mut judged);
    let proposal = Proposal::new(&file, judged, &responses.annotations)?.titled(&file, &worth(&gate));
    if !gate.fails() {
        args.write.expect_writable(&file, &proposal)?;
    }
    let is_own = others.is_none();
    let too_few = later.is_none().then_some((sessions, sessions_min));
    let analysis =
        Analysis { file: &file, responses: &responses, gate, proposal, is_own, too_few, is_planner_of_latest };
    context.show(|context| show(args, context, &analysis))?;
    conclude(args, context, &analysis)
}

fn show(args: &Args, context: &mut Context<'_>, analysis: &Analysis<'_>) -> Result<()> {
    let Analysis { file, responses, gate, proposal, .. } = analysis;
    let answer = if gate.fails() {
        let lost = (gate.all.saved_before - gate.all.saved_after).max(gate.host[0] - gate.host[1]);
        let (lost, aside) = (thousands(lost.round() as u64), writing::aside(args.write.explain, &proposal.findings));
        format!("Nothing is written: together the proposals would save {lost} tokens less{aside}.")
    } else if proposal.is_change() {
        writing::answer(&args.write, file, proposal, &worth(gate))
    } else {
        writing::answer(&args.write, file, proposal, &now(gate))
    };
    writing::tell_first(&args.asked.output, &answer, proposal.is_change(), context)?;
    if !args.asked.output.quiet {
        responses.tell(&args.asked.output, context)?;
        warn_unknown(file, context)?;
        summarise(args, context, analysis)?;
    }
    if args.asked.output.form() == TableFormat::Json {
        return args.asked.output.write_json("tune analyze", json_fields(analysis), context);
    }
    writing::show(&args.write, &args.asked.output, proposal, context)
}

/// What was read and how it was answered, in the order and with the labels of the published tool.
fn summarise(args: &Args, context: &mut Context<'_>, analysis: &Analysis<'_>) -> Result<()> {
    let mut lines = read_lines(args, analysis);
    lines.push(judged_line(&analysis.gate, analysis.too_few));
    if analysis.is_planner_of_latest {
        lines.push(
            "what R6 and R7 say of the planner is of the latest sessions, which alone have anything of it".to_owned(),
        );
    }
    if !args.from_claude_logs {
        lines.push(
            "encoder and total are potential: telemetry does not say whether what L1 and L2 wrote was delivered"
                .to_owned(),
        );
    }
    if args.write.explain {
        lines.extend(endpoint_lines(analysis.responses));
    }
    lines.extend(planner_lines(args, analysis));
    for line in lines {
        writeln!(context.err, "{}", format!("# {line}").trim_end())?;
    }
    Ok(())
}

/// What was read.
fn read_lines(args: &Args, analysis: &Analysis<'_>) -> Vec<String> {
    let responses = analysis.responses;
    let mut lines: Vec<String> = responses.places().iter().map(|place| format!("input:  {place}")).collect();
    if args.auto_enrichment {
        lines.push("auto-enrichment: R7 active".to_owned());
    }
    let profile = &responses.observed.profile;
    lines.push(fingerprints::summary(profile, responses.observed.endpoints.len()));
    if let Some(span) = responses.span_words() {
        let standing = if (profile.calls - profile.events as f64).abs() < 0.5 {
            String::new()
        } else {
            format!(" that stand for {} responses (sampled)", thousands(profile.calls.round() as u64))
        };
        let events = counted(profile.events, "event");
        lines.push(format!("{span}: {events}{standing}, {}", responses.basis()));
    }
    if !responses.log.planned.is_empty() {
        let planned = counted(responses.log.planned.len() as u64, "event");
        lines.push(format!("besides {planned} of the planner (prefetched, or declined): nobody asked for these"));
    }
    lines
}

/// On what proposals were judged.
fn judged_line(gate: &ProposalGate, too_few: Option<(u64, u64)>) -> String {
    match too_few {
        None => format!("rules speak on the earlier sessions; judged on {}", counted(gate.sessions, "later session")),
        Some((sessions, needed)) => format!(
            "{}, too few to judge on later ones ({} are needed): proposals are judged on what they were found on",
            counted(sessions, "session"),
            thousands(needed)
        ),
    }
}

/// The endpoints with the most calls.
fn endpoint_lines(responses: &Responses) -> Vec<String> {
    let mut lines = vec![String::new(), "top endpoints by call count:".to_owned()];
    let top = fingerprints::top(&responses.observed.endpoints, TOP_ENDPOINTS);
    lines.extend(top.iter().map(|line| format!("  {line}")));
    lines.push("  dedup% and total% are of the tokens as they are, encoder% of those that were no repeats".to_owned());
    lines
}

/// What the planner did, and what is proposed for it.
fn planner_lines(args: &Args, analysis: &Analysis<'_>) -> Vec<String> {
    let mut lines = Vec::new();
    let asked = (args.write.explain || args.auto_enrichment).then(|| analysis.responses.effectiveness());
    if let Some(effectiveness) = asked.filter(Effectiveness::is_active) {
        lines.push(format!("enrichment: {effectiveness}"));
        let words = "  by the published definitions: a prefetch that nobody judged is a miss, and hints cost nothing; overruns are \
                     bytes against foreseen bytes";
        lines.push(words.to_owned());
    }
    let said = r7_speculation::lines(&analysis.proposal.findings);
    if analysis.too_few.is_none() && !analysis.is_planner_of_latest && !said.is_empty() {
        lines.push("R7 counts the prefetches of the earlier sessions:".to_owned());
    }
    lines.extend(said);
    lines
}

/// What the changes are worth, to whom: for the answer, and for the first line of the file.
fn worth(gate: &ProposalGate) -> String {
    let Some((host, all)) = gate.host_shares().zip(gate.all.shares()) else { return "nothing was replayed".to_owned() };
    let more_of_host = gate.host[1] - gate.host[0];
    let more_of_all = gate.all.saved_after - gate.all.saved_before;
    let saves = |(before, after): (f64, f64), more: f64| match [before, after].map(percent) {
        [_, after] if more.abs() < 0.5 => format!("{after} as before"),
        [before, after] if before == after => {
            let side = if more > 0.0 { "more" } else { "less" };
            format!("{after}, {} tokens {side} than before", thousands(more.abs().round() as u64))
        }
        [before, after] => format!("{after} instead of {before}"),
    };
    let ([of_host, of_all], sessions) = (&gate.names, counted(gate.sessions, "session"));
    let (host, all) = (saves(host, more_of_host), saves(all, more_of_all));
    let only_all = more_of_all >= 0.5 && more_of_host < 0.5;
    let only = if only_all { format!("only a {of_all} gains: ") } else { String::new() };
    format!(
        "{only}of all results' tokens the {of_host} saves {host}, a {of_all} that changes all results {all} (replayed on {sessions})"
    )
}

/// What is saved without any change.
fn now(gate: &ProposalGate) -> String {
    let Some((host, all)) = gate.host_shares().zip(gate.all.shares()) else { return String::new() };
    let (host, all, baseline) = (percent(host.0), percent(all.0), thousands(gate.all.baseline.round() as u64));
    let ([of_host, of_all], sessions) = (&gate.names, counted(gate.sessions, "session"));
    format!(
        "no change is sure to save more; the {of_host} saves {host} of {baseline} tokens of results as it is, a {of_all} that \
         changes all results {all} (replayed on {sessions})"
    )
}

fn json_fields(analysis: &Analysis<'_>) -> serde_json::Value {
    let Analysis { file, responses, gate, proposal, .. } = analysis;
    let shares = gate.all.shares();
    responses.fields(json!({
        "config": file.path.shown(),
        "warnings": file.warnings,
        "profile": fingerprints::profile_json(&responses.observed.profile),
        "fingerprints": fingerprints::json(&responses.observed.endpoints),
        "gate": {
            "basis": "replayed",
            "baseline_tokens": gate.all.baseline,
            "saved_before": gate.all.saved_before,
            "saved_after": gate.all.saved_after,
            "combined_before": shares.map(|(before, _)| before),
            "combined_after": shares.map(|(_, after)| after),
            "reach": gate.names[1],
            "host": { "reach": gate.names[0], "saved_before": gate.host[0], "saved_after": gate.host[1] },
            "passed": !gate.fails(),
            "sessions": gate.sessions,
            "held_out": analysis.too_few.is_none(),
        },
        "findings": findings::json(&proposal.findings),
        "changes": proposal.count(),
        "diff": proposal.diff,
    }))
}

/// Writes the file, or says why not.
fn conclude(args: &Args, context: &mut Context<'_>, analysis: &Analysis<'_>) -> Result<Exit> {
    let Analysis { file, gate, proposal, responses, .. } = analysis;
    if gate.fails() {
        return Ok(Exit::Gate);
    }
    let inputs = responses.inputs();
    let settled = SettledProposal { command: "tune analyze", file, proposal, predicted: Some(gate.all), inputs };
    let exit = writing::conclude(&args.write, args.asked.output.quiet, settled, context)?;
    // Own figures only: what others lend is told with each finding. The configuration stands without them.
    let written =
        if args.write.writes() && analysis.is_own { responses.write_fingerprints(&file.path) } else { Ok(()) };
    if let Err(why) = written {
        writeln!(context.err, "# note: the fingerprints of endpoints were not written: {why}")?;
    }
    Ok(exit)
}
