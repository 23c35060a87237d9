//! The published splitting patterns as automata: one step per character, no looking ahead and no going back.
//!
//! o200k_base:
//!
//! ```text
//!  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! |[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//! |\p{N}{1,3}
//! | ?[^\s\p{L}\p{N}]+[\r\n/]*
//! |\s*[\r\n]+
//! |\s+(?!\S)
//! |\s+
//! ```
//!
//! cl100k_base:
//!
//! ```text
//!  '(?i:[sdmt]|ll|ve|re)
//! |[^\r\n\p{L}\p{N}]?+\p{L}++
//! |\p{N}{1,3}+
//! | ?[^\s\p{L}\p{N}]++[\r\n]*+
//! |\s++$
//! |\s*[\r\n]
//! |\s+(?!\S)
//! |\s
//! ```
//!
//! Where a pattern looks ahead or falls back, the automaton cuts at once and takes the cut back if it proves wrong.

use crate::facts::tokens::class::CharClass;

/// A state (lower five bits) and what the step into it does to the list of cuts.
type PackedStep = u8;

/// Cut before the character read.
const CUT: PackedStep = 1 << 5;
/// Take the last cut back; before [`CUT`], if both.
const UNCUT: PackedStep = 1 << 6;
/// Take the last two cuts back.
const UNCUT_TWO: PackedStep = 2 << 6;

/// The pattern of o200k_base.
pub static O200K_BASE: Automaton = SplitPattern { by_case: true }.automaton();
/// The pattern of cl100k_base.
pub static CL100K_BASE: Automaton = SplitPattern { by_case: false }.automaton();

/// All steps of a pattern.
pub struct Automaton {
    /// By class of the character read, by last step.
    next: [[PackedStep; 256]; 32],
    /// What to do at the end of the text, by last step.
    end: [PackedStep; 256],
}

/// Where an automaton stands: its last step, as wide as the innermost loop wants it.
#[derive(Clone, Copy)]
pub struct Position(usize);

impl Position {
    /// Before the first character, which will be cut from nothing.
    pub const START: Self = Self(PieceState::Complete as usize);

    /// How many cuts the step takes back: 0, 1 or 2.
    pub fn uncuts(self) -> usize {
        self.0 >> 6
    }

    /// Whether the step then cuts before the character read: 0 or 1.
    pub fn cuts(self) -> usize {
        self.0 >> 5 & 1
    }
}

impl Automaton {
    /// Reads a character of a class.
    #[inline(always)]
    pub fn next(&self, class: u8, position: Position) -> Position {
        Position(usize::from(self.next[usize::from(class % 32)][position.0 % 256]))
    }

    /// Reads the end of the text.
    pub fn end(&self, position: Position) -> Position {
        Position(usize::from(self.end[position.0 % 256]))
    }
}

/// What the open piece is so far. "Cut off" means that the cut before it may be taken back.
#[derive(Clone, Copy, strum::VariantArray)]
#[repr(u8)]
enum PieceState {
    /// Nothing can be added to it.
    Complete,
    /// A word with a lower-case letter: only such and caseless ones may follow.
    Word,
    /// A word of capitals.
    Capitals,
    /// A word of capitals and caseless letters that ends in a caseless one.
    Caseless,
    /// Capitals, cut off from such a word, to which they belong if a lower-case or caseless letter follows.
    CapitalsCutOff,
    /// An apostrophe where a contraction may begin; by case, cut off from the word of which that would be a part.
    Apostrophe,
    /// `'r` or `'v`, cut off like the apostrophe.
    ApostropheLowerR,
    /// `'R` or `'V`.
    ApostropheUpperR,
    /// `'l`.
    ApostropheLowerL,
    /// `'L`.
    ApostropheUpperL,
    Digit,
    Digits,
    Symbol,
    /// Several symbols, or U+0020 and symbols.
    Symbols,
    /// Symbols and line breaks.
    SymbolsBreak,
    /// White space that ends in a line break.
    Break,
    /// U+0020.
    Blank,
    /// Another character of white space.
    Space,
    /// U+0020, cut off from white space.
    Blanks,
    /// Another character of white space, cut off from white space.
    Spaces,
    /// U+0020, cut off from a line break, to which it belongs if another one follows.
    LineBlank,
    /// Another character of white space, cut off from a line break.
    LineSpace,
    /// U+0020, cut off from white space that is cut off from a line break.
    LineBlanks,
    /// Another character of white space, cut off from white space that is cut off from a line break.
    LineSpaces,
}

