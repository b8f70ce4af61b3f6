//! The last lines of a stream of bytes.

use std::collections::VecDeque;

/// Garbage kept before compaction, in bytes: a fraction of a log chunk.
const SLACK_BYTES: usize = 64 << 10;

/// Keeps the last `lines` lines; a last line without a newline counts.
#[derive(Debug)]
pub(super) struct LastLines {
    lines: usize,
    bytes: Vec<u8>,
    /// Offset in `bytes` of the last lines.
    start: usize,
    /// Offsets in `bytes` of the ends of lines from `start` on.
    ends: VecDeque<usize>,
    /// Total number of bytes pushed.
    pushed_bytes: u64,
    /// Lines were dropped.
    cut: bool,
}

impl LastLines {
    pub(super) fn new(lines: u32) -> Self {
        Self {
            lines: usize::try_from(lines).unwrap_or(usize::MAX),
            bytes: Vec::new(),
            start: 0,
            ends: VecDeque::new(),
            pushed_bytes: 0,
            cut: false,
        }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.pushed_bytes += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let newlines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let before = self.bytes.len();
        self.ends
            .extend(newlines.map(|(position, _)| before + position));
        self.bytes.extend_from_slice(bytes);
        while self.count() > self.lines {
            self.start = match self.ends.pop_front() {
                Some(end) => end + 1,
                None => self.bytes.len(),
            };
            self.cut = true;
        }
        if self.start > SLACK_BYTES && self.start > self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            for end in &mut self.ends {
                *end -= self.start;
            }
            self.start = 0;
        }
    }

    /// Counts the kept lines.
    fn count(&self) -> usize {
        let unended = self.kept().last().is_some_and(|byte| *byte != b'\n');
        self.ends.len() + usize::from(unended)
    }

    /// Tells whether the kept lines are complete, regardless of earlier output.
    pub(super) fn is_full(&self) -> bool {
        self.cut
    }

    pub(super) fn pushed_bytes(&self) -> u64 {
        self.pushed_bytes
    }

    pub(super) fn kept(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_lines_do_not_accumulate() {
        let mut last = LastLines::new(2);
        for number in 0..100_000 {
            last.push(format!("line {number}\n").as_bytes());
        }
        assert_eq!(last.kept(), b"line 99998\nline 99999\n");
        assert!(last.bytes.len() < 4 * SLACK_BYTES, "{}", last.bytes.len());
    }

    #[test]
    fn the_last_lines_are_kept_whatever_the_pieces() {
        let table: [(u32, &str, &str, bool); 8] = [
            (2, "a\nb\nc\n", "b\nc\n", true),
            (2, "a\nb\nc", "b\nc", true),
            (2, "b\nc\n", "b\nc\n", false),
            (1, "a\n\n", "\n", true),
            (9, "a\nb\n", "a\nb\n", false),
            (0, "a\nb\n", "", true),
            (1, "", "", false),
            (3, "\n\n\n\n", "\n\n\n", true),
        ];
        for (lines, text, expected, full) in table {
            for size in 1..=text.len().max(1) {
                let mut last = LastLines::new(lines);
                for piece in text.as_bytes().chunks(size) {
                    last.push(piece);
                }
                assert_eq!(
                    last.kept(),
                    expected.as_bytes(),
                    "{lines} of {text:?} by {size}"
                );
                assert_eq!(last.is_full(), full, "{lines} of {text:?} by {size}");
                assert_eq!(last.pushed_bytes(), text.len() as u64);
            }
        }
    }
}
