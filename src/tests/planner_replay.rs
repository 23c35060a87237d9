//! `devboy replay --planner` from the outside: what it says of agents whose habits are known, its forms, bad input.

use serde_json::Value;

use super::harness::{Home, all_bytes};
use super::script::Script;
use crate::shell::arguments::Exit;

/// Sessions on days that follow each other, each a file.
fn home(sessions: impl IntoIterator<Item = Script>) -> Home {
    let home = Home::new();
    for (number, script) in sessions.into_iter().enumerate() {
        let log = script.log().replace("2026-01-02T", &format!("2026-01-{:02}T", number + 1));
        home.write(&format!(".claude/projects/p/s{number:02}.jsonl"), log);
    }
    home
}

fn listed(session: usize, n: usize, file: usize) -> String {
    format!("src/dir{}/file_{session}_{n}_{file}.rs", (n + file) % 3)
}

/// An agent that searches six times a session, finds `files` files, and may read the first.
fn searches(session: usize, files: usize, reads: bool) -> Script {
    (0..6).fold(Script::new(&format!("s{session:02}")), |script, n| {
        let found: Vec<String> = (0..files).map(|file| listed(session, n, file)).collect();
        let script = script.grep(&found.iter().map(String::as_str).collect::<Vec<_>>());
        if reads { script.read(&found[0]) } else { script.read(&format!("other/{session}_{n}.rs")) }
    })
}

fn arm<'r>(report: &'r Value, name: &str) -> &'r Value {
    report["planner"]["arms"].as_array().unwrap().iter().find(|arm| arm["arm"] == name).unwrap()
}

fn metric<'r>(report: &'r Value, name: &str, key: &str) -> &'r Value {
    arm(report, name)["metrics"].as_array().unwrap().iter().find(|metric| metric["metric"] == key).unwrap()
}

fn hit(report: &Value, name: &str) -> f64 {
    metric(report, name, "exact_hit")["value"].as_f64().unwrap()
}

fn advice(report: &Value) -> String {
    report["planner"]["advice"].to_string()
}

#[test]
fn an_agent_that_always_reads_the_only_hit_is_served() {
    let home = home((0..20).map(|session| searches(session, 1, true)));
    let report = home.json(&["replay", "--planner"]);
    assert_eq!(report["planner"]["backtest"]["judged_sessions"], 6);
    for name in ["configured", "mined", "selective"] {
        assert!(hit(&report, name) >= 0.95, "{name}: {}", arm(&report, name)["total"]);
        assert_eq!(metric(&report, name, "exact_hit")["verdict"], "pass");
        assert_eq!(arm(&report, name)["total"]["ends"]["won"], 36);
        assert_eq!(arm(&report, name)["random_arguments"]["near"]["exact"], 0);
        assert_eq!(arm(&report, name)["random_arguments"]["far"]["exact"], 0);
    }
    let text = home.out_at_width(&["replay", "--planner"], 100);
    assert!(text.starts_with("Would prefetching have paid? Yes with planner \"configured\": 100 %"), "{text}");
    assert!(text.contains("what to do") && text.lines().count() <= 25, "{text}");
    let full = home.run(&["replay", "--planner", "--explain"]).out;
    let [near, far] = ["3", "10"].map(|calls| (format!("exact, {calls} calls"), format!("exact, {calls}, random")));
    for (figure, control) in [near, far] {
        let at = |name: &str| full.lines().position(|line| line.trim_start().starts_with(name));
        assert_eq!(at(&figure).map(|line| line + 1), at(&control), "{full}");
    }
    assert!(advice(&report).contains("R7 enabled: enrichment.enabled = true"), "{}", advice(&report));
}

#[test]
fn of_several_hits_the_selective_planner_learns_that_the_first_is_read() {
    let home = home((0..30).map(|session| searches(session, 3, true)));
    let report = home.json(&["replay", "--planner"]);
    assert!(hit(&report, "configured") < 0.5, "three are fetched for one that is read");
    assert!(hit(&report, "selective") >= 0.95, "{}", arm(&report, "selective"));
    assert_eq!(arm(&report, "selective")["net"]["saved"], 54);
}

