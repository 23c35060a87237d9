//! Shows the reports of policies in the form that was asked for.

use serde_json::json;

use crate::commands::input::Input;
use crate::commands::replay::policy::Flags;
use crate::context::Context;
use crate::error::Result;
use crate::report::policy::{self as report, PolicyReport};
use crate::report::table::Format;
use crate::report::{envelope, quality};

/// Writes one report, or several side by side.
pub fn show(flags: &Flags<'_>, reports: &[PolicyReport], input: &Input, context: &mut Context<'_>) -> Result<()> {
    let form = flags.output.form();
    if form == Format::Json {
        let fields = json!({
            "window": input.window_json(),
            "inputs": input.json(),
            "data_quality": quality::json(&quality::of(&input.sources)),
            "policies": reports.iter().map(report::json).collect::<Vec<_>>(),
        });
        let document = envelope::envelope("replay", flags.output.stamp(context), fields);
        return envelope::write(context.out, &document);
    }
    if form == Format::Csv {
        let table = match (flags.policy.per_session, reports) {
            (true, [report]) => report::sessions(report),
            _ => report::comparison(reports),
        };
        return table.write(context.out, form, context.width);
    }
    if let [one] = reports {
        report::write(context.out, one, form, context.width)?;
        if flags.policy.per_session {
            writeln!(context.out, "\nby session, in input-equivalent tokens")?;
            report::sessions(one).write(context.out, form, context.width)?;
        }
        return Ok(());
    }
    report::comparison(reports).write(context.out, form, context.width)?;
    for one in reports {
        writeln!(context.out)?;
        report::headline(context.out, one, form)?;
    }
    Ok(())
}
