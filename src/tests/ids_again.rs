//! Other makers' models number their calls anew in each conversation, or in each answer: whatever the ids are, the calls are the
//! same.

use serde_json::{Value, json};

use super::harness::Home;
use super::report_page::{OPUS, Told, place};

const SESSIONS: u32 = 4;
const CALLS: u32 = 8;

/// How the calls of a session are called, by their number from 1 on.
type Ids<'i> = &'i dyn Fn(u32, u32) -> String;

/// Sessions of calls whose answers are JSON of which the model takes up a part.
fn home(ids: Ids<'_>) -> Home {
    let home = Home::new();
    for session in 0..SESSIONS {
        let mut told = Told::new(&format!("s{session}"), "/home/user/lantern", session * 20_000);
        let mut context = 20_000;
        told.ask(OPUS, 0, context, 300);
        for call in 0..CALLS {
            let rows: Vec<Value> =
                (0..20).map(|row| json!({ "key": format!("item-{session}-{call}-{row}"), "size": row })).collect();
            told.call(OPUS, (context, 2_000, 200), "Read", json!(Value::from(rows).to_string()));
            context += 2_000;
        }
        told.ask(OPUS, context, 400, 300);
        let numbers = told.text.matches("\"tool_use_id\"").count() as u32;
        assert_eq!(numbers, CALLS);
        // Those of a session stand in its log in order, each twice: as it is asked, and with its answer.
        let mut next = 0;
        for number in 0..1_000 {
            let own = format!("\"call-s{session}-{number}\"");
            if told.text.contains(&own) {
                next += 1;
                told.text = told.text.replace(&own, &json!(ids(session, next)).to_string());
            }
        }
        place(&home, &told);
    }
    home
}

#[test]
fn ids_that_come_again_change_no_figure() {
    let [own, of_conversation, of_answer]: [Ids<'_>; 3] =
        [&|session, call| format!("toolu_{session}_{call}"), &|_, call| format!("Read_no:{call}"), &|_, _| {
            "the_call0".to_owned()
        }];
    let homes = [own, of_conversation, of_answer].map(home);
    let commands: [&[&str]; 7] = [
        &["what-if", "prompt-cache"],
        &["what-if", "arg-check"],
        &["what-if", "pipeline"],
        &["cost", "--by", "tool"],
        &["report"],
        &["mine", "tools"],
        &["mine", "fields"],
    ];
    for command in commands {
        let [own, of_conversation, of_answer] = homes.each_ref().map(|home| {
            let report = home.json(&[command, &["--reproducible"]].concat());
            report.to_string().replace(home.path("").to_str().unwrap(), "")
        });
        assert_eq!(own, of_conversation, "{command:?}");
        assert_eq!(own, of_answer, "{command:?}");
    }
    let checked = homes[2].json(&["what-if", "arg-check"]).to_string();
    assert!(checked.contains(&(SESSIONS * CALLS).to_string()), "{checked}");
}
