//! `devboy annotate`: say of every response that was prefetched whether the agent used it, in a copy of the file.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::base::data::{Data, typed};
use crate::base::error::{Error, Result};
use crate::base::stats::Share;
use crate::base::unpack::Packing;
use crate::base::visible::Shown as _;
use crate::commands::config::settings;
use crate::commands::responses::surroundings;
use crate::logs::vocabulary::Vocabulary;
use crate::report::numbers::{counted, percent, thousands};
use crate::report::share::interval_95;
use crate::report::table::{Table, TableFormat};
use crate::settings::write_private;
use crate::shell::arguments::OutputArgs;
use crate::shell::context::Context;
use crate::telemetry::{
    self, Annotated, Citations, EventFile, Pass, Standing, Surroundings, TelemetryPlace, TelemetryRules, UsedWhen,
    annotate, annotated_path, event_files, holds_events, is_annotated,
};

/// Say of every response that was prefetched whether the agent used it, in a copy of the telemetry.
///
/// Beside each file with such responses a file `<name>.annotated.jsonl` is written, in which their events have
/// `cited_in_next_n_turns`. Every other byte is that of the original, which stays as it is. `devboy tune analyze` reads
/// the annotated form where there is one, so run this again after more was recorded.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Files or directories of telemetry. Default: every place to which the live pipeline is known to write.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Another name for PATH, as in other commands.
    #[arg(long, value_name = "PATH")]
    input_dir: Vec<PathBuf>,
    /// Also look into the directories below those given.
    #[arg(long)]
    recursive: bool,
    /// Events behind a prefetch that are looked at.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    lookahead: u32,
    /// What counts as used. Both are counted and printed, one is written.
    #[arg(long, value_enum, default_value_t)]
    definition: UsedWhen,
    /// Also judge events that say already whether they were used.
    #[arg(long)]
    overwrite: bool,
    /// Print the same, write nothing.
    #[arg(long)]
    dry_run: bool,
    /// Take data files (which tools change files) from here instead of the built-in ones.
    #[arg(long, value_name = "DIR")]
    rules_dir: Option<PathBuf>,
    #[command(flatten)]
    output: OutputArgs,
}

impl Args {
    /// The places that were named, in either way.
    fn given(&self) -> impl Iterator<Item = &PathBuf> {
        self.paths.iter().chain(&self.input_dir)
    }
}

/// A file that was looked through.
struct AnnotatedOutput {
    path: PathBuf,
    /// Where its annotated form stands; none if it holds no prefetch.
    output: Option<PathBuf>,
    counts: Citations,
    /// Events that say in that form whether they were used, and those of them that were.
    standing: Standing,
}

/// The files found, by what becomes of them.
#[derive(Default)]
struct Inputs {
    files: Vec<PathBuf>,
    annotated: u64,
    packed: u64,
    /// What is there and cannot be read.
    notes: Vec<String>,
}

/// Judges file by file, then reports.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    let places = places(args, context)?;
    let inputs = inputs(args, &places);
    if inputs.files.is_empty() {
        return Err(nothing_found(args, &places, &inputs));
    }
    let data = Data::new(args.rules_dir.as_deref())?;
    let words: Vocabulary = data.read("logs.toml", typed)?;
    let pass = Pass {
        definition: args.definition,
        lookahead: args.lookahead,
        overwrite: args.overwrite,
        mutates: &|tool| words.file_mutate_tools.contains(tool),
        recycled_gap_ms: data.parsed::<TelemetryRules>("telemetry.toml")?.recycled_gap_ms(),
    };
    let done = inputs.files.iter().map(|path| file(path, &pass, args.dry_run)).collect::<Result<Vec<_>>>()?;
    let mut total = Citations::default();
    done.iter().for_each(|file| total += file.counts);
    if total.events == 0 {
        return Err(nothing_found(args, &places, &inputs));
    }
    if !args.output.quiet {
        tell(args, &inputs, &done, &total, context.err)?;
    }
    match args.output.form() {
        TableFormat::Json => {
            let fields = json_fields(args, &inputs, &done, &total);
            args.output.write_json("annotate", fields, context)?;
        }
        form => {
            let table = table(&done, &total);
            if form == TableFormat::Csv || !table.is_empty() {
                table.write(context.out, form, context.width)?;
            }
        }
    }
    Ok(())
}

