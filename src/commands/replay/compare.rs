//! Several configurations side by side: two files per endpoint, or the cells of a grid.

use rayon::prelude::*;
use serde_json::json;

use crate::base::error::Result;
use crate::base::visible::Shown as _;
use crate::commands::input::Input;
use crate::commands::replay::Args;
use crate::commands::replay::scenarios::Scenarios;
use crate::commands::replay::study::{EXTENDED, PUBLISHED, reached};
use crate::commands::replay_input::ReplayInput;
use crate::mine::quality;
use crate::replay::Scenario;
use crate::replay::report::{Arm, Reached, ReplayReport, figure, reaches, reaches_json, tally_json};
use crate::replay::savings::Tally;
use crate::report::envelope;
use crate::report::numbers::thousands;
use crate::report::table::{Format, Table};
use crate::shell::arguments::Exit;
use crate::shell::context::Context;

/// Runs every cell of the grid over the same facts, cells in parallel.
pub fn sweep(args: &Args, scenarios: &Scenarios, input: &mut Input, context: &mut Context<'_>) -> Result<Exit> {
    let settings: Vec<_> = scenarios.cells.iter().map(|cell| &cell.settings).collect();
    let Scenarios { model, reaches, .. } = scenarios;
    let question = format!("sweep {settings:?} {model:?} {reaches:?}");
    let cells: Vec<(String, Vec<Reached>)> = input.remember(&question, |input| {
        let laid = ReplayInput::new(model.as_deref(), input)?;
        let both = |settings: &&crate::settings::Settings| {
            let published = Scenario::new(settings, &laid.tape, laid.options(false));
            let extended = published.with_options(settings, laid.options(true));
            let everything = [published, extended];
            let tokens = everything[0].counters(&laid.tape).into_keys().collect::<Vec<_>>().join(", ");
            (tokens, reaches.all.iter().map(|reach| reached(&laid, reach, &everything)).collect())
        };
        Ok(input.pool.install(|| settings.par_iter().map(both).collect()))
    })?;
    input.tell(&args.output, context)?;
    scenarios.tell(&args.output, context)?;
    if args.output.form() == Format::Json {
        let cells = scenarios.cells.iter().zip(&cells).map(|(cell, (tokens, reached))| {
            let Reached { published, extended, .. } = &reached[reaches.place()];
            let values: serde_json::Map<String, serde_json::Value> =
                scenarios.keys.iter().cloned().zip(cell.values.iter().map(|value| json!(value))).collect();
            json!({ "values": values, "tokens": tokens, PUBLISHED: tally_json(published), EXTENDED: tally_json(extended),
                    "reaches": reaches_json(reached) })
        });
        let fields = json!({
            "window": input.window_json(),
            "inputs": input.json(),
            "data_quality": quality::json(&quality::of(&input.sources)),
            "keys": scenarios.keys,
            "reach": reaches.chosen().id,
            "cells": cells.collect::<Vec<_>>(),
        });
        let document = envelope::envelope("replay", args.output.stamp(context), fields);
        envelope::write(context.out, &document)?;
        return Ok(Exit::Done);
    }
    let mut counted: Vec<&str> = cells.iter().map(|(tokens, _)| tokens.as_str()).collect();
    counted.dedup();
    if args.output.form() != Format::Csv {
        let (tokens, reach) = (counted.join(" | "), &reaches.chosen().name);
        writeln!(context.out, "tokens: {tokens}; baseline: the text as it is (raw); saved by: {reach}\n")?;
    }
    let figures = ["#baseline", "#dedup%", "#encoder%", "#combined%", "#sent", "#extended%", "#sent extended"];
    let keys = scenarios.keys.iter().map(String::as_str);
    let mut table = Table::new(&keys.chain(figures).collect::<Vec<_>>());
    for (cell, (_, reached)) in scenarios.cells.iter().zip(&cells) {
        let Reached { published, extended, .. } = &reached[reaches.place()];
        let savings = published.savings();
        let figures = [
            thousands(published.baseline()),
            figure(savings.dedup),
            figure(savings.encoder),
            figure(savings.combined),
            thousands(published.sent()),
            figure(extended.savings().combined),
            thousands(extended.sent()),
        ];
        table.row(cell.values.iter().cloned().chain(figures));
    }
    table.write(context.out, args.output.form(), context.width)?;
    if args.output.form() != Format::Csv {
        writeln!(context.out, "\nwho could do this\n")?;
        who(scenarios, &cells).write(context.out, args.output.form(), context.width)?;
    }
    Ok(Exit::Done)
}

