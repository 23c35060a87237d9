//! Facts about `pipeline_config.toml`: what is read, what is warned about, what an edit leaves alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Value};

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::model_id::normalise;
use crate::base::tokenizer::Bpe;
use crate::settings::sections::Axis;
use crate::settings::tool_model::{FieldGroup, SideEffectClass, ToolModel, ValueClass};
use crate::settings::write::GuardedFile;
use crate::settings::*;
use crate::shell::arguments::Exit;
use crate::tests::harness::Home;

fn parse(text: &str) -> Result<SettingsFile> {
    SettingsFile::parse(Path::new("c.toml"), text)
}

fn read(text: &str) -> SettingsFile {
    parse(text).unwrap()
}

fn resolve(text: &str) -> Effective {
    Effective::resolve(&read(text)).unwrap()
}

fn settings(text: &str) -> Settings {
    resolve(text).settings
}

/// A value that holds, as `tune show` spells it.
fn shown(effective: &Effective, name: &str) -> String {
    let leaves = &effective.leaves;
    let (_, value, _) = leaves.iter().find(|(at, ..)| *at == key(name)).unwrap();
    value.to_string().trim().to_owned()
}

/// Only the sections of a file are read anew where a change is tried.
#[test]
fn what_would_hold_without_a_change_is_what_holds() {
    let whole = "schema_version = 3\n[dedup]\nlru_size = 7\n[templates]\nactive = []\n[mckp.shape_thresholds]\n\
                 markdown_table_min_cols = 3\n[telemetry]\nenabled = true\n[endpoint_overrides.Read]\nlru_size = 9\n\
                 [profiles.llm.variants.mine]\ntokenizer = \"ollama_bpe\"\n[hints.types.near_ref]\nenabled = false\n\
                 [tools.Read.cost_model]\nmax_kb = 3\n[enrichment]\nenabled = true\n";
    for text in ["", "# nothing\n", whole] {
        assert_eq!(what_if(&read(text), &[]).unwrap(), settings(text), "{text}");
    }
    let nine = whole.replace("lru_size = 7", "lru_size = 9");
    assert_eq!(what_if(&read(whole), &[(key("dedup.lru_size"), 9.into())]).unwrap(), settings(&nine));
    let below = what_if(&read(whole), &[(key("dedup.lru_size.x"), 9.into())]).unwrap_err().to_string();
    assert!(below.contains("`dedup.lru_size.x` is not a key of a table"), "{below}");
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

fn key(text: &str) -> KeyPath {
    text.parse().unwrap()
}

fn set(key: &str, value: impl Into<Value>) -> WantedValue {
    WantedValue { key: key.parse().unwrap(), value: Some(value.into()) }
}

fn edit(text: &str, changes: &[WantedValue]) -> String {
    let once = apply(&read(text), changes).unwrap();
    assert_eq!(apply(&read(&once), changes).unwrap(), once, "the same changes again");
    once
}

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/settings");
    let mut cases: Vec<_> = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn changes_of(case: &Path) -> Vec<WantedValue> {
    let document: DocumentMut = fs::read_to_string(case.join("changes.toml")).unwrap().parse().unwrap();
    let list = document["change"].as_array_of_tables().unwrap().clone();
    list.iter().map(change_of).collect()
}

fn change_of(table: &toml_edit::Table) -> WantedValue {
    let value = match table.get("table") {
        Some(block) => Some(block.clone().into_table().unwrap().into_inline_table().into()),
        None => Some(table["value"].as_value().unwrap().clone()),
    };
    WantedValue { key: key(table["key"].as_str().unwrap()), value }
}

#[test]
fn edits_come_out_as_written_down_in_the_test_data() {
    for case in cases() {
        let file = SettingsFile::load(&case.join("in.toml")).unwrap();
        let changes = changes_of(&case);
        let new = apply(&file, &changes).unwrap();
        assert_eq!(new, fs::read_to_string(case.join("out.toml")).unwrap(), "{}", case.display());
        assert_eq!(apply(&read(&new), &changes).unwrap(), new, "again: {}", case.display());
    }
}

// --- Reading ---------------------------------------------------------------------------------------------------------

#[test]
fn a_missing_file_is_an_empty_one() {
    let file = SettingsFile::load(Path::new("/nowhere/pipeline_config.toml")).unwrap();
    assert!(!file.existed && file.text.is_empty() && file.warnings.is_empty());
    assert_eq!(Effective::resolve(&file).unwrap().settings, Effective::built_in().settings);
}

#[test]
fn an_unreadable_file_is_an_error_that_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let message = SettingsFile::load(directory.path()).unwrap_err().to_string();
    assert!(message.contains(&directory.path().display().to_string()), "{message}");
}

#[test]
fn a_file_that_is_not_utf8_is_an_error_with_its_line() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    fs::write(&path, b"[dedup]\n# caf\xe9\n").unwrap();
    assert!(SettingsFile::load(&path).unwrap_err().message.ends_with("c.toml:2: not valid UTF-8"));
}

#[test]
fn a_syntax_error_names_its_line_and_what_to_do() {
    let message = error("[dedup]\nlru_size = 5\nhint_verbosity = \"terse\n");
    assert!(message.starts_with("c.toml:3: not valid TOML"), "{message}");
    assert!(message.contains("hint: "), "{message}");
    assert!(error("a = 1\na = 2\n").starts_with("c.toml:2: not valid TOML: duplicate key"));
}

#[test]
fn a_byte_order_mark_does_not_shift_lines() {
    let file = read("\u{feff}# first\n[dedup]\nlru_size = 7\n");
    assert_eq!(file.line_of(&key("dedup.lru_size")), Some(3));
    assert_eq!(file.line_of(&key("dedup")), Some(2));
}

#[test]
fn an_unsupported_version_names_itself_and_the_accepted_range() {
    let newer = error("# mine\nschema_version = 5\n[tools]\nfuture = 1\n");
    assert!(newer.starts_with("c.toml:2: schema_version 5 is not supported (accepted: 1 to 4)"), "{newer}");
    assert!(newer.contains("update devboy"), "{newer}");
    assert!(error("schema_version = 0\n").contains("schema_version 0 is not supported (accepted: 1 to 4)"));
    assert!(error("schema_version = \"4\"\n").contains("schema_version \"4\" is not supported"));
}

#[test]
fn a_missing_version_means_the_current_one() {
    assert_eq!(read("[dedup]\n").schema_version, 4);
}

