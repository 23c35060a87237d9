//! Pools: on whom every row stands, and what attacks on them find.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use proptest::prelude::*;
use serde_json::json;

use super::harness::{Home, NOW_MS};
use super::log_builder::cases;
use crate::base::data::Data;
use crate::base::files::WriteStep;
use crate::base::files::faults::Fault;
use crate::base::id::Id;
use crate::base::pseudonyms::{Pseudonyms, published_tool};
use crate::fleet::folder::{FolderContents, PooledFile, place};
use crate::fleet::limits::{FleetLimits, SHEET};
use crate::fleet::naming::FleetNaming;
use crate::fleet::pool::pooled;
use crate::frames::contribution::{self, Contribution, Count, CountSubject, Pool, PooledCount, read_pool};
use crate::shell::arguments::Exit;

pub const SECRET: &str = "a secret that a team shares";
/// The last week that is over.
pub const WEEK: &str = "2026-10-19";

pub fn limits() -> FleetLimits {
    Data::default().parsed(SHEET).unwrap()
}

pub fn naming() -> FleetNaming {
    FleetNaming::new(Some(Pseudonyms::of_secret(SECRET.as_bytes()))).unwrap()
}

/// What somebody did of one endpoint: calls and repeats, in one session.
pub type Done<'a> = (&'a str, i64, i64);

/// A row of a contribution.
pub fn row(kind: &str, name: &str, other: &str, lag: u32, measure: &str, bin: u32, count: i64) -> Count {
    let subject = CountSubject { kind: kind.into(), name: name.into(), other: other.into(), lag };
    Count { subject, measure: measure.into(), bin, count }
}

/// The rows of some endpoints, each of a tool of its own, and of edges with their support.
pub fn rows(done: &[Done<'_>], edges: &[(&str, &str, i64)]) -> Vec<Count> {
    let name = |name: &str| naming().of(name);
    let mut out = Vec::new();
    for &(endpoint, calls, repeats) in done {
        let name = name(endpoint);
        let numbers =
            [("calls", calls), ("sessions", 1), ("baseline_tokens", 100 * calls), ("sent_tokens", 90 * calls)];
        out.extend(numbers.map(|(measure, count)| row("endpoint", &name, &name, 0, measure, 0, count)));
        out.push(row("endpoint", &name, &name, 0, "bytes", 90, calls));
        out.push(row("endpoint", &name, &name, 0, "shape", 2, calls));
        if repeats > 0 {
            out.push(row("endpoint", &name, &name, 0, "repeats", 0, repeats));
            out.push(row("endpoint", &name, &name, 0, "distance", 7, repeats));
        }
        out.extend([("steps", calls), ("sessions", 1)].map(|(of, count)| row("tool", &name, "", 0, of, 0, count)));
    }
    for &(from, to, support) in edges {
        let counts = [("support", support), ("sessions", 1)];
        out.extend(counts.map(|(measure, count)| row("edge", &name(from), &name(to), 1, measure, 0, count)));
    }
    out.sort();
    out
}

/// A contribution of somebody whose sessions are nobody else's.
pub fn of_person(user: &str, week: &str, counts: Vec<Count>) -> Contribution {
    let marks = vec![Id::pseudonym(format!("{user} {week}").as_bytes()).to_string()[..16].to_owned()];
    Contribution { user: user.into(), week: week.into(), secret: naming().secret(), marks, counts }
}

/// Puts a contribution where it belongs.
pub fn put(directory: &Path, contribution: &Contribution) {
    let path = place(directory, &contribution.user, &contribution.week);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, contribution::write(contribution).unwrap()).unwrap();
}

/// Pools directories and gives what is published, with what was said.
pub fn pool(home: &Home, directories: &[&str]) -> (Pool, serde_json::Value) {
    let paths: Vec<String> = directories.iter().map(|name| home.path(name).to_string_lossy().into_owned()).collect();
    let out = home.path("published").to_string_lossy().into_owned();
    let mut command = vec!["pool", "--publish", &out];
    command.extend(paths.iter().map(String::as_str));
    let said = home.json(&command);
    let pool = read_pool(std::fs::read(home.path("published/pool.parquet")).unwrap(), 1_000_000).unwrap();
    (pool, said)
}

