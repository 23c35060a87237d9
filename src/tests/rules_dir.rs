//! `--rules-dir`: what is read from there, and that it is cited by the path that it was read from.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::harness::{Home, session};
use crate::base::data::Data;
use crate::base::toml::{TomlFault, parsed};
use crate::shell::arguments::Exit;

fn home() -> Home {
    let home = Home::new();
    for name in ["s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8"] {
        home.write(&format!(".claude/projects/-home-u-p/{name}.jsonl"), session(name, 20));
    }
    home
}

/// A command that needs the file.
fn reader_of(file: &str) -> Vec<&'static str> {
    let tune = || vec!["tune", "from-claude-logs", "--tools", "--calibrate", "--dry-run"];
    let analyze =
        || vec!["tune", "analyze", "--from-claude-logs", "--auto-enrichment", "--extended-formats", "--dry-run"];
    let claude = || vec!["tune", "claude-settings", "--scope", "project", "--dry-run"];
    let policy = |name: &'static str| vec!["replay", "--policy", name];
    match file {
        "p1_model.toml" | "p2_agent.toml" | "p3_data.toml" | "p4_tokenizer.toml" | "t1_tools.toml" => tune(),
        "precedence.toml" | "models.toml" | "mined_projections.toml" => tune(),
        name if name.starts_with("annotations/") => tune(),
        name if name.starts_with("levers/") => vec!["tune", "rules"],
        "findings.toml" => vec!["report"],
        "search.toml" => vec!["tune", "search", "--dry-run"],
        "backtest.toml" => vec!["tune", "backtest"],
        "fleet.toml" => vec!["share", "--show"],
        "history.toml" => vec!["tune", "history"],
        "t2_fields.toml" => vec!["mine", "fields"],
        "policies/claude_settings.toml" | "s1_main_ttl.toml" | "s2_subagent_ttl.toml" => claude(),
        "s3_compact_window.toml" | "s4_result_sizes.toml" | "s5_unused_servers.toml" | "s6_skills.toml" => claude(),
        "s7_subagent_model.toml" | "s8_retention.toml" => claude(),
        "r1_dedup_enable.toml" | "r2_template.toml" | "r3_lru_size.toml" | "r4_recursion_depth.toml" => analyze(),
        "r5_min_body.toml" | "r6_cost_models.toml" | "r7_speculation.toml" | "telemetry.toml" => analyze(),
        "e1_extended_formats.toml" => analyze(),
        "edges.toml" => vec!["mine", "edges"],
        "tool_use.toml" => vec!["mine", "tools"],
        "patterns.toml" => vec!["mine", "patterns"],
        "planner.toml" | "selectivity.toml" => vec!["replay", "--planner"],
        "claims.toml" | "reach.toml" | "formats.toml" | "endpoints.toml" | "logs.toml" | "projections.toml" => {
            vec!["replay"]
        }
        "timeline.toml" | "prices.toml" | "policies/sizes.toml" | "policies/bias.toml" => policy("prompt-cache"),
        "policies/prompt_cache.toml" | "policies/breakage.toml" => policy("prompt-cache"),
        "policies/all.toml" => policy("all"),
        "policies/cells.toml" => policy("prompt-cache"),
        "policies/compaction.toml" => policy("compaction"),
        "policies/history_trim.toml" => policy("history-trim"),
        "policies/pick_tools.toml" => policy("pick-tools"),
        "policies/pipeline.toml" => policy("pipeline"),
        "policies/arg_check.toml" => policy("arg-check"),
        "policies/tool_filter.toml" | "policies/catalog.toml" | "policies/stop_words.toml" => policy("tool-filter"),
        "catalogs/claude_code.toml" => policy("tool-filter"),
        other => panic!("no command is known to read {other}: add one"),
    }
}

#[test]
fn every_data_file_is_read_from_the_directory_and_faults_cite_that_path() {
    let home = home();
    for file in Data::names() {
        let dir = format!("own-{}", file.replace('/', "-"));
        let path = home.write(&format!("{dir}/{file}"), "no_such_key = 1\n");
        let dir = home.path(&dir);
        let outcome = home.run(&[reader_of(file), vec!["--rules-dir", dir.to_str().unwrap()]].concat());
        assert_ne!(outcome.exit, Exit::Done, "{file}: nobody read it\n{}", outcome.err);
        assert!(outcome.err.contains(path.to_str().unwrap()), "{file}: {}", outcome.err);
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).unwrap();
        if path.is_dir() { copy(&path, &to.join(name)) } else { std::fs::copy(&path, to.join(name)).map(drop).unwrap() }
    }
}

