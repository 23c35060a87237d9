//! Bodies under a budget: what is kept stays as it is and in order, what is left out is counted, and nothing costs more
//! than was allowed.

use proptest::prelude::*;

use crate::base::body_shape::Showing;
use crate::facts::budget::{BudgetRequest, Fitted, Unfit, fit, overflow};
use crate::facts::encode::{Format, FormatFamily, Params, REGISTER};
use crate::facts::outline::{Outline, OutlinePart, OutlineRules};
use crate::facts::shape::classify;
use crate::tests::log_builder::cases;

const CALL: &str = "get(page=2)";

fn published() -> Vec<&'static Format> {
    REGISTER.iter().filter(|format| format.family == FormatFamily::Published).collect()
}

fn params() -> Params {
    Params { recursion_depth: 5, numbered_every: 10 }
}

/// Every byte a token: the parts of a text cost exactly what the text costs.
fn bytes(text: &str) -> u64 {
    text.len() as u64
}

/// Words and marks: parts may cost more than the text that they make.
fn words(text: &str) -> u64 {
    let starts = |pair: &[u8]| pair[1] > b' ' && !(pair[0].is_ascii_alphanumeric() && pair[1].is_ascii_alphanumeric());
    [b" ", text.as_bytes()].concat().windows(2).filter(|pair| starts(pair)).count() as u64
        + text.matches('\n').count() as u64
}

fn fit_by(text: &str, budget: u64, count: fn(&str) -> u64) -> Result<Fitted, Unfit> {
    fit_shown(text, Showing::Nothing, budget, count)
}

fn fit_shown(text: &str, showing: Showing, budget: u64, count: fn(&str) -> u64) -> Result<Fitted, Unfit> {
    let formats = published();
    let shape = classify(text.as_bytes());
    let request =
        BudgetRequest { text, shape, showing, budget, signature: Some(CALL), formats: &formats, params: params() };
    fit(&request, &mut |text| count(text))
}

/// Checks everything that a fitted text claims about itself, and returns it.
fn fitted(text: &str, budget: u64, count: fn(&str) -> u64) -> Fitted {
    let fitted = fit_by(text, budget, count).unwrap();
    assert!(fitted.tokens <= budget, "{} of {budget}:\n{}", fitted.tokens, fitted.text);
    assert_eq!(fitted.tokens, count(&fitted.text));
    assert!(fitted.value <= fitted.upper_bound && fitted.upper_bound <= fitted.value_total);
    assert_eq!(hinted(&fitted.text) == 0, fitted.elided == 0, "{}", fitted.text);
    assert!((0.0..=1.0).contains(&fitted.gap()));
    fitted
}

fn is_hint(line: &str) -> Option<u64> {
    line.strip_prefix("> [+")?.strip_suffix(&format!(" more. call {CALL}]"))?.parse().ok()
}

/// How many lines or values the hints in a text stand for.
fn hinted(text: &str) -> u64 {
    text.lines().filter_map(is_hint).sum()
}

fn outline(text: &str, node_bytes_max: usize) -> Outline {
    let formats = published();
    let cut = OutlineRules { node_bytes_max, line_tokens_max: 0, formats: &formats, params: params() };
    Outline::of(text, classify(text.as_bytes()), &cut, &mut |text| bytes(text))
}

