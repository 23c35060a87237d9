//! What the reports of policies say about what they do not know: prices, the bill, numbers that cannot be.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::harness::Home;
use super::log_builder::{assistant, user};
use super::report_page::home_with_large_contexts;
use super::shipped_sheets::anchored_sizes;
use super::timeline_builder::Story;
use crate::base::names::Names;
use crate::logs::timeline::requests::Timeline;
use crate::logs::trace::NO_TIME;
use crate::whatif::prompt_cache::params::{CacheLifetime, CacheRules, Params, TtlPolicy};
use crate::whatif::sim::cost::{Cost, Spent};
use crate::whatif::sim::money::{Prices, Tariff};
use crate::whatif::sim::outcome::outcome;
use crate::whatif::sim::run::{Extra, Priced, SimulatedRun};
use crate::whatif::sim::simulator::Simulator;
use crate::whatif::sim::view::ExtraCall;

const POLICIES: [&str; 6] = ["prompt-cache", "compaction", "history-trim", "tool-filter", "pick-tools", "all"];

/// One session: its model, the tokens of its first context, and of each request after it.
type Told = (usize, u64, Vec<u64>);

/// The second has no price, the third none for writes of an hour behind long prompts.
const MODELS: [&str; 3] = ["claude-opus-4-5", "aurora-7-preview", "claude-sonnet-4"];

fn story(sessions: &[Told], is_told: impl Fn(&Told) -> bool) -> Timeline {
    let mut log = Story::new();
    for (number, told) in sessions.iter().enumerate() {
        let (model, first, rest) = told;
        log.at(100_000 * number as i64);
        if !is_told(told) {
            continue;
        }
        log.session(&format!("s{number}"), &format!("/p{number}")).hour().model(MODELS[*model]);
        log.human(40).ask(0, *first, 3);
        let mut cached = *first;
        for &grown in rest {
            log.says(30).wait(200).human(30).ask(cached, grown, 3);
            cached += grown;
        }
    }
    log.done()
}

/// Both sides of a change of lifetimes, and the tokens of all requests.
fn sides(timeline: &Timeline) -> (Cost, Cost, u64, u64) {
    let (cache, sizes) = (CacheRules::shipped(), anchored_sizes(timeline));
    let simulator = Simulator::new(timeline, &sizes, cache, Prices::shipped());
    let short = cache.with(Params { ttl: TtlPolicy::Always(CacheLifetime::FiveMinutes), ..cache.params });
    let found = outcome(timeline, &simulator.baseline(), &simulator.under(&short).baseline());
    let total = found.total;
    (total.baseline.cost, total.policy.cost, total.baseline.spent.prompt(), total.unpriced_requests)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn dollars_are_those_of_what_has_a_price_and_the_rest_is_counted(
        sessions in prop::collection::vec(
            (0..MODELS.len(), 5_000_u64..250_000, prop::collection::vec(1_u64..40_000, 0..5)), 1..6,
        ),
    ) {
        // A session of the third model is priced as long as no context is long.
        let longest = |(_, first, rest): &Told| first + rest.iter().sum::<u64>() + 3;
        let is_priced = |told: &Told| told.0 == 0 || (told.0 == 2 && longest(told) <= 200_000);
        let sessions: Vec<Told> =
            sessions.into_iter().filter(|told| told.0 != 2 || is_priced(told) || told.1 > 200_000).collect();
        let (before, after, tokens, requests) = sides(&story(&sessions, |_| true));
        let (priced_before, priced_after, priced_tokens, none) = sides(&story(&sessions, is_priced));
        prop_assert_eq!((before.nano_usd, after.nano_usd), (priced_before.nano_usd, priced_after.nano_usd));
        prop_assert_eq!((priced_before.unpriced_tokens, priced_after.unpriced_tokens, none), (0, 0, 0));
        prop_assert_eq!(priced_tokens + before.unpriced_tokens, tokens);
        prop_assert_eq!(before.unpriced_tokens, after.unpriced_tokens);
        let lacking = sessions.iter().filter(|told| !is_priced(told)).map(|told| 1 + told.2.len() as u64).sum::<u64>();
        prop_assert_eq!(requests, lacking);
        prop_assert_eq!(before.change_to(&after), if priced_before.nano_usd > 0 {
            priced_before.change_to(&priced_after)
        } else {
            before.units_change_to(&after)
        });
    }
}

