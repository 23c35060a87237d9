//! The walk over history: what is planned, raced, judged and booked. Comments name the published defect (`E1`) that a
//! test keeps out.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::script::{Scene, Script, path};
use crate::base::id::work;
use crate::mine::projections::ToldHistory;
use crate::mine::runnable::Runnable;
use crate::planner::bound::{OfferedValue, OfferedValues, bound};
use crate::planner::contexts::{Latencies, PlannerSplit};
use crate::planner::known_tools::KnownTools;
use crate::planner::numbers::PlannerThresholds;
use crate::planner::opportunities::{Odds, Opportunity, moments};
use crate::planner::prefetches::{Bound, DeclineReason, PlannerLedger, PrefetchEnd, PrefetchTally};
use crate::planner::report::effectiveness;
use crate::planner::value_models::ValueModels;
use crate::planner::walk::{JudgedPlanner, arguments_seen, judge};
use crate::settings::{Enrichment, SettingsFile, what_if};

fn enrichment(text: &str) -> Enrichment {
    let file = SettingsFile::parse("pipeline_config.toml".as_ref(), &format!("schema_version = 4\n{text}")).unwrap();
    what_if(&file, &[]).unwrap().enrichment
}

/// How a test replays.
struct Replay<'a> {
    scene: &'a Scene,
    models: ValueModels,
    enrichment: Enrichment,
    control: bool,
    runnable: Runnable,
}

impl<'a> Replay<'a> {
    fn of(scene: &'a Scene) -> Self {
        Self {
            scene,
            models: scene.models(""),
            enrichment: enrichment(""),
            control: false,
            runnable: Runnable::default(),
        }
    }

    fn user(self, text: &str) -> Self {
        Self { models: self.scene.models(text), ..self }
    }

    fn enrichment(self, text: &str) -> Self {
        Self { enrichment: enrichment(&format!("[enrichment]\n{text}")), ..self }
    }

    fn ledgers(&self, is_published: bool, odds: Option<&dyn Odds>) -> Vec<PlannerLedger> {
        let (told, numbers) = (self.scene.told(), PlannerThresholds::shipped());
        let all = vec![true; self.scene.history.sessions.len()];
        let known = KnownTools::new(&self.models, told, numbers);
        let offered = moments(told, &known, &numbers.judge, &|moment| Some(OfferedValue::of(&moment)));
        let donors = OfferedValues::new(told.history, offered);
        let policy = JudgedPlanner {
            models: &self.models,
            known: &known,
            is_published,
            probability_min: numbers.candidates.probability_min,
            odds,
            enrichment: &self.enrichment,
            latencies: &Latencies::measure(told, &all),
            arguments_seen: &arguments_seen(told, &all),
            runnable: &self.runnable,
            intents: None,
            control: self.control.then_some(&donors),
            numbers,
        };
        let ledgers = judge(told, &policy, &all);
        ledgers.iter().for_each(|ledger| assert!(ledger.balance(), "{ledger:?}"));
        ledgers
    }

    fn tally(&self) -> PrefetchTally {
        sum(&self.ledgers(false, None))
    }

    fn published(&self) -> PrefetchTally {
        sum(&self.ledgers(true, None))
    }
}

fn sum(ledgers: &[PlannerLedger]) -> PrefetchTally {
    ledgers.iter().fold(PrefetchTally::default(), |mut sum, ledger| {
        sum += &ledger.total;
        sum
    })
}

fn tally(script: Script) -> PrefetchTally {
    Replay::of(&Scene::of(&[script])).tally()
}

fn ends(tally: &PrefetchTally) -> BTreeMap<&'static str, u64> {
    PrefetchEnd::ALL
        .iter()
        .copied()
        .filter(|end| tally.ends[*end] > 0)
        .map(|end| (end.into_str(), tally.ends[end]))
        .collect()
}

fn edit(file: &str) -> (&'static str, Value, &'static str) {
    ("Edit", json!({ "file_path": path(file), "old_string": "a", "new_string": "b" }), "done")
}

fn shell(n: u32) -> (&'static str, Value, &'static str) {
    ("Bash", json!({ "command": format!("run {n}") }), "done")
}