#[test]
fn for_an_agent_that_never_reads_a_hit_exactly_that_tool_is_switched_off() {
    let home = home((0..20).map(|session| searches(session, 1, false)));
    let report = home.json(&["replay", "--planner"]);
    assert_eq!(hit(&report, "configured"), 0.0);
    let told = |report: &Value, begins: &str| {
        let advice = report["planner"]["advice"].as_array().unwrap().iter().filter_map(Value::as_str);
        advice.filter(|line| line.starts_with(begins)).map(str::to_owned).collect::<Vec<String>>()
    };
    let writes = "`devboy tune analyze --from-claude-logs --auto-enrichment` judges";
    let config = home.write("on.toml", "schema_version = 4\n[enrichment]\nenabled = true\n");
    let on = home.json(&["replay", "--planner", "--config", config.to_str().unwrap()]);
    let disabled = told(&on, "R7 disabled");
    let published = "R7 disabled: [tools.\"Read\"].speculate = false  (36 prefetches, hit_rate 0.0% < 50%)";
    assert!(disabled.len() == 1 && disabled[0].starts_with(published), "{disabled:?}");
    assert_eq!(told(&on, writes).len(), 1, "{}", advice(&on));
    // That command writes none while nothing is called ahead anyway, and none is announced.
    let held = told(&report, "R7 hold: [tools.\"Read\"] no effect: `enrichment.enabled` is false");
    assert!(held.len() == 1 && held[0].contains("hit_rate 0.0% < 50%"), "{}", advice(&report));
    assert!(told(&report, "R7 disabled").is_empty() && told(&report, writes).is_empty(), "{}", advice(&report));
    let text = home.out_at_width(&["replay", "--planner"], 100);
    assert!(text.starts_with("Would prefetching have paid? Not as configured: 0 %"), "{text}");
    // Told so, it fetches nothing.
    let config = home.write("off.toml", "schema_version = 4\n[tools.Read]\nspeculate = false\n");
    let off = home.json(&["replay", "--planner", "--config", config.to_str().unwrap()]);
    assert_eq!(arm(&off, "configured")["total"]["sent"], 0);
    assert_eq!(metric(&off, "configured", "exact_hit")["verdict"], "n/a");
}

#[test]
fn of_hits_that_all_come_late_it_is_said_that_they_spare_nothing() {
    let hurried = |session: usize| {
        (0..6).fold(Script::new(&format!("s{session:02}")), |script, n| {
            let file = listed(session, n, 0);
            script.grep(&[&file]).pause(-9).read(&file)
        })
    };
    let home = home((0..20).map(hurried));
    let config = home.write("late.toml", "schema_version = 4\n[enrichment]\nprefetch_timeout_ms = 0\n");
    let text = home.out_at_width(&["planner", "--config", config.to_str().unwrap()], 100);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.starts_with("Would prefetching have paid? Not as configured: 100 %"), "{text}");
    assert!(text.contains("is asked for within three calls, but no call of the agent is spared."), "{text}");
}

#[test]
fn threads_lake_and_repetition_change_no_byte() {
    let home = home((0..12).map(|session| searches(session, 2, session % 3 > 0)));
    for format in ["table", "json", "csv", "md"] {
        let run = |more: &[&str]| {
            let arguments = [&["replay", "--planner", "--reproducible", "--format", format], more].concat();
            let out = home.run(&arguments).out;
            let report = out.find("\"planner\"").unwrap_or(0);
            out[report..].to_owned()
        };
        let first = run(&["--threads", "1", "--no-lake"]);
        assert!(first.len() > 500, "{first}");
        for more in [&["--threads", "2", "--no-lake"][..], &["--threads", "2"], &["--threads", "1"]] {
            assert_eq!(run(more), first, "{format} {more:?}");
        }
    }
}

#[test]
fn the_sessions_stand_in_the_published_columns() {
    let home = home((0..10).map(|session| searches(session, 1, true)));
    let out = home.run(&["replay", "--planner", "--format", "csv"]).out;
    let published = "session_hash,total_events,total_prefetches,cited_prefetches,prefetch_hit_rate,total_declines,\
                     late_invoked_after_decline,decline_recall_loss,cost_overrun_count,total_predictions,\
                     cost_overrun_rate,inference_calls_saved_prefetch,inference_calls_saved_dedup,\
                     inference_calls_saved_fail_fast,inference_calls_saved_total,inference_tokens_saved,";
    assert!(out.starts_with(published), "{out}");
    let lines: Vec<&str> = out.lines().collect();
    assert_eq!(lines.len(), 1 + 3 + 1, "three judged sessions and the total");
    assert!(lines[4].starts_with("TOTAL,36,18,18,100.0%,0,0,n/a,0,18,0.0%,18,0,0,18,"), "{}", lines[4]);
    let names: Vec<&str> = lines[1..4].iter().map(|line| line.split(',').next().unwrap()).collect();
    assert!(names.is_sorted() && names.iter().all(|name| name.len() == 16));
    let other = home.run(&["replay", "--planner", "--format", "csv", "--arm", "published"]).out;
    assert!(other.lines().all(|line| line.contains(",arm,") || line.contains(",published,")));
    let odd = home.run(&["replay", "--planner", "--format", "csv", "--arm", "best"]);
    assert_eq!(odd.exit, Exit::Usage);
    assert!(odd.err.contains("published, configured, mined, selective"), "{}", odd.err);
}

