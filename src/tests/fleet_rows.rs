//! Light rows: what they add up to, on whom it stands, and that rows which no devboy writes are refused by name.

use super::fleet::{SECRET, WEEK, limits, log, naming};
use super::harness::Home;
use super::log_builder::*;
use crate::fleet::folder::{light_place, place};
use crate::fleet::light::rounded;
use crate::frames::contribution::{self, Contribution, Pool, read_pool};
use crate::frames::light::{self, LightCall, NONE, Number, hostile};

/// Logs of somebody who reads, searches twice at once, and edits; shared under this name with rows.
fn share(home: &Home, team: &str, user: &str, sessions: usize) {
    for session in 0..sessions {
        let name = format!("{user}-{session}");
        let mut text = String::new();
        let mut put = |record: Record, second: usize| {
            let at = format!("2026-10-20T10:{:02}:{:02}.000Z", second / 60, second % 60);
            text += &record.session(&name).set("timestamp", at).line();
        };
        for turn in 0..12 {
            let call = |tool: usize| format!("{name}-{turn}-{tool}");
            put(asks(&call(0), &call(0), "Read"), 40 * turn);
            put(answers(&call(0), format!("{user} reads {} some words", turn % 5 * session)), 40 * turn + 3);
            let message = call(1);
            put(asks(&message, &call(1), "Grep"), 40 * turn + 10);
            put(asks(&message, &call(2), "mcp__tracker__search"), 40 * turn + 10);
            put(answers(&call(1), "found nothing here"), 40 * turn + 11);
            put(answers(&call(2), format!("[{{\"id\":{turn}}},{{\"id\":{session}}}]")), 40 * turn + 12);
        }
        home.write(&format!("logs-{user}/-home-p/{name}.jsonl"), text);
    }
    let path = |name: &str| home.path(name).to_string_lossy().into_owned();
    let said = home.run(&[
        "share",
        "--rows",
        "--to",
        &path(team),
        "--as",
        user,
        "--input-dir",
        &path(&format!("logs-{user}")),
    ]);
    assert!(said.err.contains("1 written"), "{}", said.err);
}

/// Whose rows they are, and the rows.
fn rows_of(home: &Home, team: &str, user: &str) -> (Contribution, Vec<LightCall>) {
    let bytes = std::fs::read(light_place(&home.path(team), user, WEEK)).unwrap();
    light::read(bytes, 1_000_000).unwrap()
}

fn pool(home: &Home, team: &str, more: &[&str]) -> (Pool, serde_json::Value) {
    let (team, out) = (home.path(team).to_string_lossy().into_owned(), home.path("out").to_string_lossy().into_owned());
    let said = home.json(&[&["pool", &team, "--publish", &out], more].concat());
    (read_pool(std::fs::read(home.path("out/pool.parquet")).unwrap(), 1_000_000).unwrap(), said)
}

#[test]
fn rows_give_the_pool_that_the_counts_beside_them_give() {
    let home = Home::of_team(Some(SECRET));
    (0..6).for_each(|person| share(&home, "team", &format!("p{person}"), 3 + person));
    let (counts, _) = pool(&home, "team", &[]);
    let roster = std::fs::read(home.path("team/pool-roster.json")).unwrap();
    let (rows, _) = pool(&home, "team", &["--rows"]);
    assert_eq!(std::fs::read(home.path("team/pool-roster.json")).unwrap(), roster, "nobody's week is spent twice");
    assert_eq!(counts, rows, "so that counts less rows are nothing");
    for measure in
        ["calls", "repeats", "distance", "bytes", "shape", "latency_ms", "baseline_tokens", "steps", "support"]
    {
        assert!(rows.rows.iter().any(|row| row.count.measure == measure), "{measure}");
    }
    assert!(rows.rows.iter().all(|row| row.people >= 5));
    // Three of six people gave rows with the others' counts: too few, though the counts of all are there.
    for person in 0..3 {
        std::fs::remove_file(light_place(&home.path("team"), &format!("p{person}"), WEEK)).unwrap();
    }
    let (few, said) = pool(&home, "team", &["--rows"]);
    assert!(few.rows.is_empty() && said["notes"].to_string().contains("left out"), "{said}");
    assert_eq!(pool(&home, "team", &[]).0, counts);
}

