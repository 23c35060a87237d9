//! Logs with planted links between tools, and with everything that looks like a link and is none.

use serde_json::{Value, json};

use super::log_builder::*;

/// Numbers that follow from a seed (SplitMix64).
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From `from` to `to`, both included.
    pub fn within(&mut self, from: u64, to: u64) -> u64 {
        from + self.next() % (to - from + 1)
    }

    pub fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    pub fn pick<'t, T>(&mut self, from: &'t [T]) -> &'t T {
        &from[self.within(0, from.len() as u64 - 1) as usize]
    }

    pub fn shuffle<T>(&mut self, rows: &mut [T]) {
        for last in (1..rows.len()).rev() {
            rows.swap(last, self.within(0, last as u64) as usize);
        }
    }

    fn hex(&mut self, digits: usize) -> String {
        (0..digits).map(|_| char::from(*self.pick(b"0123456789abcdef"))).collect()
    }
}

/// A call and its answer.
#[derive(Clone)]
pub struct PlantedCall {
    pub step: u64,
    pub tool: &'static str,
    pub input: Value,
    pub text: String,
}

/// A session in a project.
#[derive(Clone)]
pub struct PlantedSession {
    pub cwd: String,
    pub calls: Vec<PlantedCall>,
}

/// The planted links: from, extractor, to, argument.
pub const LINKS: [(&str, &str, &str, &str); 6] = [
    ("Grep", "path", "Read", "file_path"),
    ("WebSearch", "url", "WebFetch", "url"),
    ("mcp__track__list_issues", "$.data.issues[].id", "mcp__track__close_issue", "issue_id"),
    ("mcp__track__list_issues", "$.data.issues[].id", "mcp__track__get_issue", "issue_id"),
    ("mcp__track__list_changes", "$[].iid", "mcp__track__get_notes", "filter.change_iid"),
    ("mcp__queue__start_job", "id", "mcp__queue__job_log", "job"),
];

struct Project {
    cwd: String,
    files: Vec<String>,
    /// Files that are read all the time, whatever was listed.
    hot: Vec<String>,
    number: u64,
    viewer: u64,
}

/// A history; how often a list leads on is drawn for each kind of link.
pub fn history(seed: u64, sessions: usize) -> Vec<PlantedSession> {
    let mut random = Random(seed);
    let projects: Vec<Project> = (0..4).map(|number| project(number, &mut random)).collect();
    let rates: Vec<f64> = (0..5).map(|_| 0.45 + 0.45 * random.share()).collect();
    (0..sessions).map(|_| session(random.pick_project(&projects), &rates, &mut Random(random.next()))).collect()
}

impl Random {
    fn pick_project<'p>(&mut self, projects: &'p [Project]) -> &'p Project {
        self.pick(projects)
    }
}

fn project(number: usize, random: &mut Random) -> Project {
    let file = |random: &mut Random| {
        let (dir, ending) = (*random.pick(&["core", "web", "store"]), *random.pick(&["rs", "py", "ts"]));
        format!("src/{dir}/{}.{ending}", random.hex(6))
    };
    let files: Vec<String> = (0..150).map(|_| file(random)).collect();
    let hot = files[..8].to_vec();
    Project {
        cwd: format!("/home/u/p{number}"),
        files,
        hot,
        number: random.within(10_000, 99_999),
        viewer: random.within(1_000, 9_999),
    }
}

/// What will be called at a later step.
type Due = (u64, &'static str, Value, String);

struct Writer<'a> {
    project: &'a Project,
    rates: &'a [f64],
    random: &'a mut Random,
    /// A file that the user named.
    prompted: String,
    user: u64,
    step: u64,
    calls: Vec<PlantedCall>,
    due: Vec<Due>,
}

fn session(project: &Project, rates: &[f64], random: &mut Random) -> PlantedSession {
    let (prompted, user) = (random.pick(&project.files).clone(), random.within(100_000, 999_999));
    let steps = random.within(25, 60);
    let mut writer = Writer { project, rates, random, prompted, user, step: 0, calls: Vec::new(), due: Vec::new() };
    while writer.step < steps {
        let step = writer.step;
        let (now, later): (Vec<Due>, Vec<Due>) =
            std::mem::take(&mut writer.due).into_iter().partition(|due| due.0 <= step);
        writer.due = later;
        let is_free = now.is_empty();
        for (_, tool, input, text) in now {
            writer.call(tool, input, text);
        }
        if is_free || writer.random.share() < 0.5 {
            writer.something();
        }
        writer.step += 1;
    }
    PlantedSession { cwd: project.cwd.clone(), calls: writer.calls }
}