fn issues(count: usize) -> String {
    let issue = |id| format!(r#"{{"id":{id},"title":"Fix the parser again","state":"open"}}"#);
    format!(r#"{{"issues":[{}],"total":{count}}}"#, (1..=count).map(issue).collect::<Vec<_>>().join(","))
}

#[test]
fn what_fits_is_left_as_it_is_or_written_in_the_cheapest_format() {
    let text = "# Title\n\nSome text.\n";
    let whole = fitted(text, 20, bytes);
    assert_eq!((whole.text.as_str(), whole.elided, whole.gap()), (text, 0, 0.0));
    assert_eq!(fitted("", 0, bytes).text, "");
    assert_eq!(fitted("{ \"a\" : \"b c\" }", 9, bytes).text, "a: b c");
    let table = fitted(&issues(20), 750, bytes);
    assert!(table.text.starts_with("issues:\n```csv\nid,title,state\n") && table.elided == 0);
}

#[test]
fn rows_that_are_left_out_are_counted_below_a_heading() {
    let text = "## issues (3 of 40)\nid,title,state\n1,Fix the parser again,open\n2,Fix the parser again,open\n\
                3,Fix the parser again,open\n> [+37 more. call get(page=2)]\ntotal:40\n";
    assert_eq!(fitted(&issues(40), 170, bytes).text, text);
}

#[test]
fn hints_count_what_the_body_has_whatever_the_budget_cuts_it_into() {
    let objects: Vec<String> = (0..60).map(|n| format!(r#"{{"id":{n},"name":"object {n}","on":true}}"#)).collect();
    // The first element is shown in part: two of its members are missing, and the other elements.
    let kept = fitted(&format!("[{}]", objects.join(",")), 60, bytes);
    assert_eq!(kept.text, "## items (1 of 60)\n[0].id:0\n> [+61 more. call get(page=2)]\n");
    let lines: String = (100..400).map(|n| format!("This is line {n} of a log with some words in it.\n")).collect();
    for budget in [60, 200, 1000, 5000] {
        let kept = fitted(&lines, budget, bytes).text;
        let whole = kept.lines().filter(|line| lines.contains(&format!("{line}\n"))).count() as u64;
        assert_eq!(hinted(&kept), 300 - whole, "{budget}: {kept}");
    }
}

#[test]
fn a_line_is_cut_only_where_it_does_not_fit_and_says_so() {
    let body: String = (10..40).map(|n| format!("let x{n} = {n}; // some more words\n")).collect();
    for budget in [62, 70, 100, 300] {
        let kept = fitted(&body, budget, bytes).text;
        let is_cut = |line: &str| line.starts_with('…') || line.ends_with('…');
        let lines = || kept.lines().filter(|line| is_hint(line).is_none());
        assert!(lines().all(|line| is_cut(line) || body.contains(&format!("{line}\n"))), "{budget}: {kept}");
        assert_eq!(lines().any(is_cut), budget < 70, "{budget}: {kept}");
        // Every line that is not shown, and the one that is shown in part.
        let whole = lines().filter(|line| !is_cut(line)).count() as u64;
        assert_eq!(hinted(&kept), 30 - whole, "{budget}: {kept}");
    }
    let table: String = (10..40).map(|n| format!("| {n} | a row |\n")).collect();
    let kept = fitted(&format!("| id | text |\n|---|---|\n{table}"), 70, bytes).text;
    assert!(kept.lines().all(|line| is_hint(line).is_some() || line.ends_with('|') && line.len() > 8), "{kept}");
    // Of a text in JSON as well; the hint counts the rest of the line and the member behind it.
    let words: Vec<String> = (10..90).map(|n| format!("word{n}")).collect();
    let kept = fitted(&format!(r#"{{"body":"{}","z":"{}"}}"#, words.join(" "), "z".repeat(60)), 92, bytes).text;
    assert_eq!(kept, "## body\nword10 word11 word12 word13 word14 word15 …\n> [+2 more. call get(page=2)]\n");
}

#[test]
fn what_follows_a_table_is_apart_from_it() {
    let note: String = (10..30).map(|line| format!("{line} words of a note\\n")).collect();
    let rows = r#"{"a":1,"b":"one\n\"two\""},{"a":2,"b":"another row"},{"a":3,"b":"and another"}"#;
    let body = format!(r#"{{"rows":[{rows}],"n":7,"note":"{note}","ok":true}}"#);
    let table = "## rows (3 of 3)\na,b\n1,\"one\n\"\"two\"\"\"\n2,another row\n3,and another\n\n";
    let text = format!("{table}n:7\n## note\n10 words of a note\n> [+19 more. call get(page=2)]\nok: true\n");
    assert_eq!(fitted(&body, text.len() as u64, bytes).text, text);
}

#[test]
fn parts_of_a_text_start_with_a_line() {
    let outline = outline("   # One\n\n   Text.\n\n   - a\n   - b\n\n   | c |\n   |---|\n   | d |\n", 80);
    let lines = outline.parts.iter().filter_map(|part| match part {
        OutlinePart::Node(node) => Some(node.forms[0].clone()),
        OutlinePart::Open(group) => Some(group.head.text(0)),
        OutlinePart::Close => None,
    });
    let expected = ["   # One\n\n", "   Text.\n\n", "   - a\n", "   - b\n\n", "   | c |\n   |---|\n", "   | d |\n"];
    assert_eq!(lines.collect::<Vec<_>>(), expected);
}

#[test]
fn sections_keep_their_headings_and_tables_their_heads() {
    // Two bytes a character: the table tells more per token.
    let long = "é".repeat(60);
    let rows: String = (10..40).map(|row| format!("| {row} | text of the row |\n")).collect();
    let body = format!("# One\n\n{long}\n\n# Two\n\n{long}\n\n| id | text |\n|---|---|\n{rows}\n## Three\n\n{long}\n");
    let kept = fitted(&body, 400, bytes).text;
    let start =
        "> [+4 more. call get(page=2)]\n# Two\n\n> [+2 more. call get(page=2)]\n| id | text |\n|---|---|\n| 10 |";
    assert!(
        kept.starts_with(start) && kept.ends_with("| 20 | text of the row |\n> [+23 more. call get(page=2)]\n"),
        "{kept}"
    );
}

#[test]
fn code_keeps_both_ends_of_its_fence() {
    let code: String = (100..200).map(|line| format!("let x{line} = {line};\n")).collect();
    let kept = fitted(&format!("```rust\n{code}```\n"), 150, bytes);
    assert!(kept.text.starts_with("```rust\nlet x100") && kept.text.ends_with("]\n```\n"), "{}", kept.text);
}

#[test]
fn texts_in_json_are_taken_apart_too() {
    let log: String = (100..200).map(|line| format!("{line} some line of a log\\n")).collect();
    let kept = fitted(&format!(r#"{{"status":"ok","log":"{log}","code":0}}"#), 220, bytes);
    assert!(kept.text.starts_with("status: ok\n## log\n100 some line of a log\n101 "), "{}", kept.text);
    assert!(kept.text.ends_with("> [+93 more. call get(page=2)]\ncode:0\n"), "{}", kept.text);
    let inner = issues(40).replace('"', "\\\"");
    let kept = fitted(&format!(r#"{{"result":"{inner}"}}"#), 200, bytes);
    assert!(kept.text.starts_with("## result.issues (4 of 40)\nid,title,state\n1,"), "{}", kept.text);
}

#[test]
fn hints_of_earlier_stages_stay() {
    let lines: String = (100..200).map(|line| format!("Line {line} of the text.\n\n")).collect();
    let kept = fitted(&format!("{lines}> [ref: 1a2b3c4d, byte-identical]\n"), 150, bytes);
    assert!(kept.text.ends_with("> [ref: 1a2b3c4d, byte-identical]\n"), "{}", kept.text);
    // Their sections cannot be left out either.
    let kept = fitted(&format!("# One\n\n## Two\n\n> [ref: 1a2b3c4d]\n\n# Three\n\n{lines}"), 150, bytes);
    assert!(kept.text.starts_with("# One\n\n## Two\n\n> [ref: 1a2b3c4d]\n\n"), "{}", kept.text);
    let kept = fitted(&format!("{lines}# One\n\n## Two\n\n> [ref: 1a2b3c4d]\n"), 120, bytes);
    assert!(kept.text.ends_with("more. call get(page=2)]\n# One\n\n## Two\n\n> [ref: 1a2b3c4d]\n"), "{}", kept.text);
    let hints = "> [ref: 1a2b3c4d]\n\n".repeat(30);
    assert!(matches!(fit_by(&hints, 200, bytes), Err(Unfit::TooSmall(570))));
}

#[test]
fn nothing_is_left_out_without_a_call_or_without_a_hint() {
    let (text, formats) = ("word ".repeat(100), published());
    let request = |signature, budget| BudgetRequest {
        text: &text,
        shape: classify(text.as_bytes()),
        showing: Showing::Nothing,
        budget,
        signature,
        formats: &formats,
        params: params(),
    };
    for none in [None, Some(""), Some("  "), Some("get()\n> [ref: x]"), Some("a\rb")] {
        assert_eq!(fit(&request(none, 100), &mut |text| bytes(text)), Err(Unfit::NoCall), "{none:?}");
        assert_eq!(fit(&request(none, 500), &mut |text| bytes(text)).map(|fitted| fitted.text), Ok(text.clone()));
    }
    let least = overflow(1, CALL).len() as u64;
    assert_eq!(fit(&request(Some(CALL), 3), &mut |text| bytes(text)), Err(Unfit::TooSmall(least)));
    assert_eq!(overflow(18, "get_issues(page=2)"), "> [+18 more. call get_issues(page=2)]\n");
}

#[test]
fn the_best_of_all_choices_where_these_are_few() {
    let lines =
        ["a".repeat(40), "b".repeat(3), "c".repeat(25), "d".repeat(60), "e".repeat(11), "f".repeat(30), "g".repeat(52)];
    let lines: Vec<String> = lines.iter().map(|line| format!("{line}\n")).collect();
    let body = lines.concat();
    let hint = overflow(1, CALL).len();
    let cost = |kept: u32| {
        let is_kept = |at: usize| kept >> at & 1 == 1;
        let hints = (0..lines.len()).filter(|&at| !is_kept(at) && (at == 0 || is_kept(at - 1))).count();
        (0..lines.len()).filter(|&at| is_kept(at)).map(|at| lines[at].len()).sum::<usize>() + hints * hint
    };
    let worth =
        |kept: u32| (0..lines.len()).filter(|at| kept >> at & 1 == 1).map(|at| lines[at].trim().len()).sum::<usize>();
    // From here on no line is cut into parts.
    for budget in 124..body.len() {
        let optimum = (0..1 << lines.len()).filter(|&kept| cost(kept) <= budget).map(worth).max().unwrap() as u64;
        let found = fitted(&body, budget as u64, bytes);
        assert_eq!(found.value, optimum, "{budget}: {}", found.text);
    }
}

#[test]
fn large_and_odd_bodies_are_fitted_in_time() {
    let bodies = [
        "x".repeat(100_000),
        "é ".repeat(40_000),
        "ab\n".repeat(8_000),
        "> ".repeat(8_000),
        "- a\n".repeat(4_000),
        "[".repeat(20_000),
        format!("{}1{}", "[".repeat(120), "]".repeat(120)),
        format!("{}\"{}\"{}", "{\"a\":".repeat(120), "x y\\n".repeat(2_000), "}".repeat(120)),
        format!("[{}1]", "1,".repeat(4_000)),
        format!("| a |\n|---|\n{}", "| 1 |\n".repeat(3_000)),
    ];
    for body in &bodies {
        fitted(body, 400, |text| bytes(text).div_ceil(4));
    }
}

fn any_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "# One\n",
        "## Two\n",
        "# ",
        "Some words here.\n",
        "more ",
        "\n",
        "\n\n",
        "- item\n",
        "  - inner\n",
        "1. first\n",
        "| a | b |\n",
        "|---|---|\n",
        "| 1 | 2 |\n",
        "```\n",
        "```rust\nlet x = 1;\n",
        "````\n",
        "~~~\n",
        "> quote\n",
        "> [ref: 1a2b3c4d]\n",
        "    code\n",
        "---\n",
        "--\n",
        "<div>\n",
        "</div>\n",
        "[a]: b\n",
        "\r\n",
        "\t",
        "é",
        "…\n",
        "*",
        "`",
        "\\",
        "&amp;",
        "   1→fn x\n",
        "\0",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn any_json() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "a",
        "two words",
        "line\nbreak\nmore\n",
        "",
        "null",
        "{\"x\":[1,2]}",
        "> [+1 more]",
        "é",
    ]);
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        (0..2000).prop_map(serde_json::Value::from),
        word.clone().prop_map(serde_json::Value::from),
        word.prop_map(|word| serde_json::Value::from(word.repeat(9))),
    ];
    let key = prop::sample::select(vec!["id", "name", "a.b", "", "two words", "[x]"]);
    let value = leaf.prop_recursive(4, 80, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(serde_json::Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..5).prop_map(|members| {
                serde_json::Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
            }),
        ]
    });
    prop::collection::vec(value, 1..12).prop_map(|values| serde_json::Value::from(values).to_string())
}

proptest! {
    #![proptest_config(cases(96))]

    #[test]
    fn text_of_files_is_kept_as_it_stands(body in prop_oneof![any_text(), any_json()], budget in 4_u64..400) {
        let Ok(fitted) = fit_shown(&body, Showing::Lines, budget, bytes) else { return Ok(()) };
        // Whole lines of it, in their order, and a hint counts those between.
        let mut lines = body.lines();
        for line in fitted.text.lines() {
            match is_hint(line) {
                Some(count) => prop_assert!(lines.nth(count as usize - 1).is_some(), "{fitted:?} of {body:?}"),
                None => prop_assert_eq!(Some(line), lines.next(), "{:?} of {:?}", fitted, body),
            }
        }
        prop_assert_eq!(lines.next(), None, "{:?} of {:?}", fitted, body);
    }

    #[test]
    fn a_text_is_its_nodes_and_heads(text in any_text(), node_bytes_max in 0_usize..80) {
        prop_assume!(!classify(text.as_bytes()).is_json());
        let outline = outline(&text, node_bytes_max);
        let first = |at: usize| matches!(outline.parts[at], OutlinePart::Node(_)).then_some(0);
        prop_assert_eq!(outline.render(&first, &|nodes| overflow(nodes, CALL)), text.as_str());
        let none = outline.render(&|_| None, &|nodes| overflow(nodes, CALL));
        let hints = outline.parts.iter().filter_map(|part| match part {
            OutlinePart::Node(node) if node.required => Some(node.forms[0].lines().count()),
            _ => None,
        });
        prop_assert_eq!(hinted(&none), (text.lines().count() - hints.sum::<usize>()) as u64);
    }

    #[test]
    fn every_leaf_of_a_value_is_in_its_outline(body in any_json(), node_bytes_max in 0_usize..80, last in any::<bool>()) {
        // Every number becomes another one.
        let mut next = 10_000;
        let body: String = body.split_inclusive(|c: char| !c.is_ascii_digit()).map(|piece| {
            let behind = piece.trim_start_matches(|c: char| c.is_ascii_digit());
            if behind.len() == piece.len() {
                return piece.to_owned();
            }
            next += 1;
            format!("{next}{behind}")
        }).collect();
        let outline = outline(&body, node_bytes_max);
        let form = |at: usize| match &outline.parts[at] {
            OutlinePart::Node(node) => Some(if last { node.forms.len() - 1 } else { 0 }),
            _ => None,
        };
        let text = outline.render(&form, &|nodes| overflow(nodes, CALL));
        for number in 10_001..=next {
            prop_assert!(text.contains(&number.to_string()), "{number} is not in {text}");
        }
    }

    #[test]
    fn what_is_kept_of_a_text_stands_in_its_order(text in any_text(), budget in 40_u64..400) {
        if let Ok(kept) = fit_by(&text, budget, bytes) {
            fitted(&text, budget, bytes);
            // A table that is written as CSV has other lines.
            prop_assume!(!kept.text.contains("```csv"));
            let mut ahead = text.as_str();
            for line in kept.text.split_inclusive('\n').filter(|line| is_hint(line.trim_end()).is_none()) {
                // A part of a long line has got the line feed of the hint behind it.
                let found = ahead.find(line).or_else(|| ahead.find(line.trim_end_matches('\n')));
                let at = found.expect(line);
                ahead = &ahead[at + line.trim_end_matches('\n').len()..];
            }
        }
    }

    #[test]
    fn a_budget_is_kept_and_all_is_accounted_for(text in prop_oneof![any_text(), any_json()], budget in 0_u64..300) {
        for count in [bytes, words] {
            match fit_by(&text, budget, count) {
                Ok(_) => drop(fitted(&text, budget, count)),
                Err(Unfit::TooSmall(tokens)) => prop_assert!(tokens > budget, "{tokens} fit in {budget}"),
                Err(Unfit::NoCall) => prop_assert!(false, "there is a call"),
            }
        }
    }

    #[test]
    fn more_budget_shows_more_or_as_much(text in any_json(), budget in 60_u64..200) {
        if let Ok(less) = fit_by(&text, budget, bytes) {
            let more = fitted(&text, 4 * budget, bytes);
            let share = |fitted: &Fitted| fitted.value as f64 / fitted.value_total.max(1) as f64;
            prop_assert!(share(&more) >= 0.8 * share(&less), "{}\n---\n{}", less.text, more.text);
        }
    }
}