/// A session of four requests with these numbers in its usage, and a compaction that claims them too.
fn log_with(session: &str, usage: &Value, tokens: &Value) -> String {
    let mut text = String::new();
    let mut parent: Option<String> = None;
    for turn in 0..4_u32 {
        let mut push = |name: &str, record: super::log_builder::Record, second: u32| {
            let uuid = format!("{name}-{session}-{turn}");
            text += &record.session(session).link(&uuid, parent.as_deref()).at(second).line();
            parent = Some(uuid);
        };
        push("human", user("", format!("Please look at part {turn}")), turn * 60);
        let odd = if turn == 2 {
            usage.clone()
        } else {
            json!({
                "input_tokens": 5, "output_tokens": 9, "cache_read_input_tokens": 900 * turn,
                "cache_creation_input_tokens": 20_000,
            })
        };
        let answer = [json!({ "type": "text", "text": "Done." })];
        let record = assistant(&format!("m-{session}-{turn}"), &answer).message("usage", odd);
        push("answer", record.message("model", "claude-opus-4-5"), turn * 60 + 5);
    }
    let boundary = json!({
        "type": "system", "subtype": "compact_boundary", "uuid": format!("b-{session}"), "parentUuid": null,
        "logicalParentUuid": parent, "sessionId": session, "timestamp": "2026-02-01T13:00:00.000Z",
        "compactMetadata": { "trigger": "auto", "preTokens": tokens },
    });
    text + &boundary.to_string() + "\n"
}

const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "4294967295",
    "4294967296",
    "1e12",
    "5000000000000000",
    "9007199254740992",
    "9007199254740993",
    "9223372036854775807",
    "18446744073709551615",
    "1e300",
    "-1",
];

