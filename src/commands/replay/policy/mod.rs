//! `devboy replay --policy`: what another context policy would have saved, cost and broken.

mod args;
mod chosen;
mod compaction;
mod history_trim;
mod pick_tools;
mod prompt_cache;
mod recorded;
mod show;
mod simulate;
mod tool_filter;
mod world;

use std::path::PathBuf;

use rayon::prelude::*;

use crate::cli::{Exit, InputArgs, OutputArgs, WindowArgs};
use crate::commands::input::Input;
use crate::commands::window;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::policies::knobs::Setting;
use crate::policies::outcome::billed;
use crate::report::policy::{Counted, Fidelity, PolicyReport};
use chosen::{Policy, Sheets, Stack};
use simulate::Baseline;
use tool_filter::Tools;
use world::World;

pub use args::PolicyArgs;

/// The flags of `devboy replay` that a policy looks at.
pub struct Flags<'a> {
    /// Its own.
    pub policy: &'a PolicyArgs,
    /// A file of knobs.
    pub config: Option<&'a PathBuf>,
    /// `KEY=A,B,…`
    pub sweep: &'a [String],
    /// Which logs.
    pub input: &'a InputArgs,
    /// Which part of them.
    pub window: &'a WindowArgs,
    /// How results are shown.
    pub output: &'a OutputArgs,
}

/// Reads, simulates the log, simulates the policies, shows.
pub fn run(flags: &Flags<'_>, context: &mut Context<'_>) -> Result<Exit> {
    let name = flags.policy.policy.as_deref().unwrap_or("all");
    let stacks = Stack::all(name, &flags.policy.compare)?;
    let window = window::of(flags.window, context.now_ms)?;
    let mut input = Input::read(flags.input, window, 0, flags.output, context)?;
    if input.sources.iter().all(|source| source.counters.known_records == 0) && !flags.input.allow_empty {
        return Err(input.no_records());
    }
    let (sheets, shipped) = sheets(flags, &stacks, &input)?;
    let tools = Tools::read(&flags.policy.tool_catalog, &input.data)?;
    let timeline = input.timeline()?;
    let estimator = flags.policy.estimator.as_deref();
    let world = World::new(timeline, estimator, &input.data, flags.policy.strict_pricing, true)?;
    let baseline = Baseline::new(&world, &sheets, &shipped)?;
    let one = |stack: &Stack| simulate::report(&world, &sheets, stack, &baseline, &tools);
    let reports: Vec<PolicyReport> = input.pool.install(|| stacks.par_iter().map(one).collect::<Result<_>>())?;
    let reports =
        reports.into_iter().map(|report| framed(report, &world, &input, &sheets)).collect::<Result<Vec<_>>>()?;
    input.tell(flags.output, context)?;
    show::show(flags, &reports, &input, context)?;
    Ok(Exit::Done)
}

/// The sheets with everything that was set, and as they are without.
fn sheets(flags: &Flags<'_>, stacks: &[Stack], input: &Input) -> Result<(Sheets, Sheets)> {
    let shipped = Sheets::load(&input.data)?;
    let mut asked: Vec<Policy> = stacks.iter().flat_map(|stack| stack.0.iter().copied()).collect();
    asked.sort_unstable();
    asked.dedup();
    let mut settings = flags.config.map_or_else(|| Ok(Vec::new()), |path| chosen::settings_of(path))?;
    let short = [("prompt-cache.ttl", &flags.policy.ttl, "--ttl"), ("compaction.tier", &flags.policy.tier, "--tier")];
    for (key, value, flag) in short {
        settings.extend(
            value.iter().map(|value| Setting::parse(&format!("{key}={value}"), flag)).collect::<Result<Vec<_>>>()?,
        );
    }
    for text in &flags.policy.set {
        settings.push(Setting::parse(text, format!("--set {text}"))?);
    }
    let mut sheets = shipped.clone();
    for setting in &settings {
        sheets.set(setting, &asked)?;
    }
    if settings.iter().any(|setting| setting.key.first().is_some_and(String::is_empty)) {
        return Err(Error::usage("a knob has no name"));
    }
    Ok((sheets, shipped))
}

/// Adds what every report says about its input.
fn framed(report: PolicyReport, world: &World, input: &Input, sheets: &Sheets) -> Result<PolicyReport> {
    let timeline = &world.timeline;
    let (anchored, requests) = world.sizes.anchored_share();
    let fidelity = Fidelity {
        estimator: format!("{:?}", world.estimator).to_lowercase(),
        anchored_share: (requests > 0).then(|| anchored as f64 / requests as f64),
        static_prefix_source: "reads after breaks and of other sessions".into(),
        ttl_source: world::oracle(sheets)?.knobs.ttl.to_string(),
        ..report.fidelity
    };
    Ok(PolicyReport {
        input: Counted {
            files: input.sources.len() as u64,
            sessions: timeline.sessions.len() as u64,
            requests: timeline.requests.len() as u64,
            skipped: timeline.skipped.clone(),
        },
        fidelity,
        billed: billed(timeline, &world.prices),
        ..report
    })
}