macro_rules! lower {
    () => {
        CharClass::Lower | CharClass::LowerS | CharClass::LowerR | CharClass::LowerL | CharClass::LowerE
    };
}

macro_rules! upper {
    () => {
        CharClass::Upper | CharClass::UpperS | CharClass::UpperR | CharClass::UpperL | CharClass::UpperE
    };
}

macro_rules! caseless {
    () => {
        CharClass::Caseless | CharClass::Mark
    };
}

macro_rules! symbol {
    () => {
        CharClass::Symbol | CharClass::Slash | CharClass::Apostrophe
    };
}

macro_rules! blank {
    () => {
        PieceState::Blank | PieceState::Blanks | PieceState::LineBlank | PieceState::LineBlanks
    };
}

macro_rules! space {
    () => {
        PieceState::Space | PieceState::Spaces | PieceState::LineSpace | PieceState::LineSpaces
    };
}

/// What distinguishes the two patterns.
struct SplitPattern {
    /// Whether words are divided by case. The pattern that does it (o200k_base) also counts marks among the letters,
    /// adds slashes to line breaks after symbols, makes a contraction part of its word, and cuts white space after its
    /// last line break even where the text ends.
    by_case: bool,
}

impl SplitPattern {
    const fn automaton(&self) -> Automaton {
        let mut automaton = Automaton { next: [[0; 256]; 32], end: [0; 256] };
        let mut state = 0;
        while state < STATES.len() {
            // What the last step did to the cuts does not matter any more.
            let mut step = STATES[state] as usize;
            while step < 256 {
                let mut class = 0;
                while class < CLASSES.len() {
                    automaton.next[CLASSES[class] as usize][step] = self.step(STATES[state], CLASSES[class]);
                    class += 1;
                }
                automaton.end[step] = self.end(STATES[state]);
                step += 32;
            }
            state += 1;
        }
        automaton
    }

    const fn step(&self, state: PieceState, class: CharClass) -> PackedStep {
        use PieceState::*;
        let class = self.seen(class);
        let first = self.first(class) as PackedStep;
        match (state, class) {
            (Word, lower!() | caseless!()) | (Capitals | Caseless, lower!()) => Word as PackedStep,
            (Capitals, upper!()) => Capitals as PackedStep,
            (Capitals | Caseless, caseless!()) => Caseless as PackedStep,
            (Caseless, upper!()) => CapitalsCutOff as PackedStep | CUT,
            (CapitalsCutOff, upper!()) => CapitalsCutOff as PackedStep,
            (CapitalsCutOff, lower!()) => Word as PackedStep | UNCUT,
            (CapitalsCutOff, caseless!()) => Caseless as PackedStep | UNCUT,
            (Word | Capitals | Caseless | CapitalsCutOff, CharClass::Apostrophe) => Apostrophe as PackedStep | CUT,

            (Apostrophe, CharClass::LowerS | CharClass::UpperS)
            | (ApostropheLowerR | ApostropheUpperR, CharClass::LowerE | CharClass::UpperE)
            | (ApostropheLowerL | ApostropheUpperL, CharClass::LowerL | CharClass::UpperL) => self.contraction(),
            (Apostrophe, CharClass::LowerR) => ApostropheLowerR as PackedStep,
            (Apostrophe, CharClass::UpperR) => ApostropheUpperR as PackedStep,
            (Apostrophe, CharClass::LowerL) => ApostropheLowerL as PackedStep,
            (Apostrophe, CharClass::UpperL) => ApostropheUpperL as PackedStep,
            (ApostropheLowerR | ApostropheLowerL, _) => self.step(Word, class),
            (ApostropheUpperR | ApostropheUpperL, _) => self.step(Capitals, class),

            (Digit, CharClass::Number) => Digits as PackedStep,
            (Digits, CharClass::Number) => Complete as PackedStep,

            (Symbol | Apostrophe, lower!() | upper!() | caseless!()) => first,
            (Symbol | Apostrophe | Symbols, symbol!()) | (Symbols, CharClass::Mark) => Symbols as PackedStep,
            (Symbol | Apostrophe | Symbols | SymbolsBreak, CharClass::Newline) => SymbolsBreak as PackedStep,
            (SymbolsBreak, CharClass::Slash) => SymbolsBreak as PackedStep,

            // The last character of white space goes to the word or, if it is U+0020, to the symbols that follow.
            (blank!() | space!(), lower!() | upper!() | caseless!()) => first,
            (blank!(), symbol!()) => Symbols as PackedStep,
            (Blank | Space, CharClass::Blank) => Blanks as PackedStep | CUT,
            (Blank | Space, CharClass::Space) => Spaces as PackedStep | CUT,
            (Blanks | Spaces, CharClass::Blank) => Blanks as PackedStep | UNCUT | CUT,
            (Blanks | Spaces, CharClass::Space) => Spaces as PackedStep | UNCUT | CUT,
            (Blank | Space | Break, CharClass::Newline) => Break as PackedStep,
            (Blanks | Spaces, CharClass::Newline) => Break as PackedStep | UNCUT,

            (Break, CharClass::Blank) => LineBlank as PackedStep | CUT,
            (Break, CharClass::Space) => LineSpace as PackedStep | CUT,
            (LineBlank | LineSpace, CharClass::Blank) => LineBlanks as PackedStep | CUT,
            (LineBlank | LineSpace, CharClass::Space) => LineSpaces as PackedStep | CUT,
            (LineBlanks | LineSpaces, CharClass::Blank) => LineBlanks as PackedStep | UNCUT | CUT,
            (LineBlanks | LineSpaces, CharClass::Space) => LineSpaces as PackedStep | UNCUT | CUT,
            (LineBlank | LineSpace, CharClass::Newline) => Break as PackedStep | UNCUT,
            (LineBlanks | LineSpaces, CharClass::Newline) => Break as PackedStep | UNCUT_TWO,

            _ => first | CUT,
        }
    }

