//! `prompt-cache`: the log under another cache; every other policy is priced by the same one.

use crate::commands::replay::policy::chosen::Sheets;
use crate::commands::replay::policy::simulate::{Part, Ready};
use crate::error::Result;

/// Makes the policy ready.
///
/// # Errors
/// If a knob makes no sense.
pub fn ready<'w>(_sheets: &Sheets) -> Result<Ready<'w>> {
    Ok(Ready { stage: None, conclude: Box::new(|_| Part::default()) })
}
