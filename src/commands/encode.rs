//! `devboy encode`: the text of one result on standard input, written in every format, with costs and proofs; `devboy decode`:
//! an encoded text, read back to the text that it stands for.

use std::time::Instant;

use serde_json::json;

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::tokenizer::Bpe;
use crate::facts::budget::{BudgetRequest, Unfit};
use crate::facts::encode::{EncodeAttempt, EncodingChoice, FormatRules, Meaning, Params, Subject};
use crate::facts::quotable::Quotable;
use crate::facts::tokens::Counter;
use crate::facts::{budget, encode, inner_formats, knapsack, shape};
use crate::logs::endpoint::{EndpointArguments, Endpoints};
use crate::report::numbers::{counted, thousands};
use crate::report::table::{Table, TableBuilder, TableFormat};
use crate::shell::arguments::OutputArgs;
use crate::shell::context::Context;

/// Write the body of one tool result in every way and show what each costs.
///
/// The body comes on standard input. Every encoding is read back: one that does not say what the body says is refused.
/// With --print the winner itself goes to stdout, with --as any format; with --budget the body is cut to fit, and what is
/// left out is said. If the body shows the text of files, only formats are chosen from which all of it can be quoted: --tool
/// and --command tell what call gave it back, else its look decides.
#[derive(clap::Args, Debug)]
#[command(override_usage = "devboy encode [OPTIONS] < FILE")]
pub struct Args {
    /// Count tokens with this vocabulary.
    #[arg(long, value_name = "NAME", default_value = "o200k_base", value_parser = ["o200k_base", "cl100k_base"])]
    tokenizer: String,
    /// How deep containers and structured strings are taken apart.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u8).range(0..=8))]
    recursion_depth: u8,
    /// Also choose among formats that only a later pipeline knows.
    #[arg(long)]
    extended_formats: bool,
    /// Print the winning text instead of the table.
    #[arg(long)]
    print: bool,
    /// Print the body in this format, whatever it costs.
    #[arg(long = "as", value_name = "FORMAT", conflicts_with_all = ["print", "budget"])]
    as_format: Option<String>,
    /// The tool that gave the body back.
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// The command that it ran.
    #[arg(long, value_name = "TEXT")]
    command: Option<String>,
    /// Cut the body to this many tokens and print what fits; needs --fetch-rest, which says how to get the rest.
    #[arg(long, value_name = "TOKENS", requires = "fetch_rest", conflicts_with = "print")]
    budget: Option<u64>,
    /// The call that fetches what was left out, named in hints: `get_issues(page=2)`.
    #[arg(long, value_name = "CALL", requires = "budget")]
    fetch_rest: Option<String>,
    /// Take data files from here instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    rules_dir: Option<std::path::PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

/// Refuses a form where the text alone is printed.
fn check(args: &Args) -> Result<()> {
    let form = args.output.form();
    let is_table = form == TableFormat::Table;
    let of_text = [
        ("--print", args.print && !is_table),
        ("--as", args.as_format.is_some() && !is_table),
        ("--budget", args.budget.is_some() && !is_table && form != TableFormat::Json),
    ];
    match of_text.iter().find(|(_, is_formed)| *is_formed) {
        Some((flag, _)) => Err(Error::usage(format!("{flag} prints the text alone, in no other form"))
            .hint(format!("leave out {flag}, or --format and --json"))),
        None => Ok(()),
    }
}

/// Reads, encodes, proves, shows.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    check(args)?;
    let data = Data::new(args.rules_dir.as_deref())?;
    let rules = data.read("formats.toml", FormatRules::parse)?;
    let text = read_body("devboy encode < response.json", context)?;
    let vocabulary = if args.tokenizer == "cl100k_base" { Bpe::Cl100kBase } else { Bpe::O200kBase };
    let mut counter = Counter::new(vocabulary);
    let params = Params { recursion_depth: args.recursion_depth.into(), ..rules.params() };
    let subject = Subject::new(&text, shape::classify(text.as_bytes()));
    if let Some(name) = &args.as_format {
        context.out.write_all(encoded(format_named(name)?, &subject, params)?.as_bytes())?;
        return Ok(());
    }
    let endpoints = data.read("endpoints.toml", Endpoints::parse)?;
    let input = EndpointArguments { command: args.command.as_deref(), ..EndpointArguments::default() };
    let called = endpoints.file_text.showing(args.tool.as_deref().unwrap_or_default(), input);
    let quotable = Quotable::of(&text);
    let showing = called.min(quotable.look());
    if let (Some(budget), Some(call)) = (args.budget, &args.fetch_rest) {
        let formats: Vec<&encode::Format> =
            encode::REGISTER.iter().filter(|format| format.family.is_allowed(args.extended_formats)).collect();
        let (text, shape, signature) = (&*text, subject.shape, Some(call.as_str()));
        let request = BudgetRequest { text, shape, showing, budget, signature, formats: &formats, params };
        return fit(args, &request, &mut counter, context);
    }
    let candidates = encode::candidates(&subject, params, (&quotable, showing), &mut counter);
    let baseline = counter.count(&text);
    let winner = encode::winner(&candidates, args.extended_formats, baseline);
    if args.print {
        let text = winner.and_then(EncodingChoice::text).unwrap_or(&text);
        context.out.write_all(text.as_bytes())?;
        return Ok(());
    }
    match args.output.form() {
        TableFormat::Json => write_json(args, &subject, baseline, &candidates, winner, context)?,
        form => {
            if form != TableFormat::Csv {
                writeln!(context.out, "shape: {}; {}", subject.shape.into_str(), inner_words(&subject))?;
                writeln!(context.out, "tokens: {} as it is ({})", thousands(baseline), args.tokenizer)?;
            }
            table(&candidates, baseline, winner).write(context.out, form, context.width)?;
            if form != TableFormat::Csv {
                writeln!(context.out, "winner: {}", winner.map_or("as it is", |winner| winner.id))?;
            }
        }
    }
    Ok(())
}

