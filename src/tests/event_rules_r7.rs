//! Rule R7 over hand-made sums: the published vectors, what a new block must repeat, and what was not judged.

use super::event_rules::{Held, SHIPPED, changes, judged_when, settled};
use crate::base::data::Data;
use crate::frames::fingerprint::{Observed, ToolCosts, UnrecordedPlans};
use crate::rules::r7_speculation::{FOR_THE_FILE, RULE, lines};
use crate::rules::{RuleThresholds, Speaks};
use crate::settings::finding::{Basis, Finding, Verdict};
use crate::settings::tool_model::ToolModel;

/// A tool with this many prefetches, all judged, and how many of them were used.
fn tool(name: &str, prefetches: u64, used: u64) -> ToolCosts {
    ToolCosts {
        tool: name.to_owned(),
        key: Some(name.to_owned()),
        events: prefetches,
        calls: prefetches as f64,
        prefetches,
        prefetches_judged: prefetches,
        prefetches_cited: used,
        ..ToolCosts::default()
    }
}

fn spoken(tools: &[ToolCosts], text: &str) -> Vec<Finding> {
    let observed = Observed { tools: tools.to_vec(), ..Observed::default() };
    judged_when(&[Speaks::AutoEnrichment], &observed, text)
}

/// The lines in the published words.
fn said(tools: &[ToolCosts], text: &str) -> Vec<String> {
    let published = |line: String| line.split_once(FOR_THE_FILE).unwrap().0.to_owned();
    lines(&spoken(tools, text)).into_iter().map(published).collect()
}

/// What the lines mean for the file.
fn meant(tools: &[ToolCosts], text: &str) -> Vec<String> {
    let meaning = |line: String| line.split_once(FOR_THE_FILE).unwrap().1.to_owned();
    lines(&spoken(tools, text)).into_iter().map(meaning).collect()
}

/// The text with everything that the rule proposes. A second run must have nothing to add.
fn written(tools: &[ToolCosts], text: &str) -> String {
    let new = settled(spoken(tools, text), text).text;
    assert!(changes(&spoken(tools, &new)).is_empty(), "a second run, over\n{new}");
    new
}

/// Whether the planner is on, and whether a tool may be prefetched.
fn state(text: &str, tool: &str) -> (bool, Option<bool>) {
    let settings = Held::new(text).settings;
    (settings.enrichment.enabled, settings.tool_model_for(tool, None).and_then(|model| model.speculate))
}

// --- The published vectors -------------------------------------------------------------------------------------------

#[test]
fn three_of_twelve_forbid_a_tool_and_leave_the_planner_off() {
    let tools = [tool("Read", 12, 3)];
    let expected = [
        "R7 disabled: [tools.\"Read\"].speculate = false  (12 prefetches, hit_rate 25.0% < 50%)",
        "R7 hold: per-tool disables active: Read (12 prefetches)",
    ];
    assert_eq!(said(&tools, ""), expected);
    let new = written(&tools, "");
    assert_eq!(state(&new, "Read"), (false, Some(false)));
    // On the same data the tool that was forbidden still keeps the planner off.
    assert_eq!(said(&tools, &new), expected[1..]);
}

#[test]
fn a_share_of_what_was_recorded_is_told_beside_that_of_what_it_stands_for() {
    // Six unused ones stand for sixty.
    let unrecorded = UnrecordedPlans { judged: 54.0, ..UnrecordedPlans::default() };
    let tools = [ToolCosts { unrecorded, ..tool("Read", 20, 14) }];
    let counts = &spoken(&tools, "")[0].evidence.counts;
    assert!(counts.ends_with("14 of 20 judged prefetches were used, 18.9 % of all that they stand for"), "{counts}");
}