#[test]
fn what_cannot_be_meant_is_an_error_with_its_line() {
    for (text, expected) in [
        (
            "[dedup]\nlru_size = \"five\"",
            "c.toml:2: `dedup.lru_size` must be a whole number of at least 1, found \"five\"",
        ),
        ("[dedup]\nlru_size = 0", "c.toml:2: `dedup.lru_size` must be a whole number of at least 1, found 0"),
        ("[dedup]\nlru_size = 5.5", "must be a whole number of at least 1, found 5.5"),
        (
            "\n[dedup]\nhint_verbosity = \"loud\"",
            "c.toml:3: `dedup.hint_verbosity` must be one of \"terse\", \"standard\", \"verbose\", found \"loud\"",
        ),
        ("dedup = 3", "c.toml:1: `dedup` must be a table, found 3"),
        ("[telemetry]\nsample_rate = 1.5", "c.toml:2: `telemetry.sample_rate` must be a number from 0 to 1, found 1.5"),
        ("[telemetry]\nsample_rate = nan", "c.toml:2: `telemetry.sample_rate` must be"),
        ("[telemetry]\nrotate_mib = 4294967296", "must be a whole number from 0 to 4294967295"),
        (
            "[tools.Read]\n\n[[tools.Read.follow_up]]\ntool = \"Edit\"\nprobability = 2.0",
            "c.toml:5: `tools.Read.follow_up.0.probability` must be a number from 0 to 1",
        ),
        ("[[tools.Read.follow_up]]\nprobability = 0.5", "c.toml:1: `tools.Read.follow_up.0` needs the key `tool`"),
        ("[tools.Read]\nside_effect_class = 3", "c.toml:2: `tools.Read.side_effect_class` must be a string, found 3"),
        ("[tools.Read]\nvalue_class = \"none\"", "c.toml:2: `tools.Read.value_class` must be one of \"critical\""),
        (
            "[profiles.tokenizer.variants.mine]\ninline_json_cost = 2.0",
            "c.toml:1: `profiles.tokenizer.variants.mine` needs the key `chars_per_token`",
        ),
        ("[profiles.tokenizer.variants.mine]\nchars_per_token = inf", "must be a number above 0, found inf"),
        ("[profiles.llm.variants.mine]\ncontext_window = 1", "needs the key `tokenizer`"),
        (
            "[profiles.data.variants.mine]\nhint_set = [1]",
            "`profiles.data.variants.mine.hint_set` must be a list of strings, found [1]",
        ),
        ("[profiles.data.variants.mine]\nhint_set = []", "needs the key `endpoint_pattern`"),
        ("[templates.endpoint_overrides]\nx = 1", "`templates.endpoint_overrides.x` must be a string, found 1"),
    ] {
        let message = error(text);
        assert!(message.contains(expected), "{message}\nshould contain\n{expected}");
    }
}

#[test]
fn a_ratio_that_is_not_above_0_is_the_published_one_and_told() {
    for ratio in ["0", "-2", "0.0"] {
        let file = read(&format!("[profiles.tokenizer.variants.ollama_bpe]\nchars_per_token = {ratio}\n"));
        let settings = Effective::resolve(&file).unwrap().settings;
        assert_eq!(settings.profiles.tokenizer.variants["ollama_bpe"].chars_per_token, 3.5);
        let key = "profiles.tokenizer.variants.ollama_bpe.chars_per_token";
        let told: Vec<_> = file.warnings.iter().map(|told| (told.line, told.key.as_str(), &*told.message)).collect();
        assert_eq!(told, [(2, key, &*format!("`{key}` is {ratio}, which is not above 0: 3.5 holds"))]);
    }
}

#[test]
fn a_name_that_no_variant_has_is_told_with_what_holds_instead() {
    let home = Home::new();
    let text = "[profiles.tokenizer]\nactive = \"gpt2\"\n[profiles.llm]\nactive = \"nosuch\"\n\
                [profiles.llm.variants.mine]\ntokenizer = \"none\"\n[profiles.agent]\nactive = \"nobody\"\n\
                [profiles.data]\nactive = \"nothing\"\n";
    let file = SettingsFile::load(&home.write("c.toml", text)).unwrap();
    let told: Vec<_> = file.warnings.iter().map(|told| (told.line, told.key.as_str())).collect();
    let expected = [
        (2, "profiles.tokenizer.active"),
        (4, "profiles.llm.active"),
        (6, "profiles.llm.variants.mine.tokenizer"),
        (8, "profiles.agent.active"),
        (10, "profiles.data.active"),
    ];
    assert_eq!(told, expected);
    let bare = "`profiles.tokenizer.active` is \"gpt2\", which no variant is called (anthropic_class, ollama_bpe, \
                openai_cl100k, openai_o200k): bytes are counted, 4 per token";
    assert_eq!(file.warnings[0].message, bare);
    assert!(file.warnings[1].message.ends_with("mine): `default` holds"), "{}", file.warnings[1].message);
    // Another spelling of a model's id is its variant's.
    let known = "[profiles.llm]\nactive = \"claude-sonnet-4-6\"\n[profiles.agent]\nactive = \"auto\"\n";
    assert!(SettingsFile::load(&home.write("d.toml", known)).unwrap().warnings.is_empty());
}

#[test]
fn a_format_that_nobody_knows_does_nothing_and_is_told() {
    let text = "[templates]\nactive = [\"csv_from_md\", \"rune\"]\n[templates.endpoint_overrides]\nRead = \"scroll\"\n\
                [mckp]\nformats_enabled = [\"deep_mckp\", \"csv\"]\n";
    let home = Home::new();
    home.write(".config/devboy/pipeline_config.toml", text);
    let file = SettingsFile::load(&home.config()).unwrap();
    let told: Vec<(usize, &str)> =
        file.warnings.iter().map(|warning| (warning.line, warning.message.as_str())).collect();
    let words = |key: &str, id: &str| {
        let known = crate::facts::encode::ids().join(", ");
        format!("`{key}` names \"{id}\", which no format is called ({known}): it does nothing")
    };
    let expected = [(2, words("templates.active", "rune")), (4, words("templates.endpoint_overrides.Read", "scroll"))];
    assert_eq!(told, expected.each_ref().map(|(line, words)| (*line, words.as_str())));
    // Every command tells the same, and none fails.
    home.write(".claude/projects/p/s.jsonl", super::script::Script::new("s").read("a.rs").read("b.rs").log());
    for arguments in [
        &["replay"][..],
        &["tune", "analyze", "--from-claude-logs", "--dry-run"],
        &["tune", "from-claude-logs", "--dry-run"],
        &["what-if", "pipeline", "--allow-empty"],
    ] {
        let outcome = home.run(arguments);
        assert_eq!(outcome.exit, Exit::Done, "{arguments:?}: {}", outcome.err);
        assert!(expected.iter().all(|(_, words)| outcome.err.contains(words)), "{arguments:?}: {}", outcome.err);
    }
    let doctor = home.run(&["doctor"]).out;
    assert!(doctor.contains("2 warnings, first in line 2: `templates.active` names \"rune\""), "{doctor}");
    // On the command line it is a slip.
    let sweep = home.run(&["replay", "--sweep", "templates.endpoint_overrides.Read=csv_from_md,scrol"]);
    assert_eq!(sweep.exit, Exit::Failed, "{}", sweep.err);
    assert!(sweep.err.contains("unknown format \"scrol\""), "{}", sweep.err);
}

#[test]
fn the_configuration_is_where_xdg_says_unless_only_the_old_place_is_in_use() {
    let home = Home::new();
    home.variables.lock().unwrap().push(format!("XDG_CONFIG_HOME={}", home.path("xdg").display()));
    let shown = || home.run(&["tune", "show"]).err.lines().next().unwrap_or_default().to_owned();
    let (old, new) = (home.config(), home.path("xdg/devboy/pipeline_config.toml"));
    assert!(shown().contains(new.to_str().unwrap()), "{}", shown());
    // What is noted at the old place alone is not lost.
    let journal = home.write(".config/devboy/tuning-journal.jsonl", "");
    assert!(shown().contains(old.to_str().unwrap()), "{}", shown());
    fs::remove_file(journal).unwrap();
    home.write(".config/devboy/pipeline_config.toml", "schema_version = 4\n");
    assert!(shown().contains(old.to_str().unwrap()), "{}", shown());
    // Of two the one that the variable names is read, and the other one is told of.
    home.write("xdg/devboy/pipeline_config.toml", "schema_version = 4\n");
    assert!(shown().contains(new.to_str().unwrap()), "{}", shown());
    let told = home.run(&["doctor"]).out;
    assert!(told.contains(&format!("{} (XDG_CONFIG_HOME), schema 4", new.display())), "{told}");
    assert!(told.contains(&format!("{} is there as well", old.display())), "{told}");
}