impl Writer<'_> {
    fn call(&mut self, tool: &'static str, input: Value, text: String) {
        self.calls.push(PlantedCall { step: self.step, tool, input, text });
    }

    /// Calls a tool up to three steps later.
    fn lead(&mut self, tool: &'static str, input: Value, text: String) {
        let step = self.step + self.random.within(1, 3);
        self.due.push((step, tool, input, text));
    }

    fn leads(&mut self, link: usize) -> bool {
        self.random.share() < self.rates[link]
    }

    fn something(&mut self) {
        match self.random.within(0, 99) {
            0..18 => self.grep(),
            18..32 => self.issues(),
            32..42 => self.changes(),
            42..51 => self.search(),
            51..60 => self.job(),
            60..65 => self.who_am_i(),
            65..72 => self.read_of_habit(),
            72..82 => self.shell(),
            82..89 => self.metrics(),
            89..95 => self.table(),
            _ => self.look_up(),
        }
    }

    fn grep(&mut self) {
        let mut files: Vec<String> =
            (0..self.random.within(1, 8)).map(|_| self.random.pick(&self.project.files).clone()).collect();
        let target = self.random.pick(&files[..files.len().min(3)]).clone();
        // Decoys: files that are read anyway.
        files.push(self.random.pick(&self.project.hot).clone());
        files.push(self.prompted.clone());
        let text = if self.random.share() < 0.5 {
            files.join("\n")
        } else {
            let line =
                |file: &String| format!("{file}:{}:    let x = {};", self.random.within(1, 900), self.random.hex(6));
            files.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        let pattern = json!({ "pattern": self.random.hex(7) });
        self.call("Grep", pattern, text);
        if self.leads(0) {
            let input = json!({ "file_path": format!("{}/{target}", self.project.cwd), "limit": 100 });
            let text = format!("     1→fn x() {{}}\n     2→{}", self.random.hex(8));
            self.lead("Read", input, text);
        }
    }

    /// A list of issues; one is looked at or closed. Decoys: authors, the viewer, the project; comments on the same
    /// issue, which the list did not lead to; related issues in the answer.
    fn issues(&mut self) {
        let project = self.project.number;
        let issue = |random: &mut Random| {
            json!({
                "id": random.within(200_000, 99_999_999), "title": random.hex(12), "project_id": project,
                "author": { "id": random.within(100, 180) }, "state": random.pick(&["open", "closed"]),
            })
        };
        let issues: Vec<Value> = (0..self.random.within(2, 10)).map(|_| issue(self.random)).collect();
        let text = json!({ "data": { "issues": issues, "viewer": { "id": self.project.viewer } } }).to_string();
        let input = json!({ "project_id": project, "state": "open", "page": self.random.within(1, 3) });
        self.call("mcp__track__list_issues", input, text);
        if !self.leads(1) {
            return;
        }
        let id = self.random.pick(&issues[..issues.len().min(3)])["id"].clone();
        let input = json!({ "project_id": project, "issue_id": id });
        if self.random.share() < 0.35 {
            return self.lead("mcp__track__close_issue", input, "{}".to_owned());
        }
        let related: Vec<Value> = issues.iter().take(2).map(|issue| json!({ "id": issue["id"] })).collect();
        let text = json!({ "id": id, "body": self.random.hex(30), "related": related }).to_string();
        self.lead("mcp__track__get_issue", input.clone(), text);
        if self.random.share() < 0.5 {
            let note = json!([{ "id": self.random.within(1_000_000, 99_999_999) }]).to_string();
            let step = self.step + self.random.within(4, 5);
            self.due.push((step, "mcp__track__get_comments", input, note));
        }
    }

    /// Small numbers in a list at the root, and a nested argument.
    fn changes(&mut self) {
        let change = |random: &mut Random| json!({ "iid": random.within(10, 900), "sha": random.hex(40) });
        let changes: Vec<Value> = (0..self.random.within(1, 6)).map(|_| change(self.random)).collect();
        let limit = json!({ "limit": self.random.pick(&[10, 20, 50]) });
        self.call("mcp__track__list_changes", limit, json!(changes).to_string());
        if self.leads(2) {
            let iid = &self.random.pick(&changes)["iid"];
            let input = json!({ "filter": { "change_iid": iid, "page": 1 } });
            let text = json!([{ "note": self.random.hex(9) }]).to_string();
            self.lead("mcp__track__get_notes", input, text);
        }
    }

    fn search(&mut self) {
        let site = |random: &mut Random| format!("https://docs.{}.example/{}", random.hex(5), random.hex(6));
        let sites: Vec<String> = (0..self.random.within(3, 9)).map(|_| site(self.random)).collect();
        let lines: Vec<String> = sites.iter().map(|site| format!("- {}: {site}.", self.random.hex(5))).collect();
        let query = json!({ "query": self.random.hex(9) });
        self.call("WebSearch", query, format!("Results:\n{}", lines.join("\n")));
        if self.leads(3) {
            let url = self.random.pick(&sites[..3]).clone();
            let input = json!({ "url": url, "prompt": self.random.hex(10) });
            let text = self.random.hex(60);
            self.lead("WebFetch", input, text);
        }
    }

    fn job(&mut self) {
        let random = &mut *self.random;
        let job = format!("{}-{}-{}", random.hex(8), random.hex(4), random.hex(12));
        let name = json!({ "name": self.random.pick(&["build", "test", "lint"]) });
        self.call("mcp__queue__start_job", name, format!("Job started.\nJob ID: {job}\nPlace in the queue: 3"));
        if self.leads(4) {
            let text = self.random.hex(60);
            self.lead("mcp__queue__job_log", json!({ "job": job, "tail": 50 }), text);
        }
    }

    /// A constant of the session, listed and used.
    fn who_am_i(&mut self) {
        self.call("mcp__track__whoami", json!({}), json!({ "user": { "id": self.user } }).to_string());
        for _ in 0..self.random.within(0, 2) {
            let input = json!({ "assignee": self.user, "text": self.random.hex(5) });
            self.lead("mcp__track__find", input, "[]".to_owned());
        }
    }

    fn read_of_habit(&mut self) {
        let file =
            if self.random.share() < 0.2 { self.prompted.clone() } else { self.random.pick(&self.project.hot).clone() };
        let text = format!("     1→use {};", self.random.hex(6));
        self.call("Read", json!({ "file_path": format!("{}/{file}", self.project.cwd) }), text);
    }

    /// Files that are in every status, and ids that nobody uses.
    fn shell(&mut self) {
        let files: Vec<String> = (0..3).map(|_| format!(" M {}", self.random.pick(&self.project.hot))).collect();
        let text =
            format!("{}\n{} passed\ncommit {}", files.join("\n"), self.random.within(1, 30), self.random.hex(40));
        let command = *self.random.pick(&["git status --short", "cargo test", "git log -1"]);
        self.call("Bash", json!({ "command": command }), text);
    }

    /// Small numbers on both sides.
    fn metrics(&mut self) {
        let series: Vec<u64> = (0..20).map(|_| self.random.within(0, 100)).collect();
        let input = json!({ "window": self.random.pick(&[10, 15, 30, 60]), "offset": self.random.within(0, 100) });
        let text = json!({ "series": series, "step": self.random.pick(&[10, 15, 30, 60]) }).to_string();
        self.call("mcp__meter__metrics", input, text);
    }

    /// Pages and enumerations on both sides.
    fn table(&mut self) {
        let names = ["alpha", "beta", "gamma", "delta"];
        let row = |random: &mut Random| json!({ "k": random.pick(&names), "n": random.within(10, 60) });
        let rows: Vec<Value> = (0..8).map(|_| row(self.random)).collect();
        let input = json!({ "page": self.random.within(10, 40), "sort": self.random.pick(&["asc", "desc"]) });
        let text = json!({ "page": self.random.within(10, 40), "sort": "asc", "rows": rows }).to_string();
        self.call("mcp__data__table", input, text);
    }

    fn look_up(&mut self) {
        let key = *self.random.pick(&["alpha", "beta", "gamma", "delta", "epsilon"]);
        let input = json!({ "key": key, "n": self.random.within(10, 60) });
        let text = json!({ "score": self.random.within(10, 60) }).to_string();
        self.call("mcp__data__look_up", input, text);
    }
}