/// The counts that a pool tells of an endpoint or tool.
fn told<'p>(pool: &'p Pool, name: &str) -> Vec<&'p PooledCount> {
    let name = naming().of(name);
    pool.rows.iter().filter(|row| row.count.subject.name == name).collect()
}

#[test]
fn a_row_stands_on_five_people_and_nobody_has_more_than_half() {
    let home = Home::of_team(Some(SECRET));
    let team = home.path("team");
    for person in 0..6 {
        // One person has most calls of Grep, four people know mcp__rare__look, one is alone on mcp__own__look.
        let grep = if person == 0 { 400 } else { 4 };
        let mut done = vec![("Read", 50, 10), ("Grep", grep, 0)];
        if person < 4 {
            done.push(("mcp__rare__look", 30, 3));
        }
        if person == 5 {
            done.push(("mcp__own__look", 500, 100));
        }
        put(&team, &of_person(&format!("p{person}"), WEEK, rows(&done, &[])));
    }
    let (pool, said) = pool(&home, &["team"]);
    assert_eq!(said["weeks"][0]["people"], 6);
    assert!(told(&pool, "Read").iter().all(|row| row.people == 6));
    let calls = told(&pool, "Read").into_iter().find(|row| row.count.measure == "calls").unwrap();
    assert_eq!((calls.count.count, &*calls.week), (300, WEEK));
    for name in ["Grep", "mcp__rare__look", "mcp__own__look"] {
        assert!(told(&pool, name).is_empty(), "{name}");
    }
    let text = home.run(&["pool", home.path("team").to_str().unwrap()]);
    assert!(text.err.contains("# week=2026-10-19: 6 people pooled"), "{}", text.err);
    assert!(text.out.contains("people, at least") && !text.out.contains('_'), "{}", text.out);
}

/// What attackers see of pools: sums of rows by key.
fn sums(pool: &Pool) -> BTreeMap<(String, Count), i64> {
    let mut out = BTreeMap::new();
    for row in &pool.rows {
        let key = (row.week.clone(), Count { count: 0, ..row.count.clone() });
        *out.entry(key).or_default() += row.count.count;
    }
    out
}

#[test]
fn no_difference_of_pools_is_one_person() {
    let home = Home::of_team(Some(SECRET));
    let give = |team: &str, person: &str, week: &str| {
        put(&home.path(team), &of_person(person, week, rows(&[("Read", 40, 8)], &[])));
    };
    let people = ["a", "b", "c", "d", "e", "f"];
    people.iter().for_each(|person| give("team", person, WEEK));
    let (first, _) = pool(&home, &["team"]);
    assert!(!first.rows.is_empty());
    // Somebody comes late: nothing changes until there are five of them.
    give("team", "late", WEEK);
    assert_eq!(pool(&home, &["team"]).0, first);
    // Another week of the same people and one more.
    people.iter().chain(&["more"]).for_each(|person| give("team", person, "2026-10-12"));
    let (second, _) = pool(&home, &["team"]);
    let before = sums(&first);
    assert!(sums(&second).iter().all(|(key, count)| before.get(key).is_none_or(|known| known == count)));
    assert!(second.rows.iter().all(|row| row.people >= 5));
    // Another group that holds one person: with it and without it the pool is the same.
    give("group", "alone", WEEK);
    assert_eq!(pool(&home, &["team", "group"]).0, second);
    // Four more who come late make five: the difference is theirs together.
    ["l2", "l3", "l4", "l5"].iter().for_each(|person| give("team", person, WEEK));
    let (third, _) = pool(&home, &["team"]);
    let (old, new) = (sums(&second), sums(&third));
    let grown: Vec<i64> =
        new.iter().filter_map(|(key, count)| Some(count - old.get(key)?)).filter(|d| *d > 0).collect();
    assert!(grown.contains(&(5 * 40)) && grown.iter().all(|more| more % 5 == 0), "{grown:?}");
    // Who takes back what was pooled takes the batch along, and not the difference alone.
    std::fs::remove_dir_all(home.path("team/user=a")).unwrap();
    let (fourth, said) = pool(&home, &["team"]);
    assert!(fourth.rows.iter().all(|row| !(row.week == WEEK && row.batch == 0)));
    assert!(said["notes"].to_string().contains("what a gave is gone"), "{}", said["notes"]);
}

