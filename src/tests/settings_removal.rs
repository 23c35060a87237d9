//! Facts about taking keys out of `pipeline_config.toml`: what was set goes without a trace, everything else stays.

use std::fs;
use std::path::Path;

use proptest::prelude::*;
use toml_edit::Value;

use super::settings::{NASTY, other_than};
use crate::base::key_path::KeyPath;
use crate::settings::*;

/// Files as people keep them: blocks set off by one blank line, no table without a key.
const TIDY: &[&str] = &[
    "",
    "schema_version = 4\n",
    "schema_version = 4",
    "# mine",
    "\u{feff}# mine\r\n\r\nschema_version = 2 # old\r\n\r\n[dedup]\r\nmin_body_chars = 150\r\n",
    "[dedup]\nmin_body_chars = 150 # ünï\n# more\n\n# the router\n[mckp] # x\nrecursion_depth = 4\n\n# the end\n",
    "dedup.min_body_chars = 5\ntools.\"mcp__a b\".speculate = true\n\n[profiles]\nllm.active = \"auto\"\n",
    "dedup = { min_body_chars = 5 }\nhints={types={near_ref={enabled=true}},} # tail\n\n[mckp]\nrecursion_depth = 4",
    "[mckp]\nshape_thresholds = {\n    flat_object_min_fields = 8, # eight\n}\n\n[[tools.R.follow_up]]\ntool = \"E\"\n",
    "[tools.R]\nspeculate = true\n\n# often\n[[tools.R.follow_up]]\ntool = \"E\"\n\n[telemetry]\npath = '''\n# pin\n\n'''\n",
];

fn read(text: &str) -> SettingsFile {
    SettingsFile::parse(Path::new("c.toml"), text).unwrap()
}

fn key(text: &str) -> KeyPath {
    text.parse().unwrap()
}

fn set(key: &KeyPath, value: Value) -> WantedValue {
    WantedValue { key: key.clone(), value: Some(value) }
}

fn absent(key: &KeyPath) -> WantedValue {
    WantedValue { key: key.clone(), value: None }
}

/// The text without these keys; taking them out again changes nothing.
fn without(text: &str, keys: &[&str]) -> String {
    let changes: Vec<WantedValue> = keys.iter().map(|text| absent(&key(text))).collect();
    let once = apply(&read(text), &changes).unwrap();
    assert_eq!(apply(&read(&once), &changes).unwrap(), once, "the same changes again");
    once
}

/// The test data of the edits, where every block is set off by a blank line.
fn test_data() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/settings");
    let cases = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path().join("in.toml"));
    cases.filter_map(|path| fs::read_to_string(path).ok()).collect()
}

/// Keys of every kind with a value that they do not have.
fn settable() -> Vec<(KeyPath, Value)> {
    let leaves = Effective::built_in().leaves.into_iter();
    // Every third is enough to meet every table.
    let leaves = leaves.step_by(3).map(|(key, value, _)| (key.clone(), other_than(&value, &key)));
    let links = "[{ tool = \"A\", probability = 0.5 }, { tool = \"B\" }]";
    let others = [
        ("tools.New.speculate", "false"),
        ("tools.New.cost_model.typical_kb", "1.5"),
        ("tools.New.follow_up", links),
        ("tools.R.follow_up", links),
        ("tools.\"mcp__a b\".cost_model.max_kb", "9.0"),
        ("dedup.enabled_per_endpoint.\"mcp__x y\"", "false"),
        ("endpoint_overrides.e.lru_size", "7"),
        ("hints.types.new.enabled", "true"),
    ];
    leaves.chain(others.map(|(path, value)| (key(path), value.parse().unwrap()))).collect()
}

/// The name of the table of a key.
fn above(key: &KeyPath) -> String {
    key.parent().and_then(|parent| Some(parent.leaf()?.to_owned())).unwrap_or_default()
}

fn leaves_of(file: &SettingsFile) -> Vec<(KeyPath, String)> {
    let leaves = Effective::resolve(file).unwrap().leaves;
    leaves.into_iter().map(|(key, value, _)| (key, value.to_string())).collect()
}

fn comment_lines(text: &str) -> Vec<&str> {
    text.lines().map(str::trim).filter(|line| line.starts_with('#')).collect()
}

// --- What devboy set ------------------------------------------------------------------------------------------------