#[test]
fn a_configuration_that_another_host_reads_is_named() {
    let home = Home::new();
    let other = home.write("host.toml", "schema_version = 4\n");
    home.variables.lock().unwrap().push(format!("DEVBOY_PIPELINE_CONFIG={}", other.display()));
    let doctor = home.run(&["doctor"]).out;
    assert!(doctor.contains(&format!("{} is there as well", other.display())), "{doctor}");
    let used = home.run(&["doctor", "--config", other.to_str().unwrap()]).out;
    assert!(!used.contains("is there as well"), "{used}");
}

#[test]
fn the_first_problem_is_the_error_and_the_others_are_named() {
    let message = error("[telemetry]\nenabled = 1\n[dedup]\nlru_size = 0\n");
    assert!(message.starts_with("c.toml:2: `telemetry.enabled`") && message.contains("also line 4: `dedup.lru_size`"));
}

#[test]
fn an_unknown_key_is_a_warning_with_its_line_and_the_likely_name() {
    let file = read("[dedup]\nlru_sise = 5\n\n[mckp]\nlru_size = 3\nzzz = 1\n[nonsense]\na = 1\nb = 2\n");
    let seen: Vec<_> = file.warnings.iter().map(|w| (w.line, w.key.as_str(), w.suggestion.as_deref())).collect();
    assert_eq!(
        seen,
        [
            (2, "dedup.lru_sise", Some("lru_size")),
            (5, "mckp.lru_size", Some("dedup.lru_size")),
            (6, "mckp.zzz", None),
            (7, "nonsense", None),
        ]
    );
    assert_eq!(file.warnings[0].message, "unknown key `dedup.lru_sise` has no effect; did you mean `lru_size`?");
    assert!(edit(&file.text, &[set("dedup.lru_size", 6)]).contains("lru_sise = 5"));
}

#[test]
fn a_partial_override_of_a_built_in_variant_is_accepted_with_a_warning() {
    let file = read("[profiles.llm.variants.\"glm-5.1\"]\ncontext_window = 64000\n");
    assert_eq!(
        (file.warnings[0].line, file.warnings[0].key.as_str()),
        (1, "profiles.llm.variants.\"glm-5.1\".tokenizer")
    );
    assert!(file.warnings[0].message.contains("add `tokenizer = \"anthropic_class\"`"));
}

