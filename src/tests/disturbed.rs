//! Files that change while they are read.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::logs::discover::{LogFile, Root, is_disturbed, list};

#[test]
fn a_file_is_disturbed_by_all_but_what_is_appended() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.jsonl");
    fs::write(&path, "one\ntwo\n").unwrap();
    let listed = || list(&[Root { path: dir.path().to_owned(), origin: "test" }]).files[0].clone();
    let seen = |file: &LogFile| is_disturbed(&path, (file.bytes, file.modified_ns, file.inode));
    let file = listed();
    assert!(!seen(&file));
    fs::write(&path, "one\ntwo\nthree\n").unwrap();
    assert!(!seen(&file), "what was appended waits for the next run");
    fs::write(&path, "one\n").unwrap();
    assert!(seen(&file), "it was cut off");
    fs::write(&path, "one\nTWO\n").unwrap();
    fs::File::open(&path).unwrap().set_modified(SystemTime::now() + Duration::from_secs(60)).unwrap();
    assert!(seen(&file), "it was written anew");
    let file = listed();
    fs::write(dir.path().join("other"), "one\nTWO\n").unwrap();
    fs::rename(dir.path().join("other"), &path).unwrap();
    assert!(seen(&file), "it was replaced");
    fs::remove_file(&path).unwrap();
    assert!(seen(&file), "it is gone");
}
