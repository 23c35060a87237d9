//! Findings of the page about a cache that does nothing: one that is never read, one that is off, and one that expires where
//! the model changes as well.

use serde_json::{Value, json};

use super::harness::Home;
use super::report_page::{OPUS, Told, finding, place, report};

const SONNET: &str = "claude-sonnet-4-5-20250929";
const INPUT: f64 = 5.0 / 1e6;
const WRITE: f64 = 6.25 / 1e6;
const READ: f64 = 0.5 / 1e6;

/// So many sessions of requests that follow each other at once, each with what it read and wrote.
fn home_of(sessions: u32, billed: &[(u64, u64)], change: impl Fn(&str) -> String) -> Home {
    let home = Home::new();
    for number in 0..sessions {
        let mut told = Told::new(&format!("s-{number}"), "/home/user/lantern", number * 43_200);
        billed.iter().for_each(|&(read, write)| _ = told.ask(OPUS, read, write, 100));
        told.text = change(&told.text);
        place(&home, &told);
    }
    home
}

/// The log with all input billed in full.
fn uncached(text: &str) -> String {
    let line = |line: &str| {
        let mut record: Value = serde_json::from_str(line).unwrap();
        let usage = &mut record["message"]["usage"];
        if usage.is_object() {
            let input =
                usage["cache_creation_input_tokens"].as_u64().unwrap() + usage["input_tokens"].as_u64().unwrap();
            *usage = json!({
                "input_tokens": input, "output_tokens": usage["output_tokens"],
                "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
            });
        }
        format!("{record}\n")
    };
    text.lines().map(line).collect()
}

#[test]
fn a_cache_that_is_never_read_is_told_with_all_that_it_costs() {
    let home = home_of(6, &[(0, 20_000), (0, 20_100), (0, 20_200), (0, 20_300)], str::to_owned);
    let page = report(&home, &[]);
    let found = finding(&page, "cache_never_read").unwrap_or_else(|| panic!("{page:#}"));
    assert_eq!((&found["count"], &found["basis"]), (&json!(18), &json!("billed")));
    let lost = 6.0 * (20_000.0 + 20_100.0 + 20_200.0) * (WRITE - READ);
    assert!((found["saved_usd"].as_f64().unwrap() - lost).abs() < 1e-3, "{lost}: {found:#}");
    // The same tokens are in no other finding of misses.
    let ids = page["findings"].as_array().unwrap().iter().map(|found| found["id"].as_str().unwrap());
    assert_eq!(ids.filter(|id| id.starts_with("miss_") || id.starts_with("old_")).collect::<Vec<_>>(), [""; 0]);
    let session = home.json(&["session", "s-0"]);
    let misses = session["requests"].as_array().unwrap().iter().filter(|request| request["miss"] != "");
    assert_eq!(misses.count(), 3);
}

#[test]
fn a_cache_that_is_read_once_is_lost_for_an_unknown_reason() {
    let home = home_of(6, &[(0, 20_000), (20_000, 100), (0, 20_200), (0, 20_300), (0, 20_400)], str::to_owned);
    let page = report(&home, &[]);
    assert!(finding(&page, "cache_never_read").is_none(), "{page:#}");
    let found = &page["nothing_to_set"][0];
    assert_eq!((&found["id"], &found["count"]), (&json!("miss_unknown_at_prompt"), &json!(18)), "{page:#}");
}

/// What stands in front of the conversation is found each time: something else is lost.
#[test]
fn a_cache_of_which_the_static_prefix_is_read_is_read() {
    let home = home_of(6, &[(0, 20_000), (9_000, 11_200), (9_000, 11_300), (9_000, 11_400)], str::to_owned);
    let page = report(&home, &[]);
    assert!(finding(&page, "cache_never_read").is_none(), "{page:#}");
    assert_eq!(page["nothing_to_set"][0]["count"], 18, "{page:#}");
}

