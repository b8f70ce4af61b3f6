//! Writer of a container's output that a new run of the agent continues without loss or doubles.
//!
//! The stored position names the engine's last message that was written before it, by time and count,
//! and the length of the log files then. After a restart, messages up to that one are skipped; of the
//! following ones, as many bytes as the files have grown since, because they were written and the
//! position was not stored any more.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use task_drivers::log_files::{self, FilePosition, LogStream, RotatingLog};

use crate::records::{self, LogFiles};

const STREAMS: [LogStream; 2] = [LogStream::Stdout, LogStream::Stderr];

/// Time of a message, as the engine writes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Moment {
    second: i64,
    nanosecond: i32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Time of the last message; `None`: none was written.
    at: Option<Moment>,
    /// Number of messages of that time.
    count: u64,
    /// Ends of the log files, in the order of [`STREAMS`].
    files: [FilePosition; 2],
}

pub(crate) struct Copier {
    file: PathBuf,
    position: Position,
    logs: [RotatingLog; 2],
    /// The position to skip to, in the answer that is read now.
    skip_to: Option<Moment>,
    skip_count: u64,
    /// Bytes that the files have already, in the order of [`STREAMS`].
    skip_bytes: [u64; 2],
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
            skip_to: None,
            skip_count: 0,
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
        self.skip_to = self.position.at;
        self.skip_count = self.position.count;
        let second = self.position.at.map_or(0, |at| at.second);
        i32::try_from(second).unwrap_or(0)
    }

    /// Writes messages, each with its time in front. Returns a write error.
    pub(crate) fn write(&mut self, frames: &[(LogStream, Vec<u8>)]) -> Option<std::io::Error> {
        let mut problem = None;
        for (stream, frame) in frames {
            let (at, mut bytes) = split(frame);
            if at.is_some_and(|at| self.is_known(at)) {
                continue;
            }
            let index = usize::from(*stream == LogStream::Stderr);
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

    /// Counts a message, and returns whether it was written before this answer began.
    fn is_known(&mut self, at: Moment) -> bool {
        if let Some(last) = self.skip_to {
            if at < last {
                return true;
            }
            if at == last && self.skip_count > 0 {
                self.skip_count -= 1;
                return true;
            }
        }
        if self.position.at == Some(at) {
            self.position.count += 1;
        } else {
            self.position.at = Some(at);
            self.position.count = 1;
        }
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
    Some(Moment {
        second: time.as_second(),
        nanosecond: time.subsec_nanosecond(),
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Messages of one container: two of the same time, and both streams.
    fn messages() -> Vec<(LogStream, Vec<u8>)> {
        let message = |stream, second: u32, text: &str| {
            let line = format!("2026-11-22T10:00:{second:02}.000000001Z {text}\n");
            (stream, line.into_bytes())
        };
        vec![
            message(LogStream::Stdout, 1, "a"),
            message(LogStream::Stdout, 2, "b"),
            message(LogStream::Stderr, 2, "E"),
            message(LogStream::Stdout, 2, "c"),
            message(LogStream::Stdout, 3, "d"),
            message(LogStream::Stderr, 4, "F"),
        ]
    }

    fn open(folder: &Path) -> Copier {
        let files = LogFiles {
            directory: folder.to_owned(),
            task: "web".to_owned(),
            max_files: 10,
            max_file_bytes: 5,
        };
        let file = folder.join("position");
        let stored = fs::read(&file).ok();
        let stored = stored.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut copier = Copier::open(&files, file, stored);
        copier.resume();
        copier
    }

    fn written(folder: &Path, stream: LogStream) -> String {
        let numbers = log_files::numbers(folder, "web", stream).unwrap();
        let files = numbers.into_iter();
        let texts = files.map(|number| {
            fs::read_to_string(log_files::path(folder, "web", stream, number)).unwrap()
        });
        texts.collect()
    }

    #[test]
    fn an_agent_killed_at_any_message_goes_on_without_loss_or_doubles() {
        let all = messages();
        // Killed after `killed` messages, the position stored after `saved` of them, twice.
        for killed in 0..=all.len() {
            for saved in 0..=killed {
                let folder = tempfile::tempdir().unwrap();
                // Output of an earlier attempt of the task.
                fs::write(folder.path().join("web.stdout.0"), "old\n").unwrap();
                let mut copier = open(folder.path());
                copier.write(&all[..saved]);
                copier.save();
                copier.write(&all[saved..killed]);
                drop(copier);
                for _ in 0..2 {
                    // The engine answers with everything from the second on.
                    let mut copier = open(folder.path());
                    copier.write(&all);
                    copier.save();
                }
                let of = |stream| written(folder.path(), stream);
                assert_eq!(
                    of(LogStream::Stdout),
                    "old\na\nb\nc\nd\n",
                    "{killed} {saved}"
                );
                assert_eq!(of(LogStream::Stderr), "E\nF\n", "{killed} {saved}");
            }
        }
    }

    #[test]
    fn the_log_is_requested_from_the_second_of_the_last_message() {
        let folder = tempfile::tempdir().unwrap();
        let mut copier = open(folder.path());
        assert_eq!(copier.resume(), 0);
        copier.write(&messages()[..1]);
        let second = moment("2026-11-22T10:00:01Z").unwrap().second;
        assert_eq!(i64::from(copier.resume()), second);
    }

    #[test]
    fn a_message_without_a_time_is_text() {
        assert_eq!(split(b"hello world"), (None, &b"hello world"[..]));
        assert_eq!(split(b"hello"), (None, &b"hello"[..]));
        let (at, text) = split(b"2026-11-22T10:00:01.5+02:00 x y");
        assert_eq!(at, moment("2026-11-22T08:00:01.5Z"));
        assert_eq!(text, b"x y");
    }
}
