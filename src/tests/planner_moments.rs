//! Moments: what could be called ahead, what is known then, and what came of it.

use serde_json::json;

use super::script::{Scene, Script, path};
use crate::planner::known_tools::KnownTools;
use crate::planner::numbers::PlannerThresholds;
use crate::planner::opportunities::{Opportunity, OpportunityEnd, moments};

/// The moments from one tool to another.
fn of(scene: &Scene, from: &str, to: &str) -> Vec<Opportunity> {
    let models = scene.models("");
    let numbers = PlannerThresholds::shipped();
    let known = KnownTools::new(&models, scene.told(), numbers);
    let [from, to] = [from, to].map(|tool| known.names.find(tool).unwrap());
    let all = moments(scene.told(), &known, &numbers.judge, &Some);
    all.into_iter().filter(|moment| moment.from == from && moment.to == to).collect()
}

fn reads(scene: &Scene) -> Vec<Opportunity> {
    of(scene, "Grep", "Read")
}

#[test]
fn a_listed_file_that_is_read_next_is_hit_exactly_and_the_others_are_not() {
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs", "src/b.rs"]).read("src/b.rs")]);
    let found = reads(&scene);
    assert_eq!(found.iter().map(|m| (m.rank, m.new_rank, m.found)).collect::<Vec<_>>(), [(1, 1, 2), (2, 2, 2)]);
    assert_eq!(found[0].outcome, OpportunityEnd::None);
    assert_eq!(found[1].outcome, OpportunityEnd::Exact);
    assert!((found[0].probability - 0.354).abs() < 1e-9, "the link's probability");
}

#[test]
fn other_arguments_beside_the_projected_one_make_it_a_target_only() {
    let ranged = json!({ "file_path": path("src/a.rs"), "offset": 10, "limit": 20 });
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs"]).step(&[("Read", ranged, "text")])]);
    assert_eq!(reads(&scene)[0].outcome, OpportunityEnd::Target);
}

/// A call ahead would have failed as well.
#[test]
fn a_call_that_failed_is_no_hit() {
    let failed = |script: Script| script.failing("Read", json!({ "file_path": path("src/a.rs") }));
    let scene = Scene::of(&[failed(Script::new("s").grep(&["src/a.rs"]))]);
    assert_eq!(reads(&scene)[0].outcome, OpportunityEnd::None);
    let again = Scene::of(&[failed(Script::new("s").grep(&["src/a.rs"])).read("src/a.rs")]);
    assert_eq!(reads(&again)[0].outcome, OpportunityEnd::Exact, "made again, it came");
}

#[test]
fn a_window_is_counted_in_calls_and_holds_whole_messages() {
    let other = |n: u32| ("Bash", json!({ "command": format!("run {n}") }), "done");
    let parallel: Vec<_> = (0..4).map(other).collect();
    // Four parallel calls push the read out of three calls.
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs"]).step(&parallel).read("src/a.rs")]);
    assert_eq!(reads(&scene)[0].outcome, OpportunityEnd::None);
    // A message is in the window whole or not at all: it begins behind no other call, and its last one reads.
    let read = ("Read", json!({ "file_path": path("src/a.rs") }), "text");
    let at_once = |behind: u32| -> Vec<_> { (0..behind).map(other).chain([read.clone()]).collect() };
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs"]).step(&at_once(11))]);
    assert_eq!(reads(&scene)[0].outcome, OpportunityEnd::Exact);
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs"]).step(&parallel[..2]).step(&at_once(2))]);
    assert_eq!(reads(&scene)[0].outcome, OpportunityEnd::Exact, "two calls were made before its message");
    let scene =
        Scene::of(&[Script::new("s").grep(&["src/a.rs"]).step(&parallel[..3]).step(std::slice::from_ref(&read))]);
    assert_eq!(reads(&scene)[0].outcome, OpportunityEnd::None);
    let slow = (0..4).fold(Script::new("s").grep(&["src/a.rs"]), |script, n| script.step(&[other(n)]));
    let scene = Scene::of(&[slow.read("src/a.rs")]);
    assert_eq!(reads(&scene)[0].outcome, OpportunityEnd::None);
}

#[test]
fn calls_of_the_same_step_and_of_another_context_are_never_next() {
    let read = ("Read", json!({ "file_path": path("src/a.rs") }), "text");
    let grep = ("Grep", json!({ "pattern": "x" }), "src/a.rs");
    let scene = Scene::of(&[Script::new("s").step(&[grep, read.clone()])]);
    assert_eq!(reads(&scene)[0].outcome, OpportunityEnd::None);
    assert!(reads(&scene)[0].already_read, "its answer is there when the step is over");
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs"]).compact().read("src/a.rs")]);
    assert_eq!(reads(&scene)[0].outcome, OpportunityEnd::None, "a compaction ends the window");
}

#[test]
fn an_edit_of_the_file_ends_its_window_and_no_other() {
    let edit = |file: &str| ("Edit", json!({ "file_path": path(file), "old_string": "a", "new_string": "b" }), "done");
    let script = |file: &str| Script::new("s").grep(&["src/a.rs"]).step(&[edit(file)]).read("src/a.rs");
    assert_eq!(reads(&Scene::of(&[script("src/a.rs")]))[0].outcome, OpportunityEnd::None);
    assert_eq!(reads(&Scene::of(&[script("src/b.rs")]))[0].outcome, OpportunityEnd::Exact);
}

#[test]
fn what_was_read_before_and_what_lies_beside_it_is_known() {
    let scene = Scene::of(&[Script::new("s").read("src/a.rs").grep(&["src/a.rs", "src/b.rs", "web/c.rs"])]);
    let known: Vec<_> = reads(&scene).iter().map(|m| (m.rank, m.new_rank, m.already_read, m.same_parent)).collect();
    assert_eq!(known, [(1, 0, true, true), (2, 1, false, true), (3, 2, false, false)]);
}

#[test]
fn a_call_that_failed_sets_nothing_off_and_one_that_did_not_run_asks_for_nothing() {
    let scene = Scene::of(&[Script::new("s").failing("Grep", json!({ "pattern": "x" })).read("src/a.rs")]);
    assert_eq!(of(&scene, "Grep", "Read"), []);
}
