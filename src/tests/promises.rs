//! What the repository promises about itself, read from its own files.

use std::path::{Path, PathBuf};

use super::harness::Home;
use crate::base::data::Data;
use crate::commands::cli;
use crate::logs::vocabulary::Vocabulary;
use crate::rules::REGISTER;
use crate::settings::annotations::Annotations;
use crate::shell::arguments::Exit;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(super) fn files(dir: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path, ending));
        } else if path.to_string_lossy().ends_with(ending) {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Source files of the program, without its tests, with their text.
fn sources() -> Vec<(String, String)> {
    let src = root().join("src");
    files(&src, ".rs")
        .into_iter()
        .map(|path| {
            (path.strip_prefix(&src).unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(&path).unwrap())
        })
        .filter(|(name, _)| !name.starts_with("tests/"))
        .collect()
}

#[test]
fn polars_arrow_and_parquet_are_named_in_frames_only() {
    for (name, text) in sources() {
        let named = ["polars", "arrow_array", "arrow_schema", "parquet::"].iter().find(|word| text.contains(*word));
        assert!(name.starts_with("frames/") || named.is_none(), "{name} names {named:?}");
    }
}

/// The rooms in the order in which data flows.
const ROOMS: [&str; 15] = [
    "base",
    "logs",
    "facts",
    "telemetry",
    "frames",
    "settings",
    "report",
    "mine",
    "fleet",
    "replay",
    "planner",
    "whatif",
    "cost",
    "rules",
    "shell",
];

/// A room uses only itself and the rooms above it; the commands use all of them, and nobody uses the commands.
#[test]
fn dependencies_point_one_way() {
    for (name, text) in sources() {
        let Some(rank) = ROOMS.iter().position(|room| name.starts_with(&format!("{room}/"))) else { continue };
        let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
        for used in code.flat_map(|line| line.split("crate::").skip(1).map(str::to_owned).collect::<Vec<_>>()) {
            let room: String = used.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            assert!(ROOMS[..=rank].contains(&room.as_str()), "{name} uses crate::{room}");
        }
    }
}

#[test]
fn two_files_know_the_system() {
    let apart = ["base/files.rs", "base/allocator.rs"];
    for (name, text) in sources().into_iter().filter(|(name, _)| !apart.contains(&name.as_str())) {
        for word in ["cfg(unix)", "cfg(not(unix))", "cfg!(", "cfg(windows)", "target_os", "std::os::", "rustix::"] {
            // How a panic ends is no property of the system.
            let asks = text.replace("cfg!(panic = ", "").contains(word);
            assert!(!asks, "{name} asks for the system: {word}");
        }
    }
}

#[test]
fn every_file_says_what_it_owns() {
    for (name, text) in sources() {
        assert!(text.starts_with("//! "), "{name} begins without a //! sentence");
    }
}

#[test]
fn nothing_is_printed_past_the_context() {
    // A build script speaks to cargo.
    for (name, text) in sources().into_iter().filter(|(name, _)| name != "facts/tokens/build.rs") {
        for word in ["println!", "eprintln!", "dbg!", "todo!", "unimplemented!"] {
            assert!(!text.contains(word), "{name} has {word}");
        }
    }
}

/// File names come from outside: `visible::Shown` is the one way to print a path. Places of the lake are the user's own.
#[test]
fn paths_are_printed_through_one_door() {
    for (name, text) in sources().into_iter().filter(|(name, _)| !name.starts_with("frames/")) {
        assert!(!text.contains(".display()"), "{name} prints a path as it is");
    }
}

#[test]
fn shipped_data_files_parse_and_every_rule_has_its_sheet() {
    let data = Data::default();
    assert!(Vocabulary::shipped().known_types.contains("assistant"));
    assert!(crate::rules::p1_model::families(&data).unwrap().len() > 10);
    let annotations = Annotations::load(&data).unwrap();
    assert_eq!(
        annotations.of("WebSearch").unwrap().model.follow_up.iter().find(|l| l.tool == "WebFetch").unwrap().probability,
        0.193
    );
    let gitlab = annotations.of("mcp__gitlab__get_issues").unwrap();
    assert!(gitlab.model.follow_up.iter().all(|link| link.tool.starts_with("mcp__gitlab__")));
    assert_ne!(annotations.of("mcp__github__get_issues"), Some(gitlab));
    for rule in REGISTER {
        assert!(data.text(&format!("{}.toml", rule.file)).is_ok(), "{}", rule.id);
    }
}

#[test]
fn annotations_have_no_misspelled_key() {
    // Read as the configuration would read them, where unknown keys are warned about.
    for name in Data::names_in("annotations") {
        let text = Data::default().text(name).unwrap();
        let tools: toml_edit::DocumentMut = text.parse().unwrap();
        let block = format!("schema_version = 4\n[tools]\n{}", tools["tools"].as_table().unwrap());
        let mut document = toml_edit::DocumentMut::new();
        document["tools"] = tools["tools"].clone();
        let parsed = crate::settings::SettingsFile::parse(Path::new(name), &document.to_string());
        let parsed = parsed.unwrap_or_else(|error| panic!("{name}: {error}\n{block}"));
        assert!(parsed.warnings.is_empty(), "{name}: {:?}", parsed.warnings);
    }
}

#[test]
fn the_rules_page_is_what_the_program_prints() {
    let printed = Home::new().run(&["tune", "rules"]).out;
    let page = std::fs::read_to_string(root().join("docs/rules.md")).unwrap();
    assert!(page == printed, "run: devboy tune rules > docs/rules.md");
    assert!(page == Home::new().run(&["tune", "rules", "--format", "md", "-q"]).out);
    let rules = Home::new().json(&["tune", "rules"])["rules"].as_array().unwrap().len();
    assert_eq!(Home::new().run(&["tune", "rules", "--format", "csv"]).out.lines().count(), 1 + rules);
    assert!(rules > 10);
}

#[test]
fn one_rule_is_printed_by_its_id() {
    let page = std::fs::read_to_string(root().join("docs/rules.md")).unwrap();
    let one = Home::new().run(&["tune", "rules", "s3"]);
    assert!(one.exit == Exit::Done && one.out.starts_with("## S3 ") && page.contains(&one.out), "{}", one.out);
    assert_eq!(one.out.matches("\n## ").count(), 0, "{}", one.out);
    let json = Home::new().json(&["tune", "rules", "S3"]);
    assert_eq!((json["rules"].as_array().unwrap().len(), &json["rules"][0]["id"]), (1, &"S3".into()));
    let none = Home::new().run(&["tune", "rules", "S33"]);
    assert!(none.exit != Exit::Done && none.out.is_empty(), "{}", none.out);
    assert!(
        none.err.contains("no rule \"S33\"") && none.err.contains("P1, P2, ") && none.err.contains("S8"),
        "{}",
        none.err
    );
}

/// Every `devboy …` line in a code block of the documentation parses as a command line.
#[test]
fn quoted_commands_exist() {
    let mut pages = files(&root().join("docs"), ".md");
    pages.push(root().join("README.md"));
    let mut seen = 0;
    for page in pages {
        let text = std::fs::read_to_string(&page).unwrap();
        let mut fenced = false;
        for line in text.lines() {
            if line.trim_start().starts_with("```") {
                fenced = !fenced;
            }
            let line = line.trim_start().trim_start_matches("$ ");
            let Some(rest) = line.strip_prefix("devboy ").filter(|_| fenced) else { continue };
            let command = rest.split(['|', '>', '<', ';', '#', '&']).next().unwrap_or_default();
            let words: Vec<String> =
                command.split_whitespace().map(|w| w.trim_matches(['"', '\'']).to_owned()).collect();
            let arguments = std::iter::once("devboy".to_owned()).chain(words).map(Into::into);
            let parsed = cli::command().try_get_matches_from(cli::with_command(arguments.collect()));
            let shown =
                |kind| matches!(kind, clap::error::ErrorKind::DisplayHelp | clap::error::ErrorKind::DisplayVersion);
            let fine = parsed.as_ref().map_or_else(|error| shown(error.kind()), |_| true);
            assert!(fine, "{}: devboy {command}: {}", page.display(), parsed.unwrap_err());
            seen += 1;
        }
    }
    assert!(seen > 10, "the documentation quotes commands");
}

#[test]
fn help_that_finds_no_room_on_the_disk_says_so_as_other_output_does() {
    let home = Home::new();
    for asked in [&["--help"][..], &["tune", "--help"], &["--version"], &["man"], &["tune", "rules"]] {
        let (exit, told) = home.run_on_full_disk(asked);
        assert_eq!(exit, Exit::Failed, "{asked:?}");
        assert!(told.starts_with("devboy: writing output: "), "{asked:?}: {told}");
    }
}

#[test]
fn the_command_line_is_well_formed_and_prints_its_manual() {
    cli::command().debug_assert();
    let home = Home::new();
    let man = home.run(&["man"]);
    assert_eq!(man.exit, Exit::Done);
    assert!(man.out.contains("from\\-claude\\-logs"));
    // No page is named but this one: each command has its help.
    assert!(!man.out.contains("(1)"), "{}", man.out);
    assert!(man.out.contains("\ndevboy help tune from\\-claude\\-logs\n") && man.out.contains("\ndevboy help mine\n"));
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        assert!(home.run(&["completions", shell]).out.contains("devboy"), "{shell}");
    }
    assert!(home.run(&["--help"]).out.contains("tune"));
}

