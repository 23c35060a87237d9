//! What people read about tool lists and arguments.

use crate::report::table::TableFormat;
use crate::whatif::arg_check::outcome as arg_check;
use crate::whatif::arg_check::outcome::{ArgCheck, ArgClass, Truth};
use crate::whatif::pick_tools::outcome as pick_tools;
use crate::whatif::pick_tools::outcome::PickTools;
use crate::whatif::sim::figures::Portion;
use crate::whatif::tool_filter::result::{BreakEven, ToolFilter};
use crate::whatif::tool_filter::tables as tool_filter;

#[test]
fn savings_that_are_not_estimated_are_no_zero() {
    let found = ToolFilter { not_estimated: Some("unknown, needs --tool-catalog".into()), ..ToolFilter::default() };
    let lines = tool_filter::summary(&found);
    assert!(
        !["saves", "left out over", "nothing is left out"].iter().any(|said| lines.concat().contains(said)),
        "{lines:?}"
    );
}

#[test]
fn break_even_is_told_with_its_numbers() {
    let rule = BreakEven {
        removed_tokens: 10_000,
        context_tokens: 100_000,
        definition_tokens: 600,
        read_u20: 2,
        write_u20: 40,
        requests_per_miss: Some(45),
    };
    let lines = tool_filter::break_even(&ToolFilter { break_even: Some(rule), ..ToolFilter::default() });
    assert_eq!(lines[0], "each request saves 2 x 10,000 = 20,000 u20; the log has one in 45 requests with a miss");
    assert!(lines[1].ends_with("(40 - 2) x 100,000 = 3,800,000 u20 and a request: misses rarer than one in 190 pay"));
    assert!(
        lines[2].ends_with("2 x 100,000 + 40 x 600 = 224,000 u20: misses rarer than one in 12 pay"),
        "{}",
        lines[2]
    );
}

#[test]
fn turns_without_a_pick_are_told() {
    let found = PickTools { empty: Portion { k: 1, n: 2 }, ..PickTools::default() };
    let report = pick_tools::summary(&found).join("\n");
    assert!(report.contains("no pick in 50.0 % of 2 turns"), "{report}");
    // A pick without a score, or with 0, stands in the same row.
    let mut table = Vec::new();
    pick_tools::scores(&found).write(&mut table, TableFormat::Csv, None).unwrap();
    assert!(String::from_utf8(table).unwrap().contains("\n\"no pick, or no score\",0\n"));
}

#[test]
fn checked_calls_are_held_against_the_log() {
    let mut found = ArgCheck::default();
    for (tool, class, truth, calls) in [
        ("Read", ArgClass::Valid, Truth::Accepted, 97),
        ("Read", ArgClass::Invalid, Truth::Refused, 2),
        ("Task", ArgClass::Invalid, Truth::Accepted, 1),
        ("mcp__a__b", ArgClass::UnknownTool, Truth::Accepted, 5),
        ("mcp__a__c", ArgClass::UnknownTool, Truth::Refused, 3),
        ("mcp__a__d", ArgClass::UnknownTool, Truth::UnknownTool, 1),
    ] {
        found.tools.entry(tool.into()).or_default().insert(class, calls);
        *found.truth.entry(truth).or_default().entry(class).or_default() += calls;
    }
    let lines = arg_check::summary(&found);
    assert_eq!(lines[0], "97 of 100 calls to known tools are valid (97.0 %)");
    // Whether arguments fit a tool that nobody defines is told of neither those that ran nor those that did not.
    let nameless = "(1 of them for naming no tool that there is)";
    assert_eq!(lines[1], format!("3 of 3 refusals in the log would have been refused here, too {nameless}"));
    assert_eq!(lines[2], "1 call that ran would have been refused");
    assert!(lines[3].starts_with("9 calls to tools that no catalog has"), "{}", lines[3]);
    let mut table = Vec::new();
    arg_check::classes(&found).write(&mut table, TableFormat::Csv, None).unwrap();
    let table = String::from_utf8(table).unwrap();
    assert_eq!(table.lines().nth(1), Some("mcp__a__b,unknown_tool,5"), "{table}");
}
