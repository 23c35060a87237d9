//! Light rows that no devboy writes.

use super::*;
use crate::frames::contribution::hostile::encoded_oddly;

/// Light rows with this odd thing about them.
pub fn odd(of: &Contribution, calls: &[LightCall], what: &str) -> Vec<u8> {
    encoded_oddly(what, WHAT, columns(calls), ("bytes", of))
}
