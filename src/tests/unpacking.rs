//! Packed files that unpack to far more than a log would: given up after bounded output, counted, and named.

use std::io::{Read, Write, repeat};

use crate::base::damage::Reason;
use crate::base::unpack::{Packing, unpack};
use crate::tests::harness::{Home, session};

/// Bytes that any file may unpack to, and those for each packed byte beyond.
const FREE_BYTES: usize = 16 << 20;
const RATIO: usize = 200;

fn zstd(content: impl Read) -> Vec<u8> {
    zstd::stream::encode_all(content, 1).unwrap()
}

fn gzip(mut content: impl Read) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    std::io::copy(&mut content, &mut encoder).unwrap();
    encoder.finish().unwrap()
}

/// A line of blanks, again and again.
fn blanks(bytes: usize) -> Vec<u8> {
    let mut line = vec![b' '; 4095];
    line.push(b'\n');
    line.repeat(bytes / line.len())
}

/// How many bytes come out, and why no more do.
fn unpacked(packing: Packing, packed: &[u8]) -> (usize, Option<Reason>) {
    let mut content = unpack(packing, packed).unwrap();
    let (mut count, mut buffer) = (0, vec![0; 1 << 20]);
    loop {
        match content.read(&mut buffer) {
            Ok(0) => return (count, None),
            Ok(read) => count += read,
            Err(cause) => return (count, Some(packing.damage(&cause))),
        }
    }
}

#[test]
fn a_file_that_unpacks_to_too_much_is_given_up_after_bounded_output() {
    let bombs = [
        (Packing::Zstd, zstd(repeat(0).take(4 << 30))),
        // Frame after frame: each is small by itself.
        (Packing::Zstd, zstd(repeat(b' ').take(8 << 20)).repeat(200)),
        (Packing::Gzip, gzip(repeat(0).take(96 << 20))),
        (Packing::Gzip, gzip(repeat(0).take(1 << 20)).repeat(100)),
    ];
    for (packing, bomb) in bombs {
        let (count, why) = unpacked(packing, &bomb);
        let allowed = FREE_BYTES + RATIO * bomb.len();
        println!("{packing:?}: {count} bytes out of {}, {allowed} allowed", bomb.len());
        assert!(count <= allowed, "{packing:?}: {count} bytes out of {}", bomb.len());
        assert_eq!(why, Some(Reason::UnpacksTooLarge), "{packing:?}");
    }
}

#[test]
fn what_is_packed_as_tightly_as_logs_are_comes_out_whole() {
    let text = (0..400).map(|number| session(&format!("s{number}"), 60)).collect::<String>();
    assert!(text.len() > FREE_BYTES, "{}", text.len());
    let tight = zstd::stream::encode_all(text.as_bytes(), 12).unwrap();
    for (packing, packed) in [(Packing::Zstd, tight), (Packing::Gzip, gzip(text.as_bytes()))] {
        println!("{packing:?}: {}", text.len() / packed.len());
        assert_eq!(unpacked(packing, &packed), (text.len(), None), "{packing:?}");
    }
    let small = vec![0; FREE_BYTES];
    assert_eq!(unpacked(Packing::Zstd, &zstd(&small[..])), (FREE_BYTES, None));
}

#[test]
fn a_window_over_8_mb_is_refused_before_it_is_allocated() {
    let packed = |log: u32| {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 1).unwrap();
        encoder.window_log(log).unwrap();
        encoder.write_all(b"{}\n").unwrap();
        encoder.flush().unwrap();
        encoder.write_all(b"{}\n").unwrap();
        encoder.finish().unwrap()
    };
    assert_eq!(unpacked(Packing::Zstd, &packed(23)), (6, None));
    for log in [24, 27] {
        assert_eq!(unpacked(Packing::Zstd, &packed(log)), (0, Some(Reason::UnpacksTooLarge)), "2^{log}");
    }
}

#[test]
fn such_a_log_is_counted_and_named_and_all_others_are_read() {
    let home = Home::new();
    home.write(".claude/projects/p/good.jsonl", session("good", 5));
    let text = [session("bomb", 3).into_bytes(), blanks(6 * FREE_BYTES)].concat();
    home.write(".claude/projects/p/bomb.jsonl.zst", zstd(&text[..]));
    for arguments in [&["ingest"][..], &["ingest"], &["ingest", "--no-lake"]] {
        let report = home.json(arguments);
        let damage = &report["data_quality"]["unpacks_too_large"];
        assert_eq!(damage["count"], 1, "{}", report["data_quality"]);
        assert!(damage["first"].as_str().unwrap().ends_with("bomb.jsonl.zst"), "{damage}");
        assert!(report["inputs"]["notes"].to_string().contains("bomb.jsonl.zst unpacks to more"), "{arguments:?}");
    }
    assert_eq!(home.json(&["ingest"])["totals"]["tool_uses"], 8);
    let told = home.run(&["mine", "tools"]).err;
    assert!(told.contains("bomb.jsonl.zst unpacks to more"), "{told}");
}

#[test]
fn such_telemetry_is_counted_and_named() {
    let home = Home::new();
    home.write(".devboy/telemetry/bomb.jsonl.zst", zstd(&blanks(6 * FREE_BYTES)[..]));
    let arguments = ["mine", "fingerprints", "--from-telemetry", "--allow-empty"];
    let told = home.run(&arguments).err;
    assert!(told.contains("bomb.jsonl.zst unpacks to more"), "{told}");
    let report = home.json(&arguments);
    assert_eq!(report["data_quality"]["unpacks_too_large"]["count"], 1);
    let lines = report["inputs"]["lines"].as_u64().unwrap() as usize;
    assert!(lines * 4096 < 2 * FREE_BYTES, "{lines} lines were read");
}

#[test]
fn nothing_is_written_over_a_packed_log() {
    let home = Home::new();
    let text = session("one", 4);
    for (name, packed) in [("one.jsonl.zst", zstd(text.as_bytes())), ("two.jsonl.gz", gzip(text.as_bytes()))] {
        let log = home.write(name, &packed);
        let refused = home.run(&["mine", "edges", "--input-dir", log.to_str().unwrap(), "-o", log.to_str().unwrap()]);
        assert!(refused.err.contains("one of the logs"), "{}", refused.err);
        assert_eq!(std::fs::read(&log).unwrap(), packed);
    }
}
