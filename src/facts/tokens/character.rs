//! The class of every character, from the table that the build script writes.

/// In [`CLASS_OF_BYTE`]: the byte is a part of a character beyond ASCII.
pub const BEYOND_ASCII: u8 = u8::MAX;

/// The number of the class of an ASCII character, or [`BEYOND_ASCII`].
pub static CLASS_OF_BYTE: [u8; 256] = {
    let mut classes = [BEYOND_ASCII; 256];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = TABLE[BLOCKS_START + byte];
        byte += 1;
    }
    classes
};

/// Block numbers by code point, then the blocks.
static TABLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/classes"));
const BLOCKS_START: usize = 0x11_0000 / 256;

/// The number of the class of the character that begins at a byte of the text, and where the next one begins.
#[inline(never)]
pub fn class_at(text: &str, at: usize) -> (u8, usize) {
    let character = text[at..].chars().next().unwrap_or_default();
    let code = character as usize;
    let block = BLOCKS_START + usize::from(TABLE[code / 256]) * 256;
    (TABLE[block + code % 256], at + character.len_utf8())
}