/// Who could save how much of the tokens in each cell.
fn who(scenarios: &Scenarios, cells: &[(String, Vec<Reached>)]) -> Table {
    let keys = scenarios.keys.iter().map(String::as_str);
    let mut table = Table::new(&keys.chain(["who", "#published%", "#extended%"]).collect::<Vec<_>>());
    for (cell, (_, reached)) in scenarios.cells.iter().zip(cells) {
        for Reached { name, published, extended, .. } in reached {
            let shares = [published, extended].map(|tally| figure(tally.savings().combined));
            table.row(cell.values.iter().cloned().chain([name.clone()]).chain(shares));
        }
    }
    table
}

/// Shows what the second configuration changes, per endpoint.
pub fn against(
    args: &Args,
    scenarios: &Scenarios,
    [first, second]: [&ReplayReport; 2],
    input: &Input,
    context: &mut Context<'_>,
) -> Result<()> {
    let names = [0, 1].map(|index| scenarios.files[index].path.shown());
    let pairs = || first.arms.iter().zip(&second.arms);
    if args.output.form() == Format::Json {
        let arm = |(one, other): (&Arm, &Arm)| {
            let endpoints = rows(one, other).into_iter().map(|(name, one, other)| {
                json!({ "endpoint": name, "first": tally_json(&one), "second": tally_json(&other),
                        "sent_difference": other.sent() as i64 - one.sent() as i64 })
            });
            json!({ "arm": one.name, "first": tally_json(&one.total), "second": tally_json(&other.total),
                    "endpoints": endpoints.collect::<Vec<_>>() })
        };
        let fields = json!({
            "window": input.window_json(),
            "inputs": input.json(),
            "configs": names,
            "reach": first.reach,
            "reaches": [reaches_json(&first.reaches), reaches_json(&second.reaches)],
            "arms": pairs().map(arm).collect::<Vec<_>>(),
        });
        let document = envelope::envelope("replay", args.output.stamp(context), fields);
        return envelope::write(context.out, &document);
    }
    if args.output.form() != Format::Csv {
        let said = [
            ("first", names[0].clone()),
            ("second", names[1].clone()),
            ("tokens", format!("{}; saved by: {}", first.counters(), first.reach_name())),
        ];
        for (what, words) in said {
            writeln!(context.out, "{what}: {}", args.output.form().sentence(&words))?;
        }
    }
    let mut table = Table::new(&["formats", "endpoint", "#baseline", "#first%", "#second%", "#difference", "#tokens"]);
    for (one, other) in pairs() {
        let total = [("all".to_owned(), one.total, other.total)];
        let changed = rows(one, other).into_iter().filter(|(_, one, other)| one.sent() != other.sent());
        for (name, before, after) in total.into_iter().chain(changed) {
            let shares = [before, after].map(|tally| tally.savings().combined);
            let points = shares[0].zip(shares[1]).map(|(before, after)| format!("{:+.2}", 100.0 * (after - before)));
            let difference = before.sent() as i64 - after.sent() as i64;
            table.row([
                one.name.clone(),
                name,
                thousands(before.baseline()),
                figure(shares[0]),
                figure(shares[1]),
                points.unwrap_or_else(|| "–".to_owned()),
                format!("{}{}", if difference < 0 { "-" } else { "+" }, thousands(difference.unsigned_abs())),
            ]);
        }
    }
    table.write(context.out, args.output.form(), context.width)?;
    if args.output.form() == Format::Table {
        writeln!(context.out, "difference in percentage points, tokens saved more (+) or less (-) by the second")?;
        for (name, report) in [("first", first), ("second", second)] {
            writeln!(context.out, "\nwho could do this, {name}")?;
            reaches(&report.reaches).write(context.out, Format::Table, context.width)?;
        }
    }
    Ok(())
}

/// Endpoints of both replays, by baseline tokens.
fn rows(one: &Arm, other: &Arm) -> Vec<(String, Tally, Tally)> {
    let same = |name: &str| other.endpoints.iter().find(|group| group.name == name).map(|group| group.tally);
    let pairs = one.endpoints.iter();
    let mut rows: Vec<_> =
        pairs.map(|group| (group.name.clone(), group.tally, same(&group.name).unwrap_or_default())).collect();
    rows.sort_by_key(|(name, tally, _)| (std::cmp::Reverse(tally.baseline()), name.clone()));
    rows
}
