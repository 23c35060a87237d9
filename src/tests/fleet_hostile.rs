//! Contributions that no devboy writes are refused by name, and the pool is what it is without them.

use std::os::unix::fs::symlink;
use std::path::Path;

use super::fleet::{SECRET, WEEK, naming, of_person, pool, put, row, rows};
use super::harness::Home;
use crate::base::contained::contained;
use crate::base::pseudonyms::Pseudonyms;
use crate::fleet::folder::place;
use crate::fleet::naming::FleetNaming;
use crate::frames::contribution;
use crate::frames::contribution::{Contribution, Count, hostile, read};

fn honest(user: &str) -> Contribution {
    of_person(user, WEEK, rows(&[("Read", 40, 8), ("Grep", 12, 0)], &[("Read", "Grep", 10)]))
}

fn write(directory: &Path, user: &str, bytes: impl AsRef<[u8]>) {
    let path = place(directory, user, WEEK);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

/// A contribution with something wrong about it.
fn bad(user: &str, change: impl FnOnce(&mut Contribution)) -> Vec<u8> {
    let mut contribution = honest(user);
    change(&mut contribution);
    contribution.counts.sort();
    contribution::write(&contribution).unwrap()
}

fn count_of<'c>(contribution: &'c mut Contribution, measure: &str) -> &'c mut Count {
    contribution.counts.iter_mut().find(|row| row.measure == measure).unwrap()
}

