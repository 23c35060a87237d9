//! The page as one file of HTML: the same words, and under them the plots with their figures.

use crate::cost::page::plots::{ContextTrace, Plots, ToolCost};
use crate::cost::page::spent::{UNDATED, by_money};
use crate::cost::page::words::{NOT_WORTH, NOTHING_TO_SET, Telling};
use crate::frames::edge::Edge;
use crate::mine::edge_graph;
use crate::report::html::Html;
use crate::report::html::chart::{self, PlotLine, StackedColumns};
use crate::report::numbers::{percent, thousands, usd};
use crate::report::table::TableBuilder;

/// Most columns, series and rows of a plot; the rest is one of its own.
const SERIES: usize = 7;
const DAYS: usize = 62;
const ROWS: usize = 15;

/// The whole page with its plots; `tools` are those of the plots, under the names that they are shown by.
pub fn html(telling: &Telling<'_>, plots: &Plots, tools: &[ToolCost], follow_ups: &[Edge]) -> String {
    let mut html = Html::new();
    html.leaf("h1", &[], &telling.headline());
    html.element("dl", &[], |html| {
        for (label, line) in telling.spent() {
            html.leaf("dt", &[], label).leaf("dd", &[], &line);
        }
    });
    findings(&mut html, telling);
    days(&mut html, telling);
    traces(&mut html, telling, &plots.sessions);
    causes(&mut html, plots);
    tool_costs(&mut html, tools);
    plots.tried.iter().for_each(|(name, values)| tried(&mut html, telling, name, values));
    heat(&mut html, telling);
    graph(&mut html, follow_ups);
    html.leaf("h2", &[], "How the figures come about");
    telling.explained().iter().for_each(|line| _ = html.leaf("p", &[("class", "soft")], line));
    html.page("devboy report")
}

fn findings(html: &mut Html, telling: &Telling<'_>) {
    html.leaf("h2", &[], "What to change, most valuable first");
    if telling.findings().next().is_none() {
        html.leaf("p", &[], &telling.nothing_found());
    }
    html.element("ol", &[("class", "findings")], |html| {
        for finding in telling.findings() {
            let told = telling.told(finding);
            html.element("li", &[], |html| {
                html.leaf("h3", &[], &told.what);
                html.leaf("p", &[], &told.holds);
                html.leaf("p", &[("class", "do")], &told.advice);
                see(html, &told.command);
            });
        }
    });
    let notes = telling.reminders().into_iter().chain(telling.off_the_bar()).chain(telling.of_few_sessions());
    notes.for_each(|line| _ = html.leaf("p", &[("class", "soft")], &line));
    let nothing = telling.nothing_to_set();
    if !nothing.is_empty() {
        html.leaf("h2", &[], NOTHING_TO_SET);
        for (line, command) in &nothing {
            html.leaf("p", &[], line);
            see(html, command);
        }
    }
    if let Some(line) = telling.not_worth() {
        html.leaf("h2", &[], NOT_WORTH).leaf("p", &[], &line);
    }
}

/// The command that shows more.
fn see(html: &mut Html, command: &str) {
    html.element("p", &[("class", "soft")], |html| _ = html.text("See: ").leaf("code", &[], command));
}

/// A plot with words below it.
fn figure(html: &mut Html, caption: &str, plot: impl FnOnce(&mut Html)) {
    html.element("figure", &[], |html| {
        plot(html);
        html.leaf("figcaption", &[], caption);
    });
}

