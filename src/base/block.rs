//! Bytes compared sixteen at once: which of them lie in some ranges, of 64 at a time, and where lines end. Processors have an
//! instruction that compares sixteen bytes and one that makes a number of the outcomes; the compiler makes neither by itself.

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

/// Bytes that a mask of 64 bits tells of.
pub const MASK_BYTES: usize = 64;

/// Which of the first bytes of a text lie in one of the ranges, for each list of ranges: bit 0 stands for the first byte.
/// Behind the end of the text there is a NUL.
#[inline(always)]
pub fn masks<const N: usize, const M: usize>(text: &[u8], lists: [[(u8, u8); N]; M]) -> [u64; M] {
    let mut last = [0; MASK_BYTES];
    let bytes = text.first_chunk().unwrap_or_else(|| {
        last[..text.len()].copy_from_slice(text);
        &last
    });
    let (blocks, _) = bytes.as_chunks();
    lists
        .map(|ranges| blocks.iter().rev().fold(0, |mask, block| mask << BLOCK_BYTES | u64::from(within(block, ranges))))
}

/// Where the lines of a text end: before each line feed, and at the end of the text.
///
/// What `memchr_iter` says takes longer where lines are as short as those of programs: it starts anew at each.
pub fn line_ends(text: &[u8]) -> LineEnds<'_> {
    LineEnds { text, read: 0, feeds: 0, is_open: true }
}

/// See [`line_ends`].
pub struct LineEnds<'a> {
    text: &'a [u8],
    /// Bytes that were looked through.
    read: usize,
    /// The line feeds among the last of them that are still to come; bit 0 stands for the first of [`MASK_BYTES`].
    feeds: u64,
    /// Whether the end of the text is still to come.
    is_open: bool,
}

impl Iterator for LineEnds<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        while self.feeds == 0 {
            if self.read >= self.text.len() {
                return std::mem::take(&mut self.is_open).then_some(self.text.len());
            }
            [self.feeds] = masks(&self.text[self.read..], [[(b'\n', b'\n')]]);
            self.read += MASK_BYTES;
        }
        let at = self.feeds.trailing_zeros() as usize;
        self.feeds &= self.feeds - 1;
        Some(self.read - MASK_BYTES + at)
    }
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
