//! Names that leave the machine can be guessed by nobody who does not know the secret.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::harness::{CallLines, Home};
use crate::base::pseudonyms::{Pseudonyms, is_pseudonym, published_tool};
use crate::base::seal::secret_file;
use crate::shell::arguments::Exit;

const LOG: &str = ".claude/projects/-home-u-p/one.jsonl";
/// Servers of the logs.
const SERVERS: [&str; 4] = ["gitlab", "jira", "p9d96d9", "p0123456789ab"];
/// What somebody would try.
const GUESSES: [&str; 10] =
    ["gitlab", "github", "jira", "slack", "linear", "sentry", "p9d96d9", "p0123456789ab", "notion", "playwright"];

fn log() -> String {
    let call = |number: usize| {
        let tool = format!("mcp__{}__list_issues", SERVERS[number % SERVERS.len()]);
        let body = "short text";
        CallLines { session: "one", number, tool: &tool, input: "{}", body, model: "claude-opus-4-6" }.text()
    };
    (0..24).map(call).collect()
}

/// Everything that a person would send to others.
fn shared(home: &Home) -> String {
    home.write(LOG, log());
    let (baseline, events) = (home.path("baseline.json"), home.path("events"));
    let [at, to] = [&baseline, &events].map(|path| path.to_str().unwrap());
    let replay = home.run(&["replay", "--explain", "--format", "md", "--baseline", at, "--emit-telemetry", to]);
    assert_eq!(replay.exit, Exit::Done, "{}", replay.err);
    let mut text = replay.out + &std::fs::read_to_string(&baseline).unwrap();
    for entry in std::fs::read_dir(&events).unwrap() {
        text += &std::fs::read_to_string(entry.unwrap().path()).unwrap();
    }
    for table in ["tools", "edges", "sessions", "fingerprints"] {
        text += &home.run(&["mine", table, "--json", "--reproducible"]).out;
    }
    text
}

/// Words of hex digits, with the `p` of a pseudonym taken off.
fn digits(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let digits = words.map(|word| word.strip_prefix('p').unwrap_or(word));
    digits.filter(|word| word.len() >= 6 && word.bytes().all(|b| b.is_ascii_hexdigit())).map(str::to_owned).collect()
}

/// Whoever has all that was shared, the program and the word list, and not the secret, hashes every word and looks for it:
/// names of servers, of the project, of the file, and a short content.
#[test]
fn without_the_secret_no_name_is_guessed() {
    let shown = digits(&shared(&Home::of_team(None)));
    assert!(shown.len() > 20, "{shown:?}");
    let directory = ["-home-u-p", "/home/u/secretproject", "secretproject", "one", "short text"];
    for word in GUESSES.iter().chain(&directory) {
        let hash: String = Sha256::digest(word).iter().map(|byte| format!("{byte:02x}")).collect();
        let xxh = crate::base::id::Id::of(word.as_bytes()).to_string();
        let other = Pseudonyms::of_secret(b"another").tool(&format!("mcp__{word}__v"));
        for length in [6, 8, 12, 16, 32] {
            // The id of the session is random in real logs; here it is a word.
            let found = shown.contains(&hash[..length]) && *word != "one";
            assert!(!found && !shown.contains(&xxh[..length]), "{word} is {}", &hash[..length]);
        }
        assert!(!shown.contains(&other[6..18]), "{word}");
    }
}

#[test]
fn people_who_share_a_secret_have_the_same_pseudonyms() {
    let tools = |home: &Home| home.run(&["mine", "tools", "--format", "csv"]).out;
    let homes = [Some("ours"), Some("ours"), Some("theirs"), None, None].map(Home::of_team);
    let [one, two, other, mine, yours] = homes.each_ref().map(|home| {
        home.write(LOG, log());
        tools(home)
    });
    assert!(one == two && one != other && mine != yours && mine != one, "{one}");
    assert_eq!(tools(&homes[3]), mine, "the secret of a lake is kept");
    let lines = |text: &str| text.lines().filter(|line| line.contains("mcp__")).count();
    assert_eq!(lines(&mine), SERVERS.len(), "{mine}");
    // A server may be named like a pseudonym.
    assert!(SERVERS.iter().all(|server| !one.contains(&format!("mcp__{server}__"))), "{one}");
}

#[test]
fn pseudonyms_are_told_when_they_will_not_last() {
    let home = Home::of_team(None);
    home.write(LOG, log());
    let kept = home.run(&["mine", "tools"]);
    assert!(!kept.err.contains("pseudonyms"), "{}", kept.err);
    std::fs::write(secret_file(&home.lake()), "cut short").unwrap();
    let passing = home.run(&["mine", "tools", "--no-lake"]);
    assert!(passing.err.contains("pseudonyms will be others next time"), "{}", passing.err);
    assert!(passing.err.contains("DEVBOY_TEAM_SECRET"), "{}", passing.err);
    assert!(!home.run(&["mine", "tools", "--no-lake", "--names"]).err.contains("pseudonyms"));
}

#[test]
fn a_baseline_of_another_secret_compares_what_it_can() {
    let one = Home::of_team(Some("ours"));
    one.write(LOG, log());
    let file = one.path("baseline.json");
    assert_eq!(one.run(&["replay", "--baseline", file.to_str().unwrap()]).exit, Exit::Done);
    for (secret, differs) in [("ours", false), ("theirs", true)] {
        let home = Home::of_team(Some(secret));
        home.write(LOG, log());
        let compared = home.run(&["replay", "--baseline", file.to_str().unwrap()]);
        assert_eq!(compared.exit, Exit::Done);
        assert_eq!(compared.out.contains("named by another secret"), differs, "{}", compared.out);
    }
}

/// Telemetry with pseudonyms of the same secret, and published telemetry, gets its names back from the configuration.
#[test]
fn known_names_are_recognised_in_telemetry() {
    for recorded in [published_tool("mcp__gitlab__get_issue"), super::harness::hidden("mcp__gitlab__get_issue")] {
        assert!(is_pseudonym(&recorded), "{recorded}");
    }
    assert!(!is_pseudonym("mcp__gitlab__get_issue") && !is_pseudonym("mcp__p12__get_issue"));
}
