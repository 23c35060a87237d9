//! P2: pin the way of working when most of the work is of one kind.

use serde::Deserialize;
use toml_edit::Value;

use crate::base::error::Result;
use crate::base::key_path::KeyPath;
use crate::base::numbers::{counted, thousands};
use crate::base::stats::{Clustered, SessionUse, Share};
use crate::rules::proposal::unpinned;
use crate::rules::{Rule, RuleFacts, RuleThresholds, Speaks};
use crate::settings::View;
use crate::settings::finding::{Delta, Evidence, Finding, Verdict};

/// The rule.
pub static RULE: Rule = Rule {
    id: "P2",
    file: "p2_agent",
    summary: "Pins `profiles.agent.active` when most tool calls fall into sessions of one special class.",
    speaks: Speaks::Logs,
    judge,
};

#[derive(Deserialize)]
struct Thresholds {
    share_min: f64,
    lower_min: f64,
    calls_min: u64,
}

fn judge(facts: &RuleFacts<'_>, sheet: &RuleThresholds) -> Result<Vec<Finding>> {
    let thresholds: Thresholds = sheet.thresholds()?;
    let sessions: Vec<_> = facts.sessions.iter().filter(|session| session.calls > 0).collect();
    let total: u64 = sessions.iter().map(|session| session.calls).sum();
    let calls_of = |class: &str| sessions.iter().filter(|s| s.class == class).map(|s| s.calls).sum::<u64>();
    let mut classes: Vec<&'static str> = sessions.iter().map(|session| session.class).collect();
    classes.sort_unstable();
    classes.dedup();
    let Some(&class) = classes.iter().max_by_key(|class| (calls_of(class), std::cmp::Reverse(**class))) else {
        return Ok(vec![Finding::new(
            RULE.id,
            "(none)",
            Verdict::Skip("no tool calls in the logs".into()),
            Evidence::default(),
        )]);
    };
    let is_of_class = |session: &SessionUse| session.class == class;
    // The class is one of the session, so its calls say it once.
    let calls = |session: &&SessionUse| (if is_of_class(session) { session.calls } else { 0 }, session.calls);
    let share = Clustered::of(sessions.iter().map(calls)).over_clusters();
    let of_class = sessions.iter().filter(|session| is_of_class(session)).count() as u64;
    let counts = format!(
        "{} of {} in {} of {} classed {class}",
        thousands(share.k),
        counted(total, "tool call"),
        thousands(of_class),
        counted(sessions.len() as u64, "session")
    );
    let evidence =
        Evidence::of(counts, sessions.len() as u64).with_share_over_sessions(share).by(sheet.cite("share_min"));
    let verdict = if total < thresholds.calls_min {
        Verdict::Hold(format!("only {} ({})", counted(total, "tool call"), sheet.cite("calls_min")))
    } else {
        verdict(facts.current, class, &share, &thresholds, sheet)
    };
    Ok(vec![Finding::new(RULE.id, class, verdict, evidence)])
}

fn verdict(current: &View<'_>, class: &str, share: &Share, thresholds: &Thresholds, sheet: &RuleThresholds) -> Verdict {
    let key = KeyPath::from(["profiles", "agent", "active"]);
    let now = current.value(&key);
    let chosen = now.as_ref().and_then(Value::as_str).unwrap_or("auto");
    if share.value() < thresholds.share_min {
        return unpinned(current, key, class, "no class has the majority");
    }
    if chosen == class {
        return Verdict::Skip("the file says so already".to_owned());
    }
    if class == "default" {
        let reason = "`auto` gives `default` to these sessions anyway";
        return match chosen {
            "auto" => Verdict::Skip(reason.to_owned()),
            _ => unpinned(current, key, class, reason),
        };
    }
    if chosen != "auto" && current.line_by_hand(&key).is_some() {
        return Verdict::Hold(format!("`profiles.agent.active` is set to \"{chosen}\" by hand"));
    }
    if share.lower < thresholds.lower_min {
        let reason = format!(
            "its sessions are too few, or differ too much, to be sure of a majority ({})",
            sheet.cite("lower_min")
        );
        return unpinned(current, key, class, &reason);
    }
    Verdict::Propose(Delta { key, from: now, to: Value::from(class) })
}
