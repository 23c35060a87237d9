//! The report of a replay as a page for a browser: what each layer, each reach and each format saves, with the figures.
//!
//! The report of a replay for programs.

use serde_json::{Value, json};

use crate::base::body_shape::LayerId;
use crate::replay::report::{Arm, Group, Reached, ReplayReport, tables};
use crate::replay::savings::{Savings, Tally, share};
use crate::report::html::{Html, chart};
use crate::report::numbers::{percent, thousands};

/// Most formats of an arm that are drawn; the table has all.
const FORMATS_DRAWN: usize = 12;

/// A bar: its name, its parts, and what is written behind it.
type Bar = (String, Vec<f64>, String);

/// The whole page.
pub fn html(report: &ReplayReport) -> String {
    let mut html = Html::new();
    html.leaf("h1", &[], "What the pipeline would have saved");
    report.arms.iter().for_each(|arm| _ = html.leaf("p", &[], &headline(report, arm)));
    layers(&mut html, report);
    reaches(&mut html, report);
    formats(&mut html, report);
    html.leaf("h2", &[], "How the figures come about");
    tables::summary(report).iter().for_each(|line| _ = html.leaf("p", &[("class", "soft")], line));
    html.page("devboy replay")
}

/// What an arm saves, in a sentence.
fn headline(report: &ReplayReport, arm: &Arm) -> String {
    let (saved, whole) = (arm.total.saved(), arm.total.baseline());
    let count = thousands(arm.total.count());
    format!(
        "{} formats, {}: {} of the {} tokens of {count} tool responses.",
        arm.name,
        report.reach_name(),
        with_share(saved, whole),
        thousands(whole)
    )
}

fn tokens(value: f64) -> String {
    format!("{} tokens", thousands(value.round() as u64))
}

/// "12,345 (4.5 %)"
fn with_share(saved: u64, whole: u64) -> String {
    let share = if whole == 0 { "–".to_owned() } else { percent(saved as f64 / whole as f64) };
    format!("{} ({share})", thousands(saved))
}

fn figure(html: &mut Html, parts: &[String], bars: &[Bar], caption: &str) {
    html.element("figure", &[], |html| {
        chart::bars(html, parts, bars, tokens);
        html.leaf("figcaption", &[], caption);
    });
}

fn layers(html: &mut Html, report: &ReplayReport) {
    let saving = [LayerId::L0, LayerId::L1, LayerId::L2];
    let parts = saving.map(|layer| format!("{} {}", layer.key(), tables::layer_word(layer)));
    let bar = |arm: &Arm| -> Bar {
        let values = saving.iter().map(|&layer| arm.total.saved_by(layer) as f64).collect();
        (format!("{} formats", arm.name), values, with_share(arm.total.saved(), arm.total.baseline()))
    };
    html.leaf("h2", &[], "Tokens saved, by layer");
    let caption = "Of the tokens of all responses. The first layer that can say a response in fewer tokens sends it.";
    figure(html, &parts, &report.arms.iter().map(bar).collect::<Vec<_>>(), caption);
    tables::layers(report).html(html);
}

fn reaches(html: &mut Html, report: &ReplayReport) {
    let bars = report.reaches.iter().flat_map(|reached| {
        let bar = |formats: &str, tally: &Tally| -> Bar {
            let written = with_share(tally.saved(), tally.baseline());
            (format!("{}, {formats} formats", reached.name), vec![tally.saved() as f64], written)
        };
        [bar("published", &reached.published), bar("extended", &reached.extended)]
    });
    html.leaf("h2", &[], "Who could save them");
    let caption = "An answer out of reach is sent as it is.";
    figure(html, &["saved".to_owned()], &bars.collect::<Vec<_>>(), caption);
    tables::reaches(&report.reaches).html(html);
}

fn formats(html: &mut Html, report: &ReplayReport) {
    html.leaf("h2", &[], "What was decided, by format");
    for arm in &report.arms {
        let mut rows: Vec<_> = arm.formats.iter().collect();
        rows.sort_by_key(|group| (std::cmp::Reverse(group.tally.saved()), group.name.clone()));
        let bar = |group: &&Group| -> Bar {
            let written = format!("{} in {}", thousands(group.tally.saved()), thousands(group.tally.count()));
            (group.name.clone(), vec![group.tally.saved() as f64], written)
        };
        html.leaf("h3", &[], &format!("{} formats", arm.name));
        let bars: Vec<Bar> = rows.iter().take(FORMATS_DRAWN).map(bar).collect();
        if bars.is_empty() {
            html.leaf("p", &[], "No response was sent in a format.");
        } else {
            figure(html, &["saved".to_owned()], &bars, "Tokens saved, in so many responses.");
        }
    }
    tables::formats(report).html(html);
}

/// A tally for JSON: sums, and the three figures in per cent.
pub fn tally_json(tally: &Tally) -> Value {
    let Savings { dedup, encoder, combined } = tally.savings();
    let pct = |share: Option<f64>| share.map(|share| 100.0 * share);
    let layers: serde_json::Map<String, Value> = LayerId::ALL
        .map(|layer| {
            let index = layer as usize;
            let sums = json!({
                "responses": tally.responses[index],
                "baseline_tokens": tally.baseline[index],
                "sent_tokens": tally.sent[index],
                "saved_tokens": tally.saved_by(layer),
            });
            (layer.key().to_owned(), sums)
        })
        .into_iter()
        .collect();
    json!({
        "responses": tally.count(),
        "baseline_tokens": tally.baseline(),
        "sent_tokens": tally.sent(),
        "saved_tokens": tally.saved(),
        "dedup_savings_pct": pct(dedup),
        "encoder_savings_pct": pct(encoder),
        "combined_savings_pct": pct(combined),
        "layers": layers,
    })
}

/// Who could save what, for JSON.
pub fn reaches_json(reaches: &[Reached]) -> Value {
    let whole = |reached: &Reached| reached.published.baseline();
    let row = |reached: &Reached| {
        json!({
            "id": reached.id,
            "name": reached.name,
            "tokens": reached.tokens,
            "tokens_pct": share(reached.tokens, whole(reached)).map(|share| 100.0 * share),
            "published": tally_json(&reached.published),
            "extended": tally_json(&reached.extended),
        })
    };
    reaches.iter().map(row).collect()
}

/// The report for JSON.
pub fn json(report: &ReplayReport) -> Value {
    let groups = |groups: &[Group]| {
        let rows = groups.iter().map(|group| json!({ "name": group.name, "savings": tally_json(&group.tally) }));
        rows.collect::<Vec<_>>()
    };
    let arm = |arm: &Arm| {
        let [exact, near, lines] = arm.hints;
        json!({
            "name": arm.name,
            "savings": tally_json(&arm.total),
            "hints": { "exact": exact, "near": near, "lines": lines },
            "hints_expanded": arm.expanded,
            "later_edits": { "quoting": arm.quotes.edits, "at_risk": arm.quotes.at_risk },
            "endpoints": groups(&arm.endpoints),
            "shapes": groups(&arm.shapes),
            "projects": groups(&arm.projects),
            "formats": groups(&arm.formats),
            "sessions_combined": arm.sessions,
        })
    };
    json!({
        "baseline": "raw",
        "tokens": report.counters(),
        "basis": "replayed",
        "input": report.input,
        "reach": report.reach,
        "reaches": reaches_json(&report.reaches),
        "arms": report.arms.iter().map(arm).collect::<Vec<_>>(),
        "bounds": report.bounds,
        "invalidation_tokens": report.invalidation_tokens,
        "published_claim": report.claim,
        "paper_claim": report.paper,
        "json_baselines": report.json,
    })
}
