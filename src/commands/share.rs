//! `devboy share`: what one person adds to the pool of a team, shown before it leaves; with `--what-if`, also what every session would
//! have cost under the settings that the team asks about.

use std::path::{Path, PathBuf};

use serde_json::json;

use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::pseudonyms::Pseudonyms;
use crate::base::visible::Shown as _;
use crate::commands::mine::export::{ExportArgs, ExportForm, Mined};
use crate::commands::responses::Wanted;
use crate::fleet::contribute::{Alternative, PersonWeek, ShareGuide, contributions, tells_settings};
use crate::fleet::folder::{light_place, place};
use crate::fleet::limits::{FleetLimits, SHEET};
use crate::fleet::naming::{FleetNaming, is_user};
use crate::fleet::tables;
use crate::frames::contribution::{self, Contribution};
use crate::frames::input::Input;
use crate::frames::input::timeline::{TextWords, TimelineDetail};
use crate::frames::light;
use crate::report::numbers::counted;
use crate::report::table::{self, TableFormat};
use crate::rules::responses::Responses;
use crate::settings::{Effective, write_private};
use crate::shell::arguments::{InputArgs, OutputArgs};
use crate::shell::context::Context;
use crate::shell::window;
use crate::whatif::workload::{self, ShippedWorkload};

/// Write what you add to your team's pool, as counts of whole weeks, into a folder that the team syncs.
///
/// What leaves are counts and histograms of endpoints, tools and follow-ups, at most so many of a week as rules/fleet.toml
/// says. Names of tools that devboy does not know are keyed with the secret of the team (DEVBOY_TEAM_SECRET, or the file
/// that DEVBOY_TEAM_SECRET_FILE names). Only finished weeks are written, and none twice. `--show` prints every value that
/// would leave and writes nothing.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The folder of the team; needed unless --show is given.
    #[arg(long, value_name = "DIR", required_unless_present = "show")]
    to: Option<PathBuf>,
    /// Your pseudonym: small letters, digits, dashes; the same on all your machines of which only one shares. Default: one
    /// that is keyed with the secret of the team; with --to and without a secret it has to be given.
    #[arg(long = "as", value_name = "PSEUDONYM")]
    user: Option<String>,
    /// Print every value that would leave, write nothing.
    #[arg(long)]
    show: bool,
    /// Leave all names as they are: for a provider who measures its own server, or a team of which names are no secret.
    #[arg(long)]
    plain_names: bool,
    /// Also what your sessions would have cost under a few other settings (rules/fleet.toml): they are replayed, which takes
    /// longer. Only with the counts of a week, not for one that was shared before.
    #[arg(long)]
    what_if: bool,
    /// Also a light row of each call that is counted, without any text: what `devboy pool --rows` and Spark count anew. Only
    /// with the counts of a week, not for one that was shared before.
    #[arg(long)]
    rows: bool,
    #[command(flatten)]
    export: ExportArgs,
    #[command(flatten)]
    input: InputArgs,
}

/// Light rows that `--show` prints for people; other forms have all.
const SAMPLE: usize = 20;

/// Reads, counts, shows, writes.
pub fn run(args: &Args, context: &mut Context<'_>) -> Result<()> {
    // One for all, so that what it saves can be added up.
    let settings = Effective::built_in().settings;
    let wanted = Wanted {
        input: &args.input,
        window: window::ALL,
        settings: &settings,
        output: &args.export.shared(),
        planner: None,
    };
    let naming = naming(args.plain_names, context)?;
    let user = user(args, context)?;
    let responses = Responses::from_logs(&wanted, context)?;
    let limits: FleetLimits = responses.data.parsed(SHEET)?;
    // A pseudonym that was made can be guessed like a name.
    let is_keyed = !args.plain_names || args.user.is_none() && !args.show;
    enough_secret(&limits, !is_keyed, context)?;
    let guide = ShareGuide { naming: &naming, limits: &limits, user: &user, now_ms: context.now_ms };
    let others =
        if args.what_if { alternatives(&args.input, &args.export.shared(), &limits, context)? } else { Vec::new() };
    let found = contributions(&responses.log, &others, &guide);
    let weeks = counted(found.len() as u64, "finished week");
    if args.show || args.export.form() != ExportForm::Table {
        show(args, &user, &found, context)?;
    }
    let Some(directory) = args.to.as_ref().filter(|_| !args.show) else {
        context.note(args.export.quiet, format_args!("{weeks} would leave as {user}; nothing written"))?;
        return tell_why_none(args, &found, &limits, context);
    };
    let WrittenWeeks { written, without } = write(args, (directory, &user), &found, &limits, context)?;
    let (places, before) = (directory.shown(), found.len() - written);
    context.note(
        args.export.quiet,
        format_args!("{weeks} as {user}: {written} written to {places}, {before} shared before and kept"),
    )?;
    let lacking = [
        "shared before without light rows: rows leave with the counts, and cannot be added",
        "shared before without other settings: they leave with the counts, and cannot be added",
    ];
    for (count, what) in without.into_iter().zip(lacking).filter(|told| told.0 > 0) {
        context.note(args.export.quiet, format_args!("{} {what}", counted(count, "week")))?;
    }
    tell_why_none(args, &found, &limits, context)
}

/// What became of the weeks.
#[derive(Default)]
struct WrittenWeeks {
    written: usize,
    /// Of those that were shared before: how many lack the light rows, and the other settings, that are asked for now.
    without: [u64; 2],
}