#[test]
fn values_and_lines_are_found_in_every_form_of_writing() {
    let file = read(concat!(
        "dedup.lru_size = 5\n",
        "templates = { active = [\"a\"], endpoint_overrides = { \"x y\" = \"t\" } }\n",
        "[tools.Read]\nspeculate = true\ncost_model.typical_kb = 1_0.5\n",
        "[[tools.Read.follow_up]]\ntool = \"Edit\"\n",
        "[[tools.Read.follow_up]]\ntool = \"Grep\"\nprobability = 0.25\n",
    ));
    let get = |path: &str| file.get(&key(path)).map(|value| value.to_string());
    assert_eq!(get("dedup.lru_size").as_deref(), Some("5"));
    assert_eq!(get("templates.endpoint_overrides.\"x y\"").as_deref(), Some("\"t\""));
    assert_eq!(get("tools.Read.cost_model.typical_kb").as_deref(), Some("10.5"));
    assert_eq!(
        get("tools.Read.follow_up").as_deref(),
        Some(r#"[{ tool = "Edit" }, { tool = "Grep", probability = 0.25 }]"#)
    );
    assert_eq!(get("tools.Read.follow_up.1.tool").as_deref(), Some("\"Grep\""));
    assert_eq!(get("tools.Read.invalidates"), None);
    let line = |path: &str| file.line_of(&key(path));
    assert_eq!(line("templates.endpoint_overrides.\"x y\""), Some(2));
    assert_eq!([line("tools"), line("tools.Read"), line("tools.Read.cost_model")], [Some(3), Some(3), Some(5)]);
    assert_eq!([line("tools.Read.follow_up"), line("tools.Read.follow_up.1.probability")], [Some(6), Some(10)]);
    assert_eq!(line("mckp"), None);
}

#[test]
fn a_key_prints_as_toml_and_reads_back() {
    for text in ["dedup.lru_size", "tools.\"mcp__a b\".cost_model", "profiles.llm.variants.\"glm-5.1\"", "tools.\"*\""]
    {
        assert_eq!(key(text).to_string(), text);
    }
    assert_eq!(KeyPath::from(["tools", "a b"].as_slice()), key("tools . 'a b'"));
    assert!("tools..x".parse::<KeyPath>().is_err());
}

// --- Pins ------------------------------------------------------------------------------------------------------------

#[test]
fn a_pin_holds_at_the_end_of_the_line_above_it_and_on_every_ancestor() {
    let file = read(concat!(
        "[dedup]\n",
        "lru_size = 5 # pin: tried 7, was worse\n",
        "min_body_chars = 200 # pinned by nobody\n",
        "# pin\n",
        "hint_verbosity = \"terse\"\n",
        "near_ref_enabled = false\n\n",
        "[tools] # pin\n",
        "[tools.Read.cost_model]\ntypical_kb = 1.0\n\n",
        "# why it stays\n# pin\n[profiles.llm]\nactive = \"auto\"\n\n",
        "[mckp]\n# pin\n\nrecursion_depth = 5\n",
        "shape_thresholds = { flat_object_min_fields = 8 } #pin\n",
        "formats_enabled = [ # PIN\n  \"kv\",\n]\n",
    ));
    let pinned = |path: &str| file.touches_pin(&key(path));
    for path in [
        "dedup.lru_size",
        "dedup.hint_verbosity",
        "tools.Read.cost_model.typical_kb",
        "tools.Other.speculate",
        "profiles.llm.active",
        "profiles.llm.variants.x.tokenizer",
        "mckp.shape_thresholds.flat_object_min_fields",
        "mckp.shape_thresholds.markdown_table_min_cols",
        "mckp.formats_enabled",
    ] {
        assert!(pinned(path), "{path}");
    }
    for path in ["dedup.min_body_chars", "dedup.near_ref_enabled", "mckp.recursion_depth", "profiles.agent.active"] {
        assert!(!pinned(path), "{path}");
    }
    assert!(file.touches_pin(&key("dedup")) && !file.touches_pin(&key("telemetry")));
}

#[test]
fn a_pin_inside_a_list_pins_the_list() {
    let file =
        read("[[tools.Read.follow_up]]\ntool = \"Edit\"\nprobability = 0.9 # pin\n[tools.Bash]\nspeculate = true\n");
    assert!(file.touches_pin(&key("tools.Read.follow_up")) && !file.touches_pin(&key("tools.Bash.speculate")));
}

#[test]
fn a_pinned_key_is_refused_with_its_line_unless_it_already_holds() {
    let file = read("[dedup]\nlru_size = 5 # pin\n");
    let message = apply(&file, &[set("dedup.lru_size", 6)]).unwrap_err().to_string();
    assert!(message.starts_with("c.toml:2: `dedup.lru_size` is marked `# pin`"), "{message}");
    assert_eq!(apply(&file, &[set("dedup.lru_size", 5)]).unwrap(), file.text);
}

// --- The effective view ----------------------------------------------------------------------------------------------

#[test]
fn the_built_in_tree_is_the_published_one() {
    let built_in = Effective::built_in().settings;
    assert_eq!(built_in.schema_version, 4);
    assert_eq!(built_in.dedup.lru_size, 5);
    assert_eq!(built_in.dedup.hint_verbosity, Verbosity::Standard);
    assert_eq!((built_in.dedup.near_ref_enabled, built_in.dedup.min_body_chars), (false, 200));
    assert_eq!(built_in.templates.active, ["csv_from_md", "pipeline_deep_mckp", "mr_diff_fence"]);
    assert_eq!(built_in.mckp.recursion_depth, 5);
    assert_eq!(built_in.mckp.formats_enabled, ["csv_from_md", "deep_mckp", "kv", "csv", "json_compact"]);
    let shape = &built_in.mckp.shape_thresholds;
    assert_eq!(
        (shape.markdown_table_min_cols, shape.array_of_objects_min_items, shape.flat_object_min_fields),
        (2, 4, 8)
    );
    assert_eq!(shape.array_of_objects_min_key_stability, 0.7);
    assert_eq!(built_in.telemetry.path, None);
    for (name, value) in [
        ("telemetry.enabled", "false"),
        ("telemetry.rotate_mib", "100"),
        ("telemetry.sample_rate", "1.0"),
        ("telemetry.flush_every_n", "25"),
        ("telemetry.share_endpoints_with_team", "false"),
        ("profiles.agent.auto_detect_window", "50"),
    ] {
        assert_eq!(shown(&Effective::built_in(), name), value, "{name}");
    }
    let enrichment = &built_in.enrichment;
    assert_eq!((enrichment.enabled, enrichment.respect_rate_limits), (false, true));
    assert_eq!(
        (enrichment.max_parallel_prefetches, enrichment.prefetch_budget_tokens, enrichment.prefetch_timeout_ms),
        (3, 8000, 1000)
    );
    assert!(built_in.tools.is_empty() && built_in.endpoint_overrides.is_empty());
}

#[test]
fn the_built_in_profiles_are_the_published_ones() {
    let profiles = Effective::built_in().settings.profiles;
    let tokenizers: Vec<_> =
        profiles.tokenizer.variants.iter().map(|(name, p)| (name.as_str(), p.chars_per_token, p.bpe)).collect();
    assert_eq!(
        tokenizers,
        [
            ("anthropic_class", 3.5, Bpe::O200kBase),
            ("ollama_bpe", 3.8, Bpe::Heuristic),
            ("openai_cl100k", 3.7, Bpe::Cl100kBase),
            ("openai_o200k", 4.0, Bpe::O200kBase),
        ]
    );
    let models: Vec<_> = profiles
        .llm
        .variants
        .iter()
        .map(|(name, p)| {
            (name.as_str(), p.tokenizer.as_str(), p.prefer_explicit_keys, p.context_window, p.max_inline_nested)
        })
        .collect();
    assert_eq!(
        models,
        [
            ("claude-sonnet-4.6", "anthropic_class", true, 200_000, Some(64)),
            ("default", "openai_o200k", true, 32_000, Some(256)),
            ("gemma4:26b", "ollama_bpe", false, 8192, Some(512)),
            ("glm-5.1", "anthropic_class", true, 128_000, Some(128)),
            ("gpt-oss:20b", "ollama_bpe", false, 8192, Some(512)),
        ]
    );
    let agents: Vec<_> = profiles
        .agent
        .variants
        .iter()
        .map(|(name, p)| (name.as_str(), p.mckp_recursion_depth, p.near_ref_enabled))
        .collect();
    assert_eq!(agents, [("default", 5, false), ("file_search_heavy", 3, false), ("marathon_refactor", 7, true),]);
    let data: Vec<_> = profiles
        .data
        .variants
        .iter()
        .map(|(name, p)| (name.as_str(), p.endpoint_pattern.as_str(), p.preferred_format.as_deref().unwrap()))
        .collect();
    assert_eq!(
        data,
        [
            ("github_pulls", "mcp__github__list_pulls", "csv_from_md"),
            ("gitlab_issues", "mcp__gitlab__get_issues", "csv_from_md"),
            ("k8s_logs", "mcp__k8s__get_logs", "pipeline_deep_mckp"),
            ("mr_diffs", "mcp__gitlab__get_mr_diff", "mr_diff_fence"),
        ]
    );
    for (name, value) in [
        ("tokenizer.variants.anthropic_class.inline_json_cost", "2.2"),
        ("tokenizer.variants.anthropic_class.toon_overhead", "1.13"),
        ("tokenizer.variants.openai_cl100k.toon_overhead", "0.6"),
        ("agent.variants.default.priority", "\"balanced\""),
        ("agent.variants.file_search_heavy.hint_aggressiveness", "0.3"),
        ("agent.variants.marathon_refactor.priority", "\"accuracy\""),
        ("data.variants.github_pulls.hint_set", "[\"near_ref\"]"),
        ("data.variants.mr_diffs.hint_set", "[]"),
    ] {
        assert_eq!(shown(&Effective::built_in(), &format!("profiles.{name}")), value, "{name}");
    }
}

#[test]
fn the_built_in_hints_are_the_published_ones() {
    let hints = Effective::built_in().settings.hints;
    let types: Vec<_> = hints
        .types
        .iter()
        .map(|(name, hint)| (name.as_str(), hint.enabled, hint.max_per_session, hint.applies_to_models.join(" ")))
        .collect();
    assert_eq!(
        types,
        [
            ("delta", false, Some(20), "*".to_owned()),
            ("inline_format_hint", true, Some(10), "gpt-oss:20b gemma4:26b".to_owned()),
            ("near_ref", true, Some(50), "*".to_owned()),
            ("schema_explainer", false, None, "*".to_owned()),
            ("timestamp_ref", true, Some(100), "*".to_owned()),
        ]
    );
    assert_eq!(shown(&Effective::built_in(), "hints.default_verbosity"), "\"standard\"");
}

#[test]
fn one_overridden_variant_keeps_its_siblings_and_its_own_other_fields() {
    let text = "[profiles.tokenizer.variants.anthropic_class]\nchars_per_token = 3.2\n[hints.types.near_ref]\nenabled = false\n";
    let resolved = resolve(text);
    assert_eq!(shown(&resolved, "profiles.tokenizer.variants.anthropic_class.toon_overhead"), "1.13");
    let settings = resolved.settings;
    let tokenizers = settings.profiles.tokenizer.variants;
    assert_eq!(tokenizers.len(), 4);
    assert_eq!(tokenizers["anthropic_class"].chars_per_token, 3.2);
    assert_eq!(settings.hints.types.len(), 5);
    assert_eq!(settings.hints.types["near_ref"].max_per_session, Some(50));
}

#[test]
fn a_new_variant_starts_from_the_bare_profile() {
    let resolved = resolve(concat!(
        "[profiles.llm.variants.mine]\ntokenizer = \"t\"\n[profiles.tokenizer.variants.t]\nchars_per_token = 3\n",
        "[profiles.agent.variants.a]\n[hints.types.new]\n[profiles.data.variants.d]\nendpoint_pattern = \"x\"\n",
    ));
    let settings = &resolved.settings;
    let llm = &settings.profiles.llm.variants["mine"];
    assert_eq!((llm.prefer_explicit_keys, llm.context_window, llm.max_inline_nested), (true, 32_000, None));
    let tokenizer = &settings.profiles.tokenizer.variants["t"];
    assert_eq!((tokenizer.chars_per_token, tokenizer.bpe), (3.0, Bpe::Heuristic));
    assert_eq!(shown(&resolved, "profiles.tokenizer.variants.t.inline_json_cost"), "1.0");
    assert_eq!(settings.profiles.agent.variants["a"].mckp_recursion_depth, 5);
    assert_eq!(shown(&resolved, "profiles.agent.variants.a.priority"), "\"balanced\"");
    assert_eq!(shown(&resolved, "profiles.agent.variants.a.hint_aggressiveness"), "0.5");
    let hint = &settings.hints.types["new"];
    assert_eq!((hint.enabled, hint.max_per_session, hint.applies_to_models.join("")), (true, None, "*".to_owned()));
    assert_eq!(shown(&resolved, "profiles.data.variants.d.hint_set"), "[]");
}

#[test]
fn every_older_version_is_filled_up_in_memory() {
    for version in 1..=4 {
        let file = read(&format!("schema_version = {version}\n[dedup]\nlru_size = 9\n"));
        assert_eq!(file.schema_version, version);
        let found = Effective::resolve(&file).unwrap().settings;
        let mut expected = Effective::built_in().settings;
        expected.dedup.lru_size = 9;
        assert_eq!(found, expected, "version {version}");
    }
}

#[test]
fn a_file_that_wrote_the_whole_tree_loads_as_the_defaults() {
    let built_in = Effective::built_in();
    let whole: String = built_in.leaves.iter().map(|(key, value, _)| format!("{key} = {value}\n")).collect();
    assert_eq!(settings(&whole), built_in.settings);
    assert!(read(&whole).warnings.is_empty());
}

#[test]
fn single_precision_spellings_of_the_published_writer_mean_the_short_number() {
    let text = "[mckp.shape_thresholds]\narray_of_objects_min_key_stability = 0.699999988079071\n";
    assert_eq!(settings(text), Effective::built_in().settings);
    assert_eq!(edit(text, &[set("mckp.shape_thresholds.array_of_objects_min_key_stability", 0.7)]), text);
}

#[test]
fn the_enrichment_vector_survives() {
    let text = "[enrichment]\nenabled = true\nmax_parallel_prefetches = 5\nprefetch_budget_tokens = 12000\nprefetch_timeout_ms = 1500\nrespect_rate_limits = false\n";
    let enrichment = settings(text).enrichment;
    assert_eq!((enrichment.max_parallel_prefetches, enrichment.prefetch_timeout_ms), (5, 1500));
    assert!(enrichment.enabled && !enrichment.respect_rate_limits);
}

#[test]
fn an_empty_tool_block_is_the_default_model() {
    let settings = settings("[tools.Read]\n");
    assert_eq!(settings.tools["Read"], ToolModel::default());
    assert_eq!(settings.tools["Read"].value_class, ValueClass::Critical);
    assert_eq!(settings.tools["Read"].cost_model.typical_kb, 1.0);
    let defaults = FieldGroup::default();
    assert_eq!((defaults.estimated_value, defaults.default_include), (0.5, true));
}

#[test]
fn every_side_effect_class_is_read() {
    for (name, class) in [
        ("pure", SideEffectClass::Pure),
        ("read_only", SideEffectClass::ReadOnly),
        ("mutates_local", SideEffectClass::MutatesLocal),
        ("mutates_external", SideEffectClass::MutatesExternal),
        ("indeterminate", SideEffectClass::Indeterminate),
    ] {
        assert_eq!(
            settings(&format!("[tools.X]\nside_effect_class = \"{name}\"\n")).tools["X"].side_effect_class,
            class
        );
    }
}

#[test]
fn a_side_effect_class_that_is_not_known_is_told_and_allows_nothing() {
    let text = "[tools.X]\nside_effect_class = \"reads_remote\"\nspeculate = true\n";
    let file = read(text);
    let [warning] = &file.warnings[..] else { panic!("{:?}", file.warnings) };
    assert_eq!((warning.line, warning.key.as_str()), (2, "tools.X.side_effect_class"));
    assert!(warning.message.contains("is \"reads_remote\", which is none of \"pure\", \"read_only\","), "{warning:?}");
    assert_eq!(settings(text).tools["X"].side_effect_class, SideEffectClass::Other);
    let shown = resolve(text).leaves.into_iter().find(|(at, ..)| *at == key("tools.X.side_effect_class"));
    assert_eq!(shown.unwrap().1.as_str(), Some("reads_remote"), "it stays as it is written");
}

#[test]
fn keys_that_change_nothing_are_known() {
    let idle = [
        "telemetry.rotate_mib",
        "profiles.agent.auto_detect_window",
        "profiles.agent.variants.x.priority",
        "profiles.agent.variants.x.hint_aggressiveness",
        "profiles.data.variants.x.hint_set",
        "profiles.llm.variants.x.context_window",
        "profiles.llm.variants.x.prefer_explicit_keys",
        "profiles.llm.variants.x.max_inline_nested",
        "profiles.tokenizer.variants.x.inline_json_cost",
        "profiles.tokenizer.variants.x.toon_overhead",
        "profiles.tokenizer.variants.x.format_factors.toon",
        "hints.default_verbosity",
        "hints.types.delta.enabled",
        "tools.X.cost_model.dollars",
    ];
    let active = [
        "dedup.lru_size",
        "hints.types.near_ref.enabled",
        "profiles.agent.variants.x.mckp_recursion_depth",
        "profiles.data.variants.x.preferred_format",
        "tools.X.cost_model.freshness_ttl_s",
        "telemetry.sample_rate",
    ];
    assert!(idle.iter().all(|name| is_idle(&key(name))) && !active.iter().any(|name| is_idle(&key(name))));
}

#[test]
fn both_spellings_of_the_bpe_tables_are_read() {
    for name in ["o200k", "o200k_base"] {
        let text = format!("[profiles.tokenizer.variants.x]\nchars_per_token = 4\nbpe = \"{name}\"\n");
        assert_eq!(settings(&text).profiles.tokenizer.variants["x"].bpe, Bpe::O200kBase);
    }
}

#[test]
fn every_value_knows_where_it_comes_from() {
    let effective = resolve("# mine\n[dedup]\nlru_size = 7\n[tools.Read]\nspeculate = false\n");
    let origins: BTreeMap<_, _> = effective.leaves.into_iter().map(|(key, _, origin)| (key, origin)).collect();
    assert_eq!(origins[&key("dedup.lru_size")], Origin::File { line: 3 });
    assert_eq!(origins[&key("dedup.min_body_chars")], Origin::Default);
    assert_eq!(origins[&key("tools.Read.speculate")], Origin::File { line: 5 });
    assert_eq!(origins[&key("tools.Read.value_class")], Origin::Default);
}

#[test]
fn leaves_come_in_the_order_of_the_schema_with_short_numbers() {
    let leaves = Effective::built_in().leaves;
    let lines: Vec<_> = leaves.iter().map(|(key, value, _)| format!("{key} = {value}")).collect();
    assert_eq!(lines[..3], ["schema_version = 4", "dedup.lru_size = 5", "dedup.hint_verbosity = \"standard\""]);
    assert!(lines.contains(&"mckp.shape_thresholds.array_of_objects_min_key_stability = 0.7".to_owned()));
    assert!(lines.contains(&"profiles.tokenizer.variants.anthropic_class.toon_overhead = 1.13".to_owned()));
    assert_eq!(lines.last().unwrap(), "enrichment.respect_rate_limits = true");
    assert!(leaves.iter().all(|(_, _, origin)| *origin == Origin::Default));
}

// --- Questions -------------------------------------------------------------------------------------------------------

#[test]
fn a_model_id_has_one_spelling() {
    for (id, expected) in [
        ("claude-sonnet-4-6", "claude-sonnet-4.6"),
        ("claude-sonnet-4.6", "claude-sonnet-4.6"),
        ("claude-sonnet-4-6-20260101", "claude-sonnet-4.6"),
        ("claude-sonnet-4-5-20250929", "claude-sonnet-4.5"),
        ("claude-opus-4-6[1m]", "claude-opus-4.6"),
        ("eu.anthropic.claude-sonnet-4-6-20260101-v1:0", "claude-sonnet-4.6"),
        ("global.anthropic.claude-opus-4-6-v1", "claude-opus-4.6"),
        ("arn:aws:bedrock:eu-west-1:1:inference-profile/eu.anthropic.claude-opus-4-6-v1:0", "claude-opus-4.6"),
        ("anthropic/claude-3.7-sonnet:thinking", "claude-sonnet-3.7"),
        ("openrouter/anthropic/claude-opus-4.1", "claude-opus-4.1"),
        ("claude-3-5-sonnet-v2@20241022", "claude-sonnet-3.5"),
        ("claude-3-5-haiku-20241022", "claude-haiku-3.5"),
        ("claude-3-5-sonnet-latest", "claude-sonnet-3.5"),
        ("claude-3-opus-20240229", "claude-opus-3"),
        ("claude-opus-4-20250514", "claude-opus-4"),
        ("claude-sonnet-4-0", "claude-sonnet-4"),
        ("claude-2.1", "claude-2.1"),
        ("Claude-Haiku-4-5", "claude-haiku-4.5"),
        ("databricks-claude-sonnet-4-5", "claude-sonnet-4.5"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-4.1", "gpt-4.1"),
        ("z-ai/glm-5.1", "glm-5.1"),
        ("us.meta.llama3-1-70b-instruct-v1:0", "llama3-1-70b-instruct"),
        ("gpt-oss:20b", "gpt-oss:20b"),
        ("deepseek-v3", "deepseek-v3"),
        ("<synthetic>", "<synthetic>"),
        ("größe-claudette", "größe-claudette"),
        ("", ""),
    ] {
        assert_eq!(normalise(id), expected, "{id}");
        assert_eq!(normalise(&normalise(id)), expected, "twice: {id}");
    }
}

/// The variants that say the same as a profile.
fn variants<'a, P: PartialEq>(axis: &'a Axis<P>, profile: &P) -> Vec<&'a str> {
    axis.variants.iter().filter(|(_, variant)| *variant == profile).map(|(name, _)| name.as_str()).collect()
}

