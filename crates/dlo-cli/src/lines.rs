//! Reading lines with a bound: a line that is too long is skipped without being kept, and the next one is read.

use std::io::{self, BufRead};

/// What some editors and exports put before the first line of a UTF-8 file; it is no part of it.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One line of the input.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Its bytes, without the line end.
    Text(Vec<u8>),
    /// It has this many bytes, more than the bound.
    TooLong(u64),
}

impl Line {
    /// Bytes that are kept of it.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(bytes) => bytes.len(),
            Self::TooLong(_) => 0,
        }
    }
}

/// Reads lines of at most `limit` bytes.
pub(crate) struct Lines<R> {
    input: R,
    limit: usize,
    number: u64,
}

impl<R: BufRead> Lines<R> {
    /// Reads from there.
    pub(crate) fn new(input: R, limit: usize) -> Self {
        Self { input, limit, number: 0 }
    }

    /// The next line with its number, from 1. Blank lines are numbered but not returned.
    pub(crate) fn next(&mut self) -> io::Result<Option<(u64, Line)>> {
        loop {
            let Some(mut line) = self.read_line()? else { return Ok(None) };
            self.number += 1;
            if let (1, Line::Text(bytes)) = (self.number, &mut line)
                && bytes.starts_with(BYTE_ORDER_MARK)
            {
                bytes.drain(..BYTE_ORDER_MARK.len());
            }
            match &line {
                Line::Text(bytes) if bytes.iter().all(u8::is_ascii_whitespace) => {}
                _ => return Ok(Some((self.number, line))),
            }
        }
    }

    fn read_line(&mut self) -> io::Result<Option<Line>> {
        let mut kept = Vec::new();
        let mut seen: u64 = 0;
        let mut any = false;
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                break;
            }
            any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            seen += part.len() as u64;
            if seen <= self.limit as u64 {
                kept.extend_from_slice(part);
            } else {
                kept = Vec::new();
            }
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        if seen > self.limit as u64 {
            return Ok(Some(Line::TooLong(seen)));
        }
        if kept.last() == Some(&b'\r') {
            kept.pop();
        }
        Ok(Some(Line::Text(kept)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str, limit: usize, buffer: usize) -> Vec<(u64, Line)> {
        let mut lines = Lines::new(io::BufReader::with_capacity(buffer, text.as_bytes()), limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next().expect("reading from memory") {
            found.push(line);
        }
        found
    }

    #[test]
    fn long_lines_are_skipped_and_the_next_is_read() {
        for buffer in [1, 3, 64] {
            let text = |text: &str| Line::Text(text.as_bytes().to_vec());
            assert_eq!(
                all("ab\r\n\n  \n123456789\nlast", 4, buffer),
                [(1, text("ab")), (4, Line::TooLong(9)), (5, text("last"))]
            );
        }
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_the_first_line() {
        let text = |text: &str| Line::Text(text.as_bytes().to_vec());
        assert_eq!(all("\u{feff}a\n\u{feff}b\n", 8, 2), [(1, text("a")), (2, text("\u{feff}b"))]);
        assert_eq!(all("\u{feff}\r\nb", 8, 2), [(2, text("b"))]);
    }

    #[test]
    fn a_line_of_exactly_the_limit_is_kept() {
        assert_eq!(all("1234\n12345\n", 4, 2), [(1, Line::Text(b"1234".to_vec())), (2, Line::TooLong(5))]);
    }
}