fn places(args: &Args, context: &Context<'_>) -> Result<Vec<TelemetryPlace>> {
    if let Some(missing) = args.given().find(|path| !path.exists()) {
        return Err(Error::failed(format!("{} does not exist", missing.shown()))
            .hint("name a file or directory of telemetry, or none for the usual places"));
    }
    let given: Vec<PathBuf> = args.given().cloned().collect();
    let around = if given.is_empty() { surroundings(&settings(context)?, context) } else { Surroundings::default() };
    Ok(telemetry::places(&given, &around))
}

fn inputs(args: &Args, places: &[TelemetryPlace]) -> Inputs {
    // The usual places are looked through to the bottom, as `tune analyze` does.
    let deep = args.recursive || args.given().next().is_none();
    // Of several spellings of a place one is walked, which need not be the one that was given.
    let canonical = |path: &Path| path.canonicalize().ok();
    let given: BTreeSet<PathBuf> = args.given().filter_map(|path| canonical(path)).collect();
    let is_in = |file: &EventFile| file.path.parent().and_then(canonical).is_some_and(|place| given.contains(&place));
    let is_meant = |file: &EventFile| deep || given.contains(&file.canonical) || is_in(file);
    let found = event_files(&mut places.to_vec());
    let mut inputs = Inputs { notes: found.notes, ..Inputs::default() };
    for file in found.files.into_iter().filter(is_meant) {
        if is_annotated(&file.path) {
            inputs.annotated += 1;
        } else if file.packing != Packing::Plain {
            inputs.packed += 1;
        } else {
            inputs.files.push(file.path);
        }
    }
    inputs
}

fn nothing_found(args: &Args, places: &[TelemetryPlace], inputs: &Inputs) -> Error {
    let lacks = if inputs.files.is_empty() { "holds no file to annotate" } else { "holds no event" };
    let looked = places.iter().map(|place| {
        let state = match std::fs::read_dir(&place.path) {
            _ if !place.path.exists() => "does not exist".to_owned(),
            Err(cause) if place.path.is_dir() => cause.to_string(),
            _ => lacks.to_owned(),
        };
        format!("looked at {} ({}): {state}", place.path.shown(), origin(place))
    });
    let mut hints: Vec<String> = looked.collect();
    let left = [(inputs.annotated, "annotated already"), (inputs.packed, "compressed: unpack it first")];
    hints.extend(left.iter().filter(|(count, _)| *count > 0).map(|(count, why)| format!("left out, {why}: {count}")));
    hints.push(match args.given().next() {
        None => "the live pipeline records with `telemetry.enabled = true`".to_owned(),
        Some(_) => "--recursive also looks into the directories below those given".to_owned(),
    });
    Error::failed("no telemetry found").hint(hints.join("\n"))
}

/// Who named a place. The flag of other commands is an argument here.
fn origin(place: &TelemetryPlace) -> &'static str {
    if place.origin == "--input-dir" { "given" } else { place.origin }
}

fn file(path: &Path, pass: &Pass<'_>, dry_run: bool) -> Result<AnnotatedOutput> {
    let text = crate::base::files::read(path).map_err(|cause| Error::io("reading", path, &cause))?;
    let Annotated { text, counts, standing } = annotate(&text, pass);
    // A copy without any judgement would only keep readers from what is appended to the original.
    let output = (counts.prefetches > 0).then(|| annotated_path(path));
    if let Some(output) = output.as_deref().filter(|_| !dry_run) {
        let known = crate::base::files::read(output).ok().filter(|known| !known.is_empty());
        if known.is_some_and(|known| !holds_events(&known)) {
            return Err(Error::failed(format!("{} is not the annotated form of {}", output.shown(), path.shown()))
                .hint("move it away: the annotated form is written there"));
        }
        write_private(output, &text)?;
    }
    Ok(AnnotatedOutput { path: path.to_owned(), output, counts, standing })
}