#[test]
fn a_first_request_too_short_to_be_cached_hides_nothing() {
    let home = home_of(6, &[(0, 0), (0, 20_000), (0, 20_100), (0, 20_200), (0, 20_300)], str::to_owned);
    let page = report(&home, &[]);
    let found = finding(&page, "cache_never_read").unwrap_or_else(|| panic!("{page:#}"));
    assert_eq!(found["count"], 18, "{found:#}");
}

#[test]
fn a_cache_that_is_on_again_is_no_finding() {
    let home = home_of(6, &[(0, 20_000), (0, 20_100), (0, 20_200)], uncached);
    for number in 6..16 {
        let mut told = Told::new(&format!("s-{number}"), "/home/user/lantern", number * 43_200);
        [(0, 20_000), (20_000, 100), (20_100, 100)]
            .iter()
            .for_each(|&(read, write)| _ = told.ask(OPUS, read, write, 100));
        place(&home, &told);
    }
    let page = report(&home, &[]);
    assert!(finding(&page, "cache_never_written").is_none(), "{page:#}");
}

#[test]
fn a_cache_that_is_off_is_told_with_what_one_would_have_saved() {
    let home = home_of(6, &[(0, 20_000), (0, 20_100), (0, 20_200)], uncached);
    let page = report(&home, &[]);
    let found = finding(&page, "cache_never_written").unwrap_or_else(|| panic!("{page:#}"));
    assert_eq!((&found["count"], &found["basis"]), (&json!(12), &json!("replayed")));
    let (full, read) = (20_005.0 + 20_105.0 + 20_205.0, 20_005.0 + 20_105.0);
    let saved = 6.0 * (full * INPUT - read * READ - (full - read) * WRITE);
    assert!((found["saved_usd"].as_f64().unwrap() - saved).abs() < 1e-3, "{saved}: {found:#}");
    assert!(found["advice"].as_str().unwrap().contains("DISABLE_PROMPT_CACHING"), "{found:#}");
    assert!(finding(&page, "cache_never_read").is_none(), "{page:#}");
}

/// Short threads, short contexts, other models and threads that cached once say nothing.
#[test]
fn a_cache_that_may_be_on_is_no_finding() {
    let other = |text: &str| uncached(text).replace(OPUS, "glm-4.7");
    let homes = [
        home_of(6, &[(0, 20_000), (0, 20_100)], uncached),
        home_of(6, &[(0, 2_000), (0, 2_100), (0, 2_200), (0, 2_300)], uncached),
        home_of(6, &[(0, 20_000), (0, 20_100), (0, 20_200)], other),
        home_of(6, &[(0, 20_000), (20_000, 100), (20_100, 200), (20_300, 100)], str::to_owned),
    ];
    for home in homes {
        let page = report(&home, &[]);
        for id in ["cache_never_written", "cache_never_read"] {
            assert!(finding(&page, id).is_none(), "{page:#}");
        }
    }
}

/// The model is changed behind each pause: what expired is counted, and the change is blamed for no more than was paid again.
#[test]
fn pauses_behind_which_the_model_changes_are_counted_as_expired() {
    let home = Home::new();
    for number in 0..16 {
        let mut told = Told::new(&format!("s-{number}"), "/home/user/lantern", number * 43_200);
        told.ask(OPUS, 0, 60_000, 100);
        for _ in 0..3 {
            told.second += 700;
            told.ask(SONNET, 0, 60_000, 100);
            told.second += 700;
            told.ask(OPUS, 0, 60_000, 100);
        }
        place(&home, &told);
    }
    let page = report(&home, &[]);
    let long = finding(&page, "cache_lifetime_long").unwrap_or_else(|| panic!("{page:#}"));
    assert_eq!(long["count"], 96, "{long:#}");
    let swaps = finding(&page, "miss_model_swap").unwrap_or_else(|| panic!("{page:#}"));
    assert_eq!(swaps["count"], 96, "{swaps:#}");
    let session = home.run(&["session", "s-0"]).out;
    assert!(session.contains("cache miss: model changed, and it had expired"), "{session}");
}