#[test]
fn nobody_is_pooled_twice_by_rosters_that_did_not_know_of_each_other() {
    let home = Home::of_team(Some(SECRET));
    let people = |count: usize| (1..=count).map(|number| format!("u{number}"));
    for (team, count) in [("a", 5), ("b", 6)] {
        let give = |who: String| put(&home.path(team), &of_person(&who, WEEK, rows(&[("Read", 40, 8)], &[])));
        people(count).for_each(give);
        pool(&home, &[team]);
    }
    let (one, said) = pool(&home, &["a", "b"]);
    let (other, _) = pool(&home, &["b", "a"]);
    let calls = |pool: &Pool| {
        let rows = pool.rows.iter().filter(|row| row.count.measure == "calls");
        rows.map(|row| row.count.count).collect::<Vec<_>>()
    };
    assert_eq!((calls(&one), calls(&other)), (vec![6 * 40], vec![6 * 40]), "six people, in whichever order");
    assert_eq!(said["weeks"][0]["people"], 6);
    assert!(said["notes"].to_string().contains("a batch of 5 people is left out"), "{}", said["notes"]);
    // With what the smaller batch forgot the difference to the larger would be found: its people stay spent.
    for late in ["l1", "l2", "l3", "l4"] {
        put(&home.path("a"), &of_person(late, WEEK, rows(&[("Read", 40, 8)], &[])));
    }
    assert_eq!(calls(&pool(&home, &["a", "b"]).0), [6 * 40]);
}

#[test]
fn who_pools_waits_for_who_pools_the_same_folder() {
    let home = Home::of_team(Some(SECRET));
    people_give(&home, 5);
    let lock = crate::fleet::roster::locked(&[home.path("team"), home.path("team")]).unwrap();
    assert_eq!(lock.len(), 1, "nobody waits for himself");
    let team = home.path("team").to_string_lossy().into_owned();
    let refused = home.run(&["pool", &team]);
    assert!(refused.exit == Exit::Failed && refused.err.contains("another run pools there"), "{}", refused.err);
    assert!(!home.path("team/pool-roster.json").exists());
    drop(lock);
    assert_eq!(home.json(&["pool", &team])["weeks"][0]["people"], 5);
}

#[test]
fn a_folder_that_cannot_be_read_is_refused_by_name() {
    let home = Home::of_team(Some(SECRET));
    people_give(&home, 6);
    let _fault = Fault::new(&home.path("team/user=p3"), WriteStep::Open, 0, true, 13);
    let (_, said) = pool(&home, &["team"]);
    assert_eq!(said["weeks"][0]["people"], 5);
    assert_eq!(said["refused"][0]["place"], "user=p3");
    assert!(said["refused"][0]["why"].as_str().unwrap().starts_with("it cannot be read"), "{said}");
}

#[test]
fn a_pool_of_refused_contributions_fails_and_publishes_nothing() {
    let home = Home::of_team(Some(SECRET));
    home.write("team/user=p1/week=2026-10-19/contribution.parquet", "no table");
    let [team, out] = ["team", "published"].map(|name| home.path(name).to_string_lossy().into_owned());
    let refused = home.run(&["pool", &team, "--publish", &out]);
    assert_eq!((refused.exit, refused.out.as_str()), (Exit::Failed, ""), "{}", refused.err);
    assert!(refused.err.contains("nothing to pool: 1 contribution refused\n  hint: user=p1/"), "{}", refused.err);
    assert!(!home.path("published").exists());
}

#[test]
fn a_pool_is_not_published_among_what_people_give() {
    let home = Home::of_team(Some(SECRET));
    people_give(&home, 5);
    let [team, same] = ["team", "team/."].map(|name| home.path(name).to_string_lossy().into_owned());
    let refused = home.run(&["pool", &team, "--publish", &same]);
    assert!(refused.exit == Exit::Usage && refused.err.contains("a folder of contributions"), "{}", refused.err);
    assert!(!home.path("team/pool.parquet").exists() && !home.path("team/pool-roster.json").exists());
}

/// So many people of whom each reads.
fn people_give(home: &Home, people: usize) {
    for person in 0..people {
        put(&home.path("team"), &of_person(&format!("p{person}"), WEEK, rows(&[("Read", 40, 8)], &[])));
    }
}

