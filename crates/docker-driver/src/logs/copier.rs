//! Writer of a container's output that a new run of the agent continues without loss or doubles.
//!
//! The stored position names the engine's last message of each stream that was written before it, by time
//! and count, and the length of the log files then. After a restart, messages up to that one are skipped; of
//! the following ones, as many bytes as the files have grown since, because they were written and the
//! position was not stored any more.
//!
//! Times grow within a stream, and the engine orders the two streams by chance. So a message that is older
//! than the last one of its stream is a repeat: Docker's follower sends old messages again when the engine
//! rotates its log. The exception is a clock that was set back. Of equal time are the parts of a long line, and
//! with podman, whose times are whole seconds, many messages.

use std::path::PathBuf;

use task_drivers::log_files::{self, LogStream, RotatingLog};

use super::position::{Last, Moment, Position};
use crate::records::{self, LogFiles};

#[cfg(test)]
mod tests;

const STREAMS: [LogStream; 2] = [LogStream::Stdout, LogStream::Stderr];

pub(crate) struct Copier {
    file: PathBuf,
    position: Position,
    logs: [RotatingLog; 2],
    /// The newest lines of this answer, in the order of [`STREAMS`].
    lines: [Line; 2],
    /// The messages to skip to where the engine repeats some, in the same order.
    skip_to: [Last; 2],
    /// The answer that is read now begins with a known message, unless the engine removed it since.
    expects_known: bool,
    lacks_messages: bool,
    /// Bytes that the files have already, in the order of [`STREAMS`].
    skip_bytes: [u64; 2],
}

/// The messages of a stream's last time.
#[derive(Default)]
struct Line {
    first: Vec<u8>,
    is_complete: bool,
}

impl Line {
    /// Returns whether a message of the same time repeats the first one. Another part continues an incomplete
    /// line, and whole seconds tell nothing.
    fn is_repeated(&self, at: Moment, bytes: &[u8]) -> bool {
        self.is_complete && at.nanosecond != 0 && self.first == bytes
    }
}

impl Copier {
    /// Continues at the stored position; without one, at the end of the files.
    pub(crate) fn open(files: &LogFiles, file: PathBuf, stored: Option<Position>) -> Self {
        let logs = STREAMS.map(|stream| {
            RotatingLog::new(
                &files.directory,
                &files.task,
                stream,
                files.max_files,
                files.max_file_bytes,
            )
            .begin()
        });
        let is_new = stored.is_none();
        let position = stored.unwrap_or_else(|| Position {
            files: [logs[0].position(), logs[1].position()],
            ..Position::default()
        });
        let grown = |index: usize| {
            let (directory, task) = (&files.directory, &files.task);
            log_files::bytes_since(directory, task, STREAMS[index], position.files[index])
        };
        let copier = Self {
            file,
            lines: Default::default(),
            skip_to: [Last::default(); 2],
            expects_known: false,
            lacks_messages: false,
            skip_bytes: [grown(0), grown(1)],
            logs,
            position,
        };
        if is_new {
            // Before the first byte: its length counts from here.
            copier.store();
        }
        copier
    }

    /// Begins another answer of the engine, and returns the second to request it from.
    pub(crate) fn resume(&mut self) -> i32 {
        self.skip_to = self.position.last;
        self.lines = Default::default();
        let newest = self.position.last.iter().filter_map(|last| last.at).max();
        // Bytes behind the position stand for messages whose times are not known.
        self.expects_known = newest.is_some() && self.skip_bytes == [0, 0];
        // One more: the last message of the other stream may be slightly older.
        let second = newest.map_or(0, |at| at.second - 1);
        i32::try_from(second).unwrap_or(0)
    }

    /// Writes messages, each with its time in front, at the time `now`. Returns a write error.
    pub(crate) fn write(
        &mut self,
        frames: &[(LogStream, Vec<u8>)],
        now: Moment,
    ) -> Option<std::io::Error> {
        let mut problem = None;
        for (stream, frame) in frames {
            let (at, mut bytes) = split(frame);
            let index = usize::from(*stream == LogStream::Stderr);
            let is_known = at.is_some_and(|at| self.is_known(index, (at, bytes), now));
            self.lacks_messages |= self.expects_known && at.is_some() && !is_known;
            self.expects_known &= at.is_none();
            if is_known {
                continue;
            }
            let skipped = usize::try_from(self.skip_bytes[index]).unwrap_or(usize::MAX);
            let skipped = skipped.min(bytes.len());
            bytes = &bytes[skipped..];
            self.skip_bytes[index] -= u64::try_from(skipped).unwrap_or(0);
            if let Some(error) = self.logs[index].write(bytes) {
                problem = Some(error);
            }
        }
        problem
    }

    /// Returns once, for an answer that lacks its last known message, that the engine has removed it, and
    /// most likely messages after it.
    pub(crate) fn take_gap(&mut self) -> bool {
        std::mem::take(&mut self.lacks_messages)
    }

    /// Counts a message, and returns whether it was written before.
    fn is_known(&mut self, index: usize, (at, bytes): (Moment, &[u8]), now: Moment) -> bool {
        let line = &mut self.lines[index];
        let last = &mut self.position.last[index];
        let skip_to = &mut self.skip_to[index];
        // With a last message of the future the clock was set back, and older messages are new.
        if last.at.is_some_and(|newest| at < newest && newest <= now) {
            // Those of the last message's time are repeated after the older ones.
            *skip_to = *last;
            return true;
        }
        if skip_to.at == Some(at) && skip_to.count > 0 {
            skip_to.count -= 1;
            if line.first.is_empty() {
                // Written by an earlier run of the agent.
                line.first.extend_from_slice(bytes);
            }
            line.is_complete = bytes.ends_with(b"\n");
            return true;
        }
        if last.at == Some(at) {
            if line.is_repeated(at, bytes) {
                *skip_to = Last {
                    count: last.count - 1,
                    ..*last
                };
                return true;
            }
            last.count += 1;
        } else {
            line.first.clear();
            line.first.extend_from_slice(bytes);
            *last = Last {
                at: Some(at),
                count: 1,
            };
        }
        line.is_complete = bytes.ends_with(b"\n");
        false
    }

    /// Stores the position, once the files have no bytes beyond it.
    pub(crate) fn save(&mut self) {
        if self.skip_bytes != [0, 0] {
            return;
        }
        self.position.files = [self.logs[0].position(), self.logs[1].position()];
        self.store();
    }

    fn store(&self) {
        if let Err(error) = records::write_position(&self.file, &self.position) {
            tracing::warn!(%error, file = %self.file.display(), "cannot store a log position");
        }
    }
}

/// Splits `<time> <text>`. A message without a time is all text.
fn split(frame: &[u8]) -> (Option<Moment>, &[u8]) {
    let Some(space) = frame.iter().position(|byte| *byte == b' ') else {
        return (None, frame);
    };
    match std::str::from_utf8(&frame[..space]).ok().and_then(moment) {
        Some(time) => (Some(time), &frame[space + 1..]),
        None => (None, frame),
    }
}

fn moment(text: &str) -> Option<Moment> {
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(time.into())
}