fn number() -> impl Strategy<Value = Value> {
    prop::sample::select(NUMBERS.to_vec()).prop_map(|text| serde_json::from_str(text).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_number_of_a_log_stops_a_policy(
        input in number(), read in number(), written in number(), hour in number(), output in number(),
        before in number(), place in 0..POLICIES.len(), with_output in any::<bool>(),
    ) {
        let home = Home::new();
        let usage = json!({
            "input_tokens": input, "output_tokens": output, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation": { "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": hour },
        });
        home.write(".claude/projects/-home-user-lantern/one.jsonl", log_with("s-one", &usage, &before));
        let mut words = vec!["replay", "--policy", POLICIES[place], "--explain", "--per-session"];
        words.extend(with_output.then_some(["--include-output", "estimated"]).into_iter().flatten());
        for form in [&[][..], &["--format", "csv"], &["--json"]] {
            let outcome = home.run(&[&words, form].concat());
            prop_assert!(!outcome.out.is_empty(), "{words:?} {form:?}: {}", outcome.err);
        }
    }
}

#[test]
fn usage_that_nobody_was_billed_is_refused_by_name() {
    let home = Home::new();
    // Each number may be one; a prompt of both is none.
    let usage =
        json!({ "input_tokens": 3_000_000_000_u64, "cache_read_input_tokens": 3_000_000_000_u64, "output_tokens": 9 });
    home.write(".claude/projects/-home-user-lantern/one.jsonl", log_with("s-one", &usage, &json!(5)));
    for policy in ["compaction", "history-trim", "prompt-cache"] {
        let document = home.json(&["replay", "--policy", policy]);
        let report = &document["policies"][0];
        assert_eq!(report["input"]["skipped"]["usage_out_of_range"], 1, "{report}");
        assert!(report["notes"].to_string().contains("1 message with usage of more than"), "{}", report["notes"]);
        assert_eq!(report["billed"]["write_5m"], 60_000, "{}", report["billed"]);
    }
}

/// A main thread of so many turns, each with a prompt and an answer of some size; reads as they would be, but for every
/// `lost`-th, which reads the static prefix only.
fn thread(session: &str, start: u32, turns: u32, grown: u64, lost: u32) -> String {
    let mut text = String::new();
    let mut parent: Option<String> = None;
    let (mut cached, mut new) = (0_u64, 18_000_u64);
    for turn in 0..turns {
        let second = start + 120 * turn;
        let mut push = |name: &str, record: super::log_builder::Record, second: u32| {
            let uuid = format!("{name}-{session}-{turn}");
            text += &record.session(session).link(&uuid, parent.as_deref()).at(second).line();
            parent = Some(uuid);
        };
        push("human", user("", "word ".repeat(grown as usize / 2)), second);
        new += grown;
        let read = if lost > 0 && turn > 0 && turn % lost == 0 { 18_000 } else { cached };
        let written = cached + new - read;
        let usage = json!({
            "input_tokens": 5, "output_tokens": 400, "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "cache_creation": { "ephemeral_5m_input_tokens": 0, "ephemeral_1h_input_tokens": written },
        });
        (cached, new) = (cached + new, 0);
        let answer = [json!({ "type": "text", "text": "Done." })];
        let record = assistant(&format!("m-{session}-{turn}"), &answer).message("usage", usage);
        push("answer", record.message("model", "claude-opus-4-5"), second + 5);
    }
    text
}

/// Two projects of six sessions: contexts of the first grow far, in so many turns of so many tokens, those of the second do not.
fn two_projects(turns: u32, grown: u64, lost: u32) -> Home {
    let home = Home::new();
    for number in 0..6_u32 {
        let far = thread(&format!("far-{number}"), 40_000 * number, turns + number, grown, lost);
        home.write(&format!(".claude/projects/-home-user-far/far-{number}.jsonl"), cwd(&far, "/home/user/far"));
        let near = thread(&format!("near-{number}"), 40_000 * number + 20_000, 6, 600, lost);
        home.write(&format!(".claude/projects/-home-user-near/near-{number}.jsonl"), cwd(&near, "/home/user/near"));
    }
    home
}

/// The same records in a working directory.
fn cwd(lines: &str, directory: &str) -> String {
    let one = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        record["cwd"] = json!(directory);
        record.to_string() + "\n"
    };
    lines.lines().map(one).collect()
}

const SMALL_WINDOW: [&str; 14] = [
    "--set",
    "window=60000",
    "--set",
    "reserve_output=5000",
    "--set",
    "buffer=5000",
    "--set",
    "min_turns_between=2",
    "--set",
    "tail_keep_tokens=4000",
    "--set",
    "summary_tokens=500",
    "--set",
    "reattach_tokens=1000",
];

#[test]
fn the_project_in_which_a_policy_wins_is_named_in_every_form() {
    let home = two_projects(100, 1_000, 0);
    let words = [&["replay", "--policy", "compaction"], &SMALL_WINDOW[..]].concat();
    let document = home.json(&words);
    let cells = document["policies"][0]["cells"].as_array().unwrap().clone();
    let projects: Vec<&Value> = cells.iter().filter(|cell| cell["by"] == "project").collect();
    let clear: Vec<&&Value> = projects.iter().filter(|cell| cell["verdict"] == "cheaper").collect();
    assert_eq!((projects.len(), clear.len()), (2, 1), "{projects:?}");
    assert_eq!(clear[0]["sessions"], 6);
    let (change, upper) = (clear[0]["change"].as_f64().unwrap(), clear[0]["upper"].as_f64().unwrap());
    assert!(change <= upper && upper < -0.03, "{}", clear[0]);
    let name = clear[0]["name"].as_str().unwrap();
    let text = home.run(&[&words[..], &["--explain"]].concat()).out;
    assert!(
        !text.contains(&name[..12]) && text.contains("parts of these logs where it is clear"),
        "its name, no pseudonym: {text}"
    );
    let csv = home.run(&[&words[..], &["--format", "csv"]].concat()).out;
    let row = csv.lines().find(|line| line.contains(name)).unwrap();
    assert!(row.contains(",project,") && row.ends_with(",cheaper"), "{row}");
    let all = home.run(&["replay", "--policy", "all"]).out;
    assert!(!all.contains("careful: replayed unchanged"), "{all}");
}