#[test]
fn hostile_contributions_are_refused_by_name_and_change_nothing() {
    let people = ["a", "b", "c", "d", "e", "f"];
    let home = Home::of_team(Some(SECRET));
    people.iter().for_each(|user| put(&home.path("clean"), &honest(user)));
    people.iter().for_each(|user| put(&home.path("dirty"), &honest(user)));
    let clean = pool(&home, &["clean"]).0;
    assert!(clean.rows.iter().any(|row| row.count.subject.kind == "edge"));
    let dirty = home.path("dirty");
    let mut expected: Vec<(&str, &str)> = Vec::new();
    let mut add = |user: &'static str, bytes: Vec<u8>, why: &'static str| {
        write(&dirty, user, bytes);
        expected.push((user, why));
    };
    let good = contribution::write(&honest("x")).unwrap();
    add("x-nan", hostile::odd(&honest("x-nan"), "NaN"), "columns are others");
    add("x-u64", hostile::odd(&honest("x-u64"), "2^63"), "columns are others");
    add("x-text", hostile::odd(&honest("x-text"), "more columns"), "columns are others");
    add("x-old", hostile::odd(&honest("x-old"), "0"), "schema version is 0");
    add("x-future", hostile::odd(&honest("x-future"), "2"), "schema version is 2");
    add("x-foreign", hostile::odd(&honest("x-foreign"), "no version"), "names no schema version");
    add("x-negative", bad("x-negative", |of| count_of(of, "calls").count = -5), "-5 is not between");
    add("x-zero", bad("x-zero", |of| count_of(of, "calls").count = 0), "0 is not between");
    add("x-huge", bad("x-huge", |of| count_of(of, "calls").count = i64::MAX), "is not between");
    add("x-many", bad("x-many", |of| count_of(of, "sessions").count = 21), "is not between 1 and 20");
    add("x-bin", bad("x-bin", |of| count_of(of, "bytes").bin = 5_000), "there is no bin 5000");
    add("x-measure", bad("x-measure", |of| count_of(of, "calls").measure = "prompt".into()), "no such measure");
    add("x-kind", bad("x-kind", |of| count_of(of, "calls").subject.kind = "person".into()), "no such measure");
    let name = |of: &mut Contribution| of.counts.iter_mut().for_each(|row| row.subject.name = "/home/u/p".into());
    add("x-name", bad("x-name", name), "none that leaves a machine");
    let long = |of: &mut Contribution| count_of(of, "calls").subject.name = "n".repeat(400);
    add("x-long", bad("x-long", long), "no names");
    let unknown =
        |of: &mut Contribution| of.counts.push(row("what_if", "my-secret-setting", "", 0, "log_tokens", 0, 9));
    add("x-setting", bad("x-setting", unknown), "none that leaves a machine");
    let dear =
        |of: &mut Contribution| of.counts.push(row("what_if", "cache-1h", "", 0, "policy_tokens", 0, i64::MAX / 2));
    add("x-dear", bad("x-dear", dear), "is not between");
    let alone = |of: &mut Contribution| of.counts.push(row("what_if", "cache-1h", "", 0, "policy_tokens", 0, 9));
    add("x-alone", bad("x-alone", alone), "do not add up");
    let lag = |of: &mut Contribution| of.counts.iter_mut().for_each(|row| row.subject.lag *= 9);
    add("x-lag", bad("x-lag", lag), "there is no lag 9");
    let twice = |of: &mut Contribution| of.counts.push(of.counts[0].clone());
    add("x-twice", bad("x-twice", twice), "stands there twice");
    add("x-sums", bad("x-sums", |of| count_of(of, "shape").count += 1), "do not add up");
    add("x-steps", bad("x-steps", |of| count_of(of, "support").count = 400), "do not add up");
    add("x-week", bad("x-week", |of| of.week = "2026-10-12".into()), "of another week");
    add("x-user", bad("x-user", |of| of.user = "a".into()), "another person's");
    add("x-marks", bad("x-marks", |of| of.marks.clear()), "no marks of sessions");
    let other = FleetNaming::new(Some(Pseudonyms::of_secret(b"a secret of another team"))).unwrap();
    add("x-secret", bad("x-secret", |of| of.secret = other.secret()), "another team secret");
    add("x-cut", good[..good.len() / 2].to_vec(), "no Parquet file");
    add("x-noise", (0..5_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect(), "no Parquet file");
    add("x-empty", Vec::new(), "no Parquet file");
    add("x-big", vec![0; 2_000_001], "at most 2000000 are read");
    let rows = |of: &mut Contribution| of.counts = vec![of.counts[0].clone(); 50_001];
    add("x-rows", bad("x-rows", rows), "50001 rows");
    let packed = {
        let mut bytes = Vec::new();
        let listing = crate::base::listing::Columns::of(&[1_i64]).whole("count", |row| Some(*row)).finish();
        crate::frames::export::write_listing(&mut bytes, &listing, &[("what", "contribution".into())]).unwrap();
        bytes
    };
    add("x-listing", packed, "columns are others");
    // One person under two names.
    for user in ["x-twin-1", "x-twin-2"] {
        add(user, bad(user, |of| of.marks = vec!["0123456789abcdef".into()]), "one person must have one name");
    }
    // Path tricks.
    write(&dirty, "x%2f..%2fa", &good);
    write(&dirty, "X", &good);
    symlink(dirty.join("user=a"), dirty.join("user=linked")).unwrap();
    std::fs::create_dir_all(dirty.join("user=y-link/week=2026-10-19")).unwrap();
    symlink(place(&dirty, "a", WEEK), place(&dirty, "y-link", WEEK)).unwrap();
    std::fs::create_dir_all(place(&dirty, "y-dir", WEEK)).unwrap();
    for week in ["2026-10-20", "2026-10-26", "2026-1-5", "9999-12-27", "2020-01-06", "..", "2026-10-19x"] {
        std::fs::create_dir_all(dirty.join(format!("user=y-week/week={week}"))).unwrap();
    }
    std::fs::write(dirty.join("notes.txt"), "hello").unwrap();
    let (found, said) = pool(&home, &["dirty"]);
    assert_eq!(found, clean, "the pool is what it is without them");
    let refused: Vec<String> = said["refused"].as_array().unwrap().iter().map(|row| row.to_string()).collect();
    for (user, why) in expected {
        let of_user: Vec<&String> = refused.iter().filter(|row| row.contains(&format!("user={user}/"))).collect();
        assert!(of_user.len() == 1 && of_user[0].contains(why), "{user}: {why}, not {of_user:?}");
    }
    let places = [
        "user=x%2f..%2fa\"",
        "user=X\"",
        "user=linked\"",
        "user=y-link/",
        "user=y-dir/",
        "user=y-week/week=2026-10-20\"",
        "user=y-week/week=2026-10-26\"",
        "user=y-week/week=2026-1-5\"",
        "user=y-week/week=9999-12-27\"",
        "user=y-week/week=2020-01-06\"",
        "notes.txt\"",
    ];
    for place in places {
        assert!(refused.iter().any(|row| row.contains(place)), "{place} is not among {refused:#?}");
    }
}

#[test]
fn who_copies_somebody_that_was_pooled_is_refused_alone() {
    let home = Home::of_team(Some(SECRET));
    ["a", "b", "c", "d", "e"].iter().for_each(|user| put(&home.path("team"), &honest(user)));
    let before = pool(&home, &["team"]).0;
    let copy = Contribution { user: "copy".into(), ..honest("a") };
    put(&home.path("team"), &copy);
    let (after, said) = pool(&home, &["team"]);
    assert_eq!(after, before);
    assert!(said["refused"].to_string().contains("user=copy") && !said["refused"].to_string().contains("user=a/"));
}

#[test]
fn flipped_bits_are_refused_or_change_nothing() {
    let whole = honest("a");
    let good = contribution::write(&whole).unwrap();
    let limits = super::fleet::limits();
    for at in (0..good.len()).step_by(7) {
        for bit in [0, 5] {
            let mut bytes = good.clone();
            bytes[at] ^= 1 << bit;
            // Neither a panic that gets out, nor anything else than was there.
            if let Ok(found) = read(bytes, limits.rows_max) {
                assert_eq!(found, whole, "bit {bit} of byte {at}");
            }
        }
    }
    assert!(naming().is_possible("Read") && !naming().is_possible("k0123"));
}

#[test]
fn a_panic_of_others_ends_their_work_and_nothing_else() {
    for at in 0..3_usize {
        assert_eq!(contained(move || at), Some(at));
        assert_eq!(contained(move || vec![0; at][at + 1]), None::<u8>);
    }
}