/// Gives every call the answer that the same tool gave in another session.
pub fn exchange_answers(sessions: &mut [PlantedSession], random: &mut Random) {
    let all: Vec<(usize, &'static str, String)> = sessions
        .iter()
        .enumerate()
        .flat_map(|(number, session)| session.calls.iter().map(move |call| (number, call.tool, call.text.clone())))
        .collect();
    for (number, session) in sessions.iter_mut().enumerate() {
        for call in &mut session.calls {
            let others: Vec<&String> =
                all.iter().filter(|(from, tool, _)| *from != number && *tool == call.tool).map(|row| &row.2).collect();
            call.text = random.pick(&others).to_string();
        }
    }
}

/// Puts the steps of every session in another order.
pub fn shuffle_steps(sessions: &mut [PlantedSession], random: &mut Random) {
    for session in sessions {
        let mut order: Vec<u64> = (0..=session.calls.iter().map(|call| call.step).max().unwrap_or(0)).collect();
        random.shuffle(&mut order);
        session.calls.iter_mut().for_each(|call| call.step = order[call.step as usize]);
        session.calls.sort_by_key(|call| call.step);
    }
}

/// The sessions as log files, by name.
pub fn logs(sessions: &[PlantedSession]) -> Vec<(String, String)> {
    let file = |(number, session): (usize, &PlantedSession)| {
        let name = format!("s{number}");
        let records = session.calls.iter().enumerate().flat_map(|(place, call)| records(&name, session, place, call));
        let text = records.map(|record| record.line()).collect();
        (format!("{name}.jsonl"), text)
    };
    sessions.iter().enumerate().map(file).collect()
}

fn records(name: &str, session: &PlantedSession, place: usize, call: &PlantedCall) -> [Record; 2] {
    let id = format!("{name}-{place}");
    let block = json!({ "type": "tool_use", "id": id, "name": call.tool, "input": call.input });
    let asked = assistant(&format!("m-{name}-{}", call.step), &[block]);
    [asked, answers(&id, call.text.as_str())]
        .map(|record| record.session(name).set("cwd", session.cwd.clone()).at(place as u32))
}
