//! `devboy decode`: an encoded text on standard input, read back to the body that it stands for.

use crate::base::error::{Error, Result};
use crate::commands::encode::{format_named, read_body};
use crate::facts::encode::Meaning;
use crate::shell::context::Context;

/// Read an encoded text back to the body that it stands for.
///
/// The text comes on standard input, the body goes to stdout: byte for byte for formats of text, as compact JSON for formats of
/// JSON, with tables drawn tight for csv_from_md.
#[derive(clap::Args, Debug)]
#[command(override_usage = "devboy decode --as <FORMAT> < FILE")]
pub struct Args {
    /// The format in which it is written.
    #[arg(long = "as", value_name = "FORMAT")]
    format: String,
}

/// Reads, decodes, writes.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let format = format_named(&args.format)?;
    let example = format!("devboy encode --as {0} < response.json | devboy decode --as {0}", format.id);
    let text = read_body(&example, context)?;
    let meaning = (format.decode)(&text).ok_or_else(|| {
        Error::failed(format!("the text on standard input is no {}", format.id))
            .hint(format!("`devboy encode --as {}` writes one", format.id))
    })?;
    let body = match meaning {
        Meaning::Json(json) => json.compact(),
        Meaning::Markdown(document) => document.tight(),
        Meaning::Text(text) => text,
    };
    Ok(context.out.write_all(body.as_bytes())?)
}
