//! What a team lends: how much of it counts, and that somebody with three days of logs gets what fits.

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::fleet::{SECRET, WEEK, limits, log, naming};
use super::harness::{Home, NOW_MS};
use super::log_builder::*;
use crate::base::names::Sym;
use crate::base::significance::Chance;
use crate::base::stats::FollowUpCount;
use crate::fleet::lend::{Lender, Lenders, Shares};
use crate::frames::contribution::{Count, CountSubject, Pool, PooledCount};

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn own_data_wins_where_there_is_enough(own in 0_u64..400, team in 0_f64..500.0, provider in 0_f64..500.0) {
        let limits = limits();
        let shares = Shares::of(own, (team, 5), provider, &limits);
        let all = (own + shares.lent()) as f64;
        prop_assert!(shares.team as f64 <= team && shares.provider as f64 <= provider, "nobody lends what he has not");
        if own >= 20 {
            prop_assert!(shares.lent() as f64 <= 0.3 * all, "{shares:?}");
        }
        prop_assert!(own < 100 || shares.lent() as f64 <= 0.1 * all, "{shares:?}");
        // Of what is left a provider fills at most 40 %.
        let room = Shares::of(own, (1e9, 5), 0.0, &limits).team as f64;
        prop_assert!(shares.provider as f64 <= 0.4 * room);
        let more = Shares::of(own + 1, (1e9, 5), 0.0, &limits).team as f64;
        prop_assert!(room <= 1.0 + more, "with one more own observation the whole is not smaller");
        if team >= 20.0 {
            prop_assert!(all >= 20.0, "a team fills up to what rules ask for");
        }
        if team < 1.0 && provider < 1.0 {
            prop_assert_eq!(shares.lent(), 0);
        }
    }
}

/// Days of somebody who polls a ticket: every status comes twice, with so many other answers between.
pub(super) fn days(home: &Home, who: &str, sessions: usize, blocks: usize, day: &str) {
    for session in 0..sessions {
        let name = format!("{who}-{session}");
        let mut text = String::new();
        let mut number = 0;
        let mut call = |tool: &str, body: String| {
            number += 1;
            let id = format!("{name}-{number}");
            let at = |record: Record, second: usize| {
                let time = format!("{day}T{:02}:{:02}:{:02}.000Z", 9 + session % 8, second / 60 % 60, second % 60);
                record.session(&name).set("timestamp", time)
            };
            text += &at(asks(&id, &id, tool), 2 * number).line();
            text += &at(answers(&id, body), 2 * number + 1).line();
        };
        for block in 0..blocks {
            for place in 0..8 {
                let body = |what: &str, n: usize| {
                    let words = (0..90).map(|at| format!("{what}{n}w{}", (at * 7 + n * 13) % 91));
                    words.collect::<Vec<_>>().join(" ")
                };
                call("mcp__tracker__poll", body(&format!("{name} status {block} "), place % 4));
                call("mcp__tracker__other", body(&format!("{name} other {block} "), place));
            }
        }
        home.write(&format!(".claude/projects/-home-{who}-p/{name}.jsonl"), text);
    }
}

fn lru_size(report: &Value) -> Option<i64> {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|row| {
        row["verdict"] == "propose"
            && row["key"].as_str().is_some_and(|key| key.ends_with("lru_size"))
            && row["subject"] == "mcp__tracker__poll"
    });
    found.map(|row| row["new"].as_i64().unwrap())
}

#[test]
fn three_days_of_logs_and_a_team_give_what_a_month_of_logs_gives() {
    let members: Vec<Home> = (0..7).map(|_| Home::of_team(Some(SECRET))).collect();
    let pool = Home::of_team(Some(SECRET));
    let team = pool.path("team").to_string_lossy().into_owned();
    for (number, home) in members.iter().enumerate() {
        days(home, &format!("m{number}"), 5, 2, "2026-10-20");
    }
    let command = ["tune", "analyze", "--from-claude-logs", "--dry-run"];
    // Each of two members is left out once: the others pool, and it has a session of one block.
    for out in [0, 3] {
        let team = format!("{team}-{out}");
        for (number, home) in members.iter().enumerate().filter(|(number, _)| *number != out) {
            let said = home.run(&["share", "--to", &team, "--as", &format!("m{number}")]);
            assert!(said.err.contains("1 written"), "{}", said.err);
        }
        let published = pool.path(&format!("published-{out}")).to_string_lossy().into_owned();
        pool.json(&["pool", &team, "--publish", &published]);
        let file = format!("{published}/pool.parquet");
        let new = Home::of_team(Some(SECRET));
        days(&new, "new", 1, 1, "2026-10-30");
        let (alone, lent) = (new.json(&command), new.json(&[&command[..], &["--team", &file]].concat()));
        let month = members[out].json(&command);
        let wanted = lru_size(&month).expect("a month of logs is enough");
        assert_eq!((lru_size(&alone), lru_size(&lent)), (None, Some(wanted)), "{:#}", lent["findings"]);
        let saved = |report: &Value| report["gate"]["saved_after"].as_f64().unwrap();
        assert!(saved(&lent) > saved(&alone) + 100.0, "it pays on the new member's own logs: {}", saved(&lent));
        assert_eq!(lent["gate"]["passed"], json!(true));
        let of_team = lent["findings"].as_array().unwrap().iter().find(|row| row["subject"] == "mcp__tracker__poll");
        let words = of_team.unwrap()["evidence"]["counts"].as_str().unwrap();
        assert!(words.starts_with("of 20 observations 8 are own, 12 stand for the team (6 people or more)"), "{words}");
        // A team of other habits, or another secret, changes nothing or is refused.
        let stranger = Home::of_team(Some("another secret of another team"));
        days(&stranger, "new", 1, 1, "2026-10-30");
        let refused = stranger.run(&[&command[..], &["--team", &file]].concat());
        assert!(refused.err.contains("another team secret"), "{}", refused.err);
        let wrong = new.run(&[&command[..], &["--provider", &file]].concat());
        assert!(wrong.err.contains("has keyed names"), "{}", wrong.err);
    }
}