/// A1, A2: what was fetched is found by tool and arguments, and a win is a call that did not run. E9: however short its
/// answer is.
#[test]
fn a_file_that_is_fetched_and_then_read_is_won() {
    let found = tally(Script::new("s").grep(&["src/a.rs"]).read("src/a.rs"));
    assert_eq!(ends(&found), BTreeMap::from([("won", 1)]));
    assert_eq!((found.near.exact, found.far.exact, found.steps.exact), (1, 1, 1));
    assert_eq!((found.calls_saved(), found.calls_added()), (1, 0));
    assert_eq!(found.spared_ms, 1000, "the agent's own call took a second");
}

#[test]
fn as_published_a_prefetch_that_is_won_spares_nothing() {
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs"]).read("src/a.rs")]);
    let found = Replay::of(&scene).published();
    assert!(found.ends[PrefetchEnd::Won] > 0, "{found:?}");
    assert_eq!(
        (found.spared_ms, found.unused_tokens),
        (0, found.predicted_tokens),
        "the agent's own call runs all the same"
    );
}

/// A7: of text it takes lines for paths, whatever they say and however often.
#[test]
fn as_published_every_line_is_a_path() {
    let planned = |tool: &str, answer: &str| {
        let script = Script::new("s").step(&[(tool, json!({ "pattern": "x" }), answer)]).read("src/a.rs");
        ends(&Replay::of(&Scene::of(&[script])).published())
    };
    let [a, b] = ["src/a.rs", "src/b.rs"].map(path);
    assert_eq!(planned("Glob", "No files found"), BTreeMap::from([("wasted", 1)]));
    let twice = planned("Glob", &format!("  {a}\n\n{a}\n{b}\nsrc/c.rs"));
    assert_eq!(twice, BTreeMap::from([("already_fetched", 1), ("wasted", 1), ("won", 1)]));
    assert_eq!(planned("Glob", &json!([a, b]).to_string()), BTreeMap::from([("wasted", 1)]));
    let header = planned("Grep", &format!("Found 3 files\n{a}\n{b}\nsrc/c.rs"));
    assert_eq!(header, BTreeMap::from([("wasted", 2), ("won", 1)]));
    let drive = planned("Grep", &format!("C:\\p\\q.rs:3:x\n{a}:1:y\n{a}:2:z"));
    assert_eq!(drive, BTreeMap::from([("wasted", 1), ("won", 1)]));
}

/// D2: the race runs against the clock of the log.
#[test]
fn a_prefetch_that_the_log_leaves_no_time_for_is_late() {
    // Reads take a second, and the next one is asked for as soon as the search has answered.
    let script = Script::new("s").read("src/x.rs").grep(&["src/a.rs"]).pause(-9).read("src/a.rs");
    let scene = Scene::of(&[script]);
    let hurried = Replay::of(&scene).enrichment("prefetch_timeout_ms = 0").tally();
    assert_eq!(ends(&hurried), BTreeMap::from([("late", 1)]));
    assert_eq!((hurried.near.exact, hurried.calls_saved(), hurried.calls_added()), (1, 0, 1));
    // D4: whoever waits for it pays with time.
    let patient = Replay::of(&scene).enrichment("prefetch_timeout_ms = 5000").tally();
    assert_eq!(ends(&patient), BTreeMap::from([("won", 1)]));
    assert_eq!((hurried.waited_ms, patient.waited_ms), (0, 1000));
}

/// E1: one organic call credits one prefetch, and the same tool with other arguments is no hit.
#[test]
fn one_read_credits_one_prefetch_and_a_fourth_file_credits_none() {
    let script = || Script::new("s").grep(&["src/a.rs", "src/b.rs", "src/c.rs"]);
    let found = tally(script().read("src/d.rs"));
    assert_eq!((found.sent(), found.near.exact, found.near.target, found.near.name_only), (3, 0, 0, 1));
    assert_eq!(found.ends[PrefetchEnd::Wasted], 3);
    let found = tally(script().read("src/b.rs"));
    assert_eq!((found.near.exact, found.near.name_only), (1, 1));
    assert_eq!(ends(&found), BTreeMap::from([("wasted", 2), ("won", 1)]));
}

/// E1: the published count, for comparison, credits every one of them.
#[test]
fn the_published_count_credits_all_prefetches_of_the_tool() {
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs", "src/b.rs"]).read("src/d.rs")]);
    assert_eq!(Replay::of(&scene).tally().cited, 2);
}