#[test]
fn a_simulation_that_is_off_its_bar_says_so_first_and_decides_nothing_within_it() {
    let home = two_projects(36, 3_000, 3);
    let words = [&["replay", "--policy", "compaction"], &SMALL_WINDOW[..]].concat();
    let report = home.json(&words)["policies"][0].clone();
    let off = &report["baseline_vs_bill"];
    let error = off["cost_error"].as_f64().unwrap();
    assert_eq!(off["misses_bar"], error.abs() > off["cost_bar"].as_f64().unwrap());
    assert!(off["misses_bar"].as_bool().unwrap(), "{off}");
    let parts: f64 = off["parts"].as_array().unwrap().iter().map(|part| part["share_of_bill"].as_f64().unwrap()).sum();
    assert!((parts - error).abs() < 1e-9, "parts make {parts} of {error}");
    let lost = off["losses"].as_array().unwrap().iter().find(|lost| lost["place"] == "turn").unwrap().clone();
    assert!(lost["count"]["k"].as_u64().unwrap() > 50 && lost["lower"].as_f64() < lost["upper"].as_f64(), "{lost}");
    let change = report["delta"]["usd_pct"].as_f64().unwrap() / 100.0;
    assert_eq!(report["is_clear"], change.abs() > error.abs().max(0.03));
    for words in [words, vec!["replay", "--policy", "all"]] {
        let text = home.run(&words).out;
        assert!(text.lines().next().unwrap().starts_with("careful: replayed unchanged"), "{text}");
    }
}

#[test]
fn answers_that_count_are_in_every_table_line_and_file() {
    let home = two_projects(100, 1_000, 0);
    let with = |policy: &str| {
        home.json(&["replay", "--policy", policy, "--include-output", "estimated"])["policies"][0].clone()
    };
    let without = |policy: &str| home.json(&["replay", "--policy", policy])["policies"][0].clone();
    // 100 to 105 turns and 6, of 400 tokens at 25 dollars a million.
    let answers = f64::from((100..106).sum::<u32>() + 6 * 6) * 400.0 * 25e-6;
    let more =
        |a: &Value, b: &Value| assert!((a.as_f64().unwrap() - b.as_f64().unwrap() - answers).abs() < 1e-6, "{a} {b}");
    for policy in ["prompt-cache", "compaction", "history-trim"] {
        let (with, without) = (with(policy), without(policy));
        for side in ["billed", "baseline", "simulated"] {
            more(&with[side]["usd"], &without[side]["usd"]);
        }
        assert_eq!(with["baseline_vs_bill"], without["baseline_vs_bill"]);
    }
    let nano = |cost: &Value| json!(cost["nano_usd"].as_f64().unwrap() / 1e9);
    let (with_cache, without_cache) = (with("prompt-cache"), without("prompt-cache"));
    let found = |report: &Value| report["details"]["prompt-cache"]["prompt_cache"].clone();
    let (with_cache, without_cache) = (found(&with_cache), found(&without_cache));
    for total in ["billed", "uncached", "baseline", "simulated"] {
        more(&nano(&with_cache[total]["cost"]), &nano(&without_cache[total]["cost"]));
    }
    more(&nano(&with_cache["best_per_session"]["cost"]), &nano(&without_cache["best_per_session"]["cost"]));
    for (with, without) in with_cache["arms"].as_array().unwrap().iter().zip(without_cache["arms"].as_array().unwrap())
    {
        more(&nano(&with["total"]["cost"]), &nano(&without["total"]["cost"]));
    }
    let swept = |report: &Value| report["details"]["compaction"]["sweep"].as_array().unwrap().clone();
    let (with_sweep, without_sweep) = (swept(&with("compaction")), swept(&without("compaction")));
    assert!(!with_sweep.is_empty());
    for (with, without) in with_sweep.iter().zip(&without_sweep) {
        more(&nano(&with["cost"]), &nano(&without["cost"]));
    }
    let trimmed = |report: &Value| report["details"]["history-trim"]["variants"].as_array().unwrap().clone();
    for (with, without) in trimmed(&with("history-trim")).iter().zip(&trimmed(&without("history-trim"))) {
        more(&nano(&with["cached"]["policy"]), &nano(&without["cached"]["policy"]));
        more(&nano(&with["uncached"]["policy"]), &nano(&without["uncached"]["policy"]));
    }
}