/// Cuts the body to a budget.
fn fit(args: &Args, request: &BudgetRequest<'_>, counter: &mut Counter, context: &mut Context<'_>) -> Result<()> {
    let BudgetRequest { text, shape, budget, .. } = *request;
    let fitted = budget::fit(request, &mut |text| counter.count(text)).map_err(|unfit| match unfit {
        Unfit::NoCall => Error::usage("--fetch-rest names no call in one line"),
        Unfit::TooSmall(least) => Error::failed(format!("{budget} tokens are too few for this body"))
            .hint(format!("what has to be said takes {} tokens", thousands(least))),
    })?;
    let whole = counter.count(text);
    if args.output.form() == TableFormat::Json {
        let fields = json!({
            "shape": shape.into_str(), "tokenizer": args.tokenizer, "budget": budget, "tokens": fitted.tokens,
            "tokens_whole": whole, "kept": fitted.kept, "elided": fitted.elided, "value": fitted.value,
            "value_total": fitted.value_total, "value_upper_bound": fitted.upper_bound, "gap": fitted.gap(),
            "text": fitted.text,
        });
        args.output.write_json("encode", fields, context)?;
        return Ok(());
    }
    context.out.write_all(fitted.text.as_bytes())?;
    if args.output.verbose {
        let classes = budget::knapsack_of(request, &mut |text| counter.count(text));
        let start = Instant::now();
        if let Some(solution) = knapsack::solve(&classes, budget) {
            let (micros, gap) = (start.elapsed().as_micros(), 100.0 * solution.gap());
            let parts = thousands(classes.len() as u64);
            writeln!(context.err, "# knapsack: solved {parts} parts in {micros} µs, gap {gap:.3} %")?;
        }
    }
    if !args.output.quiet {
        writeln!(
            context.err,
            "# {} of {} tokens; {} kept, {} left out; at most {:.2} % of the value below the optimum",
            thousands(fitted.tokens),
            thousands(whole),
            counted(fitted.kept as u64, "part"),
            thousands(fitted.elided as u64),
            100.0 * fitted.gap()
        )?;
    }
    Ok(())
}

/// The format with this name. An error if there is none.
fn format_named(name: &str) -> Result<&'static encode::Format> {
    let known = || {
        Error::usage(format!("there is no format \"{name}\"")).hint(format!("formats: {}", encode::ids().join(", ")))
    };
    encode::find(name).map(|(_, format)| format).ok_or_else(known)
}

/// The body in one format.
fn encoded(format: &encode::Format, subject: &Subject<'_>, params: Params) -> Result<String> {
    match encode::attempt(format, subject, params) {
        EncodeAttempt::Proven(text) => Ok(text),
        EncodeAttempt::Refused => Err(Error::failed(format!("{} does not apply to this body", format.id))
            .hint("`devboy encode` shows which formats do")),
        EncodeAttempt::Unproven => Err(Error::failed(format!("{} does not give this body back", format.id))
            .hint("such a format is never used; `devboy encode` shows the others")),
    }
}