#[test]
fn help_names_no_form_that_is_refused() {
    let home = Home::new();
    let has_json = |asked: &[&str]| home.run(&[asked, &["--help"]].concat()).out.contains("--json");
    assert!(!has_json(&["tune"]) && has_json(&["tune", "show"]) && has_json(&["cost"]));
    assert_eq!(home.run(&["tune", "--json"]).exit, Exit::Usage);
}

#[test]
fn help_is_a_command_too() {
    let home = Home::new();
    for words in [&[][..], &["tune"], &["tune", "rules"], &["what-if"], &["help"]] {
        let asked = home.run(&[&["help"], words].concat());
        assert_eq!(asked.out, home.run(&[words, &["--help"]].concat()).out, "{words:?}");
        assert_eq!((asked.exit, asked.err.as_str()), (Exit::Done, ""), "{words:?}");
    }
    assert!(home.run(&["tune", "help", "rules"]).out.contains("devboy tune rules"));
    let mistyped = home.run(&["help", "tuen"]);
    assert_eq!((mistyped.exit, mistyped.out.as_str()), (Exit::Usage, ""));
    assert!(mistyped.err.contains("'tune'"), "{}", mistyped.err);
    // The manual has every command once.
    let man = home.run(&["man"]).out;
    assert_eq!((man.matches(".TH devboy-tune-rules").count(), man.matches(".TH devboy-help").count()), (1, 0));
}

