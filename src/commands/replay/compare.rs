//! Several configurations side by side: two files per endpoint, or the cells of a grid.

use serde_json::json;

use crate::base::error::Result;
use crate::commands::replay::{Args, tell, write_covered};
use crate::frames::input::Input;
use crate::replay::compare::{ReplayGrid, arms, arms_json};
use crate::replay::report::{ReplayReport, reaches, reaches_json};
use crate::replay::scenarios::Scenarios;
use crate::report::sharing::told_place;
use crate::report::table::TableFormat;
use crate::shell::context::Context;

/// Runs every cell of the grid and shows them.
pub fn sweep(args: &Args, scenarios: &Scenarios, input: &mut Input, context: &mut Context<'_>) -> Result<()> {
    let grid = ReplayGrid::run(scenarios, input)?;
    input.tell(&args.asked.output, context)?;
    tell(scenarios, &args.asked.output, context)?;
    for key in grid.idle() {
        let idle = "no value makes a difference, this replay does not read it or meets no result for it";
        context.note(args.asked.output.quiet, format_args!("{key}: {idle}"))?;
    }
    let (form, reach) = (args.asked.output.form(), scenarios.reaches.chosen());
    if form == TableFormat::Json {
        let own = json!({ "keys": scenarios.keys, "reach": reach.id, "cells": grid.json() });
        return input.write_json("replay", own, (&args.asked.output, false), context);
    }
    if form != TableFormat::Csv {
        write_covered(args, input, context)?;
        let tokens = grid.counters();
        writeln!(context.out, "tokens: {tokens}; baseline: the text as it is (raw); saved by: {}\n", reach.name)?;
    }
    grid.table().write(context.out, form, context.width)?;
    if form != TableFormat::Csv {
        writeln!(context.out, "\nwho could do this\n")?;
        grid.who().write(context.out, form, context.width)?;
    }
    Ok(())
}

/// Shows what the second configuration changes, per endpoint.
pub fn against(
    args: &Args,
    scenarios: &Scenarios,
    [first, second]: [&ReplayReport; 2],
    input: &Input,
    context: &mut Context<'_>,
) -> Result<()> {
    let is_shared = args.asked.output.is_shared();
    let names = [0, 1].map(|index| told_place(&scenarios.files[index].path, is_shared));
    let form = args.asked.output.form();
    if form == TableFormat::Json {
        let own = json!({
            "configs": names,
            "tokens": [first.counters(), second.counters()],
            "reach": first.reach,
            "reaches": [reaches_json(&first.reaches), reaches_json(&second.reaches)],
            "arms": arms_json([first, second]),
        });
        return input.write_json("replay", own, (&args.asked.output, false), context);
    }
    if form != TableFormat::Csv {
        write_covered(args, input, context)?;
        let [first_name, second_name] = names;
        let tokens = format!("{}; saved by: {}", both_counters([first, second]), first.reach_name());
        for (what, words) in [("first", first_name), ("second", second_name), ("tokens", tokens)] {
            writeln!(context.out, "{what}: {}", form.sentence(&words))?;
        }
    }
    arms([first, second]).write(context.out, form, context.width)?;
    if form == TableFormat::Table {
        writeln!(context.out, "difference in percentage points, tokens saved more (+) or less (-) by the second")?;
        for (name, report) in [("first", first), ("second", second)] {
            writeln!(context.out, "\nwho could do this, {name}")?;
            reaches(&report.reaches).write(context.out, TableFormat::Table, context.width)?;
        }
    }
    Ok(())
}

/// How tokens were counted, in words; of two vocabularies both, with whose the baseline is.
fn both_counters(reports: [&ReplayReport; 2]) -> String {
    let [first, second] = reports.map(ReplayReport::counters);
    if first == second { first } else { format!("{first} (first, baseline), {second} (second)") }
}