#[test]
fn fourteen_of_twenty_switch_the_planner_on() {
    let tools = [tool("Read", 20, 14)];
    let expected = "R7 enabled: enrichment.enabled = true  (20 prefetches, hit_rate 70.0% ≥ 60%)";
    assert_eq!(said(&tools, ""), [expected]);
    let new = written(&tools, "");
    assert_eq!(state(&new, "Read"), (true, None));
    let expected = "R7 ok: enrichment already enabled (20 prefetches, hit_rate 70.0% ≥ 60%)";
    assert_eq!(said(&tools, &new), [expected]);
}

#[test]
fn five_of_five_are_too_few() {
    assert_eq!(said(&[tool("Read", 5, 5)], ""), ["R7 skip: only 5 prefetches recorded (need ≥ 10)"]);
    assert_eq!(written(&[tool("Read", 5, 5)], "# mine\n"), "# mine\n");
}

#[test]
fn one_bad_tool_holds_the_planner_though_the_other_is_good() {
    let tools = [tool("Bad", 12, 2), tool("Good", 15, 12)];
    let expected = [
        "R7 disabled: [tools.\"Bad\"].speculate = false  (12 prefetches, hit_rate 16.7% < 50%)",
        "R7 hold: per-tool disables active: Bad (27 prefetches)",
    ];
    assert_eq!(said(&tools, ""), expected);
    let new = written(&tools, "");
    assert_eq!((state(&new, "Bad"), state(&new, "Good")), ((false, Some(false)), (false, None)));
}

#[test]
fn every_line_says_what_becomes_of_the_file() {
    let bad = [tool("Bad", 12, 2), tool("Good", 15, 12)];
    let [forbidden, held] = ["this tool is not fetched ahead any more", "the planner stays as it is, on or off"];
    assert_eq!(meant(&bad, ""), [forbidden, held]);
    let good = [tool("Read", 20, 14)];
    assert_eq!(meant(&good, ""), ["the planner is switched on"]);
    assert_eq!(meant(&good, &written(&good, "")), ["nothing changes"]);
    assert_eq!(meant(&[tool("Read", 5, 5)], ""), ["nothing changes"]);
}

// --- Thresholds ------------------------------------------------------------------------------------------------------

#[test]
fn a_tool_is_judged_from_ten_on_and_half_is_enough_for_it() {
    let forbidden = |prefetches, used| state(&written(&[tool("X", prefetches, used)], ""), "X").1 == Some(false);
    for (prefetches, used, expected) in [(10, 4, true), (10, 5, false), (9, 0, false), (1000, 499, true)] {
        assert_eq!(forbidden(prefetches, used), expected, "{used} of {prefetches}");
    }
}

#[test]
fn the_planner_needs_six_in_ten_of_all_tools_together() {
    let on = |tools: &[ToolCosts]| state(&written(tools, ""), "X").0;
    assert!(on(&[tool("X", 10, 6)]));
    assert!(!on(&[tool("X", 10, 5)]) && !on(&[tool("X", 1000, 599)]));
    // No tool has ten of its own.
    assert!(on(&[tool("X", 5, 2), tool("Y", 5, 4)]));
    assert!(!on(&[tool("X", 5, 2), tool("Y", 4, 4)]));
    let expected = "R7 hold: global hit_rate 50.0% < 60% (10 prefetches)";
    assert_eq!(said(&[tool("X", 10, 5)], ""), [expected]);
}

#[test]
fn prefetches_that_nobody_judged_are_no_misses() {
    let partly = |all, judged, used| ToolCosts { prefetches_judged: judged, ..tool("X", all, used) };
    // 6 of 30 would be a fifth.
    let expected = "R7 enabled: enrichment.enabled = true  (10 of 30 prefetches judged, `devboy annotate` judges the \
                    others, hit_rate 60.0% ≥ 60%)";
    assert_eq!(said(&[partly(30, 10, 6)], ""), [expected]);
    for judged in [0, 9] {
        let expected =
            format!("R7 skip: only {judged} of 30 prefetches judged (need ≥ 10; `devboy annotate` judges them)");
        assert_eq!(said(&[partly(30, judged, 0)], ""), [expected]);
    }
}