/// E2: windows count the agent's calls; the published one counts prefetches, too.
#[test]
fn prefetches_take_no_room_in_the_window_but_in_the_published_one() {
    let script = Script::new("s").grep(&["src/a.rs", "src/b.rs", "src/c.rs"]).step(&[shell(1)]).step(&[shell(2)]);
    let found = tally(script.read("src/a.rs"));
    assert_eq!(found.near.exact, 1, "the third call of the agent");
    assert_eq!(found.cited, 1, "only the last of three prefetches has it among its next three events");
}

#[test]
fn a_range_of_the_file_is_a_target_and_no_hit() {
    let ranged = json!({ "file_path": path("src/a.rs"), "offset": 5 });
    let found = tally(Script::new("s").grep(&["src/a.rs"]).step(&[("Read", ranged, "text")]));
    assert_eq!((found.near.exact, found.near.target), (0, 1));
    assert_eq!(ends(&found), BTreeMap::from([("target_only", 1)]));
    assert_eq!((found.calls_saved(), found.calls_added()), (0, 1));
    assert_eq!(found.answers_known, 0, "the answer to other arguments is another one");
}

/// A5: a change counts whatever the size of its answer.
#[test]
fn an_edit_makes_the_fetched_file_stale_and_no_other_one() {
    let script = |edited: &str| Script::new("s").grep(&["src/a.rs"]).step(&[edit(edited)]).read("src/a.rs");
    assert_eq!(ends(&tally(script("src/a.rs"))), BTreeMap::from([("stale", 1)]));
    assert_eq!(ends(&tally(script("src/b.rs"))), BTreeMap::from([("won", 1)]));
}

/// What an edit makes stale is looked up by its file, however much was fetched.
#[test]
fn edits_of_other_files_look_at_no_prefetch() {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build().unwrap();
    let steps = |size: usize| {
        let mut script = Script::new("s");
        for at in 0..size {
            script = script.grep(&[&format!("src/a{at}.rs")]);
        }
        for at in 0..size {
            script = script.step(&[edit(&format!("src/b{at}.rs"))]);
        }
        let mut found = PrefetchTally::default();
        let steps = work::of(|| found = pool.install(|| tally(script)));
        assert!(!ends(&found).contains_key("stale"));
        steps
    };
    let [few, many] = [25, 100].map(steps);
    assert!(many < 6 * few, "{few} steps for 25, {many} for 100");
}

/// F6: a shell may have changed the file; that is counted and ends no hit.
#[test]
fn a_hit_across_a_shell_call_is_counted_apart() {
    let found = tally(Script::new("s").grep(&["src/a.rs"]).step(&[shell(1)]).read("src/a.rs"));
    assert_eq!((found.near.exact, found.across_shell), (1, 1));
    assert_eq!(tally(Script::new("s").grep(&["src/a.rs"]).read("src/a.rs")).across_shell, 0);
}

/// C10: what stands in the way of a prefetch is the same file, not the same tool.
#[test]
fn what_was_read_before_is_not_fetched_and_another_file_is() {
    let found = tally(Script::new("s").read("src/a.rs").grep(&["src/a.rs", "src/b.rs"]).read("src/b.rs"));
    assert_eq!((found.sent(), found.held[DeclineReason::AlreadyRead], found.near.exact), (1, 1, 1));
    // As published one read suppresses all others.
    let scene = Scene::of(&[Script::new("s").read("src/a.rs").grep(&["src/b.rs"]).read("src/b.rs")]);
    assert_eq!(Replay::of(&scene).published().sent(), 0);
}

/// C13: a link back to the same tool is a candidate like any other.
#[test]
fn a_tool_may_be_followed_by_itself_with_another_argument() {
    let user = "[[tools.mcp__x__page.follow_up]]\ntool = \"mcp__x__page\"\nprobability = 0.9\nprojection = \"next\"\n\
                projection_arg = \"id\"\n[tools.mcp__x__page]\nside_effect_class = \"read_only\"\n";
    let page = |id: &str, next: &str| {
        ("mcp__x__page", json!({ "id": id }), format!("{{\"next\":\"{next}\",\"text\":\"so on and so forth\"}}"))
    };
    let script = ["page-1", "page-2", "page-3"].windows(2).fold(Script::new("s"), |script, pair| {
        let (tool, input, answer) = page(pair[0], pair[1]);
        script.step(&[(tool, input, &answer)])
    });
    let scene = Scene::of(&[script]);
    let found = Replay::of(&scene).user(user).tally();
    assert_eq!((found.sent(), found.near.exact), (2, 1), "page 3 is never asked for");
}

