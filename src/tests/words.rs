//! How texts fall into words.

use crate::base::words::{hash, terms, words};

fn texts<'a>(pieces: impl Iterator<Item = crate::base::words::TextWord<'a>>) -> Vec<(String, usize)> {
    pieces.map(|piece| (piece.text().into_owned(), piece.start_chars)).collect()
}

fn owned(expected: &[(&str, usize)]) -> Vec<(String, usize)> {
    expected.iter().map(|&(text, at)| (text.to_owned(), at)).collect()
}

#[test]
fn terms_keep_underscores_and_have_three_bytes() {
    let found = texts(terms("Run get_weather in NY, é is 2 bytes; éa is three"));
    let expected = [("run", 0), ("get_weather", 4), ("bytes", 30), ("éa", 37), ("three", 43)];
    assert_eq!(found, owned(&expected));
}

#[test]
fn words_split_at_humps_and_need_two_characters() {
    let found = texts(words("mcp__gitHub__listPRs HTTPServer x sha256Sum é éa"));
    let expected = [
        ("mcp", 0),
        ("git", 5),
        ("hub", 8),
        ("list", 13),
        ("rs", 18),
        ("http", 21),
        ("server", 25),
        ("sha256", 34),
        ("sum", 40),
        ("éa", 46),
    ];
    assert_eq!(found, owned(&expected));
}

#[test]
fn a_hash_does_not_see_case() {
    assert_eq!(hash("Weather"), hash("weather"));
    assert_eq!(hash("weather"), xxhash_rust::xxh3::xxh3_64(b"weather"));
    assert_ne!(hash("weather"), hash("weathers"));
}

#[test]
fn texts_without_words_have_none() {
    for text in ["", " \n", "…—!", "a b c"] {
        assert_eq!((terms(text).count(), words(text).count()), (0, 0), "{text:?}");
    }
}
