//! Lines of a stream: the same as splitting the whole, whatever the reader hands out, in bounded memory.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read};
use std::sync::mpsc;
use std::time::Duration;

use proptest::prelude::*;

use crate::base::lines::{LINE_BYTES_MAX, LineBuffer, LineReader, ReadLine};
use crate::tests::log_builder::cases;

/// The usual size of the buffer; lines around it are where mistakes would be.
const BUFFER: usize = 512 << 10;
/// A line that needs a large buffer.
const LARGE: usize = 9 << 20;

/// Hands out a byte string in pieces of the given sizes, over and over.
struct Chunks<'a> {
    data: &'a [u8],
    sizes: &'a [usize],
    turn: usize,
}

impl<'a> Chunks<'a> {
    fn new(data: &'a [u8], sizes: &'a [usize]) -> Self {
        Self { data, sizes, turn: 0 }
    }
}

impl Read for Chunks<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let size = self.sizes[self.turn % self.sizes.len()].min(out.len());
        self.turn += 1;
        (&mut self.data).take(size as u64).read(out)
    }
}

/// Hands out runs of one byte without holding them, and failures between them.
struct Script(VecDeque<Step>);

enum Step {
    Run(u8, usize),
    Fail(ErrorKind),
}

impl Read for Script {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.front_mut() {
            None => Ok(0),
            Some(Step::Run(byte, left)) => {
                let size = out.len().min(*left);
                out[..size].fill(*byte);
                *left -= size;
                if *left == 0 {
                    self.0.pop_front();
                }
                Ok(size)
            }
            Some(Step::Fail(kind)) => {
                let kind = *kind;
                self.0.pop_front();
                Err(kind.into())
            }
        }
    }
}

/// Text as a script; `~` stands for a failure of the given kind.
fn script(text: &str, kind: ErrorKind) -> Script {
    Script(text.bytes().map(|byte| if byte == b'~' { Step::Fail(kind) } else { Step::Run(byte, 1) }).collect())
}

fn runs(steps: &[(u8, usize)]) -> Script {
    Script(steps.iter().map(|&(byte, size)| Step::Run(byte, size)).collect())
}

/// What a line looked like: its length, its first byte, whether a line feed followed; no length for an oversize one.
type Seen = (Option<usize>, u8, bool);

fn seen(line: &ReadLine<'_>) -> Seen {
    let first = line.bytes.and_then(|bytes| bytes.first().copied());
    (line.bytes.map(<[u8]>::len), first.unwrap_or(0), line.terminated)
}

fn all<R: Read>(mut lines: LineReader<'_, R>) -> Vec<(Seen, u64)> {
    let mut out = Vec::new();
    while let Some(line) = lines.next_line().unwrap() {
        let line = seen(&line);
        out.push((line, lines.offset()));
    }
    out
}

