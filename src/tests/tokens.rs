//! Token counts against the reference implementation, and the promises made about them.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::sync::LazyLock;

use fancy_regex::Regex;
use proptest::prelude::*;
use tiktoken_rs::{CoreBPE, O200K_BASE_PAT_STR};

use crate::base::tokenizer::{Bpe, Counting, Size};
use crate::facts::tokens::automaton::Automaton;
use crate::facts::tokens::splitter::Splitter;
use crate::facts::tokens::{Counter, PieceKey, automaton, last_cut, merges};
use crate::tests::log_builder::cases;

static O200K_BASE: LazyLock<CoreBPE> = LazyLock::new(|| tiktoken_rs::o200k_base().unwrap());
static CL100K_BASE: LazyLock<CoreBPE> = LazyLock::new(|| tiktoken_rs::cl100k_base().unwrap());

thread_local! {
    /// Kept, so that what they remember is tested as well.
    static COUNTERS: RefCell<[Counter; 2]> =
        RefCell::new([Counter::new(Bpe::O200kBase), Counter::new(Bpe::Cl100kBase)]);
}

fn counts(text: &str) -> [u64; 2] {
    COUNTERS.with_borrow_mut(|counters| counters.each_mut().map(|counter| counter.count(text)))
}

fn reference_counts(text: &str) -> [u64; 2] {
    [&O200K_BASE, &CL100K_BASE].map(|reference| reference.encode_ordinary(text).len() as u64)
}

fn pieces<'t>(text: &'t str, automaton: &'static Automaton) -> Vec<&'t str> {
    let mut pieces = Vec::new();
    Splitter::new(automaton).split(text, |start, end| pieces.push(&text[start..end]));
    pieces
}

fn assert_split_like_the_patterns(text: &str) {
    static O200K_BASE: LazyLock<Regex> = LazyLock::new(|| Regex::new(O200K_BASE_PAT_STR).unwrap());
    static CL100K_BASE: LazyLock<Regex> = LazyLock::new(|| {
        let words = r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+";
        Regex::new(&format!(r"{words}|\s++$|\s*[\r\n]|\s+(?!\S)|\s")).unwrap()
    });
    let patterns = [(&O200K_BASE, &automaton::O200K_BASE), (&CL100K_BASE, &automaton::CL100K_BASE)];
    for (pattern, automaton) in patterns {
        let expected: Vec<&str> = pattern.find_iter(text).map(|found| found.unwrap().as_str()).collect();
        assert_eq!(pieces(text, automaton), expected, "{text:?}");
    }
}

/// At least one of everything that the splitting patterns treat in a way of its own.
const FRAGMENTS: [&str; 96] = [
    "a",
    "b",
    "d",
    "e",
    "l",
    "m",
    "r",
    "s",
    "t",
    "v",
    "z",
    "A",
    "B",
    "D",
    "E",
    "L",
    "M",
    "R",
    "S",
    "T",
    "V",
    "Z",
    "0",
    "1",
    "23",
    "456",
    "7890",
    " ",
    "  ",
    "   ",
    "\t",
    "\n",
    "\n\n",
    "\r",
    "\r\n",
    "\u{b}",
    "\u{c}",
    "\u{85}",
    "\u{a0}",
    "\u{2003}",
    "\u{2028}",
    "\u{3000}",
    "'",
    "''",
    "'s",
    "'LL",
    "'Re",
    "'vE",
    "'\u{17f}",
    "\u{17f}",
    "/",
    "//",
    "\"",
    "\\",
    ".",
    ",",
    ";",
    "(",
    ")",
    "{",
    "}",
    "-",
    "--",
    "_",
    "==",
    "#",
    "\0",
    "\u{7f}",
    "\u{301}",
    "\u{20dd}",
    "\u{903}",
    "é",
    "É",
    "ß",
    "Σ",
    "ж",
    "Ж",
    "中",
    "文",
    "の",
    "한",
    "ʰ",
    "ǅ",
    "ª",
    "٣",
    "²",
    "Ⅷ",
    "½",
    "😀",
    "👍🏽",
    "👨\u{200d}👩",
    "→",
    "…",
    "\u{feff}",
    "\u{e000}",
    "<|endoftext|>",
];

const WORDS: [&str; 20] = [
    "the",
    "The",
    "THE",
    "function",
    "return",
    "HTTPServer",
    "getElementById",
    "self",
    "Привет",
    "Москва",
    "日本語",
    "東京",
    "안녕하세요",
    "naïve",
    "<|im_start|>",
    "https://",
    "const",
    "'re",
    "café",
    "सत्य",
];