#[test]
fn the_day_that_divides_learning_from_judging_can_be_named() {
    let home = home((0..10).map(|session| searches(session, 1, true)));
    let judged = |until: &str| {
        let report = home.json(&["replay", "--planner", "--train-until", until]);
        let backtest = &report["planner"]["backtest"];
        (backtest["training_sessions"].as_u64().unwrap(), backtest["judged_sessions"].as_u64().unwrap())
    };
    assert_eq!(judged("2026-01-04T23:59:59Z"), (4, 6));
    assert_eq!(judged("2025-01-01"), (0, 10), "nothing to learn from is no error");
    let late = home.run(&["replay", "--planner", "--train-until", "2026-02-01"]);
    assert_eq!(late.exit, Exit::Failed);
    assert!(late.err.contains("no session is left to be judged") && late.err.contains("--train-until"), "{}", late.err);
}

#[test]
fn each_knob_gets_a_row_per_value_and_planner_and_a_knob_without_effect_is_said_to_have_none() {
    let home = home((0..10).map(|session| searches(session, 3, true)));
    let sweep = |knob: &str| home.run(&["replay", "--planner", "--sweep", knob]);
    let report = home.json(&["replay", "--planner", "--sweep", "enrichment.prefetch_budget_tokens=1,700,8000"]);
    let cells = report["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 3 * 4);
    let sent = |value: &str| {
        let cell = cells
            .iter()
            .find(|cell| cell["arm"] == "configured" && cell["values"]["enrichment.prefetch_budget_tokens"] == value);
        cell.unwrap()["books"]["sent"].as_u64().unwrap()
    };
    assert_eq!((sent("1"), sent("8000")), (0, 54));
    let published = cells.iter().filter(|cell| cell["arm"] == "published");
    assert!(published.clone().all(|cell| cell["saved"] == 0), "its calls run all the same");
    assert!(published.clone().any(|cell| cell["added"] == cell["books"]["sent"] && cell["added"] != 0));
    assert!(sent("700") > 0 && sent("700") < 54);
    let probability = sweep("min_followup_probability=0.1,0.3,0.9").out;
    assert!(probability.contains("0.9") && probability.contains("\nexact: asked for "), "{probability}");
    let without = sweep("enrichment.respect_rate_limits=true,false").out;
    assert!(without.contains("configured: no effect"), "{without}");
    for (odd, word) in [
        ("dedup.lru_size=3,5", "does not look at it"),
        ("foo.bar=1", "hint: keys of enrichment can be swept"),
        ("min_followup_probability=7", "no probability"),
    ] {
        let refused = sweep(odd);
        assert_eq!(refused.exit, Exit::Usage, "{odd}");
        assert!(refused.err.contains(word), "{}", refused.err);
    }
}

#[test]
fn value_models_that_cannot_be_meant_end_the_command_and_odd_ones_are_told() {
    let home = home((0..4).map(|session| searches(session, 1, true)));
    let run = |tools: &str| {
        let config = home.write("odd.toml", format!("schema_version = 4\n{tools}"));
        home.run(&["replay", "--planner", "--config", config.to_str().unwrap()])
    };
    let cycle = run("[tools.A]\nrequires = [\"B\"]\n[tools.B]\nrequires = [\"A\"]\n");
    assert_eq!(cycle.exit, Exit::Failed);
    assert!(cycle.err.contains("odd.toml:3: `tools.A.requires` leads back to itself: A → B → A"), "{}", cycle.err);
    let share = run("[[tools.Grep.follow_up]]\ntool = \"Read\"\nprobability = 1.5\n");
    assert_eq!(share.exit, Exit::Failed);
    assert!(share.err.contains("odd.toml:4") && share.err.contains("a number from 0 to 1"), "{}", share.err);
    let stranger = run("[tools.Edit]\ninvalidates = [\"Raed\"]\n");
    assert_eq!(stranger.exit, Exit::Done);
    assert!(
        stranger.err.contains("odd.toml:3") && stranger.err.contains("Raed, a tool that nobody knows"),
        "{}",
        stranger.err
    );
    let mutating = run("[[tools.Grep.follow_up]]\ntool = \"Edit\"\nprobability = 0.9\n");
    assert_eq!(mutating.exit, Exit::Done);
    assert!(mutating.err.contains("which changes something and is never called ahead"), "{}", mutating.err);
}

/// planner-compat.md 3: a block stands for the whole shipped model of its tool, as in the pipeline.
#[test]
fn a_block_without_links_fetches_nothing_behind_its_tool_and_is_told_of() {
    let home = home((0..10).map(|session| searches(session, 1, true)));
    let sent = |text: &str| {
        let config = home.write("block.toml", format!("schema_version = 4\n{text}"));
        let arguments = ["replay", "--planner", "--config", config.to_str().unwrap()];
        let report = home.json(&arguments);
        (arm(&report, "configured")["total"]["sent"].as_u64().unwrap(), home.run(&arguments).err)
    };
    assert_eq!(sent("").0, 18);
    let (bare, told) = sent("[tools.Grep]\nside_effect_class = \"read_only\"\n");
    assert_eq!(bare, 0);
    assert!(told.contains("block.toml:2: `tools.Grep.follow_up` hides the shipped links to"), "{told}");
    // The other tool of the link keeps the model that is shipped, unless nobody knows what it does.
    let links = "[[tools.Grep.follow_up]]\ntool = \"Read\"\nprobability = 0.9\nprojection = \"path\"\n\
                 projection_arg = \"file_path\"\n";
    assert_eq!(sent(links).0, 18);
    let odd = "[tools.Read]\nside_effect_class = \"reads_remote\"\nspeculate = true\n";
    let (unknown, told) = sent(&format!("{links}{odd}"));
    assert_eq!(unknown, 0);
    assert!(told.contains("`tools.Read.side_effect_class` is \"reads_remote\""), "{told}");
}

/// planner-compat.md 11.1: every prefetch is a prediction, whether or not its answer is known.
#[test]
fn the_published_columns_count_a_prediction_for_each_prefetch() {
    let home = home((0..20).map(|session| searches(session, 1, false)));
    let out = home.run(&["replay", "--planner", "--format", "csv"]).out;
    let total: Vec<&str> = out.lines().last().unwrap().split(',').collect();
    assert_eq!((total[2], total[9]), ("36", "36"), "{out}");
}

#[test]
fn nothing_to_judge_and_nothing_to_say_are_told_apart() {
    let home = home([Script::new("s00").read("src/a.rs")]);
    let text = home.run(&["replay", "--planner"]);
    assert_eq!(text.exit, Exit::Done, "{}", text.err);
    assert!(text.out.starts_with("Would prefetching have paid? Nothing would have been prefetched."), "{}", text.out);
    let empty = Home::new();
    assert_eq!(empty.run(&["replay", "--planner"]).exit, Exit::Failed);
}

#[test]
fn no_text_of_the_logs_is_printed_or_kept() {
    let secret = |session: usize| {
        let file = format!("secretdir/secretfile_{session}.rs");
        Script::new(&format!("s{session}")).grep(&[&file]).read(&file)
    };
    let home = home((0..8).map(secret));
    for format in ["table", "json", "csv", "md"] {
        let out = home.run(&["replay", "--planner", "--format", format]).out;
        assert!(!out.contains("secret"), "{out}");
    }
    let lake = all_bytes(&home.lake());
    assert!(memchr::memmem::find(&lake, b"secret").is_none());
}

/// B5, B7, C6: what is off is replayed all the same, and what cannot be known is said.
#[test]
fn a_planner_that_is_off_is_judged_and_the_report_says_what_it_cannot_know() {
    let home = home((0..10).map(|session| searches(session, 1, true)));
    let report = home.json(&["replay", "--planner"]);
    assert_eq!(report["planner"]["backtest"]["enrichment_enabled"], false);
    assert!(arm(&report, "configured")["total"]["sent"].as_u64().unwrap() > 0);
    let notes = report["planner"]["notes"].to_string();
    for said in ["enrichment is off", "an MCP server sees only its own calls", "intent keywords: n/a"] {
        assert!(notes.contains(said), "{said}: {notes}");
    }
    let config = home.write("on.toml", "schema_version = 4\n[enrichment]\nenabled = true\n");
    let on = home.json(&["replay", "--planner", "--config", config.to_str().unwrap()]);
    assert_eq!(arm(&on, "configured")["total"], arm(&report, "configured")["total"]);
    assert!(!on["planner"]["notes"].to_string().contains("enrichment is off"));
}

/// A6, E5, E8: planned, sent and ended are three counts; what L0 spares is another command's and does not change.
#[test]
fn every_planned_call_ends_in_one_way_and_l0_knows_nothing_of_it() {
    let home = home((0..10).map(|session| searches(session, 3, session % 2 == 0)));
    let config =
        home.write("tight.toml", "schema_version = 4\n[enrichment]\nenabled = true\nmax_parallel_prefetches = 2\n");
    let report = home.json(&["replay", "--planner", "--config", config.to_str().unwrap()]);
    for arm in report["planner"]["arms"].as_array().unwrap() {
        let total = &arm["total"];
        let ends = total["ends"].as_object().unwrap();
        let count = |keys: &[&str]| keys.iter().map(|key| ends[*key].as_u64().unwrap()).sum::<u64>();
        let all: u64 = ends.values().map(|end| end.as_u64().unwrap()).sum();
        let refused = count(&["host_saturated", "max_parallel_reached", "already_fetched"]);
        assert_eq!(total["planned"], all, "{arm}");
        assert_eq!(total["sent"].as_u64().unwrap() + refused, all);
        let of_edges: u64 =
            arm["edges"].as_array().unwrap().iter().map(|edge| edge["books"]["planned"].as_u64().unwrap()).sum();
        assert_eq!(of_edges, all);
        let line = arm["published_line"].as_str().unwrap();
        assert!(line.starts_with("prefetch_hit=") && line.contains("dedup=0, fail_fast="), "{line}");
    }
    assert!(arm(&report, "configured")["total"]["ends"]["max_parallel_reached"].as_u64().unwrap() > 0);
    let layered = |more: &[&str]| home.json(&[&["replay"], more].concat())["replay"].clone();
    assert_eq!(layered(&[]), layered(&["--config", config.to_str().unwrap()]));
}

/// E11: sizes are those of the earlier sessions, so predictions are not overrun by what was always so.
#[test]
fn sizes_mined_on_earlier_sessions_predict_the_later_ones() {
    let body = "     1→a line of the file\n".repeat(500);
    let script = |session: usize| {
        (0..6).fold(Script::new(&format!("s{session:02}")), |script, n| {
            let file = listed(session, n, 0);
            let input = serde_json::json!({ "file_path": super::script::path(&file) });
            script.grep(&[&file]).step(&[("Read", input, &body)])
        })
    };
    let home = home((0..20).map(script));
    let report = home.json(&["replay", "--planner"]);
    let overrun = |name: &str| metric(&report, name, "cost_overrun")["value"].as_f64().unwrap();
    assert_eq!((overrun("configured"), overrun("mined")), (1.0, 0.0));
}

#[test]
fn r6_flags_a_tool_whose_links_promise_too_much() {
    let home = home((0..20).map(|session| searches(session, 1, false)));
    let advice = advice(&home.json(&["replay", "--planner"]));
    assert!(advice.contains("R6 hold: Read: tighten"), "{advice}");
}

/// A figure's name in its words, whatever their order and spelling: "exact, 3 calls" is `within_3_calls.exact`.
fn spelled(name: &str) -> String {
    let mut words: Vec<String> = name
        .to_lowercase()
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !matches!(*word, "" | "within" | "of"))
        .map(|word| match word {
            "three" => "3".to_owned(),
            "ten" => "10".to_owned(),
            word => word.to_owned(),
        })
        .collect();
    words.sort();
    words.join(" ")
}