#[test]
fn a_team_fills_value_models_and_own_logs_outweigh_it() {
    let team = Home::of_team(Some(SECRET));
    let directory = team.path("team").to_string_lossy().into_owned();
    for member in 0..6 {
        let home = Home::of_team(Some(SECRET));
        for session in 0..3 {
            let name = format!("{member}-{session}");
            home.write(&format!(".claude/projects/-h-p/{name}.jsonl"), log(&name, "Grep", 20, "2026-10-20"));
        }
        home.run(&["share", "--to", &directory, "--as", &format!("m{member}")]);
    }
    let published = team.path("published").to_string_lossy().into_owned();
    team.json(&["pool", &directory, "--publish", &published]);
    let file = format!("{published}/pool.parquet");
    let new = Home::of_team(Some(SECRET));
    new.write(".claude/projects/-h-p/a.jsonl", log("new", "Read", 30, "2026-10-30"));
    let command = ["tune", "from-claude-logs", "--tools", "--dry-run"];
    let (alone, lent) = (new.json(&command), new.json(&[&command[..], &["--team", &file]].concat()));
    let typical = |report: &Value, tool: &str| {
        // Nothing is called ahead here, so that the figure is held.
        let start = format!("`tools.{tool}.cost_model.typical_kb` = ");
        let rows = report["findings"].as_array().unwrap().iter();
        let (row, rest) = rows.filter_map(|row| Some((row, row["reason"].as_str()?.strip_prefix(&start)?))).next()?;
        let kb = rest.split(':').next().unwrap().parse().unwrap();
        Some((kb, row["evidence"]["counts"].as_str().unwrap().to_owned()))
    };
    assert_eq!(typical(&alone, "Grep"), None);
    let (kb, words) = typical(&lent, "Grep").expect("the team lends a tool that was not used yet");
    assert!(
        (0.02..0.06).contains(&kb) && words.starts_with("of 20 observations 0 are own, 20 stand for the team"),
        "{words}"
    );
    assert_eq!(typical(&lent, "Read"), typical(&alone, "Read"));
}

/// A pool with these counts: week, subject, measure, count.
fn pool_of(rows: &[(&str, CountSubject, &str, i64)]) -> Pool {
    let row = |(week, subject, measure, count): &(&str, CountSubject, &str, i64)| {
        let count = Count { subject: subject.clone(), measure: (*measure).into(), bin: 0, count: *count };
        PooledCount { week: (*week).into(), batch: 0, count, people: 6 }
    };
    Pool { secret: naming().secret(), rows: rows.iter().map(row).collect() }
}

/// What the follow-ups of somebody are after a team has lent to them.
fn lent(pool: &Pool, names: &[&str], own: &[FollowUpCount]) -> BTreeMap<(String, String), FollowUpCount> {
    let team = (Lender::new(pool, NOW_MS, &limits()), naming());
    let lenders = Lenders { team, provider: (Lender::default(), naming()), limits: limits() };
    let (mut names, mut follow_ups) = (names.iter().map(|name| (*name).to_owned()).collect(), own.to_vec());
    lenders.lend_stats(&mut names, &mut Vec::new(), &mut follow_ups);
    let name = |tool: Sym| names[tool.0 as usize].clone();
    follow_ups.into_iter().map(|edge| ((name(edge.from), name(edge.to)), edge)).collect()
}

fn tool(name: &str) -> CountSubject {
    CountSubject { kind: "tool".into(), name: name.into(), ..CountSubject::default() }
}

fn edge(from: &str, to: &str) -> CountSubject {
    CountSubject { kind: "edge".into(), name: from.into(), other: to.into(), lag: 1 }
}

#[test]
fn a_follow_up_is_lent_as_a_share_of_the_weeks_that_tell_of_it() {
    let (told, other) = (WEEK, "2026-10-12");
    let pool = pool_of(&[
        (told, tool("Read"), "steps", 400),
        (told, edge("Read", "Edit"), "support", 200),
        (other, tool("Read"), "steps", 4_000),
    ]);
    let lent = lent(&pool, &["Edit"], &[]);
    let edge = &lent[&("Read".to_owned(), "Edit".to_owned())];
    assert_eq!((edge.support, edge.trials), (10, 20), "every other step of the week that tells of it");
    assert!((edge.chance.expected - 10.0).abs() < 0.6, "there is no other tool: {:?}", edge.chance);
}

#[test]
fn what_is_lent_to_a_tool_does_not_depend_on_its_place_in_the_alphabet() {
    let mut rows = vec![(WEEK, tool("Bash"), "steps", 3_000)];
    for from in ["Glob", "Read"] {
        rows.extend([(WEEK, tool(from), "steps", 300), (WEEK, edge(from, "Edit"), "support", 200)]);
    }
    let own = |from: u32| FollowUpCount {
        from: Sym(from),
        to: Sym(2),
        lag: 1,
        support: 3,
        sessions: 2,
        trials: 5,
        lower: 0.2,
        upper: 0.9,
        chance: Chance { expected: 3.0, variance: 0.0 },
    };
    let lent = lent(&pool_of(&rows), &["Glob", "Read", "Edit"], &[own(0), own(1)]);
    let of = |from: &str| lent[&(from.to_owned(), "Edit".to_owned())];
    let (one, other) = (of("Glob"), of("Read"));
    assert_eq!((one.support, one.trials), (other.support, other.trials));
    assert_eq!(one.chance, other.chance);
}
