//! A paragraph with a hanging indent: on a terminal it is wrapped to its width, elsewhere it is one line.

use crate::base::visible::visible;

/// `first` stands before the first line, and as many blanks before the others. Ends with a line feed.
pub fn paragraph(first: &str, text: &str, width: Option<u16>) -> String {
    let text = visible(text);
    let indent = first.chars().count();
    let Some(width) = width.map(usize::from).filter(|width| *width > indent + LEAST) else {
        return format!("{first}{text}\n");
    };
    let mut out = first.to_owned();
    let mut column = indent;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > indent && column + 1 + length > width {
            out.push('\n');
            out.push_str(&" ".repeat(indent));
            column = indent;
        } else if column > indent {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += length;
    }
    out.push('\n');
    out
}

/// Columns behind the indent below which wrapping makes nothing easier to read.
const LEAST: usize = 20;