#[test]
fn no_report_cites_a_shipped_file_when_all_of_them_are_overridden() {
    let home = home();
    let (shipped, own) = (PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("rules"), home.path("sheets"));
    copy(&shipped, &own);
    let mut cited = 0;
    for command in [
        &["tune", "from-claude-logs", "--tools", "--calibrate", "--dry-run", "--explain"][..],
        &["tune", "analyze", "--from-claude-logs", "--auto-enrichment", "--dry-run", "--explain"],
        &["replay", "--planner"],
        &["replay", "--policy", "all"],
        &["replay", "--policy", "compaction", "--set", "compaction.summarizer_model=\"nobody\""],
        &["mine", "projections", "--explain"],
    ] {
        let outcome = home.run(&[command, &["--rules-dir", own.to_str().unwrap()]].concat());
        let text = outcome.out + &outcome.err;
        cited += text.matches(own.to_str().unwrap()).count();
        for file in Data::names() {
            assert!(!text.contains(&format!("rules/{file}")), "{command:?} cites the shipped {file}\n{text}");
        }
    }
    assert!(cited > 20, "{cited} places were cited");
}

#[test]
fn what_cannot_be_overridden_is_refused_unless_it_is_the_same() {
    let home = home();
    let run = |text: &str| {
        home.write("own/r1_dedup_enable.toml", include_str!("../../rules/r1_dedup_enable.toml"));
        home.write("own/settings/defaults.toml", text);
        home.run(&["replay", "--rules-dir", home.path("own").to_str().unwrap()])
    };
    assert_eq!(run(include_str!("../../rules/settings/defaults.toml")).exit, Exit::Done);
    let refused = run("schema_version = 4\n");
    assert_eq!(refused.exit, Exit::Failed);
    assert!(refused.err.contains("settings/defaults.toml cannot be overridden"), "{}", refused.err);
}

/// The text of the program's sources, without tests.
fn sources(dir: &Path) -> Vec<(PathBuf, String)> {
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: PathBuf| match path.is_dir() {
        true if path.ends_with("tests") => Vec::new(),
        true => sources(&path),
        false => vec![(path.clone(), std::fs::read_to_string(path).unwrap())],
    };
    entries.flat_map(of).collect()
}

#[test]
fn only_the_loader_has_data_files_compiled_in() {
    let src = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src");
    for (path, text) in sources(&src) {
        let is_loader = path.ends_with("base/data.rs") || path.starts_with(src.join("settings"));
        let is_data = |line: &str| line.contains("include_") && line.contains("rules/");
        let compiled = text.lines().any(is_data);
        // Elsewhere for tests and fuzz targets alone.
        let for_tests = ["#[cfg(test)]", "#[cfg(any(test, fuzzing))]"].iter().any(|only| text.contains(only));
        assert!(is_loader || !compiled || for_tests, "{} reads a data file past --rules-dir", path.display());
    }
}

/// The numbers of a sheet: the key that each stands at, its place in the text. Of rows of a list the first stands for all.
fn numbers(text: &str) -> Vec<(String, Range<usize>)> {
    fn value(key: &str, item: &toml_edit::Value, out: &mut BTreeMap<String, Range<usize>>) {
        match item {
            toml_edit::Value::Integer(_) | toml_edit::Value::Float(_) => {
                out.entry(key.to_owned()).or_insert(item.span().unwrap());
            }
            toml_edit::Value::Array(items) => items.iter().for_each(|item| value(key, item, out)),
            toml_edit::Value::InlineTable(table) => table.iter().for_each(|(key, item)| value(key, item, out)),
            _ => {}
        }
    }
    fn table(key: &str, item: &toml_edit::Item, out: &mut BTreeMap<String, Range<usize>>) {
        match item {
            toml_edit::Item::Value(item) => value(key, item, out),
            toml_edit::Item::Table(rows) => rows.iter().for_each(|(key, item)| table(key, item, out)),
            toml_edit::Item::ArrayOfTables(all) => {
                all.iter().flat_map(|rows| rows.iter()).for_each(|(key, item)| table(key, item, out));
            }
            toml_edit::Item::None => {}
        }
    }
    let document = toml_edit::Document::parse(text).unwrap();
    let mut out = BTreeMap::new();
    document.as_table().iter().for_each(|(key, item)| table(key, item, &mut out));
    out.into_iter().collect()
}

