//! Patterns of JSON Schemas, which are JavaScript's, for the engine that is here.

use regex::Regex;

/// A pattern, compiled: `\d` and its kin are ASCII there, and brackets inside a class stand for themselves. None if it
/// cannot be matched here: it looks ahead or behind, or names an earlier group.
pub fn compiled(pattern: &str) -> Option<Regex> {
    let mut text = String::with_capacity(pattern.len());
    let mut in_class = false;
    let mut chars = pattern.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '\\' => text.push_str(&escape(chars.next(), in_class)),
            '[' if !in_class => {
                in_class = true;
                text.push('[');
                if chars.next_if_eq(&'^').is_some() {
                    text.push('^');
                }
            }
            ']' if in_class => {
                in_class = false;
                text.push(']');
            }
            '[' | '&' | '~' if in_class => text.extend(['\\', char]),
            _ => text.push(char),
        }
    }
    Regex::new(&text).ok()
}

fn escape(char: Option<char>, in_class: bool) -> String {
    let class = |inside: &str| if in_class { inside.to_owned() } else { format!("[{inside}]") };
    match char {
        None => "\\".to_owned(),
        Some('d') => class("0-9"),
        Some('w') => class("0-9A-Za-z_"),
        Some('D') => "[^0-9]".to_owned(),
        Some('W') => "[^0-9A-Za-z_]".to_owned(),
        Some('/') => "/".to_owned(),
        Some('b') if in_class => "\\x08".to_owned(),
        Some(char) => format!("\\{char}"),
    }
}