#[test]
fn what_is_suppressed_is_not_the_difference_of_what_is_told() {
    let home = Home::of_team(Some(SECRET));
    for person in 0..8 {
        // Read is followed by Edit, by Grep, and with two people by a tool of their own: without more the steps less the
        // two edges would be theirs.
        let mut edges = vec![("Read", "Edit", if person < 2 { 20 } else { 30 }), ("Read", "Grep", 20)];
        if person < 2 {
            edges.push(("Read", "mcp__own__look", 10));
        }
        put(&home.path("team"), &of_person(&format!("p{person}"), WEEK, rows(&[("Read", 50, 0)], &edges)));
    }
    let (pool, _) = pool(&home, &["team"]);
    let edges: Vec<&PooledCount> =
        pool.rows.iter().filter(|row| row.count.subject.kind == "edge" && row.count.measure == "support").collect();
    // The larger is told, the smaller is taken back.
    assert_eq!(
        edges.iter().map(|row| (&*row.count.subject.other, row.count.count)).collect::<Vec<_>>(),
        [("Edit", 220)]
    );
}

#[test]
fn what_a_count_leaves_of_its_whole_is_not_one_persons() {
    let home = Home::of_team(Some(SECRET));
    // Everybody makes 60 calls in 4 sessions, and one makes some that no other does.
    let odd = |person: usize, count: i64| if person == 0 { count } else { 0 };
    for person in 0..8 {
        let part = |measure: &str, bin: u32, count: i64| row("endpoint", "Read", "Read", 0, measure, bin, count);
        let of_edge = |to: &str, measure: &str, count: i64| row("edge", "Read", to, 1, measure, 0, count);
        let mut counts = vec![
            part("calls", 0, 60),
            part("sessions", 0, 4 - odd(person, 1)),
            part("baseline_tokens", 0, 900),
            part("sent_tokens", 0, 900 - odd(person, 70)),
            part("bytes", 90, 60),
            part("shape", 2, 60),
            part("repeats", 0, 30),
            part("distance", 7, 30),
            part("latency_ms", 50, 60 - odd(person, 2)),
            part("columns", 3, 60 - odd(person, 1)),
            part("inner_format", 1, 60 - odd(person, 1)),
            part("inner_format", 2, 20),
            row("tool", "Read", "", 0, "steps", 0, 60),
            row("tool", "Read", "", 0, "sessions", 0, 4),
            // Both follow most steps, so that together they are more than all of them.
            of_edge("Edit", "support", 50),
            of_edge("Edit", "sessions", 4 - odd(person, 1)),
            of_edge("Grep", "support", 60 - odd(person, 3)),
            of_edge("Grep", "sessions", 4),
        ];
        counts.sort();
        put(&home.path("team"), &of_person(&format!("p{person}"), WEEK, counts));
    }
    let (pool, said) = pool(&home, &["team"]);
    assert!(said["refused"].as_array().unwrap().is_empty(), "{said}");
    let told = |kind: &str, other: &str| -> Vec<(&str, u32)> {
        let rows = pool.rows.iter().map(|row| &row.count);
        let rows = rows.filter(|row| row.subject.kind == kind && row.subject.other == other);
        rows.map(|row| (row.measure.as_str(), row.bin)).collect()
    };
    let kept = [("baseline_tokens", 0), ("bytes", 90), ("calls", 0), ("distance", 7), ("inner_format", 2)];
    assert_eq!(told("endpoint", "Read"), [&kept[..], &[("repeats", 0), ("shape", 2)]].concat());
    assert_eq!(told("tool", ""), [("sessions", 0), ("steps", 0)]);
    assert_eq!((told("edge", "Edit"), told("edge", "Grep")), (vec![("support", 0)], vec![]));
}