fn tell(args: &Args, inputs: &Inputs, done: &[AnnotatedOutput], total: &Citations, err: &mut dyn Write) -> Result<()> {
    for note in &inputs.notes {
        writeln!(err, "# note: {note}")?;
    }
    let written = done.iter().filter(|file| file.output.is_some()).count() as u64;
    let verb = if args.dry_run { "would be annotated" } else { "annotated" };
    let files = counted(inputs.files.len() as u64, "file");
    let set = counted(total.set, "prefetch event");
    writeln!(err, "# {verb}: {} of {files}, {set} newly set", thousands(written))?;
    if args.output.verbose {
        for output in done.iter().filter_map(|file| file.output.as_ref()) {
            writeln!(err, "# → {}", output.shown())?;
        }
    }
    for (wanted, within) in [
        (UsedWhen::Answer, format!("the same answer within {} of the agent", counted(args.lookahead.into(), "call"))),
        (UsedWhen::Published, format!("the same tool within {}", counted(args.lookahead.into(), "event"))),
    ] {
        let share = total.share(wanted);
        let mark = match total.set {
            _ if wanted != args.definition => "for comparison".to_owned(),
            set if set == share.n => "written".to_owned(),
            0 => "nothing written".to_owned(),
            set => format!("written of {} of these", thousands(set)),
        };
        writeln!(err, "# used by `{}` ({within}; {mark}): {}", wanted.into_str(), share_words(&share))?;
    }
    if total.kept > 0 {
        let stands = if args.dry_run { "as it would stand" } else { "as it stands" };
        writeln!(err, "# used {stands} in the annotated form: {}", share_words(&standing(done)))?;
    }
    let counts = [
        (total.set, "set"),
        (total.kept, "kept as they were (--overwrite judges them too)"),
        (total.sampled, "recorded in a sample, which `answer` cannot judge"),
        (total.untraced, "without content or file, which `answer` cannot judge"),
        (total.cut_short, "not used by `answer` as far as their file goes, which ends within the lookahead"),
        (total.uneditable, "on lines that cannot be edited safely: left as they are"),
    ];
    for (count, what) in counts.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(err, "#   {} {what}", thousands(count))?;
    }
    let left = [
        (total.damaged_lines, "damaged line"),
        (inputs.annotated, "annotated file"),
        (inputs.packed, "compressed file"),
    ];
    for (count, noun) in left.into_iter().filter(|(count, _)| *count > 0) {
        writeln!(err, "# left as they are: {}", counted(count, noun))?;
    }
    Ok(())
}

/// What all events say of themselves.
fn standing(done: &[AnnotatedOutput]) -> Share {
    let Standing { used, told } = done.iter().map(|file| file.standing).sum();
    Share::new(used, told)
}

fn share_words(share: &Share) -> String {
    let counts = format!("{} of {}", thousands(share.k), thousands(share.n));
    if share.n == 0 {
        return counts;
    }
    format!("{counts} = {} ({})", percent(share.value()), interval_95(*share))
}

/// One row per file with prefetches, and their sum if there are several.
fn table(done: &[AnnotatedOutput], total: &Citations) -> Table {
    let mut table = Table::new(&["file", "#prefetches", "#judged", "#used", "#same name", "#set", "#kept"]);
    let mut row = |name: String, counts: &Citations| {
        let Citations { prefetches, judged_by_answer, cited_by_answer, cited_by_name, set, kept, .. } = *counts;
        let numbers = [prefetches, judged_by_answer, cited_by_answer, cited_by_name, set, kept];
        table.row([name].into_iter().chain(numbers.map(thousands)));
    };
    let told: Vec<&AnnotatedOutput> = done.iter().filter(|file| file.output.is_some()).collect();
    told.iter().for_each(|file| row(file.path.shown(), &file.counts));
    if told.len() > 1 {
        row("total".to_owned(), total);
    }
    table
}

fn json_fields(args: &Args, inputs: &Inputs, done: &[AnnotatedOutput], total: &Citations) -> Value {
    let share = |Share { k, n, lower, upper }: Share| json!({ "k": k, "n": n, "value": (n > 0).then(|| k as f64 / n as f64), "lower": lower, "upper": upper });
    let file = |file: &AnnotatedOutput| {
        json!({
            "path": file.path.shown(),
            "output": file.output.as_ref().map(|path| path.shown()),
            "counts": file.counts,
        })
    };
    json!({
        "definition": args.definition.into_str(),
        "lookahead": args.lookahead,
        "written": !args.dry_run,
        "files": done.iter().map(file).collect::<Vec<_>>(),
        "annotated_left_out": inputs.annotated,
        "compressed_left_out": inputs.packed,
        "total": total,
        "used": {
            "answer": share(total.share(UsedWhen::Answer)),
            "published": share(total.share(UsedWhen::Published)),
            "standing": share(standing(done)),
        },
    })
}