#[test]
fn flags_about_a_run_reach_every_report_of_several() {
    let home = two_projects(100, 1_000, 0);
    let words = ["replay", "--policy", "compaction", "--compare", "history-trim", "--per-session", "--explain"];
    let text = home.run(&words).out;
    for title in ["by session", "how it is computed", "where approximations lean"] {
        assert_eq!(text.matches(title).count(), 2, "{title}: {text}");
    }
    let csv = home.run(&[&words[..], &["--format", "csv"]].concat()).out;
    assert_eq!(csv.lines().count(), 1 + 2 * 12, "{csv}");
    let json = home.json(&words);
    let sessions = |report: &Value| report["by"]["session"].as_object().unwrap().len();
    assert_eq!(json["policies"].as_array().unwrap().iter().map(sessions).sum::<usize>(), 24);
}

/// Requests that write their whole context and read nothing, as they do where the provider caches for nobody.
#[test]
fn a_share_of_nothing_is_no_zero_and_misses_its_bar_where_something_is_off() {
    let home = Home::new();
    let mut records = vec![user("u", "please go on").at(0)];
    for turn in 0..6_u32 {
        let usage =
            json!({ "input_tokens": 10, "output_tokens": 5, "cache_creation_input_tokens": 30_000 + 400 * turn });
        let call =
            json!({ "type": "tool_use", "id": format!("c{turn}"), "name": "Bash", "input": { "command": "ls" } });
        records.push(assistant(&format!("m{turn}"), &[call]).message("usage", usage).at(4 * turn + 2));
        records.push(super::log_builder::answers(&format!("c{turn}"), "z ".repeat(400)).at(4 * turn + 4));
    }
    let records: Vec<_> = records.into_iter().map(|record| record.session("s")).collect();
    home.write(".claude/projects/p/s.jsonl", super::log_builder::log(&records));
    let words = ["what-if", "prompt-cache"];
    let off = home.json(&words)["policies"][0]["baseline_vs_bill"].clone();
    assert_eq!((&off["wape_read"], &off["bias"]), (&Value::Null, &Value::Null), "{off}");
    let told = home.run(&[&words[..], &["--all", "--explain"]].concat()).out;
    assert!(told.contains(", its cache reads are n/a off (more than the 1 % allowed)"), "{told}");
    assert!(told.contains("- bias of the reads: n/a (more than the 1 % allowed)"), "{told}");
    let cells = |figure: &str| {
        let row = told.lines().find(|line| line.starts_with(&format!(" {figure} "))).unwrap();
        row.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).skip(2).collect::<Vec<_>>()
    };
    let requests = told.lines().find(|line| line.starts_with(" requests ")).unwrap();
    // The one session is held out or not, by its id; the side without it has nothing to be off.
    let is_held_out = !requests.trim_end().ends_with(" 0");
    let last = if is_held_out { "n/a, missed" } else { "–" };
    for figure in ["error of reads", "bias of reads"] {
        assert_eq!(cells(figure), ["n/a, missed", "n/a, missed", last], "{told}");
    }
    assert_eq!(cells("cost")[2] == "–", !is_held_out, "{told}");
    let weeks = told.lines().find(|line| line.starts_with(" weeks whose reads lay in the interval known before "));
    assert!(weeks.is_some_and(|row| row.contains("promised: 90 %")), "{told}");
    let pipeline = home.run(&["what-if", "pipeline", "--since", "2031-01-01", "--allow-empty"]).out;
    assert!(pipeline.contains("0 of their 0 tokens, n/a"), "{pipeline}");
    let compaction = home.json(&["what-if", "compaction"])["policies"][0]["details"]["compaction"].clone();
    assert_eq!(compaction["edit_ages"]["risk"][0]["is_met"], Value::Null, "{compaction}");
}