/// Compares with splitting the whole at once.
fn check(data: &[u8], sizes: &[usize]) -> Result<(), TestCaseError> {
    let mut buffer = LineBuffer::default();
    let mut lines = LineReader::new(Chunks::new(data, sizes), &mut buffer);
    let mut offset = 0;
    for expected in data.split_inclusive(|&byte| byte == b'\n') {
        prop_assert_eq!(lines.offset(), offset);
        let Some(ReadLine { bytes: Some(bytes), terminated }) = lines.next_line().unwrap() else {
            return Err(TestCaseError::fail("a line is missing"));
        };
        prop_assert_eq!(terminated, expected.ends_with(b"\n"));
        prop_assert!(bytes == expected.strip_suffix(b"\n").unwrap_or(expected));
        offset += expected.len() as u64;
    }
    prop_assert!(lines.next_line().unwrap().is_none());
    prop_assert!(lines.next_line().unwrap().is_none(), "the end stays the end");
    prop_assert_eq!(lines.offset(), data.len() as u64);
    Ok(())
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn lines_are_what_splitting_gives(
        data in prop::collection::vec(prop::sample::select(b"ab\n\r\0\xFF".to_vec()), 0..200),
        sizes in prop::collection::vec(1_usize..9, 1..5),
    ) {
        check(&data, &sizes)?;
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn long_lines_are_what_splitting_gives(
        lengths in prop::collection::vec(
            prop_oneof![0_usize..4, BUFFER - 3..BUFFER + 3, BUFFER / 2 - 2..BUFFER / 2 + 2, Just(2 * BUFFER), Just(5 * BUFFER / 2)],
            1..5,
        ),
        sizes in prop::collection::vec(prop_oneof![1_usize..5, 60_000_usize..70_000, Just(usize::MAX)], 1..4),
        ends in any::<bool>(),
    ) {
        let letters = (b'a'..=b'z').cycle();
        let mut data: Vec<u8> =
            lengths.iter().zip(letters).flat_map(|(length, letter)| [vec![letter; *length], vec![b'\n']].concat()).collect();
        if !ends {
            data.pop();
        }
        // Single bytes only where they are few.
        let sizes: Vec<usize> = sizes.into_iter().chain([70_000]).collect();
        check(&data, &sizes)?;
    }

    #[test]
    fn passing_over_goes_on_behind_the_next_line_feed(
        head in 0_usize..2 * BUFFER,
        tail in prop::collection::vec(prop::sample::select(b"ab\n".to_vec()), 0..40),
    ) {
        let data = [vec![b'x'; head], vec![b'\n'], tail.clone()].concat();
        let mut buffer = LineBuffer::default();
        let mut lines = LineReader::new(data.as_slice(), &mut buffer);
        prop_assert!(lines.pass_over(u64::MAX).unwrap());
        prop_assert_eq!(lines.offset(), head as u64 + 1);
        let rest = all(lines);
        let mut other = LineBuffer::default();
        let expected: Vec<Seen> = all(LineReader::new(tail.as_slice(), &mut other)).into_iter().map(|(line, _)| line).collect();
        prop_assert_eq!(rest.into_iter().map(|(line, _)| line).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn passing_over_gives_up_behind_the_limit_and_at_the_end() {
    let mut buffer = LineBuffer::default();
    let mut lines = LineReader::new(runs(&[(b'x', 4 * BUFFER), (b'\n', 1)]), &mut buffer);
    assert!(!lines.pass_over(BUFFER as u64).unwrap());
    assert!((BUFFER as u64..4 * BUFFER as u64).contains(&lines.offset()));
    drop(lines);
    let mut lines = LineReader::new(runs(&[(b'x', BUFFER)]), &mut buffer);
    assert!(!lines.pass_over(u64::MAX).unwrap());
    assert_eq!(lines.offset(), BUFFER as u64);
    assert!(lines.next_line().unwrap().is_none());
}

#[test]
fn a_line_at_the_limit_is_read_and_a_longer_one_is_passed_over() {
    let mut buffer = LineBuffer::default();
    let source = runs(&[(b'a', LINE_BYTES_MAX), (b'\n', 1), (b'b', LINE_BYTES_MAX + 1), (b'\n', 1), (b'c', 2)]);
    let limit = LINE_BYTES_MAX as u64;
    let expected = [
        ((Some(LINE_BYTES_MAX), b'a', true), limit + 1),
        ((None, 0, true), 2 * limit + 3),
        ((Some(2), b'c', false), 2 * limit + 5),
    ];
    assert_eq!(all(LineReader::new(source, &mut buffer)), expected);
}

#[test]
fn a_last_line_over_the_limit_is_passed_over_too() {
    let mut buffer = LineBuffer::default();
    let source = runs(&[(b'b', LINE_BYTES_MAX + 600_000)]);
    assert_eq!(all(LineReader::new(source, &mut buffer)), [((None, 0, false), LINE_BYTES_MAX as u64 + 600_000)]);
}

#[test]
fn a_buffer_shrinks_behind_a_long_line_and_lets_the_next_worker_have_its_turn() {
    let (report, done) = mpsc::channel();
    let mut buffer = LineBuffer::default();
    let short = [(b'b', BUFFER), (b'\n', 1)];
    let mut lines =
        LineReader::new(runs(&[[(b'a', LARGE), (b'\n', 1)].as_slice(), &short.repeat(40)].concat()), &mut buffer);
    assert_eq!(seen(&lines.next_line().unwrap().unwrap()), (Some(LARGE), b'a', true));
    // More than the large buffer can have taken in behind the long line.
    for _ in 0..39 {
        assert_eq!(seen(&lines.next_line().unwrap().unwrap()), (Some(BUFFER), b'b', true));
    }
    // This reader is still alive. Had it kept its large buffer, the next one would wait for it.
    let worker = std::thread::spawn(move || {
        let mut buffer = LineBuffer::default();
        let lines = all(LineReader::new(runs(&[(b'd', LARGE), (b'\n', 1)]), &mut buffer));
        report.send(lines.len()).unwrap();
    });
    assert_eq!(done.recv_timeout(Duration::from_secs(10)), Ok(1));
    assert_eq!(seen(&lines.next_line().unwrap().unwrap()), (Some(BUFFER), b'b', true));
    assert!(lines.next_line().unwrap().is_none());
    worker.join().unwrap();
}

#[test]
fn a_buffer_forgets_the_file_before() {
    let mut buffer = LineBuffer::default();
    let mut lines = LineReader::new(b"old\nrest of the old file".as_slice(), &mut buffer);
    assert_eq!(seen(&lines.next_line().unwrap().unwrap()), (Some(3), b'o', true));
    drop(lines);
    assert_eq!(all(LineReader::new(b"new\n".as_slice(), &mut buffer)), [((Some(3), b'n', true), 4)]);
    assert_eq!(all(LineReader::new(b"".as_slice(), &mut buffer)), []);
}

#[test]
fn an_interrupted_read_is_tried_again() {
    let mut buffer = LineBuffer::default();
    let source = script("~a~b\n~~c~", ErrorKind::Interrupted);
    assert_eq!(all(LineReader::new(source, &mut buffer)), [((Some(2), b'a', true), 3), ((Some(1), b'c', false), 4)]);
}

#[test]
fn an_error_ends_the_stream_behind_the_lines_that_came_before_it() {
    let mut buffer = LineBuffer::default();
    let mut lines = LineReader::new(script("one\ntwo\nthr~", ErrorKind::UnexpectedEof), &mut buffer);
    let mut before = Vec::new();
    let error = loop {
        match lines.next_line() {
            Ok(Some(line)) => before.push(seen(&line)),
            Ok(None) => break None,
            Err(error) => break Some(error.kind()),
        }
    };
    assert_eq!(error, Some(ErrorKind::UnexpectedEof));
    assert_eq!(before, [(Some(3), b'o', true), (Some(3), b't', true)]);
}