#[test]
fn a_row_tells_order_classes_and_rounded_sizes() {
    let home = Home::of_team(Some(SECRET));
    share(&home, "team", "a", 4);
    let (of, calls) = rows_of(&home, "team", "a");
    assert_eq!((of.user.as_str(), of.week.as_str(), calls.len()), ("a", WEEK, 4 * 36));
    let tracker = naming().of("mcp__tracker__search");
    let reads: Vec<&LightCall> = calls.iter().filter(|call| call.tool == "Read").collect();
    let first = reads.iter().find(|call| call.number(Number::Position) == 0).unwrap();
    // Three seconds lie between 2,816 and 3,071 ms.
    assert_eq!((first.number(Number::Gap), first.number(Number::Latency)), (NONE, 2_943));
    assert_eq!(first.after, [format!("Grep {tracker}"), "Read".to_owned(), format!("Grep {tracker}")]);
    let second = reads.iter().find(|call| call.number(Number::Position) == 3).unwrap();
    assert_eq!((second.number(Number::Gap), second.number(Number::CountsIn)), (1, 3));
    let sessions: std::collections::BTreeSet<&String> = calls.iter().map(|call| &call.session).collect();
    assert!(sessions.len() == 4 && sessions.iter().all(|mark| !mark.contains("a-")));
    // Sizes stand for all of their bin.
    assert!(calls.iter().all(|call| rounded(call.clone(), &limits()) == *call));
    assert!(calls.iter().all(|call| call.tool != "Grep" || call.number(Number::Bytes) == 18));
}

#[test]
fn marks_of_chains_do_not_depend_on_other_sessions() {
    let home = Home::of_team(Some(SECRET));
    let team = home.path("team").to_string_lossy().into_owned();
    let rows = |user: &str| {
        home.run(&["share", "--rows", "--to", &team, "--as", user]);
        let (_, calls) = rows_of(&home, "team", user);
        calls.into_iter().filter(|call| call.tool == "Read").collect::<Vec<_>>()
    };
    home.write(".claude/projects/-home-u-p/z.jsonl", log("z", "Read", 9, "2026-10-20"));
    let alone = rows("alone");
    for session in 0..12 {
        let name = format!("other{session}");
        home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), log(&name, "Grep", 9, "2026-10-20"));
    }
    assert_eq!((alone.len(), rows("beside")), (9, alone));
}

#[test]
fn the_gap_of_a_row_is_the_time_since_the_call_before_though_that_failed() {
    let home = Home::of_team(Some(SECRET));
    let at = |record: Record, second: usize| {
        record.session("a").set("timestamp", format!("2026-10-20T10:{:02}:{:02}.000Z", second / 60, second % 60)).line()
    };
    let mut text = String::new();
    for number in 0..4 {
        let [failed, read] = ["f", "r"].map(|kind| format!("{kind}{number}"));
        text += &at(asks(&failed, &failed, "Bash"), 200 * number);
        text += &at(fails(&failed, "no such thing"), 200 * number + 1);
        text += &at(asks(&read, &read, "Read"), 200 * number + 20);
        text += &at(answers(&read, format!("text {number}")), 200 * number + 21);
    }
    home.write(".claude/projects/-home-u-p/a.jsonl", text);
    home.run(&["share", "--rows", "--to", home.path("team").to_str().unwrap(), "--as", "a"]);
    let (_, calls) = rows_of(&home, "team", "a");
    let gaps: Vec<i64> = calls.iter().map(|call| call.number(Number::Gap)).collect();
    assert_eq!(gaps, [1; 4], "twenty seconds, not three minutes");
}

#[test]
fn rows_of_one_person_keep_within_the_bounds_of_counts() {
    let home = Home::of_team(Some(SECRET));
    for session in 0..30 {
        let name = format!(".claude/projects/-home-u-p/{session}.jsonl");
        home.write(&name, log(&format!("s{session}"), "Read", 40, "2026-10-20"));
    }
    home.write(".claude/projects/-home-u-p/rare.jsonl", log("rare", "Grep", 2, "2026-10-20"));
    let team = home.path("team").to_string_lossy().into_owned();
    home.run(&["share", "--rows", "--to", &team, "--as", "busy"]);
    let again = home.run(&["share", "--rows", "--to", &team, "--as", "busy"]).err;
    assert!(again.contains("1 shared before and kept") && !again.contains("light rows"), "{again}");
    let (_, calls) = rows_of(&home, "team", "busy");
    let of = |kind: i64| {
        let of = calls.iter().filter(|call| call.number(Number::CountsIn) & kind != 0);
        let sessions: std::collections::BTreeSet<&String> = of.clone().map(|call| &call.session).collect();
        (of.count(), sessions.len() <= 20)
    };
    assert_eq!((of(1), of(2)), ((500, true), (500, true)));
    // What was done twice stays at home, as a tool, an endpoint and a step that follows.
    assert!(calls.iter().all(|call| call.tool == "Read" && call.after.iter().all(|later| later != "Grep")));
    // A week that was shared is not shared anew, with rows or without.
    std::fs::remove_file(light_place(&home.path("team"), "busy", WEEK)).unwrap();
    let again = home.run(&["share", "--rows", "--to", &team, "--as", "busy"]).err;
    assert!(again.contains("0 written"), "{again}");
    assert!(again.contains("# 1 week shared before without light rows: rows leave with the counts"), "{again}");
    assert!(!home.run(&["share", "--to", &team, "--as", "busy"]).err.contains("light rows"), "nobody asked for rows");
    assert!(
        !light_place(&home.path("team"), "busy", WEEK).exists() && place(&home.path("team"), "busy", WEEK).exists()
    );
}