/// The counts of the shipped example, as an independent program gives them (`docs/accounting.md` shows it).
#[test]
fn the_example_logs_have_the_counts_that_the_documentation_states() {
    let home = Home::new();
    let logs = root().join("testdata/claude-home");
    let report = home.json(&["ingest", "--input-dir", logs.to_str().unwrap(), "--reproducible"]);
    let totals = &report["totals"];
    assert_eq!(
        (&totals["records"], &totals["tool_uses"], &totals["messages"]),
        (&532.into(), &170.into(), &198.into())
    );
    assert_eq!(report["history"]["calls"], 171);
    assert_eq!(report["inputs"]["sidecar_files"], 1);
    assert!(report.get("generated_at").is_none());
}

#[test]
fn the_map_says_nothing_twice() {
    for page in ["docs/architecture.md", "docs/glossary.md"] {
        let text = std::fs::read_to_string(root().join(page)).unwrap();
        let (mut seen, mut phrases) = (std::collections::BTreeSet::new(), std::collections::BTreeMap::new());
        for (number, line) in text.lines().enumerate().filter(|(_, line)| line.len() > 20) {
            assert!(seen.insert(line), "{page}:{} stands there twice: {line}", number + 1);
            // Halves of a merge differ in a word or two, and agree in long phrases.
            let words: Vec<&str> = line.split_whitespace().collect();
            for phrase in words.windows(9) {
                let before = *phrases.entry(phrase.to_vec()).or_insert(number);
                let words = phrase.join(" ");
                assert_eq!(before, number, "{page}:{} says again: {words}", number + 1);
            }
        }
    }
}