fn days(html: &mut Html, telling: &Telling<'_>) {
    let spent = &telling.page.spent;
    let mut models = by_money(&spent.by_model);
    models.retain(|(_, amount)| amount.nano_usd > 0);
    if models.is_empty() || spent.by_day_model.is_empty() {
        return;
    }
    let mut parts: Vec<String> = models.iter().take(SERIES).map(|(model, _)| (*model).clone()).collect();
    let named = parts.len();
    if models.len() > named {
        parts.push("other models".to_owned());
    }
    let all: Vec<_> = spent.by_day_model.iter().filter(|(day, _)| *day != UNDATED).collect();
    let days = &all[all.len().saturating_sub(DAYS)..];
    let names: Vec<String> = days.iter().map(|(day, _)| (*day).clone()).collect();
    let values: Vec<Vec<f64>> = days
        .iter()
        .map(|(_, by_model)| {
            let mut values = vec![0.0; parts.len()];
            for (model, amount) in *by_model {
                let part = parts[..named].iter().position(|known| known == model).unwrap_or(parts.len() - 1);
                values[part] += amount.usd();
            }
            values
        })
        .collect();
    html.leaf("h2", &[], "Cost per day by model");
    let cut = if all.len() > days.len() { format!("the last {} days", days.len()) } else { "days".to_owned() };
    figure(html, &format!("Input and output at list prices; {cut} with a request."), |html| {
        let columns = StackedColumns { names: &names, parts: &parts, values: &values, write: usd };
        chart::columns(html, "cost per day", &columns);
    });
    let header: Vec<String> =
        std::iter::once("day".to_owned()).chain(parts.iter().map(|part| format!("#{part}"))).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut most: Vec<usize> = (0..names.len()).collect();
    let sum = |day: &usize| values[*day].iter().sum::<f64>();
    most.sort_by(|a, b| sum(b).total_cmp(&sum(a)).then(a.cmp(b)));
    most.truncate(ROWS);
    most.sort_unstable();
    let row = |day: &usize| {
        std::iter::once(names[*day].clone())
            .chain(values[*day].iter().map(|value| if *value > 0.0 { usd(*value) } else { String::new() }))
            .collect()
    };
    if names.len() > most.len() {
        let words = format!("The {} most expensive of them, in their order:", most.len());
        html.leaf("p", &[("class", "soft")], &words);
    }
    html.table(&header, &most.iter().map(row).collect::<Vec<_>>());
}

fn traces(html: &mut Html, telling: &Telling<'_>, sessions: &[ContextTrace]) {
    if sessions.is_empty() {
        return;
    }
    html.leaf("h2", &[], "Contexts of the most expensive sessions");
    for (number, trace) in (1..).zip(sessions) {
        let (session, project) = (telling.names.session(&trace.session), telling.names.project(&trace.project));
        let name = format!("{number}. {session} in {project}, {}: {}", trace.day, usd(trace.usd));
        let marks = trace.marks.iter().map(|(at, tokens, what)| {
            let color = if what == "compaction" { "var(--good)" } else { "var(--bad)" };
            (*at, *tokens as f64, color, format!("{what} after {at:.0} min, {} tokens", thousands(*tokens)))
        });
        let points = trace.points.iter().map(|(at, tokens)| (*at, *tokens as f64)).collect();
        let curve = PlotLine { name: name.clone(), points, marks: marks.collect() };
        html.leaf("h3", &[], &name);
        let caption = "Green: compaction. Red: the cache was lost, what had been cached was paid for again.";
        figure(html, caption, |html| {
            let write = |tokens| format!("{:.0} k tokens", tokens / 1000.0);
            chart::curve(html, "tokens of the context over time", &curve, None, write);
            let last = trace.points.last().map_or(0.0, |point| point.0);
            chart::ends(html, Some(&"first request".to_owned()), Some(&span(last)));
        });
    }
    let most = |trace: &ContextTrace| trace.points.iter().map(|point| point.1).max().unwrap_or_default();
    TableBuilder::of((1_usize..).zip(sessions))
        .text("", |(number, _)| number.to_string())
        .text("session", |(_, trace)| telling.names.session(&trace.session))
        .text("project", |(_, trace)| telling.names.project(&trace.project))
        .text("first day", |(_, trace)| trace.day.clone())
        .number("cost", |(_, trace)| usd(trace.usd))
        .count("requests", |(_, trace)| trace.requests)
        .count("largest context", |(_, trace)| most(trace))
        .count("compactions", |(_, trace)| trace.compactions)
        .count("cache misses", |(_, trace)| trace.misses)
        .table()
        .html(html);
}

/// "12 min", "3.4 hours", "2.1 days"
fn span(minutes: f64) -> String {
    match minutes {
        minutes if minutes < 120.0 => format!("{minutes:.0} min later"),
        minutes if minutes < 2_880.0 => format!("{:.1} hours later", minutes / 60.0),
        minutes => format!("{:.1} days later", minutes / 1_440.0),
    }
}

fn causes(html: &mut Html, plots: &Plots) {
    let causes: Vec<_> = plots.causes.iter().filter(|(_, _, money)| *money > 0.0).collect();
    if causes.is_empty() {
        return;
    }
    html.leaf("h2", &[], "Money lost to cache misses, by what came before them");
    let bars: Vec<_> = causes.iter().map(|(cause, _, money)| (cause.clone(), vec![*money], usd(*money))).collect();
    let caption = "What was written again or billed in full, less what reading it would have cost; by the bill.";
    figure(html, caption, |html| chart::bars(html, &["lost".to_owned()], &bars, usd));
    let row = |(cause, events, money): &&(String, u64, f64)| vec![cause.clone(), thousands(*events), usd(*money)];
    html.table(&["cause", "#misses", "#dollars"], &causes.iter().map(row).collect::<Vec<_>>());
}