#[test]
fn a_model_finds_its_variant_exactly_then_normalised_then_the_default() {
    let settings = Effective::built_in().settings;
    let found = |id| variants(&settings.profiles.llm, &settings.llm_variant_for(id));
    assert_eq!(found(Some("glm-5.1")), ["glm-5.1"]);
    assert_eq!(found(Some("claude-sonnet-4-6-20260101")), ["claude-sonnet-4.6"]);
    assert_eq!(found(Some("z-ai/glm-5.1")), ["glm-5.1"]);
    assert_eq!(found(Some("claude-opus-4-6")), ["default"]);
    assert_eq!(found(None), ["default"]);
}

#[test]
fn an_active_variant_wins_over_the_session() {
    let settings = settings(concat!(
        "[profiles.llm]\nactive = \"gemma4:26b\"\n[profiles.llm.variants.\"gemma4:26b\"]\ncontext_window = 9000\n",
        "[profiles.agent]\nactive = \"marathon_refactor\"\n",
    ));
    assert_eq!(variants(&settings.profiles.llm, &settings.llm_variant_for(Some("glm-5.1"))), ["gemma4:26b"]);
    let tokenizer = settings.tokenizer_for(Some("glm-5.1"));
    assert_eq!(variants(&settings.profiles.tokenizer, &tokenizer), ["ollama_bpe"]);
    assert_eq!(settings.agent_variant_for(AgentClass::Default).mckp_recursion_depth, 7);
}