#[test]
fn a_new_key_that_is_taken_out_again_leaves_every_byte() {
    let tidy = TIDY.iter().map(|text| (*text).to_owned()).chain(test_data());
    let mut tried = 0;
    for text in tidy {
        for (key, value) in settable() {
            let file = read(&text);
            // An older version is raised besides, and a table that was empty looks like one that devboy made.
            let is_told = file.schema_version < CURRENT_VERSION || text.contains(&format!("{} = {{}}", above(&key)));
            if file.get(&key).is_some() || is_told {
                continue;
            }
            let with = apply(&file, &[set(&key, value)]).unwrap();
            assert_ne!(with, text);
            assert_eq!(without(&with, &[&key.to_string()]), text, "{key} in {with:?}");
            tried += 1;
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn in_an_odd_file_at_most_a_blank_line_or_an_empty_table_tells_of_it() {
    let squeezed = |text: &str| {
        let lines = text.replace("{ }", "{}").replace('\r', "");
        let lines = lines.split('\n').filter(|line| !line.trim().is_empty()).map(str::to_owned).collect::<Vec<_>>();
        let is_header = |line: Option<&String>| line.is_some_and(|line| line.starts_with('['));
        let is_empty = |at: usize| is_header(lines.get(at)) && (at + 1 == lines.len() || is_header(lines.get(at + 1)));
        (0..lines.len()).filter(|at| !is_empty(*at)).map(|at| lines[at].clone()).collect::<Vec<_>>()
    };
    for text in NASTY {
        for (key, value) in settable() {
            let file = read(text);
            if file.get(&key).is_some() {
                continue;
            }
            let with = apply(&file, &[set(&key, value)]).unwrap();
            let back = without(&with, &[&key.to_string()]);
            if back == *text {
                continue;
            }
            let context = format!("{key} in {text:?} gave {with:?} and {back:?}");
            assert_eq!(squeezed(&back), squeezed(text), "{context}");
            assert_eq!(leaves_of(&read(&back)), leaves_of(&file), "{context}");
            assert_eq!(comment_lines(&back), comment_lines(text), "{context}");
        }
    }
}

#[test]
fn a_whole_block_goes_as_one_or_key_by_key() {
    let table = "value_class = \"critical\"\n[cost_model]\ntypical_kb = 1.0\n[[follow_up]]\ntool = \"A\"\n[[follow_up]]\ntool = \"B\"\n";
    let table: toml_edit::DocumentMut = table.parse().unwrap();
    let change =
        WantedValue { key: key("tools.New"), value: Some(table.as_table().clone().into_inline_table().into()) };
    for text in TIDY.iter().filter(|text| !text.contains("schema_version = 2")) {
        let with = apply(&read(text), std::slice::from_ref(&change)).unwrap();
        assert_eq!(without(&with, &["tools.New"]), *text, "{with:?}");
        let leaves = ["tools.New.cost_model.typical_kb", "tools.New.follow_up", "tools.New.value_class"];
        assert_eq!(without(&with, &leaves), *text, "{with:?}");
        let one_by_one = leaves.iter().fold(with.clone(), |text, key| without(&text, &[key]));
        assert_eq!(one_by_one, *text, "{with:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn many_keys_set_and_taken_out_in_any_order_leave_every_byte(
        text in prop::sample::select(TIDY),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
        order in any::<u64>(),
        together in any::<bool>(),
    ) {
        let file = read(text);
        prop_assume!(file.schema_version == CURRENT_VERSION);
        let all = settable();
        let mut picked: Vec<(KeyPath, Value)> = picks.iter().map(|pick| all[pick.index(all.len())].clone()).collect();
        picked.retain(|(key, _)| file.get(key).is_none());
        let sets: Vec<WantedValue> = picked.iter().map(|(key, value)| set(key, value.clone())).collect();
        let with = apply(&file, &sets).unwrap();
        let mut keys: Vec<String> = picked.iter().map(|(key, _)| key.to_string()).collect();
        keys.sort();
        keys.dedup();
        let turn = order as usize % keys.len().max(1);
        keys.rotate_left(turn);
        let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
        let back = match together {
            true => without(&with, &keys),
            false => keys.iter().fold(with.clone(), |text, key| without(&text, &[key])),
        };
        prop_assert_eq!(back, text, "{:?} out of {:?}", keys, with);
    }
}

// --- What a person wrote --------------------------------------------------------------------------------------------

#[test]
fn any_key_can_be_taken_out_of_any_file_and_nothing_else_changes() {
    let files = NASTY.iter().chain(TIDY).map(|text| (*text).to_owned()).chain(test_data());
    for text in files {
        let file = read(&text);
        let written: Vec<_> = leaves_of(&file).into_iter().filter(|(key, _)| file.get(key).is_some()).collect();
        for (key, _) in &written {
            let Ok(back) = apply(&file, &[absent(key)]) else {
                // Only what must be there is refused.
                assert!(
                    key.leaf().is_some_and(|leaf| ["endpoint_pattern", "tokenizer", "tool"].contains(&leaf)),
                    "{key}"
                );
                continue;
            };
            let (context, after) = (format!("{key} out of {text:?} gave {back:?}"), read(&back));
            assert!(after.get(key).is_none(), "{context}");
            for (other, _) in written.iter().filter(|(other, _)| other != key) {
                let spelled = |file: &SettingsFile| file.get(other).map(|value| value.to_string());
                assert_eq!(spelled(&after), spelled(&file), "{other}: {context}");
            }
            let ends_open = |text: &str| !text.is_empty() && !text.ends_with('\n');
            assert!(ends_open(&back) <= ends_open(&text), "{context}");
            let newline = if text.contains('\r') { "\r\n" } else { "\n" };
            assert!(!back.replace(newline, "").contains(['\r', '\n']), "{context}");
        }
    }
}

#[test]
fn a_line_goes_with_the_comment_beside_it_and_leaves_those_around() {
    let text = "[dedup]\n# above\nlru_size = 5 # five\n# below\nmin_body_chars = 9\n\n[mckp]\n";
    assert_eq!(without(text, &["dedup.lru_size"]), "[dedup]\n# above\n# below\nmin_body_chars = 9\n\n[mckp]\n");
    let list = "[templates]\nactive = [\n  \"a\", # one\n] # end\n\n[dedup]\nlru_size = 5\n";
    assert_eq!(without(list, &["templates.active"]), "[dedup]\nlru_size = 5\n");
}

#[test]
fn an_emptied_block_goes_unless_there_is_a_comment_in_it() {
    let after = "\n\n[mckp]\nrecursion_depth = 4\n";
    for kept in [
        "# above\n[dedup]\nlru_size = 5",
        "[dedup] # beside\nlru_size = 5",
        "[dedup]\n# in it\nlru_size = 5",
        "[dedup]\n\n# in it\n\nlru_size = 5",
        "[dedup]\nlru_size = 5\n# below",
    ] {
        let expected = kept.replace("lru_size = 5\n", "").replace("\nlru_size = 5", "") + after;
        assert_eq!(without(&(kept.to_owned() + after), &["dedup.lru_size"]), expected);
    }
    let gone = "[dedup]\nlru_size = 5 # five\n\n# about the router\n[mckp]\nrecursion_depth = 4\n";
    assert_eq!(without(gone, &["dedup.lru_size"]), "# about the router\n[mckp]\nrecursion_depth = 4\n");
    // A table that was empty already is not devboy's to remove, nor is one below the emptied one.
    let text = "[hints]\n\n[dedup]\nlru_size = 5\n\n[dedup.enabled_per_endpoint]\n";
    assert_eq!(without(text, &["dedup.lru_size"]), "[hints]\n\n[dedup.enabled_per_endpoint]\n");
}

#[test]
fn blank_lines_that_a_person_wanted_stay() {
    let text = "[dedup]\nlru_size = 5\n\n\n[mckp]\nrecursion_depth = 4\n\n\n[hints]\n";
    assert_eq!(without(text, &["mckp"]), "[dedup]\nlru_size = 5\n\n\n\n\n[hints]\n");
    let tight = "[dedup]\nlru_size = 5\n[mckp]\nrecursion_depth = 4\n[hints]\n";
    assert_eq!(without(tight, &["mckp"]), "[dedup]\nlru_size = 5\n[hints]\n");
    let half_tight = "[dedup]\nlru_size = 5\n[mckp]\nrecursion_depth = 4\n\n[hints]\n";
    assert_eq!(without(half_tight, &["mckp"]), "[dedup]\nlru_size = 5\n\n[hints]\n");
    assert_eq!(without("\n[mckp]\nrecursion_depth = 4\n", &["mckp"]), "\n");
}

#[test]
fn a_key_of_an_inline_table_goes_with_its_comma() {
    let text = "[mckp]\nshape_thresholds = { a = 1, b.c = 2, d = 3 } # x\n";
    let at = |keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|key| format!("mckp.shape_thresholds.{key}")).collect();
        without(text, &keys.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let with = |inside: &str| format!("[mckp]\nshape_thresholds = {inside} # x\n");
    assert_eq!(at(&["a"]), with("{ b.c = 2, d = 3 }"));
    assert_eq!(at(&["b"]), with("{ a = 1, d = 3 }"));
    assert_eq!(at(&["b.c"]), with("{ a = 1, d = 3 }"));
    assert_eq!(at(&["d"]), with("{ a = 1, b.c = 2 }"));
    assert_eq!(at(&["b", "d"]), with("{ a = 1 }"));
    assert_eq!(at(&["a", "b"]), with("{ d = 3 }"));
    assert_eq!(at(&["a", "d"]), with("{ b.c = 2 }"));
    assert_eq!(at(&["a", "b", "d"]), with("{}"));
    assert_eq!(without("hints = { types = { x = { enabled = true } } }\n", &["hints.types.x.enabled"]), "hints = {}\n");
}

#[test]
fn a_tall_inline_table_loses_whole_lines_and_no_comment_of_others() {
    let text =
        "[mckp]\nshape_thresholds = {\n    a = 1, # one\n    # between\n    b = 2, # two\n    c = 3 # three\n}\n";
    let at = |key: &str| without(text, &[&format!("mckp.shape_thresholds.{key}")]);
    assert_eq!(at("a"), text.replace("    a = 1, # one\n", ""));
    assert_eq!(at("b"), text.replace("    b = 2, # two\n", ""));
    assert_eq!(at("c"), text.replace("    c = 3 # three\n", ""));
    let mixed = "mckp = { a = 1, # one\n  b = 2 }\n";
    assert_eq!(without(mixed, &["mckp.b"]), "mckp = { a = 1, # one\n   }\n");
    assert_eq!(without(mixed, &["mckp.a"]), "mckp = {  # one\n  b = 2 }\n");
    let commas_first = "mckp = {\n    a = 1\n  , b = 2\n}\n";
    assert_eq!(without(commas_first, &["mckp.a"]), "mckp = {\n    b = 2\n}\n");
    assert_eq!(without(commas_first, &["mckp.b"]), "mckp = {\n    a = 1\n}\n");
}

#[test]
fn a_list_of_blocks_goes_with_the_comments_of_its_elements() {
    let text = "[tools.R]\nspeculate = true\n\n# often\n[[tools.R.follow_up]]\ntool = \"E\"\n\n[[tools.R.follow_up]]\ntool = \"F\"\n\n# next\n[mckp]\n";
    assert_eq!(without(text, &["tools.R.follow_up"]), "[tools.R]\nspeculate = true\n\n# next\n[mckp]\n");
    assert_eq!(without(text, &["tools.R"]), "# next\n[mckp]\n");
    assert_eq!(without(text, &["tools.R.speculate"]), text.replace("[tools.R]\nspeculate = true\n\n", ""));
}

#[test]
fn what_is_not_there_is_gone_already() {
    for text in NASTY {
        assert_eq!(without(text, &["tools.Nobody", "endpoint_overrides.x.lru_size"]), *text);
    }
    let missing = SettingsFile::missing(Path::new("c.toml"));
    assert_eq!(apply(&missing, &[absent(&key("dedup.lru_size"))]).unwrap(), "");
}

#[test]
fn a_pinned_key_an_element_and_a_needed_key_are_refused() {
    let refusal = |text: &str, at: &str| apply(&read(text), &[absent(&key(at))]).unwrap_err().to_string();
    let text = "[dedup]\nlru_size = 5 # pin\nmin_body_chars = 9\n";
    assert!(refusal(text, "dedup.lru_size").starts_with("c.toml:2: `dedup.lru_size` is marked `# pin`"));
    assert!(refusal(text, "dedup").starts_with("c.toml:1: `dedup` holds something marked `# pin`"));
    assert_eq!(without(text, &["dedup.min_body_chars"]), "[dedup]\nlru_size = 5 # pin\n");
    let list = "[tools.R]\nfollow_up = [{ tool = \"A\" }, { tool = \"B\" }]\n";
    assert!(refusal(list, "tools.R.follow_up.1").contains("is an element of a list"));
    let variant = "[profiles.llm.variants.mine]\ntokenizer = \"openai_o200k\"\ncontext_window = 5\n";
    let message = refusal(variant, "profiles.llm.variants.mine.tokenizer");
    assert!(message.contains("needs the key `tokenizer`") && message.contains("was not touched"), "{message}");
    assert_eq!(without(variant, &["profiles.llm.variants.mine"]), "");
}
