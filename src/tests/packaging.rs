//! What devboy is handed on in: the plugin with its skills, the action, the npm packages, the change log. Read from the
//! repository's own files.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::harness::Home;
use crate::commands::cli;
use crate::shell::arguments::Exit;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    std::fs::read_to_string(root().join(name)).unwrap_or_else(|cause| panic!("{name}: {cause}"))
}

fn json(name: &str) -> Value {
    serde_json::from_str(&text(name)).unwrap_or_else(|cause| panic!("{name}: {cause}"))
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

/// Small letters, digits and single dashes.
fn is_kebab(name: &str) -> bool {
    let part = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    name.split('-').all(part)
}

#[test]
fn the_repository_is_a_marketplace_with_one_plugin_of_this_version() {
    let market = json(".claude-plugin/marketplace.json");
    assert!(is_kebab(market["name"].as_str().unwrap()) && market["owner"]["name"].is_string());
    let plugins = market["plugins"].as_array().unwrap();
    let plugin = json(".claude-plugin/plugin.json");
    assert_eq!((plugins.len(), &plugins[0]["name"]), (1, &plugin["name"]));
    let source = plugins[0]["source"].as_str().unwrap();
    assert!(source.starts_with("./") && !source.contains("..") && root().join(source).is_dir());
    // An unknown field is warned about, one of a wrong type fails the load.
    let known = ["name", "version", "description", "author", "homepage", "repository", "license", "keywords"];
    assert!(keys(&plugin).iter().all(|key| known.contains(key)), "{:?}", keys(&plugin));
    assert_eq!(plugin["version"], VERSION);
    assert!(plugin["keywords"].as_array().unwrap().iter().all(Value::is_string));
    // What stands beside it is found by its place.
    assert!(!root().join("hooks").exists() && !root().join(".mcp.json").exists());
}

/// The fields of a skill, and its text.
fn skill(name: &str) -> (BTreeMap<String, String>, String) {
    let text = text(&format!("skills/{name}/SKILL.md"));
    let (head, body) = text.strip_prefix("---\n").unwrap().split_once("\n---\n").unwrap();
    let field = |line: &str| {
        let (key, value) = line.split_once(": ").unwrap_or_else(|| panic!("{name}: {line}"));
        // Plain scalars of YAML hold no ": " and no " #".
        assert!(!value.contains(": ") && !value.contains(" #"), "{name}: {line}");
        (key.to_owned(), value.to_owned())
    };
    (head.lines().map(field).collect(), body.to_owned())
}

#[test]
fn skills_have_known_fields_and_ask_only_what_reads() {
    let known = ["name", "description", "when_to_use", "disable-model-invocation", "allowed-tools"];
    for name in ["devboy", "pipeline-tune"] {
        let (fields, body) = skill(name);
        assert!(fields.keys().all(|key| known.contains(&key.as_str())), "{name}: {fields:?}");
        assert_eq!(fields["name"], name);
        assert!(fields["description"].len() + fields["when_to_use"].len() <= 1_536 && body.lines().count() < 500);
        // After a compaction 5,000 tokens of a skill are left.
        assert!(body.len() < 4 * 5_000);
        let writes = ["from-claude-logs", "analyze", "undo", "share", "pool", "annotate"];
        for allowed in fields["allowed-tools"].split(", ") {
            let command = allowed.strip_prefix("Bash(devboy ").and_then(|rest| rest.strip_suffix(')')).unwrap();
            let is_safe = command.contains("--dry-run") || !writes.iter().any(|word| command.contains(word));
            // A star would let flags be added that write a file.
            assert!(is_safe && !command.contains('*'), "{name}: {allowed} may write");
            assert!(body.contains(&format!("`devboy {command}`")), "{name}: {command}");
        }
    }
    assert_eq!(skill("pipeline-tune").0["disable-model-invocation"], "true");
}

/// What the first skill may ask without a question becomes a part of a conversation: no server, project or place is in it.
#[test]
fn what_a_skill_reads_names_nobody() {
    let home = Home::new();
    let logs = root().join("testdata/claude-home");
    let (fields, _) = skill("devboy");
    for allowed in fields["allowed-tools"].split(", ") {
        let command = allowed.strip_prefix("Bash(devboy ").and_then(|rest| rest.strip_suffix(')')).unwrap();
        if command == "--version" {
            continue;
        }
        let words = command.split(' ').chain(["--input-dir", logs.to_str().unwrap()]);
        let said = home.run(&words.collect::<Vec<_>>());
        assert_eq!(said.exit, Exit::Done, "{command}: {}", said.err);
        // What a shell shows of a command; documents grow with the logs, and tables have their first rows.
        assert!(said.out.len() > 100 && said.out.len() + said.err.len() < 30_000, "{command}: {}", said.out);
        assert!(!command.contains("--json") || command.starts_with("report "), "{command}");
        for name in ["gitlab", "lantern", "harbor", "orchard", "testdata", "/home/"] {
            assert!(!said.out.contains(name), "{command}: {name}");
        }
    }
}

#[test]
fn skills_and_the_action_name_commands_that_exist() {
    let mut seen = 0;
    for name in ["devboy", "pipeline-tune"] {
        for quoted in skill(name).1.split('`').skip(1).step_by(2).filter(|quoted| quoted.starts_with("devboy ")) {
            let words = quoted.split_whitespace().map(|word| if word == "FILE" { "pool.parquet" } else { word });
            let parsed = cli::command().try_get_matches_from(words);
            let is_version = parsed.as_ref().is_err_and(|e| e.kind() == clap::error::ErrorKind::DisplayVersion);
            let needs_more = ["devboy share", "devboy tune undo"].contains(&quoted);
            assert!(parsed.is_ok() || is_version || needs_more, "{name}: {quoted}: {}", parsed.unwrap_err());
            assert!(!quoted.contains("--names"), "{name}: {quoted}");
            seen += 1;
        }
    }
    assert!(seen > 15, "{seen} commands");
    let action = text("action.yml");
    assert!(
        action.contains("using: composite") && action.contains("$GITHUB_ACTION_PATH/scripts/ci-replay\" \"$LOGS\"")
    );
    // What somebody else can name reaches the shell as a variable only.
    let script = action.split("run: |").nth(1).unwrap();
    assert!(!script.contains("${{"), "{script}");
}

#[test]
fn packages_have_this_version_and_run_nothing_when_they_are_installed() {
    let npm = json("npm/package.json");
    assert_eq!(npm["version"], VERSION);
    assert!(npm.get("scripts").is_none() && npm.get("dependencies").is_none());
    let platforms = npm["optionalDependencies"].as_object().unwrap();
    assert!(platforms.len() == 5 && platforms.values().all(|version| version == VERSION));
    assert!(text("CHANGELOG.md").contains(&format!("\n## {VERSION}")));
    // Every platform that dist builds has a package, and the workflow builds each.
    let dist: toml_edit::DocumentMut = text("dist-workspace.toml").parse().unwrap();
    let targets = dist["dist"]["targets"].as_array().unwrap();
    let (workflow, packages) = (text(".github/workflows/release.yml"), tempfile::tempdir().unwrap());
    let pairs: Vec<String> = targets.iter().map(|target| format!("{}=Cargo.toml", target.as_str().unwrap())).collect();
    assert!(targets.iter().all(|target| workflow.contains(&format!("target: {},", target.as_str().unwrap()))));
    let script = Command::new(root().join("scripts/release/npm-packages"));
    let status = { script }.current_dir(root()).arg(packages.path()).args(&pairs).status().unwrap();
    assert!(status.success());
    for name in platforms.keys() {
        let directory = packages.path().join(name.strip_prefix("@devboy/").unwrap());
        let own: Value = serde_json::from_slice(&std::fs::read(directory.join("package.json")).unwrap()).unwrap();
        assert_eq!((own["name"].as_str(), own["version"].as_str()), (Some(name.as_str()), Some(VERSION)));
        assert!(own.get("scripts").is_none() && own["os"].is_array() && own["cpu"].is_array());
    }
}

#[test]
fn a_binary_with_a_path_of_its_builder_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let check = |bytes: &[u8], most: &str| {
        let path = directory.path().join("binary");
        std::fs::write(&path, bytes).unwrap();
        let mut command = Command::new(root().join("scripts/release/check-binary"));
        command
            .arg(&path)
            .arg(most)
            .env("HOME", "/home/builder")
            .env_remove("CARGO_HOME")
            .output()
            .unwrap()
            .status
            .success()
    };
    assert!(check(b"\x7fELF /cargo/registry/src/serde /devboy/src/main.rs", "1"));
    assert!(!check(format!("\x7fELF {}/src/main.rs", root().display()).as_bytes(), "1"));
    assert!(!check(b"\x7fELF /home/builder/.cargo/registry", "1"));
    assert!(!check(&vec![0; 2 * 1024 * 1024], "1"));
}

#[cfg(unix)]
#[test]
fn what_static_binaries_have_in_place_of_musl_copies_and_compares_as_the_system_does() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("memory");
    let mut compile = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compile.args(["-O2", "-fno-builtin", "-Wall", "-Wextra", "-Wno-sign-compare", "-Werror"]).arg("-o").arg(&program);
    assert!(compile.arg(root().join("src/tests/memory.c")).status().unwrap().success());
    assert_eq!(Command::new(&program).status().unwrap().code(), Some(0));
}