#[test]
fn what_is_shown_is_what_the_rows_hold() {
    let home = Home::of_team(Some(SECRET));
    home.write(".claude/projects/-home-u-p/a.jsonl", log("s1", "mcp__payroll__get_salary", 40, "2026-10-20"));
    let team = home.path("team").to_string_lossy().into_owned();
    let sample = home.run(&["share", "--rows", "--show", "--as", "a"]).out;
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/fleet.md")).unwrap();
    for column in ["session", "chain", "endpoint", "tool"]
        .into_iter()
        .chain(Number::ALL.map(|(_, name)| name))
        .chain(light::AFTER)
    {
        assert!(sample.contains(column) && page.contains(&format!("`{column}`")), "{column}");
    }
    let file = home.path("sample.txt").to_string_lossy().into_owned();
    home.run(&["share", "--rows", "--show", "--as", "a", "--output", &file]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), sample, "a file holds what is printed");
    assert!(sample.matches(&naming().of("mcp__payroll__get_salary")).count() >= 20 && !sample.contains("payroll"));
    let shown = home.run(&["share", "--rows", "--show", "--format", "csv", "--as", "a"]).out;
    assert!(shown.lines().count() == 41 && !home.path("team").exists(), "{shown}");
    home.run(&["share", "--rows", "--to", &team, "--as", "a"]);
    let (_, calls) = rows_of(&home, "team", "a");
    for (line, call) in shown.lines().skip(1).zip(&calls) {
        let numbers = call.numbers.map(|number| number.to_string()).join(",");
        let texts = [&call.session, &call.chain, &call.tool, &call.endpoint].map(String::as_str).join(",");
        assert!(line.contains(&numbers) && line.contains(&texts), "{line}: {call:?}");
    }
}

#[test]
fn names_that_no_tool_can_have_leave_as_digests_where_names_are_plain() {
    let home = Home::of_team(None);
    let (long, odd) = ("t".repeat(300), "my tool/\u{202e}\n=1");
    for (number, tool) in ["mcp__own__look", odd, &long].into_iter().enumerate() {
        home.write(
            &format!(".claude/projects/-home-u-p/{number}.jsonl"),
            log(&format!("s{number}"), tool, 9, "2026-10-20"),
        );
    }
    let team = home.path("team").to_string_lossy().into_owned();
    home.run(&["share", "--plain-names", "--rows", "--to", &team, "--as", "a"]);
    let (_, calls) = rows_of(&home, "team", "a");
    let tools: std::collections::BTreeSet<&str> = calls.iter().map(|call| &*call.tool).collect();
    assert!(tools.len() == 3 && tools.contains("mcp__own__look"), "{tools:?}");
    assert!(tools.iter().all(|name| name.len() < 20), "{tools:?}");
    let said = home.json(&["pool", &team, "--plain-names", "--rows"]);
    assert!(said["refused"].as_array().unwrap().is_empty() && said["weeks"][0]["waiting"] == 1, "{said}");
}

