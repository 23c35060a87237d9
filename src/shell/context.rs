//! The world around a command, handed in from outside: streams, environment, clock. Tests hand in their own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use crate::base::error::{Error, FailureKind, Result};
use crate::base::files;
use crate::base::pseudonyms::Pseudonyms;
use crate::base::visible::Shown as _;
use crate::logs::discover::PlaceVariables;
use crate::logs::trace::Millis;
use crate::report::table::Color;
use crate::settings::claude::layers::ClaudePlaces;
use crate::settings::{expect_place, journal_path, write_output};

/// What a command may touch.
pub struct Context<'io> {
    /// Data.
    pub out: &'io mut dyn Write,
    /// Notes, progress, errors.
    pub err: &'io mut dyn Write,
    /// Input, for `-`.
    pub input: &'io mut dyn Read,
    /// Variables that matter.
    pub env: Env,
    /// Names for what is shared.
    pub pseudonyms: Pseudonyms,
    /// Now.
    pub now_ms: Millis,
    /// Width of the terminal, if `out` is one.
    pub width: Option<u16>,
    /// Whether `out` is a terminal.
    pub out_is_terminal: bool,
    /// Whether `err` is a terminal: progress is shown only there.
    pub err_is_terminal: bool,
}

impl Context<'_> {
    /// Whether data may be coloured.
    pub fn colored(&self, wanted: Color) -> bool {
        match wanted {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => self.out_is_terminal && !self.env.no_color,
        }
    }

    /// Says something beside the data, unless nobody wants to hear it.
    pub fn note(&mut self, is_quiet: bool, words: impl Display) -> Result<()> {
        if is_quiet { Ok(()) } else { Ok(writeln!(self.err, "# {words}")?) }
    }

    /// Writes a file that was named into a directory that is there, and says so.
    pub fn write_file(&mut self, path: &Path, bytes: impl AsRef<[u8]>, is_quiet: bool) -> Result<()> {
        expect_place(path)?;
        write_output(path, bytes)?;
        self.note(is_quiet, format_args!("written: {}", path.shown()))
    }

    /// Shows what is acted on next. Whoever stops reading has seen enough; what was asked for is done all the same. An
    /// error if it cannot be shown for another reason.
    pub fn show(&mut self, show: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let unread = |cause: Error| if cause.kind == FailureKind::BrokenPipe { Ok(()) } else { Err(cause) };
        show(self).or_else(unread)?;
        self.out.flush().map_err(Into::into).or_else(unread)
    }
}

/// The environment variables that devboy reads.
#[derive(Clone, Debug, Default)]
pub struct Env {
    /// Where logs may be.
    pub places: PlaceVariables,
    /// `XDG_CACHE_HOME`.
    pub xdg_cache_home: Option<PathBuf>,
    /// `DEVBOY_CONFIG`: the configuration file.
    pub devboy_config: Option<PathBuf>,
    /// `DEVBOY_TELEMETRY_DIR`: where the live pipeline records.
    pub telemetry_dir: Option<PathBuf>,
    /// `DEVBOY_TEAM_SECRET`, or the first line of the file that `DEVBOY_TEAM_SECRET_FILE` names: people who share it have
    /// the same pseudonyms.
    pub team_secret: Option<Vec<u8>>,
    /// The current directory.
    pub current_dir: Option<PathBuf>,
    /// Where an organisation sets what Claude Code does on its machines.
    pub managed_settings: Option<PathBuf>,
    /// The variables that are set, and not to nothing: some win over settings of Claude Code.
    pub variables: BTreeMap<String, String>,
    /// `NO_COLOR` is set, or the console would show the codes of colours.
    pub no_color: bool,
    /// `SOURCE_DATE_EPOCH` is set: reports are reproducible.
    pub reproducible: bool,
}