#[test]
fn a_share_stands_beside_the_whole_of_the_weeks_that_tell_it() {
    let home = Home::of_team(Some(SECRET));
    let second = "2026-10-12";
    for person in 0..6 {
        let part = |measure: &str, count: i64| row("endpoint", "Read", "Read", 0, measure, 0, count);
        // In the second week only one person saves anything, sees repeats or edits: none of it is told.
        let odd = |all: i64, week: &str| if week == WEEK || person == 0 { all } else { 0 };
        for week in [WEEK, second] {
            let calls = if week == WEEK { 20 } else { 400 };
            let mut counts = vec![
                part("calls", calls),
                part("sessions", 2),
                part("baseline_tokens", 100 * calls),
                part("sent_tokens", 100 * calls - odd(40, week)),
                row("endpoint", "Read", "Read", 0, "bytes", 90, calls),
                row("endpoint", "Read", "Read", 0, "shape", 2, calls),
                row("tool", "Read", "", 0, "steps", 0, calls),
                row("tool", "Read", "", 0, "sessions", 0, 2),
            ];
            if odd(1, week) > 0 {
                counts.extend([part("repeats", 5), row("endpoint", "Read", "Read", 0, "distance", 7, 5)]);
                let edge = |measure: &str, count: i64| row("edge", "Read", "Edit", 1, measure, 0, count);
                counts.extend([edge("support", 10), edge("sessions", 2)]);
            }
            counts.sort();
            put(&home.path("team"), &of_person(&format!("p{person}"), week, counts));
        }
    }
    let team = home.path("team").to_string_lossy().into_owned();
    let row = home.json(&["pool", &team])["endpoints"][0].clone();
    assert_eq!((&row["calls"], &row["parts"]), (&json!(6 * 420), &json!(2)), "{row}");
    assert_eq!(
        (&row["repeats"], &row["repeats_of"], &row["dup_rate"]),
        (&json!(30), &json!(120), &json!(0.25)),
        "{row}"
    );
    assert_eq!((&row["baseline_tokens"], &row["sent_tokens"]), (&json!(12_000), &json!(11_760)), "{row}");
    let edge = home.json(&["pool", &team, "--by", "edges"])["edges"][0].clone();
    assert_eq!(
        (&edge["support"], &edge["steps"], &edge["probability"]),
        (&json!(60), &json!(120), &json!(0.5)),
        "{edge}"
    );
    assert_eq!(home.json(&["pool", &team, "--by", "tools"])["tools"][0]["steps"], 6 * 420);
    let people = home.run(&["pool", &team]).out;
    assert!(["2,520", "25.0 %", "12,000"].iter().all(|figure| people.contains(figure)), "{people}");
}

#[test]
fn another_setting_that_matters_to_one_person_is_not_told() {
    let home = Home::of_team(Some(SECRET));
    for person in 0..6 {
        let of = |name: &str, measure: &str, count: i64| row("what_if", name, "", 0, measure, 0, count);
        let setting = |name: &str, policy: i64| {
            [of(name, "log_tokens", 9_000), of(name, "policy_tokens", policy), of(name, "sessions", 2)]
        };
        let window = 9_000 - if person == 0 { 4_000 } else { 0 };
        let counts = [setting("cache-1h", 8_000), setting("cache-5m", 9_000), setting("window-150k", window)].concat();
        put(&home.path("team"), &of_person(&format!("p{person}"), WEEK, counts));
    }
    let (pool, _) = pool(&home, &["team"]);
    let told: BTreeSet<&str> = pool.rows.iter().map(|row| row.count.subject.name.as_str()).collect();
    assert_eq!(told.into_iter().collect::<Vec<_>>(), ["cache-1h", "cache-5m"], "all or nobody, and not one");
}

#[test]
fn names_are_found_by_no_dictionary_and_logs_of_one_person_explain_no_row() {
    let home = Home::of_team(Some(SECRET));
    let names = ["mcp__gitlab__get_issues", "mcp__payroll__get_salary", "deploy_to_production"];
    for person in 0..7 {
        let done: Vec<Done<'_>> = names.iter().map(|name| (*name, 20 + person, 5)).collect();
        put(&home.path("team"), &of_person(&format!("p{person}"), WEEK, rows(&done, &[])));
    }
    let (pool, _) = pool(&home, &["team"]);
    let told: Vec<&str> = pool.rows.iter().map(|row| row.count.subject.name.as_str()).collect();
    let other = FleetNaming::new(Some(Pseudonyms::of_secret(b"a secret of another team"))).unwrap();
    for name in names {
        assert!(told.contains(&naming().of(name).as_str()), "{name} is told under its keyed name");
        let plain = Id::pseudonym(name.as_bytes()).to_string();
        let xxh = Id::of(name.as_bytes()).to_string();
        let verb = name.rsplit("__").next().unwrap();
        for guess in [name, verb, &plain[..12], &xxh[..12], &published_tool(name), &other.of(name)] {
            assert!(!told.iter().any(|told| told.contains(guess)), "{guess} of {name}");
        }
    }
    // Who has all of one person's counts finds no row that is nothing but them, or mostly them.
    for person in 0..7 {
        for row in pool.rows.iter().filter(|row| row.count.measure == "calls") {
            assert!(2 * (20 + person) <= row.count.count && row.people >= 5);
        }
    }
}

