//! `devboy what-if POLICY`: what another way to treat contexts would have cost and broken.

use std::path::PathBuf;

use crate::base::error::Result;
use crate::commands::input::QuestionArgs;
use crate::commands::replay::policy;
use crate::commands::replay::policy::PolicyArgs;
use crate::shell::arguments::Exit;
use crate::shell::context::Context;

/// Send the requests of your logs again under another policy for contexts: what it saves, costs and breaks.
///
/// Policies: prompt-cache, compaction, history-trim, tool-filter, pick-tools, pipeline, arg-check, several joined by `+`,
/// or all.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The policy.
    #[arg(value_name = "POLICY")]
    policy: String,
    /// A file of parameters.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Replay once for each value; several keys make a grid: `--sweep compaction.window=150000,200000`.
    #[arg(long, value_name = "KEY=A,B,…")]
    sweep: Vec<String>,
    /// Of `pipeline`: who runs it, host, hook or gateway (the default).
    #[arg(long, value_name = "NAME")]
    reach: Option<String>,
    #[command(flatten)]
    setting: PolicyArgs,
    #[command(flatten)]
    asked: QuestionArgs,
}

/// Reads, simulates, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<Exit> {
    let Args { policy, config, sweep, reach, setting, asked } = args;
    let (config, reach) = (config.as_ref(), reach.as_deref());
    policy::run(&policy::Flags { name: policy, policy: setting, config, reach, sweep, asked }, context)
}
