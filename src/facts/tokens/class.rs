//! The classes of characters that the splitting patterns tell apart. The build script uses this file too: it works out
//! the class of every character.

/// Class of a character. The letters of the contractions (`'s`, `'re`, …) have classes of their own.
#[derive(Clone, Copy)]
#[repr(u8)]
pub enum CharClass {
    /// Anything that is not one of the following.
    Symbol,
    /// `/`
    Slash,
    /// `'`
    Apostrophe,
    /// `\p{Ll}`
    Lower,
    /// `[sdmtſ]`; the long s is an s to a pattern that ignores case.
    LowerS,
    /// `[rv]`
    LowerR,
    /// `l`
    LowerL,
    /// `e`
    LowerE,
    /// `[\p{Lu}\p{Lt}]`
    Upper,
    /// `[SDMT]`
    UpperS,
    /// `[RV]`
    UpperR,
    /// `L`
    UpperL,
    /// `E`
    UpperE,
    /// `[\p{Lm}\p{Lo}]`: letters without case.
    Caseless,
    /// `\p{M}`: marks that combine with a letter.
    Mark,
    /// `\p{N}`
    Number,
    /// U+0020
    Blank,
    /// `\s`
    Space,
    /// `[\r\n]`
    Newline,
}
