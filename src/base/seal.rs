//! Hashes on disk are sealed: whoever holds plain ones can try words until one fits, so on disk stands the image of a hash
//! under a permutation that only the lake's secret knows (a Feistel network, Luby and Rackoff 1988, whose rounds are
//! SipHash-1-3 under keys of their own). It tells equal from different and nothing else. None, which is zero, stays zero.

use std::ffi::OsString;
use std::io::{Error, ErrorKind, Result};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use siphasher::sip::SipHasher13;

use crate::base::files;
use crate::base::id::Id;
use crate::base::visible::Shown as _;

/// Bytes of a secret.
pub const SECRET_BYTES: usize = 32;
/// Rounds: four make a strong permutation of wide halves, narrow ones take more.
const ROUNDS: usize = 8;
const ROUNDS_128: usize = 4;
const ROUNDS_64: usize = 6;
const ROUNDS_32: usize = 8;

/// Which way a hash goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// It is sealed.
    ToDisk,
    /// It is opened.
    FromDisk,
}

/// The permutations of one secret.
#[derive(Clone)]
pub struct Seal {
    rounds: [SipHasher13; ROUNDS],
}

/// Where the secret of a lake is kept: beside the lake, so that a copy of the lake is not a copy of the secret.
pub fn secret_file(lake: &Path) -> PathBuf {
    let mut name = lake.file_name().map_or_else(|| OsString::from("lake"), OsString::from);
    name.push(".secret");
    lake.with_file_name(name)
}

impl Seal {
    /// The permutations that a secret stands for.
    pub fn new(secret: &[u8; SECRET_BYTES]) -> Self {
        let key = |round: usize| {
            let digest = Sha256::new().chain_update(b"devboy lake round ").chain_update([round as u8]);
            let digest = digest.chain_update(secret).finalize();
            let mut key = [0; 16];
            key.copy_from_slice(&digest[..16]);
            SipHasher13::new_with_key(&key)
        };
        Self { rounds: std::array::from_fn(key) }
    }

    /// A number that tells secrets apart and gives nothing of them away.
    pub fn check(&self) -> u64 {
        self.hash_64(Way::ToDisk, u64::from_be_bytes(*b"devboy\0\0"))
    }

    /// An id as it stands on disk, or as it was before.
    pub fn id(&self, way: Way, id: Id) -> Id {
        Id(self.turned(way, u128::from_be_bytes(id.0), ROUNDS_128, 64).to_be_bytes())
    }

    /// A 64-bit hash, the same.
    pub fn hash_64(&self, way: Way, hash: u64) -> u64 {
        self.turned(way, hash.into(), ROUNDS_64, 32) as u64
    }

    /// A 32-bit hash, the same.
    pub fn hash_32(&self, way: Way, hash: u32) -> u32 {
        self.turned(way, hash.into(), ROUNDS_32, 16) as u32
    }

    /// Zero stays zero: whatever would become zero takes the place of zero's image.
    fn turned(&self, way: Way, value: u128, rounds: usize, width: u32) -> u128 {
        let permute = |value| match way {
            Way::ToDisk => self.forth(value, rounds, width),
            Way::FromDisk => self.back(value, rounds, width),
        };
        match value {
            0 => 0,
            _ => match permute(value) {
                0 => permute(0),
                image => image,
            },
        }
    }

    /// The function of a round, for halves of `width` bits; different for every width.
    fn round(&self, round: usize, half: u64, width: u32) -> u64 {
        let mut text = [0; 9];
        text[..8].copy_from_slice(&half.to_le_bytes());
        text[8] = width as u8;
        self.rounds[round].hash(&text) & low_bits(width)
    }

    fn forth(&self, value: u128, rounds: usize, width: u32) -> u128 {
        let (mut left, mut right) = halves(value, width);
        for round in 0..rounds {
            (left, right) = (right, left ^ self.round(round, right, width));
        }
        u128::from(left) << width | u128::from(right)
    }

    fn back(&self, value: u128, rounds: usize, width: u32) -> u128 {
        let (mut left, mut right) = halves(value, width);
        for round in (0..rounds).rev() {
            (left, right) = (right ^ self.round(round, left, width), left);
        }
        u128::from(left) << width | u128::from(right)
    }
}

/// The secret beside a lake. A lake without a secret is given one, drawn by the system. An error if the file holds
/// something else.
pub fn kept_secret(lake: &Path) -> Result<[u8; SECRET_BYTES]> {
    let path = secret_file(lake);
    let stored = match files::read_own(&path) {
        Err(cause) if cause.kind() == ErrorKind::NotFound => {
            let (secret, name): ([u8; SECRET_BYTES], _) = (drawn()?, Id(drawn()?));
            files::make_dir(lake)?;
            // Of several that begin at once one makes the file, and all read it.
            files::keep_first(&path, &lake.join(format!("{name}.tmp")), &secret)?;
            files::read_own(&path)?
        }
        other => other?,
    };
    stored.try_into().map_err(|_| {
        Error::new(
            ErrorKind::InvalidData,
            format!(
                "{} holds no secret of {SECRET_BYTES} bytes; once it is deleted, the lake is made anew",
                path.shown()
            ),
        )
    })
}

/// Bytes drawn by the system, such as a new secret.
pub fn drawn<const N: usize>() -> Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|cause| Error::other(cause.to_string()))?;
    Ok(bytes)
}

fn halves(value: u128, width: u32) -> (u64, u64) {
    ((value >> width) as u64, value as u64 & low_bits(width))
}

fn low_bits(width: u32) -> u64 {
    u64::MAX >> (64 - width)
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}