/// Text of one alphabet or of several mixed, with repetitions.
fn any_text() -> impl Strategy<Value = String> {
    let fragment = (
        prop_oneof![
            6 => prop::sample::select(&FRAGMENTS[..]).prop_map(str::to_owned),
            2 => prop::sample::select(&WORDS[..]).prop_map(str::to_owned),
            1 => any::<char>().prop_map(String::from),
            1 => "[ -~]{1,8}",
        ],
        prop_oneof![8 => Just(1), 1 => 2..40_usize],
    );
    prop::collection::vec(fragment.prop_map(|(text, times)| text.repeat(times)), 0..24)
        .prop_map(|fragments| fragments.concat())
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn text_is_split_like_the_patterns(text in any_text()) {
        assert_split_like_the_patterns(&text);
    }

    #[test]
    fn counts_are_those_of_the_reference(text in any_text()) {
        prop_assert_eq!(counts(&text), reference_counts(&text));
    }

    #[test]
    fn counts_add_up_between_numbered_lines(
        before in any_text(),
        newline in prop::sample::select(&["\n", "\r\n", " \n", "\n\n", ";\n", "\n \n"][..]),
        blanks in "[ \t\u{a0}]{0,6}",
        number in "[0-9]{1,6}",
        arrow in prop::sample::select(&["→", "\t", ": ", "", " /"][..]),
        after in any_text(),
    ) {
        let before = before + newline;
        let after = blanks + &number + arrow + &after;
        let [o200k, cl100k] = counts(&before);
        let [o200k_after, cl100k_after] = counts(&after);
        prop_assert_eq!(counts(&(before + &after)), [o200k + o200k_after, cl100k + cl100k_after]);
    }

    #[test]
    fn counts_add_up_at_any_line_that_is_indented_or_begins_with_no_slash(
        before in any_text(),
        blanks in "[ \t\u{a0}]{0,3}",
        first in any::<char>(),
        after in any_text(),
    ) {
        prop_assume!(!first.is_whitespace() && (first != '/' || !blanks.is_empty()));
        let before = before + "\n";
        let after = format!("{blanks}{first}{after}");
        let [o200k, cl100k] = counts(&before);
        let [o200k_after, cl100k_after] = counts(&after);
        prop_assert_eq!(counts(&(before + &after)), [o200k + o200k_after, cl100k + cl100k_after]);
    }

    #[test]
    fn counts_add_up_at_the_last_cut_whatever_follows(start in any_text(), end in any_text()) {
        let whole = start.clone() + &end;
        for cut in (0..=start.len()).filter(|&cut| last_cut(&start.as_bytes()[..cut]).is_some_and(|at| at + 1 == cut)) {
            let (before, after) = whole.split_at(cut - 1);
            let ([o200k, cl100k], [o200k_after, cl100k_after]) = (counts(before), counts(after));
            prop_assert_eq!(counts(&whole), [o200k + o200k_after, cl100k + cl100k_after], "{:?} | {:?}", before, after);
        }
    }

    #[test]
    fn windows_do_not_change_the_count(
        fragments in prop::collection::vec((prop::sample::select(&FRAGMENTS[..]), 1..100_usize), 1..12),
        window_bytes in 256..512_usize,
    ) {
        let text: String = fragments.iter().map(|(text, times)| text.repeat(*times)).collect();
        for vocabulary in [&merges::O200K_BASE, &merges::CL100K_BASE] {
            let whole = merges::count_long(vocabulary, text.as_bytes(), text.len());
            prop_assert_eq!(merges::count_long(vocabulary, text.as_bytes(), window_bytes), whole);
        }
    }
}

#[test]
fn any_two_neighbours_are_split_like_the_patterns() {
    for first in FRAGMENTS {
        for second in FRAGMENTS {
            // What comes before and after decides how the two are read.
            assert_split_like_the_patterns(&format!("x{first}{second}y \n {first}{second}"));
        }
    }
}

#[test]
fn known_counts() {
    for (text, o200k, cl100k) in [
        ("", 0, 0),
        ("hello world", 2, 2),
        ("tiktoken is great!", 6, 6),
        ("antidisestablishmentarianism", 6, 6),
        ("2 + 2 = 4", 7, 7),
        ("お誕生日おめでとう", 8, 9),
        ("<|endoftext|>", 7, 7),
        ("it's IT'S it'ſ", 6, 8),
        ("1234567", 3, 3),
        ("x;\n/y", 3, 3),
        ("    fn main() {\n        println!(\"hi\");\n    }\n", 12, 12),
        ("Привет, мир", 4, 6),
        ("👍🏽 👩\u{200d}💻", 8, 12),
        ("   12→text\n", 6, 6),
    ] {
        assert_eq!(counts(text), [o200k, cl100k], "{text:?}");
    }
}

#[test]
fn counts_need_not_add_up_elsewhere() {
    let whole = |text| counts(text)[0];
    assert_ne!(whole("x;\n/ y"), whole("x;\n") + whole("/ y"));
    assert_ne!(whole("x\n\ny"), whole("x\n") + whole("\ny"));
}

#[test]
fn no_two_similar_pieces_are_taken_for_one_another() {
    let zeros = [0; 15];
    let mut pieces = BTreeSet::new();
    for length in 1..=zeros.len() {
        for at in 0..length {
            for byte in 0..=u8::MAX {
                let mut piece = zeros[..length].to_vec();
                piece[at] = byte;
                pieces.insert(piece.clone());
                piece[length / 2] ^= 0x41;
                pieces.insert(piece);
            }
        }
    }
    let keys: HashSet<PieceKey> = pieces.iter().filter_map(|piece| PieceKey::new(piece)).collect();
    assert_eq!(keys.len(), pieces.len());
}

#[test]
fn one_huge_piece_is_no_trouble() {
    const BYTES: usize = 1 << 15;
    for (unit, tokens) in
        [("a", BYTES / 8), (" ", BYTES / 128), ("=", BYTES / 64), ("中", BYTES / 3), ("😀", BYTES / 4)]
    {
        let text = unit.repeat(BYTES / unit.len());
        assert_eq!(counts(&text)[0], tokens as u64, "{unit:?}");
    }
    // White space that cannot be cut before its end has been seen.
    assert_eq!(counts(&"\n   ".repeat(BYTES / 4))[0], BYTES as u64 / 4);
}

#[test]
fn ratio_rounds_up_and_mends_the_ratio() {
    let ratio = |bytes, per_token| Counting::new(Bpe::Heuristic, per_token).tokens(&Size { bytes, tokens: [0; 2] });
    assert_eq!(ratio(0, 3.5), 0);
    assert_eq!(ratio(5, 3.5), 2);
    assert_eq!(ratio(8, 3.8), 3);
    assert_eq!(ratio(8, 4.0), 2);
    assert_eq!(ratio(28_000, 3.5), 8_000);
    for unusable in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(ratio(28_000, unusable), 8_000);
    }
}