#[test]
fn every_number_of_every_sheet_is_read_from_the_directory() {
    let (home, shipped) = (home(), PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("rules"));
    let mut faults = Vec::new();
    // What a tool asks of its arguments is no number of devboy.
    let sheets = Data::names().filter(|file| !file.starts_with("catalogs/"));
    for (place, file) in sheets.enumerate() {
        let (text, dir) = (std::fs::read_to_string(shipped.join(file)).unwrap(), format!("own-{place}"));
        let run = |at: &Range<usize>, number: &str| {
            let path = home.write(&format!("{dir}/{file}"), [&text[..at.start], number, &text[at.end..]].concat());
            let outcome = home.run(&[reader_of(file), vec!["--rules-dir", home.path(&dir).to_str().unwrap()]].concat());
            (outcome.exit, outcome.err, path.to_str().unwrap().to_owned())
        };
        for (key, at) in numbers(&text) {
            let line = text[..at.start].matches('\n').count() + 1;
            let (exit, err, path) = run(&at, "\"no number\"");
            // The line is told by its number; that of a parameter is shown as it stands.
            let told = [format!("{path}:{line}"), format!("line {line},"), format!("`{key} = \"no number\"")];
            let is_cited = err.contains(&path) && told.iter().any(|told| err.contains(told));
            if exit == Exit::Done || !is_cited {
                faults.push(format!("{file}:{line} `{key}` is no number: {exit:?} {err}"));
            }
        }
        // A number that is a little larger is taken, or refused by the name of the file; one of each sheet, for time.
        if let Some((key, at)) = numbers(&text).first() {
            let number = text[at.clone()].replace('_', "");
            let larger = number.parse::<f64>().unwrap() * 1.01;
            let larger = if number.contains('.') { larger.to_string() } else { larger.ceil().to_string() };
            let (exit, err, path) = run(at, &larger);
            if exit != Exit::Done && !err.contains(&path) {
                faults.push(format!("{file} `{key}` = {larger}: {exit:?} {err}"));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

#[test]
fn a_data_file_with_a_name_that_nobody_reads_is_told_of() {
    let home = home();
    home.write("rules/r5_min_body.toml", Data::default().text("r5_min_body.toml").unwrap().as_bytes());
    home.write("rules/t1_tool.toml", "calls_min = 1\n");
    home.write("rules/policies/compacton.toml", "x = 1\n");
    let told = home.run(&["ingest", "--rules-dir", home.path("rules").to_str().unwrap()]);
    for name in ["t1_tool.toml", "policies/compacton.toml"] {
        assert!(told.err.contains(&format!("note: {name}: no data file is called so")), "{}", told.err);
    }
    assert_eq!(told.err.matches("no data file").count(), 2, "{}", told.err);
}

#[test]
fn a_key_that_nobody_reads_is_a_fault_with_its_line_unless_the_type_takes_a_part() {
    #[derive(Debug, Deserialize)]
    struct Whole {
        inner: Inner,
    }
    #[derive(Debug, Deserialize)]
    struct Inner {
        a: u32,
        #[serde(default, rename = "c")]
        b: u32,
    }
    #[derive(Debug, Deserialize)]
    #[serde(rename = "part")]
    struct Part {
        inner: Inner,
    }
    let told = |fault: TomlFault| (fault.line, fault.message);
    let fits = "[inner]\na = 1\nc = 2\n";
    let inner = parsed::<Whole>(fits).unwrap().inner;
    assert_eq!((inner.a, inner.b), (1, 2));
    let unknown = (3, "unknown field `b`, expected `a` or `c`".to_owned());
    assert_eq!(parsed::<Whole>("[inner]\na = 1\nb = 2\n").map_err(told).unwrap_err(), unknown);
    let above = (1, "unknown field `outer`, expected `inner`".to_owned());
    assert_eq!(parsed::<Whole>(&format!("outer = 1\n{fits}")).map_err(told).unwrap_err(), above);
    assert_eq!(parsed::<Part>(&format!("outer = 1\n{fits}")).unwrap().inner.a, 1);
    assert_eq!(parsed::<Part>("[inner]\na = 1\nb = 2\n").map_err(told).unwrap_err(), unknown);
}