fn held(people: &[Vec<Count>]) -> FolderContents {
    let mut held = FolderContents::default();
    for (number, counts) in people.iter().enumerate() {
        let user = format!("p{number}");
        let mut given = PooledFile {
            user: user.clone(),
            week: WEEK.into(),
            digest: user.clone(),
            marks: Vec::new(),
            counts: BTreeMap::new(),
        };
        for count in counts {
            let cells = given.counts.entry(count.subject.clone()).or_default();
            *cells.entry((count.measure.clone(), count.bin)).or_default() += count.count;
        }
        held.given.insert((WEEK.into(), user), given);
    }
    held
}

/// A person's week with sizes, shapes and follow-ups that differ.
fn person() -> impl Strategy<Value = Vec<Count>> {
    let endpoint = (0_usize..4, 3_i64..200, 0_u32..40, 0_u32..6, prop::collection::vec(1_i64..60, 3));
    prop::collection::vec(endpoint, 1..5).prop_map(|endpoints| {
        let mut out = Vec::new();
        for (name, calls, bin, shape, follows) in endpoints {
            let name = ["Read", "Grep", "Edit", "Bash"][name];
            for (measure, bin, count) in
                [("calls", 0, calls), ("bytes", bin, calls), ("shape", shape, calls), ("sessions", 0, 1)]
            {
                out.push(row("endpoint", name, name, 0, measure, bin, count));
            }
            out.push(row("endpoint", name, name, 0, "latency_ms", bin, follows[0].min(calls)));
            out.push(row("tool", name, "", 0, "steps", 0, calls));
            for (to, support) in ["Read", "Grep", "Edit"].iter().zip(follows) {
                out.push(row("edge", name, to, 1, "support", 0, support.min(calls)));
            }
        }
        out
    })
}

proptest! {
    #![proptest_config(cases(200))]

    /// Counted again from what the people gave, with nothing of the program: every row is told of at least five, nobody has
    /// more than half, histograms lose no count, and what edges leave of their steps stands as well.
    #[test]
    fn every_row_can_be_counted_again(people in prop::collection::vec(person(), 1..14)) {
        let held = held(&people);
        let found = pooled(&held, String::new(), &limits()).pool;
        prop_assert!(people.len() >= 5 || found.rows.is_empty());
        let of = |given: &PooledFile, subject: &CountSubject, measure: &str, bin: Option<u32>| -> i64 {
            let cells = given.counts.get(subject).into_iter().flatten();
            cells.filter(|((of, at), _)| of == measure && bin.is_none_or(|bin| bin == *at)).map(|(_, n)| n).sum()
        };
        let each = |subject: &CountSubject, measure: &str, bin: Option<u32>| -> Vec<i64> {
            held.given.values().map(|given| of(given, subject, measure, bin)).filter(|count| *count > 0).collect()
        };
        let stands = |parts: &[i64]| {
            parts.len() >= 5 && parts.iter().all(|part| 2 * part <= parts.iter().sum::<i64>())
        };
        for told in &found.rows {
            let Count { subject, measure, count, .. } = &told.count;
            prop_assert!(told.people >= 5, "{told:?}");
            if ["calls", "steps", "support"].contains(&measure.as_str()) {
                let parts = each(subject, measure, None);
                prop_assert!(stands(&parts) && *count == parts.iter().sum::<i64>() && told.people == parts.len() as i64);
            }
            if measure == "latency_ms" {
                let rest = held.given.values().map(|given| of(given, subject, "calls", None) - of(given, subject, measure, None));
                let rest: Vec<i64> = rest.filter(|rest| *rest > 0).collect();
                prop_assert!(rest.is_empty() || stands(&rest), "{rest:?}");
            }
            if ["bytes", "shape"].contains(&measure.as_str()) {
                let bins = found.rows.iter().filter(|row| row.count.subject == *subject && row.count.measure == *measure);
                let whole: i64 = bins.map(|row| row.count.count).sum();
                prop_assert_eq!(whole, each(subject, measure, None).iter().sum::<i64>());
            }
        }
        let edges = found.rows.iter().filter(|row| row.count.measure == "support").map(|row| &row.count.subject);
        let edges: Vec<&CountSubject> = edges.collect();
        for from in ["Read", "Grep", "Edit", "Bash"].iter().filter(|from| edges.iter().any(|edge| edge.name == **from)) {
            let tool = CountSubject { kind: "tool".into(), name: (*from).into(), ..CountSubject::default() };
            let told: Vec<&&CountSubject> = edges.iter().filter(|edge| edge.name == **from).collect();
            let rest = held.given.values().map(|given| {
                of(given, &tool, "steps", None) - told.iter().map(|edge| of(given, edge, "support", None)).sum::<i64>()
            });
            let rest: Vec<i64> = rest.filter(|rest| *rest > 0).collect();
            prop_assert!(rest.is_empty() || stands(&rest), "{from}: {rest:?}");
            for edge in told {
                let rest = held.given.values().map(|given| of(given, &tool, "steps", None) - of(given, edge, "support", None));
                let rest: Vec<i64> = rest.filter(|rest| *rest > 0).collect();
                prop_assert!(rest.is_empty() || stands(&rest), "{from} without {}: {rest:?}", edge.other);
            }
        }
    }
}

