//! `--per-request FILE`: every request under every policy as one JSON line.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use crate::commands::replay::policy::chosen::{Policy, Row, Sheets};
use crate::commands::replay::policy::simulate::{self, Scene};
use crate::error::Result;
use crate::settings::write_private_bytes;

/// Writes the lines, policy by policy in the order of the requests. Ids are hashes.
///
/// # Errors
/// If a knob makes no sense or the file cannot be written.
pub fn write(path: &Path, scene: &Scene<'_>, sheets: &Sheets, rows: &[Row]) -> Result<()> {
    let world = scene.world;
    let mut text = String::new();
    for row in rows.iter().filter(|row| !row.stack.has(Policy::ArgCheck)) {
        let (run, held_against) = simulate::run_of(scene, &sheets.with(row)?, &row.stack)?;
        for (priced, log) in run.requests.iter().zip(&held_against.requests) {
            let request = &world.timeline.requests[priced.request as usize];
            let line = json!({
                "policy": row.name,
                "session": world.timeline.session_of(request).id.to_string(),
                "request": request.id.to_string(),
                "model": world.timeline.names.text(request.model),
                "billed": {
                    "read": request.usage.cache_read,
                    "write": request.usage.cache_creation,
                    "uncached": request.usage.input,
                },
                "baseline": log.spent,
                "simulated": priced.spent,
                "shared": priced.shared,
                "iet": priced.cost.iet(),
            });
            writeln!(text, "{line}").expect("a String takes everything");
        }
    }
    write_private_bytes(path, text.as_bytes())
}