impl Env {
    /// The environment of this process.
    pub fn from_process() -> Self {
        // An empty variable counts as unset.
        let text = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let path = |name| text(name).map(PathBuf::from);
        // The XDG base directory specification asks to ignore a relative one.
        let xdg = |name| path(name).filter(|path| path.is_absolute());
        Self {
            places: PlaceVariables {
                claude_config_dir: text("CLAUDE_CONFIG_DIR").map(|list| list.to_string_lossy().into_owned()),
                xdg_config_home: xdg("XDG_CONFIG_HOME"),
                home: path("HOME").or_else(|| path("USERPROFILE")),
            },
            xdg_cache_home: xdg("XDG_CACHE_HOME"),
            devboy_config: path("DEVBOY_CONFIG"),
            telemetry_dir: path("DEVBOY_TELEMETRY_DIR"),
            team_secret: text("DEVBOY_TEAM_SECRET")
                .map(OsString::into_encoded_bytes)
                .or_else(|| first_line(&path("DEVBOY_TEAM_SECRET_FILE")?)),
            current_dir: std::env::current_dir().ok(),
            managed_settings: Some(PathBuf::from(files::MANAGED_SETTINGS)),
            variables: std::env::vars_os()
                .filter(|(_, value)| !value.is_empty())
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
                .collect(),
            no_color: text("NO_COLOR").is_some() || !files::shows_colours(text),
            reproducible: text("SOURCE_DATE_EPOCH").is_some(),
        }
    }

    /// The default place of the lake; none without a home.
    pub fn lake_dir(&self) -> Option<PathBuf> {
        let cache = self.xdg_cache_home.clone().or_else(|| Some(self.places.home.as_ref()?.join(".cache")))?;
        Some(cache.join("devboy").join("lake"))
    }

    /// Where files of Claude Code's settings are.
    pub fn claude_places(&self) -> ClaudePlaces {
        ClaudePlaces {
            home: self.claude_config_dirs().next().or_else(|| Some(self.places.home.as_ref()?.join(".claude"))),
            project: self.current_dir.clone(),
            managed: self.managed_settings.clone(),
            variables: self.variables.clone(),
        }
    }

    /// The same for each directory of `CLAUDE_CONFIG_DIR`: the first one, and those of the others that are there.
    pub fn all_claude_places(&self) -> impl Iterator<Item = ClaudePlaces> {
        let others = self.claude_config_dirs().skip(1).filter(|home| home.is_dir());
        let others = others.map(|home| ClaudePlaces { home: Some(home), ..self.claude_places() });
        std::iter::once(self.claude_places()).chain(others)
    }

    /// The directories of `CLAUDE_CONFIG_DIR`. Each has settings of its own.
    pub fn claude_config_dirs(&self) -> impl Iterator<Item = PathBuf> {
        let listed = self.places.claude_config_dir.as_deref().unwrap_or_default().split(',');
        listed.map(str::trim).filter(|name| !name.is_empty()).map(PathBuf::from)
    }

    /// The configuration file: `DEVBOY_CONFIG`, else the first usual place that is in use, else the first.
    pub fn config_file(&self) -> Option<PathBuf> {
        let is_used =
            |file: &PathBuf| file.exists() || journal_path(file).exists() || file.with_file_name("telemetry").exists();
        let usual = || self.usual_configs().find(is_used).or_else(|| self.usual_configs().next());
        self.devboy_config.clone().or_else(usual)
    }

    /// Where the configuration usually is: below `$XDG_CONFIG_HOME`, and below `~/.config`, which the published system knows.
    pub fn usual_configs(&self) -> impl Iterator<Item = PathBuf> {
        let PlaceVariables { xdg_config_home, home, .. } = &self.places;
        let homes = xdg_config_home.clone().into_iter().chain(home.as_ref().map(|home| home.join(".config")));
        homes.map(|home| home.join("devboy").join("pipeline_config.toml"))
    }

    /// The configuration that hosts of the pipeline are told to read: `DEVBOY_PIPELINE_CONFIG`.
    pub fn of_hosts(&self) -> Option<PathBuf> {
        self.variables.get("DEVBOY_PIPELINE_CONFIG").map(PathBuf::from)
    }
}

/// The first line of a file; none if there is none, or nothing in it.
/// Editors of Windows put a byte order mark before it.
pub(crate) fn first_line(path: &Path) -> Option<Vec<u8>> {
    let text = files::read_to_string(path).ok()?;
    text.trim_start_matches('\u{feff}')
        .lines()
        .next()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| line.as_bytes().to_vec())
}