/// A log of one session with calls of this tool, on a day in the week.
pub fn log(session: &str, tool: &str, calls: usize, day: &str) -> String {
    use super::log_builder::*;
    let at = |record: Record, second: usize| {
        record.session(session).set("timestamp", format!("{day}T10:{:02}:{:02}.000Z", second / 60 % 60, second % 60))
    };
    let each = |number: usize| {
        let id = format!("{session}-{number}");
        let body = format!("{tool} answers {number} of {session} with some words");
        at(asks(&id, &id, tool), 2 * number).line() + &at(answers(&id, body), 2 * number + 1).line()
    };
    (0..calls).map(each).collect()
}

#[test]
fn sharing_shows_what_leaves_and_writes_a_week_once() {
    let home = Home::of_team(Some(SECRET));
    home.write(".claude/projects/-home-u-p/a.jsonl", log("s1", "mcp__payroll__get_salary", 9, "2026-10-20"));
    home.write(".claude/projects/-home-u-p/b.jsonl", log("s2", "Read", 9, "2026-10-28"));
    let team = home.path("team").to_string_lossy().into_owned();
    let shown = home.run(&["share", "--show", "--to", &team, "--format", "csv"]);
    assert!(
        shown.out.contains("endpoint") && shown.out.contains(&naming().of("mcp__payroll__get_salary")),
        "{}",
        shown.out
    );
    assert!(!shown.out.contains("Read") && !shown.out.contains("payroll") && !home.path("team").exists());
    let said = home.run(&["share", "--to", &team, "--as", "somebody"]);
    assert!(said.err.contains("1 finished week as somebody: 1 written"), "{}", said.err);
    let file = place(&home.path("team"), "somebody", WEEK);
    let bytes = std::fs::read(&file).unwrap();
    let read = contribution::read(bytes.clone(), 1_000).unwrap();
    let calls = read.counts.iter().find(|row| row.measure == "calls").unwrap();
    assert_eq!((calls.count, read.user.as_str(), read.marks.len()), (9, "somebody", 1));
    // Of Read only this week is known, which is not over.
    assert!(read.counts.iter().all(|row| row.subject.name != "Read"));
    home.write(".claude/projects/-home-u-p/c.jsonl", log("s3", "Grep", 9, "2026-10-21"));
    let again = home.run(&["share", "--to", &team, "--as", "somebody"]);
    assert!(again.err.contains("0 written") && std::fs::read(&file).unwrap() == bytes, "{}", again.err);
    for (odd, words) in [("../up", "not a pseudonym"), ("A B", "not a pseudonym"), ("", "not a pseudonym")] {
        let refused = home.run(&["share", "--to", &team, "--as", odd]);
        assert!(refused.exit == Exit::Usage && refused.err.contains(words), "{odd}: {}", refused.err);
    }
    for (secret, words) in [(None, "there is no team secret"), (Some("short"), "has 5 bytes")] {
        let home = Home::of_team(secret);
        home.write(".claude/projects/-home-u-p/a.jsonl", log("s1", "Read", 9, "2026-10-20"));
        let refused = home.run(&["share", "--to", &team]);
        assert!(refused.exit == Exit::Failed && refused.err.contains(words), "{}", refused.err);
    }
}

