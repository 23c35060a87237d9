//! Runs of bytes that may hold an identifier, found 64 bytes at a time: every text of a log is looked through for them, and nearly all
//! runs are words of prose, which are passed over without being looked at one by one.

/// Letters and dashes of a UUID: a run of so many bytes is looked at whatever it is made of.
pub const UUID_BYTES: usize = 36;

/// Bytes looked at together, a bit for each.
const BLOCK_BYTES: usize = 64;

/// Blanks aside, what separates identifiers: quotes, brackets, and what stands between the items of lists.
const SEPARATORS: &[u8; 17] = b"\"'`()[]{}<>,;|*=\\";

/// Whether a run may hold the byte: ASCII that is no blank and no separator.
pub fn is_inside(byte: u8) -> bool {
    // Without branches, so that the compiler can use wide registers.
    SEPARATORS.iter().fold(byte.is_ascii_graphic(), |inside, separator| inside & (byte != *separator))
}

/// Hands on where each run begins and ends that is no word of prose: one with a digit, `_` or `/`, with a capital behind its start,
/// or of at least [`UUID_BYTES`].
pub fn telling_runs(text: &[u8], mut take: impl FnMut(usize, usize)) {
    let mut close = |run: Run, end: usize| {
        if run.tells || end - run.start >= UUID_BYTES {
            take(run.start, end);
        }
    };
    // The run that goes on behind the block before.
    let mut open: Option<Run> = None;
    let mut padded = [0; BLOCK_BYTES];
    for (number, chunk) in text.chunks(BLOCK_BYTES).enumerate() {
        let block = <&[u8; BLOCK_BYTES]>::try_from(chunk).unwrap_or_else(|_| {
            padded[..chunk.len()].copy_from_slice(chunk);
            &padded
        });
        let place = |bit: u32| number * BLOCK_BYTES + bit as usize;
        let Signs { inside, marks, capitals } = Signs::of(block);
        let starts = inside & !(inside << 1 | u64::from(open.is_some()));
        let telling = marks | capitals & !starts;
        let mut from = 0;
        if let Some(mut run) = open.take() {
            from = (!inside).trailing_zeros();
            run.tells |= telling & below(from) != 0;
            if from == u64::BITS {
                open = Some(run);
                continue;
            }
            close(run, place(from));
        }
        let last = u64::BITS - (!inside).leading_zeros();
        if last < u64::BITS {
            open = Some(Run { start: place(last), tells: telling & !below(last) != 0 });
        }
        let mut ahead = (telling | inside_for_32(inside)) & below(last) & !below(from);
        while ahead != 0 {
            let at = ahead.trailing_zeros();
            let start = u64::BITS - (!inside & below(at)).leading_zeros();
            let end = at + (!inside >> at).trailing_zeros();
            close(Run { start: place(start), tells: telling & below(end) & !below(start) != 0 }, place(end));
            ahead &= !below(end);
        }
    }
    if let Some(run) = open {
        close(run, text.len());
    }
}

#[derive(Clone, Copy)]
struct Run {
    start: usize,
    /// Whether something in it is a sign of a name.
    tells: bool,
}

/// What the bytes of a block are, a bit for each, the first one lowest.
struct Signs {
    /// See [`is_inside`].
    inside: u64,
    /// Digits, `_` and `/`: prose has none within its words.
    marks: u64,
    /// Capitals: within a word they are a sign of a name.
    capitals: u64,
}

impl Signs {
    fn of(block: &[u8; BLOCK_BYTES]) -> Self {
        let classes = block.map(|byte| {
            let is_mark = byte.is_ascii_digit() | (byte == b'_') | (byte == b'/');
            u8::from(is_inside(byte)) | u8::from(is_mark) << 1 | u8::from(byte.is_ascii_uppercase()) << 2
        });
        let mut signs = Self { inside: 0, marks: 0, capitals: 0 };
        for (eight, shift) in classes.as_chunks::<8>().0.iter().zip((0..u64::BITS).step_by(8)) {
            let eight = u64::from_le_bytes(*eight);
            signs.inside |= low_bits(eight) << shift;
            signs.marks |= low_bits(eight >> 1) << shift;
            signs.capitals |= low_bits(eight >> 2) << shift;
        }
        signs
    }
}

/// The lowest bits of eight bytes, next to each other: the product brings each of them into the highest byte, at a place of its own.
fn low_bits(eight: u64) -> u64 {
    (eight & 0x0101_0101_0101_0101).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// The bits below a place.
fn below(place: u32) -> u64 {
    u64::MAX.checked_shl(place).map_or(u64::MAX, |above| !above)
}

/// Bits that, with the 31 behind them, are all set.
fn inside_for_32(inside: u64) -> u64 {
    [1, 2, 4, 8, 16].into_iter().fold(inside, |all, shift| all & all >> shift)
}