    /// White space at the end of the text is not cut; by case, only after its last line break.
    const fn end(&self, state: PieceState) -> PackedStep {
        match state {
            PieceState::Blanks | PieceState::Spaces => UNCUT,
            PieceState::LineBlank | PieceState::LineSpace if !self.by_case => UNCUT,
            PieceState::LineBlanks | PieceState::LineSpaces if self.by_case => UNCUT,
            PieceState::LineBlanks | PieceState::LineSpaces => UNCUT_TWO,
            _ => 0,
        }
    }

    /// The class as the pattern sees it.
    const fn seen(&self, class: CharClass) -> CharClass {
        match class {
            _ if self.by_case => class,
            CharClass::Upper | CharClass::Caseless => CharClass::Lower,
            CharClass::UpperS => CharClass::LowerS,
            CharClass::UpperR => CharClass::LowerR,
            CharClass::UpperL => CharClass::LowerL,
            CharClass::UpperE => CharClass::LowerE,
            CharClass::Slash | CharClass::Mark => CharClass::Symbol,
            _ => class,
        }
    }

    /// The state after the first character of a piece; also after the first letter of a word that something precedes.
    const fn first(&self, class: CharClass) -> PieceState {
        match class {
            lower!() => PieceState::Word,
            upper!() => PieceState::Capitals,
            caseless!() => PieceState::Caseless,
            CharClass::Number => PieceState::Digit,
            CharClass::Apostrophe if !self.by_case => PieceState::Apostrophe,
            symbol!() => PieceState::Symbol,
            CharClass::Blank => PieceState::Blank,
            CharClass::Space => PieceState::Space,
            CharClass::Newline => PieceState::Break,
        }
    }

    const fn contraction(&self) -> PackedStep {
        if self.by_case { PieceState::Complete as PackedStep | UNCUT } else { PieceState::Complete as PackedStep }
    }
}

const STATES: &[PieceState] = <PieceState as strum::VariantArray>::VARIANTS;

const CLASSES: [CharClass; 19] = {
    use CharClass::*;
    [
        Symbol, Slash, Apostrophe, Lower, LowerS, LowerR, LowerL, LowerE, Upper, UpperS, UpperR, UpperL, UpperE,
        Caseless, Mark, Number, Blank, Space, Newline,
    ]
};