fn share_of(k: &Value, n: &Value) -> Option<String> {
    let (k, n) = (k.as_f64()?, n.as_f64()?);
    (n > 0.0).then(|| format!("{:.1} %", 100.0 * k / n))
}

/// Every share and count of a report under its planner and name, wherever it stands.
fn named_figures(report: &Value, text: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    for arm in report["planner"]["arms"].as_array().unwrap() {
        let planner = arm["arm"].as_str().unwrap();
        let mut add = |name: &str, figure: Option<String>| {
            found.extend(figure.map(|figure| (planner.to_owned(), spelled(name), figure)));
        };
        for metric in arm["metrics"].as_array().unwrap() {
            let name = metric["metric"].as_str().unwrap();
            add(name, share_of(&metric["k"], &metric["n"]));
            add(&format!("{name} count"), Some(metric["k"].to_string()));
        }
        for window in ["within_3_calls", "within_10_calls", "within_3_steps"] {
            for (kind, count) in arm["total"][window].as_object().unwrap() {
                add(&format!("{window} {kind}"), share_of(count, &arm["total"]["sent"]));
            }
        }
        for part in ["net", "total"] {
            for (name, figure) in arm[part].as_object().unwrap().iter().filter(|(_, figure)| figure.is_number()) {
                add(&format!("{name} count"), Some(figure.to_string()));
            }
        }
        for (name, figure) in arm.as_object().unwrap().iter().filter(|(_, figure)| figure.is_number()) {
            add(&format!("{name} count"), Some(figure.to_string()));
        }
        for (name, figure) in arm["published_line"].as_str().unwrap().split(' ').filter_map(|part| part.split_once('='))
        {
            match figure.strip_suffix('%') {
                Some(share) => add(name, Some(format!("{share} %"))),
                None => add(&format!("{name} count"), Some(figure.to_owned())),
            }
        }
    }
    let selective =
        |name: String, k: &Value, n: &Value| Some(("selective".to_owned(), spelled(&name), share_of(k, n)?));
    for (name, share) in report["planner"]["selectivity"]["judged"].as_object().into_iter().flatten() {
        found.extend(selective(format!("{name} 3 calls"), &share["k"], &share["n"]));
    }
    for line in text.lines() {
        let cells: Vec<&str> = line.split(['│', '┆']).map(str::trim).collect();
        match cells[..] {
            ["", name, planner, share, _, _, _, _, ""] if share.ends_with('%') => {
                found.push((planner.to_owned(), spelled(name), share.to_owned()));
            }
            ["", name, ref shares @ .., ""] if shares.len() == 4 && shares[0].ends_with(['%', 'a']) => {
                let planners = ["published", "configured", "mined", "selective"];
                let known = planners.iter().zip(shares).filter(|(_, share)| share.ends_with('%'));
                found.extend(known.map(|(planner, share)| (planner.to_string(), spelled(name), share.to_string())));
            }
            _ => {}
        }
        let said = line.trim().split_once(": ").and_then(|(name, rest)| Some((name, rest.split_once(" of ")?)));
        let Some((name, (k, rest))) = said.filter(|(name, _)| name.contains(" within ")) else { continue };
        let number = |text: &str| Value::from(text.split(' ').next().unwrap_or_default().parse::<u64>().ok());
        found.extend(selective(name.to_owned(), &number(k), &number(rest)));
    }
    found
}