#[test]
fn who_has_no_week_to_share_is_told_why() {
    let home = Home::of_team(Some(SECRET));
    home.write(".claude/projects/-home-u-p/a.jsonl", log("s1", "Read", 9, "2026-06-02"));
    let team = home.path("team").to_string_lossy().into_owned();
    for command in [&["share", "--show"][..], &["share", "--to", &team, "--as", "heron"]] {
        let said = home.run(command).err;
        assert!(said.contains("only weeks that are over leave, at most the last 8"), "{command:?}: {said}");
    }
}

#[test]
fn one_person_adds_no_more_than_the_bounds() {
    let home = Home::of_team(Some(SECRET));
    for session in 0..30 {
        let name = format!(".claude/projects/-home-u-p/{session}.jsonl");
        home.write(&name, log(&format!("s{session}"), "Read", 40, "2026-10-20"));
    }
    let team = home.path("team").to_string_lossy().into_owned();
    home.run(&["share", "--to", &team, "--as", "busy"]);
    let bytes = std::fs::read(place(&home.path("team"), "busy", WEEK)).unwrap();
    let read = contribution::read(bytes, 1_000).unwrap();
    let number = |kind: &str, measure: &str| {
        let row =
            read.counts.iter().find(|row| row.subject.kind == kind && row.measure == measure && row.subject.lag < 2);
        row.map(|row| row.count).unwrap()
    };
    assert_eq!(number("endpoint", "calls"), 500);
    assert!(number("endpoint", "sessions") <= 20 && number("tool", "steps") == 500);
    // Each of 40 steps but the last of a session is followed by Read: the share survives the sample.
    let share = number("edge", "support") as f64 / 500.0;
    assert!((share - 39.0 / 40.0).abs() < 0.03, "{share}");
    assert!(crate::fleet::limits::week_named(WEEK).is_some_and(|week| limits().is_told(week, NOW_MS)));
}

#[test]
fn nobody_is_named_by_what_anybody_can_compute() {
    let with = |secret: Option<&str>| {
        let home = Home::of_team(secret);
        home.write(".claude/projects/-home-u-p/a.jsonl", log("s1", "Read", 9, "2026-10-20"));
        let team = home.path("team").to_string_lossy().into_owned();
        let said = |more: &[&str]| home.run(&[&["share", "--plain-names"], more].concat());
        let (shared, shown) = (said(&["--to", &team]), said(&["--show", "--json"]));
        let computed = Id::pseudonym(home.path("").to_str().unwrap().trim_end_matches('/').as_bytes()).to_string();
        assert!(shown.exit == Exit::Done && !shown.out.contains(&computed[..16]), "{}", shown.out);
        assert!(!shared.err.contains(&computed[..16]), "{}", shared.err);
        (home, shared)
    };
    let (home, shared) = with(Some(SECRET));
    assert!(shared.err.contains("1 written"), "{}", shared.err);
    let other = home.path("other").to_string_lossy().into_owned();
    let person = |said: &str| said.split(" as ").nth(1).unwrap().split(':').next().unwrap().to_owned();
    assert_eq!(person(&shared.err), person(&home.run(&["share", "--to", &other]).err), "one person, one pseudonym");
    for (secret, told) in [(None, "--as PSEUDONYM"), (Some("short"), "has 5 bytes")] {
        let (home, refused) = with(secret);
        assert!(refused.exit == Exit::Failed && refused.err.contains(told), "{}", refused.err);
        assert!(!home.path("team").exists());
    }
}

#[test]
fn what_a_pool_stands_on_is_not_asked_for_by_sessions() {
    let home = Home::of_team(Some(SECRET));
    for command in [&["share", "--show"][..], &["pool", "."]] {
        assert_eq!(home.run(&[command, &["--k-anonymity", "5"]].concat()).exit, Exit::Usage, "{command:?}");
    }
}