#[test]
fn hostile_rows_are_refused_by_name_and_change_nothing() {
    let home = Home::of_team(Some(SECRET));
    ["a", "b", "c", "d", "e", "f"].iter().for_each(|user| share(&home, "team", user, 3));
    let (clean, _) = pool(&home, "team", &["--rows"]);
    assert!(!clean.rows.is_empty());
    let mut expected: Vec<(String, &str)> = Vec::new();
    let mut add = |name: &str, why: &'static str, odd: &dyn Fn(&Contribution, Vec<LightCall>) -> Vec<u8>| {
        // Each of them an honest person otherwise.
        let user = format!("x-{name}");
        share(&home, "team", &user, 3);
        let (of, calls) = rows_of(&home, "team", &user);
        std::fs::write(light_place(&home.path("team"), &user, WEEK), odd(&of, calls)).unwrap();
        expected.push((user, why));
    };
    for (what, why) in [
        ("NaN", "columns are others"),
        ("2^63", "columns are others"),
        ("more columns", "columns are others"),
        ("9", "schema version is 9"),
    ] {
        let name = what.to_lowercase().replace(['^', ' '], "-");
        add(&name, why, &|of, calls| hostile::odd(of, &calls, what));
    }
    type Change = fn(&mut LightCall);
    let first: [(&str, &str, Change); 18] = [
        ("negative", "bytes -5 is not between", |call| call.set(Number::Bytes, -5)),
        ("huge", "is not between", |call| call.set(Number::Bytes, i64::MAX)),
        ("least", "is not between", |call| call.set(Number::Latency, i64::MIN)),
        ("tokens", "baseline_tokens 50001 is not", |call| call.set(Number::Baseline, 50_001)),
        ("saves", "saves more than there is", |call| call.set(Number::Saved, call.number(Number::Baseline) + 1)),
        ("shape", "shape 11 is not", |call| call.set(Number::Shape, 11)),
        ("formats", "inner_formats 16384 is not", |call| call.set(Number::InnerFormats, 1 << 14)),
        ("gap", "gap 5 is not", |call| call.set(Number::Gap, 5)),
        ("counts", "counts_in 0 is not", |call| call.set(Number::CountsIn, 0)),
        ("position", "position -1 is not", |call| call.set(Number::Position, -1)),
        ("session", "is no mark", |call| call.session = "somebody's session".into()),
        ("name", "none that leaves a machine", |call| call.tool = "mcp__payroll__get_salary".into()),
        ("path", "none that leaves a machine", |call| call.endpoint = "/home/u/p".into()),
        ("later", "after_2 holds what no tool", |call| call.after[1] = "my secret plan".into()),
        ("twice-later", "after_1 holds what no tool", |call| call.after[0] = "Read Read".into()),
        ("long", "no names", |call| call.after[0] = "k".repeat(300)),
        ("other-tokens", "do not give the counts", |call| {
            call.set(Number::Baseline, call.number(Number::Baseline) + 1);
        }),
        ("other-counts", "do not give the counts", |call| {
            call.set(Number::Shape, (call.number(Number::Shape) + 1) % 11);
        }),
    ];
    for (name, why, change) in first {
        add(name, why, &|of, mut calls| {
            change(&mut calls[0]);
            light::write(of, &calls).unwrap()
        });
    }
    add("twice", "its place in its chain is taken", &|of, mut calls| {
        calls.push(calls[0].clone());
        light::write(of, &calls).unwrap()
    });
    add("fewer", "do not give the counts", &|of, calls| light::write(of, &calls[1..]).unwrap());
    add("none", "do not give the counts", &|of, _| light::write(of, &[]).unwrap());
    add("user", "another person's", &|of, calls| {
        light::write(&Contribution { user: "a".into(), ..of.clone() }, &calls).unwrap()
    });
    add("week", "of another week", &|of, calls| {
        light::write(&Contribution { week: "2026-10-12".into(), ..of.clone() }, &calls).unwrap()
    });
    add("secret", "another team secret", &|of, calls| {
        light::write(&Contribution { secret: "0".repeat(16), ..of.clone() }, &calls).unwrap()
    });
    add("counts-file", "it is no light rows", &|of, _| contribution::write(of).unwrap());
    add("noise", "no Parquet file", &|_, _| {
        (0..9_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
    });
    add("empty", "no Parquet file", &|_, _| Vec::new());
    add("big", "at most 20000000 are read", &|_, _| vec![0; 20_000_001]);
    add("many", "200001 rows", &|of, calls| light::write(of, &vec![calls[0].clone(); 200_001]).unwrap());
    let (dirty, said) = pool(&home, "team", &["--rows"]);
    assert_eq!(dirty, clean, "the pool is what it is without them");
    let refused: Vec<String> = said["refused"].as_array().unwrap().iter().map(|row| row.to_string()).collect();
    for (user, why) in expected {
        let of_user: Vec<&String> = refused.iter().filter(|row| row.contains(&format!("user={user}/"))).collect();
        assert!(of_user.len() == 1 && of_user[0].contains(why), "{user}: {why}, not {of_user:?}");
    }
}

#[test]
fn flipped_bytes_of_rows_are_refused_or_read_within_bounds() {
    let home = Home::of_team(Some(SECRET));
    share(&home, "team", "a", 1);
    let good = std::fs::read(light_place(&home.path("team"), "a", WEEK)).unwrap();
    for at in (0..good.len()).step_by(11) {
        let mut bytes = good.clone();
        bytes[at] ^= 1 << (at % 8);
        // Neither a panic that gets out, nor more than was there.
        if let Ok((_, calls)) = light::read(bytes, limits().light_rows_max) {
            assert!(calls.len() <= 36);
        }
    }
}