#[test]
fn equal_names_have_equal_figures_over_a_whole_report() {
    // Two searches in a row list the same file, which is then read: two candidates come true, one call was sent.
    let session = |session: usize| {
        let twice = (0..4).fold(Script::new(&format!("s{session:02}")), |script, n| {
            let file = listed(session, n, 0);
            script.grep(&[&file]).grep(&[&file]).read(&file)
        });
        twice.grep(&[&listed(session, 9, 0)]).read("other/place.rs")
    };
    let home = home((0..30).map(session));
    let report = home.json(&["replay", "--planner"]);
    let text = home.out_at_width(&["replay", "--planner", "--explain"], 100);
    let mut known = std::collections::BTreeMap::new();
    let mut twice = 0;
    for (planner, name, figure) in named_figures(&report, &text) {
        let before = known.entry((planner.clone(), name.clone())).or_insert_with(|| figure.clone());
        twice += 1;
        assert_eq!(*before, figure, "two figures are called \"{name}\" of the planner {planner}\n{text}");
    }
    assert!(known.contains_key(&("selective".to_owned(), spelled("exact, 3 calls"))), "{known:#?}");
    assert!(known.contains_key(&("selective".to_owned(), spelled("came true within three calls"))), "{known:#?}");
    assert!(twice > known.len() + 20, "figures stand in several places");
}