#[test]
fn without_a_default_variant_the_bare_profile_stands_in() {
    let mut settings = Effective::built_in().settings;
    settings.profiles.llm.variants.clear();
    settings.profiles.agent.variants.clear();
    settings.profiles.tokenizer.variants.clear();
    let llm = settings.llm_variant_for(Some("x"));
    assert_eq!((llm.tokenizer.as_str(), llm.context_window), ("ollama_bpe", 32_000));
    let tokenizer = settings.tokenizer_for(Some("x"));
    assert_eq!((tokenizer.chars_per_token, tokenizer.bpe), (4.0, Bpe::Heuristic));
    assert_eq!(settings.agent_variant_for(AgentClass::FileSearchHeavy).mckp_recursion_depth, 5);
}

#[test]
fn the_tokenizer_follows_the_model_unless_it_is_named() {
    let auto = Effective::built_in().settings;
    let found = |settings: &Settings, id| {
        let found = variants(&settings.profiles.tokenizer, &settings.tokenizer_for(id));
        found.into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(found(&auto, Some("claude-sonnet-4-6")), ["anthropic_class"]);
    assert_eq!(found(&auto, None), ["openai_o200k"]);
    let named = settings("[profiles.tokenizer]\nactive = \"openai_cl100k\"\n");
    assert_eq!(found(&named, Some("claude-sonnet-4-6")), ["openai_cl100k"]);
    let unknown = settings("[profiles.tokenizer]\nactive = \"nobody\"\n");
    let bare = unknown.tokenizer_for(None);
    assert_eq!((bare.chars_per_token, bare.bpe), (4.0, Bpe::Heuristic));
}

#[test]
fn agents_are_classified_by_the_published_thresholds() {
    use AgentClass::{Default, FileSearchHeavy, MarathonRefactor};
    for (events, reads, compactions, expected) in [
        (500, 450, 3, MarathonRefactor),
        (499, 449, 3, Default),
        (500, 450, 2, Default),
        (200, 100, 3, FileSearchHeavy),
        (201, 101, 0, Default),
        (200, 98, 0, Default),
        (0, 0, 0, Default),
    ] {
        assert_eq!(classify_agent(events, reads, compactions), expected, "{events} {reads} {compactions}");
    }
}

#[test]
fn a_data_profile_fits_an_endpoint_and_what_starts_with_it() {
    let auto = Effective::built_in().settings;
    let name = |endpoint| auto.data_variant_for(endpoint).map(|(name, _)| name);
    assert_eq!(name("mcp__gitlab__get_issues"), Some("gitlab_issues"));
    assert_eq!(name("mcp__gitlab__get_issues_summary"), Some("gitlab_issues"));
    assert_eq!(name("mcp__gitlab__get_issue"), None);
    let two = settings("[profiles.data.variants.a_first]\nendpoint_pattern = \"mcp__gitlab\"\n");
    assert_eq!(two.data_variant_for("mcp__gitlab__get_issues").unwrap().0, "a_first");
    let pinned = settings("[profiles.data]\nactive = \"k8s_logs\"\n");
    assert_eq!(pinned.preferred_format_for("anything"), Some("pipeline_deep_mckp"));
}

#[test]
fn an_endpoint_override_comes_before_the_section() {
    let settings = settings(concat!(
        "[dedup]\nlru_size = 6\n[dedup.enabled_per_endpoint]\na = false\nb = false\n",
        "[templates.endpoint_overrides]\na = \"t1\"\nb = \"t2\"\n",
        "[endpoint_overrides.a]\ndedup_enabled = true\nlru_size = 9\ntemplate_id = \"own\"\nmin_body_chars = 0\n",
        "[endpoint_overrides.small]\nlru_size = 2\n",
        "[tools.\"*\"]\nspeculate = false\n[tools.Read]\n",
    ));
    assert_eq!(settings.shared_lru_size(), 9);
    assert_eq!(["a", "b", "c"].map(|e| settings.template_for(e)), [Some("own"), Some("t2"), None]);
    assert_eq!(settings.tool_model_for("Read", None).unwrap().speculate, None);
    assert_eq!(settings.tool_model_for("Other", None).unwrap().speculate, Some(false));
}

#[test]
fn a_hint_is_allowed_by_type_switch_and_model() {
    let settings = Effective::built_in().settings;
    assert!(settings.hint_allowed("near_ref", "claude-opus-4-6"));
    assert!(settings.hint_allowed("inline_format_hint", "gpt-oss:20b"));
    assert!(!settings.hint_allowed("inline_format_hint", "claude-opus-4-6"));
    assert!(!settings.hint_allowed("schema_explainer", "gpt-oss:20b"));
    assert!(!settings.hint_allowed("unknown", "gpt-oss:20b"));
}

// --- Edits -----------------------------------------------------------------------------------------------------------

#[test]
fn no_change_leaves_every_byte() {
    for text in NASTY {
        assert_eq!(edit(text, &[]), *text);
    }
}

/// Files that break editors which print from a tree.
pub const NASTY: &[&str] = &[
    "",
    "\n\n",
    "# only a comment",
    "# only a comment\n\n",
    "schema_version = 4",
    "[dedup]",
    "[dedup]\r\nlru_size = 5 # ünï\r\n\r\n# 表\r\n[mckp] # x\r\nrecursion_depth = 0b101\r\n",
    "\u{feff}schema_version=4\r\n[telemetry]\r\nsample_rate = 1e0",
    "dedup = {}\nmckp = { }\nprofiles.llm = { active = 'auto' }\n",
    "dedup.lru_size=5\nmckp.shape_thresholds.flat_object_min_fields=8\nprofiles.agent.active='auto'\n[hints]\n",
    "[profiles.llm.variants.\"glm-5.1\"]\ntokenizer='x'\n[profiles]\nagent.active='auto'\n[dedup.enabled_per_endpoint]\n",
    "[mckp]\n  formats_enabled = [\n    'kv', # one\n\n    'csv'\n  ] # end\n  # tail\n",
    "enrichment={enabled=true,} # tail comma\nhints={types={near_ref={enabled=true}}}\ntools={}\n",
    "[profiles.tokenizer]\nvariants.anthropic_class = {\n  chars_per_token = 3.5, # c\n  # more\n}\n",
    "[[tools.Read.follow_up]]\ntool='a'\n[tools.Read]\n[telemetry]\npath = '''\n# pin\n[mckp]\n'''\n",
    "# a\n\n# b\n[templates]\n# c\n# d\n[hints]\n#e",
];

#[test]
fn any_key_can_be_set_in_any_file_and_nothing_else_changes() {
    let leaves = Effective::built_in().leaves;
    for text in NASTY {
        for (key, value, _) in leaves.clone() {
            let wanted = other_than(&value, &key);
            let changed = edit(text, &[WantedValue { key: key.clone(), value: Some(wanted.clone()) }]);
            let context = format!("{key} in {text:?} gave {changed:?}");
            let (before, after) = (read(text), read(&changed));
            assert_eq!(after.get(&key).unwrap().to_string(), wanted.to_string(), "{context}");
            for (other, _, _) in leaves.iter().filter(|(other, _, _)| *other != key) {
                let spelled = |file: &SettingsFile| file.get(other).map(|value| value.to_string());
                assert_eq!(spelled(&before), spelled(&after), "{other}: {context}");
            }
            let newline = if text.contains('\r') { "\r\n" } else { "\n" };
            assert!(!changed.replace(newline, "").contains(['\r', '\n']), "{context}");
            assert!(!changed.contains("\n\n\n") || text.contains("\n\n"), "{context}");
            if before.line_of(&key).is_none() {
                assert!(is_subsequence(text, &changed), "{context}");
            }
            if text.chars().count() > 1 && !text.ends_with('\n') {
                assert!(!changed.ends_with('\n'), "{context}");
            }
        }
    }
}

pub fn other_than(value: &Value, key: &KeyPath) -> Value {
    match value {
        Value::Integer(_) if key.leaf() == Some("schema_version") => Value::from(3),
        Value::Integer(number) => Value::from(number.value() + 1),
        Value::Float(_) => Value::from(0.35),
        Value::Boolean(flag) => Value::from(!flag.value()),
        Value::Array(_) => Value::Array(["x", "y"].into_iter().collect()),
        _ if key.leaf() == Some("bpe") => Value::from("cl100k"),
        _ if key.leaf() == Some("priority") => Value::from("balanced"),
        _ if key.leaf().is_some_and(|leaf| leaf.ends_with("verbosity")) => Value::from("terse"),
        _ => Value::from("changed"),
    }
}

fn is_subsequence(old: &str, new: &str) -> bool {
    let mut rest = new.chars();
    old.chars().all(|wanted| rest.any(|found| found == wanted))
}

#[test]
fn a_list_with_a_line_per_element_keeps_the_comments_of_the_elements_that_stay() {
    let text = "[templates]\nactive = [\n  'a', # one\n  # between\n  'b', # two\n  'c' # three\n]\n";
    let changed = edit(text, &[set("templates.active", ["a", "c", "d"].into_iter().collect::<Value>())]);
    assert_eq!(changed, "[templates]\nactive = [\n  'a', # one\n  # between\n  'c', # three\n  \"d\",\n]\n");
}

#[test]
fn links_taken_away_added_and_emptied_leave_the_rest_of_the_file() {
    let block = "[[tools.R.follow_up]]\ntool = \"E\"\n\n";
    let text = format!("[tools.R]\nspeculate = true\n\n{block}[mckp]\n");
    let links = |names: &[&str]| {
        let link = |name: &&str| [("tool", *name)].into_iter().collect::<toml_edit::InlineTable>();
        set("tools.R.follow_up", names.iter().map(link).map(Value::InlineTable).collect::<Value>())
    };
    assert_eq!(edit(&text, &[links(&[])]), text.replace(block, ""));
    assert_eq!(
        edit(&text, &[links(&["E", "F"])]),
        text.replace("[mckp]", "[[tools.R.follow_up]]\ntool = \"F\"\n\n[mckp]")
    );
    assert_eq!(edit(&text, &[links(&["F"])]), text.replace("\"E\"", "\"F\""));
    assert_eq!(edit("[mckp]\n", &[links(&[])]), "[mckp]\n");
}

#[test]
fn a_table_may_replace_neither_a_value_nor_a_value_a_table() {
    let file = read("future = 1\n[dedup]\nlru_size = 5\n[tools.R]\n");
    let table = WantedValue { key: key("future"), value: Some(Value::InlineTable([("a", 1)].into_iter().collect())) };
    assert!(apply(&file, &[table]).unwrap_err().message.starts_with("c.toml:1: `future` is not a table in this file"));
    let message = apply(&file, &[set("dedup", 1)]).unwrap_err().message;
    assert!(message.starts_with("c.toml:2: `dedup` is a table in this file"), "{message}");
}

#[test]
fn a_change_that_the_schema_refuses_is_an_error() {
    let message = apply(&read("[dedup]\nlru_size = 5\n"), &[set("dedup.lru_size", 0)]).unwrap_err().message;
    assert!(message.contains("c.toml:2: `dedup.lru_size` must be a whole number of at least 1"), "{message}");
}

#[test]
fn a_new_file_states_its_version_first() {
    let file = SettingsFile::missing(Path::new("c.toml"));
    assert_eq!(
        apply(&file, &[set("mckp.recursion_depth", 3)]).unwrap(),
        "schema_version = 4\n\n[mckp]\nrecursion_depth = 3\n"
    );
    assert_eq!(apply(&file, &[]).unwrap(), "");
}

#[test]
fn a_pinned_version_is_not_raised() {
    let file = read("schema_version = 2 # pin\n");
    assert!(apply(&file, &[set("enrichment.enabled", true)]).unwrap_err().message.contains("is marked `# pin`"));
    assert!(edit(&file.text, &[set("profiles.llm.active", "default")]).starts_with("schema_version = 2 # pin\n"));
}

// --- Diff ------------------------------------------------------------------------------------------------------------

#[test]
fn a_diff_has_three_lines_of_context_and_names_the_proposal() {
    let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
    let diff = unified_diff(old, &old.replace("5\n", "five\n"), "c.toml");
    assert_eq!(diff, "--- c.toml\n+++ c.toml\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+five\n 6\n 7\n 8\n");
    assert_eq!(unified_diff(old, old, "c.toml"), "");
}

#[test]
fn a_diff_of_a_new_file_starts_from_nothing_and_shows_a_missing_newline() {
    assert_eq!(unified_diff("", "a\n", "c.toml"), "--- /dev/null\n+++ c.toml\n@@ -0,0 +1 @@\n+a\n");
    let diff = unified_diff("a", "b", "c.toml");
    assert!(diff.ends_with("-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n"), "{diff}");
}

// --- Writing ---------------------------------------------------------------------------------------------------------

fn names_in(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn write_under(path: &Path, old: Option<&str>, new: &str) -> Result<Result<()>> {
    GuardedFile::take(None, path, old)?.replace(new)
}

#[test]
fn a_written_file_leaves_its_previous_content_beside_it_and_no_temporary_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/c.toml");
    write_under(&path, None, "one").unwrap().unwrap();
    write_under(&path, Some("one"), "two").unwrap().unwrap();
    write_under(&path, Some("two"), "two").unwrap().unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "two");
    assert_eq!(fs::read_to_string(path.with_extension("toml.bak")).unwrap(), "one");
    assert_eq!(names_in(path.parent().unwrap()), ["c.toml", "c.toml.bak", "c.toml.lock"]);
}

