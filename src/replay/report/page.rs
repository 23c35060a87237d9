//! The report of a replay as a page for a browser: what each layer, each reach and each format saves, with the figures.

use crate::base::body_shape::LayerId;
use crate::replay::report::{NamedTally, ReplayArm, ReplayReport, tables};
use crate::replay::savings::Tally;
use crate::report::html::{Html, chart};
use crate::report::numbers::{share_of, thousands};

/// Most formats of an arm that are drawn; the table has all.
const FORMATS_DRAWN: usize = 12;

/// A bar: its name, its parts, and what is written behind it.
type PageBar = (String, Vec<f64>, String);

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
fn headline(report: &ReplayReport, arm: &ReplayArm) -> String {
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
    format!("{} ({})", thousands(saved), share_of(saved, whole))
}

fn figure(html: &mut Html, parts: &[String], bars: &[PageBar], caption: &str) {
    html.element("figure", &[], |html| {
        chart::bars(html, parts, bars, tokens);
        html.leaf("figcaption", &[], caption);
    });
}

fn layers(html: &mut Html, report: &ReplayReport) {
    let saving = [LayerId::L0, LayerId::L1, LayerId::L2];
    let parts = saving.map(|layer| format!("{} {}", layer.key(), tables::layer_word(layer)));
    let bar = |arm: &ReplayArm| -> PageBar {
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
        let bar = |formats: &str, tally: &Tally| -> PageBar {
            let written = with_share(tally.saved(), tally.baseline());
            (format!("{}, {formats} formats", reached.name), vec![tally.saved() as f64], written)
        };
        [bar("published", &reached.published), bar("extended", &reached.extended)]
    });
    html.leaf("h2", &[], "Who could save them");
    let caption = "A result out of reach is sent as it is.";
    figure(html, &["saved".to_owned()], &bars.collect::<Vec<_>>(), caption);
    tables::reaches(&report.reaches).html(html);
}

fn formats(html: &mut Html, report: &ReplayReport) {
    html.leaf("h2", &[], "What was decided, by format");
    for arm in &report.arms {
        let mut rows: Vec<_> = arm.formats.iter().collect();
        rows.sort_by_key(|group| (std::cmp::Reverse(group.tally.saved()), group.name.clone()));
        let bar = |group: &&NamedTally| -> PageBar {
            let written = format!("{} in {}", thousands(group.tally.saved()), thousands(group.tally.count()));
            (group.name.clone(), vec![group.tally.saved() as f64], written)
        };
        html.leaf("h3", &[], &format!("{} formats", arm.name));
        let bars: Vec<PageBar> = rows.iter().take(FORMATS_DRAWN).map(bar).collect();
        if bars.is_empty() {
            html.leaf("p", &[], "No response was sent in a format.");
        } else {
            figure(html, &["saved".to_owned()], &bars, "Tokens saved, in so many responses.");
        }
    }
    tables::formats(report).html(html);
}