fn tool_costs(html: &mut Html, tools: &[ToolCost]) {
    if tools.is_empty() {
        return;
    }
    let parts = ["when it came in", "sent again", "paid again, not read from the cache"].map(str::to_owned);
    let told = &tools[..ROWS.min(tools.len())];
    let all = |tool: &ToolCost| tool.first + tool.carried + tool.again;
    html.leaf("h2", &[], "First and carried cost by tool");
    let bars: Vec<_> = told
        .iter()
        .map(|tool| (tool.tool.clone(), vec![tool.first, tool.carried, tool.again], usd(all(tool))))
        .collect();
    let caption = "Calls and results of each tool, by what they cost in every context that had them.";
    figure(html, caption, |html| chart::bars(html, &parts, &bars, usd));
    let row = |tool: &ToolCost| {
        [tool.tool.clone()].into_iter().chain([tool.first, tool.carried, tool.again, all(tool)].map(usd)).collect()
    };
    html.table(&["tool", "#came in", "#sent again", "#paid again", "#all"], &told.iter().map(row).collect::<Vec<_>>());
}

fn tried(html: &mut Html, telling: &Telling<'_>, name: &str, values: &[(String, f64)]) {
    let (Some((first, _)), Some((last, _))) = (values.first(), values.last()) else { return };
    let band = telling.page.off_bill.abs();
    let mark = |(place, (value, change)): (usize, &(String, f64))| {
        (place as f64, 100.0 * change, "var(--c0)", format!("{value}: {}", signed(100.0 * change)))
    };
    let marks: Vec<_> = values.iter().enumerate().map(mark).collect();
    let points = marks.iter().map(|(place, change, ..)| (*place, *change)).collect();
    let curve = PlotLine { name: name.to_owned(), points, marks };
    html.leaf("h2", &[], &format!("Cost by {name}"));
    let caption = format!("Against the log. Grey: what the simulation is off the bill, ± {}.", percent(band));
    figure(html, &caption, |html| {
        chart::curve(html, &format!("change of cost by value: {name}"), &curve, Some(100.0 * band), signed);
        chart::ends(html, Some(first), Some(last));
    });
    let row = |(value, change): &(String, f64)| vec![value.clone(), signed(100.0 * change)];
    html.table(&["value", "#change of the input's cost"], &values.iter().map(row).collect::<Vec<_>>());
}

fn signed(value: f64) -> String {
    format!("{} %", crate::report::numbers::signed(value, 1))
}

fn heat(html: &mut Html, telling: &Telling<'_>) {
    let findings: Vec<_> = telling.findings().collect();
    let mut projects = by_money(&telling.page.spent.by_project);
    projects.retain(|(_, amount)| amount.nano_usd > 0);
    if findings.is_empty() || projects.len() < 2 {
        return;
    }
    projects.truncate(ROWS);
    let title = |words: &str| words.split(':').next().unwrap_or_default().to_owned();
    let columns: Vec<String> = findings.iter().map(|finding| title(&finding.what)).collect();
    let of =
        |id: &str| findings.iter().map(|finding| finding.by_project.get(id).copied().unwrap_or_default()).collect();
    let rows: Vec<_> = projects.iter().map(|(id, _)| (telling.names.project(id), of(id))).collect();
    html.leaf("h2", &[], "Where the findings are");
    let caption = "Dollars by project; less than nothing means that it costs more there.";
    figure(html, caption, |html| chart::heat(html, &columns, &rows, usd));
}

fn graph(html: &mut Html, follow_ups: &[Edge]) {
    if follow_ups.is_empty() {
        return;
    }
    html.leaf("h2", &[], "What follows what");
    let caption = "Left: a tool. Right: the tools of the next step. Only pairs beyond chance; see devboy mine edges.";
    edge_graph::figure(html, "which tool follows which", &follow_ups.iter().collect::<Vec<_>>(), caption);
    let row = |edge: &Edge| {
        let percent = 100.0 * edge.confidence.value();
        vec![edge.from.clone(), edge.to.clone(), thousands(edge.sum.count), format!("{percent:.0} %")]
    };
    html.table(&["tool", "next", "#times", "#share"], &follow_ups.iter().map(row).collect::<Vec<_>>());
}