/// The text on standard input; `example` is a command that has one. An error if there is none, or it is not UTF-8.
fn read_body(example: &str, context: &mut Context<'_>) -> Result<String> {
    let mut bytes = Vec::new();
    context.input.read_to_end(&mut bytes).map_err(|cause| Error::failed(format!("reading standard input: {cause}")))?;
    if bytes.is_empty() {
        return Err(Error::failed("no body on standard input").hint(format!("for example: {example}")));
    }
    String::from_utf8(bytes).map_err(|cause| {
        let at = cause.utf8_error().valid_up_to();
        Error::failed(format!("the body is not UTF-8: byte {at}"))
            .hint("what a model is shown is text; convert it first, for example with iconv")
    })
}

fn inner_words(subject: &Subject<'_>) -> String {
    let inner: Vec<&str> = inner_formats::find(subject.text, subject.shape).iter().map(Into::into).collect();
    let described = shape::describe(subject.text, subject.shape);
    let numbers = [
        (described.items, "item"),
        (described.fields, "field"),
        (described.columns, "column"),
        (described.rows, "row"),
    ];
    let depth = (described.depth > 0).then(|| format!("{} deep", thousands(described.depth.into())));
    let some = numbers.iter().filter(|(number, _)| *number > 0);
    let counts = some.map(|(number, noun)| counted((*number).into(), noun));
    let numbers: Vec<String> = depth.into_iter().chain(counts).collect();
    let inner = if inner.is_empty() { "none".to_owned() } else { inner.join(", ") };
    format!("inner formats: {inner}{}{}", if numbers.is_empty() { "" } else { "; " }, numbers.join(", "))
}

fn table(candidates: &[EncodingChoice], baseline: u64, winner: Option<&EncodingChoice>) -> Table {
    let saved = |tokens: u64| {
        let share = if baseline == 0 { 0.0 } else { 100.0 * (1.0 - tokens as f64 / baseline as f64) };
        format!("{share:.1} %")
    };
    let is_chosen = |candidate: &EncodingChoice| winner.is_some_and(|winner| winner.id == candidate.id);
    TableBuilder::of(candidates)
        .text("format", |candidate| candidate.id.to_owned())
        .number("tokens", |candidate| candidate.tokens.map(thousands).unwrap_or_default())
        .number("saved", |candidate| candidate.tokens.map(saved).unwrap_or_default())
        .text("choice", |candidate| if is_chosen(candidate) { "chosen".to_owned() } else { String::new() })
        .text("quotable", |candidate| candidate.text().map_or("", |_| candidate.kept.into_str()).to_owned())
        .text("proof", |candidate| candidate.state().to_owned())
        .table()
}

fn write_json(
    args: &Args,
    subject: &Subject<'_>,
    baseline: u64,
    candidates: &[EncodingChoice],
    winner: Option<&EncodingChoice>,
    context: &mut Context<'_>,
) -> Result<()> {
    let row = |candidate: &EncodingChoice| {
        json!({
            "format": candidate.id,
            "family": format!("{:?}", candidate.family).to_lowercase(),
            "proven": candidate.text().is_some(),
            "state": candidate.state(),
            "quotable": candidate.text().map(|_| candidate.kept.into_str()),
            "eligible": candidate.text().is_some() && candidate.is_quotable,
            "tokens": candidate.tokens,
            "bytes": candidate.text().map(str::len),
        })
    };
    let described = shape::describe(subject.text, subject.shape);
    let fields = json!({
        "shape": subject.shape.into_str(),
        "inner_formats": inner_formats::find(subject.text, subject.shape).iter().map(<&str>::from).collect::<Vec<_>>(),
        "depth": described.depth,
        "items": described.items,
        "fields": described.fields,
        "columns": described.columns,
        "rows": described.rows,
        "key_stability": described.key_stability,
        "tokenizer": args.tokenizer,
        "baseline": "raw",
        "tokens": baseline,
        "bytes": subject.text.len(),
        "candidates": candidates.iter().map(row).collect::<Vec<_>>(),
        "winner": winner.map(|winner| winner.id),
        "text": winner.and_then(EncodingChoice::text),
    });
    args.output.write_json("encode", fields, context)
}

/// Read an encoded text back to the body of the tool result that it stands for.
///
/// The text comes on standard input, the body goes to stdout: byte for byte for formats of text, as compact JSON for formats of
/// JSON, with tables drawn tight for csv_from_md.
#[derive(clap::Args, Debug)]
#[command(override_usage = "devboy decode --as <FORMAT> < FILE")]
pub struct DecodeArgs {
    /// The format in which it is written.
    #[arg(long = "as", value_name = "FORMAT")]
    format: String,
}

/// Reads, decodes, writes.
pub fn decode(args: &DecodeArgs, context: &mut Context<'_>) -> Result<()> {
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
