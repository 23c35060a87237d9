//! What the aggregates of logs share: reading the input, merged histories, names that may leave the machine.

use serde_json::{Value, json};

use crate::base::error::Result;
use crate::base::pseudonyms::Pseudonyms;
use crate::base::visible::visible;
use crate::commands::mine::export::{ExportArgs, KeptArgs};
use crate::frames::input::Input;
use crate::logs::overview::Holds;
use crate::report::numbers::counted;
use crate::shell::arguments::{InputArgs, WindowArgs};
use crate::shell::context::Context;
use crate::shell::window;

/// Finds the logs and brings them up to date; `tier` as in [`Input::read`].
pub fn read(
    args: &InputArgs,
    of: &WindowArgs,
    tier: u8,
    export: &ExportArgs,
    context: &mut Context<'_>,
) -> Result<Input> {
    let mut input = Input::read(args, window::of(of, context.now_ms)?, (tier, None), &export.shared(), context)?;
    input.expect_records(args)?;
    input.report_holds(Holds::Calls)?;
    Ok(input)
}

/// The name under which a tool is shown.
pub fn shown(export: &ExportArgs, names: &Pseudonyms, tool: &str) -> String {
    if export.names { tool.to_owned() } else { names.tool(tool) }
}

/// Keeps what at least k sessions have done; says how many rows are left out.
pub fn keep_k<R>(rows: Vec<R>, kept: KeptArgs, sessions: impl Fn(&R) -> u64) -> (Vec<R>, u64) {
    let before = rows.len();
    let rows: Vec<R> = rows.into_iter().filter(|row| sessions(row) >= kept.k_anonymity).collect();
    let left_out = (before - rows.len()) as u64;
    (rows, left_out)
}

/// Tells the notes of the input, what it is, and how many rows are left out.
pub fn tell(
    input: &Input,
    export: &ExportArgs,
    (left_out, kept): (u64, KeptArgs),
    context: &mut Context<'_>,
) -> Result<()> {
    input.tell(&export.shared(), context)?;
    context.note(export.quiet, visible(&input.covered(true)))?;
    if left_out > 0 {
        let (rows, k) = (counted(left_out, "row"), kept.k_anonymity);
        context.note(export.quiet, format_args!("{rows} left out: fewer than {k} sessions"))?;
    }
    Ok(())
}

/// The fields of every report about logs.
pub fn fields(input: &Input, left_out: u64) -> Value {
    input.fields(json!({ "left_out": left_out }))
}
