//! `devboy doctor --reconcile`: the counts of all reports over the same logs, and what lies between them.

use serde_json::json;

use crate::base::error::Result;
use crate::commands::mine::tools::called;
use crate::frames::input::Input;
use crate::frames::input::timeline::TimelineDetail;
use crate::logs::assemble::standings_of;
use crate::mine::reconcile::{Reconciled, Sum, reconcile};
use crate::mine::totals::totals;
use crate::mine::{sessions, tools};
use crate::report::numbers::thousands;
use crate::report::table::{Table, TableFormat};
use crate::shell::arguments::{Exit, InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::shell::window;

/// Counts as every report does and prints the sums. Fails if one does not add up.
///
/// # Errors
/// If the logs cannot be read.
pub fn run(args: &InputArgs, output: &OutputArgs, context: &mut Context<'_>) -> Result<Exit> {
    let mut input = Input::read(args, window::ALL, (0, Some(TimelineDetail::default())), output, context)?;
    let bytes_per_token = input.data.parsed::<tools::ToolUseRules>("tool_use.toml")?.bytes_per_token;
    let called = called(&mut input, false, bytes_per_token);
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
    table(&sums).write(context.out, output.form(), context.width)?;
    Ok(exit)
}

fn table(sums: &[Sum]) -> Table {
    let mut table = Table::new(&["of", "#count", "report, or what lies between"]);
    for sum in sums {
        let mut row = |count: String, what: &str| table.row([sum.of.to_owned(), count, what.to_owned()]);
        row(thousands(sum.start), sum.from);
        for step in &sum.steps {
            let sign = if step.change < 0 { "−" } else { "+" };
            row(format!("{sign}{}", thousands(step.change.unsigned_abs())), step.because);
        }
        if sum.gap() != 0 {
            row(sum.gap().to_string(), "MISSING: this is a fault of devboy, please report it");
        }
        row(format!("= {}", thousands(sum.end)), sum.to);
    }
    table
}