/// Writes the weeks that were not shared before.
fn write(
    args: &Args,
    (directory, user): (&Path, &str),
    found: &[PersonWeek],
    limits: &FleetLimits,
    context: &mut Context<'_>,
) -> Result<WrittenWeeks> {
    let mut done = WrittenWeeks::default();
    for PersonWeek { contribution, calls } in found {
        let (week, rows_max) = (&contribution.week, limits.light_rows_max);
        let path = place(directory, user, week);
        if path.exists() {
            done.without[0] += u64::from(args.rows && !light_place(directory, user, week).exists());
            done.without[1] += u64::from(lacks_settings(contribution, &path, limits));
            continue;
        }
        if args.rows && calls.len() > rows_max {
            let rows = calls.len();
            writeln!(
                context.err,
                "# week={week}: {rows} light rows are more than the {rows_max} that are read; none written"
            )?;
        } else if args.rows {
            write_private(&light_place(directory, user, week), light::write(contribution, calls)?)?;
        }
        write_private(&path, contribution::write(contribution)?)?;
        done.written += 1;
    }
    Ok(done)
}

/// Whether there are sums under other settings now, and none in the file that was written before.
fn lacks_settings(now: &Contribution, path: &Path, limits: &FleetLimits) -> bool {
    let before = || contribution::read(files::read(path).ok()?, limits.rows_max).ok();
    tells_settings(now) && before().is_some_and(|before| !tells_settings(&before))
}

fn tell_why_none(args: &Args, found: &[PersonWeek], limits: &FleetLimits, context: &mut Context<'_>) -> Result<()> {
    let is_quiet = args.export.quiet || !found.is_empty();
    context
        .note(is_quiet, format_args!("only weeks that are over leave, at most the last {} of them", limits.weeks_max))
}

/// Every value that leaves; with rows what they tell and, for people, the first of them.
fn show<'w>(args: &Args, user: &str, found: &'w [PersonWeek], context: &mut Context<'_>) -> Result<()> {
    let is_sample = args.rows && args.export.form() == ExportForm::Table;
    let listing = if args.rows {
        let calls = |week: &'w PersonWeek| week.calls.iter().map(|call| (&*week.contribution.week, call));
        tables::light(found.iter().flat_map(calls).take(if is_sample { SAMPLE } else { usize::MAX }))
    } else {
        tables::leaving(found.iter().map(|week| &week.contribution))
    };
    if is_sample {
        return args.export.send(context, |out, width| {
            table::table(&tables::light_columns()).write(out, TableFormat::Table, width)?;
            table::table(&listing).write(out, TableFormat::Table, width)
        });
    }
    let mut mined = Mined::listed("share", if args.rows { "rows" } else { "values" }, listing);
    mined.fields = json!({ "user": user, "weeks": found.len() });
    args.export.send_mined(context, mined)
}

/// How names leave. An error if they are to be keyed and there is no secret.
pub fn naming(plain: bool, context: &Context<'_>) -> Result<FleetNaming> {
    if plain {
        return FleetNaming::new(None);
    }
    let Some(secret) = &context.env.team_secret else {
        return Err(Error::failed("there is no team secret").hint(
            "set DEVBOY_TEAM_SECRET, or DEVBOY_TEAM_SECRET_FILE to a file that holds it: `openssl rand -hex 32` makes one, \
             and everybody of the team needs the same; to see names as they are, without one: --plain-names",
        ));
    };
    FleetNaming::new(Some(Pseudonyms::of_secret(secret)))
}

/// Refuses a secret that could be guessed.
pub fn enough_secret(limits: &FleetLimits, plain: bool, context: &Context<'_>) -> Result<()> {
    let bytes = context.env.team_secret.as_ref().map_or(0, Vec::len);
    if plain || bytes >= limits.secret_bytes_min {
        return Ok(());
    }
    Err(Error::failed(format!("the team secret has {bytes} bytes, at least {} are asked for", limits.secret_bytes_min))
        .hint("a short one can be guessed, and with it the names of tools: `openssl rand -hex 32` makes a long one"))
}

/// Who shares: as asked for, else a pseudonym that nobody can guess from the name of a home directory.
fn user(args: &Args, context: &Context<'_>) -> Result<String> {
    const HINT: &str = "say who you are with --as PSEUDONYM";
    if args.user.is_none() && context.env.team_secret.is_none() && !args.show {
        return Err(Error::failed("there is no team secret to make a pseudonym with").hint(HINT));
    }
    // Those of the team, or, where nothing leaves, of the lake.
    let keyed = FleetNaming::new(Some(context.pseudonyms.clone()))?;
    let home = || context.env.places.home.as_ref().map(|home| home.to_string_lossy().into_owned());
    let user = args.user.clone().or_else(|| Some(format!("person-{}", keyed.mark(&home()?))));
    let user = user.ok_or_else(|| Error::failed("HOME is not set").hint(HINT))?;
    if !is_user(&user) {
        return Err(Error::usage(format!("--as {user}: not a pseudonym"))
            .hint("up to 40 small letters, digits and dashes, so that it can name a directory anywhere"));
    }
    Ok(user)
}

/// What is asked of the timeline.
const DETAIL: TimelineDetail = TimelineDetail { tokens: false, words: TextWords::All, values: false };

/// What every session would have cost under the settings that a team asks about (`--what-if`). An error if no log can
/// be found, or a data file does not fit.
fn alternatives(
    args: &InputArgs,
    output: &OutputArgs,
    limits: &FleetLimits,
    context: &mut Context<'_>,
) -> Result<Vec<Alternative>> {
    let mut input = Input::read(args, window::ALL, (0, Some(DETAIL)), output, context)?;
    let timeline = input.last_timeline(DETAIL)?;
    let shipped = ShippedWorkload::new(timeline, &input.data)?;
    input.pool.install(|| workload::alternatives(&shipped, &limits.what_if))
}
