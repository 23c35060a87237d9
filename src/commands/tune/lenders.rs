//! `--team` and `--provider`: pools that lend to what is missing of one's own data.

use std::path::{Path, PathBuf};

use crate::base::data::Data;
use crate::base::error::{Error, Result};
use crate::base::files;
use crate::base::pseudonyms::Pseudonyms;
use crate::base::visible::Shown as _;
use crate::fleet::lend::{Lender, Lenders};
use crate::fleet::limits::{FleetLimits, SHEET};
use crate::fleet::naming::{FleetNaming, PLAIN};
use crate::frames::contribution::{Pool, read_pool};
use crate::shell::context::Context;

/// Rows of a pool that are read: those of 50 weeks of a thousand endpoints.
const POOL_ROWS_MAX: usize = 20_000_000;

/// Which pools lend.
#[derive(clap::Args, Debug, Clone, Default)]
#[command(next_help_heading = "Team")]
pub struct TeamArgs {
    /// A pool of the team (`devboy pool --publish`): lends where own data is not enough, at most 30 % where it is.
    #[arg(long, value_name = "FILE")]
    team: Option<PathBuf>,
    /// A pool of a provider of tools, with plain names: fills at most 40 % of what is left to others.
    #[arg(long, value_name = "FILE")]
    provider: Option<PathBuf>,
}

impl TeamArgs {
    /// Reads the pools; none if none are named. An error if one is no pool, or made with another secret.
    pub fn read(&self, data: &Data, context: &Context<'_>) -> Result<Option<Lenders>> {
        if self.team.is_none() && self.provider.is_none() {
            return Ok(None);
        }
        let limits: FleetLimits = data.parsed(SHEET)?;
        let lender = |pool: &Pool| Lender::new(pool, context.now_ms, &limits);
        let (mut team, mut provider) = (Lender::default(), Lender::default());
        let mut own = FleetNaming::new(None)?;
        if let Some(path) = &self.team {
            let pool = load(path)?;
            if pool.secret != PLAIN {
                own = FleetNaming::new(Some(Pseudonyms::of_secret(
                    context.env.team_secret.as_deref().unwrap_or_default(),
                )))?;
            }
            if own.secret() != pool.secret {
                let why = match context.env.team_secret {
                    Some(_) => "was made with another team secret",
                    None => "was made with a team secret, and none is set",
                };
                return Err(Error::failed(format!("{} {why}", path.shown())).hint(
                    "set DEVBOY_TEAM_SECRET to the one with which it was pooled, or DEVBOY_TEAM_SECRET_FILE to a file that \
                     holds it",
                ));
            }
            team = lender(&pool);
        }
        if let Some(path) = &self.provider {
            let pool = load(path)?;
            if pool.secret != PLAIN {
                return Err(Error::failed(format!("{} has keyed names", path.shown()))
                    .hint("a provider pools with --plain-names; a pool of your team is for --team"));
            }
            provider = lender(&pool);
        }
        let provider = (provider, FleetNaming::new(None)?);
        Ok(Some(Lenders { team: (team, own), provider, limits }))
    }
}

fn load(path: &Path) -> Result<Pool> {
    let bytes = files::read(path).map_err(|cause| Error::unread(path, &cause))?;
    read_pool(bytes, POOL_ROWS_MAX).map_err(|why| {
        Error::failed(format!("{}: {why}", path.shown()))
            .hint("`devboy pool DIR --publish OUT` writes OUT/pool.parquet")
    })
}