/// What holds for both sides moves the log as simulated away from the bill, and that is what is told.
#[test]
fn the_distance_to_the_bill_is_that_of_the_cache_that_was_set() {
    let home = home_with_large_contexts(8);
    let off = |more: &[&str]| {
        let told = home.json(&[&["what-if", "compaction"], more].concat());
        let policy = &told["policies"][0];
        let [simulated, billed] = ["baseline", "billed"].map(|side| policy[side]["usd"].as_f64().unwrap());
        (policy["baseline_vs_bill"]["cost_error"].as_f64().unwrap(), simulated / billed - 1.0)
    };
    let (told, real) = off(&["--set", "prompt-cache.min_cacheable=900000"]);
    assert!(real > 1.0 && (told - real).abs() < 0.1 * real, "{told} {real}");
    let (told, real) = off(&[]);
    assert!(told.abs() < 0.5 && real.abs() < 0.5, "{told} {real}");
}

/// A run of all requests is held for each setting that is tried.
#[test]
fn a_request_of_a_run_takes_little_room_and_loses_its_price_beside_one_without() {
    assert!(size_of::<Priced>() <= 32);
    let mut names = Names::default();
    let [known, unknown] = ["claude-opus-4-5", "aurora-7-preview"].map(|model| names.intern(model));
    let tariff = Tariff::new(Prices::shipped(), &names);
    let spent = Spent { read: 1, write_5m: 2, write_1h: 3, uncached: 4, output: u32::MAX.into() };
    let priced = |model| Priced::new(5, &spent, tariff.number(model, NO_TIME, spent.prompt()), 6);
    let run =
        |model| SimulatedRun { requests: vec![priced(model)], rates: tariff.all.clone(), ..SimulatedRun::default() };
    for model in [known, unknown] {
        let (run, cost) = (run(model), tariff.cost(model, NO_TIME, &spent));
        let one = run.requests[0];
        assert_eq!((one.request, one.spent(), run.cost_of(&one), one.shared()), (5, spent, cost, 6));
    }
    let cost = tariff.cost(known, NO_TIME, &spent);
    let with = run(known);
    let without = SimulatedRun { requests: run(unknown).requests, ..run(known) };
    assert!(cost.unpriced_tokens == 0 && without.cost().nano_usd == 0);
    let alike = SimulatedRun::priced_alike(&[&with, &without]);
    assert!(alike.iter().all(|run| run.total() == without.total()));
    // A call beside it is told without money as well, beside another one with it.
    let beside = |request| Extra { request, call: ExtraCall::default(), spent, cost };
    let with = SimulatedRun { extra: vec![beside(5), beside(9)], ..with };
    let alike = SimulatedRun::priced_alike(&[&with, &without]);
    let told: Vec<Extra> = alike[0].extra().collect();
    assert_eq!(told, [Extra { cost: cost.unpriced(&spent), ..beside(5) }, beside(9)]);
}
