//! Sixteen bytes compared at once: which of them lie in some ranges.
//!
//! Text is read to find the few bytes at which something ends. Processors have an instruction that compares sixteen bytes and one
//! that makes a number of the outcomes; the compiler makes neither of what can be written without them.

/// Bytes that are looked at together.
pub const BLOCK_BYTES: usize = 16;

/// Which bytes lie in one of the ranges, ends included: bit 0 stands for the first byte.
#[inline(always)]
pub fn within<const N: usize>(block: &[u8; BLOCK_BYTES], ranges: [(u8, u8); N]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every processor of x86-64 has SSE2. Without it cold runs take 3 to 7 % more time (docs/benchmarks.md).
    #[allow(unsafe_code)]
    return unsafe { sse2::within(block, ranges) };
    #[cfg(not(target_arch = "x86_64"))]
    portable(block, ranges)
}

/// The same for other processors, and to hold the above against.
#[cfg(any(test, not(target_arch = "x86_64")))]
pub fn portable<const N: usize>(block: &[u8; BLOCK_BYTES], ranges: [(u8, u8); N]) -> u32 {
    let is_wanted =
        |byte: u8| ranges.iter().fold(false, |found, &(first, last)| found | (first..=last).contains(&byte));
    let found = u128::from_le_bytes(block.map(|byte| u8::from(is_wanted(byte))));
    // Brings the lowest bit of each byte into the highest byte.
    let gathered = |bytes: u64| (bytes.wrapping_mul(0x0102_0408_1020_4080) >> 56) as u32;
    gathered(found as u64) | gathered((found >> 64) as u64) << 8
}

#[cfg(target_arch = "x86_64")]
mod sse2 {
    use std::arch::x86_64::{
        _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set_epi64x, _mm_set1_epi8,
        _mm_setzero_si128, _mm_sub_epi8,
    };

    use super::BLOCK_BYTES;

    #[inline]
    #[target_feature(enable = "sse2")]
    pub fn within<const N: usize>(block: &[u8; BLOCK_BYTES], ranges: [(u8, u8); N]) -> u32 {
        let word = u128::from_le_bytes(*block);
        let bytes = _mm_set_epi64x((word >> 64) as i64, word as i64);
        let found = ranges.into_iter().fold(_mm_setzero_si128(), |found, (first, last)| {
            let above = _mm_sub_epi8(bytes, _mm_set1_epi8(first as i8));
            let most = _mm_set1_epi8((last - first) as i8);
            _mm_or_si128(found, _mm_cmpeq_epi8(_mm_min_epu8(above, most), above))
        });
        _mm_movemask_epi8(found) as u32
    }
}
