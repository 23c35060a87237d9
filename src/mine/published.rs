//! Tables in the published layouts: edges and volumes, read back.

use std::path::Path;

use crate::base::error::{Error, Result};
use crate::base::visible::Shown as _;
use crate::mine::compare::{Side, SizeSide};

/// Reads a table of edges (only these lags) or of volumes, whichever it is by its header.
///
/// # Errors
/// If it cannot be read, has neither header, or holds something that does not fit; the error names the line.
pub fn read(path: &Path, lags: &[u32]) -> Result<Side> {
    let text = crate::base::files::read_to_string(path).map_err(|cause| Error::io("reading", path, &cause))?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().trim_start_matches('\u{feff}').split(',').collect();
    let column = |name: &str| header.iter().position(|known| known.trim() == name);
    let edges = [column("prev_tool"), column("next_tool"), column("lag"), column("count")];
    let volumes = [column("tool_anon"), column("calls"), column("sessions"), column("response_chars_median")];
    let mut side = Side::default();
    for (number, line) in (2..).zip(lines).filter(|(_, line)| !line.trim().is_empty()) {
        let odd = || Error::failed(format!("{}:{number}: not a row of the table", path.shown()));
        let cells = cells(line);
        let cell = |at: usize| cells.get(at).map(|cell| cell.trim().to_owned()).ok_or_else(odd);
        let whole = |at: usize| cell(at)?.parse::<u64>().map_err(|_| odd());
        if let [Some(from), Some(to), Some(lag), Some(count)] = edges {
            let lag = u32::try_from(whole(lag)?).map_err(|_| odd())?;
            if lags.contains(&lag) {
                side.edges.insert((cell(from)?, cell(to)?, lag), (whole(count)?, None));
            }
        } else if let [Some(tool), Some(calls), Some(_), Some(median)] = volumes {
            let sizes = SizeSide { n: whole(calls)?, median: whole(median)?, sessions: None, chars: None };
            side.sizes.insert(cell(tool)?, sizes);
        } else {
            return Err(Error::failed(format!("{}:1: neither a table of edges nor of volumes", path.shown())).hint(
                "`devboy mine edges` and `mine tools` write both with --layout published; the header names the columns",
            ));
        }
    }
    Ok(side)
}

/// The cells of a line; quotes hold commas, and doubled a quote.
fn cells(line: &str) -> Vec<String> {
    let mut cells = vec![String::new()];
    let (mut quoted, mut rest) = (false, line.chars().peekable());
    while let Some(c) = rest.next() {
        let cell = cells.last_mut().expect("there is always a cell");
        match c {
            '"' if quoted && rest.peek() == Some(&'"') => cell.extend(rest.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            c => cell.push(c),
        }
    }
    cells
}
