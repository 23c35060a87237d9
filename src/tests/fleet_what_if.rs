//! What other settings would have cost, as it leaves and as it is pooled.

use serde_json::json;

use super::fleet::{SECRET, WEEK, limits, of_person, pool, put, row, rows};
use super::harness::Home;
use super::log_builder::*;
use crate::fleet::folder::place;
use crate::frames::contribution::{Count, read};

/// A session of some requests over a cache: after the third somebody was away for twenty minutes.
fn session(name: &str, requests: usize, day: &str) -> String {
    let (mut sent, mut text) = (0, String::new());
    for number in 0..requests {
        let id = format!("{name}-{number}");
        let is_cold = number == 0 || number == 3;
        let minutes = 2 * number + if number < 3 { 0 } else { 20 };
        let written = if is_cold { sent + 30_000 } else { 900 };
        let usage = json!({
            "input_tokens": 3, "output_tokens": 40, "cache_read_input_tokens": if is_cold { 0 } else { sent },
            "cache_creation_input_tokens": written,
            "cache_creation": { "ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0 },
        });
        sent = if is_cold { written } else { sent + written };
        let at = |record: Record, seconds: usize| {
            record.session(name).set("timestamp", format!("{day}T10:{minutes:02}:{seconds:02}.000Z"))
        };
        text += &at(asks(&id, &id, "Read").message("usage", usage).message("model", "claude-opus-4-6"), 5).line();
        text += &at(answers(&id, "a few words of a file"), 9).line();
    }
    text
}

fn what_ifs(counts: &[Count], measure: &str) -> Vec<(String, i64)> {
    let rows = counts.iter().filter(|row| row.subject.kind == "what_if" && row.measure == measure);
    rows.map(|row| (row.subject.name.clone(), row.count)).collect()
}

#[test]
fn other_settings_leave_as_bounded_sums_and_only_if_they_are_asked_for() {
    let home = Home::of_team(Some(SECRET));
    for number in 0..25 {
        let name = format!("s{number}");
        home.write(&format!(".claude/projects/-h-p/{name}.jsonl"), session(&name, 8, "2026-10-20"));
    }
    // Begun in the week that is not over.
    home.write(".claude/projects/-h-p/now.jsonl", session("now", 8, "2026-10-28"));
    let team = home.path("team").to_string_lossy().into_owned();
    let share = |user: &str, more: &[&str]| {
        let said = home.run(&[&["share", "--to", &team, "--as", user], more].concat());
        assert!(said.err.contains("1 written"), "{}", said.err);
        read(std::fs::read(place(&home.path("team"), user, WEEK)).unwrap(), 10_000).unwrap().counts
    };
    assert!(what_ifs(&share("without", &[]), "log_tokens").is_empty());
    let again = home.run(&["share", "--to", &team, "--as", "without", "--what-if"]).err;
    assert!(again.contains("# 1 week shared before without other settings: they leave with the counts"), "{again}");
    let counts = share("with", &["--what-if"]);
    let again = home.run(&["share", "--to", &team, "--as", "with", "--what-if"]).err;
    assert!(again.contains("1 shared before and kept") && !again.contains("other settings"), "{again}");
    let (log, policy) = (what_ifs(&counts, "log_tokens"), what_ifs(&counts, "policy_tokens"));
    let names: Vec<&str> = log.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["cache-1h", "cache-5m", "history-trim", "window-150k"]);
    assert!(what_ifs(&counts, "sessions").iter().all(|(_, sessions)| *sessions == 20), "bounded");
    // The log was written for five minutes: that setting changes nothing, an hour survives the twenty minutes.
    let of = |rows: &[(String, i64)], name: &str| rows.iter().find(|(known, _)| known == name).unwrap().1;
    assert_eq!(of(&log, "cache-5m"), of(&policy, "cache-5m"));
    assert_ne!(of(&log, "cache-1h"), of(&policy, "cache-1h"));
    // What leaves is what a pool takes.
    let said = home.run(&["pool", &team]).err;
    assert!(said.contains("2 contributions refused"), "the same sessions under two names: {said}");
}

#[test]
fn a_session_counts_up_to_a_bound_and_keeps_its_share() {
    let home = Home::of_team(Some(SECRET));
    home.write(".claude/projects/-h-p/s.jsonl", session("s", 8, "2026-10-20"));
    let rules = crate::base::data::Data::default().text("fleet.toml").unwrap();
    let bounded = rules.replace("session_tokens_max = 2_000_000", "session_tokens_max = 1_000");
    assert_ne!(rules, bounded);
    home.write("rules/fleet.toml", bounded);
    let sums = |more: &[&str]| {
        let report = home.json(&[&["share", "--show", "--what-if"], more].concat());
        let values = report["values"].as_array().unwrap().clone();
        let of = |measure: &str| {
            let row = values.iter().find(|row| row["name"] == "cache-1h" && row["measure"] == measure);
            row.unwrap_or_else(|| panic!("{values:?}"))["count"].as_i64().unwrap() as f64
        };
        (of("log_tokens"), of("policy_tokens"))
    };
    let rules = home.path("rules").to_string_lossy().into_owned();
    let (whole, part) = (sums(&[]), sums(&["--rules-dir", &rules]));
    assert!((part.0 - 1_000.0).abs() < 0.5 && whole.0 > 10_000.0);
    assert!((whole.1 / whole.0 - part.1 / part.0).abs() < 0.002, "{whole:?} {part:?}");
}

#[test]
fn a_pool_tells_other_settings_of_five_people_and_both_sides_or_none() {
    let home = Home::of_team(Some(SECRET));
    let names = ["cache-1h", "cache-5m", "history-trim"];
    for person in 0..6 {
        let mut counts = rows(&[("Read", 50, 10)], &[]);
        let mut add = |name: &str, log: i64, policy: i64| {
            for (measure, count) in [("log_tokens", log), ("policy_tokens", policy), ("sessions", 2)] {
                counts.push(row("what_if", name, "", 0, measure, 0, count));
            }
        };
        add(names[0], 1_000, 900);
        // Four people only; and one who alone makes the sum.
        if person < 4 {
            add(names[1], 1_000, 1_100);
        }
        add(names[2], 1_000, if person == 0 { 500_000 } else { 10 });
        counts.sort();
        put(&home.path("team"), &of_person(&format!("p{person}"), WEEK, counts));
    }
    let (pool, _) = pool(&home, &["team"]);
    let told: Vec<(&str, i64)> = pool
        .rows
        .iter()
        .filter(|row| row.count.subject.kind == "what_if" && row.count.measure == "policy_tokens")
        .map(|row| (row.count.subject.name.as_str(), row.count.count))
        .collect();
    assert_eq!(told, [("cache-1h", 5_400)]);
    let said = home.json(&["pool", home.path("team").to_str().unwrap(), "--by", "what-if"]);
    let row = &said["what_if"][0];
    assert_eq!((row["setting"].as_str(), row["sessions"].as_i64()), (Some("cache-1h"), Some(12)));
    assert!((row["change"].as_f64().unwrap() + 0.1).abs() < 1e-9, "{row}");
    assert_eq!(limits().what_if.len(), 4);
}