#[test]
fn the_interval_stands_in_the_evidence() {
    let findings = spoken(&[tool("X", 12, 3)], "");
    let share = findings[0].evidence.share.unwrap();
    assert_eq!((share.k, share.n, findings[0].evidence.n), (3, 12, 12));
    // Wilson, by hand: (0.25 + 1.96²/24 ± 1.96 √(0.1875/12 + 1.96²/576)) / (1 + 1.96²/12).
    assert!((share.lower - 0.0889).abs() < 1e-4 && (share.upper - 0.5323).abs() < 1e-4, "{share:?}");
    assert!(findings[0].evidence.counts.ends_with("\n3 of 12 judged prefetches were used"));
    assert_eq!(
        findings[0].evidence.threshold.as_deref(),
        Some("rules/r7_speculation.toml:9 asks for tool_share_min = 0.5")
    );
}

/// One that comes too late is used, and its call ran twice.
#[test]
fn prefetches_that_spared_no_more_than_they_cost_switch_nothing_on() {
    let timed = |raced, won| [ToolCosts { prefetches_raced: raced, prefetches_won: won, ..tool("Read", 20, 20) }];
    let expected = "R7 hold: of 20 prefetches that were timed 10 spared a call, 10 ran for nothing or twice";
    assert_eq!(said(&timed(20, 10), ""), [expected]);
    assert!(said(&timed(20, 11), "")[0].starts_with("R7 enabled: "));
    assert!(said(&timed(0, 0), "")[0].starts_with("R7 enabled: "), "nobody timed them");
    let on = "schema_version = 4\n\n[enrichment]\nenabled = true\n";
    assert!(said(&timed(20, 0), on)[0].starts_with("R7 ok: "));
}

// --- What is written -------------------------------------------------------------------------------------------------

#[test]
fn a_new_block_says_what_the_annotation_says_and_one_key_more() {
    let speaking = ["Read", "Grep", "Glob", "Edit", "WebSearch", "WebFetch", "ToolSearch", "mcp__gitlab__get_issues"];
    for name in speaking {
        let shipped = SHIPPED.of(name).unwrap().model;
        let new = written(&[tool(name, 12, 3)], "");
        let held = Held::new(&new).settings;
        let expected = ToolModel { speculate: Some(false), ..shipped };
        assert_eq!(held.tools, [(name.to_owned(), expected)].into(), "{name}:\n{new}");
        let findings = settled(spoken(&[tool(name, 12, 3)], ""), "").findings;
        for finding in findings.iter().filter(|finding| finding.subject == name) {
            let Verdict::Propose(delta) = &finding.verdict else { panic!("{finding:?}") };
            let is_copy = delta.key.leaf() != Some("speculate");
            assert_eq!(finding.evidence.basis == Basis::Shipped, is_copy, "{}", delta.key);
        }
    }
}

#[test]
fn a_tool_without_an_annotation_gets_the_one_key_and_nothing_else() {
    let new = written(&[tool("Odd", 12, 3)], "");
    let expected = ToolModel { speculate: Some(false), ..ToolModel::default() };
    assert_eq!(Held::new(&new).settings.tools, [("Odd".to_owned(), expected)].into());
    assert_eq!(new.matches(" = ").count(), 1 + new.matches("schema_version").count(), "{new}");
}

#[test]
fn a_block_that_is_there_gets_one_line_more() {
    let text = "schema_version = 4\n\n[tools.Read] # mine\nvalue_class = \"optional\" # sic\n";
    let new = written(&[tool("Read", 12, 3)], text);
    assert_eq!(new, format!("{text}speculate = false\n"));
    let allowed = text.to_owned() + "speculate = true # ever\n";
    let new = written(&[tool("Read", 12, 3)], &allowed);
    assert_eq!(new, text.to_owned() + "speculate = false # ever\n");
}

