//! Runs commands in-process, in a home of their own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::base::pseudonyms::Pseudonyms;
use crate::commands::cli;
use crate::logs::discover::PlaceVariables;
use crate::shell::arguments::Exit;
use crate::shell::context::{Context, Env};

/// What the pseudonyms of tests are made with, so that they are the same in every run.
const SECRET: &[u8] = b"a secret of tests";

/// The pseudonym of a tool in tests.
pub fn hidden(tool: &str) -> String {
    Pseudonyms::of_secret(SECRET).tool(tool)
}

/// 2026-11-01T00:00:00Z
pub const NOW_MS: i64 = 1_793_491_200_000;

/// A stream whose reader has gone away.
pub struct ClosedPipe;

impl std::io::Write for ClosedPipe {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Err(std::io::ErrorKind::BrokenPipe.into())
    }
}

/// A file on a disk that is full.
struct FullDisk;

impl std::io::Write for FullDisk {
    fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
        Err(std::io::ErrorKind::StorageFull.into())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A terminal or file, to which both streams are connected.
#[derive(Clone, Default)]
struct Screen(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl std::io::Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A home directory that goes away with the test.
pub struct Home {
    dir: tempfile::TempDir,
    team_secret: Option<Vec<u8>>,
    /// Variables that are set, as `NAME` or `NAME=VALUE`.
    pub variables: std::sync::Mutex<Vec<String>>,
}

fn variable(set: &str) -> (String, String) {
    let (name, value) = set.split_once('=').unwrap_or((set, "1"));
    (name.to_owned(), value.to_owned())
}

/// What a command printed and how it ended.
pub struct Outcome {
    pub exit: Exit,
    pub out: String,
    pub err: String,
}

impl Home {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        Self { dir, team_secret: Some(SECRET.to_vec()), variables: Default::default() }
    }

    /// A home of somebody who shares this secret with others, or none.
    pub fn of_team(secret: Option<&str>) -> Self {
        Self { team_secret: secret.map(|secret| secret.as_bytes().to_vec()), ..Self::new() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn logs(&self) -> PathBuf {
        self.path(".claude/projects")
    }

    pub fn lake(&self) -> PathBuf {
        self.path("cache/devboy/lake")
    }

    pub fn config(&self) -> PathBuf {
        self.path(".config/devboy/pipeline_config.toml")
    }

    pub fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// What the first page says is to be done about a finding.
    pub fn advice(&self, finding: &str, more: &[&str]) -> String {
        let page = self.json(&[&["report"], more].concat());
        let found = page["findings"].as_array().unwrap().iter().find(|found| found["id"] == finding);
        found.unwrap_or_else(|| panic!("{page:#}"))["advice"].as_str().unwrap().to_owned()
    }

    /// Runs a command line in this home.
    pub fn run(&self, arguments: &[&str]) -> Outcome {
        self.run_with(arguments, b"")
    }

    pub fn run_with(&self, arguments: &[&str], input: &[u8]) -> Outcome {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = self.run_in(arguments, input, (None, false), &mut out, &mut err);
        Outcome { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
    }

    /// Runs a command whose output goes elsewhere.
    pub fn run_into(&self, arguments: &[&str], out: &mut dyn std::io::Write) -> Exit {
        self.run_in(arguments, b"", (None, false), out, &mut Vec::new())
    }

    /// The exit code of a command whose output finds no room on the disk, and what it says of that.
    pub fn run_on_full_disk(&self, arguments: &[&str]) -> (Exit, String) {
        let mut err = Vec::new();
        let exit = self.run_in(arguments, b"", (None, false), &mut FullDisk, &mut err);
        (exit, String::from_utf8(err).unwrap())
    }

    /// The exit code of a command whose notes nobody takes, and what it prints.
    pub fn run_unheard(&self, arguments: &[&str]) -> (Exit, String) {
        let mut out = Vec::new();
        let exit = self.run_in(arguments, b"", (None, false), &mut out, &mut ClosedPipe);
        (exit, String::from_utf8(out).unwrap())
    }

    /// What a command prints on a terminal of so many columns.
    pub fn out_at_width(&self, arguments: &[&str], width: u16) -> String {
        self.run_at_width(arguments, width).out
    }

    /// Runs a command on a terminal of so many columns.
    pub fn run_at_width(&self, arguments: &[&str], width: u16) -> Outcome {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let exit = self.run_in(arguments, b"", (Some(width), false), &mut out, &mut err);
        Outcome { exit, out: String::from_utf8(out).unwrap(), err: String::from_utf8(err).unwrap() }
    }

    /// What stands on a terminal of so many columns when a command has ended well.
    pub fn on_a_terminal(&self, arguments: &[&str], width: u16) -> String {
        self.in_one_stream(arguments, (Some(width), true))
    }

    /// What a command that ends well prints where both of its streams go to one place that is no terminal.
    pub fn in_one_file(&self, arguments: &[&str]) -> String {
        self.in_one_stream(arguments, (None, false))
    }

    fn in_one_stream(&self, arguments: &[&str], terminal: (Option<u16>, bool)) -> String {
        let screen = Screen::default();
        let (mut out, mut err) = (screen.clone(), screen.clone());
        let exit = self.run_in(arguments, b"", terminal, &mut out, &mut err);
        let text = String::from_utf8(screen.0.take()).unwrap();
        assert_eq!(exit, Exit::Done, "{text}");
        text.replace(self.dir.path().to_str().unwrap(), "~")
    }

    fn run_in(
        &self,
        arguments: &[&str],
        input: &[u8],
        (width, is_terminal): (Option<u16>, bool),
        out: &mut dyn std::io::Write,
        err: &mut dyn std::io::Write,
    ) -> Exit {
        let home = self.dir.path().to_owned();
        let variables: BTreeMap<String, String> =
            self.variables.lock().unwrap().iter().map(|set| variable(set)).collect();
        let claude_config_dir = variables.get("CLAUDE_CONFIG_DIR").cloned();
        let xdg_config_home = variables.get("XDG_CONFIG_HOME").map(PathBuf::from);
        let mut context = Context {
            out,
            err,
            input: &mut &input[..],
            env: Env {
                places: PlaceVariables { home: Some(home.clone()), claude_config_dir, xdg_config_home },
                xdg_cache_home: Some(home.join("cache")),
                current_dir: Some(home.join("work")),
                managed_settings: Some(home.join("managed/managed-settings.json")),
                variables,
                team_secret: self.team_secret.clone(),
                ..Env::default()
            },
            pseudonyms: Pseudonyms::default(),
            now_ms: NOW_MS,
            width,
            out_is_terminal: is_terminal,
            err_is_terminal: is_terminal,
        };
        let arguments = std::iter::once("devboy").chain(arguments.iter().copied());
        cli::run(arguments.map(Into::into), &mut context)
    }

    /// The JSON report of a command.
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        let outcome = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(outcome.exit, Exit::Done, "{}", outcome.err);
        serde_json::from_str(&outcome.out).unwrap()
    }
}

/// A call and its result as two log lines.
pub struct CallLines<'a> {
    pub session: &'a str,
    pub number: usize,
    pub tool: &'a str,
    pub input: &'a str,
    pub body: &'a str,
    pub model: &'a str,
}

impl CallLines<'_> {
    pub fn text(&self) -> String {
        let Self { session, number, tool, input, body, model } = self;
        let id = format!("toolu_{session}_{number}");
        let minute = number / 60 % 60;
        let (second, hour) = (number % 60, number / 3600);
        let base = format!(
            r#""isSidechain":false,"cwd":"/home/u/secretproject","sessionId":"{session}","version":"2.1.9","timestamp":"2026-10-30T{hour:02}:{minute:02}:{second:02}"#
        );
        let input = serde_json::to_string(input).unwrap();
        let body = serde_json::to_string(body).unwrap();
        format!(
            concat!(
                r#"{{{base}.000Z","uuid":"a-{id}","parentUuid":null,"type":"assistant","requestId":"req_{id}","message":"#,
                r#"{{"id":"msg_{id}","model":"{model}","role":"assistant","content":[{{"type":"text","text":"secretthought"}},"#,
                r#"{{"type":"tool_use","id":"{id}","name":"{tool}","input":{{"file_path":{input}}}}}],"stop_reason":"tool_use","#,
                r#""usage":{{"input_tokens":1,"output_tokens":2,"cache_creation_input_tokens":3,"cache_read_input_tokens":4}}}}}}"#,
                "\n",
                r#"{{{base}.500Z","uuid":"u-{id}","parentUuid":"a-{id}","type":"user","message":{{"role":"user","content":"#,
                r#"[{{"type":"tool_result","tool_use_id":"{id}","content":{body}}}]}},"toolUseResult":"secretcopy"}}"#,
                "\n"
            ),
            base = base,
            id = id,
            model = model,
            tool = tool,
            input = input,
            body = body
        )
    }
}

/// A session that alternates Grep and Read, `calls` calls long.
pub fn session(name: &str, calls: usize) -> String {
    let call = |number: usize| CallLines {
        session: name,
        number,
        tool: if number.is_multiple_of(2) { "Grep" } else { "Read" },
        input: "/secretpath/secretfile.rs",
        body: "secretbody of some length",
        model: "claude-opus-4-6",
    };
    (0..calls).map(|number| call(number).text()).collect()
}

/// All bytes of all files below a directory.
pub fn all_bytes(dir: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        bytes.extend(if path.is_dir() { all_bytes(&path) } else { std::fs::read(&path).unwrap() });
    }
    bytes
}