/// B4, B6: JSON is read as JSON, and an argument that the tool was never seen to take is not planned.
#[test]
fn links_are_followed_through_json_into_arguments_that_were_seen() {
    let user = |argument: &str| {
        format!(
            "[tools.mcp__x__get]\nside_effect_class = \"read_only\"\n[[tools.mcp__x__list.follow_up]]\n\
             tool = \"mcp__x__get\"\nprobability = 0.9\nprojection = \"iid\"\nprojection_arg = \"{argument}\"\n"
        )
    };
    let list =
        ("mcp__x__list", json!({ "state": "open" }), r#"[{"iid":4711,"title":"a b"},{"iid":4712,"title":"c d"}]"#);
    let get = ("mcp__x__get", json!({ "key": 4711 }), r#"{"text":"so on"}"#);
    let scene = Scene::of(&[Script::new("s").step(&[list]).step(&[get])]);
    let right = Replay::of(&scene).user(&user("key")).tally();
    assert_eq!((right.sent(), right.near.exact), (2, 1));
    let wrong = Replay::of(&scene).user(&user("merge_request_id")).tally();
    assert_eq!((wrong.sent(), wrong.held[DeclineReason::UnknownArgument]), (0, 2));
}

#[test]
fn two_links_to_one_tool_with_different_arguments_are_two_calls() {
    let link = |argument: &str| {
        format!(
            "[[tools.mcp__x__list.follow_up]]\ntool = \"mcp__x__get\"\nprobability = 0.9\nprojection = \"iid\"\n\
             projection_arg = \"{argument}\"\n"
        )
    };
    let user = ["[tools.mcp__x__get]\nside_effect_class = \"read_only\"\n", &link("key"), &link("parent")].concat();
    let get = |argument: &str| ("mcp__x__get", json!({ argument: 4711 }), r#"{"text":"so on"}"#);
    let list = ("mcp__x__list", json!({ "state": "open" }), r#"[{"iid":4711,"title":"a b"}]"#);
    let scene = Scene::of(&[Script::new("s").step(&[list]).step(&[get("key"), get("parent")])]);
    let found = Replay::of(&scene).user(&user).tally();
    assert_eq!((found.planned(), found.sent(), found.near.exact), (2, 2, 2));
}

/// C3: no class is guaranteed a place. C8: every request is charged. C12: what does not fit is declined, with its reason, and looked at later.
#[test]
fn what_does_not_fit_the_budget_is_declined_and_found_to_be_needed() {
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs", "src/b.rs", "src/c.rs"]).read("src/c.rs")]);
    let all = Replay::of(&scene).tally();
    assert_eq!((all.sent(), all.declined()), (3, 0));
    let each = all.predicted_tokens / 3;
    let tight = Replay::of(&scene).enrichment(&format!("prefetch_budget_tokens = {}", 2 * each)).tally();
    assert_eq!((tight.sent(), tight.held[DeclineReason::Budget]), (2, 1));
    let needed = Replay::of(&scene).enrichment("prefetch_budget_tokens = 1").tally();
    assert_eq!(
        (needed.sent(), needed.held[DeclineReason::Budget], needed.late_exact[DeclineReason::Budget]),
        (0, 3, 1)
    );
    assert_eq!(needed.late_name[DeclineReason::Budget], 1, "one call shows one decline to be needed");
}

/// The published line alone counts recorded responses: it cuts a message apart, and what failed takes no room.
#[test]
fn the_published_line_counts_late_declines_by_responses() {
    let late = |script: Script| {
        let scene = Scene::of(&[script]);
        let found = Replay::of(&scene).enrichment("prefetch_budget_tokens = 1").tally();
        (found.late_name[DeclineReason::Budget], effectiveness(&found).late_invoked_after_decline)
    };
    let read = || ("Read", json!({ "file_path": path("src/a.rs") }), "     1→fn main() {}");
    let grep = || Script::new("s").grep(&["src/a.rs"]);
    let message: Vec<_> = (0..5).map(shell).chain([read()]).collect();
    assert_eq!(late(grep().step(&message)), (1, 0));
    let four: Vec<_> = (0..4).map(shell).collect();
    assert_eq!(late(grep().failing("Bash", json!({ "command": "run" })).step(&four).step(&[read()])), (0, 1));
}

#[test]
fn a_decline_that_is_needed_after_more_than_five_calls_does_not_count() {
    let late = |calls: u32| {
        let script = (0..calls).fold(Script::new("s").grep(&["src/a.rs"]), |script, n| script.step(&[shell(n)]));
        let scene = Scene::of(&[script.read("src/a.rs")]);
        Replay::of(&scene).enrichment("prefetch_budget_tokens = 1").tally().declined_needed()
    };
    assert_eq!((late(4), late(5)), (1, 0));
}

/// D5: the limit holds over everything in flight. D6: every skip is counted by its reason.
#[test]
fn more_than_the_parallel_limit_is_refused_and_counted() {
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs", "src/b.rs", "src/c.rs"])]);
    let found = Replay::of(&scene).enrichment("max_parallel_prefetches = 1").tally();
    assert_eq!((found.planned(), found.sent(), found.ends[PrefetchEnd::MaxParallelReached]), (3, 1, 2));
}

/// B3: hosts come from the value models; D5: over everything in flight.
#[test]
fn hosts_limit_calls_ahead() {
    let host = "[tools.Read]\nrate_limit_host = \"files.example\"\n";
    let grep = |n: u32| {
        let files: Vec<String> = (0..3).map(|file| format!("src/{n}_{file}.rs")).collect();
        ("Grep", json!({ "pattern": format!("word{n}") }), files.join("\n"))
    };
    let [(tool, one, files), (_, two, more)] = [grep(1), grep(2)];
    let scene = Scene::of(&[Script::new("s").step(&[(tool, one, &files), (tool, two, &more)])]);
    let limits = "max_parallel_prefetches = 10\nprefetch_timeout_ms = 0\n";
    let found = Replay::of(&scene).user(host).enrichment(limits).tally();
    assert_eq!((found.sent(), found.ends[PrefetchEnd::HostSaturated]), (4, 2));
    let free = Replay::of(&scene).user(host).enrichment(&format!("{limits}respect_rate_limits = false")).tally();
    assert_eq!((free.sent(), free.ends[PrefetchEnd::HostSaturated]), (6, 0));
}

#[test]
fn the_agents_own_calls_take_slots_of_a_host_however_it_is_spelled() {
    let user = "[tools.Read]\nrate_limit_host = \"Files.example\"\n";
    let read = |n: u32| ("Read", json!({ "file_path": path(&format!("src/own_{n}.rs")) }), "text");
    let [a, b] = ["src/a.rs", "src/b.rs"].map(path);
    let files = format!("{a}\n{b}");
    let mut calls: Vec<_> = (0..3).map(read).collect();
    calls.push(("Grep", json!({ "pattern": "word" }), &files));
    // The reads are sent when the shell has answered, and take a second from then on; the search has answered by then.
    let scene = Scene::of(&[Script::new("s").step(&[shell(1)]).pause(-10).step(&calls)]);
    let found = Replay::of(&scene).user(user).enrichment("prefetch_timeout_ms = 0\n").tally();
    assert_eq!((found.sent(), found.ends[PrefetchEnd::HostSaturated]), (1, 1), "three of four slots are taken");
}

#[test]
fn a_context_that_ends_cancels_what_is_on_its_way() {
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs"])]);
    let found = Replay::of(&scene).enrichment("prefetch_timeout_ms = 0").tally();
    assert_eq!(ends(&found), BTreeMap::from([("cancelled", 1)]));
    let found = Replay::of(&scene).tally();
    assert_eq!(ends(&found), BTreeMap::from([("wasted", 1)]), "it was waited for");
}

#[test]
fn a_compaction_ends_every_hit() {
    let found = tally(Script::new("s").grep(&["src/a.rs"]).compact().read("src/a.rs"));
    assert_eq!((found.near.exact, found.ends[PrefetchEnd::Won]), (0, 0));
}

#[test]
fn a_call_of_the_agent_that_fails_makes_its_prefetch_a_failure() {
    let script = Script::new("s").grep(&["src/a.rs"]).failing("Read", json!({ "file_path": path("src/a.rs") }));
    let found = tally(script);
    assert_eq!((ends(&found), found.near.exact), (BTreeMap::from([("failed", 1)]), 0));
}

/// Calls of one message have no order among each other, so that no window cuts a message apart: whatever place a read has in
/// its message, the hit, the decline, the bound and the chance level are the same.
#[test]
fn the_place_of_a_call_in_its_message_changes_nothing() {
    let read = || ("Read", json!({ "file_path": path("src/a.rs") }), "     1→fn main() {}");
    let scene = |place: usize| {
        let mut calls: Vec<_> = (0..12).map(shell).collect();
        calls.insert(place, read());
        Scene::of(&[Script::new("s").grep(&["src/a.rs"]).step(&calls)])
    };
    let figures = |place: usize| {
        let scene = scene(place);
        let (told, numbers, models) = (scene.told(), PlannerThresholds::shipped(), scene.models(""));
        let known = KnownTools::new(&models, told, numbers);
        let found = Replay::of(&scene).tally();
        let declined = Replay::of(&scene).enrichment("prefetch_budget_tokens = 1").tally();
        let bound = bound(told, &[known], numbers, &[true]);
        (found.near, found.far, found.name_by_chance, declined.declined_needed(), bound)
    };
    let first = figures(0);
    assert_eq!((first.0.exact, first.1.exact, first.3, first.4.reachable), (1, 1, 1, 1));
    assert!((first.2 - 1.0 / 14.0).abs() < 1e-9, "one window of 14 has a message behind it: {}", first.2);
    for place in [1, 4, 12] {
        assert_eq!(figures(place), first, "{place}");
    }
    // Messages in between are counted by their calls.
    let behind = |others: u32| {
        let others: Vec<_> = (0..others).map(shell).collect();
        tally(Script::new("s").grep(&["src/a.rs"]).step(&others).step(&[shell(99), read()]))
    };
    let exact = |others: u32| (behind(others).near.exact, behind(others).far.exact, behind(others).steps.exact);
    assert_eq!([exact(2), exact(3), exact(9), exact(10)], [(1, 1, 1), (0, 1, 1), (0, 1, 1), (0, 0, 1)]);
}

#[test]
fn values_of_other_sessions_hit_nothing() {
    let name = |session: u32, n: u32| format!("src/file_{session}_{n}.rs");
    let script = |session: u32| {
        (0..5).fold(Script::new(&format!("s{session}")), |script, n| {
            let file = name(session, n);
            script.grep(&[&file]).read(&file)
        })
    };
    let scene = Scene::of(&(0..6).map(script).collect::<Vec<_>>());
    let own = Replay::of(&scene).tally();
    assert_eq!((own.sent(), own.near.exact), (30, 30));
    let control = Replay { control: true, ..Replay::of(&scene) }.tally();
    assert!(control.sent() >= 25, "{control:?}");
    assert_eq!(control.near.exact, 0);
    assert!(control.near.name_only >= 25, "by name they all are hits");
}

#[test]
fn the_chance_level_is_the_share_of_windows_with_the_tool() {
    // Four calls: a search, a read, a shell call, a read. Windows of three calls: [r b r], [b r], [r], [].
    let script = Script::new("s").grep(&["src/a.rs"]).read("src/a.rs").step(&[shell(1)]).read("src/z.rs");
    assert!((tally(script).name_by_chance - 0.75).abs() < 1e-9);
}

/// E3, E4: a saved call is one that did not run, and no token is counted twice.
#[test]
fn tokens_are_cost_only_where_nobody_asked() {
    let found = tally(Script::new("s").grep(&["src/a.rs", "src/b.rs"]).read("src/a.rs"));
    assert_eq!(found.unused_tokens * 2, found.predicted_tokens);
    assert_eq!(found.hint_tokens, 0, "nothing is written into the context");
}

#[test]
fn an_overrun_is_known_only_where_the_agent_got_the_answer() {
    let long = "     1→line\n".repeat(4000);
    let read = ("Read", json!({ "file_path": path("src/a.rs") }), long.as_str());
    let found = tally(Script::new("s").grep(&["src/a.rs", "src/b.rs"]).step(&[read]));
    assert_eq!((found.answers_known, found.overruns), (1, 1));
    assert!(found.error_tokens > 0);
    let found = tally(Script::new("s").grep(&["src/a.rs"]).read("src/a.rs"));
    assert_eq!((found.answers_known, found.overruns), (1, 0));
    assert!(found.error_tokens < 0);
}

/// A3, A4: the published trap refuses whatever is asked; the improved one only the very same empty question.
#[test]
fn refusals_are_bound_to_the_question_and_wrong_ones_are_counted() {
    let user = "[tools.ToolSearch]\nfail_fast_after_n = 2\nside_effect_class = \"read_only\"\n";
    let ask = |query: &str, answer: &'static str| ("ToolSearch", json!({ "query": query }), answer);
    let script = |queries: &[(&str, &'static str)]| {
        queries.iter().fold(Script::new("s"), |script, (query, answer)| script.step(&[ask(query, answer)]))
    };
    let found = "a tool that does what you asked for";
    let scene = Scene::of(&[script(&[("one", ""), ("two", ""), ("three", found), ("four", found)])]);
    let published = Replay::of(&scene).user(user).published();
    assert_eq!((published.refused, published.refused_wrongly, published.refused_tokens), (2, 2, 80));
    let improved = Replay::of(&scene).user(user).tally();
    assert_eq!((improved.refused, improved.refused_wrongly), (0, 0));
    let scene = Scene::of(&[script(&[("same", ""), ("same", ""), ("same", ""), ("same", "")])]);
    let improved = Replay::of(&scene).user(user).tally();
    assert_eq!(
        (improved.refused, improved.refused_wrongly, improved.calls_saved()),
        (1, 0, 1),
        "the fourth is let through"
    );
}

/// A probability for every moment.
struct OnlyFirst;

impl Odds for OnlyFirst {
    fn of(&self, moment: &Opportunity) -> Option<f64> {
        Some(if moment.new_rank == 1 { 0.9 } else { 0.1 })
    }
}

#[test]
fn another_source_of_probabilities_decides_call_by_call() {
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs", "src/b.rs"]).read("src/a.rs")]);
    let found = sum(&Replay::of(&scene).ledgers(false, Some(&OnlyFirst)));
    assert_eq!((found.sent(), found.near.exact, found.held[DeclineReason::LowProbability]), (1, 1, 1));
}

#[test]
fn a_mutating_tool_is_never_called_ahead_whatever_the_links_say() {
    let user = "[[tools.Grep.follow_up]]\ntool = \"Edit\"\nprobability = 1.0\nprojection = \"path\"\n\
                projection_arg = \"file_path\"\n[tools.Edit]\nspeculate = true\n";
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs"]).step(&[edit("src/a.rs")])]);
    let found = Replay::of(&scene).user(user).tally();
    assert_eq!((found.planned(), found.held[DeclineReason::NotSpeculatable]), (0, 1));
}

#[test]
fn the_bound_counts_what_the_answers_could_have_told() {
    let ranged = |file: &str| ("Read", json!({ "file_path": path(file), "limit": 9 }), "text");
    let script = Script::new("s")
        .grep(&["src/a.rs", "src/b.rs", "src/c.rs"])
        .read("src/a.rs")
        .read("src/a.rs")
        .step(&[ranged("src/b.rs")])
        .read("src/c.rs")
        .read("src/unknown.rs");
    let scene = Scene::of(&[script]);
    let (models, numbers) = (scene.models(""), PlannerThresholds::shipped());
    let known = KnownTools::new(&models, scene.told(), numbers);
    let found = bound(scene.told(), &[known], numbers, &[true]);
    let expected = Bound { calls: 6, speculatable: 6, repeats: 1, listed: 3, listed_whole: 2, reachable: 1 };
    assert_eq!(found, expected, "c is read four calls after the search");
}

#[test]
fn no_planner_hits_more_than_the_bound() {
    let script =
        Script::new("s").failing("Read", json!({ "file_path": path("src/a.rs") })).grep(&["src/a.rs"]).read("src/a.rs");
    let scene = Scene::of(&[script]);
    assert_eq!(Replay::of(&scene).tally().near.exact, 1, "a call that failed is not known");
    let numbers = PlannerThresholds::shipped();
    let models = [scene.models("[tools.Read]\nspeculate = false\n"), scene.models("")];
    let known = models.each_ref().map(|models| KnownTools::new(models, scene.told(), numbers));
    assert_eq!(bound(scene.told(), &known[..1], numbers, &[true]).reachable, 0);
    assert_eq!(bound(scene.told(), &known, numbers, &[true]).reachable, 1, "what one planner may call ahead counts");
}

#[test]
fn sessions_that_are_not_wanted_are_not_judged() {
    let script = |name: &str| Script::new(name).grep(&["src/a.rs"]).read("src/a.rs");
    let scene = Scene::of(&[script("one"), script("two")]);
    let found: BTreeSet<u64> =
        Replay::of(&scene).ledgers(false, None).iter().map(|ledger| ledger.total.sent()).collect();
    assert_eq!(found, BTreeSet::from([1]));
}

/// C9: an answer is used only as long as it is fresh.
#[test]
fn an_answer_that_grew_too_old_is_no_hit() {
    let scene = Scene::of(&[Script::new("s").grep(&["src/a.rs"]).read("src/a.rs")]);
    let with = |ttl: u32| {
        let user =
            format!("[tools.Read]\nside_effect_class = \"read_only\"\ncost_model = {{ freshness_ttl_s = {ttl} }}\n");
        let found = Replay::of(&scene).user(&user).tally();
        (ends(&found), found.near.exact)
    };
    assert_eq!(with(60), (BTreeMap::from([("won", 1)]), 1));
    assert_eq!(with(5), (BTreeMap::from([("stale", 1)]), 0), "it was fetched eight seconds before");
}

/// Fetched again after it grew too old: what the agent asks for is the later answer, near as it is.
#[test]
fn what_is_fetched_anew_is_what_is_hit() {
    let user = "[tools.Read]\nside_effect_class = \"read_only\"\ncost_model = { freshness_ttl_s = 60 }\n";
    let shells = (0..4).fold(Script::new("s").grep(&["src/a.rs"]), |script, n| script.step(&[shell(n)]));
    let scene = Scene::of(&[shells.pause(100).grep(&["src/a.rs"]).read("src/a.rs")]);
    let found = Replay::of(&scene).user(user).tally();
    assert_eq!(ends(&found), BTreeMap::from([("stale", 1), ("won", 1)]));
    assert_eq!((found.near.exact, found.far.exact, found.across_shell), (1, 1, 0));
    assert!(found.spared_ms > 0, "how long the call took that did not run");
}

/// B1: what is learned from is a history of its own.
#[test]
fn a_part_of_the_sessions_tells_what_the_whole_tells_of_them() {
    let script = |name: &str, file: &str| Script::new(name).grep(&[file, "src/z.rs"]).read(file).read("src/z.rs");
    let scene = Scene::of(&[script("one", "src/a.rs"), script("two", "src/b.rs"), script("three", "src/c.rs")]);
    let (models, numbers) = (scene.models(""), PlannerThresholds::shipped());
    let of = |told: ToldHistory<'_>, wanted: &[bool]| {
        let known = KnownTools::new(&models, told, numbers);
        let found = moments(told, &known, &numbers.judge, &Some).into_iter();
        let found = found.filter(|moment| wanted.is_empty() || wanted[moment.session as usize]);
        found.map(|moment| (moment.value, moment.rank, moment.outcome)).collect::<Vec<_>>()
    };
    for chosen in [[true, false, true], [false, true, false], [true, true, true]] {
        let history = scene.history.of_sessions(&chosen);
        let part = ToldHistory { history: &history, ..scene.told() };
        assert_eq!(of(part, &[]), of(scene.told(), &chosen), "{chosen:?}");
    }
}

#[test]
fn the_earlier_sessions_are_learned_from() {
    let script = |name: &str, seconds: i32| Script::new(name).pause(seconds).grep(&["src/a.rs"]);
    let scene = Scene::of(&[script("a", 3000), script("b", 1000), script("c", 2000), script("d", 0)]);
    let starts: Vec<i64> = scene.history.sessions.iter().map(|session| session.ts_first).collect();
    let split = PlannerSplit::by_share(&scene.history, 0.7);
    let latest = |trains: bool| {
        let of = starts.iter().zip(&split.trains).filter(|(_, other)| **other == trains).map(|(start, _)| *start);
        of.collect::<BTreeSet<i64>>()
    };
    assert_eq!((latest(true).len(), latest(false).len()), (2, 2), "0.7 of four, cut");
    assert!(latest(true).last() < latest(false).first());
    assert_eq!(split.judged_from, latest(false).first().copied());
    let by_time = PlannerSplit::by_time(&scene.history, *latest(false).first().unwrap());
    assert_eq!(by_time, split);
}