#[test]
fn nothing_is_switched_off_or_allowed_again() {
    let on = "schema_version = 4\n\n[enrichment]\nenabled = true\n";
    assert!(state(&written(&[tool("X", 12, 0)], on), "X").0);
    let off = "schema_version = 4\n\n[tools.X]\nspeculate = false\n";
    let new = written(&[tool("X", 20, 20)], off);
    assert_eq!(state(&new, "X"), (true, Some(false)));
}

#[test]
fn a_tool_that_its_annotation_forbids_already_gets_no_block() {
    let name = "ExitPlanMode";
    assert_eq!(SHIPPED.of(name).unwrap().model.speculate, Some(false));
    let findings = spoken(&[tool(name, 12, 0)], "");
    assert!(matches!(&findings[0].verdict, Verdict::Skip(why) if why.contains("forbids it already")), "{findings:?}");
    assert_eq!(written(&[tool(name, 12, 0)], ""), "");
}

#[test]
fn what_cannot_be_written_is_held_and_holds_the_planner_too() {
    let hidden = ToolCosts { key: None, ..tool("mcp__p1a2b3c__list", 12, 0) };
    let told = said(&[hidden, tool("X", 100, 99)], "");
    assert!(told[0].starts_with("R7 hold: [tools.\"mcp__p1a2b3c__list\"] only a pseudonym"), "{told:?}");
    assert_eq!(told[1], "R7 hold: per-tool disables active: mcp__p1a2b3c__list (112 prefetches)");
    let any = "[tools.\"*\"]\nvalue_class = \"optional\"\n";
    let told = said(&[tool("X", 12, 0)], any);
    assert!(told[0].starts_with("R7 hold: [tools.\"X\"] `tools.\"*\"` speaks for it"), "{told:?}");
    // The annotation of a tool counts before the block of all others.
    assert!(said(&[tool("Read", 12, 0)], any)[0].starts_with("R7 disabled: "));
}

#[test]
fn where_nothing_was_fetched_ahead_there_is_nothing_to_say() {
    assert!(spoken(&[], "").is_empty());
    assert!(spoken(&[ToolCosts { events: 90, calls: 90.0, ..tool("Read", 0, 0) }], "").is_empty());
}

#[test]
fn the_rule_speaks_only_when_asked_and_every_number_has_a_reason() {
    let observed = Observed { tools: vec![tool("Read", 12, 3)], ..Observed::default() };
    assert!(judged_when(&[Speaks::Events], &observed, "").iter().all(|finding| finding.rule != "R7"));
    let text = Data::default().text("r7_speculation.toml").unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let numbers: Vec<&[&str]> = lines.windows(2).filter(|pair| pair[1].contains(" = ")).collect();
    assert_eq!(numbers.len(), 3);
    for pair in numbers {
        assert!(pair[0].starts_with("# "), "{}", pair[1]);
        let key = pair[1].split(" = ").next().unwrap();
        assert!(RuleThresholds::of(RULE.file, &Data::default()).unwrap().cite(key).contains(" asks for "));
    }
    let page = Data::rule_page(RULE.file).unwrap();
    for part in ["### What it looks at", "### Why", "### When it stays quiet", "### Example", "```toml"] {
        assert!(page.contains(part), "{part}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 120));
}

/// Prefetches that stand for several others count as many: 15 of 24 were used, and 51 of the 132 that they stand for.
#[test]
fn sampled_prefetches_count_for_what_they_stand_for() {
    let unrecorded = UnrecordedPlans { judged: 108.0, cited: 36.0, ..UnrecordedPlans::default() };
    let sampled = ToolCosts { unrecorded, ..tool("WebFetch", 24, 15) };
    let told = said(&[sampled], "");
    assert!(told.iter().any(|line| line.contains("R7 disabled") && line.contains("hit_rate 38.6%")), "{told:?}");
    let told = said(&[tool("WebFetch", 24, 15)], "");
    assert!(told.iter().all(|line| !line.contains("R7 disabled")), "{told:?}");
}