#[test]
fn a_file_that_changed_underneath_is_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    fs::write(&path, "by hand").unwrap();
    for expected in [None, Some("as it was")] {
        let message = write_under(&path, expected, "new").unwrap_err().to_string();
        assert!(message.contains("changed while devboy was working") && message.contains("run again"), "{message}");
    }
    assert!(write_under(&directory.path().join("gone.toml"), Some("was there"), "new").is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "by hand");
}

#[test]
fn a_failure_leaves_the_old_file_whole_and_no_temporary_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    fs::write(&path, "old").unwrap();
    fs::create_dir(directory.path().join("c.toml.bak")).unwrap();
    assert!(write_under(&path, Some("old"), "new").is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names_in(directory.path()), ["c.toml", "c.toml.bak", "c.toml.lock"]);
}

#[test]
fn a_place_where_nothing_can_be_written_is_a_clear_error() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    fs::write(&file, "").unwrap();
    let message = write_under(&file.join("c.toml"), None, "new").unwrap_err().to_string();
    assert!(message.contains(&file.display().to_string()), "{message}");
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    fs::write(&path, "old").unwrap();
    let mut mode = fs::metadata(&path).unwrap().permissions();
    mode.set_readonly(true);
    fs::set_permissions(&path, mode).unwrap();
    assert!(write_under(&path, Some("old"), "new").unwrap_err().message.contains("is read-only"));
    assert_eq!(fs::read_to_string(&path).unwrap(), "old");
}

