//! `devboy doctor --reconcile`: the counts of all reports over the same logs, and what lies between them.

use serde_json::json;

use crate::base::error::Result;
use crate::commands::mine::tools::called;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::assemble::standings_of;
use crate::mine::reconcile::{Reconciled, Sum, reconcile};
use crate::mine::tools::ToolUseRules;
use crate::mine::totals::totals;
use crate::mine::{sessions, tools};
use crate::report::numbers::thousands;
use crate::report::table::{Table, TableBuilder, TableFormat};
use crate::shell::arguments::{Exit, InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::shell::window;

/// Counts as every report does and prints the sums. Fails if one does not add up.
pub fn run(args: &InputArgs, output: &OutputArgs, context: &mut Context<'_>) -> Result<Exit> {
    let mut input = Input::read(args, window::ALL, (0, Some(TimelineDetail::default())), output, context)?;
    let rules = input.data.parsed::<ToolUseRules>("tool_use.toml")?;
    let called = called(&mut input, false, &rules);
    let tools = input.pool.install(|| tools::uses(&called.calls, &called.servers, &called.names))?;
    let sessions = sessions::sessions(&called.history, &called.names, &input.vocabulary.read_class_tools);
    let timeline = input.timeline(TimelineDetail::default())?;
    let without_timeline = std::mem::take(&mut input.without_timeline);
    input.tell(output, context)?;
    let corpus = input.corpus();
    let sums = reconcile(&Reconciled {
        corpus,
        standings: &standings_of(corpus),
        totals: &totals(corpus),
        history: &called.history,
        tools: &tools,
        sessions: &sessions,
        timeline: &timeline,
        without_timeline: &without_timeline,
    });
    let exit = if sums.iter().all(|sum| sum.gap() == 0) { Exit::Done } else { Exit::Failed };
    if output.form() == TableFormat::Json {
        let sums: Vec<_> = sums
            .iter()
            .map(|sum| {
                let mut fields = json!(sum);
                fields["gap"] = json!(sum.gap());
                fields
            })
            .collect();
        output.write_json("doctor", json!({ "sums": sums }), context)?;
        return Ok(exit);
    }
    let table = if output.form() == TableFormat::Csv { csv(&sums) } else { table(&sums) };
    table.write(context.out, output.form(), context.width)?;
    Ok(exit)
}

fn table(sums: &[Sum]) -> Table {
    let mut table = Table::new(&["of", "#count", "report, or what lies between"]);
    for row in sums.iter().flat_map(rows) {
        let count = thousands(row.count.unsigned_abs());
        let count = match row.kind {
            "start" => count,
            "end" => format!("= {count}"),
            _ if row.count < 0 => format!("−{count}"),
            _ => format!("+{count}"),
        };
        table.row([row.of.to_owned(), count, row.what.to_owned()]);
    }
    table
}

/// The same for programs: `start` and all `change`s add up to `end`.
fn csv(sums: &[Sum]) -> Table {
    TableBuilder::of(sums.iter().flat_map(rows))
        .text("of", |row| row.of.to_owned())
        .text("kind", |row| row.kind.to_owned())
        .number("count", |row| row.count.to_string())
        .text("what", |row| row.what.to_owned())
        .table()
}

struct SumRow<'s> {
    of: &'s str,
    kind: &'static str,
    count: i64,
    what: &'s str,
}

fn rows(sum: &Sum) -> Vec<SumRow<'_>> {
    let row = |kind, count, what| SumRow { of: sum.of, kind, count, what };
    let mut rows = vec![row("start", sum.start.cast_signed(), sum.from)];
    rows.extend(sum.steps.iter().map(|step| row("change", step.change, step.because)));
    if sum.gap() != 0 {
        rows.push(row("missing", sum.gap(), "MISSING: this is a fault of devboy, please report it"));
    }
    rows.push(row("end", sum.end.cast_signed(), sum.to));
    rows
}