#[cfg(unix)]
mod on_unix {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_symbolic_link_stays_a_link_and_its_target_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let (dotfiles, link) = (directory.path().join("dotfiles"), directory.path().join("c.toml"));
        fs::create_dir(&dotfiles).unwrap();
        fs::write(dotfiles.join("real.toml"), "old").unwrap();
        symlink("dotfiles/real.toml", &link).unwrap();
        write_under(&link, Some("old"), "new").unwrap().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(dotfiles.join("real.toml")).unwrap(), "new");
        assert_eq!(fs::read_to_string(dotfiles.join("real.toml.bak")).unwrap(), "old");
    }

    #[test]
    fn a_link_to_nothing_gets_its_target_and_a_circle_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let link = directory.path().join("c.toml");
        symlink("missing/real.toml", &link).unwrap();
        write_under(&link, None, "new").unwrap().unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("missing/real.toml")).unwrap(), "new");
        let circle = directory.path().join("circle");
        symlink("circle", &circle).unwrap();
        assert!(write_under(&circle, None, "new").unwrap_err().message.contains("too many symbolic links"));
    }

    #[test]
    fn new_files_are_private_and_an_existing_mode_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new/c.toml");
        write_under(&path, None, "one").unwrap().unwrap();
        assert_eq!((mode(path.parent().unwrap()), mode(&path)), (0o700, 0o600));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        write_under(&path, Some("one"), "two").unwrap().unwrap();
        assert_eq!((mode(&path), mode(&path.with_extension("toml.bak"))), (0o644, 0o644));
    }

    #[test]
    fn a_read_only_directory_is_a_clear_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("c.toml");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
        let is_obeyed = fs::write(directory.path().join("probe"), "").is_err(); // not by the superuser
        let outcome = write_under(&path, Some("old"), "new");
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        if is_obeyed {
            let message = outcome.unwrap_err().to_string();
            assert!(message.contains("opening") && message.contains("needs to write in this directory"), "{message}");
            assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        }
    }
}

#[test]
fn of_two_writers_with_the_same_expectation_one_wins() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    fs::write(&path, "old").unwrap();
    let write = |new: String| write_under(&path, Some("old"), &new).is_ok();
    let winners = std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|n| scope.spawn(move || write(format!("new {n}")))).collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).filter(|won| *won).count()
    });
    assert_eq!(winners, 1);
}

#[test]
fn the_shipped_defaults_and_a_full_tool_model_fit_the_schema() {
    assert_eq!(read(include_str!("../../rules/settings/defaults.toml")).warnings, []);
    let link = r#"{ tool = "a", probability = 0.1, projection = "b", projection_arg = "c" }"#;
    let text = format!(
        "[tools.X]\nvalue_class = \"audit_only\"\nfollow_up = [{link}]\ninvalidates = [\"d\"]\nfail_fast_after_n = 2\n\
         side_effect_class = \"pure\"\nrate_limit_host = \"e\"\nspeculate = true\n\
         field_groups.g = {{ fields = [\"f\"], estimated_value = 0.9, default_include = false }}\n\
         cost_model = {{ typical_kb = 1.5, max_kb = 9.0, latency_ms_p50 = 3, dollars = 0.1, freshness_ttl_s = 60 }}\n"
    );
    assert_eq!(read(&text).warnings, []);
    let model = settings(&text).tools["X"].clone();
    let written: ToolModel = toml_edit::de::from_str(&toml_edit::ser::to_string(&model).unwrap()).unwrap();
    assert_eq!(written, model);
    assert_eq!((model.cost_model.freshness_ttl_s, model.follow_up[0].probability), (Some(60), 0.1));
}

/// Every key is looked up, not searched for, and only the first get a guess; each names the line on which it stands.
#[test]
fn many_unknown_keys_are_warnings_with_their_lines() {
    let blocks = (0..3_000).map(|n| format!("[tools.t{n}]\nodd{n} = {n}\n# \u{e4}\n\nspeculat = true\n"));
    let text: String = blocks.collect();
    let file = read(&text);
    assert_eq!(file.warnings.len(), 6_000);
    for warning in &file.warnings {
        let line = text.split('\n').nth(warning.line - 1).unwrap();
        assert!(line.starts_with(warning.key.rsplit('.').next().unwrap()), "{warning:?}: {line}");
    }
    let guessed = file.warnings.iter().filter(|warning| warning.suggestion.is_some()).count();
    assert!((1..=100).contains(&guessed), "{guessed}");
}
